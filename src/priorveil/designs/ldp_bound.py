"""Learning a distribution under LDP: a proven bound on the variance of every channel.

Let `psi` be the influence of a report in an unbiased estimate: `E[psi_x r_z]` is one less `P_x` for `z = x` and `-P_x`
for other values. For any matrix `A` Cauchy and Schwarz give, with `z = r - 1`,

    variance = E|psi|^2  >=  E[psi . A z]^2 / E|A z|^2  =  (tr A - P' A 1)^2 / E|A z|^2,

and since `E[z] = 0`, `E|A z|^2 <= max_r [|A z|^2 - nu . z]` for any `nu`. The function is convex, so its maximum over
the columns that LDP allows is at a vertex `r = w v`, where `v_x` is `e^eps` on a set `S` of values and one elsewhere,
and `w = 1 / (1 + c P(S))`, `c = e^eps - 1`.

With `A = 1` only the size and the mass of `S` matter (`identity_bound`). For equal values that is best: the bound is
the variance of subset selection. In general `A = diag(m) + a 1'`. Given the size `k` of `S`, the sum `h` of `z` is
linear in `w`, and `|A z|^2` is a sum over the values. Because `P . z = 0` and `sum(z) = h`, for any numbers `kappa` and
`eta`

    |A z|^2 - nu . z  <=  eta h + sum_x max_v [(m_x (v w - 1) + a_x h)^2 - (nu_x + kappa P_x + eta) (v w - 1)],

`v` one or `e^eps`. If `kappa` and `eta` are fixed, the right side is convex in `w` for every `k`, and convex in `k` for
every `w`. So over a cell of both it is largest at a corner, and finitely many cells bound all columns: `largest` needs
no trust in the search for `m`, `a` and `nu`, which is a quasi-Newton method on a smooth version of the right side.

All numbers are floats. The error of a sum of products is at most `_rounding` times the same sum with all terms
positive, and that much is added. `e` is rounded up, because a bound for a larger level holds for this one too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit, logsumexp, softmax

from priorveil.certify import exp_above
from priorveil.designs.engine import Stop, never
from priorveil.mechanisms.bit_estimators import BitLaw, influence_squares, subset_information, subset_law
from priorveil.priors import Array

_MOST_LEVEL = 12.0  # levels up to which it is searched for: beyond, reports are nearly the truth
_MOST_VALUES = 1_000  # values up to which a bound is searched for
_ROUNDOFF = 2.0**-53
_STEPS = 400  # of the quasi-Newton method, at each temperature; fewer if there are many values
_TEMPERATURES = (0.1, 0.01, 0.001)
_UNITS = (
    0.1,
    0.1,
    0.05,
    0.5,
    0.02,
)  # of `m`, `d a`, `nu`, `kappa`, `eta`: the search is faster if all move alike
_POINTS = 8  # for w, between its ends
_SIZES = (0.25, 0.5, 0.7, 0.85, 0.95, 1.0, 1.05, 1.15, 1.3, 1.6, 2.2)  # of sets, relative to the best size
_BLOCKS = 128  # of sizes that the proof takes together
_ROUNDS = 12  # of splitting cells
_MOST_SPLIT = 200_000  # numbers in the cells that a round splits, one for each value
_CLOSE = 1.001  # cells this near to the largest value are not split
_BISECTIONS = 24


def ldp_variance_bound(P: Array, epsilon: float, stop: Stop = never) -> float:
    """A bound on N times the variance, summed over the values, of learning a distribution under LDP.

    The search ends early when `stop` says so; what it has found is a bound all the same.

    >>> round(ldp_variance_bound(np.full(20, 0.05), 1.0), 4)
    66.6344
    """
    if len(P) < 2:
        return 0.0
    simple, searched = identity_bound(P, epsilon), 4 <= len(P) <= _MOST_VALUES and epsilon <= _MOST_LEVEL
    if not searched or np.ptp(P) == 0 or stop():
        return simple
    columns = LdpColumns(np.sort(P)[::-1], factor_above(epsilon))
    return max(simple, columns.bound(columns.search(stop), stop))


def identity_bound(P: Array, epsilon: float) -> float:
    """The bound that `A = 1` proves: `(d - 1)^2 / max |r - 1|^2`. For equal values it is the least variance.

    For sets of `k` values `|r - 1|^2` is convex in `w`, so it is largest for the `k` rarest or the `k` commonest. With
    `s` their mass it is `(k (1 - s)^2 + (d - k) s^2) / (1/c + s)^2`, where nothing cancels.

    >>> round(identity_bound(np.full(83, 1 / 83), 1.0), 3)
    298.372
    """
    d, c, k = len(P), factor_above(epsilon) - 1, np.arange(1, len(P))
    rising = np.sort(P)
    rarest, commonest = np.cumsum(rising)[:-1], np.cumsum(rising[::-1])[:-1]
    ends = [
        (rarest, commonest[::-1]),
        (commonest, rarest[::-1]),
    ]  # the mass of a set, and of the other values
    largest = max(float(((k * rest**2 + (d - k) * s**2) / (1 / c + s) ** 2).max()) for s, rest in ends)
    return (d - 1) ** 2 / largest * (1 - 8 * _rounding(d))


def factor_above(epsilon: float) -> float:
    """A float that is at least `e^epsilon`, or infinity."""
    return math.inf if epsilon > 700 else math.nextafter(float(exp_above(epsilon)), math.inf)


def _rounding(d: int) -> float:
    """The relative error of a sum of `d` positive terms, each of which takes fewer than 200 steps.

    Probabilities count as 130 steps: they are the exact ones up to the rounding that `Prior` allows (`NORMALISED`).
    """
    return (d + 400) * _ROUNDOFF


class Weights(NamedTuple):
    """`A = diag(m) + a 1'` and `nu`."""

    m: Array
    a: Array
    nu: Array


class _Terms(NamedTuple):
    """At sizes and `w` (n, 1): `z` of a value inside and outside the set, `A z` of both, and the sum `h` of `z`."""

    z: tuple[Array, Array]
    inside: Array
    outside: Array
    h: Array

    def squares(self, pull: Array) -> tuple[Array, Array]:
        """What a value adds to the right side inside and outside the set; `pull` is `nu + kappa P + eta`."""
        return self.inside**2 - pull * self.z[0], self.outside**2 - pull * self.z[1]


@dataclass(frozen=True, eq=False)
class LdpColumns:
    """The columns that LDP allows, for probabilities `P` in falling order and `e`, at least `e^eps`."""

    P: Array
    e: float

    def search(self, stop: Stop = never) -> Weights:
        """Good weights: from the information of a good subset selection, then improved."""
        d, k = len(self.P), max(1, round(len(self.P) / (1 + self.e)))
        at, start = self._places(), self._start(subset_law(self.e, d, k))
        units = np.repeat(_UNITS, [d, d, d, len(at[0]), len(at[0])])
        units[d : 2 * d] /= d
        x = np.concatenate([*start, *self._multipliers(*at, start)]) / units
        steps = max(50, _STEPS * 100 // max(d, 100))

        def check(intermediate_result: OptimizeResult) -> None:
            if stop():
                raise StopIteration

        for heat in _TEMPERATURES:
            x = minimize(
                self._smooth,
                x,
                (units, *at, heat),
                "L-BFGS-B",
                jac=True,
                callback=check,
                options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 30, "ftol": 1e-10, "gtol": 1e-10},
            ).x
        return Weights(*np.split((x * units)[: 3 * d], 3))

    def _places(self) -> tuple[Array, Array]:
        """Sizes near the best size of sets, and some others, each with some `w` between its ends."""
        k = len(self.P) / (1 + self.e)
        near = np.rint(np.concatenate([k * np.array(_SIZES), np.rint(k) + np.arange(-2, 3)]))
        sizes = np.unique(np.clip(near, 1, len(self.P) - 1))
        return np.tile(sizes, _POINTS)[:, None], self._edges(sizes, sizes, _POINTS).reshape(-1, 1)

    def _start(self, law: BitLaw) -> Weights:
        """The best `A` against one channel, row by row, and the `nu` that makes its columns most alike.

        Scaled so that the mean of `|A z|^2` is one.
        """
        J = subset_information(law, self.P) - 1
        forms = np.full((law.values, 2, 2), J.sum())
        forms[:, 0, 0], forms[:, 0, 1], forms[:, 1, 0] = np.diag(J), J.sum(axis=0), J.sum(axis=0)
        wanted = np.stack([1 - self.P, 1 - law.values * self.P], axis=1)
        rows = (np.linalg.pinv(forms, rcond=1e-10, hermitian=True) @ wanted[:, :, None])[:, :, 0]
        m, a = rows.T / math.sqrt(float((rows * wanted).sum()))
        A, shift = np.diag(m) + a[:, None], m + law.values * a
        # E[|A z|^2 z], from E[(a . r)^2 | x] of the rows a of A
        squares = influence_squares(law, self.P, A) - 2 * shift[:, None] * (A @ (J + 1)) + shift[:, None] ** 2
        skew = squares.sum(axis=0)
        return Weights(m, a, np.linalg.lstsq(J, skew - float(self.P @ skew), rcond=1e-10)[0])

    def _smooth(
        self, scaled: Array, units: Array, sizes: Array, w: Array, heat: float
    ) -> tuple[float, Array]:
        """`log` of the largest right side over the squared numerator, with soft maxima, and its slope."""
        d, n = len(self.P), len(w)
        m, a, nu, kappa, eta = np.split(scaled * units, np.cumsum([d, d, d, n]))
        terms = self._terms(sizes, w, Weights(m, a, nu))
        (z1, z0), h = terms.z, terms.h[:, 0]
        f1, f0 = terms.squares(nu + kappa[:, None] * self.P + eta[:, None])
        cold, sharp = heat / d, math.log(n) / heat
        share = expit((f1 - f0) / cold)
        total = sharp * (cold * np.logaddexp(f1 / cold, f0 / cold).sum(axis=1) + eta * h)
        soft, largest = softmax(total), float(logsumexp(total)) / sharp
        top = float(m @ (1 - self.P) + a @ (1 - d * self.P))
        if largest <= 0 or top <= 0:
            return math.inf, np.zeros_like(scaled)
        z = share * z1 + (1 - share) * z0
        by_m = 2 * soft @ (share * terms.inside * z1 + (1 - share) * terms.outside * z0)
        by_a = 2 * (soft * h) @ (share * terms.inside + (1 - share) * terms.outside)
        slopes = (
            np.concatenate([by_m, by_a, -(soft @ z), -soft * (z @ self.P), soft * (h - z.sum(axis=1))])
            / largest
        )
        slopes[: 2 * d] -= 2 / top * np.concatenate([1 - self.P, 1 - d * self.P])
        return math.log(largest) - 2 * math.log(top), slopes * units

    def _terms(self, sizes: Array, w: Array, weights: Weights) -> _Terms:
        d, z1, z0 = len(self.P), self.e * w - 1, w - 1
        h = w * (d + (self.e - 1) * sizes) - d
        return _Terms((z1, z0), weights.m * z1 + weights.a * h, weights.m * z0 + weights.a * h, h)

    def _multipliers(self, sizes: Array, w: Array, weights: Weights) -> tuple[Array, Array]:
        """`kappa` and `eta` for which the sets that are best have nearly this size and this mass."""
        terms = self._terms(sizes, w, weights)
        gain = weights.m * (terms.inside + terms.outside) - weights.nu
        mass, count = (1 / w - 1) / (self.e - 1), np.rint(sizes).astype(np.int64)
        reach = 2 * np.ptp(gain) / float(np.ptp(self.P) or 1.0) * len(self.P)
        low, high = np.full_like(w, -reach), np.full_like(w, reach)
        for _ in range(_BISECTIONS):
            kappa = (low + high) / 2
            order = np.argsort(kappa * self.P - gain, axis=1)
            heavy = np.take_along_axis(np.cumsum(self.P[order], axis=1), count - 1, axis=1) > mass
            low, high = np.where(heavy, kappa, low), np.where(heavy, high, kappa)
        kappa = (low + high) / 2
        ranked = -np.sort(kappa * self.P - gain, axis=1)
        last = np.take_along_axis(ranked, np.concatenate([count - 1, count], axis=1), axis=1)
        return kappa[:, 0], last.mean(axis=1)

    # -- the proof -------------------------------------------------------------------------------------------

    def bound(self, weights: Weights, stop: Stop = never) -> float:
        """The bound that these weights prove."""
        d, room = len(self.P), _rounding(len(self.P))
        top = float(weights.m @ (1 - self.P) + weights.a @ (1 - d * self.P))
        top -= room * float((2 + d * self.P) @ (np.abs(weights.m) + np.abs(weights.a)))
        largest = self.largest(weights, stop)
        return top**2 / largest * (1 - room) if top > 0 and largest > 0 else 0.0

    def largest(self, weights: Weights, stop: Stop = never) -> float:
        """At least the largest `|A z|^2 - nu . z` of all columns: cells bound it, and the largest are split.

        The cells hold all columns at any time, so it may end after any round. They are rows `[least size, most, least
        w, most]`.
        """
        d = len(self.P)
        least = np.arange(1.0, d, -(-(d - 1) // _BLOCKS))
        most = np.append(least[1:] - 1, d - 1)
        edges = self._edges(least, most, _POINTS + 1)
        cells = np.concatenate([np.stack([least, most, *ends], axis=1) for ends in pairwise(edges)])
        above, points = self._above_cells(cells, weights), np.hstack(self._places()).repeat(2, axis=1)
        goal = _CLOSE * self._above_cells(points, weights).max()
        for _ in range(_ROUNDS):
            largest = np.argsort(-above)[: max(1, _MOST_SPLIT // d)]
            split = largest[above[largest] > goal]
            if not len(split) or stop():
                break
            halves = _halves(cells[split])
            cells = np.concatenate([np.delete(cells, split, axis=0), halves])
            above = np.concatenate([np.delete(above, split), self._above_cells(halves, weights)])
        return float(above.max())

    def _edges(self, least: Array, most: Array, count: int) -> Array:
        """Numbers `w` from the smallest to the largest one of sets with `least` to `most` values (count, n)."""
        rarest, commonest = np.cumsum(self.P[::-1]), np.cumsum(self.P)
        c, room = self.e - 1, _rounding(len(self.P))
        low = (1 - room) / (1 + c * commonest[most.astype(np.int64) - 1])
        return np.linspace(low, (1 + room) / (1 + c * rarest[least.astype(np.int64) - 1]), count)

    def _above_cells(self, cells: Array, weights: Weights) -> Array:
        """The right side at the largest corner of every cell, with the multipliers of its middle."""
        sizes, w = cells[:, :2], cells[:, 2:]
        multipliers = self._multipliers(sizes.mean(axis=1)[:, None], w.mean(axis=1)[:, None], weights)
        corners = [(sizes[:, [i]], w[:, [j]]) for i in (0, 1) for j in (0, 1)]
        above = np.max([self._above(*corner, weights, *multipliers) for corner in corners], axis=0)
        return np.where(np.isfinite(above), above, math.inf)

    def _above(self, sizes: Array, w: Array, weights: Weights, kappa: Array, eta: Array) -> Array:
        """The right side, with room for rounding."""
        d, (m, a, nu), terms = len(self.P), weights, self._terms(sizes, w, weights)
        right = (
            np.maximum(*terms.squares(nu + kappa[:, None] * self.P + eta[:, None])).sum(axis=1)
            + eta * terms.h[:, 0]
        )
        # The same with all terms positive, of which the errors are a small part; `|z|` is at most `most`.
        most, most_h = self.e * w + 1, w * (d + (self.e - 1) * sizes) + d
        size = most * np.abs(m) + most_h * np.abs(a)
        squares = size * (2 * np.maximum(np.abs(terms.inside), np.abs(terms.outside)) + _rounding(d) * size)
        pulls = most * (np.abs(nu) + np.abs(kappa)[:, None] * self.P + np.abs(eta)[:, None])
        error = (squares + pulls).sum(axis=1) + np.abs(eta) * most_h[:, 0]
        return np.asarray(right + _rounding(d) * error)


def _halves(cells: Array) -> Array:
    """Every cell as two: in the sizes where it holds more than one, else in `w`."""
    first, second = cells.copy(), cells.copy()
    wide, middle = cells[:, 1] > cells[:, 0], np.floor(cells[:, :2].mean(axis=1))
    first[wide, 1], second[wide, 0] = middle[wide], middle[wide] + 1
    first[~wide, 3] = second[~wide, 2] = cells[~wide, 2:].mean(axis=1)
    return np.concatenate([first, second])
