"""Figure 4: perturbation parameters for the prior (.1, .2, .7) at two epsilons."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import leakage
from priorveil.priors import Budget, Prior
from priorveil.queries import Histogram
from priorveil.studies import plots, published
from priorveil.studies.compare import mended
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

PRIOR, EPSILONS = Prior([0.1, 0.2, 0.7], [1, 2, 3]), (1.0, 3.0)
_TITLES = {
    "published": "published\n(Theorem 3)",
    "certified": "certified\n(RR, mended)",
    "best": "best LIP\n(reports a, b, c)",
    "ldp": "LDP\n(k-RR)",
}


def run(setting: Setting) -> Outcome:
    """The channels at both epsilons, entry by entry."""
    made = {(kind, eps): channel for eps in EPSILONS for kind, channel in _channels(eps).items()}
    rows: Rows = [row for (kind, eps), channel in made.items() for row in _rows(kind, eps, channel)]
    setting.done(1.0)
    leaks = {key: leakage(channel, PRIOR).lip for key, channel in made.items()}
    return Outcome(
        rows=rows,
        draw=lambda: _draw(made, leaks),
        caption=(
            "Pr(report | value) for the prior (0.1, 0.2, 0.7) at ε = 1 (top) and ε = 3 (bottom): as "
            "published, mended "
            "(mixed with its own output law until it keeps the budget), the best LIP channel, and LDP's "
            "randomised response. "
            "Below each: the LIP level it really has and its error per person."
        ),
        see=(
            f"At ε = 1 the published channel leaks {leaks['published', 1.0]:.3f}: when value 1 is reported, "
            "its probability "
            f"rises by a factor {math.exp(leaks['published', 1.0]):.1f}, not {math.e:.1f}.",
            "At ε = 3 every probability is at least 1/(1+e³) = 0.047, Theorem 3 holds, and all LIP channels "
            "are the same.",
            "The best channel at ε = 1 has other reports than values: it says 'one of these', not 'this "
            "one'.",
        ),
        claims=(
            Claim(
                "As ε grows, each value is more likely to be reported as it is.",
                all(
                    (np.diag(made[k, 3.0].matrix) > np.diag(made[k, 1.0].matrix)).all()
                    for k in ("certified", "ldp")
                ),
                "True of the certified channel as of the published one.",
            ),
            Claim(
                "When ε is small an unlikely value is mostly reported as the likely one.",
                bool(
                    (made["certified", 1.0].matrix[:2, 2] > np.diag(made["certified", 1.0].matrix)[:2]).all()
                ),
                "With the budget kept already at ε = 1; as printed, value 1 does so only below ε = log 1.6 "
                "= 0.47.",
            ),
        ),
    )


def _channels(epsilon: float) -> dict[str, Channel]:
    form = published.rr_lip(PRIOR, epsilon)
    return {
        "published": form.channel,
        "certified": mended(form.channel, PRIOR, Budget(epsilon))[0],
        "best": _sorted(design(PRIOR, epsilon, Histogram()).channel),
        "ldp": published.k_rr(PRIOR, epsilon).channel,
    }


def _sorted(channel: Channel) -> Channel:
    """The channel with its reports in the order of the values they speak for most."""
    order = np.lexsort((-channel.output_law(PRIOR), channel.lift(PRIOR).argmax(axis=0)))
    return Channel(channel.matrix[:, order], channel.inputs)


def _rows(kind: str, epsilon: float, channel: Channel) -> list[dict[str, object]]:
    levels, mse = leakage(channel, PRIOR), Histogram().error(channel, PRIOR)
    shared = {"epsilon": epsilon, "kind": kind, "mse": mse, "lip": levels.lip, "ldp": levels.ldp}
    return [
        {**shared, "value": value, "report": y, "probability": float(channel.matrix[x, y])}
        for x, value in enumerate(PRIOR.labels)
        for y in range(channel.shape[1])
    ]


def _draw(made: dict[tuple[str, float], Channel], leaks: dict[tuple[str, float], float]) -> Picture:
    figure, axes = plots.canvas(2, 4, width=1.75, height=2.0)
    for i, epsilon in enumerate(EPSILONS):
        for j, (kind, title) in enumerate(_TITLES.items()):
            channel = made[kind, epsilon]
            named = Channel(
                channel.matrix, PRIOR.labels, "abc"[: channel.shape[1]] if kind == "best" else PRIOR.labels
            )
            panel = plots.channel_map(named, axes[i, j], title if i == 0 else "")
            error = math.sqrt(Histogram().error(channel, PRIOR))
            over = leaks[kind, epsilon] > epsilon + 1e-6
            panel.set_xlabel(
                f"leaks {leaks[kind, epsilon]:.3f}\nerror {error:.3f}",
                color=plots.INKS["red"] if over else "black",
            )
            panel.set_ylabel(f"ε = {epsilon:g}\nvalue" if j == 0 else "")
    picture: Picture = figure
    return picture


FIGURE = Figure(4, "parameters", "Perturbation parameters at two budgets", run)
