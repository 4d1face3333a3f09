"""Design methods: `design`, the table `METHODS`, and the table `AUTO` of what `auto` tries.

A `Method` says itself whether it applies to a problem, and what it promises. `auto` looks for the first row of `AUTO`
that applies to the problem, tries the methods of that row, and returns the plan with the least expected error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from priorveil.designs import bounds
from priorveil.designs.arc_design import arc_plan, require_arcs
from priorveil.designs.closed_forms import closed_plan, require_closed_form
from priorveil.designs.encodings import (
    hashing_plan,
    require_hashing,
    require_subset,
    require_unary,
    subset_plan,
    unary_plan,
)
from priorveil.designs.problem import DesignProblem, Objective
from priorveil.designs.robust_variances import variance_between
from priorveil.designs.spaces import LISTED, box_of, space_of
from priorveil.designs.stopping import (
    FINEST_GAP,
    MOST_DENSE,
    MOST_UNBIASED,
    PATIENCE,
    Limits,
    Stop,
    never,
)
from priorveil.designs.table_search import FEW_STATISTICS, columns_plan
from priorveil.designs.tolerances import TOLERANCE
from priorveil.designs.value_groups import FEW_VALUES, MANY_VALUES
from priorveil.errors import (
    CertificateError,
    Infeasible,
    InvalidInput,
    NotIdentifiable,
    PriorveilError,
    TooLarge,
)
from priorveil.notions import Cone, PriorOrSet, Secrets
from priorveil.plans import Plan
from priorveil.plans.structure import DesignMethod
from priorveil.priors import Budget
from priorveil.progress_bar import Progress, design_progress
from priorveil.queries import Query
from priorveil.reading.blas_threads import single_thread

MethodName = Literal["auto"] | DesignMethod


def always(problem: DesignProblem) -> None:
    """The method applies to every problem."""


@dataclass(frozen=True)
class Method:
    """A way to a plan: when it applies, what it promises, and how it is made.

    `require` raises an error that says why the method does not apply.
    """

    promise: str
    require: Callable[[DesignProblem], None]
    make: Callable[[DesignProblem, Limits], Plan]

    def plan(self, problem: DesignProblem, limits: Limits) -> Plan:
        """The plan, or an error that says why there is none."""
        self.require(problem)
        return self.make(problem, limits)


METHODS: dict[str, Method] = {
    "closed": Method(
        "optimal for two values and where every value is likely enough; randomised response under LDP",
        require_closed_form,
        lambda problem, limits: closed_plan(problem),
    ),
    "arc": Method(
        "near the bound on any number of values, in constant memory and time on the device",
        require_arcs,
        lambda problem, limits: arc_plan(problem),
    ),
    "columns": Method(
        "the best table that a search finds, with a proven bound; exact where all columns can be listed",
        always,
        columns_plan,
    ),
    "unary": Method(
        "the best point of the unary curve: a bit for each value",
        require_unary,
        lambda problem, limits: unary_plan(problem),
    ),
    "subset": Method(
        "the best size of subsets; under LDP the best channel for equally likely values",
        require_subset,
        lambda problem, limits: subset_plan(problem, limits.over),
    ),
    "hashing": Method(
        "near the bound at larger budgets, with tiny reports",
        require_hashing,
        lambda problem, limits: hashing_plan(problem),
    ),
}

_OPTIMAL = 1 - TOLERANCE  # efficiency of a plan that nothing can improve on
_NEAR_OPTIMAL = 0.995  # if a quick plan is as efficient as this, no search is worth its time
# Below this efficiency a search may have lost rare values to rounding, or found too few columns.
_TRUSTED = 0.5
ANY_PLAN = 0.0  # every plan has this efficiency: any plan ends the comparison
# Below this efficiency the plan advises to merge values, if they are too many for a search.
_FAR_FROM_BOUND = 0.5


class Try(NamedTuple):
    """A method to try on up to `most` values; once a plan is at least `enough` efficient, no other is tried."""

    method: str
    enough: float = _OPTIMAL
    most: float = math.inf


class AutoRow(NamedTuple):
    """Methods to try in one case. `otherwise` is tried if no plan reaches an efficiency of `_TRUSTED`."""

    case: str
    applies: Callable[[DesignProblem], bool]
    tries: tuple[Try, ...]
    otherwise: tuple[Try, ...] = ()


_CLOSED = (Try("closed"),)
_UNARY_SUBSET = (Try("unary"), Try("subset"))

# The sizes in these rows trade the time of a search for the error that it saves.
# - 30 values: up to here a search under LDP takes some seconds; from about 60 on it ends at its time limit.
# - 120 values: beyond, a search ends at its time limit, and arcs in many orders are as good in less time.
# `benchmarks/design.py --only ldp distribution orders` measures times and errors.
AUTO = (
    AutoRow(
        "every person adds the same to the statistics",
        lambda p: p.query.same_for_all(p.reference),
        (Try("columns"),),
    ),
    AutoRow(
        "one or two values, or every value is likely enough for Theorem 3",
        lambda p: p.size <= 2 or p.all_heavy,
        _CLOSED,
    ),
    AutoRow(
        "a convex gain, one prior, under LIP of the value or LDP",
        lambda p: p.objective is Objective.CONVEX and p.has_one_prior and space_of(p) is not None,
        (Try("columns"),),
        _CLOSED,
    ),
    AutoRow(
        "LDP: a histogram of more than 30 values, one prior, no secret",
        lambda p: (
            p.is_ldp
            and p.objective is Objective.HISTOGRAM
            and p.has_one_prior
            and p.secret is None
            and p.size > 30
        ),
        (Try("subset", _NEAR_OPTIMAL), Try("unary"), Try("columns", most=MOST_DENSE)),
    ),
    AutoRow(
        "LDP: any other histogram, one prior",
        lambda p: p.is_ldp and p.objective is Objective.HISTOGRAM and p.has_one_prior,
        (Try("columns", most=MOST_DENSE), Try("unary"), Try("subset")),
        _CLOSED,
    ),
    AutoRow(
        "LDP: a sum or statistics that lean on the prior, one prior",
        lambda p: p.is_ldp and p.objective in (Objective.SUM, Objective.STATISTICS) and p.has_one_prior,
        (Try("columns"), Try("unary", most=MANY_VALUES), Try("subset", most=MANY_VALUES)),
        (*_UNARY_SUBSET, *_CLOSED),
    ),
    AutoRow(
        "LDP: unbiased statistics",
        lambda p: p.is_ldp and p.objective is Objective.UNBIASED_STATISTICS,
        (Try("columns", most=MOST_UNBIASED), Try("unary"), Try("subset")),
        _CLOSED,
    ),
    AutoRow(
        "LDP: a distribution, one prior, no secret",
        lambda p: p.is_ldp and p.objective is Objective.DISTRIBUTION and p.has_one_prior and p.secret is None,
        (Try("columns", most=LISTED), Try("unary"), Try("subset")),
    ),
    AutoRow(
        "LDP: a distribution, a set of priors or a secret",
        lambda p: p.is_ldp and p.objective is Objective.DISTRIBUTION,
        (Try("columns", most=MANY_VALUES), Try("unary")),
        _CLOSED,
    ),
    AutoRow(
        "LDP: a guess, or any gain under a set of priors",
        lambda p: p.is_ldp,
        (Try("columns", most=30), Try("unary"), Try("subset")),
        _CLOSED,
    ),
    AutoRow(
        "LIP of the value: a distribution on up to 120 values, or 300 equally likely ones",
        lambda p: (
            p.is_lip_of_value
            and p.objective is Objective.DISTRIBUTION
            and p.size <= (120 if np.ptp(p.P) else MANY_VALUES)
        ),
        (Try("columns", _NEAR_OPTIMAL), Try("arc")),
        _UNARY_SUBSET,
    ),
    AutoRow(
        "LIP of the value: a distribution on more values",
        lambda p: p.is_lip_of_value and p.objective is Objective.DISTRIBUTION,
        (Try("arc"), Try("unary"), Try("subset", most=100_000)),
    ),
    AutoRow(
        "LIP of the value: up to 300 values, and guesses on any number of them",
        lambda p: p.is_lip_of_value and (p.size <= MANY_VALUES or p.objective is Objective.GUESS),
        (Try("columns"),),
        (Try("arc"), *_UNARY_SUBSET),
    ),
    AutoRow(
        "LIP of the value: unbiased statistics of more values",
        lambda p: p.is_lip_of_value and p.query.unbiased,
        (Try("columns", _TRUSTED), Try("arc", ANY_PLAN), Try("unary")),
    ),
    AutoRow(
        "LIP of the value: a histogram, a sum or statistics of more values",
        lambda p: p.is_lip_of_value,
        (Try("arc", _NEAR_OPTIMAL), Try("columns", most=200_000)),
        _UNARY_SUBSET,
    ),
    AutoRow(
        "everything else: secrets, sets of priors, other notions",
        lambda p: True,
        (Try("columns"),),
        (Try("unary"),),
    ),
)

# The default gaps for more than a few values: the last part of a per cent takes nearly all of the time. Whoever gives
# a time limit or a number of rounds asks for more.
_GAP, _FINER_GAP = 0.005, 1e-4
_SECONDS = 45.0


def design(
    prior: PriorOrSet | Sequence[float],
    epsilon: float | Budget,
    query: Query,
    secret: Secrets = None,
    notion: Cone | None = None,
    method: MethodName = "auto",
    *,
    gap: float | None = None,
    time_limit: float | None = None,
    rounds: int | None = None,
    progress: Progress | bool | None = None,
    should_stop: Stop | None = None,
) -> Plan:
    """The plan with the least error that privacy allows, certified; it raises rather than break its budget.

    Arguments: what is known (`prior`, or a `PriorSet`); `epsilon`, a number or a `Budget`; the `query`; the
    `secret`, the value itself by default; the `notion`, LIP by default; the `method`, by default chosen by
    size and expected error. The engine stops when at most `gap` of the achievable gain is unproven, after
    `time_limit` seconds (45 by default), when `should_stop()` is true, or on ctrl-C: each time with the best
    certified plan so far. By default `gap` is 1e-10 up to 20 values. Beyond, it is half a per cent, since the rest
    takes nearly all of the time, or 1e-4 if `time_limit` or `rounds` is given. The engine calls
    `progress(round, error, bound)` as it goes; without it, a design that takes more than a second shows a bar on a
    terminal and in notebooks, unless `progress=False`.
    `time_limit` is for the search: it stops after the step that it has begun, and the plan is certified after that.
    With many values a step and the certificate can take several seconds each; up to 14 values LDP is one step.
    If `rounds` is given, it stops after that many rounds of search instead of at the time limit, so that the plan does
    not depend on how fast the machine is.

    >>> import priorveil as pv
    >>> plan = design(pv.Prior([0.5, 0.3, 0.2]), epsilon=1.0, query=pv.Histogram())
    >>> plan.certificate.lip <= 1.0, plan.lower_bound <= plan.expected_mse < plan.no_report
    (True, True)
    """
    if gap is not None and not 0 <= gap < 1:
        raise InvalidInput("gap", gap, "give a share of the gain, from 0 to less than 1")
    if time_limit is not None and not time_limit >= 0:
        raise InvalidInput("time_limit", time_limit, "give seconds, 0 or more")
    if rounds is not None and not rounds >= 0:
        raise InvalidInput("rounds", rounds, "give a number of rounds, 0 or more")
    if method != "auto" and method not in METHODS:
        raise InvalidInput("method", method, f"choose auto, {', '.join(METHODS)}")
    problem = DesignProblem.of(prior, epsilon, query, secret, notion)
    seconds = _SECONDS if time_limit is None else time_limit
    if gap is None:
        larger = _GAP if time_limit is None and rounds is None else _FINER_GAP
        gap = FINEST_GAP if problem.size <= FEW_VALUES else larger
    with single_thread(), design_progress(progress, seconds if rounds is None else math.inf) as on_round:
        limits = Limits(target=gap, progress=on_round, should_stop=should_stop or never)
        limits = limits.of_seconds(seconds) if rounds is None else limits.of_rounds(rounds)
        plan = best_plan(problem, limits) if method == "auto" else METHODS[method].plan(problem, limits)
        return _with_ldp_bound(problem, plan, limits)


def auto_row(problem: DesignProblem) -> AutoRow:
    """The row of `AUTO` that is for this problem: the first that applies."""
    return next(row for row in AUTO if row.applies(problem))


def best_plan(problem: DesignProblem, limits: Limits) -> Plan:
    """What `auto` means: the plan with the least expected error that the methods of its row make."""
    row = auto_row(problem)
    first = [attempt for attempt in row.tries if problem.size <= attempt.most]
    others = [attempt for attempt in row.otherwise if attempt.method not in {each.method for each in first}]
    plans, refusals = list[Plan](), dict[str, PriorveilError]()
    _try_methods(problem, limits, first, plans, refusals)
    if max((plan.efficiency for plan in plans), default=0.0) < _TRUSTED:
        _try_methods(problem, limits, others, plans, refusals)
    if not plans and len(first) == 1:
        raise refusals[first[0].method]
    if not plans:
        reasons = " | ".join(f"{name}: {error}" for name, error in refusals.items())
        raise Infeasible(f"no method can do this at this size. {reasons}")
    best = min(plans, key=lambda plan: plan.expected_mse)
    if isinstance(refusals.get("columns"), TooLarge) and best.efficiency < _FAR_FROM_BOUND:
        fewer = f"far from the bound: merge neighbouring values into at most {MOST_DENSE:,} cells"
        best = replace(best, why=f"{best.why}; {fewer}")
    if len(plans) == 1:
        return best
    bound = max(plan.lower_bound for plan in plans)
    if (
        problem.is_lip_of_value
        and problem.objective is Objective.DISTRIBUTION
        and problem.size <= MANY_VALUES
    ):
        with suppress(KeyboardInterrupt):  # the plan is certified, and only its bound is weaker
            bound = max(bound, bounds.rounded_down(bounds.information_bound(box_of(problem), limits)))
    bound = min(best.expected_mse, bound)
    compared = ", ".join(f"{plan.method} {plan.expected_mse:.6g}" for plan in plans)
    return replace(best, lower_bound=bound, why=f"{best.why} (the least expected error of: {compared})")


def _try_methods(
    problem: DesignProblem,
    limits: Limits,
    attempts: Sequence[Try],
    plans: list[Plan],
    refusals: dict[str, PriorveilError],
) -> None:
    """Add the plans, and the errors of methods that make none, until a plan is efficient enough."""
    for attempt in attempts:
        try:
            plans.append(METHODS[attempt.method].plan(problem, limits))
        except (Infeasible, TooLarge, CertificateError, NotIdentifiable) as error:
            refusals[attempt.method] = error
        else:
            if plans[-1].efficiency >= attempt.enough:
                break


def _with_ldp_bound(problem: DesignProblem, plan: Plan, limits: Limits) -> Plan:
    """The plan with a better lower bound, if it is for linear statistics under LDP and too little is proven."""
    unbiased = problem.query.unbiased
    uses_one_prior = problem.objective is Objective.STATISTICS and problem.has_one_prior
    little = max(limits.target, _FINER_GAP)
    if not (problem.is_ldp and (unbiased or uses_one_prior)) or 1 - plan.efficiency < little:
        return plan
    patient = limits.at_least(PATIENCE)
    try:
        if problem.objective is Objective.DISTRIBUTION:
            bound = bounds.ldp_variance_bound(problem.P, problem.level, patient)
        else:
            rows, factor = problem.centred_rows, bounds.factor_above(problem.level)
            if (min(rows.shape) if unbiased else problem.size) > FEW_STATISTICS:
                return plan
            bound = bounds.ldp_bound(problem.P, factor, rows, unbiased, patient)
        if (
            problem.prior.members and not problem.has_one_prior
        ):  # at the mean of the members, which may be none of them
            members = np.array([p.probabilities for p in problem.prior.members])
            equal = np.full(len(members), 1 / len(members))
            bound -= variance_between(members, equal, problem.centred_rows)
    except KeyboardInterrupt:
        return plan  # it is certified, and only its bound is weaker
    lower_bound = min(max(plan.lower_bound, bounds.rounded_down(bound)), plan.expected_mse)
    return replace(plan, lower_bound=lower_bound)
