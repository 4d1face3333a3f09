"""Figures 5, 8, 9 and 10: errors as the prior, the domain, the number of bins and the measure of utility vary."""

from __future__ import annotations

import math
from dataclasses import replace
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
from priorveil.studies.curves import COLOURS, METHOD_STYLES, Curve, Rows, Style, below, column, method_curves
from priorveil.studies.figures import Claims, Figure, Outcome, Settings, draw_pairs, label_rows, plan_row
from priorveil.studies.figures.examples import align_reports
from priorveil.studies.simulate import simulate

_PRIORS = {"uniform": Prior.uniform(5), "skewed": Prior([0.025] * 4 + [0.9])}

# -- figure 5: histograms, theory and simulation -----------------------------------------------------------

_METHODS = ("published-rr", "rr", "best", "ldp-rr", "context-free", "none")


@partial(Figure, 5, "priors", "The impact of the prior")
def priors(settings: Settings) -> Outcome:
    """Histogram of 5,000 people over {0, ..., 4}: uniform prior (left) and (0.025 ×4, 0.9) (right).

    Lines are theory, dots simulations with 99 % intervals. Top: error per person (logarithmic); bottom: the LIP level
    that each mechanism really has. 'Context-free' is LDP's randomised response with an estimator that knows no prior.
    """
    epsilons = np.arange(1.0, 5.01, 1.0 if settings.quick else 0.5).tolist()
    rows: list[dict[str, Any]] = []
    for i, name in enumerate(settings.track(list(_PRIORS))):
        runs, seed = 60 if settings.quick else 1000, settings.seed + i
        study = simulate(_PRIORS[name], epsilons, None, _METHODS, people=5_000, runs=runs, seed=seed)
        rows += [{"prior": name, **row} for row in study.table()]
    error = {
        (prior, method): np.sqrt(column(rows, "expected", prior=prior, method=method))
        for prior in _PRIORS
        for method in _METHODS
    }
    leaks = [column(rows, "lip", prior=prior, method="published-rr")[0] for prior in _PRIORS]
    return Outcome(
        rows=rows,
        draw=lambda: _draw_priors(rows),
        remarks=(
            f"The published mechanism claims ε = 1 and leaks {leaks[0]:.3f} (uniform) and {leaks[1]:.3f} (skewed); it "
            "is valid from ε = log 4 = 1.39 and from ε = log 39 = 3.66 on.",
            f"On the skewed prior its error at ε = 1 is {error['skewed', 'published-rr'][0]:.3f}, the best valid one "
            f"{error['skewed', 'best'][0]:.3f}, LDP {error['skewed', 'ldp-rr'][0]:.3f}.",
            "The best design joins the published curve exactly where that becomes valid.",
        ),
        claims=_prior_claims(error, epsilons),
    )


def _prior_claims(error: dict[tuple[str, str], Array], epsilons: list[float]) -> Claims:
    even, odd = (error[prior, "ldp-rr"] / error[prior, "best"] for prior in _PRIORS)
    four = epsilons.index(4.0)
    outputs = design(_PRIORS["skewed"], 1.0, Histogram()).channel.shape[1]
    return {
        "Knowing the prior improves utility greatly over the context-free estimator.": (
            all((error[prior, "best"] < error[prior, "context-free"]).all() for prior in _PRIORS),
            f"At ε = 1 the context-free error is {error['uniform', 'context-free'][0]:.2f}, the best "
            f"{error['uniform', 'best'][0]:.2f}.",
        ),
        "A skewed prior gives a smaller error than a uniform one at the same ε.": (
            bool((error["skewed", "best"] < error["uniform", "best"]).all()),
            f"Mostly since less is unknown: without a report the errors are {error['uniform', 'none'][0]:.3f} and "
            f"{error['skewed', 'none'][0]:.3f}.",
        ),
        "The advantage of LIP over LDP grows as the prior becomes more skewed.": (
            bool((odd > even).all()),
            f"Not at every ε: LDP's error is {even[0]:.2f} (uniform) and {odd[0]:.2f} (skewed) times the best at "
            f"ε = 1, {even[four]:.2f} and {odd[four]:.2f} times at ε = 4.",
        ),
        "As many outputs as inputs are needed (Lemma 4).": (
            outputs >= 5,
            f"The best channel for the skewed prior at ε = 1 has {outputs} outputs for 5 inputs.",
        ),
    }


