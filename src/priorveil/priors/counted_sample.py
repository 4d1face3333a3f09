"""Shares that a sample leaves possible: a box that holds those of its population, but for a share of samples.

Each share of `d` values lies in its Clopper-Pearson interval at `delta / (2 d)` a side, so all of them do at once in at
least `1 - delta` of all samples (Clopper and Pearson 1934, and Bonferroni). The ends are rounded outwards to nine
decimals in ball arithmetic, so the box is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flint import arb, ctx

from priorveil.errors import NOT_SHOWN, InvalidInput

_GRID = 10**9  # ends are whole numbers of this part of one
_BITS = 96  # of the ball arithmetic, at first
_MOST_PEOPLE = 1 << 40


@dataclass(frozen=True)
class CountedSample:
    """How many people of a sample have each value; in a share `delta` of samples the box may miss the true shares.

    >>> lower, upper = CountedSample((690, 110, 130, 70), 1e-6).box
    >>> lower[0], upper[0]
    (0.611116965, 0.762010754)
    """

    counts: tuple[int, ...]
    delta: float

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise InvalidInput("delta", self.delta, "give a share between 0 and 1, such as 1e-6")
        if not 0 < self.people <= _MOST_PEOPLE:
            raise InvalidInput("counts", NOT_SHOWN, "they count nobody, or too many: give those of a sample")

    @property
    def people(self) -> int:
        """How many people there are in the sample."""
        return sum(self.counts)

    @property
    def odds(self) -> int:
        """One of so many samples, at most, is misleading; rounded down."""
        return math.floor(1 / self.delta * (1 + 1e-12))

    @property
    def box(self) -> tuple[list[float], list[float]]:
        """The least and the largest share of each value."""
        if len(self.counts) == 1:
            return [1.0], [1.0]
        tail = self.delta / (2 * len(self.counts))
        lower = [_least_share(count, self.people, tail) for count in self.counts]
        upper = [_GRID - _least_share(self.people - count, self.people, tail) for count in self.counts]
        return [least / _GRID for least in lower], [most / _GRID for most in upper]

    def document(self) -> dict[str, Any]:
        """The sample as JSON."""
        return {"counts": [str(count) for count in self.counts], "delta": repr(self.delta)}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> CountedSample:
        """Read a sample from its JSON document."""
        return cls(tuple(map(int, document["counts"])), float(document["delta"]))


@lru_cache(maxsize=1 << 12)
def _least_share(count: int, people: int, tail: float) -> int:
    """The largest share, in grid points, at which `count` people or more have a probability of at most `tail`.

    By Hoeffding's inequality it is at most `sqrt(log(1 / tail) / (2 people))` below `count / people`.
    """
    reach = math.sqrt(-math.log(tail) / (2 * people))
    low = max(0, math.floor((count / people - reach) * _GRID) - 1)
    high = math.ceil(count / people * _GRID)  # there the probability is at least a half: more than the tail
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_rare(count, people, middle, tail) else (low, middle)
    return low


def _is_rare(count: int, people: int, share: int, tail: float) -> bool:
    """Whether `count` people or more with a value of this share are proven to have a probability of at most `tail`."""
    before, ctx.prec = ctx.prec, _BITS
    try:
        while True:
            chance = (arb(share) / _GRID).beta_lower(count, people - count + 1, 1)
            if chance <= tail or chance > tail:
                return bool(chance <= tail)
            ctx.prec *= 2
    finally:
        ctx.prec = before
