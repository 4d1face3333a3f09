"""All figures of the paper, and how they are written: pictures, numbers, and a page in HTML.

`text.md` has a section for each figure: its name and title, the caption, remarks, and claims of the paper (name, claim,
why). The words of an `Outcome` are filled in.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from priorveil import __version__
from priorveil.errors import DataNotFound, InvalidInput
from priorveil.studies import plot_files
from priorveil.studies.figures import FigureSettings, Outcome, empirical, theory
from priorveil.studies.simulate import csv_text
from priorveil.words.plots.house_style import house_style

FIGURES: dict[str, Callable[[FigureSettings], Outcome]] = {
    "introduction": theory.introduction,
    "notions": theory.order,
    "regions": theory.regions,
    "parameters": theory.parameters,
    "priors": empirical.priors,
    "correlation": theory.correlation,
    "bounded": theory.bounded_priors,
    "domain": empirical.domain,
    "hashing": theory.hashing,
    "hamming": theory.guesses,
    "gowalla": empirical.gowalla,
    "census": empirical.census,
}
_HEAD, *_SECTIONS = Path(__file__).with_name("text.md").read_text(encoding="utf-8").split("\n## ")
_TITLE, _INTRODUCTION, DATA_TEXT = _HEAD.strip("# \n").split("\n\n")
_TEXTS = dict(section.split(": ", 1) for section in _SECTIONS)  # by the names of the figures
_VERDICTS = {True: "Claims of the paper that survive", False: "Claims of the paper that do not"}
_PAGE = Path(__file__).with_name("page.html").read_text(encoding="utf-8").replace("TITLE", _TITLE)


@dataclass(frozen=True)
class FigureSection:
    """A figure on the page: what to see in it and its PNG, or the reason why there is none.

    A claim of the paper has a text, a verdict and a reason.
    """

    name: str
    caption: str
    remarks: tuple[str, ...]
    claims: tuple[tuple[str, bool, str], ...] = ()
    picture: bytes = b""

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return list(FIGURES).index(self.name) + 1

    @property
    def title(self) -> str:
        """Number and title."""
        return f"Figure {self.number}. {_TEXTS[self.name].splitlines()[0]}"

    @property
    def stem(self) -> str:
        """The common part of the names of its files."""
        return f"{self.number:02d}-{self.name}"


def figure_names(numbers_or_names: Sequence[str]) -> list[str]:
    """The names of the figures with these numbers or names, in their own order; all of them if none is given.

    >>> figure_names(["4", "regions"])
    ['regions', 'parameters']
    """
    numbers = {str(number): name for number, name in enumerate(FIGURES, 1)}
    names = {numbers.get(figure, figure) for figure in numbers_or_names}
    for unknown in names - FIGURES.keys():
        choices = ", ".join(f"{number} {name}" for number, name in numbers.items())
        raise InvalidInput("figure", unknown, f"choose by number or name: {choices}")
    return [name for name in FIGURES if not names or name in names]


def describe(name: str, outcome: Outcome) -> FigureSection:
    """The section of a figure, without its picture: its text, with the words of the outcome filled in."""
    _, caption, remarks, claims = _TEXTS[name].format(**outcome.words).strip().split("\n\n")
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in claims.splitlines()]
    verdicts = tuple((claim, outcome.verdicts[key], why) for key, claim, why in cells)
    return FigureSection(
        name, caption, tuple(line.removeprefix("- ") for line in remarks.splitlines()), verdicts
    )


def make_figure(name: str, settings: FigureSettings, folder: Path) -> FigureSection:
    """Run and draw a figure, and write its PNG, SVG and CSV. If its data are missing, the section says so."""
    try:
        outcome = FIGURES[name](settings)
    except DataNotFound as error:
        return FigureSection(name, "", (f"Not made: {error}",))
    with house_style():
        figure = outcome.draw()
    section = describe(name, outcome)
    png, svg, numbers = (folder / f"{section.stem}.{suffix}" for suffix in ("png", "svg", "csv"))
    plot_files.save(figure, png)
    plot_files.save(figure, svg)
    numbers.write_text(csv_text(outcome.rows), encoding="utf-8")
    return replace(section, picture=png.read_bytes())


# -- pages -------------------------------------------------------------------------------------------------


def page_blocks(
    sections: Sequence[FigureSection], run: str, address: Callable[[FigureSection], str]
) -> Iterator[tuple[str, Any]]:
    """The parts of the page, each with its kind; `address` is where the PNG of a section is."""
    yield "title", _TITLE
    yield "text", _INTRODUCTION
    yield "text", f"Made by priorveil {__version__}: {run}."
    for section in sections:
        yield "heading", section.title
        if section.picture:
            yield "picture", (section.title, address(section), section.caption)
        yield "list", section.remarks
    claims = [(str(section.number), *claim) for section in sections for claim in section.claims]
    for verdict, heading in _VERDICTS.items():
        rows = [(number, claim, why) for number, claim, survives, why in claims if survives is verdict]
        if rows:
            yield "heading", heading
            yield "table", [("figure", "claim", "why"), *rows]


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return f"<table><tr>{'</tr><tr>'.join(lines)}</tr></table>"


_FIGURE = '<figure><img alt="{}" src="{}"><figcaption>{}</figcaption></figure>'
_HTML: dict[str, Callable[[Any], str]] = {
    "title": lambda text: f"<h1>{escape(text)}</h1>",
    "text": lambda text: f"<p>{escape(text)}</p>",
    "heading": lambda text: f"<h2>{escape(text)}</h2>",
    "picture": lambda picture: _FIGURE.format(*map(escape, picture)),
    "list": lambda lines: "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>",
    "table": _html_table,
}


def write_html(sections: Sequence[FigureSection], folder: Path, run: str) -> Path:
    """Write `report.html`, one page that needs no other file."""

    def address(section: FigureSection) -> str:
        return "data:image/png;base64," + base64.b64encode(section.picture).decode("ascii")

    parts = [_HTML[kind](content) for kind, content in page_blocks(sections, run, address)]
    target = folder / "report.html"
    target.write_text("".join([_PAGE, *parts, "</html>\n"]), encoding="utf-8")
    return target