def _draw_priors(rows: Rows) -> curves.Figure:
    titles, styles = {name: f"{name} prior" for name in _PRIORS}, {m: METHOD_STYLES[m] for m in _METHODS}
    return draw_pairs(rows, titles, styles, _METHODS[:-1], "prior", y="expected", height=2.4, log=True)


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


@partial(Figure, 8, "domain", "The size of the domain")
def domain(settings: Settings) -> Outcome:
    """Histogram error against the number of values, ε = 1, for a prior that rises evenly.

    P ∝ 1, 2, ..., d; the paper draws priors at random. Top: as published, and with the budget kept. Bottom left: the
    LIP level that each really has. Bottom right: the share of the achievable gain over no report; above 100 % is only
    possible by leaking.
    """
    sizes = list(range(10, 51, 20 if settings.quick else 5))
    methods = ["best", *_FORMS, *_PUBLISHED, *_LDP, "none"]
    rows: list[dict[str, Any]] = []
    for size in settings.track(sizes):
        limit = 2.0 if settings.quick else 15.0
        found = simulate(_ramp(size), [_EPSILON], None, methods, runs=0, time_limit=limit).rows
        half = simulate(_ramp(size), [_EPSILON / 2], None, ["published-rr", "rr"], runs=0).rows
        for row in [*found, *(replace(row, method=f"{row.method}-half") for row in half)]:
            shared = {"values": size, "epsilon": row.epsilon, "method": row.method, "kind": row.kind}
            rows.append({**shared, "mse": row.expected, "bound": row.bound, "lip": row.lip, "ldp": row.ldp})
    leaks = column(rows, "lip", method="published-rr")
    last = {m: _gain(rows, m)[-1] for m in ("hashing", "unary", "rr", "ldp-unary")}
    return Outcome(
        rows=rows,
        draw=lambda: _draw_domain(rows),
        remarks=(
            f"Published RR-LIP leaks {leaks[0]:.2f} at {sizes[0]} values and {leaks[-1]:.2f} at {sizes[-1]}.",
            f"At {sizes[-1]} values hashing gets {last['hashing']:.0f} % of the achievable gain, unary "
            f"{last['unary']:.0f} %, certified RR {last['rr']:.0f} %, OUE-LDP {last['ldp-unary']:.0f} %.",
            "The proven lower bound and the best design coincide to the eye.",
        ),
        claims=_domain_claims(rows),
    )


def _gain(rows: Rows, method: str) -> Array:
    """The share of the achievable gain, in percent."""
    none, bound = column(rows, "mse", method="none"), column(rows, "bound", method="best")
    return 100 * (none - column(rows, "mse", method=method)) / (none - bound)


def _domain_claims(rows: Rows) -> Claims:
    error = {m: column(rows, "mse", method=m) for m in (*_DOMAIN_STYLES, "rr-half")}
    gap = error["rr"] - error["unary"]
    growing = all((np.diff(error[method]) > 0).all() for method in ("best", *_FORMS, *_LDP))
    return {
        "RR-LDP lies between RR-LIP at ε and at ε/2.": (
            below(error["rr"], error["ldp-rr"], 1e-12) and below(error["ldp-rr"], error["rr-half"], 1e-12),
            "With its budget kept RR-LIP is worse than RR-LDP here. As printed it leaks up to "
            f"{column(rows, 'lip', method='published-rr-half').max():.2f} instead of 0.5 at ε/2.",
        ),
        "On small domains (fewer than 15 values) RR-LIP beats LH-LIP.": (
            bool(error["rr"][0] <= error["hashing"][0]),
            f"At 10 values RR has MSE {error['rr'][0]:.3f} and hashing {error['hashing'][0]:.3f}.",
        ),
        "On large domains UE-LIP beats RR-LIP.": (
            bool(gap[-1] > 0),
            "As printed RR-LIP beats it, by leaking.",
        ),
        "That gap widens as the domain grows.": (
            bool((np.diff(gap) > 0).all()),
            f"At ε = 1 both approach no report: the gap in MSE goes from {gap[0]:.4f} to {gap[-1]:.4f}.",
        ),
        "UE-LIP beats OUE-LDP.": (below(error["published-unary"], error["ldp-unary"], 1e-12), ""),
        "LH-LIP beats OLH-LDP.": (below(error["hashing"], error["ldp-hashing"], 1e-12), ""),
        "The error under each notion grows with the domain.": (growing, ""),
    }


