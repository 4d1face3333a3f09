"""Tables of any kind give the same tally; nothing is dropped in silence; files are whole or not there."""

from __future__ import annotations

import datetime
import gzip
import io
import re
import subprocess
import sys
import tracemalloc
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorveil as pv
from priorveil.errors import ForeignReport, InvalidInput, PriorveilError, TooLarge
from priorveil.mechanisms.randomness import Source
from refusals import raises

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from priorveil.files import formats  # noqa: E402
from priorveil.files.batches import Batch, WantedColumns, batch_rows  # noqa: E402
from priorveil.files.data_table import DataTable  # noqa: E402
from priorveil.questions.campaign import ask_with  # noqa: E402
from priorveil.tables import (  # noqa: E402
    Privatized,
    Tallies,
    estimate_table,
    privatize_table,
    tally_table,
)
from priorveil.tables import counting as counting_module  # noqa: E402
from priorveil.tables.counting import BatchCounter  # noqa: E402
from priorveil.tables.forms import table_forms  # noqa: E402
from priorveil.tables.refusals import NothingWritten, RefusedRows  # noqa: E402
from priorveil.tables.write import arrow_column, report_schema, report_type  # noqa: E402

LABELS = ["a", "b", "c", "d", "e", "f"]
METHODS = ["columns", "arc", "unary", "subset", "hashing", "orders"]
PRIOR = pv.Prior([0.35, 0.25, 0.15, 0.1, 0.1, 0.05], labels=LABELS)
PLANS = {m: pv.design(PRIOR, 1.0, pv.Histogram(), method=m, rounds=50) for m in METHODS[:-1]}
PLANS["orders"] = pv.design(PRIOR, 1.0, pv.Distribution(), method="arc")
WIDE = [pv.design(pv.Prior.uniform(size), 1.0, pv.Histogram(), method="unary") for size in (70, 150)]
COLUMNS = PLANS["columns"]
NUMBERED = pv.design(pv.Prior(PRIOR.probabilities), 1.0, pv.Histogram())  # its labels are 0 to 5


class Same(Source):
    """A source of words that are all the same: then the report depends on the value alone."""

    def words(self, count: int) -> Any:
        return np.full(count, 2**62, dtype="<u8")

    def stream(self) -> Any:
        return self.words


def report_column(plan: pv.Plan, reports: Any) -> Any:
    """Reports as privatize_table writes them."""
    return arrow_column(
        reports, report_schema({}, False, "plan", report_type(plan.mechanism.width)).field("report")
    )


def multiset(table: Any, column: str = "report") -> Counter[Any]:
    return Counter(table[column].to_pylist())


# -- the same, whatever the table is -----------------------------------------------------------------------

entries = st.one_of(st.sampled_from(LABELS), st.none(), st.sampled_from(["z", "", "A", "0x"]))
frames = st.one_of(
    st.lists(entries, max_size=30),
    st.lists(entries, min_size=1, max_size=1),
    st.integers(0, 60).map(lambda n: ["a"] * n + ["f"]),
    st.just([None, None]),
    st.just(["z"]),
)


def as_csv(values: list[Any], name: str = "answer") -> io.BytesIO:
    """A CSV: an empty text is quoted, a gap is an empty cell; a second column keeps its line alive."""
    cells = ["" if v is None else '"' + str(v) + '"' for v in values]
    lines = [f"{name},other", *(cell + ",1" for cell in cells)]
    return io.BytesIO("\n".join(lines).encode() + b"\n")


def in_parts(values: list[Any]) -> Any:
    """Three batches, the middle one empty."""
    half = len(values) // 2
    parts = [values[:half], [], values[half:]]
    schema = pa.schema([("answer", pa.string())])
    batches = [pa.record_batch({"answer": pa.array(part, pa.string())}) for part in parts]
    return pa.RecordBatchReader.from_batches(schema, batches)


def inputs(values: list[Any]) -> dict[str, Any]:
    """The same values in every kind of table."""
    import duckdb
    import pandas as pd
    import polars as pl

    column = pa.array(values, pa.string())
    table = pa.table({"answer": column})
    file, stream = io.BytesIO(), io.BytesIO()
    pq.write_table(table, file, row_group_size=7)
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return {
        "mapping": {"answer": column},
        "arrow": table,
        "batches": in_parts(values),
        "batch": pa.record_batch({"answer": column}),
        "data set": ds.dataset(table),
        "scanner": ds.dataset(table).scanner(),
        "categories": pa.table({"answer": column.dictionary_encode()}),
        "pandas": pd.DataFrame({"answer": pd.Series(values, dtype="object")}) if values else table,
        "pandas categories": pd.DataFrame({"answer": pd.Categorical(values)}) if any(values) else table,
        "polars": pl.DataFrame({"answer": pl.Series(values, dtype=pl.String)}),
        "polars categories": pl.DataFrame({"answer": pl.Series(values, dtype=pl.Categorical)}),
        "polars lazy": pl.DataFrame(
            {"other": range(len(values)), "answer": pl.Series(values, dtype=pl.String)}
        ).lazy(),
        "polars lazy categories": pl.LazyFrame({"answer": pl.Series(values, dtype=pl.Categorical)}),
        "duckdb": duckdb.from_arrow(table),
        "csv": as_csv(values),
        "gzip": io.BytesIO(gzip.compress(as_csv(values).getvalue())),
        "parquet": io.BytesIO(file.getvalue()),
        "arrow stream": io.BytesIO(stream.getvalue()),
    }


