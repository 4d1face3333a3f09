"""The result document: tables with shares within groups, shares of the people who were asked, and what is withheld."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import msgspec
import numpy as np
import pytest

from priorveil import Distribution, Linear, Plan, Prior, design
from priorveil.errors import InvalidInput, ResultWithheld
from priorveil.plans.form import Form, Part, Slot
from priorveil.questions.campaign import Campaign
from priorveil.questions.choices import SingleChoice
from priorveil.questions.question import NOT_ASKED, Question
from priorveil.reading.tally import Tally
from priorveil.results.document import Finding, Result, ResultTable
from priorveil.results.findings import View, result_of
from priorveil.results.form_estimates import CohortForms, Estimates, estimate_forms
from priorveil.results.lines import statistic_lines
from refusals import raises

LEVELS = {
    "age": ("young", "middle", "old", "oldest"),
    "town": ("A", "B"),
    "smokes": ("never", "often", "daily"),
}


def choice(name: str, **details: Any) -> Question:
    return SingleChoice(name, f"{name}?", options={level: level for level in LEVELS[name]}, **details)


def table(names: tuple[str, ...], shares: Mapping[str, tuple[float, ...]]) -> Prior:
    """A joint prior of independent attributes."""
    cells = product(*(zip(LEVELS[name], shares[name], strict=True) for name in names))
    return Prior.joint({tuple(a for a, _ in cell): np.prod([p for _, p in cell]) for cell in cells}, names)


SHARES = {"age": (0.4, 0.35, 0.2, 0.05), "town": (0.6, 0.4), "smokes": (0.6, 0.3, 0.1)}


def estimated(
    campaign: Campaign, priors: Mapping[str, Prior], people: int, method: Any = "auto", seed: int = 1
) -> Estimates:
    """The estimates of people whose answers are as common as these priors say, by cohort."""
    rng, tallies = np.random.default_rng(seed), {}
    for cohort, form in campaign.cohorts.items():
        prior = priors[cohort]
        rows = [prior.labels[code] for code in rng.choice(len(prior), people, p=prior.probabilities)]
        columns = dict(zip(form.attributes, map(list, zip(*rows, strict=True)), strict=True))
        tallies[cohort, None] = form.tallies(form.count(form.privatize(columns, rng=rng)))
    return estimate_forms(CohortForms.of(campaign), tallies, method=method)


def tables(finding: Finding, kind: str) -> list[ResultTable]:
    """The tables of one kind."""
    assert finding.figures is not None
    return [table for table in finding.figures.tables if table.kind == kind]


@cache
def plan_of(prior: Prior) -> Plan:
    return design(prior, 2.0, Distribution(), rounds=5)  # any plan will do


def campaign_of(names: tuple[str, ...], priors: Mapping[str, Prior], least: int) -> Campaign:
    forms = {cohort: Form.of(names, plan_of(prior)) for cohort, prior in priors.items()}
    return Campaign("Habits", [choice(name) for name in names], forms, smallest_count=least)


def test_shares_within_groups_are_those_of_the_last_question_however_small_a_group() -> None:
    names = ("age", "smokes")
    priors = {"everyone": table(names, SHARES)}
    whole, *margins = result_of(estimated(campaign_of(names, priors, 1990), priors, 2000)).findings
    (counts,), (shares,) = tables(whole, "people"), tables(whole, "share within")
    assert len(counts.rows) == 12 and counts.attributes == shares.attributes == names
    assert [len(own.rows) for margin in margins for own in tables(margin, "people")] == [4, 3]
    assert all(margin.margin_of == names and not tables(margin, "share within") for margin in margins)
    assert (shares.by, shares.of) == (("age",), "smokes")
    assert {row.label[0] for row in shares.rows} == set(LEVELS["age"])
    cells = {row.label: row.value for row in counts.rows}
    for row in shares.rows:
        group = [cells[row.label[0], level] for level in LEVELS["smokes"]]
        assert row.value == pytest.approx(cells[row.label] / sum(group))


def test_a_margin_that_is_the_answer_is_not_repeated() -> None:
    prior = table(("age", "town"), SHARES)
    plan = design(prior, 2.0, Linear.margins(prior, ["age", ("age", "town")], unbiased=True))
    tallies = {(None, None): tally_of(plan, [*prior.labels] * 100)}
    asked, town = result_of(estimate_forms(CohortForms.of(plan), tallies)).findings
    assert [one.attributes for one in tables(asked, "people")] == [("age",), ("age", "town")]
    assert (town.attributes, town.margin_of) == (("town",), ("age", "town"))


GATE = SingleChoice("smokes", "Do you smoke?", options={"never": "Never", "daily": "Daily"})


def test_the_shares_of_those_who_were_asked_a_follow_up_are_shown() -> None:
    """By cohort and in total, alone and in a table with its gate; they are Fieller's ratios, and near the truth."""
    shares = {"north": (0.6, 0.1, 0.3), "south": (0.3, 0.6, 0.1)}
    cells = {
        cohort: {("never", NOT_ASKED): no, ("daily", "A"): a, ("daily", "B"): b}
        for cohort, (no, a, b) in shares.items()
    }
    priors = {
        cohort: Prior.joint(own, names=("smokes", "town"), impossible="leave out")
        for cohort, own in cells.items()
    }
    alone = {}
    for cohort, (no, a, b) in shares.items():
        single = {
            "smokes": Prior({"never": no, "daily": a + b}),
            "town": Prior({NOT_ASKED: no, "A": a, "B": b}),
        }
        parts = [Part((name,), plan_of(prior)) for name, prior in single.items()]
        alone[cohort] = Form(tuple(Slot((part,)) for part in parts))
    together = {cohort: Form.of(("smokes", "town"), plan_of(prior)) for cohort, prior in priors.items()}
    questions = [GATE, choice("town", asked_if={"smokes": ("daily",)})]
    truth = {"north": 0.25, "south": 6 / 7, "": 0.7 / 1.1}
    for forms in (alone, together):
        campaign = Campaign("Habits", questions, forms, smallest_count=2000)
        estimates = estimated(campaign, priors, 3000)
        part = estimates.parts[-1]
        town = part if part.attributes == ("town",) else part.margin("town")
        about_town = [found for found in result_of(estimates).findings if found.attributes == ("town",)]
        assert [found.cohort for found in about_town] == ["north", "south", ""]
        for found in about_town:
            (asked,) = tables(found, "share among")
            assert asked.attributes == ("town",) and [row.label for row in asked.rows] == [("A",), ("B",)]
            assert sum(row.value or 0 for row in asked.rows) == pytest.approx(1.0)
            first = asked.rows[0]
            ratio = {"": town.everybody, **town.cohorts}[found.cohort].ratio(["A"], ["A", "B"])
            assert (first.value, first.low, first.high) == (ratio.value, *ratio.interval(0.95))
            assert abs(ratio.value - truth[found.cohort]) < 4 * ratio.std_error


