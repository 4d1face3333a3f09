"""Design for a set of priors that a query leans on: the least error of one report, whichever prior is right.

Reports are read at one prior `p` of the hull of the set: a decoder gives each report the posterior mean under `p`. Its
risk `R(q, p)` under the true prior `q` is linear in `q`, so it is largest at a corner of the set. The error of a
channel is the least of these largest risks. By the minimax theorem that is the largest Bayes risk over the hull,

    min_p max_q R(q, p) = max_p MSE_p,    MSE_p = R(p, p),

since `R` is linear in `q` and convex in the decoder. It is attained by the decoder of the *least favourable prior*,
the `p` on the right, and reports are read there. `MSE_p` is concave in `p`, so this is *not* a corner in general, nor a
member of a finite set.

The cone `A` holds the inequalities of every prior. Under prior `p` a column `q` contributes `phi_p(q)`, and the error
is `MSE_p = no_report_p - sum_y phi_p(q_y)`. Every `phi_p` is convex and homogeneous, so the extreme rays of the cone
serve all priors at once:

    min t   subject to   t >= no_report_k - sum_y lam_y phi_k(r_y)  for every prior k,   sum_y lam_y r_y = 1.

The priors are found by cutting planes: design for a few of the hull, find the least favourable one for that channel,
add it. For any weights `w` on priors of the hull, `sum_k w_k MSE_k` is at most the largest `MSE_p`, which no decoder
beats; its least value over all channels is an ordinary design, whose dual bound is the proven lower bound here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.optimize

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.designs import column_generation
from priorveil.designs.column_generation import Pricing, Utility
from priorveil.designs.cone_pricing import ConeGuessPricing, ConeSquaresPricing
from priorveil.designs.cones import nearby_columns
from priorveil.designs.problem import DesignProblem, Objective
from priorveil.designs.stopping import MOST_ROUNDS, UNLIMITED, Limits, Stop
from priorveil.designs.tolerances import ROUNDING, TOLERANCE
from priorveil.errors import Infeasible
from priorveil.priors import Prior, PriorSet

Oracle = Callable[[Array], Array]

_STEPS = 200  # at most so many steps; they end when the error is within a share `_CLOSE` of the least one
_CLOSE = 1e-7
_LEFT_OUT = 1e-9  # the weight of the prior in the middle where the least favourable one leaves values out


@dataclass(frozen=True)
class WorstPrior:
    """A prior of the hull with error `mse`, and a proven `bound` on that of every other one."""

    prior: Array
    mse: float
    bound: float


@dataclass(frozen=True, eq=False)
class RobustDesign:
    """A channel `Q` (d, K), what it guarantees, and how much better any other could be.

    No prior of the hull has an error above `worst_mse`; no channel of the cone has its largest error below
    `lower_bound`. `worst_prior` attains the largest error (up to the tolerance).
    """

    channel: Array
    worst_mse: float
    lower_bound: float
    worst_prior: Array
    converged: bool


@dataclass(frozen=True)
class SquaredErrorTask:
    """Mean squared error of the posterior mean of `V[:, x]`: rows of `V` (J, d) are the statistics.

    `V = values[None]` is the sum, the identity the histogram. Columns are rows of an array (n, d).
    """

    V: Array

    def risks(self, p: Array, columns: Array) -> Array:
        """What each column adds to the error at each value (n, d), for the decoder made for `p`."""
        mean = (columns @ (self.V * p).T) / (columns @ p)[:, None]
        squares = (self.V**2).sum(axis=0) - 2 * mean @ self.V + (mean**2).sum(axis=1)[:, None]
        return np.asarray(columns * squares)

    def pricing(self, A: Array, P: Array, utility: Utility, priors: Array, stop: Stop) -> Pricing:
        """Pricing of minus the errors over the cone."""
        linear = priors * (self.V**2).sum(axis=0)
        return ConeSquaresPricing(A, P, utility, self.V, priors, stop, linear)


class GuessTask:
    """Probability of a wrong guess."""

    def risks(self, p: Array, columns: Array) -> Array:
        """What each column adds to the error at each value (n, d), for the best guess under `p`."""
        guesses = np.argmax(columns * p, axis=1)
        return np.where(np.arange(len(p)) == guesses[:, None], 0.0, columns)

    def pricing(self, A: Array, P: Array, utility: Utility, priors: Array, stop: Stop) -> Pricing:
        """Pricing of minus the errors over the cone."""
        return ConeGuessPricing(A, P, utility, priors, stop, linear=priors)


Task = SquaredErrorTask | GuessTask


def task_of(problem: DesignProblem) -> Task:
    """The query in the form that the robust design needs."""
    if problem.objective is Objective.GUESS:
        return GuessTask()
    if not problem.query.linear or problem.query.unbiased:
        name = problem.query.kind.capitalize()
        raise Infeasible(f"{name} is designed for one prior: give a Prior, not a PriorSet")
    rows = problem.query.rows(problem.reference)
    if rows is None:
        return SquaredErrorTask(np.eye(problem.size))
    return SquaredErrorTask((rows - rows.min(axis=1, keepdims=True)) / math.sqrt(problem.unit))


class LeastFavourable(NamedTuple):
    """The least favourable prior of a hull, for one channel.

    Reports that are read at `prior` have at most this `error` under every prior of the set. No way of reading has an
    error below `least` under all.
    """

    prior: Prior
    error: float
    least: float


def least_favourable(problem: DesignProblem, channel: Channel) -> LeastFavourable:
    """The least favourable prior of the set of a problem, as far as its decoder is the best one.

    For a guess it need not be: two values are equally likely there, and guessing either may err more under one of the
    priors than drawing between them. So guesses are made for that prior, of those in the game, whose guesses err least.

    Values that the prior leaves out get a little of the one in the middle, as a prior has no zeros. The error is that
    of the prior that is returned.
    """
    known, task = problem.prior, task_of(problem)
    assert isinstance(known, PriorSet)
    columns, in_game = channel.drop_unused().matrix.T, list[Array]()

    def risks_for(p: Array) -> Array:
        in_game.append(p)
        return np.asarray(task.risks(p, columns).sum(axis=0))

    def without_zeros(p: Array) -> Prior:
        left_out = _LEFT_OUT * (p.min() < _LEFT_OUT)
        p = (1 - left_out) * p + left_out * known.centre.probabilities
        return Prior(p / p.sum(), known.domain)

    def error_at(prior: Prior) -> float:
        risk = risks_for(prior.probabilities)
        return float(risk @ known.best(risk))

    worst = worst_of_polytope(risks_for, known.best, problem.P, TOLERANCE)
    is_guess = isinstance(task, GuessTask)
    read_at = [*in_game] if is_guess else [_closer(risks_for, known.best, worst.prior)]
    prior = min(map(without_zeros, read_at), key=error_at)
    error, least = (max(0.0, problem.unit * each) for each in (error_at(prior), worst.mse))
    return LeastFavourable(prior, error, least)


def _closer(risks_for: Callable[[Array], Array], oracle: Oracle, p: Array) -> Array:
    """The least favourable prior more exactly: steps towards the worst corner, each to where `MSE_p` is largest.

    `MSE_p` is flat around its maximum, so that a prior with nearly this error may be read with a larger one.
    """
    for _ in range(_STEPS):
        risk = risks_for(p)
        step = oracle(risk) - p
        if float(risk @ step) <= max(_CLOSE * float(risk @ p), ROUNDING):
            break

        def slope(t: float, start: Array = p, step: Array = step) -> float:
            return float(risks_for(start + t * step) @ step)

        p = p + (1.0 if slope(1.0) >= 0 else scipy.optimize.brentq(slope, 0.0, 1.0)) * step
    return p


def worst_of_polytope(
    risks_for: Callable[[Array], Array], oracle: Oracle, start: Array, tolerance: float
) -> WorstPrior:
    """The least favourable prior of the hull, as the value of a game.

    `risks_for(p)` are the errors at each value (d,) of the decoder made for `p`. One side mixes vertices of the
    polytope, the other decoders. Every decoder's risk is linear in the true prior, so the risk of a mixture of them
    bounds the error of every prior.
    """
    vertices, risks, bound = start[None], risks_for(start)[None], math.inf
    for _ in range(MOST_ROUNDS):
        game = column_generation.mix(np.ones((len(vertices), 1)), vertices @ risks.T)
        prior, risk = game.weights / game.weights.sum() @ vertices, game.shares @ risks
        risk_here, vertex = risks_for(prior), oracle(risk)
        bound = min(bound, float(risk @ vertex))
        if bound - float(risk_here @ prior) <= tolerance:
            break
        vertices, risks = np.vstack([vertices, vertex]), np.vstack([risks, risk_here])
    return WorstPrior(prior, float(risk_here @ prior), bound)


def robust_design(
    A: Array,
    priors: Array,
    task: Task,
    limits: Limits = UNLIMITED,
    *,
    oracle: Oracle,
    rays: Array | None = None,
    least: float = TOLERANCE,
) -> RobustDesign:
    """The channel of the cone `A` with the least error under the least favourable prior of a set.

    `oracle(g)` returns a prior of the set with the largest `g @ p`, and the `priors` (k, d) are some of its hull, their
    mean positive everywhere. `A` has the inequalities of the whole set (those of its vertices).

    Exact where all extreme `rays` of the cone are given; column generation, with weights on the priors, otherwise. It
    stops when no more is unproven than the share of the gain that the `limits` allow (or `least`), at the limits, or on
    ctrl-C with the best so far.

    >>> A = np.array([[-1.0, 3.0], [3.0, -1.0]])
    >>> ends = lambda g: np.where(np.arange(2) == np.argmax(g), 0.8, 0.2)
    >>> best = robust_design(A, np.array([[0.8, 0.2]]), GuessTask(), oracle=ends)
    >>> round(best.worst_mse, 9), round(best.lower_bound, 9)
    (0.25, 0.25)
    >>> best = robust_design(A, np.array([[0.8, 0.2]]), SquaredErrorTask(np.eye(2)), oracle=ends)
    >>> np.round(best.worst_prior, 3), best.converged     # between the vertices, not at one
    (array([0.5, 0.5]), True)
    """
    limits = replace(limits, least=least + ROUNDING)
    inner = replace(limits, progress=None, least=least / 4)
    P = priors.mean(axis=0)
    nearby = nearby_columns(A, P)
    seeds, columns = nearby, nearby
    best, bound, converged = WorstPrior(P, math.inf, math.inf), math.inf, False

    def utility(columns: Array) -> Array:
        return -np.column_stack([task.risks(p, columns) @ p for p in priors])

    def worst_for(channel: Array, start: Array) -> WorstPrior:
        return worst_of_polytope(lambda p: task.risks(p, channel).sum(axis=0), oracle, start, least / 4)

    without_report = worst_for(np.ones((1, len(P))), P).mse
    try:
        for done in range(1, MOST_ROUNDS + 1):
            if rays is not None:
                solution = column_generation.best_mixture(rays, utility)
            else:
                solution = column_generation.solve(
                    task.pricing(A, P, utility, priors, limits.over), seeds, inner
                )
            seeds, bound = solution.pool, min(bound, solution.bound)
            worst = worst_for(solution.channel.T, priors[-1])
            if worst.bound < best.bound:
                best, columns = worst, solution.channel.T
            limits.report(done, -best.bound, max(bound, -best.bound))
            converged = limits.target_reached(-best.bound, bound, -without_report)
            if converged or solution.interrupted or limits.over():
                break
            priors = np.vstack([priors, worst.prior])
    except KeyboardInterrupt:
        if math.isinf(best.bound):  # no design yet
            columns = column_generation.best_mixture(nearby, utility).channel.T
            best = worst_for(columns, P)
    return RobustDesign(columns.T, best.bound, min(-bound, best.bound), best.prior, converged)
