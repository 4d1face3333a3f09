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
value lends the circle the end of its segment, so that the circle is exactly one window long. In effect
this is one output, for every light value and a part of one heavy value. Any other way to fill that
output is a mixture of these (the utilities are convex, the fills a simplex), so only the lender is chosen.

Everything here is in floating point and chooses a layout; what a device runs, and what is certified, is the integer
mechanism of `priorveil.mechanisms`. To learn a distribution arcs in one order are not enough: a pool of public orders
tells neighbours apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints
from priorveil.certify import exp_above
from priorveil.designs.plan_assembly import mechanism_plan
from priorveil.designs.problem import DesignProblem, Objective
from priorveil.designs.stopping import MOST_UNBIASED
from priorveil.errors import Hint, Infeasible, TooLarge
from priorveil.mechanisms import Arc, Orders
from priorveil.mechanisms.arc.arc_batch import PLACES, ArcBatch, fit_batch, row_windows
from priorveil.mechanisms.arc.cells import squared_overlap
from priorveil.mechanisms.arc.certificate import fit_line
from priorveil.plans import Plan
from priorveil.priors import Budget
from priorveil.priors.budget import window_mass
from priorveil.reading.order_information import information_of

_MOST_ORDERS = 1 << 14
_CELLS = 1 << 17  # numbers held in memory at a time, for many priors


def require_arcs(problem: DesignProblem) -> None:
    """Refuse what arcs are not for."""
    problem.one_prior("arc")
    if not problem.is_lip_of_value or not (
        problem.query.unbiased or problem.objective in (Objective.HISTOGRAM, Objective.SUM)
    ):
        raise Infeasible(
            "the method arc is for LIP of the value itself and Histogram, Sum or an unbiased query",
            Hint("method", "columns"),
        )
    if problem.query.unbiased and problem.lift_bounds[1] is None:
        raise Infeasible("arcs in many orders need a bound on both sides", Hint("method", "columns"))
    if problem.query.unbiased and problem.size > MOST_UNBIASED:
        raise TooLarge(
            f"{problem.size:,} values are too many to learn a distribution by arcs", Hint("method", "subset")
        )


def arc_plan(problem: DesignProblem) -> Plan:
    """Arcs on a circle: in many orders for unbiased answers, in one order for others."""
    return _orders_plan(problem) if problem.query.unbiased else _circle_plan(problem)


def _circle_plan(problem: DesignProblem) -> Plan:
    """The arc mechanism: any prior, any size, one number a report."""
    prior, budget = problem.one_prior("arc"), problem.budget
    values = problem.scores if problem.objective is Objective.SUM else None
    layout = arc_layout(problem.P, budget.lo, budget.hi, values)
    weights = np.array(prior.weights, dtype=object)
    mechanism = Arc(fit_line(weights, layout.order, layout.heavy, *problem.lift_bounds))
    heavy = layout.heavy
    why = f"arcs on a circle: {heavy} likely values have a report of their own, the others share windows"
    return mechanism_plan(problem, mechanism, _arc_error(problem, mechanism), "arc", why)


def _arc_error(problem: DesignProblem, mechanism: Arc) -> float:
    """The expected error of the integers that are sampled, in closed form."""
    line = mechanism.line
    lo = 1 - line.keep_chance
    hi = lo + (1 - lo) * line.places / line.window if line.window else math.inf
    layout = ArcLayout(problem.P, lo, hi, line.order, line.heavy)
    is_sum = problem.objective is Objective.SUM
    return max(0.0, sum_error(layout, problem.scores) if is_sum else histogram_error(layout))


def _orders_plan(problem: DesignProblem) -> Plan:
    """Arcs in several times as many orders as there are values."""
    prior = problem.one_prior("arc")
    lo, hi = problem.lift_bounds
    assert hi is not None
    own = owners(problem.P, problem.budget)
    weights = np.array(prior.weights, dtype=object)
    pool = Orders.fit(weights, own, order_count(len(prior)), lo or exp_above(-1000.0), hi)
    information = information_of(pool)
    if not information.is_invertible:
        raise Infeasible("the pool of orders does not identify the distribution", Hint("method", "columns"))
    why = (
        f"arcs on a circle in {pool.count:,} public orders, one drawn for each report; "
        f"{len(own)} likely values have a report of their own"
    )
    expected = information.variance(problem.query.centred_rows(prior))
    return mechanism_plan(problem, pool, expected, "arc", why)


def order_count(size: int) -> int:
    """How many orders to use: a power of two, at least eight for each value, but no more than reading can afford.

    A pool loses against fresh orders about 4 % of the variance with one and a half times as many orders as values.

    >>> [order_count(d) for d in (4, 400, 1000, 10_000)]
    [32, 4096, 8192, 16384]
    """
    return min(_MOST_ORDERS, 8 << (size - 1).bit_length())


