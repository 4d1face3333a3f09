"""Pictures of estimates: everybody, or a panel for each group, with intervals and what the prior expects."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from priorveil.cli import screen as screens
from priorveil.errors import plural
from priorveil.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from priorveil.plans import Plan
    from priorveil.plans.estimate import Estimate
    from priorveil.priors import Array, Label
    from priorveil.tables import TableEstimate

_MOST = 24  # panels of a picture
_NAMED = 100  # more values than this, and not each has its name
_NAMED_EACH = 30  # the same where there are several panels
_ACROSS = 4  # panels in a row
_TICKS = 8  # names along an axis that has no room for all
_LONG = 30  # letters of a name
_DOTS = 160  # to the inch


@dataclass(frozen=True)
class _Panel:
    """An estimate under a name, and what the prior expects in its place."""

    title: str
    estimate: Estimate
    expected: Array


def draw(found: TableEstimate, by: str | None, path: Path, level: float) -> None:
    """Draw what `priorveil estimate` found; of more groups than fit, the largest, and the title says so."""
    from priorveil.plans.estimate import SUM
    from priorveil.studies import plots

    panels = list(_panels(found, by))
    with plots.look():
        draw_them = _sums if found.everybody.labels == SUM else _histograms
        figure = draw_them(panels, level)
        width = int(figure.get_figwidth() * 15)
        figure.suptitle("\n".join(_title(found, by, width)), fontsize=9)
        if len(figure.axes[0].get_legend_handles_labels()[1]) > 1:
            plots.legend(figure, figure.axes[0], columns=3)
        save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a picture, whole or not at all; that its font lacks letters of the names is said once."""
    with warnings.catch_warnings(record=True) as caught, atomic_write(path, replace=True) as file:
        warnings.simplefilter("always")
        figure.savefig(file, format=path.suffix.lower().removeprefix("."), dpi=_DOTS)
    if any("missing from font" in str(warning.message) for warning in caught):
        click.echo(
            "the font of the picture lacks some letters of the names: they are shown as boxes", err=True
        )


def short(label: object) -> str:
    """A name that has room beside an axis: its middle is left out if it is long.

    >>> short("a"), short("professional, scientific and technical services")
    ('a', 'professional, sc…ical services')
    """
    word = " ".join(str(label).split())
    word = word if len(word) <= _LONG else f"{word[: _LONG - 14]}…{word[-13:]}"
    return word.replace("$", r"\$")  # no formula


# -- what is drawn -----------------------------------------------------------------------------------------


def _panels(found: TableEstimate, by: str | None) -> Iterator[_Panel]:
    """Everybody, and the largest groups in the order of their names."""
    yield _Panel("everybody", found.everybody, _expected(found, found.tallies.groups))
    largest = sorted(found.groups, key=lambda group: -found.groups[group].reports)[: _MOST - 1]
    for group, estimate in found.groups.items():
        if group in largest:
            name = "(missing)" if group is None else short(group)
            yield _Panel(f"{by} = {name}", estimate, _expected(found, [group]))


def _expected(found: TableEstimate, groups: Sequence[Any]) -> Array:
    """What the prior of each plan expects of those who reported by it."""
    total: Array = np.zeros(len(found.everybody.labels))
    for (cohort, group), tally in found.tallies.by.items():
        if group in groups:
            total += tally.reports * _one_person(found.tallies.plans[cohort], found.everybody.labels)
    return total


def _one_person(plan: Plan, labels: Sequence[Label]) -> Array:
    """What the prior expects of one person, in the order of the labels of an estimate."""
    P = plan.reference.align_to(plan.labels).probabilities
    rows = plan.query.rows(plan.reference)
    if rows is not None:
        return np.asarray(rows @ P + plan.query.offset)
    share = dict(zip(plan.labels, P, strict=True))
    return np.array([share[label] for label in labels])


def _title(found: TableEstimate, by: str | None, width: int) -> Iterator[str]:
    """What this is an estimate of, from how many reports, how and at which level, and what it assumes."""
    plans, whole = list(found.tallies.plans.values()), found.everybody
    query = plans[0].query.kind
    levels = sorted({f"{p.certificate.notion} at {screens.stated(p.budget)}" for p in plans})
    stated = levels[0] if len(levels) == 1 else f"{levels[0]} to {levels[-1]}"
    yield from textwrap.wrap(
        f"{query.capitalize()} by {whole.method} from {plural(whole.reports, 'report')}, {stated}", width
    )
    if len(found.groups) >= _MOST:
        yield f"the {_MOST - 1} largest of {len(found.groups):,} groups by {by}"
    yield from textwrap.wrap(f"intervals assume {whole.assumes}", width)


