"""Pricing by branch and bound over linear programmes: for cones with too many extreme rays to list.

The pricings here plug into `columns.solve`. Every bound is one of `programs.Program`, or the largest of several.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.designs.columns import Priced
from priorveil.designs.cones import EMPTY, Utility
from priorveil.designs.limits import Stop, never
from priorveil.designs.programs import Program
from priorveil.errors import Infeasible

Array = npt.NDArray[np.float64]
Gradient = Callable[[Array], Array]
Node = TypeVar("Node")
Split = list[tuple[float, Node]]  # children with their bounds
Box = tuple[Array, Array, Array]  # lower ends, upper ends, the relaxation's column
Simplex = tuple[Array, Array]  # corners, the relaxation's weights on them

_QUICK = 20  # splits for a passing bound
_PATIENCE = 400  # splits before a better column ends the search
_IMPROVES = 1e-7  # worth stopping for
_SAME = 1e-10  # a bound this close to the best value found is that value


class Pool:
    """The columns one pricing call has met, the best of them, and how far branch and bound may go."""

    def __init__(self, utility: Utility, duals: Array, stop: Stop) -> None:
        self.utility, self.duals, self.stop = utility, duals, stop
        self.columns: list[Array] = []
        self.best = -np.inf

    def worth(self, columns: Array) -> Array:
        """`phi(r) - duals @ r` of each row."""
        return np.asarray(self.utility(columns) - columns @ self.duals)

    def add(self, columns: list[Array]) -> None:
        """Take in columns."""
        if columns:
            self.best = max(self.best, float(np.max(self.worth(np.array(columns)))))
            self.columns.extend(columns)

    def bound(
        self, root: tuple[float, Node], split: Callable[[Node], Split[Node] | None], limit: int
    ) -> float:
        """Branch and bound: an upper bound on everything below `root`, after at most `limit` splits.

        `split` gives None for a node whose bound is exact. Stops early once it finds a better column than
        the climbs did: the master moves on then, and a tight bound at these duals is not needed. Told to
        stop, it ends after the first split: what is open keeps its bound.
        """
        ticket = count()
        heap = [(-root[0], next(ticket), root[1])]
        exact, climbed = -np.inf, self.best
        for spent in range(limit):
            if spent >= _PATIENCE and self.best > climbed + _IMPROVES:
                break
            if spent and self.stop():
                break
            if not heap or -heap[0][0] <= self.best + _SAME * max(1.0, abs(self.best)):
                break
            bound, _, node = heapq.heappop(heap)
            children = split(node)
            if children is None:
                exact = max(exact, -bound)
            for value, child in children or ():
                heapq.heappush(heap, (-min(value, -bound), next(ticket), child))
        return max(exact, -heap[0][0] if heap else -np.inf, self.best)

    def priced(self, bound: float, most: int = 150) -> Priced:
        """The best different columns, best first."""
        columns = np.unique(np.array(self.columns), axis=0)
        columns = columns[np.argsort(-self.worth(columns), kind="stable")[:most]]
        return Priced(columns, self.utility(columns), bound)


@dataclass(frozen=True)
class Starts:
    """Vertices to climb from: corners of the polytope, and what earlier calls found.

    Told to `stop`, all of it does with one of them.
    """

    program: Program
    columns: dict[bytes, Array]
    stop: Stop

    def look(self, directions: Array) -> None:
        """Add the vertices furthest in these directions."""
        for g in directions:
            if self.columns and self.stop():
                break
            answer = self.program.maximise(g * self.program.P)
            if answer is None:
                raise Infeasible(EMPTY)
            self._keep(answer[0])

    def _keep(self, column: Array) -> None:
        self.columns[np.round(column, 9).tobytes()] = column
        if len(self.columns) > 2000:
            del self.columns[next(iter(self.columns))]

    def climb(self, pool: Pool, gradient: Gradient, most: int, columns: list[Array] | None = None) -> None:
        """From the `most` best columns known, or of those given: linearise, go to the best vertex."""
        table = np.array(columns or list(self.columns.values()))
        for place in np.argsort(-pool.worth(table), kind="stable")[:most]:
            if pool.columns and self.stop():
                break
            found = self._climb(pool, gradient, table[place])
            self._keep(found)
            pool.add([found])

    def _climb(self, pool: Pool, gradient: Gradient, here: Array) -> Array:
        worth = float(pool.worth(here[None])[0])
        for _ in range(60):
            if self.stop():
                break
            answer = self.program.maximise(gradient(here) - pool.duals)
            if answer is None:
                break
            there = float(pool.worth(answer[0][None])[0])
            if there <= worth + 1e-15 * max(1.0, abs(worth)):
                break
            here, worth = answer[0], there
        return here


def starts(program: Program, stop: Stop = never) -> Starts:
    """Vertices towards each input, away from it, and in some random directions (always the same ones)."""
    d = len(program.P)
    found = Starts(program, {}, stop)
    found.look(np.vstack([np.eye(d), -np.eye(d), np.random.default_rng(0).normal(size=(2 * d, d))]))
    return found


@dataclass(frozen=True)
class Squares:
    """Pricing for `phi(r) = sum_j (C_j @ r)^2 / (D_j @ r)`: sums, histograms, mixtures of priors.

    With `z_j = (C_j @ r)/(D_j @ r)` in `[l_j, u_j]` each term is at most its chord, `(l_j + u_j) C_j @
    r - l_j u_j D_j @ r`, and the interval is two more linear rows: a linear programme bounds the utility
    over a box of intervals. Boxes are split where the chord is furthest off until the bound meets the best
    column, or `nodes` splits are made (the bound stays valid). With one term, splitting at the
    programme's own `z` ends exactly.
    """

    starts: Starts
    C: Array
    D: Array
    low: Array
    high: Array
    nodes: int

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns`."""
        return np.asarray(((columns @ self.C.T) ** 2 / (columns @ self.D.T)).sum(axis=1))

    def gradient(self, r: Array) -> Array:
        """The slope of `phi` at `r`."""
        z = (self.C @ r) / (self.D @ r)
        return np.asarray(2 * z @ self.C - z**2 @ self.D)

    def weighted(self, weights: Array) -> Squares:
        """The same terms, term `j` counted `weights[j]` times."""
        on = weights > 0
        W = weights[on, None]
        return replace(self, C=W * self.C[on], D=W * self.D[on], low=self.low[on], high=self.high[on])

    def price(self, duals: Array, exact: bool) -> Priced:
        """Climb from good starts, then prove by branch and bound (a short one unless `exact`)."""
        pool = Pool(self.utility, duals, self.starts.stop)
        self.starts.climb(pool, self.gradient, 12 if exact else 5)

        def split(node: Box) -> Split[Box] | None:
            parts = self._halves(node)
            if parts is None:
                return None
            boxes = [box for low, high in parts if (box := self._relax(duals, low, high)) is not None]
            pool.add([box[1][2] for box in boxes])
            return boxes

        root = self._relax(duals, self.low, self.high)
        if root is None:
            raise Infeasible(EMPTY)
        pool.add([root[1][2]])
        bound = pool.bound(root, split, self.nodes if exact or len(self.C) == 1 else _QUICK)
        if exact:
            self.starts.climb(pool, self.gradient, 20, pool.columns)
        return pool.priced(bound)

    def _halves(self, node: Box) -> list[tuple[Array, Array]] | None:
        low, high, r = node
        z = np.clip((self.C @ r) / (self.D @ r), low, high)
        off = (high - z) * (z - low) * (self.D @ r)
        j = int(np.argmax(off))
        if off[j] <= 1e-14:
            return None
        margin = 0.0 if len(z) == 1 else 0.1 * (high[j] - low[j])
        below, above = high.copy(), low.copy()
        below[j] = above[j] = np.clip(z[j], low[j] + margin, high[j] - margin)
        return [(low, below), (above, high)]

    def _relax(self, duals: Array, low: Array, high: Array) -> tuple[float, Box] | None:
        g = (low + high) @ self.C - (low * high) @ self.D - duals
        up, down = low > self.low, high < self.high
        rows = [self.C[up] - low[up, None] * self.D[up], high[down, None] * self.D[down] - self.C[down]]
        answer = self.starts.program.maximise(g, np.vstack(rows))
        return None if answer is None else (answer[1], (low, high, answer[0]))


