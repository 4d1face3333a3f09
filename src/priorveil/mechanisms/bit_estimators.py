"""Estimates from the counts of set bits, for all mechanisms whose reports are rows of bits.

The bit of a value `x` is set with probability `s_x = q + (p - q) P_x`: `p` for people who have the value, `q` for
others. Two bits are both set with probability `t + u (P_x + P_z)`. These four numbers are all that the estimates need:

* **unbiased** inverts the noise of each bit, `(ones - N q) / (p - q)`.
* **mmse** under another prior than that of the scores adds up posteriors given single bits (the paper's estimator).
* **mle** maximises the likelihood of the bits as if they were reported by different people (a composite likelihood:
  consistent, and a distribution, where unbiased may be negative).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from priorveil.mechanisms.estimators import (
    DenseChannel,
    Evidence,
    Moments,
    apply_rows,
    most_likely,
    shortfall,
    squared_rows,
)
from priorveil.priors import Array

_BITWISE = (
    "the prior is right: the tally was scored under the plan's prior, so under this one posteriors are given each "
    "value's own bit, not the whole report; the spread is that of such posteriors"
)
_COMPOSITE = (
    "nothing about the prior, many reports: the likelihood is a composite one, of the bits as if each came from "
    "another person; the spread is the sampling noise of the reports"
)


class BitCounts(NamedTuple):
    """A tally of rows of bits: how many, ones per value, and the sums of scores (of all, and per set bit)."""

    reports: float
    ones: Array
    base: float
    scores: Array


class BitLaw(Protocol):
    """The law of the bits of a report, in floats."""

    @property
    def p(self) -> float:
        """The chance that the bit of the true value is set."""

    @property
    def q(self) -> float:
        """The chance that the bit of any other value is set."""

    @property
    def contrast(self) -> float:
        """`p - q`: how much likelier a bit is set for its own value."""

    @property
    def pair_chances(self) -> tuple[float, float]:
        """`(t, u)`: the bits of two values `x` and `z` are both set with the chance `t + u (P_x + P_z)`."""


def set_chances(law: BitLaw, shares: Array) -> Array:
    """How likely each bit is set when the values follow `shares`."""
    return np.asarray(law.q + law.contrast * shares)


def second_moments(law: BitLaw, shares: Array, rows: Array | None) -> Array:
    """`E[(a . y)^2]` for every row `a`; None stands for the identity.

    `E[y y']` has the chances of bits on the diagonal, and those of pairs elsewhere.
    """
    chances, (t, u) = set_chances(law, shares), law.pair_chances
    if rows is None:
        return chances
    total = rows.sum(axis=1)
    own = rows**2 @ (chances - t - 2 * u * shares)
    return np.asarray(own + t * total**2 + 2 * u * total * (rows @ shares))


def unbiased_spread(
    per_person: Array, rows: Array | None, shares: Array, N: float, population: bool
) -> Array:
    """The variance of an unbiased answer from its second moment per person; see `estimators.known_part`."""
    known = apply_rows(rows, shares) ** 2 if population else apply_rows(squared_rows(rows), shares)
    return N * np.maximum(per_person - known, 0.0)


def ones_moments(law: BitLaw, counts: BitCounts, rows: Array | None, population: bool) -> Moments:
    """`(ones - N q) / (p - q)`, with the variance of the reports; with `population`, people are a sample."""
    N = counts.reports
    n = (counts.ones - N * law.q) / law.contrast
    shares = n / (N or 1.0)
    # The estimate of a person is (a . y - q sum(a)) / (p - q): its second moment follows from that of a . y.
    shift = law.q * (1.0 if rows is None else rows.sum(axis=1))
    mean = apply_rows(rows, set_chances(law, shares))
    square = (second_moments(law, shares, rows) - 2 * shift * mean + shift**2) / law.contrast**2
    return Moments(apply_rows(rows, n), unbiased_spread(square, rows, shares, N, population))


def bitwise_posteriors(law: BitLaw, counts: BitCounts, P: Array, rows: Array | None) -> Moments:
    """Posteriors given each value's own bit, added up."""
    N, chances = counts.reports, set_chances(law, P)
    if_set, if_clear = P * law.p / chances, P * (1 - law.p) / (1 - chances)
    histogram = counts.ones * if_set + (N - counts.ones) * if_clear
    if rows is None:
        left = P - chances * if_set**2 - (1 - chances) * if_clear**2
        return Moments(histogram, N * left, assumes=_BITWISE)
    # The error of a row `a` is the variance of `a_X - sum_x each_x y_x`.
    each = rows * (if_set - if_clear)
    cross = law.q * each.sum(axis=1) * (rows @ P) + law.contrast * ((rows * each) @ P)
    square = rows**2 @ P - 2 * cross + second_moments(law, P, each)
    error = square - (rows @ P - each @ chances) ** 2
    return Moments(rows @ histogram, N * np.maximum(error, 0.0), assumes=_BITWISE)


def most_likely_ones(
    law: BitLaw, counts: BitCounts, start: Array, rows: Array | None, variance: Callable[[Array], Array]
) -> Moments:
    """The distribution that makes the counts of ones most likely, in people; `variance` takes its shares.

    Every bit counts as a report of its own, with the cells "bit k is set" and then "bit k is clear".
    """
    d = len(start)
    chances = np.full((d, d), law.q) + law.contrast * np.eye(d)
    cells = np.concatenate([counts.ones, counts.reports - counts.ones])
    evidence = Evidence(cells, DenseChannel(np.hstack([chances, 1 - chances]) / d))
    shares, rounds, converged = most_likely(evidence, start)
    mean = counts.reports * apply_rows(rows, shares)
    return Moments(mean, variance(shares), rounds, converged, shortfall(evidence, shares), _COMPOSITE)
