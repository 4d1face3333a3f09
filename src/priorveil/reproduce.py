"""Two commands: `reproduce`, the figures of the paper; `simulate`, such experiments on one's own data.

What a command needs is imported when it runs, so that help is quick.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.errors import DataNotFound, counted

if TYPE_CHECKING:
    from priorveil.figures.model import Figure
    from priorveil.figures.report import Made
    from priorveil.priors import Prior, Secret
    from priorveil.simulate import Study
    from priorveil.ways import Asked

_HELP = {"help_option_names": ["-h", "--help"]}  # also when a command is run on its own
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FIGURES = (
    "introduction", "notions", "regions", "parameters", "priors", "correlation", "bounded", "domain",
    "hashing", "hamming", "gowalla", "census",
)  # fmt: skip
_QUERIES = ("histogram", "sum", "guess")

_REPRODUCE_EXAMPLES = f"""\b
Figures
{chr(10).join(f"  {i:>2}  {name}" for i, name in enumerate(_FIGURES, 1))}

\b
Examples
  priorveil reproduce --quick
      all twelve, coarsely, in a minute or two
  priorveil reproduce 5 gowalla --out figures
      two of them, in full

Gowalla and census need data: see PRIORVEIL_DATA in the documentation.
"""


@click.command(epilog=_REPRODUCE_EXAMPLES, context_settings=_HELP)
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--quick", is_flag=True, help="Fewer points, people and runs.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for pictures, numbers and the report.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all that is drawn at random."
)
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page of Markdown too, its pictures in a folder beside it.",
)
def reproduce(figures: tuple[str, ...], quick: bool, out: Path, seed: int, markdown: Path | None) -> int:
    """Make the figures of the paper again, as printed and with the guarantee kept.

    FIGURE is a number or a name; all of them if none is given. For each, a PNG, an SVG and the numbers as
    CSV; and report.html, one page with all of them, captions, what to see, and which claims survive.
    """
    from priorveil.figures import chosen
    from priorveil.figures.report import write_markdown, write_report

    picked = chosen(figures)
    out.mkdir(parents=True, exist_ok=True)
    with _bar(len(picked)) as advance:
        pairs = [_made(figure, quick, seed, out, advance) for figure in picked]
    made, pictures = [m for m, _ in pairs], [p for _, p in pairs]
    how = f"{'quick' if quick else 'full'} run, seed {seed}"
    page = write_report(made, pictures, out, how)
    if markdown is not None:
        write_markdown(made, pictures, markdown, how)
    for m in made:
        if m.missing:
            click.echo(f"figure {m.figure.number} was not made: {m.missing}", err=True)
    click.echo(f"wrote {counted(sum(m.outcome is not None for m in made), 'figure')} and {page}")
    return 0 if any(m.outcome is not None for m in made) else 1


def _made(
    figure: Figure, quick: bool, seed: int, out: Path, advance: Callable[[str, float], None]
) -> tuple[Made, bytes]:
    """Run, draw and write one figure; where its data are missing, say so and go on."""
    from priorveil.figures.model import Setting
    from priorveil.figures.report import Made, write_figure

    label = f"{figure.number} {figure.name}"
    advance(label, 0.0)
    try:
        outcome = figure.run(Setting(quick, seed, lambda share: advance(label, 0.95 * share)))
    except DataNotFound as error:
        advance(label, 1.0)
        return Made(figure, None, str(error)), b""
    made = Made(figure, outcome)
    picture = write_figure(made, out)
    advance(label, 1.0)
    return made, picture


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str, float], None]]:
    """A progress bar on the terminal, if there is one: `advance(label, share of this one)`."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        seen: dict[str, float] = {}

        def advance(label: str, share: float) -> None:
            seen[label] = share
            progress.update(task, description=label, completed=sum(seen.values()))

        yield advance


_SIMULATE_EXAMPLES = """\b
Files
  PRIOR   What is known about one person's value: CSV lines of label,probability.
  --data  The people's true values, one on a line: the labels of PRIOR.
          Without it people are drawn from the prior.
  --secret  Pr(value | secret): a first line with the labels of PRIOR, in any
          order, then a line for each secret that begins with its name.

\b
Examples
  priorveil simulate prior.csv --epsilon 1 --epsilon 2 --epsilon 3
      a table: expected and simulated error of several mechanisms
  priorveil simulate prior.csv --data people.csv --way best --way ldp-rr --out study
      on one's own people; study.csv, study.png and study.svg
"""


