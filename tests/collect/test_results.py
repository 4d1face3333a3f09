"""Results of a campaign: tables with shares within groups, and shares of the people who were asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from priorveil import Distribution, Plan, Prior, design
from priorveil.collect.campaign import Campaign
from priorveil.collect.questions import NOT_ASKED, Question
from priorveil.collect.results import AMONG_ASKED, Result, results
from priorveil.plans.form import Form, Part, Slot
from priorveil.reading.wording import StatisticTable

LEVELS = {
    "age": ("young", "middle", "old", "oldest"),
    "town": ("A", "B"),
    "smokes": ("never", "often", "daily"),
}


def choice(name: str, **details: Any) -> Question:
    return Question(name, f"{name}?", options={level: level for level in LEVELS[name]}, **details)


def table(names: tuple[str, ...], shares: Mapping[str, tuple[float, ...]]) -> Prior:
    """A joint prior of independent attributes."""
    cells = product(*(zip(LEVELS[name], shares[name], strict=True) for name in names))
    return Prior.joint({tuple(a for a, _ in cell): np.prod([p for _, p in cell]) for cell in cells}, names)


SHARES = {"age": (0.4, 0.35, 0.2, 0.05), "town": (0.6, 0.4), "smokes": (0.6, 0.3, 0.1)}


def found(
    campaign: Campaign, priors: Mapping[str, Prior], people: int, method: Any = "auto", seed: int = 1
) -> list[Result]:
    """The results of people whose answers are as common as these priors say, by cohort."""
    rng, tallies = np.random.default_rng(seed), {}
    for cohort, form in campaign.cohorts.items():
        prior = priors[cohort]
        rows = [prior.labels[code] for code in rng.choice(len(prior), people, p=prior.probabilities)]
        columns = dict(zip(form.attributes, map(list, zip(*rows, strict=True)), strict=True))
        tallies[form.id] = form.tallies(form.count(form.privatize(columns, rng=rng)))
    return list(results(campaign, tallies, method))


@cache
def plan_of(prior: Prior) -> Plan:
    return design(prior, 2.0, Distribution())


def campaign_of(names: tuple[str, ...], priors: Mapping[str, Prior], least: int) -> Campaign:
    forms = {cohort: Form.of(names, plan_of(prior)) for cohort, prior in priors.items()}
    return Campaign("Habits", [choice(name) for name in names], forms, smallest_count=least)


def test_shares_within_groups_are_those_of_the_last_question_however_small_a_group() -> None:
    names = ("age", "smokes")
    priors = {"everyone": table(names, SHARES)}
    whole, *margins = found(campaign_of(names, priors, 1990), priors, 2000)
    assert whole.total is not None and len(whole.total.rows(0.95)) == 12
    assert [len(margin.total.rows(0.95)) for margin in margins if margin.total] == [4, 3]
    (shares,) = whole.total.tables(0.95)
    assert shares.heads == names and {row.label[0] for row in shares.rows} == set(LEVELS["age"])
    cells = dict(whole.total.rows(0.95))
    for row in shares.rows:
        group = [cells[row.label[0], level].value for level in LEVELS["smokes"]]
        assert row.value == pytest.approx(cells[row.label].value / sum(group))


GATE = Question("smokes", "Do you smoke?", options={"never": "Never", "daily": "Daily"})


def asked_tables(result: Result, cohort: str = "") -> list[StatisticTable]:
    """The shares among the people who were asked."""
    return [table for table in dict(result.shown())[cohort].tables(0.95) if table.quantity == AMONG_ASKED]


def test_the_shares_of_those_who_were_asked_a_follow_up_are_shown() -> None:
    """By cohort and in total, alone and in a table with its gate; they are Fieller's ratios, and near the truth."""
    shares = {"north": (0.6, 0.1, 0.3), "south": (0.3, 0.6, 0.1)}
    cells = {
        cohort: {("never", NOT_ASKED): no, ("daily", "A"): a, ("daily", "B"): b}
        for cohort, (no, a, b) in shares.items()
    }
    priors = {
        cohort: Prior.joint(own, names=("smokes", "town"), impossible="leave out")
        for cohort, own in cells.items()
    }
    alone = {}
    for cohort, (no, a, b) in shares.items():
        single = {
            "smokes": Prior({"never": no, "daily": a + b}),
            "town": Prior({NOT_ASKED: no, "A": a, "B": b}),
        }
        parts = [Part((name,), plan_of(prior)) for name, prior in single.items()]
        alone[cohort] = Form(tuple(Slot((part,)) for part in parts))
    together = {cohort: Form.of(("smokes", "town"), plan_of(prior)) for cohort, prior in priors.items()}
    questions = [GATE, choice("town", asked_if={"smokes": ("daily",)})]
    truth = {"north": 0.25, "south": 6 / 7, "": 0.7 / 1.1}
    for forms in (alone, together):
        campaign = Campaign("Habits", questions, forms, smallest_count=2000)
        town = found(campaign, priors, 3000)[-1]
        for cohort, share in truth.items():
            (table,) = asked_tables(town, cohort)
            assert table.heads == ("town",) and [row.label for row in table.rows] == [("A",), ("B",)]
            assert sum(row.value for row in table.rows) == pytest.approx(1.0)
            first, estimate = table.rows[0], dict(town.shown())[cohort].estimate
            ratio = estimate.ratio(["A"], ["A", "B"])
            assert (first.value, first.low, first.high) == (ratio.value, *ratio.interval(0.95))
            assert abs(first.value - share) < 4 * first.std_error
        record = dict(town.shown())[""].record(0.95)
        assert [s["name"] for s in record["statistics"]] == [f"{AMONG_ASKED}, town={t}" for t in "AB"]


def test_a_share_of_those_asked_that_reports_do_not_bound_has_no_ends() -> None:
    prior = Prior({NOT_ASKED: 0.98, "A": 0.01, "B": 0.01})
    form = Form.of(("town",), design(prior, 0.5, Distribution()))
    questions = [GATE, choice("town", asked_if={"smokes": ("daily",)})]
    campaign = Campaign("Habits", questions, {"everyone": form}, smallest_count=1)
    tallies = {
        form.id: form.tallies(
            form.count(form.privatize({"town": [NOT_ASKED] * 99 + ["A"]}, rng=np.random.default_rng(3)))
        )
    }
    (town,) = results(campaign, tallies)
    (shares,) = asked_tables(town)
    assert all(row.is_unbounded and row.interval_text == "not bounded" for row in shares.rows)
