"""The catalogue of texts: every language is complete, every text is used, and no text is anywhere else."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.requests import Request

import priorveil as pv
from priorveil import catalogue
from priorveil.catalogue import every_language, say
from priorveil.curator import responses
from terminal import run

SOURCE = Path(__file__).resolve().parent.parent.parent / "src" / "priorveil"
# The modules of the answer page and of published results, which speak every language.
SPEAKING = ["interview.js", "disclosure.js", "outcomes.js", "published.js", "language.js", "answer*.js"]
SPEAKING += ["figures.js", "survey_words.js"]
ENGLISH = ["campaign_page.js", "campaigns.js", "levels.js", "notes.js", "survey_choices.js"]
STATIC = SOURCE / "curator/static"
PAGES, PAGES_IN_ENGLISH = (
    "".join(path.read_text(encoding="utf-8") for name in names for path in STATIC.glob(name))
    for names in (SPEAKING, ENGLISH)
)
PYTHON = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
TEXTS = every_language()
OTHERS = sorted(TEXTS.keys() - {"en"})


def test_english_comes_first_and_has_every_key() -> None:
    assert next(iter(TEXTS)) == "en" and {"de", "fr", "es", "ar"} <= {*OTHERS}
    assert all(TEXTS[language].keys() <= TEXTS["en"].keys() for language in OTHERS)


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_for_the_public_is_there_with_the_same_values(language: str) -> None:
    own, english = TEXTS[language], TEXTS["en"]
    assert own.keys() == TEXTS["de"].keys()
    for key, text in own.items():
        assert text.strip() and text != "…", key
        values = [sorted(re.findall(r"\{\w+\}", each)) for each in (text, english[key])]
        assert values[0] == values[1], key


@pytest.mark.parametrize("language", OTHERS)
def test_no_translation_is_left_in_english(language: str) -> None:
    own, english = TEXTS[language], TEXTS["en"]
    assert [key for key, text in own.items() if text == english[key] and len(text.split()) > 2] == []


def test_every_text_is_used_and_no_other() -> None:
    named = {*re.findall(r'"([a-zA-Z0-9]+)"', PAGES + PAGES_IN_ENGLISH + PYTHON)}
    assert TEXTS["en"].keys() <= named, f"not used: {sorted(TEXTS['en'].keys() - named)}"
    said = {*re.findall(r'\b(?:say|phrase|paragraph|quiet|submit|column|section)\("(\w+)"', PAGES)}
    assert said <= TEXTS["de"].keys(), f"not in every language: {sorted(said - TEXTS['de'].keys())}"
    said = {*re.findall(r'\b(?:say|Note)\(\s*"(\w+)"', PYTHON)}
    assert said <= TEXTS["en"].keys(), f"not in the catalogue: {sorted(said - TEXTS['en'].keys())}"


@pytest.mark.parametrize("page", [responses.answer, responses.published])
def test_pages_say_in_every_language_that_they_need_javascript(page: Any) -> None:
    body = bytes(asyncio.run(page(Request({"type": "http"}))).body).decode()
    said = re.findall(r'<p lang="(\w+)" dir="auto">([^<]+JavaScript[^<]*)</p>', body)
    assert [language for language, _ in said] == list(TEXTS)
    assert len({text for _, text in said}) == len(TEXTS)


def test_a_text_needs_its_values() -> None:
    with pytest.raises(KeyError):
        say("methodAssumes", method="mle")


def test_one_text_is_what_everything_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Print, notebook, picture and command line; pages are sent the same texts, and have none of their own."""
    monkeypatch.setitem(catalogue.ENGLISH, "leaning", "These numbers are inclined.")
    plan = pv.design(pv.Prior([0.9, 0.1]), 1.0, pv.Histogram())
    plan.save(tmp_path / "plan.json")
    reports = plan.privatize([0] * 90 + [1] * 10, np.random.default_rng(1)).tolist()
    (tmp_path / "reports.csv").write_text("\n".join(["report", *map(str, reports)]))
    estimate = plan.estimate(plan.tally(reports))
    printed = run("estimate", tmp_path / "plan.json", tmp_path / "reports.csv", "--assume-plan")[1]
    for shown in (str(estimate), estimate._repr_html_(), str(estimate.mean([0, 1])), printed):
        assert "These numbers are inclined." in " ".join(shown.split())
    assert TEXTS["en"]["leaning"] not in PAGES
