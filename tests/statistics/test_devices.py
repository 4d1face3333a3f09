"""Known devices: their variances as published, their levels, and transition matrices in and out."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from priorveil import devices
from priorveil.errors import CertificateError, InvalidInput
from references import devices as published
from refusals import raises

SHARE = pv.Sum([1, 0], unbiased=True)
PRIOR = pv.Prior([0.2, 0.8])

shares = st.floats(0.02, 0.98)
inner = st.floats(0.05, 0.95)
off_half = st.one_of(st.floats(0.05, 0.45), st.floats(0.55, 0.95))


def variance(channel: pv.Channel, share: float) -> float:
    return pv.Plan.of(channel, pv.Prior([share, 1 - share]), SHARE).expected_mse


# -- variances as published ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["warner", "crosswise"])
@settings(max_examples=30)
@given(share=shares, p=off_half)
def test_symmetric_devices_have_their_published_variance(name: str, share: float, p: float) -> None:
    expected = getattr(published, name)(share, p)
    assert variance(getattr(devices, name)(p), share) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["triangular", "mangat"])
@settings(max_examples=30)
@given(share=shares, p=inner)
def test_one_sided_devices_have_their_published_variance(name: str, share: float, p: float) -> None:
    expected = getattr(published, name)(share, p)
    assert variance(getattr(devices, name)(p), share) == pytest.approx(expected)


@settings(max_examples=30)
@given(share=shares, p=inner, alpha=inner)
def test_forced_response_is_an_unrelated_question(share: float, p: float, alpha: float) -> None:
    channel = devices.unrelated(p, alpha)
    assert variance(channel, share) == pytest.approx(published.unrelated(share, p, alpha))
    same = devices.forced(p, (1 - p) * alpha)
    assert np.allclose(same.matrix, channel.matrix)
    assert variance(same, share) == pytest.approx(published.forced(share, p, (1 - p) * alpha))


@settings(max_examples=30)
@given(share=shares, p1=st.floats(0.55, 0.95), p2=st.floats(0.05, 0.45), cards=st.integers(1, 6))
def test_more_cards_tell_more_than_their_mean(share: float, p1: float, p2: float, cards: int) -> None:
    """For one card the published estimate is the best; for more the plan also uses how the counts are spread."""
    found, mean = variance(devices.kuk(p1, p2, cards), share), published.kuk_mean(share, p1, p2, cards)
    assert found <= mean * (1 + 1e-9)
    if cards == 1:
        assert found == pytest.approx(mean)


def test_cards_are_drawn_from_the_whole_pack() -> None:
    channel = devices.kuk(Fraction(4, 5), 0.2, cards=2)
    assert channel.matrix.tolist() == [pytest.approx([0.04, 0.32, 0.64]), pytest.approx([0.64, 0.32, 0.04])]
    assert channel.outputs == (0, 1, 2)


# -- rows and labels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel", "rows", "reports"),
    [
        (devices.warner(0.75), [[3, 1], [1, 3]], ("yes", "no")),
        (devices.forced(0.5, 0.25), [[3, 1], [1, 3]], ("yes", "no")),
        (devices.unrelated(0.5, 0.5), [[3, 1], [1, 3]], ("yes", "no")),
        (devices.crosswise(0.25), [[1, 3], [3, 1]], ("same", "different")),
        (devices.triangular(0.25), [[4, 0], [1, 3]], ("at least one", "neither")),
        (devices.mangat(0.75), [[4, 0], [1, 3]], ("yes", "no")),
    ],
)
def test_the_first_row_is_that_of_a_carrier(
    channel: pv.Channel, rows: list[list[int]], reports: tuple[str, ...]
) -> None:
    assert (4 * channel.matrix).tolist() == rows and channel.outputs == reports
    plan = pv.Plan.of(channel, pv.Prior({"smokes": 0.2, "does not": 0.8}), SHARE)  # any names
    assert plan.labels == ("smokes", "does not")


def test_forced_response_for_several_values_is_k_ary_randomised_response() -> None:
    level = math.log(3)
    channel = devices.forced(1 / 3, dict.fromkeys("abcd", 1 / 6))
    prior = pv.Prior.uniform("abcd")
    assert np.allclose(channel.matrix, pv.published.k_rr(prior, level).channel.matrix)
    assert channel.inputs == channel.outputs == tuple("abcd")


def test_probabilities_may_fill_the_whole_by_rounding() -> None:
    assert devices.forced(2 / 3, 1 / 3).matrix[0].tolist() == [1.0, 0.0]
    assert devices.forced(1 - 0.9, 0.9).matrix[0, 1] == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: devices.warner(1.5), "p"),
        (lambda: devices.warner("many"), "p"),
        (lambda: devices.mangat(math.nan), "p"),
        (lambda: devices.unrelated(0.5, -0.1), "alpha"),
        (lambda: devices.forced(0.9, 0.2), "yes"),
        (lambda: devices.forced(0.9, {"a": 0.05, "b": 0.1}), "yes"),
        (lambda: devices.kuk(0.5, 0.2, 0), "cards"),
        (lambda: devices.kuk(0.5, 0.2, 1.5), "cards"),
    ],
)
def test_what_is_no_device_is_refused(call: Callable[[], object], argument: str) -> None:
    with raises(InvalidInput, argument=argument):
        call()


def test_a_device_that_tells_nothing_is_no_plan() -> None:
    with raises(InvalidInput, argument="channel"):
        pv.Plan.of(devices.warner(0.5), PRIOR, SHARE)


# -- levels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", published.TABLE)
def test_devices_have_the_levels_of_the_table(name: str) -> None:
    oracle = published.TABLE[name]
    plan = pv.Plan.of(oracle.channel, PRIOR, SHARE)
    levels = (plan.certificate.lip, plan.certificate.ldp, plan.expected_mse)
    assert levels == pytest.approx((oracle.lip, oracle.ldp, oracle.variance), abs=6e-4)
    measured = pv.leakage(oracle.channel, PRIOR)
    assert (measured.lip, measured.ldp) == pytest.approx(levels[:2])


@pytest.mark.parametrize("name", published.ONE_SIDED)
def test_a_report_that_gives_an_answer_away_has_a_level_upwards_only(name: str, tmp_path: Path) -> None:
    channel, upper, expected = published.ONE_SIDED[name]
    plan = pv.Plan.of(channel, PRIOR, SHARE)
    proof = plan.certificate
    assert (proof.lip_lower, proof.ldp, plan.budget.lower) == (math.inf, math.inf, math.inf)
    assert (proof.lip_upper, plan.expected_mse) == pytest.approx((upper, expected), abs=6e-4)
    assert pv.Plan.of(channel, PRIOR, SHARE, pv.Budget(math.inf, 1.0)).certificate == proof
    with pytest.raises(CertificateError):
        pv.Plan.of(channel, PRIOR, SHARE, pv.Budget(math.inf, 0.8))
    assert "down infinite, up 0." in str(plan) and "lower infinite, upper 0." in str(plan)
    plan.save(tmp_path / "plan.json")
    assert pv.Plan.load(tmp_path / "plan.json") == plan
    with raises(InvalidInput, argument="channel"):  # LDP has no finite level
        pv.Plan.of(channel, PRIOR, SHARE, notion=pv.LDP())


def test_an_estimate_is_the_published_one() -> None:
    """60 of 500 say yes to an unrelated question with a half and a twelfth."""
    channel = devices.unrelated(1 / 2, 1 / 12)
    plan = pv.Plan.of(channel, pv.Prior({"yes": 0.15, "no": 0.85}), pv.Distribution())
    reports = channel.report_codes(["yes"] * 60 + ["no"] * 440)
    estimate = plan.estimate(plan.tally(reports))
    assert estimate.proportions[0] == pytest.approx((0.12 - 1 / 24) / 0.5)
