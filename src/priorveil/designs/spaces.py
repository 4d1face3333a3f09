"""Spaces of allowed columns in which sorting maximises a linear function: `Box` and `LdpCone`.

A column is scaled to `P . r = 1`, so its entries are lifts. **Local information privacy** of the value itself, under
one prior, allows the box `lo <= r <= hi`. Write `P_x r_x = lo P_x + (1 - lo) f_x`. Then `f` is a distribution with
`f_x <= g_x = min(1, P_x / tau)`, where `tau = (1 - lo) / (hi - lo)`: an output is a distribution over values, capped by
`g`. A linear function is largest where the best values are filled to their caps until the mass is used up.

**LDP** allows the columns whose entries differ by a factor of `e^eps` at most. A linear function is largest at a column
with two different entries, the larger one on the values that score best.

All other notions are polyhedral cones, where a linear function needs a linear programme (`cones`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from priorveil.arrays import Array
from priorveil.designs.problem import DesignProblem
from priorveil.designs.tolerances import SLACK
from priorveil.designs.value_groups import Indices, distinct_rows, ranks
from priorveil.errors import Hint, TooLarge
from priorveil.priors.budget import window_mass

LISTED = 14  # values up to which all vertices are listed, 24,024 at most: an exact answer in seconds
STARTS = 200  # starts of one kind for a search: more of them may find better columns, and take longer


@dataclass(frozen=True)
class Space(ABC):
    """Allowed columns `r` with `P . r = 1`, over which linear functions are maximised at once."""

    prior: Array

    @property
    @abstractmethod
    def ldp_ratio(self) -> float:
        """Columns of LDP with this ratio are allowed."""

    @abstractmethod
    def vertices(self) -> Array:
        """All extreme columns (K, d), for up to `LISTED` values."""

    @abstractmethod
    def reach(self, directions: Array) -> Array:
        """How far each direction (K, d), of mean zero, leads from the constant column."""

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

    def merge(self, labels: Indices) -> Self:
        """The columns that are constant on blocks of values."""
        return replace(self, prior=np.bincount(labels, self.prior).astype(np.float64))

    def random_vertices(self, count: int, rng: np.random.Generator) -> Array:
        """Random vertices."""
        return self.best(rng.random((count, len(self.prior))) * self.prior)

    def slack(self, duals: Array, rest: float) -> float:
        """Room for rounding in `duals . r + rest`: `|duals| . r` is at most the largest `|duals| / P`."""
        return SLACK * (float((np.abs(duals) / self.prior).max()) + rest)

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
class LdpCone(Space):
    """The columns that LDP allows: no entry is more than `ratio` times another one.

    >>> cone = LdpCone(np.array([0.5, 0.25, 0.25]), ratio=3.0)
    >>> cone.best(np.array([[0.0, 1.0, 0.0]]))
    array([[0.66666667, 2.        , 0.66666667]])
    """

    ratio: float

    @property
    def ldp_ratio(self) -> float:
        """The ratio itself."""
        return self.ratio

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
        """All extreme columns (K, d): two entries, or one if there is one value.

        >>> LdpCone(np.array([0.5, 0.5]), ratio=3.0).vertices()
        array([[1.5, 0.5],
               [0.5, 1.5]])
        """
        sets = subsets(len(self.prior))
        return self._normalise(np.where(sets[1 : max(2, len(sets) - 1)], self.ratio, 1.0))

    def _normalise(self, columns: Array) -> Array:
        return np.asarray(columns / (columns @ self.prior)[:, None])


@dataclass(frozen=True)
class Box(Space):
    """The columns `lo <= r <= hi` with `P . r = 1`; `hi` may be infinite and `lo` zero, `lo < 1 < hi`.

    >>> box = Box(np.array([0.5, 0.25, 0.25]), lo=0.5, hi=2.0)
    >>> box.caps
    array([1.  , 0.75, 0.75])
    >>> box.columns(np.array([[0.25, 0.75, 0.0]]))
    array([[0.75, 2.  , 0.5 ]])
    """

    lo: float
    hi: float

    @property
    def ldp_ratio(self) -> float:
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
        """All extreme columns (K, d): every value at `lo` or at its cap, but one.

        >>> Box(np.array([0.5, 0.25, 0.25]), lo=0.5, hi=2.0).vertices()
        array([[1.5 , 0.5 , 0.5 ],
               [0.75, 2.  , 0.5 ],
               [0.75, 0.5 , 2.  ],
               [0.5 , 1.  , 2.  ],
               [0.5 , 2.  , 1.  ]])
        """
        d = len(self.prior)
        bits, distributions = subsets(d)[: 2 ** (d - 1), :-1], []
        for loose in range(d):
            others = np.delete(np.arange(d), loose)
            rest = 1.0 - bits @ self.caps[others]
            fits = (rest >= -1e-13) & (rest <= self.caps[loose] + 1e-13)
            shares = np.empty((int(fits.sum()), d))
            shares[:, others] = bits[fits] * self.caps[others]
            shares[:, loose] = np.clip(rest[fits], 0.0, self.caps[loose])
            distributions.append(shares)
        return distinct_rows(np.clip(self.columns(np.vstack(distributions)), self.lo, self.hi))

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


def box_of(problem: DesignProblem) -> Box:
    """The columns `lo <= r <= hi` of the reference prior. Under LIP of the value these are all allowed columns."""
    return Box(problem.P, problem.budget.lo, problem.budget.hi)


def ldp_cone_of(problem: DesignProblem) -> LdpCone:
    """The columns that LDP allows at the level of a problem."""
    return LdpCone(problem.P, math.exp(problem.level))


def space_of(problem: DesignProblem) -> Space | None:
    """The allowed columns if sorting finds the best one for a linear function; None for other cones."""
    if problem.is_lip_of_value:
        return box_of(problem)
    return ldp_cone_of(problem) if problem.is_ldp else None


def subsets(d: int) -> Indices:
    """All subsets of up to `LISTED` values as rows of zeros and ones."""
    if d > LISTED:
        raise TooLarge(f"d = {d}: listing subsets is for up to {LISTED} values", Hint("method", "columns"))
    return (np.arange(2**d)[:, None] >> np.arange(d)) & 1


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


def seeds(space: Space) -> Array:
    """Columns to start from: the constant one, arcs in several orders, and values before the heaviest or lightest.

    With all `P >= tau` the second kind is the mechanism of Theorem 3 itself.
    """
    d = len(space.prior)
    rng = np.random.default_rng(0)
    shifts = np.unique(np.linspace(0, d - 1, min(d, STARTS)).astype(int))
    rank = ranks(space.prior)
    orders = [np.arange(d), rank, rng.permutation(d)]
    arcs = [-((order - shift) % d) for order in orders for shift in shifts]
    alone = np.union1d(shifts, np.flatnonzero(space.prior >= space.tau))
    first = 2.0 * d * np.eye(d)[alone]
    scores = np.vstack([*arcs, first + rank, first - rank])
    return np.vstack([np.ones(d), space.best(scores * space.prior)])


def windows(space: Space, values: Array) -> Array:
    """Stretches of neighbouring values: right of, left of and around every value, and both far ends."""
    d = len(values)
    away = ranks(values) - np.linspace(0, d - 1, min(d, STARTS))[:, None]
    right, left = np.where(away >= 0, -away, away - 2 * d), np.where(away <= 0, away, -away - 2 * d)
    around = [-np.abs(away - 0.25), -np.abs(away + 0.25), np.abs(away), -(away % d)]
    return space.best(np.vstack([right, left, *around]) * space.prior)
