"""Columns of a table, in batches of rows: values, reports, the plans of cohorts, and the rows that are refused.

A column of a CSV is a list of texts, with None where a cell is missing. Every other column is an Arrow array.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, needs_extra, plural
from priorveil.mechanisms import Mechanism
from priorveil.mechanisms.randomness import WORD, Source, as_source
from priorveil.plans import Plan
from priorveil.plans.values import Codes
from priorveil.priors import AttributeLabels, Label, NumberLabels
from priorveil.priors.labels import label_parts
from priorveil.queries import require_same_statistics

Column = list[str | None] | Any  # of a CSV, or an Arrow array
Indices = npt.NDArray[np.int64]  # of rows in a batch, counted from 0
Rows = npt.NDArray[np.int64]  # counted from 0 over all the files of an input
OnRefused = Callable[[int, str], object]
Plans = Plan | Mapping[Any, Plan]

# The columns of a table of reports.
REPORT, REPORT_ID, PLAN = "report", "report_id", "plan"
ID_BYTES = 16

# Why a row is refused.
MISSING = "missing"
FOREIGN = "foreign"
OUTSIDE = "outside the domain"
SPELLING = "another spelling of a value"
LEFT_OUT = "a combination that the plan leaves out"
NOT_A_NUMBER = "not a number"
NO_PLAN = "no plan for the cohort"
OTHER_PLAN = "another plan"
BROKEN = "wrong number of columns"

ABSENT, OUTSIDE_DOMAIN = -1, -2  # instead of the code of a value

_MOST_LISTED = 1_000  # refused rows of each reason
_MOST_ROWS = 1 << 19  # in a batch
_MOST_BYTES = 1 << 25  # of reports in a batch
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_REPORT_NUMBER = re.compile(r"[0-9]{1,18}")
_HEX = re.compile(r"[0-9a-fA-F]*")
# What does not matter in a spelling: hyphens between letters, and all marks but the signs of ranges and numbers.
_PUNCTUATION = re.compile(r"[^\w<>=≤≥+±-]|_|(?<=[^\W\d_])-(?=[^\W\d_])")
_EXACT = 2.0**53  # up to here every whole number is a float


@cache
def pyarrow() -> Any:
    """The Arrow library, which everything except CSV needs."""
    with needs_extra("tables"):
        import pyarrow.parquet
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

    def refused_rows(self, indices: Mapping[str, Indices]) -> dict[str, Rows]:
        """The numbers of refused rows by reason, given their indices in the columns; broken lines included.

        >>> Batch({}, 2, first=110, broken=np.array([111])).refused_rows({"missing": np.array([0, 1])})
        {'wrong number of columns': array([111]), 'missing': array([110, 112])}
        """
        if not len(self.broken):
            return {reason: self.first + rows for reason, rows in indices.items()}
        numbers = np.delete(np.arange(self.first, self.end), self.broken - self.first)
        return {BROKEN: self.broken, **{reason: numbers[rows] for reason, rows in indices.items()}}


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


def _present_rows(column: Any) -> npt.NDArray[np.bool_]:
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
    return codes if not column.null_count else np.where(_present_rows(column), codes, ABSENT)


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


# -- reports -----------------------------------------------------------------------------------------------

Parsed = tuple[npt.NDArray[Any], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]


def read_reports(mechanism: Mechanism, column: Column) -> tuple[npt.NDArray[Any], dict[str, Indices]]:
    """The reports of a column that the mechanism can have made, and the indices of the others by reason.

    Reports are integers, or rows of bits as little-endian bytes; as text they are decimal digits, or two hexadecimal
    digits for each byte.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Histogram())
    >>> reports, refused = read_reports(plan.mechanism, ["0", None, "1", "7"])
    >>> reports.tolist(), {reason: indices.tolist() for reason, indices in refused.items()}
    ([0, 1], {'missing': [1], 'foreign': [3]})
    """
    found = _arrow_reports(column, mechanism.width)
    reports, readable, present = _parse_reports(column, mechanism.width) if found is None else found
    accepted = mechanism.accepts(reports)
    if len(reports) == len(column) and accepted.all():
        return reports, {}
    own = np.zeros(len(column), dtype=bool)
    own[readable] = accepted
    refused = {MISSING: np.flatnonzero(~present), FOREIGN: np.flatnonzero(present & ~own)}
    return reports[accepted], {reason: indices for reason, indices in refused.items() if indices.size}


def _arrow_reports(column: Column, width: int) -> Parsed | None:
    """The reports of an Arrow column of the type that they are written with, without a copy.

    With them, the rows that have a readable report and those that are not missing; None for other columns.
    """
    if isinstance(column, list):
        return None
    pa = pyarrow()
    kind, present = column.type, _present_rows(column)
    whole = column.drop_null() if column.null_count else column
    if not width and pa.types.is_integer(kind):
        return _buffer(whole, kind.to_pandas_dtype(), 1)[:, 0].astype(np.int64, copy=False), present, present
    if width and kind in (pa.binary(), pa.large_binary(), pa.binary(8 * width)):
        try:
            rows = whole.cast(pa.binary(8 * width))
        except pa.ArrowInvalid:  # some entries have another length
            return None
        return _buffer(rows, WORD, width), present, present
    return None


def _buffer(column: Any, dtype: Any, width: int) -> npt.NDArray[Any]:
    """The numbers of an Arrow column without gaps: `to_numpy` would load pandas if it is installed."""
    if len(column) == 0:
        return np.empty((0, width), dtype=dtype)
    start = column.offset * width * np.dtype(dtype).itemsize
    return np.frombuffer(column.buffers()[1], dtype, len(column) * width, start).reshape(-1, width)


def _parse_reports(column: Column, width: int) -> Parsed:
    """As `_arrow_reports`, for text and other types: each different entry is parsed once."""
    words, indices = distinct(column)
    kinds = {str, bytes} if width else {str, int, float}
    if wrong := {type(word) for word in words} - kinds:
        own = "bytes" if width else "whole numbers"
        advice = f"a column of {wrong.pop().__name__}; this plan reports {own}"
        raise InvalidInput("reports", NOT_SHOWN, advice)
    parsed = [_parse_bits(word, width) if width else _parse_number(word) for word in words]
    known: list[Any] = [report for report in parsed if report is not None]
    reports = np.frombuffer(b"".join(known), WORD).reshape(-1, width) if width else np.array(known, np.int64)
    is_known = np.array([report is not None for report in parsed] + [False])
    position = np.cumsum(is_known) - 1
    readable = is_known[indices]
    return reports[position[indices[readable]]], readable, indices >= 0


def _parse_number(word: str | float) -> int | None:
    if isinstance(word, str):
        return int(word) if _REPORT_NUMBER.fullmatch(word) else None
    return int(word) if abs(word) < _EXACT and word == int(word) else None


def _parse_bits(word: str | bytes, width: int) -> bytes | None:
    if isinstance(word, str):
        return bytes.fromhex(word) if len(word) == 16 * width and _HEX.fullmatch(word) else None
    return word if len(word) == 8 * width else None


# -- the plans of cohorts ----------------------------------------------------------------------------------


def plans_by_cohort(plan: Plans, cohort: str | None) -> dict[Any, Plan]:
    """The plans by the values of the cohort column; a single plan for everybody has the key None."""
    if isinstance(plan, Plan):
        if cohort is not None:
            raise InvalidInput("cohort", cohort, "give a plan for each value of this column: {value: plan}")
        return {None: plan}
    if cohort is None or not plan:
        advice = f"{plural(len(plan), 'plan')}; name the column that chooses the plan of a row"
        raise InvalidInput("plan", NOT_SHOWN, advice, Hint("cohort", "COLUMN"))
    if len({str(key) for key in plan}) < len(plan):
        advice = "two cohort keys have the same text (such as 1 and '1'): rename one"
        raise InvalidInput("plan", NOT_SHOWN, advice)
    if len({one.mechanism.width for one in plan.values()}) > 1:
        advice = "their reports do not fit into one column: use plans of one kind, or a table for each cohort"
        raise InvalidInput("plan", NOT_SHOWN, advice)
    statistics = ((f"cohort {key!r}", one.query.statistics(one.reference)) for key, one in plan.items())
    require_same_statistics("plan", statistics)
    return dict(plan)


def cohort_codes(batch: Batch, cohort: str | None, plans: Mapping[Any, Plan]) -> Codes:
    """The number of the plan of every row, -2 if there is none; all have the first plan without a `cohort` column.

    Values of the column are compared as they are written.

    >>> cohort_codes(Batch({"age": ["2", "1", None, "3"]}, 4), "age", {1: None, 2: None}).tolist()
    [1, 0, -2, -2]
    """
    if cohort is None:
        return np.zeros(batch.rows, dtype=np.int64)
    index = {str(key): code for code, key in enumerate(plans)}
    return look_up(batch.columns[cohort], lambda word: index.get(str(word), OUTSIDE_DOMAIN), OUTSIDE_DOMAIN)


def batch_rows(plans: Mapping[Any, Plan]) -> int:
    """Rows in a batch: many, but fewer if reports are long, so that memory stays small."""
    width = max(plan.mechanism.width for plan in plans.values())
    return max(1, min(_MOST_ROWS, _MOST_BYTES // (8 * max(width, 1))))


# -- refused rows ------------------------------------------------------------------------------------------


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
    """Every row was refused, or some although `strict` allows none, so nothing is written. Rows are counted from 0."""

    reports = 0

    def __init__(self, refused: RefusedRows) -> None:
        first = ", ".join(f"row {row} ({reason})" for row, reason in refused.rows[:5])
        advice = f"nothing is written, because rows are refused: {first}"
        super().__init__("data", plural(refused.total, "row"), advice)
        self.refused = refused


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

    def add(self, refused: Mapping[str, Rows]) -> None:
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
