"""Tables in: files, folders, globs, streams and objects of any library that speaks Arrow, piece by piece.

What a file is, is read from its first bytes: Parquet, Arrow (file or stream), CSV, or CSV in gzip. All the
columns of a CSV are text; nothing is guessed. An empty cell is missing, a quoted empty one an empty text.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from priorveil.errors import InvalidInput
from priorveil.tables.arrow import pa
from priorveil.tables.formats import count_rows, open_file
from priorveil.tables.pieces import Opened, Piece, Told, chosen, placed, plans_of

_LAZY_ROWS = 1 << 16  # of a lazy table, worked out at once
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def open_table(
    data: Any, columns: Sequence[str] | None, batch_rows: int, broken: Told | None = None
) -> Opened:
    """Open `data` as pieces with these columns (None: all), of at most `batch_rows` rows.

    `broken` is told the number of every line of a CSV that is no row; without it, such a line is an error.

    >>> opened = open_table({"a": [1, 2, 3], "b": ["x", "y", "z"]}, ["a"], 2)
    >>> [piece.batch.to_pydict() for piece in opened.pieces]
    [{'a': [1, 2]}, {'a': [3]}]
    """
    if isinstance(data, str | os.PathLike):
        opened = _of_files(_files(Path(data)), columns, batch_rows, broken)
    elif hasattr(data, "read"):
        opened = open_file(data, columns, batch_rows, broken)
    else:
        opened = _of_object(data, columns)
    return _solid(replace(opened, pieces=_cut(opened.pieces, batch_rows)))


def _cut(pieces: Iterator[Piece], most: int) -> Iterator[Piece]:
    """The same rows in pieces of at most `most`, none of them empty."""
    for piece in pieces:
        for start in range(0, piece.batch.num_rows, most):
            yield replace(piece, batch=piece.batch.slice(start, most), place=piece.place + start)


def _solid(opened: Opened) -> Opened:
    """The same without views of texts and bytes, which Arrow can hold but hardly work with."""
    schema = pa.schema([field.with_type(_solid_type(field.type)) for field in opened.schema])
    if schema == opened.schema:
        return opened
    pieces = (replace(piece, batch=_solid_batch(piece.batch, schema)) for piece in opened.pieces)
    return replace(opened, schema=schema, pieces=pieces)


def _solid_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_solid_column(column) for column in batch.columns], schema=schema)


def _solid_column(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _solid_column(column.dictionary))
    return column.cast(_solid_type(column.type))


def _solid_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _solid_type(kind.value_type))
    solid = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return solid.get(kind, kind)


def _of_object(data: Any, columns: Sequence[str] | None) -> Opened:
    """Anything with Arrow's stream interface (pyarrow, pandas, polars, DuckDB), or a mapping of columns."""
    if isinstance(data, Mapping):
        data = pa.table(dict(data))
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    known = data.num_rows if isinstance(data, pa.Table) else getattr(data, "height", None)
    reader = _reader(data, columns)
    names = chosen(reader.schema.names, columns)
    schema = pa.schema([reader.schema.field(name) for name in names])
    batches = (batch.select(names) for batch in reader)
    return Opened(schema, placed(batches), rows=known, plans=plans_of(reader.schema))


def _reader(data: Any, columns: Sequence[str] | None) -> pa.RecordBatchReader:
    """The stream of an object; of a data set of Arrow's, only the columns that are wanted are read."""
    if hasattr(data, "collect_batches"):
        return _lazy(data, columns)
    if hasattr(data, "scanner"):
        data = data.scanner(columns=chosen(data.schema.names, columns))
    if hasattr(data, "to_reader"):
        return data.to_reader()
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (TypeError, pa.ArrowException):  # no stream, or one of something else than rows
        advice = "give a path, a file, a pyarrow, pandas, polars or DuckDB table, or a mapping of columns"
        if type(data).__name__ == "LazyFrame":
            advice = "this polars cannot hand it out in pieces: give `.collect()` of it, or use a newer one"
        raise InvalidInput("data", type(data).__name__, advice) from None


