"""Rows that are refused: counted by reason, and listed by number; never with what was in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]

MISSING = "missing"
FOREIGN = "foreign"
OUTSIDE = "outside the domain"
NO_PLAN = "no plan for the cohort"
BROKEN = "wrong number of columns"

MOST_LISTED = 1_000


@dataclass(frozen=True)
class Refused:
    """How many rows were refused for which reason, and the first of them as `(row, reason)`.

    Rows are counted from 0, over all the files of an input.

    >>> Refused({"missing": 2}, ((3, "missing"), (5, "missing"))).total
    2
    """

    counts: dict[str, int] = field(default_factory=dict)
    rows: tuple[tuple[int, str], ...] = ()

    @property
    def total(self) -> int:
        """How many in all."""
        return sum(self.counts.values())


class Book:
    """Where refusals are written down while a table streams by; `each` hears of every one of them.

    >>> book = Book()
    >>> book.enter("missing", np.array([4, 2]))
    >>> book.closed()
    Refused(counts={'missing': 2}, rows=((2, 'missing'), (4, 'missing')))
    """

    def __init__(self, each: Callable[[int, str], None] | None = None) -> None:
        self._each = each
        self._counts: Counter[str] = Counter()
        self._rows: list[tuple[int, str]] = []

    def enter(self, reason: str, rows: Places) -> None:
        """Write rows down."""
        if rows.size == 0:
            return
        self._counts[reason] += rows.size
        room = MOST_LISTED - len(self._rows)
        self._rows += [(row, reason) for row in rows[: max(room, 0)].tolist()]
        if self._each is not None:
            for row in rows.tolist():
                self._each(row, reason)

    def closed(self) -> Refused:
        """All that was written down, in the order of the rows."""
        return Refused(dict(sorted(self._counts.items())), tuple(sorted(self._rows)))
