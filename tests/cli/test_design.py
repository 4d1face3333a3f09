"""`priorveil design` and `priorveil inspect`: from a file to a plan, and what it says of itself."""

from __future__ import annotations

import csv
import inspect
import io
import itertools
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import priorveil as pv
from priorveil.cli import screen
from priorveil.cli.design import design
from priorveil.designs import METHODS
from priorveil.information import gain_share
from priorveil.plans.structure import DesignMethod
from priorveil.studies.trade_offs import ldp_plan
from priorveil.words.plans import plan_facts
from terminal import refused, run

WORK = {"Private": 0.69, "Self": 0.11, "Gov": 0.13, "None": 0.07}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prior in several forms, and people."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{label},{share}\n" for label, share in WORK.items())
    (tmp_path / "prior.csv").write_text("work,probability\n" + rows)
    (tmp_path / "prior.json").write_text(json.dumps(WORK))
    (tmp_path / "counts.csv").write_text("0,60\n1,30\n2,10\n")
    people = ["x,a,low"] * 30 + ["x,a,high"] * 10 + ["y,b,low"] * 10 + ["y,b,high"] * 20
    (tmp_path / "people.csv").write_text("\n".join(["town,work,income", *people]) + "\n")
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


def test_a_sum_of_amounts(files: Path) -> None:
    found = read("design", "prior.csv", "--epsilon", 1, "--query", "sum", "--amounts", "0,1,2,3")
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
    arguments = ("design", "people.csv", "--column", "work", "--epsilon", 1)
    run(*arguments, "-o", "plan.json")
    assert pv.Plan.load("plan.json").prior == pv.Prior.from_counts(
        {"a": 57, "b": 43}
    )  # two digits of 40 / 70
    found = read(*arguments, "--query", "sum", "--amounts", "1,2")
    assert found["no_report"] == pytest.approx(0.57 * 0.43)


