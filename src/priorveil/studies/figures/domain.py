"""Figure 8: the size of the domain, from 10 to 50 values at epsilon 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from priorveil.priors import Prior
from priorveil.studies import plots
from priorveil.studies.figures.model import Claim, Figure, Outcome, Rows, Setting, number
from priorveil.studies.plots import Line
from priorveil.studies.simulate import Row, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

EPSILON = 1.0
METHODS = ("rr", "hashing", "unary")
_INKS = {"rr": "blue", "hashing": "red", "unary": "green"}
_NAMES = {
    "published": {"rr": "RR-LIP, published", "hashing": "LH-LIP, published", "unary": "UE-LIP, published"},
    "certified": {"rr": "RR-LIP, mended", "hashing": "LH, certified", "unary": "UE, certified"},
    "ldp": {"rr": "RR-LDP", "hashing": "OLH-LDP", "unary": "OUE-LDP"},
}


def ramp(size: int) -> Prior:
    """A prior that rises evenly: `P[x]` proportional to `x + 1`."""
    return Prior.from_counts(list(range(1, size + 1)))


def run(setting: Setting) -> Outcome:
    """Every method at every size; theory only, since all of it is exact."""
    sizes = list(range(10, 51, 20 if setting.quick else 5))
    ways = ["best", *METHODS, *(f"published-{m}" for m in METHODS), *(f"ldp-{m}" for m in METHODS), "none"]
    rows: list[dict[str, object]] = []
    for i, size in enumerate(sizes):
        limit = 2.0 if setting.quick else 15.0
        rows += [
            _row(size, row.way, row)
            for row in simulate(ramp(size), [EPSILON], None, ways, runs=0, time_limit=limit).rows
        ]
        half = simulate(ramp(size), [EPSILON / 2], None, ["published-rr", "rr"], runs=0).rows
        rows += [_row(size, f"{row.way}-half", row) for row in half]
        setting.done((i + 1) / len(sizes))
    return Outcome(
        rows=rows,
        draw=lambda: _draw(rows),
        caption=(
            "Histogram error against the number of values, ε = 1, for a prior that rises evenly (P ∝ 1, 2, "
            "..., d; the paper draws priors at random). "
            "Top: as published, and with the budget kept. Bottom left: the LIP level each really has. "
            "Bottom right: the share of the achievable gain "
            "over no report; above 100 % is only possible by leaking."
        ),
        see=_see(rows),
        claims=_claims(rows),
    )


def _row(size: int, way: str, row: Row) -> dict[str, object]:
    return {
        "values": size,
        "epsilon": row.epsilon,
        "way": way,
        "kind": row.kind,
        "mse": row.expected,
        "bound": row.bound,
        "lip": row.lip,
        "ldp": row.ldp,
    }


def _of(rows: Rows, way: str, key: str = "mse") -> list[float]:
    return [number(r, key) for r in rows if r["way"] == way]


def _gain(rows: Rows, way: str) -> list[float]:
    """The share of the achievable gain, in percent."""
    pieces = zip(_of(rows, "none"), _of(rows, way), _of(rows, "best", "bound"), strict=True)
    return [100 * (none - mse) / (none - bound) for none, mse, bound in pieces]


def _see(rows: Rows) -> tuple[str, ...]:
    leaks, sizes = _of(rows, "published-rr", "lip"), _of(rows, "published-rr", "values")
    return (
        f"Published RR-LIP leaks {leaks[0]:.2f} at {sizes[0]:.0f} values and {leaks[-1]:.2f} at "
        f"{sizes[-1]:.0f}: on a large domain it is nearly "
        "the truth. LH-LIP with four bins breaks its budget too; UE-LIP keeps it.",
        "With the budget kept, the best design and hashing (on bins that are heavy enough) win; at "
        f"{sizes[-1]:.0f} values hashing gets "
        f"{_gain(rows, 'hashing')[-1]:.0f} % of the achievable gain, unary {_gain(rows, 'unary')[-1]:.0f} "
        f"%, mended RR {_gain(rows, 'rr')[-1]:.0f} %, "
        f"OUE-LDP {_gain(rows, 'ldp-unary')[-1]:.0f} %.",
        "The proven lower bound and the best design coincide to the eye.",
    )


def _claims(rows: Rows) -> tuple[Claim, ...]:
    def below(one: str, other: str) -> bool:
        return all(a <= b + 1e-12 for a, b in zip(_of(rows, one), _of(rows, other), strict=True))

    return (
        Claim(
            "RR-LDP lies between RR-LIP at ε and at ε/2.",
            below("rr", "ldp-rr") and below("ldp-rr", "rr-half"),
            "RR-LIP mended to keep its budget is worse than RR-LDP here: randomised response is the wrong "
            "shape for rare values. As printed, "
            f"RR-LIP at ε/2 has {'less' if below('published-rr-half', 'ldp-rr') else 'not always less'} "
            "error than RR-LDP, for it leaks "
            f"up to {max(_of(rows, 'published-rr-half', 'lip')):.2f} instead of 0.5.",
        ),
        Claim(
            "On small domains (fewer than 15 values) RR-LIP beats LH-LIP.",
            _of(rows, "rr")[0] <= _of(rows, "hashing")[0],
            f"At 10 values with the budget kept RR has MSE {_of(rows, 'rr')[0]:.3f} and hashing "
            f"{_of(rows, 'hashing')[0]:.3f}.",
        ),
        Claim(
            "On large domains UE-LIP beats RR-LIP.",
            _of(rows, "unary")[-1] < _of(rows, "rr")[-1],
            "True with the budget kept. As printed, RR-LIP has less error than UE-LIP at every size, by "
            "leaking.",
        ),
        Claim(
            "That gap widens as the domain grows.",
            bool(np.all(np.diff(np.subtract(_of(rows, "rr"), _of(rows, "unary"))) > 0)),
            "At ε = 1 both approach no report: the gap in MSE goes from "
            f"{_of(rows, 'rr')[0] - _of(rows, 'unary')[0]:.4f} to "
            f"{_of(rows, 'rr')[-1] - _of(rows, 'unary')[-1]:.4f}.",
        ),
        Claim(
            "UE-LIP beats OUE-LDP.",
            below("published-unary", "ldp-unary"),
            "Theorem 4 keeps its budget; the gap is small and shrinks with P_min.",
        ),
        Claim(
            "LH-LIP beats OLH-LDP.",
            below("hashing", "ldp-hashing"),
            "True with the budget kept, if the hash is chosen so that bins are heavy enough.",
        ),
        Claim(
            "The error under each notion grows with the domain.",
            all(
                np.all(np.diff(_of(rows, way)) > 0)
                for way in ("best", *METHODS, "ldp-rr", "ldp-unary", "ldp-hashing")
            ),
            "True of every curve.",
        ),
    )


def _draw(rows: Rows) -> Picture:
    figure, axes = plots.canvas(2, 2, height=2.4, sharex=True)
    best = _line(rows, "best", "best", "black", "best LIP design", "mse")
    none = _line(rows, "none", "baseline", "grey", "no report", "mse")
    half = _line(rows, "published-rr-half", "published", "sky", "RR-LIP at ε/2, published", "mse")
    ldp = _methods(rows, "ldp", "ldp-", "mse")
    plots.lines([none, *ldp, half, *_methods(rows, "published", "published-", "mse")], axes[0, 0])
    plots.lines([none, *ldp, *_methods(rows, "certified", "", "mse"), best], axes[0, 1])
    for panel, title in zip(axes[0], ("as published", "with the budget kept"), strict=True):
        panel.set(ylabel="error per person, √(MSE / N)", title=title)
        panel.set_ylim(0.98 * min(np.sqrt(_of(rows, "published-rr"))), 1.005)
    _levels(axes[1, 0], rows)
    _shares(axes[1, 1], rows)
    plots.legend(figure, columns=4)
    picture: Picture = figure
    return picture


def _methods(rows: Rows, kind: str, prefix: str, key: str) -> list[Line]:
    return [_line(rows, f"{prefix}{m}", kind, _INKS[m], _NAMES[kind][m], key) for m in METHODS]


def _line(rows: Rows, way: str, kind: str, ink: str, label: str, key: str) -> Line:
    x, y = _of(rows, way, "values"), _of(rows, way, key)
    if key == "lip":
        return Line(label, kind, ink, x, y)
    floor = np.sqrt(_of(rows, way, "bound")).tolist() if way == "best" else None
    return Line(label, kind, ink, x, np.sqrt(y).tolist(), floor)


def _levels(axes: Axes, rows: Rows) -> None:
    made = _methods(rows, "published", "published-", "lip") + _methods(rows, "ldp", "ldp-", "lip")
    plots.lines([*made, *_methods(rows, "certified", "", "lip")], axes)
    sizes = _of(rows, "best", "values")
    plots.forbidden(axes, sizes, [EPSILON] * len(sizes))
    axes.set(xlabel="number of values d", ylabel="real LIP level (nats)")


def _shares(axes: Axes, rows: Rows) -> None:
    shown = [("best", "best", "black"), *((m, "certified", _INKS[m]) for m in METHODS)]
    shown += [(f"ldp-{m}", "ldp", _INKS[m]) for m in METHODS]
    for way, kind, ink in shown:
        plots.lines([Line("_", kind, ink, _of(rows, way, "values"), _gain(rows, way))], axes)
    axes.set(xlabel="number of values d", ylabel="achievable gain (%)", ylim=(0, 105))


FIGURE = Figure(8, "domain", "The size of the domain", run)
