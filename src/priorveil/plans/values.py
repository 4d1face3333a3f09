"""Columns of values as codes: lists, numpy, Arrow, pandas and polars columns of labels or codes.

No message here ever shows a value: it is private until it is perturbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Mask
from priorveil.csv_reader import is_number
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, OutsideDomain
from priorveil.formatting import readable_number
from priorveil.mechanisms.randomness import Source, as_source
from priorveil.priors import AttributeLabels, Label, NumberLabels
from priorveil.priors.labels import first_labels
from priorveil.priors.number_labels import MISSING, OUTSIDE

_HUGE = 1e300  # beyond every range of numbers; a larger whole number may not fit into a float

Codes = Ints
Column = Sequence[Any] | npt.NDArray[Any] | Any  # also what pyarrow, pandas and polars call a column


def codes_of(
    values: Column,
    labels: Sequence[Label],
    missing: Literal["refuse", "pass"] = "refuse",
    source: Source | None = None,
) -> tuple[Codes, Mask | None]:
    """The codes of a column of labels (or of codes), and which rows are missing.

    Integers are codes, unless some labels are integers themselves. Whole floats are codes too (a column with gaps has
    floats), unless a label is the text of a number: they might be meant for that label. For `NumberLabels` every number
    is a number, never a code; `source` (default: the operating system) gives the words for random rounding.
    With `missing="refuse"` a gap is an error and the mask is None; with "pass" its row gets code 0 and is marked in the
    mask.

    >>> codes_of(["no", "yes"], ["yes", "no"])
    (array([1, 0]), None)
    >>> codes_of(["no", None], ["yes", "no"], missing="pass")
    (array([1, 0]), array([False,  True]))
    """
    if missing not in ("refuse", "pass"):
        raise InvalidInput("missing", missing, "choose 'refuse' or 'pass'")
    codes = _encode(values, labels, as_source(source))
    foreign = np.flatnonzero(codes == OUTSIDE)
    if foreign.size:
        raise OutsideDomain(int(foreign[0]), describe_domain(labels))
    absent = codes == MISSING
    if missing == "pass":
        return np.where(absent, 0, codes), absent
    if absent.any():
        advice = "a value is missing: fill it in or leave it out"
        hint = Hint("missing", "pass", purpose="to keep it missing")
        raise InvalidInput(f"values[{int(np.argmax(absent))}]", None, advice, hint)
    return codes, None


def is_single(values: Any, labels: Sequence[Label] = ()) -> bool:
    """Whether this is one value, also a missing one, rather than a column of them.

    Where labels are tuples, a tuple of anything else is one value.

    >>> is_single("yes"), is_single(None), is_single(1.0), is_single(["yes"])
    (True, True, True, False)
    >>> is_single(("old", "yes"), [("old", "yes"), ("old", "no")])
    True
    """
    if isinstance(values, tuple) and _are_tuples(labels):
        return not any(isinstance(entry, tuple | list) for entry in values)
    if isinstance(values, np.ndarray):
        return values.ndim == 0
    is_table = hasattr(values, "column_names")  # of Arrow
    return isinstance(values, str | bytes) or not (isinstance(values, Iterable) or is_table)


def _attribute_rows(values: Any, names: Sequence[str]) -> Any:
    """The columns of all attributes, found by name in a mapping or a data frame, as tuples; anything else as it is.

    >>> _attribute_rows({"age": ["old", "young"], "smokes": ["yes", "no"]}, ("age", "smokes"))
    [('old', 'yes'), ('young', 'no')]
    """
    found = values if isinstance(values, Mapping) else getattr(values, "columns", None)
    present = getattr(values, "column_names", found)  # Arrow
    if present is None:
        return values
    if absent := [name for name in names if name not in present]:
        raise InvalidInput("values", NOT_SHOWN, f"column {absent[0]} is missing; give {', '.join(names)}")
    columns = [c.to_pylist() if hasattr(c, "to_pylist") else c for c in (values[name] for name in names)]
    if any(map(is_single, columns)) or len(set(map(len, columns))) > 1:
        advice = f"give columns of the same length; for one person a tuple ({', '.join(names)})"
        raise InvalidInput("values", NOT_SHOWN, advice)
    return list(zip(*columns, strict=True))


def _encode(values: Any, labels: Sequence[Label], source: Source) -> Codes:
    """The codes of a column; -1 where a value is missing, -2 where it is outside the domain."""
    if isinstance(labels, AttributeLabels):
        values = _attribute_rows(values, labels.names)
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), MISSING, _encode(values.data, labels, source))
    if hasattr(values, "to_arrow"):  # polars
        values = values.to_arrow()
    if hasattr(values, "to_pylist"):  # pyarrow: with gaps its integers would become floats
        values = values.to_pylist() if values.null_count else values.to_numpy(zero_copy_only=False)
    elif hasattr(values, "to_numpy"):  # pandas
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim == 2 and _are_tuples(labels):
            return _encode_objects(values.tolist(), labels)
        if values.ndim != 1:
            raise InvalidInput("values", NOT_SHOWN, f"shape {values.shape}; give one column of values")
        if isinstance(labels, NumberLabels) and values.dtype.kind in "iuf":
            return labels.codes(values.astype(np.float64), source.words)
        if values.dtype.kind in "iu" and (_are_positions(labels) or not _has_numbers(labels)):
            return np.where((values >= 0) & (values < len(labels)), values, OUTSIDE).astype(np.int64)
        values = values.tolist()
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        advice = f"type {type(values).__name__}; give one label or code, or a column of them"
        raise InvalidInput("values", NOT_SHOWN, advice)
    if isinstance(labels, NumberLabels):
        return labels.codes(_as_floats(list(values)), source.words)
    return _encode_objects(list(values), labels)


def _as_floats(values: list[Any]) -> Array:
    """The numbers as floats, NaN where one is missing; an error for anything else."""
    for row, value in enumerate(values):
        number = isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)
        if not number and not is_missing(value):
            raise InvalidInput(f"values[{row}]", NOT_SHOWN, f"type {type(value).__name__}; give a number")
    # as numbers of Python: 1e300 is too large for a float32
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return np.array([np.nan if is_missing(v) else float(min(max(v, -_HUGE), _HUGE)) for v in plain])


def _encode_objects(values: list[Any], labels: Sequence[Label]) -> Codes:
    index: dict[Any, int] = {label: code for code, label in enumerate(labels)}
    if _are_tuples(labels):
        values = [tuple(value) if isinstance(value, list) else value for value in values]
    if not _has_numbers(labels):
        # True and False equal 1 and 0 in Python, but they are not codes.
        ambiguous = (bool, np.bool_, *([float] if _has_texts_of_numbers(labels) else []))
        values = [OUTSIDE if isinstance(v, ambiguous) and v == v else v for v in values]
        index.update({code: code for code in range(len(labels))})
    try:
        codes = np.array([index.get(v, OUTSIDE) for v in values], dtype=np.int64)
    except TypeError as error:
        advice = "some entries are not hashable; give labels or codes"
        raise InvalidInput("values", NOT_SHOWN, advice) from error
    for row in np.flatnonzero(codes == OUTSIDE):
        if is_missing(values[row]):
            codes[row] = MISSING
    return codes


def is_missing(value: Any) -> bool:
    """Whether this is what Python, numpy or pandas write for a missing value, or a tuple with one."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, tuple):
        return any(map(is_missing, value))
    return isinstance(value, float | Decimal) and value != value


def _has_numbers(labels: Sequence[Label]) -> bool:
    return any(isinstance(label, int | float) for label in labels)


def _are_tuples(labels: Sequence[Label]) -> bool:
    return any(isinstance(label, tuple) for label in labels)


def _has_texts_of_numbers(labels: Sequence[Label]) -> bool:
    """Whether a label is the text of a number other than its own code."""
    texts = ((code, label) for code, label in enumerate(labels) if isinstance(label, str))
    return any(is_number(text) and float(text) != code for code, text in texts)


def _are_positions(labels: Sequence[Label]) -> bool:
    return tuple(labels) == tuple(range(len(labels)))


def describe_domain(labels: Sequence[Label]) -> str:
    """The range of numbers, or the first few labels, which are public."""
    if isinstance(labels, NumberLabels):
        return f"numbers from {readable_number(labels.bounds[0])} to {readable_number(labels.bounds[-1])}"
    if _are_positions(labels):
        return f"0 to {len(labels) - 1}"
    return first_labels(labels)
