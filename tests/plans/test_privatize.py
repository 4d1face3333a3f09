"""Running a plan: one value and columns, exact replay after a round trip, and how little it needs to run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import priorveil as pv
from priorveil.errors import InvalidInput, OutsideDomain
from priorveil.mechanisms import MECHANISMS
from priorveil.mechanisms.randomness import BytesSource
from refusals import raises
from sample_plans import NAMES, named_plan

PLANS = {name: named_plan(name) for name in NAMES}

each_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


def drawn(plan: pv.Plan, people: int, seed: int = 3) -> bytes:
    return np.random.default_rng(seed).bytes(8 * people * plan.mechanism.draws_per_report)


def test_every_mechanism_is_here() -> None:
    assert {plan.mechanism.kind for plan in PLANS.values()} == set(MECHANISMS)


@each_plan
def test_one_by_one_and_in_a_column_are_the_same_bytes(plan: pv.Plan) -> None:
    codes = np.arange(300) % len(plan.labels)
    data = drawn(plan, 300)
    column = plan.privatize(codes, BytesSource(data), codes=True)
    one_by_one = BytesSource(data)
    alone = [
        plan.privatize(int(code) if plan.labels[0] == 0 else plan.labels[code], one_by_one) for code in codes
    ]
    assert np.asarray(alone, dtype=column.dtype).tobytes() == column.tobytes()
    assert one_by_one.used == len(data)  # the same randomness, whatever the values


@each_plan
def test_a_plan_from_its_file_gives_the_same_bytes(plan: pv.Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan.json")
    again = pv.Plan.load(tmp_path / "plan.json")
    codes = np.random.default_rng(1).integers(0, len(plan.labels), 2000)
    data = drawn(plan, 2000)
    first, second = (p.privatize(codes, BytesSource(data), codes=True) for p in (plan, again))
    assert first.tobytes() == second.tobytes() and first.dtype == second.dtype
    assert again.id == plan.id and again.tally(second) == plan.tally(first)


@each_plan
def test_the_same_generator_gives_the_same_reports_and_the_system_others(plan: pv.Plan) -> None:
    codes = np.arange(400) % len(plan.labels)
    first, second = (plan.privatize(codes, np.random.default_rng(5), codes=True) for _ in range(2))
    assert (first == second).all()
    assert (plan.privatize(codes, codes=True) != plan.privatize(codes, codes=True)).any()


COLUMNS: dict[str, Any] = {
    "list": list,
    "numpy": np.array,
    "pandas": pd.Series,
    "pandas category": lambda v: pd.Series(v, dtype="category"),
    "polars": pl.Series,
    "arrow": pa.array,
    "arrow dictionary": lambda v: pa.array(v).dictionary_encode(),
    "arrow chunks": lambda v: pa.chunked_array([v[:2], v[2:]]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_all_kinds_of_columns_give_the_same_reports(kind: str) -> None:
    plan, values = PLANS["columns"], ["b", "a", "e", "e", "c"]
    data = drawn(plan, 5)
    expected = plan.privatize(values, BytesSource(data))
    assert plan.privatize(COLUMNS[kind](values), BytesSource(data)).tolist() == expected.tolist()


@each_plan
def test_missing_values_are_refused_or_stay_missing(plan: pv.Plan) -> None:
    values = [plan.labels[0], None, plan.labels[2]]
    with raises(InvalidInput, argument="values[1]", hint="missing"):
        plan.privatize(values)
    reports = plan.privatize(values, missing="pass")
    gaps = np.ma.getmaskarray(reports).reshape(3, -1)
    assert gaps.all(axis=1).tolist() == [False, True, False] and not gaps[[0, 2]].any()
    assert not reports.data[1].any()  # nothing is left behind the mask
    tally = plan.tally(reports)
    assert tally.reports == 2 and tally.refused == {"missing": 1}


@each_plan
def test_what_is_outside_the_domain(plan: pv.Plan) -> None:
    for value in ("maple-4417", 44170, True if plan.labels[0] != 0 else "True"):
        with pytest.raises(OutsideDomain) as caught:
            plan.privatize([plan.labels[1], value])
        assert caught.value.row == 1 and str(value) not in str(caught.value)
        with raises(OutsideDomain, row=0):
            plan.privatize(value)


@each_plan
def test_nobody(plan: pv.Plan) -> None:
    for empty in ([], np.array([], dtype=int), pl.Series([], dtype=pl.String)):
        assert plan.tally(plan.privatize(empty)).reports == 0
    assert plan.tally([]).reports == 0
    assert not plan.estimate(plan.tally([])).values.any()


def test_a_wrong_source_is_refused() -> None:
    with raises(InvalidInput, argument="rng"):
        PLANS["arc"].privatize("a", rng=42)  # type: ignore[arg-type]
    with raises(InvalidInput, argument="data"):
        PLANS["arc"].privatize("a", BytesSource(b"too short"))


BARE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ImportError(f"blocked: {{name}}")

sys.meta_path.insert(0, Absent())
import priorveil as pv

plan = pv.Plan.load({path!r})
report = plan.privatize(plan.labels[0])
tally = plan.tally(plan.privatize([0, 1, 2] * {times}, codes=True))
assert tally.reports == 3 * {times}
needed = {{"priorveil", "numpy", "flint", "msgspec", "typing_extensions"}}  # msgspec loads the last one if it is there
standard = set(sys.stdlib_module_names) | needed | {{"__main__", "__mp_main__"}}
others = {{name.partition(".")[0] for name in sys.modules}} - standard
print(*sorted(n for n in others if getattr(sys.modules[n], "__file__", None)))
"""
ABSENT = (
    "scipy", "highspy", "numba", "matplotlib", "click", "rich", "cryptography", "pandas", "polars", "pyarrow",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted({p.mechanism.kind: name for name, p in PLANS.items()}.values()))
def test_a_device_needs_numpy_flint_and_msgspec_only(name: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    PLANS[name].save(path)
    script = BARE.format(absent=ABSENT, path=str(path), times=100)
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    site_hooks = {"_distutils_hack", "sitecustomize", "usercustomize", "distutils-precedence"}
    loaded = {name for name in done.stdout.split() if not name.startswith(("__editable__", "_"))} - site_hooks
    assert not loaded


def test_tables_of_attributes_name_the_column_that_is_wrong() -> None:
    cells = {("y", "y"): 0.4, ("y", "n"): 0.3, ("n", "y"): 0.2, ("n", "n"): 0.1}
    plan = pv.design(pv.Prior.joint(cells, names=("p", "q")), 1.0, pv.Histogram())
    with raises(InvalidInput, argument="values"):
        plan.privatize({"p": ["y", "n"]})
    for table in ({"p": ["y", "n"], "q": ["y"]}, {"p": "y", "q": ["y"]}, {"p": "y", "q": "y"}):
        with raises(InvalidInput, argument="values"):
            plan.privatize(table)


@pytest.mark.parametrize("wrong", [True, 1.0, "1", np.bool_(True), np.float64(1)])
def test_positions_are_integers(wrong) -> None:
    plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram())
    for values in (wrong, [0, wrong], np.array([wrong])):
        with pytest.raises(InvalidInput):
            plan.privatize(values, codes=True)
    for column in ([0, np.int64(1)], np.array([0, 1], dtype=np.uint8), range(2)):
        assert len(plan.privatize(column, codes=True)) == 2
    assert plan.privatize([0, None], missing="pass", codes=True).mask.tolist() == [False, True]
