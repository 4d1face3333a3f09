"""Spark gives the tallies of the local engine, on one machine and on two executors."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorveil as pv
from function_trace import WORDS_OF_QUESTIONS, functions_since

pa = pytest.importorskip("pyarrow")
pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'priorveil[spark]'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17 or newer, and there is none on this machine", allow_module_level=True)

from priorveil.errors import ForeignReport, InvalidInput  # noqa: E402
from priorveil.questions.campaign import ask_with  # noqa: E402
from priorveil.tables import (  # noqa: E402
    ConflictingReports,
    Tallies,
    estimate_table,
    privatize_table,
    tally_table,
)
from priorveil.tables import spark as on_spark  # noqa: E402
from priorveil.tables.write import arrow_column, report_schema, report_type  # noqa: E402
from refusals import raises  # noqa: E402
from sample_surveys import health, people  # noqa: E402

pytestmark = pytest.mark.slow

LABELS = ["a", "b", "c", "d", "e", "f"]
METHODS = ["columns", "arc", "unary", "subset", "hashing", "orders"]
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # Java starts quickly rather than runs fast


def session(master: str) -> Any:
    """A Spark session that is this test's own."""
    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f'--driver-java-options "{QUICK}" pyspark-shell',
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1024m",
        "spark.executor.extraJavaOptions": QUICK,
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


@pytest.fixture(scope="module", name="plans")
def designed_plans() -> dict[str, pv.Plan]:
    return designed()


def designed() -> dict[str, pv.Plan]:
    prior = pv.Prior([0.35, 0.25, 0.15, 0.1, 0.1, 0.05], labels=LABELS)
    plans = {m: pv.design(prior, 1.0, pv.Histogram(), method=m, rounds=50) for m in METHODS[:-1]}
    return plans | {"orders": pv.design(prior, 1.0, pv.Distribution(), method="arc")}


def nasty_reports(plan: pv.Plan, seed: int, rows: int) -> Any:
    """Reports of skewed values in groups of any size, with gaps and foreign reports among them."""
    rng = np.random.default_rng(seed)
    values = np.minimum(rng.geometric(0.6, rows) - 1, 5)
    field = report_schema({}, False, "plan", report_type(plan.mechanism.width)).field("report")
    column = arrow_column(plan.privatize(values, rng, codes=True), field).to_pylist()
    foreign = [-1, 2**62, 2**63 - 1] if isinstance(column[0], int) else [b"", b"\xff" * 8, b"\x00" * 16]
    for row in np.flatnonzero(rng.random(rows) < 0.2):
        column[row] = [None, *foreign][rng.integers(4)]
    kind = pa.int64() if plan.mechanism.width == 0 else pa.binary()
    groups = [None if rng.random() < 0.1 else f"town {g}" for g in np.minimum(rng.geometric(0.5, rows), 5)]
    made_by = pa.array([None if rng.random() < 0.05 else plan.id for _ in range(rows)], pa.string())
    return pa.table(
        {"report": pa.array(column, kind), "plan": made_by, "town": pa.array(groups, pa.string())}
    )


def same(found: Tallies, expected: Tallies) -> None:
    assert dict(found.by) == dict(expected.by)
    assert found.refused.counts == expected.refused.counts


@pytest.mark.parametrize(
    "method", ["columns", "unary"]
)  # numbers and bits: workers count as files are counted
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1), rows=st.sampled_from([1, 300]))
def test_same_tallies_as_local(
    spark: Any, plans: dict[str, pv.Plan], method: str, seed: int, rows: int
) -> None:
    plan = plans[method]
    table = nasty_reports(plan, seed, rows)
    df = spark.createDataFrame(table).repartition(4)  # with one row, three of them are empty
    same(on_spark.tally(df, plan, by="town"), tally_table(table, plan, by="town"))


