"""Results as the API shows them: by question and cohort, tables and margins, and what is withheld."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from priorveil import Distribution, Histogram, Linear, Prior, Sum, design
from priorveil.collect.campaign import Campaign, ask
from priorveil.collect.questions import Question
from priorveil.curator.result_messages import Estimates, Publication, Result, Shown
from priorveil.curator.results import (
    campaign_estimates,
    campaign_publication,
    estimates_csv,
    publication_csv,
)
from priorveil.curator.store import FormTally, count_cells
from priorveil.plans.form import Form, Part, Slot
from priorveil.queries import Query
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


def results(campaign: Campaign, answers: Mapping[str, Any], method: Any = "auto") -> list[Result]:
    response = campaign_estimates(campaign, tallies(campaign, answers), method, 0.95, "open")
    msgspec.json.decode(
        msgspec.json.encode(response), type=Estimates
    )  # refuses what the schema does not allow
    return response.results


def only(campaign: Campaign, values: Sequence[Any]) -> Any:
    """The result of a campaign with one cohort and one question."""
    (result,) = results(campaign, {"everyone": {"answer": values}})
    return result.cohorts[0]


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
    cohort = only(campaign, np.repeat(PRIOR.labels, 50))
    assert cohort.prior == pytest.approx(expected)
    assert len(cohort.prior) == len(cohort.labels) == len(cohort.values)


def test_the_total_shows_what_the_priors_of_all_cohorts_expect() -> None:
    campaign = ask("Ill?", {"north": Prior({"yes": 0.1, "no": 0.9}), "south": Prior({"yes": 0.4, "no": 0.6})})
    answers = {name: {"answer": ["yes", "no"] * n} for name, n in (("north", 300), ("south", 100))}
    response = campaign_estimates(campaign, tallies(campaign, answers), "auto", 0.9, "open")
    (result,) = response.results
    assert result.total is not None and [cohort.reports for cohort in response.cohorts] == [600, 200]
    display = result.total.display
    assert [row.expected for row in display.rows] == pytest.approx([0.175, 0.825])
    assert [row.expected_text for row in display.rows] == ["17.5 %", "82.5 %"]
    assert display.shares and display.interval_head == "90 % interval" and display.left_out is None
    assert [row.value for row in display.rows] == pytest.approx([x / 800 for x in result.total.values])


def test_csv_has_the_numbers_of_the_estimates() -> None:
    campaign = ask("Ill?", {"north": Prior({"yes": 0.1, "no": 0.9}), "south": Prior({"yes": 0.4, "no": 0.6})})
    answers = {name: {"answer": ["yes", "no"] * n} for name, n in (("north", 300), ("south", 100))}
    found = tallies(campaign, answers)
    (result,) = campaign_estimates(campaign, found, "unbiased", 0.9, "open").results
    lines = list(csv.DictReader(estimates_csv(campaign, found, "unbiased", 0.9).splitlines()))
    assert [line["cohort"] for line in lines] == ["north", "north", "south", "south", "", ""]
    assert [(line["statistic"], line["answer"], line["reports"]) for line in lines[:2]] == [
        ("people", "yes", "600"),
        ("people", "no", "600"),
    ]
    for lines_of, shown in zip(
        (lines[:2], lines[2:4], lines[4:]), (*result.cohorts, result.total), strict=True
    ):
        for column, numbers in (("estimate", shown.values), ("low", shown.lower), ("high", shown.upper)):
            assert [float(line[column]) for line in lines_of] == pytest.approx(numbers)


def test_csv_withholds_what_is_withheld() -> None:
    campaign = ask(
        "How much?",
        {"north": PRIOR, "south": Prior({"nothing": 0.6, "about 20": 0.2, "about 100": 0.2})},
        smallest_count=100,
    )
    answers = {name: {"answer": ["nothing"] * n} for name, n in (("north", 100), ("south", 99))}
    lines = csv.DictReader(estimates_csv(campaign, tallies(campaign, answers), "auto", 0.9).splitlines())
    assert {line["cohort"] for line in lines} == {"north"}


def test_methods_that_the_reports_do_not_allow_are_not_offered() -> None:
    for query in (Distribution(), Histogram()):
        prior = Prior({"none": 0.9, **dict.fromkeys("abcd", 0.025)})
        campaign = ask("Which?", prior, 1.0, query, smallest_count=1)
        one = tallies(campaign, {"everyone": {"answer": ["none"]}})
        response = campaign_estimates(campaign, one, "mmse", 0.95, "open")
        assert response.caution is not None
        offered = {choice.method for choice in response.methods}
        free = plan_of(campaign).identifiable
        assert offered == ({"auto", "mmse", "unbiased", "mle"} if free else {"auto", "mmse"})


def test_numbers_show_their_mean() -> None:
    campaign = ask("Hours?", Prior.grid([0, 20, 40], [0.3, 0.4, 0.3], outside="ends"), smallest_count=1)
    cohort = only(campaign, np.linspace(0, 40, 500))
    (mean,) = cohort.display.numbers
    assert (mean.label, mean.name) == ("Average per person", "mean")
    assert mean.value == cohort.statistics[0].value
    assert mean.value_text == f"{mean.value:.1f}" and mean.expected is None


def test_averages_by_group_are_the_answer() -> None:
    cells = {("young", 0): 0.2, ("young", 40): 0.2, ("old", 0): 0.5, ("old", 40): 0.1}
    prior = Prior.joint(cells, ("age", "overtime"), grids=("overtime",), outside="ends")
    campaign = ask("Overtime?", prior, 2.0, Linear.averages(prior, "overtime", by="age"), smallest_count=1)
    answers = {"everyone": {"age": ["young", "old"] * 500, "overtime": [10.0, 20.0] * 500}}
    whole = results(campaign, answers)[0]
    cohort = whole.cohorts[0]
    assert whole.questions == ["age", "overtime"] and whole.title == "age x overtime"
    tally = next(iter(tallies(campaign, answers).values()))
    averages = plan_of(campaign).estimate(tally.parts[0]).averages
    assert averages is not None
    assert cohort.labels == ["age=young", "age=old"] and cohort.prior == pytest.approx([20, 40 / 6])
    assert cohort.values == pytest.approx(averages.values)
    *groups, everyone = cohort.display.rows
    assert [row.label for row in groups] == ["young", "old"] and everyone.label == "Everyone"
    assert [row.value for row in groups] == pytest.approx(averages.values)
    assert [row.expected for row in groups] == pytest.approx(cohort.prior)
    assert everyone.value == cohort.statistics[0].value and cohort.display.numbers == []
    assert not cohort.display.shares and cohort.display.averages_of == "overtime"
    assert cohort.display.label_head == "Average: overtime"
    assert [(r.attributes, r.margin_of) for r in results(campaign, answers)[1:]] == [
        (["age"], ["age", "overtime"])
    ], "shares of the points of a grid are not shares of people"
    received = msgspec.json.decode(msgspec.json.encode(cohort), type=Shown)
    assert received.precision is not None and received.precision.statistic == "average of a group"
    few = results(campaign, {"everyone": {"age": ["old"], "overtime": [0.0]}})
    assert b"null" in msgspec.json.encode(few)  # intervals without ends


# -- what is published -------------------------------------------------------------------------------------


def published(campaign: Campaign, answers: Mapping[str, Any], seed: int = 1) -> tuple[Publication, list[Any]]:
    """The publication as it is read from its JSON, and the live totals by the default method."""
    found = tallies(campaign, answers, seed)
    content = msgspec.json.encode(campaign_publication(campaign, found, "2026-03-01T00:00:00Z"))
    lines = csv.DictReader(publication_csv(campaign, content).splitlines())
    publication = msgspec.json.decode(content, type=Publication)
    for line, kept in zip(lines, publication.for_computing, strict=True):
        assert (line["statistic"], line["method"]) == (kept.statistic, kept.method)
        for text, number in ((line["estimate"], kept.estimate), (line["low"], kept.low)):
            assert text == ("" if number is None else str(number))
    live = campaign_estimates(campaign, found, "auto", 0.95, "closed").results
    return publication, [result.total for result in live]


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
        Question("age", "Age?", options={age: age for age in ages}),
        SMOKES,
        Question("hours", "Hours?", "number"),
        Question("rooms", "Rooms?", "number"),
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
    publication, live = published(campaign, {"everyone": columns}, seed)
    totals: list[Any] = [result.total for result in publication.results.results]
    table, age, smokes, averages, _, rooms = totals
    assert {total.method for total in totals} == {"mle"}
    for total in totals:
        display = total.display
        shares = [*(display.rows if display.shares else []), *(r for g in display.groups for r in g.rows)]
        for row in shares:
            assert 0 <= row.value <= 1 and (row.people is None or row.people >= 0)
            assert (row.lower or 0) <= row.value <= (row.upper or 1)
            assert row.lower is None or 0 < row.lower < 1
            assert row.upper is None or 0 < row.upper < 1
        if display.shares:
            assert sum(row.value for row in display.rows) == pytest.approx(1)
    cells = dict(zip(map(tuple, table.labels), table.values, strict=True))
    for margin, place in ((age, 0), (smokes, 1)):
        for label, value in zip(margin.labels, margin.values, strict=True):
            assert value == pytest.approx(sum(v for cell, v in cells.items() if cell[place] == label))
    for row in [*averages.display.rows, *averages.display.numbers]:
        assert row.value is None or 0 <= row.value <= 40
    assert all(0 <= row.value <= 9 for row in rooms.display.numbers)
    assert not any(r.method == "mle" for r in live), "the dashboard has the unbiased figures"
    counts = [line for line in publication.for_computing if line.statistic == "people"]
    assert [line.estimate for line in counts] == [
        value for total in live if total.display.shares for value in total.values
    ]
    assert min(line.low for line in counts) < 0, "noise makes some of them impossible"


def test_a_publication_names_the_default_method_where_there_are_no_most_likely_shares() -> None:
    prior = Prior({"none": 0.9, **dict.fromkeys("abcd", 0.025)})
    campaign = ask("Which?", prior, 1.0, Histogram(), smallest_count=1)
    assert not plan_of(campaign).identifiable
    publication, _ = published(campaign, {"everyone": {"answer": ["none"] * 40}})
    total = publication.results.results[0].total
    assert total is not None and total.method == "mmse" and publication.results.caution is not None
    assert min(total.lower) == 0 and max(total.upper) <= 40
    assert {line.method for line in publication.for_computing} == {"mmse"}


# -- several questions ---------------------------------------------------------------------------------------


def answered(survey: Campaign, count: int) -> dict[str, Any]:
    """The answers of people to a survey, as columns."""
    rows = [survey.attribute_values(one) for one in people(count, np.random.default_rng(5))]
    return {"everyone": {name: [row[name] for row in rows] for name in rows[0]}}


def test_every_question_has_results(survey: Campaign) -> None:
    found = results(survey, answered(survey, 4000))
    assert [(r.attributes, r.questions, r.margin_of) for r in found] == [
        (["ills/cough", "ills/asthma"], ["ills"], None),
        (["ills/cough"], ["ills"], ["ills/cough", "ills/asthma"]),
        (["ills/asthma"], ["ills"], ["ills/cough", "ills/asthma"]),
        (["hours"], ["hours"], None),
        (["packs"], ["packs"], None),
    ]
    assert [(r.title, r.option) for r in found] == [
        ("Which of these?", None),
        ("Which of these?", "Cough"),
        ("Which of these?", "Asthma"),
        ("How long do you work?", None),
        ("How many packs?", None),
    ]
    assert [r.unit for r in found] == ["", "", "", "hours", ""]
    table, cough, _, hours, packs = (r.total for r in found)
    assert table and cough and hours and packs
    assert table.reports == table.people == 4000
    assert hours.reports + packs.reports == 4000 and hours.people == packs.people == pytest.approx(4000)
    assert sum(packs.values) == pytest.approx(4000)
    truth = answered(survey, 4000)["everyone"]
    for total, name in ((cough, "ills/cough"), (packs, "packs")):
        counts = [truth[name].count(label) for label in total.labels]
        assert np.all(np.abs(np.array(total.values) - counts) < 4.5 * np.array(total.std_error))
    shares = [row.value for row in packs.display.rows]
    assert sum(shares) == pytest.approx(1)
    assert cough.labels == ["yes", "no", "not asked"], "programs get all of them"
    assert table.display.label_head == "Everything that a person ticked"
    assert [row.label for row in cough.display.rows] == ["Cough"] and cough.display.label_head == "Ticked"
    assert [row.label for row in cough.display.groups[0].rows] == ["Cough"], "among those who were asked"
    assert cough.display.groups[0].title == "Among those who were asked: Which of these?"
    assert hours.display.rows[0].label == "Average per person" and hours.display.numbers == []


def test_few_reports_about_a_drawn_question_are_withheld() -> None:
    """All people are enough; those who were asked about working hours are not."""
    survey = health(smallest_count=700)
    response = campaign_estimates(survey, tallies(survey, answered(survey, 1000)), "auto", 0.95, "open")
    withheld = {tuple(r.attributes): r.cohorts[0].withheld for r in response.results}
    assert withheld == {
        ("ills/cough", "ills/asthma"): False,
        ("ills/cough",): False,
        ("ills/asthma",): False,
        ("hours",): True,
        ("packs",): False,
    }
    (hours,) = (r for r in response.results if r.questions == ["hours"])
    assert hours.total is None and not hasattr(hours.cohorts[0], "values")
    assert "about a question" in response.withheld_because


def test_a_total_that_gives_a_withheld_cohort_by_subtraction_is_withheld() -> None:
    priors = {"north": Prior({"never": 0.7, "daily": 0.3}), "south": Prior({"never": 0.5, "daily": 0.5})}
    forms = {name: Form.of("smokes", design(prior, 1.0, Distribution())) for name, prior in priors.items()}
    campaign = Campaign("Smoking", [SMOKES], forms, smallest_count=10)
    answers = {"north": {"smokes": ["daily"] * 40}, "south": {"smokes": ["never"] * 9}}
    (result,) = results(campaign, answers)
    assert [cohort.withheld for cohort in result.cohorts] == [False, True] and result.total is None


def test_cohorts_that_report_in_different_ways_have_no_total() -> None:
    other = Question("drinks", "Do you drink?", options={"yes": "Yes", "no": "No"})
    smokes, drinks = Prior({"never": 0.7, "daily": 0.3}), Prior({"yes": 0.5, "no": 0.5})
    pair = Prior.joint(
        {(a, b): p * q for a, p in (("never", 0.7), ("daily", 0.3)) for b, q in (("yes", 0.5), ("no", 0.5))},
        names=("smokes", "drinks"),
    )
    parts = [
        Part((name,), design(p, 1.0, Distribution())) for name, p in (("smokes", smokes), ("drinks", drinks))
    ]
    drawn, together = (
        Form((Slot.drawn(parts, [1, 1]),)),
        Form.of(("smokes", "drinks"), design(pair, 1.0, Distribution())),
    )
    campaign = Campaign("Habits", [SMOKES, other], {"a": drawn, "b": together}, smallest_count=1)
    columns = {"smokes": ["daily"] * 30, "drinks": ["no"] * 30}
    found = results(campaign, {"a": columns, "b": columns})
    assert [(r.attributes, r.margin_of is None, [c.cohort for c in r.cohorts], r.total) for r in found] == [
        (["smokes"], True, ["a"], None),
        (["drinks"], True, ["a"], None),
        (["smokes", "drinks"], True, ["b"], None),
        (["smokes"], False, ["b"], None),
        (["drinks"], False, ["b"], None),
    ]


def test_labels_are_in_the_words_of_the_campaign() -> None:
    """Of ranges and of options of "tick all that apply" by group, which have a share for each group and option."""
    questions = [
        Question("age", "How old are you?", options={"young": "Under 40", "old": "40 and over"}),
        Question("ills", "Which of these?", "choices", {"back": "Back pain", "sleep": "Bad sleep"}),
        Question("rooms", "How many rooms?", "number", edges=(0, 2, 5.5)),
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
    found = results(campaign, {"everyone": columns})
    shown = {tuple(r.attributes): r.cohorts[0] for r in found}
    table = shown[names]
    assert "age=old, ills/back=no" in table.labels, "programs get codes, and all of them"
    assert {tuple(row.words) for row in table.display.rows} == {
        (age, ill) for age in ("Under 40", "40 and over") for ill in ("Back pain", "Bad sleep")
    }
    assert {row.label for row in table.display.rows} >= {"40 and over, Back pain"}
    assert [row.label for row in shown[("rooms",)].display.rows] == ["0 to 2", "2 to 5.5"]
    assert shown[("rooms",)].labels == ["[0, 2)", "[2, 5.5]"]
