"""Arcs on a circle in thousands of public orders: the mechanism that learns a distribution on many values.

Reports in one order hardly distinguish neighbours on the circle. Here the order of a report is drawn from a public
pool, without looking at the value.

**The orders** are never written out. An order is named by a `seed` and a `multiplier`. The `n` values of the circle are
sorted by `kernels.splitmix64(seed + (x + 1) * STEP mod 2**64)`, ties by code, which gives them ranks `1 .. n`. Then
they are sorted by `multiplier * rank mod p`, `p` the least prime above `n`. So a walk around the circle visits the
ranks `step, 2 step, ...` modulo `p`, `step` the inverse of the multiplier. Under one order a report estimates the slow
waves around the circle well and the fast ones badly; multiplying ranks turns fast waves into slow ones, and the
multipliers `1 .. (p - 1) / 2` treat all alike. Several times as many random orders would be needed for the same.

**The sampler.** A report takes four words, whatever the value is. The lowest bits of the first are the index of the
order (their number is a power of two); the others are the three words of `arc.line`. The report is `index * 2**bits +
y` with the line's report `y`, in all below `2**53`. A device adds up the segments before its own, in `O(d)` steps.

**The tally** is the number of reports, then for every value the sum of the overlaps of the windows with its arc, in
places, or the number of reports that it owns. These `d + 1` integers give the sum of the lifts, which is all that an
unbiased answer needs. The curator walks around the circle of every order that came, `O(d)` steps each.

**Reading.** The answer is `J**-1` times the sum of the lifts, `J` the information of the pool in use, so it is unbiased
for every pool. `J v` takes `O(d)` steps for each order (`kernels.add_smoothed`). Conjugate gradients solve the system
in few steps, because `J` is close to a matrix that is simple to invert (`Orders._near`), which also gives the variances
of many statistics at once. For few values `J` is written out and inverted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Mask
from priorveil.errors import Hint, InvalidInput, NotIdentifiable, TooLarge
from priorveil.mechanisms import estimators, kernels
from priorveil.mechanisms.arc import ArcMechanism
from priorveil.mechanisms.arc.certificate import Weights, fit_line
from priorveil.mechanisms.arc.counting import ArcCells, squared_overlap
from priorveil.mechanisms.arc.line import DRAWS, ArcLine
from priorveil.mechanisms.estimators import Counts, Moments, PriorCheck, Rows, apply_rows, known_form
from priorveil.mechanisms.interface import in_range, require_writable
from priorveil.mechanisms.kernels import STEP, splitmix64
from priorveil.mechanisms.randomness import Words
from priorveil.mechanisms.simplex import Minimum, conjugate_gradients, nearest_shares
from priorveil.priors import Prior
from priorveil.queries import Query

_IDENTIFIED = 1e-10  # eigenvalues of the information below this are not identified
_WRITTEN_OUT = 128  # values up to which the information is written out
_LIKELY = 0.15  # share from which a value is solved for by itself
_SIGNS = 2_048  # random signs that measure a trace
_FEW = 8  # statistics up to which each is worth products with the information, of 0.03 to 10 s
_BITS = 36  # of the line: with 2**14 orders a report has 50, and sums of overlaps fit 64 for 2**27 reports
_MOST_ORDERS = 1 << 16
_KEPT = 4  # histograms that are kept: those of counts, of weights and of their squares
_ARCS = 1 << 18  # arcs that are laid on a line at a time
_TOLERANCE = 1e-2  # of conjugate gradients, relative to the noise of the reports; a last step divides it by five to ten
_ROUGH = 0.2  # the same for a variance, whose error is the square of it, and smaller by a last step too
_NEAREST = (
    "nothing about the prior: the answer is the distribution nearest to that of method unbiased, in the metric of its "
    "precision; the intervals are those of method unbiased, within what shares can be"
)


class _Walks(NamedTuple):
    """The orders: their seeds, their multipliers and the steps of their walks, all modulo `prime`.

    The others have a row for each seed: the values on the circle by rank, the lengths of their arcs, and for every
    value its rank, from one; zero for owners.
    """

    prime: int
    seeds: Ints
    multipliers: Ints
    steps: Ints
    shuffled: Ints
    lengths: Ints
    ranks: Ints


class _LowRank(NamedTuple):
    """The symmetric matrix `diag(diagonal) + U' S U`."""

    diagonal: Array
    U: Array
    S: Array

    def times(self, v: Array) -> Array:
        """The product with a vector, or with every row of a matrix."""
        return np.asarray(self.diagonal * v + v @ self.U.T @ self.S @ self.U)

    def inverse(self) -> _LowRank:
        """The inverse, by Woodbury's formula."""
        scaled = self.U / self.diagonal
        inner = np.linalg.solve(np.eye(len(self.S)) + self.S @ scaled @ self.U.T, self.S)
        return _LowRank(1 / self.diagonal, scaled, np.asarray(-inner, dtype=np.float64))

    def plus(self, U: Array, S: Array) -> _LowRank:
        """The sum with another `U' S U`."""
        size, both = len(self.S), np.pad(self.S, (0, len(S)))
        both[size:, size:] = S
        return _LowRank(self.diagonal, np.vstack([self.U, U]), both)

    def entries(self) -> Array:
        """The entries on its diagonal."""
        return np.asarray(self.diagonal + (self.U * (self.S @ self.U)).sum(axis=0))


