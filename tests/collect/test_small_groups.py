"""Small groups in tables of several questions are withheld, with everything that would give them by subtraction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from priorveil import Distribution, Linear, Plan, Prior, design
from priorveil.collect.campaign import Campaign
from priorveil.collect.questions import NOT_ASKED, Question
from priorveil.collect.results import AMONG_ASKED, Result, results
from priorveil.collect.small_groups import Group, GroupTable
from priorveil.plans.form import Form, Part, Slot
from priorveil.reading.wording import StatisticTable

LEVELS = {
    "age": ("young", "middle", "old", "oldest"),
    "town": ("A", "B"),
    "smokes": ("never", "often", "daily"),
}


def choice(name: str, **details: Any) -> Question:
    return Question(name, f"{name}?", options={level: level for level in LEVELS[name]}, **details)


def table(names: tuple[str, ...], shares: Mapping[str, tuple[float, ...]]) -> Prior:
    """A joint prior of independent attributes."""
    cells = product(*(zip(LEVELS[name], shares[name], strict=True) for name in names))
    return Prior.joint({tuple(a for a, _ in cell): np.prod([p for _, p in cell]) for cell in cells}, names)


SHARES = {"age": (0.4, 0.35, 0.2, 0.05), "town": (0.6, 0.4), "smokes": (0.6, 0.3, 0.1)}
OTHERS = {"age": (0.1, 0.3, 0.3, 0.3), "town": (0.5, 0.5), "smokes": (0.5, 0.3, 0.2)}


def found(
    campaign: Campaign, priors: Mapping[str, Prior], people: int, method: Any = "auto", seed: int = 1
) -> list[Result]:
    """The results of people whose answers are as common as these priors say, by cohort."""
    rng, tallies = np.random.default_rng(seed), {}
    for cohort, form in campaign.cohorts.items():
        prior = priors[cohort]
        rows = [prior.labels[code] for code in rng.choice(len(prior), people, p=prior.probabilities)]
        columns = dict(zip(form.attributes, map(list, zip(*rows, strict=True)), strict=True))
        tallies[form.id] = form.tallies(form.count(form.privatize(columns, rng=rng)))
    return list(results(campaign, tallies, method))


@cache
def plan_of(prior: Prior) -> Plan:
    return design(prior, 2.0, Distribution())


def campaign_of(names: tuple[str, ...], priors: Mapping[str, Prior], least: int) -> Campaign:
    forms = {cohort: Form.of(names, plan_of(prior)) for cohort, prior in priors.items()}
    return Campaign("Habits", [choice(name) for name in names], forms, smallest_count=least)


def facts(all_results: list[Result]) -> Iterator[tuple[dict[tuple[str, Any], float], bool]]:
    """Each count of a table: the weights of (cohort, cell) in it, and whether it is shown."""
    for result in all_results:
        cohorts = [*result.campaign.cohorts]
        every = result.parts[cohorts[0]][0].plan.prior.labels
        for cohort, figures in (
            ((c, f) for c, f in result.shown()) if len(cohorts) > 1 else [("", result.total)]
        ):
            assert figures is not None
            own = [cohort] if cohort else cohorts
            shown = {label for label, _ in figures.rows(0.95)}
            yield {(c, cell): 1.0 for c in own for cell in every}, True  # the number of people
            for label in figures.estimate.labels:
                parts = label if isinstance(label, tuple) else (label,)
                places = [every_name(result).index(name) for name in result.attributes]
                cells = [cell for cell in every if tuple(cell[place] for place in places) == parts]
                yield {(c, cell): 1.0 for c in own for cell in cells}, label in shown


def every_name(result: Result) -> tuple[str, ...]:
    return result.margin_of or result.attributes


def assert_nothing_follows(all_results: list[Result]) -> int:
    """No withheld count is a combination of the shown ones; returns how many are withheld."""
    rows = list(facts(all_results))
    unknowns = sorted({key for weights, _ in rows for key in weights}, key=str)
    matrix = np.array([[weights.get(key, 0.0) for key in unknowns] for weights, _ in rows])
    shown = np.array([is_shown for _, is_shown in rows])
    rank = np.linalg.matrix_rank(matrix[shown])
    for row in matrix[~shown]:
        assert np.linalg.matrix_rank(np.vstack([matrix[shown], row])) == rank + 1
    return int((~shown).sum())


@pytest.mark.parametrize("names", [("age", "smokes"), ("town", "age"), ("age", "town", "smokes")])
@pytest.mark.parametrize("least", [150, 400, 800])
def test_no_withheld_count_follows_from_shown_ones(names: tuple[str, ...], least: int) -> None:
    priors = {"everyone": table(names, SHARES)}
    everything = found(campaign_of(names, priors, least), priors, 2000)
    withheld = assert_nothing_follows(everything)
    small = everything[0].estimates["everyone"].withheld
    people = dict(zip_groups(everything[0], names))
    assert {group for group, count in people.items() if count < least} <= levels_of(small)
    assert len(small) != 1 and bool(withheld) == bool(small)


def levels_of(groups: Iterable[Group]) -> set[tuple[Any, ...]]:
    """The levels of each group, without the names of the attributes."""
    return {tuple(level for _, level in group) for group in groups}


def zip_groups(result: Result, names: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Each group of a table and the number of its people, from the counts of its cells."""
    estimate = result.estimates["everyone"].estimate
    counts: dict[tuple[Any, ...], float] = {}
    for label, value in zip(estimate.labels, estimate.values.tolist(), strict=True):
        assert isinstance(label, tuple)
        counts[label[:-1]] = counts.get(label[:-1], 0.0) + value
    yield from counts.items()


