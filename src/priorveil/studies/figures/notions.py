"""Figures 2 and 7: the order of privacy notions, on random channels and under sets of priors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import LDP, LIP, Pufferfish, leakage
from priorveil.priors import Prior, PriorSet, Secret
from priorveil.queries import Histogram
from priorveil.studies import plots, published
from priorveil.studies.figures.frame import (
    Claim,
    Figure,
    Outcome,
    Settings,
    below,
    channel_row,
    error_and_level_panels,
    plan_row,
)
from priorveil.studies.figures.latent import correlated
from priorveil.studies.plots import COLOURS, Rows, Style, column, curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

# -- figure 2: random channels -----------------------------------------------------------------------------

# Each panel: the column upwards and its name, the column across and its name, the stated implication, and the
# slopes of the lowest and the highest level that it allows (None: no lowest one).
_PANELS: tuple[tuple[str, str, str, str, str, float | None, float], ...] = (
    ("ldp", "LDP", "lip", "LIP", "ε-LDP ⇒ ε-LIP ⇒ 2ε-LDP", 1, 2),
    ("worst_case_lip", "worst-case LIP", "ldp", "LDP", "worst-case LIP = LDP", 1, 1),
    (
        "pufferfish",
        "Pufferfish",
        "latent_lip",
        "LIP of a latent secret",
        "ε-Pufferfish ⇒ ε-LIP ⇒ 2ε-Pufferfish",
        1,
        2,
    ),
    ("mil", "MIL", "lip", "LIP", "ε-LIP ⇒ ε-MIL", 0, 1),
    ("mip", "MIP", "lip", "LIP", "ε-LIP ⇒ ε-MIP", 0, 1),
    ("di_less_spread", "DI less prior spread", "lip", "LIP", "ε-LIP ⇒ (2ε+D)-DI; ε-DI ⇒ (ε+D)-LIP", None, 2),
)


def order(settings: Settings) -> Outcome:
    """The levels of random channels under every notion, and how often an implication fails."""
    rng = np.random.default_rng(settings.seed)
    count = 300 if settings.quick else 2000
    rows = [_random_levels(rng) for _ in range(count)]
    settings.done(1.0)
    ratios = column(rows, "ldp") / column(rows, "lip")
    broken = {text: _violations(rows, up, across, low, high) for up, _, across, _, text, low, high in _PANELS}
    return Outcome(
        rows=rows,
        draw=lambda: _draw_order(rows),
        caption=(
            f"The order of privacy notions: {count:,} random channels with 2 to 6 values, each with a random prior "
            "and a random latent secret. Lines are the stated implications; a point outside the shaded part would "
            "refute one. No mechanism is designed here, so there are no published or certified curves. D is the "
            "largest log ratio of two prior probabilities."
        ),
        see=(
            f"No channel refutes an implication ({sum(broken.values())} of {count * len(_PANELS):,} checks fail).",
            f"LDP is {ratios.min():.2f} to {ratios.max():.2f} times LIP: both ends of the stated range, 1 and 2, are "
            "nearly reached.",
            "Mutual information lies far below LIP: an average hides the worst case.",
        ),
        claims=tuple(
            Claim(f"{text}.", number == 0, f"{number} of {count:,} random channels break it.")
            for text, number in broken.items()
        ),
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
    return {
        "values": d,
        "reports": k,
        "lip": own.lip,
        "ldp": own.ldp,
        "worst_case_lip": LIP().epsilon(channel, PriorSet.all(d)),
        "latent_lip": latent.lip,
        "pufferfish": latent.pufferfish,
        "mil": own.mil,
        "mip": own.mip,
        "di": own.di,
        "prior_spread": spread,
        "di_less_spread": own.di - spread,
    }


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


def _draw_order(rows: Rows) -> Picture:
    figure, axes = plots.canvas(2, 3, width=2.33, height=2.2)
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


# -- figure 7: sets of priors and of correlations ----------------------------------------------------------

FIVE = Prior([0.1, 0.15, 0.2, 0.25, 0.3])
LOW, HIGH, TRUE = 0.15, 0.45, 0.3  # of Pr(X = 1), for the binary case
_SECRETS = 3
_STYLES: dict[str, Style] = {
    "bp-lip": ("best", "black", "BP-LIP at ε (best)"),
    "bp-lip-half": ("certified", "sky", "BP-LIP at ε/2"),
    "pufferfish": ("certified", "red", "Pufferfish at ε"),
    "ldp": ("ldp", "blue", "LDP at ε"),
    "none": ("baseline", "grey", "no report"),
    "published": ("published", "orange", "published (Proposition 2)"),
}
_CASES = {"latent": "latent secret, a set of correlations", "binary": "two values, prior in a set"}


def bounded(settings: Settings) -> Outcome:
    """Latent secrets in a set (five values), and a prior in a set (two values)."""
    epsilons = np.linspace(0.25, 3.0, 6 if settings.quick else 12).tolist()
    rng = np.random.default_rng([settings.seed, 7])
    copy = correlated(FIVE, 0.8).rows.T
    mixed = [0.6 * rng.dirichlet(np.ones(5), size=5) + 0.4 * copy for _ in range(_SECRETS)]
    secrets = [_random_secret(FIVE, given / given.sum(axis=1, keepdims=True)) for given in mixed]
    rows: list[dict[str, Any]] = []
    for i, epsilon in enumerate(epsilons):
        for case, found in (("latent", _latent_rows(epsilon, secrets)), ("binary", _binary_rows(epsilon))):
            shared = {"case": case, "epsilon": epsilon}
            rows += [{**shared, "method": m, "kind": _STYLES[m][0], **row} for m, row in found.items()]
        settings.done((i + 1) / len(epsilons))
    lip, pufferfish, ldp, half = (
        column(rows, "mse", case="latent", method=m) for m in ("bp-lip", "pufferfish", "ldp", "bp-lip-half")
    )
    budgets, leaks = (column(rows, key, case="binary", method="published") for key in ("epsilon", "lip"))
    broken = budgets[leaks > budgets + 1e-9]
    return Outcome(
        rows=rows,
        draw=lambda: _draw_bounded(rows),
        caption=(
            f"Left: five values, a known prior, and a latent secret whose correlation lies in a set of {_SECRETS}; "
            "every mechanism is the best for its notion. Right: two values with Pr(X = 1) only known to lie in "
            "[0.15, 0.45] (0.3 in truth), where the paper has a closed form, Proposition 2. Top: error; bottom: the "
            "LIP level, at worst over the set."
        ),
        see=(
            "All curves start from the same point: with no budget nothing is learnt beyond the prior.",
            f"Proposition 2 breaks its budget at {len(broken)} of {len(budgets)} budgets here (up to ε = "
            f"{broken.max(initial=0):.2f}); it needs e^-ε ≤ a/(1-b) ≤ e^ε, here ε ≥ 1.30.",
            "Pufferfish is stricter than LIP for the same set, and LDP, which protects the value itself, is "
            "strictest on the left.",
        ),
        claims=(
            Claim(
                "LIP allows more utility than Pufferfish, and Pufferfish more than LDP.",
                below(lip, pufferfish, 1e-7) and below(pufferfish, ldp, 1e-7),
                "Each feasible region contains the next, and the optima follow.",
            ),
            Claim(
                "With a latent secret LDP's error is not always between those of LIP at ε and ε/2.",
                not (below(lip, ldp) and below(ldp, half)),
                "LDP protects the value itself: it can be worse than LIP at ε/2, which protects only the secret.",
            ),
            Claim(
                "Proposition 2 is optimal for a binary prior in [a, b].",
                not len(broken),
                "Only where e^-ε ≤ a/(1-b) ≤ e^ε; elsewhere it leaks more than ε for some prior of the set.",
            ),
        ),
    )


def _latent_rows(epsilon: float, secrets: list[Secret]) -> dict[str, dict[str, Any]]:
    """The best mechanism for each notion, for all the secrets at once."""
    plans = {
        "bp-lip": design(FIVE, epsilon, Histogram(), secrets, time_limit=10),
        "bp-lip-half": design(FIVE, epsilon / 2, Histogram(), secrets, time_limit=10),
        "pufferfish": design(FIVE, epsilon, Histogram(), secrets, Pufferfish(), time_limit=10),
        "ldp": design(FIVE, epsilon, Histogram(), notion=LDP(), time_limit=10),
    }
    levels = {m: {"lip": LIP().epsilon(plan.channel, FIVE, secrets)} for m, plan in plans.items()}
    rows = {m: {**plan_row(plan), **levels[m]} for m, plan in plans.items()}
    return {**rows, "none": {"mse": Histogram().no_report(FIVE), "lip": 0.0}}


def _binary_rows(epsilon: float) -> dict[str, dict[str, Any]]:
    """Two values, the prior in an interval; the error is under the true prior, which the curator knows."""
    known, truth = PriorSet.interval([1 - HIGH, LOW], [1 - LOW, HIGH]), Prior([1 - TRUE, TRUE])
    channels = {
        "bp-lip": design(known, epsilon, Histogram(), time_limit=10).channel,
        "bp-lip-half": design(known, epsilon / 2, Histogram(), time_limit=10).channel,
        "ldp": published.k_rr(truth, epsilon).channel,
        "published": published.binary_bounded(LOW, HIGH, epsilon).channel,
    }
    rows = {m: channel_row(channel, truth, known) for m, channel in channels.items()}
    return {**rows, "none": {"mse": Histogram().no_report(truth), "lip": 0.0}}


def _draw_bounded(rows: Rows) -> Picture:
    leaking = {method: style for method, style in _STYLES.items() if method != "none"}
    return error_and_level_panels(
        {
            title: (
                curves(rows, _STYLES, "mse", root=True, case=case),
                curves(rows, leaking, "lip", case=case),
            )
            for case, title in _CASES.items()
        },
        height=2.3,
    )


FIGURES = (
    Figure(2, "notions", "The order of privacy notions", order),
    Figure(7, "bounded", "Notions under sets of priors and correlations", bounded),
)
