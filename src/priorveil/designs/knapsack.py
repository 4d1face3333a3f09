"""The largest `sum_x q_x f_x^2 - c_x f_x`, with `q >= 0`, over distributions `f` with caps `f <= g`: branch and bound.

A convex function lies below its chord, so on a part `l <= f <= u`

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
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from priorveil.arrays import Array
from priorveil.designs.spaces import fill
from priorveil.designs.tolerances import ROUNDING
from priorveil.designs.value_groups import Indices

MOST_PARTS = 20_000  # an exact branch and bound looks at so many parts at most
_BATCH = 128  # parts cut in a step, and totals that are kept


@dataclass(frozen=True)
class Bundles:
    """Bundles of equal values: `q`, `c`, `caps`, `sizes` (m,), and the bundle of each value, `labels` (d,)."""

    q: Array
    c: Array
    caps: Array
    sizes: Array
    labels: Indices

    def value(self, totals: Array) -> Array:
        """The objective at bundle totals (K, m), each bundle filled in the best way."""
        return np.asarray((self._scallop(totals) - self.c * totals).sum(1))

    def _scallop(self, totals: Array) -> Array:
        # a total this close below a multiple of the cap counts as the multiple, which can only raise estimates
        full = np.floor(totals / self.caps + ROUNDING)
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
        first, last = np.ceil(low / self.caps - ROUNDING), np.floor(high / self.caps + ROUNDING)
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
        values[(left < -ROUNDING) | (left - room.sum(1) > ROUNDING)] = -math.inf
        return values, low + amounts.reshape(len(low), 3, -1).sum(1)


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
    bundles: Bundles, reached: float = -math.inf, tolerance: float = 0.0, parts: int = MOST_PARTS
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
        order = np.argsort(-values, kind="stable")[:_BATCH]
        best, values = best[order], values[order]
        value = max(value, float(values[0]))
    still_open = float(open_parts[-1].max(initial=-math.inf))
    return max(value, still_open, min(dropped, value + tolerance)), best


def _halve_parts(bundles: Bundles, low: Array, high: Array, totals: Array) -> tuple[Array, Array]:
    """Halve every part where its envelope lies highest above the function, at the point itself."""
    rows = np.arange(len(totals))
    full = np.floor(totals / bundles.caps + ROUNDING) * bundles.caps
    bottom, top = np.maximum(low, full), np.minimum(high, full + bundles.caps)
    index = np.argmax(bundles.q * (totals - bottom) * (top - totals), axis=1)
    cut = totals[rows, index]
    left, right = high.copy(), low.copy()
    left[rows, index] = cut
    right[rows, index] = cut
    return np.concatenate([low, right]), np.concatenate([left, high])
