"""`priorveil simulate`: the experiments of the paper, on your own prior and people.

Files
  PRIOR    What is known about one person's value. CSV: lines of label,probability
           (or numbers alone). JSON: {"label": probability, ..} or a list.
           With --counts the numbers are counts.
  --data   The people's true values, labels of PRIOR: one on a line and no header,
           or with --column a table (CSV with a header, also .csv.gz; Parquet).
           Without it people are drawn from the prior.
  --secret Pr(value | secret). CSV: first line the values, first column the secrets.

Examples
  priorveil simulate prior.csv --epsilon 1 --epsilon 2 --epsilon 3
      a table: expected and simulated error of several mechanisms
  priorveil simulate prior.csv --data people.csv --column work --method best --method ldp-rr --out study
      on your own people; study.csv, study.png and study.svg
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.cli import files, options, screen
from priorveil.files import atomic_write

if TYPE_CHECKING:
    from priorveil.studies.simulate import Study


@click.command(epilog=options.epilog(__doc__))
@click.argument("prior", type=options.INPUT_FILE)
@click.option(
    "--epsilon",
    "--eps",
    "epsilons",
    type=float,
    multiple=True,
    default=(0.5, 1.0, 2.0, 3.0, 4.0),
    help="A budget; repeatable.",
)
@click.option(
    "--query",
    type=click.Choice(["histogram", "sum", "guess"]),
    default="histogram",
    help="The query; for a sum, labels are numbers.",
)
@click.option("--method", "methods", multiple=True, help="A method to compare, named above; repeatable.")
@options.SECRET
@options.MIX
@click.option("--data", type=options.INPUT_FILE, help="The people's true values.")
@click.option("--column", help="The data have a header, and this is the column of the values.")
@click.option("--people", type=click.IntRange(min=1), default=5_000, help="How many to draw, without --data.")
@click.option(
    "--runs", type=click.IntRange(min=0), default=100, help="Simulated surveys of each; 0: theory only."
)
@options.SEED
@options.prior_format_options
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
    prior_format: files.PriorFormat,
    out: Path | None,
    force: bool,
    **settings: int,
) -> None:
    """Compare mechanisms on your own prior, people and budgets: a tidy table, and a picture.

    Methods: best, rr, arc, unary, hashing (certified); published-rr, published-unary, published-hashing (as
    printed, with the leakage they really have); ldp-best, ldp-rr, ldp-unary, ldp-hashing, context-free; none.
    """
    from priorveil.queries import QUERIES
    from priorveil.studies import simulate as simulation

    if column is not None and data is None:
        raise click.UsageError("--column is a column of --data: give the people's values too")
    known = prior_format.read(prior)
    amounts = [files.label_numbers(known, "those of PRIOR must be numbers")] if query == "sum" else []
    question = QUERIES[query.capitalize()](*amounts)
    names = methods or ("best", "published-rr", "rr", "ldp-rr", "none")
    latent = files.read_secret(secret, known, prior_format.normalise)
    known = files.fit_prior(known, latent, mix, secret)
    advice = "" if column else "; if it is the name of a column, add --column NAME"
    values = (
        None if data is None else files.match_labels(files.read_column(data, column), known, data, advice)
    )
    outputs = [] if out is None else _outputs(out, force)
    files.require_distinct(
        {"PRIOR": prior, "--secret": secret, "--data": data}, {f"OUT{path.suffix}": path for path in outputs}
    )
    with screen.progress_bar("simulating") as advance:
        done, total = count(1), len(epsilons) * len(names)
        study = simulation.simulate(
            known,
            epsilons,
            question,
            names,
            secret=latent,
            values=values,
            progress=lambda row: advance(next(done) / total, f"{row.method} {row.epsilon:g}"),
            **settings,
        )
    if outputs:
        _write(study, outputs, force)
    else:
        click.echo(study.csv(), nl=False)


def _outputs(out: Path, force: bool) -> list[Path]:
    """Return where the table and the pictures go; refuse places that cannot be written."""
    options.require_plots()
    if not out.name:
        raise click.UsageError(f"--out: {out} is a folder: give a name in it")
    outputs = [out.with_name(out.name + suffix) for suffix in (".csv", ".png", ".svg")]
    out.parent.mkdir(parents=True, exist_ok=True)
    for path in outputs:
        problem = files.write_problem(path)
        if problem is not None:
            raise click.UsageError(f"{problem}: choose another name")
    files.require_new(force, *outputs)
    return outputs


def _write(study: Study, outputs: list[Path], force: bool) -> None:
    """Write the table and two pictures of it."""
    from priorveil.studies import plots

    drawn = plots.study_plot(study)
    with atomic_write(outputs[0], force) as file:
        file.write(study.csv().encode())
    for path in outputs[1:]:
        plots.save(drawn, path, force)
    click.echo(f"wrote {outputs[0]}, .png and .svg")
