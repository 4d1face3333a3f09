"""Run the notebooks in docs/notebooks, and show them in the documentation with their outputs.

MkDocs loads this file as a hook (`hooks` in mkdocs.yml). Each notebook is run when the documentation is built and
becomes a page next to its file. Notebooks hold plain Python, so that they run without Jupyter: what a cell prints, and
the value of its last line, are its output, as in Jupyter.

    python scripts/notebooks.py        runs them all, and prints how long each took
"""

from __future__ import annotations

import ast
import base64
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

from priorveil.errors import DataNotFound

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
LINK = re.compile(r"\]\(((?:[\w./-]*/)?[\w-]+)\.ipynb\)")


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook: its text, whether it is code, and once it was run its output in Markdown."""

    source: str
    is_code: bool
    output: str = ""


def read_cells(path: Path) -> list[Cell]:
    """The cells of a notebook as they are in its file."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [Cell("".join(cell["source"]), cell["cell_type"] == "code") for cell in cells]


def run_cells(path: Path) -> Iterator[Cell]:
    """Run the cells of a notebook one after another in one namespace; an error names the cell."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(read_cells(path), 1):
        if not cell.is_code:
            yield cell
            continue
        printed = StringIO()
        with redirect_stdout(printed):
            value = _run(cell.source, f"{path.name}, cell {number}", namespace)
        output = f"```text\n{printed.getvalue().rstrip()}\n```\n" if printed.getvalue().strip() else ""
        yield Cell(cell.source, True, output + _shown(value, cell.source.splitlines()[-1]))


def _run(source: str, name: str, namespace: dict[str, Any]) -> Any:
    """Run the source; the value of its last line if that is an expression."""
    tree = ast.parse(source, name)
    last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body = tree.body[:-1] if last else tree.body
    exec(compile(ast.Module(body, []), name, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace) if last else None


def _shown(value: Any, words: str) -> str:
    """A value in Markdown: a picture, HTML, or its text."""
    if value is None:
        return ""
    if hasattr(value, "_repr_png_"):
        data, size = value._repr_png_()
        source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        return f'<p><img alt="{escape(words)}" width="{size["width"]}" src="{source}"></p>\n'
    if hasattr(value, "_repr_html_"):
        return f"{value._repr_html_()}\n"
    return f"```text\n{value!r}\n```\n"


@cache
def notebook_page(path: Path) -> str:
    """A notebook as a page in Markdown. Without its data it is shown as it is, and says so."""
    try:
        cells, note = list(run_cells(path)), ""
    except DataNotFound as error:
        cells, note = read_cells(path), f"\n*This page was built without its outputs: {error}.*\n"
    heading, *parts = (f"```python\n{c.source}\n```\n\n{c.output}" if c.is_code else c.source for c in cells)
    download = f"[Download this notebook](./{path.name}){{ download }}"
    return "\n\n".join([heading, download + note, *parts, ""])


# -- the hook of MkDocs --------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add the page of each notebook."""
    from mkdocs.structure.files import File

    for path in sorted(FOLDER.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook_page(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let links to notebooks lead to their pages, except those that download them."""
    return LINK.sub(r"](\1.md)", markdown) if not page.file.src_uri.startswith("notebooks/") else markdown


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        start = time.monotonic()
        try:
            list(run_cells(path))
        except DataNotFound as error:
            sys.stdout.write(f"{path.name}: not run, {error}\n")
        else:
            sys.stdout.write(f"{path.name}: {time.monotonic() - start:.1f} s\n")
