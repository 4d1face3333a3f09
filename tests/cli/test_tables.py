"""The commands `privatize` and `estimate`, as people and machines use them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from patience import wait_until

pa = pytest.importorskip("pyarrow")

from priorveil.__main__ import main  # noqa: E402
from priorveil.cli.privatize import ONCE  # noqa: E402
from priorveil.designs import design_mean  # noqa: E402
from priorveil.formatting import share_text  # noqa: E402
from priorveil.reading.estimate_notes import LEANING as LEANING_NOTE  # noqa: E402
from priorveil.results.findings import result_of  # noqa: E402
from priorveil.tables import estimate_table  # noqa: E402
from terminal import done  # noqa: E402

LEANING = str(LEANING_NOTE)
LABELS = ["yes", "no", "maybe"]
PLAN = pv.design(pv.Prior([0.5, 0.3, 0.2], labels=LABELS), 1.0, pv.Histogram())
UNARY = pv.design(pv.Prior([0.5, 0.3, 0.2], labels=LABELS), 1.0, pv.Histogram(), method="unary")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with plans and people, where the commands run."""
    monkeypatch.chdir(tmp_path)
    PLAN.save("plan.json")
    UNARY.save("unary.json")
    rng = np.random.default_rng(1)
    rows = [
        f"{name},{town}"
        for name, town in zip(rng.choice(LABELS, 300), rng.choice(["A", "B"], 300), strict=True)
    ]
    rows[5], rows[7], rows[9] = ",A", "secret,B", "yes"
    Path("people.csv").write_text("answer,town\n" + "\n".join(rows) + "\n")
    return tmp_path


def run(*arguments: str) -> int:
    """The exit status of a command in this process."""
    with pytest.raises(SystemExit) as done:
        main(arguments)
    return int(done.value.code or 0)


def command(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """A command in a process of its own."""
    ends = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "priorveil", *arguments], **{**ends, **options})


def write_reports(path: str, plan: pv.Plan, reports: list[Any], **columns: list[Any]) -> None:
    """A CSV of reports that names their plan."""
    rows = zip([plan.id] * len(reports), reports, *columns.values(), strict=True)
    lines = [",".join(["plan", "report", *columns]), *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n")


def lines_of(*arguments: object) -> list[dict[str, str]]:
    """The lines of the CSV that a command prints."""
    return list(csv.DictReader(done(*arguments).out.splitlines()))


def figures_of(printed: str, group: str = "") -> dict[str, Any]:
    """The first figures about everybody, or about a group, in the JSON of `estimate`."""
    findings = json.loads(printed)["result"]["findings"]
    figures: dict[str, Any] = next(
        found["figures"] for found in findings if found["group"] == group and not found["cohort"]
    )
    return figures


def numbers(figures: dict[str, Any], name: str = "value", kind: str | None = None) -> list[Any]:
    """A number of each row of the first table, or of the first one of a kind."""
    table = next(table for table in figures["tables"] if kind in (None, table["kind"]))
    return [row[name] for row in table["rows"]]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"plan.json", "unary.json", "people.csv"}


@pytest.mark.parametrize(
    ("plan", "out"),
    [
        ("plan.json", "r.parquet"),
        ("unary.json", "r.csv"),
        ("plan.json", "r.csv.gz"),
        ("unary.json", "r.arrow"),
    ],
)
def test_from_people_to_estimate(folder: Path, plan: str, out: str) -> None:
    told = done("privatize", plan, "people.csv", "--column", "answer", "--keep", "town", "-o", out, "--json")
    made = json.loads(told.out)
    assert made["reports"] == 297
    assert made["refused"] == {"missing": 1, "outside the domain": 1, "wrong number of columns": 1}
    assert [entry["row"] for entry in made["refused_rows"]] == [6, 8, 10]  # the first row of data is row 1
    assert "1 outside the domain: row 8\n" in told.err and "secret" not in told.err + told.out
    found = json.loads(done("estimate", plan, out, "--by", "town", "--json").out)
    expected = estimate_table(out, pv.Plan.load(plan), by="town")
    assert found["result"]["reports"] == 297 and found["refused"] == {}
    everybody = figures_of(json.dumps(found))
    assert numbers(everybody) == expected.everybody.values.tolist()
    assert numbers(everybody, "label") == [[label] for label in LABELS]
    low, high = expected.groups["A"].interval()
    group = figures_of(json.dumps(found), "A")
    assert (numbers(group, "low"), numbers(group, "high")) == (low.tolist(), high.tolist())


def test_a_repeated_report_is_counted_once_and_named(folder: Path) -> None:
    run("privatize", "plan.json", "people.csv", "--column", "answer", "-o", "r.csv")
    lines = Path("r.csv").read_text().splitlines()
    Path("twice.csv").write_text("\n".join(lines + lines[1:]) + "\n")
    once = json.loads(done("estimate", "plan.json", "r.csv", "--json").out)
    shown = done("estimate", "plan.json", "twice.csv", "--json")
    twice = json.loads(shown.out)
    words = "594 rows, 297 reports: 297 rows repeat a report that was already counted"
    assert words in shown.err
    assert (once.pop("repeated"), twice.pop("repeated")) == (0, 297) and once == twice
    other = "1" if lines[1].endswith("0") else "0"
    Path("other.csv").write_text("\n".join([*lines, lines[1][:-1] + other]) + "\n")
    assert "other.csv row 1 and other.csv row 298" in done("estimate", "plan.json", "other.csv", status=2).err


