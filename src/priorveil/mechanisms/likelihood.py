"""Counts of reports as evidence about a distribution, and the search for the one that makes them most likely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from priorveil.priors import Array

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


def most_likely(evidence: Evidence, start: Array) -> tuple[Array, int, bool]:
    """The distribution that makes the counts most likely; how many rounds it took, and whether it got there.

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
    seen = n > 0
    with np.errstate(divide="ignore"):
        return float(n[seen] @ np.log(evidence.channel.law(p)[seen]))
