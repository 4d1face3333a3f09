"""Several attributes, some of them numbers: rounded exactly, within the group; the ledger and campaigns know it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from priorveil.errors import InvalidInput, InvalidPrior, OutsideDomain, PlanError
from priorveil.mechanisms.randomness import BytesSource
from priorveil.priors.domain import MISSING, OUTSIDE
from priorveil.priors.joint import Joint, read_domain
from priorveil.priors.number_domains import Cells, Grid
from priorveil.questions.campaign import ask
from priorveil.tables import privatize_table
from refusals import raises
from strategies import channels, generators

AGES = ("under 30", "30 or more")
POINTS = [0.0, 10.0, 40.0]
CELLS = {(age, hours): 1 / 6 for age in AGES for hours in POINTS}
NAMES = ("age", "overtime")


def joint(**options: Any) -> pv.Prior:
    return pv.Prior.joint(CELLS, NAMES, grids=("overtime",), **options)


def fair_words(count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.random.default_rng(3).integers(0, 2**64, count, dtype=np.uint64)


def test_the_domain_knows_its_attributes() -> None:
    domain = joint().domain
    assert domain.rounds and domain.refuses_numbers and domain.names == NAMES
    assert domain.attributes["overtime"] == Grid(POINTS) and domain.levels["age"] == AGES
    assert domain.labels[:2] == (("under 30", 0.0), ("under 30", 10.0))
    assert not pv.Prior.joint(CELLS, NAMES).domain.rounds, "numbers that are labels are not rounded"
    assert not joint(outside="ends").domain.refuses_numbers


@given(st.sampled_from(AGES), st.floats(0, 40))
def test_a_number_is_rounded_within_its_group_with_exactly_the_probability_that_keeps_its_mean(
    age: str, number: float
) -> None:
    domain = joint().domain
    at = min(int(np.searchsorted(POINTS, number, side="right")) - 1, 1)
    low, high = POINTS[at], POINTS[at + 1]
    chance = (Fraction(number) - Fraction(low)) / (Fraction(high) - Fraction(low))
    first = int(chance * 2**64)
    for word, point in ((first - 1, high), (first + 1, low)):
        if 0 <= word < 2**64:
            source = BytesSource(word.to_bytes(8, "little"))
            (code,) = domain.encode([[age], [number]], source.words)
            assert domain.labels[code] == (age, point) and source.used == 8


def test_a_group_rounds_between_its_own_points() -> None:
    cells = {cell: 1 / 5 for cell in CELLS if cell != ("30 or more", 10.0)}
    prior = pv.Prior.joint(cells, NAMES, grids=("overtime",), impossible="leave out")
    codes = prior.domain.encode([[AGES[1]] * 4_000, [10.0] * 4_000], fair_words)
    drawn = [prior.labels[code] for code in codes]
    assert set(drawn) == {("30 or more", 0.0), ("30 or more", 40.0)}
    assert abs(np.mean([hours for _, hours in drawn]) - 10.0) < 4 * np.sqrt(300 / 4_000)
    assert {prior.labels[c][1] for c in prior.domain.encode([[AGES[0]] * 9, [10.0] * 9], fair_words)} == {
        10.0
    }


@pytest.mark.parametrize("left_out", [("under 30", 0.0), ("30 or more", 40.0)])
def test_a_group_that_lacks_an_end_cannot_round(left_out: tuple[str, float]) -> None:
    cells = {cell: 1 / 5 for cell in CELLS if cell != left_out}
    with pytest.raises(InvalidPrior) as caught:
        pv.Prior.joint(cells, NAMES, grids=("overtime",), impossible="leave out")
    assert caught.value.value == left_out[:1]


def test_two_numbers_need_all_their_combinations() -> None:
    cells = {(x, y): 1 / 8 for x in POINTS for y in POINTS if (x, y) != (10.0, 10.0)}
    with pytest.raises(InvalidPrior):
        pv.Prior.joint(cells, ("x", "y"), grids=("x", "y"), impossible="leave out")
    even = {(x, y): 1 / 9 for x in POINTS for y in POINTS}
    domain = pv.Prior.joint(even, ("x", "y"), grids=("x", "y")).domain
    source = BytesSource(bytes(16))
    assert domain.labels[domain.encode([[5], [20]], source.words)[0]] == (10.0, 40.0) and source.used == 16


@pytest.mark.parametrize("number", [0, 10, 12.5, "12.5", 40])
def test_the_number_of_words_does_not_depend_on_the_value(number: object) -> None:
    plan = pv.design(joint(), 1.0, pv.Histogram())
    source = BytesSource(bytes(range(7, 39)))
    plan.privatize(("under 30", number), source)
    assert source.used == 8 * (1 + plan.mechanism.draws_per_report)


def test_missing_and_foreign_levels() -> None:
    domain = joint().domain
    rows = [
        ("under 30", 12.5),
        ("under 30", None),
        (None, 1),
        ("old", 1),
        ("under 30", 41),
        ("under 30", "x"),
        None,
        7,
    ]
    codes = domain.encode(domain.columns(rows), fair_words)
    assert codes[0] >= 0
    assert codes[1:].tolist() == [MISSING, MISSING, OUTSIDE, OUTSIDE, OUTSIDE, MISSING, OUTSIDE]
    plan = pv.design(joint(), 1.0, pv.Histogram())
    with pytest.raises(OutsideDomain) as caught:
        plan.privatize([("under 30", 12.5), ("under 30", 7391.5)])
    assert caught.value.row == 1 and "7391" not in str(caught.value)


@pytest.mark.parametrize("kind", ["mapping", "pandas", "arrow", "tuples"])
def test_columns_and_tuples_give_the_same_reports(kind: str) -> None:
    plan = pv.design(joint(), 1.0, pv.Histogram())
    table = {"overtime": [12.5, 0.0, 40.0, 7.0], "age": [AGES[0], AGES[1], AGES[1], AGES[0]]}
    values: Any = {
        "mapping": lambda: table,
        "pandas": lambda: pd.DataFrame(table),
        "arrow": lambda: pa.table(table),
        "tuples": lambda: list(zip(table["age"], table["overtime"], strict=True)),
    }[kind]()
    expected = plan.privatize(table, np.random.default_rng(2)).tolist()
    assert plan.privatize(values, np.random.default_rng(2)).tolist() == expected
    if kind != "tuples":
        made = privatize_table(values, plan, ["age", "overtime"], rng=np.random.default_rng(2), ids=False)
        assert made.table["report"].to_pylist() == expected


def test_tables_say_why_a_tuple_is_refused() -> None:
    plan = pv.design(joint(), 1.0, pv.Histogram())
    table = {
        "age": ["under 30", "Under 30", "?", "under 30", "under 30"],
        "overtime": ["1", "1", "1", "x", "99"],
    }
    refused = privatize_table(table, plan, ["age", "overtime"]).refused.rows
    reasons = ["another spelling of a value", "outside the domain", "not a number", "outside the domain"]
    assert refused == tuple(enumerate(reasons, 1))


@given(st.data())
@settings(max_examples=40)
def test_the_certificate_holds_for_the_tuple_itself(data: st.DataObject) -> None:
    """For every law of (group, number) with the prior's probabilities after rounding, one report leaks no more."""
    rng = data.draw(generators)
    people = [(age, x) for age in AGES for x in (*POINTS, *rng.uniform(0, 40, 4))]
    law = rng.dirichlet(np.full(len(people), 0.5)) * 0.99 + 0.01 / len(people)
    law /= law.sum()
    grid = Grid(POINTS)
    rounding = np.zeros((len(people), 6))
    for row, (age, x) in enumerate(people):
        rounding[row, 3 * AGES.index(age) : 3 * AGES.index(age) + 3] = grid.masses(np.array([x]), np.ones(1))
    prior = pv.Prior(law @ rounding / (law @ rounding).sum(), joint().domain)
    channel = data.draw(channels(6))
    stated = pv.leakage(channel.matrix, prior)
    real = pv.leakage(pv.Channel(rounding @ channel.matrix), pv.Prior(law / law.sum()))
    for name in ("lip_lower", "lip_upper", "ldp"):
        assert getattr(real, name) <= getattr(stated, name) + 1e-9


