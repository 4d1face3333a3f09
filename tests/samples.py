"""One small plan of every mechanism and query, made once, for the tests of what is done with plans."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import priorveil as pv
from priorveil.certify import certificate
from priorveil.mechanisms import Grouped

LABELS = ("a", "b", "c", "d", "e")
PRIOR = pv.Prior([0.3, 0.25, 0.2, 0.15, 0.1], LABELS)
VALUES = (0.0, 1.0, 2.0, 5.0, 9.0)

NAMES = ("columns", "closed", "arc", "unary", "hashing", "grouped", "sum", "distribution", "wide",
         "arc_pool")  # fmt: skip


@cache
def plan(name: str) -> pv.Plan:
    """The plan of that name."""
    if name == "closed":
        return pv.design(pv.Prior.uniform(LABELS), 1.5, pv.Histogram(), method="closed")
    if name == "wide":
        return pv.design(pv.Prior.zipf(150), 1.0, pv.Histogram(), method="unary")
    if name == "sum":
        return pv.design(PRIOR, 1.5, pv.Sum(VALUES))
    if name == "arc_pool":
        return pv.design(PRIOR, 0.5, pv.Distribution(), method="arc")
    if name == "distribution":
        return pv.design(PRIOR, 1.5, pv.Distribution())
    return _grouped() if name == "grouped" else pv.design(PRIOR, 1.5, pv.Histogram(), method=name)  # type: ignore[arg-type]


def _grouped() -> pv.Plan:
    """Two groups of values, each reported alike."""
    rows = np.array([0, 0, 1, 1, 1])
    pair = pv.design([0.55, 0.45], 1.5, pv.Histogram())
    mechanism = Grouped(rows, pair.mechanism)  # type: ignore[arg-type]
    error = pv.Histogram().error(pv.Channel(mechanism.matrix), PRIOR)
    found = certificate(mechanism.lifts(PRIOR, None, pv.LIP()))
    return replace(
        pair, prior=PRIOR, mechanism=mechanism, certificate=found, expected_mse=error, lower_bound=0.0,
        no_report=pv.Histogram().no_report(PRIOR),
    )  # fmt: skip
