"""`priorveil simulate`: one's own files, read as every other command reads them, and what is written."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

import priorveil as pv
from priorveil.queries import QUERIES
from pseudo_terminal import Terminal
from terminal import refused, run

QUICK = ("--eps", 1, "--runs", 0, "--method", "best")
AS_EXPECTED = ("--query", "histogram", "--eps", 1, "--method", "none", "--runs", 2)


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
        ("mapping.json", json.dumps({"a": 0.5, "b": 0.3, "c": 0.2}), ()),
        ("rounded.csv", "a,50\nb,30\nc,20\n", ("--normalise",)),
        ("counts.csv", "a,4\nb,2\nc,1\n", ("--counts", "--smoothing", 1)),
    ],
)
def test_a_prior_in_any_form(folder: Path, name: str, text: str, options: tuple[object, ...]) -> None:
    (folder / name).write_text(text)
    (found,), (known,) = rows(name, *options, *QUICK), rows("prior.csv", *QUICK)
    assert float(found["expected"]) == pytest.approx(float(known["expected"]), rel=1e-6)


def test_a_range_of_numbers_is_a_prior_and_people_have_numbers(folder: Path) -> None:
    (found,) = rows("--numbers", "0:10:3", "--query", "mean", *QUICK)
    prior = pv.Prior.grid([0, 5, 10], lambda number: 1.0)
    plan = pv.design(prior, 1.0, pv.Sum([0, 5, 10], unbiased=True))
    assert float(found["expected"]) == pytest.approx(plan.expected_mse, rel=1e-6)
    assert rows("--numbers", "0:10", "--query", "mean", *QUICK)[0]["expected"]
    (folder / "three.csv").write_text("0.25\n0.5\n0.25\n")
    (folder / "people.csv").write_text("income,town\n2.5,A\n7,B\n10,A\n")
    people = ("--data", "people.csv", "--column", "income")
    for query in ("mean", "quantiles"):
        (found,) = rows("three.csv", "--numbers", "0:10", "--query", query, *QUICK, *people)
        assert found["people"] == "3"


@pytest.mark.parametrize("query", ["mean", "quantiles"])
def test_labels_that_are_numbers_have_means_and_quantiles(folder: Path, query: str) -> None:
    (folder / "ages.csv").write_text("10,0.5\n20,0.3\n30,0.2\n")
    assert rows("ages.csv", "--query", query, "--eps", 1, "--method", "best", "--runs", 0)


def test_labels_that_are_numbers_are_summed(folder: Path) -> None:
    (folder / "ages.csv").write_text("age,probability\n20,0.5\n10,0.5\n")
    (folder / "people.csv").write_text("age\n" + "20\n" * 30 + "10\n" * 10)
    data = ("--data", "people.csv", "--column", "age")
    (row,) = rows("ages.csv", "--query", "sum", "--eps", 1, "--method", "none", "--runs", 2, *data)
    assert float(row["measured"]) == pytest.approx((40 * 15 - 700) ** 2 / 40)  # of 700, 600 are expected


def test_a_sum_of_other_numbers() -> None:
    (row,) = rows("prior.csv", "--query", "sum", "--amounts", "0,1,4", *QUICK)
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Sum([0, 1, 4]))
    assert float(row["expected"]) == pytest.approx(plan.expected_mse, rel=1e-6)


def test_people_with_several_attributes(folder: Path) -> None:
    (folder / "joint.csv").write_text("age,smokes,p\nold,1,0.4\nold,0,0.2\nyoung,1,0.2\nyoung,0,0.2\n")
    people = ["1,old"] * 4 + ["0,old"] * 2 + ["1,young"] * 2 + ["0,young"] * 2
    (folder / "table.csv").write_text("smokes,age\n" + "\n".join(people) + "\n")
    task = ("joint.csv", *AS_EXPECTED, "--data", "table.csv")
    (row,) = rows(*task, "--column", "age", "--column", "smokes")
    assert row["people"] == "10" and float(row["measured"]) == pytest.approx(0, abs=1e-12)
    refused("simulate", *task, "--column", "smokes", "--column", "age")


def test_values_of_people_are_found_as_in_any_table(folder: Path) -> None:
    """A number may be written in several ways, as in `priorveil privatize`."""
    (folder / "doses.csv").write_text("7,0.5\n8,0.5\n")
    (folder / "table.csv").write_text("dose\n7\n07\n8.00\n8\n")
    (row,) = rows("doses.csv", *AS_EXPECTED, "--data", "table.csv", "--column", "dose")
    assert row["people"] == "4" and float(row["measured"]) == pytest.approx(0, abs=1e-12)


def test_ones_own_people(folder: Path) -> None:
    people = ["a"] * 5 + ["b"] * 3 + ["c"] * 2
    (folder / "table.csv").write_text("town,work\n" + "".join(f"x,{value}\n" for value in people))
    task = ("prior.csv", *AS_EXPECTED)
    (row,) = rows(*task, "--data", "table.csv", "--column", "work")
    assert row["people"] == "10" and float(row["measured"]) == 0  # they are as the prior expects
    with open("table.csv", "a") as table:
        table.write("x,\n")
    status, out, err = run("simulate", *task, "--data", "table.csv", "--column", "work")
    assert (status, err) == (0, "left out because a value is missing: 1 row\n")
    assert list(csv.DictReader(out.splitlines())) == [row]


def test_a_wrong_budget_is_refused_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*_: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr("priorveil.studies.simulate._row", work)
    for wrong in (0, -1, "nan", "inf"):
        assert "epsilon" in refused("simulate", "prior.csv", "--eps", 1, "--eps", wrong)


def test_a_latent_secret(folder: Path) -> None:
    (folder / "even.csv").write_text("a,0.5\nb,0.5\n")
    (folder / "secret.csv").write_text(",b,a\nill,0.4,0.6\nwell,0.6,0.4\n")
    (row,) = rows("even.csv", "--secret", "secret.csv", *QUICK)
    assert float(row["expected"]) == pytest.approx(
        0.5
    )  # so weak a tie allows the truth: only people are sampled
    (folder / "secret.csv").write_text(",b,c\nill,0.4,0.6\nwell,0.6,0.4\n")
    assert "value 'a' is missing" in refused("simulate", "even.csv", "--secret", "secret.csv", *QUICK)


def test_every_query_of_the_library(folder: Path) -> None:
    (folder / "ages.csv").write_text("20,0.5\n30,0.3\n10,0.2\n")
    for query in set(QUERIES) - {"Linear"}:  # no option gives a matrix
        (row,) = rows("ages.csv", "--query", query.lower(), *QUICK)
        labels = [[20, 30, 10]] if query == "Sum" else []
        plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, QUERIES[query](*labels))
        assert float(row["expected"]) == pytest.approx(plan.expected_mse, rel=1e-6)


# -- out ---------------------------------------------------------------------------------------------------


def on_terminal(*arguments: str, columns: int) -> str:
    """What people see, without colours."""
    terminal = Terminal("simulate", *arguments, COLUMNS=str(columns))
    terminal.until("")
    os.close(terminal.master)
    assert terminal.process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.output).replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [60, 140])
def test_a_table_on_a_terminal(columns: int) -> None:
    text = on_terminal("prior.csv", "--eps", "1", "--eps", "2", "--people", "400", columns=columns)
    table = text[text.index("epsilon 1\n") :]
    assert re.search(r"^method +expected +simulated +± +LIP +LDP$", table, re.MULTILINE)
    found = re.search(r"^best +(\S+) +\S+ +\S+ +1\.000 +\S+$", table, re.MULTILINE)
    plan = pv.design(pv.Prior([0.5, 0.3, 0.2]), 1.0, pv.Distribution())
    points = 100 * math.sqrt(plan.expected_mse / (400 * 3))
    assert found is not None and float(found[1]) == pytest.approx(points, abs=0.005)
    assert "epsilon 2" in table and "in points" in table and "400 people" in " ".join(table.split())
    assert "published-rr leaks more than its budget" in " ".join(table.split())
    assert ",best," not in text and max(map(len, table.splitlines())) <= columns


def test_csv_on_a_terminal_only_if_asked_for() -> None:
    text = on_terminal("prior.csv", "--csv", *map(str, QUICK), columns=100)
    assert "\n1,best,best," in text and "LDP" not in text


def test_a_method_that_does_not_apply_says_why(folder: Path) -> None:
    task = ("prior.csv", "--query", "guess", "--method", "ldp-unary", "--method", "best")
    text = on_terminal(*task, "--eps", "1", columns=100)
    assert (
        re.search(r"^ldp-unary +- +- +- +- +-$", text, re.MULTILINE)
        and "\nldp-unary does not apply: " in text
    )
    assert "wrong guesses" in text and "100 surveys" in text


@pytest.mark.parametrize("work", ["surveys", "a design"])
def test_ctrl_c_ends_in_one_line(folder: Path, work: str) -> None:
    """Also within a design, which by itself takes ctrl-C as the wish for a quick answer."""
    numbers = [1 / n for n in range(1, 84)]
    (folder / "zipf.json").write_text(json.dumps(numbers))
    long_surveys, long_designs = (
        ("prior.csv", "--runs", "10000000"),
        ("zipf.json", "--normalise", "--runs", "0"),
    )
    task = long_surveys if work == "surveys" else (*long_designs, "--query", "distribution")
    terminal = Terminal("simulate", *task, COLUMNS="80", TERM="xterm")
    terminal.until("best, epsilon 0.5")
    time.sleep(1)  # as a rule the work has begun by now; the end is the same if it has not
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("")
    os.close(terminal.master)
    assert terminal.process.wait() == 130
    assert "Traceback" not in terminal.output and terminal.output.rstrip().endswith("stopped")


@pytest.mark.parametrize("budgets", [("--eps", 1), ("--eps", 1, "--eps", 2)])
def test_a_picture(folder: Path, budgets: tuple[object, ...]) -> None:
    pytest.importorskip("matplotlib")
    task = ("simulate", "prior.csv", *budgets, "--query", "histogram", "--runs", 3, "--people", 100)
    status, out, err = run(*task, "--plot", "study.png")
    assert (status, err) == (0, "Picture saved as study.png.\n") and out.startswith("epsilon,method")
    assert (folder / "study.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused_before_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr("priorveil.studies.simulate.simulate", work)
    (folder / "study.png").mkdir()
    assert "study.png" in refused("simulate", "prior.csv", "--plot", "study.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "matplotlib is not installed" in refused("simulate", "prior.csv", "--plot", "other.png")
