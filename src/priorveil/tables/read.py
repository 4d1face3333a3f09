"""Read tables in batches: files, folders, patterns, streams, and tables of any library that supports Arrow.

The first bytes of a file say what it is: Parquet, Arrow (file or stream) or CSV, which may be in gzip.
"""

from __future__ import annotations

import glob
import io
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from threading import local
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np

from priorveil.csv_reader import Cells, delimiter_advice, is_number, read_rows
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.frames import plain_type, pyarrow
from priorveil.tables.batches import Batch

RowProgress = Callable[[int, int | None, float | None], None]

_PARQUET, _ARROW_FILE, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
_SMALL_BATCH = 1 << 16  # rows, of a CSV or of a lazy table
_BUFFER = 1 << 20  # bytes of a Parquet column read at a time
_LARGEST_GROUP = 128 << 20  # bytes of a row group, all columns, that is decoded in one step
_SAMPLE = 100  # rows of a CSV without the wanted columns that are compared with its first line
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_MOST_THREADS = 4  # one thread decodes, and cannot feed more than these


@dataclass(frozen=True, eq=False)
class OpenTable:
    """A table that is being read: the Arrow types of its columns (None for the text of a CSV) and its batches.

    `rows` is the number of rows and `share` the part of the bytes read so far, if they are known. `files` has the
    files that were opened so far, each with the number of its first row.
    """

    types: Mapping[str, Any]
    batches: Iterator[Batch]
    rows: int | None = None
    share: Callable[[], float | None] = lambda: None
    files: Sequence[tuple[int, str]] = ()

    def place(self, row: int) -> tuple[str | None, int]:
        """The file of a row that was read, and its number in that file, from 0; None where there are no files."""
        if not self.files:
            return None, row
        first, file = self.files[bisect_right(self.files, row, key=itemgetter(0)) - 1]
        return file, row - first


@dataclass(frozen=True)
class Wanted:
    """The columns to read: those that a table must have, and those that are read where it has them."""

    columns: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def select(self, names: Sequence[str]) -> list[str]:
        """The columns to read from a table with these names: each exists, exactly once.

        >>> Wanted(("b",), ("id",)).select(["a", "b", "id"])
        ['b', 'id']
        >>> Wanted(("c",)).select(["a", "b"])
        Traceback (most recent call last):
        priorveil.errors.InvalidInput: column = 'c': the table has a, b
        >>> Wanted(("job",)).select(["jobs"])
        Traceback (most recent call last):
        priorveil.errors.InvalidInput: column = 'job': there is no column job; did you mean jobs? The table has jobs
        """
        optional = [name for name in self.optional if name in names]
        selected = list(dict.fromkeys([*self.columns, *optional]))
        for name in selected:
            if name not in names:
                similar = get_close_matches(name, names, 1)
                meant = f"there is no column {name}; did you mean {similar[0]}? " if similar else ""
                table = "The table" if similar else "the table"
                advice = f"{meant}{table} has {', '.join(names)}{delimiter_advice(names)}"
                raise InvalidInput("column", name, advice)
            if list(names).count(name) > 1:
                raise InvalidInput(
                    "column", name, "the table has several columns of this name: rename all but one"
                )
        return selected

    def without(self, names: Collection[str]) -> Wanted:
        """All but these columns."""
        return Wanted(*(tuple(n for n in part if n not in names) for part in (self.columns, self.optional)))


def open_table(data: Any, columns: Sequence[str], batch_rows: int, optional: Sequence[str] = ()) -> OpenTable:
    """Open `data` as batches of at most `batch_rows` rows with these columns; `optional` ones where they exist.

    >>> table = open_table({"a": [1, 2, 3], "b": ["x", "y", "z"]}, ["a"], 2)
    >>> [batch.columns["a"].to_pylist() for batch in table.batches]
    [[1, 2], [3]]
    """
    wanted = Wanted(tuple(columns), tuple(optional))
    if paths := named_paths(data):
        return _open_files(_files_to_read(paths), wanted, batch_rows)
    if hasattr(data, "read"):
        return _open_file(data, wanted, batch_rows)
    return _open_object(data, wanted, batch_rows)


def text_columns(path: Path, *names: str) -> tuple[list[str], ...]:
    """Whole columns of a file as text, empty where an entry is missing. A broken line is an error."""
    table = open_table(path, names, _SMALL_BATCH)
    texts: dict[str, list[str]] = {name: [] for name in names}
    for batch in table.batches:
        if len(batch.broken):
            advice = f"row {batch.broken[0] + 1} does not have as many cells as the header"
            raise InvalidInput("data", str(path), advice)
        for name, cells in texts.items():
            column = batch.columns[name]
            entries = column if isinstance(column, list) else column.to_pylist()
            cells += ["" if entry is None else str(entry).strip() for entry in entries]
    return tuple(texts[name] for name in names)


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


