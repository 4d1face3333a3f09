"""The inner loops, as plain Python that numba compiles where it is installed.

Nothing here decides anything: every loop has a numpy twin in the module that calls it, with the same
result bit for bit. `fast` gives the compiled loop when there is enough work to pay for it, and None when
there is not or numba is missing. numba itself is imported on first use, so that `import priorveil` stays
light.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Loop = TypeVar("Loop", bound=Callable[..., None])
Signed = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

# Reports times inner steps below which loading a compiled loop costs more than it saves.
ENOUGH_WORK = 200_000


def fast(loop: Loop, work: int) -> Loop | None:
    """The compiled loop, or None when numpy serves better.

    >>> fast(scan_table, 10) is None
    True
    """
    return compiled(loop) if work >= ENOUGH_WORK else None


@functools.cache
def compiled(loop: Loop) -> Loop | None:
    """The loop compiled by numba (kept on disk between runs if the disk allows), or None without numba."""
    try:
        numba: Any = importlib.import_module("numba")
    except ImportError:
        return None
    try:
        made: Loop = numba.njit(cache=True, nogil=True)(loop)
    except RuntimeError:
        made = numba.njit(nogil=True)(loop)
    return made


def scan_table(
    rows: Signed,
    words: Words,
    thresholds: Words,
    guide: npt.NDArray[np.uint32],
    shift: np.uint64,
    reports: Signed,
) -> None:
    """`reports[i]` = how many thresholds of row `rows[i]` are at most the draw, from the guide upwards."""
    for i in range(rows.size):
        x = rows[i]
        draw = words[i] >> np.uint64(2)
        y = np.int64(guide[x, np.int64(draw >> shift)])
        # Adding the comparison first saves the branch that the processor would guess wrong.
        y += np.int64(thresholds[x, y] <= draw)
        while thresholds[x, y] <= draw:
            y += 1
        reports[i] = y


def scan_shared(
    rows: Signed,
    words: Words,
    own: np.uint64,
    thresholds: Words,
    guide: npt.NDArray[np.uint32],
    shift: np.uint64,
    reports: Signed,
) -> None:
    """As `scan_table`, for rows that are one common row with `own` added on the diagonal."""
    for i in range(rows.size):
        x = rows[i]
        draw = words[i] >> np.uint64(2)
        start = thresholds[0, x]
        past = draw >= start
        is_own = past and draw - start < own
        # An own draw looks up zero, which ends at once, and then takes x instead of what it found.
        moved = np.uint64(0) if is_own else (draw - own if past else draw)
        y = np.int64(guide[0, np.int64(moved >> shift)])
        y += np.int64(thresholds[0, y + 1] <= moved)
        while thresholds[0, y + 1] <= moved:
            y += 1
        reports[i] = x if is_own else y


def flip_bits(
    codes: Signed, words: Words, noise: int, bits: int, keep: np.uint64, tail: np.uint64, reports: Words
) -> None:
    """Bit vectors with independent noise, and bit `codes[i]` kept with probability `keep / 2**62`."""
    one, zero = np.uint64(1), np.uint64(0)
    columns = reports.shape[1]
    for i in range(codes.size):
        for column in range(columns):
            mixed = np.uint64(0)
            for level in range(bits):
                word = words[i, column * bits + level]
                chosen = zero - np.uint64((noise >> level) & 1)
                mixed = (mixed & word) | (chosen & (mixed | word))
            reports[i, column] = mixed
        reports[i, columns - 1] &= tail
        place = np.uint64(codes[i] & 63)
        kept = np.uint64((words[i, columns * bits] >> np.uint64(2)) < keep)
        column = codes[i] >> 6
        reports[i, column] = (reports[i, column] & ~(one << place)) | (kept << place)


def score_reports(
    words: Words, width: int, halves: int, masses: Signed, slope: float, scale: float, scores: Signed
) -> None:
    """`scores[i]` = `scale / (1 + slope * m)`, rounded, `m` the mass of the set bits of report `i`.

    A report is `width` words, of which the first `halves` half words are read; `masses[256 * place + byte]`
    is the mass of the bits of a byte. Going through one word of all reports before the next keeps the part of
    the table that is looked at close to the processor.
    """
    low, byte, step, wide = np.uint64(255), np.uint64(8), np.uint64(256), np.uint64(width)
    scores[:] = 0
    for column in range(halves // 2):
        at = np.uint64(column)
        for i in range(scores.size):
            word, place, mass = words[at], np.uint64(2048 * column), np.int64(0)
            for _ in range(8):
                mass += masses[place + (word & low)]
                word >>= byte
                place += step
            scores[i] += mass
            at += wide
    if halves % 2:
        at = np.uint64(halves // 2)
        for i in range(scores.size):
            word, place, mass = words[at], np.uint64(1024 * (halves - 1)), np.int64(0)
            for _ in range(4):
                mass += masses[place + (word & low)]
                word >>= byte
                place += step
            scores[i] += mass
            at += wide
    for i in range(scores.size):
        scores[i] = np.int64(np.rint(scale / (1.0 + slope * np.float64(scores[i]))))


def score_ones(words: Words, width: int, by_ones: Signed, scores: Signed) -> None:
    """`scores[i]` = `by_ones[k]`, `k` the number of set bits of report `i`, which is `width` words."""
    at = np.uint64(0)
    for i in range(scores.size):
        ones = np.uint64(0)
        for _ in range(width):
            # Sums of bits in pairs, fours and bytes, then of all bytes: compilers know it as one instruction.
            word = words[at]
            word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
            fours = (word & np.uint64(0x3333333333333333)) + (
                (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
            )
            eights = (fours + (fours >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            ones += (eights * np.uint64(0x0101010101010101)) >> np.uint64(56)
            at += np.uint64(1)
        scores[i] = by_ones[ones]


def add_by_byte(words: Words, width: int, halves: int, one: int, scores: Signed, sums: Signed) -> None:
    """`sums[256 * place + byte]` grows by `one + scores[i]` for each byte of report `i`; else as `score_reports`."""
    low, byte, step, wide = np.uint64(255), np.uint64(8), np.uint64(256), np.uint64(width)
    for column in range(halves // 2):
        at = np.uint64(column)
        for i in range(scores.size):
            word, place, more = words[at], np.uint64(2048 * column), one + scores[i]
            for _ in range(8):
                sums[place + (word & low)] += more
                word >>= byte
                place += step
            at += wide
    if halves % 2:
        at = np.uint64(halves // 2)
        for i in range(scores.size):
            word, place, more = words[at], np.uint64(1024 * (halves - 1)), one + scores[i]
            for _ in range(4):
                sums[place + (word & low)] += more
                word >>= byte
                place += step
            at += wide


def count_codes(reports: Signed, counts: Signed) -> None:
    """How often each report came; whatever is no report counts in the last place, which is one too many."""
    last = np.uint64(counts.size - 1)
    for i in range(reports.size):
        counts[min(np.uint64(reports[i]), last)] += 1


def hash_values(seeds: Words, values: Signed, bins: int, hashed: Signed) -> None:
    """`hashed[i]` = the bin of `values[i]` under the hash function of `seeds[i]`."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    first, second = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    for i in range(seeds.size):
        a = seeds[i] + golden
        b = a + golden
        a = (a ^ (a >> np.uint64(30))) * first
        b = (b ^ (b >> np.uint64(30))) * first
        a = (a ^ (a >> np.uint64(27))) * second
        b = (b ^ (b >> np.uint64(27))) * second
        place = (a ^ (a >> np.uint64(31))) * np.uint64(values[i]) + (b ^ (b >> np.uint64(31)))
        hashed[i] = np.int64(((place >> np.uint64(32)) * np.uint64(bins)) >> np.uint64(32))


def count_support(reports: Words, edges: Words, support: Signed) -> None:
    """`support[x]` = how many reports have a hash function that sends `x` into the reported bin.

    A report is a seed and a bin; the bin is a range of hashes that begins at `edges[bin]`. The hash of `x`
    is `a * x + b` modulo `2**64`, so walking through `x` is one addition a step. Four reports are walked
    together, which spares three of four visits to `support`; spare places at the end have an empty range.
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
            told = np.int64(reports[start + i, 1])
            steps[i] = a ^ (a >> np.uint64(31))
            places[i] = (b ^ (b >> np.uint64(31))) - edges[told]
            widths[i] = edges[told + 1] - edges[told]
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
