"""The screenshots of the documentation can be taken again: `scripts/pages.py` still fits the curator and its pages."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import priorveil as pv
from priorveil.curator.demo import run_curator
from priorveil.questions.campaign import ask

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "pages.py"


def test_both_pages_are_shown_after_people_have_answered(browser: Any) -> None:
    script = runpy.run_path(str(SCRIPT))
    with run_curator(ask("What kind of work do you do?", pv.Prior(script["KNOWN"]), 1.0)) as curator:
        script["answer_all"](curator, 200)
        script["dashboard"](browser, curator)
        script["answer"](browser, curator)
        assert curator.estimates()["result"]["reports"] == 200
