"""Design a survey in a process of its own: standard input has the survey, standard output gets the result as JSON.

    python -m priorveil.curator.survey_process survey.toml --people 300 --seconds 50 --memory 1073741824 --nice 10

The name only says what kind of file it is: no file is read. The curator runs this, so that a design neither holds up
its requests nor takes more than its share of the machine. The result is a `CheckedSurvey`; or, with exit status 1, what
is wrong, and where.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from priorveil.errors import InvalidFile, PriorveilError

REFUSED_STATUS = 1  # the exit status for a survey that cannot be designed
TOO_LARGE = "it needs too much memory: ask fewer questions, or give fewer options"
_SEARCH = 0.5  # share of the time for searches: afterwards the best plans so far are taken
_SEARCH_EACH = 10.0  # seconds to search for each report, as on the command line


def main() -> int:
    """Design the survey on standard input."""
    parser = argparse.ArgumentParser(prog="python -m priorveil.curator.survey_process", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--people", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--memory", type=int, required=True)
    parser.add_argument("--nice", type=int, required=True)
    arguments = parser.parse_args()
    deadline = time.monotonic() + _SEARCH * arguments.seconds
    _limit(arguments.seconds, arguments.memory, arguments.nice)
    status, result = design_or_refuse(arguments.name, sys.stdin.buffer.read(), arguments.people, deadline)
    sys.stdout.buffer.write(msgspec.json.encode(result))
    return status


def design_or_refuse(
    name: str, content: bytes, people: int, deadline: float = math.inf
) -> tuple[int, dict[str, Any]]:
    """The exit status, and the design of the survey in a file with this name, or what is wrong with it."""
    try:
        return 0, _design(name, content, people, deadline)
    except InvalidFile as error:
        place = {"line": error.line, "cell": error.cell, "keys": error.keys}
        return REFUSED_STATUS, {"detail": error.message, "advice": error.advice, **place}
    except PriorveilError as error:
        return REFUSED_STATUS, {"detail": error.message, "advice": error.message}
    except MemoryError:
        return REFUSED_STATUS, {"detail": TOO_LARGE, "advice": TOO_LARGE}


def _design(name: str, content: bytes, people: int, deadline: float) -> dict[str, Any]:
    from priorveil.questions.survey import build
    from priorveil.questions.survey_check import SurveyCheck
    from priorveil.questions.survey_reader import received_survey
    from priorveil.words.surveys import survey_words

    survey = received_survey(name, content)
    design = build(survey, time_limit=_SEARCH_EACH, should_stop=lambda: time.monotonic() > deadline)
    check = SurveyCheck.of(design, people)
    campaign, remarks = design.campaign, tuple(map(str, survey.remarks))
    if campaign.expected_people is None:  # the results then promise what this check says
        campaign = replace(campaign, expected_people=people)
    return {"check": check, "words": survey_words(check), "remarks": remarks, "campaign": campaign.to_json()}


def _limit(seconds: float, memory: int, nice: int) -> None:
    """Limit the time and memory of this process, even if its parent is gone."""
    try:
        import resource
    except ImportError:  # Windows
        return
    os.nice(nice)
    with suppress(OSError):  # not Linux
        Path("/proc/self/oom_score_adj").write_text(
            "1000"
        )  # without memory this process ends, not the curator
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
