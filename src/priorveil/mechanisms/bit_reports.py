"""Reports that are rows of bits, one for each value.

A report is `ceil(size / 64)` little-endian words; bit `x % 64` of word `x // 64` stands for value `x`. A set bit makes
its value likelier by the odds `R`, a clear bit does not, so with `m(y)` the prior mass of the set bits of a report `y`
the posterior of `x` is `P_x R^y_x / (1 + (R - 1) m(y))`. `1 / (1 + (R - 1) m(y))` is the *base
lift* of a report: the lift of a value whose bit is clear.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, own_integers
from priorveil.certify import TOTAL, Certificate, Lifts
from priorveil.errors import ForeignReport, Hint, Infeasible, InvalidInput, TooLarge, plural
from priorveil.mechanisms.bit_law import BitLaw
from priorveil.mechanisms.interface import FROM_PRIVATIZE, MEASURE_WITHOUT, Mechanism
from priorveil.mechanisms.randomness import WORD, Words
from priorveil.notions import Cone, Leakage, PriorOrSet, Secrets

MOST_LISTED = 5_000  # reports up to which the channel is written out


@dataclass(frozen=True, eq=False)
class BitReports(Mechanism):
    """A mechanism whose reports are rows of bits.

    `masses` is the prior in integers, used for lifts alone, not for sampling or privacy.
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
        chances /= chances.sum()  # only reports with the right number of bits are left
        return np.asarray((np.where(bits, law.odds, 1.0) * chances[:, None] / law.scale).T)

    @abstractmethod
    def extreme_masses(self, prior: PriorOrSet) -> tuple[Fraction, Fraction]:
        """The smallest and the largest prior mass of the set bits of a report that has bits set and bits clear."""

    def lifts(self, prior: PriorOrSet, secret: Secrets, notion: Cone) -> Lifts:
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

    def levels(self, prior: PriorOrSet, secret: Secrets, proven: Certificate) -> Leakage:
        """Exact for all notions but MIP, from the odds `R`; measured where all reports can be listed.

        The likeliest value of a report has its bit set, unless none is. With `p` the chance of a person's own bit,
        mutual information is `p log R - E[log(1 + c m)]`, and the last term is at least `log(1 + c share)`: under
        `B` it is the mean of the convex `D log D`, `D = 1 + c m`, over the mean of `D`.
        """
        leakage = super().levels(prior, secret, proven)
        if not leakage.bounds:
            return leakage
        law, empty = self.law, 1 - float(self.law.first_chances(self.size).sum())
        mil = math.log((law.odds - (law.odds - 1) * empty) / law.scale)
        mip = law.p * math.log(law.odds) - math.log(law.scale)
        return replace(leakage, mil=mil, mip=None if leakage.mip is None else max(mip, 0.0), bounds=("MIP",))

    def accepts(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which reports this mechanism can have made: those with no bit beyond the last value."""
        words = self.report_array(reports)
        # Where words have no such bits, they are not read.
        return words[:, -1] <= np.uint64(self._tail) if self.size % 64 else np.ones(len(words), dtype=bool)

    def report_array(self, reports: npt.ArrayLike) -> Words:
        """The reports as rows of words."""
        array = np.asarray(reports)
        if array.ndim != 2 or array.shape[1] != self.width or array.dtype.kind != "u" or array.itemsize != 8:
            shape = f"{array.dtype} array of shape {array.shape}"
            advice = f"give rows of {plural(self.width, '64-bit word')}, of type uint64; {FROM_PRIVATIZE}"
            if array.dtype.kind == "U":  # as in JSON
                words = f"np.frombuffer(bytes.fromhex(''.join(reports)), '<u8').reshape(-1, {self.width})"
                advice += f"; hexadecimal reports become such rows by {words}"
            elif array.ndim == 1:
                advice += "; put a single report in a list"
            elif array.dtype.kind != "u":
                advice += "; lists of integers become such rows by np.array(reports, dtype=np.uint64)"
            raise ForeignReport("reports", shape, advice)
        return np.ascontiguousarray(array, dtype=WORD)

    @property
    def allowed_reports(self) -> str:
        """Which bits may be set, in words."""
        return f"only the first {self.size} bits may be set"


def lift_masses(weights: Sequence[int]) -> Ints:
    """A prior's exact weights, of any size, as positive integers near `2**50` in all.

    >>> lift_masses([1, 3]).tolist() == [2**48, 3 * 2**48]
    True
    """
    total = sum(weights)
    return np.array([max(1, (weight << 50) // total) for weight in weights], dtype=np.int64)
