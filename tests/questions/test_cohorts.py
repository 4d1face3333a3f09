"""Cohorts of surveys: one form for each public group, with a prior of its own, and the same parts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from priorveil.catalogue import say
from priorveil.errors import InvalidFile
from priorveil.questions.campaign import Campaign
from priorveil.questions.survey import Survey, build
from priorveil.questions.survey_check import SurveyCheck
from priorveil.questions.survey_reader import read_survey
from priorveil.results.form_estimates import CohortForms, estimate_forms
from priorveil.words.surveys import survey_words
from refusals import raises
from sample_survey_files import CHOICES, SETTINGS, SHEETS, SURVEY, Rows, changed, write_form

SEARCH = {"rounds": 20, "progress": False}
TWO_COHORTS = """\
title = "Overtime"
epsilon = 1.0
smallest_count = 100

[[cohort]]
name = "north"
people = 120

[[cohort]]
name = "the south"
people = 360

[[question]]
name = "overtime"
text = "Did you work overtime?"
kind = "yes-no"
prior = {cohorts = {north = {yes = 0.4, no = 0.6}, "the south" = {yes = 0.1, no = 0.9}}}

[[question]]
name = "paid"
text = "Was it paid?"
kind = "yes-no"
asked_if = {overtime = ["yes"]}
prior = {yes = 0.3, no = 0.7}
"""
PRIOR = '{cohorts = {north = {yes = 0.4, no = 0.6}, "the south" = {yes = 0.1, no = 0.9}}}'


def read(folder: Path, text: str) -> Survey:
    path = folder / "survey.toml"
    path.write_text(text, encoding="utf-8")
    return read_survey(path)


def shares(survey: Survey, attribute: str) -> dict[str, list[float]]:
    """The prior of the part about one attribute, in each cohort."""
    return {
        name: spec.prior.probabilities.round(6).tolist()
        for name, cohort in survey.cohorts.items()
        for spec in cohort.parts
        if spec.attributes == (attribute,)
    }


def test_a_question_may_have_a_prior_for_each_cohort(tmp_path: Path) -> None:
    survey = read(tmp_path, TWO_COHORTS)
    assert shares(survey, "overtime") == {"north": [0.4, 0.6], "the south": [0.1, 0.9]}
    assert survey.people == 480 and survey.shares == {"north": 0.25, "the south": 0.75}


def test_a_prior_for_all_means_other_shares_where_fewer_are_asked(tmp_path: Path) -> None:
    paid = shares(read(tmp_path, TWO_COHORTS), "paid")
    assert paid == {"north": [0.12, 0.28, 0.6], "the south": [0.03, 0.07, 0.9]}


def test_cohorts_are_a_column_of_a_table(tmp_path: Path) -> None:
    people = ["north,yes"] * 20 + ["north,no"] * 20 + ["the south,yes"] * 10 + ["the south,no"] * 30
    (tmp_path / "people.csv").write_text("\n".join(["region,overtime", *people]))
    table = '{file = "people.csv", cohort_column = "region"}'
    survey = read(tmp_path, TWO_COHORTS.replace(PRIOR, table))
    assert shares(survey, "overtime") == {"north": [0.5, 0.5], "the south": [0.25, 0.75]}
    rows = ["north,yes,0.4", "north,no,0.6", "the south,yes,0.1", "the south,no,0.9"]
    (tmp_path / "people.csv").write_text("\n".join(["region,overtime,share", *rows]))
    survey = read(tmp_path, TWO_COHORTS.replace(PRIOR, table))
    assert shares(survey, "overtime") == {"north": [0.4, 0.6], "the south": [0.1, 0.9]}


def test_all_cohorts_have_the_same_ranges_of_a_number(tmp_path: Path) -> None:
    prior = '{cohorts = {north = {"0 to 5" = 1}, "the south" = {"0 to 2" = 0.5, "2 to 5" = 0.5}}}'
    number = f'[[question]]\nname = "n"\ntext = "N?"\nkind = "number"\nquery = "shares"\nprior = {prior}\n'
    assert shares(read(tmp_path, TWO_COHORTS + number), "n") == {
        "north": [0.4, 0.6],
        "the south": [0.5, 0.5],
    }


def test_options_are_topics_of_their_own_in_all_cohorts_or_in_none(tmp_path: Path) -> None:
    options = '{flu = "The flu", cold = "A cold"}'
    ill = f'[[question]]\nname = "ill"\ntext = "Ill?"\nkind = "choices"\noptions = {options}\nprior = '
    known = TWO_COHORTS + ill + '{cohorts = {north = "unknown", "the south" = {flu = 0.1, cold = 0.2}}}\n'
    flu = shares(read(tmp_path, known), "ill/flu")
    assert flu == {"north": [0.5, 0.5], "the south": [0.1, 0.9]}
    sets = '{joint = {"" = 0.5, flu = 0.2, cold = 0.2, "flu cold" = 0.1}}'
    with raises(InvalidFile, line=30):
        read(tmp_path, known.replace('"unknown"', sets))


def test_a_whole_submission_of_each_cohort_keeps_the_budget(tmp_path: Path) -> None:
    made = build(read(tmp_path, TWO_COHORTS), **SEARCH)
    assert Campaign.from_json(made.campaign.to_json()) == made.campaign
    assert list(made.campaign.cohorts) == ["north", "the south"]
    assert all(levels.lip <= 1.0 for levels in made.campaign.promise.values())
    parts = [[part.attributes for part in form.parts] for form in made.campaign.cohorts.values()]
    assert parts[0] == parts[1]  # so that results can be put together


def test_the_report_shows_every_cohort_and_all_of_them(tmp_path: Path) -> None:
    made = build(read(tmp_path, TWO_COHORTS), **SEARCH)
    check = SurveyCheck.of(made, 480)
    assert [cohort.people for cohort in check.cohorts] == [(120, 250), (360, 750)]
    assert check.ldp == max(levels.ldp for levels in made.campaign.promise.values())
    overtime = [part for part in check.parts if part.questions == "overtime"]
    assert [part.cohort for part in overtime] == ["north", "the south", ""]  # the least precise first
    widths: list[Any] = [part.half_widths[0] for part in overtime]
    expected = made.campaign.form_for("north").expected_precision(120)["overtime",].population
    assert widths[0] == expected > widths[1] > widths[2]
    assert widths[2] == pytest.approx(math.hypot(120 * widths[0], 360 * widths[1]) / 480)
    # Of 480 people too few are in the north, so that the total of all cohorts is not shown either.
    dash = say("precisionHidden")
    cells = {row[2]: row[-2:] for row in survey_words(check).table.rows if row[0] == "overtime"}
    assert [name for name, (few, _) in cells.items() if few == dash] == ["north", "all"]
    assert dash not in [many for _, many in cells.values()]
    few = survey_words(SurveyCheck.of(made, 40))
    assert {row[-2] for row in few.table.rows} == {dash} and len(few.precision.sentences) == 1


def test_the_people_of_cohorts_are_those_that_are_expected(tmp_path: Path) -> None:
    assert read(tmp_path, TWO_COHORTS).details.expected_people == 480
    assert read(tmp_path, f"expected_people = 480\n{TWO_COHORTS}").people == 480
    with raises(InvalidFile, line=1):
        read(tmp_path, f"expected_people = 400\n{TWO_COHORTS}")


def test_people_are_split_evenly_where_nobody_says_how_many_there_are(tmp_path: Path) -> None:
    text = TWO_COHORTS.replace("people = 120\n", "").replace("people = 360\n", "")
    check = SurveyCheck.of(build(read(tmp_path, text), **SEARCH), 300)
    assert [cohort.people for cohort in check.cohorts] == [(150, 500), (150, 500)]


AVERAGES = """
[[question]]
name = "age"
text = "Age?"
options = {young = "Young", old = "Old"}

