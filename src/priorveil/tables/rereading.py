"""Tables that can be read more than once: a pipe, or the result of a query, is kept in a temporary file."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, Any

from priorveil.frames import pyarrow
from priorveil.tables.batches import Batch
from priorveil.tables.read import BorrowedReader, OpenTable, named_paths, open_table


class Rereadable:
    """A table that can be opened again after it has been read to its end, with the same rows in the same order.

    Files and tables in memory are simply read again. What a pipe or a lazy table gives is written to a temporary file
    while it is read for the first time.
    """

    def __init__(self, data: Any, columns: Sequence[str], batch_rows: int, optional: Sequence[str]) -> None:
        self._columns = columns
        self._batch_rows = batch_rows
        self._optional = optional
        self._data = data
        self._start: int | None = None  # of a stream

    def open(self) -> OpenTable:
        """Open the table, from its first row."""
        if self._start is not None:
            self._data.seek(self._start)
            return self._opened()
        if hasattr(self._data, "read"):
            return self._open_stream()
        if named_paths(self._data) or _in_memory(self._data):
            return self._opened()
        return self._open_lazy()

    def _opened(self) -> OpenTable:
        return open_table(self._data, self._columns, self._batch_rows, self._optional)

    def _open_stream(self) -> OpenTable:
        """Open a stream; one that cannot go back, such as a pipe, is copied while it is read."""
        stream = self._data
        if not stream.seekable():
            stream = io.BufferedReader(_Copied(stream))
            self._start = 0
            table = open_table(stream, self._columns, self._batch_rows, self._optional)
            self._data = stream.raw.copy
            return table
        self._data = stream if hasattr(stream, "peek") else BorrowedReader(stream)
        self._start = self._data.tell()
        return self._opened()

    def _open_lazy(self) -> OpenTable:
        """Open the result of a query, whose order may change from one run to the next."""
        table = self._opened()
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


class _Copied(io.RawIOBase):
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