def squares(A: Array, P: Array, C: Array, D: Array, nodes: int = 4000, stop: Stop = never) -> Squares:
    """Pricing for `sum_j (C_j @ r)^2 / (D_j @ r)` over the cone `A`, columns scaled to `P @ r = 1`.

    For one prior: the sum of values `a` is `C = (a P)[None]`, the histogram `C = diag(P)`, both with
    rows of `D` equal to `P`. Told to `stop`, it takes the ends of
    `C_j / D_j` for those of `z_j`, which need no programme.

    >>> A, P = np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])
    >>> round(squares(A, P, np.diag(P), np.array([P, P])).price(np.zeros(2), exact=True).bound, 9)
    0.625
    """
    program = Program(A, P)
    begin = starts(program, stop)
    low, high = np.empty(len(C)), np.empty(len(C))
    for scale in np.unique(D, axis=0):
        fixed = program if np.array_equal(scale, P) else Program(A, scale)
        for j in np.flatnonzero((scale == D).all(axis=1)):
            low[j], high[j] = _ratios(C[j], D[j]) if stop() else (-fixed.top(-C[j]), fixed.top(C[j]))
    return Squares(begin, C, D, low, high, nodes)


def _ratios(c: Array, d: Array) -> tuple[float, float]:
    """Between which `(c @ r) / (d @ r)` lies for any `r >= 0`; where `d` is zero, so is `c`."""
    ratios = c[d > 0] / d[d > 0]
    return float(ratios.min()), float(ratios.max())


