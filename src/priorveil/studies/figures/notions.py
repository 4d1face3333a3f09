"""Figures 2, 6 and 7: the order of privacy notions, latent secrets, and sets of priors and correlations."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import LDP, LIP, Pufferfish, leakage
from priorveil.priors import Array, Prior, PriorSet, Secret
from priorveil.queries import Histogram
from priorveil.studies import curves, published
from priorveil.studies.curves import COLOURS, Rows, Style, below, column
from priorveil.studies.figures import Outcome, Row, Settings, channel_row, draw_pairs, plan_row, sweep

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


def order(settings: Settings) -> Outcome:
    """Figure 2: the levels of random channels, priors and secrets under several notions."""
    rng = np.random.default_rng(settings.seed)
    count = 300 if settings.quick else 2000
    rows = [_random_levels(rng) for _ in range(count)]
    ratios = column(rows, "ldp") / column(rows, "lip")
    broken = {up: _violations(rows, up, across, low, high) for up, _, across, _, _, low, high in _PANELS}
    words = {
        "failures": sum(broken.values()),
        "checks": count * len(_PANELS),
        "broken": broken,
        "count": count,
    }
    words |= {"least_ratio": ratios.min(), "most_ratio": ratios.max()}
    return Outcome(rows, lambda: _draw_order(rows), {up: not number for up, number in broken.items()}, words)


def _random_levels(rng: np.random.Generator) -> Row:
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


def correlation(settings: Settings) -> Outcome:
    """Figure 6: the histogram error when a latent secret is protected, for three correlations with the value."""
    epsilons = np.linspace(0.25, 3.5, 9 if settings.quick else 27).tolist()
    rows = [
        {"values": size, "rho": rho, "epsilon": epsilon, **row}
        for size in CORRELATED_PRIORS
        for rho in _RHOS
        for epsilon in epsilons
        for row in _correlation_rows(size, rho, epsilon)
    ]

    def error(size: int, rho: float, kind: str = "best") -> Array:
        return column(rows, "mse", values=size, rho=rho, kind=kind)

    def first_released(rho: float) -> float:
        """The smallest epsilon at which five values can be released as they are."""
        return float(np.array(epsilons)[error(5, rho) < 1e-6].min(initial=math.inf))

    weak, ratio = first_released(0.3), error(2, 1.0, "published") / np.maximum(error(2, 1.0), 1e-12)
    verdicts = {
        "rising": below(error(5, 0.7), error(5, 1.0)) and below(error(5, 0.3), error(5, 0.7)),
        "zero error": weak <= 2 and bool((error(5, 1.0) > 0).all()),
        "theorem 2": all(below(error(2, rho, "published"), error(2, rho) * (1 + 1e-6)) for rho in _RHOS),
    }
    words = {"weak": weak, "medium": first_released(0.7), "most_ratio": ratio.max()}
    return Outcome(rows, lambda: _draw_correlation(rows), verdicts, words)


def _correlation_rows(size: int, rho: float, epsilon: float) -> list[Row]:
    """The best design, and the published form if there is one for this case."""
    prior, secret = CORRELATED_PRIORS[size], correlated_secret(CORRELATED_PRIORS[size], rho)
    rows = [{"kind": "best", **plan_row(design(prior, epsilon, Histogram(), secret, time_limit=10))}]
    if size == 5 and rho < 1:
        return rows
    form = published.binary_latent(prior, secret, epsilon) if size == 2 else published.rr_lip(prior, epsilon)
    return [*rows, {"kind": "published", **channel_row(form.channel, prior, secret=secret)}]


def _draw_correlation(rows: Rows) -> curves.Figure:
    shown = [{**row, "method": f"{row['kind']}, ρ = {row['rho']:g}"} for row in rows]  # noqa: RUF001
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


def bounded_priors(settings: Settings) -> Outcome:
    """Figure 7: a latent secret in a set of three, and two values with a prior in an interval."""
    epsilons = np.linspace(0.25, 3.0, 6 if settings.quick else 12).tolist()
    rng = np.random.default_rng([settings.seed, 7])
    copy = correlated_secret(_FIVE, 0.8).rows.T
    mixed = [0.6 * rng.dirichlet(np.ones(5), size=5) + 0.4 * copy for _ in range(3)]
    secrets = [_random_secret(_FIVE, given / given.sum(axis=1, keepdims=True)) for given in mixed]
    rows = sweep(epsilons, {"latent": partial(_latent_rows, secrets), "binary": _binary_rows}, _STYLES)
    lip, pufferfish, ldp, half = (
        column(rows, "mse", case="latent", method=m) for m in ("bp-lip", "pufferfish", "ldp", "bp-lip-half")
    )
    budgets, leaks = (column(rows, key, case="binary", method="published") for key in ("epsilon", "lip"))
    broken = budgets[leaks > budgets + 1e-9]
    verdicts = {
        "order": below(lip, pufferfish, 1e-7) and below(pufferfish, ldp, 1e-7),
        "not between": not (below(lip, ldp) and below(ldp, half)),
        "proposition 2": not len(broken),
    }
    words = {"too_much": len(broken), "budgets": len(budgets), "last": broken.max(initial=0)}
    leaking = [method for method in _STYLES if method != "none"]
    return Outcome(rows, lambda: draw_pairs(rows, _CASES, _STYLES, leaking), verdicts, words)


def _latent_rows(secrets: list[Secret], epsilon: float) -> dict[str, Row]:
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


def _binary_rows(epsilon: float) -> dict[str, Row]:
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
