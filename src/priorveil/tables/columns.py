"""Columns of a table, in batches of rows, and the codes of the values that they hold.

A column of a CSV is a list of texts, with None where a cell is missing. Every other column is an Arrow array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import NOT_SHOWN, InvalidInput, MissingExtra
from priorveil.plans.values import Codes
from priorveil.priors import Label
from priorveil.tables.refusals import BROKEN, Rows

Column = list[str | None] | Any  # of a CSV, or an Arrow array
Indices = npt.NDArray[np.int64]  # of rows in a batch, counted from 0

ABSENT, OUTSIDE_DOMAIN = -1, -2  # instead of the code of a value

_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?")


def pyarrow() -> Any:
    """The Arrow library, which everything but CSV needs."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "tables") from error
    return pyarrow


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table.

    `first` is the number of the first of them in the input. `broken` has the numbers of those lines of a CSV, from
    `first` on, that have the wrong number of cells; they are in no column.
    """

    columns: Mapping[str, Column]
    rows: int
    first: int = 0
    broken: Rows = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def end(self) -> int:
        """The number of the row after the last one."""
        return self.first + self.rows + len(self.broken)

    def refused(self, indices: Mapping[str, Indices]) -> dict[str, Rows]:
        """The numbers of refused rows by reason, given their indices in the columns; broken lines included.

        >>> Batch({}, 2, first=110, broken=np.array([111])).refused({"missing": np.array([0, 1])})
        {'wrong number of columns': array([111]), 'missing': array([110, 112])}
        """
        if not len(self.broken):
            return {reason: self.first + rows for reason, rows in indices.items()}
        numbers = np.delete(np.arange(self.first, self.end), self.broken - self.first)
        return {BROKEN: self.broken, **{reason: numbers[rows] for reason, rows in indices.items()}}


def take(column: Column, indices: Indices) -> Column:
    """Some rows of a column."""
    if isinstance(column, list):
        return [column[index] for index in indices.tolist()]
    return column.take(pyarrow().array(indices))


def present_rows(column: Any) -> npt.NDArray[np.bool_]:
    """Which rows of an Arrow column are not missing."""
    if not column.null_count:
        return np.ones(len(column), dtype=bool)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def distinct(column: Column) -> tuple[list[Any], Indices]:
    """The different entries of a column, and for each row the index of its entry; -1 where it is missing.

    >>> distinct(["a", None, "b", "a"])
    (['a', 'b'], array([ 0, -1,  1,  0]))
    """
    if isinstance(column, list):
        words = [word for word in dict.fromkeys(column) if word is not None]
        index_of = {None: -1, **{word: index for index, word in enumerate(words)}}
        return words, np.fromiter(map(index_of.__getitem__, column), dtype=np.int64, count=len(column))
    pa = pyarrow()
    if pa.types.is_nested(column.type):
        raise InvalidInput("column", NOT_SHOWN, f"type {column.type}; choose one of text, numbers or dates")
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    entries = encoded.dictionary.to_pylist()
    indices = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    if None in entries:  # a dictionary may hold the gap itself
        gaps = np.array([entry is None for entry in [*entries, None]])
        indices = np.where(gaps[indices], -1, indices)
    return entries, indices


def holds_only(column: Column, entry: str) -> bool:
    """Whether every row is this text, for columns where that is quickly found out; False for others.

    >>> holds_only(["a", "a"], "a"), holds_only(["a", None], "a")
    (True, False)
    """
    if isinstance(column, list):
        return column.count(entry) == len(column)
    pa = pyarrow()
    if pa.types.is_dictionary(column.type):
        return not column.null_count and column.dictionary.to_pylist() == [entry]
    return False


def look_up(column: Column, code: Callable[[Any], int], missing: int) -> Codes:
    """`code` of every entry, called once for each different one; `missing` for the gaps.

    >>> look_up(["a", None, "bb", "a"], len, 0).tolist()
    [1, 0, 2, 1]
    """
    words, indices = distinct(column)
    codes = [missing if word is None else code(word) for word in words]
    return np.asarray(np.array([*codes, missing], dtype=np.int64)[indices])


# -- values ------------------------------------------------------------------------------------------------


def value_codes(column: Column, labels: Sequence[Label]) -> Codes:
    """The codes of a column of values; -1 where one is missing, -2 where it is outside the domain.

    A value is the label that is written the same way; this holds for dates, decimals and truth values too. Numbers
    are never codes of other labels: nobody would notice if 1 stood for "yes" in the table and for "no" in the plan. In
    a CSV numbers are text, and spaces around them do not matter.

    >>> value_codes(["no ", None, "maybe", "1"], ["yes", "no"]).tolist()
    [1, -1, -2, -2]
    >>> value_codes(["7.00", "08", "8.5"], [7, 8]).tolist()
    [0, 1, -2]
    >>> import pyarrow as pa
    >>> value_codes(pa.array([1.0, 0.5, 0.0]), ["0.5", "1.0"]).tolist()
    [1, 0, -2]
    """
    if isinstance(column, list):
        return look_up(column, _text_codes(labels), ABSENT)
    if tuple(labels) == tuple(range(len(labels))) and pyarrow().types.is_integer(column.type):
        numbers = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        inside = numbers.view(np.uint64) < len(labels)  # negative numbers become huge
        codes = numbers if inside.all() else np.where(inside, numbers, OUTSIDE_DOMAIN)
        return codes if not column.null_count else np.where(present_rows(column), codes, ABSENT)
    return look_up(column, _entry_codes(labels), ABSENT)


def _entry_codes(labels: Sequence[Label]) -> Callable[[Any], int]:
    """How entries of an Arrow column are read: as they are written, numbers by their value.

    >>> import datetime, math
    >>> code = _entry_codes(["1.50", "2024-05-01", "true"])
    >>> [code(entry) for entry in (1.5, Decimal("1.5"), datetime.date(2024, 5, 1), True, 0, math.nan)]
    [0, 0, 1, 2, -2, -1]
    """
    written = {str(label): code for code, label in enumerate(labels)}
    numbers: dict[Decimal, int] = {}
    for name, code in written.items():
        number = _number(name)
        if number is not None:  # "1" and "1.0" differ only in how they are written
            numbers[number] = OUTSIDE_DOMAIN if number in numbers else code
    has_integers = any(isinstance(label, int) for label in labels)

    def code_of(entry: Any) -> int:
        if entry != entry:
            return ABSENT
        if isinstance(entry, bool) and not has_integers:
            return written.get(str(entry), written.get(str(entry).lower(), OUTSIDE_DOMAIN))
        if isinstance(entry, int | float | Decimal):
            number = Decimal(int(entry)) if isinstance(entry, bool) else Decimal(str(entry))
            return written.get(str(entry), numbers.get(number, OUTSIDE_DOMAIN))
        return written.get(str(entry), OUTSIDE_DOMAIN)

    return code_of


def _text_codes(labels: Sequence[Label]) -> Callable[[str], int]:
    """How cells of a CSV are read: as they are written; by number where labels are integers.

    A label that is a text only equals itself: "007" is not 7.

    >>> code = _text_codes([7, 8])
    >>> [code(cell) for cell in ("7", " 8.00 ", "07", "9", "7_0")]
    [0, 1, 0, -2, -2]
    """
    written = {str(label): code for code, label in enumerate(labels)}
    stripped = {name.strip(): code for name, code in written.items()}
    numbers = {Decimal(label): code for code, label in enumerate(labels) if isinstance(label, int)}

    def code_of(cell: str) -> int:
        word = cell.strip()
        found = written.get(cell, stripped.get(word))
        if found is None and numbers and _PLAIN_NUMBER.fullmatch(word):
            found = numbers.get(Decimal(word))
        return OUTSIDE_DOMAIN if found is None else found

    return code_of


def _number(text: str) -> Decimal | None:
    """The finite number that a text is, if it is one."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