def test_a_share_of_those_asked_that_reports_do_not_bound_has_no_ends() -> None:
    prior = Prior({NOT_ASKED: 0.98, "A": 0.01, "B": 0.01})
    form = Form.of(("town",), design(prior, 0.5, Distribution()))
    questions = [GATE, choice("town", asked_if={"smokes": ("daily",)})]
    campaign = Campaign("Habits", questions, {"everyone": form}, smallest_count=1)
    columns = {"town": [NOT_ASKED] * 99 + ["A"]}
    tallies = form.tallies(form.count(form.privatize(columns, rng=np.random.default_rng(3))))
    estimates = estimate_forms(CohortForms.of(campaign), {("everyone", None): tallies})
    (shares,) = tables(result_of(estimates).findings[0], "share among")
    assert all((row.low, row.high) == (row.least, row.most) == (None, None) for row in shares.rows)


# -- a plan, and plans by cohort, with groups -----------------------------------------------------------------


def tally_of(plan: Plan, values: Sequence[Any], seed: int = 1) -> tuple[Tally]:
    return (plan.tally(plan.privatize(values, np.random.default_rng(seed))),)


def test_a_plan_used_alone_is_a_form_with_one_part() -> None:
    plan = plan_of(Prior({"yes": 0.3, "no": 0.7}))
    tallies = tally_of(plan, ["yes"] * 40 + ["no"] * 60)
    estimates = estimate_forms(CohortForms.of(plan), {(None, None): tallies})
    assert estimates.everybody.values.tolist() == plan.estimate(tallies[0]).values.tolist()
    result = result_of(estimates, View(0.9))
    (found,) = result.findings
    assert (result.id, result.reports, found.reports) == (plan.id, 100, 100)
    assert (found.attributes, found.cohort, found.group, found.precision) == (
        ("value",),
        "",
        "",
        plan.precision,
    )
    (counts,) = tables(found, "people")
    assert [row.value for row in counts.rows] == estimates.everybody.values.tolist()
    assert [(row.low, row.high) for row in counts.rows] == list(
        zip(*map(list, estimates.everybody.interval(0.9)), strict=True)
    )
    content = msgspec.json.encode(result)
    assert msgspec.json.encode(msgspec.json.decode(content, type=Result)) == content


