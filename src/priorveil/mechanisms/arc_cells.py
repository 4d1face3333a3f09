"""Counting arc reports: a small exact tally.

As `u` goes round the circle, the window `[u, u + window)` gains or loses an arc at no more than two
places per input. Between two such places (a **cell**) every overlap with an arc is linear in `u`. So the
number of reports in each cell and the sum of their offsets from its start are all that the sum of posteriors
needs, exactly. The tally is three rows of 64-bit integers, one column per owned output and per cell: the
counts, and the sums of the low 21 bits and of the remaining high bits of the reports (two sums, so that none
overflows before `2**31` reports in a column; `ArcCells.most` is the exact number, and a tally beyond it is
refused when read). Tallies add up entry by entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms.arc_line import ArcLine
from priorveil.mechanisms.codes import checked_reports
from priorveil.mechanisms.kernels import fast

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# A tally has the sums of this many low bits of the reports, and of the rest.
LIMB = 21
LOW = (1 << LIMB) - 1
# Reports sorted at a time: few enough to stay in the cache, and to add up below 2**63.
_CHUNK = 1 << 17


@dataclass(frozen=True, eq=False)
class ArcCells:
    """The cells of the circle, and for each the arc where its window begins and the one where it ends.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> ArcCells(toy).cuts.tolist()
    [0, 1, 4, 5, 8]
    """

    line: ArcLine

    @cached_property
    def members(self) -> Ints:
        """The inputs on the circle, in order; a lender first."""
        m = self.line
        return m.order[m.heavy - int(m.start < m.edges[m.heavy]) :] if m.circumference else m.order[:0]

    @cached_property
    def rim(self) -> Ints:
        """The ends of the arcs, from 0 to the circumference."""
        m = self.line
        return np.asarray(np.maximum(m.edges[len(m.order) - len(self.members) :] - m.start, 0))

    @cached_property
    def cuts(self) -> Ints:
        """The ends of the cells, from 0 to the circumference."""
        if len(self.members) == 0:
            return np.zeros(1, dtype=np.int64)
        back = (self.rim - self.line.window) % self.rim[-1]
        return np.unique(np.concatenate([self.rim, back]))

    @cached_property
    def begins(self) -> Ints:
        """The arc that holds the start of the window, for every cell."""
        return np.searchsorted(self.rim, self.cuts[:-1], side="right") - 1

    @cached_property
    def ends(self) -> Ints:
        """The arc that holds the end of the window; on the second turn, counted on from the first."""
        end, n = self.cuts[:-1] + self.line.window, len(self.members)
        wraps = end >= self.rim[-1]
        within = np.searchsorted(self.rim, end - wraps * self.rim[-1], side="right") - 1
        return np.asarray(within + wraps * n, dtype=np.int64)

    @property
    def width(self) -> Ints:
        """How many places each cell has."""
        return np.diff(self.cuts)

    @cached_property
    def sizes(self) -> Ints:
        """How many places each column of the tally stands for: owned outputs, then cells."""
        m = self.line
        own = np.diff(np.append(m.edges[: m.heavy], m.start)) if m.heavy else m.edges[:0]
        return np.concatenate([own, self.width]).astype(np.int64)

    @property
    def most(self) -> int:
        """How many reports a column of the tally can count before one of its sums may pass 64 bits."""
        return ((1 << 63) - 1) // max(LOW, self.line.outputs >> LIMB)

    @cached_property
    def base(self) -> Ints:
        """The first report that falls in each column of the tally."""
        heavy = self.line.heavy
        return np.concatenate([np.arange(heavy), heavy + self.cuts[:-1]]).astype(np.int64)

    @cached_property
    def guide(self) -> tuple[int, Ints]:
        """A shift, and for every value of `report >> shift` the column of the first such report."""
        last = self.line.outputs
        shift = max(0, last.bit_length() - (8 * len(self.base)).bit_length())
        firsts = np.arange((last >> shift) + 2, dtype=np.int64) << shift
        return shift, np.searchsorted(self.base, firsts, side="right") - 1

    @cached_property
    def lost(self) -> Array:
        """At the first place of each cell, the overlap with the arc that is being lost."""
        return (self.rim[self.begins + 1] - self.cuts[:-1]).astype(np.float64)

    @cached_property
    def gained(self) -> Array:
        """At the first place of each cell, the overlap with the arc that is being gained."""
        n = len(self.members)
        turn = (self.ends >= n) * self.rim[-1]
        end = self.cuts[:-1] + self.line.window - turn
        return np.asarray(end - self.rim[self.ends % max(n, 1)], dtype=np.float64)


def empty_tally(cells: ArcCells) -> Ints:
    """No reports yet: three rows of zeros."""
    return np.zeros((3, len(cells.sizes)), dtype=np.int64)


def tally_arc(cells: ArcCells, reports: npt.ArrayLike) -> Ints:
    """Count reports: rows are counts, low sums, high sums. Tallies of parts add up to the tally of the whole.

    Reports are sorted a block at a time, so memory does not grow with their number.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> tally_arc(ArcCells(toy), [0, 0, 3, 4, 8]).tolist()
    [[2, 0, 2, 0, 1], [0, 0, 7, 0, 8], [0, 0, 0, 0, 0]]
    """
    m = cells.line
    y = checked_reports(reports, m.outputs)
    loop = fast(count_cells, len(y)) if len(y) >= len(cells.base) else None
    if loop is not None:
        shift, guide = cells.guide
        counted = np.zeros((len(cells.base), 3), dtype=np.int64)
        loop(y, cells.base, guide, shift, counted)
        return np.ascontiguousarray(counted.T)
    return tally_sorted(cells, y)


def tally_sorted(cells: ArcCells, reports: Ints) -> Ints:
    """As `tally_arc`, of reports that are known to be right, by numpy alone; threads do it side by side."""
    tally, step = empty_tally(cells), min(_CHUNK, 1 << (62 - cells.line.bits))
    for first in range(0, len(reports), step):
        tally += _tally_block(cells.base, np.sort(reports[first : first + step]))
    return tally


def count_cells(reports: Ints, base: Ints, guide: Ints, shift: int, counted: Ints) -> None:
    """The loop that numba compiles: a guide names a stretch of columns, a search finds the one."""
    for i in range(reports.size):
        y = reports[i]
        bucket = y >> shift
        low, high = guide[bucket], guide[bucket + 1]
        while low < high:
            middle = (low + high + 1) >> 1
            if base[middle] <= y:
                low = middle
            else:
                high = middle - 1
        counted[low, 0] += 1
        counted[low, 1] += y & LOW
        counted[low, 2] += y >> LIMB


def weigh_arc(cells: ArcCells, reports: npt.ArrayLike, weights: Array) -> Array:
    """As `tally_arc`, in floats: every report is counted as often as its weight says.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> weigh_arc(ArcCells(toy), [0, 0, 3, 4, 8], np.array([1.0, 1.0, 0.5, 2.0, 1.0]))[:2].tolist()
    [[2.0, 0.0, 2.5, 0.0, 1.0], [0.0, 0.0, 9.5, 0.0, 8.0]]
    """
    y = checked_reports(reports, cells.line.outputs)
    return weigh_columns(np.searchsorted(cells.base, y, side="right") - 1, y, weights, len(cells.base))


def weigh_columns(column: Ints, y: Ints, weights: Array, columns: int) -> Array:
    """The rows of a weighted tally: sums of weights, of weights times the low bits, and times the high ones."""
    parts = (weights, weights * (y & LOW), weights * (y >> LIMB))
    return np.stack([np.bincount(column, part, columns) for part in parts])


def _tally_block(base: Ints, ordered: Ints) -> Ints:
    """The tally of a sorted block, which it spoils; `base` is the first report of every column.

    A block is short enough for its sum to stay within 64 bits.
    """
    until = np.searchsorted(ordered, base, side="left")
    tally = np.zeros((3, len(base)), dtype=np.int64)
    tally[0] = np.diff(until, append=len(ordered))
    seen = np.flatnonzero(tally[0])
    if seen.size:
        whole = np.add.reduceat(ordered, until[seen])
        np.bitwise_and(ordered, LOW, out=ordered)
        tally[1, seen] = np.add.reduceat(ordered, until[seen])
        tally[2, seen] = (whole - tally[1, seen]) >> LIMB
    return tally