def test_several_files_are_read_as_one_table(folder: Path) -> None:
    lines = Path("people.csv").read_text().splitlines()
    Path("first.csv").write_text("\n".join(lines[:101]) + "\n")
    Path("rest.csv").write_text("\n".join([lines[0], *lines[101:]]) + "\n")
    task = ["privatize", "plan.json", "first.csv", "rest.csv", "--column", "answer", "-o"]
    assert run(*task, "r.csv") == 0
    rows = Path("r.csv").read_text().splitlines()
    Path("a.csv").write_text("\n".join(rows[:201]) + "\n")
    Path("b.csv").write_text("\n".join([rows[0], *rows[101:]]) + "\n")  # 100 reports are in both files
    expected = json.loads(done("estimate", "plan.json", "r.csv", "--json").out)
    shown = done("estimate", "plan.json", "a.csv", "b.csv", "--json")
    estimate = json.loads(shown.out)
    assert "397 rows, 297 reports" in shown.err
    assert estimate.pop("repeated") == 100 and expected.pop("repeated") == 0 and estimate == expected


def test_reports_without_ids_cannot_be_compared(folder: Path) -> None:
    run("privatize", "plan.json", "people.csv", "--column", "answer", "-o", "r.csv")
    columns = [line.split(",") for line in Path("r.csv").read_text().splitlines()]
    Path("bare.csv").write_text("".join(f"{cells[1]},{cells[2]}\n" for cells in columns))
    shown = done("estimate", "plan.json", "bare.csv", "--json")
    assert "no row has an id" in shown.err and json.loads(shown.out)["without_id"] == 297
    blank = [["" if row % 9 == 1 else cells[0], *cells[1:]] for row, cells in enumerate(columns)]
    Path("some.csv").write_text("".join(",".join(cells) + "\n" for cells in blank))
    assert "264 of 297 rows have an id" in done("estimate", "plan.json", "some.csv").err


def test_shares_with_intervals_come_first_and_counts_beside_them(folder: Path) -> None:
    run("privatize", "plan.json", "people.csv", "--column", "answer", "-o", "r.csv")
    lines = done("estimate", "plan.json", "r.csv").out.splitlines()
    estimate = estimate_table("r.csv", PLAN).everybody
    head = next(number for number, line in enumerate(lines) if line.startswith("value "))
    assert lines[head].split() == ["value", "share", "95", "%", "low", "high", "people"]
    for number, line in enumerate(lines[head + 1 : head + 1 + len(LABELS)]):
        ends = (bound[number] / 297 for bound in estimate.interval())
        shares = [share_text(part) for part in (estimate.proportions[number], *ends)]
        words = [LABELS[number], *" ".join(shares).split(), f"{estimate.values[number]:,.1f}"]
        assert line.split() == words


def test_csv_and_tables(folder: Path) -> None:
    run("privatize", "plan.json", "people.csv", "--column", "answer", "--keep", "town", "-o", "r.csv")
    rows = lines_of("estimate", "plan.json", "r.csv", "--by", "town", "--csv")
    groups, people = ("A", "B", ""), [row for row in rows if row["statistic"] == "people"]
    assert [(row["group"], row["value"]) for row in people] == [(t, v) for t in groups for v in LABELS]
    differences = [row for row in rows if row["statistic"] == "difference from others"]
    assert [(row["value"], row["group"]) for row in differences] == [(v, t) for v in LABELS for t in "AB"]
    shown = done("estimate", "plan.json", "r.csv", "--by", "town").out
    assert "town = A" in shown and "everybody: reports: 297" in shown and "Prior check: p" in shown
    tested = next(row for row in rows if row["statistic"] == "independence chi-square")
    text = " ".join(shown.split())
    assert f"Is value independent of town? chi-square {float(tested['estimate']):.2f} with 2 degrees" in text
    assert "each p-value is for one difference" in text
    together = done("estimate", "plan.json", "r.csv", "--by", "town", "--simultaneous").out
    assert "hold all differences together" in together
    assert run("estimate", "plan.json", "r.csv", "--simultaneous") == 2


def test_what_several_results_share_is_said_once(folder: Path) -> None:
    LEARNT.save("p.json")
    reports = LEARNT.privatize([LABELS[2]] * 4000, rng=np.random.default_rng(3)).tolist()
    rows = [f"{LEARNT.id},{report},{'AB'[i % 2]}" for i, report in enumerate(reports)]
    Path("p.csv").write_text("\n".join(["plan,report,town", *rows]))
    for form in ((), ("--csv",)):
        printed = done("estimate", "p.json", "p.csv", "--by", "town", "--method", "mmse", *form)
        text = " ".join((printed.err if form else printed.out).split())
        assert text.count("contradict the prior") == text.count("Warning: ") == 1 and LEANING not in text
        assert f"town = A, town = B, everybody: {CHECK_FAILED}" in text