def test_repeated_reports_are_counted_once(spark: Any, plans: dict[str, pv.Plan]) -> None:
    """In one data frame, with refused rows and rows without an id among them."""
    plan = plans["unary"]
    table = nasty_reports(plan, 5, 200)
    ids = [None if row % 40 == 7 else f"{row:032x}" for row in range(200)]
    for column in (ids, [None if one is None else bytes.fromhex(one) for one in ids]):
        once = table.append_column("report_id", pa.array(column))
        twice = pa.concat_tables([once, once.slice(20, 100)])
        found = on_spark.tally(spark.createDataFrame(twice).repartition(3), plan, by="town")
        expected = tally_table(twice, plan, by="town")
        same(found, expected)
        assert (found.repeated, found.without_id) == (expected.repeated, expected.without_id)
        assert found.repeated > 50 and found.without_id > 5


def test_ids_are_compared_as_in_files(spark: Any, plans: dict[str, pv.Plan]) -> None:
    """Blanks and NaN are no ids; blanks around an id and the case of hexadecimal digits do not matter."""
    plan = plans["columns"]
    one = "0123456789abcdef" * 2
    texts = ["", "", "  ", "nan", "NaN", None, one, f" {one}", one.upper(), "a", "a\t", "A"]
    for ids, repeated, without_id in ((texts, 3, 6), ([math.nan, math.nan, 7.0, 7.0, 8.0, None], 1, 3)):
        reports = {"report": [1] * len(ids), "plan": [plan.id] * len(ids)}
        table = pa.table({**reports, "report_id": pa.array(ids)})
        for found in (on_spark.tally(spark.createDataFrame(table), plan), tally_table(table, plan)):
            assert (found.repeated, found.without_id) == (repeated, without_id)
            assert found.reports == len(ids) - repeated


@pytest.mark.parametrize("shown", [True, False])
def test_an_id_with_two_reports_is_named_if_it_is_random(
    spark: Any, plans: dict[str, pv.Plan], shown: bool
) -> None:
    plan = plans["columns"]
    name = "0123456789abcdef" * 2 if shown else "somebody@example.org"
    table = pa.table({"report": [0, 1, 0], "plan": [plan.id] * 3, "report_id": ["a", name, name]})
    with pytest.raises(ConflictingReports) as caught:
        on_spark.tally(spark.createDataFrame(table), plan)
    assert (name in str(caught.value)) == shown


def test_nobody(spark: Any, plans: dict[str, pv.Plan]) -> None:
    df = spark.createDataFrame(nasty_reports(plans["arc"], 1, 3)).filter("false")
    found = on_spark.estimate(df, plans["arc"])
    assert found.everybody.reports == 0 and not found.everybody.values.any()


def test_privatize_then_estimate(spark: Any, plans: dict[str, pv.Plan]) -> None:
    values = pa.table({"answer": [*"abcdef" * 50, "z", None], "town": ["A", "B"] * 151, "name": ["x"] * 302})
    df = on_spark.privatize(spark.createDataFrame(values), plans["unary"], "answer", keep=["town"])
    assert df.columns == ["report_id", "town", "plan", "report", "refused"]
    kept = df.toArrow()  # one evaluation: a second one would be other reports
    assert len(set(kept["report_id"].to_pylist())) == 302
    reasons = kept["refused"].to_pylist()
    assert sorted(r for r in reasons if r) == ["missing", "outside the domain"]
    assert [r is None for r in kept["report"].to_pylist()] == [r is not None for r in reasons]
    found = on_spark.estimate(spark.createDataFrame(kept), plans["unary"], by="town")
    assert found.everybody.reports == 300 and found.refused.counts == {"missing": 2}
    assert set(found.groups) == {"A", "B"}


def test_several_attributes(spark: Any) -> None:
    prior = pv.Prior.joint({("a", 1): 0.2, ("a", 2): 0.3, ("b", 2): 0.5}, ("x", "y"), impossible="leave out")
    plan = pv.design(prior, 1.0, pv.Distribution())
    values = pa.table({"y": [2, 2, 1] * 400, "x": ["a", "b", "b"] * 400})
    made = on_spark.privatize(spark.createDataFrame(values), plan, ["x", "y"]).toArrow()
    assert made["refused"].to_pylist() == [None, None, "a combination that the plan leaves out"] * 400
    found = on_spark.estimate(spark.createDataFrame(made.filter(made["report"].is_valid())), plan).everybody
    assert np.all(np.abs(found.values - [0, 400, 400]) < 5 * found.std_error)


