"""Surveys in JSON, as the form on the dashboard writes them: the same as in TOML, with tables inside."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from priorveil.errors import InvalidFile, PriorveilError
from priorveil.questions.survey import Survey
from priorveil.questions.survey_reader import read_survey, received_survey
from refusals import raises
from sample_survey_files import TOML

DOCUMENT = tomllib.loads(TOML)
WITH_TABLE = {
    **DOCUMENT,
    "question": [
        {
            key: value
            for key, value in question.items()
            if key not in ("prior", "query") or question["name"] == "quit"
        }
        for question in DOCUMENT["question"]
    ],
    "together": [{"questions": ["smokes", "age"], "prior": {"sheet": "t"}}],
    "tables": {
        "t": [
            {"smokes": "yes", "age": "18 to 58", "share": 0.2},
            {"smokes": "yes", "age": "58 to 98", "share": "0.1"},
            {"smokes": "no", "age": "18 to 98", "share": 0.7},
        ]
    },
}


def read(document: Any) -> Survey:
    return received_survey("survey.json", json.dumps(document).encode())


def test_a_survey_in_json_is_that_in_toml(tmp_path: Path) -> None:
    (tmp_path / "survey.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "survey.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    one, other = read_survey(tmp_path / "survey.toml"), read_survey(tmp_path / "survey.json")
    assert (one.questions, one.epsilon, one.details) == (other.questions, other.epsilon, other.details)
    assert [spec.prior for spec in one.parts] == [spec.prior for spec in other.parts]


def test_a_campaign_is_refused_as_designed_already() -> None:
    with raises(InvalidFile) as raised:
        read({"format": "priorveil-campaign", "title": {"en": "Health"}})
    assert "format" not in str(raised.value)  # it is the whole file that is wrong, not this key


def test_a_file_in_a_folder_may_read_its_tables_but_a_received_one_may_not(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("smokes,count\nyes,20\nno,80\n", encoding="utf-8")
    document = deepcopy(DOCUMENT)
    document["question"][0]["prior"] = {"file": "t.csv"}
    (tmp_path / "survey.json").write_text(json.dumps(document), encoding="utf-8")
    prior = read_survey(tmp_path / "survey.json").parts[0].prior
    assert dict(zip(prior.labels, prior.probabilities.tolist(), strict=True)) == {"yes": 0.2, "no": 0.8}
    with raises(InvalidFile, keys=("question", 0, "prior")) as refused:
        read(document)
    assert "reads no files here" in str(refused.value)


def test_counts_of_few_people_are_refused_as_a_table_of_people_is(tmp_path: Path) -> None:
    document = deepcopy(DOCUMENT)
    document["question"][0]["prior"] = {"file": "t.csv"}
    (tmp_path / "survey.json").write_text(json.dumps(document), encoding="utf-8")
    told = []
    for content in ("smokes,count\nyes,9\nno,80\n", "smokes\n" + 9 * "yes\n" + 80 * "no\n"):
        (tmp_path / "t.csv").write_text(content, encoding="utf-8")
        with pytest.raises(InvalidFile) as refused:
            read_survey(tmp_path / "survey.json")
        told.append(str(refused.value))
    assert told[0] == told[1] and "fewer than 10" in told[0]
    (tmp_path / "t.csv").write_text("smokes,count\nyes,9.5\nno,80\n", encoding="utf-8")
    with pytest.raises(InvalidFile, match="an entry is no whole number of people"):
        read_survey(tmp_path / "survey.json")


def test_a_table_of_sets_may_have_shares() -> None:
    """Its shares were once ignored, and each row counted as one person."""
    options = {"pay": "Pay", "boss": "My boss"}
    question = {
        "name": "worries",
        "text": "What?",
        "kind": "choices",
        "options": options,
        "prior": {"sheet": "t"},
    }
    shares = {"": 0.5, "pay": 0.2, "boss": 0.1, "pay boss": 0.2}
    table = [{"worries": ticked, "share": share} for ticked, share in shares.items()]
    survey = read({"title": "T", "epsilon": 1, "question": [question], "tables": {"t": table}})
    (spec,) = survey.parts
    assert sorted(spec.prior.probabilities.round(6).tolist()) == [0.1, 0.2, 0.2, 0.5]


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*above, key))


@pytest.mark.parametrize(
    "wrong", [None, [], {}, True, "x", -1, 1e308, float("nan"), 10**400, [None], {"sheet": None}]
)
def test_a_wrong_value_anywhere_is_refused_or_read(wrong: Any) -> None:
    read(WITH_TABLE)
    for above in places(WITH_TABLE):
        document: Any = {"": deepcopy(WITH_TABLE)}
        inner, keys = document, ("", *above)
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = wrong
        try:
            read(document[""])
        except PriorveilError as error:
            assert str(error).startswith("survey.json: "), error