def test_a_group_that_a_cohort_withholds_is_withheld_in_the_total() -> None:
    names = ("age", "smokes")
    priors = {"north": table(names, SHARES), "south": table(names, OTHERS)}
    everything = found(campaign_of(names, priors, 150), priors, 1500)
    whole = everything[0]
    north, south = (whole.estimates[name].withheld for name in ("north", "south"))
    assert north and north != south and whole.total is not None
    assert whole.total.withheld == north | south
    assert assert_nothing_follows(everything) > 0


def test_every_method_withholds_the_same_groups() -> None:
    names = ("age", "smokes")
    priors = {"everyone": table(names, SHARES)}
    campaign = campaign_of(names, priors, 200)
    groups = [
        found(campaign, priors, 2000, method)[0].estimates["everyone"].withheld
        for method in ("auto", "mmse", "unbiased", "mle")
    ]
    assert groups[0] and len(set(groups)) == 1


def test_answers_to_single_questions_stay() -> None:
    names = ("age", "smokes")
    priors = {"everyone": table(names, SHARES)}
    whole, *margins = found(campaign_of(names, priors, 1990), priors, 2000)
    assert whole.total is not None and not whole.total.rows(0.95) and not whole.total.tables(0.95)[0].rows
    assert [len(margin.total.rows(0.95)) for margin in margins if margin.total] == [4, 3]


def test_shares_within_groups_are_those_of_the_last_question() -> None:
    names = ("age", "smokes")
    priors = {"everyone": table(names, SHARES)}
    whole = found(campaign_of(names, priors, 200), priors, 2000)[0]
    assert whole.total is not None
    small = {group for (group,) in levels_of(whole.total.withheld)}
    assert "oldest" in small and len(small) == 2
    (shares,) = whole.total.tables(0.95)
    assert shares.heads == names and {row.label[0] for row in shares.rows} == set(LEVELS["age"]) - small
    cells = dict(whole.total.rows(0.95))
    for row in shares.rows:
        group = [cells[row.label[0], level].value for level in LEVELS["smokes"]]
        assert row.value == pytest.approx(cells[row.label].value / sum(group))
    text = whole.withheld_text(whole.total)
    assert text is not None and "oldest" in text and "200" in text


def test_an_average_of_a_small_group_is_withheld_with_a_second_one() -> None:
    """The average over everybody and the sizes of the groups would give a single one."""
    ages = dict(zip(LEVELS["age"], SHARES["age"], strict=True))
    prior = Prior.joint(
        {(age, hours): p / 2 for age, p in ages.items() for hours in (0, 40)},
        names=("age", "hours"),
        grids=("hours",),
        outside="ends",
    )
    form = Form.of(("age", "hours"), design(prior, 2.0, Linear.averages(prior, "hours", by="age")))
    campaign = Campaign(
        "Work", [choice("age"), Question("hours", "Hours?", "number", unit="h")], {"everyone": form},
        smallest_count=200,
    )  # fmt: skip
    whole, *margins = found(campaign, {"everyone": prior}, 2000)
    assert (
        whole.total is not None
        and len(whole.total.withheld) == 2
        and ("oldest",) in levels_of(whole.total.withheld)
    )
    assert len(whole.total.rows(0.95)) == 2 and whole.unit == "h"
    for result in (whole, *margins):
        assert result.total is not None
        names = [row.label for t in result.total.tables(0.95) for row in t.rows if t.heads != ("numbers",)]
        assert not names, "no other table tells it"
    record = whole.total.record(0.95)
    assert len(record["labels"]) == len(record["values"]) == len(record["upper"]) == 2
    assert {"age": "oldest"} in record["withheld_groups"]


