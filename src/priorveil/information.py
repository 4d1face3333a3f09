"""How much reports tell: variances of unbiased estimates, their bounds, and shares of the achievable gain."""

from __future__ import annotations

import math

import numpy as np

from priorveil.arrays import Array
from priorveil.priors.budget import window_mass

_OUTSIDE = 1e-9  # the part of a statistic, relatively, that reports may leave undetermined: it is rounding
_ROUNDING = 1e-12  # how far a bound may be off in floats, relatively: it is lowered by this


def gain_share(error: float, lower_bound: float, no_report: float, rounding: float | None = None) -> float:
    """The share of the achievable gain that an error reaches: `(no_report - error) / (no_report - lower_bound)`.

    For an infinite `no_report` it is `lower_bound / error`. It is one if the achievable gain is at most `rounding`, by
    default 1e-11 of `no_report`.

    >>> gain_share(error=3.0, lower_bound=2.0, no_report=6.0), gain_share(4.0, 3.0, math.inf)
    (0.75, 0.75)
    """
    if not (math.isfinite(error) and math.isfinite(lower_bound)):
        return 0.0  # nothing is proven yet
    if math.isinf(no_report):
        return lower_bound / error if error > 0 else 1.0
    achievable_gain = no_report - lower_bound
    if achievable_gain <= (1e-11 * no_report if rounding is None else rounding):
        return 1.0
    return (no_report - error) / achievable_gain


def tangent(dimension: int) -> Array:
    """An orthonormal basis (d, d - 1) of the vectors that sum to zero.

    >>> V = tangent(3)
    >>> bool(np.allclose(V.T @ V, np.eye(2))), bool(np.allclose(V.sum(0), 0))
    (True, True)
    """
    return _tangent_coordinates(np.eye(dimension))


def _tangent_coordinates(rows: Array) -> Array:
    """`rows @ tangent(d)` for rows (K, d), without a matrix of that basis: it is a reflection."""
    mirror = np.full(rows.shape[1], 1 / math.sqrt(rows.shape[1]))
    mirror[0] += 1.0
    return np.asarray((rows - np.outer(rows @ mirror, 2 * mirror / (mirror @ mirror)))[:, 1:])


def variance(channel: Array, prior: Array, rows: Array | None = None) -> float:
    """N times the variance of the best unbiased estimate of `rows @ shares` from N reports, over all rows.

    By default the rows are the identity: the estimate is of the whole distribution. The Cramer-Rao bound on the
    simplex at `p = P`, reached as N grows; infinite where reports alone do not determine the statistics. Randomised
    response at epsilon 1 over six equal inputs:

    >>> e = np.e
    >>> round(variance((np.ones((6, 6)) + (e - 1) * np.eye(6)) / (e + 5), np.full(6, 1 / 6)), 4)
    16.814
    """
    law = prior @ channel
    possible = law > 0
    return lift_variance(channel.T[possible] / law[possible, None], law[possible], rows)


def lift_variance(columns: Array, weights: Array, rows: Array | None = None) -> float:
    """The same as `variance`, from the lifts (K, d) of the reports and their probabilities, the `weights`."""
    if columns.shape[1] == 1:
        return 0.0  # everybody has the only value
    if rows is None and len(columns) < columns.shape[1]:
        return math.inf  # fewer reports than values
    scaled = np.sqrt(weights)[:, None] * _tangent_coordinates(columns - 1.0)
    noise = rounding_noise(scaled.shape)
    if rows is None:
        singular = np.linalg.svd(scaled, compute_uv=False)
        nonzero = singular > noise * max(1.0, float(singular[0]))
        return float((1 / singular**2).sum()) if nonzero.all() else math.inf
    _, singular, directions = np.linalg.svd(scaled, full_matrices=False)
    nonzero = singular > noise * max(1.0, float(singular[0]))
    statistics = _tangent_coordinates(rows)
    coordinates = statistics @ directions[nonzero].T
    outside = np.abs(statistics - coordinates @ directions[nonzero]).max(axis=1)
    tolerance = _OUTSIDE * np.abs(statistics).max(axis=1) + noise * np.abs(rows).max(axis=1)
    if (outside > tolerance).any():
        return math.inf
    return float(((coordinates / singular[nonzero]) ** 2).sum())


def rounding_noise(shape: tuple[int, ...]) -> float:
    """The size of a singular value, relative to the largest, that may be zero but for rounding."""
    return 8 * max(shape) * float(np.finfo(float).eps)


def variance_bound(P: Array, lo: float, hi: float) -> float:
    """A proven bound on the variance of learning the distribution, with lifts in `[lo, hi]`.

    `sum_x (1 - P[x])**2 / ((1 - lo)**2 (u[x] - 1))` with `u[x] = min(1 / tau, 1 / P[x])`. Each value alone is learnt
    with at least its own term: along the line `P + t (e_x - P)` the Fisher information of a report is
    `Var(r[x]) <= (1 - lo)**2 (u[x] - 1)`, and `p[x]` moves by `1 - P[x]`.

    >>> round(variance_bound(np.full(4, 0.25), 0.0, np.inf), 9)      # the truth itself: a multinomial
    0.75
    """
    if lo >= 1:
        return math.inf
    tau = float(window_mass(lo, hi))
    light = tau > P
    odds = tau / (1 - tau) if tau < 1 else math.inf
    bound = (P * (1 - P))[~light].sum() + (((1 - P[light]) ** 2).sum() * odds if light.any() else 0.0)
    return float(bound) / (1 - lo) ** 2 * (1 - _ROUNDING)


def identifiable(Q: Array) -> bool:
    """Whether reports alone determine the distribution: whether the rows of the channel are independent.

    >>> identifiable(np.eye(3)), identifiable(np.full((2, 2), 0.5))
    (True, False)
    """
    return math.isfinite(variance(Q, np.full(len(Q), 1 / len(Q))))


def histogram_bound(variances: Array, P: Array, lo: Array | float, upper: Array | float) -> Array:
    """The closed-form bound on the error of a histogram, from `variances = P (1 - P)`; for each of several priors."""
    errors = np.maximum(variances * lo * (2 - lo), variances - P**2 * (1 - lo) * hi_minus_one(upper))
    return np.asarray(errors.sum(axis=-1))


def hi_minus_one(upper: Array | float) -> Array:
    """`hi - 1`, exact for small levels, and finite: `e**700` bounds nothing, and larger powers overflow."""
    return np.asarray(np.expm1(np.minimum(upper, 700.0)))
