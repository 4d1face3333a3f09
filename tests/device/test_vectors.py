"""The vectors shared with JavaScript hold in Python, and leave no mechanism out."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from priorveil.device.wire import hex_bytes, unpack_words, words_to_hex
from priorveil.mechanisms import MECHANISMS
from priorveil.mechanisms.randomness import BytesSource
from priorveil.plans import Plan
from priorveil.questions.campaign import Campaign
from vector_reports import report_array, report_to_json

FOLDER = Path(__file__).resolve().parent.parent.parent / "clients" / "js" / "vectors"
VECTORS = sorted(FOLDER.glob("*.json"))
CAMPAIGNS = sorted(FOLDER.glob("campaigns/*.json"))


def read(path: Path) -> tuple[Plan, list[dict[str, Any]]]:
    vector = json.loads(path.read_text(encoding="utf-8"))
    return Plan.from_json(json.dumps(vector["plan"])), vector["cases"]


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_reports_are_those_of_the_vector(path: Path) -> None:
    plan, cases = read(path)
    assert len(cases) >= 20
    for case in cases:
        randomness = bytes.fromhex(case["randomness"])
        value = tuple(case["value"]) if isinstance(case["value"], list) else case["value"]
        sources = [BytesSource(randomness) for _ in range(2)]
        one, many = plan.privatize(value, sources[0]), plan.privatize([value], sources[1])
        assert [source.used for source in sources] == [len(randomness)] * 2
        if not plan.domain.rounds:
            assert len(randomness) == 8 * plan.mechanism.draws_per_report
        assert (
            report_to_json(plan.mechanism, one) == report_to_json(plan.mechanism, many[0]) == case["report"]
        )


@pytest.mark.parametrize("name", ["table-grid", "table-joint-numbers"])
def test_the_vectors_of_a_grid_have_ties_that_further_words_decide(name: str) -> None:
    plan, cases = read(FOLDER / f"{name}.json")
    words = [len(case["randomness"]) // 16 - plan.mechanism.draws_per_report for case in cases]
    assert set(words) == {1, 2, 3}


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_reports_are_accepted_as_they_stand_there(path: Path) -> None:
    plan, cases = read(path)
    sent = [case["report"] for case in cases]
    arrived = report_array(plan.mechanism, sent)
    assert plan.mechanism.accepts(arrived).all()
    assert [report_to_json(plan.mechanism, report) for report in arrived] == sent


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_foreign_reports_are_refused(path: Path) -> None:
    mechanism = read(path)[0].mechanism
    for report in json.loads(path.read_text(encoding="utf-8"))["foreign"]:
        if mechanism.width:
            words = hex_bytes(report, 8 * mechanism.width)
            assert words is None or not mechanism.accepts(unpack_words(mechanism.width, words)).any()
        else:
            assert not mechanism.accepts(report_array(mechanism, [report])).any()


def test_every_mechanism_has_a_vector() -> None:
    assert {read(path)[0].mechanism.kind for path in VECTORS} == set(MECHANISMS)


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.stem)
def test_submissions_are_those_of_the_vector(path: Path) -> None:
    vector = json.loads(path.read_text(encoding="utf-8"))
    campaign = Campaign.from_json(json.dumps(vector["campaign"]))
    form = campaign.form_for(None)
    for case in vector["cases"]:
        source = BytesSource(bytes.fromhex(case["randomness"]))
        draw = form.draw(source)
        names = campaign.questions_to_ask(None, draw)
        levels = campaign.attribute_values(case["answers"], names)
        words = form.privatize(levels, draw, source)
        found = {
            "draw": list(draw),
            "questions": list(names),
            "levels": levels,
            "report": words_to_hex(words),
        }
        assert found == {name: case[name] for name in found} and source.used == len(source.data)
        assert form.accepts(words).all()
    for report in vector["foreign"]:
        sent = hex_bytes(report, 8 * form.width)
        assert sent is None or not form.accepts(unpack_words(form.width, sent)).any()
    levels = campaign.promise["everyone"]
    assert vector["levels"] == pytest.approx(
        {"lip": levels.lip, "lipLower": levels.lip_lower, "lipUpper": levels.lip_upper, "ldp": levels.ldp}
    )


def test_the_forms_of_all_cohorts_draw_from_the_same_words() -> None:
    vector = json.loads((FOLDER / "draws" / "cohorts.json").read_text(encoding="utf-8"))
    campaign = Campaign.from_json(json.dumps(vector["campaign"]))
    for case in vector["cases"]:
        source = BytesSource(bytes.fromhex(case["randomness"]))
        found = {form: list(draw) for form, draw in campaign.draw_forms(source).items()}
        assert found == case["draws"] and source.used == len(source.data)
    for name, form in campaign.cohorts.items():
        seen = {tuple(case["draws"][form.id]) for case in vector["cases"]}
        assert seen == set(product(*(range(len(slot.parts)) for slot in form.slots))), name


def test_there_are_campaigns_with_every_kind_of_question_and_slot() -> None:
    campaigns = [json.loads(path.read_text(encoding="utf-8"))["campaign"] for path in CAMPAIGNS]
    questions = [question for campaign in campaigns for question in campaign["questions"]]
    assert {question["kind"] for question in questions} == {"choice", "choices", "number"}
    assert any(question["asked_if"] for question in questions) and any(q["edges"] for q in questions)
    slots = [campaign["cohorts"]["everyone"]["slots"] for campaign in campaigns]
    assert {len(parts) > 1 for form in slots for parts in form} == {True, False}
    assert any(len(form) > 1 for form in slots)