def test_people_without_a_value_are_left_out_and_counted(files: Path) -> None:
    cases = ((("z,,low",), (), "1 row"), (("z,,low", "z,a,"), ("--secret-column", "income"), "2 rows"))
    for gaps, secret, rows in cases:
        (files / "gaps.csv").write_text((files / "people.csv").read_text() + "\n".join(gaps))
        task = ("--column", "work", "--epsilon", 1, *secret)
        status, out, err = run("design", "gaps.csv", *task, "--json")
        assert (status, err) == (0, f"left out because a value is missing: {rows}\n")
        assert json.loads(out)["expected_mse"] == read("design", "people.csv", *task)["expected_mse"]
    (files / "alone.csv").write_text("work\n" + "a\n\nb\n" * 10)
    assert run("design", "alone.csv", "--column", "work", "--epsilon", 1)[2].endswith("10 rows\n")


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private file: amounts, work with two rare values, and the income behind it."""
    monkeypatch.chdir(tmp_path)
    work = ["a"] * 1237 + ["b"] * 411 + ["Pope"] * 4 + ["Queen"] * 7
    rows = [f"{7 * i % 150}.5,{w},{'low' if i % 3 else 'high'}" for i, w in enumerate(work)]
    (tmp_path / "private.csv").write_text("\n".join(["spend,work,income", *rows]) + "\n")
    (tmp_path / "allowed.txt").write_text("Queen\nb\na\nPope\nnobody\n")
    return tmp_path


def private_plan(*options: object) -> tuple[pv.Plan, str]:
    status, out, err = run("design", "private.csv", "--epsilon", 1, *options, "-o", "plan.json", "--force")
    assert (status, err) == (0, "")
    return pv.Plan.load("plan.json"), " ".join(out.split())


def test_what_a_prior_from_data_publishes(private: Path) -> None:
    plan, out = private_plan("--column", "work", "--merge-rare", "other")
    assert plan.prior == pv.Prior.from_counts(
        {"a": 7500, "b": 2500, "other": 66}
    )  # of 1237, 411 and 11 people
    assert "The plan will publish 3 values of 'work' and their shares: a 0.75, b 0.25, other 0.0066." in out
    assert "People with any other value report 'other'" in out and "no privacy guarantee" in out
    plan, out = private_plan("--column", "work", "--allow-rare")
    assert plan.labels == ("Pope", "Queen", "a", "b") and "Pope 0.0024, Queen 0.0042" in out
    plan, out = private_plan("--column", "spend", "--values", "public", "--query", "sum")
    assert len(plan.labels) == 150 and "and 140 more" in out
    found = read("design", "private.csv", "--column", "work", "--allow-rare", "--epsilon", 1)
    assert "will publish 4 values" in str(found["notice"])
    (private / "prior.csv").write_text("a,0.5\nb,0.5\n")
    assert read("design", "prior.csv", "--epsilon", 1)["notice"] is None


@pytest.mark.parametrize("allowed", ["allowed.txt", "Queen, b,a,Pope,nobody"])
def test_a_list_of_the_allowed_values(private: Path, allowed: str) -> None:
    arguments = ("--column", "work", "--values", allowed, "--smoothing", 1)
    plan, _ = private_plan(*arguments, "--allow-rare")
    assert plan.labels == ("Queen", "b", "a", "Pope", "nobody")
    assert private_plan(*arguments, "--merge-rare", "other")[0].labels == ("b", "a", "other")


def test_noise_of_a_stated_level(private: Path) -> None:
    arguments = ("--column", "work", "--prior-epsilon", 0.5)
    plan, out = private_plan(*arguments, "--values", "allowed.txt")
    assert plan.labels == ("Queen", "b", "a", "Pope", "nobody")
    assert "differentially private at level 0.5, for one person added or removed" in out
    assert plan.reference.probabilities[2] == pytest.approx(0.75, abs=0.05)


def test_a_secret_column_is_rounded_and_follows_the_merged_values(private: Path) -> None:
    arguments = ("--column", "work", "--merge-rare", "other", "--secret-column", "income")
    plan, out = private_plan(*arguments, "--allow-rare")
    assert plan.labels == ("a", "b", "other") and "the shares for each of 2 secrets" in out
    high = np.array([0.75, 0.25, 0.0054])  # 413, 137 and 3 of 553 people
    assert plan.secret.rows[0] == pytest.approx(high / high.sum(), rel=1e-12)


def test_a_secret_behind_the_column(files: Path) -> None:
    (files / "given.csv").write_text(",a,b\nlow,0.75,0.25\nhigh,0.33,0.67\n")
    arguments = ("design", "people.csv", "--column", "work", "--epsilon", 0.3)
    by_column = read(*arguments, "--secret-column", "income")
    by_file = read(*arguments, "--secret", "given.csv")
    assert by_column["expected_mse"] == pytest.approx(by_file["expected_mse"], rel=1e-6)
    alone = read(*arguments)
    assert by_column["expected_mse"] < alone["expected_mse"]  # less has to be hidden


def test_a_prior_known_roughly(files: Path) -> None:
    found = read("design", "prior.csv", "--epsilon", 1, "--radius", 0.05)
    assert found["expected_mse"] > read("design", "prior.csv", "--epsilon", 1)["expected_mse"]


ROUNDED = ("a,0.40\nb,0.35\nc,0.25\n", ",a,b,c\nx,0.60,0.30,0.10\ny,0.35,0.36,0.29\n")


def test_rounded_figures_of_a_secret(files: Path) -> None:
    """The mixture 0.2, 0.8 of the rows is 0.4, 0.348, 0.252; what is nearest is nearer still."""
    (files / "p.csv").write_text(ROUNDED[0])
    (files / "sec.csv").write_text(ROUNDED[1])
    task = ("design", "p.csv", "--epsilon", 0.3, "--secret", "sec.csv")
    status, _, err = run(*task, "--mix", "-o", "mixed.json")
    assert status == 0 and "nearest mixture of the rows, 0.00" in err
    plan = pv.Plan.load("mixed.json")
    near = plan.reference.probabilities
    assert near == pytest.approx([0.4, 0.348, 0.252], abs=2e-3) and plan.labels == ("a", "b", "c")
    # A prior that is a mixture needs no --mix, and with it stays where it is.
    (files / "p.csv").write_text("".join(f"{x},{float(p)!r}\n" for x, p in zip("abc", near, strict=True)))
    assert run(*task)[0] == 0
    run(*task, "--mix", "-o", "again.json")
    assert pv.Plan.load("again.json").reference.probabilities == pytest.approx(near, abs=1e-9)


@pytest.mark.parametrize("command", ["audit", "simulate"])
def test_other_commands_mix_too(files: Path, command: str) -> None:
    (files / "p.csv").write_text(ROUNDED[0])
    (files / "sec.csv").write_text(ROUNDED[1])
    (files / "q.csv").write_text(",a,b\na,0.6,0.4\nb,0.5,0.5\nc,0.4,0.6\n")
    first = ("audit", "q.csv", "p.csv") if command == "audit" else ("simulate", "p.csv", "--runs", 0)
    status, _, err = run(*first, "--epsilon", 1, "--secret", "sec.csv", "--mix")
    assert status == 0 and "nearest mixture" in err


@pytest.mark.parametrize("query", ["histogram", "distribution"])
def test_a_plan_for_a_set_of_priors_says_so(files: Path, query: str) -> None:
    task = ("design", "counts.csv", "--counts", "--epsilon", 1, "--query", query, "--radius", 0.05)
    said = "every prior of PriorSet.ball(3 values, radius 0.05)"
    assert said in run(*task, "-o", "plan.json")[1]
    assert said in run("inspect", "plan.json")[1]
    for found in (read(*task), read("inspect", "plan.json")):
        assert found["priors"] == "PriorSet.ball(3 values, radius 0.05)"
    assert read("design", "prior.csv", "--epsilon", 1)["priors"] is None


@pytest.mark.parametrize("notion", ["ldp", "pufferfish", "di"])
def test_other_notions(files: Path, notion: str) -> None:
    arguments = ("design", "prior.csv", "--epsilon", 3, "--notion", notion)
    assert run(*arguments, "-o", "plan.json")[0] == 0
    assert run("audit", "plan.json", "prior.csv", "--notion", notion, "--epsilon", 3)[0] == 0


def test_inspect_shows_everything(files: Path) -> None:
    run("design", "prior.csv", "--epsilon", 1, "-o", "plan.json")
    status, out, err = run("inspect", "plan.json")
    assert (status, err) == (0, "")
    names = [name for name, _ in plan_facts(pv.Plan.load("plan.json"))]
    assert all(words in out for words in (*names, "the best LDP at epsilon 1", "Pufferfish", "MIP"))
    found = read("inspect", "plan.json")
    plan = pv.design(pv.Prior(WORK), 1.0, pv.Distribution())
    best = pv.design(pv.Prior(WORK), 1.0, pv.Distribution(), notion=pv.LDP())
    assert found["ldp"]["error"] == pytest.approx(best.expected_mse)
    assert found["levels"]["ldp"] == pytest.approx(plan.certificate.ldp, abs=1e-6)
    assert found["lower_bound"] <= found["expected_mse"] < found["ldp"]["error"]
    assert found["no_report"] == "inf"


def test_inspect_shows_a_plan_without_a_lip_level(files: Path) -> None:
    """A budget for one direction alone leaves the other without a bound."""
    plan = pv.design(pv.Prior(WORK), pv.Budget(math.inf, 1.0), pv.Histogram())
    assert math.isinf(plan.certificate.lip)
    plan.save("upwards.json")
    status, out, err = run("inspect", "upwards.json")
    assert (status, err) == (0, "") and "the same epsilon" in out and "the same LIP level" not in out


def test_the_precision_is_that_of_the_people_who_will_answer(files: Path) -> None:
    found = read("design", "prior.csv", "--epsilon", 1, "-o", "plan.json", "--people", 400)
    plan = pv.Plan.load("plan.json")
    expected = plan.expected_precision(400)
    for record in (found, read("inspect", "plan.json", "--people", 400)):
        precision: Any = record["precision"]
        assert (precision["people"], precision["text"]) == (400, str(expected))
    assert "with 400 people" in run("inspect", "plan.json", "--people", 400)[1]
    assert "10,000 people" in run("inspect", "plan.json")[1]
    assert "whole number" in refused("inspect", "plan.json", "--people", 0)


def test_design_and_inspect_say_how_precise_an_answer_is(files: Path) -> None:
    arguments = ("prior.csv", "--epsilon", 1, "--query", "distribution", "-o", "learns.json")
    printed = run("design", *arguments)[1], run("inspect", "learns.json")[1]
    facts = dict(plan_facts(pv.Plan.load("learns.json")))
    for out in printed:
        assert all(facts[name] in " ".join(out.split()) for name in ("precision", "expected error"))
    found = read("inspect", "learns.json")["precision"]
    assert found["text"] == facts["precision"] and 0.02 <= found["population"] < 0.03


def test_a_budget_of_nothing_is_refused_before_the_solvers_are_loaded(files: Path) -> None:
    loaded = "from priorveil.cli import run; import sys; run(sys.argv[1:]); sys.exit('scipy' in sys.modules)"
    arguments = [sys.executable, "-c", loaded, "design", "prior.csv", "--epsilon", "0"]
    assert subprocess.run(arguments, capture_output=True, check=False).returncode == 0


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
    assert (status, err) == (0, "Picture saved as plan.png.\n")
    assert (files / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_stays_until_there_is_another(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    run("design", "prior.csv", "--epsilon", 1, "-o", "plan.json")
    (files / "plan.png").write_bytes(b"a good picture")
    monkeypatch.setattr("priorveil.studies.compare.error_curve", interrupt)
    assert run("inspect", "plan.json", "--plot", "plan.png")[0] == 130
    assert (files / "plan.png").read_bytes() == b"a good picture"
    assert not list(files.glob("*.part"))


def test_a_picture_that_cannot_be_drawn_is_told_before_the_work(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = refused("design", "prior.csv", "--epsilon", 1, "-o", "plan.json", "--plot", "plan.png")
    assert "matplotlib is not installed" in told
    assert not (files / "plan.json").exists()


def test_the_shell_and_python_make_the_same_plan(files: Path) -> None:
    prior = pv.Prior.zipf(30)
    (files / "zipf.json").write_text(json.dumps(prior.probabilities.tolist()))
    assert run("design", "zipf.json", "--epsilon", 1, "-o", "plan.json")[0] == 0
    assert pv.Plan.load("plan.json").id == pv.design(prior, 1.0, pv.Distribution()).id
    told = design.make_context("design", ["zipf.json"]).params
    asked = inspect.signature(pv.design).parameters
    assert all(told[name] == asked[name].default for name in ("gap", "time_limit"))


def test_ldp_beside_a_plan_of_many_values() -> None:
    prior = pv.Prior.zipf(60)
    for query in (pv.Histogram(), pv.Guess(), pv.Sum(np.arange(60.0))):
        plan = pv.design(prior, 1.0, query, method="columns" if query.kind == "guess" else "arc")
        rival = ldp_plan(plan, 1.0)
        assert rival is not None and rival.efficiency < 0.999
        assert plan.lower_bound <= rival.expected_mse <= plan.no_report
    k_rr = pv.published.k_rr(prior, 1.0)
    learnt = pv.design(prior, 1.0, pv.Distribution(), rounds=2)
    rival = ldp_plan(learnt, 1.0)
    assert rival is not None and rival.expected_mse <= pv.Distribution().error(k_rr.channel, prior)
    prior, total = pv.Prior.zipf(101), pv.Sum(np.arange(101.0), unbiased=True)
    rival = ldp_plan(pv.design(prior, 1.0, total, method="unary"), 1.0)
    unary = pv.design(prior, 1.0, total, notion=pv.LDP(), method="unary")
    assert rival is not None and rival.expected_mse < 0.5 * unary.expected_mse


def test_the_gap_that_is_shown() -> None:
    assert gain_share(math.inf, 0.0, 1.0) == 0.0
    assert gain_share(0.5, 0.5, 1.0) == 1.0
    assert gain_share(1.0, 1.0, 1.0) == 1.0


def test_the_first_interrupt_asks_and_the_second_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), screen.design_bar(1.0, 1e-6) as (_, interrupted):
        signal.raise_signal(signal.SIGINT)
        assert interrupted.is_set()
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "best plan so far" in capsys.readouterr().err


def test_ctrl_c_saves_the_best_plan_so_far(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advances = iter([lambda: signal.raise_signal(signal.SIGINT)])

    @contextmanager
    def press(words: str) -> Iterator[Callable[[float, str], None]]:
        yield lambda share, state: next(advances, lambda: None)()

    monkeypatch.setattr(screen, "progress_bar", press)
    (files / "zipf.csv").write_text("\n".join(repr(1 / k) for k in range(1, 61)))
    status, out, err = run("design", "zipf.csv", "--normalise", "--epsilon", 4, "--gap", 0, "-o", "plan.json")
    assert status == 0
    assert "best plan so far" in err and "Stopped by ctrl-C" in out and "Saved as plan.json" in out
    plan = pv.Plan.load("plan.json")
    assert plan.certificate.lip <= 4
    assert plan.expected_mse > 1.01 * plan.lower_bound


def test_a_second_ctrl_c_gives_up_at_once(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Designs take KeyboardInterrupt as the wish for a quick answer; the second one is not for them."""

    def press_twice(share: float, state: str) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    @contextmanager
    def press(words: str) -> Iterator[Callable[[float, str], None]]:
        yield press_twice

    monkeypatch.setattr(screen, "progress_bar", press)
    (files / "zipf.csv").write_text("\n".join(repr(1 / k) for k in range(1, 61)))
    task = ("design", "zipf.csv", "--normalise", "--epsilon", 4, "--gap", 0, "-o", "plan.json")
    for query in ("histogram", "distribution"):
        status, out, err = run(*task, "--query", query)
        assert (status, out) == (130, "") and err.endswith("\nstopped\n")
        assert not (files / "plan.json").exists()