def in_cohorts(plans: dict[str, pv.Plan], methods: list[str], rows: int = 120) -> tuple[Any, Any]:
    """Reports by several plans with gaps and foreign ones, some of cohorts that have no plan; the plans."""
    several = {name: plans[m] for name, m in zip(["x", "y", "w"], methods, strict=False)}
    tables = [
        nasty_reports(several.get(name, plans[methods[0]]), seed, rows) for seed, name in enumerate("xywz")
    ]
    cohorts = [name for name in ("x", "y", "w", None) for _ in range(rows)]
    return pa.concat_tables(tables).append_column("cohort", pa.array(cohorts, pa.string())), several


@pytest.mark.parametrize("methods", [["columns", "arc", "hashing"], ["unary", "unary"]])
def test_cohorts_and_groups_in_one_job(spark: Any, plans: dict[str, pv.Plan], methods: list[str]) -> None:
    table, several = in_cohorts(plans, methods)
    df = spark.createDataFrame(table).repartition(3)
    expected = tally_table(table, several, by="town", cohort="cohort")
    assert len(expected.by) > 8 and len(expected.refused.counts) == 3
    same(on_spark.tally(df, several, by="town", cohort="cohort"), expected)
    rows = on_spark.refused(df, several, cohort="cohort").groupBy("reason").count().toArrow()
    assert (
        dict(zip(rows["reason"].to_pylist(), rows["count"].to_pylist(), strict=True))
        == expected.refused.counts
    )


def test_cohorts_are_written_as_in_python(spark: Any, plans: dict[str, pv.Plan]) -> None:
    table = pa.table({"report": [0, 0, 1], "adult": [True, False, None], "half": [0.5, 1.5, None]})
    df = spark.createDataFrame(table)
    for cohort, names in (("adult", ("True", "False")), ("half", ("0.5", "1.5"))):
        several = dict(zip(names, (plans["columns"], plans["arc"]), strict=True))
        found = on_spark.tally(df, several, cohort=cohort, assume_plan=True)
        same(found, tally_table(table, several, cohort=cohort, assume_plan=True))
        assert {key for key, _ in found.by} == set(names)


def test_arcs_of_a_large_domain(spark: Any) -> None:
    """Every value has its own cells: Python workers count them, and send back those that are not zero."""
    plan = pv.design(pv.Prior.zipf(20_000), 1.0, pv.Histogram(), method="arc")
    rng = np.random.default_rng(4)
    values = rng.integers(0, 20_000, 3000)
    reports = np.concatenate([plan.privatize(values, rng), [-1, plan.mechanism.outputs]])
    table = pa.table({"report": reports, "town": [f"town {i % 3}" for i in range(len(reports))]})
    df = spark.createDataFrame(table).repartition(3)
    found = on_spark.tally(df, plan, by="town", assume_plan=True)
    same(found, tally_table(table, plan, by="town", assume_plan=True))
    assert found.reports == 3000 and found.refused.counts == {"foreign": 2}


def test_reports_of_another_plan(spark: Any, plans: dict[str, pv.Plan]) -> None:
    other, plan = plans["columns"], plans["unary"]
    made_by = pa.array([plan.id] * 17 + [other.id] * 3)
    table = nasty_reports(plan, 1, 20).set_column(1, "plan", made_by)
    df = spark.createDataFrame(table)
    with pytest.raises(ForeignReport, match="3 reports of another plan"):
        on_spark.tally(df, plan)
    rows = on_spark.refused(df, plan).filter("reason = 'another plan or form'").toArrow()
    assert rows["plan"].to_pylist() == [other.id] * 3
    with pytest.raises(InvalidInput, match="assume_plan=True"):
        on_spark.estimate(df.drop("plan"), plan)
    same(on_spark.tally(df, plan, assume_plan=True), tally_table(table, plan, assume_plan=True))


