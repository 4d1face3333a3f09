"""Figures 5, 8, 11 and 12: methods compared in surveys, of simulated people and of real data."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.stats.contingency import association

from priorveil.arrays import Array, Ints
from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import LDP, LIP, Pufferfish, leakage
from priorveil.priors import Prior, Secret
from priorveil.queries import Distribution, Histogram
from priorveil.studies import datasets, published
from priorveil.studies.compare import SurveyScenario, from_plan
from priorveil.studies.figures import FigureRow, FigureSettings, Outcome, channel_row, draw_pairs, sweep
from priorveil.studies.figures.theory import CORRELATED_PRIORS, FIVE_VALUES, correlated_secret, rising_prior
from priorveil.studies.simulate import Study, simulate, simulated_error
from priorveil.words.plots import curves
from priorveil.words.plots.curves import COLOURS, FIGURE_STYLES, METHOD_STYLES, ResultRecords, below, column

_FORMS = ("rr", "hashing", "unary")
_LDP, _PUBLISHED = (tuple(f"{kind}-{form}" for form in _FORMS) for kind in ("ldp", "published"))

# -- figure 5: histograms, theory and simulation -----------------------------------------------------------

_METHODS = ("published-rr", "rr", "best", "ldp-rr", "context-free", "none")


def priors(settings: FigureSettings) -> Outcome:
    """Figure 5: histograms of 5,000 people, for a uniform and a skewed prior, in theory and simulated."""
    epsilons = np.arange(1.0, 5.01, 1.0 if settings.quick else 0.5).tolist()
    rows: list[FigureRow] = []
    for i, (name, prior) in enumerate(FIVE_VALUES.items()):
        runs, seed = 60 if settings.quick else 1000, settings.seed + i
        study = simulate(prior, epsilons, Histogram(), _METHODS, people=5_000, runs=runs, seed=seed)
        rows += [{"prior": name, **row} for row in study.table()]
    errors = {
        prior: {m: np.sqrt(column(rows, "expected", prior=prior, method=m)) for m in _METHODS}
        for prior in FIVE_VALUES
    }
    ratios = {prior: error["ldp-rr"] / error["best"] for prior, error in errors.items()}
    outputs = design(FIVE_VALUES["skewed"], 1.0, Histogram()).channel.shape[1]
    verdicts = {
        "prior helps": all((error["best"] < error["context-free"]).all() for error in errors.values()),
        "skew helps": bool((errors["skewed"]["best"] < errors["uniform"]["best"]).all()),
        "advantage grows": bool((ratios["skewed"] > ratios["uniform"]).all()),
        "lemma 4": outputs >= 5,
    }
    leaks = [column(rows, "lip", prior=prior, method="published-rr")[0] for prior in FIVE_VALUES]
    at_four = {prior: ratio[epsilons.index(4.0)] for prior, ratio in ratios.items()}
    words = {**errors, "leaks": leaks, "ratios": ratios, "at_four": at_four, "outputs": outputs}
    titles, styles = {name: f"{name} prior" for name in FIVE_VALUES}, {m: METHOD_STYLES[m] for m in _METHODS}
    draw = partial(draw_pairs, rows, titles, styles, _METHODS[:-1], "prior", y="expected", log=True)
    return Outcome(rows, draw, verdicts, words)


# -- figure 8: from 10 to 50 values ------------------------------------------------------------------------

_DOMAIN_METHODS = ("none", *_LDP, "published-rr-half", *_PUBLISHED, *_FORMS, "best")
_DOMAIN_STYLES = {m: (METHOD_STYLES | FIGURE_STYLES["domain"])[m] for m in _DOMAIN_METHODS}


def domain(settings: FigureSettings) -> Outcome:
    """Figure 8: the histogram error against the number of values, for a prior that rises evenly."""
    sizes = list(range(10, 51, 20 if settings.quick else 5))
    methods = ["best", *_FORMS, *_PUBLISHED, *_LDP, "none"]
    limit = 2.0 if settings.quick else 15.0
    rows: list[FigureRow] = []
    for size in sizes:
        full = simulate(rising_prior(size), [1.0], Histogram(), methods, runs=0, time_limit=limit).table()
        half = simulate(rising_prior(size), [1.0 / 2], Histogram(), ["published-rr", "rr"], runs=0).table()
        rows += [{"values": size, **row} for row in full]
        rows += [{"values": size, **row, "method": f"{row['method']}-half"} for row in half]
    error = {m: column(rows, "expected", method=m) for m in (*_DOMAIN_STYLES, "rr-half")}
    gap, leaks = error["rr"] - error["unary"], column(rows, "lip", method="published-rr")
    half_leak = column(rows, "lip", method="published-rr-half").max()
    ends = slice(None, None, len(sizes) - 1)
    words: FigureRow = {"sizes": sizes[ends], "leaks": leaks[ends], "gaps": gap[ends], "error": error}
    words |= {"half_leak": half_leak, "gain": {m: _gain(rows, m)[-1] for m in (*_FORMS, "ldp-unary")}}
    verdicts = {
        "rr between": below(error["rr"], error["ldp-rr"], 1e-12)
        and below(error["ldp-rr"], error["rr-half"], 1e-12),
        "rr beats hashing": bool(error["rr"][0] <= error["hashing"][0]),
        "unary beats rr": bool(gap[-1] > 0),
        "gap widens": bool((np.diff(gap) > 0).all()),
        "unary beats ldp": below(error["published-unary"], error["ldp-unary"], 1e-12),
        "hashing beats ldp": below(error["hashing"], error["ldp-hashing"], 1e-12),
        "growing": all((np.diff(error[method]) > 0).all() for method in ("best", *_FORMS, *_LDP)),
    }
    return Outcome(rows, lambda: _draw_domain(rows), verdicts, words)


def _gain(rows: ResultRecords, method: str) -> Array:
    """The share of the achievable gain, in percent."""
    none, bound = column(rows, "expected", method="none"), column(rows, "bound", method="best")
    return 100 * (none - column(rows, "expected", method=method)) / (none - bound)


def _draw_domain(rows: ResultRecords) -> curves.Figure:
    figure, axes = curves.canvas(2, 2, height=2.4, sharex=True)
    as_printed = (*_PUBLISHED, "published-rr-half")
    least = math.sqrt(column(rows, "expected", method="published-rr").min())
    titles = {"as published": (*_FORMS, "best"), "with the budget kept": as_printed}  # and what is not drawn
    for panel, (title, others) in zip(axes[0], titles.items(), strict=True):
        styles = {method: style for method, style in _DOMAIN_STYLES.items() if method not in others}
        curves.method_lines(panel, rows, styles, "expected", "values", root=True)
        panel.set(ylabel=curves.ROOT_ERROR, title=title, ylim=(0.98 * least, 1.005))
    leaking = {m: _DOMAIN_STYLES[m] for m in (*_LDP, *_PUBLISHED, *_FORMS)}
    curves.method_lines(axes[1, 0], rows, leaking, "lip", "values")
    sizes = column(rows, "values", method="best")
    curves.shade_violations(axes[1, 0], sizes, np.full(len(sizes), 1.0))
    axes[1, 0].set(xlabel="number of values d", ylabel=curves.LEVEL)
    for method in (*_LDP, *_FORMS, "best"):
        curves.line(axes[1, 1], (*_DOMAIN_STYLES[method][:2], "_"), sizes, _gain(rows, method))
    axes[1, 1].set(xlabel="number of values d", ylabel="achievable gain (%)", ylim=(0, 105))
    curves.legend(figure, columns=4)
    return figure


# -- figure 11: the district of each user's latest check-in; the prior comes from the earlier ones -----------

SIDE, DISTRICTS = 36, 82  # the paper's grid; with "elsewhere" its 83 values
SHOWN_BUDGET = 3.0  # the budget at which estimated histograms are drawn
_CERTIFIED = (*_FORMS, "best")
# Surveys of the users' real districts, and their styles.
_REAL = FIGURE_STYLES["gowalla"]


def district_counts(checkins: datasets.CheckIns) -> tuple[Prior, Ints]:
    """The prior of districts, and how many users were last seen in each.

    The prior counts all earlier check-ins. The districts that were visited most keep their own value; all the
    others are one value, "elsewhere".
    """
    cells, is_last = checkins.districts(SIDE), checkins.latest
    visits, last = (np.bincount(cells[part], minlength=SIDE**2) for part in (~is_last, is_last))
    top = np.argsort(-visits, kind="stable")[:DISTRICTS]
    earlier, latest = (np.append(counts[top], counts.sum() - counts[top].sum()) for counts in (visits, last))
    labels = [*(f"{cell // SIDE}/{cell % SIDE}" for cell in top), "elsewhere"]
    return Prior.from_counts(earlier.tolist(), labels, smoothing=1), latest


def gowalla(settings: FigureSettings) -> Outcome:
    """Figure 11: the district of each user's latest check-in; the prior comes from everybody's earlier ones."""
    checkins = datasets.gowalla()
    prior, truth = district_counts(checkins)
    epsilons = [1.0, 3.0, 5.0] if settings.quick else np.arange(0.5, 6.01, 0.5).tolist()
    limit, runs = (1.0, 20) if settings.quick else (8.0, 200)
    methods = [*_PUBLISHED, *_LDP, *_CERTIFIED, "none"]
    people, seed = int(truth.sum()), settings.seed
    study = simulate(
        prior, epsilons, Histogram(), methods, people=people, runs=runs, seed=seed, time_limit=limit
    )
    real, estimates = [], {}
    for epsilon in epsilons:
        rows, estimates[epsilon] = _real_surveys(prior, truth, epsilon, limit, settings)
        real += rows
    part = "the Gowalla check-ins within New York City (the full file is not on this machine)"
    at_shown = {row["method"].split(",")[0]: row for row in real if row["epsilon"] == SHOWN_BUDGET}
    check = at_shown["best"]["prior_check"]
    words = {
        "data": "the whole Gowalla data set" if checkins.whole else part,
        "checkins": len(checkins.user),
        "users": people,
        "distance": 0.5 * float(np.abs(truth / people - prior.probabilities).sum()),
        "real": {method: row["measured"] for method, row in at_shown.items()},
        "check": "p < 0.0001" if check < 1e-4 else f"p = {check}",
    }
    verdicts, numbers = _gowalla_verdicts(study, prior)
    draw = partial(_draw_gowalla, study, prior, truth, real, estimates[SHOWN_BUDGET])
    return Outcome([*study.table(), *real], draw, verdicts, words | numbers)


def _real_surveys(
    prior: Prior, truth: Ints, epsilon: float, limit: float, settings: FigureSettings
) -> tuple[list[FigureRow], dict[str, Array]]:
    """One survey of the users' real districts for each method: rows of the table, and the estimates."""
    rng = np.random.default_rng([settings.seed, 11, round(100 * epsilon)])
    codes, people = np.repeat(np.arange(len(prior)), truth), int(truth.sum())
    prior_based = design(prior, epsilon, Histogram(), time_limit=limit)
    learning = design(prior, epsilon, Distribution(), time_limit=limit)
    first = prior_based.estimate(prior_based.tally(prior_based.privatize(codes, rng, codes=True)))
    second = learning.estimate(learning.tally(learning.privatize(codes, rng, codes=True)), "mle")
    form = published.k_rr(prior, epsilon)
    supporting = rng.multinomial(truth, form.channel.matrix).sum(axis=0)
    free = cast(published.Support, form.support).counts(supporting, people)
    answers = prior.probabilities * people, first.values, second.values, free
    estimates = dict(zip(_REAL, answers, strict=True))
    rows: list[FigureRow] = []
    for method, values in estimates.items():
        error = float(((values - truth) ** 2).sum() / people)
        row = {"epsilon": epsilon, "method": method, "measured": error, "people": people, "runs": 1}
        rows.append(row | ({"prior_check": first.prior_check} if method.startswith("best") else {}))
    return rows, estimates


