"""Queries: what the curator wants to know, and how much a report tells of it.

A column of a channel, seen through its lift `r` (so that `P @ r = 1`), has a convex utility `phi(r)`; the
expected error of a channel is a constant less `sum_y lam[y] phi(r[:, y])`. `Distribution` is not of this
form: there the prior shapes the noise but must not bias the answer, and what counts is the variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from priorveil.channels import Channel
from priorveil.errors import InvalidInput
from priorveil.priors import Array, Budget, Prior, frozen


class Query(Protocol):
    """What every query can say."""

    def no_report(self, prior: Prior) -> float:
        """The error of the prior alone."""
        ...

    def error(self, channel: Channel, prior: Prior) -> float:
        """The error per person of a channel, under the prior."""
        ...

    def floor(self, prior: Prior, budget: Budget) -> float:
        """An error that no LIP channel with this budget goes below (the secret being the value itself)."""
        ...


class _Convex:
    """A query whose error is `ceiling - sum_y lam[y] phi(r[:, y])`."""

    def ceiling(self, prior: Prior) -> float:
        """The constant."""
        raise AssertionError("abstract")

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`phi` of every column: `columns` is (K, d), each row a lift `r` with `P @ r = 1`."""
        raise AssertionError("abstract")

    def no_report(self, prior: Prior) -> float:
        """The error of the prior alone: that of the column `r = 1`."""
        return self.ceiling(prior) - float(self.utility(np.ones((1, len(prior))), prior)[0])

    def error(self, channel: Channel, prior: Prior) -> float:
        """The expected error per person, when the curator uses the posterior."""
        live = channel.drop_unused()
        prior = live.align(prior)
        law = live.output_law(prior)
        return max(0.0, self.ceiling(prior) - float(law @ self.utility(live.lift(prior).T, prior)))


def _joint(channel: Channel, prior: Prior) -> Array:
    """`Pr(x, y)`, for the reports that can come."""
    live = channel.drop_unused()
    return np.asarray(live.align(prior).probabilities[:, None] * live.matrix)


def _others(prior: Prior) -> Array:
    """`1 - P`, for the likeliest value as the sum of the others: a value may be all but certain.

    >>> _others(Prior([1 - 1e-11, 1e-11]))[0]
    np.float64(1e-11)
    """
    P = prior.probabilities
    others: Array = 1 - P
    likeliest = int(P.argmax())
    others[likeliest] = np.delete(P, likeliest).sum()
    return others


def _rise(budget: Budget) -> float:
    """`hi - 1`, exact for small levels."""
    return math.expm1(budget.upper) if math.isfinite(budget.hi) else math.inf


