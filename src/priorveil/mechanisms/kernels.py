"""The inner loops: each as a loop that numba compiles, and as a numpy twin with the same results, bit for bit.

Calling a kernel runs the compiled loop if numba is installed and there is enough work to pay for loading it, and
otherwise the twin. numba itself is imported on first use, so that `import priorveil` stays light.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Ints
from priorveil.mechanisms.randomness import Words

Loop = Callable[..., None]
Word = np.uint64
Words32 = npt.NDArray[np.uint32]

# Reports times inner steps below which loading a compiled loop costs more than it saves.
ENOUGH_WORK = 200_000


@dataclass(frozen=True)
class Kernel:
    """A loop and its numpy twin."""

    loop: Loop
    twin: Loop

    def __call__(self, *arguments: Any, work: int) -> None:
        """Run the faster of the two; `work` is the number of steps in all, if these are a part."""
        run = compile_loop(self.loop) if work >= ENOUGH_WORK else None
        (run or self.twin)(*arguments)


def with_twin(twin: Loop) -> Callable[[Loop], Kernel]:
    """A decorator that makes a kernel of a loop and this twin."""
    return lambda loop: Kernel(loop, twin)


@functools.cache
def compile_loop(loop: Loop) -> Loop | None:
    """Compile a loop with numba (cached on disk where possible); None without numba."""
    try:
        numba: Any = importlib.import_module("numba")
    except ImportError:
        return None
    try:
        compiled_loop: Loop = numba.njit(cache=True, nogil=True)(loop)
    except RuntimeError:
        compiled_loop = numba.njit(nogil=True)(loop)
    return compiled_loop


# -- tables ------------------------------------------------------------------------------------------------


class Guide(NamedTuple):
    """Partial sums, and where among them the search for a draw with given leading bits begins."""

    thresholds: Words
    starts: Words32
    shift: Word


def _scan_table(rows: Ints, words: Words, guide: Guide, reports: Ints) -> None:
    draws = words >> np.uint64(2)
    positions = guide.starts[rows, (draws >> guide.shift).astype(np.int64)].astype(np.int64)
    active = np.flatnonzero(guide.thresholds[rows, positions] <= draws)
    while active.size:
        positions[active] += 1
        active = active[guide.thresholds[rows[active], positions[active]] <= draws[active]]
    reports[:] = positions


@with_twin(_scan_table)
def scan_table(rows: Ints, words: Words, guide: Guide, reports: Ints) -> None:
    """`reports[i]` = how many thresholds of row `rows[i]` are at most the draw, from the guide upwards."""
    for i in range(rows.size):
        x = rows[i]
        draw = words[i] >> np.uint64(2)
        y = np.int64(guide.starts[x, np.int64(draw >> guide.shift)])
        # Adding the comparison first saves the branch that the processor would guess wrong.
        y += np.int64(guide.thresholds[x, y] <= draw)
        while guide.thresholds[x, y] <= draw:
            y += 1
        reports[i] = y


def _scan_shared(rows: Ints, words: Words, own: Word, guide: Guide, reports: Ints) -> None:
    draws = words >> np.uint64(2)
    begin = guide.thresholds[0, rows]
    past = draws >= begin
    is_own = past & (draws - begin < own)
    common_draws = np.where(is_own, np.uint64(0), np.where(past, draws - own, draws))
    common = guide._replace(thresholds=guide.thresholds[:, 1:])
    _scan_table(np.zeros_like(rows), common_draws << np.uint64(2), common, reports)
    reports[is_own] = rows[is_own]


@with_twin(_scan_shared)
def scan_shared(rows: Ints, words: Words, own: Word, guide: Guide, reports: Ints) -> None:
    """`scan_table` for rows that are one common row with `own` added on the diagonal."""
    for i in range(rows.size):
        x = rows[i]
        draw = words[i] >> np.uint64(2)
        start = guide.thresholds[0, x]
        past = draw >= start
        is_own = past and draw - start < own
        # If the draw is own, zero is looked up, which ends at once, and the result is x.
        common_draw = np.uint64(0) if is_own else (draw - own if past else draw)
        y = np.int64(guide.starts[0, np.int64(common_draw >> guide.shift)])
        y += np.int64(guide.thresholds[0, y + 1] <= common_draw)
        while guide.thresholds[0, y + 1] <= common_draw:
            y += 1
        reports[i] = x if is_own else y


# -- unary encoding ----------------------------------------------------------------------------------------


def mix_noise(words: Words, noise: int, bits: int, tail: Word) -> Words:
    """64 noisy bits from every `bits` words.

    Combines the words bit by bit: OR for each one bit of `noise`, AND for each zero bit.

    >>> mix_noise(np.array([[12, 10]], dtype=np.uint64), 3, 2, np.uint64(15))
    array([[14]], dtype=uint64)
    """
    levels = words.reshape(words.shape[0], -1, bits)
    mixed = np.zeros(levels.shape[:2], dtype=np.uint64)
    for level in range(bits):
        change = np.bitwise_or if noise >> level & 1 else np.bitwise_and
        change(mixed, levels[:, :, level], out=mixed)
    mixed[:, -1] &= tail
    return mixed


def _flip_bits(
    codes: Ints, words: Words, noise: int, bits: int, keep: Word, tail: Word, reports: Words
) -> None:
    reports[:] = mix_noise(words[:, :-1], noise, bits, tail)
    rows, columns, places = np.arange(codes.size), codes >> 6, (codes & 63).astype(np.uint64)
    is_kept = (words[:, -1] >> np.uint64(2) < keep).astype(np.uint64)
    reports[rows, columns] = reports[rows, columns] & ~(np.uint64(1) << places) | is_kept << places


@with_twin(_flip_bits)
def flip_bits(
    codes: Ints, words: Words, noise: int, bits: int, keep: Word, tail: Word, reports: Words
) -> None:
    """Bit vectors with independent noise, and bit `codes[i]` set with probability `keep / 2**62`."""
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
        is_kept = np.uint64((words[i, columns * bits] >> np.uint64(2)) < keep)
        column = codes[i] >> 6
        reports[i, column] = (reports[i, column] & ~(one << place)) | (is_kept << place)


def _draw_subsets(codes: Ints, words: Words, keep: Word, bounds: Words, last: Words, reports: Words) -> None:
    rows, reports[:] = np.arange(codes.size), 0
    is_kept = words[:, 0] >> np.uint64(2) < keep
    for place, bound in enumerate(bounds):
        drawn = (words[:, 1 + place] % bound).astype(np.int64)
        drawn += drawn >= codes
        taken = reports[rows, drawn >> 6] >> (drawn & 63).astype(np.uint64) & np.uint64(1) == 1
        newest = np.int64(bound) - 1
        value = np.where(taken, newest + (newest >= codes), drawn)
        value = np.where(is_kept, codes, value) if place == 0 else value
        reports[rows, value >> 6] |= np.uint64(1) << (value & 63).astype(np.uint64)
    rejected = (words[:, 1:] > last).any(axis=1)
    first = np.arange(64 * reports.shape[1]) < bounds.size
    reports[rejected] = np.packbits(first, bitorder="little").view(np.uint64)


@with_twin(_draw_subsets)
def draw_subsets(codes: Ints, words: Words, keep: Word, bounds: Words, last: Words, reports: Words) -> None:
    """Random subsets as rows of bits, which hold `codes[i]` with probability `keep / 2**62`.

    The other members come from Floyd's algorithm: the draw below `bounds[j]` joins, or if it is a member already, the
    newest candidate does. The first draw is replaced by the value itself, if that is held. Candidates are numbered
    without the value. A word above `last[j]` would make a draw uneven: the report is then the first values, whatever
    the value is.
    """
    one = np.uint64(1)
    for i in range(codes.size):
        x, even = codes[i], True
        reports[i, :] = 0
        for place in range(bounds.size):
            word = words[i, 1 + place]
            even = even and word <= last[place]
            value = np.int64(word % bounds[place])
            value += np.int64(value >= x)
            if (reports[i, value >> 6] >> np.uint64(value & 63)) & one:
                value = np.int64(bounds[place]) - 1
                value += np.int64(value >= x)
            if place == 0 and (words[i, 0] >> np.uint64(2)) < keep:
                value = x
            reports[i, value >> 6] |= one << np.uint64(value & 63)
        if not even:
            reports[i, :] = 0
            for first in range(bounds.size):
                reports[i, first >> 6] |= one << np.uint64(first & 63)


# -- hashing -----------------------------------------------------------------------------------------------

STEP = 0x9E3779B97F4A7C15


def splitmix64(seeds: Words) -> Words:
    """A bijection of 64-bit words that scatters them: Stafford's thirteenth variant (SplitMix64).

    >>> [hex(word) for word in splitmix64(np.array([0, 1], dtype=np.uint64))]
    ['0x0', '0x5692161d100b05e5']
    """
    mixed = (seeds ^ seeds >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ mixed >> np.uint64(31))


def _hash_values(seeds: Words, values: Ints, bins: int, hashed: Ints) -> None:
    first = seeds + np.uint64(STEP)
    places = splitmix64(first) * values.astype(np.uint64) + splitmix64(first + np.uint64(STEP))
    hashed[:] = (places >> np.uint64(32)) * np.uint64(bins) >> np.uint64(32)


@with_twin(_hash_values)
def hash_values(seeds: Words, values: Ints, bins: int, hashed: Ints) -> None:
    """`hashed[i]` = the bin of `values[i]` under the hash function of `seeds[i]`."""
    golden = np.uint64(STEP)
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


# -- arcs in many orders -----------------------------------------------------------------------------------

# An order is a walk: it visits the ranks `step, 2 step, ...` modulo a prime, but not those above the number of arcs.
# Lengths, densities and sums have a row for each seed, along which arcs lie in the order of their ranks.


def walk_ranks(steps: Ints, prime: int, arcs: int) -> Ints:
    """The ranks of walks, from zero; a row each.

    >>> walk_ranks(np.array([1, 3]), 7, 5).tolist()
    [[0, 1, 2, 3, 4], [2, 1, 4, 0, 3]]
    """
    kind = np.min_scalar_type(prime**2)  # small numbers are divided several times as fast
    ranks = steps[:, None].astype(kind) * np.arange(1, prime, dtype=kind) % prime
    return np.asarray(ranks[ranks <= arcs].reshape(-1, arcs) - 1)


def _add_segments(
    keys: Ints, seeds: Ints, multipliers: Ints, prime: int, lengths: Ints, begins: Ints
) -> None:
    ranks = np.arange(1, lengths.shape[1] + 1)
    step = max(1, (1 << 20) // ranks.size)
    for first in range(0, keys.size, step):
        part = slice(first, first + step)
        before = multipliers[part, None] * ranks % prime < keys[part, None]
        begins[part] = (lengths[seeds[part]] * before).sum(axis=1)


@with_twin(_add_segments)
def add_segments(keys: Ints, seeds: Ints, multipliers: Ints, prime: int, lengths: Ints, begins: Ints) -> None:
    """`begins[i]` = the sum of the lengths whose rank times `multipliers[i]` modulo the prime is below `keys[i]`."""
    for i in range(keys.size):
        key, multiplier, seed, at, total = keys[i], multipliers[i], seeds[i], 0, 0
        for rank in range(lengths.shape[1]):
            at += multiplier
            at -= prime if at >= prime else 0
            total += lengths[seed, rank] if at < key else 0
        begins[i] = total