def _draw_domain(rows: Rows) -> curves.Figure:
    figure, axes = curves.canvas(2, 2, height=2.4, sharex=True)
    as_printed = (*_PUBLISHED, "published-rr-half")
    least = math.sqrt(column(rows, "mse", method="published-rr").min())
    titles = {"as published": (*_FORMS, "best"), "with the budget kept": as_printed}
    for panel, (title, hidden) in zip(axes[0], titles.items(), strict=True):
        shown = {method: style for method, style in _DOMAIN_STYLES.items() if method not in hidden}
        curves.lines(method_curves(rows, shown, "mse", "values", root=True), panel)
        panel.set(ylabel=curves.ROOT_ERROR, title=title, ylim=(0.98 * least, 1.005))
    leaking = {m: _DOMAIN_STYLES[m] for m in (*_LDP, *_PUBLISHED, *_FORMS)}
    curves.lines(method_curves(rows, leaking, "lip", "values"), axes[1, 0])
    sizes = column(rows, "values", method="best")
    curves.shade_violations(axes[1, 0], sizes, np.full(len(sizes), _EPSILON))
    axes[1, 0].set(xlabel="number of values d", ylabel=curves.LEVEL)
    shares = (*_LDP, *_FORMS, "best")
    curves.lines([Curve("_", *_DOMAIN_STYLES[m][:2], sizes, _gain(rows, m)) for m in shares], axes[1, 1])
    axes[1, 1].set(xlabel="number of values d", ylabel="achievable gain (%)", ylim=(0, 105))
    curves.legend(figure, columns=4)
    return figure


# -- figure 9: hash functions on 20 values -----------------------------------------------------------------

_VALUES = 20
_HEAVY, _BEST = "hashing, certified", "best LIP design"


@partial(Figure, 9, "hashing", "How many bins to hash into")
def hashing(settings: Settings) -> Outcome:
    """LH-LIP on 20 values, ε = 1, with random hash functions for each number of bins.

    The prior is P ∝ 1, 2, ..., 20 (the printed one, 0 to 0.1 in steps of 0.005, does not add up to one and has a value
    that never happens). Top: error; a dot is one hash function, full where it keeps the budget. Bottom: the LIP level
    that it really has.
    """
    rng, prior = np.random.default_rng([settings.seed, 9]), _ramp(_VALUES)
    count = 12 if settings.quick else 100
    rows: list[dict[str, Any]] = []
    for size in settings.track(range(1, _VALUES + 1)):
        for _ in range(count if size > 1 else 1):
            rows.append(_hash_row(prior, size, rng.integers(size, size=_VALUES).tolist()))
    heavy = plan_row(design(prior, _EPSILON, Histogram(), method="hashing"))
    best = plan_row(design(prior, _EPSILON, Histogram(), time_limit=10))
    certified = {size: column(rows, "certified_mse", bins=size) for size in range(1, _VALUES + 1)}
    best_size = min(certified, key=lambda size: float(certified[size].mean()))
    spread = max(float(np.ptp(errors)) for errors in certified.values())
    most = max(row["bins"] for row in rows if row["valid"])
    leaks = [row["lip"] for row in rows if 12 <= row["bins"] <= 16]
    return Outcome(
        rows=[*rows, {"method": _HEAVY, **heavy}, {"method": _BEST, **best}],
        draw=lambda: _draw_hashing(rows, certified, heavy, best),
        remarks=(
            f"With more than {most} bins none of the {count} functions tried keeps ε = 1: the error falls by leaking.",
            f"With the budget kept, the mean error is least at {best_size} bins and then returns to that of no report.",
            f"A hash chosen so that every bin is heavy enough reaches a root error of {math.sqrt(heavy['mse']):.4f}; "
            f"the best design {math.sqrt(best['mse']):.4f}.",
        ),
        claims={
            "The best hashing size is 12 to 16 bins.": (
                12 <= best_size <= 16,
                f"Those functions leak {min(leaks):.2f} to {max(leaks):.2f}. A bin must have mass 1/(1+e^ε) = 0.27 or "
                f"more, so three bins at most; with the budget kept {best_size} bins are best on average.",
            ),
            "Different hash functions of one size differ in utility.": (spread > 1e-4, ""),
        },
    )


