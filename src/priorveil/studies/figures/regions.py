"""Figure 3: the feasible region of binary LIP, contours of the variance of the estimate, and the optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import leakage
from priorveil.priors import Prior
from priorveil.queries import Histogram
from priorveil.studies import plots, published
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

# One case in which the published point keeps the budget, and the introduction's, in which it does not.
CASES = (([0.4, 0.6], 1.0), ([0.2, 0.8], 0.6))
_MARKS = {
    "published": ("o", "red", "published (Theorem 3)"),
    "best": ("*", "green", "best LIP"),
    "ldp": ("s", "orange", "RR-LDP"),
}


def run(setting: Setting) -> Outcome:
    """The three channels of each case, and where they lie."""
    rows: Rows = [row for P, eps in CASES for row in _points(Prior(P), eps)]
    setting.done(1.0)
    outside = next(row for row in rows if row["kind"] == "published" and row["epsilon"] == 0.6)
    return Outcome(
        rows=rows,
        draw=lambda: _draw(rows),
        caption=(
            "Binary LIP: flip probabilities that keep the budget (shaded), contours of Var(estimate) (more "
            "is better), the "
            "LDP region (dotted outline), and three mechanisms. Left: prior (0.4, 0.6), ε = 1. Right: prior "
            "(0.2, 0.8), ε = 0.6."
        ),
        see=(
            "Left: both values are likelier than τ = 1/(1+e^ε) and the published point is the optimum, a "
            "corner of the region.",
            "Right: the rare value is not, and the published point lies outside the region; it leaks "
            f"{float(str(outside['lip'])):.3f}.",
            "The optimum is always a corner: two constraints hold with equality.",
        ),
        claims=(
            Claim(
                "The optimum lies on the boundary of the feasible region, where two constraints meet.",
                all(number(r, "tight") >= 2 for r in rows if r["kind"] == "best"),
                "The utility is convex in each column, so it is greatest at corners; both certified optima "
                "are.",
            ),
            Claim(
                "That corner is Theorem 3's, for every prior and ε.",
                all(
                    float(str(r["lip"])) <= float(str(r["epsilon"])) + 1e-9
                    for r in rows
                    if r["kind"] == "published"
                ),
                "Only where every probability is at least 1/(1+e^ε); elsewhere the upper constraint, which "
                "the proof leaves out, cuts that corner off.",
            ),
        ),
    )


def _points(prior: Prior, epsilon: float) -> list[dict[str, object]]:
    made = {
        "published": published.rr_lip(prior, epsilon).channel,
        "ldp": published.k_rr(prior, epsilon).channel,
        "best": design(prior, epsilon, Histogram()).channel,
    }
    return [_row(kind, channel, prior, epsilon) for kind, channel in made.items()]


def _row(kind: str, channel: Channel, prior: Prior, epsilon: float) -> dict[str, object]:
    Q = channel.matrix if channel.matrix[0, 0] + channel.matrix[1, 1] >= 1 else channel.matrix[:, ::-1]
    return {
        "prior": " ".join(f"{p:g}" for p in prior.probabilities),
        "epsilon": epsilon,
        "kind": kind,
        "q01": float(Q[0, 1]),
        "q10": float(Q[1, 0]),
        "variance": float(plots.estimate_variance(prior, Q[0, 1], Q[1, 0])),
        "mse": Histogram().error(channel, prior),
        "lip": leakage(channel, prior).lip,
        "ldp": leakage(channel, prior).ldp,
        "tight": _tight(channel, prior, epsilon),
    }


def _tight(channel: Channel, prior: Prior, epsilon: float) -> int:
    """How many of the privacy constraints hold with equality."""
    return int((np.abs(np.abs(np.log(channel.lift(prior))) - epsilon) < 1e-6).sum())


def _draw(rows: Rows) -> Picture:
    figure, axes = plots.canvas(1, 2, height=3.1)
    for panel, (P, epsilon) in zip(axes[0], CASES, strict=True):
        plots.feasible_region(P, epsilon, panel)
        for row in rows:
            if row["epsilon"] == epsilon:
                mark, ink, label = _MARKS[str(row["kind"])]
                size = {"*": 10, "o": 12}.get(mark, 6)
                panel.plot(row["q01"], row["q10"], mark, color=plots.INKS[ink], markersize=size, label=label,
                           markerfacecolor="none" if mark == "o" else plots.INKS[ink],
                           markeredgewidth=1.8 if mark == "o" else 0.6, clip_on=False, zorder=6)  # fmt: skip
        panel.set_title(f"prior ({P[0]}, {P[1]}), ε = {epsilon:g}")
    axes[0, 0].plot([], [], color=plots.INKS["sky"], alpha=0.5, linewidth=6, label="keeps LIP")
    axes[0, 0].plot([], [], color=plots.INKS["orange"], linestyle="dotted", label="edge of LDP")
    axes[0, 0].plot([], [], color=plots.INKS["grey"], linewidth=0.6, label="contours of Var(estimate)")
    plots.legend(figure, columns=3)
    picture: Picture = figure
    return picture


FIGURE = Figure(3, "regions", "The feasible region of binary LIP", run)
