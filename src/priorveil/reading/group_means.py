"""Means of numbers over all people and by group, shares within groups, and the variance between people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import NotIdentifiable
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.domain import label_positions
from priorveil.queries import group_rows
from priorveil.reading.averages import Averages, mean_title
from priorveil.reading.estimate_data import EstimateData
from priorveil.reading.rounding import largest_variance
from priorveil.reading.statistics import Statistic, average_of
from priorveil.reading.weighted_sums import (
    bias_of,
    covariance_of_pair,
    labels_of,
    numbers_of,
    pair_of_sums,
    ratio_limits,
    single,
    sums_of_values,
    with_source,
)


def mean(estimate: EstimateData, numbers: str | Sequence[float] | None = None) -> Statistic:
    """The mean per person of a number for each value, over all people; see `Estimate.mean`."""
    points, centre = numbers_of(estimate, numbers)
    sums = sums_of_values(estimate, (points - centre)[None], of_numbers=True)
    found, cells = single(sums, centre, estimate.whole), estimate.cells_around(points)
    if cells is not None:
        found = _mean_in_cells(estimate, found, points, *cells)
    return with_source(estimate, found, mean_title(numbers if isinstance(numbers, str) else ""))


def averages_by(
    estimate: EstimateData, numbers: str | Sequence[float] | None, by: tuple[str, ...]
) -> Averages:
    """The average of a number for each value, in each group that these attributes form."""
    points, name = numbers_of(estimate, numbers)[0], numbers if isinstance(numbers, str) else ""
    return _averages_of(estimate, points, name, by, estimate.cells_around(points))


def _mean_in_cells(
    estimate: EstimateData, found: Statistic, points: Array, low: Array, high: Array
) -> Statistic:
    """The mean with the bias that cells allow: the true mean is between those of their lower and of their upper edges.

    If reports do not determine these two, the bias is the largest distance from a number to an edge of its cell.
    """
    P = estimate.own_readings[0].prior.probabilities
    try:
        below, above = (
            single(sums_of_values(estimate, (edge - P @ edge)[None]), float(P @ edge), estimate.whole)
            for edge in (low, high)
        )
    except NotIdentifiable:
        hidden = float((points - low).max()), float((high - points).max())
        return replace(found, bias=(found.bias[0] + hidden[0], found.bias[1] + hidden[1]))
    return _between_edges(found, below, above)


def group_shares(estimate: EstimateData, values: Array, by: Sequence[str]) -> Averages:
    """The people with some values, which have a one in `values`, as shares of the groups that attributes form."""
    return _averages_of(estimate, values, "", tuple(by), None)


def _averages_of(
    estimate: EstimateData, points: Array, name: str, by: tuple[str, ...], cells: tuple[Array, Array] | None
) -> Averages:
    """The average of a number for each value by group; `cells` are edges that people's own numbers lie between."""
    groups, members = group_rows(estimate.own_readings[0].prior.domain, by)
    labels = labels_of(groups)
    averages, centres = _group_averages(estimate, points, members, labels)
    if cells is not None:
        below, above = (_group_averages(estimate, edge, members, labels)[0] for edge in cells)
        averages = list(map(_between_edges, averages, below, above))
    titles = [Note("meanInGroup", {"mean": mean_title(name), "label": label}) for label in labels]
    statistics = tuple(map(partial(with_source, estimate), averages, titles))
    return Averages(name, by, labels, statistics, centres)


