"""What commands write: plots, and the rows of tables that were refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import priorveil as pv
from priorveil.atomic_files import atomic_write
from priorveil.cli.screen import rows_bar, waiting
from priorveil.errors import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from priorveil.tables import RefusedRows

_FIRST_ROWS = 5  # refused for one reason, that are shown
_MANY_REFUSED = 0.05  # a larger share of the rows may change the results more than the noise does


def save_plot(figure: Figure, path: Path) -> None:
    """Save a plot and print where it is; warn if its font lacks letters of the names."""
    from priorveil.studies import plot_files

    complete = plot_files.save(figure, path)
    boxes = "" if complete else " Its font lacks some letters of the names; they are shown as boxes."
    click.echo(f"Picture saved as {path}.{boxes}", err=True)


def draw_plan(plan: pv.Plan, path: Path, people: int) -> None:
    """Save a plot of a plan, with its error at other budgets, and what to expect from so many people."""
    from priorveil.studies import compare, plot_files

    with waiting("designing for other budgets"):
        curve = compare.error_curve(plan)
    save_plot(plot_files.plan_plot(plan, curve, people), path)


def print_headlines(console: Console, lines: Iterable[str]) -> None:
    """Print the lines that come before the figures of an estimate."""
    for line in lines:
        console.print(line, style="bold red")


def run_on_table(
    task: Callable[..., Any],
    data: tuple[str, ...],
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

    if "-" in data and len(data) > 1:
        raise click.UsageError("- is standard input, which cannot be read together with files: give it alone")
    with rows_bar(words) as progress, _refused_rows_file(refused_file, force) as on_refused:
        table = sys.stdin.buffer if data == ("-",) else data
        try:
            outcome = task(table, *arguments, progress=progress, on_refused=on_refused, **settings)
        except NothingWritten as error:
            outcome = error
    _print_refused(outcome.refused, refused_file)
    return outcome


@contextmanager
def _refused_rows_file(path: Path | None, replace: bool) -> Iterator[Callable[[int, str], object] | None]:
    """Open the file that lists refused rows, and give a function that adds a row to it; None without a path."""
    if path is None:
        yield None
        return
    with atomic_write(path, replace) as file:
        file.write(b"row,reason\n")
        # A reason has no quotation marks.
        yield lambda row, reason: file.write(
            (f'{row + 1},"{reason}"\n' if "," in reason else f"{row + 1},{reason}\n").encode()
        )


def _print_refused(refused: RefusedRows, listed: Path | None) -> None:
    """Print on standard error why rows were refused: a line for each reason, with the first rows."""
    from priorveil.tables.refusals import FOREIGN

    if not refused.total:
        return
    click.echo(f"refused: {plural(refused.total, 'row')}", err=True)
    for reason, count in sorted(refused.counts.items(), key=lambda entry: -entry[1]):
        rows = [f"{row + 1:,}" for row, why in refused.rows if why == reason][:_FIRST_ROWS]
        rows += ["..."] if count > _FIRST_ROWS else []
        noun = "row" if count == 1 else "rows"
        text = f"{count:,} {reason}"
        if reason == FOREIGN:
            text = f"{plural(count, 'report')} that this plan or campaign cannot have made"
        click.echo(f"  {text}: {noun} {', '.join(rows)}", err=True)
    if listed is not None:
        click.echo(f"  all are in {listed}", err=True)
    elif max(refused.counts.values()) > _FIRST_ROWS:
        click.echo("  list all with --refused FILE", err=True)


def refusal_status(refused: RefusedRows, reports: int) -> int:
    """Return the exit status: 1, with a message, if most rows were refused. Say so if results may be biased."""
    rows = refused.total + reports
    if refused.total > _MANY_REFUSED * rows:
        click.echo(
            f"{refused.total / rows:.0%} of the rows are refused: the results may be biased",
            err=True,
        )
    if refused.total <= reports:
        return 0
    click.echo(f"most rows are refused: {refused.total:,} of {rows:,}", err=True)
    return 1


def refused_record(refused: RefusedRows) -> dict[str, object]:
    """Return the refused rows for a program; the first row of data is row 1."""
    rows = [{"row": row + 1, "reason": reason} for row, reason in refused.rows]
    return {"refused": refused.counts, "refused_rows": rows}
