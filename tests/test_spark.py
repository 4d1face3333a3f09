"""Spark gives the tallies of the local engine, on one machine and on two executors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv

pa = pytest.importorskip("pyarrow")
pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'priorveil[spark]'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17 or newer, and there is none on this machine", allow_module_level=True)

from priorveil import spark as on_spark  # noqa: E402
from priorveil.errors import InvalidInput  # noqa: E402
from priorveil.frames import Tallies, tally_table  # noqa: E402
from priorveil.frames.wire import report_column  # noqa: E402

pytestmark = pytest.mark.slow

LABELS = ["a", "b", "c", "d", "e", "f"]
METHODS = ["columns", "arc", "unary", "hashing"]


def session(master: str) -> Any:
    """A Spark session that is this test's own; Java is told to start quickly rather than to run fast."""
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f'--driver-java-options "{quick}" pyspark-shell',
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1024m",
        "spark.executor.extraJavaOptions": quick,
        "spark.log.level": "ERROR",
    }
    builder = pyspark.sql.SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    opened = session("local[2]")
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def plans() -> dict[str, pv.Plan]:
    prior = pv.Prior([0.35, 0.25, 0.15, 0.1, 0.1, 0.05], labels=LABELS)
    return {m: pv.design(prior, 1.0, pv.Histogram(), method=m, time_limit=5) for m in METHODS}


def nasty_reports(plan: pv.Plan, seed: int, rows: int) -> Any:
    """Reports of skewed values in groups of any size, with gaps and foreign reports among them."""
    rng = np.random.default_rng(seed)
    values = np.minimum(rng.geometric(0.6, rows) - 1, 5)
    column = report_column(plan.mechanism, plan.privatize(values, rng)).to_pylist()
    foreign = [-1, 2**62, 2**63 - 1] if isinstance(column[0], int) else [b"", b"\xff" * 8, b"\x00" * 16]
    for row in np.flatnonzero(rng.random(rows) < 0.2):
        column[row] = [None, *foreign][rng.integers(4)]
    kind = pa.int64() if plan.mechanism.kind != "unary" else pa.binary()
    groups = [None if rng.random() < 0.1 else f"town {g}" for g in np.minimum(rng.geometric(0.5, rows), 5)]
    return pa.table({"report": pa.array(column, kind), "town": pa.array(groups, pa.string())})


def same(found: Tallies, expected: Tallies) -> None:
    assert {key: t.to_json() for key, t in found.by.items()} == {
        k: t.to_json() for k, t in expected.by.items()
    }
    assert found.refused.counts == expected.refused.counts


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1), rows=st.sampled_from([1, 300]))
def test_same_tallies_as_local(
    spark: Any, plans: dict[str, pv.Plan], method: str, seed: int, rows: int
) -> None:
    plan = plans[method]
    table = nasty_reports(plan, seed, rows)
    df = spark.createDataFrame(table).repartition(4)  # with one row, three of them are empty
    same(on_spark.tally(df, plan, by="town"), tally_table(table, plan, by="town"))


def test_nobody(spark: Any, plans: dict[str, pv.Plan]) -> None:
    df = spark.createDataFrame(nasty_reports(plans["arc"], 1, 3)).filter("false")
    found = on_spark.estimate(df, plans["arc"])
    assert found.everybody.reports == 0 and not found.everybody.values.any()


def test_privatize_then_estimate(spark: Any, plans: dict[str, pv.Plan]) -> None:
    values = pa.table({"answer": [*"abcdef" * 50, "z", None], "town": ["A", "B"] * 151, "name": ["x"] * 302})
    df = on_spark.privatize(spark.createDataFrame(values), plans["unary"], "answer", keep=["town"])
    assert df.columns == ["report_id", "town", "report", "refused"]
    kept = df.toArrow()  # one evaluation: a second one would be other reports
    assert len(set(kept["report_id"].to_pylist())) == 302
    reasons = kept["refused"].to_pylist()
    assert sorted(r for r in reasons if r) == ["missing", "outside the domain"]
    assert [r is None for r in kept["report"].to_pylist()] == [r is not None for r in reasons]
    found = on_spark.estimate(spark.createDataFrame(kept), plans["unary"], by="town")
    assert found.everybody.reports == 300 and found.refused.counts == {"missing": 2}
    assert set(found.groups) == {"A", "B"}


