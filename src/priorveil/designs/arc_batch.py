"""The arc mechanism for many priors at once: layout and expected error of every row, in closed form.

The formulas are those of `priorveil.designs.arcs`, with one more axis: `P` is (K, d), a prior in each row, and
a budget's sides are (K,).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priorveil.designs.arcs import Segments, lending_gain
from priorveil.mechanisms.arc.batch import PLACES, ArcBatch, fit_batch, row_windows
from priorveil.priors import Array, Ints, Mask

# Numbers held in memory at a time.
_CELLS = 1 << 17


def design_batch(P: Array, lower: Array, upper: Array, values: Array | None) -> ArcBatch:
    """The lines of all rows, for a histogram or the sum of `values`; a sum takes the better of two orders.

    >>> lines = design_batch(np.array([[0.5, 0.5], [0.05, 0.95]]), np.ones(2), np.ones(2), None)
    >>> lines.heavy.tolist()
    [2, 1]
    """
    heavy = row_windows(lower, upper)[:, None] <= P
    counts = heavy.sum(axis=1)
    order = _order(P, lower, upper, heavy, values)
    lines = fit_batch(P, lower, upper, order, counts)
    many = np.flatnonzero(P.shape[1] - counts > 3)  # three values have but one order on a circle
    if values is None or many.size == 0:
        return lines
    zigzag = _zigzag_order(order[many], counts[many])
    other = fit_batch(P[many], lower[many], upper[many], zigzag, counts[many])
    better = expected_errors(other, P[many], values) < expected_errors(lines.rows(many), P[many], values)
    return lines.replace_rows(many[better], other.rows(better))


def _order(P: Array, lower: Array, upper: Array, heavy: Mask, values: Array | None) -> Ints:
    """The order: heavy values first, the best lender last; then the light ones, ascending by value for a sum."""
    d = P.shape[1]
    rank = np.zeros(d) if values is None else np.argsort(np.argsort(values, kind="stable")) / d
    key = np.where(heavy, 0.0, 1.0 + rank)
    lender = np.argmax(
        np.where(heavy, lending_gain(P, heavy, row_windows(lower, upper)[:, None], values), -np.inf), axis=1
    )
    some = np.flatnonzero(heavy.any(axis=1))
    key[some, lender[some]] = 0.5
    return np.argsort(key, axis=1, kind="stable")


def _zigzag_order(order: Ints, heavy: Ints) -> Ints:
    """A zigzag order: every second light value ascending, then the others descending.

    So neighbours on the circle have similar values.
    """
    d = order.shape[1]
    rank, light = np.arange(d) - heavy[:, None], d - heavy[:, None]
    fold = np.where(rank % 2 == 0, rank // 2, light - 1 - rank // 2)
    key = np.where(rank < 0, rank, fold)
    return np.take_along_axis(order, np.argsort(key, axis=1, kind="stable"), axis=1)


def centre_values(P: Array, values: Array) -> Array:
    """Values less their mean under each row's prior."""
    return np.asarray(values - (P @ values)[:, None])


def parts(rows: int, width: int) -> Iterator[slice]:
    """All rows, some at a time, so that few numbers are in memory."""
    step = max(1, _CELLS // width)
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def expected_errors(lines: ArcBatch, P: Array, values: Array | None) -> Array:
    """The expected squared error per person of each row, of the integers that are sampled."""
    if values is None:
        known = P**2 + posterior_step_variances(lines, P)  # sum_x P_x^2 E[r_x^2]
        return np.asarray(np.maximum(0.0, 1 - known.sum(axis=1)))
    cuts = 2 * (P.shape[1] + 1)
    return np.concatenate([_sum_errors(lines.rows(p), P[p], values) for p in parts(len(P), cuts)])


def _segments(lines: ArcBatch, P: Array) -> Segments:
    along = np.take_along_axis(P, lines.order, axis=1)
    inside = np.maximum(np.minimum(lines.edges[:, 1:], lines.start[:, None]) - lines.edges[:, :-1], 0)
    rim = np.maximum(lines.edges - lines.start[:, None], 0) / PLACES
    tau = np.maximum(lines.window, 1)[:, None] / PLACES
    return Segments(along, along * (inside / np.diff(lines.edges, axis=1)), rim, tau)


def posterior_step_variances(lines: ArcBatch, P: Array) -> Array:
    """The variance of `Pr(x | report)` over the reports of each row: `P_x^2 (E[r_x^2] - 1)`.

    >>> lines = design_batch(np.array([[0.5, 0.5]]), np.ones(1), np.ones(1), None)
    >>> posterior_step_variances(lines, np.array([[0.5, 0.5]])).round(6).tolist()  # (1 - 1 / e)^2 / 4
    [[0.099894, 0.099894]]
    """
    moved = _segments(lines, P).squared_lifts()
    return _by_value(lines, lines.keep_chance[:, None] ** 2 * moved)


def posterior_steps(lines: ArcBatch, P: Array) -> tuple[Array, Array]:
    """How far one report can move `Pr(x | report)` up and down from the prior, in each row.

    A lift is `1 - k` where the window does not reach, and at most `1 - k + k M / max(length, W)` on the circle, `1 - k
    + k M / length` at an output of its own.

    >>> lines = design_batch(np.array([[0.5, 0.5]]), np.ones(1), np.ones(1), None)
    >>> [step.round(6).tolist() for step in posterior_steps(lines, np.array([[0.5, 0.5]]))]
    [[[0.31606, 0.31606]], [[0.31606, 0.31606]]]
    """
    mine = np.arange(P.shape[1]) < lines.heavy[:, None]
    length = np.diff(lines.edges, axis=1)
    highest = PLACES / np.where(mine, length, np.maximum(length, lines.window[:, None]))
    fall = lines.keep_chance[:, None] * P
    return fall * np.maximum(_by_value(lines, highest) - 1, 0.0), fall


def _by_value(lines: ArcBatch, along: Array) -> Array:
    """Numbers that go along the lines, put in the order of the values."""
    found = np.empty_like(along)
    np.put_along_axis(found, lines.order, along, axis=1)
    return found


def _sum_errors(lines: ArcBatch, P: Array, values: Array) -> Array:
    """`Var - E[(sum_x a_x P_x r_x)^2]`."""
    a = np.take_along_axis(centre_values(P, values), lines.order, axis=1)
    along = _segments(lines, P)
    known = lines.keep_chance**2 * along.squared_means(a)
    return np.asarray(np.maximum(0.0, (along.mass * a**2).sum(axis=1) - known))