def _gowalla_verdicts(study: Study, prior: Prior) -> tuple[dict[str, bool], FigureRow]:
    """The verdicts, and the numbers behind them."""
    errors: dict[float, dict[str, float]] = {}
    for row in study.rows:
        errors.setdefault(row.epsilon, {"epsilon": row.epsilon})[row.method] = row.expected
    low, high, expected = errors[min(errors)], errors[max(errors)], errors[SHOWN_BUDGET]
    gaps = [at["ldp-unary"] - at["published-unary"] for at in errors.values()]
    five = design(Prior.uniform(5), SHOWN_BUDGET, Histogram())
    remaining, of_five = expected["best"] / expected["none"], five.expected_mse / five.no_report
    verdicts = {
        "small budgets": low["rr"] > max(low["hashing"], low["unary"]),
        "large budgets": high["rr"] < min(high["hashing"], high["unary"]),
        "unary": min(gaps) >= -1e-12,
        "helps less": remaining > of_five,
    }
    numbers: FigureRow = {"expected": expected, "low": low, "high": high, "most_gap": max(gaps)}
    numbers |= {"best_ldp": min(expected[method] for method in _LDP)}
    numbers |= {"valid": math.log(1 / float(prior.probabilities.min()) - 1)}
    return verdicts, numbers | {"left": remaining, "small": of_five}


