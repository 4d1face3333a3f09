"""Numbers as people read them: what a reader must not be led to believe."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from priorveil.formatting import factor_at_most, level_at_most, round_up, share_at_least
from priorveil.results.statistic_tables import amount_decimals
from priorveil.words.results import figure_text

LEVELS = st.floats(0.001, 300.0)


def number(text: str) -> float:
    return float(text.replace(",", "").removesuffix(" %"))


@given(st.floats(0.0, 1.0, exclude_max=True))
def test_a_share_below_one_is_never_shown_as_all(share: float) -> None:
    assert share - 1e-3 < number(share_at_least(share)) / 100 < 1
    assert share_at_least(math.nextafter(1.0, 0.0)) == "99.99 %" and share_at_least(1.0) == "100 %"


@given(LEVELS)
def test_a_level_and_its_factor_are_never_shown_too_small(level: float) -> None:
    assert level - 1e-8 <= number(level_at_most(level)) <= level + 0.001
    assert math.exp(level) * (1 - 1e-9) <= number(factor_at_most(level)) <= 1.1 * math.exp(level) + 0.01


@given(st.floats(1e-9, 1e9))
def test_a_half_width_is_never_shown_too_small(width: float) -> None:
    assert width * (1 - 1e-9) <= number(round_up(width)) <= 1.1 * width


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_rounding_an_amount_moves_it_by_less_than_its_error(amount: float, half_width: float) -> None:
    text = figure_text(amount, "amount", amount_decimals(half_width))
    assert abs(number(text) - amount) <= max(0.05 * half_width, 0.5) + 1e-6
