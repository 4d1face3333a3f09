"""Priors of numbers: random rounding that keeps the mean exactly, cells, and the certificate for the number itself."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import priorveil as pv
from priorveil.designs.means import design_mean
from priorveil.errors import InvalidInput, InvalidPrior, OutsideDomain, PlanError
from priorveil.mechanisms.randomness import BytesSource, GeneratorSource, SystemSource
from priorveil.priors.domain import MISSING, OUTSIDE, Codes, Domain, Missing
from priorveil.priors.number_domains import Cells, Grid
from refusals import raises
from strategies import channels, generators

POINTS = [0.0, 0.1, 3.0, 1e6]
bounds = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6, unique=True).map(sorted)


def threshold(x: float, low: float, high: float) -> tuple[int, int]:
    """The two first words of the exact probability of rounding up."""
    chance = (Fraction(x) - Fraction(low)) / (Fraction(high) - Fraction(low))
    both = int(chance * 2**128)
    return both >> 64, both & (2**64 - 1)


def codes_of(values: object, domain: Domain, missing: Missing = "refuse") -> tuple[Codes, object]:
    return domain.encode_or_refuse(values, SystemSource().words, missing)


def code(domain: Grid, x: float, *words: int) -> int:
    source = BytesSource(b"".join(word.to_bytes(8, "little") for word in words))
    drawn = domain.encode([np.array([x])], source.words)
    assert source.used == 8 * len(words), "exactly these words are drawn"
    return int(drawn[0])


@given(bounds, st.floats(0, 1))
def test_rounding_up_has_exactly_the_probability_that_keeps_the_mean(
    points: list[float], share: float
) -> None:
    """The draw changes at the word that is the floor of `2**64 (x - low) / (high - low)`, computed in fractions."""
    labels, x = Grid(points), points[0] + share * (points[1] - points[0])
    assume(points[0] < x < points[1])
    first, second = threshold(x, *points[:2])
    assert first == 0 or code(labels, x, first - 1) == 1
    assert first == 2**64 - 1 or code(labels, x, first + 1) == 0
    chance = (Fraction(x) - Fraction(points[0])) / (Fraction(points[1]) - Fraction(points[0]))
    if (chance * 2**64).denominator == 1:
        assert code(labels, x, first) == 0
    elif 0 < second < 2**64 - 1:  # a tie: the next word decides
        assert code(labels, x, first, second - 1) == 1
        assert code(labels, x, first, second + 1) == 0


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1])
def test_a_number_on_a_point_stays_there_whatever_is_drawn(word: int) -> None:
    labels = Grid(POINTS)
    assert [code(labels, x, word) for x in POINTS] == [0, 1, 2, 3]


def test_the_mean_is_kept() -> None:
    rng = np.random.default_rng(5)
    labels, x = Grid([0, 10, 100]), 37.0
    up = labels.encode([np.full(100_000, x)], GeneratorSource(rng).words) == 2
    assert abs(up.mean() - 0.3) < 4 * np.sqrt(0.21 / 100_000)


def test_the_number_of_words_does_not_depend_on_the_value() -> None:
    plan = pv.design(pv.Prior.grid([0, 10, 100], [0.3, 0.4, 0.3]), 1.0, pv.Histogram())
    used = set()
    for x in (0.0, 1.0, 10, 99.9, 100.0):
        source = BytesSource(bytes(range(7, 39)))
        plan.privatize(x, source)
        used.add(source.used)
    assert used == {8 * (1 + plan.mechanism.draws_per_report)}


def test_a_cell_holds_its_lower_edge_and_the_last_one_both() -> None:
    prior = pv.Prior.cells([0, 1, 2.5], [0.5, 0.5])
    assert prior.domain == Cells([0, 1, 2.5])
    assert tuple(prior.labels) == ("[0, 1)", "[1, 2.5]")
    assert codes_of([0, 0.999, 1, 2, 2.5], prior.domain)[0].tolist() == [0, 0, 1, 1, 1]
    assert prior.edges is not None and prior.edges.tolist() == [0, 1, 2.5] and prior.points is None


@pytest.mark.parametrize(
    "values", [[0, 1], np.array([0, 1]), [Decimal(0), 1.0], np.array([0, 1], dtype=np.uint8)]
)
def test_an_integer_is_a_number_and_not_a_code(values: object) -> None:
    prior = pv.Prior.cells([-5, 0, 0.5, 3], [0.2, 0.3, 0.5])
    assert codes_of(values, prior.domain)[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    "far", [100.5, -0.5, pytest.param(10**400, id="beyond floats"), float("inf"), -float("inf")]
)
def test_a_number_outside_the_range_is_refused_or_counted_at_the_end(far: float) -> None:
    refusing, counting = (pv.Prior.grid([0, 10, 100], [0.2, 0.3, 0.5], outside=o) for o in ("refuse", "ends"))
    with pytest.raises(OutsideDomain) as caught:
        codes_of([5, far], refusing.domain)
    assert caught.value.row == 1 and str(far) not in str(caught.value)
    assert codes_of([far], counting.domain)[0].tolist() == [2 if far > 0 else 0]
    assert refusing != counting


def test_a_gap_stays_a_gap_and_text_is_no_number() -> None:
    domain = pv.Prior.grid([0, 10], [0.5, 0.5], outside="ends").domain
    codes, absent = codes_of([10, None, float("nan")], domain, "pass")
    assert codes.tolist() == [1, 0, 0] and np.asarray(absent).tolist() == [False, True, True]
    for secret in ("7391b", True, object()):
        with pytest.raises(OutsideDomain) as caught:
            codes_of([3, secret], domain)
        assert caught.value.row == 1 and "7391" not in str(caught.value)
    assert codes_of([" 1e1", "10", "-7"], domain)[0].tolist() == [1, 1, 0], (
        "a text that reads as a number is one"
    )
    with raises(InvalidInput, argument="values[1]", hint="missing"):
        codes_of(np.array([1.0, np.nan]), domain)
    codes = Grid([0, 1]).encode([np.array([np.nan, 2.0])], SystemSource().words)
    assert codes.tolist() == [MISSING, OUTSIDE]


@given(st.data())
@settings(max_examples=60)
def test_the_certificate_holds_for_the_number_itself(data: st.DataObject) -> None:
    """For every prior of the number with the grid's probabilities after rounding, one report leaks no more."""
    points = data.draw(bounds)
    assume(np.diff(points).min() > 1e-3)
    labels, rng = Grid(points), data.draw(generators)
    numbers = np.concatenate([points, rng.uniform(points[0], points[-1], 8)])
    weights = rng.dirichlet(np.full(len(numbers), 0.3)) * 0.999 + 0.001 / len(numbers)
    grid = pv.Prior(labels.masses(numbers, weights), labels)
    channel = data.draw(channels(len(grid)))
    rounding = np.array([labels.masses(np.array([x]), np.ones(1)) for x in numbers])
    real = pv.Channel(rounding @ channel.matrix)
    stated, leaked = pv.leakage(channel, grid), pv.leakage(real, pv.Prior(weights / weights.sum()))
    for name in ("lip_lower", "lip_upper", "ldp"):
        assert getattr(leaked, name) <= getattr(stated, name) + 1e-9


