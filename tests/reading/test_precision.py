"""The precision to expect from so many people: against expected errors, estimates, and in words."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import priorveil as pv
from priorveil.information import variance
from priorveil.words.plans import plan_facts
from sample_plans import PAIRS, PRIOR, pair_plan

LINEAR = [(kind, query) for kind, query in PAIRS if query != "Guess"]


@pytest.mark.parametrize(("kind", "query"), LINEAR)
def test_squared_standard_errors_add_up_to_the_expected_error(kind: str, query: str) -> None:
    plan = pair_plan(kind, query)
    expected = np.sum(plan.std_error(500) ** 2) * 500
    assert expected == pytest.approx(plan.expected_mse, rel=1e-6)


@pytest.mark.parametrize(("kind", "query"), PAIRS)
def test_estimates_have_the_expected_standard_errors(kind: str, query: str) -> None:
    plan, N = pair_plan(kind, query), 40_000
    people = np.random.default_rng(5).choice(len(plan.labels), N, p=plan.reference.probabilities)
    found = plan.estimate(plan.tally(plan.privatize(people, np.random.default_rng(6), codes=True)))
    assert found.std_error / N == pytest.approx(plan.std_error(N), rel=0.05)


@pytest.mark.parametrize(("kind", "query"), PAIRS)
def test_expected_counts_read_as_the_prior(kind: str, query: str) -> None:
    plan = pair_plan(kind, query)
    P = plan.reference.probabilities
    counts = plan.reader.expected_counts(P, 300)
    assert counts.shape == plan.reader.counts_shape
    assert plan.reader.people(np.rint(counts)) == pytest.approx(300, abs=len(counts.T))
    for method in ("mmse", "unbiased") if plan.identifiable else ("mmse",):
        assert plan.reader.answer(method, counts, P, None, True).mean == pytest.approx(300 * P, rel=1e-6)


def test_an_unbiased_plan_states_points_of_shares() -> None:
    plan = pair_plan("table", "Distribution")
    widest = 1.959964 * plan.std_error(10_000).max()
    assert plan.precision.population == pytest.approx(widest)
    assert str(plan.precision) == "with 10,000 people every share is known to ±1.3 points or better (95 %)"
    assert plan.expected_precision(40_000, 0.99).population == pytest.approx(widest / 2 * 2.575829 / 1.959964)


def test_a_sum_states_the_average_in_the_unit_of_its_values() -> None:
    one, thousand = (pv.design(PRIOR, 1.5, pv.Sum(np.array((0, 1, 2, 5, 9)) * unit)) for unit in (1, 1000))
    assert thousand.precision.these_people == pytest.approx(1000 * one.precision.these_people)
    assert "the average per person is known to ±0.094 (95 %)" in str(one.precision)


def test_a_leaning_plan_says_what_its_precision_rests_on() -> None:
    both, leaning = pair_plan("table", "Histogram").precision, pair_plan("grouped", "Histogram").precision
    assert both.population > both.these_people
    assert str(both).endswith(
        "; leaning on the prior, every share among 10,000 people is known to ±0.57 points or better (95 %), "
        "if the prior is right"
    )
    assert leaning.population is None
    start = "reports alone do not determine the population, however many there are; leaning on the prior, "
    assert str(leaning).startswith(start) and not leaning.determined


def test_the_precision_for_a_set_of_priors_says_under_which_one_it_is() -> None:
    """Under the first prior an unbiased share is known to ±0.84 points only; the expected error is the worst one."""
    priors = pv.PriorSet([[0.1958, 0.8042], [0.0328, 0.9672]])
    learnt, leaning = (pv.design(priors, 3.0, query) for query in (pv.Distribution(), pv.Histogram()))
    assert str(learnt.precision).startswith(
        "under one prior of the set, with 10,000 people every share is known"
    )
    assert "leaning on the set, every share among 10,000 people is known to ±" in str(leaning.precision)
    assert str(leaning.precision).endswith(" (95 %), if one of its priors is right")
    assert leaning.precision.these_people > 1.96 * leaning.std_error(10_000).max() + 0.005  # a bias
    assert learnt.precision.of_set and learnt.precision.document()["of_set"]
    for plan in (learnt, leaning):
        assert dict(plan_facts(plan))["expected error"].endswith(", under the worst prior of the set")
    worst = 10_000 * np.sum(learnt.std_error(10_000) ** 2)
    assert worst < 0.7 * learnt.expected_mse


def test_a_leaning_plan_may_determine_only_its_statistics() -> None:
    """The summary says so, and states their precision; and what is stated can be estimated."""
    groups = pv.Linear([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]])
    plan = replace(pair_plan("grouped", "Histogram"), query=groups)
    facts = dict(plan_facts(plan))
    assert not plan.identifiable and plan.precision.determined
    assert facts["identifies the distribution"].startswith(
        "no, only the statistics asked for, by method unbiased"
    )
    assert facts["precision"].startswith("with 10,000 people every share is known to ±")
    assert plan.estimate(plan.tally([0, 1]), "unbiased").values.sum() == pytest.approx(2)


def test_where_a_channel_is_too_large_to_check_the_precision_says_so() -> None:
    plan = pv.design(pv.Prior.zipf(3000), 1.0, pv.Histogram(), method="arc")
    assert not plan.identifiable and plan.reader.identifies_by_assumption
    assert plan.precision.determined is None and plan.precision.population is None
    assert "it is not checked whether reports alone determine" in str(plan.precision)
    assert dict(plan_facts(plan))["identifies the distribution"].startswith("not checked")


@pytest.mark.parametrize(("size", "epsilon"), [(150, 1.0), (2, 1e-6)])
def test_what_identifies_is_read_however_many_people_it_takes(size: int, epsilon: float) -> None:
    """A table of many values, or a weak one, determines the distribution in principle."""
    plan = pv.design(pv.Prior.zipf(size), epsilon, pv.Histogram())
    assert plan.identifiable and plan.precision.determined and plan.precision.population is None
    assert str(plan.precision).startswith("reports of 10,000 people are too few to estimate the population")
    assert dict(plan_facts(plan))["identifies the distribution"].startswith("yes, by method unbiased")
    answer = plan.estimate(plan.tally(plan.privatize(np.arange(size))), "unbiased")
    assert answer.values.sum() == pytest.approx(size) and (answer.std_error > size).any()
    share, found = plan.reference.probabilities, plan.expected_std_error("unbiased", 10**4, population=True)
    expected = variance(plan.channel.matrix, share)
    assert np.sum(found**2) * 10**4 == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "query", [pv.Linear.cumulative(PRIOR, unbiased=True), pv.Sum([0, 10, 20, 50, 90], True)]
)
def test_an_interval_that_holds_all_possible_values_is_not_stated(query: pv.Linear) -> None:
    """The half width of a share is never a hundred points, nor that of an average wider than its range."""
    weak, strong = (pv.design(PRIOR, epsilon, query) for epsilon in (0.002, 1.0))
    assert weak.precision.population is None
    few = "reports of 10,000 people are too few to estimate the population without the prior"
    assert str(weak.precision) == few
    assert weak.expected_precision(10**10).population is not None
    assert strong.precision.population is not None


def test_weighted_sums_are_stated_per_person() -> None:
    plan = pv.design(PRIOR, 1.5, pv.Linear([[0, 1, 2, 5, 9], [1, 0, 0, 0, 0]], unbiased=True))
    assert plan.precision.population == pytest.approx(1.959964 * plan.std_error(10_000).max())
    assert re.search(
        r"every statistic is known to ±0\.\d+ per person or better \(95 %\)$", str(plan.precision)
    )
