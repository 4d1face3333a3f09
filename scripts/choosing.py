"""The pictures of docs/choosing.md: `python scripts/choosing.py` writes them to docs/figures."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt
import numpy as np

import priorveil as pv

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
STYLE = {
    "svg.hashsalt": "priorveil",  # the same picture twice is the same file
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def errors() -> plt.Figure:
    """Error of a histogram against epsilon, for every method, on twenty values with a Zipf prior."""
    prior, query = pv.Prior.zipf(20), pv.Histogram()
    levels = np.linspace(0.25, 4.0, 16)
    lines = {
        "best LDP mechanism": [
            pv.design(prior, e, query, notion=pv.LDP(), method="subset").expected_mse for e in levels
        ],
        "unary": [pv.design(prior, e, query, method="unary").expected_mse for e in levels],
        "arc": [pv.design(prior, e, query, method="arc").expected_mse for e in levels],
        "columns (auto)": [pv.design(prior, e, query).expected_mse for e in levels],
    }
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    axes.axhline(query.no_report(prior), color="0.6", lw=1, ls=":")
    axes.text(4.0, query.no_report(prior), "no report", ha="right", va="bottom", color="0.4")
    for (name, line), style in zip(lines.items(), ("--", "-.", "-", "-"), strict=True):
        axes.plot(levels, line, style, label=name, lw=2.4 if "auto" in name else 1.3)
    axes.set(xlabel="epsilon", ylabel="error per person", ylim=(0, 1), xlim=(0.2, 4.05))
    axes.legend(frameon=False, loc="lower left")
    return figure


def channels() -> plt.Figure:
    """The lifts of the best channel for each query, on the same prior."""
    prior = pv.Prior([0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
    asked = {
        "Histogram": pv.Histogram(),
        "Sum": pv.Sum(range(6)),
        "Guess": pv.Guess(),
        "Distribution": pv.Distribution(),
    }
    figure, panels = plt.subplots(1, 4, figsize=(7.4, 2.5), layout="constrained", sharey=True)
    for axes, (name, query) in zip(panels, asked.items(), strict=True):
        channel = pv.design(prior, 1.0, query).channel
        law = channel.output_law(prior)
        kept = np.argsort(-law)[:15]
        shade = axes.imshow(
            np.log(channel.lift(prior)[:, kept]), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto"
        )
        axes.set(title=f"{name}\n{len(law)} reports", xlabel="report", xticks=[])
    panels[0].set(ylabel="value", yticks=range(6), yticklabels=[f"{p:.2f}" for p in prior.probabilities])
    figure.colorbar(shade, ax=panels, label="log lift", ticks=[-1, 0, 1])
    return figure


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    with mpl.rc_context(STYLE):
        for name, draw in (("choosing-errors", errors), ("choosing-channels", channels)):
            draw().savefig(FIGURES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