@given(frames)
def test_every_table_gives_the_same_reports(values: list[Any]) -> None:
    known = [v for v in values if v in LABELS]
    expected = Counter(COLUMNS.privatize(known, Same()).tolist()) if known else Counter()
    others = [v for v in values if v and v not in LABELS]
    refused = {
        "missing": values.count(None) + values.count(""),
        "another spelling of a value": sum(v.lower() in LABELS for v in others),
        "outside the domain": sum(v.lower() not in LABELS for v in others),
    }
    for kind, data in inputs(values).items():
        made = privatize_table(data, COLUMNS, "answer", rng=Same())
        assert multiset(made.table) == expected, kind
        assert made.refused.counts == {why: n for why, n in refused.items() if n}, kind
        assert [row for row, _ in made.refused.rows] == [
            i for i, v in enumerate(values) if v not in LABELS
        ], kind


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 2**32 - 1), rows=st.sampled_from([0, 1, 40]))
def test_every_table_gives_the_same_tally(method: str, seed: int, rows: int) -> None:
    import duckdb
    import polars as pl

    rng, plan = np.random.default_rng(seed), PLANS[method]
    reports = plan.privatize(np.minimum(rng.geometric(0.6, rows) - 1, 5), rng, codes=True)
    gaps = rng.random(rows) < 0.2
    column = report_column(plan, reports).to_pylist()
    table = pa.table({"report": pa.array([None if g else r for r, g in zip(column, gaps, strict=True)],
                                         pa.int64() if not plan.mechanism.width else pa.binary(8))})  # fmt: skip
    texts = [
        None if r is None else r if not plan.mechanism.width else r.hex() for r in table["report"].to_pylist()
    ]
    mask = np.broadcast_to(gaps.reshape(-1, *[1] * (reports.ndim - 1)), reports.shape)
    expected = plan.tally(np.ma.MaskedArray(reports, mask)) if rows else None
    kinds = {
        "arrow": table,
        "polars": pl.from_arrow(table),
        "polars lazy": pl.from_arrow(table).lazy(),
        "duckdb": duckdb.from_arrow(table),
        "csv": as_csv(texts, "report"),
        "categories": pa.table({"report": table["report"].combine_chunks().dictionary_encode()}),
        "batches": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3)),
    }
    for kind, data in kinds.items():
        found = tally_table(data, plan, assume_plan=True).by
        assert found == ({} if expected is None else {(None, None): (expected,)}), kind


@pytest.mark.parametrize(
    "prior", [pv.Prior.grid([0, 1, 3], [0.3, 0.4, 0.3]), pv.Prior.cells([0, 1, 2, 3], [0.3, 0.4, 0.3])]
)
def test_columns_of_numbers(prior: pv.Prior) -> None:
    """Numbers are read as numbers, in text too; the reports are those of `Plan.privatize` with the same words."""
    plan = pv.design(prior, 1.0, pv.Histogram())
    values = [0.5, None, 3.5, 2, 1e-5, 3, -0.0]
    inside = [v for v in values if v is not None and v <= 3]
    kinds = {
        "arrow": {"answer": pa.array(values, pa.float64())},
        "csv": as_csv(values),
        "decimals": {"answer": pa.array([None if v is None else Decimal(str(v)) for v in values])},
    }
    for kind, data in kinds.items():
        made = privatize_table(data, plan, "answer", rng=Same())
        assert made.refused.rows == ((1, "missing"), (2, "outside the domain")), kind
        assert made.table["report"].to_pylist() == plan.privatize(inside, Same()).tolist(), kind
    words = privatize_table(as_csv(["12a", "nan", "inf", " 1.5 ", "true"]), plan, "answer")
    assert words.reports == 1 and words.refused.total == 4


@given(st.lists(st.one_of(st.none(), st.integers(-2, 7)), min_size=1, max_size=30))
def test_whole_numbers_are_labels_and_never_codes_of_others(values: list[int | None]) -> None:
    import pandas as pd

    for plan, known in ((NUMBERED, range(6)), (COLUMNS, range(0))):
        refused = [i for i, v in enumerate(values) if v not in known]
        kinds = {
            "arrow": {"answer": pa.array(values, pa.int64())},
            "small": {"answer": pa.array(values, pa.int8())},
            "pandas": pd.DataFrame({"answer": pd.Series(values, dtype="float64")}),
            "csv": as_csv(values),
            "csv from floats": as_csv([None if v is None else float(v) for v in values]),
        }
        for kind, data in kinds.items():
            made = privatize_table(data, plan, "answer", rng=Same())
            assert [row for row, _ in made.refused.rows] == refused, kind
            assert made.reports == len(values) - len(refused), kind


def test_numbers_as_labels() -> None:
    plan = pv.design(pv.Prior([0.5, 0.5], labels=[10, 20]), 1.0, pv.Histogram())
    for data in ({"x": pa.array([10, None, 0, 20])}, io.BytesIO(b"x,y\n10,1\n,1\n0,1\n20,1\n")):
        made = privatize_table(data, plan, "x")
        assert made.refused.rows == ((1, "missing"), (2, "outside the domain"))


def test_text_that_looks_like_a_code_is_not_one() -> None:
    plan = pv.design(pv.Prior([0.5, 0.5], labels=["1", "2"]), 1.0, pv.Histogram())
    made = privatize_table(io.BytesIO(b"x\n1\n2\n0\n"), plan, "x")
    assert made.refused.rows == ((2, "outside the domain"),)


CELLS = {("young", 1): 0.2, ("young", 2): 0.3, ("old", 2): 0.5}
TWO = pv.design(pv.Prior.joint(CELLS, ("age", "dose"), impossible="leave out"), 1.0, pv.Histogram())


@pytest.mark.parametrize("kind", ["csv", "arrow", "pandas", "polars"])
@pytest.mark.parametrize("column", [["age", "dose"], ["dose", "age"]])
def test_several_columns_are_one_value(kind: str, column: list[str]) -> None:
    rows = [("old", 2), ("young", 1), ("old", 1), ("Old", 2), (None, 2), ("young", 3), ("young", 2)]
    table = {"dose": [row[1] for row in rows], "age": [row[0] for row in rows]}
    text = "age,dose\n" + "".join(f"{age or ''},{dose}\n" for age, dose in rows)
    data: Any = {
        "csv": lambda: io.BytesIO(text.encode()),
        "arrow": lambda: pa.table(table),
        "pandas": lambda: pytest.importorskip("pandas").DataFrame(table),
        "polars": lambda: pytest.importorskip("polars").DataFrame(table),
    }[kind]()
    done = privatize_table(data, TWO, column, rng=np.random.default_rng(5))
    reasons = ["a combination that the plan leaves out", "another spelling of a value", "missing"]
    assert done.refused.rows == tuple(enumerate([*reasons, "outside the domain"], 2))
    own = [("old", 2), ("young", 1), ("young", 2)]
    assert done.table["report"].to_pylist() == TWO.privatize(own, np.random.default_rng(5)).tolist()
    assert "age" not in done.table.column_names and "dose" not in done.table.column_names


