"""The engine: compared with full enumeration, bounds that no channel beats, limits and progress."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from priorveil.designs import column_generation, gains
from priorveil.designs.knapsack import branch_and_bound, bundle
from priorveil.designs.pricing import GuessPricing, HistogramPricing, SumPricing, closed_form_guess
from priorveil.designs.spaces import Box, LdpCone, seeds
from priorveil.designs.stopping import Limits, relative_gap
from priorveil.designs.value_groups import equal_groups

Array = np.ndarray


def zipf(d: int) -> Array:
    P = 1.0 / np.arange(1, d + 1)
    return P / P.sum()


def vertices(box: Box) -> Array:
    """Every vertex of the box: a set of full inputs and one that takes the rest."""
    d, found = len(box.caps), []
    for chosen in itertools.product((0.0, 1.0), repeat=d):
        full = np.array(chosen) * box.caps
        rest = 1.0 - full.sum()
        if rest < -1e-12:
            continue
        for x in np.flatnonzero((np.array(chosen) == 0) & (box.caps >= rest - 1e-12)):
            found.append(full + max(rest, 0.0) * np.eye(d)[x])
        if abs(rest) < 1e-12:
            found.append(full)
    return box.columns(np.array(found))


def enumerated(box: Box, utilities: Array, rays: Array) -> float:
    """The best utility by one linear programme over all vertices, its weights solved in full precision."""
    one = np.ones(len(box.prior))
    # the default tolerance, 1e-7, would leave the reference behind the engine
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = scipy.optimize.linprog(-utilities, A_eq=rays.T, b_eq=one, method="highs-ds", options=tight)
    assert answer.status == 0
    used = answer.x > 1e-11
    weights = np.linalg.lstsq(rays[used].T, one, rcond=None)[0]
    assert weights.min() > -1e-12
    return float(weights @ utilities[used])


@st.composite
def problems(draw: st.DrawFn, most: int = 7) -> tuple[Array, float, float, Array]:
    """A prior (sometimes with ties), a budget that may be asymmetric or one-sided, and values."""
    d = draw(st.integers(2, most))
    raw = draw(st.lists(st.integers(1, 12), min_size=d, max_size=d))
    prior = np.array(raw) / sum(raw)
    lower = draw(st.sampled_from([0.1, 0.5, 1.0, 2.0, 4.0, math.inf]))
    upper = draw(st.sampled_from([0.1, 0.5, 1.0, 2.0, 4.0, math.inf]))
    values = np.array(draw(st.lists(st.integers(-5, 40), min_size=d, max_size=d)), float)
    return prior, math.exp(-lower), math.exp(upper), values


def holds(best: column_generation.Solution, prior: Array, lo: float, hi: float) -> None:
    """A channel, within the box, with at most `d` outputs."""
    np.testing.assert_allclose(best.weights @ best.columns, 1.0, atol=1e-9)
    np.testing.assert_allclose(best.columns @ prior, 1.0, atol=1e-12)
    assert (best.weights > 0).all()
    assert len(best.weights) <= len(prior)
    assert best.columns.min() >= lo - 1e-12
    assert best.columns.max() <= hi * (1 + 1e-12)
    assert best.value <= best.bound


@settings(max_examples=60, deadline=None)
@given(problems())
def test_small_designs_are_exact(problem: tuple[Array, float, float, Array]) -> None:
    prior, lo, hi, values = problem
    box, values = Box(prior, lo, hi), values - prior @ values
    rays = vertices(box)
    queries = [
        (gains.best_histogram(Box(prior, lo, hi)), ((prior * rays) ** 2).sum(1)),
        (gains.best_sum(Box(prior, lo, hi), values), (rays @ (values * prior)) ** 2),
        (gains.best_guess(Box(prior, lo, hi)), (prior * rays).max(1)),
    ]
    for best, utilities in queries:
        holds(best, prior, lo, hi)
        truth = enumerated(box, utilities, rays)
        assert best.value == pytest.approx(truth, rel=1e-9)
        assert best.bound >= truth * (1 - 1e-12)
        assert best.bound - best.value <= 1e-8 * max(abs(truth), 1e-9)


@settings(max_examples=40, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_pricing_bounds_hold_at_any_duals(problem: tuple[Array, float, float, Array], seed: int) -> None:
    prior, lo, hi, values = problem
    rng = np.random.default_rng(seed)
    box = Box(prior, lo, hi)
    rays = vertices(box)
    duals = prior * rng.normal(size=len(prior))
    weights = rng.uniform(0, 2, len(prior))
    for pricing in (HistogramPricing(box, weights), SumPricing(box, values), GuessPricing(box, prior)):
        top = float((pricing.utility(rays) - rays @ duals).max())
        size = 1e-11 * (1.0 + float(np.abs(pricing.utility(rays)).max()))
        for exact in (False, True):
            priced = pricing.price(duals, exact)
            assert priced.bound >= top - 1e-13 * (1 + abs(top))
            if exact:
                assert priced.bound <= top + size
            reached = priced.utilities - priced.columns @ duals
            assert reached.max() <= priced.bound + size
            np.testing.assert_allclose(priced.utilities, pricing.utility(priced.columns))


@pytest.mark.parametrize("eps", [0.5, 2.0, 4.0])
def test_no_random_channel_beats_the_bound(eps: float) -> None:
    prior, rng = zipf(20), np.random.default_rng(3)
    box = Box(prior, math.exp(-eps), math.exp(eps))
    best = gains.best_histogram(Box(prior, box.lo, box.hi), Limits(1e-3))
    pool = box.columns(box.fill(rng.normal(size=(3000, 20)) * prior ** rng.uniform(-1, 1, (3000, 1))))
    utilities = ((prior * pool) ** 2).sum(1)
    assert enumerated(box, utilities, pool) <= best.bound


@pytest.mark.parametrize("eps", [1.0, 2.0, 3.0, 4.0])
def test_uniform_priors_are_solved_by_symmetry(eps: float) -> None:
    d = 83
    box = Box(np.full(d, 1 / d), math.exp(-eps), math.exp(eps))
    best = gains.best_histogram(box)
    holds(best, box.prior, box.lo, box.hi)
    g = box.caps[0]
    full = math.floor(1 / g)
    top = box.lo * (2 - box.lo) / d + (1 - box.lo) ** 2 * (full * g**2 + (1 - full * g) ** 2)
    assert best.value == pytest.approx(top, rel=1e-10)
    assert best.gap < 1e-9


def test_classes_of_different_sizes_are_spread_evenly() -> None:
    prior = np.repeat([0.11, 0.07, 0.05], [3, 7, 2])
    prior = prior / prior.sum()
    box = Box(prior, math.exp(-1.5), math.exp(1.5))
    pricing = HistogramPricing(box, np.ones(12))
    together = column_generation.solve(pricing, seeds(box), classes=equal_groups(prior[None]))
    apart = column_generation.solve(pricing, seeds(box))
    holds(together, prior, box.lo, box.hi)
    assert together.value == pytest.approx(apart.value, rel=1e-8)
    assert together.gap < 1e-8


@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_merged_blocks_prove_the_bound_of_the_whole(eps: float) -> None:
    prior = zipf(600)
    lo, hi = math.exp(-eps), math.exp(eps)
    best = gains.best_histogram(Box(prior, lo, hi), Limits(1e-3), rows=60)
    holds(best, prior, lo, hi)
    assert best.gap < 0.01
    assert best.value == pytest.approx(best.weights @ ((prior * best.columns) ** 2).sum(1))
    full = HistogramPricing(Box(prior, lo, hi), np.ones(600)).price(best.duals, exact=False)
    assert best.duals.sum() + full.bound <= best.bound + 1e-9


def test_sum_of_many_values_converges() -> None:
    prior = np.random.default_rng(0).dirichlet(np.ones(70))
    values = np.arange(70.0) - prior @ np.arange(70.0)
    for scale in (1.0, 1e-9, 1e9):
        best = gains.best_sum(Box(prior, math.exp(-1), math.exp(1)), scale * values, Limits(1e-5))
        holds(best, prior, math.exp(-1), math.exp(1))
        assert best.converged and best.iterations > 1
        assert best.value == pytest.approx(best.weights @ (best.columns @ (prior * scale * values)) ** 2)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_the_free_bound_on_guessing_holds(problem: tuple[Array, float, float, Array]) -> None:
    prior, lo, hi, _ = problem
    box = Box(prior, lo, hi)
    rays = vertices(box)
    bound, duals = closed_form_guess(box, prior)
    assert bound >= enumerated(box, (prior * rays).max(1), rays) * (1 - 1e-13)
    proven = duals.sum() + GuessPricing(box, prior).price(duals, exact=True).bound
    assert proven <= bound + 1e-12


def test_guessing_in_a_large_domain() -> None:
    prior, lo, hi = zipf(1296), math.exp(-2), math.exp(2)
    best = gains.best_guess(Box(prior, lo, hi), Limits(1e-3).of_rounds(50))
    holds(best, prior, lo, hi)
    assert best.value == pytest.approx(best.weights @ (prior * best.columns).max(1))
    assert best.gap < 0.01


def test_guessing_one_of_a_million_equal_values() -> None:
    plan = pv.design(pv.Prior.uniform(1_000_000), 1.0, pv.Guess())
    assert plan.efficiency > 0.99999
    assert plan.expected_mse == pytest.approx(1 - math.e / 1_000_000, rel=1e-12)


def test_heavy_priors_need_no_search() -> None:
    prior, eps = np.array([0.4, 0.3, 0.3]), 1.0
    best = gains.best_histogram(Box(prior, math.exp(-eps), math.exp(eps)))
    lo = math.exp(-eps)
    expected = (lo * (2 - lo)) * prior @ prior + (1 - lo) ** 2
    assert best.value == pytest.approx(expected)
    assert best.iterations <= 1


def test_stopping_keeps_the_best_so_far() -> None:
    prior = zipf(40)
    box = Box(prior, math.exp(-3), math.exp(3))
    seen: list[tuple[int, float, float]] = []

    def tell(count: int, value: float, bound: float) -> None:
        seen.append((count, value, bound))
        if count == 3:
            raise KeyboardInterrupt

    broken = gains.best_histogram(Box(prior, box.lo, box.hi), Limits(0.0, progress=tell))
    holds(broken, prior, box.lo, box.hi)
    assert broken.interrupted
    assert not broken.converged
    assert broken.value >= seen[-1][1] - 1e-12
    calls = iter([False, False, True])
    stopped = gains.best_histogram(Box(prior, box.lo, box.hi), Limits(0.0, should_stop=lambda: next(calls)))
    assert stopped.iterations == 2
    late = gains.best_histogram(Box(prior, box.lo, box.hi), Limits(0.0, deadline=0.0))
    holds(late, prior, box.lo, box.hi)
    assert late.iterations == 0


def test_values_rise_and_bounds_fall() -> None:
    seen: list[tuple[int, float, float]] = []
    prior = zipf(30)
    gains.best_sum(
        Box(prior, 0.5, 2.0),
        np.arange(30.0) - prior @ np.arange(30.0),
        Limits(progress=lambda *step: seen.append(step)),
    )
    values, bounds = np.array([s[1] for s in seen]), np.array([s[2] for s in seen])
    assert (np.diff(values) >= -1e-9).all()
    assert (np.diff(bounds) <= 0).all()


def test_pruning_keeps_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = zipf(25)
    plain = gains.best_histogram(Box(prior, 0.2, 5.0), Limits(1e-4))
    monkeypatch.setattr(column_generation, "_POOL", -12)  # a pool of 100 columns
    pruned = gains.best_histogram(Box(prior, 0.2, 5.0), Limits(1e-4))
    holds(pruned, prior, 0.2, 5.0)
    assert pruned.value == pytest.approx(plain.value, rel=1e-3)


def test_no_room_means_no_gap() -> None:
    assert relative_gap(1.0, 1.0, 1.0) == 0.0
    best = gains.best_sum(Box(np.array([0.3, 0.7]), 0.5, 2.0), np.zeros(2))
    assert best.value == 0.0
    assert best.gap == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_branch_and_bound_agrees_with_brute_force(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, max(1, d // 2), d)
    q, c = rng.uniform(0, 2, d)[kinds], rng.normal(size=d)[kinds]
    prior = rng.dirichlet(np.ones(d))[kinds]
    box = Box(prior / prior.sum(), 0.3, float(rng.uniform(1.2, 8)))
    shares = box.prior * (vertices(box) - box.lo) / (1 - box.lo)
    truth = float(((q * shares - c) * shares).sum(1).max())
    bundles = bundle(q, c, box.caps)
    bound, totals = branch_and_bound(bundles)
    assert bound == pytest.approx(truth, abs=1e-10)
    assert bundles.value(totals[:1])[0] == pytest.approx(truth, abs=1e-10)
    short, _ = branch_and_bound(bundles, parts=1)
    assert short >= truth - 1e-12
    members = bundles.shares(totals)
    np.testing.assert_allclose(members.sum(1), 1.0)
    np.testing.assert_allclose(((q * members - c) * members).sum(1), bundles.value(totals), atol=1e-12)


@given(st.integers(0, 10**6), st.integers(2, 7))
@settings(max_examples=40, deadline=None)
def test_the_best_column_of_ldp_is_the_best_of_all_vertices(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    cone = LdpCone(rng.dirichlet(np.ones(d)), float(rng.uniform(1.1, 20)))
    scores, vertices = rng.normal(size=(5, d)), cone.vertices()
    found = cone.best(scores)
    assert found @ cone.prior == pytest.approx(np.ones(5))
    assert (found.max(1) <= cone.ratio * found.min(1) * (1 + 1e-12)).all()
    best = np.maximum((scores @ vertices.T).max(axis=1), scores.sum(axis=1))  # or the constant column
    assert (found * scores).sum(axis=1) == pytest.approx(best)
