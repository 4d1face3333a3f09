"""Design for a set of priors: the constraints of all of them, and the least error under the worst one.

The cone `A` holds the inequalities of every prior. Under prior `p` a column `q` contributes
`phi_p(q)`, and the error is `MSE_p = no_report_p - sum_y phi_p(q_y)`. Every `phi_p` is convex and
homogeneous, so the extreme rays of the cone serve all priors at once:

    min t   subject to   t >= no_report_k - sum_y lam_y phi_k(r_y)  for every prior k,   sum_y lam_y r_y = 1.

For any weights `w` on the priors, `sum_k w_k MSE_k` is at most the worst error; its least value over all
channels is an ordinary design, whose dual bound is the proven lower bound here.

`MSE_p` is concave in `p`, so over a polytope of priors the worst one is *not* a vertex in general. It
is found by cutting planes: design for a few priors, look for the prior that is worst for that channel, add
it. The decoder made for one prior has a risk that is linear in the true prior and never below the MSE: its
maximum over the set is a proven upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.designs import column_generation
from priorveil.designs.column_generation import Pricing, Utility
from priorveil.designs.cone_pricing import ConeGuessPricing, ConeSquaresPricing
from priorveil.designs.cones import nearby_columns
from priorveil.designs.problem import Objective, Problem
from priorveil.designs.stopping import MOST_ROUNDS, UNLIMITED, Limits, Stop
from priorveil.designs.tolerances import ROUNDING, TOLERANCE
from priorveil.errors import Infeasible
from priorveil.priors import PriorSet

Oracle = Callable[[Array], Array]


@dataclass(frozen=True)
class WorstPrior:
    """A prior with error `mse`, and a proven `bound` on the error of every prior of the set."""

    prior: Array
    mse: float
    bound: float


@dataclass(frozen=True, eq=False)
class RobustDesign:
    """A channel `Q` (d, K), what it guarantees, and how much better any other could be.

    No prior of the set has an error above `worst_mse`; no channel of the cone has its worst error below
    `lower_bound`. `worst_prior` attains the worst error (up to the tolerance).
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


def task_of(problem: Problem) -> Task:
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


def worst_prior(problem: Problem, channel: Channel) -> WorstPrior:
    """The prior of a polytope with the largest error, in units of `problem.unit`, and a proven bound on it."""
    assert isinstance(problem.prior, PriorSet)
    columns, task = channel.drop_unused().matrix.T, task_of(problem)
    return worst_of_polytope(
        lambda p: task.risks(p, columns).sum(axis=0), problem.prior.best, problem.P, TOLERANCE
    )


def worst_of_polytope(
    risks_for: Callable[[Array], Array], oracle: Oracle, start: Array, tolerance: float
) -> WorstPrior:
    """The worst prior of a polytope, as the value of a game.

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
    rays: Array | None = None,
    oracle: Oracle | None = None,
    least: float = TOLERANCE,
) -> RobustDesign:
    """The channel of the cone `A` with the least error under the worst prior of a set.

    Without an `oracle` the set is the finitely many `priors` (k, d). With one it is a polytope: `oracle(g)` returns a
    prior of it with the largest `g @ p`, and the `priors` are some of its members, their mean positive everywhere. `A`
    has the inequalities of the whole set (those of its vertices).

    Exact where all extreme `rays` of the cone are given; column generation, with weights on the priors, otherwise. It
    stops when no more is unproven than the share of the gain that the `limits` allow (or `least`), at the limits, or on
    ctrl-C with the best so far.

    >>> A = np.array([[-1.0, 3.0], [3.0, -1.0]])
    >>> best = robust_design(A, np.array([[0.5, 0.5], [0.2, 0.8]]), GuessTask())
    >>> round(best.worst_mse, 9), round(best.lower_bound, 9)
    (0.25, 0.25)
    >>> interval = lambda g: np.where(np.arange(2) == np.argmax(g), 0.8, 0.2)
    >>> best = robust_design(A, np.array([[0.8, 0.2]]), SquaredErrorTask(np.eye(2)), oracle=interval)
    >>> np.round(best.worst_prior, 3), best.converged     # between the vertices, not at one
    (array([0.5, 0.5]), True)
    """
    limits = replace(limits, least=least + ROUNDING)
    inner = limits if oracle is None else replace(limits, progress=None, least=least / 4)
    P = priors.mean(axis=0)
    nearby = nearby_columns(A, P)
    seeds, columns = nearby, nearby
    best, bound, converged = WorstPrior(P, math.inf, math.inf), math.inf, False

    def utility(columns: Array) -> Array:
        return -np.column_stack([task.risks(p, columns) @ p for p in priors])

    def worst_for(channel: Array, start: Array) -> WorstPrior:
        if oracle is not None:
            return worst_of_polytope(lambda p: task.risks(p, channel).sum(axis=0), oracle, start, least / 4)
        errors = -utility(channel).sum(axis=0)
        return WorstPrior(priors[np.argmax(errors)], float(errors.max()), float(errors.max()))

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
            if oracle is not None or rays is not None:
                limits.report(done, -best.bound, max(bound, -best.bound))
            without_report = float(utility(np.ones((1, len(P)))).min())
            converged = limits.target_reached(-best.bound, bound, without_report)
            if oracle is None or converged or solution.interrupted or limits.over():
                break
            priors = np.vstack([priors, worst.prior])
    except KeyboardInterrupt:
        if math.isinf(best.bound):  # no design yet
            columns = column_generation.best_mixture(nearby, utility).channel.T
            best = worst_for(columns, P)
    return RobustDesign(columns.T, best.bound, min(-bound, best.bound), best.prior, converged)
