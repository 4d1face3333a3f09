"""The cross-table of education and income in Adult: errors of margins and of shares within a level are as promised."""

from __future__ import annotations

import math

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import DataNotFound
from priorveil.studies import datasets

pytestmark = pytest.mark.statistical

PEOPLE, ROUNDS = 48_842, 150


@pytest.fixture(scope="module")
def plan() -> pv.Plan:
    """A plan for both margins and the whole table, with the shares of the data as the prior."""
    try:
        table = datasets.adult_table()
    except DataNotFound:
        pytest.skip("Adult is not on this machine")
    prior = pv.Prior.from_table(table, ["education", "income"], public=True)
    query = pv.Linear.margins(prior, ["education", "income", ("education", "income")], unbiased=True)
    return pv.design(prior, 1.0, query, gap=0.05)


@pytest.fixture(scope="module")
def estimates(plan: pv.Plan) -> list[pv.Estimate]:
    """Estimates from people who are drawn from the prior again and again."""
    rng = np.random.default_rng(15)
    drawn = rng.multinomial(PEOPLE, plan.reference.probabilities, ROUNDS)
    people = (np.repeat(np.arange(len(plan.labels)), counts) for counts in drawn)
    return [plan.estimate(plan.tally(plan.privatize(values, rng, codes=True))) for values in people]


def test_every_statistic_has_its_promised_error(plan: pv.Plan, estimates: list[pv.Estimate]) -> None:
    """The mean square error over its promise is a chi-square over 150: one of 50 fails in one of 500 seeds."""
    assert plan.certificate.lip <= 1.0 and len(plan.labels) == 32
    truth = plan.query.rows(plan.reference) @ plan.reference.probabilities
    errors = np.array([estimate.proportions for estimate in estimates]) - truth
    ratio = (errors**2).mean(axis=0) / plan.std_error(PEOPLE) ** 2
    assert len(ratio) == 16 + 2 + 32
    assert ratio.min() > 0.6 and ratio.max() < 1.6
    assert abs(ratio.mean() - 1) < 0.15


def test_margins_are_those_of_the_query(plan: pv.Plan, estimates: list[pv.Estimate]) -> None:
    found = estimates[0]
    for name, first, last in (("education", 0, 16), ("income", 16, 18)):
        margin = found.margin(name)
        assert [f"{name}={level}" for level in margin.labels] == list(found.labels[first:last])
        assert margin.values == pytest.approx(found.values[first:last])
        assert margin.std_error == pytest.approx(found.std_error[first:last])


def test_shares_within_a_level_are_covered(plan: pv.Plan, estimates: list[pv.Estimate]) -> None:
    """P(income | education): of 1,200 intervals at 95 %, the share that holds the truth is within four deviations."""
    P = dict(zip(plan.labels, plan.reference.probabilities, strict=True))
    covered = []
    for level in plan.reference.levels["education"]:
        rich, all_incomes = [(level, ">50K")], [(level, "<=50K"), (level, ">50K")]
        truth = P[level, ">50K"] / sum(P[cell] for cell in all_incomes)
        for estimate in estimates[::2]:
            low, high = estimate.ratio(rich, all_incomes).interval(0.95)
            covered.append(low <= truth <= high)
    assert math.isclose(np.mean(covered), 0.95, abs_tol=0.025)
    common = [("Bachelors", ">50K")], [("Bachelors", "<=50K"), ("Bachelors", ">50K")]
    ratios = [estimate.ratio(*common) for estimate in estimates]
    spread, promised = np.std([r.value for r in ratios]), np.mean([r.std_error for r in ratios])
    assert 0.75 < spread / promised < 1.25
