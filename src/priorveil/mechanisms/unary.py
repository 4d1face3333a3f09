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
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.certify import TOTAL, Certifiable, Lifts
from priorveil.errors import ForeignReport, Hint, Infeasible, InvalidInput, TooLarge
from priorveil.mechanisms import kernels
from priorveil.mechanisms.codes import checked_codes
from priorveil.mechanisms.moments import Moments, not_identifiable
from priorveil.mechanisms.randomness import WORD, Source, Words, blocks
from priorveil.mechanisms.table import Integers
from priorveil.mechanisms.unary_counting import SCORE, Scoring, by_bit, counted, scores_of, scoring
from priorveil.mechanisms.unary_law import guess_gain, histogram_gain, learning_gain, sum_gain
from priorveil.mechanisms.unary_reading import (
    Flips,
    Seen,
    bitwise_moments,
    composite_moments,
    joint_moments,
    levelled_moments,
    ones_check,
    unbiased_moments,
)
from priorveil.notions import Known, Secrets
from priorveil.priors import Prior
from priorveil.queries import Query

Array = npt.NDArray[np.float64]

# Values for which all reports can be listed.
_MOST_LISTED = 12


@dataclass(frozen=True, eq=False)
class Unary:
    """Unary encoding of `len(masses)` values.

    `masses` is the prior in integers, for scoring alone: neither sampling nor privacy looks at it.

    >>> mechanism = Unary(np.array([1, 1, 2]), noise=1, noise_bits=2, drop=TOTAL // 2)
    >>> mechanism.draws_per_report, mechanism.odds
    (3, Fraction(3, 1))
    """

    masses: Integers
    noise: int
    noise_bits: int
    drop: int

    kind: ClassVar[str] = "unary"

    def __post_init__(self) -> None:
        object.__setattr__(self, "masses", _checked_masses(self.masses))
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

    def sample_one(self, code: int, source: Source) -> Words:
        """The report of one value."""
        place = int(checked_codes([code], self.size)[0])
        words = source.words(self.draws_per_report).reshape(1, -1)
        bits = sum(int(word) << 64 * i for i, word in enumerate(_noise(self, words)[0]))
        kept = int(int(words[0, -1]) >> 2 < TOTAL - self.drop)
        bits = bits & ~(1 << place) | kept << place
        return np.frombuffer(bits.to_bytes(8 * self.width, "little"), dtype=WORD)

    def sample(self, codes: npt.ArrayLike, source: Source) -> Words:
        """The reports of many values, one row each."""
        rows = checked_codes(codes, self.size)
        reports = np.empty((rows.size, self.width), dtype=WORD)
        loop = kernels.fast(kernels.flip_bits, rows.size * self.draws_per_report) or flip_bits
        keep, tail = np.uint64(TOTAL - self.drop), np.uint64(self._tail)
        for block, words in blocks(source, rows.size, self.draws_per_report):
            loop(rows[block], words, self.noise, self.noise_bits, keep, tail, reports[block])
        return reports

    def accumulate(self, reports: npt.ArrayLike) -> Integers:
        """What every estimate needs: `[N, sum of scores, ones (d), sum of scores by set bit (d)]`.

        The score of a report is `1 / (1 + (R - 1) m(y))` in units of `2**-30`, under the prior `masses`.
        Ones serve the bit-by-bit and the unbiased estimators, scores the posterior given the whole report.
        """
        array = self._checked(reports)
        ones, scores, base = counted(self._scoring, array)
        return np.concatenate([np.array([array.shape[0], base], dtype=np.int64), ones, scores])

    def seen(self, counts: npt.NDArray[Any]) -> Seen:
        """The parts of an accumulated array, scores as numbers."""
        if counts.shape != (2 * self.size + 2,):
            raise InvalidInput("counts", counts.shape, f"give the {2 * self.size + 2} integers of accumulate")
        ones, scores = counts[2 : 2 + self.size], counts[2 + self.size :]
        return Seen(float(counts[0]), ones.astype(np.float64), float(counts[1]) / SCORE, scores / SCORE)

    def answer(
        self, method: str, counts: npt.NDArray[Any], prior: Array, rows: Array | None, population: bool
    ) -> Moments:
        """The histogram, or the statistics `rows @ histogram`, by `mmse`, `unbiased` or `mle`: see `unary_reading`."""
        flips, seen = self._floats, self.seen(counts)
        if method == "mmse":
            joint = np.allclose(prior, self.scoring_prior, rtol=1e-9, atol=0.0)
            return (joint_moments if joint else bitwise_moments)(flips, seen, prior, rows)
        if not self.identifies():
            raise not_identifiable()
        if method == "unbiased":
            return unbiased_moments(flips, seen, rows, population)
        if method == "score":
            return levelled_moments(flips, seen, prior, rows, population)
        return composite_moments(flips, seen, prior, rows, population)

    def prior_check(self, counts: Integers, prior: Array) -> float | None:
        """The p-value of the counts of ones under a prior."""
        return ones_check(self._floats, self.seen(counts), prior)

    def weigh(self, reports: npt.ArrayLike, weights: Array) -> Array:
        """As `accumulate`, in floats: every report is counted as often as its weight says."""
        words = self._checked(reports)
        score = weights * scores_of(self._scoring, words)
        head = np.array([weights.sum(), score.sum()])
        columns = words.view(np.uint8).T
        sums = (np.stack([np.bincount(column, w, 256) for column in columns]) for w in (weights, score))
        return np.concatenate([head, *(by_bit(by_byte, self.size) for by_byte in sums)])

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person, in closed form: see `unary_law`."""
        P, at = prior.probabilities, (self._floats.q01, self._floats.odds)
        if query.kind == "distribution":
            return 1 / learning_gain(P, *at)
        if query.kind == "histogram":
            gain = histogram_gain(P, *at)
        elif query.kind == "guess":
            gain = guess_gain(P, *at)
        elif (rows := query.centred_rows(prior)) is not None:
            gain = float(sum_gain(P, *at, rows).sum())
        else:
            return None
        return max(0.0, query.ceiling(prior) - gain)

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution: whenever they tell anything."""
        return self.odds > 1

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """The exact extremes, for one prior or a set of them, and the value itself."""
        if secret is not None or not notion.implies_lip:
            raise Infeasible(
                "unary encoding is certified for LIP or LDP of the value itself", Hint("method", "columns")
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
        """The mechanism of these parameters."""
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
        return scoring(self.masses, self.odds)

    def likelihood(self, report: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """`Pr(report | x)` for every value `x`, up to a factor: `R` where the bit is set, else 1."""
        bits = self.bits(np.reshape(np.asarray(report), (1, -1)))[0]
        return np.where(bits, float(self.odds), 1.0)

    def bits(self, reports: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Reports as rows of zeros and ones: reports times values of them, so for a few reports."""
        as_bytes = self._checked(reports).view(np.uint8)
        return np.unpackbits(as_bytes, axis=1, count=self.size, bitorder="little")

    def _words(self, reports: npt.ArrayLike) -> Words:
        array = np.asarray(reports)
        if array.ndim != 2 or array.shape[1] != self.width or array.dtype.kind != "u" or array.itemsize != 8:
            shape = f"{array.dtype} array of shape {array.shape}"
            raise ForeignReport("reports", shape, f"give rows of {self.width} 64-bit words")
        return np.ascontiguousarray(array, dtype=WORD)

    def _checked(self, reports: npt.ArrayLike) -> Words:
        array = self._words(reports)
        beyond = ~np.uint64(self._tail)
        if beyond and np.bitwise_or.reduce(array[:, -1]) & beyond:
            row = int(np.argmin(self.accepts(array)))
            raise ForeignReport(f"reports[{row}]", array[row], f"only the first {self.size} bits may be set")
        return array


def scoring_masses(weights: Sequence[int]) -> Integers:
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


def _checked_masses(masses: npt.ArrayLike) -> Integers:
    array = np.asarray(masses)
    if array.ndim != 1 or array.size < 2 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInput("masses", f"{array.dtype} {array.shape}", "give a list of two or more integers")
    if int(array.min()) < 1 or sum(map(int, array)) > TOTAL:
        raise InvalidInput("masses", array, "give positive integers that add up to at most 2**62")
    owned = np.array(array, dtype=np.int64)
    owned.flags.writeable = False
    return owned


def _noise(mechanism: Unary, words: Words) -> Words:
    """The noise of every bit: rows of words, each bit set with probability `noise / 2**noise_bits`."""
    return noise_words(words[:, :-1], mechanism.noise, mechanism.noise_bits, np.uint64(mechanism._tail))


def noise_words(words: Words, noise: int, bits: int, tail: np.uint64) -> Words:
    """Every 64 bits from `bits` words: *or* in a word for a one of `noise`, *and* it for a zero.

    >>> noise_words(np.array([[12, 10]], dtype=np.uint64), 3, 2, np.uint64(15))
    array([[14]], dtype=uint64)
    """
    levels = words.reshape(words.shape[0], -1, bits)
    mixed = np.zeros(levels.shape[:2], dtype=WORD)
    for level in range(bits):
        change = np.bitwise_or if noise >> level & 1 else np.bitwise_and
        change(mixed, levels[:, :, level], out=mixed)
    mixed[:, -1] &= tail
    return mixed


def flip_bits(
    codes: Integers, words: Words, noise: int, bits: int, keep: np.uint64, tail: np.uint64, reports: Words
) -> None:
    """The numpy twin of `kernels.flip_bits`."""
    reports[:] = noise_words(words[:, :-1], noise, bits, tail)
    rows, columns, places = np.arange(codes.size), codes >> 6, (codes & 63).astype(np.uint64)
    kept = (words[:, -1] >> np.uint64(2) < keep).astype(np.uint64)
    reports[rows, columns] = reports[rows, columns] & ~(np.uint64(1) << places) | kept << places
