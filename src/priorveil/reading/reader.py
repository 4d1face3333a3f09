"""The reader: what a curator does with the reports of a mechanism, whatever the mechanism is.

There is one reader for each family of mechanisms, in a module of its own; `families.reader_of` finds it.

* **mmse** adds up posteriors. It is best when the prior is right, and leans towards it when not.
* **unbiased** inverts the channel: it is right on average, whatever the truth is.
* **mle** finds the distribution under which the reports are most likely. Its intervals rest on the balanced answer: an
  unbiased one whose histogram adds up to the reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.errors import Hint, TooLarge
from priorveil.mechanisms import Mechanism
from priorveil.mechanisms.interface import MOST_MATRIX_ENTRIES
from priorveil.notes import Note
from priorveil.priors import Prior
from priorveil.queries import Query
from priorveil.reading.linear_answers import LinearAnswer
from priorveil.reading.moments import (
    Counts,
    Moments,
    StatisticRows,
    constrained_moments,
    possible_limits,
    sum_moments,
)
from priorveil.reading.prior_check import PriorCheck, ScoreTest
from priorveil.reading.shares_search import Minimum

M = TypeVar("M", bound=Mechanism)

_BLOCK_ENTRIES = 1 << 20  # numbers in a block of rows, one for each report: 8 MB


@dataclass(frozen=True, eq=False)
class Reader(ABC, Generic[M]):
    """Counts the reports of a mechanism, and reads the counts.

    A subclass with `reads`, a class of mechanisms, is its reader as soon as it is defined.
    """

    mechanism: M

    by_mechanism: ClassVar[dict[type, type[Reader[Any]]]] = {}
    reads: ClassVar[type]

    mle_assumes: ClassVar[Note | None] = None  # what mle rests on, where that differs from other readers
    counts_slowly: ClassVar[bool] = False  # whether counting a report takes a step for every value

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "reads" in vars(cls):
            Reader.by_mechanism[cls.reads] = cls

    # -- counting ------------------------------------------------------------------------------------------

    def count(self, reports: npt.ArrayLike, weights: Array | None = None) -> Counts:
        """The reports added up, in integers: the counts of parts add up to the counts of the whole.

        With `weights`, one for each report, the same in floats, every report counted as often as its weight says. A
        report that the mechanism cannot have made is refused.
        """
        return self.count_valid(self.mechanism.check_reports(reports), weights)

    @abstractmethod
    def count_valid(self, reports: npt.NDArray[Any], weights: Array | None = None) -> Counts:
        """As `count`, for an array of reports that `mechanism.accepts` has accepted."""

    @abstractmethod
    def people(self, counts: Counts) -> float:
        """How many reports were counted, or the sum of their weights."""

    @abstractmethod
    def expected_counts(self, prior: Array, people: int) -> Array:
        """The average counts of this many people who follow the prior, as far as `answer` uses them."""

    @cached_property
    def counts_shape(self) -> tuple[int, ...]:
        """The shape of the counts."""
        return self.count(self.mechanism.new_reports()).shape

    # -- single reports ------------------------------------------------------------------------------------

    def likelihood(self, reports: npt.ArrayLike) -> Array:
        """`Pr(report | value)` for each report and each value, up to a factor for each report."""
        valid = self.mechanism.check_reports(reports)
        hint = Hint("plan.likelihood_blocks(reports)", purpose="to go through it in parts")
        _require_few("the likelihood", len(valid), self.mechanism.size, hint)
        return self.likelihood_rows(valid)

    def likelihood_blocks(self, reports: npt.ArrayLike) -> Iterator[Array]:
        """The rows of `likelihood`, a block of consecutive reports at a time."""
        valid = self.mechanism.check_reports(reports)
        step = max(1, _BLOCK_ENTRIES // self.mechanism.size)
        return (self.likelihood_rows(valid[first : first + step]) for first in range(0, len(valid), step))

    def scores(self, reports: npt.ArrayLike, prior: Array, rows: StatisticRows) -> Array:
        """What each report adds to the unbiased answer for `rows`: on average `rows[:, x]` for people with value `x`.

        The prior decides which of the unbiased answers it is, as in `answer`.
        """
        valid = self.mechanism.check_reports(reports)
        hint = Hint("plan.scores(reports[start:stop])", purpose="to go through them in parts")
        _require_few("the scores", len(valid), self.mechanism.size if rows is None else len(rows), hint)
        return self.score_rows(valid, prior, rows)

    def score_squares(self, prior: Array, rows: StatisticRows) -> Array:
        """The mean square of what a report adds to each statistic, by value: `E[s_k**2 | x]`, a row for each statistic.

        The scores `s` are those of `scores`. With them, `p . squares - (rows @ p)**2` is the variance of a report's
        scores if people follow the distribution `p`, whatever that is.
        """
        size = self.mechanism.size
        if size * (size if rows is None else len(rows)) > MOST_MATRIX_ENTRIES:
            raise TooLarge(f"the variances of the statistics by value have too many entries: {size:,} values")
        return self.square_rows(prior, rows)

    @abstractmethod
    def likelihood_rows(self, reports: npt.NDArray[Any]) -> Array:
        """As `likelihood`, for a few reports that `mechanism.accepts` has accepted."""

    @abstractmethod
    def score_rows(self, reports: npt.NDArray[Any], prior: Array, rows: StatisticRows) -> Array:
        """As `scores`, for a few reports that `mechanism.accepts` has accepted."""

    @abstractmethod
    def square_rows(self, prior: Array, rows: StatisticRows) -> Array:
        """As `score_squares`, for few enough values and statistics."""

    # -- answers -------------------------------------------------------------------------------------------

    def answer(
        self, method: str, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None, by one of the three methods.

        With `population` people are a sample, and the variance is that for their population. For counts with weights
        see `Reading.moments`.
        """
        linear = self.linear_moments(method, counts, prior, rows, population)
        if method == "unbiased":
            return linear
        linear = replace(linear, limits=possible_limits(rows, self.people(counts), len(linear.mean)))
        if method == "mmse":
            return linear
        distribution = _kept_distribution(
            self, counts.dtype.str, counts.shape, counts.tobytes(), prior.tobytes()
        )
        constrained = constrained_moments(linear, distribution, self.people(counts), rows)
        return replace(constrained, assumes=self.mle_assumes)

    def linear_moments(
        self, method: str, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> Moments:
        """As `answer`, but mle has the moments of the balanced answer."""
        answers = self._linear_answers(method, counts, prior, rows, population)
        parts = [answer.moments(rows) for answer in answers]
        return replace(sum_moments(parts), assumes=parts[0].assumes)

    def covariance(
        self, method: str, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> Array:
        """The covariance that belongs to `linear_moments`, for arguments that it accepts."""
        parts = self._linear_answers(method, counts, prior, rows, population)
        return np.asarray(sum(part.covariance(rows) for part in parts))

    def _linear_answers(
        self, method: str, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> Iterable[LinearAnswer]:
        """Answers of parts of the reports, whose sum is the answer of all; mle has the balanced answer."""
        if method == "mmse":
            return self.posterior_answers(counts, prior)
        answer = self.unbiased_answer if method == "unbiased" else self.balanced_answer
        return [answer(counts, prior, rows, population)]

    @abstractmethod
    def posterior_answers(self, counts: Counts, prior: Array) -> Iterable[LinearAnswer]:
        """Sums of posteriors, of parts of the reports: together they are the mmse answer."""

    @abstractmethod
    def unbiased_answer(
        self, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> LinearAnswer:
        """The unbiased answer, which is best near the prior; rows that reports do not determine are refused."""

    def balanced_answer(
        self, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> LinearAnswer:
        """The best unbiased answer whose histogram adds up to the reports."""
        return self.unbiased_answer(counts, prior, rows, population)

    @abstractmethod
    def mle_distribution(self, counts: Counts, prior: Array) -> Minimum:
        """The distribution that method mle answers with; a search may start at the prior.

        It makes the counts most likely, unless `mle_assumes` says which other distribution the reader takes.
        """

    def adds_up(self, method: str, prior: Array) -> bool:
        """Whether the histogram of `answer` adds up to the reports, and its covariance agrees with that."""
        return True

    # -- what is to be expected ----------------------------------------------------------------------------

    @abstractmethod
    def identifies(self) -> bool:
        """Whether reports alone determine the distribution."""

    @property
    def identifies_by_assumption(self) -> bool:
        """Whether `identifies` is assumed rather than checked."""
        return False

    def prior_check(self, counts: Counts, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior; None if reports are too few, or carry no information."""
        test = _kept_test(self, prior.tobytes(), float(self.people(counts)))
        return test and test.check(self.tested_sums(counts, prior))

    @abstractmethod
    def prior_test(self, prior: Array, reports: float) -> ScoreTest | None:
        """The test of the prior for this many reports."""

    @abstractmethod
    def tested_sums(self, counts: Counts, prior: Array) -> Array:
        """The sums over reports that `prior_test` tests."""

    @abstractmethod
    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person under the prior; None where it would take long to compute."""


# Further statistics of an estimate, such as contrasts and means, need the same distribution again.
@lru_cache(maxsize=4)
def _kept_distribution(
    reader: Reader[Any], dtype: str, shape: tuple[int, ...], counts: bytes, prior: bytes
) -> Minimum:
    return reader.mle_distribution(np.frombuffer(counts, dtype).reshape(shape), np.frombuffer(prior))


# Simulations, and the methods and margins of one tally, test the same prior with the same number of reports.
@lru_cache(maxsize=4)  # each has at most 16 MB up to 100,000 values, and more beyond in proportion
def _kept_test(reader: Reader[Any], prior: bytes, reports: float) -> ScoreTest | None:
    return reader.prior_test(np.frombuffer(prior), reports)


def _require_few(what: str, reports: int, columns: int, hint: Hint) -> None:
    if reports * columns > MOST_MATRIX_ENTRIES:
        raise TooLarge(
            f"{what} of {reports:,} reports would have {reports * columns:,} entries, too many", hint
        )
