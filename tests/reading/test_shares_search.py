"""The distribution with the smallest loss, and the maximum likelihood answers that rest on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.mechanisms.bit_law import BitLaw, subset_law, unary_law
from priorveil.reading.bit_reader import BitCounts, most_likely_ones
from priorveil.reading.shares_search import expected_gain, most_likely
from priorveil.reading.tally import Tally
from strategies import generators

pytestmark = pytest.mark.filterwarnings("error")


@given(st.integers(2, 30), st.integers(1, 5_000), generators)
def test_the_search_converges_in_few_rounds(size: int, people: int, rng) -> None:
    Q = rng.dirichlet(np.ones(2 * size), size) + 0.2 / size
    Q /= Q.sum(axis=1, keepdims=True)
    law = rng.dirichlet(np.full(size, 0.3)) @ Q
    counts = rng.multinomial(people, law / law.sum()).astype(float)
    starts = rng.dirichlet(np.ones(size), 2) + 1e-3
    one, other = (most_likely(counts, Q, start / start.sum()) for start in starts)
    assert one.converged and other.converged and max(one.rounds, other.rounds) < 60
    assert one.shares @ Q == pytest.approx(other.shares @ Q, abs=1e-3)
    assert one.shares.min() >= 0 and one.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("odds", [1.5, np.e, 50.0])
def test_many_values_take_few_rounds_too(odds: float) -> None:
    """The gap proves how good the answer is; most values have no people, and their shares go to zero."""
    rng, d = np.random.default_rng(4), 800
    Q = np.where(rng.random((d, d)) < 1 / (1 + odds), odds, 1.0)
    Q /= Q.sum(axis=1, keepdims=True)
    truth = np.where(np.arange(d) < 20, 1 / 20, 0.0)
    law = truth @ Q
    found = most_likely(rng.multinomial(50_000, law / law.sum()).astype(float), Q, np.full(d, 1 / d))
    assert found.converged and found.rounds < 40
    assert found.shares.min() >= 0 and found.shares.sum() == pytest.approx(1)
    assert odds < 50 or found.shares[:20].sum() > 0.8


@pytest.mark.parametrize("law", [unary_law(3.0, 0.3), unary_law(8.0, 0.1), subset_law(3.0, 12, 4)])
@given(generators)
def test_ones_are_fitted_as_by_the_general_search(law: BitLaw, rng) -> None:
    """Every bit is a report of its own, with the cells "bit k is set" and then "bit k is clear"."""
    d, N = 12, 300
    ones = rng.binomial(N, law.q + law.contrast * rng.dirichlet(np.full(d, 0.3))).astype(float)
    chances = np.full((d, d), law.q) + law.contrast * np.eye(d)
    counts, Q = np.concatenate([ones, N - ones]), np.hstack([chances, 1 - chances]) / d
    found = most_likely_ones(law, BitCounts(N, ones, 0.0, ones))
    assert found.converged and abs(found.gap) < 1e-12
    assert found.shares == pytest.approx(most_likely(counts, Q, np.full(d, 1 / d)).shares, abs=2e-3)


@pytest.mark.parametrize("method", ["unary", "arc"])
def test_intervals_cover_values_that_nobody_has(method) -> None:
    """For each of thirty values, at least 94 % less four standard errors of 350 collections; and most are shorter."""
    rng, d, N, times = np.random.default_rng(5), 30, 400, 350
    plan = pv.design(pv.Prior.zipf(d), 1.0, pv.Distribution(), method=method)
    truth = np.where(np.arange(d) % 3, plan.reference.probabilities, 0.0)
    truth /= truth.sum()
    reports = plan.privatize(rng.choice(d, times * N, p=truth), rng)
    covered, shorter, errors = np.zeros(d), [], np.zeros(2)
    for part in np.split(reports, times):
        tally = plan.tally(part)
        likely, unbiased = plan.estimate(tally, "mle"), plan.estimate(tally, "unbiased")
        low, high = likely.interval(0.95)
        assert (low >= 0).all() and (high <= N).all()
        assert (low <= likely.values).all() and (likely.values <= high).all()
        covered += (low <= N * truth) & (N * truth <= high)
        shorter.append(np.mean(high - low < np.ptp(unbiased.interval(0.95), axis=0)))
        errors += [((e.proportions - truth) ** 2).sum() for e in (likely, unbiased)]
    assert (covered / times > 0.94 - 4 * np.sqrt(0.95 * 0.05 / times)).all()
    assert np.mean(shorter) > 0.8 and errors[1] > 2 * errors[0]


def test_a_value_without_a_standard_error_hardly_changes_the_gain() -> None:
    """Few reports may leave a variance of zero."""
    shares, errors = np.array([0.3, 0.3, 0.2, 0.2, 0.0]), np.array([0.0, 0.1, 0.1, 0.1, 0.1])
    nearly = np.where(errors > 0, errors, 1e-4)
    assert expected_gain(shares, errors) == pytest.approx(expected_gain(shares, nearly), rel=1e-3)
    assert expected_gain(shares, errors) > 1.1


@pytest.mark.parametrize(("people", "least", "most"), [(300, 2.0, 8.0), (2_000_000, 0.99, 1.2)])
def test_the_gain_over_unbiased_is_foretold(people: int, least: float, most: float) -> None:
    """Within 30 % of what 30 collections measure; and the estimate says when mle is the better one."""
    rng, d = np.random.default_rng(2), 40
    plan = pv.design(pv.Prior.zipf(d), 1.0, pv.Distribution(), method="unary")
    law, errors = plan.reference.probabilities, np.zeros(2)
    chances = plan.mechanism.law.q + plan.mechanism.law.contrast * law
    for _ in range(30):
        counts = plan.reader.expected_counts(law, people)
        counts[2 : 2 + d] = rng.binomial(people, chances)
        tally = Tally(plan.id, counts.astype(np.int64), people)
        found = [plan.estimate(tally, method) for method in ("unbiased", "mle")]
        errors += [((e.proportions - law) ** 2).sum() for e in found]
    measured, foretold = errors[0] / errors[1], found[0].mle_gain
    assert foretold is not None and least < foretold < most
    assert foretold == pytest.approx(measured, rel=0.3)
    assert any(note.code == "gainOfMle" for note in found[0].notes) == (foretold > 1.2)
    assert found[1].mle_gain == pytest.approx(foretold, rel=0.1)
