"""The interface of mechanisms: the base class that plans know, and the checks that all mechanisms share."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Mask
from priorveil.certify import Certificate, Lifts
from priorveil.channels import Channel
from priorveil.errors import ForeignReport, Hint, Infeasible, InvalidInput, OutsideDomain, TooLarge
from priorveil.information import identifiable
from priorveil.mechanisms import estimators, kernels
from priorveil.mechanisms.estimators import Counts, Moments, PriorCheck, Rows
from priorveil.mechanisms.randomness import WORD, Source, Words, word_blocks
from priorveil.notions import Cone, Known, Leakage, Secrets, leakage, leakage_bounds
from priorveil.priors import Prior
from priorveil.queries import Query

MOST_ENTRIES = 1 << 24  # of an implicit channel that is written out
MOST_MEASURED = 1 << 22  # entries of one whose levels are measured: that takes five times its memory
MEASURE_WITHOUT = Hint("plan.levels", purpose="to measure it")
_QUICK = 1 << 22  # entries of a channel whose error takes less than a second
_QUICK_WORK = 1 << 28  # multiplications, where the error is that of learning a distribution


class Mechanism(ABC):
    """A sampler in integers, its exact certificate, and the counting and reading of its reports.

    `kind` is its name in a plan's file.
    """

    kind: ClassVar[str]
    averages: ClassVar[bool] = False  # whether a column of `matrix` averages over reports that differ

    @property
    @abstractmethod
    def size(self) -> int:
        """How many values there are."""

    @property
    def width(self) -> int:
        """How many 64-bit words a report has, if it is a row of bits; zero if it is a whole number."""
        return 0

    @property
    def outputs(self) -> int | None:
        """How many different reports there are, where they are the numbers from zero on; otherwise None."""
        return None

    @property
    def draws_per_report(self) -> int:
        """How many random words a report takes, whatever the value."""
        return 1

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """The channel in floats; raises `TooLarge` where it cannot be written out."""

    @property
    def leakage_matrix(self) -> tuple[Array, tuple[int, ...] | None]:
        """A channel to measure levels on, which leaks no less than the reports, and the reports of its columns.

        This is `matrix`, unless that `averages` over reports. None stands for the numbers of the columns.
        """
        return self.matrix, None

    def sample_one(self, code: int, source: Source) -> Any:
        """The report of one value."""
        report = self.sample([code], source)[0]
        return report if self.width else int(report)

    def sample(self, codes: npt.ArrayLike, source: Source) -> npt.NDArray[Any]:
        """The reports of many values, a row each."""
        rows = check_codes(codes, self.size)
        reports = self.new_reports(rows.size)
        for block, words in word_blocks(source, rows.size, self.draws_per_report):
            self.draw(rows[block], words, reports[block], rows.size)
        return reports

    @abstractmethod
    def draw(self, codes: Ints, words: Words, reports: npt.NDArray[Any], total: int) -> None:
        """Fill a block of reports for valid codes, with a row of random words each; all blocks have `total` reports."""

    def accepts(self, reports: npt.NDArray[Any]) -> Mask:
        """Which reports this mechanism can have made: the numbers below `outputs`, if not stated otherwise."""
        return in_range(reports, self.outputs or 0)

    def report_array(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        """The reports as an array of the right shape and type."""
        return integer_column("reports", reports)

    def check_reports(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        """The reports as an array; a `ForeignReport` if there is one that this mechanism cannot have made."""
        array = self.report_array(reports)
        accepted = self.accepts(array)
        if not accepted.all():
            row = int(np.argmin(accepted))
            raise ForeignReport(f"reports[{row}]", np.asarray(reports)[row].tolist(), self.allowed_reports)
        return array

    @property
    def allowed_reports(self) -> str:
        """Which reports this mechanism makes, in words."""
        if self.outputs is None:
            return "this mechanism never makes it"
        return f"this mechanism reports 0 to {self.outputs - 1}"

    @abstractmethod
    def accumulate(self, reports: npt.ArrayLike) -> Ints:
        """The reports added up, in integers; the arrays of parts add up to the array of the whole."""

    @abstractmethod
    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """The same in floats, with every report counted as often as its weight says."""

    def reports_in(self, counts: Counts) -> int:
        """How many reports an array of `accumulate` counts: its first entry, if not stated otherwise."""
        return int(counts[0])

    def new_reports(self, count: int = 0) -> npt.NDArray[Any]:
        """An empty array for this many reports."""
        return np.empty((count, self.width), WORD) if self.width else np.empty(count, np.int64)

    @cached_property
    def counts_shape(self) -> tuple[int, ...]:
        """The shape of what `accumulate` gives."""
        return self.accumulate(self.new_reports()).shape

    @abstractmethod
    def expected_counts(self, prior: Array, people: int) -> Array:
        """What `accumulate` gives on average for this many people who follow the prior, as far as `answer` uses it."""

    @abstractmethod
    def lifts(self, prior: Known, secret: Secrets, notion: Cone) -> Lifts:
        """The exact extremes of the sampled law."""

    def levels(self, prior: Known, secret: Secrets, proven: Certificate) -> Leakage:
        """The levels under every notion: measured on the channel, or where that is too large, from what is proven."""
        try:
            matrix, reports = self.leakage_matrix
        except TooLarge:
            return leakage_bounds(proven.lip_lower, proven.lip_upper, proven.ldp, prior)
        return leakage(Channel(matrix, prior.labels, reports), prior, secret)

    @abstractmethod
    def identifies(self) -> bool:
        """Whether reports alone determine the distribution."""

    @abstractmethod
    def prior_check(self, counts: Ints, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior; None if reports are too few, or carry no information."""

    @abstractmethod
    def answer(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None, by `mmse`, `unbiased` or `mle`.

        `counts` are those of `accumulate` or of `weigh`; for the latter, see `Reading.moments`. A fourth method,
        `balanced`, is the unbiased answer on which the intervals of mle rest: its histogram adds up to the reports.
        """

    def adds_up(self, method: str, prior: Array) -> bool:
        """Whether the histogram of `answer` adds up to the reports, and its covariance agrees with that."""
        return True

    @abstractmethod
    def covariance(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Array:
        """The covariance of the statistics that `answer` gives, for arguments that `answer` accepts."""

    @abstractmethod
    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person under the prior; None where it would take long to compute."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The integers as JSON."""

    @classmethod
    @abstractmethod
    def read(cls, parameters: Mapping[str, Any]) -> Mechanism:
        """Read a mechanism from the parameters in its JSON document."""


class NumberedReports(Mechanism):
    """A mechanism whose reports are the numbers `0 .. outputs - 1`, and whose tally counts each of them."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many different reports there are."""

    def accumulate(self, reports: npt.ArrayLike) -> Ints:
        """How often each report came."""
        if "numba" not in sys.modules:  # the compiled count saves too little to load it
            return np.bincount(self.check_reports(reports), minlength=self.outputs)
        column, counts = self.report_array(reports), np.zeros(self.outputs, np.int64)
        kernels.count_numbers(column, counts, work=column.size)
        if counts.sum() < column.size:
            self.check_reports(reports)
        return counts

    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """The sum of the weights of each report."""
        return np.bincount(self.check_reports(reports), weights, self.outputs).astype(np.float64)

    def reports_in(self, counts: Counts) -> int:
        """The sum of the counts."""
        return int(counts.sum())

    def expected_counts(self, prior: Array, people: int) -> Array:
        """How often each report comes on average."""
        return people * self.law(prior)

    def law(self, p: Array) -> Array:
        """`p @ matrix`: the law of the reports when the values follow `p`, or each row of it."""
        return np.asarray(p @ self.matrix)

    def blocks(self, method: str) -> Iterable[tuple[slice, Array]]:
        """The channel in parts whose reports are read one after the other: which reports, and their columns."""
        return [(slice(None), self.matrix)]

    def identifies(self) -> bool:
        """Whether the rows of the channel are independent."""
        return identifiable(self.matrix)

    def prior_check(self, counts: Ints, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior."""
        return estimators.cells_check(
            counts.astype(np.float64), self.law(estimators.split_prior(prior, len(counts)))
        )

    def answer(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None."""
        n, others = counts.astype(np.float64), (prior, rows, population)
        parts = [estimators.reports_moments(method, n[part], Q, *others) for part, Q in self.blocks(method)]
        mean, variance = np.sum([(part.mean, part.variance) for part in parts], axis=0)
        return replace(parts[0], mean=mean, variance=variance)

    def covariance(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Array:
        """The covariance of the statistics, from the scores of the reports."""
        n, others = counts.astype(np.float64), (prior, rows, population)
        parts = [estimators.reports_answer(method, n[part], Q, *others) for part, Q in self.blocks(method)]
        return np.asarray(np.sum([part.covariance(rows) for part in parts], axis=0))

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person of the channel, unless the channel is large."""
        entries = len(prior) * self.outputs
        if entries > _QUICK or (query.unbiased and entries * len(prior) > _QUICK_WORK):
            return None
        return query.error(Channel(self.matrix, prior.labels), prior)


def require_writable(values: int, reports: int, most: int | None = None) -> None:
    """Raise `TooLarge` if a channel has too many entries to be written out.

    >>> require_writable(50_000, 1_000)
    Traceback (most recent call last):
    priorveil.errors.TooLarge: the channel has 50,000 x 1,000 entries, too many to write out; to measure it, use \
plan.levels
    """
    if values * reports > (most or MOST_ENTRIES):
        raise TooLarge(
            f"the channel has {values:,} x {reports:,} entries, too many to write out", MEASURE_WITHOUT
        )


def single_prior(prior: Known, secret: Secrets, notion: Cone, kind: str) -> Prior:
    """The prior, for mechanisms whose exact certificate needs one prior and no secret behind the value."""
    if secret is not None or not isinstance(prior, Prior) or not notion.implies_lip:
        message = f"{kind} is certified for LIP or LDP of the value itself under one prior"
        raise Infeasible(message, Hint("method", "columns"))
    return prior


def worst_lifts(found: Sequence[Lifts]) -> Lifts:
    """The extremes of several channels, one of which is chosen in public for each report."""
    ratios = [lifts.ldp for lifts in found if lifts.ldp is not None]
    ratio = max(ratios) if len(ratios) == len(found) else None
    return Lifts(min(lifts.lowest for lifts in found), max(lifts.highest for lifts in found), ratio, ratio)


def check_codes(codes: npt.ArrayLike, size: int) -> Ints:
    """Codes as a contiguous array of 64-bit integers, each in `0 .. size - 1`.

    >>> check_codes([0, 2], 3)
    array([0, 2])
    >>> check_codes([0, 3], 3)
    Traceback (most recent call last):
    priorveil.errors.OutsideDomain: values[1] is outside the domain (codes 0 to 2): \
correct or remove it before privatising
    """
    array = integer_column("values", codes)
    inside = in_range(array, size)
    if not inside.all():
        raise OutsideDomain(int(np.argmin(inside)), f"codes 0 to {size - 1}")
    return array


def in_range(reports: npt.NDArray[Any], outputs: int) -> Mask:
    """Which entries are numbers from 0 to `outputs - 1`.

    >>> in_range(np.array([0, 5, -1]), 3).tolist()
    [True, False, False]
    """
    # As unsigned integers, negative numbers are the largest: one comparison checks both ends.
    return np.asarray(integer_column("reports", reports).view(np.uint64) < outputs)


def integer_column(argument: str, values: npt.ArrayLike) -> Ints:
    """A column of whole numbers as a contiguous array of 64-bit integers."""
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        shape = f"{array.dtype} array of shape {array.shape}"
        raise InvalidInput(argument, shape, "give a column of integers")
    return np.ascontiguousarray(array, dtype=np.int64)
