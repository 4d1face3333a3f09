"""Estimates: what a tally says, by which method, how surely, and under which assumption.

* **mmse** adds up posteriors. It is best when the prior is right, and leans towards it when it is not.
* **unbiased** inverts the channel: right on average whatever the truth is. May be negative; `project` mends
  that as a step of its own.
* **mle** finds the distribution under which the reports are most likely (expectation maximisation).

The last two need a channel that identifies the distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.likelihoods import Evidence, most_likely, shortfall
from priorveil.priors import Array, Label
from priorveil.priors.numbers import places
from priorveil.queries import information

SUM = ("sum",)  # the only label of an estimate that is one number

ASSUMES = {
    "mmse": "the prior is right: the spread is that of the posterior",
    "unbiased": "nothing about the prior: the spread is the sampling noise of the reports",
    "mle": "nothing about the prior, many reports: the spread follows from the Fisher information",
}

_RANK = 1e-10  # eigenvalues of the information below this are not identified


@dataclass(frozen=True, eq=False)
class Estimate:
    """An answer: `values` with their `std_error`, how it was found and what its intervals assume.

    For a histogram or a distribution there is one value per label, in people; for a sum, one value. A search
    (mle) says how many `rounds` it took, whether it `converged`, and its `shortfall`: a proven bound on the
    mean log-likelihood that it may still lack. Where people have weights, a histogram adds these up, and `total` is
    what all of them have together.
    """

    values: Array
    std_error: Array
    method: str
    assumes: str
    reports: int
    labels: tuple[Label, ...]
    prior_check: float | None = None
    rounds: int | None = None
    converged: bool = True
    shortfall: float | None = None
    total: float | None = None

    @property
    def proportions(self) -> Array:
        """The values as shares of all reports, or of the total weight."""
        whole = max(self.reports, 1) if self.total is None else self.total
        if whole <= 0:
            raise InvalidInput("self", whole, "weights that do not add up to more than zero have no shares")
        return self.values / whole

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of normal intervals that hold the truth with this probability, one by one."""
        from statistics import NormalDist

        if not 0 < level < 1:
            raise InvalidInput("level", level, "give a probability, such as 0.95")
        width = -NormalDist().inv_cdf((1 - level) / 2) * self.std_error  # 1 + level could round to 2
        return self.values - width, self.values + width

    def project(self) -> Estimate:
        """The nearest histogram without negative counts (Euclidean projection). Biased, hence its own step.

        >>> e = Estimate(np.array([-1.0, 4.0]), np.ones(2), "unbiased", "", 3, ("a", "b"))
        >>> e.project().values.tolist()
        [0.0, 3.0]
        """
        if self.labels == SUM:
            raise InvalidInput("self", "a sum", "only a histogram can be projected; a sum may be negative")
        total = float(self.values.sum())
        return replace(self, values=_projected(self.values, total), method=f"{self.method}, projected")

    def __str__(self) -> str:
        low, high = self.interval()
        lines = [f"{'value':<20} {'estimate':>12} {'95 % interval':>25}"]
        for label, v, a, b in zip(self.labels, self.values, low, high, strict=True):
            lines.append(f"{str(label)[:20]:<20} {v:>12.1f} {a:>12.1f} {b:>12.1f}")
        if not self.converged:
            lines.append(
                f"the search stopped early: the mean log-likelihood may lack {self.shortfall or 0:.1g}"
            )
        return "\n".join(lines)


def _projected(values: Array, total: float) -> Array:
    """The nearest non-negative vector with the same total; nothing at all where that is not positive."""
    if total <= 0:
        return np.zeros_like(values)
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    shift = over[np.flatnonzero(falling > over)[-1]]
    projected: Array = np.maximum(values - shift, 0.0)
    return projected


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

    >>> from priorveil.likelihoods import Cells
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


def combined(estimates: list[Estimate]) -> Estimate:
    """The estimate over several cohorts together: values and variances add up, label by label.

    All have the same labels; the answer has them in the order of the first.

    >>> one = Estimate(np.array([1.0]), np.array([3.0]), "mmse", "", 1, ("a",))
    >>> combined([one, replace(one, std_error=np.array([4.0]))]).std_error.tolist()
    [5.0]
    """
    if not estimates:
        raise InvalidInput("estimates", estimates, "give at least one")
    first = estimates[0]
    orders = [_order(e.labels, first.labels) for e in estimates]
    checks = [e.prior_check for e in estimates if e.prior_check is not None]
    least = min(1.0, len(checks) * min(checks)) if checks else None
    unweighted = all(e.total is None for e in estimates)
    return replace(
        first,
        values=np.sum([e.values[order] for e, order in zip(estimates, orders, strict=True)], axis=0),
        std_error=np.sqrt(
            np.sum([e.std_error[order] ** 2 for e, order in zip(estimates, orders, strict=True)], axis=0)
        ),
        assumes="; ".join(dict.fromkeys(e.assumes for e in estimates)),
        reports=sum(e.reports for e in estimates),
        prior_check=None if least is None or math.isnan(least) else least,
        converged=all(e.converged for e in estimates),
        total=None if unweighted else sum(e.reports if e.total is None else e.total for e in estimates),
    )


def _order(labels: tuple[Label, ...], wanted: tuple[Label, ...]) -> list[int]:
    """Where each of the `wanted` labels stands among `labels`, which have to be the same.

    >>> _order(("a", "b", "c"), ("c", "a", "b"))
    [2, 0, 1]
    """
    odd = set(labels) ^ set(wanted)
    if odd:
        name = next(label for label in (*wanted, *labels) if label in odd)
        advice = f"all need the same labels, and {name!r} is in one of them only"
        raise InvalidInput("estimates", "of different labels", advice)
    return list(places(labels, wanted))