@dataclass(frozen=True)
class Peaks:
    """Pricing for `phi(r) = sum_k max_x M[k, x] r_x`: the best guess, for one prior or a mixture of priors.

    One linear programme for each choice of guesses `x_1 .. x_k`, exact; a choice is grown prior by prior,
    and what is still open is bounded by `max_x M[k, x] r_x <= top_k M[k] @ r`. For one prior: `d`
    programmes.
    """

    program: Program
    M: Array
    highest: Array
    nodes: int
    stop: Stop

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns`."""
        return np.asarray((columns[:, None, :] * self.M).max(axis=2).sum(axis=1))

    def weighted(self, weights: Array) -> Peaks:
        """The same priors, prior `k` counted `weights[k]` times."""
        on = weights > 0
        return replace(self, M=weights[on, None] * self.M[on], highest=self.highest[on])

    def price(self, duals: Array, exact: bool) -> Priced:
        """The best column for every choice of guesses that can still win."""
        pool = Pool(self.utility, duals, self.stop)

        def split(guesses: tuple[int, ...]) -> Split[tuple[int, ...]] | None:
            if len(guesses) == len(self.M):
                return None
            choices = [(*guesses, x) for x in range(self.M.shape[1])]
            found = [(self._relax(duals, choice), choice) for choice in choices]
            pool.add([answer[0] for answer, _ in found if answer is not None])
            return [(answer[1], choice) for answer, choice in found if answer is not None]

        nothing: tuple[int, ...] = ()
        limit = self.nodes if exact or len(self.M) == 1 else 3 * len(self.M)
        return pool.priced(pool.bound((np.inf, nothing), split, limit))

    def _relax(self, duals: Array, guesses: tuple[int, ...]) -> tuple[Array, float] | None:
        done = len(guesses)
        g = self.highest[done:] @ self.M[done:] - duals
        for k, x in enumerate(guesses):
            g[x] += self.M[k, x]
        if len(self.M) == 1:
            return self.program.maximise(g)
        unit = np.eye(len(g))
        rows = [self.M[k, x] * unit[x] - np.diag(self.M[k]) for k, x in enumerate(guesses)]
        return self.program.maximise(g, np.vstack(rows))


def peaks(A: Array, P: Array, M: Array, nodes: int = 4000, stop: Stop = never) -> Peaks:
    """Pricing for `sum_k max_x M[k, x] r_x` over the cone `A`, columns scaled to `P @ r = 1`.

    For one prior: `M = P[None]`. Told to `stop`, it takes one for the largest share of the largest term.

    >>> A, P = np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])
    >>> round(peaks(A, P, P[None]).price(np.zeros(2), exact=True).bound, 9)
    0.75
    """
    highest = []
    for row in M:
        scaled = Program(A, row)
        highest.append(max(1.0 if stop() else scaled.top(row * unit) for unit in np.eye(len(P))))
    return Peaks(Program(A, P), M, np.array(highest), nodes, stop)


@dataclass(frozen=True)
class Convex:
    """Pricing for any convex `phi` given as a function on columns (rows of an array), under any cone.

    Climbs along `slope`, by default a difference quotient that stays on `P @ r = 1`. The bound: a
    convex function on a simplex is at most the linear one through its corners; simplices are halved where
    that is furthest off, at most `nodes` times. Valid for any convex `phi` that is finite on the
    corners `e_x / P_x`, but slow to tighten beyond six inputs or so: where the extreme rays can be
    listed, list them.
    """

    starts: Starts
    A: Array
    phi: Utility
    slope: Gradient | None
    nodes: int

    def utility(self, columns: Array) -> Array:
        """`phi` of each row of `columns`."""
        return np.asarray(self.phi(columns), dtype=float)

    def gradient(self, r: Array) -> Array:
        """The slope of `phi` at `r`, up to a multiple of `P`."""
        if self.slope is not None:
            return self.slope(r)
        P, step = self.starts.program.P, 1e-6
        towards = (1 - step) * r + step * np.diag(1 / P)
        return np.asarray(P * (self.utility(towards) - self.utility(r[None])) / step)

    def price(self, duals: Array, exact: bool) -> Priced:
        """Climb from many starts, then bound by simplices (few of them unless `exact`)."""
        pool = Pool(self.utility, duals, self.starts.stop)
        if exact:
            fresh = np.random.default_rng(len(self.starts.columns)).normal(size=(4 * len(duals), len(duals)))
            self.starts.look(fresh)
        self.starts.climb(pool, self.gradient, 60 if exact else 8)

        def split(node: Simplex) -> Split[Simplex] | None:
            parts = self._halves(node)
            if parts is None:
                return None
            kept = [half for corners in parts if (half := self._relax(duals, corners)) is not None]
            pool.add([weights @ corners for _, (corners, weights) in kept])
            return kept

        root = self._relax(duals, np.diag(1 / self.starts.program.P))
        if root is None:
            raise Infeasible(EMPTY)
        return pool.priced(pool.bound(root, split, self.nodes if exact else _QUICK))

    def _halves(self, node: Simplex) -> list[Array] | None:
        """Halve the longest edge between corners in use; None if one corner is the solution."""
        corners, weights = node
        used = np.flatnonzero(weights > 1e-12)
        if len(used) < 2:
            return None
        length = np.linalg.norm((corners[used, None] - corners[used]) * self.starts.program.P, axis=2)
        ends = used[list(np.unravel_index(int(np.argmax(length)), length.shape))]
        halves = [corners.copy(), corners.copy()]
        for half, end in zip(halves, ends, strict=True):
            half[end] = corners[ends].mean(axis=0)
        return halves

    def _relax(self, duals: Array, corners: Array) -> tuple[float, Simplex] | None:
        inside = Program(self.A @ corners.T, np.ones(len(corners)))
        answer = inside.maximise(self.utility(corners) - corners @ duals)
        return None if answer is None else (answer[1], (corners, answer[0]))


def convex(
    A: Array,
    P: Array,
    phi: Utility,
    slope: Gradient | None = None,
    nodes: int = 400,
    stop: Stop = never,
) -> Convex:
    """Pricing for a convex utility of your own over the cone `A`, columns scaled to `P @ r = 1`.

    >>> A, P = np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])
    >>> round(convex(A, P, lambda r: np.abs(r - 1) @ P).price(np.zeros(2), exact=True).utilities[0], 9)
    np.float64(0.5)
    """
    return Convex(starts(Program(A, P), stop), A, phi, slope, nodes)
