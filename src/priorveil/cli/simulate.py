"""`priorveil simulate`: the experiments of the paper, on one's own prior and people."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.cli import cells, outputs, secrets
from priorveil.cli import files as inputs
from priorveil.cli import screen as screens
from priorveil.files import atomic_write, is_not_regular_file

if TYPE_CHECKING:
    from priorveil.priors import Label, Prior
    from priorveil.queries import Query
    from priorveil.studies.simulate import Study

_QUERIES = ("histogram", "sum", "guess")

_EXAMPLES = """\b
Files
  PRIOR    What is known about one person's value. CSV: lines of label,probability
           (or numbers alone). JSON: {"label": probability, ..} or a list.
           With --counts the numbers are counts.
  --data   The people's true values, labels of PRIOR: one on a line and no header,
           or with --column a table (CSV with a header, also .csv.gz; Parquet).
           Without it people are drawn from the prior.
  --secret Pr(value | secret). CSV: first line the values, first column the secrets.

\b
Examples
  priorveil simulate prior.csv --epsilon 1 --epsilon 2 --epsilon 3
      a table: expected and simulated error of several mechanisms
  priorveil simulate prior.csv --data people.csv --column work --method best --method ldp-rr --out study
      on one's own people; study.csv, study.png and study.svg
"""


@click.command(epilog=_EXAMPLES)
@click.argument("prior", type=inputs.FILE)
@click.option(
    "--epsilon",
    "--eps",
    "epsilons",
    type=float,
    multiple=True,
    default=(0.5, 1.0, 2.0, 3.0, 4.0),
    show_default=True,
    help="A budget; more than once for several.",
)
@click.option(
    "--query",
    type=click.Choice(_QUERIES),
    default="histogram",
    show_default=True,
    help="What is asked; for a sum, labels are numbers.",
)
@click.option(
    "--method", "methods", multiple=True, help="A method to compare, named above; more than once for several."
)
@secrets.SECRET
@secrets.MIX
@click.option("--data", type=inputs.FILE, help="The people's true values.")
@click.option("--column", help="The data have a header, and this is the column of the values.")
@click.option(
    "--people",
    type=click.IntRange(min=1),
    default=5_000,
    show_default=True,
    help="How many to draw, without --data.",
)
@click.option(
    "--runs",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Simulated surveys of each; 0: theory only.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all that is drawn at random."
)
@inputs.options(inputs.COUNTS, inputs.SMOOTHING, inputs.NORMALISE)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write OUT.csv, OUT.png and OUT.svg.")
@click.option("--force", is_flag=True, help="Replace them if they exist.")
def simulate(
    prior: Path,
    epsilons: tuple[float, ...],
    query: str,
    methods: tuple[str, ...],
    secret: Path | None,
    mix: bool,
    data: Path | None,
    column: str | None,
    people: int,
    runs: int,
    seed: int,
    counts: bool,
    smoothing: float | None,
    normalise: bool,
    out: Path | None,
    force: bool,
) -> int:
    """Compare mechanisms on your own prior, people and budgets: a tidy table, and a picture.

    Methods: best, rr, arc, unary, hashing (certified); published-rr, published-unary, published-hashing (as
    printed, with the leakage they really have); ldp-best, ldp-rr, ldp-unary, ldp-hashing, context-free; none.
    """
    from priorveil.studies import simulate as simulation

    if column is not None and data is None:
        raise click.UsageError("--column is one of --data: give the people's values too")
    known = inputs.prior(prior, counts, smoothing, normalise)
    question = _query(query, known)
    compared = methods or ("best", "published-rr", "rr", "ldp-rr", "none")
    latent = None if secret is None else secrets.secret(secret, known, normalise)
    known = secrets.fitted(known, latent, mix, secret)
    values = None if data is None else _people(data, column, known)
    places = None if out is None else _places(out, force)
    outputs.keep_apart(
        {"PRIOR": prior, "--secret": secret, "--data": data},
        {} if places is None else {f"OUT{place.suffix}": place for place in places},
    )
    with screens.bar("simulating") as told:
        done, total = count(1), len(epsilons) * len(compared)
        study = simulation.simulate(
            known, epsilons, question, compared, secret=latent, values=values, people=people,
            runs=runs, seed=seed, progress=lambda row: told(next(done) / total, f"{row.method} {row.epsilon:g}"),
        )  # fmt: skip
    if places is None:
        click.echo(study.csv(), nl=False)
    else:
        _write(study, places, force)
    return 0


def _places(out: Path, force: bool) -> tuple[Path, Path, Path]:
    """Where the table and the pictures go; refused where something stands there."""
    outputs.need_plots()
    if not out.name:
        raise click.UsageError(f"--out: {out} is a folder: give a name in it")
    table, pixels, vector = (out.with_name(out.name + end) for end in (".csv", ".png", ".svg"))
    for place in (table, pixels, vector):
        if is_not_regular_file(place):
            raise click.UsageError(f"{place} is no file, and is not replaced by one: choose another name")
        if place.exists() and not force:
            raise click.UsageError(f"{place} exists: choose another name, or --force")
    out.parent.mkdir(parents=True, exist_ok=True)
    return table, pixels, vector


def _write(study: Study, places: tuple[Path, Path, Path], force: bool) -> None:
    """The table and a picture of it: errors above, levels below."""
    from priorveil.studies import plots

    with plots.house_style():
        figure, axes = plots.canvas(2, 1, width=4.6, height=2.6, sharex=True)
        plots.errors(study, axes[0, 0]).set_xlabel("")
        plots.levels(study, axes[1, 0])
        plots.legend(figure, axes[0, 0], columns=3)
    vector, pixels = plots.svg_and_png(figure)
    for place, content in zip(places, (study.csv().encode(), pixels, vector), strict=True):
        with atomic_write(place, force) as file:
            file.write(content)
    click.echo(f"wrote {places[0]}, .png and .svg")


def _query(name: str, prior: Prior) -> Query:
    from priorveil.queries import Guess, Histogram, Sum

    if name == "sum":
        try:
            return Sum([float(label) for label in prior.labels])
        except ValueError as error:
            raise click.UsageError(
                f"--query sum: the labels of the prior must be numbers ({error})"
            ) from error
    return Guess() if name == "guess" else Histogram()


def _people(path: Path, column: str | None, known: Prior) -> list[Label]:
    """The value of each person; one that the prior does not have is refused by its row, and never shown."""
    labels = {str(label): label for label in known.labels}
    words = cells.column(path, column)
    strange = next((row for row, word in enumerate(words, 1) if word not in labels), None)
    if strange is not None:
        headed = strange == 1 and column is None
        advice = "; if it is the name of a column, say so: --column NAME" if headed else ""
        raise click.ClickException(f"{path}: row {strange}: the prior has no such value{advice}")
    if not words:
        raise click.ClickException(f"{path}: nobody is in it")
    return [labels[word] for word in words]
