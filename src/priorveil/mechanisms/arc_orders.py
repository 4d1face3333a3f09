"""Many public orders of a circle: how they are made, and what they tell together about a distribution.

**An order** is named by two integers, a `seed` and a `multiplier`. The `n` values of the circle are shuffled:
they are sorted by `mix(seed + (x + 1) * STEP mod 2**64)` (`priorveil.mechanisms.hashing.mix`), ties by code,
which gives them ranks `1 .. n`. Then they are sorted by `multiplier * rank mod p`, `p` the least prime
above `n`. Under one order a report tells the slow waves around the circle well and the fast ones badly;
multiplying ranks turns fast waves into slow ones, and the multipliers `1 .. (p - 1) / 2` treat all alike.
So a pool of about as many orders as values does what takes several times as many random ones.

**The information.** With the value used with probability `k` the lift of `x` at a report is `1 - k + k
overlap / (l_x W)`, lengths and window as shares of the line. So `J = 1 - k**2 + k**2 B`, where `B[x, y]`
is `1 / l_x` for an owned output and, on the circle, the mean of `overlap_x overlap_y / (l_x l_y W**2)`
over the orders: the integral over both arcs of `max(0, W - distance)`, hence second differences of cubes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms.hashing import mix
from priorveil.mechanisms.kernels import fast

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEP = 0x9E3779B97F4A7C15


def prime_above(n: int) -> int:
    """The least prime above `n`.

    >>> [prime_above(n) for n in (1, 2, 7, 400)]
    [2, 3, 11, 401]
    """
    p = max(2, n + 1)
    while any(p % q == 0 for q in range(2, int(p**0.5) + 1)):
        p += 1
    return p


def spread_orders(values: int, count: int) -> tuple[Ints, Ints]:
    """Seeds and multipliers of `count` orders: a new seed whenever the multipliers are used up.

    The last seed has too few orders left for all multipliers; it takes them evenly.

    >>> [part.tolist() for part in spread_orders(6, 4)]
    [[0, 0, 0, 1], [1, 2, 3, 2]]
    """
    half = max(1, prime_above(values) // 2)
    index = np.arange(count)
    seeds, at = index // half, index % half
    left = np.minimum(half, count - seeds * half)
    return seeds, 1 + (2 * at + 1) * half // (2 * left)


def circle_order(values: Ints, seed: int, multiplier: int) -> Ints:
    """The values in the order of this name.

    >>> circle_order(np.array([0, 1, 2, 3, 4, 5]), 0, 1).tolist(), circle_order(np.arange(6), 0, 3).tolist()
    ([2, 4, 5, 1, 0, 3], [0, 5, 2, 3, 1, 4])
    """
    words = values.astype(np.uint64) + np.uint64(1)
    shuffled = values[np.argsort(mix(words * np.uint64(STEP) + np.uint64(seed)), kind="stable")]
    ranks = np.arange(1, len(values) + 1)
    return shuffled[np.argsort(ranks * multiplier % prime_above(len(values)))]


def circle_orders(values: Ints, seeds: Ints, multipliers: Ints) -> Iterator[Ints]:
    """The values in each of the orders."""
    for seed, multiplier in zip(seeds.tolist(), multipliers.tolist(), strict=True):
        yield circle_order(values, seed, multiplier)


def pair_moments(orders: Ints, lengths: Array, window: float) -> Array:
    """The mean over orders and places of `overlap_x overlap_y`, times the circumference, for all pairs.

    `orders` has a row for each order, a permutation of the arcs; the circle is as long as they are together.

    >>> pair_moments(np.array([[0, 1, 2]]), np.array([0.5, 0.25, 0.25]), 0.25).round(6).tolist()
    [[0.026042, 0.002604, 0.002604], [0.002604, 0.010417, 0.002604], [0.002604, 0.002604, 0.010417]]
    """
    n = len(lengths)
    sums = np.zeros((n, n))
    loop = fast(add_pairs, orders.size * n) or add_pairs_whole
    loop(np.ascontiguousarray(orders), lengths, window, sums)
    half = np.tril(sums, -1)
    return np.asarray((half + half.T + np.diag(np.diag(sums))) / len(orders))


def add_pairs(orders: Ints, lengths: Array, window: float, sums: Array) -> None:
    """The loop that numba compiles: row by row, for the lower half; `add_pairs_whole` is its twin."""
    n = lengths.size
    ends = np.zeros(n + 1)
    below, above = np.zeros(n + 1), np.zeros(n + 1)
    for s in range(orders.shape[0]):
        for i in range(n):
            ends[i + 1] = ends[i] + lengths[orders[s, i]]
        beyond = ends[n] - window
        for j in range(n + 1):
            below[j] = max(window - ends[j], 0.0) ** 3 + max(ends[j] - beyond, 0.0) ** 3
        for i in range(n):
            x = orders[s, i]
            for j in range(n + 1):
                apart = abs(ends[i + 1] - ends[j])
                near, far = max(window - apart, 0.0), max(apart - beyond, 0.0)
                above[j] = near * near * near + far * far * far
            for j in range(i + 1):
                y = orders[s, j]
                bend = (above[j] - above[j + 1] + below[j + 1] - below[j]) / 6
                sums[max(x, y), min(x, y)] += bend
            sums[x, x] += window * window * lengths[x]
            below, above = above, below


def add_pairs_whole(orders: Ints, lengths: Array, window: float, sums: Array) -> None:
    """The numpy twin of `add_pairs`: a matrix of cubes for each order, differenced twice."""
    for order in orders:
        ends = np.concatenate([[0.0], np.cumsum(lengths[order])])
        apart = np.abs(ends[:, None] - ends)
        cubes = np.maximum(window - apart, 0.0) ** 3 + np.maximum(apart - (ends[-1] - window), 0.0) ** 3
        sums[np.ix_(order, order)] -= np.diff(np.diff(cubes, axis=0), axis=1) / 6
    sums[np.diag_indices(len(lengths))] += len(orders) * window**2 * lengths
