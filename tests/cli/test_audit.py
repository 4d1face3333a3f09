"""`priorveil audit`: what it prints, and with which status it leaves."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import priorveil as pv
from references import likelihood
from terminal import run

RARE = {"a": 0.025, "b": 0.025, "c": 0.025, "d": 0.025, "e": 0.9}


def write_channel(path: Path, channel: pv.Channel) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["", *channel.outputs])
        rows.writerows([x, *row] for x, row in zip(channel.inputs, channel.matrix.tolist(), strict=True))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The paper's closed form for one common value and four rare ones, and its prior."""
    form = pv.published.rr_lip(pv.Prior(RARE), 1.0)
    write_channel(tmp_path / "channel.csv", form.channel)
    (tmp_path / "channel.json").write_text(form.channel.to_json())
    (tmp_path / "prior.csv").write_text(
        "answer,probability\n" + "".join(f"{k},{v}\n" for k, v in RARE.items())
    )
    (tmp_path / "prior.json").write_text(json.dumps(RARE))
    return tmp_path


def test_audit_prints_every_level(files: Path) -> None:
    status, out, err = run("audit", files / "channel.csv", files / "prior.csv")
    assert (status, err) == (0, "")
    for name in ("LIP", "downwards", "upwards", "LDP", "Pufferfish", "DI", "MIL", "MIP"):
        assert name in out
    assert "3.2446" in out


@pytest.mark.parametrize("channel", ["channel.csv", "channel.json"])
@pytest.mark.parametrize("prior", ["prior.csv", "prior.json"])
def test_every_form_of_file_says_the_same(files: Path, channel: str, prior: str) -> None:
    status, out, _ = run("audit", files / channel, files / prior, "--epsilon", 1, "--json")
    read = json.loads(out)
    levels = pv.published.rr_lip(pv.Prior(RARE), 1.0).leakage
    assert status == 1
    assert read["levels"]["lip_upper"] == pytest.approx(levels.lip_upper, rel=1e-12)
    assert read["levels"]["mip"] == pytest.approx(levels.mip, rel=1e-12)
    assert read["verdict"]["holds"] is False


def test_sides_of_a_budget(files: Path) -> None:
    audit = ("audit", files / "channel.csv", files / "prior.csv")
    assert run(*audit, "--lower", 1)[0] == 0  # the upper side is not bounded
    assert run(*audit, "--upper", 1)[0] == 1
    assert run(*audit, "--lower", 1, "--upper", 3.25)[0] == 0
    assert run(*audit, "--lower", 0.99, "--upper", 3.25)[0] == 1


def test_rounding_is_forgiven_and_nothing_else(files: Path) -> None:
    level = pv.published.rr_lip(pv.Prior(RARE), 1.0).leakage.lip
    audit = ("audit", files / "channel.csv", files / "prior.csv", "--epsilon")
    assert run(*audit, repr(level - 1e-12))[0] == 0
    assert run(*audit, repr(level - 1e-8))[0] == 1


@pytest.mark.parametrize("notion", ["lip", "ldp", "pufferfish", "di", "mil", "mip"])
def test_every_notion_is_held_to_its_level(files: Path, notion: str) -> None:
    levels = pv.published.rr_lip(pv.Prior(RARE), 1.0).leakage
    level = getattr(levels, notion)
    audit = ("audit", files / "channel.csv", files / "prior.csv", "--notion", notion, "--json", "--epsilon")
    assert run(*audit, level * 1.01)[0] == 0
    status, out, _ = run(*audit, level * 0.99)
    (breach,) = json.loads(out)["verdict"]["breaches"]
    assert status == 1
    assert breach["level"] == pytest.approx(level, rel=1e-9)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(data=st.data(), notion=st.sampled_from(["ldp", "pufferfish", "di"]), latent=st.booleans())
def test_the_pair_named_has_the_level(tmp_path: Path, data: st.DataObject, notion: str, latent: bool) -> None:
    cells = st.lists(st.integers(1, 20), min_size=3, max_size=3)
    W = np.array(data.draw(st.lists(cells, min_size=3, max_size=3)), dtype=float)
    T = np.array(data.draw(st.lists(cells, min_size=2, max_size=2)), dtype=float)
    T, P = T / T.sum(axis=1, keepdims=True), T.sum(axis=0) / T.sum()
    channel, prior = pv.Channel.from_weights(W), pv.Prior(P / P.sum())
    weights = np.linalg.lstsq(T.T, P, rcond=None)[0]
    (tmp_path / "q.json").write_text(channel.to_json())
    (tmp_path / "p.json").write_text(json.dumps((weights @ T / (weights @ T).sum()).tolist()))
    (tmp_path / "t.json").write_text(json.dumps(T.tolist()))
    secret = ("--secret", tmp_path / "t.json", "--normalise") if latent else ()
    audit = ("audit", tmp_path / "q.json", tmp_path / "p.json", *secret, "--json", "--notion", notion)
    _, out, _ = run(*audit, "--epsilon", 0)
    read = json.loads(out)
    if read["levels"][notion] <= 1e-9:
        assert read["verdict"]["holds"]
        return
    (breach,) = read["verdict"]["breaches"]
    assert breach["level"] == pytest.approx(read["levels"][notion], abs=1e-9)
    rows = T @ channel.matrix if latent and notion == "pufferfish" else channel.matrix
    if notion == "di":
        rows = prior.probabilities[:, None] * rows
    y = breach["report"]
    ratio = rows[breach["secret"], y] / rows[breach["against"], y]
    assert math.log(ratio) == pytest.approx(breach["level"], abs=1e-9)