def test_a_density_and_a_sample_give_the_shares_after_rounding() -> None:
    flat = pv.Prior.grid([0, 1, 4], lambda x: 3.0)
    assert flat.probabilities == pytest.approx([0.125, 0.5, 0.375])
    assert pv.Prior.cells([0, 1, 4], lambda x: 3.0).probabilities == pytest.approx([0.25, 0.75])
    exponential = pv.Prior.cells([0, 1, 2], lambda x: float(np.exp(-x)))
    assert exponential.probabilities[1] == pytest.approx(1 / (1 + np.e), rel=1e-12)
    sample = pv.Prior.grid([0, 10, 20], sample=[0, 5, 10, 12.5])
    assert sample.probabilities == pytest.approx([1.5 / 4, 2.25 / 4, 0.25 / 4])
    assert pv.Prior.cells(
        [0, 10, 20], sample=iter([0, 5, 10, 99]), outside="ends"
    ).probabilities.tolist() == [0.5, 0.5]


def test_a_sample_is_a_list_of_people_not_of_distinct_numbers() -> None:
    for counts in ({0.5: 30, 1.5: 70}, {0.5, 1.5}):
        for make in (pv.Prior.grid, pv.Prior.cells):
            with raises(InvalidInput, argument="sample"):
                make([0, 1, 2], sample=counts)
        with raises(InvalidInput, argument="sample"):
            design_mean(0, 2, 1.0, sample=counts)


def test_smoothing_adds_to_every_count_of_a_sample() -> None:
    ages = pv.Prior.grid([0, 10, 20, 30], sample=[0, 5, 10], smoothing=0.5)
    assert ages.probabilities.tolist() == [0.4, 0.4, 0.1, 0.1] and ages.points is not None
    assert pv.Prior.cells([0, 1, 2], sample=[0.5], smoothing=1).weights == (2, 1)
    with raises(InvalidInput, argument="smoothing"):
        pv.Prior.cells([0, 1, 2], sample=[0.5], smoothing=0)