def test_columns_of_attributes_go_by_name_or_by_order() -> None:
    table = {"a": ["young"] * 3, "b": [1, 2, 2]}
    assert privatize_table(table, TWO, ["a", "b"]).reports == 3
    with pytest.raises(NothingWritten):
        privatize_table(table, TWO, ["b", "a"], io.BytesIO())
    for column in ("a", ["a"], ["a", "b", "a"]):
        with raises(InvalidInput, argument="column"):
            privatize_table(table, TWO, column)
    with raises(InvalidInput, argument="column"):
        privatize_table(table, pv.design(pv.Prior.uniform(2), 1.0, pv.Histogram()), ["a", "b"])
    with raises(InvalidInput, argument="keep"):
        privatize_table(table, TWO, ["a", "b"], keep=["b"])
    swapped = pv.Prior.joint(
        {cell[::-1]: p for cell, p in CELLS.items()}, ("dose", "age"), impossible="leave out"
    )
    total = pv.Sum([1, 2, 3])
    plans = {1: pv.design(TWO.reference, 1.0, total), 2: pv.design(swapped, 1.0, total)}
    with raises(InvalidInput, argument="plan"):
        privatize_table(table, plans, ["a", "b"], cohort="b")


def test_a_column_with_the_name_of_another_attribute_is_refused() -> None:
    cells = {(a, b): 0.25 for a in ("yes", "no") for b in ("yes", "no")}
    plan = pv.design(pv.Prior.joint(cells, ("smokes", "drinks")), 1.0, pv.Histogram())
    table = {"smokes": ["yes"], "drinks now": ["no"]}
    with raises(InvalidInput, argument="column"):
        privatize_table(table, plan, ["drinks now", "smokes"])
    assert privatize_table(table, plan, ["smokes", "drinks now"]).reports == 1


def test_an_empty_line_of_one_column_is_a_missing_value() -> None:
    made = privatize_table(io.BytesIO(b"x\na\n\nb\n\n"), COLUMNS, "x")
    assert made.refused.rows == ((1, "missing"), (3, "missing"))
    made = privatize_table(io.BytesIO(b"x,y\na,1\n\nb,1\n"), COLUMNS, "x")
    assert made.reports == 2 and not made.refused.total


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "arrow"])
@pytest.mark.parametrize("plan", [*PLANS.values(), *WIDE], ids=[*METHODS, "two words", "three words"])
def test_files_hold_the_reports(plan: pv.Plan, suffix: str, tmp_path: Path) -> None:
    outside = "x" if isinstance(plan.labels[0], str) else 999
    values = {"x": [*plan.labels[:3], None, outside], "town": ["A", "B", "A", "B", "A"]}
    in_memory = privatize_table(values, plan, "x", keep=["town"], rng=np.random.default_rng(5))
    out = tmp_path / f"reports.{suffix}"
    on_disk = privatize_table(values, plan, "x", out, keep=["town"], rng=np.random.default_rng(5))
    assert on_disk == Privatized(3, in_memory.refused)
    assert tally_table(out, plan, by="town").by == tally_table(in_memory.table, plan, by="town").by
    assert [p.name for p in tmp_path.iterdir()] == [out.name]


def test_ids_are_different_and_only_what_is_asked_for_leaves() -> None:
    data = {"x": ["a"] * 500, "name": ["n"] * 500, "town": ["A"] * 500}
    table = privatize_table(data, COLUMNS, "x", keep=["town"]).table
    assert table.column_names == ["report_id", "town", "plan", "report"]
    assert len(set(table["report_id"].to_pylist())) == 500
    assert privatize_table(data, COLUMNS, "x", ids=False).table.column_names == ["plan", "report"]
    with raises(InvalidInput, argument="keep"):
        privatize_table(data, COLUMNS, "x", keep=["x"])


def test_folders_patterns_and_partitions(tmp_path: Path) -> None:
    for town in ("north", "south %26 east"):
        folder = tmp_path / "all" / f"town={town}"
        folder.mkdir(parents=True)
        privatize_table({"x": ["a", "b", None]}, COLUMNS, "x", folder / "0.parquet")
    (tmp_path / "all" / "_SUCCESS").write_text("")
    (tmp_path / "all" / ".0.parquet.part").write_text("half")
    found = estimate_table(tmp_path / "all", COLUMNS, by="town")
    assert {town: e.reports for town, e in found.groups.items()} == {"north": 2, "south & east": 2}
    assert estimate_table(f"{tmp_path}/all/*/*.parquet", COLUMNS).everybody.reports == 4
    with raises(InvalidInput, argument="data"):
        estimate_table(f"{tmp_path}/none*.parquet", COLUMNS)
    with pytest.raises(FileNotFoundError):
        estimate_table(tmp_path / "none.parquet", COLUMNS)


def test_a_list_of_paths_is_one_table(tmp_path: Path) -> None:
    (tmp_path / "folder" / "town=north").mkdir(parents=True)
    files = [tmp_path / "a.csv", tmp_path / "b.parquet", tmp_path / "folder" / "town=north" / "c.parquet"]
    for rows, file in enumerate(files, 1):
        privatize_table({"x": ["a"] * rows}, COLUMNS, "x", file)
    assert tally_table(files, COLUMNS).reports == 6
    assert tally_table((str(files[0]), tmp_path / "folder"), COLUMNS).reports == 4
    assert tally_table([files[1], f"{tmp_path}/folder/*/*"], COLUMNS).reports == 5
    (tmp_path / "link.csv").symlink_to(files[0])
    for second in (tmp_path / "a.csv", tmp_path / "link.csv", tmp_path):
        with raises(InvalidInput, argument="data", value=str(second)):
            tally_table([files[0], second], COLUMNS)
    with raises(InvalidInput, argument="data", value=f"{tmp_path}/none*"):
        tally_table([files[0], f"{tmp_path}/none*"], COLUMNS)
    with raises(InvalidInput, argument="data"):
        tally_table([], COLUMNS)


def test_rows_are_numbered_over_files_and_broken_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "SMALL_BATCH", 6)  # several batches even here
    lines = ["a,1"] * 20
    lines[3], lines[7], lines[8], lines[15] = "z,1", "a", "a,1,1", ",1"
    for name in ("0.csv", "1.csv"):
        (tmp_path / name).write_text("x;y\n".replace(";", ",") + "\n".join(lines) + "\n")
    made = privatize_table(tmp_path, COLUMNS, "x")
    wrong = "wrong number of columns"
    one = [(3, "outside the domain"), (7, wrong), (8, wrong), (15, "missing")]
    assert made.refused.rows == (*one, *((row + 20, why) for row, why in one))
    assert made.reports == 32


