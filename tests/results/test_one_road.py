"""A plan, a campaign, a file and the curator: from the tally on, the same functions make the result."""

from __future__ import annotations

from pathlib import Path

import pytest

import priorveil as pv
from function_trace import WORDS_OF_QUESTIONS, functions_since
from priorveil.curator.results import campaign_results
from priorveil.curator.store import FormTally
from priorveil.questions.campaign import Campaign, ask_with
from priorveil.results.findings import View, result_of
from priorveil.tables import estimate_table, privatize_table
from terminal import run


@pytest.fixture(scope="module")
def plan() -> pv.Plan:
    return pv.design(pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2}), 1.0, pv.Distribution())


@pytest.fixture(scope="module")
def campaign(plan: pv.Plan) -> Campaign:
    return ask_with("What?", plan, smallest_count=1)


@pytest.mark.parametrize("output", [(), ("--csv",), ("--json",)])
def test_a_plan_and_a_campaign_run_the_same_functions(
    plan: pv.Plan, campaign: Campaign, tmp_path: Path, output: tuple[str, ...]
) -> None:
    ran = []
    for name, forms, column in (("plan", plan, "answer"), ("campaign", campaign, ())):
        (tmp_path / f"{name}.json").write_text(forms.to_json(), encoding="utf-8")
        privatize_table({"answer": list("aabc") * 50}, forms, column, tmp_path / f"{name}.csv")
        words = ("estimate", tmp_path / f"{name}.json", tmp_path / f"{name}.csv", *output)
        ran.append(functions_since("tables/tallies.py:Tallies.of", lambda words=words: run(*words)))
    assert ran[0] ^ ran[1] <= WORDS_OF_QUESTIONS
    assert {"results/form_estimates.py:estimate_forms", "results/findings.py:result_of"} <= ran[0]


def test_the_curator_runs_the_functions_of_a_file(campaign: Campaign) -> None:
    table = privatize_table({"answer": list("aabc") * 50}, campaign).table
    tallies = estimate_table(table, campaign).tallies
    ((form, parts),) = ((campaign.form_for(None), own) for own in tallies.by.values())
    stored = {form.id: FormTally(parts[0].reports, parts)}
    ran = [
        functions_since("results/form_estimates.py:estimate_forms", action)
        for action in (
            lambda: result_of(estimate_table(table, campaign), View(0.95)),
            lambda: campaign_results(campaign, stored, "auto", 0.95, "open"),
        )
    ]
    assert ran[0] == ran[1]
