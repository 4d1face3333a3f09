"""The commands `privatize` and `estimate`: files in, files out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from priorveil.commands import estimated, inputs
from priorveil.errors import InvalidInput, counted

if TYPE_CHECKING:
    from priorveil.frames import Refused, Tallies
    from priorveil.frames.estimating import Method
    from priorveil.frames.privatizing import Progress
    from priorveil.plans import Plan

_HELP = {"help_option_names": ["-h", "--help"]}  # also when a command is run on its own
_SHOWN = 10  # refused rows shown to people
_MANY_FOREIGN = 0.1  # a larger share of foreign reports is no accident

_REFUSED = click.option(
    "--refused",
    "listing",
    type=inputs.WRITTEN,
    callback=inputs.writable,
    help="List all refused rows in a CSV.",
)

_DATA = """\b
Tables
  Parquet, Arrow or CSV (also in gzip), told apart by their content: a file, a
  folder of files (folders named column=value give a column), a pattern in quotes,
  or - for standard input (Arrow or CSV). In a CSV an empty cell is a missing value.
  PLAN is a plan; or, with --cohort COLUMN, a folder with a plan VALUE.json for
  each value of that public column.
"""

_PRIVATIZE_EXAMPLES = f"""{_DATA}
\b
Examples
  priorveil privatize plan.json people.csv --column answer -o reports.parquet
      a report for every row, with an id of its own; all other columns stay behind
  priorveil privatize plan.json 'day-*.parquet' --column answer --keep town -o reports.parquet
      the public column town goes along, to estimate by it later
  priorveil privatize plans/ people.csv --column answer --cohort country -o reports.parquet
      a plan for each country
  zcat people.csv.gz | priorveil privatize plan.json - --column answer -o - | gzip > reports.csv.gz
      through pipes
  priorveil privatize plan.json people.csv --column answer -o reports.csv --refused refused.csv --json
      every refused row in a file, and a summary for a machine to read

A row whose value is missing or outside the plan's domain is refused: counted, and listed by its number, never by
its value. The first row of data is row 1, also in JSON and in the file of --refused; several files are numbered
on. OUT is written whole or not at all. Every run makes new reports and spends the budget again: run it once, and
keep the reports.
"""

_ESTIMATE_EXAMPLES = f"""{_DATA}
\b
Examples
  priorveil estimate plan.json reports.parquet
      the histogram or the sum, with 95 % intervals
  priorveil estimate plan.json reports/ --by town --csv > towns.csv
      an estimate for every town, each with its own interval
  priorveil estimate plan.json reports.csv --method unbiased --json
      right on average whatever the prior; for a machine to read
  priorveil estimate plan.json reports.parquet --plot estimate.svg
      and a picture of it

Missing reports, and reports that this plan cannot have made, are left out, counted and listed by row number. The
first row of data is row 1, also in JSON and in the file of --refused; several files are numbered on. A file is
counted as it is: a report that is in it twice counts twice, whatever its id (a curator counts an id once). Remove
copies first.
"""


@click.command(epilog=_PRIVATIZE_EXAMPLES, context_settings=_HELP)
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.argument("data")
@click.option("--column", required=True, help="The private column.")
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=inputs.WRITTEN,
    callback=inputs.writable,
    help="Where to: .parquet, .csv, .csv.gz, .arrow, or -.",
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="A public column that goes along; repeatable.")
@click.option("--cohort", metavar="COLUMN", help="The public column that chooses the plan.")
@click.option("--format", "kind", type=click.Choice(["parquet", "csv", "arrow"]), help="Instead of by name.")
@click.option("--no-ids", is_flag=True, help="Leave the report ids out.")
@_REFUSED
@click.option("--strict", is_flag=True, help="Write nothing if any row is refused.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@click.option("--json", "as_json", is_flag=True, help="A summary as JSON (on stderr if OUT is -).")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def privatize(
    plan: Path,
    data: str,
    column: str,
    out: Path,
    keep: tuple[str, ...],
    cohort: str | None,
    kind: Any,
    no_ids: bool,
    listing: Path | None,
    strict: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Turn a private column of a table into reports, by a PLAN."""
    from priorveil.frames import privatize_table
    from priorveil.frames.refusals import OUTSIDE

    piped = str(out) == "-"
    for place in (out, listing):
        if place is not None and place.is_file() and not force:
            raise click.UsageError(f"{place} exists: choose another name, or --force")
    _keep_apart({"PLAN": plan, "DATA": data}, {"-o": out, "--refused": listing})
    plans, target = _plans(plan, cohort), sys.stdout.buffer if piped else out
    with (
        _strictly(),
        _progress("privatizing", quiet) as bar,
        _listing(listing, force, bar) as (each, progress),
    ):
        done = privatize_table(
            _input(data),
            plans,
            column,
            target,
            keep=keep,
            cohort=cohort,
            ids=not no_ids,
            format=kind,
            replace=force,
            strict=strict,
            progress=progress,
            on_refused=each,
        )
    _say_refused(done.refused, listing)
    if done.refused.counts.get(OUTSIDE, 0) and not done.reports:
        click.echo(f"  no value of {column!r} is one that the plan knows: {_known(plans)}", err=True)
    record = {"reports": done.reports, **estimated.refused_record(done.refused)}
    if as_json:
        click.echo(json.dumps(record, indent=2), err=piped)
    else:
        to = "standard output" if piped else out
        click.echo(f"{counted(done.reports, 'report')} written to {to}", err=True)
    return 0


