"""Plan files: they read back to the same plan, say which field is wrong, and fit their published schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import priorveil as pv
from priorveil import documents
from priorveil.errors import InvalidInput, PlanError, UnknownVersion
from priorveil.mechanisms import MECHANISMS
from priorveil.plans import schema
from priorveil.tallies import Tally

THREE = pv.Prior({"no": 0.5, "a little": 0.3, "ja, natürlich": 0.2})
MANY = pv.Prior.zipf(25)
LATENT = pv.Secret([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3]], labels=["poor", "rich"])
IDLE = pv.Secret([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
BETWEEN = pv.PriorSet.interval([0.2, 0.3, 0.1], [0.5, 0.6, 0.3])

MAKERS: dict[str, Callable[[], pv.Plan]] = {
    "closed": lambda: pv.design(THREE, 2.0, pv.Histogram()),
    "table": lambda: pv.design(MANY, 1.0, pv.Histogram()),
    "sum": lambda: pv.design(THREE, 1.0, pv.Sum([0, 0.1, -1e-9], weight=3, offset=0.5)),
    "guess": lambda: pv.design(THREE, pv.Budget(1.0, math.inf), pv.Guess()),
    "distribution": lambda: pv.design(THREE, pv.Budget(0.3, 2.0), pv.Distribution()),
    "grouped": lambda: pv.design(pv.Prior.zipf(400), 1.0, pv.Histogram()),
    "arc": lambda: pv.design(MANY, 1.0, pv.Histogram(), method="arc"),
    "arc, one side": lambda: pv.design(MANY, pv.Budget(1.0, math.inf), pv.Sum(range(25)), method="arc"),
    "arc pool": lambda: pv.design(MANY, 1.0, pv.Distribution(), method="arc"),
    "unary": lambda: pv.design(MANY, 1.0, pv.Histogram(), method="unary"),
    "hashing": lambda: pv.design(MANY, 1.0, pv.Histogram(), method="hashing"),
    "latent": lambda: pv.design(THREE, 0.5, pv.Histogram(), secret=LATENT),
    "scenarios": lambda: pv.design(THREE, 0.5, pv.Histogram(), secret=[LATENT, IDLE]),
    "ldp": lambda: pv.design(THREE, 1.0, pv.Histogram(), notion=pv.LDP()),
    "di": lambda: pv.design(THREE, 1.5, pv.Histogram(), notion=pv.DI()),
    "pufferfish": lambda: pv.design(THREE, 0.5, pv.Guess(), secret=LATENT, notion=pv.Pufferfish([(0, 1)])),
    "finite": lambda: pv.design(pv.PriorSet([[0.5, 0.5], [0.3, 0.7]]), 1.0, pv.Histogram()),
    "interval": lambda: pv.design(BETWEEN, 1.0, pv.Histogram()),
    "ball": lambda: pv.design(pv.PriorSet.ball(THREE, 0.05), 1.0, pv.Sum([1, 2, 3])),
    "one value": lambda: pv.design(pv.Prior({"only": 1.0}), 1.0, pv.Histogram()),
}  # fmt: skip


@pytest.fixture(scope="module")
def plans() -> dict[str, pv.Plan]:
    return {name: make() for name, make in MAKERS.items()}


@pytest.fixture(params=sorted(MAKERS))
def plan(request: pytest.FixtureRequest, plans: dict[str, pv.Plan]) -> pv.Plan:
    return plans[request.param]


def test_every_mechanism_is_here(plans: dict[str, pv.Plan]) -> None:
    assert {plan.mechanism.kind for plan in plans.values()} == set(MECHANISMS)


def test_round_trip(plan: pv.Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan.json")
    again = pv.Plan.load(tmp_path / "plan.json")
    assert again.id == plan.id
    assert again.to_json() == plan.to_json()
    assert again.document() == plan.document()
    assert again.certificate == plan.certificate
    assert repr(again) == repr(plan)
    assert (again.expected_mse, again.efficiency) == (plan.expected_mse, plan.efficiency)
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]


def test_a_loaded_plan_makes_the_same_reports(plan: pv.Plan) -> None:
    values = np.arange(60) % len(plan.labels)
    again = pv.Plan.from_json(plan.to_json())
    draws = [p.privatize([p.labels[v] for v in values], np.random.default_rng(1)) for p in (plan, again)]
    assert np.array_equal(*draws)
    assert np.array_equal(plan.tally(draws[0]).counts, again.tally(draws[1]).counts)


def test_fits_the_schema(plan: pv.Plan) -> None:
    jsonschema.Draft202012Validator(schema()).validate(json.loads(plan.to_json()))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_schema_knows_every_mechanism() -> None:
    kinds = [choice["$ref"].rsplit("/", 1)[1] for choice in schema()["properties"]["mechanism"]["oneOf"]]
    assert sorted(kinds) == sorted(MECHANISMS)


@pytest.mark.parametrize("field", [*pv.design([0.5, 0.5], 1.0, pv.Histogram()).document(), "id"])
def test_the_schema_misses_no_field(field: str, plans: dict[str, pv.Plan]) -> None:
    read = json.loads(plans["table"].to_json())
    del read[field]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(read)


def test_the_id_is_the_hash_of_the_canonical_text(plan: pv.Plan) -> None:
    read = json.loads(plan.to_json())
    assert documents.content_id(read) == read["id"] == plan.id
    assert pv.Plan.from_json(json.dumps(read, sort_keys=True)).id == plan.id


def edited(plan: pv.Plan, edit: Callable[[dict[str, Any]], None], sign: bool) -> str:
    """The plan's file after an edit; `sign` writes the id that fits the edit."""
    read = json.loads(plan.to_json())
    edit(read)
    if sign:
        read["id"] = documents.content_id(read)
    return json.dumps(read)


