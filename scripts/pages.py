"""The screenshots of the pages in README.md and docs/curator.md.

`PYTHONPATH=tests python scripts/pages.py` writes them to docs/figures: a curator on this machine, simulated people
who answer it over HTTP, and the browser of the tests, which looks at both pages.
"""

from __future__ import annotations

import base64
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import priorveil as pv
from browser.stage import opened
from browser.steps import choose
from priorveil.curator.demo import RunningCurator, run_curator, send_answers
from priorveil.questions.campaign import ask

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
KNOWN = {"Private": 0.69, "Self-employed": 0.11, "Government": 0.13, "None": 0.07}
REALLY = [0.62, 0.14, 0.13, 0.11]
PEOPLE = 6000
TEXTS = {
    "asked_by": "The town of Example, office of statistics",
    "purpose": "To plan buses for people who work",
    "contact": "survey@example.org",
}


def answer_all(curator: RunningCurator, people: int) -> None:
    """Let simulated people answer the campaign over HTTP."""
    (question,) = curator.campaign.questions
    answers = np.random.default_rng(7).choice(list(KNOWN), people, p=REALLY)
    for _ in send_answers(curator, [{question.name: label} for label in answers.tolist()]):
        pass


def dashboard(browser: Any, curator: RunningCurator) -> Any:
    """The curator's page, with the estimates of everybody's reports."""
    browser.size(960, 870, scale=1.5)
    browser.open(f"{curator.url}/dashboard#{curator.campaign.id}")
    browser.see("input[type=password]").send_keys(curator.token)
    browser.click("button", "Sign in")
    browser.see("table", "Private")
    return browser.driver


def answer(browser: Any, curator: RunningCurator) -> Any:
    """A respondent's page, on a phone, before anything is sent."""
    browser.size(400, 870, scale=1.5, mobile=True)
    browser.open(f"{curator.url}/answer/{curator.campaign.id}")
    choose(browser, "Self-employed")
    return browser.driver


def kept(driver: Any, name: str) -> None:
    """Write what the browser shows, in few colours: a page needs no more."""
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {})
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    picture.quantize(64, dither=Image.Dither.NONE).save(FIGURES / f"{name}.png", optimize=True)


def main() -> None:
    """Take both screenshots."""
    campaign = ask("What kind of work do you do?", pv.Prior(KNOWN), 1.0, **TEXTS)
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        sys.exit("Chromium and ChromeDriver are not installed: run scripts/system-packages")
    with tempfile.TemporaryDirectory() as folder, run_curator(campaign) as curator:
        answer_all(curator, PEOPLE)
        browser = opened(chromium, driver, Path(folder))
        browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        try:
            kept(dashboard(browser, curator), "page-dashboard")
            kept(answer(browser, curator), "page-answer")
        finally:
            browser.driver.quit()


if __name__ == "__main__":
    main()
