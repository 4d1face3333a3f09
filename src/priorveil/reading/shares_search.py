"""The distribution with the smallest convex loss, by an interior-point method, with a proof of how good it is.

Shares are not negative and add up to one. For a convex loss with gradient `g` at a distribution `p`, any distribution
`q` has `loss(q) >= loss(p) + g . (q - p)`, so no loss is below that of `p` by more than the gap `p . g - min(g)`. The
search stops by this gap: its stopping rule is a proof.

A barrier `-b sum(log p)` keeps all shares positive, and `b` falls round by round. Each round is one primal-dual Newton
step, in coordinates scaled by `sqrt(p)`. In these the curvature of a likelihood lies between zero and one whatever the
shares are, so conjugate gradients find the step fast, and the matrix of the curvature is never written out. The loss
has to bring the sum of the shares to one by itself, as `sum(p) - mean of log-likelihood` does.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from priorveil.arrays import Array

_TOLERANCE = 1e-9  # the gap that ends the search
_ROUNDS = 200
_REACH = 0.99  # how much of the way to the boundary a step may go
_PRODUCTS = 1_000  # products in a run of conjugate gradients, at most
_RESIDUAL = 1e-3  # residual at which such a run ends, relative to the right-hand side
_NODES = np.array([NormalDist().inv_cdf((i + 0.5) / 32) for i in range(32)])  # they stand for a normal law


class Minimum(NamedTuple):
    """A distribution, how many rounds it took, and by how much a smaller loss there may be."""

    shares: Array
    rounds: int
    gap: float

    @property
    def converged(self) -> bool:
        """Whether the gap is as small as was asked for."""
        return self.gap <= _TOLERANCE


def most_likely(counts: Array, Q: Array, start: Array) -> Minimum:
    """The distribution that makes the counts of reports through the channel `Q` most likely.

    All shares of `start` have to be positive. The loss is minus the mean log-likelihood, plus the sum of the shares: at
    its minimum they add up to one, for along `t p` it is `t - log t` and a constant, if `p` adds up to one.

    >>> minimum = most_likely(np.array([30.0, 10.0]), np.eye(2), np.array([0.5, 0.5]))
    >>> minimum.shares.round(6).tolist(), minimum.converged
    ([0.75, 0.25], True)
    """
    n, Q = counts[counts > 0] / (float(counts.sum()) or 1.0), Q[:, counts > 0]

    def loss(p: Array) -> float:
        return float(p.sum() - n @ np.log(p @ Q))

    p, dual, barrier_factor = np.array(start, dtype=np.float64), np.ones(len(start)), 0.2
    for count in range(1, _ROUNDS + 1):
        law, value, shares = p @ Q, loss(p), p / p.sum()
        gradient = 1 - Q @ (n / law)
        # No distribution has a loss below `value + min(gradient) - p . gradient`.
        gap = loss(shares) - value + float(p @ gradient - gradient.min())
        minimum = Minimum(shares, count, gap)
        if minimum.converged or count == _ROUNDS:
            break
        barrier = barrier_factor * float(p @ dual) / len(p)
        root = np.sqrt(p)
        scaled = root[:, None] * Q * (np.sqrt(n) / law)
        step = root * _newton_step(scaled, dual, barrier / root - root * gradient)
        dual_step = (barrier - dual * step) / p - dual
        length, dual_length = _longest(p, step), _longest(dual, dual_step)
        most = value - barrier * float(np.log(p).sum()) + 1e-13 * abs(value)
        following = p + length * step
        with np.errstate(divide="ignore"):
            while length > 1e-9 and loss(following) - barrier * float(np.log(following).sum()) > most:
                length /= 2
                following = p + length * step
        p, dual = following, dual + dual_length * dual_step
        # After full steps the barrier may fall fast; after short ones the shares are better centred first.
        barrier_factor = (
            0.02 if min(length, dual_length) > 0.9 else 0.2 if min(length, dual_length) > 0.3 else 0.5
        )
    return minimum


def _newton_step(scaled: Array, dual: Array, target: Array) -> Array:
    """The solution `x` of `(scaled scaled' + diag(dual)) x = target`, up to a small residual."""
    diagonal = (scaled**2).sum(axis=1) + dual
    enough = _RESIDUAL**2 * float(target @ (target / diagonal))
    return conjugate_gradients(
        lambda x: scaled @ (x @ scaled) + dual * x, target, lambda rest: rest / diagonal, enough
    )[0]


def conjugate_gradients(
    product: Callable[[Array], Array], target: Array, precondition: Callable[[Array], Array], enough: float
) -> tuple[Array, Array]:
    """The solution `x` of `product(x) = target`, from zero on, and the residual `target - product(x)`.

    `precondition` multiplies by an approximate inverse of the matrix. The search ends when the residual `r` is so
    small that `r . precondition(r) <= enough`.
    """
    solution, direction = np.zeros((2, len(target)))
    residual, size = target, 1.0
    for _ in range(_PRODUCTS):
        preconditioned = precondition(residual)
        previous, size = size, float(residual @ preconditioned)
        if size <= enough:
            break
        direction = preconditioned + size / previous * direction
        image = product(direction)
        length = size / float(direction @ image)
        solution, residual = solution + length * direction, residual - length * image
    return solution, residual


def _longest(x: Array, step: Array) -> float:
    """How much of a step keeps positive numbers positive."""
    return float(min(1.0, _REACH / max(1e-300, float((-step / x).max()))))


def expected_gain(shares: Array, std_error: Array) -> float:
    """How many times larger the squared error of an unbiased estimate is than that of the nearest distribution.

    As if the errors of the shares were normal and independent: the nearest distribution is then `max(0, estimate - t
    std_error**2)`, with the `t` at which it adds up to one.

    >>> round(expected_gain(np.full(4, 0.25), np.full(4, 0.01)), 6)
    1.0
    >>> expected_gain(np.full(99, 1 / 99), np.full(99, 0.1)) > 5
    True
    """
    std_error = np.maximum(std_error, 1e-6 * std_error.max())  # weights have to be positive
    variance, count = std_error[:, None] ** 2, len(_NODES)
    noisy = shares[:, None] + std_error[:, None] * _NODES / _NODES.std()
    weights = np.repeat(variance, count)
    nearest = count * nearest_shares(noisy.reshape(-1) / count, weights).reshape(noisy.shape)
    error = float(((nearest - shares[:, None]) ** 2).mean(axis=1).sum())
    return float(variance.sum()) / error


def nearest_shares(estimate: Array, weights: Array) -> Array:
    """The distribution that is nearest to an estimate, squares divided by positive `weights`.

    It is `max(0, estimate - t weights)`: a value is zero from `t = estimate / weights` on.

    >>> nearest_shares(np.array([0.75, 0.5, -0.25]), np.ones(3)).tolist()
    [0.625, 0.375, 0.0]
    """
    falling = np.argsort(-estimate / weights)
    levels = (np.cumsum(estimate[falling]) - 1) / np.cumsum(weights[falling])
    positive = np.flatnonzero(estimate[falling] / weights[falling] > levels)
    return np.asarray(np.maximum(estimate - levels[positive[-1]] * weights, 0.0))
