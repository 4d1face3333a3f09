"""Reading what commands are given: priors, secrets, channels, columns of data.

Every reader puts the file's name before what is wrong with it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.errors import MissingExtra, PriorveilError, counted

if TYPE_CHECKING:
    from priorveil.channels import Channel
    from priorveil.plans import Plan
    from priorveil.priors import Budget, Label, Prior, Secret

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Line = tuple[int, list[str]]  # of a CSV file: its number, and its cells

_DATA_ADVICE = "; if this is data, a row for each person, `priorveil design` counts it with --column NAME"
_ABSENT = ("na", "n/a", "nan", "null", "none", "inf", "")  # no names of a column of numbers

COUNTS = click.option("--counts", is_flag=True, help="PRIOR holds whole counts.")
SMOOTHING = click.option(
    "--smoothing", type=float, help="Add this to every count (1: Laplace, 0.5: Jeffreys)."
)
NORMALISE = click.option(
    "--normalise", is_flag=True, help="Scale rounded figures so that they add up to one."
)
SECRET = click.option(
    "--secret", type=FILE, help="Protect something behind the value: a file with Pr(value | secret)."
)


def writable(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a place that cannot be written to, before the work; - is standard output."""
    if path is None or str(path) == "-":
        return path
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}", ctx, parameter)
    place = path if path.exists() else path.absolute().parent
    if not os.access(place, os.W_OK):
        raise click.BadParameter(f"{place} cannot be written to", ctx, parameter)
    return path


