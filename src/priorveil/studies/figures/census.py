# ruff: noqa: RUF001 (captions use the symbols of the paper)
"""Figure 12: census, work classes collected while income is protected."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import LDP, LIP, Pufferfish, leakage
from priorveil.priors import Prior, Secret
from priorveil.queries import Histogram
from priorveil.studies import datasets, plots, published
from priorveil.studies.compare import Question, from_plan
from priorveil.studies.figures.correlation import FIVE, correlated
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting, number
from priorveil.studies.plots import Line
from priorveil.studies.simulate import measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_WORDS = {
    "published": ("published", "orange", "published (Theorem 3 on work class)"),
    "value": ("certified", "sky", "LIP of work class itself"),
    "pufferfish": ("certified", "red", "Pufferfish of income"),
    "best": ("best", "black", "LIP of income (best)"),
    "ldp": ("ldp", "blue", "RR-LDP"),
    "ldp-best": ("ldp", "black", "best LDP"),
    "none": ("baseline", "grey", "no report"),
}
_TITLES = {"acs": "ACS 2018, eight brackets", "adult": "UCI Adult, two levels"}


def known(census: datasets.Census) -> tuple[Prior, Secret]:
    """The prior of work classes, and income as a latent secret, both from the data."""
    seen = Counter(zip(census.income, census.work, strict=True))
    table = [[seen[bracket, work] for work in datasets.WORK_CLASSES] for bracket in census.brackets]
    prior = Prior.from_counts(np.sum(table, axis=0).tolist(), datasets.WORK_CLASSES)
    return prior, Secret.from_joint(table, census.brackets)


def tie(census: datasets.Census) -> float:
    """Cramér's V of income and work class: 0 if they are independent, 1 if one gives the other."""
    seen = Counter(zip(census.income, census.work, strict=True))
    joint = np.array([[seen[g, x] for x in datasets.WORK_CLASSES] for g in census.brackets]) / len(census)
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    square = float(((joint - independent) ** 2 / independent).sum())
    return math.sqrt(square / (min(joint.shape) - 1))


def run(setting: Setting) -> Outcome:
    """Both surveys, over epsilon."""
    data = {"acs": datasets.acs(), "adult": datasets.adult()}
    surveys = {survey: known(census) for survey, census in data.items()}
    ties = {survey: tie(census) for survey, census in data.items()}
    setting.done(0.3)
    epsilons = np.geomspace(0.05, 3.0, 7 if setting.quick else 19).tolist()
    rows: list[dict[str, object]] = []
    for i, epsilon in enumerate(epsilons):
        for survey, (prior, secret) in surveys.items():
            rows += _rows(survey, prior, secret, epsilon, setting)
        setting.done(0.3 + 0.7 * (i + 1) / len(epsilons))
    prior, secret = surveys["acs"]
    breaches = LIP().worst(Channel(np.eye(len(prior)), prior.labels, prior.labels), prior, secret)
    worst = str(max(breaches, key=lambda breach: breach.level).report).lower()
    as_it_is = {
        survey: leakage(Channel.identity(prior.labels), prior, secret).lip
        for survey, (prior, secret) in surveys.items()
    }
    return Outcome(
        rows=rows,
        draw=lambda: _draw(rows),
        caption=(
            "Work class (private, self-employed, government, no pay) collected while income is protected. "
            "Left: American Community Survey 2018, ages 19 to 34, "
            "people in work, the paper's eight income brackets. Right: UCI Adult, which knows only two "
            "income levels (the paper's eight cannot be made "
            "from it). Dots: simulated surveys of 5,000 people, 99 % intervals. Bottom: the LIP level for "
            "income; dash-dotted, that of the "
            "work class itself under Theorem 3, which is what the theorem claims to bound by ε."
        ),
        see=_see(rows, as_it_is),
        claims=_claims(rows, as_it_is, ties, worst),
    )


def _rows(
    survey: str, prior: Prior, secret: Secret, epsilon: float, setting: Setting
) -> list[dict[str, object]]:
    plans = {
        "best": design(prior, epsilon, Histogram(), secret, time_limit=10),
        "pufferfish": design(prior, epsilon, Histogram(), secret, Pufferfish(), time_limit=10),
        "value": design(prior, epsilon, Histogram(), time_limit=10),
        "ldp-best": design(prior, epsilon, Histogram(), notion=LDP(), time_limit=10),
    }
    channels = {
        **{way: plan.channel for way, plan in plans.items()},
        "published": published.rr_lip(prior, epsilon).channel,
        "ldp": published.k_rr(prior, epsilon).channel,
        "none": Channel(np.ones((len(prior), 1)), prior.labels),
    }
    rows = []
    for way, channel in channels.items():
        own, latent = leakage(channel, prior), leakage(channel, prior, secret)
        row = {"survey": survey, "epsilon": epsilon, "way": way, "kind": _WORDS[way][0]}
        row |= {
            "mse": Histogram().error(channel, prior),
            "income_lip": latent.lip,
            "work_lip": own.lip,
            "work_ldp": own.ldp,
        }
        if way == "best":
            way_of = from_plan("best", "best", plans[way], Question(prior, epsilon, secret=secret))
            rng = np.random.default_rng([setting.seed, 12, len(survey), round(1e4 * epsilon)])
            found = measured(way_of.trial, prior, 5_000, 40 if setting.quick else 400, rng)
            row |= {
                "bound": plans[way].lower_bound,
                "measured": found.mean,
                "low": found.low,
                "high": found.high,
            }
        rows.append(row)
    return rows


