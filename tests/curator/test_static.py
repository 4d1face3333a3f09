"""The scripts of the pages without a page: their own tests, run by Node, and what they say beside what Python says."""

from __future__ import annotations

import json
import subprocess
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pytest

from nodejs import node, run_module
from patience import PATIENCE
from priorveil import LDP, LIP, Distribution, Histogram, Linear, Prior, PriorSet, Sum, design
from priorveil.questions.campaign import ask_with
from priorveil.reading.precision_notes import promised_precision
from priorveil.results.findings import finding_of
from priorveil.words.notes import sentence
from priorveil.words.surveys import likely_afterwards

HERE = Path(__file__).parent / "static"
PAGES = "--import=./register.mjs"


def test_the_scripts_of_the_pages_pass_their_tests() -> None:
    command = [*node(), PAGES, "--test", "."]
    ran = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "# pass 0" not in ran.stdout


AFTERWARDS = """
import { readFileSync } from "node:fs";
import { likelyAfterwards } from "/static/levels.js";
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((levels) => likelyAfterwards(...levels))));
"""


def test_what_epsilon_means_is_computed_as_in_python() -> None:
    cases = [[0.1, 1.0, 1.0, 2.0], [0.1, 4.0, 4.0, 6.0], [0.2, 0.5, 3.0, 0.7], [0.1, 30.0, 30.0, 40.0]]
    assert run_module(AFTERWARDS, cases, HERE, PAGES) == pytest.approx([likely_afterwards(*c) for c in cases])


FIRST_PAGE = """
import { readFileSync } from "node:fs";
import { beliefs, seenByOthers } from "/static/disclosure.js";
import { speaker } from "/static/language.js";
import { readCampaign } from "/static/priorveil.js";
const found = [];
for (const text of JSON.parse(readFileSync(0, "utf8"))) {
  const { seen, levels } = seenByOthers(await readCampaign(text));
  found.push({ seen: speaker("en").say(seen), after: beliefs(levels).after });
}
console.log(JSON.stringify(found));
"""
GRADES = {
    0.5: "hidden",
    1.0: "hidden",
    1.5: "partly hidden",
    2.9: "hardly hidden",
    3.0: "not hidden",
    5.0: "not hidden",
}


def test_the_words_of_the_first_page_follow_from_the_level() -> None:
    """LIP where the prior is known, and LDP where it is assumed; in the words of `campaign check`."""
    cases = [(epsilon, known) for epsilon in GRADES for known in (True, False)]
    campaigns = []
    for epsilon, known in cases:
        prior = Prior([0.24, 0.76], ["yes", "no"], assumed=not known)
        plan = design(prior, epsilon, Distribution(), notion=LIP() if known else LDP())
        campaigns.append(ask_with(f"Do you smoke, at {epsilon}, {known}?", plan))
    found = run_module(FIRST_PAGE, [campaign.to_json() for campaign in campaigns], HERE, PAGES)
    for (epsilon, _), campaign, page in zip(cases, campaigns, found, strict=True):
        levels = campaign.promise["everyone"]
        assert page["seen"] == GRADES[epsilon]
        assert (page["seen"] == "not hidden") == (epsilon >= 3) == bool(campaign.warnings)
        after = likely_afterwards(0.1, levels.lip, levels.lip, levels.ldp)
        assert 0 <= page["after"] - after < 0.0011


NOTES = """
import { readFileSync } from "node:fs";
import { speaker } from "/static/language.js";
import { sentence } from "/static/notes.js";
const speak = speaker("en");
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((note) => sentence(note, speak))));
"""


def test_pages_put_notes_into_the_words_of_python() -> None:
    prior = Prior({"a": 0.62, "b": 0.27, "c": 0.11})
    table = Prior.joint({(a, b): 0.25 for a in "xy" for b in (0.0, 8.0)}, names=("g", "n"), grids=("n",))
    sets = PriorSet([prior, Prior({"a": 0.6, "b": 0.3, "c": 0.1})])
    plans = [design(known, 1.3, query) for known in (prior, sets) for query in (Histogram(), Sum([0, 1, 5]))]
    plans += [design(prior, 1.3, Distribution()), design(table, 2.0, Linear.averages(table, "n", "g"))]
    notes = []
    for plan, people in product(plans, (30, 3_000)):
        labels = [*plan.labels, *[plan.labels[-1]] * 3]  # not as the prior expects
        rng = np.random.default_rng(1)
        reports = plan.privatize([labels[code] for code in rng.integers(len(labels), size=people)], rng)
        for method in ("auto", "mle") if plan.identifiable else ("auto",):
            figures = finding_of(plan.estimate(plan.tally(reports), method)).figures
            assert figures is not None
            own = (figures.warning, figures.reached, *figures.notes, promised_precision(plan.precision))
            notes += [note for note in own if note is not None]
    assert len({note.code for note in notes}) > 15
    shown = run_module(NOTES, json.loads(msgspec.json.encode(notes)), HERE, PAGES)
    said = [sentence(str(note).removesuffix(".")) for note in notes]
    assert [text.replace(" %", "%") for text in shown] == [text.replace(" %", "%") for text in said]
