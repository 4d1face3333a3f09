"""Quantiles of numbers, read from cumulative shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from priorveil.arrays import Array, Ints
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.notes import Note
from priorveil.reading.estimate_data import EstimateData
from priorveil.reading.statistics import Statistic, quantile_of
from priorveil.reading.weighted_sums import bias_of, numbers_of, sums_of_values, with_source

_MOST_CELLS = 2_000  # of a quantile


def quantile(estimate: EstimateData, q: float, curve: Sequence[Array]) -> Statistic:
    """The number that the share `q` of people does not exceed, on a curve of `cumulative_curve`."""
    found = quantile_of(q, *curve)
    if estimate.limits is not None:
        found = replace(found, limits=(float(curve[0][0]), float(curve[1][-1])))
    return with_source(estimate, found, Note("quantileOf", {"share": q}))


def cumulative_curve(estimate: EstimateData, numbers: Sequence[float] | None) -> tuple[Array, ...]:
    """Cells from `low` to `high`, and the shares up to each: as they are, linear, their errors and bias."""
    if estimate.has_grid:
        advice = "numbers were rounded at random, which moves quantiles; use Prior.cells"
        raise InvalidInput("estimate", NOT_SHOWN, advice)
    cells = estimate.own_readings[0].prior.edges if numbers is None else None
    low, high = (numbers_of(estimate, numbers)[0],) * 2 if cells is None else (cells[:-1], cells[1:])
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    last = _last_values(estimate.own_readings[0].prior.probabilities[order], low)
    low, high = low[np.append(0, last + 1)], high[np.append(last, -1)]
    up_to = np.empty((len(last), len(order)))
    up_to[:, order] = np.arange(len(order)) <= last[:, None]
    sums = sums_of_values(estimate, up_to)
    shares, linear = (np.append(x / estimate.whole, 1.0) for x in (sums.mean, sums.linear))
    errors, *bias = (np.append(x / estimate.whole, 0.0) for x in (sums.variance**0.5, *bias_of(sums)))
    return low, high, shares, linear, errors, np.array(bias)


def _last_values(prior: Array, low: Array) -> Ints:
    """The last value of every cell but the last: of each number, or if there are many of a few thousand cells.

    No cell of several numbers has more than a thousandth of the values, or of the people that the prior expects.
    """
    ends = np.arange(len(prior)) / len(prior) + np.cumsum(prior)
    cells = np.linspace(ends[0], ends[-1], _MOST_CELLS) if len(prior) > _MOST_CELLS else ends
    return np.unique(np.searchsorted(low, low[np.searchsorted(ends, cells)], side="right") - 1)[:-1]
