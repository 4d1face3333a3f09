# ruff: noqa: RUF001 (captions use the symbols of the paper)
"""Figures 11 and 12: real data. Districts of Gowalla check-ins, and work class and income in two surveys."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.stats.contingency import association

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


def district_counts(checkins: datasets.CheckIns) -> tuple[Prior, Counts]:
    """The prior of districts, and how many users were last seen in each.

    The prior counts all earlier check-ins. The districts that were visited most keep their own value; all the
    others are one value, "elsewhere".
    """
    cells = checkins.districts(SIDE)
    visits, last = (
        np.bincount(cells[kept], minlength=SIDE**2) for kept in (~checkins.latest, checkins.latest)
    )
    own = np.argsort(-visits, kind="stable")[:DISTRICTS]
    earlier, latest = (np.append(counts[own], counts.sum() - counts[own].sum()) for counts in (visits, last))
    labels = [*(f"{cell // SIDE}/{cell % SIDE}" for cell in own), "elsewhere"]
    return Prior.from_counts(earlier.tolist(), labels, smoothing=1), latest


@partial(Figure, 11, "gowalla", "Gowalla check-ins")
def gowalla(settings: Settings) -> Outcome:
    """Districts of the latest check-in of each user, on a grid of 36 × 36 districts over the area.

    The 82 most visited ones and 'elsewhere' are 83 values, as in the paper. The prior comes from everybody's earlier
    check-ins. Top and middle left: as in the paper, users are drawn from that prior (lines: theory; dots: simulation).
    Middle right and bottom: surveys of the users' real districts, which that prior describes badly; bottom at ε = 3.
    """
    checkins = datasets.gowalla()
    prior, truth = district_counts(checkins)
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
    distance = 0.5 * float(np.abs(truth / truth.sum() - prior.probabilities).sum())
    part = "the Gowalla check-ins within New York City (the full file is not on this machine)"
    data = "the whole Gowalla data set" if checkins.whole else part
    return Outcome(
        rows=[*study.table(), *real],
        draw=lambda: _draw_gowalla(study, prior, truth, real, estimates[SHOWN]),
        remarks=_gowalla_remarks(study, real, distance),
        claims=_gowalla_claims(study, prior),
        note=f"Data: {data}, {len(checkins.user):,} check-ins of {truth.sum():,} users.",
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


def _gowalla_remarks(study: Study, real: Rows, distance: float) -> tuple[str, ...]:
    expected = {row.method: row.expected for row in study.rows if row.epsilon == SHOWN}
    at = {row["method"].split(",")[0]: row for row in real if row["epsilon"] == SHOWN}
    check = at["best"]["prior_check"]
    return (
        f"If the prior were right, the best design at ε = {SHOWN:g} would have MSE {expected['best']:.3f} per "
        f"person; the best of LDP {min(expected[method] for method in _LDP):.3f}, no report {expected['none']:.3f}.",
        f"It is not: {distance:.0%} of the users are elsewhere than it says. That costs a bias, which grows with the "
        f"number of people: the real MSE is {at['best']['measured']:.0f}, against {at['context-free']['measured']:.0f} "
        f"for LDP without a prior. The prior check says so ({'p < 0.0001' if check < 1e-4 else f'p = {check}'}).",
        "Learning the distribution, where the prior shapes the noise only, has a real MSE of "
        f"{at['distribution']['measured']:.1f}.",
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
            f"With the budget kept, at ε = {epsilons[0]:g}: MSE of {error_list(low)}.",
        ),
        "For large ε, RR-LIP overtakes both.": (
            high["rr"] < min(high["hashing"], high["unary"]),
            f"At ε = {epsilons[-1]:g}: MSE of {error_list(high)}. Only from ε = {valid:.2f} on is every district heavy "
            "enough for Theorem 3, which then is the optimum.",
        ),
        "UE-LIP beats OUE-LDP.": (
            min(gaps) >= -1e-12,
            f"True as printed; but the rarest district decides, and the gap in MSE is at most {max(gaps):.4f}.",
        ),
        "Increasing ε helps less here than on a small domain, since each district's probability is small.": (
            left > small,
            f"At ε = {SHOWN:g} the best design leaves {left:.0%} of the error of no report; on five uniform values "
            f"{small:.0%}.",
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
    ties = {survey: association(table.astype(int)) for survey, table in tables.items()}
    work = {survey: column(rows, "work_lip", survey=survey, method="published")[0] for survey in _SURVEYS}
    return Outcome(
        rows=rows,
        draw=lambda: _draw_census(rows),
        remarks=(
            f"The work class as it is keeps ε = {truth['acs']:.2f} (ACS) and ε = {truth['adult']:.2f} (Adult).",
            "Theorem 3 claims to protect the work class; at the smallest ε it leaks "
            f"{work['acs']:.1f} (ACS) and {work['adult']:.1f} (Adult) about the rare class 'no pay'.",
            "The best mechanism for income promises nothing about the work class.",
        ),
        claims=_census_claims(rows, truth, ties),
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
        (mse, lip, ldp), income = channel_row(channel, prior).values(), leakage(channel, prior, secret).lip
        rows[method] = {"mse": mse, "income_lip": income, "work_lip": lip, "work_ldp": ldp}
    best = from_plan(plans["best"], Scenario(prior, epsilon, secret=secret))
    rng = np.random.default_rng([settings.seed, 12, len(survey), round(1e4 * epsilon)])
    found = simulated_error(best.survey, prior, 5_000, 40 if settings.quick else 400, rng)
    rows["best"] |= {"bound": best.bound, "measured": found.mean, "low": found.low, "high": found.high}
    return rows


def _census_claims(rows: Rows, truth: dict[str, float], ties: dict[str, float]) -> Claims:
    def best_beats(method: str) -> bool:
        errors = ([column(rows, "mse", survey=s, method=m) for m in ("best", method)] for s in _SURVEYS)
        return all(below(best, other) for best, other in errors)

    five = CORRELATED_PRIORS[5]
    synthetic = LIP().epsilon(Channel.identity(5), five, correlated_secret(five, 0.7))
    return {
        "LIP gives a smaller error than LDP at the same ε.": (best_beats("ldp-best"), ""),
        "The model with a latent secret does better than the one without.": (best_beats("value"), ""),
        "Reaching zero error needs a larger ε than with synthetic data.": (
            min(truth.values()) > synthetic,
            f"Zero error starts at ε = {truth['acs']:.2f} (ACS) and {truth['adult']:.2f} (Adult); in figure 6, with "
            f"ρ = 0.7, at {synthetic:.2f}.",
        ),
        "The reason is that income and work class are highly correlated.": (
            min(ties.values()) > 0.5,
            f"They are not: Cramér's V is {ties['acs']:.2f} (ACS) and {ties['adult']:.2f} (Adult). But one rare class, "
            "no pay, tells much about income.",
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
