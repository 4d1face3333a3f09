"""Many arc mechanisms at once: a row for each person, with a prior and a budget of its own, without a Python loop.

Row `i` is an `ArcLine` like any other: segments on a line of `2**BITS` places, a circle, a window and a coin,
and the same sampler, so that one person's row runs on a device as an `Arc`. Here the design, the certificate,
the sampler and the posteriors are computed for all rows together.

**The certificate in floats.** The bounds are those of `arc.certificate`, where they are proven for exact numbers;
only the arithmetic differs. Integers below `2**53` are exact in floats. Everything else is a product or a
quotient of at most some twenty positive numbers, so that each rounding changes it by a factor of at most `1 +
2**-53`; a running sum of `d` probabilities takes `d` more; numpy's `log1p` and `expm1` are trusted to a
factor of `1 + 2**-46` (they err by a few `2**-53`). `_slack` is larger than all of it together, and every
bound is moved by it to the unsafe side before it is compared. Differences of near numbers are formed last,
from ends already moved apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priorveil.arrays import Array, Ints, Mask
from priorveil.mechanisms.arc import Arc
from priorveil.mechanisms.arc.certificate import lay_circles, separate_edges
from priorveil.mechanisms.arc.line import ArcLine, draw_places
from priorveil.mechanisms.randomness import Words
from priorveil.priors.budget import window_mass

BITS = 40
PLACES = 1 << BITS
_WORDS = 2.0**64


class ArcBatch(NamedTuple):
    """A line, a circle and a coin in each of `K` rows: the fields of `ArcLine`, with one more axis.

    `order` (K, d) runs along each line, `edges` (K, d + 1) are the ends of the segments in that order.
    """

    order: Ints
    edges: Ints
    heavy: Ints
    start: Ints
    window: Ints
    keep: Words

    @property
    def circumference(self) -> Ints:
        """How many places each circle has."""
        return PLACES - self.start

    @property
    def outputs(self) -> Ints:
        """Reports of row `i` are `0 .. outputs[i] - 1`."""
        return self.heavy + self.circumference

    @property
    def odds(self) -> Array:
        """`k / (1 - k)`: how much likelier the value is used than a fresh draw is made."""
        return self.keep.astype(np.float64) / ((~self.keep).astype(np.float64) + 1)

    @property
    def keep_chance(self) -> Array:
        """`k`: the probability that the value is used."""
        return self.keep.astype(np.float64) / _WORDS

    def rows(self, part: slice | Ints | Mask) -> ArcBatch:
        """Some of the rows."""
        return ArcBatch._make(column[part] for column in self)

    def replace_rows(self, rows: Ints, others: ArcBatch) -> ArcBatch:
        """The batch with `others` in place of these rows."""
        columns = [column.copy() for column in self]
        for column, other in zip(columns, others, strict=True):
            column[rows] = other
        return ArcBatch._make(columns)

    def arc(self, row: int) -> Arc:
        """One row as the mechanism that its device runs."""
        order = self.order[row]
        lengths = np.empty(len(order), dtype=np.int64)
        lengths[order] = np.diff(self.edges[row])
        heavy, start, window, keep = (int(column[row]) for column in self[2:])
        return Arc(ArcLine(lengths, order, heavy, start, window, keep, BITS))


class RowLeakage(NamedTuple):
    """The proven levels of all rows, in natural logarithms, rounded up: a `Certificate` with an entry for each row."""

    lip_lower: Array
    lip_upper: Array
    ldp: Array

    @property
    def lip(self) -> Array:
        """The larger of the two sides."""
        return np.maximum(self.lip_lower, self.lip_upper)


def _slack(size: int) -> float:
    """More than all roundings together can change a number, as a share of it."""
    return (size + 256) * 2.0**-50


def row_windows(lower: Array, upper: Array) -> Array:
    """The window mass `tau` of every row."""
    return window_mass(np.exp(-lower), np.where(upper < 700, np.exp(np.minimum(upper, 700.0)), np.inf))


def fit_batch(priors: Array, lower: Array, upper: Array, order: Ints, heavy: Ints) -> ArcBatch:
    """For each row the line with the largest `keep` whose certificate meets `lower` and `upper`.

    `order` and `heavy` are the layout; see `priorveil.designs.arc_design`.

    >>> P = np.array([[0.5, 0.2, 0.2, 0.1]])
    >>> lines = fit_batch(P, np.ones(1), np.ones(1), np.arange(4)[None], np.array([1]))
    >>> bool(0.999999 < row_levels(lines, P).lip[0] <= 1), lines.keep_chance.round(6).tolist()
    (True, [0.632121])
    """
    running = np.cumsum(np.take_along_axis(priors, order, axis=1), axis=1)
    edges = separate_edges(np.rint(running / running[:, -1:] * PLACES).astype(np.int64), PLACES)
    window = np.maximum(1, np.ceil(row_windows(lower, upper) * PLACES)).astype(np.int64)
    start, window = lay_circles(edges, heavy, window)
    draft = ArcBatch(order, edges, heavy, start, window, np.zeros(len(priors), dtype=np.uint64))
    return draft._replace(keep=_coin(_largest_odds(draft, priors, lower, upper)))


def _coin(odds: Array) -> Words:
    """`keep` for these odds, computed from `2**64 - keep`, because floats near one are too coarse."""
    likely, small = odds > 1, np.minimum(odds, 1.0)
    used = (small / (1 + small) * _WORDS).astype(np.uint64)
    fresh = np.ceil(_WORDS / (1 + np.clip(odds, 1.0, 2.0**63)))
    return np.where(likely, np.uint64(0) - fresh.astype(np.uint64), used)


def _bounds(m: ArcBatch, priors: Array) -> tuple[Array, Array, Array]:
    """The terms of `arc.certificate`: the largest boost, and the least and largest mean, of every output.

    The circle is the last column; entries of outputs that a row does not have are zero.

    An owned output is reported by its owner alone, with probability at most `size / length + 2**-64` where it
    lends and one where it does not: boost is `(1 + length / (size 2**64)) M / length` at most, and mean is
    that times `P`. On the circle, with `o = W / 2**64` for the rounding of the shift and `s` for that of the
    layout (the drift of `arc.certificate`, with the rounding of the running sum added), boost is at most `(1 + o)
    M / W`, and mean within `(1 +- o)(1 +- s M / W)`.
    """
    rows, d, tiny = np.arange(len(priors)), priors.shape[1], _slack(priors.shape[1])
    P = np.take_along_axis(priors, m.order, axis=1)
    P = P / P.sum(axis=1, keepdims=True)
    length = np.diff(m.edges, axis=1).astype(np.float64)
    size = np.maximum(np.minimum(m.edges[:, 1:], m.start[:, None]) - m.edges[:, :-1], 1)
    boost = PLACES / length * (1 + length / (size * _WORDS))
    owned = np.where(np.arange(d) < m.heavy[:, None], boost, 0.0)

    first = m.heavy - (m.start < m.edges[rows, m.heavy])
    drift = np.pad(np.cumsum(P, axis=1), ((0, 0), (1, 0))) - m.edges / PLACES
    there = np.arange(d + 1) >= first[:, None]
    spread = np.where(there, drift, -np.inf).max(axis=1) - np.where(there, drift, np.inf).min(axis=1)
    window = np.maximum(m.window, 1).astype(np.float64)
    o, scale = window / _WORDS, PLACES / window
    s = 2 * (spread + 2 * _slack(d) + 1 / _WORDS) * scale
    shared = np.stack([(1 + o) * scale, np.maximum(1 - (o + s + o * s), 0.0), 1 + (o + s + o * s)])
    shared = np.where(m.circumference > 0, shared, 0.0)
    boost, low, high = np.concatenate([np.stack([owned, owned * P, owned * P]), shared[:, :, None]], axis=2)
    return boost * (1 + tiny), low * (1 - tiny), high * (1 + tiny)


def _largest_odds(draft: ArcBatch, priors: Array, lower: Array, upper: Array) -> Array:
    """The largest odds `q` within both sides: `q mean <= e**lower - 1`, `q (boost - hi mean) <= hi - 1`."""
    boost, low, high = _bounds(draft, priors)
    tiny = _slack(priors.shape[1])
    fall, rise = (np.expm1(np.minimum(level, 709.0) * (1 - 8 * tiny)) for level in (lower, upper))
    excess = (boost - (1 + rise[:, None]) * low).max(axis=1)
    with np.errstate(divide="ignore", over="ignore"):
        down = np.where(lower < 700, fall / high.max(axis=1), np.inf)
        up = np.where((upper < 700) & (excess > 0), rise / np.maximum(excess, 1e-300), np.inf)
    return np.minimum(down, up) * (1 - 8 * tiny)


def row_levels(lines: ArcBatch, priors: Array) -> RowLeakage:
    """Proven levels of each row under its prior: `arc.certificate.arc_lifts` for all rows, rounded up.

    With the odds `q` of the coin, `-log(lowest) <= log(1 + q mean)`, `log(highest) <= log(1 + q (boost -
    mean) / (1 + q mean))`, and the LDP level is at most `log(1 + q boost)`.
    """
    tiny = _slack(priors.shape[1])
    boost, low, high = _bounds(lines, priors)
    q = lines.odds[:, None]
    lift = q * (boost - low) / (1 + q * low)
    return RowLeakage(
        np.log1p((q * high).max(axis=1) * (1 + tiny)) * (1 + tiny),
        np.log1p(np.maximum(lift, 0.0).max(axis=1) * (1 + tiny)) * (1 + tiny),
        np.log1p((q * boost).max(axis=1) * (1 + tiny)) * (1 + tiny),
    )


def sample_batch(lines: ArcBatch, rows: Ints, codes: Ints, words: Words) -> Ints:
    """One report per code, each from its own row; three words (coin, place, shift) per code, as in `arc.line`.

    The code reads the whole row, so memory access does not depend on the value.
    """
    order, edges = lines.order[rows], lines.edges[rows]
    mine = order == codes[:, None]
    begin = np.where(mine, edges[:, :-1], 0).sum(axis=1)
    length = np.where(mine, edges[:, 1:], 0).sum(axis=1) - begin
    start, heavy = lines.start[rows], lines.heavy[rows]
    t, circle_place = draw_places(words, begin, length, start, lines.window[rows], lines.keep[rows], BITS)
    passed = (edges[:, 1:] <= t[:, None]).sum(axis=1)
    return np.asarray(np.where(t < start, passed, heavy + circle_place))


def posteriors(lines: ArcBatch, priors: Array, rows: Ints, reports: Ints) -> Array:
    """`Pr(x | report)` for each report, (n, d), under the prior of its row.

    In units of a fresh draw the likelihood is `1 + q M / length` for the owner of an output, one for the
    others, and on the circle `1 + q (M / W) (share of the segment inside the window)`.
    """
    order, edges = lines.order[rows], lines.edges[rows]
    start, heavy = lines.start[rows][:, None], lines.heavy[rows][:, None]
    window, turn = lines.window[rows][:, None], lines.circumference[rows][:, None]
    place = reports[:, None] - heavy
    left, right = np.maximum(edges[:, :-1] - start, 0), np.maximum(edges[:, 1:] - start, 0)
    inside = np.maximum(np.minimum(right, place + window) - np.maximum(left, place), 0)
    inside += np.maximum(np.minimum(right + turn, place + window) - (left + turn), 0)
    shares = inside / np.maximum(window, 1)
    used = np.where(place < 0, np.arange(order.shape[1]) == reports[:, None], shares)
    likelihood = 1 + lines.odds[rows][:, None] * PLACES / np.diff(edges, axis=1) * used
    joint = np.take_along_axis(priors[rows], order, axis=1) * likelihood
    posterior: Array = np.empty_like(joint)
    np.put_along_axis(posterior, order, joint / joint.sum(axis=1, keepdims=True), axis=1)
    return posterior