def test_what_makes_no_prior_of_numbers_is_refused() -> None:
    for points in ([1], [0, 0], [2, 1], [0, np.nan], [0, 1e200], ["a", "b"], [[0, 1], [2, 3]]):
        with raises(InvalidInput, argument="points"):
            pv.Prior.grid(points, [0.5, 0.5])  # type: ignore[arg-type]
    with raises(InvalidInput, argument="probabilities"):
        pv.Prior.grid([0, 1], [0.5, 0.5], sample=[0.5])
    with raises(InvalidInput, argument="smoothing"):
        pv.Prior.grid([0, 1], smoothing=1)
    with raises(InvalidInput, argument="outside"):
        pv.Prior.cells([0, 1, 2], [0.5, 0.5], outside="drop")  # type: ignore[arg-type]
    with raises(InvalidInput, argument="sample[1]", hint="outside") as caught:
        pv.Prior.grid([0, 1], sample=[0.5, 77.0])
    assert "77" not in str(caught.value)
    for outside in ("refuse", "ends"):
        with raises(InvalidInput, argument="sample[1]"):
            pv.Prior.grid([0, 1], sample=[0.5, np.nan, 7.0], outside=outside)  # type: ignore[arg-type]
    for wrong in (["secret"], [[0.1, 0.2]], 3, "secret", [10**400]):
        with raises(InvalidInput, argument="sample") as caught:
            pv.Prior.cells([0, 1, 2], sample=wrong)  # type: ignore[arg-type]
        assert caught.value.__cause__ is None
    with raises(InvalidPrior, argument="probabilities", hint="smoothing"):
        pv.Prior.cells([0, 1, 2], sample=[0.5])
    with raises(InvalidPrior, argument="probabilities"):
        pv.Prior.grid([0, 1, 2, 3], lambda x: float(x < 1))
    with raises(InvalidInput, argument="smoothing"):
        pv.Prior.grid([0, 1], [0.5, 0.5], smoothing=1)
    for make, probabilities in (
        (pv.Prior.grid, [0.5, 0.5]),
        (pv.Prior.cells, [1.0]),
        (pv.Prior.grid, 7),
    ):
        with raises(InvalidPrior, argument="probabilities"):
            make([0, 1, 2], probabilities)  # type: ignore[arg-type]


@pytest.mark.parametrize("height", [-0.5, float("nan"), float("inf")])
def test_a_density_is_finite_and_not_negative(height: float) -> None:
    """Also where the mass of every cell is positive all the same."""
    for make in (pv.Prior.grid, pv.Prior.cells):
        with raises(InvalidPrior, argument="probabilities"):
            make([0, 1, 2], lambda x: height if 1.4 < x < 1.5 else 7.0)


@pytest.mark.parametrize(
    "prior",
    [
        pv.Prior.grid([-1, 0.1, 7], [0.2, 0.3, 0.5], outside="ends"),
        pv.Prior.cells([0, 0.1, 1e30], [0.4, 0.6]),
    ],
)
def test_plans_of_numbers_survive_their_file(prior: pv.Prior) -> None:
    plan = pv.design(prior, 1.0, pv.Histogram())
    again = pv.Plan.from_json(plan.to_json())
    assert again == plan and again.domain == plan.domain == pickle.loads(pickle.dumps(plan.domain))
    assert pv.design(pv.PriorSet.ball(prior, 0.01), 1.0, pv.Histogram()).domain == prior.domain
    reports = [p.privatize([0.05, 0.7, 7], np.random.default_rng(3)).tolist() for p in (plan, again)]
    assert reports[0] == reports[1]
    plain = pv.Prior(prior.probabilities, range(len(prior)))
    assert prior != plain and pv.design(plain, 1.0, pv.Histogram()).id != plan.id


@pytest.mark.parametrize(
    "labels", [{"kind": "grid", "points": ["1", "0"], "outside": "ends"}, {"kind": "line"}, {}]
)
def test_a_file_with_unsound_numbers_names_its_labels(labels: dict[str, object]) -> None:
    plan = pv.design(pv.Prior.grid([0, 1], [0.5, 0.5]), 1.0, pv.Histogram())
    with raises(PlanError, field="labels"):
        pv.Plan.from_json(json.dumps({**json.loads(plan.to_json()), "labels": labels}))
