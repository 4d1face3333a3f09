"""The closed forms of the paper, and the LDP mechanisms it compares with, as they were printed.

Each returns a `Published`: the channel, the level it was claimed to have, and the leakage it really has.
Some of them leak more than they claim, as their docstrings say; `priorveil.design` never returns those.

Throughout, `Q[x, y] = Pr(Y = y | X = x)` and `tau = 1 / (1 + e**eps)`. References without a name are to
Jiang, Li and Tandon, "Local information privacy and its application to privacy-preserving data aggregation".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from priorveil.channels import Channel
from priorveil.errors import Infeasible, InvalidInput
from priorveil.notions import Leakage, leakage
from priorveil.priors import Array, Budget, Label, Prior, PriorSet, Secret
from priorveil.queries import Histogram
from priorveil.studies.published.sets import Subsets, Support, Unary, masses


class Claim(float):
    """The level a mechanism is said to have: a number that also knows its notion.

    >>> Claim(1.0, "LIP") < 1.5, Claim(1.0, "LIP")
    (True, Claim(1.0, 'LIP'))
    """

    notion: str

    def __new__(cls, epsilon: float, notion: str) -> Claim:
        """A claim of `epsilon` under the notion of that name."""
        claim = super().__new__(cls, epsilon)
        claim.notion = notion
        return claim

    def __repr__(self) -> str:
        return f"Claim({float(self)!r}, {self.notion!r})"


@dataclass(frozen=True)
class Published:
    """A mechanism as printed: `name`, `reference`, the level `claimed`, and what it is measured against.

    `channel` and `leakage` are computed when asked for. `prior` is a set of priors where the form is for one,
    and all priors there are for an LDP mechanism on a bare number of values.
    """

    name: str
    reference: str
    claimed: Claim
    mechanism: Channel | Unary | Subsets
    prior: Prior | PriorSet
    secret: Secret | None = None
    support: Support | None = None

    @property
    def channel(self) -> Channel:
        """The channel, or `TooLarge` where its reports are too many to list."""
        return (
            self.mechanism
            if isinstance(self.mechanism, Channel)
            else self.mechanism.channel(self.prior.labels)
        )

    @cached_property
    def leakage(self) -> Leakage:
        """The levels it really has."""
        if isinstance(self.mechanism, Channel):
            return leakage(self.mechanism, self.prior, self.secret)
        return self.mechanism.leakage(self.prior)

    @property
    def excess(self) -> float:
        """How far the real level lies above the claim; zero, but for rounding, where the claim holds."""
        level = self.leakage.ldp if self.claimed.notion == "LDP" else self.leakage.lip
        return max(0.0, level - self.claimed)

    @cached_property
    def mse(self) -> float:
        """The expected histogram error per person under the prior, with the paper's estimator."""
        if not isinstance(self.prior, Prior):
            raise InvalidInput("prior", self.prior, "an expected error needs one prior, not a set of them")
        if isinstance(self.mechanism, Channel):
            return Histogram().error(self.mechanism, self.prior)
        return self.mechanism.mse(self.prior)


def rr_lip(prior: Prior | Sequence[float], epsilon: float) -> Published:
    """RR-LIP (Theorem 3): tell the truth, or with probability `e**-eps` a fresh draw from the prior.

    It satisfies LIP only where every `P[x] >= tau`; elsewhere a rare value leaks
    `log(e**-eps + (1 - e**-eps) / min(P))` upwards.

    >>> form = rr_lip([0.1, 0.2, 0.7], 1.0)
    >>> round(form.claimed, 3), round(form.leakage.lip, 3)
    (1.0, 1.9)
    """
    P, eps = Prior.of(prior), _epsilon(epsilon)
    return _lip("RR-LIP", "Theorem 3", eps, _truth_or_draw(P, range(len(P)), P, eps), P)


def rr_lip_of(prior: Prior, function: Callable[[Label], Label], epsilon: float) -> Published:
    """RR-LIP of a function of the value (Corollary 1): Theorem 3 on the pushed-forward prior.

    >>> form = rr_lip_of(Prior({"a": 0.25, "b": 0.25, "c": 0.5}), lambda v: v == "c" and "c" or "other", 1.0)
    >>> form.channel.inputs, form.excess < 1e-12
    (('other', 'c'), True)
    """
    P, eps = prior.push(function), _epsilon(epsilon)
    return _lip("RR-LIP of a function", "Corollary 1", eps, _truth_or_draw(P, range(len(P)), P, eps), P)


