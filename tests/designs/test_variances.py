"""Learning a distribution: the A-optimal design, its bound, and what no channel can do."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.optimize
from hypothesis import example, given, settings
from hypothesis import strategies as st

from priorveil.designs import variances
from priorveil.designs.bounds import information_bound, uniform_variance
from priorveil.designs.spaces import Box, LdpCone
from priorveil.designs.stopping import Limits, never
from priorveil.designs.variances import best_unbiased
from priorveil.designs.weights import DesignStatistics, _feasible, best_weights, good_weights, interior_point
from priorveil.errors import Infeasible, NotIdentifiable, TooLarge
from priorveil.information import lift_variance, variance, variance_bound
from priorveil.priors import Prior
from references import subset_selection_matrix

SKEWED = np.array([0.025, 0.025, 0.025, 0.025, 0.9])
budgets = st.sampled_from([0.1, 0.5, 1.0, 1.5, 2.0, 3.0])
seeds = st.integers(0, 10**6)


def priors(seed: int, low: int = 2, high: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(low, high + 1))
    return rng.dirichlet(np.full(d, rng.choice([0.5, 1.0, 4.0]))) * 0.99 + 0.01 / d


def box(epsilon: float) -> tuple[float, float]:
    return math.exp(-epsilon), math.exp(epsilon)


def channel_of(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (columns * weights[:, None]).T


def randomized_response(d: int, epsilon: float) -> np.ndarray:
    return (np.ones((d, d)) + (math.exp(epsilon) - 1) * np.eye(d)) / (math.exp(epsilon) + d - 1)


def reference(columns: np.ndarray, statistics: np.ndarray | None = None) -> float:
    """The least variance over mixtures of `columns`, by a general solver that shares nothing with ours."""
    V = np.linalg.svd(np.ones((1, columns.shape[1])))[2][1:].T
    T = V if statistics is None else statistics @ V
    Z = (columns - 1) @ V
    scale = np.abs(Z).max()
    Z = Z / scale
    rows = np.vstack([Z.T, np.ones(len(Z))])
    side = np.eye(len(rows))[-1]
    start = scipy.optimize.linprog(
        np.r_[np.zeros(len(Z)), -1.0],
        A_ub=np.hstack([-np.eye(len(Z)), np.ones((len(Z), 1))]),
        b_ub=np.zeros(len(Z)),
        A_eq=np.hstack([rows, np.zeros((len(rows), 1))]),
        b_eq=side,
    ).x[:-1]

    def spread(weights: np.ndarray) -> tuple[float, np.ndarray]:
        N = T @ np.linalg.inv(Z.T @ (Z * weights[:, None]))
        return float((N * T).sum()), -((Z @ N.T) ** 2).sum(1)

    found = scipy.optimize.minimize(
        spread,
        start,
        jac=True,
        bounds=[(1e-12, 1)] * len(Z),
        constraints={"type": "eq", "fun": lambda lam: rows @ lam - side, "jac": lambda lam: rows},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-10},
    )
    # where the information is nearly singular, the solver's own figure is rounding
    return lift_variance(columns, found.x, statistics)


def random_channel(prior: np.ndarray, lo: float, hi: float, rng: np.random.Generator) -> np.ndarray:
    """A valid channel: mix random stochastic columns with the constant one until every lift fits."""
    d = len(prior)
    Q = rng.dirichlet(np.full(int(rng.integers(d, 3 * d)), 0.3), size=d)
    Q = Q[:, prior @ Q > 0]
    lift = Q / (prior @ Q) - 1
    share = min(1.0, (hi - 1) / lift.max(), (1 - lo) / -lift.min())
    return (1 + share * lift) * (prior @ Q)


class TestVariance:
    def test_known_figures(self) -> None:
        assert variance(randomized_response(6, 1.0), np.full(6, 1 / 6)) == pytest.approx(16.8, abs=0.05)
        assert variance(randomized_response(5, 1.0), SKEWED) == pytest.approx(11.6, abs=0.05)

    @given(seeds)
    def test_truth_is_multinomial(self, seed: int) -> None:
        P = priors(seed)
        assert variance(np.eye(len(P)), P) == pytest.approx(1 - P @ P)

    @given(seeds)
    def test_is_the_inverse_information_less_the_prior(self, seed: int) -> None:
        P = priors(seed)
        Q = np.random.default_rng(seed).dirichlet(np.ones(len(P) + 2), size=len(P))
        J = (Q / (P @ Q)) @ Q.T
        assert variance(Q, P) == pytest.approx(np.trace(np.linalg.inv(J)) - P @ P, rel=1e-6)

    @given(seeds)
    def test_post_processing_never_helps(self, seed: int) -> None:
        P, rng = priors(seed), np.random.default_rng(seed)
        Q = rng.dirichlet(np.ones(len(P) + 2), size=len(P))
        T = rng.dirichlet(np.ones(len(P) + 1), size=Q.shape[1])
        assert variance(Q @ T, P) >= variance(Q, P) * (1 - 1e-9)

    def test_infinite_where_reports_do_not_tell(self) -> None:
        P = np.full(3, 1 / 3)
        assert variance(np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]), P) == math.inf
        assert variance(np.array([[0.9, 0.05, 0.05], [0.2, 0.4, 0.4], [0.5, 0.25, 0.25]]), P) == math.inf

    def test_outputs_of_probability_zero_do_not_matter(self) -> None:
        Q = randomized_response(4, 1.0)
        P = np.full(4, 0.25)
        assert variance(np.hstack([Q, np.zeros((4, 2))]), P) == pytest.approx(variance(Q, P))


class TestExact:
    def test_published_figures(self) -> None:
        assert best_unbiased(Box(np.full(6, 1 / 6), *box(1.0))).value == pytest.approx(4.8, abs=0.05)
        assert best_unbiased(Box(SKEWED, *box(1.0))).value == pytest.approx(5.8, abs=0.05)

    @given(seeds, budgets)
    @settings(max_examples=25, deadline=None)
    def test_matches_a_reference_solver(self, seed: int, epsilon: float) -> None:
        P = priors(seed)
        ours = best_unbiased(Box(P, *box(epsilon)))
        theirs = reference(Box(P, *box(epsilon)).vertices())
        assert ours.value <= theirs * (1 + 1e-4)
        assert ours.bound <= theirs * (1 + 1e-7)

    @given(seeds, budgets, budgets)
    @settings(max_examples=60, deadline=None)
    def test_is_a_channel_within_its_budget(self, seed: int, lower: float, upper: float) -> None:
        P, lo, hi = priors(seed, high=8), math.exp(-lower), math.exp(upper)
        found = best_unbiased(Box(P, lo, hi))
        Q = channel_of(found.columns, found.weights)
        assert np.allclose(Q.sum(1), 1, atol=1e-12)
        assert found.columns.min() >= lo * (1 - 1e-12)
        assert found.columns.max() <= hi * (1 + 1e-12)
        assert variance(Q, P) == pytest.approx(found.value, rel=1e-9)
        assert found.converged
        assert found.gap <= 1e-4
        assert len(found.weights) <= len(P) * (len(P) + 1) // 2

    @given(seeds, budgets)
    @settings(max_examples=40, deadline=None)
    def test_never_above_local_differential_privacy(self, seed: int, epsilon: float) -> None:
        P = priors(seed)
        d = len(P)
        best = min(variance(subset_selection_matrix(d, epsilon, size), P) for size in range(1, d))
        assert best_unbiased(Box(P, *box(epsilon))).value <= best * (1 + 1e-9)

    def test_one_sided_budget_is_the_truth_or_a_fresh_draw(self) -> None:
        P, lo = np.array([0.5, 0.3, 0.15, 0.05]), math.exp(-1.0)
        found = best_unbiased(Box(P, lo, math.inf))
        assert found.value == pytest.approx((1 - P @ P) / (1 - lo) ** 2)
        assert found.gap == 0.0


class TestSolve:
    def test_scale_of_columns_does_not_matter(self) -> None:
        vertices = Box(SKEWED, *box(1.0)).vertices()
        scaled = vertices * np.linspace(0.1, 7, len(vertices))[:, None]
        assert best_weights(SKEWED, scaled).value == pytest.approx(
            best_weights(SKEWED, vertices).value, rel=1e-5
        )

    def test_ldp_cone_from_its_rays(self) -> None:
        """For equal inputs subset selection of the best size is the best LDP channel."""
        d, epsilon = 5, 1.0
        P = np.full(d, 1 / d)
        rays = np.array([r for r in itertools.product([1.0, math.e], repeat=d) if len(set(r)) > 1])
        best = min(variance(subset_selection_matrix(d, epsilon, size), P) for size in range(1, d))
        assert best_weights(P, rays).value == pytest.approx(best, rel=1e-5)

    def test_refuses_columns_that_cannot_tell(self) -> None:
        P, columns = np.full(3, 1 / 3), np.array([[1.0, 1, 2], [2, 2, 1.0]])
        with pytest.raises(NotIdentifiable):
            best_weights(P, columns)
        rows = np.array([[0.0, 0, 1], [0, 1, 0], [1, 1, 0], [1, 0, 1]])
        with pytest.raises(NotIdentifiable) as refusal:
            best_weights(P, columns, rows=rows)
        assert refusal.value.statistics == (1, 3)

    def test_refuses_columns_that_make_no_channel(self) -> None:
        with pytest.raises(Infeasible):
            best_weights(np.full(3, 1 / 3), np.array([[2.0, 1, 1], [2, 1.5, 1], [1.5, 1.4, 1], [3, 1, 0.5]]))

    def test_rounding_is_not_removed_along_columns_of_hardly_any_weight(self) -> None:
        """Two heavy columns miss zero by 1e-9 in a direction that only columns of weight 1e-12 measure."""
        C = np.array([[1.0, 1e-9, 1], [-1, 1e-9, 1], [0.3, 1, 1], [-0.3, -1, 1]])
        weights, side = np.array([0.5 + 1e-13, 0.5, 1e-12, 1e-12]), np.array([0.0, 0, 1])
        found = _feasible(C, weights, side)
        assert found == pytest.approx(weights, rel=1e-9)
        assert np.abs((C.T @ found - side)[[0, 2]]).max() < 1e-15


class TestStatistics:
    """Unbiased estimates of `W @ shares`, also where `W` leaves much of the distribution open."""

    def test_many_rows_take_no_matrix_of_rows_by_rows(self) -> None:
        rows = np.random.default_rng(0).normal(size=(5_000, 40))
        tracemalloc.start()
        DesignStatistics(40, rows)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10 * rows.nbytes

    @given(seeds, budgets, st.integers(1, 4))
    @settings(max_examples=60, deadline=None)
    def test_matches_a_reference_solver(self, seed: int, epsilon: float, count: int) -> None:
        P, rng, (lo, hi) = priors(seed, low=3), np.random.default_rng(seed), box(epsilon)
        W = rng.normal(size=(count, len(P))) if seed % 2 else rng.integers(0, 2, (count, len(P))) + 0.0
        W[0, 0] += 1.5  # so that it is not the same for all
        found = best_unbiased(Box(P, lo, hi), Limits(1e-7), W)
        Q = channel_of(found.columns, found.weights)
        assert np.allclose(Q.sum(1), 1, atol=1e-12)
        assert found.value == pytest.approx(variance(Q, P, W), rel=1e-9)
        assert found.bound <= found.value <= found.bound * (1 + 1e-6)
        theirs = reference(Box(P, lo, hi).vertices(), W)  # its weights make a channel up to 1e-6
        assert found.value <= theirs * (1 + 1e-4)
        assert found.bound <= theirs * (1 + 1e-5)
        for _ in range(5):
            assert found.bound <= variance(random_channel(P, lo, hi, rng), P, W) * (1 + 1e-9)

    @pytest.mark.parametrize("d", [3, 7])
    def test_the_distribution_in_other_words(self, d: int) -> None:
        P, (lo, hi) = np.arange(1.0, d + 1) / (d * (d + 1) / 2), box(1.0)
        rotation = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
        for W in (np.eye(d), rotation):
            assert best_unbiased(Box(P, lo, hi), rows=W).value == pytest.approx(
                best_unbiased(Box(P, lo, hi)).value, rel=1e-5
            )

    def test_one_share_under_ldp_is_warner(self) -> None:
        """The best channel has two reports, and tells nothing about the other values."""
        P, e = np.array([0.3, 0.2, 0.2, 0.2, 0.1]), math.e
        rays = np.array([r for r in itertools.product([1.0, e], repeat=5) if len(set(r)) > 1])
        found = best_weights(P, rays, rows=np.eye(5)[4:])
        law = (0.1 * e + 0.9) / (1 + e)
        assert found.value == pytest.approx(law * (1 - law) * ((e + 1) / (e - 1)) ** 2, rel=1e-6)
        assert len(found.weights) == 2

    @pytest.mark.parametrize(("ldp", "most"), [(False, 1_100.0), (True, 4_200.0)])
    def test_many_columns_need_no_solver_for_their_weights(self, ldp: bool, most: float) -> None:
        """They are a good answer where no time is left for a search."""
        P, rows = np.asarray(Prior.zipf(205).probabilities), np.tri(205)
        space = LdpCone(P, np.e) if ldp else Box(P, np.exp(-1.0), np.e)
        found = best_unbiased(space, Limits(1e-3).of_rounds(0), rows)
        assert np.abs(found.weights @ found.columns - 1).max() < 1e-9 and found.weights.min() >= 0
        assert found.value == pytest.approx(lift_variance(found.columns, found.weights, rows), rel=1e-6)
        assert found.bound <= found.value < most

    def test_columns_on_one_side_are_no_channel(self) -> None:
        with pytest.raises(Infeasible):
            good_weights(np.random.default_rng(0).random((40, 3)), None, never)

    @pytest.mark.parametrize("shape", ["margins", "cumulative"])
    def test_more_values_than_can_be_listed(self, shape: str) -> None:
        """At most 60 % of the variance of a channel for the whole distribution is left."""
        cells, (lo, hi) = np.array(list(itertools.product(range(4), range(3), range(2)))), box(1.0)
        levels = [cells[:, [i]] == np.arange(n) for i, n in enumerate((4, 3, 2))]
        W = np.hstack(levels).T + 0.0 if shape == "margins" else np.tri(24)
        P = np.full(24, 1 / 24)
        seen: list[int] = []
        limits = Limits(1e-3, progress=lambda n, *_: seen.append(n), should_stop=lambda: len(seen) > 9)
        found = best_unbiased(Box(P, lo, hi), limits, W)
        whole = best_unbiased(Box(P, lo, hi), Limits(1e-2))
        assert np.allclose(found.weights @ found.columns, 1, atol=1e-11)
        assert lo * (1 - 1e-12) <= found.columns.min() <= found.columns.max() <= hi * (1 + 1e-12)
        assert found.value == pytest.approx(variance(channel_of(found.columns, found.weights), P, W))
        assert found.gap <= 0.1
        assert found.value <= 0.6 * variance(channel_of(whole.columns, whole.weights), P, W)

    def test_a_sum_over_many_values_starts_from_a_channel(self) -> None:
        """Random columns alone need not mix to a channel: those of this prior did not."""
        P = np.random.default_rng(0).dirichlet(np.full(18, 2.0)) * 0.9 + 0.1 / 18
        found = best_unbiased(Box(P, *box(1.0)), Limits(0.05), np.arange(18.0)[None])
        assert np.allclose(found.weights @ found.columns, 1, atol=1e-11)
        assert found.gap <= 0.05

    @given(seeds, st.sampled_from([0.5, 1.0, 3.0]), st.booleans())
    @settings(max_examples=30, deadline=None)
    @example(0, 1.0, True)
    def test_a_sum_by_exact_pricing_is_that_of_all_vertices(
        self, seed: int, epsilon: float, pairwise: bool
    ) -> None:
        """Numbers are rounded to a coarse grid here, which costs little; the bound holds for all the values."""
        rng, (lo, hi) = np.random.default_rng(seed), box(epsilon)
        P = rng.dirichlet(np.full(9, 2.0)) * 0.9 + 0.01
        P, row = P / P.sum(), rng.integers(-5, 6, 9) + 0.0
        space = LdpCone(P, hi) if pairwise else Box(P, lo, hi)
        exact = best_weights(P, space.vertices(), Limits(1e-7), row[None])
        fine = variances._Generation(
            space, Limits(1e-6), DesignStatistics(9, row[None]), [np.arange(9)]
        ).run()
        assert fine.value == pytest.approx(exact.value, rel=1e-4)
        assert exact.value * (1 - 1e-4) <= fine.bound <= exact.value * (1 + 1e-7)
        points = np.unique(row)[[0, len(np.unique(row)) // 2, -1]]
        coarse = variances._rounded_sum(space, Limits(1e-6), row, np.unique(points))
        assert np.allclose(coarse.weights @ coarse.columns, 1, atol=1e-9)
        assert coarse.bound <= exact.value * (1 + 1e-7) <= coarse.value * (1 + 1e-6)
        columns = coarse.columns
        if pairwise:
            assert (columns.max(axis=1) <= hi * columns.min(axis=1) * (1 + 1e-12)).all()
        else:
            assert lo * (1 - 1e-12) <= columns.min() <= columns.max() <= hi * (1 + 1e-12)

    @pytest.mark.parametrize("pairwise", [False, True])
    @pytest.mark.parametrize("d", [100, 1200])
    def test_a_sum_over_many_values_is_no_worse_than_rounding_to_both_ends(
        self, d: int, pairwise: bool
    ) -> None:
        P, row, (lo, hi) = 1 / np.arange(1.0, d + 1), np.arange(d) + 0.0, box(1.0)
        P /= P.sum()
        found = best_unbiased(LdpCone(P, hi) if pairwise else Box(P, lo, hi), Limits(1e-3), row[None])
        up = row / (d - 1)
        ends = np.array([1 - P @ up, P @ up])
        binary = best_weights(ends, (LdpCone(ends, hi) if pairwise else Box(ends, lo, hi)).vertices())
        two = binary.columns @ np.array([1 - up, up])
        assert np.allclose(binary.weights @ two, 1)
        assert found.value <= lift_variance(two, binary.weights, row[None]) * (1 + 1e-6)
        assert found.bound >= 0.95 * found.value
        assert len(found.weights) <= 200

    def test_numbers_of_a_sum_at_the_far_end_may_be_nearly_impossible(self) -> None:
        P = np.append(np.full(60, (1 - 1e-18) / 60), 1e-18)
        found = best_unbiased(Box(P, *box(1.0)), Limits(1e-3), np.arange(61.0)[None])
        assert found.columns.min() >= math.exp(-1) * (1 - 1e-12)
        assert np.allclose(found.weights @ found.columns, 1, atol=1e-9)

    @pytest.mark.parametrize("rows", [None, np.arange(20.0)[None], np.tri(20)])
    def test_a_budget_without_a_lower_side(self, rows: np.ndarray | None) -> None:
        """Its variance is at most that of the symmetric budget, and at least that of the truth."""
        P = np.arange(1.0, 21) / 210
        free, both = (best_unbiased(Box(P, lo, math.e), Limits(1e-2), rows) for lo in (0.0, math.exp(-1)))
        assert variance(np.eye(20), P, rows) <= free.value <= both.value * 1.02

    def test_ranges_of_twelve_values(self) -> None:
        d = 12
        W = np.array([[float(i <= x <= j) for x in range(d)] for i in range(d) for j in range(i, d)])
        found = best_unbiased(Box(np.full(d, 1 / d), *box(1.0)), rows=W)
        assert found.value == pytest.approx(114.306, abs=1e-3)
        assert found.gap < 1e-4


class TestBound:
    @given(seeds, budgets)
    @settings(max_examples=40, deadline=None)
    def test_no_channel_beats_it(self, seed: int, epsilon: float) -> None:
        P, rng = priors(seed, high=9), np.random.default_rng(seed)
        lo, hi = box(epsilon)
        relaxed, exact = information_bound(Box(P, lo, hi)), best_unbiased(Box(P, lo, hi))
        assert variance_bound(P, lo, hi) <= relaxed <= exact.value * (1 + 1e-9)
        for _ in range(5):
            assert exact.bound <= variance(random_channel(P, lo, hi, rng), P) * (1 + 1e-9)

    @given(seeds, budgets)
    @example(330, 1.0)  # five nearly equal values: 0.778
    @settings(max_examples=40, deadline=None)
    def test_is_close(self, seed: int, epsilon: float) -> None:
        P = priors(seed, high=8)
        assert information_bound(Box(P, *box(epsilon))) >= 0.75 * best_unbiased(Box(P, *box(epsilon))).value

    @pytest.mark.parametrize("d", [2, 3, 5, 8])
    @pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
    def test_equal_inputs_in_closed_form(self, d: int, epsilon: float) -> None:
        exact = best_weights(np.full(d, 1 / d), Box(np.full(d, 1 / d), *box(epsilon)).vertices()).value
        assert uniform_variance(d, *box(epsilon)) == pytest.approx(exact, rel=1e-5)


class TestGeneration:
    @pytest.mark.parametrize("shape", ["zipf", "uniform"])
    def test_large_domain_is_near_its_bound(self, shape: str) -> None:
        d = 30
        P = 1 / np.arange(1, d + 1) if shape == "zipf" else np.ones(d)
        P = P / P.sum()
        lo, hi = box(1.0)
        seen: list[tuple[int, float, float]] = []
        found = best_unbiased(Box(P, lo, hi), Limits(0.01, progress=lambda *step: seen.append(step)))
        assert found.gap < 0.02
        assert np.allclose(found.weights @ found.columns, 1, atol=1e-11)
        assert found.columns.min() >= lo * (1 - 1e-12)
        assert found.columns.max() <= hi * (1 + 1e-12)
        assert variance(channel_of(found.columns, found.weights), P) == pytest.approx(found.value)
        assert found.value < variance(randomized_response(d, 1.0), P)
        assert shape == "uniform" or seen[-1][1] == found.value

    def test_stops_when_told(self) -> None:
        found = best_unbiased(Box(np.arange(1, 31) / 465, *box(1.0)), Limits(1e-5, should_stop=lambda: True))
        assert found.iterations == 0
        assert math.isfinite(found.value)

    def test_an_interrupt_returns_the_best_so_far(self) -> None:
        def interrupt(rounds: int, value: float, bound: float) -> None:
            if rounds == 1:
                raise KeyboardInterrupt

        found = best_unbiased(Box(np.arange(1, 31) / 465, *box(1.0)), Limits(1e-5, progress=interrupt))
        assert np.allclose(found.weights @ found.columns, 1, atol=1e-11)


class TestCyclic:
    @pytest.mark.parametrize(("d", "epsilon"), [(15, 2.0), (83, 1.0), (40, 3.0)])
    def test_equal_inputs_reach_the_closed_form(self, d: int, epsilon: float) -> None:
        found = best_unbiased(Box(np.full(d, 1 / d), *box(epsilon)))
        assert found.bound == uniform_variance(d, *box(epsilon))
        assert found.gap < 0.01
        assert np.allclose(found.weights @ found.columns, 1, atol=1e-12)
        assert np.allclose(found.columns @ np.full(d, 1 / d), 1, atol=1e-12)


def test_no_time_ends_column_generation_with_the_first_weights() -> None:
    box = Box(np.arange(1.0, 31) / 465, np.exp(-1.0), np.exp(1.0))
    first = best_unbiased(box, Limits(1e-5).without_time())
    assert first.iterations == 0
    assert first.bound <= first.value == pytest.approx(variance(first.channel, box.prior), rel=1e-9)


@pytest.mark.parametrize("pairwise", [False, True])
def test_margins_of_many_cells_are_read_from_all_reports(pairwise: bool) -> None:
    """At most a half of what tables drawn at random would have, and nothing beats the bound."""
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    W = np.vstack([np.eye(4)[:, 2 * bits[:, i] + bits[:, j]] for i, j in itertools.combinations(range(8), 2)])
    P, (lo, hi) = np.full(256, 1 / 256), box(1.0)
    space = LdpCone(P, hi) if pairwise else Box(P, lo, hi)
    found = best_unbiased(space, Limits(1e-3), W)
    four = best_unbiased(space.merge(np.arange(256) % 4)).value
    assert np.allclose(found.weights @ found.columns, 1, atol=1e-9)
    assert found.value == pytest.approx(variance(channel_of(found.columns, found.weights), P, W), rel=1e-6)
    assert found.value <= 0.5 * 28**2 * four
    assert pairwise or 0.7 * found.value <= found.bound <= found.value
    if pairwise:
        assert (found.columns.max(axis=1) <= hi * found.columns.min(axis=1) * (1 + 1e-12)).all()
    else:
        assert lo * (1 - 1e-12) <= found.columns.min() <= found.columns.max() <= hi * (1 + 1e-12)


def test_values_that_count_the_same_are_merged() -> None:
    """Three shares of overlapping groups of 1,200 values: nothing else about the values matters."""
    rng = np.random.default_rng(1)
    W, P = rng.integers(0, 2, (3, 1200)) + 0.0, rng.dirichlet(np.ones(1200))
    found = best_unbiased(Box(P, *box(1.0)), Limits(1e-5), W)
    kinds, places = np.unique(W, axis=1, return_inverse=True)
    exact = best_unbiased(Box(np.bincount(places.ravel(), P), *box(1.0)), Limits(1e-5), kinds)
    assert found.value == pytest.approx(exact.value, rel=1e-4)
    assert found.bound >= found.value * (1 - 1e-4)
    assert len(np.unique(found.columns, axis=1).T) == 8


def test_statistics_that_tell_too_many_values_apart_are_refused() -> None:
    W, P = np.random.default_rng(1).normal(size=(3, 1200)), np.full(1200, 1 / 1200)
    with pytest.raises(TooLarge):
        best_unbiased(Box(P, *box(1.0)), rows=W)


def test_weights_lost_to_rounding_end_a_search_with_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two-way margins of 2^5 under LDP lost them after 28 seconds, and with them the whole plan."""
    solve, rounds = interior_point, itertools.count()

    def fails_later(*arguments: object, **options: object) -> object:
        if next(rounds) == 2:
            raise Infeasible("no weights")
        return solve(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(variances, "interior_point", fails_later)
    prior = Prior.zipf(20).probabilities
    found = best_unbiased(Box(prior, math.exp(-1), math.exp(1)), Limits(1e-5))
    assert next(rounds) == 3
    assert np.allclose(found.weights @ found.columns, 1.0) and 0.5 * found.value < found.bound <= found.value


@pytest.mark.parametrize("shares", [(0.9989, 0.001, 0.0001), (0.5, 0.4999, 0.0001)])
@pytest.mark.parametrize("epsilon", [8.0, 9.0])
def test_columns_that_make_no_channel_are_given_up(shares: tuple[float, ...], epsilon: float) -> None:
    """Solving again on a few columns overflowed where no weights of theirs make a channel."""
    found = best_unbiased(Box(np.array(shares), *box(epsilon)))
    assert (
        np.allclose(found.weights @ found.columns, 1.0) and 0.999 * found.value < found.bound <= found.value
    )
