"""Finished plots of a plan, a study or the estimates from a table, and how they are saved.

Their parts are in `priorveil.words.plots`.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from priorveil.arrays import Array
from priorveil.atomic_files import atomic_write
from priorveil.catalogue import say
from priorveil.plans import Plan
from priorveil.priors.label_texts import label_text
from priorveil.reading.estimate import Estimate
from priorveil.reading.precision import USUAL_PEOPLE
from priorveil.results.form_estimates import PartEstimates
from priorveil.studies.compare import SAME_LDP
from priorveil.studies.simulate import Study
from priorveil.words.plans import reading_title
from priorveil.words.plots import curves
from priorveil.words.plots.curves import COLOURS, Axes, Figure
from priorveil.words.plots.estimates import estimate_layout, estimate_panel, interval_legend
from priorveil.words.plots.house_style import house_style
from priorveil.words.plots.names import short_name
from priorveil.words.plots.plans import belief_panel, drawable_lift, plan_canvas, plan_layout, precision_panel
from priorveil.words.plots.statistics import Panel, statistics_figure
from priorveil.words.results import group_title, groups_warning, headlines

_MOST_PANELS = 24
_LONGEST_LINE = 30  # letters of the name of an axis
_OTHER_BUDGET = say("withoutOtherBudget", method=curves.METHOD_STYLES[SAME_LDP][2])

# Without dates, the same plot is the same file.
_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": "priorveil"},
    ".svg": {"Creator": "priorveil", "Date": None},
    ".pdf": {"Creator": "priorveil", "CreationDate": None},
}


def save(figure: Figure, path: Path) -> bool:
    """Write a plot as PNG, SVG or PDF, all of it or nothing. Returns whether its font has all the letters."""
    suffix = path.suffix.lower()
    with (
        house_style(),
        warnings.catch_warnings(record=True, action="always") as font_warnings,
        atomic_write(path, True) as file,
    ):
        figure.savefig(file, format=suffix[1:], metadata=_METADATA[suffix])
    return not any("missing from font" in str(warning.message) for warning in font_warnings)


# -- plans -------------------------------------------------------------------------------------------------


@house_style()
def plan_plot(plan: Plan, curve: curves.ResultRecords, people: int = USUAL_PEOPLE) -> Figure:
    """The channel of a plan, where it can be written out, and its error against epsilon (from `error_curve`).

    Beside them is what to expect from so many people.
    """
    lift = drawable_lift(plan)
    if lift is None:
        figure, axes = curves.canvas(width=4.6, height=3.4)
        _error_panel(axes[0, 0], curve, plan)
        return figure
    figure, axes = plan_canvas(plan, 3)
    belief_panel(axes[0, 0], plan, lift)
    _error_panel(axes[0, 1], curve, plan)
    precision_panel(axes[0, 2], plan, people)
    return figure


def _error_panel(axes: Axes, curve: curves.ResultRecords, plan: Plan) -> None:
    """Error against epsilon: the best design with its bound, LDP, and no report."""
    none, keys = plan.no_report, ("epsilon", "mse", "bound", "ldp")
    resolution = plan.domain.resolution
    best = say("bestDesignForPoints", points=resolution) if resolution else say("bestDesign")
    epsilons, errors, bounds, ldp = (curves.column(curve, key) for key in keys)
    curves.line(axes, ("best", "blue", say("boundShaded", curve=best)), epsilons, errors, bounds, "o")
    if not np.isnan(ldp).all():
        curves.line(axes, ("ldp", "red", say("ldpAtThisEpsilon")), epsilons, ldp, marker="s")
    least = float(bounds.min())
    if math.isinf(none):
        curves.log_scale(axes)
        axes.set_ylim(least / 1.3, 1.3 * float(np.nanmax([errors, ldp])))
    else:
        curves.line(axes, ("baseline", "grey", say("noReport")), epsilons, np.full(len(curve), none))
        low = 0.0 if least < 0.6 * none else least - 0.1 * (none - least)
        axes.set_ylim(low, none + 0.05 * (none - low))
    axes.axvline(plan.budget.smaller, color="black", linewidth=0.8, alpha=0.5)
    axes.set(xlabel=say("epsilonOfPlan"), ylabel=textwrap.fill(plan.query.error_unit, _LONGEST_LINE))
    axes.set_title(say("errorAgainstEpsilon"))
    axes.legend()


# -- studies -----------------------------------------------------------------------------------------------


@house_style()
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
    if styles.pop(SAME_LDP, None):
        axes[1, 0].set_title(_OTHER_BUDGET)
    curves.level_lines(axes[1, 0], study.table(), styles)
    curves.legend(figure, axes[0, 0])
    return figure


def _study_bars(study: Study, rows: curves.ResultRecords) -> Figure:
    """A study of one epsilon: a bar for each method, errors on the left and levels on the right."""
    styles = [curves.METHOD_STYLES[row["method"]] for row in rows]
    names, colours = [name for _, _, name in styles], [COLOURS[colour] for _, colour, _ in styles]
    figure, axes = curves.canvas(1, 2, width=3.6, height=1.0 + 0.25 * len(rows), sharey=True)
    own_budget = [row["method"] == SAME_LDP for row in rows]
    lengths = (curves.column(rows, "expected"), np.where(own_budget, np.nan, curves.column(rows, "lip")))
    for panel, length in zip(axes[0], lengths, strict=True):
        panel.barh(names, length, color=colours, alpha=0.5, height=0.6)
        panel.grid(axis="y", visible=False)
    errors, levels = axes[0]
    dots, low, high = (curves.column(rows, key) for key in ("measured", "low", "high"))
    errors.errorbar(dots, names, xerr=[dots - low, high - dots], fmt="o", color="black", markersize=3)
    errors.set(title=_survey_title(study), xlabel=study.unit, ylim=(len(rows) - 0.5, -0.5))
    if study.query.unbiased:
        curves.log_scale(errors, "x")
    levels.axvline(study.rows[0].epsilon, color=COLOURS["red"], linewidth=1)
    without = f",\n{textwrap.fill(_OTHER_BUDGET, _LONGEST_LINE)}" if any(own_budget) else ""
    levels.set(title=say("levelAndBudget") + without, xlabel=curves.LEVEL)
    return figure


def _survey_title(study: Study) -> str:
    surveys = say("surveysOf", count=f"{study.rows[0].people:,}")
    return say("simulatedDots", surveys=surveys, runs=f"{study.runs:,}") if study.runs > 1 else surveys


# -- statistics --------------------------------------------------------------------------------------------


@house_style()
def estimate_plot(estimates: PartEstimates, by: str | None, confidence: float) -> Figure:
    """The estimates of a part. If there are more groups than panels, the largest ones, and the title says so."""
    panels = list(estimate_panels(estimates, by, confidence))
    figure = statistics_figure(panels, estimate_layout(estimates.everybody), interval_legend(confidence))
    title = list(title_lines(estimates, by, int(figure.get_figwidth() * 15)))
    figure.set_figheight(figure.get_figheight() + 0.16 * max(0, len(title) - 2))  # room for a warning
    figure.suptitle("\n".join(title), fontsize=9)
    if len(figure.axes[0].get_legend_handles_labels()[1]) > 1:
        curves.legend(figure, figure.axes[0], columns=3)
    return figure


@house_style()
def truth_plot(estimates: Sequence[tuple[str, Estimate]], truth: Array, plan: Plan) -> Figure:
    """Estimates of histograms under their titles, each with the truth and the prior."""
    panels = [estimate_panel(title, estimate, 0.95) for title, estimate in estimates]
    figure, at = (
        statistics_figure(panels, plan_layout(plan), interval_legend(0.95)),
        np.arange(len(truth)),
    )
    for place, panel in zip(figure.axes, panels, strict=True):
        scaled_truth = np.asarray(truth) * (100 / panel.people if len(panels) > 1 else 1)
        place.plot(
            scaled_truth, at, "|", label=say("truth"), color=COLOURS["red"], markersize=12, markeredgewidth=2
        )
    curves.legend(figure, figure.axes[0], columns=3)
    return figure


def estimate_panels(estimates: PartEstimates, by: str | None, confidence: float) -> Iterator[Panel]:
    """Everybody, and the largest groups in the order of their names."""
    yield estimate_panel(say("everybody"), estimates.everybody, confidence)
    largest = sorted(estimates.groups, key=lambda group: -estimates.groups[group].reports)[: _MOST_PANELS - 1]
    for group, estimate in estimates.groups.items():
        if group in largest:
            title = group_title(by, None if group is None else short_name(label_text(group)))
            yield estimate_panel(title, estimate, confidence)


def title_lines(estimates: PartEstimates, by: str | None, width: int) -> Iterator[str]:
    """Warnings, also of groups; the query, the method, the reports and the level; and what the intervals assume."""
    everybody = estimates.everybody
    contradicting = [group for group, each in estimates.groups.items() if each.warning]
    groups = groups_warning(by, contradicting)
    for line in (*headlines(everybody), *([] if groups is None else [say("warning", warning=groups)])):
        yield from textwrap.wrap(line, width)
    yield from textwrap.wrap(reading_title(estimates.plans, everybody), width)
    if len(estimates.groups) >= _MOST_PANELS:
        yield say("largestGroups", count=_MOST_PANELS - 1, all=f"{len(estimates.groups):,}", by=by)
    yield from textwrap.wrap(say("intervalsAssume", assumes="; ".join(map(str, everybody.assumes))), width)
