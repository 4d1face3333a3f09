"""The documentation cannot drift: examples run, public names are in it, the commands' page is current."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import priorveil as pv

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[int, str]]:
    """Line number and text of every python block."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start(1)].count("\n"), m.group(1)) for m in BLOCK.finditer(text)]


def run(page: Path) -> None:
    """Run a page's blocks one after another in one namespace; those with prompts are doctests."""
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for line, source in blocks(page):
        if source.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(source, namespace, named(page), str(page), line)
            doctest.DebugRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, clear_globs=False)
            namespace.update(test.globs)
        else:
            exec(compile("\n" * line + source, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=named)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)


def test_a_wrong_example_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "wrong.md"
    page.write_text("```python\nx = 1\n```\n\n```python\n>>> x\n2\n```\n", encoding="utf-8")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    with pytest.raises(doctest.DocTestFailure):
        run(page)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        assert not target or (page.parent / target).exists(), f"{named(page)} links to {target}"


@pytest.mark.parametrize("name", pv.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    value = getattr(pv, name)
    assert inspect.getdoc(value), f"{name} has no docstring"
    home = value.__name__ if isinstance(value, ModuleType) else f"{value.__module__}.{value.__qualname__}"
    entries = re.findall(
        r"^::: (\S+)$", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert home in entries, f"docs/reference.md lacks '::: {home}'"


def test_the_page_of_commands_is_current() -> None:
    spec = importlib.util.spec_from_file_location("commands_page", ROOT / "scripts" / "commands.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == script.page(), "run: make docs"
