"""Means and variances of answers from counts of reports.

* `posterior_moments` (mmse) adds up posteriors. It is best when the prior is right, and leans towards it when not.
* `unbiased_moments` inverts the channel: it is right on average, whatever the truth is.
* `mle_moments` finds the distribution under which the reports are most likely.

An answer is `rows @ histogram` for a matrix `rows` with a column per value; None stands for the identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from priorveil.errors import Hint, NotIdentifiable
from priorveil.priors import Array
from priorveil.queries import Distribution, information

_RANK = 1e-10  # eigenvalues of the information below this are not identified
_TOLERANCE = 1e-9  # mle: how far from the best mean log-likelihood it may stop
_ROUNDS = 5_000
_PATIENCE = 10  # mle: rounds between attempts of Newton's method
_NEWTON = 1 << 28  # mle: multiplications that one of its steps may take


class CellChannel(Protocol):
    """A channel `Q` from values to cells, as two products; it may be too large to write out."""

    def law(self, p: Array) -> Array:
        """`p @ Q`: the law of the cells when the values follow `p`."""
        ...

    def mean(self, weights: Array) -> Array:
        """`Q @ weights`: for every value the mean of the cells' weights."""
        ...

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """`Q` itself, some cells at a time: which ones, and their columns."""
        ...


@dataclass(frozen=True, eq=False)
class DenseChannel:
    """A channel that is written out.

    >>> DenseChannel(np.eye(2)).law(np.array([0.5, 0.5])).tolist()
    [0.5, 0.5]
    """

    matrix: Array

    def law(self, p: Array) -> Array:
        """`p @ Q`."""
        return np.asarray(p @ self.matrix)

    def mean(self, weights: Array) -> Array:
        """`Q @ weights`."""
        return np.asarray(self.matrix @ weights)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """`Q`, all at once."""
        yield slice(None), self.matrix


@dataclass(frozen=True, eq=False)
class Evidence:
    """How many reports fell into each cell, and the channel from values to cells."""

    counts: Array
    channel: CellChannel

    @property
    def shares(self) -> Array:
        """The counts as shares of all reports."""
        return self.counts / (float(self.counts.sum()) or 1.0)


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


# -- the distribution under which the reports are most likely ------------------------------------------------


def most_likely(evidence: Evidence, start: Array) -> tuple[Array, int, bool]:
    """The distribution that makes the counts most likely; how many rounds it took, and whether it converged.

    Expectation maximisation `p <- p * Q (n / (p Q)) / N`, extrapolated (SQUAREM); where it takes long and the
    channel is not too large, with steps of Newton's method between. The log-likelihood is concave, so the largest
    entry of its gradient less one bounds what is missing: the stopping rule is a proof.

    >>> evidence = Evidence(np.array([30.0, 10.0]), DenseChannel(np.eye(2)))
    >>> p, rounds, converged = most_likely(evidence, np.array([0.5, 0.5]))
    >>> p.round(6).tolist(), converged
    ([0.75, 0.25], True)
    """
    p, n = np.array(start, dtype=np.float64), evidence.shares
    for count in range(1, _ROUNDS + 1):
        gradient = _gradient(evidence, n, p)
        if gradient.max() - 1 <= _TOLERANCE:
            return p, count, True
        once = p * gradient
        twice = once * _gradient(evidence, n, once)
        p = _extrapolate(evidence, n, p, once, twice)
        if count % _PATIENCE == 0 and len(p) ** 2 * len(n) <= _NEWTON:
            p = _newton_steps(evidence, n, p)
    return p, _ROUNDS, False


def shortfall(evidence: Evidence, p: Array) -> float:
    """What `p` may lack of the best mean log-likelihood: `max_x sum_y n_y Q[x, y] / (p Q)_y - 1`, `n` shares.

    For any `q`, `log (q Q)_y - log (p Q)_y <= (q Q)_y / (p Q)_y - 1`; the mean over the reports is linear in
    `q`.

    >>> shortfall(Evidence(np.array([30.0, 10.0]), DenseChannel(np.eye(2))), np.array([0.75, 0.25]))
    0.0
    """
    return max(0.0, float(_gradient(evidence, evidence.shares, p).max()) - 1)


def _gradient(evidence: Evidence, n: Array, p: Array) -> Array:
    law = evidence.channel.law(p)
    return evidence.channel.mean(np.divide(n, law, out=np.zeros_like(law), where=n > 0))


def _extrapolate(evidence: Evidence, n: Array, p: Array, once: Array, twice: Array) -> Array:
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


def _newton_steps(evidence: Evidence, n: Array, p: Array) -> Array:
    """Newton's steps from `p`, at most ten, as long as each makes the counts likelier.

    What a step would make negative stays at a thousandth of what it was; a step that does not help is halved.
    """
    best = _log_likelihood(evidence, n, p)
    for _ in range(10):
        try:
            step = _newton_step(evidence, n, p)
        except np.linalg.LinAlgError:  # flat to the last bit: expectation maximisation goes on alone
            return p
        for length in 0.5 ** np.arange(8):
            far: Array = np.maximum(p + length * step, 1e-3 * p)
            far /= far.sum()
            reached = _log_likelihood(evidence, n, far)
            if reached > best:
                break
        else:
            return p
        p, best = far, reached
    return p


def _newton_step(evidence: Evidence, n: Array, p: Array) -> Array:
    """To the top of the parabola that fits the log-likelihood at `p`; what would be negative there goes to zero.

    In coordinates scaled by `sqrt(p)`, so that what is nearly zero moves little; one equation keeps the sum.
    """
    law, root = evidence.channel.law(p), np.sqrt(p)
    pull = np.divide(n, law, out=np.zeros_like(law), where=n > 0)
    bend = np.sqrt(np.divide(pull, law, out=np.zeros_like(law), where=n > 0))
    curve = 1e-12 * np.eye(len(p))
    for cells, Q in evidence.channel.blocks():
        scaled = root[:, None] * Q * bend[cells]
        curve += scaled @ scaled.T
    gradient = evidence.channel.mean(pull)
    inside = (p > 1e-4 / len(p)) | (gradient > 1)
    step = -p
    for _ in range(20):
        # What is outside gives its mass to the others: their sum grows by as much.
        root_in, lost = root[inside], float(p[~inside].sum())
        slope = root_in * (gradient[inside] - 1) + curve[np.ix_(inside, ~inside)] @ root[~inside]
        free, held = np.linalg.solve(curve[np.ix_(inside, inside)], np.stack([slope, root_in], axis=1)).T
        step = -p
        step[inside] = root_in * (free - held * (float(root_in @ free) - lost) / float(root_in @ held))
        if not (p + step < 0).any():
            break
        inside &= p + step >= 0
    return step


def _log_likelihood(evidence: Evidence, n: Array, p: Array) -> float:
    observed = n > 0
    with np.errstate(divide="ignore"):
        return float(n[observed] @ np.log(evidence.channel.law(p)[observed]))
