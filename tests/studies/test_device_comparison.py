"""A known device beside the best plans: the published table, and what is said about it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from references.devices import ONE_SIDED, TABLE

PRIOR = pv.Prior([0.2, 0.8])
SYMMETRIC = ["Warner, 5/6", "forced, 2/3 and 1/6", "crosswise, 1/4", "Kuk, .8 and .2, 1 card"]


@pytest.mark.parametrize("name", TABLE)
def test_the_table(name: str) -> None:
    oracle = TABLE[name]
    row = {each.equal: each for each in pv.compare_device(oracle.channel, PRIOR).rows}
    own, ldp = row["this device"], row["the same LDP"]
    assert (own.lip, own.ldp, own.error) == pytest.approx((oracle.lip, oracle.ldp, oracle.variance), abs=6e-4)
    assert ldp.error == pytest.approx(oracle.at_same_ldp, abs=6e-5)
    assert ldp.ldp == pytest.approx(own.ldp)
    lip = row["the same LIP"]
    assert lip.lip == pytest.approx(own.lip)
    if not math.isnan(oracle.at_same_lip):
        assert (lip.error, lip.ldp) == pytest.approx((oracle.at_same_lip, oracle.ldp_at_same_lip), abs=6e-4)


@pytest.mark.parametrize(
    ("name", "at_lip", "at_ldp"),
    [
        ("Warner, 5/6", 42, 0),
        ("crosswise, 1/4", 29, 0),
        ("forced, 3/4 and 1/6", 46, 26),
        ("unrelated, 1/2 and 1/12", 37, 49),
        ("Kuk, .8 and .2, 2 cards", 45, 32),
    ],
)
def test_what_the_best_plans_save(name: str, at_lip: int, at_ldp: int) -> None:
    saved = {each.equal: 100 * each.saved for each in pv.compare_device(TABLE[name].channel, PRIOR).rows}
    assert saved["the same LIP"] == pytest.approx(at_lip, abs=0.6)
    assert saved["the same LDP"] == pytest.approx(at_ldp, abs=0.6)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_nothing_is_saved_against_a_symmetric_device_but_for_a_higher_ldp_level(name: str) -> None:
    comparison = pv.compare_device(TABLE[name].channel, PRIOR)
    first, second = comparison.sentences
    assert "nothing is saved" in first and "paid for with a higher LDP level" in second
    row = {each.equal: each for each in comparison.rows}
    assert row["both LIP sides"].saved == pytest.approx(0, abs=1e-9)
    assert row["the same LIP"].ldp > row["this device"].ldp + 0.3


def test_the_unrelated_question_wastes_at_its_own_levels() -> None:
    comparison = pv.compare_device(TABLE["unrelated, 1/2 and 1/12"].channel, PRIOR)
    row = {each.equal: each for each in comparison.rows}
    sides = row["both LIP sides"]
    assert (sides.lip_lower, sides.lip_upper, sides.error) == pytest.approx((1.224, 1.341, 0.3211), abs=6e-4)
    assert all(
        f"{percent} %" in said for percent, said in zip((49, 37, 34), comparison.sentences, strict=True)
    )
    assert "LDP level is not higher" in comparison.sentences[1]


@pytest.mark.parametrize("name", ONE_SIDED)
def test_devices_that_give_an_answer_away_are_compared_upwards(name: str) -> None:
    channel, upper, variance = ONE_SIDED[name]
    comparison = pv.compare_device(channel, PRIOR)
    own, best = comparison.rows
    assert best.equal == "the same LIP upwards"
    assert (best.lip_upper, best.error) == pytest.approx((upper, variance), abs=6e-4)
    assert (own.lip, own.ldp) == (math.inf, math.inf)
    assert "infinite" in comparison.sentences[0] and "upwards nothing is saved" in comparison.sentences[1]
    assert "e-" not in str(comparison) and "34." not in str(comparison)  # no figure that rounding decides


@settings(max_examples=25, deadline=None)
@given(share=st.floats(0.05, 0.95), p=st.floats(0.55, 0.95))
def test_a_symmetric_device_is_the_best_at_its_ldp_level_for_every_share(share: float, p: float) -> None:
    prior = pv.Prior([share, 1 - share])
    row = {each.equal: each for each in pv.compare_device(pv.devices.warner(p), prior).rows}
    assert row["the same LDP"].saved == pytest.approx(0, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(share=st.floats(0.05, 0.95), truth=st.floats(0.1, 0.8), told=st.floats(0.05, 0.95))
def test_no_plan_is_worse_than_a_device(share: float, truth: float, told: float) -> None:
    channel = pv.devices.forced(truth, (1 - truth) * told)
    for row in pv.compare_device(channel, pv.Prior([share, 1 - share])).rows[1:]:
        assert row.saved >= -1e-9


def test_more_values_and_another_query() -> None:
    prior = pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2})
    channel = pv.Channel(0.4 * np.eye(3) + 0.2, inputs=["c", "a", "b"])
    comparison = pv.compare_device(channel, prior, pv.Distribution())
    assert comparison.plans["this device"].labels == ("c", "a", "b")
    assert {row.equal for row in comparison.rows} >= {"the same LIP", "both LIP sides", "the same LDP"}
    assert all(row.saved > -1e-6 for row in comparison.rows[1:])
    assert "error" in str(pv.compare_device(channel, prior, pv.Histogram())).splitlines()[0]


def test_a_comparison_is_a_table() -> None:
    comparison = pv.compare_device(TABLE["Warner, 5/6"].channel, PRIOR)
    assert [row["equal"] for row in comparison.record()] == list(comparison.plans)
    assert list(comparison.to_frame("pandas")["equal"]) == list(comparison.plans)
    assert "paid for" in comparison._repr_html_()