@click.command(epilog=_ESTIMATE_EXAMPLES, context_settings=_HELP)
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.argument("reports")
@click.option("--column", default="report", show_default=True, help="The column of the reports.")
@click.option("--by", metavar="COLUMN", help="An estimate for each value of a public column.")
@click.option("--cohort", metavar="COLUMN", help="The public column that chooses the plan.")
@click.option(
    "--method",
    type=click.Choice(["auto", "mmse", "unbiased", "mle"]),
    default="auto",
    show_default=True,
    help="mmse leans on the prior; unbiased and mle do not. auto: unbiased for a plan of query distribution, "
    "mmse for others.",
)
@click.option(
    "--level", type=click.FloatRange(0, 1, True, True), default=0.95, show_default=True, help="Of intervals."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@inputs.PLOT
@click.option(
    "--tally",
    "tally_file",
    type=inputs.WRITTEN,
    callback=inputs.writable,
    help="Save the tallies, a JSON object on each line.",
)
@_REFUSED
@click.option("--quiet", is_flag=True, help="No progress bar.")
def estimate(
    plan: Path,
    reports: str,
    column: str,
    by: str | None,
    cohort: str | None,
    method: Any,
    level: float,
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
    tally_file: Path | None,
    listing: Path | None,
    quiet: bool,
) -> int:
    """Estimate from a table of REPORTS made by a PLAN."""
    from priorveil.frames import tally_table
    from priorveil.frames.estimating import read_tallies

    if as_json and as_csv:
        raise click.UsageError("choose --json or --csv")
    _keep_apart(
        {"PLAN": plan, "REPORTS": reports}, {"--plot": plot, "--tally": tally_file, "--refused": listing}
    )
    with _progress("counting", quiet) as bar, _listing(listing, True, bar) as (each, progress):
        tallies = tally_table(
            _input(reports),
            _plans(plan, cohort),
            column=column,
            by=by,
            cohort=cohort,
            progress=progress,
            on_refused=each,
        )
    _say_refused(tallies.refused, listing)
    _check_usable(tallies, reports)
    found = read_tallies(tallies, by, _chosen(method, tallies.plans), None)
    if tally_file is not None:
        estimated.save_tallies(found, tally_file)
    if plot is not None:
        from priorveil.commands import panels

        panels.draw(found, by, plot, level)
        click.echo(f"drawn in {plot}", err=True)
    show = estimated.print_json if as_json else estimated.print_csv if as_csv else estimated.print_tables
    show(found, by, level)
    return 0


# -- in ----------------------------------------------------------------------------------------------------


def _plans(path: Path, cohort: str | None) -> Plan | dict[str, Plan]:
    """A plan, or the plans of a folder by the names of their files."""
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
    plans = {file.stem: inputs.plan(file) for file in sorted(path.glob("*.json"))}
    if not plans:
        raise click.UsageError(f"there is no plan in {path}")
    return plans


def _known(plans: Plan | Mapping[str, Plan]) -> str:
    """The first few values of the plans' domain, which is public."""
    labels = next(iter(plans.values())).labels if isinstance(plans, Mapping) else plans.labels
    return ", ".join(map(str, labels[:_SHOWN])) + (", ..." if len(labels) > _SHOWN else "")


def _chosen(method: str, plans: Mapping[Any, Plan]) -> Method:
    """The method that is meant: `auto` does without the prior where the plans were made for that."""
    from priorveil.queries import Distribution

    if method == "auto":
        learnt = all(isinstance(plan.query, Distribution) for plan in plans.values())
        return "unbiased" if learnt else "mmse"
    return cast("Method", method)


def _keep_apart(read: Mapping[str, Path | str], written: Mapping[str, Path | None]) -> None:
    """Refuse to write over what is read, or twice into one file."""
    places = {os.path.realpath(path): name for name, path in read.items()}
    for name, path in written.items():
        if path is None or str(path) == "-":
            continue
        other = places.setdefault(os.path.realpath(path), name)
        if other != name:
            raise click.UsageError(f"{name} and {other} are one file, {path}: choose another name for {name}")


def _input(data: str) -> Any:
    return sys.stdin.buffer if data == "-" else data


@contextmanager
def _progress(verb: str, quiet: bool) -> Iterator[Callable[[int, int | None, float | None], None] | None]:
    """A bar on a terminal with rows, rate and time left; nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(verb, total=None, rows=0, rate=0.0)

        def told(rows: int, of: int | None, share: float | None) -> None:
            part = rows / of if of else share
            rate = rows / max(bar.tasks[0].elapsed or 0.0, 1e-3)
            bar.update(task, total=None if part is None else 1.0, completed=part or 0.0, rows=rows, rate=rate)

        yield told


# -- refused rows ------------------------------------------------------------------------------------------


@contextmanager
def _listing(
    path: Path | None, replace: bool, bar: Progress | None
) -> Iterator[tuple[Callable[[int, str], None] | None, Progress | None]]:
    """What hears of refused rows and of progress, to list all refused rows in a file if one is wanted.

    They are written in the order of the rows, also where they are the reason that nothing else is written.
    """
    if path is None:
        yield None, bar
        return
    from priorveil.frames.refusals import InOrder, StrictlyRefused
    from priorveil.frames.sinks import whole_file

    strict: StrictlyRefused | None = None
    with whole_file(path, replace) as file:
        rows = InOrder()

        def write(entries: Iterable[tuple[int, str]]) -> None:
            file.writelines(f"{row + 1},{reason}\n".encode() for row, reason in entries)

        def told(seen: int, of: int | None, share: float | None) -> None:
            write(rows.before(seen))  # rows that come later have numbers from `seen` on
            if bar is not None:
                bar(seen, of, share)

        file.write(b"row,reason\n")
        try:
            yield rows.enter, told
        except StrictlyRefused as error:
            strict = error
        write(rows.rest())
    if strict is not None:
        click.echo(f"refused: {counted(strict.refused.total, 'row')}, listed in {path}", err=True)
        raise strict


@contextmanager
def _strictly() -> Iterator[None]:
    """Say why nothing is written with the numbers that people give to rows."""
    from priorveil.frames.refusals import StrictlyRefused

    try:
        yield
    except StrictlyRefused as error:
        first = ", ".join(f"row {row + 1} ({reason})" for row, reason in error.refused.rows[:5])
        verb = "is" if error.refused.total == 1 else "are"
        said = f"{counted(error.refused.total, 'row')} {verb} refused, so nothing is written: {first}"
        raise click.ClickException(said) from error


def _check_usable(tallies: Tallies, where: str) -> None:
    """No estimate from nothing, and a word where many reports are not this plan's."""
    from priorveil.frames.refusals import FOREIGN

    reports = sum(tally.reports for tally in tallies.by.values())
    foreign = tallies.refused.counts.get(FOREIGN, 0)
    many = foreign > _MANY_FOREIGN * (reports + tallies.refused.total)
    if not reports:
        other = "; they were probably made by another plan" if many else ""
        raise InvalidInput("reports", where, f"there is no report of this plan to estimate from{other}")
    if many:
        share = foreign / (reports + tallies.refused.total)
        click.echo(f"  {share:.0%} are foreign: they were probably made by another plan", err=True)


def _say_refused(refused: Refused, listing: Path | None) -> None:
    """Tell people what was refused, on stderr."""
    if not refused.total:
        return
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.counts.items())
    click.echo(f"refused: {counted(refused.total, 'row')} ({reasons})", err=True)
    for row, reason in refused.rows[:_SHOWN]:
        click.echo(f"  row {row + 1}: {reason}", err=True)
    if refused.total > _SHOWN:
        rest = f"all of them are in {listing}" if listing else "list all with --refused FILE"
        click.echo(f"  and {refused.total - _SHOWN:,} more; {rest}", err=True)
