"""Pictures: they show what they are given, without a window, and say so when they cannot."""

from __future__ import annotations

import builtins
import math
import struct
from typing import Any

import numpy as np
import pytest

import priorveil as pv
from priorveil.errors import InvalidInput, MissingExtra
from priorveil.studies import plots
from priorveil.studies.simulate import simulate

matplotlib = pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'priorveil[plot]'"
)


def test_errors_are_drawn_as_they_are() -> None:
    study = simulate([0.2, 0.3, 0.5], [1.0, 2.0], None, ["best", "published-rr", "none"], runs=5, people=100)
    axes = plots.errors(study)
    drawn = {line.get_label(): line for line in axes.get_lines() if not str(line.get_label()).startswith("_")}
    assert set(drawn) == {"best LIP design", "RR-LIP, published", "no report"}
    expected = [math.sqrt(row.expected) for row in study.of("best")]
    assert np.allclose(drawn["best LIP design"].get_ydata(), expected)
    assert drawn["RR-LIP, published"].is_dashed()
    assert "ε" in axes.get_xlabel() and "MSE" in axes.get_ylabel()


def test_levels_shade_what_breaks_the_budget() -> None:
    study = simulate([0.1, 0.9], [0.5, 1.0], None, ["best", "published-rr"], runs=0)
    axes = plots.levels(study)
    assert any("breaks the budget" in text.get_text() for text in axes.texts)
    published = next(line for line in axes.get_lines() if line.get_label() == "RR-LIP, published")
    assert min(np.asarray(published.get_ydata()) - np.array([0.5, 1.0])) > 0.5


def test_guesses_have_their_own_unit() -> None:
    study = simulate([0.2, 0.3, 0.5], [1.0], pv.Guess(), ["best"], runs=0)
    axes = plots.errors(study)
    assert axes.get_ylabel() == "share of wrong guesses"
    assert axes.get_lines()[0].get_ydata()[0] == study.rows[0].expected


def test_a_method_that_does_not_apply_is_not_drawn() -> None:
    study = simulate([0.2, 0.3, 0.5], [1.0], pv.Sum([1, 2, 3]), ["hashing", "best"], runs=0)
    assert [line.label for line in plots.study_lines(study)] == ["best LIP design"]


def test_every_method_has_a_colour_and_a_style() -> None:
    from priorveil.studies.compare import METHODS

    assert set(plots.METHOD_STYLES) == set(METHODS)
    assert all(
        kind in plots.STYLES and colour in plots.COLOURS for kind, colour, _ in plots.METHOD_STYLES.values()
    )
    with pytest.raises(InvalidInput, match="kinds are"):
        plots.lines([plots.Curve("x", "no such kind", "black", [0], [0])])


def test_colours_differ_in_lightness_for_those_who_see_few() -> None:
    """Pairs of inks are apart by colour or by lightness, also with red and green confused (deuteranopia)."""
    shown = [tuple(int(ink[i : i + 2], 16) / 255 for i in (1, 3, 5)) for ink in plots.COLOURS.values()]
    seen = np.array([[0.625 * r + 0.375 * g, 0.7 * r + 0.3 * g, 0.3 * g + 0.7 * b] for r, g, b in shown])
    apart = np.abs(seen[:, None] - seen[None]).max(axis=2)
    assert apart[np.triu_indices(len(seen), 1)].min() > 0.08


def test_a_channel_is_a_map_with_its_numbers() -> None:
    axes = plots.channel_map([[0.75, 0.25], [0.1, 0.9]], title="mine")
    assert [text.get_text() for text in axes.texts] == ["0.75", "0.25", "0.10", "0.90"]
    assert axes.get_title() == "mine"
    large = plots.channel_map(np.eye(20))
    assert len(large.texts) == 0


def test_the_region_is_lip_and_holds_the_optimum() -> None:
    prior, epsilon = pv.Prior([0.2, 0.8]), 0.6
    grid = np.linspace(0.02, 0.98, 25)
    q0, q1 = np.meshgrid(grid, grid)
    lip, ldp = plots.binary_levels(prior, q0, q1)
    inside = lip <= epsilon + 1e-12
    for (i, j), value in np.ndenumerate(inside):
        channel = pv.Channel([[1 - q0[i, j], q0[i, j]], [q1[i, j], 1 - q1[i, j]]])
        assert bool(value) == pv.LIP().holds(channel, prior, epsilon + 1e-12)
        assert lip[i, j] == pytest.approx(pv.LIP().epsilon(channel, prior))
        assert ldp[i, j] == pytest.approx(pv.LDP().epsilon(channel))
        error = pv.Histogram().error(channel, prior)
        variance = plots.estimate_variance(prior, q0[i, j], q1[i, j])
        assert error == pytest.approx(2 * (0.2 * 0.8 - variance), abs=1e-12)
    best = pv.design(prior, epsilon, pv.Histogram()).expected_mse
    assert (2 * (0.16 - plots.estimate_variance(prior, q0, q1)))[inside].min() >= best - 1e-9
    plots.feasible_region(prior, epsilon)
    with pytest.raises(InvalidInput, match="two values"):
        plots.feasible_region([0.2, 0.3, 0.5], 1.0)


def test_files_are_the_same_each_time() -> None:
    def files() -> tuple[bytes, bytes]:
        figure, axes = plots.canvas()
        plots.lines([plots.Curve("x", "best", "black", [0, 1], [1, 0], bound=[0.9, 0])], axes[0, 0])
        plots.legend(figure)
        return plots.svg_and_png(figure)

    first, second = files(), files()
    assert first == second
    assert first[0].lstrip().startswith(b"<?xml") and first[1].startswith(b"\x89PNG")
    width, height = struct.unpack(">II", first[1][16:24])
    assert (width, height) == (525, 345)


def test_no_window_is_opened() -> None:
    plots.canvas()
    import sys

    assert "matplotlib.pyplot" not in sys.modules or matplotlib.get_backend().lower() == "agg"


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"priorveil\[plot\]"):
        plots.canvas()