[[question]]
name = "hours"
text = "Hours?"
kind = "number"
points = [0, 10]

[[together]]
questions = ["age", "hours"]
query = "mean of hours by age"
prior = {file = "hours.csv", cohort_column = "region"}
"""


def test_averages_of_all_cohorts_can_be_put_together(tmp_path: Path) -> None:
    """One query serves all cohorts. The averages are read by cohort, and add up to one for all."""
    cells = [("young", 0), ("young", 10), ("old", 0), ("old", 10)]
    counts = {"north": (40, 10, 30, 20), "the south": (20, 30, 10, 40)}
    rows = [
        f"{region},{age},{hours}"
        for region, numbers in counts.items()
        for (age, hours), count in zip(cells, numbers, strict=True)
        for _ in range(count)
    ]
    (tmp_path / "hours.csv").write_text("\n".join(["region,age,hours", *rows]))
    head = TWO_COHORTS.partition("[[question]]")[0].replace("epsilon = 1.0", "epsilon = 3")
    made = build(read(tmp_path, head + AVERAGES), **SEARCH)
    assert [part.cohort for part in SurveyCheck.of(made, 480).parts] == ["north", "the south"]
    rng, tallies = np.random.default_rng(5), {}
    for name, form in made.campaign.cohorts.items():
        people = [cells[at] for at in np.repeat(np.arange(4), 100 * np.array(counts[name]))]
        columns = {"age": [age for age, _ in people], "hours": [hours for _, hours in people]}
        tallies[name, None] = form.tallies(form.count(form.privatize(columns, rng=rng)))
    averages = estimate_forms(CohortForms.of(made.campaign), tallies).everybody.averages
    assert averages is not None
    low, high = averages.interval(0.999)
    assert np.all(low <= [4.0, 6.0]) and np.all(high >= [4.0, 6.0])  # 40 and 60 of 100 people


# -- XLSForm -----------------------------------------------------------------------------------------------------


def cohort_form() -> dict[str, Rows]:
    """The six questions with two cohorts: the union has a prior for each of them, in the sheet of choices."""
    choices = [[*CHOICES[0][:4], "pv::prior::north", "pv::prior::south"]]
    choices += [[*row[:4], *([row[4]] * 2 if len(row) > 4 else [])] for row in CHOICES[1:]]
    choices = changed(changed(choices, "F4", 0.5), "F5", 0.5)
    survey = [list(row) for row in SURVEY]
    survey[0][8:9] = ["pv::prior"]
    settings = [[*SETTINGS[0], "pv::cohorts"], [*SETTINGS[1], "north = 120, south = 180"]]
    return {"survey": survey, "choices": choices, "settings": settings}


def test_cohorts_of_an_xlsform_have_columns(tmp_path: Path) -> None:
    survey = read_survey(write_form(tmp_path / "form.xlsx", **cohort_form()))
    assert shares(survey, "union") == {"north": [0.25, 0.75], "south": [0.5, 0.5]}
    assert survey.people == 300 and not any("prior" in words for words in survey.left_out)
    sheets = cohort_form()
    sheets["survey"] = [[*row, *[None] * (12 - len(row))] for row in sheets["survey"]]
    sheets["survey"][0] += ["pv::prior::north", "pv::prior::south"]
    sheets["survey"][3] += ["yes = 0.1, no = 0.9", "yes = 0.2, no = 0.8"]
    sheets["settings"] = changed(sheets["settings"], "J2", "north; south")
    survey = read_survey(write_form(tmp_path / "form.xlsx", **sheets))
    assert shares(survey, "union") == {"north": [0.1, 0.9], "south": [0.2, 0.8]} and survey.people is None


@pytest.mark.parametrize(
    ("sheet", "cell", "value", "place"),
    [
        ("settings", "J2", "north", "choices!F1"),
        ("settings", "J2", "north, south, north", "settings!J2"),
        ("settings", "J2", "north, , south", "settings!J2"),
        ("settings", "J2", "north = many, south = 1", "settings!J2"),
        ("settings", "J2", "north = 120, south", "settings!J2"),
        ("settings", "J2", "north, south, west", "choices!E4"),
        ("settings", "J2", None, "choices!E1"),
        ("choices", "F1", "pv::prior::west", "choices!F1"),
        ("choices", "F4", 0.6, "choices!F4"),
        ("choices", "F4", None, "choices!F4"),
        ("choices", "F1", None, "choices!E4"),
    ],
)
def test_a_mistake_about_a_cohort_is_named_by_its_cell(
    tmp_path: Path, sheet: str, cell: str, value: object, place: str
) -> None:
    sheets = cohort_form()
    with raises(InvalidFile, cell=place):
        read_survey(
            write_form(
                tmp_path / "form.xlsx", **{**SHEETS, **sheets, sheet: changed(sheets[sheet], cell, value)}
            )
        )


# -- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ('name = "north"', "", 5),
        ('name = "the south"', 'name = "north"', 10),
        ("people = 120", "people = 0", 7),
        ("people = 120", "size = 120", 7),
        ("people = 120\n", "", 5),
        ('[[cohort]]\nname = "the south"\npeople = 360\n', "", 5),
        ("north = {yes = 0.4, no = 0.6}", "west = {yes = 0.4, no = 0.6}", 17),
        ("north = {yes = 0.4, no = 0.6}, ", "", 17),
        ("no = 0.9}}}", "no = 0.9}}, yes = 0.3}", 17),
        ("no = 0.9}}}", "no = 0.8}}}", 17),
        (PRIOR, "{yes = 0.4, no = 0.6}", 9),  # both cohorts would send the same reports
        (PRIOR, '{file = "people.csv", cohort_column = "area"}', 17),
        (PRIOR, '{file = "people.csv", cohort_column = "region"}', 17),
        (PRIOR, '{file = "people.csv"}', 9),
        ("[[cohort]]\nname = \"north\"\npeople = 120\n\n[[cohort]]\nname = \"the south\"\npeople = 360\n\n", "", 9),
        ("[[cohort]]\nname = \"north\"", "[cohort]\nname = \"north\"", 9),
    ],
)  # fmt: skip
def test_a_mistake_about_cohorts_is_named_by_its_line(
    tmp_path: Path, before: str, after: str, line: int
) -> None:
    people = ["north,yes"] * 20 + ["west,no"] * 20
    (tmp_path / "people.csv").write_text("\n".join(["region,overtime", *people]))
    assert before in TWO_COHORTS
    with raises(InvalidFile, line=line):
        read(tmp_path, TWO_COHORTS.replace(before, after))
