"""What commands show: tables and sentences for people, JSON for programs, progress, and errors."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

import priorveil as pv
from priorveil.errors import Hint, PriorveilError, not_text_advice
from priorveil.formatting import level_text
from priorveil.interrupts import Interrupted

if TYPE_CHECKING:
    from rich.console import Console

    from priorveil.studies.trade_offs import LdpComparison

_WIDTH = 100  # of tables that are not shown on a terminal
_REFRESH = 0.5  # seconds between two states of the progress bar of a design
Advance = Callable[[float | None, str], None]  # takes the share that is done and a few words

# -- errors ------------------------------------------------------------------------------------------------

_ADVICE = tomllib.loads(Path(__file__).with_name("advice.toml").read_text(encoding="utf-8"))
# Functions of the library that a hint may name, and the options that do the same.
FUNCTION_OPTIONS: dict[str, str] = _ADVICE["options"]
NOTICES: dict[str, str] = _ADVICE["notices"]


def option_advice(hint: Hint) -> str:
    """Return a hint of the library in terms of options.

    >>> option_advice(Hint("method", "arc", "columns"))
    'use --method arc or columns'
    """
    if not hint.values:
        return hint.advice(FUNCTION_OPTIONS.get(hint.argument, hint.argument))
    choices = " or ".join(str(getattr(value, "kind", value)) for value in hint.values)
    return hint.advice(f"--{hint.argument.replace('_', '-')} {choices}")


def error_text(error: Exception) -> str:
    """Return the message of an error, with options in the place of arguments."""
    if isinstance(error, UnicodeDecodeError):
        return not_text_advice(bytes(error.object[:4]))
    return error.text(option_advice) if isinstance(error, PriorveilError) else str(error)


# -- tables ------------------------------------------------------------------------------------------------


def open_console(stderr: bool = False) -> Console:
    """Return a console as wide as the terminal or COLUMNS, else wide enough for our tables."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # show letters that the terminal lacks by their number
    fitted = stream.isatty() or "COLUMNS" in os.environ
    return Console(width=None if fitted else _WIDTH, stderr=stderr, highlight=False, markup=False)


def print_table(
    console: Console, heads: Sequence[str], rows: Iterable[Sequence[str]], align: str = ""
) -> None:
    """Print a table without lines; an `r` in `align` sets its column to the right.

    Such a column holds numbers, which are never cut or wrapped: on a terminal that is too narrow for them, each row is
    a block, with a line for every number.
    """
    from rich.table import Table
    from rich.text import Text

    body = list(rows)
    sides = align.ljust(len(heads))
    lengths = [max(map(len, column)) + 2 for column in zip(heads, *body, strict=True)]
    needed = sum(n if side == "r" else min(n, 10) for n, side in zip(lengths, sides, strict=True)) - 2
    if needed > console.width:
        for name, *cells in body:
            lines = [name, *(f"  {head} {cell}" for head, cell in zip(heads[1:], cells, strict=True))]
            console.print(Text("\n".join(lines)), overflow="fold")
        return
    table = Table(box=None, pad_edge=False, show_header=any(heads))
    for head, side in zip(heads, sides, strict=True):
        number = side == "r"
        table.add_column(head, justify="right" if number else "left", overflow="fold", no_wrap=number)
    for row in body:
        table.add_row(*map(Text, row))
    console.print(table)


def print_sentences(console: Console, sentences: Iterable[str]) -> None:
    """Print each sentence as a paragraph, set in by two blanks."""
    from rich.padding import Padding

    for sentence in sentences:
        console.print(Padding(sentence, (0, 0, 0, 2), expand=False))


def print_json(record: Mapping[str, object], err: bool = False) -> None:
    """Print a record for a program to read. JSON has no infinity: it becomes the string "inf"."""
    click.echo(json.dumps(_finite(record), indent=2, allow_nan=False, default=str), err=err)


