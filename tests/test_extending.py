"""Mechanisms, notions and queries of users: designed, certified, run, read, and written to files that read back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jsonschema
import numpy as np
import pytest

import priorveil as pv
from priorveil.certify import TOTAL, Lifts, lifts, round_rows
from priorveil.errors import (
    CertificateError,
    ForeignReport,
    InvalidChannel,
    InvalidInput,
    NotIdentifiable,
    PlanError,
    PriorveilError,
)
from priorveil.mechanisms import Mechanism, NumberedReports, Table, TabledReports
from priorveil.notions import ComparedRows
from priorveil.plans import schema
from priorveil.reading.families import reader_of
from priorveil.reading.numbered_reader import NumberedReader
from refusals import raises

PRIOR = pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2})
CHANNEL = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
QUERIES = [pv.Histogram(), pv.Sum(range(3)), pv.Guess(), pv.Distribution()]
NOTIONS = [pv.LIP(), pv.LDP(), pv.DI(), pv.Pufferfish(), pv.PairwiseLDP([[0, 1, 2], [1, 0, 1], [2, 1, 0]])]


class RolledRows(TabledReports):
    """The value, moved around a circle by a random number of steps."""

    def __init__(self, steps: list[int]) -> None:
        self.steps = steps
        self.weights = np.array([np.roll(steps, x) for x in range(len(steps))])

    def parameters(self) -> dict[str, Any]:
        return {"steps": [str(weight) for weight in self.steps]}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> RolledRows:
        return cls([int(weight) for weight in parameters["steps"]])


class HalfTruth(NumberedReports):
    """The value if a bit is set, and otherwise a value that further bits draw: with a sampler and lifts of its own."""

    draws_per_report = 2

    def __init__(self, bits: int) -> None:
        self.bits = bits

    @property
    def size(self) -> int:
        return 1 << self.bits

    @property
    def outputs(self) -> int:
        return self.size

    @property
    def matrix(self) -> np.ndarray:
        return np.eye(self.size) / 2 + 0.5 / self.size

    def draw(self, codes: Any, words: Any, reports: Any, total: int) -> None:
        drawn = (words[:, 1] >> np.uint64(64 - self.bits)).astype(np.int64)
        reports[:] = np.where(words[:, 0] >> np.uint64(63), codes, drawn)

    def lifts(self, prior: Any, secret: Any, notion: pv.Cone) -> Lifts:
        return lifts(np.eye(self.size, dtype=np.int64) * self.size + 1, prior, secret, notion)

    def parameters(self) -> dict[str, Any]:
        return {"bits": self.bits}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> HalfTruth:
        return cls(int(parameters["bits"]))


class HalfTruthReader(NumberedReader[HalfTruth]):
    """Reads the reports of `HalfTruth`."""

    reads = HalfTruth


def steps(*shares: float) -> list[int]:
    return round_rows(np.array([shares]))[0].tolist()


CIRCLE = RolledRows(steps(0.6, 0.3, 0.1))
HALF_TRUTH_PRIOR = pv.Prior([0.4, 0.3, 0.2, 0.1])


# -- mechanisms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda notion: notion.name)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
def test_an_own_mechanism_is_certified_as_a_table_is(query: pv.Query, notion: pv.Cone) -> None:
    plan = pv.Plan.of(CIRCLE, PRIOR, query, notion=notion)
    table = pv.Plan.of(Table(CIRCLE.weights), PRIOR, query, notion=notion)
    assert plan.certificate == table.certificate and plan.expected_mse == table.expected_mse
    again = pv.Plan.from_json(plan.to_json())
    assert again == plan and type(again.mechanism) is RolledRows
    jsonschema.Draft202012Validator(schema()).validate(json.loads(plan.to_json()))


@pytest.mark.parametrize(
    ("mechanism", "prior"),
    [(CIRCLE, PRIOR), (HalfTruth(2), HALF_TRUTH_PRIOR)],
    ids=["table", "own draw and lifts"],
)
def test_an_own_mechanism_is_run_and_read(mechanism: Mechanism, prior: pv.Prior) -> None:
    """The distribution of 20,000 people is read within five standard errors, by either method; the seed is fixed."""
    plan, rng = pv.Plan.of(mechanism, prior, pv.Distribution()), np.random.default_rng(1)
    values = rng.choice(len(prior), 20_000, p=prior.probabilities)
    reports = plan.privatize(values, rng, codes=True)
    estimate = plan.estimate(plan.tally(reports))
    errors = (estimate.proportions - prior.probabilities) / (estimate.std_error / 20_000)
    assert np.abs(errors).max() < 5 and estimate.prior_check is not None and estimate.prior_check > 1e-4
    with raises(ForeignReport):
        plan.tally([len(prior)])


def test_the_reader_of_a_mechanism_is_that_of_its_nearest_class() -> None:
    assert type(reader_of(CIRCLE)) is NumberedReader
    assert type(reader_of(HalfTruth(3))) is HalfTruthReader


def test_a_mechanism_without_a_reader_says_so() -> None:
    class Unread(HalfTruth, NumberedReports):
        """Its bases have readers; taken out below, it has none."""

    mechanism = Unread(2)
    kept = dict(NumberedReader.by_mechanism)
    NumberedReader.by_mechanism.clear()
    try:
        with raises(InvalidInput, argument="mechanism"):
            reader_of(mechanism)
    finally:
        NumberedReader.by_mechanism.update(kept)


def test_rounded_lifts_certify_nothing() -> None:
    class Rounded(HalfTruth):
        def lifts(self, prior: Any, secret: Any, notion: pv.Cone) -> Lifts:
            return Lifts(0.5, 2.0, 4.0, 4.0)  # type: ignore[arg-type]

    with raises(CertificateError):
        pv.Plan.of(Rounded(2), HALF_TRUTH_PRIOR, pv.Histogram())
    assert Lifts(Fraction(1, 2), Fraction(2), None).ratio is None


def test_what_is_drawn_from_is_what_was_certified() -> None:
    """Even if somebody changes the array of weights afterwards."""
    plan = pv.Plan.of(RolledRows(steps(0.4, 0.3, 0.3)), PRIOR, pv.Histogram())
    plan.mechanism.weights[:] = np.eye(3, dtype=np.int64) * TOTAL  # type: ignore[attr-defined]
    reports = plan.privatize(["a"] * 300, np.random.default_rng(1))
    assert len(set(reports.tolist())) == 3 and plan.channel.matrix.max() < 0.5
    assert plan.mechanism.lifts(PRIOR, None, pv.LIP()).highest < 2


def test_a_mechanism_may_be_a_dataclass_of_arrays() -> None:
    """Its equality and hash, which are those of arrays, are not used."""

    @dataclass(frozen=True)
    class Rows(TabledReports):
        weights: np.ndarray

        def parameters(self) -> dict[str, Any]:
            return {"weights": [[str(weight) for weight in row] for row in self.weights.tolist()]}

        @classmethod
        def read(cls, parameters: Mapping[str, Any]) -> Rows:
            return cls(np.array([[int(weight) for weight in row] for row in parameters["weights"]]))

    plan = pv.Plan.of(Rows(CIRCLE.weights), PRIOR, pv.Distribution())
    again = pv.Plan.from_json(plan.to_json())
    assert again == plan and len(again.estimate(again.tally([0, 1, 2])).values) == 3


def test_weights_of_an_own_table_add_up() -> None:
    """The sampler draws 62 bits: rows with another sum would make reports that no row has."""
    for bad in ([1, 2, 3], [TOTAL, 1, -1]):
        with raises(InvalidChannel, argument="weights"):
            pv.Plan.of(RolledRows(bad), PRIOR, pv.Histogram())


def test_a_file_cannot_raise_the_budget_of_an_own_mechanism() -> None:
    document = json.loads(pv.Plan.of(CIRCLE, PRIOR, pv.Histogram()).to_json())
    document["mechanism"]["steps"] = [str(weight) for weight in steps(0.8, 0.1, 0.1)]
    with raises(PlanError, field="certificate"):
        pv.Plan.from_json(json.dumps(document))
    document["mechanism"]["kind"] = "Unheard"
    with raises(PlanError, field="mechanism", cause=InvalidInput):
        pv.Plan.from_json(json.dumps(document))


def test_a_mechanism_does_not_take_the_name_of_another_module() -> None:
    with raises(InvalidInput, argument="class", value="table"):
        type("Mine", (RolledRows,), {"kind": "table", "__module__": __name__})
    assert Mechanism.by_kind["table"] is Table


# -- given channels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
def test_a_given_channel_has_its_own_level_and_error(query: pv.Query) -> None:
    plan = pv.Plan.of(CHANNEL, PRIOR, query)
    levels = pv.leakage(CHANNEL, PRIOR)
    assert plan.certificate.lip == pytest.approx(levels.lip) and plan.budget.upper == pytest.approx(
        levels.lip_upper
    )
    assert plan.expected_mse == pytest.approx(query.error(pv.Channel(CHANNEL), PRIOR))
    designed = pv.design(PRIOR, plan.budget, query)
    assert plan.lower_bound <= designed.expected_mse * (1 + 1e-9) <= plan.expected_mse * (1 + 2e-9)
    assert pv.Plan.from_json(plan.to_json()) == plan


def test_rows_of_a_given_channel_follow_its_labels() -> None:
    channel = pv.Channel([[0.9, 0.1], [0.2, 0.8]], inputs=["no", "yes"])
    plan = pv.Plan.of(channel, pv.Prior({"yes": 0.3, "no": 0.7}), pv.Histogram())
    assert plan.labels == ("no", "yes") and plan.prior.probabilities.tolist() == [0.7, 0.3]
    assert plan.channel.matrix == pytest.approx(channel.matrix)


def test_a_given_channel_may_be_held_to_a_budget() -> None:
    level = pv.LDP().epsilon(pv.Channel(CHANNEL))
    assert pv.Plan.of(CHANNEL, PRIOR, pv.Histogram(), epsilon=1.2, notion=pv.LDP()).budget == pv.Budget(1.2)
    with raises(CertificateError):
        pv.Plan.of(CHANNEL, PRIOR, pv.Histogram(), epsilon=0.99 * level, notion=pv.LDP())


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (InvalidInput, lambda: pv.Plan.of(CHANNEL, pv.PriorSet([[0.5, 0.3, 0.2]]), pv.Histogram())),
        (InvalidInput, lambda: pv.Plan.of(CIRCLE, [0.5, 0.5], pv.Histogram())),
        (InvalidInput, lambda: pv.Plan.of(np.eye(3), PRIOR, pv.Histogram(), notion=pv.LDP())),
        (InvalidInput, lambda: pv.Plan.of(np.ones((3, 1)), PRIOR, pv.Histogram())),
        (InvalidInput, lambda: pv.Plan.of(CHANNEL, PRIOR, pv.Sum([1, 2]))),
        (InvalidChannel, lambda: pv.Plan.of(np.ones((3, 2)), PRIOR, pv.Histogram())),
        (
            InvalidChannel,
            lambda: pv.Plan.of(np.eye(3)[:, [0, 1, 2, 2]] * [1, 1, 1, 0], PRIOR, pv.Histogram()),
        ),
        (NotIdentifiable, lambda: pv.Plan.of([[0.4, 0.6], [0.5, 0.5], [0.6, 0.4]], PRIOR, pv.Distribution())),
    ],
)
def test_channels_that_are_no_plan_are_refused(
    error: type[PriorveilError], make: Callable[[], object]
) -> None:
    with raises(error):
        make()


# -- documents -----------------------------------------------------------------------------------------------


class Weighted(pv.Linear):
    """A linear query that changes what its error is, and leaves its document to `Linear`."""

    def utility(self, columns: Any, prior: pv.Prior) -> Any:
        return 2 * super().utility(columns, prior)


class LikeliestValues(pv.Query):
    """A query with an argument that its document does not hold."""

    def __init__(self, length: int = 2) -> None:
        self.length = length

    def utility(self, columns: Any, prior: pv.Prior) -> Any:
        return np.sort(columns * prior.probabilities, axis=1)[:, -self.length :].sum(axis=1)


@dataclass(frozen=True)
class FarApart(pv.Cone):
    """A notion with an argument that its document does not hold."""

    distance: float = 2.0

    def compared_rows(self, columns: Any, labels: Any, prior: Any, secret: Any) -> list[ComparedRows]:
        return [ComparedRows(columns, labels, self.distance)]


class Coins(Table):
    """A table with an argument that its document does not hold."""

    def __init__(self, keep: float) -> None:
        super().__init__(round_rows((1 - keep) / 3 + keep * np.eye(3)))


class ThreeCounts(pv.Linear):
    """Another way to make a `Linear`: nothing is lost in its document."""

    def __init__(self, values: int) -> None:
        super().__init__(np.eye(values))


def design(query: pv.Query, notion: pv.Cone | None = None) -> pv.Plan:
    return pv.design(PRIOR, 1.0, query, notion=notion, rounds=2)


def of(mechanism: Mechanism) -> pv.Plan:
    return pv.Plan.of(mechanism, PRIOR, pv.Histogram())


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("query", lambda: design(Weighted(np.eye(3)))),
        ("query", lambda: design(LikeliestValues(1))),
        ("notion", lambda: design(pv.Histogram(), FarApart(3.0))),
        ("mechanism", lambda: of(Coins(0.3))),
    ],
    ids=["query as its base", "query", "notion", "mechanism"],
)
def test_what_a_file_would_lose_is_not_written(argument: str, make: Callable[[], pv.Plan]) -> None:
    plan = make()
    assert len(plan.privatize(["a", "b"])) == 2
    with raises(InvalidInput, argument=argument):
        plan.to_json()


def test_a_class_that_adds_nothing_is_written_as_its_base() -> None:
    plan = design(ThreeCounts(3))
    assert pv.Plan.from_json(plan.to_json()).id == plan.id


@pytest.mark.parametrize("distance", [-1.0, 0.0, math.nan])
def test_a_distance_is_positive(distance: float) -> None:
    with raises(InvalidInput, argument="distance"):
        pv.design(PRIOR, 1.0, pv.Histogram(), notion=FarApart(distance))
    with raises(InvalidInput, argument="distance"):
        FarApart(distance).epsilon(pv.Channel(CHANNEL))


# -- mistakes in classes of users ----------------------------------------------------------------------------


class Concave(pv.Query):
    """A utility whose reports would be worse than none: no bound on its error would hold."""

    def utility(self, columns: Any, prior: pv.Prior) -> Any:
        return -((columns * prior.probabilities) ** 2).sum(axis=1)


class TooManyNumbers(pv.Query):
    """A utility that is not one number for each column."""

    def utility(self, columns: Any, prior: pv.Prior) -> Any:
        return columns * prior.probabilities


class PlainTuples(pv.Cone):
    """Rows that are compared, without the class that says so."""

    def compared_rows(self, columns: Any, labels: Any, prior: Any, secret: Any) -> Any:
        return [(columns[:2], labels[:2])]


class OneComparison(pv.Cone):
    """Compared rows without a list around them."""

    def compared_rows(self, columns: Any, labels: Any, prior: Any, secret: Any) -> Any:
        return ComparedRows(columns[:2], labels[:2])


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("utility", lambda: design(Concave())),
        ("utility", lambda: pv.Plan.of(CHANNEL, PRIOR, Concave())),
        ("utility", lambda: design(TooManyNumbers())),
        ("compared_rows", lambda: design(pv.Histogram(), PlainTuples())),
        ("compared_rows", lambda: design(pv.Histogram(), OneComparison())),
        ("compared_rows", lambda: OneComparison().epsilon(pv.Channel(CHANNEL))),
        ("query", lambda: design(LikeliestValues)),  # type: ignore[arg-type]
        ("query", lambda: pv.Plan.of(CHANNEL, PRIOR, LikeliestValues)),  # type: ignore[arg-type]
        ("notion", lambda: design(pv.Histogram(), FarApart)),  # type: ignore[arg-type]
        ("notion", lambda: pv.Plan.of(CHANNEL, PRIOR, pv.Histogram(), notion=pv.MIL())),  # type: ignore[arg-type]
    ],
)
def test_a_mistake_in_a_class_is_named(argument: str, make: Callable[[], object]) -> None:
    with raises(InvalidInput, argument=argument):
        make()


# -- sweeps --------------------------------------------------------------------------------------------------


def test_own_queries_and_notions_are_compared() -> None:
    curves = pv.compare(PRIOR, [LikeliestValues(1), pv.Histogram()], [0.5, 1.0], notion=FarApart())
    assert [row.query for row in curves.rows] == [
        "LikeliestValues",
        "LikeliestValues",
        "Histogram",
        "Histogram",
    ]
    assert all(row.lower_bound <= row.error * (1 + 1e-9) < row.ldp_error for row in curves.rows)
