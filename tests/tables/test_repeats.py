"""A report is counted once, however often its id is in the tables; an id with two reports is an error."""

from __future__ import annotations

import gc
import io
import os
import uuid
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.tables import repeats

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from priorveil.questions.campaign import ask_with  # noqa: E402
from priorveil.tables import ConflictingReports, privatize_table, tally_table  # noqa: E402

LABELS = ["a", "b", "c", "d"]
PRIOR = pv.Prior([0.4, 0.3, 0.2, 0.1], labels=LABELS)
PLAN = pv.design(PRIOR, 1.0, pv.Histogram())
UNARY = pv.design(PRIOR, 1.0, pv.Histogram(), method="unary")
CAMPAIGN = ask_with("Which?", {"young": PLAN, "old": UNARY}, smallest_count=1)
every_form = pytest.mark.parametrize("asked", [PLAN, UNARY, CAMPAIGN], ids=["table", "unary", "campaign"])


def make_reports(folder: Path, asked: Any = PLAN, rows: int = 100, kind: str = "csv") -> Path:
    out = folder / f"reports.{kind}"
    values = {
        "answer": LABELS * (rows // 4),
        "town": ["A", "B"] * (rows // 2),
        "age": ["young", "old"] * (rows // 2),
    }
    column, cohort = ((), "age") if asked is CAMPAIGN else ("answer", None)
    rng = np.random.default_rng(1)
    privatize_table(values, asked, column, out, cohort=cohort, keep=["town"], rng=rng)
    return out


def repeat_lines(path: Path) -> None:
    """As `cat reports.csv; tail -n +2 reports.csv` does."""
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines + lines[1:]) + "\n")


@every_form
def test_a_file_with_every_line_twice_gives_the_same_tallies(asked: Any, tmp_path: Path) -> None:
    path = make_reports(tmp_path, asked)
    once = tally_table(path, asked, by="town")
    repeat_lines(path)
    twice = tally_table(path, asked, by="town")
    assert twice.by == once.by and twice.reports == 100
    assert (once.repeated, twice.repeated) == (0, 100)
    assert once.without_id == twice.without_id == 0


@every_form
def test_the_same_reports_in_files_of_several_kinds(asked: Any, tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for kind in ("csv", "parquet", "arrow", "csv.gz"):
        make_reports(folder, asked, kind=kind)  # with one seed: the ids and the reports are the same
    tallies = tally_table(folder, asked)
    assert (tallies.reports, tallies.repeated) == (100, 300)
    assert tallies.by == tally_table(folder / "reports.csv", asked).by
    assert tally_table(f"{folder}/*.csv*", asked).repeated == 100


class Pipe(io.RawIOBase):
    """A stream that cannot go back."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._data.readinto(buffer)


@pytest.mark.parametrize(
    "kind", ["pipe", "arrow pipe", "stream", "table", "batches", "pandas", "polars", "lazy", "duckdb"]
)
def test_every_kind_of_table_can_be_read_again(kind: str, tmp_path: Path) -> None:
    import duckdb
    import polars as pl

    once = pq.read_table(make_reports(tmp_path, kind="parquet"))
    table = pa.concat_tables([once, once.slice(30, 50)])
    arrow = io.BytesIO()
    with pa.ipc.new_stream(arrow, table.schema) as writer:
        writer.write_table(table)
    repeat_lines(make_reports(tmp_path))
    text = (tmp_path / "reports.csv").read_bytes()
    data: dict[str, Any] = {
        "pipe": lambda: Pipe(text),
        "arrow pipe": lambda: Pipe(arrow.getvalue()),
        "stream": lambda: io.BytesIO(text),
        "table": lambda: table,
        "batches": lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(40)),
        "pandas": lambda: table.to_pandas(),
        "polars": lambda: pl.from_arrow(table),
        "lazy": lambda: pl.from_arrow(table).lazy(),
        "duckdb": lambda: duckdb.from_arrow(table),
    }
    tallies = tally_table(data[kind](), PLAN, by="town")
    assert (tallies.reports, tallies.repeated) == (100, 100 if kind in ("pipe", "stream") else 50)
    assert tallies.by == tally_table(once, PLAN, by="town").by


def test_standard_input_of_the_operating_system(tmp_path: Path) -> None:
    repeat_lines(make_reports(tmp_path))
    data = (tmp_path / "reports.csv").read_bytes()
    read, write = os.pipe()

    def fill() -> None:
        with open(write, "wb") as file:
            file.write(data)

    writer = Thread(target=fill)
    writer.start()
    with open(read, "rb") as file:
        assert tally_table(file, PLAN).repeated == 100
    writer.join()


IDS = [
    "",
    "7",
    "8",
    "07",
    "a" * 32,
    "A" * 32,
    "a" * 16 + "b" * 16,
    "ab",
    str(uuid.UUID(int=1)),
    str(uuid.UUID(int=2)),
]
SAME = {"A" * 32: "a" * 32}  # the same bytes


@pytest.mark.parametrize("most_words", [1, 12, 1 << 20])
@given(ids=st.lists(st.sampled_from(IDS), max_size=40))
def test_as_many_as_a_dictionary_would_count(most_words: int, ids: list[str]) -> None:
    """In memory and on disk; ids of other kinds than ours are compared too."""
    report = {name: number % 4 for number, name in enumerate(dict.fromkeys(SAME.get(i, i) for i in ids))}
    reports = [report[SAME.get(name, name)] for name in ids]
    different = len(set(report) - {""}) + ids.count("")
    table = {"report": pa.array(reports, pa.int64()), "report_id": pa.array(ids, pa.string())}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "_MOST_WORDS", most_words)
        tallies = tally_table(table, PLAN, assume_plan=True)
    assert tallies.reports == different and tallies.repeated == len(ids) - different
    assert tallies.without_id == ids.count("")


def test_many_ids_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_MOST_WORDS", 5_000)
    rng = np.random.default_rng(2)
    ids = rng.bytes(16 * 40_000)
    column = [ids[16 * i : 16 * i + 16] for i in range(40_000)]
    column += [column[i] for i in rng.choice(40_000, 3_000, replace=False)]
    table = {"report": np.zeros(43_000, dtype=np.int64), "report_id": pa.array(column, pa.binary(16))}
    tallies = tally_table(table, PLAN, assume_plan=True)
    assert (tallies.reports, tallies.repeated) == (40_000, 3_000)


def test_ids_that_are_numbers() -> None:
    counted = {"report": [0] * 5_000, "report_id": [*range(4_990), *range(10)]}
    tallies = tally_table(counted, PLAN, assume_plan=True)
    assert (tallies.reports, tallies.repeated) == (4_990, 10)


def test_refused_rows_are_listed_once_and_repeats_of_reports_only_are_repeats(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    lines = ["report_id,report,n", "x,0,1", "y,99,1", "broken", "z,1,1", "x,0,1", "y,99,1", "w,2,1"]
    path.write_text("\n".join(lines) + "\n")
    heard: list[tuple[int, str]] = []
    tallies = tally_table(path, PLAN, assume_plan=True, on_refused=lambda row, why: heard.append((row, why)))
    assert (tallies.reports, tallies.repeated) == (3, 1)
    assert heard == list(tallies.refused.rows)
    assert heard == [(1, "foreign"), (2, "wrong number of columns"), (5, "foreign")]
    assert tallies.reports + tallies.repeated + tallies.refused.total == len(lines) - 1


def test_a_report_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("report_id,report\nx,0\nx,00\ny,1\ny, 01\nz,1\n")
    tallies = tally_table(path, PLAN, assume_plan=True)
    assert (tallies.reports, tallies.repeated) == (3, 2)
    bits = "0a" + "0" * 14  # of the second and the fourth value
    path.write_text(f"report_id,report\nx,{bits}\nx,{bits.upper()}\n")
    tallies = tally_table(path, UNARY, assume_plan=True)
    assert (tallies.reports, tallies.repeated) == (1, 1)
    path.write_text("report_id,report,town\nx,0,a\nx,0,A\n")
    with pytest.raises(ConflictingReports):
        tally_table(path, PLAN, by="town", assume_plan=True)


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
def test_a_file_that_the_caller_opened_stays_open(format: Any) -> None:
    opened, people = io.BytesIO(), io.BytesIO(b"answer\n" + b"\n".join([b"a"] * 5))
    privatize_table(people, PLAN, "answer", opened, format=format)
    opened.seek(0)
    assert tally_table(opened, PLAN).reports == 5
    gc.collect()
    assert not people.closed and not opened.closed


def test_the_same_id_with_another_report_names_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("report_id,report\nx,0\ny,1\nbroken,0,0\nz,2\n")
    (tmp_path / "b.csv").write_text("report_id,report\nw,0\nz,2\ny,0\n")
    with pytest.raises(ConflictingReports) as error:
        tally_table(tmp_path, PLAN, assume_plan=True)
    assert error.value.places == ((str(tmp_path / "a.csv"), 1), (str(tmp_path / "b.csv"), 2))
    assert "a.csv row 2 and" in str(error.value) and "b.csv row 3 (" in str(error.value)


@every_form
def test_the_same_id_with_another_report(asked: Any, tmp_path: Path) -> None:
    path = make_reports(tmp_path, asked)
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    id, *beside, report = lines[0]
    other = next(cells for cells in lines if cells[1:-1] == beside and cells[-1] != report)
    path.write_text(path.read_text() + ",".join([id, *other[1:]]) + "\n")
    with pytest.raises(ConflictingReports):
        tally_table(path, asked)


def test_the_same_id_with_another_plan_or_group() -> None:
    other = pv.design(PRIOR, 0.5, pv.Histogram())
    plans = {"young": PLAN, "old": other}
    table = {
        "report": [0, 0],
        "report_id": ["x", "x"],
        "age": ["young", "old"],
        "plan": [PLAN.id, other.id],
    }
    with pytest.raises(ConflictingReports) as error:
        tally_table(table, plans, cohort="age")
    assert error.value.places == ((None, 0), (None, 1))
    same_plan = {**table, "plan": [PLAN.id] * 2}
    assert tally_table(same_plan, PLAN).repeated == 1
    with pytest.raises(ConflictingReports):
        tally_table(same_plan, PLAN, by="age")


def test_rows_without_ids_are_counted_as_they_are(tmp_path: Path) -> None:
    assert tally_table({"report": [0, 0]}, PLAN, assume_plan=True).without_id == 2
    (tmp_path / "a.csv").write_text("report_id,report\nx,0\n,1\n")
    (tmp_path / "b.csv").write_text("report\n0\n0\n")
    tallies = tally_table(tmp_path, PLAN, assume_plan=True)
    assert (tallies.reports, tallies.repeated, tallies.without_id) == (4, 0, 3)
    (tmp_path / "c.csv").write_text("report_id,report\nx,0\n")
    both = tallies + tally_table(tmp_path, PLAN, assume_plan=True)
    assert (both.reports, both.repeated, both.without_id) == (8, 1, 6)


def test_a_damaged_file_of_nothing_but_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("report_id,report\n")
    tallies = tally_table(tmp_path, PLAN, assume_plan=True)
    assert (tallies.reports, tallies.repeated, tallies.without_id) == (0, 0, 0)
