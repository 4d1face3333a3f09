"""Codes of values and numbers of reports, checked once before they reach a sampler or a counter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from priorveil.errors import ForeignReport, InvalidInput, OutsideDomain
from priorveil.mechanisms import kernels

Codes = npt.NDArray[np.int64]


def checked_codes(codes: npt.ArrayLike, size: int) -> Codes:
    """Codes as a contiguous array of 64-bit integers, each in `0 .. size - 1`.

    >>> checked_codes([0, 2], 3)
    array([0, 2])
    >>> checked_codes([0, 3], 3)
    Traceback (most recent call last):
    priorveil.errors.OutsideDomain: values[1] is outside the domain (codes 0 to 2): \
correct or remove it before privatising
    """
    array = _integers("values", codes)
    row = _first_outside(array, size)
    if row is not None:
        raise OutsideDomain(row, f"codes 0 to {size - 1}")
    return np.ascontiguousarray(array, dtype=np.int64)


def checked_reports(reports: npt.ArrayLike, size: int) -> Codes:
    """Reports that are numbers, each in `0 .. size - 1`; anything else was made elsewhere.

    >>> checked_reports([1, 0], 2)
    array([1, 0])
    """
    array = _integers("reports", reports)
    row = _first_outside(array, size)
    if row is not None:
        raise ForeignReport(f"reports[{row}]", int(array[row]), f"this mechanism reports 0 to {size - 1}")
    return np.ascontiguousarray(array, dtype=np.int64)


def report_counts(reports: npt.ArrayLike, size: int) -> Codes:
    """How often each of `size` reports came; a foreign one raises.

    >>> report_counts([1, 0, 1], 3)
    array([1, 2, 0])
    """
    array = _integers("reports", reports)
    loop = kernels.fast(kernels.count_codes, array.size)
    if loop is None:
        return np.bincount(checked_reports(array, size), minlength=size).astype(np.int64, copy=False)
    counts = np.zeros(size + 1, dtype=np.int64)
    loop(np.ascontiguousarray(array, dtype=np.int64), counts)
    if counts[size]:
        checked_reports(array, size)
    return counts[:size]


def _integers(argument: str, values: npt.ArrayLike) -> npt.NDArray[np.integer]:
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInput(
            argument, f"{array.dtype} array of shape {array.shape}", "give a column of integers"
        )
    return array


def _first_outside(array: npt.NDArray[np.integer], size: int) -> int | None:
    """The first row that is not in `0 .. size - 1`; two fast passes when there is none."""
    if array.size == 0 or (int(array.min()) >= 0 and int(array.max()) < size):
        return None
    return int(np.argmax((array < 0) | (array >= size)))
