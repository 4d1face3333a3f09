"""Queries about one person's value: the best guess of it, and any convex gain from knowing its posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.errors import InvalidInput
from priorveil.information import hi_minus_one
from priorveil.priors import Budget, Prior
from priorveil.queries.query import Criterion, Query, complement, corner_utility


@dataclass(frozen=True)
class Guess(Query):
    """Which value a person has. The error is the probability that the best guess is wrong (Hamming).

    >>> Guess().no_report(Prior([0.2, 0.8])).__round__(6)
    0.2
    """

    criterion = Criterion.WRONG_GUESSES
    error_unit = "probability of a wrong guess"

    def require_fits(self, prior: Prior) -> None:
        """A guess fits every prior: the largest of linear functions is convex."""

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`max_x P[x] r[x]`."""
        return np.asarray((columns * prior.probabilities).max(axis=1))

    def error(self, channel: Channel, prior: Prior) -> float:
        """The mass of all values except the likeliest one, summed over the reports. This needs no subtraction from one.

        >>> Guess().error(Channel([[1.0], [1.0]]), Prior([1 - 1e-11, 1e-11]))
        1e-11
        """
        live = channel.drop_unused()
        joint = np.asarray(live.align(prior).probabilities[:, None] * live.matrix)
        np.put_along_axis(joint, joint.argmax(axis=0)[None], 0.0, axis=0)
        return float(joint.sum())

    def no_report(self, prior: Prior) -> float:
        """The probability that the value is not the likeliest one."""
        return float(complement(prior.probabilities).min())

    def closed_form_bound(self, prior: Prior, budget: Budget) -> float:
        """One minus the largest posterior, `max_x P[x] lo + min(P[x] (hi - lo), 1 - lo)`."""
        no_report, largest = self.no_report(prior), float(prior.probabilities.max())
        return max(budget.lo * no_report, no_report - largest * float(hi_minus_one(budget.upper)))


@dataclass(frozen=True)
class Convex(Query):
    """Any convex utility of the posterior: what a curator gains from knowing `Pr(X | y)`.

    `gain` maps posteriors, an array (K, d) with a distribution in each row, to K numbers; it has to be
    convex. The error is what is lost against knowing the value itself. A gain that is not convex on a sample of
    posteriors is refused. The gain is code, so a plan with this query cannot be saved.

    >>> import math
    >>> entropy = Convex(lambda p: (p * np.log(np.maximum(p, 1e-300))).sum(axis=1))
    >>> entropy.no_report(Prior([0.5, 0.5])) == math.log(2)
    True
    """

    gain: Callable[[Array], Array]
    criterion = Criterion.LOST_GAIN
    error_unit = "loss of gain per person"
    savable = False
    utility_argument = "gain"

    def ceiling(self, prior: Prior) -> float:
        """The gain when the value itself is known."""
        return corner_utility(self, prior, 0.0)

    def utility(self, columns: Array, prior: Prior) -> Array:
        """`gain(P * r)`."""
        return self._gains(columns * prior.probabilities)

    def _gains(self, posteriors: Array) -> Array:
        gains = np.asarray(self.gain(posteriors), dtype=np.float64)
        if gains.shape != (len(posteriors),) or not np.isfinite(gains).all():
            advice = "it must give one finite number for each row of posteriors"
            raise InvalidInput("gain", gains.shape, advice)
        return gains