def test_a_secret_behind_the_value(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("1,0\n0,1\n")
    (tmp_path / "p.csv").write_text("clinic,0.5\nother,0.5\n")
    (tmp_path / "t.csv").write_text(",other,clinic\nill,0.4,0.6\nwell,0.6,0.4\n")
    audit = ("audit", tmp_path / "q.csv", tmp_path / "p.csv", "--secret", tmp_path / "t.csv")
    status, out, _ = run(*audit, "--epsilon", 0.2)
    assert status == 1
    assert "LIP does not hold downwards at secret 'ill', report 1: level 0.223144, above 0.2." in " ".join(
        out.split()
    )
    assert "infinite" in out  # nothing is promised of the value itself
    assert run(*audit, "--epsilon", 0.23)[0] == 0
    status, out, _ = run(*audit, "--epsilon", 9, "--notion", "ldp")
    assert status == 1
    assert "value 'clinic' against value 'other'" in out
    assert json.loads(run(*audit, "--json")[1])["levels"]["ldp"] == "inf"


def test_labels_decide_the_order(files: Path) -> None:
    turned = dict(reversed(RARE.items()))
    (files / "turned.json").write_text(json.dumps(turned))
    _, straight, _ = run("audit", files / "channel.csv", files / "prior.csv", "--json")
    _, other, _ = run("audit", files / "channel.csv", files / "turned.json", "--json")
    assert json.loads(straight) == json.loads(other)


def test_a_foreign_label_is_refused(files: Path) -> None:
    (files / "foreign.json").write_text(
        json.dumps({**{k: v for k, v in RARE.items() if k != "a"}, "z": 0.025})
    )
    status, _, err = run("audit", files / "channel.csv", files / "foreign.json")
    assert status == 2
    assert "it has no value 'a'" in err


def test_counts_and_smoothing(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("0.9,0.1\n0.2,0.8\n")
    (tmp_path / "n.csv").write_text("yes,3\nno,0\n")
    audit = ("audit", tmp_path / "q.csv", tmp_path / "n.csv", "--json")
    assert run(*audit, "--counts")[0] == 2
    status, out, _ = run(*audit, "--counts", "--smoothing", 1)
    assert status == 0
    expected = pv.LIP().epsilon(pv.Channel([[0.9, 0.1], [0.2, 0.8]]), pv.Prior([0.8, 0.2]))
    assert json.loads(out)["levels"]["lip"] == pytest.approx(expected)


def test_rounded_figures_need_normalise(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("0.333,0.333,0.333\n0.2,0.3,0.5\n")
    (tmp_path / "p.csv").write_text("0.333\n0.666\n")
    audit = ("audit", tmp_path / "q.csv", tmp_path / "p.csv")
    assert run(*audit)[0] == 2
    assert run(*audit, "--normalise")[0] == 0


def test_a_plan_of_arcs_is_measured_at_its_reports(tmp_path: Path) -> None:
    """The tally's cells average over reports: the levels are those of single reports, drawn and looked at."""
    known = pv.Prior([0.15, 0.15, 0.15, 0.15, 0.2, 0.2])
    plan = pv.design(known, 1.0, pv.Histogram(), method="arc")
    T = np.array([[0.38, 0.1, 0.38, 0.1, 0.02, 0.02], [0.1, 0.38, 0.1, 0.38, 0.02, 0.02]])
    plan.save(tmp_path / "arc.json")
    (tmp_path / "p.json").write_text(json.dumps(T.mean(axis=0).tolist()))
    (tmp_path / "t.json").write_text(json.dumps(T.tolist()))
    audit = ("audit", tmp_path / "arc.json", tmp_path / "p.json", "--secret", tmp_path / "t.json")
    said = json.loads(run(*audit, "--json")[1])["levels"]
    reports = plan.privatize(list(range(6)) * 300, np.random.default_rng(1))
    seen = np.array([likelihood(plan.mechanism, int(y)) for y in reports]).T
    told = np.log(T @ seen)
    pairs = np.abs(told[0] - told[1]).max()
    lifts = np.abs(told - np.log(T.mean(axis=0) @ seen)).max()
    assert pairs <= said["pufferfish"] + 1e-7 and lifts <= said["lip"] + 1e-7
    assert said["pufferfish"] == pytest.approx(pairs, rel=0.02)
    assert said["pufferfish"] == pytest.approx(pv.Pufferfish().epsilon(plan.channel, None, pv.Secret(T)))
    assert said["pufferfish"] > pv.Pufferfish().epsilon(plan.channel.matrix, None, pv.Secret(T)) + 0.05
    _, out, _ = run(*audit, "--notion", "pufferfish", "--epsilon", 0, "--json")
    (breach,) = json.loads(out)["verdict"]["breaches"]
    told = np.log(T @ likelihood(plan.mechanism, breach["report"]))
    assert abs(told[0] - told[1]) == pytest.approx(said["pufferfish"])
    levels = json.loads(run("inspect", tmp_path / "arc.json", "--json")[1])["levels"]
    assert levels["mip"] >= pv.MIP().epsilon(plan.channel, known) + 1e-4
    assert levels["bounds"] == ["MIL", "MIP"]
    assert "mutual information, in nats (an upper bound)" in run("inspect", tmp_path / "arc.json")[1]


def test_a_plan_is_a_channel(files: Path) -> None:
    pv.design(pv.Prior(RARE), epsilon=1.0, query=pv.Histogram()).save(files / "plan.json")
    status, out, err = run("audit", files / "plan.json", files / "prior.csv", "--epsilon", 1)
    assert (status, err) == (0, "")
    assert "LIP holds at epsilon 1." in out
