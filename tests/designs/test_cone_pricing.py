"""Extreme rays, mixtures and pricing for any cone: each against a slower, plainer way."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

from priorveil.designs import column_generation, cone_pricing
from priorveil.designs.column_generation import Utility, best_mixture, mix
from priorveil.designs.cone_pricing import ConeGuessPricing, ConePricing, ConeSquaresPricing
from priorveil.designs.cones import Program, extreme_rays
from priorveil.designs.robust import GuessTask, SquaredErrorTask
from priorveil.designs.spaces import Box, LdpCone
from priorveil.designs.stopping import Limits, never
from priorveil.errors import Infeasible, TooLarge
from references import lip_rows, subset_selection_matrix
from strategies import seeds

Array = npt.NDArray[np.float64]


def ldp(d: int, epsilon: float) -> Array:
    unit = np.eye(d)
    return np.array([np.exp(epsilon) * unit[j] - unit[i] for i in range(d) for j in range(d) if i != j])


def random_secret(rng: np.random.Generator, d: int, g: int) -> tuple[Array, Array]:
    """A prior, and the law of X given each value of a random secret."""
    P = rng.dirichlet(np.ones(d)) * 0.95 + 0.05 / d
    joint = rng.dirichlet(np.ones(g), size=d).T * P
    return P, joint / joint.sum(axis=1, keepdims=True)


def random_cone(rng: np.random.Generator) -> tuple[Array, Array]:
    """A prior and the cone of LIP, a latent secret, LDP, or a set of priors."""
    d = int(rng.integers(2, 7))
    eps = float(np.exp(rng.uniform(np.log(0.05), np.log(3))))
    lo, hi = np.exp(-eps), np.exp(eps * rng.uniform(0.5, 2))
    P, T = random_secret(rng, d, int(rng.integers(2, 6)))
    kind = rng.integers(4)
    if kind == 0:
        return P, lip_rows(P, lo, hi)
    if kind == 1:
        return P, lip_rows(P, lo, hi, T)
    if kind == 2:
        return P, ldp(d, eps)
    near = [0.8 * P + 0.2 * rng.dirichlet(np.ones(d)) for _ in range(3)]
    return P, np.vstack([lip_rows(p, lo, hi) for p in [P, *near]])


def brute_vertices(A: Array, P: Array) -> Array:
    """Vertices by solving every choice of d - 1 hyperplanes."""
    d = len(P)
    H = np.vstack([np.eye(d), A])
    found = []
    for rows in combinations(range(len(H)), d - 1):
        M = np.vstack([H[list(rows)], P])
        if np.linalg.matrix_rank(M, tol=1e-10) == d:
            r = np.linalg.solve(M, np.eye(d)[-1])
            if (H @ r).min() > -1e-9:
                found.append(r)
    return np.unique(np.round(found, 7) + 0.0, axis=0)


def histogram(P: Array) -> Utility:
    return lambda r: ((P * r) ** 2).sum(axis=1)


def squares(A: Array, P: Array, V: Array) -> ConeSquaresPricing:
    """Pricing of linear statistics for one prior."""
    nothing = np.zeros((1, len(P)))
    return ConeSquaresPricing(A, P, lambda r: ((r @ (V * P).T) ** 2).sum(axis=1), V, P[None], never, nothing)


def guess(A: Array, P: Array) -> ConeGuessPricing:
    """Pricing of the best guess for one prior."""
    return ConeGuessPricing(A, P, lambda r: (r * P).max(axis=1), P[None], never, np.zeros((1, len(P))))


def convex(A: Array, P: Array, utility: Utility) -> ConePricing:
    """Pricing of any convex utility for one prior."""
    return ConePricing(Program(A, P), P, utility, never, np.zeros((1, len(P))))


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_rays_are_the_vertices_found_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P, T = random_secret(rng, int(rng.integers(2, 5)), int(rng.integers(2, 4)))
    lo, hi = np.exp(-rng.uniform(0.1, 2)), np.exp(rng.uniform(0.1, 2))
    A = lip_rows(P, lo, hi, T)
    A = np.vstack([A, A[rng.integers(len(A), size=2)], 4 * A[:1], np.ones((1, len(P)))])
    rays = np.unique(np.round(extreme_rays(A, P), 7) + 0.0, axis=0)
    np.testing.assert_allclose(rays, brute_vertices(A, P), atol=2e-7)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_rays_are_allowed_and_tight(seed: int) -> None:
    P, A = random_cone(np.random.default_rng(seed))
    rays = extreme_rays(A, P)
    H = np.vstack([np.eye(len(P)), A / np.abs(A).max(axis=1, keepdims=True)])
    np.testing.assert_allclose(rays @ P, 1.0, atol=1e-12)
    assert (rays @ H.T).min() > -1e-12 * rays.max()
    for r in rays:
        assert np.linalg.matrix_rank(H[np.abs(H @ r) < 1e-9 * r.max()], tol=1e-8) >= len(P) - 1


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_box_and_the_staircase_are_listed_directly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 8))
    P = rng.dirichlet(np.ones(d)) * 0.9 + 0.1 / d
    eps = rng.uniform(0.01, 3)
    for direct, A in (
        (Box(P, np.exp(-eps), np.exp(eps)).vertices(), lip_rows(P, np.exp(-eps), np.exp(eps))),
        (LdpCone(P, np.exp(eps)).vertices(), ldp(d, eps).reshape(-1, d)),
    ):
        listed = extreme_rays(A, P)
        assert len(listed) == len(direct)
        np.testing.assert_allclose(np.sort(direct.sum(axis=1)), np.sort(listed.sum(axis=1)), rtol=1e-9)
        values = best_mixture(direct, histogram(P)).value, best_mixture(listed, histogram(P)).value
        assert values[0] == pytest.approx(values[1], abs=1e-10)


def test_one_input_and_cones_without_interior() -> None:
    np.testing.assert_array_equal(extreme_rays(np.ones((1, 1)), np.ones(1)), [[1.0]])
    P = np.array([0.2, 0.3, 0.5])
    still = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0]])
    np.testing.assert_allclose(extreme_rays(still, P), np.ones((1, 3)))
    flat = np.vstack([still[:2], lip_rows(P, 0.5, 2.0)])  # the first two inputs must look alike
    rays = extreme_rays(flat, P)
    np.testing.assert_allclose(rays, [[0.5, 0.5, 1.5], [1.5, 1.5, 0.5]])
    np.testing.assert_allclose(extreme_rays(np.empty((0, 2)), np.array([0.5, 0.5])), [[0, 2], [2, 0]])


def test_impossible_and_oversized_cones_are_refused() -> None:
    with pytest.raises(Infeasible):
        extreme_rays(np.array([[-1.0, -1.0]]), np.array([0.5, 0.5]))
    with pytest.raises(TooLarge):
        extreme_rays(ldp(8, 1.0), np.full(8, 0.125), most=50)
    with pytest.raises(TooLarge):
        Box(np.full(15, 1 / 15), 0.5, 2.0).vertices()


@pytest.mark.parametrize("eps", [1e-4, 1e-2, 1.0, 5.0])
def test_mixture_keeps_its_digits_for_small_budgets(eps: float) -> None:
    P = np.array([0.45, 0.55])
    lo, hi = np.exp(-eps), np.exp(eps)
    s, t = max(P[1] * lo, 1 - P[0] * hi), min(P[1] * hi, 1 - P[0] * lo)
    gain = (P[1] - s) * (t - P[1])  # variance of the posterior
    found = best_mixture(extreme_rays(lip_rows(P, lo, hi), P), lambda r: (P[1] * r[:, 1]) ** 2)
    assert found.value - P[1] ** 2 == pytest.approx(gain, rel=1e-5)
    assert found.bound >= found.value
    assert found.gap < 1e-5
    np.testing.assert_allclose(found.weights @ found.columns, 1.0, atol=1e-14)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_no_random_channel_beats_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P, A = random_cone(rng)
    phi = histogram(P)
    rays = extreme_rays(A, P)
    best = best_mixture(rays, phi)
    for _ in range(8):  # a random vertex of the channels, then pulled inwards
        weights = mix(rays, rng.normal(size=(len(rays), 1))).weights
        pull = rng.uniform(0, 1)
        assert weights @ phi((1 - pull) * rays + pull) <= best.bound + 1e-10


@given(seeds)
@settings(max_examples=12, deadline=None)
def test_column_generation_agrees_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P, A = random_cone(rng)
    d = len(P)
    a = rng.normal(size=d)
    rays = extreme_rays(A, P)
    for pricing in (
        squares(A, P, a[None]),
        squares(A, P, np.eye(d)),
        guess(A, P),
    ):
        exact = best_mixture(rays, pricing.utility)
        found = column_generation.solve(pricing, np.ones((1, d)), Limits().of_rounds(50))
        assert found.value == pytest.approx(exact.value, abs=1e-7)
        assert found.bound >= exact.value - 1e-10
        columns = found.columns
        assert (columns @ A.T).min() > -1e-8 * np.abs(A).max() * columns.max()


@given(seeds)
@settings(max_examples=12, deadline=None)
def test_priced_bounds_hold_for_every_ray(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P, A = random_cone(rng)
    d = len(P)
    a, duals = rng.normal(size=d), rng.normal(size=d) * P
    rays = extreme_rays(A, P)
    for pricing in (
        squares(A, P, a[None]),
        squares(A, P, np.eye(d)),
        guess(A, P),
        convex(A, P, lambda r: np.abs(r - 1) @ P),
    ):
        best = np.max(pricing.utility(rays) - rays @ duals)
        for exact in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(cone_pricing, "_NODES", 15)
                priced = pricing.price(duals, exact)
            assert priced.bound >= best - 1e-10
            assert np.max(priced.utilities - priced.columns @ duals) <= best + 1e-9
            np.testing.assert_allclose(priced.columns @ P, 1.0, atol=1e-9)
    one_term = squares(A, P, a[None]).price(duals, True)
    assert one_term.bound == pytest.approx(np.max((rays @ (a * P)) ** 2 - rays @ duals), abs=1e-8)


def inside(rng: np.random.Generator, rays: Array) -> Array:
    """The rays, and random columns between them."""
    return np.vstack([rays, rng.dirichlet(np.full(len(rays), 0.3), size=300) @ rays])


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_chords_over_estimate_on_every_box(seed: int) -> None:
    """The relaxation alone: the bound of a price is at least its best column, which hides a wrong chord."""
    rng = np.random.default_rng(seed)
    P, A = random_cone(rng)
    d = len(P)
    other = 0.5 * P + 0.5 * rng.dirichlet(np.ones(d))
    priors, shares = np.array([P, other]), rng.dirichlet(np.ones(2))
    task = SquaredErrorTask(np.eye(d))
    pricing = task.pricing(
        A, P, lambda r: -np.column_stack([task.risks(p, r) @ p for p in priors]), priors, never
    )
    assert isinstance(pricing, ConeSquaresPricing)
    columns, duals = inside(rng, extreme_rays(A, P)), rng.normal(size=d) * P
    worth = pricing.utility(columns) @ shares - columns @ duals
    costs = duals + shares @ pricing.linear
    z = (columns @ pricing.C.T) / (columns @ pricing.D.T)
    least, most = pricing.root
    assert (z >= least - 1e-9).all()
    assert (z <= most + 1e-9).all()
    for _ in range(5):
        ends = np.sort(z[rng.integers(len(z), size=2)], axis=0)
        narrow = rng.random(len(pricing.C)) < 0.3
        low, high = np.where(narrow, ends[0], least), np.where(narrow, ends[1], most)
        within = ((z >= low) & (z <= high)).all(axis=1)
        box = pricing.relax(costs, shares, (low, high))
        if within.any():
            assert box is not None
            assert box[1] >= worth[within].max() - 1e-9


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_open_guesses_are_over_estimated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P, A = random_cone(rng)
    d = len(P)
    priors, shares = np.array([P, 0.5 * P + 0.5 * rng.dirichlet(np.ones(d))]), rng.dirichlet(np.ones(2))
    task = GuessTask()
    pricing = task.pricing(
        A, P, lambda r: -np.column_stack([task.risks(p, r) @ p for p in priors]), priors, never
    )
    assert isinstance(pricing, ConeGuessPricing)
    columns, duals = inside(rng, extreme_rays(A, P)), rng.normal(size=d) * P
    worth = pricing.utility(columns) @ shares - columns @ duals
    first = (columns * P).argmax(axis=1)
    for x in range(d):
        answer = pricing.relax(duals + shares @ pricing.linear, shares, (x,))
        if (first == x).any():
            assert answer is not None
            assert answer[1] >= worth[first == x].max() - 1e-9


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_the_linear_function_through_the_corners_over_estimates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P, A = random_cone(rng)
    pricing = convex(A, P, lambda r: ((r - 1) ** 2) @ P)
    columns, duals = inside(rng, extreme_rays(A, P)), rng.normal(size=len(P)) * P
    found = pricing.relax(duals, np.ones(1), pricing.root)
    assert found is not None
    noise = 1e-7 * np.abs(pricing.utility(np.diag(1 / P))).max()
    assert found[1] >= (pricing.utility(columns) - columns @ duals).max() - noise


def test_a_utility_of_your_own_is_designed_for() -> None:
    rng = np.random.default_rng(5)
    P, T = random_secret(rng, 4, 3)
    A = lip_rows(P, np.exp(-0.7), np.exp(0.7), T)

    def information(r: Array) -> Array:
        w = np.maximum(P * r, 1e-300)
        return (w * np.log(w / P)).sum(axis=1)

    exact = best_mixture(extreme_rays(A, P), information)
    found = column_generation.solve(convex(A, P, information), np.ones((1, 4)), Limits(1e-4))
    assert found.value == pytest.approx(exact.value, abs=1e-9)
    assert found.bound >= exact.value - 1e-12


def test_bounds_do_not_need_the_solver_to_be_right() -> None:
    P = np.array([0.3, 0.3, 0.4])
    A = lip_rows(P, 0.5, 2.0)
    rays = extreme_rays(A, P)
    for g in np.random.default_rng(0).normal(size=(20, 3)):
        answer = Program(A, P).maximise(g)
        assert answer is not None
        assert answer[1] >= (rays @ g).max() - 1e-12
        assert answer[1] == pytest.approx(g @ answer[0], abs=1e-8)


def test_ldp_histogram_for_a_uniform_prior_is_subset_selection() -> None:
    for d, eps in ((3, 0.5), (5, 1.0), (6, 2.0), (8, 1.0)):
        P = np.full(d, 1 / d)
        best = best_mixture(LdpCone(P, np.exp(eps)).vertices(), histogram(P))
        subsets = [subset_selection_matrix(d, eps, k) for k in range(1, d)]
        gains = [float((P @ Q) @ histogram(P)((Q / (P @ Q)).T)) for Q in subsets]
        assert best.value == pytest.approx(max(gains), abs=1e-9)
        general = best_mixture(extreme_rays(ldp(d, eps), P), histogram(P))
        assert general.value == pytest.approx(best.value, abs=1e-9)
