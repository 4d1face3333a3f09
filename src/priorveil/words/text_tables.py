"""Tables as plain text, and tables of texts that are shown as text or as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from priorveil.words import html

_LONGEST_LABEL = 60  # letters; longer ones would not leave room for the numbers


def _shorten_label(label: str) -> str:
    """A label with its middle left out if it is very long: many labels differ at their ends only.

    >>> _shorten_label("strongly agree " + "or not " * 9 + "at all")
    'strongly agree or not or not or not o...or not or not at all'
    """
    end = _LONGEST_LABEL // 3
    start = _LONGEST_LABEL - end - 3
    return label if len(label) <= _LONGEST_LABEL else f"{label[:start]}...{label[-end:]}"


def text_lines(heads: Sequence[str], rows: Sequence[Sequence[str]], labels: int = 1) -> list[str]:
    """The lines of a table: columns of labels on the left, where very long ones are cut, numbers on the right."""
    cells = [[*map(_shorten_label, row[:labels]), *row[labels:]] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = [str.ljust] * labels + [str.rjust] * (len(heads) - labels)
    return ["  ".join(side(c, n) for side, c, n in zip(sides, row, widths, strict=True)) for row in cells]


class TextTable(NamedTuple):
    """A table of texts: how many columns of labels it begins with, the titles of all columns, and the rows."""

    labels: int
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def lines(self) -> list[str]:
        """The lines of plain text."""
        return text_lines(self.heads, self.rows, self.labels)

    def html(self) -> str:
        """The table as HTML."""
        return html.table(self.heads, self.rows, range(self.labels, len(self.heads)))
