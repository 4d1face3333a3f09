"""Plan files: they read back to the same plan, say which field is wrong, and fit their published schema."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
import sample_plans
from priorveil.errors import InvalidInput, PlanError, UnknownVersion
from priorveil.mechanisms import MECHANISMS, Table
from priorveil.plans import document as documents
from priorveil.plans import schema
from priorveil.plans.structure import PARAMETERS
from priorveil.reading.families import reader_of
from priorveil.reading.tally import Tally
from priorveil.words.plans import plan_facts
from refusals import raises
from sample_plans import PAIRS, pair_plan

THREE = pv.Prior({"no": 0.5, "a little": 0.3, "ja, natürlich": 0.2})
MANY = pv.Prior.zipf(25)
LATENT = pv.Secret([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3]], labels=["poor", "rich"])
IDLE = pv.Secret([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
BETWEEN = pv.PriorSet.interval([0.2, 0.3, 0.1], [0.5, 0.6, 0.3])
LINEAR = {"name": "Linear", "names": None, "unbiased": False}

MAKERS: dict[str, Callable[[], pv.Plan]] = {
    "closed": lambda: pv.design(THREE, 2.0, pv.Histogram()),
    "table": lambda: pv.design(MANY, 1.0, pv.Histogram()),
    "sum": lambda: pv.design(THREE, 1.0, pv.Sum([0, 0.1, -1e-9])),
    "guess": lambda: pv.design(THREE, pv.Budget(1.0, math.inf), pv.Guess()),
    "distribution": lambda: pv.design(THREE, pv.Budget(0.3, 2.0), pv.Distribution()),
    "grouped": lambda: pv.design(pv.Prior.zipf(400), 1.0, pv.Histogram()),
    "arc": lambda: pv.design(MANY, 1.0, pv.Histogram(), method="arc"),
    "arc, one side": lambda: pv.design(MANY, pv.Budget(1.0, math.inf), pv.Sum(range(25)), method="arc"),
    "arc pool": lambda: pv.design(MANY, 1.0, pv.Distribution(), method="arc"),
    "unary": lambda: pv.design(MANY, 1.0, pv.Histogram(), method="unary"),
    "subset": lambda: pv.design(MANY, 1.0, pv.Distribution(), notion=pv.LDP()),
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
    assert again == plan and hash(again) == hash(plan) and len({again, plan}) == 1
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


def test_a_new_query_is_read_from_files_without_a_change_of_the_schema() -> None:
    class Extremes(pv.Linear):
        """How many people have the first value, and how many the last."""

        def __init__(self, size: int) -> None:
            self.size = size
            super().__init__(np.eye(size)[[0, -1]])

        def document(self) -> dict[str, Any]:
            return {"name": "Extremes", "size": self.size}

        @classmethod
        def read(cls, document: Mapping[str, Any]) -> Extremes:
            return cls(int(document["size"]))

    plan = pv.design([0.5, 0.3, 0.2], 1.0, Extremes(3))
    text = plan.to_json()
    jsonschema.Draft202012Validator(schema()).validate(json.loads(text))
    again = pv.Plan.from_json(text)
    assert again.id == plan.id and type(again.query) is Extremes
    assert again.estimate(again.tally([0, 0, 1])).values.shape == (2,)


def test_the_schema_knows_every_mechanism() -> None:
    assert list(PARAMETERS) == list(MECHANISMS)
    *_, other = schema()["properties"]["mechanism"]["anyOf"]
    assert other["properties"]["kind"]["not"]["enum"] == list(MECHANISMS)


@pytest.mark.parametrize("field", [*pv.design([0.5, 0.5], 1.0, pv.Histogram()).document(), "id"])
def test_the_schema_misses_no_field(field: str, plans: dict[str, pv.Plan]) -> None:
    read = json.loads(plans["table"].to_json())
    del read[field]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(read)


def test_plans_with_other_content_or_another_gain_differ(plans: dict[str, pv.Plan]) -> None:
    assert len(set(plans.values())) == len(plans)
    assert next(iter(plans.values())) != "a plan"
    prior = pv.Prior([0.5, 0.3, 0.2])
    one, two = (pv.design(prior, 1.0, pv.Convex(lambda r, k=k: k * (r**2).sum(axis=1))) for k in (1, 1))
    assert one.id == two.id and one != two and one == one


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
        ("labels", assign("labels", value=["no", "no", "yes"])),
        ("labels", assign("labels", value=[])),
        ("labels", assign("labels", value=["no", None, "yes"])),
        ("labels", assign("labels", value=["no", ["a", ["b"]], "yes"])),
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


def leaves(read: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths to everything in a document that is not made of parts."""
    if isinstance(read, dict | list) and read:
        steps = read.items() if isinstance(read, dict) else enumerate(read)
        return [leaf for step, part in steps for leaf in leaves(part, (*path, step))]
    return [path]


