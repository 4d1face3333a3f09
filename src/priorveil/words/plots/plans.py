"""Plans as data for pictures, and their picture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.catalogue import say
from priorveil.errors import TooLarge
from priorveil.plans import Plan
from priorveil.priors.label_texts import label_names, label_text
from priorveil.reading.moments import normal_width
from priorveil.reading.precision import USUAL_PEOPLE
from priorveil.words.notes import interval_title
from priorveil.words.plots import curves
from priorveil.words.plots.curves import Axes, Figure
from priorveil.words.plots.house_style import house_style
from priorveil.words.plots.lifts import MOST_ROWS, draw_lifts
from priorveil.words.plots.statistics import Layout, Panel, draw_function, draw_map, in_units

_MAP_WIDTH = 1.4  # of a map of a table beside other panels, so that four intervals fit side by side


def plan_layout(plan: Plan) -> Layout:
    """How the statistics of a plan are drawn."""
    prior, by_group = plan.reference, plan.query.number_by_group
    return Layout(
        prior.names or (),
        label_names(plan.labels),
        plan.query.rows(prior),
        plan.query.counts_people,
        prior.edges,
        prior.points is not None,
        None if by_group is None else by_group.title,
    )


def drawable_lift(plan: Plan) -> Array | None:
    """The lift of each value at each report; None for a channel that is too large to write out."""
    try:
        return plan.channel.drop_unused().lift(plan.reference)
    except TooLarge:
        return None


@house_style()
def plan_figure(plan: Plan) -> Figure:
    """The channel of a plan, where it can be written out, and what to expect from 10,000 people."""
    lift = drawable_lift(plan)
    figure, axes = plan_canvas(plan, 1 if lift is None else 2)
    if lift is not None:
        belief_panel(axes[0, 0], plan, lift)
    precision_panel(axes[0, -1], plan)
    return figure


def plan_canvas(plan: Plan, panels: int) -> tuple[Figure, npt.NDArray[Any]]:
    """A figure of panels side by side, the last of them for what to expect: that of a table is wider."""
    widths = [1.0] * (panels - 1) + [_MAP_WIDTH if draw_function(plan_layout(plan)) is draw_map else 1.0]
    height = max(3.4, 0.8 + 0.115 * min(len(plan.labels), MOST_ROWS))
    return curves.canvas(1, panels, width=4.6 * sum(widths) / panels, height=height, width_ratios=widths)


def belief_panel(axes: Axes, plan: Plan, lift: Array) -> None:
    """How each report moves the belief in each value; colours end at three times the budget."""
    budget = max(side for side in (plan.budget.lower, plan.budget.upper) if math.isfinite(side))
    with np.errstate(divide="ignore"):
        largest = float(
            np.abs(np.log(lift)).max()
        )  # above the budget if a side is free or the secret is latent
    P, values = plan.reference.probabilities, list(map(label_text, plan.labels))
    reports = list(map(str, range(lift.shape[1])))
    draw_lifts(axes, lift, P, values, reports, min(max(largest, budget), 3 * budget))
    axes.set_ylabel(", ".join(plan.reference.names or ()))


def precision_panel(axes: Axes, plan: Plan, people: int = USUAL_PEOPLE) -> None:
    """What a plan is expected to learn from so many people, in the picture that fits its query."""
    is_average, layout = plan.query.number_by_group is not None, plan_layout(plan)
    expected = (1 if is_average else people) * plan.query.expected_answer(plan.reference)
    # Averages come first among the statistics, and then the counts of their groups.
    errors = (1 if is_average else people) * plan.std_error(people)[: len(expected)]
    width = normal_width(0.95, "confidence") * errors
    numbers = np.array([expected, expected - width, expected + width, expected])
    names = label_names(plan.query.statistic_labels(plan.labels)[: len(expected)])
    (panel,) = in_units([Panel("", names, numbers, people)], layout, per_person=True)
    draw_function(layout)(axes, panel, layout, interval_title(0.95))
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4.5, ncols=2)
    axes.set_title(say("toExpect", count=f"{people:,}", interval=interval_title(0.95)))
