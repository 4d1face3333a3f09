"""What a survey promises and tells: the campaign keeps its budget, and the figures are those of its plans."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from priorveil import Prior
from priorveil.catalogue import say
from priorveil.curator.results import campaign_results
from priorveil.curator.store import FormTally, count_cells
from priorveil.questions.campaign import EVERYONE, Campaign, ask
from priorveil.questions.survey import SurveyDesign, build
from priorveil.questions.survey_check import SurveyCheck
from priorveil.questions.survey_reader import read_survey
from priorveil.words.surveys import likely_afterwards, survey_words
from sample_survey_files import TOML, write_form

SEARCH = {"rounds": 20, "progress": False}


@pytest.fixture(scope="module")
def form(tmp_path_factory: pytest.TempPathFactory) -> SurveyDesign:
    """The six questions of an XLSForm."""
    return build(read_survey(write_form(tmp_path_factory.mktemp("form") / "form.xlsx")), **SEARCH)


@pytest.fixture(scope="module")
def toml(tmp_path_factory: pytest.TempPathFactory) -> SurveyDesign:
    """The survey in TOML."""
    path = tmp_path_factory.mktemp("toml") / "survey.toml"
    path.write_text(TOML, encoding="utf-8")
    return build(read_survey(path), **SEARCH)


def one_question(folder: Path, epsilon: float, prior: str) -> SurveyCheck:
    """The check of a survey with one question."""
    path = folder / "survey.toml"
    question = f'[[question]]\nname = "a"\ntext = "A?"\nkind = "yes-no"\nprior = {prior}'
    path.write_text(f'title = "T"\nepsilon = {epsilon}\n{question}')
    return SurveyCheck.of(build(read_survey(path), **SEARCH), 300)


def told(check: SurveyCheck, passage: str = "promise") -> str:
    """What a check says about the promise, the precision or the budget."""
    return " ".join(getattr(survey_words(check), passage).sentences)


@pytest.mark.parametrize("name", ["form", "toml"])
def test_a_whole_submission_keeps_the_budget(name: str, request: pytest.FixtureRequest) -> None:
    made: SurveyDesign = request.getfixturevalue(name)
    promise = made.campaign.promise[EVERYONE]
    assert promise.lip <= made.survey.epsilon * (1 + 1e-9) and promise.ldp <= 2 * promise.lip * (1 + 1e-9)
    attributes = {name for question in made.survey.questions for name in question.attributes}
    assert set(made.campaign.form_for(EVERYONE).attributes) == attributes
    assert Campaign.from_json(made.campaign.to_json()) == made.campaign


def test_people_can_answer_on_every_path(form: SurveyDesign) -> None:
    campaign = form.campaign
    answers = {"age": "old", "home": "no", "sleep": 7.5, "worries": ["pay"], "overtime": 3}
    paths = [{"union": "no"}, {"union": "yes", "active": "weekly"}]
    outcomes = [campaign.attribute_values({**answers, **path}) for path in paths]
    assert [values["active"] for values in outcomes] == ["not asked", "weekly"]
    rows = {name: [values[name] for values in outcomes] for name in outcomes[0]}
    words = campaign.form_for(EVERYONE).privatize(rows, rng=np.random.default_rng(1))
    assert words.shape == (2, campaign.form_for(EVERYONE).width)
    assert campaign.form_for(EVERYONE).accepts(words).all()


def test_the_report_says_what_so_many_people_tell(toml: SurveyDesign) -> None:
    check = SurveyCheck.of(toml, 300)
    assert check.people == (300, 1000) and SurveyCheck.of(toml, 2000).people == (2000, 20000)
    parts = toml.campaign.form_for(EVERYONE).parts
    for part, shown in zip(parts, check.parts, strict=True):
        expected = part.plan.expected_precision(max(1, round(1000 * shown.drawn))).population
        assert shown.half_widths[1] == expected
    assert check.bytes == 8 * toml.campaign.form_for(EVERYONE).width


def test_the_results_promise_what_the_report_said(toml: SurveyDesign) -> None:
    """Also about a question that only a share of all people is asked."""
    campaign, check = toml.campaign, SurveyCheck.of(toml, 10_000)
    assert all(part.drawn < 1 for part in check.parts)
    form = campaign.form_for(EVERYONE)
    empty = {form.id: FormTally.of(form, count_cells(form, b""))}
    findings = campaign_results(campaign, empty, "auto", 0.95, "open").result.findings
    shown = [found for found in findings if found.margin_of is None]
    for found, part in zip(shown, check.parts, strict=True):
        assert found.withheld == "few reports"
        assert found.precision is not None and found.promised is not None
        assert found.precision.population == part.half_widths[0]
        assert found.precision.people == 10_000 and "10,000 people" in str(found.promised)


def test_promises_are_for_the_people_who_are_expected(toml: SurveyDesign) -> None:
    campaign = replace(toml.campaign, expected_people=400)
    form, survey_check = campaign.form_for(EVERYONE), SurveyCheck.of(toml, 400)
    empty = {form.id: FormTally.of(form, count_cells(form, b""))}
    findings = campaign_results(campaign, empty, "auto", 0.95, "open").result.findings
    shown = [found.precision for found in findings if found.precision is not None]
    assert [each.people for each in shown] == [400] * len(survey_check.parts)
    assert [each.population for each in shown] == [part.half_widths[0] for part in survey_check.parts]


def test_the_report_says_what_nobody_knows(toml: SurveyDesign, form: SurveyDesign) -> None:
    assert SurveyCheck.of(toml, 300).assumed == ("age",)
    assert SurveyCheck.of(form, 300).assumed == ("age x overtime",)
    assert "Nobody knows" in survey_words(SurveyCheck.of(toml, 300)).promise.sentences[-1]


def test_a_survey_of_unknown_answers_promises_ldp_alone(tmp_path: Path) -> None:
    check = one_question(tmp_path, 1.0, '"unknown"')
    assert check.lip == check.ldp == pytest.approx(1.0)
    assert "all of it" in told(check, "budget")
    assert told(check).startswith("No matter what anyone knows") and "LIP" not in told(check)


UNKNOWN_GATE = TOML.replace("{yes = 0.2, no = 0.8}", '"unknown"').replace(
    "{yes = 0.5, no = 0.4, secret = 0.1}", '{yes = 0.1, no = 0.1, secret = 0.1, "not asked" = 0.7}'
)


def test_one_report_about_everything_promises_ldp_alone(tmp_path: Path) -> None:
    """Nobody knows how often answers occur together, so that no prior of the file is used: "if ..." would mislead."""
    path = tmp_path / "survey.toml"
    text = UNKNOWN_GATE.replace("epsilon = 1.0", "epsilon = 8").partition('\n[[question]]\nname = "age"')[0]
    path.write_text(text, encoding="utf-8")
    check = SurveyCheck.of(build(read_survey(path), **SEARCH), 300)
    assert check.chosen == "together" and check.lip == check.ldp and check.assumed == ("smokes",)
    assert "as common as the survey says" not in told(check)
    assert "nobody knows how often their answers occur together" in told(check)


@pytest.mark.parametrize(("epsilon", "is_weak"), [(1.0, False), (20.0, True)])
def test_a_large_epsilon_is_called_weak(tmp_path: Path, epsilon: float, is_weak: bool) -> None:
    for prior, level in (("{yes = 0.2, no = 0.8}", "LIP"), ('"unknown"', "LDP")):
        words = told(one_question(tmp_path, epsilon, prior))
        assert (f"weak protection: at {level} 20 a submission nearly reveals" in words) is is_weak


@pytest.mark.parametrize(
    ("limit", "epsilon", "words"),
    [
        (None, 1.0, None),
        (1.0, 1.5, "is above the limit of this survey, 1: raise the limit or leave it out"),
        (100.0, 11.0, "is above their usual limit, 10: lower epsilon"),
    ],
)
def test_a_survey_that_devices_refuse_is_said(limit: float | None, epsilon: float, words: str | None) -> None:
    campaign = ask("A?", Prior([0.5, 0.5], ["yes", "no"], assumed=True), epsilon, limit=limit)
    sentences = [
        text for text in map(str, campaign.warnings) if text.startswith("Devices would refuse to answer")
    ]
    assert len(sentences) == (words is not None) and all(str(words) in text for text in sentences)


@pytest.mark.parametrize("epsilon", [2.4, 4.0, 7.0, 20.0])
def test_an_answer_that_can_still_be_doubted_is_not_called_certain(tmp_path: Path, epsilon: float) -> None:
    """Ten times as likely as 10 % is no bound: what all other answers keep, and LDP, bound it below one."""
    check = one_question(tmp_path, epsilon, "{yes = 0.2, no = 0.8}")
    lip, ldp = survey_words(check).promise.sentences[:2]
    assert "100" not in lip.partition("One that was 10 %")[2] and "100" not in ldp.partition("One that")[2]
    if epsilon == 4.0:
        shares = [float(text) for text in re.findall(r"at most ([0-9.]+) % likely", lip + ldp)]
        assert len(shares) == 2 and shares[0] <= shares[1] < 100


def test_how_likely_an_answer_can_become_is_bounded_by_every_level() -> None:
    """The largest share that keeps all three bounds is stated."""
    for before, lower, upper, ldp in ((0.1, 4.0, 4.0, 6.0), (0.1, 1.0, 1.0, 2.0), (0.1, 0.5, 3.0, 9.0)):
        shares = np.linspace(1e-6, 1 - 1e-6, 1_000_001)
        odds = np.log(shares / (1 - shares)) - np.log(before / (1 - before))
        lifts = np.log(shares / before), np.log((1 - shares) / (1 - before))
        allowed = (lifts[0] <= upper) & (lifts[1] >= -lower) & (odds <= ldp)
        assert likely_afterwards(before, lower, upper, ldp) == pytest.approx(shares[allowed].max(), abs=2e-6)


def test_times_in_the_past_are_said(toml: SurveyDesign) -> None:
    def remarks(day: int) -> list[str]:
        return list(map(str, timed.remarks_at(datetime(2026, 3, day, tzinfo=UTC))))

    times = {"opens": datetime(2026, 3, 2, tzinfo=UTC), "closes": datetime(2026, 3, 5, tzinfo=UTC)}
    timed = replace(toml.survey, details=replace(toml.survey.details, **times))
    assert remarks(1) == []
    assert "opens is in the past (2026-03-02T00:00:00Z)" in remarks(2)[0]
    assert remarks(5) == ["closes is in the past (2026-03-05T00:00:00Z): nobody could answer"]
    nameless = replace(toml.survey, details=replace(toml.survey.details, purpose={}))
    assert tuple(map(str, nameless.remarks)) == ("people should know who asks and why: give purpose",)


def test_few_people_are_told_what_would_be_hidden(toml: SurveyDesign) -> None:
    for people, is_hidden in ((40, True), (100_000, False)):
        assert ("no result would be shown" in told(SurveyCheck.of(toml, people), "precision")) == is_hidden


def test_the_table_has_a_dash_for_what_is_hidden(toml: SurveyDesign) -> None:
    for people in (40, 60, 100, 150):
        check = SurveyCheck.of(toml, people)
        shown = [people * part.drawn >= check.smallest_count for part in check.parts]
        assert [row[-2] != say("precisionHidden") for row in survey_words(check).table.rows] == shown


def test_half_widths_of_means_have_their_unit(form: SurveyDesign) -> None:
    check = SurveyCheck.of(form, 2000)
    units = {part.questions: part.unit for part in check.parts}
    assert units["age x overtime"] == "hours" and units["age x home"] == ""
    rows = {row[0]: row[-1] for row in survey_words(check).table.rows}
    assert rows["age x overtime"].endswith(" hours") and rows["age x home"].endswith(" points")


def test_each_way_to_use_the_budget_has_its_price(toml: SurveyDesign) -> None:
    check = SurveyCheck.of(toml, 300)
    prices = {way: cost for way, cost in check.costs.items() if cost is not None}
    assert check.chosen in prices and prices[check.chosen] == min(prices.values()) > 1
    assert told(check, "budget").count("(chosen)") == 1
    assert "times as many people as asking without noise" in told(check, "budget")


def test_the_ldp_levels_of_several_reports_keep_the_budget(tmp_path: Path) -> None:
    """With a large budget everybody answers everything."""
    text = TOML.replace("epsilon = 1.0", "epsilon = 8").replace("{yes = 0.2, no = 0.8}", '"unknown"')
    shares = '{yes = 0.1, no = 0.1, secret = 0.1, "not asked" = 0.7}'
    path = tmp_path / "survey.toml"
    path.write_text(text.replace("{yes = 0.5, no = 0.4, secret = 0.1}", shares), encoding="utf-8")
    made = build(read_survey(path), **SEARCH)
    assert made.chosen == "split"
    levels = made.campaign.promise[EVERYONE]
    assert levels.lip == levels.ldp and 7.99 < levels.ldp <= 8
    check = SurveyCheck.of(made, 300)
    assert told(check).startswith("No matter what anyone knows or believes (LDP 8, the sum of 3 reports)")
    assert "LDP levels of several reports add up" in told(check)
