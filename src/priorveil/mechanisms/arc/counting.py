"""Counting and reading arc reports: a small exact tally, and the laws and posteriors that follow from it.

As `u` goes round a circle, the window `[u, u + window)` gains or loses an arc at no more than two
places per value. Between two such places (a **cell**) every overlap with an arc is linear in `u`. So the
number of reports in each cell and the sum of their offsets from its start are all that the sum of posteriors
needs, exactly. The tally is three rows of 64-bit integers, for every order one column per owned output and per
cell: the counts, and the sums of the low 21 bits and of the remaining high bits of the reports (two sums, so that
none overflows before `2**31` reports in a column; `ArcCells.most` is the exact number, and a tally beyond it is
refused when read). Tallies add up entry by entry.

In floats, and up to the rounding that the certificate accounts for (about 1e-7 relative at most), the law of
the reports under the prior is uniform on the line, and the lift of `x` is `1 - k + k (M / length_x)
(overlap / window)`, with `M` the places of the line and an owned output counting as an overlap of one
whole window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from priorveil.errors import TooLarge
from priorveil.mechanisms import kernels
from priorveil.mechanisms.arc.line import ArcLine
from priorveil.mechanisms.estimators import Counts, Rows
from priorveil.mechanisms.interface import MEASURED, require_writable
from priorveil.mechanisms.kernels import LIMB, LOW
from priorveil.priors import Array, Ints


class _Circle(NamedTuple):
    """The cells of one circle: first places and widths; the arcs where the window begins and ends; the overlaps.

    An end on the second turn is counted on from the first. `lost` and `gained` are, at the first place of a cell, the
    overlaps of the window with the arc where it begins and with the one where it ends.
    """

    first: Ints
    width: Ints
    begins: Ints
    ends: Ints
    lost: Ints
    gained: Ints

    @classmethod
    def of(cls, line: ArcLine) -> _Circle:
        rim, n = line.rim, len(line.members)
        if n == 0:
            return cls(*np.zeros((6, 0), dtype=np.int64))
        cuts = np.unique(np.concatenate([rim, (rim - line.window) % rim[-1]]))
        first = cuts[:-1]
        begins = np.searchsorted(rim, first, side="right") - 1
        wraps = first + line.window >= rim[-1]
        end = first + line.window - wraps * rim[-1]
        last = np.searchsorted(rim, end, side="right") - 1
        return cls(first, np.diff(cuts), begins, last + wraps * n, rim[begins + 1] - first, end - rim[last])


class ArcCells:
    """The columns of a tally: for each order its owned outputs, then the cells of its circle.

    `base` is the first report of every column and `sizes` how many places it stands for; `owned` (orders, heavy) and
    `shared` say which columns are owned outputs and cells, and `ends` where the columns of the orders begin and end.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> ArcCells([toy]).base.tolist()
    [0, 1, 2, 5, 6]
    """

    def __init__(self, lines: Sequence[ArcLine]) -> None:
        line, circles = lines[0], [_Circle.of(one) for one in lines]
        self.lines, self.line, self.orders = lines, line, len(lines)
        self.members = np.stack([one.members for one in lines])
        self.arcs = np.stack([np.diff(one.rim) for one in lines])
        n = max(1, self.members.shape[1])
        counts = np.array([len(circle.first) for circle in circles])
        order = np.repeat(np.arange(self.orders), counts)
        first, width, self._begins, self._ends, lost, gained = (
            np.concatenate(part) for part in zip(*circles, strict=True)
        )
        self.width, self.lost, self.gained = (part.astype(np.float64) for part in (width, lost, gained))
        self.ends = np.concatenate([[0], np.cumsum(line.heavy + counts)])
        self.owned = self.ends[:-1, None] + np.arange(line.heavy)
        self.shared = np.arange(len(first)) + line.heavy * (order + 1)
        self._place = np.empty(self.ends[-1], dtype=np.int64)
        self._place[self.owned] = np.arange(line.heavy)
        self._place[self.shared] = line.heavy + first
        self.base = self._place + (np.repeat(np.arange(self.orders), line.heavy + counts) << line.bits)
        self.sizes = np.empty(self.ends[-1], dtype=np.int64)
        self.sizes[self.owned] = line.own_sizes
        self.sizes[self.shared] = width
        # Where a cell finds its arcs, and its running sums over two turns, in arrays of all orders.
        self._first_arc, self._last_arc = order * n + self._begins, order * n + self._ends % n
        self._sum_begin, self._sum_end = (
            order * (2 * self.members.shape[1] + 1) + end for end in (self._begins + 1, self._ends)
        )

    # -- counting ------------------------------------------------------------------------------------------

    @property
    def most(self) -> int:
        """How many reports a column of the tally can count before one of its sums may exceed 64 bits."""
        return ((1 << 63) - 1) // max(LOW, self.line.outputs >> LIMB)

    @cached_property
    def _guide(self) -> tuple[int, Ints]:
        """A shift, and for every value of `report >> shift` the column of the first such report."""
        last = ((self.orders - 1) << self.line.bits) + self.line.outputs
        shift = max(0, last.bit_length() - (8 * len(self.base)).bit_length())
        firsts = np.arange((last >> shift) + 2, dtype=np.int64) << shift
        return shift, np.searchsorted(self.base, firsts, side="right") - 1

    def tally(self, reports: Ints, compiled: bool = True) -> Ints:
        """Count valid reports: rows are counts, low sums, high sums. Tallies of parts add up to that of the whole.

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
        >>> ArcCells([toy]).tally(np.array([0, 0, 3, 4, 8])).tolist()
        [[2, 0, 2, 0, 1], [0, 0, 7, 0, 8], [0, 0, 0, 0, 0]]
        """
        tally = np.zeros((len(self.base), 3), dtype=np.int64)
        work = len(reports) if compiled and len(reports) >= len(self.base) else 0
        shift, guide = self._guide if work >= kernels.ENOUGH_WORK else (0, self.base[:0])
        kernels.count_cells(reports, self.base, guide, shift, self.line.places - 1, tally, work=work)
        return np.ascontiguousarray(tally.T)

    def weigh(self, reports: Ints, weights: Array) -> Array:
        """The tally in floats, with every report counted as often as its weight says.

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
        >>> weights = np.array([1.0, 1.0, 0.5, 2.0, 1.0])
        >>> ArcCells([toy]).weigh(np.array([0, 0, 3, 4, 8]), weights)[:2].tolist()
        [[2.0, 0.0, 2.5, 0.0, 1.0], [0.0, 0.0, 9.5, 0.0, 8.0]]
        """
        column, y = np.searchsorted(self.base, reports, side="right") - 1, reports & (self.line.places - 1)
        parts = (weights, weights * (y & LOW), weights * (y >> LIMB))
        return np.stack([np.bincount(column, part, len(self.base)) for part in parts])

    def expected_tally(self, counts: Array) -> Array:
        """A tally with these counts, as read from reports that are uniform within their cells."""
        offsets = np.zeros(len(self.base))
        offsets[self.shared] = (self.width - 1) / 2
        return np.stack([counts, counts * (offsets + (self._place & LOW)), counts * (self._place >> LIMB)])

    def _offsets(self, tally: Counts) -> Array:
        """Sums of the offsets from the first place of each column; exact for integers until the last step."""
        if tally.dtype.kind == "i" and int(tally[0].max(initial=0)) > self.most:
            raise TooLarge(
                f"{int(tally[0].max())} reports in one cell of the tally: beyond {self.most} its sums do not fit "
                "64 bits; read tallies of fewer reports one by one and combine the estimates"
            )
        low = tally[1] - tally[0] * (self._place & LOW)
        high = tally[2] - tally[0] * (self._place >> LIMB)
        return np.asarray(low + np.ldexp(high.astype(np.float64), LIMB), dtype=np.float64)

    # -- the channel from values to columns ----------------------------------------------------------------

    def window_masses(self, masses: Array) -> tuple[Array, Array]:
        """The mass in the window at the first place of each cell, and its slope per place.

        The masses may be any numbers, spread evenly over the segments; or a row of them for each row of the result.
        """
        density = (masses / self.line.lengths)[..., self.members]
        mass = density * self.arcs
        none = np.zeros((*mass.shape[:-1], 1))
        sums = np.cumsum(np.concatenate([none, mass, mass], axis=-1), axis=-1)
        flat, density = (part.reshape(*masses.shape[:-1], -1) for part in (sums, density))
        first, last = density[..., self._first_arc], density[..., self._last_arc]
        held = flat[..., self._sum_end] - flat[..., self._sum_begin]
        return held + first * self.lost + last * self.gained, last - first

    def law(self, p: Array) -> Array:
        """The law of the columns when the values follow `p`, or each row of it: `p @ matrix`, in O(d + columns).

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
        >>> ArcCells([toy]).law(np.array([0.5, 0.25, 0.25])).tolist()
        [0.5, 0.25, 0.25]
        """
        m, w, k = self.line, self.width, self.line.keep_chance
        start, slope = self.window_masses(p)
        used = np.empty((*p.shape[:-1], len(self.base)))
        used[..., self.owned] = (p[..., m.owners] * m.own_sizes / m.lengths[m.owners])[..., None, :]
        least = 0.0 if p.min() >= 0 else -np.inf  # for shares rounding must not go below zero
        used[..., self.shared] = np.maximum(w * start + slope * w * (w - 1) / 2, least) / max(m.window, 1)
        fresh = (1 - k) * p.sum(axis=-1, keepdims=True) * self.sizes / m.places
        return np.asarray((fresh + k * used) / self.orders)

    def mean(self, weights: Array) -> Array:
        """`matrix @ weights`: for every value the mean of `weights` (one per column), in O(d + columns)."""
        m, sizes, k = self.line, self.sizes.astype(np.float64), self.line.keep_chance
        cover = self.coverage(weights * sizes, weights * sizes * (sizes - 1) / 2)
        fresh = (1 - k) * float(np.dot(weights, sizes)) / m.places
        return np.asarray((fresh + k * cover / m.lengths) / self.orders)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """The channel, the columns of one order at a time."""
        for i, line in enumerate(self.lines):
            columns = slice(int(self.ends[i]), int(self.ends[i + 1]))
            yield columns, ArcCells([line]).law(np.eye(line.size)) / self.orders

    @cached_property
    def matrix(self) -> Array:
        """The channel from values to columns in floats; raises `TooLarge` when huge.

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
        >>> ArcCells([toy]).matrix.tolist()
        [[0.75, 0.125, 0.125], [0.25, 0.4375, 0.3125], [0.25, 0.3125, 0.4375]]
        """
        require_writable(self.line.size, len(self.base))
        return np.hstack([block for _, block in self.blocks()])

    @cached_property
    def leakage_matrix(self) -> tuple[Array, tuple[int, ...]]:
        """A channel for measuring levels, which leaks what the reports leak or more, and its reports.

        The columns of `matrix` average over the places of a cell: a level measured on them would be too low under
        another prior, or for a secret behind the value. But within a cell the law of a report is linear in its place.
        So the law at any place is a mixture of those at the first and the last place, and the law of the whole cell is
        half of each, times its width. Here a cell is these two halves. The reports can be drawn from this channel's (a
        mixture is post-processing), so no level of theirs lies above its own; and its columns are, up to scale, those
        of real reports, so LIP, LDP, DI and Pufferfish, which look at single columns, are exactly theirs under every
        prior and secret. MIL and MIP, which are averages, are bounds from above.

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
        >>> matrix, reports = ArcCells([toy]).leakage_matrix
        >>> matrix[1].tolist(), reports
        ([0.25, 0.3125, 0.125, 0.0625, 0.25], (0, 1, 4, 5, 8))
        """
        m, k, owned, units = self.line, self.line.keep_chance, self.owned.reshape(-1), np.eye(self.line.size)
        long, first = self.width > 1, self.base[self.shared]
        reports = np.concatenate([self.base[owned], first, (first + self.sizes[self.shared] - 1)[long]])
        require_writable(m.size, len(reports), MEASURED)
        start, slope = self.window_masses(units)
        masses = np.stack([start, start + slope * (self.width - 1)])
        ends = (1 - k) / m.places + k * np.maximum(masses, 0.0) / max(m.window, 1)
        halves = ends * np.where(long, self.width / 2, 1.0) / self.orders
        matrix = np.hstack([self.law(units)[:, owned], halves[0], halves[1][:, long]])
        ascending = np.argsort(reports)
        return matrix[:, ascending], tuple(reports[ascending].tolist())

    # -- posteriors and lifts ------------------------------------------------------------------------------

    def _held_whole(self, counts: Array) -> Array:
        """How many windows hold each arc as a whole, (orders, arcs): a difference array over two turns."""
        S, n = self.members.shape
        length = S * (2 * n + 1)
        steps = np.bincount(self._sum_begin, counts, length) - np.bincount(self._sum_end, counts, length)
        held = np.cumsum(steps.reshape(S, -1)[:, : 2 * n], axis=1)
        return np.asarray(held.reshape(S, 2, n).sum(axis=1))

    def _sum_by_value(self, held: Array, lost: Array, gained: Array) -> Array:
        """Sums over the arcs of each value: `held` (orders, arcs), and what cells lose and gain."""
        parts = np.bincount(self._first_arc, lost, held.size) + np.bincount(self._last_arc, gained, held.size)
        sums = np.bincount(self.members.reshape(-1), held.reshape(-1) + parts, self.line.size)
        return sums.astype(np.float64)

    def coverage(self, counts: Array, sums: Array) -> Array:
        """`sum over reports of overlap / window`, per value: an owned output counts as one. O(d + columns).

        `counts` and `sums` may be any numbers: reports, or weights spread over the places of a cell. Where the
        window lies within one arc, "held whole" comes out as minus one, which makes its overlap the window,
        as it should.
        """
        c, s = counts[self.shared], sums[self.shared]
        held = self._held_whole(c) * self.arcs
        cover = self._sum_by_value(held, c * self.lost - s, c * self.gained + s) / max(self.line.window, 1)
        cover[self.line.owners] += counts[self.owned].sum(axis=0)
        return cover

    def _squared_coverage(self, counts: Array) -> Array:
        """`sum over reports of (overlap / window)**2` per value, for reports uniform within their cells."""
        c, w, n = counts[self.shared], self.width, max(1, self.members.shape[1])
        same = (self._ends - self._begins) % n == 0
        one, two = (w - 1) / 2, (w - 1) * (2 * w - 1) / 6
        apart = np.where(same, 0.0, c)
        lost = apart * (self.lost**2 - 2 * self.lost * one + two)
        gained = apart * (self.gained**2 + 2 * self.gained * one + two)
        held = self._held_whole(np.where(self._ends > self._begins, c, 0.0)) * self.arcs.astype(float) ** 2
        whole = np.where(self._ends == self._begins, self.arcs.reshape(-1)[self._first_arc], 0.0)
        alone = np.where(same, c * (self.lost + self.gained - whole) ** 2, 0.0)
        square = self._sum_by_value(held, lost + alone, gained) / max(self.line.window, 1) ** 2
        square[self.line.owners] += counts[self.owned].sum(axis=0)
        return square

    def lift_sums(self, tally: Counts) -> Array:
        """`sum over reports of r`, `r` the lift of a value at the report, from the offsets of the reports.

        With `N` reports this is `N (1 - k) + k (M / length_x) coverage_x`.
        """
        counts = tally[0].astype(np.float64)
        return self._lift_sums(counts, self.coverage(counts, self._offsets(tally)))

    def _lift_sums(self, counts: Array, cover: Array) -> Array:
        m, k = self.line, self.line.keep_chance
        return np.asarray(counts.sum() * (1 - k) + k * m.places / m.lengths * cover)

    def _uniform_coverage(self, counts: Array) -> Array:
        return self.coverage(counts, counts * (self.sizes - 1) / 2)

    def lift_moments(self, tally: Counts) -> tuple[Array, Array]:
        """`sum over reports of r` and of `r**2`, `r` the lift, per value, for reports uniform within their cells.

        Both are of the same reports, so that `sum (r - 1)**2` follows from them and is never below zero; the
        first alone is known better, from the offsets of the reports that came (`lift_sums`).
        """
        m, k, counts = self.line, self.line.keep_chance, tally[0].astype(np.float64)
        scale, mean = k * m.places / m.lengths, self._uniform_coverage(counts)
        second = counts.sum() * (1 - k) ** 2 + 2 * (1 - k) * scale * mean
        return self._lift_sums(counts, mean), second + scale**2 * self._squared_coverage(counts)

    def posterior_variances(self, tally: Counts, prior: Array, rows: Rows) -> Array:
        """`sum over reports of Var(a_X | report)` for every row `a`, or for the indicators of the values.

        The squares of the offsets are not in the tally: if the prior is right, reports are uniform within their cells,
        which is what a posterior variance assumes anyway, and their second moments are computed so.
        """
        if rows is None:
            first, second = self.lift_moments(tally)
            return np.asarray(prior * first - prior**2 * second)
        counts = tally[0].astype(np.float64)
        lifts = self._lift_sums(counts, self._uniform_coverage(counts))
        return np.array([self._row_variance(counts, lifts, prior, row) for row in rows])

    def _row_variance(self, counts: Array, lifts: Array, prior: Array, row: Array) -> float:
        m, w = self.line, self.width
        a = row - row @ prior
        start, slope = self.window_masses(a * prior)
        mean = np.empty(len(counts))
        mean[self.owned] = ((a * prior / m.lengths)[m.owners] * m.places) ** 2
        mean[self.shared] = start**2 + start * slope * (w - 1) + slope**2 * (w - 1) * (2 * w - 1) / 6
        mean[self.shared] *= (m.places / max(m.window, 1)) ** 2
        return float(a * a * prior @ lifts - m.keep_chance**2 * (counts @ mean))
