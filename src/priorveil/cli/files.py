"""What commands read and write: priors, channels, secrets, plans, columns of tables, and lists of refused rows.

Every reader puts the name of the file before what is wrong with it.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

import priorveil as pv
from priorveil.cli.screen import error_text, rows_bar, waiting
from priorveil.errors import PriorveilError, plural
from priorveil.files import atomic_write, is_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from priorveil.priors import Label
    from priorveil.priors.labels import Impossible
    from priorveil.tables import RefusedRows

_FIRST_ROWS = 5  # refused for one reason, that are shown

_MISSING = ("na", "n/a", "null", "none")  # never the head of a column of numbers
_NUMBERS = "write numbers as 0.25 or 1200, without %, decimal commas or thousands separators"
_DATA = "if a row is a person, `priorveil design` counts them with --column NAME"

Line = tuple[int, list[str]]  # a row of a CSV file: its line number and its cells


@contextmanager
def reading(path: Path, advice: str = "") -> Iterator[None]:
    """Put the file's name before what is wrong with it, and advice after it."""
    try:
        yield
    except (PriorveilError, ValueError, TypeError) as error:
        raise click.ClickException(f"{path}: {error_text(error)}{advice and f'. {advice}'}") from error


def read_people(path: Path, *columns: str) -> list[tuple[int, tuple[str, ...]]]:
    """Read columns of a table as text: the number and the cells of each row.

    Rows with a missing value are left out; their number is printed.
    """
    from priorveil.tables.read import text_columns

    rows = list(enumerate(zip(*text_columns(path, *columns), strict=True), 1))
    if not rows:
        raise click.ClickException(f"{path}: it has no rows")
    complete = [(row, cells) for row, cells in rows if "" not in cells]
    if len(complete) < len(rows):
        without = plural(len(rows) - len(complete), "row")
        click.echo(f"left out because a value is missing: {without}", err=True)
    return complete


def read_numbers(path: Path, column: str, low: float, high: float, advice: str) -> list[float]:
    """Read a column of numbers; the first row that has no number from `low` to `high` is an error with the advice."""
    rows = read_people(path, column)
    for row, (word,) in rows:
        if not (is_number(word) and low <= float(word) <= high):
            raise click.ClickException(f"{path}: row {row}: {column} is not a number in the range: {advice}")
    return [float(word) for _, (word,) in rows]


def match_labels(
    rows: list[tuple[int, tuple[str, ...]]], labels: Sequence[Label], path: Path, owner: str
) -> list[Label]:
    """Return the labels of `owner` that are in the first cells of numbered rows: a cell for each attribute.

    They are found as in any table of values. Any other value is refused by its row; it is private and not shown.
    """
    from priorveil.priors.labels import label_parts
    from priorveil.tables.columns import cell_codes

    columns = [[cells[place] for _, cells in rows] for place in range(len(label_parts(labels[0])))]
    codes = cell_codes(columns, labels).tolist()
    for (row, _), code in zip(rows, codes, strict=True):
        if code < 0:
            raise click.ClickException(f"{path}: row {row}: {owner} has no such value: correct one of them")
    return [labels[code] for code in codes]


def labels_of(words: Sequence[str]) -> list[Label]:
    """Return the labels that a file holds as text: whole numbers if all of them are.

    >>> labels_of(["0", "10"]), labels_of(["007", "8"]), labels_of(["a", "1"])
    ([0, 10], ['007', '8'], ['a', '1'])
    """
    if words and all(word.lstrip("-").isdigit() and str(int(word)) == word for word in words):
        return [int(word) for word in words]
    return list(words)


def _csv_rows(path: Path) -> list[Line]:
    from priorveil.tables.csv_reader import small_csv_rows

    found = small_csv_rows(path)
    if not found:
        raise ValueError("the file is empty")
    return found


def _line_number(line: int | str, cell: str, advice: str = _NUMBERS) -> float:
    if not (is_number(cell) and math.isfinite(float(cell))):
        # A word may be a person's value, if people were given instead of a prior.
        shown = "a word" if _is_word(cell) else repr(cell)
        raise ValueError(f"line {line}: {shown} is not a number: {advice}")
    return float(cell)


# -- channels, secrets and plans ---------------------------------------------------------------------------


