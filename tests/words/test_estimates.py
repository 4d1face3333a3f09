"""The words of estimates: tables as data, and the sentences around them. Other tests compare no sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from priorveil.notes import Note
from priorveil.reading.estimate import Estimate
from priorveil.reading.estimate_notes import FEW_PEOPLE, LEANING, LEANING_ON_ASSUMED
from priorveil.results.document import ResultTable
from priorveil.results.findings import finding_of
from priorveil.results.statistic_tables import answer_rows, number_tables, shares_within, unbounded_within
from priorveil.words.notes import people_text
from priorveil.words.results import row_texts, selection, table_cells

JOINT = pv.Prior.joint(
    {("young", "yes"): 0.1, ("young", "no"): 0.3, ("old", "yes"): 0.25, ("old", "no"): 0.35},
    names=("age", "smokes"),
)


def estimate_of(
    prior: pv.Prior, query: pv.Query, values: Any, method: Any = "auto", design: Any = "auto"
) -> Estimate:
    plan = pv.design(prior, 1.0, query, method=design)
    return plan.estimate(plan.tally(plan.privatize(values, np.random.default_rng(1))), method)


def counts(**changes: Any) -> Estimate:
    """An estimate of two counts."""
    plain = Estimate(np.array([30.0, 70.0]), np.array([4.0, 4.0]), "unbiased", (), 100, ("a", "b"))
    return replace(plain, **changes)


def tables_of(estimate: Estimate) -> tuple[ResultTable, ...]:
    """The tables that are printed of an estimate."""
    figures = finding_of(estimate).figures
    assert figures is not None
    return figures.tables


def cells_of(estimate: Estimate) -> Any:
    """The titles and the texts of the first table."""
    table = tables_of(estimate)[0]
    return table_cells(finding_of(estimate), table, table.rows, 0.95)


def test_an_estimate_at_a_prompt_is_a_line() -> None:
    assert repr(counts()) == "Estimate(unbiased, 100 reports: a 30.0 (22.2 to 37.8), b 70.0 (62.2 to 77.8))"
    found = estimate_of(pv.Prior.zipf(60), pv.Distribution(), [3] * 100, design="unary")
    assert repr(found).endswith(", and 57 more)") and len(repr(found)) < 150


# -- tables ----------------------------------------------------------------------------------------------


def test_the_rows_have_the_numbers_of_the_estimate() -> None:
    found = estimate_of(JOINT, pv.Distribution(), [*JOINT.labels] * 100)
    rows, (low, high) = answer_rows(found, 0.9), found.interval(0.9)
    assert [row.label for row in rows] == list(found.labels)
    columns = [found.values, found.std_error, low, high]
    assert pytest.approx(np.array(columns)) == np.array([row.numbers for row in rows]).T
    assert [row.expected for row in rows] == pytest.approx(400 * JOINT.probabilities)
    assert [row_texts(row, "people").value for row in rows] == [f"{value:,.1f}" for value in found.values]


def test_margins_are_tables_with_a_column_for_each_attribute() -> None:
    query = pv.Linear.margins(JOINT, ["age", ("age", "smokes")], unbiased=True)
    found = estimate_of(JOINT, query, [*JOINT.labels] * 100)
    tables = [table for table in tables_of(found) if table.kind == "people"]
    assert [table.attributes for table in tables] == [("age",), ("age", "smokes")]
    assert [row.label for row in tables[0].rows] == [("young",), ("old",)]
    assert [row.label for row in tables[1].rows] == list(JOINT.labels)


def test_a_margin_has_the_names_of_its_attributes() -> None:
    found = estimate_of(JOINT, pv.Distribution(), [*JOINT.labels] * 100)
    (smokes,) = tables_of(found.margin("smokes"))
    turned, *_ = tables_of(found.margin("smokes", "age"))
    assert smokes.attributes == ("smokes",) and turned.attributes == ("smokes", "age")


@pytest.mark.parametrize(("size", "shown"), [(50, 50), (60, 50)])
def test_of_many_counts_those_are_shown_that_the_prior_expects_most(size: int, shown: int) -> None:
    prior = pv.Prior(np.arange(1, size + 1) / (size * (size + 1) / 2), labels=[f"v{n}" for n in range(size)])
    found = estimate_of(prior, pv.Distribution(), ["v0"] * 1_000, design="unary")
    labels = [row.label[0] for row in selection(tables_of(found)[0])[0]]
    chosen = f"The {shown} of {size} values that the prior expects most"
    if size == shown:
        assert labels == [*prior.labels] and chosen not in str(found)
    else:
        assert labels == [*reversed(prior.labels)][:shown]
        lines = str(found).splitlines()
        assert lines[0].startswith(chosen) and lines[1].startswith("value")  # above the table


@pytest.mark.statistical
def test_the_intervals_that_are_printed_of_many_contain_the_truth() -> None:
    """Of 300 intervals of 95 %, on average 285 contain it; fewer than 269 once in ten thousand times.

    Of the largest estimates, every fifth did, which this refuses for sure; of intervals of 84 %, 99 in 100.
    """
    prior, rng = pv.Prior.zipf(2_000), np.random.default_rng(4)
    plan, population = pv.design(prior, 2.0, pv.Distribution(), method="arc"), prior.probabilities[::-1]
    truths: dict[str, list[bool]] = {"unbiased": [], "mle": []}
    for _ in range(6):
        people = rng.choice(2_000, 5_000, p=population)
        tally = plan.tally(plan.privatize(people, rng, codes=True))
        for method, inside in truths.items():  # in turn, since they share most of the work
            found = plan.estimate(tally, method)  # type: ignore[arg-type]
            rows, _ = selection(tables_of(found)[0])
            inside += [row.low <= 5_000 * population[int(row.label[0])] <= row.high for row in rows]
    assert all(len(inside) == 300 and sum(inside) >= 269 for inside in truths.values())


def test_of_many_counts_without_a_prior_the_first_are_shown() -> None:
    found = counts(values=np.arange(60.0), std_error=np.ones(60), labels=tuple(map(str, range(60))))
    assert [row.label[0] for row in selection(tables_of(found)[0])[0]] == [*map(str, range(50))]
    assert str(found).startswith("The first 50 of 60 values. All are in to_frame().")


def test_numbers_have_a_mean_or_quantiles() -> None:
    grid, cells = pv.Prior.grid([0, 10, 30], [0.3, 0.4, 0.3]), pv.Prior.cells([0, 10, 30], [0.4, 0.6])
    mean = estimate_of(grid, pv.Histogram(), [0.0, 10.0, 30.0] * 100)
    quantiles = estimate_of(cells, pv.Distribution(), [5.0, 15.0, 20.0] * 100)
    (table,) = number_tables(mean)
    assert table.kind == "mean" and table.rows[0].value == mean.mean().value
    (table,) = number_tables(quantiles, 0.9)
    median = quantiles.quantile(0.5)
    assert table.kind == "quantile" and table.rows[2].label == ("0.5",)
    assert (table.rows[2].low, table.rows[2].high) == median.interval(0.9)
    assert tables_of(quantiles)[-1].rows[2].value == median.value
    assert list(number_tables(counts())) == []


def test_an_estimate_is_printed_as_its_description() -> None:
    found = estimate_of(JOINT, pv.Sum([0, 1, 2, 3]), [*JOINT.labels] * 100)
    (row,) = tables_of(found)[0].rows
    printed, texts = str(found), row_texts(row, "amount")
    assert all(text in printed for text in (*texts.cells, "95 % low", *map(str, found.notes)))


def test_an_estimate_is_printed_alike_everywhere() -> None:
    """Shares first and counts beside them, in text, notebooks and the shell; of weights, shares of their sum."""
    found = estimate_of(JOINT, pv.Distribution(), [*JOINT.labels] * 100)
    heads, rows = cells_of(found)
    assert heads == ("age", "smokes", "share", "95 % low", "high", "people")
    assert rows[0][2] == f"{100 * found.proportions[0]:.1f} %" and rows[0][-1] == f"{found.values[0]:,.1f}"
    printed, html = str(found), found._repr_html_()
    assert printed.splitlines()[0].split() == " ".join(heads).split()
    assert all(cell in printed and f">{cell}</td>" in html for row in rows for cell in row)
    plan = pv.design(JOINT, 1.0, pv.Distribution())
    weighted = plan.estimate(
        plan.tally(plan.privatize([*JOINT.labels] * 100, np.random.default_rng(1)), [2.0] * 400)
    )
    shares = [float(row[2].removesuffix(" %")) for row in cells_of(weighted)[1]]
    assert sum(shares) == pytest.approx(100, abs=0.3)


# -- sentences -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"assumes": (Note("assumesUnbiased"),)}, f"Method unbiased assumes {Note('assumesUnbiased')}."),
        (
            {},
            "Prior check: none. There are too few reports, or they say too little, or the plan can check "
            "only its own prior.",
        ),
        (
            {"prior_check": 0.0152},
            "Prior check: p = 0.0152. A p below 0.01 would contradict the prior; a larger one does not prove it.",
        ),
        (
            {"prior_check": 0.25, "noticeable_change": 0.031},
            "In at least about nine of ten surveys the check would detect that 3.1 % of the people have moved from one "
            "common value to another; it can miss smaller changes.",
        ),
        (
            {"prior_check": 0.25, "noticeable_change": 0.031, "unseen_changes": Note("unseenSomeChanges")},
            "In at least about nine of ten surveys the check would detect that 3.1 % of the people have moved from one "
            "common value to another that reports distinguish from it; it can miss smaller changes.",
        ),
        (
            {"prior_check": 1e-9, "noticeable_change": 0.031, "unseen_changes": Note("unseenSomeChanges")},
            "The prior is wrong, or somebody manipulates the reports, or it is chance: for a right prior p is below "
            "0.01 in about one of a hundred surveys.",
        ),
        (
            {"unbiased_difference": 2.34},
            "The answer of method unbiased, which does not use the prior, is up to 2.3 of its own standard errors "
            "away from this one.",
        ),
        (
            {"mle_gain": 2.0},
            "Method mle uses that shares are not negative and add up to one: its squared error is about 2.0 times "
            "smaller than that of unbiased, if the prior is about right.",
        ),
        (
            {"converged": False},
            "The search stopped early: the mean log-likelihood may be up to 0 below its maximum.",
        ),
        (
            {"values": np.array([-20.0, 120.0])},
            "An unbiased estimate of a small count can be below zero, even with its whole interval: its share is near "
            "zero.",
        ),
        (
            {"values": np.array([-20.0, 120.0])},
            "Method mle, or project(), gives counts that are not negative.",
        ),
        (
            {"unseen_changes": Note("unseenSomeChanges"), "prior_check": 0.25},
            "Some changes of the distribution may not show in the reports: the prior check then misses them, however "
            "large.",
        ),
        ({"remarks": (Note("leansOnSet"),)}, str(Note("leansOnSet"))),
    ],
)
def test_notes(changes: dict[str, Any], sentence: str) -> None:
    assert sentence in list(map(str, counts(**changes).notes))


@pytest.mark.parametrize(
    ("difference", "advice"),
    [
        (2.0, "Read the reports with method unbiased, or give a better prior."),
        (None, "Give a better prior, or design a plan for the query distribution."),
    ],
)
def test_a_warning_says_what_to_do(difference: float | None, advice: str) -> None:
    found = counts(leans_on_prior=True, prior_check=0.001, unbiased_difference=difference)
    assert str(found.warning) == (
        "The reports contradict the prior, and this estimate leans on it: the truth may be far outside "
        f"the intervals. {advice}"
    )
    assert str(found).startswith("Warning: ")
    assert counts(prior_check=0.001).warning is None


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
    note, enough = unbounded_within(found, ["age"], 0.95)
    assert note == Note("unboundedShare") and str(enough) == f"About {people_text(needed)} would be enough."
    _, more = unbounded_within(found, ["age"], 0.99)
    assert more.values["people"] == pytest.approx(needed * (2.5758293 / 1.9599640) ** 2)
    assert unbounded_within(found, ["smokes"], 0.5) == ()


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("query", [pv.Distribution(), pv.Histogram()], ids=["unbiased", "mmse"])
def test_numbers_of_a_prior_that_nobody_knows_are_not_shown(query: pv.Linear, known: bool) -> None:
    """Where the answer leans on it, reports that contradict it are a warning all the same."""
    prior = pv.Prior.uniform(["yes", "no"], assumed=not known)
    estimate = estimate_of(prior, query, ["yes"] * 900 + ["no"] * 100)
    assert [row.expected is not None for row in answer_rows(estimate)] == [known, known]
    leans = query == pv.Histogram()
    assert any(note.code == "checkFailed" for note in estimate.notes) == (known or leans)
    assert (Note("noPrior") in estimate.notes) == (not known and not leans)
    assert (estimate.warning is not None) == leans
    assert estimate.leaning == ((LEANING if known else LEANING_ON_ASSUMED) if leans else None)
    assert estimate.mean([0, 1]).leaning == estimate.leaning
