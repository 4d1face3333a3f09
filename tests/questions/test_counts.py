"""Priors of a survey from the counts of a sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from priorveil import PriorSet
from priorveil.errors import InvalidFile
from priorveil.questions.question import NOT_ASKED
from priorveil.questions.survey import Survey, build
from priorveil.questions.survey_reader import read_survey
from refusals import raises

HEAD = 'title = "Homes"\nepsilon = 1.0\n'
YES_NO = '[[question]]\nname = "smokes"\ntext = "Smokes?"\nkind = "yes-no"\nprior = '
COUNTS = "{counts = {yes = 120, no = 880}}"


def read(folder: Path, text: str) -> Survey:
    path = folder / "survey.toml"
    path.write_text(text, encoding="utf-8")
    return read_survey(path)


def test_counts_become_the_priors_that_they_leave_possible(tmp_path: Path) -> None:
    survey = read(tmp_path, HEAD + YES_NO + COUNTS)
    assert survey.parts[0].prior == PriorSet.from_sample({"yes": 120, "no": 880})
    plan = build(survey).campaign.cohorts["everyone"].slots[0].parts[0].plan
    assert plan.prior == survey.parts[0].prior and plan.certificate.lip <= 1
    other = read(tmp_path, HEAD + YES_NO + "{counts = {yes = 120, no = 880}, delta = 0.001}")
    assert other.parts[0].prior == PriorSet.from_sample({"yes": 120, "no": 880}, 0.001)


def test_json_has_the_same_keys(tmp_path: Path) -> None:
    question = {"name": "smokes", "text": "Smokes?", "kind": "yes-no"}
    document = {
        "title": "Homes",
        "epsilon": 1.0,
        "question": [{**question, "prior": {"counts": {"yes": 120, "no": 880}}}],
    }
    path = tmp_path / "survey.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert read_survey(path).parts[0].prior == PriorSet.from_sample({"yes": 120, "no": 880})


def test_cohorts_may_have_samples_of_their_own(tmp_path: Path) -> None:
    cohorts = '[[cohort]]\nname = "north"\n[[cohort]]\nname = "south"\n'
    prior = "{cohorts = {north = {counts = {yes = 120, no = 880}}, south = {yes = 0.4, no = 0.6}}}"
    survey = read(tmp_path, HEAD + cohorts + YES_NO + prior)
    assert isinstance(survey.cohorts["north"].parts[0].prior, PriorSet)
    assert not isinstance(survey.cohorts["south"].parts[0].prior, PriorSet)


def test_ranges_of_a_number_are_its_cells(tmp_path: Path) -> None:
    number = '[[question]]\nname = "n"\ntext = "N?"\nkind = "number"\nquery = "shares"\nprior = '
    survey = read(tmp_path, HEAD + number + '{counts = {"0 to 20" = 70, "20 to 80" = 30}}')
    prior = survey.parts[0].prior
    assert isinstance(prior, PriorSet) and prior.sample is not None
    assert prior.sample.counts == (70, 30) and prior.centre.edges is not None


def test_people_who_were_not_asked_are_counted_too(tmp_path: Path) -> None:
    gate = HEAD + YES_NO + COUNTS + '\n[[question]]\nname = "quits"\ntext = "Quits?"\nkind = "yes-no"\n'
    gate += 'asked_if = {smokes = ["yes"]}\nprior = '
    survey = read(tmp_path, gate + f'{{counts = {{yes = 40, no = 80, "{NOT_ASKED}" = 880}}}}')
    assert survey.parts[1].prior.labels == ("yes", "no", NOT_ASKED)
    with raises(InvalidFile, line=13):
        read(tmp_path, gate + "{counts = {yes = 40, no = 80}}")


@pytest.mark.parametrize(
    "prior",
    [
        "{counts = {yes = 120.5, no = 880}}",
        "{counts = {yes = -1, no = 880}}",
        '{counts = {yes = "many", no = 880}}',
        "{counts = {maybe = 120, no = 880}}",
        "{counts = {yes = 0, no = 0}}",
        "{counts = {yes = 120, no = 880}, public = true}",
        "{counts = {yes = 120, no = 880}, delta = 2}",
        '{counts = {yes = 120, no = 880}, delta = "small"}',
    ],
)
def test_wrong_counts_have_a_place(tmp_path: Path, prior: str) -> None:
    with raises(InvalidFile, line=7):
        read(tmp_path, HEAD + YES_NO + prior)


def test_options_that_may_be_ticked_together_have_no_counts(tmp_path: Path) -> None:
    options = 'kind = "choices"\noptions = {pay = "Pay", boss = "Boss"}\nprior = '
    text = HEAD + '[[question]]\nname = "why"\ntext = "Why?"\n' + options
    with raises(InvalidFile, line=8):
        read(tmp_path, text + "{counts = {pay = 10, boss = 20}}")
