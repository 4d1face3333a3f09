"""How much reports can tell about a distribution at best: proven bounds for the box `lo <= r <= hi`.

Write `r = lo + (1 - lo) f / P`. A column is a distribution `f` with `f_x <= min(1, P_x / tau)`, and on
average `E[f] = P`. Let `B = E[(f / P)(f / P)']` be its second moments. Whatever the channel,

    B P = 1,   B_xx <= u_x = min(1 / tau, 1 / P_x),   B_xy >= l = max(0, 2 / tau - 1 / tau^2),

and the variance is `(tr B^-1 - P . P) / (1 - lo)^2`. To minimise `tr B^-1` under these is a relaxation
(a semidefinite programme); its dual bounds every channel. For any `w >= 0`, `a` and `S >= 0` (off the
diagonal) for which `M = diag(w) + (a P' + P a') / 2 - S` is positive semidefinite,

    tr B^-1  >=  (tr M^(1/2))^2 / (w . u + sum(a) - l sum(S)),

so the optimiser needs no trust: whatever it returns is a bound, and a good one where it ran well.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.optimize

from priorveil.designs.columns import Array
from priorveil.designs.limits import Stop, never

_RELAXED = 250  # inputs up to which the relaxation is solved; its bound costs d^3 a step


def information_bound(
    prior: Array, lo: float, hi: float, *, rounds: int = 600, should_stop: Stop = never
) -> float:
    """A variance that no channel with lifts in `[lo, hi]` beats, per user and summed over the values.

    Proven wherever the search for it ends: after `rounds`, or when `should_stop()` says so.

    >>> P = np.array([0.5, 0.3, 0.2])
    >>> exact = (1 - P @ P) / (1 - np.exp(-2.0)) ** 2      # every input is heavy: Theorem 3 is the optimum
    >>> bool(abs(information_bound(P, np.exp(-2.0), np.exp(2.0)) / exact - 1) < 1e-6)
    True
    """
    if np.ptp(prior) <= 1e-15:
        return uniform_variance(len(prior), lo, hi)
    if len(prior) > _RELAXED:
        return free_bound(prior, lo, hi)
    relaxed = _Relaxation(prior, lo, hi).bound(rounds, should_stop)
    proven = (relaxed - float(prior @ prior)) / (1 - lo) ** 2 * (1 - 1e-12)
    return max(proven, free_bound(prior, lo, hi))


def free_bound(prior: Array, lo: float, hi: float) -> float:
    """A proven bound for any size: `sum_x (1 - P_x)^2 / ((1 - lo)^2 (u_x - 1))`.

    Each value alone is learnt with at least its own term: along the line `P + t (e_x - P)` the Fisher
    information of a report is `Var(r_x) <= (1 - lo)^2 (u_x - 1)`, and `p_x` moves by `1 - P_x`.

    >>> round(free_bound(np.full(4, 0.25), 0.0, np.inf), 9)      # the truth itself: a multinomial
    0.75
    """
    tau = _tau(lo, hi)
    heavy = (prior * (1 - prior))[prior >= tau].sum()
    light = ((1 - prior[prior < tau]) ** 2).sum() * (tau / (1 - tau) if tau < 1 else math.inf)
    return float(heavy + light) / (1 - lo) ** 2 * (1 - 1e-12) if lo < 1 else math.inf


def _tau(lo: float, hi: float) -> float:
    return 0.0 if math.isinf(hi) else (1 - lo) / (hi - lo)


def uniform_variance(dimension: int, lo: float, hi: float) -> float:
    """The least variance for equal inputs, in closed form.

    By symmetry and convexity the best `B` is unchanged by permutations, so only `E |r|^2` matters, and a
    column maximises it with `floor(tau d)` inputs at `hi`, one in between and the rest at `lo`. All
    permutations of that column, with equal weights, reach it.

    >>> round(uniform_variance(6, math.exp(-1), math.exp(1)), 4)
    4.801
    """
    full = dimension if math.isinf(hi) else dimension * (1 - lo) / (hi - lo)
    if math.isinf(hi) or full <= 1.0:
        energy = (1 - lo) ** 2 * dimension * (dimension - 1.0)
        return (dimension - 1) ** 2 / energy
    whole = math.floor(full)
    part = full - whole
    energy = (hi - lo) ** 2 * (whole + part**2 - full**2 / dimension)
    return (dimension - 1) ** 2 / energy


class _Relaxation:
    """The dual of the relaxation, in scaled variables, for a quasi-Newton method."""

    def __init__(self, prior: Array, lo: float, hi: float) -> None:
        d = len(prior)
        tau = _tau(lo, hi)
        self.prior = prior
        self.ceiling = 1 / np.maximum(prior, tau)
        self.floor = max(0.0, 2 / tau - 1 / tau**2) if tau > 0 else 0.0
        self.upper = np.triu_indices(d, 1)
        self.least = 0.25 / self.ceiling.sum() ** 2  # no useful M has an eigenvalue this small
        weight = 1 / np.maximum(self.ceiling - 1, 0.05) ** 2
        i, j = self.upper
        self.scale = np.concatenate([weight, weight, np.sqrt(weight[i] * weight[j] * prior[i] * prior[j])])
        self.size = float(np.sqrt(weight).sum())

    def _matrix(self, x: Array) -> tuple[Array, Array, Array, Array]:
        d = len(self.prior)
        w, a, s = np.split(x * self.scale, [d, 2 * d])
        half = np.outer(a / 2, self.prior)
        half[self.upper] -= s / 2
        M = half + half.T
        M[np.arange(d), np.arange(d)] += w
        return w, a, s, M

    def _objective(self, x: Array) -> tuple[float, Array]:
        """Minus the dual `2 tr M^(1/2) - w . u - sum(a) + l sum(S)` and its slope.

        Below `least` the square root goes on as its tangent: concave everywhere, so that any step is allowed.
        """
        w, a, s, M = self._matrix(x)
        values, U = np.linalg.eigh(M)
        safe = np.maximum(values, self.least)
        root = np.sqrt(safe) + np.minimum(values - self.least, 0) / (2 * math.sqrt(self.least))
        G = (U / np.sqrt(safe)) @ U.T
        dual = 2 * root.sum() - w @ self.ceiling - a.sum() + self.floor * s.sum()
        slope = np.concatenate([np.diag(G) - self.ceiling, G @ self.prior - 1, self.floor - G[self.upper]])
        return -dual / self.size, -slope * self.scale / self.size

    def bound(self, rounds: int, should_stop: Stop) -> float:
        """The bound on `tr B^-1` from where the optimiser stopped; zero where it proves nothing."""

        def enough(intermediate_result: scipy.optimize.OptimizeResult) -> None:
            if should_stop():
                raise StopIteration

        d = len(self.prior)
        pairs = len(self.upper[0])
        start = np.concatenate([np.ones(d), np.full(d, -0.5), np.zeros(pairs)])
        below = np.concatenate([np.zeros(d), np.full(d, -np.inf), np.zeros(pairs)])
        found = scipy.optimize.minimize(
            self._objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=scipy.optimize.Bounds(below, np.inf),
            callback=enough,
            options={"maxiter": rounds, "maxfun": 2 * rounds, "maxcor": 30, "ftol": 1e-10, "gtol": 1e-10},
        )
        w, a, s, M = self._matrix(found.x)
        values = np.linalg.eigvalsh(M)
        price = float(w @ self.ceiling + a.sum() - self.floor * s.sum())
        if values[0] < 0 or price <= 0:
            return 0.0
        return float(np.sqrt(values).sum() ** 2 / price)