@pytest.mark.parametrize("first", [3.25, 1])
def test_a_column_of_mixed_types_is_refused_without_its_values(first: float) -> None:
    pandas = pytest.importorskip("pandas")
    plan = pv.design(pv.Prior({"yes": 0.3, "no": 0.7}), 1.0, pv.Histogram())
    column = [first, "my own words"]
    for data in ({"answer": column}, pandas.DataFrame({"answer": column})):
        with raises(InvalidInput, argument="data") as caught:
            privatize_table(data, plan, "answer")
        assert "my own words" not in str(caught.value) and caught.value.__suppress_context__


def test_a_message_never_shows_a_value(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"x,y\nsecret,1,2,3\nsecret\nsecret,1\n\xff\xfesecret,1\n")
    with pytest.raises(PriorveilError) as caught:
        privatize_table(tmp_path / "x.csv", COLUMNS, "x", tmp_path / "r.csv", most_refused=0)
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"PAR1 and then nothing", b"\xff\xff\xff\xff\x00\x01", b"ARROW1\0\0\0"]
)
def test_damaged_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with raises(InvalidInput, argument="data"):
        estimate_table(path, COLUMNS)


def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path: Path) -> None:
    packed = gzip.compress(("x\n" + "a\n" * 1000).encode(), mtime=0)
    wrong = {
        "cut.csv.gz": (packed[:-12], "damaged"),
        "spoilt.csv.gz": (packed[:12] + bytes(8) + packed[20:], "damaged"),
        "long.csv": (b'x,y\na,"' + b"z" * (20 << 20) + b'"\n', "quotation mark that is not closed"),
        "latin.csv": ("x\né\n".encode("latin-1"), "UTF-8"),
    }
    for name, (content, said) in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInput, match=f"{re.escape(name)}.*{said}"):
            privatize_table(tmp_path / name, COLUMNS, "x")


def test_lines_may_end_as_on_any_system() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        made = privatize_table(io.BytesIO(end.join([b"x,y", b"a,1", b'"b",2', b"z,3"])), COLUMNS, "x")
        assert made.reports == 2 and made.refused.rows == ((2, "outside the domain"),)


def test_cells_are_quoted_as_in_a_spreadsheet() -> None:
    lines = 'x;town\na;"A ""old"" town; north"\n"b"; "two\nlines"\nc;""\nd;\ne;5" pipe\n'
    for text in (lines, "\ufeff" + lines, "sep=;\n" + lines):
        table = privatize_table(io.BytesIO(text.encode()), COLUMNS, "x", keep=["town"]).table
        assert table["town"].to_pylist() == ['A "old" town; north', "two\nlines", "", None, '5" pipe']
    with raises(InvalidInput, argument="data"):
        privatize_table(io.BytesIO(lines.encode() + b'f;"cut'), COLUMNS, "x")


def test_csv_keeps_what_it_is_given(tmp_path: Path) -> None:
    towns = ['A "old" town, north', "two\nlines", "", None, " spaces ", "x;y"]
    privatize_table({"x": LABELS, "town": towns}, COLUMNS, "x", tmp_path / "r.csv", keep=["town"])
    assert set(estimate_table(tmp_path / "r.csv", COLUMNS, by="town").groups) == set(towns)


CSV_ALONE = """
import os, sys
sys.modules["pyarrow"] = None
import priorveil as pv
from priorveil.plans.form import Form
from priorveil.questions.campaign import Campaign
from priorveil.questions.number import NumberQuestion
from priorveil.tables import estimate_table, privatize_table, tally_table
os.chdir(sys.argv[2])
plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram(), method=sys.argv[1])
made = privatize_table("people.csv", plan, "answer", "reports.csv", keep=["town"])
found = estimate_table("reports.csv", plan, by="town")
assert made.reports == found.everybody.reports == 2 and made.refused.counts == {"missing": 1}
assert {town: e.reports for town, e in found.groups.items()} == {"A": 1, "B": 1}
hours = pv.design(pv.Prior.grid([0, 40], [0.5, 0.5], outside="ends"), 1.0, pv.Sum([0, 40], unbiased=True))
asked = Campaign("Hours", [NumberQuestion("hours", "How long?")], {"all": Form.of("hours", hours)})
made = privatize_table("hours.csv", asked, out="submissions.csv")
assert tally_table("submissions.csv", asked).reports == made.reports == 2
assert made.refused.counts == {"hours: not a number": 1}
for task in (
    lambda: privatize_table({"answer": ["yes"]}, plan, "answer", "r.csv"),
    lambda: privatize_table("people.csv", plan, "answer", "r.parquet"),
    lambda: privatize_table("people.csv", plan, "answer"),
):
    try:
        task()
    except pv.errors.MissingExtra as error:
        assert "[tables]" in str(error)
    else:
        raise AssertionError("it needs pyarrow")
"""


@pytest.mark.parametrize("method", ["columns", "unary"])
def test_csv_needs_no_other_library(method: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("answer;town\nyes;A\nno;B\n;A\n")
    (tmp_path / "hours.csv").write_text("hours\n1\n40\nx\n")
    subprocess.run([sys.executable, "-c", CSV_ALONE, method, str(tmp_path)], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}.csv" for name in ("people", "reports", "hours", "submissions")
    }


def test_columns_that_go_along_have_one_type(tmp_path: Path) -> None:
    for name, ids in {"0": pa.array([1]), "1": pa.array([2], pa.int32()), "2": pa.array(["secret"])}.items():
        pq.write_table(pa.table({"x": ["a"], "id": ids}), tmp_path / f"{name}.parquet")
    with raises(InvalidInput, argument="keep") as error:
        privatize_table(tmp_path, COLUMNS, "x", keep=["id"])
    assert "secret" not in str(error.value)
    assert privatize_table(tmp_path, COLUMNS, "x").reports == 3
    (tmp_path / "2.parquet").unlink()
    kept = privatize_table(tmp_path, COLUMNS, "x", keep=["id"]).table
    assert kept is not None and kept["id"].to_pylist() == [1, 2]


