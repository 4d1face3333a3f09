"""The notebooks run from top to bottom, stay small, and hold no outputs: the documentation makes them anew."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from priorveil.errors import DataNotFound

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "notebooks.py"))
LARGEST = 300_000  # bytes, with outputs

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'priorveil[plot]'")
pytest.importorskip("pandas", reason="the notebooks show data frames")


def notebook(path: Path, *cells: tuple[str, str]) -> Path:
    """Write a notebook with these cells: kind and text."""
    document = {"cells": [{"cell_type": kind, "source": [text]} for kind, text in cells]}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_page_stays_small(path: Path) -> None:
    try:
        cells = list(SCRIPT["run_cells"](path))
    except DataNotFound as error:
        pytest.skip(str(error))
    assert sum(len(cell.source) + len(cell.output) for cell in cells) < LARGEST
    assert any("<img" in cell.output for cell in cells), "a picture"
    assert any('class="priorveil"' in cell.output for cell in cells), "a table"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_committed_without_outputs(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert code and not any(cell["outputs"] or cell["execution_count"] for cell in code)
    assert document["nbformat"] == 4 and document["cells"][0]["source"][0].startswith("# ")


def test_cells_share_their_names_and_show_their_last_value(tmp_path: Path) -> None:
    path = notebook(
        tmp_path / "a.ipynb",
        ("markdown", "# Title"), ("code", "x = 2\nprint('printed')"), ("code", "x + 1"), ("code", "x;y = 1"),
    )  # fmt: skip
    title, first, second, third = SCRIPT["run_cells"](path)
    assert title.source == "# Title" and not title.output
    assert first.output == "```text\nprinted\n```\n"
    assert second.output == "```text\n3\n```\n" and not third.output


def test_an_error_names_the_notebook_and_the_cell(tmp_path: Path) -> None:
    path = notebook(tmp_path / "broken.ipynb", ("code", "x = 1"), ("code", "x / 0"))
    with pytest.raises(ZeroDivisionError) as raised:
        list(SCRIPT["run_cells"](path))
    assert "broken.ipynb, cell 2" in {str(entry.path) for entry in raised.traceback}


def test_a_page_without_its_data_says_so(tmp_path: Path) -> None:
    source = "from priorveil.errors import DataNotFound\nraise DataNotFound('the file is not here')"
    path = notebook(tmp_path / "a.ipynb", ("markdown", "# Title"), ("code", source))
    page = SCRIPT["notebook_page"](path)
    assert (
        page.startswith("# Title") and "without its outputs: the file is not here" in page and source in page
    )


def test_links_to_notebooks_lead_to_their_pages() -> None:
    link = SCRIPT["LINK"]
    assert link.sub(r"](\1.md)", "[a](notebooks/a-b.ipynb) [c](c.md)") == "[a](notebooks/a-b.md) [c](c.md)"
