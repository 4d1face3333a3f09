"""Tables out: Parquet, CSV or Arrow, whole or not at all.

A file is written under another name, flushed to the disk and then renamed. Whatever happens before (an error,
ctrl-C, a full disk, a kill), no file has the final name; after all but a kill the draft is removed too. What a
kill left is removed by the next run that writes the same file: a draft is locked while it is written, and the
system takes the lock from a process that ends, however it ends.
"""

from __future__ import annotations

import glob
import gzip
import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

from priorveil.errors import InvalidInput
from priorveil.frames.arrow import csv, pa, parquet
from priorveil.frames.wire import hex_column

if sys.platform != "win32":
    import fcntl

_LOCKS = sys.platform != "win32"

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


@contextmanager
def whole_file(path: Path, replace: bool = False) -> Iterator[Any]:
    """A binary file that gets its name when all of it is written and on the disk."""
    if path.exists() and not replace:
        raise _taken(path)
    if not path.parent.is_dir():
        raise InvalidInput("out", str(path), f"there is no folder {str(path.parent)!r}: make it first")
    remove_stale(path)
    file, draft = _new_draft(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if _LOCKS:  # while it is locked, nobody takes it for stale
                _named(draft, path, replace)
        if not _LOCKS:
            _named(draft, path, replace)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise


def remove_stale(path: Path) -> None:
    """Remove the drafts of a file that nobody is writing any more; where that cannot be told, leave them."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.part"):
        with suppress(OSError), open(draft, "rb") as file:
            _lock(file)
            draft.unlink()


def _new_draft(path: Path) -> tuple[BinaryIO, Path]:
    """A draft with a name of its own, locked where the system has locks."""
    while True:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        file = open(draft, "xb")  # noqa: SIM115  it is handed on
        # Between its making and its locking another run may have taken it for stale: then there is a next one.
        taken = False
        try:
            _lock(file)
        except BlockingIOError:
            taken = True
        except OSError:  # no locks here: then nobody removes drafts either
            pass
        if not taken and draft.exists():
            return file, draft
        file.close()


def _lock(file: BinaryIO) -> None:
    """Lock a file; an `OSError` if somebody else has, or if there are no locks here."""
    if sys.platform == "win32":
        raise OSError("there are no such locks")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _named(draft: Path, path: Path, replace: bool) -> None:
    """Give a draft its name; a file that came in the meantime is not replaced unasked."""
    if not replace:
        try:
            os.link(draft, path)
        except FileExistsError:
            raise _taken(path) from None
        except OSError:  # a file system without links
            if path.exists():
                raise _taken(path) from None
        else:
            draft.unlink()
            return
    os.replace(draft, path)


def _taken(path: Path) -> InvalidInput:
    return InvalidInput("out", str(path), "it exists: choose another name, or ask to replace it")


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
    with whole_file(out, replace) as file:
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
