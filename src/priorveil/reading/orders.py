"""The reader of arcs in many public orders.

**The tally** is the number of reports, then for every value the sum of the overlaps of the windows with its arc, in
places, or the number of reports that it owns. These `d + 1` integers give the sum of the lifts, which is all that an
unbiased answer needs. The curator walks around the circle of every order that came, `O(d)` steps each.

**Reading.** The answer is `J**-1` times the sum of the lifts, `J` the information of the pool in use
(`order_information`), so it is unbiased for every pool.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints
from priorveil.errors import Hint, TooLarge
from priorveil.mechanisms import Orders
from priorveil.priors import Prior
from priorveil.queries import Query
from priorveil.reading.arcs import window_overlaps
from priorveil.reading.linear_answers import LinearAnswer, centring_form, shrink
from priorveil.reading.moments import Counts, StatisticRows
from priorveil.reading.order_information import SOLVER_ERROR, OrdersInformation, information_of
from priorveil.reading.prior_check import PriorCheck, score_check, split_prior
from priorveil.reading.reader import Reader
from priorveil.reading.shares_search import Minimum, nearest_shares

_KEPT = 4  # histograms that are kept: those of counts, of weights and of their squares, which statistics read again
_ARCS = 1 << 18  # arcs that are laid on a line at a time: they stay in the processor's cache
_NEAREST = (
    "nothing about the prior: the answer is the distribution nearest to that of method unbiased, in the metric of its "
    "precision; the intervals are those of method unbiased, within what shares can be"
)


class OrdersReader(Reader[Orders]):
    """Reads arcs in many orders."""

    mle_assumes: ClassVar[str | None] = _NEAREST

    @property
    def information(self) -> OrdersInformation:
        """The information of a report."""
        return information_of(self.mechanism)

    @property
    def shares(self) -> Array:
        """The prior of the layout."""
        return self.mechanism.shares

    # -- counting ------------------------------------------------------------------------------------------

    def count_valid(self, reports: npt.NDArray[Any], weights: Array | None = None) -> Counts:
        """The number of reports, then the sums of the overlaps with each value."""
        each = np.ones_like(reports) if weights is None else weights
        line, sums = self.mechanism.line, np.zeros(1 + self.mechanism.size, dtype=each.dtype)
        sums[0] = each.sum()
        place = reports & (line.places - 1)
        owned = place < line.heavy
        np.add.at(sums, 1 + line.owners[place[owned]], each[owned])
        place, each = place[~owned] - line.heavy, each[~owned]
        orders, row = np.unique(reports[~owned] >> line.bits, return_inverse=True)
        ascending = np.argsort(row, kind="stable")
        step = max(1, _ARCS // self.mechanism.circle_values.size)
        for first in range(0, orders.size, step):
            windows = ascending[slice(*np.searchsorted(row, [first, first + step], sorter=ascending))]
            circles = self.mechanism.circles(orders[first : first + step])
            ends = self._ends(circles)
            overlaps = _sum_overlaps(ends, row[windows] - first, place[windows], each[windows], line.window)
            for values, own_overlaps in zip(circles, overlaps, strict=True):
                sums[1 + values] += own_overlaps
        return sums

    def _ends(self, circles: Ints) -> Ints:
        """The ends of the arcs of each circle, from zero on."""
        return np.pad(np.cumsum(self.mechanism.line.lengths[circles], axis=1), ((0, 0), (1, 0)))

    def people(self, counts: Counts) -> float:
        """The first entry."""
        return counts[0]  # type: ignore[no-any-return]

    def expected_counts(self, prior: Array, people: int) -> Array:
        """The average counts of this many people who follow the prior."""
        k = self.mechanism.line.keep_chance
        fits = self.mechanism.fits(prior)
        lifts = np.ones(self.mechanism.size) if fits else self.information.times(prior)
        return people * np.append(1.0, (lifts - (1 - k)) / (k * self._lift_per_place))

    @cached_property
    def _lift_per_place(self) -> Array:
        """How much one place of overlap, or one owned report, adds to a lift, without the coin."""
        scale = 1 / self.shares
        scale[self.mechanism.circle_values] /= self.mechanism.line.window
        return scale

    def _lift_excess(self, counts: Counts) -> Array:
        """The sums over reports of `r - 1`, `r` the lift of each value."""
        most = ((1 << 63) - 1) // int(self.mechanism.line.lengths.max())
        if counts.dtype.kind == "i" and int(counts[0]) > most:
            raise TooLarge(
                f"{int(counts[0]):,} reports: beyond {most:,} the sums of a tally do not fit 64 bits; read tallies of "
                "fewer reports one by one and combine the estimates"
            )
        return np.asarray(self.mechanism.line.keep_chance * (counts[1:] * self._lift_per_place - counts[0]))

    # -- single reports ------------------------------------------------------------------------------------

    def likelihood_rows(self, reports: npt.NDArray[Any]) -> Array:
        """The lifts under the prior of the layout."""
        line = self.mechanism.line
        place = reports & (line.places - 1)
        owned = place < line.heavy
        overlaps = np.zeros((len(reports), line.size), dtype=np.int64)
        overlaps[owned, line.owners[place[owned]]] = 1
        shared = np.flatnonzero(~owned)
        circles = self.mechanism.circles(reports[shared] >> line.bits)
        overlaps[shared[:, None], circles] = window_overlaps(
            self._ends(circles), place[shared] - line.heavy, line.window
        )
        return np.asarray(1 + line.keep_chance * (overlaps * self._lift_per_place - 1))

    def score_rows(self, reports: npt.NDArray[Any], prior: Array, rows: StatisticRows) -> Array:
        """The shares of the layout, plus `J**-1` times the excess of the lifts; times the rows."""
        W = np.eye(self.mechanism.size) if rows is None else rows
        excess = self.likelihood_rows(reports) - 1
        if len(W) <= len(excess):
            products = excess @ self.information.solve_rows(W).T
        else:
            products = self.information.solve_rows(excess) @ W.T
        return np.asarray(W @ self.shares + products)

    # -- answers -------------------------------------------------------------------------------------------

    def posterior_answers(self, counts: Counts, prior: Array) -> list[LinearAnswer]:
        """One answer, under the prior of the layout only."""
        if not self.mechanism.fits(prior):
            raise TooLarge(
                "a tally of many orders holds the posteriors under the plan's own prior only",
                Hint("prior", None),
                Hint("method", "unbiased", purpose="to lean on no prior"),
            )
        histogram = prior * (counts[0] + self._lift_excess(counts))
        form = OrdersPosteriorForm(self.information, prior)
        return [LinearAnswer(histogram, float(counts[0]), (form,))]

    def unbiased_answer(
        self, counts: Counts, prior: Array, rows: StatisticRows, population: bool
    ) -> LinearAnswer:
        """`J**-1` times the sum of the lifts."""
        histogram, people = self._histogram(counts), float(counts[0])
        shares = self._distribution(histogram, people)
        form = OrdersSamplingForm(self.information, self._noise(counts), shares, population)
        return LinearAnswer(histogram, people, (form,))

    def mle_distribution(self, counts: Counts, prior: Array) -> Minimum:
        """The distribution nearest to the unbiased one."""
        return Minimum(self._distribution(self._histogram(counts), float(counts[0])), 1, 0.0)

    def _distribution(self, histogram: Array, people: float) -> Array:
        """The distribution nearest to an unbiased histogram, in the metric of its precision."""
        if people <= 0 or self.mechanism.size == 1:
            return self.shares
        return nearest_shares(histogram / people, 1 / self.information.lift_variances)

    def _noise(self, counts: Counts) -> Array:
        """How large the squares `(r - 1)**2` of the reports are, relative to those that the prior expects.

        Their sum is linear in the overlaps where a window is anywhere around its arcs. Where few reports are expected
        to meet an arc, it is shrunk towards one.
        """
        k, N, variances = self.mechanism.line.keep_chance, float(counts[0]), self.information.lift_variances
        if N <= 0 or self.mechanism.size == 1:  # the lift of the only value never varies
            return np.ones(self.mechanism.size)
        more = self._lift_excess(counts) * (variances - k**2) / (k * variances)
        noise, meeting = np.maximum(1 + more / N, 0.0), N / (1 + variances / k**2)
        return shrink(noise * meeting, meeting) / meeting

    def _histogram(self, counts: Counts) -> Array:
        """The unbiased histogram: `J**-1` times the sum of the lifts.

        Its covariance is `N J**-1` where the prior is right. Where it is wrong, every value is scaled by its noise.
        Further statistics of the same counts use it again.
        """
        return self._solved_histogram(counts.dtype.str, counts.tobytes())

    @cached_property
    def _solved_histogram(self) -> Callable[[str, bytes], Array]:
        """The histogram of these counts; the last ones are kept, in a cache that threads may share."""

        @lru_cache(maxsize=_KEPT)
        def solve(dtype: str, content: bytes) -> Array:
            counts = np.frombuffer(content, dtype)
            error = SOLVER_ERROR * (max(float(counts[0]), 0.0) * self.mechanism.size) ** 0.5
            excess = self.information.solve(self._lift_excess(counts), error)
            histogram = np.asarray(float(counts[0]) * self.shares + excess)
            histogram.flags.writeable = False
            return histogram

        return solve

    # -- what is to be expected ----------------------------------------------------------------------------

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution: always for many values, which have many orders."""
        return self.information.is_invertible

    def prior_check(self, counts: Counts, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior of the layout."""
        mechanism = self.mechanism
        if not mechanism.fits(prior) or mechanism.size == 1:
            return None
        line, parts = mechanism.line, split_prior(prior)
        masses = parts.sum(axis=1)
        covariance = self.information.approximation.times(parts) @ parts.T - np.outer(masses, masses)
        free = np.eye(len(parts)) - masses[:, None]  # the lifts of a report add up to one under the prior
        on_circle = ~np.isin(np.arange(mechanism.size), line.owners)
        widths = np.maximum(line.lengths, np.where(on_circle, line.window, 0))
        largest = line.keep_chance * np.maximum(line.places / widths - 1, 1.0)
        informative = (parts > 0) @ (self.information.lift_variances / largest**2)
        total = parts @ self._lift_excess(counts)
        return score_check(total, free @ covariance @ free.T, masses, informative, float(counts[0]))

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person at the prior of the layout, for learning a distribution on few values."""
        learns = query.unbiased and query.asks_all_counts
        quick = learns and self.information.inverse is not None and self.mechanism.fits(prior.probabilities)
        return self.information.variance() if quick else None


class OrdersPosteriorForm(NamedTuple):
    """The covariance of a person's indicators given the report, as the prior of the layout expects it."""

    information: OrdersInformation
    prior: Array

    def variances(self, rows: StatisticRows) -> Array:
        """The variance of every row."""
        prior = self.prior
        if rows is None:
            return np.asarray(prior * (1 - prior) - prior**2 * self.information.lift_variances)
        centred = rows - (rows @ prior)[:, None]
        explained = (centred * prior * self.information.times_rows(centred * prior)).sum(axis=1)
        return np.asarray(centred**2 @ prior - explained)

    def covariance(self, rows: StatisticRows) -> Array:
        """The covariances of all pairs of rows."""
        prior = self.prior
        W = np.eye(len(prior)) if rows is None else rows
        centred = (W - (W @ prior)[:, None]) * prior
        explained = centred @ self.information.times_rows(centred).T
        return np.asarray(centred / prior @ centred.T - explained)


class OrdersSamplingForm(NamedTuple):
    """The covariance of the unbiased answer of one report: `J**-1`, every value scaled by its noise, and centred.

    The histogram adds up to the reports, so what all values have in common has no noise. The noise of the values is
    estimated one by one and would not agree with that; so rows are read less their means.
    """

    information: OrdersInformation
    noise: Array
    shares: Array
    population: bool

    def variances(self, rows: StatisticRows) -> Array:
        """The variance of every row."""
        root, centring = np.sqrt(self.noise), centring_form(self.shares, self.population)
        if rows is not None:
            centred = self._centre(rows)
            return np.asarray(self.information.quadratic_forms(root * centred) + centring.variances(centred))
        prior = self.information.mechanism.shares
        variance = self.noise * self.information.inverse_diagonal + centring.variances(None)
        with_sum = root * self.information.inverse_times(root[None])[0] - self.shares
        return np.asarray(variance - 2 * prior * with_sum + prior**2 * with_sum.sum())

    def covariance(self, rows: StatisticRows) -> Array:
        """The covariances of all pairs of rows."""
        centred = self._centre(np.eye(len(self.shares)) if rows is None else rows)
        products = self.information.inverse_products(np.sqrt(self.noise) * centred)
        centring = centring_form(self.shares, self.population)
        return np.asarray((products + products.T) / 2 + centring.covariance(centred))

    def _centre(self, rows: Array) -> Array:
        return np.asarray(rows - (rows @ self.information.mechanism.shares)[:, None])


def _sum_overlaps(
    ends: Ints, rows: Ints, begins: Ints, weights: npt.NDArray[Any], window: int
) -> npt.NDArray[Any]:
    """For each arc of several circles the sum of its overlaps with windows, times the weights of these.

    `ends` (circles, arcs + 1) are the ends of the arcs; a window begins on circle `rows` at `begins`. The circles are
    laid on one line. A window and its copy a turn before are two intervals: up to a place, an interval holds how far
    the place is beyond its begin, less how far it is beyond its end.

    >>> ends = np.array([[0, 4, 10], [0, 6, 10]])
    >>> _sum_overlaps(ends, np.array([0, 1]), np.array([8, 3]), np.array([1, 1]), 4).tolist()
    [[2, 2], [3, 1]]
    """
    around = int(ends[0, -1])
    apart = 4 * around * np.arange(len(ends))
    starts = np.concatenate([begins + apart[rows], begins + apart[rows] - around])
    places, signs = np.append(starts, starts + window), np.tile(weights, 4)
    signs[len(starts) :] *= -1
    ascending = np.argsort(places)
    sums, moments = (np.append(0, np.cumsum(part[ascending])) for part in (signs, signs * places))
    ends = ends + apart[:, None]
    before = np.searchsorted(places[ascending], ends)
    return np.diff(ends * sums[before] - moments[before], axis=1)
