"""Figure 7: privacy notions when priors and correlations are only known to lie in a set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import LDP, LIP, Pufferfish
from priorveil.priors import Prior, PriorSet, Secret
from priorveil.queries import Histogram
from priorveil.studies import plots, published
from priorveil.studies.figures.correlation import correlated
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting, number
from priorveil.studies.plots import Line

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

PRIOR = Prior([0.1, 0.15, 0.2, 0.25, 0.3])
LOW, HIGH, TRUE = 0.15, 0.45, 0.3  # of Pr(X = 1), for the binary case
_SCENARIOS = 3
_WORDS = {
    "bp-lip": ("best", "black", "BP-LIP at ε (best)"),
    "bp-lip-half": ("certified", "sky", "BP-LIP at ε/2"),
    "pufferfish": ("certified", "red", "Pufferfish at ε"),
    "ldp": ("ldp", "blue", "LDP at ε"),
    "none": ("baseline", "grey", "no report"),
    "published": ("published", "orange", "published (Proposition 2)"),
}


def scenarios(seed: int) -> list[Secret]:
    """Correlations that fit the prior: each mixes a copy of the value with a random response to it."""
    rng = np.random.default_rng([seed, 7])
    P = PRIOR.probabilities
    made = []
    for _ in range(_SCENARIOS):
        given = 0.6 * rng.dirichlet(np.ones(len(P)), size=len(P)) + 0.4 * correlated(PRIOR, 0.8).rows.T
        given /= given.sum(axis=1, keepdims=True)
        made.append(Secret.from_joint((P[:, None] * given).T))
    return made


def run(setting: Setting) -> Outcome:
    """Latent secrets in a set (five values), and a prior in a set (two values)."""
    epsilons = np.linspace(0.25, 3.0, 6 if setting.quick else 12).tolist()
    secrets = scenarios(setting.seed)
    rows = []
    for i, epsilon in enumerate(epsilons):
        rows += _latent(epsilon, secrets) + _binary(epsilon)
        setting.done((i + 1) / len(epsilons))
    return Outcome(
        rows=rows,
        draw=lambda: _draw(rows),
        caption=(
            "Left: five values, a known prior, and a latent secret whose correlation lies in a set of "
            f"{_SCENARIOS}; every mechanism is the "
            "best for its notion. Right: two values with Pr(X = 1) only known to lie in [0.15, 0.45] (0.3 "
            "in truth), where the paper has a closed "
            "form, Proposition 2. Top: error; bottom: the LIP level, at worst over the set."
        ),
        see=_see(rows),
        claims=_claims(rows),
    )


def _latent(epsilon: float, secrets: list[Secret]) -> list[dict[str, object]]:
    """The best mechanism for each notion, for all the scenarios at once."""
    plans = {
        "bp-lip": design(PRIOR, epsilon, Histogram(), secrets, time_limit=10),
        "bp-lip-half": design(PRIOR, epsilon / 2, Histogram(), secrets, time_limit=10),
        "pufferfish": design(PRIOR, epsilon, Histogram(), secrets, Pufferfish(), time_limit=10),
        "ldp": design(PRIOR, epsilon, Histogram(), notion=LDP(), time_limit=10),
    }
    rows = []
    for way, plan in plans.items():
        level = LIP().epsilon(plan.channel, PRIOR, secrets)
        rows.append(_row("latent", epsilon, way, plan.expected_mse, level, plan.lower_bound))
    return [*rows, _row("latent", epsilon, "none", Histogram().no_report(PRIOR), 0.0)]


def _binary(epsilon: float) -> list[dict[str, object]]:
    """Two values, the prior in an interval; the error is under the true prior, which the curator knows."""
    known, truth = PriorSet.interval([1 - HIGH, LOW], [1 - LOW, HIGH]), Prior([1 - TRUE, TRUE])
    made: dict[str, Channel] = {
        "bp-lip": design(known, epsilon, Histogram(), time_limit=10).channel,
        "bp-lip-half": design(known, epsilon / 2, Histogram(), time_limit=10).channel,
        "ldp": published.k_rr(truth, epsilon).channel,
        "published": published.binary_bounded(LOW, HIGH, epsilon).channel,
    }
    rows = [
        _row("binary", epsilon, way, Histogram().error(channel, truth), LIP().epsilon(channel, known))
        for way, channel in made.items()
    ]
    return [*rows, _row("binary", epsilon, "none", Histogram().no_report(truth), 0.0)]


def _row(
    case: str, epsilon: float, way: str, mse: float, lip: float, bound: float = float("nan")
) -> dict[str, object]:
    kind = _WORDS[way][0]
    return {
        "case": case,
        "epsilon": epsilon,
        "way": way,
        "kind": kind,
        "mse": mse,
        "bound": bound,
        "lip": lip,
    }


def _of(rows: Rows, case: str, way: str, key: str) -> list[float]:
    return [number(r, key) for r in rows if r["case"] == case and r["way"] == way]


def _see(rows: Rows) -> tuple[str, ...]:
    x, leaks = _of(rows, "binary", "published", "epsilon"), _of(rows, "binary", "published", "lip")
    broken = [e for e, level in zip(x, leaks, strict=True) if level > e + 1e-9]
    return (
        "All curves start from the same point: with no budget nothing is learnt beyond the prior.",
        f"Proposition 2 breaks its budget at {len(broken)} of {len(x)} budgets here (up to ε = "
        f"{max(broken, default=0):.2f}); "
        "it needs e^-ε ≤ a/(1-b) ≤ e^ε, here ε ≥ 1.30.",
        "Pufferfish is stricter than LIP for the same set, and LDP, which protects the value itself, is "
        "strictest on the left.",
    )


def _claims(rows: Rows) -> tuple[Claim, ...]:
    lip, puffer, ldp, half = (
        _of(rows, "latent", way, "mse") for way in ("bp-lip", "pufferfish", "ldp", "bp-lip-half")
    )
    between = all(a - 1e-9 <= b <= c + 1e-9 for a, b, c in zip(lip, ldp, half, strict=True))
    return (
        Claim(
            "LIP allows more utility than Pufferfish, and Pufferfish more than LDP.",
            all(a <= b + 1e-7 and b <= c + 1e-7 for a, b, c in zip(lip, puffer, ldp, strict=True)),
            "Each feasible region contains the next, and the optima follow.",
        ),
        Claim(
            "With a latent secret LDP's error is not always between those of LIP at ε and ε/2.",
            not between,
            "LDP protects the value itself: it can be worse than LIP at ε/2, which protects only the secret.",
        ),
        Claim(
            "Proposition 2 is optimal for a binary prior in [a, b].",
            all(
                p <= e + 1e-9
                for p, e in zip(
                    _of(rows, "binary", "published", "lip"),
                    _of(rows, "binary", "published", "epsilon"),
                    strict=True,
                )
            ),
            "Only where e^-ε ≤ a/(1-b) ≤ e^ε; elsewhere it leaks more than ε for some prior of the set.",
        ),
    )


def _draw(rows: Rows) -> Picture:
    figure, axes = plots.canvas(2, 2, height=2.3, sharex=True)
    for column, (case, title) in enumerate(
        (("latent", "latent secret, a set of correlations"), ("binary", "two values, prior in a set"))
    ):
        ways = [way for way in _WORDS if _of(rows, case, way, "mse")]
        top = plots.lines([_line(rows, case, way, "mse") for way in ways], axes[0, column])
        top.set(ylabel="error per person, √(MSE / N)", title=title, ylim=(0, None))
        plots.leak_lines([_line(rows, case, way, "lip") for way in ways if way != "none"], axes[1, column])
    plots.legend(figure, axes[0, 0], axes[0, 1], columns=3)
    picture: Picture = figure
    return picture


def _line(rows: Rows, case: str, way: str, key: str) -> Line:
    kind, ink, label = _WORDS[way]
    x, y = _of(rows, case, way, "epsilon"), _of(rows, case, way, key)
    if key == "lip":
        return Line(label, kind, ink, x, y)
    floor = np.sqrt(_of(rows, case, way, "bound")).tolist() if kind == "best" and case == "latent" else None
    return Line(label, kind, ink, x, np.sqrt(y).tolist(), floor)


FIGURE = Figure(7, "bounded", "Notions under sets of priors and correlations", run)
