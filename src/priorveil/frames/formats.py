"""Files as pieces: Parquet, Arrow and CSV, told apart by their first bytes."""

from __future__ import annotations

import csv as plain
import gzip
import io
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import local
from typing import Any

from priorveil.errors import InvalidInput
from priorveil.frames.arrow import csv, pa, parquet
from priorveil.frames.pieces import Opened, Piece, Told, chosen, placed, plans_of
from priorveil.frames.threads import in_threads, threads_here

_BLOCK = 1 << 23  # bytes of a CSV parsed at a time
_BUFFER = 1 << 20  # bytes of a Parquet column read at a time
_PART = 64 << 20  # bytes of row groups decoded whole, at most
_LONGEST_HEADER = 1 << 20
_PARQUET, _ARROW_FILE, _ARROW_STREAM, _GZIP = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"\x1f\x8b"


def open_file(
    source: Path | Any, columns: Sequence[str] | None, batch_rows: int, broken: Told | None
) -> Opened:
    """Open one file, or a binary stream such as `sys.stdin.buffer`."""
    if not isinstance(source, Path):
        return _opened(_buffered(source), "the stream", None, columns, batch_rows, broken)
    file = io.BufferedReader(io.FileIO(source))
    try:
        opened = _opened(file, str(source), os.path.getsize(source), columns, batch_rows, broken)
    except BaseException:
        file.close()
        raise
    return replace(opened, pieces=_closing(file, opened.pieces))


def _closing(file: Any, pieces: Iterator[Piece]) -> Iterator[Piece]:
    with file:
        yield from pieces


def _opened(
    file: Any,
    where: str,
    size: int | None,
    columns: Sequence[str] | None,
    batch_rows: int,
    broken: Told | None,
) -> Opened:
    """What the first bytes say it is; errors name the file and show nothing that is in it."""
    start = file.peek(8)[:8]
    try:
        if start.startswith(_PARQUET):
            # Arrow reads a path by itself, without asking Python for every block.
            return _parquet(file, columns, batch_rows, None if size is None else where)
        if start.startswith((_ARROW_FILE, _ARROW_STREAM)):
            return _arrow(file, start, columns)
        return _csv(file, size, columns, broken)
    except pa.ArrowException:
        raise InvalidInput("data", where, "it is damaged: it cannot be read to the end") from None
    except InvalidInput as error:
        raise InvalidInput(error.argument, error.value, f"{where}: {error.advice}") from None


def count_rows(paths: Sequence[Path]) -> int | None:
    """The rows of Parquet files, from their footers; None for other files."""
    total = 0
    for path in paths:
        with open(path, "rb") as file:
            if file.read(4) != _PARQUET:
                return None
        try:
            total += parquet.read_metadata(path).num_rows
        except pa.ArrowException:
            raise InvalidInput("data", str(path), "it is damaged: its end is missing") from None
    return total


def _buffered(source: Any) -> Any:
    return source if hasattr(source, "peek") else io.BufferedReader(source)


def _parquet(file: Any, columns: Sequence[str] | None, batch_rows: int, where: str | None) -> Opened:
    if not file.seekable():
        raise InvalidInput("data", "Parquet", "a pipe takes Arrow or CSV: give the path of the file")
    table = _parquet_file(file if where is None else pa.OSFile(where))
    schema = table.schema_arrow
    names = chosen(schema.names, columns)
    kept = pa.schema([schema.field(name) for name in names])
    parts = _parts(table.metadata, names, batch_rows) if where is not None else None
    if where is None or parts is None:
        batches = _ahead(table.iter_batches(batch_rows, columns=names))
    else:
        batches = _side_by_side(where, table.metadata, parts, names, batch_rows)
    ordered = (b.select(names) for b in _read(batches))
    return Opened(kept, placed(ordered), rows=table.metadata.num_rows, plans=plans_of(schema))


def _parquet_file(source: Any, metadata: Any = None) -> Any:
    # Without these Arrow would hold the whole column of the file in memory.
    return parquet.ParquetFile(source, metadata=metadata, pre_buffer=False, buffer_size=_BUFFER)


