"""`design`: as good as full enumeration where that can be done, certified, and honest about its bound."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from enumeration import certified, random_budget, random_prior, random_secret, rays
from priorveil.designs import METHODS, methods, table_search
from priorveil.designs.column_generation import Solution
from priorveil.designs.spaces import Box, LdpCone
from priorveil.designs.stopping import Clock
from priorveil.errors import CertificateError, DataNotFound, Infeasible, InvalidInput, InvalidSecret, TooLarge
from priorveil.information import variance
from priorveil.queries import Query
from priorveil.reading.order_information import information_of
from priorveil.studies import datasets
from sample_plans import PRIOR, named_plan

Array = np.ndarray
INF = math.inf

# `rounds` end a search whatever the speed of the machine: so many that each figure that is asserted holds by 0.2 % or
# more, or that more rounds change nothing.

BITS = pv.Prior.joint(dict.fromkeys(itertools.product((0, 1), repeat=5), 1 / 32), tuple("abcde"))


def entropy(posteriors: Array) -> Array:
    return (posteriors * np.log(np.maximum(posteriors, 1e-300))).sum(axis=1)


def random_query(rng: np.random.Generator, d: int) -> pv.Histogram | pv.Sum | pv.Guess | pv.Convex:
    sums = pv.Sum(2.0 * rng.normal(size=d) * 10.0 ** rng.integers(-3, 4) + 5.0)
    return [pv.Histogram(), sums, pv.Guess(), pv.Convex(entropy)][rng.integers(4)]


@pytest.mark.parametrize("budget", [pv.Budget(1.0, 2.0), pv.Budget(1.0, INF), pv.Budget(3.0)])
@pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum([0, 1, 5])], ids=["histogram", "sum"])
def test_arcs_without_a_circle_have_the_error_of_their_channel(budget: pv.Budget, query: Query) -> None:
    """The floats 0.5, 0.3 and 0.2 leave a rest where every value has a report of its own."""
    prior = pv.Prior([0.5, 0.3, 0.2])
    plan = pv.design(prior, budget, query, method="arc")
    assert plan.expected_mse == pytest.approx(query.error(plan.channel, prior), rel=1e-9)


def best_error(plan: pv.Plan, columns: Array) -> float:
    """The least error over all mixtures of `columns`, by one general linear programme."""
    P, query = plan.reference, plan.query
    utility = query.utility(columns, P)
    scale = max(float(np.ptp(utility)), 1e-300)
    solved = scipy.optimize.linprog(
        -(utility - utility.min()) / scale, A_eq=columns.T, b_eq=np.ones(len(P)), method="highs"
    )
    assert solved.status == 0
    return query.ceiling(P) - float(utility.min() - scale * solved.fun)


def exact(plan: pv.Plan, best: float) -> None:
    """Within one part in a million of the best, and never below it."""
    certified(plan)
    rounding = 1e-8 * abs(best) + 1e-9 * plan.no_report  # of the enumeration
    assert plan.expected_mse >= best - rounding
    assert plan.expected_mse <= best * (1 + 1e-6) + rounding
    assert plan.lower_bound <= best + rounding


class TestEnumerated:
    """Random instances against the enumeration of this file, which shares no code with the engine."""

    @pytest.mark.parametrize("seed", range(60))
    def test_value_itself(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 9))
        prior, budget, query = random_prior(rng, d), random_budget(rng), random_query(rng, d)
        plan = pv.design(prior, budget, query)
        if math.isinf(budget.hi):  # the corners of a one-sided box: everything on one value
            columns = budget.lo + (1 - budget.lo) * np.diag(1 / prior.probabilities)
        else:
            columns = corners(prior.probabilities, budget.lo, budget.hi)
        exact(plan, best_error(plan, columns))

    @pytest.mark.parametrize("seed", range(40))
    def test_latent_secrets(self, seed: int) -> None:
        rng = np.random.default_rng(1000 + seed)
        d = int(rng.integers(2, 7))
        prior, budget, query = random_prior(rng, d), random_budget(rng), random_query(rng, d)
        secret = random_secret(rng, prior, int(rng.integers(2, 4)))
        plan = pv.design(prior, budget, query, secret=secret)
        exact(
            plan,
            best_error(
                plan, rays(plan.notion.inequalities(budget, prior, secret), plan.reference.probabilities)
            ),
        )

    @pytest.mark.parametrize("seed", range(24))
    def test_pairwise_notions(self, seed: int) -> None:
        rng = np.random.default_rng(2000 + seed)
        d = int(rng.integers(2, 5))
        prior, query, level = random_prior(rng, d), random_query(rng, d), float(rng.choice([0.5, 1.0, 2.0]))
        notion = [pv.LDP(), pv.Pufferfish(), pv.DI()][seed % 3]
        secret = random_secret(rng, prior) if isinstance(notion, pv.Pufferfish) else None
        if isinstance(notion, pv.DI):
            level += notion.epsilon(pv.Channel(np.ones((d, 1))), prior)
        plan = pv.design(prior, level, query, secret=secret, notion=notion)
        columns = rays(notion.inequalities(pv.Budget(level), prior, secret), prior.probabilities)
        exact(plan, best_error(plan, columns))
        assert plan.certificate.notion == type(notion).__name__
        assert plan.certificate.level <= level

    @pytest.mark.parametrize("seed", range(18))
    def test_sets_of_priors(self, seed: int) -> None:
        """`enumeration` has the least errors; no prior of the hull may have a larger error than the one stated."""
        rng = np.random.default_rng(4000 + seed)
        d = int(rng.integers(2, 5))
        centre = random_prior(rng, d)
        p = centre.probabilities
        known = (
            pv.PriorSet.ball(centre, 0.1),
            pv.PriorSet.interval(p * 0.8, np.minimum(1, p * 1.3)),
            pv.PriorSet([centre, *(random_prior(rng, d) for _ in range(2))]),
        )[seed // 6]
        query = [pv.Histogram(), pv.Sum(rng.normal(size=d) * 100), pv.Guess()][seed % 3]
        plan = pv.design(known, 1.0, query)
        certified(plan)
        # the bound on guesses holds for those who draw between two of them as well
        least = 0.9 if query == pv.Guess() else 1 - 1e-6
        assert plan.lower_bound <= plan.expected_mse and plan.efficiency >= least
        channel, corner = pv.Channel(plan.channel.matrix), known.vertices()
        for share in rng.dirichlet(np.ones(len(corner)), 50):
            inside = pv.Prior(share @ corner + 1e-15)
            assert query.error(channel, inside) <= plan.expected_mse * (1 + 1e-9) + 1e-12

    @pytest.mark.parametrize("seed", range(10))
    def test_distribution(self, seed: int) -> None:
        rng = np.random.default_rng(5000 + seed)
        d = int(rng.integers(2, 7))
        prior, level = random_prior(rng, d), float(rng.choice([0.5, 1.0, 2.0]))
        plan = pv.design(prior, level, pv.Distribution())
        certified(plan)
        assert plan.efficiency >= 0.999
        assert plan.identifiable
        ldp = pv.design(prior, level, pv.Distribution(), notion=pv.LDP())
        certified(ldp)
        assert plan.expected_mse <= ldp.expected_mse * (1 + 1e-9)
        assert ldp.expected_mse <= variance(randomised_response(d, level), prior.probabilities) * (1 + 1e-6)


def corners(P: Array, lo: float, hi: float) -> Array:
    """Vertices of the box: every subset at `hi`, one value in between."""
    found, d, room = [], len(P), (1 - lo) / (hi - lo)
    for inside in itertools.product([0.0, 1.0], repeat=d):
        b = np.array(inside)
        for x in range(d):
            b[x] = (room - (b @ P - b[x] * P[x])) / P[x]
            if -1e-12 <= b[x] <= 1 + 1e-12:
                found.append(b.copy())
            b[x] = inside[x]
    distinct = np.unique(np.round(found, 11), axis=0, return_index=True)[1]
    return lo + (hi - lo) * np.clip(np.array(found)[distinct], 0, 1)


def randomised_response(d: int, level: float) -> Array:
    return (np.ones((d, d)) + math.expm1(level) * np.eye(d)) / (math.exp(level) + d - 1)


def valid_channel(Q: Array, P: Array, lo: float, hi: float) -> Array:
    """`Q` pulled towards its output law until every lift is in `[lo, hi]`."""
    law = P @ Q
    Q, law = Q[:, law > 0], law[law > 0]
    lift = Q / law - 1
    share = min(1.0, (hi - 1) / max(lift.max(), 1e-300), (1 - lo) / max(-lift.min(), 1e-300))
    return (1 + share * lift) * law


class TestBound:
    """`lower_bound` is a theorem: nothing valid gets below it."""

    @given(st.integers(0, 10**6), st.integers(3, 12), st.sampled_from([0.3, 1.0, 2.0, 3.0]))
    @settings(max_examples=20)
    def test_random_channels_and_local_search_fail_to_beat_it(self, seed: int, d: int, level: float) -> None:
        rng = np.random.default_rng(seed)
        prior = random_prior(rng, d)
        query = [pv.Histogram(), pv.Sum(rng.normal(size=d)), pv.Guess(), pv.Distribution()][seed % 4]
        plan = pv.design(prior, level, query)
        P, lo, hi = prior.probabilities, math.exp(-level), math.exp(level)
        error = lambda Q: query.error(pv.Channel.from_weights(Q), prior)  # noqa: E731
        starts = [valid_channel(rng.dirichlet(np.full(d + 1, 0.3), size=d), P, lo, hi) for _ in range(4)]
        starts += [
            valid_channel(np.eye(d), P, lo, hi),
            valid_channel(randomised_response(d, level), P, lo, hi),
        ]
        best = min([*starts, plan.channel.matrix], key=error)
        assert min(map(error, starts)) >= plan.lower_bound * (1 - 1e-12)
        for start in (starts[0], best):
            assert climbed(start, P, lo, hi, error, rng) >= plan.lower_bound * (1 - 1e-12)

    @pytest.mark.parametrize("d", [25, 60])
    @pytest.mark.parametrize("query", [pv.Histogram(), pv.Guess(), "sum"])
    def test_holds_for_stopped_engines(self, d: int, query: object) -> None:
        prior = pv.Prior.zipf(d)
        asked = pv.Sum(np.arange(d)) if query == "sum" else query
        rough = pv.design(prior, 2.0, asked, gap=0.5, method="columns")
        fine = pv.design(prior, 2.0, asked, gap=1e-4, method="columns")
        assert rough.lower_bound <= fine.expected_mse
        assert fine.lower_bound <= rough.expected_mse
        assert fine.efficiency >= 0.9998


def climbed(Q: Array, P: Array, lo: float, hi: float, error, rng: np.random.Generator) -> float:
    """The least error that small valid changes of a channel reach."""
    least, size = error(Q), 0.3
    for _ in range(150):
        step = np.maximum(Q * (1 + size * rng.normal(size=Q.shape)), 1e-12)
        trial = valid_channel(step / step.sum(axis=1, keepdims=True), P, lo, hi)
        reached = error(trial)
        if reached < least and trial.shape == Q.shape:
            Q, least = trial, reached
        else:
            size = max(size * 0.97, 1e-4)
    return least


@cache
def random_plans(seed: int) -> list[pv.Plan]:
    """What `auto` designs for each query, at a random prior and level."""
    rng = np.random.default_rng(seed)
    prior, level = random_prior(rng, 12), float(rng.choice([0.5, 1.0, 2.0]))
    queries = (pv.Histogram(), pv.Sum(np.arange(12)), pv.Guess(), pv.Distribution())
    return [pv.design(prior, level, query) for query in queries]


class TestMethods:
    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("method", sorted(METHODS))
    def test_auto_is_never_worse(self, method: str, seed: int) -> None:
        for auto in random_plans(seed):
            try:
                other = pv.design(auto.reference, auto.budget, auto.query, method=method)
            except Infeasible:
                continue
            certified(other)
            assert other.method == method
            assert auto.expected_mse <= other.expected_mse * (1 + 1e-6)
            assert auto.lower_bound <= other.expected_mse

    @pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum(np.arange(40)), pv.Guess()])
    def test_expected_error_is_that_of_the_channel(self, query: pv.Histogram) -> None:
        prior = pv.Prior.zipf(40)
        for method in ("columns",) if query.kind == "guess" else ("arc", "columns"):
            plan = pv.design(prior, 1.5, query, method=method)
            told = query.error(plan.channel, prior)
            assert plan.expected_mse <= told * (
                1 + 1e-6
            )  # the cells of an arc are a little coarser than its reports
            assert plan.expected_mse == pytest.approx(told, rel=0.02)

    def test_theorem_three_where_it_holds(self) -> None:
        prior = pv.Prior([0.3, 0.3, 0.4])
        for query in (pv.Histogram(), pv.Sum([0, 1, 5]), pv.Guess(), pv.Convex(entropy), pv.Distribution()):
            plan = pv.design(prior, 1.0, query)
            assert plan.method == "closed"
            assert plan.efficiency == pytest.approx(1, abs=1e-9)
            engine = pv.design(prior, 1.0, query, method="columns")
            assert plan.expected_mse == pytest.approx(engine.expected_mse, rel=1e-6)

    @pytest.mark.parametrize(
        "query", [pv.Histogram(), pv.Guess(), pv.Sum([1.0]), pv.Convex(entropy), pv.Distribution()]
    )
    def test_one_value(self, query: pv.Histogram) -> None:
        plan = pv.design([1.0], 1.0, query)
        assert plan.expected_mse == pytest.approx(0, abs=1e-12)
        assert plan.privatize(0) == 0

    @pytest.mark.parametrize(
        "known", [pv.PriorSet.interval([0.2, 0.5], [0.5, 0.8]), pv.PriorSet([[0.2, 0.8], [0.4, 0.6]])]
    )
    @pytest.mark.parametrize("query", [pv.Histogram(), pv.Guess(), pv.Sum([0, 10])])
    def test_two_values_and_a_set_of_priors(self, known: pv.PriorSet, query: pv.Histogram) -> None:
        closed = pv.design(known, 1.0, query)
        engine = pv.design(known, 1.0, query, method="columns")
        certified(closed)
        assert closed.method == "closed"
        assert closed.expected_mse == pytest.approx(engine.expected_mse, rel=1e-6, abs=1e-9)
        assert closed.lower_bound == pytest.approx(closed.expected_mse, rel=1e-6, abs=1e-9)

    def test_identifiable(self) -> None:
        skewed = pv.Prior([0.025, 0.025, 0.025, 0.025, 0.9])
        assert not pv.design(skewed, 1.0, pv.Histogram()).identifiable
        assert pv.design(skewed, 1.0, pv.Distribution()).identifiable
        assert pv.design(skewed, 1.0, pv.Histogram(), method="unary").identifiable
        assert pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Sum([0, 1])).identifiable


class TestLargeDomains:
    def test_a_million_values(self) -> None:
        plan = pv.design(pv.Prior.uniform(10**6), 1.0, pv.Histogram())
        assert plan.method == "arc"
        assert plan.certificate.lip <= 1
        assert plan.efficiency > 0.999
        with pytest.raises(TooLarge):
            _ = plan.channel

    def test_auto_says_what_it_compared(self) -> None:
        plan = pv.design(pv.Prior.zipf(3000), 1.0, pv.Histogram())
        certified(plan)
        assert plan.efficiency > 0.99
        for name in ("arc", "columns"):
            assert f"{name} 0.9" in plan.why
        others = [pv.design(pv.Prior.zipf(3000), 1.0, pv.Histogram(), method=m) for m in ("arc", "hashing")]
        assert all(plan.expected_mse <= other.expected_mse for other in others)

    @pytest.mark.parametrize("notion", [pv.LIP(), pv.LDP()])
    def test_a_convex_gain_of_many_values(self, notion: pv.LIP | pv.LDP) -> None:
        """Values are merged into blocks; a gain of squares loses little against the solver of the histogram."""
        prior, squares = pv.Prior.zipf(1600), pv.Convex(lambda p: (p**2).sum(axis=1))
        plan = pv.design(prior, 1.0, squares, notion=notion, rounds=7)
        certified(plan)
        known = pv.design(prior, 1.0, pv.Histogram(), notion=notion, rounds=7)
        assert known.lower_bound <= plan.expected_mse
        assert plan.no_report - plan.expected_mse > 0.6 * (known.no_report - known.expected_mse)
        assert plan.efficiency > 0.01
        assert plan.expected_mse == pytest.approx(squares.error(plan.channel, prior), rel=1e-9)

    @pytest.mark.parametrize("level", [1.0, 3.0])
    def test_sums_over_many_values(self, level: float) -> None:
        rng = np.random.default_rng(0)
        prior, query = pv.Prior(rng.dirichlet(np.ones(700))), pv.Sum(rng.normal(size=700))
        plan = pv.design(prior, level, query)
        certified(plan)
        assert plan.efficiency > 0.97
        assert query.error(plan.channel, prior) == pytest.approx(plan.expected_mse, rel=1e-9)

    def test_ctrl_c_while_statistics_of_many_values_are_designed(self) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        prior = pv.Prior.zipf(310)
        plan = pv.design(prior, 1.0, pv.Linear.cumulative(prior), progress=interrupt, rounds=10)
        certified(plan)
        assert plan.expected_mse < 0.9 * plan.no_report

    def test_sums_over_very_many_values(self) -> None:
        """Only the blocks that values are merged into are searched, so it takes seconds."""
        plan = pv.design(pv.Prior.zipf(20_000), 3.0, pv.Sum(range(20_000)), method="columns", rounds=100)
        assert 1 - plan.expected_mse / plan.no_report > 0.999 * (1 - plan.lower_bound / plan.no_report)

    def test_learning_many_values(self) -> None:
        prior = pv.Prior.zipf(320)
        plan = pv.design(prior, 2.0, pv.Distribution())
        certified(plan)
        assert plan.identifiable
        assert math.isfinite(plan.expected_mse)
        unary = pv.design(prior, 2.0, pv.Distribution(), method="unary")
        assert plan.expected_mse <= unary.expected_mse
        ldp = pv.design(prior, 2.0, pv.Distribution(), notion=pv.LDP())
        assert plan.expected_mse <= ldp.expected_mse

    @pytest.mark.parametrize("notion", [pv.LIP(), pv.LDP()])
    def test_unbiased_sum_over_more_values_than_the_engine_learns(self, notion: pv.LIP | pv.LDP) -> None:
        prior, query = pv.Prior.zipf(1_200), pv.Sum(range(1_200), unbiased=True)
        plan = pv.design(prior, 1.0, query, notion=notion, rounds=40)
        assert plan.method == "columns"
        assert plan.efficiency >= 0.95
        assert pv.Plan.from_json(plan.to_json()).expected_mse == plan.expected_mse


class TestDistribution:
    def test_figures(self) -> None:
        equal, skewed = pv.Prior.uniform(6), pv.Prior([0.025, 0.025, 0.025, 0.025, 0.9])
        assert pv.design(equal, 1.0, pv.Distribution()).expected_mse == pytest.approx(4.8, abs=0.05)
        learning = pv.design(skewed, 1.0, pv.Distribution())
        assert learning.expected_mse == pytest.approx(5.8, abs=0.05)
        assert variance(randomised_response(6, 1.0), equal.probabilities) == pytest.approx(16.8, abs=0.05)
        assert variance(randomised_response(5, 1.0), skewed.probabilities) == pytest.approx(11.6, abs=0.05)
        histogram = pv.design(skewed, 1.0, pv.Histogram())
        assert math.isinf(pv.Distribution().error(histogram.channel, skewed))
        assert pv.Histogram().error(learning.channel, skewed) <= 1.04 * histogram.expected_mse

    def test_a_secret_that_hides_the_distribution_is_refused(self) -> None:
        prior = pv.Prior([0.25, 0.25, 0.25, 0.25])
        plan = pv.design(
            prior, 1.0, pv.Distribution(), secret=pv.Secret([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
        )
        certified(plan)
        assert plan.identifiable


class TestRequests:
    """What makes no sense is refused, with the argument."""

    @pytest.mark.parametrize(
        "epsilon", [0, -1.0, 1e-17, 1e21, math.nan, "1", True, pv.Budget(0.0, 1.0), pv.Budget(1.0, 0.0)]
    )
    def test_epsilon(self, epsilon: object) -> None:
        with pytest.raises(InvalidInput):
            pv.design([0.5, 0.3, 0.2], epsilon, pv.Histogram())

    @pytest.mark.parametrize(
        ("query", "argument"),
        [
            (pv.Sum([1, 2]), "values"),
            (pv.Convex(lambda p: -(p**2).sum(axis=1)), "gain"),
            (pv.Convex(lambda p: p), "gain"),
            ("histogram", "query"),
            (None, "query"),
        ],
    )
    def test_query(self, query: object, argument: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            pv.design([0.5, 0.3, 0.2], 1.0, query)
        assert caught.value.argument == argument

    def test_secret(self) -> None:
        with pytest.raises(InvalidInput):
            pv.design([0.5, 0.3, 0.2], 1.0, pv.Histogram(), secret=pv.Secret([[0.5, 0.5], [0.1, 0.9]]))
        with pytest.raises(InvalidSecret):
            pv.design(
                [0.5, 0.3, 0.2], 1.0, pv.Histogram(), secret=pv.Secret([[0.1, 0.1, 0.8], [0.2, 0.1, 0.7]])
            )


class TestSolverFailures:
    """A solver that fails never yields a plan that was not certified."""

    @pytest.mark.parametrize("garbage", ["nan", "truth", "short", "huge"])
    def test_garbage_is_refused(self, garbage: str, monkeypatch: pytest.MonkeyPatch) -> None:
        d = 8
        columns = {
            "nan": np.full((d, d), np.nan),
            "truth": np.eye(d) * d,
            "short": np.full((d, d), 0.5),
            "huge": np.eye(d) * 1e300,
        }[garbage]
        broken = Solution(columns, np.full(d, 1 / d), 1.0, 0.0, 0.0, 1, True, np.zeros(d))
        monkeypatch.setattr("priorveil.designs.table_search.best_histogram", lambda *_, **__: broken)
        with pytest.raises(CertificateError):
            pv.design([0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05], 1.0, pv.Histogram(), method="columns")

    def test_a_false_bound_never_exceeds_the_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        silent = Solution(np.ones((1, 8)), np.ones(1), 0.0, -9.0, 0.0, 1, True, np.zeros(8))
        monkeypatch.setattr("priorveil.designs.table_search.best_histogram", lambda *_, **__: silent)
        certified(
            pv.design([0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05], 1.0, pv.Histogram(), method="columns")
        )

    def test_a_solver_that_raises_is_not_swallowed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> Solution:
            raise RuntimeError("out of memory")

        monkeypatch.setitem(METHODS, "columns", replace(METHODS["columns"], make=fail))
        with pytest.raises(RuntimeError):
            pv.design(pv.Prior.zipf(5), 1.0, pv.Histogram(), method="columns")


class TestInterrupts:
    @pytest.mark.parametrize("query", [pv.Histogram(), pv.Sum(np.arange(40.0)), pv.Distribution()])
    def test_ctrl_c_returns_the_best_certified_plan(self, query: pv.Histogram) -> None:
        seen: list[tuple[int, float, float]] = []

        def interrupt(count: int, error: float, bound: float) -> None:
            seen.append((count, error, bound))
            raise KeyboardInterrupt

        plan = pv.design(pv.Prior.zipf(40), 1.0, query, progress=interrupt)
        certified(plan)
        assert len(seen) == 1
        assert seen[0][2] <= seen[0][1] * (1 + 1e-9)

    def test_told_to_stop(self) -> None:
        plan = pv.design(pv.Prior.zipf(60), 3.0, pv.Histogram(), should_stop=lambda: True)
        certified(plan)
        assert "stopped early" in plan.why

    def test_progress_falls_towards_the_bound(self) -> None:
        seen: list[tuple[int, float, float]] = []
        plan = pv.design(
            pv.Prior.zipf(60), 2.0, pv.Histogram(), gap=1e-5, progress=lambda *step: seen.append(step)
        )
        errors, bounds = [s[1] for s in seen], [s[2] for s in seen]
        assert errors == sorted(errors, reverse=True)
        assert bounds == sorted(bounds)
        assert plan.expected_mse <= errors[-1] * (1 + 1e-6)


@cache
def work_and_income() -> tuple[tuple[str, ...], Array]:
    """How many people of the survey are in each of eight income brackets (rows) and four work classes."""
    try:
        census = datasets.acs()
    except DataNotFound as absent:
        pytest.skip(str(absent))
    counts = Counter(zip(census.income, census.work, strict=True))
    table = [[counts[bracket, work] for work in datasets.WORK_CLASSES] for bracket in census.brackets]
    return datasets.WORK_CLASSES, np.array(table, dtype=float)


class TestSurvey:
    """Work class is reported, income is the secret."""

    @pytest.mark.parametrize("query", [pv.Histogram(), pv.Guess(), pv.Sum([0, 1, 2, 3]), pv.Distribution()])
    def test_four_work_classes_and_eight_brackets(self, query: pv.Histogram) -> None:
        classes, table = work_and_income()
        assert table.shape == (8, 4)
        joint = table / table.sum()
        prior = pv.Prior(joint.sum(axis=0), labels=classes)
        secret = pv.Secret.from_joint(joint)
        plan = pv.design(prior, 0.1, query, secret=secret)
        if isinstance(query, pv.Distribution):
            certified(plan)
            assert plan.efficiency >= 0.999
        else:
            A = pv.LIP().inequalities(pv.Budget(0.1), prior, secret)
            exact(plan, best_error(plan, rays(A, prior.probabilities)))


def test_no_extreme_column_of_a_rare_value_is_lost() -> None:
    """Column generation finds a certified plan with this error, which no bound may exceed."""
    prior, query = [1e-11, 0.3, 0.3, 0.2, 0.2 - 1e-11], pv.Sum([1e5 * 10**0.5, 0, 1, 2, 3])
    plan = pv.design(prior, 0.5, query)
    assert "exact" in plan.why
    assert plan.lower_bound <= plan.expected_mse == pytest.approx(2.052949, abs=1e-6)


def test_a_gain_that_has_changed_is_computed_again() -> None:
    factor = [1.0]
    query = pv.Convex(lambda posteriors: factor[0] * (posteriors**2).sum(axis=1))
    before = pv.design([0.1, 0.2, 0.3, 0.4], 1.0, query)
    factor[0] = 10.0
    after = pv.design([0.1, 0.2, 0.3, 0.4], 1.0, query)
    assert after.expected_mse == pytest.approx(10 * before.expected_mse)
    assert after.lower_bound == pytest.approx(10 * before.lower_bound)


def test_small_budgets() -> None:
    """A solver's rounding errors are large beside them, and are mixed away."""
    plan = pv.design(np.random.default_rng(5).dirichlet(np.ones(100)), 1e-4, pv.Sum(range(100)), rounds=10)
    assert plan.certificate.lip <= 1e-4
    assert 0.5 * (plan.no_report - plan.lower_bound) < plan.no_report - plan.expected_mse


