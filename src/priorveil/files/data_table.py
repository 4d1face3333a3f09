"""One description of a table, whatever it is: paths, an open file, a frame of any library, or a mapping of columns."""

from __future__ import annotations

import glob
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from priorveil.errors import InvalidInput
from priorveil.files.batches import Batch, OpenTable, WantedColumns
from priorveil.files.formats import SMALL_BATCH, open_file, open_object, parquet_footers
from priorveil.frames import pyarrow

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class DataTable:
    """A table that can be read twice, with the same rows in the same order.

    Files and tables in memory are simply read again. If a pipe or a query is to be read `again`, what it gives is
    written to a temporary file during the first reading: the order of a query may change from run to run.

    >>> table = DataTable({"a": [1, 2, 3], "b": ["x", "y", "z"]}).open(WantedColumns(("a",)), 2)
    >>> [batch.columns["a"].to_pylist() for batch in table.batches]
    [[1, 2], [3]]
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        self._paths = named_paths(data)
        self._start: int | None = None  # of an open file

    def open(self, wanted: WantedColumns, batch_rows: int, again: bool = False) -> OpenTable:
        """Open the table at its first row, as batches of at most `batch_rows` rows."""
        if self._paths:
            return _open_files(_files_to_read(self._paths), wanted, batch_rows)
        if hasattr(self._data, "read"):
            return open_file(self._stream(again), wanted, batch_rows)
        table = open_object(self._data, wanted, batch_rows)
        return self._copied_query(table) if again and not _in_memory(self._data) else table

    def only_text(self, column: str) -> str | None:
        """The only text in a column of Parquet files, by their statistics; None where there may be another."""
        footers = parquet_footers(file for path in self._paths for file, _ in table_files(path))
        texts: set[Any] = set()
        for footer in footers or []:
            if column not in footer.schema.names:
                return None
            index = footer.schema.names.index(column)
            for group in range(footer.num_row_groups):
                statistics = footer.row_group(group).column(index).statistics
                if statistics is None or not (statistics.has_min_max and statistics.has_null_count):
                    return None
                if statistics.null_count:
                    return None
                texts |= {statistics.min, statistics.max}
        return texts.pop() if len(texts) == 1 else None

    def _stream(self, again: bool) -> Any:
        """The open file, where it was opened first; a pipe is copied while it is read."""
        if self._start is not None:
            self._data.seek(self._start)
        elif again and self._data.seekable():
            self._start = self._data.tell()
        elif again:
            pipe = _CopiedPipe(self._data)
            self._data, self._start = pipe.copy, 0
            return io.BufferedReader(pipe)
        return self._data

    def _copied_query(self, table: OpenTable) -> OpenTable:
        """The result of a query, which is copied while it is read."""
        pa = pyarrow()
        copy = tempfile.TemporaryFile()  # noqa: SIM115  deleted when this object is
        schema = pa.schema(list(table.types.items()))

        def batches() -> Iterator[Batch]:
            with pa.ipc.new_stream(pa.PythonFile(copy, "w"), schema) as writer:
                for batch in table.batches:
                    writer.write_batch(pa.RecordBatch.from_pydict(dict(batch.columns), schema=schema))
                    yield batch

        self._data, self._start = copy, 0
        return replace(table, batches=batches())


class _CopiedPipe(io.RawIOBase):
    """A stream that writes all that is read from it to a temporary file as well."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.copy: Any = tempfile.TemporaryFile()  # noqa: SIM115  deleted when nobody needs it

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self.copy.write(data)
        return len(data)


def _in_memory(data: Any) -> bool:
    """Whether this is a mapping of columns, or a table of pyarrow, pandas or polars."""
    pa, kind = pyarrow(), type(data)
    held = isinstance(data, Mapping | pa.Table | pa.RecordBatch)
    return held or hasattr(kind, "iloc") or hasattr(kind, "get_columns")