def test_cohorts(spark: Any, plans: dict[str, pv.Plan]) -> None:
    several = {"1": plans["columns"], "2": plans["arc"]}
    values = pa.table({"answer": ["a"] * 6, "group": [1, 2, 1, 2, 3, None]})
    made = on_spark.privatize(spark.createDataFrame(values), several, "answer", cohort="group").toArrow()
    reasons = sorted(str(reason) for reason in made["refused"].to_pylist())
    assert reasons == ["None"] * 4 + ["no plan for the cohort"] * 2
    found = on_spark.tally(spark.createDataFrame(made), several, cohort="group")
    same(found, tally_table(made, several, cohort="group"))
    assert found.refused.counts == {"no plan for the cohort": 2}


def test_reports_that_are_no_numbers(spark: Any, plans: dict[str, pv.Plan]) -> None:
    with pytest.raises(InvalidInput, match="bigint"):
        on_spark.tally(spark.createDataFrame(pa.table({"report": ["1"]})), plans["arc"])


@pytest.mark.parametrize("method", ["columns", "arc", "hashing"])
def test_no_python_where_expressions_do(spark: Any, plans: dict[str, pv.Plan], method: str) -> None:
    df = spark.createDataFrame(nasty_reports(plans[method], 1, 10))
    amounts = on_spark._amounts(df, plans[method], "report", None)
    plan = amounts._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan and "InArrow" not in plan


def test_data_frames_only() -> None:
    source = Path(on_spark.__file__).read_text(encoding="utf-8")
    assert not re.search(r"\.rdd\b|sparkContext|_jvm|_jdf", source)


def test_the_example_of_the_documentation(spark: Any, tmp_path: Path) -> None:
    page = Path(__file__).parent.parent / "docs" / "files-and-clusters.md"
    (example,) = re.findall(r"^```py\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    plan = pv.design(pv.Prior({"rent": 0.4, "own": 0.6}), 1.0, pv.Histogram())
    people = pa.table({"home": ["rent", "own"] * 50, "town": ["A"] * 100})
    names = {"df": spark.createDataFrame(people), "plan": plan, "session": spark, "folder": tmp_path}
    exec(compile(example, str(page), "exec"), names)
    found: Any = names["found"]
    assert found.everybody.reports == found.groups["A"].reports == 100
    local = tally_table(tmp_path / "reports", plan, by="town")
    same(found.tallies, local)


def test_spark_connect() -> None:
    """In a process of its own: one process speaks either to Spark or to Spark Connect."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    script = """
import sys; sys.path[:0] = sys.argv[1:]
import pyspark.sql, test_spark as t, priorveil as pv
plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Histogram(), method="arc")
table = t.pa.table({"report": [0, 1, None, -5, 2**40]})
session = pyspark.sql.SparkSession.builder.remote("local[2]").getOrCreate()
t.same(t.on_spark.tally(session.createDataFrame(table), plan), t.tally_table(table, plan))
print("the same")
"""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    task = [sys.executable, "-c", script, str(Path(__file__).parent)]
    done = subprocess.run(task, capture_output=True, text=True, env=environment, check=False)
    assert "the same" in done.stdout, done.stderr[-2000:]


def test_two_executors(plans: dict[str, pv.Plan], spark: Any) -> None:
    """The last test: it ends the local session and runs on a cluster of two processes."""
    spark.stop()
    cluster = session("local-cluster[2,1,1024]")
    try:
        for method in ("arc", "unary"):
            table = nasty_reports(plans[method], 7, 500)
            df = cluster.createDataFrame(table).repartition(4)
            same(on_spark.tally(df, plans[method], by="town"), tally_table(table, plans[method], by="town"))
    finally:
        cluster.stop()
