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
      an estimate for every town, each with its own interval, a test that
      answers and towns are independent, and the difference of each town from
      the others
  priorveil estimate plan.json reports.csv --margin age
      for a plan on several attributes: the shares of one of them
  priorveil estimate plan.json reports.csv --margin smokes --within age
      the table of both, and the shares of those who smoke within each age
  priorveil estimate plan.json reports.csv --method mle --json
      no share below zero; for a program to read
  priorveil estimate plan.json reports.parquet --plot estimate.svg
      also as a plot
  priorveil estimate plan.json reports.csv --weights w --strata region
      for the population, from a sample of it; also --clusters, --population
  priorveil estimate campaign.json reports.parquet more/
      submissions to a campaign, from privatize or exported by a curator: a
      table for each question

With more than 50 values, the table shows those that the prior expects most. --csv has a line for each statistic:
`attributes`, `cohort` and `group` (empty for everybody), `statistic` (people, mean, share within age and so on), a
column for each attribute with the answer that the line is about, `reports`, the numbers, and for people the `share`
of everybody. --json prints the whole result document.

The column `plan` names the plan of every report; reports of another plan are an error. If REPORTS have no such
column and you know that PLAN made all of them, use --assume-plan.

Missing reports, and reports that this plan cannot have made, are left out, counted and listed by row number. If they
are more than 5 % of the rows, a line says that results may be biased; exit status 1 if they are most of the rows. The
first row of data is row 1, also in JSON and in the file of --refused; row numbers continue from one file to the next.

A report that occurs several times, with the same id in the column `report_id`, is counted once, even across files. The
same id with another report is an error. Without ids, repeated reports cannot be detected.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from priorveil.cli import inputs, options, outputs, samples, screen
from priorveil.errors import InvalidInput, plural
from priorveil.priors.label_texts import first_labels

if TYPE_CHECKING:
    from rich.console import Console

    from priorveil.notes import Note
    from priorveil.results.document import Finding, GroupComparison, Result
    from priorveil.results.form_estimates import CohortForms
    from priorveil.tables import TableEstimates, Tallies
    from priorveil.tables.samples import SampleReader

_MANY_FOREIGN = 0.1  # a larger share of foreign reports is not an accident
# Notes that may say the same of several results.
_EXPLANATIONS = ("methodAssumes", "whyCheckFailed", "priorNotUsed")

_SECTIONS = {
    "Options that most estimates need": (
        "--by",
        "--simultaneous",
        "--margin",
        "--within",
        "--method",
        "--confidence",
    ),
    "A sample of a population": samples.NAMES,
    "What REPORTS hold": ("--column", "--cohort", "--assume-plan"),
    "The output": ("--json", "--csv", "--plot", "--refused"),
}


