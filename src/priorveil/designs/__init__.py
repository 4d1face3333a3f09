"""Design: the best mechanism a budget allows, with a proof of how good it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from priorveil.certify import Certifiable
from priorveil.designs import implicit, tables
from priorveil.designs.closed import heavy
from priorveil.designs.problems import AnyQuery, Draft, Limits, Problem, Report, posed
from priorveil.errors import Infeasible, InvalidInput, TooLarge
from priorveil.notions import LDP, Known, Secrets
from priorveil.plans import Plan
from priorveil.priors import Budget

__all__ = ["METHODS", "design"]

Method = Literal["auto", "closed", "arc", "columns", "unary", "hashing"]

_ENGINE = 1_500  # up to this many values `auto` writes the channel out

METHODS: dict[str, Callable[[Problem, Limits], Draft]] = {
    "closed": lambda problem, limits: tables.closed_form(problem),
    "arc": lambda problem, limits: implicit.arc(problem),
    "columns": tables.engine,
    "unary": lambda problem, limits: implicit.unary(problem),
    "hashing": lambda problem, limits: implicit.hashing(problem),
}


def design(
    prior: Known | Sequence[float],
    epsilon: float | Budget,
    query: AnyQuery,
    secret: Secrets = None,
    notion: Certifiable | None = None,
    method: Method = "auto",
    *,
    gap: float = 1e-7,
    time_limit: float = 60.0,
    progress: Report | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Plan:
    """The plan with the least error that privacy allows, certified; or an error, never a plan that breaks its budget.

    Arguments: what is known (`prior`, or a `PriorSet`); `epsilon`, a number or a `Budget`; the `query`; the `secret`, the
    value itself by default; the `notion`, LIP by default; the `method`, chosen by size and expected error by default.
    The engine stops when less than `gap` of the achievable gain is unproven, after `time_limit` seconds, when
    `should_stop()` is true, or on ctrl-C: with the best certified plan so far. `progress(round, error, bound)` is told.

    >>> import priorveil as pv
    >>> plan = design(pv.Prior([0.5, 0.3, 0.2]), epsilon=1.0, query=pv.Histogram())
    >>> plan.certificate.lip <= 1.0, plan.lower_bound <= plan.expected_mse < plan.no_report
    (True, True)
    """
    problem = posed(prior, epsilon, query, secret, notion)
    limits = Limits(gap, time_limit, progress, should_stop)
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


def _chosen(problem: Problem, limits: Limits) -> Draft:
    """What `auto` means: a closed form that is optimal, else the engine, else whatever large domains allow."""
    d = len(problem.prior)
    theorem = problem.box and heavy(problem.P, problem.budget.lo, problem.budget.hi).all()
    if d <= 2 or theorem:
        return tables.closed_form(problem)
    if d <= _ENGINE and not (isinstance(problem.notion, LDP) and d > 30):
        return tables.engine(problem, limits)
    return _best_of(problem, ("arc", "unary", "hashing", "closed"), limits)


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
    return min(drafts, key=lambda draft: draft.expected)
