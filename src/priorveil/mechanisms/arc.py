"""The arc mechanism: one object that samples, counts, scores and bounds itself.

The parts are in their own modules: the integer line and its sampler (`arc_line`), the certificate and the
rounding towards privacy (`arc_bounds`), the counting of reports (`arc_cells`), and their reading (`arc_reading`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from priorveil.certify import Certifiable, Lifts
from priorveil.mechanisms.arc_bounds import arc_lifts, fit_line
from priorveil.mechanisms.arc_cells import ArcCells, tally_arc, weigh_arc
from priorveil.mechanisms.arc_exposed import exposed_lines
from priorveil.mechanisms.arc_line import DRAWS, ArcLine, sample_arc
from priorveil.mechanisms.arc_reading import (
    column_law,
    column_matrix,
    likelihood_sums,
    made_for,
    posterior_sums,
    posterior_variances,
    report_likelihood,
    sum_variance,
)
from priorveil.mechanisms.codes import checked_codes
from priorveil.mechanisms.likelihood import Cells, Evidence
from priorveil.mechanisms.moments import Moments, posterior_moments
from priorveil.mechanisms.prior_check import prior_check
from priorveil.mechanisms.randomness import Source, blocks
from priorveil.mechanisms.reading import SMALL, inverted, one_prior, whole_numbers
from priorveil.notions import Known, Secrets
from priorveil.priors import Prior
from priorveil.queries import Query, identifiable

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Arc(ArcLine):
    """The arc mechanism over `size` values; reports are numbers in `0 .. outputs - 1`.

    >>> from priorveil.mechanisms.randomness import GeneratorSource
    >>> arc = Arc.fit([5, 2, 2, 1], [0, 1, 2, 3], 1, Fraction(37, 100), Fraction(271, 100))
    >>> tally = arc.accumulate(arc.sample([0] * 500 + [3] * 100, GeneratorSource(np.random.default_rng(1))))
    >>> arc.posterior_sum(tally, [0.5, 0.2, 0.2, 0.1]).round().tolist()
    [376.0, 88.0, 87.0, 49.0]
    """

    kind: ClassVar[str] = "arc"
    width: ClassVar[int] = 0

    @classmethod
    def fit(
        cls,
        weights: npt.ArrayLike,
        order: npt.ArrayLike,
        heavy: int,
        lo_upper: Fraction,
        hi_lower: Fraction | None,
        bits: int | None = None,
    ) -> Arc:
        """The least noisy arc mechanism whose certificate meets the bounds: see `arc_bounds.fit_line`."""
        line = fit_line(weights, order, heavy, lo_upper, hi_lower, bits)
        return cls(line.lengths, line.order, line.heavy, line.start, line.window, line.keep, line.bits)

    @property
    def draws_per_report(self) -> int:
        """Random words a report takes, whatever the value."""
        return DRAWS

    @cached_property
    def cells(self) -> ArcCells:
        """Where the reports are counted."""
        return ArcCells(self)

    @cached_property
    def matrix(self) -> Array:
        """The channel from values to the columns of a tally; raises `TooLarge` when huge.

        A cell is an average over its places, so this may leak less than the reports do: levels are measured
        on `exposed`.
        """
        return column_matrix(self.cells)

    @cached_property
    def exposed(self) -> tuple[Array, tuple[int, ...]]:
        """A channel that leaks no less than the reports do, and the reports of its columns.

        See `arc_exposed.exposed_matrix`.
        """
        return exposed_lines([self])

    def sample_one(self, code: int, source: Source) -> int:
        """The report of one value."""
        words = source.words(DRAWS).reshape(1, DRAWS)
        return int(sample_arc(self, checked_codes([code], self.size), words)[0])

    def sample(self, codes: npt.ArrayLike, source: Source) -> Ints:
        """The reports of many values."""
        rows = checked_codes(codes, self.size)
        reports = np.empty(rows.size, dtype=np.int64)
        for block, words in blocks(source, rows.size, DRAWS):
            reports[block] = sample_arc(self, rows[block], words, work=rows.size)
        return reports

    def accumulate(self, reports: npt.ArrayLike) -> Ints:
        """The tally: counts and sums per column; see `arc_cells`. Tallies add up."""
        return tally_arc(self.cells, reports)

    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """As `accumulate`, in floats: every report is counted as often as its weight says."""
        return weigh_arc(self.cells, reports, weights)

    def likelihood(self, report: int) -> Array:
        """`Pr(report | x)` for every value."""
        return report_likelihood(self.cells, report)

    def posterior_sum(self, tally: npt.NDArray[Any], prior: npt.ArrayLike) -> Array:
        """The mmse histogram of the reports in a tally."""
        return posterior_sums(self.cells, tally, prior)

    def lifts(self, prior: Known, secret: Secrets, notion: Certifiable) -> Lifts:
        """Proven bounds on the lifts, for LIP or LDP of the value itself."""
        return arc_lifts(self, np.array(one_prior(prior, secret, notion, self.kind).weights, dtype=object))

    def accepts(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which reports this mechanism can have made."""
        return whole_numbers(reports, self.outputs)

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution."""
        return identifiable(self.matrix)

    def evidence(self, counts: npt.NDArray[Any]) -> Evidence:
        """The counts of the cells with the channel: written out if it is small, else as two products."""
        seen = counts[0].astype(np.float64)
        small = self.size * seen.size <= SMALL
        return Cells(seen, self.matrix) if small else ArcEvidence(seen, self)

    def prior_check(self, counts: Ints, prior: Array) -> float | None:
        """The p-value of the counts under the law that the prior gives them."""
        return prior_check(counts[0].astype(np.float64), column_law(self.cells, prior))

    def answer(
        self, method: str, counts: npt.NDArray[Any], prior: Array, rows: Array | None, population: bool
    ) -> Moments:
        """The histogram, or the statistics `rows @ histogram`, by `mmse`, `unbiased` or `mle`."""
        if method != "mmse":
            return inverted(method, self.evidence(counts), prior, rows, population)
        if not made_for(self.cells, prior):
            return posterior_moments(self.evidence(counts), prior, rows)
        sums = self.posterior_sum(counts, prior)
        if rows is None:
            return Moments(sums, posterior_variances(self.cells, counts, prior))
        return Moments(rows @ sums, np.array([sum_variance(self.cells, counts, prior, row) for row in rows]))

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person: the posterior variance of the reports that are to be expected.

        Where the prior is right reports are uniform within their cells, so for a histogram or a sum it is exact.
        """
        P = prior.probabilities
        if query.kind not in ("histogram", "sum") or not made_for(self.cells, P):
            return None
        law = column_law(self.cells, P)[None]
        scores = query.centred_rows(prior)
        if scores is not None:
            return max(0.0, sum_variance(self.cells, law, P, scores[0]))
        return max(0.0, float(posterior_variances(self.cells, law, P).sum()))

    def parameters(self) -> dict[str, Any]:
        """The line, the circle and the coin, as JSON."""
        return {
            "bits": self.bits,
            "lengths": [str(n) for n in self.lengths.tolist()],
            "order": self.order.tolist(),
            "heavy": self.heavy,
            "start": str(self.start),
            "window": str(self.window),
            "keep": str(self.keep),
        }

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Arc:
        """The mechanism of these parameters."""
        lengths = np.array([int(n) for n in parameters["lengths"]], dtype=np.int64)
        order = np.array(parameters["order"], dtype=np.int64)
        numbers = (int(parameters[name]) for name in ("heavy", "start", "window", "keep", "bits"))
        return cls(lengths, order, *numbers)


@dataclass(frozen=True, eq=False)
class ArcEvidence:
    """Counts of the cells of a circle, and the channel from values to cells, never written out."""

    counts: Array
    arc: Arc

    def law(self, p: Array) -> Array:
        """The law of the cells when the values follow `p`."""
        return column_law(self.arc.cells, p)

    def mean(self, weights: Array) -> Array:
        """For every value the mean of the cells' weights."""
        return likelihood_sums(self.arc.cells, weights)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """The channel, where it fits."""
        yield slice(None), self.arc.matrix
