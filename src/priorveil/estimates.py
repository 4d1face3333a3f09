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
from typing import Protocol

import numpy as np

from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.priors import Array, Label
from priorveil.queries import information

SUM = ("sum",)  # the only label of an estimate that is one number

ASSUMES = {
    "mmse": "the prior is right: the spread is that of the posterior",
    "unbiased": "nothing about the prior: the spread is the sampling noise of the reports",
    "mle": "nothing about the prior, many reports: the spread follows from the Fisher information",
}

_ENOUGH = 5.0  # the smallest expected count of a cell in the test of the prior
_RANK = 1e-10  # eigenvalues of the information below this are not identified
_TOLERANCE = 1e-9  # mle: how far from the best mean log-likelihood it may stop
_ROUNDS = 5_000


class Evidence(Protocol):
    """A tally as likelihoods: `counts` of cells, and the channel from values to cells as two products."""

    @property
    def counts(self) -> Array:
        """How many reports fell into each cell."""
        ...

    def law(self, p: Array) -> Array:
        """`p @ Q`: the law of the cells when the values follow `p`."""
        ...

    def mean(self, weights: Array) -> Array:
        """`Q @ weights`: for every value the mean of the cells' weights."""
        ...

    def matrix(self) -> Array:
        """`Q` itself, where it fits."""
        ...


@dataclass(frozen=True, eq=False)
class Cells:
    """Evidence with its channel written out.

    >>> Cells(np.array([3.0, 1.0]), np.eye(2)).law(np.array([0.5, 0.5])).tolist()
    [0.5, 0.5]
    """

    counts: Array
    likelihood: Array

    def law(self, p: Array) -> Array:
        """`p @ Q`."""
        law: Array = p @ self.likelihood
        return law

    def mean(self, weights: Array) -> Array:
        """`Q @ weights`."""
        mean: Array = self.likelihood @ weights
        return mean

    def matrix(self) -> Array:
        """`Q`."""
        return self.likelihood


@dataclass(frozen=True)
class Estimate:
    """An answer: `values` with their `std_error`, how it was found and what its intervals assume.

    For a histogram or a distribution there is one value per label, in people; for a sum, one value. A search
    (mle) says how many `rounds` it took, whether it `converged`, and its `shortfall`: a proven bound on the
    mean log-likelihood that it may still lack.
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

    @property
    def proportions(self) -> Array:
        """The values as shares of all reports."""
        return self.values / max(self.reports, 1)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of normal intervals that hold the truth with this probability, one by one."""
        from statistics import NormalDist

        if not 0 < level < 1:
            raise InvalidInput("level", level, "give a probability, such as 0.95")
        width = NormalDist().inv_cdf((1 + level) / 2) * self.std_error
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


@dataclass(frozen=True)
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


def posterior_moments(cells: Cells, prior: Array, scores: Array | None = None) -> Moments:
    """The mmse answer: sums over reports of posterior means and variances.

    `scores`, one number per value, asks for their sum; without them it is the histogram.

    >>> posterior_moments(Cells(np.array([2.0, 0.0]), np.eye(2)), np.array([0.5, 0.5])).mean.tolist()
    [2.0, 0.0]
    """
    law = cells.law(prior)
    seen = law > 0
    posterior = prior[:, None] * cells.likelihood[:, seen] / law[seen]
    n = cells.counts[seen]
    if scores is None:
        return Moments(posterior @ n, (posterior * (1 - posterior)) @ n)
    mean = scores @ posterior
    spread = np.maximum(scores**2 @ posterior - mean**2, 0.0)
    return Moments(np.array([mean @ n]), np.array([spread @ n]))


def unbiased_moments(cells: Cells, prior: Array, scores: Array | None, population: bool) -> Moments:
    """The best linear unbiased answer at the prior: `J**-1 r_y` is added up over the reports.

    Its variance counts the noise of the reports given the people; with `population`, also that the people are
    a sample of those about whom something is to be learnt.
    """
    influence = influences(cells.likelihood, prior)
    psi = influence if scores is None else (scores @ influence)[None]
    n, N = cells.counts, float(cells.counts.sum())
    mean = psi @ n
    if population:
        variance = psi**2 @ n - mean**2 / max(N, 1.0)
    else:
        told = influence @ n
        variance = psi**2 @ n - (told if scores is None else np.array([scores**2 @ told]))
    return Moments(mean, np.maximum(variance, 0.0))


