"""The pages hold to their content-security policy: nothing inline, nothing from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
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


def catalogue() -> dict[str, dict[str, str]]:
    """The texts of the respondent's page and of the published sheet, by language and key."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed: the texts of the pages are not compared")
    code = f"{SERVED['texts.js'].read_text(encoding='utf-8')}\nconsole.log(JSON.stringify(TEXTS));"
    ran = subprocess.run(
        [node, "--input-type=module"], input=code, capture_output=True, text=True, check=True
    )
    texts: dict[str, dict[str, str]] = json.loads(ran.stdout)
    return texts


def test_every_text_is_there_in_every_language_with_the_same_values() -> None:
    texts = catalogue()
    assert set(texts) >= {"en", "de", "fr", "es", "ar"}
    for language, own in texts.items():
        assert list(own) == list(texts["en"]), language
        for key, text in own.items():
            assert text.strip() and text != "…", f"{language} {key}"
            values = [sorted(re.findall(r"\{\w+\}", t)) for t in (text, texts["en"][key])]
            assert values[0] == values[1], f"{language} {key}"


def test_the_pages_use_every_text_and_no_other() -> None:
    code = "".join(
        SERVED[name].read_text(encoding="utf-8") for name in ("answer.js", "published.js", "language.js")
    )
    named = set(re.findall(r'"([a-zA-Z0-9]+)"', code))
    keys = set(catalogue()["en"])
    assert keys <= named, f"not used: {sorted(keys - named)}"
    said = set(re.findall(r'\b(?:say|phrase|paragraph|quiet|submit|column|section)\("(\w+)"', code))
    assert said <= keys, f"not in the catalogue: {sorted(said - keys)}"


def test_no_translation_is_left_in_english() -> None:
    texts = catalogue()
    same = {
        (language, key)
        for language, own in texts.items()
        for key, text in own.items()
        if language != "en" and text == texts["en"][key] and len(text.split()) > 2
    }
    assert same == set()
