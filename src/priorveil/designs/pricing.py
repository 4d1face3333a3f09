"""Pricing of gains in a `Space`: the columns with the largest `phi(r) - duals . r`, one class for each gain.

A convex gain is largest at a vertex of the space. The pricing of a sum and of a guess is exact, that of a histogram is
proven by branch and bound (`knapsack`), and that of several statistics is a local search: their bound comes from
`bounds`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from priorveil.arrays import Array, Mask
from priorveil.designs.column_generation import PricedColumns, Solution, solve
from priorveil.designs.knapsack import MOST_PARTS, branch_and_bound, bundle
from priorveil.designs.spaces import STARTS, Box, Space, seeds
from priorveil.designs.stopping import Limits
from priorveil.designs.tolerances import SLACK
from priorveil.designs.value_groups import distinct_rows, equal_groups

_NOISY = 48  # starts with noise
_QUICK_PARTS = 512  # parts for a bound that need not be exact: with fewer, more exact bounds are needed
_GRID = 24  # first points of a sum: each gives a column, and fewer columns need more rounds


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

    def price(self, duals: Array, exact: bool) -> PricedColumns:
        """Local maxima of `phi(r) - duals . r`, and a bound by branch and bound, longer if `exact`."""
        lo, prior = self.box.lo, self.box.prior
        q = (1.0 - lo) ** 2 * self.weights
        c = (1.0 - lo) * (duals / prior - 2.0 * lo * self.weights * prior)
        rest = lo * (lo * float(self.weights @ prior**2) - float(duals.sum()))
        shares = _climb(self.box, q, c, self.box.fill(self._scores(q, c)))
        caps, reached = self.box.caps, float(((q * shares - c) * shares).sum(1).max())
        bundles = bundle(np.where(self.loose, 0.0, q), np.where(self.loose, c - q * caps, c), caps)
        slack = self.box.slack(duals, abs(rest) + float(q.max()))
        bound, totals = branch_and_bound(bundles, reached, slack, MOST_PARTS if exact else _QUICK_PARTS)
        more = _climb(self.box, q, c, bundles.shares(totals))
        columns = self.box.columns(distinct_rows(np.vstack([shares, more])))
        return PricedColumns(columns, self.utility(columns), bound + rest + slack)

    def _scores(self, q: Array, c: Array) -> Array:
        """Starting directions: each value pushed in, and noise of every size on the densities `q g - c`."""
        density = q * self.box.caps - c
        spread = float(np.ptp(density)) or 1.0
        size = spread * 10.0 ** self.rng.uniform(-2.5, 0.5, (_NOISY, 1))
        noisy = density + size * self.rng.standard_normal((_NOISY, len(c)))
        pushed = np.arange(len(c)) if len(c) <= STARTS else self.rng.choice(len(c), STARTS, replace=False)
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

    space: Space
    values: Array

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns` (K, d)."""
        return np.asarray((columns @ (self.values * self.space.prior)) ** 2)

    def price(self, duals: Array, exact: bool) -> PricedColumns:
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
        return PricedColumns(columns, self.utility(columns), bound + 2 * slack)


@dataclass(frozen=True)
class SquaresPricing:
    """`phi(r) = |F r|^2` for any matrix `F` (m, d): a local search, which proves no bound (`bounds` does)."""

    space: Space
    factors: Array
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns` (K, d)."""
        return np.asarray(((columns @ self.factors.T) ** 2).sum(1))

    def price(self, duals: Array, exact: bool) -> PricedColumns:
        """Local maxima of `phi(r) - duals . r`, from starts at random and along the rows; more of them if `exact`."""
        mixed = self.rng.standard_normal((1000 if exact else 50, len(self.factors))) @ self.factors
        chance = self.rng.standard_normal((50, len(duals))) * self.space.prior
        starts = self.space.best(np.vstack([mixed, chance]))
        columns = distinct_rows(self.space.climb(starts, self.factors.T @ self.factors, duals))
        return PricedColumns(columns, self.utility(columns), math.inf)


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

    def price(self, duals: Array, exact: bool) -> PricedColumns:
        """The best column for every guess, and the maximum."""
        scores = np.diag(self.peaks) - duals
        columns = self.box.best(scores)
        bound = float((scores * columns).sum(1).max()) + self.box.slack(duals, 1.0)
        columns = distinct_rows(columns)
        return PricedColumns(columns, self.utility(columns), bound)


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
    return float(bounds.min()) * (1.0 + SLACK * len(prior)), box.duals(costs)


def weighted_histogram(box: Box, weights: Array, loose: Mask, limits: Limits) -> Solution:
    """The best channel for `phi = sum_x w_x (P_x r_x)^2`; `loose` marks blocks of values that share a lift."""
    pricing = HistogramPricing(box, weights, loose)
    alike = equal_groups(np.stack([box.prior, weights, loose]))
    return solve(pricing, seeds(box), limits, duals=pricing.closed_form_duals(), classes=alike)
