"""Averages by group: their laws, their intervals, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import priorveil as pv
from priorveil.certify import round_rows
from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.mechanisms.integer_tables import Table
from priorveil.notes import Note
from priorveil.reading.averages import Averages
from priorveil.reading.combination import combine_estimates
from priorveil.reading.tally import Tally
from priorveil.results.findings import finding_of
from priorveil.results.statistic_tables import answer, averages_table, number_tables
from priorveil.words.results import row_texts
from refusals import raises

METHODS = ("unbiased", "mmse", "mle")
HOURS = {("young", 0): 8, ("young", 10): 5, ("young", 40): 2, ("old", 0): 3, ("old", 10): 4, ("old", 40): 3}
LAW = np.array([0.1, 0.1, 0.2, 0.25, 0.15, 0.2])  # of the people; the prior is another


def hours_prior(table=HOURS, **options) -> pv.Prior:
    total = sum(table.values())
    options = {"grids": ("overtime",), **options}
    return pv.Prior.joint({cell: n / total for cell, n in table.items()}, ("age", "overtime"), **options)


@pytest.fixture(scope="module")
def plan() -> pv.Plan:
    return pv.design(hours_prior(), 2.0, pv.Distribution())


def tally_of(plan: pv.Plan, people: int = 4_000, weights: bool = False, law=LAW, seed: int = 2) -> Tally:
    rng = np.random.default_rng(seed)
    reports = plan.privatize(rng.choice(len(law), people, p=law), rng, codes=True)
    return plan.tally(reports, rng.uniform(0.5, 2.0, people) if weights else None)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_the_mean_is_that_of_the_averages_weighted_by_the_counts(plan, method, weights) -> None:
    estimate = plan.estimate(tally_of(plan, weights=weights), method)
    averages, groups = estimate.mean("overtime", by="age"), estimate.margin("age")
    assert averages.labels == groups.labels == ("young", "old")
    assert groups.values @ averages.values / groups.values.sum() == pytest.approx(
        estimate.mean("overtime").value
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("query", [pv.Distribution(), pv.Histogram()], ids=["population", "these people"])
def test_one_group_has_the_mean_of_the_grid(method: str, query: pv.Query) -> None:
    grid = pv.Prior.grid([0, 10, 40], [0.5, 0.3, 0.2])
    plan = pv.design(grid, 2.0, query)
    joint = pv.Prior.joint(
        {("all", 0): 0.5, ("all", 10): 0.3, ("all", 40): 0.2}, ("age", "overtime"), grids=("overtime",)
    )
    same = replace(plan, prior=joint)
    tally = tally_of(plan, law=[0.3, 0.3, 0.4])
    expected = plan.estimate(tally, method).mean()
    estimate = same.estimate(replace(tally, plan=same.id), method)
    average = estimate.mean("overtime", by="age")["all"]
    for statistic in (estimate.mean("overtime"), average):
        assert (statistic.value, statistic.std_error) == pytest.approx((expected.value, expected.std_error))
        assert statistic.interval() == pytest.approx(expected.interval())


def test_averages_converge_to_the_truth_under_a_wrong_prior(plan: pv.Plan) -> None:
    counts = np.rint(1e9 * (LAW @ plan.channel.matrix)).astype(np.int64)
    estimate = plan.estimate(Tally(plan.id, counts, int(counts.sum())))
    points, young = np.array([0, 10, 40] * 2), np.arange(6) < 3
    truth = [LAW[group] @ points[group] / LAW[group].sum() for group in (young, ~young)]
    averages = estimate.mean("overtime", by="age")
    assert averages.values == pytest.approx(truth, rel=1e-6)
    assert estimate.mean("overtime").value == pytest.approx(LAW @ points, rel=1e-6)
    assert (averages.std_error < 0.01).all()


def test_averages_are_ratios_of_sums_and_counts(plan: pv.Plan) -> None:
    estimate = plan.estimate(tally_of(plan))
    old = {("old", x): x for x in (0.0, 10.0, 40.0)}
    ratio, average = estimate.ratio(old, list(old)), estimate.mean("overtime", by=["age"])["old"]
    assert (average.value, average.std_error) == pytest.approx((ratio.value, ratio.std_error))
    assert average.interval(0.9) == pytest.approx(ratio.interval(0.9))


def test_averages_follow_the_unit_and_the_zero_of_the_numbers() -> None:
    plan = pv.design(hours_prior(), 2.0, pv.Distribution())
    moved = hours_prior({(age, 1e9 + x / 1e3): n for (age, x), n in HOURS.items()})
    tally = tally_of(plan)
    other = replace(plan, prior=moved)
    averages = plan.estimate(tally).mean("overtime", by="age")
    same = other.estimate(replace(tally, plan=other.id)).mean("overtime", by="age")
    assert (same.values - 1e9) * 1e3 == pytest.approx(averages.values, abs=1e-2)
    assert same.std_error * 1e3 == pytest.approx(averages.std_error, rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_estimates_of_cohorts_are_averaged_whatever_the_order_of_their_values(plan, method) -> None:
    turned = pv.design(hours_prior(dict(reversed(HOURS.items()))), 2.0, pv.Distribution())
    first = plan.estimate(tally_of(plan), method)
    second = turned.estimate(tally_of(turned, law=LAW[::-1], seed=3), method)
    both = combine_estimates([first, second])
    sums = sum(
        e.margin("age").moments_in_order(("young", "old")).mean
        * [e.mean("overtime", by="age")[age].value for age in ("young", "old")]
        for e in (first, second)
    )
    assert both.mean("overtime", by="age").values == pytest.approx(sums / both.margin("age").values)


@pytest.mark.parametrize("method", METHODS)
def test_a_group_of_too_few_people_has_an_interval_with_every_possible_number(plan: pv.Plan, method) -> None:
    law = np.array([0.5, 0.3, 0.2, 0, 0, 0])
    averages = plan.estimate(tally_of(plan, 60, law=law), method).mean("overtime", by="age")
    if method != "mmse":  # which trusts the prior
        limits = (0, max(x for _, x in HOURS)) if method == "mle" else (-math.inf, math.inf)
        assert averages["old"].interval() == pytest.approx(limits) and averages["old"].is_unbounded()
        assert f"{Note('unboundedAverage')}\nAbout" in str(averages) and "inf" not in str(averages)
    assert averages.std_error.shape == (2,) and len(averages) == 2


def test_a_group_that_is_estimated_to_have_nobody_has_no_average(plan: pv.Plan) -> None:
    estimates = (
        plan.estimate(tally_of(plan, 40, law=[0.5, 0.3, 0.2, 0, 0, 0], seed=seed)) for seed in range(9)
    )
    empty = next(e for e in estimates if e.margin("age").values[1] <= 0).mean("overtime", by="age")
    assert math.isnan(empty["old"].value) and empty["old"].std_error == math.inf
    assert empty.interval(0.5)[1][1] == math.inf


def test_several_attributes_form_groups() -> None:
    cells = {(age, sex, x): 1 / 8 for age in ("young", "old") for sex in ("f", "m") for x in (0.0, 5.0)}
    prior = pv.Prior.joint(cells, ("age", "sex", "overtime"), grids=("overtime",))
    plan = pv.design(prior, 2.0, pv.Distribution())
    rng = np.random.default_rng(1)
    columns = {"age": rng.choice(["young", "old"], 9_000), "sex": rng.choice(["f", "m"], 9_000)}
    numbers = 2.0 + (columns["age"] == "old") + (columns["sex"] == "m")
    estimate = plan.estimate(plan.tally(plan.privatize({**columns, "overtime": numbers}, rng)))
    averages = estimate.mean("overtime", by=["age", "sex"])
    assert averages.labels[0] == ("young", "f") and averages.by == ("age", "sex")
    assert (np.abs(averages.values - [2, 3, 3, 4]) < 4 * averages.std_error).all()
    assert str(averages).splitlines()[0].split() == [
        "age",
        "sex",
        "mean",
        "overtime",
        "95",
        "%",
        "low",
        "high",
    ]


def test_what_reports_do_not_determine_is_named() -> None:
    """Reports tell the numbers of the young apart, but not those of the old."""
    plan = pv.design(hours_prior(), 1.0, pv.Linear.margins(hours_prior(), ["age"], unbiased=True))
    laws = np.array([[6, 1, 1, 2], [1, 6, 1, 2], [1, 1, 6, 2], *[[1, 1, 1, 7]] * 3]) / 10
    plan = replace(plan, mechanism=Table(round_rows(laws)))
    estimate = plan.estimate(tally_of(plan))
    with pytest.raises(NotIdentifiable) as refused:
        estimate.mean("overtime", by="age")
    assert refused.value.statistics == ("old",)
    with pytest.raises(NotIdentifiable):
        estimate.mean("overtime")


def test_groups_and_numbers_that_have_no_averages_are_refused(plan: pv.Plan) -> None:
    estimate = plan.estimate(tally_of(plan))
    for arguments in ({"by": "overtime"}, {"by": "sex"}, {"by": []}, {"by": ["age", "age"]}):
        with pytest.raises(InvalidInput):
            estimate.mean("overtime", **arguments)
    for name in ("age", "income"):
        with pytest.raises(InvalidInput) as refused:
            estimate.mean(name)
        assert refused.value.argument == "numbers"
    cells = hours_prior(grids=(), cells={"overtime": [0, 5, 20, 60]})
    binned = pv.design(cells, 2.0, pv.Distribution())
    with pytest.raises(InvalidInput):
        binned.estimate(tally_of(binned)).mean("overtime", by="age")
    single = pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Histogram())
    with pytest.raises(InvalidInput):
        single.estimate(single.tally([0, 1])).mean("overtime")
    nobody = plan.estimate(plan.tally([])).mean("overtime", by="age")
    assert np.isnan(nobody.values).all() and np.isinf(nobody.interval()).all()
    averages = estimate.mean("overtime", by="age")
    assert isinstance(averages, Averages)
    with pytest.raises(InvalidInput):
        averages["middle"]


def test_levels_that_are_numbers_have_averages_without_rounding() -> None:
    prior = hours_prior(grids=())
    plan = pv.design(prior, 2.0, pv.Histogram())
    rounded = replace(plan, prior=hours_prior())
    tally = tally_of(plan)
    exact = plan.estimate(tally, "unbiased").mean("overtime", by="age")
    wider = rounded.estimate(replace(tally, plan=rounded.id), "unbiased").mean("overtime", by="age")
    assert exact.values == pytest.approx(wider.values)
    people = plan.estimate(tally, "unbiased").margin("age").values
    assert wider.std_error**2 - exact.std_error**2 == pytest.approx(15.0**2 / people)  # half a step, squared


def test_the_variance_of_an_attribute_knows_its_rounding(plan: pv.Plan) -> None:
    variance = plan.estimate(tally_of(plan)).variance("overtime")
    assert variance.bias == (15.0**2, 0.0)


@pytest.mark.parametrize("method", ["unbiased", "mmse"])
def test_averages_of_these_people_are_covered_with_the_error_of_rounding(method: str) -> None:
    """Of 800 intervals at 95 % at least 93 % hold the truth: fewer in about one of 200 seeds, if they just hold."""
    rng = np.random.default_rng(5)
    people, rounds = 2_000, 400
    ages = rng.choice(["young", "old"], people)
    numbers = np.where(rng.random(people) < 0.5, 20.0, 0.0)  # as far from the points as possible
    sums = {(age, x): 0.0 for age in ("young", "old") for x in (0.0, 40.0)}
    for age, number in zip(ages, numbers, strict=True):
        sums[age, 40.0] += number / 40
        sums[age, 0.0] += 1 - number / 40
    prior = hours_prior(sums)
    plan = pv.design(prior, 4.0, pv.Histogram())
    truth = [numbers[ages == age].mean() for age in ("young", "old")]
    held = []
    for _ in range(rounds):
        estimate = plan.estimate(plan.tally(plan.privatize({"age": ages, "overtime": numbers}, rng)), method)
        low, high = estimate.mean("overtime", by="age").interval()
        held += [low <= truth, truth <= high]
    assert np.mean(np.logical_and(held[::2], held[1::2])) > 0.93


# -- plans that ask for averages -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def average_plan() -> pv.Plan:
    return pv.design(hours_prior(), 2.0, pv.Linear.averages(hours_prior(), "overtime", by="age"))


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_for_averages_answers_with_them(average_plan: pv.Plan, method) -> None:
    estimate = average_plan.estimate(tally_of(average_plan), method)
    averages = estimate.averages
    assert averages is not None and averages.labels == ("young", "old")
    assert averages.values == pytest.approx(estimate.mean("overtime", by="age").values)
    whole = answer(estimate, 0.9)
    assert whole.labels == ("age=young", "age=old")
    assert whole.columns[0] == pytest.approx(averages.values)
    assert list(whole.columns[2:]) == [pytest.approx(ends) for ends in averages.interval(0.9)]
    first, *_ = finding_of(estimate).figures.tables
    assert (first.kind, first.attributes, first.of) == ("average", ("age",), "overtime")
    assert [row.value for row in first.rows] == pytest.approx(averages.values)
    assert [row.expected for row in first.rows] == pytest.approx([130 / 15, 16])
    assert estimate.margin("age").averages is None


def test_what_averages_are_read_from_is_not_added_up_or_divided(average_plan: pv.Plan) -> None:
    estimate = average_plan.estimate(tally_of(average_plan))
    with raises(InvalidInput, hint="estimate.averages", argument="weights"):
        estimate.contrast([1, -1, 0, 0])
    with raises(InvalidInput, hint="estimate.averages", argument="top"):
        estimate.ratio(["age=young"], ["people with age=young"])
    old, everybody = [("old", n) for n in (0, 10, 40)], list(average_plan.labels)
    groups = estimate.margin("age")
    assert estimate.ratio(old, everybody).value == pytest.approx(groups.values[1] / groups.values.sum())
    assert groups.contrast({"old": 1}).value == pytest.approx(groups.values[1])


@pytest.mark.parametrize("people", [30, 3_000])
def test_averages_have_as_many_decimals_in_each_group(average_plan: pv.Plan, people: int) -> None:
    estimate = average_plan.estimate(tally_of(average_plan, people, law=[0.02, 0.01, 0.01, 0.3, 0.3, 0.36]))
    for table in (finding_of(estimate).figures.tables[0], averages_table(estimate.averages)):
        shown = [row_texts(row, "amount") for row in table.rows]
        texts = [text for each in shown for text in (each.value, each.low, each.high)]
        finite = [text for text in texts if text not in ("not bounded", "nan")]
        assert len({len(text.partition(".")[2]) for text in finite}) == 1


def test_a_plan_for_averages_is_read_from_its_file(average_plan: pv.Plan) -> None:
    assert pv.Plan.from_json(average_plan.to_json()) == average_plan


def test_the_precision_of_a_plan_for_averages_is_that_of_the_averages(average_plan: pv.Plan) -> None:
    P = average_plan.reference.probabilities
    counts = np.rint(1e9 * (P @ average_plan.channel.matrix)).astype(np.int64)
    estimate = average_plan.estimate(Tally(average_plan.id, counts, int(counts.sum())))
    expected = average_plan.std_error(int(counts.sum()))[:2]
    assert estimate.averages.std_error == pytest.approx(expected, rel=1e-4)


def test_other_plans_show_averages_after_their_counts(plan: pv.Plan) -> None:
    estimate = plan.estimate(tally_of(plan))
    averages = estimate.mean("overtime", by="age")
    rows = {(table.kind, *row.label): row.value for table in number_tables(estimate) for row in table.rows}
    assert list(rows) == [("mean", "mean"), ("average", "young"), ("average", "old")]
    assert list(rows.values()) == pytest.approx([estimate.mean("overtime").value, *averages.values])


def test_cohorts_share_one_query_for_averages(average_plan: pv.Plan) -> None:
    other_prior = hours_prior({cell: n + 2 for cell, n in HOURS.items()})
    other = pv.design(other_prior, 2.0, average_plan.query)
    both = combine_estimates([p.estimate(tally_of(p)) for p in (average_plan, other)])
    assert both.averages.values == pytest.approx(both.mean("overtime", by="age").values)
    assert (np.abs(both.averages.values - [22.5, 9.5 / 0.6]) < 4 * both.averages.std_error).all()
    own = pv.design(other_prior, 2.0, pv.Linear.averages(other_prior, "overtime", by="age"))
    with pytest.raises(InvalidInput):
        combine_estimates([p.estimate(tally_of(p)) for p in (average_plan, own)])
