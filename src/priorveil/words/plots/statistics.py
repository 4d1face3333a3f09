"""Pictures of statistics with their intervals: rows, a curve with a band, or a map of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.catalogue import say
from priorveil.words.notes import reports_text
from priorveil.words.plots import curves
from priorveil.words.plots.curves import COLOURS, Axes, Figure
from priorveil.words.plots.house_style import house_style
from priorveil.words.plots.names import ticks

_MOST_NAMES = 100  # values that have their names in a histogram
_MOST_NAMES_EACH = 30  # the same where there are several panels
_MOST_ACROSS = 4  # panels in a row
_MOST_TICKS = 12  # names below a curve
_MOST_SLANTED = 15  # names below a map; more are upright
_LONGEST_LINE = 50  # letters of all names below a map
_MOST_ROWS = 40  # rows of a map whose cells hold their intervals
_MOST_COLUMNS = 4  # columns of such a map
_PRIOR, _WEIGHTED = say("whatPriorExpects"), say("weightedSum")
_AXES = {"people": "{x:,.0f}", "percent": "{x:g} %"}  # the numbers on an axis of counts or shares

NameParts = tuple[str, ...]  # of a value or a statistic: the level of each attribute, or a single text


@dataclass(frozen=True)
class Layout:
    """What decides how statistics are drawn: what they count, and what the values are.

    `attributes` are the names of the attributes of a value, and `values` the names of the values. `rows` has the
    weights of each statistic, or is None for the counts of all values. `edges` are those of cells of numbers, `is_grid`
    says whether the values are points of a grid, and `averages` is the title of averages by group, if these are drawn.
    """

    attributes: tuple[str, ...]
    values: Sequence[NameParts]
    rows: Array | None
    counts_people: bool
    edges: Array | None = None
    is_grid: bool = False
    averages: str | None = None

    @property
    def is_sum(self) -> bool:
        """Whether the only statistic is a sum."""
        return self.averages is None and self.rows is not None and len(self.rows) == 1


@dataclass(frozen=True)
class Panel:
    """Statistics under a title, in a `unit`: rows of values, both ends of intervals, and what the prior expects.

    `people` is how many people they are about, or the sum of their weights.
    Quantiles are points on a cumulative curve: their share in percent, the number, and the ends of its interval.
    """

    title: str
    names: Sequence[NameParts]
    numbers: Array
    people: float
    unit: str = "people"
    quantiles: tuple[tuple[float, ...], ...] = ()

    def per_person(self, unit: str) -> Panel:
        """The same for one person, or in percent."""
        scale = (100 if unit == "percent" else 1) / (self.people if self.people > 0 else 1)
        return replace(self, numbers=scale * self.numbers, unit=unit)


def statistics_figure(panels: Sequence[Panel], layout: Layout, words: str) -> Figure:
    """Statistics, a panel for each group; `words` are the legend of numbers and intervals.

    Sums of groups are the rows of one panel, per person, so that groups of any size compare.
    """
    draw = draw_function(layout)
    panels = in_units(panels, layout, len(panels) > 1 or draw is not draw_rows)
    wide = len(panels) == 1 or draw is draw_map
    count, across = len(panels), min(len(panels), _MOST_ACROSS // 2 if wide else _MOST_ACROSS)
    down = math.ceil(count / across)
    figure, axes = curves.canvas(down, across, sharex=True, sharey=True)
    for spare in axes.flat[count:]:
        spare.remove()
    for place, panel in zip(axes.flat, panels, strict=False):
        draw(place, panel, layout, words)
        place.set_title(_panel_title(panel) if count > 1 else "")
        place.tick_params(labelbottom=True)
    for place in axes[:, 1:].flat:
        place.set_ylabel("")
    names = [tick.get_text() for tick in axes[0, 0].get_yticklabels()]
    lines = 10 if draw is draw_curve else len(names)
    below = axes[0, 0].get_xticklabels()
    depth = max(len(tick.get_text()) * math.sin(math.radians(tick.get_rotation())) for tick in below)
    each, width = 0.2 if lines <= _MOST_NAMES_EACH else 0.15, 5.4 if wide else 2.6
    height = 0.75 + each * lines + 0.08 * depth
    figure.set_size_inches(width * across + 0.06 * max(map(len, names)), height * down + 0.8)
    return figure


def _panel_title(panel: Panel) -> str:
    return say("panelTitle", title=panel.title, reports=reports_text(int(panel.people)))


def draw_function(layout: Layout) -> Callable[[Axes, Panel, Layout, str], None]:
    """How statistics are drawn: a map for a table, a curve for cumulative counts, else rows.

    A table of more than two attributes is a map only if it is small.
    """
    rows = layout.rows
    if rows is None:
        attributes, small = len(layout.attributes), len(layout.values) <= curves.MOST_TEXTS
        return draw_map if attributes == 2 or (attributes > 2 and small) else draw_rows
    return draw_curve if len(rows) > 1 and np.array_equal(rows, np.tri(*rows.shape)) else draw_rows


def in_units(panels: Sequence[Panel], layout: Layout, per_person: bool) -> Sequence[Panel]:
    """The panels in the unit of their statistics: people or percent of them, or else sums or means."""
    if layout.is_sum:
        return [_sums_panel(panels, layout)]
    if layout.averages is not None:
        return [replace(panel, unit=layout.averages) for panel in panels]
    if per_person:
        unit = "percent" if layout.counts_people else say("weightedSumPerPerson")
        return [panel.per_person(unit) for panel in panels]
    return panels if layout.counts_people else [replace(panel, unit=_WEIGHTED) for panel in panels]


def _sums_panel(panels: Sequence[Panel], layout: Layout) -> Panel:
    """A sum, or the mean of a number; or a row for the mean of each group."""
    several = len(panels) > 1
    is_mean = several or layout.is_grid
    unit = say("meanPerPerson" if is_mean else "sumOfNumbers")
    if is_mean:
        panels = [panel.per_person(unit) for panel in panels]
    axis, names = unit, [(say("mean"),)] if is_mean else panels[0].names
    if several:
        axis = say("reportsInBrackets", unit=unit)
        names = [(f"{panel.title.split(' = ')[-1]} ({panel.people:,})",) for panel in panels]
    return Panel("", names, np.hstack([panel.numbers for panel in panels]), panels[0].people, axis)


def draw_rows(axes: Axes, panel: Panel, layout: Layout, words: str) -> None:
    """A row for each statistic, from the top: a dot with its interval, and what the prior expects.

    Margins of several attributes are apart from each other.
    """
    at, shares = np.arange(len(panel.names)), panel.unit in _AXES
    values, low, high, expected = panel.numbers
    if shares:  # other numbers may lie far from zero
        _bars(axes, expected, layout, _PRIOR)
        axes.axvline(0, color="black", linewidth=0.6, zorder=1)  # estimates may be below zero
    else:
        axes.plot(expected, at, "|", label=_PRIOR, color=COLOURS["grey"], markersize=10, markeredgewidth=2)
    _dots(axes, values, at, words, low, high)
    axes.set_ylim(len(at) - 0.4, -0.6)
    axes.grid(False, axis="y")
    axes.set_yticks(*_ticks(panel.names, _MOST_NAMES_EACH if panel.unit == "percent" else _MOST_NAMES))
    axes.set_xlabel("" if panel.unit == "percent" else panel.unit)
    axes.xaxis.set_major_formatter(_AXES.get(panel.unit, "{x:,.6g}"))
    rows = layout.rows
    if shares and rows is not None:  # a margin ends where every value has been counted equally often
        ends = np.flatnonzero(np.ptp(np.cumsum(rows, axis=0), axis=1) == 0)
        for row in ends[:-1]:
            axes.axhline(row + 0.5, color="black", linewidth=0.6)


def _dots(axes: Axes, x: Array, y: npt.ArrayLike, words: str, low: Array, high: Array) -> None:
    axes.errorbar(
        x, y, xerr=[x - low, high - x], fmt="o", color=COLOURS["blue"], ecolor=COLOURS["sky"], markersize=3,
        elinewidth=1.2, capsize=2, label=words,
    )  # fmt: skip


def draw_curve(axes: Axes, panel: Panel, layout: Layout, words: str) -> None:
    """Cumulative shares as a curve with a band, the prior's as a thin line, and quartiles as points with intervals."""
    edges, count = layout.edges, len(panel.names)
    x = np.arange(-1, count) if edges is None else edges[: count + 1]
    values, low, high, expected = np.insert(panel.numbers, 0, 0.0, axis=1)
    style = "default" if edges is not None else "steps-post"  # nothing lies between words
    axes.fill_between(
        x, low, high, step=None if edges is not None else "post", color=COLOURS["sky"], alpha=0.4, linewidth=0
    )
    axes.plot(x, expected, color=COLOURS["grey"], linewidth=0.9, drawstyle=style, label=_PRIOR)
    axes.plot(x, values, color=COLOURS["blue"], drawstyle=style, label=words)
    if panel.quantiles:
        shares, numbers, least, most = np.array(panel.quantiles).T
        _dots(axes, numbers, shares, say("quartiles"), least, most)
    axes.set(xlabel=say("valueAxis"), ylabel=say("peopleUpTo"), ylim=(0, None))
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.xaxis.set_major_formatter("{x:,.6g}")
    axes.locator_params(axis="x", nbins=5)
    if edges is None:
        axes.set_xticks(*_ticks(layout.values[:count], _MOST_TICKS), rotation=30, ha="right")


