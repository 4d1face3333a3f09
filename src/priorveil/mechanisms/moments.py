"""Means and variances of answers: what counts of reports say, by which method.

* `posterior_moments` (mmse) adds up posteriors. It is best when the prior is right, and leans towards it when not.
* `unbiased_moments` inverts the channel: right on average whatever the truth is.
* `mle_moments` finds the distribution under which the reports are most likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorveil.errors import NotIdentifiable
from priorveil.mechanisms.likelihood import Evidence, most_likely, shortfall
from priorveil.priors import Array
from priorveil.queries import information

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


def posterior_moments(evidence: Evidence, prior: Array, scores: Array | None = None) -> Moments:
    """The mmse answer: sums over reports of posterior means and variances.

    `scores`, one number per value, asks for their sum; without them it is the histogram.

    >>> from priorveil.mechanisms.likelihood import Cells
    >>> posterior_moments(Cells(np.array([2.0, 0.0]), np.eye(2)), np.array([0.5, 0.5])).mean.tolist()
    [2.0, 0.0]
    """
    size = len(prior) if scores is None else 1
    total, spread = np.zeros(size), np.zeros(size)
    for cells, Q in evidence.blocks():
        joint = prior[:, None] * Q
        law = joint.sum(axis=0)
        seen = law > 0
        posterior, n = joint[:, seen] / law[seen], evidence.counts[cells][seen]
        mean = posterior if scores is None else (scores @ posterior)[None]
        square = posterior if scores is None else (scores**2 @ posterior)[None]
        total += mean @ n
        spread += np.maximum(square - mean**2, 0.0) @ n
    return Moments(total, spread)


def unbiased_moments(evidence: Evidence, prior: Array, scores: Array | None, population: bool) -> Moments:
    """The best linear unbiased answer at the prior: `J**-1 r_y` is added up over the reports.

    Its variance counts the noise of the reports given the people; with `population`, also that the people are
    a sample of those about whom something is to be learnt. A report that is rare may tell much, and be missing by
    luck: so counts near zero are drawn towards those that are expected under the prior (`_steadied`).
    """
    inverse = _inverse_information(evidence, prior, _RANK)
    N = float(evidence.counts.sum())
    told, likely = np.zeros((2, len(prior)))
    square = np.zeros(len(prior) if scores is None else 1)
    for cells, Q in evidence.blocks():
        law = prior @ Q
        n, steady = evidence.counts[cells], _steadied(evidence.counts[cells], N * law)
        influence = inverse @ np.divide(Q, law, out=np.zeros_like(Q), where=law > 0)
        psi = influence if scores is None else (scores @ influence)[None]
        told += influence @ n
        likely += influence @ steady
        square += psi**2 @ steady
    if population:
        known = (likely if scores is None else np.array([scores @ likely])) ** 2 / (N or 1.0)
    else:
        known = likely if scores is None else np.array([scores**2 @ likely])
    mean = told if scores is None else np.array([scores @ told])
    return Moments(mean, np.maximum(square - known, 0.0))


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
        "reports of this plan do not determine the distribution, so only method='mmse' can read them; "
        "to learn the distribution, design the plan with query=Distribution()"
    )


def mle_moments(evidence: Evidence, prior: Array, scores: Array | None, population: bool) -> Moments:
    """The maximum likelihood answer, with the variance that the Fisher information gives at it."""
    p, rounds, converged = most_likely(evidence, prior)
    N = float(evidence.counts.sum())
    # At least half a person each: on the boundary there is no information to invert.
    inside = np.maximum(p, 0.5 / max(N, 1.0))
    covariance = _inverse_information(evidence, inside / inside.sum(), _RANK * 1e-3) - np.outer(p, p)
    if not population:
        covariance = covariance - (np.diag(p) - np.outer(p, p))
    lacking = shortfall(evidence, p)
    if scores is None:
        return Moments(N * p, N * np.maximum(np.diag(covariance), 0.0), rounds, converged, lacking)
    spread = np.array([max(0.0, N * float(scores @ covariance @ scores))])
    return Moments(np.array([N * (scores @ p)]), spread, rounds, converged, lacking)