@click.command(
    cls=options.SectionedCommand, sections=_SECTIONS, epilog=options.epilog(__doc__, options.TABLES_HELP)
)
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.argument("reports", nargs=-1, required=True)
@click.option("--column", default="report", help="The column of the reports.")
@click.option(
    "--by",
    metavar="COLUMN",
    help="An estimate for each value of a public column. Beside it the LDP level is what holds, unless it is --cohort.",
)
@click.option(
    "--simultaneous",
    is_flag=True,
    help="With --by: intervals that hold all differences of groups together, and adjusted p-values.",
)
@click.option(
    "--margin",
    metavar="NAMES",
    help="For several attributes that are reported together: those to show, such as age,smokes, summed over the "
    "others.",
)
@click.option(
    "--within",
    metavar="NAMES",
    help="For several attributes: within each group of these, such as age, the shares of those of --margin, or of all "
    "others.",
)
@samples.sample_options
@options.COHORT
@click.option(
    "--method",
    type=click.Choice(["auto", "mmse", "unbiased", "mle"]),
    default="auto",
    help="mmse leans on the prior; unbiased and mle do not. auto: unbiased for a plan of an unbiased query "
    "such as distribution, mmse for others.",
)
@click.option("--confidence", type=options.SHARE, default=0.95, help="Confidence of the intervals.")
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
    simultaneous: bool,
    margin: str | None,
    within: str | None,
    cohort: str | None,
    confidence: float,
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
    from priorveil.results.findings import View, result_of
    from priorveil.tables import estimate_table

    if as_json and as_csv:
        raise click.UsageError("choose --json or --csv")
    given = samples.take_settings(settings)
    written = {"--plot": plot, "--refused": refused_file, "--scores": given.get("scores")}
    inputs.require_distinct({"PLAN": plan, "REPORTS": reports}, written)
    if simultaneous and by is None:
        raise click.UsageError("--simultaneous is for differences of groups: choose their column with --by")
    inputs.require_plan_first(plan, reports, "REPORTS")
    if given:
        others = {"by": by, "margin": margin, "within": within, "cohort": cohort, "plot": plot}
        samples.require_alone(given, {**others, "json": as_json, "csv": as_csv}, settings.pop("method"))
        options = {"refused_file": refused_file, "confidence": confidence, **settings}
        return _estimate_sample(plan, reports, given, options, as_json, as_csv)
    settings |= {"by": by, "cohort": cohort, "refused_file": refused_file, "force": True}
    forms = inputs.read_forms(plan, cohort)
    estimates: TableEstimates = outputs.run_on_table(
        estimate_table, reports, forms, words="counting", **settings
    )
    _check_reports(estimates, reports)
    view = View(confidence, _names(margin), _names(within), simultaneous)
    result = result_of(estimates, view)
    if plot is not None:
        from priorveil.studies import plot_files

        tables = view.tables(estimates)
        if len(estimates.parts) > 1 and len(tables) > 1:
            advice = "the results do not fit into one plot: choose one with --margin; --csv has all numbers"
            raise click.UsageError(f"--plot {plot}: {advice}")
        outputs.save_plot(plot_files.estimate_plot(tables[0], by, confidence), plot)
    _print_result(result, estimates.forms, estimates.tallies, as_json, as_csv, cohort)
    _print_repeats(estimates.tallies)
    return outputs.refusal_status(estimates.refused, estimates.tallies.reports)


def _estimate_sample(
    plan: Path,
    reports: tuple[str, ...],
    given: dict[str, Any],
    options: dict[str, Any],
    as_json: bool,
    as_csv: bool,
) -> int:
    """Estimate from a sample, or write its scores; return the exit status."""
    from priorveil.results.form_estimates import CohortForms

    reader, result = samples.read_sample(plan, reports, given, **options)
    if result is None:
        samples.print_scores_note(given["scores"], reader)
    else:
        _print_result(result, CohortForms.of(reader.plan), reader, as_json, as_csv)
    _print_repeats(reader)
    return outputs.refusal_status(reader.refused, reader.reports)


def _names(text: str | None) -> tuple[str, ...]:
    """The names of attributes in an option."""
    return () if text is None else tuple(name.strip() for name in text.split(","))


def _check_reports(estimates: TableEstimates, sources: Sequence[str]) -> None:
    """Refuse an estimate from nothing, and warn where many reports are not this plan's."""
    from priorveil.tables.refusals import FOREIGN

    source, reports = first_labels(sources), estimates.tallies.reports
    share = estimates.refused.counts.get(FOREIGN, 0) / max(1, reports + estimates.refused.total)
    many = share > _MANY_FOREIGN
    if not reports and not estimates.refused.total:
        raise InvalidInput("reports", source, "there are no reports: the table has no rows")
    if not reports:
        other = "; they were probably made by another plan" if many else ""
        raise InvalidInput("reports", source, f"there is no report of this plan to estimate from{other}")
    if many:
        click.echo(f"  {share:.0%} of the rows: they were probably made by another plan", err=True)


def _print_result(
    result: Result,
    forms: CohortForms,
    tallies: Tallies | SampleReader,
    as_json: bool,
    as_csv: bool,
    cohort: str | None = None,
) -> None:
    """Print a result in the way that was asked for; `cohort` is the column that chose the plans."""
    if as_json:
        _print_json(result, tallies)
    elif as_csv:
        _print_csv(result, cohort)
    else:
        _print_tables(result, forms, cohort)


def _print_repeats(tallies: Tallies | SampleReader) -> None:
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


def _print_json(result: Result, tallies: Tallies | SampleReader) -> None:
    """Print an object with the result document, and the rows that are not in it."""
    repeats = {"repeated": tallies.repeated, "without_id": tallies.without_id}
    document = json.loads(msgspec.json.encode(result))
    screen.print_json({"result": document, **outputs.refused_record(tallies.refused), **repeats})


