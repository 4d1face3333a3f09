"""Open one file, stream or frame as batches of columns.

The first bytes of a file say what it is: Parquet, Arrow (file or stream) or CSV, which may be in gzip. Each file is
opened here, and not by a data set of Arrow: that would hold whole groups of rows in memory, and take a column that a
later file lacks for gaps. It cannot read Arrow streams, open files, or CSV by our rules.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from threading import local
from typing import Any

import numpy as np

from priorveil.csv_reader import DAMAGED, Fields, is_number, read_rows
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.files.batches import Batch, OpenTable, WantedColumns
from priorveil.files.threads import in_threads, thread_count
from priorveil.frames import plain_type, pyarrow

_PARQUET, _ARROW_FILE, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
SMALL_BATCH = 1 << 16  # rows, of a CSV or of a lazy table
_BUFFER = 1 << 20  # bytes of a Parquet column read at a time
_LARGEST_GROUP = 128 << 20  # bytes of a row group, all columns, that is decoded in one step
_SAMPLE = 100  # rows of a CSV without the wanted columns that are compared with its first line


def open_file(source: Path | Any, wanted: WantedColumns, batch_rows: int) -> OpenTable:
    """Open one file, or a binary stream such as `sys.stdin.buffer`."""
    path = str(source) if isinstance(source, Path) else None
    file: Any = open(path, "rb") if path else source  # noqa: SIM115  closed below
    if not hasattr(file, "peek"):
        file = BorrowedReader(file)
    closing = file if path else nullcontext()
    with ExitStack() as failed, _name_in_errors(path or "the stream"):
        failed.enter_context(closing)
        start = file.peek(8)[:8]
        if start.startswith(_PARQUET):
            table = _open_parquet(file, path, wanted, batch_rows)
        elif start.startswith((_ARROW_FILE, _ARROW_STREAM)):
            table = _open_ipc(file, start, wanted, batch_rows)
        elif start.startswith(b"{"):
            raise InvalidInput("data", NOT_SHOWN, "JSON is not read: export the table as Parquet or CSV")
        else:
            table = _open_csv(file, path, wanted, min(batch_rows, SMALL_BATCH))
        failed.pop_all()

    def batches() -> Iterator[Batch]:
        with closing, _name_in_errors(path or "the stream"):
            yield from table.batches

    return replace(table, batches=batches())


@contextmanager
def _name_in_errors(name: str) -> Iterator[None]:
    """Name the file in its errors, which never show what is in it."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(error.argument, error.value, f"{name}: {error.advice}") from None
    except Exception as error:
        if type(error).__module__.startswith("pyarrow"):
            raise InvalidInput("data", name, DAMAGED) from None
        raise


def _open_csv(file: Any, path: str | None, wanted: WantedColumns, most: int) -> OpenTable:
    rows = (cells for _, cells in read_rows(file))
    header = [(name or "").strip() for name in next(rows, [])]
    if not any(header):
        raise InvalidInput("data", NOT_SHOWN, "the file is empty: it has no line of column names")
    if not {*wanted.columns} <= {*header} and _looks_like_data(header, islice(rows, _SAMPLE)):
        advice = "its first line looks like a row of values, so it is not shown: write the names of the columns there"
        raise InvalidInput("data", NOT_SHOWN, advice)
    names = wanted.select(header)

    def share() -> float | None:
        return None if path is None else 1.0 if file.closed else file.tell() / os.path.getsize(path)

    batches = _csv_batches(rows, len(header), {name: header.index(name) for name in names}, most)
    return OpenTable(dict.fromkeys(names), batches, share=share)


def _looks_like_data(header: Sequence[str], rows: Iterable[Fields]) -> bool:
    """Whether the first line of a CSV seems to be somebody's values: it has a number, JSON, or an entry of a row below.

    >>> _looks_like_data(["id", "pet"], [["1", "cat"]]), _looks_like_data(["1", "cat"], [])
    (False, True)
    >>> _looks_like_data(["cat"], [["dog"], ["cat"]])
    True
    """
    if any(is_number(name) or name.startswith(("{", "[")) for name in header):
        return True
    return any(
        name and name == (cell or "").strip()
        for cells in rows
        for name, cell in zip(header, cells, strict=False)
    )


def _csv_batches(
    rows: Iterator[Fields], width: int, indices: Mapping[str, int], most: int
) -> Iterator[Batch]:
    """Batches of the wanted columns. A blank line is a missing value if there is one column, and no row otherwise."""
    rows = (cells or [None] for cells in rows) if width == 1 else filter(None, rows)
    first = 0
    while part := list(islice(rows, most)):
        complete = [cells for cells in part if len(cells) == width]
        broken = [first + number for number, cells in enumerate(part) if len(cells) != width]
        columns = {name: [cells[index] for cells in complete] for name, index in indices.items()}
        yield Batch(columns, len(complete), first, np.array(broken, dtype=np.int64))
        first += len(part)


def _open_ipc(file: Any, start: bytes, wanted: WantedColumns, batch_rows: int) -> OpenTable:
    """An Arrow file or stream."""
    ipc = pyarrow().ipc
    if start.startswith(_ARROW_FILE) and file.seekable():
        reader = ipc.open_file(file)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = ipc.open_stream(file)
        batches = iter(reader)
    return _open_arrow(reader.schema, batches, wanted.select(reader.schema.names), batch_rows)