def _open_object(data: Any, wanted: Wanted, batch_rows: int) -> OpenTable:
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


def _stream_of(data: Any, wanted: Wanted) -> Any:
    """The Arrow stream of an object; of a data set or a lazy table, only with the columns that are needed."""
    pa = pyarrow()
    if hasattr(data, "collect_batches"):  # a lazy table of polars
        lazy = data.select(wanted.select(data.collect_schema().names()))
        schema = lazy.collect_schema().to_frame().to_arrow().schema
        parts = lazy.collect_batches(chunk_size=_SMALL_BATCH, lazy=True)
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


# -- one file ----------------------------------------------------------------------------------------------


def _open_file(source: Path | Any, wanted: Wanted, batch_rows: int) -> OpenTable:
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
        else:
            table = _open_csv(file, path, wanted, min(batch_rows, _SMALL_BATCH))
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
            raise InvalidInput(
                "data", name, "the file is damaged: it cannot be read to the end; copy or write it again"
            ) from None
        raise


def _open_csv(file: Any, path: str | None, wanted: Wanted, most: int) -> OpenTable:
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


def _looks_like_data(header: Sequence[str], rows: Iterable[Cells]) -> bool:
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


def _csv_batches(rows: Iterator[Cells], width: int, indices: Mapping[str, int], most: int) -> Iterator[Batch]:
    """Batches of the wanted columns. A blank line is a missing value if there is one column, and no row otherwise."""
    rows = (cells or [None] for cells in rows) if width == 1 else filter(None, rows)
    first = 0
    while part := list(islice(rows, most)):
        complete = [cells for cells in part if len(cells) == width]
        broken = [first + number for number, cells in enumerate(part) if len(cells) != width]
        columns = {name: [cells[index] for cells in complete] for name, index in indices.items()}
        yield Batch(columns, len(complete), first, np.array(broken, dtype=np.int64))
        first += len(part)


def _open_ipc(file: Any, start: bytes, wanted: Wanted, batch_rows: int) -> OpenTable:
    """An Arrow file or stream."""
    ipc = pyarrow().ipc
    if start.startswith(_ARROW_FILE) and file.seekable():
        reader = ipc.open_file(file)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = ipc.open_stream(file)
        batches = iter(reader)
    return _open_arrow(reader.schema, batches, wanted.select(reader.schema.names), batch_rows)


def _open_parquet(file: Any, path: str | None, wanted: Wanted, batch_rows: int) -> OpenTable:
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


# -- several files -----------------------------------------------------------------------------------------


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


def _open_files(files: Sequence[tuple[Path, Path]], wanted: Wanted, batch_rows: int) -> OpenTable:
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

    footers = _parquet_footers(path for path, _ in files)
    rows = None if footers is None else sum(footer.num_rows for footer in footers)
    return replace(first, batches=batches(), rows=rows, share=share, files=opened)


def _open_with_folders(path: Path, name: Path, wanted: Wanted, batch_rows: int) -> OpenTable:
    """One file, with the columns that the folders in its name give, such as `region=north`."""
    pairs = (part.partition("=") for part in name.parts[:-1])
    folder_values = {
        unquote(key): None if text == _NO_VALUE else unquote(text) for key, sign, text in pairs if sign
    }
    table = _open_file(path, wanted.without(folder_values), batch_rows)
    extra = {key: value for key, value in folder_values.items() if key in wanted.columns}

    def extend(batch: Batch) -> Batch:
        added = {key: [value] * batch.rows for key, value in extra.items()}
        return replace(batch, columns={**batch.columns, **added})

    return replace(table, types={**table.types, **dict.fromkeys(extra)}, batches=map(extend, table.batches))


def _parquet_footers(paths: Iterable[Path]) -> list[Any] | None:
    """The metadata of Parquet files; None if one is another kind of file."""
    footers = []
    for path in paths:
        with open(path, "rb") as file, _name_in_errors(str(path)):
            if file.read(4) != _PARQUET:
                return None
            footers.append(pyarrow().parquet.read_metadata(file))
    return footers


def only_text(data: Any, column: str) -> str | None:
    """The only text in a column of Parquet files, by their statistics; None where there may be another."""
    footers = _parquet_footers(file for path in named_paths(data) for file, _ in table_files(path))
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


# -- threads -----------------------------------------------------------------------------------------------

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def thread_count() -> int:
    """How many threads are worth starting in this process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MOST_THREADS, cores)


def in_threads(task: Callable[[_In], _Out], items: Iterable[_In], threads: int) -> Iterator[_Out]:
    """`task` of every item, in their order; at most `threads + 1` results are unfinished or not yet taken.

    Without threads, each is done when it is taken.

    >>> list(in_threads(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    if not threads or thread_count() == 1:
        yield from map(task, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[_Out]] = deque()
        for item in items:
            pending.append(pool.submit(task, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
