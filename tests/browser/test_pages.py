"""The pages hold to their content-security policy: nothing inline, nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).resolve().parent.parent.parent / "src" / "priorveil" / "curator" / "static"
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
    assert named and all((STATIC / name).is_file() for name in named)


@pytest.mark.parametrize("script", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_scripts_write_no_html_and_load_from_here(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    for name in re.findall(r'from "([^"]+)"', text):
        assert name.startswith("/static/") and (STATIC / name.removeprefix("/static/")).is_file()


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_nothing_comes_from_elsewhere(path: Path) -> None:
    code = re.sub(r"^\s*(?://|\*|/\*).*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert ELSEWHERE.findall(code) == []
