"""Readers of numbered reports: tables, grouped tables and local hashing. A tally counts each report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.information import identifiable
from priorveil.mechanisms import Grouped, NumberedReports, PooledHash, Table
from priorveil.mechanisms.interface import MOST_MATRIX_ENTRIES
from priorveil.priors import Prior
from priorveil.queries import Query
from priorveil.reading.linear_answers import (
    CovarianceForm,
    LinearAnswer,
    channel_inversion,
    channel_posteriors,
    channel_scores,
    channel_squares,
)
from priorveil.reading.moments import Counts, StatisticRows, not_identifiable
from priorveil.reading.prior_check import PriorCheck, ScoreTest, cells_test, split_prior
from priorveil.reading.reader import Reader
from priorveil.reading.shares_search import Minimum, most_likely

N = TypeVar("N", bound=NumberedReports)

_QUICK_ENTRIES = 1 << 22  # entries of a channel whose error takes less than a second
_QUICK_PRODUCTS = 1 << 28  # multiplications for the error of an unbiased query that take less than a second


class NumberedReader(Reader[N]):
    """Reads the counts of numbered reports through the channel."""

    reads: ClassVar[type] = NumberedReports

    def count_valid(self, reports: npt.NDArray[Any], weights: Array | None = None) -> Counts:
        """How often each report came, or the sums of the weights."""
        return np.bincount(reports, weights, self.mechanism.outputs)

    def people(self, counts: Counts) -> float:
        """The sum of the counts."""
        return counts.sum()  # type: ignore[no-any-return]

    def expected_counts(self, prior: Array, people: int) -> Array:
        """How often each report comes on average."""
        return people * self.mechanism.law(prior)

    def likelihood_rows(self, reports: npt.NDArray[Any]) -> Array:
        """The columns of the channel."""
        return self.mechanism.columns(reports)

    def score_rows(self, reports: npt.NDArray[Any], prior: Array, rows: StatisticRows) -> Array:
        """The scores of these reports, taken from those of all."""
        return np.asarray(channel_scores(self.invertible_channel(), prior, rows)[reports])

    def square_rows(self, prior: Array, rows: StatisticRows) -> Array:
        """The squares of the scores of all reports, through the channel."""
        return channel_squares(self.invertible_channel(), prior, rows)

    def posterior_answers(self, counts: Counts, prior: Array) -> Iterator[LinearAnswer]:
        """An answer for each part of the channel."""
        n = counts.astype(np.float64)
        return (channel_posteriors(n[part], Q, prior) for part, Q in self.channel_parts())

    def channel_parts(self) -> Iterable[tuple[slice, Array]]:
        """The channel in parts whose posteriors are added up in turn: which reports, and their columns."""
        return [(slice(None), self.mechanism.matrix)]

    def unbiased_answer(
        self, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> LinearAnswer:
        """The answer that inverts the channel."""
        n = counts.astype(np.float64)
        return channel_inversion(n, self.invertible_channel(), prior, rows, population)

    def invertible_channel(self) -> Array:
        """The whole channel; refused if there are too many values to invert it."""
        return self.mechanism.matrix

    def mle_distribution(self, counts: Counts, prior: Array) -> Minimum:
        """The distribution under which the counts are most likely."""
        return most_likely(counts.astype(np.float64), self.mechanism.matrix, prior)

    def identifies(self) -> bool:
        """Whether the rows of the channel are independent."""
        return identifiable(self.mechanism.matrix)

    def prior_test(self, prior: Array, reports: float) -> ScoreTest | None:
        """The test of the counts of all reports."""
        parts = split_prior(prior, self.mechanism.outputs)
        return cells_test(self.mechanism.law(parts), parts, reports)

    def tested_sums(self, counts: Counts, prior: Array) -> Array:
        """The counts."""
        return np.asarray(counts, dtype=np.float64)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person of the channel, unless the channel is large."""
        entries = len(prior) * self.mechanism.outputs
        if entries > _QUICK_ENTRIES or (query.unbiased and entries * len(prior) > _QUICK_PRODUCTS):
            return None
        return query.error(Channel(self.mechanism.matrix, prior.labels), prior)


