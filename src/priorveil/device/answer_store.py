"""The store of a person's answers: one file for each campaign.

An unreadable file raises an error; it is never treated as missing, because the campaign would then be answered twice.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from priorveil.atomic_files import atomic_write, lock_file
from priorveil.device.transport import parse_campaign_url
from priorveil.device.wire import Report
from priorveil.errors import InvalidInput, PriorveilError
from priorveil.plans.structure import convert


class NotStored(PriorveilError, OSError):
    """An answer cannot be stored, for example because the disk is full; such an answer is not sent."""


@dataclass(frozen=True)
class StoredAnswer:
    """What is stored about a campaign: what was drawn and, after the answer, the report and whether it was sent.

    `draws` has the part of each slot for every form of the campaign, by its id; `form` is that of the cohort, and `ldp`
    the LDP level of a whole submission. `code` is that of an invitation, until the report has arrived. Answers and
    random words are never stored: random words and a report together reveal the answers.
    """

    url: str
    campaign: str
    cohort: str
    form: str
    draws: Mapping[str, tuple[int, ...]]
    ldp: float
    report: Report | None = None
    sent: bool = False
    refused: str | None = None
    code: str | None = None

    @property
    def draw(self) -> tuple[int, ...]:
        """The part of each slot of the cohort's form."""
        return self.draws[self.form]


class AnswerStore:
    """Stored answers: one file for each campaign in a folder, or in this process only without a folder."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = None if folder is None else _create_folder(folder)
        self._answers: dict[str, StoredAnswer] = {}
        self._lock = threading.RLock()
        list(self)  # an unreadable file raises an error now

    def __iter__(self) -> Iterator[StoredAnswer]:
        """All answers as they are now, including those of other processes."""
        if self.folder is None:
            return iter(list(self._answers.values()))
        try:
            names = sorted(name for name in os.listdir(self.folder) if name.endswith(".json"))
        except OSError as error:  # a folder that cannot be read is not an empty one
            advice = f"it cannot be read ({_cause(error)}): give a folder of your own"
            raise InvalidInput("state", str(self.folder), advice) from error
        answers = (_read_answer(self.folder / name) for name in names)
        return iter([answer for answer in answers if answer is not None])

    def find(self, campaign: str) -> StoredAnswer | None:
        """The answer to a campaign."""
        return self._answers.get(campaign) if self.folder is None else _read_answer(self._path(campaign))

    def keep(self, answer: StoredAnswer) -> None:
        """Store an answer or its new state, durably. Raises `NotStored` if that fails."""
        if self.folder is None:
            self._answers[answer.campaign] = answer
            return
        path = self._path(answer.campaign)
        with (
            self._naming_write_errors(),
            atomic_write(path, replace=True, private=True, argument="state") as file,
        ):
            file.write(json.dumps(_document(answer)).encode())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the store, so that no other process adds an answer between the look-up and ours."""
        with self._lock, ExitStack() as held:
            if self.folder is not None and sys.platform != "win32":
                with self._naming_write_errors():
                    file = held.enter_context((self.folder / ".lock").open("wb"))
                    lock_file(file, wait=True)  # released when the file is closed, or the process dies
            yield

    @contextmanager
    def _naming_write_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, InvalidInput) as error:
            problem = f"no answer can be stored in {self.folder} ({_cause(error)}): nothing was sent"
            raise NotStored(f"{problem}. Make room there, or give another folder as state") from error

    def _path(self, campaign: str) -> Path:
        return (self.folder or Path()) / f"{campaign}.json"


def _create_folder(folder: str | Path) -> Path:
    """The folder, created if it is missing."""
    try:
        path = Path(folder).expanduser()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InvalidInput("state", str(folder), "give a folder; this is a file") from error
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        advice = f"it cannot be created ({_cause(error)}): give a folder that can be written to"
        raise InvalidInput("state", str(folder), advice) from error
    return path


def _read_answer(path: Path) -> StoredAnswer | None:
    """An answer from its file; None if there is no such file."""
    advice = "move it away; the campaign may then be answered twice"
    try:
        return _parse_answer(json.loads(path.read_text(encoding="utf-8")), path.stem)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput("state", str(path), f"it cannot be read ({_cause(error)}): {advice}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidInput("state", str(path), f"not a stored answer: {advice}") from error


def _document(answer: StoredAnswer) -> dict[str, Any]:
    """An answer as JSON."""
    document = {**asdict(answer), "ldp": repr(answer.ldp)}
    if answer.report is not None:
        del document["report"]["replayed"]  # it is about one call
    return document


def _parse_answer(read: Any, campaign: str) -> StoredAnswer:
    """The answer to a campaign from JSON; a wrong one raises some error."""
    answer = convert({**read, "ldp": float(read["ldp"])}, StoredAnswer)
    report = answer.report
    sound = (
        set(read) <= {field.name for field in fields(StoredAnswer)}
        and parse_campaign_url(answer.url)[1] == answer.campaign == campaign
        and answer.form in answer.draws
        and answer.ldp >= 0
        and (report is None or (report.campaign, report.form) == (answer.campaign, answer.form))
    )
    if not sound:
        raise ValueError("its fields do not belong together")
    return answer


def _cause(error: Exception) -> str:
    """What went wrong, in the words of the operating system if there are any."""
    cause = error.__cause__ or error
    words = cause.strerror if isinstance(cause, OSError) else getattr(error, "advice", None)
    return words or type(error).__name__
