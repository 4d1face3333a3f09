"""Values in groups: equal ones, neighbours, similar ones, and those that a margin treats alike.

Columns that are constant on groups of values are found faster, and are as private as they look. Groups are
indices (d,): the group of each value, 0, 1, 2, ...
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse

from priorveil.arrays import Array

Indices = npt.NDArray[np.intp]

FEW_VALUES = 20  # up to so many, exact searches and proofs are affordable
MANY_VALUES = 300  # beyond, searches and bounds work on blocks of values: the time grows with the cube
BLOCKS = 160  # blocks of many values: more of them gain a little, and take longer
_DIRECTIONS = 64  # random sums of more statistics from which their main direction is computed


def equal_groups(rows: Array) -> Indices:
    """The values with the same numbers in all rows (m, d).

    >>> equal_groups(np.array([[0.2, 0.3, 0.2, 0.3], [1.0, 1.0, 1.0, 2.0]]))
    array([0, 1, 0, 2])
    """
    return np.unique(rows, axis=1, return_inverse=True)[1].ravel()


def neighbour_groups(prior: Array, values: Array, count: int) -> Indices:
    """At most `count` or so blocks of neighbouring values, about equal in mass; equal values stay together.

    >>> neighbour_groups(np.full(4, 0.25), np.array([3.0, 0.0, 1.0, 2.0]), 2)
    array([1, 0, 0, 1])
    """
    order = np.argsort(values, kind="stable")
    middle = np.cumsum(prior[order]) - prior[order] / 2
    quantile = np.minimum((middle * count).astype(int), count - 1)
    changes = np.diff(quantile, prepend=quantile[0]) > 0
    changes &= np.diff(values[order], prepend=values[order[0]]) > 0
    labels = np.empty(len(prior), np.intp)
    labels[order] = np.cumsum(changes)
    return labels


def similar_groups(prior: Array, rows: Array, count: int) -> Indices:
    """At most `count` or so blocks of values that count nearly the same in centred `rows` of statistics.

    They are neighbours in the main direction of the statistics, with about equal shares of the mass and of `P^(1/3)`
    times the distance to the next value to the power 2/3, half of each. The second share is the density of points at
    which a curve is interpolated best.

    >>> similar_groups(np.full(4, 0.25), np.array([[1.0, -1.0, 1.1, -1.1]]), 2)
    array([1, 0, 1, 0])
    """
    root = np.sqrt(prior)
    if len(rows) > _DIRECTIONS:
        rows = np.random.default_rng(0).standard_normal((_DIRECTIONS, len(rows))) @ rows
    main = np.linalg.svd(rows * root, full_matrices=False)[2][0] / root
    main = main * np.sign(main @ rows[0] or 1.0)
    order = np.argsort(main, kind="stable")
    steps = np.linalg.norm(np.diff(rows[:, order], append=rows[:, order[-1:]]), axis=0)
    share = np.cbrt(prior[order] * steps**2)
    share[order] = share / (share.sum() or 1.0)
    return neighbour_groups((prior + share) / 2, main, count)


def margin_groups(rows: Array) -> list[Indices]:
    """The groups of values that each margin treats alike.

    A margin is a part of the rows that adds up to a constant; the last part may not.

    >>> margin_groups(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0]]))
    [array([1, 1, 0, 0]), array([1, 0, 1, 0])]
    """
    rows = rows[np.ptp(rows, axis=1) > 0]
    ends = np.flatnonzero(np.ptp(np.cumsum(rows, axis=0), axis=1) < 1e-9) + 1
    return [equal_groups(block) for block in np.split(rows, ends) if len(block)]


def indicators(groups: Indices) -> Array:
    """A row for each group, with ones for its values."""
    return np.equal.outer(np.arange(groups.max() + 1), groups).astype(np.float64)


def group_means(prior: Array, rows: Array, groups: Indices) -> Array:
    """The statistics (m, n) of groups: the means over their values."""
    shares = prior / np.bincount(groups, prior)[groups]
    return np.asarray(rows @ scipy.sparse.csr_array((shares, (np.arange(len(groups)), groups))))


def ranks(numbers: Array) -> Array:
    """The place of each number in rising order."""
    return np.argsort(np.argsort(numbers, kind="stable")).astype(float)


def distinct_rows(table: Array) -> Array:
    """The rows that differ from all rows before them, up to rounding.

    >>> distinct_rows(np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0 + 1e-14]]))
    array([[1., 2.],
           [0., 1.]])
    """
    return np.asarray(table[first_places(table)])


def first_places(table: Array) -> Indices:
    """Where the rows are that differ from all rows before them."""
    first: dict[bytes, int] = {}
    for place, row in enumerate(np.round(table, 10) + 0.0):
        first.setdefault(row.tobytes(), place)
    return np.array(list(first.values()), dtype=np.intp)


def fewer_rows(rows: Array) -> Array:
    """At most as many rows as values, with the same products of columns."""
    return rows if len(rows) <= rows.shape[1] else np.asarray(np.linalg.qr(rows, mode="r"))
