"""Counting many arc reports without sorting them.

The line is cut into buckets of `2**shift` reports, many more than there are columns in the tally. Most of them
lie in one column as a whole: a shift and a table say which. Only the reports of the few buckets in which a column
begins are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from priorveil.mechanisms.arc_cells import LIMB, LOW, ArcCells, empty_tally, tally_sorted

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]  # what scipy takes without making a copy

_MOST_BUCKETS = 1 << 17
# The low parts of a block add up to less than 2**_SHARED; the bits above it count them.
_SHARED = 40
# Reports looked at together: few enough to stay in the cache, many enough to be worth a call.
_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class ArcBuckets:
    """The line in buckets, and the column of the tally that each lies in.

    >>> from priorveil.mechanisms.arc_line import ArcLine
    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> buckets = ArcBuckets(ArcCells(toy))
    >>> buckets.shift, buckets.columns.tolist()
    (0, [0, 1, 2, 2, 2, 3, 4, 4, 4])
    """

    cells: ArcCells

    @property
    def mixed(self) -> int:
        """What stands for the column of a bucket that lies in several: one more than there are."""
        return len(self.cells.base)

    @cached_property
    def shift(self) -> int:
        """How many bits of a report are its place in the bucket."""
        wanted = min(_MOST_BUCKETS, 32 * len(self.cells.base))
        return max(0, (self.cells.line.outputs - 1).bit_length() - (wanted - 1).bit_length())

    @cached_property
    def columns(self) -> Places:
        """The column of every bucket."""
        base, last = self.cells.base, self.cells.line.outputs - 1
        firsts = np.arange((last >> self.shift) + 1, dtype=np.int64) << self.shift
        found = np.searchsorted(base, firsts, side="right") - 1
        inside = base[base & ((1 << self.shift) - 1) != 0]
        found[inside >> self.shift] = self.mixed
        return found.astype(np.int32)

    def serve(self, reports: int) -> bool:
        """Whether buckets count so many reports faster than sorting does."""
        columns = len(self.cells.base)
        return 4 * columns <= _MOST_BUCKETS and reports >= 32 * columns


def tally_in_buckets(buckets: ArcBuckets, reports: Ints) -> Ints:
    """As `tally_arc`, of reports that are known to be right; threads do it side by side.

    >>> from priorveil.mechanisms.arc_line import ArcLine
    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> tally_in_buckets(ArcBuckets(ArcCells(toy)), np.array([0, 0, 3, 4, 8] * 100)).tolist()
    [[200, 0, 200, 0, 100], [0, 0, 700, 0, 800], [0, 0, 0, 0, 0]]
    """
    if not buckets.serve(len(reports)):
        return tally_sorted(buckets.cells, reports)
    # Room for all blocks: to get fresh memory for each takes as long as to count it.
    part, column = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int32)
    tally, unclear = empty_tally(buckets.cells), []
    for first in range(0, len(reports), _BLOCK):
        block = reports[first : first + _BLOCK]
        unclear.append(_add_block(buckets, block, tally, part[: len(block)], column[: len(block)]))
    return tally + tally_sorted(buckets.cells, np.concatenate(unclear))


def _add_block(buckets: ArcBuckets, reports: Ints, tally: Ints, part: Ints, column: Places) -> Ints:
    """Add reports to the tally; those of mixed buckets come back, to be sorted. `part` and `column` are room."""
    np.right_shift(reports, buckets.shift, out=part)
    # With "clip" numpy writes straight to where it is told to; no report is beyond the table.
    buckets.columns.take(part, out=column, mode="clip")
    np.bitwise_and(reports, LOW, out=part)
    np.bitwise_or(part, 1 << _SHARED, out=part)
    packed = _sums(column, part, buckets.mixed)
    tally[0] += packed >> _SHARED
    tally[1] += packed & ((1 << _SHARED) - 1)
    np.right_shift(reports, LIMB, out=part)
    tally[2] += _sums(column, part, buckets.mixed)
    return reports.compress(column == buckets.mixed)


def _sums(column: Places, numbers: Ints, columns: int) -> Ints:
    """The sum of the numbers of every column: a matrix of one number a row, times one.

    Unlike numpy's own ways of adding by place, it lets other threads run meanwhile.
    """
    ends = np.array([0, len(numbers)], dtype=np.int32)
    matrix = csc_array((numbers, column, ends), shape=(columns + 1, 1))
    return np.asarray((matrix @ np.ones(1, dtype=np.int64))[:columns])
