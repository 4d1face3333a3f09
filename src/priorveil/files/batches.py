"""Batches: a table is read and written some rows at a time, so that memory stays small."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.csv_reader import delimiter_advice
from priorveil.errors import InvalidInput
from priorveil.frames import Column, Indices, take

RowNumbers = npt.NDArray[np.int64]  # counted from 0 over all the files of an input
RowProgress = Callable[[int, int | None, float | None], None]  # rows so far, of how many, share of the bytes

BROKEN = "wrong number of columns"  # why a line of a CSV is refused

_MOST_ROWS = 1 << 19  # in a batch
_MOST_BYTES = 1 << 25  # of reports in a batch


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table.

    `first` is the number of the first of them in the input. `broken` has the numbers of those lines of a CSV, from
    `first` on, that have the wrong number of cells, and are in no column.
    """

    columns: Mapping[str, Column]
    rows: int
    first: int = 0
    broken: RowNumbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def end(self) -> int:
        """The number of the row after the last one."""
        return self.first + self.rows + len(self.broken)

    @property
    def row_numbers(self) -> RowNumbers:
        """The number of every row in the columns."""
        numbers = np.arange(self.first, self.end)
        return np.delete(numbers, self.broken - self.first) if len(self.broken) else numbers

    def take(self, indices: Indices) -> Batch:
        """Some of the rows, by ascending indices, as a batch of their own."""
        return Batch({name: take(column, indices) for name, column in self.columns.items()}, len(indices))

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


@dataclass(frozen=True, eq=False)
class OpenTable:
    """A table that is being read: the Arrow types of its columns (None for the text of a CSV) and its batches.

    `rows` is the number of rows and `share` the part of the bytes read so far, if they are known. `files` has the
    files that were opened so far, each with the number of its first row.
    """

    types: Mapping[str, Any]
    batches: Iterator[Batch]
    rows: int | None = None
    share: Callable[[], float | None] = lambda: None
    files: Sequence[tuple[int, str]] = ()

    def place(self, row: int) -> tuple[str | None, int]:
        """The file of a row that was read, and its number in that file, from 0; None where there are no files."""
        if not self.files:
            return None, row
        first, file = self.files[bisect_right(self.files, row, key=itemgetter(0)) - 1]
        return file, row - first


@dataclass(frozen=True)
class WantedColumns:
    """The columns to read: those that a table must have, and those that are read where it has them."""

    columns: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def select(self, names: Sequence[str]) -> list[str]:
        """The columns to read from a table with these names: each exists, exactly once.

        >>> WantedColumns(("b",), ("id",)).select(["a", "b", "id"])
        ['b', 'id']
        >>> WantedColumns(("c",)).select(["a", "b"])
        Traceback (most recent call last):
        priorveil.errors.InvalidInput: column = 'c': the table has a, b
        >>> WantedColumns(("job",)).select(["jobs"])
        Traceback (most recent call last):
        priorveil.errors.InvalidInput: column = 'job': there is no column job; did you mean jobs? The table has jobs
        """
        optional = [name for name in self.optional if name in names]
        selected = list(dict.fromkeys([*self.columns, *optional]))
        for name in selected:
            if name not in names:
                similar = get_close_matches(name, names, 1)
                meant = f"there is no column {name}; did you mean {similar[0]}? " if similar else ""
                table = "The table" if similar else "the table"
                advice = f"{meant}{table} has {', '.join(names)}{delimiter_advice(names)}"
                raise InvalidInput("column", name, advice)
            if list(names).count(name) > 1:
                raise InvalidInput(
                    "column", name, "the table has several columns of this name: rename all but one"
                )
        return selected

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def without(self, names: Collection[str]) -> WantedColumns:
        """All but these columns."""
        return WantedColumns(
            *(tuple(n for n in part if n not in names) for part in (self.columns, self.optional))
        )
