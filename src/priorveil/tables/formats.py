"""Files as pieces: Parquet, Arrow and CSV, told apart by their first bytes."""

from __future__ import annotations

import csv as plain
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import local
from typing import Any

from priorveil.errors import InvalidInput
from priorveil.files import csv_delimiter, delimiter_advice, delimiter_hint
from priorveil.tables.arrow import csv, pa, parquet
from priorveil.tables.pieces import Opened, Piece, Told, chosen, placed, plans_of
from priorveil.tables.threads import in_threads, threads_here

_BLOCK = 1 << 23  # bytes of a CSV parsed at a time
_BUFFER = 1 << 20  # bytes of a Parquet column read at a time
_PART = 64 << 20  # bytes of row groups decoded whole, at most
_LONGEST_HEADER = 1 << 20
_PARQUET, _ARROW_FILE, _ARROW_STREAM, _GZIP = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"\x1f\x8b"
_BAD_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


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
            return _parquet(file, columns, batch_rows, where, size is not None)
        if start.startswith((_ARROW_FILE, _ARROW_STREAM)):
            return _arrow(file, start, columns, where)
        return _csv(file, size, columns, broken, where)
    except (pa.ArrowException, *_BAD_GZIP) as error:
        raise InvalidInput("data", where, _damage(str(error))) from None
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


def _parquet(file: Any, columns: Sequence[str] | None, batch_rows: int, where: str, has_path: bool) -> Opened:
    if not file.seekable():
        raise InvalidInput("data", "Parquet", "a pipe takes Arrow or CSV: give the path of the file")
    table = _parquet_file(pa.OSFile(where) if has_path else file)
    schema = table.schema_arrow
    names = chosen(schema.names, columns)
    kept = pa.schema([schema.field(name) for name in names])
    parts = _parts(table.metadata, names, batch_rows) if has_path else None
    if parts is None:
        batches = _ahead(table.iter_batches(batch_rows, columns=names))
    else:
        batches = _side_by_side(where, table.metadata, parts, names, batch_rows)
    ordered = (b.select(names) for b in _read(batches, where))
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


def _arrow(file: Any, start: bytes, columns: Sequence[str] | None, where: str) -> Opened:
    if start.startswith(_ARROW_FILE) and file.seekable():
        reader = pa.ipc.open_file(file)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = pa.ipc.open_stream(file)
        batches = iter(reader)
    names = chosen(reader.schema.names, columns)
    schema = pa.schema([reader.schema.field(name) for name in names])
    ordered = (b.select(names) for b in _read(batches, where))
    return Opened(schema, placed(ordered), plans=plans_of(reader.schema))


def _read(batches: Iterator[pa.RecordBatch], where: str) -> Iterator[pa.RecordBatch]:
    """The batches; where the bytes are damaged, an error that shows nothing of them."""
    try:
        yield from batches
    except (pa.ArrowException, *_BAD_GZIP) as error:
        raise InvalidInput("data", where, _damage(str(error))) from None


def _damage(message: str) -> str:
    """What Arrow's words about a file mean."""
    if "invalid UTF8" in message:
        return "it is no UTF-8 text: save it as UTF-8 first"
    if "straddling" in message:
        return f"it has a line of more than {_BLOCK >> 20} MB, or a quotation mark that is not closed"
    return "it is damaged: it cannot be read to the end"


def _csv(
    file: Any, size: int | None, columns: Sequence[str] | None, broken: Told | None, where: str
) -> Opened:
    raw = file
    if file.peek(2)[:2] == _GZIP:
        file = io.BufferedReader(gzip.GzipFile(fileobj=file))
    header, delimiter = _header(file)
    try:
        names = chosen(header, columns)
    except InvalidInput as error:
        raise InvalidInput(error.argument, error.value, f"{error.advice}{delimiter_advice(header)}") from None
    numbers: list[int] = []
    ahead = _Ahead(file)

    def refuse(row: Any) -> str:
        if broken is None:
            return "error"
        numbers.append(row.number - 1)
        broken(row.number - 1)
        return "skip"

    def share() -> float | None:
        if not size:
            return None
        try:
            taken = min(1.0, float(raw.tell() / size))
        except ValueError:  # read to its end and closed, while its last rows are still being counted
            taken = 1.0
        return taken * ahead.share()

    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    batches = ahead.count(_read(_csv_batches(file, ahead, header, delimiter, schema, refuse), where))
    return Opened(schema, placed(batches, numbers), text=True, share=share)


class _Ahead:
    """A file that counts the bytes Arrow takes, which is many blocks ahead, and the blocks that come out."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self._taken = self._blocks = 0

    def read(self, size: int) -> bytes:
        """The next bytes."""
        some: bytes = self._file.read(size)
        self._taken += len(some)
        return some

    def close(self) -> None:
        """Who opened the file closes it."""

    def count(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, each made of a block."""
        for batch in batches:
            self._blocks += 1
            yield batch

    def share(self) -> float:
        """How much of what was taken has come out."""
        return min(1.0, self._blocks * _BLOCK / max(self._taken, 1))


def _csv_batches(
    file: Any,
    ahead: _Ahead,
    header: list[str],
    delimiter: str,
    schema: pa.Schema,
    refuse: Callable[[Any], str],
) -> Iterator[pa.RecordBatch]:
    if not file.peek(1):  # Arrow refuses a file without rows
        return
    yield from csv.open_csv(
        ahead,
        # One thread, so that every broken line comes with its number.
        read_options=csv.ReadOptions(column_names=header, block_size=_BLOCK, use_threads=False),
        parse_options=csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            invalid_row_handler=refuse,
            ignore_empty_lines=len(header) > 1,  # in a file of one column an empty line is a missing value
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
    text = _first_line(file)
    hint = delimiter_hint(text)
    if hint is not None:
        text = _first_line(file)
    if not text.strip():
        raise InvalidInput("data", "nothing", "the file is empty: it has no line of column names")
    delimiter = hint or csv_delimiter(text + _following(file))
    try:
        names = next(plain.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True))
    except plain.Error:
        raise InvalidInput("data", "text", "its first line is no line of column names") from None
    return [name.strip() for name in names], delimiter


def _first_line(file: Any) -> str:
    """The next line, and more of them while a quotation is open."""
    line = file.readline(_LONGEST_HEADER)
    while line.count(b'"') % 2 and len(line) < _LONGEST_HEADER:
        more = file.readline(_LONGEST_HEADER)
        if not more:
            break
        line += more
    try:
        text: str = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("data", "bytes", "it is neither Parquet, nor Arrow, nor CSV in UTF-8") from None
    return text


def _following(file: Any) -> str:
    """Some lines that are next, without taking them."""
    some: bytes = file.peek(1)
    whole, newline, rest = some.rpartition(b"\n")
    return (whole if newline else rest).decode("utf-8", "replace")
