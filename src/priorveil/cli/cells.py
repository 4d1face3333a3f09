"""Cells of files that commands are given: lines of a CSV, columns of a CSV or of Parquet.

Every reader puts the file's name before what is wrong with it.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from priorveil.cli.options import error_text
from priorveil.errors import MissingExtra, PriorveilError, plural
from priorveil.files import csv_delimiter, delimiter_advice, delimiter_hint

Line = tuple[int, list[str]]  # of a CSV file: its number, and its cells


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except MissingExtra:
        raise
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{path}: this is no text in UTF-8") from error
    except (PriorveilError, ValueError, TypeError, EOFError, gzip.BadGzipFile) as error:
        raise click.ClickException(f"{path}: {error_text(error)}") from error


def columns(path: Path, *names: str) -> tuple[list[str], ...]:
    """Columns of a CSV file (also gzipped) with a header, or of a Parquet file, as text."""
    with reading(path):
        if path.suffix.lower() == ".parquet":
            return _parquet_columns(path, names)
        rows = lines(path)
        heads = rows[0][1] if rows else []
        found = [_place(heads, name, delimiter_advice(heads)) for name in names]
        uneven = next((at for at, row in rows if len(row) != len(heads)), None)
        if uneven is not None:
            raise ValueError(f"line {uneven} has not {plural(len(heads), 'column')} as the header has")
        return tuple([row[place] for _, row in rows[1:]] for place in found)


def column(path: Path, name: str | None) -> list[str]:
    """A column of a table; without a name, the lines of a file that has one column and no header."""
    if name is not None:
        return columns(path, name)[0]
    with reading(path):
        rows = lines(path)
        wide = next((at for at, row in rows if len(row) > 1), None)
        if wide is not None:
            raise ValueError(f"line {wide} has several cells: say in which column the values are")
        return [row[0] for _, row in rows]


def heads(path: Path) -> list[str]:
    """The names in the first line of a CSV file."""
    with reading(path):
        if path.suffix.lower() == ".json":
            raise ValueError("JSON has no columns: give numbers, as 0,1,2")
        rows = lines(path)
        return rows[0][1] if rows else []


def lines(path: Path) -> list[Line]:
    """The lines of a CSV file with their numbers, as stripped cells.

    Blank lines are left out, except in a file of one column: there one may be a value that is missing. So is the
    first line if it only tells Excel how cells are parted (`sep=;`).
    """
    raw = gzip.decompress(path.read_bytes()) if path.suffix.lower() == ".gz" else path.read_bytes()
    text = raw.decode("utf-8-sig")
    hint = delimiter_hint(text)
    rows = csv.reader(io.StringIO(text), delimiter=csv_delimiter(text), skipinitialspace=True)
    try:
        found = [(rows.line_num, [cell.strip() for cell in row]) for row in rows][hint is not None :]
    except csv.Error as error:
        raise ValueError(f"not CSV: {error}") from error
    blank = next((at for at, row in found if not row), None)
    if blank is not None and all(len(row) <= 1 for _, row in found):
        raise ValueError(f'line {blank} is blank: delete it, or write "" if a value is missing there')
    return [(at, row) for at, row in found if row]


def _place(heads: Sequence[str], name: str, why: str = "") -> int:
    if name not in heads:
        raise ValueError(f"there is no column {name!r}; there are {', '.join(heads) or 'none'}{why}")
    return heads.index(name)


def _parquet_columns(path: Path, names: Sequence[str]) -> tuple[list[str], ...]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "tables") from error
    heads = parquet.read_schema(path).names
    for name in names:
        _place(heads, name)
    table = parquet.read_table(path, columns=list(names))
    return tuple(["" if v is None else str(v) for v in table[name].to_pylist()] for name in names)
