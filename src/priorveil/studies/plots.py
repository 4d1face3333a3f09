"""Finished plots of a plan, a study or the estimates from a table, and how they are saved.

`curves` has the parts that they are made of.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import TooLarge, plural
from priorveil.files import atomic_write
from priorveil.mechanisms.estimators import apply_rows
from priorveil.plans import Plan
from priorveil.plans.estimate import Estimate
from priorveil.priors import Array, Label, Prior
from priorveil.priors.labels import label_text
from priorveil.studies import curves
from priorveil.studies.curves import COLOURS

if TYPE_CHECKING:
    from priorveil.studies.curves import Axes, Figure
    from priorveil.studies.simulate import Study
    from priorveil.tables import TableEstimate

_MOST_PANELS = 24
_MOST_NAMES = 100  # values that have their names in a histogram
_MOST_NAMES_EACH = 30  # the same where there are several panels
_MOST_ACROSS = 4  # panels in a row
_LONGEST_NAME = 30  # letters
_MOST_ROWS = 40  # names of values in a map
_MOST_REPORTS = 20  # reports that have their numbers below a map
_MOST_NUMBERS = 64  # cells of a map that hold their numbers
_COMPARED = 4  # values that decide the order of reports
_DOTS = 150  # to the inch
# Without dates, the same plot is the same file.
_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": "priorveil"},
    ".svg": {"Creator": "priorveil", "Date": None},
    ".pdf": {"Creator": "priorveil", "CreationDate": None},
}
_PRIOR = "what the prior expects"


def save(figure: Figure, path: Path, replace: bool = True) -> bool:
    """Write a plot as PNG, SVG or PDF, all of it or nothing. Returns whether its font has all the letters."""
    suffix = path.suffix.lower()
    with (
        curves.house_style(),
        warnings.catch_warnings(record=True) as caught,
        atomic_write(path, replace) as file,
    ):
        warnings.simplefilter("always")
        figure.savefig(file, format=suffix[1:], dpi=_DOTS, metadata=_METADATA[suffix])
    return not any("missing from font" in str(warning.message) for warning in caught)


def short_name(label: Label) -> str:
    """A name that has room next to an axis: the middle of a long one is left out.

    >>> short_name("a"), short_name("professional, scientific and technical services")
    ('a', 'professional, sc…ical services')
    """
    word = " ".join(label_text(label).split())
    word = word if len(word) <= _LONGEST_NAME else f"{word[: _LONGEST_NAME - 14]}…{word[-13:]}"
    return word.replace("$", r"\$")  # matplotlib would read a formula


# -- plans -------------------------------------------------------------------------------------------------


@curves.house_style()
def plan_plot(plan: Plan, curve: curves.Rows) -> Figure:
    """The channel of a plan, where it can be written out, and its error against epsilon (from `error_curve`)."""
    try:
        lift = plan.channel.drop_unused().lift(plan.reference)
    except TooLarge:
        lift = None
    step = math.ceil(len(plan.labels) / _MOST_ROWS)
    height = 3.4 if lift is None else max(3.4, 0.8 + 0.115 * math.ceil(len(plan.labels) / step))
    figure, axes = curves.canvas(1, 1 if lift is None else 2, width=4.6, height=height)
    if lift is not None:
        _belief_map(axes[0, 0], plan, lift)
        names = [short_name(label) for label in plan.labels[::step]]
        axes[0, 0].set_yticks(range(0, len(plan.labels), step), names)
    _error_panel(axes[0, -1], curve, plan.no_report, min(plan.budget.lower, plan.budget.upper))
    axes[0, -1].set_ylabel(plan.query.error_unit)
    return figure


def report_order(lift: Array, P: Array) -> npt.NDArray[np.intp]:
    """The reports in the order of the value whose probability each raises most.

    Reports for the same value are in the order of the next one that they raise, and so on.

    >>> report_order(np.array([[1.5, 0.5, 0.5], [0.5, 2.0, 0.5], [0.9, 0.9, 1.5]]), np.full(3, 1 / 3)).tolist()
    [0, 1, 2]
    """
    gains = np.round(P[:, None] * (lift - 1), 9)  # differences from rounding are ties
    ranks = np.argsort(-gains, axis=0, kind="stable")[:_COMPARED]
    return np.lexsort(ranks[::-1])


def _belief_map(axes: Axes, plan: Plan, lift: Array) -> None:
    """The logarithm of the lift of each value at each report."""
    order = report_order(lift, plan.reference.probabilities)
    lift = lift[:, order]
    with np.errstate(divide="ignore"):
        logs = np.log(lift)
    allowed = max(side for side in (plan.budget.lower, plan.budget.upper) if math.isfinite(side))
    largest = float(np.abs(logs).max())  # above the budget if a side is free or the secret is latent
    top = min(max(largest, allowed), 3 * allowed)
    shown = np.clip(logs, -top, top)
    image = axes.imshow(shown, cmap="RdBu_r", vmin=-top, vmax=top, aspect="auto", interpolation="nearest")
    axes.grid(False)
    few = len(order) <= _MOST_REPORTS
    axes.set_xticks(range(len(order)) if few else [], [str(y) for y in order] if few else [])
    axes.set_xlabel(f"{'' if few else f'{len(order):,} '}reports, by the value that they raise most")
    for (x, y), factor in np.ndenumerate(lift if lift.size <= _MOST_NUMBERS else np.empty((0, 0))):
        colour = "white" if abs(shown[x, y]) > 0.6 * top else "black"
        text = f"\N{MULTIPLICATION SIGN}{factor:.2f}"
        axes.text(y, x, text, ha="center", va="center", fontsize=7, color=colour)
    axes.set_title("belief in a value after a report (log lift)")
    beyond = "both" if largest > top * (1 + 1e-9) else "neither"
    axes.figure.colorbar(image, ax=axes, extend=beyond, label="less likely  ←  0  →  more likely")


def _error_panel(axes: Axes, curve: curves.Rows, none: float, here: float) -> None:
    """Error against epsilon: the best design with its bound, LDP, and no report."""
    ldp = [row for row in curve if not math.isnan(row["ldp"])]
    epsilons, errors, bounds = (curves.column(curve, key) for key in ("epsilon", "mse", "bound"))
    curves.line(axes, ("best", "blue", "best design, its bound shaded"), epsilons, errors, bounds, "o")
    if ldp:
        across, above = (curves.column(ldp, key) for key in ("epsilon", "ldp"))
        curves.line(axes, ("ldp", "red", "LDP at the same epsilon"), across, above, marker="s")
    least, most = float(bounds.min()), float(errors.max())
    if math.isinf(none):
        curves.log_scale(axes)
        axes.set_ylim(least / 1.3, 1.3 * max([most, *(row["ldp"] for row in ldp)]))
    else:
        curves.line(axes, ("baseline", "grey", "no report"), epsilons, np.full(len(curve), none))
        low = 0.0 if least < 0.6 * none else least - 0.1 * (none - least)
        axes.set_ylim(low, none + 0.05 * (none - low))
    axes.axvline(here, color="black", linewidth=0.8, alpha=0.5)
    axes.set_xlabel("epsilon (the line: this plan)")
    axes.set_title("error against epsilon")
    axes.legend(frameon=False)


# -- studies -----------------------------------------------------------------------------------------------


@curves.house_style()
def study_plot(study: Study) -> Figure:
    """The errors of a study in a unit that people know, and the levels: against epsilon, or bars for a single one."""
    rows = [row for row in study.readable_table() if math.isfinite(row["expected"])]
    if len({row.epsilon for row in study.rows}) == 1:
        return _study_bars(study, rows)
    figure, axes = curves.canvas(2, 1, width=4.6, height=2.6, sharex=True)
    styles = {method: curves.METHOD_STYLES[method] for method in study.methods()}
    curves.method_lines(axes[0, 0], rows, styles, "expected")
    axes[0, 0].set(title=_survey_title(study), ylabel=study.unit)
    if study.query.unbiased:
        curves.log_scale(axes[0, 0])
    styles.pop("none", None)
    curves.level_lines(axes[1, 0], study.table(), styles)
    curves.legend(figure, axes[0, 0], columns=3)
    return figure


def _study_bars(study: Study, rows: curves.Rows) -> Figure:
    """A study of one epsilon: a bar for each method, errors on the left and levels on the right."""
    styles = [curves.METHOD_STYLES[row["method"]] for row in rows]
    names, colours = [name for _, _, name in styles], [COLOURS[colour] for _, colour, _ in styles]
    figure, axes = curves.canvas(1, 2, width=3.6, height=1.0 + 0.25 * len(rows), sharey=True)
    for panel, key in zip(axes[0], ("expected", "lip"), strict=True):
        panel.barh(names, curves.column(rows, key), color=colours, alpha=0.5, height=0.6)
        panel.grid(axis="y", visible=False)
    errors, levels = axes[0]
    dots, low, high = (curves.column(rows, key) for key in ("measured", "low", "high"))
    errors.errorbar(dots, names, xerr=[dots - low, high - dots], fmt="o", color="black", markersize=3)
    errors.set(title=_survey_title(study), xlabel=study.unit, ylim=(len(rows) - 0.5, -0.5))
    if study.query.unbiased:
        curves.log_scale(errors, "x")
    levels.axvline(study.rows[0].epsilon, color=COLOURS["red"], linewidth=1)
    levels.set(title="real level, and the budget (the line)", xlabel=curves.LEVEL)
    return figure


def _survey_title(study: Study) -> str:
    simulated = f"; dots: {study.runs:,} simulated" if study.runs > 1 else ""
    return f"surveys of {study.rows[0].people:,} people{simulated}"


# -- estimates ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """An estimate under a title, and what the prior expects instead."""

    title: str
    estimate: Estimate
    expected: Array


@curves.house_style()
def estimate_plot(found: TableEstimate, by: str | None, level: float) -> Figure:
    """The estimates of a table. If there are more groups than panels, the largest ones, and the title says so."""
    draw = sum_figure if found.everybody.labels == ("sum",) else histogram_figure
    figure = draw(list(estimate_panels(found, by)), level)
    title = list(title_lines(found, by, int(figure.get_figwidth() * 15)))
    figure.set_figheight(figure.get_figheight() + 0.16 * max(0, len(title) - 2))  # room for a warning
    figure.suptitle("\n".join(title), fontsize=9)
    if len(figure.axes[0].get_legend_handles_labels()[1]) > 1:
        curves.legend(figure, figure.axes[0], columns=3)
    return figure


@curves.house_style()
def truth_plot(estimates: Sequence[tuple[str, Estimate]], truth: Array, prior: Prior) -> Figure:
    """Estimates of histograms under their titles, each with the truth and the prior."""
    panels = [Panel(title, found, prior.probabilities * found.reports) for title, found in estimates]
    figure, at = histogram_figure(panels, 0.95), np.arange(len(truth))
    for place, (_, found) in zip(figure.axes, estimates, strict=True):
        shown = np.asarray(truth) * (100 / found.reports if len(panels) > 1 else 1)
        place.plot(shown, at, "|", label="truth", color=COLOURS["red"], markersize=12, markeredgewidth=2)
    curves.legend(figure, figure.axes[0], columns=3)
    return figure


def estimate_panels(found: TableEstimate, by: str | None) -> Iterator[Panel]:
    """Everybody, and the largest groups in the order of their names."""
    yield Panel("everybody", found.everybody, _expected_statistics(found, found.tallies.groups))
    largest = sorted(found.groups, key=lambda group: -found.groups[group].reports)[: _MOST_PANELS - 1]
    for group, estimate in found.groups.items():
        if group in largest:
            name = "(missing)" if group is None else short_name(group)
            yield Panel(f"{by} = {name}", estimate, _expected_statistics(found, [group]))


def _expected_statistics(found: TableEstimate, groups: Sequence[Any]) -> Array:
    """What the prior of each plan expects of the people who reported by it."""
    labels = found.everybody.labels
    total: Array = np.zeros(len(labels))
    for (cohort, group), tally in found.tallies.by.items():
        if group in groups:
            plan = found.tallies.plans[cohort]
            people = plan.reference.align_to(plan.labels).probabilities * tally.reports
            expected = apply_rows(plan.query.rows(plan.reference), people)
            share = dict(zip(plan.query.statistic_labels(plan.labels), expected, strict=True))
            total += [share[label] for label in labels]
    return total


def title_lines(found: TableEstimate, by: str | None, width: int) -> Iterator[str]:
    """A warning if there is one, the query, the method, the reports and the level, and what the intervals assume."""
    plans, everybody = list(found.tallies.plans.values()), found.everybody
    levels = sorted({f"{p.certificate.notion} at {p.budget}" for p in plans})
    level = levels[0] if len(levels) == 1 else f"{levels[0]} to {levels[-1]}"
    query, reports = plans[0].query.kind.capitalize(), plural(everybody.reports, "report")
    yield from textwrap.wrap(f"Warning: {everybody.warning}" if everybody.warning else "", width)
    yield from textwrap.wrap(f"{query} by {everybody.method} from {reports}, {level}", width)
    if len(found.groups) >= _MOST_PANELS:
        yield f"the {_MOST_PANELS - 1} largest of {len(found.groups):,} groups by {by}"
    yield from textwrap.wrap(f"intervals assume {everybody.assumes}", width)


def histogram_figure(panels: Sequence[Panel], level: float) -> Figure:
    """Histograms with a row for each value, from the top; of too many values only some have their names."""
    several, labels = len(panels) > 1, panels[0].estimate.labels
    at = np.arange(len(labels))
    step = math.ceil(len(labels) / (_MOST_NAMES_EACH if several else _MOST_NAMES))
    names = [short_name(label) for label in labels[::step]]
    pitch = 0.2 if len(names) <= _MOST_NAMES_EACH else 0.15
    size = (2.6 if several else 5.4, 0.75 + pitch * len(names))
    figure, axes = _grid(len(panels), _MOST_ACROSS, size, sharey=True, sharex=several)
    for place, panel in zip(axes, panels, strict=True):
        values, low, high, expected = _numbers(panel, level, several)
        bars = place.stairs(expected, np.arange(len(labels) + 1) - 0.5, orientation="horizontal", fill=True)
        bars.set(color=COLOURS["grey"], alpha=0.3, label=_PRIOR, zorder=3)
        _dots(place, values, low, high, level)
        place.set_yticks(at[::step], names)
        place.xaxis.set_major_formatter("{x:g} %" if several else "{x:,.0f}")
        place.set_xlabel("" if several else "people")
        place.set_title(f"{panel.title}: {plural(panel.estimate.reports, 'report')}" if several else "")
        place.axvline(0, color="black", linewidth=0.6, zorder=1)  # estimates may be below zero
        place.tick_params(labelbottom=True)
    figure.set_figwidth(figure.get_figwidth() + 0.06 * max(map(len, names)))
    return figure


def _grid(count: int, across: int, size: tuple[float, float], **shared: bool) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, at most `across` in a row, and room for a title and a legend."""
    across = min(count, across)
    figure, axes = curves.canvas(math.ceil(count / across), across, width=size[0], height=size[1], **shared)
    for spare in axes.flat[count:]:
        spare.remove()
    figure.set_figheight(figure.get_figheight() + 0.8)
    return figure, list(axes.flat[:count])


