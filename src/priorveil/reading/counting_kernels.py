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
