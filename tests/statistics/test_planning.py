"""Planning: variances at any truth, people for a half width, power of tests, strata, and the least epsilon."""

from __future__ import annotations

import math

import numpy as np
import pytest

import priorveil as pv
from priorveil.designs.survey_sizes import survey_sizes
from priorveil.errors import Infeasible, InvalidInput, NotIdentifiable, TooLarge
from priorveil.statistics.planning import (
    ScoreMoments,
    half_width,
    least_people,
    neyman_people,
    people_for_coefficient,
    people_within,
    stratified_variance,
    tilted_shares,
    worst_variance,
)
from references import planning as reference
from refusals import raises
from sample_mechanisms import orders_plan
from sample_plans import PAIRS, PRIOR, TRUTH, pair_plan

Array = np.ndarray
PLAN = pv.design(pv.Prior([0.5, 0.3, 0.2], ["a", "b", "c"]), 1.0, pv.Distribution())
FORCED = pv.Plan.of([[5 / 6, 1 / 6], [1 / 6, 5 / 6]], pv.Prior({"yes": 0.2, "no": 0.8}), pv.Distribution())
UNBIASED = [(kind, query) for kind, query in PAIRS if query == "Distribution"]


# -- variances and people ------------------------------------------------------------------------------------


def test_variances_and_people_are_those_of_the_prototype() -> None:
    assert PLAN.person_variances() == pytest.approx(reference.AT_PRIOR, abs=6e-5)
    assert PLAN.person_variances(worst=True) == pytest.approx(reference.AT_WORST, abs=6e-5)
    assert (PLAN.people(within=0.02), PLAN.people(within=0.02, worst=True)) == reference.PEOPLE


@pytest.mark.parametrize(("kind", "query"), UNBIASED)
def test_the_variance_at_the_prior_is_that_of_the_standard_error(kind: str, query: str) -> None:
    plan = pair_plan(kind, query)
    at_prior = plan.score_moments.variances(plan.reference.probabilities)
    assert at_prior == pytest.approx(plan.person_variances(), rel=1e-6)
    assert (plan.person_variances(worst=True) >= at_prior * (1 - 1e-9)).all()


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "query"), UNBIASED)
def test_the_variance_at_another_truth_is_that_of_drawn_reports(kind: str, query: str) -> None:
    """False alarms: a variance of 40,000 scores is off by 6 % less than once in a million runs (kurtosis below 10)."""
    plan, rng = pair_plan(kind, query), np.random.default_rng(3)
    reports = plan.privatize(rng.choice(PRIOR.labels, 40_000, p=TRUTH), rng)
    assert plan.scores(reports).var(axis=0) == pytest.approx(plan.score_moments.variances(TRUTH), rel=0.06)


def test_the_worst_truth_is_that_of_a_search() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        rows = rng.integers(0, 4, 5) / 2
        squares = rows**2 + rng.exponential(size=5)
        truths = rng.dirichlet(np.full(5, 0.3), 4_000)
        found = (truths @ squares - (truths @ rows) ** 2).max()
        assert found <= worst_variance(rows, squares) + 1e-12
        assert worst_variance(rows, squares) <= _search(rows, squares) + 1e-9


def _search(rows: Array, squares: Array) -> float:
    """The least over `t` of the largest mean square around `t`: the dual of the worst variance."""
    t = np.linspace(rows.min(), rows.max(), 400_001)
    return float((squares[:, None] - 2 * rows[:, None] * t + t**2).max(axis=0).min()) + 1e-8


def test_people_make_the_half_width_and_one_less_does_not() -> None:
    for worst in (False, True):
        people, variance = PLAN.people(0.03, worst=worst), float(PLAN.person_variances(worst).max())
        assert half_width(variance, people) <= 0.03 < half_width(variance, people - 1)
    assert 1.959964 * PLAN.std_error(PLAN.people(0.03)).max() <= 0.03 * (1 + 1e-6)
    assert people_within(1.0, 10.0) == 1


