"""`priorveil estimate` with weights, strata, clusters and a finite population, and its tables of scores."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from priorveil.tables import estimate_table, privatize_table
from priorveil.tables.samples import SampleReader, estimate_sample_table, write_scores
from terminal import done, run

PLAN = pv.design(pv.Prior({"yes": 0.3, "no": 0.7}), 1.0, pv.Distribution())
SIZES = {"north": 20, "south": 40}
DESIGN = ["--weights", "w", "--strata", "region", "--clusters", "school", "--population", "size"]


def sample() -> dict[str, list[Any]]:
    """People of two regions, in ten schools each, as texts."""
    rng = np.random.default_rng(4)
    regions = np.repeat(["north", "south"], 100).tolist()
    return {
        "answer": rng.choice(["yes", "no"], 200, p=[0.3, 0.7]).tolist(),
        "w": rng.uniform(1, 3, 200).round(3).astype(str).tolist(),
        "region": regions,
        "school": np.tile(np.repeat(np.arange(10), 10), 2).astype(str).tolist(),
        "size": [str(SIZES[region]) for region in regions],
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plan and the reports of a sample, where the commands run."""
    monkeypatch.chdir(tmp_path)
    PLAN.save("plan.json")
    keep = ["w", "region", "school", "size"]
    privatize_table(sample(), PLAN, "answer", "reports.csv", keep=keep, rng=np.random.default_rng(5))
    return tmp_path


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open() as file:
        return list(csv.DictReader(file))


def expected(rows: list[dict[str, str]]) -> Any:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    reports = np.array(columns["report"], dtype=np.int64)
    weights = np.array(columns["w"], dtype=float)
    return PLAN.estimate_sample(reports, weights, columns["region"], columns["school"], SIZES)


def test_the_estimate_is_that_of_python(folder: Path) -> None:
    found = json.loads(done("estimate", "plan.json", "reports.csv", *DESIGN, "--json").out)["result"]
    figures, python = found["findings"][0]["figures"], expected(rows_of("reports.csv"))
    assert figures["method"] == "hajek"
    assert figures["notes"][0]["code"] == "besideColumns"
    shares = [row["value"] / figures["people"] for row in figures["tables"][0]["rows"]]
    errors = [row["std_error"] / figures["people"] for row in figures["tables"][0]["rows"]]
    assert shares == pytest.approx(python.values)
    assert errors == pytest.approx(python.std_error)


def test_the_level_beside_other_columns_comes_first(folder: Path) -> None:
    printed = done("estimate", "plan.json", "reports.csv", *DESIGN).out
    assert printed.startswith("Beside other columns, LDP ")
    assert printed.count("Beside other columns") == 1
    assert "Corrected for the finite population" in printed
    by = done("estimate", "plan.json", "reports.csv", "--by", "region").out
    assert by.startswith("Beside other columns, LDP ")
    assert "Beside other columns" not in done("estimate", "plan.json", "reports.csv").out


def test_plans_of_the_groups_keep_lip(folder: Path) -> None:
    Path("plans").mkdir()
    for region in SIZES:
        PLAN.save(f"plans/{region}.json")
    printed = done("estimate", "plans", "reports.csv", "--cohort", "region", "--by", "region").out
    assert "Beside other columns" not in printed


def test_notes_of_csv_go_to_standard_error(folder: Path) -> None:
    shown = done("estimate", "plan.json", "reports.csv", *DESIGN, "--csv")
    assert shown.err.startswith("Beside other columns")
    assert [line["statistic"] for line in csv.DictReader(shown.out.splitlines())] == ["people", "people"]


def test_a_population_may_be_a_number(folder: Path) -> None:
    printed = done("estimate", "plan.json", "reports.csv", "--population", "400").out
    reports = np.array([row["report"] for row in rows_of("reports.csv")], dtype=np.int64)
    share = 100 * PLAN.estimate_sample(reports, population=400).values[0]
    assert f"{share:.1f} %" in printed


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_scores_are_written_beside_all_other_columns(folder: Path, ending: str) -> None:
    shown = done("estimate", "plan.json", "reports.csv", "--scores", f"scores.{ending}")
    assert "fpc" in shown.err and "LDP" in shown.err
    if ending == "parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        written = pq.read_table("scores.parquet").to_pylist()
    else:
        written = rows_of("scores.csv")
    rows = rows_of("reports.csv")
    assert list(written[0]) == [
        *["report_id", "w", "region", "school", "size"],
        *["score_yes", "noise_yes", "score_no", "noise_no"],
    ]
    assert [row["report_id"] for row in written] == [row["report_id"] for row in rows]
    noise = PLAN.score_noise(np.array([row["report"] for row in rows], dtype=np.int64))
    assert [float(row["score_yes"]) for row in written] == pytest.approx(noise.scores[:, 0])
    assert [float(row["noise_yes"]) for row in written] == pytest.approx(noise.each()[:, 0])