def _numbers(panel: Panel, level: float, shares: bool) -> tuple[Array, Array, Array, Array]:
    """Estimates, both ends of their intervals, and the prior's numbers; in people, or in percent of the panel."""
    unit = 100 / max(panel.estimate.reports, 1) if shares else 1.0
    low, high = (np.where(np.isfinite(end), end * unit, np.nan) for end in panel.estimate.interval(level))
    return panel.estimate.values * unit, low, high, panel.expected * unit


def sum_figure(panels: Sequence[Panel], level: float) -> Figure:
    """One sum; or a row for each group, per person so that groups of any size compare."""
    several = len(panels) > 1
    rows = [[float(numbers[0]) for numbers in _numbers(panel, level, several)] for panel in panels]
    values, low, high, expected = np.array(rows).T / (100 if several else 1)
    figure, axes = curves.canvas(width=5.4, height=1.3 + 0.22 * len(panels))
    place, at = axes[0, 0], np.arange(len(panels))
    place.plot(expected, at, "|", label=_PRIOR, color=COLOURS["grey"], markersize=10, markeredgewidth=2)
    _dots(place, values, low, high, level)
    names = [f"{p.title} ({plural(p.estimate.reports, 'report')})" for p in panels] if several else [""]
    place.set_yticks(at, names)
    place.set_xlabel("mean per person" if several else "sum")
    if not several:
        place.xaxis.set_major_formatter("{x:,.6g}")
    figure.set_figwidth(figure.get_figwidth() + 0.06 * max(map(len, names)))
    return figure


def _dots(axes: Axes, values: Array, low: Array, high: Array, level: float) -> None:
    """A row for each number, from the top: a dot with its interval."""
    axes.errorbar(
        values, np.arange(len(values)), xerr=np.vstack([values - low, high - values]), fmt="o",
        color=COLOURS["blue"], ecolor=COLOURS["sky"], markersize=3, elinewidth=1.2, capsize=2,
        label=f"estimate, {100 * level:.4g} % interval",
    )  # fmt: skip
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.grid(False, axis="y")