def _hash_row(prior: Prior, size: int, assignment: list[int]) -> dict[str, Any]:
    form = published.lh_lip(prior, _EPSILON, assignment)
    channel, proof = certified_mixture(form.channel, prior, Budget(_EPSILON))
    level = form.leakage.lip
    row = {"method": "LH-LIP, published", "bins": size, "mse": form.mse, "lip": level}
    kept = {"certified_mse": Histogram().error(channel, prior), "certified_lip": proof.lip}
    return {**row, "valid": level <= _EPSILON + 1e-9, **kept}


def _draw_hashing(
    rows: Rows, certified: dict[int, Array], heavy: dict[str, Any], best: dict[str, Any]
) -> curves.Figure:
    figure, axes = curves.canvas(2, 1, width=4.6, height=2.6, sharex=True)
    top, bottom = axes[:, 0]
    for valid, colour, verb in ((False, COLOURS["orange"], "breaks"), (True, COLOURS["red"], "keeps")):
        style: dict[str, Any] = {"color": colour, "markerfacecolor": colour if valid else "none"}
        style |= {"label": f"published, {verb} ε", "markersize": 3, "markeredgewidth": 0.6}
        bins = column(rows, "bins", valid=valid)
        top.plot(bins, np.sqrt(column(rows, "mse", valid=valid)), "o", **style)
        bottom.plot(bins, column(rows, "lip", valid=valid), "o", **style)
    means = np.sqrt([errors.mean() for errors in certified.values()])
    sizes, floor = list(certified), 0.99 * math.sqrt(column(rows, "mse").min())
    flat = [Curve(_HEAVY, "certified", "green", sizes, [math.sqrt(heavy["mse"])] * _VALUES)]
    flat += [Curve(_BEST, "best", "black", sizes, [math.sqrt(best["mse"])] * _VALUES)]
    curves.lines([Curve("mixed to keep ε, mean", "certified", "blue", sizes, means), *flat], top)
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


@partial(Figure, 10, "hamming", "Hamming utility")
def guesses(settings: Settings) -> Outcome:
    """Utility by Hamming distance: the share of people whose guess is wrong.

    Left: two values, Pr(X = 1) only known to be at most 0.3 (the error is the mean over that range). Middle and right:
    five values, uniform and (0.025 ×4, 0.9). The paper takes the report itself as the guess; 'best guess' is the
    likeliest value given the report. Bottom: real LIP levels.
    """
    epsilons = np.linspace(0.5, 4.0, 8 if settings.quick else 15).tolist()
    rows: list[dict[str, Any]] = []
    for epsilon in settings.track(epsilons):
        rows += label_rows(_binary_guesses(epsilon), _GUESS_STYLES, case="binary", epsilon=epsilon)
        for case, prior in _PRIORS.items():
            rows += label_rows(_guesses(prior, epsilon), _GUESS_STYLES, case=case, epsilon=epsilon)
    leaks = column(rows, "lip", case="binary", method="published")
    titles = {"binary": "two values, Pr(1) ≤ 0.3"} | {name: f"five values, {name}" for name in _PRIORS}
    leaking = ("published", "ldp", "certified")
    return Outcome(
        rows=rows,
        draw=lambda: draw_pairs(rows, titles, _GUESS_STYLES, leaking, y="wrong", height=2.2),
        remarks=(
            f"Left: LIP for this range is LDP; Proposition 2 leaks up to {(leaks - epsilons).max():.2f} too much.",
            "Right: at a small budget the report as the guess is worse than not asking: the prior is right for 90 %.",
            "A guess from the posterior is never worse than no report.",
        ),
        claims=_guess_claims(rows),
    )


