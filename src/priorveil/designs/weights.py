"""The best weights of given columns for unbiased statistics: an L-optimal experimental design.

At `p = P` one report carries the Fisher information `J = sum_y lam_y r_y r_y'` about `p`.
Probabilities add up to one, so only directions `V` of the simplex (vectors that sum to zero) are to be
learnt, and the best unbiased estimator has, per user and summed over the values, the variance

    tr (V' J V)^-1  =  tr J^-1 - P . P            (the second form because J P = 1).

Write `z = V' r`. To choose columns and weights is then an A-optimal experimental design,

    min  tr S^-1,  S = sum_y lam_y z_y z_y'    subject to    sum_y lam_y z_y = 0,  sum_y lam_y = 1,

convex in `lam`. Since `tr S^-1 >= 2 s tr N - s^2 tr N^2 S` for any symmetric `N` and any number
`s`, and `sum_y lam_y nu . z_y = 0` for any `nu`,

    every design's variance  >=  (tr N)^2 / max_r [ |N z|^2 - nu . z ],

which is the proven bound (equality at the optimum, where `N = S^-1`). The maximum runs over the given columns.
For statistics `W @ shares` the variance is `tr(W V S^-1 V' W')` (L-optimal), which `DesignStatistics` writes in other
coordinates.

If there are several priors `p_i`, the worst one counts. With weights `w` on them, their mean `m`, columns of any scale
and `S = sum_y lam_y z_y z_y' / (m . r_y)`, the least variance under the worst prior is

    max over w, min over lam,   tr S^-1 - sum_i w_i |W p_i - W m|^2

(`robust_variances`). This is concave in `w` and convex in `lam`, so both are found together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse

from priorveil.arrays import Array
from priorveil.designs.column_generation import Solution
from priorveil.designs.stopping import MOST_ROUNDS, Limits, Stop, never
from priorveil.designs.tolerances import ROUNDING, TOLERANCE
from priorveil.designs.value_groups import Indices
from priorveil.errors import Infeasible, NotIdentifiable
from priorveil.information import gain_share, lift_variance, tangent

LEAST_WEIGHT = 0.03  # the least weight of a direction in the coordinates, relative to the largest
# The ridge in directions that no target needs, at first and relative to the gap. It keeps `S` regular meanwhile.
_FIRST_RIDGE, _RIDGE = 1.0, 0.2
PROGRESS = 3e-4  # the share of the variance that a step or round has to save to be worth its time
_STEPS = 9  # steps towards good weights, and repairs in each step; fewer are usually enough
_SHRINK = 0.1  # the least factor of a weight in a repair
_SHRINKAGE, _SHRINKAGE_OF_SUM = 1e-3, TOLERANCE  # added to `S`, relative to its mean, to look for columns
FINEST_WEIGHTS = 1e-6  # the gap that an interior point reaches, and so how far off directions may be
FINE = Limits(FINEST_WEIGHTS)
_NO_CHANNEL = "no weights make these columns a channel, or the solver could not find them"

_Inverse = Callable[[Array], Array]


class DesignStatistics:
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
        scale = np.maximum(self.roots, LEAST_WEIGHT)
        self.basis: Array = plane @ (vectors.T / roots[0]) / scale
        targets = np.diag(self.roots / scale)[self.roots > ROUNDING]
        self.targets: Array | None = None if (self.roots == scale).all() else targets

    def directions(self, lifts: Array) -> Array:
        """The coordinates of lifts (K, d)."""
        return np.asarray((lifts - 1.0) @ self.basis)

    def duals(self, lifts: Array, weights: Array) -> Array:
        """The rows of `T S^-1 V'` and, last, `V nu`: they prove the best bound if the weights are the best."""
        Z, T = self.directions(lifts), self.targets
        S, root = Z.T @ (Z * weights[:, None]), np.sqrt(weights)
        # where no statistic needs a direction, `S` may be singular
        share = 0.0 if T is None else _SHRINKAGE if len(T) > 1 else _SHRINKAGE_OF_SUM
        shrinkage = share * float(np.diag(S).mean())
        inverse = np.linalg.inv(S + shrinkage * np.eye(len(S)))
        slopes = self.basis @ (inverse if T is None else inverse @ T.T)
        squares = ((lifts @ slopes) ** 2).sum(axis=1)
        C = np.hstack([Z, np.ones((len(Z), 1))]) * root[:, None]
        nu = np.linalg.lstsq(C, squares * root, rcond=None)[0]
        return np.vstack([slopes.T, self.basis @ nu[:-1]])


def variance_solution(
    columns: Array, weights: Array, variance: float, bound: float, iterations: int, target: float
) -> Solution:
    """A solution whose value is a variance."""
    gap = max(0.0, 1 - gain_share(variance, bound, math.inf))
    return Solution(
        columns=columns,
        weights=weights,
        value=variance,
        bound=bound,
        gap=gap,
        iterations=iterations,
        converged=gap <= target,
        duals=np.empty(0),
    )


def best_weights(prior: Array, columns: Array, limits: Limits = FINE, rows: Array | None = None) -> Solution:
    """The best weights for given columns (K, d) of any scale; the bound holds for all mixtures of them.

    The statistics are `rows @ shares`, by default the whole distribution. With every extreme ray of a cone of allowed
    columns this is the best channel of that cone. It looks for as few outputs as `d (d + 1) / 2`. Past the `limits` it
    ends with the first weights that make a channel, and their bound.

    >>> best = best_weights(np.full(3, 1 / 3), np.array([[2.0, 1, 1], [1, 2, 1], [1, 1, 2], [1, 1, 1]]))
    >>> best.weights.round(3), round(best.value, 3)      # the constant column tells nothing
    (array([0.333, 0.333, 0.333]), 10.667)
    """
    lifts = columns / (columns @ prior)[:, None]
    statistics, target = DesignStatistics(len(prior), rows), limits.target
    directions, targets = statistics.directions(lifts), statistics.targets
    try:
        state = interior_point(directions, target, limits.over, targets)
    except NotIdentifiable:
        kind, wanted = ("values", np.eye(len(prior))) if rows is None else ("statistics", rows)
        equal = np.ones(len(lifts))
        lost = [n for n, row in enumerate(wanted) if math.isinf(lift_variance(lifts, equal, row[None]))]
        lost = lost or [*range(len(wanted))]  # all together, where some columns hardly differ
        named = f"the {kind} {', '.join(map(str, lost))}"
        error = NotIdentifiable(f"the columns do not determine {named}: allow more, or lean on the prior")
        error.statistics = tuple(lost)
        raise error from None
    late = state.value - state.bound > target * state.value
    again = state if late else drop_idle_columns(directions, state, target, targets)
    value = lift_variance(lifts[again.used], again.weights, rows)
    off = float(np.abs(again.weights @ lifts[again.used] - 1).max())
    # lost to rounding in a direction in which the columns hardly differ
    if off > TOLERANCE or value > state.value * (1 + 2 * target):
        again, value = state, lift_variance(lifts[state.used], state.weights, rows)
    bound = min(state.bound, value)
    with suppress(KeyboardInterrupt):  # it is done anyway
        limits.report(state.iterations, value, bound)
    return variance_solution(lifts[again.used], again.weights, value, bound, state.iterations, 2 * target)


@dataclass(frozen=True, eq=False)
class Weighing:
    """Where the interior point ended: weights of the `used` columns, the variance `value`, its `bound`.

    With several priors it is the variance under the worst one, of scores made for their mean with the `prior_weights`.
    """

    weights: Array
    used: Indices
    value: float
    bound: float
    iterations: int
    prior_weights: Array


@dataclass(frozen=True, eq=False)
class PriorTerms:
    """What the variance depends on where several priors count: the mass of each column under each prior (K, k).

    The variance under a mean of priors is larger than the mean of the variances, since the `means` of the statistics
    (k, m) differ. They are zero where means of priors count, too.
    """

    masses: Array
    means: Array

    def distances(self, weights: Array) -> Array:
        """`|W p_i - W m|^2` of each prior."""
        return np.asarray(((self.means - weights @ self.means) ** 2).sum(axis=1))

    def errors(self, weights: Array, parts: Array) -> Array:
        """The variance under each prior, for scores made for the mean; `parts` (K,) add up to the variance there."""
        return np.asarray(parts @ (self.masses / (self.masses @ weights)[:, None]) - self.distances(weights))

    def curvature(
        self, weights: Array, lam: Array, Y: Array, slopes: Array, values: Array
    ) -> tuple[Array, Array]:
        """Second derivatives of the variance: by columns and priors (K, k), and by pairs of priors (k, k).

        `Y` and `slopes`, which are `T S^-1`, are in the eigenbasis of `S`, and `values` its eigenvalues.
        """
        ratios, X = self.masses / (self.masses @ weights)[:, None], Y @ slopes.T
        squares, centred = (X**2).sum(axis=1), self.means - weights @ self.means
        changes = [slopes @ (Y.T @ (Y * (lam * ratio)[:, None])) for ratio in ratios.T]
        mixed = squares[:, None] * ratios
        mixed -= 2 * np.column_stack([(X * (Y @ (change / values).T)).sum(axis=1) for change in changes])
        flat = np.array([(change / np.sqrt(values)).ravel() for change in changes])
        own = flat @ flat.T - ratios.T @ (ratios * (lam * squares)[:, None]) + centred @ centred.T
        return mixed, 2 * own


@dataclass(frozen=True, eq=False)
class _Variance:
    """The variance `tr(T S^-1 T')` at some weights, and what its derivatives are made of.

    In the eigenbasis of `S`, with its eigenvalues `values`: `Y` has the columns `z_y / sqrt(m . r_y)`, `wanted` the
    targets, with the ridge after the first `count` rows. The columns' parts of it, `q_y = |T S^-1 z_y|^2`, are minus
    its derivatives in the weights.
    """

    values: Array
    Y: Array
    wanted: Array
    count: int

    @cached_property
    def X(self) -> Array:
        """`T S^-1 z_y` of each column."""
        return np.asarray((self.Y / self.values) @ self.wanted.T)

    @cached_property
    def parts(self) -> Array:
        """`q_y`, with the ridge."""
        return np.asarray((self.X**2).sum(1))

    @cached_property
    def own_parts(self) -> Array:
        """`q_y`, without the ridge."""
        return np.asarray((self.X[:, : self.count] ** 2).sum(1))

    @property
    def symmetric(self) -> bool:
        """Whether the targets are the identity, which needs no ridge."""
        return len(self.wanted) == len(self.values)

    @property
    def total(self) -> float:
        """The variance, without the ridge."""
        return float((self.wanted[: self.count] ** 2 / self.values).sum())


class _Point(NamedTuple):
    """A point of the interior-point method, or a step from one point to the next.

    The weights `lam` of the columns have slacks and the multipliers `nu`; the weights `w` of the priors have errors
    that are `below` a `ceiling`. All but `nu` and `ceiling` stay positive.
    """

    lam: Array
    slack: Array
    nu: Array
    w: Array
    below: Array
    ceiling: float

    def products(self) -> Array:
        """The products that are zero at the optimum: `lam_y s_y`, and `w_i b_i` if several priors count."""
        columns = self.lam * self.slack
        return np.concatenate([columns, self.w * self.below]) if len(self.w) > 1 else columns

    def step_length(self, step: _Point) -> float:
        """The share of a step, at most one, after which all that has to be positive still is."""
        pairs = (step.lam, self.lam), (step.slack, self.slack), (step.w, self.w), (step.below, self.below)
        falls = [float((-change / now).max()) for change, now in pairs]
        return min(1.0, 0.95 / max(1e-300, *falls))

    def after(self, step: _Point, length: float) -> _Point:
        """The point after this share of a step."""
        return _Point(
            self.lam + length * step.lam,
            self.slack + length * step.slack,
            self.nu + length * step.nu,
            self.w + length * step.w,
            self.below + length * step.below,
            self.ceiling + length * step.ceiling,
        )


class _Weights:
    """What the interior-point method solves: columns `Z`, `targets`, and the terms of the priors.

    Columns are in coordinates of their span, with a mean square of one. `C` are the columns with a one after each, so
    that weights make a channel if `C' lam = side`.
    """

    def __init__(self, directions: Array, targets: Array | None, priors: PriorTerms | None) -> None:
        Z, self.targets = _span(directions, targets)
        self.scale = math.sqrt(float((Z**2).sum(1).mean()))
        self.Z: Array = Z / self.scale
        self.C = np.hstack([self.Z, np.ones((len(Z), 1))])
        self.side = np.eye(self.C.shape[1])[-1]
        terms = PriorTerms(np.ones((len(Z), 1)), np.zeros((1, 1))) if priors is None else priors
        self.terms = replace(terms, means=self.scale * terms.means)

    def start(self) -> tuple[_Point, _Variance]:
        """The first point: long columns get little weight, as at the optimum, and all priors the same."""
        lam, count = 1 / np.maximum((self.Z**2).sum(1), 1e-6), self.terms.masses.shape[1]
        lam, w = lam / lam.sum(), np.full(count, 1 / count)
        variance = self.variance(lam, w, _FIRST_RIDGE)
        if variance is None:
            raise Infeasible(_NO_CHANNEL)
        errors = self.terms.errors(w, lam * variance.parts)
        nu, ceiling = 1.5 * variance.parts.max() * self.side, float(errors.max()) + variance.total / 2
        return _Point(lam, self.C @ nu - variance.parts, nu, w, ceiling - errors, ceiling), variance

    def variance(self, lam: Array, w: Array, ridge: float) -> _Variance | None:
        """The variance at these weights; None if `S` is singular."""
        Y = self.Z / np.sqrt(self.terms.masses @ w)[:, None]
        values, U = np.linalg.eigh(Y.T @ (Y * lam[:, None]))
        if values[0] <= 0:
            return None
        n, T = len(values), self.targets
        wanted = np.eye(n) if T is None else np.vstack([T @ U, ridge * np.eye(n)])
        return _Variance(values, Y @ U, wanted, n if T is None else len(T))

    def value_and_bound(self, at: _Point, variance: _Variance) -> tuple[float, float]:
        """The variance under the worst prior, and what is proven by any `nu` and `w`."""
        value = float(self.terms.errors(at.w, at.lam * variance.own_parts).max())
        excess = (variance.own_parts - self.C @ at.nu) / (self.terms.masses @ at.w)
        between = float(at.w @ self.terms.distances(at.w))
        return value, variance.total**2 / float(at.nu[-1] + excess.max()) - between


def interior_point(
    directions: Array,
    target: float,
    stop: Stop = never,
    targets: Array | None = None,
    required: bool = True,
    priors: PriorTerms | None = None,
) -> Weighing:
    """The best weights of columns, for one prior (`_column_step`) or under the worst of several (`_saddle_step`).

    Newton's method on the optimality conditions, primal and dual together: products that are zero at the optimum are
    to be `mu`, which shrinks. Every round proves a bound, but only the last weights make a channel. So after a `stop`
    request it goes on until they do if they are `required`, and gives up otherwise. Directions that no target needs get
    a `ridge` as additional targets, which shrinks with the gap; it is not part of the value, and any `T S^-1` proves a
    bound.
    """
    problem = _Weights(directions, targets, priors)
    (at, variance), length, ridge, unit = problem.start(), 0.0, _FIRST_RIDGE, problem.scale**2
    newton_step = _column_step if len(at.w) == 1 else _saddle_step
    best: Weighing | None = None
    for iteration in range(MOST_ROUNDS):
        value, bound = problem.value_and_bound(at, variance)
        if np.abs(problem.side - problem.C.T @ at.lam).max() < 1e-10:
            if best is None or bound / value > best.bound / best.value:
                best = Weighing(at.lam, np.arange(len(at.lam)), value / unit, bound / unit, iteration, at.w)
            if value - bound <= target * value:
                break
        if (best is not None or not required) and stop():
            break
        products = at.products()
        mu = float(products.mean()) * (0.1 if length > 0.5 else 0.5)
        ridge = min(ridge, _RIDGE * math.sqrt(float(products.sum()) / float((1 / variance.values).sum())))
        try:
            with np.errstate(over="raise"):  # if no weights make a channel, the steps have no limit
                inverse = _newton_inverse(variance, at.lam / at.slack)
                step = newton_step(problem, at, variance, mu, inverse)
        except (np.linalg.LinAlgError, FloatingPointError):
            break
        length = at.step_length(step)
        at = at.after(step, length)
        if (now := problem.variance(at.lam, at.w, ridge)) is None:
            break
        variance = now
    if best is None:
        raise Infeasible(_NO_CHANNEL)
    return replace(best, weights=_feasible(problem.C, best.weights, problem.side))


def _column_step(problem: _Weights, at: _Point, variance: _Variance, mu: float, inverse: _Inverse) -> _Point:
    """The Newton step for one prior, where the variance is to be least.

    With the slacks `s_y = nu . (z_y, 1) - q_y`, which are not negative, and `e = (0, ..., 0, 1)`, the conditions are

        C nu - q - s = 0,    C' lam = e,    lam_y s_y = mu.

    The derivative of `-q` in `lam` is the Hessian `H` of the variance. Without `s` the linear equations are

        (H + diag(s / lam)) d_lam + C d_nu = mu / lam - C nu + q,
                                  C' d_lam = e - C' lam,

    and then `d_s = mu / lam - s - d_lam s / lam`.
    """
    residual = mu / at.lam - problem.C @ at.nu + variance.parts
    d_lam, d_nu = _column_direction(inverse, problem.C, residual, problem.side - problem.C.T @ at.lam)
    nothing = np.zeros_like(at.w)
    return _Point(d_lam, mu / at.lam - at.slack - d_lam * at.slack / at.lam, d_nu, nothing, nothing, 0.0)


def _saddle_step(problem: _Weights, at: _Point, variance: _Variance, mu: float, inverse: _Inverse) -> _Point:
    """The Newton step for several priors, whose weights `w` make the least variance as large as they can.

    The conditions of the columns are those of `_column_step`. Those of the priors are the same, turned round: no error
    `f_i`, the derivative in `w_i`, is above a `ceiling`, and priors with a smaller one have no weight,

        f + b = ceiling,    sum_i w_i = 1,    w_i b_i = mu.

    With the second derivatives `M` in `lam` and `w`, and `N` in `w`, the linear equations without `s` and `b` are

        (H + diag(s / lam)) d_lam + C d_nu + M d_w = mu / lam - C nu + q,
                                          C' d_lam = e - C' lam,
           M' d_lam + (N - diag(b / w)) d_w - d_ceiling = ceiling - f - mu / w,
                                          sum_i d_w_i = 0.

    The first two give `d_lam` as a linear function of `d_w`. In the third it leaves small equations for `d_w`.
    """
    alone, C, w, below = _column_step(problem, at, variance, mu, inverse), problem.C, at.w, at.below
    mixed, curvature = problem.terms.curvature(
        w, at.lam, variance.Y, variance.wanted / variance.values, variance.values
    )
    lam_by_w, nu_by_w = _column_direction(inverse, C, mixed, np.zeros((C.shape[1], len(w))))
    errors = problem.terms.errors(w, at.lam * variance.parts)
    right = mixed.T @ alone.lam - at.ceiling + errors + mu / w
    pair = np.column_stack([right, np.ones_like(w)])
    free, by_ceiling = np.linalg.solve(mixed.T @ lam_by_w - curvature + np.diag(below / w), pair).T
    d_ceiling = float(free.sum() / by_ceiling.sum())
    d_w = free - d_ceiling * by_ceiling
    d_lam = alone.lam - lam_by_w @ d_w
    return _Point(
        d_lam,
        mu / at.lam - at.slack - d_lam * at.slack / at.lam,
        alone.nu - nu_by_w @ d_w,
        d_w,
        mu / w - below - d_w * below / w,
        d_ceiling,
    )


def _column_direction(inverse: _Inverse, C: Array, residual: Array, missing: Array) -> tuple[Array, Array]:
    """The solution of `(H + diag(s / lam)) d_lam + C d_nu = residual` and `C' d_lam = missing`."""
    solved = inverse(np.hstack([C, residual.reshape(len(C), -1)]))
    AC, Ag = solved[:, : C.shape[1]], solved[:, C.shape[1] :].reshape(residual.shape)
    d_nu: Array = np.linalg.lstsq(C.T @ AC, C.T @ Ag - missing, rcond=None)[0].astype(np.float64)
    return Ag - AC @ d_nu, d_nu


def good_weights(Z: Array, targets: Array | None, stop: Stop) -> tuple[Array, float]:
    """Weights that make thousands of columns a channel, and their variance, in a few steps from equal weights.

    What is missing in `sum lam z = 0` is removed in proportion to the weights. Then each is multiplied by the root of
    `q_y`, its part of the variance, which raises those of columns that tell more (Silvey, Titterington and Torsney
    1978).
    """
    C, lam, best, least = np.hstack([Z, np.ones((len(Z), 1))]), np.full(len(Z), 1 / len(Z)), None, math.inf
    T = np.eye(Z.shape[1]) if targets is None else targets
    for _ in range(_STEPS):
        lam = _channel_weights(C, lam)
        slopes = np.linalg.solve(Z.T @ (Z * lam[:, None]), T.T)
        value, parts = float((T * slopes.T).sum()), ((Z @ slopes) ** 2).sum(axis=1)
        if value >= least * (1 - PROGRESS):
            break
        best, least, lam = lam, value, lam * np.sqrt(parts)
        if stop():
            break
    assert best is not None
    return best, least


def _channel_weights(C: Array, lam: Array) -> Array:
    """Weights near these with `C' lam = (0, ..., 0, 1)`; those that would be negative shrink step by step."""
    lam, side = lam / lam.sum(), np.eye(C.shape[1])[-1]
    for _ in range(_STEPS):
        factor = 1 + C @ np.linalg.solve(C.T @ (C * lam[:, None]), side - C.T @ lam)
        lam = lam * np.maximum(factor, _SHRINK)
        if factor.min() >= _SHRINK:
            return lam
    raise Infeasible("no mixture of these columns is a channel")


def _span(directions: Array, targets: Array | None) -> tuple[Array, Array | None]:
    """Directions and targets in coordinates of the span of the directions; refused if a target is outside of it."""
    _, size, vectors = np.linalg.svd(directions, full_matrices=False)
    basis = vectors[size > 1e-10 * size[0]]
    if len(basis) == directions.shape[1]:
        return directions, targets
    if targets is None or np.abs(targets - targets @ basis.T @ basis).max() > FINEST_WEIGHTS:
        raise NotIdentifiable("the columns do not determine the statistics")
    return directions @ basis.T, targets @ basis.T


def _newton_inverse(variance: _Variance, ratio: Array) -> _Inverse:
    """A function that applies `(H + diag(1 / ratio))^-1`, where `H` is the Hessian of the variance in the weights.

    `H` is `2 (z' S^-1 z) (x' x)` for pairs of columns, with `x = T S^-1 z`. In the eigenbasis of `S` its rank is at
    most `n k`, and at most `n (n + 1) / 2` where `T` is the identity.
    """
    Y, X, values, symmetric = variance.Y, variance.X, variance.values, variance.symmetric
    (K, n), k = Y.shape, X.shape[1]
    if (n * (n + 1) // 2 if symmetric else n * k) >= K:
        root = np.sqrt(ratio)[:, None]
        hessian = 2 * ((root * Y / values) @ (root * Y).T) * (X @ X.T)
        hessian[np.arange(K), np.arange(K)] += 1.0
        dense = scipy.linalg.cho_factor(hessian, overwrite_a=True, check_finite=False)
        return lambda right: root * scipy.linalg.cho_solve(dense, root * right, check_finite=False)
    if symmetric:
        i, j = np.triu_indices(n)
        curvature = (values[i] + values[j]) * np.where(i == j, 1.0, 2.0) / (values[i] * values[j]) ** 2
        F = Y[:, i] * Y[:, j] * np.sqrt(curvature)
    else:
        F = ((Y * np.sqrt(2 / values))[:, :, None] * X[:, None, :]).reshape(K, -1)
    RF = F * ratio[:, None]
    small = scipy.linalg.cho_factor(np.eye(F.shape[1]) + F.T @ RF, check_finite=False)
    return lambda right: (
        ratio[:, None] * right - RF @ scipy.linalg.cho_solve(small, RF.T @ right, check_finite=False)
    )


def _feasible(C: Array, lam: Array, side: Array) -> Array:
    """Remove the rounding left in `C' lam = side`, in proportion to the weights.

    Directions in which the weights hardly differ from zero stay as they are: a step along them could be large.
    """
    for _ in range(2):
        sizes, vectors = np.linalg.eigh(C.T @ (C * lam[:, None]))
        large = sizes > TOLERANCE * sizes[-1]
        steady = vectors[:, large]
        lam = lam + lam * (C @ (steady / sizes[large] @ (steady.T @ (side - C.T @ lam))))
    return np.asarray(np.maximum(lam, 0.0))


def _fewer_columns(directions: Array, weights: Array, indices: Indices) -> Indices:
    """Fewer columns with the same information: a basic solution of `sum lam zz' = S`, `sum lam z = 0`."""
    n = directions.shape[1]
    i, j = np.triu_indices(n)
    if len(indices) <= len(i) + n + 1:
        return indices
    Z = directions[indices] / np.abs(directions).max()
    rows = np.hstack([Z[:, i] * Z[:, j], Z, np.ones((len(Z), 1))]).T
    cost = np.random.default_rng(0).random(len(indices))
    return indices[basic_weights(rows, weights[indices], cost) > TOLERANCE]


def drop_idle_columns(
    directions: Array,
    state: Weighing,
    target: float,
    targets: Array | None = None,
    priors: PriorTerms | None = None,
) -> Weighing:
    """Solve again on the columns that matter; all of them where that would cost more than the target."""
    weights = state.weights
    for least, few in ((1e-3 / len(weights), True), (1e-7 / len(weights), True), (TOLERANCE, False)):
        keep = np.flatnonzero(weights > least)
        keep = _fewer_columns(directions, weights, keep) if few and priors is None else keep
        terms = None if priors is None else replace(priors, masses=priors.masses[keep])
        try:
            again = interior_point(directions[keep], target, targets=targets, priors=terms)
        except (Infeasible, NotIdentifiable):
            continue
        if again.value <= state.value * (1 + 2 * target):
            return replace(again, used=keep)
    return state


def basic_weights(rows: Array, weights: Array, cost: Array) -> Array:
    """Weights with the same `rows @ weights`, few of them positive, of the least cost; the same ones on failure."""
    optimum = scipy.optimize.linprog(cost, A_eq=rows, b_eq=rows @ weights, method="highs-ds")
    return weights if optimum.status != 0 or optimum.x is None else np.asarray(optimum.x)
