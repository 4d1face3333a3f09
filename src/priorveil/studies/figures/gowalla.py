# ruff: noqa: RUF001 (captions use the symbols of the paper)
"""Figure 11: Gowalla, the district of each user's latest check-in. The prior comes from the earlier ones."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from priorveil.designs import design
from priorveil.priors import Array, Prior
from priorveil.queries import Distribution, Histogram
from priorveil.studies import datasets, plots, published
from priorveil.studies.compare import Counts
from priorveil.studies.figures.frame import Claim, Figure, Outcome, Settings
from priorveil.studies.plots import Rows, Style, column
from priorveil.studies.simulate import Study, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

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


def run(settings: Settings) -> Outcome:
    """All methods under the prior, as in the paper; then the best ones on the users' real districts."""
    checkins = datasets.gowalla()
    prior, truth, once = district_counts(checkins)
    settings.done(0.05)
    epsilons = [1.0, 3.0, 5.0] if settings.quick else np.arange(0.5, 6.01, 0.5).tolist()
    methods = [*_PUBLISHED, *_LDP, *_CERTIFIED, "none"]
    finished, limit = count(1), 1.0 if settings.quick else 8.0
    study = simulate(
        prior, epsilons, None, methods, people=int(truth.sum()), runs=20 if settings.quick else 200,
        seed=settings.seed, time_limit=limit,
        progress=lambda _: settings.done(0.05 + 0.6 * next(finished) / (len(epsilons) * len(methods))),
    )  # fmt: skip
    estimates: dict[str, Array] = {}
    real = []
    for epsilon in epsilons:
        rows, found = _real_surveys(prior, truth, epsilon, limit, settings)
        real += rows
        estimates = found if epsilon == SHOWN else estimates
    data = "the whole Gowalla data set" if checkins.whole else (
        "the Gowalla check-ins within New York City (the full file is not on this machine)"
    )  # fmt: skip
    return Outcome(
        rows=[*study.table(), *real],
        draw=lambda: _draw(study, prior, truth, real, estimates),
        caption=(
            f"Districts of the latest check-in of {truth.sum():,} users; data: {data}, {len(checkins):,} check-ins. A "
            f"grid of {SIDE} × {SIDE} districts over the area, the {DISTRICTS} most visited ones and 'elsewhere': "
            f"{len(prior)} values, as in the paper. The prior comes from everybody's earlier check-ins. Top and middle "
            "left: as in the paper, users are drawn from that prior (lines: theory; dots: simulation). Middle right "
            f"and bottom: surveys of the users' real districts, which that prior describes badly; bottom at ε = "
            f"{SHOWN:g}."
        ),
        see=_remarks(study, real, [_distance(law, truth) for law in (prior.probabilities, once)]),
        claims=_claims(study, prior),
    )


def _real_surveys(
    prior: Prior, truth: Counts, epsilon: float, limit: float, settings: Settings
) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """One survey of the users' real districts for each method: rows of the table, and the estimates."""
    rng = np.random.default_rng([settings.seed, 11, round(100 * epsilon)])
    codes, people = np.repeat(np.arange(len(prior)), truth), int(truth.sum())
    trusting = design(prior, epsilon, Histogram(), time_limit=limit)
    learning = design(prior, epsilon, Distribution(), time_limit=limit)
    first = trusting.estimate(trusting.tally(trusting.privatize(codes, rng)))
    second = learning.estimate(learning.tally(learning.privatize(codes, rng)), "mle")
    form = published.k_rr(prior, epsilon)
    assert form.support is not None
    free = form.support.counts(rng.multinomial(truth, form.channel.matrix).sum(axis=0), people)
    none = prior.probabilities * people
    estimates = dict(zip(_REAL, (none, first.values, second.values, free), strict=True))
    rows = [
        {
            "epsilon": epsilon,
            "method": method,
            "measured": float(((values - truth) ** 2).sum() / people),
            "people": people,
            "runs": 1,
            "prior_check": first.prior_check if method.startswith("best") else None,
        }
        for method, values in estimates.items()
    ]
    return rows, estimates


def _expected(study: Study, method: str, epsilon: float) -> float:
    return next(row.expected for row in study.of(method) if row.epsilon == epsilon)


def _distance(P: Array, truth: Counts) -> float:
    """The total variation distance between `P` and the true shares."""
    return 0.5 * float(np.abs(truth / truth.sum() - P).sum())


def _remarks(study: Study, real: Rows, distances: list[float]) -> tuple[str, ...]:
    leaks = {method: max(row.lip - row.epsilon for row in study.of(method)) for method in _PUBLISHED}
    at = {row["method"].split(",")[0]: row for row in real if row["epsilon"] == SHOWN}
    check = at["best"]["prior_check"]
    return (
        f"Published RR-LIP leaks up to {leaks['published-rr']:.1f} more than it claims, LH-LIP up to "
        f"{leaks['published-hashing']:.1f}; UE-LIP keeps its budget.",
        f"If the prior were right, the best design at ε = {SHOWN:g} would have MSE "
        f"{_expected(study, 'best', SHOWN):.3f} per person; the best of LDP "
        f"{min(_expected(study, method, SHOWN) for method in _LDP):.3f}, no report "
        f"{_expected(study, 'none', SHOWN):.3f}.",
        f"It is not: {distances[0]:.0%} of the users are elsewhere than it says ({distances[1]:.0%} if each user "
        "counted once in it). A wrong prior costs a bias that grows with the number of people: the real MSE of the "
        f"same mechanism is {at['best']['measured']:.0f}, more than that of LDP without any prior "
        f"({at['context-free']['measured']:.0f}). The test of the prior, which costs nothing, says so "
        f"({'p < 0.0001' if check < 1e-4 else f'p = {check}'}).",
        "A design for learning the distribution uses the prior for the noise only; read by maximum likelihood, its "
        f"real MSE is {at['distribution']['measured']:.1f}.",
    )


