"""`priorveil campaign new`, `check` and `build`: from a file to a campaign, without Python."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from priorveil.cli.campaign import campaign as campaign_command
from priorveil.plans.form import SHARE_DENOMINATOR
from priorveil.questions.campaign import Campaign
from sample_survey_files import SURVEY, TOML, write_form
from terminal import run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "health.toml").write_text(TOML, encoding="utf-8")
    return tmp_path


def test_a_new_file_can_be_checked_and_built() -> None:
    assert run("campaign", "new")[0] == 0
    status, out, err = run("campaign", "check", "survey.toml", "--people", "2000")
    assert (status, err) == (0, "") and "How precise the results will be with 2,000 people" in out
    status, out, err = run("campaign", "build", "survey.toml", "-o", "c.json")
    campaign = Campaign.from_json(Path("c.json").read_bytes())
    assert (status, err) == (0, "") and campaign.id in out and len(campaign.questions) == 4


def test_what_a_check_warns_of_is_said_wherever_a_campaign_is_made() -> None:
    Path("s.toml").write_text(
        'title = "T"\nasked_by = "Us"\npurpose = "To know"\nepsilon = 12\n'
        '[[question]]\nname = "a"\ntext = "A?"\nkind = "yes-no"\n'
        "prior = {yes = 0.5, no = 0.5}"
    )
    status, _, err = run("campaign", "build", "s.toml", "-o", "c.json")
    warnings = list(map(str, Campaign.from_json(Path("c.json").read_bytes()).warnings))
    assert status == 0 and err.splitlines() == warnings and len(warnings) == 2
    assert warnings[0].startswith("This is weak protection") and "Devices would refuse" in warnings[1]
    Path("prior.csv").write_text("yes,0.5\nno,0.5\n")
    assert run("design", "prior.csv", "--epsilon", "12", "-o", "plan.json")[0] == 0
    asked = ("--question", "Q?", "--asked-by", "Us", "--purpose", "To know", "-o", "p.json")
    assert run("campaign", "from-plan", "plan.json", *asked)[2].count("weak protection") == 1
    for command in (("campaign", "check", "s.toml"), ("inspect", "c.json")):
        shown = " ".join(run(*command)[1].split())
        assert all(warning in shown for warning in warnings)


def test_a_check_is_there_for_programs_too() -> None:
    status, out, _ = run("campaign", "check", "health.toml", "--json")
    record = json.loads(out)
    assert status == 0 and record["people"] == [300, 1000] and record["assumed"] == ["age"]
    assert record["words"]["promise"]["sentences"][0].startswith("If answers are as common")
    assert all(0 < part["drawn"] <= 1 for part in record["parts"])


def test_a_campaign_file_tells_what_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    run("campaign", "build", "health.toml", "-o", "c.json")
    campaign = Campaign.from_json(Path("c.json").read_bytes())
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = run("inspect", "c.json")
    monkeypatch.setenv("COLUMNS", "200")
    shown = " ".join(run("inspect", "c.json")[1].split())
    assert (status, err) == (0, "")
    assert campaign.id in out and all(form.id[:12] in out for form in campaign.cohorts.values())
    assert all(f"{question.name} {campaign.text(question.text)}" in shown for question in campaign.questions)
    record = json.loads(run("inspect", "c.json", "--json")[1])
    promise = json.loads(run("campaign", "check", "health.toml", "--json")[1])["words"]["promise"][
        "sentences"
    ]
    assert record["promise"] == promise[: len(record["promise"])] and len(record["promise"]) == 2
    assert all(sentence in shown for sentence in record["promise"])
    levels, (cohort,) = campaign.promise["everyone"], record["cohorts"].values()
    assert (cohort["lip"], cohort["ldp"]) == (levels.lip, levels.ldp)
    parts = [(list(part.attributes), part.plan.id) for part in campaign.form_for(None).parts]
    assert [(report["attributes"], report["plan"]) for report in record["reports"]] == parts
    shares = [share / SHARE_DENOMINATOR for slot in campaign.form_for(None).slots for share in slot.shares]
    assert [report["drawn"] for report in record["reports"]] == shares and min(shares) < 1


def test_what_a_form_cannot_carry_over_is_printed(folder: Path) -> None:
    write_form(folder / "form.xlsx", survey=[*SURVEY, ["text", "remarks", "Anything else?", "Noch etwas?"]])
    status, out, err = run("campaign", "build", "form.xlsx", "-o", "c.json")
    assert status == 0 and "7 questions in en, de" in out
    assert "the campaign differs from this file:\n  sheet survey, cell A9: remarks of type text" in err


def test_people_should_know_who_asks() -> None:
    text = TOML.replace('asked_by = "The clinic"\n', "")
    Path("health.toml").write_text(text, encoding="utf-8")
    assert "who asks and why: give asked_by" in run("campaign", "check", "health.toml")[2]


def test_the_help_has_every_command_once() -> None:
    status, out, _ = run("campaign", "--help")
    assert status == 0 and "\nFrom a survey file:\n" in out
    for name in campaign_command.commands:
        assert len(re.findall(rf"^  {name} ", out, re.MULTILINE)) == 1


def test_cohorts_have_rows_of_their_own(folder: Path) -> None:
    """As many people as the file says, unless the command says something else."""
    cohorts = (
        '[[cohort]]\nname = "north"\npeople = 100\n[[cohort]]\nname = "south"\npeople = 400\n[[question]]'
    )
    prior = "{cohorts = {north = {yes = 0.2, no = 0.8}, south = {yes = 0.3, no = 0.7}}}"
    text = TOML.replace("[[question]]", cohorts, 1).replace("{yes = 0.2, no = 0.8}", prior)
    Path("health.toml").write_text(text, encoding="utf-8")
    status, out, _ = run("campaign", "check", "health.toml")
    assert status == 0 and "How precise the results will be with 500 people" in out
    assert re.search(r"^north +100 +200 +1 ", out, re.MULTILINE)
    assert len(re.findall(r"^smokes +shares +(north|south|all) ", out, re.MULTILINE)) == 3
    assert "with 50 people" in run("campaign", "check", "health.toml", "--people", "50")[1]
    assert "3 questions in en, 2 cohorts, id " in run("campaign", "build", "health.toml", "-o", "c.json")[1]


def test_a_survey_that_has_ended_is_said(folder: Path) -> None:
    Path("health.toml").write_text(f"closes = 2020-01-01T00:00:00Z\n{TOML}", encoding="utf-8")
    for command in (["check", "health.toml"], ["build", "health.toml", "-o", "c.json"]):
        assert "closes is in the past" in run("campaign", *command)[2]