def assign(*path: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def edit(read: Any) -> None:
        for step in path[:-1]:
            read = read[step]
        read[path[-1]] = value

    return edit


def tell_more(read: dict[str, Any]) -> None:
    """Move weight of the first row from its smallest to its largest entry."""
    row = [int(w) for w in read["mechanism"]["weights"][0]]
    low, high = row.index(min(row)), row.index(max(row))
    row[high], row[low] = row[high] + row[low], 0
    read["mechanism"]["weights"][0] = [str(w) for w in row]


@pytest.mark.parametrize(
    ("field", "edit"),
    [
        ("labels", assign("labels", value=None)),
        ("prior", assign("labels", value=["no", "no", "yes"])),
        ("prior", assign("prior", "kind", value="guessed")),
        ("prior", assign("prior", "weights", 0, value="many")),
        ("prior", assign("prior", "weights", 0, value="0")),
        ("budget", assign("budget", "lower", value="-1")),
        ("budget", assign("budget", value=None)),
        ("notion", assign("notion", "name", value="MIL")),
        ("query", assign("query", "name", value="Median")),
        ("secret", assign("secret", value=[{"labels": ["a"], "rows": [["0.5", "0.2", "0.2"]]}])),
        ("mechanism", assign("mechanism", "kind", value="magic")),
        ("mechanism", assign("mechanism", "weights", 0, 0, value="12")),
        ("mechanism", assign("mechanism", "weights", 0, 0, value="-12")),
        ("certificate", assign("certificate", "lip_lower", value="0.1")),
        ("certificate", assign("certificate", "ldp", value="a lot")),
        ("certificate", assign("certificate", "notion", value="LDP")),
        ("certificate", tell_more),
        ("certificate", assign("budget", "upper", value="0.001")),
        ("expected_mse", assign("expected_mse", value="small")),
        ("lower_bound", assign("lower_bound", value="0.99")),
        ("method", lambda read: read.pop("method")),
        ("why", lambda read: read.pop("why")),
    ],
)
@pytest.mark.parametrize("sign", [True, False])
def test_tampering_names_the_field(
    field: str, edit: Callable[[dict[str, Any]], None], sign: bool, plans: dict[str, pv.Plan]
) -> None:
    with pytest.raises(PlanError) as caught:
        pv.Plan.from_json(edited(plans["closed"], edit, sign))
    assert caught.value.field == field
    assert field in str(caught.value)


@pytest.mark.parametrize(
    "edit",
    [
        assign("why", value="trust me"),
        assign("expected_mse", value="0.6"),
        assign("labels", value=["no", "a little", "very much"]),
        assign("extra", value=1),
        assign("id", value="0" * 64),
    ],
)
def test_harmless_looking_changes_break_the_id(
    edit: Callable[[dict[str, Any]], None], plans: dict[str, pv.Plan]
) -> None:
    with pytest.raises(PlanError) as caught:
        pv.Plan.from_json(edited(plans["closed"], edit, sign=False))
    assert caught.value.field == "id"


def test_fields_that_nobody_knows_are_refused(plans: dict[str, pv.Plan]) -> None:
    with pytest.raises(PlanError):
        pv.Plan.from_json(edited(plans["closed"], assign("extra", value=1), sign=True))


@pytest.mark.parametrize("version", [2, "1", None, 0])
def test_unknown_versions(version: object, plans: dict[str, pv.Plan]) -> None:
    with pytest.raises(UnknownVersion, match="version"):
        pv.Plan.from_json(edited(plans["closed"], assign("version", value=version), sign=True))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", '{"format": "other"}', '"priorveil-plan"'])
def test_what_is_no_plan(text: str) -> None:
    with pytest.raises(PlanError):
        pv.Plan.from_json(text)


def test_a_plan_for_code_cannot_be_saved(tmp_path: Path) -> None:
    plan = pv.design(THREE, 1.0, pv.Convex(lambda p: (p**2).sum(axis=1)))
    with pytest.raises(InvalidInput, match="code"):
        plan.save(tmp_path / "plan.json")
    assert list(tmp_path.iterdir()) == []
    assert ("id", "(cannot be saved)") in plan.summary()


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, plans: dict[str, pv.Plan]) -> None:
    target = tmp_path / "plan.json"
    plans["closed"].save(target)
    before = target.read_bytes()
    broken = pv.design(THREE, 1.0, pv.Convex(lambda p: (p**2).sum(axis=1)))
    with pytest.raises(InvalidInput):
        broken.save(target)
    assert target.read_bytes() == before


