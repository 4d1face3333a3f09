"""Estimates as the API shows them. The time they take grows with the values, never with the reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from priorveil.collect.campaign import Campaign
from priorveil.mechanisms.estimators import apply_rows
from priorveil.plans import Plan
from priorveil.plans.estimate import Estimate, Method, combine_estimates
from priorveil.plans.tally import Tally

_PRIVACY = ("lip", "lip_lower", "lip_upper", "ldp")
METHODS: tuple[Method, ...] = get_args(Method)


def campaign_estimates(
    campaign: Campaign, tallies: Mapping[str, Tally], method: str, level: float
) -> dict[str, Any]:
    """The estimates of every cohort and of all cohorts together; withheld where there are too few reports."""
    least = max(campaign.smallest_count, 1)
    estimates = {
        name: plan.estimate(tallies[plan.id], cast(Method, method))
        for name, plan in campaign.cohorts.items()
        if tallies[plan.id].reports >= least
    }
    cohorts = [
        {
            "cohort": name,
            "plan": plan.id,
            "prior": _prior_statistics(plan),
            "identifiable": plan.identifiable,
            "precision": plan.precision.document(),
            "privacy": {bound: getattr(plan.certificate, bound) for bound in _PRIVACY},
            "reports": tallies[plan.id].reports,
            "withheld": name not in estimates,
            **(estimates[name].record(level) if name in estimates else {}),
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
        "total": _total(list(estimates.values()), level) if len(estimates) == len(cohorts) else None,
    }


def _prior_statistics(plan: Plan) -> list[float]:
    """Every statistic per person, under the prior."""
    return list(apply_rows(plan.query.rows(plan.reference), plan.reference.probabilities).tolist())


def _total(estimates: list[Estimate], level: float) -> dict[str, Any] | None:
    """All cohorts together, if they ask for the same statistics."""
    if any(set(estimate.labels) != set(estimates[0].labels) for estimate in estimates):
        return None
    return combine_estimates(estimates).record(level)
