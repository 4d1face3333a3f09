"""Optimised local hashing (OLH) with the library's hash functions and tables: a baseline for `run.py`.

Every seed has the same k-RR on its bins. A report is two words, the seed and the reported bin.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from priorveil.arrays import Ints
from priorveil.certify import TOTAL
from priorveil.mechanisms import Table, kernels
from priorveil.mechanisms.kernels import STEP, splitmix64, with_twin
from priorveil.mechanisms.randomness import Source, Words, word_blocks


def randomized_response(bins: int, ratio: Fraction) -> Table:
    """The k-RR whose probabilities differ by at most the factor `ratio`."""
    other = math.ceil(Fraction(TOTAL) / (ratio + bins - 1))
    return Table(other + np.eye(bins, dtype=np.int64) * (TOTAL - bins * other))


class LocalHash:
    """Hashing of `size` values with any 64-bit seed, and k-RR on the bins."""

    def __init__(self, size: int, bins: int, ratio: Fraction) -> None:
        self.size, self.bins, self.table = size, bins, randomized_response(bins, ratio)
        # Where the bins begin among the 64-bit values of `a x + b`; the last edge wraps to zero.
        edges = [(-(-(y << 32) // bins) << 32) % 2**64 for y in range(bins + 1)]
        self.edges = np.array(edges, dtype=np.uint64)

    def sample(self, codes: np.ndarray, source: Source) -> Words:
        """The reports of many values, rows of seed and reported bin."""
        reports = np.empty((len(codes), 2), dtype=np.uint64)
        for block, words in word_blocks(source, len(codes), 2):
            own, found = np.empty((2, len(words)), dtype=np.int64)
            kernels.hash_values(words[:, 0], codes[block], self.bins, own, work=len(codes))
            self.table.draw(own, words[:, 1:], found, len(codes))
            reports[block, 0], reports[block, 1] = words[:, 0], found
        return reports

    def estimate(self, reports: Words) -> np.ndarray:
        """The histogram that is right on average over seeds and noise, whatever the prior."""
        support = np.zeros(self.size, dtype=np.int64)
        count_support(reports, self.edges, support, work=len(reports) * self.size)
        keep, other = self.table.matrix[0, 0], 1 / self.bins
        return np.asarray((support - len(reports) * other) / (keep - other))


def _count_support(reports: Words, edges: Words, support: Ints) -> None:
    values, widths = np.arange(support.size, dtype=np.uint64), np.diff(edges)
    step = max(1, (1 << 20) // support.size)
    for start in range(0, len(reports), step):
        seeds, bins = reports[start : start + step].T
        a, b = (splitmix64(seeds + np.uint64(k * STEP % 2**64)) for k in (1, 2))
        places = a[:, None] * values + (b - edges[bins])[:, None]
        support += np.count_nonzero(places < widths[bins][:, None], axis=0)


@with_twin(_count_support)
def count_support(reports: Words, edges: Words, support: Ints) -> None:
    """`support[x]` = how many reports have a hash function that sends `x` into the reported bin.

    A report is a seed and a bin; the bin is a range of hashes that begins at `edges[bin]`. The hash of `x`
    is `a * x + b` modulo `2**64`, so walking through `x` is one addition a step. Four reports are walked
    together, which saves three of four visits to `support`; unused places at the end have an empty range.
    """
    block = 256
    steps = np.zeros(block, dtype=np.uint64)
    places = np.zeros(block, dtype=np.uint64)
    widths = np.zeros(block, dtype=np.uint64)
    golden = np.uint64(0x9E3779B97F4A7C15)
    first, second = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    for start in range(0, reports.shape[0], block):
        count = min(block, reports.shape[0] - start)
        widths[count:] = np.uint64(0)
        for i in range(count):
            a = reports[start + i, 0] + golden
            b = a + golden
            a = (a ^ (a >> np.uint64(30))) * first
            b = (b ^ (b >> np.uint64(30))) * first
            a = (a ^ (a >> np.uint64(27))) * second
            b = (b ^ (b >> np.uint64(27))) * second
            bin_ = np.int64(reports[start + i, 1])
            steps[i] = a ^ (a >> np.uint64(31))
            places[i] = (b ^ (b >> np.uint64(31))) - edges[bin_]
            widths[i] = edges[bin_ + 1] - edges[bin_]
        for i in range(0, count, 4):
            step0, place0, width0 = steps[i], places[i], widths[i]
            step1, place1, width1 = steps[i + 1], places[i + 1], widths[i + 1]
            step2, place2, width2 = steps[i + 2], places[i + 2], widths[i + 2]
            step3, place3, width3 = steps[i + 3], places[i + 3], widths[i + 3]
            for x in range(support.size):
                inside = np.int64(place0 < width0) + np.int64(place1 < width1)
                inside += np.int64(place2 < width2) + np.int64(place3 < width3)
                support[x] += inside
                place0 += step0
                place1 += step1
                place2 += step2
                place3 += step3