def test_a_robust_design_tells_and_survives_an_interrupt() -> None:
    ball, seen = pv.PriorSet.ball(pv.Prior([0.4, 0.3, 0.2, 0.1]), 0.05), []

    def interrupt(count: int, error: float, bound: float) -> None:
        seen.append((error, bound))
        raise KeyboardInterrupt

    plan = pv.design(ball, 1.0, pv.Sum([0, 1, 2, 3]), progress=interrupt)
    assert len(seen) == 1
    assert plan.certificate.lip <= 1.0
    assert plan.lower_bound <= plan.expected_mse <= seen[0][0] * (1 + 1e-6)


class TestLimitsBeyondTheBox:
    """Sets of priors and secrets: they stop when told to, and what they return is certified and proven."""

    QUERIES = (pv.Histogram(), pv.Sum(list(range(40))), pv.Guess())

    @staticmethod
    def several(size: int) -> pv.PriorSet:
        return pv.PriorSet([pv.Prior.zipf(size), pv.Prior.uniform(size), pv.Prior.zipf(size, 0.5)])

    @staticmethod
    def learner(size: int) -> dict[str, object]:
        """A secret that changes what may be said, and so the cone."""
        rows = np.random.default_rng(5).dirichlet(np.ones(size), size=size)
        return {"prior": pv.Prior(rows.mean(axis=0)), "secret": pv.Secret(rows)}

    @pytest.mark.parametrize("query", QUERIES)
    def test_a_set_asks_tells_and_stops_at_once(self, query: pv.Histogram) -> None:
        asked, told = [], []

        def stop() -> bool:
            asked.append(1)
            return True

        known, limits = self.several(40), {"should_stop": stop, "progress": lambda *step: told.append(step)}
        plan = pv.design(known, 1.0, query, method="columns", **limits)
        assert asked and len(told) == 1
        assert told[0][2] <= told[0][1]
        assert plan.certificate.lip <= 1.0
        assert 0 <= plan.lower_bound <= plan.expected_mse < plan.no_report
        assert "stopped early" in plan.why
        best = pv.design(known, 1.0, query, should_stop=stop)
        assert best.certificate.lip <= 1.0 and best.expected_mse <= plan.expected_mse

    def test_a_set_goes_no_further_than_the_gap(self) -> None:
        told: list[tuple[int, float, float]] = []
        plan = pv.design(self.several(16), 1.0, pv.Guess(), gap=0.3, progress=lambda *step: told.append(step))
        assert plan.efficiency >= 0.7 - 1e-9
        left = [(error - bound) / (plan.no_report - bound) for _, error, bound in told]
        assert all(share > 0.3 for share in left[:-1])
        assert "proven" in plan.why

    def test_a_polytope_goes_no_further_than_the_gap(self) -> None:
        ball, told = pv.PriorSet.ball(pv.Prior.zipf(5), 0.05), []
        fine = pv.design(ball, 1.0, pv.Histogram())
        plan = pv.design(ball, 1.0, pv.Histogram(), gap=0.5, progress=lambda *step: told.append(step))
        left = [(error - bound) / (plan.no_report - bound) for _, error, bound in told]
        assert all(share > 0.5 for share in left[:-1])
        assert plan.lower_bound <= fine.expected_mse <= plan.expected_mse * (1 + 1e-9)

    @pytest.mark.parametrize("listed", [4, 20])
    def test_ctrl_c_over_a_set_returns_a_certified_plan(self, listed: int) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        plan = pv.design(self.several(listed), 1.0, pv.Guess(), progress=interrupt)
        assert plan.certificate.lip <= 1.0
        assert plan.lower_bound <= plan.expected_mse < plan.no_report

    def test_the_lower_bound_of_a_stopped_design_is_proven(self) -> None:
        best = pv.design(self.several(6), 1.0, pv.Histogram())
        for patience in (0, 3, 10):
            stop = iter([False] * patience + [True] * 10**4).__next__
            stopped = pv.design(self.several(6), 1.0, pv.Histogram(), should_stop=stop)
            assert stopped.lower_bound <= best.expected_mse * (1 + 1e-9)
            assert stopped.expected_mse >= best.lower_bound * (1 - 1e-9)
            assert stopped.certificate.lip <= 1.0

    @pytest.mark.parametrize("size", [6, 11])
    def test_learning_behind_a_secret_stops_at_once(self, size: int) -> None:
        asked = []

        def stop() -> bool:
            asked.append(1)
            return True

        plan = pv.design(epsilon=1.0, query=pv.Distribution(), should_stop=stop, **self.learner(size))
        assert asked
        assert plan.certificate.lip <= 1.0
        assert plan.identifiable
        assert 0 <= plan.lower_bound <= plan.expected_mse < math.inf
        if size == 6:
            best = pv.design(epsilon=1.0, query=pv.Distribution(), **self.learner(size))
            assert best.expected_mse <= plan.expected_mse
            assert plan.lower_bound <= best.expected_mse

    def test_learning_behind_a_secret_keeps_gap_and_tells(self) -> None:
        told: list[tuple[int, float, float]] = []
        loose = pv.design(
            epsilon=1.0,
            query=pv.Distribution(),
            gap=0.5,
            progress=lambda *step: told.append(step),
            **self.learner(6),
        )
        fine = pv.design(epsilon=1.0, query=pv.Distribution(), **self.learner(6))
        assert told[-1][2] <= told[-1][1]
        assert loose.lower_bound <= fine.expected_mse <= loose.expected_mse
        assert loose.lower_bound >= 0.5 * loose.expected_mse * (1 - 1e-6)

    @pytest.mark.parametrize("query", [pv.Histogram(), pv.Guess(), pv.Sum(list(range(30)))])
    def test_a_secret_with_too_many_columns_stops_at_once(self, query: pv.Histogram) -> None:
        plan = pv.design(epsilon=1.0, query=query, should_stop=lambda: True, **self.learner(30))
        assert plan.certificate.lip <= 1.0
        assert plan.lower_bound <= plan.expected_mse < plan.no_report

    @pytest.mark.parametrize("notion", [pv.LIP(), pv.LDP(), pv.Pufferfish()])
    def test_learning_behind_a_secret_with_too_many_columns(self, notion: pv.LIP) -> None:
        """No plan is worse than that of LDP for the value itself, which protects any secret."""
        known, query = self.learner(16), pv.Sum(range(16), unbiased=True)
        plan = pv.design(epsilon=1.0, query=query, notion=notion, method="columns", rounds=20, **known)
        value = pv.design(known["prior"], 1.0, query, notion=pv.LDP())
        assert notion.epsilon(plan.channel, plan.prior, plan.secret) <= 1.0
        assert 0 < plan.lower_bound <= plan.expected_mse <= value.expected_mse * (1 + 1e-4)

    @pytest.mark.parametrize("query", [pv.Sum(range(16), unbiased=True), pv.Distribution()])
    def test_learning_over_a_set_is_nearly_as_good_as_for_one_prior(self, query: pv.Linear) -> None:
        prior = pv.Prior.zipf(16)
        one, several = (
            pv.design(known, 1.0, query, rounds=20) for known in (prior, pv.PriorSet.ball(prior, 0.01))
        )
        assert several.certificate.lip <= 1.0
        assert one.lower_bound <= several.expected_mse <= 1.15 * one.expected_mse
        assert several.efficiency >= 0.85

    @pytest.mark.parametrize(
        ("query", "more"), [(pv.Sum(range(16), unbiased=True), 7e-3), (pv.Distribution(), 1e-3)]
    )
    def test_ldp_of_the_value_is_nearly_the_same_for_a_set(self, query: pv.Linear, more: float) -> None:
        prior = pv.Prior.zipf(16)
        one, several = (
            pv.design(known, 1.0, query, notion=pv.LDP(), rounds=30)
            for known in (prior, pv.PriorSet.ball(prior, 0.01))
        )
        # the error is that under the worst prior of the ball: of the sum it is 0.56 % larger, with a proof
        assert one.lower_bound <= several.expected_mse <= one.expected_mse * (1 + more)
        assert several.efficiency >= 0.98


