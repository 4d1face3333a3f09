"""Regression on scores: numbers for each report whose mean, given the value, is what the value counts for.

With `E[S | x] = e_x`, the function `sum_i S_i . eta_i - logsumexp(eta_i)` is concave whatever `S` is, and its slope has
the mean of the logit's slope on the values themselves. Its maximum is consistent, with sandwich errors. For a linear
model of one statistic it is least squares on the scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorveil.arrays import Array
from priorveil.statistics.estimating_equation import EstimatingEquation, row_blocks
from priorveil.statistics.logit import (
    logit_shares,
    multinomial_weights,
    shares_and_normaliser,
    weighted_products,
)


@dataclass(frozen=True, eq=False)
class ScoreEquation(EstimatingEquation):
    """A regression on `scores`, which have a row for each outcome."""

    scores: Array

    @property
    def outcomes(self) -> int:
        """The rows of the scores."""
        return len(self.scores)


@dataclass(frozen=True, eq=False)
class LogitScores(ScoreEquation):
    """A multinomial logit by corrected scores; the baseline has no scores.

    A `ridge` makes the maximum finite: a search may start there.
    """

    ridge: float = 0.0

    def value_and_slope(self, theta: Array) -> tuple[float, Array]:
        """The concave function and its derivative."""
        coefficients, value = self.coefficients(theta), 0.0
        slope = np.zeros_like(coefficients)
        for part in row_blocks(self.reports):
            Z, scores = self.covariates[:, part], self.scores[:, part]
            predictors = coefficients @ Z
            shares, normaliser = shares_and_normaliser(predictors)
            value += float((scores * predictors).sum() - normaliser.sum())
            slope += (scores - shares[:-1]) @ Z.T
        penalty = self.ridge * theta
        return value - float(penalty @ theta) / 2, slope.ravel() - penalty

    def information(self, theta: Array) -> Array:
        """Minus the second derivative, which does not depend on the scores."""
        total = self.ridge * np.eye(self.size)
        for part in row_blocks(self.reports):
            Z = self.covariates[:, part]
            shares = logit_shares(self.coefficients(theta) @ Z)
            total += weighted_products(multinomial_weights(shares), Z)
        return total

    def row_slopes(self, theta: Array) -> Array:
        """Scores minus shares."""
        return np.asarray(self.scores - logit_shares(self.coefficients(theta) @ self.covariates)[:-1])


@dataclass(frozen=True, eq=False)
class LinearScores(ScoreEquation):
    """Least squares on the scores of one statistic."""

    def value_and_slope(self, theta: Array) -> tuple[float, Array]:
        """Minus half the sum of squares, and its derivative."""
        residuals = self.row_slopes(theta)
        return -float((residuals**2).sum()) / 2, (residuals @ self.covariates.T).ravel()

    def information(self, theta: Array) -> Array:
        """The products of the covariates."""
        return np.asarray(self.covariates @ self.covariates.T)

    def row_slopes(self, theta: Array) -> Array:
        """The residuals."""
        return np.asarray(self.scores - self.coefficients(theta) @ self.covariates)