def test_columns_in_the_names_of_folders_are_kept(folder: Path) -> None:
    Path("parts/town=Graz").mkdir(parents=True)
    Path("reports.csv").rename("parts/town=Graz/reports.csv")
    done("estimate", "plan.json", "parts", "--scores", "scores.csv")
    assert {row["town"] for row in rows_of("scores.csv")} == {"Graz"}


def test_repeated_and_foreign_reports_are_left_out(folder: Path) -> None:
    lines = Path("reports.csv").read_text().splitlines()
    foreign = lines[1].replace(lines[1].split(",")[0], "f" * 32).rsplit(",", 1)[0] + ",9"
    Path("more.csv").write_text("\n".join([lines[0], *lines[1:4], foreign]) + "\n")
    first = done("estimate", "plan.json", "reports.csv", *DESIGN).out
    shown = done("estimate", "plan.json", "reports.csv", "more.csv", *DESIGN)
    assert shown.out == first
    assert "3 rows repeat a report that was already counted" in shown.err
    assert "refused: 1 row" in shown.err


def test_a_query_is_read_with_all_its_columns() -> None:
    """Its rows are copied on the first reading."""
    polars = pytest.importorskip("polars")
    columns = {"report": [0, 1, 0, 1], "plan": [PLAN.id] * 4, "w": [1, 1, 2, 2]}
    found = estimate_sample_table(SampleReader(polars.LazyFrame(columns), PLAN), weights="w")
    assert found.values == pytest.approx(PLAN.estimate_sample([0, 1, 0, 1], [1, 1, 2, 2]).values)


@pytest.mark.parametrize("method", ["unary", "columns"])
def test_every_mechanism_is_read(method: str) -> None:
    plan = pv.design(pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2}), 1.0, pv.Distribution(), method=method)
    values = {"answer": ["a", "b", "c", "a"] * 10, "w": ["1", "2"] * 20}
    table = privatize_table(values, plan, "answer", keep=["w"], rng=np.random.default_rng(1)).table
    found = estimate_sample_table(SampleReader(table, plan), weights="w")
    whole = estimate_table(table, plan).everybody
    alike = estimate_sample_table(SampleReader(table, plan))
    assert found.people == 60 and found.values.shape == (3,)
    assert alike.values == pytest.approx(whole.proportions)


def test_a_table_without_reports_is_refused(tmp_path: Path) -> None:
    table = {"report": [9, 9], "plan": [PLAN.id] * 2}
    with pytest.raises(pv.PriorveilError, match="there are none to estimate from"):
        estimate_sample_table(SampleReader(table, PLAN))
    with pytest.raises(pv.PriorveilError, match="no report of this plan to score"):
        write_scores(SampleReader(table, PLAN), tmp_path / "scores.csv")
    taken = {"report": [0, 1], "plan": [PLAN.id] * 2, "score_yes": [1, 2]}
    with pytest.raises(pv.PriorveilError, match="it has a column score_yes"):
        write_scores(SampleReader(taken, PLAN), tmp_path / "scores.csv")
    other = {"report": [0, 1], "plan": ["0" * 64] * 2}
    with pytest.raises(pv.PriorveilError, match="reports of plan 000000000000"):
        estimate_sample_table(SampleReader(other, PLAN))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--weights w --by region", "--by does not go with --weights"),
        ("--weights w --method mle", "--method mle does not go with --weights"),
        ("--strata region --plot out.svg", "--plot does not go with --strata"),
        ("--scores scores.csv --weights w", "--scores FILE keeps all columns: leave out --weights"),
        ("--scores scores.csv --json", "--json does not go with --scores"),
        ("--scores reports.csv", "--scores and REPORTS are one file"),
        ("--weights region", "weights: some rows of this column have no number"),
        ("--weights nothing", "the table has report_id, w"),
        ("--population size", "population: this column must have the same number in all rows"),
        ("--population 7", "give a number of at least 200"),
        ("--population 500 --strata region", "--population 500: with --strata give a column"),
        ("--scores scores.xlsx", "scores.xlsx: give a name that ends in .parquet"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(folder: Path, options: str, message: str) -> None:
    status, _, err = run("estimate", "plan.json", "reports.csv", *options.split())
    assert status and message in " ".join(err.split()), err


def test_leaning_plans_and_campaigns_are_refused(folder: Path) -> None:
    pv.design(PLAN.prior, 1.0, pv.Histogram()).save("leaning.json")
    status, _, err = run("estimate", "leaning.json", "reports.csv", "--weights", "w", "--assume-plan")
    assert status and "--query distribution" in err
    Path("plans").mkdir()
    status, _, err = run("estimate", "plans", "reports.csv", "--weights", "w")
    assert status and "read by one plan" in err
