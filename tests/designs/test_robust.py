"""Designs for sets of priors: both proven bounds, and enumeration against column generation."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

import priorveil as pv
from priorveil.designs.closed_forms import binary
from priorveil.designs.column_generation import best_mixture, mix
from priorveil.designs.cones import extreme_rays
from priorveil.designs.problem import DesignProblem
from priorveil.designs.robust import (
    GuessTask,
    Oracle,
    SquaredErrorTask,
    Task,
    robust_design,
    task_of,
    worst_of_polytope,
)
from priorveil.designs.stopping import Limits
from priorveil.notes import Note
from priorveil.priors import PriorSet
from references import lip_rows
from strategies import seeds

Array = npt.NDArray[np.float64]


def best_of(priors: Array) -> Oracle:
    """The member of a finite set with the largest mean."""
    return lambda g: np.asarray(priors[np.argmax(priors @ g)])


def risks_of(task: Task, Q: Array) -> Oracle:
    """The errors at each value of the decoder made for a prior, for a channel."""
    return lambda p: np.asarray(task.risks(p, Q.T).sum(axis=0))


def mse(task: Task, p: Array, Q: Array) -> float:
    """The error of channel Q under prior p, by the definition."""
    return float((task.risks(p, Q.T) @ p).sum())


def tasks(rng: np.random.Generator, d: int) -> list[Task]:
    return [SquaredErrorTask(rng.normal(size=(1, d))), SquaredErrorTask(np.eye(d)), GuessTask()]


def box_vertices(lower: Array, upper: Array) -> Array:
    """Vertices of ``lower <= p <= upper``, entries adding up to one."""
    d, found = len(lower), []
    for x in range(d):
        for choice in product((False, True), repeat=d - 1):
            p = np.where(np.insert(choice, x, False), upper, lower)
            p[x] = 1 - np.delete(p, x).sum()
            if lower[x] - 1e-12 <= p[x] <= upper[x] + 1e-12:
                found.append(p)
    return np.unique(np.round(found, 13), axis=0)


def random_set(seed: int, most: int = 5) -> tuple[np.random.Generator, Array, Array]:
    """Random priors and the cone of all their lift bounds."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(2, most)), int(rng.integers(1, 5))
    priors = rng.dirichlet(8 * np.ones(d), size=k) * 0.95 + 0.05 / d
    eps = rng.uniform(0.3, 2)
    return rng, priors, np.vstack([lip_rows(p, np.exp(-eps), np.exp(eps)) for p in priors])


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_two_bounds_meet_and_the_channel_is_allowed(seed: int) -> None:
    rng, priors, A = random_set(seed, most=7)
    for task in tasks(rng, priors.shape[1]):
        rays = extreme_rays(A, priors.mean(axis=0))
        best = robust_design(A, priors, task, oracle=best_of(priors), rays=rays, least=1e-8)
        assert best.converged
        assert best.worst_mse - best.lower_bound < 2e-8
        assert mse(task, best.worst_prior, best.channel) == pytest.approx(best.worst_mse, abs=1e-8)
        assert (A @ best.channel).min() > -1e-9
        np.testing.assert_allclose(best.channel.sum(axis=1), 1.0, atol=1e-10)


@given(seeds)
@settings(max_examples=8, deadline=None)
def test_column_generation_agrees_with_enumeration(seed: int) -> None:
    rng, priors, A = random_set(seed)
    for task in tasks(rng, priors.shape[1]):
        oracle, rays = best_of(priors), extreme_rays(A, priors.mean(axis=0))
        exact = robust_design(A, priors, task, oracle=oracle, rays=rays)
        found = robust_design(A, priors, task, Limits().of_rounds(10), oracle=oracle)
        assert found.worst_mse == pytest.approx(exact.worst_mse, abs=1e-7)
        assert found.lower_bound <= exact.worst_mse + 1e-9
        assert found.lower_bound > exact.worst_mse - 0.02
        assert (A @ found.channel).min() > -1e-9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("task", [GuessTask(), SquaredErrorTask(np.eye(4))], ids=["guess", "histogram"])