def test_sums_are_planned_in_their_own_unit() -> None:
    values = np.array([0.0, 10.0, 20.0])
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Sum(values, unbiased=True))
    single = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Sum(values / 10, unbiased=True))
    assert plan.people(0.5) == single.people(0.05)
    assert plan.people(0.5, worst=True) > plan.people(0.5)


def test_a_grid_of_numbers_counts_its_rounding_once() -> None:
    """The scores of people between two points vary by rounding too: that is in the variance of the reports."""
    prior = pv.Prior.grid([0.0, 1.0, 2.0], [0.25, 0.5, 0.25])
    plan = pv.design(prior, 1.0, pv.Sum(prior.points, unbiased=True))
    at_prior = plan.score_moments.variances(prior.probabilities)
    assert at_prior == pytest.approx(plan.person_variances(), rel=1e-9)


def test_queries_that_lean_on_the_prior_are_refused() -> None:
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Histogram())
    for plans in (plan.people, lambda: plan.power(0, null=0.5, truth=0.6, people=100)):
        with raises(InvalidInput, argument="query"):
            plans()


def test_averages_of_groups_are_planned_at_the_prior() -> None:
    """They are ratios, whose variance at another truth does not follow from these statistics."""
    cells = {(age, hours): 0.25 for age in ("old", "young") for hours in (0, 40)}
    prior = pv.Prior.joint(cells, ("age", "hours"), grids=("hours",))
    plan = pv.design(prior, 1.0, pv.Linear.averages(prior, "hours", by="age"))
    assert plan.people(5.0) > 100
    for plans in (
        lambda: plan.people(5.0, worst=True),
        lambda: plan.power("age=old", null=0, truth=1, people=9),
    ):
        with raises(InvalidInput, argument="query"):
            plans()
    assert {size.worst_variance for size in survey_sizes(prior, plan.query, [1.0])} == {None}


def test_many_orders_have_people_at_the_prior_and_say_that_the_worst_takes_long() -> None:
    plan = orders_plan(300)
    assert plan.people(0.03) > 100
    with pytest.raises(TooLarge):
        plan.people(0.03, worst=True)


def test_statistics_that_reports_do_not_determine_are_refused() -> None:
    plan = pair_plan("grouped", "Histogram")
    with pytest.raises(NotIdentifiable):
        plan.reader.score_squares(plan.reference.probabilities, None)
    alike = np.array([[2.0, 2.0, 5.0, 5.0, 5.0]])
    squares = plan.reader.score_squares(plan.reference.probabilities, alike)
    scores = plan.reader.scores(np.arange(plan.mechanism.outputs), plan.reference.probabilities, alike)
    assert squares == pytest.approx((plan.mechanism.matrix @ scores**2).T)


# -- power ---------------------------------------------------------------------------------------------------


def test_the_power_is_that_of_rr() -> None:
    found = FORCED.power("yes", null=0.0, truth=0.2, people=200, level=0.01, sides=1)
    assert found.power == pytest.approx(reference.FORCED_POWER, abs=1e-6)
    assert f"<strong>{found}</strong>" in found._repr_html_()


def test_the_least_number_of_people_is_exact() -> None:
    def power(people: int) -> float:
        return FORCED.power("yes", null=0.1, truth=0.2, people=people).power

    found = FORCED.power("yes", null=0.1, truth=0.2, power=0.8)
    assert found.people == reference.FORCED_PEOPLE and found.power == power(found.people) >= 0.8
    assert power(found.people - 1) < 0.8
    assert power(reference.RR_PEOPLE) == pytest.approx(reference.RR_POWER, abs=1e-3)


def test_the_truth_that_is_found_has_the_power() -> None:
    found = FORCED.power("yes", null=0.1, people=332, power=0.8)
    assert 0.199 < found.truth <= 0.2 and found.power == pytest.approx(0.8, abs=1e-9)
    with pytest.raises(Infeasible):
        FORCED.power("yes", null=0.9, people=5, power=0.99)