def _claims(study: Study, prior: Prior) -> tuple[Claim, ...]:
    epsilons = sorted({row.epsilon for row in study.rows})
    low, high = (
        {m: _expected(study, m, epsilon) for m in _CERTIFIED} for epsilon in (epsilons[0], epsilons[-1])
    )
    valid = math.log(1 / float(prior.probabilities.min()) - 1)
    five, none = design(Prior.uniform(5), SHOWN, Histogram()), _expected(study, "none", SHOWN)
    left, small = _expected(study, "best", SHOWN) / none, five.expected_mse / five.no_report
    gaps = [_expected(study, "ldp-unary", e) - _expected(study, "published-unary", e) for e in epsilons]

    def listed(errors: dict[str, float]) -> str:
        return ", ".join(f"{method} {errors[method]:.3f}" for method in ("rr", "hashing", "unary"))

    return (
        Claim(
            "For small ε, RR-LIP is worse than LH-LIP and UE-LIP.",
            low["rr"] > max(low["hashing"], low["unary"]),
            f"With the budget kept, at ε = {epsilons[0]:g}: MSE of {listed(low)}. (As printed RR-LIP would be far "
            "better, by leaking.)",
        ),
        Claim(
            "For large ε, RR-LIP overtakes both.",
            high["rr"] < min(high["hashing"], high["unary"]),
            f"At ε = {epsilons[-1]:g}: MSE of {listed(high)}. Only from ε = {valid:.2f} on is every district heavy "
            "enough for Theorem 3, which then is the optimum.",
        ),
        Claim(
            "UE-LIP beats OUE-LDP.",
            min(gaps) >= -1e-12,
            "True as printed, since Theorem 4 holds; but the rarest district decides, and the gap in MSE is at most "
            f"{max(gaps):.4f}.",
        ),
        Claim(
            "Increasing ε helps less here than on a small domain, since each district's probability is small.",
            left > small,
            f"True, though less so than printed curves of UE-LIP and LDP suggest: at ε = {SHOWN:g} the best design "
            f"leaves {left:.0%} of the error of no report, against {small:.0%} on five uniform values; UE-LIP leaves "
            f"{_expected(study, 'published-unary', SHOWN) / none:.0%}.",
        ),
    )


def _draw(study: Study, prior: Prior, truth: Counts, real: Rows, estimates: dict[str, Array]) -> Picture:
    figure, axes = plots.canvas(3, 2, height=2.3)
    shown = dict(zip(study.methods(), plots.study_lines(study), strict=True))
    plain = {m: replace(line, dots=None, ends=None) for m, line in shown.items()}
    context = [plain[m] for m in ("none", *_LDP)]
    plots.lines([*context, *(plain[m] for m in _PUBLISHED)], axes[0, 0])
    plots.lines([*context, *(shown[m] for m in _CERTIFIED)], axes[0, 1])
    for panel, title in zip(axes[0], ("as published", "with the budget kept"), strict=True):
        panel.set(title=title, ylabel=plots.ROOT_ERROR, xlabel=plots.BUDGET, ylim=(0, None))
    leaking = (*_PUBLISHED, "ldp-rr", "hashing")
    plots.levels(Study(study.query, tuple(row for row in study.rows if row.method in leaking)), axes[1, 0])
    for method, (kind, colour, label) in _REAL.items():
        x, y = (column(real, key, method=method) for key in ("epsilon", "measured"))
        plots.lines([plots.Line(label, kind, colour, x, np.sqrt(y), marker="o")], axes[1, 1])
    plots.log_scale(axes[1, 1])
    axes[1, 1].set(title="real districts, prior not right", xlabel=plots.BUDGET, ylabel=plots.ROOT_ERROR)
    titles = {"best": "best for the histogram, prior trusted", "distribution": "learning the distribution"}
    for panel, (method, title) in zip(axes[2], titles.items(), strict=True):
        _scatter(panel, prior, truth, estimates[f"{method}, real districts"], f"{title}, ε = {SHOWN:g}")
    axes[2, 1].set_ylabel("")
    plots.legend(figure, axes[0, 0], axes[0, 1], axes[1, 1], columns=4)
    return figure


def _scatter(axes: Axes, prior: Prior, truth: Counts, estimate: Array, title: str) -> None:
    expected = prior.probabilities * truth.sum()
    axes.plot(truth, expected, "s", color=plots.COLOURS["grey"], markersize=3, alpha=0.6, label="prior")
    axes.plot(truth, estimate, "o", color=plots.COLOURS["blue"], markersize=3, label="estimate")
    ends = [3.0, 1.3 * float(truth.max())]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=title)
    axes.set(xlabel="users in the district, truth", ylabel="users, estimated")
    axes.legend(frameon=False, fontsize=7, loc="upper left")


FIGURES = (Figure(11, "gowalla", "Gowalla check-ins", run),)
