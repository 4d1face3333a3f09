r"""`priorveil simulate`: the experiments of the paper, on your own prior and people.

To try it in an empty folder
  printf 'yes,0.3\nno,0.7\n' > prior.csv
  priorveil simulate prior.csv --epsilon 1

Files
  PRIOR    What is known about one person's value. CSV: lines of
           label,probability (or numbers alone); with a header also
           level,level,..,probability for several attributes.
           JSON: {"label": probability, ..} or a list.
           With --counts the numbers are counts.
  --data   A table with the people's true values, labels of PRIOR, in --column
           (CSV with a header, also .csv.gz; Parquet); one --column for each
           attribute.
           Without it people are drawn from the prior.
  --secret Pr(value | secret). CSV: first line the values, first column the
           secrets.

Examples
  priorveil simulate prior.csv --epsilon 1 --epsilon 2 --epsilon 3
      a table: expected and simulated error of several mechanisms
  priorveil simulate prior.csv --plot study.png --csv > study.csv
      a plot, and the numbers for a program
  priorveil simulate prior.csv --data people.csv --column work --method best --method ldp-rr
      on your own people
  priorveil simulate --numbers 0:100:11 --query mean --method best --method ldp-best
      the mean of a number, as in priorveil design; without POINTS, the points
      that are best at the largest epsilon

The table has the typical (root mean square) error of a survey: of a share in points, of the average per person for
a sum, and the percentage of wrong guesses. The CSV has squared errors per person. An unbiased query such as
distribution is about the population: every survey then asks a new sample, from --data if given.
"""

from __future__ import annotations

import math
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

import priorveil as pv
from priorveil.cli import inputs, options, outputs, screen
from priorveil.cli.prior_sources import PriorSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from priorveil.priors import Label
    from priorveil.studies.simulate import Study

_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)

_FAIR_RIVALS = ("ldp-best", "ldp-same-lip", "ldp-same-ldp")
_FAIRNESS = (
    "LDP is a stronger promise at the same epsilon (ldp-best). ldp-same-lip moves the belief of somebody who knows the "
    "prior as little as best does, and ldp-same-ldp the belief of anybody else."
)


_SECTIONS = {
    "Options that most studies need": ("--epsilon", "--query", "--method", "--numbers", "--plot"),
    "Who is asked": ("--data", "--column", "--people"),
    "What is asked": options.QUERY_DETAILS,
    "What PRIOR holds": options.PRIOR_FORMAT,
    "What is protected": ("--secret", "--mix"),
    "The simulation": ("--runs", "--seed"),
}


