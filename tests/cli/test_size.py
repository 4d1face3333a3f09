"""`priorveil size`: people for a margin of error, margins for people, the least epsilon, of priors and plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import priorveil as pv
from priorveil.designs.survey_sizes import survey_sizes
from priorveil.words.planning import SizeQuestion
from terminal import done, refused

PRIOR = pv.Prior([0.5, 0.3, 0.2], ["a", "b", "c"])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prior and a plan in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prior.csv").write_text("a,0.5\nb,0.3\nc,0.2\n")
    pv.design(PRIOR, 1.0, pv.Distribution()).save(tmp_path / "plan.json")
    pv.design(PRIOR, 1.0, pv.Histogram()).save(tmp_path / "leaning.json")
    return tmp_path


def record(*arguments: object) -> dict[str, Any]:
    """What `size --json` prints."""
    found: dict[str, Any] = json.loads(done("size", *arguments, "--json").out)
    return found


@pytest.mark.parametrize("source", [("prior.csv", "--epsilon", 1), ("plan.json",)])
def test_people_at_the_prior_and_whatever_the_truth_is(source: tuple[object, ...]) -> None:
    one, exact = record(*source, "--within", 0.02)["sizes"]
    assert (one["people"], one["people_worst"]) == (6_919, 7_283) and one["epsilon"] == 1.0
    assert (exact["people"], exact["people_worst"], exact["epsilon"]) == (2_401, 2_401, "inf")
    printed = done("size", *source, "--within", 0.02).out
    assert all(text in printed for text in ("±2 points", "6,919", "7,283", "no noise"))


def test_half_widths_of_people_and_the_least_epsilon() -> None:
    found = record("prior.csv", "--people", 5_000, "--within", 0.02, "--eps", 2, "--eps", 1)
    assert [size["epsilon"] for size in found["sizes"]] == [1.0, 2.0, "inf"]
    plan = pv.Plan.load("plan.json")
    widest = 1.959964 * plan.std_error(5_000).max()
    assert found["sizes"][0]["half_width"] == pytest.approx(widest, rel=1e-6)
    least = found["least_epsilon"]
    assert pv.design(PRIOR, least["at_prior"], plan.query).people(0.02) <= 5_000
    assert pv.design(PRIOR, least["worst"], plan.query).people(0.02, worst=True) <= 5_000
    assert least["worst"] > least["at_prior"] > 1
    assert "whatever the truth is" in done("size", "plan.json", "--people", 5_000, "--within", 0.02).out
    assert record("plan.json", "--people", 50, "--within", 0.02)["least_epsilon"]["at_prior"] is None


def test_shares_are_known_to_three_points_unless_something_else_is_asked() -> None:
    assert record("plan.json")["within"] == 0.03
    found = record("plan.json", "--people", 400)
    assert found["within"] is None and "people" not in found["sizes"][0]
    assert "±8.4 points" in done("size", "plan.json", "--people", 400).out


def test_numbers_have_their_own_unit() -> None:
    mean = ("--numbers", "0:100:5", "--query", "mean", "--epsilon", 1)
    assert "give --within" in refused("size", *mean)
    assert record(*mean, "--within", 5)["sizes"][0]["people"] > 100
    assert "points" not in done("size", *mean, "--within", 5).out


def test_what_a_plan_has_decided_cannot_be_asked_again() -> None:
    assert "--epsilon is for a PRIOR" in refused("size", "plan.json", "--epsilon", 2)
    assert "--query is for a PRIOR" in refused("size", "plan.json", "--query", "ranges")
    assert "lean on the prior" in refused("size", "leaning.json")
    assert "give PRIOR" in refused("size")


def test_the_picture_has_a_curve_for_each_budget(folder: Path) -> None:
    printed = done("size", "prior.csv", "--plot", "size.svg", "--within", 0.02, "--people", 1_000)
    assert "size.svg" in printed.err and (folder / "size.svg").stat().st_size > 1_000
    pytest.importorskip("matplotlib")
    from priorveil.words.plots.planning import size_figure

    sizes = list(survey_sizes(PRIOR, pv.Distribution(), [1.0, 2.0]))
    (axes,) = size_figure(sizes, SizeQuestion("share", 0.95, 0.02, 1_000)).axes
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["epsilon 1", "epsilon 2", "no noise", "dotted: whatever the truth is"]
    curve = next(line for line in axes.lines if line.get_label() == "epsilon 1")
    people, points = curve.get_data()
    assert points == pytest.approx([100 * sizes[0].half_widths(int(n))[0] for n in people])
