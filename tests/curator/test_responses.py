"""Estimates as the API shows them: what stands next to the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from priorveil import Distribution, Linear, Prior, Sum
from priorveil.collect.campaign import ask
from priorveil.curator.responses import campaign_estimates
from priorveil.queries import Query

PRIOR = Prior({"nothing": 0.5, "about 20": 0.3, "about 100": 0.2})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Sum([1, 21, 101]), [27.0]),
        (Linear([[0, 1, 1], [0, 0, 1]], names=("some", "much")), [0.5, 0.2]),
        (Distribution(), [0.5, 0.3, 0.2]),
    ],
)
def test_the_prior_has_the_statistics_of_the_query(query: Query, expected: list[float]) -> None:
    """So that a page can put them next to the estimates, per person."""
    campaign = ask("How much?", PRIOR, 1.0, query, smallest_count=1)
    plan = campaign.plan_for(None)
    tally = plan.tally(plan.privatize(np.repeat([0, 1, 2], 50), np.random.default_rng(1)))
    (cohort,) = campaign_estimates(campaign, {plan.id: tally}, "auto", 0.95, "open").cohorts
    assert cohort.prior == pytest.approx(expected)
    assert len(cohort.prior) == len(cohort.labels) == len(cohort.values)
