"""Refused rows of a table: the reasons, and the list of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, plural
from priorveil.files.batches import RowNumbers
from priorveil.frames import Indices

Reasons = npt.NDArray[Any]  # why each row of a batch is refused; None if it is not
OnRefused = Callable[[int, str], object]

# Why a row is refused, besides the reasons of a domain.
FOREIGN = "foreign"
NO_COHORT = "no such cohort"
OTHER_FORM = "another plan or form"
WRONG_ANSWER = "an answer is missing or wrong"

_MOST_LISTED = 1_000  # refused rows of each reason


@dataclass(frozen=True)
class RefusedRows:
    """How many rows were refused for which reason, and the first thousand of each reason as `(row, reason)`.

    Rows are counted from 0, over all the files of an input.

    >>> RefusedRows({"missing": 2}, ((3, "missing"), (5, "missing"))).total
    2
    """

    counts: dict[str, int] = field(default_factory=dict)
    rows: tuple[tuple[int, str], ...] = ()

    @property
    def total(self) -> int:
        """How many rows were refused in all."""
        return sum(self.counts.values())


class NothingWritten(InvalidInput):
    """All rows were refused, or more than `most_refused` allows, or there are none. Rows are counted from 0."""

    reports = 0
    substituted: Mapping[str, int] = MappingProxyType({})

    def __init__(self, refused: RefusedRows, accepted: int) -> None:
        rows = refused.total + accepted
        why = f"{refused.total:,} of {plural(rows, 'row')} are refused" if rows else "the table has no rows"
        self.summary = f"nothing is written: {why}"
        first = [f"row {row} ({reason})" for row, reason in refused.rows[:5]]
        hint = [Hint("most_refused", purpose="to allow a larger share of them")] if accepted else []
        super().__init__("data", NOT_SHOWN, ", ".join([self.summary, *first]), *hint)
        self.refused = refused


def refused_rows(reasons: Reasons) -> Indices:
    """The rows that have a reason to be refused.

    >>> refused_rows(np.array([None, "missing"], dtype=object)).tolist()
    [1]
    """
    return np.flatnonzero([reason is not None for reason in reasons.tolist()])


def indices_by_reason(reasons: Reasons) -> dict[str, Indices]:
    """The rows that have each reason to be refused.

    >>> indices_by_reason(np.array([None, "missing", "missing"], dtype=object))
    {'missing': array([1, 2])}
    """
    refused = refused_rows(reasons)
    whys = reasons[refused]
    return {why: refused[whys == why] for why in dict.fromkeys(whys.tolist())}


class RefusalLog:
    """Collects refused rows while a table is read; `on_refused(row, reason)` is called for each, in row order.

    >>> log = RefusalLog()
    >>> log.add({"missing": np.array([4, 2]), "foreign": np.array([3])})
    >>> log.result()
    RefusedRows(counts={'foreign': 1, 'missing': 2}, rows=((2, 'missing'), (3, 'foreign'), (4, 'missing')))
    """

    def __init__(self, on_refused: OnRefused | None = None) -> None:
        self._on_refused = on_refused
        self._counts: Counter[str] = Counter()
        self._rows: list[tuple[int, str]] = []

    def add(self, refused: Mapping[str, RowNumbers]) -> None:
        """Add the refused rows of one batch; batches come in the order of their rows."""
        listed = []
        for reason, rows in refused.items():
            room = max(0, _MOST_LISTED - self._counts[reason])
            listed += [(row, reason) for row in np.sort(rows)[:room].tolist()]
            self._counts[reason] += rows.size
        self._rows += sorted(listed)
        if self._on_refused is not None:
            for row, reason in sorted((row, why) for why, rows in refused.items() for row in rows.tolist()):
                self._on_refused(row, reason)

    def result(self) -> RefusedRows:
        """All refused rows so far."""
        return RefusedRows(dict(sorted((+self._counts).items())), tuple(self._rows))