def test_two_groups_add_their_variances() -> None:
    """At the control's truth both variances are those of the null."""
    control, other, people = 0.1, 0.2, 650
    z = 1.959963984540054
    at_null, at_other = (9 / 4 * law * (1 - law) for law in (1 / 6 + 2 / 3 * control, 1 / 6 + 2 / 3 * other))
    root = math.sqrt(people)
    tails = [
        (sign * (other - control) * root - z * math.sqrt(2 * at_null)) / math.sqrt(at_null + at_other)
        for sign in (1, -1)
    ]
    expected = sum((1 + math.erf(x / math.sqrt(2))) / 2 for x in tails)
    found = FORCED.power("yes", null=control, truth=other, people=people, groups=2)
    assert found.power == pytest.approx(expected, abs=1e-12) and found.groups == 2
    assert FORCED.power("yes", null=control, truth=other, power=0.8, groups=2).people <= people


def test_other_shares_keep_their_proportions() -> None:
    P = np.array([0.5, 0.3, 0.2])
    assert tilted_shares(P, np.array([0.0, 0.0, 1.0]), 0.6) == pytest.approx([0.25, 0.15, 0.6])
    assert tilted_shares(P, np.array([1.0, 1.0, 0.0]), 1.0) == pytest.approx([0.625, 0.375, 0.0])
    row = np.array([0.0, 7.0, 100.0])
    shares = tilted_shares(P, row, 90.0)
    assert shares @ row == pytest.approx(90.0) and shares.sum() == pytest.approx(1.0)
    found = PLAN.power("c", null=0.2, truth=0.3, people=2_000)
    assert found.statistic == "c" and 0 < found.power < 1


def test_a_test_needs_exactly_what_it_needs() -> None:
    power = FORCED.power
    with raises(InvalidInput, argument="groups"):
        power("yes", null=0.1, truth=0.2, people=10, groups=3)  # type: ignore[arg-type]
    with raises(InvalidInput, argument="power"):
        power("yes", null=0.1, truth=0.2)
    with raises(InvalidInput, argument="power"):
        power("yes", null=0.1, truth=0.2, people=10, power=0.8)
    with raises(InvalidInput, argument="truth"):
        power("yes", null=0.1, truth=0.1, power=0.8)
    with raises(InvalidInput, argument="truth"):
        power("yes", null=0.1, truth=1.2, power=0.8)
    with raises(InvalidInput, argument="statistic"):
        power("maybe", null=0.1, truth=0.2, power=0.8)
    with raises(InvalidInput, argument="statistic"):
        power(null=0.1, truth=0.2, power=0.8)
    with raises(InvalidInput, argument="level"):
        power("yes", null=0.1, truth=0.2, power=0.8, level=1.5)
    with raises(InvalidInput, argument="sides"):
        power("yes", null=0.1, truth=0.2, power=0.8, sides=3)  # type: ignore[arg-type]


def test_bisection_finds_the_first_whole_number() -> None:
    for least in (1, 2, 3, 17, 1_000, 123_457):
        assert least_people(lambda people, least=least: 0.9 if people >= least else 0.1, 0.8) == least
    with raises(InvalidInput, argument="power"):
        least_people(lambda people: 0.5, 0.8)


def test_a_coefficient_takes_the_people_of_the_reference() -> None:
    slope, intercept = 0.5, -1.6
    shares = 1 / (1 + np.exp(-(intercept + slope * np.array([0.0, 1.0]))))
    assert shares == pytest.approx([0.16798, 0.24974], abs=1e-5)
    plan = pv.design(pv.Prior({"yes": shares.mean(), "no": 1 - shares.mean()}), 1.0, pv.Distribution())
    people = [_coefficient_people(Q, shares, slope) for Q in (plan.channel.matrix, np.eye(2))]
    assert people == [reference.COEFFICIENT_PEOPLE, reference.COEFFICIENT_WITHOUT_NOISE]
    with raises(InvalidInput, argument="effect"):
        people_for_coefficient(1.0, 0.0)


