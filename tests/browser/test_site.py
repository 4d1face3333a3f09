"""The built documentation, opened from files in a real Chromium."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DESK, PHONE = (1280, 800), (390, 844)
ENGINE = ('class="md-search"', 'class="md-code__nav"')  # its own elements without names of their own
WIDE_CODE = """
  return [...document.querySelectorAll("pre > code")].filter((code) => code.scrollWidth > code.clientWidth + 1)
    .map((code) => code.innerText.slice(0, 200))
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="the documentation is built with mkdocs-material")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        check=True,
    )
    return folder


@pytest.fixture
def reader(chromium: Any) -> Iterator[Any]:
    """A light desk; whatever page is opened, nothing may come from elsewhere and no script may complain."""
    chromium.size(*DESK)
    chromium.scheme("light")
    chromium.forgiven = []
    chromium.open("about:blank")
    chromium.requests()
    chromium.complaints()
    yield chromium
    addresses = [request["url"] for request in chromium.requests()]
    assert [url for url in addresses if not url.startswith(("file:", "data:", "about:"))] == []
    assert chromium.complaints() == []
    chromium.open("about:blank")


def pages(site: Path) -> list[Path]:
    """All but the page of a server for a wrong address, which cannot know where it is shown."""
    return sorted(page for page in site.rglob("*.html") if page.name != "404.html")


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_front_page_fits_in_one_screen(reader: Any, site: Path, size: tuple[int, int]) -> None:
    reader.size(*size, mobile=size is PHONE)
    reader.open(f"file://{site}/index.html")
    for css in ("h1", ".front pre", ".front svg", *(f".door:nth-of-type({i})" for i in (1, 2, 3))):
        reader.see(css)
        left, top, right, bottom = reader.run(
            "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [box.left, box.top, box.right, box.bottom]",
            css,
        )
        assert 0 <= left < right <= size[0] and 0 <= top < bottom <= size[1], css


def test_no_page_is_wider_than_a_phone(reader: Any, site: Path) -> None:
    reader.size(*PHONE, mobile=True)
    for page in pages(site):
        reader.open(f"file://{page}")
        assert reader.run("return document.documentElement.scrollWidth <= innerWidth"), page.name


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_command_scrolls_sideways(reader: Any, site: Path, size: tuple[int, int]) -> None:
    reader.size(*size, mobile=size is PHONE)
    reader.open(f"file://{site}/commands.html")
    reader.see("h1", "Commands")
    assert reader.run(WIDE_CODE) == []


@pytest.mark.parametrize(
    ("words", "title"),
    [("sample size", "Sample size"), ("average by group", "average by group"), ("notebook", "notebook")],
)
def test_search_finds_from_files(reader: Any, site: Path, words: str, title: str) -> None:
    reader.open(f"file://{site}/index.html")
    reader.run("document.querySelector('.md-search__input').focus()")
    reader.press(words)
    reader.see(".md-search-result__link", title)


def test_pages_follow_the_colours_of_the_system(reader: Any, site: Path) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        reader.scheme(scheme)
        reader.open(f"file://{site}/concepts.html")
        grounds[scheme] = reader.run("return getComputedStyle(document.body).backgroundColor")
    assert grounds == {"light": "rgb(251, 250, 248)", "dark": "rgb(20, 24, 27)"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read_by_everybody(reader: Any, site: Path, scheme: str) -> None:
    reader.scheme(scheme)
    for name in ("index", "tutorial", "commands", "values", "reference/notions"):
        reader.open(f"file://{site}/{name}.html")
        assert [fault for fault in reader.faults() if not any(part in fault for part in ENGINE)] == [], name
