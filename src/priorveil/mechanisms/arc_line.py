"""The arc mechanism in integers: what a device runs.

A line of `2**bits` places holds a segment for every input, `lengths[x]` places long, laid end to end
in `order`. The first `heavy` segments own an output each. The places from `start` on are bent into a
circle of `circumference` places. (`start` is the end of the last heavy segment, or lies within it: then
that input lends the circle the end of its segment.)

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
The certificate (`priorveil.mechanisms.arc_bounds`) counts with these numbers, never with their limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput
from priorveil.mechanisms.kernels import fast

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

DRAWS = 3
MAX_BITS = 52

_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class ArcLine:
    """A line of segments, a circle and a coin; integers only.

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
        object.__setattr__(self, "lengths", _integers("lengths", self.lengths))
        object.__setattr__(self, "order", _integers("order", self.order))
        _check(self)

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
        """How many places the circle has; zero when every input owns an output."""
        return self.places - self.start

    @property
    def outputs(self) -> int:
        """Reports are `0 .. outputs - 1`."""
        return self.heavy + self.circumference

    @cached_property
    def edges(self) -> Ints:
        """The `d + 1` ends of the segments, along the line."""
        return np.concatenate([[0], np.cumsum(self.lengths[self.order])]).astype(np.int64)

    @cached_property
    def starts(self) -> Ints:
        """Where the segment of each input begins, by code."""
        starts = np.empty_like(self.lengths)
        starts[self.order] = self.edges[:-1]
        return starts


def _integers(argument: str, values: npt.ArrayLike) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInput(argument, values, "give a list of integers")
    return np.ascontiguousarray(array, dtype=np.int64)


def _check(m: ArcLine) -> None:
    """Refuse parameters that do not describe a sampler, naming the field."""
    d = len(m.lengths)

    def need(holds: bool, field: str, advice: str) -> None:
        if not holds:
            raise InvalidInput(field, getattr(m, field), advice)

    need(0 < m.bits <= min(MAX_BITS, m.word), "bits", f"the line has 2**bits places, at most 2**{MAX_BITS}")
    need(m.word == 64 or m.word <= 30, "word", "words have 64 bits")
    need(int(m.lengths.min()) >= 1, "lengths", "every input needs at least one place")
    need(int(m.lengths.max()) <= m.places, "lengths", "the segments must fill the line exactly")
    need(sum(m.lengths.tolist()) == m.places, "lengths", "the segments must fill the line exactly")
    need(len(m.order) == d and bool(np.all(np.sort(m.order) == np.arange(d))), "order", "give a permutation")
    need(0 <= m.heavy <= d, "heavy", "the number of inputs that own an output")
    last = int(m.edges[m.heavy])
    lends = m.heavy > 0 and m.edges[m.heavy - 1] < m.start < last
    begins = m.start == last or (lends and m.heavy < d)
    need(begins, "start", "the circle begins at the end of the last heavy segment, or within it")
    fits = 1 <= m.window <= m.circumference or (m.circumference == 0 == m.window)
    need(fits, "window", "at least one place, at most the circumference")
    need(0 <= m.keep < 1 << m.word, "keep", "a numerator over 2**word")
    need(m.outputs < 1 << 53, "heavy", "reports must stay below 2**53")


def scaled(words: Words, sizes: Words | int, word: int) -> Ints:
    """`floor(words * sizes / 2**word)`, exactly; sizes below `2**53`.

    For 64-bit words the product is taken in halves: with `r = r1 2**32 + r0` and `n = n1 2**32 + n0` the
    high half is `r1 n1` plus what is carried out of the two middle products; none of the steps overflows.
    """
    n = np.asarray(sizes, dtype=np.uint64)
    if word < 64:
        return np.asarray((words * n) >> np.uint64(word), dtype=np.int64)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    r1, r0, n1, n0 = words >> half, words & mask, n >> half, n & mask
    middle = r1 * n0 + ((r0 * n0) >> half)
    carry = (r0 * n1 + (middle & mask)) >> half
    return np.asarray(r1 * n1 + (middle >> half) + carry, dtype=np.int64)


