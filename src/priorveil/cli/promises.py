"""What a plan promises: for people, and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from priorveil.cli import screen as screens
from priorveil.errors import TooLarge, plural

if TYPE_CHECKING:
    from priorveil.notions import Known
    from priorveil.plans import Plan
    from priorveil.priors import PriorSet


def record(plan: Plan) -> dict[str, object]:
    """What a plan promises, for a machine."""
    c = plan.certificate
    return {
        "id": plan.id,
        "query": plan.query.kind,
        "values": len(plan.labels),
        "priors": _priors_record(plan.prior),
        "budget": {"lower": screens.plain(plan.budget.lower), "upper": screens.plain(plan.budget.upper)},
        "notion": c.notion,
        "certificate": {k: screens.plain(getattr(c, k)) for k in ("lip", "lip_lower", "lip_upper", "ldp")},
        "expected_mse": screens.plain(plan.expected_mse),
        "lower_bound": plan.lower_bound,
        "no_report": screens.plain(plan.no_report),
        "efficiency": plan.efficiency,
        "identifiable": identifiable(plan),
        "method": plan.method,
        "why": plan.why,
    }


def _priors_record(known: Known) -> dict[str, object] | None:
    """The set of priors that a plan holds for; None where it is one prior."""
    from priorveil.priors import Prior

    if isinstance(known, Prior):
        return None
    return {"kind": known.kind, "radius": _radius(known)}


def identifiable(plan: Plan) -> bool | None:
    """Whether reports alone determine the distribution; None where the channel is too large to tell."""
    try:
        return plan.identifiable
    except TooLarge:
        return None


def promises(plan: Plan) -> list[tuple[str, str]]:
    """What was asked for, what is certified, and how it was found."""
    from priorveil.priors import Prior

    c = plan.certificate
    kind = plan.query.kind
    behind = "" if plan.secret is None else ", for the secret behind the value"
    other = [] if c.notion in ("LIP", "LDP") else [(f"certified {c.notion}", f"{c.level:.6g}{behind}")]
    return [
        (
            "asked",
            f"{kind} of {plural(len(plan.labels), 'value')}, {c.notion} at {screens.stated(plan.budget)}",
        ),
        ("how", f"{plan.method}: {plan.why}"),
        *([] if isinstance(plan.prior, Prior) else [("holds for", _priors(plan.prior))]),
        *other,
        ("certified LIP", f"{c.lip:.6g} (down {c.lip_lower:.6g}, up {c.lip_upper:.6g}){behind}"),
        ("certified LDP", f"{c.ldp:.6g}, for the value itself, whatever is known"),
    ]


def _priors(priors: PriorSet) -> str:
    """A set of priors in words."""
    if priors.members:
        return f"each of {plural(len(priors.members), 'prior')}"
    radius = _radius(priors)
    if radius is None:
        return "every prior between given bounds"
    return f"every prior within {radius:g} (total variation)"


def _radius(priors: PriorSet) -> float | None:
    """The radius of a ball of priors; None for other sets."""
    radius = priors.document().get("radius")
    return None if radius is None else float(radius)
