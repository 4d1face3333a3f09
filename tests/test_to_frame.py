"""`to_frame` of everything that notebooks show: the same columns in pandas, polars and pyarrow."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import InvalidInput
from refusals import raises
from sample_exhibits import EXHIBITS, HOSTILE, HOURS, PRIOR

LIBRARIES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
COLUMNS = {
    "Prior": ["value", "probability"],
    "Channel": ["value", "report", "probability"],
    "Leakage": ["notion", "level", "is_bound"],
    "Plan": [
        "query", "values", "notion", "budget_lower", "budget_upper", "assumed_prior", "lip",
        "lip_lower", "lip_upper", "ldp", "expected_mse", "lower_bound", "no_report", "efficiency", "method", "id",
    ],
    "Certificate": ["notion", "lip_lower", "lip_upper", "ldp", "level", "lip"],
    "Tally": ["counter", "count"],
    "Estimate": ["value", "estimate", "std_error", "low", "high", "expected", "share"],
    "Statistic": ["estimate", "std_error", "low", "high"],
    "Averages": ["age", "estimate", "std_error", "low", "high", "expected"],
    "Ledger": ["plan", "ldp"],
    "TradeOffs": [
        "query", "epsilon", "error", "lower_bound", "no_report", "efficiency", "lip", "ldp", "ldp_error",
    ],
    "DeviceComparison": ["equal", "lip_lower", "lip_upper", "ldp", "error", "saved"],
    "DiceMenu": ["outcomes", "yes_first", "yes_second", "lip", "lip_lower", "lip_upper", "ldp", "variance"],
}  # fmt: skip


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """The columns of a frame of any library, as lists."""
    to_lists = {"pandas": lambda f: f.to_dict("list"), "polars": lambda f: f.to_dict(as_series=False)}
    library = type(frame).__module__.partition(".")[0]
    return to_lists.get(library, lambda f: f.to_pydict())(frame)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", EXHIBITS)
def test_everything_has_a_frame_in_every_library(name: str, library: Any) -> None:
    pytest.importorskip(library)
    frame = EXHIBITS[name].to_frame(library)
    assert type(frame).__name__ == LIBRARIES[library]
    assert type(frame).__module__.partition(".")[0] == library
    assert list(columns_of(frame)) == COLUMNS[name]


def test_numbers_are_those_of_the_object() -> None:
    estimate = EXHIBITS["Estimate"]
    columns = columns_of(estimate.to_frame("pyarrow", confidence=0.5))
    low, high = estimate.interval(0.5)
    assert columns["value"] == [HOSTILE, "b", "c"] and columns["estimate"] == estimate.values.tolist()
    assert columns["low"] == low.tolist() and columns["high"] == high.tolist()
    assert columns["share"] == pytest.approx(estimate.proportions)
    assert columns["expected"] == pytest.approx(1_000 * PRIOR.probabilities)
    channel = EXHIBITS["Channel"]
    cells = columns_of(channel.to_frame("pyarrow"))
    assert np.reshape(cells["probability"], channel.shape).tolist() == channel.matrix.tolist()
    assert cells["value"][:3] == [HOSTILE] * 3 and cells["report"][:3] == [0, 1, 2]


def test_attributes_have_columns_of_their_own() -> None:
    assert columns_of(HOURS.to_frame("pyarrow")) == {
        "age": ["young", "young", "old", "old"],
        "overtime": [0.0, 40.0, 0.0, 40.0],
        "probability": pytest.approx([0.2, 0.3, 0.4, 0.1]),
    }
    plan = pv.design(HOURS, 1.0, pv.Distribution())
    estimate = plan.estimate(plan.tally(plan.privatize([("young", 40)] * 100)))
    assert list(columns_of(estimate.to_frame("pyarrow")))[:2] == ["age", "overtime"]
    assert columns_of(estimate.margin("age").to_frame("pyarrow"))["age"] == ["young", "old"]


def test_statistics_of_margins_keep_their_names() -> None:
    plan = pv.design(HOURS, 1.0, pv.Linear.margins(HOURS, ["age"], unbiased=True))
    estimate = plan.estimate(plan.tally(plan.privatize([("young", 40)] * 100)))
    assert columns_of(estimate.to_frame("pyarrow"))["value"] == ["age=young", "age=old"]


def test_labels_of_several_types_become_texts() -> None:
    assert columns_of(pv.Prior({"a": 0.5, 7: 0.5}).to_frame("pyarrow"))["value"] == ["a", "7"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_whole_and_decimal_numbers_are_one_column_of_numbers(library: Any) -> None:
    pytest.importorskip(library)
    prior = pv.Prior({1: 0.5, 2.5: 0.3, 3: 0.2})
    assert columns_of(prior.to_frame(library))["value"] == [1.0, 2.5, 3.0]


def test_frames_of_plans_can_be_put_below_each_other() -> None:
    pandas = pytest.importorskip("pandas")
    plans = [pv.design(PRIOR, epsilon, pv.Histogram()) for epsilon in (0.5, 1.0)]
    table = pandas.concat([plan.to_frame("pandas") for plan in plans])
    assert table["expected_mse"].tolist() == [plan.expected_mse for plan in plans]


def test_the_first_library_that_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # an import of it fails now
    assert type(PRIOR.to_frame()).__module__.startswith("polars")
    with raises(InvalidInput, argument="library", value="pandas"):
        PRIOR.to_frame("pandas")


def test_without_any_library_all_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asked for one of them, so the error does not speak as if."""
    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with raises(InvalidInput, argument="library", value=None) as raised:
        PRIOR.to_frame()
    assert all(name in str(raised.value) for name in ("pandas", "polars", "pyarrow"))
    with raises(InvalidInput, argument="library", value="polars"):
        PRIOR.to_frame("polars")
