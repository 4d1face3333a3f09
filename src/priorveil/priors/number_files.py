"""Small CSV and JSON files of labelled numbers: the numbers of a prior, and the rows of a matrix.

Everything that is wrong with a file is an `InvalidFile` with its path, and with the line where one line is wrong. The
error never shows a cell: somebody may have given a table of people by mistake.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from priorveil.csv_reader import is_number, small_csv_rows
from priorveil.errors import Hint, InvalidFile, InvalidInput, not_text_advice, plural
from priorveil.formatting import read_number
from priorveil.priors.domain import label_positions
from priorveil.priors.joint import LEAVE_OUT, SMOOTH_COUNTS
from priorveil.priors.label_texts import Label, first_labels, label_text

Line = tuple[int, list[str]]  # a row of a CSV file: its line number and its cells

_WRITE_NUMBERS = "write numbers as 0.25 or 1200, without % or thousands separators"
_PEOPLE = Hint("Prior.from_table", purpose="if each row is a person")
_SMOOTH_COUNTS_OF_FILE = Hint(
    "counts=True and smoothing=1", purpose="to add one to every cell if these are counts"
)
# What an error advises instead of the function that takes numbers: an argument of the reader of a file.
_ARGUMENTS = {
    "Prior.from_values": _PEOPLE,
    "Prior.from_counts": Hint("counts=True, or normalise=True for rounded figures", purpose="for counts"),
    "Prior.from_counts(smoothing=1)": Hint("counts=True and smoothing=1", purpose="to smooth it"),
    "Channel.from_weights": Hint("normalise=True", purpose="for weights or rounded figures"),
    "Secret.from_joint": Hint("normalise=True", purpose="for weights or rounded figures"),
}
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,99}")  # a label with more digits stays a text
_MISSING_NUMBERS = ("na", "n/a", "null", "none")  # these are never the name of a column


@contextmanager
def file_errors(path: str | Path) -> Iterator[None]:
    """Turn an error about the content of a file into `InvalidFile`, without the value that it shows."""
    try:
        yield
    except InvalidFile:
        raise
    except InvalidInput as error:
        hints = (_ARGUMENTS.get(hint.argument, hint) for hint in error.hints)
        raise InvalidFile(path, f"{error.argument}: {error.advice}", *hints) from None
    except OverflowError:
        raise InvalidFile(path, "the sum of the numbers is too large: give smaller numbers") from None


def labels_from_text(texts: Sequence[str]) -> list[Label]:
    """The labels that a file holds as text: whole numbers if all of them are.

    >>> labels_from_text(["0", "10"]), labels_from_text(["007", "8"]), labels_from_text(["--3", "1"])
    ([0, 10], ['007', '8'], ['--3', '1'])
    """
    if texts and all(map(_WHOLE_NUMBER.fullmatch, texts)):
        return [int(text) for text in texts]
    return list(texts)


def _csv_lines(path: Path) -> list[Line]:
    lines = small_csv_rows(path)
    if not lines:
        raise InvalidFile(path, "the file is empty")
    return lines


def _json_document(path: Path) -> Any:
    """The document of a JSON file; its numbers are floats."""

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        document = dict(pairs)
        if len(document) < len(pairs):
            raise InvalidFile(path, "two entries have the same key: keep one of them")
        return document

    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text, parse_int=float, object_pairs_hook=unique_keys)
    except UnicodeDecodeError:
        raise InvalidFile(path, not_text_advice(path.read_bytes()[:4])) from None
    except json.JSONDecodeError as error:
        advice = "this is not JSON: check its commas, quotation marks and brackets"
        raise InvalidFile(path, advice, line=error.lineno) from None
    except RecursionError:
        raise InvalidFile(path, "this JSON is nested too deeply") from None


def is_json(path: Path) -> bool:
    """Whether the name of a file says that it is JSON."""
    return path.suffix.lower() == ".json"


# -- the numbers of a prior ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PriorNumbers:
    """The number of each value; for several attributes, values are tuples and the attributes have `names`."""

    cells: dict[Any, Any]
    names: list[str] | None = None

    def possible(self) -> PriorNumbers:
        """These numbers without the values whose number is zero."""
        return PriorNumbers({value: number for value, number in self.cells.items() if number}, self.names)

    def shares(self) -> PriorNumbers:
        """These numbers divided by their sum, unless that is zero."""
        total = math.fsum(self.cells.values()) or 1.0
        return PriorNumbers({value: number / total for value, number in self.cells.items()}, self.names)


def read_prior_numbers(path: Path, whole: bool) -> PriorNumbers:
    """Read CSV lines `label,number` or `number`, or a JSON mapping or list. Values without labels are 0, 1, 2, ...

    With a header, CSV lines may begin with the levels of several attributes. `whole` refuses fractions.
    """
    return _json_numbers(path, whole) if is_json(path) else _csv_numbers(path, whole)


def _number_problem(number: float, whole: bool) -> str | None:
    """Why a number cannot be a probability, or a count if it has to be `whole`; None if it can."""
    if not math.isfinite(number) or number < 0:
        return "the number is below zero or not finite"
    return "the count is not a whole number" if whole and not number.is_integer() else None


def _json_numbers(path: Path, whole: bool) -> PriorNumbers:
    document = _json_document(path)
    numbers = list(document.values()) if isinstance(document, dict) else document
    if not isinstance(numbers, list) or not all(isinstance(number, float) for number in numbers):
        raise InvalidFile(path, 'give {"label": probability, ...} or a list of probabilities')
    for place, number in enumerate(numbers, 1):
        if problem := _number_problem(number, whole):
            raise InvalidFile(path, f"entry {place}: {problem}")
    values = labels_from_text(list(document)) if isinstance(document, dict) else range(len(numbers))
    return PriorNumbers(dict(zip(values, numbers, strict=True)))


def _csv_numbers(path: Path, whole: bool) -> PriorNumbers:
    lines = _csv_lines(path)
    if len(lines) == 1 and len(lines[0][1]) > 2:
        lines = [(1, [cell]) for cell in lines[0][1]]  # all numbers are on one line
    header = lines[0][1] if len(lines) > 1 and _is_column_name(lines[0][1][-1]) else []
    body = lines[1:] if header else lines
    widths = {len(cells) for _, cells in body}
    all_numbers = all(is_number(cells[-1]) for _, cells in body)
    several = len(header) > 2 and widths == {len(header)} and all_numbers
    if widths not in ({1}, {2}) and not several:
        raise InvalidFile(path, "give lines of label,number, or a number on each line", _PEOPLE)
    numbers = [_number(path, line, cells[-1], _PEOPLE) for line, cells in body]
    for (line, _), number in zip(body, numbers, strict=True):
        if problem := _number_problem(number, whole):
            raise InvalidFile(path, problem, line=line)
    columns = [labels_from_text(column) for column in zip(*(cells[:-1] for _, cells in body), strict=True)]
    single = columns[0] if columns else range(len(numbers))
    values: Sequence[Any] = list(zip(*columns, strict=True)) if several else single
    _require_different(path, values, [line for line, _ in body])
    return PriorNumbers(dict(zip(values, numbers, strict=True)), header[:-1] if several else None)


def _is_column_name(cell: str) -> bool:
    """Whether the cell above numbers is the name of their column, and not a number that is missing or mistyped."""
    has_only_letters = any(map(str.isalpha, cell)) and not any(map(str.isdigit, cell))
    return has_only_letters and not is_number(cell) and cell.lower().strip("+-") not in _MISSING_NUMBERS


def _number(path: Path, line: int, cell: str, *hints: Hint, place: str = "") -> float:
    number = read_number(cell)
    if number is None or not math.isfinite(number):
        raise InvalidFile(path, f"{place}not a number: {_WRITE_NUMBERS}", *hints, line=line)
    return number


def _require_different(path: Path, values: Sequence[Any], lines: Sequence[int]) -> None:
    first_line: dict[Any, int] = {}
    for value, line in zip(values, lines, strict=True):
        if value in first_line:
            advice = f"the same value as in line {first_line[value]}: keep one of them"
            raise InvalidFile(path, advice, _PEOPLE, line=line)
        first_line[value] = line


def require_all_combinations(path: str | Path, cells: dict[Any, float], counts: bool) -> None:
    """Refuse cells of several attributes if a combination of levels is missing or zero. None of them is shown."""
    combinations = math.prod(len(set(column)) for column in zip(*cells, strict=True))
    absent = combinations - sum(number > 0 for number in cells.values())
    if absent:
        advice = f"{absent:,} of {plural(combinations, 'combination')} of levels are missing or zero"
        advice += ", and cannot be protected. All columns but the last are attributes: remove any that is not"
        raise InvalidFile(path, advice, SMOOTH_COUNTS if counts else _SMOOTH_COUNTS_OF_FILE, LEAVE_OUT)


# -- matrices --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberMatrix:
    """A matrix of numbers, and the labels of its rows and columns; None where the file has none."""

    rows: list[list[float]]
    row_labels: list[Label] | None = None
    column_labels: list[Label] | None = None

    def shares(self) -> NumberMatrix:
        """The matrix with every row divided by its sum, unless that is zero."""
        totals = [math.fsum(row) or 1.0 for row in self.rows]
        rows = [[number / total for number in row] for row, total in zip(self.rows, totals, strict=True)]
        return NumberMatrix(rows, self.row_labels, self.column_labels)


def read_matrix(path: Path) -> NumberMatrix:
    """Read a matrix: the rows of a channel or of a secret, or several priors.

    CSV: rows of numbers; or a first line with the labels of the columns and a first column with those of the rows, if
    the first cell is not a number. JSON: a list of rows, or `{"matrix": rows, "inputs": [...], "outputs": [...]}`.
    """
    if not is_json(path):
        lines = _csv_lines(path)
        return _csv_matrix(path, lines, labelled=not is_number(lines[0][1][0]))
    document = _json_document(path)
    fields = document if isinstance(document, dict) else {"matrix": document}
    rows = _json_rows(path, fields.get("matrix"))
    labels = [_json_labels(path, fields.get(name)) for name in ("inputs", "outputs")]
    return NumberMatrix(rows, *labels)


def _json_labels(path: Path, labels: Any) -> list[Label] | None:
    """Labels of a JSON matrix, whose whole numbers were read as floats."""
    if labels is None:
        return None
    if not isinstance(labels, list) or not all(isinstance(label, str | float) for label in labels):
        raise InvalidFile(path, "labels are lists of texts or numbers")
    return [int(label) if isinstance(label, float) and label.is_integer() else label for label in labels]


def _json_rows(path: Path, rows: Any) -> list[list[float]]:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and row for row in rows):
        raise InvalidFile(path, "give a list of rows, such as [[0, 1, 1], [1, 0, 0]]")
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            sizes = f"row {number} has {plural(len(row), 'entry')}, row 1 has {len(rows[0])}"
            raise InvalidFile(path, sizes.replace("entrys", "entries"))
        for place, entry in enumerate(row, 1):
            if not (isinstance(entry, float) and math.isfinite(entry)):
                raise InvalidFile(path, f"row {number}, entry {place}: not a number")
    return rows


def _csv_matrix(path: Path, lines: list[Line], labelled: bool) -> NumberMatrix:
    first_line, header = lines[0]
    for line, cells in lines:
        if len(cells) != len(header):
            sizes = f"{plural(len(cells), 'cell')}, but line {first_line} has {len(header)}"
            raise InvalidFile(path, sizes, line=line)
    body = lines[1:] if labelled else lines
    if not body or (labelled and len(header) == 1):
        raise InvalidFile(path, "there are no numbers below and beside the labels")
    rows = [
        [
            _number(path, line, cell, place=f"entry {place}: ")
            for place, cell in enumerate(cells[labelled:], 1)
        ]
        for line, cells in body
    ]
    if not labelled:
        return NumberMatrix(rows)
    return NumberMatrix(rows, labels_from_text([cells[0] for _, cells in body]), labels_from_text(header[1:]))


def read_statistics(path: Path, labels: Sequence[Label]) -> tuple[list[list[float]], list[Label] | None]:
    """Read the matrix of a linear query: a row for each statistic, a column for each label of the prior.

    A header and a first column with the names of the statistics may be there or not. Returns the rows, with the columns
    in the order of the labels, and the names.
    """
    if is_json(path):
        rows = _json_rows(path, _json_document(path))
        require_width(path, len(rows[0]), labels)
        return rows, None
    lines = _csv_lines(path)
    line, head = lines[0]
    label_texts = list(map(label_text, labels))
    has_names = len(head) > len(labels) and not is_number(head[0])
    beside = head[1:] if has_names else head
    numbers = [is_number(cell) for cell in beside]
    is_header = not any(numbers) or set(beside) == set(label_texts)
    may_be_numbers = all(numbers) and (bool(head[0]) if has_names else len(lines) > 1)
    if is_header and may_be_numbers:
        advice = (
            "this may be a header or numbers: give a column of names first, with an empty cell in the header"
        )
        raise InvalidFile(path, advice, line=line)
    if has_names and head[0] and not is_header:
        lines = [(line, ["", *label_texts]), *lines]
    elif is_header and not has_names and not all(numbers):
        lines = [(line, ["", *head])] + [
            (n, [f"row {i}", *cells]) for i, (n, cells) in enumerate(lines[1:], 1)
        ]
        has_names = True
    matrix = _csv_matrix(path, lines, labelled=has_names)
    if matrix.column_labels is None:
        require_width(path, len(matrix.rows[0]), labels)
        return matrix.rows, None
    order = label_order(path, matrix.column_labels, labels)
    return [[row[place] for place in order] for row in matrix.rows], matrix.row_labels


def require_width(path: str | Path, columns: int, labels: Sequence[Label]) -> None:
    """Refuse a file that does not have one number for each label of the prior."""
    if columns != len(labels):
        sizes = f"the prior has {plural(len(labels), 'value')}, this file has {columns}"
        raise InvalidFile(path, f"{sizes}: give one for each of {first_labels(labels)}")


def label_order(path: str | Path, columns: Sequence[Label], labels: Sequence[Label]) -> list[int]:
    """The place of each label of a prior among the columns of a file, which may write 0 for 0.0."""
    require_width(path, len(columns), labels)
    try:
        order = list(label_positions(columns, labels, label_text))
    except KeyError as missing:
        advice = f"give one for each of {first_labels(labels)}, or numbers alone in this order"
        raise InvalidFile(path, f"the value {missing.args[0]!r} is missing: {advice}") from None
    if len(set(order)) < len(order):
        advice = "two values are written the same way: give numbers alone, in the order of the prior"
        raise InvalidFile(path, advice)
    return order