class CountedScans(dict[Any, Any]):
    """A dictionary that counts how often all its entries are gone through."""

    scans = 0

    def __iter__(self) -> Iterator[Any]:
        self.scans += 1
        return super().__iter__()

    def items(self) -> Any:
        self.scans += 1
        return super().items()


def test_more_groups_do_not_need_more_scans_of_all_tallies() -> None:
    plan = plan_of(Prior({"a": 0.3, "b": 0.7}))
    scans = []
    for groups in (1, 20):
        tallies = CountedScans({(None, group): tally_of(plan, ["a", "b"], 1) for group in range(groups)})
        estimates = estimate_forms(CohortForms.of(plan), tallies, by="town")
        assert estimates.only.reports == 2 * groups == 2 * len(estimates.groups)
        scans.append(tallies.scans)
    assert scans[0] == scans[1]


def test_every_group_has_its_finding_and_a_cohort_is_in_all_of_them() -> None:
    plans = {"north": plan_of(Prior({"a": 0.3, "b": 0.7})), "south": plan_of(Prior({"b": 0.5, "a": 0.5}))}
    groups = (("Ames", 30), (None, 70), (float("nan"), 10))
    tallies = {
        (cohort, group): tally_of(plan, ["a"] * n + ["b"] * 50, n)
        for cohort, plan in plans.items()
        for group, n in groups
    }
    estimates = estimate_forms(CohortForms.of(plans), tallies, by="town")
    findings = result_of(estimates).findings
    assert [found.group for found in findings] == ["Ames", "nan", None, ""]
    lines = statistic_lines(result_of(estimates))
    assert list(dict.fromkeys(line["group"] for line in lines)) == ["Ames", "nan", "(missing)", ""]
    assert [found.reports for found in findings] == [160, 120, 240, 520]
    assert all(found.cohort == "" and found.precision is None for found in findings)
    alone = {cohort: plan.estimate(tallies[cohort, "Ames"][0]) for cohort, plan in plans.items()}
    assert estimates.groups["Ames"].labels == ("a", "b")
    assert estimates.groups["Ames"].values == pytest.approx(
        alone["north"].values + alone["south"].values[[1, 0]]
    )
    cohorts = result_of(estimate_forms(CohortForms.of(plans), tallies)).findings
    assert [(found.cohort, found.reports) for found in cohorts] == [("north", 260), ("south", 260), ("", 520)]
    given = estimate_forms(CohortForms.of(plans), tallies, method="mmse", prior=[0.6, 0.4])
    assert (
        given.everybody.readings[1].prior.probabilities[given.everybody.readings[1].labels.index("a")] == 0.6
    )