def sample_arc(line: ArcLine, codes: npt.ArrayLike, words: Words, work: int | None = None) -> Ints:
    """One report per code; `words` has one row of three words (coin, place, shift) per code.

    `work` is the number of reports in all, where these are a part; it decides whether compiled code pays.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> sample_arc(toy, [0, 1], np.array([[0, 0, 0], [0, 2**63, 2**62]], dtype=np.uint64)).tolist()
    [0, 2]
    """
    m, x = line, np.asarray(codes, dtype=np.int64)
    out = np.empty(len(x), dtype=np.int64)
    loop = fast(walk_line, work or len(x)) if m.word == 64 else None
    if loop is not None:
        circle = np.array([m.start, m.circumference, m.window, 64 - m.bits, m.heavy], dtype=np.int64)
        loop(x, words, m.starts, m.lengths, m.edges[1 : m.heavy], circle, np.uint64(m.keep), out)
        return out
    for first in range(0, len(x), _BLOCK):
        rows = slice(first, first + _BLOCK)
        out[rows] = _sample_block(line, x[rows], words[rows])
    return out


def walk_line(
    codes: Ints,
    words: Words,
    starts: Ints,
    lengths: Ints,
    owned: Ints,
    circle: Ints,
    keep: np.uint64,
    out: Ints,
) -> None:
    """The loop that numba compiles; `_sample_block` is its twin.

    `circle` holds start, circumference, window, the shift of a fresh place, and the number of owned
    outputs.
    """
    start, round_, fresh_shift, heavy = circle[0], circle[1], np.uint64(circle[3]), circle[4]
    window = np.uint64(circle[2])
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    for i in range(codes.size):
        x = codes[i]
        place, shift, n = words[i, 1], words[i, 2], np.uint64(lengths[x])
        middle = (place >> half) * (n & mask) + (((place & mask) * (n & mask)) >> half)
        carry = ((place & mask) * (n >> half) + (middle & mask)) >> half
        told = starts[x] + np.int64((place >> half) * (n >> half) + (middle >> half) + carry)
        t = told if words[i, 0] < keep else np.int64(place >> fresh_shift)
        middle = (shift >> half) * (window & mask) + (((shift & mask) * (window & mask)) >> half)
        carry = ((shift & mask) * (window >> half) + (middle & mask)) >> half
        moved = t - start - np.int64((shift >> half) * (window >> half) + (middle >> half) + carry)
        moved += round_ if moved < 0 else 0
        low, high = 0, owned.size
        while low < high:
            centre = (low + high) >> 1
            if owned[centre] <= t:
                low = centre + 1
            else:
                high = centre
        out[i] = low if t < start else heavy + moved


def _sample_block(m: ArcLine, x: Ints, words: Words) -> Ints:
    return reports_from(m, m.starts[x], m.lengths[x], words)


def reports_from(m: ArcLine, starts: Ints, lengths: Ints, words: Words) -> Ints:
    """The reports of people whose segments begin at `starts`; words as in `sample_arc`.

    Both the told and the fresh place are worked out for everyone, and one is taken.
    """
    coin, place, shift = words[:, 0], words[:, 1], words[:, 2]
    told = starts + scaled(place, lengths.astype(np.uint64), m.word)
    fresh = (place >> np.uint64(m.word - m.bits)).astype(np.int64)
    t = np.where(coin < np.uint64(m.keep), told, fresh)
    moved = t - m.start - scaled(shift, m.window, m.word)
    moved += np.where(moved < 0, m.circumference, 0)
    if m.heavy == 0:
        return moved
    owner = np.searchsorted(m.edges[1 : m.heavy], t, side="right")
    return np.where(t < m.start, owner, m.heavy + moved)
