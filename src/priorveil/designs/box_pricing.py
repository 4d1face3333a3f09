"""Pricing for the box `lo <= r <= hi`: local information privacy of the value itself under one prior.

Write `P_x r_x = lo P_x + (1 - lo) f_x`. Then `f` is a distribution with `f_x <= g_x = min(1, P_x / tau)`,
where `tau = (1 - lo) / (hi - lo)`, and the master asks for `E[f] = P`: **an output is a distribution over
values, capped by `g`.** A linear function is maximised over such `f` by a sort (fill the best values to
their caps until the mass is used up), and a convex one at a vertex: every value but one is empty or at its cap.

The pricing of a histogram is `max sum_x q_x f_x^2 - c_x f_x` over such `f`, with `q >= 0`. A convex function lies below
its chord, so on a part `l <= f <= u`

    q f^2 <= q (l + u) f - q l u,

which leaves a fractional knapsack: an over-estimate, exact wherever `f` sits at the ends of its interval. Cutting a
part at the knapsack's solution makes both halves tight there. Repeating this on the most promising part (branch and
bound) closes in on the maximum, and the largest estimate of an open part is a proven bound at any time.

Values with the same `q, c, g` are interchangeable. `n` of them form one *bundle*, described by its total
`F` in `[0, n g]`: the best way to hold `F` is to fill `k = floor(F / g)` members and put the rest into one
more. That is a row of scallops under the line `q g F`; on an interval `[l, u]` its concave envelope goes
straight from `l` to the next multiple of `g`, along the line, and straight to `u`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from priorveil.arrays import Array, Mask
from priorveil.designs.engine import Labels, Priced, distinct_rows
from priorveil.errors import Hint, TooLarge
from priorveil.priors.budget import window_mass

_PUSHED, _NOISY = 256, 48  # starts that push one value in, and starts with noise
_QUICK_PARTS, _PARTS = 512, 20_000  # of a quick branch and bound, and of an exact one
_SLACK = 1e-14  # room for rounding in every bound, relative to the numbers that were added up
_BATCH, _TOTALS = 128, 64  # parts cut at once, and totals that are kept
_GRID = 24  # first points of a sum
# a total this close below a multiple of the cap counts as the multiple; it can only raise estimates
_EDGE = 1e-12


@dataclass(frozen=True)
class ColumnSpace(ABC):
    """Allowed columns `r` with `P . r = 1`, over which linear functions are maximised at once."""

    prior: Array

    @abstractmethod
    def best(self, scores: Array) -> Array:
        """For each row of `scores` the column with the largest `scores . r`."""

    @abstractmethod
    def ends(self, columns: Array) -> Array:
        """For each value, the sum of its two possible entries at vertices near these columns."""

    @property
    @abstractmethod
    def tau(self) -> float:
        """The prior mass that an output can point at."""

    @abstractmethod
    def sides(self) -> tuple[Array, Array]:
        """How far each entry of a column may be above one, and below."""

    @property
    @abstractmethod
    def most_explained(self) -> float:
        """The largest share of the variance of a statistic that a channel can explain."""

    @property
    def most_spread(self) -> float:
        """At least the mean of `(r_x - 1)^2` over values and reports."""
        return float(self.prior @ np.multiply(*self.sides()))

    def sum_duals(self, values: Array) -> Array:
        """Duals that prove the closed bound on the sum of values with mean zero."""
        return np.asarray(self.most_explained * self.prior * values**2)

    def merge(self, labels: Labels) -> Self:
        """The columns that are constant on blocks of values."""
        return replace(self, prior=np.bincount(labels, self.prior).astype(np.float64))

    def chance(self, count: int, rng: np.random.Generator) -> Array:
        """Random vertices."""
        return self.best(rng.random((count, len(self.prior))) * self.prior)

    def slack(self, duals: Array, rest: float) -> float:
        """Room for rounding in `duals . r + rest`: `|duals| . r` is at most the largest `|duals| / P`."""
        return _SLACK * (float((np.abs(duals) / self.prior).max()) + rest)

    def climb(self, columns: Array, M: Array, m: Array) -> Array:
        """Local search for the largest `r' M r - m . r`, all columns (K, d) at once.

        Linearise and take the best vertex; `blend = 1` replaces the squares by their chords between the two
        ends, which is exact for columns at the ends and sees exchanges that a tangent cannot.
        """
        own, height = np.diag(M), ((columns @ M - m) * columns).sum(1)
        for _ in range(30):
            pull, ends = columns @ M, self.ends(columns)
            before = height.sum()
            for blend in (0.0, 0.5, 1.0):
                other = self.best(2 * (pull - blend * own * columns) + blend * own * ends - m)
                reach = ((other @ M - m) * other).sum(1)
                better = reach > height
                columns, height = np.where(better[:, None], other, columns), np.maximum(reach, height)
            if height.sum() - before <= 1e-9 * np.abs(height).sum():
                break
        return np.asarray(columns)


@dataclass(frozen=True)
class LdpCone(ColumnSpace):
    """The columns that LDP allows: no entry is more than `ratio` times another one.

    >>> cone = LdpCone(np.array([0.5, 0.25, 0.25]), ratio=3.0)
    >>> cone.best(np.array([[0.0, 1.0, 0.0]]))
    array([[0.66666667, 2.        , 0.66666667]])
    """

    ratio: float
    listed: ClassVar[int] = 12  # values up to which `vertices` lists all

    def best(self, scores: Array) -> Array:
        """For each row of `scores` the column with the largest `scores . r`.

        Its entries are large on a set of values. `scores . r` is a ratio of two sums over that set, so the set has the
        values with the largest `scores / P`, and all sizes are compared.
        """
        order, more = np.argsort(-scores / self.prior, axis=1, kind="stable"), self.ratio - 1
        total = scores.sum(1, keepdims=True) + more * np.cumsum(np.take_along_axis(scores, order, 1), axis=1)
        size = np.argmax(total / (1 + more * np.cumsum(self.prior[order], axis=1)), axis=1)
        large = np.argsort(order, axis=1) <= size[:, None]
        return self._normalise(np.where(large, self.ratio, 1.0))

    def ends(self, columns: Array) -> Array:
        """For each value, the sum of its two possible entries at a vertex near each column."""
        return np.asarray((1 + self.ratio) * columns.min(axis=1, keepdims=True))

    @property
    def tau(self) -> float:
        """The prior mass that an output points at where it tells most of a statistic."""
        return 1 / (1 + self.ratio)

    def sides(self) -> tuple[Array, Array]:
        """How far each entry of a column may be above one, and below."""
        P, rest, more = self.prior, 1 - self.prior, self.ratio - 1
        return more * rest / (self.ratio * P + rest), more * rest / (P + self.ratio * rest)

    @property
    def most_explained(self) -> float:
        """The largest share of the variance of a statistic that a channel can explain.

        For a column with entries from `m` to `ratio m`, and any number `c`, Cauchy and Schwarz give
        `E_P[w r]^2 = E_P[w (r - c)]^2 <= E_P[w^2 r] E_P[(r - c)^2 / r]`. The best `c` leaves `1 - 1 / E_P[1 / r]`, and
        `E_P[1 / r]` is at most `(1 + ratio)^2 / (4 ratio)` (Kantorovich).
        """
        return ((self.ratio - 1) / (self.ratio + 1)) ** 2

    @property
    def most_spread(self) -> float:
        """At least the mean of `(r_x - 1)^2`: with `m` the least entry, `E_P[(r - m)(ratio m - r)]` is not negative."""
        return (self.ratio - 1) ** 2 / (4 * self.ratio)

    def reach(self, directions: Array) -> Array:
        """How far each direction (K, d), of mean zero, leads from the constant column."""
        return np.asarray((self.ratio - 1) / (directions.max(axis=1) - self.ratio * directions.min(axis=1)))

    def vertices(self) -> Array:
        """All extreme columns (K, d), for up to 14 values: two entries, or one if there is one value.

        >>> LdpCone(np.array([0.5, 0.5]), ratio=3.0).vertices()
        array([[1.5, 0.5],
               [0.5, 1.5]])
        """
        sets = subsets(len(self.prior))
        return self._normalise(np.where(sets[1 : max(2, len(sets) - 1)], self.ratio, 1.0))

    def _normalise(self, columns: Array) -> Array:
        return np.asarray(columns / (columns @ self.prior)[:, None])


@dataclass(frozen=True)
class Box(ColumnSpace):
    """The columns `lo <= r <= hi` with `P . r = 1`; `hi` may be infinite and `lo` zero, `lo < 1 < hi`.

    >>> box = Box(np.array([0.5, 0.25, 0.25]), lo=0.5, hi=2.0)
    >>> box.caps
    array([1.  , 0.75, 0.75])
    >>> box.columns(np.array([[0.25, 0.75, 0.0]]))
    array([[0.75, 2.  , 0.5 ]])
    """

    lo: float
    hi: float
    listed: ClassVar[int] = 14

    @property
    def ratio(self) -> float:
        """Columns of LDP with this ratio are in the box."""
        return min(self.hi, 1 / self.lo if self.lo > 0 else math.inf)

    @cached_property
    def caps(self) -> Array:
        """The largest share of each value in a capped distribution."""
        with np.errstate(divide="ignore"):
            return np.minimum(1.0, self.prior / np.float64(self.tau))

    @property
    def tau(self) -> float:
        """The prior mass that an output can point at."""
        return float(window_mass(self.lo, self.hi))

    def columns(self, shares: Array) -> Array:
        """The columns `r` of capped distributions `f` (K, d)."""
        return np.asarray(self.lo + (1.0 - self.lo) * shares / self.prior)

    def fill(self, scores: Array) -> Array:
        """For each row of `scores` the capped distribution that scores best: a fractional knapsack."""
        return fill(scores, np.broadcast_to(self.caps, scores.shape), np.ones(len(scores)))

    def duals(self, costs: Array) -> Array:
        """Duals that cost `c . f`, up to a constant."""
        return np.asarray(costs * self.prior / (1.0 - self.lo))

    def sides(self) -> tuple[Array, Array]:
        """How far each entry of a column may be above one, and below."""
        P, lo, hi = self.prior, self.lo, self.hi
        return np.minimum(hi - 1, (1 - P) * (1 - lo) / P), np.minimum(1 - lo, (1 - P) * (hi - 1) / P)

    @property
    def most_explained(self) -> float:
        """The largest share of the variance of a statistic that a channel can explain."""
        return (1.0 - self.lo) ** 2

    def sum_duals(self, values: Array) -> Array:
        """Duals that prove the closed bound on the sum of values with mean zero."""
        return self.duals(self.most_explained * values**2)

    def vertices(self) -> Array:
        """All extreme columns (K, d), for up to 14 values: every value at `lo` or at its cap, but one.

        >>> Box(np.array([0.5, 0.25, 0.25]), lo=0.5, hi=2.0).vertices()
        array([[1.5 , 0.5 , 0.5 ],
               [0.75, 2.  , 0.5 ],
               [0.75, 0.5 , 2.  ],
               [0.5 , 1.  , 2.  ],
               [0.5 , 2.  , 1.  ]])
        """
        d = len(self.prior)
        bits, found = subsets(d)[: 2 ** (d - 1), :-1], []
        for loose in range(d):
            others = np.delete(np.arange(d), loose)
            rest = 1.0 - bits @ self.caps[others]
            fits = (rest >= -1e-13) & (rest <= self.caps[loose] + 1e-13)
            shares = np.empty((int(fits.sum()), d))
            shares[:, others] = bits[fits] * self.caps[others]
            shares[:, loose] = np.clip(rest[fits], 0.0, self.caps[loose])
            found.append(shares)
        return distinct_rows(np.clip(self.columns(np.vstack(found)), self.lo, self.hi))

    def best(self, scores: Array) -> Array:
        """For each row of `scores` the column with the largest `scores . r`."""
        return self.columns(self.fill(scores * (1 - self.lo) / self.prior))

    def ends(self, columns: Array) -> Array:
        """The sum of the least and the largest entry that each value can have."""
        return np.asarray(2 * self.lo + self.caps * (1 - self.lo) / self.prior)

    def reach(self, directions: Array) -> Array:
        """How far each direction (K, d), of mean zero, leads from the constant column."""
        up, down = (self.hi - 1) / directions.max(axis=1), (1 - self.lo) / -directions.min(axis=1)
        return np.asarray(np.minimum(up, down))


Space = Box | LdpCone


def subsets(d: int) -> Labels:
    """All subsets of up to 14 values as rows of zeros and ones."""
    if d > 14:
        raise TooLarge(f"d = {d}: listing subsets is for up to 14 values", Hint("method", "columns"))
    return (np.arange(2**d)[:, None] >> np.arange(d)) & 1


def classes(*features: Array) -> Labels:
    """Labels 0, 1, ... of values that agree in every feature, for the master.

    >>> classes(np.array([0.2, 0.3, 0.2, 0.3]))
    array([0, 1, 0, 1])
    """
    return np.unique(np.column_stack(features), axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class HistogramPricing:
    """`phi(r) = sum_x w_x (P_x r_x)^2`, with `w >= 0`.

    Columns come from linearise-and-sort ascents from many starts and from branch and bound, which also
    proves the bound. `loose` marks values that stand for many smaller ones: for them the bound is linear,
    which holds whatever they are made of (see `best_histogram`).
    """

    box: Box
    weights: Array
    loose: Mask | bool = False
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns` (K, d)."""
        return np.asarray((self.weights * (self.box.prior * columns) ** 2).sum(1))

    def closed_form_duals(self) -> Array:
        """Duals that prove the closed-form bound, `f^2 <= f g` in every value."""
        lo, prior = self.box.lo, self.box.prior
        return np.asarray(self.weights * prior * ((1.0 - lo) * self.box.caps + 2.0 * lo * prior))

    def price(self, duals: Array, exact: bool) -> Priced:
        """Local maxima of `phi(r) - duals . r`, and a bound by branch and bound, longer if `exact`."""
        lo, prior = self.box.lo, self.box.prior
        q = (1.0 - lo) ** 2 * self.weights
        c = (1.0 - lo) * (duals / prior - 2.0 * lo * self.weights * prior)
        rest = lo * (lo * float(self.weights @ prior**2) - float(duals.sum()))
        shares = _climb(self.box, q, c, self.box.fill(self._scores(q, c)))
        caps, reached = self.box.caps, float(((q * shares - c) * shares).sum(1).max())
        bundles = bundle(np.where(self.loose, 0.0, q), np.where(self.loose, c - q * caps, c), caps)
        slack = self.box.slack(duals, abs(rest) + float(q.max()))
        bound, totals = branch_and_bound(bundles, reached, slack, _PARTS if exact else _QUICK_PARTS)
        more = _climb(self.box, q, c, bundles.shares(totals))
        columns = self.box.columns(distinct_rows(np.vstack([shares, more])))
        return Priced(columns, self.utility(columns), bound + rest + slack)

    def _scores(self, q: Array, c: Array) -> Array:
        """Starting directions: each value pushed in, and noise of every size on the densities `q g - c`."""
        density = q * self.box.caps - c
        spread = float(np.ptp(density)) or 1.0
        size = spread * 10.0 ** self.rng.uniform(-2.5, 0.5, (_NOISY, 1))
        noisy = density + size * self.rng.standard_normal((_NOISY, len(c)))
        pushed = np.arange(len(c)) if len(c) <= _PUSHED else self.rng.choice(len(c), _PUSHED, replace=False)
        return np.vstack([density, density + spread * np.eye(len(c))[pushed], noisy])


