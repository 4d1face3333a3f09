"""Figures 1 to 4, 6, 7, 9 and 10, which need no surveys: small channels, notions, secrets, hashing and guesses."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import LDP, LIP, PriorOrSet, Pufferfish, leakage
from priorveil.priors import Budget, Prior, PriorSet, Secret
from priorveil.queries import Guess, Histogram
from priorveil.studies import published
from priorveil.studies.compare import certified_mixture
from priorveil.studies.figures import (
    FigureRow,
    FigureSettings,
    Outcome,
    channel_row,
    draw_pairs,
    plan_row,
    sweep,
)
from priorveil.words.plots import curves
from priorveil.words.plots.curves import COLOURS, FIGURE_STYLES, ResultRecords, below, column

# -- figure 1: a binary value with prior (.2, .8) at epsilon 0.6 -------------------------------------------

_BINARY, _EPSILON = Prior([0.2, 0.8]), 0.6
# The flip probabilities that the introduction of the paper prints; Theorem 3 gives 0.44 and 0.11.
_PRINTED = Channel([[0.45, 0.55], [0.10, 0.90]])


def introduction(settings: FigureSettings) -> Outcome:
    """Figure 1: Pr(report | value) of four mechanisms, for the prior (0.2, 0.8) at epsilon 0.6."""
    channels = {
        "LDP": ("ldp", published.k_rr(_BINARY, _EPSILON).channel),
        "LIP, numbers in\nthe introduction": ("published", _PRINTED),
        "LIP, Theorem 3": ("published", published.rr_lip(_BINARY, _EPSILON).channel),
        "best certified\nLIP": ("best", design(_BINARY, _EPSILON, Histogram()).channel),
    }
    rows = []
    for name, (kind, channel) in channels.items():
        levels, Q, P = channel_row(channel, _BINARY), channel.matrix, _BINARY.probabilities
        right = max(P @ np.diag(Q), P @ np.diag(Q[:, ::-1]))  # how often the value is read off the report
        flips = {**_off_diagonal(Q), "flips": 1 - float(right)}
        mechanism = {"mechanism": " ".join(name.split()), "kind": kind, **flips}
        rows.append({**mechanism, **levels, "error": math.sqrt(levels["mse"])})
    ldp, introduction_row, theorem, best = rows
    no_report = math.sqrt(Histogram().no_report(_BINARY))
    panels = {(name, _EPSILON): channel for name, (_, channel) in channels.items()}
    verdicts = {"fewer flips": best["flips"] < ldp["flips"], "smaller error": best["error"] <= ldp["error"]}
    words = {
        "ldp": ldp,
        "printed": introduction_row,
        "theorem": theorem,
        "best": best,
        "no_report": no_report,
    }
    return Outcome(rows, lambda: _draw_channels(_BINARY, panels), verdicts, words)


def _off_diagonal(Q: Array) -> dict[str, float]:
    return {"q01": float(Q[0, 1]), "q10": float(Q[1, 0])}


def draw_channel(axes: curves.Axes, channel: Channel, title: str) -> None:
    """A small channel as a map: a row for each value, a column for each report, darker is likelier."""
    curves.heat_map(axes, channel.matrix, np.char.mod("%.2f", channel.matrix), most=1.0)
    axes.set_xticks(range(len(channel.outputs)), [str(label) for label in channel.outputs])
    axes.set_yticks(range(len(channel.inputs)), [str(label) for label in channel.inputs])
    axes.set(xlabel="report", ylabel="value", title=title)


def _draw_channels(prior: Prior, channels: dict[tuple[str, float], Channel]) -> curves.Figure:
    """Maps of channels by title and budget, a row of four for each budget; below each its level and its error."""
    figure, axes = curves.canvas(len(channels) // 4, 4, width=1.75, height=2.0)
    for panel, ((title, epsilon), channel) in zip(axes.flat, channels.items(), strict=True):
        draw_channel(panel, channel, title if panel in axes[0] else "")
        row = channel_row(channel, prior)
        colour = COLOURS["red"] if row["lip"] > epsilon + 1e-6 else "black"
        panel.set_xlabel(f"leaks {row['lip']:.3f}\nerror {math.sqrt(row['mse']):.3f}", color=colour)
        panel.set_ylabel(f"ε = {epsilon:g}\nvalue" if panel in axes[:, 0] else "")
    return figure


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


def order(settings: FigureSettings) -> Outcome:
    """Figure 2: the levels of random channels, priors and secrets under several notions."""
    rng = np.random.default_rng(settings.seed)
    count = 300 if settings.quick else 2000
    rows = [_random_levels(rng) for _ in range(count)]
    ratios = column(rows, "ldp") / column(rows, "lip")
    failures = {up: _violations(rows, up, across, low, high) for up, _, across, _, _, low, high in _PANELS}
    words: FigureRow = {"failures": sum(failures.values()), "checks": count * len(_PANELS), "count": count}
    words |= {"broken": failures, "least_ratio": ratios.min(), "most_ratio": ratios.max()}
    return Outcome(
        rows, lambda: _draw_order(rows), {up: not number for up, number in failures.items()}, words
    )


def _random_levels(rng: np.random.Generator) -> FigureRow:
    """The levels of one random channel, sharp or flat, with a random prior and secret."""
    d, k, secrets = (int(rng.integers(2, 7)) for _ in range(3))
    draw = rng.dirichlet(np.full(d, 2.0))
    P = Prior(0.95 * draw / draw.sum() + 0.05 / d)  # away from zero
    sharpness = rng.uniform(0.05, 1.0)
    base = rng.dirichlet(np.full(k, rng.uniform(0.4, 4.0)), size=d)
    channel = Channel(sharpness * base + (1 - sharpness) * base.mean(axis=0))
    secret = _secret_of(P, rng.dirichlet(np.full(secrets, 0.7), size=d))
    direct, latent = leakage(channel, P), leakage(channel, P, secret)
    spread = float(np.log(P.probabilities.max() / P.probabilities.min()))
    levels = {name: getattr(direct, name) for name in ("lip", "ldp", "mil", "mip", "di")}
    levels |= {"latent_lip": latent.lip, "pufferfish": latent.pufferfish}
    levels["di_less_spread"] = levels["di"] - spread
    worst = LIP().epsilon(channel, PriorSet.all(d))
    return {"values": d, "reports": k, **levels, "worst_case_lip": worst, "prior_spread": spread}


def _secret_of(prior: Prior, secret_law: Array) -> Secret:
    """The secret with `Pr(g | x) = secret_law[x, g]`."""
    return Secret.from_joint((prior.probabilities[:, None] * secret_law).T)


def _violations(rows: ResultRecords, up: str, across: str, low: float | None, high: float) -> int:
    """How many channels break an implication."""
    x, y = column(rows, across), column(rows, up)
    slack = 1e-6 if low == high else 1e-9
    di = column(rows, "di") + column(rows, "prior_spread")  # the other side: ε-DI implies (ε+D)-LIP
    below_range = x > di + slack if low is None else y < low * x - slack
    return int((below_range | (y > high * x + slack)).sum())


def _draw_order(rows: ResultRecords) -> curves.Figure:
    figure, axes = curves.canvas(2, 3, width=2.33, height=2.2)
    for panel, (up, name, across, base, text, low, high) in zip(axes.flat, _PANELS, strict=True):
        x, y, end = column(rows, across), column(rows, up), 4.0 if across == "ldp" else 2.5
        inside = x <= end
        panel.plot(
            x[inside], y[inside], ".", color=COLOURS["blue"], markersize=2, alpha=0.6, markeredgewidth=0
        )
        ends = np.array([0.0, end])
        floor = np.full(2, panel.get_ylim()[0]) if low is None else low * ends
        panel.fill_between(ends, floor, high * ends, color=COLOURS["green"], alpha=0.15, linewidth=0)
        for edge in [high * ends] if low is None else [floor, high * ends]:
            panel.plot(ends, edge, color=COLOURS["green"], linewidth=1)
        panel.set(xlabel=f"{base} (nats)", ylabel=f"{name} (nats)", xlim=(0, end))
        panel.set_title(text, fontsize=7.5)
    return figure


# -- figure 3: the feasible region of binary LIP -----------------------------------------------------------

# One case in which the published point keeps the budget, and that of figure 1, in which it does not.
_REGIONS = (([0.4, 0.6], 1.0), ([0.2, 0.8], 0.6))


def regions(settings: FigureSettings) -> Outcome:
    """Figure 3: flip probabilities that keep the budget, contours of Var(estimate), and three mechanisms."""
    rows = []
    for P, epsilon in _REGIONS:
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
            levels = {**_off_diagonal(Q), "variance": variance, **channel_row(channel, prior)}
            rows.append({**shared, **levels, "tight": int(tight.sum())})
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
    one, other = np.array([1 - q0, q0]), np.array([q1, 1 - q1])  # Pr(report | value) of both reports
    with np.errstate(divide="ignore", invalid="ignore"):
        law = P[0] * one + P[1] * other
        ratios = np.array([one / law, other / law, one / other])
        levels = np.nan_to_num(np.abs(np.log(ratios)), posinf=50).max(axis=1)
    return levels[:2].max(axis=0), levels[2]


def estimate_variance(prior: Prior, q0: Array, q1: Array) -> Array:
    """`Var(E[X | Y])` of a binary value, for flip probabilities `q0` and `q1`."""
    P = prior.probabilities
    law = P[0] * q0 + P[1] * (1 - q1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num((P[0] * P[1] * (1 - q0 - q1)) ** 2 / (law * (1 - law))))


def _draw_regions(rows: ResultRecords) -> curves.Figure:
    """Across: `Pr(report 1 | value 0)`; up: `Pr(report 0 | value 1)`."""
    figure, axes = curves.canvas(1, 2, height=3.1)
    q0, q1 = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))
    for panel, (P, epsilon) in zip(axes[0], _REGIONS, strict=True):
        lip, ldp = binary_levels(Prior(P), q0, q1)
        panel.contourf(q0, q1, lip <= epsilon + 1e-12, [0.5, 1.5], colors=[COLOURS["sky"]], alpha=0.4)
        panel.contour(q0, q1, ldp, [epsilon], colors=COLOURS["orange"], linewidths=1.2, linestyles="dotted")
        variance = estimate_variance(Prior(P), q0, q1)
        contours = panel.contour(q0, q1, variance, 8, colors=COLOURS["grey"], linewidths=0.6)
        panel.clabel(contours, fontsize=6, fmt="%.2f")
        for row in (row for row in rows if row["epsilon"] == epsilon):
            curves.line(panel, FIGURE_STYLES["regions"][row["kind"]], row["q01"], row["q10"])
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


def parameters(settings: FigureSettings) -> Outcome:
    """Figure 4: Pr(report | value) for the prior (0.1, 0.2, 0.7) at two epsilons."""
    channels = _ternary_channels(1.0) | _ternary_channels(3.0)
    levels = {key: channel_row(channel, _TERNARY) for key, channel in channels.items()}
    rows = [
        {"epsilon": eps, "kind": kind, **levels[kind, eps]} | {"value": x + 1, "report": y, "probability": q}
        for (kind, eps), channel in channels.items()
        for (x, y), q in np.ndenumerate(channel.matrix)
    ]
    truth = {key: np.diag(channel.matrix) for key, channel in channels.items() if key[0] != "best"}
    leak = levels["published", 1.0]["lip"]
    panels = {(_TITLES[kind], eps): channel for (kind, eps), channel in channels.items()}
    certified = channels["certified", 1.0].matrix
    verdicts = {
        "more truth": all((truth[kind, 3.0] > truth[kind, 1.0]).all() for kind in ("certified", "ldp")),
        "rare as likely": bool((certified[:2, 2] > np.diag(certified)[:2]).all()),
    }
    words = {"leak": leak, "factor": math.exp(leak)}
    return Outcome(rows, lambda: _draw_channels(_TERNARY, panels), verdicts, words)


def _ternary_channels(epsilon: float) -> dict[tuple[str, float], Channel]:
    """The channels by kind and budget."""
    form, best = published.rr_lip(_TERNARY, epsilon).channel, design(_TERNARY, epsilon, Histogram()).channel
    certified, _ = certified_mixture(form, _TERNARY, Budget(epsilon))
    order = np.lexsort((-best.output_law(_TERNARY), best.lift(_TERNARY).argmax(axis=0)))
    return {
        ("published", epsilon): form,
        ("certified", epsilon): Channel(certified.matrix, _TERNARY.labels, _TERNARY.labels),
        ("best", epsilon): Channel(best.matrix[:, order], best.inputs, "abc"[: len(order)]),
        ("ldp", epsilon): published.k_rr(_TERNARY, epsilon).channel,
    }


# -- figure 6: a synthetic secret --------------------------------------------------------------------------

_RHOS = {1.0: "blue", 0.7: "red", 0.3: "green"}
CORRELATED_PRIORS = {5: Prior.uniform(5), 2: Prior([0.3, 0.7])}


def correlated_secret(prior: Prior, rho: float) -> Secret:
    """A secret correlated with the value by `rho`: the value itself, or with probability `1 - rho` another draw."""
    d = len(prior)
    return Secret(rho * np.eye(d) + (1 - rho) * np.tile(prior.probabilities, (d, 1)))


def correlation(settings: FigureSettings) -> Outcome:
    """Figure 6: the histogram error when a latent secret is protected, for three correlations with the value."""
    epsilons = np.linspace(0.25, 3.5, 9 if settings.quick else 27).tolist()
    rows = [
        {"values": size, "rho": rho, "epsilon": epsilon, **row}
        for size, rho, epsilon in product(CORRELATED_PRIORS, _RHOS, epsilons)
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


def _correlation_rows(size: int, rho: float, epsilon: float) -> list[FigureRow]:
    """The best design, and the published form if there is one for this case."""
    prior, secret = CORRELATED_PRIORS[size], correlated_secret(CORRELATED_PRIORS[size], rho)
    rows = [{"kind": "best", **plan_row(design(prior, epsilon, Histogram(), secret, time_limit=10))}]
    if size == 5 and rho < 1:
        return rows
    form = published.binary_latent(prior, secret, epsilon) if size == 2 else published.rr_lip(prior, epsilon)
    return [*rows, {"kind": "published", **channel_row(form.channel, prior, secret=secret)}]


def _draw_correlation(rows: ResultRecords) -> curves.Figure:
    curve_rows = [{**row, "method": f"{row['kind']}, ρ = {row['rho']:g}"} for row in rows]  # noqa: RUF001
    styles = {row["method"]: (row["kind"], _RHOS[row["rho"]], row["method"]) for row in curve_rows}
    titles = {5: "five values, uniform", 2: "two values, (0.3, 0.7)"}
    return draw_pairs(curve_rows, titles, styles, list(styles), "values")


# -- figure 7: sets of priors and of correlations ----------------------------------------------------------

_FIVE = Prior([0.1, 0.15, 0.2, 0.25, 0.3])
_STYLES = FIGURE_STYLES["bounded"]
_CASES = {"latent": "latent secret, a set of correlations", "binary": "two values, prior in a set"}


def bounded_priors(settings: FigureSettings) -> Outcome:
    """Figure 7: a latent secret in a set of three, and two values with a prior in an interval."""
    epsilons = np.linspace(0.25, 3.0, 6 if settings.quick else 12).tolist()
    rng = np.random.default_rng([settings.seed, 7])
    copy = correlated_secret(_FIVE, 0.8).rows.T
    laws = [0.6 * rng.dirichlet(np.ones(5), size=5) + 0.4 * copy for _ in range(3)]
    secrets = [_secret_of(_FIVE, law / law.sum(axis=1, keepdims=True)) for law in laws]
    rows = sweep(epsilons, {"latent": partial(_latent_rows, secrets), "binary": _binary_rows}, _STYLES)
    methods = ("bp-lip", "pufferfish", "ldp", "bp-lip-half")
    lip, pufferfish, ldp, half = (column(rows, "mse", case="latent", method=m) for m in methods)
    budgets, leaks = (column(rows, key, case="binary", method="published") for key in ("epsilon", "lip"))
    broken_budgets = budgets[leaks > budgets + 1e-9]
    verdicts = {
        "order": below(lip, pufferfish, 1e-7) and below(pufferfish, ldp, 1e-7),
        "not between": not (below(lip, ldp) and below(ldp, half)),
        "proposition 2": not len(broken_budgets),
    }
    words = {"too_much": len(broken_budgets), "budgets": len(budgets), "last": broken_budgets.max(initial=0)}
    leaking = [method for method in _STYLES if method != "none"]
    return Outcome(rows, lambda: draw_pairs(rows, _CASES, _STYLES, leaking), verdicts, words)


def _latent_rows(secrets: list[Secret], epsilon: float) -> dict[str, FigureRow]:
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


def _binary_rows(epsilon: float) -> dict[str, FigureRow]:
    """Two values, the prior in an interval; the error is under the true prior, which the curator knows."""
    low, high, truth = 0.15, 0.45, Prior([0.7, 0.3])  # Pr(X = 1) is between low and high
    priors = PriorSet.interval([1 - high, low], [1 - low, high])
    channels = {
        "bp-lip": design(priors, epsilon, Histogram(), time_limit=10).channel,
        "bp-lip-half": design(priors, epsilon / 2, Histogram(), time_limit=10).channel,
        "ldp": published.k_rr(truth, epsilon).channel,
        "published": published.binary_bounded(low, high, epsilon).channel,
    }
    rows = {m: channel_row(channel, truth, priors) for m, channel in channels.items()}
    return {**rows, "none": {"mse": Histogram().no_report(truth), "lip": 0.0}}


# -- figure 9: hash functions on 20 values -----------------------------------------------------------------

_VALUES, _HASH_EPSILON = 20, 1.0
_HASH_STYLES = FIGURE_STYLES["hashing"]


def rising_prior(size: int) -> Prior:
    """A prior that rises evenly: `P[x]` proportional to `x + 1`."""
    return Prior.from_counts(list(range(1, size + 1)))


def hashing(settings: FigureSettings) -> Outcome:
    """Figure 9: random hash functions on 20 values, for each number of bins."""
    rng, prior = np.random.default_rng([settings.seed, 9]), rising_prior(_VALUES)
    count = 12 if settings.quick else 100
    sizes = [1, *np.repeat(np.arange(2, _VALUES + 1), count).tolist()]  # only one function has a single bin
    rows = [_hash_row(prior, size, rng.integers(size, size=_VALUES).tolist()) for size in sizes]
    heavy = plan_row(design(prior, _HASH_EPSILON, Histogram(), method="hashing"))
    best = plan_row(design(prior, _HASH_EPSILON, Histogram(), time_limit=10))
    certified = {size: column(rows, "certified_mse", bins=size) for size in range(1, _VALUES + 1)}
    best_size = min(certified, key=lambda size: float(certified[size].mean()))
    spread = max(float(np.ptp(errors)) for errors in certified.values())
    leaks = [row["lip"] for row in rows if 12 <= row["bins"] <= 16]
    words = {"count": count, "best_size": best_size, "leaks": (min(leaks), max(leaks))}
    words |= {"most": max(row["bins"] for row in rows if row["valid"])}
    words |= {"heavy": math.sqrt(heavy["mse"]), "best": math.sqrt(best["mse"])}
    designs = [{"method": _HASH_STYLES[name][2], **row} for name, row in (("heavy", heavy), ("best", best))]
    verdicts = {"best size": 12 <= best_size <= 16, "differ": spread > 1e-4}
    return Outcome([*rows, *designs], partial(_draw_hashing, rows, certified, heavy, best), verdicts, words)


def _hash_row(prior: Prior, size: int, assignment: list[int]) -> FigureRow:
    form = published.lh_lip(prior, _HASH_EPSILON, assignment)
    channel, proof = certified_mixture(form.channel, prior, Budget(_HASH_EPSILON))
    level = form.leakage.lip
    row = {"method": "LH-LIP, published", "bins": size, "mse": form.mse, "lip": level}
    certified = {"certified_mse": Histogram().error(channel, prior), "certified_lip": proof.lip}
    return {**row, "valid": level <= _HASH_EPSILON + 1e-9, **certified}


def _draw_hashing(
    rows: ResultRecords, certified: dict[int, Array], heavy: FigureRow, best: FigureRow
) -> curves.Figure:
    figure, axes = curves.canvas(2, 1, width=4.6, height=2.6, sharex=True)
    top, bottom = axes[:, 0]
    for valid, name in ((False, "breaks"), (True, "keeps")):
        bins, errors, levels = (column(rows, key, valid=valid) for key in ("bins", "mse", "lip"))
        curves.line(top, _HASH_STYLES[name], bins, np.sqrt(errors))
        curves.line(bottom, _HASH_STYLES[name], bins, levels)
    means = np.sqrt([errors.mean() for errors in certified.values()])
    sizes, floor = np.array(list(certified)), 0.99 * math.sqrt(column(rows, "mse").min())
    curves.line(top, _HASH_STYLES["mixed"], sizes, means)
    curves.line(top, _HASH_STYLES["heavy"], sizes, np.full(_VALUES, math.sqrt(heavy["mse"])))
    curves.line(top, _HASH_STYLES["best"], sizes, np.full(_VALUES, math.sqrt(best["mse"])))
    top.axhspan(floor, math.sqrt(best["bound"]), color="black", alpha=0.06, linewidth=0)
    top.set(ylabel=curves.ROOT_ERROR, ylim=(floor, None))
    curves.shade_violations(bottom, [0.5, _VALUES + 0.5], [_HASH_EPSILON, _HASH_EPSILON])
    ticks = range(2, _VALUES + 1, 2)
    bottom.set(xlabel="number of bins", ylabel=curves.LEVEL, xticks=ticks, xlim=(0.5, _VALUES + 0.5))
    curves.legend(figure, top, columns=2)
    return figure


# -- figure 10: guesses, by Hamming distance ---------------------------------------------------------------

FIVE_VALUES = {"uniform": Prior.uniform(5), "skewed": Prior([0.025] * 4 + [0.9])}
_MOST = 0.3  # Pr(X = 1) is known not to exceed this
_GUESS_STYLES = FIGURE_STYLES["hamming"]


def guesses(settings: FigureSettings) -> Outcome:
    """Figure 10: the share of people whose guess is wrong, for two values and for five."""
    epsilons = np.linspace(0.5, 4.0, 8 if settings.quick else 15).tolist()
    five = {name: partial(_guesses, prior) for name, prior in FIVE_VALUES.items()}
    rows = sweep(epsilons, {"binary": _binary_guesses, **five}, _GUESS_STYLES)

    def wrong(case: str, method: str) -> Array:
        return column(rows, "wrong", case=case, method=method)

    # How much more often a guess is wrong under LDP: if the report is the guess, and with the best guess.
    report_gap = {case: float((wrong(case, "ldp") - wrong(case, "certified")).max()) for case in FIVE_VALUES}
    guess_gap = {case: float((wrong(case, "ldp-guess") - wrong(case, "best")).max()) for case in FIVE_VALUES}
    verdicts = {
        "binary": bool((wrong("binary", "certified") < wrong("binary", "ldp") - 1e-6).all()),
        "five values": all(below(wrong(case, "certified"), wrong(case, "ldp")) for case in FIVE_VALUES),
        "advantage grows": report_gap["skewed"] > report_gap["uniform"],
    }
    excess = (column(rows, "lip", case="binary", method="published") - epsilons).max()
    titles = {"binary": "two values, Pr(1) ≤ 0.3"} | {name: f"five values, {name}" for name in FIVE_VALUES}
    draw = partial(draw_pairs, rows, titles, _GUESS_STYLES, ("published", "ldp", "certified"), y="wrong")
    return Outcome(rows, draw, verdicts, {"excess": excess, "reported": report_gap, "guessed": guess_gap})


def _binary_guesses(epsilon: float) -> dict[str, FigureRow]:
    """Wrong guesses are linear in the prior, so their mean over the range is their value in its middle."""
    priors, middle = PriorSet.interval([1 - _MOST, 0.0], [1.0, _MOST]), Prior([1 - _MOST / 2, _MOST / 2])
    best = Channel(align_reports(design(priors, epsilon, Histogram()).channel.matrix))
    form, ldp = published.binary_bounded(0.0, _MOST, epsilon), published.k_rr(middle, epsilon)
    rows = _guess_rows({"published": form.channel, "certified": best, "ldp": ldp.channel}, middle, priors)
    return {**rows, "best": {"wrong": Guess().error(best, middle), "lip": rows["certified"]["lip"]}}


def _guesses(prior: Prior, epsilon: float) -> dict[str, FigureRow]:
    form, ldp = published.rr_lip(prior, epsilon), published.k_rr(prior, epsilon)
    certified, _ = certified_mixture(form.channel, prior, Budget(epsilon))
    plan = design(prior, epsilon, Guess(), time_limit=10)
    channels = {"published": form.channel, "certified": certified, "ldp": ldp.channel}
    best = {"wrong": plan.expected_mse, "bound": plan.lower_bound, "lip": plan.certificate.lip}
    return {**_guess_rows(channels, prior, prior), "best": best}


def _guess_rows(channels: dict[str, Channel], prior: Prior, public: PriorOrSet) -> dict[str, FigureRow]:
    """The share of wrong guesses: the report is the guess, the best guess from LDP, and that from no report."""
    rows = {}
    for method, channel in channels.items():
        wrong = 1 - float(prior.probabilities @ np.diag(channel.matrix))
        rows[method] = {"wrong": wrong, "lip": LIP().epsilon(channel, public)}
    rows["ldp-guess"] = {**rows["ldp"], "wrong": Guess().error(channels["ldp"], prior)}
    return {**rows, "none": {"wrong": Guess().no_report(prior), "lip": 0.0}}
