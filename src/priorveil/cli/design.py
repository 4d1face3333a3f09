"""`priorveil design`: the best mechanism that a budget allows.

Files
  PRIOR    What is known about one person's value. CSV: lines of label,probability
           (or numbers alone). JSON: {"label": probability, ..} or a list.
           With --counts the numbers are counts, which must be public already;
           with --column it is data, a line for each person (CSV with a header, also
           .csv.gz; Parquet).
  --secret Pr(value | secret). CSV: first line the values, first column the secrets.

Queries
  histogram     how many people have each value; estimates lean on the prior
  distribution  the same, learned from reports alone: the prior never biases it
  sum           the sum of a number that each value stands for (--values)
  guess         which value a person has

Examples
  priorveil design prior.csv --epsilon 1 -o plan.json
      a histogram; no report moves a belief by more than a factor e
  priorveil design prior.csv --lower 1 --upper 2 --query distribution -o plan.json
      an asymmetric budget
  priorveil design ages.csv --counts --epsilon 1 --query sum -o plan.json
      the sum of labels that are numbers; otherwise give --values 0,1,2 or a column
  priorveil design people.csv --column work --merge-rare other --epsilon 1 -o plan.json
      a prior from a column of data
  priorveil design people.csv --column work --values work.txt --prior-epsilon 0.5 --epsilon 1 -o plan.json
      the same with noise: differentially private, and the list of values is public
  priorveil design people.csv --column work --secret-column income --epsilon 1 -o plan.json
      report the work, protect the income behind it
  priorveil design prior.csv --epsilon 1 --radius 0.05 -o plan.json
      the prior is known up to 0.05 in total variation

A prior from data
  A plan is public, and it holds the values of --column and their shares. So more
  than 100 distinct values are refused, and values of fewer than 10 people too,
  unless you declare them public, merge them or allow them. Shares are rounded to
  two significant digits. This is no guarantee; --prior-epsilon gives one.

Look at the result with: priorveil inspect plan.json. Ctrl-C keeps the best certified plan so far.
The first row of data is row 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli import files, options, screen
from priorveil.errors import plural
from priorveil.files import is_number
from priorveil.notions import CONES
from priorveil.queries import QUERIES

if TYPE_CHECKING:
    from priorveil.plans import Plan
    from priorveil.priors import Budget, Label, Prior, Secret
    from priorveil.queries import Query

# No option gives a matrix.
QUERY_CLASSES: dict[str, Callable[..., Query]] = {
    name.lower(): query for name, query in QUERIES.items() if name != "Linear"
}
_NOTIONS = {name.lower(): notion for name, notion in CONES.items()}
_METHODS = ("auto", "closed", "arc", "columns", "unary", "subset", "hashing")
_FULL_BAR = 1e-4  # the gap at which the progress bar is full, without --gap


@dataclass(frozen=True)
class _PriorSource:
    """Where the prior comes from: a file with numbers, or a column of data and the rules for publishing it."""

    path: Path
    column: str | None
    drop: tuple[str, ...]
    format: files.PriorFormat
    values: str | None
    for_sum: bool
    merge_rare: str | None
    allow_rare: bool
    prior_epsilon: float | None

    def prior(self) -> Prior:
        """Read the prior."""
        if self.column is None:
            if self.drop:
                raise click.UsageError("--drop leaves out people of --column: name the column")
            if self.merge_rare is not None or self.allow_rare or self.prior_epsilon is not None:
                rules = "--merge-rare, --allow-rare and --prior-epsilon"
                raise click.UsageError(f"{rules} are for priors from data: name the --column")
            return self.format.read(self.path)
        if self.format.counts or self.format.normalise:
            raise click.UsageError("--column counts people itself: leave --counts and --normalise out")
        (words,) = self.people()
        from priorveil.priors import Prior

        listed, merged = self.listed or [], [] if self.merge_rare is None else [self.merge_rare]
        labels = files.labels_of([*listed, *merged, *words])  # all of them are numbers, or none is
        with files.reading(self.path):
            return Prior.from_values(
                labels[len(listed) + len(merged) :],
                labels[: len(listed)] or None,
                self.format.smoothing,
                public=self.public,
                merge_rare=labels[len(listed)] if merged else None,
                allow_rare=self.allow_rare,
                prior_epsilon=self.prior_epsilon,
            )

    @property
    def public(self) -> bool:
        """Whether the values of the column are declared public."""
        return self.column is not None and self.values == "public"

    @cached_property
    def listed(self) -> list[str] | None:
        """The allowed values, from a list or a file; None if --values has none."""
        if self.column is None or self.values is None or self.public:
            return None
        if Path(self.values).is_file():
            return files.read_column(Path(self.values), None)
        return None if self.for_sum else [word.strip() for word in self.values.split(",")]

    def people(self, *others: str) -> tuple[list[str], ...]:
        """Read the column, and others with it: a row for each person that is not dropped."""
        assert self.column is not None
        columns = files.read_columns(self.path, self.column, *others)
        unused = next((value for value in self.drop if value and value not in columns[0]), None)
        if unused is not None:
            raise click.ClickException(f"{self.path}: --drop: nobody in {self.column!r} has {unused!r}")
        rows = [(at, row) for at, row in enumerate(zip(*columns, strict=True), 1) if row[0] not in self.drop]
        gap = next((at for at, row in rows if "" in row), None)
        if gap is not None:
            advice = "fill it in, or leave such people out: --drop ''"
            raise click.ClickException(f"{self.path}: a value is missing in row {gap}: {advice}")
        if not rows:
            raise click.ClickException(f"{self.path}: nobody is left in column {self.column!r}")
        allowed = {row[0] for _, row in rows} if self.listed is None else set(self.listed)
        other = next((at for at, row in rows if row[0] not in allowed), None)
        if other is not None:
            advice = "add it there, or leave such people out with --drop"
            raise click.ClickException(f"{self.path}: row {other}: --values has no such value: {advice}")
        return tuple([row[place] for _, row in rows] for place in range(len(columns)))

    def people_with_labels(self, prior: Prior, other: str) -> tuple[list[Label], list[str]]:
        """Read the label of each person in the prior, where rare values are merged, and another column."""
        words, others = self.people(other)
        labels = {str(label): label for label in prior.labels}
        return [labels[word if word in labels else str(self.merge_rare)] for word in words], others

    def publication(self, prior: Prior, secret: Secret | None) -> str | None:
        """Return what a plan with this prior will publish about the people; None if it is not from data."""
        if self.column is None:
            return None
        pairs = list(zip(prior.labels, prior.probabilities, strict=True))
        shown = ", ".join(f"{label} {share:.2g}" for label, share in pairs[: files.SHOWN_VALUES])
        if len(pairs) > files.SHOWN_VALUES:
            shown += f" and {len(pairs) - files.SHOWN_VALUES:,} more"
        text = f"The plan will publish {plural(len(prior), 'value')} of {self.column!r} and their shares: {shown}."
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


def _source_options(command: options.Command) -> options.Command:
    """Add the options that say where the prior comes from; the command gets them as one `source`."""

    @click.argument("prior", type=options.INPUT_FILE)
    @click.option(
        "--column",
        help="PRIOR is a table with a row for each person; the prior is the share of each value in this column.",
    )
    @click.option(
        "--values",
        help="With --column: the values that may be published, as yes,no or a file with one on each line; or the word "
        "public, if all values found there and their shares may be. "
        "For a sum: numbers as 0,1,2 in the prior's order, or a column of PRIOR.",
    )
    @click.option("--drop", multiple=True, metavar="VALUE", help="Leave people with this value out.")
    @click.option("--merge-rare", metavar="LABEL", help="Merge values of fewer than 10 people into this one.")
    @click.option("--allow-rare", is_flag=True, help="Publish values of fewer than 10 people.")
    @click.option(
        "--prior-epsilon",
        type=click.FloatRange(min=0, min_open=True),
        help="Add noise to the counts of --column, which makes the prior differentially private at this level "
        "(one person added or removed). Needs --values.",
    )
    @options.prior_format_options
    @functools.wraps(command)
    def wrapper(
        prior: Path,
        query: str,
        column: str | None,
        drop: tuple[str, ...],
        prior_format: files.PriorFormat,
        **rest: Any,
    ) -> Any:
        names = ("values", "merge_rare", "allow_rare", "prior_epsilon")
        rules = {name: rest.pop(name) for name in names}
        source = _PriorSource(prior, column, drop, prior_format, for_sum=query == "sum", **rules)
        return command(source=source, query=query, **rest)

    return wrapper


@click.command(epilog=options.epilog(__doc__))
@_source_options
@options.budget_options
@click.option("--query", type=click.Choice(list(QUERY_CLASSES)), default="histogram", help="The query.")
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
    help="Stop when the error is proven to be this near to the best possible, as a share of its gain over no reports.",
)
@click.option("-o", "--output", type=options.OutputFile(stdout=True), help="Save the plan here, or -.")
@click.option("--force", is_flag=True, help="Replace the plan if it exists.")
@options.PLOT
@options.JSON
def design(
    source: _PriorSource,
    budget: Budget | None,
    query: str,
    secret: Path | None,
    secret_column: str | None,
    mix: bool,
    radius: float | None,
    notion: str,
    output: Path | None,
    force: bool,
    plot: Path | None,
    as_json: bool,
    **search: Any,
) -> None:
    """Find the best mechanism for a PRIOR; certified.

    Prints what the plan guarantees and how near it is to the best possible one, and saves it for devices and
    curators with -o. A plan that breaks its budget is never made.
    """
    if budget is None:
        raise click.UsageError("say how much may leak: --epsilon, or --lower and --upper")
    budget.require_positive()
    piped = output is not None and str(output) == "-"
    if piped and as_json:
        raise click.UsageError("--json and -o - would both be standard output: save the plan to a file")
    files.require_new(force, output)
    files.require_distinct({"PRIOR": source.path, "--secret": secret}, {"-o": output, "--plot": plot})
    known = source.prior()
    question = _query(query, source, known)
    latent, known = _secret(secret, secret_column, source, known)
    known = files.fit_prior(known, latent, mix, secret or source.path)
    published = source.publication(known, latent)
    if published is not None and not as_json:
        screen.open_console(stderr=piped).print(published, style="yellow")
    plan, interrupted = _run(known, radius, budget, question, latent, notion, **search)
    if piped:
        click.echo(plan.to_json().encode(), nl=False)
    elif output is not None:
        plan.save(output)
    if plot is not None:
        files.draw_plan(plan, plot)
    if as_json:
        saved = None if output is None else str(output)
        outcome = {"published": published, "interrupted": interrupted, "saved": saved}
        screen.print_json({**screen.plan_record(plan), **outcome})
    else:
        _print(plan, interrupted, output, plot, piped)


def _query(name: str, source: _PriorSource, prior: Prior) -> Query:
    if name == "sum":
        return QUERY_CLASSES[name](_amounts(source, prior))
    if source.values is not None and source.column is None:
        raise click.UsageError(f"--values are for --column or --query sum, not for {name}")
    return QUERY_CLASSES[name]()


def _amounts(source: _PriorSource, prior: Prior) -> list[float]:
    """Return the number that each value stands for: given, in a column, or the label itself."""
    values = source.values
    if values is None or source.public or source.listed is not None:
        return files.label_numbers(prior, "give --values 0,1,2 or a column")
    listed = values.split(",")
    if all(map(is_number, listed)):
        return [float(number) for number in listed]
    words: Sequence[Label]
    if source.column is not None:
        words, numbers = source.people_with_labels(prior, values)
    else:
        words, numbers = files.read_columns(source.path, files.first_column_name(source.path), values)
    amounts: dict[str, float] = {}
    for word, number in zip(map(str, words), numbers, strict=True):
        if not is_number(number):
            raise click.ClickException(f"column {values!r}: an entry is not a number")
        if amounts.setdefault(word, float(number)) != float(number):
            raise click.ClickException(f"column {values!r} needs one number for {word!r}, not several")
    return [amounts[str(label)] for label in prior.labels]


def _secret(
    path: Path | None, column: str | None, source: _PriorSource, prior: Prior
) -> tuple[Secret | None, Prior]:
    """Return the secret and the prior; one from data is moved to the nearest mixture of the secret's rounded rows."""
    if column is None:
        return files.read_secret(path, prior, source.format.normalise), prior
    if path is not None or source.column is None:
        raise click.UsageError("--secret-column goes with --column, and without --secret")
    if source.prior_epsilon is not None:
        raise click.UsageError("--prior-epsilon adds no noise to --secret-column: give a public --secret")
    from priorveil.priors import Secret

    values, secrets = source.people_with_labels(prior, column)
    rules = {"public": source.public, "allow_rare": source.allow_rare}
    with files.reading(source.path):
        secret = Secret.from_columns(files.labels_of(secrets), values, prior.labels, **rules)
        return secret, secret.nearest(prior)