def test_attributes_of_the_plan_name_columns_and_margins(folder: Path) -> None:
    cells = {(age, pet): 0.25 for age in ("old", "young") for pet in ("cat", "dog")}
    plan = pv.design(pv.Prior.joint(cells, ("age", "pet")), 2.0, pv.Distribution())
    plan.save("table.json")
    rows = [f"{pet},{town},{age}" for age, pet in cells for town in "AB"] * 40
    Path("pets.csv").write_text("\n".join(["pet,town,age", *rows]))
    assert run("privatize", "table.json", "pets.csv", "--keep", "town", "-o", "r.csv") == 0
    whole = estimate_table("r.csv", plan, by="town")
    lines = lines_of("estimate", "table.json", "r.csv", "--margin", "age", "--by", "town", "--csv")
    lines = [line for line in lines if line["statistic"] == "people"]
    groups = ("A", "B", "")
    assert [(line["group"], line["age"]) for line in lines] == [
        (town, age) for town in groups for age in ("old", "young")
    ]
    estimates = (*whole.groups.values(), whole.everybody)
    expected = [float(n) for each in estimates for n in each.margin("age").values]
    assert [float(line["estimate"]) for line in lines] == pytest.approx(expected)
    expected = whole.everybody.margin("pet", "age").values.tolist()
    shown = done("estimate", "table.json", "r.csv", "--margin", "pet, age", "--json").out
    assert numbers(figures_of(shown)) == expected


def test_shares_within_groups(folder: Path) -> None:
    cells = {(age, pet, town): 1 / 7 for age in ("old", "young") for pet in ("cat", "dog") for town in "AB"}
    del cells["young", "dog", "B"]
    prior = pv.Prior.joint(cells, ("age", "pet", "town"), impossible="leave out")
    plan = pv.design(prior, 2.0, pv.Distribution())
    plan.save("table.json")
    values = [*cells] * 100 + [("old", "cat", "A")] * 200
    write_reports("r.csv", plan, plan.privatize(values, rng=np.random.default_rng(1)).tolist())
    command = ["estimate", "table.json", "r.csv", "--margin", "pet", "--within", "age"]
    shown = done(*command).out
    assert re.search(r"^age +pet +share within age +95 % low +high\nold +cat +\d", shown, re.MULTILINE)
    assert "Method unbiased" in shown and "Prior check: p" in shown
    lines = lines_of("estimate", "table.json", "r.csv", "--within", "town,age", "--csv")[len(cells) :]
    assert {(line["age"], line["pet"], line["town"]) for line in lines} == set(cells)
    alone = next(line for line in lines if (line["age"], line["town"]) == ("young", "B"))
    assert float(alone["estimate"]) == pytest.approx(1)  # its dogs were left out
    few = plan.privatize([("old", "cat", "A")] * 2, rng=np.random.default_rng(3)).tolist()
    write_reports("few.csv", plan, few)
    shown = done("estimate", "table.json", "few.csv", "--within", "age").out
    assert "not bounded" in shown and "A group without an interval may have no people" in shown


