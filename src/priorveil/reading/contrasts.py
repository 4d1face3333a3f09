"""Contrasts and ratios of the numbers of an estimate, single ones, and their covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from numbers import Real

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import Hint, InvalidInput, TooLarge
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.domain import label_positions
from priorveil.priors.label_texts import first_labels
from priorveil.reading.estimate_data import EstimateData
from priorveil.reading.estimate_notes import ABOUT_CELLS, ABOUT_POINTS
from priorveil.reading.label_weights import LabelWeights, weights_of
from priorveil.reading.statistics import Statistic, ratio_of
from priorveil.reading.weighted_sums import (
    is_moved_by_rounding,
    not_averages,
    pair_of_sums,
    ratio_limits,
    single,
    sums_of_statistics,
    with_source,
)

_MOST_PAIRED = 2_000  # statistics whose covariance is written out


def covariance(estimate: EstimateData) -> Array:
    """The covariance of `values`; see `Estimate.covariance`."""
    size = len(estimate.values)
    if size > _MOST_PAIRED:
        message = f"the covariance of {size:,} statistics has too many entries to write out"
        raise TooLarge(message, Hint("estimate.contrast(weights)", purpose="to compute single entries"))
    matrix = np.zeros((size, size))
    for reading in estimate.own_readings:
        order = label_positions(reading.labels, estimate.labels)
        matrix += reading.covariance()[np.ix_(order, order)]
    return matrix


def contrast(estimate: EstimateData, weights: LabelWeights) -> Statistic:
    """A weighted sum of `values`; see `Estimate.contrast`."""
    if estimate.number_by_group is not None:
        raise not_averages("weights", weights)
    row = weights_of("weights", weights, estimate.labels)[None]
    sums_numbers = all(reading.sums_numbers for reading in estimate.own_readings)
    sums = sums_of_statistics(estimate, row, of_numbers=sums_numbers)
    found = with_source(estimate, single(sums), Note("contrast"), _about(estimate, row[0]))
    return replace(found, is_total=True)


def ratio(estimate: EstimateData, top: LabelWeights, bottom: LabelWeights) -> Statistic:
    """The people in `top` as a share of those in `bottom`; see `Estimate.ratio`."""
    rows = _value_weights(estimate, "top", top), _value_weights(estimate, "bottom", bottom)
    found = ratio_of(*pair_of_sums(estimate, *rows), ratio_limits(estimate, *rows))
    about = ABOUT_POINTS if is_moved_by_rounding(estimate, np.stack(rows)) else None
    return with_source(estimate, found, _ratio_title(estimate, *rows), about)


def _ratio_title(estimate: EstimateData, top: Array, bottom: Array) -> Note:
    """The name of a ratio, which shows the values of both sums if these have weight one, and others none."""
    if np.isin((top, bottom), (0, 1)).all():
        return Note("ratioOf", {"top": _values_in(estimate, top), "bottom": _values_in(estimate, bottom)})
    return Note("ratioOfSums")


def _values_in(estimate: EstimateData, row: Array) -> list[Label]:
    return [label for label, weight in zip(estimate.domain_labels, row, strict=True) if weight]


def _value_weights(estimate: EstimateData, argument: str, weights: LabelWeights) -> Array:
    """A weight for each value; the label of a statistic stands for the row of that statistic."""
    rows, domain, values = estimate.own_readings[0].rows, estimate.domain_labels, set(estimate.domain_labels)
    own = [] if rows is None else [i for i, label in enumerate(estimate.labels) if label not in values]
    if np.iterable(weights) and not isinstance(weights, Mapping | Set | np.ndarray):
        numbers = {x for x in weights if isinstance(x, Real) and not isinstance(x, bool)}
        if len(numbers & values.union(estimate.labels)) == len(domain):
            advice = (
                "these can be labels or weights: give a mapping {label: weight}, or a numpy array of weights"
            )
            raise InvalidInput(argument, weights, advice)
    row = weights_of(argument, weights, domain, [estimate.labels[i] for i in own])
    if estimate.number_by_group is not None and row[len(domain) :].any():
        raise not_averages(argument, weights)
    return row if rows is None else row[: len(domain)] + row[len(domain) :] @ rows[own]


def single_value(estimate: EstimateData, label: Label) -> Statistic:
    """The number of one label."""
    if label not in estimate.labels:
        raise _unknown_label(label, estimate.labels)
    at = estimate.labels.index(label)
    about = _about(estimate, np.eye(1, len(estimate.labels), at)[0])
    found = with_source(estimate, single(estimate.moments_at([at])), Note("label", {"label": label}), about)
    return replace(found, is_total=True)


def _about(estimate: EstimateData, weights: Array) -> Note | None:
    """A note if a weighted sum of `values` is about points or one number for each cell, not people's own."""
    if estimate.sums_over_cells:
        return ABOUT_CELLS
    if not estimate.histogram or not estimate.readings:
        return None
    cells = estimate.readings[0].rows
    of_values = weights if cells is None else weights @ cells
    return ABOUT_POINTS if is_moved_by_rounding(estimate, of_values[None]) else None


def _unknown_label(label: object, labels: Sequence[Label]) -> InvalidInput:
    """The refusal of a label. Labels of several attributes are shown as they are written in Python."""
    if not isinstance(labels[0], tuple):
        return InvalidInput("label", label, f"choose one of {first_labels(labels)}")
    margin = Hint("estimate.margin", purpose="for the levels of one attribute")
    return InvalidInput("label", label, f"choose one of {first_labels(list(map(repr, labels)))}", margin)
