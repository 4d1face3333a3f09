"""What published totals tell of one person: never below the truth, and the figures of an independent computation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from priorveil import LDP, Distribution, Histogram, Plan, Prior, Secret, design
from priorveil.certify import TOTAL
from priorveil.errors import InvalidInput
from priorveil.mechanisms import Grouped, Table
from priorveil.statistics.published_totals import (
    ColumnPair,
    LipPair,
    column_pairs,
    delta_bound,
    totals_delta,
    totals_level,
)
from references.totals import (
    DRAWN_CHANNEL,
    DRAWN_DELTAS,
    README_LEVELS,
    RESPONSE_LEVELS,
    blanket_delta,
    lip_delta,
    mmse_share_by_enumeration,
    random_rows,
    tally_law,
    true_delta,
)
from refusals import raises

Rows = npt.NDArray[np.int64]
TEN = TOTAL // 1024  # of channels with entries in 1/1024


def bound(rows: Rows, people: int, factor: float) -> float:
    """The bound of the library for a table whose rows add up to `2**62`."""
    pairs = column_pairs(rows)
    assert pairs is not None
    return max(delta_bound(pair.law(factor), people) for pair in pairs)


def response(values: int, epsilon: float) -> Rows:
    """Randomised response with this LDP level."""
    other = int(TOTAL / (math.exp(epsilon) + values - 1))
    return np.full((values, values), other) + (TOTAL - values * other) * np.eye(values, dtype=np.int64)


def plan_of(rows: Rows) -> Plan:
    """A plan that runs these rows."""
    return Plan.of(Table(rows), Prior.uniform(len(rows)), Histogram())


def readme_plan() -> Plan:
    prior = Prior({"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07})
    return design(prior, 1.0, Distribution())


# -- never below the truth -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_is_never_below_the_truth_on_enumerated_channels(seed: int) -> None:
    """A hundred channels for each seed, about a third with zeros: all values of everybody, in fractions."""
    rng = np.random.default_rng(7000 + seed)
    ratios = []
    for number in range(100):
        rows, people = random_rows(rng, 1024), 2 + number % 3
        factor = Fraction(int(rng.integers(16, 45)), 16)  # exact in floats
        found, truth = bound(rows * TEN, people, float(factor)), true_delta(rows.tolist(), people, factor)
        assert Fraction(found) >= truth, (rows.tolist(), people, factor)
        if truth > 0:
            ratios.append(found / float(truth))
    assert np.median(ratios) < 1.1


@pytest.mark.parametrize("seed", range(4))
def test_rounding_is_enclosed_and_small(seed: int) -> None:
    """The bound is the formula in fractions, or slightly more."""
    rng = np.random.default_rng(7100 + seed)
    for number in range(25):
        rows, people = random_rows(rng, 64), 1 + number % 4
        factor = Fraction(int(rng.integers(16, 45)), 16)
        found = bound(rows * (TOTAL // 64), people, float(factor))
        formula = min(blanket_delta(rows.tolist(), people, factor), Fraction(1))
        assert formula <= Fraction(found), (rows.tolist(), people, factor)
        if (rows > 0).all():
            assert found <= float(formula) * (1 + 1e-4) + 1e-7


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("factor", [1.0, 1 + 2.0**-20, 1.5, 20.0, 1e4])
def test_tiny_probabilities_are_enclosed_without_a_warning(factor: float) -> None:
    rng = np.random.default_rng(7300)
    for number in range(12):
        shares = np.exp(rng.normal(0, 8, (2, 3)))
        shares /= shares.sum(axis=1, keepdims=True)
        rows = np.floor(shares * 2.0**61).astype(np.int64)
        rows[[0, 1], shares.argmax(axis=1)] += TOTAL - rows.sum(axis=1)
        formula = blanket_delta(rows.tolist(), 1 + number % 3, Fraction(factor))
        found = bound(rows, 1 + number % 3, factor)
        assert min(formula, Fraction(1)) <= Fraction(found) <= formula * Fraction(11, 10) + Fraction(1, 10**9)
        level = Plan.of(Table(rows), Prior([0.5, 0.5]), Histogram()).totals_level(10 ** (number % 4), 1e-9)
        assert 0 <= level < math.inf


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_from_lip_levels_is_never_below_the_truth(seed: int) -> None:
    rng = np.random.default_rng(7200 + seed)
    for number in range(50):
        rows, people = random_rows(rng, 1024), 2 + number % 3
        rows = rows[:, rows.min(axis=0) > 0]
        if rows.shape[1] < 2:
            continue
        rows[:, 0] += 1024 - rows.sum(axis=1)
        weights = rng.integers(1, 9, len(rows))
        drawn = [Fraction(int(n), 1024 * int(weights.sum())) for n in weights @ rows]
        lifts = [Fraction(int(q), 1024) / share for row in rows for q, share in zip(row, drawn, strict=True)]
        lowest, highest = min(lifts), max(lifts)
        factor = Fraction(int(rng.integers(16, 45)), 16)
        pair = LipPair(math.nextafter(float(lowest), 0.0), math.nextafter(float(highest), math.inf))
        found = delta_bound(pair.law(float(factor)), people)
        assert Fraction(found) >= true_delta(rows.tolist(), people, factor)
        if highest > lowest and factor < highest / lowest:
            formula = min(lip_delta(lowest, highest, people, factor), Fraction(1))
            assert formula <= Fraction(found) <= formula * Fraction(1001, 1000) + Fraction(1, 10**7)


@pytest.mark.parametrize("density", [1, 4, 24])
def test_many_people_are_enclosed_too(density: int) -> None:
    """Randomised response on two values and 700 people: a sum over binomials, without rounding that matters."""
    rows, people, factor = response(2, 1.0), 700, 1.17
    low, high = sorted(int(q) / TOTAL for q in rows[0])
    gain, loss = (high - factor * low) / low, (factor * high - low) / low
    total, log_low = 0.0, math.log(2 * low)
    for hidden in range(1, people + 1):
        chance = math.lgamma(people + 1) - math.lgamma(hidden + 1) - math.lgamma(people - hidden + 1)
        chance += hidden * log_low + (people - hidden) * math.log1p(-2 * low) - hidden * math.log(2)
        ups = np.arange(math.floor(hidden * loss / (gain + loss)) + 1, hidden + 1)
        logs = [math.lgamma(hidden + 1) - math.lgamma(k + 1) - math.lgamma(hidden - k + 1) for k in ups]
        total += float(np.exp(chance + np.array(logs)) @ (ups * gain - (hidden - ups) * loss))
    truth, pairs = total / people, column_pairs(rows)
    assert pairs is not None
    found = max(delta_bound(pair.law(factor), people, density) for pair in pairs)
    assert truth * (1 - 1e-9) <= found <= truth * {1: 2.0, 4: 1.05, 24: 1.002}[density]


# -- known figures ---------------------------------------------------------------------------------------------


def test_randomised_response_of_two_people_is_exact() -> None:
    fifth = TOTAL // 5
    rows = np.full((3, 3), fifth) + (TOTAL - 3 * fifth) * np.eye(3, dtype=np.int64)
    assert bound(rows, 2, 14 / 5) == pytest.approx(3 / 125, rel=1e-7)
    small = [[3, 1, 1], [1, 3, 1], [1, 1, 3]]
    assert (
        blanket_delta(small, 2, Fraction(14, 5)) == true_delta(small, 2, Fraction(14, 5)) == Fraction(3, 125)
    )


@pytest.mark.parametrize("people", [1, 2, 5, 1_000])
def test_columns_with_a_zero_count_in_full(people: int) -> None:
    """Mangat's device: a carrier always says yes. Without the column of no it would be .595."""
    rows = np.array([[TOTAL, 0], [3 * (TOTAL // 10), TOTAL - 3 * (TOTAL // 10)]])
    assert bound(rows, people, math.exp(0.3)) == pytest.approx(0.7, abs=1e-9)
    levels = Table(rows).lifts(Prior([0.2, 0.8]), None, LDP())
    assert levels.ldp is None


@pytest.mark.parametrize(("people", "delta"), DRAWN_DELTAS)
def test_people_who_are_draws_of_the_prior_hide_behind_the_law_of_reports(people: int, delta: float) -> None:
    prior = [Fraction(5, 10), Fraction(3, 10), Fraction(2, 10)]
    drawn = [
        sum((p * Fraction(row[y], 10) for p, row in zip(prior, DRAWN_CHANNEL, strict=True)), Fraction(0))
        for y in range(3)
    ]
    factor = Fraction(math.exp(0.3))
    assert float(blanket_delta(DRAWN_CHANNEL, people, factor, drawn)) == pytest.approx(delta, abs=5e-8)
    rows = np.array([[round(TOTAL * Fraction(q, 10)) for q in row] for row in DRAWN_CHANNEL])
    blanket = np.array([round(TOTAL * share) for share in drawn])
    found = max(
        delta_bound(ColumnPair.of(first, second, blanket).law(math.exp(0.3)), people)
        for first in rows
        for second in rows
    )
    assert delta - 5e-8 <= found <= delta + 2e-7
    assert found <= bound(rows, people, math.exp(0.3))


@pytest.mark.parametrize(("values", "epsilon", "people", "delta", "level"), RESPONSE_LEVELS)
def test_levels_of_randomised_response(
    values: int, epsilon: float, people: int, delta: float, level: float
) -> None:
    assert level - 5e-6 <= plan_of(response(values, epsilon)).totals_level(people, delta) <= level * 1.0005


@pytest.mark.parametrize(("people", "delta", "level", "of_any"), README_LEVELS)
def test_levels_of_the_plan_of_the_readme(people: int, delta: float, level: float, of_any: float) -> None:
    plan = readme_plan()
    found = plan.totals_level(people, delta)
    assert found == pytest.approx(level, rel=2e-3)
    assert totals_delta(plan.mechanism, plan.certificate, people, found) <= delta
    assert totals_delta(plan.mechanism, plan.certificate, people, 0.999 * found) > delta
    certificate: Any = plan.certificate
    pair = LipPair.of(certificate.lip_lower, certificate.lip_upper)
    assert delta_bound(pair.law(math.exp(1.01 * of_any)), people) < delta
    assert delta_bound(pair.law(math.exp(0.99 * of_any)), people) > delta


# -- laws --------------------------------------------------------------------------------------------------------


def test_more_people_hide_better_up_to_a_hundred_million() -> None:
    plan = plan_of(response(3, 1.5))
    levels = [plan.totals_level(people) for people in (1, 30, 100, 1_000, 100_000)]
    assert levels[0] <= plan.certificate.ldp
    assert all(more < fewer for fewer, more in pairwise(levels))
    assert bound(response(2, 1.0), 10**8, 1.001) == bound(response(2, 1.0), 10**12, 1.001) < 1e-6


def test_a_mechanism_without_columns_is_bounded_by_its_lip_level() -> None:
    prior = Prior(np.full(40, 1 / 40))
    plan = design(prior, 1.0, Histogram(), method="unary")
    assert plan.mechanism.integer_rows is None
    found = plan.totals_level(10_000)
    pair = LipPair.of(plan.certificate.lip_lower, plan.certificate.lip_upper)
    assert delta_bound(pair.law(math.exp(found)), 10_000) <= 1e-6
    assert 0 < found < plan.certificate.ldp


def test_values_with_the_same_row_count_once() -> None:
    rows = response(2, 1.0)
    both = column_pairs(np.repeat(rows, 50, axis=0))
    alone = column_pairs(rows)
    assert both is not None and alone is not None and len(both) == len(alone)
    many = np.random.default_rng(5).integers(1, 9, (100, 3))
    assert column_pairs(many) is None, "too many pairs"


def test_the_rows_of_groups_count_once() -> None:
    prior = Prior({"none": 0.9, **dict.fromkeys("abcdefghij", 0.01)})
    pair = Table(response(2, 1.0))
    plan = Plan.of(Grouped(np.array([0] + [1] * 10), pair), prior, Histogram())
    assert plan.totals_level(5_000) == plan_of(response(2, 1.0)).totals_level(5_000)


def test_reports_that_show_the_value_are_outside_the_blanket() -> None:
    assert bound(np.eye(3, dtype=np.int64) * TOTAL, 100, 2.0) == 1


def test_a_channel_that_tells_nothing_has_level_zero_and_a_revealing_one_has_none() -> None:
    flat = Table(np.full((2, 2), TOTAL // 2))
    nothing = design(Prior([0.5, 0.5]), 1.0, Histogram()).certificate
    half: Any = type(nothing)("LIP", 0.0, 0.0, 0.0, 0.0)
    assert totals_level(flat, half, 10, 1e-6) == 0 == totals_delta(flat, half, 10, 0.0)
    open_ended: Any = type(nothing)("LDP", math.inf, 1.0, math.inf, math.inf)
    rows = np.array([[TOTAL, 0], [TOTAL // 2, TOTAL // 2]])
    assert totals_level(Table(rows), open_ended, 10**6, 1e-6) == math.inf


def test_the_belief_about_one_of_them_moves_to_the_mmse_share() -> None:
    """Enumerated: the average of the lifts of all reports is the lift of the tally, for people drawn from the prior."""
    rows, prior = [[6, 2], [3, 5], [1, 7]], [Fraction(5, 10), Fraction(3, 10), Fraction(2, 10)]
    plan = Plan.of(np.array(rows) / 8, Prior([0.5, 0.3, 0.2]), Histogram())
    for counts, beliefs in mmse_share_by_enumeration(rows, prior, 4):
        reports = np.repeat(np.arange(2), counts)
        shares = plan.estimate(plan.tally(reports), method="mmse").proportions
        assert shares == pytest.approx(np.array(beliefs, dtype=float), abs=1e-12)
    assert sum(tally_law(rows, [0, 1]).values()) == 64


def test_wrong_arguments_are_refused() -> None:
    plan = plan_of(response(2, 1.0))
    with raises(InvalidInput, argument="people"):
        plan.totals_level(0)
    with raises(InvalidInput, argument="delta"):
        plan.totals_level(10, 0.0)
    hidden = design(Prior([0.5, 0.5]), 0.5, Histogram(), secret=Secret([[0.55, 0.45], [0.45, 0.55]]))
    with raises(InvalidInput, argument="plan"):
        hidden.totals_level(10)
