"""Arcs on a circle in thousands of public orders: the mechanism that learns a distribution on many values.

Reports in one order hardly distinguish neighbours on the circle. Here the order of a report is drawn from a public
pool, without looking at the value.

**The orders** are never written out. An order is given by a `seed` and a `multiplier`. The `n` values of the circle are
sorted by `kernels.splitmix64(seed + (x + 1) * STEP mod 2**64)`, ties by code, which gives them ranks `1 .. n`. Then
they are sorted by `multiplier * rank mod p`, `p` the least prime above `n`. So a walk around the circle visits the
ranks `step, 2 step, ...` modulo `p`, `step` the inverse of the multiplier. Under one order a report estimates the slow
waves around the circle well and the fast ones badly; multiplying ranks turns fast waves into slow ones, and the
multipliers `1 .. (p - 1) / 2` treat all alike. Several times as many random orders would be needed for the same.

**The sampler.** A report takes four words, whatever the value is. The lowest bits of the first are the index of the
order (their number is a power of two); the others are the three words of `arc.line`. The report is `index * 2**bits +
y` with the line's report `y`, in all below `2**53`. A device adds up the segments before its own, in `O(d)` steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Mask
from priorveil.errors import InvalidInput
from priorveil.mechanisms import kernels
from priorveil.mechanisms.arc import ArcMechanism
from priorveil.mechanisms.arc.cells import PIECES, ArcCells
from priorveil.mechanisms.arc.certificate import PriorWeights, fit_line
from priorveil.mechanisms.arc.line import DRAWS, ArcLine
from priorveil.mechanisms.interface import in_range, require_writable
from priorveil.mechanisms.kernels import STEP, splitmix64
from priorveil.mechanisms.randomness import Words

# The line has 2**36 places: with 2**14 orders a report has 50 bits, and the sum of 2**27 overlaps fits 64 bits.
_BITS = 36
_MOST_ORDERS = 1 << 16


class Walks(NamedTuple):
    """The orders: their seeds, their multipliers and the steps of their walks, all modulo `prime`.

    The others have a row for each seed: the values on the circle by rank, the lengths of their arcs, and for every
    value its rank, from one; zero for owners.
    """

    prime: int
    seeds: Ints
    multipliers: Ints
    steps: Ints
    shuffled: Ints
    lengths: Ints
    ranks: Ints


@dataclass(frozen=True, eq=False)
class Orders(ArcMechanism):
    """Arcs in `count` public orders; in `line` the values on the circle are in the order of their codes.

    >>> pool = Orders.fit([5, 2, 2, 1], [0], 4, Fraction(37, 100), Fraction(271, 100))
    >>> pool.circles(np.arange(4)).tolist()
    [[2, 1, 3], [3, 2, 1], [3, 1, 2], [2, 3, 1]]
    """

    count: int

    kind: ClassVar[str] = "orders"
    draws_per_report = DRAWS + 1  # the first one draws the order
    every_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        count, m = self.count, self.line
        if not 1 <= count <= _MOST_ORDERS or count & (count - 1) or count << m.bits > 1 << 53:
            raise InvalidInput("count", count, "give a power of two, with count * 2**bits at most 2**53")
        if m.heavy == m.size or m.start != m.edges[m.heavy] or np.any(np.diff(self.circle_values) < 0):
            raise InvalidInput("owners", m.owners, "some values must remain on the circle")

    @classmethod
    def fit(
        cls, weights: PriorWeights, owners: npt.ArrayLike, count: int, lo: Fraction, hi: Fraction
    ) -> Orders:
        """The least noisy mechanism that proves `lo <= lift <= hi` for every order."""
        first = np.array(owners, dtype=np.int64).reshape(-1)
        light = np.setdiff1d(np.arange(len(weights)), first)
        line = fit_line(weights, np.append(first, light), len(first), lo, hi, _BITS, every_order=True)
        return cls(line, count)

    # -- the orders ----------------------------------------------------------------------------------------

    @property
    def circle_values(self) -> Ints:
        """The values on the circle."""
        return self.line.order[self.line.heavy :]

    @cached_property
    def walks(self) -> Walks:
        """The orders as walks around the circle."""
        light = self.circle_values
        prime = prime_above(light.size)
        seeds, multipliers = seeds_and_multipliers(prime, self.count)
        words = (light.astype(np.uint64) + np.uint64(1)) * np.uint64(STEP)
        tries = np.arange(seeds[-1] + 1, dtype=np.uint64)[:, None]
        shuffled = light[np.argsort(splitmix64(words + tries), axis=1, kind="stable")]
        steps = np.array([pow(int(multiplier), -1, prime) for multiplier in multipliers])
        ranks = np.zeros((len(shuffled), self.size), dtype=np.int64)
        np.put_along_axis(ranks, shuffled, np.arange(1, light.size + 1)[None], axis=1)
        return Walks(prime, seeds, multipliers, steps, shuffled, self.line.lengths[shuffled], ranks)

    def circles(self, index: Ints) -> Ints:
        """The values on the circle in some of the orders, a row each."""
        walks = self.walks
        ranks = kernels.walk_ranks(walks.steps[index], walks.prime, self.circle_values.size)
        return walks.shuffled[walks.seeds[index, None], ranks]

    @property
    def cells(self) -> list[ArcCells]:
        """The cells of each order; for small mechanisms only."""
        return self._cells(1)

    def _cells(self, pieces: int) -> list[ArcCells]:
        require_writable(self.size, 2 * self.count * self.size * pieces)
        circles = self.circles(np.arange(self.count))
        return [ArcCells(replace(self.line, order=np.append(self.line.owners, c)), pieces) for c in circles]

    @property
    def matrix(self) -> Array:
        """The channel from values to the cells of all orders; raises `TooLarge` when huge."""
        return np.hstack([cells.matrix for cells in self.cells]) / self.count

    @property
    def report_matrix(self) -> Array:
        """The channel from values to small pieces of the cells of all orders, which say nearly as much as reports."""
        return np.hstack([cells.matrix for cells in self._cells(PIECES)]) / self.count

    @property
    def leakage_matrix(self) -> tuple[Array, tuple[int, ...]]:
        """A channel that leaks no less than the reports do, and the reports of its columns."""
        parts = [cells.leakage_matrix for cells in self.cells]
        reports = [(i << self.line.bits) + y for i, (_, own) in enumerate(parts) for y in own]
        return np.hstack([matrix for matrix, _ in parts]) / self.count, tuple(reports)

    # -- reports -------------------------------------------------------------------------------------------

    def draw(self, codes: Ints, words: Words, reports: Ints, total: int) -> None:
        """Fill `reports` for valid codes; the first word draws the order."""
        m, walks = self.line, self.walks
        index = (words[:, 0] & np.uint64(self.count - 1)).astype(np.int64)
        seeds, multipliers = walks.seeds[index], walks.multipliers[index]
        keys, begins = walks.ranks[seeds, codes] * multipliers % walks.prime, np.empty_like(codes)
        work = total * self.circle_values.size
        kernels.add_segments(keys, seeds, multipliers, walks.prime, walks.lengths, begins, work=work)
        begins = np.where(keys > 0, m.start + begins, m.starts[codes])
        reports[:] = (index << m.bits) + self.line_reports(words, begins, codes)

    def accepts(self, reports: npt.NDArray[Any]) -> Mask:
        """Which reports this mechanism can have made."""
        inside = in_range(reports, self.count << self.line.bits)
        return inside & in_range(reports & (self.line.places - 1), self.line.outputs)

    def parameters(self) -> dict[str, Any]:
        """The line and the number of orders, as JSON."""
        return {**self.line.parameters(), "count": self.count}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Orders:
        """Read a mechanism from the parameters in its JSON document."""
        lengths, owners = parameters["lengths"], parameters["owners"]
        if not set(owners) <= set(range(len(lengths))):
            raise InvalidInput("owners", owners, f"give codes from 0 to {len(lengths) - 1}")
        start = sum(int(lengths[x]) for x in owners)
        circle = np.setdiff1d(np.arange(len(lengths)), owners)
        return cls(ArcLine.read({**parameters, "circle": circle, "start": start}), parameters["count"])


def prime_above(n: int) -> int:
    """The least prime above `n`.

    >>> [prime_above(n) for n in (1, 2, 7, 400)]
    [2, 3, 11, 401]
    """
    p = max(2, n + 1)
    while any(p % q == 0 for q in range(2, int(p**0.5) + 1)):
        p += 1
    return p


def seeds_and_multipliers(prime: int, count: int) -> tuple[Ints, Ints]:
    """Seeds and multipliers of `count` orders: a new seed whenever the multipliers are used up.

    If the last seed has fewer orders than there are multipliers, it takes them evenly.

    >>> [part.tolist() for part in seeds_and_multipliers(7, 4)]
    [[0, 0, 0, 1], [1, 2, 3, 2]]
    """
    half = max(1, prime // 2)
    seeds, at = np.divmod(np.arange(count), half)
    left = np.minimum(half, count - seeds * half)
    return seeds, 1 + (2 * at + 1) * half // (2 * left)
