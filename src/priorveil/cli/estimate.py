r"""`priorveil estimate`: a table of reports in; tables, CSV, JSON and plots out.

To try it in an empty folder
  printf 'yes,0.3\nno,0.7\n' > prior.csv
  priorveil design prior.csv --epsilon 1 -o plan.json
  printf 'answer\nyes\nno\nno\n' > people.csv
  priorveil privatize plan.json people.csv --column answer -o reports.csv
  priorveil estimate plan.json reports.csv

Examples
  priorveil estimate plan.json reports.parquet
      shares with 95 % intervals and counts, or the sum; for numbers also the
      mean, averages by group or quantiles
  priorveil estimate plan.json monday.csv tuesday.csv
      all the reports of several files
  priorveil estimate plan.json reports/ --by town --csv > towns.csv
      an estimate for every town, each with its own interval
  priorveil estimate plan.json reports.csv --margin age
      for a plan on several attributes: the shares of one of them
  priorveil estimate plan.json reports.csv --margin smokes --within age
      the table of both, and the shares of those who smoke within each age
  priorveil estimate plan.json reports.csv --method mle --json
      no share below zero; for a program to read
  priorveil estimate plan.json reports.parquet --plot estimate.svg
      also as a plot
  priorveil estimate campaign.json reports.parquet more/
      submissions to a campaign, from privatize or exported by a curator: a
      table for each question

Of more than 50 values the table shows those that the prior expects most. --csv has a line for each value. A table of
several attributes also has a column for each of them, and each count has its share of everybody who reported, or of its
group. For a campaign it has a line for each statistic: `attributes`, `cohort` (empty for all together), `statistic`
(people, mean, share within age and so on), a column for each question with the answer that the line is about,
`reports`, the numbers, and for people the `share` of everybody.

The column `plan` names the plan of every report; reports of another plan are an error. If REPORTS have no such
column and you know that PLAN made all of them, use --assume-plan.

Missing reports, and reports that this plan cannot have made, are left out, counted and listed by row number. If they
are more than 5 % of the rows, a line says that results may be biased; exit status 1 if they are most of the rows. The
first row of data is row 1, also in JSON and in the file of --refused; row numbers continue from one file to the next.

A report that occurs several times, with the same id in the column `report_id`, is counted once, even across files. The
same id with another report is an error. Without ids, repeated reports cannot be detected.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli import campaign_results, inputs, options, outputs, screen
from priorveil.errors import InvalidInput, plural
from priorveil.priors.label_texts import first_labels, label_parts, label_text
from priorveil.reading.wording import (
    answer,
    describe,
    group_title,
    headlines,
    number_tables,
    shares_within,
    table_records,
    unbounded_shares_note,
    value_rows,
)

if TYPE_CHECKING:
    from rich.console import Console

    from priorveil.reading.estimate import Estimate
    from priorveil.reading.wording import StatisticRow
    from priorveil.tables import TableEstimate, Tallies
    from priorveil.tables.submissions import SubmissionTallies

_NUMBERS = ("estimate", "std_error", "low", "high")  # of a line of CSV
_COHORTS = "the results have every cohort of the campaign: leave it out"
_MANY_FOREIGN = 0.1  # a larger share of foreign reports is not an accident


_SECTIONS = {
    "Options that most estimates need": ("--by", "--margin", "--within", "--method", "--level"),
    "What REPORTS hold": ("--column", "--cohort", "--assume-plan"),
    "The output": ("--json", "--csv", "--plot", "--refused"),
}


@click.command(
    cls=options.SectionedCommand, sections=_SECTIONS, epilog=options.epilog(__doc__, options.TABLES_HELP)
)
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.argument("reports", nargs=-1, required=True)
@click.option("--column", default="report", help="The column of the reports.")
@click.option("--by", metavar="COLUMN", help="An estimate for each value of a public column.")
@click.option(
    "--margin",
    metavar="NAMES",
    help="For a plan on several attributes: those to show, such as age,smokes, summed over the others.",
)
@click.option(
    "--within",
    metavar="NAMES",
    help="For several attributes: within each group of these, such as age, the shares of those of --margin, or of all "
    "others.",
)
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
    reports: tuple[str, ...],
    by: str | None,
    margin: str | None,
    within: str | None,
    cohort: str | None,
    level: float,
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
    refused_file: Path | None,
    **settings: Any,
) -> int:
    """Estimate from tables of REPORTS made by a PLAN or a campaign.

    PLAN may be a campaign: then REPORTS are what `privatize` made or its curator exported, and there is a table for
    each question.
    """
    from priorveil.tables import estimate_table

    if as_json and as_csv:
        raise click.UsageError("choose --json or --csv")
    inputs.require_distinct({"PLAN": plan, "REPORTS": reports}, {"--plot": plot, "--refused": refused_file})
    inputs.require_plan_first(plan, reports, "REPORTS")
    if inputs.is_campaign(plan):
        _refuse_with_campaign(by, margin, within, cohort, plot, **settings)
        counted = campaign_results.estimate_campaign(
            plan, reports, settings["method"], level, as_json, as_csv, refused_file
        )
        _print_repeats(counted)
        return outputs.refusal_status(counted.refused, counted.reports)
    settings |= {"by": by, "cohort": cohort, "refused_file": refused_file, "force": True}
    plans = inputs.read_plans(plan, cohort)
    estimates = outputs.run_on_table(estimate_table, reports, plans, words="counting", **settings)
    _check_reports(estimates, reports)
    groups = _names(within)
    if margin is not None:
        estimates = _margin(estimates, list(dict.fromkeys([*groups, *_names(margin)])))
    if groups:  # refuse them before anything is printed
        shares_within(estimates.everybody, groups)
    if plot is not None:
        from priorveil.studies import plots

        outputs.save_plot(plots.estimate_plot(estimates, by, level), plot)
    show = _print_json if as_json else _print_csv if as_csv else _print_tables
    show(estimates, by, level, groups)
    _print_repeats(estimates.tallies)
    return outputs.refusal_status(estimates.refused, estimates.everybody.reports)


def _names(text: str | None) -> list[str]:
    """The names of attributes in an option."""
    return [] if text is None else [name.strip() for name in text.split(",")]


def _margin(estimates: TableEstimate, attributes: list[str]) -> TableEstimate:
    """The estimates of some attributes, of everybody and of each group."""
    groups = {group: each.margin(attributes) for group, each in estimates.groups.items()}
    return replace(estimates, everybody=estimates.everybody.margin(attributes), groups=groups)


def _check_reports(estimates: TableEstimate, sources: Sequence[str]) -> None:
    """Refuse an estimate from nothing, and warn where many reports are not this plan's."""
    from priorveil.tables.refusals import FOREIGN

    source, reports = first_labels(sources), estimates.everybody.reports
    share = estimates.refused.counts.get(FOREIGN, 0) / max(1, reports + estimates.refused.total)
    many = share > _MANY_FOREIGN
    if not reports and not estimates.refused.total:
        raise InvalidInput("reports", source, "there are no reports: the table has no rows")
    if not reports:
        other = "; they were probably made by another plan" if many else ""
        raise InvalidInput("reports", source, f"there is no report of this plan to estimate from{other}")
    if many:
        click.echo(f"  {share:.0%} of the rows: they were probably made by another plan", err=True)


