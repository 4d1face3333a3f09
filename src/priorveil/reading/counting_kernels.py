"""The inner loops of counting and reading, compiled or in numpy (`mechanisms.kernels`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priorveil.arrays import Array, Ints
from priorveil.mechanisms.kernels import Words32, walk_ranks, with_twin

# -- rows of bits -------------------------------------------------------------------------------------------


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


def _fill_base_lifts(halves: Words32, masses: Ints, slope: float, scale: float, lifts: Ints) -> None:
    lifts[:] = 0
    for byte, by_byte in zip(_bytes_of(halves), masses.reshape(-1, 256), strict=False):
        lifts += by_byte[byte]
    lifts[:] = np.rint(scale / (1.0 + slope * lifts))


@with_twin(_fill_base_lifts)
def fill_base_lifts(halves: Words32, masses: Ints, slope: float, scale: float, lifts: Ints) -> None:
    """`lifts[i]` = `scale / (1 + slope * m)`, rounded, `m` the mass of the set bits of report `i`.

    `halves[:, i]` are the half words of report `i`; `masses[256 * place + byte]` is the mass of the bits of a byte.
    Going through one half word of all reports before the next keeps the part of the table that is in use close to
    the processor.
    """
    low, byte, step, first = np.uint64(255), np.uint64(8), np.uint64(256), np.uint64(0)
    lifts[:] = 0
    for column in range(halves.shape[0]):
        for i in range(lifts.size):
            half, place, mass = np.uint64(halves[column, i]), first, np.int64(0)
            for _ in range(4):
                mass += masses[place + (half & low)]
                half >>= byte
                place += step
            lifts[i] += mass
        first += np.uint64(1024)
    for i in range(lifts.size):
        lifts[i] = np.int64(np.rint(scale / (1.0 + slope * np.float64(lifts[i]))))


def _add_by_byte(halves: Words32, one: int, lifts: Ints, sums: Ints) -> None:
    # bincount adds lifts in floats, which is exact for as few reports as share a 64-bit sum.
    for byte, by_byte in zip(_bytes_of(halves), sums.reshape(-1, 256), strict=False):
        by_byte += one * np.bincount(byte, minlength=256)
        by_byte += np.bincount(byte, lifts, 256).astype(np.int64)


@with_twin(_add_by_byte)
def add_by_byte(halves: Words32, one: int, lifts: Ints, sums: Ints) -> None:
    """Add `one + lifts[i]` to `sums[256 * place + byte]` for each byte of report `i`; see `fill_base_lifts`."""
    low, byte, step, first = np.uint64(255), np.uint64(8), np.uint64(256), np.uint64(0)
    for column in range(halves.shape[0]):
        for i in range(lifts.size):
            half, place, more = np.uint64(halves[column, i]), first, one + lifts[i]
            for _ in range(4):
                sums[place + (half & low)] += more
                half >>= byte
                place += step
        first += np.uint64(1024)


# -- arcs in many orders -----------------------------------------------------------------------------------


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
        for shifted_ends in ((ends + window) % around, (ends - window) % around):
            at = np.clip(np.searchsorted(ends, shifted_ends, side="right") - 1, 0, h.size - 1)
            t = shifted_ends - ends[at]
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


def _add_window_overlaps(centres: Array, window: float, around: float, sums: Array) -> None:
    for places in centres:
        apart = np.abs(places[:, None] - places)
        sums += np.maximum(window - apart, 0.0) + np.maximum(apart - (around - window), 0.0)


@with_twin(_add_window_overlaps)
def add_window_overlaps(centres: Array, window: float, around: float, sums: Array) -> None:
    """Add to `sums`, for every row of places on a circle, the overlap of the windows at each two of them.

    The loop fills the entries below the diagonal only.
    """
    rest = around - window
    for x in range(1, centres.shape[1]):
        for i in range(centres.shape[0]):
            here = centres[i, x]
            for y in range(x):
                apart = abs(here - centres[i, y])
                near, far = window - apart, apart - rest
                sums[x, y] += (near if near > 0 else 0.0) + (far if far > 0 else 0.0)


def _add_kinks(values: Ints, lengths: Array, window: float, sums: Array) -> None:
    turn = values.shape[1]
    for own, h in zip(values, lengths, strict=True):
        ends = np.append(0.0, np.cumsum(h))
        around = ends[-1]
        cuts = np.unique(np.concatenate([ends + window, ends, ends + around]))
        middles = (cuts[1:] + cuts[:-1]) / 2
        middles = middles[(middles > window) & (middles < window + around)]
        first = np.clip(np.searchsorted(ends, middles - window, side="right") - 1, 0, turn - 1)
        second = np.searchsorted(np.append(ends[:-1], ends + around), middles, side="right") - 1
        turns, last = np.divmod(second, turn)
        middle = (ends[1:] + ends[:-1]) / 2
        apart = middle[last] + turns * around - middle[first] - window
        kinks = _kink(apart, h[first], h[last])
        np.add.at(sums, (own[first], own[last]), kinks)
        np.add.at(sums, (own[last], own[first]), kinks)


def _kink(apart: Array, a: Array, b: Array) -> Array:
    """The mean of `max(0, apart + u + v)` over `u` and `v` in arcs of these lengths, less its value at the middles."""
    cubes = [
        np.maximum(apart + (s * a + t * b) / 2, 0.0) ** 3 for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    ]
    return np.asarray((cubes[0] - cubes[1] - cubes[2] + cubes[3]) / (6 * a * b) - np.maximum(apart, 0.0))


@with_twin(_add_kinks)
def add_kinks(values: Ints, lengths: Array, window: float, sums: Array) -> None:
    """Add to `sums` by how much mean overlaps of windows that begin in two arcs exceed that at their middles.

    Each row has the arcs of a circle in their order: their values, and their lengths. The overlap is linear in the
    distance, except where this is the window: so only arcs that are a window apart differ, two for each arc.
    """
    n = values.shape[1]
    ends = np.zeros(n + 1)
    for i in range(values.shape[0]):
        for j in range(n):
            ends[j + 1] = ends[j] + lengths[i, j]
        around, turned, last = float(ends[n]), 0.0, 0
        while last < n - 1 and ends[last + 1] <= window:
            last += 1
        first = 0
        for _ in range(2 * n):
            a, b = lengths[i, first], lengths[i, last]
            apart = (ends[last] + b / 2 + turned) - (ends[first] + a / 2 + window)
            kink = 0.0
            for sign, shift in ((1.0, a + b), (-1.0, a - b), (-1.0, b - a), (1.0, -a - b)):
                beyond = apart + shift / 2
                if beyond > 0:
                    kink += sign * beyond * beyond * beyond
            kink /= 6 * a * b
            if apart > 0:
                kink -= apart
            x, y = values[i, first], values[i, last]
            sums[x, y] += kink
            sums[y, x] += kink
            if ends[first + 1] + window <= ends[last + 1] + turned:
                first += 1
                if first == n:
                    break
            else:
                last += 1
                if last == n:
                    last, turned = 0, around
