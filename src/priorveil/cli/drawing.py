"""Pictures that commands draw: a plan with its error against epsilon, and estimates beside the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from priorveil.cli import screen as screens
from priorveil.cli.panels import save, short
from priorveil.errors import TooLarge
from priorveil.studies.rivals import Curve, curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from priorveil.plans import Plan
    from priorveil.plans.estimate import Estimate
    from priorveil.priors import Array, Label, Prior

_NAMED = 40  # names along an axis
_NUMBERED = 20  # reports that have their numbers below them
_WRITTEN = 64  # cells of a map that hold their numbers
_COMPARED = 4  # values that decide the order of reports


def draw_plan(plan: Plan, path: Path) -> None:
    """The plan's channel, where it can be written out, and its error against epsilon."""
    from priorveil.studies import plots

    with plots.look():
        lift = _lift(plan)
        names = math.ceil(len(plan.labels) / _step(plan.labels))
        size = {"width": 4.6, "height": 3.4 if lift is None else max(3.4, 0.8 + 0.115 * names)}
        figure, axes = plots.canvas(1, 1 if lift is None else 2, **size)
        if lift is not None:
            _belief_map(axes[0, 0], plan, lift)
        with screens.waiting("designing for other budgets"):
            found = curve(plan)
        _errors(axes[0, -1], found)
        save(figure, path)


def draw_estimates(told: Sequence[tuple[str, Estimate]], truth: Array, prior: Prior, path: Path) -> None:
    """Estimates side by side, each beside the truth and the prior."""
    from priorveil.studies import plots

    with plots.look():
        figure, axes = plots.canvas(1, len(told), width=4.2, height=3.2, sharey=True)
        for panel, (title, estimate) in zip(axes[0], told, strict=True):
            plots.histogram(estimate, truth, prior, panel)
            panel.set(title=title, xlabel="")
            panel.yaxis.set_major_formatter("{x:,.0f}")
        save(figure, path)


def _lift(plan: Plan) -> Array | None:
    try:
        return plan.channel.drop_unused().lift(plan.reference)
    except TooLarge:
        return None


def _belief_map(axes: Axes, plan: Plan, lift: Array) -> None:
    """What each report does to the belief in each value, as the logarithm of its lift."""
    order = spoken_for(lift, plan.reference.align_to(plan.labels).probabilities)
    with np.errstate(divide="ignore"):
        logs = np.log(lift[:, order])
    allowed = max(side for side in (plan.budget.lower, plan.budget.upper) if math.isfinite(side))
    largest = float(
        np.abs(logs).max()
    )  # above the budget where a side is free, or something else is the secret
    top = min(max(largest, allowed), 3 * allowed)
    image = axes.imshow(
        np.clip(logs, -top, top), cmap="RdBu_r", vmin=-top, vmax=top, aspect="auto", interpolation="nearest"
    )
    axes.grid(False)
    few = len(order) <= _NUMBERED
    axes.set_xticks(range(len(order)) if few else [], [str(y) for y in order] if few else [])
    axes.set_xlabel(f"{'' if few else f'{len(order):,} '}reports, by the value that they speak for most")
    _name_values(axes, plan.labels)
    _write_factors(axes, lift[:, order], top)
    axes.set_title("belief in a value after a report (log lift)")
    beyond = "both" if largest > top * (1 + 1e-9) else "neither"
    axes.figure.colorbar(image, ax=axes, extend=beyond, label="less likely  ←  0  →  more likely")


def spoken_for(lift: Array, prior: Array) -> npt.NDArray[np.intp]:
    """The reports in the order of the value that each speaks for most: whose probability it raises most.

    Reports for the same value are in the order of the next one that they raise, and so on.

    >>> spoken_for(np.array([[1.5, 0.5, 0.5], [0.5, 2.0, 0.5], [0.9, 0.9, 1.5]]), np.full(3, 1 / 3)).tolist()
    [0, 1, 2]
    """
    gains = np.round(prior[:, None] * (lift - 1), 9)  # what differs by rounding alone is a tie
    ranked = np.argsort(-gains, axis=0, kind="stable")[:_COMPARED]
    return np.lexsort(ranked[::-1])


def _step(labels: Sequence[Label]) -> int:
    """Every so many values have their names on the axis, where there is no room for all."""
    return math.ceil(len(labels) / _NAMED)


def _name_values(axes: Axes, labels: Sequence[Label]) -> None:
    step = _step(labels)
    axes.set_yticks(range(0, len(labels), step), [short(label) for label in labels[::step]])


def _write_factors(axes: Axes, lift: Array, top: float) -> None:
    """By which factor each belief changes, where there is room for it."""
    if lift.size > _WRITTEN:
        return
    for (x, y), factor in np.ndenumerate(lift):
        dark = factor <= 0 or abs(math.log(factor)) > 0.6 * top
        ink = "white" if dark else "black"
        axes.text(
            y, x, f"\N{MULTIPLICATION SIGN}{factor:.2f}", ha="center", va="center", fontsize=7, color=ink
        )


def _errors(axes: Axes, found: Curve) -> None:
    """Error against epsilon: the best design with its bound, LDP, and no report at all."""
    from priorveil.studies import plots

    x, y = found.epsilons, found.errors
    made = [plots.Line("best design, its bound shaded", "best", "blue", x, y, found.bounds, marker="o")]
    rivals = [(e, r) for e, r in zip(x, found.rivals, strict=True) if r is not None]
    if rivals:
        at, errors = zip(*rivals, strict=True)
        made.append(plots.Line("LDP at the same epsilon", "ldp", "red", at, errors, marker="s"))
    if math.isfinite(found.no_report):
        made.append(plots.Line("no report", "baseline", "grey", x, [found.no_report] * len(x)))
    plots.lines(made, axes)
    if math.isinf(found.no_report):
        plots.logarithmic(axes)
        axes.set_ylim(min(found.bounds) / 1.3, 1.3 * max([*y, *(r for _, r in rivals)]))
    else:
        least = min(found.bounds)
        low = 0.0 if least < 0.6 * found.no_report else least - 0.1 * (found.no_report - least)
        axes.set_ylim(low, found.no_report + 0.05 * (found.no_report - low))
    axes.axvline(found.here, color="black", linewidth=0.8, alpha=0.5)
    axes.set(
        xlabel="epsilon (the line: this plan)",
        ylabel="expected error per person",
        title="error against epsilon",
    )
    axes.legend(frameon=False)
