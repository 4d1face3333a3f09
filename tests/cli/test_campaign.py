"""`priorveil campaign`: from plans to the file that the curator takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from priorveil import Prior, design
from priorveil.queries import Distribution
from priorveil.questions.campaign import Campaign, stamp
from terminal import done

QUESTION = ("--question", "Do you smoke?")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plans").mkdir()
    for name, yes in (("plan", 0.2), ("plans/north", 0.2), ("plans/a%2Fb", 0.3)):
        design(Prior({"yes": yes, "no": 1 - yes}), 1.0, Distribution()).save(tmp_path / f"{name}.json")
    return tmp_path


def test_a_campaign_tells_who_asks_and_why(folder: Path) -> None:
    texts = ("--asked-by", "The town", "--purpose", "To help", "--contact", "a@example.org")
    task = ["campaign", "from-plan", "plan.json", *QUESTION, *texts, "--smallest-count", "7"]
    told = done(*task, "-o", "c.json")
    made = Campaign.from_json((folder / "c.json").read_bytes())
    read = (*map(made.text, (made.title, made.questions[0].text, made.asked_by, made.purpose)), made.contact)
    assert read == (QUESTION[1], QUESTION[1], *texts[1::2])
    assert made.smallest_count == 7 and list(made.cohorts) == ["everyone"]
    assert made.id in told.out and told.err == ""


def test_a_folder_has_a_plan_for_each_cohort(folder: Path) -> None:
    task = ["campaign", "from-plan", "plans", *QUESTION, "--closes", "2999-01-01T00:00:00Z"]
    told = done(*task, "-o", "c.json")
    made = Campaign.from_json((folder / "c.json").read_bytes())
    assert list(made.cohorts) == ["a/b", "north"] and made.closes is not None
    assert "who asks and why: give --asked-by and --purpose" in told.err


def test_a_campaign_says_who_may_answer_and_how_long_reports_are_kept(folder: Path) -> None:
    admission = ["--admission", "invitation", "--most-reports", "300"]
    times = ["--closes", "2998-01-01T00:00:00Z", "--keep-until", "2999-01-01T00:00:00Z"]
    done("campaign", "from-plan", "plan.json", *QUESTION, *admission, *times, "-o", "c.json")
    made = Campaign.from_json((folder / "c.json").read_bytes())
    assert (made.admission, made.most_reports) == ("invitation", 300)
    assert stamp(made.keep_until) == "2999-01-01T00:00:00Z"


def test_numbers_outside_the_range_may_count_at_its_ends(folder: Path) -> None:
    numbers = ["design", "--numbers", "0:10:3", "--query", "mean", "--epsilon", "1", "-o", "hours.json"]
    done(*numbers, "--outside", "ends")
    done("campaign", "from-plan", "hours.json", *QUESTION, "-o", "c.json")


def test_a_question_for_a_number_is_not_one_of_answers(folder: Path) -> None:
    grid = Prior.grid([0, 40, 80], [0.5, 0.3, 0.2], outside="ends")
    design(grid, 1.0, Distribution()).save(folder / "hours.json")
    told = done("campaign", "from-plan", "hours.json", *QUESTION, "-o", "c.json").out
    assert "numbers from 0 to 80" in told and "3 answers" not in told
