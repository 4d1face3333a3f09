"""Batches: a table is read and written some rows at a time, so that memory stays small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from priorveil.frames import Column, Indices
from priorveil.plans import Plan
from priorveil.tables.refusals import BROKEN, RowNumbers

_MOST_ROWS = 1 << 19  # in a batch
_MOST_BYTES = 1 << 25  # of reports in a batch


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table.

    `first` is the number of the first of them in the input. `broken` has the numbers of those lines of a CSV, from
    `first` on, that have the wrong number of cells; they are in no column.
    """

    columns: Mapping[str, Column]
    rows: int
    first: int = 0
    broken: RowNumbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def end(self) -> int:
        """The number of the row after the last one."""
        return self.first + self.rows + len(self.broken)

    def refused_rows(self, indices: Mapping[str, Indices]) -> dict[str, RowNumbers]:
        """The numbers of refused rows by reason, given their indices in the columns; broken lines included.

        >>> Batch({}, 2, first=110, broken=np.array([111])).refused_rows({"missing": np.array([0, 1])})
        {'wrong number of columns': array([111]), 'missing': array([110, 112])}
        """
        if not len(self.broken):
            return {reason: self.first + rows for reason, rows in indices.items()}
        numbers = np.delete(np.arange(self.first, self.end), self.broken - self.first)
        return {BROKEN: self.broken, **{reason: numbers[rows] for reason, rows in indices.items()}}


def batch_rows(plans: Mapping[Any, Plan]) -> int:
    """Rows in a batch: many, but fewer if reports are long, so that memory stays small."""
    width = max(plan.mechanism.width for plan in plans.values())
    return max(1, min(_MOST_ROWS, _MOST_BYTES // (8 * max(width, 1))))
