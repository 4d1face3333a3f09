"""Columns and tables of any library: lists, numpy, pandas, polars, Arrow, and mappings of columns.

A column is used in one of three forms: a list of entries, a numpy array, or an Arrow array. `as_column` brings every
other column into one of them, by the protocols that libraries share (numpy's `__array__`, Arrow's C interface), so no
library is named here but Arrow, which is loaded when it is needed.

No message shows an entry: a column may be private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Mask
from priorveil.errors import NOT_SHOWN, InvalidInput, needs_extra

Library = Literal["pandas", "polars", "pyarrow"]
FRAMES: dict[Library, str] = {
    "pandas": "DataFrame",
    "polars": "DataFrame",
    "pyarrow": "table",
}  # what makes one

Column = Any  # a list, a numpy array of integers or floats, or an Arrow array
Indices = Ints  # of rows, counted from 0


@cache
def pyarrow() -> Any:
    """The Arrow library, which everything except lists and numpy needs."""
    with needs_extra("tables"):
        import pyarrow.parquet
    return pyarrow


def is_series(values: Any) -> bool:
    """Whether this is a column with a label for each entry, as a pandas Series is."""
    return all(_has(values, name) for name in ("index", "items")) and table_names(values) is None


def index_names(values: Any) -> list[str] | None:
    """The names of several attributes in the index of a pandas Series; None if it has one or none, or no names."""
    names = list(getattr(values.index, "names", ())) if is_series(values) else []
    return names if len(names) > 1 and all(isinstance(name, str) for name in names) else None


def is_arrow(values: Any) -> bool:
    """Whether this is a column or a table with Arrow's C interface, such as those of pyarrow and polars."""
    return any(_has(values, name) for name in ("__arrow_c_array__", "__arrow_c_stream__"))


def read_stream(values: Any) -> Any:
    """Data with Arrow's stream interface and without numpy's, as a pyarrow table or column; anything else as it is.

    A stream can often be read only once, so whoever takes one reads it first.
    """
    if not _has(values, "__arrow_c_stream__") or _has(values, "__array__"):
        return values
    column = pyarrow().chunked_array(values)
    return pyarrow().Table.from_struct_array(column) if pyarrow().types.is_struct(column.type) else column