def test_a_margin_and_shares_within_groups_stand_in_place_of_the_whole_table() -> None:
    names = ("age", "town", "smokes")
    plan = plan_of(table(names, SHARES))
    values = {name: [LEVELS[name][n % len(LEVELS[name])] for n in range(600)] for name in names}
    tally = plan.tally(plan.privatize(values, np.random.default_rng(5)))
    estimates = estimate_forms(CohortForms.of(plan), {(None, None): (tally,)})
    (found,) = result_of(estimates, View(margin=("smokes",), within=("age",))).findings
    assert (found.attributes, found.margin_of) == (("age", "smokes"), names)
    (counts,), (shares,) = tables(found, "people"), tables(found, "share within")
    margin = plan.estimate(tally).margin("age", "smokes")
    assert [row.value for row in counts.rows] == margin.values.tolist()
    assert shares.attributes == ("age", "smokes") and len(shares.rows) == 12
    with raises(InvalidInput, argument="within"):
        result_of(estimates, View(margin=("age",), within=("age",)))


def test_a_margin_chooses_a_question_that_is_reported_alone() -> None:
    smokes, town = (Prior(dict(zip(LEVELS[name], SHARES[name], strict=True))) for name in ("smokes", "town"))
    parts = (Part(("smokes",), plan_of(smokes)), Part(("town",), plan_of(town)))
    form = Form(tuple(Slot((part,)) for part in parts))
    campaign = Campaign("Habits", [choice("smokes"), choice("town")], {"everyone": form}, smallest_count=1)
    words = form.privatize({"smokes": ["never"] * 50, "town": ["A"] * 50}, rng=np.random.default_rng(5))
    own = {("everyone", None): form.tallies(form.count(words))}
    estimates = estimate_forms(CohortForms.of(campaign), own)
    _, whole = result_of(estimates).findings
    assert result_of(estimates, View(margin=("town",))).findings == (whole,)


def test_a_plan_for_margins_has_averages_by_group_too() -> None:
    cells = {(age, hours): 1 / 6 for age in ("young", "old") for hours in (0.0, 20.0, 40.0)}
    prior = Prior.joint(cells, ("age", "hours"), grids=("hours",))
    plan = design(prior, 2.0, Linear.margins(prior, [("age",)], unbiased=True), rounds=3)
    estimates = estimate_forms(CohortForms.of(plan), {(None, None): tally_of(plan, [*cells] * 50)})
    (averages,) = tables(result_of(estimates).findings[0], "average")
    expected = estimates.everybody.mean("hours", by="age")
    assert (averages.by, averages.of) == (("age",), "hours")
    assert [row.value for row in averages.rows] == pytest.approx(expected.values)


def test_no_group_is_taken_for_everybody() -> None:
    plan = plan_of(Prior({"a": 0.3, "b": 0.7}))
    own = {(None, group): tally_of(plan, ["a"] * n) for group, n in (("", 2), (None, 3), ("A", 5))}
    findings = result_of(estimate_forms(CohortForms.of(plan), own, by="town")).findings
    people = {found.group: found.reports for found in findings}
    assert people == {"(empty)": 2, None: 3, "A": 5, "": 10}


def test_what_is_withheld_cannot_be_read_or_subtracted() -> None:
    priors = {"north": Prior({"never": 0.7, "daily": 0.3}), "south": Prior({"never": 0.5, "daily": 0.5})}
    forms = {name: Form.of("smokes", plan_of(prior)) for name, prior in priors.items()}
    campaign = Campaign("Smoking", [GATE], forms, smallest_count=10)
    own = {
        name: tally_of(form.parts[0].plan, ["daily"] * n)
        for (name, form), n in zip(forms.items(), (40, 9), strict=True)
    }
    estimates = estimate_forms(CohortForms.of(campaign), {(name, None): tally for name, tally in own.items()})
    withheld = {found.cohort: found.withheld for found in result_of(estimates).findings}
    assert withheld == {"north": None, "south": "few reports", "": "a part is withheld"}
    assert list(estimates.only.cohorts) == ["north"]
    with pytest.raises(ResultWithheld):
        _ = estimates.everybody
    by_town = {(name, "Graz"): tally for name, tally in own.items()}
    groups = result_of(estimate_forms(CohortForms.of(campaign), by_town, by="town")).findings
    assert [found.withheld for found in groups] == ["a part is withheld"] * 2, "groups would add up to it"
    alone = replace(campaign, cohorts={"north": forms["north"]})
    plan = forms["north"].parts[0].plan
    by_town = {("north", town): tally_of(plan, ["daily"] * n) for town, n in (("Graz", 40), ("Linz", 9))}
    groups = result_of(estimate_forms(CohortForms.of(alone), by_town, by="town")).findings
    assert [found.withheld for found in groups] == [None, "few reports", "a part is withheld"]


