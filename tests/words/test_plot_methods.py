"""`.plot()` of priors, channels, plans, estimates and averages: the picture shows the numbers of the object."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import MissingExtra
from refusals import raises

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'priorveil[plot]'")

WORK = pv.Prior({"Private": 0.7, "Government": 0.2, "None": 0.1})
JOINT = pv.Prior.joint(
    {("young", "yes"): 0.1, ("young", "no"): 0.3, ("old", "yes"): 0.4, ("old", "no"): 0.2},
    names=("age", "smokes"),
)
HOURS = pv.Prior.joint(
    {("young", 0): 0.2, ("young", 40): 0.3, ("old", 0): 0.4, ("old", 40): 0.1},
    ("age", "overtime"),
    grids=("overtime",),
)


def answer(
    prior: pv.Prior, query: pv.Linear, people: int = 2_000, weights: float | None = None, **options: Any
) -> Any:
    plan = pv.design(prior, 1.0, query)
    rng = np.random.default_rng(0)
    codes = rng.choice(len(prior), people, p=prior.probabilities)
    return plan.estimate(plan.tally(plan.privatize(codes, rng, codes=True), weights), **options)


def texts(axes: Any) -> list[str]:
    return [text.get_text().removeprefix("\N{MULTIPLICATION SIGN}") for text in axes.texts]


def names(axes: Any) -> list[str]:
    return [tick.get_text() for tick in axes.get_yticklabels()]


def test_a_prior_is_drawn_as_bars() -> None:
    (axes,) = WORK.plot().axes
    assert axes.patches[0].get_data().values == pytest.approx([70, 20, 10])
    assert names(axes) == list(WORK.labels)


def test_a_large_prior_is_drawn_with_some_of_its_names() -> None:
    (axes,) = pv.Prior.zipf(1_000).plot().axes
    assert len(axes.patches[0].get_data().values) == 1_000 and len(names(axes)) == 100


def test_a_channel_is_drawn_with_its_lifts_under_a_prior() -> None:
    channel = pv.Channel([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]], ["a", "b"], ["x", "y", "never"])
    axes, _ = channel.plot(pv.Prior({"b": 0.5, "a": 0.5})).axes
    assert texts(axes) == ["1.50", "0.50", "0.50", "1.50"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["x", "y"]
    plain, _ = channel.plot().axes
    assert texts(plain) == ["0.75", "0.25", "0.25", "0.75"]


def test_a_channel_that_rules_values_out_is_drawn() -> None:
    axes, _ = pv.Channel.identity(["a", "b"]).plot(pv.Prior([0.5, 0.5])).axes
    assert texts(axes) == ["2.00", "0.00", "0.00", "2.00"]
    assert np.isfinite(np.asarray(axes.images[0].get_array())).all()


def test_a_plan_is_drawn_with_its_channel_and_what_to_expect() -> None:
    plan = pv.design(WORK, 1.0, pv.Histogram())
    beliefs, precision, _ = plan.plot().axes
    assert beliefs.images[0].get_size() == plan.channel.shape and names(beliefs) == list(WORK.labels)
    ends = np.array([line[:, 0] for line in precision.containers[0].lines[2][0].get_segments()])
    assert np.ptp(ends, axis=1) == pytest.approx(2 * 1.959964 * 100 * plan.std_error(10_000), rel=1e-6)


def test_a_plan_without_a_channel_to_write_out_shows_what_to_expect() -> None:
    plan = pv.design(pv.Prior.zipf(3_000), 1.0, pv.Histogram(), method="unary")
    (precision,) = plan.plot().axes
    assert "10,000 people" in precision.get_title()


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_an_estimate_is_drawn_against_its_prior(confidence: float) -> None:
    estimate = answer(WORK, pv.Histogram())
    (axes,) = estimate.plot(confidence).axes
    ends = np.array([line[:, 0] for line in axes.containers[0].lines[2][0].get_segments()])
    assert np.allclose(ends, np.column_stack(estimate.interval(confidence)))
    assert axes.patches[0].get_data().values == pytest.approx(2_000 * WORK.probabilities)
    assert str(estimate.notes[0]) in axes.figure.get_suptitle().replace("\n", " ")


def test_a_warning_is_above_the_picture() -> None:
    plan = pv.design(WORK, 1.0, pv.Histogram())
    estimate = plan.estimate(plan.tally(plan.privatize(["None"] * 2_000, np.random.default_rng(0))))
    title = estimate.plot().get_suptitle().replace("\n", " ")
    assert title.startswith(f"Warning: {estimate.warning}")


def test_a_cross_table_is_a_map_and_its_margin_has_rows() -> None:
    estimate = answer(JOINT, pv.Distribution())
    (table,) = estimate.plot().axes
    assert np.asarray(table.images[0].get_array()).ravel() == pytest.approx(100 * estimate.proportions)
    (margin,) = estimate.margin("age").plot().axes
    assert names(margin) == ["young", "old"] and margin.get_ylabel() == "age"
    assert margin.patches[0].get_data().values == pytest.approx([800, 1_200])


def test_a_margin_of_two_of_three_attributes_is_a_map() -> None:
    cells = {(a, b, c): 1 / 8 for a in "ab" for b in "cd" for c in "ef"}
    estimate = answer(pv.Prior.joint(cells, ("first", "second", "third")), pv.Distribution())
    (axes,) = estimate.margin("first", "third").plot().axes
    assert axes.get_ylabel() == "first" and axes.get_xlabel().startswith("third") and len(axes.texts) == 4


@pytest.mark.parametrize("weight", [0.0001, 3.0])
def test_shares_and_means_of_weighted_people_are_those_of_the_estimate(weight: float) -> None:
    table = answer(JOINT, pv.Distribution(), weights=weight)
    (cells,) = table.plot().axes
    assert np.asarray(cells.images[0].get_array()).ravel() == pytest.approx(100 * table.proportions)
    grid = pv.Prior.grid([0, 50, 100], [0.2, 0.5, 0.3])
    total = answer(grid, pv.Sum([0, 50, 100], unbiased=True), weights=weight)
    (axes,) = total.plot().axes
    drawn = axes.containers[0].lines[0].get_xdata()
    assert drawn == pytest.approx([total.mean().value])


@pytest.mark.parametrize("query", [pv.Distribution(), pv.Linear.averages(HOURS, "overtime", by="age")])
def test_averages_are_drawn_by_group(query: pv.Linear) -> None:
    averages = answer(HOURS, query).mean("overtime", by="age")
    (axes,) = averages.plot().axes
    assert names(axes) == ["young", "old"] and axes.get_xlabel() == "mean overtime"
    assert axes.containers[0].lines[0].get_xdata() == pytest.approx(averages.values)


def test_a_single_group_keeps_its_name() -> None:
    cells = {("young", 0): 0.5, ("young", 40): 0.5}
    prior = pv.Prior.joint(cells, ("age", "overtime"), grids=("overtime",))
    (axes,) = answer(prior, pv.Distribution()).mean("overtime", by="age").plot().axes
    assert names(axes) == ["young"]


def test_a_picture_shows_in_a_notebook_without_pyplot() -> None:
    figure = WORK.plot()
    data, size = figure._repr_png_()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width / size["width"] == pytest.approx(height / size["height"], rel=0.02)
    assert width / size["width"] == pytest.approx(1.5, rel=0.02), "sharp on fine screens"


DRAWN: list[Callable[[], object]] = [
    WORK.plot,
    pv.Channel.identity(2).plot,
    lambda: pv.design(WORK, 1.0, pv.Histogram()).plot(),
    lambda: answer(WORK, pv.Histogram()).plot(),
    lambda: answer(HOURS, pv.Distribution()).mean("overtime", by="age").plot(),
]


@pytest.mark.parametrize("draw", DRAWN)
def test_without_matplotlib_the_error_says_what_to_install(
    draw: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with raises(MissingExtra, library="matplotlib", extra="plot"):
        draw()
