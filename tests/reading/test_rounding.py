"""What rounding to a grid adds to the errors of sums: never more than stated, and the same in every place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.certify import round_rows
from priorveil.mechanisms import Table
from priorveil.priors.number_domains import Grid
from priorveil.reading.families import reader_of
from priorveil.reading.rounding import expected_rounding, most_by_correlation, rounding_variances
from priorveil.reading.tally import Tally
from priorveil.reading.tally_reading import Reading
from strategies import generators

POINTS = [0.0, 50.0, 100.0]
MIDDLE = pv.Prior.grid(POINTS, [0.25, 0.5, 0.25])  # of people at 25 or 75


def error_and_bound(points, numbers, share, Q) -> tuple[float, float]:
    """The squared error of a posterior mean for the number itself, and the variance that a mean has for it."""
    grid = Grid(points)
    rounded = np.stack([grid.masses(x[None], np.ones(1)) for x in numbers])
    law, table = share @ rounded, Table(round_rows(Q))
    prior, Q = pv.Prior.grid(points, law / law.sum()), table.matrix
    means = points * law @ Q / (law @ Q)
    error = (share[:, None] * (rounded @ Q) * (means - numbers[:, None]) ** 2).sum()
    counts = (1e12 * law @ Q).astype(np.int64)
    reading = Reading(
        reader_of(table), "mmse", Tally("", counts, int(counts.sum())), prior, False, None, grid.labels
    )
    bound = reading.moments(points[None], of_numbers=True).variance[0]
    return float(error), float(bound / counts.sum())


@given(generators, st.integers(2, 6), st.floats(0.05, 2.0))
def test_rounding_adds_no_more_to_posterior_means_than_its_bound(rng, size, noise) -> None:
    """For any numbers and any channel: posterior means may move with the rounding."""
    points = np.cumsum(rng.random(size) + 0.01)
    numbers = np.concatenate([points, rng.uniform(points[0], points[-1], size)])
    share = rng.dirichlet(np.full(2 * size, 0.5)) * 0.99 + 0.005 / size
    error, bound = error_and_bound(points, numbers, share, rng.dirichlet(np.full(3, noise), size) + 1e-9)
    assert error <= bound * (1 + 1e-6)


def test_posterior_means_and_rounding_may_depend_on_each_other() -> None:
    """Reports tell the halves of four points apart, and half of the people are in the middle.

    The variances of posterior (a quarter) and rounding (at most a quarter) do not simply add up.
    """
    halves = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    error, bound = error_and_bound(np.arange(4.0), np.array([0, 1.5, 3]), np.array([0.25, 0.5, 0.25]), halves)
    assert error == pytest.approx(0.625) and bound == pytest.approx(1.0)


# -- one variance in every place -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["mmse", "unbiased", "mle"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_sum_has_one_standard_error_wherever_it_is_read(method, weighted) -> None:
    plan, rng = pv.design(MIDDLE, 5.0, pv.Sum(POINTS)), np.random.default_rng(1)
    reports = plan.privatize(rng.choice([25.0, 75.0], 4_000), rng)
    weights = rng.uniform(0.5, 2.0, 4_000) if weighted else None
    estimate = plan.estimate(plan.tally(reports, weights), method)
    people = 4_000 if weights is None else weights @ weights
    error = float(estimate.std_error[0])
    assert error**2 == pytest.approx(people * 625, rel=0.05)  # half a step, squared; little noise
    ends = np.array(estimate.interval())[:, 0]
    assert estimate.covariance[0, 0] == pytest.approx(error**2)
    assert estimate.contrast([1]).std_error == pytest.approx(error)
    assert estimate.mean().std_error * estimate.people == pytest.approx(error)
    assert np.array(estimate.mean().interval()) * estimate.people == pytest.approx(ends)


def test_a_plan_expects_the_error_that_its_estimates_have() -> None:
    plan = pv.design(MIDDLE, 5.0, pv.Sum(POINTS))
    assert plan.std_error(10_000)[0] ** 2 * 10_000 == pytest.approx(plan.expected_mse)
    assert plan.precision.these_people == pytest.approx(1.96 * plan.std_error(10_000)[0], rel=1e-4)
    assert plan.expected_mse == pytest.approx(625.0)
    assert plan.lower_bound < 20 and 0 < plan.efficiency < 1
    assert pv.Plan.from_json(plan.to_json()).expected_mse == plan.expected_mse


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("method", ["columns", "arc", "unary"])
def test_expected_errors_of_sums_on_a_grid_lie_between_their_bounds(epsilon, method) -> None:
    prior = pv.Prior.grid([0, 1, 3, 10], [0.4, 0.3, 0.2, 0.1])
    plan = pv.design(prior, epsilon, pv.Sum([0, 1, 3, 10]), method=method, rounds=20)
    assert plan.lower_bound <= plan.expected_mse <= plan.no_report * (1 + 1e-12)
    assert 0 <= plan.efficiency <= 1


def test_little_information_adds_no_rounding() -> None:
    """Where reports say little, posterior means hardly follow the rounding: the coarser bound does not see that."""
    plan = pv.design(pv.Prior.grid([0, 1], [0.5, 0.5]), 1.0, pv.Sum([0, 1]))
    rows = np.array([[0.0, 1.0]])
    explained = np.array([plan.no_report - plan.expected_mse])
    assert rounding_variances(plan.reader, "mmse", plan.reference, rows) == 0
    assert most_by_correlation(plan.domain, rows, explained) > 0.09


def test_an_unbiased_query_counts_rounding_once() -> None:
    """Its error is that for a population, where rounded numbers vary as people do."""
    grid, plain = MIDDLE, pv.Prior(MIDDLE.probabilities, POINTS)
    on_grid, on_labels = (pv.design(prior, 2.0, pv.Sum(POINTS, unbiased=True)) for prior in (grid, plain))
    assert on_grid.expected_mse == on_labels.expected_mse
    assert on_grid.std_error(100) == pytest.approx(on_labels.std_error(100))
    assert expected_rounding(on_grid.reader, on_grid.query, on_grid.prior) == 0


def test_values_that_are_not_rounded_add_nothing() -> None:
    plain = pv.design(pv.Prior(MIDDLE.probabilities, POINTS), 5.0, pv.Sum(POINTS))
    counts = pv.design(MIDDLE, 5.0, pv.Histogram())
    assert plain.expected_mse < 20
    assert counts.expected_mse == pv.design(pv.Prior([0.25, 0.5, 0.25]), 5.0, pv.Histogram()).expected_mse


def test_numbers_of_several_grids_add_their_roundings() -> None:
    """A person with two numbers in the middle of their steps: the variances of both are added."""
    cells = {(a, b): 0.25 for a in (0, 2) for b in (0, 6)}
    prior = pv.Prior.joint(cells, ("a", "b"), grids=("a", "b"))
    a, b = (prior.domain.numbers(name) for name in ("a", "b"))
    plan = pv.design(prior, 12.0, pv.Sum(a + b))
    variances = rounding_variances(plan.reader, "unbiased", prior, np.stack([a, b, a + b]))
    assert variances.tolist() == [1.0, 9.0, 10.0]
    assert plan.expected_mse == pytest.approx(10.0, rel=1e-3)
    rng = np.random.default_rng(2)
    estimate = plan.estimate(plan.tally(plan.privatize([(1.0, 3.0)] * 100, rng)))
    assert estimate.std_error[0] ** 2 == pytest.approx(1000, rel=0.01)
    assert (100 * estimate.mean("a").std_error) ** 2 == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize(("most_steps", "error"), [(512, 25.0), (0, (25 * (2 * 1250**0.5 - 25)) ** 0.5)])
def test_the_average_of_a_small_group_has_the_rounding_of_its_people(
    most_steps: int, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a step, or by Cauchy's inequality `s (2 sd(m) - s)` with 1250 the variance of the points of the group.

    With the posterior variance of all people multiplied by the group's share, it was a third of this.
    """
    monkeypatch.setattr("priorveil.reading.rounding._MOST_STEPS", most_steps)
    shares = dict(zip(POINTS, MIDDLE.probabilities.tolist(), strict=True))
    cells = {
        (group, x): size * share
        for group, size in (("few", 0.05), ("most", 0.95))
        for x, share in shares.items()
    }
    plan = pv.design(pv.Prior.joint(cells, ("g", "n"), grids="n"), 8.0, pv.Histogram())
    rng, inside, errors = np.random.default_rng(1), [], []
    for _ in range(40):
        numbers, few = rng.choice([25.0, 75.0], 2_000), rng.random(2_000) < 0.05
        people = list(zip(np.where(few, "few", "most").tolist(), numbers.tolist(), strict=True))
        averages = plan.estimate(plan.tally(plan.privatize(people, rng)), "mmse").mean("n", by="g")
        average = averages.statistics[averages.labels.index("few")]
        low, high = average.interval()
        inside.append(low <= numbers[few].mean() <= high)
        errors.append(average.std_error * few.sum() ** 0.5)
    assert np.mean(inside) >= 0.85
    assert np.mean(errors) == pytest.approx(error, rel=0.1)