def test_a_folder_may_hold_files_of_several_kinds(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("x,id\na,secret\n")
    pq.write_table(pa.table({"x": ["b"], "id": [2]}), tmp_path / "1.parquet")
    kept = privatize_table(tmp_path, COLUMNS, "x", keep=["id"]).table
    assert kept is not None and kept["id"].to_pylist() == ["secret", "2"]
    (tmp_path / "0.csv").rename(tmp_path / "2.csv")
    with raises(InvalidInput, argument="keep") as error:
        privatize_table(tmp_path, COLUMNS, "x", keep=["id"])
    assert "secret" not in str(error.value)


def test_folders_in_a_pattern_give_columns(tmp_path: Path) -> None:
    for town in ("A", "B b"):
        (tmp_path / "all=1" / f"town={town}").mkdir(parents=True)
        (tmp_path / "all=1" / f"town={town}" / "x.csv").write_text("x\na\n")
    made = privatize_table(f"{tmp_path}/all=1/*/x.csv", COLUMNS, "x", keep=["town"]).table
    assert made is not None and made["town"].to_pylist() == ["A", "B b"]


def test_only_a_csv_is_packed_and_no_stream_is_called_feather(tmp_path: Path) -> None:
    for name in ("r.parquet.gz", "r.gz", "r.feather"):
        with raises(InvalidInput, argument="out"):
            privatize_table({"x": ["a"]}, COLUMNS, "x", tmp_path / name)
    privatize_table({"x": ["a"]}, COLUMNS, "x", tmp_path / "r.gz", format="parquet")
    assert tally_table(tmp_path / "r.gz", COLUMNS).reports == 1


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    privatize_table({"x": ["a"] * 5000}, COLUMNS, "x", tmp_path / "r.parquet")
    whole = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(whole[: len(whole) // 2])
    with raises(InvalidInput, argument="data"):
        estimate_table(tmp_path / "half.parquet", COLUMNS)


@pytest.mark.parametrize(
    "text", ["41,flu\n35,cold\n", "flu\ncold\nflu\n", '{"x": "flu"}\n{"x": "cold"}\n', "ann,flu\nbob,flu\n"]
)
def test_a_first_line_of_values_is_not_shown_as_names_of_columns(text: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text)
    with raises(InvalidInput, argument="data") as raised:
        privatize_table(path, COLUMNS, "x")
    assert "flu" not in str(raised.value)


def test_names_of_columns_are_shown_where_one_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(",age,illness\n0,41,flu\n1,35,cold\n")  # as pandas writes it, with an index
    with raises(InvalidInput, argument="column", value="x") as raised:
        privatize_table(path, COLUMNS, "x")
    assert "age, illness" in str(raised.value)


def test_what_is_no_table_of_plain_columns(tmp_path: Path) -> None:
    import pandas as pd
    import polars as pl

    for data in (pl.Series("x", ["a"]), pd.Series(["a"], name="x"), [{"x": "a"}]):
        with raises(InvalidInput, argument="data"):
            privatize_table(data, COLUMNS, "x")
    for nested in ([[1]], [{"a": 1}]):
        with raises(InvalidInput, argument="column"):
            tally_table({"report": [0], "g": nested}, COLUMNS, by="g", assume_plan=True)
    with raises(InvalidInput, argument="out"):
        privatize_table({"x": ["a"], "g": [[1]]}, COLUMNS, "x", tmp_path / "r.csv", keep=["g"])
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    out.write_text("dear")
    with raises(InvalidInput, argument="out"):
        privatize_table({"x": ["a"]}, COLUMNS, "x", out)
    assert out.read_text() == "dear"
    privatize_table({"x": ["a"]}, COLUMNS, "x", out, replace=True)
    assert out.read_text() != "dear"
    with raises(InvalidInput, argument="out"):
        privatize_table({"x": ["a"]}, COLUMNS, "x", tmp_path / "r.txt")
    with raises(InvalidInput, argument="out"):
        privatize_table({"x": ["a"]}, COLUMNS, "x", tmp_path / "none" / "r.csv")


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "arrow"])
def test_an_interrupted_run_leaves_nothing(failure: type[BaseException], suffix: str, tmp_path: Path) -> None:
    def stop(rows: int, of: int | None, share: float | None) -> None:
        raise failure

    with pytest.raises(failure):
        privatize_table({"x": ["a"] * 10}, COLUMNS, "x", tmp_path / f"r.{suffix}", progress=stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet"])
def test_a_limit_of_zero_writes_nothing_to_a_stream(kind: Any) -> None:
    stream = io.BytesIO()
    with pytest.raises(NothingWritten):
        privatize_table({"x": ["a", "z"]}, COLUMNS, "x", stream, format=kind, most_refused=0)
    assert stream.getvalue() == b""
    privatize_table({"x": ["a", "b"]}, COLUMNS, "x", stream, format=kind, most_refused=0)
    assert tally_table(io.BytesIO(stream.getvalue()), COLUMNS).reports == 2


def test_a_limit_of_zero_writes_nothing(tmp_path: Path) -> None:
    with raises(InvalidInput, argument="data"):
        privatize_table({"x": ["a", "z"]}, COLUMNS, "x", tmp_path / "r.csv", most_refused=0)
    assert list(tmp_path.iterdir()) == []


# -- cohorts, groups, refusals -----------------------------------------------------------------------------


def test_cohorts_have_their_own_plans(tmp_path: Path) -> None:
    plans = {"young": COLUMNS, "old": PLANS["arc"]}
    rng = np.random.default_rng(3)
    age = np.array(["young", "old", "none"])[rng.integers(0, 3, 600)]
    data = {"x": rng.choice(LABELS, 600), "age": age}
    made = privatize_table(data, plans, "x", tmp_path / "r.parquet", cohort="age", rng=rng)
    assert made.refused.counts == {"no such cohort": int((age == "none").sum())}
    found = tally_table(tmp_path / "r.parquet", plans, cohort="age")
    assert {key: tally.reports for key, (tally,) in found.by.items()} == {
        (name, None): int((age == name).sum()) for name in plans
    }
    alone = [plans[c].estimate(*found.by[c, None]).values for c in plans]
    everybody = estimate_table(tmp_path / "r.parquet", plans, cohort="age").everybody
    assert everybody.values == pytest.approx(sum(alone))


TURNED = pv.design(pv.Prior([0.2, 0.3, 0.5], labels=["c", "a", "b"]), 1.0, pv.Histogram())
STRAIGHT = pv.design(pv.Prior([0.5, 0.3, 0.2], labels=["a", "b", "c"]), 1.0, pv.Histogram())


def test_cohorts_whose_plans_have_the_labels_in_another_order() -> None:
    plans = {"A": STRAIGHT, "B": TURNED}
    data = {"x": ["a"] * 4000 + ["b"] * 4000, "town": ["A"] * 4000 + ["B"] * 4000}
    made = privatize_table(data, plans, "x", cohort="town", rng=np.random.default_rng(2)).table
    found = estimate_table(made, plans, cohort="town", method="unbiased")
    assert found.everybody.labels == ("a", "b", "c")
    parts = {
        name: plan.estimate(*found.tallies.by[name, None], method="unbiased") for name, plan in plans.items()
    }
    assert found.everybody.values == pytest.approx(parts["A"].values + parts["B"].values[[1, 2, 0]])
    assert found.everybody.std_error == pytest.approx(
        np.hypot(parts["A"].std_error, parts["B"].std_error[[1, 2, 0]])
    )
    # A prior without names is about the labels of the answer, whatever order a plan has them in.
    named = estimate_table(made, plans, cohort="town", prior=pv.Prior({"a": 0.7, "b": 0.2, "c": 0.1}))
    for prior in ([0.7, 0.2, 0.1], pv.Prior([0.7, 0.2, 0.1])):
        again = estimate_table(made, plans, cohort="town", prior=prior)
        assert again.everybody.values == pytest.approx(named.everybody.values)


def test_plans_whose_answers_do_not_add_up_are_refused_before_anything_is_drawn() -> None:
    other = pv.design(pv.Prior([0.5, 0.3, 0.2], labels=["a", "b", "d"]), 1.0, pv.Histogram())
    with raises(InvalidInput, argument="plan"):
        privatize_table("not even opened.csv", {"A": STRAIGHT, "B": other}, "x", cohort="town")
    sums = [pv.design(pv.Prior([0.5, 0.5], labels=names), 1.0, pv.Sum([0, 1])) for names in ("ab", "cd")]
    with raises(InvalidInput, argument="plan"):
        privatize_table("not even opened.csv", {"A": STRAIGHT, "B": sums[0]}, "x", cohort="town")
    # Sums are numbers, and add up whatever they are sums of.
    several = dict(zip("AB", sums, strict=True))
    made = privatize_table({"x": ["a", "d"], "town": ["A", "B"]}, several, "x", cohort="town")
    assert estimate_table(made.table, several, cohort="town").everybody.reports == 2


@pytest.mark.parametrize("method", METHODS)
def test_groups_are_tallied_as_if_alone(method: str) -> None:
    rng, plan = np.random.default_rng(4), PLANS[method]
    days = [datetime.date(2024, 1, 1 + d) for d in rng.integers(0, 3, 400)]
    table = privatize_table(
        {"x": rng.choice(LABELS, 400), "day": days}, plan, "x", keep=["day"], rng=rng
    ).table
    found = estimate_table(table, plan, by="day")
    for day, estimate in found.groups.items():
        rows = [d == day for d in days]
        alone = estimate_table(table.filter(pa.array(rows)), plan).everybody
        assert estimate.reports == sum(rows) and np.array_equal(estimate.values, alone.values)
        assert np.array_equal(estimate.interval(), alone.interval())
    assert sum(e.reports for e in found.groups.values()) == found.everybody.reports == 400


def test_not_a_number_is_one_group() -> None:
    batches = [pa.record_batch({"report": [0, 1], "g": [float("nan"), 1.0]}) for _ in range(3)]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    found = estimate_table(reader, COLUMNS, by="g", assume_plan=True)
    assert [tally.reports for (tally,) in found.tallies.by.values()] == [3, 3]
    assert [estimate.reports for estimate in found.groups.values()] == [3, 3]
    assert found.everybody.reports == 6


def test_empty_pieces_in_groups() -> None:
    parts = [
        pa.record_batch({"report": pa.array(r, pa.int64()), "g": pa.array(r, pa.int64())})
        for r in ([], [0], [])
    ]
    counter = BatchCounter(table_forms(COLUMNS), "report", "g")
    batches = [Batch({"report": part["report"], "g": part["g"]}, len(part)) for part in parts]
    assert list(counter.count(batches)) == [0, 1, 0]
    assert counter.reports == 1 and len(counter.counts) == 1


def test_too_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting_module, "_MOST_GROUPS", 3)
    with pytest.raises(TooLarge):
        tally_table({"report": [0] * 9, "g": list(range(9))}, COLUMNS, by="g", assume_plan=True)


@given(
    st.integers(1, 40),
    st.sampled_from([0.05, 1.0, 5.0]),
    st.lists(st.floats(0, 1, exclude_max=True), max_size=60),
)
def test_arcs_are_counted_as_the_mechanism_counts(size: int, epsilon: float, places: list[float]) -> None:
    prior = pv.Prior(np.arange(1, size + 2) / sum(range(size + 2)))
    plan = pv.design(prior, epsilon, pv.Histogram(), method="arc")
    arc = plan.mechanism
    ends = np.concatenate([arc.cells.base, arc.cells.base[1:] - 1, [arc.outputs - 1]])
    reports = np.concatenate([ends, (np.array(places) * arc.outputs).astype(np.int64)])
    (counted,) = tally_table({"report": reports}, plan, assume_plan=True).by[None, None]
    assert np.array_equal(counted.counts, plan.reader.count(reports))


def count_table(table: Any, plan: pv.Plan, by: str | None, threads: int) -> Tallies:
    counter = BatchCounter(table_forms(plan), "report", by)
    assert (
        list(
            counter.count(
                DataTable(table).open(WantedColumns(tuple(table.column_names)), 1000).batches, threads
            )
        )[-1]
        == table.num_rows
    )
    return Tallies.of(counter.forms, counter.counts, counter.log.result())


@pytest.mark.parametrize("method", METHODS)
def test_threads_change_nothing(method: str) -> None:
    rng, plan = np.random.default_rng(6), PLANS[method]
    reports = report_column(plan, plan.privatize(rng.integers(0, 6, 5000), rng, codes=True)).to_pylist()
    kind = pa.binary(8) if plan.mechanism.width else pa.int64()
    column = pa.array([None if rng.random() < 0.1 else report for report in reports], kind)
    table = pa.table({"report": column, "g": rng.integers(0, 9, 5000)})
    found = [count_table(table, plan, by, threads) for by in ("g", None) for threads in (1, 3)]
    for first, *others in (found[:2], found[2:]):
        assert all(one.by == first.by and one.refused == first.refused for one in others)


@given(st.lists(st.sampled_from([0, 1, None, -1, 10**6]), max_size=40), st.integers(1, 5))
def test_tallies_of_parts_add_up(reports: list[int | None], parts: int) -> None:
    column = pa.array(reports, pa.int64())
    cuts = [i * len(reports) // parts for i in range(parts + 1)]
    whole = tally_table({"report": column}, COLUMNS, assume_plan=True)
    summed = Tallies.of(table_forms(COLUMNS), {}, RefusedRows())
    for a, b in pairwise(cuts):
        summed += tally_table({"report": column[a:b]}, COLUMNS, assume_plan=True)
    assert summed.by == whole.by and summed.refused.counts == whole.refused.counts


def test_foreign_reports_are_counted_and_listed() -> None:
    heard: list[tuple[int, str]] = []
    found = estimate_table(
        {"report": pa.array([0, None, -1, 2**40, 1])},
        COLUMNS,
        assume_plan=True,
        on_refused=lambda row, why: heard.append((row, why)),
    )
    assert found.everybody.reports == 2
    assert sorted(heard) == [(1, "missing"), (2, "foreign"), (3, "foreign")] == list(found.refused.rows)
    assert found.tallies.by[None, None][0].refused == {"missing": 1, "foreign": 2}


@pytest.mark.parametrize("text", ["1.5", "x", "99999999999999999999999", "-1", "0x1", " 1"])
def test_text_that_is_no_report(text: str) -> None:
    found = tally_table({"report": [text, "1"]}, COLUMNS, assume_plan=True)
    assert found.refused.rows == ((0, "foreign"),)


@pytest.mark.parametrize("entry", [b"", b"\0" * 7, b"\xff" * 8, b"\0" * 16])
def test_bytes_that_are_no_report(entry: bytes) -> None:
    plan = PLANS["unary"]
    found = tally_table({"report": [entry, b"\1" + b"\0" * 7]}, plan, assume_plan=True)
    assert found.refused.rows == ((0, "foreign"),)
    hexes = io.BytesIO(f"report,n\n{entry.hex() or '?'},1\n0100000000000000,1\n".encode())
    assert tally_table(hexes, plan, assume_plan=True).refused.rows == ((0, "foreign"),)


def test_reports_of_another_plan(tmp_path: Path) -> None:
    privatize_table({"x": ["a"]}, COLUMNS, "x", tmp_path / "r.parquet")
    with pytest.raises(ForeignReport, match=COLUMNS.id[:12]):
        estimate_table(tmp_path / "r.parquet", PLANS["arc"])
    with raises(InvalidInput, argument="reports"):
        estimate_table({"report": pa.array([True])}, COLUMNS, assume_plan=True)


@pytest.mark.parametrize("kind", ["pandas", "polars", "text", "categories", "csv"])
def test_the_plan_survives_other_libraries(kind: str, tmp_path: Path) -> None:
    import pandas as pd
    import polars as pl

    made = privatize_table({"x": [*"abcdef"] * 5}, COLUMNS, "x", rng=np.random.default_rng(1)).table
    if kind == "pandas":
        pd.DataFrame(made.to_pandas()).to_parquet(tmp_path / "r.parquet")
    elif kind == "polars":
        pl.from_arrow(made).write_parquet(tmp_path / "r.parquet")
    elif kind == "csv":
        made.select(["plan", "report"]).to_pandas().to_csv(tmp_path / "r.csv", index=False)
    else:
        names = made["plan"].cast(pa.string())
        names = (
            names if kind == "text" else pa.chunked_array([["z", *names.to_pylist()]]).dictionary_encode()[1:]
        )
        pq.write_table(made.set_column(1, "plan", names), tmp_path / "r.parquet")
    assert tally_table(tmp_path, COLUMNS).by == {(None, None): (COLUMNS.tally(made["report"].to_numpy()),)}
    with pytest.raises(ForeignReport, match=f"of plan {COLUMNS.id[:12]}; .* not with {PLANS['arc'].id[:12]}"):
        tally_table(tmp_path, PLANS["arc"])


@pytest.mark.parametrize("statistics", [True, False])
def test_a_plan_in_one_row_group_of_parquet(statistics: bool, tmp_path: Path) -> None:
    other = PLANS["arc"].id
    for odd, rows in ((other, None), (None, ((3, "missing"),)), (COLUMNS.id, ())):
        names = pa.array([COLUMNS.id] * 3 + [odd], pa.string()).dictionary_encode()
        table = pa.table({"report": [0, 1, 0, 1], "plan": names})
        pq.write_table(table, tmp_path / "r.parquet", row_group_size=2, write_statistics=statistics)
        if rows is None:
            with pytest.raises(ForeignReport, match=f"of plan {other[:12]}"):
                tally_table(tmp_path, COLUMNS)
        else:
            assert tally_table(tmp_path, COLUMNS).refused.rows == rows


def test_a_row_without_its_plan_is_missing() -> None:
    names = [COLUMNS.id, None, COLUMNS.id, None]
    table = {"report": [0, 1, None, None], "plan": names, "g": [1, 1, 2, 2]}
    for by in (None, "g"):
        found = tally_table(table, COLUMNS, by=by)
        assert found.reports == 1
        assert found.refused.rows == ((1, "missing"), (2, "missing"), (3, "missing"))


def test_the_names_of_the_columns_of_reports_are_taken() -> None:
    for name in ("plan", "report", "report_id"):
        with raises(InvalidInput, argument="keep"):
            privatize_table({"x": ["a"], name: ["b"]}, COLUMNS, "x", keep=[name])


@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "arrow"])
def test_no_file_without_a_report(suffix: str, tmp_path: Path) -> None:
    values = {"answer": ["Z", None]}
    for asked, column, before in ((COLUMNS, "answer", ""), (ask_with("Which?", COLUMNS), (), "answer: ")):
        with raises(NothingWritten, argument="data") as error:
            privatize_table(values, asked, column, tmp_path / f"r.{suffix}")
        assert list(tmp_path.iterdir()) == [] and "Z" not in str(error.value)
        assert error.value.refused.counts == {f"{before}missing": 1, f"{before}outside the domain": 1}
        assert privatize_table(values, asked, column).reports == 0  # in memory the caller sees it