def owners(P: Array, budget: Budget) -> list[int]:
    """The values that get an output of their own: those of mass at least `tau`, likeliest first.

    The window needs room to move. While it does not fit on the circle together with the longest arc, the least likely
    owner joins the circle.

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
    """Where each value lies: `order` runs along the line, and the first `heavy` values own an output each.

    >>> layout = arc_layout([0.5, 0.2, 0.2, 0.1], lo=np.exp(-1), hi=np.exp(1))
    >>> layout.heavy, round(layout.tau, 4), layout.order.tolist()
    (1, 0.2689, [0, 1, 2, 3])
    """

    prior: Array
    lo: float
    hi: float
    order: Ints
    heavy: int

    @property
    def tau(self) -> float:
        """The prior mass that one output stands for."""
        return float(window_mass(self.lo, self.hi))

    def segments(self) -> Segments:
        """The values along the line, as the only row."""
        return segments(self.prior[None], self.order[None], np.array([self.heavy]), np.array([[self.tau]]))


def arc_layout(prior: npt.ArrayLike, lo: float, hi: float, values: npt.ArrayLike | None = None) -> ArcLayout:
    """The layout for a histogram, or for the sum of `values`.

    The error of the histogram does not depend on the order on the circle, so the values stay in the order of their
    codes. For a sum, neighbours should have similar values.

    >>> arc_layout([0.3, 0.2, 0.3, 0.2], lo=0.5, hi=2.5).order.tolist()
    [0, 2, 1, 3]
    """
    P, a = np.asarray(prior, float), None if values is None else np.asarray(values, float)
    tau = float(window_mass(lo, hi))
    count = int((tau <= P).sum())
    layout = ArcLayout(P, lo, hi, line_orders(P[None], np.array([[tau]]), a)[0], count)
    if a is None:
        return layout
    other = replace(layout, order=zigzag_orders(layout.order[None], np.array([count]))[0])
    return min(layout, other, key=lambda one: sum_error(one, a))


def line_orders(P: Array, tau: Array, values: Array | None) -> Ints:
    """The order of every row of priors (K, d): heavy values, then light ones, ascending by value for a sum.

    Where the light values weigh less than `tau` (K, 1) together, the heavy one with the largest `gain` comes last of
    its kind and lends the circle the end of its segment. For a histogram all lend equally well.
    """
    heavy, rank, gain = tau <= P, np.zeros(P.shape[1]), P
    light = np.where(heavy, 0.0, P)
    mass = light.sum(axis=1, keepdims=True)
    if values is not None:
        rank = np.argsort(np.argsort(values, kind="stable")) / P.shape[1]
        a, lent = centre_values(P, values), np.maximum(tau - mass, 0.0)
        shared = (light * a).sum(axis=1, keepdims=True) + lent * a
        gain = shared**2 / np.maximum(tau, 1e-300) - lent * a**2
    key = np.where(heavy, 0.0, 1.0 + rank)
    lender = np.argmax(np.where(heavy, gain, -np.inf), axis=1)
    lends = np.flatnonzero((mass > 0) & (mass < tau))
    key[lends, lender[lends]] = 0.5
    return np.argsort(key, axis=1, kind="stable")


def zigzag_orders(order: Ints, heavy: Ints) -> Ints:
    """A zigzag order of every row: every second light value ascending, then the others descending.

    So neighbours on the circle have similar values.
    """
    d = order.shape[1]
    rank, light = np.arange(d) - heavy[:, None], d - heavy[:, None]
    fold = np.where(rank % 2 == 0, rank // 2, light - 1 - rank // 2)
    key = np.where(rank < 0, rank, fold)
    return np.take_along_axis(order, np.argsort(key, axis=1, kind="stable"), axis=1)


def centre_values(P: Array, values: Array) -> Array:
    """Values less their mean under each row's prior."""
    return np.asarray(values - (P @ values)[:, None])


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
        >>> moment = layout.segments().squared_lifts()[0] / 0.1**2 + 1
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


def segments(P: Array, order: Ints, heavy: Ints, tau: Array) -> Segments:
    """The segments of lines in these orders (K, d), with `heavy` heavy values each; `tau` is (K, 1).

    The circle begins where the heavy values end, or before that, if it would be shorter than one window.
    """
    mass = np.take_along_axis(P, order, axis=1)
    edges = np.pad(np.cumsum(mass, axis=1), ((0, 0), (1, 0)))
    start = np.take_along_axis(edges, heavy[:, None], axis=1)
    start = np.where(heavy[:, None] < P.shape[1], np.minimum(start, edges[:, -1:] - tau), start)
    # What lies before the circle is owned whole: a rest left by rounding would be divided by a `tau` of zero.
    own = np.where(edges[:, 1:] <= start, mass, np.clip(start - edges[:, :-1], 0.0, mass))
    return Segments(mass, own, np.maximum(edges - start, 0.0), np.maximum(tau, 1e-100))


def histogram_error(layout: ArcLayout) -> float:
    """Expected squared error per user, `1 - sum_x P_x^2 E[r_x^2]`, in closed form.

    With every value heavy this is the error of the paper's Theorem 3. It does not depend on the order.

    >>> layout = arc_layout(np.full(83, 1 / 83), lo=np.exp(-4), hi=np.exp(4))
    >>> round(histogram_error(layout), 3)
    0.498
    """
    moved = (1 - layout.lo) ** 2 * layout.segments().squared_lifts().sum()
    return float(1 - layout.prior @ layout.prior - moved)


