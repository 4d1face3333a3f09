"""The vectors shared with JavaScript hold in Python, and leave no mechanism out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from byte_source import BytesSource
from priorveil.collect.wire import pack_report, report_to_json, unpack_reports
from priorveil.mechanisms import MECHANISMS
from priorveil.plans import Plan

FOLDER = Path(__file__).resolve().parent.parent.parent / "clients" / "js" / "vectors"
VECTORS = sorted(FOLDER.glob("*.json"))


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
def test_reports_arrive_as_they_were_sent(path: Path) -> None:
    plan, cases = read(path)
    sent = [pack_report(plan.mechanism, case["report"]) for case in cases]
    arrived = unpack_reports(plan.mechanism, b"".join(words for words in sent if words is not None))
    assert plan.mechanism.accepts(arrived).all()
    assert [report_to_json(plan.mechanism, report) for report in arrived] == [
        case["report"] for case in cases
    ]


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_foreign_reports_are_refused(path: Path) -> None:
    mechanism = read(path)[0].mechanism
    for report in json.loads(path.read_text(encoding="utf-8"))["foreign"]:
        words = pack_report(mechanism, report)
        assert words is None or not mechanism.accepts(unpack_reports(mechanism, words)).any()


def test_every_mechanism_has_a_vector() -> None:
    assert {read(path)[0].mechanism.kind for path in VECTORS} == set(MECHANISMS)
