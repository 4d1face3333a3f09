"""Figures 1, 3 and 4: small channels, as published and as they should be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.priors import Array, Budget, Prior
from priorveil.queries import Histogram
from priorveil.studies import curves, published
from priorveil.studies.compare import certified_mixture
from priorveil.studies.curves import COLOURS, Rows, column
from priorveil.studies.figures import Outcome, Settings, channel_row

# -- figure 1: a binary value with prior (.2, .8) at epsilon 0.6 -------------------------------------------

_BINARY, _EPSILON = Prior([0.2, 0.8]), 0.6
# The flip probabilities that the introduction of the paper prints; Theorem 3 gives 0.44 and 0.11.
_PRINTED = Channel([[0.45, 0.55], [0.10, 0.90]])


def introduction(settings: Settings) -> Outcome:
    """Figure 1: Pr(report | value) of four mechanisms, for the prior (0.2, 0.8) at epsilon 0.6."""
    channels = {
        "LDP": ("ldp", published.k_rr(_BINARY, _EPSILON).channel),
        "LIP, numbers in\nthe introduction": ("published", _PRINTED),
        "LIP, Theorem 3": ("published", published.rr_lip(_BINARY, _EPSILON).channel),
        "best certified\nLIP": ("best", design(_BINARY, _EPSILON, Histogram()).channel),
    }
    rows = []
    for name, (kind, channel) in channels.items():
        found, Q, P = channel_row(channel, _BINARY), channel.matrix, _BINARY.probabilities
        right = max(P @ np.diag(Q), P @ np.diag(Q[:, ::-1]))  # how often the value is read off the report
        flips = {**_off_diagonal(Q), "flips": 1 - float(right)}
        shown = {"mechanism": " ".join(name.split()), "kind": kind, **flips}
        rows.append({**shown, **found, "error": math.sqrt(found["mse"])})
    ldp, printed, theorem, best = rows
    no_report = math.sqrt(Histogram().no_report(_BINARY))
    return Outcome(
        rows,
        lambda: _draw_channels(_BINARY, {(name, _EPSILON): channels[name][1] for name in channels}),
        {"fewer flips": best["flips"] < ldp["flips"], "smaller error": best["error"] <= ldp["error"]},
        {"ldp": ldp, "printed": printed, "theorem": theorem, "best": best, "no_report": no_report},
    )


def _off_diagonal(Q: Array) -> dict[str, float]:
    return {"q01": float(Q[0, 1]), "q10": float(Q[1, 0])}


def draw_channel(axes: curves.Axes, channel: Channel, title: str) -> None:
    """A small channel as a map: a row for each value, a column for each report, darker is likelier."""
    axes.imshow(channel.matrix, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.grid(False)
    for (x, y), q in np.ndenumerate(channel.matrix):
        colour = "white" if q > 0.55 else "black"
        axes.text(y, x, f"{q:.2f}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(range(len(channel.outputs)), [str(label) for label in channel.outputs])
    axes.set_yticks(range(len(channel.inputs)), [str(label) for label in channel.inputs])
    axes.set(xlabel="report", ylabel="value", title=title)


def _draw_channels(prior: Prior, channels: dict[tuple[str, float], Channel]) -> curves.Figure:
    """Maps of channels by title and budget, a row of four for each budget; below each its level and its error."""
    figure, axes = curves.canvas(len(channels) // 4, 4, width=1.75, height=2.0)
    for panel, ((title, epsilon), channel) in zip(axes.flat, channels.items(), strict=True):
        draw_channel(panel, channel, title if panel in axes[0] else "")
        found = channel_row(channel, prior)
        colour = COLOURS["red"] if found["lip"] > epsilon + 1e-6 else "black"
        panel.set_xlabel(f"leaks {found['lip']:.3f}\nerror {math.sqrt(found['mse']):.3f}", color=colour)
        panel.set_ylabel(f"ε = {epsilon:g}\nvalue" if panel in axes[:, 0] else "")
    return figure


# -- figure 3: the feasible region of binary LIP -----------------------------------------------------------

# One case in which the published point keeps the budget, and that of figure 1, in which it does not.
_CASES = (([0.4, 0.6], 1.0), ([0.2, 0.8], 0.6))
_MARKS: dict[str, tuple[str, str, int, str]] = {  # marker, colour, size, label
    "published": ("o", "red", 12, "published (Theorem 3)"),
    "best": ("*", "green", 10, "best LIP"),
    "ldp": ("s", "orange", 6, "RR-LDP"),
}


def regions(settings: Settings) -> Outcome:
    """Figure 3: flip probabilities that keep the budget, contours of Var(estimate), and three mechanisms."""
    rows = []
    for P, epsilon in _CASES:
        prior = Prior(P)
        channels = {
            "published": published.rr_lip(prior, epsilon).channel,
            "ldp": published.k_rr(prior, epsilon).channel,
            "best": design(prior, epsilon, Histogram()).channel,
        }
        for kind, channel in channels.items():
            Q = align_reports(channel.matrix)
            shared = {"prior": " ".join(f"{p:g}" for p in P), "epsilon": epsilon, "kind": kind}
            variance = float(estimate_variance(prior, Q[0, 1], Q[1, 0]))
            tight = np.abs(np.abs(np.log(channel.lift(prior))) - epsilon) < 1e-6  # constraints with equality
            found = {**_off_diagonal(Q), "variance": variance, **channel_row(channel, prior)}
            rows.append({**shared, **found, "tight": int(tight.sum())})
    leaks, budgets = (column(rows, key, kind="published") for key in ("lip", "epsilon"))
    verdicts = {
        "corner": bool((column(rows, "tight", kind="best") >= 2).all()),
        "theorem 3": bool((leaks <= budgets + 1e-9).all()),
    }
    return Outcome(rows, lambda: _draw_regions(rows), verdicts, {"leaks": leaks})


def align_reports(Q: Array) -> Array:
    """A binary channel with its reports in the order in which they are right most often."""
    return Q if Q[0, 0] + Q[1, 1] >= 1 else Q[:, ::-1]


def binary_levels(prior: Prior, q0: Array, q1: Array) -> tuple[Array, Array]:
    """The LIP and LDP levels of binary channels with flip probabilities `q0` and `q1`; at most 50."""
    P = prior.probabilities
    one, other = np.array([1 - q0, q0]), np.array([q1, 1 - q1])  # of both reports, given each value
    with np.errstate(divide="ignore", invalid="ignore"):
        law = P[0] * one + P[1] * other
        down, up, ldp = (
            np.nan_to_num(np.abs(np.log(x / y)), posinf=50).max(axis=0)
            for x, y in ((one, law), (other, law), (one, other))
        )
    return np.maximum(down, up), ldp


def estimate_variance(prior: Prior, q0: Array, q1: Array) -> Array:
    """`Var(E[X | Y])` of a binary value, for flip probabilities `q0` and `q1`."""
    P = prior.probabilities
    law = P[0] * q0 + P[1] * (1 - q1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num((P[0] * P[1] * (1 - q0 - q1)) ** 2 / (law * (1 - law))))


def _draw_regions(rows: Rows) -> curves.Figure:
    """Across: `Pr(report 1 | value 0)`; up: `Pr(report 0 | value 1)`."""
    figure, axes = curves.canvas(1, 2, height=3.1)
    q0, q1 = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))
    for panel, (P, epsilon) in zip(axes[0], _CASES, strict=True):
        lip, ldp = binary_levels(Prior(P), q0, q1)
        panel.contourf(q0, q1, lip <= epsilon + 1e-12, [0.5, 1.5], colors=[COLOURS["sky"]], alpha=0.4)
        panel.contour(q0, q1, ldp, [epsilon], colors=COLOURS["orange"], linewidths=1.2, linestyles="dotted")
        variance = estimate_variance(Prior(P), q0, q1)
        contours = panel.contour(q0, q1, variance, 8, colors=COLOURS["grey"], linewidths=0.6)
        panel.clabel(contours, fontsize=6, fmt="%.2f")
        for row in (row for row in rows if row["epsilon"] == epsilon):
            mark, colour, size, label = _MARKS[row["kind"]]
            style: dict[str, Any] = {"color": COLOURS[colour], "markersize": size, "label": label}
            style |= {"markerfacecolor": "none", "markeredgewidth": 1.8} if mark == "o" else {}
            panel.plot(row["q01"], row["q10"], mark, clip_on=False, zorder=6, **style)
        title = f"prior ({P[0]}, {P[1]}), ε = {epsilon:g}"
        panel.set(xlabel="Pr(report 1 | value 0)", ylabel="Pr(report 0 | value 1)")
        panel.set(title=title, xlim=(0, 1), ylim=(0, 1))
    axes[0, 0].plot([], [], color=COLOURS["sky"], alpha=0.5, linewidth=6, label="keeps LIP")
    axes[0, 0].plot([], [], color=COLOURS["orange"], linestyle="dotted", label="edge of LDP")
    axes[0, 0].plot([], [], color=COLOURS["grey"], linewidth=0.6, label="contours of Var(estimate)")
    curves.legend(figure, columns=3)
    return figure


# -- figure 4: the parameters for the prior (.1, .2, .7) at two epsilons -----------------------------------

_TERNARY = Prior([0.1, 0.2, 0.7], [1, 2, 3])
_TITLES = {
    "published": "published\n(Theorem 3)",
    "certified": "certified\n(mixture)",
    "best": "best LIP\n(reports a, b, c)",
    "ldp": "LDP\n(k-RR)",
}


def parameters(settings: Settings) -> Outcome:
    """Figure 4: Pr(report | value) for the prior (0.1, 0.2, 0.7) at two epsilons."""
    channels = {
        (kind, eps): channel for eps in (1.0, 3.0) for kind, channel in _ternary_channels(eps).items()
    }
    found = {key: channel_row(channel, _TERNARY) for key, channel in channels.items()}
    rows = [
        {"epsilon": eps, "kind": kind, **found[kind, eps]} | {"value": x + 1, "report": y, "probability": q}
        for (kind, eps), channel in channels.items()
        for (x, y), q in np.ndenumerate(channel.matrix)
    ]
    truth = {key: np.diag(channel.matrix) for key, channel in channels.items() if key[0] != "best"}
    leak = found["published", 1.0]["lip"]
    shown = {(_TITLES[kind], eps): channel for (kind, eps), channel in channels.items()}
    verdicts = {
        "more truth": all((truth[kind, 3.0] > truth[kind, 1.0]).all() for kind in ("certified", "ldp")),
        "rare as likely": bool(
            (channels["certified", 1.0].matrix[:2, 2] > truth["certified", 1.0][:2]).all()
        ),
    }
    return Outcome(
        rows, lambda: _draw_channels(_TERNARY, shown), verdicts, {"leak": leak, "factor": math.exp(leak)}
    )


def _ternary_channels(epsilon: float) -> dict[str, Channel]:
    form, best = published.rr_lip(_TERNARY, epsilon).channel, design(_TERNARY, epsilon, Histogram()).channel
    certified, _ = certified_mixture(form, _TERNARY, Budget(epsilon))
    order = np.lexsort((-best.output_law(_TERNARY), best.lift(_TERNARY).argmax(axis=0)))
    return {
        "published": form,
        "certified": Channel(certified.matrix, _TERNARY.labels, _TERNARY.labels),
        "best": Channel(best.matrix[:, order], best.inputs, "abc"[: len(order)]),
        "ldp": published.k_rr(_TERNARY, epsilon).channel,
    }
