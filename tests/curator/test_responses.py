"""Estimates as the API shows them: what stands next to the numbers."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from priorveil import Distribution, Histogram, Linear, Prior, Sum
from priorveil.collect.campaign import ask
from priorveil.curator.messages import Shown
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
    tally = plan.tally(plan.privatize(np.repeat([0, 1, 2], 50), np.random.default_rng(1), codes=True))
    (cohort,) = campaign_estimates(campaign, {plan.id: tally}, "auto", 0.95, "open").cohorts
    assert cohort.prior == pytest.approx(expected)
    assert len(cohort.prior) == len(cohort.labels) == len(cohort.values)


def test_the_total_shows_what_the_priors_of_all_cohorts_expect() -> None:
    campaign = ask("Ill?", {"north": Prior({"yes": 0.1, "no": 0.9}), "south": Prior({"yes": 0.4, "no": 0.6})})
    rng = np.random.default_rng(2)
    tallies = {
        plan.id: plan.tally(plan.privatize(["yes", "no"] * people, rng))
        for plan, people in zip(campaign.cohorts.values(), (300, 100), strict=True)
    }
    response = campaign_estimates(campaign, tallies, "auto", 0.9, "open")
    assert response.total is not None
    display = response.total.display
    assert [row.expected for row in display.rows] == pytest.approx([0.175, 0.825])
    assert [row.expected_text for row in display.rows] == ["17.5 %", "82.5 %"]
    assert display.shares and display.interval_head == "90 % interval" and display.left_out is None
    assert [row.value for row in display.rows] == pytest.approx([x / 800 for x in response.total.values])


def test_methods_that_the_reports_do_not_allow_are_not_offered() -> None:
    for query in (Distribution(), Histogram()):
        campaign = ask("Which?", Prior({"none": 0.9, **dict.fromkeys("abcd", 0.025)}), 1.0, query)
        plan = campaign.plan_for(None)
        response = campaign_estimates(campaign, {plan.id: plan.tally([])}, "mmse", 0.95, "open")
        assert response.caution is not None
        offered = {choice.method for choice in response.methods}
        assert offered == ({"auto", "mmse", "unbiased", "mle"} if plan.identifiable else {"auto", "mmse"})


def test_numbers_show_their_mean() -> None:
    campaign = ask("Hours?", Prior.grid([0, 20, 40], [0.3, 0.4, 0.3], outside="ends"), smallest_count=1)
    plan = campaign.plan_for(None)
    tally = plan.tally(plan.privatize(np.linspace(0, 40, 500), np.random.default_rng(3)))
    (cohort,) = campaign_estimates(campaign, {plan.id: tally}, "auto", 0.95, "open").cohorts
    (mean,) = cohort.display.numbers
    assert mean.label == "mean" and mean.value == cohort.statistics[0].value
    assert mean.value_text == f"{mean.value:.1f}" and mean.expected is None


def test_averages_by_group_are_the_answer() -> None:
    cells = {("young", 0): 0.2, ("young", 40): 0.2, ("old", 0): 0.5, ("old", 40): 0.1}
    prior = Prior.joint(cells, ("age", "overtime"), grids=("overtime",), outside="ends")
    campaign = ask("Overtime?", prior, 2.0, Linear.averages(prior, "overtime", by="age"), smallest_count=1)
    plan = campaign.plan_for(None)
    values = [("young", 10.0), ("old", 20.0)] * 500
    tally = plan.tally(plan.privatize(values, np.random.default_rng(1)))
    (cohort,) = campaign_estimates(campaign, {plan.id: tally}, "auto", 0.95, "open").cohorts
    averages = plan.estimate(tally).averages
    assert cohort.labels == ["age=young", "age=old"] and cohort.prior == pytest.approx([20, 40 / 6])
    assert cohort.values == pytest.approx(averages.values)
    assert [row.value for row in cohort.display.rows] == pytest.approx(averages.values)
    assert [row.expected for row in cohort.display.rows] == pytest.approx(cohort.prior)
    assert not cohort.display.shares and cohort.display.label_head == "mean overtime"
    received = msgspec.json.decode(
        msgspec.json.encode(cohort), type=Shown
    )  # refuses what the schema does not allow
    assert received.precision.statistic == "average of a group"
    few = campaign_estimates(campaign, {plan.id: plan.tally([0])}, "auto", 0.95, "open")
    assert b"null" in msgspec.json.encode(few)  # intervals without ends
