"""Linear statistics under every notion, by both readings, against full enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import priorveil as pv
from enumeration import SETTINGS, best_of_all, certified, least_found

pytestmark = [
    pytest.mark.parametrize("setting", SETTINGS),
    pytest.mark.parametrize("unbiased", [False, True], ids=["leaning", "unbiased"]),
]


@pytest.mark.parametrize("seed", range(4))
def test_as_good_as_full_enumeration(setting: str, unbiased: bool, seed: int) -> None:
    """Within one part in a million of the best, never below it, and the bound is never above it."""
    instance = SETTINGS[setting](np.random.default_rng(seed))
    plan = instance.plan(unbiased)
    certified(plan)
    assert (instance.A @ plan.channel.matrix).min() >= -1e-12 * np.abs(instance.A).max()
    best = best_of_all(instance, plan)
    rounding = 1e-8 * best + (0.0 if unbiased else 1e-9 * plan.no_report)  # of the enumeration
    assert best - rounding <= plan.expected_mse <= best * (1 + 1e-6) + rounding
    # of a set of priors the enumeration bounds the least variance from below, at the plan's reading prior
    bounds_only = unbiased and isinstance(plan.prior, pv.PriorSet)
    assert plan.lower_bound <= best * (1 + 1e-7 * bounds_only) + rounding


def test_no_channel_beats_the_bound(setting: str, unbiased: bool) -> None:
    """Random channels, and a local search that starts from the best of them and from the plan."""
    rng = np.random.default_rng(7)
    instance = SETTINGS[setting](rng)
    plan = instance.plan(unbiased)
    rounding = 1e-9 * plan.lower_bound + (0.0 if unbiased else 1e-12 * plan.no_report)
    assert least_found(instance, plan, rng) >= plan.lower_bound - rounding
