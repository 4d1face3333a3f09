"""Local hashing: a public hash function sends the values into a few bins, and only the bin is perturbed.

The hash function of a 64-bit seed is multiply-add-shift: with two 64-bit words `a`, `b` mixed from the seed,

    h(x) = (a x + b mod 2**64) >> 32,        bin(x) = (h(x) * bins) >> 32.

For random `a` and `b` any two values are hashed independently (values below `2**32`).

The seeds form a public pool. Under LIP the categories of a perturbed report must be likely enough, so the bins of
a seed are merged into groups that are, and each seed has its own integer table on its groups. A report is one
number, `seed index * groups + y`, and decoding is counting. Randomness: two words; the seed index is the lowest
bits of the first (the size of the pool is a power of two), the second goes to the table as in
`priorveil.mechanisms.integer_tables`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, own_integers
from priorveil.certify import TOTAL, Lifts, lifts
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.mechanisms import interface, kernels
from priorveil.mechanisms.integer_tables import Table
from priorveil.mechanisms.interface import MOST_MEASURED, NumberedReports
from priorveil.mechanisms.randomness import WORD, Words
from priorveil.notions import LDP, Cone, PriorOrSet, Secrets
from priorveil.priors import Prior

# Entries of the channel that are written out at a time.
_BLOCK = 1 << 20


def bins_of(seeds: npt.ArrayLike, values: Ints, bins: int) -> Ints:
    """The bin of `values[i]` under the hash function of `seeds[i]`; the two broadcast.

    >>> bins_of([[1], [2]], np.arange(8), 4)
    array([[2, 1, 3, 1, 0, 2, 0, 2],
           [2, 1, 3, 2, 0, 2, 1, 3]])
    """
    words = np.atleast_1d(np.asarray(seeds, dtype=WORD))
    hashed = np.empty(np.broadcast_shapes(words.shape, values.shape), dtype=np.int64)
    kernels.hash_values(words, values, bins, hashed, work=0)
    return hashed


def bin_masses(seeds: npt.ArrayLike, masses: npt.NDArray[Any], bins: int) -> npt.NDArray[Any]:
    """The mass of every bin, one row for every seed; `masses` may be integers or floats.

    >>> bin_masses([1, 2], np.array([1, 2, 3, 4]), 4)
    array([[0, 6, 1, 3],
           [0, 2, 5, 3]])
    """
    sums = np.zeros((np.size(seeds), bins), dtype=masses.dtype)
    rows = np.arange(len(sums))
    for x, mass in enumerate(masses):
        sums[rows, bins_of(seeds, np.array(x), bins)] += mass
    return sums


def fresh_draw_table(masses: Sequence[int], fresh: int) -> Ints:
    """Theorem 3 in integers: the truth, or with probability `fresh / 2**62` a draw from the prior.

    Off the diagonal `W[b, y] = floor(fresh * masses[y] / sum(masses))`; the diagonal takes the rest.

    >>> fresh_draw_table([1, 3], TOTAL // 2) // (TOTAL // 8)
    array([[5, 3],
           [1, 7]])
    """
    total = sum(masses)
    common = np.array([fresh * mass // total for mass in masses], dtype=np.int64)
    return common + np.eye(common.size, dtype=np.int64) * np.int64(TOTAL - int(common.sum()))


@dataclass(frozen=True, eq=False)
class PooledHash(NumberedReports):
    """Hashing with a public pool of seeds, and Theorem 3 on groups of bins; a value for each of `weights`.

    Seed `s` sends value `x` into a bin, bin `b` belongs to group `groups[s, b]`, and the group is reported
    through `fresh_draw_table` for the masses that the prior `weights` gives to the groups of `s`.

    >>> pool = PooledHash((1, 1, 1, 1), np.array([11, 8]), np.array([[0, 1], [0, 1]]), TOTAL // 2)
    >>> pool.outputs, pool.draws_per_report, pool.assignments()
    (4, 2, array([[0, 1, 1, 0],
           [1, 0, 1, 0]]))
    >>> from priorveil import LIP, Prior
    >>> pool.lifts(Prior.uniform(4), None, LIP()).highest
    Fraction(3, 2)
    """

    weights: tuple[int, ...]
    seeds: Words
    groups: Ints
    fresh: int

    kind: ClassVar[str] = "hashing"
    draws_per_report = 2  # one for the seed, one for the table

    def __post_init__(self) -> None:
        seeds = np.array(self.seeds, dtype=WORD).reshape(-1)
        groups = own_integers("groups", self.groups, 2)
        if seeds.size == 0 or seeds.size & seeds.size - 1:
            raise InvalidInput("seeds", NOT_SHOWN, f"{seeds.size} seeds; give a power of two of them")
        if len(groups) != seeds.size:
            raise InvalidInput("groups", groups.shape, f"give {seeds.size} rows, one for each seed")
        if groups.min() < 0 or groups.max() >= groups.shape[1]:
            raise InvalidInput("groups", groups, f"give numbers from 0 to {groups.shape[1] - 1}")
        if not 0 <= self.fresh < TOTAL:
            raise InvalidInput("fresh", self.fresh, "give a whole number below 2**62")
        if min(self.weights, default=0) < 1:
            raise InvalidInput("weights", self.weights, "give positive whole numbers, one for every value")
        seeds.flags.writeable = False
        for name, array in (("seeds", seeds), ("groups", groups)):
            object.__setattr__(self, name, array)

    @cached_property
    def tables(self) -> Ints:
        """The integer table of every seed on its groups, (seeds, groups, groups)."""
        masses = exact_group_masses(self.seeds, self.groups, self.weights)
        return np.stack([fresh_draw_table(row, self.fresh) for row in masses])

    @cached_property
    def _rows(self) -> Table:
        """All the tables under each other: row `seed index * groups + group`."""
        return Table(self.tables.reshape(-1, self.groups_per_seed))

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.weights)

    @property
    def bins(self) -> int:
        """Bins of every hash function."""
        return int(self.groups.shape[1])

    @property
    def groups_per_seed(self) -> int:
        """Groups of every seed: what can be reported once the seed is known."""
        return int(self.groups.max()) + 1

    @property
    def outputs(self) -> int:
        """How many different reports there are."""
        return int(self.seeds.size) * self.groups_per_seed

    def assignments(self, part: slice | Ints = slice(None)) -> Ints:
        """The group of every value under every seed, (seeds, values), or under some of the seeds."""
        bins = bins_of(self.seeds[part, None], np.arange(self.size), self.bins)
        return np.take_along_axis(self.groups[part], bins, axis=1)

    def draw(self, codes: Ints, words: Words, reports: Ints, total: int) -> None:
        """Fill `reports` for valid codes."""
        index = (words[:, 0] & np.uint64(self.seeds.size - 1)).astype(np.int64)
        bins = np.empty_like(index)
        kernels.hash_values(self.seeds[index], codes, self.bins, bins, work=total)
        first = index * self.groups_per_seed
        self._rows.draw(first + self.groups[index, bins], words[:, 1:], reports, total)
        reports += first

    @property
    def matrix(self) -> Array:
        """The channel `Q[x, report]` in floats: values times reports; raises `TooLarge` when huge."""
        interface.require_writable(self.size, self.outputs)
        return np.hstack([block for _, block in self.channel_parts()])

    @property
    def leakage_matrix(self) -> tuple[Array, None]:
        """`matrix`, if it is small enough to be measured."""
        interface.require_writable(self.size, self.outputs, MOST_MEASURED)
        return self.matrix, None

    def columns(self, reports: Ints) -> Array:
        """The columns of the channel for some of the reports, a row for each."""
        index, y = np.divmod(reports, self.groups_per_seed)
        weights = self.tables[index[:, None], self.assignments(index), y[:, None]]
        return weights / (float(TOTAL) * self.seeds.size)

    def channel_parts(self) -> Iterator[tuple[slice, Array]]:
        """The channel a few seeds at a time: which reports, and their columns."""
        step = max(1, _BLOCK // (self.size * self.groups_per_seed))
        for first in range(0, self.seeds.size, step):
            part = slice(first, min(first + step, self.seeds.size))
            chosen = self.tables[np.arange(self.seeds.size)[part, None], self.assignments(part)]
            Q = chosen.transpose(1, 0, 2).reshape(self.size, -1) / (float(TOTAL) * self.seeds.size)
            yield slice(part.start * self.groups_per_seed, part.stop * self.groups_per_seed), Q

    def law(self, p: Array) -> Array:
        """`p @ matrix`."""
        return np.concatenate([p @ block for _, block in self.channel_parts()], axis=-1)

    def lifts(self, prior: PriorOrSet, secret: Secrets, notion: Cone) -> Lifts:
        """The exact extremes over all seeds: the seed is public, so each seed is a channel of its own."""
        one_prior = interface.single_prior(prior, secret, notion, self.kind)
        masses = exact_group_masses(self.seeds, self.groups, one_prior.weights)
        return interface.worst_lifts([_seed_lifts(*each) for each in zip(self.tables, masses, strict=True)])

    def parameters(self) -> dict[str, Any]:
        """The four fields; long integers as strings."""
        return {
            "weights": [str(w) for w in self.weights],
            "seeds": [str(seed) for seed in self.seeds.tolist()],
            "groups": self.groups.tolist(),
            "fresh": str(self.fresh),
        }

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> PooledHash:
        """Read a pool from the parameters in its JSON document."""
        seeds = np.array([int(seed) for seed in parameters["seeds"]], dtype=WORD)
        weights = tuple(int(w) for w in parameters["weights"])
        return cls(weights, seeds, np.array(parameters["groups"]), int(parameters["fresh"]))


def exact_group_masses(seeds: npt.ArrayLike, groups: Ints, weights: Sequence[int]) -> list[list[int]]:
    """The mass of every group of bins, one row for every seed, in integers of any size.

    The weights are added up in pieces of 32 bits, which are put together at the end.

    >>> exact_group_masses([1], np.array([[0, 1, 1, 0]]), [1, 2, 3, 2**100]) == [[3, 3 + 2**100]]
    True
    """
    sums = np.zeros((len(groups), int(groups.max()) + 1), dtype=object)
    for shift in range(0, max(weights).bit_length(), 32):
        part = np.array([w >> shift & 0xFFFFFFFF for w in weights], dtype=np.int64)
        by_bin = bin_masses(seeds, part, groups.shape[1]).astype(object) << shift
        np.add.at(sums, (np.arange(len(groups))[:, None], groups), by_bin)
    return [list(row) for row in sums]


def _seed_lifts(table: Ints, masses: Sequence[int]) -> Lifts:
    """The exact extremes of one seed's table, without the groups and reports that never occur."""
    filled = [group for group, mass in enumerate(masses) if mass]
    rows, prior = table[filled], Prior.from_counts([masses[group] for group in filled])
    return lifts(rows[:, rows.any(axis=0)], prior, None, LDP())
