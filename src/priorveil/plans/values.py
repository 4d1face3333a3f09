"""Columns of values as codes: numpy, Arrow, pandas and polars columns, labels or codes, with or without gaps.

No message here ever shows a value: it is private until it is perturbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, OutsideDomain
from priorveil.priors import Label

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Column = Sequence[Any] | npt.NDArray[Any] | Any  # also what pyarrow, pandas and polars call a column

_ABSENT, _FOREIGN = -1, -2
_LARGE = 2**63


def codes_of(
    values: Column, labels: Sequence[Label], missing: Literal["refuse", "pass"] = "refuse"
) -> tuple[Codes, Mask | None]:
    """The codes of a column of labels (or of codes), and which rows are missing.

    Whole numbers are codes, unless some labels are whole numbers themselves. As floats (columns with gaps have them
    so) they are refused where a label is the text of a number, which they might be meant for. With
    `missing="refuse"` a gap is an error; with "pass" its row gets code 0 and is marked, and the mask is None only if
    "refuse" was asked for.

    >>> codes_of(["no", "yes"], ["yes", "no"])
    (array([1, 0]), None)
    >>> codes_of(["no", None], ["yes", "no"], missing="pass")
    (array([1, 0]), array([False,  True]))
    """
    if missing not in ("refuse", "pass"):
        raise InvalidInput("missing", missing, "choose 'refuse' or 'pass'")
    codes = _coded(values, labels)
    foreign = np.flatnonzero(codes == _FOREIGN)
    if foreign.size:
        raise OutsideDomain(int(foreign[0]), _domain(labels))
    absent = codes == _ABSENT
    if missing == "pass":
        return np.where(absent, 0, codes), absent
    if absent.any():
        advice = "a value is missing: fill it in, leave it out, or choose missing='pass'"
        raise InvalidInput(f"values[{int(np.argmax(absent))}]", None, advice)
    return codes, None


def _coded(values: Column, labels: Sequence[Label]) -> Codes:
    """Codes of a column; -1 where a value is missing, -2 where it is outside the domain."""
    if hasattr(values, "to_arrow"):  # polars
        values = values.to_arrow()
    if hasattr(values, "dictionary_encode"):  # pyarrow
        return _from_arrow(values, labels)
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), _ABSENT, _coded(values.data, labels))
    column = values.to_numpy() if hasattr(values, "to_numpy") else values
    array = column if isinstance(column, np.ndarray) else _array(column)
    if array.ndim != 1:
        raise InvalidInput("values", f"shape {array.shape}", "give one column of values")
    if array.dtype.kind in "iu":
        return _from_whole(array.astype(np.int64, copy=False), labels)
    if array.dtype.kind == "f":
        return _from_floats(array, labels)
    return _looked_up(array.tolist(), labels)


def _array(column: Iterable[Any]) -> npt.NDArray[Any]:
    if isinstance(column, str | bytes | Mapping | Set) or not isinstance(column, Iterable):
        raise InvalidInput("values", type(column).__name__, "give one label or code, or a column of them")
    listed = list(column)
    if all(type(v) is int and -_LARGE < v < _LARGE for v in listed):
        return np.array(listed, dtype=np.int64)
    held = np.empty(len(listed), dtype=object)
    held[:] = listed
    return held


def _from_whole(numbers: Codes, labels: Sequence[Label]) -> Codes:
    if _plain(labels) or not any(isinstance(label, int) for label in labels):
        return np.where((numbers >= 0) & (numbers < len(labels)), numbers, _FOREIGN)
    return _looked_up(numbers.tolist(), labels)


def _from_floats(numbers: npt.NDArray[Any], labels: Sequence[Label]) -> Codes:
    """Whole numbers that came as floats, as columns with gaps do."""
    gaps = np.isnan(numbers)
    whole = np.where(gaps, 0, numbers)
    fits = (whole == np.floor(whole)) & (np.abs(whole) < 2**53)
    fits &= not _texts_of_numbers(labels)
    codes = _from_whole(np.where(fits, whole, -1).astype(np.int64), labels)
    return np.where(gaps, _ABSENT, np.where(fits, codes, _FOREIGN))


def _from_arrow(column: Any, labels: Sequence[Label]) -> Codes:
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    coded = [
        _from_dictionary(c if hasattr(c, "dictionary") else c.dictionary_encode(), labels) for c in chunks
    ]
    return np.concatenate(coded) if coded else np.empty(0, dtype=np.int64)


def _from_dictionary(chunk: Any, labels: Sequence[Label]) -> Codes:
    words = _coded(_array(chunk.dictionary.to_pylist()), labels)
    # unsigned indices cannot say -1: a gap becomes place 0 of the dictionary, and is then marked as one
    places = chunk.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    gaps = chunk.indices.is_null().to_numpy(zero_copy_only=False)
    codes: Codes = np.where(gaps, _ABSENT, np.append(words, _ABSENT)[places])
    return codes


def _looked_up(values: list[Any], labels: Sequence[Label]) -> Codes:
    index: dict[Any, int] = {label: code for code, label in enumerate(labels)}
    if not any(isinstance(label, int) for label in labels):
        # True and False equal 1 and 0, but whether True is the first or the second label nobody has said
        unclear = (bool, float) if _texts_of_numbers(labels) else bool
        values = [_FOREIGN if isinstance(v, unclear) and v == v else v for v in values]
        index.update({code: code for code in range(len(labels))})
    try:
        found = [index.get(v, _FOREIGN) for v in values]
    except TypeError as error:
        raise InvalidInput("values", "a column of unhashable things", "give labels or codes") from error
    codes = np.array(found, dtype=np.int64)
    for row in np.flatnonzero(codes == _FOREIGN):
        if _is_missing(values[row]):
            codes[row] = _ABSENT
    return codes


def _is_missing(value: Any) -> bool:
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def _texts_of_numbers(labels: Sequence[Label]) -> bool:
    """Whether a label is the text of a number other than its own code."""
    for code, label in enumerate(labels):
        if isinstance(label, str):
            with suppress(ValueError):
                if float(label) != code:
                    return True
    return False


def _plain(labels: Sequence[Label]) -> bool:
    return all(type(label) is int and label == code for code, label in enumerate(labels))


def _domain(labels: Sequence[Label]) -> str:
    if _plain(labels):
        return f"0 to {len(labels) - 1}"
    shown = ", ".join(str(label) for label in labels[:6])
    return shown + (f", ... {len(labels)} labels" if len(labels) > 6 else "")
