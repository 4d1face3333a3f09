"""What commands show: tables and sentences for people, plain numbers for machines."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from priorveil.notions import Leakage
    from priorveil.priors import Budget

_WIDTH = 100  # of tables that do not go to a terminal
Told = Callable[[float | None, str], None]  # the share that is done, and a few words
NOTIONS = {"lip": "LIP", "ldp": "LDP", "pufferfish": "Pufferfish", "di": "DI", "mil": "MIL", "mip": "MIP"}


def console(stderr: bool = False) -> Console:
    """A console as wide as the terminal, as COLUMNS says, or wide enough for our tables."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # A letter that the terminal does not have is shown by its number.
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    fitted = stream.isatty() or "COLUMNS" in os.environ
    return Console(width=None if fitted else _WIDTH, stderr=stderr, highlight=False, markup=False)


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Say on a terminal what takes so long."""
    if not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(words):
        yield


@contextmanager
def bar(words: str, quiet: bool = False, left: bool = False) -> Iterator[Told]:
    """A bar on standard error while something goes on, and gone after it; nothing where that is no terminal.

    It is told the share that is done (None: unknown) and what there is to say of it. The clock shows the time
    that has passed, or with `left` the time that is left, where work goes on evenly.
    """
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    screen = console(stderr=True)
    if quiet or not screen.is_terminal:  # a disabled bar still ends a line, in some versions
        yield lambda share, state: None
        return
    state = TextColumn("{task.fields[state]}", markup=False)
    clock = TimeRemainingColumn() if left else TimeElapsedColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), state, clock)
    with Progress(*columns, console=screen, transient=True) as shown:
        task = shown.add_task(words, total=None, state="")

        def told(share: float | None, state: str) -> None:
            shown.update(task, total=None if share is None else 1.0, completed=share or 0.0, state=state)

        yield told


def print_table(
    screen: Console, heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: str = ""
) -> None:
    """A table without lines; columns whose place in `numbers` is `r` are set to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=any(heads))
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if numbers[place : place + 1] == "r" else "left")
    for row in rows:
        table.add_row(*row)
    screen.print(table)


def print_levels(screen: Console, levels: Leakage) -> None:
    """The level of a channel under every notion, with its meaning."""
    rows = [(name, shown_level(level), meaning) for name, level, meaning in levels.rows()]
    print_table(screen, ("notion", "level", "meaning"), rows, "lr")


def shown_level(level: float | None) -> str:
    """A level for people.

    >>> shown_level(1.0), shown_level(math.inf), shown_level(None)
    ('1.0000', 'infinite', '-')
    """
    return "-" if level is None else "infinite" if math.isinf(level) else f"{level:.4f}"


def shown_error(error: float) -> str:
    """An expected error for people.

    >>> shown_error(0.123456789), shown_error(math.inf)
    ('0.123457', 'infinite')
    """
    return "infinite" if math.isinf(error) else f"{error:.6g}"


def shown_share(share: float) -> str:
    """A share for people: nothing below one is rounded up to one.

    >>> shown_share(1 - 1e-12), shown_share(1.0), shown_share(0.5)
    ('99.99 %', '100 %', '50.00 %')
    """
    return "100 %" if share >= 1 else f"{min(math.floor(share * 1e4 + 1e-6), 9999) / 100:.2f} %"


def stated(budget: Budget) -> str:
    """A budget in words."""
    if budget.symmetric:
        return f"epsilon {budget.lower:.6g}"
    return f"lower {budget.lower:.6g}, upper {budget.upper:.6g}"


def levels_record(levels: Leakage) -> dict[str, object]:
    """The levels for a machine."""
    names = ("lip", "lip_lower", "lip_upper", "ldp", "pufferfish", "di", "mil", "mip")
    return {name: plain(getattr(levels, name)) for name in names}


def plain(value: object) -> object:
    """JSON has no infinity: it becomes a string that `float` reads."""
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def print_json(record: Mapping[str, object]) -> None:
    """A record for a machine to read."""
    plainly = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    click.echo(json.dumps(record, indent=2, allow_nan=False, ensure_ascii=plainly))