def draw_map(axes: Axes, panel: Panel, layout: Layout, words: str) -> None:
    """A cell for each combination of levels: the share of people, with its interval. The last attribute is across.

    Without room for intervals there is a colour bar, and the caption says how far a typical one reaches to its longer
    side. A cross then marks each cell whose interval includes what the prior expects: most of them, where the
    differences are noise. Cells that the plan leaves out are hatched.
    """
    table = _TableCells.of(panel.names)
    values, low, high, expected = panel.numbers
    shares = table.fill(values, np.nan)
    texts = table.fill([f"{share:.1f} ({a:.1f} to {b:.1f})" for share, a, b in panel.numbers[:3].T], "")
    caption = say("mapCaption", attribute=layout.attributes[-1], legend=words)
    roomy = len(table.across) <= _MOST_COLUMNS and len(table.down) <= _MOST_ROWS
    image = curves.heat_map(axes, shares, texts if roomy else texts[:0], float(np.nanmax(shares)))
    if not roomy:
        beyond = "min" if values.min() < 0 else "neither"
        axes.figure.colorbar(image, ax=axes, extend=beyond, format="{x:g} %")
        width = np.nanmedian(np.maximum(values - low, high - values))
        caption = say("mapAbout", caption=caption, width=f"{width:.2g}")
        if not np.array_equal(values, expected):
            y, x = np.array(table.cells)[:, (low <= expected) & (expected <= high)]
            axes.plot(x, y, "x", color="grey", markersize=3)
            caption = say("mapCrosses", caption=caption)
    if np.isnan(shares).any():
        axes.patch.set(hatch="/////", edgecolor="silver")
        caption = say("mapHatched", caption=caption)
    _name_table(axes, table, layout)
    axes.set_xlabel(caption)


