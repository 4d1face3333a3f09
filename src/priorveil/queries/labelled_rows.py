"""Statistics by their names, and whether those of several plans can be added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.priors import Label

_SAME_WEIGHT = 1e-9  # a relative difference that computing the same weights in two ways can make


class LabelledRows(NamedTuple):
    """The names of statistics, and a row of weights over the `values` for each; None stands for the identity."""

    labels: Sequence[Label]
    values: Sequence[Label] = ()
    rows: Array | None = None

    def weights(self, labels: Sequence[Label], values: Sequence[Label]) -> Array:
        """The weights of these values in the statistics with these names."""
        rows, columns = ({name: at for at, name in enumerate(names)} for names in (self.labels, self.values))
        W = np.eye(len(columns)) if self.rows is None else self.rows
        return np.asarray(W[np.ix_([rows[label] for label in labels], [columns[value] for value in values])])


def require_same_statistics(argument: str, parts: Iterable[tuple[str, LabelledRows]]) -> None:
    """Refuse statistics that cannot be added up: with different names, or with different weights of the same value.

    The order of names and values does not matter. A value that only some parts have may have any weight: sums over
    different values can be added up.

    >>> parts = {cohort: LabelledRows(["sum"], labels, np.eye(1, 2)) for cohort, labels in (("A", "ab"), ("B", "ba"))}
    >>> require_same_statistics("cohorts", parts.items())
    Traceback (most recent call last):
    priorveil.errors.InvalidInput: cohorts: the statistic 'sum' has other weights in B than in A; \
use the same query, for values in the same order
    """
    (name, first), *others = parts
    for other, part in others:
        if odd := set(part.labels) ^ set(first.labels):
            label = next(label for label in (*part.labels, *first.labels) if label in odd)
            has, lacks = (name, other) if label in first.labels else (other, name)
            advice = f"they have different labels: the statistic {label!r} of {has} is missing in {lacks}"
            raise InvalidInput(argument, NOT_SHOWN, f"{advice}; use the same query and values for all")
        values = set(part.values)
        shared = [value for value in first.values if value in values]
        if not shared or (part.rows is first.rows is None and values == set(part.labels)):
            continue  # nothing to compare, or two histograms
        expected, weights = (each.weights(first.labels, shared) for each in (first, part))
        differ = ~np.isclose(expected, weights, rtol=_SAME_WEIGHT, atol=0).all(axis=1)
        if differ.any():
            label = first.labels[int(differ.argmax())]
            advice = f"the statistic {label!r} has other weights in {other} than in {name}"
            raise InvalidInput(
                argument, NOT_SHOWN, f"{advice}; use the same query, for values in the same order"
            )