def _lazy(frame: Any, columns: Sequence[str] | None) -> pa.RecordBatchReader:
    """A lazy table of polars, worked out a piece at a time."""
    wanted = frame.select(chosen(frame.collect_schema().names(), columns))
    schema = wanted.collect_schema().to_frame().to_arrow().schema
    pieces = wanted.collect_batches(chunk_size=_LAZY_ROWS, lazy=True)
    batches = (batch for piece in pieces for batch in piece.to_arrow().cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


# -- several files -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _File:
    """A file of a table, and the columns that the names of its folders give (`region=north`)."""

    path: Path
    given: tuple[tuple[str, str | None], ...] = ()

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def _files(path: Path) -> list[_File]:
    """The files of a path: itself, all in a folder, or all that match a pattern; sorted by name."""
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p.relative_to(path)))
        files = [_File(p, tuple(_given(p.relative_to(path)))) for p in inside]
    elif path.exists() or not glob.has_magic(str(path)):
        files = [_File(path)]
    else:
        matches = sorted(Path(found) for found in glob.glob(str(path), recursive=True))
        fixed = next(i for i, part in enumerate(path.parts) if glob.has_magic(part))
        files = [_File(p, tuple(_given(Path(*p.parts[fixed:])))) for p in matches if p.is_file()]
    if not files:
        raise InvalidInput("data", str(path), "there is no file here")
    return files


def _hidden(path: Path) -> bool:
    """Names that begin so are kept by Spark and others for notes, and here for drafts."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _given(path: Path) -> Iterator[tuple[str, str | None]]:
    for part in path.parts[:-1]:
        name, equals, value = part.partition("=")
        if equals:
            yield unquote(name), None if value == _NO_VALUE else unquote(value)


def _of_files(
    files: Sequence[_File], columns: Sequence[str] | None, batch_rows: int, broken: Told | None
) -> Opened:
    """The files one after another; each must have the columns of the first."""
    seen = _Seen(sum(file.size for file in files))

    def told(number: int) -> None:
        seen.lost += 1
        if broken is not None:
            broken(seen.rows + number)

    def opened(file: _File, wanted: Sequence[str] | None) -> Opened:
        return _of_one(file, wanted, batch_rows, None if broken is None else told)

    first = opened(files[0], columns)

    def pieces() -> Iterator[Piece]:
        for i, file in enumerate(files):
            now = first if i == 0 else opened(file, first.names)
            if now.text != first.text or now.plans != first.plans:
                raise InvalidInput("data", str(file.path), "it is not of the same kind as the first file")
            seen.begin(now, file.size)
            for piece in now.pieces:
                seen.came += piece.batch.num_rows
                yield replace(piece, before=seen.rows)

    known = count_rows([file.path for file in files])
    return replace(first, pieces=pieces(), rows=known, share=seen.share)


@dataclass(eq=False)
class _Seen:
    """How far a table of several files has come."""

    total: int
    rows: int = 0  # of the files before, broken lines included
    came: int = 0  # rows of this file
    lost: int = 0  # broken lines of this file
    done: int = 0  # bytes of the files before
    size: int = 0
    now: Opened | None = None

    def begin(self, opened: Opened, size: int) -> None:
        """Go on to the next file."""
        self.rows, self.done = self.rows + self.came + self.lost, self.done + self.size
        self.came, self.lost, self.size, self.now = 0, 0, size, opened

    def share(self) -> float | None:
        """The part of all bytes that has been read."""
        within = self.now.share() if self.now else None
        return None if within is None else min(1.0, (self.done + within * self.size) / max(self.total, 1))


def _of_one(file: _File, columns: Sequence[str] | None, batch_rows: int, broken: Told | None) -> Opened:
    """One file, with the columns that its folders give."""
    given = dict(file.given)
    inside = None if columns is None else [name for name in columns if name not in given]
    opened = open_file(file.path, inside, batch_rows, broken)
    extra = {name: value for name, value in given.items() if columns is None or name in columns}
    if not extra:
        return opened
    schema = opened.schema
    for name in extra:
        schema = schema.append(pa.field(name, pa.string()))
    pieces = (replace(piece, batch=_with(piece.batch, extra)) for piece in opened.pieces)
    return replace(opened, schema=schema, pieces=pieces)


def _with(batch: pa.RecordBatch, extra: Mapping[str, str | None]) -> pa.RecordBatch:
    for name, value in extra.items():
        batch = batch.append_column(name, pa.repeat(pa.scalar(value, pa.string()), batch.num_rows))
    return batch
