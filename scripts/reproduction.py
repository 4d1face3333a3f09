"""Write docs/reproduction.md and its pictures: the figures of the paper, in full (takes some minutes)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from priorveil.studies.datasets import DATA_FILES
from priorveil.studies.figures import FigureSettings
from priorveil.studies.figures.gallery import DATA_TEXT, FIGURES, FigureSection, make_figure, page_blocks

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reproduction.md"


def table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rest))


MARKDOWN: dict[str, Callable[[Any], str]] = {
    "title": "# {}".format,
    "text": str,
    "heading": "## {}".format,
    "picture": lambda picture: "![{}]({})\n\n*{}*".format(*picture),
    "list": lambda lines: "\n".join(f"- {line}" for line in lines),
    "table": table,
}


def write_page(sections: Sequence[FigureSection], page: Path, run: str) -> None:
    """Write the sections as a page of Markdown, with the PNGs in a folder `figures` next to it."""
    folder = page.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for section in sections:
        if section.picture:
            (folder / f"{section.stem}.png").write_bytes(section.picture)
    files = [(f"`{source.file}`", source.about, f"<{source.home}>") for source in DATA_FILES.values()]
    data = ("heading", "Data"), ("text", DATA_TEXT), ("table", [("file", "what", "home"), *files])
    blocks = [*page_blocks(sections, run, lambda section: f"figures/{section.stem}.png"), *data]
    page.write_text("\n\n".join(MARKDOWN[kind](content) for kind, content in blocks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = [make_figure(name, FigureSettings(False, 0), Path(folder)) for name in FIGURES]
    write_page(made, PAGE, "full run, seed 0")
