"""Columns of values and of groups as codes, without an error for what is not among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, OutsideDomain
from priorveil.frames.arrow import pa
from priorveil.priors import Label
from priorveil.values import codes_of

Codes = npt.NDArray[np.int64]

ABSENT, FOREIGN = -1, -2


def value_codes(column: pa.Array, labels: Sequence[Label], text: bool = False) -> Codes:
    """The codes of a column of values; -1 where one is missing, -2 where it is outside the domain.

    A value is a label if it is written like one: dates, decimals and truth values too. Whole numbers are codes
    where no label looks like a number. With `text` (a CSV) numbers are text too, and spaces around them no
    matter.

    >>> value_codes(pa.array(["no", None, "maybe"]), ["yes", "no"]).tolist()
    [1, -1, -2]
    >>> value_codes(pa.array(["1", "0.0", "2"]), ["yes", "no"], text=True).tolist()
    [1, 0, -2]
    >>> value_codes(pa.array([1.0, 0.5, 0.0]), ["0.5", "1.0"]).tolist()
    [1, 0, -2]
    """
    if text:
        index = _spellings(labels)
        return looked_up(column, lambda word: index.get(word, index.get(word.strip(), FOREIGN)), ABSENT)
    if any(isinstance(label, str) and _number(label) is not None for label in labels):
        # No number is a code here, or 1.0 could be taken for one.
        return looked_up(column, _reading(labels), ABSENT)
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


def _reading(labels: Sequence[Label]) -> Callable[[Any], int]:
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
            return int(number) if 0 <= number < len(labels) and number == int(number) else FOREIGN
        return written.get(str(word), FOREIGN)

    return read


def _quick(column: pa.Array, labels: Sequence[Label]) -> Any:
    """Numbers as numpy has them, gaps filled with something of the domain; other columns as they are."""
    if pa.types.is_integer(column.type):
        filler = labels[0] if isinstance(labels[0], int) else 0
        return (column.fill_null(filler) if column.null_count else column).to_numpy(zero_copy_only=False)
    return column.to_numpy(zero_copy_only=False) if pa.types.is_floating(column.type) else column


def _spellings(labels: Sequence[Label]) -> dict[str, int]:
    """How the values of a domain may be written in a CSV.

    >>> _spellings([7, 8])
    {'7': 0, '7.0': 0, '8': 1, '8.0': 1}
    """
    found: dict[str, int] = {}
    for code, label in enumerate(labels):
        found[str(label)] = code
        if isinstance(label, int):
            found[f"{label}.0"] = code
    if not any(_number(str(label)) is not None for label in labels):
        for code in range(len(labels)):
            found[str(code)] = found[f"{code}.0"] = code
    return found


def _number(text: str) -> Decimal | None:
    """The number that a text is, if it is one."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