def _print_csv(result: Result, cohort: str | None) -> None:
    """Print a line for each statistic; warnings and notes go to standard error."""
    from priorveil.results.lines import write_lines
    from priorveil.words.results import beside_texts, leaning_texts, result_headlines

    console = screen.open_console(stderr=True)
    for line in beside_texts(result, cohort):
        console.print(line)
    outputs.print_headlines(console, (*leaning_texts(result), *result_headlines(result.findings, result)))
    write_lines(result, sys.stdout)
    for note in dict.fromkeys(map(str, _notes(result.findings, result))):
        console.print(note)


def _print_tables(result: Result, forms: CohortForms, cohort: str | None) -> None:
    """Print the tables of each finding with its notes; an explanation that several share comes once, last."""
    from priorveil.words.results import beside_texts, leaning_texts, result_headlines

    console = screen.open_console()
    for line in beside_texts(result, cohort):
        console.print(line)
    outputs.print_headlines(console, leaning_texts(result))
    tables = [
        list(own) for _, own in groupby(result.findings, lambda found: (found.attributes, found.margin_of))
    ]
    notes = [list(_notes(found, result)) for found in tables]
    shared = Counter(str(note) for own in notes for note in own if note.code in _EXPLANATIONS)
    for findings, own in zip(tables, notes, strict=True):
        if len(tables) > 1 or forms.texts:
            console.print(f"\n{forms.title(findings[0].attributes)}", style="bold")
        if findings[0].margin_of is None:  # a margin has the warnings of its table
            outputs.print_headlines(console, result_headlines(findings, result))
        for found in findings:
            _print_finding(console, found, result)
        for compared in result.comparisons:
            if (compared.attributes, compared.margin_of) == (findings[0].attributes, findings[0].margin_of):
                _print_comparison(console, compared, result)
        for text in map(str, own):
            if shared[text] < 2:
                console.print(text)
    if repeated := [text for text, count in shared.items() if count > 1]:
        console.print("", *repeated, sep="\n")


def _notes(findings: Sequence[Finding], result: Result) -> Iterator[Note]:
    """The notes about everybody that come after the figures; those of a margin repeat those of its table."""
    from priorveil.words.results import BESIDE_COLUMNS

    tables = {found.attributes for found in result.findings}
    for found in findings:
        is_repeated = found.margin_of in tables - {found.attributes}
        if found.figures is not None and found.cohort == found.group == "" and not is_repeated:
            yield from (note for note in found.figures.notes if note.code not in BESIDE_COLUMNS)


def _print_finding(console: Console, found: Finding, result: Result) -> None:
    from priorveil.catalogue import say
    from priorveil.words.results import (
        finding_name,
        label_heads,
        selection,
        table_cells,
        withheld_text,
    )

    prefix = _prefix(finding_name(found, result))
    if found.figures is None:
        console.print(f"{prefix}{withheld_text(found, result)}")
        return
    console.print(f"{prefix}reports: {found.reports:,}", style="italic")
    for table in found.figures.tables:
        rows, which = selection(table)
        if which is not None:
            console.print(say("allInCsv", selection=which))
        heads, cells = table_cells(found, table, rows, result.confidence)
        labels = len(label_heads(found, table))
        screen.print_table(console, heads, cells, "l" * labels + "r" * (len(heads) - labels))


def _print_comparison(console: Console, compared: GroupComparison, result: Result) -> None:
    from priorveil.catalogue import say
    from priorveil.words.results import (
        comparison_notes,
        difference_cells,
        first_differences,
        independence_line,
    )

    if compared.independence is not None:
        console.print(independence_line(compared, compared.independence, result))
    for table in compared.tables:
        rows, which = first_differences(table)
        if which is not None:
            console.print(say("allInCsv", selection=which))
        heads, cells = difference_cells(compared, table, rows, result)
        labels = 1 + max(len(table.attributes), 1)
        screen.print_table(console, heads, cells, "l" * labels + "r" * (len(heads) - labels))
    console.print(*comparison_notes(compared, result), sep="\n")


def _prefix(name: str) -> str:
    return f"{name}: " if name else ""
