"""Polyhedral cones of allowed columns: their extreme rays, columns near the constant one, and a linear programme.

A notion is a cone: a column `q` is allowed iff `A @ q >= 0` and `q >= 0`. Scaled to `P @ r = 1` the cone is a
polytope; utilities are convex, so the best channel mixes its vertices. For small `d` they are all listed and one
linear programme is exact. For larger `d` see `cone_pricing`.

Every bound comes from multipliers `y >= 0` on the rows of `A`: with `w = P r` on the simplex,
`g @ w <= (g + B' y) @ w <= max(g + B' y)` where `B = A / P`. That holds for any `y`, so no bound trusts
the solver's tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Mask
from priorveil.designs.column_generation import new_model, run_model
from priorveil.designs.stopping import MOST_ENTRIES, Stop, never
from priorveil.designs.tolerances import SLACK
from priorveil.designs.value_groups import Indices
from priorveil.errors import Infeasible, TooLarge
from priorveil.notions import ExactOrFloat

MOST_RAYS = 8_000  # extreme rays that are listed: with more, search for the best ones instead
EMPTY = "the inequalities allow no column at all, not even the constant one"


Integers = npt.NDArray[Any]  # Python integers: they have no largest one
Signs = npt.NDArray[np.int8]


def extreme_rays(A: ExactOrFloat, P: Array, most: int = MOST_RAYS, stop: Stop = never) -> Array:
    """All vertices (n, d) of `{r >= 0, A r >= 0, P @ r = 1}`, by the double description method.

    Starts from the orthant and cuts with one row of `A` after another; a cut keeps the rays on its side and
    joins adjacent rays across it. `A` may have fractions or floats, and rays are whole numbers, so that none is missed:
    a bound rests on the list. Rows that rounding has moved meet in many more rays than exact ones.
    Equal or redundant rows, and cones without interior, need no special treatment. More than `most` rays, or a
    `stop` request, raise `TooLarge`.

    >>> extreme_rays(np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5]))
    array([[0.5, 1.5],
           [1.5, 0.5]])
    """
    d = len(P)
    rays, on = np.eye(d, dtype=object), ~np.eye(d, dtype=bool)
    rows = np.array(list(dict.fromkeys(map(_whole_row, A))), dtype=object).reshape(-1, d)
    signs = np.sign(rows.T).astype(np.int8)  # of `rays @ rows.T`
    while (cuts := (signs < 0).any(axis=0)).any():  # a row that cuts nothing now never will
        _require_time(stop)
        rows, signs = rows[cuts], signs[:, cuts]
        first = int(np.argmin((signs > 0).sum(axis=0) * (signs < 0).sum(axis=0)))
        rays, on, signs = _cut_cone(rays, on, signs, rows, first, stop)
        if not len(rays):
            raise Infeasible(EMPTY)
        if len(rays) > most:
            raise TooLarge(f"more than {most:,} extreme columns: too many to list")
    lifts = np.array([[entry / max(ray) for entry in ray] for ray in rays])
    lifts /= (lifts @ P)[:, None]
    return np.asarray(lifts[np.lexsort(lifts.T[::-1])])


def _whole_row(row: Iterable[float | Fraction]) -> tuple[int, ...]:
    """The row as integers without a common factor, in the same proportions."""
    pairs = [number.as_integer_ratio() for number in row]
    total = math.lcm(*(below for _, below in pairs))
    return _lowest_terms([above * (total // below) for above, below in pairs])


def _lowest_terms(row: Sequence[int]) -> tuple[int, ...]:
    factor = math.gcd(*row) or 1
    return tuple(number // factor for number in row)


def _require_time(stop: Stop) -> None:
    if stop():
        raise TooLarge("not enough time to list all extreme columns: allow more time")


def _scale_rows(A: Array) -> Array:
    """Rows scaled to largest entry one, zero rows left out."""
    size = np.abs(A).max(axis=1, initial=0.0)
    return np.asarray(A[size > 0] / size[size > 0, None])


def _cut_cone(
    rays: Integers, on: Mask, signs: Signs, rows: Integers, first: int, stop: Stop
) -> tuple[Integers, Mask, Signs]:
    """The part of a cone where `rows[first] @ r >= 0`: its rays, the hyperplanes they lie on, and their signs.

    A new ray lies between two old ones. It is on the side of a row where they are, and only if they are on both sides
    this has to be computed.
    """
    side, height = signs[:, first], rays @ rows[first]
    up, down = _adjacent_pairs(on, np.flatnonzero(side > 0), np.flatnonzero(side < 0), rays.shape[1], stop)
    joined = height[up, None] * rays[down] - height[down, None] * rays[up]
    fresh = np.array(list(map(_lowest_terms, joined)), dtype=object).reshape(joined.shape)
    between = np.sign(signs[up] + signs[down])
    i, j = np.nonzero(signs[up] * signs[down] < 0)
    between[i, j] = np.sign((fresh[i] * rows[j]).sum(axis=1))
    keep = side >= 0
    signs = np.vstack([signs[keep], between])
    table = np.vstack([on[keep], on[up] & on[down]])
    return np.vstack([rays[keep], fresh]), np.column_stack([table, signs[:, first] == 0]), signs


def _adjacent_pairs(on: Mask, above: Indices, below: Indices, d: int, stop: Stop) -> tuple[Indices, Indices]:
    """Pairs across the cut that share a two-dimensional face: no third ray lies on all they have in common.

    A ray on exactly `d - 1` hyperplanes is simple: any `d - 2` of them define an edge, without a test.
    """
    table = on.astype(np.float32)
    i, j = np.nonzero(table[above] @ table[below].T >= d - 2)
    i, j = above[i], below[j]
    simple = on.sum(axis=1) == d - 1
    good = simple[i] | simple[j]
    doubtful = np.flatnonzero(~good)
    block = max(1, MOST_ENTRIES // max(1, len(on)))
    for start in range(0, len(doubtful), block):
        _require_time(stop)
        part = doubtful[start : start + block]
        common = table[i[part]] * table[j[part]]
        holds = common @ table.T >= common.sum(axis=1, keepdims=True) - 0.5
        good[part] = holds.sum(axis=1) == 2
    return i[good], j[good]


def nearby_columns(A: Array, P: Array, others: Array | None = None) -> Array:
    """Allowed columns that need no solver: the constant one, and from there towards each value and away from it.

    Each goes as far as the cone does, so they mix to channels that tell all values apart: a start for the engine, and
    an answer where there is no time for the best one. Others (K, d), with `P @ r = 1`, are directions too.

    >>> nearby_columns(np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])).round(9)
    array([[1. , 1. ],
           [1.5, 0.5],
           [0.5, 1.5],
           [0.5, 1.5],
           [1.5, 0.5]])
    """
    towards = np.eye(len(P)) - P[:, None]
    directions = np.vstack([towards, -towards, *([] if others is None else [others - 1.0])])
    rows = np.vstack([A, np.eye(len(P))])
    moves, slack = directions @ rows.T, np.maximum(rows.sum(axis=1), 0.0)
    steps = np.divide(slack, -moves, out=np.full_like(moves, np.inf), where=moves < 0).min(axis=1)
    steps = np.where(np.isfinite(steps), steps, 0.0)  # the constant column again
    return np.vstack([np.ones(len(P)), 1.0 + (1 - 1e-12) * steps[:, None] * directions])


class Program:
    """`max g @ r` over `{r >= 0, A r >= 0, P @ r = 1}` in a live HiGHS model; only the cost changes.

    The variables are `w = P r`, which lie on the simplex, so everything is scaled alike.
    """

    def __init__(self, A: Array, P: Array) -> None:
        self.P = P
        self._rows = _scale_rows(A / P)
        d = len(P)
        self._model = new_model(1e-10, presolve="off", solver="simplex")
        nothing = np.empty(0, np.int32)
        self._model.addCols(d, np.zeros(d), np.zeros(d), np.ones(d), 0, nothing, nothing, np.empty(0))
        self._add(np.ones((1, d)), 1.0, 1.0)
        self._add(self._rows, 0.0, highspy.kHighsInf)

    def _add(self, rows: Array, lower: float, upper: float) -> None:
        n, d = rows.shape
        starts = (d * np.arange(n)).astype(np.int32)
        index = np.tile(np.arange(d, dtype=np.int32), n)
        self._model.addRows(n, np.full(n, lower), np.full(n, upper), n * d, starts, index, rows.ravel())

    def maximise(self, g: Array) -> tuple[Array, float]:
        """The best `r` and a proven upper bound on `g @ r`."""
        answer = self.maximise_within(g, np.empty((0, len(g))))
        if answer is None:
            raise Infeasible(EMPTY)
        return answer

    def maximise_within(self, g: Array, more: Array) -> tuple[Array, float] | None:
        """`maximise` with further rows `more @ r >= 0`, for this call only; None if they leave no column."""
        cost = g / self.P
        scale = max(float(np.ptp(cost)), 1e-300)  # the simplex makes a common shift a constant
        shifted = (cost - cost.min()) / scale
        self._model.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), shifted)
        rows = np.vstack([self._rows, _scale_rows(more / self.P)])
        fresh = len(rows) - len(self._rows)
        if fresh:
            self._add(rows[-fresh:], 0.0, highspy.kHighsInf)
        status, solution = run_model(self._model), self._model.getSolution()
        if fresh:
            first = 1 + len(self._rows)
            self._model.deleteRows(fresh, np.arange(first, first + fresh, dtype=np.int32))
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise Infeasible(f"the linear programme of the pricing did not finish: {status}")
        w = np.maximum(np.asarray(solution.col_value), 0.0)
        y = scale * np.maximum(-np.asarray(solution.row_dual)[1:], 0.0)
        slack = SLACK * np.max(np.abs(cost) + y @ np.abs(rows))
        return w / w.sum() / self.P, float(np.max(cost + y @ rows) + slack)


def program_of(A: Array, p: Array) -> Program | None:
    """The programme of a prior of a set; None if it gives a value no mass: the programme is scaled by the prior."""
    return Program(A, p) if p.all() else None
