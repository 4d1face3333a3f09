# ruff: noqa: RUF001 (captions use the symbols of the paper)
"""Figure 11: Gowalla, the districts of users' latest check-ins, the prior from everybody's earlier ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from priorveil.designs import design
from priorveil.priors import Array, Prior
from priorveil.queries import Distribution, Histogram
from priorveil.studies import datasets, plots, published
from priorveil.studies.compare import Counts
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting, number, rows_of
from priorveil.studies.plots import Line
from priorveil.studies.simulate import Study, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

SIDE, DISTRICTS = 36, 82  # the paper's grid; with "elsewhere" its 83 values
SHOWN = 3.0  # the budget at which one estimated histogram is drawn
_PUBLISHED = ("published-rr", "published-hashing", "published-unary")
_LDP = ("ldp-rr", "ldp-hashing", "ldp-unary")
_CERTIFIED = ("rr", "hashing", "unary", "best")


def located(checkins: datasets.CheckIns, districts: int = DISTRICTS) -> tuple[Prior, Counts]:
    """The prior of districts from earlier check-ins, and how many users were last seen in each.

    The districts that were visited most keep their own value; all the others are one value, "elsewhere".
    """
    cells = checkins.districts(SIDE)
    earlier = np.bincount(cells[~checkins.latest], minlength=SIDE**2)
    latest = np.bincount(cells[checkins.latest], minlength=SIDE**2)
    ranked = np.argsort(-earlier, kind="stable")
    own, rest = ranked[:districts], ranked[districts:]
    labels = [f"{cell // SIDE}/{cell % SIDE}" for cell in own]
    counts = [*earlier[own].tolist(), int(earlier[rest].sum())]
    prior = Prior.from_counts(counts, [*labels, "elsewhere"], smoothing=1)
    return prior, np.append(latest[own], latest[rest].sum()).astype(np.int64)


def run(setting: Setting) -> Outcome:
    """All methods under the prior, as the paper has it; then the best on the users' real districts."""
    checkins = datasets.gowalla()
    prior, truth = located(checkins)
    setting.done(0.05)
    epsilons = [1.0, 3.0, 5.0] if setting.quick else np.arange(0.5, 6.01, 0.5).tolist()
    ways = [*_PUBLISHED, *_LDP, *_CERTIFIED, "none"]
    total, seen, limit = len(epsilons) * len(ways), [0], 1.0 if setting.quick else 8.0

    def tell(_: object) -> None:
        seen[0] += 1
        setting.done(0.05 + 0.6 * seen[0] / total)

    study = simulate(
        prior, epsilons, None, ways, people=int(truth.sum()), runs=20 if setting.quick else 200,
        seed=setting.seed, time_limit=limit, progress=tell,
    )  # fmt: skip
    real = [row for e in epsilons for row in _real(prior, truth, e, limit, setting)]
    shown = {row["way"]: row for row in real if row["epsilon"] == SHOWN}
    return Outcome(
        rows=[*rows_of(study), *({k: v for k, v in row.items() if k != "counts"} for row in real)],
        draw=lambda: _draw(study, prior, truth, real, shown),
        caption=_caption(checkins, prior, truth),
        see=_see(study, real, prior, truth, _once(checkins)),
        claims=_claims(study, prior),
    )


def _real(
    prior: Prior, truth: Counts, epsilon: float, limit: float, setting: Setting
) -> list[dict[str, object]]:
    """Surveys of the users' real districts: with faith in the prior, and without."""
    rng = np.random.default_rng([setting.seed, 11, round(100 * epsilon)])
    codes, people = np.repeat(np.arange(len(prior)), truth), int(truth.sum())
    trusting = design(prior, epsilon, Histogram(), time_limit=limit)
    learning = design(prior, epsilon, Distribution(), time_limit=limit)
    first = trusting.estimate(trusting.tally(trusting.privatize(codes, rng)))
    second = learning.estimate(learning.tally(learning.privatize(codes, rng)), "mle")
    form = published.k_rr(prior, epsilon)
    assert form.support is not None
    free = form.support.counts(rng.multinomial(truth, form.channel.matrix).sum(axis=0), people)
    answers = {
        "best, real districts": first.values,
        "distribution, real districts": second.values,
        "context-free, real districts": free,
        "none, real districts": prior.probabilities * people,
    }
    return [
        {
            "epsilon": epsilon,
            "way": way,
            "measured": float(((v - truth) ** 2).sum() / people),
            "people": people,
            "runs": 1,
            "prior_check": first.prior_check if way.startswith("best") else None,
            "counts": v,
        }
        for way, v in answers.items()
    ]


