"""A plan beside what else there is: the best of local differential privacy, and other budgets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from priorveil.errors import Infeasible, TooLarge

if TYPE_CHECKING:
    from priorveil.notions import Known
    from priorveil.plans import Plan
    from priorveil.priors import Budget, Prior
    from priorveil.queries import Query

_SEARCHED = 30  # up to this many values the best LDP mechanism is searched for
_LISTED = 8  # up to this many it is found at once
_WRITTEN = 1_500  # up to this many values randomised response is written out as a table
_STEPS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
_FEW = (0.5, 1.0, 1.5, 2.0)  # where designs take long


@dataclass(frozen=True)
class Rival:
    """Another mechanism for the same question, its expected error, and whether none of its kind is better."""

    name: str
    error: float
    best: bool


def ldp(plan: Plan, seconds: float = 10.0) -> Rival | None:
    """The best LDP mechanism for the plan's question, at the smaller side of its budget; None if unknown.

    It protects the value itself, whatever anyone knows, and needs no prior for that. Without `seconds` to
    search, only small domains are searched.
    """
    from priorveil.priors import Prior

    epsilon, query = min(plan.budget.lower, plan.budget.upper), plan.query
    found = _searched(query, plan.prior, epsilon, seconds)
    if (found is not None and found.best) or not isinstance(plan.prior, Prior):
        return found
    rivals = [*([] if found is None else [found]), *_known_forms(query, plan.prior, epsilon)]
    return min(rivals, key=lambda rival: rival.error, default=None)


def _searched(query: Query, prior: Known, epsilon: float, seconds: float) -> Rival | None:
    """What a search finds, where the domain is small enough for one."""
    from priorveil.designs import design
    from priorveil.notions import LDP

    if len(prior) > (_SEARCHED if seconds > 0 else _LISTED):
        return None
    try:
        found = design(prior, epsilon, query, notion=LDP(), time_limit=seconds)
    except (Infeasible, TooLarge):
        return None
    return Rival(found.method, found.expected_mse, found.efficiency > 0.999)


def _known_forms(query: Query, prior: Prior, epsilon: float) -> Iterator[Rival]:
    """Randomised response, subset selection and unary encoding, each where its error is known."""
    from priorveil.designs import design
    from priorveil.designs.closed import subset_gains
    from priorveil.notions import LDP
    from priorveil.studies import published

    P = prior.probabilities
    if query.kind == "distribution":
        support = published.subset_selection(prior, epsilon).support
        assert support is not None
        noise = sum(support.variance(1, float(p)) for p in P)
        yield Rival("subset selection", noise + 1 - float(P @ P), False)
    if query.kind == "histogram" and len(prior) <= _WRITTEN:
        yield Rival("subset selection", 1 - float(subset_gains(P, epsilon).max()), False)
    elif len(prior) <= _WRITTEN:
        form = published.k_rr(prior, epsilon)
        yield Rival("k-ary randomised response", query.error(form.channel, prior), False)
    try:
        found = design(prior, epsilon, query, notion=LDP(), method="unary")
        yield Rival("unary encoding", found.expected_mse, False)
    except (Infeasible, TooLarge):
        return


@dataclass(frozen=True)
class Curve:
    """Expected errors at other budgets: `steps` times the plan's own."""

    epsilons: tuple[float, ...]
    errors: tuple[float, ...]
    bounds: tuple[float, ...]
    rivals: tuple[float | None, ...]
    no_report: float
    here: float


def curve(plan: Plan, seconds: float = 2.0) -> Curve:
    """The plan's question at budgets from a quarter to twice its own, beside LDP."""
    from priorveil.priors import Budget

    smaller = min(plan.budget.lower, plan.budget.upper)
    quick: Literal["arc", "auto"] = "arc" if plan.method == "arc" else "auto"
    steps = _STEPS if len(plan.labels) <= _LISTED or plan.method in ("arc", "closed") else _FEW
    plans, rivals = [], []
    for step in steps:
        budget = Budget(plan.budget.lower * step, plan.budget.upper * step)
        plans.append(plan if step == 1 else _redesigned(plan, budget, quick, seconds))
        rivals.append(ldp(replace(plan, budget=budget), 0.0))
    return Curve(
        tuple(smaller * step for step in steps),
        tuple(p.expected_mse for p in plans),
        tuple(p.lower_bound for p in plans),
        tuple(None if r is None else r.error for r in rivals),
        plan.no_report,
        smaller,
    )


def _redesigned(plan: Plan, budget: Budget, method: Literal["arc", "auto"], seconds: float) -> Plan:
    """The same question at another budget, roughly."""
    from priorveil.designs import design

    question = (plan.prior, budget, plan.query, plan.secret, plan.notion, method)
    return design(*question, gap=1e-3, time_limit=seconds)