def test_a_plan_is_replaced_only_by_force(files: Path) -> None:
    task = ("design", "prior.csv", "--epsilon", 1, "-o", "plan.json")
    assert run(*task)[0] == 0
    refused(*task)
    assert run("design", "prior.csv", "--epsilon", 2, "-o", "plan.json", "--force")[0] == 0
    assert pv.Plan.load(files / "plan.json").budget == pv.Budget(2.0)


def test_a_plan_is_written_where_a_link_leads(files: Path) -> None:
    (files / "plans").mkdir()
    (files / "now.json").symlink_to("plans/a.json")
    assert run("design", "prior.csv", "--epsilon", 1, "-o", "now.json")[0] == 0
    assert (files / "now.json").is_symlink()
    assert pv.Plan.load(files / "plans" / "a.json").labels == tuple(WORK)


def test_a_plan_on_standard_output(files: Path) -> None:
    (files / "tea.csv").write_text("茶,0.5\nthé,0.5\n", encoding="utf-8")
    before = set(files.iterdir())
    task = [sys.executable, "-m", "priorveil", "design", "tea.csv", "--epsilon", "1", "-o", "-"]
    narrow = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    piped = subprocess.run(task, capture_output=True, env=narrow, check=True)
    assert pv.Plan.from_json(piped.stdout.decode()).labels == ("茶", "thé")
    assert b"LIP, certified" in piped.stderr and b"aved" not in piped.stderr
    assert set(files.iterdir()) == before


