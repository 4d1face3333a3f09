"""The arc mechanism: values as arcs of a circle, a report as a window on it (`arc.line`).

Reports in one order hardly distinguish neighbours: to learn a distribution on many values, use
`priorveil.mechanisms.arc.orders`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from priorveil.arrays import Array, Ints
from priorveil.certify import Certificate, Lifts
from priorveil.mechanisms.arc.cells import PIECES, ArcCells
from priorveil.mechanisms.arc.certificate import arc_lifts
from priorveil.mechanisms.arc.line import DRAWS, ArcLine, draw_places
from priorveil.mechanisms.interface import Mechanism, single_prior
from priorveil.mechanisms.randomness import Words
from priorveil.notions import Cone, Leakage, PriorOrSet, Secrets


@dataclass(frozen=True, eq=False)
class ArcMechanism(Mechanism):
    """What a mechanism with one order and one with many orders share."""

    line: ArcLine
    averages: ClassVar[bool] = True  # over the places of a cell
    every_order: ClassVar[bool] = False  # whether the certificate has to hold for every order

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.line.size

    @property
    def shares(self) -> Array:
        """The prior of the layout."""
        return self.line.lengths / self.line.places

    def fits(self, prior: Array) -> bool:
        """Whether this is the prior of the layout, up to the rounding of its segments.

        Only then is a posterior linear in the overlaps with windows.
        """
        shares, rounding = self.shares, 1e-9 + (self.size + 1) / self.line.places
        return prior.shape == shares.shape and bool(np.all(np.abs(prior - shares) <= rounding))

    def lifts(self, prior: PriorOrSet, secret: Secrets, notion: Cone) -> Lifts:
        """Proven bounds on the lifts, for LIP or LDP of the value itself."""
        weights = single_prior(prior, secret, notion, self.kind).weights
        return arc_lifts(self.line, weights, self.every_order)

    def levels(self, prior: PriorOrSet, secret: Secrets, proven: Certificate) -> Leakage:
        """The levels under every notion; the averages, MIL and MIP, are upper bounds."""
        leakage = super().levels(prior, secret, proven)
        return replace(leakage, bounds=leakage.bounds or ("MIL", "MIP"))

    def line_reports(self, words: Words, begins: Ints, codes: Ints) -> Ints:
        """The reports of the line for segments that begin there; the words are coin, place and shift."""
        m = self.line
        t, circle_place = draw_places(
            words, begins, m.lengths[codes], m.start, m.window, m.keep, m.bits, m.word
        )
        owner = np.searchsorted(m.edges[1 : m.heavy], t, side="right")
        return np.where(t < m.start, owner, m.heavy + circle_place)


@dataclass(frozen=True, eq=False)
class Arc(ArcMechanism):
    """The arc mechanism in one public order.

    >>> from fractions import Fraction
    >>> from priorveil.mechanisms.arc.certificate import fit_line
    >>> arc = Arc(fit_line([5, 2, 2, 1], [0, 1, 2, 3], 1, Fraction(37, 100), Fraction(271, 100)))
    >>> arc.size, arc.outputs, arc.cells.base[:2].tolist()
    (4, 549755813889, [0, 1])
    """

    kind: ClassVar[str] = "arc"
    draws_per_report = DRAWS

    @property
    def outputs(self) -> int:
        """How many reports there are."""
        return self.line.outputs

    @cached_property
    def cells(self) -> ArcCells:
        """The owned outputs and the cells of the circle."""
        return ArcCells(self.line)

    @property
    def matrix(self) -> Array:
        """The channel from values to the columns of a tally; raises `TooLarge` when huge.

        A cell is an average over its places, so this may leak less than the reports do: levels are measured
        on `leakage_matrix`.
        """
        return self.cells.matrix

    @property
    def report_matrix(self) -> Array:
        """The channel from values to small pieces of the cells, which say nearly as much as reports."""
        return ArcCells(self.line, PIECES).matrix

    @property
    def leakage_matrix(self) -> tuple[Array, tuple[int, ...]]:
        """A channel that leaks no less than the reports do, and the reports of its columns."""
        return self.cells.leakage_matrix

    def draw(self, codes: Ints, words: Words, reports: Ints, total: int) -> None:
        """Fill `reports` for valid codes."""
        reports[:] = self.line_reports(words, self.line.starts[codes], codes)

    def parameters(self) -> dict[str, Any]:
        """The line, and the values of the circle in order, as JSON."""
        m = self.line
        return {**m.parameters(), "circle": m.order[m.heavy :].tolist(), "start": str(m.start)}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Arc:
        """Read a mechanism from the parameters in its JSON document."""
        return cls(ArcLine.read(parameters))