def _finite(value: Any) -> Any:
    """Return JSON data with infinite numbers as strings that `float` reads, and None for what is not a number."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


# -- levels and plans --------------------------------------------------------------------------------------


def print_levels(console: Console, levels: pv.Leakage) -> None:
    """Print the level of a channel under every notion, with its meaning; LDP first if the prior is only assumed."""
    from priorveil.words.levels import leakage_rows

    rows = [(name, level_text(level), meaning) for name, level, meaning in leakage_rows(levels)]
    if levels.assumed_prior:
        rows.sort(key=lambda row: row[0] != "LDP")
    print_table(console, ("notion", "level", "meaning"), rows, "lr")


def print_ldp_comparison(console: Console, comparison: LdpComparison) -> None:
    """Print a plan beside LDP in three comparisons, and what they mean."""
    heads, rows = comparison.table()
    print_table(console, heads, rows, "lrrrr")
    for sentence in comparison.sentences:
        console.print(sentence)


def levels_record(levels: pv.Leakage) -> dict[str, object]:
    """Return the levels of a channel for a program."""
    return {"lip": levels.lip, **asdict(levels)}


def plan_record(plan: pv.Plan, people: int) -> dict[str, object]:
    """Return what a plan guarantees and how good it is with this many people, for a program."""
    precision = plan.expected_precision(people)
    same = ("id", "method", "why", "expected_mse", "lower_bound", "no_report", "efficiency", "identifiable")
    return {
        **{name: getattr(plan, name) for name in same},
        "query": plan.query.kind,
        "values": len(plan.labels),
        "assumed_prior": plan.prior.assumed,
        "priors": None if isinstance(plan.prior, pv.Prior) else repr(plan.prior),
        "budget": {"lower": plan.budget.lower, "upper": plan.budget.upper},
        "notion": plan.certificate.notion,
        "certificate": {k: getattr(plan.certificate, k) for k in ("lip", "lip_lower", "lip_upper", "ldp")},
        "precision": {**precision.document(), "text": str(precision)},
    }


# -- progress ----------------------------------------------------------------------------------------------


@contextmanager
def end_on_interrupt(on_first: Callable[[], None] | None = None) -> Iterator[Event]:
    """Let ctrl-C end this block at once, with KeyboardInterrupt.

    With `on_first` the first ctrl-C only calls it and sets the event that the block gets, and the second one ends it.
    """
    pressed = Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if on_first is None or pressed.is_set():
            raise Interrupted
        pressed.set()
        on_first()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield pressed
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show on a terminal what the command is waiting for."""
    terminal = sys.stderr.isatty()
    with end_on_interrupt(), open_console(stderr=True).status(words) if terminal else nullcontext():
        yield


@contextmanager
def progress_bar(words: str, time_left: bool = False) -> Iterator[Advance]:
    """Show a progress bar on standard error if that is a terminal, and remove it at the end.

    The bar takes the share that is done (None if unknown) and a few words. Its clock shows the time that has passed,
    or with `time_left` the time that is left, for work that goes on evenly.
    """
    console = open_console(stderr=True)
    if not console.is_terminal:  # some versions of rich print a blank line for a disabled bar
        yield lambda share, words: None
        return
    from rich import progress

    state = progress.TextColumn("{task.fields[state]}", markup=False)
    clock = progress.TimeRemainingColumn() if time_left else progress.TimeElapsedColumn()
    bar_columns = (progress.BarColumn(), progress.TaskProgressColumn(), state, clock)
    with progress.Progress("{task.description}", *bar_columns, console=console, transient=True) as bar:
        task = bar.add_task(words, total=None, state="")

        def advance(share: float | None, words: str) -> None:
            bar.update(task, total=None if share is None else 1.0, completed=share or 0.0, state=words)

        yield advance


@contextmanager
def rows_bar(words: str) -> Iterator[Callable[[int, int | None, float | None], None]]:
    """Show a progress bar with rows, rows a second and the time left."""
    begin = time.monotonic()
    with progress_bar(words, time_left=True) as advance:

        def on_rows(rows: int, of: int | None, share: float | None) -> None:
            rate = rows / max(time.monotonic() - begin, 1e-3)
            advance(rows / of if of else share, f"{rows:,} rows, {rate:,.0f}/s")

        yield on_rows


@contextmanager
def design_bar(
    no_report: float, target: float, time_limit: float = math.inf
) -> Iterator[tuple[Callable[[int, float, float], None], Event]]:
    """Show a progress bar with the gap of a design; ctrl-C keeps the best plan so far.

    The bar is full when the gap is at `target` or the seconds of `time_limit` are over, whichever is first.
    Gives what `design` takes as `progress`, and an event that the first ctrl-C sets. The second ctrl-C gives up.
    """
    from priorveil.information import gain_share

    target, begin, state, done = min(max(target, 1e-12), 0.5), time.monotonic(), (1.0, 0), Event()

    def announce() -> None:
        click.echo("stopping at the best plan so far; ctrl-C again to give up", err=True)

    with end_on_interrupt(announce) as interrupted, progress_bar("designing") as advance:

        def show() -> None:
            gap, rounds = state
            passed = (time.monotonic() - begin) / max(time_limit, 1e-9)
            share = max(passed, math.log(max(gap, target)) / math.log(target))
            advance(min(share, 1.0), f"gap {max(gap, 0.0):.2g}, round {rounds}")

        def update(rounds: int, error: float, bound: float) -> None:
            nonlocal state
            state = min(state[0], 1 - gain_share(error, bound, no_report)), rounds
            show()

        def refresh() -> None:
            while not done.wait(_REFRESH):
                show()

        clock = Thread(target=refresh, daemon=True)  # some steps of a search take long and report nothing
        clock.start()
        try:
            yield update, interrupted
        finally:
            done.set()
            clock.join()
