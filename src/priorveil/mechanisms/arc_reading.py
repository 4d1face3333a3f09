"""Reading arc reports: the posteriors, laws and variances that follow from a tally (`arc_cells`).

In floats, and up to the rounding that the certificate accounts for (about 1e-7 relative at most), the law of
the reports under the prior is uniform on the line, and the lift of `x` is `1 - k + k (M / length_x)
(overlap / window)`, with `M` the places of the line and an owned output counting as an overlap of one
whole window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, TooLarge
from priorveil.mechanisms.arc_cells import LIMB, LOW, ArcCells, tally_arc
from priorveil.mechanisms.arc_line import ArcLine

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_ENTRIES = 1 << 26


def _offsets(cells: ArcCells, tally: npt.NDArray[Any]) -> Array:
    """Sums of the offsets from the first place of each column; exact for integers until the last step."""
    if tally.dtype.kind == "i" and int(tally[0].max(initial=0)) > cells.most:
        raise TooLarge(
            f"{int(tally[0].max())} reports in one cell of the tally: beyond {cells.most} its sums do not fit "
            "64 bits; read tallies of fewer reports one by one and combine the estimates"
        )
    low = tally[1] - tally[0] * (cells.base & LOW)
    high = tally[2] - tally[0] * (cells.base >> LIMB)
    return np.asarray(low + np.ldexp(high.astype(np.float64), LIMB), dtype=np.float64)


def _coverage(cells: ArcCells, counts: Array, sums: Array) -> Array:
    """`sum over reports of overlap / window`, per input: an owned output counts as one. O(d + cells).

    `counts` and `sums` may be any numbers: reports, or weights spread over the places of a cell. Arcs
    held whole are counted by a difference array over two turns, the arcs lost and gained one by one. Where
    the window lies within one arc, "held whole" comes out as minus one, which makes its overlap the window,
    as it should.
    """
    m, n = cells.line, len(cells.members)
    cover = np.zeros(len(m.order))
    cover[m.order[: m.heavy]] = counts[: m.heavy]
    if n == 0:
        return cover
    c, s = counts[m.heavy :], sums[m.heavy :]
    steps = np.bincount(cells.begins + 1, c, 2 * n + 1) - np.bincount(cells.ends, c, 2 * n + 1)
    whole = np.cumsum(steps)[: 2 * n].reshape(2, n).sum(axis=0) * np.diff(cells.rim)
    lost = np.bincount(cells.begins, c * cells.lost - s, n)
    gained = np.bincount(cells.ends % n, c * cells.gained + s, n)
    np.add.at(cover, cells.members, (whole + lost + gained) / m.window)
    return cover


def _kept(m: ArcLine) -> float:
    return m.keep / (1 << m.word)


def made_for(cells: ArcCells, prior: npt.ArrayLike) -> bool:
    """Whether this is the prior of the layout, up to the rounding of its segments.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> made_for(ArcCells(toy), [0.5, 0.25, 0.25])
    True
    """
    m, P = cells.line, np.asarray(prior, dtype=np.float64)
    rounding = 1e-9 + (m.size + 1) / m.places
    return P.shape == m.lengths.shape and bool(np.all(np.abs(P - m.lengths / m.places) <= rounding))


def _own_prior(cells: ArcCells, prior: npt.ArrayLike) -> Array:
    """The prior, if it is the one whose posteriors are linear within the cells."""
    if not made_for(cells, prior):
        advice = "the mechanism was made for another prior: it can be read by columns alone (column_matrix)"
        raise InvalidInput("prior", prior, advice)
    return np.asarray(prior, dtype=np.float64)


def posterior_sums(cells: ArcCells, tally: npt.NDArray[Any], prior: npt.ArrayLike) -> Array:
    """The mmse histogram: `sum over reports of Pr(x | report)`, per input, in O(d + cells).

    With `N` reports this is `P_x (N (1 - k) + k (M / length_x) coverage_x)`, where coverage is the number
    of reports at the owned output plus the overlap of all report arcs with the arc of `x`, in windows. It
    holds for the prior that the mechanism was made for.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> cells = ArcCells(toy)
    >>> posterior_sums(cells, tally_arc(cells, [0, 1]), [0.5, 0.25, 0.25]).tolist()
    [1.0, 0.75, 0.25]
    """
    m, P = cells.line, _own_prior(cells, prior)
    k, counts = _kept(m), tally[0].astype(np.float64)
    cover = _coverage(cells, counts, _offsets(cells, tally))
    return np.asarray(P * (counts.sum() * (1 - k) + k * m.places / m.lengths * cover))


def posterior_variances(cells: ArcCells, tally: npt.NDArray[Any], prior: npt.ArrayLike) -> Array:
    """`sum over reports of p (1 - p)`, `p = Pr(x | report)`, per input.

    The squares of the offsets are not in the tally: within a cell reports are uniform if the prior is right,
    which is what a posterior variance assumes anyway, and their second moments are taken so.
    """
    P = _own_prior(cells, prior)
    first, second = lift_moments(cells, tally)
    return np.asarray(P * first - P**2 * second)


def lift_moments(cells: ArcCells, tally: npt.NDArray[Any]) -> tuple[Array, Array]:
    """`sum over reports of r` and of `r**2`, `r` the lift, per input, for reports uniform within their cells.

    Both are of the same reports, so that `sum (r - 1)**2` follows from them and is never below zero; the
    first alone is known better, from the offsets of the reports that came (`posterior_sums`).
    """
    m = cells.line
    k, counts, n = _kept(m), tally[0].astype(np.float64), len(cells.members)
    scale, c = k * m.places / m.lengths, tally[0, m.heavy :].astype(np.float64)
    s = c * (cells.width - 1) / 2
    mean = _coverage(cells, counts, np.append(np.zeros(m.heavy), s))
    square = np.zeros(m.size)
    square[m.order[: m.heavy]] = counts[: m.heavy]
    if n:
        np.add.at(square, cells.members, _squared_overlaps(cells, c) / m.window**2)
    N = counts.sum()
    first = N * (1 - k) + scale * mean
    return first, N * (1 - k) ** 2 + 2 * (1 - k) * scale * mean + scale**2 * square


def sum_variance(
    cells: ArcCells, tally: npt.NDArray[Any], prior: npt.ArrayLike, values: npt.ArrayLike
) -> float:
    """`sum over reports of Var(a_X | report)` for `values` a, with reports uniform within their cells."""
    m, P = cells.line, _own_prior(cells, prior)
    a = np.asarray(values, dtype=np.float64) - np.dot(P, np.asarray(values, dtype=np.float64))
    k, counts, w = _kept(m), tally[0].astype(np.float64), cells.width.astype(np.float64)
    s = np.append(np.zeros(m.heavy), counts[m.heavy :] * (w - 1) / 2)
    cover = _coverage(cells, counts, s)
    square = float(np.dot(a * a * P, counts.sum() * (1 - k) + k * m.places / m.lengths * cover))
    start, slope = window_line(cells, a * P)
    mean = start**2 + start * slope * (w - 1) + slope**2 * (w - 1) * (2 * w - 1) / 6
    owned = (a * P / m.lengths)[m.order[: m.heavy]] * m.places
    told = np.concatenate([owned**2, mean * (m.places / max(m.window, 1)) ** 2])
    return square - k**2 * float(np.dot(counts, told))


def _squared_overlaps(cells: ArcCells, c: Array) -> Array:
    """`sum over reports of overlap^2` per arc, for reports uniform within their cells."""
    n, w = len(cells.members), cells.width.astype(np.float64)
    same = (cells.ends - cells.begins) % n == 0
    one, two = (w - 1) / 2, (w - 1) * (2 * w - 1) / 6
    apart = np.where(same, 0.0, c)
    lost = apart * (cells.lost**2 - 2 * cells.lost * one + two)
    gained = apart * (cells.gained**2 + 2 * cells.gained * one + two)
    held = np.where(cells.ends > cells.begins, c, 0.0)
    steps = np.bincount(cells.begins + 1, held, 2 * n + 1) - np.bincount(cells.ends, held, 2 * n + 1)
    arcs = np.diff(cells.rim).astype(np.float64)
    whole = np.cumsum(steps)[: 2 * n].reshape(2, n).sum(axis=0) * arcs**2
    inside = cells.lost + cells.gained - np.where(cells.ends == cells.begins, arcs[cells.begins], 0.0)
    alone = np.where(same, c * inside**2, 0.0)
    parts = np.bincount(cells.begins, lost + alone, n) + np.bincount(cells.ends % n, gained, n)
    return np.asarray(whole + parts, dtype=np.float64)


def report_likelihood(cells: ArcCells, report: int) -> Array:
    """`Pr(report | x)` for every input.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> report_likelihood(ArcCells(toy), 0).tolist()
    [0.75, 0.25, 0.25]
    """
    m, tally = cells.line, tally_arc(cells, [report])
    cover = _coverage(cells, tally[0].astype(np.float64), _offsets(cells, tally))
    each = (1 - _kept(m)) / m.places + _kept(m) * cover / m.lengths
    return np.asarray(each * cells.sizes[report] if report < m.heavy else each)


def column_law(cells: ArcCells, prior: npt.ArrayLike) -> Array:
    """The law of the tally's columns when values follow `prior`: `prior @ matrix`, in O(d + cells).

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> column_law(ArcCells(toy), [0.5, 0.25, 0.25]).tolist()
    [0.5, 0.25, 0.25]
    """
    m, p = cells.line, np.asarray(prior, dtype=np.float64)
    start, slope = window_line(cells, p)
    w = cells.width.astype(np.float64)
    told = np.concatenate(
        [
            p[m.order[: m.heavy]] * cells.sizes[: m.heavy] / m.lengths[m.order[: m.heavy]],
            (w * start + slope * w * (w - 1) / 2) / max(m.window, 1),
        ]
    )
    return np.asarray((1 - _kept(m)) * p.sum() * cells.sizes / m.places + _kept(m) * told)


def window_line(cells: ArcCells, masses: npt.ArrayLike) -> tuple[Array, Array]:
    """The mass in the window, for any masses spread evenly over the segments.

    Gives it at the first place of each cell, and its slope per place.
    """
    m, n = cells.line, len(cells.members)
    density = (np.asarray(masses, dtype=np.float64) / m.lengths)[cells.members]
    if n == 0:
        return np.zeros(0), np.zeros(0)
    arcs = np.concatenate([[0.0], np.cumsum(np.tile(density * np.diff(cells.rim), 2))])
    last, first = density[cells.ends % n], density[cells.begins]
    held = arcs[cells.ends] - arcs[cells.begins + 1]
    return held + first * cells.lost + last * cells.gained, last - first


def likelihood_sums(cells: ArcCells, weights: npt.ArrayLike) -> Array:
    """`matrix @ weights`: for every input the mean of `weights` (one per column), in O(d + cells).

    With `column_law` this is all that expectation maximisation needs, at any number of inputs.
    """
    m, w = cells.line, np.asarray(weights, dtype=np.float64)
    sizes = cells.sizes.astype(np.float64)
    cover = _coverage(cells, w * sizes, w * sizes * (sizes - 1) / 2)
    return (1 - _kept(m)) * float(np.dot(w, sizes)) / m.places + _kept(m) * cover / m.lengths


def column_matrix(cells: ArcCells) -> Array:
    """The channel from inputs to tally columns, `d` by columns, in floats; raises `TooLarge` when huge.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> column_matrix(ArcCells(toy)).tolist()
    [[0.75, 0.125, 0.125], [0.25, 0.4375, 0.3125], [0.25, 0.3125, 0.4375]]
    """
    require_writable(cells, len(cells.sizes))
    return np.stack([column_law(cells, row) for row in np.eye(cells.line.size)])


def require_writable(cells: ArcCells, columns: int) -> None:
    """Refuse to write out a matrix of this many columns, if it is huge."""
    if (d := cells.line.size) * columns > _MOST_ENTRIES:
        raise TooLarge(f"{d} by {columns} entries: use column_law and likelihood_sums, which need no matrix")
