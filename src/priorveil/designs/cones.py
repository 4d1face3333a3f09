"""Cones of allowed columns: their extreme rays, and the best channel over them.

A notion is a cone: a column `q` is allowed iff `A @ q >= 0` and `q >= 0`. Scaled to `P @ r = 1` the
cone is a polytope; utilities are convex, so the best channel mixes its vertices. For small `d` they are
all listed and one linear programme is exact. For larger `d` the pricings of
`priorveil.designs.branching` plug into `priorveil.designs.columns.solve`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.optimize

from priorveil.designs.columns import Solution, relative_gap
from priorveil.designs.limits import Stop, never
from priorveil.errors import Infeasible, TooLarge

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]
Utility = Callable[[Array], Array]

LISTING = 2 / 3  # the share of the time that listing extreme rays may take, where there is another way
_ZERO = 1e-11  # a ray on a hyperplane, both scaled to largest entry one
_PAIRS = 4_000_000  # entries of one block of comparisons
EMPTY = "the inequalities allow no column at all, not even the constant one"


def extreme_rays(A: Array, P: Array, most: int = 8_000, stop: Stop = never) -> Array:
    """All vertices (n, d) of `{r >= 0, A r >= 0, P @ r = 1}`, by the double description method.

    Starts from the orthant and cuts with one row of `A` after another; a cut keeps the rays on its side and
    joins adjacent rays across it. New rays lie between allowed ones, so rounding stays in the cone.
    Equal or redundant rows, and cones without interior, need no care. More than `most` rays, or
    more than there is time for, raise TooLarge.

    >>> extreme_rays(np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5]))
    array([[0.5, 1.5],
           [1.5, 0.5]])
    """
    d = len(P)
    rays, on = np.eye(d), ~np.eye(d, dtype=bool)
    rows = _distinct(A)
    while len(rows):
        _go_on(stop)
        side = rays @ rows.T
        side[np.abs(side) <= _ZERO] = 0.0
        cuts = (side < 0).any(axis=0)
        rows, side = rows[cuts], side[:, cuts]  # a row that cuts nothing now never will
        if not len(rows):
            break
        work = (side > 0).sum(axis=0) * (side < 0).sum(axis=0)
        first = int(np.argmin(work))
        rays, on = _cut(rays, on, side[:, first], stop)
        rows = np.delete(rows, first, axis=0)
        if not len(rays):
            raise Infeasible(EMPTY)
        if len(rays) > most:
            raise TooLarge(f"more than {most:,} extreme rays: use column generation")
    rays = rays / (rays @ P)[:, None]
    return np.asarray(rays[np.lexsort(rays.T[::-1])])


def _go_on(stop: Stop) -> None:
    if stop():
        raise TooLarge(
            "there was no time to list all extreme rays: use column generation, or allow more time"
        )


def _distinct(A: Array) -> Array:
    """Rows scaled to largest entry one, zero rows and repetitions left out."""
    size = np.abs(A).max(axis=1, initial=0.0)
    rows = A[size > 0] / size[size > 0, None]
    kept = np.unique(np.round(rows, 13), axis=0, return_index=True)[1]
    return np.asarray(rows[np.sort(kept)])


def _cut(rays: Array, on: Mask, side: Array, stop: Stop) -> tuple[Array, Mask]:
    """Rays, and the hyperplanes they lie on, of the part of a cone where `side >= 0`."""
    keep = side >= 0
    above, below = np.flatnonzero(side > 0), np.flatnonzero(side < 0)
    up, down = _adjacent(on, above, below, rays.shape[1], stop)
    fresh = side[up, None] * rays[down] - side[down, None] * rays[up]
    fresh = np.maximum(fresh / np.maximum(fresh.max(axis=1, keepdims=True), 1e-300), 0.0)
    touch = np.concatenate([side[keep] == 0, np.ones(len(fresh), dtype=bool)])
    table = np.vstack([on[keep], on[up] & on[down]])
    return np.vstack([rays[keep], fresh]), np.column_stack([table, touch])


def _adjacent(on: Mask, above: Index, below: Index, d: int, stop: Stop) -> tuple[Index, Index]:
    """Pairs across the cut that share a two-dimensional face: no third ray lies on all they have in common.

    A ray on exactly `d - 1` hyperplanes is simple: any `d - 2` of them hold an edge; no test is needed.
    """
    table = on.astype(np.float32)
    i, j = np.nonzero(table[above] @ table[below].T >= d - 2)
    i, j = above[i], below[j]
    simple = on.sum(axis=1) == d - 1
    good = simple[i] | simple[j]
    doubtful = np.flatnonzero(~good)
    block = max(1, _PAIRS // max(1, len(on)))
    for start in range(0, len(doubtful), block):
        _go_on(stop)
        part = doubtful[start : start + block]
        common = table[i[part]] * table[j[part]]
        holds = common @ table.T >= common.sum(axis=1, keepdims=True) - 0.5
        good[part] = holds.sum(axis=1) == 2
    return i[good], j[good]


def nearby_columns(A: Array, P: Array) -> Array:
    """Allowed columns that cost nothing: from the constant one towards each input and away from it.

    Each goes as far as the cone does, so they mix to channels that tell all inputs apart: something to
    answer with where there is no time for the best.

    >>> nearby_columns(np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])).round(9)
    array([[1.5, 0.5],
           [0.5, 1.5],
           [0.5, 1.5],
           [1.5, 0.5]])
    """
    slack = A.sum(axis=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(A < 0, slack / -A, np.inf).min(axis=0, initial=np.inf)
        down = np.where(A > 0, slack / A, np.inf).min(axis=0, initial=np.inf)
    steps = np.vstack([np.diag(np.clip(up, 0.0, 1 / P)), -np.diag(np.clip(down, 0.0, 1.0))])
    columns = 1.0 + (1 - 1e-12) * steps
    return np.asarray(columns / (columns @ P)[:, None])


def box_rays(P: Array, lo: float, hi: float) -> Array:
    """All vertices of `{lo <= r <= hi, P @ r = 1}`, exact for d <= 14.

    With `r = lo + (hi - lo) b` a vertex is a set of inputs with `b = 1` and at most one with
    `0 < b < 1`, of prior mass `tau` together.

    >>> box_rays(np.array([0.5, 0.5]), 0.5, 2.0)
    array([[0.5, 1.5],
           [1.5, 0.5]])
    """
    d = len(P)
    if d > 14:
        raise TooLarge(f"d = {d}: listing subsets is for up to 14 inputs; use column generation")
    tau = (1 - lo) / (hi - lo)
    found = []
    subsets = (np.arange(2 ** (d - 1))[:, None] >> np.arange(d - 1)) & 1
    for x in range(d):
        b = np.insert(subsets, x, 0, axis=1).astype(float)
        part = (tau - b @ P) / P[x]
        inside = (part >= -1e-13) & (part <= 1 + 1e-13)
        b = b[inside]
        b[:, x] = np.clip(part[inside], 0.0, 1.0)
        found.append(b)
    b = np.vstack(found)
    b = b[np.unique(np.round(b, 12), axis=0, return_index=True)[1]]
    return np.asarray(np.clip(lo + (hi - lo) * b, lo, hi))


def staircase_rays(P: Array, epsilon: float) -> Array:
    """All vertices of the LDP cone: entries 1 and `e^eps` only, scaled to `P @ r = 1`, for d <= 14.

    >>> staircase_rays(np.array([0.5, 0.5]), np.log(3.0))
    array([[1.5, 0.5],
           [0.5, 1.5]])
    """
    d = len(P)
    if d > 14:
        raise TooLarge(f"d = {d}: listing subsets is for up to 14 inputs; use column generation")
    subsets = (np.arange(1, 2**d - 1)[:, None] >> np.arange(d)) & 1 if d > 1 else np.zeros((1, 1))
    rays = np.where(subsets == 1, np.exp(epsilon), 1.0)
    return np.asarray(rays / (rays @ P)[:, None])


def best_mixture(rays: Array, utility: Utility) -> Solution:
    """The best channel of these columns: `max sum_y lam_y phi(r_y)` subject to `sum_y lam_y r_y = 1`.

    `utility` takes columns as rows (n, d). With all extreme rays the bound is one for the whole cone:
    `sum(mu) + max_y [phi(r_y) - mu @ r_y]` for the duals `mu`.

    >>> rays = np.array([[0.5, 1.5], [1.5, 0.5]])
    >>> round(best_mixture(rays, lambda r: (0.5 * r[:, 1]) ** 2).value, 12)
    0.3125
    """
    gains = utility(rays)
    weights, mu = mix(rays, gains)
    columns, weights = sharpened(rays, weights)
    value = float(utility(columns) @ weights)
    bound = max(value, float(mu.sum() + np.max(gains - rays @ mu)))
    gap = relative_gap(value, bound, float(utility(np.ones((1, rays.shape[1])))[0]))
    return Solution(columns, weights, value, bound, gap, 1, True, mu)


def mix(rays: Array, gains: Array) -> tuple[Array, Array]:
    """Weights and duals of the master.

    A linear part of the gains changes nothing, so it is taken out first and the rest scaled: small budgets,
    where all columns are nearly constant, keep their digits. So is each row of the equations: a column that speaks
    for a rare input alone goes far there.
    """
    reach = np.maximum(np.abs(rays - 1.0).max(axis=0), 1e-6)
    table = np.column_stack([np.ones(len(rays)), (rays - 1.0) / reach])
    linear = np.linalg.lstsq(table, gains, rcond=1e-9)[0]  # P @ (r - 1) = 0: one direction is free
    rest = gains - table @ linear
    scale = max(float(np.abs(rest).max()), 1e-300)
    side = np.eye(1, table.shape[1])[0]
    found = scipy.optimize.linprog(-rest / scale, A_eq=table.T, b_eq=side, method="highs-ds")
    if found.status != 0:
        raise Infeasible(f"these columns do not mix to a channel: {found.message}")
    slope = linear[1:] - scale * np.asarray(found.eqlin.marginals)[1:]
    return np.asarray(found.x), np.asarray(slope / reach)


def sharpened(rays: Array, weights: Array) -> tuple[Array, Array]:
    """The columns in use, their weights moved as little as makes the rows add up to one in full precision."""
    used = weights > 1e-12
    columns, weights = rays[used], weights[used]
    exact = weights + np.linalg.lstsq(columns.T, 1.0 - weights @ columns, rcond=None)[0]
    better = np.abs(exact @ columns - 1).max() <= np.abs(weights @ columns - 1).max()
    return (columns, exact) if better and exact.min() >= 0 else (columns, weights)