def test_a_prior_without_mass_on_a_value_is_priced_too(task: Task) -> None:
    """A corner of a ball or an interval may leave values out; a programme that is scaled by it never ends."""
    priors = np.array([[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]])
    A = np.vstack([lip_rows(p, np.exp(-1.0), np.exp(1.0)) for p in priors])
    oracle, rays = best_of(priors), extreme_rays(A, priors.mean(axis=0))
    exact = robust_design(A, priors, task, oracle=oracle, rays=rays)
    found = robust_design(A, priors, task, Limits().of_rounds(50), oracle=oracle)
    assert found.worst_mse == pytest.approx(exact.worst_mse, abs=1e-7)
    assert exact.worst_mse - 1e-4 < found.lower_bound <= exact.worst_mse + 1e-9


def test_one_prior_is_the_ordinary_design() -> None:
    P = np.array([0.1, 0.2, 0.3, 0.4])
    A = lip_rows(P, np.exp(-1.0), np.exp(1.0))
    rays = extreme_rays(A, P)
    best = robust_design(A, P[None], SquaredErrorTask(np.eye(len(P))), oracle=lambda g: P, rays=rays)
    plain = best_mixture(rays, lambda r: ((P * r) ** 2).sum(axis=1))
    assert best.worst_mse == pytest.approx(1 - plain.value, abs=1e-9)


def test_binary_sets_have_one_channel_for_every_task() -> None:
    lo, hi = np.exp(-1.0), np.exp(1.0)
    ends = np.array([[0.75, 0.25], [0.5, 0.5]])
    A = np.vstack([lip_rows(p, lo, hi) for p in ends])
    Q = binary(A)
    for task in tasks(np.random.default_rng(0), 2):
        rays = extreme_rays(A, ends.mean(axis=0))
        best = robust_design(A, ends, task, oracle=best_of(ends), rays=rays)
        assert mse(task, best.worst_prior, Q) == pytest.approx(best.worst_mse, abs=1e-8)


@given(seeds)
@settings(max_examples=12, deadline=None)
def test_no_channel_of_the_cone_beats_the_lower_bound(seed: int) -> None:
    rng, priors, A = random_set(seed)
    rays = extreme_rays(A, priors.mean(axis=0))
    for task in tasks(rng, priors.shape[1]):
        best = robust_design(A, priors, task, oracle=best_of(priors), rays=rays)
        for _ in range(10):
            weights = mix(rays, rng.normal(size=(len(rays), 1))).weights
            used = weights > 0
            Q = (rays[used] * weights[used, None]).T
            worst = worst_of_polytope(risks_of(task, Q), best_of(priors), priors[0], 1e-9)
            assert worst.bound >= best.lower_bound - 1e-9


def check_over(A: Array, oracle: Oracle, start: Array, task: Task, inside: Array) -> None:
    rays, limits = extreme_rays(A, start.mean(axis=0)), Limits().of_rounds(100)
    best = robust_design(A, start, task, limits, rays=rays, oracle=oracle, least=1e-7)
    assert best.converged
    assert best.lower_bound <= best.worst_mse <= best.lower_bound + 1e-7
    errors = [mse(task, p, best.channel) for p in inside]
    assert max(errors) <= best.worst_mse + 1e-10
    assert mse(task, best.worst_prior, best.channel) >= best.worst_mse - 1e-7
    assert (A @ best.channel).min() > -1e-9


@given(seeds)
@settings(max_examples=5, deadline=None)
def test_intervals_of_priors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    P = rng.dirichlet(10 * np.ones(d)) * 0.8 + 0.2 / d
    lower, upper = P - 0.04, P + 0.05
    vertices = box_vertices(lower, upper)
    A = np.vstack([lip_rows(p, np.exp(-1), np.exp(1)) for p in vertices])
    inside = rng.dirichlet(np.ones(len(vertices)), size=100) @ vertices
    for task in tasks(rng, d):
        check_over(A, PriorSet.interval(lower, upper).best, P[None], task, np.vstack([inside, vertices]))


def test_the_worst_prior_of_a_polytope_is_not_a_vertex() -> None:
    lower, upper = np.array([0.2, 0.2]), np.array([0.8, 0.8])
    vertices = box_vertices(lower, upper)
    A = np.vstack([lip_rows(p, np.exp(-1), np.exp(1)) for p in vertices])
    task = SquaredErrorTask(np.array([[0.0, 1.0]]))
    rays, oracle = extreme_rays(A, vertices.mean(axis=0)), PriorSet.interval(lower, upper).best
    best = robust_design(A, vertices, task, rays=rays, oracle=oracle, least=1e-8)
    assert best.worst_mse > max(mse(task, p, best.channel) for p in vertices) + 0.01
    np.testing.assert_allclose(best.worst_prior, [0.5, 0.5], atol=1e-3)


