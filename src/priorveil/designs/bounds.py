"""Rigorous maxima of separable convex functions over capped distributions.

The problem is `max sum_x q_x f_x^2 - c_x f_x` over `0 <= f <= g`, `sum f = 1`, with `q >= 0`: the pricing
of a histogram. A convex function lies below its chord, so on a box `l <= f <= u`

    q f^2 <= q (l + u) f - q l u,

which leaves a fractional knapsack: an over-estimate, exact wherever `f` sits at the ends of its box.
Cutting a box at the knapsack's solution makes both halves tight there. Repeating this on the most promising
box (branch and bound) closes in on the maximum, and the largest estimate of an open box is a proven bound
at any time.

Inputs with the same `q, c, g` are interchangeable. `n` of them form one *bundle*, described by its total
`F` in `[0, n g]`: the best way to hold `F` is to fill `k = floor(F / g)` members and put the rest into one
more. That is a row of scallops under the line `q g F`; on an interval `[l, u]` its concave envelope goes
straight from `l` to the next multiple of `g`, along the line, and straight to `u`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from priorveil.designs.columns import Array, Labels

_BATCH = 128  # boxes cut at once
# a total this close below a multiple of the cap counts as the multiple; it can only raise estimates
_EDGE = 1e-12


@dataclass(frozen=True)
class Bundles:
    """Bundles of like inputs: `q`, `c`, `caps`, `sizes` (m,), and the bundle of each input, `labels` (d,)."""

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
        place = np.empty(len(self.labels))
        for bundle in np.flatnonzero(self.sizes > 1):
            members = np.flatnonzero(self.labels == bundle)
            place[members] = np.arange(len(members))
        place[self.sizes[self.labels] == 1] = 0.0
        caps = self.caps[self.labels]
        return np.asarray(np.clip(totals[:, self.labels] - place * caps, 0.0, caps))

    def estimate(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Over-estimates on boxes (K, m) and the totals where they are taken; -inf for empty boxes."""
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
    """Spread `mass` (K,) over inputs in falling order of `scores` (K, d), each up to its cap (K, d).

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


def bundled(q: Array, c: Array, caps: Array) -> Bundles:
    """Gather the inputs whose `q`, `c` and cap are the same.

    >>> bundled(np.ones(3), np.zeros(3), np.array([0.5, 0.6, 0.5])).sizes
    array([2., 1.])
    """
    kinds, labels, sizes = np.unique(
        np.column_stack([caps, q, c]), axis=0, return_inverse=True, return_counts=True
    )
    return Bundles(kinds[:, 1], kinds[:, 2], kinds[:, 0], sizes.astype(float), labels.ravel())


@dataclass(frozen=True)
class Maximum:
    """A proven `bound` on the maximum, the best `value` known, and good `totals` (K, m), best first."""

    bound: float
    value: float
    totals: Array


def branch_and_bound(
    bundles: Bundles,
    *,
    reached: float = -math.inf,
    tolerance: float = 0.0,
    boxes: int = 20_000,
    points: int = 64,
) -> Maximum:
    """The maximum, proven to within `tolerance`, or as well as `boxes` boxes allow.

    `reached` is a value known to be reached; boxes that cannot beat `reached + tolerance` are dropped.

    >>> found = branch_and_bound(bundled(np.ones(3), np.zeros(3), np.array([0.6, 0.5, 0.5])))
    >>> round(found.bound, 12)
    0.52
    """
    low = np.zeros((1, len(bundles.q)))
    high = (bundles.caps * bundles.sizes)[None, :]
    estimate, totals = bundles.estimate(low, high)
    best, values = _Best(points), bundles.value(totals)
    best.take(totals, values)
    value, dropped = max(reached, float(values.max())), -math.inf
    for _ in range(max(1, math.ceil(boxes / _BATCH))):
        alive = estimate > value + tolerance
        dropped = max(dropped, float(estimate[~alive].max(initial=-math.inf)))
        low, high, estimate, totals = low[alive], high[alive], estimate[alive], totals[alive]
        if not len(estimate):
            break
        rank = np.argsort(-estimate, kind="stable")
        pick, rest = rank[:_BATCH], rank[_BATCH:]
        new_low, new_high = _cut(bundles, low[pick], high[pick], totals[pick])
        new_estimate, new_totals = bundles.estimate(new_low, new_high)
        fine = np.isfinite(new_estimate)
        new_low, new_high, new_totals = new_low[fine], new_high[fine], new_totals[fine]
        # a half never exceeds the whole; rounding may say otherwise
        new_estimate = np.minimum(new_estimate, np.tile(estimate[pick], 2))[fine]
        values = bundles.value(new_totals)
        best.take(new_totals, values)
        value = max(value, float(values.max(initial=-math.inf)))
        low, high = np.concatenate([low[rest], new_low]), np.concatenate([high[rest], new_high])
        estimate = np.concatenate([estimate[rest], new_estimate])
        totals = np.concatenate([totals[rest], new_totals])
    open_ = float(estimate.max(initial=-math.inf))
    return Maximum(max(value, open_, min(dropped, value + tolerance)), value, best.totals)


class _Best:
    """The best few points seen."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.totals = np.empty((0, 0))
        self._values = np.empty(0)

    def take(self, totals: Array, values: Array) -> None:
        if len(self._values):
            totals, values = np.concatenate([self.totals, totals]), np.concatenate([self._values, values])
        order = np.argsort(-values, kind="stable")[: self._count]
        self.totals, self._values = totals[order], values[order]


def _cut(bundles: Bundles, low: Array, high: Array, totals: Array) -> tuple[Array, Array]:
    """Halve every box where its envelope lies highest above the function, at the point itself."""
    rows = np.arange(len(totals))
    full = np.floor(totals / bundles.caps + _EDGE) * bundles.caps
    bottom, top = np.maximum(low, full), np.minimum(high, full + bundles.caps)
    place = np.argmax(bundles.q * (totals - bottom) * (top - totals), axis=1)
    cut = totals[rows, place]
    left, right = high.copy(), low.copy()
    left[rows, place] = cut
    right[rows, place] = cut
    return np.concatenate([low, right]), np.concatenate([left, high])