def sum_error(layout: ArcLayout, values: npt.ArrayLike | None) -> float:
    """Expected squared error per user of the sum of `values`: `Var - E[(sum_x a_x P_x r_x)^2]`, `a` centred.

    >>> sum_error(arc_layout([0.5, 0.5], lo=0.5, hi=2.5), [0, 1])
    0.1875
    """
    P, a = layout.prior, np.asarray(values, dtype=np.float64)
    a = a - np.dot(P, a)
    explained = layout.segments().squared_means(a[layout.order][None])[0]
    return float(np.dot(P, a * a) - (1 - layout.lo) ** 2 * explained)


# -- many priors at once -----------------------------------------------------------------------------------


def design_batch(P: Array, lower: Array, upper: Array, values: Array | None) -> ArcBatch:
    """The lines of all rows, for a histogram or the sum of `values`; a sum takes the better of two orders.

    >>> lines = design_batch(np.array([[0.5, 0.5], [0.05, 0.95]]), np.ones(2), np.ones(2), None)
    >>> lines.heavy.tolist()
    [2, 1]
    """
    tau = row_windows(lower, upper)[:, None]
    counts, order = (tau <= P).sum(axis=1), line_orders(P, tau, values)
    lines = fit_batch(P, lower, upper, order, counts)
    many = np.flatnonzero(P.shape[1] - counts > 3)  # three values have only one order on a circle
    if values is None or many.size == 0:
        return lines
    zigzag = zigzag_orders(order[many], counts[many])
    other = fit_batch(P[many], lower[many], upper[many], zigzag, counts[many])
    better = expected_errors(other, P[many], values) < expected_errors(lines.rows(many), P[many], values)
    return lines.replace_rows(many[better], other.rows(better))


def row_slices(rows: int, width: int) -> Iterator[slice]:
    """All rows, some at a time, so that few numbers are in memory."""
    step = max(1, _CELLS // width)
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def expected_errors(lines: ArcBatch, P: Array, values: Array | None) -> Array:
    """The expected squared error per person of each row, of the integers that are sampled."""
    if values is None:
        explained = P**2 + posterior_step_variances(lines, P)  # sum_x P_x^2 E[r_x^2]
        return np.asarray(np.maximum(0.0, 1 - explained.sum(axis=1)))
    cuts = 2 * (P.shape[1] + 1)
    return np.concatenate([_sum_errors(lines.rows(p), P[p], values) for p in row_slices(len(P), cuts)])


def _batch_segments(lines: ArcBatch, P: Array) -> Segments:
    return segments(P, lines.order, lines.heavy, np.maximum(lines.window, 1)[:, None] / PLACES)


def posterior_step_variances(lines: ArcBatch, P: Array) -> Array:
    """The variance of `Pr(x | report)` over the reports of each row: `P_x^2 (E[r_x^2] - 1)`.

    >>> lines = design_batch(np.array([[0.5, 0.5]]), np.ones(1), np.ones(1), None)
    >>> posterior_step_variances(lines, np.array([[0.5, 0.5]])).round(6).tolist()  # (1 - 1 / e)^2 / 4
    [[0.099894, 0.099894]]
    """
    moved = _batch_segments(lines, P).squared_lifts()
    return _by_value(lines, lines.keep_chance[:, None] ** 2 * moved)


def posterior_steps(lines: ArcBatch, P: Array) -> tuple[Array, Array]:
    """How far one report can move `Pr(x | report)` up and down from the prior, in each row.

    A lift is `1 - k` where the window does not reach, and at most `1 - k + k M / max(length, W)` on the circle, `1 - k
    + k M / length` at an output of its own.

    >>> lines = design_batch(np.array([[0.5, 0.5]]), np.ones(1), np.ones(1), None)
    >>> [step.round(6).tolist() for step in posterior_steps(lines, np.array([[0.5, 0.5]]))]
    [[[0.31606, 0.31606]], [[0.31606, 0.31606]]]
    """
    mine = np.arange(P.shape[1]) < lines.heavy[:, None]
    length = np.diff(lines.edges, axis=1)
    highest = PLACES / np.where(mine, length, np.maximum(length, lines.window[:, None]))
    fall = lines.keep_chance[:, None] * P
    return fall * np.maximum(_by_value(lines, highest) - 1, 0.0), fall


def _by_value(lines: ArcBatch, along: Array) -> Array:
    """Numbers that go along the lines, put in the order of the values."""
    by_value = np.empty_like(along)
    np.put_along_axis(by_value, lines.order, along, axis=1)
    return by_value


def _sum_errors(lines: ArcBatch, P: Array, values: Array) -> Array:
    """`Var - E[(sum_x a_x P_x r_x)^2]`."""
    a = np.take_along_axis(centre_values(P, values), lines.order, axis=1)
    along = _batch_segments(lines, P)
    explained = lines.keep_chance**2 * along.squared_means(a)
    return np.asarray(np.maximum(0.0, (along.mass * a**2).sum(axis=1) - explained))
