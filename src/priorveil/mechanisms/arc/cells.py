"""The cells of a circle, and the channel from values to cells.

As `u` goes round a circle, the window `[u, u + window)` gains or loses an arc at no more than two
places per value. Between two such places (a **cell**) every overlap with an arc is linear in `u`.

In floats, and up to the rounding that the certificate accounts for (about 1e-7 relative at most), the law of
the reports under the prior is uniform on the line, and the lift of `x` is `1 - k + k (M / length_x)
(overlap / window)`, with `M` the places of the line and an owned output counting as an overlap of one
whole window.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from priorveil.arrays import Array
from priorveil.mechanisms.arc.line import ArcLine
from priorveil.mechanisms.interface import MOST_MEASURED, require_writable

PIECES = 16  # of each cell, where the places of reports matter


class ArcCells:
    """The columns of a channel: the owned outputs, then the cells of the circle.

    `base` is the first report of every column and `sizes` how many places it stands for. The other arrays have an entry
    for each cell: its `width`, the arcs where a window of this cell begins and ends (`first_arcs`, `last_arcs`; in
    `last_turns` an arc on the second turn is counted on from the first), and the overlaps of the window at the first
    place of the cell with both (`lost`, `gained`). Each cell may be cut into so many `pieces`.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> ArcCells(toy).base.tolist()
    [0, 1, 2, 5, 6]
    """

    def __init__(self, line: ArcLine, pieces: int = 1) -> None:
        self.line, self.members, self.arcs = line, line.members, np.diff(line.rim)
        rim, n = line.rim, len(line.members)
        cuts = np.unique(np.concatenate([rim, (rim - line.window) % rim[-1]])) if n else np.zeros(1, np.int64)
        if pieces > 1:
            steps = np.diff(cuts)[:, None] * (np.arange(pieces) / pieces)
            cuts = np.unique(np.append(cuts[:-1, None] + steps.astype(np.int64), cuts[-1]))
        first, width = cuts[:-1], np.diff(cuts)
        self.first_arcs = np.searchsorted(rim, first, side="right") - 1
        wraps = first + line.window >= rim[-1]
        end = first + line.window - wraps * rim[-1]
        last = np.searchsorted(rim, end, side="right") - 1
        self.last_turns, self.last_arcs = last + wraps * n, last
        self.width, self.lost, self.gained = (
            part.astype(np.float64) for part in (width, rim[self.first_arcs + 1] - first, end - rim[last])
        )
        self.base = np.concatenate([np.arange(line.heavy), line.heavy + first])
        self.sizes = np.concatenate([line.own_sizes, width])

    def window_masses(self, masses: Array) -> tuple[Array, Array]:
        """The mass in the window at the first place of each cell, and its slope per place.

        The masses may be any numbers, spread evenly over the segments; or a row of them for each row of the result.
        """
        density = (masses / self.line.lengths)[..., self.members]
        mass = density * self.arcs
        none = np.zeros((*mass.shape[:-1], 1))
        sums = np.cumsum(np.concatenate([none, mass, mass], axis=-1), axis=-1)
        first, last = density[..., self.first_arcs], density[..., self.last_arcs]
        held = sums[..., self.last_turns] - sums[..., self.first_arcs + 1]
        return held + first * self.lost + last * self.gained, last - first

    def law(self, p: Array) -> Array:
        """The law of the columns when the values follow `p`, or each row of it: `p @ matrix`, in O(d + columns).

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
        >>> ArcCells(toy).law(np.array([0.5, 0.25, 0.25])).tolist()
        [0.5, 0.25, 0.25]
        """
        m, w, k = self.line, self.width, self.line.keep_chance
        start, slope = self.window_masses(p)
        least = 0.0 if p.min() >= 0 else -np.inf  # for shares rounding must not go below zero
        shared = np.maximum(w * start + slope * w * (w - 1) / 2, least) / max(m.window, 1)
        used = np.concatenate([p[..., m.owners] * m.own_sizes / m.lengths[m.owners], shared], axis=-1)
        fresh = (1 - k) * p.sum(axis=-1, keepdims=True) * self.sizes / m.places
        return np.asarray(fresh + k * used)

    @cached_property
    def matrix(self) -> Array:
        """The channel from values to columns in floats; raises `TooLarge` when huge.

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
        >>> ArcCells(toy).matrix.tolist()
        [[0.75, 0.125, 0.125], [0.25, 0.4375, 0.3125], [0.25, 0.3125, 0.4375]]
        """
        require_writable(self.line.size, len(self.base))
        return self.law(np.eye(self.line.size))

    @cached_property
    def leakage_matrix(self) -> tuple[Array, tuple[int, ...]]:
        """A channel for measuring levels, which leaks what the reports leak or more, and its reports.

        The columns of `matrix` average over the places of a cell: a level measured on them would be too low under
        another prior, or for a secret behind the value. But within a cell the law of a report is linear in its place.
        So the law at any place is a mixture of those at the first and the last place, and the law of the whole cell is
        half of each, times its width. Here a cell is these two halves. The reports can be drawn from this channel's (a
        mixture is post-processing), so none of their levels is above its own. Its columns are, up to scale, those of
        real reports, so LIP, LDP, DI and Pufferfish, which look at single columns, are exact under every prior and
        secret. MIL and MIP, which are averages, are bounds from above.

        >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
        >>> matrix, reports = ArcCells(toy).leakage_matrix
        >>> matrix[1].tolist(), reports
        ([0.25, 0.3125, 0.125, 0.0625, 0.25], (0, 1, 4, 5, 8))
        """
        m, k, long = self.line, self.line.keep_chance, self.width > 1
        reports = np.concatenate([self.base, (self.base + self.sizes - 1)[m.heavy :][long]])
        require_writable(m.size, len(reports), MOST_MEASURED)
        units = np.eye(m.size)
        start, slope = self.window_masses(units)
        masses = np.stack([start, start + slope * (self.width - 1)])
        ends = (1 - k) / m.places + k * np.maximum(masses, 0.0) / max(m.window, 1)
        halves = ends * np.where(long, self.width / 2, 1.0)
        matrix = np.hstack([self.law(units)[:, : m.heavy], halves[0], halves[1][:, long]])
        ascending = np.argsort(reports)
        return matrix[:, ascending], tuple(reports[ascending].tolist())


def squared_overlap(p: Array, window: float | Array, circle: float | Array) -> Array:
    """The integral of the squared share of an arc of length `p` that a window holds, as it goes round a circle.

    The overlap rises over the length of the shorter one, stays at it, and falls again: the integral of its square is
    `s**2 (l - s / 3)`, with `s` the shorter and `l` the longer of both, while both fit on the circle. Otherwise they
    hold some of each other wherever they are, and the rest of the overlap is that of what is left of both.

    >>> squared_overlap(np.array([0.1, 0.5]), 0.3, 1.0).round(6).tolist()  # window - p / 3; (w / p)^2 (p - w / 3)
    [0.266667, 0.144]
    """
    always = np.maximum(p + window - circle, 0.0)
    shorter, longer = np.minimum(p, window) - always, np.maximum(p, window) - always
    a, s = always / p, shorter / p
    return np.asarray(a**2 * circle + 2 * a * s * longer + s**2 * (longer - shorter / 3))
