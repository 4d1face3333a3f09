# ruff: noqa: RUF001 (captions use the symbols of the paper)
"""Figures 2, 6 and 7: the order of privacy notions, latent secrets, and sets of priors and correlations."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import LDP, LIP, Pufferfish, leakage
from priorveil.priors import Array, Prior, PriorSet, Secret
from priorveil.queries import Histogram
from priorveil.studies import curves, published
from priorveil.studies.curves import COLOURS, Rows, Style, below, column
from priorveil.studies.figures import Figure, Outcome, Settings, channel_row, draw_pairs, label_rows, plan_row

# -- figure 2: random channels -----------------------------------------------------------------------------

# Each panel: the column upwards and its name, the column across and its name, the stated implication, and the
# slopes of the lowest and the highest level that it allows (None: no lowest one).
_LATENT = "LIP of a latent secret"
_PANELS: tuple[tuple[str, str, str, str, str, float | None, float], ...] = (
    ("ldp", "LDP", "lip", "LIP", "ε-LDP ⇒ ε-LIP ⇒ 2ε-LDP", 1, 2),
    ("worst_case_lip", "worst-case LIP", "ldp", "LDP", "worst-case LIP = LDP", 1, 1),
    ("pufferfish", "Pufferfish", "latent_lip", _LATENT, "ε-Pufferfish ⇒ ε-LIP ⇒ 2ε-Pufferfish", 1, 2),
    ("mil", "MIL", "lip", "LIP", "ε-LIP ⇒ ε-MIL", 0, 1),
    ("mip", "MIP", "lip", "LIP", "ε-LIP ⇒ ε-MIP", 0, 1),
    ("di_less_spread", "DI less prior spread", "lip", "LIP", "ε-LIP ⇒ (2ε+D)-DI; ε-DI ⇒ (ε+D)-LIP", None, 2),
)


@partial(Figure, 2, "notions", "The order of privacy notions")
def order(settings: Settings) -> Outcome:
    """The order of privacy notions: random channels with 2 to 6 values, random priors and random latent secrets.

    Lines are the stated implications; a point outside the shaded part would refute one. No mechanism is designed here,
    so there are no published or certified curves. D is the largest log ratio of two prior probabilities.
    """
    rng = np.random.default_rng(settings.seed)
    count = 300 if settings.quick else 2000
    rows = [_random_levels(rng) for _ in settings.track(range(count))]
    ratios = column(rows, "ldp") / column(rows, "lip")
    broken = {text: _violations(rows, up, across, low, high) for up, _, across, _, text, low, high in _PANELS}
    return Outcome(
        rows=rows,
        draw=lambda: _draw_order(rows),
        remarks=(
            f"No channel refutes an implication ({sum(broken.values())} of {count * len(_PANELS):,} checks fail).",
            f"LDP is {ratios.min():.2f} to {ratios.max():.2f} times LIP: both ends of the stated range, 1 and 2, are "
            "nearly reached.",
            "Mutual information lies far below LIP: an average hides the worst case.",
        ),
        claims={
            f"{text}.": (number == 0, f"{number} of {count:,} random channels break it.")
            for text, number in broken.items()
        },
    )


def _random_levels(rng: np.random.Generator) -> dict[str, Any]:
    """The levels of one random channel, sharp or flat, with a random prior and secret."""
    d, k, secrets = (int(rng.integers(2, 7)) for _ in range(3))
    draw = rng.dirichlet(np.full(d, 2.0))
    P = Prior(0.95 * draw / draw.sum() + 0.05 / d)  # away from zero
    sharpness = rng.uniform(0.05, 1.0)
    base = rng.dirichlet(np.full(k, rng.uniform(0.4, 4.0)), size=d)
    channel = Channel(sharpness * base + (1 - sharpness) * base.mean(axis=0))
    secret = _random_secret(P, rng.dirichlet(np.full(secrets, 0.7), size=d))
    own, latent = leakage(channel, P), leakage(channel, P, secret)
    spread = float(np.log(P.probabilities.max() / P.probabilities.min()))
    levels = {name: getattr(own, name) for name in ("lip", "ldp", "mil", "mip", "di")}
    levels |= {
        "latent_lip": latent.lip,
        "pufferfish": latent.pufferfish,
        "di_less_spread": levels["di"] - spread,
    }
    worst = LIP().epsilon(channel, PriorSet.all(d))
    return {"values": d, "reports": k, **levels, "worst_case_lip": worst, "prior_spread": spread}


def _random_secret(prior: Prior, given: np.ndarray) -> Secret:
    """The secret with `Pr(g | x) = given[x, g]`."""
    return Secret.from_joint((prior.probabilities[:, None] * given).T)


def _violations(rows: Rows, up: str, across: str, low: float | None, high: float) -> int:
    """How many channels break an implication."""
    x, y = column(rows, across), column(rows, up)
    slack = 1e-6 if low == high else 1e-9
    di = column(rows, "di") + column(rows, "prior_spread")  # the other side: ε-DI implies (ε+D)-LIP
    below_range = x > di + slack if low is None else y < low * x - slack
    return int((below_range | (y > high * x + slack)).sum())


def _draw_order(rows: Rows) -> curves.Figure:
    figure, axes = curves.canvas(2, 3, width=2.33, height=2.2)
    for panel, (up, name, across, base, text, low, high) in zip(axes.flat, _PANELS, strict=True):
        x, y, end = column(rows, across), column(rows, up), 4.0 if across == "ldp" else 2.5
        near = x <= end
        panel.plot(x[near], y[near], ".", color=COLOURS["blue"], markersize=2, alpha=0.6, markeredgewidth=0)
        ends = np.array([0.0, end])
        floor = np.full(2, panel.get_ylim()[0]) if low is None else low * ends
        panel.fill_between(ends, floor, high * ends, color=COLOURS["green"], alpha=0.15, linewidth=0)
        for edge in [high * ends] if low is None else [floor, high * ends]:
            panel.plot(ends, edge, color=COLOURS["green"], linewidth=1)
        panel.set(xlabel=f"{base} (nats)", ylabel=f"{name} (nats)", xlim=(0, end))
        panel.set_title(text, fontsize=7.5)
    return figure


# -- figure 6: a synthetic secret --------------------------------------------------------------------------

_RHOS = {1.0: "blue", 0.7: "red", 0.3: "green"}
CORRELATED_PRIORS = {5: Prior.uniform(5), 2: Prior([0.3, 0.7])}


def correlated_secret(prior: Prior, rho: float) -> Secret:
    """A secret correlated with the value by `rho`: the value itself, or with probability `1 - rho` another draw."""
    d = len(prior)
    return Secret(rho * np.eye(d) + (1 - rho) * np.tile(prior.probabilities, (d, 1)))


@partial(Figure, 6, "correlation", "Correlation with a latent secret")
def correlation(settings: Settings) -> Outcome:
    """Histogram error when a latent secret with correlation ρ to the value is protected.

    Left: five values, uniform; the paper has a closed form only for ρ = 1 (Theorem 3), and solves the others
    numerically. Right: two values, prior (0.3, 0.7), Theorem 2. Bottom: the LIP level of the secret.
    """
    epsilons = np.linspace(0.25, 3.5, 9 if settings.quick else 27).tolist()
    cases = [(size, rho) for size in CORRELATED_PRIORS for rho in _RHOS]
    rows = [
        {"values": size, "rho": rho, "epsilon": epsilon, **row}
        for size, rho in settings.track(cases)
        for epsilon in epsilons
        for row in _correlation_rows(size, rho, epsilon)
    ]

    def error(size: int, rho: float, kind: str = "best") -> Array:
        return column(rows, "mse", values=size, rho=rho, kind=kind)

    def first_released(rho: float) -> float:
        """The smallest epsilon at which five values can be released as they are."""
        return float(np.array(epsilons)[error(5, rho) < 1e-6].min(initial=math.inf))

    ratio = error(2, 1.0, "published") / np.maximum(error(2, 1.0), 1e-12)
    rising = below(error(5, 0.7), error(5, 1.0)) and below(error(5, 0.3), error(5, 0.7))
    optimal = [below(error(2, rho, "published"), error(2, rho) * (1 + 1e-6)) for rho in _RHOS]
    return Outcome(
        rows=rows,
        draw=lambda: _draw_correlation(rows),
        remarks=(
            f"Five values are released as they are from ε = {first_released(0.3):.2f} on with ρ = 0.3, and from "
            f"{first_released(0.7):.2f} on with ρ = 0.7.",
            f"Theorem 2 keeps its budget, but with ρ = 1 its MSE is up to {ratio.max():.1f} times the optimum.",
            "With a latent secret nothing is promised about the value itself: at zero error it is in the open.",
        ),
        claims={
            "A stronger correlation with the secret means a larger error.": (rising, ""),
            "With ρ = 0.3 the error is zero for every ε ≥ 2; with ρ = 1 it never is.": (
                first_released(0.3) <= 2 and bool((error(5, 1.0) > 0).all()),
                f"With this secret zero error starts at ε = {first_released(0.3):.2f}.",
            ),
            "Theorem 2 is optimal for two values.": (all(optimal), "It is private, but not optimal."),
        },
    )


def _correlation_rows(size: int, rho: float, epsilon: float) -> list[dict[str, Any]]:
    """The best design, and the published form if there is one for this case."""
    prior, secret = CORRELATED_PRIORS[size], correlated_secret(CORRELATED_PRIORS[size], rho)
    rows = [{"kind": "best", **plan_row(design(prior, epsilon, Histogram(), secret, time_limit=10))}]
    if size == 5 and rho < 1:
        return rows
    form = published.binary_latent(prior, secret, epsilon) if size == 2 else published.rr_lip(prior, epsilon)
    return [*rows, {"kind": "published", **channel_row(form.channel, prior, secret=secret)}]


def _draw_correlation(rows: Rows) -> curves.Figure:
    shown = [{**row, "method": f"{row['kind']}, ρ = {row['rho']:g}"} for row in rows]
    styles = {row["method"]: (row["kind"], _RHOS[row["rho"]], row["method"]) for row in shown}
    titles = {5: "five values, uniform", 2: "two values, (0.3, 0.7)"}
    return draw_pairs(shown, titles, styles, list(styles), "values")


# -- figure 7: sets of priors and of correlations ----------------------------------------------------------

_FIVE = Prior([0.1, 0.15, 0.2, 0.25, 0.3])
_STYLES: dict[str, Style] = {
    "bp-lip": ("best", "black", "BP-LIP at ε (best)"),
    "bp-lip-half": ("certified", "sky", "BP-LIP at ε/2"),
    "pufferfish": ("certified", "red", "Pufferfish at ε"),
    "ldp": ("ldp", "blue", "LDP at ε"),
    "none": ("baseline", "grey", "no report"),
    "published": ("published", "orange", "published (Proposition 2)"),
}
_CASES = {"latent": "latent secret, a set of correlations", "binary": "two values, prior in a set"}


@partial(Figure, 7, "bounded", "Notions under sets of priors and correlations")
def bounded_priors(settings: Settings) -> Outcome:
    """Left: five values, a known prior, and a latent secret whose correlation lies in a set of three.

    Every mechanism there is the best for its notion. Right: two values with Pr(X = 1) only known to lie in
    [0.15, 0.45] (0.3 in truth), where the paper has a closed form, Proposition 2. Top: error; bottom: the LIP level,
    at worst over the set.
    """
    epsilons = np.linspace(0.25, 3.0, 6 if settings.quick else 12).tolist()
    rng = np.random.default_rng([settings.seed, 7])
    copy = correlated_secret(_FIVE, 0.8).rows.T
    mixed = [0.6 * rng.dirichlet(np.ones(5), size=5) + 0.4 * copy for _ in range(3)]
    secrets = [_random_secret(_FIVE, given / given.sum(axis=1, keepdims=True)) for given in mixed]
    rows: list[dict[str, Any]] = []
    for epsilon in settings.track(epsilons):
        for case, found in (("latent", _latent_rows(epsilon, secrets)), ("binary", _binary_rows(epsilon))):
            rows += label_rows(found, _STYLES, case=case, epsilon=epsilon)
    lip, pufferfish, ldp, half = (
        column(rows, "mse", case="latent", method=m) for m in ("bp-lip", "pufferfish", "ldp", "bp-lip-half")
    )
    budgets, leaks = (column(rows, key, case="binary", method="published") for key in ("epsilon", "lip"))
    broken = budgets[leaks > budgets + 1e-9]
    return Outcome(
        rows=rows,
        draw=lambda: draw_pairs(rows, _CASES, _STYLES, [m for m in _STYLES if m != "none"]),
        remarks=(
            "All curves start from the same point: with no budget nothing is learnt beyond the prior.",
            f"Proposition 2 leaks too much at {len(broken)} of {len(budgets)} budgets, up to ε = "
            f"{broken.max(initial=0):.2f}.",
        ),
        claims={
            "LIP allows more utility than Pufferfish, and Pufferfish more than LDP.": (
                below(lip, pufferfish, 1e-7) and below(pufferfish, ldp, 1e-7),
                "Each feasible region contains the next, and the optima follow.",
            ),
            "With a latent secret LDP's error is not always between those of LIP at ε and ε/2.": (
                not (below(lip, ldp) and below(ldp, half)),
                "LDP protects the value itself: it can be worse than LIP at ε/2, which protects only the secret.",
            ),
            "Proposition 2 is optimal for a binary prior in [a, b].": (
                not len(broken),
                "Only where e^-ε ≤ a/(1-b) ≤ e^ε; elsewhere it leaks more than ε for some prior of the set.",
            ),
        },
    )


def _latent_rows(epsilon: float, secrets: list[Secret]) -> dict[str, dict[str, Any]]:
    """The best mechanism for each notion, for all the secrets at once."""
    plans = {
        "bp-lip": design(_FIVE, epsilon, Histogram(), secrets, time_limit=10),
        "bp-lip-half": design(_FIVE, epsilon / 2, Histogram(), secrets, time_limit=10),
        "pufferfish": design(_FIVE, epsilon, Histogram(), secrets, Pufferfish(), time_limit=10),
        "ldp": design(_FIVE, epsilon, Histogram(), notion=LDP(), time_limit=10),
    }
    levels = {m: {"lip": LIP().epsilon(plan.channel, _FIVE, secrets)} for m, plan in plans.items()}
    rows = {m: {**plan_row(plan), **levels[m]} for m, plan in plans.items()}
    return {**rows, "none": {"mse": Histogram().no_report(_FIVE), "lip": 0.0}}


def _binary_rows(epsilon: float) -> dict[str, dict[str, Any]]:
    """Two values, the prior in an interval; the error is under the true prior, which the curator knows."""
    low, high, truth = 0.15, 0.45, Prior([0.7, 0.3])  # of Pr(X = 1)
    known = PriorSet.interval([1 - high, low], [1 - low, high])
    channels = {
        "bp-lip": design(known, epsilon, Histogram(), time_limit=10).channel,
        "bp-lip-half": design(known, epsilon / 2, Histogram(), time_limit=10).channel,
        "ldp": published.k_rr(truth, epsilon).channel,
        "published": published.binary_bounded(low, high, epsilon).channel,
    }
    rows = {m: channel_row(channel, truth, known) for m, channel in channels.items()}
    return {**rows, "none": {"mse": Histogram().no_report(truth), "lip": 0.0}}