GATE = Question("smokes", "Do you smoke?", options={"never": "Never", "daily": "Daily"})
AFTER_GATE = {("never", NOT_ASKED): 0.9, ("daily", "A"): 0.06, ("daily", "B"): 0.04}


@pytest.mark.parametrize(("least", "withheld"), [(500, 4), (100, 0)])
def test_a_follow_up_in_a_table_needs_enough_people_who_were_asked(least: int, withheld: int) -> None:
    """Its cells are its own answers; without them nothing else is withheld, however small the group of the gate is."""
    prior = Prior.joint(AFTER_GATE, names=("smokes", "town"), impossible="leave out")
    form = Form.of(("smokes", "town"), plan_of(prior))
    questions = [GATE, choice("town", asked_if={"smokes": ("daily",)})]
    campaign = Campaign("Habits", questions, {"everyone": form}, smallest_count=least)
    whole, gate, town = everything = found(campaign, {"everyone": prior}, 2000)
    assert assert_nothing_follows(everything) == withheld
    assert whole.total and gate.total and town.total and len(gate.total.rows(0.95)) == 2
    shown = [label for label, _ in town.total.rows(0.95)]
    assert shown == ([NOT_ASKED] if withheld else [NOT_ASKED, "A", "B"])
    shares = [row.label for table in whole.total.tables(0.95) for row in table.rows]
    assert (("daily", "A") in shares) == (not withheld)
    assert ('the people who were asked "town?"' in (town.withheld_text(town.total) or "")) == bool(withheld)


def asked_tables(result: Result, cohort: str = "") -> list[StatisticTable]:
    """The shares among the people who were asked."""
    return [table for table in dict(result.shown())[cohort].tables(0.95) if table.quantity == AMONG_ASKED]


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
        campaign = Campaign("Habits", questions, forms, smallest_count=100)
        town = found(campaign, priors, 3000)[-1]
        for cohort, share in truth.items():
            (table,) = asked_tables(town, cohort)
            assert table.heads == ("town",) and [row.label for row in table.rows] == [("A",), ("B",)]
            assert sum(row.value for row in table.rows) == pytest.approx(1.0)
            first, estimate = table.rows[0], dict(town.shown())[cohort].estimate
            ratio = estimate.ratio(["A"], ["A", "B"])
            assert (first.value, first.low, first.high) == (ratio.value, *ratio.interval(0.95))
            assert abs(first.value - share) < 4 * first.std_error
        record = dict(town.shown())[""].record(0.95)
        assert [s["name"] for s in record["statistics"]] == [f"{AMONG_ASKED}, town={t}" for t in "AB"]


def test_a_share_of_those_asked_that_reports_do_not_bound_has_no_ends() -> None:
    prior = Prior({NOT_ASKED: 0.98, "A": 0.01, "B": 0.01})
    form = Form.of(("town",), design(prior, 0.5, Distribution()))
    questions = [GATE, choice("town", asked_if={"smokes": ("daily",)})]
    campaign = Campaign("Habits", questions, {"everyone": form}, smallest_count=1)
    tallies = {
        form.id: form.tallies(
            form.count(form.privatize({"town": [NOT_ASKED] * 99 + ["A"]}, rng=np.random.default_rng(3)))
        )
    }
    (town,) = results(campaign, tallies)
    (shares,) = asked_tables(town)
    assert all(row.is_unbounded and row.interval_text == "not bounded" for row in shares.rows)