def _group_averages(
    estimate: EstimateData, points: Array, members: Array, labels: tuple[Label, ...]
) -> tuple[list[Statistic], Array]:
    """The average of a number for each value in each group, and what the priors expect of it.

    `members` has a row for each group: one where a value belongs to it.
    """
    expected = _expected_counts(estimate)
    centres = members @ (expected * points) / (members @ expected)
    distances = members * (points - centres[:, None])
    units = np.abs(distances).max(axis=1)
    units[units == 0] = 1.0
    tops, size = distances / units[:, None], len(labels)
    sums = sums_of_values(estimate, np.concatenate([tops, members, tops + members]), row_names=labels * 3)
    parts = np.stack([sums.mean, sums.linear]).reshape(2, 3, size)
    biases = bias_of(sums).reshape(2, 3, size)[:, :2]
    variances = sums.variance.reshape(3, size)
    statistics = []
    for group, centre in enumerate(centres.tolist()):
        pair, people = parts[:, :2, group], float(parts[0, 1, group])
        covariance = covariance_of_pair(*variances[:, group])
        if people > 0:
            deviations = tops[group] - members[group] * pair[0, 0] / people
            covariance[0, 0] += _rounding(estimate, deviations, min(people / estimate.whole, 1.0))
        limits = ratio_limits(estimate, members[group] * points, members[group])
        unit, bias = float(units[group]), biases[:, :, group]
        statistics.append(average_of(pair, covariance, centre, unit, estimate.reports, bias, limits))
    return statistics, centres


def _expected_counts(estimate: EstimateData) -> Array:
    """How many people the priors expect to have each value; for nobody the shares of the first prior."""
    counts = np.zeros(len(estimate.domain_labels))
    for reading in estimate.own_readings:
        expected = reading.people * reading.prior.probabilities
        counts += expected[label_positions(reading.prior.labels, estimate.domain_labels)]
    return counts if (counts > 0).all() else estimate.own_readings[0].prior.probabilities


def _rounding(estimate: EstimateData, row: Array, share: float = 1.0) -> float:
    """The most that rounding to a grid adds to the variance of the sum of these numbers, one for each value."""
    parts = [(reading, reading.align(row[None], estimate.domain_labels)) for reading in estimate.own_readings]
    return sum(float(reading.rounding(rows, share)[0]) for reading, rows in parts)


def _between_edges(mean: Statistic, below: Statistic, above: Statistic) -> Statistic:
    """A mean of numbers in cells, given those of their lower and of their upper edges: people may be anywhere."""
    bias = max(mean.value - below.value, 0.0), max(above.value - mean.value, 0.0)
    limits = below.limits[0], above.limits[1]
    return replace(mean, bias=bias, limits=limits, ends=partial(_outer_ends, below, above))


def _outer_ends(below: Statistic, above: Statistic, width: float) -> tuple[float, float]:
    """From the lower end of one interval to the upper end of another."""
    return below.linear_ends(width)[0], above.linear_ends(width)[1]


def variance(estimate: EstimateData, numbers: str | Sequence[float] | None = None) -> Statistic:
    """The variance between people of a number for each value; see `Estimate.variance`."""
    points, centre = numbers_of(estimate, numbers)
    sums, covariance, _, biases = pair_of_sums(estimate, (points - centre) ** 2, points - centre)
    means = sums / estimate.whole  # of squares and of numbers: as they are, and linear
    value, unprojected = means[:, 0] - means[:, 1] ** 2
    mean = float(means[1, 1])
    slope = np.array([1.0, -2 * mean])
    rounding = _rounding(estimate, (points - centre - mean) ** 2)
    error = max(float(slope @ covariance @ slope) + rounding, 0.0) ** 0.5 / estimate.whole
    (below, low), (above, high) = (biases / estimate.whole).tolist()
    squares = (mean - low) ** 2, (mean + high) ** 2
    below += max(*squares, mean**2) - mean**2
    above += mean**2 - (0.0 if low >= mean >= -high else min(*squares, mean**2))
    cells = estimate.cells_around(points)
    if cells is None:
        bias = below + float(largest_variance(estimate.own_readings[0].prior.domain, points[None])[0]), above
    else:
        distance = float(np.max([points - cells[0], cells[1] - points]))
        bias = _variance_bias(float(value), below, above, distance)
    return with_source(estimate, Statistic(float(value), error, bias, float(unprojected)), Note("variance"))


def _variance_bias(variance: float, below: float, above: float, distance: float) -> tuple[float, float]:
    """How far the variance of numbers may be below and above that of others, each at most this far from its number.

    That of the others may itself be this far below and above. The standard deviations differ by at most the distance.
    """
    possible = max(variance, 0.0)
    least, most = math.sqrt(max(possible - below, 0.0)), math.sqrt(possible + above)
    return possible - max(least - distance, 0.0) ** 2, (most + distance) ** 2 - possible
