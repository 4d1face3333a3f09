"""Lower bounds: the error that no channel of a space goes below. Every function here proves what it returns.

| bound | on | from |
|---|---|---|
| `simple_gain`, `largest_gain` | the gain of leaning statistics | single statistics; the relaxation |
| `leaning_bound` | the same, as an error | the relaxation of `moment_relaxation` |
| `unbiased_bound` | the variance of unbiased statistics | the relaxation |
| `diagonal_bound` | the same, for many values | the diagonal of the relaxation |
| `information_bound` | the same, in a box | the best of these and closed forms |
| `uniform_variance` | a distribution of equal values, in a box | a closed form, which is reached |
| `ldp_bound`, `ldp_variance_bound` | both kinds of statistics under LDP | the relaxation |
| `ldp_histogram_bound`, `identity_bound` | a histogram, a distribution under LDP | closed forms |

A channel gains `<A, Y>` with `A = D W' W D`, `D = diag(P)`, for a query that leans on the prior, and has the variance
`tr(W Y^+ W')` (rows of `W` centred) for an unbiased one, where `Y` are its second moments. For any matrix `M`

    tr(W Y^+ W')  >=  (tr W M)^2 / max over K of <M M', Y>,

where `K` is the set of `moment_relaxation`. Rounding is accounted for: bounds are lowered by what it may have added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from priorveil.arrays import Array
from priorveil.certify import exp_above
from priorveil.designs.moment_relaxation import SecondMoments, eigenvalue_bound
from priorveil.designs.problem import DesignProblem, Objective
from priorveil.designs.spaces import Box, LdpCone, Space
from priorveil.designs.stopping import MOST_DENSE, UNLIMITED, Limits
from priorveil.designs.tolerances import ROUNDING, ROUNDOFF, TOLERANCE
from priorveil.designs.value_groups import MANY_VALUES, Indices, fewer_rows, group_means
from priorveil.errors import Infeasible
from priorveil.information import variance_bound
from priorveil.priors.budget import window_mass

ProvenSearch = Callable[[Array], Iterator[tuple[Array, float]]]

# The search for weights ends when a round gains less than this: a smaller number proves more, in more rounds.
_DIAGONAL_GAIN = 1e-5
_MOST_LEVEL = 12.0  # above this epsilon only the simple bound is used: exp(epsilon) is too large


def rounded_down(bound: float) -> float:
    """The bound less what the rounding of a float computation may have added."""
    return bound - ROUNDING * abs(bound)


def closed_form_bound(problem: DesignProblem) -> float:
    """A lower bound that needs no solver: that of LIP of the value, also for LDP, which is stricter.

    Histograms have a better one under LDP.
    """
    about_value = problem.is_ldp or problem.is_lip_of_value
    if not (about_value and problem.has_one_prior):
        return 0.0
    bound = problem.query.closed_form_bound(problem.reference, problem.budget)
    if problem.is_ldp and problem.objective is Objective.HISTOGRAM:
        bound = max(bound, ldp_histogram_bound(problem.P, factor_above(problem.level)))
    return rounded_down(bound)


def simple_gain(space: Space, rows: Array) -> float:
    """A gain `|W D r|^2` of centred rows that no channel exceeds, from bounds on single statistics and on all of them.

    A statistic of variance `v` gains at most the share `space.most_explained` of it, and by Minkowski's inequality at
    most `(sum_x P_x |w_x| a_x)^2` with `a_x^2` the bound on `Y_xx`. In the principal directions of the statistics, of
    variances `v_k`, they gain `sum_k v_k y_k` with `y_k` at most this share, and `sum_k y_k <= space.most_spread`.
    """
    P, explained, squares = space.prior, space.most_explained, np.multiply(*space.sides())
    alone = np.minimum(explained * (rows**2 @ P), (np.abs(rows) @ (P * np.sqrt(squares))) ** 2)
    room, gain = 1 + 8 * sum(rows.shape) * ROUNDOFF, float(alone.sum())
    if min(rows.shape) <= MOST_DENSE:
        variances = np.linalg.svd(rows * np.sqrt(P), compute_uv=False) ** 2
        shares = np.clip(space.most_spread * room - explained * np.arange(len(variances)), 0.0, explained)
        gain = min(gain, float(variances @ shares))
    return gain * room


def largest_gain(space: Space, rows: Array, groupings: Sequence[Indices], limits: Limits) -> float:
    """A gain `|W D r|^2` that no channel exceeds, for centred rows.

    For many values the last grouping is into blocks. From the means of the blocks a channel gains at most as much as a
    channel on the blocks; from the differences within blocks it gains little. The root of the gain is a norm, so the
    roots of both gains add up.
    """
    gain = simple_gain(space, rows)
    if len(space.prior) <= MANY_VALUES:
        ceiling = float((rows**2).sum(axis=0) @ space.prior) * (1 + 4 * rows.size * ROUNDOFF)
        with suppress(Infeasible):  # rare values may be lost to rounding
            gain = min(
                gain, ceiling - leaning_bound(SecondMoments.of(space, limits), fewer_rows(rows), limits)
            )
        return gain
    groups = groupings[-1]
    means = group_means(space.prior, rows, groups)
    differences = simple_gain(space, rows - means[:, groups])
    if differences >= gain:
        return gain
    return min(
        gain, (math.sqrt(largest_gain(space.merge(groups), means, (), limits)) + math.sqrt(differences)) ** 2
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
    return float((centred**2).sum(axis=0) @ P) * (1 - W.size * ROUNDOFF) - gain


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
    """`unbiased_bound` for many values, without large matrices: from bounds `largest` (d,) on `Y_xx` alone.

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
    positive = sizes > TOLERANCE * sizes[0]
    if not positive.any():
        return 0.0
    rows, left = right[positive] * sizes[positive][:, None], left[:, positive]
    weights, bound, room = P if fixed else np.ones(d), 0.0, 4 * (m + d + 64) * ROUNDOFF
    rounding_error = room * (np.abs(centred) + 2 * np.abs(W).max(axis=1, keepdims=True) / unit)
    while True:
        limits.count_round()
        half = rows * np.sqrt(weights)
        values, U = np.linalg.eigh(half @ half.T)
        roots = np.sqrt(np.maximum(values, ROUNDING * values[-1] + 1e-300))
        C = left @ ((U / roots) @ (U.T @ half))
        scaled = C * np.sqrt(weights)
        trace = float((centred * scaled).sum() - (rounding_error * np.abs(scaled)).sum())
        gram = C @ C.T if m <= d else C.T @ C
        size = (eigenvalue_bound(gram) + room * float((C**2).sum())) * float(weights.sum()) * (1 + room)
        before, bound = bound, max(bound, trace**2 / size if trace > 0 else 0.0)
        if fixed or limits.over() or bound <= before * (1 + _DIAGONAL_GAIN):
            break
        moments = ((U.T @ rows) ** 2 / roots[:, None]).sum(axis=0)
        weights = weights * moments / moments.mean()
    return bound