def lh_lip(
    prior: Prior | Sequence[float],
    epsilon: float,
    bins: int | None = None,
    seed: int = 0,
    assignment: Sequence[int] | None = None,
) -> Published:
    """LH-LIP (Proposition 3): hash the value into a bin, then RR-LIP on the prior of the bins.

    Valid only where every bin has mass `tau` or more. Give the hash as an `assignment` of values to bins,
    or a number of `bins` and a `seed` to draw it; the number of bins is that of OLH, `e**eps + 1`, if not
    given.

    >>> lh_lip(Prior.uniform(8), 1.0, assignment=[0, 0, 0, 0, 1, 1, 1, 1]).excess < 1e-12
    True
    """
    P, eps = Prior.of(prior), _epsilon(epsilon)
    hashed = _assignment(len(P), eps, bins, seed, assignment)
    binned = P.push(dict(zip(P.labels, hashed, strict=True)).__getitem__)
    return _lip("LH-LIP", "Proposition 3", eps, _truth_or_draw(P, hashed, binned, eps), P)


def binary_latent(prior: Prior | Sequence[float], secret: Secret | None, epsilon: float) -> Published:
    """The binary form for a latent secret (Theorem 2): private always, optimal not always.

    With `u` and `l` the largest and smallest `Pr(X = 1 | g)` and `p = Pr(X = 1)`, the second value being 1:
    `q0 = max(0, (u - p e) / ((e + 1) (u - p)), (p - l e) / ((e + 1) (p - l)))` and
    `q1 = max(0, (1 + u e - e - p) / ((e + 1) (u - p)), (1 + p e - e - l) / ((e + 1) (p - l)))`, `e = e**eps`.

    >>> binary_latent([0.5, 0.5], Secret([[0.6, 0.4], [0.4, 0.6]]), 1.0).channel.matrix.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    P, e = Prior.of(prior), math.exp(_epsilon(epsilon))
    if len(P) != 2:
        raise InvalidInput("prior", P, "Theorem 2 is for two values")
    (secret or Secret(np.eye(2))).require_fits(P)
    p, given = float(P.probabilities[1]), (np.array([0.0, 1.0]) if secret is None else secret.rows[:, 1])
    up, down = float(given.max()) - p, p - float(given.min())
    high, low = p + up, p - down
    zero, one = [0.0], [0.0]
    if up > 0:
        zero.append((high - p * e) / ((e + 1) * up))
        one.append((1 + high * e - e - p) / ((e + 1) * up))
    if down > 0:
        zero.append((p - low * e) / ((e + 1) * down))
        one.append((1 + p * e - e - low) / ((e + 1) * down))
    q0, q1 = max(zero), max(one)
    channel = Channel([[1 - q0, q0], [q1, 1 - q1]], P.labels, P.labels)
    return _lip("binary latent", "Theorem 2", math.log(e), channel, P, secret)


def release_symbol(
    prior: Prior | Sequence[float], secret: Secret, epsilon: float, symbol: Label
) -> Published:
    """Release a symbol as it is (Proposition 1), if `e**-eps <= Pr(a | g) / P[a] <= e**eps` for all secrets.

    The proposition is silent about the other symbols. Here they share a single report, "not this one":
    whatever else is done with them refines that, and leaks at least as much. It can break the claim even so.

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
        raise Infeasible(
            f"Proposition 1 does not apply: releasing {symbol!r} alone leaks {level:.4g}, above {eps:.4g}"
        )
    own = np.arange(len(P)) == a
    channel = Channel(np.column_stack([own, ~own]), P.labels, [str(symbol), f"not {symbol}"])
    return _lip("release a symbol", "Proposition 1", eps, channel, P, secret)