def test_an_answer_from_a_table_is_a_line_at_a_prompt() -> None:
    made = privatize_table({"x": ["a", "b"] * 50, "town": ["A", "B"] * 50}, COLUMNS, "x", keep=["town"])
    found = estimate_table(made.table, COLUMNS, by="town")
    assert repr(found) == "TableEstimates(1 result from 100 reports, 2 groups, 0 rows refused)"


def test_a_table_of_mostly_refused_rows_is_not_written(tmp_path: Path) -> None:
    data, file, stream = {"x": ["a", "Z", None]}, tmp_path / "r.csv", io.BytesIO()
    for out in (file, stream):
        with raises(NothingWritten, argument="data", hint="most_refused"):
            privatize_table(data, COLUMNS, "x", out)
    assert not file.exists() and stream.getvalue() == b""
    assert privatize_table(data, COLUMNS, "x", file, most_refused=0.7).reports == 1
    assert privatize_table({"x": ["a", "Z"]}, COLUMNS, "x", stream).reports == 1
    with raises(InvalidInput, argument="most_refused"):
        privatize_table(data, COLUMNS, "x", most_refused=2)


@pytest.mark.parametrize("as_text", [True, False])
def test_other_spellings_of_a_value(as_text: bool) -> None:
    plan = pv.design(
        pv.Prior.uniform(["Self-employed", "état", "a1", "a_1", "10", "+5", "<=50K", "B-"]),
        1.0,
        pv.Histogram(),
    )
    others = ["1.0.", "-5", "e", ">50K", "50K", "B+", "B"]
    values = ["self employed", "SELF EMPLOYED", "<= 50k", "État", "A1", *others, None, "+5"]
    text = "x\n" + "\n".join(value or "" for value in values)
    data = io.BytesIO(text.encode()) if as_text else {"x": values}
    made = privatize_table(data, plan, "x")
    spelling = [(row, "another spelling of a value") for row in range(5)]
    outside = [(row, "outside the domain") for row in range(5, 12)]
    assert list(made.refused.rows) == [*spelling, *outside, (12, "missing")]
    assert "self" not in repr(made)


