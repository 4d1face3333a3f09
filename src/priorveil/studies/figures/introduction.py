"""Figure 1: the introductory example, a binary value with prior (.2, .8) at epsilon 0.6."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import leakage
from priorveil.priors import Prior
from priorveil.queries import Histogram
from priorveil.studies import plots, published
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

PRIOR, EPSILON = Prior([0.2, 0.8]), 0.6
# The two flip probabilities that the paper's introduction prints; Theorem 3 gives 0.44 and 0.11.
_PRINTED = Channel([[0.45, 0.55], [0.10, 0.90]])


def channels() -> dict[str, tuple[str, Channel]]:
    """Kind and channel of each mechanism of the example."""
    best = design(PRIOR, EPSILON, Histogram())
    return {
        "LDP": ("ldp", published.k_rr(PRIOR, EPSILON).channel),
        "LIP, numbers in\nthe introduction": ("published", _PRINTED),
        "LIP, Theorem 3": ("published", published.rr_lip(PRIOR, EPSILON).channel),
        "best certified\nLIP": ("best", best.channel),
    }


def run(setting: Setting) -> Outcome:
    """All four channels, with their error and what they leak."""
    made = channels()
    rows: Rows = [_row(name, kind, channel) for name, (kind, channel) in made.items()]
    setting.done(1.0)
    ldp, _, theorem, best = rows
    return Outcome(
        rows=rows,
        draw=lambda: _draw(made, rows),
        caption=(
            "The introductory example: prior (0.2, 0.8), ε = 0.6. Top: Pr(report | value) of four "
            "mechanisms. "
            "Bottom: their error per person, and the LIP level they really have; the shaded part breaks the "
            "budget."
        ),
        see=(
            f"The published LIP channels have less error than LDP, but leak {theorem['lip']:.3f} and "
            f"{rows[1]['lip']:.3f} instead of 0.6: the rare value is given away.",
            f"The best channel that keeps the budget has a root error of {best['error']:.3f}, "
            f"between no report ({math.sqrt(Histogram().no_report(PRIOR)):.3f}) and the published one "
            f"({theorem['error']:.3f}).",
            "The introduction's numbers (0.55 and 0.1) are not those of Theorem 3 (0.44 and 0.11) either.",
        ),
        claims=(
            Claim(
                "LIP flips less often than LDP (0.19 against 0.35) at the same ε.",
                _flips(made["best certified\nLIP"][1]) < _flips(made["LDP"][1]),
                "With the budget kept the report differs from the value with probability "
                f"{_flips(made['best certified' + chr(10) + 'LIP'][1]):.2f}, "
                f"against {_flips(made['LDP'][1]):.2f} for LDP; the printed 0.19 belongs to a channel that "
                f"leaks {rows[1]['lip']:.2f}.",
            ),
            Claim(
                "LIP has a smaller error than LDP at the same ε.",
                float(str(best["error"])) <= float(str(ldp["error"])),
                "Every LDP channel is a LIP channel, so the best LIP channel is never worse: "
                f"{best['error']:.3f} against {ldp['error']:.3f}.",
            ),
        ),
    )


def _flips(channel: Channel) -> float:
    """How often the report, read as a value, is not the value."""
    Q, P = channel.matrix, PRIOR.probabilities
    return 1 - float(max(P @ np.diag(Q), P @ np.diag(Q[:, ::-1])))


def _row(name: str, kind: str, channel: Channel) -> dict[str, object]:
    level = leakage(channel, PRIOR)
    mse = Histogram().error(channel, PRIOR)
    return {
        "mechanism": " ".join(name.split()),
        "kind": kind,
        "q01": float(channel.matrix[0, 1]),
        "q10": float(channel.matrix[1, 0]),
        "flips": _flips(channel),
        "mse": mse,
        "error": math.sqrt(mse),
        "lip": level.lip,
        "ldp": level.ldp,
    }


def _draw(made: dict[str, tuple[str, Channel]], rows: Rows) -> Picture:
    figure, axes = plots.canvas(2, 4, width=1.72, height=1.75)
    for panel, (name, (_, channel)) in zip(axes[0], made.items(), strict=True):
        plots.channel_map(channel, panel, name)
    for panel in axes[0, 1:]:
        panel.set_ylabel("")
    grid = axes[1, 0].get_gridspec()
    for panel in axes[1]:
        panel.remove()
    _bars(figure.add_subplot(grid[1, :2]), rows, "error", "error, √(MSE / N)", math.nan)
    _bars(figure.add_subplot(grid[1, 2:]), rows, "lip", "real LIP level (nats)", EPSILON)
    picture: Picture = figure
    return picture


def _bars(axes: Axes, rows: Rows, key: str, label: str, budget: float) -> None:
    inks = {"ldp": "sky", "published": "orange", "best": "green"}
    names = ["LDP", "printed", "Thm 3", "best"]
    heights = [float(str(row[key])) for row in rows]
    for at, (row, height) in enumerate(zip(rows, heights, strict=True)):
        hatch = "///" if row["kind"] == "published" else ""
        axes.bar(at, height, 0.65, color=plots.INKS[inks[str(row["kind"])]], hatch=hatch, edgecolor="white")
        axes.text(at, height, f"{height:.3f}", ha="center", va="bottom", fontsize=7)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(label)
    axes.grid(axis="x", visible=False)
    axes.set_ylim(0, max(heights) * 1.22)
    if not math.isnan(budget):
        axes.axhspan(budget, max(heights) * 1.22, color=plots.INKS["red"], alpha=0.10, linewidth=0)
        axes.axhline(budget, color=plots.INKS["grey"], linewidth=0.8)
        axes.text(
            0.02,
            0.97,
            f"breaks the budget\nε = {budget}",
            transform=axes.transAxes,
            fontsize=7,
            va="top",
            color=plots.INKS["red"],
        )


FIGURE = Figure(1, "introduction", "The introductory example", run)