def _coefficient_people(Q: Array, shares: Array, slope: float) -> int:
    J = np.zeros((2, 2))
    for z, share in zip(([1.0, 0.0], [1.0, 1.0]), shares, strict=True):
        law = np.array([share, 1 - share]) @ Q
        information = (share * (1 - share)) ** 2 * ((Q[0] - Q[1]) ** 2 / law).sum()
        J += 0.5 * information * np.outer(z, z)
    return people_for_coefficient(float(np.linalg.inv(J)[1, 1]), slope)


# -- strata --------------------------------------------------------------------------------------------------


def test_neyman_gains_little_where_the_noise_is_the_same() -> None:
    weights, shares = [0.7, 0.2, 0.1], [0.05, 0.3, 0.5]
    plans = [pv.design(pv.Prior([p, 1 - p]), 1.0, pv.Distribution()) for p in shares]
    variances = [float(plan.person_variances()[0]) for plan in plans]
    people = 1_000_000
    in_proportion = [round(people * weight) for weight in weights]
    neyman = neyman_people(people, weights, variances)
    assert neyman.sum() == people
    assert people * stratified_variance(weights, variances, in_proportion) == pytest.approx(
        reference.PROPORTIONAL, abs=6e-5
    )
    assert people * stratified_variance(weights, variances, neyman) == pytest.approx(
        reference.NEYMAN, abs=6e-5
    )


def test_every_stratum_has_somebody_and_costs_count() -> None:
    assert neyman_people(5, [1, 1, 1e-9], [1, 1, 1]).tolist() in ([2, 2, 1],)
    assert neyman_people(300, [1, 1], [1, 1], costs=[1, 4]).tolist() == [200, 100]
    with raises(InvalidInput, argument="people"):
        neyman_people(1, [1, 1], [1, 1])
    with raises(InvalidInput, argument="variances"):
        neyman_people(10, [1, 1], [1])
    with raises(InvalidInput, argument="weights"):
        neyman_people(10, [1, 0], [1, 1])


# -- the least epsilon ---------------------------------------------------------------------------------------


def test_the_least_epsilon_is_enough_and_a_little_less_is_not() -> None:
    prior, query = pv.Prior([0.5, 0.3, 0.2]), pv.Distribution()
    epsilon = pv.budget_for(prior, query, people=5_000, within=0.02)
    assert pv.design(prior, epsilon, query).people(0.02) <= 5_000
    assert pv.design(prior, epsilon * 0.998, query).people(0.02) > 5_000


def test_the_least_epsilon_for_a_power() -> None:
    prior, query = pv.Prior({"yes": 0.1, "no": 0.9}), pv.Distribution()
    test = {"statistic": "yes", "null": 0.1, "truth": 0.2}
    epsilon = pv.budget_for(prior, query, people=332, power=0.8, **test)
    for factor, is_enough in ((1.0, True), (0.998, False)):
        plan = pv.design(prior, factor * epsilon, query)
        assert (plan.power(people=332, **test).power >= 0.8) == is_enough


def test_people_who_are_never_enough_are_refused() -> None:
    prior = pv.Prior([0.5, 0.3, 0.2])
    with pytest.raises(Infeasible):
        pv.budget_for(prior, pv.Distribution(), people=100, within=0.02)
    with raises(InvalidInput, argument="within"):
        pv.budget_for(prior, pv.Distribution(), people=100)
    with raises(InvalidInput, argument="tolerance"):
        pv.budget_for(prior, pv.Distribution(), people=100, within=0.2, tolerance=0)


def test_more_precision_is_never_cheaper() -> None:
    prior, query = pv.Prior({"yes": 0.2, "no": 0.8}), pv.Distribution()
    found = [pv.budget_for(prior, query, people=n, within=0.03, worst=True) for n in (2_000, 4_000, 8_000)]
    assert found == sorted(found, reverse=True)


def test_without_noise_there_is_only_sampling() -> None:
    moments = ScoreMoments.without_noise(np.eye(2))
    assert moments.worst_variances == pytest.approx([0.25, 0.25])
    assert people_within(0.25, 0.03) == 1_068
