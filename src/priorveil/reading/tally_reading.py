"""How one tally is read: moments and covariances of statistics, with the weights of people."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import truediv
from typing import Any

import numpy as np

from priorveil.arrays import Array, centre_rows
from priorveil.errors import NOT_SHOWN, InvalidInput, NotIdentifiable, TooLarge
from priorveil.notes import Note
from priorveil.priors import Label, Prior, PriorSet
from priorveil.priors.domain import label_positions
from priorveil.reading.blas_threads import single_thread
from priorveil.reading.moments import Counts, Moments, StatisticRows
from priorveil.reading.reader import Reader
from priorveil.reading.rounding import rounding_variances
from priorveil.reading.shares_search import expected_gain
from priorveil.reading.tally import Tally, WeightedCounts

_MOST_COMPARED = 10_000  # values up to which the errors of unbiased and mle are compared
# What the intervals of each method rest on; "set" is for an answer that leans on one of a set of priors.
ASSUMES = {
    "mmse": Note("assumesMmse"),
    "set": Note("assumesSet"),
    "unbiased": Note("assumesUnbiased"),
    "mle": Note("assumesMle"),
}
# The same if people have weights, where that differs.
WEIGHTED = {"mmse": Note("assumesWeightedMmse"), "mle": Note("assumesWeightedMle")}
QUICK = 512  # values up to which the unbiased answer is computed next to the one that leans on the prior


@dataclass(frozen=True, eq=False)
class Reading:
    """A tally, and how it is read: the reader, the method, the prior, and whether people are a sample.

    `rows` are the statistics of the query, or None for the histogram, and `labels` their names. The tally holds counts,
    never single reports. With `knows_total` the rows are centred under the prior, and the number of people times the
    mean is added back. So a part that is the same for all values has no error, and no digits cancel. It is False only
    for a histogram that does not add up to the reports, and for its sums.
    `determined` is true if the reports are known to determine the statistics without the prior. `is_sum` is that of the
    query: whether the only statistic is that of a `Sum`. `sums_numbers` says whether the statistics are sums of
    numbers, to which rounding to a grid adds; counts are those of points, after rounding. `known` is the set of priors
    that people may follow, if the answer leans on one of them.
    """

    reader: Reader[Any]
    method: str
    tally: Tally
    prior: Prior
    population: bool
    rows: StatisticRows
    labels: tuple[Label, ...]
    knows_total: bool = True
    determined: bool = False
    is_sum: bool = False
    sums_numbers: bool = False
    known: PriorSet | None = None

    @property
    def leans_on_prior(self) -> bool:
        """Whether the answer uses the prior, so that a wrong one makes it wrong."""
        return self.method == "mmse"

    def unbiased(self) -> Reading:
        """This reading by method unbiased, for the population that people were drawn from."""
        adds_up = self.rows is not None or self.reader.adds_up("unbiased", self.prior.probabilities)
        return replace(self, method="unbiased", population=True, known=None, knows_total=adds_up)

    @property
    def people(self) -> float:
        """The number of people, or the sum of their weights."""
        return self.tally.weighted.total if self.tally.weighted else self.tally.reports

    def answer(self) -> Moments:
        """The statistics of the query, with their variances."""
        return self.moments(self.rows, of_numbers=self.sums_numbers)

    def moments(self, rows: StatisticRows, of_numbers: bool = False) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None, with their variances.

        With `of_numbers` the variances are those for the numbers that people have, and include the most that rounding
        to a grid adds. Otherwise they are for the points, after rounding.
        """
        moments = replace(self._noise_moments(rows), bias=self._bias(rows))
        if rows is None or not of_numbers:
            return moments
        return replace(moments, variance=moments.variance + self.rounding(rows))

    def _bias(self, rows: StatisticRows) -> Array | None:
        """How far the truth may be below and above each answer on average, under a prior of the set; None without one.

        People with value `x` are read as `h_x`, the mean of their posterior means, so under the prior `p` the bias of a
        person is `p . (h - a)` for the row `a`, and largest at a corner of the set. `P_x (a_x - h_x)` is the expected
        posterior covariance of the row and the indicator of `x`.
        """
        if self.known is None:
            return None
        P, weighted = self.prior.probabilities, self.tally.weighted
        single = np.eye(len(P))
        both = np.vstack([single if rows is None else rows, single])
        covariance = self.reader.covariance("mmse", self.reader.expected_counts(P, 1), P, both, False)
        least, most = self.known.extremes(-covariance[-len(P) :, : -len(P)] / P[:, None])
        people = float(self.tally.reports)
        if weighted is not None:  # the most that weights can add up to, if some are negative
            people = weighted.total if weighted.least >= 0 else math.sqrt(people * weighted.power)
        return people * np.maximum(np.stack([most, -least]), 0.0)

    def _noise_moments(self, rows: StatisticRows) -> Moments:
        """As `moments`, for the points.

        For people of weight `c_i` it is `sum_i c_i rows[:, x_i]`. What a report adds to an mmse or unbiased answer is
        multiplied by its weight, and what it adds to the variance by the square: so the mean is that of the counts with
        weights, the variance that of the counts with squares. For mle weights multiply the log-likelihood (a
        pseudo-likelihood: it has the right mean even if weights go with values), and intervals are those of the
        unbiased answer.
        """
        weighted = self.tally.weighted
        centred, means = self._centre(rows)
        if weighted is None:
            return self._answer(self.tally.counts, centred).plus(self.tally.reports * means)
        if self.method == "mle" and (weighted.least < 0 or weighted.total <= 0):
            advice = "weights below zero, or all zero, have no likelihood: use 'mmse' or 'unbiased'"
            raise InvalidInput("method", "mle", advice)
        squares, scale = self._squares(weighted)
        answer, squared = self._answer(weighted.weights, centred), self._linear_moments(squares, centred)
        if weighted.least < 0:
            answer = replace(answer, limits=None)
        variance = squared.variance + self.tally.reports * self._shift(weighted, answer, squared) ** 2
        even = weighted.are_equal(self.tally.reports)  # as for a part that some people were drawn for
        assumes = answer.assumes or (None if even else WEIGHTED.get(self.method))
        return replace(answer, variance=scale * variance, assumes=assumes).plus(weighted.total * means)

    @single_thread()
    def covariance(self) -> Array:
        """The covariance of the statistics of the query; for mle, of the linear answer behind its intervals.

        What rounding adds to sums of numbers is on the diagonal, because its correlations are not known.
        """
        covariance = self._noise_covariance()
        if self.rows is None or not self.sums_numbers:
            return covariance
        return covariance + np.diag(self.rounding(self.rows))

    def _noise_covariance(self) -> Array:
        weighted, rows = self.tally.weighted, self._centre(self.rows)[0]
        counts, scale = (self.tally.counts, 1.0) if weighted is None else self._squares(weighted)
        P = self.prior.probabilities
        covariance = self.reader.covariance(self.method, counts, P, rows, self.population)
        if weighted is None:
            return covariance
        shift = self._shift(weighted, *(self._linear_moments(n, rows) for n in (weighted.weights, counts)))
        return scale * (covariance + self.tally.reports * np.outer(shift, shift))

    def _centre(self, rows: StatisticRows) -> tuple[StatisticRows, Array]:
        """The rows less their means under the prior, and the means; as they are if the total is not known."""
        if rows is None or not self.knows_total:
            return rows, np.zeros(1)
        return centre_rows(rows, self.prior.probabilities)

    @single_thread()
    def _answer(self, counts: Counts, rows: StatisticRows) -> Moments:
        return self.reader.answer(self.method, counts, self.prior.probabilities, rows, self.population)

    @single_thread()
    def _linear_moments(self, counts: Counts, rows: StatisticRows) -> Moments:
        P = self.prior.probabilities
        return self.reader.linear_moments(self.method, counts, P, rows, self.population)

    def _squares(self, weighted: WeightedCounts) -> tuple[Array, float]:
        """The counts with squares of weights, divided by the mean square; and the mean square."""
        scale = weighted.power / max(self.tally.reports, 1) or 1.0
        return weighted.squares / scale, scale

    def _shift(self, weighted: WeightedCounts, answer: Moments, squared: Moments) -> Array:
        """How far the shares of the counts with squares are from those that are estimated.

        If people are a sample, the variance is `sum_i c_i**2 (psi_i - m)**2` with `m` the estimated shares; counts with
        squares give it around their own mean.
        """
        if not self.population or self.leans_on_prior or weighted.least < 0 or weighted.total <= 0:
            return np.zeros_like(answer.mean)
        return np.asarray(squared.linear / self.tally.reports - answer.linear / weighted.total)

    def unbiased_difference(self, answer: Moments) -> float | None:
        """The largest difference of the unbiased answer from this mmse one, in standard errors of the unbiased one.

        With a set of priors it is what the largest bias over the set does not explain. None for other methods, where
        reports do not determine the answer, and beyond 512 values.
        """
        if not self.leans_on_prior or not self.tally.reports or len(self.prior) > QUICK:
            return None
        try:
            unbiased = replace(self, method="unbiased", known=None).answer()
        except (NotIdentifiable, TooLarge):
            return None
        has_error, above = unbiased.variance > 0, unbiased.mean - answer.mean
        most_below, most_above = (0.0, 0.0) if answer.bias is None else answer.bias
        differences = np.maximum(above - most_above, -above - most_below)[has_error]
        return float((differences / np.sqrt(unbiased.variance[has_error])).max(initial=0.0))

    def align(self, weights: Array, labels: tuple[Label, ...], of_values: bool = True) -> Array:
        """The weights, a row for each sum, with columns for the counts of this reading's values.

        Their columns are in the order of `labels`: the values, perhaps of another cohort, or the query's statistics.
        """
        mine = self.prior.labels if of_values else self.labels
        if set(mine) != set(labels):
            raise InvalidInput(
                "estimates", NOT_SHOWN, "they have different values: read each estimate separately"
            )
        aligned_weights = (
            weights if mine == labels else np.take(weights, label_positions(labels, mine), axis=1)
        )
        return aligned_weights if of_values or self.rows is None else aligned_weights @ self.rows

    def rounding(self, rows: Array, share: float = 1.0) -> Array:
        """The most that rounding to a grid adds to the variance of the sum of each row over these people.

        `share` is the share of the people whose numbers are not zero. See `rounding_variances`.
        """
        if self.population or not self.tally.reports:
            return np.zeros(len(rows))
        people = self.tally.weighted.power if self.tally.weighted else self.tally.reports
        return people * rounding_variances(self.reader, self.method, self.prior, rows, share)

    def mle_gain(self, variance: Array) -> float | None:
        """How many times smaller the squared error of mle is expected to be than that of unbiased.

        `variance` is that of the statistics. None for statistics that are not whole tables of counts. Several tables
        are compared as if each was read alone.
        """
        P = self.prior.probabilities
        if len(P) > _MOST_COMPARED or self.leans_on_prior or self.tally.weighted or not variance.any():
            return None
        shares = P if self.rows is None else self.rows @ P
        tables = [table for table in _whole_tables(self.rows) if variance[table].any()]
        errors = [np.sqrt(variance[table]) / self.tally.reports for table in tables]
        gains = [expected_gain(shares[table], error) for table, error in zip(tables, errors, strict=True)]
        sums = [float(variance[table].sum()) for table in tables]
        return sum(sums) / sum(map(truediv, sums, gains)) if tables else None


def _whole_tables(rows: Array | None) -> list[Any]:
    """The parts of consecutive rows that count everybody once; none if not all rows are in one.

    >>> [part.tolist() for part in _whole_tables(np.array([[1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 0]]))]
    [[0, 1], [2, 3]]
    >>> _whole_tables(np.array([[1, 0], [1, 1]]))
    []
    """
    if rows is None:
        return [slice(None)]
    if np.ptp(rows.sum(axis=0)) != 0 or not np.isin(rows, (0, 1)).all():
        return []
    sums = np.cumsum(rows, axis=0)
    ends = np.flatnonzero(np.ptp(sums, axis=1) == 0) + 1
    once = np.array_equal(sums[ends - 1, 0], np.arange(1, ends.size + 1))
    return np.split(np.arange(len(rows)), ends[:-1]) if once else []
