"""The closed forms of the paper, and the LDP mechanisms that it compares with, as printed.

Each function returns a `Published`: the channel, the level that is claimed for it, and the leakage that it
really has. Some of them leak more than they claim, as their docstrings say. `priorveil.design` never returns
one of those.

Throughout, `Q[x, y] = Pr(Y = y | X = x)` and `tau = 1 / (1 + e**eps)`. References without a name are to
Jiang, Li and Tandon, "Local information privacy and its application to privacy-preserving data aggregation".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.designs import closed_forms
from priorveil.errors import Infeasible, InvalidInput, NotIdentifiable, TooLarge
from priorveil.mechanisms.bit_law import BitLaw, unary_law
from priorveil.notions import Leakage, PriorOrSet, as_prior_or_set, leakage, leakage_bounds
from priorveil.priors import Budget, Label, Prior, PriorSet, Secret
from priorveil.queries import Histogram
from priorveil.reading.bit_covariances import bitwise_form

_MOST_BITS = 12  # a unary encoding of more values is not written out report by report


@dataclass(frozen=True)
class Support:
    """A report *supports* some values: its own with probability `own`, any other with probability `other`.

    The context-free estimators of LDP need nothing else (Wang et al., "Locally differentially private
    protocols for frequency estimation", 2017).

    >>> Support(own=0.75, other=0.25).counts([40, 60], people=100).tolist()
    [30.0, 70.0]
    """

    own: float
    other: float

    def counts(self, supporting: npt.ArrayLike, people: int) -> Array:
        """Unbiased counts `(s - people * other) / (own - other)`; `s[x]` is how many reports support `x`."""
        if self.own == self.other:
            raise NotIdentifiable("at epsilon 0 reports say nothing about the value: use a larger epsilon")
        noise = people * self.other
        return np.asarray((np.asarray(supporting, dtype=np.float64) - noise) / (self.own - self.other))

    def variance(self, people: int, share: float = 0.0) -> float:
        """The variance of one estimated count, when a `share` of the people has that value."""
        if self.own == self.other:
            return math.inf
        own = share * self.own * (1 - self.own)
        other = (1 - share) * self.other * (1 - self.other)
        return people * (own + other) / (self.own - self.other) ** 2


@dataclass(frozen=True)
class UnaryEncoding:
    """Unary encoding: one bit for each value, and each bit is flipped on its own.

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

    @property
    def law(self) -> BitLaw:
        """The law of its reports."""
        return unary_law(self.ratio, self.zero_to_one)

    def channel(self, labels: tuple[Label, ...]) -> Channel:
        """All `2**d` reports, named by their bits. More than 12 values raise `TooLarge`."""
        d = len(labels)
        if d > _MOST_BITS:
            size = f"unary encoding of {d} values has 2**{d} reports"
            raise TooLarge(f"{size}: at most {_MOST_BITS} are listed")
        bits = (np.arange(2**d)[:, None] >> np.arange(d)[::-1]) & 1
        base = np.where(bits, self.zero_to_one, 1 - self.zero_to_one)
        own = np.where(bits, 1 - self.one_to_zero, self.one_to_zero)
        Q = base.prod(axis=1) * (own / base).T
        return Channel(Q, labels, ["".join(map(str, row)) for row in bits.tolist()])

    def leakage(self, prior: PriorOrSet) -> Leakage:
        """All levels for at most 12 values; for more, LIP and LDP are exact and the others upper bounds."""
        if len(prior) <= _MOST_BITS:
            return leakage(self.channel(prior.labels), prior)
        rho, rarest = self.ratio, float(_least_masses(prior).min())
        down, up = math.log(rho * (1 - rarest) + rarest), math.log(rho / (rho * rarest + 1 - rarest))
        return leakage_bounds(down, up, math.log(rho), prior)

    def mse(self, prior: Prior) -> float:
        """The histogram error per person with the paper's estimator, which reads each bit on its own.

        `sum_k P_k - P_k**2 ((1 - q10)**2 / Pr(1) + q10**2 / Pr(0))`.
        """
        return float(bitwise_form(self.law, prior.probabilities).variances(None).sum())


@dataclass(frozen=True)
class Published:
    """A mechanism as printed: the level `claimed` and its `notion`, and the prior.

    `channel` and `leakage` are computed when they are first used. `prior` is a set of priors where the form
    is for one. It is the set of all priors for an LDP mechanism on a bare number of values.
    """

    claimed: float
    mechanism: Channel | UnaryEncoding
    prior: PriorOrSet
    secret: Secret | None = None
    support: Support | None = None
    notion: str = "LIP"

    @property
    def channel(self) -> Channel:
        """The channel, or `TooLarge` where there are too many reports to list."""
        if isinstance(self.mechanism, Channel):
            return self.mechanism
        return self.mechanism.channel(self.prior.labels)

    @cached_property
    def leakage(self) -> Leakage:
        """The levels that it really has."""
        if isinstance(self.mechanism, Channel):
            return leakage(self.mechanism, self.prior, self.secret)
        return self.mechanism.leakage(self.prior)

    @property
    def excess(self) -> float:
        """How far the real level lies above the claim. It is zero, up to rounding, where the claim holds."""
        level = self.leakage.ldp if self.notion == "LDP" else self.leakage.lip
        return max(0.0, level - self.claimed)

    @cached_property
    def mse(self) -> float:
        """The expected histogram error per person under the prior, with the paper's estimator."""
        if not isinstance(self.prior, Prior):
            raise InvalidInput("prior", self.prior, "an expected error needs one prior, not a set of them")
        if isinstance(self.mechanism, Channel):
            return Histogram().error(self.mechanism, self.prior)
        return self.mechanism.mse(self.prior)


# -- LIP mechanisms of the paper ---------------------------------------------------------------------------


def rr_lip(prior: Prior | Sequence[float], epsilon: float) -> Published:
    """RR-LIP (Theorem 3): report the truth, or with probability `e**-eps` a fresh draw from the prior.

    It satisfies LIP only where every `P[x] >= tau`. Elsewhere a rare value leaks
    `log(e**-eps + (1 - e**-eps) / min(P))` upwards.
    For a function of the value (Corollary 1), push the prior forward.

    >>> form = rr_lip([0.1, 0.2, 0.7], 1.0)
    >>> round(form.claimed, 3), round(form.leakage.lip, 3)
    (1.0, 1.9)
    >>> prior = Prior({"a": 0.25, "b": 0.25, "c": 0.5})
    >>> form = rr_lip(prior.push(lambda value: "c" if value == "c" else "other"), 1.0)
    >>> form.channel.inputs, form.excess < 1e-12
    (('other', 'c'), True)
    """
    P, eps = Prior.of(prior), _epsilon(epsilon)
    channel = Channel(closed_forms.rr_lip_matrix(P.probabilities, math.exp(-eps)), P.labels, P.labels)
    return Published(eps, channel, P)


def lh_lip(
    prior: Prior | Sequence[float], epsilon: float, assignment: Sequence[int] | None = None
) -> Published:
    """LH-LIP (Proposition 3): hash the value into a bin, then RR-LIP on the prior of the bins.

    It is valid only where every bin has mass `tau` or more. The hash is an `assignment` of values to bins, by default
    the first of `random_assignment`.

    >>> lh_lip(Prior.uniform(8), 1.0, assignment=[0, 0, 0, 0, 1, 1, 1, 1]).excess < 1e-12
    True
    """
    P, eps = Prior.of(prior), _epsilon(epsilon)
    bin_of = _bin_of(len(P), eps, assignment)
    binned = P.push(dict(zip(P.labels, bin_of, strict=True)).__getitem__)
    rows = closed_forms.rr_lip_matrix(binned.probabilities, math.exp(-eps))
    channel = Channel(rows[[binned.labels.index(b) for b in bin_of]], P.labels, binned.labels)
    return Published(eps, channel, P)


def binary_latent(prior: Prior | Sequence[float], secret: Secret | None, epsilon: float) -> Published:
    """The binary form for a latent secret (Theorem 2): always private, not always optimal.

    With `u` and `l` the largest and smallest `Pr(X = 1 | g)` and `p = Pr(X = 1)`, the second value being 1:
    `q0 = max(0, (u - p e) / ((e + 1) (u - p)), (p - l e) / ((e + 1) (p - l)))` and
    `q1 = max(0, (1 + u e - e - p) / ((e + 1) (u - p)), (1 + p e - e - l) / ((e + 1) (p - l)))`, `e = e**eps`.

    >>> binary_latent([0.5, 0.5], Secret([[0.6, 0.4], [0.4, 0.6]]), 1.0).channel.matrix.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    P, e = Prior.of(prior), math.exp(_epsilon(epsilon))
    if len(P) != 2:
        raise InvalidInput("prior", P, "Theorem 2 is for two values")
    latent = secret or Secret(np.eye(2))
    latent.require_fits(P)
    p, largest, smallest = float(P.probabilities[1]), latent.rows[:, 1].max(), latent.rows[:, 1].min()
    q0 = q1 = 0.0
    for low, high in ((p, float(largest)), (float(smallest), p)):
        if high > low:
            q0 = max(q0, (high - low * e) / ((e + 1) * (high - low)))
            q1 = max(q1, (1 + high * e - e - low) / ((e + 1) * (high - low)))
    channel = Channel([[1 - q0, q0], [q1, 1 - q1]], P.labels, P.labels)
    return Published(math.log(e), channel, P, secret)


def release_symbol(
    prior: Prior | Sequence[float], secret: Secret, epsilon: float, symbol: Label
) -> Published:
    """Release a symbol as it is (Proposition 1), if `e**-eps <= Pr(a | g) / P[a] <= e**eps` for all secrets.

    The proposition says nothing about the other symbols. Here they share a single report, "not this one":
    any other treatment refines that report, and leaks at least as much. Even this one can break the claim.

    >>> form = release_symbol([0.6, 0.4], Secret([[0.95, 0.05], [0.25, 0.75]]), 1.0, 0)
    >>> form.leakage.lip_lower.__round__(3)
    2.079
    """
    P, eps = Prior.of(prior), _epsilon(epsilon)
    secret.require_fits(P)
    if symbol not in P.labels:
        raise InvalidInput("symbol", symbol, "name one of the prior's values")
    a = P.labels.index(symbol)
    with np.errstate(divide="ignore"):
        level = float(np.abs(np.log(secret.rows[:, a] / P.probabilities[a])).max())
    if level > eps:
        leak = f"releasing {symbol!r} alone leaks {level:.4g}, above {eps:.4g}"
        raise Infeasible(f"Proposition 1 does not apply: {leak}")
    own = np.arange(len(P)) == a
    channel = Channel(np.column_stack([own, ~own]), P.labels, [str(symbol), f"not {symbol}"])
    return Published(eps, channel, P, secret)


def binary_bounded(lowest: float, highest: float, epsilon: float) -> Published:
    """The binary form for a bounded prior, `lowest <= Pr(X = 1) <= highest` (Proposition 2).

    `q01 = b / (b - a + e**eps)` and `q10 = (1 - a) / (b - a + e**eps)`. It is valid only where
    `e**-eps <= a / (1 - b) <= e**eps`, or where nothing is known (`a = 0`, `b = 1`).

    >>> binary_bounded(0.4, 0.6, 1.0).excess < 1e-12, binary_bounded(0.01, 0.6, 1.0).excess > 0.3
    (True, True)
    """
    priors, e = PriorSet.interval([1 - highest, lowest], [1 - lowest, highest]), math.exp(_epsilon(epsilon))
    q01, q10 = highest / (highest - lowest + e), (1 - lowest) / (highest - lowest + e)
    return Published(math.log(e), Channel([[1 - q01, q01], [q10, 1 - q10]]), priors)


def ue_lip(prior: PriorOrSet | Sequence[float], epsilon: float) -> Published:
    """UE-LIP (Theorem 4): unary encoding that depends on the rarest value only.

    `q01 = (1 - m) / (e**eps - 2 m + 1)` with `m = min(P)`, and `q10 = 1/2`. It is private and tight, but not
    optimal. For a set of priors (Corollary 2) `m` is the smallest probability in the set.

    >>> form = ue_lip(Prior.uniform(83), 4.0)
    >>> round(form.leakage.lip, 9), round(form.mse, 3)
    (4.0, 0.869)
    >>> ue_lip(PriorSet([[0.2, 0.8], [0.5, 0.5]]), 1.0).leakage.lip.__round__(9)
    1.0
    """
    prior, eps = as_prior_or_set(prior), _epsilon(epsilon)
    rarest = float(_least_masses(prior).min())
    zero_to_one = (1 - rarest) / (math.exp(eps) - 2 * rarest + 1) if rarest < 1 else 0.5
    return Published(eps, UnaryEncoding(zero_to_one, 0.5), prior)


# -- LDP mechanisms that it compares with (section 5.4) ----------------------------------------------------


def k_rr(values: int | Prior, epsilon: float) -> Published:
    """LDP's randomised response: the truth with probability `e / (e + d - 1)`, `e = e**eps`, else any other.

    >>> k_rr(5, 1.0).leakage.ldp.__round__(9)
    1.0
    """
    prior, eps = _prior_or_all(values), _epsilon(epsilon)
    Q = closed_forms.k_rr_matrix(len(prior), eps)
    channel, support = Channel(Q, prior.labels, prior.labels), Support(float(Q[0, 0]), float(Q[0, -1]))
    return Published(eps, channel, prior, None, support, "LDP")


def oue(values: int | Prior, epsilon: float) -> Published:
    """LDP's optimised unary encoding: `q10 = 1/2`, `q01 = 1 / (e**eps + 1)`.

    >>> oue(100, 2.0).leakage.ldp.__round__(9)
    2.0
    """
    prior, eps = _prior_or_all(values), _epsilon(epsilon)
    encoding = UnaryEncoding(1 / (math.exp(eps) + 1), 0.5)
    return Published(eps, encoding, prior, None, Support(0.5, encoding.zero_to_one), "LDP")


def olh(
    values: int | Prior, epsilon: float, assignment: Sequence[int] | None = None, bins: int = 0
) -> Published:
    """LDP's optimised local hashing, for one public hash: k-RR on the bin of the value.

    The hash is an `assignment` of values to bins, by default the first of `random_assignment`. If the last of them
    are empty, say how many `bins` there are.

    >>> olh(20, 1.0, random_assignment(20, 1.0, seed=3)).channel.shape
    (20, 4)
    """
    prior, eps = _prior_or_all(values), _epsilon(epsilon)
    bin_of = _bin_of(len(prior), eps, assignment)
    size = max(bins, max(bin_of) + 1)
    Q = closed_forms.k_rr_matrix(size, eps)
    channel, support = Channel(Q[list(bin_of)], prior.labels), Support(float(Q[0, 0]), 1 / size)
    return Published(eps, channel, prior, None, support, "LDP")


def random_assignment(size: int, epsilon: float, seed: int = 0) -> list[int]:
    """A random bin for each of `size` values, out of `e**eps + 1` (rounded), the number of bins of OLH."""
    bins = np.random.default_rng(seed).integers(round(math.exp(epsilon)) + 1, size=size)
    return [int(y) for y in bins]


def _bin_of(size: int, eps: float, assignment: Sequence[int] | None) -> Sequence[int]:
    bin_of = random_assignment(size, eps) if assignment is None else assignment
    if len(bin_of) != size or min(bin_of) < 0:
        raise InvalidInput("assignment", assignment, f"give the bin of each of the {size} values, from 0 on")
    return bin_of


def _prior_or_all(values: int | Prior) -> Prior | PriorSet:
    """A prior as it is; a bare number of values means that nothing is known."""
    return values if isinstance(values, Prior) else PriorSet.all(values)


def _least_masses(prior: PriorOrSet) -> Array:
    """The smallest probability of each value."""
    return prior.extremes(np.eye(len(prior)))[0]


def _epsilon(epsilon: float) -> float:
    return Budget(epsilon).lower
