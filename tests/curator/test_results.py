"""Results as the API sends them: by question and cohort, tables and margins, and what is withheld."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import msgspec
import numpy as np
import pytest

from priorveil import Distribution, Histogram, Linear, Prior, Sum, design
from priorveil.curator.result_messages import CampaignResults, Publication
from priorveil.curator.results import (
    campaign_results,
    publication,
    publication_csv,
    results_csv,
)
from priorveil.curator.store import FormTally, count_cells
from priorveil.plans.form import Form, Part, Slot
from priorveil.queries import Query
from priorveil.questions.campaign import Campaign, ask
from priorveil.questions.choices import MultipleChoice, SingleChoice
from priorveil.questions.number import NumberQuestion
from priorveil.results.document import Figures, Finding, ResultTable
from sample_surveys import SMOKES, health, people
from submissions import plan_of

PRIOR = Prior({"nothing": 0.5, "about 20": 0.3, "about 100": 0.2})


def tallies(campaign: Campaign, answers: Mapping[str, Any], seed: int = 1) -> dict[str, FormTally]:
    """The tallies of people whose answers are given as columns, by cohort."""
    rng = np.random.default_rng(seed)
    rows = {form.id: form.privatize(answers[name], rng=rng) for name, form in campaign.cohorts.items()}
    return {
        id: FormTally.of(campaign.forms[id], count_cells(campaign.forms[id], w.tobytes()))
        for id, w in rows.items()
    }


def response_of(campaign: Campaign, answers: Mapping[str, Any], method: Any = "auto") -> CampaignResults:
    """The response, which a schema has allowed."""
    response = campaign_results(campaign, tallies(campaign, answers), method, 0.95, "open")
    return msgspec.json.decode(msgspec.json.encode(response), type=CampaignResults)


def results(campaign: Campaign, answers: Mapping[str, Any], method: Any = "auto") -> list[Finding]:
    return list(response_of(campaign, answers, method).result.findings)


def figures(found: Finding) -> Figures:
    """The figures of a finding that is not withheld."""
    assert found.figures is not None
    return found.figures


def tables(found: Finding, kind: str) -> list[ResultTable]:
    """The tables of one kind."""
    return [table for table in figures(found).tables if table.kind == kind]


def only(campaign: Campaign, values: Sequence[Any]) -> Finding:
    """The finding of a campaign with one cohort and one question."""
    (found,) = results(campaign, {"everyone": {"answer": values}})
    return found


def numbers(table: ResultTable, name: str = "value") -> list[Any]:
    """One number of all rows."""
    return [getattr(row, name) for row in table.rows]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Sum([1, 21, 101]), [27.0]),
        (Linear([[0, 1, 1], [0, 0, 1]], names=("some", "much")), [0.5, 0.2]),
        (Distribution(), [0.5, 0.3, 0.2]),
    ],
)
def test_what_the_prior_expects_stands_beside_the_statistics(query: Query, expected: list[float]) -> None:
    campaign = ask("How much?", PRIOR, 1.0, query, smallest_count=1)
    found = only(campaign, np.repeat(PRIOR.labels, 50))
    table = figures(found).tables[0]
    assert [x / 150 for x in numbers(table, "expected")] == pytest.approx(expected)
    if table.kind == "total":
        (per_person,) = tables(found, "per person")
        assert numbers(per_person, "expected") == pytest.approx(expected)
        assert numbers(per_person) == pytest.approx([x / 150 for x in numbers(table)])


COHORTS = ask("Ill?", {"north": Prior({"yes": 0.1, "no": 0.9}), "south": Prior({"yes": 0.4, "no": 0.6})})
ILL = {name: {"answer": ["yes", "no"] * n} for name, n in (("north", 300), ("south", 100))}


def test_the_total_shows_what_the_priors_of_all_cohorts_expect() -> None:
    result = response_of(COHORTS, ILL).result
    assert [(cohort.cohort, cohort.reports) for cohort in result.cohorts] == [("north", 600), ("south", 200)]
    *cohorts, total = result.findings
    assert [found.cohort for found in cohorts] == ["north", "south"]
    assert (total.cohort, total.reports, figures(total).people) == ("", 800, 800)
    (counts,) = tables(total, "people")
    assert [row.expected / 800 for row in counts.rows if row.expected] == pytest.approx([0.175, 0.825])
    added = [
        sum(values) for values in zip(*(numbers(*tables(found, "people")) for found in cohorts), strict=True)
    ]
    assert numbers(counts) == pytest.approx(added)
    assert [found.precision is None for found in (*cohorts, total)] == [False, False, True]


def test_csv_has_the_numbers_of_the_estimates() -> None:
    result = campaign_results(COHORTS, tallies(COHORTS, ILL), "unbiased", 0.9, "open").result
    lines = list(csv.DictReader(results_csv(result).splitlines()))
    assert [line["cohort"] for line in lines] == ["north", "north", "south", "south", "", ""]
    assert [(line["statistic"], line["answer"], line["reports"]) for line in lines[:2]] == [
        ("people", "yes", "600"),
        ("people", "no", "600"),
    ]
    rows = [row for found in result.findings for table in tables(found, "people") for row in table.rows]
    for line, row in zip(lines, rows, strict=True):
        assert [float(line[name]) for name in ("estimate", "low", "high")] == [row.value, row.low, row.high]


def test_csv_withholds_what_is_withheld() -> None:
    campaign = ask(
        "How much?",
        {"north": PRIOR, "south": Prior({"nothing": 0.6, "about 20": 0.2, "about 100": 0.2})},
        smallest_count=100,
    )
    answers = {name: {"answer": ["nothing"] * n} for name, n in (("north", 100), ("south", 99))}
    result = campaign_results(campaign, tallies(campaign, answers), "auto", 0.9, "open").result
    lines = list(csv.DictReader(results_csv(result).splitlines()))
    assert {line["cohort"] for line in lines if line["estimate"]} == {"north"}
    empty = [(line["cohort"], line["statistic"], line["reports"]) for line in lines if not line["estimate"]]
    assert empty == [("south", "withheld: few reports", "99"), ("", "withheld: a part is withheld", "199")]


def test_methods_that_the_reports_do_not_allow_are_not_offered() -> None:
    for query in (Distribution(), Histogram()):
        prior = Prior({"none": 0.9, **dict.fromkeys("abcd", 0.025)})
        campaign = ask("Which?", prior, 1.0, query, smallest_count=1)
        response = response_of(campaign, {"everyone": {"answer": ["none"]}}, "mmse")
        assert figures(response.result.findings[0]).leaning
        free = plan_of(campaign).identifiable
        assert set(response.methods) == ({"auto", "mmse", "unbiased", "mle"} if free else {"auto", "mmse"})


def test_numbers_show_their_mean() -> None:
    campaign = ask("Hours?", Prior.grid([0, 20, 40], [0.3, 0.4, 0.3], outside="ends"), smallest_count=1)
    found = only(campaign, np.linspace(0, 40, 500))
    (mean,) = tables(found, "mean")
    assert (mean.of, mean.attributes, mean.rows[0].label) == ("answer", (), ("mean",))
    assert mean.rows[0].expected is None and mean.rows[0].decimals == 1


def test_averages_by_group_are_the_answer() -> None:
    cells = {("young", 0): 0.2, ("young", 40): 0.2, ("old", 0): 0.5, ("old", 40): 0.1}
    prior = Prior.joint(cells, ("age", "overtime"), grids=("overtime",), outside="ends")
    campaign = ask("Overtime?", prior, 2.0, Linear.averages(prior, "overtime", by="age"), smallest_count=1)
    answers = {"everyone": {"age": ["young", "old"] * 500, "overtime": [10.0, 20.0] * 500}}
    whole, *margins = results(campaign, answers)
    tally = next(iter(tallies(campaign, answers).values()))
    averages = plan_of(campaign).estimate(tally.parts[0]).averages
    assert averages is not None
    (groups,), (everyone,) = tables(whole, "average"), tables(whole, "mean")
    assert (groups.of, groups.by, everyone.of) == ("overtime", ("age",), "overtime")
    assert [row.label for row in groups.rows] == [("young",), ("old",)]
    assert numbers(groups) == pytest.approx(averages.values)
    assert numbers(groups, "expected") == pytest.approx([20, 40 / 6])
    assert [(found.attributes, found.margin_of) for found in margins] == [(("age",), ("age", "overtime"))], (
        "shares of the points of a grid are not shares of people"
    )
    assert whole.precision is not None and whole.precision.statistic == "average of a group"
    few = results(campaign, {"everyone": {"age": ["old"], "overtime": [0.0]}})
    assert any(row.low is row.high is None for row in tables(few[0], "average")[0].rows), "without ends"


# -- what is published -------------------------------------------------------------------------------------


def published(campaign: Campaign, answers: Mapping[str, Any], seed: int = 1) -> Publication:
    """The publication as it is read from its JSON. Its CSV file has the figures for computing."""
    content = msgspec.json.encode(
        publication(campaign, tallies(campaign, answers, seed), "2026-03-01T00:00:00Z")
    )
    read = msgspec.json.decode(content, type=Publication)
    lines = list(csv.DictReader(publication_csv(content).splitlines()))
    kept = [
        (figures(found).method, row)
        for found in read.result.findings
        for table in figures(found).tables
        for row in table.rows
    ]
    for line, (method, row) in zip(lines, kept, strict=True):
        assert line["method"] == method
        for name, number in (("estimate", row.value), ("low", row.low)):
            assert line[name] == ("" if number is None else str(number))
    return read


def by_age(epsilon: float) -> Campaign:
    """A table of two questions, averages by group, and ranges of a number."""
    ages = {"young": 0.5, "old": 0.4, "oldest": 0.1}
    smoking = Prior.joint(
        {(age, code): p * q for age, p in ages.items() for code, q in (("never", 0.8), ("daily", 0.2))},
        ("age", "smokes"),
    )
    working = Prior.joint(
        {(age, hours): p / 2 for age, p in ages.items() for hours in (0, 40)},
        ("age", "hours"),
        grids=("hours",),
        outside="ends",
    )
    rooms = Prior.cells([0, 2, 5, 9], [0.5, 0.4, 0.1], outside="ends")
    plans = {
        ("age", "smokes"): design(smoking, epsilon, Distribution()),
        ("age", "hours"): design(working, epsilon, Linear.averages(working, "hours", by="age")),
        ("rooms",): design(rooms, epsilon, Distribution()),
    }
    questions = [
        SingleChoice("age", "Age?", options={age: age for age in ages}),
        SMOKES,
        NumberQuestion("hours", "Hours?"),
        NumberQuestion("rooms", "Rooms?"),
    ]
    form = Form(tuple(Slot((Part(names, plan),)) for names, plan in plans.items()))
    return Campaign("Habits", questions, {"everyone": form}, smallest_count=1)


@pytest.mark.parametrize(("people", "epsilon"), [(30, 0.5), (400, 1.0)])
@pytest.mark.parametrize("seed", range(3))
def test_published_figures_can_exist_and_fit_together(people: int, epsilon: float, seed: int) -> None:
    campaign, rng = by_age(epsilon), np.random.default_rng(100 + seed)
    columns = {
        "age": rng.choice(["young", "old"], people).tolist(),
        "smokes": ["never"] * people,
        "hours": rng.uniform(0, 5, people).tolist(),
        "rooms": rng.uniform(0, 2, people).tolist(),
    }
    findings = published(campaign, {"everyone": columns}, seed).result.findings
    assert {figures(found).method for found in findings} == {"unbiased"}
    public = [found.public for found in findings if found.public is not None]
    assert len(public) == len(findings) and {each.method for each in public} == {"mle"}
    table, age, smokes, averages, _, rooms = (
        {
            kind: [t for t in each.tables if t.kind == kind]
            for kind in ("people", "average", "mean", "quantile")
        }
        for each in public
    )
    for each in public:
        for kind, whole in (("people", each.people), ("share within", 1), ("share among", 1)):
            for shares in (own for own in each.tables if own.kind == kind):
                for row in shares.rows:
                    assert row.value is not None and 0 <= row.value <= whole
                    assert (row.low or 0) <= row.value <= (whole if row.high is None else row.high)
                    assert (row.least, row.most) == (0, pytest.approx(whole))
                if kind == "people":
                    assert sum(numbers(shares)) == pytest.approx(whole)
    cells = {row.label: row.value or 0 for row in table["people"][0].rows}
    for margin, place in ((age, 0), (smokes, 1)):
        for row in margin["people"][0].rows:
            same = sum(value for cell, value in cells.items() if cell[place] == row.label[0])
            assert row.value == pytest.approx(same)
    for own in [*averages["average"], *averages["mean"]]:
        assert all(row.value is None or 0 <= row.value <= 40 for row in own.rows)
    assert all(0 <= value <= 9 for value in numbers(*rooms["quantile"]))
    lows = [row.low for found in findings for own in tables(found, "people") for row in own.rows]
    assert min(lows) < 0, "noise makes some figures for computing impossible"


def test_a_publication_has_the_default_method_where_there_are_no_most_likely_shares() -> None:
    prior = Prior({"none": 0.9, **dict.fromkeys("abcd", 0.025)})
    campaign = ask("Which?", prior, 1.0, Histogram(), smallest_count=1)
    assert not plan_of(campaign).identifiable
    (found,) = published(campaign, {"everyone": {"answer": ["none"] * 40}}).result.findings
    assert found.public is None and figures(found).method == "mmse" and figures(found).leaning
    (counts,) = tables(found, "people")
    assert min(numbers(counts, "low")) == 0 and max(numbers(counts, "high")) <= 40


def test_published_totals_over_cohorts_that_are_read_differently_can_exist() -> None:
    """Only the reports of the first cohort determine the shares, so both totals mix two methods."""
    first = Prior({"a": 0.45, "b": 0.3, "c": 0.2, "d": 0.05})
    second = Prior({"a": 0.05, "b": 0.05, "c": 0.05, "d": 0.85})
    campaign = ask("Which?", {"first": first, "second": second}, 0.5, Histogram(), smallest_count=1)
    answers = {name: {"answer": ["c"] * 30 + ["d"] * 30} for name in campaign.cohorts}
    *_, total = published(campaign, answers).result.findings
    assert total.public is not None and figures(total).method == total.public.method == "mixed"
    (own,), (shown,) = tables(total, "people"), total.public.tables
    assert min(numbers(own)) < 0 <= min(numbers(shown)) and max(numbers(shown)) <= 120


# -- several questions ---------------------------------------------------------------------------------------


def answered(survey: Campaign, count: int) -> dict[str, Any]:
    """The answers of people to a survey, as columns."""
    rows = [survey.attribute_values(one) for one in people(count, np.random.default_rng(5))]
    return {"everyone": {name: [row[name] for row in rows] for name in rows[0]}}


def test_every_question_has_results(survey: Campaign) -> None:
    found = results(survey, answered(survey, 4000))
    assert [(each.attributes, each.margin_of, each.cohort) for each in found] == [
        (("ills/cough", "ills/asthma"), None, ""),
        (("ills/cough",), ("ills/cough", "ills/asthma"), ""),
        (("ills/asthma",), ("ills/cough", "ills/asthma"), ""),
        (("hours",), None, ""),
        (("packs",), None, ""),
    ]
    table, cough, _, hours, packs = found
    assert table.reports == figures(table).people == 4000
    assert hours.reports + packs.reports == 4000
    assert figures(hours).people == figures(packs).people == pytest.approx(4000)
    assert sum(numbers(*tables(packs, "people"))) == pytest.approx(4000)
    truth = answered(survey, 4000)["everyone"]
    for each, name in ((cough, "ills/cough"), (packs, "packs")):
        (counts,) = tables(each, "people")
        right = np.array([truth[name].count(row.label[0]) for row in counts.rows])
        assert np.all(
            np.abs(np.array(numbers(counts)) - right) < 4.5 * np.array(numbers(counts, "std_error"))
        )
    assert [row.label for row in tables(cough, "people")[0].rows] == [("yes",), ("no",), ("not asked",)]
    assert [row.label for row in tables(cough, "share among")[0].rows] == [("yes",), ("no",)]
    assert tables(hours, "per person") and not tables(hours, "mean"), "no number stands there twice"


def test_few_reports_about_a_drawn_question_are_withheld() -> None:
    """All people are enough; those who were asked about working hours are not."""
    survey = health(smallest_count=700)
    withheld = {found.attributes: found.withheld for found in results(survey, answered(survey, 1000))}
    assert withheld == {
        ("ills/cough", "ills/asthma"): None,
        ("ills/cough",): None,
        ("ills/asthma",): None,
        ("hours",): "few reports",
        ("packs",): None,
    }


def test_cohorts_that_report_in_different_ways_have_no_total() -> None:
    other = SingleChoice("drinks", "Do you drink?", options={"yes": "Yes", "no": "No"})
    smokes, drinks = Prior({"never": 0.7, "daily": 0.3}), Prior({"yes": 0.5, "no": 0.5})
    pair = Prior.joint(
        {(a, b): p * q for a, p in (("never", 0.7), ("daily", 0.3)) for b, q in (("yes", 0.5), ("no", 0.5))},
        names=("smokes", "drinks"),
    )
    parts = [
        Part((name,), design(p, 1.0, Distribution())) for name, p in (("smokes", smokes), ("drinks", drinks))
    ]
    drawn, together = (
        Form((Slot.by_weights(parts, [1, 1]),)),
        Form.of(("smokes", "drinks"), design(pair, 1.0, Distribution())),
    )
    campaign = Campaign("Habits", [SMOKES, other], {"a": drawn, "b": together}, smallest_count=1)
    columns = {"smokes": ["daily"] * 30, "drinks": ["no"] * 30}
    found = results(campaign, {"a": columns, "b": columns})
    topics = [(("smokes",), True, "a"), (("drinks",), True, "a"), (("smokes", "drinks"), True, "b")]
    topics += [(("smokes",), False, "b"), (("drinks",), False, "b")]
    assert [(each.attributes, each.margin_of is None, each.cohort, each.withheld) for each in found] == [
        (attributes, is_whole, who, None if who else "other forms")
        for (attributes, is_whole, cohort), who in product(topics, ("own", ""))
        for who in (cohort if who else "",)
    ]


def test_labels_are_codes_that_the_texts_of_the_survey_explain() -> None:
    """Of ranges and of options of "tick all that apply" by group, which have a share for each group and option."""
    questions = [
        SingleChoice("age", "How old are you?", options={"young": "Under 40", "old": "40 and over"}),
        MultipleChoice("ills", "Which of these?", {"back": "Back pain", "sleep": "Bad sleep"}),
        NumberQuestion("rooms", "How many rooms?", edges=(0, 2, 5.5)),
    ]
    names = ("age", "ills/back", "ills/sleep")
    both = Prior.joint(
        {(age, a, b): 1 / 8 for age in ("young", "old") for a in ("yes", "no") for b in ("yes", "no")}, names
    )
    by_age = Linear.margins(both, [("age", "ills/back"), ("age", "ills/sleep")], unbiased=True)
    rooms = Prior({"[0, 2)": 0.4, "[2, 5.5]": 0.6})
    parts = [Part(names, design(both, 3.0, by_age)), Part(("rooms",), design(rooms, 3.0, Distribution()))]
    form = Form(tuple(Slot((part,)) for part in parts))
    campaign = Campaign("Health", questions, {"everyone": form}, smallest_count=1)
    columns = {
        "age": ["young", "old"] * 500,
        "ills/back": ["yes"] * 600 + ["no"] * 400,
        "ills/sleep": ["no"] * 1000,
        "rooms": ["[0, 2)", "[2, 5.5]"] * 500,
    }
    response = response_of(campaign, {"everyone": columns})
    found = {each.attributes: each for each in response.result.findings}
    counts = tables(found[names], "people")
    assert [table.attributes for table in counts] == [("age", "ills/back"), ("age", "ills/sleep")]
    assert {row.label for row in counts[0].rows} == set(product(("young", "old"), ("yes", "no")))
    assert [row.label for row in tables(found[("rooms",)], "people")[0].rows] == [("[0, 2)",), ("[2, 5.5]",)]
    age, ills, _ = response.survey.questions
    assert age.options["old"] == {"en": "40 and over"} and ills.attributes == ["ills/back", "ills/sleep"]
