"""Figure 9: how many bins to hash into, for the ramp prior on 20 values at epsilon 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from priorveil.designs import design
from priorveil.priors import Budget
from priorveil.queries import Histogram
from priorveil.studies import plots, published
from priorveil.studies.compare import mended
from priorveil.studies.figures.domain import ramp
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

VALUES, EPSILON = 20, 1.0


def run(setting: Setting) -> Outcome:
    """Random hash functions of every size, as published and mended; and the best there is."""
    rng = np.random.default_rng([setting.seed, 9])
    count = 12 if setting.quick else 100
    rows: list[dict[str, object]] = []
    for size in range(1, VALUES + 1):
        rows += [
            _row(size, rng.integers(size, size=VALUES).tolist()) for _ in range(count if size > 1 else 1)
        ]
        setting.done(size / VALUES)
    prior = ramp(VALUES)
    plans = {
        "hashing, certified": design(prior, EPSILON, Histogram(), method="hashing"),
        "best LIP design": design(prior, EPSILON, Histogram(), time_limit=10),
    }
    extra = [
        {"way": way, "mse": plan.expected_mse, "bound": plan.lower_bound, "lip": plan.certificate.lip}
        for way, plan in plans.items()
    ]
    return Outcome(
        rows=[*rows, *extra],
        draw=lambda: _draw(rows, extra),
        caption=(
            f"LH-LIP on 20 values, ε = 1, {count} random hash functions for each number of bins. The prior "
            "is P ∝ 1, 2, ..., 20 (the printed one, "
            "0 to 0.1 in steps of 0.005, does not add up to one and has a value that never happens). Top: "
            "error; a dot is one hash function, "
            "full where it keeps the budget. Bottom: the LIP level it really has."
        ),
        see=_see(rows, extra),
        claims=_claims(rows, extra),
    )


def _row(size: int, assignment: list[int]) -> dict[str, object]:
    prior = ramp(VALUES)
    form = published.lh_lip(prior, EPSILON, bins=size, assignment=assignment)
    channel, proof = mended(form.channel, prior, Budget(EPSILON))
    return {
        "way": "LH-LIP, published",
        "bins": size,
        "mse": form.mse,
        "lip": form.leakage.lip,
        "valid": form.leakage.lip <= EPSILON + 1e-9,
        "mended_mse": Histogram().error(channel, prior),
        "mended_lip": proof.lip,
    }


def _means(rows: Rows, key: str) -> list[float]:
    return [
        float(np.mean([number(r, key) for r in rows if r["bins"] == size])) for size in range(1, VALUES + 1)
    ]


def _see(rows: Rows, extra: Rows) -> tuple[str, ...]:
    valid = [r for r in rows if r["valid"]]
    most = max(number(r, "bins") for r in valid)
    mended_best = 1 + int(np.argmin(_means(rows, "mended_mse")))
    return (
        f"The published error falls as bins are added, because the leak grows: with more than {most:.0f} "
        "bins no function tried keeps ε = 1.",
        f"With the budget kept, the mean error is least at {mended_best} bins and then returns to that of "
        "no report.",
        "A hash chosen so that every bin is heavy enough reaches a root error of "
        f"{math.sqrt(number(extra[0], 'mse')):.4f}; "
        f"the best design {math.sqrt(number(extra[1], 'mse')):.4f}.",
    )


def _claims(rows: Rows, extra: Rows) -> tuple[Claim, ...]:
    mended_best = 1 + int(np.argmin(_means(rows, "mended_mse")))
    leaks = [number(r, "lip") for r in rows if 12 <= number(r, "bins") <= 16]
    spread = max(
        float(np.ptp([number(r, "mended_mse") for r in rows if r["bins"] == size]))
        for size in range(2, VALUES + 1)
    )
    return (
        Claim(
            "The best hashing size is 12 to 16 bins.",
            12 <= mended_best <= 16,
            f"Those functions leak {min(leaks):.2f} to {max(leaks):.2f}. A bin must have mass 1/(1+e^ε) = "
            "0.27 or more, so three bins at most; "
            f"with the budget kept {mended_best} bins are best on average.",
        ),
        Claim(
            "Different hash functions of one size differ in utility.",
            spread > 1e-4,
            "True: it matters which values share a bin.",
        ),
    )


def _draw(rows: Rows, extra: Rows) -> Picture:
    figure, axes = plots.canvas(2, 1, width=4.6, height=2.6, sharex=True)
    top, bottom = axes[:, 0]
    _dots(top, rows, "mse", root=True)
    x = list(range(1, VALUES + 1))
    mended_mean = np.sqrt(_means(rows, "mended_mse")).tolist()
    plots.lines([plots.Line("mended to keep ε, mean", "certified", "blue", x, mended_mean)], top)
    for row, ink in zip(extra, ("green", "black"), strict=True):
        width = plots.STYLES["best" if ink == "black" else "certified"]["linewidth"]
        top.axhline(
            math.sqrt(number(row, "mse")), color=plots.INKS[ink], linewidth=width, label=str(row["way"])
        )
    floor = 0.99 * math.sqrt(min(number(r, "mse") for r in rows))
    top.set_ylim(floor, None)
    top.axhspan(floor, math.sqrt(number(extra[1], "bound")), color="black", alpha=0.06, linewidth=0)
    top.set(ylabel="error per person, √(MSE / N)")
    _dots(bottom, rows, "lip", root=False)
    plots.forbidden(bottom, [0.5, VALUES + 0.5], [EPSILON, EPSILON])
    bottom.set(
        xlabel="number of bins",
        ylabel="real LIP level (nats)",
        xticks=range(2, VALUES + 1, 2),
        xlim=(0.5, VALUES + 0.5),
    )
    plots.legend(figure, top, columns=2)
    picture: Picture = figure
    return picture


def _dots(axes: Axes, rows: Rows, key: str, root: bool) -> None:
    for valid, label in ((False, "published, breaks ε"), (True, "published, keeps ε")):
        picked = [r for r in rows if r["valid"] is valid]
        y = [math.sqrt(number(r, key)) if root else number(r, key) for r in picked]
        face = plots.INKS["red"] if valid else "none"
        ink = plots.INKS["red"] if valid else plots.INKS["orange"]
        axes.plot(
            [number(r, "bins") for r in picked],
            y,
            "o",
            markersize=3,
            color=ink,
            markerfacecolor=face,
            markeredgewidth=0.6,
            label=label,
        )


FIGURE = Figure(9, "hashing", "How many bins to hash into", run)
