"""Means and variances of answers from counts of reports, and checks of the prior against them.

* `posterior_moments` (mmse) adds up posteriors. It is best when the prior is right, and leans towards it when not.
* `unbiased_moments` inverts the channel: it is right on average, whatever the truth is.
* `mle_moments` finds the distribution under which the reports are most likely.

An answer is `rows @ histogram` for a matrix `rows` with a column per value; None stands for the identity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import arb

from priorveil.errors import Hint, NotIdentifiable
from priorveil.mechanisms.likelihood import Evidence, most_likely, shortfall
from priorveil.priors import Array
from priorveil.queries import Distribution, information

_RANK = 1e-10  # eigenvalues of the information below this are not identified
_LEAST_EXPECTED = 5.0  # the smallest expected count of a cell in a chi-square test


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of each answer; `rounds` and `shortfall` if a search found them.

    `assumes` says what they rest on, where that differs from what the method assumes elsewhere (`ASSUMES`).
    """

    mean: Array
    variance: Array
    rounds: int | None = None
    converged: bool = True
    shortfall: float | None = None
    assumes: str | None = None


def apply_rows(rows: Array | None, values: Array) -> Array:
    """`rows @ values`, where None stands for the identity.

    >>> apply_rows(np.array([[1.0, 1.0]]), np.array([2.0, 3.0])).tolist(), apply_rows(None, np.ones(2)).tolist()
    ([5.0], [1.0, 1.0])
    """
    return values if rows is None else np.asarray(rows @ values)


def squared_rows(rows: Array | None) -> Array | None:
    """The entries of `rows` squared; those of the identity are its own."""
    return None if rows is None else rows**2


def diagonal_of(rows: Array | None, covariance: Array) -> Array:
    """The diagonal of `rows @ covariance @ rows.T`.

    >>> diagonal_of(np.array([[1.0, 1.0]]), np.eye(2)).tolist()
    [2.0]
    """
    return np.diag(covariance) if rows is None else np.asarray(((rows @ covariance) * rows).sum(axis=1))


def reports_moments(
    method: str, evidence: Evidence, prior: Array, rows: Array | None, population: bool
) -> Moments:
    """The answer of a method; near its `prior` the unbiased one is also what mle approaches (`score`)."""
    if method == "mmse":
        return posterior_moments(evidence, prior, rows)
    if method in ("unbiased", "score"):
        return unbiased_moments(evidence, prior, rows, population)
    return mle_moments(evidence, prior, rows, population)


def posterior_moments(evidence: Evidence, prior: Array, rows: Array | None = None) -> Moments:
    """The mmse answer: sums over reports of posterior means and variances.

    >>> from priorveil.mechanisms.likelihood import DenseChannel
    >>> evidence = Evidence(np.array([2.0, 0.0]), DenseChannel(np.eye(2)))
    >>> posterior_moments(evidence, np.array([0.5, 0.5])).mean.tolist()
    [2.0, 0.0]
    """
    total, spread = np.zeros((2, len(prior) if rows is None else len(rows)))
    for cells, Q in evidence.channel.blocks():
        joint = prior[:, None] * Q
        law = joint.sum(axis=0)
        possible = law > 0
        posterior, n = joint[:, possible] / law[possible], evidence.counts[cells][possible]
        mean, square = apply_rows(rows, posterior), apply_rows(squared_rows(rows), posterior)
        total += mean @ n
        spread += np.maximum(square - mean**2, 0.0) @ n
    return Moments(total, spread)


def unbiased_moments(evidence: Evidence, prior: Array, rows: Array | None, population: bool) -> Moments:
    """The best linear unbiased answer at the prior: the sum of `J**-1 r_y` over the reports.

    Its variance is the noise of the reports given the people; with `population`, the people are a sample, and the
    variance of sampling is added. A rare report may carry much information and be missing by chance, so for the
    variance counts near zero are shrunk towards their expectation under the prior (`_shrink`).
    """
    inverse = _inverse_information(evidence, prior, _RANK)
    N = float(evidence.counts.sum())
    total, shrunk_total = np.zeros((2, len(prior)))
    square = np.zeros(len(prior) if rows is None else len(rows))
    for cells, Q in evidence.channel.blocks():
        law = prior @ Q
        n, shrunk = evidence.counts[cells], _shrink(evidence.counts[cells], N * law)
        influence = inverse @ np.divide(Q, law, out=np.zeros_like(Q), where=law > 0)
        total += influence @ n
        shrunk_total += influence @ shrunk
        square += apply_rows(rows, influence) ** 2 @ shrunk
    known = known_part(rows, shrunk_total, N, population)
    return Moments(apply_rows(rows, total), np.maximum(square - known, 0.0))


def known_part(rows: Array | None, histogram: Array, N: float, population: bool) -> Array:
    """What is subtracted from the sum of squares over reports to give a variance.

    For the `N` people themselves it is `rows**2 @ histogram`, for a population `(rows @ histogram)**2 / N`.
    """
    if not population:
        return apply_rows(squared_rows(rows), histogram)
    return np.asarray(apply_rows(rows, histogram) ** 2 / (N or 1.0))


