"""Columns of values and of groups as codes, without an error for what is not among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, OutsideDomain
from priorveil.plans.values import codes_of
from priorveil.priors import Label
from priorveil.tables.arrow import pa

Codes = npt.NDArray[np.int64]

ABSENT, FOREIGN = -1, -2

_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?")


def value_codes(
    column: pa.Array, labels: Sequence[Label], text: bool = False, numbered: bool = True
) -> Codes:
    """The codes of a column of values; -1 where one is missing, -2 where it is outside the domain.

    A value is a label if it is written like one: dates, decimals and truth values too. Whole numbers are codes
    where no label looks like a number, unless labels are not to be called by number (`numbered`). With `text` (a
    CSV) numbers are text too, and spaces around them no matter.

    >>> value_codes(pa.array(["no", None, "maybe"]), ["yes", "no"]).tolist()
    [1, -1, -2]
    >>> value_codes(pa.array(["1", "0.0", "2"]), ["yes", "no"], text=True).tolist()
    [1, 0, -2]
    >>> value_codes(pa.array(["7.00", "08", "8.5"]), [7, 8], text=True).tolist()
    [0, 1, -2]
    >>> value_codes(pa.array([1.0, 0.5, 0.0]), ["0.5", "1.0"]).tolist()
    [1, 0, -2]
    """
    if text:
        return looked_up(column, _text_reading(labels, numbered), ABSENT)
    if not numbered or any(isinstance(label, str) and _number(label) is not None for label in labels):
        # No number is a code here, or 1.0 could be taken for one.
        return looked_up(column, _reading(labels, numbered), ABSENT)
    try:
        codes, absent = codes_of(_quick(column, labels), labels, "pass")
    except OutsideDomain:
        return looked_up(column, _reading(labels), ABSENT)
    gone = np.zeros(len(codes), dtype=bool) if absent is None else absent
    if column.null_count:
        gone = gone | column.is_null().to_numpy(zero_copy_only=False)
    return np.where(gone, ABSENT, codes)


def looked_up(column: pa.Array, code: Callable[[Any], int], missing: int) -> Codes:
    """`code` of every entry, asked once for each different one; `missing` for the gaps.

    >>> looked_up(pa.array(["a", None, "bb", "a"]), len, 0).tolist()
    [1, 0, 2, 1]
    """
    if pa.types.is_nested(column.type):
        raise InvalidInput("column", f"of {column.type}", "choose one of text, numbers or dates")
    words = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = [missing if word is None else code(word) for word in words.dictionary.to_pylist()]
    places = words.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(np.array([*codes, missing], dtype=np.int64)[places])


def _reading(labels: Sequence[Label], numbered: bool = True) -> Callable[[Any], int]:
    """How single values are read: by how they are written, numbers by what they are.

    >>> import datetime, math
    >>> read = _reading(["1.50", "2024-05-01", "true"])
    >>> [read(word) for word in (1.5, Decimal("1.5"), datetime.date(2024, 5, 1), True, 0, math.nan)]
    [0, 0, 1, 2, -2, -1]
    """
    written = {str(label): code for code, label in enumerate(labels)}
    numbers: dict[Decimal, int] = {}
    for code, label in enumerate(labels):
        number = _number(str(label))
        if number is not None:
            # "1" and "1.0" are told apart as they are written.
            numbers[number] = FOREIGN if number in numbers else code
    whole = any(isinstance(label, int) for label in labels)

    def read(word: Any) -> int:
        if word != word:
            return ABSENT
        if isinstance(word, bool) and not whole:
            return written.get(str(word), written.get(str(word).lower(), FOREIGN))
        if isinstance(word, int | float | Decimal):
            number = Decimal(int(word)) if isinstance(word, bool) else Decimal(str(word))
            if numbers:
                return written.get(str(word), numbers.get(number, FOREIGN))
            known = numbered and 0 <= number < len(labels) and number == int(number)
            return int(number) if known else FOREIGN
        return written.get(str(word), FOREIGN)

    return read


def _quick(column: pa.Array, labels: Sequence[Label]) -> Any:
    """Numbers as numpy has them, gaps filled with something of the domain; other columns as they are."""
    if pa.types.is_integer(column.type):
        filler = labels[0] if isinstance(labels[0], int) else 0
        return (column.fill_null(filler) if column.null_count else column).to_numpy(zero_copy_only=False)
    return column.to_numpy(zero_copy_only=False) if pa.types.is_floating(column.type) else column


def _text_reading(labels: Sequence[Label], numbered: bool) -> Callable[[str], int]:
    """How the cells of a CSV are read: as they are written; where a label is a whole number, or none, by number.

    A label that is a text is only itself: 007 is not 7.

    >>> read = _text_reading([7, 8], True)
    >>> [read(cell) for cell in ("7", " 8.00 ", "07", "9", "7_0")]
    [0, 1, 0, -2, -2]
    """
    written = {str(label): code for code, label in enumerate(labels)}
    numbers = {Decimal(label): code for code, label in enumerate(labels) if isinstance(label, int)}
    if numbered and not any(_number(name) is not None for name in written):
        numbers = {Decimal(code): code for code in range(len(labels))}

    def read(cell: str) -> int:
        word = cell.strip()
        found = written.get(cell, written.get(word))
        if found is None and numbers and _PLAIN_NUMBER.fullmatch(word):
            found = numbers.get(Decimal(word))
        return FOREIGN if found is None else found

    return read


def _number(text: str) -> Decimal | None:
    """The number that a text is, if it is one."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
