"""Designs that are written out as tables: closed forms, and the engine."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import boxes, branching, closed, cones, large, robust
from priorveil.designs.columns import Pricing, Solution, solve
from priorveil.designs.distribution import DistributionDesign, distribution
from priorveil.designs.distribution import solve as solve_distribution
from priorveil.designs.limits import Limits, Stop
from priorveil.designs.problems import SLACK, Draft, Problem
from priorveil.designs.rounding import certified_table
from priorveil.errors import Hint, Infeasible, TooLarge, plural
from priorveil.mechanisms import Table
from priorveil.notions import LDP
from priorveil.priors import Array, Prior, PriorSet

_ENUMERATED = 14  # box polytopes up to this size are listed corner by corner
_LDP_ENUMERATED = 12
_PLAIN = 300  # beyond this many values, those that are treated alike share a row
_KRR = 3_000  # k-ary randomised response on more values than this is not written out
_SUBSETS = 5_000  # subset selection with more outputs than this is not written out as a table
_ENTRIES = 4_000_000  # tables with more entries are not written out
_FINISHED = Limits().ended()
_LEARNING = 1e-6  # the finest gap for learning a distribution
_LEARNT = 1_000  # values up to which the engine weighs columns for learning a distribution


def table_draft(problem: Problem, Q: Array, bound: float, method: str, why: str) -> Draft:
    """The certified table nearest to `Q`, with its own error."""
    if Q.size > _ENTRIES:
        raise TooLarge(
            f"a table of {len(Q):,} x {Q.shape[-1]:,} entries is too large", Hint("method", "arc", "unary")
        )
    weights, proof = certified_table(Q, problem.prior, problem.budget, problem.secret, problem.notion)
    table = Table(weights)
    expected = problem.error(Channel(table.matrix))
    lower = min(max(problem.floor, bound - SLACK * abs(bound)), expected)
    return Draft(table, proof, expected, lower, method, why)


def closed_form(problem: Problem) -> Draft:
    """The closed form that fits, or an error that says which conditions one has."""
    d = len(problem.prior)
    if d == 1:
        return table_draft(problem, np.ones((1, 1)), problem.no_report, "closed", "there is only one value")
    if problem.box and closed.heavy(problem.P, problem.budget.lo, problem.budget.hi).all():
        Q = closed.rr_lip(problem.P, problem.budget.lo, problem.budget.hi)
        why = "every value is likely enough for Theorem 3, which is then optimal for every query"
        return _optimal(problem, Q, why)
    if d == 2:
        why = "two values: the two extreme columns are optimal for every query"
        return _optimal(problem, closed.binary(problem.cone), why)
    if isinstance(problem.notion, LDP):
        return _ldp_closed(problem)
    least = float(problem.P.min())
    raise Infeasible(
        f"no closed form fits: Theorem 3 needs every probability to be at least {problem.budget.tau:.4g} "
        f"(the smallest is {least:.4g}), no secret and one prior",
        Hint("method", "columns", "arc"),
    )


def _optimal(problem: Problem, Q: Array, why: str) -> Draft:
    """A channel that no other can beat: its own error is the bound."""
    channel = Channel.from_weights(np.maximum(Q, 0.0))
    polytope = isinstance(problem.prior, PriorSet) and not problem.prior.members
    if polytope and not problem.query.unbiased:
        best = problem.unit * problem.worst(channel).mse  # a prior of the set has this error
    else:
        best = problem.error(channel)
    return table_draft(problem, Q, best, "closed", why)


def _ldp_closed(problem: Problem) -> Draft:
    """The better of k-ary randomised response and subset selection."""
    d, epsilon = len(problem.prior), problem.epsilon
    if d > _KRR:
        raise TooLarge(f"a table of {d} by {d} entries is too large", Hint("method", "unary"))
    size = closed.best_subset_size(problem.P, epsilon)
    sizes = {1, size if math.comb(d, size) <= _SUBSETS else 1}
    drafts = []
    for k in sorted(sizes):
        Q = closed.k_rr(d, epsilon) if k == 1 else closed.subset_selection(d, epsilon, k)
        why = "k-ary randomised response" if k == 1 else f"subset selection with subsets of {k}"
        drafts.append(table_draft(problem, Q, 0.0, "closed", f"LDP: {why}"))
    return min(drafts, key=lambda draft: draft.expected)


def engine(problem: Problem, limits: Limits) -> Draft:
    """The best channel that column generation (or enumeration) finds, with its proven bound."""
    if problem.query.unbiased:
        return _learning(problem, limits)
    if not isinstance(problem.prior, Prior):
        return _robust(problem, limits)
    many = problem.box and len(problem.prior) > _PLAIN
    if many and problem.query.kind == "sum":
        return large.merged_sum(problem, _in_utilities(problem, limits))
    found, how = _box(problem, limits) if problem.box else _general(problem, limits)
    bound = problem.query.ceiling(problem.reference) - found.bound
    if many and problem.query.kind in ("histogram", "guess"):
        labels = large.groups_of(found.columns)
        if int(labels.max()) + 1 < len(labels):
            return large.grouped_draft(problem, found, labels, bound, how)
    return table_draft(problem, (found.columns * found.weights[:, None]).T, bound, "columns", how)


def _in_utilities(problem: Problem, limits: Limits) -> Limits:
    """Limits for an engine that speaks of utilities: whoever is told hears of errors."""
    query = problem.query
    if limits.progress is None:
        return limits
    ceiling = query.ceiling(problem.reference)
    return replace(
        limits, progress=lambda count, value, bound: limits.tell(count, ceiling - value, ceiling - bound)
    )


def _box(problem: Problem, limits: Limits) -> tuple[Solution, str]:
    """The engine on `lo <= r <= hi`."""
    P, lo, hi, query = problem.P, problem.budget.lo, problem.budget.hi, problem.query
    within = _in_utilities(problem, limits)
    if query.kind == "histogram":
        return _described(boxes.best_histogram(P, lo, hi, within))
    if query.kind == "sum":
        return _described(boxes.best_sum(P, problem.scores, lo, hi, within))
    if query.kind == "guess":
        return _described(boxes.best_guess(P, lo, hi, within))
    if len(P) <= _ENUMERATED:
        return _enumerated(problem, cones.box_rays(P, lo, hi))
    return _generated(problem, limits)


def _general(problem: Problem, limits: Limits) -> tuple[Solution, str]:
    """The engine on any cone: all its extreme rays if they can be listed, generated ones otherwise."""
    try:
        return _enumerated(problem, _rays(problem, limits.within(cones.LISTING)))
    except (TooLarge, Infeasible):  # too many, or lost to rounding: all of them mix to the constant column
        return _generated(problem, limits)
    except KeyboardInterrupt:
        return _generated(problem, limits.ended())


def _rays(problem: Problem, limits: Limits) -> Array:
    if isinstance(problem.notion, LDP):
        if len(problem.prior) > _LDP_ENUMERATED:
            raise TooLarge(f"LDP on {len(problem.prior)} values has too many extreme columns to list")
        return cones.staircase_rays(problem.P, problem.epsilon)
    return cones.extreme_rays(problem.cone, problem.P, stop=limits.over)


def _enumerated(problem: Problem, rays: Array) -> tuple[Solution, str]:
    prior, query = problem.reference, problem.query
    found = cones.best_mixture(rays, lambda columns: query.utility(columns, prior))
    return found, f"exact: one linear programme over all {len(rays)} extreme columns"


def _generated(problem: Problem, limits: Limits) -> tuple[Solution, str]:
    """Column generation with small linear programmes for pricing."""
    A, P = problem.cone, problem.P
    start = cones.nearby_columns(A, P) if limits.over() else np.ones((1, len(P)))
    return _described(solve(_pricing(problem, limits.over), start, _in_utilities(problem, limits)))


def _pricing(problem: Problem, stop: Stop) -> Pricing:
    A, P, query, prior = problem.cone, problem.P, problem.query, problem.reference
    if query.kind == "guess":
        return branching.peaks(A, P, P[None], stop=stop)
    if query.kind == "convex":
        return branching.convex(A, P, lambda columns: query.utility(columns, prior), stop=stop)
    rows = query.centred_rows(prior)
    scores = np.eye(len(P)) if rows is None else rows
    return branching.squares(A, P, scores * P, np.repeat(P[None], len(scores), axis=0), stop=stop)


def _described(found: Solution) -> tuple[Solution, str]:
    state = "proven" if found.converged else "stopped early"
    return (
        found,
        f"column generation, {plural(found.iterations, 'round')}, {state}: gap {max(found.gap, 0.0):.2g} of the gain",
    )


def _robust(problem: Problem, limits: Limits) -> Draft:
    """The least error under the worst prior of a set."""
    sets, task, unit = problem.prior, problem.task(), problem.unit
    assert not isinstance(sets, Prior)
    within = replace(
        limits, progress=lambda count, error, bound: limits.tell(count, unit * error, unit * bound)
    )
    if sets.members:
        priors = np.array([p.probabilities for p in sets.members])
        found = robust.robust_design(problem.cone, priors, task, within)
    else:
        start = np.vstack([problem.P, sets.vertices()[:64]])
        found = robust.robust_over(problem.cone, sets.best, start, task, within)
    state = "proven" if found.converged else "stopped early"
    return table_draft(
        problem,
        found.channel,
        unit * found.lower_bound,
        "columns",
        f"robust over the set of priors, {state}",
    )


def _learning(problem: Problem, limits: Limits) -> Draft:
    """The A-optimal channel for learning the distribution."""
    if len(problem.prior) > _LEARNT:
        raise TooLarge(
            f"{len(problem.prior):,} values: the engine learns up to {_LEARNT:,}", Hint("method", "unary")
        )
    within = replace(limits, target=max(limits.target, _LEARNING))
    try:
        found = _learning_columns(problem, within)
    except (TooLarge, KeyboardInterrupt) as cause:
        if isinstance(cause, TooLarge) and not limits.over():
            raise
        nearby = solve_distribution(problem.P, cones.nearby_columns(problem.cone, problem.P), _FINISHED)
        found = replace(nearby, bound=0.0)  # proven for these columns alone
    Q = (found.columns * found.weights[:, None]).T
    return table_draft(problem, Q, found.bound, "columns", _learnt(found))


def _learning_columns(problem: Problem, limits: Limits) -> DistributionDesign:
    if problem.box:
        return distribution(problem.P, problem.budget.lo, problem.budget.hi, limits)
    return solve_distribution(problem.P, _rays(problem, limits), limits)


def _learnt(found: DistributionDesign) -> str:
    gap = max(found.gap, 0.0)
    return f"A-optimal for learning the distribution, {plural(len(found.weights), 'report')}, gap {gap:.2g}"
