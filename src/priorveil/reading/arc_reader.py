"""The reader of arcs in one public order: an exact tally of the cells, and the posteriors that follow from it.

Within a cell of the circle every overlap of the window with an arc is linear in the report (`mechanisms.arc.cells`).
So the number of reports in each cell and the sum of their offsets from its start are all that the sum of posteriors
needs, exactly. The tally is three rows of 64-bit integers, with one column per owned output and per cell: the counts,
and the sums of the low 21 bits and of the remaining high bits of the reports (two sums, so that none overflows before
`2**31` reports in a column; `ArcReader.most_reports` is the exact number, and a tally beyond it is refused when read).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints
from priorveil.errors import Hint, TooLarge
from priorveil.information import identifiable
from priorveil.mechanisms import Arc
from priorveil.mechanisms.arc.cells import ArcCells
from priorveil.mechanisms.interface import MOST_MATRIX_ENTRIES
from priorveil.priors import Prior
from priorveil.queries import Query
from priorveil.reading.linear_answers import (
    LinearAnswer,
    channel_inversion,
    channel_posteriors,
    channel_scores,
    channel_squares,
)
from priorveil.reading.moments import Counts, StatisticRows, not_identifiable
from priorveil.reading.prior_check import ScoreTest, cells_test, split_prior
from priorveil.reading.reader import Reader
from priorveil.reading.shares_search import Minimum, most_likely

# A tally has the sums of this many low bits of the reports, and of the rest.
LIMB = 21
LOW = (1 << LIMB) - 1

_BLOCK_REPORTS = 1 << 16  # counted at a time: they stay in the processor's cache
# More buckets mean fewer reports that are searched for (one in 64 at most), and a larger table of 32-bit numbers.
_BUCKETS_PER_COLUMN = 64
_MOST_BUCKETS = 1 << 20
_MOST_INVERTED = 1 << 20  # entries of a channel that is inverted within a second or two


class ArcReader(Reader[Arc]):
    """Reads arcs in one order.

    >>> from fractions import Fraction
    >>> from priorveil.mechanisms.arc.certificate import fit_line
    >>> from priorveil.mechanisms.randomness import GeneratorSource
    >>> arc = Arc(fit_line([5, 2, 2, 1], [0, 1, 2, 3], 1, Fraction(37, 100), Fraction(271, 100)))
    >>> reports = arc.sample([0] * 500 + [3] * 100, GeneratorSource(np.random.default_rng(1)))
    >>> reader, prior = ArcReader(arc), np.array([0.5, 0.2, 0.2, 0.1])
    >>> reader.answer("mmse", reader.count(reports), prior, None, False).mean.round().tolist()
    [376.0, 88.0, 87.0, 49.0]
    """

    reads = Arc

    @property
    def cells(self) -> ArcCells:
        """The columns of the tally."""
        return self.mechanism.cells

    # -- counting ------------------------------------------------------------------------------------------

    @property
    def most_reports(self) -> int:
        """How many reports a column of the tally can count before one of its sums may exceed 64 bits."""
        return ((1 << 63) - 1) // max(LOW, self.mechanism.outputs >> LIMB)

    @cached_property
    def _bucket_columns(self) -> tuple[int, npt.NDArray[np.int32]]:
        """A shift, and for every value of `report >> shift` the column of such reports; -1 if they have several."""
        base, last = self.cells.base, self.mechanism.outputs - 1
        buckets = min(_MOST_BUCKETS, _BUCKETS_PER_COLUMN * len(base))
        shift = max(0, last.bit_length() - buckets.bit_length() + 1)
        firsts = np.arange((last >> shift) + 2, dtype=np.int64) << shift
        first_columns, last_columns = (
            np.searchsorted(base, ends, side="right") - 1 for ends in (firsts[:-1], firsts[1:] - 1)
        )
        return shift, np.where(first_columns == last_columns, first_columns, -1).astype(np.int32)

    def _columns(self, reports: Ints) -> npt.NDArray[np.int32]:
        """The column of each report: by its bucket, or by a search if a new column begins within the bucket."""
        shift, bucket_columns = self._bucket_columns
        columns = np.asarray(bucket_columns[reports >> shift])
        searched = np.flatnonzero(columns < 0)
        columns[searched] = np.searchsorted(self.cells.base, reports[searched], side="right") - 1
        return columns

    def count_valid(self, reports: npt.NDArray[Any], weights: Array | None = None) -> Counts:
        """Three rows: counts, low sums, high sums.

        Floats add the integers of a block up exactly: a sum stays below `2**53`.
        """
        kind, size = np.int64 if weights is None else np.float64, len(self.cells.base)
        tally = np.zeros((3, size), kind)
        for first in range(0, len(reports), _BLOCK_REPORTS):
            block = reports[first : first + _BLOCK_REPORTS]
            columns, each = (
                self._columns(block),
                None if weights is None else weights[first : first + len(block)],
            )
            low, high = (part if each is None else part * each for part in (block & LOW, block >> LIMB))
            for sums, amounts in zip(tally, (each, low, high), strict=True):
                sums += np.bincount(columns, amounts, size).astype(kind)
        return tally

    def people(self, counts: Counts) -> float:
        """The sum of the first row."""
        return counts[0].sum()  # type: ignore[no-any-return]

    def expected_counts(self, prior: Array, people: int) -> Array:
        """The average counts, for reports that are uniform within their cells."""
        cells, counts = self.cells, people * self.cells.law(prior)
        offsets = np.append(np.zeros(self.mechanism.line.heavy), (cells.width - 1) / 2)
        return np.stack([counts, counts * (offsets + (cells.base & LOW)), counts * (cells.base >> LIMB)])

    def _offsets(self, tally: Counts) -> Array:
        """Sums of the offsets from the first place of each column; exact for integers until the last step."""
        if tally.dtype.kind == "i" and int(tally[0].max(initial=0)) > self.most_reports:
            raise TooLarge(
                f"{int(tally[0].max())} reports in one cell of the tally: beyond {self.most_reports} its sums do not "
                "fit 64 bits; read tallies of fewer reports one by one and combine the estimates"
            )
        low = tally[1] - tally[0] * (self.cells.base & LOW)
        high = tally[2] - tally[0] * (self.cells.base >> LIMB)
        return np.asarray(low + np.ldexp(high.astype(np.float64), LIMB), dtype=np.float64)

    # -- single reports ------------------------------------------------------------------------------------

    def likelihood_rows(self, reports: npt.NDArray[Any]) -> Array:
        """The lifts under the prior of the layout: those of the report itself, not of its cell."""
        line = self.mechanism.line
        owned = reports < line.heavy
        window_shares = np.zeros((len(reports), line.size))
        window_shares[owned, line.owners[reports[owned]]] = 1.0
        overlaps = window_overlaps(line.rim[None], reports[~owned] - line.heavy, line.window)
        window_shares[np.ix_(~owned, line.members)] = overlaps / max(line.window, 1)
        return np.asarray(
            1 - line.keep_chance + line.keep_chance * line.places / line.lengths * window_shares
        )

    def score_rows(self, reports: npt.NDArray[Any], prior: Array, rows: StatisticRows) -> Array:
        """The scores of the cells of the reports."""
        self._require_invertible()
        return channel_scores(self.mechanism.matrix, prior, rows)[self._columns(reports)]

    def square_rows(self, prior: Array, rows: StatisticRows) -> Array:
        """The squares of the scores of the cells, through the channel to them."""
        self._require_invertible()
        return channel_squares(self.mechanism.matrix, prior, rows)

    # -- answers -------------------------------------------------------------------------------------------

    def posterior_answers(self, counts: Counts, prior: Array) -> list[LinearAnswer]:
        """One answer: from whole reports under the prior of the layout, from their cells under any other."""
        n = counts[0].astype(np.float64)
        if self.mechanism.fits(prior):
            lifts = lift_sums(self.cells, n, self._offsets(counts))
            return [LinearAnswer(prior * lifts, 1.0, (ArcPosteriorForm(self.cells, n, prior),))]
        if self.mechanism.size * len(self.cells.base) > MOST_MATRIX_ENTRIES:
            message = f"{self.mechanism.size:,} values in one order are read under the plan's own prior only"
            raise TooLarge(message, Hint("prior", None))
        return [channel_posteriors(n, self.mechanism.matrix, prior)]

    def unbiased_answer(
        self, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> LinearAnswer:
        """The answer that inverts the channel to the cells."""
        self._require_invertible()
        n = counts[0].astype(np.float64)
        return channel_inversion(n, self.mechanism.matrix, prior, rows, population)

    def mle_distribution(self, counts: Counts, prior: Array) -> Minimum:
        """The distribution under which the counts of the cells are most likely."""
        return most_likely(counts[0].astype(np.float64), self.mechanism.matrix, prior)

    # -- what is to be expected ----------------------------------------------------------------------------

    @property
    def _is_large(self) -> bool:
        return self.mechanism.size * len(self.cells.base) > _MOST_INVERTED

    def _require_invertible(self) -> None:
        if self._is_large:
            raise not_identifiable()

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution.

        Reports in one order hardly distinguish neighbours, so for large domains the answer is no: with 1,000 values and
        10,000 people a share would be known to ±2 at best.
        """
        return not self._is_large and identifiable(self.mechanism.matrix)

    @property
    def identifies_by_assumption(self) -> bool:
        """Whether the channel is too large to check: then the answer is no."""
        return self._is_large

    def prior_test(self, prior: Array, reports: float) -> ScoreTest | None:
        """The test of the counts of the cells."""
        parts = split_prior(prior, len(self.cells.base))
        return cells_test(self.cells.law(parts), parts, reports)

    def tested_sums(self, counts: Counts, prior: Array) -> Array:
        """The counts of the cells."""
        return np.asarray(counts[0], dtype=np.float64)

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person at the prior of the layout: the posterior variance of expected reports.

        Where the prior is right reports are uniform within their cells, so it is exact.
        """
        P = prior.probabilities
        if not self.mechanism.fits(P) or query.unbiased or not query.linear:
            return None
        form = ArcPosteriorForm(self.cells, self.cells.law(P), P)
        return max(0.0, float(form.variances(query.centred_rows(prior)).sum()))


class ArcPosteriorForm(NamedTuple):
    """The sum over reports of the covariance of a person's indicators given the report.

    `counts` are the reports of each column. The squares of the offsets are not in the tally: if the prior is right,
    reports are uniform within their cells, which is what a posterior variance assumes anyway. So the lifts and their
    squares are summed for such reports; both are of the same reports, so that no variance is below zero.
    """

    cells: ArcCells
    counts: Array
    prior: Array

    def variances(self, rows: StatisticRows) -> Array:
        """`sum over reports of Var(a_X | report)` for every row `a`, or for the indicators of the values."""
        if rows is not None:
            return np.array([self.covariance(row[None])[0, 0] for row in rows])
        line, k, prior = self.cells.line, self.cells.line.keep_chance, self.prior
        lifts = self._lift_sums()
        squares = (k * line.places / line.lengths) ** 2 * squared_coverage(self.cells, self.counts)
        squares += (1 - k) * (2 * lifts - self.counts.sum() * (1 - k))
        return np.asarray(prior * lifts - prior**2 * squares)

    def covariance(self, rows: StatisticRows) -> Array:
        """The covariances of all pairs of rows."""
        W = np.eye(len(self.prior)) if rows is None else rows
        line, width = self.cells.line, self.cells.width
        owned_counts, c = np.split(self.counts, [line.heavy])
        a = W - (W @ self.prior)[:, None]
        owned = (a * self.prior / line.lengths)[:, line.owners]
        start, slope = self.cells.window_masses(a * self.prior)
        middle = start + slope * (width - 1) / 2
        shared = (middle * c) @ middle.T + (slope * (c * (width**2 - 1) / 12)) @ slope.T
        means = (owned * owned_counts) @ owned.T + shared / max(line.window, 1) ** 2
        return np.asarray(
            (a * self.prior * self._lift_sums()) @ a.T - (line.keep_chance * line.places) ** 2 * means
        )

    def _lift_sums(self) -> Array:
        return lift_sums(self.cells, self.counts, self.counts * (self.cells.sizes - 1) / 2)


def lift_sums(cells: ArcCells, counts: Array, offsets: Array) -> Array:
    """`sum over reports of r`, `r` the lift of a value at the report, from the offsets of the reports.

    With `N` reports this is `N (1 - k) + k (M / length_x) coverage_x`.
    """
    line, k = cells.line, cells.line.keep_chance
    return np.asarray(
        counts.sum() * (1 - k) + k * line.places / line.lengths * coverage(cells, counts, offsets)
    )


def coverage(cells: ArcCells, counts: Array, offsets: Array) -> Array:
    """`sum over reports of overlap / window`, per value: an owned output counts as one. O(d + columns).

    `counts` and `offsets` may be any numbers: reports, or weights spread over the places of a cell. Where a window
    lies within one arc, `_windows_holding` counts it as minus one window. Its overlap is then `lost + gained` less the
    arc, which is the window.
    """
    heavy, window = cells.line.heavy, max(cells.line.window, 1)
    c, s, owned = counts[heavy:], offsets[heavy:], window * counts[:heavy]
    held = _windows_holding(cells, c) * cells.arcs
    return _sum_by_value(cells, held, c * cells.lost - s, c * cells.gained + s, owned) / window


def squared_coverage(cells: ArcCells, counts: Array) -> Array:
    """`sum over reports of (overlap / window)**2` per value, for reports uniform within their cells.

    The overlap with the first arc is `lost - u` and that with the last arc `gained + u`, where `u` is the place within
    the cell. If both are the same arc, its overlap does not depend on `u`: the window lies within the arc, or goes
    round the whole circle and ends in the arc where it began.
    """
    heavy, square = cells.line.heavy, max(cells.line.window, 1) ** 2
    c, w, n = counts[heavy:], cells.width, max(1, len(cells.members))
    mean_u, mean_square_u = (w - 1) / 2, (w - 1) * (2 * w - 1) / 6
    is_same_arc = (cells.last_turns - cells.first_arcs) % n == 0
    two_arcs = np.where(is_same_arc, 0.0, c)
    first = two_arcs * (cells.lost**2 - 2 * cells.lost * mean_u + mean_square_u)
    last = two_arcs * (cells.gained**2 + 2 * cells.gained * mean_u + mean_square_u)
    within_arc = cells.last_turns == cells.first_arcs
    # If the window lies within one arc, `lost + gained` is the window plus that arc.
    surplus = np.where(within_arc, cells.arcs[cells.first_arcs], 0.0)
    same = np.where(is_same_arc, c * (cells.lost + cells.gained - surplus) ** 2, 0.0)
    holding = _windows_holding(cells, np.where(cells.last_turns > cells.first_arcs, c, 0.0))
    held = holding * cells.arcs.astype(float) ** 2
    return _sum_by_value(cells, held, first + same, last, square * counts[:heavy]) / square


def _windows_holding(cells: ArcCells, counts: Array) -> Array:
    """How many windows hold each arc as a whole: a difference array over two turns."""
    n = len(cells.members)
    begun, ended = (np.bincount(at, counts, 2 * n + 1) for at in (cells.first_arcs + 1, cells.last_turns))
    return np.asarray(np.cumsum((begun - ended)[: 2 * n]).reshape(2, n).sum(axis=0))


def _sum_by_value(cells: ArcCells, held: Array, lost: Array, gained: Array, owned: Array) -> Array:
    """Sums over the arcs and the owned output of each value: `held` by arc, and what cells lose and gain."""
    sums, n = np.zeros(cells.line.size), len(cells.members)
    sums[cells.members] = held + np.bincount(cells.first_arcs, lost, n)
    sums[cells.members] += np.bincount(cells.last_arcs, gained, n)
    sums[cells.line.owners] += owned
    return sums


def window_overlaps(ends: Ints, begins: Ints, window: int) -> Ints:
    """The overlap of each window with every arc of its circle, (windows, arcs).

    `ends` has the ends of the arcs, from zero on: a row for each window, or one row for all. A window that passes the
    end of the circle goes on at its beginning.

    >>> window_overlaps(np.array([[0, 4, 10]]), np.array([1, 8]), 4).tolist()
    [[3, 1], [2, 2]]
    """
    left, right, first = ends[:, :-1], ends[:, 1:], begins[:, None]
    last, turn = first + window, ends[:, -1:]
    inside, beyond_turn = np.minimum(right, last), np.minimum(right, last - turn)
    inside -= np.maximum(left, first)
    beyond_turn -= left
    for overlaps in (inside, beyond_turn):
        np.maximum(overlaps, 0, out=overlaps)
    inside += beyond_turn
    return inside
