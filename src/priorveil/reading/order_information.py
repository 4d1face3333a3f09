"""The information of a report of arcs in many orders, `J = E[r r']` with `r` its lifts.

`J v` takes `O(d)` steps for each order. Conjugate gradients solve `J x = b` in few steps, because `J` is close to a
matrix that is simple to invert (`OrdersInformation.approximation`), which also gives the variances of many statistics
at once. For few values `J` is written out and inverted. It is also written out to score many reports one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import NotIdentifiable
from priorveil.mechanisms import Orders
from priorveil.mechanisms.arc.cells import squared_overlap
from priorveil.mechanisms.interface import MOST_MATRIX_ENTRIES
from priorveil.reading import counting_kernels
from priorveil.reading.moments import StatisticRows, apply_rows, not_identifiable
from priorveil.reading.shares_search import conjugate_gradients

_IDENTIFIED = 1e-10  # eigenvalues of the information below this are not identified
_WRITTEN_OUT = 128  # values up to which the information is inverted
_ROWS_AS_QUICK = (
    800  # values for which writing `J` out takes as long as solving for one row, about ten products
)
_BLOCK_ENTRIES = 1 << 16  # places of arcs that are read at a time: they stay in the processor's cache
_LIKELY = 0.15  # a value with a larger share is solved for by itself
_SIGNS = 2_048  # random signs that measure a trace
_FEW = 8  # statistics, up to which each is worth some products with `J`, which take 0.03 to 10 s
# The error of conjugate gradients, relative to the noise of the reports; a last step divides it by five to ten.
SOLVER_ERROR = 1e-2
_PRECISE = 1e-6  # the same for single reports, relative to the right-hand side
_ROUGH = 0.2  # the same for a variance, whose error is the square of it, and smaller by a last step too


class LowRank(NamedTuple):
    """The symmetric matrix `diag(diagonal) + U' S U`."""

    diagonal: Array
    U: Array
    S: Array

    def times(self, v: Array) -> Array:
        """The product with a vector, or with every row of a matrix."""
        return np.asarray(self.diagonal * v + v @ self.U.T @ self.S @ self.U)

    def inverse(self) -> LowRank:
        """The inverse, by Woodbury's formula."""
        scaled = self.U / self.diagonal
        inner = np.linalg.solve(np.eye(len(self.S)) + self.S @ scaled @ self.U.T, self.S)
        return LowRank(1 / self.diagonal, scaled, np.asarray(-inner, dtype=np.float64))

    def plus(self, U: Array, S: Array) -> LowRank:
        """The sum with another `U' S U`."""
        size, both = len(self.S), np.pad(self.S, (0, len(S)))
        both[size:, size:] = S
        return LowRank(self.diagonal, np.vstack([self.U, U]), both)

    def scale(self, factor: float) -> LowRank:
        """The product with a number."""
        return LowRank(factor * self.diagonal, self.U, factor * self.S)

    def entries(self) -> Array:
        """The entries on its diagonal."""
        return np.asarray(self.diagonal + (self.U * (self.S @ self.U)).sum(axis=0))


