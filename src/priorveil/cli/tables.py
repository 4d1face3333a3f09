"""What `privatize` and `estimate` share: tables and plans in, refused rows out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

from priorveil.cli import files as inputs
from priorveil.cli import outputs
from priorveil.cli import screen as screens
from priorveil.errors import plural
from priorveil.files import atomic_write

if TYPE_CHECKING:
    from priorveil.plans import Plan
    from priorveil.tables import RefusedRows
    from priorveil.tables.read import Progress

SHOWN = 10  # refused rows, or values, that are shown to people

REFUSED = click.option(
    "--refused",
    "listing",
    type=outputs.WRITTEN,
    callback=outputs.writable,
    help="List all refused rows in a CSV.",
)

DATA = """\b
Tables
  Parquet, Arrow or CSV (also in gzip), told apart by their content: a file, a
  folder of files (folders named column=value give a column), a pattern in quotes,
  or - for standard input (Arrow or CSV). In a CSV an empty cell is a missing value.
  PLAN is a plan; or, with --cohort COLUMN, a folder with a plan VALUE.json for
  each value of that public column (%2F for / in a value, as in addresses).
"""


# -- in ----------------------------------------------------------------------------------------------------


def plans(path: Path, cohort: str | None) -> Plan | dict[str, Plan]:
    """A plan, or the plans of a folder by the names of their files, in which %2F stands for a slash."""
    if cohort is None:
        if path.is_dir():
            raise click.UsageError(
                f"{path} is a folder: say by which column its plans are chosen, --cohort COLUMN"
            )
        return inputs.plan(path)
    if not path.is_dir():
        raise click.UsageError(
            f"with --cohort, PLAN is a folder with a plan VALUE.json for each value, not {path}"
        )
    files = sorted(path.glob("*.json"))
    found = {unquote(file.stem): inputs.plan(file) for file in files}
    if len(found) < len(files):
        twice = next(name for name in found if sum(unquote(file.stem) == name for file in files) > 1)
        raise click.UsageError(f"there are two plans for {twice!r} in {path}")
    if not found:
        raise click.UsageError(f"there is no plan in {path}")
    return found


def source(data: str) -> Any:
    """What is read: standard input, or what is named."""
    return sys.stdin.buffer if data == "-" else data


@contextmanager
def progress(verb: str, quiet: bool) -> Iterator[Progress]:
    """A bar on a terminal with rows, rate and time left; nothing elsewhere."""
    begin = time.monotonic()
    with screens.bar(verb, quiet, left=True) as bar:

        def told(rows: int, of: int | None, share: float | None) -> None:
            rate = rows / max(time.monotonic() - begin, 1e-3)
            bar(rows / of if of else share, f"{rows:,} rows, {rate:,.0f}/s")

        yield told


# -- refused rows ------------------------------------------------------------------------------------------


@contextmanager
def listing(path: Path | None, replace: bool) -> Iterator[Callable[[int, str], None] | None]:
    """A function that writes each refused row to a file; None without a file.

    The list is also written if refused rows are the reason that nothing else is written.
    """
    if path is None:
        yield None
        return
    from priorveil.tables.refusals import StrictRefusal

    strict: StrictRefusal | None = None
    with atomic_write(path, replace) as file:

        def write(row: int, reason: str) -> None:
            file.write(f"{row + 1},{reason}\n".encode())

        file.write(b"row,reason\n")
        try:
            yield write
        except StrictRefusal as error:
            strict = error
    if strict is not None:
        click.echo(f"refused: {plural(strict.refused.total, 'row')}, listed in {path}", err=True)
        raise strict


def say_refused(refused: RefusedRows, listed: Path | None) -> None:
    """Tell people what was refused, on stderr."""
    if not refused.total:
        return
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.counts.items())
    click.echo(f"refused: {plural(refused.total, 'row')} ({reasons})", err=True)
    for row, reason in refused.rows[:SHOWN]:
        click.echo(f"  row {row + 1}: {reason}", err=True)
    if refused.total > SHOWN:
        rest = f"all of them are in {listed}" if listed else "list all with --refused FILE"
        click.echo(f"  and {refused.total - SHOWN:,} more; {rest}", err=True)


def refused_record(refused: RefusedRows) -> dict[str, object]:
    """What was refused, for a machine; the first row of data is row 1."""
    rows = [{"row": row + 1, "reason": reason} for row, reason in refused.rows]
    return {"refused": refused.counts, "refused_rows": rows}
