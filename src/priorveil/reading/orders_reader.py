"""The reader of arcs in many public orders.

**The tally** is the number of reports, then for every value the sum of the overlaps of the windows with its arc, in
places, or the number of reports that it owns. These `d + 1` integers give the sum of the lifts, which is all that an
unbiased answer needs. The curator walks around the circle of every order that was reported, in `O(d)` steps each.

**Reading.** The answer is `J**-1` times the sum of the lifts, `J` the information of the pool in use
(`order_information`), so it is unbiased for every pool.

**Standard errors** are those of people who follow the estimated shares, not the prior: reports of such people are drawn
and scored (`OrdersSamplingForm`). Where few of them tell about a statistic, its variance is never below the one at the
prior.
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
from priorveil.mechanisms.arc.cells import ArcCells
from priorveil.mechanisms.randomness import GeneratorSource
from priorveil.notes import Note
from priorveil.priors import Prior
from priorveil.queries import Query
from priorveil.reading.arc_reader import window_overlaps
from priorveil.reading.linear_answers import CovarianceForm, LinearAnswer, centring_form
from priorveil.reading.moments import Counts, StatisticRows, apply_rows
from priorveil.reading.order_information import SOLVER_ERROR, OrdersInformation, information_of
from priorveil.reading.prior_check import ScoreTest, score_test, split_prior
from priorveil.reading.reader import Reader
from priorveil.reading.shares_search import Minimum, nearest_shares

# Reports that are drawn to measure variances. More make them more exact, and reading slower: with 2**22 lifts it takes
# 0.1 to 0.5 s, and a variance that 200 of the reports tell about is measured within a tenth.
_MOST_DRAWN = 1 << 14
_LEAST_DRAWN = 1 << 5
_DRAWN_LIFTS = 1 << 22
_FEW_MEETINGS = 50  # a variance is not lowered if fewer drawn reports than this meet the value
_CARRIED = 0.1  # nor if such values carry more than this part of the variance
_KEPT = 4  # histograms that are kept: those of counts, of weights and of their squares, which statistics read again
_MOST_PRODUCTS = 1 << 33  # for mean squares by value, which take some ten seconds
_ARCS = 1 << 18  # arcs that are laid on a line at a time: they stay in the processor's cache


class OrdersReader(Reader[Orders]):
    """Reads arcs in many orders."""

    reads = Orders

    mle_assumes: ClassVar[Note | None] = Note("assumesNearestDistribution")
    counts_slowly: ClassVar[bool] = True

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
        lifts = overlaps * self._lift_per_place
        lifts -= 1
        lifts *= line.keep_chance
        lifts += 1
        return np.asarray(lifts)

    def score_rows(self, reports: npt.NDArray[Any], prior: Array, rows: StatisticRows) -> Array:
        """The shares of the layout, plus `J**-1` times the excess of the lifts; times the rows."""
        statistics = self.mechanism.size if rows is None else len(rows)
        blocks = (lifts - 1 for lifts in self.likelihood_blocks(reports))
        if len(reports) < statistics:  # as many solutions as there are reports
            solutions = self.information.solve_rows(np.vstack([np.empty((0, self.mechanism.size)), *blocks]))
            return np.asarray(
                apply_rows(rows, self.shares) + (solutions if rows is None else solutions @ rows.T)
            )
        scores = np.empty((len(reports), statistics))
        solutions, first = self.information.solve_rows(np.eye(statistics) if rows is None else rows), 0
        for excess in blocks:
            np.matmul(excess, solutions.T, out=scores[first : first + len(excess)])
            first += len(excess)
        scores += apply_rows(rows, self.shares)
        return scores

    def square_rows(self, prior: Array, rows: StatisticRows) -> Array:
        """The mean squares of the scores over all places of all orders; `TooLarge` for many values or orders.

        Within a cell the lifts are linear in the place, and so are the scores. The square times a lift is a cubic,
        whose mean two places give exactly (the rule of Gauss).
        """
        W, size = np.eye(self.mechanism.size) if rows is None else rows, self.mechanism.size
        work = 4 * self.mechanism.count * size**2 * (size + len(W))
        if work > _MOST_PRODUCTS:
            raise TooLarge(
                f"variances for people who do not follow the prior would take long for {size:,} values in many orders"
            )
        solved, means = self.information.solve_rows(W), W @ self.shares
        squares = np.zeros(W.shape)
        for order, cells in enumerate(self.mechanism.cells):
            places, weights = _gauss_places(cells, self.shares)
            excess = self.likelihood_rows((order << self.mechanism.line.bits) + places) - 1
            scores = means + excess @ solved.T
            squares += (scores**2 * weights[:, None]).T @ (1 + excess)
        return squares / self.mechanism.count

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
        if self.mechanism.fits(shares) or self.mechanism.size == 1:
            forms: tuple[CovarianceForm, ...] = (
                OrdersPriorForm(self.information),
                centring_form(shares, population),
            )
        else:
            drawn = _drawn_reports(self, shares.tobytes())
            forms = (OrdersSamplingForm(self.information, drawn, shares, population),)
        return LinearAnswer(histogram, people, forms)

    def mle_distribution(self, counts: Counts, prior: Array) -> Minimum:
        """The distribution nearest to the unbiased one."""
        return Minimum(self._distribution(self._histogram(counts), float(counts[0])), 1, 0.0)

    def _distribution(self, histogram: Array, people: float) -> Array:
        """The distribution nearest to an unbiased histogram, in the metric of its precision."""
        if people <= 0 or self.mechanism.size == 1:
            return self.shares
        return nearest_shares(histogram / people, 1 / self.information.lift_variances)

    def drawn_reports(self, shares: Array) -> DrawnReports:
        """Reports of people who follow the prior, and of people who follow these shares."""
        excess = np.vstack([self._draw_excess(self.shares, seed=0), self._draw_excess(shares, seed=1)])
        meets = excess > -self.mechanism.line.keep_chance * (1 - 1e-9)
        return DrawnReports.of(excess, np.count_nonzero(meets, axis=0) < _FEW_MEETINGS, shares)

    def _draw_excess(self, shares: Array, seed: int) -> Array:
        """The excess of the lifts, `r - 1`, for the reports of people who follow the shares.

        The seed is fixed, so that reading a tally again gives the same answer.
        """
        count = max(_LEAST_DRAWN, min(_MOST_DRAWN, _DRAWN_LIFTS // self.mechanism.size)) // 2
        quantiles = (np.arange(count) + 0.5) / count
        codes = np.minimum(np.searchsorted(np.cumsum(shares), quantiles), len(shares) - 1)
        reports = self.mechanism.sample(codes, GeneratorSource(np.random.default_rng(seed)))
        return np.vstack([lifts - 1 for lifts in self.likelihood_blocks(reports)])

    def _histogram(self, counts: Counts) -> Array:
        """The unbiased histogram: `J**-1` times the sum of the lifts. It is kept for further statistics."""
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
        """Whether reports alone determine the distribution; assumed, not checked, for more than 128 values."""
        return self.information.is_invertible

    @property
    def identifies_by_assumption(self) -> bool:
        """True for more than 128 values."""
        return not self.information.is_small

    def prior_test(self, prior: Array, reports: float) -> ScoreTest | None:
        """The test of the sums of the lifts, for the prior of the layout."""
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
        return score_test(free @ covariance @ free.T, parts, informative, reports)

    def tested_sums(self, counts: Counts, prior: Array) -> Array:
        """The sums of the lifts, for each block of values."""
        return np.asarray(split_prior(prior) @ self._lift_excess(counts))

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person at the prior of the layout, for learning a distribution on few values."""
        learns = query.unbiased and query.asks_all_counts
        quick = learns and self.information.inverse is not None and self.mechanism.fits(prior.probabilities)
        return self.information.variance() if quick else None