# -- histograms --------------------------------------------------------------------------------------------


def _histograms(panels: Sequence[_Panel], level: float) -> Figure:
    """Values downwards, each with its name; where they are too many, along the axis."""
    several = len(panels) > 1
    if len(panels[0].estimate.labels) <= (_NAMED_EACH if several else _NAMED):
        return _named(panels, level, several)
    return _bands(panels, level) if several else _long(panels[0], level)


def _named(panels: Sequence[_Panel], level: float, several: bool) -> Figure:
    labels = panels[0].estimate.labels
    pitch = 0.2 if len(labels) <= _NAMED_EACH else 0.15
    size = (2.6 if several else 5.4, 0.75 + pitch * len(labels))
    figure, places = _grid(len(panels), _ACROSS, size, sharey=True, sharex=several)
    for panel, place in zip(panels, places, strict=True):
        _rows(place, panel, level, several)
    figure.set_figwidth(figure.get_figwidth() + _margin([short(label) for label in labels]))
    return figure


def _bands(panels: Sequence[_Panel], level: float) -> Figure:
    figure, places = _grid(len(panels), 2, (4.6, 2.6), sharey=True)
    for panel, place in zip(panels, places, strict=True):
        _band(place, panel, level, True)
        place.tick_params(labelleft=True)
    return figure


def _long(panel: _Panel, level: float) -> Figure:
    """A long histogram, and below it what the reports add to the prior, which a few large values would hide."""
    from priorveil.studies import plots

    figure, (above, below) = _grid(2, 1, (8.0, 2.4), sharex=True)
    _band(above, panel, level, False)
    values, low, high, expected = _numbers(panel, level, False)
    at = np.arange(len(values))
    below.fill_between(
        at, low - expected, high - expected, step="mid", color=plots.INKS["sky"], alpha=0.5, linewidth=0
    )
    below.plot(at, values - expected, ".", color=plots.INKS["blue"], markersize=2)
    below.axhline(0, color="black", linewidth=0.8)
    _some_names(below, panel.estimate.labels)
    below.yaxis.set_major_formatter("{x:+,.4g}")
    below.set_ylabel("people, less the prior's")
    return figure


def _grid(count: int, across: int, size: tuple[float, float], **shared: bool) -> tuple[Figure, list[Axes]]:
    """A figure with so many places, at most `across` in a row, and room for a title and a legend."""
    from priorveil.studies import plots

    across = min(count, across)
    figure, axes = plots.canvas(math.ceil(count / across), across, width=size[0], height=size[1], **shared)
    for spare in axes.flat[count:]:
        spare.remove()
    figure.set_figheight(figure.get_figheight() + 0.8)
    return figure, list(axes.flat[:count])


def _margin(names: Sequence[str]) -> float:
    """Inches that names beside an axis take."""
    return 0.06 * max(map(len, names))


def _numbers(panel: _Panel, level: float, shares: bool) -> tuple[Array, Array, Array, Array]:
    """Estimate, both ends of its intervals, and what the prior expects; in people, or in shares of the panel."""
    low, high = panel.estimate.interval(level)
    unit = 100 / max(panel.estimate.reports, 1) if shares else 1.0
    low, high = (np.where(np.isfinite(end), end * unit, np.nan) for end in (low, high))
    return panel.estimate.values * unit, low, high, panel.expected * unit


def _rows(axes: Axes, panel: _Panel, level: float, several: bool) -> None:
    """A line for each value: the prior as a bar, the estimate as a dot with its interval."""
    values, low, high, expected = _numbers(panel, level, several)
    at = np.arange(len(values))
    axes.barh(at, expected, 0.8, color=_ink("grey"), alpha=0.3, label="what the prior expects")
    _dots(axes, values, low, high, at, level)
    axes.set_yticks(at, [short(label) for label in panel.estimate.labels])
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.grid(False, axis="y")
    _measured(axes, axes.xaxis, panel, several)
    if several:
        axes.tick_params(labelbottom=True)


