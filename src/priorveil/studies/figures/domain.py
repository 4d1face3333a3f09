"""Figures 8 and 9: the size of the domain, and the number of bins to hash into."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from priorveil.designs import design
from priorveil.priors import Array, Budget, Prior
from priorveil.queries import Histogram
from priorveil.studies import curves, published
from priorveil.studies.compare import certified_mixture
from priorveil.studies.curves import COLOURS, Curve, Rows, Style, column, method_curves
from priorveil.studies.figures.figure import Claims, Figure, Outcome, Settings, below, plan_row
from priorveil.studies.simulate import simulate

EPSILON = 1.0


def ramp(size: int) -> Prior:
    """A prior that rises evenly: `P[x]` proportional to `x + 1`."""
    return Prior.from_counts(list(range(1, size + 1)))


# -- figure 8: from 10 to 50 values ------------------------------------------------------------------------

_FORMS = ("rr", "hashing", "unary")
_LDP, _PUBLISHED = (tuple(f"{kind}-{form}" for form in _FORMS) for kind in ("ldp", "published"))
_STYLES: dict[str, Style] = {
    **{method: curves.METHOD_STYLES[method] for method in ("none", *_LDP)},
    "published-rr-half": ("published", "sky", "RR-LIP at ε/2, published"),
    **{method: curves.METHOD_STYLES[method] for method in (*_PUBLISHED, *_FORMS, "best")},
    "hashing": ("certified", "red", "LH, certified"),
    "unary": ("certified", "green", "UE, certified"),
}


def domain(settings: Settings) -> Outcome:
    """Every method at every size; theory only, since all of it is exact."""
    sizes = list(range(10, 51, 20 if settings.quick else 5))
    methods = ["best", *_FORMS, *_PUBLISHED, *_LDP, "none"]
    rows: list[dict[str, Any]] = []
    for size in settings.track(sizes):
        limit = 2.0 if settings.quick else 15.0
        found = simulate(ramp(size), [EPSILON], None, methods, runs=0, time_limit=limit).rows
        half = simulate(ramp(size), [EPSILON / 2], None, ["published-rr", "rr"], runs=0).rows
        for row in [*found, *(replace(row, method=f"{row.method}-half") for row in half)]:
            shared = {"values": size, "epsilon": row.epsilon, "method": row.method, "kind": row.kind}
            rows.append({**shared, "mse": row.expected, "bound": row.bound, "lip": row.lip, "ldp": row.ldp})
    leaks = column(rows, "lip", method="published-rr")
    last = {m: _gain(rows, m)[-1] for m in ("hashing", "unary", "rr", "ldp-unary")}
    return Outcome(
        rows=rows,
        draw=lambda: _draw_domain(rows),
        caption=(
            "Histogram error against the number of values, ε = 1, for a prior that rises evenly (P ∝ 1, 2, ..., d; the "
            "paper draws priors at random). Top: as published, and with the budget kept. Bottom left: the LIP level "
            "that each really has. Bottom right: the share of the achievable gain over no report; above 100 % is only "
            "possible by leaking."
        ),
        remarks=(
            f"Published RR-LIP leaks {leaks[0]:.2f} at {sizes[0]} values and {leaks[-1]:.2f} at {sizes[-1]}: on a "
            "large domain it is nearly the truth. LH-LIP with four bins breaks its budget too; UE-LIP keeps it.",
            "With the budget kept, the best design and hashing (on bins that are heavy enough) win; at "
            f"{sizes[-1]} values hashing gets {last['hashing']:.0f} % of the achievable gain, unary "
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
    error = {m: column(rows, "mse", method=m) for m in (*_STYLES, "rr-half")}
    gap = error["rr"] - error["unary"]
    less = "less" if below(error["published-rr-half"], error["ldp-rr"], 1e-12) else "not always less"
    rising = ("best", *_FORMS, *_LDP)
    return {
        "RR-LDP lies between RR-LIP at ε and at ε/2.": (
            below(error["rr"], error["ldp-rr"], 1e-12) and below(error["ldp-rr"], error["rr-half"], 1e-12),
            "RR-LIP mixed until it keeps its budget is worse than RR-LDP here: randomised response is the wrong shape "
            f"for rare values. As printed, RR-LIP at ε/2 has {less} error than RR-LDP, for it leaks up to "
            f"{column(rows, 'lip', method='published-rr-half').max():.2f} instead of 0.5.",
        ),
        "On small domains (fewer than 15 values) RR-LIP beats LH-LIP.": (
            bool(error["rr"][0] <= error["hashing"][0]),
            f"At 10 values with the budget kept RR has MSE {error['rr'][0]:.3f} and hashing "
            f"{error['hashing'][0]:.3f}.",
        ),
        "On large domains UE-LIP beats RR-LIP.": (
            bool(gap[-1] > 0),
            "True with the budget kept. As printed, RR-LIP has less error than UE-LIP at every size, by leaking.",
        ),
        "That gap widens as the domain grows.": (
            bool((np.diff(gap) > 0).all()),
            f"At ε = 1 both approach no report: the gap in MSE goes from {gap[0]:.4f} to {gap[-1]:.4f}.",
        ),
        "UE-LIP beats OUE-LDP.": (
            below(error["published-unary"], error["ldp-unary"], 1e-12),
            "Theorem 4 keeps its budget; the gap is small and shrinks with P_min.",
        ),
        "LH-LIP beats OLH-LDP.": (
            below(error["hashing"], error["ldp-hashing"], 1e-12),
            "True with the budget kept, if the hash is chosen so that bins are heavy enough.",
        ),
        "The error under each notion grows with the domain.": (
            all((np.diff(error[method]) > 0).all() for method in rising),
            "True of every curve.",
        ),
    }


def _draw_domain(rows: Rows) -> curves.Figure:
    figure, axes = curves.canvas(2, 2, height=2.4, sharex=True)
    as_printed = (*_PUBLISHED, "published-rr-half")
    hidden = {"as published": (*_FORMS, "best"), "with the budget kept": as_printed}
    least = math.sqrt(column(rows, "mse", method="published-rr").min())
    for panel, (title, others) in zip(axes[0], hidden.items(), strict=True):
        shown = {method: style for method, style in _STYLES.items() if method not in others}
        curves.lines(method_curves(rows, shown, "mse", "values", root=True), panel)
        panel.set(ylabel=curves.ROOT_ERROR, title=title, ylim=(0.98 * least, 1.005))
    leaking = {m: style for m, style in _STYLES.items() if m not in ("none", "best", "published-rr-half")}
    curves.lines(method_curves(rows, leaking, "lip", "values"), axes[1, 0])
    sizes = column(rows, "values", method="best")
    curves.shade_violations(axes[1, 0], sizes, np.full(len(sizes), EPSILON))
    axes[1, 0].set(xlabel="number of values d", ylabel=curves.LEVEL)
    shares = [m for m in _STYLES if m not in (*as_printed, "none")]
    curves.lines([Curve("_", *_STYLES[m][:2], sizes, _gain(rows, m)) for m in shares], axes[1, 1])
    axes[1, 1].set(xlabel="number of values d", ylabel="achievable gain (%)", ylim=(0, 105))
    curves.legend(figure, columns=4)
    return figure


# -- figure 9: hash functions on 20 values -----------------------------------------------------------------

_VALUES = 20
_HEAVY, _BEST = "hashing, certified", "best LIP design"


def hashing(settings: Settings) -> Outcome:
    """Random hash functions of every size, as published and certified; and the best design."""
    rng, prior = np.random.default_rng([settings.seed, 9]), ramp(_VALUES)
    count = 12 if settings.quick else 100
    rows: list[dict[str, Any]] = []
    for size in settings.track(range(1, _VALUES + 1)):
        for _ in range(count if size > 1 else 1):
            rows.append(_hash_row(prior, size, rng.integers(size, size=_VALUES).tolist()))
    heavy = plan_row(design(prior, EPSILON, Histogram(), method="hashing"))
    best = plan_row(design(prior, EPSILON, Histogram(), time_limit=10))
    certified = {size: column(rows, "certified_mse", bins=size) for size in range(1, _VALUES + 1)}
    best_size = min(certified, key=lambda size: float(certified[size].mean()))
    most = max(row["bins"] for row in rows if row["valid"])
    leaks = [row["lip"] for row in rows if 12 <= row["bins"] <= 16]
    return Outcome(
        rows=[*rows, {"method": _HEAVY, **heavy}, {"method": _BEST, **best}],
        draw=lambda: _draw_hashing(rows, certified, heavy, best),
        caption=(
            f"LH-LIP on 20 values, ε = 1, {count} random hash functions for each number of bins. The prior is "
            "P ∝ 1, 2, ..., 20 (the printed one, 0 to 0.1 in steps of 0.005, does not add up to one and has a value "
            "that never happens). Top: error; a dot is one hash function, full where it keeps the budget. Bottom: the "
            "LIP level that it really has."
        ),
        remarks=(
            f"The published error falls as bins are added, because the leak grows: with more than {most} bins no "
            "function tried keeps ε = 1.",
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
            "Different hash functions of one size differ in utility.": (
                max(float(np.ptp(errors)) for errors in certified.values()) > 1e-4,
                "True: it matters which values share a bin.",
            ),
        },
    )


def _hash_row(prior: Prior, size: int, assignment: list[int]) -> dict[str, Any]:
    form = published.lh_lip(prior, EPSILON, bins=size, assignment=assignment)
    channel, proof = certified_mixture(form.channel, prior, Budget(EPSILON))
    return {
        "method": "LH-LIP, published",
        "bins": size,
        "mse": form.mse,
        "lip": form.leakage.lip,
        "valid": form.leakage.lip <= EPSILON + 1e-9,
        "certified_mse": Histogram().error(channel, prior),
        "certified_lip": proof.lip,
    }


def _draw_hashing(
    rows: Rows, certified: dict[int, Array], heavy: dict[str, Any], best: dict[str, Any]
) -> curves.Figure:
    figure, axes = curves.canvas(2, 1, width=4.6, height=2.6, sharex=True)
    top, bottom = axes[:, 0]
    roots = [{**row, "root": math.sqrt(row["mse"])} for row in rows]
    _dots(top, roots, "root")
    means = np.sqrt([errors.mean() for errors in certified.values()])
    curves.lines([Curve("mixed to keep ε, mean", "certified", "blue", list(certified), means)], top)
    for row, label, kind, colour in ((heavy, _HEAVY, "certified", "green"), (best, _BEST, "best", "black")):
        width = curves.STYLES[kind]["linewidth"]
        top.axhline(math.sqrt(row["mse"]), label=label, color=COLOURS[colour], linewidth=width)
    floor = 0.99 * min(row["root"] for row in roots)
    top.axhspan(floor, math.sqrt(best["bound"]), color="black", alpha=0.06, linewidth=0)
    top.set(ylabel=curves.ROOT_ERROR, ylim=(floor, None))
    _dots(bottom, rows, "lip")
    curves.shade_violations(bottom, [0.5, _VALUES + 0.5], [EPSILON, EPSILON])
    ticks = range(2, _VALUES + 1, 2)
    bottom.set(xlabel="number of bins", ylabel=curves.LEVEL, xticks=ticks, xlim=(0.5, _VALUES + 0.5))
    curves.legend(figure, top, columns=2)
    return figure


def _dots(axes: curves.Axes, rows: Rows, key: str) -> None:
    for valid, colour, verb in ((False, COLOURS["orange"], "breaks"), (True, COLOURS["red"], "keeps")):
        style: dict[str, Any] = {"color": colour, "markerfacecolor": colour if valid else "none"}
        x, y = column(rows, "bins", valid=valid), column(rows, key, valid=valid)
        axes.plot(x, y, "o", label=f"published, {verb} ε", markersize=3, markeredgewidth=0.6, **style)


FIGURES = (
    Figure(8, "domain", "The size of the domain", domain),
    Figure(9, "hashing", "How many bins to hash into", hashing),
)
