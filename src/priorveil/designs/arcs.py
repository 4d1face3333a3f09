"""The arc mechanism: a good channel for any prior and any number of values, in closed form.

Lay the values on a line of length one, each as a segment as long as its prior mass. Values of mass at
least `tau = (1 - lo) / (hi - lo)` (the *heavy* ones) come first and own an output each. The rest of
the line is bent into a circle: an output is a point `u` of it, standing for the arc `[u, u + tau)`.

To report `x`: with probability `1 - lo` take a uniform point of the segment of `x`, otherwise a
uniform point of the whole line. A point on a heavy segment sends that segment's output; a point on the
circle is moved back by a uniform number in `[0, tau)`, and sent. The lift of `x` is then

    `r_x = lo + (hi - lo) b_x`,  `b_x = tau / P_x` on its own output,
    `b_x(u) = |segment of x within [u, u + tau)| / P_x` on the circle,

which lies between `lo` and `hi`. If the light values weigh less than `tau` together, the last heavy
value lends the circle the end of its segment, so that the circle is exactly one window long: one output
in all but name, holding every light value and a part of one heavy value. Any other way to fill that
output is a mixture of these (the utilities are convex, the fills a simplex), so only the lender is chosen.

Everything here is in floating point and chooses a layout; what a device runs, and what is certified, is the integer
mechanism of `priorveil.mechanisms`. To learn a distribution arcs in one order are not enough: a pool of public orders
tells neighbours apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.certify import exp_above
from priorveil.designs.problem import Problem
from priorveil.errors import Hint, Infeasible, InvalidInput, TooLarge
from priorveil.mechanisms import Arc
from priorveil.plans import Plan
from priorveil.priors import Array, Budget, Ints, Mask
from priorveil.priors.budget import window_mass

ARC_KINDS = ("histogram", "sum", "guess")  # the queries that arcs in one order are for
_LEAST, _MOST = 8, 1024  # orders of a pool; a tally has some 50 bytes for each value and each order
_VALUES = 2048  # up to this many: beyond, a pool that tells them apart is too large


def arc_plan(problem: Problem) -> Plan:
    """Arcs on a circle: to learn a distribution in many orders, for anything else in one."""
    return _pool_plan(problem) if problem.query.kind == "distribution" else _circle_plan(problem)


def _circle_plan(problem: Problem) -> Plan:
    """The arc mechanism: any prior, any size, one number a report."""
    prior, kind, budget = problem.one_prior("arc"), problem.query.kind, problem.budget
    if not problem.box or kind not in ARC_KINDS:
        raise Infeasible(
            "the method arc is for LIP of the value itself and Histogram, Sum or Guess",
            Hint("method", "columns"),
        )
    values = problem.scores if kind == "sum" else None
    layout = arc_layout(problem.P, budget.lo, budget.hi, values=values, guess=kind == "guess")
    weights = np.array(prior.weights, dtype=object)
    mechanism = Arc.fit(weights, layout.order, layout.heavy, *problem.lift_bounds)
    heavy = layout.heavy
    why = f"arcs on a circle: {heavy} likely values have a report of their own, the others share windows"
    return problem.certified_plan(mechanism, _arc_error(problem, mechanism), "arc", why)


def _arc_error(problem: Problem, mechanism: Arc) -> float:
    """The expected error of the integers that are sampled, in closed form."""
    line, kind = mechanism.line, problem.query.kind
    places, lo = float(line.places), 1 - line.keep_chance
    hi = lo + (1 - lo) * places / line.window if line.window else math.inf
    lends = line.heavy > 0 and line.start < int(line.edges[line.heavy])
    layout = ArcLayout(problem.P, lo, hi, line.order, line.heavy, line.start / places, lends)
    if kind == "sum":
        return max(0.0, sum_error(layout, problem.scores))
    return max(0.0, guess_error(layout) if kind == "guess" else histogram_error(layout))


def _pool_plan(problem: Problem) -> Plan:
    """A pool of arc mechanisms, their circles in about as many orders as there are values."""
    prior, (lo, hi) = problem.one_prior("arc"), problem.lift_bounds
    if not problem.box or hi is None:
        raise Infeasible("arcs in many orders are for LIP of the value itself", Hint("method", "columns"))
    if len(prior) > _VALUES:
        raise TooLarge(
            f"{len(prior):,} values are too many to learn a distribution by arcs", Hint("method", "unary")
        )
    own = owners(problem.P, problem.budget)
    weights = np.array(prior.weights, dtype=object)
    pool = Arc.fit_pool(weights, own, pool_size(len(prior)), lo or exp_above(-1000.0), hi)
    if not pool.identifies():
        raise Infeasible("the pool of orders does not identify the distribution", Hint("method", "columns"))
    why = (
        f"arcs on a circle in {len(pool.lines)} public orders, one drawn for each report; "
        f"{len(own)} likely values have a report of their own"
    )
    return problem.certified_plan(pool, pool.variance(), "arc", why)


def pool_size(size: int) -> int:
    """How many orders: a power of two, about as many as values.

    Half as many would try every multiplier once; twice as many win a few percent more and double the tally.

    >>> [pool_size(d) for d in (4, 400, 2000)]
    [8, 512, 1024]
    """
    return min(_MOST, max(_LEAST, 1 << (size - 1).bit_length()))


def owners(P: Array, budget: Budget) -> list[int]:
    """The values that get an output of their own: those of mass at least `tau`, likeliest first.

    A window needs room to move: while it and the longest arc do not fit on the circle together, the least
    likely owner joins the circle.

    >>> owners(np.full(100, 0.01), Budget.of(1.0)), owners(np.array([0.5] + [0.005] * 100), Budget.of(1.0))
    ([], [0])
    >>> owners(np.array([0.5, 0.3, 0.1, 0.1]), Budget.of(1.0))
    []
    """
    falling = np.argsort(-P, kind="stable")
    left = 1 - np.concatenate([[0.0], np.cumsum(P[falling])])
    n = int(np.count_nonzero(budget.tau <= P))
    while n and (n == len(P) or left[n] < budget.tau + P[falling[n]]):
        n -= 1
    return [int(x) for x in falling[:n]]


@dataclass(frozen=True, eq=False)
class ArcLayout:
    """Where each value lies.

    `order` runs along the line; the first `heavy` values own an output each; the circle begins at
    `start`. If `lends`, that is within the segment of the last heavy value, which lends the rest of it.

    >>> layout = arc_layout([0.5, 0.2, 0.2, 0.1], lo=np.exp(-1), hi=np.exp(1))
    >>> layout.heavy, round(layout.tau, 4), round(layout.circumference, 4)
    (1, 0.2689, 0.5)
    """

    prior: Array
    lo: float
    hi: float
    order: Ints
    heavy: int
    start: float
    lends: bool = False

    @property
    def tau(self) -> float:
        """The prior mass that one output stands for."""
        return float(window_mass(self.lo, self.hi))

    @property
    def circumference(self) -> float:
        """The length of the circle: zero when every value is heavy."""
        return 1.0 - self.start if self.heavy < len(self.prior) else 0.0


def arc_layout(
    prior: npt.ArrayLike,
    lo: float,
    hi: float,
    *,
    values: npt.ArrayLike | None = None,
    guess: bool = False,
    order: npt.ArrayLike | None = None,
) -> ArcLayout:
    """The layout for a histogram, for the sum of `values`, or for a `guess`.

    The error of the histogram does not depend on the order on the circle, so the given one (`order`, a
    public permutation; by default the order of the codes) stays. A sum wants neighbours of like value, a
    guess wants the largest light values a window apart; there the order is chosen here.

    >>> arc_layout([0.3, 0.2, 0.3, 0.2], lo=0.5, hi=2.5).order.tolist()
    [0, 2, 1, 3]
    """
    if not (0 <= lo < 1 < hi):
        raise InvalidInput("lo, hi", (lo, hi), "give 0 <= lo < 1 < hi")
    P = np.asarray(prior, dtype=np.float64)
    tau = float(window_mass(lo, hi))
    base = np.arange(len(P)) if order is None else np.asarray(order, dtype=np.int64)
    heavy, light = base[P[base] >= tau], base[P[base] < tau]
    mass = float(P[light].sum())
    if len(light) == 0:
        return ArcLayout(P, lo, hi, heavy, len(heavy), 1.0)
    if mass < tau:
        heavy = _lender_last(P, lo, hi, heavy, light, values, guess)
        return ArcLayout(P, lo, hi, np.concatenate([heavy, light]), len(heavy), 1.0 - tau, lends=True)
    circles = [_separate_largest(P, light, tau) if guess else light]
    if values is not None:
        rising = light[np.argsort(np.asarray(values, dtype=np.float64)[light], kind="stable")]
        circles = [rising, np.concatenate([rising[::2], rising[1::2][::-1]])]
    layouts = [ArcLayout(P, lo, hi, np.concatenate([heavy, c]), len(heavy), 1.0 - mass) for c in circles]
    return layouts[0] if len(layouts) == 1 else min(layouts, key=lambda one: sum_error(one, values))


def _separate_largest(P: Array, light: Ints, tau: float) -> Ints:
    """The largest light values a window apart, the others dealt out evenly between them."""
    falling = light[np.argsort(-P[light], kind="stable")]
    leaders = max(1, int(P[light].sum() / tau))
    followers = falling[leaders:]
    before = np.concatenate([[0.0], np.cumsum(P[followers])])
    gap = np.floor(before[:-1] / max(before[-1], 1e-300) * leaders)
    place = np.concatenate([np.arange(min(leaders, len(falling))) - 0.5, gap])
    return falling[np.argsort(place, kind="stable")]


def _lender_last(
    P: Array, lo: float, hi: float, heavy: Ints, light: Ints, values: npt.ArrayLike | None, guess: bool
) -> Ints:
    """Move the heavy value that lends best to the end. For a histogram all lend equally well."""
    tau = float(window_mass(lo, hi))
    if guess:
        lent, own_output, base = tau - float(P[light].sum()), lo * P[heavy] + (1 - lo), lo * P.max()
        shared = np.maximum(lo * P[heavy] + (hi - lo) * lent, max(hi * P[light].max(), base))
        gain = tau * shared - lent * np.maximum(own_output, base)
    else:
        a = None if values is None else np.asarray(values, dtype=np.float64)
        gain = lending_gain(P[None], P[None] >= tau, np.array([[tau]]), a)[0, heavy]
    best = int(np.argmax(gain))
    return np.concatenate([np.delete(heavy, best), heavy[best : best + 1]])


def lending_gain(P: Array, heavy: Mask, tau: Array, values: Array | None) -> Array:
    """The gain when a heavy value lends the end of its segment to a circle that is shorter than its window.

    A row for each prior (K, d); `tau` is (K, 1).
    """
    if values is None:
        return P
    light, a = np.where(heavy, 0.0, P), values - (P @ values)[:, None]
    lent = np.maximum(tau - light.sum(axis=1, keepdims=True), 0.0)
    shared = (light * a).sum(axis=1, keepdims=True) + lent * a
    return np.asarray(shared**2 / np.maximum(tau, 1e-300) - lent * a**2)


def _circle(layout: ArcLayout) -> tuple[Ints, Array]:
    """The values on the circle, and the `len + 1` edges of their arcs, from 0 to the circumference."""
    members = layout.order[layout.heavy - layout.lends :]
    rim = np.concatenate([[0.0], np.cumsum(layout.prior[members])])
    if layout.lends:
        rim[1:] -= rim[-1] - layout.circumference
    return members, rim


def _own_mass(layout: ArcLayout) -> Array:
    """The weight of each heavy output in the law of the reports."""
    own = layout.prior[layout.order[: layout.heavy]].copy()
    if layout.lends:
        own[-1] -= layout.circumference - float(layout.prior[layout.order[layout.heavy :]].sum())
    return own


def squared_overlap(p: Array, tau: float | Array, L: float | Array) -> Array:
    """`E[b_x^2]` of light values of mass `p` on a circle of length `L`.

    `b_x(u)` rises over a length `p`, stays at one, and falls again, so it is `tau - p / 3` while `L >= tau + p`. On a
    tighter circle the same holds for `1 - b_x`, the share of `x` in the gap of length `c = L - tau`: it is
    `L - 2 c + (c / p)^2 (p - c / 3)`.
    """
    c = np.maximum(L - tau, 0.0)
    tight = L - 2 * c + (np.minimum(c, p) / p) ** 2 * (p - c / 3)
    return np.where(tau + p <= L, tau - p / 3, tight)


class Segments(NamedTuple):
    """Values along the line, a row for each layout: how much mass they have, and where.

    `mass` (K, d) is their prior, `own` (K, d) the part of it that has an output of its own, `rim` (K, d + 1) where
    their arcs end on the circle (zero before it begins), `tau` (K, 1) the mass that one output stands for.
    """

    mass: Array
    own: Array
    rim: Array
    tau: Array

    def squared_lifts(self) -> Array:
        """`P_x^2 (E[(b_x / tau)^2] - 1)` of every value, over the law of the outputs.

        The moment of a heavy value is `1 / P_x`; for light ones see `squared_overlap`. A lender owns the mass
        `P_x - s` and lends `s`: `(P_x - s) / P_x^2 + s^2 / (tau P_x^2)`.

        >>> layout = arc_layout([0.1] * 10, lo=np.exp(-1), hi=np.exp(1))
        >>> moment = segments(layout).squared_lifts()[0] / 0.1**2 + 1
        >>> bool(np.allclose(moment * layout.tau**2, layout.tau - 0.1 / 3))
        True
        """
        P, tau = self.mass, self.tau
        light = squared_overlap(P, tau, self.rim[:, -1:]) * (P / tau) ** 2
        return np.asarray(np.where(self.own > 0, self.own + (P - self.own) ** 2 / tau, light) - P**2)

    def squared_means(self, a: Array) -> Array:
        """`E[(sum_x a_x P_x b_x / tau)^2]` of each row, for numbers `a` (K, d) along the line, in O(d log d).

        On the circle the sum is the integral of `a` over the window. That is linear between the places where the
        window gains or loses an arc, so its square is integrated exactly.
        """
        L, tau = np.maximum(self.rim[:, -1:], 1e-300), self.tau
        turns = np.concatenate([self.rim, L + self.rim[:, 1:]], axis=1)
        height = np.concatenate([a, a], axis=1)
        area = np.cumsum(np.pad(height * np.diff(turns, axis=1), ((0, 0), (1, 0))), axis=1)
        row = 4.0 * np.arange(len(a))[:, None]  # all rows are searched at once: no circle is longer than one

        def integral(ends: Array) -> Array:
            places = np.searchsorted((turns + row).ravel(), (ends + row).ravel(), "right").reshape(ends.shape)
            at = np.clip(places - 1 - turns.shape[1] * np.arange(len(a))[:, None], 0, height.shape[1] - 1)
            start, slope, before = (np.take_along_axis(each, at, axis=1) for each in (turns, height, area))
            return np.asarray(before + slope * (ends - start))

        cuts = np.sort(np.concatenate([self.rim, np.mod(self.rim - tau, L)], axis=1), axis=1)
        g = integral(cuts + tau) - integral(cuts)
        squares = g[:, :-1] ** 2 + g[:, :-1] * g[:, 1:] + g[:, 1:] ** 2
        shared = (np.diff(cuts, axis=1) * squares).sum(axis=1) / 3 / tau[:, 0] ** 2
        return np.asarray((self.own * a**2).sum(axis=1) + shared)


def segments(layout: ArcLayout) -> Segments:
    """The segments of one layout."""
    members, rim = _circle(layout)
    own, rim = _own_mass(layout), np.pad(rim, (len(layout.prior) - len(members), 0))
    own = np.pad(own, (0, len(layout.prior) - len(own)))
    tau = max(layout.tau, 1e-100)  # zero only where no value is light
    return Segments(layout.prior[layout.order][None], own[None], rim[None], np.array([[tau]]))


def histogram_error(layout: ArcLayout) -> float:
    """Expected squared error per user, `1 - sum_x P_x^2 E[r_x^2]`, in closed form.

    With every value heavy this is the error of the paper's Theorem 3. It does not depend on the order.

    >>> layout = arc_layout(np.full(83, 1 / 83), lo=np.exp(-4), hi=np.exp(4))
    >>> round(histogram_error(layout), 3)
    0.498
    """
    moved = (1 - layout.lo) ** 2 * segments(layout).squared_lifts().sum()
    return float(1 - layout.prior @ layout.prior - moved)


def sum_error(layout: ArcLayout, values: npt.ArrayLike | None) -> float:
    """Expected squared error per user of the sum of `values`: `Var - E[(sum_x a_x P_x r_x)^2]`, `a` centred.

    >>> sum_error(arc_layout([0.5, 0.5], lo=0.5, hi=2.5), [0, 1])
    0.1875
    """
    P, a = layout.prior, np.asarray(values, dtype=np.float64)
    a = a - np.dot(P, a)
    known = segments(layout).squared_means(a[layout.order][None])[0]
    return float(np.dot(P, a * a) - (1 - layout.lo) ** 2 * known)


def _pieces(layout: ArcLayout) -> tuple[Ints, Array, Array]:
    """Members, rim, and the sorted places where the window `[u, u + tau)` gains or loses an arc."""
    members, rim = _circle(layout)
    L = float(rim[-1])
    ends = np.mod(rim[:-1] - layout.tau, L) if L else rim[:0]
    return members, rim, np.sort(np.concatenate([rim, ends[(ends > 0) & (ends < L)]]))


def guess_error(layout: ArcLayout) -> float:
    """Probability that the best guess after one report is wrong: `1 - E[max_x P_x r_x]`, exactly.

    Between two cuts the window holds some arcs whole, loses one and gains one. The posterior there is the
    largest of a constant (the best value held whole, or none of them), a falling and a rising line; the
    integral of such a maximum is exact once cut at the crossings. O(d log d) in all.

    >>> round(guess_error(arc_layout([0.6, 0.4], lo=0.5, hi=2.5, guess=True)), 12)
    0.24
    """
    P, lo = layout.prior, layout.lo
    floor = lo * float(P.max())
    own_output = lo * P[layout.order[: layout.heavy]] + (1 - lo)
    owned = float(np.dot(_own_mass(layout), np.maximum(own_output, floor)))
    members, rim, cuts = _pieces(layout)
    if len(members) == 0:
        return 1 - owned
    return 1 - owned - _integrate_maximum(layout, members, rim, cuts, floor)


def _integrate_maximum(layout: ArcLayout, members: Ints, rim: Array, cuts: Array, floor: float) -> float:
    """The integral over the circle of the largest posterior."""
    lo, scale, tau, n, L = layout.lo, (1 - layout.lo) / layout.tau, layout.tau, len(members), rim[-1]
    left, width = cuts[:-1], np.diff(cuts)
    keep = width > 0
    left, width = left[keep], width[keep]
    middle = left + width / 2
    i = np.clip(np.searchsorted(rim, middle, "right") - 1, 0, n - 1)
    turns = np.concatenate([rim, L + rim[1:]])
    # No arc on the circle is as long as the window, so a window that ends where it began has gone round.
    e = np.clip(np.searchsorted(turns, middle + tau, "right") - 1, i + 1, i + n)
    P = layout.prior[members]
    whole = np.tile(lo * P + scale * np.diff(rim), 2)
    level = np.maximum(_range_maximum(whole, i + 1, e), floor)
    falling = lo * P[i] + scale * (turns[i + 1] - left)
    rising = lo * P[e % n] + scale * (left + tau - turns[e])
    alone = e == i + n
    both_ends = lo * P[i] + scale * (np.diff(rim)[i] + tau - L)
    level = np.where(alone, np.maximum(level, both_ends), level)
    falling, rising = np.where(alone, floor, falling), np.where(alone, floor, rising)
    down, up = np.where(alone, 0.0, -scale), np.where(alone, 0.0, scale)
    crossings = [(falling - rising) / (2 * scale), (falling - level) / scale, (level - rising) / scale]
    stops = [np.zeros_like(width), width, *(np.clip(c, 0, width) for c in crossings)]
    points = np.sort(np.stack(stops), axis=0)
    height = np.maximum(level, np.maximum(falling + down * points, rising + up * points))
    return float(np.sum(np.diff(points, axis=0) * (height[1:] + height[:-1]) / 2))


def _range_maximum(x: Array, begin: Ints, end: Ints) -> Array:
    """`max(x[begin:end])` for many ranges at once (`-inf` if empty), one doubling level at a time."""
    best = np.full(len(begin), -np.inf)
    size = end - begin
    table, span = x, 1
    while span <= max(int(size.max(initial=0)), 0):
        now = (size >= span) & (size < 2 * span)
        best[now] = np.maximum(table[begin[now]], table[end[now] - span])
        table, span = np.maximum(table[:-span], table[span:]) if len(table) > span else table, 2 * span
    return best
