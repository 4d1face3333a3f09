"""The arc mechanism: values as arcs of a circle, a report as a window on it (`arc.line`).

A tally (`arc.counting`) counts the reports of each cell of the circle, and posteriors follow from it without the
channel written out. Reports in one order hardly distinguish neighbours: to learn a distribution on many values, use
`priorveil.mechanisms.arc.orders`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints
from priorveil.certify import Certificate, Lifts
from priorveil.errors import Hint, TooLarge
from priorveil.information import identifiable
from priorveil.mechanisms import estimators
from priorveil.mechanisms.arc.certificate import arc_lifts
from priorveil.mechanisms.arc.counting import ArcCells
from priorveil.mechanisms.arc.line import DRAWS, ArcLine, draw_places
from priorveil.mechanisms.estimators import Counts, Moments, PriorCheck, Rows, apply_rows
from priorveil.mechanisms.interface import MOST_ENTRIES, Mechanism, single_prior
from priorveil.mechanisms.randomness import Words
from priorveil.notions import Cone, Known, Leakage, Secrets
from priorveil.priors import Prior
from priorveil.queries import Query

_INVERTED = 1 << 20  # entries of the channel of one order, up to which it is inverted


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
        own, rounding = self.shares, 1e-9 + (self.size + 1) / self.line.places
        return prior.shape == own.shape and bool(np.all(np.abs(prior - own) <= rounding))

    def lifts(self, prior: Known, secret: Secrets, notion: Cone) -> Lifts:
        """Proven bounds on the lifts, for LIP or LDP of the value itself."""
        weights = single_prior(prior, secret, notion, self.kind).weights
        return arc_lifts(self.line, weights, self.every_order)

    def levels(self, prior: Known, secret: Secrets, proven: Certificate) -> Leakage:
        """The levels under every notion; the averages, MIL and MIP, are upper bounds."""
        found = super().levels(prior, secret, proven)
        return replace(found, bounds=found.bounds or ("MIL", "MIP"))

    def line_reports(self, words: Words, begins: Ints, codes: Ints) -> Ints:
        """The reports of the line for segments that begin there; the words are coin, place and shift."""
        m = self.line
        t, moved = draw_places(words, begins, m.lengths[codes], m.start, m.window, m.keep, m.bits, m.word)
        owner = np.searchsorted(m.edges[1 : m.heavy], t, side="right")
        return np.where(t < m.start, owner, m.heavy + moved)


@dataclass(frozen=True, eq=False)
class Arc(ArcMechanism):
    """The arc mechanism in one public order.

    >>> from fractions import Fraction
    >>> from priorveil.mechanisms.arc.certificate import fit_line
    >>> from priorveil.mechanisms.randomness import GeneratorSource
    >>> arc = Arc(fit_line([5, 2, 2, 1], [0, 1, 2, 3], 1, Fraction(37, 100), Fraction(271, 100)))
    >>> tally = arc.accumulate(arc.sample([0] * 500 + [3] * 100, GeneratorSource(np.random.default_rng(1))))
    >>> arc.answer("mmse", tally, np.array([0.5, 0.2, 0.2, 0.1]), None, False).mean.round().tolist()
    [376.0, 88.0, 87.0, 49.0]
    """

    kind: ClassVar[str] = "arc"
    draws_per_report = DRAWS

    @property
    def outputs(self) -> int:
        """How many reports there are."""
        return self.line.outputs

    @cached_property
    def cells(self) -> ArcCells:
        """Where the reports are counted."""
        return ArcCells(self.line)

    @property
    def matrix(self) -> Array:
        """The channel from values to the columns of a tally; raises `TooLarge` when huge.

        A cell is an average over its places, so this may leak less than the reports do: levels are measured
        on `leakage_matrix`.
        """
        return self.cells.matrix

    @property
    def leakage_matrix(self) -> tuple[Array, tuple[int, ...]]:
        """A channel that leaks no less than the reports do, and the reports of its columns."""
        return self.cells.leakage_matrix

    def draw(self, codes: Ints, words: Words, reports: Ints, total: int) -> None:
        """Fill `reports` for valid codes."""
        reports[:] = self.line_reports(words, self.line.starts[codes], codes)

    def accumulate(self, reports: npt.ArrayLike) -> Ints:
        """The counts of the cells and the sums of their places; see `arc.counting`."""
        return self.cells.tally(self.check_reports(reports))

    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """The same in floats, with every report counted as often as its weight says."""
        return self.cells.weigh(self.check_reports(reports), weights)

    def reports_in(self, counts: Counts) -> int:
        """The sum of the first row."""
        return int(counts[0].sum())

    def expected_counts(self, prior: Array, people: int) -> Array:
        """The averages of `accumulate`, for reports that are uniform within their cells."""
        return self.cells.expected_tally(people * self.cells.law(prior))

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution.

        Reports in one order hardly distinguish neighbours, so for large domains the answer is no: with 1,000 values and
        10,000 people a share would be known to ±2 at best.
        """
        return not self._large and identifiable(self.matrix)

    @property
    def _large(self) -> bool:
        """Whether the channel of one order has too many entries to be inverted within a second or two."""
        return self.size * len(self.cells.base) > _INVERTED

    def prior_check(self, counts: Ints, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior."""
        parts = estimators.split_prior(prior, len(self.cells.base))
        return estimators.cells_check(counts[0].astype(np.float64), self.cells.law(parts))

    def answer(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None."""
        if method == "mmse" and self.fits(prior):
            sums = prior * self.cells.lift_sums(counts)
            return Moments(apply_rows(rows, sums), self.cells.posterior_variances(counts, prior, rows))
        if method != "mmse" and self._large:
            raise estimators.not_identifiable()
        if self.size * len(self.cells.base) > MOST_ENTRIES:
            message = f"{self.size:,} values in one order are read under the plan's own prior only"
            raise TooLarge(message, Hint("prior", None))
        n = counts[0].astype(np.float64)
        return estimators.reports_moments(method, n, self.matrix, prior, rows, population)

    def covariance(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Array:
        """The covariance of the statistics that `answer` gives."""
        if method == "mmse" and self.fits(prior):
            return self.cells.posterior_covariance(counts, prior, rows)
        n = counts[0].astype(np.float64)
        return estimators.reports_answer(method, n, self.matrix, prior, rows, population).covariance(rows)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person at the prior of the layout: the posterior variance of expected reports.

        Where the prior is right reports are uniform within their cells, so it is exact.
        """
        P = prior.probabilities
        if not self.fits(P) or query.unbiased or not query.linear:
            return None
        variances = self.cells.posterior_variances(self.cells.law(P)[None], P, query.centred_rows(prior))
        return max(0.0, float(variances.sum()))

    def parameters(self) -> dict[str, Any]:
        """The line, and the values of the circle in order, as JSON."""
        m = self.line
        return {**m.parameters(), "circle": m.order[m.heavy :].tolist(), "start": str(m.start)}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Arc:
        """Read a mechanism from the parameters in its JSON document."""
        return cls(ArcLine.read(parameters))
