"""Channels that need no solver: the closed forms that are safe, each with its range.

A cone of allowed columns is a matrix `A` (m, d): `q` is allowed iff `A @ q >= 0` and `q >= 0`.
A budget is `lo = exp(-lower)` and `hi = exp(upper)`; `tau = (1 - lo) / (hi - lo)` is the prior mass an
output of a LIP channel can point at. Everything here is plain arrays; a channel is `Q` (d, K) with rows
that add up to one.
"""

from __future__ import annotations

import numpy as np

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.designs import robust
from priorveil.designs.plan_assembly import expected_error, no_report, table_plan
from priorveil.designs.problem import DesignProblem
from priorveil.designs.stopping import MOST_ENTRIES
from priorveil.designs.tolerances import ROUNDING
from priorveil.errors import Hint, Infeasible, TooLarge
from priorveil.plans import Plan
from priorveil.priors.budget import window_mass


def rr_lip_matrix(prior: Array, lo: float, hi: float = np.inf) -> Array:
    """Theorem 3: tell the truth, or with probability `lo` a fresh draw from the prior.

    `Q = (1 - lo) I + lo 1 P'`. Within the budget iff every `P_x >= tau`, and then the best channel for
    every convex utility. With `hi = inf` (only the lower side is bounded) it always is.

    >>> rr_lip_matrix(np.array([0.5, 0.5]), 0.5, 2.0)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    tau = float(window_mass(lo, hi))
    if prior.min() < tau:
        raise Infeasible(
            f"the closed form needs every probability to be at least {tau:.6g}, and one is {prior.min():.6g}",
            Hint("method", "arc", "columns"),
        )
    return np.asarray((1 - lo) * np.eye(len(prior)) + lo * prior[None, :])


def binary(A: Array) -> Array:
    """The best channel for two values under any cone: one output at each end of the allowed interval.

    The columns of a binary channel are mixtures of the two extreme rays of the cone, and every utility that
    is convex in the column gains by splitting into them. So this one channel is optimal for every convex
    utility *and every prior at once*; for a set of priors, put the inequalities of all of them into `A`.
    For equal priors a column with the posterior `t` of `x = 1` is `(1 - t, t)`, and each row of `A` is one linear
    inequality in `t`. The interval holds 1/2, because the constant column is always allowed.
    Output 1 makes `x = 1` more likely. If nothing but the constant column is allowed, K = 1.

    >>> binary(np.array([[-1.0, 3.0], [3.0, -1.0]]))
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    slope = A[:, 1] - A[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        root = -A[:, 0] / slope
    s = min(np.max(root[slope > 0], initial=0.0), 0.5)
    t = max(np.min(root[slope < 0], initial=1.0), 0.5)
    if t - s < ROUNDING:
        return np.ones((2, 1))
    given_0, given_1 = np.array([1 - t, t]) * (1 - 2 * s) / (t - s)
    return np.array([[1 - given_0, given_0], [1 - given_1, given_1]])


def k_rr_matrix(d: int, epsilon: float) -> Array:
    """LDP's k-ary randomised response: the truth with weight `e^eps`, any other value with weight 1.

    With `d = 2` this is Warner's randomised response, the best LDP channel for two values.

    >>> k_rr_matrix(2, np.log(3))
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return np.asarray((1 + np.expm1(epsilon) * np.eye(d)) / (np.exp(epsilon) + d - 1))


def require_closed_form(problem: DesignProblem) -> None:
    """Refuse a problem without a closed form; the error states their conditions."""
    if problem.size <= 2 or problem.all_heavy or problem.is_ldp:
        return
    raise Infeasible(
        f"no closed form fits: Theorem 3 needs every probability to be at least {problem.budget.tau:.4g} "
        f"(the smallest is {float(problem.P.min()):.4g}), no secret and one prior",
        Hint("method", "columns", "arc"),
    )


def closed_plan(problem: DesignProblem) -> Plan:
    """The closed form that fits: `require_closed_form` says that there is one."""
    d = problem.size
    if d == 1:
        return table_plan(problem, np.ones((1, 1)), no_report(problem), "closed", "there is only one value")
    if problem.all_heavy:
        Q = rr_lip_matrix(problem.P, problem.budget.lo, problem.budget.hi)
        return _optimal_plan(
            problem, Q, "every value is likely enough for Theorem 3, which is then optimal for every query"
        )
    if d == 2:
        why = "two values: the two extreme columns are optimal for every query"
        return _optimal_plan(problem, binary(problem.cone), why)
    if d**2 > MOST_ENTRIES:
        raise TooLarge(f"a table of {d} by {d} entries is too large", Hint("method", "unary"))
    return table_plan(problem, k_rr_matrix(d, problem.level), 0.0, "closed", "k-ary randomised response")


def _optimal_plan(problem: DesignProblem, Q: Array, why: str) -> Plan:
    """The plan of an optimal channel: its own error is the bound."""
    channel = Channel.from_weights(np.maximum(Q, 0.0))
    if problem.has_one_prior or problem.query.unbiased:
        best = expected_error(problem, channel)
    else:
        best = robust.least_favourable(problem, channel).least
    return table_plan(problem, Q, best, "closed", why)
