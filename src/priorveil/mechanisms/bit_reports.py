"""Reports that are rows of bits, one for each value: how they are checked, scored and counted.

A report is `ceil(size / 64)` little-endian words; bit `x % 64` of word `x // 64` stands for value `x`. A set bit makes
its value likelier by the odds `R`, a clear bit does not, so with `m(y)` the prior mass of the set bits of a report `y`
the posterior of `x` is `P_x R^y_x / (1 + (R - 1) m(y))`. `1 / (1 + (R - 1) m(y))` is the *score* of a report.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, own_integers
from priorveil.certify import TOTAL, Certificate, Lifts
from priorveil.errors import ForeignReport, Hint, Infeasible, InvalidInput, TooLarge, plural
from priorveil.mechanisms import bit_estimators, estimators, kernels
from priorveil.mechanisms.bit_estimators import BitCounts, BitLaw, ones_variance, set_chances
from priorveil.mechanisms.estimators import Counts, LinearAnswer, Moments, PriorCheck, Rows
from priorveil.mechanisms.interface import MEASURE_WITHOUT, Mechanism
from priorveil.mechanisms.kernels import Words32
from priorveil.mechanisms.randomness import WORD, Words
from priorveil.notions import Cone, Known, Leakage, Secrets
from priorveil.priors import Prior
from priorveil.queries import Criterion, Query

Number = TypeVar("Number", np.int64, np.float64)

MOST_LISTED = 5_000  # reports up to which the channel is written out

# Scores are kept as integers in units of 2**-30, so that sums of parts equal the sum of the whole.
SCORE = 1 << 30
# A count and a sum of scores share a 64-bit number, so that one access to memory updates both: the count is shifted
# by 46 bits. That holds for _MOST_SHARED reports: 2**16 * SCORE is 2**46, and 2**16 * 2**46 is 2**62.
_SHIFT = 46
_MOST_SHARED = (1 << 16) - 1
# Reports are read twice, to score and to add: as many at a time as stay in the processor's cache. If a report is wider
# than a cache line, its half words are transposed first, into rows of a length that is no power of two.
_BLOCK_WORDS = 1 << 16
_MOST_IN_BLOCK = 1 << 13
_CACHE_LINE = 8  # words
_PADDING = 24
_BITS_OF_BYTES = np.arange(256)[:, None] >> np.arange(8) & 1


@dataclass(frozen=True, eq=False)
class BitReports(Mechanism):
    """A mechanism whose reports are rows of bits.

    `masses` is the prior in integers, for scoring alone: neither sampling nor privacy looks at it.
    """

    masses: Ints

    def __post_init__(self) -> None:
        masses = own_integers("masses", self.masses, 1)
        if masses.size < 2 or int(masses.min()) < 1 or sum(masses.tolist()) > TOTAL:
            advice = "give two or more positive integers that add up to at most 2**62"
            raise InvalidInput("masses", masses, advice)
        object.__setattr__(self, "masses", masses)

    @property
    @abstractmethod
    def odds(self) -> Fraction:
        """`R`: how much likelier a set bit makes its value, against a clear one. Also the LDP ratio."""

    @property
    @abstractmethod
    def law(self) -> BitLaw:
        """The law of a report in floats."""

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self.masses.size)

    @property
    def width(self) -> int:
        """Words of bits in a report."""
        return -(-self.size // 64)

    @property
    def _tail(self) -> int:
        """The bits of the last word that stand for values."""
        return (1 << (self.size - 64 * (self.width - 1))) - 1

    def accumulate(self, reports: npt.ArrayLike) -> Ints:
        """What every estimate needs: `[N, sum of scores, ones (d), sum of scores by set bit (d)]`.

        The score of a report is `1 / (1 + (R - 1) m(y))` in units of `2**-30`, under the prior `masses`.
        Ones serve the bit-by-bit and the unbiased estimators, scores the posterior given the whole report.
        """
        words = self.check_reports(reports)
        ones, scores = np.zeros((2, 2048 * self.width), dtype=np.int64)
        step, work = max(1, min(_MOST_IN_BLOCK, _BLOCK_WORDS // self.width)), len(words) * self.size
        for start in range(0, len(words), _MOST_SHARED):
            many, both = words[start : start + _MOST_SHARED], np.zeros_like(ones)
            for first in range(0, len(many), step):
                halves, score = self._score(many[first : first + step], work)
                kernels.add_by_byte(halves, 1 << _SHIFT, score, both, work=work)
            ones += both >> _SHIFT
            scores += both & ((1 << _SHIFT) - 1)
        by_bit = [sum_by_bit(sums, self.size) for sums in (ones, scores)]
        return np.concatenate([[len(words), scores[:256].sum()], *by_bit])

    def weigh(self, reports: npt.ArrayLike, weights: Array) -> Array:
        """The same in floats, with every report counted as often as its weight says."""
        words = self.check_reports(reports)
        score = self._score(words, len(words) * self.size)[1]
        bytes_, both = words.view(np.uint8).T, (weights, weights * score)
        by_byte = [np.concatenate([np.bincount(column, w, 256) for column in bytes_]) for w in both]
        sums = [sum_by_bit(sums, self.size) for sums in by_byte]
        return np.concatenate([[weights.sum(), (weights * score).sum()], *sums])

    def expected_counts(self, prior: Array, people: int) -> Array:
        """What `accumulate` gives on average, where scores have the mean that they have under their own prior.

        A score has the mean `1 / (1 + c share)`, and `share` times that where one bit is set.
        """
        law, score = self.law, SCORE / self.law.scale
        each = np.concatenate([[1.0, score], set_chances(law, prior), np.full(self.size, law.share * score)])
        return people * each

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution: yes, unless they are pure noise."""
        return self.odds > 1

    def fits(self, prior: Array) -> bool:
        """Whether this is the prior of the scores."""
        return np.allclose(prior, self.scoring_prior, rtol=1e-9, atol=0.0)

    @property
    def reads_whole_reports(self) -> bool:
        """Whether posteriors under the prior of the scores use whole reports, not only each value's own bit."""
        return True

    def answer(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None; see `bit_estimators`."""
        parts = self._counts(counts)
        linear = self._answer(method, parts, prior, population).moments(rows)
        if method != "mle":
            return linear
        found = bit_estimators.most_likely_ones(self.law, parts)
        moments = estimators.constrained_moments(linear, found, parts.reports, rows)
        return replace(moments, assumes=bit_estimators.COMPOSITE)

    def covariance(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Array:
        """The covariance of the statistics that `answer` gives."""
        return self._answer(method, self._counts(counts), prior, population).covariance(rows)

    def adds_up(self, method: str, prior: Array) -> bool:
        """Yes, unless posteriors are those of single bits."""
        return method != "mmse" or (self.reads_whole_reports and self.fits(prior))

    def _answer(self, method: str, counts: BitCounts, prior: Array, population: bool) -> LinearAnswer:
        if method == "mmse":
            if self.adds_up(method, prior):
                form = bit_estimators.posterior_form(self.law, prior)
                return LinearAnswer(prior * counts.lifts(self.law), counts.reports, (form,))
            return bit_estimators.bitwise_posteriors(self.law, counts, prior)
        if not self.identifies():
            raise estimators.not_identifiable()
        if method == "unbiased":
            return self.unbiased_answer(counts, prior, population)
        return self.balanced_answer(counts, prior, population)

    def unbiased_answer(self, counts: BitCounts, prior: Array, population: bool) -> LinearAnswer:
        """The answer that inverts the noise of each bit."""
        return bit_estimators.ones_answer(self.law, counts, prior, population)

    def balanced_answer(self, counts: BitCounts, prior: Array, population: bool) -> LinearAnswer:
        """The best unbiased answer whose histogram adds up to the reports."""
        return self.unbiased_answer(counts, prior, population)

    def prior_check(self, counts: Ints, prior: Array) -> PriorCheck | None:
        """The check of the counts of ones against the prior."""
        law, parts = self.law, self._counts(counts)
        chances = set_chances(law, prior)
        excess, variance = parts.ones - parts.reports * chances, chances - law.t - 2 * law.u * prior
        factors = law.covariance_factors(prior)
        return estimators.bits_check(excess, law.contrast, variance, factors, prior, parts.reports)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person of the estimate that `answer` gives."""
        P = prior.probabilities
        if query.criterion is Criterion.WRONG_GUESSES:
            return max(0.0, query.ceiling(prior) - bit_estimators.guess_gain(self.law, P))
        if not query.linear:
            return None
        rows = query.centred_rows(prior)
        if query.unbiased and rows is None:
            return self.learning_error(P)
        if query.unbiased:
            counts = self.expected_counts(P, 1)
            return float(self.answer("unbiased", counts, P, rows, population=True).variance.sum())
        form = bit_estimators.posterior_form if self.reads_whole_reports else bit_estimators.bitwise_form
        return max(0.0, float(form(self.law, P).variances(rows).sum()))

    def learning_error(self, P: Array) -> float:
        """N times the variance of the unbiased distribution, summed over the values."""
        return ones_variance(self.law, P)

    @property
    def matrix(self) -> Array:
        """The channel in floats, reports in the order of their bits as a number; small domains only."""
        d, law = self.size, self.law
        if (math.comb(d, law.members) if law.members else 1 << d) > MOST_LISTED:
            message = f"there are more than {MOST_LISTED:,} different reports, too many to write out"
            raise TooLarge(message, MEASURE_WITHOUT)
        sizes = [law.members] if law.members else range(d + 1)
        reports = [members for size in sizes for members in combinations(range(d), size)]
        bits = np.array([[x in members for x in range(d)] for members in reports])
        bits = bits[np.lexsort(bits.T)]
        chances = np.prod(np.where(bits, law.share, 1 - law.share), axis=1)
        chances /= chances.sum()  # of the reports with the right number of bits
        return np.asarray((np.where(bits, law.odds, 1.0) * chances[:, None] / law.scale).T)

    @abstractmethod
    def extreme_masses(self, prior: Known) -> tuple[Fraction, Fraction]:
        """The smallest and the largest prior mass of the set bits of a report that has bits set and bits clear."""

    def lifts(self, prior: Known, secret: Secrets, notion: Cone) -> Lifts:
        """The exact extremes: a set bit where the others are rarest, a clear bit where the set ones are commonest.

        They are `R / (1 + (R - 1) m)` and `1 / (1 + (R - 1) m)` (Theorem 4 of the paper, for unary encoding).
        """
        if secret is not None or not notion.implies_lip:
            message = f"{self.kind} is certified for LIP or LDP of the value itself"
            raise Infeasible(message, Hint("method", "columns"))
        lightest, heaviest = self.extreme_masses(prior)
        odds, slope = self.odds, self.odds - 1
        return Lifts(1 / (1 + slope * heaviest), odds / (1 + slope * lightest), odds, odds)

    def parameters(self) -> dict[str, Any]:
        """The masses as strings: JavaScript numbers could not hold them."""
        return {"masses": [str(mass) for mass in self.masses.tolist()]}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Self:
        """Read a mechanism from the parameters in its JSON document."""
        masses = np.array([int(mass) for mass in parameters["masses"]], dtype=np.int64)
        return cls(masses, *(int(parameters[field.name]) for field in fields(cls)[1:]))

    def levels(self, prior: Known, secret: Secrets, proven: Certificate) -> Leakage:
        """Exact for all notions but MIP, from the odds `R`; measured where all reports can be listed.

        The likeliest value of a report has its bit set, unless none is. With `p` the chance of a person's own bit,
        mutual information is `p log R - E[log(1 + c m)]`, and the last term is at least `log(1 + c share)`: under
        `B` it is the mean of the convex `D log D`, `D = 1 + c m`, over the mean of `D`.
        """
        found = super().levels(prior, secret, proven)
        if not found.bounds:
            return found
        law, empty = self.law, 1 - float(self.law.first_chances(self.size).sum())
        mil = math.log((law.odds - (law.odds - 1) * empty) / law.scale)
        mip = law.p * math.log(law.odds) - math.log(law.scale)
        return replace(found, mil=mil, mip=None if found.mip is None else max(mip, 0.0), bounds=("MIP",))

    def _counts(self, counts: Counts) -> BitCounts:
        """The parts of an accumulated array, scores as numbers."""
        if counts.shape != (2 * self.size + 2,):
            raise InvalidInput("counts", counts.shape, f"give the {2 * self.size + 2} integers of accumulate")
        ones, scores = counts[2:].reshape(2, self.size).astype(np.float64)
        return BitCounts(float(counts[0]), ones, float(counts[1]) / SCORE, scores / SCORE)

    def accepts(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which reports this mechanism can have made: those with no bit beyond the last value."""
        words = self.report_array(reports)
        # Where words have no such bits, they are not read.
        return words[:, -1] <= np.uint64(self._tail) if self.size % 64 else np.ones(len(words), dtype=bool)

    @cached_property
    def scoring_prior(self) -> Array:
        """The prior of the scores, in floats."""
        return np.asarray(self.masses / float(self.masses.sum()))

    @cached_property
    def _byte_masses(self) -> tuple[Ints, float]:
        """The mass of the set bits of every byte at every place, `[256 * place + byte]`; `R - 1` per unit of mass."""
        padded = np.zeros((8 * self.width, 8), dtype=np.int64)
        padded.reshape(-1)[: self.size] = self.masses
        return np.asarray(padded @ _BITS_OF_BYTES.T).reshape(-1), float(
            (self.odds - 1) / int(self.masses.sum())
        )

    @cached_property
    def _scores_by_ones(self) -> Ints | None:
        """The score of every number of set bits, where all values have the same mass: the number is counted faster."""
        mass = np.arange(self.size + 1) * self.masses[0]
        scores = np.rint(SCORE / (1.0 + self._byte_masses[1] * mass)).astype(np.int64)
        return None if np.ptp(self.masses) else scores

    def _score(self, words: Words, work: int) -> tuple[Words32, Ints]:
        """The half words of the reports (reports last), and the scores of the reports in units of `2**-30`.

        Reports are read byte by byte: a table has the mass of every value of every byte, another one collects counts
        and scores by value of a byte, and only at the end are bytes resolved into bits. So a report costs two steps
        for every eight values.
        """
        rows = words.view(np.uint32)[:, : -(-self.size // 32)]
        if self._scores_by_ones is not None:
            ones = np.bitwise_count(words) @ np.ones(self.width)  # in floats, which multiply fastest
            return rows.T, self._scores_by_ones.take(ones.astype(np.int64), mode="clip")
        halves = rows.T
        if self.width >= _CACHE_LINE:
            halves = np.empty((rows.shape[1], len(rows) + _PADDING), dtype=np.uint32)[:, : len(rows)]
            kernels.transpose(rows, halves, work=work)
        scores = np.empty(len(words), dtype=np.int64)
        kernels.score_reports(halves, *self._byte_masses, float(SCORE), scores, work=work)
        return halves, scores

    def report_array(self, reports: npt.ArrayLike) -> Words:
        """The reports as rows of words."""
        array = np.asarray(reports)
        if array.ndim != 2 or array.shape[1] != self.width or array.dtype.kind != "u" or array.itemsize != 8:
            shape = f"{array.dtype} array of shape {array.shape}"
            advice = f"give rows of {plural(self.width, '64-bit word')}"
            if array.dtype.kind == "U":  # as in JSON
                words = f"np.frombuffer(bytes.fromhex(''.join(reports)), '<u8').reshape(-1, {self.width})"
                advice += f"; hexadecimal reports become such rows by {words}"
            raise ForeignReport("reports", shape, advice)
        return np.ascontiguousarray(array, dtype=WORD)

    @property
    def allowed_reports(self) -> str:
        """Which bits may be set, in words."""
        return f"only the first {self.size} bits may be set"


def scoring_masses(weights: Sequence[int]) -> Ints:
    """A prior's exact weights, of any size, as positive integers near `2**50` in all.

    >>> scoring_masses([1, 3]).tolist() == [2**48, 3 * 2**48]
    True
    """
    total = sum(weights)
    return np.array([max(1, (weight << 50) // total) for weight in weights], dtype=np.int64)


def sum_by_bit(by_byte: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    """Sums by place and value of a byte, as sums over the bytes that have a bit set, for every bit."""
    return np.asarray(by_byte.reshape(-1, 256) @ _BITS_OF_BYTES.astype(by_byte.dtype)).reshape(-1)[:size]
