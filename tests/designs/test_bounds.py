"""Bounds from second moments: no channel beats them, whatever the search returned, and they are close."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from priorveil.designs import bounds
from priorveil.designs.bounds import (
    diagonal_bound,
    identity_bound,
    largest_gain,
    ldp_bound,
    leaning_bound,
    simple_gain,
    unbiased_bound,
)
from priorveil.designs.column_generation import best_mixture
from priorveil.designs.moment_relaxation import SecondMoments, eigenvalue_bound
from priorveil.designs.spaces import Box, LdpCone
from priorveil.designs.stopping import UNLIMITED, Limits
from priorveil.designs.value_groups import similar_groups
from priorveil.designs.weights import best_weights
from priorveil.errors import NotIdentifiable

seeds = st.integers(0, 10**6)
BITS = (np.arange(32)[:, None] >> np.arange(5)) & 1
TWO_WAY = np.concatenate(
    [np.eye(4)[:, 2 * BITS[:, i] + BITS[:, j]] for i, j in itertools.combinations(range(5), 2)]
)


def case(seed: int) -> tuple[Box, np.ndarray, np.random.Generator]:
    """A box of a few values with any kind of prior and budget, and a matrix of any rank."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 8))
    P = rng.dirichlet(np.full(d, rng.choice([0.5, 1.0, 4.0]))) * 0.99 + 0.01 / d
    lower, upper = rng.choice([0.1, 0.5, 1.0, 2.0, 4.0], 2)
    W = rng.normal(size=(int(rng.integers(1, d + 2)), d)) + rng.choice([0.0, 100.0])
    W = W if rng.random() < 0.5 else (rng.random(W.shape) < 0.5).astype(float)
    return Box(P / P.sum(), math.exp(-lower), math.exp(upper) if rng.random() < 0.9 else math.inf), W, rng


def least_error(box: Box | LdpCone, W: np.ndarray, vertices: np.ndarray) -> float:
    """The least mean square error of all channels, by one linear programme."""
    prior, query = pv.Prior(box.prior), pv.Linear(W)
    return query.ceiling(prior) - best_mixture(vertices, lambda columns: query.utility(columns, prior)).value


def least_variance(box: Box, W: np.ndarray, columns: np.ndarray) -> float:
    """The least variance of all mixtures of the columns; infinite if they do not determine the statistics."""
    try:
        return best_weights(box.prior, columns, rows=W).value if np.ptp(W, axis=1).any() else 0.0
    except NotIdentifiable:
        return math.inf


@given(seeds)
@settings(max_examples=80, deadline=None)
def test_no_channel_beats_them(seed: int) -> None:
    box, W, _ = case(seed)
    vertices, moments = box.vertices(), SecondMoments.of_box(box)
    assert leaning_bound(moments, W) <= least_error(box, W, vertices) + 1e-12 * (W**2).max()
    assert unbiased_bound(moments, W) <= least_variance(box, W, vertices) * (1 + 1e-9)


@given(seeds, st.integers(2, 4), st.booleans())
@settings(max_examples=80, deadline=None)
def test_no_channel_beats_the_bounds_for_many_values(seed: int, count: int, ldp: bool) -> None:
    """Those of single statistics, and of blocks of values; here few values count as many."""
    box, W, _ = case(seed)
    box = LdpCone(box.prior, 1 / box.lo) if ldp else box
    centred = W - (W @ box.prior)[:, None]
    gain = float((centred**2).sum(axis=0) @ box.prior) - least_error(box, W, box.vertices())
    room = 1e-12 * (W**2).max()
    assert gain <= simple_gain(box, centred) + room
    groups = similar_groups(box.prior, centred, count)
    assert groups.max() < count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MANY_VALUES", int(groups.max()) + 1)
        assert gain <= largest_gain(box, centred, [groups], UNLIMITED) + room


@given(seeds, st.sampled_from([0.1, 0.5, 1.0, 2.0, 4.0]))
@settings(max_examples=50, deadline=None)
def test_no_channel_of_ldp_beats_them(seed: int, epsilon: float) -> None:
    box, W, rng = case(seed)
    rays = LdpCone(box.prior, math.exp(epsilon)).vertices()
    weights = box.prior if rng.random() < 0.5 else rng.dirichlet(np.full(len(box.prior), 0.5)) + 1e-3
    moments = SecondMoments.of_ldp(box.prior, math.exp(epsilon), weights)
    assert leaning_bound(moments, W) <= least_error(box, W, rays) + 1e-12 * (W**2).max()
    least = least_variance(box, W, rays) * (1 + 1e-9)
    assert unbiased_bound(moments, W) <= least
    assert ldp_bound(box.prior, math.exp(epsilon), W, unbiased=True) <= least