@dataclass(frozen=True, eq=False)
class OrdersInformation:
    """The information of a report at the prior of the layout."""

    mechanism: Orders

    @property
    def is_small(self) -> bool:
        """Whether there are so few values that the information is inverted."""
        return self.mechanism.size <= _WRITTEN_OUT

    @cached_property
    def lift_variances(self) -> Array:
        """The variance of the lift of every value, `J_xx - 1`: the same in every order."""
        m, light, squares = self.mechanism.line, self.mechanism.circle_values, 1 / self.mechanism.shares
        window, circle = m.window / m.places, m.circumference / m.places
        squares[light] = squared_overlap(self.mechanism.shares[light], window, circle) / window**2
        return np.asarray(m.keep_chance**2 * (squares - 1))

    def times(self, v: Array) -> Array:
        """`J v` for the information `J = E[r r']` of a report at the prior of the layout."""
        m, k, walks, light = (
            self.mechanism.line,
            self.mechanism.line.keep_chance,
            self.mechanism.walks,
            self.mechanism.circle_values,
        )
        window, lengths = m.window / m.places, walks.lengths / m.places
        mean = float(v[light].sum()) / (m.circumference / m.places)
        density, smooth = v[walks.shuffled] / lengths - mean, np.zeros(lengths.shape)
        work = 16 * self.mechanism.count * light.size  # products are computed many at a time
        counting_kernels.add_smoothed(
            walks.steps, walks.seeds, walks.prime, lengths, density, window, smooth, work=work
        )
        product = v / self.mechanism.shares
        product[light] = mean
        np.add.at(product, walks.shuffled, smooth / (self.mechanism.count * window**2 * lengths))
        return np.asarray((1 - k**2) * v.sum() + k**2 * product)

    @cached_property
    def approximation(self) -> LowRank:
        """A matrix close to `J` that is simple to invert.

        Off the diagonal `1 - J_xy` is the same number `h` for all pairs with an owner, or with a value that half of the
        people have. For other pairs random orders have about `a_x + a_y - c P_x P_y`: if an arc is anywhere outside the
        other, this is its expectation up to third powers of their lengths. `J P = 1` and the diagonal give `h` and `a`.
        """
        m, P, size = self.mechanism.line, self.mechanism.shares, self.mechanism.size
        # By `J P = 1`, the sum of `(1 - J_xy) P_y` over the other values `y`.
        row_sums = self.lift_variances * P
        light = (P < 0.45) & ~np.isin(np.arange(size), m.owners)
        light_mass = float(P[light].sum())
        h = float((row_sums / (1 - P))[~light].max(initial=0.0))
        window, circle = m.window / m.places, m.circumference / m.places
        c = m.keep_chance**2 * (1 / (2 * window**2) - 2 / (window * circle) + 2 / circle**2) / circle
        short = light * np.minimum(P, min(window, circle / 4))
        # What `a` has to give: `a_x (light_mass - P_x) + sum of a_y P_y` over the other light values `y`.
        light_sums = row_sums - (1 - light_mass) * h + c * short * (short @ P - short * P)
        least = 0.02 * light_mass or 1.0  # avoids 0/0 if there are no light values
        divisor = np.maximum(light_mass - 2 * P, least)
        weights = light * P / divisor
        a = light * (light_sums - weights @ light_sums / (1 + weights.sum())) / divisor
        S = np.array([[1 - h, 0, 0, 0], [0, h, -1, 0], [0, -1, 0, 0], [0, 0, 0, c]])
        pairs = LowRank(np.zeros(size), np.stack([np.ones(size), light, a, short]), S)
        return pairs._replace(diagonal=1 + self.lift_variances - pairs.entries())

    @cached_property
    def _approximate_inverse(self) -> LowRank:
        return self.approximation.inverse()

    @cached_property
    def matrix(self) -> Array:
        """`J`, written out: half as many steps as there are pairs of values, for each order.

        Reports of two values on the circle agree as often as two windows overlap that begin in their arcs. This is the
        overlap for the middles of the arcs, but for arcs that are a window apart.
        """
        m, k, light = self.mechanism.line, self.mechanism.line.keep_chance, self.mechanism.circle_values
        window, circle, count = m.window / m.places, m.circumference / m.places, self.mechanism.count
        overlaps, kinks = np.zeros((light.size, light.size)), np.zeros((light.size, light.size))
        step, work = max(1, _BLOCK_ENTRIES // light.size), count * light.size**2
        for first in range(0, count, step):
            circles = self.mechanism.circles(np.arange(first, min(first + step, count)))
            lengths, places = m.lengths[circles] / m.places, np.searchsorted(light, circles)
            centres = np.empty_like(lengths)
            np.put_along_axis(centres, places, np.cumsum(lengths, axis=1) - lengths / 2, axis=1)
            counting_kernels.add_window_overlaps(centres, window, circle, overlaps, work=work)
            counting_kernels.add_kinks(places, lengths, window, kinks, work=work)
        below = np.tril(overlaps, -1)
        J = np.full((self.mechanism.size, self.mechanism.size), 1 - k**2)
        J[np.ix_(light, light)] += k**2 * (below + below.T + kinks) / (count * window**2)
        np.fill_diagonal(J, 1 + self.lift_variances)
        return J

    @cached_property
    def _written_inverse(self) -> Array:
        """`J**-1`, written out."""
        root = np.sqrt(self.mechanism.shares)
        return np.asarray(root[:, None] * np.linalg.inv(root[:, None] * self.matrix * root) * root)

    @cached_property
    def inverse(self) -> Array | None:
        """The inverse of the information, if there are few values; refused where reports do not identify them."""
        if not self.is_small:
            return None
        root = np.sqrt(self.mechanism.shares)
        scaled = root[:, None] * self.matrix * root
        if np.linalg.eigvalsh(scaled)[0] <= _IDENTIFIED:
            raise not_identifiable()
        return np.asarray(root[:, None] * np.linalg.inv(scaled) * root)

    @property
    def is_invertible(self) -> bool:
        """Whether reports determine all values; for many values, which have many orders, this is assumed."""
        try:
            return self.inverse is None or bool(np.isfinite(self.inverse).all())
        except NotIdentifiable:
            return False

    def solve(self, b: Array, error: float) -> Array:
        """`J**-1 b`, if there are many values up to an error below this size, as `J` measures it."""
        if self.inverse is not None:
            return np.asarray(self.inverse @ b)
        near = self._approximate_inverse.times
        solution, residual = conjugate_gradients(self.times, b, near, error**2)
        return solution + near(residual)  # a step that needs no further product with `J`

    def solve_rows(self, rows: Array) -> Array:
        """`J**-1 b` for every row `b`, up to a relative error of a millionth.

        Where it takes less time, or was done before, `J` is written out, and they are exact.
        """
        if self.inverse is not None:
            return np.asarray(rows @ self.inverse)
        size = self.mechanism.size
        is_quick = "matrix" in vars(self) or _ROWS_AS_QUICK * len(rows) >= size
        if is_quick and size**2 <= MOST_MATRIX_ENTRIES:
            return np.asarray(rows @ self._written_inverse)
        return np.array([self._solved_row(b.tobytes()) for b in rows]).reshape(rows.shape)  # also of no rows

    @cached_property
    def _solved_row(self) -> Callable[[bytes], Array]:
        """`J**-1 b` up to a relative error; the last ones are kept, for callers that score reports in parts."""

        @lru_cache(maxsize=_FEW)
        def solve(content: bytes) -> Array:
            b = np.frombuffer(content)
            size = max(float(b @ self._approximate_inverse.times(b)), 0.0) ** 0.5
            return self.solve(b, _PRECISE * size)

        return solve

    def quadratic_forms(self, rows: Array) -> Array:
        """`a' J**-1 a` for every row `a`."""
        if len(rows) <= _FEW:
            return np.diag(self.inverse_products(rows))
        return np.asarray((rows * self.inverse_times(rows)).sum(axis=1))

    def inverse_products(self, rows: Array) -> Array:
        """`a' J**-1 b` for all rows `a` and `b`, close enough for variances.

        With `a = J x + r` and `b = J y + s` the product is `x' b + r' y + r' J**-1 s`, and `r` and `s` are small.
        """
        if self.inverse is not None or len(rows) > _FEW:
            return np.asarray(rows @ self.inverse_times(rows).T)
        x, r = self._conjugate_gradients(rows)
        return np.asarray(x @ rows.T + r @ (x + self._approximate_inverse.times(r)).T)

    def solve_roughly(self, rows: Array) -> tuple[Array, Array]:
        """`J**-1 a` for every row `a`, close enough for variances, and `a' J**-1 a`, which is closer."""
        if self.inverse is not None or len(rows) > _FEW:
            solutions = self.inverse_times(rows)
            return solutions, np.asarray((rows * solutions).sum(axis=1))
        x, r = self._conjugate_gradients(rows)
        solutions = x + self._approximate_inverse.times(r)
        return solutions, np.asarray((x * rows + r * solutions).sum(axis=1))

    def _conjugate_gradients(self, rows: Array) -> Array:
        """For every row `a` a rough solution `x`, and the rest `r` of `a = J x + r`."""
        near = self._approximate_inverse.times
        pairs = [conjugate_gradients(self.times, a, near, _ROUGH**2 * a @ near(a)) for a in rows]
        return np.array(pairs).reshape(len(rows), 2, -1).swapaxes(0, 1)

    def inverse_times(self, rows: Array) -> Array:
        """`J**-1 a` for every row `a`; if there are many values within a few percent, since solving would take long."""
        return (
            self._corrected_inverse.times(rows) if self.inverse is None else np.asarray(rows @ self.inverse)
        )

    @cached_property
    def _corrected_inverse(self) -> LowRank:
        """The approximate inverse, corrected: exact for ones and for likely values, and with the right trace.

        `U` has ones (`J**-1 1 = P`) and the indicators of likely values, and `Y = J**-1 U`. With `V = Y (U' Y)**-1` the
        inverse is `V Y' + (1 - V U') J**-1 (1 - U V')`. In the second term the approximate inverse stands for `J**-1`,
        scaled to the trace that is left.
        """
        approximate, shares = self._approximate_inverse, self.mechanism.shares
        likely = np.flatnonzero(shares >= _LIKELY)
        U = np.vstack([np.ones(len(shares)), np.arange(len(shares)) == likely[:, None]])
        Y = np.vstack([shares, *(self.solve(u, SOLVER_ERROR) for u in U[1:])])
        inner = np.linalg.pinv((U @ Y.T + Y @ U.T) / 2)
        images = approximate.times(U)
        S = np.block([[inner @ images @ U.T @ inner, -inner], [-inner, 0 * inner]])
        remainder = approximate.plus(np.vstack([Y, images]), S)
        trace_left = self._trace - float(np.trace(inner @ Y @ Y.T))
        return remainder.scale(trace_left / float(remainder.entries().sum())).plus(Y, inner)

    def times_rows(self, rows: Array) -> Array:
        """`J v` for every row `v`."""
        if not self.is_small and len(rows) > _FEW:
            return self.approximation.times(rows)
        return np.array([self.times(v) for v in rows])

    @cached_property
    def _trace(self) -> float:
        """The trace of `J**-1`; for many values an estimate, right on average, with an error of 0.1 to 0.3 %.

        It is the trace of the approximate inverse, plus the mean of `z' (difference) z` for rows `z` of random signs.
        So its error comes only from the entries of the difference that are off the diagonal.
        """
        if self.inverse is not None:
            return float(np.trace(self.inverse))
        near = self._approximate_inverse
        signs = np.random.default_rng(0).choice(
            [-1.0, 1.0], (-(-_SIGNS // self.mechanism.size), self.mechanism.size)
        )
        more = [self.inverse_products(z[None])[0, 0] - z @ near.times(z) for z in signs]
        return float(near.entries().sum() + np.mean(more))

    @cached_property
    def inverse_diagonal(self) -> Array:
        """The diagonal of `J**-1`; for many values that of the corrected inverse, with the right sum."""
        if self.inverse is not None:
            return np.diag(self.inverse)
        return self._corrected_inverse.entries()

    def variance(self, rows: StatisticRows = None) -> float:
        """N times the variance of the distribution, or of `rows @ shares`, learnt from N reports; summed."""
        squares = self._trace if rows is None else float(self.quadratic_forms(rows).sum())
        return squares - float(np.square(apply_rows(rows, self.mechanism.shares)).sum())


@lru_cache(maxsize=8)
def information_of(mechanism: Orders) -> OrdersInformation:
    """The information of the mechanism: one object for a design and for its plan, which keeps what it computes."""
    return OrdersInformation(mechanism)
