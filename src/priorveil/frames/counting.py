"""Reports added up by numpy, which is there already: a compiled loop takes longer to load than it saves.

What is counted is what the mechanism's `accumulate` counts, number by number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms import Arc, Mechanism
from priorveil.mechanisms.arc_cells import LIMB, ArcCells
from priorveil.mechanisms.reading import Counted
from priorveil.tallies import Counts

Counter = Callable[[npt.NDArray[Any]], Counts]
Ints = npt.NDArray[np.int64]

_BLOCK = 1 << 14  # reports at a time: what is worked out on the way stays in the processor's cache
_MOST_BLOCK = 1 << 21  # sums over so many reports are below 2**53, where floats are whole numbers
_SEARCH = -2  # instead of a column: several begin among the reports with these leading bits


def counter(mechanism: Mechanism) -> Counter:
    """A function that adds up reports that are known to be the mechanism's own."""
    if isinstance(mechanism, Counted):
        return partial(_numbers, mechanism.outputs)
    if isinstance(mechanism, Arc):
        return partial(_arcs, _finder(mechanism.cells))
    return mechanism.accumulate


def _numbers(outputs: int, reports: Ints) -> Counts:
    return np.bincount(reports, minlength=outputs).astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class _Finder:
    """The column of the tally that an arc report falls in, by the report's leading bits.

    `column[b]` is that of the first report with leading bits `b`, and `until[b]` the first report of the next.
    """

    base: Ints
    shift: int
    column: Ints
    until: Ints

    def columns(self, reports: Ints) -> Ints:
        """The columns of reports."""
        bucket = reports >> self.shift
        found = self.column.take(bucket, mode="clip")  # nothing is clipped; it is the quick mode
        found += reports >= self.until.take(bucket, mode="clip")
        rest = np.flatnonzero(found < 0)
        found[rest] = np.searchsorted(self.base, reports[rest], side="right") - 1
        return found


def _finder(cells: ArcCells) -> _Finder:
    shift, starts = cells.guide
    first, last = starts[:-1], starts[1:]
    until = np.append(cells.base, np.iinfo(np.int64).max)[first + 1]
    return _Finder(cells.base, shift, np.where(last - first > 1, _SEARCH, first), until)


def _arcs(finder: _Finder, reports: Ints) -> Counts:
    """Counts, and sums of the low and the high bits, of every column: see `mechanisms.arc_cells`."""
    width = len(finder.base)
    total = np.zeros((3, width), dtype=np.int64)
    step = min(max(_BLOCK, width), _MOST_BLOCK)
    for start in range(0, len(reports), step):
        part = reports[start : start + step]
        column = finder.columns(part)
        total[0] += np.bincount(column, minlength=width)
        for row, bits in ((1, part & ((1 << LIMB) - 1)), (2, part >> LIMB)):
            total[row] += np.bincount(column, bits, width).astype(np.int64)
    return total
