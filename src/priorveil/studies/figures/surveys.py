# ruff: noqa: RUF001 (captions use the symbols of the paper)
"""Figures 11 and 12: real data. Districts of Gowalla check-ins, and work class and income in two surveys."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import LDP, LIP, Pufferfish, leakage
from priorveil.plans.tally import Counts
from priorveil.priors import Array, Prior, Secret
from priorveil.queries import Distribution, Histogram
from priorveil.studies import curves, datasets, published
from priorveil.studies.compare import Scenario, from_plan
from priorveil.studies.curves import COLOURS, METHOD_STYLES, Curve, Rows, Style, below, column, method_curves
from priorveil.studies.figures import Claims, Figure, Outcome, Settings, channel_row, draw_pairs, label_rows
from priorveil.studies.figures.notions import CORRELATED_PRIORS, correlated_secret
from priorveil.studies.simulate import Study, simulate, simulated_error

# -- figure 11: the district of each user's latest check-in; the prior comes from the earlier ones -----------

SIDE, DISTRICTS = 36, 82  # the paper's grid; with "elsewhere" its 83 values
SHOWN = 3.0  # the budget at which estimated histograms are drawn
_PUBLISHED = ("published-rr", "published-hashing", "published-unary")
_LDP = ("ldp-rr", "ldp-hashing", "ldp-unary")
_CERTIFIED = ("rr", "hashing", "unary", "best")
# Surveys of the users' real districts, and their styles.
_REAL: dict[str, Style] = {
    "none, real districts": ("baseline", "grey", "no report"),
    "best, real districts": ("best", "black", "best LIP design"),
    "distribution, real districts": ("certified", "pink", "LIP, distribution design"),
    "context-free, real districts": ("ldp", "orange", "LDP, context-free"),
}


def district_counts(checkins: datasets.CheckIns) -> tuple[Prior, Counts, Array]:
    """The prior of districts, how many users were last seen in each, and the law in which each user counts once.

    The prior counts all earlier check-ins. The districts that were visited most keep their own value; all the
    others are one value, "elsewhere".
    """
    cells, earlier = checkins.districts(SIDE), ~checkins.latest
    visits = np.bincount(cells[earlier], minlength=SIDE**2)
    own = np.argsort(-visits, kind="stable")[:DISTRICTS]

    def merge(by_district: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.append(by_district[own], by_district.sum() - by_district[own].sum())

    labels = [*(f"{cell // SIDE}/{cell % SIDE}" for cell in own), "elsewhere"]
    prior = Prior.from_counts(merge(visits).tolist(), labels, smoothing=1)
    _, user, often = np.unique(checkins.user[earlier], return_inverse=True, return_counts=True)
    once = merge(np.bincount(cells[earlier], weights=1 / often[user], minlength=SIDE**2))
    return prior, merge(np.bincount(cells[checkins.latest], minlength=SIDE**2)), once / once.sum()


@partial(Figure, 11, "gowalla", "Gowalla check-ins")
def gowalla(settings: Settings) -> Outcome:
    """Districts of the latest check-in of each user, on a grid of 36 × 36 districts over the area.

    The 82 most visited ones and 'elsewhere' are 83 values, as in the paper. The prior comes from everybody's earlier
    check-ins. Top and middle left: as in the paper, users are drawn from that prior (lines: theory; dots: simulation).
    Middle right and bottom: surveys of the users' real districts, which that prior describes badly; bottom at ε = 3.
    """
    checkins = datasets.gowalla()
    prior, truth, once = district_counts(checkins)
    epsilons = [1.0, 3.0, 5.0] if settings.quick else np.arange(0.5, 6.01, 0.5).tolist()
    limit, runs = (1.0, 20) if settings.quick else (8.0, 200)
    study = simulate(
        prior, epsilons, None, [*_PUBLISHED, *_LDP, *_CERTIFIED, "none"], people=int(truth.sum()), runs=runs,
        seed=settings.seed, time_limit=limit, progress=lambda share, _: settings.progress(0.7 * share),
    )  # fmt: skip
    real, estimates = [], {}
    for epsilon in epsilons:
        rows, estimates[epsilon] = _real_surveys(prior, truth, epsilon, limit, settings)
        real += rows
    shares = truth / truth.sum()
    distances = [0.5 * float(np.abs(shares - law).sum()) for law in (prior.probabilities, once)]
    part = "the Gowalla check-ins within New York City (the full file is not on this machine)"
    data = "the whole Gowalla data set" if checkins.whole else part
    return Outcome(
        rows=[*study.table(), *real],
        draw=lambda: _draw_gowalla(study, prior, truth, real, estimates[SHOWN]),
        remarks=_gowalla_remarks(study, real, distances),
        claims=_gowalla_claims(study, prior),
        note=f"Data: {data}, {len(checkins):,} check-ins of {truth.sum():,} users.",
    )


def _real_surveys(
    prior: Prior, truth: Counts, epsilon: float, limit: float, settings: Settings
) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """One survey of the users' real districts for each method: rows of the table, and the estimates."""
    rng = np.random.default_rng([settings.seed, 11, round(100 * epsilon)])
    codes, people = np.repeat(np.arange(len(prior)), truth), int(truth.sum())
    prior_based = design(prior, epsilon, Histogram(), time_limit=limit)
    learning = design(prior, epsilon, Distribution(), time_limit=limit)
    first = prior_based.estimate(prior_based.tally(prior_based.privatize(codes, rng)))
    second = learning.estimate(learning.tally(learning.privatize(codes, rng)), "mle")
    form = published.k_rr(prior, epsilon)
    supporting = rng.multinomial(truth, form.channel.matrix).sum(axis=0)
    free = cast(published.Support, form.support).counts(supporting, people)
    answers = prior.probabilities * people, first.values, second.values, free
    estimates = dict(zip(_REAL, answers, strict=True))
    rows: list[dict[str, Any]] = []
    for method, values in estimates.items():
        error = float(((values - truth) ** 2).sum() / people)
        row = {"epsilon": epsilon, "method": method, "measured": error, "people": people, "runs": 1}
        rows.append(row | ({"prior_check": first.prior_check} if method.startswith("best") else {}))
    return rows, estimates


