"""The pages hold to their content-security policy: nothing inline, nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
STATIC = ROOT / "src" / "priorveil" / "curator" / "static"
SERVED = {path.name: path for path in (*STATIC.iterdir(), ROOT / "clients" / "js" / "priorveil.js")}
PAGES = sorted(STATIC.glob("*.html"))
ELSEWHERE = re.compile(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[\w.-]+\.\w+")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_inline(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", text)
    assert '<html lang="en">' in text and 'name="viewport"' in text and "<title>" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_everything_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r'(?:src|href)="/static/([^"]+)"', page.read_text(encoding="utf-8"))
    assert named and all(name in SERVED for name in named)


@pytest.mark.parametrize(
    "script", [SERVED[name] for name in sorted(SERVED) if name.endswith(".js")], ids=lambda path: path.name
)
def test_scripts_write_no_html_and_load_from_here(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    for name in re.findall(r'from "([^"]+)"', text):
        assert name.startswith("/static/") and name.removeprefix("/static/") in SERVED


@pytest.mark.parametrize("path", [SERVED[name] for name in sorted(SERVED)], ids=lambda path: path.name)
def test_nothing_comes_from_elsewhere(path: Path) -> None:
    code = re.sub(r"^\s*(?://|\*|/\*).*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert ELSEWHERE.findall(code) == []
