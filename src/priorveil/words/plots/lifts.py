"""Channels as maps: how each report moves the belief in each value, or the probability of each report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.catalogue import say
from priorveil.words.notes import reports_text
from priorveil.words.plots import curves
from priorveil.words.plots.curves import Axes, Figure
from priorveil.words.plots.house_style import house_style
from priorveil.words.plots.names import short_name, ticks

MOST_ROWS = 40  # names of values in a map
_FEWEST_ROWS = 7  # a map has room for so many rows at least: its colour bar has a long label
_MOST_REPORTS = 20  # reports that have their names below a map
_COMPARED = 4  # values that decide the order of reports


def report_order(lift: Array, P: Array) -> npt.NDArray[np.intp]:
    """The reports in the order of the value whose probability each raises most.

    Reports for the same value are in the order of the next one that they raise, and so on.

    >>> report_order(np.array([[1.5, 0.5, 0.5], [0.5, 2.0, 0.5], [0.9, 0.9, 1.5]]), np.full(3, 1 / 3)).tolist()
    [0, 1, 2]
    """
    gains = np.round(P[:, None] * (lift - 1), 9)  # differences from rounding are ties
    ranks = np.argsort(-gains, axis=0, kind="stable")[:_COMPARED]
    return np.lexsort(ranks[::-1])


def draw_lifts(
    axes: Axes, lift: Array, P: Array, values: Sequence[str], reports: Sequence[str], top: float
) -> None:
    """The logarithm of the lift of each value at each report; colours end at `top`, and its negative."""
    order = report_order(lift, P)
    lift = lift[:, order]
    with np.errstate(divide="ignore"):
        logs = np.log(lift)
    texts = np.char.mod("\N{MULTIPLICATION SIGN}%.2f", lift if lift.size <= curves.MOST_TEXTS else lift[:0])
    image = curves.heat_map(axes, np.clip(logs, -top, top), texts, top, "RdBu_r", -top)
    _name_axes(axes, values, [reports[y] for y in order], by_value=True)
    axes.set_title(say("liftMap"))
    beyond = "both" if np.abs(logs).max() > top * (1 + 1e-9) else "neither"
    axes.figure.colorbar(image, ax=axes, extend=beyond, label=say("liftScale"))


@house_style()
def lift_map(lift: Array, P: Array, values: Sequence[str], reports: Sequence[str]) -> Figure:
    """A map of the lifts alone; reports that rule a value out have the darkest colour."""
    figure, axes = _map_canvas(lift)
    with np.errstate(divide="ignore"):
        logs = np.abs(np.log(lift))
    top = float(logs.max(initial=0.0, where=np.isfinite(logs))) or 1.0
    draw_lifts(axes, lift, P, values, reports, top)
    return figure


@house_style()
def probability_map(matrix: Array, values: Sequence[str], reports: Sequence[str]) -> Figure:
    """A map of the probability of each report, given each value."""
    figure, axes = _map_canvas(matrix)
    texts = np.char.mod("%.3g", matrix if matrix.size <= curves.MOST_TEXTS else matrix[:0])
    image = curves.heat_map(axes, matrix, texts, float(matrix.max()))
    _name_axes(axes, values, reports)
    axes.set_title(say("probabilityMap"))
    figure.colorbar(image, ax=axes)
    return figure


def _map_canvas(matrix: Array) -> tuple[Figure, Axes]:
    rows, columns = matrix.shape
    width = 3.2 + 0.32 * min(columns, _MOST_REPORTS)
    height = 1.3 + 0.2 * min(max(rows, _FEWEST_ROWS), MOST_ROWS)
    figure, axes = curves.canvas(width=width, height=height)
    return figure, axes[0, 0]


def _name_axes(axes: Axes, values: Sequence[str], reports: Sequence[str], by_value: bool = False) -> None:
    few = len(reports) <= _MOST_REPORTS
    axes.set_xticks(range(len(reports)) if few else [], list(map(short_name, reports)) if few else [])
    axes.set_xlabel(_reports_title(None if few else len(reports), by_value))
    axes.set_yticks(*ticks(values, MOST_ROWS))
    if few and sum(map(len, reports)) > 3 * _MOST_REPORTS:
        axes.tick_params(axis="x", labelrotation=90)


def _reports_title(count: int | None, by_value: bool) -> str:
    """The title of the axis of reports; it says how many they are if they have no names."""
    if by_value:
        key = "reportsByValue" if count is None else "countOfReportsByValue"
        return say(key, count=f"{count or 0:,}")
    return say("reportsAxis") if count is None else reports_text(count)