def _draw_gowalla(
    study: Study, prior: Prior, truth: Ints, real: ResultRecords, estimates: dict[str, Array]
) -> curves.Figure:
    figure, axes = curves.canvas(3, 2, height=2.3)
    rows = [row for row in study.table() if not math.isnan(row["expected"])]
    for row in rows:
        if row["method"] not in _CERTIFIED:
            row["measured"] = math.nan  # no dots, for there is no room
    titles = {"as published": _PUBLISHED, "with the budget kept": _CERTIFIED}
    for panel, (title, methods) in zip(axes[0], titles.items(), strict=True):
        styles = {m: METHOD_STYLES[m] for m in ("none", *_LDP, *methods)}
        curves.method_lines(panel, rows, styles, "expected", root=True)
        panel.set(title=title, ylabel=curves.ROOT_ERROR, xlabel=curves.BUDGET, ylim=(0, None))
    curves.level_lines(axes[1, 0], rows, {m: METHOD_STYLES[m] for m in (*_PUBLISHED, "ldp-rr", "hashing")})
    for method, style in _REAL.items():
        x, y = (column(real, key, method=method) for key in ("epsilon", "measured"))
        curves.line(axes[1, 1], style, x, np.sqrt(y), marker="o")
    curves.log_scale(axes[1, 1])
    axes[1, 1].set(title="real districts, prior not right", xlabel=curves.BUDGET, ylabel=curves.ROOT_ERROR)
    plans = {"best": "best for the histogram, prior trusted", "distribution": "learning the distribution"}
    ends = [3.0, 1.3 * float(truth.max())]
    for panel, (method, title) in zip(axes[2], plans.items(), strict=True):
        expected, small = prior.probabilities * truth.sum(), {"linestyle": "", "markersize": 3}
        panel.plot(truth, expected, marker="s", color=COLOURS["grey"], alpha=0.6, label="prior", **small)
        estimate = estimates[f"{method}, real districts"]
        panel.plot(truth, estimate, marker="o", color=COLOURS["blue"], label="estimate", **small)
        panel.plot(ends, ends, color="black", linewidth=0.8)
        panel.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=f"{title}, ε = {SHOWN_BUDGET:g}")
        panel.set_xlabel("users in the district, truth")
        panel.legend(loc="upper left")
    axes[2, 0].set_ylabel("users, estimated")
    curves.legend(figure, axes[0, 0], axes[0, 1], axes[1, 1], columns=4)
    return figure


