"""`priorveil reproduce`: the figures of the paper, as printed and with the guarantee kept.

Examples
  priorveil reproduce --quick
      all twelve, coarsely, in a minute or two
  priorveil reproduce 5 gowalla --out figures
      two of them, in full

Gowalla and census need data: see PRIORVEIL_DATA in the documentation.

Figures
   1  introduction
   2  notions
   3  regions
   4  parameters
   5  priors
   6  correlation
   7  bounded
   8  domain
   9  hashing
  10  hamming
  11  gowalla
  12  census
"""

from __future__ import annotations

from pathlib import Path

import click

from priorveil.cli import options, screen
from priorveil.errors import plural


@click.command(epilog=options.epilog(__doc__))
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--quick", is_flag=True, help="Fewer points, people and runs.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, writable=True, path_type=Path),
    default=Path("reproduction"),
    help="Folder for plots, numbers and the report.",
)
@options.SEED
def reproduce(figures: tuple[str, ...], quick: bool, out: Path, seed: int) -> int:
    """Reproduce the figures of the paper, as printed and with the guarantee kept.

    FIGURE is a number or a name; all of them if none is given. For each, a PNG, an SVG and the numbers as
    CSV; and report.html, one page with all of them, with captions and the claims that survive.
    """
    from priorveil.studies.figures import FigureSettings, gallery

    chosen = gallery.figure_names(figures)
    options.require_plots()
    out.mkdir(parents=True, exist_ok=True)
    sections: list[gallery.FigureSection] = []
    with screen.end_on_interrupt(), screen.progress_bar("drawing") as advance:
        for name in chosen:
            advance(len(sections) / len(chosen), name)
            sections.append(gallery.make_figure(name, FigureSettings(quick, seed), out))
    run = f"{'quick' if quick else 'full'} run, seed {seed}"
    page = gallery.write_html(sections, out, run)
    missing = [section for section in sections if not section.picture]
    for section in missing:
        click.echo(f"figure {section.number}: {section.remarks[0]}", err=True)
    drawn_count = len(sections) - len(missing)
    click.echo(f"wrote {plural(drawn_count, 'figure')} and {page}")
    return 0 if drawn_count else 1
