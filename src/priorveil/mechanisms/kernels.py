"""The inner loops: each as a loop that numba compiles, and as a numpy twin with the same results, bit for bit.

Calling a kernel runs the compiled loop if numba is installed and there is enough work to pay for loading it, and
otherwise the twin. numba itself is imported on first use, so that `import priorveil` stays light.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints
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
        made: Loop = numba.njit(cache=True, nogil=True)(loop)
    except RuntimeError:
        made = numba.njit(nogil=True)(loop)
    return made


# -- tables ------------------------------------------------------------------------------------------------


class Guide(NamedTuple):
    """Partial sums, and where among them the search for a draw with given leading bits begins."""

    thresholds: Words
    starts: Words32
    shift: Word


def _scan_table(rows: Ints, words: Words, guide: Guide, reports: Ints) -> None:
    draws = words >> np.uint64(2)
    found = guide.starts[rows, (draws >> guide.shift).astype(np.int64)].astype(np.int64)
    active = np.flatnonzero(guide.thresholds[rows, found] <= draws)
    while active.size:
        found[active] += 1
        active = active[guide.thresholds[rows[active], found[active]] <= draws[active]]
    reports[:] = found


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
    moved = np.where(is_own, np.uint64(0), np.where(past, draws - own, draws))
    common = guide._replace(thresholds=guide.thresholds[:, 1:])
    _scan_table(np.zeros_like(rows), moved << np.uint64(2), common, reports)
    reports[is_own] = rows[is_own]


@with_twin(_scan_shared)
def scan_shared(rows: Ints, words: Words, own: Word, guide: Guide, reports: Ints) -> None:
    """As `scan_table`, for rows that are one common row with `own` added on the diagonal."""
    for i in range(rows.size):
        x = rows[i]
        draw = words[i] >> np.uint64(2)
        start = guide.thresholds[0, x]
        past = draw >= start
        is_own = past and draw - start < own
        # An own draw looks up zero, which ends at once, and then takes x instead of what it found.
        moved = np.uint64(0) if is_own else (draw - own if past else draw)
        y = np.int64(guide.starts[0, np.int64(moved >> guide.shift)])
        y += np.int64(guide.thresholds[0, y + 1] <= moved)
        while guide.thresholds[0, y + 1] <= moved:
            y += 1
        reports[i] = x if is_own else y


def _count_numbers(numbers: Ints, counts: Ints) -> None:
    known = (numbers >= 0) & (numbers < counts.size)
    counts += np.bincount(numbers if known.all() else numbers[known], minlength=counts.size)


@with_twin(_count_numbers)
def count_numbers(numbers: Ints, counts: Ints) -> None:
    """Add to `counts[n]` how often the number n came; numbers without a count are ignored."""
    for i in range(numbers.size):
        if 0 <= numbers[i] < counts.size:
            counts[numbers[i]] += 1


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
    kept = (words[:, -1] >> np.uint64(2) < keep).astype(np.uint64)
    reports[rows, columns] = reports[rows, columns] & ~(np.uint64(1) << places) | kept << places


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
        kept = np.uint64((words[i, columns * bits] >> np.uint64(2)) < keep)
        column = codes[i] >> 6
        reports[i, column] = (reports[i, column] & ~(one << place)) | (kept << place)


def _draw_subsets(codes: Ints, words: Words, keep: Word, bounds: Words, last: Words, reports: Words) -> None:
    rows, reports[:] = np.arange(codes.size), 0
    kept = words[:, 0] >> np.uint64(2) < keep
    for place, bound in enumerate(bounds):
        drawn = (words[:, 1 + place] % bound).astype(np.int64)
        drawn += drawn >= codes
        taken = reports[rows, drawn >> 6] >> (drawn & 63).astype(np.uint64) & np.uint64(1) == 1
        newest = np.int64(bound) - 1
        value = np.where(taken, newest + (newest >= codes), drawn)
        value = np.where(kept, codes, value) if place == 0 else value
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


def _transpose(halves: Words32, columns: Words32) -> None:
    columns[:] = halves.T


@with_twin(_transpose)
def transpose(halves: Words32, columns: Words32) -> None:
    """Put the columns of `halves`, which has a row for each report, into the rows of `columns`."""
    for i in range(halves.shape[0]):
        for column in range(halves.shape[1]):
            columns[column, i] = halves[i, column]


def _bytes_of(halves: Words32) -> Iterator[Words32]:
    return (column >> np.uint32(8 * k) & np.uint32(255) for column in halves for k in range(4))


def _score_reports(halves: Words32, masses: Ints, slope: float, scale: float, scores: Ints) -> None:
    scores[:] = 0
    for byte, by_byte in zip(_bytes_of(halves), masses.reshape(-1, 256), strict=False):
        scores += by_byte[byte]
    scores[:] = np.rint(scale / (1.0 + slope * scores))


@with_twin(_score_reports)
def score_reports(halves: Words32, masses: Ints, slope: float, scale: float, scores: Ints) -> None:
    """`scores[i]` = `scale / (1 + slope * m)`, rounded, `m` the mass of the set bits of report `i`.

    `halves[:, i]` are the half words of report `i`; `masses[256 * place + byte]` is the mass of the bits of a byte.
    Going through one half word of all reports before the next keeps the part of the table that is in use close to
    the processor.
    """
    low, byte, step, first = np.uint64(255), np.uint64(8), np.uint64(256), np.uint64(0)
    scores[:] = 0
    for column in range(halves.shape[0]):
        for i in range(scores.size):
            half, place, mass = np.uint64(halves[column, i]), first, np.int64(0)
            for _ in range(4):
                mass += masses[place + (half & low)]
                half >>= byte
                place += step
            scores[i] += mass
        first += np.uint64(1024)
    for i in range(scores.size):
        scores[i] = np.int64(np.rint(scale / (1.0 + slope * np.float64(scores[i]))))


def _add_by_byte(halves: Words32, one: int, scores: Ints, sums: Ints) -> None:
    # bincount adds scores in floats, which is exact for as few reports as share a 64-bit sum.
    for byte, by_byte in zip(_bytes_of(halves), sums.reshape(-1, 256), strict=False):
        by_byte += one * np.bincount(byte, minlength=256)
        by_byte += np.bincount(byte, scores, 256).astype(np.int64)


@with_twin(_add_by_byte)
def add_by_byte(halves: Words32, one: int, scores: Ints, sums: Ints) -> None:
    """Add `one + scores[i]` to `sums[256 * place + byte]` for each byte of report `i`; see `score_reports`."""
    low, byte, step, first = np.uint64(255), np.uint64(8), np.uint64(256), np.uint64(0)
    for column in range(halves.shape[0]):
        for i in range(scores.size):
            half, place, more = np.uint64(halves[column, i]), first, one + scores[i]
            for _ in range(4):
                sums[place + (half & low)] += more
                half >>= byte
                place += step
        first += np.uint64(1024)


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


# -- arcs --------------------------------------------------------------------------------------------------

# A tally of arcs has the sums of this many low bits of the reports, and of the rest.
LIMB = 21
LOW = (1 << LIMB) - 1


def _count_cells(reports: Ints, base: Ints, guide: Ints, shift: int, tally: Ints) -> None:
    # Sorted in blocks that stay in the cache.
    for first in range(0, len(reports), 1 << 17):
        ordered = np.sort(reports[first : first + (1 << 17)])
        until = np.searchsorted(ordered, base, side="left")
        counts = np.diff(until, append=len(ordered))
        filled = np.flatnonzero(counts)
        tally[:, 0] += counts
        tally[filled, 1] += np.add.reduceat(ordered & LOW, until[filled])
        tally[filled, 2] += np.add.reduceat(ordered >> LIMB, until[filled])


@with_twin(_count_cells)
def count_cells(reports: Ints, base: Ints, guide: Ints, shift: int, tally: Ints) -> None:
    """Add to row `c` of `tally` the reports of column `c`, and the sums of their low and of their high bits.

    Column `c` begins at report `base[c]`. The guide gives the range of columns of a report's leading bits, and a
    search finds the one.
    """
    for i in range(reports.size):
        y = reports[i]
        bucket = y >> shift
        low, high = guide[bucket], guide[bucket + 1]
        while low < high:
            middle = (low + high + 1) >> 1
            if base[middle] <= y:
                low = middle
            else:
                high = middle - 1
        tally[low, 0] += 1
        tally[low, 1] += y & LOW
        tally[low, 2] += y >> LIMB


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


def _add_smoothed(
    steps: Ints, seeds: Ints, prime: int, lengths: Array, density: Array, window: float, sums: Array
) -> None:
    for i in range(steps.size):
        ranks = walk_ranks(steps[i : i + 1], prime, lengths.shape[1])[0]
        h, c = lengths[seeds[i], ranks], density[seeds[i], ranks]
        ends, once, twice, thrice = np.zeros((4, h.size + 1))
        ends[1:], once[1:] = np.cumsum(h), np.cumsum(h * c)
        twice[1:] = np.cumsum(h * (once[:-1] + h * c / 2))
        thrice[1:] = np.cumsum(h * (twice[:-1] + h * (once[:-1] / 2 + h * c / 6)))
        around = ends[-1]
        # Without their means, the integrals go round the circle too.
        a = twice[-1] / around
        b = thrice[-1] / around - a * around / 2
        thrice -= ends * (a * ends / 2 + b)
        twice -= a * ends + b
        once -= a
        smooth = -2 * thrice
        for moved in ((ends + window) % around, (ends - window) % around):
            at = np.clip(np.searchsorted(ends, moved, side="right") - 1, 0, h.size - 1)
            t = moved - ends[at]
            smooth += thrice[at] + t * (twice[at] + t * (once[at] / 2 + t * c[at] / 6))
        sums[seeds[i], ranks] += np.diff(smooth)


@with_twin(_add_smoothed)
def add_smoothed(
    steps: Ints, seeds: Ints, prime: int, lengths: Array, density: Array, window: float, sums: Array
) -> None:
    """Add to `sums`, for every order, the integral over each arc of a density convolved with `max(0, window - |t|)`.

    The density is constant on an arc, with integral zero around the circle. The twin takes second differences of its
    third integral, at distance `window`. The loop moves a window around the circle instead: its mass is linear between
    the places where it loses or gains an arc, and `twice` is the second integral of that.
    """
    n = lengths.shape[1]
    ends, lost, gained = np.zeros(n + 2), np.zeros(n + 1), np.zeros(n + 1)
    height, at_rank = np.zeros(n + 1), np.zeros(n, np.int64)
    none, one, turn = np.uint64(0), np.uint64(1), np.uint64(n)
    for i in range(steps.size):
        seed, step, rank, count = seeds[i], steps[i], 0, 0
        for _ in range(prime - 1):
            rank += step
            rank -= prime if rank >= prime else 0
            if rank <= n:
                at_rank[count], height[count] = rank - 1, density[seed, rank - 1]
                ends[count + 1] = ends[count] + lengths[seed, rank - 1]
                count += 1
        around = float(ends[n])
        ends[n + 1] = 2 * around
        begun, mass = 0, 0.0
        while begun < n - 1 and ends[begun + 1] <= window:
            mass += height[begun] * (ends[begun + 1] - ends[begun])
            begun += 1
        mass += height[begun] * (window - ends[begun])
        reach, place, once, twice = window, 0.0, 0.0, 0.0
        first, last = none, np.uint64(begun)  # unsigned: a signed index is tested for being negative
        for _ in range(2 * n):
            loses = ends[first + one] <= ends[last + one] - reach
            there = ends[first + one] if loses else ends[last + one] - reach
            t, slope = there - place, height[last] - height[first]
            twice += t * (once + t * (mass / 2 + t * slope / 6))
            once += t * (mass + t * slope / 2)
            mass += t * slope
            place = there
            if loses:
                first += one
                lost[first] = twice
            else:
                last += one
                gained[last] = twice
            if last == turn:
                last, reach = none, reach - around
        gained[0] = gained[n]
        for j in range(begun + 1):  # these were gained a turn later
            gained[j] -= twice
        for j in range(n):
            sums[seed, at_rank[j]] += lost[j + 1] - lost[j] - gained[j + 1] + gained[j]