@pytest.mark.parametrize("method", ["auto", "mmse", "unbiased", "mle"])
def test_a_follow_up_that_few_were_asked_is_withheld(method: Any) -> None:
    """By cohort and in total; how many were not asked stays, and so does the question before it."""
    shares = {"north": (0.9, 0.06, 0.04), "south": (0.4, 0.3, 0.3)}
    priors, forms = {}, {}
    for cohort, (no, a, b) in shares.items():
        cells = {("never", NOT_ASKED): no, ("daily", "A"): a, ("daily", "B"): b}
        priors[cohort] = Prior.joint(cells, names=("smokes", "town"), impossible="leave out")
        single = {
            "smokes": Prior({"never": no, "daily": a + b}),
            "town": Prior({NOT_ASKED: no, "A": a, "B": b}),
        }
        parts = [Part((name,), plan_of(prior)) for name, prior in single.items()]
        forms[cohort] = Form(tuple(Slot((part,)) for part in parts))
    questions = [GATE, choice("town", asked_if={"smokes": ("daily",)})]
    campaign = Campaign("Habits", questions, forms, smallest_count=500)
    gate, town = found(campaign, priors, 2000, method)
    rows = {cohort: [label for label, _ in figures.rows(0.95)] for cohort, figures in town.shown()}
    assert rows == {"north": [NOT_ASKED], "south": [NOT_ASKED, "A", "B"], "": [NOT_ASKED]}
    assert all(len(figures.rows(0.95)) == 2 for _, figures in gate.shown())
    assert [len(asked_tables(town, cohort)) for cohort in ("north", "south", "")] == [0, 1, 0]
    record = dict(town.shown())["north"].record(0.95)
    assert record["labels"] == [NOT_ASKED] and record["withheld_groups"] == [{"town": None}]
    assert len(record["values"]) == len(record["lower"]) == 1


def test_options_that_few_could_tick_are_withheld() -> None:
    """One report about the set: every option is withheld, and the number of people who were not asked stays."""
    ticks = ("yes", "no")
    cells = {(NOT_ASKED, NOT_ASKED): 0.9, **{both: 0.025 for both in product(ticks, ticks)}}
    names = ("why/pay", "why/boss")
    prior = Prior.joint(cells, names=names, impossible="leave out")
    form = Form(
        (
            Slot((Part(("smokes",), design(Prior({"never": 0.9, "daily": 0.1}), 2.0, Distribution())),)),
            Slot((Part(names, design(prior, 2.0, Linear.margins(prior, names, unbiased=True))),)),
        )
    )
    options = {"pay": "Pay", "boss": "My boss"}
    why = Question("why", "Why?", "choices", options, asked_if={"smokes": ("daily",)})
    campaign = Campaign("Habits", [GATE, why], {"everyone": form}, smallest_count=500)
    both = Prior.joint(
        {("never" if NOT_ASKED in cell else "daily", *cell): p for cell, p in cells.items()},
        names=("smokes", *names),
        impossible="leave out",
    )
    _, options_together, *single = found(campaign, {"everyone": both}, 2000)
    for result in (options_together, *single):
        assert result.total is not None
        shown = [str(label) for label, _ in result.total.rows(0.95)]
        assert shown and all(NOT_ASKED in label for label in shown)
    assert options_together.total is not None
    text = options_together.withheld_text(options_together.total)
    assert text is not None and text.count('the people who were asked "Why?"') == 1


def test_without_a_promise_nothing_is_withheld() -> None:
    names = ("age", "smokes")
    plan = plan_of(table(names, SHARES))
    estimate = plan.estimate(plan.tally(plan.privatize([("young", "daily")] * 50)))
    groups = GroupTable(estimate, {name: name for name in names})
    for least in (0, 1):
        assert groups.small_groups(least) == frozenset()
        assert groups.expected_small_groups(3, least) == []
    assert len(groups.small_groups(10_000)) == len(LEVELS["age"])


def test_the_prior_says_which_groups_should_be_small() -> None:
    names = ("age", "smokes")
    plan = plan_of(table(names, SHARES))
    groups = GroupTable(plan.estimate(plan.tally([])), {name: name for name in names})
    assert levels_of(groups.expected_small_groups(1000, 100)) == {("oldest",)}
    assert levels_of(groups.expected_small_groups(1000, 250)) == {("oldest",), ("old",)}


def test_tables_among_the_margins_of_one_report_have_groups() -> None:
    """One report about three questions, designed for one of them alone and for a table of the others."""
    names = ("age", "town", "smokes")
    prior = table(names, SHARES)
    query = Linear.margins(prior, [("age", "smokes"), ("town",)], unbiased=True)
    form = Form.of(names, design(prior, 2.0, query, rounds=20, progress=False))
    campaign = Campaign("Habits", [choice(name) for name in names], {"everyone": form}, smallest_count=200)
    whole, *margins = found(campaign, {"everyone": prior}, 2000)
    assert whole.total is not None and len(margins) == 3
    small = levels_of(whole.total.withheld)
    shown = {str(label) for label, _ in whole.total.rows(0.95)}
    assert ("oldest",) in small and len(small) == 2 and {"town=A", "town=B"} < shown
    expected = {f"age={a}, smokes={s}" for a in LEVELS["age"] if (a,) not in small for s in LEVELS["smokes"]}
    assert shown == expected | {"town=A", "town=B"}
