"""Many circles read together: the channel from values to the cells of all orders of a pool.

Every order bends the same segments into a circle; a cell's window begins in one arc and ends in another, and holds
those between. So the law of the cells is linear in three things that take one pass to work out for all orders: the
mass held whole (a difference of running sums), and the densities of the arc that is lost and of the one that is gained.
The mean of weights over the cells is the same map turned round. Neither needs the channel written out; where it
is needed, `blocks` gives it an order at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms.arc_cells import ArcCells

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Circles:
    """The cells of circles that have their segments, owners, window and coin in common.

    >>> from priorveil.mechanisms.arc_line import ArcLine
    >>> lines = [ArcLine([8, 4, 4], order, 1, 8, 3, 2**63, 4) for order in ([0, 1, 2], [0, 2, 1])]
    >>> both = Circles([ArcCells(line) for line in lines])
    >>> both.law(np.array([0.5, 0.25, 0.25])).tolist()
    [0.25, 0.03125, 0.09375, 0.03125, 0.09375, 0.25, 0.03125, 0.09375, 0.03125, 0.09375]
    """

    circles: Sequence[ArcCells]

    @cached_property
    def ends(self) -> Ints:
        """Where the columns of each order begin, and where the last one ends."""
        return np.cumsum([0] + [len(cells.base) for cells in self.circles])

    @cached_property
    def _members(self) -> Ints:
        """The values on the circle, in order, a row for each circle."""
        return np.stack([cells.members for cells in self.circles])

    @cached_property
    def _where(self) -> tuple[Ints, Ints]:
        """The columns of owned outputs, a row for each circle, and those of all cells."""
        heavy = self.circles[0].line.heavy
        own = self.ends[:-1, None] + np.arange(heavy)
        cell = np.concatenate(
            [np.arange(first + heavy, last) for first, last in zip(self.ends, self.ends[1:], strict=False)]
        )
        return own, cell

    @cached_property
    def _places(self) -> tuple[Ints, Ints, Ints, Ints]:
        """For every cell, where it looks: running sums at its end and beginning; the arcs gained and lost."""
        n, found = self._members.shape[1], []
        for i, cells in enumerate(self.circles):
            sums, arcs = i * (2 * n + 1), i * n
            found.append(
                (
                    sums + cells.ends,
                    sums + cells.begins + 1,
                    arcs + cells.ends % n,
                    arcs + cells.begins,
                )
            )
        end, begin, gained, lost = (np.concatenate(part) for part in zip(*found, strict=True))
        return end, begin, gained, lost

    @cached_property
    def _factors(self) -> tuple[Array, Array, Array]:
        """For every cell, what it takes of the mass held, and of the densities of the arcs gained and lost."""
        width, gained, lost = (
            np.concatenate([np.asarray(getattr(cells, name), dtype=np.float64) for cells in self.circles])
            for name in ("width", "gained", "lost")
        )
        window, turn = self.circles[0].line.window, width * (width - 1) / 2
        return width / window, (width * gained + turn) / window, (width * lost - turn) / window

    @cached_property
    def _sizes(self) -> Array:
        """How likely each column is for a fresh draw."""
        places = self.circles[0].line.places * len(self.circles)
        return np.concatenate([cells.sizes for cells in self.circles]) / places

    @property
    def _kept(self) -> float:
        line = self.circles[0].line
        return line.keep / (1 << line.word)

    def law(self, p: Array) -> Array:
        """The law of the cells when the values follow `p`."""
        line, S = self.circles[0].line, len(self.circles)
        density = (p / line.lengths)[self._members].reshape(-1)
        mass = p[self._members]
        sums = np.zeros((S, 2 * mass.shape[1] + 1))
        np.cumsum(np.hstack([mass, mass]), axis=1, out=sums[:, 1:])
        (end, begin, gained, lost), (whole, more, less) = self._places, self._factors
        flat = sums.reshape(-1)
        told = np.empty(len(self._sizes))
        told[self._where[1]] = (
            whole * (flat[end] - flat[begin]) + more * density[gained] + less * density[lost]
        )
        told[self._where[0]] = p[line.order[: line.heavy]]
        return np.asarray((1 - self._kept) * p.sum() * self._sizes + self._kept / S * told)

    def mean(self, weights: Array) -> Array:
        """For every value the mean of the cells' weights."""
        line, (S, n) = self.circles[0].line, self._members.shape
        v = weights[self._where[1]]
        (end, begin, gained, lost), (whole, more, less) = self._places, self._factors
        steps = np.bincount(end, v * whole, S * (2 * n + 1)) - np.bincount(begin, v * whole, S * (2 * n + 1))
        later = np.cumsum(steps.reshape(S, -1)[:, :0:-1], axis=1)[:, ::-1]
        density = np.bincount(gained, v * more, S * n) + np.bincount(lost, v * less, S * n)
        arcs = (later[:, :n] + later[:, n:]).reshape(-1) + density / line.lengths[self._members].reshape(-1)
        told = np.bincount(self._members.reshape(-1), arcs, line.size)
        told[line.order[: line.heavy]] += weights[self._where[0]].sum(axis=0)
        return np.asarray((1 - self._kept) * float(weights @ self._sizes) + self._kept / S * told)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """The channel, the columns of one order at a time."""
        line, (S, n) = self.circles[0].line, self._members.shape
        first = 0
        for i, cells in enumerate(self.circles):
            columns = slice(int(self.ends[i]), int(self.ends[i + 1]))
            part = slice(first, first + len(cells.begins))
            first = part.stop
            whole, more, less = (factor[part] for factor in self._factors)
            at = np.arange(len(cells.begins))
            # An arc is held whole if it lies after the first and before the last, on either turn of the circle.
            arc = np.arange(n)[:, None]
            held = ((cells.ends > arc) & (cells.begins < arc)).astype(np.float64)
            held += (cells.ends > arc + n) & (cells.begins < arc + n)
            held -= (cells.ends == arc) & (cells.begins == arc)
            told = held * whole
            lengths = line.lengths[self._members[i]]
            told[cells.ends % n, at] += more / lengths[cells.ends % n]
            told[cells.begins, at] += less / lengths[cells.begins]
            Q = np.zeros((line.size, columns.stop - columns.start))
            Q[line.order[: line.heavy], np.arange(line.heavy)] = 1.0
            Q[self._members[i], line.heavy :] = told
            yield columns, (1 - self._kept) * self._sizes[columns] + self._kept / S * Q


@dataclass(frozen=True, eq=False)
class CirclesEvidence:
    """Counts of the cells of all circles, and their channel, never written out as a whole."""

    counts: Array
    circles: Circles

    def law(self, p: Array) -> Array:
        """The law of the cells when the values follow `p`."""
        return self.circles.law(p)

    def mean(self, weights: Array) -> Array:
        """For every value the mean of the cells' weights."""
        return self.circles.mean(weights)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """The channel, some columns at a time."""
        return self.circles.blocks()
