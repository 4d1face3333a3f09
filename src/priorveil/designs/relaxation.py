"""Bounds for linear statistics: what no channel of a box can do, from a relaxation of its second moments.

Let `s = r - 1` for the columns of a channel, and write the box as `-b_x <= s_x <= a_x` (each value's own bounds, from
`lo <= r <= hi` and `P . r = 1`). Then `E[s] = 0`, and the second moments `Y = E[s s']` satisfy

    Y positive semidefinite,   Y P = 0,   -min(a_x a_z, b_x b_z) <= Y_xz <= min(a_x b_z, b_x a_z),

the last because a product such as `(a_x - s_x)(b_z + s_z)` is never negative. The sum of all `Y_xx / (a_x b_x)` is at
most a number that the engine proves: the gain of a histogram with weights. Call this convex set `K`. A channel gains
`<A, Y>` with `A = D W' W D`, `D = diag(P)`, for a prior-based query, and has the variance `tr(W Y^+ W')` (rows of `W`
centred) for an unbiased one, so the best of `K` bounds them all. For any matrix `M`

    tr(W Y^+ W')  >=  (tr W M)^2 / max over K of <M M', Y>,

and for any symmetric matrix `L`, whose positive entries meet the upper bounds and whose negative ones meet the lower,

    max over K of <M M', Y>  <=  sum_xz max(L_xz high_xz, L_xz low_xz)  +  t * the largest trace of Y,

where `t` is the largest eigenvalue of `M M' - L` on the vectors orthogonal to `P`, or zero. So **any `L` and `M` prove
a bound**, and the search for good ones needs no trust. It alternates between two projections (ADMM): clip
the matrix to its bounds, then project it onto the positive semidefinite ones; the dual collects what the projections
remove. For an unbiased query the matrix is `[[Y, W'], [W, T]]`, and then the trace of `T` is at least the variance.
Diagonal `L` alone (`diagonal_bound`) are nearly as good for many values, and much cheaper.
Under LDP the bounds `a` and `b` differ, and so does the last inequality (`SecondMoments.of_ldp`), which holds for any
weights of the values: the best ones are found with the dual (`ldp_duals`). All lengths are in units in which each
`Y_xx` is at most one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import scipy.optimize
import scipy.sparse

from priorveil.arrays import Array
from priorveil.certify import exp_above
from priorveil.designs.box_pricing import Box, LdpCone, Space, SquaresPricing
from priorveil.designs.box_solvers import seeds, similar_groups, simple_gain, weighted_histogram, widen
from priorveil.designs.engine import Labels, Solution, solve
from priorveil.designs.limits import UNLIMITED, Limits
from priorveil.errors import Infeasible

_ROUNDS = 600  # of the search for a dual
_EVERY = 20  # rounds after which a bound is computed
_CLOSE = 1e-6  # change in a round, relative to the matrix, at which the search ends
_CUT_GAP, _CUT_SHARE = 1e-3, 1 / 4  # the gap and the share of the time for the largest sum of all `Y_xx`
_DIAGONAL_ROUNDS, _DIAGONAL_GAIN = 30, 1e-5  # at most so many, each with at least this gain
MOST_VALUES = 300  # beyond, bounds are diagonal or of blocks of values
_FEW = 24  # values up to which the search starts from simple columns
_BLOCKS, _BLOCKS_PER_WINDOW = 120, 8  # of many values, at least, and in the mass that an output can point at
_TANGENT = 1e-4  # eigenvalues below this share of their mean have the tangent for their root, under LDP
_MOST_SEARCHED, _MOST_LEVEL = 1_000, 12.0  # values and levels for which a bound on learning is searched for
_ROUNDOFF = 2.0**-52

Search = Callable[[Array], Iterator[tuple[Array, float]]]


def best_linear(
    box: Space, rows: Array, limits: Limits = UNLIMITED, margins: Sequence[Labels] = ()
) -> Solution:
    """The best channel found for centred `rows` of statistics, `phi = |W D r|^2`, with a proven bound.

    `margins` label values (d,) that some of the statistics treat alike.

    >>> best = best_linear(Box(np.array([0.5, 0.5]), lo=0.5, hi=2.0), np.array([[-1.0, 1.0], [0.5, -0.5]]))
    >>> round(best.value, 9), round(best.bound, 4)
    (0.3125, 0.3125)
    """
    groupings = [*margins, *_similar_groups(box, rows)]
    try:
        bound = _largest_gain(box, rows, groupings, limits.share(1 / 3))
    except KeyboardInterrupt:
        bound, limits = simple_gain(box, rows), limits.without_time()
    found = _search(box, rows, groupings, limits, bound)
    return widen(found, np.arange(len(box.prior)), bound, limits)


def _similar_groups(box: Space, rows: Array) -> list[Labels]:
    """Blocks of similar values to design for first: a quarter of the values, or of many so many that each is light."""
    d = len(box.prior)
    light = min(max(_BLOCKS, _BLOCKS_PER_WINDOW / max(box.tau, 1e-15)), MOST_VALUES)
    return [similar_groups(box, rows, d // 4 if d <= MOST_VALUES else int(light))] if d > _FEW else []


def _search(box: Space, rows: Array, groupings: Sequence[Labels], limits: Limits, bound: float) -> Solution:
    """Column generation that starts from the best columns for values in groups; of many values these are the answer."""
    d, found = len(box.prior), list[Solution]()
    for groups in groupings:
        parts = len(groupings) - len(found) + (d <= MOST_VALUES)
        share = replace(limits.share(1 / parts), progress=None)
        merged, means = box.merge(groups), _block_means(box, rows, groups)
        part = _search(merged, means, _similar_groups(merged, means), share, bound)
        found.append(replace(part, columns=part.columns[:, groups]))
        limits = limits.without_time() if part.interrupted else limits
    if d > MOST_VALUES:
        best = max(found, key=lambda part: part.value)
        try:
            limits.report(best.iterations, best.value, bound)
        except KeyboardInterrupt:
            return replace(best, interrupted=True)
        return best
    starts = [np.ones((1, d)), *(part.columns for part in found)] if found else [seeds(box)]
    pricing = SquaresPricing(box, _fewer_rows(rows) * box.prior)
    return solve(pricing, np.vstack(starts), limits, bound=bound)


def _block_means(box: Space, rows: Array, groups: Labels) -> Array:
    """The statistics (m, n) of blocks: the means over their values."""
    shares = box.prior / box.merge(groups).prior[groups]
    return np.asarray(rows @ scipy.sparse.csr_array((shares, (np.arange(len(groups)), groups))))


def _fewer_rows(rows: Array) -> Array:
    """At most as many rows as values, with the same products of columns."""
    return rows if len(rows) <= rows.shape[1] else np.asarray(np.linalg.qr(rows, mode="r"))


def _largest_gain(box: Space, rows: Array, groupings: Sequence[Labels], limits: Limits) -> float:
    """A gain `|W D r|^2` that no channel exceeds, for centred rows.

    Of many values the last grouping is into blocks. A channel gains as much from the means of blocks as a channel on
    the blocks can, and little from the differences within blocks; the root of the gain is a norm, so roots add up.
    """
    gain = simple_gain(box, rows)
    if len(box.prior) <= MOST_VALUES:
        ceiling = float((rows**2).sum(axis=0) @ box.prior) * (1 + 4 * rows.size * _ROUNDOFF)
        with suppress(Infeasible):  # rare values may be lost to rounding
            gain = min(
                gain, ceiling - leaning_bound(SecondMoments.of(box, limits), _fewer_rows(rows), limits)
            )
        return gain
    groups = groupings[-1]
    means = _block_means(box, rows, groups)
    within = simple_gain(box, rows - means[:, groups])
    if within >= gain:
        return gain
    return min(
        gain, (math.sqrt(_largest_gain(box.merge(groups), means, (), limits)) + math.sqrt(within)) ** 2
    )


def leaning_bound(moments: SecondMoments, W: Array, limits: Limits = UNLIMITED) -> float:
    """A mean square error, summed over the rows of `W`, that no channel with these moments goes below.

    >>> P = np.array([0.5, 0.3, 0.2])
    >>> moments = SecondMoments.of_box(Box(P, np.exp(-2.0), np.exp(2.0)))
    >>> exact = (1 - P @ P) * (1 - (1 - np.exp(-2.0)) ** 2)      # every value is heavy: Theorem 3 is the optimum
    >>> bool(0 <= 1 - leaning_bound(moments, np.eye(3)) / exact < 1e-4)
    True
    """
    P = moments.prior
    centred = W - (W @ P)[:, None]
    M = (moments.unit * P)[:, None] * centred.T
    A = M @ M.T
    size = float(np.linalg.norm(A, 2)) or 1.0
    duals = moments.duals(-A / size, np.zeros((0, len(P))), limits)
    gain = min(moments.largest(M, A + size * dual, size * price) for dual, price in duals)
    return float((centred**2).sum(axis=0) @ P) * (1 - W.size * _ROUNDOFF) - gain


def unbiased_bound(moments: SecondMoments, W: Array, limits: Limits = UNLIMITED) -> float:
    """`N` times a variance, summed over the rows of `W`, that no channel with these moments goes below.

    >>> P = np.array([0.5, 0.3, 0.2])
    >>> moments = SecondMoments.of_box(Box(P, np.exp(-2.0), np.exp(2.0)))
    >>> exact = (1 - P @ P) / (1 - np.exp(-2.0)) ** 2
    >>> bool(0 <= 1 - unbiased_bound(moments, np.eye(3)) / exact < 1e-4)
    True
    """
    nothing = np.zeros((len(moments.prior),) * 2)
    return _largest_proven(moments, W, lambda rows: moments.duals(nothing, rows, limits))


def diagonal_bound(
    P: Array, largest: Array, W: Array, limits: Limits = UNLIMITED, fixed: bool = False
) -> float:
    """As `unbiased_bound`, from bounds `largest` (d,) on `Y_xx` alone: for many values, and without large matrices.

    With `L = diag(w)` and `M = L^(1/2) C` the matrix `M M'` is at most `L` times the largest eigenvalue of `C' C`, so
    any `C` and `w` prove `(tr W M)^2 / (that eigenvalue * sum_x w_x largest_x)`. The best `C` has orthonormal columns;
    the best `w` is searched for: a value gets more weight where `Y_xx` would be above its bound. If the weights are
    `fixed` they are `P`, and only the mean of `Y_xx` under the prior has to be within that of the bounds.

    >>> P = np.full(4, 0.25)
    >>> round(diagonal_bound(P, np.full(4, (np.e - 1) * (1 - 1 / np.e)), np.eye(4)), 4)
    2.0715
    """
    unit, (m, d) = np.sqrt(largest), W.shape
    centred = (W - (W @ P)[:, None]) / unit
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    kept = sizes > 1e-9 * sizes[0]
    if not kept.any():
        return 0.0
    rows, left = right[kept] * sizes[kept][:, None], left[:, kept]
    weights, bound, room = P if fixed else np.ones(d), 0.0, 4 * (m + d + 64) * _ROUNDOFF
    wrong = room * (np.abs(centred) + 2 * np.abs(W).max(axis=1, keepdims=True) / unit)
    for _ in range(1 if fixed else _DIAGONAL_ROUNDS):
        limits.count_round()
        half = rows * np.sqrt(weights)
        values, U = np.linalg.eigh(half @ half.T)
        roots = np.sqrt(np.maximum(values, 1e-12 * values[-1] + 1e-300))
        C = left @ ((U / roots) @ (U.T @ half))
        scaled = C * np.sqrt(weights)
        trace = float((centred * scaled).sum() - (wrong * np.abs(scaled)).sum())
        gram = C @ C.T if m <= d else C.T @ C
        size = (_largest_eigenvalue(gram) + room * float((C**2).sum())) * float(weights.sum()) * (1 + room)
        before, bound = bound, max(bound, trace**2 / size if trace > 0 else 0.0)
        if limits.over() or bound <= before * (1 + _DIAGONAL_GAIN):
            break
        moments = ((U.T @ rows) ** 2 / roots[:, None]).sum(axis=0)
        weights = weights * moments / moments.mean()
    return bound


def _largest_proven(moments: SecondMoments, W: Array, search: Search) -> float:
    """The largest bound on the variance that the duals of a search prove."""
    P = moments.prior
    centred = W - (W @ P)[:, None]
    left, sizes, right = np.linalg.svd(centred / moments.unit, full_matrices=False)
    kept = sizes > 1e-9 * sizes[0]
    if not kept.any():
        return 0.0
    rows = right[kept] * (sizes[kept] * math.sqrt(len(P) * kept.sum()) / sizes[kept].sum())[:, None]
    bound = 0.0
    for dual, price in search(rows):
        values, U = np.linalg.eigh(rows @ dual @ rows.T)
        roots = np.sqrt(np.maximum(values, 1e-12 * abs(values[-1]) + 1e-300))
        M = dual @ rows.T @ (U / roots) @ U.T @ left[:, kept].T  # the best M with M M' <= dual
        bound = max(bound, moments.least_variance(centred, M, dual, price))
    return bound


def ldp_bound(P: Array, factor: float, W: Array, unbiased: bool, limits: Limits = UNLIMITED) -> float:
    """The better of the bounds above under LDP: an error that no channel with `r_x <= factor * r_z` goes below.

    For many values it is diagonal, from the cut of `SecondMoments.of_ldp` with `h = P`.
    """
    if unbiased and len(P) > MOST_VALUES:
        return diagonal_bound(P, np.full(len(P), (factor - 1) ** 2 / (4 * factor)), W, limits, fixed=True)
    moments = SecondMoments.of_ldp(P, factor, P)
    if not unbiased:
        return leaning_bound(moments, W, limits)
    return _largest_proven(moments, W, lambda rows: moments.ldp_duals(rows, factor, limits))


def ldp_histogram_bound(P: Array, factor: float) -> float:
    """The error of a histogram that no channel with `r_x <= factor * r_z` goes below, leaning on the prior.

    The gain is `sum_x P_x m_x` with `m_x = P_x Y_xx`, the share of a statistic of variance one that is explained. So
    `m_x` is at most `most_explained`, and `P_x a_x b_x`; all of them add up to at most `most_spread`.

    >>> round(ldp_histogram_bound(np.full(20, 0.05), np.e), 4)      # subset selection has 0.9365
    0.9364
    """
    space = LdpCone(-np.sort(-P), factor)
    most = np.minimum(space.most_explained, space.prior * np.multiply(*space.sides()))
    filled = np.minimum(np.cumsum(most), space.most_spread)
    gain = float(space.prior @ np.diff(filled, prepend=0.0))
    return 1 - float(P @ P) - gain * (1 + 8 * len(P) * _ROUNDOFF)


def ldp_variance_bound(P: Array, epsilon: float, limits: Limits = UNLIMITED) -> float:
    """A bound on N times the variance, summed over the values, of learning a distribution under LDP.

    The search may end early, at the limits; what it has found is a bound all the same.

    >>> round(ldp_variance_bound(np.full(20, 0.05), 1.0), 4)
    66.6344
    """
    if len(P) < 2:
        return 0.0
    simple = identity_bound(P, epsilon)
    if len(P) > _MOST_SEARCHED or epsilon > _MOST_LEVEL or np.ptp(P) == 0 or limits.over():
        return simple
    return max(simple, ldp_bound(P, factor_above(epsilon), np.eye(len(P)), True, limits))


def identity_bound(P: Array, epsilon: float) -> float:
    """The bound `(d - 1)^2 / max |r - 1|^2` under LDP. For equal values it is the least variance.

    A column has `e^eps` on a set of `k` values, scaled. Of these `|r - 1|^2` is convex in the scale, so it is largest
    for the `k` rarest or the `k` commonest. With `s` their mass it is `(k (1 - s)^2 + (d - k) s^2) / (1/c + s)^2`,
    `c = e^eps - 1`, where nothing cancels.

    >>> round(identity_bound(np.full(83, 1 / 83), 1.0), 3)
    298.372
    """
    d, c, k = len(P), factor_above(epsilon) - 1, np.arange(1, len(P))
    rarest, commonest = (np.cumsum(order)[:-1] for order in (np.sort(P), -np.sort(-P)))
    ends = [(rarest, commonest[::-1]), (commonest, rarest[::-1])]  # the mass of a set, and of the others
    largest = max(float(((k * rest**2 + (d - k) * s**2) / (1 / c + s) ** 2).max()) for s, rest in ends)
    # Each term takes fewer than 200 roundings; probabilities count as 130 (`NORMALISED` in `Prior`).
    return (d - 1) ** 2 / largest * (1 - 4 * (d + 400) * _ROUNDOFF)


def factor_above(epsilon: float) -> float:
    """A float that is at least `e^epsilon`, or infinity."""
    return math.inf if epsilon > 700 else math.nextafter(float(exp_above(epsilon)), math.inf)


class SecondMoments:
    """The set `K`, in units in which each `Y_xx` is at most one.

    `low` and `high` bound the entries of `Y`, and `<cut, Y> <= total`.
    """

    def __init__(self, P: Array, above: Array, below: Array) -> None:
        self.prior, self.unit = P, np.sqrt(above * below)
        a, b = above / self.unit, below / self.unit
        room = 1 + 32 * _ROUNDOFF
        self.low = -room * np.minimum(np.outer(a, a), np.outer(b, b))
        self.high = room * np.minimum(np.outer(a, b), np.outer(b, a))
        self.cut, self.total = np.eye(len(P)), room * len(P)
        null = P * self.unit  # Y times this is zero
        self.null = null / np.linalg.norm(null)

    @classmethod
    def of(cls, space: Space, limits: Limits = UNLIMITED) -> SecondMoments:
        """For the columns of a box, or of LDP with the cut that queries lean on the prior with."""
        return (
            cls.of_box(space, limits)
            if isinstance(space, Box)
            else cls.of_ldp(space.prior, space.ratio, space.prior)
        )

    @classmethod
    def of_box(cls, box: Box, limits: Limits = UNLIMITED) -> SecondMoments:
        """For the columns of a box; the cut is the largest trace that the engine proves, for up to 300 values."""
        P = box.prior
        moments = cls(P, *box.sides())
        if len(P) > MOST_VALUES:
            return moments
        squares = 1 / moments.unit**2
        weights = squares / P**2
        part = replace(limits.share(_CUT_SHARE), target=_CUT_GAP, progress=None)
        found = weighted_histogram(box, weights / weights.max(), np.zeros(len(P), dtype=bool), part)
        if found.interrupted:
            raise KeyboardInterrupt
        moments.total = float(found.bound * weights.max() - squares.sum() * (1 - 1e-13))
        return moments

    @classmethod
    def of_ldp(cls, P: Array, factor: float, weights: Array) -> SecondMoments:
        """For the columns with `r_x <= factor * r_z`; any positive weights (d,) make a valid cut.

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
        room = 32 * _ROUNDOFF * (1 + g) * float(self.unit.max()) ** 2
        scale = float(np.abs(cut).max())
        self.cut, self.total = cut / scale, ((g - 1) * (1 + 32 * _ROUNDOFF) + room) / scale

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
        found = scipy.optimize.minimize(
            excess,
            start,
            method="L-BFGS-B",
            jac=True,
            bounds=scipy.optimize.Bounds(1e-9 * start.max(), np.inf),
            callback=end_if_asked,
            options={"maxiter": _ROUNDS, "maxcor": 30, "ftol": 1e-11, "gtol": 1e-10},
        )
        self.set_ldp_cut(factor, found.x[d:])
        price = (g - 1) * float(found.x[d:].sum()) / self.total
        yield np.diag(found.x[:d]) + price * self.cut, price

    def duals(self, cost: Array, rows: Array, limits: Limits) -> Iterator[tuple[Array, float]]:
        """Better and better duals of `min <cost, Y> + tr T` with `[[Y, rows'], [rows, T]]` positive semidefinite.

        Each is the matrix `L` and the price of the cut that is part of it.
        """
        d, n = len(cost), len(cost) + len(rows)
        costs, bounded = np.eye(n), np.zeros((n, n))
        costs[:d, :d], bounded[d:, :d], bounded[:d, d:] = cost, rows, rows.T
        null, penalty = np.append(self.null, np.zeros(n - d)), 0.3
        inside, dual = np.zeros((n, n)), costs
        for turn in range(1, _ROUNDS + 1):
            free = inside - (costs - dual) / penalty
            bounded[d:, d:] = free[d:, d:]
            bounded[:d, :d], shift = self._nearest(free[:d, :d])
            target = bounded - dual / penalty
            values, U = np.linalg.eigh(_project_out(target, null))
            positive = U[:, values > 0]
            before, inside = inside, (positive * values[values > 0]) @ positive.T
            dual = penalty * (inside - target)
            moved, apart = penalty * np.linalg.norm(inside - before), np.linalg.norm(bounded - inside)
            done = max(moved, apart) <= _CLOSE * np.linalg.norm(inside) or turn == _ROUNDS or limits.over()
            if done or turn % _EVERY == 0:
                limits.count_round()
                yield dual[:d, :d], penalty * shift
            if done:
                return
            if turn % 10 == 0 and turn < _ROUNDS // 2:
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
            shift = float(scipy.optimize.brentq(excess, 0.0, most, xtol=1e-12, rtol=1e-12))
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
        room = (k + d + 8) * _ROUNDOFF * float(np.linalg.norm(size))
        rest = max(_largest_eigenvalue(_project_out(excess, self.null)) + room, 0.0) * d * (1 + 1e-12)
        # what the dual pays for the bound of each entry, and for the cut
        paid = np.append(np.maximum(own * self.low, own * self.high), price * self.total)
        return float(paid.sum() + (d**2 + 8) * _ROUNDOFF * np.abs(paid).sum() + rest)

    def least_variance(self, centred: Array, M: Array, dual: Array, price: float) -> float:
        """A lower bound on the variance of the centred rows: `(tr W M)^2` over the largest `<M M', Y>`."""
        largest, room = self.largest(M, dual, price), (M.size + 8) * _ROUNDOFF
        off_centre = np.abs(centred @ self.prior) + room * (np.abs(centred) @ self.prior)
        wrong = (room * np.abs(centred) + off_centre[:, None]) / self.unit
        trace = float((centred / self.unit * M.T).sum() - (wrong * np.abs(M.T)).sum() * (1 + room))
        return trace**2 / largest * (1 - 8 * _ROUNDOFF) if trace > 0 and 0 < largest < math.inf else 0.0


def _project_out(matrix: Array, unit: Array) -> Array:
    """A symmetric matrix restricted to the vectors orthogonal to a unit vector."""
    along = matrix @ unit
    along -= unit * (unit @ along) / 2
    half = matrix / 2 - np.outer(along, unit)
    return np.asarray(half + half.T)


def _largest_eigenvalue(matrix: Array) -> float:
    """An upper bound on the eigenvalues of a symmetric matrix.

    If `t I - matrix` has a Cholesky factor in floating point then no eigenvalue of it is below
    `-(d + 1) u / (1 - (d + 1) u)` times its trace (Rump, Verification of positive definiteness, 2006).
    """
    d = len(matrix)
    top, room = float(np.linalg.eigvalsh(matrix)[-1]), _ROUNDOFF * float(np.linalg.norm(matrix)) + 1e-300
    while True:
        difference = (top + room) * np.eye(d) - matrix
        try:
            np.linalg.cholesky(difference)
        except np.linalg.LinAlgError:
            room *= 2
        else:
            return top + room + (d + 4) * _ROUNDOFF * float(np.trace(difference))