@dataclass(frozen=True, eq=False)
class Orders(ArcMechanism):
    """Arcs in `count` public orders; in `line` the values on the circle are in the order of their codes.

    >>> pool = Orders.fit([5, 2, 2, 1], [0], 4, Fraction(37, 100), Fraction(271, 100))
    >>> pool.circles(np.arange(4)).tolist()
    [[2, 1, 3], [3, 2, 1], [3, 1, 2], [2, 3, 1]]
    """

    count: int

    kind: ClassVar[str] = "orders"
    draws_per_report = DRAWS + 1  # the first one draws the order
    every_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        count, m = self.count, self.line
        if not 1 <= count <= _MOST_ORDERS or count & (count - 1) or count << m.bits > 1 << 53:
            raise InvalidInput("count", count, "give a power of two, with count * 2**bits at most 2**53")
        if m.heavy == m.size or m.start != m.edges[m.heavy] or np.any(np.diff(self._light) < 0):
            raise InvalidInput("owners", m.owners, "some values must remain on the circle")

    @classmethod
    def fit(cls, weights: Weights, owners: npt.ArrayLike, count: int, lo: Fraction, hi: Fraction) -> Orders:
        """The least noisy mechanism that proves `lo <= lift <= hi` for every order."""
        first = np.array(owners, dtype=np.int64).reshape(-1)
        light = np.setdiff1d(np.arange(len(weights)), first)
        line = fit_line(weights, np.append(first, light), len(first), lo, hi, _BITS, every_order=True)
        return cls(line, count)

    # -- the orders ----------------------------------------------------------------------------------------

    @property
    def _light(self) -> Ints:
        """The values on the circle."""
        return self.line.order[self.line.heavy :]

    @cached_property
    def _walks(self) -> _Walks:
        light = self._light
        prime = prime_above(light.size)
        seeds, multipliers = order_names(prime, self.count)
        words = (light.astype(np.uint64) + np.uint64(1)) * np.uint64(STEP)
        tries = np.arange(seeds[-1] + 1, dtype=np.uint64)[:, None]
        shuffled = light[np.argsort(splitmix64(words + tries), axis=1, kind="stable")]
        steps = np.array([pow(int(multiplier), -1, prime) for multiplier in multipliers])
        ranks = np.zeros((len(shuffled), self.size), dtype=np.int64)
        np.put_along_axis(ranks, shuffled, np.arange(1, light.size + 1)[None], axis=1)
        return _Walks(prime, seeds, multipliers, steps, shuffled, self.line.lengths[shuffled], ranks)

    def circles(self, index: Ints) -> Ints:
        """The values on the circle in some of the orders, a row each."""
        walks = self._walks
        ranks = kernels.walk_ranks(walks.steps[index], walks.prime, self._light.size)
        return walks.shuffled[walks.seeds[index, None], ranks]

    @property
    def cells(self) -> list[ArcCells]:
        """The cells of each order; of small mechanisms only."""
        require_writable(self.size, 2 * self.count * self.size)
        circles = self.circles(np.arange(self.count))
        return [ArcCells(replace(self.line, order=np.append(self.line.owners, c))) for c in circles]

    @property
    def matrix(self) -> Array:
        """The channel from values to the cells of all orders; raises `TooLarge` when huge."""
        return np.hstack([cells.matrix for cells in self.cells]) / self.count

    @property
    def leakage_matrix(self) -> tuple[Array, tuple[int, ...]]:
        """A channel that leaks no less than the reports do, and the reports of its columns."""
        parts = [cells.leakage_matrix for cells in self.cells]
        reports = [(i << self.line.bits) + y for i, (_, own) in enumerate(parts) for y in own]
        return np.hstack([matrix for matrix, _ in parts]) / self.count, tuple(reports)

    # -- reports -------------------------------------------------------------------------------------------

    def draw(self, codes: Ints, words: Words, reports: Ints, total: int) -> None:
        """Fill `reports` for valid codes; the first word draws the order."""
        m, walks = self.line, self._walks
        index = (words[:, 0] & np.uint64(self.count - 1)).astype(np.int64)
        seeds, multipliers = walks.seeds[index], walks.multipliers[index]
        keys, begins = walks.ranks[seeds, codes] * multipliers % walks.prime, np.empty_like(codes)
        work = total * self._light.size
        kernels.add_segments(keys, seeds, multipliers, walks.prime, walks.lengths, begins, work=work)
        begins = np.where(keys > 0, m.start + begins, m.starts[codes])
        reports[:] = (index << m.bits) + self.line_reports(words, begins, codes)

    def accepts(self, reports: npt.NDArray[Any]) -> Mask:
        """Which reports this mechanism can have made."""
        inside = in_range(reports, self.count << self.line.bits)
        return inside & in_range(reports & (self.line.places - 1), self.line.outputs)

    def accumulate(self, reports: npt.ArrayLike) -> Ints:
        """The number of reports, then the sums of the overlaps with each value."""
        column = self.check_reports(reports)
        return self._sum_overlaps(column, np.ones_like(column))

    def weigh(self, reports: npt.NDArray[Any], weights: Array) -> Array:
        """The same in floats, with every report counted as often as its weight says."""
        return self._sum_overlaps(self.check_reports(reports), weights)

    def _sum_overlaps(self, reports: Ints, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        m, sums = self.line, np.zeros(1 + self.size, dtype=weights.dtype)
        sums[0] = weights.sum()
        place = reports & (m.places - 1)
        own = place < m.heavy
        np.add.at(sums, 1 + m.owners[place[own]], weights[own])
        place, weights = place[~own] - m.heavy, weights[~own]
        orders, row = np.unique(reports[~own] >> m.bits, return_inverse=True)
        ascending, step = np.argsort(row, kind="stable"), max(1, _ARCS // self._light.size)
        for first in range(0, orders.size, step):
            windows = ascending[slice(*np.searchsorted(row, [first, first + step], sorter=ascending))]
            circles = self.circles(orders[first : first + step])
            ends = np.pad(np.cumsum(m.lengths[circles], axis=1), ((0, 0), (1, 0)))
            found = _overlaps(ends, row[windows] - first, place[windows], weights[windows], m.window)
            for values, overlaps in zip(circles, found, strict=True):
                sums[1 + values] += overlaps
        return sums

    def expected_counts(self, prior: Array, people: int) -> Array:
        """What `accumulate` gives on average for this many people who follow the prior."""
        k = self.line.keep_chance
        lifts = np.ones(self.size) if self.fits(prior) else self.information_times(prior)
        return people * np.append(1.0, (lifts - (1 - k)) / (k * self._scale))

    # -- lifts and their information -----------------------------------------------------------------------

    @cached_property
    def _scale(self) -> Array:
        """How much one place of overlap, or one owned report, adds to a lift, without the coin."""
        scale = 1 / self.shares
        scale[self._light] /= self.line.window
        return scale

    def _lift_excess(self, counts: Counts) -> Array:
        """The sums over reports of `r - 1`, `r` the lift of each value."""
        most = ((1 << 63) - 1) // int(self.line.lengths.max())
        if counts.dtype.kind == "i" and int(counts[0]) > most:
            raise TooLarge(
                f"{int(counts[0]):,} reports: beyond {most:,} the sums of a tally do not fit 64 bits; read tallies of "
                "fewer reports one by one and combine the estimates"
            )
        return np.asarray(self.line.keep_chance * (counts[1:] * self._scale - counts[0]))

    @cached_property
    def spread(self) -> Array:
        """The variance of the lift of every value, `J_xx - 1`: the same in every order."""
        m, light, squares = self.line, self._light, 1 / self.shares
        window, circle = m.window / m.places, m.circumference / m.places
        squares[light] = squared_overlap(self.shares[light], window, circle) / window**2
        return np.asarray(m.keep_chance**2 * (squares - 1))

    def information_times(self, v: Array) -> Array:
        """`J v` for the information `J = E[r r']` of a report at the prior of the layout."""
        m, k, walks, light = self.line, self.line.keep_chance, self._walks, self._light
        window, lengths = m.window / m.places, walks.lengths / m.places
        mean = float(v[light].sum()) / (m.circumference / m.places)
        density, smooth = v[walks.shuffled] / lengths - mean, np.zeros(lengths.shape)
        work = 16 * self.count * light.size  # products are computed many at a time
        kernels.add_smoothed(
            walks.steps, walks.seeds, walks.prime, lengths, density, window, smooth, work=work
        )
        used = v / self.shares
        used[light] = mean
        np.add.at(used, walks.shuffled, smooth / (self.count * window**2 * lengths))
        return np.asarray((1 - k**2) * v.sum() + k**2 * used)

    @cached_property
    def _near(self) -> _LowRank:
        """A matrix close to `J`.

        Off the diagonal `1 - J_xy` is the same number `h` for all pairs with an owner, or with a value that half of the
        people have. For other pairs random orders have about `a_x + a_y - c P_x P_y`: if an arc is anywhere outside the
        other, this is its expectation up to third powers of their lengths. `J P = 1` and the diagonal give `h` and `a`.
        """
        m, P, q = self.line, self.shares, self.spread * self.shares
        light = (P < 0.45) & ~np.isin(np.arange(self.size), m.owners)
        h, rest = float((q / (1 - P))[~light].max(initial=0.0)), float(P[light].sum())
        window, circle = m.window / m.places, m.circumference / m.places
        c = m.keep_chance**2 * (1 / (2 * window**2) - 2 / (window * circle) + 2 / circle**2) / circle
        short = light * np.minimum(P, min(window, circle / 4))
        left = np.maximum(rest - 2 * P, 0.02 * rest or 1.0)  # without light values nothing is divided
        own = q - (1 - rest) * h + c * short * (short @ P - short * P)
        weights = light * P / left
        a = light * (own - weights @ own / (1 + weights.sum())) / left
        S = np.array([[1 - h, 0, 0, 0], [0, h, -1, 0], [0, -1, 0, 0], [0, 0, 0, c]])
        pairs = _LowRank(np.zeros(self.size), np.stack([np.ones(self.size), light, a, short]), S)
        return pairs._replace(diagonal=1 + self.spread - pairs.entries())

    @cached_property
    def _near_inverse(self) -> _LowRank:
        return self._near.inverse()

    @cached_property
    def inverse(self) -> Array | None:
        """The inverse of the information, if there are few values; refused where reports do not identify them."""
        if self.size > _WRITTEN_OUT:
            return None
        root = np.sqrt(self.shares)
        information = np.array([self.information_times(unit) for unit in np.eye(self.size)])
        scaled = root[:, None] * information * root
        if np.linalg.eigvalsh(scaled)[0] <= _IDENTIFIED:
            raise estimators.not_identifiable()
        return np.asarray(root[:, None] * np.linalg.inv(scaled) * root)

    def solve(self, b: Array, error: float) -> Array:
        """`J**-1 b`, if there are many values up to an error below this size, as `J` measures it."""
        if self.inverse is not None:
            return np.asarray(self.inverse @ b)
        near = self._near_inverse.times
        solution, residual = conjugate_gradients(self.information_times, b, near, error**2)
        return solution + near(residual)  # a step that needs no further product with `J`

    def quadratic_forms(self, rows: Array) -> Array:
        """`a' J**-1 a` for every row `a`."""
        if len(rows) <= _FEW:
            return np.diag(self._inverse_products(rows))
        return np.asarray((rows * self._inverse_times(rows)).sum(axis=1))

    def _inverse_products(self, rows: Array) -> Array:
        """`a' J**-1 b` for all rows `a` and `b`, close enough for variances.

        Where `a = J x + r` and `b = J y + s`, it is `x' b + r' y + r' J**-1 s`, and `r` and `s` are small.
        """
        if self.inverse is not None or len(rows) > _FEW:
            return np.asarray(rows @ self._inverse_times(rows).T)
        near = self._near_inverse.times
        found = [conjugate_gradients(self.information_times, a, near, _ROUGH**2 * a @ near(a)) for a in rows]
        x, r = np.array(found).swapaxes(0, 1)
        return np.asarray(x @ rows.T + r @ (x + near(r)).T)

    def _inverse_times(self, rows: Array) -> Array:
        """`J**-1 a` for every row `a`; if there are many values within a few percent, since solving would take long."""
        return self._scaled_inverse.times(rows) if self.inverse is None else np.asarray(rows @ self.inverse)

    @cached_property
    def _scaled_inverse(self) -> _LowRank:
        """The inverse nearby, but right for ones (`J**-1 1 = P`), for likely values and in its trace.

        The columns of `U` are ones and likely values, and `Y = J**-1 U`. With `V = Y (U' Y)**-1`, the inverse is
        `V Y' + (1 - V U') J**-1 (1 - U V')`; in the second term the one nearby stands for it, scaled.
        """
        near, likely = self._near_inverse, np.flatnonzero(self.shares >= _LIKELY)
        U = np.vstack([np.ones(self.size), np.arange(self.size) == likely[:, None]])
        Y = np.vstack([self.shares, *(self.solve(u, _TOLERANCE) for u in U[1:])])
        images, inner = near.times(U), np.linalg.pinv((U @ Y.T + Y @ U.T) / 2)
        S = np.block([[inner @ images @ U.T @ inner, -inner], [-inner, 0 * inner]])
        rest = near.plus(np.vstack([Y, images]), S)
        scale = float((self._trace - np.trace(inner @ Y @ Y.T)) / rest.entries().sum())
        return rest._replace(diagonal=scale * rest.diagonal, S=scale * rest.S).plus(Y, inner)

    def _information_rows(self, rows: Array) -> Array:
        """`J v` for every row `v`."""
        if self.size > _WRITTEN_OUT and len(rows) > _FEW:
            return self._near.times(rows)
        return np.array([self.information_times(v) for v in rows])

    @cached_property
    def _trace(self) -> float:
        """The trace of `J**-1`; for many values an estimate, right on average, with an error of 0.1 to 0.3 %.

        It is the trace of the inverse nearby, plus the mean of `z' (difference) z` for rows `z` of random signs. So its
        error comes only from the entries of the difference that are off the diagonal.
        """
        if self.inverse is not None:
            return float(np.trace(self.inverse))
        near = self._near_inverse
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (-(-_SIGNS // self.size), self.size))
        more = [self._inverse_products(z[None])[0, 0] - z @ near.times(z) for z in signs]
        return float(near.entries().sum() + np.mean(more))

    @cached_property
    def inverse_diagonal(self) -> Array:
        """The diagonal of `J**-1`; for many values that of a matrix nearby, with the right sum."""
        if self.inverse is not None:
            return np.diag(self.inverse)
        return self._scaled_inverse.entries()

    def variance(self, rows: Rows = None) -> float:
        """N times the variance of the distribution, or of `rows @ shares`, learnt from N reports; summed."""
        squares = self._trace if rows is None else float(self.quadratic_forms(rows).sum())
        return squares - float(np.square(apply_rows(rows, self.shares)).sum())

    def identifies(self) -> bool:
        """Whether reports alone determine the distribution: always for many values, which have many orders."""
        try:
            return self.inverse is None or bool(np.isfinite(self.inverse).all())
        except NotIdentifiable:
            return False

    # -- answers -------------------------------------------------------------------------------------------

    def answer(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None."""
        if method == "mmse":
            return self._posterior(counts, prior, rows)
        N, mean, root = float(counts[0]), self._histogram(counts), np.sqrt(self._noise(counts))
        shares = self._distribution(mean, N)
        known = known_form(shares, population)
        if rows is None:
            # the covariance of each count with the sum of all
            ones = root * self._inverse_times(root[None])[0] - shares
            variance = root**2 * self.inverse_diagonal + known.variances(None)
            variance = variance - 2 * self.shares * ones + self.shares**2 * ones.sum()
        else:
            centred = self._centre(rows)
            variance = self.quadratic_forms(root * centred) + known.variances(centred)
        linear = Moments(apply_rows(rows, mean), N * np.maximum(variance, 0.0))
        if method != "mle":
            return linear
        found = estimators.constrained_moments(linear, Minimum(shares, 1, 0.0), N, rows)
        return replace(found, assumes=_NEAREST)

    def _centre(self, rows: Array) -> Array:
        """The rows less their means: the histogram adds up to the reports, so what all values have has no noise.

        The noise of the values is estimated one by one, and would not agree with that.
        """
        return np.asarray(rows - (rows @ self.shares)[:, None])

    def covariance(self, method: str, counts: Counts, prior: Array, rows: Rows, population: bool) -> Array:
        """The covariance of the statistics that `answer` gives."""
        N, W = float(counts[0]), np.eye(self.size) if rows is None else rows
        if method == "mmse":
            centred = (W - (W @ prior)[:, None]) * prior
            known = centred @ self._information_rows(centred).T
            return np.asarray(N * (centred / prior @ centred.T - known))
        W = self._centre(W)
        found = self._inverse_products(np.sqrt(self._noise(counts)) * W)
        known = known_form(self._distribution(self._histogram(counts), N), population).covariance(W)
        return np.asarray(N * ((found + found.T) / 2 + known))

    def _distribution(self, histogram: Array, people: float) -> Array:
        """The distribution nearest to an unbiased histogram, in the metric of its precision."""
        if people <= 0 or self.size == 1:
            return self.shares
        return nearest_shares(histogram / people, 1 / self.spread)

    def _posterior(self, counts: Counts, prior: Array, rows: Rows) -> Moments:
        """Sums over reports of posterior means, and of posterior variances as the prior expects them."""
        if not self.fits(prior):
            raise TooLarge(
                "a tally of many orders holds the posteriors under the plan's own prior only",
                Hint("prior", None),
                Hint("method", "unbiased", purpose="to lean on no prior"),
            )
        mean = prior * (counts[0] + self._lift_excess(counts))
        if rows is None:
            total, known = prior * (1 - prior), prior**2 * self.spread
        else:
            centred = rows - (rows @ prior)[:, None]
            total = centred**2 @ prior
            known = (centred * prior * self._information_rows(centred * prior)).sum(axis=1)
        return Moments(apply_rows(rows, mean), float(counts[0]) * np.maximum(total - known, 0.0))

    def _noise(self, counts: Counts) -> Array:
        """How large the squares `(r - 1)**2` of the reports are, relative to those that the prior expects.

        Their sum is linear in the overlaps where a window is anywhere around its arcs. Where few reports are expected
        to meet an arc, it is shrunk towards one.
        """
        k, N = self.line.keep_chance, float(counts[0])
        if N <= 0 or self.size == 1:  # the lift of the only value never varies
            return np.ones(self.size)
        more = self._lift_excess(counts) * (self.spread - k**2) / (k * self.spread)
        noise, meeting = np.maximum(1 + more / N, 0.0), N / (1 + self.spread / k**2)
        return estimators.shrink(noise * meeting, meeting) / meeting

    def _histogram(self, counts: Counts) -> Array:
        """The unbiased histogram: `J**-1` times the sum of the lifts.

        Its covariance is `N J**-1` where the prior is right. Where it is wrong, every value is scaled by its noise.
        Further statistics of the same counts use it again.
        """
        N, key = float(counts[0]), (counts.dtype.kind, counts.tobytes())
        if key not in self._histograms:
            error = _TOLERANCE * (max(N, 0.0) * self.size) ** 0.5
            found = N * self.shares + self.solve(self._lift_excess(counts), error)
            for old in list(self._histograms)[: 1 - _KEPT]:
                del self._histograms[old]
            self._histograms[key] = found
        return self._histograms[key].copy()

    @cached_property
    def _histograms(self) -> dict[tuple[str, bytes], Array]:
        """The last histograms, by their counts."""
        return {}

    def prior_check(self, counts: Ints, prior: Array) -> PriorCheck | None:
        """The check of the counts against the prior of the layout."""
        if not self.fits(prior) or self.size == 1:
            return None
        m, parts, N = self.line, estimators.split_prior(prior), float(counts[0])
        masses = parts.sum(axis=1)
        covariance = self._near.times(parts) @ parts.T - np.outer(masses, masses)
        free = np.eye(len(parts)) - masses[:, None]  # the lifts of a report add up to one under the prior
        widths = np.maximum(m.lengths, np.where(np.isin(np.arange(self.size), m.owners), 0, m.window))
        largest = m.keep_chance * np.maximum(m.places / widths - 1, 1.0)
        spread = (parts > 0) @ (self.spread / largest**2)
        return estimators.score_check(
            parts @ self._lift_excess(counts), free @ covariance @ free.T, masses, spread, N
        )

    def error(self, query: Query, prior: Prior) -> float | None:
        """The expected error per person at the prior of the layout."""
        learns = query.unbiased and query.asks_all_counts
        quick = learns and self.inverse is not None and self.fits(prior.probabilities)
        return self.variance() if quick else None

    def parameters(self) -> dict[str, Any]:
        """The line and the number of orders, as JSON."""
        return {**self.line.parameters(), "count": self.count}

    @classmethod
    def read(cls, parameters: Mapping[str, Any]) -> Orders:
        """Read a mechanism from the parameters in its JSON document."""
        lengths, owners = parameters["lengths"], parameters["owners"]
        if not set(owners) <= set(range(len(lengths))):
            raise InvalidInput("owners", owners, f"give codes from 0 to {len(lengths) - 1}")
        start = sum(int(lengths[x]) for x in owners)
        circle = np.setdiff1d(np.arange(len(lengths)), owners)
        return cls(ArcLine.read({**parameters, "circle": circle, "start": start}), parameters["count"])


def prime_above(n: int) -> int:
    """The least prime above `n`.

    >>> [prime_above(n) for n in (1, 2, 7, 400)]
    [2, 3, 11, 401]
    """
    p = max(2, n + 1)
    while any(p % q == 0 for q in range(2, int(p**0.5) + 1)):
        p += 1
    return p


def order_names(prime: int, count: int) -> tuple[Ints, Ints]:
    """Seeds and multipliers of `count` orders: a new seed whenever the multipliers are used up.

    If the last seed has fewer orders than there are multipliers, it takes them evenly.

    >>> [part.tolist() for part in order_names(7, 4)]
    [[0, 0, 0, 1], [1, 2, 3, 2]]
    """
    half = max(1, prime // 2)
    seeds, at = np.divmod(np.arange(count), half)
    left = np.minimum(half, count - seeds * half)
    return seeds, 1 + (2 * at + 1) * half // (2 * left)


def _overlaps(
    ends: Ints, rows: Ints, begins: Ints, weights: npt.NDArray[Any], window: int
) -> npt.NDArray[Any]:
    """For each arc of several circles the sum of its overlaps with windows, times the weights of these.

    `ends` (circles, arcs + 1) are the ends of the arcs; a window begins on circle `rows` at `begins`. The circles are
    laid on one line. A window and its copy a turn before are two intervals: up to a place, an interval holds how far
    the place is beyond its begin, less how far it is beyond its end.

    >>> ends = np.array([[0, 4, 10], [0, 6, 10]])
    >>> _overlaps(ends, np.array([0, 1]), np.array([8, 3]), np.array([1, 1]), 4).tolist()
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
