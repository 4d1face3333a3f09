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

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from priorveil.arrays import Ints
from priorveil.certify import TOTAL
from priorveil.errors import InvalidInput
from priorveil.mechanisms import kernels
from priorveil.mechanisms.bit_law import BitLaw, unary_law
from priorveil.mechanisms.bit_reports import BitReports
from priorveil.mechanisms.randomness import Words
from priorveil.notions import PriorOrSet
from priorveil.priors import Prior


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
    def law(self) -> BitLaw:
        """The law of a report in floats."""
        return unary_law(float(self.odds), float(self.flips[0]))

    def draw(self, codes: Ints, words: Words, reports: Words, total: int) -> None:
        """Fill `reports` for valid codes."""
        coins = self.noise, self.noise_bits, np.uint64(TOTAL - self.drop), np.uint64(self._tail)
        kernels.flip_bits(codes, words, *coins, reports, work=total * self.draws_per_report)

    def extreme_masses(self, prior: PriorOrSet) -> tuple[Fraction, Fraction]:
        """The masses of the rarest value and of all others; for a set of priors, the rarest under any of them."""
        rarest = smallest_mass(prior)
        return rarest, 1 - rarest

    def parameters(self) -> dict[str, Any]:
        """The four fields; long integers as strings."""
        coins = {"noise": self.noise, "noise_bits": self.noise_bits, "drop": str(self.drop)}
        return super().parameters() | coins


def smallest_mass(prior: PriorOrSet) -> Fraction:
    """The smallest probability of any value, exactly; over a set, of any value under any prior of it.

    >>> smallest_mass(Prior([0.25, 0.75]))
    Fraction(1, 4)
    """
    if isinstance(prior, Prior):
        return Fraction(min(prior.weights), prior.total)
    return min(prior.exact_extremes(unit.tolist())[0] for unit in np.eye(len(prior), dtype=np.int64))
