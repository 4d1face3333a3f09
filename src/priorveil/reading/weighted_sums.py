"""Weighted sums of the values or of the statistics of an estimate, which all further statistics are read from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, NotIdentifiable
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.reading.estimate_data import EstimateData
from priorveil.reading.estimate_notes import OUTSIDE_UNBIASED, leaning_note, prior_warning
from priorveil.reading.label_weights import LabelWeights, weights_of
from priorveil.reading.moments import UNBOUNDED, Ends, Moments, not_identifiable, sum_moments
from priorveil.reading.statistics import Statistic
from priorveil.reading.tally_reading import QUICK


def sums_of_values(
    estimate: EstimateData, rows: Array, row_names: Sequence[Label] = (), of_numbers: bool = False
) -> Moments:
    """Weighted sums of the counts of all values: a row of weights for each sum.

    The sums of a histogram, or of a margin, are those of its own counts, projected if these are. Sums that the counts
    do not determine are read from the tally, unless the counts are projected. `row_names` are the groups that rows
    belong to, for the error if reports do not determine them. `of_numbers` is that of `Reading.moments`.
    """
    if estimate.histogram:
        cells = estimate.own_readings[0].rows
        own = rows if cells is None else rows[:, cells.argmax(axis=1)]
        if cells is None or np.array_equal(own @ cells, rows):
            return sums_of_statistics(estimate, own, row_names, of_numbers)
        if estimate.projected:
            advice = (
                "projected counts of a margin do not contain single values: use the estimate of all values"
            )
            raise InvalidInput("estimate", NOT_SHOWN, advice)
    return _read_sums(estimate, rows, row_names, of_values=True, of_numbers=of_numbers)


def sums_of_statistics(
    estimate: EstimateData, rows: Array, row_names: Sequence[Label] = (), of_numbers: bool = False
) -> Moments:
    """Weighted sums of `values`: a row of weights for each sum. They contain offsets, and follow a projection."""
    sums = _read_sums(estimate, rows, row_names, of_values=False, of_numbers=of_numbers)
    centre, limits = rows @ estimate.interval_centre, sums.limits
    if limits is None and estimate.limits is not None:  # projected
        limits = estimate.limits.max() * np.stack([rows.min(axis=1), rows.max(axis=1)])
    if limits is not None:
        limits = limits + np.where(np.isclose(centre, sums.linear, rtol=1e-12), 0.0, centre - sums.linear)
    return replace(sums, mean=rows @ estimate.values, centre=centre, limits=limits)


def _read_sums(
    estimate: EstimateData, rows: Array, row_names: Sequence[Label], of_values: bool, of_numbers: bool
) -> Moments:
    """The weighted sums of the values or of the statistics, read from the tallies."""
    labels = estimate.domain_labels if of_values else estimate.labels
    try:
        aligned = [(r, r.align(rows, labels, of_values)) for r in estimate.own_readings]
        return sum_moments([reading.moments(own, of_numbers) for reading, own in aligned])
    except NotIdentifiable as error:
        undetermined = list(error.statistics) or list(range(len(rows)))
        if row_names:
            groups = dict.fromkeys(row_names[row] for row in undetermined)
            raise not_identifiable(list(groups), "average of") from None
        columns = _undetermined_columns(estimate, rows[undetermined], labels, of_values)
        raise not_identifiable([labels[column] for column in columns], "statistics of") from None


def _undetermined_columns(
    estimate: EstimateData, rows: Array, labels: tuple[Label, ...], of_values: bool
) -> list[int]:
    """The columns of rows that reports do not determine one by one; all if they are many, or none alone."""
    columns: list[int] = np.flatnonzero(rows.any(axis=0)).tolist()
    if len(columns) > QUICK:
        return columns
    alone = np.eye(len(labels))[columns]
    undetermined: set[int] = set()
    for reading in estimate.own_readings:
        try:
            reading.moments(reading.align(alone, labels, of_values))
        except NotIdentifiable as error:
            undetermined.update(error.statistics)
    return [columns[row] for row in sorted(undetermined)] or columns


def pair_of_sums(estimate: EstimateData, first: Array, second: Array) -> tuple[Array, Array, int, Array]:
    """Two weighted sums of the counts, and the linear ones; their covariance, the reports, and the bias of both."""
    sums = sums_of_values(estimate, np.stack([first, second, first + second]))
    pair = np.stack([sums.mean[:2], sums.linear[:2]])
    return pair, covariance_of_pair(*sums.variance), estimate.reports, bias_of(sums)[:, :2]


def covariance_of_pair(first: float, second: float, both: float) -> Array:
    """The covariance of two sums, from their variances and that of both together."""
    shared = (both - first - second) / 2
    return np.array([[first, shared], [shared, second]])


def bias_of(sums: Moments) -> Array:
    """How far the truth may be below and above each sum on average: two rows."""
    return np.zeros((2, len(sums.mean))) if sums.bias is None else sums.bias


def single(sums: Moments, shift: float = 0.0, whole: float = 1.0) -> Statistic:
    """The only sum as a statistic: divided by `whole`, and then moved by `shift`."""
    value, centre = (shift + float(x[0]) / whole for x in (sums.mean, sums.linear))
    least, most = (-math.inf, math.inf) if sums.limits is None else shift + sums.limits[:, 0] / whole
    error, limits = float(sums.variance[0]) ** 0.5 / whole, (float(least), float(most))
    below, above = (bias_of(sums)[:, 0] / whole).tolist()
    return Statistic(value, error, (below, above), centre=centre, limits=limits)


def with_source(
    estimate: EstimateData, statistic: Statistic, title: Note, about: Note | None = None
) -> Statistic:
    """The statistic with its title, and with the method and the people of this estimate.

    Its warning is that of the estimate, or says that it is biased.
    """
    far = estimate.centre is not None and statistic.is_extended
    return replace(
        statistic,
        method=estimate.method,
        warning=OUTSIDE_UNBIASED if far else prior_warning(estimate),
        about=about,
        title=title,
        people=estimate.people,
        leaning=leaning_note(estimate),
        for_population=all(reading.population for reading in estimate.readings),
    )


def ratio_limits(estimate: EstimateData, top: Array, bottom: Array) -> Ends:
    """What the ratio of two weighted sums can be, if the answer is limited to what is possible."""
    counted = bottom != 0
    if estimate.limits is None or (bottom < 0).any() or top[~counted].any() or not counted.any():
        return UNBOUNDED
    ratios = top[counted] / bottom[counted]
    return float(ratios.min()), float(ratios.max())


def is_moved_by_rounding(estimate: EstimateData, rows: Array) -> bool:
    """Whether rounding to a grid changes the weight that somebody has in one of the rows, one for each value."""
    grids = estimate.own_readings[0].prior.domain.neighbours
    return any((rows[:, low] != rows[:, high]).any() for low, high in grids)


def numbers_of(estimate: EstimateData, numbers: str | Sequence[float] | None) -> tuple[Array, float]:
    """A number for each value, and their mean under the prior; by default those that the query sums, or the labels.

    Numbers are centred before they are added up: some estimates do not add up to the number of reports.
    """
    rows = estimate.own_readings[0].rows
    if numbers is None and rows is not None and estimate.is_sum:
        numbers = rows[0].tolist()
    if numbers is None and not all(isinstance(label, int | float) for label in estimate.domain_labels):
        if estimate.own_readings[0].prior.edges is None:
            raise InvalidInput(
                "numbers",
                numbers,
                "the values are not numbers: give one for each value, or the name of an attribute",
            )
        advice = (
            "the values are cells, and reports do not say where in its cell a number is: give one number for each, "
            "such as (prior.edges[1:] + prior.edges[:-1]) / 2, which makes the answer biased"
        )
        grid = Hint("Prior.grid", purpose="for unbiased means, and for variances")
        raise InvalidInput("numbers", numbers, advice, grid)
    if isinstance(numbers, str):
        points = estimate.own_readings[0].prior.domain.numbers(numbers)
    else:
        each: LabelWeights = estimate.domain_labels if numbers is None else numbers
        points = weights_of("numbers", each, estimate.domain_labels, complete=True)
    return points, float(estimate.own_readings[0].prior.probabilities @ points)


def labels_of(cells: Sequence[tuple[Any, ...]]) -> tuple[Label, ...]:
    """The label of each combination of levels: of a single attribute, the level itself."""
    return tuple(cell[0] if len(cell) == 1 else cell for cell in cells)


def not_averages(argument: str, weights: LabelWeights) -> InvalidInput:
    """The refusal to add up the values of a plan for averages."""
    advice = "the values of a plan for averages are not averages: averages are computed from them"
    return InvalidInput(
        argument, weights, advice, Hint("estimate.averages", purpose="for the average of each group")
    )
