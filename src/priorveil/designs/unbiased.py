"""Unbiased designs: the channel whose reports alone tell most about a distribution, or about linear statistics of it.

At `p = P` one report carries the Fisher information `J = sum_y lam_y r_y r_y'` about `p`.
Probabilities add up to one, so only directions `V` of the simplex (vectors that sum to zero) are to be
learnt, and the best unbiased estimator has, per user and summed over the values, the variance

    tr (V' J V)^-1  =  tr J^-1 - P . P            (the second form because J P = 1).

Write `z = V' r`. To choose columns and weights is then an A-optimal experimental design,

    min  tr S^-1,  S = sum_y lam_y z_y z_y'    subject to    sum_y lam_y z_y = 0,  sum_y lam_y = 1,

convex in `lam`. Since `tr S^-1 >= 2 s tr N - s^2 tr N^2 S` for any symmetric `N` and any number
`s`, and `sum_y lam_y nu . z_y = 0` for any `nu`,

    every design's variance  >=  (tr N)^2 / max_r [ |N z|^2 - nu . z ],

which is the proven bound (equality at the optimum, where `N = S^-1`). The maximum runs over the vertices
of the allowed columns: exact when they can be listed. Otherwise `information_bound` uses the `relaxation`.
For statistics `W @ shares` the variance is `tr(W V S^-1 V' W')`, which `Statistics` writes in other coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from priorveil.arrays import Array
from priorveil.designs.box_pricing import Box, LdpCone, SumPricing
from priorveil.designs.engine import (
    Labels,
    Priced,
    Solution,
    basic_weights,
    distinct_rows,
)
from priorveil.designs.limits import UNLIMITED, Limits, Stop, never
from priorveil.designs.relaxation import MOST_VALUES, SecondMoments, diagonal_bound, unbiased_bound
from priorveil.errors import Infeasible, NotIdentifiable, TooLarge
from priorveil.information import gain_share, lift_variance, tangent, variance_bound
from priorveil.priors.budget import window_mass

_LEAST_WEIGHT = 0.03  # of a direction in the coordinates, relative to the largest
_ESTIMABLE = 1e-6  # how far outside the span of the columns a statistic may lie by rounding
_RIDGE = 0.2  # of directions that no target needs: what keeps `S` regular until the gap is closed
_MOST_SEARCHED = 150  # values beyond which all columns for margins look at one of them
_MOST_GROUPS = 1_000  # values that a margin, or other statistics, may tell apart
_PROGRESS = 3e-4  # the share of the variance that a round of search in margins has to save
_MOST_ENTRIES = 3_500_000  # of the table of a channel
_EVEN_ROUNDS, _EVEN_STARTS = 24, 60
# The power of the roots of `B` in random columns (0.5, and more since vertices have edges); columns for each direction,
# at least: random ones surround the constant column if there are more than two.
_SPECTRUM, _FEWEST = 0.6, 2.2
# Directions of various statistics from which many columns with good weights are a quick answer, and beyond which
# they are better than the best weights of fewer.
_FEW_DIRECTIONS, _MOST_WEIGHED = 80, 200
_STEPS, _REPAIRS = 5, 9  # towards good weights, and repairs in each step
_SHRINK = 0.1  # the least factor of a weight in a repair
_EXCHANGES = 4_000  # rounds of exchanges within the blocks of equal values
_HELD = 1e-7  # size of a direction, relative to the largest, from which weights are corrected along it
_SHRUNK, _SHRUNK_SUM = 1e-3, 1e-9  # what is added to `S`, relative to its mean, to look for columns
_GRID = 32  # points of a grid that the numbers of a sum are rounded to
_OFF = 1e-9  # how far the mean of the lifts may be from one
_RANK = 1e-12  # singular values below this, relative to the largest, are zero
_EXACT = 20_000  # vertices of the box that are still listed
_POOL, _SUM_POOL = 20, 200  # columns per value that column generation may hold, and columns for a sum
_FINE = Limits(1e-6)
# The square of the number of columns, times their length, that are weighed in a second; seconds for that, at least.
_SPEED, _PATIENCE = 1.5e8, 2.5
_MOST_ROUNDS = 500  # of column generation, in case it finds the same columns again and again
_SECONDS = 45.0  # the default time limit


class Statistics:
    """The statistics `W @ shares` of `size` values, in the coordinates of the design; `rows` is `W`, None the identity.

    The coordinates of a lift are `z = basis' (r - 1)`, those of the statistics `targets` (k, d - 1): their variance is
    `tr(T S^-1 T')`. The basis makes `T` the identity, which is written None, where `B = V' W' W V` is well-conditioned.
    `roots` are those of the eigenvalues of `B`, relative to the largest. If all lifts and rows lie in
    a `plane`, given by an orthonormal basis (d, n) of vectors that sum to zero, coordinates in it are enough.
    """

    def __init__(self, size: int, rows: Array | None = None, plane: Array | None = None) -> None:
        self.rows, plane = rows, tangent(size) if plane is None else plane
        factors = np.eye(size - 1) if rows is None else rows @ plane
        _, roots, vectors = np.linalg.svd(factors, full_matrices=len(factors) < plane.shape[1])
        self.roots: Array = np.concatenate([roots, np.zeros(size)])[: plane.shape[1]] / roots[0]
        scale = np.maximum(self.roots, _LEAST_WEIGHT)
        self.basis: Array = plane @ (vectors.T / roots[0]) / scale
        targets = np.diag(self.roots / scale)[self.roots > _RANK]
        self.targets: Array | None = None if (self.roots == scale).all() else targets

    def directions(self, lifts: Array) -> Array:
        """The coordinates of lifts (K, d)."""
        return np.asarray((lifts - 1.0) @ self.basis)

    def duals(self, lifts: Array, weights: Array) -> Array:
        """The rows of `T S^-1 V'` and, last, `V nu`: they prove the best bound if the weights are the best."""
        Z, T = self.directions(lifts), self.targets
        S, root = Z.T @ (Z * weights[:, None]), np.sqrt(weights)
        # where no statistic needs a direction, `S` may be singular
        shrunk = 0.0 if T is None else (_SHRUNK if len(T) > 1 else _SHRUNK_SUM) * float(np.diag(S).mean())
        inverse = np.linalg.inv(S + shrunk * np.eye(len(S)))
        slopes = self.basis @ (inverse if T is None else inverse @ T.T)
        squares = ((lifts @ slopes) ** 2).sum(axis=1)
        C = np.hstack([Z, np.ones((len(Z), 1))]) * root[:, None]
        nu = np.linalg.lstsq(C, squares * root, rcond=None)[0]
        return np.vstack([slopes.T, self.basis @ nu[:-1]])


def _solution(
    columns: Array, weights: Array, variance: float, bound: float, iterations: int, target: float
) -> Solution:
    """A solution whose value is a variance."""
    gap = max(0.0, 1 - gain_share(variance, bound, math.inf))
    return Solution(columns, weights, variance, bound, gap, iterations, gap <= target, np.empty(0))


def best_weights(prior: Array, columns: Array, limits: Limits = _FINE, rows: Array | None = None) -> Solution:
    """The best weights for given columns (K, d) of any scale; the bound holds for all mixtures of them.

    The statistics are `rows @ shares`, by default the whole distribution. With every extreme ray of a cone of allowed
    columns this is the best channel of that cone. It looks for as few outputs as `d (d + 1) / 2`. Past the `limits` it
    ends with the first weights that make a channel, and their bound.

    >>> best = best_weights(np.full(3, 1 / 3), np.array([[2.0, 1, 1], [1, 2, 1], [1, 1, 2], [1, 1, 1]]))
    >>> best.weights.round(3), round(best.value, 3)      # the constant column tells nothing
    (array([0.333, 0.333, 0.333]), 10.667)
    """
    lifts = columns / (columns @ prior)[:, None]
    statistics, target = Statistics(len(prior), rows), limits.target
    directions, targets = statistics.directions(lifts), statistics.targets
    try:
        state = _interior_point(directions, target, limits.over, targets)
    except NotIdentifiable:
        kind, wanted = ("values", np.eye(len(prior))) if rows is None else ("statistics", rows)
        equal = np.ones(len(lifts))
        lost = [n for n, row in enumerate(wanted) if math.isinf(lift_variance(lifts, equal, row[None]))]
        named = f"the {kind} {', '.join(map(str, lost))}"
        error = NotIdentifiable(f"the columns do not determine {named}: allow more, or lean on the prior")
        error.statistics = tuple(lost)
        raise error from None
    late = state.value - state.bound > target * state.value
    again = state if late else _reduce(directions, state, target, targets)
    spread = lift_variance(lifts[again.used], again.weights, rows)
    off = float(np.abs(again.weights @ lifts[again.used] - 1).max())
    if off > _OFF or spread > state.value * (
        1 + 2 * target
    ):  # lost to rounding in a direction with hardly any spread
        again, spread = state, lift_variance(lifts[state.used], state.weights, rows)
    bound = min(state.bound, spread)
    with suppress(KeyboardInterrupt):  # it is done anyway
        limits.report(state.iterations, spread, bound)
    return _solution(lifts[again.used], again.weights, spread, bound, state.iterations, 2 * target)


@dataclass(frozen=True, eq=False)
class _State:
    """Where the interior point ended: weights of the `used` columns, the variance `value`, its `bound`."""

    weights: Array
    used: Labels
    value: float
    bound: float
    iterations: int


def _interior_point(
    directions: Array, target: float, stop: Stop = never, targets: Array | None = None, required: bool = True
) -> _State:
    """Newton's method on the optimality conditions, primal and dual together.

    With `q_y = |T S^-1 z_y|^2` they read `s_y = nu . z_y + t - q_y >= 0`, `lam_y s_y = 0` and the
    equations of the weights; each round asks for `lam_y s_y = mu` with a smaller `mu`. (`nu` holds
    `t` last.) Any round's bound is proven, but only its last weights make a channel: after a `stop` request it
    goes on until they do if they are `required`, and gives up otherwise. Directions that no target needs get a `ridge`
    as additional targets, which shrinks with the gap; it is not part of the value, and any `T S^-1` proves a bound.
    """
    best: _State | None = None
    Z, T = _span(directions, targets)
    scale = math.sqrt(float((Z**2).sum(1).mean()))
    Z, (K, n), k, ridge = Z / scale, Z.shape, Z.shape[1] if T is None else len(T), 1.0
    C = np.hstack([Z, np.ones((K, 1))])
    side = np.eye(n + 1)[-1]
    lam = 1 / np.maximum((Z**2).sum(1), 1e-6)  # long columns end up with little weight
    lam, nu, slack, step = lam / lam.sum(), np.zeros(n + 1), np.empty(0), 0.0
    for iteration in range(200):
        values, U = np.linalg.eigh(Z.T @ (Z * lam[:, None]))
        if values[0] <= 0:
            break
        Y, wanted = Z @ U, np.eye(n) if T is None else np.vstack([T @ U, ridge * np.eye(n)])
        X = (Y / values) @ wanted.T
        q, value = (X**2).sum(1), float((wanted[:k] ** 2 / values).sum())
        if iteration == 0:
            nu[-1] = 1.5 * q.max()
            slack = C @ nu - q
        bound = value**2 / float(((X[:, :k] ** 2).sum(1) - Z @ nu[:-1]).max())
        missing = side - C.T @ lam
        if np.abs(missing).max() < 1e-10:
            if best is None or bound / value > best.bound / best.value:
                best = _State(lam, np.arange(K), value / scale**2, bound / scale**2, iteration)
            if value - bound <= target * value:
                break
        if (best is not None or not required) and stop():
            break
        mu = float(lam @ slack) / K * (0.1 if step > 0.5 else 0.5)
        ridge = min(ridge, _RIDGE * math.sqrt(float(lam @ slack) / float((1 / values).sum())))
        try:
            inverse = _newton_inverse(Y, X, values, lam / slack, T is None)
            AC, Ag = inverse(C), inverse((mu / lam - C @ nu + q)[:, None])[:, 0]
            d_nu = np.linalg.lstsq(C.T @ AC, C.T @ Ag - missing, rcond=None)[0]
        except np.linalg.LinAlgError:
            break
        d_lam = Ag - AC @ d_nu
        d_slack = mu / lam - slack - d_lam * slack / lam
        step = min(1.0, 0.95 / max(float((-d_lam / lam).max()), float((-d_slack / slack).max()), 1e-300))
        lam, slack, nu = lam + step * d_lam, slack + step * d_slack, nu + step * d_nu
    if best is None:
        raise Infeasible("no weights make these columns a channel, or the solver could not find them")
    return replace(best, weights=_feasible(C, best.weights, side))


def _good_weights(Z: Array, targets: Array | None, stop: Stop) -> tuple[Array, float]:
    """Weights that make thousands of columns a channel, and their variance, in a few steps from equal weights.

    What is missing in `sum lam z = 0` is removed in proportion to the weights. Then each is multiplied by the root of
    `q_y`, its part of the variance, which raises those of columns that tell more (Silvey, Titterington and Torsney
    1978).
    """
    C, lam, found, least = np.hstack([Z, np.ones((len(Z), 1))]), np.full(len(Z), 1 / len(Z)), None, math.inf
    T = np.eye(Z.shape[1]) if targets is None else targets
    for _ in range(_STEPS):
        lam = _channel_weights(C, lam)
        slopes = np.linalg.solve(Z.T @ (Z * lam[:, None]), T.T)
        value, parts = float((T * slopes.T).sum()), ((Z @ slopes) ** 2).sum(axis=1)
        if value >= least * (1 - _PROGRESS):
            break
        found, least, lam = lam, value, lam * np.sqrt(parts)
        if stop():
            break
    assert found is not None
    return found, least


def _channel_weights(C: Array, lam: Array) -> Array:
    """Weights near these with `C' lam = (0, ..., 0, 1)`; those that would be negative shrink step by step."""
    lam, side = lam / lam.sum(), np.eye(C.shape[1])[-1]
    for _ in range(_REPAIRS):
        factor = 1 + C @ np.linalg.solve(C.T @ (C * lam[:, None]), side - C.T @ lam)
        lam = lam * np.maximum(factor, _SHRINK)
        if factor.min() >= _SHRINK:
            return lam
    raise Infeasible("no mixture of these columns is a channel")


def _span(directions: Array, targets: Array | None) -> tuple[Array, Array | None]:
    """Both in coordinates of the span of the directions; refused if a target is outside of it."""
    _, size, vectors = np.linalg.svd(directions, full_matrices=False)
    within = vectors[size > 1e-10 * size[0]]
    if len(within) == directions.shape[1]:
        return directions, targets
    if targets is None or np.abs(targets - targets @ within.T @ within).max() > _ESTIMABLE:
        raise NotIdentifiable("the columns do not determine the statistics")
    return directions @ within.T, targets @ within.T


def _newton_inverse(
    Y: Array, X: Array, values: Array, ratio: Array, symmetric: bool
) -> Callable[[Array], Array]:
    """How to apply `(H + diag(1 / ratio))^-1`, where `H` is the Hessian of `tr(T S^-1 T')` in the weights.

    It is `2 (z' S^-1 z) (x' x)` for pairs of columns, with `x = T S^-1 z`. In the eigenbasis of `S` its rank is at
    most `n k`, and at most `n (n + 1) / 2` where `T` is the identity (`symmetric`).
    """
    (K, n), k = Y.shape, X.shape[1]
    if (n * (n + 1) // 2 if symmetric else n * k) >= K:
        root = np.sqrt(ratio)[:, None]
        hessian = 2 * ((root * Y / values) @ (root * Y).T) * (X @ X.T)
        hessian[np.arange(K), np.arange(K)] += 1.0
        dense = scipy.linalg.cho_factor(hessian, overwrite_a=True)
        return lambda right: root * scipy.linalg.cho_solve(dense, root * right)
    if symmetric:
        i, j = np.triu_indices(n)
        curvature = (values[i] + values[j]) * np.where(i == j, 1.0, 2.0) / (values[i] * values[j]) ** 2
        F = Y[:, i] * Y[:, j] * np.sqrt(curvature)
    else:
        F = ((Y * np.sqrt(2 / values))[:, :, None] * X[:, None, :]).reshape(K, -1)
    RF = F * ratio[:, None]
    small = scipy.linalg.cho_factor(np.eye(F.shape[1]) + F.T @ RF)
    return lambda right: ratio[:, None] * right - RF @ scipy.linalg.cho_solve(small, RF.T @ right)


def _feasible(C: Array, lam: Array, side: Array) -> Array:
    """Remove the rounding left in `C' lam = side`, in proportion to the weights.

    Directions in which the weights hardly differ from zero stay as they are: a step along them could be large.
    """
    for _ in range(2):
        sizes, vectors = np.linalg.eigh(C.T @ (C * lam[:, None]))
        large = sizes > _HELD * sizes[-1]
        held = vectors[:, large]
        lam = lam + lam * (C @ (held / sizes[large] @ (held.T @ (side - C.T @ lam))))
    return np.asarray(np.maximum(lam, 0.0))


def _fewer_columns(directions: Array, weights: Array, indices: Labels) -> Labels:
    """Fewer columns with the same information: a basic solution of `sum lam zz' = S`, `sum lam z = 0`."""
    n = directions.shape[1]
    i, j = np.triu_indices(n)
    if len(indices) <= len(i) + n + 1:
        return indices
    Z = directions[indices] / np.abs(directions).max()
    rows = np.hstack([Z[:, i] * Z[:, j], Z, np.ones((len(Z), 1))]).T
    cost = np.random.default_rng(0).random(len(indices))
    return indices[basic_weights(rows, weights[indices], cost) > 1e-9]


def _reduce(directions: Array, state: _State, target: float, targets: Array | None = None) -> _State:
    """Solve again on the columns that matter; all of them where that would cost more than the target."""
    weights = state.weights
    for least, few in ((1e-3 / len(weights), True), (1e-7 / len(weights), True), (1e-9, False)):
        keep = np.flatnonzero(weights > least)
        keep = _fewer_columns(directions, weights, keep) if few else keep
        try:
            again = _interior_point(directions[keep], target, targets=targets)
        except (Infeasible, NotIdentifiable):
            continue
        if again.value <= state.value * (1 + 2 * target):
            return replace(again, used=keep)
    return state


def best_learning(space: Box | LdpCone, limits: Limits | None = None, rows: Array | None = None) -> Solution:
    """The channel of allowed columns from which `rows @ shares` are learnt best; by default the distribution.

    Exact for small domains (all vertices); rotations of a few blocks for equal values; column generation
    otherwise, until the `limits` (a gap of 1e-5 and 45 seconds) or ctrl-C (then the best so far). Values that count the
    same in all statistics are merged, which loses nothing. For margins columns that look at one of them come first.

    >>> P = np.array([0.025, 0.025, 0.025, 0.025, 0.9])
    >>> round(best_learning(Box(P, np.exp(-1.0), np.exp(1.0))).value, 3)
    5.783
    >>> round(best_learning(LdpCone(np.full(6, 1 / 6), ratio=np.e)).value, 3)
    15.709
    """
    limits = limits or Limits(1e-5).of_seconds(_SECONDS)
    prior, box = space.prior, space if isinstance(space, Box) else None
    if box and box.caps.min() >= 1.0:  # every value is heavy: one output each, and no channel does better
        columns = box.columns(np.eye(len(prior)))
        best = lift_variance(columns, prior, rows)
        return _solution(columns, prior, best, best, 0, 1.0)
    if len(prior) <= space.listed:
        vertices = space.vertices()
        if len(vertices) <= _EXACT:
            return best_weights(prior, vertices, limits, rows)
    if box and rows is None and len(prior) > box.listed and np.ptp(prior) <= 1e-15:
        return _rotations(box, limits.target)
    values = [np.arange(len(prior))]
    if rows is None:
        return _Generation(space, limits, Statistics(len(prior)), values).run()
    if len(rows) == 1 and len(points := _grid(prior, rows[0])) < len(prior):
        return _rounded_sum(space, limits, rows[0], points)
    if (groups := _groups(rows)).max() + 1 < len(prior):
        first = np.unique(groups, return_index=True)[1]
        found = best_learning(space.merge(groups), limits, rows[:, first])
        return replace(found, columns=found.columns[:, groups])
    start, views = None, margin_groups(rows)
    if max(groups.max() for groups in views) >= _MOST_GROUPS:
        raise TooLarge(
            f"the statistics distinguish more than {_MOST_GROUPS:,} values: merge values into cells"
        )
    if len(views) > 1:
        levels = np.vstack(list(map(_levels, views)))
        plane = scipy.linalg.orth((levels - levels.mean(axis=1, keepdims=True)).T, rcond=1e-10)
        alone = len(prior) > _MOST_SEARCHED
        share = limits if alone else limits.share(1 / 3)
        start = _Generation(space, share, Statistics(len(prior), rows, plane), views).run()
        if alone:
            return start
    return _Generation(space, limits, Statistics(len(prior), rows), values, start).run()


def margin_groups(rows: Array) -> list[Labels]:
    """The groups of values that each margin treats alike.

    A margin is a part of the rows that adds up to a constant; the last part may not.

    >>> margin_groups(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0]]))
    [array([1, 1, 0, 0]), array([1, 0, 1, 0])]
    """
    rows = rows[np.ptp(rows, axis=1) > 0]
    ends = np.flatnonzero(np.ptp(np.cumsum(rows, axis=0), axis=1) < 1e-9) + 1
    return [_groups(block) for block in np.split(rows, ends) if len(block)]


def _groups(rows: Array) -> Labels:
    """The group of each value: those with the same numbers in all rows."""
    return np.unique(rows, axis=1, return_inverse=True)[1].ravel()


def _levels(groups: Labels) -> Array:
    """A row for each group, with ones for its values."""
    return np.equal.outer(np.arange(groups.max() + 1), groups).astype(np.float64)


def _grid(prior: Array, row: Array) -> Array:
    """The different numbers of a row; if there are many, those that cut mass and variance together into even parts."""
    points, places = np.unique(row, return_inverse=True)
    if len(points) <= _GRID:
        return np.asarray(points)
    squares = prior * (row - prior @ row) ** 2
    before = np.cumsum(np.bincount(places, prior + squares / squares.sum()))
    cuts = np.searchsorted(before, np.linspace(0.0, 2.0, _GRID))
    return np.asarray(points[np.unique(np.minimum(np.append(cuts, len(points)), len(points) - 1))])


def _rounded_sum(space: Box | LdpCone, limits: Limits, row: Array, points: Array) -> Solution:
    """The best channel for a sum over many values: each number is first rounded to a grid, at random, to keep its mean.

    A lift of a value is a mean of two lifts of the grid, so the channel is as private as that of the grid. The duals of
    the grid, interpolated, prove a bound for all the values.
    """
    above = np.clip(np.searchsorted(points, row, side="right"), 1, len(points) - 1)
    share, values = (row - points[above - 1]) / (points[above] - points[above - 1]), np.arange(len(row))
    rounding = np.zeros((len(row), len(points)))
    rounding[values, above - 1], rounding[values, above] = 1 - share, share
    merged = replace(space, prior=space.prior @ rounding)
    found = best_learning(merged, limits, points[None])
    duals = found.duals
    if not len(duals):  # all columns were listed
        duals = Statistics(len(points), points[None]).duals(found.columns, found.weights)
    duals = space.prior * np.array([np.interp(row, points, dual) for dual in duals / merged.prior])
    columns, centred = found.columns @ rounding.T, row - space.prior @ row
    spread = lift_variance(columns, found.weights, row[None])
    bound = min(_sum_bound(space, centred, duals)[0], spread)
    return _solution(columns, found.weights, spread, bound, found.iterations, limits.target)


def _sum_bound(space: Box | LdpCone, centred: Array, duals: Array) -> tuple[float, Priced]:
    """The variance `(a . m)^2 / max_r [(m . r)^2 - nu . r]` that no channel goes below, and columns near the maximum.

    `m` and `nu` are the duals (2, d), moved so that they sum to zero: any prove a bound.
    """
    slopes, costs = duals - duals.sum(axis=1, keepdims=True) * space.prior
    priced = SumPricing(space, slopes / space.prior).price(costs, exact=True)
    return float(centred @ slopes) ** 2 / priced.bound, priced


def _rotations(box: Box, target: float) -> Solution:
    """For equal values: all rotations of a few blocks, with equal weights, against the optimum in closed form.

    Place the values on a ring. A block has `floor(tau d)` values at `hi`, one in between and the rest at `lo`.
    Rotations make the information matrix circulant, so its eigenvalues are the power spectrum of the blocks, and the
    variance is

        sum_j  m d / ( (hi - lo)^2 sum_blocks |F_j|^2 ),    j = 1 .. d - 1,

    with `m` blocks and `F` the Fourier transform of `(r - lo) / (hi - lo)`. The sum of the spectrum is the same for all
    blocks: the flatter, the better, and flat is the optimum of `uniform_variance`. Exchanges of two values of a block
    make it flat.
    """
    d, rng = len(box.prior), np.random.default_rng(0)
    part, whole = math.modf(d * box.tau)
    block = np.where(np.arange(d) < whole, 1.0, np.where(np.arange(d) == whole, part, 0.0))
    blocks = rng.permuted(np.tile(block, (min(max(1600 // d, 2), 16), 1)), axis=1)
    _flatten(blocks, rng)
    turns = (np.arange(d) + np.arange(d)[:, None]) % d
    columns = box.lo + (box.hi - box.lo) * blocks[:, turns].reshape(-1, d)
    weights = np.full(len(columns), 1 / len(columns))
    spread = lift_variance(columns, weights)
    return _solution(columns, weights, spread, min(information_bound(box), spread), 0, target)


def _flatten(blocks: Array, rng: np.random.Generator) -> None:
    """Exchange values within blocks, in place, while the sum of the inverse spectrum falls."""
    m, d = blocks.shape
    waves = np.exp(-2j * np.pi * np.outer(np.arange(d), np.arange(1, d // 2 + 1)) / d)
    twice = np.where(2 * np.arange(1, d // 2 + 1) == d, 1.0, 2.0)
    spectra = blocks @ waves
    for turn in range(_EXCHANGES):
        block, spectrum = blocks[turn % m], spectra[turn % m]
        power = (np.abs(spectra) ** 2).sum(0)
        i, j = rng.integers(d, size=(2, 200))
        moved = spectrum + (block[j] - block[i])[:, None] * (waves[i] - waves[j])
        trial = power - np.abs(spectrum) ** 2 + np.abs(moved) ** 2
        cost = (twice / np.maximum(trial, 1e-300)).sum(1)
        best = int(np.argmin(cost))
        if cost[best] < (twice / power).sum() * (1 - 1e-12):
            block[[i[best], j[best]]] = block[[j[best], i[best]]]
            spectrum[:] = moved[best]


@dataclass
class _Generation:
    """Column generation: solve for the weights, look for columns that tell more, repeat.

    Columns are constant on the groups of one of the `views`; the values themselves may be the only view. The
    statistics need coordinates for such columns only. `start` is a solution to improve on.
    """

    space: Box | LdpCone
    limits: Limits
    statistics: Statistics
    views: Sequence[Labels]
    start: Solution | None = None

    @property
    def row(self) -> Array | None:
        """The row of a sum, less its mean; None for several statistics."""
        rows = self.statistics.rows
        return None if rows is None or len(rows) > 1 else rows[0] - self.space.prior @ rows[0]

    def run(self) -> Solution:
        rng, target = np.random.default_rng(0), self.limits.target
        fine, last, duals = 1e-3 if self.row is None else 1e-6, False, np.empty(0)
        best = self.start or self._simple()
        rounds, bound = best.iterations, best.bound
        try:
            # of other columns than a box it is searched for later
            if isinstance(self.space, Box) and self.row is None and self.start is None:
                bound = information_bound(self.space, self.limits.share(1 / 2), self.statistics.rows)
            simple, directions = best.columns, len(self.statistics.roots) if self._various else 0
            if directions > _FEW_DIRECTIONS:
                best = self._many_columns(rng)
            pool = self._seeds(simple, rng) if directions <= _MOST_WEIGHED else simple
            possible = len(pool) > len(simple)  # in the time that is left
            while possible:
                begin = self.limits.clock.now()
                self.limits.count_round()
                state, found = self._weigh(pool, rounds, fine, last)
                pause = 2.5 * (self.limits.clock.now() - begin)
                stalled = len(self.views) > 1 and found.value > best.value * (1 - _PROGRESS)
                best = found if found.value <= best.value * (1 + 2 * target * last) else best
                self.limits.report(rounds, best.value, bound)
                late = pause > self.limits.left()
                if last or self.limits.over() or (late and self.row is None):
                    break
                fresh, proven = self._price(pool, state, rng)
                if proven > bound:
                    bound, duals = proven, self.statistics.duals(pool, state.weights)
                late = late or stalled or rounds >= _MOST_ROUNDS
                if bound >= best.value * (1 - target) or not len(fresh) or late:
                    fine, fresh, last = min(fine, 1e-5), fresh[:0], True
                pool, rounds = np.vstack([self._prune(pool, state, len(fresh)), fresh]), rounds + 1
        except (KeyboardInterrupt, Infeasible):
            pass  # stopped, or weights lost to rounding: the best so far does
        found = _solution(best.columns, best.weights, best.value, min(bound, best.value), rounds, target)
        return replace(found, duals=duals)

    def _limit(self) -> int:
        """How many columns the pool may hold."""
        size, directions = self.statistics.basis.shape
        most = 2500 if self.row is None else _SUM_POOL
        return int(min(_POOL * (directions + 1), most, _MOST_ENTRIES // size))

    @property
    def _various(self) -> bool:
        """Whether the statistics are so many and different that all directions matter."""
        roots, given = self.statistics.roots, self.statistics.rows is not None
        return given and self.start is None and len(self.views) == 1 and bool(roots[len(roots) // 2] > _RANK)

    def _many_columns(self, rng: np.random.Generator) -> Solution:
        """As many `_likely_columns` as fit in a table: more of them are better than the best weights of a few."""
        size, n = self.statistics.basis.shape
        if (count := min(_POOL * n, _MOST_ENTRIES // size)) < _FEWEST * n:
            raise Infeasible("too few columns fit in a table")
        columns = self._likely_columns(count, rng)
        directions = self.statistics.directions(columns)
        weights, spread = _good_weights(directions, self.statistics.targets, self.limits.over)
        return _solution(columns, weights, spread, 0.0, 1, self.limits.target)

    def _simple(self) -> Solution:
        """Randomised response of the values, or of a view drawn at random: a channel within any budget."""
        parts, lengths = [], []
        for groups in self.views:
            prior, odds = self.space.merge(groups).prior, self.space.ratio - 1
            lengths.append(1 + odds * prior)
            parts.append((1 + odds * np.eye(len(prior)))[:, groups] / lengths[-1][:, None])
        columns = np.vstack(parts)
        weights = np.concatenate([each / each.sum() / len(lengths) for each in lengths])
        spread = lift_variance(columns, weights, self.statistics.rows)
        return _solution(columns, weights, spread, 0.0, 0, self.limits.target)

    def _seeds(self, start: Array, rng: np.random.Generator) -> Array:
        """The columns to begin with, not more than can be weighed in the time that is left; `start` are simple ones.

        Many different statistics need no others than `_likely_columns`.
        """
        roots, left = self.statistics.roots, self.limits.left()
        most = int(math.sqrt(_SPEED * min(max(left, _PATIENCE), 1e6) / len(roots)))
        if self._various:
            return self._likely_columns(min(self._limit(), most), rng)
        others, most = np.vstack([start[:0], *self._others(rng)]), most - len(start)
        return np.vstack([start, others[:: -(-len(others) // most) or 1] if most > 0 else start[:0]])

    def _others(self, rng: np.random.Generator) -> Iterator[Array]:
        """Random columns and, for the distribution, each value's own.

        For other statistics than the distribution: columns that are linear in a row, and for several rows those of
        `_even_columns`.
        """
        space, d = self.space, len(self.space.prior)
        if len(self.views) > 1:
            for groups in self.views:
                yield space.merge(groups).chance(3 * int(groups.max() + 1), rng)[:, groups]
        elif self.statistics.rows is not None:
            rows = self.statistics.rows[np.ptp(self.statistics.rows, axis=1) > 0]
            centred = rows - (rows @ space.prior)[:, None]
            ends = np.vstack([centred, -centred])  # rounding to both ends of the range of a row, at random
            yield 1 + space.reach(ends)[:, None] * ends
            if self.row is None:
                chance = space.chance(2 * d, rng)
                yield chance
                yield from self._even_columns(chance, rng)
        else:
            yield space.chance(max(self._limit() // 2, 2 * d), rng)
            yield space.best((np.eye(d) + 1e-3 * rng.random((d, d))) * space.prior)

    def _likely_columns(self, count: int, rng: np.random.Generator) -> Array:
        """Random vertices with about the second moments of the best channel.

        If only the trace of `S` were bounded, the best one would be a multiple of the root of `B`. Vertices near random
        directions with these moments are about as good. Orthogonal directions are spread more evenly than others.
        """
        roots, n = self.statistics.roots, len(self.statistics.roots)
        scale = roots**_SPECTRUM * np.maximum(roots, _LEAST_WEIGHT)
        turns = np.linalg.qr(rng.standard_normal((-(-count // n), n, n)))[0].reshape(-1, n)[:count]
        return self.space.best((turns * scale) @ self.statistics.basis.T * self.space.prior)

    def _even_columns(self, start: Array, rng: np.random.Generator) -> Iterator[Array]:
        """Columns that are best where `S` is a multiple of one on each eigenspace of `B`.

        For equal values and margins the best `S` is like that, since it is unchanged when levels are renamed. Then only
        the mean of `|z|^2` on each eigenspace matters, and small steps towards the best columns find it (Frank-Wolfe).
        """
        statistics = self.statistics
        space = np.unique(statistics.roots.round(9), return_inverse=True)[1]

        def spread(columns: Array) -> Array:
            squares = (statistics.directions(columns) ** 2).mean(axis=0)
            return np.asarray((np.bincount(space, squares) / np.bincount(space))[space])

        T, level, nothing = statistics.targets, spread(start), np.zeros(start.shape[1])
        weights = np.ones(len(level)) if T is None else T.sum(axis=0)
        for count in range(_EVEN_ROUNDS):
            half = statistics.basis * (weights / level)
            M = half @ half.T
            found = self.space.climb(self.space.chance(_EVEN_STARTS, rng), M, nothing)
            if self.limits.over():
                return
            worth = ((found @ M) * found).sum(1)
            level = level + (spread(found[worth >= 0.999 * worth.max()]) - level) * 2 / (count + 3)
            if 3 * count >= _EVEN_ROUNDS:
                yield distinct_rows(found)

    def _weigh(self, pool: Array, rounds: int, fine: float, last: bool) -> tuple[_State, Solution]:
        """The best weights for the pool, solved as finely as asked; the last ones of a sum have few columns."""
        statistics, target = self.statistics, self.limits.target
        directions = statistics.directions(pool)
        required = rounds == (self.start.iterations if self.start else 0)
        state = _interior_point(directions, fine, self.limits.over, statistics.targets, required)
        few = last and self.row is not None
        kept = _reduce(directions, state, target, statistics.targets) if few else state
        columns, weights = pool[kept.used][kept.weights > 0], kept.weights[kept.weights > 0]
        return state, _solution(columns, weights, kept.value, 0.0, rounds, target)

    def _prune(self, pool: Array, state: _State, fresh: int) -> Array:
        """The columns that carry weight, the heaviest first where there are too many; for a sum also idle ones.

        The exact search of a sum returns the same columns again and again if those are forgotten.
        """
        order = np.argsort(-state.weights, kind="stable")
        carrying = int((state.weights > (1e-2 / len(pool) if self.row is None else 0.0)).sum())
        least = 4 * (1 + self.statistics.basis.shape[1])
        return pool[np.sort(order[: min(carrying, max(self._limit() - fresh, least))])]

    def _price(self, pool: Array, state: _State, rng: np.random.Generator) -> tuple[Array, float]:
        """Columns that tell more, the best first: `r' M r - m . r > t`, `M = V S^-1 T' T S^-1 V'`, `m = V nu`.

        The search is exact for a single row, and proves a bound; otherwise it is local, and the bound zero.
        """
        duals = self.statistics.duals(pool, state.weights)
        half, m = duals[:-1].T, duals[-1]
        level, bound = float(state.weights @ ((pool @ half) ** 2).sum(axis=1)), 0.0
        least = (1e-4 if self.row is None else self.limits.target / 10) * state.value
        count, most = (600, 3 * len(m)) if len(self.views) == 1 else (200, 40)
        starts = [pool[state.weights > 1e-2 / len(pool)]] if len(self.views) == 1 else []
        fresh = []
        for groups in self.views:
            space, levels = self.space.merge(groups), _levels(groups)
            slopes, costs = levels @ half, levels @ m
            if self.row is None:
                found = space.climb(np.vstack([space.chance(count, rng), *starts]), slopes @ slopes.T, costs)
            else:
                bound, priced = _sum_bound(space, self.row, duals)
                found = priced.columns
            worth = ((found @ slopes) ** 2).sum(axis=1) - found @ costs - level
            order = np.argsort(-worth)[: int((worth > least).sum())]
            fresh.append(distinct_rows(found[order])[:most][:, groups])
        return np.vstack(fresh), bound


def information_bound(box: Box, limits: Limits = UNLIMITED, rows: Array | None = None) -> float:
    """A variance of `rows @ shares` that no channel of a box beats, per user and summed over the statistics.

    Proven wherever the search for it ends, also at the limits.

    >>> P = np.array([0.5, 0.3, 0.2])
    >>> exact = (1 - P @ P) / (1 - np.exp(-2.0)) ** 2      # every value is heavy: Theorem 3 is the optimum
    >>> bool(abs(information_bound(Box(P, np.exp(-2.0), np.exp(2.0))) / exact - 1) < 1e-6)
    True
    """
    prior, W = box.prior, np.eye(len(box.prior)) if rows is None else rows
    if rows is None and np.ptp(prior) <= 1e-15:
        return uniform_variance(len(prior), box.lo, box.hi)
    above, below = box.sides()
    bound = diagonal_bound(prior, above * below, W, limits)
    if len(prior) <= MOST_VALUES:
        bound = max(bound, unbiased_bound(SecondMoments.of_box(box, limits), W, limits))
    return bound if rows is not None else max(bound, variance_bound(prior, box.lo, box.hi))


def uniform_variance(dimension: int, lo: float, hi: float) -> float:
    """The least variance for equal values, in closed form.

    By symmetry and convexity the best `B` is unchanged by permutations, so only `E |r|^2` matters, and a
    column maximises it with `floor(tau d)` values at `hi`, one in between and the rest at `lo`. All
    permutations of that column, with equal weights, reach it.

    >>> round(uniform_variance(6, math.exp(-1), math.exp(1)), 4)
    4.801
    """
    full = dimension * float(window_mass(lo, hi))
    part, whole = math.modf(full)
    return (dimension - 1) ** 2 / ((hi - lo) ** 2 * (whole + part**2 - full**2 / dimension))