def _caption(checkins: datasets.CheckIns, prior: Prior, truth: Counts) -> str:
    what = (
        "the whole Gowalla data set"
        if checkins.whole
        else "the Gowalla check-ins within New York City (the full file is not on this machine)"
    )
    return (
        f"Districts of the latest check-in of {truth.sum():,} users; data: {what}, {len(checkins):,} "
        f"check-ins. A grid of {SIDE} × {SIDE} districts over "
        f"the area, the {DISTRICTS} most visited ones and 'elsewhere': {len(prior)} values, as in the "
        "paper. The prior comes from everybody's "
        "earlier check-ins. Top and middle left: as in the paper, users are drawn from that prior (lines: "
        "theory; dots: simulation). Middle right and "
        "bottom: surveys of the users' real districts, which that prior describes badly; bottom at ε = "
        f"{SHOWN:g}."
    )


def _row(study: Study, way: str, epsilon: float) -> float:
    return next(row.expected for row in study.of(way) if row.epsilon == epsilon)


def _distance(P: Array, truth: Counts) -> float:
    """The mass that lies elsewhere than `P` says: the total variation distance."""
    return 0.5 * float(np.abs(truth / truth.sum() - P).sum())


def _once(checkins: datasets.CheckIns, districts: int = DISTRICTS) -> Array:
    """The law of districts if every user counts once, however often they checked in."""
    cells, earlier = checkins.districts(SIDE), ~checkins.latest
    _, code, often = np.unique(checkins.user[earlier], return_inverse=True, return_counts=True)
    ranked = np.argsort(-np.bincount(cells[earlier], minlength=SIDE**2), kind="stable")
    mass = np.bincount(cells[earlier], weights=1 / often[code], minlength=SIDE**2)[ranked]
    law: Array = np.append(mass[:districts], mass[districts:].sum()) / mass.sum()
    return law


def _see(study: Study, real: Rows, prior: Prior, truth: Counts, once: Array) -> tuple[str, ...]:
    leaks = {way: max(row.lip - row.epsilon for row in study.of(way)) for way in _PUBLISHED}
    at = {str(row["way"]).split(",")[0]: row for row in real if row["epsilon"] == SHOWN}
    away, even = _distance(prior.probabilities, truth), _distance(once, truth)
    check = at["best"]["prior_check"]
    doubt = "p < 0.0001" if isinstance(check, float) and check < 1e-4 else f"p = {check}"
    return (
        f"Published RR-LIP leaks up to {leaks['published-rr']:.1f} more than it claims, LH-LIP up to "
        f"{leaks['published-hashing']:.1f}; UE-LIP keeps its budget.",
        f"If the prior were right, the best design at ε = {SHOWN:g} would have MSE "
        f"{_row(study, 'best', SHOWN):.3f} per person; the best of LDP "
        f"{min(_row(study, way, SHOWN) for way in _LDP):.3f}, no report {_row(study, 'none', SHOWN):.3f}.",
        f"It is not: {away:.0%} of the users are elsewhere than it says ({even:.0%} if each user counted "
        "once in it). A wrong prior costs a bias that grows with the "
        f"number of people: the real MSE of the same mechanism is {number(at['best'], 'measured'):.0f}, "
        "more than that of LDP without any prior "
        f"({number(at['context-free'], 'measured'):.0f}). The test of the prior, which costs nothing, says "
        f"so ({doubt}).",
        "A design for learning the distribution uses the prior for the noise only; read by maximum "
        f"likelihood, its real MSE is {number(at['distribution'], 'measured'):.1f}.",
    )