def _band(axes: Axes, panel: _Panel, level: float, several: bool) -> None:
    """The values along the axis in the plan's order: intervals as a band, the prior as a line."""
    values, low, high, expected = _numbers(panel, level, several)
    at = np.arange(len(values))
    axes.fill_between(
        at,
        low,
        high,
        step="mid",
        color=_ink("sky"),
        alpha=0.5,
        linewidth=0,
        label=f"{_percent(level)} interval",
    )
    axes.plot(at, values, ".", color=_ink("blue"), markersize=2, label="estimate")
    axes.step(
        at,
        expected,
        where="mid",
        color=_ink("black"),
        linewidth=0.8,
        label="what the prior expects",
        zorder=3,
    )
    _some_names(axes, panel.estimate.labels)
    axes.set_xlim(-1, len(values))
    _measured(axes, axes.yaxis, panel, several)


def _some_names(axes: Axes, labels: Sequence[object]) -> None:
    """A few names along an axis that has no room for all."""
    ticks = np.unique(np.linspace(0, len(labels) - 1, _TICKS).round().astype(int))
    names = [short(labels[i]) for i in ticks]
    slanted = max(map(len, names)) > 8
    axes.set_xticks(ticks, names, rotation=20 if slanted else 0, ha="right" if slanted else "center")


def _measured(axes: Axes, along: Any, panel: _Panel, several: bool) -> None:
    """What the numbers are, and zero where estimates go below it."""
    along.set_major_formatter("{x:,.0f}" if not several else "{x:g} %")
    reports = plural(panel.estimate.reports, "report")
    if several:
        axes.set_title(f"{panel.title}: {reports}")
    else:
        along.set_label_text("people")
    line = axes.axvline if along is axes.xaxis else axes.axhline
    line(0, color="black", linewidth=0.6, zorder=1)


# -- sums --------------------------------------------------------------------------------------------------


def _sums(panels: Sequence[_Panel], level: float) -> Figure:
    """One sum; or a line for each group, per person so that groups of any size compare."""
    from priorveil.studies import plots

    several = len(panels) > 1
    units = [1 / max(p.estimate.reports, 1) if several else 1.0 for p in panels]
    values, expected = (
        np.array([float(numbers[0]) * unit for numbers, unit in zip(column, units, strict=True)])
        for column in ([p.estimate.values for p in panels], [p.expected for p in panels])
    )
    errors = np.array([float(p.estimate.std_error[0]) for p in panels])
    ends = [p.estimate.interval(level) for p in panels]
    low, high = (np.array([float(e[i][0]) * u for e, u in zip(ends, units, strict=True)]) for i in (0, 1))
    low[~np.isfinite(errors)] = high[~np.isfinite(errors)] = np.nan
    names = [f"{p.title} ({plural(p.estimate.reports, 'report')})" for p in panels]
    figure: Figure
    figure, axes = plots.canvas(width=5.4, height=1.3 + 0.22 * len(panels))
    place, at = axes[0, 0], np.arange(len(panels))
    place.plot(
        expected,
        at,
        "|",
        color=_ink("grey"),
        markersize=10,
        markeredgewidth=2,
        label="what the prior expects",
    )
    _dots(place, values, low, high, at, level)
    place.set_yticks(at, names if several else [""])
    place.set_ylim(len(panels) - 0.4, -0.6)
    place.grid(False, axis="y")
    place.set_xlabel("mean per person" if several else "sum")
    if not several:
        place.xaxis.set_major_formatter("{x:,.6g}")
    figure.set_figwidth(figure.get_figwidth() + (_margin(names) if several else 0))
    return figure


def _dots(axes: Axes, values: Array, low: Array, high: Array, at: Any, level: float) -> None:
    axes.errorbar(
        values, at, xerr=np.vstack([values - low, high - values]), fmt="o", color=_ink("blue"), markersize=3,
        elinewidth=1.2, capsize=2, label=f"estimate, {_percent(level)} interval",
    )  # fmt: skip


def _percent(level: float) -> str:
    return f"{100 * level:.4g} %"


def _ink(name: str) -> str:
    from priorveil.studies import plots

    return plots.INKS[name]