def test_the_ledger_bounds_reports_of_rounded_tuples() -> None:
    """The joint channel of the grid would understate them."""
    rounded, plain = joint(), pv.Prior.joint(CELLS, NAMES)
    for prior, exact in ((rounded, False), (plain, True)):
        plan = pv.design(prior, 0.5, pv.Histogram())
        ledger = pv.Ledger(prior)
        ledger.spend(plan)
        together = ledger.would(plan)
        assert (together.lip < together.ldp) is exact
    assert ledger.level.lip <= 0.5


def test_a_campaign_counts_numbers_at_the_ends() -> None:
    with pytest.raises(InvalidInput) as caught:
        ask("How long do you work?", joint())
    assert [hint.argument for hint in caught.value.hints] == ["outside='ends' in the prior"]
    campaign = ask("How long do you work?", joint(outside="ends"))
    (part,) = campaign.form_for(None).parts
    assert part.plan.domain == joint(outside="ends").domain


def test_the_mean_of_a_group_is_kept() -> None:
    domain = joint().domain
    numbers = np.random.default_rng(4).gamma(2, 6, 60_000).clip(0, 40)
    codes = domain.encode([[AGES[1]] * 60_000, numbers], fair_words)
    rounded = np.array([domain.labels[code][1] for code in codes])
    assert abs(rounded.mean() - numbers.mean()) < 4 * 15 / np.sqrt(60_000)


