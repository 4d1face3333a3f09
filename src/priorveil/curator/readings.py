"""Tallies read as estimates, as the API shows them. Time grows with the values, never with the reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from priorveil.collect.campaign import Campaign
from priorveil.plans import Plan
from priorveil.plans.estimate import Estimate, Method, combine_estimates
from priorveil.plans.tally import Tally

METHODS = ("auto", "mmse", "unbiased", "mle")


def readings(campaign: Campaign, tallies: Mapping[str, Tally], method: str, level: float) -> dict[str, Any]:
    """The estimates of every cohort and of all together; withheld where there are too few reports.

    `auto` reads every plan as it was designed: without the prior for an unbiased query, by `mmse` for others.
    """
    found = {name: _read(campaign, plan, tallies[plan.id], method) for name, plan in campaign.cohorts.items()}
    cohorts = [
        {
            "cohort": name,
            **_about(campaign.cohorts[name]),
            **_shown(campaign, tallies[campaign.cohorts[name].id], e, level),
        }
        for name, e in found.items()
    ]
    return {
        "campaign": campaign.id,
        "question": campaign.question,
        "level": level,
        "smallest_count": campaign.smallest_count,
        "leans_on_prior": campaign.leans_on_prior,
        "reports": sum(tally.reports for tally in tallies.values()),
        "cohorts": cohorts,
        "total": _total([e for e in found.values() if e is not None], level)
        if None not in found.values()
        else None,
    }


def _read(campaign: Campaign, plan: Plan, tally: Tally, method: str) -> Estimate | None:
    if tally.reports < max(campaign.smallest_count, 1):
        return None
    return plan.estimate(tally, cast(Method, method))


def _about(plan: Plan) -> dict[str, Any]:
    """What does not depend on the reports."""
    c = plan.certificate
    return {
        "plan": plan.id,
        "prior": plan.reference.probabilities.tolist(),
        "identifiable": plan.identifiable,
        "privacy": {"lip": c.lip, "lip_lower": c.lip_lower, "lip_upper": c.lip_upper, "ldp": c.ldp},
    }


def _shown(campaign: Campaign, tally: Tally, estimate: Estimate | None, level: float) -> dict[str, Any]:
    shown: dict[str, Any] = {"reports": tally.reports, "withheld": estimate is None}
    return shown if estimate is None else {**shown, **_numbers(estimate, level)}


def _numbers(estimate: Estimate, level: float) -> dict[str, Any]:
    low, high = estimate.interval(level)
    return {
        "method": estimate.method,
        "assumes": estimate.assumes,
        "labels": list(estimate.labels),
        "values": estimate.values.tolist(),
        "std_error": estimate.std_error.tolist(),
        "lower": low.tolist(),
        "upper": high.tolist(),
        "prior_check": estimate.prior_check,
        "converged": estimate.converged,
    }


def _total(estimates: list[Estimate], level: float) -> dict[str, Any] | None:
    """All cohorts together: their estimates combined, as cohorts are different people; None if labels differ."""
    if any(set(e.labels) != set(estimates[0].labels) for e in estimates):
        return None
    together = combine_estimates(estimates)
    return {"reports": together.reports, **_numbers(together, level)}
