"""Pricing of gains in any cone of columns: climbs with small linear programmes, and bounds by branch and bound.

Gains are those of one prior, or one for each prior of a set. A `Space` takes part too (`SortedProgram`), for convex
gains that have no pricing of their own.
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from priorveil.arrays import Array
from priorveil.designs.column_generation import PricedColumns, Utility, reduced_costs, split_duals
from priorveil.designs.cones import EMPTY, Program, program_of
from priorveil.designs.spaces import Space
from priorveil.designs.stopping import FINEST_GAP, Stop
from priorveil.designs.tolerances import ROUNDING
from priorveil.errors import Infeasible

# Each climb and each split is a linear programme: more of them find better columns and bounds, in longer rounds.
_QUICK = 20  # climbs of a call, and splits for a bound that need not be exact
_NODES = 4000  # splits for an exact bound


Node = Any  # a part of the polytope; each pricing has its own


class SortedProgram(NamedTuple):
    """`max g @ r` over a box or under LDP, where sorting finds the best column."""

    space: Space

    def maximise(self, g: Array) -> tuple[Array, float]:
        """The best `r`, and no bound: the closed form of a convex utility proves more than its corners can."""
        return self.space.best(g[None])[0], np.inf


class ConePricing:
    """Pricing of any convex utility over the cone of a programme: it climbs from vertex to vertex, branches and bounds.

    `utility` maps columns (n, d) to numbers (n,), or to one for each prior (n, k); `phi` is then their sum with the
    shares that the duals hold. When `stop()` says so, every search ends at its first answer.

    It climbs along a difference quotient that stays on `P @ r = 1`. The bound is that of the linear function through
    the corners `e_x / P_x`, which a convex function never exceeds: valid if `phi` is finite there, but far from tight.
    Where the extreme rays can be listed, list them. A subclass knows the utility better: its `slope`, the number of its
    `terms` for each prior, and nodes with tight bounds (`root` holds every column, `split` makes parts of a node).
    Its terms leave out a `linear` part (k, d) of the utilities: these are the terms less `linear @ r`.

    >>> A, P = np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])
    >>> pricing = ConePricing(Program(A, P), P, lambda r: np.abs(r - 1) @ P, lambda: False, linear=np.zeros((1, 2)))
    >>> round(pricing.price(np.zeros(2), exact=True).utilities[0], 9)
    np.float64(0.5)
    """

    root: Node = ()
    terms: int = 1

    def __init__(
        self, program: Program | SortedProgram, P: Array, utility: Utility, stop: Stop, linear: Array
    ) -> None:
        self.program, self.P, self.utility, self.stop, self.linear = program, P, utility, stop, linear
        self._starts: dict[bytes, Array] = {}
        self._add_vertices(np.vstack([np.eye(len(P)), -np.eye(len(P))]))

    def slope(self, costs: Array, shares: Array, r: Array) -> Array:
        """The gradient of `phi(r) - costs . r`, up to a multiple of `P`."""
        step = 1e-6
        towards = (1 - step) * r + step * np.diag(1 / self.P)
        return np.asarray(self.P * (self.utility(towards) - self.utility(r[None])) / step - costs)

    def relax(self, costs: Array, shares: Array, node: Node) -> tuple[Array, float] | None:
        """A bound on `phi(r) - costs . r` in a node, after the column where it is taken; None if the node is empty."""
        return self.program.maximise(self.P * self.utility(np.diag(1 / self.P)) - costs)

    def split(self, shares: Array, node: Node, column: Array) -> list[Node]:
        """The parts of a node, given the column of its bound; none if the bound is exact or stays as it is."""
        return []

    def price(self, duals: Array, exact: bool) -> PricedColumns:
        """Climb from good starts, then prove a bound by branch and bound (a short one unless `exact`)."""
        pool, d = _Pool(self, duals), len(self.P)
        if exact:  # look in new directions (fixed seed)
            self._add_vertices(np.random.default_rng(len(self._starts)).normal(size=(4 * d, d)))
        self._climb(pool)
        one_term = self.terms * np.count_nonzero(pool.shares) == 1
        bound = self._branch(pool, _NODES if exact or one_term else _QUICK)
        columns = np.unique(np.array(pool.columns), axis=0)
        return PricedColumns(columns, self.utility(columns), bound)

    def _branch(self, pool: _Pool, limit: int) -> float:
        """An upper bound on every column, after at most `limit` splits.

        It ends early once it finds a better column than the climbs did: the master moves on then, and a tight bound at
        these duals is not needed. Open nodes keep their bounds.
        """
        ticket, heap = count(), list[tuple[float, int, Node, Array]]()

        def bound_parts(nodes: list[Node], above: float) -> None:
            answers = [(node, self.relax(pool.costs, pool.shares, node)) for node in nodes]
            parts = [(node, *answer) for node, answer in answers if answer is not None]
            pool.add([column for _, column, _ in parts])
            for node, column, bound in parts:
                heapq.heappush(heap, (-min(bound, above), next(ticket), node, column))

        bound_parts([self.root], np.inf)
        if not heap:
            raise Infeasible(EMPTY)
        exact, climbed = -np.inf, pool.best
        for spent in range(limit):
            if (spent >= _QUICK and pool.best > climbed + FINEST_GAP) or (spent and self.stop()):
                break
            if not heap or -heap[0][0] <= pool.best + FINEST_GAP * max(1.0, abs(pool.best)):
                break
            below, _, node, column = heapq.heappop(heap)
            parts = self.split(pool.shares, node, column)
            exact = exact if parts else max(exact, -below)
            bound_parts(parts, -below)
        return max(exact, -heap[0][0] if heap else -np.inf, pool.best)

    def _add_vertices(self, directions: Array) -> None:
        """Remember the vertices furthest in these directions."""
        for g in directions:
            if self._starts and self.stop():
                break
            self._remember(self.program.maximise(g * self.P)[0])

    def _remember(self, column: Array) -> None:
        self._starts[np.round(column, 9).tobytes()] = column

    def _climb(self, pool: _Pool) -> None:
        """From the best starts: linearise, go to the best vertex, and repeat."""
        table = np.array(list(self._starts.values()))
        worths = pool.worth(table)
        for index in np.argsort(-worths, kind="stable")[:_QUICK]:
            if pool.columns and self.stop():
                break
            here, worth = table[index], float(worths[index])
            while not self.stop():
                vertex, _ = self.program.maximise(self.slope(pool.costs, pool.shares, here))
                there = float(pool.worth(vertex[None])[0])
                if there <= worth + ROUNDING * abs(worth):
                    break
                here, worth = vertex, there
            self._remember(here)
            pool.add([here])


class _Pool:
    """The columns that one pricing call has met, and the largest `phi(r) - duals @ r` of them."""

    def __init__(self, pricing: ConePricing, duals: Array) -> None:
        self.utility, self.duals = pricing.utility, duals
        slopes, self.shares = split_duals(duals, len(pricing.P))
        self.costs = slopes + self.shares @ pricing.linear
        self.columns: list[Array] = []
        self.best = -np.inf

    def worth(self, columns: Array) -> Array:
        """`phi(r) - duals @ r` of each row."""
        return reduced_costs(columns, self.utility(columns), self.duals)

    def add(self, columns: list[Array]) -> None:
        """Add columns."""
        if columns:
            self.best = max(self.best, float(self.worth(np.array(columns)).max()))
            self.columns.extend(columns)


class ConeSquaresPricing(ConePricing):
    """Pricing of `phi(r) = sum_j (C_j @ r)^2 / (D_j @ r)`: linear statistics, for one prior or several.

    For a prior `p` the rows of `C` are those of `V * p`, with `V` the statistics, and all rows of `D` are `p`. With
    `z_j = (C_j @ r)/(D_j @ r)` in `[l_j, u_j]` each term is at most its chord, `(l_j + u_j) C_j @ r - l_j u_j D_j @ r`,
    and the interval is two more linear rows: a linear programme bounds the utility over a box of intervals. Boxes are
    split where the chord is furthest off until the bound meets the best column. With one term, splitting at the
    programme's own `z` ends exactly.

    >>> A, P = np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])
    >>> pricing = ConeSquaresPricing(A, P, lambda r: r**2 @ P**2, np.eye(2), P[None], lambda: False, np.zeros((1, 2)))
    >>> round(pricing.price(np.zeros(2), exact=True).bound, 9)
    0.625
    """

    program: Program

    def __init__(
        self, A: Array, P: Array, utility: Utility, V: Array, priors: Array, stop: Stop, linear: Array
    ) -> None:
        super().__init__(Program(A, P), P, utility, stop, linear)
        self.C, self.D = np.concatenate([V * p for p in priors]), np.repeat(priors, len(V), axis=0)
        self.terms, ends = len(V), []
        for p in priors:
            program = self.program if np.array_equal(p, P) else program_of(A, p)
            for row in V:
                if program is None or stop():  # what holds for any r >= 0
                    ends.append((row.min(), row.max()))
                else:
                    ends.append((-program.maximise(-row * p)[1], program.maximise(row * p)[1]))
        self.root = np.array(ends).T

    def slope(self, costs: Array, shares: Array, r: Array) -> Array:
        """The gradient of `phi(r) - costs . r`."""
        weights, z = np.repeat(shares, self.terms), (self.C @ r) / (self.D @ r)
        return np.asarray((2 * weights * z) @ self.C - (weights * z**2) @ self.D - costs)

    def relax(self, costs: Array, shares: Array, node: tuple[Array, Array]) -> tuple[Array, float] | None:
        """Chords in place of squares; a node has the lowest and the highest value of each ratio."""
        weights, (low, high) = np.repeat(shares, self.terms), node
        g = (weights * (low + high)) @ self.C - (weights * low * high) @ self.D - costs
        up, down = low > self.root[0], high < self.root[1]
        rows = [self.C[up] - low[up, None] * self.D[up], high[down, None] * self.D[down] - self.C[down]]
        return self.program.maximise_within(g, np.vstack(rows))

    def split(self, shares: Array, node: tuple[Array, Array], column: Array) -> list[Node]:
        """Two intervals for the ratio whose chord is furthest off."""
        (low, high), weights = node, np.repeat(shares, self.terms)
        z = np.clip((self.C @ column) / (self.D @ column), low, high)
        off = weights * (high - z) * (z - low) * (self.D @ column)
        j = int(np.argmax(off))
        if off[j] <= 1e-14:
            return []
        margin = 0.0 if np.count_nonzero(weights) == 1 else 0.1 * (high[j] - low[j])
        below, above = high.copy(), low.copy()
        below[j] = above[j] = np.clip(z[j], low[j] + margin, high[j] - margin)
        return [(low, below), (above, high)]


class ConeGuessPricing(ConePricing):
    """Pricing of `phi(r) = sum_k max_x p_k[x] r_x`: the best guess, for one prior or several.

    One linear programme for each choice of guesses `x_1 .. x_k`, exact; a choice is grown prior by prior, and what is
    still open is bounded by `max_x p_k[x] r_x <= top_k p_k @ r`. For one prior these are `d` programmes.

    >>> A, P = np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])
    >>> pricing = ConeGuessPricing(A, P, lambda r: (r * P).max(axis=1), P[None], lambda: False, np.zeros((1, 2)))
    >>> round(pricing.price(np.zeros(2), exact=True).bound, 9)
    0.75
    """

    program: Program

    def __init__(
        self, A: Array, P: Array, utility: Utility, priors: Array, stop: Stop, linear: Array
    ) -> None:
        super().__init__(Program(A, P), P, utility, stop, linear)
        self.priors, highest = priors, []
        for p in priors:
            program = program_of(A, p)  # without one, or time: no share of the largest term is above one
            tops = (
                1.0 if program is None or stop() else program.maximise(p * unit)[1] for unit in np.eye(len(P))
            )
            highest.append(max(tops))
        self.highest = np.array(highest)

    def slope(self, costs: Array, shares: Array, r: Array) -> Array:
        """The gradient of `phi(r) - costs . r`."""
        guesses = np.argmax(self.priors * r, axis=1)
        return np.asarray(shares @ (np.eye(len(r))[guesses] * self.priors) - costs)

    def relax(self, costs: Array, shares: Array, node: tuple[int, ...]) -> tuple[Array, float] | None:
        """The guesses chosen so far are the best ones; the others are bounded."""
        on = shares > 0
        M, done = shares[on, None] * self.priors[on], len(node)
        g = self.highest[on][done:] @ M[done:] - costs
        for k, x in enumerate(node):
            g[x] += M[k, x]
        chosen = enumerate(node if len(M) > 1 else ())
        rows = [M[k, x] * np.eye(len(g))[x] - np.diag(M[k]) for k, x in chosen]
        return self.program.maximise_within(g, np.vstack(rows) if rows else np.empty((0, len(g))))

    def split(self, shares: Array, node: tuple[int, ...], column: Array) -> list[Node]:
        """Every guess for the next prior."""
        done = len(node) == np.count_nonzero(shares)
        return [] if done else [(*node, x) for x in range(len(column))]
