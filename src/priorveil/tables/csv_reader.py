"""The one reader of CSV files: UTF-8, plain or in gzip, with commas, semicolons or tabs.

Every cell is text; no type is guessed. An empty cell is missing (None); a quoted empty cell (`""`) is an empty
text. Spaces after a delimiter are skipped.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from priorveil.errors import NOT_SHOWN, NOT_TEXT, InvalidInput
from priorveil.files import csv_delimiter

Cells = list[str | None]

_GZIP = b"\x1f\x8b"
_LONGEST_LINE = 1 << 20  # characters
_SAMPLE = 100  # lines that decide which delimiter the file uses


def read_rows(file: Any) -> Iterator[tuple[int, Cells]]:
    r"""The rows of a CSV, each with the number of the line that it ends on; a blank line has no cells.

    `file` is a binary stream with `peek`; it stays open. A first line `sep=;`, which tells Excel the delimiter,
    is not a row. Errors never show what is in the file.

    >>> stream = io.BufferedReader(io.BytesIO(b'a;b\n1;\n"";"x;y"\n'))
    >>> list(read_rows(stream))
    [(1, ['a', 'b']), (2, ['1', None]), (3, ['', 'x;y'])]
    """
    packed = file.peek(2)[:2] == _GZIP
    text = io.TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, "utf-8-sig", newline="")
    try:
        yield from _parse(text)
    except UnicodeDecodeError:
        raise InvalidInput("data", NOT_SHOWN, NOT_TEXT) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InvalidInput("data", NOT_SHOWN, "the file is damaged: it cannot be read to the end") from None
    except csv.Error:
        advice = "it has a cell or line that is too long, or a quotation mark that is not closed"
        raise InvalidInput("data", NOT_SHOWN, advice) from None
    finally:
        with suppress(ValueError):  # already closed
            text.detach()  # the caller, who opened the file, closes it


def _parse(text: io.TextIOWrapper) -> Iterator[tuple[int, Cells]]:
    unread = iter(partial(text.readline, _LONGEST_LINE), "")
    sample = list(islice(unread, _SAMPLE))
    if "\0" in "".join(sample):  # such as a tar file, whose names are text
        raise InvalidInput("data", NOT_SHOWN, NOT_TEXT)
    delimiter, skipped = csv_delimiter("".join(sample))
    raw: list[str] = []
    last: list[str] = []  # the lines of the last row

    def lines() -> Iterator[str]:
        for line in chain(sample[skipped:], unread):
            if len(line) == _LONGEST_LINE:
                raise csv.Error
            raw.append(line)
            yield line

    reader = csv.reader(lines(), delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        last, raw = raw, []
        cells = _mark_missing(row, "".join(last), delimiter) if "" in row else cast(Cells, row)
        yield reader.line_num + skipped, cells
    if "".join(last).count('"') % 2:  # the file may end inside a quotation, which only strict mode refuses
        list(csv.reader(last, delimiter=delimiter, skipinitialspace=True, strict=True))


def _mark_missing(row: list[str], line: str, delimiter: str) -> Cells:
    """The cells of a row, with None where one is empty and not quoted."""
    cells: Cells = [cell or None for cell in row]
    if '""' in line:
        pattern = f'( *"(?:[^"]|"")*"[^{delimiter}]*|[^{delimiter}]*){delimiter}'
        for index, written in enumerate(re.findall(pattern, line.rstrip("\r\n") + delimiter)[: len(row)]):
            if written.strip() == '""':
                cells[index] = ""
    return cells


def small_csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """All rows of a small CSV without a header, as stripped cells with their line numbers.

    Blank lines are left out, except in a file of one column, where they are an error: a value may be missing.
    """
    with open(path, "rb") as file:
        found = [(line, [(cell or "").strip() for cell in cells]) for line, cells in read_rows(file)]
    blank = next((line for line, cells in found if not cells), None)
    if blank is not None and all(len(cells) <= 1 for _, cells in found):
        advice = f'line {blank} is blank: delete it, or write "" if a value is missing there'
        raise InvalidInput("data", str(path), advice)
    return [(line, cells) for line, cells in found if cells]
