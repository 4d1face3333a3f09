"""What arc reports leak, measured place by place without looking at every place.

The tally's cells average over their places: enough to read reports, but a level measured on them is too low
under any other prior, or for a secret behind the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms.arc_cells import ArcCells
from priorveil.mechanisms.arc_line import ArcLine
from priorveil.mechanisms.arc_reading import column_law, require_writable, window_line

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@runtime_checkable
class Exposing(Protocol):
    """A mechanism whose `matrix` averages over reports, and which has another channel to measure levels on."""

    @property
    def exposed(self) -> tuple[Array, tuple[int, ...]]:
        """A channel that leaks no less than the reports do, and the reports of its columns."""
        ...


def exposed_lines(lines: Sequence[ArcLine], span: int = 0) -> tuple[Array, tuple[int, ...]]:
    """A channel for measuring a line, or one of several drawn publicly, and the reports of its columns.

    Reports of line `i` begin at `i * span`.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> exposed_lines([toy, toy], span=16)[1]
    (0, 1, 5, 4, 8, 16, 17, 21, 20, 24)
    """
    cells = [ArcCells(line) for line in lines]
    reports = [exposed_reports(c) + i * span for i, c in enumerate(cells)]
    require_writable(cells[0], sum(map(len, reports)))
    matrix = np.hstack([exposed_matrix(c) for c in cells]) / len(cells)
    return matrix, tuple(np.concatenate(reports).tolist())


def exposed_reports(cells: ArcCells) -> Ints:
    """The reports at which levels are largest: the owned outputs, then the first and last place of each cell.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> exposed_reports(ArcCells(toy)).tolist()
    [0, 1, 2, 5, 6, 4, 8]
    """
    heavy, long = cells.line.heavy, cells.width > 1
    return np.concatenate([np.arange(heavy), heavy + cells.cuts[:-1], heavy + cells.cuts[1:][long] - 1])


def exposed_matrix(cells: ArcCells) -> Array:
    """A channel for measuring, `d` by `exposed_reports`: it leaks what the reports leak, or more.

    Within a cell the law of a report is linear in its place. So the law at any place is a mixture of those at
    the first and the last place, and the law of the whole cell is half of each, times its width. Here a cell
    is these two halves. The reports can be drawn from this channel's (a mixture is post-processing), so no
    level of theirs lies above its own; and its columns are, up to scale, those of real reports, so LIP, LDP,
    DI and Pufferfish, which look at single columns, are exactly theirs under every prior and secret. MIL and
    MIP, which are averages, are bounds from above.

    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=4, keep=2**63, bits=4)
    >>> exposed_matrix(ArcCells(toy))[1].tolist()
    [0.25, 0.3125, 0.0625, 0.125, 0.25]
    """
    m, w = cells.line, cells.width
    k, long, half = m.keep / (1 << m.word), w > 1, np.where(w > 1, w / 2, 1.0)
    require_writable(cells, len(cells.sizes) + int(long.sum()))

    def at_place(start: Array) -> Array:
        return np.asarray((1 - k) / m.places + k * np.maximum(start, 0.0) / max(m.window, 1))

    def law(row: Array) -> Array:
        start, slope = window_line(cells, row)
        last = half * at_place(start + slope * (w - 1))
        return np.concatenate([column_law(cells, row)[: m.heavy], half * at_place(start), last[long]])

    return np.stack([law(row) for row in np.eye(m.size)])
