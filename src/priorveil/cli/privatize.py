r"""`priorveil privatize`: private columns of a table in, reports out.

To try it in an empty folder
  printf 'yes,0.3\nno,0.7\n' > prior.csv
  priorveil design prior.csv --epsilon 1 -o plan.json
  printf 'answer\nyes\nno\nno\n' > people.csv
  priorveil privatize plan.json people.csv --column answer -o reports.csv
  priorveil campaign new survey.toml
  priorveil campaign build survey.toml -o campaign.json
  printf 'home,overtime,paid,sleep\nnever,yes,all,7\nmostly,no,,6\n' > all.csv
  priorveil privatize campaign.json all.csv -o submissions.csv

Examples
  priorveil privatize plan.json people.csv --column answer -o reports.parquet
      a report for every row, with its own id; all other columns stay behind
  priorveil privatize plan.json people.csv --column age --column smokes -o reports.parquet
      a plan on two attributes, one of which may be a number (design --grid);
      without --column, the columns with the names of the attributes are used
  priorveil privatize plan.json day-*.parquet --column answer --keep town -o reports.parquet
      keep the public column town, to estimate by it later
  priorveil privatize plans/ people.csv --column answer --cohort country -o reports.parquet
      a plan for each country
  zcat people.csv.gz | priorveil privatize plan.json - --column answer -o - | gzip > reports.csv.gz
      through pipes
  priorveil privatize plan.json people.csv --column answer -o reports.csv --refused refused.csv --json
      every refused row in a file, and a summary for a program to read
  priorveil privatize plan.json people.csv --column answer --missing none --other other -o reports.csv
      an empty cell counts as none, an unknown value as other
  priorveil privatize campaign.json people.csv -o reports.csv
      a campaign: people.csv has a column for each question
  priorveil privatize campaign.json people.csv --cohort country -o reports.parquet
      a campaign with cohorts: the column country has their names

Campaigns. Each column has the name of its question. It holds the code of the chosen option, or a number. For "tick all
that apply" it holds the codes separated by spaces, as ODK writes them (in Parquet and Arrow also lists); an empty cell
means that nothing was ticked. Skip logic works as on the answer page: an answer to a skipped question is ignored, and
its cell may be empty. If questions are drawn, this is done once for every row. The reports have the columns of a
curator's export, and `priorveil estimate campaign.json` reads them.

Refused rows. A row whose value is missing or outside the plan's domain is refused: it gets no report, and is counted
and listed by its number and reason. A value with other capitals, spaces or punctuation is refused as another spelling,
even with --other. Anyone who knows the people learns which rows were refused; the list of refused rows is as private as
the table. Refused rows are not a random sample: if they are more than 5 % of the rows, a line says that results may be
biased. If they are more than half of the rows, or all, nothing is written, and the exit status is 1; --most-refused
sets another limit. The exit status is also 1 if there are no rows. The first row of data is row 1, also in JSON and in
the file of --refused; row numbers continue from one file to the next.

OUT is written completely or not at all, also if it is standard output. Every run makes new reports and spends the
budget again: run it only once, and keep the reports.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from priorveil.cli import inputs, options, outputs, screen
from priorveil.errors import plural

_SUBSTITUTED = {"missing": "empty", "other": "other"}  # cells

ONCE = "keep these reports: privatizing the same people again spends their budget again"

_SECTIONS = {
    "Options that most runs need": ("--column", "--output"),
    "What goes with the reports": ("--keep", "--cohort", "--no-ids"),
    "Empty cells and other values": ("--missing", "--other"),
    "Refused rows": ("--refused", "--most-refused"),
    "The output": ("--format", "--force", "--json"),
}


@click.command(
    cls=options.SectionedCommand, sections=_SECTIONS, epilog=options.epilog(__doc__, options.TABLES_HELP)
)
@click.argument("plan", type=click.Path(exists=True, path_type=Path))
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--column",
    multiple=True,
    help="The private column; repeat it for several attributes.  [default: the names of the plan's attributes, "
    "or of the campaign's questions]",
)
@click.option(
    "-o", "--output", "out", required=True, type=options.OutputFile(stdout=True), help="A new file, or -."
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="A public column to keep; repeatable.")
@options.COHORT
@click.option(
    "--missing", metavar="LABEL", help="Count an empty cell as this label instead of refusing the row."
)
@click.option("--other", metavar="LABEL", help="Count a value that is not among the labels as this label.")
@click.option(
    "--format",
    type=click.Choice(["parquet", "csv", "arrow"]),
    help="Output format; default: from the file extension of OUT.",
)
@click.option("--no-ids", is_flag=True, help="Leave the report ids out.")
@options.REFUSED
@click.option(
    "--most-refused",
    type=click.FloatRange(0, 1),
    default=0.5,
    help="Write nothing if a larger share of the rows is refused; 0: if any is.",
)
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON (on stderr if OUT is -).")
def privatize(
    plan: Path,
    data: tuple[str, ...],
    column: tuple[str, ...],
    out: Path,
    cohort: str | None,
    no_ids: bool,
    refused_file: Path | None,
    force: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Turn private columns of DATA into reports with a PLAN or a campaign."""
    from priorveil.tables import privatize_table
    from priorveil.tables.forms import table_forms
    from priorveil.tables.substitutes import Substitutes

    piped = str(out) == "-"
    inputs.require_new(force, out, refused_file)
    inputs.require_distinct({"PLAN": plan, "DATA": data}, {"-o": out, "--refused": refused_file})
    inputs.require_plan_first(plan, data, "DATA")
    plans = inputs.read_forms(plan, cohort)
    target = sys.stdout.buffer if piped else out
    settings |= {"refused_file": refused_file, "force": force, "replace": force}
    settings |= {"words": "privatizing", "cohort": cohort, "ids": not no_ids}
    outcome = outputs.run_on_table(privatize_table, data, plans, column, target, **settings)
    private = table_forms(plans).private(column, Substitutes())
    for line in private.allowed_values(outcome.refused.counts):
        click.echo(f"  {line}", err=True)
    for kind, label in (("missing", settings["missing"]), ("other", settings["other"])):
        if label is not None and not as_json:
            cells = plural(outcome.substituted.get(kind, 0), f"{_SUBSTITUTED[kind]} cell")
            click.echo(f"counted as {label}: {cells}", err=True)
    if as_json:
        record = {"reports": outcome.reports, "substituted": outcome.substituted}
        screen.print_json({**record, **outputs.refused_record(outcome.refused)}, err=piped)
    if not outcome.reports:
        click.echo("; ".join([outcome.summary, *map(screen.option_advice, outcome.hints)]), err=True)
        return 1
    if not as_json:
        place = "standard output" if piped else str(out)
        click.echo(f"{plural(outcome.reports, 'report')} written to {place}", err=True)
        click.echo(ONCE, err=True)
    outputs.refusal_status(outcome.refused, outcome.reports)
    return 0