def _gowalla_remarks(study: Study, real: Rows, distances: list[float]) -> tuple[str, ...]:
    expected = {row.method: row.expected for row in study.rows if row.epsilon == SHOWN}
    leaks = {method: max(row.lip - row.epsilon for row in study.of(method)) for method in _PUBLISHED}
    at = {row["method"].split(",")[0]: row for row in real if row["epsilon"] == SHOWN}
    check = at["best"]["prior_check"]
    return (
        f"Published RR-LIP leaks up to {leaks['published-rr']:.1f} more than it claims, LH-LIP up to "
        f"{leaks['published-hashing']:.1f}; UE-LIP keeps its budget.",
        f"If the prior were right, the best design at ε = {SHOWN:g} would have MSE {expected['best']:.3f} per "
        f"person; the best of LDP {min(expected[method] for method in _LDP):.3f}, no report {expected['none']:.3f}.",
        f"It is not: {distances[0]:.0%} of the users are elsewhere than it says ({distances[1]:.0%} if each user "
        "counted once in it). A wrong prior costs a bias that grows with the number of people: the real MSE of the "
        f"same mechanism is {at['best']['measured']:.0f}, more than that of LDP without any prior "
        f"({at['context-free']['measured']:.0f}). The test of the prior, which costs nothing, says so "
        f"({'p < 0.0001' if check < 1e-4 else f'p = {check}'}).",
        "A design for learning the distribution uses the prior for the noise only; read by maximum likelihood, its "
        f"real MSE is {at['distribution']['measured']:.1f}.",
    )


