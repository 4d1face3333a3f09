"""Differences and ratios of independent numbers, tests of independence, and the groups of a result compared."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chi2_contingency, norm

import priorveil as pv
from priorveil.errors import InvalidInput, NotIdentifiable, TooLarge
from priorveil.notes import Note
from priorveil.reading.moments import joint_confidence
from priorveil.reading.statistics import Statistic
from priorveil.results.document import Result
from priorveil.results.findings import View, result_of
from priorveil.results.form_estimates import CohortForms, estimate_forms
from priorveil.results.lines import heads_of, statistic_lines
from priorveil.statistics.comparing import Comparison, ComparisonTable
from refusals import raises

THREE = pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2})
OPEN = pv.Plan.of(np.eye(3), THREE, pv.Distribution())  # no noise
PLAN = pv.design(THREE, 1.0, pv.Distribution(), method="unary")
LEANING = pv.design(pv.Prior({"yes": 0.3, "no": 0.7}), 1.0, pv.Histogram())
CELLS = {
    (a, b): p * q
    for a, p in (("young", 0.4), ("old", 0.6))
    for b, q in zip("xyz", (0.5, 0.3, 0.2), strict=True)
}
BOTH = pv.Prior.joint(CELLS, names=("age", "answer"))
BLIND = pv.Plan.of(
    [[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]], THREE, pv.Histogram()
)  # reports alone do not determine it
OPEN_TABLE = pv.Plan.of(np.eye(6), BOTH, pv.Distribution())


def estimate_of(plan: pv.Plan, counts: Any, method: Any = "auto", seed: int = 0) -> pv.Estimate:
    """The estimate from so many people with each value."""
    values = np.repeat(np.arange(len(plan.labels)), counts)
    return plan.estimate(plan.tally(plan.privatize(values, np.random.default_rng(seed), codes=True)), method)


# -- differences -----------------------------------------------------------------------------------------


def test_without_noise_a_difference_of_shares_is_that_of_two_proportions() -> None:
    a, b = [30_000, 50_000, 20_000], [70_000, 90_000, 40_000]
    found = pv.difference(estimate_of(OPEN, a), estimate_of(OPEN, b))
    p, q = np.array(a) / 100_000, np.array(b) / 200_000
    errors = np.sqrt(p * (1 - p) / 100_000 + q * (1 - q) / 200_000)
    assert found.values == pytest.approx(p - q)
    assert found.std_error == pytest.approx(errors, rel=1e-4)
    low, high = found.interval(0.9)
    assert (high - low) / 2 == pytest.approx(norm.ppf(0.95) * errors, rel=1e-4)
    assert found.p_value == pytest.approx(2 * norm.sf(np.abs(p - q) / errors), rel=1e-2)


def test_counts_are_compared_per_person() -> None:
    a, b = estimate_of(PLAN, [100, 200, 300]), estimate_of(PLAN, [1_000, 500, 300], seed=1)
    whole, single = pv.difference(a, b)["b"], pv.difference(a["b"], b["b"])
    assert single.value == pytest.approx(a.proportions[1] - b.proportions[1])
    assert (single.value, single.std_error) == pytest.approx((whole.value, whole.std_error))
    summed = pv.difference(a.contrast(["a", "b"]), b.contrast(["a", "b"])).value
    assert summed == pytest.approx(a.proportions[:2].sum() - b.proportions[:2].sum())
    with raises(InvalidInput, argument="a"):
        pv.difference(Statistic(3.0, 1.0, people=0, is_total=True), b["a"])


@given(
    value=st.floats(-3, 3),
    error=st.floats(0.1, 2),
    bias=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    confidence=st.floats(0.5, 0.999),
)
def test_the_interval_leaves_zero_out_where_the_p_value_is_small(
    value: float, error: float, bias: tuple[float, float], confidence: float
) -> None:
    found = pv.difference(Statistic(value, error, bias), Statistic(0.0, 0.0))
    low, high = found.interval(confidence)
    if min(abs(low), abs(high)) > 1e-9:
        assert (low <= 0 <= high) == (found.p_value >= 1 - confidence)


def test_biases_add_up_and_noise_adds_in_squares() -> None:
    a, b = Statistic(5.0, 3.0, (1.0, 2.0)), Statistic(1.0, 4.0, (0.5, 0.25))
    low, high = pv.difference(a, b).interval()
    width = norm.ppf(0.975) * 5.0
    assert (low, high) == pytest.approx((4 - width - 1.25, 4 + width + 2.5))


def test_intervals_that_are_not_normal_are_added_end_by_end() -> None:
    a, b = estimate_of(PLAN, [300, 200, 300]), estimate_of(PLAN, [1_000, 500, 300], seed=1)
    shares = [each.ratio(["a"], ["a", "b"]) for each in (a, b)]
    found = pv.difference(*shares)
    (low_a, high_a), (low_b, high_b) = (each.interval() for each in shares)
    low, high = found.interval()
    x, y = (each.value for each in shares)
    assert found.value - low == pytest.approx(math.hypot(x - low_a, high_b - y))
    assert high - found.value == pytest.approx(math.hypot(high_a - x, y - low_b))
    edge = found.interval(1 - found.p_value)
    assert min(map(abs, edge)) == pytest.approx(0.0, abs=1e-6), (
        "the p-value is where the interval ends at zero"
    )
    with raises(InvalidInput, argument="a", hint="difference(a, b)"):
        pv.ratio(*shares)


def test_a_difference_of_quantiles_has_their_cells_whole() -> None:
    prior = pv.Prior.cells([0, 10, 20, 30], [0.3, 0.4, 0.3])
    plan = pv.design(prior, 2.0, pv.Distribution())
    a, b = (
        estimate_of(plan, counts, seed=seed) for seed, counts in enumerate(([50, 900, 50], [900, 50, 50]))
    )
    found = pv.difference(a.quantile(0.5), b.quantile(0.5))
    assert found.interval(0.5) == (0.0, 20.0) and found.p_value == 1.0


def test_nothing_is_known_of_a_difference_of_unbounded_numbers() -> None:
    unbounded = Statistic(math.nan, math.inf, ends=lambda width: (-math.inf, math.inf))
    found = pv.difference(unbounded, Statistic(1.0, 0.1))
    assert found.interval() == (-math.inf, math.inf) and found.p_value == 1.0


def test_averages_by_group_of_two_surveys() -> None:
    shares = {(age, hours): 0.1 for age in ("young", "old") for hours in (0, 10, 20, 30, 40)}
    prior = pv.Prior.joint(shares, ("age", "hours"), grids=("hours",))
    plan = pv.design(prior, 2.0, pv.Linear.averages(prior, "hours", ["age"]))
    a, b = (estimate_of(plan, counts, seed=s) for s, counts in enumerate(([200] * 10, [100] * 5 + [300] * 5)))
    found = pv.difference(a, b)
    assert found.labels == ("young", "old") and a.averages is not None and b.averages is not None
    assert found.values == pytest.approx(a.averages.values - b.averages.values)
    assert pv.difference(a.averages, b.averages).values == pytest.approx(found.values)


# -- what is refused -------------------------------------------------------------------------------------


def test_answers_that_lean_on_a_prior_have_no_p_value() -> None:
    a, b = estimate_of(LEANING, [100, 300]), estimate_of(LEANING, [200, 200], seed=1)
    found = pv.difference(a, b)
    assert "lean" in str(found) and "no p-value" in str(found) and "no p-value" in str(found["yes"])
    assert found["yes"].untested == Note("untestedLeaning")
    assert found["yes"].columns()["p_value"] == [None]
    with raises(InvalidInput, argument="method", value="mmse", hint="method"):
        _ = found.p_value


@pytest.mark.parametrize("method", ["unbiased", "mle"])
def test_estimates_are_compared_for_populations_and_their_single_numbers_are_not(method: Any) -> None:
    a, b = estimate_of(LEANING, [100, 300], method), estimate_of(LEANING, [200, 200], method, seed=1)
    found = pv.difference(a, b)
    learner = pv.Plan.of(LEANING.channel, LEANING.reference, pv.Distribution())
    same = [learner.estimate(replace(each.readings[0].tally, plan=learner.id), method) for each in (a, b)]
    assert found.std_error == pytest.approx(pv.difference(*same).std_error)
    assert (found.p_value == pytest.approx(pv.difference(*same).p_value)) and found.p_value[0] < 0.05
    alone = pv.difference(a["yes"], b["yes"])
    assert alone.std_error < found.std_error[0] and alone.untested == Note("untestedPeople")
    with raises(InvalidInput, argument="method", value=method):
        _ = alone.p_value


def test_mle_is_compared_by_its_unbiased_answer_and_reaches_to_its_value() -> None:
    a, b = estimate_of(PLAN, [300, 200, 0], "mle"), estimate_of(PLAN, [300, 200, 100], "mle", seed=3)
    found = pv.difference(a, b)
    low, high = found.interval()
    assert (low <= found.values).all() and (found.values <= high).all()
    assert found.values == pytest.approx(a.proportions - b.proportions)
    assert (low >= -1).all() and (high <= 1).all()


def test_what_cannot_be_compared_is_refused_with_the_reason() -> None:
    a, b = estimate_of(PLAN, [100, 200, 300]), estimate_of(PLAN, [100, 200, 300], seed=1)
    for x, y, argument in ((a, a["a"], "b"), (a, a, "b"), (0.3, a, "a"), (a["a"], "b", "b"), (a, None, "b")):
        for compare in (pv.difference, pv.ratio):
            with raises(InvalidInput, argument=argument):
                compare(x, y)  # type: ignore[call-overload]
    with raises(InvalidInput, argument="estimates"):
        pv.difference(a, estimate_of(LEANING, [3, 4], "unbiased"))
    with raises(InvalidInput, argument="label", value="z"):
        _ = pv.difference(a, b)["z"]
    with raises(InvalidInput, argument="confidence", value=1.5):
        pv.difference(a, b).interval(1.5)


# -- ratios ----------------------------------------------------------------------------------------------


def test_the_interval_of_a_ratio_is_that_of_fieller() -> None:
    a, b = Statistic(6.0, 0.5), Statistic(3.0, 0.4)
    found, z = pv.ratio(a, b), norm.ppf(0.975)
    for end in found.interval():
        assert abs(a.value - end * b.value) == pytest.approx(z * math.hypot(a.std_error, end * b.std_error))
    assert found.p_value == pv.difference(a, b).p_value
    assert pv.ratio(a, Statistic(0.5, 0.4)).interval() == (-math.inf, math.inf)
    assert math.isnan(pv.ratio(a, Statistic(0.0, 0.4)).value)


def test_ratios_of_possible_shares_are_not_negative() -> None:
    a, b = estimate_of(PLAN, [300, 300, 0], "mle"), estimate_of(PLAN, [300, 200, 100], "mle", seed=3)
    low, high = pv.ratio(a, b).interval()
    assert (low >= 0).all() and (high >= pv.ratio(a, b).values).all()


# -- simultaneous ----------------------------------------------------------------------------------------


def test_simultaneous_intervals_are_those_of_a_higher_confidence() -> None:
    a, b = estimate_of(PLAN, [100, 200, 300]), estimate_of(PLAN, [100, 200, 300], seed=1)
    single = joint_confidence(0.95, 3)
    for thing in (a, pv.difference(a, b)):
        assert np.allclose(thing.interval(0.95, simultaneous=True), thing.interval(single))
    assert single == pytest.approx(1 - 0.05 / 3)


# -- independence ----------------------------------------------------------------------------------------

TABLE = np.array([[30, 50, 20], [70, 90, 40], [25, 25, 30]])


def test_without_noise_scores_have_pearsons_statistic() -> None:
    rows, columns = np.repeat(np.indices((3, 3)).reshape(2, 9), TABLE.ravel(), axis=1)
    expected = chi2_contingency(TABLE, correction=False)
    for pair in (
        (np.eye(3)[rows], np.eye(3)[columns]),
        (np.eye(3)[rows], columns),
        (list("abc"[i] for i in rows), columns),
    ):
        found = pv.independence(scores=pair)
        assert found.chi_square == pytest.approx(expected.statistic, rel=1e-12)
        assert (found.p_value, found.degrees) == (pytest.approx(expected.pvalue), expected.dof)
        assert found.people == TABLE.sum() and not found.few_people


def test_without_noise_groups_and_tables_have_pearsons_statistic() -> None:
    large = TABLE * 1_000
    groups = {name: estimate_of(OPEN, row) for name, row in zip("NSW", large, strict=True)}
    found, expected = pv.independence(groups={**groups, None: groups["N"]}), chi2_contingency(large)
    assert found.chi_square == pytest.approx(expected.statistic, rel=1e-4) and found.degrees == 4
    estimate = estimate_of(OPEN_TABLE, large[:2].ravel())
    found, expected = pv.independence(table=estimate), chi2_contingency(large[:2], correction=False)
    assert found.chi_square == pytest.approx(expected.statistic, rel=1e-4) and found.degrees == 2
    turned = pv.independence(table=estimate, attributes=("answer", "age"))
    assert turned.chi_square == pytest.approx(found.chi_square)


def test_two_groups_of_two_values_are_the_z_test_with_pooled_variance() -> None:
    plan = pv.design(pv.Prior({"yes": 0.3, "no": 0.7}), 1.0, pv.Distribution())
    a, b = estimate_of(plan, [300, 700]), estimate_of(plan, [500, 700], seed=1)
    pooled = plan.estimate(a.readings[0].tally + b.readings[0].tally)
    per_person = pooled.std_error[0] ** 2 / 2_200
    z = pv.difference(a, b)["yes"].value / math.sqrt(per_person * (1 / 1_000 + 1 / 1_200))
    found = pv.independence(groups={"a": a, "b": b})
    assert found.chi_square == pytest.approx(z**2) and found.degrees == 1
    assert found.p_value == pytest.approx(chi2.sf(z**2, 1))


def test_several_plans_are_weighted_as_one_if_they_are_alike() -> None:
    """Plans that differ in their prior only: the general formula has nearly the result of the simple one."""
    counts = {"N": [300, 500, 200], "S": [610, 980, 410], "W": [300, 440, 260]}
    other = pv.Plan.of(OPEN.channel, pv.Prior({"a": 0.51, "b": 0.29, "c": 0.2}), pv.Distribution())
    simple = {name: estimate_of(OPEN, own) for name, own in counts.items()}
    expected = pv.independence(groups=simple)
    found = pv.independence(groups={**simple, "W": estimate_of(other, counts["W"])})
    assert found.degrees == expected.degrees == 4 and expected.chi_square > 10
    assert found.chi_square == pytest.approx(expected.chi_square, rel=0.1)


def test_independence_of_leaning_estimates_uses_the_reports_alone() -> None:
    counts = {"a": [100, 300], "b": [200, 200]}
    found = [
        pv.independence(groups={n: estimate_of(LEANING, c, method) for n, c in counts.items()})
        for method in ("mmse", "unbiased", "mle")
    ]
    assert found[0] == found[1] == found[2]


def test_the_same_weight_for_everybody_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    reports = [PLAN.privatize(rng.choice(3, people), rng, codes=True) for people in (300, 500)]
    tests = []
    for weight in (1.0, 2.5):
        tallies = [PLAN.tally(own, weights=[weight] * len(own)) for own in reports]
        tests.append(
            pv.independence(groups={str(at): PLAN.estimate(each) for at, each in enumerate(tallies)})
        )
    assert tests[0].chi_square == pytest.approx(tests[1].chi_square)
    plain = {str(at): PLAN.estimate(PLAN.tally(own)) for at, own in enumerate(reports)}
    assert tests[0].chi_square == pytest.approx(pv.independence(groups=plain).chi_square)
    with raises(InvalidInput, argument="groups"):
        pv.independence(groups={"a": plain["0"], "b": plain["0"]})


def test_few_people_are_named() -> None:
    small = {name: estimate_of(OPEN, row) for name, row in (("a", [8, 8, 3]), ("b", [300, 200, 100]))}
    assert pv.independence(groups=small).few_people and "rough" in str(pv.independence(groups=small))
    assert pv.independence(table=estimate_of(OPEN_TABLE, [3, 3, 3, 30, 30, 30])).few_people
    assert pv.independence(scores=(np.eye(2)[[0] * 50 + [1] * 4], [0, 1] * 27)).few_people


def test_what_cannot_be_tested_is_refused() -> None:
    a, b = estimate_of(PLAN, [100, 200, 300]), estimate_of(PLAN, [100, 200, 300], seed=1)
    for arguments in (
        {},
        {"groups": {"a": a, "b": b}, "table": a},
        {"groups": {"a": a}},
        {"groups": {"a": a, None: b}},
    ):
        with raises(InvalidInput, argument="groups"):
            pv.independence(**arguments)  # type: ignore[arg-type]
    with raises(InvalidInput, argument="attributes"):
        pv.independence(table=a)
    with raises(InvalidInput, argument="attributes"):
        pv.independence(groups={"a": a, "b": b}, attributes=("age", "answer"))
    for pair in (
        (np.eye(2), np.eye(3)),
        (np.eye(2)[:1], [0]),
        (np.full((4, 2), math.nan), [0, 0, 1, 1]),
        ("ab", "ab"),
    ):
        with pytest.raises(InvalidInput):
            pv.independence(scores=pair)
    with pytest.raises(TooLarge):
        pv.independence(scores=(np.zeros((3, 600)), [0, 1, 1]))
    holes = pv.Prior.joint(
        {("a", "x"): 0.5, ("b", "x"): 0.3, ("b", "y"): 0.2}, names=("one", "two"), impossible="leave out"
    )
    estimate = estimate_of(pv.Plan.of(np.eye(3), holes, pv.Distribution()), [10, 20, 30])
    with raises(InvalidInput, argument="attributes"):
        pv.independence(table=estimate)
    with pytest.raises(NotIdentifiable):
        pv.independence(groups={name: estimate_of(BLIND, [20, 30, 40]) for name in "ab"})


@pytest.mark.statistical
def test_the_tests_have_their_size_and_intervals_their_coverage() -> None:
    """A share of 5 % in 1,000 surveys is between 2.9 and 7.1 % but in one of 400 cases; there are four of them."""
    other = pv.design(pv.Prior({"a": 0.2, "b": 0.3, "c": 0.5}), 1.0, pv.Distribution(), rounds=5)
    rng, law, surveys = np.random.default_rng(5), np.array([0.4, 0.4, 0.2]), 1_000
    truth = dict.fromkeys(["one", "two", "apart", "pairs"], 0)

    def drawn(plan: pv.Plan, people: int) -> Any:
        return plan.privatize(rng.choice(3, people, p=law), rng, codes=True)

    def estimated(plan: pv.Plan, people: int) -> pv.Estimate:
        return plan.estimate(plan.tally(drawn(plan, people)))

    for _ in range(surveys):
        a, b, c = estimated(PLAN, 400), estimated(PLAN, 700), estimated(other, 500)
        low, high = pv.difference(a, b)["c"].interval()
        truth["apart"] += not low <= 0 <= high
        truth["one"] += pv.independence(groups={"a": a, "b": b}).p_value < 0.05
        truth["two"] += pv.independence(groups={"a": a, "b": b, "c": c}).p_value < 0.05
        pair = (PLAN.scores(drawn(PLAN, 300)), other.scores(drawn(other, 300)))
        truth["pairs"] += pv.independence(scores=pair).p_value < 0.05
    assert all(0.029 * surveys < count < 0.071 * surveys for count in truth.values()), truth


# -- the groups of a result ------------------------------------------------------------------------------


def compared(counts: dict[Any, Any], plan: pv.Plan = PLAN, smallest: int = 0, **view: Any) -> Result:
    """The result of groups with so many people with each value."""
    forms = replace(CohortForms.of(plan), smallest_count=smallest)
    tallies = {
        (None, group): [estimate_of(plan, own, seed=at).own_readings[0].tally]
        for at, (group, own) in enumerate(counts.items())
    }
    return result_of(estimate_forms(forms, tallies, by="town"), View(**view))


def test_each_group_is_compared_with_the_others() -> None:
    counts = {
        "A": [200, 100, 100],
        "B": [100, 100, 100],
        "C": [50, 150, 100],
        None: [30, 0, 0],
        "": [20, 20, 20],
    }
    result = compared(counts)
    (found,) = result.comparisons
    assert found.groups == ("(empty)", "A", "B", "C") and found.statistic == "share"
    estimates = {each.group: each.figures for each in result.findings if each.group is not None}
    (table,) = found.tables
    assert table.attributes == ("value",) and len(table.rows) == 3 * 4
    people = {
        group: np.array([row.value for row in figures.tables[0].rows])
        for group, figures in estimates.items()
        if figures
    }
    rows = {(each.group, each.row.label[0]): each for each in table.rows}
    own = rows["A", "b"]
    others = sum(people[group] for group in ("B", "C", "(empty)"))
    assert own.row.value == pytest.approx(people["A"][1] / 400 - others[1] / 660)
    assert found.independence is not None and found.independence.degrees == 6


def test_simultaneous_differences_have_wider_intervals_and_larger_p_values() -> None:
    counts = {"A": [200, 100, 100], "B": [100, 100, 100]}
    each, together = compared(counts), compared(counts, simultaneous=True)
    assert together.simultaneous and not each.simultaneous
    for one, other in zip(
        each.comparisons[0].tables[0].rows, together.comparisons[0].tables[0].rows, strict=True
    ):
        assert other.row.low < one.row.low and other.row.high > one.row.high  # type: ignore[operator]
        assert other.p_value == pytest.approx(min(1.0, 3 * one.p_value)), "two groups have three differences"
        assert (other.p_value < 0.05) == (not other.row.low <= 0 <= other.row.high)  # type: ignore[operator]


def test_differences_that_are_the_same_but_for_their_sign_are_one_test() -> None:
    plan, counts = (
        pv.Plan.of(LEANING.channel, LEANING.reference, pv.Distribution()),
        {"A": [200, 100], "B": [100, 100]},
    )
    assert compared(counts, plan, simultaneous=True).comparisons == compared(counts, plan).comparisons
    more = {**counts, "C": [30, 90]}
    each, together = (
        compared(more, plan, simultaneous=choice).comparisons[0].tables[0].rows for choice in (False, True)
    )
    assert [row.p_value for row in together] == pytest.approx([min(1.0, 3 * row.p_value) for row in each])


def test_comparisons_say_nothing_about_a_group_that_is_withheld() -> None:
    shown = {"A": [200, 100, 100], "B": [100, 100, 100], "C": [100, 200, 50]}
    results = [compared({**shown, "Z": own}, smallest=100) for own in ([90, 0, 0], [0, 3, 2])]
    assert all(each.findings[3].withheld == "few reports" for each in results)
    assert results[0].comparisons == results[1].comparisons == compared(shown, smallest=100).comparisons
    assert results[0].comparisons[0].groups == ("A", "B", "C")
    assert compared({"A": [200, 100, 100], "Z": [1, 2, 3]}, smallest=100).comparisons == ()


def test_leaning_results_are_compared_by_their_reports() -> None:
    counts = {"A": [200, 100], "B": [100, 100]}
    (found,) = compared(counts, LEANING).comparisons
    learner = pv.Plan.of(LEANING.channel, LEANING.reference, pv.Distribution())
    (expected,) = compared(counts, learner).comparisons
    assert [row.row.value for row in found.tables[0].rows] == pytest.approx(
        [row.row.value for row in expected.tables[0].rows]
    )
    assert found.independence is not None and expected.independence is not None
    assert found.independence.chi_square == pytest.approx(expected.independence.chi_square)
    assert compared({"A": [200, 100, 100], "B": [100, 100, 100]}, BLIND).comparisons == ()


def test_sums_are_compared_per_person_and_margins_by_themselves() -> None:
    plan = pv.design(THREE, 1.0, pv.Sum([0, 1, 2], unbiased=True))
    (found,) = compared({"A": [200, 100, 100], "B": [100, 100, 100]}, plan).comparisons
    assert found.statistic == "average per person" and found.tables[0].attributes == ()
    assert found.independence is not None and found.independence.degrees == 1
    result = compared(
        {"A": [200] * 6, "B": [100] * 6}, pv.Plan.of(np.eye(6) * 0.7 + 0.05, BOTH, pv.Distribution())
    )
    assert [each.attributes for each in result.comparisons] == [("age", "answer"), ("age",), ("answer",)]
    degrees = [each.independence.degrees for each in result.comparisons if each.independence]
    assert degrees == [5, 1, 2]


def test_lines_have_differences_and_p_values_where_groups_are_compared() -> None:
    counts = {"A": [200, 100, 100], "B": [100, 100, 100]}
    result = compared(counts)
    lines = list(statistic_lines(result))
    assert heads_of(result)[-1] == "p_value" and heads_of(compared({"A": [3, 4, 5]}))[-1] == "share"
    (tested,) = (line for line in lines if line["statistic"] == "independence chi-square")
    (test,) = (each.independence for each in result.comparisons)
    assert test is not None and (tested["estimate"], tested["p_value"]) == (test.chi_square, test.p_value)
    differences = [line for line in lines if line["statistic"] == "difference from others"]
    assert [(line["value"], line["group"]) for line in differences] == [(v, g) for v in "abc" for g in "AB"]
    assert all(line["low"] < line["estimate"] < line["high"] for line in differences)


# -- how they are shown ----------------------------------------------------------------------------------


def test_comparisons_are_shown_as_text_in_notebooks_and_as_frames() -> None:
    a, b = estimate_of(PLAN, [100, 200, 300]), estimate_of(PLAN, [300, 200, 100], seed=1)
    table = pv.difference(a, b)
    assert isinstance(table, ComparisonTable) and isinstance(table["a"], Comparison) and len(table) == 3
    assert "difference" in str(table) and "p" in str(table).splitlines()[0].split()
    assert str(table["a"]).startswith("difference: ") and "p " in str(table["a"])
    assert "<table" in table._repr_html_() and "<table" in table["a"]._repr_html_()
    frame = table.to_frame("pandas")
    assert list(frame.columns) == ["value", "estimate", "std_error", "low", "high", "p_value"]
    test = pv.independence(groups={"a": a, "b": b})
    assert "chi-square" in str(test) and "chi-square" in test._repr_html_()
    assert str(pv.ratio(a, b)["a"]).startswith("ratio: ")
