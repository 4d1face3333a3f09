"""Counting and reading arc reports: a small exact tally, and the laws and posteriors that follow from it.

As `u` goes round a circle, the window `[u, u + window)` gains or loses an arc at no more than two
places per value. Between two such places (a **cell**) every overlap with an arc is linear in `u`. So the
number of reports in each cell and the sum of their offsets from its start are all that the sum of posteriors
needs, exactly. The tally is three rows of 64-bit integers, with one column per owned output and per cell: the counts,
and the sums of the low 21 bits and of the remaining high bits of the reports (two sums, so that none overflows before
`2**31` reports in a column; `ArcCells.most_reports` is the exact number, and a tally beyond it is refused when read).
Tallies add up entry by entry.

In floats, and up to the rounding that the certificate accounts for (about 1e-7 relative at most), the law of
the reports under the prior is uniform on the line, and the lift of `x` is `1 - k + k (M / length_x)
(overlap / window)`, with `M` the places of the line and an owned output counting as an overlap of one
whole window.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from priorveil.arrays import Array, Ints
from priorveil.errors import TooLarge
from priorveil.mechanisms import kernels
from priorveil.mechanisms.arc.line import ArcLine
from priorveil.mechanisms.estimators import Counts, Rows
from priorveil.mechanisms.interface import MOST_MEASURED, require_writable
from priorveil.mechanisms.kernels import LIMB, LOW


class ArcCells:
    """The columns of a tally: the owned outputs, then the cells of the circle.

    `base` is the first report of every column and `sizes` how many places it stands for. The other arrays have an entry
    for each cell: its `width`, and at its first place the overlaps of the window with the arc where it begins (`lost`)
    and with the one where it ends (`gained`). An arc on the second turn is counted on from the first.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> ArcCells(toy).base.tolist()
    [0, 1, 2, 5, 6]
    """

    def __init__(self, line: ArcLine) -> None:
        self.line, self.members, self.arcs = line, line.members, np.diff(line.rim)
        rim, n = line.rim, len(line.members)
        cuts = np.unique(np.concatenate([rim, (rim - line.window) % rim[-1]])) if n else np.zeros(1, np.int64)
        first, width = cuts[:-1], np.diff(cuts)
        self._begins = np.searchsorted(rim, first, side="right") - 1
        wraps = first + line.window >= rim[-1]
        end = first + line.window - wraps * rim[-1]
        last = np.searchsorted(rim, end, side="right") - 1
        self._ends, self._last_arcs = last + wraps * n, last  # counted on from the first turn, and as arcs
        self.width, self.lost, self.gained = (
            part.astype(np.float64) for part in (width, rim[self._begins + 1] - first, end - rim[last])
        )
        self.base = np.concatenate([np.arange(line.heavy), line.heavy + first])
        self.sizes = np.concatenate([line.own_sizes, width])

    # -- counting ------------------------------------------------------------------------------------------

    @property
    def most_reports(self) -> int:
        """How many reports a column of the tally can count before one of its sums may exceed 64 bits."""
        return ((1 << 63) - 1) // max(LOW, self.line.outputs >> LIMB)

    @cached_property
    def _guide(self) -> tuple[int, Ints]:
        """A shift, and for every value of `report >> shift` the column of the first such report."""
        last = self.line.outputs
        shift = max(0, last.bit_length() - (8 * len(self.base)).bit_length())
        firsts = np.arange((last >> shift) + 2, dtype=np.int64) << shift
        return shift, np.searchsorted(self.base, firsts, side="right") - 1

    def tally(self, reports: Ints, compiled: bool = True) -> Ints:
        """Count valid reports: rows are counts, low sums, high sums. Tallies of parts add up to that of the whole.

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
        >>> ArcCells(toy).tally(np.array([0, 0, 3, 4, 8])).tolist()
        [[2, 0, 2, 0, 1], [0, 0, 7, 0, 8], [0, 0, 0, 0, 0]]
        """
        tally = np.zeros((len(self.base), 3), dtype=np.int64)
        work = len(reports) if compiled and len(reports) >= len(self.base) else 0
        shift, guide = self._guide if work >= kernels.ENOUGH_WORK else (0, self.base[:0])
        kernels.count_cells(reports, self.base, guide, shift, tally, work=work)
        return np.ascontiguousarray(tally.T)

    def weigh(self, reports: Ints, weights: Array) -> Array:
        """The tally in floats, with every report counted as often as its weight says.

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
        >>> weights = np.array([1.0, 1.0, 0.5, 2.0, 1.0])
        >>> ArcCells(toy).weigh(np.array([0, 0, 3, 4, 8]), weights)[:2].tolist()
        [[2.0, 0.0, 2.5, 0.0, 1.0], [0.0, 0.0, 9.5, 0.0, 8.0]]
        """
        column = np.searchsorted(self.base, reports, side="right") - 1
        parts = (weights, weights * (reports & LOW), weights * (reports >> LIMB))
        return np.stack([np.bincount(column, part, len(self.base)) for part in parts])

    def expected_tally(self, counts: Array) -> Array:
        """A tally with these counts, as read from reports that are uniform within their cells."""
        offsets = np.append(np.zeros(self.line.heavy), (self.width - 1) / 2)
        return np.stack([counts, counts * (offsets + (self.base & LOW)), counts * (self.base >> LIMB)])

    def _offsets(self, tally: Counts) -> Array:
        """Sums of the offsets from the first place of each column; exact for integers until the last step."""
        if tally.dtype.kind == "i" and int(tally[0].max(initial=0)) > self.most_reports:
            raise TooLarge(
                f"{int(tally[0].max())} reports in one cell of the tally: beyond {self.most_reports} its sums do not "
                "fit 64 bits; read tallies of fewer reports one by one and combine the estimates"
            )
        low = tally[1] - tally[0] * (self.base & LOW)
        high = tally[2] - tally[0] * (self.base >> LIMB)
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
        first, last = density[..., self._begins], density[..., self._last_arcs]
        held = sums[..., self._ends] - sums[..., self._begins + 1]
        return held + first * self.lost + last * self.gained, last - first

    def law(self, p: Array) -> Array:
        """The law of the columns when the values follow `p`, or each row of it: `p @ matrix`, in O(d + columns).

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
        >>> ArcCells(toy).law(np.array([0.5, 0.25, 0.25])).tolist()
        [0.5, 0.25, 0.25]
        """
        m, w, k = self.line, self.width, self.line.keep_chance
        start, slope = self.window_masses(p)
        least = 0.0 if p.min() >= 0 else -np.inf  # for shares rounding must not go below zero
        shared = np.maximum(w * start + slope * w * (w - 1) / 2, least) / max(m.window, 1)
        used = np.concatenate([p[..., m.owners] * m.own_sizes / m.lengths[m.owners], shared], axis=-1)
        fresh = (1 - k) * p.sum(axis=-1, keepdims=True) * self.sizes / m.places
        return np.asarray(fresh + k * used)

    @cached_property
    def matrix(self) -> Array:
        """The channel from values to columns in floats; raises `TooLarge` when huge.

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
        >>> ArcCells(toy).matrix.tolist()
        [[0.75, 0.125, 0.125], [0.25, 0.4375, 0.3125], [0.25, 0.3125, 0.4375]]
        """
        require_writable(self.line.size, len(self.base))
        return self.law(np.eye(self.line.size))

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
        >>> matrix, reports = ArcCells(toy).leakage_matrix
        >>> matrix[1].tolist(), reports
        ([0.25, 0.3125, 0.125, 0.0625, 0.25], (0, 1, 4, 5, 8))
        """
        m, k, long = self.line, self.line.keep_chance, self.width > 1
        reports = np.concatenate([self.base, (self.base + self.sizes - 1)[m.heavy :][long]])
        require_writable(m.size, len(reports), MOST_MEASURED)
        units = np.eye(m.size)
        start, slope = self.window_masses(units)
        masses = np.stack([start, start + slope * (self.width - 1)])
        ends = (1 - k) / m.places + k * np.maximum(masses, 0.0) / max(m.window, 1)
        halves = ends * np.where(long, self.width / 2, 1.0)
        matrix = np.hstack([self.law(units)[:, : m.heavy], halves[0], halves[1][:, long]])
        ascending = np.argsort(reports)
        return matrix[:, ascending], tuple(reports[ascending].tolist())

    # -- posteriors and lifts ------------------------------------------------------------------------------

    def _held_whole(self, counts: Array) -> Array:
        """How many windows hold each arc as a whole: a difference array over two turns."""
        n = len(self.members)
        steps = np.bincount(self._begins + 1, counts, 2 * n + 1) - np.bincount(self._ends, counts, 2 * n + 1)
        return np.asarray(np.cumsum(steps[: 2 * n]).reshape(2, n).sum(axis=0))

    def _sum_by_value(self, held: Array, lost: Array, gained: Array, owned: Array) -> Array:
        """Sums over the arcs and the owned output of each value: `held` by arc, and what cells lose and gain."""
        sums, n = np.zeros(self.line.size), len(self.members)
        sums[self.members] = held + np.bincount(self._begins, lost, n)
        sums[self.members] += np.bincount(self._last_arcs, gained, n)
        sums[self.line.owners] += owned
        return sums

    def coverage(self, counts: Array, sums: Array) -> Array:
        """`sum over reports of overlap / window`, per value: an owned output counts as one. O(d + columns).

        `counts` and `sums` may be any numbers: reports, or weights spread over the places of a cell. Where the
        window lies within one arc, "held whole" comes out as minus one, which makes its overlap the window,
        as it should.
        """
        heavy, window = self.line.heavy, max(self.line.window, 1)
        c, s, own = counts[heavy:], sums[heavy:], window * counts[:heavy]
        held = self._held_whole(c) * self.arcs
        return self._sum_by_value(held, c * self.lost - s, c * self.gained + s, own) / window

    def _squared_coverage(self, counts: Array) -> Array:
        """`sum over reports of (overlap / window)**2` per value, for reports uniform within their cells."""
        heavy, square = self.line.heavy, max(self.line.window, 1) ** 2
        c, w, n = counts[heavy:], self.width, max(1, len(self.members))
        same = (self._ends - self._begins) % n == 0
        one, two = (w - 1) / 2, (w - 1) * (2 * w - 1) / 6
        apart = np.where(same, 0.0, c)
        lost = apart * (self.lost**2 - 2 * self.lost * one + two)
        gained = apart * (self.gained**2 + 2 * self.gained * one + two)
        held = self._held_whole(np.where(self._ends > self._begins, c, 0.0)) * self.arcs.astype(float) ** 2
        whole = np.where(self._ends == self._begins, self.arcs[self._begins], 0.0)
        alone = np.where(same, c * (self.lost + self.gained - whole) ** 2, 0.0)
        return self._sum_by_value(held, lost + alone, gained, square * counts[:heavy]) / square

    def lift_sums(self, tally: Counts) -> Array:
        """`sum over reports of r`, `r` the lift of a value at the report, from the offsets of the reports."""
        return self._lift_sums(tally[0].astype(np.float64), self._offsets(tally))

    def _lift_sums(self, counts: Array, offsets: Array) -> Array:
        """With `N` reports this is `N (1 - k) + k (M / length_x) coverage_x`."""
        m, k = self.line, self.line.keep_chance
        cover = self.coverage(counts, offsets)
        return np.asarray(counts.sum() * (1 - k) + k * m.places / m.lengths * cover)

    def posterior_variances(self, tally: Counts, prior: Array, rows: Rows) -> Array:
        """`sum over reports of Var(a_X | report)` for every row `a`, or for the indicators of the values.

        The squares of the offsets are not in the tally: if the prior is right, reports are uniform within their cells,
        which is what a posterior variance assumes anyway. So the lifts and their squares are summed for such reports;
        both are of the same reports, so that no variance is below zero.
        """
        if rows is not None:
            return np.array([self.posterior_covariance(tally, prior, row[None])[0, 0] for row in rows])
        m, k, counts = self.line, self.line.keep_chance, tally[0].astype(np.float64)
        lifts = self._lift_sums(counts, counts * (self.sizes - 1) / 2)
        squares = (k * m.places / m.lengths) ** 2 * self._squared_coverage(counts)
        squares += (1 - k) * (2 * lifts - counts.sum() * (1 - k))
        return np.asarray(prior * lifts - prior**2 * squares)

    def posterior_covariance(self, tally: Counts, prior: Array, rows: Rows) -> Array:
        """The same covariances of all pairs of rows."""
        counts, W = tally[0].astype(np.float64), np.eye(len(prior)) if rows is None else rows
        m, w, (own, c) = self.line, self.width, np.split(counts, [self.line.heavy])
        a = W - (W @ prior)[:, None]
        owned, (start, slope) = (a * prior / m.lengths)[:, m.owners], self.window_masses(a * prior)
        middle = start + slope * (w - 1) / 2
        shared = (middle * c) @ middle.T + (slope * (c * (w**2 - 1) / 12)) @ slope.T
        means = (owned * own) @ owned.T + shared / max(m.window, 1) ** 2
        lifts = self._lift_sums(counts, counts * (self.sizes - 1) / 2)
        return np.asarray((a * prior * lifts) @ a.T - (m.keep_chance * m.places) ** 2 * means)


def squared_overlap(p: Array, window: float | Array, circle: float | Array) -> Array:
    """The integral of the squared share of an arc of length `p` that a window holds, as it goes round a circle.

    The overlap rises over the length of the shorter one, stays at it, and falls again: the integral of its square is
    `s**2 (l - s / 3)`, with `s` the shorter and `l` the longer of both, while both fit on the circle. Otherwise they
    hold some of each other wherever they are, and the rest of the overlap is that of what is left of both.

    >>> squared_overlap(np.array([0.1, 0.5]), 0.3, 1.0).round(6).tolist()  # window - p / 3; (w / p)^2 (p - w / 3)
    [0.266667, 0.144]
    """
    always = np.maximum(p + window - circle, 0.0)
    shorter, longer = np.minimum(p, window) - always, np.maximum(p, window) - always
    a, s = always / p, shorter / p
    return np.asarray(a**2 * circle + 2 * a * s * longer + s**2 * (longer - shorter / 3))