def test_a_set_of_priors_expects_the_rounding_at_worst() -> None:
    other = pv.Prior.grid(POINTS, [0.3, 0.4, 0.3])
    finite = pv.design(pv.PriorSet([MIDDLE, other]), 4.0, pv.Sum(POINTS), rounds=10)
    ball = pv.design(pv.PriorSet.ball(MIDDLE, 0.05), 4.0, pv.Sum(POINTS), rounds=10)
    for plan in (finite, ball):
        assert 600 < plan.expected_mse <= plan.no_report and 0 <= plan.efficiency <= 1
        assert plan.lower_bound < plan.expected_mse
        assert pv.Plan.from_json(plan.to_json()).expected_mse == plan.expected_mse


def test_cohorts_and_their_plans_have_the_same_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    priors, rng = np.array([[0.25, 0.5, 0.25], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]), np.random.default_rng(3)
    crowd = pv.Cohorts(priors, [4.0, 0.5, 2.5], pv.Sum(POINTS), labels=MIDDLE.domain)
    plans = [crowd.plan(row) for row in range(3)]
    assert crowd.expected_mse == pytest.approx([plan.expected_mse for plan in plans], rel=1e-6)
    assert crowd.expected_mse[0] == pytest.approx(625.0, rel=1e-3)
    rows = rng.integers(3, size=900)
    reports = crowd.privatize(rng.choice([25.0, 75.0], 900), rng, rows=rows)
    together, by_row = (crowd.estimate(reports, rows=rows, method=method) for method in ("auto", "mmse"))
    assert together.std_error == pytest.approx(by_row.std_error, rel=1e-6)
    monkeypatch.setattr("priorveil.designs.cohorts._MOST_STEPS", 0)  # as for many rows
    coarse = pv.Cohorts(priors, [4.0, 0.5, 2.5], pv.Sum(POINTS), labels=MIDDLE.domain)
    assert (coarse.expected_mse >= crowd.expected_mse * (1 - 1e-9)).all()
    assert (coarse.expected_mse <= coarse.no_report * (1 + 1e-9)).all()
