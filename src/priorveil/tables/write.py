"""Tables of reports as CSV, Parquet or Arrow files. A file appears when all of it is written, or not at all."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from priorveil.atomic_files import atomic_write
from priorveil.device.wire import ID_BYTES
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.frames import Column, distinct, pyarrow
from priorveil.priors.domain import Codes
from priorveil.tables.reports import REPORT, REPORT_ID

Format = Literal["parquet", "csv", "arrow"]
Columns = Mapping[str, Column | npt.NDArray[Any]]  # also integers, or rows of bytes

_ENDINGS = {"parquet": (".parquet", ".pq"), "csv": (".csv", ".csv.gz"), "arrow": (".arrow",)}


def format_of(path: Path) -> Format:
    """The format that the ending of a file name stands for.

    >>> format_of(Path("reports.csv"))
    'csv'
    """
    for kind, endings in _ENDINGS.items():
        if path.name.lower().endswith(endings):
            return cast(Format, kind)
    names = ", ".join(ending for endings in _ENDINGS.values() for ending in endings)
    raise InvalidInput("out", str(path), f"give a name that ends in {names}")


def report_schema(kept: Mapping[str, Any], ids: bool, made_by: str, report_type: Any) -> Any:
    """The Arrow schema of reports, next to kept columns of these types (None: text)."""
    pa = pyarrow()
    fields = [pa.field(REPORT_ID, pa.binary(ID_BYTES))] if ids else []
    fields += [pa.field(name, pa.string() if kind is None else kind) for name, kind in kept.items()]
    return pa.schema([*fields, id_field(made_by), pa.field(REPORT, report_type, nullable=False)])


def report_type(width: int | None) -> Any:
    """The Arrow type of reports of so many words, 0 for whole numbers; None for bytes of any length."""
    pa = pyarrow()
    return pa.int64() if width == 0 else pa.binary(8 * width if width else -1)


def id_field(name: str) -> Any:
    """A column of ids of plans or forms. A dictionary holds each id once; without gaps it costs little time to read."""
    pa = pyarrow()
    return pa.field(name, pa.dictionary(pa.int32(), pa.string()), nullable=False)


def id_column(numbers: Codes, ids: Sequence[str], as_text: bool) -> Column:
    """The ids with these numbers: as text, or as an Arrow array."""
    if as_text:
        return [ids[number] for number in numbers.tolist()]
    different = list(dict.fromkeys(ids))
    indices = np.array([different.index(name) for name in ids], dtype=np.int32)[numbers]
    return pyarrow().DictionaryArray.from_arrays(indices, different)


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
        kind = pa.binary(column.itemsize * column.shape[1])
        rows = pa.FixedSizeBinaryArray.from_buffers(kind, len(column), [None, data])
        return rows if kind == field.type else rows.cast(field.type)
    try:
        if isinstance(column, list | np.ndarray):
            return pa.array(column, field.type)
        return column.cast(field.type)
    except pa.ArrowException:  # its message shows an entry
        kinds = f"of {getattr(column, 'type', 'text')} here and of {field.type} in the first file"
        raise InvalidInput("keep", field.name, f"this column is {kinds}: give it one type") from None


@contextmanager
def open_output(out: Path | Any, kind: Format, replace: bool) -> Iterator[Any]:
    """Open the file to write, which appears when all of it is written (a CSV in gzip if its name ends in .gz).

    An `out` that is a stream gets all or nothing, too: until then it is a temporary file.
    """
    if isinstance(out, Path):
        packed = kind == "csv" and out.suffix.lower() == ".gz"
        with (
            atomic_write(out, replace) as plain,
            gzip.GzipFile(fileobj=plain, mode="wb", mtime=0) if packed else nullcontext(plain) as file,
        ):
            yield file
    else:
        with tempfile.TemporaryFile() as draft:
            yield draft
            draft.seek(0)
            shutil.copyfileobj(draft, out)


def write_csv(names: Sequence[str], batches: Iterable[Columns], file: Any) -> None:
    """Write a CSV to an open binary file."""
    unwritten = ",".join(map(_cell, names)) + "\n"  # until it is clear that there is a report
    for columns in batches:
        rows = zip(*(_cells(name, column) for name, column in columns.items()), strict=True)
        file.write("".join([unwritten, *(",".join(row) + "\n" for row in rows)]).encode())
        unwritten = ""
    file.write(unwritten.encode())


def _cells(name: str, column: Column | npt.NDArray[Any]) -> list[str]:
    """A column as cells of a CSV: bytes are hexadecimal digits, a gap is an empty cell, an empty text is quoted.

    >>> _cells("x", ["a", None, "", "b,c"]), _cells("x", np.array([[1, 255]], dtype=np.uint8))
    (['a', '', '""', '"b,c"'], ['01ff'])
    """
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return list(map(str, column.tolist()))
    if isinstance(column, np.ndarray):
        return column.tobytes().hex(" ", column.itemsize * column.shape[1]).split()
    if not isinstance(column, list) and pyarrow().types.is_nested(column.type):
        raise InvalidInput("out", NOT_SHOWN, f"CSV cannot hold lists such as {name!r}: write Parquet instead")
    words, indices = distinct(column)
    cells = [*map(_cell, words), ""]
    return [cells[index] for index in indices.tolist()]


def _cell(entry: Any) -> str:
    text = entry.hex() if isinstance(entry, bytes) else str(entry)
    quoted = not text or text != text.strip() or any(mark in text for mark in '",;\t\r\n')
    return '"' + text.replace('"', '""') + '"' if quoted else text


def write_arrow(
    schema: Any, batches: Iterable[Columns], file: Any, kind: Format, random: Sequence[str]
) -> None:
    """Write Parquet or an Arrow stream to an open binary file. The columns in `random` are not worth compressing."""
    pa = pyarrow()
    others = [name for name in schema.names if name not in random]
    codecs = {name: "zstd" if name in others else "none" for name in schema.names}
    stream = pa.PythonFile(file, "w")
    with (
        pa.ipc.new_stream(stream, schema)
        if kind == "arrow"
        else pa.parquet.ParquetWriter(stream, schema, compression=codecs, use_dictionary=others)
    ) as writer:
        for columns in batches:
            writer.write_batch(to_arrow(columns, schema))