def _open_parquet(file: Any, path: str | None, wanted: WantedColumns, batch_rows: int) -> OpenTable:
    """Open a Parquet file; row groups of a file with a path are decoded in several threads, unless one is large."""
    if not file.seekable():
        advice = "this is Parquet; a pipe takes Arrow or CSV: give the path of the file"
        raise InvalidInput("data", NOT_SHOWN, advice)
    # Without these options Arrow would hold the whole column of the file in memory.
    open_again = partial(pyarrow().parquet.ParquetFile, pre_buffer=False, buffer_size=_BUFFER)
    parquet = open_again(file)
    metadata = parquet.metadata
    names = wanted.select(parquet.schema_arrow.names)
    of_thread = local()  # every thread opens the file for itself

    def decode(group: int) -> list[Any]:
        if not hasattr(of_thread, "file"):
            of_thread.file = open_again(pyarrow().OSFile(path), metadata=metadata)
        return list(of_thread.file.iter_batches(batch_rows, [group], names, use_threads=False))

    groups = range(metadata.num_row_groups)
    batches = parquet.iter_batches(batch_rows, columns=names)
    if path and all(metadata.row_group(group).total_byte_size <= _LARGEST_GROUP for group in groups):
        batches = chain.from_iterable(in_threads(decode, groups, thread_count()))
    return _open_arrow(parquet.schema_arrow, batches, names, batch_rows, metadata.num_rows)


def parquet_footers(paths: Iterable[Path]) -> list[Any] | None:
    """The metadata of Parquet files; None if one is another kind of file."""
    footers = []
    for path in paths:
        with open(path, "rb") as file, _name_in_errors(str(path)):
            if file.read(4) != _PARQUET:
                return None
            footers.append(pyarrow().parquet.read_metadata(file))
    return footers


# -- Arrow -------------------------------------------------------------------------------------------------


def _open_arrow(
    schema: Any, batches: Iterable[Any], names: Sequence[str], most: int, rows: int | None = None
) -> OpenTable:
    """Arrow batches as batches of at most `most` rows, none of them empty."""
    types = {name: plain_type(schema.field(name).type) for name in names}

    def cut_batches() -> Iterator[Batch]:
        first = 0
        for batch in batches:
            arrays = {name: batch.column(name) for name in types}
            # Casting loads Arrow's functions, which takes longer than counting a million reports.
            columns = {
                name: c if c.type == types[name] else c.cast(types[name]) for name, c in arrays.items()
            }
            for start in range(0, batch.num_rows, most):
                part = {name: column.slice(start, most) for name, column in columns.items()}
                count = min(most, batch.num_rows - start)
                yield Batch(part, count, first)
                first += count

    return OpenTable(types, cut_batches(), rows)


_MIXED = "columns need the same length, and one type in each: convert numbers among words to text"


def open_object(data: Any, wanted: WantedColumns, batch_rows: int) -> OpenTable:
    """Anything with Arrow's stream interface (pyarrow, pandas, polars, DuckDB), or a mapping of columns."""
    pa = pyarrow()
    if isinstance(data, Mapping):
        try:
            data = pa.table(dict(data))
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # its message shows a value, which may be private
            raise InvalidInput("data", NOT_SHOWN, _MIXED) from None
    height = getattr(data, "num_rows", getattr(data, "height", None))
    rows = height if isinstance(height, int) else None  # pandas gives a column of this name: private values
    reader = _stream_of(data, wanted)
    return _open_arrow(reader.schema, reader, wanted.select(reader.schema.names), batch_rows, rows)


def _stream_of(data: Any, wanted: WantedColumns) -> Any:
    """The Arrow stream of an object. A data set or a lazy table gives only the columns that are needed."""
    pa = pyarrow()
    if hasattr(data, "collect_batches"):  # a lazy table of polars
        lazy = data.select(wanted.select(data.collect_schema().names()))
        schema = lazy.collect_schema().to_frame().to_arrow().schema
        parts = lazy.collect_batches(chunk_size=SMALL_BATCH, lazy=True)
        batches = (batch for part in parts for batch in part.to_arrow().cast(schema).to_batches())
        return pa.RecordBatchReader.from_batches(schema, batches)
    if hasattr(data, "scanner"):
        data = data.scanner(columns=wanted.select(data.schema.names))
    if hasattr(data, "to_reader"):
        return data.to_reader()
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (TypeError, pa.ArrowException):  # not a stream, or a stream of something else than rows
        kinds = "give a path, a file, a pyarrow, pandas, polars or DuckDB table, or a mapping of columns"
        advice = _MIXED if hasattr(data, "columns") else kinds
        raise InvalidInput("data", NOT_SHOWN, f"type {type(data).__name__}; {advice}") from None


class BorrowedReader(io.BufferedReader):
    """A buffered reader of a file that its caller has opened: that file stays open when this reader is closed."""

    def close(self) -> None:
        """Let go of the file."""
        with suppress(ValueError):  # it was let go of already
            self.detach()