def _climb(box: Box, q: Array, c: Array, shares: Array) -> Array:
    """Follow the gradient from vertex to vertex until nothing moves; a convex objective never falls."""
    for _ in range(30):
        moved = box.fill(2.0 * q * shares - c)
        if np.abs(moved - shares).max() < 1e-12:
            break
        shares = moved
    return shares


@dataclass(frozen=True)
class SumPricing:
    """`phi(r) = (sum_x a_x P_x r_x)^2`: exact.

    `v^2 = max_z 2 z v - z^2` turns the pricing into `max_z h(z) - z^2`, with `h(z) = max_r (2 z a P - duals) . r`
    convex. So `h` is at most its chord between two known points, and a stretch whose chord reaches more than the best
    value is cut where the chord does.
    """

    space: ColumnSpace
    values: Array

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns` (K, d)."""
        return np.asarray((columns @ (self.values * self.space.prior)) ** 2)

    def price(self, duals: Array, exact: bool) -> Priced:
        """Vertices around the maximum of `phi(r) - duals . r`, and the maximum."""
        score = self.values * self.space.prior
        ends = self.space.best(np.array([-score, score])) @ score
        z, bound = np.linspace(ends[0], ends[1], _GRID), math.inf
        columns = self.space.best(2.0 * z[:, None] * score - duals)
        slack = self.space.slack(duals, float(np.abs(ends).max()) ** 2)
        for _ in range(60):
            slope, base = 2.0 * (columns @ score), -(columns @ duals)
            best = float((slope**2 / 4.0 + base).max())
            height, width = slope * z + base, np.diff(z)
            rise = np.divide(np.diff(height), width, out=np.zeros_like(width), where=width > 0)
            middle = np.clip(rise / 2.0, z[:-1], z[1:])
            top = height[:-1] + rise * (middle - z[:-1]) - middle**2
            bound = min(bound, max(best, float(top.max())))
            new_z = middle[top > best + slack]
            if not len(new_z):
                break
            new = self.space.best(2.0 * new_z[:, None] * score - duals)
            order = np.argsort(np.concatenate([z, new_z]), kind="stable")
            z, columns = np.concatenate([z, new_z])[order], np.vstack([columns, new])[order]
        columns = distinct_rows(columns)
        return Priced(columns, self.utility(columns), bound + 2 * slack)


@dataclass(frozen=True)
class SquaresPricing:
    """`phi(r) = |F r|^2` for any matrix `F` (m, d): local search only, which proves no bound (`relaxation` does)."""

    space: ColumnSpace
    factors: Array
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns` (K, d)."""
        return np.asarray(((columns @ self.factors.T) ** 2).sum(1))

    def price(self, duals: Array, exact: bool) -> Priced:
        """Local maxima of `phi(r) - duals . r`, from starts at random and along the rows; more of them if `exact`."""
        mixed = self.rng.standard_normal((1000 if exact else 50, len(self.factors))) @ self.factors
        chance = self.rng.standard_normal((50, len(duals))) * self.space.prior
        starts = self.space.best(np.vstack([mixed, chance]))
        columns = distinct_rows(self.space.climb(starts, self.factors.T @ self.factors, duals))
        return Priced(columns, self.utility(columns), math.inf)


@dataclass(frozen=True)
class GuessPricing:
    """`phi(r) = max_x m_x r_x`: exact, one linear problem for every guess.

    `m = P`, except for a block of values that share a lift, where it is the prior of its heaviest member.
    """

    box: Box
    peaks: Array

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns` (K, d)."""
        return np.asarray((self.peaks * columns).max(1))

    def price(self, duals: Array, exact: bool) -> Priced:
        """The best column for every guess, and the maximum."""
        scores = np.diag(self.peaks) - duals
        columns = self.box.best(scores)
        bound = float((scores * columns).sum(1).max()) + self.box.slack(duals, 1.0)
        columns = distinct_rows(columns)
        return Priced(columns, self.utility(columns), bound)