def _refuse_with_campaign(
    by: str | None,
    margin: str | None,
    within: str | None,
    cohort: str | None,
    plot: Path | None,
    column: str,
    assume_plan: bool,
    **_: Any,
) -> None:
    """Refuse options of plans, each with what a campaign has in its place."""
    if by is not None:
        raise click.UsageError(f"--by {by}: submissions to a campaign have no other columns; {_COHORTS}")
    if cohort is not None:
        raise click.UsageError(f"--cohort {cohort}: every submission names its cohort; {_COHORTS}")
    for name, value in (("--margin", margin), ("--within", within)):
        if value is not None:
            advice = "the results of a campaign have every margin and the shares within groups"
            raise click.UsageError(f"{name} {value}: {advice}: leave it out")
    if plot is not None:
        advice = (
            "the results of a campaign do not fit into one plot; the curator's dashboard draws each of them"
        )
        raise click.UsageError(f"--plot {plot}: {advice}, and --csv has the numbers")
    if column != "report":
        raise click.UsageError(f"--column {column}: submissions to a campaign are in the column report")
    if assume_plan:
        raise click.UsageError(
            "--assume-plan: the column form names the form of every submission: leave it out"
        )


def _print_repeats(tallies: Tallies | SubmissionTallies) -> None:
    """Print on standard error how many rows repeat a report, and whether repeats cannot be noticed."""
    rows = tallies.reports + tallies.repeated + tallies.refused.total
    if tallies.repeated:
        verb = "repeats" if tallies.repeated == 1 else "repeat"
        known = f"{plural(tallies.repeated, 'row')} {verb} a report that was already counted"
        click.echo(f"{plural(rows, 'row')}, {plural(tallies.reports, 'report')}: {known}", err=True)
    if tallies.without_id:
        without = (
            "no row" if tallies.without_id == rows else f"{rows - tallies.without_id:,} of {rows:,} rows"
        )
        verb = "have" if tallies.without_id < rows else "has"
        advice = "repeated reports cannot be noticed without one"
        click.echo(f"{without} {verb} an id (column report_id): {advice}", err=True)