# -- figure 12: work classes collected while income is protected -------------------------------------------

_STYLES = FIGURE_STYLES["census"]
_SURVEYS = {"acs": "ACS 2018, eight brackets", "adult": "UCI Adult, two levels"}


def income_and_work(census: datasets.Census) -> Ints:
    """How many people have each income bracket (rows) and work class (columns)."""
    counts = Counter(zip(census.income, census.work, strict=True))
    return np.array([[counts[i, work] for work in datasets.WORK_CLASSES] for i in census.brackets])


def census(settings: FigureSettings) -> Outcome:
    """Figure 12: the work class, collected while income is protected, in two surveys."""
    data = {"acs": datasets.acs(), "adult": datasets.adult()}
    tables = {survey: income_and_work(people) for survey, people in data.items()}
    problems = {}
    for survey, table in tables.items():
        prior = Prior.from_counts(table.sum(axis=0).tolist(), datasets.WORK_CLASSES)
        problems[survey] = prior, Secret.from_joint(table, data[survey].brackets)
    epsilons = np.geomspace(0.05, 3.0, 7 if settings.quick else 19).tolist()
    cases = {survey: partial(_census_rows, settings, survey, *problems[survey]) for survey in problems}
    rows = sweep(epsilons, cases, _STYLES, "survey")

    def best_beats(method: str) -> bool:
        errors = ([column(rows, "mse", survey=s, method=m) for m in ("best", method)] for s in _SURVEYS)
        return all(below(best, other) for best, other in errors)

    five = CORRELATED_PRIORS[5]
    words: dict[str, Any] = {
        "truth": {
            s: leakage(Channel.identity(p.labels), p, secret).lip for s, (p, secret) in problems.items()
        },
        "ties": {survey: association(table) for survey, table in tables.items()},
        "work": {s: column(rows, "work_lip", survey=s, method="published")[0] for s in _SURVEYS},
        "synthetic": LIP().epsilon(Channel.identity(5), five, correlated_secret(five, 0.7)),
    }
    verdicts = {
        "beats ldp": best_beats("ldp-best"),
        "secret helps": best_beats("value"),
        "larger budget": min(words["truth"].values()) > words["synthetic"],
        "correlated": min(words["ties"].values()) > 0.5,
    }
    return Outcome(rows, lambda: _draw_census(rows), verdicts, words)


