"""The best channels for unbiased statistics in a `Space`: column generation around the best weights (`weights`).

The bound on the variance is exact where all vertices of the space can be listed, and for a sum, whose pricing is
exact. Otherwise it comes from `bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse

from priorveil.arrays import Array
from priorveil.designs.bounds import information_bound
from priorveil.designs.column_generation import PricedColumns, Solution
from priorveil.designs.pricing import SumPricing
from priorveil.designs.spaces import LISTED, Box, Space
from priorveil.designs.stopping import FIRST_STEP, MOST_DENSE, MOST_ENTRIES, MOST_ROUNDS, PATIENCE, Limits
from priorveil.designs.tolerances import ROUNDING
from priorveil.designs.value_groups import Indices, distinct_rows, equal_groups, indicators, margin_groups
from priorveil.designs.weights import (
    FINE,
    LEAST_WEIGHT,
    PROGRESS,
    DesignStatistics,
    Weighing,
    best_weights,
    drop_idle_columns,
    good_weights,
    interior_point,
    variance_solution,
)
from priorveil.errors import Infeasible, TooLarge
from priorveil.information import lift_variance

# Rounds and starts of Frank-Wolfe for the seeds: better seeds for more time.
_EVEN_ROUNDS, _EVEN_STARTS = 24, 60
_SPECTRUM = 0.6  # the power of the roots of `B` in random columns: 0.5, and more since vertices have edges
# Directions, or values, up to which a search for the best weights ends in time; beyond, many columns with good weights
# are better than the best weights of few.
_MOST_WEIGHED = 200
# Rounds of exchanges within blocks of equal values: more make a flatter spectrum, and take longer.
_EXCHANGES = 4_000
_GRID = 32  # points that the numbers of a sum are rounded to: more points save variance, and take longer
# Columns for each direction that column generation may hold, and columns in all: each round takes the cube of the
# second, and fewer columns need more rounds.
_POOL, _MOST_POOL = 20, 2_500
# The square of the number of columns, times their length, that are weighed in a second.
_SPEED = 1.5e8


def best_unbiased(
    space: Space, limits: Limits = FINE, rows: Array | None = None, start: Solution | None = None
) -> Solution:
    """The channel of allowed columns from which `rows @ shares` are learnt best; by default the distribution.

    The first of these cases that applies:

    | case | solver |
    |---|---|
    | LIP, every value is heavy | one output for each value: no channel does better |
    | up to `LISTED` values | the best weights of all vertices: exact |
    | LIP, the distribution of equal values | rotations of a few blocks |
    | the distribution | column generation |
    | a sum of many different numbers | `_rounded_sum`: its numbers are rounded to a grid |
    | values that count the same in all statistics | they are merged, which loses nothing |
    | several margins | column generation, first for columns that look at one margin each |
    | other statistics | column generation |

    A search ends at the `limits` (a gap of 1e-6) or on ctrl-C, with the best solution so far. Column generation can
    `start` from a solution.

    >>> from priorveil.designs.spaces import LdpCone
    >>> P = np.array([0.025, 0.025, 0.025, 0.025, 0.9])
    >>> round(best_unbiased(Box(P, np.exp(-1.0), np.exp(1.0))).value, 3)
    5.783
    >>> round(best_unbiased(LdpCone(np.full(6, 1 / 6), ratio=np.e)).value, 3)
    15.709
    """
    prior, box = space.prior, space if isinstance(space, Box) else None
    if box and box.caps.min() >= 1.0:  # every value is heavy: one output each, and no channel does better
        columns = box.columns(np.eye(len(prior)))
        best = lift_variance(columns, prior, rows)
        return variance_solution(columns, prior, best, best, 0, 1.0)
    if len(prior) <= LISTED:
        return best_weights(prior, space.vertices(), limits, rows)
    if box and rows is None and np.ptp(prior) <= 1e-15:
        return _rotations(box, limits.target)
    values = [np.arange(len(prior))]
    if rows is None:
        return _Generation(space, limits, DesignStatistics(len(prior)), values, start).run()
    if len(rows) == 1 and len(points := _grid(prior, rows[0])) < len(prior):
        return _rounded_sum(space, limits, rows[0], points)
    if (groups := equal_groups(rows)).max() + 1 < len(prior):
        first = np.unique(groups, return_index=True)[1]
        solution = best_unbiased(space.merge(groups), limits, rows[:, first])
        return replace(solution, columns=solution.columns[:, groups])
    views = margin_groups(rows)
    if max(groups.max() for groups in views) >= MOST_DENSE:
        raise TooLarge(f"the statistics distinguish more than {MOST_DENSE:,} values: merge values into cells")
    if len(views) > 1:
        levels = np.vstack(list(map(indicators, views)))
        plane = scipy.linalg.orth((levels - levels.mean(axis=1, keepdims=True)).T, rcond=1e-10)
        alone = len(prior) > _MOST_WEIGHED
        share = limits if alone else limits.share(FIRST_STEP)
        start = _Generation(space, share, DesignStatistics(len(prior), rows, plane), views).run()
        if alone:
            return start
    return _Generation(space, limits, DesignStatistics(len(prior), rows), values, start).run()


def _grid(prior: Array, row: Array) -> Array:
    """The different numbers of a row; if there are many, those that cut mass and variance together into even parts."""
    points, places = np.unique(row, return_inverse=True)
    if len(points) <= _GRID:
        return np.asarray(points)
    squares = prior * (row - prior @ row) ** 2
    before = np.cumsum(np.bincount(places, prior + squares / squares.sum()))
    cuts = np.searchsorted(before, np.linspace(0.0, 2.0, _GRID))
    return np.asarray(points[np.unique(np.minimum(np.append(cuts, len(points)), len(points) - 1))])


def _rounded_sum(space: Space, limits: Limits, row: Array, points: Array) -> Solution:
    """The best channel for a sum over many values: each number is first rounded to a grid, at random, to keep its mean.

    A lift of a value is a mean of two lifts of the grid, so the channel is as private as that of the grid. The duals of
    the grid, interpolated, prove a bound for all the values.
    """
    above = np.clip(np.searchsorted(points, row, side="right"), 1, len(points) - 1)
    share, values = (row - points[above - 1]) / (points[above] - points[above - 1]), np.arange(len(row))
    rounding = np.zeros((len(row), len(points)))
    rounding[values, above - 1], rounding[values, above] = 1 - share, share
    merged = replace(space, prior=space.prior @ rounding)
    solution = best_unbiased(merged, limits, points[None])
    duals = solution.duals
    if not len(duals):  # all columns were listed
        duals = DesignStatistics(len(points), points[None]).duals(solution.columns, solution.weights)
    duals = space.prior * np.array([np.interp(row, points, dual) for dual in duals / merged.prior])
    columns, centred = solution.columns @ rounding.T, row - space.prior @ row
    value = lift_variance(columns, solution.weights, row[None])
    bound = min(_sum_bound(space, centred, duals)[0], value)
    return variance_solution(columns, solution.weights, value, bound, solution.iterations, limits.target)


def _sum_bound(space: Space, centred: Array, duals: Array) -> tuple[float, PricedColumns]:
    """The variance `(a . m)^2 / max_r [(m . r)^2 - nu . r]` that no channel goes below, and columns near the maximum.

    `m` and `nu` are the duals (2, d), moved so that they sum to zero: any prove a bound.
    """
    slopes, costs = duals - duals.sum(axis=1, keepdims=True) * space.prior
    priced = SumPricing(space, slopes / space.prior).price(costs, exact=True)
    return float(centred @ slopes) ** 2 / priced.bound, priced


def _rotations(box: Box, target: float) -> Solution:
    """For equal values: all rotations of a few blocks, with equal weights, against the optimum in closed form.

    Place the values on a ring. A block has `floor(tau d)` values at `hi`, one in between and the rest at `lo`.
    Rotations make the information matrix circulant, so its eigenvalues are the power spectrum of the blocks, and the
    variance is

        sum_j  m d / ( (hi - lo)^2 sum_blocks |F_j|^2 ),    j = 1 .. d - 1,

    with `m` blocks and `F` the Fourier transform of `(r - lo) / (hi - lo)`. The sum of the spectrum is the same for all
    blocks: the flatter, the better, and flat is the optimum of `uniform_variance`. Exchanges of two values of a block
    make it flat.
    """
    d, rng = len(box.prior), np.random.default_rng(0)
    part, whole = math.modf(d * box.tau)
    block = np.where(np.arange(d) < whole, 1.0, np.where(np.arange(d) == whole, part, 0.0))
    blocks = rng.permuted(np.tile(block, (min(max(1600 // d, 2), 16), 1)), axis=1)
    _flatten(blocks, rng)
    turns = (np.arange(d) + np.arange(d)[:, None]) % d
    columns = box.lo + (box.hi - box.lo) * blocks[:, turns].reshape(-1, d)
    weights = np.full(len(columns), 1 / len(columns))
    value = lift_variance(columns, weights)
    return variance_solution(columns, weights, value, min(information_bound(box), value), 0, target)


def _flatten(blocks: Array, rng: np.random.Generator) -> None:
    """Exchange values within blocks, in place, while the sum of the inverse spectrum falls."""
    m, d = blocks.shape
    waves = np.exp(-2j * np.pi * np.outer(np.arange(d), np.arange(1, d // 2 + 1)) / d)
    twice = np.where(2 * np.arange(1, d // 2 + 1) == d, 1.0, 2.0)
    spectra = blocks @ waves
    for turn in range(_EXCHANGES):
        block, spectrum = blocks[turn % m], spectra[turn % m]
        power = (np.abs(spectra) ** 2).sum(0)
        i, j = rng.integers(d, size=(2, 200))
        changed = spectrum + (block[j] - block[i])[:, None] * (waves[i] - waves[j])
        trial = power - np.abs(spectrum) ** 2 + np.abs(changed) ** 2
        cost = (twice / np.maximum(trial, 1e-300)).sum(1)
        best = int(np.argmin(cost))
        if cost[best] < (twice / power).sum() * (1 - 1e-12):
            block[[i[best], j[best]]] = block[[j[best], i[best]]]
            spectrum[:] = changed[best]


@dataclass
class _Generation:
    """Column generation: solve for the weights, look for columns that tell more, repeat.

    Columns are constant on the groups of one of the `views`; the values themselves may be the only view. The
    statistics need coordinates for such columns only. `start` is a solution to improve on. A run keeps the `best`
    solution, the `bound` with the `duals` that prove it, and the number of `rounds`.
    """

    space: Space
    limits: Limits
    statistics: DesignStatistics
    views: Sequence[Indices]
    start: Solution | None = None

    def __post_init__(self) -> None:
        self.rng, self.duals = np.random.default_rng(0), np.empty(0)
        self.best = self.start or self._randomised_response()
        self.rounds, self.bound = self.best.iterations, self.best.bound

    @property
    def row(self) -> Array | None:
        """The row of a sum, less its mean; None for several statistics."""
        rows = self.statistics.rows
        return None if rows is None or len(rows) > 1 else rows[0] - self.space.prior @ rows[0]

    def run(self) -> Solution:
        """A bound, a quick answer, then rounds of column generation; what is reached by the limits or by ctrl-C."""
        # stopped, or weights lost to rounding: keep the best solution so far
        with suppress(KeyboardInterrupt, Infeasible):
            # For LDP the bound is computed later, in methods._with_ldp_bound.
            if isinstance(self.space, Box) and self.row is None and not self.bound:
                limits = self.limits.share(FIRST_STEP)
                self.bound = information_bound(self.space, limits, self.statistics.rows)
            simple, directions = self.best.columns, 0
            if self._needs_all_directions:
                directions = len(self.statistics.roots)
                with suppress(Infeasible):
                    self.best = self._many_columns()
            # With more directions, nothing better than the quick answer is found in the time that is left.
            if directions <= _MOST_WEIGHED:
                pool = self._seeds(simple)
                if len(pool) > len(simple):
                    self._generate(pool)
        best, bound = self.best, min(self.bound, self.best.value)
        solution = variance_solution(
            best.columns, best.weights, best.value, bound, self.rounds, self.limits.target
        )
        return replace(solution, duals=self.duals)

    def _generate(self, pool: Array) -> None:
        """Weigh the columns and add better ones while that pays; then weigh the last ones more finely."""
        fine, searching = 1e-3 if self.row is None else 1e-6, True
        while searching:
            begin, value_before = self.limits.clock.now(), self.best.value
            state, candidate = self._weigh(pool, fine)
            next_round_is_late = 2.5 * (self.limits.clock.now() - begin) > self.limits.left()
            self._keep_if_better(candidate)
            if self.limits.over() or (next_round_is_late and self.row is None):
                return
            fresh, proven = self._price(pool, state)
            if proven > self.bound:
                self.bound, self.duals = proven, self.statistics.duals(pool, state.weights)
            stalled = len(self.views) > 1 and candidate.value > value_before * (1 - PROGRESS)
            is_optimal = self.bound >= self.best.value * (1 - self.limits.target)
            given_up = next_round_is_late or stalled or self.rounds >= MOST_ROUNDS
            searching = len(fresh) > 0 and not is_optimal and not given_up
            fresh = fresh if searching else fresh[:0]
            pool = np.vstack([self._prune(pool, state, len(fresh)), fresh])
            self.rounds += 1
        _, candidate = self._weigh(pool, min(fine, 1e-5), last=True)
        self._keep_if_better(candidate, 2 * self.limits.target)

    def _keep_if_better(self, candidate: Solution, tolerance: float = 0.0) -> None:
        """Take the candidate if its variance is not larger, and report the progress."""
        if candidate.value <= self.best.value * (1 + tolerance):
            self.best = candidate
        self.limits.report(self.rounds, self.best.value, self.bound)

    def _limit(self) -> int:
        """How many columns the pool may hold."""
        size, directions = self.statistics.basis.shape
        return int(min(_POOL * (directions + 1), _MOST_POOL, MOST_ENTRIES // size))

    @property
    def _needs_all_directions(self) -> bool:
        """Whether the statistics are so many and different that all directions matter."""
        roots, given = self.statistics.roots, self.statistics.rows is not None
        return (
            given and self.start is None and len(self.views) == 1 and bool(roots[len(roots) // 2] > ROUNDING)
        )

    def _many_columns(self) -> Solution:
        """As many `_likely_columns` as fit in a table: more of them are better than the best weights of a few."""
        size, n = self.statistics.basis.shape
        if (count := min(_POOL * n, MOST_ENTRIES // size)) <= 2 * n:
            raise Infeasible("too few columns fit in a table: random ones would lie on one side")
        columns = self._likely_columns(count)
        directions = self.statistics.directions(columns)
        weights, value = good_weights(directions, self.statistics.targets, self.limits.over)
        return variance_solution(columns, weights, value, 0.0, 1, self.limits.target)

    def _randomised_response(self) -> Solution:
        """Randomised response of the values, or of a view drawn at random: a channel within any budget."""
        parts, lengths = [], []
        for groups in self.views:
            prior, odds = self.space.merge(groups).prior, self.space.ldp_ratio - 1
            lengths.append(1 + odds * prior)
            parts.append((1 + odds * np.eye(len(prior)))[:, groups] / lengths[-1][:, None])
        columns = np.vstack(parts)
        weights = np.concatenate([each / each.sum() / len(lengths) for each in lengths])
        value = lift_variance(columns, weights, self.statistics.rows)
        return variance_solution(columns, weights, value, 0.0, 0, self.limits.target)

    def _seeds(self, start: Array) -> Array:
        """The columns to begin with, not more than can be weighed in the time that is left; `start` are simple ones.

        Many different statistics need no others than `_likely_columns`.
        """
        roots, left = self.statistics.roots, self.limits.left()
        most = int(math.sqrt(_SPEED * min(max(left, PATIENCE), 1e6) / len(roots)))
        if self._needs_all_directions:
            return self._likely_columns(min(self._limit(), most))
        others, most = np.vstack([start[:0], *self._seed_candidates()]), most - len(start)
        return np.vstack([start, others[:: -(-len(others) // most) or 1] if most > 0 else start[:0]])

    def _seed_candidates(self) -> Iterator[Array]:
        """Random columns and, for the distribution, each value's own.

        For other statistics than the distribution: columns that are linear in a row, and for several rows those of
        `_even_columns`.
        """
        space, d, rng = self.space, len(self.space.prior), self.rng
        if len(self.views) > 1:
            for groups in self.views:
                yield space.merge(groups).random_vertices(3 * int(groups.max() + 1), rng)[:, groups]
        elif self.statistics.rows is not None:
            rows = self.statistics.rows[np.ptp(self.statistics.rows, axis=1) > 0]
            centred = rows - (rows @ space.prior)[:, None]
            ends = np.vstack([centred, -centred])  # rounding to both ends of the range of a row, at random
            yield 1 + space.reach(ends)[:, None] * ends
            if self.row is None:
                vertices = space.random_vertices(2 * d, rng)
                yield vertices
                yield from self._even_columns(vertices)
        else:
            yield space.random_vertices(max(self._limit() // 2, 2 * d), rng)
            yield space.best((np.eye(d) + 1e-3 * rng.random((d, d))) * space.prior)

    def _likely_columns(self, count: int) -> Array:
        """Random vertices with about the second moments of the best channel.

        If only the trace of `S` were bounded, the best one would be a multiple of the root of `B`. Vertices near random
        directions with these moments are about as good. Orthogonal directions are spread more evenly than others.
        """
        roots, n = self.statistics.roots, len(self.statistics.roots)
        scale = roots**_SPECTRUM * np.maximum(roots, LEAST_WEIGHT)
        turns = np.linalg.qr(self.rng.standard_normal((-(-count // n), n, n)))[0].reshape(-1, n)[:count]
        return self.space.best((turns * scale) @ self.statistics.basis.T * self.space.prior)

    def _even_columns(self, start: Array) -> Iterator[Array]:
        """Columns that are best where `S` is a multiple of one on each eigenspace of `B`.

        For equal values and margins the best `S` is like that, since it is unchanged when levels are renamed. Then only
        the mean of `|z|^2` on each eigenspace matters, and small steps towards the best columns find it (Frank-Wolfe).
        """
        statistics = self.statistics
        space = np.unique(statistics.roots.round(9), return_inverse=True)[1]

        def mean_squares(columns: Array) -> Array:
            squares = (statistics.directions(columns) ** 2).mean(axis=0)
            return np.asarray((np.bincount(space, squares) / np.bincount(space))[space])

        T, mean_square, nothing = statistics.targets, mean_squares(start), np.zeros(start.shape[1])
        weights = np.ones(len(mean_square)) if T is None else T.sum(axis=0)
        for count in range(_EVEN_ROUNDS):
            half = statistics.basis * (weights / mean_square)
            M = half @ half.T
            columns = self.space.climb(self.space.random_vertices(_EVEN_STARTS, self.rng), M, nothing)
            if self.limits.over():
                return
            worth = ((columns @ M) * columns).sum(1)
            change = mean_squares(columns[worth >= 0.999 * worth.max()]) - mean_square
            mean_square = mean_square + change * 2 / (count + 3)
            if 3 * count >= _EVEN_ROUNDS:
                yield distinct_rows(columns)

    def _weigh(self, pool: Array, fine: float, last: bool = False) -> tuple[Weighing, Solution]:
        """The best weights for the pool, solved as finely as asked; the last ones of a sum have few columns."""
        statistics, target = self.statistics, self.limits.target
        self.limits.count_round()
        directions = statistics.directions(pool)
        required = self.rounds == (self.start.iterations if self.start else 0)
        state = interior_point(directions, fine, self.limits.over, statistics.targets, required)
        few = last and self.row is not None
        kept = drop_idle_columns(directions, state, target, statistics.targets) if few else state
        columns, weights = pool[kept.used][kept.weights > 0], kept.weights[kept.weights > 0]
        return state, variance_solution(columns, weights, kept.value, 0.0, self.rounds, target)

    def _prune(self, pool: Array, state: Weighing, fresh: int) -> Array:
        """The columns that carry weight, the heaviest first where there are too many; for a sum also idle ones.

        The exact search of a sum returns the same columns again and again if those are forgotten.
        """
        order = np.argsort(-state.weights, kind="stable")
        carrying = int((state.weights > (1e-2 / len(pool) if self.row is None else 0.0)).sum())
        least = 4 * (1 + self.statistics.basis.shape[1])
        return pool[np.sort(order[: min(carrying, max(self._limit() - fresh, least))])]

    def _price(self, pool: Array, state: Weighing) -> tuple[Array, float]:
        """Columns that tell more, the best first: `r' M r - m . r > t`, `M = V S^-1 T' T S^-1 V'`, `m = V nu`.

        The search is exact for a single row, and proves a bound; otherwise it is local, and the bound zero.
        """
        duals = self.statistics.duals(pool, state.weights)
        half, m = duals[:-1].T, duals[-1]
        threshold, bound = float(state.weights @ ((pool @ half) ** 2).sum(axis=1)), 0.0
        least = (1e-4 if self.row is None else self.limits.target / 10) * state.value
        count, most = (600, 3 * len(m)) if len(self.views) == 1 else (200, 40)
        starts = [pool[state.weights > 1e-2 / len(pool)]] if len(self.views) == 1 else []
        fresh = []
        for groups in self.views:
            space, levels = self.space.merge(groups), indicators(groups)
            slopes, costs = levels @ half, levels @ m
            if self.row is None:
                columns = space.climb(
                    np.vstack([space.random_vertices(count, self.rng), *starts]), slopes @ slopes.T, costs
                )
            else:
                bound, priced = _sum_bound(space, self.row, duals)
                columns = priced.columns
            worth = ((columns @ slopes) ** 2).sum(axis=1) - columns @ costs - threshold
            order = np.argsort(-worth)[: int((worth > least).sum())]
            fresh.append(distinct_rows(columns[order])[:most][:, groups])
        return np.vstack(fresh), bound