def influences(Q: Array, P: Array) -> Array:
    """`J**-1 r_y` for every report: what it adds to the unbiased histogram. Refused where `J` is singular."""
    size, vectors = np.linalg.eigh(information(Q, P))
    if size[0] <= _RANK:
        raise not_identifiable()
    law = P @ Q
    root = np.sqrt(P)
    with np.errstate(divide="ignore", invalid="ignore"):
        lift = np.where(law > 0, Q / law, 0.0)
    found: Array = root[:, None] * (vectors @ ((vectors.T @ (root[:, None] * lift)) / size[:, None]))
    return found


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
    Q = evidence.matrix()
    # At least half a person each: on the boundary there is no information to invert.
    inside = np.maximum(p, 0.5 / max(N, 1.0))
    covariance = _inverse_information(Q, inside / inside.sum()) - np.outer(p, p)
    if not population:
        covariance = covariance - (np.diag(p) - np.outer(p, p))
    lacking = shortfall(evidence, p)
    if scores is None:
        return Moments(N * p, N * np.maximum(np.diag(covariance), 0.0), rounds, converged, lacking)
    spread = np.array([max(0.0, N * float(scores @ covariance @ scores))])
    return Moments(np.array([N * (scores @ p)]), spread, rounds, converged, lacking)


def _inverse_information(Q: Array, p: Array) -> Array:
    size, vectors = np.linalg.eigh(information(Q, p))
    if size[0] <= _RANK * 1e-3:
        raise not_identifiable()
    half = np.sqrt(p)[:, None] * vectors
    inverse: Array = (half / size) @ half.T
    return inverse


def most_likely(evidence: Evidence, start: Array) -> tuple[Array, int, bool]:
    """The distribution that makes the counts most likely; how many rounds it took, and whether it got there.

    Expectation maximisation `p <- p * Q (n / (p Q)) / N`, extrapolated (SQUAREM). The log-likelihood is
    concave, so the largest entry of its gradient less one bounds what is missing: the stopping rule is a
    proof.

    >>> p, rounds, converged = most_likely(Cells(np.array([30.0, 10.0]), np.eye(2)), np.array([0.5, 0.5]))
    >>> p.round(6).tolist(), converged
    ([0.75, 0.25], True)
    """
    p, n = np.array(start, dtype=np.float64), evidence.counts / max(float(evidence.counts.sum()), 1.0)
    for count in range(1, _ROUNDS + 1):
        gradient = _gradient(evidence, n, p)
        if gradient.max() - 1 <= _TOLERANCE:
            return p, count, True
        once = p * gradient
        twice = once * _gradient(evidence, n, once)
        p = _extrapolated(evidence, n, p, once, twice)
    return p, _ROUNDS, False


def shortfall(evidence: Evidence, p: Array) -> float:
    """What `p` may lack of the best mean log-likelihood: `max_x sum_y n_y Q[x, y] / (p Q)_y - 1`, `n` shares.

    For any `q`, `log (q Q)_y - log (p Q)_y <= (q Q)_y / (p Q)_y - 1`; the mean over the reports is linear in
    `q`.

    >>> shortfall(Cells(np.array([30.0, 10.0]), np.eye(2)), np.array([0.75, 0.25]))
    0.0
    """
    n = evidence.counts / max(float(evidence.counts.sum()), 1.0)
    return max(0.0, float(_gradient(evidence, n, p).max()) - 1)


def _gradient(evidence: Evidence, n: Array, p: Array) -> Array:
    law = evidence.law(p)
    return evidence.mean(np.divide(n, law, out=np.zeros_like(law), where=n > 0))


