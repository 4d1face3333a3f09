"""Numbers with a large part in common: errors are those of the differences, since everybody's share of it is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import NotIdentifiable
from sample_plans import PAIRS, PRIOR, TRUTH, pair_plan

NUMBERS = np.array([3.0, 0.0, 1.0, 4.0, 2.0])
CASES = [pair for pair in PAIRS if pair[1] in ("Histogram", "Distribution")]
OFFSET = 2.0**33  # floats hold the sums of numbers with this offset exactly


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("method", ["mmse", "unbiased", "mle"])
@pytest.mark.parametrize(("kind", "query"), CASES)
def test_an_offset_of_all_numbers_does_not_change_the_error(kind, query, method, unbiased, weights) -> None:
    rng, people = np.random.default_rng(3), 2_000
    base = pair_plan(kind, query)
    reports = base.privatize(rng.choice(5, people, p=TRUTH), rng, codes=True)
    own = rng.uniform(0.5, 2.0, people) if weights else None
    total = own.sum() if weights else people
    rows = np.stack([NUMBERS, NUMBERS[::-1] ** 2])
    found = []
    for offset in (0.0, OFFSET):
        plan = replace(base, query=pv.Linear(rows + offset, unbiased=unbiased))
        try:
            found.append(plan.estimate(plan.tally(reports, own), method))
        except NotIdentifiable:
            pytest.skip("reports of this plan do not determine the distribution")
    plain, moved = found
    assert (plain.std_error > 0).all()
    assert moved.std_error == pytest.approx(plain.std_error, rel=1e-9)
    assert moved.covariance == pytest.approx(plain.covariance, rel=1e-9)
    ends = (plain.values, *plain.interval()), (moved.values, *moved.interval())
    assert np.array(ends[1]) - OFFSET * total == pytest.approx(np.array(ends[0]), abs=0.01)
    assert list(map(str, moved.notes)) == list(map(str, plain.notes))
    row = np.array([1.0, 2.0])
    assert moved.contrast(row).std_error == pytest.approx(plain.contrast(row).std_error, rel=1e-9)
    assert moved.mean(OFFSET + NUMBERS).std_error == pytest.approx(plain.mean(NUMBERS).std_error, rel=1e-9)


@pytest.mark.parametrize("method", ["columns", "unary", "subset", "arc"])
@pytest.mark.parametrize("unbiased", [False, True])
def test_a_plan_for_numbers_with_an_offset_promises_the_same(method, unbiased) -> None:
    if (method, unbiased) == ("subset", False):
        pytest.skip("subsets are designed for histograms and for unbiased answers")
    plain, moved = (
        pv.design(PRIOR, 1.5, pv.Sum(NUMBERS + offset, unbiased=unbiased), method=method)
        for offset in (0.0, OFFSET)
    )
    assert moved.expected_mse == pytest.approx(plain.expected_mse, rel=1e-9)
    assert moved.std_error() == pytest.approx(plain.std_error(), rel=1e-9)
    assert str(moved.precision) == str(plain.precision)
    if unbiased:
        assert 10_000 * plain.std_error()[0] ** 2 == pytest.approx(plain.expected_mse, rel=1e-3)


@pytest.mark.parametrize("kind", ["table", "subset", "orders"])
def test_the_weights_of_a_contrast_may_have_an_offset(kind) -> None:
    plan, rng = pair_plan(kind, "Distribution"), np.random.default_rng(5)
    estimate = plan.estimate(plan.tally(plan.privatize(rng.choice(5, 2_000, p=TRUTH), rng, codes=True)))
    plain, moved = (estimate.contrast(NUMBERS + offset).std_error for offset in (0.0, OFFSET))
    assert moved == pytest.approx(plain, rel=1e-9)


def test_cohorts_read_sums_with_an_offset() -> None:
    rng, priors = np.random.default_rng(6), np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
    reports, rows = None, rng.integers(0, 2, 500)
    found = []
    for offset in (0.0, OFFSET):
        cohorts = pv.Cohorts(priors, 1.0, pv.Sum(np.arange(4.0) + offset))
        if reports is None:
            reports = cohorts.privatize(rng.integers(0, 4, 500), rng, rows)
        found.append(cohorts.estimate(reports, rows))
    plain, moved = found
    assert moved.std_error == pytest.approx(plain.std_error, rel=1e-9)
    assert moved.values - 500 * OFFSET == pytest.approx(plain.values, abs=0.01)


def test_the_unit_of_numbers_does_not_change_a_plan() -> None:
    prior = pv.Prior(np.arange(1, 9) / 36)
    errors = [
        pv.design(prior, 1.0, pv.Sum(unit * np.arange(8), unbiased=True)).expected_mse / unit**2
        for unit in (1e-40, 1.0, 1e40)
    ]
    assert errors == pytest.approx([errors[1]] * 3, rel=1e-6)