def _claims(study: Study, prior: Prior) -> tuple[Claim, ...]:
    epsilons = sorted({row.epsilon for row in study.rows})
    low, high = epsilons[0], epsilons[-1]
    valid = math.log(1 / float(prior.probabilities.min()) - 1)

    def order(names: tuple[str, str, str], epsilon: float) -> str:
        return ", ".join(f"{name} {_row(study, name, epsilon):.3f}" for name in names)

    kept, five = ("rr", "hashing", "unary"), design(Prior.uniform(5), SHOWN, Histogram())
    left, small = _row(study, "best", SHOWN) / _row(study, "none", SHOWN), five.expected_mse / five.no_report
    gaps = [_row(study, "ldp-unary", e) - _row(study, "published-unary", e) for e in epsilons]
    return (
        Claim(
            "For small ε, RR-LIP is worse than LH-LIP and UE-LIP.",
            _row(study, "rr", low) > max(_row(study, "hashing", low), _row(study, "unary", low)),
            f"With the budget kept, at ε = {low:g}: MSE of {order(kept, low)}. (As printed RR-LIP would be "
            "far better, by leaking.)",
        ),
        Claim(
            "For large ε, RR-LIP overtakes both.",
            _row(study, "rr", high) < min(_row(study, "hashing", high), _row(study, "unary", high)),
            f"At ε = {high:g}: MSE of {order(kept, high)}. Only from ε = {valid:.2f} on is every district "
            "heavy enough for Theorem 3, which then is the optimum.",
        ),
        Claim(
            "UE-LIP beats OUE-LDP.",
            all(g >= -1e-12 for g in gaps),
            "True as printed, since Theorem 4 holds; but the rarest district decides, and the gap in MSE "
            f"is at most {max(gaps):.4f}.",
        ),
        Claim(
            "Increasing ε helps less here than on a small domain, since each district's probability is "
            "small.",
            left > small,
            f"True, though less so than printed curves of UE-LIP and LDP suggest: at ε = {SHOWN:g} the best "
            f"design leaves {left:.0%} of the error of "
            f"no report, against {small:.0%} on five uniform values; UE-LIP leaves "
            f"{_row(study, 'published-unary', SHOWN) / _row(study, 'none', SHOWN):.0%}.",
        ),
    )


def _draw(
    study: Study, prior: Prior, truth: Counts, real: Rows, shown: Mapping[object, Mapping[str, object]]
) -> Picture:
    figure, axes = plots.canvas(3, 2, height=2.3)
    made = dict(zip(study.ways(), plots.study_lines(study), strict=True))
    plots.lines([_plain(made[way]) for way in ("none", *_LDP, *_PUBLISHED)], axes[0, 0])
    plots.lines(
        [_plain(made["none"]), *(_plain(made[way]) for way in _LDP), *(made[way] for way in _CERTIFIED)],
        axes[0, 1],
    )
    for panel, title in zip(axes[0], ("as published", "with the budget kept"), strict=True):
        panel.set(
            title=title,
            ylabel="error per person, √(MSE / N)",
            xlabel="privacy budget ε (nats)",
            ylim=(0, None),
        )
    _levels(axes[1, 0], study)
    _measured(axes[1, 1], real)
    for panel, way, title in zip(
        axes[2],
        ("best", "distribution"),
        ("best for the histogram, prior trusted", "learning the distribution"),
        strict=True,
    ):
        _scatter(panel, prior, truth, np.asarray(shown[f"{way}, real districts"]["counts"]), title)
    axes[2, 1].set_ylabel("")
    plots.legend(figure, axes[0, 0], axes[0, 1], axes[1, 1], columns=4)
    picture: Picture = figure
    return picture


def _measured(axes: Axes, real: Rows) -> None:
    """The error on the real districts, of one survey at each budget."""
    words = {
        "none": ("baseline", "grey", "no report"),
        "best": ("best", "black", "best LIP design"),
        "distribution": ("certified", "pink", "LIP, distribution design"),
        "context-free": ("ldp", "orange", "LDP, context-free"),
    }
    for way, (kind, ink, label) in words.items():
        rows = [r for r in real if str(r["way"]).startswith(way)]
        y = [math.sqrt(number(r, "measured")) for r in rows]
        plots.lines([Line(label, kind, ink, [number(r, "epsilon") for r in rows], y, marker="o")], axes)
    plots.logarithmic(axes)
    axes.set(
        title="real districts, prior not right",
        xlabel="privacy budget ε (nats)",
        ylabel="error per person, √(MSE / N)",
    )


def _plain(line: Line) -> Line:
    return Line(line.label, line.kind, line.ink, line.x, line.y)


def _levels(axes: Axes, study: Study) -> None:
    shown = Study(
        study.query, tuple(row for row in study.rows if row.way in (*_PUBLISHED, "ldp-rr", "hashing"))
    )
    plots.levels(shown, axes)


def _scatter(axes: Axes, prior: Prior, truth: Counts, counts: Array, title: str) -> None:
    axes.plot(
        truth,
        prior.probabilities * truth.sum(),
        "s",
        color=plots.INKS["grey"],
        markersize=3,
        alpha=0.6,
        label="prior",
    )
    axes.plot(truth, counts, "o", color=plots.INKS["blue"], markersize=3, label="estimate")
    ends = [3.0, 1.3 * float(truth.max())]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.set(
        xscale="log",
        yscale="log",
        xlim=ends,
        ylim=ends,
        xlabel="users in the district, truth",
        ylabel="users, estimated",
    )
    axes.set_title(f"{title}, ε = {SHOWN:g}")
    axes.legend(frameon=False, fontsize=7, loc="upper left")


FIGURE = Figure(11, "gowalla", "Gowalla check-ins", run)
