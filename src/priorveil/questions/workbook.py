"""The cells of a workbook: rows of its sheets by the names of their columns, and the place of each cell."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from priorveil.errors import InvalidFile, needs_extra, not_text_advice, plural
from priorveil.formatting import number_text
from priorveil.questions.survey_document import Place

Cell = str | int | float | bool | datetime

SHEETS = ("survey", "choices", "settings")
OURS = "pv::"
_ALIASES = {
    "caption": "label",
    "command": "type",
    "tag": "name",
    "relevance": "relevant",
    "readonly": "read_only",
    "calculate": "calculation",
    "set_form_title": "form_title",
}
_BINDS = ("relevant", "constraint", "required", "readonly", "calculate")  # also written as bind::relevant
_PEOPLE_READ = ("label", "hint", "name", "value", "list_name")  # columns in which a date is a mistake


@dataclass(frozen=True)
class Row:
    """A row of a sheet: its cells by column, in lower case, without empty ones; and the place of each of them."""

    sheet: str
    number: int
    cells: Mapping[str, Cell]
    letters: Mapping[str, str]

    def text(self, column: str) -> str:
        """A cell as a text; empty if the cell is."""
        return cell_text(self.cells.get(column, ""))

    def place(self, column: str) -> Place:
        """The place of a cell."""
        return Place(cell=f"{self.sheet}!{self.letters.get(column, 'A')}{self.number}")


def read_sheets(path: Path, content: bytes, left_out: list[str]) -> dict[str, list[Row]]:
    """The rows of the sheets of the form and of those that its priors name, under the row of column names.

    Other sheets have no rows: whatever is in them is no mistake. They are added to what is left out, as are cells in
    columns without a name.
    """
    with needs_extra("surveys"):
        from openpyxl import load_workbook
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about styles, which are not read
            values = load_workbook(io.BytesIO(content), data_only=True)
            formulas = load_workbook(io.BytesIO(content))
    except MemoryError:
        raise
    except Exception as error:  # whatever reading a zip, its XML and openpyxl's own classes raise
        advice = "this is not a workbook that can be read: save it as .xlsx"
        old = content.startswith(b"\xd0")
        raise InvalidFile(path, not_text_advice(content[:4]) if old else advice) from error
    pairs = {
        _sheet_title(sheet): (sheet, written)
        for sheet, written in zip(values.worksheets, formulas.worksheets, strict=True)
    }
    sheets = {name: list(_rows(path, *pairs[name], left_out)) for name in SHEETS if name in pairs}
    priors = " ".join(
        row.text(column)
        for row in sheets.get("survey", ())
        for column in row.cells
        if column.startswith(f"{OURS}prior")
    )
    for title, pair in pairs.items():
        if title in sheets:
            continue
        is_named = any(f"{mark}{title}{mark}" in priors for mark in "\"'")
        sheets[title] = list(_rows(path, *pair, left_out)) if is_named else []
        if not is_named and any(cell is not None for row in pair[0].values for cell in row):
            left_out.append(f"sheet {title}: no prior names it")
    return sheets


def _sheet_title(sheet: Any) -> str:
    """The title of a sheet; those of the form may be in capital letters."""
    title: str = sheet.title.strip()
    return title.lower() if title.lower() in SHEETS else title


def _rows(path: Path, sheet: Any, formulas: Any, left_out: list[str]) -> Iterator[Row]:
    """The rows of a sheet that are not empty; `formulas` is the same sheet with formulas instead of their values."""
    title = _sheet_title(sheet)
    names = _column_names(path, sheet, title)
    letters = {name: letter for letter, name in names.items()}
    nameless: dict[str, int] = {}
    for cells in sheet.iter_rows(min_row=2):
        filled: dict[str, Cell] = {}
        for cell in cells:
            if cell.value is None and formulas[cell.coordinate].value is None:  # also inside of merged cells
                continue
            _check_value(path, title, cell, formulas[cell.coordinate], names.get(cell.column_letter, ""))
            if cell.value is None or not cell_text(cell.value):
                continue
            if cell.column_letter in names:
                filled[names[cell.column_letter]] = cell.value
            else:
                nameless[cell.column_letter] = nameless.get(cell.column_letter, 0) + 1
        if filled:
            yield Row(title, cells[0].row, filled, letters)
    for letter, count in nameless.items() if title in SHEETS else ():
        left_out.append(f"sheet {title}, column {letter}: {plural(count, 'cell')} under no name in row 1")


def _column_names(path: Path, sheet: Any, title: str) -> dict[str, str]:
    """The names of the columns by their letters."""
    names: dict[str, str] = {}
    for cell in next(sheet.iter_rows(max_row=1), ()):
        if cell.value is None or not str(cell.value).strip():
            continue
        name = _column_name(cell_text(cell.value), own=title in SHEETS)
        if name in names.values():
            advice = f"another column is named {name!r}: remove one of them"
            raise InvalidFile(path, advice, cell=f"{title}!{cell.coordinate}")
        names[cell.column_letter] = name
    needed = {"survey": ("type", "name"), "choices": ("list_name",)}.get(title, ())
    missing = [name for name in needed if name not in names.values()]
    if missing and sheet.max_row > 1:
        advice = f"there is no column {missing[0]}: the first row has the names of the columns"
        raise InvalidFile(path, advice, cell=f"{title}!A1")
    return names


def _check_value(path: Path, title: str, cell: Any, written: Any, column: str) -> None:
    """Refuse a formula without a value, or with an error; and a date in the place of a text."""
    if cell.value is None and written.data_type == "f":
        advice = (
            "this formula has no value: save the file in a spreadsheet program, or write the value itself"
        )
    elif cell.data_type == "e":
        advice = f"this formula gives {cell.value}: correct it"
    elif title in SHEETS and cell.is_date and column.partition("::")[0] in _PEOPLE_READ:
        advice = "the spreadsheet took this for a date: format the cell as text, and write it again"
    else:
        return
    raise InvalidFile(path, advice, cell=f"{title}!{cell.coordinate}")


def _column_name(text: str, own: bool) -> str:
    """The name of a column; in sheets of the form its first part in lower case, with `::` before the language."""
    if not own:
        return text
    first, *others = [part.strip() for part in re.split(r"::?", text)]
    if first.lower() == "bind" and others and others[0].lower() in _BINDS:
        first, *others = others
    first = re.sub(r"\s+", "_", first.lower())
    first = _ALIASES.get(first, first)
    if first == "pv" and others:
        others[0] = others[0].lower()
    if first.startswith("pv_"):  # the spelling that ODK accepts in the sheet choices, too
        first = first.replace("pv_", OURS, 1)
    return "::".join([first, *others])


def cell_text(value: Any) -> str:
    """A cell as a text: 1 for the number 1.0, and typographic quotation marks as plain ones."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return number_text(value)
    return str(value).strip().translate({0x201C: '"', 0x201D: '"', 0x2018: "'", 0x2019: "'", 0xA0: " "})


def cell_words(value: Any) -> str:
    """A cell that people read: as it is, without blanks around it."""
    return value.strip() if isinstance(value, str) else cell_text(value)
