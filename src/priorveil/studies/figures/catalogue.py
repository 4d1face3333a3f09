"""The catalogue of the figures, and how it is written: pictures, numbers, and a page in HTML or Markdown."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from priorveil import __version__
from priorveil.errors import DataNotFound, InvalidInput
from priorveil.studies import curves, plots
from priorveil.studies.datasets import DATA_FILES
from priorveil.studies.figures import Figure, Outcome, Settings, examples, notions, surveys, sweeps
from priorveil.studies.simulate import csv_text

FIGURES: tuple[Figure, ...] = (
    examples.introduction,
    notions.order,
    examples.regions,
    examples.parameters,
    sweeps.priors,
    notions.correlation,
    notions.bounded_priors,
    sweeps.domain,
    sweeps.hashing,
    sweeps.guesses,
    surveys.gowalla,
    surveys.census,
)
_TITLE = "The paper, as printed and as it should be"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
body { color: #222; background: #fff; }
img { max-width: 100%; height: auto; }
figcaption, table { color: #444; font-size: .92rem; }
td, th { text-align: left; vertical-align: top; padding: .35rem .5rem; border-bottom: 1px solid #ddd; }
"""
_INTRODUCTION = (
    "Each result of “Local Information Privacy and Its Application to Privacy-Preserving Data Aggregation” "
    "(Jiang, Li and Tandon), as printed and with its guarantee kept. Dashed curves are the published closed "
    "forms, drawn with the leakage that they really have. Solid ones are certified to keep the budget. The "
    "thick one is the best design; everything below its proven bound is shaded. Dotted ones are local "
    "differential privacy, read with the same prior. Errors are √(MSE / N), as in the paper."
)
_DATA = (
    "Data are looked for in the folder named by the environment variable `PRIORVEIL_DATA`, in `shared/data` "
    "next to the checkout, and in the user's cache. They are checked against their SHA-256, except the full "
    "Gowalla file, whose checksum is not known here. They are at these addresses, or made "
    "from files that are there:"
)


def figures_named(names: tuple[str, ...]) -> tuple[Figure, ...]:
    """The figures with these numbers or names, in their own order; all of them if none is named.

    >>> [figure.name for figure in figures_named(("4", "regions"))]
    ['regions', 'parameters']
    """
    for name in names:
        if not any(name in (str(figure.number), figure.name) for figure in FIGURES):
            choices = ", ".join(f"{figure.number} {figure.name}" for figure in FIGURES)
            raise InvalidInput("figure", name, f"choose by number or name: {choices}")
    return tuple(f for f in FIGURES if not names or str(f.number) in names or f.name in names)


@dataclass(frozen=True)
class FigureResult:
    """A figure with its outcome and its PNG, or with the reason why there is none."""

    figure: Figure
    outcome: Outcome | None
    picture: bytes = b""
    missing: str = ""

    @property
    def stem(self) -> str:
        """The common part of the names of its files."""
        return f"{self.figure.number:02d}-{self.figure.name}"

    @property
    def title(self) -> str:
        """Number and title."""
        return f"Figure {self.figure.number}. {self.figure.title}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to see, or why there is nothing."""
        return self.outcome.remarks if self.outcome else (f"Not made: {self.missing}",)

    @property
    def caption(self) -> str:
        """The caption of the figure, with the note on this run."""
        return f"{self.figure.caption} {self.outcome.note if self.outcome else ''}".strip()


def make_figure(figure: Figure, settings: Settings, folder: Path) -> FigureResult:
    """Run and draw a figure, and write its PNG, SVG and CSV. If its data are missing, the result says so."""
    settings.progress(0.0)
    try:
        outcome = figure.run(settings)
    except DataNotFound as error:
        return FigureResult(figure, None, missing=str(error))
    with curves.house_style():
        drawn = outcome.draw()
    result = FigureResult(figure, outcome)
    png, svg, numbers = (folder / f"{result.stem}.{suffix}" for suffix in ("png", "svg", "csv"))
    plots.save(drawn, png)
    plots.save(drawn, svg)
    numbers.write_text(csv_text(outcome.rows), encoding="utf-8")
    return replace(result, picture=png.read_bytes())


def write_html(results: Sequence[FigureResult], folder: Path, run: str) -> Path:
    """Write `report.html`, one page that needs no other file."""
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{_TITLE}</title><style>{_STYLE}</style>'
        f"<h1>{_TITLE}</h1><p>{escape(_INTRODUCTION)}</p>"
        f"<p>priorveil {__version__}, {escape(run)}.</p>"
    ]
    for r in results:
        data = base64.b64encode(r.picture).decode("ascii")
        picture = (
            f'<figure><img alt="{escape(r.title)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(r.caption)} Numbers: {r.stem}.csv.</figcaption></figure><h3>What to see</h3>"
        )
        remarks = "".join(f"<li>{escape(line)}</li>" for line in r.remarks)
        parts.append(f"<h2>{escape(r.title)}</h2>{picture if r.picture else ''}<ul>{remarks}</ul>")
    for heading, claims in _verdicts(results).items():
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in claim) for claim in claims)
        head = "<tr><th>figure</th><th>claim</th><th>why</th></tr>"
        parts.append(f"<h2>{heading}</h2><table>{head}<tr>{'</tr><tr>'.join(cells)}</tr></table>")
    target = folder / "report.html"
    target.write_text("".join([*parts, "</html>\n"]), encoding="utf-8")
    return target


def write_markdown(results: Sequence[FigureResult], page: Path, run: str) -> None:
    """Write the same as a page of Markdown, with the PNGs in a folder `figures` next to it."""
    folder = page.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    parts = [f"# {_TITLE}", _INTRODUCTION, f"Made by `priorveil reproduce`: {run}."]
    for r in results:
        parts.append(f"## {r.title}")
        if r.picture:
            (folder / f"{r.stem}.png").write_bytes(r.picture)
            parts += [f"![{r.title}]({folder.name}/{r.stem}.png)", f"*{r.caption}*"]
        parts.append("\n".join(f"- {line}" for line in r.remarks))
    for heading, claims in _verdicts(results).items():
        parts += [f"## {heading}", _markdown_table(("figure", "claim", "why"), claims)]
    files = [(f"`{source.file}`", source.about, f"<{source.home}>") for source in DATA_FILES.values()]
    parts += ["## Data", _DATA, _markdown_table(("file", "what", "home"), files)]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _verdicts(results: Sequence[FigureResult]) -> dict[str, list[tuple[str, str, str]]]:
    """The claims (figure, text, why) under a heading for each verdict that occurs."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    headings = {True: "Claims of the paper that survive", False: "Claims of the paper that do not"}
    for survives, heading in headings.items():
        for r in results:
            for text, (kept, why) in (r.outcome.claims if r.outcome else {}).items():
                if kept is survives:
                    found.setdefault(heading, []).append((str(r.figure.number), text, why))
    return found
