"""Reading what commands are given: priors, channels, plans.

Every reader puts the file's name before what is wrong with it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli.cells import Line, lines, reading
from priorveil.errors import plural

if TYPE_CHECKING:
    from priorveil.channels import Channel
    from priorveil.plans import Plan
    from priorveil.priors import Budget, Label, Prior

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_DATA_ADVICE = "; if this is data, a row for each person, `priorveil design` counts it with --column NAME"
_IN_THOUSANDS = re.compile(r"\d{1,3}([,.' \u00a0\u2009\u202f]\d{3})+")
_ABSENT = ("na", "n/a", "nan", "null", "none", "inf", "")  # no names of a column of numbers

COUNTS = click.option("--counts", is_flag=True, help="PRIOR holds whole counts.")
SMOOTHING = click.option(
    "--smoothing", type=float, help="Add this to every count (1: Laplace, 0.5: Jeffreys)."
)
NORMALISE = click.option(
    "--normalise", is_flag=True, help="Scale rounded figures so that they add up to one."
)
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


# -- channels, plans ----------------------------------------------------------------------------------------


def channel(path: Path, normalise: bool) -> Channel:
    """A channel from CSV or JSON, or for a plan the one that its levels are measured on."""
    from priorveil.channels import Channel

    with reading(path):
        if path.suffix.lower() != ".json":
            return Channel.from_csv(_matrix(lines(path)), normalise)
        return plan(path).exposed if _is_plan(path) else Channel.load(path, normalise)


def _matrix(rows: list[Line]) -> str:
    """A matrix, its labels checked to be beside numbers, as CSV of one kind."""
    if not rows:
        raise ValueError("the file is empty")
    labelled = not is_number(rows[0][1][0])
    if labelled and len(rows) == 1:
        raise ValueError("there is no row below the names")
    width = len(rows[0][1])
    for at, row in rows:
        if len(row) != width:
            raise ValueError(f"line {at} has {plural(len(row), 'cell')}, where line {rows[0][0]} has {width}")
    for at, row in rows[labelled:]:
        wrong = next((cell for cell in row[labelled:] if not is_number(cell)), None)
        if wrong is not None:
            raise ValueError(f"line {at}: {wrong!r} is not a number{_near_number(wrong, False)}")
    text = io.StringIO()
    csv.writer(text).writerows(row for _, row in rows)
    return text.getvalue()


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
    read = json.loads(path.read_text(encoding="utf-8-sig"))
    return isinstance(read, dict) and "format" in read


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
            f"{owner} has {plural(len(want), 'value')}, but {len(have)} {verb} given with it"
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
        labels, numbers = _numbers(path, counts)
        if counts:
            return Prior.from_counts([_whole(v) for v in numbers], labels, smoothing)
        mass = math.fsum(numbers) if normalise else 1.0
        return Prior([v / mass for v in numbers] if mass > 0 else numbers, labels)


def _numbers(path: Path, counts: bool) -> tuple[list[Label] | None, list[float]]:
    if path.suffix.lower() == ".json":
        return _json_numbers(path.read_text(encoding="utf-8-sig"), counts)
    return _csv_numbers(lines(path), counts)


def _json_numbers(text: str, counts: bool) -> tuple[list[Label] | None, list[float]]:
    read = json.loads(text)
    if isinstance(read, dict) and "format" in read:
        raise ValueError("this is a plan, where a prior is wanted")
    if isinstance(read, dict):
        return labels_of(list(read)), [_number(v, counts) for v in read.values()]
    if isinstance(read, list):
        return None, [_number(v, counts) for v in read]
    raise ValueError('give {"label": probability, ...} or a list of probabilities')


def _csv_numbers(rows: list[Line], counts: bool) -> tuple[list[Label] | None, list[float]]:
    if len(rows) == 1 and len(rows[0][1]) > 2:
        rows = [(1, [cell]) for cell in rows[0][1]]  # all on one line
    headed = len(rows) > 1 and _is_head(rows[0][1][:2][-1])
    rows = rows[1:] if headed else rows
    widths = {len(row) for _, row in rows}
    bare = next((at for at, row in rows if len(row) > 1 and not any(row)), None)
    if bare is not None:
        raise ValueError(f"line {bare} has no label and no number: delete it")
    if len(widths) != 1 or not (headed or max(widths) <= 2):
        raise ValueError("give lines of label,number, or a number on each line")
    numbers = [_line_number(at, row[:2][-1], counts, row[0]) for at, row in rows]
    return (None if max(widths) == 1 else labels_of([row[0] for _, row in rows])), numbers


def _is_head(cell: str) -> bool:
    """Whether the cell heads a column of numbers: a word, no number gone wrong, and none that is missing."""
    word = any(map(str.isalpha, cell)) and not any(map(str.isdigit, cell))
    return word and not is_number(cell) and cell.lower() not in _ABSENT


def _line_number(line: int, cell: str, counts: bool, label: str) -> float:
    if not cell and label:
        raise ValueError(f"line {line}: there is no number beside {label!r}")
    try:
        return _number(cell, counts)
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


def _number(value: object, counts: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)) or not is_number(value):
        raise ValueError(f"{value!r} is not a number{_near_number(value, counts)}")
    if not math.isfinite(float(value)):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)


def _near_number(value: object, counts: bool) -> str:
    """Advice for what people would read as a number."""
    word = str(value).strip()
    if counts and _IN_THOUSANDS.fullmatch(word):
        return ": write counts without thousands separators"
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
