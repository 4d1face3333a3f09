"""Readers of numbered reports: tables, grouped tables and local hashing. A tally counts each report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.information import identifiable
from priorveil.mechanisms import Grouped, PooledHash, Table
from priorveil.mechanisms.interface import MOST_ENTRIES, NumberedReports
from priorveil.priors import Prior
from priorveil.queries import Query
from priorveil.reading.linear_answers import LinearAnswer, channel_answer, channel_scores
from priorveil.reading.moments import Counts, Moments, StatisticRows, not_identifiable
from priorveil.reading.prior_check import PriorCheck, cells_check, split_prior
from priorveil.reading.reader import Reader
from priorveil.reading.simplex import Minimum, most_likely

N = TypeVar("N", bound=NumberedReports)

_QUICK_ENTRIES = 1 << 22  # entries of a channel whose error takes less than a second
_QUICK_PRODUCTS = 1 << 28  # multiplications for the error of an unbiased query that take less than a second


class NumberedReader(Reader[N]):
    """Reads the counts of numbered reports through the channel."""

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
        """The scores of all reports, of which these are taken."""
        (_, Q), *_ = self.channel_parts("unbiased")
        return np.asarray(channel_scores(Q, prior, rows)[reports])

    def linear_answers(
        self, method: str, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> Iterator[LinearAnswer]:
        """An answer for each part of the channel."""
        n, others = counts.astype(np.float64), (prior, rows, population)
        return (channel_answer(method, n[part], Q, *others) for part, Q in self.channel_parts(method))

    def channel_parts(self, method: str) -> Iterable[tuple[slice, Array]]:
        """The channel in parts whose reports are read one after the other: which reports, and their columns."""
        return [(slice(None), self.mechanism.matrix)]

    def most_likely(self, counts: Counts, prior: Array) -> Minimum:
        """The distribution under which the counts are most likely."""
        return most_likely(counts.astype(np.float64), self.mechanism.matrix, prior)

    def identifies(self) -> bool:
        """Whether the rows of the channel are independent."""
        return identifiable(self.mechanism.matrix)

    def prior_check(self, counts: Counts, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior."""
        return cells_check(counts.astype(np.float64), self.mechanism.law(split_prior(prior, len(counts))))

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person of the channel, unless the channel is large."""
        entries = len(prior) * self.mechanism.outputs
        if entries > _QUICK_ENTRIES or (query.unbiased and entries * len(prior) > _QUICK_PRODUCTS):
            return None
        return query.error(Channel(self.mechanism.matrix, prior.labels), prior)


class TableReader(NumberedReader[Table]):
    """Reads the reports of a table."""


class GroupedReader(NumberedReader[Grouped]):
    """Reads the reports of values in groups.

    Methods other than mmse need statistics that do not tell the values of a group apart. They read the table of the
    groups.
    """

    @property
    def _groups(self) -> TableReader:
        return TableReader(self.mechanism.table)

    def _group_masses(self, prior: Array) -> Array:
        return np.bincount(self.mechanism.rows, prior).astype(np.float64)

    def _group_rows(self, rows: StatisticRows) -> Array:
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
        return self._groups.score_rows(reports, self._group_masses(prior), self._group_rows(rows))

    def answer(
        self, method: str, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None."""
        if method == "mmse":
            return super().answer(method, counts, prior, rows, population)
        groups = self._group_masses(prior), self._group_rows(rows)
        return self._groups.answer(method, counts, *groups, population)

    def covariance(
        self, method: str, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> Array:
        """The covariance of the statistics that `answer` gives."""
        if method == "mmse":
            return super().covariance(method, counts, prior, rows, population)
        groups = self._group_masses(prior), self._group_rows(rows)
        return self._groups.covariance(method, counts, *groups, population)

    def channel_parts(self, method: str) -> Iterable[tuple[slice, Array]]:
        """The columns one by one, since there are many values and few reports."""
        Q = self.mechanism.table.matrix
        return ((slice(y, y + 1), Q[self.mechanism.rows, y : y + 1]) for y in range(self.mechanism.outputs))

    def identifies(self) -> bool:
        """Only if no two values share a row."""
        return self.mechanism.size == self.mechanism.table.size and self._groups.identifies()

    def prior_check(self, counts: Counts, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior, in the directions that groups can tell apart."""
        return self._groups.prior_check(counts, self._group_masses(prior))


class HashingReader(NumberedReader[PooledHash]):
    """Reads the reports of a pool of hash functions: a few seeds at a time for posteriors."""

    @property
    def _is_large(self) -> bool:
        """Whether there are fewer reports than values, or more entries than are written out."""
        pool = self.mechanism
        return pool.outputs < pool.size or pool.size * pool.outputs > MOST_ENTRIES

    def channel_parts(self, method: str) -> Iterable[tuple[slice, Array]]:
        """A few seeds at a time for posteriors, all at once for methods that invert the channel."""
        if method == "mmse":
            return self.mechanism.channel_parts()
        if self._is_large:
            raise not_identifiable()
        return super().channel_parts(method)

    def identifies(self) -> bool:
        """Whether the rows of the channel are independent; not if there are too many values to invert it."""
        return not self._is_large and super().identifies()
