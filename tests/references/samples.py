"""Figures for estimates from samples, and plain versions of textbook formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from references import Array

# The unrelated question with p = 1/2 and alpha = 1/12: 60 yes among 500 people drawn from 2,000 without replacement.
# R package rr, and by hand in docs/maths.md, "Samples"; the second variance leaves the noise out.
UNRELATED = ((13 / 24, 11 / 24), (1 / 24, 23 / 24))
UNRELATED_SHARE, UNRELATED_VARIANCE, UNRELATED_WITHOUT_NOISE = 0.156667, 0.000780009, 0.000634870


def stratified_total(
    scores: Sequence[float],
    weights: Sequence[float],
    strata: Sequence[Any],
    clusters: Sequence[Any],
    sizes: dict[Any, float] | None = None,
) -> tuple[float, float]:
    """A Horvitz-Thompson total and its variance, cluster by cluster (Sarndal, Swensson and Wretman 1992, 4.6.2)."""
    total, variance = 0.0, 0.0
    for stratum in dict.fromkeys(strata):
        sums: dict[Any, float] = {}
        for s, w, h, c in zip(scores, weights, strata, clusters, strict=True):
            if h == stratum:
                sums[c] = sums.get(c, 0.0) + w * s
        n, mean = len(sums), sum(sums.values()) / len(sums)
        fraction = 0.0 if sizes is None else n / sizes[stratum]
        total += sum(sums.values())
        variance += (1 - fraction) * n / (n - 1) * sum((each - mean) ** 2 for each in sums.values())
    return total, variance


def derivatives(estimator: Callable[[Array], Array], weights: Array, step: float = 1e-6) -> Array:
    """The derivative of an estimator by the logarithm of each weight, by central differences."""
    rows = []
    for place in range(len(weights)):
        moved = np.ones(len(weights))
        moved[place] += step
        up, down = estimator(weights * moved), estimator(weights * (2 - moved))
        rows.append((up - down) / (2 * step))
    return np.array(rows)


def raked(weights: Array, columns: Sequence[Array], sizes: Sequence[dict[Any, float]]) -> Array:
    """Weights raked to margins, level by level."""
    own = weights.copy()
    for _ in range(500):
        for column, targets in zip(columns, sizes, strict=True):
            for level, size in targets.items():
                own[column == level] *= size / own[column == level].sum()
    return own
