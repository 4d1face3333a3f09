"""The parts that plots are made of: curves on axes, shaded levels, legends, and the style of all figures.

The line style shows the kind of a curve (published: dashed; certified: solid; best: thick, with its proven
lower bound shaded; LDP: dotted), the colour shows the method. The colours are those of Okabe and Ito, which
colour-blind people can tell apart. Needs matplotlib: `pip install 'priorveil[plot]'`. No window is opened.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.catalogue import say
from priorveil.words.plots.house_style import house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.image import AxesImage
else:  # matplotlib is loaded when something is drawn
    Axes = Figure = AxesImage = object

ResultRecords = Sequence[Mapping[str, Any]]  # the rows of a table of results, by the names of its columns
Style = Sequence[str]  # kind (a key of `STYLES`), colour (a key of `COLOURS`), label

COLUMN = 3.5  # inches: the width of a column of print
ROOT_ERROR, WRONG_SHARE = say("rootErrorPerPerson"), say("shareOfWrongGuesses")
BUDGET, LEVEL = say("privacyBudget"), say("realLevel")
_FILE = tomllib.loads(Path(__file__).with_name("styles.toml").read_text(encoding="utf-8"))
_MANY_DECADES = 3_000.0  # the ratio of both ends of an axis from which only powers of ten have room
MOST_TEXTS = 64  # cells of a map that hold their texts
COLOURS: dict[str, str] = _FILE["colours"]
STYLES: dict[str, dict[str, Any]] = _FILE["lines"]
# The styles of the methods of `priorveil.studies.compare`, and those of figures that have their own.
METHOD_STYLES: dict[str, Style] = _FILE["methods"]
FIGURE_STYLES: dict[str, dict[str, Style]] = _FILE["figures"]


def canvas(
    rows: int = 1, columns: int = 1, width: float = COLUMN, height: float = 2.3, **options: Any
) -> tuple[Figure, npt.NDArray[Any]]:
    """A figure without a window, and its axes in an array of `rows` by `columns`.

    `width` and `height` are in inches, for each panel.
    """
    with house_style():
        from priorveil.words.plots.picture import Picture

        figure = Picture(figsize=(width * columns, height * rows), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False, **options)


# -- curves ------------------------------------------------------------------------------------------------


def column(rows: ResultRecords, key: str, **where: object) -> Array:
    """The numbers of one column, from the rows whose other columns have the given values.

    >>> column([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], "a", b="y").tolist()
    [2.0]
    """
    matches = [row for row in rows if all(row.get(name) == value for name, value in where.items())]
    return np.array([row.get(key, np.nan) for row in matches], dtype=np.float64)


def below(lower: npt.ArrayLike, upper: npt.ArrayLike, slack: float = 1e-9) -> bool:
    """Whether one curve lies nowhere above another, up to rounding."""
    return bool((np.asarray(lower) <= np.asarray(upper) + slack).all())


def line(axes: Axes, style: Style, x: Array, y: Array, bound: Array | None = None, marker: str = "") -> None:
    """Draw a curve in its style. A proven lower bound is shaded, up to the curve and below."""
    kind, colour, label = style
    ink = COLOURS[colour]
    axes.plot(x, y, color=ink, label=label, **{"marker": marker or None, "markersize": 3.5, **STYLES[kind]})
    if bound is not None:
        axes.fill_between(x, bound, y, color=ink, alpha=0.25, linewidth=0)
        axes.fill_between(x, 0, bound, color=ink, alpha=0.06, linewidth=0)


def method_lines(
    axes: Axes,
    rows: ResultRecords,
    styles: Mapping[str, Style],
    y: str,
    x: str = "epsilon",
    root: bool = False,
) -> None:
    """Draw column `y` against column `x` for every method that has numbers in it.

    With `root` they are the square roots of errors. An error of a best design has its bound (column `bound`), one that
    is simulated has dots with intervals (columns `measured`, `low` and `high`).
    """
    for method, style in styles.items():
        across = column(rows, x, method=method)
        columns = [column(rows, key, method=method) for key in (y, "bound", "measured", "low", "high")]
        if root:
            columns = [np.sqrt(np.maximum(errors, 0)) for errors in columns]
        errors, bound, dots, low, high = columns
        if np.isnan(errors).all():
            continue
        is_level = y.endswith("lip")
        has_bound = style[0] == "best" and not is_level and not np.isnan(bound).any()
        line(axes, style, across, errors, bound if has_bound else None)
        if not is_level and not np.isnan(dots).all():
            ink = COLOURS[style[1]]
            axes.errorbar(
                across, dots, (dots - low, high - dots), fmt="o", color=ink, markersize=3, elinewidth=0.8, zorder=5,
                markerfacecolor="white" if style[0] == "published" else ink,
            )  # fmt: skip


def level_lines(axes: Axes, rows: ResultRecords, styles: Mapping[str, Style], y: str = "lip") -> None:
    """Draw real LIP levels against the budget, with the part of the plane above the budget shaded."""
    method_lines(axes, rows, styles, y)
    budgets = np.unique(column(rows, "epsilon"))
    shade_violations(axes, budgets, budgets)
    axes.set(xlabel=BUDGET, ylabel=LEVEL)


def shade_violations(axes: Axes, x: npt.ArrayLike, budget: npt.ArrayLike) -> None:
    """Shade the part above the budget; the axes end a little above everything drawn."""
    top = max(axes.get_ylim()[1] * 1.06, float(np.max(budget)) * 1.12)
    # The shade goes on beyond the axes, whose ends a figure may move.
    axes.fill_between(x, budget, 10 * top, color=COLOURS["red"], alpha=0.10, linewidth=0)
    axes.plot(x, budget, color=COLOURS["grey"], linewidth=0.8, zorder=1)
    axes.set_ylim(0, top)
    text = axes.text(0.02, 0.97, say("breaksBudget"), fontsize=7, color=COLOURS["red"], va="top")
    text.set_transform(axes.transAxes)


def log_scale(axes: Axes, name: Literal["x", "y"] = "y") -> None:
    """Make the vertical axis logarithmic, or the horizontal one, with plain numbers on it."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set(**{f"{name}scale": "log"})
    axis = axes.yaxis if name == "y" else axes.xaxis
    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < _MANY_DECADES * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def heat_map(
    axes: Axes, shades: Array, texts: npt.NDArray[Any], most: float, cmap: str = "Blues", least: float = 0.0
) -> AxesImage:
    """A map of numbers from `least` to `most`, with these texts in its cells: an empty array for none."""
    image = axes.imshow(shades, cmap=cmap, vmin=least, vmax=most, aspect="auto", interpolation="nearest")
    axes.grid(False)
    for (x, y), text in np.ndenumerate(texts):
        colour = "white" if abs(shades[x, y]) > 0.6 * most else "black"
        axes.text(y, x, text, ha="center", va="center", fontsize=7, color=colour)
    return image


def legend(figure: Figure, *panels: Axes, columns: int = 2) -> None:
    """One legend for several panels, below them all, each label once."""
    handles: dict[str, Any] = {}
    for axes in panels or tuple(figure.axes):
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    spaces = {"handlelength": 2.6, "columnspacing": 1.2}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, **spaces)
