"""Learning a distribution under LDP: a proven bound on the variance of every channel.

Let `psi` be the influence of a report in an unbiased estimate: `E[psi_x r_z]` is one less `P_x` for `z = x` and `-P_x`
for other values. For any matrix `A` Cauchy and Schwarz give, with `z = r - 1`,

    variance = E|psi|^2  >=  E[psi . A z]^2 / E|A z|^2  =  (tr A - P' A 1)^2 / E|A z|^2,

and since `E[z] = 0`, `E|A z|^2 <= max_r [|A z|^2 - nu . z]` for any `nu`. The function is convex, so its maximum over
the columns that LDP allows is at a vertex `r = w v`, where `v_x` is `e^eps` on a set `S` of values and one elsewhere,
and `w = 1 / (1 + c P(S))`, `c = e^eps - 1`.

With `A = 1` only the size and the mass of `S` matter (`identity_bound`). For equal values that is best: the bound is
the variance of subset selection. In general `A = diag(m) + a 1' + sum_j b_j e_j'`, where `j` runs over the heaviest
values. Given the size `k` of `S` and the heaviest values in it, `h = sum(z)` and the `z_j` are linear in `w`, and
`|A z|^2` is a sum over the values. Because `P . z = 0` and `sum(z) = h`, for any numbers `kappa` and `eta`

    |A z|^2 - nu . z  <=  eta h + sum_x max_v [(m_x (v w - 1) + a_x h + ...)^2 - (nu_x + kappa P_x + eta) (v w - 1)],

`v` one or `e^eps`. If `kappa` and `eta` are fixed, the right side is convex in `w` for every `k`, and convex in `k` for
every `w`. So over a cell of both it is largest at a corner, and finitely many cells bound all columns: `_largest` needs
no trust in the search for `A` and `nu`, which is a quasi-Newton method on a smooth version of the right side.

All numbers are floats. The error of a sum of products is at most `_rounding` times the same sum with all terms
positive, and that much is added. `e` is rounded up, because a bound for a larger level holds for this one too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.optimize

from priorveil.certify import exp_above
from priorveil.designs.engine import Stop, never
from priorveil.mechanisms.bit_estimators import SubsetLaw, influence_squares, subset_information
from priorveil.priors import Array

_MOST_LEVEL = 12.0  # levels up to which it is searched for: beyond, reports are nearly the truth
_MOST_VALUES = 1_000  # values up to which a bound is searched for
_ROUNDOFF = 2.0**-53
_MOST_WITH_HEAVY = (300, 100, 24)  # values up to which one, two, three are taken as heavy
_STEPS = 150  # of the quasi-Newton method, at each temperature; fewer if there are many values
_TEMPERATURES = (0.1, 0.01, 0.001)
# Units of `A`, `nu`, `kappa` and `eta` in the search, which is faster if all move alike; those of `a` are `d` times
# smaller.
_UNITS = (0.1, 0.05, 0.5, 0.02)
_POINTS = 8  # for w, between its ends
_SIZES = (0.25, 0.5, 0.7, 0.85, 0.95, 1.0, 1.05, 1.15, 1.3, 1.6, 2.2)  # of sets, relative to the best size
_BLOCKS = 128  # of sizes that the proof takes together
_ROUNDS = 12  # of splitting cells
_LEAST_PROGRESS = 1e-4  # a round that lowers the largest value by less is the last
_MOST_SPLIT = 200_000  # numbers in the cells that a round splits, one for each value
_BISECTIONS = 24
_CLOSE = 1.001  # cells this near to the largest value are not split


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
    space = _Space.of(np.sort(P)[::-1], _exp_above(epsilon))
    return max(simple, space.proven(space.search(stop), stop))


def identity_bound(P: Array, epsilon: float) -> float:
    """The bound that `A = 1` proves: `(d - 1)^2 / max |r - 1|^2`. For equal values it is the least variance.

    For sets of `k` values `|r - 1|^2` is convex in `w`, so it is largest for the `k` rarest or the `k` commonest. With
    `s` their mass it is `(k (1 - s)^2 + (d - k) s^2) / (1/c + s)^2`, where nothing cancels.

    >>> round(identity_bound(np.full(83, 1 / 83), 1.0), 3)
    298.372
    """
    d, c, k = len(P), _exp_above(epsilon) - 1, np.arange(1, len(P))
    rising = np.sort(P)
    rarest, commonest = np.cumsum(rising)[:-1], np.cumsum(rising[::-1])[:-1]
    ends = [
        (rarest, commonest[::-1]),
        (commonest, rarest[::-1]),
    ]  # the mass of a set, and of the other values
    largest = max(float(((k * rest**2 + (d - k) * s**2) / (1 / c + s) ** 2).max()) for s, rest in ends)
    return (d - 1) ** 2 / largest * (1 - 8 * _rounding(d))


def _exp_above(epsilon: float) -> float:
    """A float that is at least `e^epsilon`, or infinity."""
    return math.inf if epsilon > 700 else math.nextafter(float(exp_above(epsilon)), math.inf)


def _rounding(d: int) -> float:
    """The relative error of a sum of `d` positive terms, each of which takes fewer than 200 steps.

    Probabilities count as 130 steps: they are the exact ones up to the rounding that `Prior` allows (`NORMALISED`).
    """
    return (d + 400) * _ROUNDOFF


class _Weights(NamedTuple):
    """`A` as its columns `[m, a, b_1, ...]` (d, 2 + heavy), and `nu`."""

    A: Array
    nu: Array


@dataclass(frozen=True, eq=False)
class _Points:
    """Places to evaluate the right side at: sizes of sets, `w`, and which of the heaviest values are held."""

    sizes: Array
    w: Array
    held: Array

    def join(self, other: _Points) -> _Points:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Points(*(np.concatenate(pair) for pair in pairs))

    def take(self, places: Array) -> _Points:
        return _Points(self.sizes[places], self.w[places], self.held[places])


@dataclass(frozen=True, eq=False)
class _Space:
    """The columns that LDP allows: probabilities in falling order, `e = e^eps`, and how many values are heavy."""

    P: Array
    e: float
    heavy: int

    @classmethod
    def of(cls, P: Array, e: float) -> _Space:
        return cls(P, e, sum(len(P) <= most for most in _MOST_WITH_HEAVY))

    @property
    def numerator(self) -> Array:
        """`tr A - P' A 1` as weights of the entries of `A`."""
        own = np.eye(len(self.P))[:, : self.heavy] - self.P[:, None]
        return np.column_stack([1 - self.P, 1 - len(self.P) * self.P, own])

    def sums(self, at: _Points) -> Array:
        """`h` and the `z_j` at these places."""
        c, d = self.e - 1, len(self.P)
        h = at.w * (d + c * at.sizes) - d
        return np.column_stack([h, at.w[:, None] * (1 + c * at.held) - 1])

    def terms(self, at: _Points, weights: _Weights) -> tuple[Array, Array, Array, Array]:
        """`A z` of every value where it is held and where it is not, and `z` of both."""
        rest = self.sums(at) @ weights.A[:, 1:].T
        z = self.e * at.w[:, None] - 1, at.w[:, None] - 1
        return weights.A[:, 0] * z[0] + rest, weights.A[:, 0] * z[1] + rest, *z

    def grid(self, sizes: Array) -> _Points:
        """All choices of heavy values with these sizes of sets, and `w` between its ends."""
        ranges = [(k, held, *self.ends(k, k, held)) for held in self.patterns() for k in sizes]
        rows = [
            (k, w, *held)
            for k, held, low, high in ranges
            if low < high
            for w in np.linspace(low, high, _POINTS)
        ]
        table = np.array(rows, dtype=np.float64)
        return _Points(table[:, 0], table[:, 1], table[:, 2:])

    def patterns(self) -> list[tuple[int, ...]]:
        return list(product((0, 1), repeat=self.heavy))

    def ends(self, least: float, most: float, held: tuple[int, ...]) -> tuple[float, float]:
        """The smallest and largest `w` of sets with `least` to `most` values; `(1, 0)` where there is none."""
        light, inside = self.P[self.heavy :], sum(held)
        if most < inside or least > inside + len(light):
            return 1.0, 0.0
        mass = float(np.dot(held, self.P[: self.heavy]))
        few, many = max(0, math.floor(least) - inside), min(len(light), math.ceil(most) - inside)
        rarest, commonest = float(light[len(light) - few :].sum()), float(light[:many].sum())
        c = self.e - 1
        room = _rounding(len(self.P))
        return (1 - room) / (1 + c * (mass + commonest)), (1 + room) / (1 + c * (mass + rarest))

    # -- the search ------------------------------------------------------------------------------------------

    def search(self, stop: Stop = never) -> _Weights:
        """Good weights: from the information of a good subset selection, then improved."""

        def enough(intermediate_result: scipy.optimize.OptimizeResult) -> None:
            if stop():
                raise StopIteration

        d, e = len(self.P), self.e
        k = max(1, min(d - 1, round(d / (1 + e))))
        start = self._start(SubsetLaw(e, d, k))
        at, steps = self._places(), _STEPS if d <= _MOST_WITH_HEAVY[0] else _STEPS // 3
        x = np.concatenate([start.A.ravel(), start.nu, *self._multipliers(at, start)])
        units = np.repeat(_UNITS, [start.A.size, d, len(at.w), len(at.w)])
        units[1 : start.A.size : start.A.shape[1]] /= d
        for heat in _TEMPERATURES:
            found = scipy.optimize.minimize(
                self._smooth,
                x / units,
                args=(units, at, heat),
                jac=True,
                method="L-BFGS-B",
                callback=enough,
                options={"maxiter": steps, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-10},
            )
            x = found.x * units
        return _Weights(x[: start.A.size].reshape(start.A.shape), x[start.A.size : start.A.size + d])

    def _places(self) -> _Points:
        """Places near the best size of sets, and some others."""
        d, k = len(self.P), len(self.P) / (1 + self.e)
        sizes = np.concatenate([k * np.array(_SIZES), np.rint(k) + np.arange(-2, 3)])
        return self.grid(np.unique(np.clip(np.rint(sizes), 1, d - 1)))

    def _start(self, law: SubsetLaw) -> _Weights:
        """The best `A` against one channel, row by row, and the `nu` that makes its columns most alike.

        Scaled so that the mean of `|A z|^2` is one.
        """
        J = subset_information(law, self.P) - 1
        right = np.vstack([np.ones(law.d), np.eye(law.d)[: self.heavy]])
        cross, square = right @ J, right @ J @ right.T
        wanted, rows = self.numerator, np.empty((law.d, 2 + self.heavy))
        for x in range(law.d):
            form = np.block([[np.array([[J[x, x]]]), cross[None, :, x]], [cross[:, x, None], square]])
            rows[x] = np.linalg.lstsq(form, wanted[x], rcond=1e-10)[0]
        rows /= math.sqrt(float((rows * wanted).sum()))
        A = np.diag(rows[:, 0]) + rows[:, 1:] @ right
        # E[|A z|^2 z], from E[(a . r)^2 | x] of the rows a of A
        shift = A.sum(axis=1)
        squares = influence_squares(law, self.P, A) - 2 * shift[:, None] * (A @ (J + 1)) + shift[:, None] ** 2
        skew = squares.sum(axis=0)
        return _Weights(rows, np.linalg.lstsq(J, skew - float(self.P @ skew), rcond=1e-10)[0])

    def _smooth(self, scaled: Array, units: Array, at: _Points, heat: float) -> tuple[float, Array]:
        """`log` of the largest right side over the squared numerator, with soft maxima, and its slope."""
        d, n = len(self.P), len(at.w)
        A, nu, kappa, eta = np.split(scaled * units, np.cumsum([d * (2 + self.heavy), d, n]))
        weights = _Weights(A.reshape(d, -1), nu)
        inside, outside, z1, z0 = self.terms(at, weights)
        pull = nu + kappa[:, None] * self.P + eta[:, None]
        f1, f0 = inside**2 - pull * z1, outside**2 - pull * z0
        cold = heat / d
        share = 1 / (1 + np.exp(np.clip((f0 - f1) / cold, -700, 700)))
        value = np.maximum(f1, f0) + cold * np.log1p(np.exp(-np.abs(f1 - f0) / cold))
        share[:, : self.heavy] = at.held
        value[:, : self.heavy] = np.where(at.held > 0, f1[:, : self.heavy], f0[:, : self.heavy])
        sums = self.sums(at)
        total = value.sum(axis=1) + eta * sums[:, 0]
        soft = np.exp((total - total.max()) * math.log(n) / heat)
        largest = float(total.max() + heat / math.log(n) * math.log(soft.sum()))
        soft /= soft.sum()
        top = float((self.numerator * weights.A).sum())
        if largest <= 0 or top <= 0:
            return math.inf, np.zeros_like(scaled)
        z = share * z1 + (1 - share) * z0
        slope = 2 * soft[:, None] * (share * inside + (1 - share) * outside)
        own = 2 * (soft[:, None] * (share * inside * z1 + (1 - share) * outside * z0)).sum(axis=0)
        by_A = np.column_stack([own, slope.T @ sums]) / largest - 2 * self.numerator / top
        rest = [-(soft @ z), -soft * (z @ self.P), soft * (sums[:, 0] - z.sum(axis=1))]
        slopes = np.concatenate([by_A.ravel(), *(r / largest for r in rest)])
        return math.log(largest) - 2 * math.log(top), slopes * units

    # -- the proof -------------------------------------------------------------------------------------------

    def proven(self, weights: _Weights, stop: Stop = never) -> float:
        """The bound that these weights prove."""
        room, positive = _rounding(len(self.P)), 2 + len(self.P) * self.P[:, None]
        top = float((self.numerator * weights.A).sum() - room * (positive * np.abs(weights.A)).sum())
        largest = self._largest(weights, self._places(), stop)
        return top**2 / largest * (1 - room) if top > 0 and largest > 0 else 0.0

    def _largest(self, weights: _Weights, at: _Points, stop: Stop = never) -> float:
        """At least the largest `|A z|^2 - nu . z` of all columns: cells bound it, and the largest are split.

        The cells hold all columns at any time, so it may end after any round.
        """
        cells = self._cells()
        above = self._above_cells(cells, weights)
        goal = _CLOSE * float(self._above(at, weights, *self._multipliers(at, weights)).max())
        before, rounds = math.inf, 0
        while rounds < _ROUNDS and above.max() < before * (1 - _LEAST_PROGRESS) and not stop():
            before, rounds = float(above.max()), rounds + 1
            largest = np.argsort(-above)[: max(1, _MOST_SPLIT // len(self.P))]
            split = largest[above[largest] > goal]
            if not len(split):
                break
            halves = _halves(cells[split])
            cells = np.concatenate([np.delete(cells, split, axis=0), halves])
            above = np.concatenate([np.delete(above, split), self._above_cells(halves, weights)])
        return float(above.max())

    def _above_cells(self, cells: Array, weights: _Weights) -> Array:
        """The right side at the largest corner of every cell, with the multipliers of its middle."""
        sizes, w, held = (cells[:, 0] + cells[:, 1]) / 2, (cells[:, 2] + cells[:, 3]) / 2, cells[:, 4:]
        multipliers = self._multipliers(_Points(sizes, w, held), weights)
        corners = [_Points(cells[:, i], cells[:, j], held) for i in (0, 1) for j in (2, 3)]
        above = np.max([self._above(at, weights, *multipliers) for at in corners], axis=0)
        return np.where(np.isfinite(above), above, math.inf)

    def _cells(self) -> Array:
        """Cells that hold all sets: rows `[least size, most, least w, most, held ...]`."""
        step = -(-(len(self.P) - 1) // _BLOCKS)
        rows = []
        for least in range(1, len(self.P), step):
            most = min(least + step - 1, len(self.P) - 1)
            for held in self.patterns():
                low, high = self.ends(least, most, held)
                edges = np.linspace(low, high, _POINTS + 1 if low < high else 0)
                rows += [(least, most, edges[i], edges[i + 1], *held) for i in range(len(edges) - 1)]
        return np.array(rows, dtype=np.float64)

    def _multipliers(self, at: _Points, weights: _Weights) -> tuple[Array, Array]:
        """`kappa` and `eta` for which the sets that are best have nearly this size and this mass."""
        inside, outside, z1, z0 = self.terms(at, weights)
        light, step = self.P[self.heavy :], (z1 - z0)
        gain = ((inside**2 - outside**2) / step - weights.nu)[:, self.heavy :]
        mass = (1 / at.w - 1) / (self.e - 1) - at.held @ self.P[: self.heavy]
        count = np.clip(np.rint(at.sizes - at.held.sum(axis=1)).astype(np.int64), 0, len(light))
        reach = 2 * np.ptp(gain) / float(np.ptp(light) or 1.0) * len(light)
        low, high = np.full(len(at.w), -reach), np.full(len(at.w), reach)
        rows = np.arange(len(at.w))
        for _ in range(_BISECTIONS):
            kappa = (low + high) / 2
            order = np.argsort(-(gain - kappa[:, None] * light), axis=1)
            masses = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(light[order], axis=1)], axis=1)
            heavy = masses[rows, count] > mass
            low, high = np.where(heavy, kappa, low), np.where(heavy, high, kappa)
        kappa = (low + high) / 2
        ranked = -np.sort(-(gain - kappa[:, None] * light), axis=1)
        last, first = np.clip(count - 1, 0, len(light) - 1), np.clip(count, 0, len(light) - 1)
        return kappa, (ranked[rows, last] + ranked[rows, first]) / 2

    def _above(self, at: _Points, weights: _Weights, kappa: Array, eta: Array) -> Array:
        """The right side, with room for rounding."""
        inside, outside, z1, z0 = self.terms(at, weights)
        pull = weights.nu + kappa[:, None] * self.P + eta[:, None]
        f1, f0 = inside**2 - pull * z1, outside**2 - pull * z0
        best = np.maximum(f1, f0)
        best[:, : self.heavy] = np.where(at.held > 0, f1[:, : self.heavy], f0[:, : self.heavy])
        # The same with all terms positive, of which the errors are a small part; `|z|` is at most `most`.
        h, room, most = self.sums(at)[:, 0], _rounding(len(self.P)), self.e * at.w + 1
        most_h = at.w * (len(self.P) + (self.e - 1) * at.sizes) + len(self.P)
        size = np.abs(weights.A)
        terms = most[:, None] * (size[:, 0] + size[:, 2:].sum(axis=1)) + most_h[:, None] * size[:, 1]
        squares = terms * (2 * np.maximum(np.abs(inside), np.abs(outside)) + room * terms)
        pulls = most[:, None] * (np.abs(weights.nu) + np.abs(kappa)[:, None] * self.P + np.abs(eta)[:, None])
        error = room * ((squares + pulls).sum(axis=1) + np.abs(eta) * most_h)
        return np.asarray(best.sum(axis=1) + eta * h + error)


def _halves(cells: Array) -> Array:
    """Every cell as its two halves in `w`, and in the sizes too where it holds more than one."""
    low, high = cells.copy(), cells.copy()
    low[:, 3] = high[:, 2] = (cells[:, 2] + cells[:, 3]) / 2
    both = np.concatenate([low, high])
    wide = both[:, 1] > both[:, 0]
    few, many = both.copy(), both[wide]
    middle = np.floor((both[:, 0] + both[:, 1]) / 2)
    few[wide, 1] = middle[wide]
    many[:, 0] = middle[wide] + 1
    return np.concatenate([few, many])
