"""Pictures: they show what they are given, without a window, and say so when they cannot."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import MissingExtra
from priorveil.studies import plot_files
from priorveil.studies.simulate import simulate
from priorveil.words.plots import curves
from refusals import raises

matplotlib = pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'priorveil[plot]'"
)


def test_errors_are_drawn_as_they_are() -> None:
    study = simulate(
        [0.2, 0.3, 0.5], [1.0, 2.0], pv.Histogram(), ["best", "published-rr", "none"], runs=5, people=100
    )
    axes: curves.Axes = curves.canvas()[1][0, 0]
    curves.method_lines(axes, study.table(), curves.METHOD_STYLES, "expected", root=True)
    drawn = {line.get_label(): line for line in axes.get_lines() if not str(line.get_label()).startswith("_")}
    assert set(drawn) == {"best LIP design", "RR-LIP, published", "no report"}
    expected = [math.sqrt(row.expected) for row in study.of("best")]
    assert np.allclose(drawn["best LIP design"].get_ydata(), expected)
    assert drawn["RR-LIP, published"].is_dashed()
    assert len(axes.containers) == 3, "dots with intervals, where surveys were simulated"
    for method, dots in zip(("best", "published-rr", "none"), axes.containers, strict=True):
        ends = [segment[:, 1] for segment in dots.lines[2][0].get_segments()]
        assert np.allclose(ends, np.sqrt([(row.low, row.high) for row in study.of(method)]))


@pytest.mark.parametrize(
    ("high", "ticks"), [(100.0, [1, 2, 5, 10, 20, 50, 100]), (1e4, [1, 10, 100, 1000, 1e4])]
)
def test_ticks_of_many_decades_are_powers_of_ten(high: float, ticks: list[float]) -> None:
    axes: curves.Axes = curves.canvas()[1][0, 0]
    axes.plot([1.0, high], [0, 1])
    curves.log_scale(axes, "x")
    assert [tick for tick in axes.get_xticks() if 1 <= tick <= high] == pytest.approx(ticks)


def test_levels_shade_what_breaks_the_budget() -> None:
    study = simulate([0.1, 0.9], [0.5, 1.0], pv.Histogram(), ["best", "published-rr"], runs=0)
    axes = plot_files.study_plot(study).axes[1]
    assert "ε" in axes.get_xlabel() and "LIP" in axes.get_ylabel()
    assert any("breaks the budget" in text.get_text() for text in axes.texts)
    published = next(line for line in axes.get_lines() if line.get_label() == "RR-LIP, published")
    assert min(np.asarray(published.get_ydata()) - np.array([0.5, 1.0])) > 0.5


def test_a_method_with_another_budget_does_not_break_this_one() -> None:
    study = simulate([0.1, 0.9], [0.5, 1.0], pv.Histogram(), ["best", "ldp-same-ldp"], runs=0)
    assert all(row.lip > row.epsilon for row in study.of("ldp-same-ldp"))
    errors, levels = plot_files.study_plot(study).axes
    name = "best LDP, same LDP level"
    assert name in errors.get_legend_handles_labels()[1]
    assert name not in levels.get_legend_handles_labels()[1] and name in levels.get_title()
    bars = plot_files.study_plot(
        simulate([0.1, 0.9], [0.5], pv.Histogram(), ["best", "ldp-same-ldp"], runs=0)
    ).axes[1]
    best, other = (bar.get_width() for bar in bars.patches)
    assert best == pytest.approx(0.5, abs=1e-6) and np.isnan(other)
    assert name in " ".join(bars.get_title().split())


def test_the_legend_of_the_usual_methods_is_within_the_figure() -> None:
    methods = ["best", "published-rr", "rr", "ldp-best", "ldp-same-lip", "ldp-same-ldp", "none"]
    study = simulate([0.2, 0.3, 0.5], [1.0, 2.0], pv.Histogram(), methods, runs=0)
    figure = plot_files.study_plot(study)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box, room = legend.get_window_extent(), figure.bbox
    assert room.x0 + 5 < box.x0 and box.x1 < room.x1 - 5
    assert room.y0 <= box.y0 and box.y1 < figure.axes[1].get_tightbbox().y0


def test_titles_of_bars_have_room() -> None:
    study = simulate([0.2, 0.3, 0.5], [1.0], pv.Histogram(), ["best", "ldp-same-ldp"], runs=2, people=5_000)
    figure = plot_files.study_plot(study)
    figure.draw_without_rendering()
    left, right = (axes.title.get_window_extent() for axes in figure.axes)
    assert left.x1 < right.x0 and right.x1 <= figure.bbox.x1


def test_guesses_have_their_own_unit() -> None:
    study = simulate([0.2, 0.3, 0.5], [1.0, 2.0], pv.Guess(), ["best"], runs=0)
    axes = plot_files.study_plot(study).axes[0]
    assert axes.get_ylabel() == "wrong guesses, in percent"
    assert axes.get_lines()[0].get_ydata()[0] == 100 * study.rows[0].expected


@pytest.mark.parametrize("epsilons", [[1.0], [1.0, 2.0]])
def test_a_method_that_does_not_apply_is_not_drawn(epsilons: list[float]) -> None:
    study = simulate([0.2, 0.3, 0.5], epsilons, pv.Sum([1, 2, 3]), ["hashing", "best"], runs=0)
    figure = plot_files.study_plot(study)
    if len(epsilons) == 1:
        assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["best LIP design"]
    else:
        assert figure.axes[0].get_legend_handles_labels()[1] == ["best LIP design"]


def test_every_method_has_a_colour_and_a_style() -> None:
    from priorveil.studies.compare import COMPARED_METHODS

    assert set(curves.METHOD_STYLES) == set(COMPARED_METHODS)
    assert all(
        kind in curves.STYLES and colour in curves.COLOURS
        for kind, colour, _ in curves.METHOD_STYLES.values()
    )
    with pytest.raises(KeyError, match="no such kind"):
        curves.line(curves.canvas()[1][0, 0], ("no such kind", "black", "x"), [0], [0])


def test_colours_differ_in_lightness_for_those_who_see_few() -> None:
    """Pairs of inks are apart by colour or by lightness, also with red and green confused (deuteranopia)."""
    shown = [tuple(int(ink[i : i + 2], 16) / 255 for i in (1, 3, 5)) for ink in curves.COLOURS.values()]
    seen = np.array([[0.625 * r + 0.375 * g, 0.7 * r + 0.3 * g, 0.3 * g + 0.7 * b] for r, g, b in shown])
    apart = np.abs(seen[:, None] - seen[None]).max(axis=2)
    assert apart[np.triu_indices(len(seen), 1)].min() > 0.08


def test_no_window_is_opened() -> None:
    curves.canvas()
    assert "matplotlib.pyplot" not in sys.modules or matplotlib.get_backend().lower() == "agg"


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with raises(MissingExtra, library="matplotlib", extra="plot"):
        curves.canvas()