FIELDS = {"reading_prior", *pv.design([0.5, 0.5], 1.0, pv.Histogram()).document(), "id", "file"}
OURS = ["closed", "sum", "distribution", "latent", "scenarios", "pufferfish", "finite", "interval", "ball",
        "one value"]  # fmt: skip
SAMPLES = ["arc", "arc_pool", "unary", "subset", "hashing", "grouped"]


def small(name: str, plans: dict[str, pv.Plan]) -> pv.Plan:
    """A plan of a few values: quick to prove, so that many forgeries can be tried."""
    return sample_plans.named_plan(name) if name in SAMPLES else plans[name]


def near_misses(leaf: object) -> list[object]:
    """What someone might write instead: a little more, a little less, something of another kind."""
    if isinstance(leaf, str) and leaf.lstrip("-").isdigit():
        return [str(int(leaf) + 1), str(int(leaf) - 1), f" {leaf}", f"{leaf}.0", int(leaf), "-" + leaf]
    if isinstance(leaf, str):
        return [leaf + "1", leaf + " ", "", "nan", "-1", "1e400", "\ud800"]
    if isinstance(leaf, int):
        return [leaf + 1, leaf - 1, str(leaf), float(leaf), leaf + 2**64, True]
    return ["", 0, [0], {"kind": "fixed"}]