def read_channel(path: Path, normalise: bool) -> pv.Channel:
    """Read a channel from CSV or JSON; of a plan, the one that its levels are measured on."""
    with reading(path):
        if path.suffix.lower() != ".json":
            rows = _csv_rows(path)
            matrix = _csv_matrix(rows, labelled=not is_number(rows[0][1][0]))
            return (pv.Channel.from_weights if normalise else pv.Channel)(*matrix)
        text = path.read_text(encoding="utf-8-sig")
        document = json.loads(text)
        if isinstance(document, dict) and "format" in document:
            return read_plan(path).leakage_channel
        return pv.Channel.from_json(text, normalise)


def _csv_matrix(rows: list[Line], labelled: bool) -> tuple[Any, ...]:
    """Return the numbers of a matrix, and if it is labelled, the labels of its rows and of its columns."""
    first, head = rows[0]
    for line, row in rows:
        if len(row) != len(head):
            raise ValueError(f"line {line} has {plural(len(row), 'cell')}, line {first} has {len(head)}")
    below = rows[labelled:]
    entries = [(line, enumerate(row[labelled:], 1)) for line, row in below]
    matrix = [[_line_number(f"{line}, entry {n}", cell) for n, cell in row] for line, row in entries]
    labels = (labels_of([row[0] for _, row in below]), labels_of(head[1:])) if labelled else ()
    return matrix, *labels


def read_matrix(path: Path | None, prior: pv.Prior) -> tuple[list[list[float]], list[Label] | None]:
    """Read the matrix of a linear query, with or without a header and a first column of names; and those names."""
    from priorveil.priors.labels import label_text

    if path is None:
        raise click.UsageError("--query linear needs its numbers: give --matrix FILE")
    with reading(path):
        rows = _json_rows(path) if path.suffix.lower() == ".json" else _csv_rows(path)
        texts, (line, head) = [label_text(label) for label in prior.labels], rows[0]
        named = len(head) > len(texts) and not is_number(head[0])
        numbers = [is_number(cell) for cell in head[named:]]
        is_header = not any(numbers) or set(head[named:]) == set(texts)
        if (head[0] if named else len(rows) > 1) and is_header and all(numbers):
            advice = "give a column of names first, and leave its cell in the header empty"
            raise ValueError(f"line {line} may be a header or not: {advice}")
        if named and head[0] and not is_header:
            rows = [(line, ["", *texts]), *rows]
        elif is_header and not named and not all(numbers):
            rows = [(line, [f"row {n}" if n else "", *cells]) for n, (line, cells) in enumerate(rows)]
            named = True
        matrix, *labels = _csv_matrix(rows, named)
        if not labels:
            _require_width(len(matrix[0]), prior.labels)
            return matrix, None
        names, values = labels
        order = value_order(values, prior.labels)
        return [[row[place] for place in order] for row in matrix], names


def _json_rows(path: Path) -> list[Line]:
    """Return the rows of a JSON matrix as those of a CSV."""
    rows = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and row for row in rows):
        raise ValueError("give a list of rows, such as [[0, 1, 1], [1, 0, 0]]")
    return [(number, list(map(str, row))) for number, row in enumerate(rows, 1)]


def _require_width(count: int, labels: Sequence[Label]) -> None:
    """Refuse a file that does not have one entry for each label of the prior."""
    from priorveil.priors.labels import first_labels

    if count != len(labels):
        sizes = f"the prior has {plural(len(labels), 'value')}, this file has {count}"
        raise ValueError(f"{sizes}: give one for each of {first_labels(labels)}")


def value_order(values: Sequence[Label], labels: Sequence[Label]) -> list[int]:
    """Return the position of each label of a prior among the values of a file, where 0 may be written for 0.0."""
    from priorveil.priors.labels import first_labels, label_positions, label_text

    _require_width(len(values), labels)
    try:
        order = list(label_positions(values, labels, label_text))
    except KeyError as missing:
        advice = f"give one for each of {first_labels(labels)}, or numbers alone in this order"
        raise ValueError(f"the value {missing.args[0]!r} is missing: {advice}") from None
    if len(set(order)) < len(order):
        raise ValueError("two values are written the same way: give numbers alone, in the order of the prior")
    return order


def read_secret(
    path: Path | None, prior: pv.Prior, normalise: bool, mix: bool
) -> tuple[pv.Secret | None, pv.Prior]:
    """Read a secret, which has the form of a channel from secrets to values; None without a path.

    The prior has to be a mixture of the secret's rows; with `mix` it becomes the nearest one.
    """
    if path is None:
        if mix:
            raise click.UsageError("--mix is for the rows of a secret: give --secret")
        return None, prior
    given = read_channel(path, normalise)
    with reading(path):
        secret = pv.Secret(given.matrix[:, value_order(given.outputs, prior.labels)], given.inputs)
        if mix:
            near = secret.nearest(prior)
            distance = abs(near.probabilities - prior.probabilities).sum() / 2
            click.echo(f"the prior is now the nearest mixture of the rows, {distance:.3g} away", err=True)
            prior = near
        secret.require_fits(prior)
    return secret, prior