def test_a_ball_of_priors() -> None:
    P, radius = np.array([0.3, 0.3, 0.4]), 0.05
    unit = np.eye(3)
    vertices = np.array([P + radius * (unit[i] - unit[j]) for i in range(3) for j in range(3) if i != j])
    A = np.vstack([lip_rows(p, np.exp(-1), np.exp(1)) for p in vertices])
    inside = np.random.default_rng(1).dirichlet(np.ones(6), size=100) @ vertices
    for task in tasks(np.random.default_rng(2), 3):
        check_over(A, PriorSet.ball(P, radius).best, P[None], task, inside)


def test_no_column_is_missing_where_inequalities_are_nearly_parallel() -> None:
    """A bound rests on the list of columns, and another channel within the budget must not be better."""
    prior = pv.Prior([2.8e-5, 0.685094, 0.240416, 0.074462])
    known, query = PriorSet.ball(prior, 0.12135), pv.Linear.ranges(prior)
    plan = pv.design(known, 5.0, query, rounds=20)
    problem = DesignProblem.of(known, 5.0, query, None)
    start = np.vstack([prior.probabilities, known.vertices()])
    other = robust_design(
        problem.cone, start, task_of(problem), Limits().of_rounds(3), oracle=known.best, least=1e-8
    )
    assert pv.LIP().epsilon(pv.Channel(other.channel), known) < 5.0 + 1e-9
    assert plan.lower_bound <= problem.unit * other.worst_mse
    assert plan.expected_mse == pytest.approx(plan.lower_bound, rel=1e-4)


SUM_ON_TWO = (
    pv.PriorSet([[0.1241, 0.872, 0.0039], [0.1144, 0.0099, 0.8757]]),
    2.0,
    pv.Sum(values=[-0.924, -0.32, -1.62]),
)
HISTOGRAM_ON_A_BALL = (pv.PriorSet.ball([0.5, 0.3, 0.2], 0.1), 1.0, pv.Histogram())
SUM_ON_ALL = (pv.PriorSet.all(3), 1.0, pv.Sum(values=[0, 1, 2]))


@pytest.mark.parametrize(
    ("known", "epsilon", "query"),
    [SUM_ON_TWO, HISTOGRAM_ON_A_BALL, SUM_ON_ALL],
    ids=["finite", "ball", "a prior with a zero"],
)
def test_the_error_over_a_set_is_that_of_the_estimate(
    known: PriorSet, epsilon: float, query: pv.Linear
) -> None:
    """Nobody knows the true member: each report is read as `estimate` reads it, and errors are those of the corners."""
    plan = pv.design(known, epsilon, query)
    Q, rows = plan.channel.matrix, query.rows(plan.reference)
    W = np.eye(len(Q)) if rows is None else rows
    read = np.array([plan.estimate(plan.tally([y])).values for y in range(Q.shape[1])])
    squares = ((read[None] - W.T[:, None]) ** 2).sum(axis=2)
    errors = known.vertices() @ (Q * squares).sum(axis=1)
    assert errors.max() == pytest.approx(plan.expected_mse, rel=1e-6)
    assert plan.lower_bound <= plan.expected_mse <= plan.no_report and plan.efficiency > 0.999


@pytest.mark.parametrize(
    "known",
    [
        pv.PriorSet.ball([0.25, 0.17, 0.58], 0.2),
        pv.PriorSet.ball([0.09, 0.74, 0.17], 0.1),
        pv.PriorSet([[0.59, 0.27, 0.14], [0.14, 0.27, 0.59]]),
        pv.PriorSet.ball([0.9, 0.05, 0.05], 0.2),
    ],
    ids=["ball", "another", "finite", "no report matters"],
)
def test_the_error_of_a_guess_over_a_set_is_that_of_the_likeliest_value(known: PriorSet) -> None:
    """Whoever guesses the likeliest value under the reading prior errs no more than stated, whatever member is true."""
    plan = pv.design(known, 1.0, pv.Guess())
    Q = plan.channel.matrix
    guesses = np.argmax(plan.reference.probabilities[:, None] * Q, axis=0)
    errors = [
        1 - p @ np.where(np.arange(len(Q))[:, None] == guesses, Q, 0.0).sum(axis=1) for p in known.vertices()
    ]
    assert max(errors) == pytest.approx(plan.expected_mse, rel=1e-9)
    assert plan.lower_bound <= plan.expected_mse <= plan.no_report


