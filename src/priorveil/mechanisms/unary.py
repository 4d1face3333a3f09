"""Unary encoding: a value becomes a row of bits, one of them set, and every bit is flipped at random.

A clear bit is set with probability `q01 = noise / 2**noise_bits`; the set bit is cleared with probability
`q10 = drop / 2**62`. Given all the bits `y` of a report, and writing

    R = (1 - q01)(1 - q10) / (q01 q10),      m(y) = prior mass of the set bits,

the posterior of `x` is `P_x R^y_x / (1 + (R - 1) m(y))`. Two things follow. Privacy depends on `R` and the
smallest prior alone (Theorem 4 of the paper, exact here); and since `q10` can make up for a coarse `q01`,
a few bits of resolution for the noise are enough, which is what makes bulk sampling fast.

Randomness: `noise_bits` words for every 64 bits of the report, then one. For each 64 bits, start from
zero and take the bits of `noise`, lowest first: a one *ors* the next word in, a zero *ands* it. The last
word `w` decides the value's own bit: set iff `w >> 2 < 2**62 - drop`.

A report is `ceil(size / 64)` little-endian words; bit `x % 64` of word `x // 64` stands for value `x`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.certify import TOTAL, Certifiable, Lifts
from priorveil.errors import NOT_SHOWN, ForeignReport, Hint, Infeasible, InvalidInput, TooLarge
from priorveil.mechanisms import kernels
from priorveil.mechanisms.estimators import Moments, not_identifiable
from priorveil.mechanisms.interface import Mechanism, check_codes
from priorveil.mechanisms.kernels import Words32
from priorveil.mechanisms.prior_checks import PriorCheck, bits_check
from priorveil.mechanisms.randomness import WORD, Source, Words, blocks
from priorveil.mechanisms.unary_estimators import (
    Flips,
    UnaryCounts,
    balanced_moments,
    bitwise_moments,
    composite_moments,
    guess_gain,
    histogram_gain,
    joint_moments,
    learning_gain,
    sum_gain,
    unbiased_unary_moments,
)
from priorveil.notions import Known, Secrets
from priorveil.priors import Array, Ints, Prior
from priorveil.queries import Query

Number = TypeVar("Number", np.int64, np.float64)

# Values for which all reports can be listed.
_MOST_LISTED = 12
# Scores are kept as integers in units of 2**-30, so that sums of parts equal the sum of the whole.
SCORE = 1 << 30
# A count and a sum of scores share a 64-bit number, so that a byte touches the memory once: the count is shifted
# by 46 bits. That holds for _MOST_SHARED reports: 2**16 * SCORE is 2**46, and 2**16 * 2**46 is 2**62.
_SHIFT = 46
_MOST_SHARED = (1 << 16) - 1
# Reports are read twice, to score and to add: as many at a time as stay in the processor's cache. If a report is wider
# than a cache line, its half words are transposed first, into rows of a length that is no power of two.
_BLOCK_WORDS = 1 << 15
_MOST_IN_BLOCK = 1 << 13
_CACHE_LINE = 8  # words
_PADDING = 24


@dataclass(frozen=True, eq=False)
class Unary(Mechanism):
    """Unary encoding of `len(masses)` values.

    `masses` is the prior in integers, for scoring alone: neither sampling nor privacy looks at it.

    >>> mechanism = Unary(np.array([1, 1, 2]), noise=1, noise_bits=2, drop=TOTAL // 2)
    >>> mechanism.draws_per_report, mechanism.odds
    (3, Fraction(3, 1))
    """

    masses: Ints
    noise: int
    noise_bits: int
    drop: int

    kind: ClassVar[str] = "unary"

    def __post_init__(self) -> None:
        object.__setattr__(self, "masses", _check_masses(self.masses))
        if not 1 <= self.noise_bits <= 62:
            raise InvalidInput("noise_bits", self.noise_bits, "give a number from 1 to 62")
        if not 0 < self.noise < 1 << self.noise_bits:
            raise InvalidInput("noise", self.noise, f"give an integer above 0 and below 2**{self.noise_bits}")
        if not 0 < self.drop < TOTAL:
            raise InvalidInput("drop", self.drop, "give an integer above 0 and below 2**62")
        if self.odds < 1:
            raise InvalidInput("drop", self.drop, "give less noise: a set bit must favour its value")

    @property
    def size(self) -> int:
        """How many values there are."""
        return int(self.masses.size)

    @property
    def width(self) -> int:
        """Words of bits in a report."""
        return -(-self.size // 64)

    @property
    def draws_per_report(self) -> int:
        """Random words a report takes, whatever the value."""
        return self.width * self.noise_bits + 1

    @property
    def flips(self) -> tuple[Fraction, Fraction]:
        """`(q01, q10)`, exactly."""
        return Fraction(self.noise, 1 << self.noise_bits), Fraction(self.drop, TOTAL)

    @property
    def odds(self) -> Fraction:
        """`R`: how much likelier a set bit makes its value, against a clear one. Also the LDP ratio."""
        q01, q10 = self.flips
        return (1 - q01) * (1 - q10) / (q01 * q10)

    @property
    def _tail(self) -> int:
        """The bits of the last word that stand for values."""
        return (1 << (self.size - 64 * (self.width - 1))) - 1

    def sample(self, codes: npt.ArrayLike, source: Source) -> Words:
        """The reports of many values, one row each."""
        rows = check_codes(codes, self.size)
        reports = np.empty((rows.size, self.width), dtype=WORD)
        coins = self.noise, self.noise_bits, np.uint64(TOTAL - self.drop), np.uint64(self._tail)
        work = rows.size * self.draws_per_report
        for block, words in blocks(source, rows.size, self.draws_per_report):
            kernels.flip_bits(rows[block], words, *coins, reports[block], work=work)
        return reports

    def accumulate(self, reports: npt.ArrayLike) -> Ints:
        """What every estimate needs: `[N, sum of scores, ones (d), sum of scores by set bit (d)]`.

        The score of a report is `1 / (1 + (R - 1) m(y))` in units of `2**-30`, under the prior `masses`.
        Ones serve the bit-by-bit and the unbiased estimators, scores the posterior given the whole report.
        """
        words = self._check(reports)
        sums = sum_by_byte(self._scoring, words)
        return np.concatenate([[len(words), sums[1][:256].sum()], *(sum_by_bit(s, self.size) for s in sums)])

    def weigh(self, reports: npt.ArrayLike, weights: Array) -> Array:
        """The same in floats, with every report counted as often as its weight says."""
        words = self._check(reports)
        score, work = np.empty(len(words), dtype=np.int64), len(words) * self.size
        self._scoring.score(words, self._scoring.columns(words, work), score, work)
        columns = words.view(np.uint8).T
        sums = [
            sum_by_bit(np.concatenate([np.bincount(column, w, 256) for column in columns]), self.size)
            for w in (weights, weights * score)
        ]
        return np.concatenate([[weights.sum(), (weights * score).sum()], *sums])

    def reports_in(self, counts: npt.NDArray[Any]) -> int:
        """The first entry."""
        return int(counts[0])

    def expected_counts(self, prior: Array, people: int) -> Array:
        """The averages of `accumulate`; those of the scores are for people who follow the prior of the scores.

        A report has `Pr(y) = B(y) (1 + c m(y)) / (1 + c q01)`, so its score has the mean `1 / (1 + c q01)`, and
        `q01` times that where one bit is set (`unary_estimators`).
        """
        score = SCORE / (1 + (self._floats.odds - 1) * self._floats.q01)
        by_bit = np.full(self.size, self._floats.q01 * score)
        return people * np.concatenate([[1.0, score], self._floats.set_chances(prior), by_bit])

    def _counts(self, counts: npt.NDArray[Any]) -> UnaryCounts:
        """The parts of an accumulated array, scores as numbers."""
        if counts.shape != (2 * self.size + 2,):
            raise InvalidInput("counts", counts.shape, f"give the {2 * self.size + 2} integers of accumulate")
        ones, scores = counts[2:].reshape(2, self.size).astype(np.float64)
        return UnaryCounts(float(counts[0]), ones, float(counts[1]) / SCORE, scores / SCORE)

    def answer(
        self, method: str, counts: npt.NDArray[Any], prior: Array, rows: Array | None, population: bool
    ) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None: see `unary_estimators`."""
        flips, parts = self._floats, self._counts(counts)
        if method == "mmse":
            joint = np.allclose(prior, self.scoring_prior, rtol=1e-9, atol=0.0)
            return (joint_moments if joint else bitwise_moments)(flips, parts, prior, rows)
        if not self.identifies():
            raise not_identifiable()
        if method == "unbiased":
            return unbiased_unary_moments(flips, parts, rows, population)
        estimate = balanced_moments if method == "score" else composite_moments
        return estimate(flips, parts, prior, rows, population)

    def prior_check(self, counts: Ints, prior: Array) -> PriorCheck | None:
        """The check of the counts of ones: bits have variance `s (1 - s)` and covariance `-contrast^2 P_j P_k`."""
        flips, parts = self._floats, self._counts(counts)
        chances, pull = flips.set_chances(prior), flips.contrast * prior
        excess, variance = parts.ones - parts.reports * chances, chances * (1 - chances) + pull**2
        return bits_check(excess, flips.contrast, variance, pull[:, None], prior, parts.reports)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person, in closed form: see `unary_estimators`."""
        P, at = prior.probabilities, (self._floats.q01, self._floats.odds)
        if query.kind == "distribution":
            return 1 / learning_gain(P, *at)
        if query.kind == "histogram":
            gain = histogram_gain(P, *at)
        elif query.kind == "guess":
            gain = guess_gain(P, *at)
        elif (rows := query.centred_rows(prior)) is not None and not query.unbiased:
            gain = float(sum_gain(P, *at, rows).sum())
        else:
            return None
        return max(0.0, query.ceiling(prior) - gain)

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution: unless the noise is complete."""
        return self.odds > 1

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """The exact extremes, for one prior or a set of them, and the value itself."""
        if secret is not None or not notion.implies_lip:
            raise Infeasible(
                "unary is certified for LIP or LDP of the value itself", Hint("method", "columns")
            )
        return unary_lifts(self.odds, smallest_mass(prior))

    @property
    def matrix(self) -> Array:
        """The channel in floats, reports in the order of their bits as a number; small domains only."""
        if self.size > _MOST_LISTED:
            raise TooLarge(f"unary encoding of {self.size} values has 2**{self.size} reports")
        bits = np.arange(1 << self.size)[:, None] >> np.arange(self.size) & 1
        q01, q10, odds = self._floats
        noise = np.prod(np.where(bits, q01, 1 - q01), axis=1)
        return np.asarray((noise[:, None] * q10 / (1 - q01) * np.where(bits, odds, 1.0)).T)

    def accepts(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which reports this mechanism can have made: those with no bit beyond the last value."""
        return np.asarray(self._words(reports)[:, -1] & ~np.uint64(self._tail) == 0)

    def parameters(self) -> dict[str, Any]:
        """The four fields; long integers as strings."""
        masses = [str(mass) for mass in self.masses.tolist()]
        return {"masses": masses, "noise": self.noise, "noise_bits": self.noise_bits, "drop": str(self.drop)}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Unary:
        """Read a mechanism from the parameters in its JSON document."""
        masses = np.array([int(mass) for mass in parameters["masses"]], dtype=np.int64)
        noise, noise_bits = parameters["noise"], parameters["noise_bits"]
        if type(noise) is not int or type(noise_bits) is not int:
            raise InvalidInput("noise", noise, "give whole numbers")
        return cls(masses, noise, noise_bits, int(parameters["drop"]))

    @cached_property
    def scoring_prior(self) -> Array:
        """The prior of the scores, in floats."""
        return np.asarray(self.masses / float(self.masses.sum()))

    @cached_property
    def _floats(self) -> Flips:
        q01, q10 = self.flips
        return Flips(float(q01), float(q10), float(self.odds))

    @cached_property
    def _scoring(self) -> Scoring:
        return Scoring.of(self.masses, self.odds)

    def bits(self, reports: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Reports as a 0/1 matrix, a row for each report and a column for each value; for few reports."""
        as_bytes = self._check(reports).view(np.uint8)
        return np.unpackbits(as_bytes, axis=1, count=self.size, bitorder="little")

    def _words(self, reports: npt.ArrayLike) -> Words:
        array = np.asarray(reports)
        if array.ndim != 2 or array.shape[1] != self.width or array.dtype.kind != "u" or array.itemsize != 8:
            shape = f"{array.dtype} array of shape {array.shape}"
            raise ForeignReport("reports", shape, f"give rows of {self.width} 64-bit words")
        return np.ascontiguousarray(array, dtype=WORD)

    def _check(self, reports: npt.ArrayLike) -> Words:
        array = self._words(reports)
        beyond = ~np.uint64(self._tail)
        if beyond and np.bitwise_or.reduce(array[:, -1]) & beyond:
            row = int(np.argmin(self.accepts(array)))
            raise ForeignReport(f"reports[{row}]", array[row], f"only the first {self.size} bits may be set")
        return array


def scoring_masses(weights: Sequence[int]) -> Ints:
    """A prior's exact weights, of any size, as positive integers near `2**50` in all.

    >>> scoring_masses([1, 3]).tolist() == [2**48, 3 * 2**48]
    True
    """
    total = sum(weights)
    return np.array([max(1, (weight << 50) // total) for weight in weights], dtype=np.int64)


def unary_lifts(odds: Fraction, smallest: Fraction) -> Lifts:
    """The exact extremes of the lift when the rarest value has prior `p`.

    They are `1 / (R - (R - 1) p)` and `R / (1 + (R - 1) p)`: the second by the report that shows the
    rarest value alone, the first by the one that shows all others (Theorem 4). For a set of priors `p` is
    the smallest anywhere in the set.

    >>> unary_lifts(Fraction(3), Fraction(1, 4))
    Lifts(lowest=Fraction(2, 5), highest=Fraction(2, 1), ldp=Fraction(3, 1), ratio=Fraction(3, 1))
    """
    shift = (odds - 1) * smallest
    return Lifts(1 / (odds - shift), odds / (1 + shift), odds, odds)


def smallest_mass(prior: Known) -> Fraction:
    """The smallest probability of any value, exactly; over a set, of any value under any prior of it.

    >>> smallest_mass(Prior([0.25, 0.75]))
    Fraction(1, 4)
    """
    if isinstance(prior, Prior):
        return Fraction(min(prior.weights), prior.total)
    units = np.eye(len(prior), dtype=np.int64)
    return min(prior.exact_extremes(unit.tolist())[0] for unit in units)


def _check_masses(masses: npt.ArrayLike) -> Ints:
    array = np.asarray(masses)
    if array.ndim != 1 or array.size < 2 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInput(
            "masses", NOT_SHOWN, f"{array.dtype} {array.shape}; give a list of two or more integers"
        )
    if int(array.min()) < 1 or sum(map(int, array)) > TOTAL:
        raise InvalidInput("masses", array, "give positive integers that add up to at most 2**62")
    owned = np.array(array, dtype=np.int64)
    owned.flags.writeable = False
    return owned


# -- counting ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scoring:
    """How reports of `size` bits are scored: with `1 / (1 + (R - 1) m(y))`, `m(y)` the mass of the set bits.

    Reports are read byte by byte: a table has the mass of every value of every byte, another one collects counts
    and scores by value of a byte, and only at the end are bytes resolved into bits. So a report costs two steps for
    every eight values. Under a uniform prior the score depends on the number of set bits alone.

    `masses[256 * place + byte]` is the prior mass of the set bits of a byte, `slope` is `R - 1` for each unit
    of mass, and `by_ones`, where all values have the same mass, the score of every number of set bits.
    """

    size: int
    masses: Ints
    slope: float
    by_ones: Ints | None

    @classmethod
    def of(cls, masses: Ints, odds: Fraction) -> Scoring:
        """The tables for a prior in integers and odds `R`.

        >>> table = Scoring.of(np.array([1, 1, 2]), Fraction(3))
        >>> table.masses[:8].tolist(), table.slope
        ([0, 1, 1, 2, 2, 3, 3, 4], 0.5)
        """
        padded = np.zeros(32 * -(-masses.size // 32), dtype=np.int64)
        padded[: masses.size] = masses
        slope = float((odds - 1) / int(masses.sum()))
        by_ones = None
        if (masses == masses[0]).all():
            by_ones = kernels.round_scores(np.arange(masses.size + 1) * masses[0], slope, float(SCORE))
        bits = np.arange(256)[:, None] >> np.arange(8) & 1
        return cls(masses.size, (padded.reshape(-1, 8) @ bits.T).reshape(-1), slope, by_ones)

    def score(self, words: Words, columns: Words32, scores: Ints, work: int) -> None:
        """Put the score of every report, in units of `2**-30`, into `scores`.

        >>> table, scores = Scoring.of(np.array([1, 1, 2]), Fraction(3)), np.empty(2, dtype=np.int64)
        >>> words = np.array([[0b000], [0b111]], dtype=np.uint64)
        >>> table.score(words, table.columns(words, work=2), scores, work=2)
        >>> (scores / SCORE).round(6).tolist()
        [1.0, 0.333333]
        """
        if self.by_ones is not None:
            kernels.score_ones(words.reshape(-1), words.shape[1], self.by_ones, scores, work=work)
        else:
            kernels.score_reports(columns, self.masses, self.slope, float(SCORE), scores, work=work)

    def columns(self, words: Words, work: int) -> Words32:
        """The half words of the reports that hold bits of values, a row for each place."""
        halves = words.view(np.uint32)
        used = self.masses.size // 1024
        if self.by_ones is not None or words.shape[1] < _CACHE_LINE:
            return halves[:, :used].T
        columns = np.empty((used, len(words) + _PADDING), dtype=np.uint32)[:, : len(words)]
        kernels.transpose(halves, columns, work=work)
        return columns


def sum_by_byte(table: Scoring, words: Words) -> tuple[Ints, Ints]:
    """For every place and value of a byte, the number of reports that have it, and the sum of their scores."""
    ones, sums = np.zeros((2, table.masses.size), dtype=np.int64)
    step, work = max(1, min(_MOST_IN_BLOCK, _BLOCK_WORDS // words.shape[1])), len(words) * table.size
    for start in range(0, len(words), _MOST_SHARED):
        many = words[start : start + _MOST_SHARED]
        both = np.zeros(table.masses.size, dtype=np.int64)
        for first in range(0, len(many), step):
            part = many[first : first + step]
            columns, scores = table.columns(part, work), np.empty(len(part), dtype=np.int64)
            table.score(part, columns, scores, work)
            kernels.add_by_byte(columns, 1 << _SHIFT, scores, both, work=work)
        ones += both >> _SHIFT
        sums += both & ((1 << _SHIFT) - 1)
    return ones, sums


def sum_by_bit(by_byte: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    """Sums by place and value of a byte, as sums over the bytes that have a bit set, for every bit."""
    places = by_byte.size // 256
    sums = [by_byte.reshape(places, -1, 2, 1 << bit)[:, :, 1].sum(axis=(1, 2)) for bit in range(8)]
    return np.stack(sums, axis=1).reshape(-1)[:size]
