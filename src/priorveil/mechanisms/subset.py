"""Subset selection: the report is a set of `k` of the `d` values, which is likelier to hold the true one.

The set holds the true value with probability `p = keep / 2**62`. The rest of it is a uniformly random subset of the
other `d - 1` values, of size `k - 1` or `k`. A report is therefore

    R = p (d - k) / ((1 - p) k)

times likelier for a value that it holds than for any other: `R` is the LDP ratio. With `m(y)` the prior mass of a
report `y` the lifts are `R / (1 + (R - 1) m(y))` and `1 / (1 + (R - 1) m(y))`, which are extreme for the `k` rarest and
for the `k` commonest values.

Randomness: `1 + k` words, whatever the value. The first decides whether the value is held: iff `w >> 2 < keep`. The
others are Floyd's algorithm: word `j` modulo `d - 1 - k + j`, for `j = 1 .. k`, draws a candidate among the other
values in order; if it is held already, the last candidate of that range joins in its place. If the true value is held,
it takes the place of the first candidate. Words so large that a remainder would be uneven (one in `2**64 / d`) are not
drawn again: the report is then the first `k` values, whatever the true value is. That is a report without information,
mixed in with a probability below `k d / 2**64`, so it can only lower the levels, and no estimate notices it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.certify import TOTAL, Certifiable, Lifts
from priorveil.errors import Hint, Infeasible, InvalidInput, TooLarge
from priorveil.mechanisms import bit_estimators, kernels
from priorveil.mechanisms.bits import BitReports
from priorveil.mechanisms.estimators import Moments, not_identifiable
from priorveil.mechanisms.interface import MEASURE_WITHOUT, check_codes
from priorveil.mechanisms.randomness import WORD, Source, Words, blocks
from priorveil.mechanisms.score_test import PriorCheck
from priorveil.mechanisms.subset_estimators import (
    SubsetLaw,
    guess_gain,
    ones_variance,
    posterior_error,
    scored_moments,
    scored_posteriors,
    subset_check,
    subset_information,
)
from priorveil.notions import Known, Secrets
from priorveil.priors import Array, Ints, Prior
from priorveil.queries import Query

_MOST_LISTED = 5_000  # subsets up to which the channel is written out
MOST_SCORED = 1_000  # values up to which reports are read by their scores; the information is a dense matrix


@dataclass(frozen=True, eq=False)
class Subset(BitReports):
    """Subset selection among `len(masses)` values: sets of `subset_size`, the true value in `keep / 2**62` of them.

    >>> mechanism = Subset(np.array([1, 1, 2]), subset_size=1, keep=TOTAL // 2)
    >>> mechanism.draws_per_report, mechanism.odds
    (2, Fraction(2, 1))
    """

    subset_size: int
    keep: int

    kind: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.subset_size < self.size:
            raise InvalidInput("subset_size", self.subset_size, f"give a number from 1 to {self.size - 1}")
        if not 0 < self.keep < TOTAL:
            raise InvalidInput("keep", self.keep, "give an integer above 0 and below 2**62")
        if self.odds < 1:
            raise InvalidInput("keep", self.keep, "give more: a set must favour its values")

    @property
    def draws_per_report(self) -> int:
        """Random words a report takes, whatever the value."""
        return 1 + self.subset_size

    @cached_property
    def odds(self) -> Fraction:
        """`R`: how much likelier a report is for a value that it holds. Also the LDP ratio."""
        return Fraction(self.keep * (self.size - self.subset_size), (TOTAL - self.keep) * self.subset_size)

    @cached_property
    def law(self) -> SubsetLaw:
        """The law of a report in floats."""
        return SubsetLaw(self.size, self.subset_size, self.keep / TOTAL)

    def sample(self, codes: npt.ArrayLike, source: Source) -> Words:
        """The reports of many values, one row each."""
        rows = check_codes(codes, self.size)
        reports = np.empty((rows.size, self.width), dtype=WORD)
        ends = range(self.size - self.subset_size, self.size)
        bounds = np.array(ends, dtype=WORD)
        last = np.array([2**64 - 1 - 2**64 % end for end in ends], dtype=WORD)
        work = rows.size * self.draws_per_report
        for block, words in blocks(source, rows.size, self.draws_per_report):
            kernels.draw_subsets(
                rows[block], words, np.uint64(self.keep), bounds, last, reports[block], work=work
            )
        return reports

    def accepts(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which reports this mechanism can have made: sets of the right size, with no bit beyond the last value."""
        sizes = np.bitwise_count(self._words(reports)).sum(axis=1, dtype=np.int64)
        return np.asarray(super().accepts(reports) & (sizes == self.subset_size))

    @property
    def _bits_allowed(self) -> str:
        return f"exactly {self.subset_size} of the first {self.size} bits have to be set"

    @cached_property
    def scored(self) -> bool:
        """Whether reports are read by their scores: else by the ones, which then say the same, or nearly so."""
        return 1 < self.subset_size < self.size - 1 and self.size <= MOST_SCORED and bool(np.ptp(self.masses))

    @cached_property
    def _inverse(self) -> Array:
        return np.asarray(np.linalg.inv(subset_information(self.law, self.scoring_prior)), dtype=np.float64)

    def _reads_whole_reports(self, prior: Array) -> bool:
        """Whether posteriors under this prior are given whole reports; else each value's own bit."""
        feasible = self.size <= MOST_SCORED or self.subset_size == 1
        return feasible and self.fits(prior)

    def answer(
        self, method: str, counts: npt.NDArray[Any], prior: Array, rows: Array | None, population: bool
    ) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None; see also `subset_estimators`."""
        law, parts = self.law, self._counts(counts)
        if method == "mmse":
            if self._reads_whole_reports(prior):
                return scored_posteriors(law, parts, prior, rows)
            return bit_estimators.bitwise_posteriors(law, parts, prior, rows)
        if not self.identifies():
            raise not_identifiable()
        if method == "mle":
            # Without zeros it is the unbiased answer, which adds up to the reports: so the variance is the same.
            unbiased = bit_estimators.ones_moments(law, parts, rows, population)
            return bit_estimators.most_likely_ones(law, parts, prior, rows, lambda shares: unbiased.variance)
        if method == "unbiased" and self.scored:
            return scored_moments(law, parts, self.scoring_prior, self._inverse, rows, population)
        return bit_estimators.ones_moments(law, parts, rows, population)

    def prior_check(self, counts: Ints, prior: Array) -> PriorCheck | None:
        """The check of the counts of ones against the prior."""
        return subset_check(self.law, self._counts(counts), prior)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person, of the reading that `answer` uses."""
        P, rows = prior.probabilities, query.centred_rows(prior)
        if query.kind == "guess":
            return max(0.0, query.ceiling(prior) - guess_gain(self.law, P))
        if query.kind == "distribution":
            return self._learning_error(P)
        if query.unbiased or query.kind == "convex":
            return None
        if self.size <= MOST_SCORED or self._reads_whole_reports(P):
            return max(0.0, float(posterior_error(self.law, P, rows).sum()))
        one_person = bit_estimators.BitCounts(1.0, np.zeros(self.size), 0.0, np.zeros(self.size))
        return float(bit_estimators.bitwise_posteriors(self.law, one_person, P, rows).variance.sum())

    def _learning_error(self, P: Array) -> float:
        """N times the variance of the unbiased distribution, summed over the values."""
        if not self.scored:
            return ones_variance(self.law, P)
        inverse = self._inverse if self.fits(P) else np.linalg.inv(subset_information(self.law, P))
        return float(np.trace(inverse) - P @ P)

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """The exact extremes, for one prior or a finite set of them, and the value itself."""
        if secret is not None or not notion.implies_lip or not prior.members:
            message = "subset is certified for LIP or LDP of the value itself, for one prior or a finite set of priors"
            raise Infeasible(message, Hint("method", "columns"))
        k, shift = self.subset_size, self.odds - 1
        ordered = [(sorted(member.weights), member.total) for member in prior.members]
        lightest = min(Fraction(sum(weights[:k]), total) for weights, total in ordered)
        heaviest = max(Fraction(sum(weights[-k:]), total) for weights, total in ordered)
        return Lifts(1 / (1 + shift * heaviest), self.odds / (1 + shift * lightest), self.odds, self.odds)

    @property
    def base_chances(self) -> tuple[float, float]:
        """The share of the values in a set, and zero: no set is empty."""
        return self.subset_size / self.size, 0.0

    @property
    def matrix(self) -> Array:
        """The channel in floats, reports in the order of their bits as a number; small domains only."""
        bits = self._listed
        held = self.law.p / math.comb(self.size - 1, self.subset_size - 1)
        return np.asarray(np.where(bits, held, held / self.law.odds).T)

    @property
    def _listed(self) -> npt.NDArray[np.bool_]:
        """All subsets as rows of bits."""
        subsets = math.comb(self.size, self.subset_size)
        if subsets > _MOST_LISTED:
            raise TooLarge(
                f"there are more than {_MOST_LISTED:,} sets of {self.subset_size:,} of {self.size:,} values, "
                "too many to write out",
                MEASURE_WITHOUT,
            )
        members = np.array(list(combinations(range(self.size - 1, -1, -1), self.subset_size)))[::-1]
        bits = np.zeros((subsets, self.size), dtype=bool)
        bits[np.arange(subsets)[:, None], members] = True
        return bits

    def parameters(self) -> dict[str, Any]:
        """The three fields; long integers as strings."""
        masses = [str(mass) for mass in self.masses.tolist()]
        return {"masses": masses, "subset_size": self.subset_size, "keep": str(self.keep)}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Subset:
        """Read a mechanism from the parameters in its JSON document."""
        masses = np.array([int(mass) for mass in parameters["masses"]], dtype=np.int64)
        if type(parameters["subset_size"]) is not int:
            raise InvalidInput("subset_size", parameters["subset_size"], "give a whole number")
        return cls(masses, parameters["subset_size"], int(parameters["keep"]))