@pytest.mark.parametrize("notion", [pv.LIP(), pv.LDP()])
def test_unbiased_statistics_that_are_the_same_for_all_reload(notion: pv.LIP) -> None:
    plan = pv.design(pv.Prior([0.1, 0.2, 0.3, 0.4]), 1.0, pv.Sum([5] * 4, unbiased=True), notion=notion)
    assert plan.no_report == plan.expected_mse == 0
    assert pv.Plan.from_json(plan.to_json()) == plan


def test_an_error_that_rounds_below_zero_is_zero() -> None:
    """A secret that every report may tell all about: the bound on the worst error was -6.5e-17."""
    rng = np.random.default_rng(2)
    prior = pv.Prior.from_counts(rng.integers(5, 50, 4))
    secret = pv.Secret.from_joint(rng.dirichlet([50, 50], 4).T * prior.probabilities)
    ball, query = pv.PriorSet.ball(prior, 0.02), pv.Linear.cumulative(prior)
    plan = pv.design(ball, pv.Budget(1.0, 2.0), query, secret=secret)
    assert plan.expected_mse >= 0
    assert pv.Plan.from_json(plan.to_json()).expected_mse == plan.expected_mse


def lopsided() -> tuple[pv.Prior, pv.Budget, pv.Sum, pv.Secret]:
    """A column that speaks for the second value alone goes a million times as far as the others."""
    T = [[0.0012, 0.0, 0.0026, 0.9962], [0.1343, 1.11e-06, 0.8568, 0.00889889]]
    prior = 0.9 * np.array(T[0]) + 0.1 * np.array(T[1])
    values = [-0.2685787840895058, 0.14163623727634908, -0.01278195896670221, -0.6950254349177762]
    return pv.Prior(prior / prior.sum()), pv.Budget(math.inf, 0.013), pv.Sum(values), pv.Secret(T)