def _run(
    prior: Prior,
    radius: float | None,
    budget: Budget,
    query: Query,
    secret: Secret | None,
    notion: str,
    **search: Any,
) -> tuple[Plan, bool]:
    """Design the plan, with a progress bar; return it, and whether ctrl-C ended the search."""
    from priorveil import designs
    from priorveil.priors import PriorSet

    known = prior if radius is None else PriorSet.ball(prior, radius)
    with screen.DesignProgress(query.no_report(prior), search["gap"] or _FULL_BAR) as progress:
        plan = designs.design(
            known,
            budget,
            query,
            secret,
            _NOTIONS[notion],
            progress=progress.update,
            should_stop=progress.should_stop,
            **search,
        )
    return plan, progress.interrupted


def _print(plan: Plan, interrupted: bool, output: Path | None, plot: Path | None, piped: bool) -> None:
    console = screen.open_console(stderr=piped)
    errors = [
        ("precision", str(plan.precision)),
        ("expected error", f"{screen.error_figure(plan.expected_mse)}, {plan.query.error_unit}"),
        ("without reports", screen.error_figure(plan.no_report)),
        ("lower bound", f"{screen.error_figure(plan.lower_bound)}, proven: no plan is better"),
        ("efficiency", f"at least {screen.share_text(plan.efficiency)} of the possible gain"),
    ]
    screen.print_table(console, ("", ""), [*screen.plan_rows(plan), *errors])
    if interrupted:
        console.print("Stopped by ctrl-C: this is the best certified plan so far.", style="yellow")
    if plot is not None:
        console.print(f"Drawn in {plot}.")
    if output is None:
        console.print("Nothing is saved: add -o plan.json.", style="yellow")
    elif not piped:
        console.print(f"Saved as {output}. Look at it with: priorveil inspect {output}", style="green")
