"""Figure 2: the order of privacy notions, on random channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from priorveil.channels import Channel
from priorveil.notions import LIP, leakage
from priorveil.priors import Array, Prior, PriorSet, Secret
from priorveil.studies import plots
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_SLACK = 1e-9
# What is drawn upwards, the column across, the column up, and the stated implication.
_PANELS = (
    ("LDP", "lip", "ldp", "ε-LDP ⇒ ε-LIP ⇒ 2ε-LDP"),
    ("worst-case LIP", "ldp", "worst_case_lip", "worst-case LIP = LDP"),
    ("Pufferfish", "latent_lip", "pufferfish", "ε-Pufferfish ⇒ ε-LIP ⇒ 2ε-Pufferfish"),
    ("MIL", "lip", "mil", "ε-LIP ⇒ ε-MIL"),
    ("MIP", "lip", "mip", "ε-LIP ⇒ ε-MIP"),
    ("DI less prior spread", "lip", "di_less_spread", "ε-LIP ⇒ (2ε+D)-DI; ε-DI ⇒ (ε+D)-LIP"),
)


def run(setting: Setting) -> Outcome:
    """Levels of random channels under every notion, and how often an implication fails."""
    rng = np.random.default_rng(setting.seed)
    count = 300 if setting.quick else 2000
    rows: Rows = [_levels(rng) for _ in range(count)]
    setting.done(1.0)
    ratios = [float(str(row["ldp"])) / float(str(row["lip"])) for row in rows]
    broken = {name: int(sum(not _holds(name, row) for row in rows)) for name, *_ in _PANELS}
    return Outcome(
        rows=rows,
        draw=lambda: _draw(rows),
        caption=(
            f"The order of privacy notions: {count:,} random channels with 2 to 6 values, each with a "
            "random prior and a "
            "random latent secret. Lines are the stated implications; a point outside the shaded part would "
            "refute one. "
            "No mechanism is designed here, so there are no published or certified curves. D is the largest "
            "log ratio "
            "of two prior probabilities."
        ),
        see=(
            f"No channel refutes an implication ({sum(broken.values())} of {count * len(_PANELS):,} checks "
            "fail).",
            f"LDP is {min(ratios):.2f} to {max(ratios):.2f} times LIP: both ends of the stated range, 1 and "
            "2, are nearly reached.",
            "Mutual information lies far below LIP: an average hides the worst case.",
        ),
        claims=tuple(
            Claim(
                f"{text}.",
                broken[name] == 0,
                f"{broken[name]} of {count:,} random channels break it.",
            )
            for name, _, _, text in _PANELS
        ),
    )


def _levels(rng: np.random.Generator) -> dict[str, object]:
    """One random channel, prior and secret; sharp and flat ones alike."""
    d, k, secrets = (int(rng.integers(2, 7)) for _ in range(3))
    P = Prior(_mixed(rng.dirichlet(np.full(d, 2.0)), d))
    sharpness = rng.uniform(0.05, 1.0)
    base = rng.dirichlet(np.full(k, rng.uniform(0.4, 4.0)), size=d)
    channel = Channel(sharpness * base + (1 - sharpness) * base.mean(axis=0))
    secret = _secret(rng, P, secrets)
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


def _mixed(P: Array, d: int) -> Array:
    """Keep a random prior away from zero."""
    mixed: Array = 0.95 * P / P.sum() + 0.05 / d
    return mixed


def _secret(rng: np.random.Generator, prior: Prior, secrets: int) -> Secret:
    """A secret drawn so that it fits the prior: from a random joint law with this marginal."""
    given = rng.dirichlet(np.full(secrets, 0.7), size=len(prior))
    return Secret.from_joint((prior.probabilities[:, None] * given).T)


def _holds(name: str, row: object) -> bool:
    levels = {key: float(value) for key, value in dict(row).items() if value is not None}  # type: ignore[call-overload]
    lip, ldp, spread = levels["lip"], levels["ldp"], levels["prior_spread"]
    within = {
        "LDP": lip <= ldp + _SLACK and ldp <= 2 * lip + _SLACK,
        "worst-case LIP": abs(levels["worst_case_lip"] - ldp) <= 1e-6,
        "Pufferfish": levels["latent_lip"] <= levels["pufferfish"] + _SLACK
        and levels["pufferfish"] <= 2 * levels["latent_lip"] + _SLACK,
        "MIL": levels["mil"] <= lip + _SLACK,
        "MIP": levels["mip"] <= lip + _SLACK,
        "DI less prior spread": levels["di"] <= 2 * lip + spread + _SLACK
        and lip <= levels["di"] + spread + _SLACK,
    }
    return within[name]


def _draw(rows: Rows) -> Picture:
    figure, axes = plots.canvas(2, 3, width=2.33, height=2.2)
    names = {"lip": "LIP", "ldp": "LDP", "latent_lip": "LIP of a latent secret"}
    for panel, (name, across, up, text) in zip(axes.ravel(), _PANELS, strict=True):
        x, y = (np.array([float(str(row[key])) for row in rows]) for key in (across, up))
        end = 4.0 if across == "ldp" else 2.5
        inside = x <= end
        panel.plot(
            x[inside], y[inside], ".", color=plots.INKS["blue"], markersize=2, alpha=0.6, markeredgewidth=0
        )
        _implied(panel, name, end)
        panel.set(xlabel=f"{names[across]} (nats)", ylabel=f"{name} (nats)", xlim=(0, end))
        panel.set_title(text, fontsize=7.5)
    picture: Picture = figure
    return picture


def _implied(axes: Axes, name: str, end: float) -> None:
    """Shade where an implication allows a channel to be."""
    x = np.array([0.0, end])
    low, high = {
        "LDP": (x, 2 * x),
        "worst-case LIP": (x, x),
        "Pufferfish": (x, 2 * x),
        "MIL": (0 * x, x),
        "MIP": (0 * x, x),
        "DI less prior spread": (None, 2 * x),
    }[name]
    floor = np.full(2, axes.get_ylim()[0]) if low is None else low
    axes.fill_between(x, floor, high, color=plots.INKS["green"], alpha=0.15, linewidth=0)
    axes.plot(x, high, color=plots.INKS["green"], linewidth=1)
    if low is not None:
        axes.plot(x, low, color=plots.INKS["green"], linewidth=1)


FIGURE = Figure(2, "notions", "The order of privacy notions", run)
