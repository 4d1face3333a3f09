"""`priorveil design`: the best mechanism that a budget allows.

Files
  PRIOR    What is known about one person's value. CSV: lines of
           label,probability (or numbers alone); with a header also
           level,level,..,probability for several attributes.
           JSON: {"label": probability, ..} or a list.
           With --counts the numbers are counts, which must be public already;
           with --column it is data, a line for each person (CSV with a
           header, also .csv.gz; Parquet).
  --secret Pr(value | secret). CSV: first line the values, first column the
           secrets.

Queries
  histogram     how many people have each value; estimates lean on the prior
  distribution  the same from reports alone: the prior never biases it
  sum           the sum of a number that each value stands for (--amounts)
  mean          the mean of a number (--numbers)
  quantiles     the quantiles of a number, and cumulative shares (--numbers)
  linear        any weighted sums of the counts: the rows of --matrix
  cumulative    how many people have this value or an earlier one, in the
                order of PRIOR (of --column: sorted, or as in --values)
  ranges        how many people have a value in each range
  margins       how many people have each combination of levels of some
                attributes (--margin), in one plan for some thousand cells;
                for more, ask each person about one table, drawn at random:
                priorveil.designs.design_margins, in Python only
  guess         which value a person has

Examples
  priorveil design prior.csv --epsilon 1 -o plan.json
      a histogram; no report moves a belief by more than a factor e
  priorveil design prior.csv --lower 1 --upper 2 --query distribution -o plan.json
      an asymmetric budget
  priorveil design ages.csv --counts --epsilon 1 --query sum -o plan.json
      the sum of labels that are numbers; otherwise give --amounts 0,1,2
  priorveil design people.csv --column work --merge-rare other --epsilon 1 -o plan.json
      a prior from a column of data
  priorveil design people.csv --column work --values work.txt --prior-epsilon 0.5 --epsilon 1 -o plan.json
      the same with noise: differentially private, and the values are public
  priorveil design people.csv --column work --secret-column income --epsilon 1 -o plan.json
      report the work, protect the income behind it
  priorveil design people.csv --column age --column smokes --query margins --epsilon 1 -o plan.json
      two attributes at once, for the shares of each of them
  priorveil design prior.csv --epsilon 1 --radius 0.05 -o plan.json
      the prior is known up to 0.05 in total variation
  priorveil design --numbers 0:100 --query mean --epsilon 1 -o plan.json
      the mean of a number from 0 to 100; the grid is chosen by expected error
  priorveil design sample.csv --column age --values public --numbers 15:95:17 --query quantiles --epsilon 1 -o plan.json
      quantiles of an age, in 16 cells; a public sample is the prior

Numbers
  --numbers LOW:HIGH:POINTS puts this many points on the range, which is
  public. For mean and sum each number is rounded to one of the two points
  next to it at random, so that its mean is kept. For other queries the
  points are the edges of cells: 0:100:21 has 20 cells of width 5. PRIOR
  gives a probability for each point or cell, one on each line, or with
  --column a public sample. Without PRIOR all numbers of the range are
  assumed to be equally common.

LIP and the prior
  LIP limits how far a report moves the belief of somebody who believes
  PRIOR. For everybody else the LDP level holds, which every plan states
  too. If nothing is known, promise LDP: --notion ldp. If there is a public
  sample, use it as PRIOR.

A prior from data
  A plan is public, and it holds the values of --column and their shares. So
  more than 100 distinct values are refused, and values of fewer than 10
  people too, unless you declare them public, merge them or allow them.
  Shares are rounded to two significant digits. Rounding guarantees nothing;
  --prior-epsilon gives one. People without a value are left out.

Look at the result with: priorveil inspect plan.json. Ctrl-C keeps the best certified plan so far.
The first row of data is row 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import priorveil as pv
from priorveil.cli import files, options, screen
from priorveil.errors import plural
from priorveil.files import is_number
from priorveil.notions import CONES
from priorveil.priors.labels import first_labels
from priorveil.priors.number_labels import Outside

_NOTIONS = {name.lower(): notion for name, notion in CONES.items()}
_METHODS = ("auto", "closed", "arc", "columns", "unary", "subset", "hashing")
_GRID_QUERIES = ("mean", "sum")  # numbers are rounded for these, and put into cells for others
_POINTS, _EDGES = 11, 21  # of a grid and of cells, if --numbers does not say how many
_FULL_BAR = 1e-4  # the gap at which the progress bar is full, without --gap
_RULES = ("merge_rare", "allow_rare", "prior_epsilon")  # what a prior from data may publish


@click.command(epilog=options.epilog(__doc__))
@click.argument("prior", type=options.INPUT_FILE, required=False)
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
@click.option(
    "--outside",
    type=click.Choice(["refuse", "ends"]),
    default="refuse",
    help="With --numbers: refuse a number outside the range, or count it at the nearest end.",
)
@options.budget_options
@options.query_options
@options.SECRET
@click.option("--secret-column", help="With --column: protect this column of the data instead.")
@options.MIX
@click.option("--radius", type=float, help="Guarantee for every prior within this total variation distance.")
@click.option("--notion", type=click.Choice(list(_NOTIONS)), default="lip", help="The privacy notion.")
@click.option("--method", type=click.Choice(_METHODS), default="auto", help="The design method.")
@click.option("--time-limit", type=click.FloatRange(min=0), default=45.0, help="Seconds to search.")
@click.option(
    "--gap",
    type=click.FloatRange(0, 1),
    show_default="1e-10 up to 20 values, 1e-4 beyond",
    help="Stop at this proven gap to the best error, as a share of the gain over no reports.",
)
@click.option("-o", "--output", type=options.OutputFile(stdout=True), help="Save the plan here, or -.")
@click.option("--force", is_flag=True, help="Replace the plan if it exists.")
@options.PLOT
@options.JSON
def design(
    prior: Path | None,
    prior_format: files.PriorFormat,
    secret: Path | None,
    mix: bool,
    budget: pv.Budget | None,
    query: options.QueryChoice,
    radius: float | None,
    notion: str,
    method: str,
    time_limit: float,
    gap: float | None,
    output: Path | None,
    force: bool,
    plot: Path | None,
    as_json: bool,
    **data: Any,
) -> None:
    """Find the best mechanism for a PRIOR, and certify it.

    Prints what the plan guarantees and how near it is to the best possible one, and saves it for devices and
    curators with -o. It never returns a plan that breaks its budget.
    """
    if budget is None:
        raise click.UsageError("say how much may leak: --epsilon, or --lower and --upper")
    budget.require_positive()
    piped = output is not None and str(output) == "-"
    if piped and as_json:
        raise click.UsageError("--json and -o - would both be standard output: save the plan to a file")
    files.require_new(force, output)
    files.require_distinct({"PRIOR": prior, "--secret": secret}, {"-o": output, "--plot": plot})
    source = PriorSource(prior, prior_format, **data)
    if secret is not None and source.secret_column is not None:
        raise click.UsageError("--secret-column takes the secret from the data: leave --secret out")
    known, latent, notice = source.read(query, budget, notion)
    if latent is None:
        latent, known = files.read_secret(secret, known, prior_format.normalise, mix)
    asked = query.of(known)
    if notice is not None and not as_json:
        screen.open_console(stderr=piped).print(notice, style="yellow")
    best_plan = pv.design  # loads the solvers: while they load, ctrl-C ends the command
    search: dict[str, Any] = {"method": method, "time_limit": time_limit, "gap": gap}
    with screen.design_bar(asked.no_report(known), gap or _FULL_BAR, time_limit) as (progress, interrupted):
        search |= {"progress": progress, "should_stop": interrupted.is_set}
        priors = known if radius is None else pv.PriorSet.ball(known, radius)
        plan = best_plan(priors, budget, asked, latent, _NOTIONS[notion], **search)
    if output is not None and not piped:
        plan.save(output)
    if plot is not None:  # before anything is printed, since a pipe may close early
        files.draw_plan(plan, plot)
    if piped:
        click.echo(plan.to_json().encode(), nl=False)
    if as_json:
        saved = None if output is None else str(output)
        outcome = {"notice": notice, "interrupted": interrupted.is_set(), "saved": saved}
        screen.print_json({**screen.plan_record(plan), **outcome})
    else:
        _print(plan, interrupted.is_set(), output, piped)


@dataclass(frozen=True)
class PriorSource:
    """Where a prior comes from: a file of probabilities, people's own values, or a range of numbers."""

    path: Path | None
    form: files.PriorFormat
    columns: tuple[str, ...] = ()
    secret_column: str | None = None
    values: str | None = None
    merge_rare: str | None = None
    allow_rare: bool = False
    prior_epsilon: float | None = None
    numbers: options.NumberRange | None = None
    outside: Outside = "refuse"

    def read(
        self, query: options.QueryChoice, budget: pv.Budget, notion: str
    ) -> tuple[pv.Prior, pv.Secret | None, str | None]:
        """Return the prior, the secret of --secret-column, and what the plan assumes or publishes about people."""
        data_options = ("secret_column", "values", *_RULES)
        used_options = {name for name in data_options if getattr(self, name) not in (None, False)}
        if self.numbers is not None:
            if used_options - {"values"}:
                needed = "of these options it needs --values only"
                raise click.UsageError(f"--numbers takes a public sample: {needed}")
            prior = self.read_numbers(self.numbers, query, budget, notion)
            return prior, None, screen.NOTICES["no prior"] if self.path is None and notion != "ldp" else None
        if self.outside != "refuse" or query.kind in options.NUMBER_QUERIES:
            raise click.UsageError(screen.NOTICES["about numbers"])
        if self.path is None:
            raise click.UsageError("give PRIOR, what is known about the values; or --numbers LOW:HIGH")
        if self.columns:
            prior, secret = self._count_people(self.path)
            return prior, secret, self._publication(prior, secret)
        if used_options:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in data_options)
            raise click.UsageError(f"{names} are for priors from data: name the --column")
        return self.form.read(self.path), None, None

    def read_numbers(
        self, numbers: options.NumberRange, query: options.QueryChoice, budget: pv.Budget, notion: str
    ) -> pv.Prior:
        """Return the prior of a grid for means and sums, of cells for other queries."""
        import numpy as np

        from priorveil import designs

        low, high, points = numbers
        make, usual = (pv.Prior.grid, _POINTS) if query.kind in _GRID_QUERIES else (pv.Prior.cells, _EDGES)
        if self.path is not None and not self.columns:
            given = self.form.read(self.path)
            bounds = np.linspace(low, high, points or len(given) + (make == pv.Prior.cells))
            with files.reading(self.path):
                order = files.value_order(given.labels, make(bounds, lambda number: 1.0).labels)
            return make(bounds, given.probabilities[order], outside=self.outside)
        known: dict[str, Any] = {"sample": self._read_sample(low, high), "outside": self.outside}
        density = None if self.columns else lambda number: 1.0  # all numbers are equally common
        bounds = np.linspace(low, high, points or usual)
        if query.kind == "mean" and points is None:
            plan = designs.design_mean(low, high, budget, density, notion=_NOTIONS[notion], **known)
            bounds = np.array(plan.labels)
        return make(bounds, density, smoothing=self.form.smoothing, **known)

    def _read_sample(self, low: float, high: float) -> list[float] | None:
        """Return the numbers in a column of a public sample; None without a column."""
        if not self.columns:
            return None
        if self.form.impossible != "refuse":
            advice = "add --smoothing 1, or choose another range"
            raise click.UsageError(f"--leave-out is not for numbers: {advice}")
        if self.path is None or len(self.columns) > 1 or self.values != "public":
            advice = (
                "a plan publishes how common its numbers are: say --values public if they are public already"
            )
            needed = "--numbers with --column needs one column of a public sample"
            raise click.UsageError(f"{needed}, since {advice}")
        if self.outside == "ends":
            low, high = -math.inf, math.inf
        advice = "correct it, change --numbers, or add --outside ends"
        return files.read_numbers(self.path, self.columns[0], low, high, advice)

    def _count_people(self, path: Path) -> tuple[pv.Prior, pv.Secret | None]:
        """Return the prior of columns with a row for each person, and the secret of another column, if any."""
        columns, public = self.columns, self.values == "public"
        if self.form.counts or self.form.normalise:
            raise click.UsageError("--column counts people itself: leave --counts and --normalise out")
        if self.secret_column is not None and self.prior_epsilon is not None:
            raise click.UsageError("--prior-epsilon adds no noise to --secret-column: give a public --secret")
        if len(columns) > 1 and (self.values not in (None, "public") or self.merge_rare is not None):
            raise click.UsageError("--values (but public) and --merge-rare are for one --column")
        secret_columns = () if self.secret_column is None else (self.secret_column,)
        rows = files.read_people(path, *columns, *secret_columns)
        parts = [files.labels_of(column) for column in zip(*(cells for _, cells in rows), strict=True)]
        people = parts[0] if len(columns) == 1 else list(zip(*parts[: len(columns)], strict=True))
        domain = None
        if self.values is not None and not public:
            file = Path(self.values)
            text = file.read_text(encoding="utf-8-sig") if file.is_file() else self.values.replace(",", "\n")
            domain = files.labels_of([word.strip() for word in text.splitlines()])
            people = files.match_labels(rows, domain, path, "--values")
        rules: dict[str, Any] = {name: getattr(self, name) for name in _RULES}
        rules |= {"names": columns if len(columns) > 1 else None, "impossible": self.form.impossible}
        advice = screen.NOTICES["many attributes"] if len(columns) > 2 else ""
        advice = advice.format([columns[:2], columns[1:3]])
        if len(columns) == 1 and all(is_number(word) for _, (word, *_) in rows):
            advice = "If these are numbers, give their public range: --numbers LOW:HIGH"
        with files.reading(path, advice):
            prior = pv.Prior.from_values(people, domain, self.form.smoothing, public=public, **rules)
            if self.secret_column is None:
                return prior, None
            reported = [self.merge_rare if label not in prior.labels else label for label in people]
            allowed = {"public": public, "allow_rare": self.allow_rare}
            secret = pv.Secret.from_columns(parts[-1], reported, prior.labels, **allowed)
            return secret.nearest(prior), secret  # the rows are rounded, so the prior has to move a little

    def _publication(self, prior: pv.Prior, secret: pv.Secret | None) -> str:
        """Return what a plan with this prior will publish about the people."""
        shown = first_labels(prior.labels, prior.probabilities.tolist())
        values = f"{plural(len(prior), 'value')} of {', '.join(self.columns)!r}"
        text = f"The plan will publish {values} and their shares: {shown}."
        if secret is not None:
            text += f" It will also publish the shares for each of {plural(len(secret), 'secret')}."
        if self.merge_rare is not None and self.merge_rare in map(str, prior.labels):
            text += f" People with any other value report {self.merge_rare!r}: replace it in their data too."
        if self.prior_epsilon is None:
            return f"{text} Shares are rounded; this is no privacy guarantee. --prior-epsilon gives one."
        return (
            f"{text} They are differentially private at level {self.prior_epsilon:g}, for one person added or removed, "
            "if the values were public before. Every run of this command spends that level again."
        )


def _print(plan: pv.Plan, interrupted: bool, output: Path | None, piped: bool) -> None:
    console = screen.open_console(stderr=piped)
    screen.print_table(console, ("", ""), plan.summary())
    if interrupted:
        console.print("Stopped by ctrl-C: this is the best certified plan so far.", style="yellow")
    if output is None:
        console.print("Nothing is saved: add -o plan.json.", style="yellow")
    elif not piped:
        console.print(f"Saved as {output}. Look at it with: priorveil inspect {output}", style="green")