def _of(rows: Rows, survey: str, way: str, key: str = "mse") -> list[float]:
    return [number(r, key) for r in rows if r["survey"] == survey and r["way"] == way]


def _see(rows: Rows, as_it_is: dict[str, float]) -> tuple[str, ...]:
    work = {survey: _of(rows, survey, "published", "work_lip")[0] for survey in _TITLES}
    shown = {
        survey: "no budget at all (a bracket in which nobody is without pay tells too much)"
        if math.isinf(v)
        else f"ε = {v:.2f}"
        for survey, v in as_it_is.items()
    }
    return (
        "Income is only weakly tied to these work classes: telling the work class as it is keeps "
        f"{shown['acs']} (ACS) and {shown['adult']} (Adult); the best "
        "mechanism is nearly there much earlier, by hiding the rare class among others.",
        "Theorem 3 on the work class claims to protect it at every ε; at the smallest ε here it leaks "
        f"{work['acs']:.1f} (ACS) and {work['adult']:.1f} (Adult) about the rare class 'no pay'.",
        "Protecting the work class itself (LIP, LDP) costs far more error than protecting income only; "
        "conversely the best mechanism for income promises nothing about work.",
    )


def _claims(rows: Rows, as_it_is: dict[str, float], ties: dict[str, float], worst: str) -> tuple[Claim, ...]:
    def below(one: str, other: str) -> bool:
        return all(
            a <= b + 1e-9
            for s in _TITLES
            for a, b in zip(_of(rows, s, one), _of(rows, s, other), strict=True)
        )

    synthetic = LIP().epsilon(Channel.identity(5), FIVE, correlated(FIVE, 0.7))
    half = [
        e
        for e, mse, none in zip(
            _of(rows, "acs", "best", "epsilon"),
            _of(rows, "acs", "best"),
            _of(rows, "acs", "none"),
            strict=True,
        )
        if mse < none / 10
    ]
    return (
        Claim(
            "LIP gives a smaller error than LDP at the same ε.",
            below("best", "ldp-best"),
            "True, and by far: LDP protects the work class itself.",
        ),
        Claim(
            "The model with a latent secret does better than the one without.",
            below("best", "value"),
            "True on both surveys at every ε.",
        ),
        Claim(
            "Reaching zero error needs a larger ε than with synthetic data.",
            min(as_it_is.values()) > synthetic,
            f"Zero error means to tell the work class as it is: from ε = {as_it_is['acs']:.2f} (ACS) and "
            f"{as_it_is['adult']:.2f} (Adult) on, against {synthetic:.2f} in figure 6 with ρ = 0.7.",
        ),
        Claim(
            "The reason is that income and work class are highly correlated.",
            min(ties.values()) > 0.5,
            f"They are not: Cramér's V is {ties['acs']:.2f} (ACS) and {ties['adult']:.2f} (Adult), of at "
            "most 1. On "
            f"the ACS nine tenths of the error are gone at ε = {min(half, default=math.inf):.2f}; the rest "
            "is "
            f"there because one rare class, {worst}, tells much about income.",
        ),
    )


def _draw(rows: Rows) -> Picture:
    figure, axes = plots.canvas(2, 2, height=2.4, sharex=True)
    for column, (survey, title) in enumerate(_TITLES.items()):
        top = plots.lines([_line(rows, survey, way) for way in _WORDS], axes[0, column])
        top.set(title=title, ylim=(0, None), ylabel="error per person, √(MSE / N)", xscale="log")
        _levels(axes[1, column], rows, survey)
    plots.legend(figure, axes[0, 0], axes[1, 0], columns=3)
    picture: Picture = figure
    return picture


def _levels(axes: Axes, rows: Rows, survey: str) -> None:
    made = [
        Line(
            _WORDS[w][2], *_WORDS[w][:2], _of(rows, survey, w, "epsilon"), _of(rows, survey, w, "income_lip")
        )
        for w in ("published", "value", "pufferfish", "best", "ldp")
    ]
    plots.leak_lines(made, axes, top=30.0)
    x, work = _of(rows, survey, "published", "epsilon"), _of(rows, survey, "published", "work_lip")
    axes.plot(
        x,
        work,
        color=plots.INKS["pink"],
        linestyle="dashdot",
        linewidth=1.3,
        label="published: level of work class",
    )
    ticks = [0.05, 0.1, 0.3, 1, 3]
    axes.set_yscale("log")
    axes.set_ylim(0.01, 30.0)
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylabel("real LIP level (nats)")


def _line(rows: Rows, survey: str, way: str) -> Line:
    kind, ink, label = _WORDS[way]
    x, y = _of(rows, survey, way, "epsilon"), np.sqrt(_of(rows, survey, way)).tolist()
    if way != "best":
        return Line(label, kind, ink, x, y)
    floor, dots, low, high = (
        np.sqrt(np.maximum(_of(rows, survey, way, key), 0)).tolist()
        for key in ("bound", "measured", "low", "high")
    )
    return Line(label, kind, ink, x, y, floor, dots, (low, high))


FIGURE = Figure(12, "census", "Work class and income", run)
