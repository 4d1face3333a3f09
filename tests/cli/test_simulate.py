"""`priorveil simulate`: one's own files, read as every other command reads them, and what is written."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from terminal import refused, run

QUICK = ("--eps", 1, "--runs", 0, "--method", "best")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prior in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prior.csv").write_text("a,0.5\nb,0.3\nc,0.2\n")
    return tmp_path


def rows(*arguments: object) -> list[dict[str, str]]:
    """What is printed."""
    status, out, err = run("simulate", *arguments)
    assert (status, err) == (0, "")
    return list(csv.DictReader(out.splitlines()))


# -- in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("semicolons.csv", "value;probability\na;0.5\nb;0.3\nc;0.2\n", ()),
        ("numbers.csv", "0.5\n0.3\n0.2\n", ()),
        ("mapping.json", json.dumps({"a": 0.5, "b": 0.3, "c": 0.2}), ()),
        ("list.json", "[0.5, 0.3, 0.2]", ()),
        ("rounded.csv", "a,50\nb,30\nc,20\n", ("--normalise",)),
        ("counts.csv", "a,4\nb,2\nc,1\n", ("--counts", "--smoothing", 1)),
    ],
)
def test_a_prior_in_any_form(folder: Path, name: str, text: str, options: tuple[object, ...]) -> None:
    (folder / name).write_text(text)
    (found,), (known,) = rows(name, *options, *QUICK), rows("prior.csv", *QUICK)
    assert float(found["expected"]) == pytest.approx(float(known["expected"]), rel=1e-6)


def test_a_value_that_is_mistyped_is_not_taken_for_a_header(folder: Path) -> None:
    (folder / "typo.csv").write_text("a,O.5\nb,0.3\nc,0.2\n")
    assert "line 1: 'O.5' is not a number" in refused("simulate", "typo.csv", "--normalise", *QUICK)


def test_other_broken_files(folder: Path) -> None:
    (folder / "wide.csv").write_text("1,2,3\n4,5,6\n")
    assert "label,number" in refused("simulate", "wide.csv", *QUICK)
    assert "must be numbers" in refused("simulate", "prior.csv", "--query", "sum", *QUICK)


def test_labels_that_are_numbers_are_summed(folder: Path) -> None:
    (folder / "ages.csv").write_text("age,probability\n20,0.5\n10,0.5\n")
    (folder / "people.csv").write_text("20\n" * 30 + "10\n" * 10)
    (row,) = rows(
        "ages.csv", "--query", "sum", "--eps", 1, "--method", "none", "--runs", 2, "--data", "people.csv"
    )
    assert float(row["measured"]) == pytest.approx((40 * 15 - 700) ** 2 / 40)  # of 700, 600 are expected


def test_ones_own_people(folder: Path) -> None:
    people = ["a"] * 5 + ["b"] * 3 + ["c"] * 2
    (folder / "people.csv").write_text("\n".join(people) + "\n")
    (folder / "table.csv").write_text("town,work\n" + "".join(f"x,{value}\n" for value in people))
    told = ("prior.csv", "--eps", 1, "--method", "none", "--runs", 2, "--data")
    alone, named = rows(*told, "people.csv"), rows(*told, "table.csv", "--column", "work")
    assert alone == named and alone[0]["people"] == "10"


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("zzz\na\nb\n", (), "row 1: the prior has no such value; if it is the name of a column"),
        ("a\nzzz\n", (), "row 2: the prior has no such value"),
        ("work\na\nzzz\n", ("--column", "work"), "row 2: the prior has no such value"),
        ("work\na\n", ("--column", "age"), "column 'age': the table has work"),
        ("a\n\nb\n", (), "line 2 is blank"),
        ("a,b\nb,c\n", (), "line 1 has several cells"),
        ("", (), "it has no rows"),
    ],
)
def test_nobody_is_dropped(folder: Path, text: str, options: tuple[str, ...], told: str) -> None:
    (folder / "people.csv").write_text(text)
    line = refused("simulate", "prior.csv", "--data", "people.csv", *options, *QUICK)
    assert told in line and "zzz" not in line


def test_a_column_of_nothing() -> None:
    assert "--data" in refused("simulate", "prior.csv", "--column", "work", *QUICK)


def test_a_latent_secret(folder: Path) -> None:
    (folder / "even.csv").write_text("a,0.5\nb,0.5\n")
    (folder / "secret.csv").write_text(",b,a\nill,0.4,0.6\nwell,0.6,0.4\n")
    (row,) = rows("even.csv", "--secret", "secret.csv", *QUICK)
    assert float(row["expected"]) == pytest.approx(0, abs=1e-6)  # so weak a tie allows the truth
    (folder / "secret.csv").write_text(",b,c\nill,0.4,0.6\nwell,0.6,0.4\n")
    assert "value 'a' is missing" in refused("simulate", "even.csv", "--secret", "secret.csv", *QUICK)


# -- out ---------------------------------------------------------------------------------------------------


def test_a_dot_in_the_name_stays(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    (folder / "run-0.csv").write_text("of another run")
    status, out, _ = run("simulate", "prior.csv", *QUICK, "--out", "run-0.5")
    assert (status, out) == (0, "wrote run-0.5.csv, .png and .svg\n")
    assert (folder / "run-0.csv").read_text() == "of another run"
    with (folder / "run-0.5.csv").open(encoding="utf-8") as lines:
        assert [row["method"] for row in csv.DictReader(lines)] == ["best"]
    assert (folder / "run-0.5.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "run-0.5.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("end", ["csv", "png", "svg"])
def test_what_exists_is_replaced_only_by_force(folder: Path, end: str) -> None:
    pytest.importorskip("matplotlib")
    (folder / f"study.{end}").write_text("old")
    told = ("simulate", "prior.csv", *QUICK, "--out", "study")
    assert f"study.{end} exists" in refused(*told)
    assert sorted(path.name for path in folder.iterdir()) == ["prior.csv", f"study.{end}"]
    assert run(*told, "--force")[0] == 0
    assert (folder / f"study.{end}").read_bytes() != b"old"


def test_what_cannot_be_written_is_told_before_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr("priorveil.studies.simulate.simulate", work)
    assert "give a name" in refused("simulate", "prior.csv", "--out", ".")
    (folder / "study.csv").mkdir()
    assert "study.csv is not a regular file" in refused("simulate", "prior.csv", "--out", "study", "--force")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "matplotlib is not installed" in refused("simulate", "prior.csv", "--out", "other")
