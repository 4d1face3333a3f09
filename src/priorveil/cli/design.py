r"""`priorveil design`: the best mechanism that a budget allows.

To try it in an empty folder
  printf 'yes,0.3\nno,0.7\n' > prior.csv
  priorveil design prior.csv --epsilon 1 -o plan.json

Files
  PRIOR    What is known about one person's value. CSV: lines of
           label,probability (or numbers alone); with a header also
           level,level,..,probability for several attributes.
           JSON: {"label": probability, ..} or a list.
           With --counts the numbers are counts, which must already be public;
           with --column it is data, a line for each person (CSV with a
           header, also .csv.gz; Parquet).
  --secret Pr(value | secret). CSV: first line the values, first column the
           secrets.

Queries
  distribution  how many people have each value, from reports alone: a wrong
                prior does not bias it
  histogram     the same, leaning on the prior
  sum           the sum of a number that each value stands for (--amounts)
  mean          the mean of a number (--numbers)
  averages      the average of a number in each group of people (--grid, --by)
  quantiles     the quantiles of a number, and cumulative shares (--numbers)
  linear        any weighted sums of the counts: the rows of --matrix
  cumulative    how many people have this value or an earlier one, in the
                order of PRIOR (with --column: sorted, or as in --values)
  ranges        how many people have a value in each range
  margins       how many people have each combination of levels of some
                attributes (--margin), in one plan for a few thousand cells;
                for more, ask each person about one table, drawn at random:
                priorveil.designs.design_margins, in Python only
  guess         which value a person has
  Estimates of histogram, guess and, without --unbiased, of sum, linear,
  cumulative, ranges and margins lean on the prior: they are precise if it is
  right, and more reports do not correct a wrong one.

Examples
  priorveil design prior.csv --epsilon 1 -o plan.json
      how common each value is; no report moves a belief by more than a
      factor of e
  priorveil design prior.csv --lower 1 --upper 2 -o plan.json
      an asymmetric budget
  priorveil design ages.csv --counts --epsilon 1 --query sum -o plan.json
      the sum of labels that are numbers; otherwise give --amounts 0,1,2
  priorveil design people.csv --column work --merge-rare other --epsilon 1 -o plan.json
      a prior from a column of data
  priorveil design people.csv --column work --values work.txt --prior-epsilon 0.5 --epsilon 1 -o plan.json
      the same with noise: differentially private, and the values are public
  priorveil design people.csv --column work --secret-column income --epsilon 1 -o plan.json
      report the work, and protect the income behind it
  priorveil design people.csv --column age --column smokes --query margins --epsilon 1 -o plan.json
      two attributes at once, for the shares of each of them
  priorveil design people.csv --column age --column overtime --grid overtime=0:80:5 --query averages --eps 1 -o p.json
      average overtime by age; the number is rounded to one of five points
  priorveil design prior.csv --epsilon 1 --radius 0.05 -o plan.json
      the prior is known up to 0.05 in total variation
  priorveil design --numbers 0:100 --query mean --epsilon 1 -o plan.json
      the mean of a number from 0 to 100; the grid is chosen by expected error
  priorveil design sample.csv --column age --values public --numbers 15:95:17 --query quantiles --epsilon 1 -o plan.json
      quantiles of an age, in 16 cells; a public sample is the prior

Numbers
  --numbers LOW:HIGH:POINTS puts this many points on the range, which is
  public. For mean and sum, each number is rounded at random to one of the
  two points next to it, in a way that keeps the mean. For other queries the
  points are the edges of cells: 0:100:21 has 20 cells of width 5. PRIOR
  gives a probability for each point or cell, one on each line, or with
  --column a public sample. Without PRIOR, all numbers in the range are
  assumed to be equally common: LDP then holds in any case, LIP only if the
  assumption is right, and the plan says so. If it is known to be right, add
  --equally-common.
  --grid NAME=LOW:HIGH:POINTS does the same for one of several attributes:
  its numbers are rounded to points within the group of the other
  attributes, which keeps the mean of each group. A few points are enough,
  since rounding adds little to the noise.

LIP and the prior
  LIP limits how far a report moves a belief that starts from PRIOR. The LDP
  level, which every plan also states, holds for any prior. If nothing is
  known, promise LDP: --notion ldp. If there is a public sample, use it as
  PRIOR.

A prior from data
  A plan is public, and it holds the values of --column and their shares. So
  more than 100 distinct values are refused, and values of fewer than 10
  people too, unless you declare them public, merge them or allow them.
  Shares are rounded to two significant digits. Rounding guarantees nothing;
  for a guarantee, use --prior-epsilon. People without a value are left out.

Look at the result with: priorveil inspect plan.json. Ctrl-C keeps the best certified plan so far.
The first row of data is row 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import priorveil as pv
from priorveil.cli import inputs, options, outputs, screen
from priorveil.cli.prior_sources import PriorSource
from priorveil.words.plans import plan_facts

_METHODS = ("auto", "closed", "arc", "columns", "unary", "subset", "hashing")


_SECTIONS = {
    "Options that most designs need": ("--epsilon", "--query", "--numbers", "--output"),
    "What PRIOR holds": (
        *options.PRIOR_FORMAT,
        *("--column", "--values", "--merge-rare", "--allow-rare", "--prior-epsilon"),
    ),
    "Numbers": ("--grid", "--outside", "--equally-common"),
    "What is asked": options.QUERY_DETAILS,
    "What is guaranteed": (
        *("--notion", "--lower", "--upper", "--radius", "--secret", "--secret-column", "--mix"),
    ),
    "The search": ("--method", "--time-limit", "--gap"),
}


@click.command(cls=options.SectionedCommand, sections=_SECTIONS, epilog=options.epilog(__doc__))
@click.argument("prior_file", metavar="[PRIOR]", type=options.INPUT_FILE, required=False)
@options.prior_format_options
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="PRIOR has a row for each person: count the values of this column; repeat it for several attributes.",
)
@click.option(
    "--values",
    help="The values of --column to publish: yes,no or a file with one on each line; or public, for all.",
)
@click.option("--merge-rare", metavar="LABEL", help="Merge values of fewer than 10 people into this one.")
@click.option("--allow-rare", is_flag=True, help="Publish values of fewer than 10 people.")
@click.option(
    "--prior-epsilon",
    type=options.POSITIVE,
    help="Add noise to the prior: differentially private at this level.",
)
@options.NUMBERS
@options.GRID
@click.option(
    "--outside",
    type=click.Choice(["refuse", "ends"]),
    default="refuse",
    help="With --numbers or --grid: refuse a number outside the range, or count it at the nearest end.",
)
@click.option(
    "--equally-common",
    is_flag=True,
    help="With --numbers and no PRIOR: it is known that all numbers of the range are equally common.",
)
@options.budget_options
@options.query_options
@options.SECRET
@click.option("--secret-column", help="With --column: protect this column of the data instead.")
@options.MIX
@click.option("--radius", type=float, help="Guarantee for every prior within this total variation distance.")
@click.option(
    "--notion", type=click.Choice(list(options.DESIGN_NOTIONS)), default="lip", help="The privacy notion."
)
@click.option("--method", type=click.Choice(_METHODS), default="auto", help="The design method.")
@click.option("--time-limit", type=click.FloatRange(min=0), show_default="45", help="Seconds to search.")
@click.option(
    "--gap",
    type=click.FloatRange(0, 1),
    show_default="1e-10 up to 20 values; beyond, 0.005, or 1e-4 with --time-limit",
    help="Stop at this proven gap to the best error, as a share of the gain over no reports.",
)
@click.option("-o", "--output", type=options.OutputFile(stdout=True), help="Save the plan here, or -.")
@click.option("--force", is_flag=True, help="Replace the plan if it exists.")
@options.PEOPLE
@options.PLOT
@options.JSON
def design(
    prior_file: Path | None,
    prior_format: options.PriorFormat,
    secret_file: Path | None,
    mix: bool,
    budget: pv.Budget | None,
    query: options.QueryChoice,
    radius: float | None,
    notion: str,
    method: str,
    time_limit: float | None,
    gap: float | None,
    output: Path | None,
    force: bool,
    people: int,
    plot: Path | None,
    as_json: bool,
    **data: Any,
) -> None:
    """Find the best mechanism for a PRIOR, and certify it.

    Prints what the plan guarantees and how near it is to the best possible one, and saves it for devices and
    curators with -o. It never returns a plan that breaks its budget.
    """
    if budget is None:
        if prior_file is None and data["numbers"] is None:  # what is missing first
            raise click.UsageError(options.NO_PRIOR.format("design"))
        raise click.UsageError("say how much may leak: --epsilon, or --lower and --upper")
    budget.require_positive()
    piped = output is not None and str(output) == "-"
    if piped and as_json:
        raise click.UsageError("--json and -o - would both be standard output: save the plan to a file")
    inputs.require_new(force, output)
    inputs.require_distinct({"PRIOR": prior_file, "--secret": secret_file}, {"-o": output, "--plot": plot})
    source = PriorSource(prior_file, prior_format, **data)
    if secret_file is not None and source.secret_column is not None:
        raise click.UsageError("--secret-column takes the secret from the data: leave --secret out")
    prior, secret, notice = source.read(query, budget, notion)
    if secret is None:
        secret, prior = inputs.read_secret(secret_file, prior, prior_format.normalise, mix)
    question = query.of(prior)
    if notice is not None and not as_json:
        screen.open_console(stderr=piped).print(notice, style="yellow")
    best_plan = pv.design  # loads the solvers: while they load, ctrl-C ends the command
    search: dict[str, Any] = {"method": method, "time_limit": time_limit, "gap": gap}
    no_report = question.no_report(prior)
    seconds, target = (45.0, 0.005) if time_limit is None else (time_limit, 1e-4)  # when the bar is full
    with screen.design_bar(no_report, gap or target, seconds) as (progress, interrupted):
        search |= {"progress": progress, "should_stop": interrupted.is_set}
        priors = prior if radius is None else pv.PriorSet.ball(prior, radius)
        plan = best_plan(priors, budget, question, secret, options.DESIGN_NOTIONS[notion], **search)
    if output is not None and not piped:
        plan.save(output)
    if plot is not None:  # before anything is printed, since a pipe may close early
        outputs.draw_plan(plan, plot, people)
    if piped:
        click.echo(plan.to_json().encode(), nl=False)
    if as_json:
        saved = None if output is None else str(output)
        outcome = {"notice": notice, "interrupted": interrupted.is_set(), "saved": saved}
        screen.print_json({**screen.plan_record(plan, people), **outcome})
    else:
        _print(plan, people, interrupted.is_set(), output, piped)


def _print(plan: pv.Plan, people: int, interrupted: bool, output: Path | None, piped: bool) -> None:
    console = screen.open_console(stderr=piped)
    screen.print_table(console, ("", ""), plan_facts(plan, people))
    if interrupted:
        console.print("Stopped by ctrl-C: this is the best certified plan so far.", style="yellow")
    if output is None:
        console.print("Nothing is saved: add -o plan.json.", style="yellow")
    elif not piped:
        console.print(f"Saved as {output}. Look at it with: priorveil inspect {output}", style="green")
