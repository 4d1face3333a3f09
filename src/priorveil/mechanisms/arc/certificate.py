"""The certificate of an arc mechanism, and the least noisy mechanism within given bounds.

Everything here is in integers and fractions, and every rounding is to the safe side.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Ints
from priorveil.certify import Lifts
from priorveil.mechanisms.arc.line import ArcLine

BigInts = npt.NDArray[np.object_]
PriorWeights = Sequence[int] | npt.NDArray[Any]

# Bounds are compared in fixed point with this many binary places, each rounded to the safe side.
_PLACES = 128


def arc_lifts(line: ArcLine, weights: PriorWeights, every_order: bool = False) -> Lifts:
    """Bounds on the lifts of the sampled law under the prior `weights / sum(weights)` (integers).

    Let `k = keep / 2**word`, `M = 2**bits` and `T[x, y]` the law of the report given that the value is
    used. Then `Q[x, y] = (1 - k) size_y / M + k T[x, y]`, exactly: `size_y` is the number of places of
    an owned output and one for a place of the circle, where a fresh point stays uniform under any
    independent shift. In units of `size_y / M`, with *boost* `= max_x T` and *mean* `= sum_x P_x T`,

        `(1 - k) / (1 - k + k mean) <= lift <= (1 - k + k boost) / (1 - k + k mean)`,

    and the ratio of two rows is at most `1 + k boost / (1 - k)`. `_terms` bounds boost and mean, in the order of the
    line or in every order of the values on its circle.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> lifts = arc_lifts(toy, [2, 1, 1])
    >>> round(float(lifts.lowest), 6), round(float(lifts.highest), 6)
    (0.5, 2.5)
    """
    boost, low, high = _terms(line, weights, every_order)
    used, fresh = line.keep, (1 << line.word) - line.keep
    one = 1 << _PLACES
    top = fresh * one + used * boost
    ceilings = -((-top << _PLACES) // (fresh * one + used * low))
    ratio = Fraction(fresh * one + used * int(boost.max()), fresh * one)
    lowest = Fraction(fresh * one, fresh * one + used * int(high.max()))
    return Lifts(lowest, Fraction(int(ceilings.max()), one), ratio, ratio)


def _terms(m: ArcLine, weights: PriorWeights, every_order: bool) -> tuple[BigInts, BigInts, BigInts]:
    """Upper bounds of boost, lower and upper bounds of mean, per owned output and one for the circle.

    An owned output: its owner alone reports it, with probability `own = ceil(size 2**word / length)` over
    `2**word` (one, unless it lends). So boost is `own M / size`, and mean is `P_owner` times that.

    The circle: let `V_x(u)` be the probability that the place of `x`, before the shift, lies in `[u, u + window)`.
    Each place is met by at most one shift, of probability between `f = floor(2**word / window) / 2**word`
    and `c = ceil(..) / 2**word`. So `f V_x <= T[x, u] <= c V_x <= c`: boost is at most `c M`, and mean
    lies between `f M V` and `c M V` with `V(u) = sum_x P_x V_x(u)`. To bound `V`: let `F(t)` be
    the probability, over the prior, that this place is before `t`, and `E(t) = F(t) - t / M`. At the
    ends of segments `E` is the rounding error of the layout; within a segment `F` is the straight line
    between its ends plus less than `2**-word`. So every `E(t)` on the circle lies in `[e, e']`, with
    `e` the least and `e'` the largest `E` at the ends of its segments, plus `2**-word`. A window
    that does not wrap has `V = window / M + E(u + window) - E(u)`; one that does has two such differences.
    Hence `|V - window / M| <= 2 (e' - e)`.

    In another order of the circle the segments keep their lengths, and `E` at the end of one is `E` at the start of
    the circle plus a sum of some of the steps `P_x - length_x / M`. So `e' - e` is at most the sum of their sizes.
    """
    n = big_integers(weights)[m.order]
    total, M, W, words = int(n.sum()), m.places, m.window, 1 << m.word
    size, length = m.own_sizes.astype(object), np.diff(m.edges[: m.heavy + 1]).astype(object)
    own = -((-size * words) // length)
    boost = -((-own * (M << _PLACES)) // (size * words))
    low = own * (M << _PLACES) * n[: m.heavy] // (size * (words * total))
    high = -((-own * (M << _PLACES) * n[: m.heavy]) // (size * (words * total)))
    if m.circumference == 0:
        return boost, low, high
    first = m.heavy - int(m.start < m.edges[m.heavy])
    before = np.concatenate([np.zeros(1, dtype=object), np.cumsum(n)])[first:]
    drift = before * M - m.edges[first:].astype(object) * total
    drift_bound = np.abs(np.diff(drift)).sum() if every_order else drift.max() - drift.min()
    slack = 2 * (Fraction(int(drift_bound), M * total) + Fraction(1, words))
    least, most = max(Fraction(W, M) - slack, Fraction(0)), min(Fraction(W, M) + slack, Fraction(1))
    floor, ceil = Fraction(words // W * M, words), Fraction(-(-words // W) * M, words)
    return (
        np.append(boost, _fixed_point(ceil, up=True)),
        np.append(low, _fixed_point(floor * least, up=False)),
        np.append(high, _fixed_point(ceil * most, up=True)),
    )


def _fixed_point(number: Fraction, up: bool) -> int:
    """A fraction in fixed point, rounded up or down."""
    scaled = number.numerator << _PLACES
    return -(-scaled // number.denominator) if up else scaled // number.denominator


def big_integers(weights: PriorWeights) -> BigInts:
    """Integer weights as Python integers, which never overflow.

    >>> big_integers([3, 2**70]).tolist()
    [3, 1180591620717411303424]
    """
    return np.array([operator.index(weight) for weight in weights], dtype=object)


def line_edges(weights: BigInts, size: int) -> Ints:
    """The ends of the segments: cumulative weight, scaled to `size` and rounded.

    Rounding the running total, not each length, keeps every stretch of the line within one place of its mass,
    except where values too unlikely for one place are given one.

    >>> line_edges(big_integers([1, 1, 1]), 16).tolist()
    [0, 5, 11, 16]
    >>> line_edges(big_integers([10**9, 1, 1]), 16).tolist()
    [0, 14, 15, 16]
    """
    total = int(weights.sum())
    ends = ((np.cumsum(weights) * (2 * size) + total) // (2 * total)).astype(np.int64)
    return np.asarray(separate_edges(ends[None], size)[0])


def separate_edges(ends: Ints, size: int) -> Ints:
    """Rounded ends of segments (a line in each row) with a zero in front, moved so that no segment is empty."""
    d = ends.shape[1]
    ranks = np.arange(1, d + 1)
    ends = np.maximum.accumulate(np.maximum(ends - ranks, 0), axis=1) + ranks
    ends = np.minimum(ends, size - (d - ranks))
    return np.concatenate([np.zeros((len(ends), 1), dtype=np.int64), ends], axis=1)


def lay_circles(edges: Ints, heavy: Ints, window: Ints) -> tuple[Ints, Ints]:
    """Where each circle begins, and its window, which is the whole of a shorter circle; a line in each row.

    A circle shorter than the window borrows from the last heavy segment, of which at least one place is left.
    """
    rows, size = np.arange(len(edges)), edges[:, -1]
    start, light = edges[rows, heavy], heavy < edges.shape[1] - 1
    lends = light & (heavy > 0) & (size - start < window)
    lent = np.maximum(size - window, edges[rows, np.maximum(heavy - 1, 0)] + 1)
    start = np.where(lends, lent, start)
    return start, np.where(light, np.minimum(window, size - start), 0)


def fit_line(
    weights: PriorWeights,
    order: npt.ArrayLike,
    heavy: int,
    lo_upper: Fraction,
    hi_lower: Fraction | None,
    bits: int | None = None,
    word: int = 64,
    every_order: bool = False,
) -> ArcLine:
    """The mechanism with the largest `keep` whose certificate proves `lo_upper <= lift <= hi_lower`.

    `weights` is the exact prior in integers; `order` and `heavy` are the layout; `lo_upper` is a
    rational not below `e^-lower` and `hi_lower` one not above `e^upper` (None: no upper bound).

    >>> m = fit_line([5, 2, 2, 1], [0, 1, 2, 3], 1, Fraction(37, 100), Fraction(271, 100))
    >>> lifts = arc_lifts(m, [5, 2, 2, 1])
    >>> lifts.lowest >= Fraction(37, 100), lifts.highest <= Fraction(271, 100), round(m.keep / 2**64, 6)
    (True, True, 0.63)
    """
    bits = bits or line_bits(lo_upper, hi_lower)
    places = np.asarray(order, dtype=np.int64)
    edges = line_edges(big_integers(weights)[places], 1 << bits)
    lengths = np.empty(len(places), dtype=np.int64)
    lengths[places] = np.diff(edges)
    tau = (1 - lo_upper) / (hi_lower - lo_upper) if hi_lower is not None else Fraction(0)
    least_window = max(1, -(-(tau.numerator << bits) // tau.denominator))
    start, window = lay_circles(edges[None], np.array([heavy]), np.array([least_window]))
    draft = ArcLine(lengths, places, heavy, int(start[0]), int(window[0]), 0, bits, word)
    return replace(draft, keep=largest_keep(draft, weights, lo_upper, hi_lower, every_order))


def line_bits(lo: Fraction, hi: Fraction | None) -> int:
    """How long to make the line: `2**40` places, more for narrow windows, `2**48` at most.

    A window of `W` places costs about `2 / W` by rounding the layout, `W / 2**64` by that of the shift.

    >>> line_bits(Fraction(1, 3), Fraction(3)), line_bits(Fraction(1, 3000), Fraction(3000))
    (40, 44)
    """
    narrow = int((hi - lo) / (1 - lo)).bit_length() if hi is not None else 16
    return 32 + min(max(narrow, 8), 16)


def largest_keep(
    line: ArcLine, weights: PriorWeights, lo: Fraction, hi: Fraction | None, every_order: bool = False
) -> int:
    """The largest `keep` with which this line proves `lo <= lift <= hi`; see `fit_line`.

    With the odds `q = k / (1 - k)` both bounds are linear: `q lo mean <= 1 - lo` and `q (boost - hi mean) <= hi - 1`.

    >>> m = fit_line([5, 2, 2, 1], [0, 1, 2, 3], 1, Fraction(37, 100), Fraction(271, 100))
    >>> largest_keep(m, [5, 2, 2, 1], Fraction(37, 100), Fraction(271, 100)) == m.keep
    True
    """
    boost, low, high = _terms(line, weights, every_order)
    one, odds = 1 << _PLACES, []
    if lo > 0:
        odds.append((1 - lo) * one / (lo * int(high.max())))
    if hi is not None:
        hi -= Fraction(1, one)  # the certificate rounds the largest lift up by less than this
        excess = int((boost * hi.denominator - low * hi.numerator).max())
        if excess > 0:
            odds.append((hi - 1) * one * hi.denominator / excess)
    most = (1 << line.word) - 1
    return min(most, *(int(q / (1 + q) * (1 << line.word)) for q in odds)) if odds else most
