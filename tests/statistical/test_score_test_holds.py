"""The prior check, measured: how often it fires when the prior is right, and when it is wrong.

Every test has a fixed seed, so it passes or fails for good.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import priorveil as pv
from priorveil.designs.cohorts import Cohorts
from priorveil.reading.estimate import Estimate
from priorveil.reading.families import reader_of
from priorveil.reading.prior_check import DOUBTFUL

pytestmark = pytest.mark.statistical


def p_values(
    plan: pv.Plan, law: npt.NDArray[np.float64], people: int, surveys: int, seed: int
) -> list[float]:
    rng, mechanism = np.random.default_rng(seed), plan.mechanism
    found = []
    for _ in range(surveys):
        counts = reader_of(mechanism).count(plan.privatize(rng.choice(len(law), people, p=law), rng))
        check = reader_of(mechanism).prior_check(counts, plan.reference.probabilities)
        assert check is not None
        found.append(check.p_value)
    return found


@pytest.mark.parametrize(("values", "people", "back"), [(20, 3_000, 0.0), (83, 20_000, 0.15)])
def test_mass_moved_to_neighbours_is_noticed_where_there_are_many_kinds_of_reports(
    values: int, people: int, back: float
) -> None:
    """30 % of the mass moves to the next value, or half of it back. At the 5 % level 90 % of 300 surveys notice it.

    The chi-square test over all kinds of reports noticed 35 and 49 % of them with such plans. With the prior right, 5 %
    fire, give or take four standard errors (5 points).
    """
    plan = pv.design(pv.Prior.zipf(values), 1.0, pv.Distribution(), method="columns", rounds=0)
    P = plan.reference.probabilities
    assert plan.channel.shape[1] > 5 * values
    moved = 0.7 * P + (0.3 - back) * np.roll(P, 1) + back * np.roll(P, -1)
    wrong = np.array(p_values(plan, moved, people, 300, 1))
    right = np.array(p_values(plan, P, people, 300, 2))
    assert np.mean(wrong < 0.05) >= 0.9
    assert np.mean(right < 0.05) < 0.1 and np.mean(right < 0.01) < 0.033


LARGE = [("arc", pv.Histogram(), 300), ("unary", pv.Histogram(), 300), ("arc", pv.Distribution(), 150)]


@pytest.mark.parametrize(("method", "query", "values"), LARGE)
def test_large_domains_are_checked_in_blocks(method: str, query: pv.Query, values: int) -> None:
    """Values in 128 blocks at most, the same change: noticed in 85 % of 60 surveys of 50,000 people or more."""
    plan = pv.design(pv.Prior.zipf(values), 1.0, query, method=method)
    P = plan.reference.probabilities
    wrong = np.array(p_values(plan, 0.7 * P + 0.3 * np.roll(P, 1), 50_000, 60, 3))
    right = np.array(p_values(plan, P, 50_000, 60, 4))
    assert np.mean(wrong < 0.05) >= 0.85
    assert np.mean(right < 0.05) < 0.163 and np.mean(right < 0.01) < 0.062


def test_groups_of_values_are_checked() -> None:
    """1,500 values in a table of groups: the same change is noticed in 85 % of 60 surveys or more."""
    plan = pv.design(pv.Prior.zipf(1_500), 1.0, pv.Histogram(), method="columns", rounds=20)
    assert plan.mechanism.kind == "grouped"
    P = plan.reference.probabilities
    wrong = np.array(p_values(plan, 0.7 * P + 0.3 * np.roll(P, 1), 50_000, 60, 3))
    right = np.array(p_values(plan, P, 50_000, 60, 4))
    assert np.mean(wrong < 0.05) >= 0.85
    assert np.mean(right < 0.05) < 0.163 and np.mean(right < 0.01) < 0.062


SMALL = [
    ("columns", pv.Histogram()),
    ("columns", pv.Distribution()),
    ("unary", pv.Histogram()),
    ("hashing", pv.Histogram()),
    ("arc", pv.Histogram()),
    ("arc", pv.Distribution()),
    ("subset", pv.Distribution()),
]


@pytest.mark.parametrize(("method", "query"), SMALL)
def test_a_noticeable_change_is_noticed(method: str, query: pv.Query) -> None:
    """The share `noticeable_change` of the people moves from one of ten values to another, 150 times.

    All pairs of values are alike, but for those of designs that tell few values apart: about 90 % are noticed, or more.
    """
    plan, values, people = pv.design(pv.Prior.uniform(10), 1.0, query, method=method), 10, 10_000
    rng, P, mechanism = np.random.default_rng(7), plan.reference.probabilities, plan.mechanism

    def noticed(share: float) -> float:
        fired = []
        for _ in range(150):
            law = P.copy()
            law[rng.choice(values, 2, replace=False)] += [share, -share]
            codes = rng.choice(values, people, p=law)
            check = reader_of(mechanism).prior_check(
                reader_of(mechanism).count(plan.privatize(codes, rng)), P
            )
            fired.append(check is not None and check.p_value < DOUBTFUL)
        return float(np.mean(fired))

    check = reader_of(mechanism).prior_check(
        reader_of(mechanism).count(plan.privatize(np.arange(people) % values, rng)), P
    )
    assert check is not None and check.noticeable_change is not None
    assert noticed(check.noticeable_change) > 0.8
    assert noticed(check.noticeable_change / 4) < 0.5


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("columns", pv.Distribution()),
        ("unary", pv.Histogram()),
        ("arc", pv.Histogram()),
        ("arc", pv.Distribution()),
        ("subset", pv.Distribution()),
    ],
)
def test_a_noticeable_move_from_the_commonest_value_to_the_next_is_noticed(
    method: str, query: pv.Query, epsilon: float
) -> None:
    """90 % of 60 surveys or more, less four standard errors (16 points).

    A share that is right on average over pairs of values was noticed in 47 to 55 % at epsilon 4.
    """
    plan = pv.design(pv.Prior.zipf(10), epsilon, query, method=method, rounds=20)
    P, rng, people = plan.reference.probabilities, np.random.default_rng(8), 5_000
    change = plan.estimate(
        plan.tally(plan.privatize(rng.choice(10, people, p=P), rng, codes=True))
    ).noticeable_change
    assert change is not None and change < P[0]
    moved = P + change * (np.arange(10) == 1) - change * (np.arange(10) == 0)
    assert np.mean(np.array(p_values(plan, moved, people, 60, 9)) < DOUBTFUL) > 0.74


@pytest.mark.parametrize("P", [[0.5, 0.5], [0.9, 0.1]])
@pytest.mark.parametrize("method", ["columns", "unary"])
def test_a_noticeable_change_of_two_values_is_noticed_in_nine_of_ten_surveys(
    P: list[float], method: str
) -> None:
    """There is one pair of values, so the power is 90 %, give or take four standard errors (5 points)."""
    plan, people, rng = pv.design(P, 1.0, pv.Histogram(), method=method), 20_000, np.random.default_rng(4)
    change = plan.estimate(plan.tally(plan.privatize(rng.choice(2, people, p=P), rng))).noticeable_change
    assert change is not None
    moved = np.array(P) + np.array([-change, change])
    found = np.array(p_values(plan, moved, people, 600, 5))
    assert 0.85 < np.mean(found < DOUBTFUL) < 0.95


def test_cohorts_notice_moved_mass() -> None:
    """The check of people with a prior each is a bound: it fires less often than it may, and still has power."""
    rng, people, surveys = np.random.default_rng(9), 3_000, 100
    rows = np.arange(people) % 2
    zipf = pv.Prior.zipf(20).probabilities
    crowd = Cohorts([zipf, np.roll(zipf, 3)], 1.0, pv.Histogram())

    def estimates(move: npt.NDArray[np.float64] | float) -> list[Estimate]:
        laws = [P + move * (np.roll(P, 1) - P) for P in crowd.priors]
        codes = [
            np.where(rows == 0, *(rng.choice(20, people, p=law) for law in laws)) for _ in range(surveys)
        ]
        return [crowd.estimate(crowd.privatize(each, rng, rows), rows) for each in codes]

    assert np.mean([e.prior_check < 0.05 for e in estimates(0.0)]) < 0.138
    assert np.mean([e.prior_check < 0.05 for e in estimates(0.3)]) >= 0.9