@click.command(epilog=_SIMULATE_EXAMPLES, context_settings=_HELP)
@click.argument("prior", type=_FILE)
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
    "--way", "ways", multiple=True, help="A mechanism to compare, named above; more than once for several."
)
@click.option("--secret", type=_FILE, help="Protect a latent secret instead of the value.")
@click.option("--data", type=_FILE, help="The people's true values.")
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
@click.option("--normalise", is_flag=True, help="Scale the prior to add up to one.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to write OUT.csv, OUT.png and OUT.svg.")
def simulate(
    prior: Path,
    epsilons: tuple[float, ...],
    query: str,
    ways: tuple[str, ...],
    secret: Path | None,
    data: Path | None,
    people: int,
    runs: int,
    seed: int,
    normalise: bool,
    out: Path | None,
) -> int:
    """Compare mechanisms on your own prior, people and budgets: a tidy table, and a picture.

    Ways: best, rr, arc, unary, hashing (certified); published-rr, published-unary, published-hashing (as
    printed, with the leakage they really have); ldp-best, ldp-rr, ldp-unary, ldp-hashing, context-free; none.
    """
    from priorveil import simulate as simulation

    known = _read_prior(prior, normalise)
    asked = ways or ("best", "published-rr", "rr", "ldp-rr", "none")
    latent = None if secret is None else _read_secret(secret, known)
    values = None if data is None else _read_values(data, known)
    with _bar(len(epsilons) * len(asked)) as advance:
        study = simulation.simulate(
            known, epsilons, _query(query, known), asked, secret=latent, values=values, people=people,
            runs=runs, seed=seed, progress=lambda row: advance(f"{row.way} {row.epsilon:g}", 1.0),
        )  # fmt: skip
    if out is None:
        click.echo(study.csv(), nl=False)
    else:
        _write_study(study, out)
    return 0


def _write_study(study: Study, out: Path) -> None:
    """The table and a picture of it: errors above, levels below."""
    from priorveil import plots

    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".csv").write_text(study.csv(), encoding="utf-8")
    with plots.look():
        figure, axes = plots.canvas(2, 1, width=4.6, height=2.6, sharex=True)
        plots.errors(study, axes[0, 0]).set_xlabel("")
        plots.levels(study, axes[1, 0])
        plots.legend(figure, axes[0, 0], columns=3)
    vector, pixels = plots.svg_and_png(figure)
    out.with_suffix(".svg").write_bytes(vector)
    out.with_suffix(".png").write_bytes(pixels)
    click.echo(f"wrote {out.with_suffix('.csv')}, .png and .svg")


def _query(name: str, prior: Prior) -> Asked:
    from priorveil.queries import Guess, Histogram, Sum

    if name == "sum":
        try:
            return Sum([float(label) for label in prior.labels])
        except ValueError as error:
            raise click.UsageError(
                f"--query sum: the labels of the prior must be numbers ({error})"
            ) from error
    return Guess() if name == "guess" else Histogram()


def _read_prior(path: Path, normalise: bool) -> Prior:
    """Lines of label,probability; a first line without a number is a header."""
    from priorveil.priors import Prior

    rows = [row for row in csv.reader(path.read_text(encoding="utf-8-sig").splitlines()) if row]
    if rows and not _is_number(rows[0][-1]):
        rows = rows[1:]
    if not rows or any(len(row) != 2 or not _is_number(row[1]) for row in rows):
        raise click.ClickException(f"{path}: give lines of label,probability")
    numbers = [float(row[1]) for row in rows]
    total = sum(numbers) if normalise else 1.0
    return Prior([number / total for number in numbers], [row[0].strip() for row in rows])


def _read_secret(path: Path, prior: Prior) -> Secret:
    """A table of Pr(value | secret), its columns put in the order of the prior."""
    from priorveil.channels import Channel
    from priorveil.priors import Secret

    table = Channel.load(path)
    names = [str(label) for label in table.outputs]
    if sorted(names) != sorted(str(label) for label in prior.labels):
        raise click.ClickException(f"{path}: its first line must name the values of the prior")
    order = [names.index(str(label)) for label in prior.labels]
    secret = Secret(table.matrix[:, order], table.inputs)
    secret.require_fits(prior)
    return secret


def _read_values(path: Path, prior: Prior) -> list[str]:
    """One label on each line; a first line that is no label of the prior is a header."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    return lines[1:] if lines and lines[0] not in prior.labels else lines


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
