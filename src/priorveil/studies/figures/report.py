"""Writes what figures found: pictures, numbers, a page of HTML with everything in it, and one of Markdown."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from priorveil import __version__
from priorveil.studies import plots
from priorveil.studies.datasets import SOURCES
from priorveil.studies.figures.model import Claim, Figure, Outcome
from priorveil.studies.simulate import as_csv

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
body { color: #222; background: #fff; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; }
figcaption { color: #444; font-size: .92rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
td, th { text-align: left; vertical-align: top; padding: .35rem .5rem; border-bottom: 1px solid #ddd; }
.missing { background: #fdf3e7; padding: .5rem 1rem; }
nav a { margin-right: .8rem; white-space: nowrap; }
"""
_LEAD = (
    "Each result of “Local Information Privacy and Its Application to Privacy-Preserving Data Aggregation” "
    "(Jiang, Li and Tandon), "
    "as printed and with its guarantee kept. Dashed curves are the published closed forms, drawn with the "
    "leakage they really have; "
    "solid ones are certified to keep the budget; the thick one is the best design, with everything below "
    "its proven bound shaded; "
    "dotted ones are local differential privacy, read with the same prior. Errors are √(MSE / N), as in the "
    "paper."
)


@dataclass(frozen=True)
class Made:
    """A figure with its outcome; or with the reason why there is none."""

    figure: Figure
    outcome: Outcome | None
    missing: str = ""

    @property
    def stem(self) -> str:
        """How its files begin."""
        return f"{self.figure.number:02d}-{self.figure.name}"

    @property
    def title(self) -> str:
        """Number and title."""
        return f"Figure {self.figure.number}. {self.figure.title}"


def write_figure(made: Made, folder: Path) -> bytes:
    """Write the PNG, the SVG and the CSV of a figure; returns the PNG, for the report."""
    assert made.outcome is not None
    with plots.look():
        picture = made.outcome.draw()
    vector, pixels = plots.svg_and_png(picture)
    (folder / f"{made.stem}.svg").write_bytes(vector)
    (folder / f"{made.stem}.png").write_bytes(pixels)
    rows = [dict(row) for row in made.outcome.rows]
    (folder / f"{made.stem}.csv").write_text(as_csv(rows), encoding="utf-8")
    return pixels


def write_report(made: Sequence[Made], pictures: Sequence[bytes], folder: Path, how: str) -> Path:
    """One page, complete in itself: figures, captions, what to see, and the fate of the paper's claims."""
    sections = "".join(_section(m, p) for m, p in zip(made, pictures, strict=True))
    links = "".join(f'<a href="#{m.stem}">{m.figure.number} {html.escape(m.figure.title)}</a> ' for m in made)
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>The paper, as printed and as it should be</title><style>{_STYLE}</style>"
        f"<h1>The paper, as printed and as it should be</h1><p>{html.escape(_LEAD)}</p>"
        f"<p>priorveil {__version__}, "
        f"{html.escape(how)}.</p><nav>{links}</nav>{sections}{_verdicts(made)}</html>\n"
    )
    target = folder / "report.html"
    target.write_text(page, encoding="utf-8")
    return target


def write_markdown(made: Sequence[Made], pictures: Sequence[bytes], page: Path, how: str) -> None:
    """The same as a page of Markdown, with the PNGs in a folder `figures` beside it."""
    folder = page.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for m, picture in zip(made, pictures, strict=True):
        if picture:
            (folder / f"{m.stem}.png").write_bytes(picture)
    page.write_text(_markdown(made, folder.name, how), encoding="utf-8")


def _markdown(made: Sequence[Made], folder: str, how: str) -> str:
    parts = ["# The paper, as printed and as it should be", _LEAD, f"Made by `priorveil reproduce`: {how}."]
    for m in made:
        parts.append(f"## {m.title}")
        if m.outcome is None:
            parts.append(f"Not made: {m.missing}")
            continue
        parts += [
            f"![{m.title}]({folder}/{m.stem}.png)",
            f"*{m.outcome.caption}*",
            "\n".join(f"- {line}" for line in m.outcome.see),
        ]
    for heading, kept in _HEADINGS:
        rows = [
            f"| {m.figure.number} | {_cell(c.text)} | {_cell(c.why)} |"
            for m, c in _claims(made)
            if c.survives is kept
        ]
        if rows:
            parts += [f"## {heading}", "\n".join(["| figure | claim | why |", "|---|---|---|", *rows])]
    return "\n\n".join([*parts, *_data()]) + "\n"


def _data() -> list[str]:
    """Where the data of figures 11 and 12 come from."""
    words = (
        "Data are looked for in the folder named by the environment variable `PRIORVEIL_DATA`, in "
        "`shared/data` beside the checkout, and in the user's cache, and checked against their SHA-256 (but "
        "for "
        "the full Gowalla file, whose checksum is not known here). UCI Adult is downloaded if it is not "
        "there. "
        "The others are at these addresses, or made from what is there:"
    )
    rows = [f"| `{s.file}` | {_cell(s.about)} | <{s.home}> |" for s in SOURCES.values()]
    return ["## Data", words, "\n".join(["| file | what | home |", "|---|---|---|", *rows])]


_HEADINGS = (("Claims of the paper that survive", True), ("Claims of the paper that do not", False))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _claims(made: Sequence[Made]) -> list[tuple[Made, Claim]]:
    return [(m, claim) for m in made if m.outcome is not None for claim in m.outcome.claims]


def _section(made: Made, picture: bytes) -> str:
    head = f'<section id="{made.stem}"><h2>{html.escape(made.title)}</h2>'
    if made.outcome is None:
        return f'{head}<p class="missing">Not made: {html.escape(made.missing)}</p></section>'
    data = base64.b64encode(picture).decode("ascii")
    seen = "".join(f"<li>{html.escape(line)}</li>" for line in made.outcome.see)
    return (
        f'{head}<figure><img alt="{html.escape(made.title)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{html.escape(made.outcome.caption)} Numbers: {made.stem}.csv.</figcaption></figure>"
        f"<h3>What to see</h3><ul>{seen}</ul></section>"
    )


def _verdicts(made: Sequence[Made]) -> str:
    parts = []
    for heading, kept in _HEADINGS:
        rows = "".join(
            f"<tr><td>{m.figure.number}</td><td>{html.escape(c.text)}</td><td>{html.escape(c.why)}</td></tr>"
            for m, c in _claims(made)
            if c.survives is kept
        )
        if rows:
            parts.append(
                f"<h2>{heading}</h2><table><tr><th>figure</th><th>claim</th><th>why</th></tr>{rows}</table>"
            )
    return "".join(parts)
