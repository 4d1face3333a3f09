"""What commands read and write: priors, channels, secrets, plans, columns of tables, and lists of refused rows.

Every reader puts the name of the file before what is wrong with it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

from priorveil.cli.screen import error_text, rows_bar, waiting
from priorveil.errors import (
    NOT_SHOWN,
    InvalidInput,
    InvalidSecret,
    MissingExtra,
    PriorveilError,
    plural,
    short_repr,
)
from priorveil.files import atomic_write, is_not_regular_file, is_number, real_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from priorveil.channels import Channel
    from priorveil.plans import Plan
    from priorveil.priors import Array, Label, Prior, Secret
    from priorveil.tables import RefusedRows

SHOWN_VALUES = 10  # of a plan, that are shown to people
_FIRST_ROWS = 5  # refused for one reason, that are shown
_FIRST_SPELLINGS = 3  # of refused values, that are shown
_SHOWN_SHARES = 12  # numbers of a mixture that are shown, at most

_THOUSANDS = re.compile(r"\d{1,3}([,.' \u00a0\u2009\u202f]\d{3})+")
_MISSING = ("na", "n/a", "nan", "null", "none", "inf", "")  # never the head of a column of numbers
_DATA_ADVICE = "; if this is data, a row for each person, `priorveil design` counts it with --column NAME"

NearMiss = tuple[str, str, str]  # the reason of a refusal, the refused value, and its usual spelling
Line = tuple[int, list[str]]  # a row of a CSV file: its line number and its cells


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except MissingExtra:
        raise
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{path}: this is not UTF-8 text") from error
    except (PriorveilError, ValueError, TypeError) as error:
        raise click.ClickException(f"{path}: {_file_error_text(error, path)}") from error


def _file_error_text(error: Exception, path: Path) -> str:
    """Return what is wrong with a file; errors of tables name the file themselves."""
    if not isinstance(error, InvalidInput) or error.argument not in ("data", "column"):
        return error_text(error)
    advice = error.advice.removeprefix(f"{path}: ")
    if error.argument == "data":
        return advice
    return f"column: {advice}" if error.value is NOT_SHOWN else f"column {error.value!r}: {advice}"


# -- columns -----------------------------------------------------------------------------------------------


def read_columns(path: Path, *names: str) -> tuple[list[str], ...]:
    """Read columns of a table as text; an entry that is missing is empty."""
    from priorveil.tables.read import text_columns

    with reading(path):
        return text_columns(path, *names)


def read_column(path: Path, name: str | None) -> list[str]:
    """Read a column of a table; without a name, the lines of a file that has one column and no header."""
    if name is not None:
        return read_columns(path, name)[0]
    with reading(path):
        rows = _rows(path)
        wide = next((line for line, row in rows if len(row) > 1), None)
        if wide is not None:
            raise ValueError(f"line {wide} has several cells: name the column of the values")
        return [row[0] for _, row in rows]


def first_column_name(path: Path) -> str:
    """Return the name of the first column of a CSV file."""
    from priorveil.tables.csv_reader import header

    with reading(path):
        if path.suffix.lower() == ".json":
            raise ValueError("JSON has no columns: give numbers, as 0,1,2")
        return (header(path) or [""])[0]


def match_labels(words: Sequence[str], prior: Prior, path: Path, advice: str = "") -> list[Label]:
    """Return the labels of a prior that are written as these words.

    A word that is none is refused by its row and never shown. `advice` is for a wrong first row.
    """
    labels = {str(label): label for label in prior.labels}
    wrong = next((row for row, word in enumerate(words, 1) if word not in labels), None)
    if wrong is not None:
        hint = advice if wrong == 1 else ""
        raise click.ClickException(f"{path}: row {wrong}: the prior has no such value{hint}")
    if not words:
        raise click.ClickException(f"{path}: it has no rows")
    return [labels[word] for word in words]


def _rows(path: Path) -> list[Line]:
    from priorveil.tables.csv_reader import rows

    return rows(path)


# -- channels, secrets and plans ---------------------------------------------------------------------------


def read_channel(path: Path, normalise: bool) -> Channel:
    """Read a channel from CSV or JSON; of a plan, the one that its levels are measured on."""
    from priorveil.channels import Channel

    with reading(path):
        if path.suffix.lower() != ".json":
            return Channel.from_csv(_matrix_text(_rows(path)), normalise)
        return (
            read_plan(path).leakage_channel if _is_plan(_read_json(path)) else Channel.load(path, normalise)
        )


def _matrix_text(rows: list[Line]) -> str:
    """Check that a matrix has numbers and, if any, labels on both sides; return it as plain CSV."""
    if not rows:
        raise ValueError("the file is empty")
    labelled = not is_number(rows[0][1][0])
    if labelled and len(rows) == 1:
        raise ValueError("there is no row below the names")
    width = len(rows[0][1])
    for line, row in rows:
        if len(row) != width:
            raise ValueError(
                f"line {line} has {plural(len(row), 'cell')}, where line {rows[0][0]} has {width}"
            )
    for line, row in rows[labelled:]:
        wrong = next((cell for cell in row[labelled:] if not is_number(cell)), None)
        if wrong is not None:
            raise ValueError(f"line {line}: {wrong!r} is not a number{_number_advice(wrong, False)}")
    text = io.StringIO()
    csv.writer(text).writerows(row for _, row in rows)
    return text.getvalue()


def read_secret(path: Path | None, prior: Prior, normalise: bool) -> Secret | None:
    """Read a secret, which has the form of a channel from secrets to values; None without a path."""
    from priorveil.priors import Secret

    if path is None:
        return None
    given = read_channel(path, normalise)
    with reading(path):
        order = label_order(given.outputs, prior.labels, "the prior")
        return Secret(given.matrix[:, order], given.inputs)


def fit_prior(prior: Prior, secret: Secret | None, mix: bool, path: Path | None) -> Prior:
    """Return the prior if it is a mixture of the secret's rows; with `mix`, the nearest mixture.

    Any other prior is refused, with the nearest mixture as advice. `path` is the file to blame.
    """
    if secret is None or path is None:
        if mix:
            raise click.UsageError("--mix is for the rows of a secret: give --secret or --secret-column")
        return prior
    try:
        secret.require_fits(prior)
    except InvalidSecret as error:
        near = secret.nearest(prior)
        distance = float(abs(near.probabilities - prior.probabilities).sum() / 2)
        if not mix:
            few = len(near) <= _SHOWN_SHARES
            shares = f" ({', '.join(shares_to_copy(near.probabilities))})" if few else ""
            raise click.ClickException(
                f"{path}: {error.advice}. The nearest mixture{shares} is at total variation distance {distance:.3g}. "
                "If the figures are rounded, use it as the prior (--mix does that); otherwise correct them"
            ) from None
        click.echo(f"the prior is now the nearest mixture of the rows, {distance:.3g} away", err=True)
        return near
    return prior


def shares_to_copy(shares: Array) -> list[str]:
    """Return shares as short numbers that add up to one.

    >>> import numpy as np
    >>> shares_to_copy(np.array([1 / 3, 1 / 3, 1 / 3]))
    ['0.333333333334', '0.333333333333', '0.333333333333']
    """
    short = [Decimal(f"{share:.12f}") for share in shares]
    short[int(shares.argmax())] += 1 - sum(short)
    return [f"{share.normalize():f}" for share in short]


def read_plan(path: Path) -> Plan:
    """Read a plan and prove it again."""
    from priorveil.plans import Plan

    with reading(path):
        return Plan.load(path)


def read_plans(path: Path, cohort: str | None) -> Plan | dict[str, Plan]:
    """Read a plan; with `cohort`, the plans of a folder by the names of their files, where %2F is a slash."""
    if cohort is None:
        if path.is_dir():
            raise click.UsageError(
                f"{path} is a folder: name the column that chooses a plan, --cohort COLUMN"
            )
        return read_plan(path)
    if not path.is_dir():
        raise click.UsageError(
            f"with --cohort, PLAN is a folder with a plan VALUE.json for each value, not {path}"
        )
    plans: dict[str, Plan] = {}
    for file in sorted(path.glob("*.json")):
        if unquote(file.stem) in plans:
            raise click.UsageError(f"there are two plans for {unquote(file.stem)!r} in {path}")
        plans[unquote(file.stem)] = read_plan(file)
    if not plans:
        raise click.UsageError(f"there is no plan in {path}")
    return plans


def _is_plan(document: object) -> bool:
    return isinstance(document, dict) and "format" in document


def _read_json(path: Path) -> object:
    document: object = json.loads(path.read_text(encoding="utf-8-sig"))
    return document


def label_order(labels: Sequence[Label], wanted: Sequence[Label], owner: str = "the channel") -> list[int]:
    """Return the position of each label that `owner` wants; by position if one side has no names."""
    from priorveil.priors import label_positions

    if len(labels) != len(wanted):
        raise click.ClickException(
            f"{owner} has {plural(len(wanted), 'value')}, but {len(labels)} in the other file"
        )
    try:
        return list(label_positions(labels, wanted, str))
    except KeyError as missing:
        given = ", ".join(map(str, labels))
        raise click.ClickException(
            f"{owner}'s value {missing.args[0]!r} is missing; given are {given}"
        ) from None


# -- priors ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PriorFormat:
    """What the numbers of a prior are: whole counts, to which `smoothing` may be added, or rounded shares."""

    counts: bool
    smoothing: float | None
    normalise: bool

    def read(self, path: Path) -> Prior:
        """Read a prior from CSV lines `label,number` or `number`, or from a JSON mapping or list."""
        from priorveil.priors import Prior

        if self.smoothing is not None and not self.counts:
            raise click.UsageError("--smoothing is added to counts: give --counts too")
        with reading(path):
            is_json = path.suffix.lower() == ".json"
            labels, numbers = (
                self._json_numbers(_read_json(path)) if is_json else self._csv_numbers(_rows(path))
            )
            if self.counts:
                return Prior.from_counts([_whole(v) for v in numbers], labels, self.smoothing)
            mass = math.fsum(numbers) if self.normalise else 1.0
            return Prior([v / mass for v in numbers] if mass > 0 else numbers, labels)

    def _json_numbers(self, document: object) -> tuple[list[Label] | None, list[float]]:
        if _is_plan(document):
            raise ValueError("this is a plan: give a file with a prior")
        if isinstance(document, dict):
            return labels_of(list(document)), [self._number(v) for v in document.values()]
        if isinstance(document, list):
            return None, [self._number(v) for v in document]
        raise ValueError('give {"label": probability, ...} or a list of probabilities')

    def _csv_numbers(self, rows: list[Line]) -> tuple[list[Label] | None, list[float]]:
        if len(rows) == 1 and len(rows[0][1]) > 2:
            rows = [(1, [cell]) for cell in rows[0][1]]  # all numbers on one line
        headed = len(rows) > 1 and _is_head(rows[0][1][:2][-1])
        rows = rows[1:] if headed else rows
        bare = next((line for line, row in rows if len(row) > 1 and not any(row)), None)
        if bare is not None:
            raise ValueError(f"line {bare} has no label and no number: delete it")
        widths = {len(row) for _, row in rows}
        if len(widths) != 1 or not (headed or max(widths) <= 2):
            raise ValueError("give lines of label,number, or a number on each line")
        numbers = [self._line_number(line, row[:2][-1], row[0]) for line, row in rows]
        return (None if max(widths) == 1 else labels_of([row[0] for _, row in rows])), numbers

    def _line_number(self, line: int, cell: str, label: str) -> float:
        if not cell and label:
            raise ValueError(f"line {line}: there is no number for {label!r}")
        try:
            return self._number(cell)
        except ValueError as error:
            advice = "" if cell.lower() in _MISSING or any(map(str.isdigit, cell)) else _DATA_ADVICE
            raise ValueError(f"line {line}: {error}{advice}") from error

    def _number(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)) or not is_number(value):
            raise ValueError(f"{value!r} is not a number{_number_advice(value, self.counts)}")
        if not math.isfinite(float(value)):
            raise ValueError(f"{value!r} is not a finite number")
        return float(value)


def _is_head(cell: str) -> bool:
    """Return whether a cell is the head of a column of numbers: a word, and not one for a missing number."""
    word = any(map(str.isalpha, cell)) and not any(map(str.isdigit, cell))
    return word and not is_number(cell) and cell.lower() not in _MISSING


def labels_of(words: Sequence[str]) -> list[Label]:
    """Return the labels that a file holds as text: whole numbers if all of them are.

    >>> labels_of(["0", "10"]), labels_of(["007", "8"]), labels_of(["a", "1"])
    ([0, 10], ['007', '8'], ['a', '1'])
    """
    if words and all(word.lstrip("-").isdigit() and str(int(word)) == word for word in words):
        return [int(word) for word in words]
    return list(words)


def _number_advice(value: object, counts: bool) -> str:
    """Return advice for text that people would read as a number."""
    word = str(value).strip()
    if counts and _THOUSANDS.fullmatch(word):
        return ": write counts without thousands separators"
    if word.endswith("%") and is_number(word[:-1]):
        return ": leave the % out, and add --normalise"
    if word.count(",") == 1 and is_number(word.replace(",", ".")):
        return ": write it with a decimal point"
    return ""


def label_numbers(prior: Prior, advice: str) -> list[float]:
    """Return the labels of a prior as numbers to sum; `advice` is for labels that are none."""
    if not all(map(is_number, prior.labels)):
        raise click.UsageError(f"the labels are not numbers to sum: {advice}")
    return [float(label) for label in prior.labels]


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError(f"{number!r} is not a whole count")
    return int(number)


# -- writing -----------------------------------------------------------------------------------------------


def write_problem(path: Path) -> str | None:
    """Return why a file cannot be written, before the work; None if it can."""
    if is_not_regular_file(path):
        return f"{path} is not a regular file; refusing to overwrite it"
    target = real_path(path)
    if not target.parent.is_dir():
        return f"there is no folder {target.parent if path.is_symlink() else path.parent}"
    for place in (target, target.parent):  # a draft in the folder is renamed to the file
        if place.exists() and not os.access(place, os.W_OK):
            return f"{place} cannot be written to"
    return None


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
    """Write a picture, and warn if its font lacks letters of the names."""
    from priorveil.studies import plots

    if not plots.save(figure, path):
        click.echo(
            "the font of the picture lacks some letters of the names; they are shown as boxes", err=True
        )


def draw_plan(plan: Plan, path: Path) -> None:
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
    quiet: bool,
    refused_file: Path | None,
    force: bool,
    near_misses: Mapping[NearMiss, int] | None = None,
    **settings: object,
) -> Any:
    """Run `estimate_table` or `privatize_table` with a progress bar, and print which rows were refused.

    With `force` the file that lists them all may exist. It is also written if they are the reason that nothing else is.
    `near_misses` are counted while the task runs.
    """
    from priorveil.tables import NothingWritten

    with rows_bar(words, quiet) as progress, _refused_rows_file(refused_file, force) as on_refused:
        table = sys.stdin.buffer if data == "-" else data
        try:
            done = task(table, *arguments, progress=progress, on_refused=on_refused, **settings)
        except NothingWritten as error:
            done = error
    _print_refused(done.refused, refused_file, near_misses or {})
    if isinstance(done, NothingWritten):
        raise done
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


def _print_refused(refused: RefusedRows, listed: Path | None, near_misses: Mapping[NearMiss, int]) -> None:
    """Print on standard error why rows were refused: a line for each reason, with the first rows."""
    if not refused.total:
        return
    click.echo(f"refused: {plural(refused.total, 'row')}", err=True)
    for reason, count in sorted(refused.counts.items(), key=lambda entry: -entry[1]):
        rows = [f"{row + 1:,}" for row, why in refused.rows if why == reason][:_FIRST_ROWS]
        rows += ["..."] if count > _FIRST_ROWS else []
        near = {(value, name): n for (why, value, name), n in near_misses.items() if why == reason}
        noun = "row" if count == 1 else "rows"
        click.echo(f"  {count:,} {reason}: {noun} {', '.join(rows)}{_near_text(near)}", err=True)
    if listed is not None:
        click.echo(f"  all are in {listed}", err=True)
    elif max(refused.counts.values()) > _FIRST_ROWS:
        click.echo("  list all with --refused FILE", err=True)


def _near_text(near_misses: Mapping[tuple[str, str], int]) -> str:
    """Return how many refused values differ in spelling only. They are private: shown on a terminal, never in a log."""
    if not near_misses:
        return ""
    total, pairs = sum(near_misses.values()), sorted(near_misses, key=lambda pair: -near_misses[pair])
    text = f"; {total:,} in another spelling than the plan's"
    if not sys.stderr.isatty():
        return text
    shown = [f"{short_repr(value)} for {short_repr(name)}" for value, name in pairs[:_FIRST_SPELLINGS]]
    return f"{text}: {', '.join(shown)}"


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