@settings(max_examples=80, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", [*OURS, *SAMPLES])
def test_no_leaf_can_be_changed_unnoticed(name: str, plans: dict[str, pv.Plan], data: st.DataObject) -> None:
    """Whatever is changed is refused with a field; signed anew, it is refused or another plan: never the same."""
    plan = small(name, plans)
    read = json.loads(plan.to_json())
    path = data.draw(st.sampled_from(leaves(read)))
    old: Any = read
    for step in path:
        old = old[step]
    strange = [None, [], {}, True, -1, 10**400, float("nan"), float("inf"), [[]], "\0", "9" * 5000]
    new = data.draw(
        st.sampled_from([*near_misses(old), *strange]).filter(lambda v: json.dumps(v) != json.dumps(old))
    )
    edit = assign(*path, value=new)
    with pytest.raises(PlanError) as caught:
        pv.Plan.from_json(edited(plan, edit, sign=False))
    assert caught.value.field in FIELDS
    try:
        forged = edited(plan, edit, sign=True)
    except ValueError:
        return  # there is no canonical text of NaN, nor of half a character
    try:
        other = pv.Plan.from_json(forged)
    except PlanError as error:
        assert error.field in FIELDS
    else:
        assert path == ("id",) or other.id != plan.id
        assert other.certificate.lip <= max(other.budget.lower, other.budget.upper)


@pytest.mark.parametrize("name", ["closed", *SAMPLES])
@given(st.data())
def test_no_part_can_be_left_out(name: str, plans: dict[str, pv.Plan], data: st.DataObject) -> None:
    plan = small(name, plans)
    read = json.loads(plan.to_json())
    path = data.draw(st.sampled_from(leaves(read)))

    def edit(read: Any) -> None:
        for step in path[:-1]:
            read = read[step]
        del read[path[-1]]

    for sign in (False, True):
        if path != ("id",) or not sign:
            with pytest.raises(PlanError) as caught:
                pv.Plan.from_json(edited(plan, edit, sign))
            assert caught.value.field in FIELDS


BARE = """
import sys

class Only:
    known = {*sys.stdlib_module_names, "priorveil", "numpy", "flint", "msgspec"}

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.known:
            raise ImportError(f"{name} is not there")

sys.meta_path.insert(0, Only())
for gone in [name for name in sys.modules if name.split(".")[0] not in Only.known]:
    del sys.modules[gone]
from priorveil import Plan

for path in sys.argv[1:]:
    plan = Plan.load(path)
    plan.privatize(plan.labels[0])
    reports = plan.privatize([plan.labels[0]] * 50)
    print(plan.mechanism.kind, plan.tally(reports).reports)
"""


def test_devices_need_numpy_exact_arithmetic_and_decoding_alone(
    plans: dict[str, pv.Plan], tmp_path: Path
) -> None:
    """Every other package is hidden: plans are loaded, proven and run all the same."""
    paths = [tmp_path / f"{i}.json" for i in range(len(plans))]
    for plan, path in zip(plans.values(), paths, strict=True):
        plan.save(path)
    done = subprocess.run(
        [sys.executable, "-c", BARE, *map(str, paths)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{plan.mechanism.kind} 50" for plan in plans.values()]


@pytest.mark.parametrize(
    "edit",
    [
        assign("why", value="trust me"),
        assign("expected_mse", value="0.6"),
        assign("labels", value=["no", "a little", "very much"]),
        assign("id", value="0" * 64),
    ],
)
def test_harmless_looking_changes_break_the_id(
    edit: Callable[[dict[str, Any]], None], plans: dict[str, pv.Plan]
) -> None:
    with pytest.raises(PlanError) as caught:
        pv.Plan.from_json(edited(plans["closed"], edit, sign=False))
    assert caught.value.field == "id"


@pytest.mark.parametrize("sign", [True, False])
@pytest.mark.parametrize(
    "path", [("extra",), ("budget", "extra"), ("mechanism", "extra"), ("prior", "extra")]
)
def test_fields_that_nobody_knows_are_refused(
    path: tuple[str, ...], sign: bool, plans: dict[str, pv.Plan]
) -> None:
    with raises(PlanError, field=path[0]):
        pv.Plan.from_json(edited(plans["closed"], assign(*path, value=1), sign))


def test_what_an_error_quotes_of_a_document_is_short_and_printable(plans: dict[str, pv.Plan]) -> None:
    for path in (("a\x1b[31m\nb" * 100,), ("mechanism", "\u202e" * 1000), ("prior", "kind")):
        with pytest.raises(PlanError) as refused:
            pv.Plan.from_json(edited(plans["closed"], assign(*path, value="\x07" * 1000), sign=True))
        assert refused.value.advice.isprintable() and len(refused.value.advice) < 2000


@pytest.mark.parametrize("version", [2, "1", None, 0])
def test_unknown_versions(version: object, plans: dict[str, pv.Plan]) -> None:
    """Only a file of a later version asks for a later release."""
    with raises(UnknownVersion, field="version") as error:
        pv.Plan.from_json(edited(plans["closed"], assign("version", value=version), sign=True))
    assert ("update priorveil" in str(error.value)) == (version == 2)


def test_a_plan_for_code_cannot_be_saved(tmp_path: Path) -> None:
    plan = pv.design(THREE, 1.0, pv.Convex(lambda p: (p**2).sum(axis=1)))
    with raises(InvalidInput, argument="query"):
        plan.save(tmp_path / "plan.json")
    assert list(tmp_path.iterdir()) == []
    assert ("id", "(cannot be saved)") in plan_facts(plan)


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


def test_a_printed_plan_is_its_summary(plan: pv.Plan) -> None:
    lines = str(plan).splitlines()
    assert [tuple(re.split(" {2,}", line, maxsplit=1)) for line in lines] == plan_facts(plan)


def test_labels_keep_their_types() -> None:
    plan = pv.Plan.from_json(pv.design(pv.Prior({1: 0.5, "2": 0.5}), 1.0, pv.Histogram()).to_json())
    assert plan.labels == (1, "2")


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("expected_mse", {"expected_mse": "0.0", "lower_bound": "0.0"}),
        ("no_report", {"no_report": "0.9999"}),
        ("no_report", {"no_report": "nan"}),
        ("method", {"method": "magic"}),
        ("query", {"query": {**LINEAR, "matrix": [["1.0"]]}}),
        ("query", {"query": {**LINEAR, "matrix": [["1.0", ["2.0"], "3.0"]]}}),
        ("query", {"query": {**LINEAR, "matrix": {"kind": "margins", "kept": [[0]]}}}),
        ("query", {"query": {**LINEAR, "matrix": "1.0"}}),
        ("query", {"query": {**LINEAR, "matrix": ["01x"]}}),
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


@pytest.mark.parametrize(("kind", "query"), PAIRS)
def test_a_file_cannot_state_a_better_error_than_its_mechanism_has(kind: str, query: str) -> None:
    """A thousandth less is refused. The bound itself may be stated: a file does not prove it."""
    plan = pair_plan(kind, query)
    found = plan.reader.error(plan.query, plan.reference)
    assert found == pytest.approx(plan.expected_mse, rel=1e-9)

    def stated(expected: float, bound: float) -> pv.Plan:
        said = {"expected_mse": str(expected), "lower_bound": str(bound)}
        return pv.Plan.from_json(edited(plan, lambda read: read.update(said), sign=True))

    for share in (0.01, 0.999):
        with pytest.raises(PlanError) as refusal:
            stated(share * plan.expected_mse, share * plan.expected_mse)
        assert refusal.value.field == "expected_mse"
    assert stated(plan.expected_mse, plan.expected_mse).efficiency == pytest.approx(1.0)


def test_a_file_cannot_state_an_error_that_no_mechanism_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a channel so large that its own error is not worked out."""
    plan = pair_plan("arc", "Histogram")
    monkeypatch.setattr(type(plan.reader), "error", lambda *_: None)
    least = plan.query.closed_form_bound(plan.reference, plan.budget)
    for share, is_refused in ((0.99, True), (1.0, False)):
        said = {"expected_mse": repr(share * least), "lower_bound": "0.0"}
        forged = edited(plan, lambda read, said=said: read.update(said), sign=True)
        with raises(PlanError, field="expected_mse") if is_refused else nullcontext():
            pv.Plan.from_json(forged)


def test_errors_of_large_channels_are_not_worked_out_at_every_start() -> None:
    wide = Table(np.full((1100, 4096), 2**50))
    assert reader_of(wide).error(pv.Histogram(), pv.Prior.uniform(1100)) is None
    assert (
        reader_of(Table(np.full((600, 1024), 2**52))).error(pv.Distribution(), pv.Prior.uniform(600)) is None
    )
    assert pair_plan("arc", "Histogram").reader.error(pv.Histogram(), pv.Prior.uniform(5)) is None


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(
            PlanError, match=rf"cannot read {re.escape(str(path))} \(.*\): give the file"
        ) as refusal:
            pv.Plan.load(path)
        assert refusal.value.field == "file"


def test_a_plan_for_a_gain_runs_but_cannot_be_saved() -> None:
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Convex(lambda p: (p**3).sum(axis=1)))
    tally = plan.tally(plan.privatize([0, 1, 2, 2]))
    assert plan.estimate(tally).reports == 4
    with raises(InvalidInput, argument="query"):
        plan.to_json()


@pytest.mark.parametrize("counts", [["1", "1"], ["5", "0", "0"], ["-1", "1", "3"]])
def test_a_tally_that_the_plan_cannot_have_counted_is_refused(counts: list[str]) -> None:
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Histogram())
    made = json.loads(plan.tally(plan.privatize([0, 1, 2])).to_json())
    forged = json.dumps({**made, "counts": counts, "shape": [len(counts)]})
    with pytest.raises(InvalidInput):
        plan.estimate(Tally.from_json(forged))


def test_the_width_tells_rows_of_bits_from_numbers(plans: dict[str, pv.Plan]) -> None:
    for plan in plans.values():
        reports = plan.privatize(np.arange(3) % len(plan.labels), np.random.default_rng(0), codes=True)
        assert reports.shape == ((3, plan.mechanism.width) if plan.mechanism.width else (3,))
        assert (plan.mechanism.kind in ("unary", "subset")) == (plan.mechanism.width > 0)


@pytest.mark.parametrize("seed", range(8))
def test_a_plan_for_an_interval_that_misses_one_by_rounding_is_read_as_it_was_certified(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.dirichlet(np.full(4, 3.0)).round(3) + 1e-3
    ends = (ends / ends.sum()).tolist()
    wider = [min(1.0, end + 0.1) for end in ends]
    for known in (pv.PriorSet.interval(ends, ends), pv.PriorSet.interval(ends, wider)):
        plan = pv.design(known, 1.0, pv.Histogram())
        again = pv.Plan.from_json(plan.to_json())
        assert (again.id, again.certificate) == (plan.id, plan.certificate)