@given(seeds)
@settings(max_examples=100, deadline=None)
def test_the_moments_of_channels_are_in_the_set(seed: int) -> None:
    """Each inequality, for single columns mixed at random: it is what the bounds rest on."""
    box, _, rng = case(seed)
    factor = math.exp(float(rng.choice([0.1, 1.0, 3.0])))
    rays = LdpCone(box.prior, factor).vertices()
    weights = rng.dirichlet(np.ones(len(box.prior)))
    for moments, columns in (
        (SecondMoments.of_box(box), box.vertices()),
        (SecondMoments.of_ldp(box.prior, factor, weights), rays),
    ):
        mixture = best_mixture(columns, lambda r: r @ rng.normal(size=r.shape[1]) + rng.random(len(r)))
        scaled = (mixture.columns - 1) / moments.unit
        Y = scaled.T @ (scaled * mixture.weights[:, None])
        assert (moments.low - 1e-9 <= Y).all() and (moments.high + 1e-9 >= Y).all()
        assert (moments.cut * Y).sum() <= moments.total + 1e-9
        assert Y @ moments.null == pytest.approx(0, abs=1e-8)


@given(seeds, st.floats(1e-12, 1e3), st.booleans())
@settings(max_examples=100, deadline=None)
def test_wrong_duals_prove_weaker_bounds(seed: int, size: float, scale: bool) -> None:
    box, W, rng = case(seed)
    vertices, search, moments = box.vertices(), SecondMoments.duals, SecondMoments.of_box(box)

    def corrupt(self: SecondMoments, *arguments: Any) -> Iterator[tuple[np.ndarray, float]]:
        for dual, price in search(self, *arguments):
            noise = size * rng.normal(size=dual.shape)
            yield (dual * noise if scale else dual + noise), price + size * rng.normal()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecondMoments, "duals", corrupt)
        patch.setattr("priorveil.designs.moment_relaxation.MOST_ROUNDS", 40)
        assert leaning_bound(moments, W) <= least_error(box, W, vertices) + 1e-12 * (W**2).max()
        assert unbiased_bound(moments, W) <= least_variance(box, W, vertices) * (1 + 1e-9)


def test_a_dual_that_is_no_number_proves_nothing() -> None:
    moments, nothing = SecondMoments.of_box(Box(np.full(3, 1 / 3), 0.5, 2.0)), np.full((3, 3), np.nan)
    assert moments.largest(np.eye(3), nothing, 0.0) == math.inf
    assert moments.largest(np.eye(3), np.eye(3), -1.0) == math.inf
    assert moments.least_variance(np.eye(3) - 1 / 3, nothing, np.eye(3), 0.0) == 0.0


@given(seeds)
@settings(max_examples=100, deadline=None)
def test_the_largest_eigenvalue_is_never_too_small(seed: int) -> None:
    vector = np.random.default_rng(seed).integers(-1000, 1001, size=9).astype(float)
    found = eigenvalue_bound(np.outer(vector, vector) - np.eye(9))
    exact = float(vector @ vector) - 1  # in integers
    assert exact <= found <= exact + 1e-12 * (exact + 1)


@pytest.mark.parametrize("seed", range(20))
def test_they_are_close(seed: int) -> None:
    """The variance of the whole distribution within a fifth, the gain of a histogram as well."""
    P = np.random.default_rng(seed).dirichlet(np.ones(8)) * 0.99 + 0.01 / 8
    box, rows = Box(P, math.exp(-1), math.e), np.eye(8)
    moments, ceiling = SecondMoments.of_box(box), float(P @ (1 - P))
    assert unbiased_bound(moments, rows) >= 0.8 * best_weights(P, box.vertices()).value
    assert ceiling - leaning_bound(moments, rows) <= (ceiling - least_error(box, rows, box.vertices())) / 0.8