def reached(plan: Plan, values: Sequence[Any], method: Any = "auto", confidence: float = 0.95) -> str:
    estimates = estimate_forms(CohortForms.of(plan), {(None, None): tally_of(plan, values)}, method=method)
    figures = result_of(estimates, View(confidence)).findings[0].figures
    assert figures is not None and figures.half_width is not None
    estimate = estimates.everybody
    if estimate.averages is None:
        ends = np.array(estimate.interval(confidence)) - estimate.values
        assert figures.half_width == pytest.approx(np.abs(ends).max() / len(values))
    return str(figures.reached)


def test_the_precision_that_was_reached() -> None:
    prior = Prior({"a": 0.3, "b": 0.7})
    plan = plan_of(prior)
    known = r"With these 100 reports every share is known to ±[0-9.]+ points or better \(95 %\)\."
    assert re.fullmatch(known, reached(plan, ["a"] * 30 + ["b"] * 70))
    leaning = (
        r"With this 1 report every share among these people is known to ±[0-9.]+ points or better \(50 %\), "
        r"if the prior is right\."
    )
    assert re.fullmatch(leaning, reached(plan, ["a"], "mmse", 0.5))


def test_the_precision_of_averages_reaches_both_ends_of_their_intervals() -> None:
    shares = {(age, hours): 0.1 for age in ("young", "old") for hours in (0, 10, 20, 30, 40)}
    prior = Prior.joint(shares, ("age", "hours"), grids=("hours",), outside="ends")
    plan = design(prior, 1.0, Linear.averages(prior, "hours", ["age"]))
    tallies = tally_of(plan, [("young", 0.0), ("old", 40.0)] * 200)
    estimates = estimate_forms(CohortForms.of(plan), {(None, None): tallies})
    averages = estimates.everybody.averages
    assert averages is not None
    low, high = averages.interval(0.95)
    below, above = averages.values - low, high - averages.values
    assert np.max(np.abs(below - above)) > 0.05 * np.max(below + above)  # the intervals lean to one side
    figures = result_of(estimates).findings[0].figures
    assert figures is not None and figures.half_width == max(*below, *above)
    assert float(str(figures.reached).partition("±")[2].split()[0]) >= figures.half_width


def test_an_average_without_ends_is_written_as_precisely_as_its_error() -> None:
    shares = {(age, hours): 0.1 for age in ("young", "old") for hours in (0, 10, 20, 30, 40)}
    prior = Prior.joint(shares, ("age", "hours"), grids=("hours",), outside="ends")
    plan = design(prior, 1.0, Linear.averages(prior, "hours", ["age"]))
    tallies = tally_of(plan, [("young", 0.0), ("old", 40.0)] * 3)
    estimates = estimate_forms(CohortForms.of(plan), {(None, None): tallies})
    (averages,) = tables(result_of(estimates).findings[0], "average")
    errors = [row.std_error for row in averages.rows if row.low is None and row.std_error is not None]
    decimals = [row.decimals for row in averages.rows if row.low is None and row.std_error is not None]
    assert errors and min(errors) > 5, "the first digit of each error is at least that of ones"
    assert decimals == [0] * len(errors)
