"""Counting unary reports: how many show each value, and the sum of their scores.

The score of a report is `1 / (1 + (R - 1) m(y))`, `m(y)` the prior mass of its set bits; it is what the
posterior given the whole report needs. Reports are taken byte by byte: a table has the mass of every value of
every byte, and another one collects counts and scores by value of a byte; only at the end are bytes taken apart
into bits. So a report costs two steps for every eight values. Under a uniform prior the score depends on the
number of set bits alone, and the first of the two steps is counting them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms import kernels
from priorveil.mechanisms.randomness import Words

Integers = npt.NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)

# Scores are kept as integers in units of 2**-30, so that sums of parts equal the sum of the whole.
SCORE = 1 << 30
# A count and a sum of scores share a 64-bit number, so that a byte touches the memory once: the count is shifted
# by 46 bits. That holds for _MOST_SHARED reports: 2**16 * SCORE is 2**46, and 2**16 * 2**46 is 2**62.
_SHIFT = 46
_MOST_SHARED = (1 << 16) - 1
# Reports are gone through twice, to score and to add: as many words at a time as the processor keeps close by.
_CLOSE_WORDS = 1 << 14


@dataclass(frozen=True, eq=False)
class Scoring:
    """How reports of `size` bits are scored.

    `masses[256 * place + byte]` is the prior mass of the set bits of a byte, `slope` is `R - 1` for each unit
    of mass, and `by_ones`, where all values have the same mass, the score of every number of set bits.
    """

    size: int
    masses: Integers
    slope: float
    by_ones: Integers | None

    @property
    def width(self) -> int:
        """Words in a report."""
        return -(-self.size // 64)

    @property
    def halves(self) -> int:
        """Half words that hold bits of values: as far as reports are read."""
        return -(-self.size // 32)


class Counted(NamedTuple):
    """How many reports show each value, the sum of their scores, and the sum of all scores."""

    ones: Integers
    scores: Integers
    base: int


def scoring(masses: Integers, odds: Fraction) -> Scoring:
    """The tables for a prior in integers and odds `R`.

    >>> table = scoring(np.array([1, 1, 2]), Fraction(3))
    >>> table.masses[:8].tolist(), table.slope
    ([0, 1, 1, 2, 2, 3, 3, 4], 0.5)
    """
    halves = -(-masses.size // 32)
    padded = np.zeros(32 * halves, dtype=np.int64)
    padded[: masses.size] = masses
    slope = float((odds - 1) / int(masses.sum()))
    alike = bool((masses == masses[0]).all())
    by_ones = _rounded(np.arange(masses.size + 1) * masses[0], slope) if alike else None
    return Scoring(masses.size, (padded.reshape(-1, 8) @ _BITS_OF_BYTE.T).reshape(-1), slope, by_ones)


def scores_of(table: Scoring, words: Words) -> Integers:
    """The score of every report, in units of `2**-30`; reports in rows.

    >>> scores_of(scoring(np.array([1, 1, 2]), Fraction(3)), np.array([[0b000], [0b111]], dtype=np.uint64)) / SCORE
    array([1.        , 0.33333333])
    """
    scores = np.empty(words.shape[0], dtype=np.int64)
    _score(table, words, words.shape[0] * table.size, scores)
    return scores


def counted(table: Scoring, words: Words) -> Counted:
    """What reports, in rows, add up to."""
    ones, scores = np.zeros((2, table.masses.size), dtype=np.int64)
    for start in range(0, words.shape[0], _MOST_SHARED):
        both = _shared_sums(table, words[start : start + _MOST_SHARED])
        ones += both >> _SHIFT
        scores += both & ((1 << _SHIFT) - 1)
    return Counted(by_bit(ones, table.size), by_bit(scores, table.size), int(scores[:256].sum()))


def by_bit(by_byte: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    """Sums by place and value of a byte, as sums over the bytes that have a bit set, for every bit."""
    places = by_byte.size // 256
    sums = [by_byte.reshape(places, -1, 2, 1 << bit)[:, :, 1].sum(axis=(1, 2)) for bit in range(8)]
    return np.stack(sums, axis=1).reshape(-1)[:size]


def _shared_sums(table: Scoring, words: Words) -> Integers:
    """For every place and value of a byte: how many reports have it, shifted, plus the sum of their scores."""
    sums, work = np.zeros(table.masses.size, dtype=np.int64), words.shape[0] * table.size
    add = kernels.fast(kernels.add_by_byte, work) or add_by_byte
    step = max(1, _CLOSE_WORDS // table.width)
    scores = np.empty(min(step, words.shape[0]), dtype=np.int64)
    for start in range(0, words.shape[0], step):
        part = words[start : start + step]
        mine = scores[: part.shape[0]]
        _score(table, part, work, mine)
        add(part.reshape(-1), table.width, table.halves, 1 << _SHIFT, mine, sums)
    return sums


def _score(table: Scoring, words: Words, work: int, scores: Integers) -> None:
    """Fill `scores`; `work` says how much there is in all."""
    by_ones = kernels.fast(kernels.score_ones, work)
    if table.by_ones is not None and by_ones is not None:
        by_ones(words.reshape(-1), table.width, table.by_ones, scores)
    else:
        loop = kernels.fast(kernels.score_reports, work) or score_reports
        loop(words.reshape(-1), table.width, table.halves, table.masses, table.slope, float(SCORE), scores)


def score_reports(
    words: Words, width: int, halves: int, masses: Integers, slope: float, scale: float, scores: Integers
) -> None:
    """The numpy twin of `kernels.score_reports` and, where masses are equal, of `kernels.score_ones`."""
    mass = np.zeros(scores.size, dtype=np.int64)
    for column, by_byte in zip(_bytes(words, width, halves), masses.reshape(-1, 256), strict=True):
        mass += by_byte[column]
    scores[:] = _rounded(mass, slope, scale)


def _rounded(mass: Integers, slope: float, scale: float = float(SCORE)) -> Integers:
    return np.rint(scale / (1.0 + slope * mass.astype(np.float64))).astype(np.int64)


def add_by_byte(words: Words, width: int, halves: int, one: int, scores: Integers, sums: Integers) -> None:
    """The numpy twin of `kernels.add_by_byte`; `bincount` adds scores in floats, exact for so few reports."""
    for column, by_byte in zip(_bytes(words, width, halves), sums.reshape(-1, 256), strict=True):
        by_byte += one * np.bincount(column, minlength=256)
        by_byte += np.bincount(column, scores, 256).astype(np.int64)


def _bytes(words: Words, width: int, halves: int) -> npt.NDArray[np.uint8]:
    """The bytes of all reports that hold bits of values, a row for each place."""
    return words.reshape(-1, width).view(np.uint8)[:, : 4 * halves].T


# Bit j of byte v, as a (256, 8) matrix.
_BITS_OF_BYTE = np.arange(256)[:, None] >> np.arange(8) & 1
