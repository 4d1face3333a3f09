"""`priorveil design` and `priorveil inspect`: from a file to a plan, and what it says of itself."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import shlex
import signal
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from priorveil.commands import screens
from priorveil.commands.beside import ldp
from priorveil.commands.watching import Watch, gap_of
from terminal import refused, run

WORK = {"Private": 0.69, "Self": 0.11, "Gov": 0.13, "None": 0.07}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prior in several forms, and people."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k},{v},{place}\n" for place, (k, v) in enumerate(WORK.items()))
    (tmp_path / "prior.csv").write_text("work,probability,score\n" + rows)
    (tmp_path / "prior.json").write_text(json.dumps(WORK))
    (tmp_path / "counts.csv").write_text("0,60\n1,30\n2,10\n")
    people = ["town,work,income,score"]
    people += (
        ["x,a,low,1"] * 30 + ["x,a,high,1"] * 10 + ["y,b,low,2"] * 10 + ["y,b,high,2"] * 20 + ["z,,low,0"] * 3
    )
    (tmp_path / "people.csv").write_text("\n".join(people) + "\n")
    return tmp_path


def read(*arguments: object) -> dict[str, object]:
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (0, "")
    found: dict[str, object] = json.loads(out)
    return found


@pytest.mark.parametrize("prior", ["prior.csv", "prior.json"])
@pytest.mark.parametrize("query", ["histogram", "guess", "distribution"])
def test_a_plan_is_saved_as_the_library_makes_it(files: Path, prior: str, query: str) -> None:
    status, out, _ = run("design", prior, "--epsilon", 1, "--query", query, "-o", "plan.json")
    assert status == 0
    assert "Saved as plan.json" in out
    plan = pv.Plan.load("plan.json")
    asked = {"histogram": pv.Histogram(), "guess": pv.Guess(), "distribution": pv.Distribution()}[query]
    assert plan.labels == tuple(WORK)
    assert plan.certificate.lip <= 1
    assert plan.expected_mse == pytest.approx(pv.design(pv.Prior(WORK), 1.0, asked).expected_mse, rel=1e-4)


def test_without_output_nothing_is_saved(files: Path) -> None:
    before = set(files.iterdir())
    status, out, _ = run("design", "prior.csv", "--epsilon", 1)
    assert status == 0 and "Nothing is saved" in out
    assert set(files.iterdir()) == before


@pytest.mark.parametrize("values", ["0,1,2,3", "score"])
def test_a_sum_takes_numbers_or_a_column(files: Path, values: str) -> None:
    found = read("design", "prior.csv", "--epsilon", 1, "--query", "sum", "--values", values)
    plan = pv.design(pv.Prior(WORK), 1.0, pv.Sum([0, 1, 2, 3]))
    assert found["expected_mse"] == pytest.approx(plan.expected_mse, rel=1e-4)


def test_labels_that_are_numbers_are_summed(files: Path) -> None:
    found = read("design", "counts.csv", "--counts", "--epsilon", 1, "--query", "sum", "-o", "plan.json")
    assert found["no_report"] == pytest.approx(0.3 + 0.4 - 0.5**2)
    assert pv.Plan.load("plan.json").labels == (0, 1, 2)


def test_sides_of_a_budget(files: Path) -> None:
    found = read("design", "prior.csv", "--lower", 1, "--upper", 2)
    one_sided = read("design", "prior.csv", "--lower", 1)
    assert found["budget"] == {"lower": 1.0, "upper": 2.0}
    assert one_sided["budget"] == {"lower": 1.0, "upper": "inf"}
    assert one_sided["method"] == "closed"  # Theorem 3 holds for a budget with one side


def test_a_column_of_people(files: Path) -> None:
    assert "row 71" in refused("design", "people.csv", "--column", "work", "--epsilon", 1)
    arguments = ("design", "people.csv", "--column", "work", "--drop", "", "--epsilon", 1)
    run(*arguments, "-o", "plan.json")
    assert pv.Plan.load("plan.json").prior == pv.Prior.from_counts({"a": 40, "b": 30})
    found = read(*arguments, "--query", "sum", "--values", "score")
    assert found["no_report"] == pytest.approx(4 / 7 * 3 / 7)
    assert "not a number" in refused(*arguments, "--query", "sum", "--values", "income")


def test_a_column_in_other_files(files: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    text = (files / "people.csv").read_bytes()
    (files / "people.csv.gz").write_bytes(gzip.compress(text))
    parquet.write_table(pa.table({"work": ["a"] * 4 + ["b"] * 3}), files / "people.parquet")
    arguments = ("--column", "work", "--drop", "", "--epsilon", 1)
    errors = [
        read("design", f"people.{kind}", *arguments)["expected_mse"] for kind in ("csv", "csv.gz", "parquet")
    ]
    assert errors[0] == errors[1] == pytest.approx(errors[2])


def test_a_secret_behind_the_column(files: Path) -> None:
    (files / "given.csv").write_text(",a,b\nlow,0.75,0.25\nhigh,0.3333333333333333,0.6666666666666667\n")
    arguments = ("design", "people.csv", "--column", "work", "--drop", "", "--epsilon", 0.3)
    by_column = read(*arguments, "--secret-column", "income")
    by_file = read(*arguments, "--secret", "given.csv")
    assert by_column["expected_mse"] == pytest.approx(by_file["expected_mse"], rel=1e-6)
    alone = read(*arguments)
    assert by_column["expected_mse"] < alone["expected_mse"]  # less has to be hidden


def test_a_prior_known_roughly(files: Path) -> None:
    found = read("design", "prior.csv", "--epsilon", 1, "--radius", 0.05)
    assert found["expected_mse"] > read("design", "prior.csv", "--epsilon", 1)["expected_mse"]


@pytest.mark.parametrize("notion", ["ldp", "pufferfish", "di"])
def test_other_notions(files: Path, notion: str) -> None:
    arguments = ("design", "prior.csv", "--epsilon", 3, "--notion", notion)
    assert run(*arguments, "-o", "plan.json")[0] == 0
    assert run("audit", "plan.json", "prior.csv", "--notion", notion, "--epsilon", 3)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("prior.csv",), "--epsilon"),
        (("nothing.csv", "--epsilon", 1), "does not exist"),
        (("prior.csv", "--epsilon", 0), "give more"),
        (("prior.csv", "--epsilon", -1), "zero or more"),
        (("prior.csv", "--epsilon", "many"), "not a valid float"),
        (("prior.csv", "--epsilon", 1, "--lower", 1), "not both"),
        (("prior.csv", "--epsilon", 1, "--query", "mean"), "mean"),
        (("prior.csv", "--epsilon", 1, "--query", "sum"), "--values"),
        (("prior.csv", "--epsilon", 1, "--query", "sum", "--values", "0,1"), "give 4 numbers"),
        (("prior.csv", "--epsilon", 1, "--query", "sum", "--values", "rank"), "no column 'rank'"),
        (("prior.csv", "--epsilon", 1, "--query", "sum", "--values", "work"), "not a number"),
        (("prior.json", "--epsilon", 1, "--query", "sum", "--values", "rank"), "JSON has no columns"),
        (("prior.csv", "--epsilon", 1, "--values", "0,1"), "--query sum"),
        (("prior.csv", "--epsilon", 1, "--method", "closed"), "no closed form fits"),
        (("prior.csv", "--epsilon", 1, "--smoothing", 1), "--counts"),
        (("prior.csv", "--epsilon", 1, "--drop", "Gov"), "--column"),
        (("prior.csv", "--epsilon", 1, "--secret-column", "income"), "--column"),
        (("prior.csv", "--epsilon", 1, "-o", "no/such/folder.json"), "no folder"),
        (("prior.csv", "--epsilon", 1, "--plot", "plan.xyz"), ".png"),
        (("prior.csv", "--epsilon", 1, "--radius", 7), "radius"),
        (("people.csv", "--column", "age", "--epsilon", 1), "no column 'age'; there are town, work"),
        (("people.csv", "--column", "work", "--counts", "--epsilon", 1), "leave --counts"),
        (("people.csv", "--epsilon", 1), "people.csv"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(files: Path, arguments: tuple[object, ...], said: str) -> None:
    assert said in refused("design", *arguments)


def test_a_blank_line_in_a_column_alone_is_refused(files: Path) -> None:
    (files / "alone.csv").write_text("work\na\n\nb\n")
    assert "line 3 is blank" in refused("design", "alone.csv", "--column", "work", "--epsilon", 1)
    (files / "beside.csv").write_text("work,age\na,1\n\nb,2\n")
    assert run("design", "beside.csv", "--column", "work", "--epsilon", 1)[0] == 0


def test_a_share_below_one_is_never_shown_as_all() -> None:
    assert screens.shown_share(1 - 1e-12) == "99.99 %"
    assert screens.shown_share(math.nextafter(1.0, 0.0)) == "99.99 %"
    assert screens.shown_share(1.0) == "100 %"


def test_several_numbers_for_one_value_are_refused(files: Path) -> None:
    (files / "mixed.csv").write_text("work,score\na,1\na,2\nb,3\n")
    arguments = ("--column", "work", "--query", "sum", "--values", "score", "--epsilon", 1)
    assert "'a', not several" in refused("design", "mixed.csv", *arguments)


def test_inspect_shows_everything(files: Path) -> None:
    run("design", "prior.csv", "--epsilon", 1, "-o", "plan.json")
    status, out, err = run("inspect", "plan.json")
    assert (status, err) == (0, "")
    for words in (
        "no report at all",
        "the best LDP at epsilon 1",
        "this plan",
        "proven bound",
        "Pufferfish",
        "MIP",
    ):
        assert words in out
    found = read("inspect", "plan.json")
    plan = pv.design(pv.Prior(WORK), 1.0, pv.Histogram())
    best = pv.design(pv.Prior(WORK), 1.0, pv.Histogram(), notion=pv.LDP())
    assert found["ldp"]["error"] == pytest.approx(best.expected_mse)
    assert found["levels"]["ldp"] == pytest.approx(plan.certificate.ldp, abs=1e-6)
    assert found["lower_bound"] <= found["expected_mse"] < found["ldp"]["error"] < found["no_report"]


def test_inspect_says_whether_reports_identify(files: Path) -> None:
    run("design", "prior.csv", "--epsilon", 1, "--query", "distribution", "-o", "learns.json")
    run("design", "prior.csv", "--epsilon", 1, "--query", "sum", "--values", "score", "-o", "leans.json")
    assert "Reports alone determine the distribution" in " ".join(run("inspect", "learns.json")[1].split())
    assert "Reports alone do not determine" in " ".join(run("inspect", "leans.json")[1].split())


def test_inspect_refuses_what_is_no_plan(files: Path) -> None:
    run("design", "prior.csv", "--epsilon", 1, "-o", "plan.json")
    text = (files / "plan.json").read_text()
    (files / "forged.json").write_text(text.replace('"lower": "1.0"', '"lower": "0.9"'))
    assert "forged.json" in refused("inspect", "forged.json")
    assert "plan" in refused("inspect", "prior.json")


def test_a_narrow_terminal_loses_nothing(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    run("design", "prior.csv", "--epsilon", 1, "-o", "plan.json")
    out = run("inspect", "plan.json")[1]
    assert max(map(len, out.splitlines())) <= 60
    assert "…" not in out


def test_pictures(files: Path) -> None:
    pytest.importorskip("matplotlib")
    run("design", "counts.csv", "--counts", "--epsilon", 1, "-o", "plan.json", "--plot", "plan.svg")
    assert "<svg" in (files / "plan.svg").read_text()
    status, _, err = run("inspect", "plan.json", "--plot", "plan.png", "--json")
    assert (status, err) == (0, "Drawn in plan.png.\n")
    assert (files / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_ldp_beside_a_plan_of_many_values() -> None:
    prior = pv.Prior.zipf(60)
    for query in (pv.Histogram(), pv.Guess(), pv.Sum(np.arange(60.0))):
        plan = pv.design(prior, 1.0, query, method="arc")
        rival = ldp(plan)
        assert rival is not None and not rival.best
        assert plan.lower_bound <= rival.error <= plan.no_report
    k_rr = pv.published.k_rr(prior, 1.0)
    learnt = pv.design(prior, 1.0, pv.Distribution(), time_limit=1)
    rival = ldp(learnt)
    assert rival is not None and rival.error <= pv.Distribution().error(k_rr.channel, prior)


def test_the_gap_that_is_shown() -> None:
    assert gap_of(math.inf, 0.0, 1.0) == 1.0
    assert gap_of(0.5, 0.5, 1.0) == 0.0
    assert gap_of(1.0, 1.0, 1.0) == 0.0


def test_the_first_interrupt_asks_and_the_second_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Watch(1.0, 1e-6) as watch:
        signal.raise_signal(signal.SIGINT)
        assert watch.should_stop()
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "best plan so far" in capsys.readouterr().err


def test_ctrl_c_saves_the_best_plan_so_far(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Watch.told

    def press(watch: Watch, rounds: int, error: float, bound: float) -> None:
        told(watch, rounds, error, bound)
        if not watch.interrupted:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Watch, "told", press)
    (files / "zipf.csv").write_text("\n".join(repr(1 / k) for k in range(1, 61)))
    status, out, err = run("design", "zipf.csv", "--normalise", "--epsilon", 4, "--gap", 0, "-o", "plan.json")
    assert status == 0
    assert "best plan so far" in err and "Stopped by ctrl-C" in out and "Saved as plan.json" in out
    plan = pv.Plan.load("plan.json")
    assert plan.certificate.lip <= 4
    assert "stopped early" in plan.why


def test_a_plan_is_replaced_only_by_force(files: Path) -> None:
    task = ("design", "prior.csv", "--epsilon", 1, "-o", "plan.json")
    assert run(*task)[0] == 0
    first = (files / "plan.json").read_bytes()
    assert "plan.json exists" in refused("design", "prior.csv", "--epsilon", 2, "-o", "plan.json")
    assert (files / "plan.json").read_bytes() == first
    assert run("design", "prior.csv", "--epsilon", 2, "-o", "plan.json", "--force")[0] == 0
    assert pv.Plan.load(files / "plan.json").budget == pv.Budget(2.0)


def test_a_gap_has_the_number_of_its_row_in_the_file(files: Path) -> None:
    (files / "gap.csv").write_text("town,work\nx,a\nx,b\ny,\n")
    assert "row 3" in refused("design", "gap.csv", "--column", "work", "--drop", "a", "--epsilon", 1)


def test_a_long_design_shows_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priorveil.commands.watching._PATIENCE", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    screen = io.StringIO()
    with redirect_stderr(screen), Watch(1.0, 1e-6) as watch:
        watch.told(1, 0.9, 0.5)
        watch.told(2, 0.6, 0.5)
    assert "gap 0.2, round 2" in screen.getvalue()


def test_the_tutorials_commands_run(files: Path) -> None:
    pytest.importorskip("matplotlib")
    page = (Path(__file__).parent.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (files / "census.csv").write_text("work,count\na,600\nb,300\nc,31\n")
    (files / "people.csv").write_text("work\n" + "a\n" * 60 + "b\n" * 30 + "c\n" * 10)
    for line in block.splitlines():
        name, *arguments = shlex.split(line)
        assert name == "priorveil"
        status, _, err = run(*arguments)
        assert status == 0, err
