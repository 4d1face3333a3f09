"""The devices of randomised response: variances in closed form as published, and the table of `docs/devices.md`.

All variances are N times the variance of the share of carriers, `share`, estimated from N reports.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import priorveil as pv


def warner(share: float, p: float) -> float:
    """Warner 1965, Journal of the American Statistical Association 60, eq. 5."""
    return share * (1 - share) + p * (1 - p) / (2 * p - 1) ** 2


def forced(share: float, truth: float, yes: float) -> float:
    """Forced response: Fox and Tracy 1986, Randomized Response, ch. 3."""
    law = yes + truth * share
    return law * (1 - law) / truth**2


def unrelated(share: float, p: float, alpha: float) -> float:
    """The unrelated question: Greenberg, Abul-Ela, Simmons and Horvitz 1969, JASA 64, for a known `alpha`."""
    law = p * share + (1 - p) * alpha
    return law * (1 - law) / p**2


def crosswise(share: float, p: float) -> float:
    """Yu, Tian and Tang 2008, Metrika 67, crosswise model."""
    return share * (1 - share) + p * (1 - p) / (2 * p - 1) ** 2


def triangular(share: float, p: float) -> float:
    """Yu, Tian and Tang 2008, Metrika 67, triangular model."""
    return share * (1 - share) + p * (1 - share) / (1 - p)


def mangat(share: float, p: float) -> float:
    """Mangat 1994, Journal of the Royal Statistical Society B 56."""
    return share * (1 - share) + (1 - share) * (1 - p) / p


def kuk_mean(share: float, p1: float, p2: float, cards: int = 1) -> float:
    """Kuk 1990, Biometrika 77: of his estimate from the mean number of red cards, which is the best for one card."""
    noise = share * p1 * (1 - p1) + (1 - share) * p2 * (1 - p2)
    return share * (1 - share) + noise / (cards * (p1 - p2) ** 2)


class Oracle(NamedTuple):
    """A device with one carrier in five, beside the best plans: levels to three decimals, variances to four."""

    channel: pv.Channel
    lip: float
    ldp: float
    variance: float
    at_same_lip: float
    ldp_at_same_lip: float
    at_same_ldp: float  # nan: the level is infinite


# Computed apart from this package, from the formulas of posteriors and closed forms for two values.
TABLE = {
    "Warner, 5/6": Oracle(pv.devices.warner(5 / 6), 1.435, 1.609, 0.4725, 0.2756, 2.833, 0.4725),
    "forced, 2/3 and 1/6": Oracle(
        pv.devices.forced(2 / 3, 1 / 6), 1.435, 1.609, 0.4725, 0.2756, 2.833, 0.4725
    ),
    "crosswise, 1/4": Oracle(pv.devices.crosswise(1 / 4), 0.956, 1.099, 0.9100, 0.6500, 1.466, 0.9100),
    "forced, 3/4 and 1/6": Oracle(
        pv.devices.forced(3 / 4, 1 / 6), 2.104, 2.303, 0.3847, 0.2075, 3.611, 0.2835
    ),
    "unrelated, 1/2 and 1/12": Oracle(
        pv.devices.unrelated(1 / 2, 1 / 12), 1.341, 2.565, 0.4864, 0.3069, 2.565, 0.2503
    ),
    "Kuk, .8 and .2, 2 cards": Oracle(
        pv.devices.kuk(0.8, 0.2, cards=2), 2.565, 2.773, 0.3399, 0.1878, 4.111, 0.2311
    ),
    "Kuk, .8 and .2, 1 card": Oracle(
        pv.devices.kuk(0.8, 0.2), 1.224, 1.386, kuk_mean(0.2, 0.8, 0.2), math.nan, math.nan, 0.6044
    ),
}
# Infinite downwards; upwards, and the variance.
ONE_SIDED = {
    "triangular, 1/4": (pv.devices.triangular(1 / 4), 0.916, 0.4267),
    "Mangat, .7": (pv.devices.mangat(0.7), 0.821, 0.5029),
}
# The rows for LIP 1 and one carrier in five: how often the rare and the common answer say the same word, and the
# variance as a multiple of the best.
DICE = {
    "die": ((2, 5), 1.33),
    "coin and die": ((4, 10), 1.33),
    "two dice": ((10, 30), 1.10),
    "cards": ((14, 44), 1.003),
}
