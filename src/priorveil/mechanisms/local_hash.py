"""Local hashing with any seed: the LDP mechanism known as OLH, the baseline to compare with.

The hash functions are those of `priorveil.mechanisms.hashing`; every seed has the same k-RR on its bins. A
report is two words, the seed and the reported bin. Randomness: two words; the first is the seed, the second
goes to the k-RR as in `priorveil.mechanisms.table`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.certify import TOTAL
from priorveil.errors import ForeignReport, InvalidInput
from priorveil.mechanisms import kernels
from priorveil.mechanisms.codes import checked_codes
from priorveil.mechanisms.hashing import bins_of, coefficients, hash_values
from priorveil.mechanisms.randomness import WORD, Source, Words, blocks
from priorveil.mechanisms.table import Integers, Table

_ALL = (1 << 64) - 1
# Reports times values in memory at once, when numpy counts support.
_NUMPY_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class LocalHash:
    """Hashing with any 64-bit seed and one k-RR table on the bins: an LDP mechanism (OLH).

    Every bin but the true one is reported with probability `other / 2**62`.

    >>> LocalHash.at_ratio(100, 4, Fraction(3)).channel.matrix[0]
    array([0.5       , 0.16666667, 0.16666667, 0.16666667])
    """

    size: int
    bins: int
    other: int

    draws_per_report: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 2 <= self.bins < 1 << 31:
            raise InvalidInput("bins", self.bins, "give two or more")
        if not 0 < self.other <= TOTAL // self.bins:
            raise InvalidInput("other", self.other, f"give a positive integer of at most 2**62 / {self.bins}")

    @classmethod
    def at_ratio(cls, size: int, bins: int, ratio: Fraction) -> LocalHash:
        """The k-RR on the bins whose probabilities differ by at most the factor `ratio`."""
        other = math.ceil(Fraction(TOTAL) / (ratio + bins - 1))
        if other * bins > TOTAL:
            raise InvalidInput("ratio", ratio, "give a number above one")
        return cls(size, bins, other)

    @cached_property
    def channel(self) -> Table:
        """What is done to the bin."""
        extra = np.eye(self.bins, dtype=np.int64) * (TOTAL - self.bins * self.other)
        return Table(self.other + extra)

    @property
    def ratio(self) -> Fraction:
        """The exact LDP ratio."""
        return Fraction(TOTAL - (self.bins - 1) * self.other, self.other)

    def sample_one(self, code: int, source: Source) -> Words:
        """The report of one value: the seed and the reported bin."""
        values = checked_codes([code], self.size)
        seed, word = source.words(2)
        told = self.channel.scan(int(bins_of(seed, values, self.bins)[0]), word)
        return np.array([seed, told], dtype=WORD)

    def sample(self, codes: npt.ArrayLike, source: Source) -> Words:
        """The reports of many values, rows of seed and reported bin."""
        values = checked_codes(codes, self.size)
        reports = np.empty((values.size, 2), dtype=WORD)
        loop = kernels.fast(kernels.hash_values, values.size) or hash_values
        for block, words in blocks(source, values.size, self.draws_per_report):
            reports[block, 0] = words[:, 0]
            own, told = np.empty((2, words.shape[0]), dtype=np.int64)
            loop(words[:, 0], values[block], self.bins, own)
            self.channel.look_up(own, words[:, 1], told, values.size)
            reports[block, 1] = told
        return reports

    def accumulate(self, reports: npt.ArrayLike) -> Integers:
        """`[N, support (d)]`: in how many reports the reported bin is the bin of `x`."""
        array = self._checked(reports)
        support = np.zeros(self.size, dtype=np.int64)
        loop = kernels.fast(kernels.count_support, array.shape[0] * self.size) or count_support
        loop(array, _bin_edges(self.bins), support)
        return np.concatenate([np.array([array.shape[0]], dtype=np.int64), support])

    def unbiased_sum(self, tally: Integers) -> npt.NDArray[np.float64]:
        """The histogram that is right on average over seeds and noise, whatever the prior."""
        keep, other = 1 - (self.bins - 1) * self.other / TOTAL, 1 / self.bins
        return np.asarray((tally[1:] - int(tally[0]) * other) / (keep - other))

    def likelihood(self, report: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """`Pr(report | x)` for every value `x`, up to a factor."""
        seed, told = self._checked(np.reshape(np.asarray(report), (1, 2)))[0]
        own = bins_of(seed, np.arange(self.size), self.bins) == int(told)
        return np.where(own, float(self.ratio), 1.0)

    def _checked(self, reports: npt.ArrayLike) -> Words:
        array = np.asarray(reports)
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind != "u" or array.itemsize != 8:
            shape = f"{array.dtype} array of shape {array.shape}"
            raise ForeignReport("reports", shape, "give rows of two 64-bit words, seed and bin")
        if array.size and int(array[:, 1].max()) >= self.bins:
            row = int(np.argmax(array[:, 1] >= self.bins))
            raise ForeignReport(f"reports[{row}]", array[row], f"the bin must be 0 to {self.bins - 1}")
        return np.asarray(array, dtype=WORD)


def _bin_edges(bins: int) -> Words:
    """Where the bins begin among the 64-bit values of `a x + b`; the last edge wraps to zero.

    >>> [int(edge) >> 32 for edge in _bin_edges(3)]
    [0, 1431655766, 2863311531, 0]
    """
    edges = [(-(-(y << 32) // bins) << 32) & _ALL for y in range(bins + 1)]
    return np.array(edges, dtype=WORD)


def count_support(reports: Words, edges: Words, support: Integers) -> None:
    """The numpy twin of `kernels.count_support`."""
    values = np.arange(support.size, dtype=np.uint64)
    widths = np.diff(edges)
    step = max(1, _NUMPY_CELLS // support.size)
    for start in range(0, reports.shape[0], step):
        seeds, told = reports[start : start + step].T
        a, b = coefficients(seeds)
        places = a[:, None] * values + (b - edges[told])[:, None]
        support += np.count_nonzero(places < widths[told][:, None], axis=0)