def _largest_proven(moments: SecondMoments, W: Array, search: ProvenSearch) -> float:
    """The largest bound on the variance that the duals of a search prove."""
    P = moments.prior
    centred = W - (W @ P)[:, None]
    left, sizes, right = np.linalg.svd(centred / moments.unit, full_matrices=False)
    positive = sizes > TOLERANCE * sizes[0]
    if not positive.any():
        return 0.0
    sizes = sizes[positive]
    rows = right[positive] * (sizes * math.sqrt(len(P) * len(sizes)) / sizes.sum())[:, None]
    bound = 0.0
    for dual, price in search(rows):
        values, U = np.linalg.eigh(rows @ dual @ rows.T)
        roots = np.sqrt(np.maximum(values, ROUNDING * abs(values[-1]) + 1e-300))
        M = dual @ rows.T @ (U / roots) @ U.T @ left[:, positive].T  # the best M with M M' <= dual
        bound = max(bound, moments.least_variance(centred, M, dual, price))
    return bound


def ldp_bound(P: Array, factor: float, W: Array, unbiased: bool, limits: Limits = UNLIMITED) -> float:
    """The better of the bounds above under LDP: an error that no channel with `r_x <= factor * r_z` goes below.

    For many values it is diagonal, from the cut of `SecondMoments.of_ldp` with `h = P`.
    """
    if unbiased and len(P) > MANY_VALUES:
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
    return 1 - float(P @ P) - gain * (1 + 8 * len(P) * ROUNDOFF)


def ldp_variance_bound(P: Array, epsilon: float, limits: Limits = UNLIMITED) -> float:
    """A bound on N times the variance, summed over the values, of learning a distribution under LDP.

    The search may end early, at the limits; what it has found is a bound all the same.

    >>> round(ldp_variance_bound(np.full(20, 0.05), 1.0), 4)
    66.6344
    """
    if len(P) < 2:
        return 0.0
    simple = identity_bound(P, epsilon)
    if len(P) > MOST_DENSE or epsilon > _MOST_LEVEL or np.ptp(P) == 0 or limits.over():
        return simple
    return max(simple, ldp_bound(P, factor_above(epsilon), np.eye(len(P)), True, limits))


def identity_bound(P: Array, epsilon: float) -> float:
    """The bound `(d - 1)^2 / max |r - 1|^2` under LDP. For equal values it is the least variance.

    An extreme column has `e^eps` on a set of `k` values and one on the others, times a scale. `|r - 1|^2` is convex in
    the scale, so it is largest for the `k` rarest or the `k` commonest values. With `s` their mass and `c = e^eps - 1`
    it is `(k (1 - s)^2 + (d - k) s^2) / (1/c + s)^2`, where nothing cancels.

    >>> round(identity_bound(np.full(83, 1 / 83), 1.0), 3)
    298.372
    """
    d, c, k = len(P), factor_above(epsilon) - 1, np.arange(1, len(P))
    rarest, commonest = (np.cumsum(order)[:-1] for order in (np.sort(P), -np.sort(-P)))
    ends = [(rarest, commonest[::-1]), (commonest, rarest[::-1])]  # the mass of a set, and of the others
    largest = max(float(((k * rest**2 + (d - k) * s**2) / (1 / c + s) ** 2).max()) for s, rest in ends)
    # Each term takes fewer than 200 roundings; probabilities count as 130 (`NORMALISED` in `Prior`).
    return (d - 1) ** 2 / largest * (1 - 4 * (d + 400) * ROUNDOFF)


def factor_above(epsilon: float) -> float:
    """A float that is at least `e^epsilon`, or infinity."""
    return math.inf if epsilon > 700 else math.nextafter(float(exp_above(epsilon)), math.inf)


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
    if len(prior) <= MANY_VALUES:
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