def test_more_refusals_than_are_listed() -> None:
    made = privatize_table({"x": pa.nulls(5000, pa.string())}, COLUMNS, "x")
    assert made.refused.total == 5000 and len(made.refused.rows) == 1000


def test_reports_as_floats_and_columns_of_nothing() -> None:
    found = tally_table({"report": pa.array([0.0, None, 1.5, 1e300, 1.0])}, COLUMNS, assume_plan=True)
    assert found.reports == 2
    assert found.refused.rows == ((1, "missing"), (2, "foreign"), (3, "foreign"))
    for plan in (COLUMNS, PLANS["unary"]):
        assert tally_table({"report": pa.nulls(2)}, plan, assume_plan=True).refused.counts == {"missing": 2}


def test_reports_of_a_cohort_without_a_plan() -> None:
    table = {"report": [0, 0], "age": ["young", "old"]}
    named = {**table, "plan": [COLUMNS.id, PLANS["arc"].id]}
    for found in (
        tally_table(table, {"young": COLUMNS}, cohort="age", assume_plan=True),
        tally_table(named, {"young": COLUMNS}, cohort="age"),
    ):
        assert found.refused.rows == ((1, "no such cohort"),) and list(found.by) == [("young", None)]


def test_parquet_cannot_come_through_a_pipe(tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    privatize_table({"x": ["a"]}, COLUMNS, "x", tmp_path / "r.parquet")
    pipe = io.BufferedReader(Pipe((tmp_path / "r.parquet").read_bytes()))
    with raises(InvalidInput, argument="data"):
        tally_table(pipe, COLUMNS)


# -- streaming ---------------------------------------------------------------------------------------------


def test_pieces_stay_small() -> None:
    opened = DataTable({"x": np.arange(10)}).open(WantedColumns(("x",)), 4)
    assert [batch.rows for batch in opened.batches] == [4, 4, 2]
    huge = pv.design(pv.Prior.uniform(20_000), 1.0, pv.Histogram(), method="unary")
    assert batch_rows([huge.mechanism.width]) * 20_000 / 8 < 2**26


def test_progress_is_told_to_the_end(tmp_path: Path) -> None:
    told: list[tuple[int, int | None, float | None]] = []
    privatize_table({"x": ["a"] * 100}, COLUMNS, "x", tmp_path / "0.parquet")
    privatize_table({"x": ["a"] * 50}, COLUMNS, "x", tmp_path / "1.parquet")
    tally_table(tmp_path, COLUMNS, progress=lambda *state: told.append(state))
    assert told[-1][:2] == (150, 150)
    (tmp_path / "v.csv").write_text("x\n" + "a\n" * 100)
    told.clear()
    privatize_table(tmp_path / "v.csv", COLUMNS, "x", progress=lambda *state: told.append(state))
    assert told[-1] == (100, None, 1.0)


@pytest.mark.parametrize("name", ["num_rows", "height"])
def test_progress_never_holds_a_column_of_values(name: str) -> None:
    frame = pytest.importorskip("pandas").DataFrame({name: ["a", "b"]})
    told: list[tuple[int, int | None, float | None]] = []
    privatize_table(frame, COLUMNS, name, progress=lambda *state: told.append(state))
    assert told == [(2, None, None)]


@pytest.mark.parametrize("packed", [False, True])
def test_progress_is_that_of_the_rows_and_not_of_what_is_read_ahead(packed: bool, tmp_path: Path) -> None:
    lines = "x,y\n" + f"a,{'z' * 100}\n" * 400_000  # five blocks, which are read at once
    path = tmp_path / "v.csv"
    path.write_bytes(gzip.compress(lines.encode(), 1) if packed else lines.encode())
    told: list[tuple[int, int | None, float | None]] = []
    privatize_table(path, COLUMNS, "x", progress=lambda *state: told.append(state))
    for rows, _, share in told:
        # The rows of the piece that is being told of, and of two that are under way.
        assert share is not None and share - 0.65 < rows / 400_000 <= share + 0.01


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    reports = np.random.default_rng(1).integers(0, 2, 10_000_000)
    options = {"row_group_size": 1 << 17, "use_dictionary": ["plan"], "compression": "none"}
    made_by = pa.DictionaryArray.from_arrays(np.zeros(reports.size, dtype=np.int32), [COLUMNS.id])
    pq.write_table(pa.table({"report": reports, "plan": made_by}), tmp_path / "r.parquet", **options)
    before, held = pa.total_allocated_bytes(), []
    tracemalloc.start()
    tally_table(tmp_path, COLUMNS, progress=lambda *state: held.append(pa.total_allocated_bytes() - before))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(held) > 10 and max(held) + peak < reports.nbytes / 2


@pytest.mark.parametrize(
    ("start", "word"), [(b"PK\x03\x04", "Excel"), (b"\xd0\xcf\x11\xe0", "Excel"), (b"\xff", "UTF-8")]
)
def test_a_workbook_is_called_one(start: bytes, word: str, tmp_path: Path) -> None:
    (tmp_path / "people.xlsx").write_bytes(start + b"\x14\x00\x06\x00 secret \xff\xfe\x00")
    with pytest.raises(InvalidInput, match=word) as error:
        privatize_table(tmp_path / "people.xlsx", COLUMNS, "x")
    assert "secret" not in str(error.value)