@dataclass(frozen=True)
class _TableCells:
    """A cell for each name: its last level is across, the others are down; `cells` are their places."""

    down: list[NameParts]
    across: list[NameParts]
    cells: tuple[list[int], list[int]]

    @classmethod
    def of(cls, names: Sequence[NameParts]) -> _TableCells:
        down = list(dict.fromkeys(name[:-1] for name in names))
        across = list(dict.fromkeys(name[-1:] for name in names))
        return cls(down, across, ([down.index(n[:-1]) for n in names], [across.index(n[-1:]) for n in names]))

    def fill(self, entries: npt.ArrayLike, empty: object) -> npt.NDArray[Any]:
        """The entries in their cells; `empty` is in cells without a name."""
        table = np.full(
            (len(self.down), len(self.across)), empty, dtype=object if isinstance(empty, str) else None
        )
        table[self.cells] = entries
        return table


def _name_table(axes: Axes, table: _TableCells, layout: Layout) -> None:
    axes.set_yticks(*_ticks(table.down, _MOST_NAMES))
    places, names = _ticks(table.across, _MOST_NAMES_EACH)
    angle = 90 if len(names) > _MOST_SLANTED else 30 if sum(map(len, names)) > _LONGEST_LINE else 0
    axes.set_xticks(places, names, rotation=angle, ha="right" if angle == 30 else "center")
    axes.set_ylabel(", ".join(layout.attributes[:-1]))


# -- shares without intervals ------------------------------------------------------------------------------


@house_style()
def shares_figure(shares: Array, layout: Layout) -> Figure:
    """The share of each value in percent: a bar, or a cell of a map for several attributes."""
    percents = 100 * shares
    figure, ((axes,),) = curves.canvas()
    if draw_function(layout) is draw_map:
        table = _TableCells.of(layout.values)
        texts = table.fill([f"{share:.1f}" for share in percents], "")
        image = curves.heat_map(
            axes, table.fill(percents, np.nan), texts if texts.size <= curves.MOST_TEXTS else texts[:0],
            float(percents.max()),
        )  # fmt: skip
        if texts.size > curves.MOST_TEXTS:
            figure.colorbar(image, ax=axes, format="{x:g} %")
        _name_table(axes, table, layout)
        axes.set_xlabel(say("mapOfShares", attribute=layout.attributes[-1]))
    else:
        _bars(axes, percents, layout, say("priorBars"))
        axes.set_ylim(len(shares) - 0.4, -0.6)
        axes.grid(False, axis="y")
        axes.set_yticks(*_ticks(layout.values, _MOST_NAMES))
        axes.set_xlabel(say("percentOfPeople"))
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    each = 0.2 if len(names) <= _MOST_NAMES_EACH else 0.15
    figure.set_size_inches(5.4 + 0.06 * max(map(len, names)), 1.0 + each * len(names))
    return figure


def _bars(axes: Axes, shares: Array, layout: Layout, words: str) -> None:
    """Bars from zero, a row for each share, from the top."""
    bars = axes.stairs(shares, np.arange(len(shares) + 1) - 0.5, orientation="horizontal", fill=True)
    bars.set(color=COLOURS["grey"], alpha=0.3, label=words, zorder=3)
    axes.set_ylabel(", ".join(layout.attributes))


def _ticks(names: Sequence[NameParts], most: int) -> tuple[range, list[str]]:
    return ticks([", ".join(name) for name in names], most)
