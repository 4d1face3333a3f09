"""The likelihood of reports together with a normal outcome that depends on the value behind each report.

With shares `pi_x = Pr(x | w)` (a logit on `w`, the last value is the baseline) and likelihoods `L[y, x]`, a row with
the report `y` and the outcome `v` has the probability `sum_x pi_x L[y, x] f(v | x, z)`, where `f` is normal with mean
`z' b + e_x` (`e` is zero for the baseline) and standard deviation `s`.

Slopes are averages over the posterior of the value of what they would be if it was known. The observed information is
the average of what it would be, less the covariance of these slopes (Louis 1982).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from priorveil.arrays import Array
from priorveil.statistics.estimating_equation import EstimatingEquation, row_blocks
from priorveil.statistics.logit import LEAST, logit_shares, multinomial_weights, weighted_products


class _JointBlock(NamedTuple):
    """Some rows, given each value: posterior, residual and design; log-likelihoods and shares of the rows."""

    part: slice
    logliks: Array
    posterior: Array
    residual: Array
    design: Array
    shares: Array
    compliance_slopes: Array | None


@dataclass(frozen=True, eq=False)
class JointLikelihood(EstimatingEquation):
    """The log-likelihood of reports and outcomes.

    Arrays have a column for each row of data. Parameters, one after another: the coefficients `b`, the effects `e`, the
    logarithm of `s`, the coefficients of the shares for each value, and with `denials` (the probability of each report
    if a carrier does not comply) the log-odds of compliance.
    """

    share_covariates: Array
    likelihoods: Array
    outcome: Array
    denials: Array | None = None

    @property
    def outcomes(self) -> int:
        """The outcome is one number."""
        return 1

    @property
    def values(self) -> int:
        """How many values there are."""
        return len(self.likelihoods)

    @property
    def effects(self) -> slice:
        """The places of the effects; those of the coefficients come before them, the logarithm of `s` after them."""
        return slice(len(self.covariates), len(self.covariates) + self.values - 1)

    @property
    def share_coefficients(self) -> slice:
        """The places of the coefficients of the shares."""
        first = self.effects.stop + 1
        return slice(first, first + (self.values - 1) * len(self.share_covariates))

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return int(self.share_coefficients.stop) + (self.denials is not None)

    def value_and_slope(self, theta: Array) -> tuple[float, Array]:
        """The log-likelihood and its derivative."""
        value, slope = 0.0, np.zeros(self.size)
        for block in self._blocks(theta):
            value += float(block.logliks.sum())
            slope += np.einsum("kxn,xn->k", self._slopes(block, theta), block.posterior)
        return value, slope

    def row_slopes(self, theta: Array) -> Array:
        """The derivative of each row's log-likelihood by each parameter."""
        found = np.empty((self.size, self.reports))
        for block in self._blocks(theta):
            found[:, block.part] = np.einsum("kxn,xn->kn", self._slopes(block, theta), block.posterior)
        return found

    def information(self, theta: Array) -> Array:
        """The observed information."""
        total = np.zeros((self.size, self.size))
        for block in self._blocks(theta):
            self._add_known_information(block, theta, total)
            slopes = self._slopes(block, theta)
            means = np.einsum("kxn,xn->kn", slopes, block.posterior)
            rooted = (slopes * np.sqrt(block.posterior)).reshape(self.size, -1)
            total += means @ means.T - rooted @ rooted.T
        return total

    def _blocks(self, theta: Array) -> Iterator[_JointBlock]:
        b, e = theta[: len(self.covariates)], np.append(theta[self.effects], 0.0)
        log_s = theta[self.effects.stop]
        gamma = theta[self.share_coefficients].reshape(self.values - 1, -1)
        for part in row_blocks(self.reports):
            Z, likelihoods, ratio = self.covariates[:, part], self.likelihoods[:, part], None
            if self.denials is not None:
                t = 1 / (1 + np.exp(-theta[-1]))
                change = likelihoods[0] - self.denials[part]
                first = np.maximum(self.denials[part] + t * change, LEAST)
                ratio = t * (1 - t) * change / first
                likelihoods = np.concatenate([first[None], likelihoods[1:]])
            shares = logit_shares(gamma @ self.share_covariates[:, part])
            residual = (self.outcome[part] - b @ Z - e[:, None]) * np.exp(-log_s)
            joint = np.log(np.maximum(shares * likelihoods, LEAST)) - residual**2 / 2
            highest = joint.max(axis=0)
            posterior = np.exp(joint - highest)
            sums = posterior.sum(axis=0)
            logliks = highest + np.log(sums) - log_s - np.log(2 * np.pi) / 2
            yield _JointBlock(part, logliks, posterior / sums, residual, self._design(Z), shares, ratio)

    def _design(self, Z: Array) -> Array:
        """The derivative of the mean by coefficients and effects, given each value: (parameters, values, rows)."""
        (p, n), d = Z.shape, self.values
        design = np.zeros((p + d - 1, d, n))
        design[:p] = Z[:, None]
        design[np.arange(p, p + d - 1), np.arange(d - 1)] = 1.0
        return design

    def _slopes(self, block: _JointBlock, theta: Array) -> Array:
        """The derivative of the log-likelihood of each row if its value was known: (parameters, values, rows)."""
        mean, (d, n) = self.effects.stop, block.residual.shape
        slopes = np.zeros((self.size, d, n))
        slopes[:mean] = block.design * (block.residual * np.exp(-theta[mean]))
        slopes[mean] = block.residual**2 - 1
        by_predictor = np.eye(d)[:-1, :, None] - block.shares[:-1, None]
        W = self.share_covariates[:, block.part]
        slopes[self.share_coefficients] = (by_predictor[:, None] * W[None, :, None]).reshape(-1, d, n)
        if block.compliance_slopes is not None:
            slopes[-1, 0] = block.compliance_slopes
        return slopes

    def _add_known_information(self, block: _JointBlock, theta: Array, total: Array) -> None:
        """Add what the information would be if the values were known, on average over their posterior."""
        mean, scale = self.effects.stop, np.exp(-theta[self.effects.stop])
        design = block.design.reshape(mean, -1)
        weights, residual = block.posterior.ravel(), block.residual.ravel()
        total[:mean, :mean] += scale**2 * (design * weights) @ design.T
        total[:mean, mean] += 2 * scale * design @ (weights * residual)
        total[mean, :mean] = total[:mean, mean]
        total[mean, mean] += 2 * weights @ residual**2
        W, at = self.share_covariates[:, block.part], self.share_coefficients
        total[at, at] += weighted_products(multinomial_weights(block.shares), W)
        if block.compliance_slopes is not None:
            ratio, u = block.compliance_slopes, theta[-1]
            curvature = ratio**2 + ratio * np.tanh(
                u / 2
            )  # as the derivative of t (1 - t) is t (1 - t) (1 - 2 t)
            total[-1, -1] += block.posterior[0] @ curvature