def closed_form_guess(box: Box, peaks: Array) -> tuple[float, Array]:
    """A bound on guessing, and duals that prove it.

    The guess `x` earns `e_x(f_x) = m_x r_x = (m_x / P_x) (lo P_x + (1 - lo) f_x)`, with `m = peaks`. Let
    `t >= lo max(m)` and `n_x = max(0, e_x(g_x) - t) / g_x`. Then `e_x(f_x) <= t + n_x f_x` at both ends of
    `0 <= f_x <= g_x`, so in between; every column earns at most `t + n . f`, and every channel `t + n . P`.
    The best `t` is a kink.

    >>> half = np.array([0.5, 0.5])
    >>> round(closed_form_guess(Box(half, lo=0.5, hi=2.0), half)[0], 9)
    0.75
    """
    lo, prior, caps = box.lo, box.prior, box.caps
    earned = peaks / prior * (lo * prior + (1.0 - lo) * caps)
    least = lo * float(peaks.max())
    kinks = np.sort(np.append(earned[earned > least], least))
    order = np.argsort(-earned)
    rate = np.concatenate([[0.0], np.cumsum((prior / caps)[order])])
    gain = np.concatenate([[0.0], np.cumsum((prior * earned / caps)[order])])
    above = len(prior) - np.searchsorted(np.sort(earned), kinks, side="right")
    bounds = kinks + gain[above] - kinks * rate[above]
    best = float(kinks[np.argmin(bounds)])
    costs = np.maximum(0.0, earned - best) / caps
    return float(bounds.min()) * (1.0 + _SLACK * len(prior)), box.duals(costs)


