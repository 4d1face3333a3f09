"""`priorveil design`: the best mechanism that a budget allows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli import cells, outputs, secrets
from priorveil.cli import files as inputs
from priorveil.cli import screen as screens
from priorveil.cli.promises import promises, record
from priorveil.cli.watching import Watch

if TYPE_CHECKING:
    from priorveil.certify import Certifiable
    from priorveil.notions import Known
    from priorveil.plans import Plan
    from priorveil.priors import Budget, Prior, Secret
    from priorveil.queries import Query

_QUERIES = ("histogram", "sum", "guess", "distribution")
_NOTIONS = ("lip", "ldp", "pufferfish", "di")
_FULL_BAR = 1e-4  # the gap at which a bar is full where none is asked for
_METHODS = ("auto", "closed", "arc", "columns", "unary", "hashing")

_EXAMPLES = """\b
Files
  PRIOR    What is known about one person's value. CSV: lines of label,probability
           (or numbers alone). JSON: {"label": probability, ..} or a list.
           With --counts the numbers are counts; with --column it is data, a line
           for each person (CSV with a header, also .csv.gz; Parquet).
  --secret Pr(value | secret). CSV: first line the values, first column the secrets.

\b
Queries
  histogram     how many people have each value; estimates lean on the prior
  distribution  the same, learnt from reports alone: the prior never biases it
  sum           the sum of a number that each value stands for (--values)
  guess         which value a person has

\b
Examples
  priorveil design prior.csv --epsilon 1 -o plan.json
      the best histogram of which no report moves a belief by more than a factor e
  priorveil design prior.csv --lower 1 --upper 2 --query distribution -o plan.json
      an asymmetric budget
  priorveil design ages.csv --counts --epsilon 1 --query sum -o plan.json
      the sum of labels that are numbers; else say --values 0,1,2 or name a column
  priorveil design people.csv --column work --epsilon 1 -o plan.json
      a prior from a column of data
  priorveil design people.csv --column work --secret-column income --epsilon 1 -o plan.json
      report the work, protect the income behind it
  priorveil design prior.csv --epsilon 1 --radius 0.05 -o plan.json
      the prior is known up to 0.05 in total variation

