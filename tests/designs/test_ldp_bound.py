"""The lower bound on learning a distribution under LDP: no channel goes below it, and it is near the best ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

import priorveil as pv
from priorveil.designs.cone_pricing import staircase_rays
from priorveil.designs.distribution import best_weights
from priorveil.designs.engine import Limits
from priorveil.designs.ldp_bound import _Space, _Weights, ldp_variance_bound, uniform_bound
from priorveil.mechanisms.subset_estimators import SubsetLaw, ones_variance
from priorveil.queries import lift_variance

LDP = pv.LDP()


def random_prior(seed: int, d: int) -> np.ndarray:
    return (
        np.random.default_rng(seed).dirichlet(np.full(d, [0.5, 1.0, 4.0][seed % 3]) + 0.05) * 0.98 + 0.02 / d
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_equal_values_are_learnt_best_by_subsets(epsilon: float) -> None:
    e = math.exp(epsilon)
    for d in [*range(2, 30), 83, 1000]:
        laws = [SubsetLaw(d, k, e * k / (e * k + d - k)) for k in range(1, d)]
        subsets = min(ones_variance(law, np.full(d, 1 / d)) for law in laws)
        assert uniform_bound(d, epsilon) == pytest.approx(subsets, rel=1e-9)


@pytest.mark.parametrize("d", [18, 20, 83])
def test_plans_for_equal_values_prove_that_they_are_optimal(d: int) -> None:
    plan = pv.design(pv.Prior.uniform(d), 1.0, pv.Distribution(), notion=LDP)
    assert plan.lower_bound <= plan.expected_mse and plan.efficiency > 1 - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_it_is_below_the_best_channel_and_near_it(seed: int) -> None:
    """The best channel of a few values is found among all columns that LDP allows."""
    rng = np.random.default_rng(seed)
    d, epsilon = int(rng.integers(4, 9)), float(rng.choice([0.3, 1.0, 2.0]))
    P = random_prior(seed, d)
    best = best_weights(P, staircase_rays(P, epsilon), Limits(1e-6)).value
    bound = ldp_variance_bound(P, epsilon)
    assert 0.7 * best < bound <= best


@pytest.mark.parametrize("seed", range(2))
def test_no_random_channel_goes_below_it(seed: int) -> None:
    """Random columns of 14 values, with the best weights: better than what is drawn at random."""
    rng, d, epsilon = np.random.default_rng(seed), 14, 1.0
    P = random_prior(seed, d)
    bound = ldp_variance_bound(P, epsilon)
    sets = rng.random((300, d)) < rng.uniform(0.15, 0.5, (300, 1))
    columns = np.where(np.vstack([np.eye(d) > 0, sets]), math.exp(epsilon), 1.0)
    found = best_weights(P, columns, Limits(1e-4))
    assert bound <= lift_variance(found.columns, found.weights)
    assert bound > 0.8 * pv.design(pv.Prior(P), epsilon, pv.Distribution(), notion=LDP).expected_mse


def value(space: _Space, weights: _Weights, held: np.ndarray) -> float:
    """`|A z|^2 - nu . z` of the column of a set, from the definition."""
    v = np.where(held, space.e, 1.0)
    z = v / float(space.P @ v) - 1
    right = np.vstack([np.ones(len(z)), np.eye(len(z))[: space.heavy]])
    A = np.diag(weights.A[:, 0]) + weights.A[:, 1:] @ right
    return float(((A @ z) ** 2).sum() - weights.nu @ z)


def climb(space: _Space, weights: _Weights, held: np.ndarray) -> float:
    """The largest value that flips of single values reach."""
    best = value(space, weights, held)
    while True:
        flips = [held ^ (np.arange(len(held)) == x) for x in range(len(held))]
        values = [value(space, weights, flip) for flip in flips]
        if max(values) <= best:
            return best
        best, held = max(values), flips[int(np.argmax(values))]


@pytest.mark.parametrize(("d", "epsilon"), [(7, 1.0), (15, 2.0), (30, 0.5), (40, 3.0)])
def test_no_column_exceeds_the_proven_maximum(d: int, epsilon: float) -> None:
    """A local search finds none that does; it comes near, so the proof gives little away."""
    rng = np.random.default_rng(d)
    space = _Space.of(np.sort(random_prior(d, d))[::-1], math.exp(epsilon))
    for noise in (0.0, 0.3):  # any weights prove a bound, also poor ones
        A, nu = space.search(lambda: True)
        weights = _Weights(A * (1 + noise * rng.normal(size=A.shape)), nu * (1 + noise * rng.normal(size=d)))
        reached = max(climb(space, weights, rng.random(d) < share) for share in rng.uniform(0.05, 0.6, 12))
        top = float((space.numerator * weights.A).sum())
        proven = top**2 / space.proven(weights)
        assert reached <= proven < 1.1 * reached


@pytest.mark.parametrize(("d", "least"), [(20, 0.97), (83, 0.98)])
def test_the_efficiency_under_a_zipf_prior_is_proven(d: int, least: float) -> None:
    plan = pv.design(pv.Prior.zipf(d), 1.0, pv.Distribution(), notion=LDP)
    assert least < plan.efficiency < 1
    unary = pv.design(pv.Prior.zipf(d), 1.0, pv.Distribution(), notion=LDP, method="unary", time_limit=0.5)
    assert 0.1 * unary.expected_mse < unary.lower_bound < plan.expected_mse


def test_without_time_the_plan_comes_at_once() -> None:
    plan = pv.design(pv.Prior.zipf(60), 1.0, pv.Distribution(), notion=LDP, time_limit=0)
    assert plan.mechanism.kind == "subset" and 0 < plan.lower_bound < plan.expected_mse
    assert ldp_variance_bound(pv.Prior.zipf(60).probabilities, 1.0, lambda: True) == 0.0
