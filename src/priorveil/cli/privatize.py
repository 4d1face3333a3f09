"""`priorveil privatize`: a private column of a table in, reports out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli import outputs, tables
from priorveil.errors import plural

if TYPE_CHECKING:
    from priorveil.plans import Plan
    from priorveil.tables.privatize import Privatized

_EXAMPLES = f"""{tables.DATA}
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
its value; exit status 1 if all are. The first row of data is row 1, also in JSON and in the file of --refused;
several files are numbered on. OUT is written whole or not at all. Every run makes new reports and spends the budget
again: run it once, and keep the reports.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.argument("data")
@click.option("--column", required=True, help="The private column.")
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=outputs.WRITTEN,
    callback=outputs.streamable,
    help="Where to: .parquet, .csv, .csv.gz, .arrow, or -.",
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="A public column that goes along; repeatable.")
@click.option("--cohort", metavar="COLUMN", help="The public column that chooses the plan.")
@click.option("--format", "kind", type=click.Choice(["parquet", "csv", "arrow"]), help="Instead of by name.")
@click.option("--no-ids", is_flag=True, help="Leave the report ids out.")
@tables.REFUSED
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
    from priorveil.tables import privatize_table
    from priorveil.tables.refusals import OUTSIDE

    piped = str(out) == "-"
    for place in (out, listing):
        if place is not None and place.is_file() and not force:
            raise click.UsageError(f"{place} exists: choose another name, or --force")
    outputs.keep_apart({"PLAN": plan, "DATA": data}, {"-o": out, "--refused": listing})
    plans, target = tables.plans(plan, cohort), sys.stdout.buffer if piped else out
    with (
        _strictly(),
        tables.progress("privatizing", quiet) as progress,
        tables.listing(listing, force) as on_refused,
    ):
        done = privatize_table(
            tables.source(data),
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
            on_refused=on_refused,
        )
    tables.say_refused(done.refused, listing)
    if done.refused.counts.get(OUTSIDE, 0) and not done.reports:
        click.echo(f"  no value of {column!r} is one that the plan knows: {_known(plans)}", err=True)
    if as_json:
        record = {"reports": done.reports, **tables.refused_record(done.refused)}
        click.echo(json.dumps(record, indent=2), err=piped)
    return _ended(done, "standard output" if piped else str(out), told=as_json)


def _ended(done: Privatized, to: str, told: bool) -> int:
    """Say what was written, unless it is told already, and whether it is nothing: that is the exit status."""
    nobody = bool(done.refused.total and not done.reports)
    if nobody:
        click.echo(f"every row is refused: {to} holds no report", err=True)
    elif not told:
        click.echo(f"{plural(done.reports, 'report')} written to {to}", err=True)
    return int(nobody)


def _known(plans: Plan | Mapping[str, Plan]) -> str:
    """The first few values of the plans' domain, which is public."""
    labels = next(iter(plans.values())).labels if isinstance(plans, Mapping) else plans.labels
    return ", ".join(map(str, labels[: tables.SHOWN])) + (", ..." if len(labels) > tables.SHOWN else "")


@contextmanager
def _strictly() -> Iterator[None]:
    """Say why nothing is written with the numbers that people give to rows."""
    from priorveil.tables.refusals import StrictRefusal

    try:
        yield
    except StrictRefusal as error:
        first = ", ".join(f"row {row + 1} ({reason})" for row, reason in error.refused.rows[:5])
        verb = "is" if error.refused.total == 1 else "are"
        said = f"{plural(error.refused.total, 'row')} {verb} refused, so nothing is written: {first}"
        raise click.ClickException(said) from error
