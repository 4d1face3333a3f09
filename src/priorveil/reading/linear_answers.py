"""Answers that are linear in the counts of reports, with covariances: sums of posteriors, and inverted channels."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.information import rounding_noise
from priorveil.notes import Note
from priorveil.reading.moments import Moments, StatisticRows, apply_rows, not_identifiable

ComplexArray = npt.NDArray[Any]  # real or complex

_ESTIMABLE = 1e-6  # the part of a statistic that may lie in other directions, by rounding


class CovarianceForm(Protocol):
    """The covariance of the counts of the values, as far as statistics need it."""

    def variances(self, rows: StatisticRows) -> Array:
        """The variance of every row of statistics; None stands for the identity."""

    def covariance(self, rows: StatisticRows) -> Array:
        """The covariances of all pairs of rows."""


class QuadraticForm(NamedTuple):
    """The matrix `C = diag(diagonal) + sum_k weights[k] left[k] right[k]'`, or the symmetric real part of it.

    It is the covariance of the counts of the values, and is never written out. Rows of statistics are multiplied by
    `through` first, if that is given.
    """

    diagonal: Array
    left: ComplexArray
    right: ComplexArray
    weights: ComplexArray
    through: Array | None = None

    def variances(self, rows: StatisticRows) -> Array:
        """`a C a'` for every row `a`; None stands for the identity."""
        if rows is None and self.through is None:
            return np.asarray(self.diagonal + (self.weights @ (self.left * self.right)).real)
        a = self._prepare(rows)
        left = a @ self.left.T
        right = left if self.right is self.left else a @ self.right.T
        return np.asarray(a**2 @ self.diagonal + ((left * right) @ self.weights).real)

    def covariance(self, rows: StatisticRows) -> Array:
        """`rows C rows'`."""
        a = self._prepare(rows)
        cross = ((a @ self.left.T * self.weights) @ (a @ self.right.T).T).real
        return np.asarray((a * self.diagonal) @ a.T + (cross + cross.T) / 2)

    def _prepare(self, rows: StatisticRows) -> Array:
        a = np.eye(len(self.diagonal)) if rows is None else rows
        return a if self.through is None else a @ self.through


def centring_form(shares: Array, population: bool) -> QuadraticForm:
    """The form that turns a mean of squares over people with these shares into a covariance, when added to it.

    It is `-diag(shares)` for the people themselves, and `-shares shares'` for a population.
    """
    each = shares[None]
    return QuadraticForm(-shares * (not population), each, each, np.array([-1.0 * population]))


class LinearAnswer(NamedTuple):
    """A histogram that is linear in the counts of reports, and its covariance: `people` times the sum of some forms."""

    histogram: Array
    people: float
    forms: tuple[CovarianceForm, ...]
    assumes: Note | None = None

    def moments(self, rows: StatisticRows) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None, with their variances."""
        variance = self.people * np.sum([form.variances(rows) for form in self.forms], axis=0)
        return Moments(apply_rows(rows, self.histogram), np.maximum(variance, 0.0), assumes=self.assumes)

    def covariance(self, rows: StatisticRows) -> Array:
        """The covariance of the statistics."""
        return np.asarray(self.people * np.sum([form.covariance(rows) for form in self.forms], axis=0))


def channel_posteriors(counts: Array, Q: Array, prior: Array) -> LinearAnswer:
    """The posteriors of reports that came through the channel `Q`, added up."""
    law = prior @ Q
    posteriors = (prior[:, None] * Q / np.where(law > 0, law, 1.0)).T
    histogram = counts @ posteriors
    return LinearAnswer(histogram, 1.0, (QuadraticForm(histogram, posteriors, posteriors, -counts),))


def channel_inversion(
    counts: Array, Q: Array, prior: Array, rows: StatisticRows, population: bool
) -> LinearAnswer:
    """The unbiased answer to the counts of reports that came through the channel `Q`.

    It is the best linear one at the prior: the sum of `J**-1 r_y` over the reports, `r_y` their lifts. Its variance is
    the noise of the reports given the people; with `population`, the people are a sample, and the variance of sampling
    is added. A rare report may carry much information, and be missing by chance. So for the variance, counts near zero
    are raised towards what the prior expects (`shrink`), and none is lowered. A wrong prior can make intervals longer,
    but not shorter.
    """
    scores = unbiased_scores(Q, prior, rows)
    raised = np.maximum(counts, shrink(counts, float(counts.sum()) * (prior @ Q)))
    histogram = raised @ scores
    people = float(histogram.sum()) or 1.0  # everybody is counted without error: not the sum of the counts
    noise = QuadraticForm(np.zeros_like(prior), scores, scores, raised / people)
    return LinearAnswer(counts @ scores, people, (noise, centring_form(histogram / people, population)))


def shrink(counts: Array, expected: Array) -> Array:
    """Counts shrunk towards the expected ones, as if one report of each cell had been seen before.

    No count changes by one or more, so that an expectation which is far too small does not make a variance small.

    >>> shrink(np.array([0.0, 1.0, 1000.0]), np.array([0.3, 0.3, 0.3])).round(2).tolist()
    [0.23, 0.65, 999.0]
    """
    return np.asarray(counts + (expected - counts) / (1 + np.maximum(counts, expected)))


def unbiased_scores(Q: Array, prior: Array, rows: StatisticRows = None) -> Array:
    """What each report adds to the best unbiased histogram at the prior, `J**-1 r` (K, d), `r` its lifts.

    `J` is inverted on the directions in which it is larger than zero. That is enough for `rows` without a part in the
    other directions; any other row is refused.
    """
    law, root = prior @ Q, np.sqrt(prior)[:, None]
    scale = np.sqrt(np.where(law > 0, law, 1.0))
    vectors, size, reports = np.linalg.svd(root * Q / scale, full_matrices=False)
    identified = size > rounding_noise(Q.shape)
    directions = vectors[:, identified]
    if identified.sum() < len(prior):
        scaled = (np.eye(len(prior)) if rows is None else rows) * root.T
        others = np.linalg.norm(scaled - scaled @ directions @ directions.T, axis=1)
        undetermined = others > _ESTIMABLE * np.linalg.norm(scaled, axis=1)
        if undetermined.any():
            raise not_identifiable(np.flatnonzero(undetermined).tolist())
    return np.asarray((root * directions / size[identified] @ (reports[identified] / scale)).T)


def channel_scores(Q: Array, prior: Array, rows: StatisticRows) -> Array:
    """What each report adds to the unbiased answer for `rows`; a row for each report.

    >>> Q = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> (Q @ channel_scores(Q, np.array([0.5, 0.5]), np.array([[1.0, 3.0]]))).round(12).tolist()
    [[1.0], [3.0]]
    """
    histograms = unbiased_scores(Q, prior, rows)
    return histograms if rows is None else np.asarray(histograms @ rows.T)


def channel_squares(Q: Array, prior: Array, rows: StatisticRows) -> Array:
    """The mean square of the scores of a report for people with each value; a row for each statistic.

    >>> Q = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> channel_squares(Q, np.array([0.5, 0.5]), None).round(4).tolist()
    [[1.75, 0.75], [0.75, 1.75]]
    """
    return np.asarray((Q @ channel_scores(Q, prior, rows) ** 2).T)