# Further statistics of an estimate need the same reports again. They take 32 MB or more: so a few are kept in all, not
# some for each of the plans that were estimated.
@lru_cache(maxsize=2)
def _drawn_reports(reader: OrdersReader, shares: bytes) -> DrawnReports:
    return reader.drawn_reports(np.frombuffer(shares))


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


class DrawnReports(NamedTuple):
    """Reports that are drawn to measure variances, half of them at the prior and half at the estimated shares.

    `excess` has a row `r - 1` for each report, `r` its lifts. Averages over all of them with `weights` stand for
    expectations at the estimated shares, with `prior_weights` for those at the prior. `few` says for each value whether
    few of the reports meet it.
    """

    excess: Array
    few: Array
    weights: Array
    prior_weights: Array

    @classmethod
    def of(cls, excess: Array, few: Array, estimate: Array) -> DrawnReports:
        """Weigh the reports by their density at the estimated shares, `r . estimate`; at the prior it is one."""
        density = 1 + excess @ estimate
        at_prior, at_estimate = (
            weights / weights.sum() for weights in (1 / (1 + density), density / (1 + density))
        )
        return cls(excess, few, at_estimate, at_prior)

    def correction(self, squares: Array, known: Array) -> Array:
        """The factors for means of squares at the estimated shares, where those at the prior are known.

        A factor is a power of the known mean divided by the measured one. The power is the coefficient of regression of
        the error at the estimated shares on that at the prior. It is near one if the same reports carry both means, and
        near zero if others do: then a correction would only add noise.
        """
        least = np.finfo(float).tiny
        measured, at_estimate = (weights @ squares for weights in (self.prior_weights, self.weights))
        prior_errors, errors = (squares / np.maximum(means, least) for means in (measured, at_estimate))
        for part, weights in ((prior_errors, self.prior_weights), (errors, self.weights)):
            part -= 1  # in place, as everywhere here: new memory takes longer than the arithmetic
            part *= weights[:, None]
        power = np.einsum("ij,ij->j", prior_errors, errors) / np.maximum(
            np.einsum("ij,ij->j", prior_errors, prior_errors), least
        )
        ratio = np.divide(known, measured, out=np.ones_like(known), where=measured > 0)
        return np.asarray(ratio ** np.clip(power, 0.0, 1.0))


