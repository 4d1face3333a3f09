"""Design methods: `design`, the table of methods, and the choice that `auto` makes.

`METHODS` maps the name of a method to the function that makes a plan by it. The method `columns` writes the best
channel out as a table: `_SOLVERS` maps the kind of a query to its solver for the box `lo <= r <= hi`, and
`_cone_pricing` finds its pricing over any other cone of columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from priorveil.arrays import Array, Ints
from priorveil.certify import certified_table
from priorveil.designs import box_solvers, cone_pricing, robust, unbiased
from priorveil.designs.arcs import arc_plan
from priorveil.designs.box_pricing import Box, LdpCone, Space
from priorveil.designs.closed import closed_plan
from priorveil.designs.encodings import hashing_plan, subset_plan, unary_plan
from priorveil.designs.engine import Pricing, Solution, best_mixture, solve
from priorveil.designs.limits import Limits, Progress, Stop, never
from priorveil.designs.problem import SLACK, Problem
from priorveil.designs.relaxation import (
    best_linear,
    factor_above,
    ldp_bound,
    ldp_variance_bound,
)
from priorveil.errors import (
    CertificateError,
    Hint,
    Infeasible,
    InvalidInput,
    NotIdentifiable,
    PriorveilError,
    TooLarge,
)
from priorveil.information import gain_share, variance
from priorveil.mechanisms import Grouped, Table
from priorveil.notions import Cone, Known, Secrets
from priorveil.plans import Plan
from priorveil.plans.document import DesignMethod
from priorveil.priors import Budget, Prior
from priorveil.queries import Query

Method = Literal["auto"] | DesignMethod

_WITHOUT_SOLVER = ("arc", "unary", "subset", "closed")  # methods that `auto` falls back on
_SMALL, _SMALL_GAP, _GAP = 20, 1e-10, 1e-4  # the default gap for up to 20 values, and for more
_MAX_VALUES_TO_LIST = 6  # values up to which all extreme columns of a box are listed, whatever the query
_LISTED_GENERAL = 14  # the same for queries without an exact solver of their own
_MAX_TABLE_VALUES = 300  # beyond, `auto` prefers arcs, and values that are treated alike share a row
_TRUSTED = 0.5  # efficiency of a solver's plan from which simple mechanisms are not tried as well
_OPTIMAL = 1 - 1e-9  # efficiency of a plan that nothing can improve on
_NEAR_OPTIMAL = 0.99  # efficiency of a quick plan from which no search is worth its time
_MAX_TABLE_DISTRIBUTION = 120  # values beyond which arcs learn a distribution better than a table
_LDP_ENGINE = 30  # values up to which `auto` tries the engine under LDP
_LDP_LEARNING = 12  # the same for learning a distribution
_LDP_BRANCHED = 20  # values up to which branch and bound proves more of several statistics under LDP
_ABOVE_SIMPLE = 0.1  # efficiency of unbiased statistics that simple mechanisms hardly reach on many values
_PROVEN = 0.999  # efficiency from which no better bound is searched for
_PATIENCE = 2.0  # seconds that the search for a bound, or the last weights, have at least
_GROUPED = 200_000  # values up to which `auto` tries the engine under LIP, with values in groups
_ENGINE = 1_500  # values up to which it relies on the engine alone for sets and secrets
_BLOCKS = 160  # blocks that values are merged into for a convex gain
_SUBSETS = 100_000  # values up to which `auto` tries subset selection for learning a distribution
_MAX_VALUES_TO_LEARN = 1_000  # values up to which the engine weighs columns for learning several statistics
_MAX_VALUES_TO_SUM = 20_000  # the same for one unbiased sum, and for few statistics
_FEW_STATISTICS = 400  # so many can be learnt on many values, and more are not searched for a bound under LDP
_LISTING = 0.2  # the share of the time for listing extreme columns to learn from
_LEARNING_GAP = 1e-6  # the finest gap for learning a distribution
_MOST_ENTRIES = 4_000_000  # of columns that are written out at once


def design(
    prior: Known | Sequence[float],
    epsilon: float | Budget,
    query: Query,
    secret: Secrets = None,
    notion: Cone | None = None,
    method: Method = "auto",
    *,
    gap: float | None = None,
    time_limit: float = 45.0,
    rounds: int | None = None,
    progress: Progress | None = None,
    should_stop: Stop | None = None,
) -> Plan:
    """The plan with the least error that privacy allows, certified; it raises rather than break its budget.

    Arguments: what is known (`prior`, or a `PriorSet`); `epsilon`, a number or a `Budget`; the `query`; the
    `secret`, the value itself by default; the `notion`, LIP by default; the `method`, by default chosen by
    size and expected error. The engine stops when less than `gap` of the achievable gain is unproven (1e-10
    on small domains, 1e-4 on larger ones), after `time_limit` seconds, when `should_stop()` is true, or on
    ctrl-C: each time with the best certified plan so far. It calls `progress(round, error, bound)` as it goes.
    If `rounds` is given, it stops after that many rounds of search instead of at the time limit, so that the plan does
    not depend on how fast the machine is.

    >>> import priorveil as pv
    >>> plan = design(pv.Prior([0.5, 0.3, 0.2]), epsilon=1.0, query=pv.Histogram())
    >>> plan.certificate.lip <= 1.0, plan.lower_bound <= plan.expected_mse < plan.no_report
    (True, True)
    """
    if gap is not None and not 0 <= gap < 1:
        raise InvalidInput("gap", gap, "give a share of the gain, from 0 to less than 1")
    if not time_limit >= 0:
        raise InvalidInput("time_limit", time_limit, "give seconds, 0 or more")
    if rounds is not None and not rounds >= 0:
        raise InvalidInput("rounds", rounds, "give a number of rounds, 0 or more")
    if method != "auto" and method not in METHODS:
        raise InvalidInput("method", method, f"choose auto, {', '.join(METHODS)}")
    problem = Problem.of(prior, epsilon, query, secret, notion)
    target = gap if gap is not None else _SMALL_GAP if len(problem.prior) <= _SMALL else _GAP
    limits = Limits(target, progress=progress, should_stop=should_stop or never)
    limits = limits.of_seconds(time_limit) if rounds is None else limits.of_rounds(rounds)
    # On a busy machine the threads of a BLAS wait for each other: a search took twenty times as long with two.
    with threadpool_limits(limits=1, user_api="blas"):
        plan = best_plan(problem, limits) if method == "auto" else METHODS[method](problem, limits)
        return _with_ldp_bound(problem, plan, limits)


def best_plan(problem: Problem, limits: Limits) -> Plan:
    """What `auto` means: a closed form that is optimal, else the method with the least expected error."""
    if _same_for_all(problem):
        return columns_plan(problem, limits)
    if len(problem.prior) <= 2 or problem.all_heavy:
        return closed_plan(problem)
    candidates, plans, refusals = _candidates(problem), list[Plan](), dict[str, PriorveilError]()
    first, *others = candidates
    if not others:  # a solver may lose very rare values to rounding; simple mechanisms need none
        candidates = {first: _TRUSTED} | dict.fromkeys(_WITHOUT_SOLVER, _OPTIMAL)
    for name, enough in candidates.items():
        try:
            plans.append(METHODS[name](problem, limits))
            if gain_share(plans[-1].expected_mse, plans[-1].lower_bound, plans[-1].no_report) >= enough:
                break
        except (Infeasible, TooLarge, CertificateError, NotIdentifiable) as error:
            refusals[name] = error
    if not plans and not others:
        raise refusals[first]
    if not plans:
        reasons = " | ".join(f"{name}: {error}" for name, error in refusals.items())
        raise Infeasible(f"no method can do this at this size. {reasons}")
    best = min(plans, key=lambda plan: plan.expected_mse)
    if isinstance(refusals.get("columns"), TooLarge) and best.efficiency < _ABOVE_SIMPLE:
        fewer = f"far from the bound: merge neighbouring values into at most {_MAX_VALUES_TO_LEARN:,} cells"
        best = replace(best, why=f"{best.why}; {fewer}")
    if len(plans) == 1:
        return best
    bound = max(plan.lower_bound for plan in plans)
    if problem.box and problem.query.kind == "distribution" and len(problem.P) <= _MAX_TABLE_VALUES:
        with suppress(KeyboardInterrupt):  # the plan is certified, and only its bound is weaker
            bound = max(bound, unbiased.information_bound(_box(problem), limits) * (1 - SLACK))
    bound = min(best.expected_mse, bound)
    compared = ", ".join(f"{plan.method} {plan.expected_mse:.6g}" for plan in plans)
    return replace(best, lower_bound=bound, why=f"{best.why} (the least expected error of: {compared})")


def _candidates(problem: Problem) -> dict[str, float]:
    """The methods that `auto` compares, and for each the efficiency from which no other is tried."""
    d, kind, learns = len(problem.prior), problem.query.kind, problem.query.unbiased
    if _any_convex(problem):
        return {"columns": _OPTIMAL}
    if _pairwise(problem):
        # The engine may be stopped early, so simple mechanisms compete with it. They are for the value itself.
        simple, single = problem.secret is None, isinstance(problem.prior, Prior)
        known = _LDP_ENGINE
        if kind == "histogram" and single:
            known = _MAX_VALUES_TO_LEARN
            if simple and d > _LDP_ENGINE:  # subset selection is quick, and the best one for equal values
                names = ["subset", "unary", "columns"] if d <= known else ["subset", "unary"]
                return dict.fromkeys(names, _OPTIMAL) | {"subset": _NEAR_OPTIMAL}
        elif problem.query.linear and single and not learns:
            if d > _MAX_TABLE_VALUES:
                return {"columns": _OPTIMAL}
            known = _MAX_TABLE_VALUES
        if learns:
            # subset selection learns a distribution nearly as well, under one prior
            known = _LDP_LEARNING if simple and single and kind == "distribution" else _MAX_TABLE_VALUES
            known = _MAX_VALUES_TO_SUM if simple and kind != "distribution" else known
        names = ["columns", "unary", "subset"] if d <= known else ["unary", "subset"]
        # Where subset selection knows its error, writing it out as a table gains nothing.
        names += ["closed"] if d > known and not (simple and single) else []
        return dict.fromkeys(names, _OPTIMAL)
    few = _MAX_TABLE_VALUES if problem.box else _ENGINE
    if problem.box and kind == "distribution" and d > _SMALL:
        if d <= _MAX_TABLE_DISTRIBUTION or (d <= few and np.ptp(problem.P) == 0):
            return {"columns": _NEAR_OPTIMAL, "arc": _OPTIMAL}
        return dict.fromkeys(["arc", "unary", "subset"] if d <= _SUBSETS else ["arc", "unary"], _OPTIMAL)
    if d <= few or (problem.box and kind == "guess"):
        return {"columns": _OPTIMAL}
    if not problem.box:
        return {"columns": _OPTIMAL, "unary": _OPTIMAL}
    if learns:
        return {"columns": _ABOVE_SIMPLE, "arc": 0.0, "unary": _OPTIMAL}  # unary is for more values than arcs
    return {"arc": 0.995} | ({"columns": _OPTIMAL} if d <= _GROUPED else {})


def _same_for_all(problem: Problem) -> bool:
    """Whether every person adds the same to the statistics."""
    rows = problem.query.rows(problem.reference)
    return len(problem.P) == 1 if rows is None else not np.ptp(rows, axis=1).any()


def columns_plan(problem: Problem, limits: Limits) -> Plan:
    """The best channel that enumeration or column generation finds, with its proven bound."""
    if _same_for_all(problem):
        why = "the statistics are the same for all, so reports say nothing"
        return problem.table_plan(np.ones((len(problem.P), 1)), 0.0, "columns", why)
    if problem.query.unbiased:
        return _learning_plan(problem, limits)
    if not isinstance(problem.prior, Prior):
        return _robust_plan(problem, limits)
    ceiling = problem.query.ceiling(problem.reference)
    limits = limits.in_units(-1.0, ceiling)  # the values of the engine are utilities
    solution, how = _best_channel(problem, limits)
    bound = ceiling - solution.bound
    if len(problem.prior) > _MAX_TABLE_VALUES and problem.secret is None and _space(problem) is not None:
        _, first, groups = np.unique(solution.columns, axis=1, return_index=True, return_inverse=True)
        if len(first) < len(problem.prior):
            return _grouped_plan(problem, solution.channel[first], groups.ravel(), bound, how)
    return problem.table_plan(solution.channel, bound, "columns", how)


def _best_linear(problem: Problem, limits: Limits) -> Solution:
    """The best channel for statistics, with each margin as a start of the search."""
    rows = problem.centred_rows
    margins = unbiased.margin_groups(rows) if len(rows) < len(problem.P) else []
    return best_linear(_sorted_space(problem), rows, limits, margins if len(margins) > 1 else [])


_SOLVERS: dict[str, Callable[[Problem, Limits], Solution]] = {
    "histogram": lambda problem, limits: box_solvers.best_histogram(_box(problem), limits),
    "sum": lambda problem, limits: box_solvers.best_sum(_sorted_space(problem), problem.scores, limits),
    "guess": lambda problem, limits: box_solvers.best_guess(_box(problem), limits),
    "linear": _best_linear,
}


def _ldp_histogram(problem: Problem, limits: Limits) -> Solution:
    """The best channel for a histogram as statistics. Its utility counts the squares of the prior, too."""
    squares, values = float(problem.P @ problem.P), np.arange(len(problem.P))
    found = _best_linear(problem, limits.in_units(1.0, squares))
    bound = min(found.bound, problem.no_report - problem.closed_form_bound)
    found = box_solvers.widen(found, values, bound, limits)
    return replace(found, value=found.value + squares, bound=found.bound + squares)


_LDP_SOLVERS = {"histogram": _ldp_histogram, "sum": _SOLVERS["sum"], "linear": _best_linear}


def _best_convex(problem: Problem, limits: Limits) -> Solution:
    """The best channel for any convex utility, under LDP too; many values are merged into blocks of neighbours."""
    query, prior, size = problem.query, problem.reference, len(problem.P)
    space, groups = _sorted_space(problem), np.arange(size)
    if size > _MAX_TABLE_VALUES:
        groups = box_solvers.neighbour_groups(problem.P, np.cumsum(problem.P), _BLOCKS)
        space = space.merge(groups)

    def utility(columns: Array) -> Array:
        return query.utility(columns[:, groups], prior)

    blocks = np.arange(len(space.prior))
    arcs = -((blocks - blocks[:, None]) % len(blocks)).astype(float)
    start = np.vstack([np.ones(len(blocks)), space.best(arcs * space.prior)])
    program, nothing = cone_pricing.SortedProgram(space), np.zeros((1, len(blocks)))
    pricing = cone_pricing.ConePricing(program, space.prior, utility, limits.over, nothing)
    bound = query.ceiling(prior) - problem.closed_form_bound
    solution = solve(pricing, start, limits, bound=bound)
    return replace(solution, columns=solution.columns[:, groups])


def _box(problem: Problem) -> Box:
    """The columns `lo <= r <= hi`, of a problem that allows just those."""
    return Box(problem.P, problem.budget.lo, problem.budget.hi)


def _space(problem: Problem) -> Space | None:
    """The allowed columns if the best one for a linear function is found by sorting; None for other cones."""
    if problem.box:
        return _box(problem)
    return LdpCone(problem.P, math.exp(problem.level)) if _pairwise(problem) else None


def _sorted_space(problem: Problem) -> Space:
    """The columns of a problem for which `_space` knows them."""
    space = _space(problem)
    assert space is not None
    return space


def _any_convex(problem: Problem) -> bool:
    """Whether the query is one that no table of solvers knows, for columns that can be sorted."""
    known = problem.query.linear or problem.query.kind == "guess"
    single = problem.secret is None and isinstance(problem.prior, Prior)
    return single and not known and _space(problem) is not None


def _pairwise(problem: Problem) -> bool:
    """Whether the problem is LDP, which compares values: neither a prior nor a secret matters for it."""
    return problem.notion.name == "LDP"


def _best_channel(problem: Problem, limits: Limits) -> tuple[Solution, str]:
    """The best channel for one prior, and how it was found."""
    kind = problem.query.kind
    solver = _SOLVERS.get(kind) if problem.box else _LDP_SOLVERS.get(kind) if _pairwise(problem) else None
    solver = _best_convex if _any_convex(problem) else solver
    listed = _MAX_VALUES_TO_LIST if kind in _SOLVERS and kind != "linear" else _LISTED_GENERAL
    if not problem.box or len(problem.prior) <= listed:
        try:
            rays = _extreme_columns(problem, limits.share(cone_pricing.LISTING))
            solution = best_mixture(rays, lambda columns: problem.query.utility(columns, problem.reference))
            limits.report(1, solution.value, solution.bound)
            return solution, f"exact: one linear programme over all {len(rays)} extreme columns"
        except (TooLarge, Infeasible):
            pass  # too many, or lost to rounding: all of them mix to the constant column
        except KeyboardInterrupt:
            limits = limits.without_time()
    if solver is not None:
        solution = solver(problem, limits)
    else:
        start = cone_pricing.nearby_columns(problem.cone, problem.P)
        solution = solve(_cone_pricing(problem, limits.over), start, limits)
    if solver in (_best_linear, _ldp_histogram) and not problem.box and len(problem.P) <= _LDP_BRANCHED:
        within = limits.without_time() if solution.interrupted else limits
        solution = solve(_cone_pricing(problem, within.over), solution.columns, within, bound=solution.bound)
    state = "proven" if solution.converged else "stopped early"
    rounds = f"{solution.iterations} round{'s' * (solution.iterations != 1)}"
    gap = f"gap {solution.gap:.2g} of the gain" if solution.gap < 1 else "its bound is a closed form"
    return solution, f"column generation, {rounds}, {state}: {gap}"


def _extreme_columns(problem: Problem, limits: Limits) -> Array:
    """All extreme columns that the notion allows."""
    space = _space(problem)
    if space is None:
        return cone_pricing.extreme_rays(problem.cone, problem.P, stop=limits.over)
    if len(problem.prior) > space.listed:
        raise TooLarge(
            f"{problem.notion.name} on {len(problem.prior)} values has too many extreme columns to list"
        )
    return space.vertices()


def _cone_pricing(problem: Problem, stop: Stop) -> Pricing:
    """Pricing of the query over any cone."""
    A, P, query, prior = problem.cone, problem.P, problem.query, problem.reference
    nothing = np.zeros((1, len(P)))

    def utility(columns: Array) -> Array:
        return query.utility(columns, prior)

    if query.kind == "guess":
        return cone_pricing.ConeGuessPricing(A, P, utility, P[None], stop, nothing)
    if not query.linear:
        return cone_pricing.ConePricing(cone_pricing.Program(A, P), P, utility, stop, nothing)
    rows = query.centred_rows(prior)
    scores = np.eye(len(P)) if rows is None else rows
    return cone_pricing.ConeSquaresPricing(A, P, utility, scores, P[None], stop, nothing)


def _robust_plan(problem: Problem, limits: Limits) -> Plan:
    """The least error under the worst prior of a set."""
    sets, task, unit = problem.prior, problem.task(), problem.unit
    assert not isinstance(sets, Prior)
    limits = limits.in_units(-unit)  # the values of the engine are utilities
    if sets.members:
        priors = np.array([p.probabilities for p in sets.members])
        solution = robust.robust_design(problem.cone, priors, task, limits)
    else:
        start = np.vstack([problem.P, sets.vertices()[:64]])
        solution = robust.robust_design(problem.cone, start, task, limits, oracle=sets.best, least=1e-8)
    why = f"robust over the set of priors, {'proven' if solution.converged else 'stopped early'}"
    return problem.table_plan(solution.channel, unit * solution.lower_bound, "columns", why)


def _learning_plan(problem: Problem, limits: Limits) -> Plan:
    """The channel with the least variance of the statistics, read without the prior."""
    rows, space, unit = problem.query.centred_rows(problem.reference), _space(problem), 1.0
    if rows is not None:  # numbers of the size of shares, for which the tolerances of the solvers are meant
        unit = float(np.ptp(rows, axis=1).max())
        rows, limits = rows / unit, limits.in_units(unit**2)
    few = rows is not None and (space is not None or len(rows) == 1) and len(rows) <= _FEW_STATISTICS
    most = _MAX_VALUES_TO_SUM if few else _MAX_VALUES_TO_LEARN
    if len(problem.prior) > most:
        asked = "a distribution" if rows is None else f"{len(rows):,} statistics"
        message = f"{len(problem.prior):,} values: the engine learns {asked} of up to {most:,}"
        raise TooLarge(message, Hint("method", "unary"))
    within = replace(limits, target=max(limits.target, _LEARNING_GAP))
    try:
        if space is None:
            solution = _learning_in_cone(problem, within, rows)
        else:
            solution = unbiased.best_learning(space, within, rows)
    except KeyboardInterrupt:
        nearby = cone_pricing.nearby_columns(problem.cone, problem.P)
        solution = unbiased.best_weights(problem.P, nearby, Limits().without_time(), rows)
        solution = replace(solution, bound=0.0, gap=1.0)  # what is proven holds for these columns alone
    least = "A-optimal for learning the distribution" if rows is None else "L-optimal for the statistics"
    gap = f", gap {max(solution.gap, 0.0):.2g}" if solution.bound > 0 else ""  # a bound may be found later
    return problem.table_plan(solution.channel, unit**2 * solution.bound, "columns", least + gap)


def _learning_in_cone(problem: Problem, limits: Limits, rows: Array | None) -> Solution:
    """The best weights for all extreme columns of any cone, or for columns near the best ones of simpler cones.

    Those are LDP and, for LIP, the box of the reference prior. Without a secret the box holds the cone, so its bound is
    proven here too; for any cone the truth proves one.
    """
    P, lip = problem.P, problem.notion.bounds_lifts
    try:
        columns = _extreme_columns(problem, limits.share(_LISTING))
        return unbiased.best_weights(P, columns, limits, rows)
    except TooLarge:
        spaces: list[Box | LdpCone] = [*([_box(problem)] if lip else []), LdpCone(P, math.exp(problem.level))]
    found = [unbiased.best_learning(space, limits.share(1 / 2), rows) for space in spaces]
    bound = found[0].bound if lip and problem.secret is None else variance(np.eye(len(P)), P, rows)
    others = np.vstack([each.columns for each in found])
    columns = cone_pricing.nearby_columns(problem.cone, P, others)
    solution = unbiased.best_weights(P, columns, replace(limits.at_least(_PATIENCE), progress=None), rows)
    bound = min(bound, solution.value)
    return replace(solution, bound=bound, gap=1 - gain_share(solution.value, bound, math.inf))


def _with_ldp_bound(problem: Problem, plan: Plan, limits: Limits) -> Plan:
    """The plan with a better lower bound, if it is for linear statistics under LDP and too little is proven."""
    query, P = plan.query, problem.P
    leaning = query.kind == "linear" and isinstance(plan.prior, Prior)
    if not (_pairwise(problem) and (query.unbiased or leaning)) or plan.efficiency > _PROVEN:
        return plan
    patient = limits.at_least(_PATIENCE)
    try:
        if query.kind == "distribution":
            bound = ldp_variance_bound(P, problem.level, patient)
        else:
            rows = problem.centred_rows
            if (min(rows.shape) if query.unbiased else len(P)) > _FEW_STATISTICS:
                return plan
            bound = ldp_bound(P, factor_above(problem.level), rows, query.unbiased, patient)
    except KeyboardInterrupt:
        return plan  # it is certified, and only its bound is weaker
    return replace(plan, lower_bound=min(max(plan.lower_bound, bound * (1 - SLACK)), plan.expected_mse))


# Large domains: values that the best channel treats alike share a row, and only the groups are written out. A column
# that is constant within a group keeps `lo <= r <= hi` for the values if it does for the group, so a channel on the
# groups is as private as it looks.


def _grouped_plan(problem: Problem, Q: Array, groups: Ints, bound: float, why: str) -> Plan:
    """The certified plan of a channel `Q` on groups of values."""
    shape = Grouped(groups, Table(np.full((int(groups.max()) + 1, 1), 2**62)))
    weights, proof = certified_table(
        Q, shape.group_prior(problem.reference), problem.budget, notion=problem.notion
    )
    mechanism, prior = Grouped(groups, Table(weights)), problem.reference
    law = np.bincount(mechanism.rows, problem.P) @ mechanism.table.matrix
    lifts = (mechanism.table.matrix / law).T
    # a few columns at a time: all of them may not fit in memory
    parts = np.array_split(np.arange(len(law)), 1 + len(law) * len(problem.P) // _MOST_ENTRIES)
    gain = sum(law[y] @ problem.query.utility(lifts[y][:, mechanism.rows], prior) for y in parts)
    expected = max(0.0, problem.query.ceiling(prior) - float(gain))
    return problem.plan(mechanism, proof, expected, bound, "columns", why)


METHODS: dict[str, Callable[[Problem, Limits], Plan]] = {
    "closed": lambda problem, limits: closed_plan(problem),
    "arc": lambda problem, limits: arc_plan(problem),
    "columns": columns_plan,
    "unary": lambda problem, limits: unary_plan(problem),
    "subset": lambda problem, limits: subset_plan(problem, limits.over),
    "hashing": lambda problem, limits: hashing_plan(problem),
}