def test_the_refused_rows_themselves(spark: Any, plans: dict[str, pv.Plan]) -> None:
    table = pa.table({"report": [0, None, -7, 1], "id": ["p", "q", "r", "s"]})
    df = spark.createDataFrame(table)
    rows = on_spark.refused(df, plans["arc"], assume_plan=True).toArrow().to_pylist()
    assert sorted((row["id"], row["reason"]) for row in rows) == [("q", "missing"), ("r", "foreign")]
    with pytest.raises(InvalidInput, match="rename"):
        on_spark.refused(df.withColumnRenamed("id", "reason"), plans["arc"], assume_plan=True)


def test_reports_as_text(spark: Any, plans: dict[str, pv.Plan]) -> None:
    table = pa.table({"report": ["1", "0", "x", None], "year": [2001, 2001, 2002, None]})
    df = spark.createDataFrame(table).repartition(3)
    same(
        on_spark.tally(df, plans["columns"], by="year", assume_plan=True),
        tally_table(table, plans["columns"], by="year", assume_plan=True),
    )


def answers_of(count: int, seed: int) -> Any:
    """The answers of people to the sample survey, with lists of codes, and one row that is refused."""
    rows = [*people(count, np.random.default_rng(seed)), {"smokes": "often", "hours": 1.0}]
    types = {
        "smokes": pa.string(),
        "ills": pa.list_(pa.string()),
        "hours": pa.float64(),
        "packs": pa.float64(),
    }
    columns = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()}
    return pa.table({**columns, "name": ["somebody"] * len(rows)})


def test_a_plan_and_a_campaign_run_the_functions_of_a_file(spark: Any, plans: dict[str, pv.Plan]) -> None:
    ran = []
    for asked, column in (
        (plans["unary"], "answer"),
        (ask_with("What?", plans["unary"], smallest_count=1), ()),
    ):
        table = privatize_table({"answer": [*"abcdef"] * 50}, asked, column).table
        df = spark.createDataFrame(table)
        for estimate, data in ((on_spark.estimate, df), (estimate_table, table)):
            action = partial(estimate, data, asked)
            ran.append(functions_since("tables/estimate.py:estimate_tallies", action))
    assert ran[0] == ran[1] and ran[2] == ran[3] and ran[0] ^ ran[2] <= WORDS_OF_QUESTIONS
    assert "results/form_estimates.py:estimate_forms" in ran[0]


def test_a_campaign(spark: Any, tmp_path: Path) -> None:
    """Submissions are made on workers; their results are those of the same files read here."""
    campaign = health(smallest_count=1)
    answers = answers_of(500, 9)
    made = on_spark.privatize(spark.createDataFrame(answers).repartition(3), campaign)
    assert made.columns == ["report_id", "form", "report", "refused"]
    made.write.parquet(str(tmp_path / "reports"))
    kept = spark.read.parquet(str(tmp_path / "reports"))
    reasons = [row["refused"] for row in kept.select("refused").collect()]
    assert sorted(filter(None, reasons)) == ["an answer is missing or wrong"], "not which: it was asked"
    found, local = on_spark.estimate(kept, campaign), estimate_table(tmp_path / "reports", campaign)
    assert found.tallies.by == local.tallies.by and found.tallies.reports == 500
    assert found.refused.counts == local.refused.counts == {"missing": 1}
    for result, expected in zip(found.parts, local.parts, strict=True):
        assert result.attributes == expected.attributes
        assert str(result.everybody) == str(expected.everybody)
        assert np.isfinite(result.everybody.std_error).all()
    assert on_spark.refused(kept, campaign).count() == 1