class OrdersPriorForm(NamedTuple):
    """The mean square of the unbiased answer of one report if people follow the prior: `J**-1`."""

    information: OrdersInformation

    def variances(self, rows: StatisticRows) -> Array:
        """The mean square of every row."""
        return self.information.inverse_diagonal if rows is None else self.information.quadratic_forms(rows)

    def covariance(self, rows: StatisticRows) -> Array:
        """The mean products of all pairs of rows."""
        W = np.eye(self.information.mechanism.size) if rows is None else rows
        products = self.information.inverse_products(W)
        return np.asarray((products + products.T) / 2)


class OrdersSamplingForm(NamedTuple):
    """The covariance of the unbiased answer of one report if people follow the estimated shares.

    It is measured on drawn reports. The variance at the prior, measured on the same reports, is known too, and tells
    how far they are off: every row is multiplied by the root of `DrawnReports.correction`.

    A value that no drawn report meets has the same lift in all of them, which would look like no variance. So where few
    of the reports meet the values that carry a variance, it is raised to the known variance at the prior. People who
    have a value raise its variance; if there are many of them, enough are among the drawn ones.
    """

    information: OrdersInformation
    drawn: DrawnReports
    shares: Array
    population: bool

    def variances(self, rows: StatisticRows) -> Array:
        """The variance of every row."""
        solutions = self._solve(rows)
        measured = self._measured_variances(rows, solutions)
        return np.asarray(measured + self._missing_variance(rows, solutions, measured))

    def _measured_variances(self, rows: StatisticRows, solutions: tuple[Array | None, Array]) -> Array:
        """The variance of every row on the drawn reports."""
        scores, root = self._scores(rows, solutions)
        if self.population:
            scores -= self.drawn.weights @ scores
            noise = np.square(scores, out=scores)
        elif rows is None:
            noise = (scores - self._posteriors) ** 2 + self._posteriors * (1 - self._posteriors)
        else:
            noise = scores**2 - 2 * scores * (self._posteriors @ rows.T) + self._posteriors @ (rows**2).T
        return np.asarray(root**2 * (self.drawn.weights @ noise))

    def covariance(self, rows: StatisticRows) -> Array:
        """The covariances of all pairs of rows."""
        W = np.eye(len(self.shares)) if rows is None else rows
        solutions = self._solve(W)
        scores, root = self._scores(W, solutions)
        weights = self.drawn.weights[:, None]
        if self.population:
            centred = scores - self.drawn.weights @ scores
            covariance = centred.T @ (weights * centred)
        else:
            posteriors = weights * self._posteriors
            with_values = scores.T @ posteriors @ W.T
            values = W * posteriors.sum(axis=0) @ W.T
            covariance = scores.T @ (weights * scores) + values - with_values - with_values.T
        covariance = root[:, None] * covariance * root
        return np.asarray(covariance + np.diag(self._missing_variance(W, solutions, np.diag(covariance))))

    def _missing_variance(
        self, rows: StatisticRows, solutions: tuple[Array | None, Array], measured: Array
    ) -> Array:
        """By how much variances at the prior exceed the measured ones, where few drawn reports tell about a row."""
        few, (solved, squares) = self.drawn.few, solutions
        known = squares + centring_form(self.shares, self.population).variances(rows)
        if solved is not None:
            carried = solved**2 * self.information.lift_variances
            few = carried @ few > _CARRIED * carried.sum(axis=1)
        return np.where(few, np.maximum(known - measured, 0.0), 0.0)

    def _solve(self, rows: StatisticRows) -> tuple[Array | None, Array]:
        """`J**-1 a` for every row `a`, not written out for the histogram, and `a' J**-1 a`."""
        if rows is None:
            return None, self.information.inverse_diagonal
        return self.information.solve_roughly(rows)

    def _scores(self, rows: StatisticRows, solutions: tuple[Array | None, Array]) -> tuple[Array, Array]:
        """What each drawn report adds to the answer for every row, and by what the rows are multiplied."""
        information, excess, (solved, squares) = self.information, self.drawn.excess, solutions
        centred = information.inverse_times(excess) if solved is None else excess @ solved.T
        means = apply_rows(rows, information.mechanism.shares)
        known = np.maximum(squares - means**2, 0.0)
        root = np.sqrt(self.drawn.correction(centred**2, known))
        centred += means
        return centred, root

    @property
    def _posteriors(self) -> Array:
        """For each drawn report the chances of the values, if people follow the estimated shares."""
        joint = np.maximum(1 + self.drawn.excess, 0.0) * self.shares
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _gauss_places(cells: ArcCells, shares: Array) -> tuple[Ints, Array]:
    """Places whose weighted sums are means of cubics over the reports of people who follow the prior of the layout."""
    heavy, law = cells.line.heavy, cells.law(shares)
    owned, base, half = cells.base[:heavy], cells.base[heavy:], (cells.width - 1) / 2
    aside = np.sqrt(np.maximum(cells.width**2 - 1, 0.0) / 12)  # the standard deviation of a place in its cell
    both = [base + np.rint(half - aside).astype(np.int64), base + np.rint(half + aside).astype(np.int64)]
    return np.concatenate([owned, *both]), np.concatenate([law[:heavy], law[heavy:] / 2, law[heavy:] / 2])


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