def _gowalla_claims(study: Study, prior: Prior) -> Claims:
    expected = {(row.method, row.epsilon): row.expected for row in study.rows}
    epsilons = sorted({row.epsilon for row in study.rows})
    low, high = ({m: expected[m, e] for m in _CERTIFIED} for e in (epsilons[0], epsilons[-1]))
    valid = math.log(1 / float(prior.probabilities.min()) - 1)
    five, none = design(Prior.uniform(5), SHOWN, Histogram()), expected["none", SHOWN]
    left, small = expected["best", SHOWN] / none, five.expected_mse / five.no_report
    gaps = [expected["ldp-unary", e] - expected["published-unary", e] for e in epsilons]

    def error_list(errors: dict[str, float]) -> str:
        return ", ".join(f"{method} {errors[method]:.3f}" for method in ("rr", "hashing", "unary"))

    return {
        "For small ε, RR-LIP is worse than LH-LIP and UE-LIP.": (
            low["rr"] > max(low["hashing"], low["unary"]),
            f"With the budget kept, at ε = {epsilons[0]:g}: MSE of {error_list(low)}. (As printed RR-LIP would be far "
            "better, by leaking.)",
        ),
        "For large ε, RR-LIP overtakes both.": (
            high["rr"] < min(high["hashing"], high["unary"]),
            f"At ε = {epsilons[-1]:g}: MSE of {error_list(high)}. Only from ε = {valid:.2f} on is every district heavy "
            "enough for Theorem 3, which then is the optimum.",
        ),
        "UE-LIP beats OUE-LDP.": (
            min(gaps) >= -1e-12,
            "True as printed, since Theorem 4 holds; but the rarest district decides, and the gap in MSE is at most "
            f"{max(gaps):.4f}.",
        ),
        "Increasing ε helps less here than on a small domain, since each district's probability is small.": (
            left > small,
            f"True, though less so than printed curves of UE-LIP and LDP suggest: at ε = {SHOWN:g} the best design "
            f"leaves {left:.0%} of the error of no report, against {small:.0%} on five uniform values; UE-LIP leaves "
            f"{expected['published-unary', SHOWN] / none:.0%}.",
        ),
    }


def _draw_gowalla(
    study: Study, prior: Prior, truth: Counts, real: Rows, found: dict[str, Array]
) -> curves.Figure:
    figure, axes = curves.canvas(3, 2, height=2.3)
    rows = [row for row in study.table() if not math.isnan(row["expected"])]
    shown = {"as published": _PUBLISHED, "with the budget kept": _CERTIFIED}
    for panel, (title, methods) in zip(axes[0], shown.items(), strict=True):
        styles = {m: METHOD_STYLES[m] for m in ("none", *_LDP, *methods)}
        drawn = method_curves(rows, styles, "expected", root=True)
        kept = {METHOD_STYLES[m][2] for m in _CERTIFIED}  # the others have no dots, for there is no room
        curves.lines([line if line.label in kept else replace(line, dots=None) for line in drawn], panel)
        panel.set(title=title, ylabel=curves.ROOT_ERROR, xlabel=curves.BUDGET, ylim=(0, None))
    leaking = {m: METHOD_STYLES[m] for m in (*_PUBLISHED, "ldp-rr", "hashing")}
    curves.level_lines(method_curves(rows, leaking, "lip"), axes[1, 0])
    for method, (kind, colour, label) in _REAL.items():
        x, y = (column(real, key, method=method) for key in ("epsilon", "measured"))
        curves.lines([Curve(label, kind, colour, x, np.sqrt(y), marker="o")], axes[1, 1])
    curves.log_scale(axes[1, 1])
    axes[1, 1].set(title="real districts, prior not right", xlabel=curves.BUDGET, ylabel=curves.ROOT_ERROR)
    titles = {"best": "best for the histogram, prior trusted", "distribution": "learning the distribution"}
    ends = [3.0, 1.3 * float(truth.max())]
    for panel, (method, title) in zip(axes[2], titles.items(), strict=True):
        expected, style = prior.probabilities * truth.sum(), {"linestyle": "", "markersize": 3}
        panel.plot(truth, expected, marker="s", color=COLOURS["grey"], alpha=0.6, label="prior", **style)
        estimate = found[f"{method}, real districts"]
        panel.plot(truth, estimate, marker="o", color=COLOURS["blue"], label="estimate", **style)
        panel.plot(ends, ends, color="black", linewidth=0.8)
        panel.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=f"{title}, ε = {SHOWN:g}")
        panel.set_xlabel("users in the district, truth")
        panel.legend(frameon=False, fontsize=7, loc="upper left")
    axes[2, 0].set_ylabel("users, estimated")
    curves.legend(figure, axes[0, 0], axes[0, 1], axes[1, 1], columns=4)
    return figure