def test_a_rare_value_that_may_be_told_is_no_obstacle() -> None:
    prior, budget, query, secret = lopsided()
    plan = pv.design(prior, budget, query, secret=secret)
    assert plan.certificate.lip_upper <= 0.013
    assert plan.expected_mse < plan.no_report * 0.999 and plan.efficiency > 1 - 1e-6


def test_where_columns_are_lost_to_rounding_others_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    prior, budget, query, secret = lopsided()
    best = pv.design(prior, budget, query, secret=secret)
    listed = table_search.extreme_rays
    monkeypatch.setattr(table_search, "extreme_rays", lambda *given, **more: listed(*given, **more)[:2])
    plan = pv.design(prior, budget, query, secret=secret)
    assert plan.certificate.lip_upper <= 0.013
    assert plan.lower_bound <= best.expected_mse * (1 + 1e-9)
    assert plan.expected_mse == pytest.approx(best.expected_mse, rel=1e-3)


class TestLinear:
    """General statistics: the best channel against one linear programme over all extreme columns."""

    @staticmethod
    def least(prior: pv.Prior, query: pv.Linear, rays: np.ndarray) -> float:
        """The least error of any mixture of the columns."""
        gains = query.utility(rays, prior)
        found = scipy.optimize.linprog(-gains, A_eq=rays.T, b_eq=np.ones(len(prior)), method="highs")
        return query.ceiling(prior) + float(found.fun)

    @pytest.mark.parametrize(
        "matrix",
        [
            np.tri(6),
            [
                [1, 1, 1, 0, 0, 0],
                [0, 0, 0, 1, 1, 1],
                [1, 0, 0, 1, 0, 0],
                [0, 1, 0, 0, 1, 0],
                [0, 0, 1, 0, 0, 1],
            ],
            [[1, 2, 0, 0, 1, 5], [0, 1, 0, 3, 0, -1]],
        ],
    )
    def test_it_is_the_optimum(self, matrix: object) -> None:
        prior, query = pv.Prior.zipf(6), pv.Linear(matrix)
        P = prior.probabilities
        lip = pv.design(prior, 1.0, query)
        best = self.least(prior, query, Box(P, math.exp(-1), math.e).vertices())
        assert lip.certificate.lip <= 1.0
        assert lip.expected_mse == pytest.approx(best, rel=1e-9)
        assert lip.lower_bound == pytest.approx(best, rel=1e-9)
        ldp = pv.design(prior, 1.0, query, notion=pv.LDP())
        best = self.least(prior, query, LdpCone(P, math.e).vertices())
        assert ldp.certificate.ldp <= 1.0
        assert ldp.expected_mse == pytest.approx(best, rel=1e-9)

    def test_a_secret_and_a_set_of_priors(self) -> None:
        secret = pv.Secret(np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]))
        prior, query = pv.Prior([0.35, 0.3, 0.35]), pv.Linear(np.tri(3))
        plan = pv.design(prior, 0.5, query, secret=secret, notion=pv.Pufferfish())
        assert plan.certificate.level <= 0.5
        assert plan.lower_bound == pytest.approx(plan.expected_mse, rel=1e-9)
        members = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]
        robust = pv.design(pv.PriorSet(members), 1.0, query)
        assert robust.lower_bound == pytest.approx(robust.expected_mse, rel=1e-6)
        assert all(robust.expected_mse >= pv.design(p, 1.0, query).lower_bound for p in members)

    def test_ldp_on_32_values_beats_simple_mechanisms(self) -> None:
        prior, query = pv.Prior.uniform(32), pv.Linear(np.tri(32))
        plan = pv.design(prior, 1.0, query, notion=pv.LDP(), rounds=15)
        simple = pv.design(prior, 1.0, query, notion=pv.LDP(), method="subset")
        assert plan.certificate.ldp <= 1.0
        assert plan.no_report - plan.expected_mse > 5 * (plan.no_report - simple.expected_mse)

    def test_more_values_than_can_be_listed(self) -> None:
        plan = pv.design(pv.Prior.uniform(16), 1.0, pv.Linear(np.tri(16)), rounds=30)
        assert plan.certificate.lip <= 1.0
        assert plan.lower_bound <= plan.expected_mse < plan.no_report

    @pytest.mark.parametrize(
        ("prior", "matrix", "epsilon", "efficiency"),
        [
            (pv.Prior.uniform(32), np.tri(32), 1.0, 0.975),
            (pv.Prior.uniform(32), np.tri(32), 2.0, 0.995),
            (pv.Prior.zipf(32), np.tri(32), 1.0, 0.98),
            (BITS, pv.Linear.margins(BITS, itertools.combinations("abcde", 2)).matrix.rows, 1.0, 0.96),
        ],
    )
    def test_much_is_proven_for_32_values(
        self, prior: pv.Prior, matrix: np.ndarray, epsilon: float, efficiency: float
    ) -> None:
        plan = pv.design(prior, epsilon, pv.Linear(matrix), rounds=200)
        assert plan.certificate.lip <= epsilon
        assert plan.efficiency >= efficiency

    @pytest.mark.parametrize(
        "query", [pv.Sum([0, 1, 5, 2], unbiased=True), pv.Linear(np.tri(4), unbiased=True)]
    )
    def test_unbiased_statistics(self, query: pv.Linear) -> None:
        prior, secret = pv.Prior([0.4, 0.3, 0.2, 0.1]), pv.Secret([[0.7, 0.3, 0, 0], [0.1, 0.3, 0.4, 0.2]])
        around = pv.PriorSet([prior, pv.Prior([0.3, 0.3, 0.2, 0.2])])
        for known, epsilon, others in (
            (prior, 0.5, {}),
            (prior, pv.Budget(0.5, 0.7), {}),
            (prior, 0.5, {"notion": pv.LDP()}),
            (pv.Prior.uniform(4), 0.5, {"notion": pv.DI()}),
            (prior, 0.5, {"secret": secret}),
            (prior, 0.5, {"secret": secret, "notion": pv.Pufferfish()}),
            (around, 0.5, {}),
        ):
            plan = pv.design(known, epsilon, query, **others)
            whole = pv.design(known, epsilon, pv.Distribution(), **others)
            assert plan.certificate.level <= 0.7 if others == {} else plan.certificate.level <= 0.5
            own_error = query.error(plan.channel, plan.reference)
            assert own_error <= query.error(whole.channel, plan.reference) * (1 + 1e-6)
            assert plan.efficiency >= 1 - 2e-6
            assert (plan.std_error(1) ** 2).sum() == pytest.approx(own_error, rel=1e-6)
            # That of a set is the error of its worst prior, which the reference is only close to.
            assert plan.expected_mse == pytest.approx(own_error, rel=1e-7 if known is around else 1e-9)

    @pytest.mark.parametrize(("levels", "proven"), [((6, 5, 4), 0.8), ((11, 11, 10), 0.0)])
    def test_margins_of_many_cells_that_lean_on_the_prior(
        self, levels: tuple[int, ...], proven: float
    ) -> None:
        """The search starts from columns that learn the margins; beyond 1,000 cells these are the answer."""
        shares = np.random.default_rng(1).dirichlet(np.full(math.prod(levels), 3.0))
        prior = pv.Prior.joint(dict(zip(np.ndindex(levels), shares, strict=True)), names=("a", "b", "c"))
        query = pv.Linear.margins(prior, [("a",), ("b",), ("c",)])
        plan = pv.design(prior, 1.0, query, rounds=40)
        assert plan.certificate.lip <= 1.0 and plan.efficiency > proven
        assert plan.expected_mse == pytest.approx(query.error(plan.channel, prior), rel=1e-9)
        assert plan.lower_bound <= plan.expected_mse < 0.97 * plan.no_report

    @pytest.mark.parametrize("size", [400, 1_500])
    def test_cumulative_shares_of_many_values_that_lean_on_the_prior(self, size: int) -> None:
        """Neighbouring values are merged into blocks; the error and the bound are those of all the values."""
        prior = pv.Prior.zipf(size)
        query = pv.Linear.cumulative(prior)
        plan = pv.design(prior, 1.0, query, rounds=10)
        assert plan.certificate.lip <= 1.0 and plan.efficiency > 0.5  # what is proven without any search
        assert plan.expected_mse == pytest.approx(query.error(plan.channel, prior), rel=1e-9)
        assert plan.lower_bound <= plan.expected_mse < 0.81 * plan.no_report

    def test_more_values_than_unbiased_statistics_are_designed_for(self) -> None:
        prior = pv.Prior.zipf(1_200)
        plan = pv.design(prior, 1.0, pv.Linear.cumulative(prior, unbiased=True), rounds=10)
        assert plan.method == "arc" and "at most 1,000 cells" in plan.why

    @pytest.mark.parametrize("size", [60, 310])
    def test_statistics_that_lean_on_the_prior_under_ldp(self, size: int) -> None:
        """Randomised response on two halves is the best known plan for cumulative shares of equal values."""
        prior = pv.Prior.uniform(size)
        query = pv.Linear.cumulative(prior)
        plan = pv.design(prior, 1.0, query, notion=pv.LDP(), rounds=25)
        halves = np.repeat(np.array([[math.e, 1.0], [1.0, math.e]]) / (1 + math.e), size // 2, axis=0)
        assert plan.certificate.ldp <= 1.0 and plan.efficiency > 0.5  # what is proven without any search
        assert plan.no_report - plan.expected_mse > 0.9 * (
            plan.no_report - query.error(pv.Channel(halves), prior)
        )
        assert plan.expected_mse == pytest.approx(query.error(plan.channel, prior), rel=1e-9)

    @pytest.mark.parametrize("secret", [False, True])
    def test_sums_under_ldp_are_proven_at_any_size(self, secret: bool) -> None:
        """Whatever the secret is: LDP is about the value."""
        prior = pv.Prior.zipf(100)
        parts = prior.probabilities * np.equal.outer([0, 1], np.arange(100) % 2)
        behind = pv.Secret(parts / parts.sum(axis=1, keepdims=True)) if secret else None
        plan = pv.design(prior, 1.0, pv.Sum(range(100)), secret=behind, notion=pv.LDP(), gap=1e-4)
        assert plan.certificate.ldp <= 1.0 and plan.efficiency > 0.999

    def test_unbiased_statistics_under_ldp_beat_workload_factorization(self) -> None:
        """Its public code reaches 549.8 for the people themselves, at a uniform prior (McKenna et al. 2020)."""
        groups = [
            np.ravel_multi_index(pair, (2, 2)) for pair in itertools.combinations(np.indices((2,) * 5), 2)
        ]
        query = pv.Linear(np.concatenate([np.eye(4)[:, g.ravel()] for g in groups]), unbiased=True)
        prior = pv.Prior.uniform(32)
        plan = pv.design(prior, 1.0, query, notion=pv.LDP(), rounds=6)
        assert plan.certificate.ldp <= 1.0 and plan.method == "columns"
        assert plan.expected_mse == pytest.approx(query.error(plan.channel, prior), rel=1e-6)
        assert plan.lower_bound <= plan.expected_mse < 380 + query.ceiling(prior)

    def test_unbiased_cumulative_shares_of_many_values(self) -> None:
        """The plan for the distribution has several times as much error for them."""
        prior = pv.Prior.zipf(110)
        query = pv.Linear.cumulative(prior, unbiased=True)
        plan = pv.design(prior, 1.0, query, rounds=2)
        assert plan.certificate.lip <= 1.0 and plan.efficiency > 0.8
        assert plan.expected_mse == pytest.approx(query.error(plan.channel, prior), rel=1e-6)

    def test_what_is_the_same_for_all_needs_no_report(self) -> None:
        plan = pv.design(pv.Prior.uniform(3), 0.1, pv.Linear([[2, 2, 2], [1, 1, 1]], unbiased=True))
        assert plan.expected_mse == plan.lower_bound == 0.0 and plan.channel.matrix.shape == (3, 1)
        assert plan.estimate(plan.tally([0] * 7)).values == pytest.approx([14, 7])

    @pytest.mark.parametrize(
        "known", [pv.Prior.uniform(2), pv.Prior.zipf(4), pv.PriorSet.ball([0.3, 0.7], 0.1)]
    )
    @pytest.mark.parametrize("notion", [pv.LIP(), pv.LDP()])
    def test_no_budget_is_spent_on_it_where_the_answer_leans_on_the_prior(self, known, notion) -> None:
        for method in ("auto", "columns"):
            plan = pv.design(known, 1.0, pv.Sum([3.0] * len(known)), notion=notion, method=method)
            assert plan.certificate.lip == plan.certificate.ldp == 0 and "the same for all" in plan.why
            assert plan.estimate(plan.tally([0] * 7)).values == pytest.approx([21])

    def test_what_is_not_designed_is_refused(self) -> None:
        prior = pv.Prior.uniform(3)
        for method in ("arc", "hashing"):
            with pytest.raises(Infeasible):
                pv.design(prior, 1.0, pv.Linear(np.tri(3)), method=method)
        with pytest.raises(Infeasible):
            pv.design(prior, 1.0, pv.Sum([0, 1, 2], unbiased=True), method="hashing")

    def test_arcs_in_many_orders_know_the_variance_of_statistics(self) -> None:
        prior = pv.Prior.zipf(6)
        for query in (pv.Linear(np.tri(6), unbiased=True), pv.Sum(range(6), unbiased=True)):
            plan = pv.design(prior, 1.0, query, method="arc")
            assert plan.mechanism.kind == "orders" and plan.certificate.lip <= 1.0
            information = np.array([information_of(plan.mechanism).times(unit) for unit in np.eye(6)])
            spread = np.linalg.inv(information) - np.outer(prior.probabilities, prior.probabilities)
            assert plan.expected_mse == pytest.approx(
                np.trace(query.matrix.rows @ spread @ query.matrix.rows.T)
            )
            assert plan.expected_mse <= query.error(plan.channel, prior)  # cells are coarser than reports
            assert (plan.std_error(1) ** 2).sum() == pytest.approx(plan.expected_mse, rel=1e-6)

    def test_more_statistics_than_the_engine_learns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Arcs in many orders are far better than unary encoding."""
        monkeypatch.setattr("priorveil.designs.table_search.MOST_UNBIASED", 100)
        monkeypatch.setattr(methods, "MANY_VALUES", 100)
        prior = pv.Prior.zipf(140)
        query = pv.Linear.cumulative(prior, unbiased=True)
        plan, unary = (pv.design(prior, 1.0, query, method=method) for method in ("auto", "unary"))
        assert plan.method == "arc" and plan.expected_mse < unary.expected_mse / 4

    def test_rows_of_bits_know_their_variance(self) -> None:
        prior, query = pv.Prior.zipf(5), pv.Linear(np.tri(5), unbiased=True)
        for method in ("unary", "subset"):
            plan = pv.design(prior, 1.0, query, method=method)
            assert query.error(plan.channel, prior) <= plan.expected_mse * (1 + 1e-9)

    def test_unary_encoding_knows_its_error(self) -> None:
        prior, query = pv.Prior.zipf(5), pv.Linear(np.tri(5))
        plan = pv.design(prior, 1.0, query, method="unary")
        assert plan.expected_mse == pytest.approx(query.error(plan.channel, prior), rel=1e-9)

    def test_estimates_are_the_statistics(self) -> None:
        query = pv.Linear([[1, 1, 0], [0, 1, 2]], names=("low", "high"))
        plan = pv.design(pv.Prior([0.2, 0.3, 0.5]), 2.0, query)
        tally = plan.tally(plan.privatize([0, 1, 2] * 50, rng=np.random.default_rng(1)))
        found = plan.estimate(tally)
        assert found.labels == ("low", "high") and len(found.std_error) == 2
        posterior = plan.channel.posterior(plan.prior) @ tally.counts
        assert found.values == pytest.approx(query.matrix.rows @ posterior)

    def test_a_plan_file_keeps_the_query(self, tmp_path: Path) -> None:
        query = pv.Linear([[1, 1, 0], [0, 1, 1]], names=("low", "high"))
        plan = pv.design(pv.Prior([0.2, 0.3, 0.5]), 1.0, query)
        plan.save(tmp_path / "plan.json")
        assert pv.Plan.load(tmp_path / "plan.json").query == query


class Entropy(Query):
    """A query that no table of solvers knows: the expected information of a report, in nats."""

    kind = "entropy"

    def utility(self, columns: Array, prior: pv.Prior) -> Array:
        posterior = columns * prior.probabilities
        return entropy(posterior) - float(entropy(prior.probabilities[None])[0])


def test_a_query_without_a_solver_is_not_priced_as_a_histogram() -> None:
    prior = pv.Prior([0.23, *[0.055] * 14])  # too many values to list the extreme columns
    plan = pv.design(prior, 1.0, Entropy(), gap=1e-3)
    same = pv.design(prior, 1.0, pv.Convex(entropy), gap=1e-3)
    assert plan.no_report - plan.expected_mse == pytest.approx(same.no_report - same.expected_mse, rel=1e-2)
    assert plan.lower_bound <= same.expected_mse - same.no_report + plan.no_report
    with pytest.raises(Infeasible):
        pv.design(pv.PriorSet([prior, pv.Prior([1 / 15] * 15)]), 1.0, Entropy())


@pytest.mark.parametrize("method", ["unary", "subset", "arc"])
def test_no_mechanism_states_the_error_of_a_histogram_for_another_query(method: str) -> None:
    """Nor does `auto` prefer it for an error that it does not have."""
    with pytest.raises(Infeasible):
        pv.design(pv.Prior.zipf(8), 1.0, Entropy(), method=method)
    assert named_plan(method).reader.error(Entropy(), PRIOR) is None
    for size in (8, 40):
        plan = pv.design(pv.Prior.zipf(size), 1.0, Entropy(), notion=pv.LDP(), rounds=0)
        assert plan.method in ("columns", "closed")
        assert plan.expected_mse == pytest.approx(Entropy().error(plan.channel, plan.reference), rel=1e-9)


@pytest.mark.parametrize("more", [{"gap": 1e-4}, {"time_limit": 600.0}, {"rounds": 300}], ids=str)
def test_a_search_stops_at_half_a_per_cent_unless_more_is_asked_for(more: dict[str, Any]) -> None:
    prior = pv.Prior.zipf(40)
    plan, better = (pv.design(prior, 2.0, pv.Histogram(), **asked) for asked in ({}, more))
    assert 0.995 <= plan.efficiency < 0.999 < 0.9998 <= better.efficiency


@pytest.mark.parametrize(
    ("query", "notion"),
    [
        (pv.Distribution(), None),
        (pv.Sum(range(40)), None),
        (pv.Linear(np.tri(40)), None),
        (pv.Linear(np.tri(40), unbiased=True), pv.LDP()),
    ],
)
def test_a_design_of_some_rounds_does_not_depend_on_the_clock(
    query: Query, notion: pv.LDP | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> pv.Plan:
        return pv.design(pv.Prior.zipf(40), 1.0, query, notion=notion, method="columns", rounds=6)

    quiet = asked()
    seconds = itertools.count(step=1e3)  # a very slow machine
    monkeypatch.setattr(Clock, "now", lambda clock: float(next(seconds)))
    busy = asked()
    assert (quiet.expected_mse, quiet.lower_bound) == (busy.expected_mse, busy.lower_bound)


def test_rounds_are_a_number() -> None:
    with pytest.raises(InvalidInput) as refused:
        pv.design(pv.Prior.zipf(5), 1.0, pv.Histogram(), rounds=-1)
    assert refused.value.argument == "rounds"


@pytest.mark.parametrize("rounds", [0, 5])
def test_a_search_under_ldp_that_is_cut_short_is_no_worse_than_subset_selection(rounds: int) -> None:
    prior = pv.Prior.zipf(30)
    plan = pv.design(prior, 1.0, pv.Histogram(), notion=pv.LDP(), rounds=rounds)
    assert plan.certificate.ldp <= 1.0
    subsets = pv.design(prior, 1.0, pv.Histogram(), notion=pv.LDP(), method="subset").expected_mse
    assert plan.lower_bound <= plan.expected_mse <= subsets + 1e-9


@pytest.mark.parametrize("size", [60, 150])
def test_a_distribution_is_learnt_by_the_better_of_arcs_and_a_table(size: int) -> None:
    """A table of 150 values has more error than arcs in many orders, however long it is searched for."""
    prior = pv.Prior.zipf(size)
    plan = pv.design(prior, 1.0, pv.Distribution(), rounds=8)
    arcs = pv.design(prior, 1.0, pv.Distribution(), method="arc")
    assert plan.expected_mse <= arcs.expected_mse and arcs.lower_bound <= plan.lower_bound
    assert (plan.method == "arc" or size == 60) and plan.efficiency > 0.93


@pytest.mark.parametrize("seed", [24, 42])
def test_values_that_a_solver_loses_to_rounding_do_not_prevent_a_plan(seed: int) -> None:
    """One common value and dozens of mass 1e-9 or so: then a simple mechanism does, with what is proven of it."""
    rng = np.random.default_rng(seed)
    count, mass = int(rng.integers(12, 60)), 10.0 ** -rng.uniform(7, 12)
    P = np.append(1.0, mass * rng.uniform(0.5, 2, count))
    prior = pv.Prior((P / P.sum()).tolist())
    for query in (pv.Histogram(), pv.Sum(rng.normal(size=len(P))), pv.Linear(rng.normal(size=(3, len(P))))):
        plan = pv.design(prior, 1.0, query, rounds=6)
        assert plan.certificate.lip <= 1.0 and plan.lower_bound <= plan.expected_mse <= plan.no_report


def test_a_solver_that_loses_rare_values_does_not_win_against_arcs() -> None:
    """It returned a plan that reports nothing, without an error."""
    weights = np.append([0.5, 0.5], np.full(21, 5.590456745394196e-12))
    plan = pv.design(pv.Prior((weights / weights.sum()).tolist()), pv.Budget(1, 3), pv.Histogram())
    assert plan.certificate.lip_lower <= 1 and plan.certificate.lip_upper <= 3 and plan.efficiency > 0.99


def test_fewer_columns_are_not_taken_if_rounding_makes_them_worse() -> None:
    """In a direction with hardly any spread the few columns had twice the variance that the solver saw."""
    lower = [0.14990940246666226, 0.12228408156502285, 0.19769228382096, 0.330114232147355]
    upper = [0.2436027790083262, 0.19871163254316213, 0.32124996120905996, 0.5364356272394519]
    query = pv.Linear([[0, 1, 1, 0], [1, 1, 0, 1]], unbiased=True)
    plan = pv.design(pv.PriorSet.interval(lower, upper), 0.3, query)
    assert plan.certificate.lip <= 0.3 and plan.efficiency > 1 - 1e-6