@dataclass(frozen=True)
class Histogram(_Convex):
    """How many people have each value. The error is the mean square error, summed over the values.

    `phi(r) = sum_x (P[x] r[x])**2`; error `1 - sum_y lam[y] phi`.

    >>> Histogram().no_report(Prior([0.2, 0.8])).__round__(6)
    0.32
    """

    def ceiling(self, prior: Prior) -> float:
        """One: the sum over values of `E[1{X = x}**2]`."""
        return 1.0

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`sum_x (P[x] r[x])**2`."""
        utility: Array = (columns**2) @ prior.probabilities**2
        return utility

    def error(self, channel: Channel, prior: Prior) -> float:
        """`sum_y Pr(x, y) Pr(x', y) / lam[y]` over all pairs of two values: nothing is taken from one.

        >>> Histogram().error(Channel([[1.0], [1.0]]), Prior([1 - 1e-11, 1e-11]))
        1.99999999998e-11
        """
        joint = _joint(channel, prior)
        later = np.cumsum(joint[::-1], axis=0)[::-1]
        pairs = (joint[:-1] * later[1:]).sum(axis=0)
        return 2 * float(np.divide(pairs, later[0], out=np.zeros_like(pairs), where=later[0] > 0).sum())

    def no_report(self, prior: Prior) -> float:
        """`sum_x P[x] (1 - P[x])`."""
        return float(prior.probabilities @ _others(prior))

    def floor(self, prior: Prior, budget: Budget) -> float:
        """The free bound: an output is a soft subset of mass `tau` that holds every value equally often.

        `1 - sum_x P[x]**2 (lo**2 + 2 lo (hi - lo) tau + (hi - lo)**2 tau min(1, tau / P[x]))`, written as a sum of
        what is left of each value: `max(P (1 - P) (1 - (1 - lo)**2), P (1 - P) - P**2 (1 - lo) (hi - 1))`.

        >>> eps = 1.0
        >>> bound = Histogram().floor(Prior.uniform(10), Budget(eps))
        >>> abs(bound - (1 - (math.e - 1 + 1 / math.e) / 10)) < 1e-12
        True
        """
        P, lo = prior.probabilities, budget.lo
        own = P * _others(prior)
        return float(np.maximum(own * lo * (2 - lo), own - P**2 * (1 - lo) * _rise(budget)).sum())


@dataclass(frozen=True)
class Sum(_Convex):
    """The sum over people of `weight * value + offset`. The error is the mean square error.

    Arguments: `values`, the number that each value stands for, in the order of the prior (or of the channel
    whose error is asked for); `weight` and
    `offset`, the paper's `c_i` and `b_i`. `phi(r) = (sum_x a[x] P[x] r[x])**2` with
    `a = weight * values + offset`; the offset moves the answer and never the error.

    >>> Sum(values=[0, 1]).no_report(Prior([0.2, 0.8])).__round__(6)
    0.16
    """

    values: tuple[float, ...]
    weight: float = 1.0
    offset: float = 0.0

    def __init__(self, values: Sequence[float] | Array, weight: float = 1.0, offset: float = 0.0) -> None:
        try:
            numbers = tuple(float(v) for v in values)
        except (TypeError, ValueError) as error:
            raise InvalidInput("values", values, "give one number for each value of the prior") from error
        if not numbers or not all(map(math.isfinite, (*numbers, weight, offset))):
            raise InvalidInput("values", values, "values, weight and offset must be finite numbers")
        object.__setattr__(self, "values", numbers)
        object.__setattr__(self, "weight", float(weight))
        object.__setattr__(self, "offset", float(offset))

    @property
    def amounts(self) -> Array:
        """What each value counts, `weight * values`: an answer is its mean, plus the offset.

        >>> Sum([0, 1, 2], weight=2, offset=5).amounts
        array([0., 2., 4.])
        """
        amounts: Array = self.weight * np.array(self.values)
        return amounts

    def scores(self, prior: Prior) -> Array:
        """The amounts, less their mean under the prior: the error does not depend on the origin."""
        if len(self.values) != len(prior):
            raise InvalidInput(
                "values", self.values, f"give {len(prior)} numbers, one for each value of the prior"
            )
        centred: Array = self.amounts - prior.probabilities @ self.amounts
        return centred

    def ceiling(self, prior: Prior) -> float:
        """The variance of the value, the origin being its mean."""
        return float(prior.probabilities @ self.scores(prior) ** 2)

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`(sum_x a[x] P[x] r[x])**2`."""
        utility: Array = (columns @ (self.scores(prior) * prior.probabilities)) ** 2
        return utility

    def floor(self, prior: Prior, budget: Budget) -> float:
        """The free bound `Var(X) (1 - (1 - lo)**2)`, whatever the upper side is."""
        return self.ceiling(prior) * (1 - (1 - budget.lo) ** 2)


@dataclass(frozen=True)
class Guess(_Convex):
    """Which value a person has. The error is the probability that the best guess is wrong (Hamming).

    >>> Guess().no_report(Prior([0.2, 0.8])).__round__(6)
    0.2
    """

    def ceiling(self, prior: Prior) -> float:
        """One."""
        return 1.0

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`max_x P[x] r[x]`."""
        utility: Array = (columns * prior.probabilities).max(axis=1)
        return utility

    def error(self, channel: Channel, prior: Prior) -> float:
        """The mass of all values but the likeliest of each report: nothing is taken from one.

        >>> Guess().error(Channel([[1.0], [1.0]]), Prior([1 - 1e-11, 1e-11]))
        1e-11
        """
        joint = _joint(channel, prior)
        np.put_along_axis(joint, joint.argmax(axis=0)[None], 0.0, axis=0)
        return float(joint.sum())

    def no_report(self, prior: Prior) -> float:
        """What the likeliest value leaves."""
        return float(_others(prior).min())

    def floor(self, prior: Prior, budget: Budget) -> float:
        """No posterior exceeds `max_x P[x] lo + min(P[x] (hi - lo), 1 - lo)`; here is what is left of one."""
        left = self.no_report(prior)
        return max(budget.lo * left, left - float(prior.probabilities.max()) * _rise(budget))


@dataclass(frozen=True)
class Convex(_Convex):
    """Any convex utility of the posterior: what a curator gains from knowing `Pr(X | y)`.

    `gain` maps posteriors, an array (K, d) with a distribution in each row, to K numbers; it has to be
    convex. The error is what is lost against knowing the value itself. A gain that is seen not to be
    convex is refused.

    >>> entropy = Convex(lambda p: (p * np.log(np.maximum(p, 1e-300))).sum(axis=1))
    >>> entropy.no_report(Prior([0.5, 0.5])) == math.log(2)
    True
    """

    gain: Callable[[Array], Array]

    def ceiling(self, prior: Prior) -> float:
        """The gain when the value itself is known."""
        return float(prior.probabilities @ self._gains(np.eye(len(prior))))

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`gain(P * r)`."""
        return self._gains(columns * prior.probabilities)

    def floor(self, prior: Prior, budget: Budget) -> float:
        """Nothing better than zero is known of any convex gain."""
        return 0.0

    def require_convex(self, size: int) -> None:
        """Refuse a gain that lies above a chord somewhere on a fixed sample of posteriors."""
        rng = np.random.default_rng(0)
        p, q = rng.dirichlet(np.ones(size), 200), rng.dirichlet(np.full(size, 0.3), 200)
        middle, ends = self._gains((p + q) / 2), (self._gains(p) + self._gains(q)) / 2
        above = middle - ends - 1e-9 * (1 + np.abs(ends))
        if (above > 0).any():
            at = frozen((p + q)[int(above.argmax())] / 2).round(4).tolist()
            raise InvalidInput("gain", at, "it is not convex: at this posterior it lies above a chord")

    def _gains(self, posteriors: Array) -> Array:
        gains = np.asarray(self.gain(posteriors), dtype=np.float64)
        if gains.shape != (len(posteriors),) or not np.isfinite(gains).all():
            raise InvalidInput(
                "gain", gains.shape, "it must give one finite number for each row of posteriors"
            )
        return gains


