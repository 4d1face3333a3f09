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

The best weights are those for which this bound is largest. They are searched for with cutting planes: every design has
errors `f(p_i)`, and the next weights are those of the game between priors and designs. Designs may be mixed: a report
that says which design made it has the mean of their errors. At the best weights the bound and the error of such a
mixture are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from priorveil.arrays import Array
from priorveil.designs import column_generation
from priorveil.designs.column_generation import Solution
from priorveil.designs.robust import WorstPrior, worst_of_polytope
from priorveil.designs.stopping import MOST_ENTRIES, MOST_ROUNDS, Limits
from priorveil.designs.tolerances import TOLERANCE
from priorveil.errors import Infeasible, NotIdentifiable
from priorveil.priors import PriorSet
from priorveil.reading.linear_answers import channel_scores

# Weights of the next design: this much of the best ones so far. More is steadier, and takes more rounds.
_LEAN = 0.5
_LEAST_SHARE = 1e-9  # of a design in a mixture


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

    def tangent(p: Array) -> Array:
        """The linear function that touches `f` at a prior: `f` is concave, so it lies above."""
        means = rows @ p
        return np.asarray(moments - 2 * means @ rows + means @ means)

    tolerance = TOLERANCE * float(variances_at(start[None], moments, rows)[0])
    return worst_of_polytope(tangent, known.best, start, tolerance)


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


DesignAt = Callable[[Array, Limits], Solution]


def least_worst_variance(known: PriorSet, rows: Array, design_at: DesignAt, limits: Limits) -> RobustVariance:
    """The channel and reading prior with the least variance under the worst prior of a set.

    `design_at(prior, limits)` returns the channel with the least variance at a prior, within the budget of the whole
    set, and a bound on it. The search stops at the `limits` or on ctrl-C, with the best so far. The first design, at
    the middle of the set, may use all of the time: with the worst error stated it is already a plan.
    """
    search = _Search(known, rows)
    search.add(design_at(known.centre.probabilities, limits))
    with suppress(KeyboardInterrupt, Infeasible, NotIdentifiable):  # the best so far is a plan
        for count in range(1, MOST_ROUNDS):
            limits.report(count, search.best.worst, search.bound)
            if search.gap <= limits.target or limits.over():
                break
            limits.count_round()
            search.move()
            search.add(design_at(search.weights @ search.priors, limits.share(1 / 2)))
    best = search.best
    converged = search.gap <= limits.target
    bound = min(search.bound, best.worst)
    return RobustVariance(best.channel, best.reading_prior, best.worst, bound, converged)


class _Search:
    """Cutting planes: the priors that count, the designs so far, and the game between them."""

    def __init__(self, known: PriorSet, rows: Array) -> None:
        self.known, self.rows = known, rows
        self.is_finite = bool(known.members)
        if self.is_finite:
            self.priors = np.array([p.probabilities for p in known.members])
        else:
            self.priors = known.centre.probabilities[None]
        self.weights = np.full(len(self.priors), 1 / len(self.priors))
        self.best_weights, self.bound = self.weights, 0.0
        self.channels: list[Array] = []
        self.moments: list[Array] = []
        self.best = RobustVariance(np.empty(0), np.empty(0), math.inf, 0.0, False)

    @property
    def gap(self) -> float:
        """The share of the worst variance that is not proven."""
        return max(0.0, 1 - self.bound / self.best.worst) if self.best.worst > 0 else 0.0

    def add(self, solution: Solution) -> None:
        """Take the design for the present weights: its bound, its errors, and those of the best mixture with it."""
        mean = self.weights @ self.priors
        between = variance_between(self.priors, self.weights, self.rows) if self.is_finite else 0.0
        if solution.bound - between > self.bound:
            self.bound, self.best_weights = solution.bound - between, self.weights
        self.channels.append(solution.channel)
        self.moments.append(second_moments(solution.channel, mean, self.rows))
        self._keep_if_better(solution.channel, mean)
        if len(self.channels) > 1:
            shares = self._game().shares
            parts = [
                share * Q for share, Q in zip(shares, self.channels, strict=True) if share > _LEAST_SHARE
            ]
            if len(parts) > 1 and sum(part.size for part in parts) <= MOST_ENTRIES:
                self._keep_if_better(merge_columns(np.hstack(parts)), mean)

    def move(self) -> None:
        """Weights of the next design: between the best ones so far and those that the game asks for."""
        weights = self._game().weights
        best = np.append(self.best_weights, np.zeros(len(weights) - len(self.best_weights)))
        self.weights = _LEAN * best + (1 - _LEAN) * weights / weights.sum()

    def _game(self) -> column_generation.Mixture:
        """The weights of the priors and the shares of the designs at which neither side gains by a change."""
        errors = np.column_stack([variances_at(self.priors, moments, self.rows) for moments in self.moments])
        return column_generation.mix(np.ones((len(self.priors), 1)), errors)

    def _keep_if_better(self, channel: Array, reading_prior: Array) -> None:
        """Compare the worst error of a plan with the best so far; of a polytope its worst prior counts from now on."""
        worst = worst_variance(self.known, second_moments(channel, reading_prior, self.rows), self.rows)
        if worst.bound < self.best.worst:
            self.best = RobustVariance(channel, reading_prior, worst.bound, 0.0, False)
        if not self.is_finite:
            self.priors = np.vstack([self.priors, worst.prior])
            self.weights = np.append(self.weights, 0.0)


def merge_columns(Q: Array) -> Array:
    """The channel with columns that are multiples of each other added up: they say the same.

    >>> merge_columns(np.array([[0.2, 0.5, 0.3], [0.4, 0.0, 0.6]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    directions = np.round(Q / Q.max(axis=0), 10)
    _, first, groups = np.unique(directions, axis=1, return_index=True, return_inverse=True)
    merged = np.zeros((len(Q), len(first)))
    np.add.at(merged.T, groups.ravel(), Q.T)
    return merged[:, np.argsort(first)]