def picture(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a picture of an unknown kind, before the work."""
    if path is not None and path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise click.BadParameter(f"{path.name}: give a name that ends in .png, .svg or .pdf", ctx, parameter)
    return writable(ctx, parameter, path)


WRITTEN = click.Path(dir_okay=False, path_type=Path)
OUTPUT = click.option("-o", "--output", type=WRITTEN, callback=writable, help="Save the plan here.")
PLOT = click.option("--plot", type=WRITTEN, callback=picture, help="Draw it here (.png, .svg, .pdf).")
JSON = click.option(
    "--json", "as_json", is_flag=True, help='Print JSON; an infinite number is the string "inf".'
)
BUDGET: tuple[Decorator, ...] = (
    click.option(
        "--epsilon", "--eps", type=float, help="How far a belief may move: by a factor e^epsilon, both ways."
    ),
    click.option("--lower", type=float, help="How far downwards (LIP only)."),
    click.option("--upper", type=float, help="How far upwards (LIP only)."),
)


def options(*decorators: Decorator) -> Decorator:
    """Several options as one decorator, shown in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


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
        raise click.ClickException(f"{path}: {_in_options(str(error))}") from error


def _in_options(advice: str) -> str:
    """Advice in the words of the command line.

    >>> _in_options("for counts use Prior.from_counts")
    'for counts use --counts, for rounded figures --normalise'
    """
    told = advice.replace("smooth it (Prior.from_counts)", "smooth counts (--counts --smoothing 1)")
    return told.replace("use Prior.from_counts", "use --counts, for rounded figures --normalise")


def budget(epsilon: float | None, lower: float | None, upper: float | None, notion: str) -> Budget | None:
    """The budget that the options state; None if they state none. A side left out is not bounded."""
    from priorveil.priors import Budget

    if lower is None and upper is None:
        return None if epsilon is None else Budget.of(epsilon)
    if epsilon is not None:
        raise click.UsageError("give --epsilon, or --lower and --upper, not both")
    if notion != "lip":
        raise click.UsageError(f"--lower and --upper are for lip; {notion} has one level: use --epsilon")
    return Budget(math.inf if lower is None else lower, math.inf if upper is None else upper)


# -- channels, plans, secrets ------------------------------------------------------------------------------


def channel(path: Path, normalise: bool) -> Channel:
    """A channel from CSV or JSON, or for a plan the one that its levels are measured on."""
    from priorveil.channels import Channel

    with reading(path):
        return plan(path).exposed if _is_plan(path) else Channel.load(path, normalise)


def plan(path: Path) -> Plan:
    """A plan, proven again."""
    from priorveil.plans import Plan

    with reading(path):
        if path.suffix.lower() != ".json" and not _begins_like_json(path):
            raise ValueError("this is no plan: give the file that `priorveil design -o` wrote")
        return Plan.load(path)


def _begins_like_json(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(64).lstrip().startswith(b"{")


def _is_plan(path: Path) -> bool:
    if path.suffix.lower() != ".json":
        return False
    read = json.loads(path.read_text(encoding="utf-8-sig"))
    return isinstance(read, dict) and "format" in read


def secret(path: Path, known: Prior, normalise: bool) -> Secret:
    """A secret has the form of a channel from secrets to values; it has to fit the prior."""
    from priorveil.priors import Secret

    given = channel(path, normalise)
    with reading(path):
        order = places(given.outputs, known.labels, "the prior")
        found = Secret(given.matrix[:, order], given.inputs)
        found.require_fits(known)
        return found


def places(labels: Sequence[Label], wanted: Sequence[Label], owner: str = "the channel") -> list[int]:
    """Where each label that `owner` wants stands among the labels; by position if one side has none."""
    have, want = [str(v) for v in labels], [str(v) for v in wanted]
    if set(have) == set(want):
        return [have.index(label) for label in want]
    if len(have) == len(want) and (unnamed(labels) or unnamed(wanted)):
        return list(range(len(want)))
    if len(have) != len(want):
        verb = "was" if len(have) == 1 else "were"
        raise click.ClickException(
            f"{owner} has {counted(len(want), 'value')}, but {len(have)} {verb} given with it"
        )
    missing = [label for label in want if label not in have]
    raise click.ClickException(f"{owner}'s value {missing[0]!r} is missing; given are {', '.join(have)}")


def unnamed(labels: Sequence[Label]) -> bool:
    """Whether the labels are only positions."""
    return tuple(labels) == tuple(range(len(labels)))


# -- priors ------------------------------------------------------------------------------------------------


def prior(path: Path, counts: bool, smoothing: float | None, normalise: bool) -> Prior:
    """A prior from CSV lines `label,number` or `number`, or from a JSON mapping or list."""
    from priorveil.priors import Prior

    if smoothing is not None and not counts:
        raise click.UsageError("--smoothing is added to counts: give --counts too")
    with reading(path):
        labels, numbers = _numbers(path)
        if counts:
            return Prior.from_counts([_whole(v) for v in numbers], labels, smoothing)
        mass = math.fsum(numbers) if normalise else 1.0
        return Prior([v / mass for v in numbers] if mass > 0 else numbers, labels)


def _numbers(path: Path) -> tuple[list[Label] | None, list[float]]:
    if path.suffix.lower() == ".json":
        return _json_numbers(path.read_text(encoding="utf-8-sig"))
    return _csv_numbers(_lines(path))


def _json_numbers(text: str) -> tuple[list[Label] | None, list[float]]:
    read = json.loads(text)
    if isinstance(read, dict) and "format" in read:
        raise ValueError("this is a plan, where a prior is wanted")
    if isinstance(read, dict):
        return labels_of(list(read)), [_number(v) for v in read.values()]
    if isinstance(read, list):
        return None, [_number(v) for v in read]
    raise ValueError('give {"label": probability, ...} or a list of probabilities')


def _csv_numbers(lines: list[Line]) -> tuple[list[Label] | None, list[float]]:
    if len(lines) == 1 and len(lines[0][1]) > 2:
        lines = [(1, [cell]) for cell in lines[0][1]]  # all on one line
    headed = len(lines) > 1 and _is_head(lines[0][1][:2][-1])
    lines = lines[1:] if headed else lines
    widths = {len(row) for _, row in lines}
    if len(widths) != 1 or not (headed or max(widths) <= 2):
        raise ValueError("give lines of label,number, or a number on each line")
    numbers = [_line_number(at, row[:2][-1]) for at, row in lines]
    return (None if max(widths) == 1 else labels_of([row[0] for _, row in lines])), numbers


def _is_head(cell: str) -> bool:
    """Whether the cell heads a column of numbers: a word, no number gone wrong, and none that is missing."""
    word = any(map(str.isalpha, cell)) and not any(map(str.isdigit, cell))
    return word and not is_number(cell) and cell.lower() not in _ABSENT


def _line_number(line: int, cell: str) -> float:
    try:
        return _number(cell)
    except ValueError as error:
        advice = "" if cell.lower() in _ABSENT or any(map(str.isdigit, cell)) else _DATA_ADVICE
        raise ValueError(f"line {line}: {error}{advice}") from error


def labels_of(words: Sequence[str]) -> list[Label]:
    """Labels as a file has them: whole numbers if all of them are.

    >>> labels_of(["0", "10"]), labels_of(["007", "8"]), labels_of(["a", "1"])
    ([0, 10], ['007', '8'], ['a', '1'])
    """
    if words and all(word.lstrip("-").isdigit() and str(int(word)) == word for word in words):
        return [int(word) for word in words]
    return list(words)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)) or not is_number(value):
        raise ValueError(f"{value!r} is not a number{_near_number(value)}")
    if not math.isfinite(float(value)):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)


