"""Cones of allowed columns: their extreme rays, and pricing over them.

A notion is a cone: a column `q` is allowed iff `A @ q >= 0` and `q >= 0`. Scaled to `P @ r = 1` the cone is a
polytope; utilities are convex, so the best channel mixes its vertices. For small `d` they are all listed and one
linear programme is exact. For larger `d` the pricings here plug into `priorveil.designs.engine.solve`: they search for
good columns with small linear programmes and prove their bounds by branch and bound.

Every bound comes from multipliers `y >= 0` on the rows of `A`: with `w = P r` on the simplex,
`g @ w <= (g + B' y) @ w <= max(g + B' y)` where `B = A / P`. That holds for any `y`, so no bound trusts
the solver's tolerance.
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import Any, NamedTuple

import highspy
import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Mask
from priorveil.designs import engine
from priorveil.designs.box_pricing import ColumnSpace
from priorveil.designs.engine import Priced, Utility
from priorveil.designs.limits import Stop, never
from priorveil.errors import Infeasible, TooLarge

Index = npt.NDArray[np.intp]
Node = Any  # a part of the polytope; each pricing has its own

LISTING = 2 / 3  # the share of the time that listing extreme rays may take, where there is another way
_ZERO = 1e-11  # a ray on a hyperplane, both scaled to largest entry one
_PAIRS = 4_000_000  # entries of one block of comparisons
_CLIMBS = (6, 60)  # starts of a quick and of an exact call
_QUICK, _NODES = 20, 4000  # splits for a quick bound, and for an exact one
_RETURNED = 150  # columns of a call
_PATIENCE = 400  # splits before a better column ends the search
_IMPROVES = 1e-7  # a gain over the best column that is worth stopping for
_SAME = 1e-10  # a bound this close to the best value found is that value
_STARTS = 2000  # vertices that are remembered to climb from
_EMPTY = "the inequalities allow no column at all, not even the constant one"


def extreme_rays(A: Array, P: Array, most: int = 8_000, stop: Stop = never) -> Array:
    """All vertices (n, d) of `{r >= 0, A r >= 0, P @ r = 1}`, by the double description method.

    Starts from the orthant and cuts with one row of `A` after another; a cut keeps the rays on its side and
    joins adjacent rays across it. New rays lie between allowed ones, so rounding stays in the cone.
    Equal or redundant rows, and cones without interior, need no special treatment. More than `most` rays, or a
    `stop` request, raise `TooLarge`.

    >>> extreme_rays(np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5]))
    array([[0.5, 1.5],
           [1.5, 0.5]])
    """
    d = len(P)
    rays, on = np.eye(d), ~np.eye(d, dtype=bool)
    rows = _scale_rows(A)
    rows = rows[np.sort(np.unique(np.round(rows, 13), axis=0, return_index=True)[1])]
    while len(rows):
        _require_time(stop)
        side = rays @ rows.T
        side[np.abs(side) <= _ZERO] = 0.0
        cuts = (side < 0).any(axis=0)
        rows, side = rows[cuts], side[:, cuts]  # a row that cuts nothing now never will
        if not len(rows):
            break
        work = (side > 0).sum(axis=0) * (side < 0).sum(axis=0)
        first = int(np.argmin(work))
        rays, on = _cut_cone(rays, on, side[:, first], stop)
        rows = np.delete(rows, first, axis=0)
        if not len(rays):
            raise Infeasible(_EMPTY)
        if len(rays) > most:
            raise TooLarge(f"more than {most:,} extreme columns: too many to list")
    rays = rays / (rays @ P)[:, None]
    return np.asarray(rays[np.lexsort(rays.T[::-1])])


def _require_time(stop: Stop) -> None:
    if stop():
        raise TooLarge("not enough time to list all extreme columns: allow more time")


def _scale_rows(A: Array) -> Array:
    """Rows scaled to largest entry one, zero rows left out."""
    size = np.abs(A).max(axis=1, initial=0.0)
    return np.asarray(A[size > 0] / size[size > 0, None])


def _cut_cone(rays: Array, on: Mask, side: Array, stop: Stop) -> tuple[Array, Mask]:
    """Rays, and the hyperplanes they lie on, of the part of a cone where `side >= 0`."""
    keep = side >= 0
    above, below = np.flatnonzero(side > 0), np.flatnonzero(side < 0)
    up, down = _adjacent_pairs(on, above, below, rays.shape[1], stop)
    fresh = side[up, None] * rays[down] - side[down, None] * rays[up]
    fresh = np.maximum(fresh / np.maximum(fresh.max(axis=1, keepdims=True), 1e-300), 0.0)
    touch = np.concatenate([side[keep] == 0, np.ones(len(fresh), dtype=bool)])
    table = np.vstack([on[keep], on[up] & on[down]])
    return np.vstack([rays[keep], fresh]), np.column_stack([table, touch])


def _adjacent_pairs(on: Mask, above: Index, below: Index, d: int, stop: Stop) -> tuple[Index, Index]:
    """Pairs across the cut that share a two-dimensional face: no third ray lies on all they have in common.

    A ray on exactly `d - 1` hyperplanes is simple: any `d - 2` of them define an edge, without a test.
    """
    table = on.astype(np.float32)
    i, j = np.nonzero(table[above] @ table[below].T >= d - 2)
    i, j = above[i], below[j]
    simple = on.sum(axis=1) == d - 1
    good = simple[i] | simple[j]
    doubtful = np.flatnonzero(~good)
    block = max(1, _PAIRS // max(1, len(on)))
    for start in range(0, len(doubtful), block):
        _require_time(stop)
        part = doubtful[start : start + block]
        common = table[i[part]] * table[j[part]]
        holds = common @ table.T >= common.sum(axis=1, keepdims=True) - 0.5
        good[part] = holds.sum(axis=1) == 2
    return i[good], j[good]


def nearby_columns(A: Array, P: Array, others: Array | None = None) -> Array:
    """Allowed columns that need no solver: the constant one, and from there towards each value and away from it.

    Each goes as far as the cone does, so they mix to channels that tell all values apart: a start for the engine, and
    an answer where there is no time for the best one. Others (K, d), with `P @ r = 1`, are directions too.

    >>> nearby_columns(np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])).round(9)
    array([[1. , 1. ],
           [1.5, 0.5],
           [0.5, 1.5],
           [0.5, 1.5],
           [1.5, 0.5]])
    """
    towards = np.eye(len(P)) - P[:, None]
    directions = np.vstack([towards, -towards, *([] if others is None else [others - 1.0])])
    rows = np.vstack([A, np.eye(len(P))])
    moves, slack = directions @ rows.T, np.maximum(rows.sum(axis=1), 0.0)
    steps = np.divide(slack, -moves, out=np.full_like(moves, np.inf), where=moves < 0).min(axis=1)
    steps = np.where(np.isfinite(steps), steps, 0.0)  # the constant column again
    return np.vstack([np.ones(len(P)), 1.0 + (1 - 1e-12) * steps[:, None] * directions])


class Program:
    """`max g @ r` over `{r >= 0, A r >= 0, P @ r = 1}` in a live HiGHS model; only the cost changes.

    The variables are `w = P r`, which lie on the simplex, so everything is scaled alike.
    """

    def __init__(self, A: Array, P: Array) -> None:
        self.P = P
        self._rows = _scale_rows(A / P)
        d = len(P)
        self._model = engine.new_model(1e-10, presolve="off", solver="simplex")
        nothing = np.empty(0, np.int32)
        self._model.addCols(d, np.zeros(d), np.zeros(d), np.ones(d), 0, nothing, nothing, np.empty(0))
        self._add(np.ones((1, d)), 1.0, 1.0)
        self._add(self._rows, 0.0, highspy.kHighsInf)

    def _add(self, rows: Array, lower: float, upper: float) -> None:
        n, d = rows.shape
        starts = (d * np.arange(n)).astype(np.int32)
        index = np.tile(np.arange(d, dtype=np.int32), n)
        self._model.addRows(n, np.full(n, lower), np.full(n, upper), n * d, starts, index, rows.ravel())

    def maximise(self, g: Array) -> tuple[Array, float]:
        """The best `r` and a proven upper bound on `g @ r`."""
        answer = self.maximise_within(g, np.empty((0, len(g))))
        if answer is None:
            raise Infeasible(_EMPTY)
        return answer

    def maximise_within(self, g: Array, more: Array) -> tuple[Array, float] | None:
        """The same where the rows `more @ r >= 0` hold too, for this call only; None if they leave no column."""
        cost = g / self.P
        scale = max(float(np.ptp(cost)), 1e-300)  # the simplex makes a common shift a constant
        shifted = (cost - cost.min()) / scale
        self._model.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), shifted)
        rows = np.vstack([self._rows, _scale_rows(more / self.P)])
        fresh = len(rows) - len(self._rows)
        if fresh:
            self._add(rows[-fresh:], 0.0, highspy.kHighsInf)
        status, solution = engine.run_model(self._model), self._model.getSolution()
        if fresh:
            first = 1 + len(self._rows)
            self._model.deleteRows(fresh, np.arange(first, first + fresh, dtype=np.int32))
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise Infeasible(f"the linear programme of the pricing did not finish: {status}")
        w = np.maximum(np.asarray(solution.col_value), 0.0)
        y = scale * np.maximum(-np.asarray(solution.row_dual)[1:], 0.0)
        return w / w.sum() / self.P, float(np.max(cost + y @ rows))


class SortedProgram(NamedTuple):
    """`max g @ r` over a box or under LDP, where sorting finds the best column."""

    space: ColumnSpace

    def maximise(self, g: Array) -> tuple[Array, float]:
        """The best `r`, and no bound: the closed form of a convex utility proves more than its corners can."""
        return self.space.best(g[None])[0], np.inf


def _program_of(A: Array, p: Array) -> Program | None:
    """The programme of a prior of a set; None if it gives a value no mass: the programme is scaled by the prior."""
    return Program(A, p) if p.all() else None


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
    >>> pricing = ConePricing(Program(A, P), P, lambda r: np.abs(r - 1) @ P, never, linear=np.zeros((1, 2)))
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

    def price(self, duals: Array, exact: bool) -> Priced:
        """Climb from good starts, then prove a bound by branch and bound (a short one unless `exact`)."""
        pool, d = _Pool(self, duals), len(self.P)
        if exact:  # look in new directions (fixed seed)
            self._add_vertices(np.random.default_rng(len(self._starts)).normal(size=(4 * d, d)))
        self._climb(pool, _CLIMBS[exact])
        one_term = self.terms * np.count_nonzero(pool.shares) == 1
        bound = self._branch(pool, _NODES if exact or one_term else _QUICK)
        columns = np.unique(np.array(pool.columns), axis=0)
        columns = columns[np.argsort(-pool.worth(columns), kind="stable")[:_RETURNED]]
        return Priced(columns, self.utility(columns), bound)

    def _branch(self, pool: _Pool, limit: int) -> float:
        """An upper bound on every column, after at most `limit` splits.

        It ends early once it finds a better column than the climbs did: the master moves on then, and a tight bound at
        these duals is not needed. Open nodes keep their bounds.
        """
        ticket, heap = count(), list[tuple[float, int, Node, Array]]()

        def bound_parts(nodes: list[Node], above: float) -> None:
            answers = [(node, self.relax(pool.costs, pool.shares, node)) for node in nodes]
            found = [(node, *answer) for node, answer in answers if answer is not None]
            pool.add([column for _, column, _ in found])
            for node, column, bound in found:
                heapq.heappush(heap, (-min(bound, above), next(ticket), node, column))

        bound_parts([self.root], np.inf)
        if not heap:
            raise Infeasible(_EMPTY)
        exact, climbed = -np.inf, pool.best
        for spent in range(limit):
            if (spent >= _PATIENCE and pool.best > climbed + _IMPROVES) or (spent and self.stop()):
                break
            if not heap or -heap[0][0] <= pool.best + _SAME * max(1.0, abs(pool.best)):
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
        if len(self._starts) > _STARTS:
            del self._starts[next(iter(self._starts))]

    def _climb(self, pool: _Pool, most: int) -> None:
        """From the `most` best starts: linearise, go to the best vertex, and repeat."""
        table = np.array(list(self._starts.values()))
        worths = pool.worth(table)
        for index in np.argsort(-worths, kind="stable")[:most]:
            if pool.columns and self.stop():
                break
            here, worth = table[index], float(worths[index])
            for _ in range(60):
                if self.stop():
                    break
                vertex, _ = self.program.maximise(self.slope(pool.costs, pool.shares, here))
                there = float(pool.worth(vertex[None])[0])
                if there <= worth + 1e-15 * max(1.0, abs(worth)):
                    break
                here, worth = vertex, there
            self._remember(here)
            pool.add([here])


class _Pool:
    """The columns that one pricing call has met, and the largest `phi(r) - duals @ r` of them."""

    def __init__(self, pricing: ConePricing, duals: Array) -> None:
        self.utility, self.duals = pricing.utility, duals
        slopes, self.shares = engine.split_duals(duals, len(pricing.P))
        self.costs = slopes + self.shares @ pricing.linear
        self.columns: list[Array] = []
        self.best = -np.inf

    def worth(self, columns: Array) -> Array:
        """`phi(r) - duals @ r` of each row."""
        return engine.reduced_costs(columns, self.utility(columns), self.duals)

    def add(self, columns: list[Array]) -> None:
        """Add columns."""
        if columns:
            self.best = max(self.best, float(self.worth(np.array(columns)).max()))
            self.columns.extend(columns)


class ConeSquaresPricing(ConePricing):
    """Pricing of `phi(r) = sum_j (C_j @ r)^2 / (D_j @ r)`: linear statistics, for one prior or several.

    Of prior `p` the rows of `C` are those of `V * p`, with `V` the statistics, and the rows of `D` are `p`. With
    `z_j = (C_j @ r)/(D_j @ r)` in `[l_j, u_j]` each term is at most its chord, `(l_j + u_j) C_j @ r - l_j u_j D_j @ r`,
    and the interval is two more linear rows: a linear programme bounds the utility over a box of intervals. Boxes are
    split where the chord is furthest off until the bound meets the best column. With one term, splitting at the
    programme's own `z` ends exactly.

    >>> A, P = np.array([[-1.0, 3.0], [3.0, -1.0]]), np.array([0.5, 0.5])
    >>> pricing = ConeSquaresPricing(A, P, lambda r: r**2 @ P**2, np.eye(2), P[None], never, np.zeros((1, 2)))
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
            program = self.program if np.array_equal(p, P) else _program_of(A, p)
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
    >>> pricing = ConeGuessPricing(A, P, lambda r: (r * P).max(axis=1), P[None], never, np.zeros((1, 2)))
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
            program = _program_of(A, p)  # without one, or time: no share of the largest term is above one
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