def binary_bounded(lowest: float, highest: float, epsilon: float) -> Published:
    """The binary form for a bounded prior, `lowest <= Pr(X = 1) <= highest` (Proposition 2).

    `q01 = b / (b - a + e**eps)` and `q10 = (1 - a) / (b - a + e**eps)`. Valid only where
    `e**-eps <= a / (1 - b) <= e**eps`, or nothing is known (`a = 0`, `b = 1`).

    >>> binary_bounded(0.4, 0.6, 1.0).excess < 1e-12, binary_bounded(0.01, 0.6, 1.0).excess > 0.3
    (True, True)
    """
    known, e = PriorSet.interval([1 - highest, lowest], [1 - lowest, highest]), math.exp(_epsilon(epsilon))
    q01, q10 = highest / (highest - lowest + e), (1 - lowest) / (highest - lowest + e)
    channel = Channel([[1 - q01, q01], [q10, 1 - q10]])
    return _lip("binary bounded", "Proposition 2", math.log(e), channel, known)


def ue_lip(prior: Prior | Sequence[float], epsilon: float) -> Published:
    """UE-LIP (Theorem 4): unary encoding that depends on the rarest value only.

    `q01 = (1 - m) / (e**eps - 2 m + 1)` with `m = min(P)`, and `q10 = 1/2`. Private and tight; not optimal.

    >>> form = ue_lip(Prior.uniform(83), 4.0)
    >>> round(form.leakage.lip, 9), round(form.mse, 3)
    (4.0, 0.869)
    """
    return _ue("UE-LIP", "Theorem 4", Prior.of(prior), epsilon)


def ue_lip_bounded(priors: PriorSet, epsilon: float) -> Published:
    """UE-LIP for a set of priors (Corollary 2): Theorem 4 with the smallest probability any of them gives.

    >>> ue_lip_bounded(PriorSet([[0.2, 0.8], [0.5, 0.5]]), 1.0).leakage.lip.__round__(9)
    1.0
    """
    return _ue("UE-LIP, bounded prior", "Corollary 2", priors, epsilon)


def k_rr(values: int | Prior, epsilon: float) -> Published:
    """LDP's randomised response: the truth with probability `e / (e + d - 1)`, `e = e**eps`, else any other.

    >>> k_rr(5, 1.0).leakage.ldp.__round__(9)
    1.0
    """
    known, eps = _values(values), _epsilon(epsilon)
    channel = Channel(_keep(len(known), eps), known.labels, known.labels)
    return _ldp("k-RR", "section 5.4", eps, channel, known, Support(*_own_other(len(known), eps)))


def oue(values: int | Prior, epsilon: float) -> Published:
    """LDP's optimised unary encoding: `q10 = 1/2`, `q01 = 1 / (e**eps + 1)`.

    >>> oue(100, 2.0).leakage.ldp.__round__(9)
    2.0
    """
    known, eps = _values(values), _epsilon(epsilon)
    bit = Unary(1 / (math.exp(eps) + 1), 0.5)
    return _ldp("OUE", "section 5.4", eps, bit, known, Support(0.5, bit.zero_to_one))


def olh(
    values: int | Prior,
    epsilon: float,
    bins: int | None = None,
    seed: int = 0,
    assignment: Sequence[int] | None = None,
) -> Published:
    """LDP's optimised local hashing, for one public hash: k-RR on the bin of the value.

    The number of bins is `e**eps + 1`, rounded, if not given.

    >>> olh(20, 1.0, seed=3).channel.shape
    (20, 4)
    """
    known, eps = _values(values), _epsilon(epsilon)
    hashed = _assignment(len(known), eps, bins, seed, assignment)
    size = bins or max(hashed) + 1
    channel = Channel(_keep(size, eps)[list(hashed)], known.labels)
    return _ldp("OLH", "section 5.4", eps, channel, known, Support(_own_other(size, eps)[0], 1 / size))


def subset_selection(values: int | Prior, epsilon: float, size: int | None = None) -> Published:
    """LDP's subset selection: report a set of about `d / (1 + e**eps)` values (Ye and Barg 2018).

    Of the two whole numbers next to that, the one whose counts vary least, if no `size` is given.

    >>> subset_selection(Prior.uniform(83), 4.0).mse.__round__(3)
    0.833
    """
    known, eps = _values(values), _epsilon(epsilon)
    d = len(known)
    if d < 2 or (size is not None and not 1 <= size < d):
        raise InvalidInput("size", size, f"a subset holds at least one of {d} values, and not all")
    near = math.floor(d / (1 + math.exp(eps)))
    sizes = {min(max(k, 1), d - 1) for k in (near, near + 1)} if size is None else {size}
    chosen = min((Subsets(d, k, eps) for k in sorted(sizes)), key=lambda s: s.support.variance(1, 1 / d))
    return _ldp("subset selection", "Ye and Barg 2018", eps, chosen, known, chosen.support)


