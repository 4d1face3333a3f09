"""Finished plots of a plan, a study or the estimates from a table, and how they are saved.

`curves` has the parts that they are made of.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.atomic_files import atomic_write
from priorveil.errors import NotIdentifiable, TooLarge, plural
from priorveil.formatting import interval_title
from priorveil.plans import Plan
from priorveil.plans.wording import reading_title
from priorveil.priors import Label
from priorveil.priors.label_texts import label_parts, label_text
from priorveil.reading.estimate import Estimate
from priorveil.reading.moments import normal_width
from priorveil.reading.wording import answer, group_title, groups_warning
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
_MOST_TICKS = 12  # names below a curve
_MOST_SLANTED = 15  # names below a map; more are upright
_LONGEST_NAME = 30  # letters
_LONGEST_LINE = 50  # letters of all names below a map
_MOST_ROWS = 40  # names of values in a map
_MOST_COLUMNS = 4  # of a map whose cells hold their intervals
_MAP_WIDTH = 1.4  # of such a map beside other panels, so that four intervals fit side by side
_MOST_REPORTS = 20  # reports that have their numbers below a map
_COMPARED = 4  # values that decide the order of reports
_PEOPLE = 10_000  # for what is expected of a plan

# Without dates, the same plot is the same file.
_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": "priorveil"},
    ".svg": {"Creator": "priorveil", "Date": None},
    ".pdf": {"Creator": "priorveil", "CreationDate": None},
}
_PRIOR, _WEIGHTED = "what the prior expects", "weighted sum"
_AXES = {"people": "{x:,.0f}", "percent": "{x:g} %"}  # the numbers on an axis of counts or shares


def save(figure: Figure, path: Path) -> bool:
    """Write a plot as PNG, SVG or PDF, all of it or nothing. Returns whether its font has all the letters."""
    suffix = path.suffix.lower()
    with (
        curves.house_style(),
        warnings.catch_warnings(record=True, action="always") as font_warnings,
        atomic_write(path, True) as file,
    ):
        figure.savefig(file, format=suffix[1:], metadata=_METADATA[suffix])
    return not any("missing from font" in str(warning.message) for warning in font_warnings)


def short_name(label: Label) -> str:
    """A name that has room next to an axis: only the levels of a margin of several attributes, and a long name cut.

    >>> short_name("a"), short_name("professional, scientific and technical services")
    ('a', 'professional, sc…ical services')
    >>> short_name("work=Private, income=>=80K"), short_name("income=>=80K")
    ('Private, >=80K', 'income=>=80K')
    """
    word = " ".join(label_text(label).split())
    parts = word.split(", ")
    if len(parts) > 1 and all("=" in part for part in parts):  # the attributes are next to the axis
        word = ", ".join(part.partition("=")[2] for part in parts)
    word = word if len(word) <= _LONGEST_NAME else f"{word[: _LONGEST_NAME - 14]}…{word[-13:]}"
    return word.replace("$", r"\$")  # matplotlib would read a formula


# -- plans -------------------------------------------------------------------------------------------------


@curves.house_style()
def plan_plot(plan: Plan, curve: curves.Records) -> Figure:
    """The channel of a plan, where it can be written out, and its error against epsilon (from `error_curve`)."""
    try:
        lift = plan.channel.drop_unused().lift(plan.reference)
    except TooLarge:
        lift = None
    places, names = _ticks(plan.labels, _MOST_ROWS)
    height = 3.4 if lift is None else max(3.4, 0.8 + 0.115 * len(places))
    last = _MAP_WIDTH if draw_function(plan) is draw_map else 1.0
    widths = [1.0] if lift is None else [1.0, 1.0, last]
    width = 4.6 * sum(widths) / len(widths)
    figure, axes = curves.canvas(1, len(widths), width=width, height=height, width_ratios=widths)
    if lift is not None:
        _belief_map(axes[0, 0], plan, lift)
        axes[0, 0].set_yticks(places, names)
        axes[0, 0].set_ylabel(", ".join(plan.reference.names or ()))
        _precision_panel(axes[0, 2], plan)
    _error_panel(axes[0, min(1, axes.size - 1)], curve, plan)
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
    budget = max(side for side in (plan.budget.lower, plan.budget.upper) if math.isfinite(side))
    largest = float(np.abs(logs).max())  # above the budget if a side is free or the secret is latent
    top = min(max(largest, budget), 3 * budget)
    texts = np.char.mod("\N{MULTIPLICATION SIGN}%.2f", lift if lift.size <= curves.MOST_TEXTS else lift[:0])
    image = curves.heat_map(axes, np.clip(logs, -top, top), texts, top, "RdBu_r", -top)
    few = len(order) <= _MOST_REPORTS
    axes.set_xticks(range(len(order)) if few else [], [str(y) for y in order] if few else [])
    axes.set_xlabel(f"{'' if few else f'{len(order):,} '}reports, by the value that they raise most")
    axes.set_title("belief in a value after a report (log lift)")
    beyond = "both" if largest > top * (1 + 1e-9) else "neither"
    axes.figure.colorbar(image, ax=axes, extend=beyond, label="less likely  ←  0  →  more likely")


def _precision_panel(axes: Axes, plan: Plan) -> None:
    """What a plan is expected to learn, in the picture that fits its query."""
    is_average = plan.query.number_by_group is not None
    expected = (1 if is_average else _PEOPLE) * plan.query.expected_answer(plan.reference)
    # Averages come first among the statistics, and then the counts of their groups.
    errors = (1 if is_average else _PEOPLE) * plan.std_error(_PEOPLE)[: len(expected)]
    width = normal_width(0.95, "confidence") * errors
    numbers = np.array([expected, expected - width, expected + width, expected])
    panel = Panel("", plan.query.statistic_labels(plan.labels)[: len(expected)], numbers, _PEOPLE)
    (panel,) = _in_units([panel], plan, per_person=True)
    draw_function(plan)(axes, panel, plan, interval_title(0.95))
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4.5, ncols=2)
    axes.set_title(f"to expect from {_PEOPLE:,} people,\nwith 95 % intervals")


def _error_panel(axes: Axes, curve: curves.Records, plan: Plan) -> None:
    """Error against epsilon: the best design with its bound, LDP, and no report."""
    none, keys = plan.no_report, ("epsilon", "mse", "bound", "ldp")
    best = "best design"
    if plan.domain.resolution:
        best += f" for these {plan.domain.resolution}"
    epsilons, errors, bounds, ldp = (curves.column(curve, key) for key in keys)
    curves.line(axes, ("best", "blue", f"{best}, its bound shaded"), epsilons, errors, bounds, "o")
    if not np.isnan(ldp).all():
        curves.line(axes, ("ldp", "red", "LDP at the same epsilon"), epsilons, ldp, marker="s")
    least = float(bounds.min())
    if math.isinf(none):
        curves.log_scale(axes)
        axes.set_ylim(least / 1.3, 1.3 * float(np.nanmax([errors, ldp])))
    else:
        curves.line(axes, ("baseline", "grey", "no report"), epsilons, np.full(len(curve), none))
        low = 0.0 if least < 0.6 * none else least - 0.1 * (none - least)
        axes.set_ylim(low, none + 0.05 * (none - low))
    axes.axvline(min(plan.budget.lower, plan.budget.upper), color="black", linewidth=0.8, alpha=0.5)
    axes.set(
        xlabel="epsilon (the line: this plan)", ylabel=textwrap.fill(plan.query.error_unit, _LONGEST_NAME)
    )
    axes.set_title("error against epsilon")
    axes.legend()


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


def _study_bars(study: Study, rows: curves.Records) -> Figure:
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
    dots = f"; dots: {study.runs:,} simulated" if study.runs > 1 else ""
    return f"surveys of {study.rows[0].people:,} people{dots}"


# -- statistics --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """Statistics under a title, in a `unit`: rows of values, both ends of intervals, and what the prior expects.

    Quantiles are points on a cumulative curve: their share in percent, the number, and the ends of its interval.
    """

    title: str
    labels: Sequence[Label]
    numbers: Array
    people: int
    unit: str = "people"
    quantiles: tuple[tuple[float, ...], ...] = ()

    def per_person(self, unit: str) -> Panel:
        """The same for one person, or in percent."""
        scale = (100 if unit == "percent" else 1) / max(self.people, 1)
        return replace(self, numbers=scale * self.numbers, unit=unit)


def estimate_panel(title: str, estimate: Estimate, confidence: float) -> Panel:
    """An estimate with its intervals, and the quartiles of cells of numbers. An infinite end is left out."""
    statistics = answer(estimate, confidence)
    numbers = np.array([statistics.columns[0], *statistics.columns[2:], statistics.expected])
    panel = Panel(title, statistics.labels, np.where(np.isfinite(numbers), numbers, np.nan), estimate.reports)
    if estimate.reports and estimate.readings[0].prior.edges is not None:
        with suppress(NotIdentifiable):  # some statistics of cells do not determine quantiles
            quartiles = {100 * q: estimate.quantile(q) for q in (0.25, 0.5, 0.75)}
            points = ((q, x.value, *x.interval(confidence)) for q, x in quartiles.items())
            return replace(panel, quantiles=tuple(points))
    return panel


@curves.house_style()
def estimate_plot(estimates: TableEstimate, by: str | None, confidence: float) -> Figure:
    """The estimates of a table. If there are more groups than panels, the largest ones, and the title says so."""
    plan = next(iter(estimates.tallies.plans.values()))
    words = f"estimate, {interval_title(confidence)}"
    figure = statistics_figure(list(estimate_panels(estimates, by, confidence)), plan, words)
    title = list(title_lines(estimates, by, int(figure.get_figwidth() * 15)))
    figure.set_figheight(figure.get_figheight() + 0.16 * max(0, len(title) - 2))  # room for a warning
    figure.suptitle("\n".join(title), fontsize=9)
    if len(figure.axes[0].get_legend_handles_labels()[1]) > 1:
        curves.legend(figure, figure.axes[0], columns=3)
    return figure


@curves.house_style()
def truth_plot(estimates: Sequence[tuple[str, Estimate]], truth: Array, plan: Plan) -> Figure:
    """Estimates of histograms under their titles, each with the truth and the prior."""
    panels = [estimate_panel(title, estimate, 0.95) for title, estimate in estimates]
    figure, at = statistics_figure(panels, plan, f"estimate, {interval_title(0.95)}"), np.arange(len(truth))
    for place, panel in zip(figure.axes, panels, strict=True):
        scaled_truth = np.asarray(truth) * (100 / panel.people if len(panels) > 1 else 1)
        place.plot(
            scaled_truth, at, "|", label="truth", color=COLOURS["red"], markersize=12, markeredgewidth=2
        )
    curves.legend(figure, figure.axes[0], columns=3)
    return figure


def estimate_panels(estimates: TableEstimate, by: str | None, confidence: float) -> Iterator[Panel]:
    """Everybody, and the largest groups in the order of their names."""
    yield estimate_panel("everybody", estimates.everybody, confidence)
    largest = sorted(estimates.groups, key=lambda group: -estimates.groups[group].reports)[: _MOST_PANELS - 1]
    for group, estimate in estimates.groups.items():
        if group in largest:
            title = group_title(by, None if group is None else short_name(group))
            yield estimate_panel(title, estimate, confidence)


def title_lines(estimates: TableEstimate, by: str | None, width: int) -> Iterator[str]:
    """Warnings, also of groups; the query, the method, the reports and the level; and what the intervals assume."""
    everybody = estimates.everybody
    contradicting = [group for group, each in estimates.groups.items() if each.warning]
    for warning in (everybody.warning, groups_warning(by, contradicting)):
        if warning is not None:
            yield from textwrap.wrap(f"Warning: {warning}", width)
    yield from textwrap.wrap(reading_title([*estimates.tallies.plans.values()], everybody), width)
    if len(estimates.groups) >= _MOST_PANELS:
        yield f"the {_MOST_PANELS - 1} largest of {len(estimates.groups):,} groups by {by}"
    yield from textwrap.wrap(f"intervals assume {everybody.assumes}", width)


# -- the picture that fits a query -------------------------------------------------------------------------


def statistics_figure(panels: Sequence[Panel], plan: Plan, words: str) -> Figure:
    """The statistics of a plan's query, a panel for each group; `words` are the legend of numbers and intervals.

    Sums of groups are the rows of one panel, per person, so that groups of any size compare.
    """
    draw = draw_function(plan)
    panels = _in_units(panels, plan, len(panels) > 1 or draw is not draw_rows)
    wide = len(panels) == 1 or draw is draw_map
    count, across = len(panels), min(len(panels), _MOST_ACROSS // 2 if wide else _MOST_ACROSS)
    down = math.ceil(count / across)
    figure, axes = curves.canvas(down, across, sharex=True, sharey=True)
    for spare in axes.flat[count:]:
        spare.remove()
    for place, panel in zip(axes.flat, panels, strict=False):
        draw(place, panel, plan, words)
        place.set_title(f"{panel.title}: {plural(panel.people, 'report')}" if count > 1 else "")
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


def draw_function(plan: Plan) -> Callable[[Axes, Panel, Plan, str], None]:
    """How the statistics of a plan are drawn: a map for a table, a curve for cumulative counts, else rows.

    A table of more than two attributes is a map only if it is small.
    """
    rows = plan.query.rows(plan.reference)
    if rows is None:
        attributes, small = len(plan.reference.names or ()), len(plan.labels) <= curves.MOST_TEXTS
        return draw_map if attributes == 2 or (attributes > 2 and small) else draw_rows
    return draw_curve if len(rows) > 1 and np.array_equal(rows, np.tri(*rows.shape)) else draw_rows


def _in_units(panels: Sequence[Panel], plan: Plan, per_person: bool) -> Sequence[Panel]:
    """The panels in the unit of their statistics: people or percent of them, or else sums or means."""
    if plan.query.takes_offsets:
        return [_sums_panel(panels, plan)]
    people, by_group = plan.query.counts_people, plan.query.number_by_group
    if by_group is not None:
        return [replace(panel, unit=by_group.title) for panel in panels]
    if per_person:
        return [panel.per_person("percent" if people else _WEIGHTED + " per person") for panel in panels]
    return panels if people else [replace(panel, unit=_WEIGHTED) for panel in panels]


def _sums_panel(panels: Sequence[Panel], plan: Plan) -> Panel:
    """A sum, or the mean of a number; or a row for the mean of each group."""
    several = len(panels) > 1
    unit = "mean per person" if several or plan.reference.points is not None else "sum"
    if unit != "sum":
        panels = [panel.per_person(unit) for panel in panels]
    axis, names = unit, panels[0].labels if unit == "sum" else ["mean"]
    if several:
        axis = f"{unit} (reports in brackets)"
        names = [f"{panel.title.split(' = ')[-1]} ({panel.people:,})" for panel in panels]
    return Panel("", names, np.hstack([panel.numbers for panel in panels]), panels[0].people, axis)


def _ticks(labels: Sequence[Label], most: int) -> tuple[range, list[str]]:
    """Places on an axis, and the names to write there: at most this many, evenly spaced."""
    places = range(0, len(labels), math.ceil(len(labels) / most))
    return places, [short_name(labels[place]) for place in places]


def draw_rows(axes: Axes, panel: Panel, plan: Plan, words: str) -> None:
    """A row for each statistic, from the top: a dot with its interval, and what the prior expects.

    Margins of several attributes are apart from each other.
    """
    at, shares = np.arange(len(panel.labels)), panel.unit in _AXES
    values, low, high, expected = panel.numbers
    if shares:  # other numbers may lie far from zero
        bars = axes.stairs(expected, np.arange(len(at) + 1) - 0.5, orientation="horizontal", fill=True)
        bars.set(color=COLOURS["grey"], alpha=0.3, label=_PRIOR, zorder=3)
        axes.axvline(0, color="black", linewidth=0.6, zorder=1)  # estimates may be below zero
        axes.set_ylabel(", ".join(plan.reference.names or ()))
    else:
        axes.plot(expected, at, "|", label=_PRIOR, color=COLOURS["grey"], markersize=10, markeredgewidth=2)
    _dots(axes, values, at, words, low, high)
    axes.set_ylim(len(at) - 0.4, -0.6)
    axes.grid(False, axis="y")
    axes.set_yticks(*_ticks(panel.labels, _MOST_NAMES_EACH if panel.unit == "percent" else _MOST_NAMES))
    axes.set_xlabel("" if panel.unit == "percent" else panel.unit)
    axes.xaxis.set_major_formatter(_AXES.get(panel.unit, "{x:,.6g}"))
    rows = plan.query.rows(plan.reference)
    if shares and rows is not None:  # a margin ends where every value has been counted equally often
        ends = np.flatnonzero(np.ptp(np.cumsum(rows, axis=0), axis=1) == 0)
        for row in ends[:-1]:
            axes.axhline(row + 0.5, color="black", linewidth=0.6)


def _dots(axes: Axes, x: Array, y: npt.ArrayLike, words: str, low: Array, high: Array) -> None:
    axes.errorbar(
        x, y, xerr=[x - low, high - x], fmt="o", color=COLOURS["blue"], ecolor=COLOURS["sky"], markersize=3,
        elinewidth=1.2, capsize=2, label=words,
    )  # fmt: skip


def draw_curve(axes: Axes, panel: Panel, plan: Plan, words: str) -> None:
    """Cumulative shares as a curve with a band, the prior's as a thin line, and quartiles as points with intervals."""
    edges, count = plan.reference.edges, len(panel.labels)
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
        _dots(axes, numbers, shares, "quartiles", least, most)
    axes.set(xlabel="value", ylabel="people up to this value", ylim=(0, None))
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.xaxis.set_major_formatter("{x:,.6g}")
    axes.locator_params(axis="x", nbins=5)
    if edges is None:
        axes.set_xticks(*_ticks(plan.labels[:count], _MOST_TICKS), rotation=30, ha="right")


