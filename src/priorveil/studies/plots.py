"""Pictures of studies, channels, histograms and regions. Each draws on the axes it is given, or makes some.

Line style says what kind of thing a curve is (published: dashed; certified: solid; best: thick, its proven
lower bound shaded; LDP: dotted), colour says which method. The colours are those of Okabe and Ito, which
colour-blind people tell apart. Needs matplotlib: `pip install 'priorveil[plot]'`. No window is ever opened.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from priorveil.channels import Channel
from priorveil.errors import InvalidInput, MissingExtra
from priorveil.plans.estimate import Estimate
from priorveil.priors import Array, Budget, Prior
from priorveil.studies.simulate import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.5  # inches: the width of a column of print
INKS = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "red": "#D55E00",
    "pink": "#CC79A7",
    "grey": "#777777",
}
STYLES: dict[str, dict[str, Any]] = {
    "published": {"linestyle": (0, (4, 2)), "linewidth": 1.3, "markerfacecolor": "white"},
    "certified": {"linestyle": "-", "linewidth": 1.3},
    "best": {"linestyle": "-", "linewidth": 2.4},
    "ldp": {"linestyle": (0, (1, 1.4)), "linewidth": 1.6},
    "baseline": {"linestyle": "-", "linewidth": 0.9},
}
_LOOK = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "svg.hashsalt": "priorveil",  # the same picture is the same file
    "svg.fonttype": "path",
}
# Colour and words of the ways that a study knows.
_WAYS = {
    "best": ("black", "best LIP design"),
    "rr": ("blue", "RR-LIP, mended"),
    "arc": ("pink", "arc mechanism"),
    "unary": ("green", "unary, certified"),
    "hashing": ("red", "hashing, certified"),
    "published-rr": ("blue", "RR-LIP, published"),
    "published-unary": ("green", "UE-LIP, published"),
    "published-hashing": ("red", "LH-LIP, published"),
    "ldp-best": ("black", "best LDP design"),
    "ldp-rr": ("blue", "RR-LDP"),
    "ldp-unary": ("green", "OUE-LDP"),
    "ldp-hashing": ("red", "OLH-LDP"),
    "context-free": ("orange", "LDP, context-free"),
    "none": ("grey", "no report"),
}


@dataclass(frozen=True)
class Line:
    """A curve: its label, kind (a key of `STYLES`), ink (a key of `INKS`) and points.

    `floor` is a proven lower bound, shaded up to the curve; `dots` are measured, `ends` their intervals.
    """

    label: str
    kind: str
    ink: str
    x: Sequence[float]
    y: Sequence[float]
    floor: Sequence[float] | None = None
    dots: Sequence[float] | None = None
    ends: tuple[Sequence[float], Sequence[float]] | None = None
    marker: str = ""


@contextmanager
def look() -> Iterator[None]:
    """Draw within this for the look of the figures: small print, thin grid."""
    with _matplotlib().rc_context(_LOOK):
        yield


def canvas(
    rows: int = 1, columns: int = 1, width: float = COLUMN, height: float = 2.3, **options: Any
) -> Any:
    """A figure with axes, `width` and `height` in inches for each panel; drawn without a window.

    Returns the figure and an array of axes with `rows` rows and `columns` columns.
    """
    _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with look():
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots(rows, columns, squeeze=False, **options)


def errors(study: Study, axes: Axes | None = None, root: bool = True) -> Axes:
    """The error of every way of a study against epsilon, with its bound, and dots where it was simulated."""
    unit = "share of wrong guesses" if study.query.kind == "guess" else "error per person, √(MSE / N)"
    rooted = root and study.query.kind != "guess"
    drawn = lines(study_lines(study, rooted), axes)
    drawn.set(
        xlabel="privacy budget ε (nats)",
        ylabel=unit if rooted or study.query.kind == "guess" else "MSE per person",
    )
    return drawn


def study_lines(study: Study, root: bool = True) -> list[Line]:
    """A `Line` for every way of a study that could be taken at some epsilon."""
    made = []
    for way in study.ways():
        rows = [row for row in study.of(way) if not math.isnan(row.expected)]
        if not rows:
            continue
        ink, label = _WAYS[way]
        scale = np.sqrt if root else np.asarray
        simulated = any(not math.isnan(row.measured) for row in rows)
        made.append(
            Line(
                label,
                rows[0].kind,
                ink,
                [row.epsilon for row in rows],
                scale([row.expected for row in rows]).tolist(),
                scale([row.bound for row in rows]).tolist() if way == "best" else None,
                scale([row.measured for row in rows]).tolist() if simulated else None,
                (scale([r.low for r in rows]).tolist(), scale([r.high for r in rows]).tolist())
                if simulated
                else None,
            )
        )
    return made


def levels(study: Study, axes: Axes | None = None) -> Axes:
    """The LIP level that every way really has, against the one that was asked for."""
    made = []
    for way in study.ways():
        rows = [row for row in study.of(way) if not math.isnan(row.lip) and way != "none"]
        if rows:
            ink, label = _WAYS[way]
            made.append(Line(label, rows[0].kind, ink, [r.epsilon for r in rows], [r.lip for r in rows]))
    return leak_lines(made, axes)


def leak_lines(
    made: Sequence[Line],
    axes: Axes | None = None,
    xlabel: str = "privacy budget ε (nats)",
    top: float | None = None,
) -> Axes:
    """Real LIP levels against the budget, with the part of the plane that breaks the budget shaded."""
    drawn = lines(made, axes)
    asked = sorted({x for line in made for x in line.x})
    if asked:
        forbidden(drawn, asked, asked, top)
    drawn.set(xlabel=xlabel, ylabel="real LIP level (nats)")
    return drawn


def forbidden(axes: Axes, x: Sequence[float], budget: Sequence[float], top: float | None = None) -> None:
    """Shade what lies above the budget, up to `top` or a little above everything drawn."""
    top = max(axes.get_ylim()[1] * 1.06, max(budget) * 1.12) if top is None else top
    axes.fill_between(x, budget, top, color=INKS["red"], alpha=0.10, linewidth=0)
    axes.plot(x, budget, color=INKS["grey"], linewidth=0.8, zorder=1)
    axes.set_ylim(0, top)
    axes.text(
        0.02, 0.97, "breaks the budget", transform=axes.transAxes, fontsize=7, color=INKS["red"], va="top"
    )


def logarithmic(axes: Axes) -> None:
    """A logarithmic scale upwards, with plain numbers on it."""
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())


def lines(made: Sequence[Line], axes: Axes | None = None) -> Axes:
    """Draw curves in their styles; a bound is shaded, measurements are dots with intervals."""
    axes = axes if axes is not None else canvas()[1][0, 0]
    for line in made:
        if line.kind not in STYLES or line.ink not in INKS:
            raise InvalidInput(
                "made", (line.kind, line.ink), f"kinds are {', '.join(STYLES)}; inks {', '.join(INKS)}"
            )
        ink = INKS[line.ink]
        style = {"markersize": 3.5, **STYLES[line.kind]}
        axes.plot(line.x, line.y, color=ink, label=line.label, marker=line.marker or None, **style)
        if line.floor is not None:
            axes.fill_between(line.x, line.floor, line.y, color=ink, alpha=0.25, linewidth=0)
            axes.fill_between(line.x, 0, line.floor, color=ink, alpha=0.06, linewidth=0)
        if line.dots is not None:
            _dots(axes, line, ink)
    return axes


def _dots(axes: Axes, line: Line, ink: str) -> None:
    """Measurements with their intervals, without a label of their own."""
    dots = np.asarray(line.dots, dtype=float)
    spread = None
    if line.ends is not None:
        low, high = (np.asarray(end, dtype=float) for end in line.ends)
        spread = np.vstack([dots - low, high - dots])
    white = "white" if line.kind == "published" else ink
    axes.errorbar(
        line.x,
        dots,
        spread,
        fmt="o",
        color=ink,
        markerfacecolor=white,
        markersize=3,
        elinewidth=0.8,
        zorder=5,
    )


def legend(figure: Figure, *panels: Axes, columns: int = 2) -> None:
    """One legend for several panels, below them all, each label once."""
    found: dict[str, Any] = {}
    for axes in panels or tuple(figure.axes):
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        list(found.values()), list(found), loc="outside lower center", ncols=columns, frameon=False,
        fontsize=7, handlelength=2.6, columnspacing=1.2,
    )  # fmt: skip


def channel_map(
    channel: Channel | npt.ArrayLike, axes: Axes | None = None, title: str = "", figures: int = 2
) -> Axes:
    """A channel as a map: a row for each value, a column for each report, darker is likelier."""
    made = Channel.of(channel)
    axes = axes if axes is not None else canvas()[1][0, 0]
    Q = made.matrix
    axes.imshow(Q, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.grid(False)
    if Q.size <= 64:
        for (x, y), q in np.ndenumerate(Q):
            axes.text(
                y,
                x,
                f"{q:.{figures}f}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if q > 0.55 else "black",
            )
        axes.set_xticks(range(Q.shape[1]), [str(label) for label in made.outputs])
        axes.set_yticks(range(Q.shape[0]), [str(label) for label in made.inputs])
    axes.set(xlabel="report", ylabel="value", title=title)
    return axes


def histogram(
    estimate: Estimate,
    truth: npt.ArrayLike | None = None,
    prior: Prior | None = None,
    axes: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """An estimated histogram with its intervals, beside the truth and the prior where they are known."""
    axes = axes if axes is not None else canvas()[1][0, 0]
    at = np.arange(len(estimate.values))
    low, high = estimate.interval(level)
    if prior is not None:
        expected = prior.probabilities * estimate.reports
        axes.bar(at, expected, 0.8, color=INKS["grey"], alpha=0.35, label="prior")
    if truth is not None:
        axes.plot(
            at, np.asarray(truth), "_", color=INKS["red"], markersize=12, markeredgewidth=2, label="truth"
        )
    axes.errorbar(
        at, estimate.values, np.vstack([estimate.values - low, high - estimate.values]), fmt="o",
        color=INKS["blue"], markersize=3.5, elinewidth=1.2, capsize=2,
        label=f"estimate, {level:.0%} interval",
    )  # fmt: skip
    names = [str(label) for label in estimate.labels]
    if len(names) <= 12:
        axes.set_xticks(at, names, rotation=30 if max(map(len, names)) > 4 else 0)
    axes.set(ylabel="people", xlabel="value")
    axes.legend(frameon=False, fontsize=7)
    return axes


def feasible_region(
    prior: Prior | Sequence[float], epsilon: float, axes: Axes | None = None, points: int = 201
) -> Axes:
    """The LIP channels of a binary value, by flip probabilities, and contours of `Var(estimate)`.

    Across: `Pr(report 1 | value 0)`; up: `Pr(report 0 | value 1)`. The LDP region is drawn as an outline.
    """
    known = Prior.of(prior)
    if len(known) != 2:
        raise InvalidInput("prior", len(known), "the region is drawn for two values")
    axes = axes if axes is not None else canvas()[1][0, 0]
    grid = np.linspace(0, 1, points)
    q0, q1 = np.meshgrid(grid, grid)
    axes.contourf(q0, q1, region(known, epsilon, q0, q1), [0.5, 1.5], colors=[INKS["sky"]], alpha=0.4)
    axes.contour(
        q0, q1, ldp_ratio(q0, q1), [epsilon], colors=[INKS["orange"]], linewidths=1.2, linestyles="dotted"
    )
    contours = axes.contour(q0, q1, estimate_variance(known, q0, q1), 8, colors=INKS["grey"], linewidths=0.6)
    axes.clabel(contours, fontsize=6, fmt="%.2f")
    axes.set(xlabel="Pr(report 1 | value 0)", ylabel="Pr(report 0 | value 1)", xlim=(0, 1), ylim=(0, 1))
    return axes


def region(prior: Prior, epsilon: float, q0: Array, q1: Array) -> Array:
    """One where the binary channel with these flip probabilities keeps LIP at `epsilon`, else zero."""
    budget, P = Budget(epsilon), prior.probabilities
    inside = np.ones_like(q0)
    for own, other in (((1 - q0), q1), (q0, (1 - q1))):
        law = P[0] * own + P[1] * other
        for likelihood in (own, other):
            inside *= (likelihood >= budget.lo * law - 1e-12) & (likelihood <= budget.hi * law + 1e-12)
    return inside


def estimate_variance(prior: Prior, q0: Array, q1: Array) -> Array:
    """`Var(E[X | Y])` of a binary value, for flip probabilities `q0` and `q1`."""
    P = prior.probabilities
    law = P[0] * q0 + P[1] * (1 - q1)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread: Array = np.nan_to_num((P[0] * P[1] * (1 - q0 - q1)) ** 2 / (law * (1 - law)))
    return spread


def ldp_ratio(q0: Array, q1: Array) -> Array:
    """The LDP level of binary channels."""
    with np.errstate(divide="ignore", invalid="ignore"):
        levels: Array = np.maximum(np.abs(np.log((1 - q1) / q0)), np.abs(np.log((1 - q0) / q1)))
    return np.nan_to_num(levels, nan=0.0, posinf=50.0)


def svg_and_png(figure: Figure, dots: int = 150) -> tuple[bytes, bytes]:
    """A figure as the contents of an SVG and of a PNG file, without a date in them."""
    with look():
        vector, pixels = io.BytesIO(), io.BytesIO()
        figure.savefig(vector, format="svg", metadata={"Date": None, "Creator": "priorveil"})
        figure.savefig(pixels, format="png", dpi=dots, metadata={"Software": "priorveil"})
    return vector.getvalue(), pixels.getvalue()


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot") from error
    return matplotlib