def test_cells_beside_a_group() -> None:
    edges = [0, 18, 65]
    mass = {("a", 0): 0.2, ("a", "[18, 65]"): 0.3, ("b", 5.5): 0.1, ("b", 18): 0.4}
    prior = pv.Prior.joint(mass, ("town", "years"), cells={"years": edges})
    assert prior.labels == (("a", "[0, 18)"), ("a", "[18, 65]"), ("b", "[0, 18)"), ("b", "[18, 65]"))
    assert prior.domain.attributes["years"] == Cells(edges) and not prior.domain.rounds
    assert prior.domain.encode([["b", "a", "a"], [18, "17.9", 66]], fair_words).tolist() == [3, 0, OUTSIDE]
    with pytest.raises(InvalidPrior):
        pv.Prior.joint({("a", 0): 0.5, ("a", 1): 0.5}, ("town", "years"), cells={"years": edges})


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = pv.design(joint(outside="ends"), 1.0, pv.Distribution())
    plan.save(tmp_path / "plan.json")
    again = pv.Plan.load(tmp_path / "plan.json")
    assert again == plan and again.domain == plan.domain
    assert read_domain(plan.domain.document()) == plan.domain
    document = json.loads(plan.to_json())
    for change in (
        lambda d: d["cells"].pop(),
        lambda d: d["cells"][0].__setitem__(1, 7),
        lambda d: d["cells"][0].__setitem__(1, -1),
        lambda d: d["attributes"][0]["levels"].reverse(),
        lambda d: d["attributes"][1].update(name="age"),
    ):
        forged = json.loads(json.dumps(document))
        change(forged["labels"])
        with pytest.raises(PlanError):
            pv.Plan.from_json(json.dumps(forged))


def test_a_value_outside_the_domain_is_never_rounded_into_it() -> None:
    cells = {(a, b, x): 1 / 4 for a, b in (("u", "v"), ("w", "z")) for x in (0, 1)}
    prior = pv.Prior.joint(cells, ("a", "b", "x"), grids=("x",), impossible="leave out")
    columns = [["u", "u", "w", "q"], ["v", "z", "v", "v"], [0.5] * 4]
    codes = prior.domain.encode(columns, fair_words)
    assert codes[0] >= 0 and codes[1:].tolist() == [OUTSIDE] * 3
    assert prior.domain.reasons(columns).tolist()[1:3] == ["a combination that the plan leaves out"] * 2


def test_the_order_of_cells_may_differ() -> None:
    prior = joint()
    turned = prior.align_to(tuple(reversed(prior.labels)))
    assert turned.labels == tuple(reversed(prior.labels)) and turned.domain.rounds
    assert isinstance(turned.domain, Joint)


# -- from a table ------------------------------------------------------------------------------------------------


def people(count: int = 4_000) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {"age": rng.choice(AGES, count).tolist(), "overtime": rng.uniform(0, 40, count)}


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pa.table])
def test_a_table_of_people_gives_the_shares_after_rounding(frame: Any) -> None:
    table = people()
    prior = pv.Prior.from_table(frame(table), NAMES, grids={"overtime": POINTS})
    ages, numbers = np.array(table["age"]), table["overtime"]
    expected = [
        Grid(POINTS).masses(n, np.ones(len(n))) for n in (numbers[ages == age] for age in sorted(AGES))
    ]
    assert prior.domain.rounds and prior.labels[0] == ("30 or more", 0.0)
    assert prior.probabilities == pytest.approx(np.concatenate(expected) / 4_000, rel=0.06)


def test_a_table_with_cells_or_with_numbers_that_are_points() -> None:
    table = people()
    prior = pv.Prior.from_table(table, NAMES, cells={"overtime": [0, 20, 40]})
    assert prior.labels[0] == ("30 or more", "[0, 20)") and len(prior) == 4
    table["overtime"] = np.round(table["overtime"] / 20) * 20
    named = pv.Prior.from_table(table, NAMES, grids=("overtime",))
    assert named.levels["overtime"] == (0.0, 20.0, 40.0)


def test_what_a_table_may_not_publish() -> None:
    table = people(100)
    with pytest.raises(InvalidInput):  # rare cells
        pv.Prior.from_table(table, NAMES, grids={"overtime": np.linspace(0, 40, 21)})
    with pytest.raises(InvalidInput):  # people's own numbers
        pv.Prior.from_table(people(3_000), NAMES, grids=("overtime",))
    for wrong in (41.0, None, "7391b", float("nan")):
        table["overtime"] = [*[1.0] * 99, wrong]
        with pytest.raises(InvalidInput) as caught:
            pv.Prior.from_table(table, NAMES, grids={"overtime": POINTS})
        assert caught.value.argument == "overtime[99]" and "7391" not in str(caught.value)
    with pytest.raises(InvalidInput):
        pv.Prior.from_table(people(), "overtime", grids={"overtime": POINTS})
    with pytest.raises(InvalidInput) as caught:  # noise needs whole counts
        pv.Prior.from_table(people(), NAMES, grids={"overtime": POINTS}, prior_epsilon=1.0)
    assert caught.value.argument == "prior_epsilon"
    for smoothing in (0, -1, float("nan")):
        with raises(InvalidInput, argument="smoothing"):
            pv.Prior.from_table(people(), NAMES, grids={"overtime": POINTS}, smoothing=smoothing)


def test_cumulative_shares_are_not_read_from_rounded_tuples() -> None:
    with pytest.raises(InvalidInput) as caught:
        pv.Linear.cumulative(joint())
    assert [hint.argument for hint in caught.value.hints] == ["Prior.cells"]
