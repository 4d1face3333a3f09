"""Columns of a table, and the codes of the values in them.

A column of a CSV is a list of texts, with None where a cell is missing. Every other column is an Arrow array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import NOT_SHOWN, InvalidInput, needs_extra
from priorveil.mechanisms.randomness import Source, as_source
from priorveil.plans.values import Codes
from priorveil.priors import AttributeLabels, Label, NumberLabels
from priorveil.priors.labels import label_parts
from priorveil.tables.refusals import LEFT_OUT, NOT_A_NUMBER, OUTSIDE, SPELLING

Column = list[str | None] | Any  # of a CSV, or an Arrow array
Indices = npt.NDArray[np.int64]  # of rows in a batch, counted from 0

ABSENT, OUTSIDE_DOMAIN = -1, -2  # instead of the code of a value

_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
# What does not matter in a spelling: hyphens between letters, and all marks but the signs of ranges and numbers.
_PUNCTUATION = re.compile(r"[^\w<>=≤≥+±-]|_|(?<=[^\W\d_])-(?=[^\W\d_])")


@cache
def pyarrow() -> Any:
    """The Arrow library, which everything except CSV needs."""
    with needs_extra("tables"):
        import pyarrow.parquet
    return pyarrow


def take(column: Column, indices: Indices) -> Column:
    """Some rows of a column, by ascending indices."""
    if len(indices) == len(column):
        return column
    if isinstance(column, list):
        return [column[index] for index in indices.tolist()]
    return column.take(pyarrow().array(indices))


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
    if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        column = column.dictionary_decode()  # the dictionary holds the gap itself
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    indices = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return encoded.dictionary.drop_null().to_pylist(), indices


def holds_only(column: Column, entry: str) -> bool:
    """Whether every row is this text, for columns where that is quick to check; False for others.

    >>> holds_only(["a", "a"], "a"), holds_only(["a", None], "a")
    (True, False)
    """
    if isinstance(column, list):
        return column.count(entry) == len(column)
    dictionary = column.dictionary if pyarrow().types.is_dictionary(column.type) else None
    return dictionary is not None and not column.null_count and dictionary.to_pylist() == [entry]


def look_up(column: Column, code: Callable[[Any], int], missing: int) -> Codes:
    """`code` of every entry, called once for each different one; `missing` for the gaps.

    >>> look_up(["a", None, "bb", "a"], len, 0).tolist()
    [1, 0, 2, 1]
    """
    words, indices = distinct(column)
    return np.asarray(np.array([*map(code, words), missing], dtype=np.int64)[indices])


def present_rows(column: Any) -> npt.NDArray[np.bool_]:
    """Which rows of an Arrow column are not missing."""
    if not column.null_count:
        return np.ones(len(column), dtype=bool)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


# -- values ------------------------------------------------------------------------------------------------


def value_codes(column: Column, labels: Sequence[Label], source: Source | None = None) -> Codes:
    """The codes of a column of values; -1 where one is missing, -2 where it is outside the domain.

    A value is the label that is written the same way; this holds for dates, decimals and truth values too. Numbers
    are never codes of other labels: nobody would notice if 1 stood for "yes" in the table and for "no" in the plan.
    Spaces around a text do not matter. For a prior of numbers a value is the number that is written; `source` gives the
    words for random rounding.

    >>> value_codes(["no ", None, "maybe", "1"], ["yes", "no"]).tolist()
    [1, -1, -2, -2]
    >>> value_codes(["7.00", "08", "8.5"], [7, 8]).tolist()
    [0, 1, -2]
    >>> import pyarrow as pa
    >>> value_codes(pa.array([1.0, 0.5, 0.0]), ["0.5", "1.0"]).tolist()
    [1, 0, -2]
    """
    if isinstance(labels, NumberLabels):
        return _number_codes(column, labels, as_source(source))
    numbered = tuple(labels) == tuple(range(len(labels)))
    if isinstance(column, list) or not numbered or not pyarrow().types.is_integer(column.type):
        return look_up(column, _entry_codes(labels), ABSENT)
    numbers = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    inside = numbers.view(np.uint64) < len(labels)  # negative numbers become huge
    codes = numbers if inside.all() else np.where(inside, numbers, OUTSIDE_DOMAIN)
    return codes if not column.null_count else np.where(present_rows(column), codes, ABSENT)


def cell_codes(parts: Sequence[Column], labels: Sequence[Label], source: Source | None = None) -> Codes:
    """The codes of values in several columns, one for each attribute; of a single column, its `value_codes`.

    A value is missing if one of its levels is, and outside the domain if its cell was left out.

    >>> labels = AttributeLabels.of([("old", 1), ("old", 2), ("young", 2)], ("age", "dose"))
    >>> cell_codes([["young", "old", "young", None], ["2", "1", "1", "1"]], labels).tolist()
    [2, 0, -2, -1]
    """
    if not isinstance(labels, AttributeLabels):
        return value_codes(parts[0], labels, source)
    levels = list(labels.levels.values())
    given = np.stack([value_codes(part, level) for part, level in zip(parts, levels, strict=True)])
    sizes = [len(level) for level in levels]
    places = [[level.index(cell[i]) for cell in labels] for i, level in enumerate(levels)]
    own = np.ravel_multi_index(places, sizes)
    order = np.argsort(own)
    cells = np.ravel_multi_index(np.maximum(given, 0), sizes)
    codes = order[np.minimum(np.searchsorted(own[order], cells), len(own) - 1)]
    inside = (own[codes] == cells) & (given >= 0).all(axis=0)
    found = np.where(inside, codes, OUTSIDE_DOMAIN)
    return np.where((given == ABSENT).any(axis=0), ABSENT, found).astype(np.int64)


def _number_codes(column: Column, labels: NumberLabels, source: Source) -> Codes:
    """The codes of a column of numbers, which may be written as text."""
    entries, rows = distinct(column)
    found = [_number(str(entry).strip()) for entry in entries]
    numbers = np.array([*(np.nan if number is None else float(number) for number in found), np.nan])
    foreign = [number is None and entry == entry for number, entry in zip(found, entries, strict=True)]
    codes = labels.codes(numbers[rows], source.words)
    return np.where(np.array([*foreign, False])[rows], OUTSIDE_DOMAIN, codes)


def _entry_codes(labels: Sequence[Label]) -> Callable[[Any], int]:
    """A function from an entry to its code: by its text, or else by its value if it is a number.

    A text has the value of a number only where labels are integers: the label "007" is not 7.

    >>> import datetime, math
    >>> code = _entry_codes(["1.50", "2024-05-01", "true"])
    >>> [code(entry) for entry in (1.5, Decimal("1.5"), datetime.date(2024, 5, 1), True, 0, math.nan)]
    [0, 0, 1, 2, -2, -1]
    >>> code = _entry_codes([7, 8])
    >>> [code(cell) for cell in ("7", " 8.00 ", "07", "9", "7_0")]
    [0, 1, 0, -2, -2]
    """
    names = {str(label): code for code, label in enumerate(labels)}
    written = {name.strip(): code for name, code in names.items()} | names
    numbers: dict[Decimal | None, int] = {}
    for name, code in names.items():
        number = _number(name)
        if number is not None:  # "1" and "1.0" differ only in how they are written
            numbers[number] = OUTSIDE_DOMAIN if number in numbers else code
    integers = numbers if any(isinstance(label, int) for label in labels) else {}

    def code_of(entry: Any) -> int:
        if entry != entry:
            return ABSENT
        text, is_bool = str(entry), isinstance(entry, bool)
        other_text = text.lower() if is_bool else text.strip()
        number = Decimal(entry) if is_bool else _number(other_text)
        by_value = integers if isinstance(entry, str | bool) else numbers
        return written.get(text, written.get(other_text, by_value.get(number, OUTSIDE_DOMAIN)))

    return code_of


def _number(text: str) -> Decimal | None:
    """The number that a text stands for; None if it is not a number."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def outside_reasons(parts: Sequence[Column], labels: Sequence[Label]) -> npt.NDArray[Any]:
    """Why each of these values is outside the domain.

    Another spelling of a label has other capitals, spaces or punctuation. Numbers have one spelling: -5 is not +5.

    >>> outside_reasons([["YES!", ">50K"]], ["yes", "<=50K"]).tolist()
    ['another spelling of a value', 'outside the domain']
    """
    if not len(parts[0]):
        return np.array([], object)
    entries = [distinct(part) for part in parts]
    if isinstance(labels, NumberLabels):
        ((words, rows),) = entries
        numbers = (_number(str(word).strip()) for word in words)
        return np.array([NOT_A_NUMBER if number is None else OUTSIDE for number in numbers], object)[rows]
    known = {tuple(map(_spelling, label_parts(label))) for label in labels}
    spellings = [np.array([*map(_spelling, words)], object)[rows] for words, rows in entries]
    cells = zip(*spellings, strict=True)
    reasons = np.array([SPELLING if cell in known else OUTSIDE for cell in cells], object)
    if isinstance(labels, AttributeLabels):
        levels = zip(parts, labels.levels.values(), strict=True)
        reasons[np.all([value_codes(part, level) >= 0 for part, level in levels], axis=0)] = LEFT_OUT
    return reasons


def _spelling(level: Any) -> str:
    """The letters, digits and signs of a level, without capitals; a text without letters as it is."""
    text = str(level)
    return _PUNCTUATION.sub("", text.casefold()) if any(map(str.isalpha, text)) else text
