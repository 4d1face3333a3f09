"""Reports in a column of a table: integers, or rows of words as bytes; in a CSV, their text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.frames import Column, Indices, distinct, present_rows, pyarrow
from priorveil.mechanisms.interface import FROM_PRIVATIZE
from priorveil.mechanisms.randomness import WORD, Words
from priorveil.plans.form import Form
from priorveil.priors.domain import MISSING_ENTRY
from priorveil.tables.refusals import FOREIGN

# The columns of a table of reports.
REPORT, REPORT_ID, PLAN, FORM = "report", "report_id", "plan", "form"

_DIGITS = re.compile(r"[0-9]{1,18}")
_HEX = re.compile(r"[0-9a-fA-F]*")
_EXACT = 2.0**53  # up to here every whole number is a float

Parsed = tuple[Words, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class ReportFormat:
    """How the reports of a form are written in a column, and the id that names the form there.

    They are rows of so many 64-bit words as little-endian bytes; the reports of a single plan may also be whole
    numbers, and their `width` is 0. As text they are two hexadecimal digits for each byte, or decimal digits.
    """

    form: Form
    id: str
    width: int

    def read(self, column: Column) -> tuple[Words, dict[str, Indices]]:
        """The reports of a column that the form can have made, and the indices of the others by reason.

        >>> import priorveil as pv
        >>> plan = pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Histogram())
        >>> reports, refused = ReportFormat(Form.of("x", plan), plan.id, 0).read(["0", None, "1", "7"])
        >>> reports.tolist(), {reason: indices.tolist() for reason, indices in refused.items()}
        ([[0], [1]], {'missing': [1], 'foreign': [3]})
        """
        words, readable, present = _arrow_reports(column, self.width) or _parse_reports(column, self.width)
        accepted = self.form.accepts(words)
        if len(words) == len(column) and accepted.all():
            return words, {}
        valid = np.zeros(len(column), dtype=bool)
        valid[readable] = accepted
        refused = {MISSING_ENTRY: np.flatnonzero(~present), FOREIGN: np.flatnonzero(present & ~valid)}
        return words[accepted], {reason: indices for reason, indices in refused.items() if indices.size}

    def write(self, words: Words) -> npt.NDArray[Any]:
        """Reports as a column: whole numbers, or rows of words."""
        return words if self.width else words.view(np.int64)[:, 0]


def _arrow_reports(column: Column, width: int) -> Parsed | None:
    """The reports of an Arrow column of the type that they are written with, as rows of words, without a copy.

    With them, the rows that have a readable report and those that are not missing; None for other columns.
    """
    if isinstance(column, list):
        return None
    pa = pyarrow()
    kind, present = column.type, present_rows(column)
    whole = column.drop_null() if column.null_count else column
    if not width and pa.types.is_integer(kind):
        numbers = number_buffer(whole, kind.to_pandas_dtype(), 1).astype(np.int64, copy=False)
        return numbers.view(WORD), present, present
    if width and kind in (pa.binary(), pa.large_binary(), pa.binary(8 * width)):
        try:
            rows = whole.cast(pa.binary(8 * width))
        except pa.ArrowInvalid:  # some entries have another length
            return None
        return number_buffer(rows, WORD, width), present, present
    return None


def number_buffer(column: Any, dtype: Any, width: int) -> npt.NDArray[Any]:
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
        expected = "bytes" if width else "whole numbers"
        advice = f"a column of {wrong.pop().__name__}; this plan reports {expected}; {FROM_PRIVATIZE}"
        raise InvalidInput("reports", NOT_SHOWN, advice)
    parsed = [_parse_bits(word, width) if width else _parse_number(word) for word in words]
    entries: list[Any] = [report for report in parsed if report is not None]
    if width:
        reports = np.frombuffer(b"".join(entries), WORD).reshape(-1, width)
    else:
        reports = np.array(entries, np.int64).view(WORD).reshape(-1, 1)
    is_readable = np.array([report is not None for report in parsed] + [False])
    position = np.cumsum(is_readable) - 1
    readable = is_readable[indices]
    return reports[position[indices[readable]]], readable, indices >= 0


def _parse_number(word: str | float) -> int | None:
    if isinstance(word, str):
        return int(word) if _DIGITS.fullmatch(word) else None
    return int(word) if abs(word) < _EXACT and word == int(word) else None


def _parse_bits(word: str | bytes, width: int) -> bytes | None:
    if isinstance(word, str):
        return bytes.fromhex(word) if len(word) == 16 * width and _HEX.fullmatch(word) else None
    return word if len(word) == 8 * width else None
