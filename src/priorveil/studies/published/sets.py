"""Reports that are sets of values: unary encoding and subset selection, measured without listing the sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from priorveil.channels import Channel
from priorveil.errors import NotIdentifiable, TooLarge
from priorveil.notions import Leakage, leakage
from priorveil.priors import Array, Label, Prior, PriorSet
from priorveil.queries import Histogram

_BITS = 12  # unary encoding on more values than this is never listed, report by report
_COLUMNS = 5_000  # nor are subsets, where there are more than this


@dataclass(frozen=True)
class Support:
    """A report *supports* some values: its own with probability `own`, any other with `other`.

    The context-free estimators of LDP need nothing else (Wang et al., "Locally differentially private
    protocols for frequency estimation", 2017).

    >>> Support(own=0.75, other=0.25).counts([40, 60], people=100).tolist()
    [30.0, 70.0]
    """

    own: float
    other: float

    def counts(self, supported: npt.ArrayLike, people: int) -> Array:
        """Unbiased counts `(s - people * other) / (own - other)`; `s[x]` is how many reports support `x`."""
        if self.own == self.other:
            raise NotIdentifiable("reports support every value equally: they say nothing, at epsilon zero")
        estimates: Array = (np.asarray(supported, dtype=np.float64) - people * self.other) / (
            self.own - self.other
        )
        return estimates

    def variance(self, people: int, share: float = 0.0) -> float:
        """The variance of one estimated count, when a `share` of the people has that value."""
        if self.own == self.other:
            return math.inf
        own = share * self.own * (1 - self.own)
        other = (1 - share) * self.other * (1 - self.other)
        return people * (own + other) / (self.own - self.other) ** 2


@dataclass(frozen=True)
class Unary:
    """Unary encoding: one bit for each value, each flipped on its own.

    `zero_to_one = Pr(1 | 0)` and `one_to_zero = Pr(0 | 1)`. Everything depends on the likelihood ratio
    `rho = (1 - q01) (1 - q10) / (q01 q10)` of a bit that is the value's own against one that is not.
    """

    zero_to_one: float
    one_to_zero: float

    @property
    def ratio(self) -> float:
        """`rho`."""
        q01, q10 = self.zero_to_one, self.one_to_zero
        return (1 - q01) * (1 - q10) / (q01 * q10)

    def channel(self, labels: tuple[Label, ...]) -> Channel:
        """All `2**d` reports, named by their bits; refused for more than 12 values."""
        d = len(labels)
        if d > _BITS:
            raise TooLarge(
                f"unary encoding of {d} values has 2**{d} reports: at most {_BITS} values are listed"
            )
        bits = (np.arange(2**d)[:, None] >> np.arange(d)[::-1]) & 1
        base = np.where(bits, self.zero_to_one, 1 - self.zero_to_one)
        own = np.where(bits, 1 - self.one_to_zero, self.one_to_zero)
        Q = base.prod(axis=1) * (own / base).T
        return Channel(Q, labels, ["".join(map(str, row)) for row in bits.tolist()])

    def leakage(self, prior: Prior | PriorSet) -> Leakage:
        """Exact for any number of values; the mutual information only where the channel can be listed."""
        d, rho = len(prior), self.ratio if len(prior) > 1 else 1.0
        light = float(masses(prior).min()) if d > 1 else 1.0
        odds = (
            prior.odds()
            if isinstance(prior, PriorSet)
            else np.divide.outer(prior.probabilities, prior.probabilities)
        )
        silent = (1 - self.zero_to_one) ** d
        own, other = (1 - self.one_to_zero) / self.zero_to_one, self.one_to_zero / (1 - self.zero_to_one)
        return Leakage(
            lip_lower=math.log(rho * (1 - light) + light),
            lip_upper=math.log(rho / (rho * light + 1 - light)),
            ldp=math.log(rho),
            mil=math.log(own * (1 - silent) + other * silent) if d > 1 else 0.0,
            mip=_information(self, prior) if d <= _BITS else None,
            di=math.log(rho * float(odds.max())),
            pufferfish=math.log(rho),
        )

    def mse(self, prior: Prior) -> float:
        """The histogram error per person with the paper's estimator, which reads each bit on its own.

        `sum_k P_k - P_k**2 ((1 - q10)**2 / Pr(1) + q10**2 / Pr(0))`.
        """
        P, q01, q10 = prior.probabilities, self.zero_to_one, self.one_to_zero
        one = P * (1 - q10) + (1 - P) * q01
        return float((P - P**2 * ((1 - q10) ** 2 / one + q10**2 / (1 - one))).sum())


@dataclass(frozen=True)
class Subsets:
    """Subset selection: a report is a set of `size` out of `domain` values.

    Sets that hold one's own value are `e**epsilon` times as likely as those that do not.
    """

    domain: int
    size: int
    epsilon: float

    @property
    def support(self) -> Support:
        """How often a set holds one's own value, and how often any other."""
        d, k = self.domain, self.size
        own = k * math.exp(self.epsilon) / (k * math.exp(self.epsilon) + d - k)
        return Support(own, (k - own) / (d - 1))

    def channel(self, labels: tuple[Label, ...]) -> Channel:
        """All the subsets, as columns; refused where there are more than 5000."""
        count = math.comb(self.domain, self.size)
        if count > _COLUMNS:
            raise TooLarge(
                f"{self.domain} values have more than {_COLUMNS} subsets of {self.size}: too many to list"
            )
        chosen = list(combinations(range(self.domain), self.size))
        W = np.ones((self.domain, count))
        for y, subset in enumerate(chosen):
            W[list(subset), y] = math.exp(self.epsilon)
        return Channel.from_weights(W, labels)

    def leakage(self, prior: Prior | PriorSet) -> Leakage:
        """Exact for any number of values; the mutual information only where the channel can be listed."""
        a, d, k = math.exp(self.epsilon), self.domain, self.size
        ordered = np.sort(prior.probabilities) if isinstance(prior, Prior) else None
        light, heavy = (
            (0.0, 1.0) if ordered is None else (float(ordered[:k].sum()), float(ordered[-k:].sum()))
        )
        spread = math.inf if ordered is None else float(ordered[-1] / ordered[0])
        listed = math.comb(d, k) <= _COLUMNS
        return Leakage(
            lip_lower=math.log(a * heavy + 1 - heavy),
            lip_upper=math.log(a / (a * light + 1 - light)),
            ldp=self.epsilon,
            mil=math.log(d * a / (k * a + d - k)),
            mip=_information(self, prior) if listed else None,
            di=math.log(a * spread),
            pufferfish=self.epsilon,
        )

    def mse(self, prior: Prior) -> float:
        """The histogram error per person with the posterior: in closed form for a uniform prior."""
        P, d, k = prior.probabilities, self.domain, self.size
        if np.ptp(P) > 0:
            return Histogram().error(self.channel(prior.labels), prior)
        a = math.exp(self.epsilon)
        return 1 - (k * a**2 + d - k) / (k * a + d - k) ** 2


def masses(prior: Prior | PriorSet) -> Array:
    """The smallest probability of each value."""
    return prior.probabilities if isinstance(prior, Prior) else prior.extremes(np.eye(len(prior)))[0]


def _information(mechanism: Unary | Subsets, prior: Prior | PriorSet) -> float | None:
    return leakage(mechanism.channel(prior.labels), prior).mip