def _near_number(value: object) -> str:
    """Advice for what people would read as a number."""
    word = str(value).strip()
    if word.endswith("%") and is_number(word[:-1]):
        return ": leave the % out, and add --normalise"
    if word.count(",") == 1 and is_number(word.replace(",", ".")):
        return ": write it with a decimal point"
    return ""


def is_number(value: str | float) -> bool:
    """Whether `float` reads it.

    >>> is_number("1e-3"), is_number("many")
    (True, False)
    """
    try:
        float(value)
    except ValueError:
        return False
    return True


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError(f"{number!r} is not a whole count")
    return int(number)


# -- columns of data ---------------------------------------------------------------------------------------


def columns(path: Path, *names: str) -> tuple[list[str], ...]:
    """Columns of a CSV file (also gzipped) with a header, or of a Parquet file, as text."""
    with reading(path):
        if path.suffix.lower() == ".parquet":
            return _parquet_columns(path, names)
        lines = _lines(path)
        heads = lines[0][1] if lines else []
        found = [_place(heads, name) for name in names]
        uneven = next((at for at, row in lines if len(row) != len(heads)), None)
        if uneven is not None:
            raise ValueError(f"line {uneven} has not {counted(len(heads), 'column')} as the header has")
        return tuple([row[place] for _, row in lines[1:]] for place in found)


def heads(path: Path) -> list[str]:
    """The names in the first line of a CSV file."""
    with reading(path):
        if path.suffix.lower() == ".json":
            raise ValueError("JSON has no columns: give numbers, as 0,1,2")
        lines = _lines(path)
        return lines[0][1] if lines else []


def _lines(path: Path) -> list[Line]:
    """The lines of a CSV file with their numbers, as stripped cells.

    Blank lines are left out, except in a file of one column: there one may be a value that is missing.
    """
    raw = gzip.decompress(path.read_bytes()) if path.suffix.lower() == ".gz" else path.read_bytes()
    text = raw.decode("utf-8-sig")
    rows = csv.reader(io.StringIO(text), delimiter=_delimiter(text), skipinitialspace=True)
    try:
        lines = [(rows.line_num, [cell.strip() for cell in row]) for row in rows]
    except csv.Error as error:
        raise ValueError(f"not CSV: {error}") from error
    blank = next((at for at, row in lines if not row), None)
    if blank is not None and all(len(row) <= 1 for _, row in lines):
        raise ValueError(f'line {blank} is blank: delete it, or write "" if a value is missing there')
    return [(at, row) for at, row in lines if row]


def _delimiter(text: str) -> str:
    r"""What parts the cells: semicolons or tabs where every line has one, else commas.

    >>> _delimiter("a;1\nb;2\n"), _delimiter("a;b,1\nc,2\n")
    (';', ',')
    """
    lines = [line for line in text.splitlines() if line.strip()]
    return next((mark for mark in ";\t" if lines and all(mark in line for line in lines)), ",")


def _place(heads: Sequence[str], name: str) -> int:
    if name not in heads:
        raise ValueError(f"there is no column {name!r}; there are {', '.join(heads) or 'none'}")
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