@click.command(cls=options.SectionedCommand, sections=_SECTIONS, epilog=options.epilog(__doc__))
@click.argument("prior_file", metavar="[PRIOR]", type=options.INPUT_FILE, required=False)
@options.epsilons(_EPSILONS)
@options.query_options
@options.NUMBERS
@click.option("--method", "methods", multiple=True, help="A method to compare, named above; repeatable.")
@options.SECRET
@options.MIX
@click.option("--data", type=options.INPUT_FILE, help="A table with the people's true values.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="The column of --data that has them; repeat it for several attributes.",
)
@click.option(
    "--people",
    type=click.IntRange(min=1),
    default=5_000,
    help="Number of people to draw if there is no --data.",
)
@click.option("--runs", default=100, help="Simulated surveys for each method: 0 (theory only), or 2 or more.")
@options.SEED
@options.prior_format_options
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV even on a terminal.")
@options.PLOT
def simulate(
    prior_file: Path | None,
    epsilons: tuple[float, ...],
    query: options.QueryChoice,
    numbers: options.NumberRange | None,
    methods: tuple[str, ...],
    secret_file: Path | None,
    mix: bool,
    data: Path | None,
    columns: tuple[str, ...],
    prior_format: options.PriorFormat,
    as_csv: bool,
    plot: Path | None,
    **settings: int,
) -> None:
    """Compare mechanisms on your own prior, people and budgets: a table, CSV or a plot.

    Methods: best, rr, arc, unary, hashing (certified); published-rr, published-unary, published-hashing (as
    printed, with the leakage they really have); ldp-best, ldp-rr, ldp-unary, ldp-hashing, context-free (LDP at the same
    epsilon); ldp-same-lip, ldp-same-ldp (the best LDP plan with the LIP or LDP level of best); none.
    """
    from priorveil.studies import simulate as simulation

    if (data is None) != (not columns):
        raise click.UsageError("--data is a table, and --column its column of people's values: give both")
    if numbers is not None:
        source, largest = PriorSource(prior_file, prior_format), pv.Budget.of(max(epsilons))
        prior = source.read_numbers(numbers, query, largest, "lip")
    elif prior_file is not None:
        prior = prior_format.read(prior_file)
    else:
        raise click.UsageError(options.NO_PRIOR.format("simulate"))
    question = query.of(prior)
    secret, prior = inputs.read_secret(secret_file, prior, prior_format.normalise, mix)
    people: Sequence[Label] | None = None
    if data is not None:
        attributes = prior.names or ("value",)
        if len(columns) != len(attributes):
            raise click.UsageError(
                f"the prior is of {', '.join(attributes)}: give a --column for each, in order"
            )
        if numbers is not None:
            people = inputs.read_numbers(data, columns[0], *numbers[:2], "correct it, or change --numbers")
        else:
            people = inputs.match_labels(inputs.read_people(data, *columns), prior.domain, data, "the prior")
    names = methods or ("best", "published-rr", "rr", *_FAIR_RIVALS, "none")
    inputs.require_distinct({"PRIOR": prior_file, "--secret": secret_file, "--data": data}, {"--plot": plot})
    with screen.end_on_interrupt(), screen.progress_bar("simulating") as advance:
        study = simulation.simulate(
            prior, epsilons, question, names, secret=secret, values=people, progress=advance, **settings
        )
    if plot is not None:  # before anything is printed, since a pipe may close early
        from priorveil.studies import plot_files

        outputs.save_plot(plot_files.study_plot(study), plot)
    if as_csv or not sys.stdout.isatty():
        click.echo(study.csv(), nl=False)
    else:
        _print(study)


def _print(study: Study) -> None:
    """Print a table for each epsilon, and what its columns mean."""
    from priorveil.studies.compare import SAME_LDP

    console = screen.open_console()
    table = study.readable_table()
    least = min((row["expected"] for row in table if 0 < row["expected"] < math.inf), default=1.0)
    decimals = min(max(0, 2 - math.floor(math.log10(least))), 6)  # three digits of the least error

    def figure(error: float) -> str:
        return "-" if math.isnan(error) else "infinite" if math.isinf(error) else f"{error:,.{decimals}f}"

    heads = ("method", "expected", "simulated", "±", "LIP", "LDP")
    for epsilon, rows in groupby(table, key=lambda row: row["epsilon"]):
        console.print(f"epsilon {epsilon:g}", style="bold")
        lines = []
        for row in rows:
            errors = (row["expected"], row["measured"], (row["high"] - row["low"]) / 2)
            levels = ("-" if math.isnan(row[name]) else f"{row[name]:.3f}" for name in ("lip", "ldp"))
            lines.append((row["method"], *map(figure, errors), *levels))
        screen.print_table(console, heads, lines, "lrrrrr")
        console.print()
    console.print(f"expected: {study.unit}, in a survey of {study.rows[0].people:,} people")
    console.print(f"simulated: the same in {study.runs:,} surveys; ±: half the width of its 99 % interval")
    console.print("LIP, LDP: the levels that reports really have")
    if "best" in study.methods() and set(_FAIR_RIVALS) & set(study.methods()):
        console.print(_FAIRNESS)
    for method, note in dict.fromkeys((row.method, row.note) for row in study.rows if row.note):
        console.print(f"{method} does not apply: {note}", style="yellow")
    for method in study.methods():
        if method == SAME_LDP:
            continue
        above = [f"{row.epsilon:g}" for row in study.of(method) if row.lip > row.epsilon * (1 + 1e-6)]
        if above:
            console.print(f"{method} leaks more than its budget at epsilon {', '.join(above)}", style="red")
