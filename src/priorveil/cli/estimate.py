"""`priorveil estimate`: a table of reports in; tables, CSV, JSON and pictures out.

Examples
  priorveil estimate plan.json reports.parquet
      the histogram or the sum, with 95 % intervals; of numbers also the mean
      or quantiles
  priorveil estimate plan.json reports/ --by town --csv > towns.csv
      an estimate for every town, each with its own interval
  priorveil estimate plan.json reports.csv --method unbiased --json
      right on average whatever the prior; for a program to read
  priorveil estimate plan.json reports.parquet --plot estimate.svg
      and a picture of it

The column `plan` names the plan of every report; reports of another plan are an error. If REPORTS have no such
column and you know that PLAN made all of them, use --assume-plan.

Missing reports, and reports that this plan cannot have made, are left out, counted and listed by row number; exit
status 1 if they are most of the rows. The first row of data is row 1, also in JSON and in the file of --refused; row
numbers continue from one file to the next. A file is counted as it is: a report that is in it twice counts twice,
whatever its id (a curator counts an id once). Remove duplicates first.
"""

from __future__ import annotations

import csv
import sys
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli import inputs, options, outputs, screen
from priorveil.errors import InvalidInput, NotIdentifiable

if TYPE_CHECKING:
    from rich.console import Console

    from priorveil.priors import Label
    from priorveil.reading.estimate import Estimate
    from priorveil.reading.statistics import Statistic
    from priorveil.tables import TableEstimate

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_MANY_FOREIGN = 0.1  # a larger share of foreign reports is not an accident


@click.command(epilog=options.epilog(__doc__, options.TABLES_HELP))
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.argument("reports")
@click.option("--column", default="report", help="The column of the reports.")
@click.option("--by", metavar="COLUMN", help="An estimate for each value of a public column.")
@options.COHORT
@click.option(
    "--method",
    type=click.Choice(["auto", "mmse", "unbiased", "mle"]),
    default="auto",
    help="mmse leans on the prior; unbiased and mle do not. auto: unbiased for a plan of an unbiased query "
    "such as distribution, mmse for others.",
)
@click.option("--level", type=options.SHARE, default=0.95, help="Confidence level of the intervals.")
@click.option(
    "--assume-plan",
    is_flag=True,
    help="Assume that PLAN made all reports: for tables without a column `plan`.",
)
@options.JSON
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV; warnings and notes go to standard error.")
@options.PLOT
@options.REFUSED
def estimate(
    plan: Path,
    reports: str,
    by: str | None,
    cohort: str | None,
    level: float,
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
    refused_file: Path | None,
    **settings: Any,
) -> int:
    """Estimate from a table of REPORTS made by a PLAN."""
    from priorveil.tables import estimate_table

    if as_json and as_csv:
        raise click.UsageError("choose --json or --csv")
    inputs.require_distinct({"PLAN": plan, "REPORTS": reports}, {"--plot": plot, "--refused": refused_file})
    settings |= {"by": by, "cohort": cohort, "refused_file": refused_file, "force": True}
    plans = inputs.read_plans(plan, cohort)
    estimates = outputs.run_on_table(estimate_table, reports, plans, words="counting", **settings)
    _check_reports(estimates, reports)
    if plot is not None:
        from priorveil.studies import plots

        outputs.save_plot(plots.estimate_plot(estimates, by, level), plot)
    show = _print_json if as_json else _print_csv if as_csv else _print_tables
    show(estimates, by, level)
    return outputs.refusal_status(estimates.refused, estimates.everybody.reports)


def _check_reports(found: TableEstimate, source: str) -> None:
    """Refuse an estimate from nothing, and warn where many reports are not this plan's."""
    from priorveil.tables.refusals import FOREIGN

    reports = found.everybody.reports
    share = found.refused.counts.get(FOREIGN, 0) / max(1, reports + found.refused.total)
    many = share > _MANY_FOREIGN
    if not reports and not found.refused.total:
        raise InvalidInput("reports", source, "there are no reports: the table has no rows")
    if not reports:
        other = "; they were probably made by another plan" if many else ""
        raise InvalidInput("reports", source, f"there is no report of this plan to estimate from{other}")
    if many:
        click.echo(f"  {share:.0%} are foreign: they were probably made by another plan", err=True)


def _rows(estimate: Estimate, level: float) -> list[tuple[Any, ...]]:
    """Return the label, estimate, standard error and interval of each value."""
    from priorveil.priors.labels import label_text

    numbers = (estimate.values, estimate.std_error, *estimate.interval(level))
    return list(zip(map(label_text, estimate.labels), *(column.tolist() for column in numbers), strict=True))


