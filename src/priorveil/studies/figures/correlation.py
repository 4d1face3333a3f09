# ruff: noqa: RUF001 (captions use the symbols of the paper)
"""Figure 6: the value gives away a latent secret, more or less: correlation 1, 0.7 and 0.3."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from priorveil.designs import design
from priorveil.notions import leakage
from priorveil.priors import Prior, Secret
from priorveil.queries import Histogram
from priorveil.studies import plots, published
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting, number
from priorveil.studies.plots import Line
from priorveil.studies.published import Published

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

RHOS = {1.0: "blue", 0.7: "red", 0.3: "green"}
FIVE, TWO = Prior.uniform(5), Prior([0.3, 0.7])


def correlated(prior: Prior, rho: float) -> Secret:
    """A secret correlated with the value by `rho`: the value itself, or with `1 - rho` another draw."""
    d = len(prior)
    return Secret(rho * np.eye(d) + (1 - rho) * np.tile(prior.probabilities, (d, 1)))


def run(setting: Setting) -> Outcome:
    """Five values and two, at every correlation."""
    epsilons = np.linspace(0.25, 3.5, 9 if setting.quick else 27).tolist()
    rows: Rows = [
        row
        for prior in (FIVE, TWO)
        for rho in RHOS
        for epsilon in epsilons
        for row in _both(prior, rho, float(epsilon))
    ]
    setting.done(1.0)
    return Outcome(
        rows=rows,
        draw=lambda: _draw(rows),
        caption=(
            "Histogram error when a latent secret with correlation ρ to the value is protected. Left: five "
            "values, uniform; the paper has a closed form only for ρ = 1 (Theorem 3), and solves the others "
            "numerically. Right: two values, prior (0.3, 0.7), Theorem 2. Bottom: the LIP level of the "
            "secret."
        ),
        see=_see(rows),
        claims=_claims(rows),
    )


def _both(prior: Prior, rho: float, epsilon: float) -> list[dict[str, object]]:
    secret = correlated(prior, rho)
    plan = design(prior, epsilon, Histogram(), secret, time_limit=10)
    shared = {"values": len(prior), "rho": rho, "epsilon": epsilon}
    best = {
        "kind": "best",
        "mse": plan.expected_mse,
        "bound": plan.lower_bound,
        "lip": plan.certificate.lip,
        "ldp": plan.certificate.ldp,
    }
    form = _form(prior, secret, rho, epsilon)
    if form is None:
        return [{**shared, **best}]
    levels = leakage(form.channel, prior, secret)
    printed = {"kind": "published", "mse": form.mse, "lip": levels.lip, "ldp": levels.ldp}
    return [{**shared, **best}, {**shared, **printed}]


def _form(prior: Prior, secret: Secret, rho: float, epsilon: float) -> Published | None:
    """What the paper prints for this case, if anything."""
    if len(prior) == 2:
        return published.binary_latent(prior, secret, epsilon)
    return published.rr_lip(prior, epsilon) if rho == 1 else None


def _curve(rows: Rows, values: int, rho: float, kind: str, key: str) -> tuple[list[float], list[float]]:
    picked = [r for r in rows if (r["values"], r["rho"], r["kind"]) == (values, rho, kind)]
    return [number(r, "epsilon") for r in picked], [number(r, key) for r in picked]


def _silent(rows: Rows, values: int, rho: float) -> float:
    """The smallest epsilon at which the value can be released as it is."""
    x, y = _curve(rows, values, rho, "best", "mse")
    return min((e for e, mse in zip(x, y, strict=True) if mse < 1e-6), default=math.inf)


def _see(rows: Rows) -> tuple[str, ...]:
    x, best = _curve(rows, 2, 1.0, "best", "mse")
    _, printed = _curve(rows, 2, 1.0, "published", "mse")
    worst = max(range(len(x)), key=lambda i: printed[i] / max(best[i], 1e-12))
    return (
        "The weaker the correlation, the less noise; with ρ = 0.3 and five values the value is released as "
        "it is from "
        f"ε = {_silent(rows, 5, 0.3):.2f} on, with ρ = 0.7 from {_silent(rows, 5, 0.7):.2f} on.",
        "Theorem 2 keeps its budget but is not optimal: for ρ = 1 (where it is LDP's randomised response) "
        "its MSE is "
        f"{printed[worst] / best[worst]:.1f} times the optimum at ε = {x[worst]:.2f}.",
        "With a latent secret nothing is promised about the value itself: at zero error it is in the open.",
    )


def _claims(rows: Rows) -> tuple[Claim, ...]:
    curves = {rho: _curve(rows, 5, rho, "best", "mse")[1] for rho in RHOS}
    ordered = all(
        a >= b - 1e-9 >= c - 2e-9 for a, b, c in zip(curves[1.0], curves[0.7], curves[0.3], strict=True)
    )
    printed = [_curve(rows, 2, rho, "published", "mse")[1] for rho in RHOS]
    best = [_curve(rows, 2, rho, "best", "mse")[1] for rho in RHOS]
    optimal = all(
        p <= b * (1 + 1e-6) + 1e-9
        for ps, bs in zip(printed, best, strict=True)
        for p, b in zip(ps, bs, strict=True)
    )
    return (
        Claim(
            "A stronger correlation with the secret means a larger error.",
            ordered,
            "True of the optimal mechanisms at every ε.",
        ),
        Claim(
            "With ρ = 0.3 the error is zero for every ε ≥ 2; with ρ = 1 it never is.",
            _silent(rows, 5, 0.3) <= 2 and min(curves[1.0]) > 0,
            f"With this secret zero error starts at ε = {_silent(rows, 5, 0.3):.2f}.",
        ),
        Claim(
            "Theorem 2 is optimal for two values.",
            optimal,
            "It is private, but not optimal: see the right panels.",
        ),
    )


def _draw(rows: Rows) -> Picture:
    figure, axes = plots.canvas(2, 2, height=2.3, sharex=True)
    for column, (values, title) in enumerate(((5, "five values, uniform"), (2, "two values, (0.3, 0.7)"))):
        made = [line for rho, ink in RHOS.items() for line in _lines(rows, values, rho, ink)]
        top = plots.lines([line for line, _ in made], axes[0, column])
        top.set(ylabel="error per person, √(MSE / N)", title=title, ylim=(0, None))
        plots.leak_lines([level for _, level in made], axes[1, column])
    plots.legend(figure, axes[0, 0], axes[0, 1], columns=3)
    picture: Picture = figure
    return picture


def _lines(rows: Rows, values: int, rho: float, ink: str) -> list[tuple[Line, Line]]:
    made = []
    for kind in ("best", "published"):
        x, mse = _curve(rows, values, rho, kind, "mse")
        if not x:
            continue
        floor = np.sqrt(_curve(rows, values, rho, "best", "bound")[1]).tolist() if kind == "best" else None
        label = f"{'best' if kind == 'best' else 'published'}, ρ = {rho:g}"
        level = Line(label, kind, ink, x, _curve(rows, values, rho, kind, "lip")[1])
        made.append((Line(label, kind, ink, x, np.sqrt(mse).tolist(), floor), level))
    return made


FIGURE = Figure(6, "correlation", "Correlation with a latent secret", run)
