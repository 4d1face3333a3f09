"""Does a logit fit? Groups of reports by fitted share, within each device (Hosmer and Lemeshow 1980)."""

from __future__ import annotations

import numpy as np

from priorveil.arrays import Array, Ints
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.notes import Note
from priorveil.statistics.significance import ChiSquareTest

GROUPS = 10


def hosmer_lemeshow(shares: Array, chances: Array, reports: Ints) -> tuple[float, int]:
    """The statistic of one device with two reports, and the number of its groups.

    `shares` are the fitted shares of the first value, which make the groups; `chances` are the probabilities of the
    first report. Equal shares stay in one group.
    """
    edges = np.unique(np.quantile(shares, np.arange(1, GROUPS) / GROUPS))
    _, group = np.unique(np.searchsorted(edges, shares), return_inverse=True)
    count = np.bincount(group).astype(np.float64)
    if len(count) < 3:
        advice = (
            "fewer than three different fitted shares: compare observed and fitted shares of each instead"
        )
        raise InvalidInput("X", NOT_SHOWN, advice)
    observed, expected = np.bincount(group, reports == 0), np.bincount(group, chances)
    spread = expected * (1 - expected / count)
    return float(((observed - expected) ** 2 / spread).sum()), len(count)


def pooled_test(parts: list[tuple[float, int]]) -> ChiSquareTest:
    """The test of all devices: the sum of their statistics, and of their groups less two.

    They share the coefficients, so the two are lost once, as Hosmer and Lemeshow found for one device: in simulations
    the mean of the statistic of two devices is 18, and that of three is 28.
    """
    statistic, groups = (sum(column) for column in zip(*parts, strict=True))
    one = len(parts) == 1
    hypothesis = Note("hosmerLemeshow") if one else Note("hosmerLemeshowDevices", {"count": len(parts)})
    return ChiSquareTest(float(statistic), int(groups) - 2, hypothesis)
