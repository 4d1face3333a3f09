"""Tallies: parts add up to the whole, invalid reports are refused or counted, and memory stays constant."""

from __future__ import annotations

import json
import pickle
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.errors import NOT_SHOWN, ForeignReport, InvalidInput
from priorveil.mechanisms import kernels
from priorveil.reading.tally import Tally
from refusals import raises
from sample_plans import NAMES, named_plan

PLANS = {name: named_plan(name) for name in NAMES}
each_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


def reported(plan: pv.Plan, people: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return plan.privatize(rng.integers(0, len(plan.labels), people), rng, codes=True)


@each_plan
@given(st.lists(st.integers(0, 200), max_size=4).map(sorted))
def test_parts_add_up_to_the_whole(plan: pv.Plan, cuts: list[int]) -> None:
    reports = reported(plan, 200)
    parts = [plan.tally(part) for part in np.split(reports, cuts)]
    whole = plan.tally(reports)
    assert sum(parts) == whole == sum(parts[-2::-1], parts[-1])
    assert whole.reports == 200


@each_plan
def test_order_does_not_matter(plan: pv.Plan) -> None:
    reports = reported(plan, 300)
    assert plan.tally(reports[::-1]) == plan.tally(reports)


@each_plan
@given(st.integers(0, 150))
def test_weighted_parts_add_up_to_the_whole(plan: pv.Plan, cut: int) -> None:
    """Results agree to the last bit, because sums of quarters are exact in floats."""
    rng = np.random.default_rng(1)
    reports, c, b = reported(plan, 150), rng.integers(1, 9, 150) / 4, rng.integers(-9, 9, 150) / 4
    offsets = (lambda h: b[h]) if plan is PLANS["sum"] else (lambda h: None)
    parts = [plan.tally(reports[h], c[h], offsets(h)) for h in (slice(0, cut), slice(cut, None))]
    whole = plan.tally(reports, c, offsets(slice(None)))
    assert parts[0] + parts[1] == whole == Tally.from_json(whole.to_json())
    assert whole.counts.tolist() == plan.tally(reports).counts.tolist()


@each_plan
def test_a_weight_of_one_counts_once(plan: pv.Plan) -> None:
    tally = plan.tally(reported(plan, 300), weights=1.0)
    assert tally.weighted is not None
    assert tally.weighted.weights.tolist() == tally.weighted.squares.tolist() == tally.counts.tolist()


@each_plan
def test_tallies_survive_text_and_pickling(plan: pv.Plan) -> None:
    tally = plan.tally(reported(plan, 100))
    for again in (Tally.from_json(tally.to_json()), pickle.loads(pickle.dumps(tally))):
        assert again == tally and hash(again) == hash(tally)
        assert plan.estimate(again).values.tolist() == plan.estimate(tally).values.tolist()


@each_plan
def test_a_tally_does_not_grow_with_the_reports(plan: pv.Plan) -> None:
    few, many = plan.tally(reported(plan, 10)), plan.tally(reported(plan, 5000))
    assert few.counts.nbytes == many.counts.nbytes
    assert len(many.to_json()) < 4 * len(few.to_json()) + 1000


def spoilt(reports: np.ndarray, plan: pv.Plan) -> np.ndarray:
    """The reports, and one more that the plan cannot produce."""
    foreign = np.full_like(reports[:1], 2**53 if reports.dtype.kind == "i" else 2**63)
    return np.concatenate([reports, foreign])


@each_plan
def test_foreign_reports_raise_or_are_counted(plan: pv.Plan) -> None:
    reports = reported(plan, 50)
    with raises(ForeignReport, argument="reports[50]"):
        plan.tally(spoilt(reports, plan))
    counted = plan.tally(spoilt(reports, plan), foreign="count")
    assert counted.refused == {"foreign": 1} and counted.reports == 50
    assert counted.counts.tolist() == plan.tally(reports).counts.tolist()
    assert (counted + counted).refused == {"foreign": 2}
    assert "1 refused" in repr(counted)


def test_values_of_people_in_the_place_of_reports_are_not_shown() -> None:
    prior = pv.Prior({18: 0.5, 98765: 0.5})
    plan, cohorts = pv.design(prior, 1.0, pv.Histogram()), pv.Cohorts([[0.5, 0.5]], 1.0, pv.Histogram())
    calls = (
        lambda: plan.tally([0, 98765]),
        lambda: plan.tally(["98765"]),
        lambda: plan.tally(np.array([0, 2**64 - 98765], dtype=np.uint64)),
        lambda: cohorts.estimate([98765]),
    )
    for call in calls:
        with pytest.raises(InvalidInput) as caught:
            call()
        assert "98765" not in str(caught.value) and "plan.privatize" in str(caught.value)
        assert caught.value.value in (NOT_SHOWN, "<U5 array of shape (1,)")


@each_plan
def test_compiled_and_numpy_count_alike(plan: pv.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = reported(plan, 3000)
    tallies = []
    for enough in (0, 1 << 60):
        monkeypatch.setattr(kernels, "ENOUGH_WORK", enough)
        tallies.append(plan.tally(reports))
        with raises(ForeignReport, argument="reports[3000]"):
            plan.tally(spoilt(reports, plan))
    assert tallies[0] == tallies[1]


def test_weights_follow_the_reports_that_are_counted() -> None:
    plan = PLANS["sum"]
    reports = reported(plan, 4)
    weights, kept = np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([1.0, 2.0, 4.0, 8.0])
    tally = plan.tally(spoilt(reports, plan), weights=weights, foreign="count")
    assert tally.weighted is not None
    assert tally.weighted.weights.tolist() == plan.tally(reports, kept).weighted.weights.tolist()


@pytest.mark.parametrize(
    "column", [list, pd.Series, pl.Series, pa.array, lambda v: pa.chunked_array([v, v[:0]])]
)
def test_reports_come_in_columns_too(column) -> None:
    plan = PLANS["arc"]
    reports = reported(plan, 20)
    assert plan.tally(column(reports.tolist())) == plan.tally(reports)


def test_what_does_not_belong_together_is_refused() -> None:
    one, other = PLANS["columns"].tally([0]), PLANS["arc"].tally([0])
    with raises(InvalidInput, argument="tally"):
        one + other
    with raises(InvalidInput, argument="tally"):
        PLANS["arc"].estimate(one)
    plain, weighted = PLANS["sum"].tally([0]), PLANS["sum"].tally([0], weights=[2.0])
    with raises(InvalidInput, argument="tally"):
        plain + weighted
    assert PLANS["sum"].tally([]) + weighted == weighted
    assert one.__add__(3) is NotImplemented and one != 3


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("weights", lambda: PLANS["sum"].tally([0, 1], weights=[1.0])),
        ("weights", lambda: PLANS["sum"].tally([0], weights=[np.nan])),
        ("offsets", lambda: PLANS["sum"].tally([0, 1], offsets=[1.0, 2.0, 3.0])),
        ("weights", lambda: PLANS["sum"].tally([0], weights=["heavy"])),
        ("weights", lambda: PLANS["sum"].tally([0], weights=[np.inf])),
        ("weights", lambda: PLANS["sum"].tally([0], weights=[1e200])),
        ("weights", lambda: PLANS["sum"].tally([0], weights=[None])),
        ("weights", lambda: PLANS["sum"].tally([0, 1], weights=[[1.0], [2.0]])),
        ("weights", lambda: PLANS["sum"].tally([0], weights=np.ma.masked_array([1.0], [True]))),
        ("weights", lambda: PLANS["arc"].tally([0, 1], weights=[1.0])),
        ("weights", lambda: PLANS["arc_pool"].tally([0], weights=[np.nan])),
        ("offsets", lambda: PLANS["sum"].tally([0], offsets=[np.nan])),
        ("offsets", lambda: PLANS["columns"].tally([0], offsets=[1.0])),
        ("reports", lambda: PLANS["columns"].tally([-1], weights=[1.0])),
        ("reports", lambda: PLANS["arc_pool"].tally([-1], weights=[1.0])),
        ("foreign", lambda: PLANS["columns"].tally([0], foreign="drop")),
        ("reports", lambda: PLANS["columns"].tally([0.5])),
        ("reports", lambda: PLANS["columns"].tally([0.5], foreign="count")),
    ],
)
def test_bad_input_names_the_argument(argument: str, call) -> None:
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.argument.startswith(argument)


def test_a_refused_weight_is_not_shown() -> None:
    with raises(InvalidInput, argument="weights") as refused:
        PLANS["sum"].tally([0], weights=["heavy"])
    error = refused.value.with_traceback(None)  # which shows the line above
    assert "heavy" not in "".join(traceback.format_exception(error))


def test_a_text_of_another_format_is_refused() -> None:
    read = json.loads(PLANS["columns"].tally([0]).to_json())
    weighted = json.loads(PLANS["columns"].tally([0], weights=2.0).to_json())["weighted"]
    wrong = [{**weighted, "weights": [1.0]}, {**weighted, "total": float("nan")}, {"weights": []}, None, 3]
    for change in (
        {"format": "something"},
        {"version": 2},
        {"reports": -1},
        *({"weighted": each} for each in wrong),
    ):
        with raises(InvalidInput, argument="text"):
            Tally.from_json(json.dumps({**read, **change}))
