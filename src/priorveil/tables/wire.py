"""Reports as columns: 64-bit integers for most mechanisms, fixed-size binary for unary, text in CSV.

A unary report is its little-endian bytes; in CSV they are hexadecimal digits, two for every byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput
from priorveil.mechanisms import Arc, Mechanism
from priorveil.mechanisms.randomness import WORD
from priorveil.mechanisms.reading import Counted
from priorveil.tables.arrow import pa, pc
from priorveil.tables.refusals import FOREIGN, MISSING, Places

_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_EXACT = 2.0**53  # up to here every whole number is a float


@dataclass(frozen=True, eq=False)
class Sifted:
    """The reports of a column that a mechanism can have made, and the places of the others, by reason."""

    reports: npt.NDArray[Any]
    refused: dict[str, Places]


def report_type(mechanism: Mechanism) -> pa.DataType:
    """The Arrow type of the mechanism's reports."""
    return pa.binary(8 * mechanism.width) if mechanism.width else pa.int64()


def no_reports(mechanism: Mechanism) -> npt.NDArray[Any]:
    """Reports of nobody."""
    if mechanism.width:
        return np.empty((0, mechanism.width), dtype=WORD)
    return np.empty(0, dtype=np.int64)


def report_column(mechanism: Mechanism, reports: npt.NDArray[Any]) -> pa.Array:
    r"""Reports as an Arrow column.

    >>> from priorveil.mechanisms import Unary
    >>> unary = Unary(np.array([1, 1]), noise=1, noise_bits=1, drop=1)
    >>> report_column(unary, np.array([[3]], dtype=np.uint64)).to_pylist()
    [b'\x03\x00\x00\x00\x00\x00\x00\x00']
    """
    if not mechanism.width:
        return pa.array(reports, pa.int64())
    return binary_column(np.ascontiguousarray(reports, dtype=WORD).view(np.uint8))


def binary_column(rows: npt.NDArray[np.uint8]) -> pa.Array:
    """A row of bytes each, as a column of fixed-size binary."""
    kind = pa.binary(rows.shape[1])
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])


def hex_column(column: pa.Array) -> pa.Array:
    """Fixed-size binary as text.

    >>> hex_column(binary_column(np.array([[1, 255]], dtype=np.uint8))).to_pylist()
    ['01ff']
    """
    rows = _fixed_rows(column, column.type.byte_width)
    text = np.stack([_DIGITS[rows >> 4], _DIGITS[rows & 15]], axis=-1).reshape(len(rows), -1)
    ends = np.arange(len(rows) + 1, dtype=np.int64) * text.shape[1]
    return pa.LargeStringArray.from_buffers(len(rows), pa.py_buffer(ends), pa.py_buffer(text))


def sift(mechanism: Mechanism, column: pa.Array) -> Sifted:
    """Read a column of reports; what is missing or foreign is set aside.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Histogram())
    >>> found = sift(plan.mechanism, pa.array([0, None, 1, 7]))
    >>> found.reports.tolist(), {why: rows.tolist() for why, rows in found.refused.items()}
    ([0, 1], {'missing': [1], 'foreign': [3]})
    """
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if mechanism.width:
        reports, readable = _words(plain, mechanism.width)
    else:
        reports, readable = _numbers(plain)
        if len(reports) == len(plain) and _all_own(mechanism, reports):
            return Sifted(reports, {})
    accepted = mechanism.accepts(reports)
    if len(reports) == len(plain) and accepted.all():
        return Sifted(reports, {})
    missing, known = ~present(plain), np.zeros(len(plain), dtype=bool)
    known[readable] = accepted
    refused = {MISSING: np.flatnonzero(missing), FOREIGN: np.flatnonzero(~missing & ~known)}
    return Sifted(reports[accepted], {why: rows for why, rows in refused.items() if rows.size})


