"""Bounds from second moments: no channel beats them, whatever the search returned, and they are close."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from priorveil.designs import relaxation
from priorveil.designs.box_pricing import Box
from priorveil.designs.distribution import best_weights
from priorveil.designs.engine import best_mixture
from priorveil.designs.relaxation import SecondMoments, leaning_bound, unbiased_bound
from priorveil.queries import Triangle, lift_variance

seeds = st.integers(0, 10**6)


def case(seed: int) -> tuple[Box, np.ndarray, np.random.Generator]:
    """A box of a few values with any kind of prior and budget, and a matrix of any rank."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 8))
    P = rng.dirichlet(np.full(d, rng.choice([0.5, 1.0, 4.0]))) * 0.99 + 0.01 / d
    lower, upper = rng.choice([0.1, 0.5, 1.0, 2.0, 4.0], 2)
    W = rng.normal(size=(int(rng.integers(1, d + 2)), d)) + rng.choice([0.0, 100.0])
    W = W if rng.random() < 0.5 else (rng.random(W.shape) < 0.5).astype(float)
    return Box(P / P.sum(), math.exp(-lower), math.exp(upper) if rng.random() < 0.9 else math.inf), W, rng


def least_error(box: Box, W: np.ndarray, vertices: np.ndarray) -> float:
    """The least mean square error of all channels, by one linear programme."""
    prior, query = pv.Prior(box.prior), pv.Linear(W)
    return query.ceiling(prior) - best_mixture(vertices, lambda columns: query.utility(columns, prior)).value


@given(seeds)
@settings(max_examples=100, deadline=None)
def test_no_channel_beats_them(seed: int) -> None:
    box, W, rng = case(seed)
    vertices = box.vertices()
    least = least_error(box, W, vertices)
    bound = leaning_bound(box, W)
    assert bound <= least + 1e-12 * (W**2).max()
    variance = unbiased_bound(box, W)
    weights = best_weights(box.prior, vertices)
    for share in (0.0, 0.5, 0.9):  # the best channel for the distribution, mixed with others
        Q = rng.dirichlet(np.full(2 * len(box.prior), 0.3), size=len(box.prior))
        law = box.prior @ Q
        lifts = Q[:, law > 0].T / law[law > 0, None] - 1
        fits = min(1.0, (box.hi - 1) / lifts.max(), (1 - box.lo) / -lifts.min())
        columns = np.vstack([weights.columns, 1 + fits * lifts])
        mixed = np.concatenate([(1 - share) * weights.weights, share * law[law > 0]])
        assert variance <= lift_variance(columns, mixed, W) * (1 + 1e-9)


@given(seeds, st.floats(1e-12, 1e3), st.booleans())
@settings(max_examples=100, deadline=None)
def test_wrong_duals_prove_weaker_bounds(seed: int, size: float, scale: bool) -> None:
    box, W, rng = case(seed)
    vertices, search = box.vertices(), SecondMoments.duals
    with pytest.MonkeyPatch.context() as patch:

        def corrupt(self: SecondMoments, *arguments: object) -> object:
            for dual in search(self, *arguments):  # type: ignore[arg-type]
                noise = size * rng.normal(size=dual.shape)
                yield dual * noise if scale else dual + noise

        patch.setattr(SecondMoments, "duals", corrupt)
        patch.setattr(relaxation, "_ROUNDS", 40)
        assert leaning_bound(box, W) <= least_error(box, W, vertices) + 1e-12 * (W**2).max()
        best = best_weights(box.prior, vertices)
        assert unbiased_bound(box, W) <= lift_variance(best.columns, best.weights, W) * (1 + 1e-9)


def test_a_dual_that_is_no_number_proves_nothing() -> None:
    moments, nothing = SecondMoments(Box(np.full(3, 1 / 3), 0.5, 2.0)), np.full((3, 3), np.nan)
    assert moments.largest(np.eye(3), nothing) == math.inf
    assert moments.least_variance(np.eye(3) - 1 / 3, nothing, np.eye(3)) == 0.0


@given(seeds)
@settings(max_examples=100, deadline=None)
def test_the_largest_eigenvalue_is_never_too_small(seed: int) -> None:
    vector = np.random.default_rng(seed).integers(-1000, 1001, size=9).astype(float)
    found = relaxation._largest_eigenvalue(np.outer(vector, vector) - np.eye(9))
    exact = float(vector @ vector) - 1  # in integers
    assert exact <= found <= exact + 1e-12 * (exact + 1)


@pytest.mark.parametrize("seed", range(20))
def test_they_are_close(seed: int) -> None:
    """The variance of the whole distribution within a fifth, the gain of a histogram as well."""
    P = np.random.default_rng(seed).dirichlet(np.ones(8)) * 0.99 + 0.01 / 8
    box, rows = Box(P, math.exp(-1), math.e), np.eye(8)
    assert unbiased_bound(box, rows) >= 0.8 * best_weights(P, box.vertices()).value
    ceiling = float(P @ (1 - P))
    assert ceiling - leaning_bound(box, rows) <= (ceiling - least_error(box, rows, box.vertices())) / 0.8


def test_constant_rows_need_no_report() -> None:
    box = Box(np.full(4, 0.25), 0.5, 2.0)
    assert leaning_bound(box, np.ones((2, 4))) <= 0 == unbiased_bound(box, np.ones((2, 4)))


@pytest.mark.parametrize(("epsilon", "reached"), [(1.0, 58.3), (2.0, 12.3)])
def test_cumulative_shares_of_32_values(epsilon: float, reached: float) -> None:
    box = Box(np.full(32, 1 / 32), math.exp(-epsilon), math.exp(epsilon))
    assert 0.999 * reached <= unbiased_bound(box, Triangle().array(32)) <= reached * 1.001  # rounded


def test_it_ends_when_asked() -> None:
    box, rounds = Box(pv.Prior.zipf(30).probabilities, 0.5, 2.0), []

    def stop() -> bool:
        rounds.append(1)
        return len(rounds) >= 3

    assert 0 < unbiased_bound(box, np.eye(30), stop) <= unbiased_bound(box, np.eye(30))
    assert len(rounds) == 3
