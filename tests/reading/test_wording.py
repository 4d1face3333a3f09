"""The words of estimates: tables as data, and the sentences around them. Other tests compare no sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from priorveil.reading.estimate import Estimate
from priorveil.reading.wording import (
    FEW_PEOPLE,
    NO_PRIOR,
    describe,
    number_records,
    number_tables,
    people_text,
    per_person_table,
    reached_precision,
    shares_within,
    table_cells,
    unbounded_shares_note,
    value_rows,
)

JOINT = pv.Prior.joint(
    {("young", "yes"): 0.1, ("young", "no"): 0.3, ("old", "yes"): 0.25, ("old", "no"): 0.35},
    names=("age", "smokes"),
)


def estimate_of(prior: pv.Prior, query: pv.Query, values: Any, method: Any = "auto") -> Estimate:
    plan = pv.design(prior, 1.0, query)
    return plan.estimate(plan.tally(plan.privatize(values, np.random.default_rng(1))), method)


def counts(**changes: Any) -> Estimate:
    """An estimate of two counts."""
    plain = Estimate(np.array([30.0, 70.0]), np.array([4.0, 4.0]), "unbiased", "nothing", 100, ("a", "b"))
    return replace(plain, **changes)


def test_an_estimate_at_a_prompt_is_a_line() -> None:
    assert repr(counts()) == "Estimate(unbiased, 100 reports: a 30.0 (22.2 to 37.8), b 70.0 (62.2 to 77.8))"
    found = estimate_of(pv.Prior.zipf(60), pv.Distribution(), [3] * 100)
    assert repr(found).endswith(", and 57 more)") and len(repr(found)) < 150


# -- tables ----------------------------------------------------------------------------------------------


def test_the_rows_have_the_numbers_of_the_estimate() -> None:
    found = estimate_of(JOINT, pv.Distribution(), [*JOINT.labels] * 100)
    rows, (low, high) = value_rows(found, 0.9), found.interval(0.9)
    assert [row.label for row in rows] == list(found.labels)
    columns = [found.values, found.std_error, low, high]
    assert pytest.approx(np.array(columns)) == np.array([row.numbers for row in rows]).T
    assert [row.expected for row in rows] == pytest.approx(400 * JOINT.probabilities)
    assert [row.value_text for row in rows] == [f"{value:,.1f}" for value in found.values]


def test_margins_are_tables_with_a_column_for_each_attribute() -> None:
    query = pv.Linear.margins(JOINT, ["age", ("age", "smokes")], unbiased=True)
    found = estimate_of(JOINT, query, [*JOINT.labels] * 100)
    tables = describe(found).tables
    assert [table.heads for table in tables] == [("age",), ("age", "smokes")]
    assert [row.label for row in tables[0].rows] == [("young",), ("old",)]
    assert [row.label for row in tables[1].rows] == list(JOINT.labels)


def test_a_margin_has_the_names_of_its_attributes() -> None:
    found = estimate_of(JOINT, pv.Distribution(), [*JOINT.labels] * 100)
    (smokes,) = describe(found.margin("smokes")).tables
    (turned,) = describe(found.margin("smokes", "age")).tables
    assert smokes.heads == ("smokes",) and turned.heads == ("smokes", "age")


@pytest.mark.parametrize(("size", "shown"), [(50, 50), (60, 50)])
def test_of_many_counts_those_are_shown_that_the_prior_expects_most(size: int, shown: int) -> None:
    prior = pv.Prior(np.arange(1, size + 1) / (size * (size + 1) / 2), labels=[f"v{n}" for n in range(size)])
    found = estimate_of(prior, pv.Distribution(), ["v0"] * 1_000)
    labels = [row.label[0] for row in describe(found).tables[0].rows]
    chosen = f"The {shown} of {size} values that the prior expects most"
    if size == shown:
        assert labels == [*prior.labels] and chosen not in str(found)
    else:
        assert labels == [*reversed(prior.labels)][:shown]
        lines = str(found).splitlines()
        assert lines[0].startswith(chosen) and lines[1].startswith("value")  # above the table


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["unbiased", "mle"])
def test_the_intervals_that_are_printed_of_many_contain_the_truth(method: Any) -> None:
    """Of 500 intervals of 95 %, on average 475 contain it; fewer than 455 once in ten thousand times.

    Of the largest estimates, 106 did by the first method and 113 by the second.
    """
    prior, rng, truths = pv.Prior.zipf(2_000), np.random.default_rng(4), []
    plan, population = pv.design(prior, 2.0, pv.Distribution(), method="arc"), prior.probabilities[::-1]
    for _ in range(10):
        people = rng.choice(2_000, 5_000, p=population)
        found = plan.estimate(plan.tally(plan.privatize(people, rng, codes=True)), method)
        rows = describe(found).tables[0].rows
        truths += [row.low <= 5_000 * population[int(row.label[0])] <= row.high for row in rows]
    assert len(truths) == 500 and sum(truths) >= 455


def test_of_many_counts_without_a_prior_the_first_are_shown() -> None:
    found = counts(values=np.arange(60.0), std_error=np.ones(60), labels=tuple(map(str, range(60))))
    assert [row.label[0] for row in describe(found).tables[0].rows] == [*map(str, range(50))]
    assert str(found).startswith("The first 50 of 60 values. All are in to_frame().")


def test_numbers_have_a_mean_or_quantiles() -> None:
    grid, cells = pv.Prior.grid([0, 10, 30], [0.3, 0.4, 0.3]), pv.Prior.cells([0, 10, 30], [0.4, 0.6])
    mean = estimate_of(grid, pv.Histogram(), [0.0, 10.0, 30.0] * 100)
    quantiles = estimate_of(cells, pv.Distribution(), [5.0, 15.0, 20.0] * 100)
    (table,) = number_tables(mean)
    assert [row.label for row in table.rows] == [("mean",)] and table.rows[0].value == mean.mean().value
    records = number_records(quantiles, 0.9)
    median = quantiles.quantile(0.5)
    assert [record["name"] for record in records][2] == "quantile 0.5"
    assert (records[2]["lower"], records[2]["upper"]) == median.interval(0.9)
    assert describe(quantiles).tables[-1].rows[2].value == median.value
    assert number_tables(counts()) == []


def test_shares_are_per_person_and_amounts_have_a_total() -> None:
    found = estimate_of(JOINT, pv.Distribution(), [*JOINT.labels] * 100)
    shares = per_person_table(found, 0.95, most=2)
    assert [row.value for row in shares.rows] == found.proportions[
        [3, 1]
    ].tolist()  # those that are expected most
    assert all(row.value_text.endswith(" %") and row.interval_text.count("%") == 1 for row in shares.rows)
    amounts = [0.001, 0.002, 0.003, 0.004]
    total = estimate_of(JOINT, pv.Sum(amounts), [*JOINT.labels] * 100)
    average, whole = per_person_table(total, 0.95, most=2).rows
    assert (average.label, whole.label) == (("Average per person",), ("Total of 400 people",))
    assert average.expected == pytest.approx(JOINT.probabilities @ amounts)
    assert whole.value == total.values[0] == pytest.approx(400 * average.value)
    assert float(average.value_text) == pytest.approx(average.value, abs=0.1 * average.std_error)


def test_an_estimate_is_printed_as_its_description() -> None:
    found = estimate_of(JOINT, pv.Sum([0, 1, 2, 3]), [*JOINT.labels] * 100)
    told = describe(found)
    (row,) = told.tables[0].rows
    printed = str(found)
    assert all(
        text in printed for text in (row.value_text, row.low_text, row.high_text, "95 % low", *told.notes)
    )


def test_an_estimate_is_printed_alike_everywhere() -> None:
    """Shares first and counts beside them, in text, notebooks and the shell; of weights, shares of their sum."""
    found = estimate_of(JOINT, pv.Distribution(), [*JOINT.labels] * 100)
    told = describe(found)
    heads, rows = table_cells(told.tables[0], told)
    assert heads == ("age", "smokes", "share", "95 % low", "high", "people")
    assert rows[0][2] == f"{100 * found.proportions[0]:.1f} %" and rows[0][-1] == f"{found.values[0]:,.1f}"
    printed, html = str(found), found._repr_html_()
    assert printed.splitlines()[0].split() == " ".join(heads).split()
    assert all(cell in printed and f">{cell}</td>" in html for row in rows for cell in row)
    plan = pv.design(JOINT, 1.0, pv.Distribution())
    weighted = plan.estimate(
        plan.tally(plan.privatize([*JOINT.labels] * 100, np.random.default_rng(1)), [2.0] * 400)
    )
    told = describe(weighted)
    shares = [float(row[2].removesuffix(" %")) for row in table_cells(told.tables[0], told)[1]]
    assert sum(shares) == pytest.approx(100, abs=0.3)


# -- sentences -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Method unbiased assumes nothing."),
        (
            {},
            "Prior check: none. Reports are too few, or say too little, or the plan is for a set of priors, or can "
            "check its own prior only.",
        ),
        ({"prior_check": 0.25}, "Prior check: p = 0.25. This does not show that the prior is right."),
        (
            {"prior_check": 0.25, "noticeable_change": 0.031},
            "Prior check: p = 0.25. This does not show that the prior is right. In at least about nine of ten surveys "
            "the check would detect that 3.1 % of the people have moved from one common value to another; smaller "
            "changes can pass.",
        ),
        (
            {"prior_check": 0.25, "noticeable_change": 0.031, "unseen_changes": "Some changes pass."},
            "Some changes pass. Prior check: p = 0.25. This does not show that the prior is right. In at least about "
            "nine of ten surveys the check would detect that 3.1 % of the people have moved from one common value to "
            "another that reports tell apart; smaller changes can pass.",
        ),
        (
            {"prior_check": 1e-9, "noticeable_change": 0.031, "unseen_changes": "Some changes pass."},
            "Some changes pass. Prior check: p < 0.0001. The prior is wrong, or somebody manipulates the reports, or "
            "it is chance: for a right prior p is below 0.01 in about one of a hundred surveys. This method does not "
            "rest on the prior.",
        ),
        (
            {"unbiased_difference": 2.34},
            "The answer of method unbiased, which does not use the prior, is up to 2.3 of its own standard errors "
            "away from this one.",
        ),
        (
            {"mle_gain": 2.0},
            "Method mle uses that shares are not negative and add up to one: it has about 2.0 times less squared error "
            "than unbiased, if the prior is about right.",
        ),
        ({"converged": False}, "The search stopped early: the mean log-likelihood may lack 0."),
        (
            {"values": np.array([-20.0, 120.0])},
            "An unbiased estimate of a small count can be below zero, even with its whole interval: its share is near "
            "zero. Method mle, or project(), gives counts that are not.",
        ),
        ({"remarks": ("Mind the gap.",)}, "Mind the gap."),
    ],
)
def test_notes(changes: dict[str, Any], sentence: str) -> None:
    assert sentence in counts(**changes).notes


@pytest.mark.parametrize(
    ("difference", "advice"),
    [
        (2.0, "Read the reports with method unbiased, or give a better prior."),
        (None, "Give a better prior, or design a plan for the query distribution."),
    ],
)
def test_a_warning_says_what_to_do(difference: float | None, advice: str) -> None:
    found = counts(leans_on_prior=True, prior_check=0.001, unbiased_difference=difference)
    assert found.warning == (
        "The reports contradict the prior (p = 0.001), and this estimate leans on it: the truth may be far outside "
        f"the intervals. {advice}"
    )
    assert str(found).startswith("Warning: ")
    assert counts(prior_check=0.001).warning is None


def test_the_precision_that_was_reached() -> None:
    assert reached_precision(counts(), 0.95) == (
        "With these 100 reports every share is known to ±7.9 points or better (95 %)."
    )
    assert reached_precision(counts(leans_on_prior=True), 0.5) == (
        "With these 100 reports every share among these people is known to ±2.7 points or better (50 %), if the prior "
        "is right."
    )


def test_the_precision_of_averages_reaches_both_ends_of_their_intervals() -> None:
    shares = {(age, hours): 0.1 for age in ("young", "old") for hours in (0, 10, 20, 30, 40)}
    prior = pv.Prior.joint(shares, ("age", "hours"), grids=("hours",), outside="ends")
    found = estimate_of(
        prior, pv.Linear.averages(prior, "hours", ["age"]), [("young", 0.0), ("old", 40.0)] * 200
    )
    low, high = found.averages.interval(0.95)
    below, above = found.averages.values - low, high - found.averages.values
    assert np.max(np.abs(below - above)) > 0.05 * np.max(below + above)  # the intervals lean to one side
    sentence = reached_precision(found, 0.95)
    assert float(sentence.partition("±")[2].split()[0]) >= max(*below, *above)


@pytest.mark.parametrize(("count", "is_few"), [(30.0, True), (49.0, False), (900.0, False)])
def test_an_interval_of_few_people_is_called_less_sure(count: float, is_few: bool) -> None:
    found = counts(values=np.array([count, 1000 - count]), std_error=np.array([3.0, 3.0]), reports=1000)
    assert (FEW_PEOPLE in found.notes) == is_few
    asked = replace(found, reports=100, total=1000.0)  # of a drawn part: each stands for ten people
    assert (FEW_PEOPLE in asked.notes) == (count < 100 or count > 600)


@pytest.mark.parametrize(("rare", "is_few"), [(3, True), (400, False)])
def test_a_share_of_nearly_everybody_rests_on_the_few_others(rare: int, is_few: bool) -> None:
    """The last cumulative share is everybody, and has no error."""
    prior = pv.Prior([0.5, 0.4999, 0.0001])
    plan = pv.design(prior, 8.0, pv.Linear.cumulative(prior, unbiased=True), notion=pv.LDP())
    codes = np.repeat([0, 1, 2], [500, 500 - rare, rare])
    estimate = plan.estimate(plan.tally(plan.privatize(codes, np.random.default_rng(1), codes=True)))
    assert estimate.std_error[-1] == 0 and estimate.interval()[1].min() > 400
    assert (FEW_PEOPLE in estimate.notes) == is_few


def test_shares_within_groups_are_no_numbers_in_cells() -> None:
    """Zero lies in the first cell and one in the second, but they only say whose share it is."""
    drinks = {"[0, 1)": 0.6, "[1, 9]": 0.4}
    prior = pv.Prior.joint(
        {(age, cell): share / 2 for age in ("young", "old") for cell, share in drinks.items()},
        names=("age", "drinks"),
        cells={"drinks": [0, 1, 9]},
    )
    people = [(age, number) for age in ("young", "old") for number in [0.5] * 600 + [3.0] * 400]
    found = estimate_of(prior, pv.Distribution(), people)
    for row in shares_within(found, ["age"]).rows:
        label = (row.label[0], row.label[1])
        ratio = found.ratio([label], [(row.label[0], cell) for cell in drinks])
        assert row.numbers == pytest.approx((ratio.value, ratio.std_error, *ratio.interval()))


def test_shares_that_reports_do_not_bound_say_how_many_people_would() -> None:
    """At that many people the interval gets ends, if the shares stay as they are; at a higher level it takes more."""
    rare = {("young", "yes"): 0.02, ("young", "no"): 0.06, ("old", "yes"): 0.32, ("old", "no"): 0.6}
    people = [label for label, share in rare.items() for _ in range(int(100 * share))]
    found = estimate_of(pv.Prior.joint(rare, names=("age", "smokes")), pv.Distribution(), people)
    young = [label for label in rare if label[0] == "young"]
    needed = found.ratio(young[:1], young).people_to_bound
    assert needed > len(people)
    note = unbounded_shares_note(found, ["age"], 0.95)
    assert "too few people reported" in note and f"About {people_text(needed)} would be enough." in note
    more = unbounded_shares_note(found, ["age"], 0.99)
    assert f"About {people_text(needed * (2.5758293 / 1.9599640) ** 2)} would be enough." in more
    assert unbounded_shares_note(found, ["smokes"], 0.5) is None


@pytest.mark.parametrize("known", [False, True])
def test_a_prior_that_nobody_knows_is_neither_shown_nor_checked(known: bool) -> None:
    prior = pv.Prior.uniform(["yes", "no"], assumed=not known)
    estimate = estimate_of(prior, pv.Distribution(), ["yes"] * 900 + ["no"] * 100)
    assert [row.expected is not None for row in value_rows(estimate)] == [known, known]
    assert any("The prior is wrong" in note for note in estimate.notes) == known
    assert (NO_PRIOR in estimate.notes) != known
