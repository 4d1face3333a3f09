"""Learning a distribution over many values: arcs in a public random order."""

from __future__ import annotations

import math

import numpy as np

from priorveil.certify import exp_above, exp_below
from priorveil.designs.implicit import certified
from priorveil.designs.problems import Draft, Problem, require_one_prior
from priorveil.errors import Hint, Infeasible, TooLarge
from priorveil.mechanisms.arc_pool import ArcPool
from priorveil.priors import Array, Budget

_LEAST, _MOST = 8, 1024  # orders of a pool; a tally has some 50 bytes for each value and each order
_VALUES = 2048  # up to this many: beyond, a pool that tells them apart is too large


def arc_pool(problem: Problem) -> Draft:
    """A pool of arc mechanisms, their circles in about as many orders as there are values."""
    prior = require_one_prior(problem, "arc")
    if not problem.box or problem.query.kind != "distribution" or math.isinf(problem.budget.hi):
        raise Infeasible("arcs in many orders are for LIP of the value itself", Hint("method", "columns"))
    if len(prior) > _VALUES:
        raise TooLarge(
            f"a pool of orders that tells {len(prior):,} values apart is too large", Hint("method", "unary")
        )
    budget = problem.budget
    own = owners(problem.P, budget)
    lo = exp_above(-budget.lower) if math.isfinite(budget.lower) else exp_above(-1000.0)
    weights = np.array(prior.weights, dtype=object)
    pool = ArcPool.fit(weights, own, pool_size(len(prior)), lo, exp_below(budget.upper))
    if not pool.identifies():
        raise Infeasible("the pool of orders does not identify the distribution", Hint("method", "columns"))
    why = (
        f"arcs on a circle in {len(pool.lines)} public orders, one drawn for each report; "
        f"{len(own)} likely values have a report of their own"
    )
    return certified(problem, pool, pool.variance(), "arc", why)


def pool_size(size: int) -> int:
    """How many orders: a power of two, about as many as values.

    Half as many would try every multiplier once; twice as many win a few percent more and double the tally.

    >>> [pool_size(d) for d in (4, 400, 2000)]
    [8, 512, 1024]
    """
    return min(_MOST, max(_LEAST, 1 << (size - 1).bit_length()))


def owners(P: Array, budget: Budget) -> list[int]:
    """The values that get an output of their own: those of mass at least `tau`, likeliest first.

    A window needs room to move: while it and the longest arc do not fit on the circle together, the least
    likely owner joins the circle.

    >>> owners(np.full(100, 0.01), Budget.of(1.0)), owners(np.array([0.5] + [0.005] * 100), Budget.of(1.0))
    ([], [0])
    >>> owners(np.array([0.5, 0.3, 0.1, 0.1]), Budget.of(1.0))
    []
    """
    falling = np.argsort(-P, kind="stable")
    left = 1 - np.concatenate([[0.0], np.cumsum(P[falling])])
    n = int(np.count_nonzero(budget.tau <= P))
    while n and (n == len(P) or left[n] < budget.tau + P[falling[n]]):
        n -= 1
    return [int(x) for x in falling[:n]]