def _census_rows(
    settings: FigureSettings, survey: str, prior: Prior, secret: Secret, epsilon: float
) -> dict[str, FigureRow]:
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
    best = from_plan(plans["best"], SurveyScenario(prior, epsilon, Histogram(), secret))
    rng = np.random.default_rng([settings.seed, 12, len(survey), round(1e4 * epsilon)])
    mean, low, high = simulated_error(best.survey, prior, 5_000, 40 if settings.quick else 400, rng)
    rows["best"] |= {"bound": best.bound, "measured": mean, "low": low, "high": high}
    return rows


def _draw_census(rows: ResultRecords) -> curves.Figure:
    published_rows = [row for row in rows if row["method"] == "published"]
    work = [
        {**row, "method": "work", "mse": math.nan, "income_lip": row["work_lip"]} for row in published_rows
    ]
    styles = {**_STYLES, "work": ("published", "pink", "published: level of work class")}
    leaking = ("published", "value", "pufferfish", "best", "ldp", "work")
    figure = draw_pairs([*rows, *work], _SURVEYS, styles, leaking, "survey", level="income_lip")
    ticks = [0.05, 0.1, 0.3, 1, 3]
    for panel in figure.axes[2:]:
        panel.set(xscale="log", yscale="log", ylim=(0.01, 30.0))
        panel.set_xticks(ticks, [f"{t:g}" for t in ticks])
        panel.set_xticks([], minor=True)
    return figure