def _shrink(counts: Array, expected: Array) -> Array:
    """Counts shrunk towards the expected ones, as if one report of each cell had been seen before.

    The mean is kept where the expectation is right; large counts hardly change.

    >>> _shrink(np.array([0.0, 1.0, 1000.0]), np.array([0.3, 0.3, 900.0])).round(2).tolist()
    [0.23, 0.46, 999.89]
    """
    return np.asarray(expected * (counts + 1) / (expected + 1))


def _inverse_information(evidence: Evidence, p: Array, least: float) -> Array:
    """`J**-1` at `p`; see `invert_information`."""
    scaled = np.zeros((len(p), len(p)))
    for _, Q in evidence.channel.blocks():
        scaled += information(Q, p)
    return invert_information(scaled, p, least)


def invert_information(scaled: Array, p: Array, least: float = _RANK) -> Array:
    """`J**-1` from `sqrt(p) J sqrt(p)`; refused where its least eigenvalue is no larger than `least`."""
    size, vectors = np.linalg.eigh(scaled)
    if size[0] <= least:
        raise not_identifiable()
    half = np.sqrt(p)[:, None] * vectors
    return np.asarray((half / size) @ half.T)


def not_identifiable() -> NotIdentifiable:
    """The error for an estimate that reports alone cannot give."""
    return NotIdentifiable(
        "reports of this plan do not determine the distribution",
        Hint("method", "mmse", purpose="to lean on the prior"),
        Hint("query", Distribution(), purpose="to learn the distribution, design another plan"),
    )


def mle_moments(evidence: Evidence, prior: Array, rows: Array | None, population: bool) -> Moments:
    """The maximum likelihood answer, with the variance that the Fisher information gives at it."""
    p, rounds, converged = most_likely(evidence, prior)
    N = float(evidence.counts.sum())
    # At least half a person each: on the boundary there is no information to invert.
    inside = np.maximum(p, 0.5 / max(N, 1.0))
    covariance = _inverse_information(evidence, inside / inside.sum(), _RANK * 1e-3) - np.outer(p, p)
    if not population:
        covariance = covariance - (np.diag(p) - np.outer(p, p))
    spread = N * np.maximum(diagonal_of(rows, covariance), 0.0)
    return Moments(N * apply_rows(rows, p), spread, rounds, converged, shortfall(evidence, p))


def prior_check(counts: Array, law: Array) -> float | None:
    """The p-value of the counts under the known law of the cells (chi-square, rare cells merged).

    Small where the prior is wrong or someone tampers with the reports; the test cannot tell which. None where
    there are too few reports or too few cells to say anything.

    >>> prior_check(np.array([50.0, 50.0]), np.array([0.5, 0.5]))
    1.0
    """
    N = float(counts.sum())
    order = np.argsort(-law, kind="stable")
    expected, seen = N * law[order], counts[order]
    common = int(np.count_nonzero(expected >= _LEAST_EXPECTED))
    if common < len(expected):
        expected = np.append(expected[:common], expected[common:].sum())
        seen = np.append(seen[:common], seen[common:].sum())
        if expected[-1] < _LEAST_EXPECTED and common:
            expected[-2:], seen[-2:] = [expected[-2:].sum(), 0], [seen[-2:].sum(), 0]
            expected, seen = expected[:-1], seen[:-1]
    if len(expected) < 2 or N == 0:
        return None
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return chi_square_tail(statistic, len(expected) - 1)


def chi_square_tail(statistic: float, degrees: int) -> float:
    """The probability that a chi-square variable of so many degrees of freedom exceeds `statistic`.

    By the library of the certificates, which is loaded anyway: scipy's takes a quarter of a second to load.

    >>> round(chi_square_tail(5.991464547, 2), 9)
    0.05
    """
    if math.isinf(statistic):
        return 0.0
    tail = float((arb(statistic) / 2).gamma_upper(arb(degrees) / 2, 1))
    return 1.0 if tail > 1 else tail


def mean_check(moved: Array, variance: Array, rise: Array, fall: Array) -> float | None:
    """The p-value of posteriors that should, on average, be the priors: for people with a prior each.

    `moved` is the sum over reports of posterior less prior, `variance` what its variance is if the priors are right,
    `rise` and `fall` how far one report can move it up and down; all for every value. A sum of independent terms of
    mean zero, none above `m`, exceeds `t` with probability at most `exp(-E)`, `E = (V / m**2) h(t m / V)`, `h(u) =
    (1 + u) log(1 + u) - u` (Bennett's inequality), however rare the large terms are; the normal tail at `sqrt(2 E)`
    is what that comes to where they are common. The least over the values is multiplied by their number. None where
    reports tell nothing.

    >>> mean_check(np.array([0.0, 0.0]), np.array([9.0, 9.0]), np.ones(2), np.ones(2))
    1.0
    >>> mean_check(np.array([15.0, -15.0]), np.array([9.0, 9.0]), np.ones(2), np.ones(2)) < 0.001
    True
    """
    known = (variance > 0) & (rise > 0) & (fall > 0)
    if not known.any():
        return None
    t, V = moved[known], variance[known]
    m = np.where(t > 0, rise[known], fall[known])
    u = np.abs(t) * m / V
    exponent = float((V / m**2 * ((1 + u) * np.log1p(u) - u)).max())
    values = 1 if len(moved) == 2 else len(t)  # of two, one falls as the other rises
    return min(1.0, values * math.erfc(math.sqrt(max(exponent, 0.0))))