def _further_rows(estimate: Estimate, level: float) -> list[tuple[Any, ...]]:
    """Return the rows of the mean of numbers on a grid, or of the quantiles of numbers in cells; otherwise none."""
    prior = estimate.readings[0].prior
    found: dict[str, Statistic] = {}
    # Reports may not determine it, there may be none, or cohorts may have other numbers.
    with suppress(NotIdentifiable, InvalidInput):
        if prior.points is not None:
            found = {"mean": estimate.mean(prior.points.tolist())}
        elif prior.edges is not None:
            found = {f"quantile {share:g}": estimate.quantile(share) for share in _QUANTILES}
    return [(name, one.value, one.std_error, *one.interval(level)) for name, one in found.items()]


def _record(estimate: Estimate, level: float) -> dict[str, Any]:
    """Return an estimate for a program, with the mean or the quantiles of numbers under `statistics`."""
    names = ("name", "value", "std_error", "lower", "upper")
    further = [dict(zip(names, row, strict=True)) for row in _further_rows(estimate, level)]
    return {**estimate.record(level), "statistics": further}


def _print_json(found: TableEstimate, by: str | None, level: float) -> None:
    """Print an object with everybody, the groups and the refused rows."""
    record = {"level": level, **_record(found.everybody, level)}
    if by is not None:
        record["by"] = by
        record["groups"] = [{"group": group, **_record(each, level)} for group, each in found.groups.items()]
    screen.print_json({**record, **outputs.refused_record(found.refused)})


def _parts(found: TableEstimate, by: str | None) -> list[tuple[str, Estimate]]:
    """Return the estimate of each group and of everybody, each with its title."""
    groups = found.groups.items()
    parts = [(f"{by} = {'(missing)' if group is None else group}: ", each) for group, each in groups]
    return [*parts, ("everybody: " if parts else "", found.everybody)]


def _print_csv(found: TableEstimate, by: str | None, level: float) -> None:
    """Print a line for each value, of each group if there are groups; warnings and notes go to standard error."""
    console = screen.open_console(stderr=True)
    for title, estimate in _parts(found, by):
        _print_warning(console, estimate, title)
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow([*([] if by is None else [by]), "value", "estimate", "std_error", "low", "high"])
    for group, estimate in [(None, found.everybody)] if by is None else found.groups.items():
        rows = [*_rows(estimate, level), *_further_rows(estimate, level)]
        lines.writerows([*([] if by is None else [group]), *row] for row in rows)
    for note in found.everybody.notes:
        console.print(note)


def _print_tables(found: TableEstimate, by: str | None, level: float) -> None:
    """Print a table for each group and for everybody, and what the estimate assumes."""
    console = screen.open_console()
    for title, estimate in _parts(found, by):
        _print_table(console, estimate, level, title)
    for note in found.everybody.notes:
        console.print(note)


def _print_warning(console: Console, estimate: Estimate, title: str) -> None:
    if estimate.warning is not None:
        console.print(f"{title}Warning: {estimate.warning}", style="bold red")


def _print_table(console: Console, estimate: Estimate, level: float, title: str) -> None:
    from priorveil.formatting import readable_number
    from priorveil.reading.wording import most_relevant

    _print_warning(console, estimate, title)
    console.print(f"{title}reports: {estimate.reports:,}", style="italic")
    names, shown, rows = estimate.readings[0].prior.names, most_relevant(estimate), _rows(estimate, level)
    cells = [_cells(label, names) for label in estimate.labels]
    ends = ("estimate", f"{100 * level:.4g} % low", "high")
    margins = list(dict.fromkeys(map(tuple, cells)))
    margin_of = [margins.index(tuple(cell)) for cell in cells]
    for margin, indices in groupby(sorted(shown, key=margin_of.__getitem__), key=margin_of.__getitem__):
        heads = margins[margin]
        lines = [(*cells[i].values(), *(f"{number:,.1f}" for number in _figures(rows[i]))) for i in indices]
        screen.print_table(console, (*heads, *ends), lines, "l" * len(heads) + "rrr")
    if len(shown) < len(rows):
        console.print(f"and {len(rows) - len(shown):,} more; --csv lists all")
    if further := _further_rows(estimate, level):
        lines = [(row[0], *(readable_number(number, 5) for number in _figures(row))) for row in further]
        screen.print_table(console, ("numbers", *ends), lines, "lrrr")


def _figures(row: tuple[Any, ...]) -> tuple[float, ...]:
    """Return the estimate and both ends of its interval."""
    return (row[1], *row[3:])


def _cells(label: Label, names: tuple[str, ...] | None) -> dict[str, str]:
    """Return the level of each attribute that a label names; of other labels the text, under `value`."""
    from priorveil.priors.labels import label_text, named_levels

    if names is not None and isinstance(label, tuple):
        return dict(zip(names, map(str, label), strict=True))
    return named_levels(str(label), names or ()) or {"value": label_text(label)}
