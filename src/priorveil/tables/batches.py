"""Batches: a table is read and written some rows at a time, so that memory stays small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from priorveil.frames import Column, Indices, take
from priorveil.tables.refusals import BROKEN, RowNumbers

_MOST_ROWS = 1 << 19  # in a batch
_MOST_BYTES = 1 << 25  # of reports in a batch


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table.

    `first` is the number of the first of them in the input. `broken` has the numbers of those lines of a CSV, from
    `first` on, that have the wrong number of cells, and `left_out` those of rows that repeat an earlier report; both
    are in no column.
    """

    columns: Mapping[str, Column]
    rows: int
    first: int = 0
    broken: RowNumbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    left_out: RowNumbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def end(self) -> int:
        """The number of the row after the last one."""
        return self.first + self.rows + len(self.broken) + len(self.left_out)

    @property
    def row_numbers(self) -> RowNumbers:
        """The number of every row in the columns."""
        numbers = np.arange(self.first, self.end)
        absent = np.concatenate([self.broken, self.left_out])
        return np.delete(numbers, absent - self.first) if len(absent) else numbers

    def leave_out(self, indices: Indices) -> Batch:
        """The batch without some of its rows."""
        if not len(indices):
            return self
        kept = np.delete(np.arange(self.rows), indices)
        columns = {name: take(column, kept) for name, column in self.columns.items()}
        return replace(self, columns=columns, rows=len(kept), left_out=self.row_numbers[indices])

    def refused_rows(self, indices: Mapping[str, Indices]) -> dict[str, RowNumbers]:
        """The numbers of refused rows by reason, given their indices in the columns; broken lines included.

        >>> Batch({}, 2, first=110, broken=np.array([111])).refused_rows({"missing": np.array([0, 1])})
        {'wrong number of columns': array([111]), 'missing': array([110, 112])}
        """
        if not indices and not len(self.broken):
            return {}
        numbers = self.row_numbers
        broken = {BROKEN: self.broken} if len(self.broken) else {}
        return {**broken, **{reason: numbers[rows] for reason, rows in indices.items()}}


def batch_rows(widths: Iterable[int]) -> int:
    """Rows in a batch: many, but fewer if reports are long, so that memory stays small. Widths are in 64-bit words."""
    return max(1, min(_MOST_ROWS, _MOST_BYTES // (8 * max(1, *widths))))