def _binary_guesses(epsilon: float) -> dict[str, dict[str, float]]:
    """Wrong guesses are linear in the prior, so their mean over the range is their value in its middle."""
    known, middle = PriorSet.interval([1 - _MOST, 0.0], [1.0, _MOST]), Prior([1 - _MOST / 2, _MOST / 2])
    best = Channel(align_reports(design(known, epsilon, Histogram()).channel.matrix))
    form, ldp = published.binary_bounded(0.0, _MOST, epsilon), published.k_rr(middle, epsilon)
    channels = {"published": form.channel, "certified": best, "ldp": ldp.channel}
    rows = _guess_rows(channels, middle, {m: LIP().epsilon(channels[m], known) for m in channels})
    return {**rows, "best": {"wrong": Guess().error(best, middle), "lip": rows["certified"]["lip"]}}


def _guesses(prior: Prior, epsilon: float) -> dict[str, dict[str, float]]:
    form, ldp = published.rr_lip(prior, epsilon), published.k_rr(prior, epsilon)
    certified, proof = certified_mixture(form.channel, prior, Budget(epsilon))
    plan = design(prior, epsilon, Guess(), time_limit=10)
    channels = {"published": form.channel, "certified": certified, "ldp": ldp.channel}
    levels = {"published": form.leakage.lip, "certified": proof.lip, "ldp": ldp.leakage.lip}
    best = {"wrong": plan.expected_mse, "bound": plan.lower_bound, "lip": plan.certificate.lip}
    return {**_guess_rows(channels, prior, levels), "best": best}


def _guess_rows(
    channels: dict[str, Channel], prior: Prior, levels: dict[str, float]
) -> dict[str, dict[str, float]]:
    """The share of wrong guesses: the report is the guess, the best guess from LDP, and that from no report."""
    rows = {
        method: {"wrong": 1 - float(prior.probabilities @ np.diag(channel.matrix)), "lip": levels[method]}
        for method, channel in channels.items()
    }
    rows["ldp-guess"] = {"wrong": Guess().error(channels["ldp"], prior), "lip": levels["ldp"]}
    return {**rows, "none": {"wrong": Guess().no_report(prior), "lip": 0.0}}


def _guess_claims(rows: Rows) -> Claims:
    def wrong(case: str, method: str) -> Array:
        return column(rows, "wrong", case=case, method=method)

    reported = {case: float((wrong(case, "ldp") - wrong(case, "certified")).max()) for case in _PRIORS}
    guessed = {case: float((wrong(case, "ldp-guess") - wrong(case, "best")).max()) for case in _PRIORS}
    return {
        "Two values, prior bounded above: BP-LIP beats LDP.": (
            bool((wrong("binary", "certified") < wrong("binary", "ldp") - 1e-6).all()),
            "The range includes Pr(X = 1) = 0, where LIP's condition is that of LDP: the two coincide.",
        ),
        "Five values: RR-LIP beats RR-LDP, the report being the guess.": (
            all(below(wrong(case, "certified"), wrong(case, "ldp")) for case in _PRIORS),
            "Also with the budget kept; but on the skewed prior both are worse than no report at small ε.",
        ),
        "The advantage grows as the prior becomes more skewed.": (
            reported["skewed"] > reported["uniform"],
            f"The largest gain is {reported['uniform']:.3f} (uniform) and {reported['skewed']:.3f} (skewed); with the "
            f"best guess on both sides {guessed['uniform']:.3f} and {guessed['skewed']:.3f}.",
        ),
    }
