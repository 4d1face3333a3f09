"""Figures 5, 8, 9 and 10: errors as the prior, the domain, the number of bins and the measure of utility vary."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.notions import LIP
from priorveil.priors import Array, Budget, Prior, PriorSet
from priorveil.queries import Guess, Histogram
from priorveil.studies import curves, published
from priorveil.studies.compare import certified_mixture
from priorveil.studies.curves import COLOURS, METHOD_STYLES, Rows, Style, below, column, line
from priorveil.studies.figures import Outcome, Row, Settings, draw_pairs, plan_row, sweep
from priorveil.studies.figures.theory import align_reports
from priorveil.studies.simulate import simulate

_PRIORS = {"uniform": Prior.uniform(5), "skewed": Prior([0.025] * 4 + [0.9])}

# -- figure 5: histograms, theory and simulation -----------------------------------------------------------

_METHODS = ("published-rr", "rr", "best", "ldp-rr", "context-free", "none")


def priors(settings: Settings) -> Outcome:
    """Figure 5: histograms of 5,000 people, for a uniform and a skewed prior, in theory and simulated."""
    epsilons = np.arange(1.0, 5.01, 1.0 if settings.quick else 0.5).tolist()
    rows: list[Row] = []
    for i, (name, prior) in enumerate(_PRIORS.items()):
        runs, seed = 60 if settings.quick else 1000, settings.seed + i
        study = simulate(prior, epsilons, None, _METHODS, people=5_000, runs=runs, seed=seed)
        rows += [{"prior": name, **row} for row in study.table()]
    errors = {
        prior: {m: np.sqrt(column(rows, "expected", prior=prior, method=m)) for m in _METHODS}
        for prior in _PRIORS
    }
    ratios = {prior: error["ldp-rr"] / error["best"] for prior, error in errors.items()}
    outputs = design(_PRIORS["skewed"], 1.0, Histogram()).channel.shape[1]
    verdicts = {
        "prior helps": all((error["best"] < error["context-free"]).all() for error in errors.values()),
        "skew helps": bool((errors["skewed"]["best"] < errors["uniform"]["best"]).all()),
        "advantage grows": bool((ratios["skewed"] > ratios["uniform"]).all()),
        "lemma 4": outputs >= 5,
    }
    leaks = [column(rows, "lip", prior=prior, method="published-rr")[0] for prior in _PRIORS]
    at_four = {prior: ratio[epsilons.index(4.0)] for prior, ratio in ratios.items()}
    words = {**errors, "leaks": leaks, "ratios": ratios, "at_four": at_four, "outputs": outputs}
    titles, styles = {name: f"{name} prior" for name in _PRIORS}, {m: METHOD_STYLES[m] for m in _METHODS}
    draw = partial(draw_pairs, rows, titles, styles, _METHODS[:-1], "prior", y="expected", log=True)
    return Outcome(rows, draw, verdicts, words)


# -- figure 8: from 10 to 50 values ------------------------------------------------------------------------

_EPSILON = 1.0
_FORMS = ("rr", "hashing", "unary")
_LDP, _PUBLISHED = (tuple(f"{kind}-{form}" for form in _FORMS) for kind in ("ldp", "published"))
_DOMAIN_STYLES: dict[str, Style] = {
    **{method: METHOD_STYLES[method] for method in ("none", *_LDP)},
    "published-rr-half": ("published", "sky", "RR-LIP at ε/2, published"),
    **{method: METHOD_STYLES[method] for method in (*_PUBLISHED, *_FORMS, "best")},
    "hashing": ("certified", "red", "LH, certified"),
    "unary": ("certified", "green", "UE, certified"),
}


def _ramp(size: int) -> Prior:
    """A prior that rises evenly: `P[x]` proportional to `x + 1`."""
    return Prior.from_counts(list(range(1, size + 1)))


def domain(settings: Settings) -> Outcome:
    """Figure 8: the histogram error against the number of values, for a prior that rises evenly."""
    sizes = list(range(10, 51, 20 if settings.quick else 5))
    methods = ["best", *_FORMS, *_PUBLISHED, *_LDP, "none"]
    limit = 2.0 if settings.quick else 15.0
    rows: list[Row] = []
    for size in sizes:
        full = simulate(_ramp(size), [_EPSILON], None, methods, runs=0, time_limit=limit).table()
        half = simulate(_ramp(size), [_EPSILON / 2], None, ["published-rr", "rr"], runs=0).table()
        rows += [{"values": size, **row} for row in full]
        rows += [{"values": size, **row, "method": f"{row['method']}-half"} for row in half]
    error = {m: column(rows, "expected", method=m) for m in (*_DOMAIN_STYLES, "rr-half")}
    gap, leaks = error["rr"] - error["unary"], column(rows, "lip", method="published-rr")
    words: Row = {"sizes": (sizes[0], sizes[-1]), "leaks": (leaks[0], leaks[-1]), "gaps": (gap[0], gap[-1])}
    words |= {
        "gain": {m: _gain(rows, m)[-1] for m in ("hashing", "unary", "rr", "ldp-unary")},
        "error": error,
    }
    words |= {"half_leak": column(rows, "lip", method="published-rr-half").max()}
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


def _gain(rows: Rows, method: str) -> Array:
    """The share of the achievable gain, in percent."""
    none, bound = column(rows, "expected", method="none"), column(rows, "bound", method="best")
    return 100 * (none - column(rows, "expected", method=method)) / (none - bound)


def _draw_domain(rows: Rows) -> curves.Figure:
    figure, axes = curves.canvas(2, 2, height=2.4, sharex=True)
    as_printed = (*_PUBLISHED, "published-rr-half")
    least = math.sqrt(column(rows, "expected", method="published-rr").min())
    titles = {"as published": (*_FORMS, "best"), "with the budget kept": as_printed}
    for panel, (title, hidden) in zip(axes[0], titles.items(), strict=True):
        shown = {method: style for method, style in _DOMAIN_STYLES.items() if method not in hidden}
        curves.method_lines(panel, rows, shown, "expected", "values", root=True)
        panel.set(ylabel=curves.ROOT_ERROR, title=title, ylim=(0.98 * least, 1.005))
    leaking = {m: _DOMAIN_STYLES[m] for m in (*_LDP, *_PUBLISHED, *_FORMS)}
    curves.method_lines(axes[1, 0], rows, leaking, "lip", "values")
    sizes = column(rows, "values", method="best")
    curves.shade_violations(axes[1, 0], sizes, np.full(len(sizes), _EPSILON))
    axes[1, 0].set(xlabel="number of values d", ylabel=curves.LEVEL)
    for method in (*_LDP, *_FORMS, "best"):
        line(axes[1, 1], (*_DOMAIN_STYLES[method][:2], "_"), sizes, _gain(rows, method))
    axes[1, 1].set(xlabel="number of values d", ylabel="achievable gain (%)", ylim=(0, 105))
    curves.legend(figure, columns=4)
    return figure


# -- figure 9: hash functions on 20 values -----------------------------------------------------------------

_VALUES = 20
_HEAVY, _BEST = "hashing, certified", "best LIP design"


def hashing(settings: Settings) -> Outcome:
    """Figure 9: random hash functions on 20 values, for each number of bins."""
    rng, prior = np.random.default_rng([settings.seed, 9]), _ramp(_VALUES)
    count = 12 if settings.quick else 100
    rows = [
        _hash_row(prior, size, rng.integers(size, size=_VALUES).tolist())
        for size in range(1, _VALUES + 1)
        for _ in range(count if size > 1 else 1)
    ]
    heavy = plan_row(design(prior, _EPSILON, Histogram(), method="hashing"))
    best = plan_row(design(prior, _EPSILON, Histogram(), time_limit=10))
    certified = {size: column(rows, "certified_mse", bins=size) for size in range(1, _VALUES + 1)}
    best_size = min(certified, key=lambda size: float(certified[size].mean()))
    spread = max(float(np.ptp(errors)) for errors in certified.values())
    leaks = [row["lip"] for row in rows if 12 <= row["bins"] <= 16]
    words = {"count": count, "best_size": best_size, "leaks": (min(leaks), max(leaks))}
    words |= {"most": max(row["bins"] for row in rows if row["valid"])}
    return Outcome(
        [*rows, {"method": _HEAVY, **heavy}, {"method": _BEST, **best}],
        lambda: _draw_hashing(rows, certified, heavy, best),
        {"best size": 12 <= best_size <= 16, "differ": spread > 1e-4},
        words | {"heavy": math.sqrt(heavy["mse"]), "best": math.sqrt(best["mse"])},
    )


def _hash_row(prior: Prior, size: int, assignment: list[int]) -> Row:
    form = published.lh_lip(prior, _EPSILON, assignment)
    channel, proof = certified_mixture(form.channel, prior, Budget(_EPSILON))
    level = form.leakage.lip
    row = {"method": "LH-LIP, published", "bins": size, "mse": form.mse, "lip": level}
    kept = {"certified_mse": Histogram().error(channel, prior), "certified_lip": proof.lip}
    return {**row, "valid": level <= _EPSILON + 1e-9, **kept}


def _draw_hashing(rows: Rows, certified: dict[int, Array], heavy: Row, best: Row) -> curves.Figure:
    figure, axes = curves.canvas(2, 1, width=4.6, height=2.6, sharex=True)
    top, bottom = axes[:, 0]
    for valid, colour, verb in ((False, COLOURS["orange"], "breaks"), (True, COLOURS["red"], "keeps")):
        style: dict[str, Any] = {"color": colour, "markerfacecolor": colour if valid else "none"}
        style |= {"label": f"published, {verb} ε", "markersize": 3, "markeredgewidth": 0.6}
        bins = column(rows, "bins", valid=valid)
        top.plot(bins, np.sqrt(column(rows, "mse", valid=valid)), "o", **style)
        bottom.plot(bins, column(rows, "lip", valid=valid), "o", **style)
    means = np.sqrt([errors.mean() for errors in certified.values()])
    sizes, floor = np.array(list(certified)), 0.99 * math.sqrt(column(rows, "mse").min())
    line(top, ("certified", "blue", "mixed to keep ε, mean"), sizes, means)
    line(top, ("certified", "green", _HEAVY), sizes, np.full(_VALUES, math.sqrt(heavy["mse"])))
    line(top, ("best", "black", _BEST), sizes, np.full(_VALUES, math.sqrt(best["mse"])))
    top.axhspan(floor, math.sqrt(best["bound"]), color="black", alpha=0.06, linewidth=0)
    top.set(ylabel=curves.ROOT_ERROR, ylim=(floor, None))
    curves.shade_violations(bottom, [0.5, _VALUES + 0.5], [_EPSILON, _EPSILON])
    ticks = range(2, _VALUES + 1, 2)
    bottom.set(xlabel="number of bins", ylabel=curves.LEVEL, xticks=ticks, xlim=(0.5, _VALUES + 0.5))
    curves.legend(figure, top, columns=2)
    return figure


# -- figure 10: guesses, by Hamming distance ---------------------------------------------------------------

_MOST = 0.3  # Pr(X = 1) is known not to exceed this
_GUESS_STYLES: dict[str, Style] = {
    "published": ("published", "orange", "published LIP, report as guess"),
    "certified": ("certified", "blue", "certified RR, report as guess"),
    "ldp": ("ldp", "blue", "RR-LDP, report as guess"),
    "ldp-guess": ("ldp", "black", "RR-LDP, best guess"),
    "best": ("best", "black", "best LIP, best guess"),
    "none": ("baseline", "grey", "no report, best guess"),
}


def guesses(settings: Settings) -> Outcome:
    """Figure 10: the share of people whose guess is wrong, for two values and for five."""
    epsilons = np.linspace(0.5, 4.0, 8 if settings.quick else 15).tolist()
    five = {name: partial(_guesses, prior) for name, prior in _PRIORS.items()}
    rows = sweep(epsilons, {"binary": _binary_guesses, **five}, _GUESS_STYLES)

    def wrong(case: str, method: str) -> Array:
        return column(rows, "wrong", case=case, method=method)

    reported = {case: float((wrong(case, "ldp") - wrong(case, "certified")).max()) for case in _PRIORS}
    guessed = {case: float((wrong(case, "ldp-guess") - wrong(case, "best")).max()) for case in _PRIORS}
    verdicts = {
        "binary": bool((wrong("binary", "certified") < wrong("binary", "ldp") - 1e-6).all()),
        "five values": all(below(wrong(case, "certified"), wrong(case, "ldp")) for case in _PRIORS),
        "advantage grows": reported["skewed"] > reported["uniform"],
    }
    excess = (column(rows, "lip", case="binary", method="published") - epsilons).max()
    titles = {"binary": "two values, Pr(1) ≤ 0.3"} | {name: f"five values, {name}" for name in _PRIORS}
    draw = partial(draw_pairs, rows, titles, _GUESS_STYLES, ("published", "ldp", "certified"), y="wrong")
    return Outcome(rows, draw, verdicts, {"excess": excess, "reported": reported, "guessed": guessed})


def _binary_guesses(epsilon: float) -> dict[str, Row]:
    """Wrong guesses are linear in the prior, so their mean over the range is their value in its middle."""
    known, middle = PriorSet.interval([1 - _MOST, 0.0], [1.0, _MOST]), Prior([1 - _MOST / 2, _MOST / 2])
    best = Channel(align_reports(design(known, epsilon, Histogram()).channel.matrix))
    form, ldp = published.binary_bounded(0.0, _MOST, epsilon), published.k_rr(middle, epsilon)
    channels = {"published": form.channel, "certified": best, "ldp": ldp.channel}
    rows = _guess_rows(channels, middle, {m: LIP().epsilon(channels[m], known) for m in channels})
    return {**rows, "best": {"wrong": Guess().error(best, middle), "lip": rows["certified"]["lip"]}}


def _guesses(prior: Prior, epsilon: float) -> dict[str, Row]:
    form, ldp = published.rr_lip(prior, epsilon), published.k_rr(prior, epsilon)
    certified, proof = certified_mixture(form.channel, prior, Budget(epsilon))
    plan = design(prior, epsilon, Guess(), time_limit=10)
    channels = {"published": form.channel, "certified": certified, "ldp": ldp.channel}
    levels = {"published": form.leakage.lip, "certified": proof.lip, "ldp": ldp.leakage.lip}
    best = {"wrong": plan.expected_mse, "bound": plan.lower_bound, "lip": plan.certificate.lip}
    return {**_guess_rows(channels, prior, levels), "best": best}


def _guess_rows(channels: dict[str, Channel], prior: Prior, levels: dict[str, float]) -> dict[str, Row]:
    """The share of wrong guesses: the report is the guess, the best guess from LDP, and that from no report."""
    rows = {
        method: {"wrong": 1 - float(prior.probabilities @ np.diag(channel.matrix)), "lip": levels[method]}
        for method, channel in channels.items()
    }
    rows["ldp-guess"] = {"wrong": Guess().error(channels["ldp"], prior), "lip": levels["ldp"]}
    return {**rows, "none": {"wrong": Guess().no_report(prior), "lip": 0.0}}