class GroupedReader(NumberedReader[Grouped]):
    """Reads the reports of values in groups.

    Methods other than mmse need statistics that do not tell the values of a group apart. They read the table of the
    groups, and split the count of a group among its values in proportion to the prior.
    """

    reads = Grouped

    @cached_property
    def _groups(self) -> NumberedReader[Table]:
        return NumberedReader(self.mechanism.table)

    def _group_masses(self, prior: Array) -> Array:
        return np.bincount(self.mechanism.rows, prior).astype(np.float64)

    def _split(self, groups: Array, prior: Array) -> Array:
        """A number for each value, from numbers for the groups."""
        return np.asarray((groups / self._group_masses(prior))[self.mechanism.rows] * prior)

    def rows_by_group(self, rows: StatisticRows) -> Array:
        """The statistics with a column for each group; those that tell the values of a group apart are refused."""
        groups = self.mechanism.rows
        if rows is None:
            shared = np.flatnonzero(np.bincount(groups)[groups] > 1)
            if shared.size:
                raise not_identifiable(shared.tolist())
            rows = np.eye(len(groups))
        _, first = np.unique(groups, return_index=True)
        differs = (rows != rows[:, first][:, groups]).any(axis=1)
        if differs.any():
            raise not_identifiable(np.flatnonzero(differs).tolist())
        return rows[:, first]

    def score_rows(self, reports: npt.NDArray[Any], prior: Array, rows: StatisticRows) -> Array:
        """The scores that the groups give."""
        return self._groups.score_rows(reports, self._group_masses(prior), self.rows_by_group(rows))

    def square_rows(self, prior: Array, rows: StatisticRows) -> Array:
        """Those of the group of each value."""
        squares = self._groups.square_rows(self._group_masses(prior), self.rows_by_group(rows))
        return squares[:, self.mechanism.rows]

    def unbiased_answer(
        self, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> LinearAnswer:
        """The answer that the groups give."""
        groups = self._group_masses(prior), self.rows_by_group(rows)
        answer = self._groups.unbiased_answer(counts, *groups, population)
        forms = tuple(GroupForm(self, form) for form in answer.forms)
        return answer._replace(histogram=self._split(answer.histogram, prior), forms=forms)

    def mle_distribution(self, counts: Counts, prior: Array) -> Minimum:
        """The distribution under which the counts are most likely."""
        minimum = self._groups.mle_distribution(counts, self._group_masses(prior))
        return minimum._replace(shares=self._split(minimum.shares, prior))

    def channel_parts(self) -> Iterable[tuple[slice, Array]]:
        """The columns one by one, since there are many values and few reports."""
        Q = self.mechanism.table.matrix
        return ((slice(y, y + 1), Q[self.mechanism.rows, y : y + 1]) for y in range(self.mechanism.outputs))

    def identifies(self) -> bool:
        """Whether no two values share a row."""
        return self.mechanism.size == self.mechanism.table.size and self._groups.identifies()

    def prior_check(self, counts: Counts, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior, in the directions that groups can tell apart.

        The change that it would notice is a change of groups, not of values, so it is left out.
        """
        check = self._groups.prior_check(counts, self._group_masses(prior))
        return check and check._replace(noticeable_change=None)


class GroupForm(NamedTuple):
    """The form of the groups, for statistics that do not tell the values of a group apart."""

    reader: GroupedReader
    form: CovarianceForm

    def variances(self, rows: StatisticRows) -> Array:
        """The variance of every row."""
        return self.form.variances(self.reader.rows_by_group(rows))

    def covariance(self, rows: StatisticRows) -> Array:
        """The covariances of all pairs of rows."""
        return self.form.covariance(self.reader.rows_by_group(rows))


class HashingReader(NumberedReader[PooledHash]):
    """Reads the reports of a pool of hash functions: a few seeds at a time for posteriors."""

    reads = PooledHash

    @property
    def _is_large(self) -> bool:
        """Whether there are fewer reports than values, or more entries than are written out."""
        pool = self.mechanism
        return pool.outputs < pool.size or pool.size * pool.outputs > MOST_MATRIX_ENTRIES

    def channel_parts(self) -> Iterable[tuple[slice, Array]]:
        """A few seeds at a time."""
        return self.mechanism.channel_parts()

    def invertible_channel(self) -> Array:
        """The whole channel; refused if there are too many values to invert it."""
        if self._is_large:
            raise not_identifiable()
        return super().invertible_channel()

    def identifies(self) -> bool:
        """Whether the rows of the channel are independent; not if there are too many values to invert it."""
        return not self._is_large and super().identifies()