def test_constant_rows_need_no_report() -> None:
    moments = SecondMoments.of_box(Box(np.full(4, 0.25), 0.5, 2.0))
    assert leaning_bound(moments, np.ones((2, 4))) <= 0 == unbiased_bound(moments, np.ones((2, 4)))


@pytest.mark.parametrize(("epsilon", "reached"), [(1.0, 58.3), (2.0, 12.3)])
def test_cumulative_shares_of_32_values(epsilon: float, reached: float) -> None:
    box = Box(np.full(32, 1 / 32), math.exp(-epsilon), math.exp(epsilon))
    bound = unbiased_bound(SecondMoments.of_box(box), np.tri(32))
    assert 0.999 * reached <= bound <= reached * 1.001  # it is rounded


@pytest.mark.parametrize(
    ("matrix", "epsilon", "reached", "share"),
    [
        (np.eye(32), 1.0, identity_bound(np.full(32, 1 / 32), 1.0) - 31 / 32, 0.99),  # the optimum
        (np.tri(32), 1.0, 218.5, 0.99),
        (np.tri(32), 2.0, 40.9, 0.94),
        (TWO_WAY, 1.0, 401.5, 0.9),
    ],
)
def test_ldp_on_32_values(matrix: np.ndarray, epsilon: float, reached: float, share: float) -> None:
    """Against the least variances known for a fixed population, to which the variance of the people is added."""
    P = np.full(32, 1 / 32)
    reached += float(((matrix - (matrix @ P)[:, None]) ** 2).sum(axis=0) @ P)
    assert share * reached <= ldp_bound(P, math.exp(epsilon), matrix, unbiased=True) <= reached


def test_it_ends_when_asked() -> None:
    moments, rounds = SecondMoments.of_box(Box(pv.Prior.zipf(30).probabilities, 0.5, 2.0)), []

    def stop() -> bool:
        rounds.append(1)
        return len(rounds) >= 3

    limits = Limits(should_stop=stop)

    assert 0 < unbiased_bound(moments, np.eye(30), limits) <= unbiased_bound(moments, np.eye(30))
    assert len(rounds) == 3
    P, largest = moments.prior, moments.unit**2
    assert 0 < diagonal_bound(P, largest, np.eye(30), limits) <= diagonal_bound(P, largest, np.eye(30))
    assert len(rounds) == 4


def test_diagonal_duals_are_nearly_as_good_for_many_values() -> None:
    P, W = pv.Prior.zipf(60).probabilities, np.tri(60)
    moments = SecondMoments.of_box(Box(P, math.exp(-1), math.e))
    full = unbiased_bound(moments, W)
    assert diagonal_bound(P, moments.unit**2, W) == pytest.approx(full, rel=1e-3)


@given(seeds, st.sampled_from([0.1, 1.0, 3.0]))
@settings(max_examples=60, deadline=None)
def test_no_channel_beats_a_diagonal_bound(seed: int, epsilon: float) -> None:
    box, W, _ = case(seed)
    P, (above, below) = box.prior, box.sides()
    assert diagonal_bound(P, above * below, W) <= least_variance(box, W, box.vertices()) * (1 + 1e-9)
    factor = math.exp(epsilon)
    least = least_variance(box, W, LdpCone(P, factor).vertices()) * (1 + 1e-9)
    largest = np.full(len(P), (factor - 1) ** 2 / (4 * factor))
    assert diagonal_bound(P, largest, W, fixed=True) <= least


@pytest.mark.parametrize("noise", [1e-12, 1e-3, 10.0])
def test_a_diagonal_bound_needs_no_trust_in_the_eigenvectors(
    noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    P, W, rng, search = pv.Prior.zipf(12).probabilities, np.tri(12), np.random.default_rng(0), np.linalg.eigh
    box = Box(P, math.exp(-1), math.e)
    above, below = box.sides()
    right, least = diagonal_bound(P, above * below, W), least_variance(box, W, box.vertices())

    def corrupt(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = search(matrix)
        return values * np.exp(noise * rng.normal(size=len(values))), vectors + noise * rng.normal(
            size=vectors.shape
        )

    monkeypatch.setattr(np.linalg, "eigh", corrupt)
    wrong = diagonal_bound(P, above * below, W)
    assert wrong <= least
    assert wrong == pytest.approx(right, rel=1e-6) if noise < 1e-9 else wrong < right