def _all_own(mechanism: Mechanism, reports: npt.NDArray[np.int64]) -> bool:
    """Whether all are reports of a mechanism that makes the numbers below `outputs`: one quick look.

    Negative numbers are the largest, read without their sign.
    """
    if not isinstance(mechanism, Counted | Arc):
        return False
    return int(reports.view(np.uint64).max(initial=0)) < mechanism.outputs


def _numbers(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The whole numbers of a column, and the rows that have one."""
    if pa.types.is_integer(column.type):
        whole = column.drop_null() if column.null_count else column
        return _held(whole).astype(np.int64, copy=False), present(column)
    if pa.types.is_floating(column.type):
        floats = column.to_numpy(zero_copy_only=False)
        readable = (np.abs(floats) < _EXACT) & (np.floor(floats) == floats)
        return floats[readable].astype(np.int64), readable
    if pa.types.is_null(column.type):
        return np.empty(0, dtype=np.int64), np.zeros(len(column), dtype=bool)
    texts = _texts(column, "whole numbers")
    digits = pc.match_substring_regex(texts, r"^[0-9]{1,18}$")
    readable = pc.fill_null(digits, False).to_numpy(zero_copy_only=False)
    chosen = texts if readable.all() else texts.filter(pa.array(readable))
    return _held(chosen.cast(pa.int64())), readable


def _held(column: pa.Array) -> npt.NDArray[Any]:
    """The numbers of a column without gaps, where they lie: `to_numpy` would load pandas if it is there."""
    if len(column) == 0:
        return np.empty(0, dtype=column.type.to_pandas_dtype())
    held = np.frombuffer(column.buffers()[1], dtype=column.type.to_pandas_dtype())
    return held[column.offset : column.offset + len(column)]


def present(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which rows of a column are not missing.

    >>> present(pa.array([1, None])).tolist()
    [True, False]
    """
    if not column.null_count:
        return np.ones(len(column), dtype=bool)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def _words(column: pa.Array, width: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The rows of words of a column of bytes or of hexadecimal text, and the rows that have them."""
    if pa.types.is_null(column.type):
        return np.empty((0, width), dtype=WORD), np.zeros(len(column), dtype=bool)
    if _is_binary(column.type):
        fits = pc.equal(pc.binary_length(column), 8 * width)
        readable = pc.fill_null(fits, False).to_numpy(zero_copy_only=False)
        kept = column if readable.all() else column.filter(pa.array(readable))
        return _fixed_rows(kept, 8 * width).view(WORD), readable
    texts = _texts(column, "bytes")
    # Arrow's regular expressions repeat a thing at most a thousand times, so the length is checked apart.
    fits = pc.and_(
        pc.equal(pc.binary_length(texts), 16 * width), pc.match_substring_regex(texts, "^[0-9a-fA-F]*$")
    )
    readable = pc.fill_null(fits, False).to_numpy(zero_copy_only=False)
    chosen = pc.ascii_lower(texts.filter(pa.array(readable))).cast(pa.binary())
    digits = _fixed_rows(chosen, 16 * width)
    values = np.where(digits >= ord("a"), digits - ord("a") + 10, digits - ord("0")).astype(np.uint8)
    return np.ascontiguousarray(values[:, ::2] << 4 | values[:, 1::2]).view(WORD), readable


def _fixed_rows(column: pa.Array, width: int) -> npt.NDArray[np.uint8]:
    """The bytes of a column without gaps whose entries all have this width."""
    fixed = column if pa.types.is_fixed_size_binary(column.type) else column.cast(pa.binary(width))
    if len(fixed) == 0:
        return np.empty((0, width), dtype=np.uint8)
    held = np.frombuffer(fixed.buffers()[1], dtype=np.uint8)[fixed.offset * width :]
    return held[: len(fixed) * width].reshape(-1, width)


def _is_binary(kind: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _texts(column: pa.Array, wanted: str) -> pa.Array:
    if not _is_text(column.type):
        raise InvalidInput("reports", f"a column of {column.type}", f"reports of this plan are {wanted}")
    return column.cast(pa.large_string())
