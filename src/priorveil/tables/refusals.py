"""Rows that are refused: counted by reason, and listed by number; never with what was in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, plural

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


class StrictlyRefused(InvalidInput):
    """Rows are refused where none may be: nothing is written. Rows are counted from 0."""

    def __init__(self, refused: Refused) -> None:
        first = ", ".join(f"row {row} ({reason})" for row, reason in refused.rows[:5])
        verb = "is" if refused.total == 1 else "are"
        advice = f"{verb} refused, so nothing is written: {first}"
        super().__init__("data", plural(refused.total, "row"), advice)
        self.refused = refused


class InOrder:
    """Puts refused rows into the order of their numbers, holding only those that others may still precede.

    >>> rows = InOrder()
    >>> rows.enter(4, "missing")
    >>> rows.enter(2, "foreign")
    >>> rows.enter(9, "missing")
    >>> list(rows.before(5)), list(rows.rest())
    ([(2, 'foreign'), (4, 'missing')], [(9, 'missing')])
    """

    def __init__(self) -> None:
        self._held: list[tuple[int, str]] = []

    def enter(self, row: int, reason: str) -> None:
        """Hear of a refused row."""
        self._held.append((row, reason))

    def before(self, row: int) -> Iterator[tuple[int, str]]:
        """Those before this row, once none before it can come any more."""
        ready = sorted(entry for entry in self._held if entry[0] < row)
        self._held = [entry for entry in self._held if entry[0] >= row]
        yield from ready

    def rest(self) -> Iterator[tuple[int, str]]:
        """All that are left, at the end."""
        held, self._held = sorted(self._held), []
        yield from held


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
        # Broken lines are heard of before the rows around them, so the first to come are not the first rows.
        early = rows if len(self._rows) < MOST_LISTED else rows[rows < self._rows[-1][0]]
        if early.size:
            listed = [(row, reason) for row in np.sort(early)[:MOST_LISTED].tolist()]
            self._rows = sorted(self._rows + listed)[:MOST_LISTED]
        if self._each is not None:
            for row in rows.tolist():
                self._each(row, reason)

    def closed(self) -> Refused:
        """All that was written down, in the order of the rows."""
        return Refused(dict(sorted(self._counts.items())), tuple(self._rows))