Look at the result with: priorveil inspect plan.json. Ctrl-C keeps the best certified plan so far.
The first row of data is row 1.
"""


@dataclass(frozen=True)
class _Known:
    """Where the prior comes from."""

    path: Path
    column: str | None
    drop: tuple[str, ...]
    counts: bool
    smoothing: float | None
    normalise: bool

    def prior(self) -> Prior:
        """The prior of the file, or of a column of it."""
        if self.column is None:
            if self.drop:
                raise click.UsageError("--drop leaves out people of --column: name the column")
            return inputs.prior(self.path, self.counts, self.smoothing, self.normalise)
        if self.counts or self.normalise:
            raise click.UsageError("--column counts people itself: leave --counts and --normalise out")
        (words,) = self.people()
        from priorveil.priors import Prior

        with cells.reading(self.path):
            return Prior.from_values(inputs.labels_of(words), smoothing=self.smoothing)

    def people(self, *others: str) -> tuple[list[str], ...]:
        """The column and others beside it, a row for each person that counts."""
        assert self.column is not None
        read = cells.columns(self.path, self.column, *others)
        absent = next((value for value in self.drop if value and value not in read[0]), None)
        if absent is not None:
            raise click.ClickException(
                f"{self.path}: --drop: nobody has {absent!r} in column {self.column!r}"
            )
        numbered = [(at, row) for at, row in enumerate(zip(*read, strict=True), 1) if row[0] not in self.drop]
        gap = next((at for at, row in numbered if "" in row), None)
        if gap is not None:
            advice = "fill it in, or leave such people out: --drop ''"
            raise click.ClickException(f"{self.path}: a value is missing in row {gap}: {advice}")
        if not numbered:
            raise click.ClickException(f"{self.path}: nobody is left in column {self.column!r}")
        return tuple([row[place] for _, row in numbered] for place in range(len(read)))


@click.command(epilog=_EXAMPLES)
@click.argument("prior", type=inputs.FILE)
@inputs.options(*inputs.BUDGET)
@click.option(
    "--query", type=click.Choice(_QUERIES), default="histogram", show_default=True, help="What is asked."
)
@click.option("--values", help="For a sum: numbers as 0,1,2 in the prior's order, or a column of PRIOR.")
@click.option("--column", help="PRIOR is data, and this its column; the prior is how often values occur.")
@click.option("--drop", multiple=True, metavar="VALUE", help="Leave people with this value out.")
@secrets.SECRET
@click.option("--secret-column", help="With --column: protect this column of the data instead.")
@secrets.MIX
@click.option("--radius", type=float, help="Hold for every prior this near (total variation).")
@click.option(
    "--notion", type=click.Choice(_NOTIONS), default="lip", show_default=True, help="What has to hold."
)
@click.option(
    "--method", type=click.Choice(_METHODS), default="auto", show_default=True, help="How to find it."
)
@inputs.options(inputs.COUNTS, inputs.SMOOTHING, inputs.NORMALISE)
@click.option(
    "--time-limit", type=click.FloatRange(min=0), default=45.0, show_default=True, help="Seconds to search."
)
@click.option(
    "--gap",
    type=click.FloatRange(0, 1),
    show_default="1e-10 up to 20 values, 1e-4 beyond",
    help="Share of the gain that may stay unproven.",
)
@click.option(
    "-o", "--output", type=outputs.WRITTEN, callback=outputs.streamable, help="Save the plan here, or -."
)
@click.option("--force", is_flag=True, help="Replace the plan if it exists.")
@inputs.options(outputs.PLOT, inputs.JSON)
def design(
    prior: Path,
    epsilon: float | None,
    lower: float | None,
    upper: float | None,
    query: str,
    values: str | None,
    column: str | None,
    drop: tuple[str, ...],
    secret: Path | None,
    secret_column: str | None,
    mix: bool,
    radius: float | None,
    notion: str,
    method: str,
    counts: bool,
    smoothing: float | None,
    normalise: bool,
    time_limit: float,
    gap: float | None,
    output: Path | None,
    force: bool,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Find the best mechanism for a PRIOR; certified.

    Prints what the plan promises and how near it is to the best there can be, and saves it for devices and
    curators with -o. A plan that breaks its budget is never made.
    """
    allowed = inputs.budget(epsilon, lower, upper, notion)
    if allowed is None:
        raise click.UsageError("say how much may leak: --epsilon, or --lower and --upper")
    _check_output(output, force, as_json)
    outputs.keep_apart({"PRIOR": prior, "--secret": secret}, {"-o": output, "--plot": plot})
    source = _Known(prior, column, drop, counts, smoothing, normalise)
    known = source.prior()
    asked = _query(query, values, source, known)
    latent = _secret(secret, secret_column, source, known)
    known = secrets.fitted(known, latent, mix, prior if secret is None else secret)
    plan, early = _designed(
        _around(known, radius), allowed, asked, latent, _notion(notion), method, time_limit, gap
    )
    if output is not None and str(output) == "-":
        click.echo(plan.to_json().encode(), nl=False)
    elif output is not None:
        plan.save(output)
    if plot is not None:
        outputs.draw_plan(plan, plot)
    if as_json:
        screens.print_json(
            {**record(plan), "interrupted": early, "saved": None if output is None else str(output)}
        )
    else:
        _show(plan, early, output, plot)
    return 0


def _check_output(output: Path | None, force: bool, as_json: bool) -> None:
    """Refuse a place for the plan that is taken."""
    if output is None:
        return
    if str(output) == "-" and as_json:
        raise click.UsageError("--json and -o - would both be standard output: save the plan to a file")
    if str(output) != "-" and output.is_file() and not force:
        raise click.UsageError(
            f"{output} exists: reports made by it need it; choose another name, or --force"
        )


def _query(name: str, values: str | None, source: _Known, known: Prior) -> Query:
    from priorveil.queries import Distribution, Guess, Histogram, Sum

    if name != "sum":
        if values is not None:
            raise click.UsageError(f"--values are for --query sum, not {name}")
        plain: dict[str, Query] = {
            "histogram": Histogram(),
            "guess": Guess(),
            "distribution": Distribution(),
        }
        return plain[name]
    return Sum(_scores(values, source, known))


