"""Estimates as the API shows them. The time they take grows with the values, never with the reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from priorveil.collect.campaign import Campaign
from priorveil.plans import Plan
from priorveil.plans.estimate import Estimate, Method, combine_estimates
from priorveil.plans.tally import Tally

METHODS = ("auto", "mmse", "unbiased", "mle")


def campaign_estimates(
    campaign: Campaign, tallies: Mapping[str, Tally], method: str, level: float
) -> dict[str, Any]:
    """The estimates of every cohort and of all cohorts together; withheld where there are too few reports."""
    least = max(campaign.smallest_count, 1)
    found = {
        name: plan.estimate(tally, cast(Method, method))
        if (tally := tallies[plan.id]).reports >= least
        else None
        for name, plan in campaign.cohorts.items()
    }
    cohorts = [
        {
            "cohort": name,
            **_describe_plan(plan),
            "reports": tallies[plan.id].reports,
            "withheld": found[name] is None,
            **_numbers(found[name], level),
        }
        for name, plan in campaign.cohorts.items()
    ]
    return {
        "campaign": campaign.id,
        "question": campaign.question,
        "level": level,
        "smallest_count": campaign.smallest_count,
        "leans_on_prior": campaign.leans_on_prior,
        "reports": sum(tally.reports for tally in tallies.values()),
        "cohorts": cohorts,
        "total": _total(list(found.values()), level),
    }


def _describe_plan(plan: Plan) -> dict[str, Any]:
    """What does not depend on the reports."""
    c = plan.certificate
    return {
        "plan": plan.id,
        "prior": plan.reference.probabilities.tolist(),
        "identifiable": plan.identifiable,
        "privacy": {"lip": c.lip, "lip_lower": c.lip_lower, "lip_upper": c.lip_upper, "ldp": c.ldp},
    }


def _numbers(estimate: Estimate | None, level: float) -> dict[str, Any]:
    if estimate is None:
        return {}
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


def _total(estimates: list[Estimate | None], level: float) -> dict[str, Any] | None:
    """All cohorts together, where none is withheld and all ask for the same statistics."""
    shown = [estimate for estimate in estimates if estimate is not None]
    if len(shown) < len(estimates) or any(set(e.labels) != set(shown[0].labels) for e in shown):
        return None
    together = combine_estimates(shown)
    return {"reports": together.reports, **_numbers(together, level)}