# -- figure 12: work classes collected while income is protected -------------------------------------------

_STYLES: dict[str, Style] = {
    "published": ("published", "orange", "published (Theorem 3 on work class)"),
    "value": ("certified", "sky", "LIP of work class itself"),
    "pufferfish": ("certified", "red", "Pufferfish of income"),
    "best": ("best", "black", "LIP of income (best)"),
    "ldp": ("ldp", "blue", "RR-LDP"),
    "ldp-best": ("ldp", "black", "best LDP"),
    "none": ("baseline", "grey", "no report"),
}
_SURVEYS = {"acs": "ACS 2018, eight brackets", "adult": "UCI Adult, two levels"}


def income_and_work(census: datasets.Census) -> Array:
    """How many people have each income bracket (rows) and work class (columns)."""
    counts = Counter(zip(census.income, census.work, strict=True))
    return np.array([[float(counts[i, work]) for work in datasets.WORK_CLASSES] for i in census.brackets])


def cramers_v(table: Array) -> float:
    """Cramér's V of the two attributes of a table: 0 if they are independent, 1 if one determines the other."""
    joint = table / table.sum()
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return math.sqrt(float(((joint - independent) ** 2 / independent).sum()) / (min(joint.shape) - 1))


@partial(Figure, 12, "census", "Work class and income")
def census(settings: Settings) -> Outcome:
    """Work class (private, self-employed, government, no pay) collected while income is protected.

    Left: American Community Survey 2018, ages 19 to 34, people in work, the paper's eight income brackets. Right: UCI
    Adult, which knows only two income levels (the paper's eight cannot be made from it). Dots: simulated surveys of
    5,000 people, 99 % intervals. Bottom: the LIP level for income; in pink, that of the work class itself under
    Theorem 3, which is what the theorem claims to bound by ε.
    """
    data = {"acs": datasets.acs(), "adult": datasets.adult()}
    tables = {survey: income_and_work(people) for survey, people in data.items()}
    known = {}
    for survey, table in tables.items():
        prior = Prior.from_counts(table.sum(axis=0).astype(int).tolist(), datasets.WORK_CLASSES)
        known[survey] = prior, Secret.from_joint(table, data[survey].brackets)
    epsilons = np.geomspace(0.05, 3.0, 7 if settings.quick else 19).tolist()
    rows: list[dict[str, Any]] = []
    for epsilon in settings.track(epsilons):
        for survey, (prior, secret) in known.items():
            found = _census_rows(survey, prior, secret, epsilon, settings)
            rows += label_rows(found, _STYLES, survey=survey, epsilon=epsilon)
    truth = {s: leakage(Channel.identity(p.labels), p, secret).lip for s, (p, secret) in known.items()}
    ties = {survey: cramers_v(table) for survey, table in tables.items()}
    work = {survey: column(rows, "work_lip", survey=survey, method="published")[0] for survey in _SURVEYS}
    return Outcome(
        rows=rows,
        draw=lambda: _draw_census(rows),
        remarks=(
            "Income is only weakly tied to these work classes: reporting the work class as it is keeps "
            f"ε = {truth['acs']:.2f} (ACS) and ε = {truth['adult']:.2f} (Adult); the best mechanism is nearly there "
            "much earlier, by hiding the rare class among others.",
            "Theorem 3 on the work class claims to protect it at every ε; at the smallest ε here it leaks "
            f"{work['acs']:.1f} (ACS) and {work['adult']:.1f} (Adult) about the rare class 'no pay'.",
            "Protecting the work class itself (LIP, LDP) costs far more error than protecting income only; "
            "conversely the best mechanism for income promises nothing about work.",
        ),
        claims=_census_claims(rows, truth, ties, *known["acs"]),
    )


