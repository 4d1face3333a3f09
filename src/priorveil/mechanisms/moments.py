"""Means and variances of answers: what counts of reports say, by which method.

* `posterior_moments` (mmse) adds up posteriors. It is best when the prior is right, and leans towards it when not.
* `unbiased_moments` inverts the channel: right on average whatever the truth is.
* `mle_moments` finds the distribution under which the reports are most likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorveil.errors import Hint, NotIdentifiable
from priorveil.mechanisms.likelihood import Evidence, most_likely, shortfall
from priorveil.priors import Array
from priorveil.queries import Distribution, information

_RANK = 1e-10  # eigenvalues of the information below this are not identified


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of each answer; rounds and shortfall if a search found them.

    `assumes` says what they rest on, where it is not what the method assumes elsewhere (`ASSUMES`).
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


def posterior_moments(evidence: Evidence, prior: Array, rows: Array | None = None) -> Moments:
    """The mmse answer: sums over reports of posterior means and variances.

    `rows`, a matrix with a column per value, asks for `rows @ histogram`; without it the answer is the histogram.

    >>> from priorveil.mechanisms.likelihood import Cells
    >>> posterior_moments(Cells(np.array([2.0, 0.0]), np.eye(2)), np.array([0.5, 0.5])).mean.tolist()
    [2.0, 0.0]
    """
    total, spread = np.zeros((2, len(prior) if rows is None else len(rows)))
    for cells, Q in evidence.blocks():
        joint = prior[:, None] * Q
        law = joint.sum(axis=0)
        seen = law > 0
        posterior, n = joint[:, seen] / law[seen], evidence.counts[cells][seen]
        mean, square = apply_rows(rows, posterior), apply_rows(squared_rows(rows), posterior)
        total += mean @ n
        spread += np.maximum(square - mean**2, 0.0) @ n
    return Moments(total, spread)


def unbiased_moments(evidence: Evidence, prior: Array, rows: Array | None, population: bool) -> Moments:
    """The best linear unbiased answer at the prior: `J**-1 r_y` is added up over the reports.

    Its variance counts the noise of the reports given the people; with `population`, also that the people are
    a sample of those about whom something is to be learnt. A report that is rare may tell much, and be missing by
    luck: so counts near zero are drawn towards those that are expected under the prior (`_steadied`).
    """
    inverse = _inverse_information(evidence, prior, _RANK)
    N = float(evidence.counts.sum())
    told, likely = np.zeros((2, len(prior)))
    square = np.zeros(len(prior) if rows is None else len(rows))
    for cells, Q in evidence.blocks():
        law = prior @ Q
        n, steady = evidence.counts[cells], _steadied(evidence.counts[cells], N * law)
        influence = inverse @ np.divide(Q, law, out=np.zeros_like(Q), where=law > 0)
        told += influence @ n
        likely += influence @ steady
        square += apply_rows(rows, influence) ** 2 @ steady
    known = (
        apply_rows(rows, likely) ** 2 / (N or 1.0) if population else apply_rows(squared_rows(rows), likely)
    )
    return Moments(apply_rows(rows, told), np.maximum(square - known, 0.0))


def _steadied(counts: Array, expected: Array) -> Array:
    """Counts drawn towards the expected ones, as if one report of each cell had been seen before.

    The mean is kept where the expectation is right; large counts hardly move.

    >>> _steadied(np.array([0.0, 1.0, 1000.0]), np.array([0.3, 0.3, 900.0])).round(2).tolist()
    [0.23, 0.46, 999.89]
    """
    steadied: Array = expected * (counts + 1) / (expected + 1)
    return steadied


def _inverse_information(evidence: Evidence, p: Array, least: float) -> Array:
    """`J**-1` at `p`; refused where its least eigenvalue, scaled by `p`, is no larger than `least`."""
    scaled = np.zeros((len(p), len(p)))
    for _, Q in evidence.blocks():
        scaled += information(Q, p)
    size, vectors = np.linalg.eigh(scaled)
    if size[0] <= least:
        raise not_identifiable()
    half = np.sqrt(p)[:, None] * vectors
    inverse: Array = (half / size) @ half.T
    return inverse


def not_identifiable() -> NotIdentifiable:
    """The refusal of an estimate that reports alone cannot give."""
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