@dataclass(frozen=True)
class Distribution:
    """The distribution of the values, learnt from reports alone: the prior never biases the answer.

    The error is `N` times the variance of the best unbiased estimator from `N` reports, summed over the
    values: the inverse of the Fisher information `J = sum_y lam[y] r_y r_y'` on the simplex, which is
    `tr(J**-1) - sum_x P[x]**2` since `J P = 1`. It is infinite where reports do not identify the
    distribution.

    >>> Distribution().error(Channel.identity(2), Prior([0.2, 0.8])).__round__(6)
    0.32
    """

    def no_report(self, prior: Prior) -> float:
        """Infinite: without reports nothing is learnt."""
        return math.inf

    def error(self, channel: Channel, prior: Prior) -> float:
        """`N` times the variance, at the prior."""
        return variance(channel.matrix, channel.align(prior).probabilities)

    def floor(self, prior: Prior, budget: Budget) -> float:
        """What would be left if people told the truth: `1 - sum_x P[x]**2`."""
        return 1 - float(prior.probabilities @ prior.probabilities)


def information(Q: Array, P: Array) -> Array:
    """The Fisher information `D J D` with `D = diag(sqrt(P))`: eigenvalues from 0 to 1, the largest 1.

    >>> information(np.eye(2), np.array([0.5, 0.5])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    law = P @ Q
    used = law > 0
    scaled = np.sqrt(P)[:, None] * Q[:, used] / np.sqrt(law[used])
    fisher: Array = scaled @ scaled.T
    return fisher


def tangent(dimension: int) -> Array:
    """An orthonormal basis (d, d - 1) of the vectors that sum to zero.

    >>> V = tangent(3)
    >>> bool(np.allclose(V.T @ V, np.eye(2))), bool(np.allclose(V.sum(0), 0))
    (True, True)
    """
    mirror = np.full(dimension, 1 / math.sqrt(dimension))
    mirror[0] += 1.0
    return np.asarray((np.eye(dimension) - 2 * np.outer(mirror, mirror) / (mirror @ mirror))[:, 1:])


def variance(channel: Array, prior: Array) -> float:
    """N times the variance of the best unbiased estimate of the distribution from N reports, over all values.

    The Cramer-Rao bound on the simplex at `p = P`, reached as N grows; infinite where reports alone do not
    determine the distribution. Randomised response at epsilon 1 over six equal inputs:

    >>> e = np.e
    >>> round(variance((np.ones((6, 6)) + (e - 1) * np.eye(6)) / (e + 5), np.full(6, 1 / 6)), 4)
    16.814
    """
    law = prior @ channel
    used = law > 0
    return lift_variance(channel.T[used] / law[used, None], law[used])


def lift_variance(columns: Array, weights: Array) -> float:
    """As `variance`, from lifts (K, d) and weights."""
    if columns.shape[1] == 1:
        return 0.0  # one value: its frequency is known
    directions = (columns - 1.0) @ tangent(columns.shape[1])
    scaled = np.sqrt(weights)[:, None] * directions
    if len(scaled) < scaled.shape[1]:
        return math.inf
    singular = np.linalg.svd(scaled, compute_uv=False)
    noise = 8 * max(scaled.shape) * np.finfo(float).eps * max(1.0, float(singular[0]))
    return math.inf if singular[-1] <= noise else float((1 / singular**2).sum())


def identifiable(Q: Array) -> bool:
    """Whether reports alone determine the distribution: whether the rows of the channel are independent.

    >>> identifiable(np.eye(3)), identifiable(np.full((2, 2), 0.5))
    (True, False)
    """
    return math.isfinite(variance(Q, np.full(len(Q), 1 / len(Q))))
