"""The built documentation, opened from files in a real Chromium."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import priorveil as pv
from browser.steps import BACKSPACE, COLOURS

ROOT = Path(__file__).resolve().parent.parent.parent
DESK, PHONE = (1280, 800), (390, 844)
ENTRY = re.compile(r'id="(priorveil\.[\w.]+)"')
WIDE = """
  return [...document.querySelectorAll("pre > code, .formula, .md-typeset__scrollwrap")]
    .filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.innerText.slice(0, 200))
"""

# Words of tables that are broken over two lines; an id, which is longer than a screen, may be.
BROKEN = """
  const lines = (node, at, length) => {
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + length);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
  };
  const broken = [];
  for (const cell of document.querySelectorAll("td, th")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const { 0: word, index } of texts.currentNode.data.matchAll(/\\w+/g)) {
        if (word.length < 40 && lines(texts.currentNode, index, word.length) > 1) broken.push(word);
      }
    }
  }
  return broken;
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
    for css in ("h1", ".front pre", ".front svg", *(f".door:nth-of-type({i})" for i in (1, 2, 3, 4))):
        reader.see(css)
        left, top, right, bottom = reader.run(
            "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [box.left, box.top, box.right, box.bottom]",
            css,
        )
        assert 0 <= left < right <= size[0] and 0 <= top < bottom <= size[1], css


def test_every_page_fits_the_screen(reader: Any, site: Path) -> None:
    """No code, formula or table scrolls sideways on a desk, and no table breaks a word on a phone."""
    fits = "return document.documentElement.scrollWidth <= innerWidth"
    for page in pages(site):
        reader.size(*DESK)
        reader.open(f"file://{page}")
        assert reader.run(fits) and reader.run(WIDE) == [], page.name
        reader.size(*PHONE, mobile=True)
        assert reader.run(fits) and reader.run(BROKEN) == [], page.name


@pytest.mark.parametrize("name", ["commands", "maths"])
def test_no_command_or_formula_scrolls_sideways_on_a_phone(reader: Any, site: Path, name: str) -> None:
    reader.size(*PHONE, mobile=True)
    reader.open(f"file://{site}/{name}.html")
    assert reader.run("return document.querySelectorAll('pre > code, .formula').length > 10")
    assert reader.run(WIDE.replace(", .md-typeset__scrollwrap", "")) == []


def test_copied_examples_have_no_prompts_and_no_outputs(reader: Any, site: Path) -> None:
    reader.open(f"file://{site}/tutorial.html")
    assert reader.see(".language-pycon").text.startswith(">>> print(prior)\nPrior(")
    reader.click(".language-pycon .md-code__button")
    reader.see(".md-search__input").send_keys("\ue009v")  # control and v, in the encoding of WebDriver
    assert reader.run("return document.querySelector('.md-search__input').value") == "print(prior)"


def test_the_reference_shows_public_names_only(site: Path) -> None:
    ids = [i for page in (site / "reference").glob("*.html") for i in ENTRY.findall(page.read_text("utf-8"))]
    assert "priorveil.plans.plan.Plan.estimate" in ids
    assert [i for i in ids if "._" in i] == []
    errors = ENTRY.findall((site / "reference" / "errors.html").read_text("utf-8"))
    names = [i.removeprefix("priorveil.errors.") for i in errors if i.count(".") == 2]
    assert "InvalidInput" in names and [name for name in names if name[0].islower()] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_is_white_and_has_no_navigation(reader: Any, site: Path, scheme: str) -> None:
    """Also for readers whose screen is dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    reader.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    try:
        reader.open(f"file://{site}/maths.html")
        style = "const style = getComputedStyle(document.querySelector(arguments[0]));"
        shown = reader.run(f"{style} return [style.backgroundColor, style.color, style.colorScheme]", "body")
        assert shown == ["rgb(255, 255, 255)", "rgb(29, 36, 41)", "light"]
        for css in ("header", ".md-sidebar", "footer"):
            assert reader.run(f"{style} return style.display", css) == "none", css
    finally:
        reader.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


FOUND = {
    "sample size": "Sample size",
    "average by group": "average by group",
    "notebook": "notebook",
    "decimal comma": "Decimal comma",
    "LDP": "Why not LDP",
    "geo-indistinguishability": "Geo-indistinguishability",
}


def test_search_finds_from_files(reader: Any, site: Path) -> None:
    reader.forgiven = ["workers/search"]  # the engine complains while the last letter typed is a hyphen
    reader.open(f"file://{site}/index.html")
    for words, title in FOUND.items():
        reader.run("const input = document.querySelector('.md-search__input'); input.focus(); input.select()")
        reader.press(BACKSPACE)
        assert reader.gone(".md-search-result__link"), "what was found before is cleared"
        reader.press(words)
        reader.see(".md-search-result__link", title)


def test_pages_follow_the_colours_of_the_system(reader: Any, site: Path) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        reader.scheme(scheme)
        reader.open(f"file://{site}/concepts.html")
        grounds[scheme] = reader.run("return getComputedStyle(document.body).backgroundColor")
    assert grounds == {"light": "rgb(251, 250, 248)", "dark": "rgb(20, 24, 27)"}


def test_pages_can_be_read_by_everybody(reader: Any, site: Path) -> None:
    """All rules in the light; in the dark those about colours."""
    for name in ("index", "tutorial", "commands", "values", "maths", "reference/notions"):
        reader.open(f"file://{site}/{name}.html")
        assert reader.faults() == [], name
        reader.scheme("dark")
        assert reader.faults(COLOURS) == [], name
        reader.scheme("light")


def test_jupyter_does_not_move_texts_to_the_right(reader: Any, tmp_path: Path) -> None:
    jupyter = ".jp-RenderedHTMLCommon:not(.jp-RenderedMarkdown) :is(td, th, tr) { text-align: right }"
    form = pv.Prior({"never": 0.75, "once": 0.25})._repr_html_()
    page = tmp_path / "form.html"
    page.write_text(f'{form}<style>{jupyter}</style><div class="jp-RenderedHTMLCommon">{form}</div>', "utf-8")
    reader.open(f"file://{page}")
    sides = reader.run(
        "return [...document.querySelectorAll('.jp-RenderedHTMLCommon tbody td:not(.bar)')]"
        ".map((cell) => getComputedStyle(cell).textAlign)"
    )
    assert sides == ["left", "right"] * 2
