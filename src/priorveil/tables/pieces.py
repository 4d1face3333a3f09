"""A table that streams by: pieces with their place in it, the columns that are wanted, the plans it names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from priorveil.errors import InvalidInput
from priorveil.tables.arrow import pa
from priorveil.tables.refusals import Places

PLAN_KEY = b"priorveil.plan"  # in the schema of a table of reports: the ids of the plans that made them

Told = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a table, and where they stand in it.

    `place` is the place of the first row among those of its file that could be read, `before` how many rows
    the files before had, `broken` the numbers of the lines of its file that are no rows.
    """

    batch: pa.RecordBatch
    place: int
    before: int = 0
    broken: Sequence[int] = ()

    def numbers(self, places: Places) -> Places:
        """The numbers that rows of this piece have in the input.

        >>> Piece(pa.record_batch({"a": [1, 2]}), 10, 100, [11]).numbers(np.array([0, 1]))
        array([110, 112])
        """
        if not self.broken:
            return places + (self.before + self.place)
        return np.array([self.before + self._number(self.place + p) for p in places.tolist()], dtype=np.int64)

    def _number(self, place: int) -> int:
        passed = 0
        while (more := bisect_right(self.broken, place + passed)) != passed:
            passed = more
        return place + passed


@dataclass(frozen=True, eq=False)
class Opened:
    """A table that streams by: its columns, its pieces, and how far they have come.

    `rows` is how many there will be, where that is known; `share` is the part of the bytes read so far, where
    that is. `plans` are the plans that made the reports, where the table says so.
    """

    schema: pa.Schema
    pieces: Iterator[Piece]
    text: bool = False
    rows: int | None = None
    share: Callable[[], float | None] = lambda: None
    plans: frozenset[str] = field(default_factory=frozenset)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)


def placed(batches: Iterator[pa.RecordBatch], broken: Sequence[int] = ()) -> Iterator[Piece]:
    """Batches of one file as pieces."""
    place = 0
    for batch in batches:
        yield Piece(batch, place, 0, broken)
        place += batch.num_rows


def chosen(names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The columns that are wanted: all there, each once.

    >>> chosen(["a", "b"], ["c"])
    Traceback (most recent call last):
    priorveil.errors.InvalidInput: column = 'c': the table has a, b
    """
    wanted = list(names if columns is None else dict.fromkeys(columns))
    for name in wanted:
        if name not in names:
            raise InvalidInput("column", name, f"the table has {', '.join(names)}")
        if list(names).count(name) > 1:
            raise InvalidInput("column", name, "the table has several columns of this name")
    return wanted


def plans_of(schema: pa.Schema) -> frozenset[str]:
    """The ids of the plans that a table of reports names."""
    return frozenset((schema.metadata or {}).get(PLAN_KEY, b"").decode().split())