def text_columns(path: Path, *names: str) -> tuple[list[str], ...]:
    """Whole columns of a file as text, empty where an entry is missing. A broken line is an error."""
    texts: dict[str, list[str]] = {name: [] for name in names}
    for batch in DataTable(path).open(WantedColumns(names), SMALL_BATCH).batches:
        if len(batch.broken):
            advice = f"row {batch.broken[0] + 1} does not have as many cells as the header"
            raise InvalidInput("data", str(path), advice)
        for name, cells in texts.items():
            column = batch.columns[name]
            entries = column if isinstance(column, list) else column.to_pylist()
            cells += ["" if entry is None else str(entry).strip() for entry in entries]
    return tuple(texts[name] for name in names)


# -- files and folders -------------------------------------------------------------------------------------


def named_paths(data: Any) -> list[Path]:
    """The paths that `data` names, one or a list of them; none where it is another kind of table."""
    paths = data if isinstance(data, list | tuple) else [data]
    return (
        [Path(path) for path in paths] if all(isinstance(path, str | os.PathLike) for path in paths) else []
    )


def _files_to_read(paths: Sequence[Path]) -> list[tuple[Path, Path]]:
    """The files of all paths: each path has a file, and no two paths have the same."""
    files, earlier = [], set[str]()
    for path in paths:
        inside = table_files(path)
        if not inside:
            advice = "no file has this name or matches this pattern: check the path"
            raise InvalidInput("data", str(path), advice)
        targets = {os.path.realpath(file) for file, _ in inside}
        if targets & earlier:
            raise InvalidInput("data", str(path), "a file of it is given twice: give each file once")
        earlier |= targets
        files += inside
    return files


def table_files(path: Path) -> list[tuple[Path, Path]]:
    """The files of a path: the file itself, all files in a folder, or all that match a pattern; sorted by name.

    Each comes with its path relative to the folder, or to the fixed first part of the pattern.
    """
    if path.is_dir():
        inside = [(p, p.relative_to(path)) for p in sorted(path.rglob("*")) if p.is_file()]
        # Spark and others begin the names of their own files with _, and drafts begin with a dot.
        return [(p, name) for p, name in inside if not any(part[0] in "._" for part in name.parts)]
    if path.exists() or not glob.has_magic(str(path)):
        return [(path, Path(path.name))]
    fixed = next(i for i, part in enumerate(path.parts) if glob.has_magic(part))
    matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    return [(p, Path(*p.parts[fixed:])) for p in matches if p.is_file()]


def _open_files(files: Sequence[tuple[Path, Path]], wanted: WantedColumns, batch_rows: int) -> OpenTable:
    """The files one after another; each must have the columns of the first."""
    sizes = [path.stat().st_size for path, _ in files]
    first = current = _open_with_folders(*files[0], wanted, batch_rows)
    done = size = 0
    opened: list[tuple[int, str]] = []

    def batches() -> Iterator[Batch]:
        nonlocal current, done, size
        before = 0
        for file, length in zip(files, sizes, strict=True):
            if file is not files[0]:
                current = _open_with_folders(*file, wanted, batch_rows)
            opened.append((before, str(file[0])))
            done, size, end = done + size, length, before
            for batch in current.batches:
                end = before + batch.end
                yield replace(batch, first=before + batch.first, broken=before + batch.broken)
            before = end

    def share() -> float | None:
        share_of_file = current.share()
        if share_of_file is None:
            return None
        return min(1.0, (done + share_of_file * size) / max(sum(sizes), 1))

    footers = parquet_footers(path for path, _ in files)
    rows = None if footers is None else sum(footer.num_rows for footer in footers)
    return replace(first, batches=batches(), rows=rows, share=share, files=opened)


def _open_with_folders(path: Path, name: Path, wanted: WantedColumns, batch_rows: int) -> OpenTable:
    """One file, with the columns that the folders in its name give, such as `region=north`."""
    pairs = (part.partition("=") for part in name.parts[:-1])
    folder_values = {
        unquote(key): None if text == _NO_VALUE else unquote(text) for key, sign, text in pairs if sign
    }
    table = open_file(path, wanted.without(folder_values), batch_rows)
    extra = {key: value for key, value in folder_values.items() if key in wanted}

    def extend(batch: Batch) -> Batch:
        added = {key: [value] * batch.rows for key, value in extra.items()}
        return replace(batch, columns={**batch.columns, **added})

    return replace(table, types={**table.types, **dict.fromkeys(extra)}, batches=map(extend, table.batches))