def read_plan(path: Path) -> pv.Plan:
    """Read a plan and prove it again."""
    with reading(path):
        return pv.Plan.load(path)


def read_plans(path: Path, cohort: str | None) -> pv.Plan | dict[str, pv.Plan]:
    """Read a plan; with `cohort`, the plans of a folder by the names of their files, where %2F is a slash."""
    if path.is_dir() and cohort is None:
        raise click.UsageError(f"{path} is a folder: name the column that chooses a plan, --cohort COLUMN")
    if cohort is None:
        return read_plan(path)
    found = sorted(path.glob("*.json"))
    plans = {unquote(file.stem): read_plan(file) for file in found}
    if len(plans) < len(found):
        raise click.UsageError(f"two plans in {path} stand for the same value: remove one of them")
    if not plans:
        raise click.UsageError(f"with --cohort, PLAN is a folder of plans VALUE.json, not {path}")
    return plans


# -- priors ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PriorFormat:
    """What the numbers of a prior are: whole counts, to which `smoothing` may be added, or rounded shares."""

    counts: bool
    smoothing: float | None
    normalise: bool
    impossible: Impossible  # cells of probability zero, of several attributes

    def read(self, path: Path) -> pv.Prior:
        """Read a prior from CSV lines `label,number` or `number`, or from a JSON mapping or list.

        With a header, lines may begin with the levels of several attributes.
        """
        if self.smoothing is not None and not self.counts:
            raise click.UsageError("--smoothing is added to counts: give --counts too")
        with reading(path):
            is_json = path.suffix.lower() == ".json"
            cells, names = _json_cells(path) if is_json else _csv_cells(_csv_rows(path))
            if names is None and self.impossible == "leave out":
                cells = {value: number for value, number in cells.items() if number}
            if self.counts:
                return pv.Prior.from_counts(cells, None, self.smoothing, names, self.impossible)
            mass = math.fsum(cells.values()) if self.normalise else 1.0
            shares = {value: number / mass for value, number in cells.items()} if mass > 0 else cells
            return pv.Prior(shares) if names is None else pv.Prior.joint(shares, names, None, self.impossible)


def _json_cells(path: Path) -> tuple[dict[Any, Any], None]:
    """Return the number of each value in a JSON file. Values without names are 0, 1, 2, ..."""
    document = json.loads(path.read_text(encoding="utf-8-sig"), parse_int=float)
    numbers = list(document.values()) if isinstance(document, dict) else document
    if not isinstance(numbers, list) or not all(isinstance(number, float) for number in numbers):
        raise ValueError('give {"label": probability, ...} or a list of probabilities')
    values = labels_of(list(document)) if isinstance(document, dict) else range(len(numbers))
    return dict(zip(values, numbers, strict=True)), None


def _csv_cells(rows: list[Line]) -> tuple[dict[Any, Any], list[str] | None]:
    """Return the number of each value in a CSV file, and the names of the attributes if there are several."""
    if len(rows) == 1 and len(rows[0][1]) > 2:
        rows = [(1, [cell]) for cell in rows[0][1]]  # all numbers on one line
    head = rows[0][1] if len(rows) > 1 and _is_word(rows[0][1][-1]) else None
    rows = rows if head is None else rows[1:]
    widths = {len(row) for _, row in rows}
    numeric = all(is_number(row[-1]) for _, row in rows)  # otherwise a row is a person
    names = head[:-1] if head is not None and len(head) > 2 and widths == {len(head)} and numeric else None
    if widths not in ({1}, {2}) and names is None:
        raise ValueError(f"give lines of label,number, or a number on each line; {_DATA}")
    numbers = [_line_number(line, row[-1], f"{_NUMBERS}; {_DATA}") for line, row in rows]
    columns = [labels_of(column) for column in zip(*(row[:-1] for _, row in rows), strict=True)]
    values = list(zip(*columns, strict=True)) if names else columns[0] if columns else range(len(numbers))
    if len(set(values)) < len(values):
        raise ValueError("two lines have the same value: keep one of them")
    return dict(zip(values, numbers, strict=True)), names


