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
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
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
from priorveil.mechanisms.score_test import PriorCheck, bits_check
from priorveil.mechanisms.unary_estimators import (
    UnaryLaw,
    balanced_moments,
    guess_gain,
    histogram_gain,
    joint_moments,
    learning_gain,
    sum_gain,
)
from priorveil.notions import Known, Secrets
from priorveil.priors import Array, Ints, Prior
from priorveil.queries import Query

# Values for which all reports can be listed.
_MOST_LISTED = 12


@dataclass(frozen=True, eq=False)
class Unary(BitReports):
    """Unary encoding of `len(masses)` values.

    >>> mechanism = Unary(np.array([1, 1, 2]), noise=1, noise_bits=2, drop=TOTAL // 2)
    >>> mechanism.draws_per_report, mechanism.odds
    (3, Fraction(3, 1))
    """

    noise: int
    noise_bits: int
    drop: int

    kind: ClassVar[str] = "unary"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.noise_bits <= 62:
            raise InvalidInput("noise_bits", self.noise_bits, "give a number from 1 to 62")
        if not 0 < self.noise < 1 << self.noise_bits:
            raise InvalidInput("noise", self.noise, f"give an integer above 0 and below 2**{self.noise_bits}")
        if not 0 < self.drop < TOTAL:
            raise InvalidInput("drop", self.drop, "give an integer above 0 and below 2**62")
        if self.odds < 1:
            raise InvalidInput("drop", self.drop, "give less noise: a set bit must favour its value")

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

    @cached_property
    def law(self) -> UnaryLaw:
        """The law of a report in floats."""
        q01, q10 = self.flips
        return UnaryLaw(float(q01), float(q10), float(self.odds))

    def sample(self, codes: npt.ArrayLike, source: Source) -> Words:
        """The reports of many values, one row each."""
        rows = check_codes(codes, self.size)
        reports = np.empty((rows.size, self.width), dtype=WORD)
        coins = self.noise, self.noise_bits, np.uint64(TOTAL - self.drop), np.uint64(self._tail)
        work = rows.size * self.draws_per_report
        for block, words in blocks(source, rows.size, self.draws_per_report):
            kernels.flip_bits(rows[block], words, *coins, reports[block], work=work)
        return reports

    def answer(
        self, method: str, counts: npt.NDArray[Any], prior: Array, rows: Array | None, population: bool
    ) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None; see also `unary_estimators`."""
        law, parts = self.law, self._counts(counts)
        if method == "mmse":
            posteriors = joint_moments if self.fits(prior) else bit_estimators.bitwise_posteriors
            return posteriors(law, parts, prior, rows)
        if not self.identifies():
            raise not_identifiable()
        if method == "unbiased":
            return bit_estimators.ones_moments(law, parts, rows, population)
        balanced = partial(balanced_moments, law, parts, rows=rows, population=population)
        if method == "score":
            return balanced(prior)
        return bit_estimators.most_likely_ones(
            law, parts, prior, rows, lambda shares: balanced(shares).variance
        )

    def prior_check(self, counts: Ints, prior: Array) -> PriorCheck | None:
        """The check of the counts of ones: bits have variance `s (1 - s)` and covariance `-contrast^2 P_j P_k`."""
        law, parts = self.law, self._counts(counts)
        chances, pull = bit_estimators.set_chances(law, prior), law.contrast * prior
        excess, variance = parts.ones - parts.reports * chances, chances * (1 - chances) + pull**2
        return bits_check(excess, law.contrast, variance, pull[:, None], prior, parts.reports)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person, in closed form: see `unary_estimators`."""
        P, at = prior.probabilities, (self.law.q01, self.law.odds)
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

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """The exact extremes, for one prior or a set of them, and the value itself."""
        if secret is not None or not notion.implies_lip:
            raise Infeasible(
                "unary is certified for LIP or LDP of the value itself", Hint("method", "columns")
            )
        return unary_lifts(self.odds, smallest_mass(prior))

    @property
    def base_chances(self) -> tuple[float, float]:
        """`q01`, and the chance that all of the independent bits are clear."""
        q01 = self.law.q01
        return q01, (1 - q01) ** self.size

    @property
    def matrix(self) -> Array:
        """The channel in floats, reports in the order of their bits as a number; small domains only."""
        if self.size > _MOST_LISTED:
            raise TooLarge(
                f"unary encoding of {self.size:,} values has 2**{self.size} reports, too many to write out",
                MEASURE_WITHOUT,
            )
        bits = np.arange(1 << self.size)[:, None] >> np.arange(self.size) & 1
        q01, q10, odds = self.law
        noise = np.prod(np.where(bits, q01, 1 - q01), axis=1)
        return np.asarray((noise[:, None] * q10 / (1 - q01) * np.where(bits, odds, 1.0)).T)

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
