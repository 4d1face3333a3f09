"""The questions of an XLSForm, answered by 2,000 simulated people: estimates hold the truth."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from priorveil.curator.demo import run_curator, send_answers
from priorveil.questions.campaign import EVERYONE, Campaign
from priorveil.questions.survey import build
from priorveil.questions.survey_reader import read_survey
from priorveil.reading.estimate import Estimate
from priorveil.tables import estimate_table, privatize_table
from sample_survey_files import PEOPLE, TRUTH, one_person, write_form


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    survey = read_survey(write_form(tmp_path_factory.mktemp("form") / "form.xlsx"))
    return build(survey, rounds=20, progress=False).campaign


def test_a_curator_has_a_result_for_every_question(campaign: Campaign) -> None:
    """Devices answer over HTTP. Each was asked about one part of the form, drawn at random."""
    rng = np.random.default_rng(8)
    with run_curator(campaign) as curator:
        assert len(list(send_answers(curator, [one_person(rng) for _ in range(150)]))) == 150
        estimates = curator.estimates()
    questions = {name: question.name for question in campaign.questions for name in question.attributes}
    findings = estimates["result"]["findings"]
    assert {questions[name] for found in findings for name in found["attributes"]} == {*questions.values()}
    assert estimates["result"]["reports"] == 150
    assert all(found["withheld"] == "few reports" for found in findings)


@pytest.mark.statistical
def test_estimates_hold_the_truth(campaign: Campaign) -> None:
    """14 intervals of 99.9 % miss one of their truths with a probability below 1.4 %, by a fixed seed."""
    rng = np.random.default_rng(7)
    form = campaign.form_for(EVERYONE)
    values = [campaign.attribute_values(one_person(rng)) for _ in range(PEOPLE)]
    columns = {name: [person[name] for person in values] for name in values[0]}
    words = form.privatize(columns, rng=rng)
    assert form.accepts(words).all()
    check_truth(form.estimate(form.tallies(form.count(words))))


@pytest.mark.statistical
def test_estimates_from_a_table_hold_the_truth(campaign: Campaign, tmp_path: Path) -> None:
    """The answers are in a file as ODK writes it; the rate of false alarms is the same, by a fixed seed."""
    rng = np.random.default_rng(9)
    with (tmp_path / "answers.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, [question.name for question in campaign.questions])
        lines.writeheader()
        for person in (one_person(rng) for _ in range(PEOPLE)):
            lines.writerow({**person, "worries": " ".join(person["worries"])})
    done = privatize_table(tmp_path / "answers.csv", campaign, out=tmp_path / "reports.parquet", rng=rng)
    assert (done.reports, done.refused.total) == (PEOPLE, 0)
    parts = estimate_table(tmp_path / "reports.parquet", campaign).parts
    check_truth({part.attributes: part.everybody for part in parts})


def check_truth(estimates: Mapping[tuple[str, ...], Estimate]) -> None:
    """Compare 14 intervals of the estimates, by attributes, with the shares that people are drawn with."""
    for (attribute, level), share in TRUTH.items():
        estimate = estimates[attribute,]
        low, high = (ends / PEOPLE for ends in estimate.interval(0.999))
        at = estimate.labels.index(level)
        assert low[at] <= share <= high[at], (attribute, level)
    table = estimates["age", "home"]
    low, high = (ends / PEOPLE for ends in table.interval(0.999))
    cells = {("young", "yes"): 0.2, ("young", "no"): 0.3, ("old", "yes"): 0.1, ("old", "no"): 0.4}
    assert all(
        low[table.labels.index(cell)] <= share <= high[table.labels.index(cell)]
        for cell, share in cells.items()
    )
    sleep = estimates["sleep",].mean()
    assert sleep.interval(0.999)[0] <= 7.0 <= sleep.interval(0.999)[1]
    for group, mean in {"young": 2.0, "old": 5.0}.items():
        averages = estimates["age", "overtime"].averages
        assert averages is not None
        low, high = averages.interval(0.999)
        at = [label if isinstance(label, str) else label[0] for label in averages.labels].index(group)
        assert low[at] <= mean <= high[at]