def _census_rows(
    survey: str, prior: Prior, secret: Secret, epsilon: float, settings: Settings
) -> dict[str, dict[str, Any]]:
    """The error and the levels of each method in one survey; those of the best design are simulated too."""
    plans = {
        "best": design(prior, epsilon, Histogram(), secret, time_limit=10),
        "pufferfish": design(prior, epsilon, Histogram(), secret, Pufferfish(), time_limit=10),
        "value": design(prior, epsilon, Histogram(), time_limit=10),
        "ldp-best": design(prior, epsilon, Histogram(), notion=LDP(), time_limit=10),
    }
    channels = {
        **{method: plan.channel for method, plan in plans.items()},
        "published": published.rr_lip(prior, epsilon).channel,
        "ldp": published.k_rr(prior, epsilon).channel,
        "none": Channel(np.ones((len(prior), 1)), prior.labels),
    }
    rows = {}
    for method, channel in channels.items():
        own, income = channel_row(channel, prior), leakage(channel, prior, secret).lip
        rows[method] = {
            "mse": own["mse"],
            "income_lip": income,
            "work_lip": own["lip"],
            "work_ldp": own["ldp"],
        }
    best = from_plan("best", plans["best"], Scenario(prior, epsilon, secret=secret))
    rng = np.random.default_rng([settings.seed, 12, len(survey), round(1e4 * epsilon)])
    found = simulated_error(best.survey, prior, 5_000, 40 if settings.quick else 400, rng)
    rows["best"] |= {"bound": best.bound, "measured": found.mean, "low": found.low, "high": found.high}
    return rows


def _census_claims(
    rows: Rows, truth: dict[str, float], ties: dict[str, float], prior: Prior, secret: Secret
) -> Claims:
    def error(survey: str, method: str) -> Array:
        return column(rows, "mse", survey=survey, method=method)

    five = CORRELATED_PRIORS[5]
    synthetic = LIP().epsilon(Channel.identity(5), five, correlated_secret(five, 0.7))
    epsilons = column(rows, "epsilon", survey="acs", method="best")
    nine_tenths = epsilons[error("acs", "best") < error("acs", "none") / 10].min(initial=math.inf)
    sides = LIP().worst(Channel(np.eye(len(prior)), prior.labels, prior.labels), prior, secret)
    rare = str(max(sides, key=lambda side: side.level).report).lower()
    return {
        "LIP gives a smaller error than LDP at the same ε.": (
            all(below(error(survey, "best"), error(survey, "ldp-best")) for survey in _SURVEYS),
            "True, and by far: LDP protects the work class itself.",
        ),
        "The model with a latent secret does better than the one without.": (
            all(below(error(survey, "best"), error(survey, "value")) for survey in _SURVEYS),
            "True on both surveys at every ε.",
        ),
        "Reaching zero error needs a larger ε than with synthetic data.": (
            min(truth.values()) > synthetic,
            f"Zero error means to report the work class as it is: from ε = {truth['acs']:.2f} (ACS) and "
            f"{truth['adult']:.2f} (Adult) on, against {synthetic:.2f} in figure 6 with ρ = 0.7.",
        ),
        "The reason is that income and work class are highly correlated.": (
            min(ties.values()) > 0.5,
            f"They are not: Cramér's V is {ties['acs']:.2f} (ACS) and {ties['adult']:.2f} (Adult), of at most 1. On "
            f"the ACS nine tenths of the error are gone at ε = {nine_tenths:.2f}; the rest is there because one rare "
            f"class, {rare}, tells much about income.",
        ),
    }


def _draw_census(rows: Rows) -> curves.Figure:
    work = [
        {**row, "method": "work", "mse": math.nan, "income_lip": row["work_lip"]}
        for row in rows
        if row["method"] == "published"
    ]
    styles = {**_STYLES, "work": ("published", "pink", "published: level of work class")}
    leaking = ("published", "value", "pufferfish", "best", "ldp", "work")
    figure = draw_pairs(
        [*rows, *work], _SURVEYS, styles, leaking, "survey", level="income_lip", height=2.4, top=30.0
    )
    ticks = [0.05, 0.1, 0.3, 1, 3]
    for panel in figure.axes[2:]:
        panel.set(xscale="log", yscale="log", ylim=(0.01, 30.0))
        panel.set_xticks(ticks, [f"{t:g}" for t in ticks])
        panel.set_xticks([], minor=True)
    return figure
