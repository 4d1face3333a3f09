"""The method `columns`: the best channel, written out as a table.

| objective | how the channel is found |
|---|---|
| a gain, few extreme columns | one linear programme over all of them: exact |
| a gain in a space (LIP of the value, LDP) | `_BOX_SOLVERS`, `_LDP_SOLVERS`: column generation (`gains`) |
| a gain in any other cone | column generation with linear programmes (`cone_pricing`) |
| a gain, sets of priors | `robust` |
| a variance in a space | `variances` |
| a variance in any other cone | the best `weights` of extreme columns, or of columns near those of spaces |
| a variance, sets of priors | `robust_variances`, which solves one of the two cases above again and again |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from priorveil.arrays import Array, Ints
from priorveil.certify import certified_table
from priorveil.designs import robust, robust_variances
from priorveil.designs.bounds import closed_form_bound
from priorveil.designs.column_generation import Pricing, Solution, best_mixture, solve
from priorveil.designs.cone_pricing import ConeGuessPricing, ConePricing, ConeSquaresPricing
from priorveil.designs.cones import Program, extreme_rays, nearby_columns
from priorveil.designs.gains import best_convex, best_guess, best_histogram, best_linear, best_sum, widen
from priorveil.designs.plan_assembly import no_report, proven_plan, table_plan
from priorveil.designs.problem import DesignProblem, Objective
from priorveil.designs.spaces import Space, box_of, ldp_cone_of, space_of
from priorveil.designs.stopping import (
    FIRST_STEP,
    MOST_DENSE,
    MOST_ENTRIES,
    MOST_UNBIASED,
    PATIENCE,
    Limits,
    Stop,
)
from priorveil.designs.value_groups import FEW_VALUES, MANY_VALUES, margin_groups
from priorveil.designs.variances import best_unbiased
from priorveil.designs.weights import FINEST_WEIGHTS, best_weights
from priorveil.errors import Hint, Infeasible, TooLarge
from priorveil.information import gain_share, variance
from priorveil.mechanisms import Grouped, Table
from priorveil.plans import Plan
from priorveil.priors import Prior, PriorSet

# Values up to which all extreme columns of a box are listed, though its solver is exact: a list is exact to the last
# digit, and quick.
_LISTED_IN_BOX = 6
_MOST_EXACT = 100_000  # entries of inequalities that are written as fractions: half a second
FEW_STATISTICS = 400  # most statistics for which large domains, and LDP bounds, are attempted


def columns_plan(problem: DesignProblem, limits: Limits) -> Plan:
    """The best channel that enumeration or column generation finds, with its proven bound."""
    if problem.query.same_for_all(problem.reference):
        why = "the statistics are the same for all, so reports say nothing"
        return table_plan(problem, np.ones((problem.size, 1)), 0.0, "columns", why)
    if problem.query.unbiased:
        return _unbiased_plan(problem, limits)
    if not problem.has_one_prior:
        return _robust_plan(problem, limits)
    ceiling = problem.query.ceiling(problem.reference)
    limits = limits.in_units(-1.0, ceiling)  # the values of the engine are utilities
    solution, how = _best_channel(problem, limits)
    bound = ceiling - solution.bound
    if problem.size > MANY_VALUES and problem.secret is None and space_of(problem) is not None:
        _, first, groups = np.unique(solution.columns, axis=1, return_index=True, return_inverse=True)
        if len(first) < problem.size:
            return _grouped_plan(problem, solution.channel[first], groups.ravel(), bound, how)
    return table_plan(problem, solution.channel, bound, "columns", how)


# -- gains of one prior --------------------------------------------------------------------------------------


def _best_sum(problem: DesignProblem, limits: Limits) -> Solution:
    return best_sum(_space(problem), problem.scores, limits)


def _best_statistics(problem: DesignProblem, limits: Limits) -> Solution:
    """The best channel for statistics, with each margin as a start of the search."""
    rows = problem.centred_rows
    margins = margin_groups(rows) if len(rows) < problem.size else []
    return best_linear(_space(problem), rows, limits, margins if len(margins) > 1 else [])


def _best_ldp_histogram(problem: DesignProblem, limits: Limits) -> Solution:
    """The best channel for a histogram as statistics. Its utility counts the squares of the prior, too."""
    squares, values = float(problem.P @ problem.P), np.arange(problem.size)
    centred = _best_statistics(problem, limits.in_units(1.0, squares))
    bound = min(centred.bound, no_report(problem) - closed_form_bound(problem))
    centred = widen(centred, values, bound, limits)
    return replace(centred, value=centred.value + squares, bound=centred.bound + squares)


def _best_convex(problem: DesignProblem, limits: Limits) -> Solution:
    query, prior = problem.query, problem.reference
    bound = query.ceiling(prior) - closed_form_bound(problem)
    return best_convex(_space(problem), lambda columns: query.utility(columns, prior), bound, limits)


Solver = Callable[[DesignProblem, Limits], Solution]
_BOX_SOLVERS: dict[Objective, Solver] = {
    Objective.HISTOGRAM: lambda problem, limits: best_histogram(box_of(problem), limits),
    Objective.SUM: _best_sum,
    Objective.STATISTICS: _best_statistics,
    Objective.GUESS: lambda problem, limits: best_guess(box_of(problem), limits),
    Objective.CONVEX: _best_convex,
}
_LDP_SOLVERS: dict[Objective, Solver] = {
    Objective.HISTOGRAM: _best_ldp_histogram,
    Objective.SUM: _best_sum,
    Objective.STATISTICS: _best_statistics,
    Objective.CONVEX: _best_convex,
}
_EXACT_IN_BOX = (Objective.HISTOGRAM, Objective.SUM, Objective.GUESS)
_BRANCHED_UNDER_LDP = (Objective.HISTOGRAM, Objective.STATISTICS)


def _space(problem: DesignProblem) -> Space:
    """The columns of a problem that has a space."""
    space = space_of(problem)
    assert space is not None
    return space


def _best_channel(problem: DesignProblem, limits: Limits) -> tuple[Solution, str]:
    """The best channel for one prior, and how it was found."""
    objective, in_box = problem.objective, problem.is_lip_of_value
    if not (in_box and objective in _EXACT_IN_BOX and problem.size > _LISTED_IN_BOX):
        try:
            rays = _extreme_columns(problem, limits.share(FIRST_STEP))
            solution = best_mixture(rays, lambda columns: problem.query.utility(columns, problem.reference))
            limits.report(1, solution.value, solution.bound)
            return solution, f"exact: one linear programme over all {len(rays)} extreme columns"
        except (TooLarge, Infeasible):
            pass  # too many, or lost to rounding: all of them mix to the constant column
        except KeyboardInterrupt:
            limits = limits.without_time()
    solvers = _BOX_SOLVERS if in_box else _LDP_SOLVERS if problem.is_ldp else {}
    if objective in solvers:
        solution = solvers[objective](problem, limits)
    else:
        start = nearby_columns(problem.cone, problem.P)
        solution = solve(_cone_pricing(problem, limits.over), start, limits)
    if problem.is_ldp and objective in _BRANCHED_UNDER_LDP and problem.size <= FEW_VALUES:
        rest = limits.without_time() if solution.interrupted else limits
        solution = solve(_cone_pricing(problem, rest.over), solution.columns, rest, bound=solution.bound)
    state = "proven" if solution.converged else "stopped early"
    rounds = f"{solution.iterations} round{'s' * (solution.iterations != 1)}"
    gap = f"gap {solution.gap:.2g} of the gain" if solution.gap < 1 else "its bound is a closed form"
    return solution, f"column generation, {rounds}, {state}: {gap}"


def _extreme_columns(problem: DesignProblem, limits: Limits) -> Array:
    """All extreme columns that the notion allows."""
    space = space_of(problem)
    if space is not None:
        return space.vertices()
    if problem.cone.size > _MOST_EXACT:
        raise TooLarge(f"{len(problem.cone):,} inequalities: too many to list all extreme columns")
    return extreme_rays(problem.exact_cone(), problem.P, stop=limits.over)


def _extreme_columns_of_set(problem: DesignProblem, limits: Limits) -> tuple[Array | None, Limits]:
    """All extreme columns, or None if they are too many to list; after ctrl-C no time is left."""
    try:
        return _extreme_columns(problem, limits.share(FIRST_STEP)), limits
    except TooLarge:
        return None, limits
    except KeyboardInterrupt:
        return None, limits.without_time()


def _cone_pricing(problem: DesignProblem, stop: Stop) -> Pricing:
    """Pricing of the query over any cone."""
    A, P, query, prior = problem.cone, problem.P, problem.query, problem.reference
    nothing = np.zeros((1, len(P)))

    def utility(columns: Array) -> Array:
        return query.utility(columns, prior)

    if problem.objective is Objective.GUESS:
        return ConeGuessPricing(A, P, utility, P[None], stop, nothing)
    if problem.objective is Objective.CONVEX:
        return ConePricing(Program(A, P), P, utility, stop, nothing)
    rows = query.centred_rows(prior)
    scores = np.eye(len(P)) if rows is None else rows
    return ConeSquaresPricing(A, P, utility, scores, P[None], stop, nothing)


def _grouped_plan(problem: DesignProblem, Q: Array, groups: Ints, bound: float, why: str) -> Plan:
    """The certified plan of a channel `Q` on groups of values, for large domains.

    Values that the best channel treats alike share a row, and only the groups are written out. A column that is
    constant within a group keeps `lo <= r <= hi` for the values if it does for the group, so a channel on the groups is
    as private as it looks.
    """
    shape = Grouped(groups, Table(np.full((int(groups.max()) + 1, 1), 2**62)))
    group_prior = shape.group_prior(problem.reference)
    weights, proof = certified_table(Q, group_prior, problem.budget, notion=problem.notion)
    mechanism, prior = Grouped(groups, Table(weights)), problem.reference
    law = np.bincount(mechanism.rows, problem.P) @ mechanism.table.matrix
    lifts = (mechanism.table.matrix / law).T
    # a few columns at a time: all of them may not fit in memory
    parts = np.array_split(np.arange(len(law)), 1 + len(law) * problem.size // MOST_ENTRIES)
    gain = sum(law[y] @ problem.query.utility(lifts[y][:, mechanism.rows], prior) for y in parts)
    expected = max(0.0, problem.query.ceiling(prior) - float(gain))
    return proven_plan(problem, mechanism, proof, expected, bound, "columns", why)


# -- gains of sets of priors ---------------------------------------------------------------------------------


def _robust_plan(problem: DesignProblem, limits: Limits) -> Plan:
    """The least error under the least favourable prior of a set."""
    sets, task, unit = problem.prior, robust.task_of(problem), problem.unit
    assert not isinstance(sets, Prior)
    limits = limits.in_units(-unit)  # the values of the engine are utilities
    rays, limits = _extreme_columns_of_set(problem, limits)
    start = np.vstack([problem.P, sets.vertices()[:64]])
    solution = robust.robust_design(
        problem.cone, start, task, limits, oracle=sets.best, rays=rays, least=1e-8
    )
    why = f"robust over the set of priors, {'proven' if solution.converged else 'stopped early'}"
    return table_plan(problem, solution.channel, unit * solution.lower_bound, "columns", why)


# -- variances -----------------------------------------------------------------------------------------------


def _unbiased_plan(problem: DesignProblem, limits: Limits) -> Plan:
    """The channel with the least variance of the statistics, read without the prior."""
    rows, unit = problem.query.centred_rows(problem.reference), 1.0
    if rows is not None:  # numbers of the size of shares, for which the tolerances of the solvers are meant
        unit = float(np.ptp(rows, axis=1).max())
        rows, limits = rows / unit, limits.in_units(unit**2)
    _require_few_values(problem, rows)
    limits = replace(limits, target=max(limits.target, FINEST_WEIGHTS))
    if not problem.has_one_prior:
        return _robust_unbiased_plan(problem, limits, rows, unit)
    solution = _least_variance(problem, limits, rows)
    least = "A-optimal for learning the distribution" if rows is None else "L-optimal for the statistics"
    gap = f", gap {max(solution.gap, 0.0):.2g}" if solution.bound > 0 else ""  # a bound may be found later
    return table_plan(problem, solution.channel, unit**2 * solution.bound, "columns", least + gap)


def _require_few_values(problem: DesignProblem, rows: Array | None) -> None:
    """Refuse more values than the search is for."""
    many_allowed = space_of(problem) is not None or (rows is not None and len(rows) == 1)
    few = rows is not None and many_allowed and len(rows) <= FEW_STATISTICS
    most = MOST_UNBIASED if few else MOST_DENSE
    if problem.size > most:
        asked = "a distribution" if rows is None else f"{len(rows):,} statistics"
        message = f"{problem.size:,} values: the engine learns {asked} of up to {most:,}"
        raise TooLarge(message, Hint("method", "unary"))


def _robust_unbiased_plan(problem: DesignProblem, limits: Limits, rows: Array | None, unit: float) -> Plan:
    """The least variance under the worst prior of a set."""
    known = problem.prior
    assert isinstance(known, PriorSet)
    domain = problem.reference.domain
    extreme, limits = _extreme_columns_of_set(problem, limits)

    def design_at(prior: Array, limits: Limits, start: Solution | None) -> Solution:
        at = replace(problem, reading_prior=Prior(prior, domain))
        return _least_variance(at, replace(limits, progress=None), rows, start)

    centred = problem.centred_rows / unit
    best = robust_variances.least_worst_variance(known, centred, extreme, design_at, limits)
    reading_prior = Prior(best.reading_prior / best.reading_prior.sum(), domain)
    why = f"robust over the set of priors, {'proven' if best.converged else 'stopped early'}"
    at = replace(problem, reading_prior=reading_prior)
    return table_plan(at, best.channel, unit**2 * best.lower_bound, "columns", why)


def _least_variance(
    problem: DesignProblem, limits: Limits, rows: Array | None, start: Solution | None = None
) -> Solution:
    """The channel with the least variance at the reference prior; `start` is one to improve on."""
    space = space_of(problem)
    try:
        if space is not None:
            return best_unbiased(space, limits, rows, start)
        if problem.has_one_prior:  # the columns of a set are listed once, for all of its priors
            with suppress(TooLarge):
                columns = _extreme_columns(problem, limits.share(FIRST_STEP))
                return best_weights(problem.P, columns, limits, rows)
        return _unbiased_in_cone(problem, limits, rows, start)
    except KeyboardInterrupt:
        nearby = nearby_columns(problem.cone, problem.P)
        solution = best_weights(problem.P, nearby, Limits().without_time(), rows)
        return replace(solution, bound=0.0, gap=1.0)  # what is proven holds for these columns alone


def _unbiased_in_cone(
    problem: DesignProblem, limits: Limits, rows: Array | None, start: Solution | None
) -> Solution:
    """The best weights for columns of any cone that are near the best ones of simpler cones.

    The simpler cones are LDP and, for LIP, the box of the reference prior. Without a secret the box contains the cone,
    so its bound holds here too. Reporting the true value gives a bound in any cone.
    """
    P, lip = problem.P, problem.notion.bounds_lifts
    solutions = [best_unbiased(box_of(problem), limits.share(2 / 3), rows, start)] if lip else []
    if not (lip and start):  # later designs of a search have the columns of LDP already
        solutions.append(best_unbiased(ldp_cone_of(problem), limits.share(1 / 2), rows))
    bound = solutions[0].bound if lip and problem.secret is None else variance(np.eye(len(P)), P, rows)
    others = np.vstack([solution.columns for solution in solutions])
    columns = nearby_columns(problem.cone, P, others)
    solution = best_weights(P, columns, replace(limits.at_least(PATIENCE), progress=None), rows)
    bound = min(bound, solution.value)
    return replace(solution, bound=bound, gap=1 - gain_share(solution.value, bound, math.inf))