def draw_map(axes: Axes, panel: Panel, plan: Plan, words: str) -> None:
    """A cell for each combination of levels: the share of people, with its interval. The last attribute is across.

    Without room for intervals there is a colour bar, and the caption says how far a typical one reaches to its longer
    side. A cross then marks each cell whose interval includes what the prior expects: most of them, where the
    differences are noise. Cells that the plan leaves out are hatched.
    """
    *vertical, horizontal = plan.reference.names or ()
    parts = [label_parts(label) for label in panel.labels]
    down, across = list(dict.fromkeys(part[:-1] for part in parts)), list(dict.fromkeys(p[-1] for p in parts))
    shares = np.full((len(down), len(across)), np.nan)
    cells = [down.index(part[:-1]) for part in parts], [across.index(part[-1]) for part in parts]
    values, low, high, expected = panel.numbers
    shares[cells], caption = values, f"{horizontal}\npercent of people; {words}"
    texts = np.full(shares.shape, "", dtype=object)
    texts[cells] = [f"{share:.1f} ({a:.1f} to {b:.1f})" for share, a, b in panel.numbers[:3].T]
    roomy = len(across) <= _MOST_COLUMNS and len(down) <= _MOST_ROWS
    image = curves.heat_map(axes, shares, texts if roomy else texts[:0], float(np.nanmax(shares)))
    if not roomy:
        beyond = "min" if values.min() < 0 else "neither"
        axes.figure.colorbar(image, ax=axes, extend=beyond, format="{x:g} %")
        caption += f" about ± {np.nanmedian(np.maximum(values - low, high - values)):.2g}"
        if not np.array_equal(values, expected):
            y, x = np.array(cells)[:, (low <= expected) & (expected <= high)]
            axes.plot(x, y, "x", color="grey", markersize=3)
            caption += "\n(crosses: the interval includes what the prior expects; a few miss it at random)"
    axes.set_yticks(*_ticks(down, _MOST_NAMES))
    if np.isnan(shares).any():
        axes.patch.set(hatch="/////", edgecolor="silver")
        caption += "\n(hatched: combinations that the plan leaves out)"
    places, names = _ticks(across, _MOST_NAMES_EACH)
    angle = 90 if len(names) > _MOST_SLANTED else 30 if sum(map(len, names)) > _LONGEST_LINE else 0
    axes.set_xticks(places, names, rotation=angle, ha="right" if angle == 30 else "center")
    axes.set(ylabel=", ".join(vertical), xlabel=caption)
