"""`priorveil estimate`: a table of reports in; tables, CSV, JSON, pictures and tallies out."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli import outputs, tables
from priorveil.cli import screen as screens
from priorveil.errors import InvalidInput, TooLarge, plural
from priorveil.files import atomic_write

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from priorveil.plans.estimate import Estimate
    from priorveil.tables import TableEstimate, Tallies

_MANY_FOREIGN = 0.1  # a larger share of foreign reports is no accident
_DOUBTFUL = 0.01  # a check of the prior below this is worth a word
_NAME = 8  # letters of a value's name that have to fit beside its numbers
_BETWEEN = 2  # spaces between columns
_WRONG = 0.001  # and below this, other advice

_EXAMPLES = f"""{tables.DATA}
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


@click.command(epilog=_EXAMPLES)
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
@outputs.PLOT
@click.option(
    "--tally",
    "tally_file",
    type=outputs.WRITTEN,
    callback=outputs.writable,
    help="Save the tallies, a JSON object on each line.",
)
@tables.REFUSED
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
    from priorveil.tables import TableEstimate, tally_table

    if as_json and as_csv:
        raise click.UsageError("choose --json or --csv")
    outputs.keep_apart(
        {"PLAN": plan, "REPORTS": reports}, {"--plot": plot, "--tally": tally_file, "--refused": listing}
    )
    with tables.progress("counting", quiet) as progress, tables.listing(listing, True) as on_refused:
        tallies = tally_table(
            tables.source(reports),
            tables.plans(plan, cohort),
            column=column,
            by=by,
            cohort=cohort,
            progress=progress,
            on_refused=on_refused,
        )
    tables.say_refused(tallies.refused, listing)
    _check_usable(tallies, reports)
    found = TableEstimate.of(tallies, by, method, None)
    if tally_file is not None:
        _save_tallies(found, tally_file)
    if plot is not None:
        from priorveil.studies import pictures

        outputs.save_picture(pictures.estimate_picture(found, by, level), plot)
        click.echo(f"drawn in {plot}", err=True)
    show = _print_json if as_json else _print_csv if as_csv else _print_tables
    show(found, by, level)
    return 0


def _check_usable(tallies: Tallies, where: str) -> None:
    """No estimate from nothing, and a word where many reports are not this plan's."""
    from priorveil.tables.refusals import FOREIGN

    reports = sum(tally.reports for tally in tallies.by.values())
    foreign = tallies.refused.counts.get(FOREIGN, 0)
    many = foreign > _MANY_FOREIGN * (reports + tallies.refused.total)
    if not reports:
        other = "; they were probably made by another plan" if many else ""
        raise InvalidInput("reports", where, f"there is no report of this plan to estimate from{other}")
    if many:
        share = foreign / (reports + tallies.refused.total)
        click.echo(f"  {share:.0%} are foreign: they were probably made by another plan", err=True)


# -- what was found ----------------------------------------------------------------------------------------


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
    """An object: everybody, the groups, and what was refused."""
    record = _record(found.everybody, level)
    if by is not None:
        record["by"] = by
        record["groups"] = [{"group": group, **_record(e, level)} for group, e in found.groups.items()]
    click.echo(
        json.dumps({**record, **tables.refused_record(found.refused)}, indent=2, allow_nan=False, default=str)
    )


def _print_csv(found: TableEstimate, by: str | None, level: float) -> None:
    """A line for each value, of each group if there are any."""
    text = io.StringIO()
    names = ["value", "estimate", "std_error", "low", "high"]
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(names if by is None else [by, *names])
    for group, estimate in _by_group(found) if by is None else found.groups.items():
        for row in _rows(estimate, level):
            lines.writerow([*([] if by is None else [group]), *(row[name] for name in names)])
    click.echo(text.getvalue(), nl=False)


def _print_tables(found: TableEstimate, by: str | None, level: float) -> None:
    """A table for each group and for everybody, and what the estimate rests on."""
    console = screens.console()
    for group, estimate in found.groups.items():
        _print_table(console, estimate, level, f"{by} = {_title(group)}")
    _print_table(console, found.everybody, level, "everybody" if found.groups else None)
    console.print(f"{found.everybody.method}: assumes {found.everybody.assumes}")
    check = found.everybody.prior_check
    if check is not None:
        verdict = "the prior or the reports are doubtful" if check < _DOUBTFUL else "the prior fits"
        advice = "; try --method unbiased" if check < _WRONG and _leans_needlessly(found) else ""
        console.print(f"check of the prior: p = {check:.3g}, {verdict}{advice}")


def _leans_needlessly(found: TableEstimate) -> bool:
    """Whether the prior was leant on though reports alone would do."""
    try:
        return found.everybody.method == "mmse" and all(p.identifiable for p in found.tallies.plans.values())
    except TooLarge:
        return False


def _title(group: Any) -> str:
    return "(missing)" if group is None else str(group)


def _print_table(console: Console, estimate: Estimate, level: float, title: str | None) -> None:
    """The values with their intervals: in columns, or where the screen is too narrow, one below the other."""
    from rich.text import Text

    reports = plural(estimate.reports, "report")
    console.print(Text(reports if title is None else f"{title}: {reports}", style="italic"))
    heads = ("estimate", f"{100 * level:.4g} % low", "high")
    rows = [
        (str(row["value"]), *(_shown(row[name]) for name in ("estimate", "low", "high")))
        for row in _rows(estimate, level)
    ]
    names, *numbers = zip(("value", *heads), *rows, strict=True)
    taken = sum(_BETWEEN + max(map(len, column)) for column in numbers)
    if console.width - taken >= min(_NAME, max(map(len, names))):
        console.print(_columns(heads, rows))
        return
    for name, *own in rows:
        console.print(Text(name), overflow="fold")
        for head, number in zip(heads, own, strict=True):
            console.print(Text(f" {head} {number}"), overflow="fold")


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("value", overflow="fold")
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    for name, *numbers in rows:
        table.add_row(Text(name), *numbers)
    return table


def _shown(number: object) -> str:
    return f"{number:,.1f}" if isinstance(number, float) else "-"


def _save_tallies(found: TableEstimate, path: Path) -> None:
    """The tallies, a JSON object on each line with its cohort and group."""
    with atomic_write(path, replace=True) as file:
        for (cohort, group), tally in found.tallies.by.items():
            line = {"cohort": cohort, "group": group, "tally": json.loads(tally.to_json())}
            file.write(json.dumps(line, default=str).encode() + b"\n")
