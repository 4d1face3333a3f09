"""The commands `privatize` and `estimate`: files in, files out."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.errors import InvalidInput

if TYPE_CHECKING:
    from priorveil.estimates import Estimate
    from priorveil.frames import Refused, TableEstimate
    from priorveil.plans import Plan

_HELP = {"help_option_names": ["-h", "--help"]}  # also when a command is run on its own
_SHOWN = 10  # refused rows shown to people
_PICTURES = ("svg", "png", "pdf")
_MOST_PANELS = 24
_WIDTH = 100  # of tables that do not go to a terminal

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

A row whose value is missing or outside the plan's domain is refused: counted, and listed by its number (rows
count from 0), never by its value. OUT is written whole or not at all. Every run makes new reports and spends
the budget again: run it once, and keep the reports.
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

Missing reports, and reports that this plan cannot have made, are left out, counted and listed by row number.
"""


@click.command(epilog=_PRIVATIZE_EXAMPLES, context_settings=_HELP)
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.argument("data")
@click.option("--column", required=True, help="The private column.")
@click.option("-o", "--output", "out", required=True, help="Where to: .parquet, .csv, .csv.gz, .arrow, or -.")
@click.option("--keep", multiple=True, metavar="COLUMN", help="A public column that goes along; repeatable.")
@click.option("--cohort", metavar="COLUMN", help="The public column that chooses the plan.")
@click.option("--format", "kind", type=click.Choice(["parquet", "csv", "arrow"]), help="Instead of by name.")
@click.option("--no-ids", is_flag=True, help="Leave the report ids out.")
@click.option("--refused", "listing", type=click.Path(path_type=Path), help="List all refused rows in a CSV.")
@click.option("--strict", is_flag=True, help="Write nothing if any row is refused.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@click.option("--json", "as_json", is_flag=True, help="A summary as JSON (on stderr if OUT is -).")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def privatize(
    plan: Path,
    data: str,
    column: str,
    out: str,
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

    plans, target = _plans(plan, cohort), _target(out)
    with _listing(listing, force) as each, _progress("privatizing", quiet) as progress:
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
    record = {"reports": done.reports, **_refused_record(done.refused)}
    if as_json:
        click.echo(json.dumps(record, indent=2), err=out == "-")
    else:
        click.echo(
            f"{done.reports:,} reports written to {'standard output' if out == '-' else out}", err=True
        )
    return 0


@click.command(epilog=_ESTIMATE_EXAMPLES, context_settings=_HELP)
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.argument("reports")
@click.option("--column", default="report", show_default=True, help="The column of the reports.")
@click.option("--by", metavar="COLUMN", help="An estimate for each value of a public column.")
@click.option("--cohort", metavar="COLUMN", help="The public column that chooses the plan.")
@click.option(
    "--method",
    type=click.Choice(["mmse", "unbiased", "mle"]),
    default="mmse",
    show_default=True,
    help="mmse leans on the prior; unbiased and mle do not.",
)
@click.option(
    "--level", type=click.FloatRange(0, 1, True, True), default=0.95, show_default=True, help="Of intervals."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the estimate: .svg, .png or .pdf.")
@click.option("--tally", "tally_file", type=click.Path(path_type=Path), help="Save the tallies as JSON.")
@click.option("--refused", "listing", type=click.Path(path_type=Path), help="List all refused rows in a CSV.")
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
    from priorveil.frames import estimate_table

    if as_json and as_csv:
        raise click.UsageError("choose --json or --csv")
    with _listing(listing, True) as each, _progress("counting", quiet) as progress:
        found = estimate_table(
            _input(reports),
            _plans(plan, cohort),
            column=column,
            by=by,
            cohort=cohort,
            method=method,
            progress=progress,
            on_refused=each,
        )
    _say_refused(found.refused, listing)
    if tally_file is not None:
        _save_tallies(found, tally_file)
    if plot is not None:
        _draw(found, plot, level)
    show = _print_json if as_json else _print_csv if as_csv else _print_tables
    show(found, by, level)
    return 0


# -- in ----------------------------------------------------------------------------------------------------


def _plans(path: Path, cohort: str | None) -> Plan | dict[str, Plan]:
    """A plan, or the plans of a folder by the names of their files."""
    from priorveil.plans import Plan

    if cohort is None:
        if path.is_dir():
            raise click.UsageError(
                f"{path} is a folder: say by which column its plans are chosen, --cohort COLUMN"
            )
        return Plan.load(path)
    if not path.is_dir():
        raise click.UsageError(
            f"with --cohort, PLAN is a folder with a plan VALUE.json for each value, not {path}"
        )
    plans = {file.stem: Plan.load(file) for file in sorted(path.glob("*.json"))}
    if not plans:
        raise click.UsageError(f"there is no plan in {path}")
    return plans


def _input(data: str) -> Any:
    return sys.stdin.buffer if data == "-" else data


def _target(out: str) -> Any:
    return sys.stdout.buffer if out == "-" else Path(out)


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
def _listing(path: Path | None, replace: bool) -> Iterator[Callable[[int, str], None] | None]:
    """A file of all refused rows, if one is wanted."""
    if path is None:
        yield None
        return
    from priorveil.frames.sinks import whole_file

    with whole_file(path, replace) as file:
        file.write(b"row,reason\n")
        yield lambda row, reason: file.write(f"{row},{reason}\n".encode())


def _say_refused(refused: Refused, listing: Path | None) -> None:
    """Tell people what was refused, on stderr."""
    if not refused.total:
        return
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.counts.items())
    click.echo(f"refused: {refused.total:,} rows ({reasons})", err=True)
    for row, reason in refused.rows[:_SHOWN]:
        click.echo(f"  row {row}: {reason}", err=True)
    if refused.total > _SHOWN:
        rest = f"all of them are in {listing}" if listing else "list all with --refused FILE"
        click.echo(f"  and {refused.total - _SHOWN:,} more; {rest}", err=True)


def _refused_record(refused: Refused) -> dict[str, object]:
    rows = [{"row": row, "reason": reason} for row, reason in refused.rows]
    return {"refused": refused.counts, "refused_rows": rows}


# -- out ---------------------------------------------------------------------------------------------------


def _by_group(found: TableEstimate) -> Iterator[tuple[Any, Estimate]]:
    """The groups, or everybody where there are none."""
    yield from found.groups.items() if found.groups else [(None, found.everybody)]


def _rows(estimate: Estimate, level: float) -> Iterator[dict[str, object]]:
    low, high = estimate.interval(level)
    for label, value, error, a, b in zip(
        estimate.labels, estimate.values, estimate.std_error, low, high, strict=True
    ):
        numbers = {"estimate": value, "std_error": error, "low": a, "high": b}
        yield {"value": label, **{name: _finite(number) for name, number in numbers.items()}}


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _record(estimate: Estimate, level: float) -> dict[str, object]:
    return {
        "reports": estimate.reports,
        "method": estimate.method,
        "assumes": estimate.assumes,
        "level": level,
        "prior_check": estimate.prior_check,
        "values": list(_rows(estimate, level)),
    }


def _print_json(found: TableEstimate, by: str | None, level: float) -> None:
    record = _record(found.everybody, level)
    if by is not None:
        record["by"] = by
        record["groups"] = [{"group": group, **_record(e, level)} for group, e in found.groups.items()]
    click.echo(
        json.dumps({**record, **_refused_record(found.refused)}, indent=2, allow_nan=False, default=str)
    )


def _print_csv(found: TableEstimate, by: str | None, level: float) -> None:
    text = io.StringIO()
    names = ["value", "estimate", "std_error", "low", "high"]
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(names if by is None else [by, *names])
    for group, estimate in _by_group(found) if by is None else found.groups.items():
        for row in _rows(estimate, level):
            lines.writerow([*([] if by is None else [group]), *(row[name] for name in names)])
    click.echo(text.getvalue(), nl=False)


def _print_tables(found: TableEstimate, by: str | None, level: float) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    for group, estimate in found.groups.items():
        console.print(_table(estimate, level, f"{by} = {group}"))
    console.print(_table(found.everybody, level, "everybody" if found.groups else None))
    console.print(f"{found.everybody.method}: assumes {found.everybody.assumes}", markup=False)
    check = found.everybody.prior_check
    if check is not None:
        verdict = "the prior or the reports are doubtful" if check < 0.01 else "the prior fits"
        console.print(f"check of the prior: p = {check:.3g}, {verdict}", markup=False)


def _table(estimate: Estimate, level: float, title: str | None) -> Any:
    from rich.table import Table
    from rich.text import Text

    heading = f"{estimate.reports:,} reports" if title is None else f"{title}: {estimate.reports:,} reports"
    table = Table("value", box=None, pad_edge=False, title=Text(heading), title_justify="left")
    for name in ("estimate", f"{level:.4g} low", "high"):
        table.add_column(name, justify="right")
    for row in _rows(estimate, level):
        numbers = (row["estimate"], row["low"], row["high"])
        table.add_row(Text(str(row["value"])), *(_shown(number) for number in numbers))
    return table


def _shown(number: object) -> str:
    return f"{number:,.1f}" if isinstance(number, float) else "-"


def _save_tallies(found: TableEstimate, path: Path) -> None:
    """The tallies, a JSON object on each line with its cohort and group."""
    from priorveil.frames.sinks import whole_file

    with whole_file(path, replace=True) as file:
        for (cohort, group), tally in found.tallies.by.items():
            line = {"cohort": cohort, "group": group, "tally": json.loads(tally.to_json())}
            file.write(json.dumps(line, default=str).encode() + b"\n")


def _draw(found: TableEstimate, path: Path, level: float) -> None:
    """A picture of the estimate, by the module that draws."""
    from priorveil import plots
    from priorveil.frames.sinks import whole_file

    kind = path.suffix.lower().removeprefix(".")
    if kind not in _PICTURES:
        raise InvalidInput("plot", str(path), f"give a name that ends in {', '.join(_PICTURES)}")
    named = [(None, found.everybody), *found.groups.items()]
    if len(named) > _MOST_PANELS:
        raise InvalidInput(
            "plot", f"{len(found.groups)} groups", f"at most {_MOST_PANELS - 1} fit into a picture"
        )
    with plots.look(), whole_file(path, replace=True) as file:
        figure, axes = plots.canvas(rows=len(named))
        for (group, estimate), panel in zip(named, axes[:, 0], strict=True):
            plots.histogram(estimate, axes=panel, level=level)
            panel.set_title("everybody" if group is None else str(group))
        figure.savefig(file, format=kind)
