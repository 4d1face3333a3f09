"""What a regression maximises.

Parameters are one vector `theta`: for each outcome a coefficient of each covariate, one outcome after another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorveil.arrays import Array

_BLOCK = 8_192  # reports at a time: their arrays stay in the processor's cache


def row_blocks(n: int) -> Iterator[slice]:
    """Consecutive blocks of `n` reports."""
    return (slice(first, first + _BLOCK) for first in range(0, n, _BLOCK))


@dataclass(frozen=True, eq=False)
class EstimatingEquation(ABC):
    """A function of the coefficients to maximise: a likelihood, or one with the same mean slope.

    `covariates` has a row for each covariate and a column for each report, as all arrays of reports here.
    """

    covariates: Array

    @property
    def reports(self) -> int:
        """How many reports there are."""
        return int(self.covariates.shape[1])

    @property
    @abstractmethod
    def outcomes(self) -> int:
        """How many outcomes have coefficients."""

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return self.outcomes * len(self.covariates)

    def coefficients(self, theta: Array) -> Array:
        """A row for each outcome, a column for each covariate."""
        count = self.outcomes * len(self.covariates)
        return theta[:count].reshape(self.outcomes, len(self.covariates))

    @abstractmethod
    def value_and_slope(self, theta: Array) -> tuple[float, Array]:
        """What is maximised, and its derivative."""

    @abstractmethod
    def information(self, theta: Array) -> Array:
        """Minus the second derivative."""

    @abstractmethod
    def row_slopes(self, theta: Array) -> Array:
        """The derivative of each report's part by each of its linear predictors."""

    def outer_products(self, theta: Array, clusters: Any = None) -> Array:
        """The sum over reports, or over clusters (a code for each report), of the outer products of their slopes."""
        slopes, total = self.row_slopes(theta), np.zeros((self.size, self.size))
        if clusters is None:
            for part in row_blocks(self.reports):
                each = self._parameter_slopes(slopes[:, part], part)
                total += each @ each.T
            return total
        sums = np.zeros((self.size, int(clusters.max()) + 1))
        for part in row_blocks(self.reports):
            for row, each in zip(sums, self._parameter_slopes(slopes[:, part], part), strict=True):
                row += np.bincount(clusters[part], each, len(row))
        return np.asarray(sums @ sums.T)

    def _parameter_slopes(self, slopes: Array, part: slice) -> Array:
        """The derivative of each report's part by each parameter; after those of coefficients come the others."""
        Z, predictors = self.covariates[:, part], slopes[: self.outcomes]
        products = (predictors[:, None] * Z).reshape(-1, Z.shape[1])
        return np.concatenate([products, slopes[self.outcomes :]])