def test_repr_says_both_levels(plan: pv.Plan) -> None:
    text = repr(plan)
    assert text.startswith("Plan(")
    assert f"LIP {plan.certificate.lip:.4g}" in text
    assert f"LDP {plan.certificate.ldp:.4g}" in text
    assert "\n" not in text
    assert plan._repr_html_().count("<tr>") == len(plan.summary())


def test_labels_keep_their_types() -> None:
    plan = pv.Plan.from_json(pv.design(pv.Prior({1: 0.5, "1": 0.5}), 1.0, pv.Histogram()).to_json())
    assert plan.labels == (1, "1")


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("expected_mse", {"expected_mse": "0.0", "lower_bound": "0.0"}),
        ("no_report", {"no_report": "0.9999"}),
        ("expected_mse", {"no_report": "nan"}),
        ("method", {"method": "magic"}),
        ("query", {"query": {"name": "Sum", "values": ["1.0"], "weight": "1.0", "offset": "0.0"}}),
        ("budget", {"budget": {"lower": "1e21", "upper": "1e21"}}),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused_though_its_id_fits(
    field: str, change: dict[str, object]
) -> None:
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Histogram())
    forged = {**plan.document(), **change}
    with pytest.raises(PlanError) as refusal:
        pv.Plan.from_json(json.dumps({"id": documents.content_id(forged), **forged}))
    assert refusal.value.field == field


def test_a_notebook_never_runs_what_a_plan_says() -> None:
    plan = replace(pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Histogram()), why="<script>alert(1)</script>")
    assert "<script>" not in plan._repr_html_()


def test_a_plan_for_a_gain_runs_but_cannot_be_saved() -> None:
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Convex(lambda p: (p**3).sum(axis=1)))
    tally = plan.tally(plan.privatize([0, 1, 2, 2]))
    assert plan.estimate(tally).reports == 4
    with pytest.raises(InvalidInput, match="cannot be saved"):
        plan.to_json()


@pytest.mark.parametrize("counts", [["1", "1"], ["5", "0", "0"], ["-1", "1", "3"]])
def test_a_tally_that_the_plan_cannot_have_counted_is_refused(counts: list[str]) -> None:
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Histogram())
    made = json.loads(plan.tally(plan.privatize([0, 1, 2])).to_json())
    forged = json.dumps({**made, "counts": counts, "shape": [len(counts)]})
    with pytest.raises(InvalidInput):
        plan.estimate(Tally.from_json(forged))


@pytest.mark.parametrize("epsilon", [1e21, 1e300, 1e-17, "1", True, float("nan")])
def test_senseless_levels_are_refused(epsilon: float) -> None:
    with pytest.raises(InvalidInput):
        pv.design(pv.Prior([0.5, 0.3, 0.2]), epsilon, pv.Histogram())
