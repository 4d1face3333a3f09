"""Design: the best mechanism a budget allows, with a proof of how good it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from priorveil.certify import Certifiable
from priorveil.designs import implicit, orders, tables
from priorveil.designs.closed import heavy
from priorveil.designs.limits import Limits, Progress, Stop, never
from priorveil.designs.problems import Draft, Problem, posed
from priorveil.errors import Infeasible, InvalidInput, TooLarge
from priorveil.notions import LDP, Known, Secrets
from priorveil.plans import Plan
from priorveil.priors import Budget
from priorveil.queries import Query

__all__ = ["METHODS", "design"]

Method = Literal["auto", "closed", "arc", "columns", "unary", "hashing"]

_SMALL, _SMALL_GAP, _GAP = 20, 1e-10, 1e-4
_WRITTEN = 300  # up to this many values a table is small anyway
_ENOUGH = 5e-3  # beyond, arcs are preferred to a table that could win no more than this share of the gain
_ENGINE = 1_500  # up to this many values `auto` trusts the engine alone
_LEARNING = 300  # the same for learning a distribution, whose channels have many reports
_GROUPED = 200_000  # up to this many it still tries the engine, with values in groups
_HASHED = 5_000  # up to this many it tries hash functions

METHODS: dict[str, Callable[[Problem, Limits], Draft]] = {
    "closed": lambda problem, limits: tables.closed_form(problem),
    "arc": lambda problem, limits: _arcs(problem),
    "columns": tables.engine,
    "unary": lambda problem, limits: implicit.unary(problem),
    "hashing": lambda problem, limits: implicit.hashing(problem),
}


def design(
    prior: Known | Sequence[float],
    epsilon: float | Budget,
    query: Query,
    secret: Secrets = None,
    notion: Certifiable | None = None,
    method: Method = "auto",
    *,
    gap: float | None = None,
    time_limit: float = 45.0,
    progress: Progress | None = None,
    should_stop: Stop | None = None,
) -> Plan:
    """The plan with the least error that privacy allows, certified; an error rather than a broken budget.

    Arguments: what is known (`prior`, or a `PriorSet`); `epsilon`, a number or a `Budget`; the `query`; the
    `secret`, the value itself by default; the `notion`, LIP by default; the `method`, by default chosen by
    size and expected error. The engine stops when less than `gap` of the achievable gain is unproven (1e-10
    on small domains, 1e-4 on larger ones), after `time_limit` seconds, when `should_stop()` is true, or on
    ctrl-C: each time with the best certified plan so far. `progress(round, error, bound)` is told.

    >>> import priorveil as pv
    >>> plan = design(pv.Prior([0.5, 0.3, 0.2]), epsilon=1.0, query=pv.Histogram())
    >>> plan.certificate.lip <= 1.0, plan.lower_bound <= plan.expected_mse < plan.no_report
    (True, True)
    """
    if gap is not None and not 0 <= gap < 1:
        raise InvalidInput("gap", gap, "give a share of the gain, from 0 to less than 1")
    if not time_limit >= 0:
        raise InvalidInput("time_limit", time_limit, "give seconds, 0 or more")
    deadline = time.monotonic() + time_limit
    problem = posed(prior, epsilon, query, secret, notion)
    target = gap if gap is not None else _SMALL_GAP if len(problem.prior) <= _SMALL else _GAP
    limits = Limits(target, deadline, progress, should_stop or never)
    if method != "auto" and method not in METHODS:
        raise InvalidInput("method", method, f"choose auto, {', '.join(METHODS)}")
    draft = _chosen(problem, limits) if method == "auto" else METHODS[method](problem, limits)
    return Plan(
        prior=problem.prior,
        budget=problem.budget,
        query=problem.query,
        mechanism=draft.mechanism,
        certificate=draft.certificate,
        notion=problem.notion,
        secret=problem.secret,
        expected_mse=draft.expected,
        lower_bound=draft.bound,
        no_report=problem.no_report,
        method=draft.method,
        why=draft.why,
    )


def _arcs(problem: Problem) -> Draft:
    """Arcs: to learn a distribution in many orders, for anything else in one."""
    return orders.arc_pool(problem) if problem.query.kind == "distribution" else implicit.arc(problem)


def _chosen(problem: Problem, limits: Limits) -> Draft:
    """What `auto` means: a closed form that is optimal, else the engine, else what suits large domains."""
    d = len(problem.prior)
    theorem = problem.box and heavy(problem.P, problem.budget.lo, problem.budget.hi).all()
    if d <= 2 or theorem:
        return tables.closed_form(problem)
    if d > _WRITTEN and problem.box and problem.query.kind in implicit.ARC_KINDS:
        small = implicit.arc(problem)
        if small.expected - small.bound <= _ENOUGH * (problem.no_report - small.bound):
            why = f"{small.why}; a table could win less than {_ENOUGH:.1%} of the gain"
            return replace(small, why=why)
    if d <= _reach(problem):
        return tables.engine(problem, limits)
    return _best_of(problem, _candidates(problem), limits)


def _reach(problem: Problem) -> int:
    """Up to how many values `auto` trusts the engine alone."""
    learning = problem.query.kind == "distribution"
    if isinstance(problem.notion, LDP):
        return 12 if learning else 30
    return _LEARNING if learning and problem.box else _ENGINE


def _candidates(problem: Problem) -> tuple[str, ...]:
    """The methods worth trying on a large domain: what takes long is left out where it is known to lose."""
    if isinstance(problem.notion, LDP):
        return ("unary", "closed")
    if problem.query.kind == "distribution":
        return ("arc", "hashing", "unary")
    if not problem.box:
        return ("columns", "unary")
    names = ["arc"]
    if len(problem.prior) <= _GROUPED and problem.query.kind != "convex":
        names.append("columns")
    if len(problem.prior) <= _HASHED and problem.query.kind == "histogram":
        names.append("hashing")
    return tuple(names)


def _best_of(problem: Problem, names: Sequence[str], limits: Limits) -> Draft:
    """The method with the least expected error among those that can do it."""
    drafts, refusals = [], []
    for name in names:
        try:
            drafts.append(METHODS[name](problem, limits))
        except (Infeasible, TooLarge) as error:
            refusals.append(f"{name}: {error}")
    if not drafts:
        raise Infeasible("no method can do this at this size. " + " | ".join(refusals))
    best = min(drafts, key=lambda draft: draft.expected)
    tried = ", ".join(f"{draft.method} {draft.expected:.6g}" for draft in drafts)
    return replace(best, why=f"{best.why} (the least expected error of: {tried})")
