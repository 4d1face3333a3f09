"""Tables out: Parquet, CSV or Arrow, whole or not at all."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Protocol

from priorveil.errors import InvalidInput
from priorveil.files import atomic_write
from priorveil.tables.arrow import csv, pa, parquet
from priorveil.tables.wire import hex_column

Format = Literal["parquet", "csv", "arrow"]

_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".gz": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
}


class Writer(Protocol):
    """What takes batches."""

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        ...

    def close(self) -> None:
        """Write the end."""
        ...


def format_of(path: Path) -> Format:
    """The format that the name of a file asks for.

    >>> format_of(Path("reports.csv"))
    'csv'
    """
    suffix = path.suffix.lower()
    if suffix == ".gz" and _SUFFIXES.get(Path(path.stem).suffix.lower(), "csv") != "csv":
        raise InvalidInput("out", str(path), "only a CSV is packed: leave .gz out")
    if suffix not in _SUFFIXES:
        raise InvalidInput("out", str(path), f"give a name that ends in {', '.join(_SUFFIXES)}")
    return _SUFFIXES[suffix]


def write_table(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    out: Path | Any,
    kind: Format,
    replace: bool = False,
    noise: Sequence[str] = (),
) -> None:
    """Write batches to a path, whole or not at all; or to an open binary stream.

    Columns named in `noise` hold random bits: it is no use to pack them.
    """
    if not isinstance(out, Path):
        _write(schema, batches, out, kind, noise)
        return
    with atomic_write(out, replace) as file:
        if kind == "csv" and out.suffix.lower() == ".gz":
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
                _write(schema, batches, packed, kind, noise)
        else:
            _write(schema, batches, file, kind, noise)


def _write(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: Any, kind: Format, noise: Sequence[str]
) -> None:
    writer = _writer(schema, pa.PythonFile(file, "w"), kind, noise)
    try:
        for batch in batches:
            writer.write_batch(as_text(batch) if kind == "csv" else batch)
    except BaseException:
        with suppress(Exception):  # the end of a file that is thrown away; the first error is the one to tell
            writer.close()
        raise
    writer.close()


def _writer(schema: pa.Schema, file: Any, kind: Format, noise: Sequence[str]) -> Writer:
    nested = [f.name for f in schema if pa.types.is_nested(f.type)]
    if kind == "csv" and nested:
        raise InvalidInput("out", "csv", f"it cannot hold lists such as {nested[0]!r}: write Parquet instead")
    if kind == "csv":
        made: Writer = csv.CSVWriter(file, _text_schema(schema))
    elif kind == "arrow":
        made = pa.ipc.new_stream(file, schema)
    else:
        packing = {name: "none" if name in noise else "zstd" for name in schema.names}
        words = [name for name in schema.names if name not in noise]
        made = parquet.ParquetWriter(file, schema, compression=packing, use_dictionary=words)
    return made


def as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    r"""A batch as a CSV has it: bytes are hexadecimal digits.

    >>> as_text(pa.record_batch({"id": pa.array([b"\x0a"], pa.binary(1)), "n": [1]})).to_pylist()
    [{'id': '0a', 'n': 1}]
    """
    columns = [hex_column(c) if pa.types.is_fixed_size_binary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=_text_schema(batch.schema))


def _text_schema(schema: pa.Schema) -> pa.Schema:
    fields = [
        pa.field(f.name, pa.large_string()) if pa.types.is_fixed_size_binary(f.type) else f for f in schema
    ]
    return pa.schema(fields)