def _print_json(estimates: TableEstimate, by: str | None, level: float, within: Sequence[str]) -> None:
    """Print an object with everybody, the groups and the refused rows."""
    record = {"level": level, **_record(estimates.everybody, level, within)}
    if by is not None:
        record["by"] = by
        record["groups"] = [
            {"group": group, **_record(each, level, within)} for group, each in estimates.groups.items()
        ]
    repeats = {"repeated": estimates.tallies.repeated, "without_id": estimates.tallies.without_id}
    screen.print_json({**record, **outputs.refused_record(estimates.refused), **repeats})


def _record(estimate: Estimate, level: float, within: Sequence[str]) -> dict[str, Any]:
    """An estimate as JSON; shares within groups are among its statistics."""
    record = estimate.record(level)
    if within:
        record["statistics"] += table_records(shares_within(estimate, within, level))
    return record


def _parts(estimates: TableEstimate, by: str | None) -> list[tuple[str, Estimate]]:
    """Return the estimate of each group and of everybody, each with its title."""
    parts = [(f"{group_title(by, group)}: ", each) for group, each in estimates.groups.items()]
    return [*parts, ("everybody: " if parts else "", estimates.everybody)]


def _print_csv(estimates: TableEstimate, by: str | None, level: float, within: Sequence[str]) -> None:
    """Print a line for each value, of each group if there are groups; warnings and notes go to standard error.

    A table of several attributes has a column for each of them too, and numbers of people have their shares.
    """
    console = screen.open_console(stderr=True)
    for title, estimate in _parts(estimates, by):
        outputs.print_headlines(console, headlines(estimate), title)
    everybody = estimates.everybody
    before = ["value"] if by is None else [by, "value"]
    attributes = everybody.attributes if everybody.histogram else ()
    if {*attributes} & {*before, *_NUMBERS, "share"}:  # `value` has their levels too
        attributes = ()
    shares = ["share"] if everybody.counts_people else []
    lines = csv.DictWriter(sys.stdout, [*before, *attributes, *_NUMBERS, *shares], lineterminator="\n")
    lines.writeheader()
    for group, estimate in [(None, everybody)] if by is None else estimates.groups.items():
        first = {} if by is None else {by: group}
        for label, row in zip(answer(estimate).labels, value_rows(estimate, level), strict=True):
            cells = dict(zip(attributes, label_parts(label), strict=bool(attributes)))
            if shares and estimate.people > 0:
                cells["share"] = row.numbers[0] / estimate.people
            lines.writerow(first | _csv_cells(label_text(label), row) | cells)
        for table in number_tables(estimate, level):
            lines.writerows(first | _csv_cells(table.name_of(row), row) for row in table.rows)
        if within:
            table = shares_within(estimate, within, level)
            for row in table.rows:
                levels = dict(zip(table.heads, row.label, strict=True)) if attributes else {}
                lines.writerow(first | _csv_cells(table.name_of(row), row) | levels)
    for note in everybody.notes:
        console.print(note)


def _csv_cells(name: str, row: StatisticRow) -> dict[str, Any]:
    """The cells of a statistic: its name and its numbers."""
    return {"value": name, **dict(zip(_NUMBERS, row.numbers, strict=True))}


def _print_tables(estimates: TableEstimate, by: str | None, level: float, within: Sequence[str]) -> None:
    """Print a table for each group and for everybody, and what the estimate assumes."""
    console = screen.open_console()
    for title, estimate in _parts(estimates, by):
        _print_estimate(console, estimate, level, title, within)
    for note in estimates.everybody.notes:
        console.print(note)


def _print_estimate(
    console: Console, estimate: Estimate, level: float, title: str, within: Sequence[str]
) -> None:
    shares = (shares_within(estimate, within, level),) if within else ()
    description = describe(estimate, level)
    description = replace(description, tables=description.tables + shares)
    outputs.print_estimate(console, description, estimate.reports, title)
    note = unbounded_shares_note(estimate, within, level) if within else None
    if note is not None:
        console.print(note)
