"""`priorveil campaign`: from plans to the file that the curator takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from priorveil import Prior, design
from priorveil.cli import run
from priorveil.queries import Distribution
from priorveil.questions.campaign import Campaign, stamp

QUESTION = ("--question", "Do you smoke?")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plans").mkdir()
    for name, yes in (("plan", 0.2), ("plans/north", 0.2), ("plans/a%2Fb", 0.3)):
        design(Prior({"yes": yes, "no": 1 - yes}), 1.0, Distribution()).save(tmp_path / f"{name}.json")
    return tmp_path


def test_a_campaign_tells_who_asks_and_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ("--asked-by", "The town", "--purpose", "To help", "--contact", "a@example.org")
    assert (
        run(
            ["campaign", "from-plan", "plan.json", *QUESTION, *texts, "--smallest-count", "7", "-o", "c.json"]
        )
        == 0
    )
    made = Campaign.from_json((folder / "c.json").read_bytes())
    read = (*map(made.text, (made.title, made.questions[0].text, made.asked_by, made.purpose)), made.contact)
    assert read == (QUESTION[1], QUESTION[1], *texts[1::2])
    assert made.smallest_count == 7 and list(made.cohorts) == ["everyone"]
    told = capsys.readouterr()
    assert made.id in told.out and told.err == ""


def test_a_folder_has_a_plan_for_each_cohort(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["campaign", "from-plan", "plans", *QUESTION, "--closes", "2999-01-01T00:00:00Z", "-o", "c.json"])
        == 0
    )
    made = Campaign.from_json((folder / "c.json").read_bytes())
    assert list(made.cohorts) == ["a/b", "north"] and made.closes is not None
    assert "who asks and why: give --asked-by and --purpose" in capsys.readouterr().err


def test_a_campaign_says_who_may_answer_and_how_long_reports_are_kept(folder: Path) -> None:
    admission = ["--admission", "invitation", "--most-reports", "300"]
    times = ["--closes", "2998-01-01T00:00:00Z", "--keep-until", "2999-01-01T00:00:00Z"]
    assert run(["campaign", "from-plan", "plan.json", *QUESTION, *admission, *times, "-o", "c.json"]) == 0
    made = Campaign.from_json((folder / "c.json").read_bytes())
    assert (made.admission, made.most_reports) == ("invitation", 300)
    assert stamp(made.keep_until) == "2999-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["plan.json", "-o", "c.json"], "--question"),
        (["plan.json", *QUESTION, "-o", "plan.json"], "plan.json"),
        (["plan.json", "--question", " ", "-o", "c.json"], "title"),
        (["plan.json", *QUESTION, "--opens", "soon", "-o", "c.json"], "2026-01-31T12:00:00Z"),
        (["plan.json", *QUESTION, "--smallest-count", "-1", "-o", "c.json"], "smallest_count"),
        (["plan.json", *QUESTION, "--most-reports", "0", "-o", "c.json"], "most_reports"),
        (["plan.json", *QUESTION, "--admission", "friends", "-o", "c.json"], "--admission"),
        (["plan.json", *QUESTION, "--keep-until", "2999-01-01T00:00:00Z", "-o", "c.json"], "keep_until"),
        (["plans/none.json", *QUESTION, "-o", "c.json"], "does not exist"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    assert run(["campaign", "from-plan", *arguments]) == 2
    told = capsys.readouterr().err
    assert complaint in told and told.count("\n") == 1 and not (folder / "c.json").exists()


def test_a_number_outside_the_range_has_to_count_somewhere(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = ["design", "--numbers", "0:10:3", "--query", "mean", "--epsilon", "1", "-o", "hours.json"]
    task = ["campaign", "from-plan", "hours.json", *QUESTION, "-o", "c.json"]
    assert run(numbers) == 0 and run(task) == 2
    advice = "to count them at the nearest end, use priorveil design --outside ends to make the plan again"
    assert advice in capsys.readouterr().err
    assert run([*numbers, "--outside", "ends", "--force"]) == 0 and run(task) == 0


def test_a_question_for_a_number_is_not_one_of_answers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = Prior.grid([0, 40, 80], [0.5, 0.3, 0.2], outside="ends")
    design(grid, 1.0, Distribution()).save(folder / "hours.json")
    assert run(["campaign", "from-plan", "hours.json", *QUESTION, "-o", "c.json"]) == 0
    told = capsys.readouterr().out
    assert "numbers from 0 to 80" in told and "3 answers" not in told