def is_column(values: Any) -> bool:
    """Whether this holds entries, rather than being one."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    return not isinstance(values, str | bytes) and (
        isinstance(values, Iterable) or is_arrow(values) or table_names(values) is not None
    )


def as_column(values: Any, argument: str = "values") -> Column:
    """A column of any library as a list, a numpy array of one dimension, or an Arrow array.

    >>> as_column((1, 2)), as_column(np.ma.MaskedArray([7, 8], [False, True]))
    ([1, 2], [7, None])
    """
    values = read_stream(values)
    if not isinstance(values, Mapping) and (names := table_names(values)) is not None:
        columns = ", ".join(map(str, names))
        raise InvalidInput(argument, NOT_SHOWN, f"a table with the columns {columns}; give one of them")
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise InvalidInput(argument, NOT_SHOWN, f"type {type(values).__name__}; give a column of values")
    if is_arrow(values) and not is_series(values) and find_spec("pyarrow"):
        return _arrow_array(values, argument)
    own_types = isinstance(getattr(values, "dtype", np.dtype(object)), np.dtype)
    if _has(values, "__array__") and own_types:  # others, with gaps, might become floats
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.ndim != 1:
            raise InvalidInput(argument, NOT_SHOWN, f"shape {array.shape}; give one column of values")
        if array.dtype.kind == "M":  # Python's dates have no nanoseconds
            array = array.astype("datetime64[us]") if array.dtype != "datetime64[D]" else array
        return (
            array.tolist() if isinstance(array, np.ma.MaskedArray) or array.dtype.kind not in "iuf" else array
        )
    return list(values)


def _arrow_array(values: Any, argument: str) -> Any:
    pa = pyarrow()
    stream = _has(values, "__arrow_c_stream__")
    column = pa.chunked_array(values) if stream else pa.array(values)
    column = column.unify_dictionaries().combine_chunks() if stream else column
    if isinstance(column, pa.ChunkedArray):  # of no chunks, or too long for one
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = plain_type(column.type)
    require_flat(kind, argument)
    return column if kind == column.type else column.cast(kind)


def plain_type(kind: Any) -> Any:
    """An Arrow type without views of text and bytes, which few of Arrow's functions support."""
    pa = pyarrow()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    return {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(kind, kind)


def require_flat(kind: Any, argument: str) -> None:
    """Refuse an Arrow type whose entries have parts."""
    if pyarrow().types.is_nested(kind):
        raise InvalidInput(argument, NOT_SHOWN, f"type {kind}; choose one of text, numbers or dates")


def table_names(table: Any) -> list[str] | None:
    """The names of the columns of a data frame, an Arrow table or a mapping; None for anything else.

    >>> table_names({"age": [], "dose": []}), table_names([1, 2])
    (['age', 'dose'], None)
    """
    if isinstance(table, Mapping):
        return list(table)
    for name in ("column_names", "columns"):
        if _has(table, name):  # not `hasattr`: a pandas Series has its labels as attributes
            return list(getattr(table, name))
    return None


def table_columns(table: Any, names: Sequence[str], argument: str) -> list[Column] | None:
    """Columns of a table by name, all of one length; None if this is no table."""
    present = table_names(table)
    if present is None:
        return None
    if absent := [name for name in names if name not in present]:
        raise InvalidInput(argument, NOT_SHOWN, f"column {absent[0]} is missing; give {', '.join(names)}")
    columns = [as_column(table[name], name) for name in names if is_column(table[name])]
    if len(columns) < len(names) or len(set(map(len, columns))) > 1:
        advice = f"give columns of the same length; for one person a tuple ({', '.join(names)})"
        raise InvalidInput(argument, NOT_SHOWN, advice)
    return columns


def distinct(column: Column) -> tuple[list[Any], Ints]:
    """The different entries of a column, and for each row the index of its entry; -1 where it is missing.

    >>> distinct(["a", None, "b", "a"])
    (['a', 'b'], array([ 0, -1,  1,  0]))
    >>> distinct([True, 1, 1.0])  # equal in Python
    ([True, 1, 1.0], array([0, 1, 2]))
    """
    if isinstance(column, list | np.ndarray):
        return _distinct_objects(column if isinstance(column, list) else column.tolist())
    pa = pyarrow()
    require_flat(column.type, "column")
    if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        column = column.dictionary_decode()  # the dictionary holds the gap itself
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    indices = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return encoded.dictionary.drop_null().to_pylist(), indices


def _distinct_objects(entries: list[Any]) -> tuple[list[Any], Ints]:
    types = set(map(type, entries)) - {type(None)}
    # Entries of different types may be equal, and have different texts.
    keys: list[Any] = entries if len(types) < 2 else [None if e is None else (type(e), e) for e in entries]
    try:
        different = [key for key in dict.fromkeys(keys) if key is not None]
    except TypeError:  # some entries are lists, or other objects without a hash
        rows = np.where([entry is None for entry in entries], -1, np.arange(len(entries)))
        return entries, rows.astype(np.int64)
    index = {None: -1, **{key: at for at, key in enumerate(different)}}
    indices = np.fromiter(map(index.__getitem__, keys), dtype=np.int64, count=len(keys))
    return (different if len(types) < 2 else [entry for _, entry in different]), indices


def take(column: Column, indices: Indices) -> Column:
    """Some rows of a column, by ascending indices."""
    if len(indices) == len(column):
        return column
    if isinstance(column, list):
        return [column[index] for index in indices.tolist()]
    if isinstance(column, np.ndarray):
        return column[indices]
    return column.take(pyarrow().array(indices))


def holds_only(column: Column, entry: str) -> bool:
    """Whether every row is this text, for columns where that is quick to check; False for others.

    >>> holds_only(["a", "a"], "a"), holds_only(["a", None], "a")
    (True, False)
    """
    if isinstance(column, list):
        return column.count(entry) == len(column)
    dictionary = column.dictionary if pyarrow().types.is_dictionary(column.type) else None
    return dictionary is not None and not column.null_count and dictionary.to_pylist() == [entry]


def look_up(
    column: Column, code: Callable[[Any], Any], missing: Any, dtype: npt.DTypeLike = np.int64
) -> npt.NDArray[Any]:
    """`code` of every entry, called once for each different one; `missing` for the gaps.

    >>> look_up(["a", None, "bb", "a"], len, 0).tolist()
    [1, 0, 2, 1]
    """
    entries, indices = distinct(column)
    return np.asarray(np.array([*map(code, entries), missing], dtype=dtype)[indices])


def integers(column: Column) -> tuple[Ints, Mask | None] | None:
    """A column of an integer type as 64-bit integers, with those rows that are present; None for other columns.

    The rows are None if all are present. Integers from `2**63` on become negative.
    """
    if isinstance(column, list):
        return None
    if isinstance(column, np.ndarray):
        return (column.astype(np.int64, copy=False), None) if column.dtype.kind in "iu" else None
    if not pyarrow().types.is_integer(column.type):
        return None
    numbers = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers, present_rows(column) if column.null_count else None


def floats(column: Column) -> Array | None:
    """A column of a type of numbers as floats, NaN where one is missing; None for other columns."""
    if isinstance(column, list):
        return None
    if isinstance(column, np.ndarray):
        return column.astype(np.float64, copy=False)
    types = pyarrow().types
    if not (types.is_integer(column.type) or types.is_floating(column.type)):
        return None
    return np.asarray(column.cast(pyarrow().float64(), safe=False).to_numpy(zero_copy_only=False))


def present_rows(column: Any) -> Mask:
    """Which rows of an Arrow column are not missing."""
    if not column.null_count:
        return np.ones(len(column), dtype=bool)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


# -- frames for people to work on ------------------------------------------------------------------------------


def to_frame(columns: Mapping[str, Any], library: Library | None = None) -> Any:
    """Columns as a data frame of this library; without one, of the first that is installed.

    `library` is "pandas", "polars" or "pyarrow", in this order of preference.
    """
    if library is not None and library not in FRAMES:
        raise InvalidInput("library", library, f"choose one of {', '.join(FRAMES)}")
    installed = [name for name in FRAMES if find_spec(name)]
    if not installed:
        raise InvalidInput(
            "library", library, f"install one of {', '.join(FRAMES)}, such as pip install pandas"
        )
    library = library or installed[0]
    if library not in installed:
        raise InvalidInput(
            "library", library, f"it is not installed; choose one that is: {', '.join(installed)}"
        )
    make = getattr(import_module(library), FRAMES[library])
    return make({name: _plain_entries(column) for name, column in columns.items()})


def beside_labels(labels: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of labels, and columns of numbers after them; an error if an attribute has the name of one of these.

    >>> beside_labels({"age": ["young"]}, {"low": [0.1]})
    {'age': ['young'], 'low': [0.1]}
    """
    for name in labels:
        if name in numbers:
            raise InvalidInput("names", name, "a column of the frame has this name: rename the attribute")
    return {**labels, **numbers}


def _plain_entries(column: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
    """The entries as Python objects of one type: whole numbers among decimals become floats, other mixtures texts."""
    entries = column.tolist() if isinstance(column, np.ndarray) else list(column)
    types = {type(entry) for entry in entries if entry is not None}
    if len(types) < 2:
        return entries
    common: Callable[[Any], Any] = float if types == {int, float} else str
    return [None if entry is None else common(entry) for entry in entries]


def _has(thing: Any, name: str) -> bool:
    return hasattr(type(thing), name)
