"""Tables of reports as CSV, Parquet or Arrow files. A file appears when all of it is written, or not at all."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput
from priorveil.files import atomic_write
from priorveil.tables.columns import PLAN_KEY, Column, pyarrow

Format = Literal["parquet", "csv", "arrow"]
Columns = Mapping[str, Column | npt.NDArray[Any]]  # also integers, or rows of bytes

_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".gz": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
}


def format_of(path: Path) -> Format:
    """The format that the name of a file asks for.

    >>> format_of(Path("reports.csv"))
    'csv'
    """
    suffix = path.suffix.lower()
    if suffix == ".gz" and _SUFFIXES.get(Path(path.stem).suffix.lower(), "csv") != "csv":
        raise InvalidInput("out", str(path), "only CSV files are compressed: leave .gz out")
    if suffix not in _SUFFIXES:
        raise InvalidInput("out", str(path), f"give a name that ends in {', '.join(_SUFFIXES)}")
    return _SUFFIXES[suffix]


def report_schema(types: Mapping[str, Any], plans: Iterable[str]) -> Any:
    """The Arrow schema of a table of reports made by these plans.

    A type is that of Arrow, None for text, or the number of bytes in a row (0 for integers).
    """
    pa = pyarrow()
    kinds = {
        name: pa.string()
        if kind is None
        else (pa.binary(kind) if kind else pa.int64())
        if isinstance(kind, int)
        else kind
        for name, kind in types.items()
    }
    return pa.schema(list(kinds.items()), metadata={PLAN_KEY: " ".join(sorted(plans)).encode()})


def to_arrow(columns: Columns, schema: Any) -> Any:
    """Columns as an Arrow batch of this schema."""
    pa = pyarrow()
    arrays = [arrow_column(column, schema.field(name)) for name, column in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def arrow_column(column: Column | npt.NDArray[Any], field: Any) -> Any:
    """A column as an Arrow array of the field's type."""
    pa = pyarrow()
    if isinstance(column, np.ndarray) and column.ndim == 2:
        data = pa.py_buffer(np.ascontiguousarray(column))
        return pa.FixedSizeBinaryArray.from_buffers(field.type, len(column), [None, data])
    if isinstance(column, list | np.ndarray):
        return pa.array(column, field.type)
    try:
        return column.cast(field.type)
    except pa.ArrowException:
        kinds = f"of {column.type} here and of {field.type} in the first file"
        raise InvalidInput("keep", field.name, f"this column is {kinds}: give it one type") from None


def write_csv(names: Sequence[str], batches: Iterable[Columns], out: Path | Any, replace: bool) -> None:
    """Write a CSV file, in gzip if the path ends in .gz; or write to an open binary stream."""
    if not isinstance(out, Path):
        _write_lines(names, batches, out)
        return
    with atomic_write(out, replace) as file:
        if out.suffix.lower() != ".gz":
            _write_lines(names, batches, file)
            return
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            _write_lines(names, batches, packed)


def _write_lines(names: Sequence[str], batches: Iterable[Columns], file: Any) -> None:
    file.write((",".join(map(_cell, names)) + "\n").encode())
    for columns in batches:
        rows = zip(*(_cells(name, column) for name, column in columns.items()), strict=True)
        file.write("".join([",".join(row) + "\n" for row in rows]).encode())


def _cells(name: str, column: Column | npt.NDArray[Any]) -> list[str]:
    """A column as cells of a CSV: bytes are hexadecimal digits, a gap is an empty cell, an empty text is quoted.

    >>> _cells("x", ["a", None, "", "b,c"]), _cells("x", np.array([[1, 255]], dtype=np.uint8))
    (['a', '', '""', '"b,c"'], ['01ff'])
    """
    if isinstance(column, np.ndarray):
        return (
            list(map(str, column.tolist())) if column.ndim == 1 else [row.tobytes().hex() for row in column]
        )
    if not isinstance(column, list) and pyarrow().types.is_nested(column.type):
        raise InvalidInput("out", "csv", f"it cannot hold lists such as {name!r}: write Parquet instead")
    return list(map(_cell, column if isinstance(column, list) else column.to_pylist()))


def _cell(entry: Any) -> str:
    if entry is None:
        return ""
    text = entry.hex() if isinstance(entry, bytes) else str(entry)
    quoted = not text or text != text.strip() or any(mark in text for mark in '",;\t\r\n')
    return '"' + text.replace('"', '""') + '"' if quoted else text


def write_arrow(
    schema: Any,
    batches: Iterable[Columns],
    out: Path | Any,
    kind: Format,
    replace: bool,
    random: Sequence[str],
) -> None:
    """Write a Parquet file or an Arrow stream. The columns in `random` are not worth compressing."""
    if not isinstance(out, Path):
        _write_batches(schema, batches, out, kind, random)
        return
    with atomic_write(out, replace) as file:
        _write_batches(schema, batches, file, kind, random)


def _write_batches(
    schema: Any, batches: Iterable[Columns], file: Any, kind: Format, random: Sequence[str]
) -> None:
    pa = pyarrow()
    stream = pa.PythonFile(file, "w")
    if kind == "arrow":
        writer = pa.ipc.new_stream(stream, schema)
    else:
        codecs = {name: "none" if name in random else "zstd" for name in schema.names}
        dictionaries = [name for name in schema.names if name not in random]
        writer = pyarrow().parquet.ParquetWriter(
            stream, schema, compression=codecs, use_dictionary=dictionaries
        )
    try:
        for columns in batches:
            writer.write_batch(to_arrow(columns, schema))
    except BaseException:
        with suppress(Exception):  # the file is thrown away, and the first error is the one to raise
            writer.close()
        raise
    writer.close()
