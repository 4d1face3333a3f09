"""Unbiased statistics for a set of priors: the least variance under the worst prior.

A plan reads reports by scores `s(y)`, which are made for one prior, the *reading prior*, and unbiased under all:
`E[s | x] = W e_x`. Under a prior `p` of the set N times the variance, summed over the statistics, is

    f(p) = g . p - |W p|^2,    g_x = E[|s|^2 | x],

which is concave in `p`. The error of the plan is the largest `f(p)` of the set.

For weights `w` on priors `p_i` of the set, with the mean `m = sum_i w_i p_i`,

    sum_i w_i f(p_i) = g . m - sum_i w_i |W p_i|^2 = f(m) + |W m|^2 - sum_i w_i |W p_i|^2.

So the channel with the least variance at `m`, read with the scores made for `m`, is the best one for these weights, and
what is proven of it bounds the worst error of every plan. If `m` is itself in the set (a polytope), `f(m)` is a bound
on its own, and a larger one.

The best weights are those for which this bound is largest. They are found together with the best weights of columns
(`weights.interior_point`). Where the extreme columns can be listed this is exact. Otherwise the columns are those of
the designs so far, and the next design is the one at the mean with these weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from priorveil.arrays import Array
from priorveil.designs.column_generation import Solution
from priorveil.designs.robust import WorstPrior, worst_of_polytope
from priorveil.designs.stopping import Limits
from priorveil.designs.tolerances import TOLERANCE
from priorveil.designs.value_groups import distinct_rows
from priorveil.designs.weights import (
    DesignStatistics,
    PriorTerms,
    drop_idle_columns,
    interior_point,
    variance_solution,
)
from priorveil.errors import Infeasible, NotIdentifiable
from priorveil.information import lift_variance
from priorveil.priors import PriorSet
from priorveil.reading.linear_answers import channel_scores

# The share of the time for the design at the middle of the set: what it misses costs most.
_FIRST_DESIGN = 3 / 4
_FEW_PRIORS = 10  # so many priors of a finite set count from the start, the others once they are the worst
_IDLE = 1e-2  # the weight, relative to the mean one, below which a column is forgotten


def second_moments(Q: Array, reading_prior: Array, rows: Array) -> Array:
    """`E[|s|^2 | x]` of each value, for the scores of `rows` that are made for a prior; infinite if there are none."""
    used = Q.max(axis=0) > 0
    try:
        scores = channel_scores(Q[:, used], reading_prior, rows)
    except NotIdentifiable:
        return np.full(len(Q), math.inf)
    return np.asarray(Q[:, used] @ (scores**2).sum(axis=1))


def variances_at(priors: Array, moments: Array, rows: Array) -> Array:
    """`f(p)` for each of the priors (n, d)."""
    return np.asarray(priors @ moments - ((priors @ rows.T) ** 2).sum(axis=1))


def worst_variance(known: PriorSet, moments: Array, rows: Array) -> WorstPrior:
    """The prior of the set with the largest variance, and a proven bound on that of every prior."""
    if known.members:
        priors = np.array([p.probabilities for p in known.members])
        errors = variances_at(priors, moments, rows)
        return WorstPrior(priors[np.argmax(errors)], float(errors.max()), float(errors.max()))
    start = known.centre.probabilities
    if not np.isfinite(moments).all():
        return WorstPrior(start, math.inf, math.inf)
    tolerance = TOLERANCE * float(variances_at(start[None], moments, rows)[0])
    return worst_of_polytope(lambda p: upper_tangent(p, moments, rows), known.best, start, tolerance)


def upper_tangent(prior: Array, moments: Array, rows: Array) -> Array:
    """The linear function that touches `f` at a prior: `f` is concave, so it lies above."""
    means = rows @ prior
    return np.asarray(moments - 2 * means @ rows + means @ means)


def variance_between(priors: Array, weights: Array, rows: Array) -> float:
    """`sum_i w_i |W p_i|^2 - |W m|^2`: how much the means of the statistics differ between priors."""
    means = priors @ rows.T
    return float(weights @ ((means - weights @ means) ** 2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class RobustVariance:
    """A channel (d, K), the prior that its scores are made for, and what is proven.

    Under no prior of the set is the variance above `worst`; no plan has its worst variance below `lower_bound`.
    """

    channel: Array
    reading_prior: Array
    worst: float
    lower_bound: float
    converged: bool


DesignAt = Callable[[Array, Limits, Solution | None], Solution]


def least_worst_variance(
    known: PriorSet, rows: Array, extreme: Array | None, design_at: DesignAt, limits: Limits
) -> RobustVariance:
    """The channel and reading prior with the least variance under the worst prior of a set.

    `extreme` are all extreme columns (K, d) within the budget of the whole set. None stands for too many to list: then
    `design_at(prior, limits, start)` improves on a channel, at a prior, and returns a bound on the least variance
    there. The search stops at the `limits`, on ctrl-C or when a design changes little, with the best so far.
    """
    search = _Search(known, rows, limits)
    if extreme is not None:
        search.weigh(extreme, all_listed=True)
        return search.result()
    search.add(design_at(search.mean, limits.share(_FIRST_DESIGN), None))
    with suppress(KeyboardInterrupt, Infeasible, NotIdentifiable):  # the best so far is a plan
        is_news = True
        while is_news and search.gap > limits.target and not limits.over():
            error, bound = search.best.worst, search.bound
            limits.count_round()
            search.weigh(search.columns)
            search.add(design_at(search.mean, limits.share(1 / 2), search.mixture()))
            is_news = error - search.best.worst + search.bound - bound > limits.target * error
    return search.result()


class _Search:
    """The priors that count and the columns in use, with their weights; the best plan and bound so far."""

    def __init__(self, known: PriorSet, rows: Array, limits: Limits) -> None:
        self.known, self.rows, self.limits = known, rows, limits
        self.statistics = DesignStatistics(rows.shape[1], rows)
        self.is_finite = bool(known.members)
        self.priors = known.centre.probabilities[None]
        if self.is_finite:
            self.priors = np.array([p.probabilities for p in known.members[:_FEW_PRIORS]])
        self.prior_weights = np.full(len(self.priors), 1 / len(self.priors))
        self.columns, self.weights = np.empty((0, len(known))), np.empty(0)
        self.best = RobustVariance(np.empty(0), np.empty(0), math.inf, 0.0, False)
        self.bound, self.rounds = 0.0, 0

    @property
    def mean(self) -> Array:
        """The prior that scores are made for."""
        return np.asarray(self.prior_weights @ self.priors / self.prior_weights.sum())

    @property
    def gap(self) -> float:
        """The share of the worst variance that is not proven."""
        return max(0.0, 1 - self.bound / self.best.worst) if self.best.worst > 0 else 0.0

    def result(self) -> RobustVariance:
        """The best plan, with the best bound."""
        bound = min(self.bound, self.best.worst)
        return replace(self.best, lower_bound=bound, converged=self.gap <= self.limits.target)

    def add(self, design: Solution) -> None:
        """Take the design for the present weights: its bound, its plan and its columns."""
        between = variance_between(self.priors, self.prior_weights, self.rows) if self.is_finite else 0.0
        self.bound = max(self.bound, design.bound - between)
        self._keep_if_better(design.channel)
        in_use = self.weights * len(self.weights) > _IDLE
        self.columns = np.vstack([self.columns[in_use], design.columns])

    def weigh(self, columns: Array, all_listed: bool = False) -> None:
        """Find the best weights of columns (K, d) and of priors; the worst prior joins them until it is one of them."""
        lifts = distinct_rows(columns / (columns @ self.known.centre.probabilities)[:, None])
        directions, targets = self.statistics.directions(lifts), self.statistics.targets
        fine, is_news = self.limits.target / 4, True
        while is_news:
            means = self.priors @ self.rows.T if self.is_finite else np.zeros((len(self.priors), 1))
            terms = PriorTerms(lifts @ self.priors.T, means)
            required = math.isinf(self.best.worst)
            state = interior_point(directions, fine, self.limits.over, targets, required, terms)
            self.prior_weights = state.prior_weights
            self.bound = max(self.bound, state.bound) if all_listed else self.bound
            worst = self._keep_if_better((lifts * state.weights[:, None]).T)
            is_news = worst.bound > state.value * (1 + fine) and not self.limits.over()
            if is_news := is_news and not (self.priors == worst.prior).all(axis=1).any():
                self.priors = np.vstack([self.priors, worst.prior])
        if all_listed and not self.limits.over():
            few = drop_idle_columns(directions, state, fine, targets, terms)
            self.prior_weights = few.prior_weights
            self._keep_if_better((lifts[few.used] * few.weights[:, None]).T, self.limits.target)
        self.columns, self.weights = lifts, state.weights

    def mixture(self) -> Solution:
        """The columns in use and their weights, as a channel to start from at the mean."""
        lengths = self.columns @ self.mean
        lifts, weights = self.columns / lengths[:, None], self.weights * lengths
        value = lift_variance(lifts, weights, self.rows)
        return variance_solution(lifts, weights, value, 0.0, 0, self.limits.target)

    def _keep_if_better(self, channel: Array, tolerance: float = 0.0) -> WorstPrior:
        """Compare the plan of a channel, read at the mean, with the best so far; returns its worst prior.

        In a polytope the worst prior is a corner: the tangent to `f` at the mean lies above `f`, and is largest there.
        """
        mean, self.rounds = self.mean, self.rounds + 1
        moments = second_moments(channel, mean, self.rows)
        if self.is_finite:
            worst = worst_variance(self.known, moments, self.rows)
        else:
            slopes = upper_tangent(mean, moments, self.rows)
            corner = self.known.best(slopes)
            worst = WorstPrior(corner, float(slopes @ corner), float(slopes @ corner))
        if worst.bound <= self.best.worst * (1 + tolerance):
            self.best = RobustVariance(channel, mean, worst.bound, 0.0, False)
        self.limits.report(self.rounds, self.best.worst, min(self.bound, self.best.worst))
        return worst
