"""`priorveil reproduce`: the figures of the paper, as printed and with the guarantee kept.

Examples
  priorveil reproduce --quick
      all twelve, coarsely, in a minute or two
  priorveil reproduce 5 gowalla --out figures
      two of them, in full

Gowalla and census need data: see PRIORVEIL_DATA in the documentation.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from priorveil.cli import files, options, screen
from priorveil.errors import plural

_FIGURES = (
    "introduction", "notions", "regions", "parameters", "priors", "correlation", "bounded", "domain",
    "hashing", "hamming", "gowalla", "census",
)  # fmt: skip
_FIGURES_HELP = "\n".join(["Figures", *(f"  {i:>2}  {name}" for i, name in enumerate(_FIGURES, 1))])


@click.command(epilog=options.epilog(__doc__, _FIGURES_HELP))
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--quick", is_flag=True, help="Fewer points, people and runs.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, writable=True, path_type=Path),
    default=Path("reproduction"),
    help="Folder for pictures, numbers and the report.",
)
@options.SEED
@click.option(
    "--markdown",
    type=options.OutputFile(),
    help="Write a page of Markdown too, with its pictures in a folder next to it.",
)
def reproduce(figures: tuple[str, ...], quick: bool, out: Path, seed: int, markdown: Path | None) -> int:
    """Make the figures of the paper again, as printed and with the guarantee kept.

    FIGURE is a number or a name; all of them if none is given. For each, a PNG, an SVG and the numbers as
    CSV; and report.html, one page with all of them, with captions and the claims that survive.
    """
    from priorveil.studies.figures import Settings
    from priorveil.studies.figures.catalogue import figures_named, make_figure, write_html, write_markdown

    chosen = figures_named(figures)
    options.require_plots()
    files.require_distinct({}, {"the report": out / "report.html", "--markdown": markdown})
    out.mkdir(parents=True, exist_ok=True)
    with screen.interruptible(), screen.progress_bar("drawing") as advance:

        def show(place: int, share: float) -> None:
            advance((place + share) / len(chosen), f"{chosen[place].number} {chosen[place].name}")

        results = [
            make_figure(figure, Settings(quick, seed, partial(show, place)), out)
            for place, figure in enumerate(chosen)
        ]
    run = f"{'quick' if quick else 'full'} run, seed {seed}"
    page = write_html(results, out, run)
    if markdown is not None:
        write_markdown(results, markdown, run)
    for result in results:
        if result.missing:
            click.echo(f"figure {result.figure.number} was not made: {result.missing}", err=True)
    done = sum(result.outcome is not None for result in results)
    click.echo(f"wrote {plural(done, 'figure')} and {page}")
    return 0 if done else 1
