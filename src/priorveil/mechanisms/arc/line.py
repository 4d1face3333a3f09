"""One public order of an arc mechanism, in integers: segments on a line, a circle, a window and a coin.

A line of `2**bits` places holds a segment for every value, `lengths[x]` places long, laid end to end
in `order`. The first `heavy` segments own an output each. The places from `start` on are bent into a
circle of `circumference` places. (`start` is the end of the last heavy segment, or lies within it: then
that value lends the circle the end of its segment.)

**The sampler.** One report takes exactly three 64-bit words, whatever the value is, in this order:

1. *coin*: the value is used if `coin < keep`; otherwise the report is a fresh draw;
2. *place*: with the value, place `t = starts[x] + floor(place * lengths[x] / 2**64)` of its segment;
   without it, place `t = floor(place * 2**bits / 2**64)` of the whole line;
3. *shift*: `w = floor(shift * window / 2**64)`.

The report is one number: the rank in `order` of the segment that holds `t` if `t < start`, and
`heavy + (t - start - w) mod circumference` otherwise. It is below `2**53`, so that JSON and JavaScript
carry it exactly. There is no rejection: every value takes the same words and the same steps (which memory a
step touches does depend on the value).

**The law.** `floor(r n / 2**64)` of a uniform word falls on each of `n` places for `floor(2**64 / n)`
or `ceil(2**64 / n)` of the words, and on the first `i` places for exactly `ceil(i 2**64 / n)` of them.
The certificate (`priorveil.mechanisms.arc.certificate`) counts with these numbers, never with their limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Ints, own_integers
from priorveil.errors import InvalidInput
from priorveil.mechanisms.randomness import Words

DRAWS = 3
MAX_BITS = 52


@dataclass(frozen=True, eq=False)
class ArcLine:
    """A line of segments, a circle, a window and a coin; integers only.

    `word` is the width of a random word: 64 on every device; tests use small ones to count all draws.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> toy.circumference, toy.outputs, toy.starts.tolist()
    (8, 9, [0, 8, 12])
    """

    lengths: Ints
    order: Ints
    heavy: int
    start: int
    window: int
    keep: int
    bits: int
    word: int = 64

    def __post_init__(self) -> None:
        for name in ("lengths", "order"):
            object.__setattr__(self, name, own_integers(name, getattr(self, name), 1))
        _check_line(self)

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> ArcLine:
        """Read a line from the parameters in the JSON document of a mechanism, which name its `circle`."""
        lengths = np.array([int(n) for n in parameters["lengths"]], dtype=np.int64)
        owners = np.array(parameters["owners"], dtype=np.int64)
        order = np.concatenate([owners, np.array(parameters["circle"], dtype=np.int64)])
        start, window, keep, bits = (int(parameters[name]) for name in ("start", "window", "keep", "bits"))
        return cls(lengths, order, owners.size, start, window, keep, bits)

    def parameters(self) -> dict[str, Any]:
        """The line as JSON, without its circle."""
        return {
            "bits": self.bits,
            "lengths": [str(n) for n in self.lengths.tolist()],
            "owners": self.owners.tolist(),
            "window": str(self.window),
            "keep": str(self.keep),
        }

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.lengths)

    @property
    def places(self) -> int:
        """How many places the line has."""
        return 1 << self.bits

    @property
    def circumference(self) -> int:
        """How many places the circle has; zero when every value owns an output."""
        return self.places - self.start

    @property
    def outputs(self) -> int:
        """Reports are `0 .. outputs - 1`."""
        return self.heavy + self.circumference

    @property
    def keep_chance(self) -> float:
        """The probability that the value is used."""
        return self.keep / (1 << self.word)

    @property
    def owners(self) -> Ints:
        """The values that own an output, in order."""
        return self.order[: self.heavy]

    @cached_property
    def edges(self) -> Ints:
        """The `d + 1` ends of the segments, along the line."""
        return np.concatenate([[0], np.cumsum(self.lengths[self.order])]).astype(np.int64)

    @cached_property
    def starts(self) -> Ints:
        """Where the segment of each value begins, by code."""
        starts = np.empty_like(self.lengths)
        starts[self.order] = self.edges[:-1]
        return starts

    @cached_property
    def own_sizes(self) -> Ints:
        """How many places each owned output has: the segment of its owner, without what it lends."""
        return np.diff(np.append(self.edges[: self.heavy], self.start))

    @cached_property
    def members(self) -> Ints:
        """The values on the circle, in order; a lender first."""
        lends = int(self.start < self.edges[self.heavy])
        return self.order[self.heavy - lends :]

    @cached_property
    def rim(self) -> Ints:
        """The ends of the arcs, from 0 to the circumference."""
        return np.maximum(self.edges[self.size - len(self.members) :] - self.start, 0)


def _check_line(m: ArcLine) -> None:
    """Refuse parameters that do not describe a sampler, naming the field."""
    d = len(m.lengths)

    def need(holds: bool, field: str, advice: str) -> None:
        if not holds:
            raise InvalidInput(field, getattr(m, field), advice)

    need(0 < m.bits <= min(MAX_BITS, m.word), "bits", f"the line has 2**bits places, at most 2**{MAX_BITS}")
    need(m.word == 64 or m.word <= 30, "word", "words have 64 bits")
    need(int(m.lengths.min()) >= 1, "lengths", "every value needs at least one place")
    need(sum(m.lengths.tolist()) == m.places, "lengths", "the segments must fill the line exactly")
    need(len(m.order) == d and bool(np.all(np.sort(m.order) == np.arange(d))), "order", "give a permutation")
    need(0 <= m.heavy <= d, "heavy", "the number of values that own an output")
    last = int(m.edges[m.heavy])
    lends = m.heavy > 0 and m.edges[m.heavy - 1] < m.start < last
    begins = m.start == last or (lends and m.heavy < d)
    need(begins, "start", "the circle begins at the end of the last heavy segment, or within it")
    fits = 1 <= m.window <= m.circumference or (m.circumference == 0 == m.window)
    need(fits, "window", "at least one place, at most the circumference")
    need(0 <= m.keep < 1 << m.word, "keep", "a numerator over 2**word")


def scale_words(words: Words, sizes: npt.ArrayLike, word: int = 64) -> Ints:
    """`floor(words * sizes / 2**word)`, exactly; sizes below `2**53`.

    For 64-bit words the product is taken in halves: with `r = r1 2**32 + r0` and `n = n1 2**32 + n0` the
    high half is `r1 n1` plus the carries of the two middle products; none of the steps overflows.
    """
    n = np.asarray(sizes, dtype=np.uint64)
    if word < 64:
        return np.asarray((words * n) >> np.uint64(word), dtype=np.int64)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    r1, r0, n1, n0 = words >> half, words & mask, n >> half, n & mask
    middle = r1 * n0 + ((r0 * n0) >> half)
    carry = (r0 * n1 + (middle & mask)) >> half
    return np.asarray(r1 * n1 + (middle >> half) + carry, dtype=np.int64)


def draw_places(
    words: Words, begins: Ints, lengths: Ints, start: Any, window: Any, keep: Any, bits: int, word: int = 64
) -> tuple[Ints, Ints]:
    """The place on the line and the place on the circle that coin, place and shift (the last words) give.

    `begins` and `lengths` are the segments of the values; the other numbers may differ by row or not. Both the
    place in the segment and the fresh place are computed for everyone, and one is taken.
    """
    coin, place, shift = words[:, -3], words[:, -2], words[:, -1]
    true_place = begins + scale_words(place, lengths, word)
    fresh_place = (place >> np.uint64(word - bits)).astype(np.int64)
    t = np.where(coin < np.asarray(keep, dtype=np.uint64), true_place, fresh_place)
    circle_place = t - np.asarray(start) - scale_words(shift, window, word)
    return t, circle_place + np.where(circle_place < 0, (1 << bits) - np.asarray(start), 0)