def test_repeated_submissions_and_cohorts(spark: Any) -> None:
    prior = pv.Prior([0.5, 0.5], labels=["a", "b"])
    several = {method: pv.design(prior, 1.0, pv.Histogram(), method=method) for method in METHODS[:4]}
    campaign = ask_with("Which?", several, smallest_count=1)
    values = pa.table({"answer": ["a", "b", None, "z"] * 50, "by": [*several, *several] * 25})
    options: dict[str, Any] = {"cohort": "by", "missing": "a", "other": "b"}
    made = on_spark.privatize(spark.createDataFrame(values), campaign, **options).toArrow()
    assert made["refused"].null_count == 200
    twice = pa.concat_tables([made, made.slice(20, 60)])
    found = on_spark.tally(spark.createDataFrame(twice).repartition(3), campaign)
    expected = tally_table(twice, campaign)
    assert found.by == expected.by
    assert (found.reports, found.repeated, found.without_id) == (200, 60, 0)
    reports = made["report"].to_pylist()
    other = next(report for report in reports if report != reports[0] and len(report) == len(reports[0]))
    changed = made.slice(0, 1).set_column(2, "report", pa.array([other]))
    with pytest.raises(ConflictingReports):
        on_spark.tally(spark.createDataFrame(pa.concat_tables([made, changed])), campaign)


def test_submissions_to_another_campaign(spark: Any) -> None:
    campaign = health(smallest_count=1)
    plan = pv.design(pv.Prior([0.5, 0.5], labels=["a", "b"]), 1.0, pv.Histogram())
    made = privatize_table({"answer": ["a", "b"]}, ask_with("Which?", plan)).table
    df = spark.createDataFrame(made)
    with pytest.raises(ForeignReport, match="2 reports of another form"):
        on_spark.tally(df, campaign)
    with pytest.raises(InvalidInput, match="form"):
        on_spark.tally(df.drop("form"), campaign)
    with raises(InvalidInput, argument="column", value="town"):
        on_spark.tally(df, campaign, by="town")


def test_data_frames_only() -> None:
    source = Path(on_spark.__file__).read_text(encoding="utf-8")
    assert not re.search(r"\.rdd\b|sparkContext|_jvm|_jdf", source)


def test_the_example_of_the_documentation(spark: Any, tmp_path: Path) -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "files-and-clusters.md"
    (example,) = re.findall(r"^```py\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    plan = pv.design(pv.Prior({"rent": 0.4, "own": 0.6}), 1.0, pv.Histogram())
    people = pa.table({"home": ["rent", "own"] * 50, "town": ["A"] * 100})
    names = {"df": spark.createDataFrame(people), "plan": plan, "session": spark, "folder": tmp_path}
    exec(compile(example, str(page), "exec"), names)
    found: Any = names["found"]
    assert found.everybody.reports == found.groups["A"].reports == 100
    local = tally_table(tmp_path / "reports", plan, by="town")
    same(found.tallies, local)


CONNECT = """
import sys; sys.path[:0] = sys.argv[1:]
import pyspark.sql, test_spark as t
session = pyspark.sql.SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(session).__module__
plans = t.designed()
for methods in (["columns", "arc", "hashing"], ["unary", "unary"]):
    table, several = t.in_cohorts(plans, methods)
    found = t.on_spark.tally(session.createDataFrame(table), several, by="town", cohort="cohort")
    t.same(found, t.tally_table(table, several, by="town", cohort="cohort"))
values = session.createDataFrame(t.pa.table({"answer": [*"abcdef", "z", None]}))
made = t.on_spark.privatize(values, plans["arc"], "answer").toArrow()
reports = session.createDataFrame(made)
t.same(t.on_spark.tally(reports, plans["arc"]), t.tally_table(made, plans["arc"]))
assert t.on_spark.estimate(reports, plans["arc"]).everybody.reports == 6
assert t.on_spark.refused(reports, plans["arc"]).count() == 2
session.stop()
print("the same")
"""


def test_spark_connect() -> None:
    """In a process of its own: one process speaks either to Spark or to Spark Connect."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'priorveil[spark-connect]'")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYSPARK_SUBMIT_ARGS"] = (
        f'--driver-java-options "{QUICK}" --conf spark.sql.shuffle.partitions=2 pyspark-shell'
    )
    folder = Path(__file__).parent
    task = [sys.executable, "-c", CONNECT, str(folder), str(folder.parent)]
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
