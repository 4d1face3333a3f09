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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from priorveil.errors import NOT_SHOWN, NOT_TEXT, InvalidFile, InvalidInput, not_text_advice
from priorveil.formatting import read_number

Fields = list[str | None]

DAMAGED = "the file is damaged: it cannot be read to the end; copy or write it again"

_GZIP = b"\x1f\x8b"
_LONGEST_LINE = 1 << 20  # characters
_SAMPLE = 100  # lines that decide which delimiter the file uses
_DELIMITERS = ";\t,"
_QUOTED = re.compile(r'"[^"]*"')
_SEP_LINE = re.compile(r"\ufeff?\"?sep=([,;\t])\"?[^\S\r\n]*([\r\n]|$)", re.IGNORECASE)


def read_rows(file: Any) -> Iterator[tuple[int, Fields]]:
    r"""The rows of a CSV, each with the number of the line that it ends on; a blank line has no cells.

    `file` is a binary stream with `peek`; it stays open. A first line `sep=;`, which tells Excel the delimiter,
    is not a row. Errors never show what is in the file.

    >>> stream = io.BufferedReader(io.BytesIO(b'a;b\n1;\n"";"x;y"\n'))
    >>> list(read_rows(stream))
    [(1, ['a', 'b']), (2, ['1', None]), (3, ['', 'x;y'])]
    """
    start = file.peek(4)[:4]
    packed = start[:2] == _GZIP
    not_text = NOT_TEXT if packed else not_text_advice(start)
    text = io.TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, "utf-8-sig", newline="")
    try:
        yield from _parse(text, not_text)
    except UnicodeDecodeError:
        raise InvalidInput("data", NOT_SHOWN, not_text) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InvalidInput("data", NOT_SHOWN, DAMAGED) from None
    except csv.Error:
        advice = "it has a cell or line that is too long, or a quotation mark that is not closed"
        raise InvalidInput("data", NOT_SHOWN, advice) from None
    finally:
        with suppress(ValueError):  # already closed
            text.detach()  # the caller, who opened the file, closes it


def _parse(text: io.TextIOWrapper, not_text: str) -> Iterator[tuple[int, Fields]]:
    unread = iter(partial(text.readline, _LONGEST_LINE), "")
    sample = list(islice(unread, _SAMPLE))
    if "\0" in "".join(sample):  # such as a tar file, whose names are text
        raise InvalidInput("data", NOT_SHOWN, not_text)
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
        cells = _mark_missing(row, "".join(last), delimiter) if "" in row else cast(Fields, row)
        yield reader.line_num + skipped, cells
    if "".join(last).count('"') % 2:  # the file may end inside a quotation, which only strict mode refuses
        list(csv.reader(last, delimiter=delimiter, skipinitialspace=True, strict=True))


def _mark_missing(row: list[str], line: str, delimiter: str) -> Fields:
    """The cells of a row, with None where one is empty and not quoted."""
    cells: Fields = [cell or None for cell in row]
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
    try:
        with open(path, "rb") as file:
            rows = [(line, [(cell or "").strip() for cell in cells]) for line, cells in read_rows(file)]
    except InvalidInput as error:
        raise InvalidFile(path, error.advice) from None
    blank = next((line for line, cells in rows if not cells), None)
    if blank is not None and all(len(cells) <= 1 for _, cells in rows):
        raise InvalidFile(path, 'blank: delete it, or write "" if a value is missing there', line=blank)
    return [(line, cells) for line, cells in rows if cells]


def csv_delimiter(text: str) -> tuple[str, int]:
    r"""The delimiter of a CSV text (semicolon, tab or comma), and the number of lines at the top that only name it.

    A first line such as `sep=;` (Excel writes it) decides. Otherwise it is the mark that occurs in most lines, outside
    quotes; commas where none occurs in more than half of them. Semicolons win ties, since commas also occur in numbers.

    >>> csv_delimiter("a;1\nb;2\n"), csv_delimiter("a;b,1\nc,2\n"), csv_delimiter("a;0,5\nb;0,5\n")
    ((';', 0), (',', 0), (';', 0))
    >>> csv_delimiter("a; b\nc\nd\n"), csv_delimiter("sep=;\na,b\n"), csv_delimiter("sep;other\n")
    ((',', 0), (';', 1), (';', 0))
    """
    if hint := _SEP_LINE.match(text):
        return hint[1], 1
    lines = [line for line in _QUOTED.sub('""', text).splitlines() if line.strip()]
    frequency = {mark: sum(mark in line for line in lines) for mark in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda mark: frequency[mark])
    return best if 2 * frequency[best] > len(lines) else ",", 0


def delimiter_advice(names: Sequence[str]) -> str:
    """Words to add to "no such column" if a column's name contains a delimiter.

    >>> delimiter_advice(["a", "b"]), delimiter_advice(["a;b"])
    ('', " (a name contains ';': use one delimiter throughout: comma, semicolon or tab)")
    """
    mark = next((mark for name in names for mark in _DELIMITERS if mark in name), None)
    advice = f" (a name contains {mark!r}: use one delimiter throughout: comma, semicolon or tab)"
    return "" if mark is None else advice


def is_number(cell: str) -> bool:
    """Whether a cell is a number; infinities and nan are numbers too.

    >>> is_number("1e-3"), is_number("0,5"), is_number("many")
    (True, True, False)
    """
    return read_number(cell) is not None