def _parts(metadata: Any, names: Sequence[str], batch_rows: int) -> list[list[int]] | None:
    """Row groups in parts of at least a batch; None if one has too much in these columns to be decoded whole."""
    parts: list[list[int]] = []
    rows = batch_rows
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        own = (group.column(c) for c in range(group.num_columns))
        if sum(c.total_uncompressed_size for c in own if c.path_in_schema.split(".")[0] in names) > _PART:
            return None
        if rows >= batch_rows:
            parts.append([])
            rows = 0
        parts[-1].append(i)
        rows += group.num_rows
    return parts


def _side_by_side(
    where: str, metadata: Any, parts: list[list[int]], names: Sequence[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """The batches of a file in their order, parts decoded in threads, each with the file opened for itself."""
    own = local()

    def decoded(part: list[int]) -> list[pa.RecordBatch]:
        if not hasattr(own, "table"):
            own.table = _parquet_file(pa.OSFile(where), metadata)
        return list(own.table.iter_batches(batch_rows, row_groups=part, columns=names, use_threads=False))

    for batches in in_threads(decoded, parts, threads_here()):
        yield from batches


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, the next one decoded in a thread while this one is being used.

    For files only: a thread that waits for a pipe could not be interrupted.
    """
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def _arrow(file: Any, start: bytes, columns: Sequence[str] | None) -> Opened:
    if start.startswith(_ARROW_FILE) and file.seekable():
        reader = pa.ipc.open_file(file)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = pa.ipc.open_stream(file)
        batches = iter(reader)
    names = chosen(reader.schema.names, columns)
    schema = pa.schema([reader.schema.field(name) for name in names])
    return Opened(schema, placed(b.select(names) for b in _read(batches)), plans=plans_of(reader.schema))


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; where the bytes are damaged, an error that shows nothing of them."""
    try:
        yield from batches
    except pa.ArrowException as error:
        if "invalid UTF8" in str(error):
            raise InvalidInput("data", "a file", "it is no UTF-8 text: save it as UTF-8 first") from None
        raise InvalidInput("data", "a file", "it is damaged: it cannot be read to the end") from None


def _csv(file: Any, size: int | None, columns: Sequence[str] | None, broken: Told | None) -> Opened:
    raw = file
    if file.peek(2)[:2] == _GZIP:
        file = io.BufferedReader(gzip.GzipFile(fileobj=file))
    header, delimiter = _header(file)
    names = chosen(header, columns)
    numbers: list[int] = []

    def refuse(row: Any) -> str:
        if broken is None:
            return "error"
        numbers.append(row.number - 1)
        broken(row.number - 1)
        return "skip"

    def share() -> float | None:
        try:
            return min(1.0, raw.tell() / size) if size else None
        except ValueError:  # read to its end and closed, while its last rows are still being counted
            return 1.0

    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    batches = _csv_batches(file, header, delimiter, schema, refuse)
    return Opened(schema, placed(_read(batches), numbers), text=True, share=share)


def _csv_batches(
    file: Any, header: list[str], delimiter: str, schema: pa.Schema, refuse: Callable[[Any], str]
) -> Iterator[pa.RecordBatch]:
    if not file.peek(1):  # Arrow refuses a file without rows
        return
    yield from csv.open_csv(
        file,
        # One thread, so that every broken line comes with its number.
        read_options=csv.ReadOptions(column_names=header, block_size=_BLOCK, use_threads=False),
        parse_options=csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
        ),
        convert_options=csv.ConvertOptions(
            include_columns=schema.names,
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _header(file: Any) -> tuple[list[str], str]:
    """The names of the columns, and whether commas, semicolons or tabs part them."""
    line = file.readline(_LONGEST_HEADER)
    while line.count(b'"') % 2 and len(line) < _LONGEST_HEADER:
        more = file.readline(_LONGEST_HEADER)
        if not more:
            break
        line += more
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("data", "bytes", "it is neither Parquet, nor Arrow, nor CSV in UTF-8") from None
    if not text.strip():
        raise InvalidInput("data", "nothing", "the file is empty: it has no line of column names")
    delimiter = max(",;\t", key=text.count)
    return next(plain.reader(io.StringIO(text), delimiter=delimiter)), delimiter