def test_methods_levels_and_pictures(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    run("privatize", "unary.json", "people.csv", "--column", "answer", "--keep", "town", "-o", "r.parquet")
    options = ("--method", "unbiased", "--confidence", "0.5", "--json", "--plot", "e.svg")
    out = done("estimate", "unary.json", "r.parquet", "--by", "town", *options).out
    found = figures_of(out)
    assert found["method"] == "unbiased" and json.loads(out)["result"]["confidence"] == 0.5
    assert Path("e.svg").read_text().startswith("<?xml")
    expected = estimate_table("r.parquet", UNARY, method="unbiased").everybody
    assert numbers(found) == expected.values.tolist()
    assert numbers(found, "high") == expected.interval(0.5)[1].tolist()


def test_a_picture_of_every_kind(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    run("privatize", "plan.json", "people.csv", "--column", "answer", "--keep", "town", "-o", "r.csv")
    for kind, begins in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert run("estimate", "plan.json", "r.csv", "--by", "town", "--plot", f"e.{kind}") == 0
        assert Path(f"e.{kind}").read_bytes().startswith(begins)


def test_the_rows_that_are_shown_are_the_first(folder: Path) -> None:
    Path("bad.csv").write_text("answer,town\nzzz,A\n,A\n" + "yes\n" * 1200 + "yes,A\n")
    listed = json.loads(
        done("privatize", "plan.json", "bad.csv", "--column", "answer", "-o", "r.csv", "--json", status=1).out
    )["refused_rows"]
    assert [entry["row"] for entry in listed] == list(range(1, 1003))  # a thousand for each reason
    assert [entry["reason"] for entry in listed[:2]] == ["outside the domain", "missing"]


MISSPELT = ["yes,A"] * 8 + ["Yes,A"] * 12 + [" NO ,A", "zzz,A", ",A", "yes"] + ["no,A"] * 30


class Terminal(io.StringIO):
    """A screen that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_one_line_for_each_reason(folder: Path) -> None:
    Path("bad.csv").write_text("answer,town\n" + "\n".join(MISSPELT) + "\n")
    task = ("privatize", "plan.json", "bad.csv", "--column", "answer", "-o")
    reasons = [
        "refused: 16 rows",
        "  13 another spelling of a value: rows 9, 10, 11, 12, 13, ...",
        "  1 missing: row 23",
        "  1 outside the domain: row 22",
        "  1 wrong number of columns: row 24",
    ]
    domain = "  the plan's values are yes, no, maybe"
    biased = "the results may be biased"
    end = ["  list all with --refused FILE", domain, "38 reports written to r.csv"]
    end += [ONCE, f"30% of the rows are refused: {biased}"]
    assert done(*task, "r.csv").err.splitlines() == [*reasons, *end]
    nothing = done(*task, "s.csv", "--most-refused", "0", "--refused", "all.csv", status=1).err
    assert nothing.splitlines()[:-1] == [*reasons, "  all are in all.csv", domain]
    assert not {"Yes", "NO", "zzz"} & set(
        "".join(p.read_text() for p in folder.glob("*.csv") if p.name != "bad.csv").split(",")
    )


def answers(plan: pv.Plan, values: Any) -> tuple[str, Any, list[Any]]:
    """What estimate prints of the reports of these values: for people, as JSON, and the lines of the CSV."""
    plan.save("numbers.json")
    reports = plan.privatize(values, np.random.default_rng(3))
    write_reports("numbers.csv", plan, reports.tolist())
    shown = []
    for form in ((), ("--json",), ("--csv",)):
        shown.append(done("estimate", "numbers.json", "numbers.csv", "--confidence", "0.99", *form).out)
    return shown[0], figures_of(shown[1]), list(csv.DictReader(shown[2].splitlines()))


def test_the_mean_of_numbers(folder: Path) -> None:
    plan = design_mean(0, 100, 1.0, lambda number: 1.0)
    text, figures, lines = answers(plan, np.linspace(0, 90, 5000))
    (total,), (mean,) = (table["rows"] for table in figures["tables"])
    assert mean["low"] < 45 < mean["high"] < mean["low"] + 15
    assert mean["value"] == pytest.approx(total["value"] / 5000)
    assert lines[-1]["statistic"] == "mean" and float(lines[-1]["low"]) == mean["low"]
    assert re.search(
        rf"^mean +{mean['value']:.1f} +{mean['low']:.1f} +{mean['high']:.1f}$", text, re.MULTILINE
    )


def test_averages_by_group(folder: Path) -> None:
    rng = np.random.default_rng(4)
    ages = rng.choice(["young", "old"], 2_000)
    hours = np.minimum(rng.exponential(np.where(ages == "old", 10.0, 25.0)), 40.0)
    lines = [f"{age},{number:.2f}" for age, number in zip(ages, hours, strict=True)]
    Path("hours.csv").write_text("age,overtime\n" + "\n".join(lines) + "\n")
    columns = ("--column", "age", "--column", "overtime")
    asked = ("--query", "averages", "--epsilon", "3", "-o", "averages.json")
    assert run("design", "hours.csv", *columns, "--grid", "overtime=0:40:3", *asked) == 0
    done("privatize", "averages.json", "hours.csv", *columns, "-o", "hours-reports.csv")
    told = figures_of(done("estimate", "averages.json", "hours-reports.csv", "--json").out)
    assert numbers(told, "label") == [["old"], ["young"]] and told["tables"][0]["kind"] == "average"
    truth = [hours[ages == age].mean() for age in ("old", "young")]
    assert (np.abs(np.array(numbers(told)) - truth) < 5 * np.array(numbers(told, "std_error"))).all()
    rows = lines_of("estimate", "averages.json", "hours-reports.csv", "--csv")
    assert [(row["statistic"], row["age"]) for row in rows[:3]] == [
        ("mean overtime", "old"),
        ("mean overtime", "young"),
        ("mean overtime", ""),
    ]
    assert [float(row["estimate"]) for row in rows[:2]] == numbers(told)
    averages = ("averages.json", "hours-reports.csv")
    assert "mean overtime" in done("estimate", *averages, "--plot", "averages.png").out
    done("estimate", *averages, "--margin", "age", "--plot", "ages.svg")
    drawn = Path("ages.svg").read_text()
    assert "<!-- people -->" in drawn and "<!-- mean overtime -->" not in drawn, "a margin counts people"
    estimates = estimate_table("hours-reports.csv", pv.Plan.load("averages.json"))
    assert estimates.everybody.averages.values.tolist() == numbers(told)


def test_a_file_of_probabilities_may_have_a_grid(folder: Path) -> None:
    Path("prior.csv").write_text("age,overtime,share\na,0,0.2\na,10,0.3\nb,0,0.4\nb,10,0.1\n")
    asked = ("--query", "averages", "--epsilon", "1", "-o", "averages.json")
    assert run("design", "prior.csv", "--grid", "overtime=0:10:2", *asked) == 0
    assert pv.Plan.load("averages.json").domain.grids == ("overtime",)
    assert run("design", "prior.csv", "--grid", "overtime=0:10:3", *asked, "--force") > 0


def test_the_quantiles_of_numbers(folder: Path) -> None:
    prior = pv.Prior.cells(np.linspace(0, 100, 11), lambda number: 1.0)
    plan = pv.design(prior, 2.0, pv.Linear.cumulative(prior, unbiased=True))
    text, figures, lines = answers(plan, np.linspace(0, 60, 5000))
    (quantiles,) = (table["rows"] for table in figures["tables"] if table["kind"] == "quantile")
    median = next(row for row in quantiles if row["label"] == ["0.5"])
    assert median["low"] <= 30 <= median["high"] < 60
    assert [line["statistic"] for line in lines[-5:]] == [f"quantile {row['label'][0]}" for row in quantiles]
    assert re.search(rf"^quantile 0\.5 +{median['value']:.0f} ", text, re.MULTILINE)


def test_a_number_outside_the_range_is_refused_with_the_range(folder: Path) -> None:
    design_mean(0, 100_000, 1.0, lambda number: 1.0).save("numbers.json")
    Path("incomes.csv").write_text('income\n50000\n123456\n-7\nmuch\n"12,000"\n"12,5"\n')
    task = ("privatize", "numbers.json", "incomes.csv", "--column", "income", "-o", "r.csv", "--force")
    domain, advice = "the plan's values are numbers from 0 to 100,000", "--outside ends"
    said = done(*task, status=1).err
    assert "2 outside the domain: rows 2, 3" in said and "1 not a number: row 4" in said
    assert "1 an ambiguous number: write 1234.5 or 1234,5, without separators of thousands: row 5" in said
    assert domain in said and advice in said
    assert not any(private in said for private in ("123456", "123,456", "-7", "much", "12,000"))
    design_mean(0, 100_000, 1.0, lambda number: 1.0, outside="ends").save("numbers.json")
    said = done(*task).err
    assert "refused: 2 rows" in said and "1 not a number" in said and domain in said and advice not in said


def test_a_combination_that_was_left_out_is_called_so(folder: Path) -> None:
    cells = {("Preschool", "<=50K"): 0.2, ("Masters", "<=50K"): 0.3, ("Masters", ">50K"): 0.5}
    prior = pv.Prior.joint(cells, ("education", "income"), impossible="leave out")
    pv.design(prior, 1.0, pv.Histogram()).save("joint.json")
    rows = ["Masters,>50K", "Preschool,>50K", "masters,>50K", "Masters,=50K"]
    Path("people.csv").write_text("\n".join(["education,income", *rows, ""]))
    columns = ("--column", "education", "--column", "income")
    task = ("privatize", "joint.json", "people.csv", *columns, "-o", "r.csv", "--refused", "no.csv")
    domain = "the plan's values are education: Preschool, Masters; income: <=50K, >50K"
    assert domain in done(*task, status=1).err
    reasons = [
        "2,a combination that the plan leaves out",
        "3,another spelling of a value",
        "4,outside the domain",
    ]
    assert Path("no.csv").read_text().splitlines() == ["row,reason", *reasons]


def test_a_table_without_rows(folder: Path) -> None:
    Path("none.csv").write_text("answer\n")
    assert (
        done("privatize", "plan.json", "none.csv", "--column", "answer", "-o", "r.csv", status=1).err
        == "nothing is written: the table has no rows\n"
    )
    assert not Path("r.csv").exists()


@pytest.mark.parametrize(("wrong", "said"), [(5, False), (6, True)])
def test_many_refused_rows_bias_results(folder: Path, wrong: int, said: bool) -> None:
    Path("bad.csv").write_text("answer\n" + "yes\n" * (100 - wrong) + "zzz\n" * wrong)
    assert (
        "may be biased" in done("privatize", "plan.json", "bad.csv", "--column", "answer", "-o", "r.csv").err
    ) == said
    write_reports("r.csv", PLAN, [0] * (100 - wrong) + [77] * wrong)
    err = done("estimate", "plan.json", "r.csv").err
    assert ("may be biased" in err) == said and f"{wrong} reports that this plan or campaign cannot" in err


def test_most_rows_refused(folder: Path) -> None:
    for number, status in ((10, 0), (11, 1)):
        Path("bad.csv").write_text("answer\n" + "yes\n" * 10 + "zzz\n" * number)
        task = ("privatize", "plan.json", "bad.csv", "--column", "answer", "-o", "made.csv", "--force")
        last = done(*task, status=status).err.splitlines()[-2:]
        limit = "nothing is written: 11 of 21 rows are refused; to allow a larger share of them, use --most-refused"
        assert (limit in last) == bool(status)
        assert len(Path("made.csv").read_text().splitlines()) == 11  # of the first run
        assert run(*task, "--most-refused", "0.6") == 0
        write_reports("r.csv", PLAN, [0] * 10 + [""] * number)
        said = done("estimate", "plan.json", "r.csv", "--csv", status=status)
        assert len(said.out.splitlines()) == 4
        assert ("most rows are refused: 11 of 21" in said.err) == bool(status)


def test_a_limit_of_zero_lists_the_refused_rows_and_writes_nothing_else(folder: Path) -> None:
    task = ("privatize", "plan.json", "people.csv", "--column", "answer", "-o", "r.csv")
    said = done(*task, "--most-refused", "0", "--refused", "refused.csv", status=1).err
    assert (
        "  all are in refused.csv\n" in said and "nothing is written: 3 of " in said and "secret" not in said
    )
    rows = Path("refused.csv").read_text().splitlines()
    assert rows == ["row,reason", "6,missing", "8,outside the domain", "10,wrong number of columns"]
    assert names(folder) == {"refused.csv"}
    assert run(*task, "--no-ids") == 0
    assert Path("r.csv").read_text().splitlines()[0] == "plan,report"


@pytest.mark.parametrize(("foreign", "said"), [(10, False), (12, True)])
def test_many_foreign_reports_are_of_another_plan(folder: Path, foreign: int, said: bool) -> None:
    write_reports("r.csv", PLAN, [0] * (100 - foreign) + [77] * foreign)
    assert ("probably made by another plan" in done("estimate", "plan.json", "r.csv").err) == said


OTHER = pv.design(pv.Prior([0.2, 0.3, 0.5], labels=LABELS), 1.0, pv.Histogram())


@pytest.mark.parametrize("out", ["r.parquet", "r.csv"])
def test_another_plan_is_refused(folder: Path, out: str) -> None:
    OTHER.save("other.json")
    assert run("privatize", "plan.json", "people.csv", "--column", "answer", "-o", out) == 0
    assert run("estimate", "other.json", out) == 2
    assert run("estimate", "plan.json", out) == 0


def test_plans_of_cohorts_that_are_mixed_up(folder: Path) -> None:
    for right, wrong, plan in (("A", "B", PLAN), ("B", "A", OTHER)):
        for place, town in (("plans", right), ("mixed", wrong)):
            Path(place).mkdir(exist_ok=True)
            plan.save(f"{place}/{town}.json")
    at = ("--cohort", "town")
    assert run("privatize", "plans", "people.csv", "--column", "answer", *at, "-o", "r.csv") == 0
    rows = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    assert {(row["town"], row["plan"]) for row in rows} == {("A", PLAN.id), ("B", OTHER.id)}
    assert run("estimate", "plans", "r.csv", *at) == 0
    assert run("estimate", "mixed", "r.csv", *at) == 2


def test_reports_that_name_no_plan(folder: Path) -> None:
    """Without a column `plan`, and with one of another meaning."""
    for text in ("report\n0\n1\n", "plan,report\ngold,0\nsilver,1\n"):
        Path("r.csv").write_text(text)
        assert (
            json.loads(done("estimate", "plan.json", "r.csv", "--assume-plan", "--json").out)["result"][
                "reports"
            ]
            == 2
        )


KNOWN = pv.Prior([0.5, 0.3, 0.2], labels=LABELS)
LEARNT = pv.design(KNOWN, 1.0, pv.Distribution())
TOTAL = pv.design(KNOWN, 1.0, pv.Sum(values=[0, 1, 2]))
FLAT = design_mean(0, 1_000, 1.0, outside="ends")
CHECK_FAILED = "Warning: The reports contradict the prior"


@pytest.mark.parametrize(
    ("plan", "people", "options", "method", "codes", "first"),
    [
        (LEARNT, [LABELS[2]] * 5000, (), "unbiased", {"methodAssumes"}, ""),
        (LEARNT, [LABELS[2]] * 5000, ("--method", "mmse"), "mmse", {"methodAssumes"}, CHECK_FAILED),
        (PLAN, LABELS, (), "mmse", {"methodAssumes"}, LEANING),
        (TOTAL, [LABELS[2]] * 2000, (), "mmse", {"unbiasedDifference"}, CHECK_FAILED),
        (FLAT, [100.0] * 5000, (), "unbiased", {"assumedFlatPrior", "numbersOutside"}, ""),
    ],
)  # fmt: skip
def test_an_estimate_says_the_same_in_every_form(
    folder: Path,
    plan: pv.Plan,
    people: list[Any],
    options: tuple[str, ...],
    method: Any,
    codes: set[str],
    first: str,
) -> None:
    """As text, above and below the tables; as CSV, on standard error; as JSON, by its codes."""
    plan.save("p.json")
    reports = plan.privatize(people, rng=np.random.default_rng(3))
    write_reports("p.csv", plan, [y.tobytes().hex() if plan.mechanism.width else int(y) for y in reports])
    said = []
    for form in ((), ("--csv",), ("--json",)):
        said.append(done("estimate", "p.json", "p.csv", *options, *form))
    text, beside = (" ".join(words.split()) for words in (said[0].out, said[1].err))
    (figures,) = (found.figures for found in result_of(estimate_table("p.csv", plan, method=method)).findings)
    sentences = [first, *map(str, figures.notes)]
    assert all(sentence in text and sentence in beside for sentence in sentences)
    assert text.startswith(first) and text.startswith("Warning: ") == (first == CHECK_FAILED)
    record = figures_of(said[2].out)
    told = {note["code"] for note in record["notes"]}
    assert codes <= told and ("numbersOutside" in told) == (plan is FLAT)
    assert record["method"] == method and (record["warning"] is not None) == (first == CHECK_FAILED)


def test_a_missing_group_is_called_so(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    write_reports("r.csv", PLAN, [0, 1, 0], town=["A", "", ""])
    shown = done("estimate", "plan.json", "r.csv", "--by", "town", "--plot", "e.svg").out
    assert "town = (missing): reports: 2" in shown and "None" not in shown
    drawn = Path("e.svg").read_text()
    assert (
        drawn.count("<!-- everybody: 3 reports -->")
        == drawn.count("<!-- town = (missing): 2 reports -->")
        == 1
    )


def test_a_place_that_cannot_be_written_to_is_said_first(folder: Path) -> None:
    task = ("privatize", "plan.json", "people.csv", "--column", "answer", "-o")
    # Root may write to /proc, though nobody can create a file there, and nobody may write to /proc/sys.
    for place in ("/proc", "/proc/sys"):
        if os.access(place, os.W_OK) == (place == "/proc"):
            error = done(*task, f"{place}/r.csv", status=2).err
            assert f"{place} cannot be written to" in error and ".part" not in error


def test_names_that_the_output_cannot_hold(folder: Path) -> None:
    drinks = pv.design(pv.Prior({"café": 0.5, "茶": 0.5}), 1.0, pv.Distribution())
    drinks.save("drinks.json")
    write_reports("r.csv", drinks, [0, 1])
    task = [sys.executable, "-m", "priorveil", "estimate", "drinks.json", "r.csv"]
    narrow = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    people, machine, csv_lines = (
        subprocess.run([*task, *more], capture_output=True, env=narrow, check=False)
        for more in ((), ("--json",), ("--csv",))
    )
    assert people.returncode == 0 and b"\\u8336" in people.stdout
    assert numbers(figures_of(machine.stdout.decode()), "label")[1] == ["茶"]
    assert (
        csv_lines.returncode == 2 and csv_lines.stderr.count(b"\n") == 1 and b"PYTHONUTF8" in csv_lines.stderr
    )


@pytest.mark.parametrize("width", [12, 20, 40])
def test_a_narrow_terminal_loses_nothing(width: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = pv.design(pv.Prior([0.5, 0.3, 0.2], labels=["yes", "no", "perhaps not"]), 1.0, pv.Histogram())
    long.save("long.json")
    write_reports("r.csv", long, [0, 1, 2] * 4000)
    found = figures_of(done("estimate", "long.json", "r.csv", "--json").out)
    monkeypatch.setenv("COLUMNS", str(width))
    shown = done("estimate", "long.json", "r.csv").out
    assert max(map(len, shown.splitlines())) <= width and "…" not in shown
    whole = "".join(shown.split())
    assert all(word in shown.split() for (label,) in numbers(found, "label") for word in label.split())
    assert all(f"{number:,.1f}" in shown.split() for number in numbers(found))
    ends = [number / 12_000 for name in ("value", "low", "high") for number in numbers(found, name)]
    shown_shares = [float(text) for text in re.findall(r"([\d.]+)\s%", shown)]
    assert len(ends) == 9
    assert all(any(abs(100 * end - share) < 0.0501 for share in shown_shares) for end in ends)
    assert "Warning:Thereportscontradicttheprior" in whole and "Priorcheck:p" in whole


def test_cohorts_whose_names_are_no_names_of_files(folder: Path) -> None:
    Path("plans").mkdir()
    for name in ("A%2FB", "50%", "C"):
        PLAN.save(f"plans/{name}.json")
    Path("towns.csv").write_text("answer,town\nyes,A/B\nno,50%\nmaybe,C\n")
    task = ("privatize", "plans", "towns.csv", "--column", "answer", "--cohort", "town", "-o", "r.csv")
    assert run(*task, "--most-refused", "0") == 0


def test_pipes(folder: Path) -> None:
    first = command("privatize", "plan.json", "-", "--column", "answer", "-o", "-")
    reports, said = first.communicate(b"answer\nyes\nno\n\nzzz\n")
    assert (
        first.returncode == 0
        and b"refused: 2 rows\n  1 missing: row 3\n  1 outside the domain: row 4\n" in said
    )
    assert len(reports.splitlines()) == 3
    second = command("estimate", "plan.json", "-", "--json")
    found, _ = second.communicate(reports)
    assert json.loads(found)["result"]["reports"] == 2


def test_design_and_privatize_read_the_same_file(folder: Path) -> None:
    Path("stadt.csv").write_text("sep=;\nAntwort;Stadt, Ort\n" + "Ja;Ulm, Mitte\nNein;Ulm\n" * 20)
    assert run("design", "stadt.csv", "--column", "Antwort", "--epsilon", "1", "-o", "antwort.json") == 0
    made = ("privatize", "antwort.json", "stadt.csv", "--column", "Antwort", "--keep", "Stadt, Ort")
    assert run(*made, "-o", "r.csv", "--most-refused", "0") == 0
    told = done("estimate", "antwort.json", "r.csv", "--by", "Stadt, Ort", "--json").out
    findings = json.loads(told[told.index("{") :])["result"]["findings"]
    assert {"Ulm", "Ulm, Mitte", ""} == {found["group"] for found in findings}


def test_when_every_row_is_refused_that_is_said(folder: Path) -> None:
    Path("strange.csv").write_text("answer\nperhaps\nnever\n")
    task = ("privatize", "plan.json", "strange.csv", "--column", "answer")
    told = done(*task, "-o", "r.csv", status=1).err
    assert "nothing is written: " in told and "yes, no, maybe" in told
    assert not Path("r.csv").exists()
    assert json.loads(done(*task, "-o", "j.parquet", "--json", status=1).out)["reports"] == 0
    assert run(*task, "-o", "-") == 1
    assert names(folder) == {"strange.csv"}
    Path("nobody.csv").write_text("answer\n")
    assert run("privatize", "plan.json", "nobody.csv", "--column", "answer", "-o", "n.csv") == 1


def test_a_plan_reads_the_file_that_it_was_designed_from(folder: Path) -> None:
    import datetime
    from decimal import Decimal

    import pyarrow.parquet as pq

    columns = {
        "decimals": pa.array([0.0, 0.5, 1.0, 1.5, 2.0]),
        "money": pa.array([Decimal("0.50"), Decimal("1.00"), Decimal("2.00")], pa.decimal128(5, 2)),
        "days": pa.array([datetime.date(2024, 5, day) for day in (1, 2, 3)]),
        "truth": pa.array([True, False]),
        "digits": pa.array(["3", "1", "2"]),
        "whole": pa.array([3, 1, 2]),
    }
    for name, column in columns.items():
        pq.write_table(pa.table({name: column}), f"{name}.parquet")
        design = ("design", f"{name}.parquet", "--column", name, "--values", "public", "--epsilon", "1")
        assert run(*design, "-o", f"{name}.json") == 0, name
        made = ("privatize", f"{name}.json", f"{name}.parquet", "--column", name)
        assert run(*made, "-o", f"{name}.csv", "--most-refused", "0") == 0, name


def fed(folder: Path, **options: Any) -> subprocess.Popen[bytes]:
    """A run in the middle of its work: a part is written, and it waits for more."""
    running = command("privatize", "plan.json", "-", "--column", "answer", "-o", "r.parquet", **options)
    assert running.stdin is not None
    batch = pa.record_batch({"answer": ["yes"] * 5000})
    writer = pa.ipc.new_stream(running.stdin, batch.schema)
    for _ in range(4):
        writer.write_batch(batch)
    running.stdin.flush()

    def writing() -> bool:
        assert running.poll() is None
        return any(part.stat().st_size > 10_000 for part in folder.glob(".r.parquet.*.part"))

    wait_until(writing, "a part is written")
    return running


def test_killed_in_the_middle_there_is_no_file_with_the_name(folder: Path) -> None:
    running = fed(folder)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert not (folder / "r.parquet").exists()
    (draft,) = names(folder)
    assert draft.endswith(".part")
    assert run("privatize", "plan.json", "people.csv", "--column", "answer", "-o", "other.parquet") == 0
    assert names(folder) == {draft, "other.parquet"}
    assert run("privatize", "plan.json", "people.csv", "--column", "answer", "-o", "r.parquet") == 0
    assert names(folder) == {"r.parquet", "other.parquet"}


def test_two_runs_do_not_take_each_others_files(folder: Path) -> None:
    slow = fed(folder)
    (draft,) = names(folder)
    assert run("privatize", "plan.json", "people.csv", "--column", "answer", "-o", "r.parquet") == 0
    first = (folder / "r.parquet").read_bytes()
    assert names(folder) == {draft, "r.parquet"}
    _, said = slow.communicate()  # its input ends, and its file is whole: but the name is taken by now
    assert slow.returncode == 2 and b"exists" in said
    assert names(folder) == {"r.parquet"} and (folder / "r.parquet").read_bytes() == first


def test_interrupted_in_the_middle_nothing_is_left(folder: Path) -> None:
    running = fed(folder)
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate()
    assert running.returncode == 130 and said.split() == [b"stopped"]
    assert names(folder) == set()


def test_estimates_can_be_interrupted(folder: Path) -> None:
    running = command("estimate", "plan.json", "-", "--refused", "refused.csv")
    assert running.stdin is not None
    batch = pa.record_batch({"report": [0] * 100_000, "plan": [PLAN.id] * 100_000})
    writer = pa.ipc.new_stream(running.stdin, batch.schema)
    for _ in range(20):  # more than a pipe holds: when all is written, most of it has been read
        writer.write_batch(batch)
    running.stdin.flush()
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate()
    assert running.returncode == 130 and said.split() == [b"stopped"]
    assert names(folder) == set()


def test_a_full_disk_leaves_nothing(folder: Path) -> None:
    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    full = command(
        "privatize", "plan.json", "people.csv", "--column", "answer", "-o", "r.csv", preexec_fn=small
    )
    _, said = full.communicate()
    assert full.returncode == 2 and said.startswith(b"error:") and len(said.splitlines()) == 1
    assert names(folder) == set()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_pipe_is_an_error(folder: Path) -> None:
    with open("/dev/full", "wb") as device:
        full = command("privatize", "plan.json", "people.csv", "--column", "answer", "-o", "-", stdout=device)
        _, said = full.communicate()
    assert full.returncode == 2 and b"no space left for standard output" in said


def test_progress_with_rate_on_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", screen)
    run("privatize", "plan.json", "people.csv", "--column", "answer", "-o", "r.csv")
    assert "privatizing" in screen.getvalue() and "300 rows," in screen.getvalue()
    assert "/s" in screen.getvalue()
    for path in ("r.csv", "r.csv.gz", "r.parquet", "r.arrow"):
        run("privatize", "plan.json", "people.csv", "--column", "answer", "-o", path, "--force")
        assert run("estimate", "plan.json", path) == 0 and "counting" in screen.getvalue()