def _is_word(cell: str) -> bool:
    """Return whether a cell is a word, such as the head of a column, and not one for a missing number."""
    word = any(map(str.isalpha, cell)) and not any(map(str.isdigit, cell))
    return word and not is_number(cell) and cell.lower().strip("+-") not in _MISSING


# -- writing -----------------------------------------------------------------------------------------------


def require_new(force: bool, *paths: Path | None) -> None:
    """Refuse to replace files that exist, unless `force`."""
    for path in paths:
        if path is not None and path.is_file() and not force:
            raise click.UsageError(f"{path} exists: choose another name, or --force")


def require_distinct(read: Mapping[str, Path | str | None], written: Mapping[str, Path | None]) -> None:
    """Refuse to write over a file that is read, or twice into one file."""
    from priorveil.tables.read import table_files

    inputs = [(name, table_files(Path(path))) for name, path in read.items() if path is not None]
    names = {os.path.realpath(file): name for name, files in inputs for file, _ in files}
    for name, path in written.items():
        if path is None or str(path) == "-":
            continue
        other = names.setdefault(os.path.realpath(path), name)
        if other != name:
            raise click.UsageError(f"{name} and {other} are one file, {path}: choose another name for {name}")


def save_plot(figure: Figure, path: Path) -> None:
    """Write a picture and print where it is; warn if its font lacks letters of the names."""
    from priorveil.studies import plots

    complete = plots.save(figure, path)
    boxes = "" if complete else " Its font lacks some letters of the names; they are shown as boxes."
    click.echo(f"Picture saved as {path}.{boxes}", err=True)


def draw_plan(plan: pv.Plan, path: Path) -> None:
    """Write a picture of a plan, with its error at other budgets."""
    from priorveil.studies import compare, plots

    with waiting("designing for other budgets"):
        curve = compare.error_curve(plan)
    save_plot(plots.plan_plot(plan, curve), path)


def run_on_table(
    task: Callable[..., Any],
    data: str,
    *arguments: object,
    words: str,
    refused_file: Path | None,
    force: bool,
    **settings: object,
) -> Any:
    """Run `estimate_table` or `privatize_table` with a progress bar, and print which rows were refused.

    With `force` the file that lists them all may exist. It is also written if they are the reason that nothing else is:
    the result is then a `NothingWritten`.
    """
    from priorveil.tables import NothingWritten

    with rows_bar(words) as progress, _refused_rows_file(refused_file, force) as on_refused:
        table = sys.stdin.buffer if data == "-" else data
        try:
            done = task(table, *arguments, progress=progress, on_refused=on_refused, **settings)
        except NothingWritten as error:
            done = error
    _print_refused(done.refused, refused_file)
    return done


@contextmanager
def _refused_rows_file(path: Path | None, replace: bool) -> Iterator[Callable[[int, str], object] | None]:
    """Open the file that lists refused rows, and give a function that adds a row to it; None without a path."""
    if path is None:
        yield None
        return
    with atomic_write(path, replace) as file:
        file.write(b"row,reason\n")
        yield lambda row, reason: file.write(f"{row + 1},{reason}\n".encode())


def _print_refused(refused: RefusedRows, listed: Path | None) -> None:
    """Print on standard error why rows were refused: a line for each reason, with the first rows."""
    if not refused.total:
        return
    click.echo(f"refused: {plural(refused.total, 'row')}", err=True)
    for reason, count in sorted(refused.counts.items(), key=lambda entry: -entry[1]):
        rows = [f"{row + 1:,}" for row, why in refused.rows if why == reason][:_FIRST_ROWS]
        rows += ["..."] if count > _FIRST_ROWS else []
        noun = "row" if count == 1 else "rows"
        click.echo(f"  {count:,} {reason}: {noun} {', '.join(rows)}", err=True)
    if listed is not None:
        click.echo(f"  all are in {listed}", err=True)
    elif max(refused.counts.values()) > _FIRST_ROWS:
        click.echo("  list all with --refused FILE", err=True)


def refusal_status(refused: RefusedRows, reports: int) -> int:
    """Return the exit status: 1, with a message, if most rows were refused."""
    if refused.total <= reports:
        return 0
    click.echo(f"most rows are refused: {refused.total:,} of {refused.total + reports:,}", err=True)
    return 1


def refused_record(refused: RefusedRows) -> dict[str, object]:
    """Return the refused rows for a program; the first row of data is row 1."""
    rows = [{"row": row + 1, "reason": reason} for row, reason in refused.rows]
    return {"refused": refused.counts, "refused_rows": rows}
