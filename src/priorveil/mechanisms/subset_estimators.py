"""Estimates from subset reports, and their expected errors.

A report is a set of `k` of the `d` values. It holds the true value with probability `p`, and any other value with
probability `q = (k - p) / (d - 1)`. With the odds `R`, `c = R - 1` and `m(y)` the prior mass of a report `y`, the lift
of a value is `r_x = (1 + c y_x) / (1 + c m(y))`. There are two ways to read a tally:

* **ones**: how many reports hold each value. `(ones - N q) / (p - q)` is unbiased. This is the published estimator
  (Ye and Barg, 2018), in closed form at any `d`.
* **scored**: the sum of the lifts under the plan's prior. With the Fisher information `J = E[r r']` the sum over the
  reports of `J^-1 r` is unbiased too, since `E[r] = J p` whatever the distribution `p` is. It is the best unbiased
  estimate near the prior, and up to a third better than the ones if the prior is far from uniform. It needs a matrix of
  `d` by `d` numbers. For equal values and for `k = 1` both estimates are the same.

Means over reports are means over uniformly random subsets. `tilted_bits` writes such a mean as a sum over independent
bits: `1 / (1 + c m)` is a sum of exponentials of `m`, and the size of a subset is fixed by a Fourier sum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms.bit_estimators import BitCounts, set_chances, unbiased_spread
from priorveil.mechanisms.estimators import Moments, apply_rows
from priorveil.mechanisms.score_test import PriorCheck, bits_check
from priorveil.priors import Array

Complex = npt.NDArray[np.complex128]

_NEGLIGIBLE = 80.0  # minus the logarithm of weights that are left out at once


class SubsetLaw(NamedTuple):
    """The law of a report in floats: `d` values, subsets of `k`, and the chance `p` to hold the true value."""

    d: int
    k: int
    p: float

    @property
    def q(self) -> float:
        """The chance to hold a value that is not the true one."""
        return (self.k - self.p) / (self.d - 1)

    @property
    def contrast(self) -> float:
        """`p - q`: how much likelier a report holds a value if it is the true one."""
        return self.p - self.q

    @property
    def odds(self) -> float:
        """`R`: how much likelier a report is for a value that it holds."""
        return self.p * (self.d - self.k) / ((1 - self.p) * self.k)

    @property
    def pair_chances(self) -> tuple[float, float]:
        """`(t, u)`: a report holds two values `x` and `z` with the chance `t + u (P_x + P_z)`."""
        k, p, n = self.k, self.p, self.d - 1
        t = (k - 1) * (k - 2 * p) / (n * (n - 1)) if n > 1 else 0.0
        return t, p * (k - 1) / n - t


def ones_variance(law: SubsetLaw, P: Array) -> float:
    """N times the variance, summed over the values, of the distribution read from the ones.

    >>> round(ones_variance(SubsetLaw(20, 5, math.e / (math.e + 3)), np.full(20, 0.05)), 4)
    66.6344
    """
    q, contrast = law.q, law.contrast
    return (law.k - law.d * q**2 - 2 * q * contrast) / contrast**2 - float(P @ P)


# -- means over random subsets -----------------------------------------------------------------------------


def _exponential_sum(least: float, most: float, power: int) -> tuple[Array, Array]:
    """Nodes and weights with `sum_i w_i exp(-t_i D)` near `D**-power`, for `D` from `least` to `most`."""
    count = min(64, 28 + math.ceil(5 * math.log(most / least)))
    nodes = np.geomspace(0.01 / most, 36 / least, count)
    points = np.geomspace(least, most, 8 * count)
    fits = np.exp(-np.outer(points, nodes)) * points[:, None] ** power
    return nodes, np.asarray(np.linalg.lstsq(fits, np.ones(len(points)), rcond=1e-14)[0], dtype=np.float64)


def tilted_bits(law: SubsetLaw, P: Array, power: int) -> tuple[Complex, Complex]:
    """Weights `w` and chances `h` (nodes, d) of independent bits that stand for a random subset.

    For a function `g` that is linear in every bit, the mean of `g(y) / (1 + c m(y))**power` over the subsets of size
    `k` is the real part of `sum_i w_i E_i[g]`, where under `E_i` bit `x` is set with the "chance" `h[i, x]`, a complex
    number. Tests compare it with sums over all subsets.
    """
    d, k, c = law.d, law.k, law.odds - 1
    share, ordered = k / d, np.sort(P)
    edges = 1 + c * float(ordered[:k].sum()), 1 + c * float(ordered[-k:].sum())
    nodes, heights = _exponential_sum(edges[0] * (1 - 1e-9), edges[1] * (1 + 1e-9), power)
    # Of d bits, each set with this share, k are set. Counts that differ by `length` cannot be told apart, but are many
    # standard deviations away. Large angles weigh nothing: the bits cancel out.
    length = min(d + 1, math.ceil(13 * math.sqrt(d * share * (1 - share))) + 12) | 1
    angles = 2 * math.pi / length * np.arange(length // 2 + 1)
    size = d / 2 * np.log1p(-2 * share * (1 - share) * (1 - np.cos(angles)))
    angles = angles[size > -_NEGLIGIBLE]
    tilts = share * np.exp(1j * angles[:, None, None] - c * np.outer(nodes, P))
    factors = 1 - share + tilts
    log_chance = math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1)
    log_chance += k * math.log(share) + (d - k) * math.log1p(-share)
    logs = np.log(factors).sum(axis=2) - nodes - 1j * k * angles[:, None] - log_chance
    twice = np.where(np.arange(len(angles)) == 0, 1.0, 2.0) / length
    weights = (np.exp(logs) * heights * twice[:, None]).reshape(-1)
    kept = np.abs(weights) > 1e-17 * float(np.abs(weights).max())
    return weights[kept], (tilts / factors).reshape(-1, d)[kept]


def subset_information(law: SubsetLaw, P: Array) -> Array:
    """The Fisher information `J = E[r r']` of a report at the distribution `P`.

    >>> law, P = SubsetLaw(3, 1, 0.5), np.array([0.5, 0.3, 0.2])
    >>> Q = np.full((3, 3), 0.25) + 0.25 * np.eye(3)
    >>> bool(np.allclose(subset_information(law, P), Q / (P @ Q) @ Q.T))
    True
    """
    c, (w, h) = law.odds - 1, tilted_bits(law, P, 1)
    single = (w @ h).real
    J = float(w.sum().real) + c * (single[:, None] + single)
    scaled = c * np.sqrt(w)[:, None] * h
    J += scaled.real.T @ scaled.real - scaled.imag.T @ scaled.imag
    J[np.diag_indices(law.d)] = float(w.sum().real) + (c**2 + 2 * c) * single
    return np.asarray(J / (1 + c * law.k / law.d))


def influence_squares(law: SubsetLaw, P: Array, influence: Array) -> Array:
    """`E[(a . r)^2 | x]` for every row `a` of `influence` and every value `x`: rows times values.

    Given the bit of `x`, the sum over the other bits has a mean and a variance.
    """
    c, (w, h) = law.odds - 1, tilted_bits(law, P, 2)
    steps = c * influence
    means = influence.sum(axis=1) + h @ steps.T
    squares = means**2 + (h * (1 - h)) @ (steps**2).T
    if_set = (squares.T * w) @ h + 2 * steps * ((means.T * w) @ (h * (1 - h)))
    if_set += steps**2 * (w @ (h * (1 - h) * (1 - 2 * h)))
    mean = (squares.T @ w).real[:, None] + c * if_set.real
    return np.asarray(mean / (1 + c * law.k / law.d))


# -- estimates ---------------------------------------------------------------------------------------------


def scored_moments(
    law: SubsetLaw, counts: BitCounts, P: Array, inverse: Array, rows: Array | None, population: bool
) -> Moments:
    """The sum of `J^-1 r` over the reports; `inverse` is `J^-1` at the prior `P` of the scores."""
    N, influence = counts.reports, inverse if rows is None else rows @ inverse
    lifts = counts.base + (law.odds - 1) * counts.scores
    shares = inverse @ lifts / (N or 1.0)
    square = influence_squares(law, P, influence) @ shares
    return Moments(influence @ lifts, unbiased_spread(square, rows, shares, N, population))


def scored_posteriors(law: SubsetLaw, counts: BitCounts, P: Array, rows: Array | None) -> Moments:
    """Posteriors given whole reports, added up; the variance is the expected posterior variance."""
    histogram = P * (counts.base + (law.odds - 1) * counts.scores)
    return Moments(
        apply_rows(rows, histogram), counts.reports * np.maximum(posterior_error(law, P, rows), 0.0)
    )


def posterior_error(law: SubsetLaw, P: Array, rows: Array | None) -> Array:
    """The expected posterior variance of every statistic, `a^2 . P - (a P)' J (a P)`.

    It needs no matrix: `J` follows from the means of the bits, and of pairs of bits, as in `subset_information`.

    >>> law, P = SubsetLaw(3, 1, 0.5), np.array([0.5, 0.3, 0.2])
    >>> bool(np.allclose(posterior_error(law, P, None), P - P**2 * np.diag(subset_information(law, P))))
    True
    """
    c = law.odds - 1
    w: Complex = np.empty(0, dtype=np.complex128)
    h: Complex = np.empty((0, law.d), dtype=np.complex128)
    if law.k == 1:  # sets of one value hold no pair, and can be listed
        single = 1 / (1 + c * P) / law.d
        base = float(single.sum())
    else:
        w, h = tilted_bits(law, P, 1)
        base, single = float(w.sum().real), (w @ h).real
    scale = 1 + c * law.k / law.d
    if rows is None:
        return np.asarray(P - P**2 * (base + (c**2 + 2 * c) * single) / scale)
    scaled = rows * P
    total = scaled.sum(axis=1)
    pairs = (((scaled @ h.T) ** 2 - scaled**2 @ (h**2).T) @ w).real
    square = base * total**2 + 2 * c * total * (scaled @ single) + c**2 * (scaled**2 @ single + pairs)
    return np.asarray(rows**2 @ P - square / scale)


def guess_gain(law: SubsetLaw, P: Array) -> float:
    """The chance that the likeliest value given the report is the true one.

    A guess looks for the commonest value of the set. It is the `j`-th commonest of all in a share of the sets that
    falls with `j`. That value or the commonest of all is then the guess, whichever is likelier.

    >>> round(guess_gain(SubsetLaw(3, 1, 0.5), np.array([0.4, 0.3, 0.3])), 12)
    0.5
    """
    d, k, R = law.d, law.k, law.odds
    ordered = np.sort(P)[::-1][: d - k + 1]
    passed = np.arange(d - k)
    share = k / d * np.concatenate([[1.0], np.cumprod((d - k - passed) / (d - 1 - passed))])
    return float(share @ np.maximum(R * ordered, ordered[0])) / (1 + (R - 1) * k / d)


def subset_check(law: SubsetLaw, counts: BitCounts, prior: Array) -> PriorCheck | None:
    """The check of the ones. Their covariance is a diagonal less `f f'`, but for a multiple of the matrix of ones.

    Such a multiple may be added at will: the ones always add up to `k`, so all that is tested adds up to zero. With
    one it is singular, so another is taken, by a second factor.
    """
    chances, (t, u) = set_chances(law, prior), law.pair_chances
    factor = law.contrast * prior + law.q - u / law.contrast
    factors = np.stack([factor, np.full(law.d, law.q)], axis=1)
    excess = counts.ones - counts.reports * chances
    return bits_check(excess, law.contrast, chances - t - 2 * u * prior, factors, prior, counts.reports)