@dataclass(frozen=True)
class Bundles:
    """Bundles of equal values: `q`, `c`, `caps`, `sizes` (m,), and the bundle of each value, `labels` (d,)."""

    q: Array
    c: Array
    caps: Array
    sizes: Array
    labels: Labels

    def value(self, totals: Array) -> Array:
        """The objective at bundle totals (K, m), each bundle filled in the best way."""
        return np.asarray((self._scallop(totals) - self.c * totals).sum(1))

    def _scallop(self, totals: Array) -> Array:
        full = np.floor(totals / self.caps + _EDGE)
        rest = totals - full * self.caps
        return np.asarray(self.q * (full * self.caps**2 + rest**2))

    def shares(self, totals: Array) -> Array:
        """Capped distributions (K, d) with these totals; members of a bundle are filled in turn."""
        rank, order = np.empty(len(self.labels)), np.argsort(self.labels, kind="stable")
        rank[order] = np.arange(len(order)) - (np.cumsum(self.sizes) - self.sizes)[self.labels[order]]
        caps = self.caps[self.labels]
        return np.asarray(np.clip(totals[:, self.labels] - rank * caps, 0.0, caps))

    def estimate(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Over-estimates on parts (K, m) and the totals where they are taken; -inf for empty parts."""
        first, last = np.ceil(low / self.caps - _EDGE), np.floor(high / self.caps + _EDGE)
        apart = first <= last
        near = np.clip(np.where(apart, first * self.caps, high), low, high)
        far = np.clip(np.where(apart, last * self.caps, high), near, high)
        ends = [low, near, far, high]
        heights = [self._scallop(end) - self.c * end for end in ends]
        room = np.concatenate([b - a for a, b in pairwise(ends)], axis=1)
        rise = np.concatenate([b - a for a, b in pairwise(heights)], axis=1)
        slope = np.divide(rise, room, out=np.full_like(rise, -math.inf), where=room > 0)
        left = 1.0 - low.sum(1)
        amounts = fill(slope, room, left)
        gains = np.where(amounts > 0, slope, 0.0) * amounts
        values = heights[0].sum(1) + gains.sum(1)
        values[(left < -1e-12) | (left - room.sum(1) > 1e-12)] = -math.inf
        return values, low + amounts.reshape(len(low), 3, -1).sum(1)


def fill(scores: Array, caps: Array, mass: Array) -> Array:
    """Spread `mass` (K,) over values in falling order of `scores` (K, d), each up to its cap (K, d).

    >>> fill(np.array([[1.0, 3.0, 2.0]]), np.full((1, 3), 0.6), np.ones(1))
    array([[0. , 0.6, 0.4]])
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    sizes = np.take_along_axis(caps, order, 1)
    before = np.cumsum(sizes, axis=1) - sizes
    amounts = np.clip(mass[:, None] - before, 0.0, sizes)
    shares = np.empty_like(scores)
    np.put_along_axis(shares, order, amounts, 1)
    return shares


def bundle(q: Array, c: Array, caps: Array) -> Bundles:
    """Gather the values whose `q`, `c` and cap are the same.

    >>> bundle(np.ones(3), np.zeros(3), np.array([0.5, 0.6, 0.5])).sizes
    array([2., 1.])
    """
    kinds, labels, sizes = np.unique(
        np.column_stack([caps, q, c]), axis=0, return_inverse=True, return_counts=True
    )
    return Bundles(kinds[:, 1], kinds[:, 2], kinds[:, 0], sizes.astype(float), labels.ravel())


def branch_and_bound(
    bundles: Bundles, reached: float = -math.inf, tolerance: float = 0.0, parts: int = _PARTS
) -> tuple[float, Array]:
    """A proven bound on the maximum, and good totals (K, m), best first.

    It is within `tolerance`, or as good as `parts` parts allow. `reached` is a value known to be reached; parts that
    cannot beat `reached + tolerance` are dropped.

    >>> bound, _ = branch_and_bound(bundle(np.ones(3), np.zeros(3), np.array([0.6, 0.5, 0.5])))
    >>> round(bound, 12)
    0.52
    """
    low = np.zeros((1, len(bundles.q)))
    high = (bundles.caps * bundles.sizes)[None, :]
    estimate, totals = bundles.estimate(low, high)
    best, values = totals, bundles.value(totals)
    value, dropped = max(reached, float(values.max())), -math.inf
    open_parts = [low, high, totals, estimate]
    for _ in range(max(1, math.ceil(parts / _BATCH))):
        estimate = open_parts[-1]
        dropped = max(dropped, float(estimate[estimate <= value + tolerance].max(initial=-math.inf)))
        rank = np.argsort(-estimate, kind="stable")
        rank = rank[estimate[rank] > value + tolerance]
        pick, rest = rank[:_BATCH], rank[_BATCH:]
        low, high, totals, whole = (each[pick] for each in open_parts)
        open_parts = [each[rest] for each in open_parts]
        if not len(pick):
            break
        low, high = _halve_parts(bundles, low, high, totals)
        estimate, totals = bundles.estimate(low, high)
        fine = np.isfinite(estimate)
        # a half never exceeds the whole; rounding may say otherwise
        halves = [each[fine] for each in (low, high, totals, np.minimum(estimate, np.tile(whole, 2)))]
        open_parts = [np.concatenate(pair) for pair in zip(open_parts, halves, strict=True)]
        best, values = np.vstack([best, halves[2]]), np.append(values, bundles.value(halves[2]))
        order = np.argsort(-values, kind="stable")[:_TOTALS]
        best, values = best[order], values[order]
        value = max(value, float(values[0]))
    still_open = float(open_parts[-1].max(initial=-math.inf))
    return max(value, still_open, min(dropped, value + tolerance)), best


def _halve_parts(bundles: Bundles, low: Array, high: Array, totals: Array) -> tuple[Array, Array]:
    """Halve every part where its envelope lies highest above the function, at the point itself."""
    rows = np.arange(len(totals))
    full = np.floor(totals / bundles.caps + _EDGE) * bundles.caps
    bottom, top = np.maximum(low, full), np.minimum(high, full + bundles.caps)
    index = np.argmax(bundles.q * (totals - bottom) * (top - totals), axis=1)
    cut = totals[rows, index]
    left, right = high.copy(), low.copy()
    left[rows, index] = cut
    right[rows, index] = cut
    return np.concatenate([low, right]), np.concatenate([left, high])