def _scores(values: str | None, source: _Known, known: Prior) -> list[float]:
    """The number that each value stands for: given, in a column, or the label itself."""
    if values is None:
        if not all(inputs.is_number(label) for label in known.labels):
            raise click.UsageError("the labels are no numbers to sum: give --values 0,1,2 or a column")
        return [float(label) for label in known.labels]
    listed = values.split(",")
    if all(map(inputs.is_number, listed)):
        return [float(v) for v in listed]
    if source.column is not None:
        people = source.people(values)
    else:
        label, *_ = cells.heads(source.path)
        people = cells.columns(source.path, label, values)
    return _one_each(values, people[0], people[1], known)


def _one_each(name: str, words: list[str], numbers: list[str], known: Prior) -> list[float]:
    """The one number in column `name` that goes with each value."""
    found: dict[str, float] = {}
    for word, number in zip(words, numbers, strict=True):
        if not inputs.is_number(number):
            raise click.ClickException(f"column {name!r}: {number!r} is not a number")
        if found.setdefault(word, float(number)) != float(number):
            raise click.ClickException(
                f"column {name!r} needs one number for the value {word!r}, not several"
            )
    return [found[str(label)] for label in known.labels]


def _secret(path: Path | None, column: str | None, source: _Known, known: Prior) -> Secret | None:
    if column is None:
        return None if path is None else secrets.secret(path, known, source.normalise)
    if path is not None or source.column is None:
        raise click.UsageError("--secret-column goes with --column, and without --secret")
    from priorveil.priors import Secret

    values, behind = source.people(column)
    with cells.reading(source.path):
        return Secret.from_columns(inputs.labels_of(behind), inputs.labels_of(values), known.labels)


def _around(prior: Prior, radius: float | None) -> Known:
    from priorveil.priors import PriorSet

    return prior if radius is None else PriorSet.ball(prior, radius)


def _notion(name: str) -> Certifiable:
    from priorveil.notions import DI, LDP, LIP, Pufferfish

    notions: dict[str, Certifiable] = {"lip": LIP(), "ldp": LDP(), "pufferfish": Pufferfish(), "di": DI()}
    return notions[name]


def _designed(
    known: Known,
    budget: Budget,
    query: Query,
    secret: Secret | None,
    notion: Certifiable,
    method: Any,
    time_limit: float,
    gap: float | None,
) -> tuple[Plan, bool]:
    """The plan, and whether ctrl-C ended the search."""
    from priorveil.designs import design as best
    from priorveil.priors import Prior

    alone = query.no_report(known if isinstance(known, Prior) else known.centre)
    with Watch(alone, _FULL_BAR if gap is None else gap) as watch:
        plan = best(
            known,
            budget,
            query,
            secret,
            notion,
            method,
            gap=gap,
            time_limit=time_limit,
            progress=watch.told,
            should_stop=watch.should_stop,
        )
    return plan, watch.interrupted


def _show(plan: Plan, early: bool, output: Path | None, plot: Path | None) -> None:
    piped = output is not None and str(output) == "-"
    screen = screens.console(stderr=piped)
    screens.print_table(screen, ("", ""), [*promises(plan), *_errors(plan)])
    if early:
        screen.print("Stopped by ctrl-C: this is the best certified plan so far.", style="yellow")
    if plot is not None:
        screen.print(f"Drawn in {plot}.")
    if output is None:
        screen.print("Nothing is saved: add -o plan.json.", style="yellow")
    elif not piped:
        screen.print(f"Saved as {output}. Look at it with: priorveil inspect {output}", style="green")


def _errors(plan: Plan) -> list[tuple[str, str]]:
    return [
        ("expected error", f"{screens.shown_error(plan.expected_mse)} per person"),
        ("without reports", screens.shown_error(plan.no_report)),
        ("no plan is below", f"{screens.shown_error(plan.lower_bound)}, proven"),
        ("efficiency", f"at least {screens.shown_share(plan.efficiency)} of what can be had"),
    ]