@pytest.mark.parametrize(
    ("known", "epsilon", "query"), [SUM_ON_TWO, HISTOGRAM_ON_A_BALL], ids=["finite", "ball"]
)
def test_intervals_over_a_set_hold_for_its_members(known: PriorSet, epsilon: float, query: pv.Linear) -> None:
    """With a million people noise is small, and what is left is the bias under the true member."""
    plan = pv.design(known, epsilon, query)
    for p in known.vertices():
        reports = np.repeat(
            np.arange(plan.channel.matrix.shape[1]), np.rint(1e6 * (p @ plan.channel.matrix)).astype(int)
        )
        estimate = plan.estimate(plan.tally(reports))
        truth = estimate.people * (
            p if query.rows(plan.reference) is None else query.rows(plan.reference) @ p
        )
        low, high = estimate.interval()
        assert ((low <= truth) & (truth <= high)).all()
        single = [estimate[label].interval() for label in estimate.labels]
        np.testing.assert_allclose(np.transpose(single), [low, high])
        assert estimate.contrast(np.ones(len(truth))).interval()[0] <= truth.sum() + 1e-6
        assert estimate.bias is not None and Note("leansOnSet") in estimate.notes
        assert estimate.prior_check == pytest.approx(1.0, abs=0.01) and estimate.warning is None


def reports_of(plan: pv.Plan, p: Array, people: int, rng: np.random.Generator) -> pv.Estimate:
    """The estimate of as many people, drawn from a prior."""
    return plan.estimate(plan.tally(plan.privatize(rng.choice(len(p), people, p=p), rng)))


@pytest.mark.parametrize(
    ("known", "epsilon", "query", "wrong"),
    [
        (pv.PriorSet([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]]), 1.0, pv.Sum(values=[0, 1, 2]), [0.2, 0.2, 0.6]),
        (*HISTOGRAM_ON_A_BALL, [0.2, 0.3, 0.5]),
    ],
    ids=["finite", "ball"],
)
def test_reports_can_contradict_a_whole_set(
    known: PriorSet, epsilon: float, query: pv.Linear, wrong: list[float]
) -> None:
    """No prior of the set explains the estimate of people from outside it; those of a member rarely fail the check.

    Of 200 surveys of a member, 8 or more have p <= 0.01 by chance with probability 0.001 at most.
    """
    plan, rng = pv.design(known, epsilon, query), np.random.default_rng(6)
    contradicted = reports_of(plan, np.array(wrong), 20_000, rng)
    assert contradicted.prior_check is not None and contradicted.prior_check < 1e-6
    assert contradicted.unbiased_difference is not None and contradicted.unbiased_difference > 5
    assert contradicted.warning == Note("contradictedPrior")
    for p in known.vertices()[:2]:
        checks = [reports_of(plan, p / p.sum(), 500, rng).prior_check or 0.0 for _ in range(200)]
        assert sum(check <= 0.01 for check in checks) < 8


@pytest.mark.parametrize("p", PriorSet.ball([0.5, 0.3, 0.2], 0.1).vertices().tolist())
def test_statistics_of_an_estimate_over_a_set_allow_for_its_bias(p: list[float]) -> None:
    known = PriorSet.ball(pv.Prior.cells([0, 1, 3, 7], [0.5, 0.3, 0.2]), 0.1)
    plan = pv.design(known, 1.0, pv.Histogram())
    counts = np.rint(1e6 * (np.array(p) @ plan.channel.matrix)).astype(int)
    estimate = plan.estimate(plan.tally(np.repeat(np.arange(len(counts)), counts)))
    first, second, third = plan.labels
    low, high = estimate.ratio([first], [second, third]).interval()
    assert low <= p[0] / (p[1] + p[2]) <= high
    middles = np.array([0.5, 2.0, 5.0])
    variance = np.array(p) @ middles**2 - (np.array(p) @ middles) ** 2
    low, high = estimate.variance(middles.tolist()).interval()
    assert low <= variance <= high
    low, high = estimate.quantile(0.5).interval()
    cell = int(np.searchsorted(np.cumsum(p), 0.5))
    assert low <= [0, 1, 3][cell] and [1, 3, 7][cell] <= high