def printed_estimate(total: float, people: int, size: int, epsilon: float) -> float:
    """The context-free estimator of the paper's evaluation, as printed: `(total - N p) / (1 - 2 p)`.

    `total` is the sum of the reports and `p = e**eps / (e**eps + d - 1)`. It is Warner's, for two values,
    with the meaning of `p` turned round: its mean is how many people have a 0. `k_rr(...).support.counts` is
    right for any `d`.

    >>> printed_estimate(total=55.0, people=100, size=2, epsilon=math.log(3)).__round__(6)
    40.0
    """
    p = _own_other(size, _epsilon(epsilon))[0]
    if p == 0.5:
        raise InvalidInput(
            "epsilon", epsilon, "the printed estimator divides by zero here: use k_rr(...).support.counts"
        )
    return (total - people * p) / (1 - 2 * p)


def printed_mse(people: int, size: int, epsilon: float) -> float:
    """The error printed beside it, `N (d - 2 + e**eps) / (e**eps - 1)**2`.

    It is the variance of a k-RR count, for a value that nobody has.

    >>> abs(printed_mse(100, 5, 1.0) - k_rr(5, 1.0).support.variance(100)) < 1e-9
    True
    """
    e = math.exp(_epsilon(epsilon))
    return people * (size - 2 + e) / (e - 1) ** 2 if e > 1 else math.inf


def _lip(
    name: str,
    reference: str,
    eps: float,
    mechanism: Channel | Unary,
    prior: Prior | PriorSet,
    secret: Secret | None = None,
) -> Published:
    return Published(name, reference, Claim(eps, "LIP"), mechanism, prior, secret)


def _ldp(
    name: str,
    reference: str,
    eps: float,
    mechanism: Channel | Unary | Subsets,
    prior: Prior | PriorSet,
    support: Support,
) -> Published:
    return Published(name, reference, Claim(eps, "LDP"), mechanism, prior, None, support)


def _ue(name: str, reference: str, prior: Prior | PriorSet, epsilon: float) -> Published:
    eps, light = _epsilon(epsilon), float(masses(prior).min())
    bit = Unary((1 - light) / (math.exp(eps) - 2 * light + 1), 0.5) if light < 1 else Unary(0.5, 0.5)
    return _lip(name, reference, eps, bit, prior)


def _truth_or_draw(prior: Prior, images: Sequence[int], drawn: Prior, eps: float) -> Channel:
    """`(1 - e**-eps) 1{image of x = y} + e**-eps drawn[y]`: a row for each value, a column for each image."""
    lo = math.exp(-eps)
    same = (
        np.array([[image == y for y in drawn.labels] for image in images])
        if drawn is not prior
        else np.eye(len(prior))
    )
    return Channel((1 - lo) * same + lo * drawn.probabilities, prior.labels, drawn.labels)


def _own_other(size: int, eps: float) -> tuple[float, float]:
    """k-RR's two probabilities."""
    e = math.exp(eps)
    return e / (e + size - 1), 1 / (e + size - 1)


def _keep(size: int, eps: float) -> Array:
    own, other = _own_other(size, eps)
    return np.where(np.eye(size, dtype=bool), own, other)


def _assignment(
    size: int, eps: float, bins: int | None, seed: int, assignment: Sequence[int] | None
) -> tuple[int, ...]:
    """The bin of each value, as given or drawn."""
    if assignment is None:
        count = round(math.exp(eps)) + 1 if bins is None else bins
        if count < 1:
            raise InvalidInput("bins", bins, "give at least one bin")
        return tuple(np.random.default_rng(seed).integers(count, size=size).tolist())
    hashed = tuple(int(y) for y in assignment)
    if len(hashed) != size or min(hashed) < 0 or (bins is not None and max(hashed) >= bins):
        raise InvalidInput(
            "assignment", assignment, f"give the bin of each of the {size} values, counted from 0"
        )
    return hashed


def _values(values: int | Prior) -> Prior | PriorSet:
    """A prior as it is; a bare number of values means that nothing is known."""
    return values if isinstance(values, Prior) else PriorSet.all(values)


def _epsilon(epsilon: float) -> float:
    return Budget(epsilon).lower
