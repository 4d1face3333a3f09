"""The second moments of a channel, relaxed to a convex set, and the search for duals that prove bounds on it.

Let `s = r - 1` for the columns of a channel, and write a space as `-b_x <= s_x <= a_x` (each value's own bounds, from
`lo <= r <= hi` and `P . r = 1`). Then `E[s] = 0`, and the second moments `Y = E[s s']` satisfy

    Y positive semidefinite,   Y P = 0,   -min(a_x a_z, b_x b_z) <= Y_xz <= min(a_x b_z, b_x a_z),

the last because a product such as `(a_x - s_x)(b_z + s_z)` is never negative. The sum of all `Y_xx / (a_x b_x)` is at
most a number that the engine proves: the gain of a histogram with weights. Call this convex set `K`. For any symmetric
matrix `L`, whose positive entries meet the upper bounds and whose negative ones meet the lower,

    max over K of <M M', Y>  <=  sum_xz max(L_xz high_xz, L_xz low_xz)  +  t * the largest trace of Y,

where `t` is the largest eigenvalue of `M M' - L` on the vectors orthogonal to `P`, or zero. So **any `L` and `M` prove
a bound**, and the search for good ones needs no trust. It alternates between two projections (ADMM): clip
the matrix to its bounds, then project it onto the positive semidefinite ones; the dual collects what the projections
remove. For an unbiased query the matrix is `[[Y, W'], [W, T]]`, and then the trace of `T` is at least the variance.
Under LDP the bounds `a` and `b` differ, and so does the last inequality (`SecondMoments.of_ldp`), which holds for any
weights of the values: the best ones are found with the dual (`ldp_duals`). All lengths are in units in which each
`Y_xx` is at most one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse

from priorveil.arrays import Array
from priorveil.designs.pricing import weighted_histogram
from priorveil.designs.spaces import Box, LdpCone, Space
from priorveil.designs.stopping import FIRST_STEP, MOST_ROUNDS, UNLIMITED, Limits
from priorveil.designs.tolerances import ROUNDING, ROUNDOFF
from priorveil.designs.value_groups import MANY_VALUES

_EVERY = 20  # rounds after which a bound is computed
_CLOSE = 1e-6  # change in a round, relative to the matrix, at which the search ends
_CUT_GAP = 1e-3  # how exactly the largest sum of all `Y_xx` is proven: more hardly tightens the bounds
_TANGENT = 1e-4  # eigenvalues below this share of their mean have the tangent for their root, under LDP


class SecondMoments:
    """The set `K`, in units in which each `Y_xx` is at most one.

    `low` and `high` bound the entries of `Y`, and `<cut, Y> <= total`.
    """

    def __init__(self, P: Array, above: Array, below: Array) -> None:
        self.prior, self.unit = P, np.sqrt(above * below)
        a, b = above / self.unit, below / self.unit
        room = 1 + 32 * ROUNDOFF
        self.low = -room * np.minimum(np.outer(a, a), np.outer(b, b))
        self.high = room * np.minimum(np.outer(a, b), np.outer(b, a))
        self.cut, self.total = np.eye(len(P)), room * len(P)
        null = P * self.unit  # Y times this is zero
        self.null = null / np.linalg.norm(null)

    @classmethod
    def of(cls, space: Space, limits: Limits = UNLIMITED) -> SecondMoments:
        """The set for the columns of a box, or of LDP, with the cut weighted by the prior."""
        if isinstance(space, Box):
            return cls.of_box(space, limits)
        return cls.of_ldp(space.prior, space.ldp_ratio, space.prior)

    @classmethod
    def of_box(cls, box: Box, limits: Limits = UNLIMITED) -> SecondMoments:
        """The set for the columns of a box; the cut is the largest trace that the engine proves (up to 300 values)."""
        P = box.prior
        moments = cls(P, *box.sides())
        if len(P) > MANY_VALUES:
            return moments
        squares = 1 / moments.unit**2
        weights = squares / P**2
        part = replace(limits.share(FIRST_STEP), target=_CUT_GAP, progress=None)
        trace = weighted_histogram(box, weights / weights.max(), np.zeros(len(P), dtype=bool), part)
        if trace.interrupted:
            raise KeyboardInterrupt
        moments.total = float(trace.bound * weights.max() - squares.sum() * (1 - 1e-13))
        return moments

    @classmethod
    def of_ldp(cls, P: Array, factor: float, weights: Array) -> SecondMoments:
        """The set for the columns with `r_x <= factor * r_z`; any positive weights (d,) make a valid cut.

        With `w` the least entry of a column and weights that add up to one, `sum_x h_x (r_x - w)(factor w - r_x) >= 0`,
        so `sum_x h_x r_x^2 <= g (h . r)^2` with `g = (1 + factor)^2 / (4 factor)`, the largest over `w`.
        """
        moments = cls(P, *LdpCone(P, factor).sides())
        moments.set_ldp_cut(factor, weights)
        return moments

    def set_ldp_cut(self, factor: float, weights: Array) -> None:
        """Take the cut with these weights."""
        h, g = weights / weights.sum(), (1 + factor) ** 2 / (4 * factor)
        cut = (np.diag(h) - g * np.outer(h, h)) * np.outer(self.unit, self.unit)
        room = 32 * ROUNDOFF * (1 + g) * float(self.unit.max()) ** 2
        scale = float(np.abs(cut).max())
        self.cut, self.total = cut / scale, ((g - 1) * (1 + 32 * ROUNDOFF) + room) / scale

    def ldp_duals(self, rows: Array, factor: float, limits: Limits) -> Iterator[tuple[Array, float]]:
        """The best dual for the least `tr T` that is diagonal except for its cut; it uses the cut of the best weights.

        With the price times the weights, `u`, it is `L = diag(l) + D (diag(u) - g u u' / sum(u)) D`, `D` the units. It
        pays `sum(l) + (g - 1) sum(u)`, and the root of `rows L rows'` has a trace. The payments less twice the trace
        are convex in `l` and `u`. The root of a small eigenvalue is replaced by its tangent, so that the search may
        leave the positive semidefinite matrices on its way.
        """
        count = itertools.count(1)
        (k, d), g = rows.shape, (1 + factor) ** 2 / (4 * factor)
        least, scaled = _TANGENT * float((rows**2).sum()) / d, rows * self.unit

        def excess(x: Array) -> tuple[float, Array]:
            diagonal, u, total = x[:d], x[d:], float(x[d:].sum())
            along = scaled @ u
            matrix = (rows * diagonal) @ rows.T + (scaled * u) @ scaled.T - g / total * np.outer(along, along)
            values, U = np.linalg.eigh(matrix)
            roots = np.sqrt(np.maximum(values, least))
            trace = float((roots + np.minimum(values - least, 0.0) / (2 * roots)).sum())
            turned = (U / np.sqrt(roots)).T @ rows
            turned_scaled = turned * self.unit
            along = turned_scaled @ u / total
            by_u = (turned_scaled**2).sum(axis=0) - g * (2 * along @ turned_scaled - along @ along)
            slopes = np.concatenate([1 - (turned**2).sum(axis=0), g - 1 - by_u])
            return float(diagonal.sum()) + (g - 1) * total - 2 * trace, slopes

        def end_if_asked(intermediate_result: scipy.optimize.OptimizeResult) -> None:
            steps = next(count)
            if steps % _EVERY == 0:
                limits.count_round()
            if limits.over():
                raise StopIteration

        start = k / d * np.concatenate([np.ones(d), 0.3 / self.unit**2])
        optimum = scipy.optimize.minimize(
            excess,
            start,
            method="L-BFGS-B",
            jac=True,
            bounds=scipy.optimize.Bounds(1e-9 * start.max(), np.inf),
            callback=end_if_asked,
            options={"maxiter": MOST_ROUNDS, "maxcor": 30, "ftol": 1e-11, "gtol": 1e-10},
        )
        self.set_ldp_cut(factor, optimum.x[d:])
        price = (g - 1) * float(optimum.x[d:].sum()) / self.total
        yield np.diag(optimum.x[:d]) + price * self.cut, price

    def duals(self, cost: Array, rows: Array, limits: Limits) -> Iterator[tuple[Array, float]]:
        """Better and better duals of `min <cost, Y> + tr T` with `[[Y, rows'], [rows, T]]` positive semidefinite.

        Each is the matrix `L` and the price of the cut that is part of it.
        """
        d, n = len(cost), len(cost) + len(rows)
        costs, bounded = np.eye(n), np.zeros((n, n))
        costs[:d, :d], bounded[d:, :d], bounded[:d, d:] = cost, rows, rows.T
        null, penalty = np.append(self.null, np.zeros(n - d)), 0.3
        inside, dual = np.zeros((n, n)), costs
        for turn in range(1, MOST_ROUNDS + 1):
            free = inside - (costs - dual) / penalty
            bounded[d:, d:] = free[d:, d:]
            bounded[:d, :d], shift = self._nearest(free[:d, :d])
            target = bounded - dual / penalty
            values, U = np.linalg.eigh(_project_out(target, null))
            positive = U[:, values > 0]
            before, inside = inside, (positive * values[values > 0]) @ positive.T
            dual = penalty * (inside - target)
            moved, apart = penalty * np.linalg.norm(inside - before), np.linalg.norm(bounded - inside)
            done = (
                max(moved, apart) <= _CLOSE * np.linalg.norm(inside) or turn == MOST_ROUNDS or limits.over()
            )
            if done or turn % _EVERY == 0:
                limits.count_round()
                yield dual[:d, :d], penalty * shift
            if done:
                return
            if turn % 10 == 0 and turn < MOST_ROUNDS // 2:
                penalty *= 1.5 if apart > 3 * moved else 1 / 1.5 if moved > 3 * apart else 1.0

    def _nearest(self, matrix: Array) -> tuple[Array, float]:
        """The nearest matrix within the bounds and the cut, and the multiple of the cut that was subtracted."""

        def excess(shift: float) -> float:
            clipped = np.clip(matrix - shift * self.cut, self.low, self.high)
            return float((self.cut * clipped).sum()) - self.total

        shift = 0.0
        if excess(shift) > 0:
            most = 1.0
            while excess(most) > 0:
                most *= 2
            shift = float(scipy.optimize.brentq(excess, 0.0, most, xtol=ROUNDING, rtol=ROUNDING))
        return np.clip(matrix - shift * self.cut, self.low, self.high), shift

    # -- the proof: arithmetic with room for its rounding, whatever the search returned ------------------------

    def largest(self, M: Array, dual: Array, price: float) -> float:
        """An upper bound on `<M M', Y>` in the set; entries of `M` may be wrong by a few roundings."""
        d, k = M.shape
        if not (np.isfinite(M).all() and np.isfinite(dual).all() and 0 <= price < math.inf):
            return math.inf
        dual = (dual + dual.T) / 2
        own = dual - price * self.cut
        excess = M @ M.T - own - price * self.cut
        size = np.abs(M) @ np.abs(M).T + np.abs(own) + price * np.abs(self.cut)
        size += d * np.abs(excess).max() * self.null
        room = (k + d + 8) * ROUNDOFF * float(np.linalg.norm(size))
        rest = max(eigenvalue_bound(_project_out(excess, self.null)) + room, 0.0) * d * (1 + ROUNDING)
        # what the dual pays for the bound of each entry, and for the cut
        paid = np.append(np.maximum(own * self.low, own * self.high), price * self.total)
        return float(paid.sum() + (d**2 + 8) * ROUNDOFF * np.abs(paid).sum() + rest)

    def least_variance(self, centred: Array, M: Array, dual: Array, price: float) -> float:
        """A lower bound on the variance of the centred rows: `(tr W M)^2` over the largest `<M M', Y>`."""
        largest, room = self.largest(M, dual, price), (M.size + 8) * ROUNDOFF
        off_centre = np.abs(centred @ self.prior) + room * (np.abs(centred) @ self.prior)
        rounding_error = (room * np.abs(centred) + off_centre[:, None]) / self.unit
        trace = float((centred / self.unit * M.T).sum() - (rounding_error * np.abs(M.T)).sum() * (1 + room))
        return trace**2 / largest * (1 - 8 * ROUNDOFF) if trace > 0 and 0 < largest < math.inf else 0.0


def _project_out(matrix: Array, unit: Array) -> Array:
    """A symmetric matrix restricted to the vectors orthogonal to a unit vector."""
    along = matrix @ unit
    along -= unit * (unit @ along) / 2
    half = matrix / 2 - np.outer(along, unit)
    return np.asarray(half + half.T)


def eigenvalue_bound(matrix: Array) -> float:
    """An upper bound on the eigenvalues of a symmetric matrix.

    If `t I - matrix` has a Cholesky factor in floating point then no eigenvalue of it is below
    `-(d + 1) u / (1 - (d + 1) u)` times its trace (Rump, Verification of positive definiteness, 2006).
    """
    d = len(matrix)
    top, room = float(np.linalg.eigvalsh(matrix)[-1]), ROUNDOFF * float(np.linalg.norm(matrix)) + 1e-300
    while True:
        difference = (top + room) * np.eye(d) - matrix
        try:
            np.linalg.cholesky(difference)
        except np.linalg.LinAlgError:
            room *= 2
        else:
            return top + room + (d + 4) * ROUNDOFF * float(np.trace(difference))
