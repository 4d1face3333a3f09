"""The likelihood of a multinomial logit on reports, given how likely each report is for each value.

With shares `pi_j = softmax_j(z' beta)` (the last value is the baseline) and likelihoods `L[y, j]`, the report `y` has
the probability `sum_j pi_j L[y, j]`. The posterior of a value is `pi_j L[y, j]` divided by that. The slope by the
linear predictors is posterior minus shares; the information is `(diag(pi) - pi pi') - (diag(post) - post post')`, which
need not be positive definite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from priorveil.arrays import Array
from priorveil.statistics.estimating_equation import EstimatingEquation, row_blocks

LEAST = 1e-300  # of a probability: a search may try coefficients under which a report is impossible


def logit_shares(predictors: Array) -> Array:
    """The share of each value, the last one of which has the predictor zero; a column for each report.

    >>> logit_shares(np.log([[1.0, 3.0]])).round(3).tolist()
    [[0.5, 0.75], [0.5, 0.25]]
    """
    return shares_and_normaliser(predictors)[0]


def shares_and_normaliser(predictors: Array) -> tuple[Array, Array]:
    """The shares, and the logarithm of the sum that they were divided by."""
    high = np.maximum(predictors.max(axis=0), 0.0)
    shares = np.empty((len(predictors) + 1, predictors.shape[1]))
    np.exp(predictors - high, out=shares[:-1])
    np.exp(-high, out=shares[-1])
    total = shares.sum(axis=0)
    shares /= total
    return shares, high + np.log(total)


def multinomial_weights(shares: Array) -> Array:
    """`diag(pi) - pi pi'` of every report, without the baseline: shape (outcomes, outcomes, reports)."""
    pi = shares[:-1]
    weights = -pi[:, None] * pi[None]
    outcomes = np.arange(len(pi))
    weights[outcomes, outcomes] += pi
    return weights


def weighted_products(weights: Array, covariates: Array) -> Array:
    """The sum over reports of `weights ⊗ z z'`."""
    q, p = len(weights), len(covariates)
    total = np.empty((q, p, q, p))
    for a in range(q):
        for b in range(a + 1):
            total[a, :, b] = (weights[a, b] * covariates) @ covariates.T
            total[b, :, a] = total[a, :, b].T
    return total.reshape(q * p, q * p)


class _LogitBlock(NamedTuple):
    """Some reports: where they are, their covariates, shares, and the probability and posterior of each report."""

    part: slice
    covariates: Array
    shares: Array
    chance: Array
    posterior: Array


@dataclass(frozen=True, eq=False)
class LogitLikelihood(EstimatingEquation):
    """The log-likelihood of coefficients, and of compliance where that is a parameter.

    `likelihoods` has a row for each value. With `denials`, the probability of each report if a carrier does not comply,
    the last parameter is the share `t` of carriers (of the first of two values) who do.
    """

    likelihoods: Array
    denials: Array | None = None

    @property
    def outcomes(self) -> int:
        """The values without the baseline."""
        return len(self.likelihoods) - 1

    @property
    def size(self) -> int:
        """The coefficients, and compliance."""
        return super().size + (self.denials is not None)

    def at(self, compliance: float) -> LogitLikelihood:
        """The same with a known share of carriers who comply."""
        if self.denials is None:
            return self
        first = self.denials + compliance * (self.likelihoods[0] - self.denials)
        return replace(self, likelihoods=np.stack([first, self.likelihoods[1]]), denials=None)

    def value_and_slope(self, theta: Array) -> tuple[float, Array]:
        """The log-likelihood and its derivative."""
        value, slope, last = 0.0, np.zeros((self.outcomes, len(self.covariates))), 0.0
        for block in self._blocks(theta):
            value += float(np.log(block.chance).sum())
            slope += (block.posterior - block.shares)[:-1] @ block.covariates.T
            if self.denials is not None:
                last += float(self._compliance_slopes(block).sum())
        return value, np.append(slope.ravel(), [last] * (self.denials is not None))

    def information(self, theta: Array) -> Array:
        """The observed information."""
        total = np.zeros((self.size, self.size))
        count = self.outcomes * len(self.covariates)
        for block in self._blocks(theta):
            weights = multinomial_weights(block.shares) - multinomial_weights(block.posterior)
            total[:count, :count] += weighted_products(weights, block.covariates)
            if self.denials is not None:
                slopes = self._compliance_slopes(block)
                total[count, count] += float(slopes @ slopes)
                total[count, :count] -= block.covariates @ (slopes * block.posterior[1])
        total[:count, count:] = total[count:, :count].T
        return total

    def row_slopes(self, theta: Array) -> Array:
        """Posterior minus shares; after them the derivative by compliance."""
        slopes = np.empty((self.outcomes + (self.denials is not None), self.reports))
        for block in self._blocks(theta):
            slopes[: self.outcomes, block.part] = (block.posterior - block.shares)[:-1]
            if self.denials is not None:
                slopes[-1, block.part] = self._compliance_slopes(block)
        return slopes

    def _blocks(self, theta: Array) -> Iterator[_LogitBlock]:
        coefficients = self.coefficients(theta)
        for part in row_blocks(self.reports):
            Z = self.covariates[:, part]
            shares = logit_shares(coefficients @ Z)
            posterior = shares * self.likelihoods[:, part]
            if self.denials is not None:
                denied = (1 - theta[-1]) * self.denials[part]
                posterior[0] = theta[-1] * posterior[0] + denied * shares[0]
            chance = np.maximum(posterior.sum(axis=0), LEAST)
            posterior /= chance
            yield _LogitBlock(part, Z, shares, chance, posterior)

    def _compliance_slopes(self, block: _LogitBlock) -> Array:
        assert self.denials is not None
        change = self.likelihoods[0, block.part] - self.denials[block.part]
        return np.asarray(block.shares[0] * change / block.chance)


def comply(table: Array, compliance: float) -> tuple[Array, Array]:
    """A channel for two values (a row for each report) if this share of carriers comply, and its derivative by it.

    The others send the last report.

    >>> comply(np.array([[1.0, 0.25], [0.0, 0.75]]), 0.5)[0].tolist()
    [[0.5, 0.25], [0.5, 0.75]]
    """
    denial = np.zeros(len(table))
    denial[-1] = 1.0
    change = table[:, 0] - denial
    return np.stack([denial + compliance * change, table[:, 1]], axis=1), change