def _extrapolated(evidence: Evidence, n: Array, p: Array, once: Array, twice: Array) -> Array:
    """A step along the path of the last two rounds, as long as the likelihood does not suffer."""
    step, bend = once - p, twice - 2 * once + p
    size = float(np.linalg.norm(bend))
    length = max(1.0, float(np.linalg.norm(step)) / size) if size > 0 else 1.0
    floor = _log_likelihood(evidence, n, twice)
    while length > 1.0:
        far = p + 2 * length * step + length**2 * bend
        if far.min() > 0:
            far /= far.sum()
            if _log_likelihood(evidence, n, far) >= floor:
                return far
        length = (length + 1) / 2 if length > 1.1 else 1.0
    return twice


def _log_likelihood(evidence: Evidence, n: Array, p: Array) -> float:
    seen = n > 0
    with np.errstate(divide="ignore"):
        return float(n[seen] @ np.log(evidence.law(p)[seen]))


def prior_check(counts: Array, law: Array) -> float | None:
    """The p-value of the counts under the known law of the cells (chi-square, rare cells merged).

    Small where the prior is wrong or someone tampers with the reports; the test cannot tell which. None where
    there are too few reports or too few cells to say anything.

    >>> prior_check(np.array([50.0, 50.0]), np.array([0.5, 0.5]))
    1.0
    """
    from scipy.special import chdtrc  # imported when used: it is slow to load

    N = float(counts.sum())
    order = np.argsort(-law, kind="stable")
    expected, seen = N * law[order], counts[order]
    common = int(np.count_nonzero(expected >= _ENOUGH))
    if common < len(expected):
        expected = np.append(expected[:common], expected[common:].sum())
        seen = np.append(seen[:common], seen[common:].sum())
        if expected[-1] < _ENOUGH and common:
            expected[-2:], seen[-2:] = [expected[-2:].sum(), 0], [seen[-2:].sum(), 0]
            expected, seen = expected[:-1], seen[:-1]
    if len(expected) < 2 or N == 0:
        return None
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return float(chdtrc(len(expected) - 1, statistic))


def mean_check(moved: Array, square: Array, reports: int) -> float | None:
    """The p-value of posteriors that should, on average, be the priors: for people with a prior each.

    `moved` is the sum over reports of posterior less prior, `square` that of the outer products. If the
    priors are right, `moved' square**-1 moved` follows chi-square, a degree of freedom for every direction
    the reports can move. None where there are too few reports.

    >>> mean_check(np.array([0.0, 0.0]), np.array([[9.0, -9.0], [-9.0, 9.0]]), 100)
    1.0
    """
    from scipy.special import chdtrc  # imported when used: it is slow to load

    size, vectors = np.linalg.eigh(square)
    seen = size > _RANK * max(float(size[-1]), 1e-300)
    if not seen.any() or reports < 2 * _ENOUGH * seen.sum():
        return None
    statistic = float(((vectors[:, seen].T @ moved) ** 2 / size[seen]).sum())
    return float(chdtrc(int(seen.sum()), statistic))


def combined(estimates: list[Estimate]) -> Estimate:
    """The estimate over several cohorts together: values and variances add up.

    >>> one = Estimate(np.array([1.0]), np.array([3.0]), "mmse", "", 1, ("a",))
    >>> combined([one, replace(one, std_error=np.array([4.0]))]).std_error.tolist()
    [5.0]
    """
    if not estimates:
        raise InvalidInput("estimates", estimates, "give at least one")
    first = estimates[0]
    if any(e.labels != first.labels for e in estimates):
        raise InvalidInput("estimates", [e.labels for e in estimates], "all need the same labels")
    checks = [e.prior_check for e in estimates if e.prior_check is not None]
    least = min(1.0, len(checks) * min(checks)) if checks else None
    return replace(
        first,
        values=np.sum([e.values for e in estimates], axis=0),
        std_error=np.sqrt(np.sum([e.std_error**2 for e in estimates], axis=0)),
        assumes="; ".join(dict.fromkeys(e.assumes for e in estimates)),
        reports=sum(e.reports for e in estimates),
        prior_check=None if least is None or math.isnan(least) else least,
        converged=all(e.converged for e in estimates),
    )