def test_a_long_design_shows_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = io.StringIO()
    with redirect_stderr(shown), screen.design_bar(1.0, 1e-6) as (update, _):
        update(1, 0.9, 0.5)
        update(2, 0.6, 0.5)
    assert "gap 0.2, round 2" in shown.getvalue()


@pytest.mark.parametrize(("time_limit", "share"), [(1e6, 0.5), (1e-6, 1.0)])
def test_the_bar_of_a_design_advances_with_its_gap_and_its_time(
    time_limit: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []
    bar = nullcontext(lambda done, words: shares.append(done))
    monkeypatch.setattr(screen, "progress_bar", lambda words: bar)
    monkeypatch.setattr(screen, "_REFRESH", 0.05)
    with screen.design_bar(1.0, 1e-4, time_limit) as (update, _):
        update(1, 0.505, 0.5)  # a gap of 0.01 is half the way to 0.0001
        shares.clear()
        while len(shares) < 2:  # nothing new is reported
            time.sleep(0.05)
    assert shares == pytest.approx([share] * len(shares), abs=1e-6)


def page_commands(page: str) -> list[list[str]]:
    """The arguments of the commands on a page that work on files."""
    text = (Path(__file__).parent.parent.parent / page).read_text(encoding="utf-8")
    [block] = re.findall(r"^```sh\n(priorveil design.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in block.replace("\\\n", "").splitlines()]
    assert {name for name, *_ in lines} == {"priorveil"}
    return [arguments for _, *arguments in lines]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/first-survey.md"])
def test_the_commands_of_a_page_run(files: Path, page: str) -> None:
    pytest.importorskip("matplotlib")
    (files / "census.csv").write_text("".join(f"{label},{1000 * share}\n" for label, share in WORK.items()))
    (files / "people.csv").write_text("work\n" + "Private\n" * 60 + "Self\n" * 30 + "None\n" * 10)
    (files / "channel.csv").write_text("0.5,0.5\n" * len(WORK))
    (files / "table.csv").write_text(
        "education,income,count\nlow,<=50K,40\nlow,>50K,9\nhigh,<=50K,20\nhigh,>50K,30\n"
    )
    (files / "graduates.csv").write_text("education,income\n" + "low,<=50K\n" * 60 + "high,>50K\n" * 40)
    for name in ("sample.csv", "incomes.csv"):
        (files / name).write_text("income\n" + "".join(f"{income}\n" for income in range(-500, 120_000, 700)))
    pairs = "".join(
        f"{work},{income}\n" for work in ("Private", "Government") for income in range(0, 120_000, 700)
    )
    for name in ("old.csv", "new.csv"):
        (files / name).write_text("work,income\n" + pairs)
    workers = "".join(
        f"{age},{home},{hours}\n"
        for age in ("young", "old")
        for home in ("yes", "no")
        for hours in range(25)
        for _ in range(4)
    )
    for name in ("last-year.csv", "answers.csv"):
        (files / name).write_text("age,home,overtime\n" + workers)
    for arguments in page_commands(page):
        status, _, err = run(*arguments)
        assert status == 0, err
    if page == "docs/first-survey.md":
        stored = Path(__file__).parent.parent.parent / "docs/plans/overtime-by-age.json"
        made, shown = (
            {label[-1] for label in pv.Plan.load(path).labels} for path in (Path("overtime.json"), stored)
        )
        assert made == shown


PLAIN_INSTALL = """
import json, sys
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))  # none of these can be imported
from priorveil.cli import run
for arguments in json.loads(sys.argv[2]):
    assert run(arguments) == 0, arguments
"""


def test_the_commands_of_the_readme_need_no_extra(files: Path) -> None:
    declared = tomllib.loads((Path(__file__).parent.parent.parent / "pyproject.toml").read_text())["project"]
    basic = {re.split("[<>=[]", name)[0] for name in declared["dependencies"]}
    every = {
        re.split("[<>=[]", name)[0] for extra in declared["optional-dependencies"].values() for name in extra
    }
    extras = sorted(name.replace("-", "_") for name in every - basic - {"priorveil"})
    assert {"matplotlib", "pyarrow", "numba", "starlette"} <= set(extras)
    (files / "people.csv").write_text("work\n" + "Private\n" * 60 + "Self\n" * 30 + "None\n" * 10)
    (files / "channel.csv").write_text("0.5,0.5\n" * len(WORK))
    command = [
        sys.executable,
        "-c",
        PLAIN_INSTALL,
        json.dumps(extras),
        json.dumps(page_commands("README.md")),
    ]
    subprocess.run(command, check=True, cwd=files, stdout=subprocess.DEVNULL)


def test_the_command_offers_every_design_method() -> None:
    """The command names the methods itself, since importing them would slow its help down."""
    offered = next(option.type.choices for option in design.params if option.name == "method")
    assert tuple(offered) == ("auto", *METHODS) == ("auto", *get_args(DesignMethod))


# Several attributes

CROSS = "age,smokes,share\nyoung,yes,0.2\nyoung,no,0.3\nold,yes,0.1\nold,no,0.4\n"


@pytest.mark.parametrize("query", ["cumulative", "ranges", "margins"])
def test_a_prior_of_several_attributes_from_a_file(files: Path, query: str) -> None:
    (files / "cross.csv").write_text(CROSS)
    assert run("design", "cross.csv", "--epsilon", 1, "--query", query, "-o", "plan.json")[0] == 0
    plan = pv.Plan.load("plan.json")
    assert plan.reference.names == ("age", "smokes")
    cells = {("young", "yes"): 0.2, ("young", "no"): 0.3, ("old", "yes"): 0.1, ("old", "no"): 0.4}
    assert plan.reference == pv.Prior.joint(cells, ("age", "smokes"))
    prior = plan.reference
    wanted = {
        "cumulative": pv.Linear.cumulative(prior),
        "ranges": pv.Linear.ranges(prior),
        "margins": pv.Linear.margins(prior, ["age", "smokes"]),
    }
    assert plan.query == wanted[query]


def test_cells_of_zero_in_a_file_need_a_decision(files: Path) -> None:
    (files / "cross.csv").write_text("age,smokes,people\nyoung,yes,20\nyoung,no,30\nold,no,50\n")
    task = ("design", "cross.csv", "--counts", "--epsilon", 1, "-o", "plan.json", "--force")
    refused(*task)
    for choice, size in ((("--leave-out",), 3), (("--smoothing", 1), 4)):
        assert run(*task, *choice)[0] == 0
        assert len(pv.Plan.load("plan.json").labels) == size
    for name, lines, options in (
        ("shares", "a,0.5\nb,0\nc,0.5\n", ()),
        ("people", "a,5\nb,0\nc,5\n", ("--counts",)),
    ):
        (files / f"{name}.csv").write_text(lines)
        assert run("design", f"{name}.csv", *options, "--leave-out", *task[3:])[0] == 0
        assert pv.Plan.load("plan.json").labels == ("a", "c")


def test_several_columns_of_people_are_designed_for_and_privatized(files: Path) -> None:
    both = ("--column", "work", "--column", "income")
    task = (
        "design",
        "people.csv",
        *both,
        "--query",
        "margins",
        "--margin",
        "work",
        "--margin",
        "income,work",
    )
    found = read(*task, "--unbiased", "--epsilon", 1, "-o", "plan.json")
    assert "4 values of 'work, income'" in str(found["notice"]) and "a, low 0.43" in str(found["notice"])
    plan = pv.Plan.load("plan.json")
    assert plan.query.unbiased and plan.reference.names == ("work", "income")
    assert plan.query.statistic_labels(plan.labels)[:3] == ("work=a", "work=b", "income=high, work=a")
    assert run("privatize", "plan.json", "people.csv", *both, "-o", "reports.csv")[0] == 0
    status, out, _ = run("estimate", "plan.json", "reports.csv", "--csv")
    lines = [(line["statistic"], line["work"], line["income"]) for line in csv.DictReader(io.StringIO(out))]
    assert status == 0 and lines[:3] == [("people", "a", ""), ("people", "b", ""), ("people", "a", "high")]


@pytest.mark.parametrize(
    ("arguments", "labels", "asked"),
    [
        (["--numbers", "0:100", "--query", "mean"], (0.0, 50.0, 100.0), "mean of a number, 3 points"),
        (["--numbers", "0:8:5", "--query", "mean"], (0.0, 2.0, 4.0, 6.0, 8.0), "mean of a number, 5 points"),
        (
            ["--numbers", "0:4:3", "--query", "quantiles"],
            ("[0, 2)", "[2, 4]"),
            "cumulative shares of a number, 2 cells",
        ),
    ],
)
def test_a_range_of_numbers_is_a_prior(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    labels: tuple[object, ...],
    asked: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = run("design", *arguments, "--epsilon", "1", "-o", "plan.json")
    assert status == 0 and asked in out, err
    plan = pv.Plan.load("plan.json")
    assert tuple(plan.labels) == labels
    assert plan.query.unbiased


def test_a_public_sample_of_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sample.csv").write_text("age\n" + "10\n" * 3 + "30\n")
    sample = ("sample.csv", "--column", "age", "--values", "public", "--numbers", "0:40:3")
    read("design", *sample, "--query", "quantiles", "--epsilon", 1, "-o", "plan.json")
    assert pv.Plan.load("plan.json").prior.probabilities.tolist() == [0.75, 0.25]


def test_the_matrix_of_a_linear_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prior.csv").write_text("a,0.5\nb,0.3\nc,0.2\n")
    Path("matrix.csv").write_text("statistic,c,b,a\nfirst,1,2,3\nsecond,0,0,1\n")
    arguments = ["prior.csv", "--query", "linear", "--matrix", "matrix.csv", "--epsilon", "1", "--unbiased"]
    status, _, err = run("design", *arguments, "-o", "plan.json")
    assert status == 0, err
    query = pv.Plan.load("plan.json").query
    assert query == pv.Linear([[3, 2, 1], [1, 0, 0]], ("first", "second"), unbiased=True)


# Numbers without a prior, and files that do not fit


def test_without_a_prior_the_command_says_what_it_assumes(files: Path) -> None:
    task = ("design", "--numbers", "0:100", "--query", "mean", "--epsilon", 1)
    shown = " ".join(run(*task)[1].split())
    assert "assumes that all numbers of the range are equally common" in shown
    assert "LIP level only if the assumption is right" in shown and "--notion ldp" in shown
    assert "public sample" in shown
    assert shown.index("LDP, for any prior") < shown.index("LIP, certified")
    assert shown.count("only if the assumed prior is right") == 1
    read(*task, "-o", "plan.json")
    inspected = " ".join(run("inspect", "plan.json")[1].split())
    assert inspected.count("only if the assumed prior is right") == 5  # LIP twice, DI, MIP, and a sentence
    levels = inspected.partition("notion level meaning")[2]
    assert levels.index("LDP") < levels.index("LIP")
    assert read("inspect", "plan.json")["assumed_prior"] is True
    stated = read(*task, "--equally-common")
    assert stated["notice"] is None and stated["assumed_prior"] is False
    assert "equally common" in str(read(*task)["notice"])
    assert read(*task, "--notion", "ldp")["notice"] is None  # LDP holds whatever is true
    (files / "sample.csv").write_text("age\n10\n60\n90\n")
    sample = ("design", "sample.csv", "--column", "age", "--values", "public", "--numbers", "0:100:3")
    assert read(*sample, "--epsilon", 1)["notice"] is None


def test_empty_parts_of_a_sample_of_numbers_can_be_smoothed(files: Path) -> None:
    (files / "sample.csv").write_text("age\n10\n60\n60\n")
    sample = ("design", "sample.csv", "--column", "age", "--values", "public", "--epsilon", 1, "--numbers")
    for query in ("mean", "quantiles"):
        read(*sample, "0:100:5", "--query", query, "--smoothing", 1, "-o", "plan.json", "--force")
        assert min(pv.Plan.load("plan.json").reference.probabilities) == pytest.approx(1 / 8, abs=0.02)
    read(*sample, "0:100", "--query", "mean", "--smoothing", 1)


def test_the_grid_of_a_mean_is_chosen_for_its_notion(files: Path) -> None:
    task = ("design", "--numbers", "0:100", "--query", "mean", "--epsilon", 1, "--notion", "ldp")
    read(*task, "-o", "plan.json")
    best = pv.designs.design_mean(0, 100, 1.0, lambda number: 1.0, notion=pv.LDP())
    assert pv.Plan.load("plan.json").labels == best.labels


def test_labels_of_a_prior_of_numbers_are_those_of_the_range(files: Path) -> None:
    (files / "points.csv").write_text("100,0.1\n50,0.2\n0,0.7\n")
    (files / "cells.csv").write_text('"[50, 100]",0.3\n"[0, 50)",0.7\n')
    (files / "alone.csv").write_text("0.7\n0.2\n0.1\n")
    wanted = {("points.csv", "mean"): [0.7, 0.2, 0.1], ("alone.csv", "mean"): [0.7, 0.2, 0.1]}
    wanted |= {("cells.csv", "quantiles"): [0.7, 0.3]}
    for (name, query), shares in wanted.items():
        task = ("design", name, "--numbers", "0:100", "--query", query, "--epsilon", 1)
        read(*task, "-o", "plan.json", "--force")
        assert pv.Plan.load("plan.json").reference.probabilities.tolist() == shares


def test_the_columns_of_a_matrix_name_the_levels_of_several_attributes(files: Path) -> None:
    (files / "cross.csv").write_text(CROSS)
    (files / "matrix.csv").write_text('rows,"old, no","old, yes","young, no","young, yes"\nx,1,2,3,4\n')
    task = ("design", "cross.csv", "--query", "linear", "--matrix", "matrix.csv", "--epsilon", 1)
    read(*task, "-o", "plan.json")
    plan = pv.Plan.load("plan.json")
    assert plan.labels[0] == ("young", "yes") and plan.query.matrix.rows.tolist() == [[4, 3, 2, 1]]


def test_many_attributes_are_pointed_to_drawn_margins(files: Path) -> None:
    rng = np.random.default_rng(1)
    rows = ["a,b,c,d", *(",".join(map(str, row)) for row in rng.integers(0, 4, (500, 4)))]
    (files / "many.csv").write_text("\n".join(rows) + "\n")
    task = ("design", "many.csv", "--query", "margins", "--epsilon", 1)
    columns = [("--column", name) for name in "abcd"]
    told = refused(*task, *itertools.chain(*columns))
    assert "docs/choosing.md" in told
    (code,) = re.findall(r"In Python: (priorveil\..*), see", told)
    people = {name: rng.integers(0, 3, 500) for name in "abcd"}
    form = eval(code, {"priorveil": pv, "people": people, "epsilon": 1.0})  # the advice as it is printed
    assert [part.attributes for part in form.parts] == [("a", "b"), ("b", "c")] and form.levels().lip <= 1
    assert "design_margins" not in refused(*task, *columns[0], "--column", "nothing")


def test_numbers_outside_the_range_may_count_at_its_ends(files: Path) -> None:
    (files / "sample.csv").write_text("age\n10\n\n60\n190\n")
    task = ("design", "sample.csv", "--column", "age", "--values", "public", "--epsilon", 1, "--numbers")
    assert run(*task, "0:100:3", "--outside", "ends")[0] == run(*task, "0:200:3")[0] == 0


def test_the_cells_of_several_attributes_are_published(files: Path) -> None:
    (files / "people.csv").write_text("a,b\n" + "x,y\nx,z\nw,y\nw,z\n" * 20)
    both = ("--column", "a", "--column", "b")
    task = ("design", "people.csv", "--query", "margins", "--margin", "a, b", "--epsilon", 1)
    assert "shares: w, y 0.25; w, z 0.25; x, y 0.25; x, z 0.25." in str(read(*task, *both)["notice"])
