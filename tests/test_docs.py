"""The documentation cannot drift: examples run, public names are in it, the commands' page is current."""

from __future__ import annotations

import ast
import doctest
import inspect
import pydoc
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from types import ModuleType

import pytest

import priorveil as pv
from priorveil.errors import DataNotFound

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHER_PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("benchmarks/*.md"),
    *ROOT.glob("clients/js/*.md"),
]  # links alone
BLOCK = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)
READ = re.compile(r"^```py(?:thon|con)?\n(.*?)^```", re.MULTILINE | re.DOTALL)  # also what cannot be run here
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?:\]\(|(?:src|href)=\")(?!https?:|mailto:)([^)#\s\"]*)(?:#([^)\s\"]*))?[)\"]")
HEADING = re.compile(r"^#+ (.*?)\s*$", re.MULTILINE)
ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
ENTRIES = [entry for page in REFERENCE for entry in ENTRY.findall(page.read_text(encoding="utf-8"))]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[int, str]]:
    """Line number and text of every block of Python, with prompts (`pycon`) or without."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start(1)].count("\n"), m.group(1)) for m in BLOCK.finditer(text)]


def run(page: Path) -> None:
    """Run a page's blocks one after another in one namespace; those with prompts are doctests."""
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for line, source in blocks(page):
        if source.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(source, namespace, named(page), str(page), line)
            doctest.DebugRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(
                test, clear_globs=False
            )
            namespace.update(test.globs)
        else:
            exec(compile("\n" * line + source, str(page), "exec"), namespace)


# test_mistakes.py runs the page of mistakes, whose examples end with errors.
RUN = [page for page in PAGES if blocks(page) and page.name != "mistakes.md"]


@pytest.mark.parametrize("page", RUN, ids=named)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")  # some load a stored plan
    monkeypatch.chdir(tmp_path)
    try:
        run(page)
    except DataNotFound as error:  # the examples before those with data have run
        pytest.skip(str(error))


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "tutorial.md"], ids=named)
def test_examples_print_answers(page: Path) -> None:
    """Newcomers see the plan and the estimate itself, not whether something about them is true."""
    examples = [
        example for _, source in blocks(page) for example in doctest.DocTestParser().get_examples(source)
    ]
    assert "print(estimate)\n" in [example.source for example in examples]
    assert not [example.source for example in examples if re.search(r"\b(True|False)\b", example.want)]


def test_a_wrong_example_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "wrong.md"
    page.write_text("```python\nx = 1\n```\n\n```pycon\n>>> x\n2\n```\n", encoding="utf-8")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    with pytest.raises(doctest.DocTestFailure):
        run(page)


def anchors(page: Path) -> set[str]:
    """What a link to the page may name after its `#`: its headings, as they are spelt in addresses."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    plain = [
        unicodedata.normalize("NFKD", title).encode("ascii", "ignore") for title in HEADING.findall(text)
    ]
    words = [re.sub(r"[^\w\s-]", "", title.decode()).strip().lower() for title in plain]
    return {re.sub(r"[-\s]+", "-", title) for title in words} | set(ENTRY.findall(text))


def lost(page: Path) -> list[str]:
    """Links of a page that lead nowhere: no such file, or no such place in it."""
    found = []
    for target, anchor in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        there = page.parent / target if target else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            found.append(f"{target}#{anchor}" if anchor else target)
    return found


@pytest.mark.parametrize("page", sorted({*PAGES, *OTHER_PAGES}), ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    assert lost(page) == []


def test_a_lost_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One\n\n## What `it` is: all\n\n```sh\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#what-it-is-all) [c](#here) [d](https://example.org#x)\n"
        '[e](none.md) [f](other.md#two) [g](other.md#no-heading) [h](#there) <img src="none.png" alt="i">\n'
    )
    assert lost(page) == ["none.md", "other.md#two", "other.md#no-heading", "#there", "none.png"]


def used(source: str) -> list[str]:
    """The names of priorveil that a block imports, with their modules, or takes from `pv`."""
    if source.lstrip().startswith(">>>"):
        source = "".join(example.source for example in doctest.DocTestParser().get_examples(source))
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "priorveil":
            found += [f"{node.module}.{name.name}" for name in node.names]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pv":
            found.append(f"priorveil.{node.attr}")
    return found


def test_names_are_found_in_a_block() -> None:
    assert used("from priorveil.a import b, c as d\nimport priorveil as pv\npv.E(pv.f.g)\n") == [
        "priorveil.a.b", "priorveil.a.c", "priorveil.E", "priorveil.f",
    ]  # fmt: skip
    assert used(">>> pv.E\n3\n") == ["priorveil.E"]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_teaches_is_in_the_reference(page: Path) -> None:
    """Or it may change, as the reference says, behind the reader's back."""
    promised = {*ENTRIES, *(f"priorveil.{name}" for name in [*pv.__all__, "__version__"])}
    blocks_read = READ.findall(page.read_text(encoding="utf-8"))
    assert {name for block in blocks_read for name in used(block)} - promised == set()


@pytest.mark.parametrize("name", pv.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    value = getattr(pv, name)
    assert inspect.getdoc(value), f"{name} has no docstring"
    if isinstance(value, ModuleType):
        homes = {value.__name__}
    else:  # by itself, or with all of its module
        homes = {f"{value.__module__}.{value.__qualname__}", value.__module__}
    assert homes & set(ENTRIES), f"docs/reference lacks one of {homes}"


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_of_the_reference_exists(entry: str) -> None:
    assert pydoc.locate(entry) is not None


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_code_in_a_table_shows_no_escaped_bar(page: Path) -> None:
    """The site shows the backslash, and who copies the line gets it: such code belongs in a block."""
    assert re.findall(r"`[^`\n]*\\\|[^`\n]*`", page.read_text(encoding="utf-8")) == []


def test_the_page_of_commands_is_current() -> None:
    """Asked of a program of its own: here, other tests have made commands show help in their way."""
    script = str(ROOT / "scripts" / "commands.py")
    assert subprocess.run([sys.executable, script, "--check"]).returncode == 0, "run: make docs"
