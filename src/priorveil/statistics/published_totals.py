"""What somebody who sees only the published tally of a plan can learn about one person.

*Differential privacy, whatever the others hold.* Let `Q` be the channel, `m[y] = min_x Q[x, y]` and `E = e^epsilon`.
Replacing the value `x0` of one of `n` people by `x1` changes the probability of any set of tallies from `p` to at most
`E p + delta`, where

    delta = E[(V_1 + ... + V_n)^+] / n  +  sum of (Q[x0, y] - E Q[x1, y])^+ over the columns with m[y] = 0,

and the `V_i` are independent, equal to `(Q[x0, y] - E Q[x1, y]) / m[y]` with probability `m[y]`, otherwise zero. This
is the privacy blanket of Balle, Bell, Gascon and Nissim (2019): with probability `m[y]` a report of anybody else is `y`
whatever their value, and the report of the person hides among these. `delta` falls as `n` grows.

*From the LIP level alone.* If all lifts lie between `lo` and `hi`, then `lo lam`, with the law `lam` of the reports,
may take the place of `m`. Then `V` is `(r0 - E r1) / lo` with two lifts; it lies between `1 - E hi / lo` and
`hi / lo - E`, and where it is not zero it has the mean `(1 - E) / lo`. The law on the two ends with this mean is the
largest in convex order, so it bounds `delta` for every such mechanism, however large its channel is.

**Rounding is enclosed**: `delta_bound` is never below the formula. Its steps are upper bounds, for these reasons.

1. *Input.* `s -> s^+` is convex and never falls. So `E[(sum V)^+]` does not fall if a value of `V` is raised, if it is
   split between two points of a grid with its mean kept, or if the probability of a value is raised (it need not add up
   to one any more: the expectation is a sum of products of weights, times numbers that are not negative). All numbers
   are rounded in this direction. (The grid has the multiples of `h`; how far a number lies beyond the point of the
   grid below it is exact in floats.)
2. *Tilting.* Let `w_j` be the weight of `j h`, `a_j = w_j e^(t j)` for any `t > 0`, `A = sum a_j` and `q = a / A`.
   Multiplying and dividing by `e^(t j)` gives `E[(sum V)^+] = A^n sum_j q^{*n}_j f(j)`, with `q^{*n}` the law of the
   sum of `n` draws from `q` and `f(j) = j^+ h e^(-t j)`, which rises to `j = 1/t` and falls from there on.
3. *The circle.* The sum runs over the places `1 ... J` of a circle of `N` places. What is wrapped around can only add
   to them, and whatever lies beyond `J >= 1/t` adds at most `f(J + 1)`.
4. *The transform.* A fast Fourier transform of `N = 2^k` numbers computes each output from its inputs in `k` levels of
   multiplications by twiddle factors and additions. With `u = 2^-53` its error is at most `eta sum |input|`,
   `eta = 16 u k` (about four times what a level needs). So transform `k` of `q` is wrong by at most `eta`. With `B_k`,
   its computed size plus `eta`, its power is wrong by at most `n eta B_k^(n-1)`, and computing the power with
   `n - 1` roundings of at most `3 u` adds `4 n u B_k^n`. Powers with `B_k^n < e^-60` are replaced by zero. The inverse
   transform divides by `N` the sum of all this, and adds its own `eta` times the sum of the powers. The total is added
   to every `q^{*n}_j`, so that none is below the truth.
5. *What is left* are sums and products of numbers that are not negative: their rounding is a relative error, at most
   `1e-9` plus that of the weights times `n`, and the result is multiplied by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints
from priorveil.certify import TOTAL, Certificate, exp_above, exp_below
from priorveil.errors import InvalidInput
from priorveil.mechanisms import Mechanism
from priorveil.statistics.planning import require_people, root_between

_UNIT = 2.0**-53
_BITS = 44  # of numbers that are rounded up or down: equal ones of several pairs stay equal
_FINE, _COARSE = 24, 4  # points of the grid in a standard deviation of `V`; coarse bounds exclude most pairs
_LEAST_BITS, _MOST_BITS = 12, 20  # of the places on the circle
_ABOVE, _BELOW = 32, 5  # how far it reaches: so many times 1 / t, and so many standard deviations of the sum
_MOST_PEOPLE = 10**8  # more count as these: the level falls with n
_MOST_PAIRS = 1024  # of values; beyond them the LIP level decides
_MOST_ENTRIES = 1 << 20  # of all pairs together
_LARGEST = 40.0  # a level beyond this is infinite
_STEEPEST = 300.0  # the largest tilt, times the largest value of `V`
_LOWEST = -(2.0**50)  # on the grid; what is below is raised to it
_TINY = 1e-290
_LEAST_EXPONENT = -650.0
_NEGLIGIBLE = 60.0
_CLOSE = 1e-5  # how near to the least level a level is, relatively


@dataclass(frozen=True, eq=False)
class BlanketLaw:
    """The law of `V` for one `E`: its values with their weights, and the weight of zero.

    `outside` is the part of `delta` from the columns without a blanket.
    """

    values: Array
    weights: Array
    rest: float
    outside: float


class Pair(Protocol):
    """Two values of a person, one in place of the other."""

    def law(self, factor: float) -> BlanketLaw:
        """The law of `V` for `E = factor`, each number rounded so that `delta` can only rise."""


@dataclass(frozen=True, eq=False)
class ColumnPair:
    """Two rows of a channel of integers over a blanket.

    `first` and `second` are the two rows divided by the blanket, rounded up and down, `weights` the blanket, `rest`
    what it leaves, and `open_first` and `open_second` the rows on the columns that have no blanket.
    """

    first: Array
    second: Array
    weights: Array
    rest: float
    open_first: Array
    open_second: Array

    @classmethod
    def of(cls, first: Ints, second: Ints, blanket: Ints) -> ColumnPair:
        """From rows of integers that stand for multiples of `2**-62`."""
        inside = blanket > 0
        m = blanket[inside].astype(np.float64)
        columns = np.array([_up(first[inside] / m), _down(second[inside] / m), _up(m / TOTAL)])
        rest = float(_up(np.array([(TOTAL - int(blanket.sum())) / TOTAL]))[0])
        open_columns = _up(first[~inside] / TOTAL), _down(second[~inside] / TOTAL)
        ratios, others, weights = columns[:, np.lexsort(columns)]
        return cls(ratios, others, weights, rest, *open_columns)

    @property
    def key(self) -> bytes:
        """What equal pairs have in common."""
        parts = (self.first, self.second, self.weights, self.open_first, self.open_second)
        return b"".join(part.tobytes() for part in parts)

    @cached_property
    def spread(self) -> float:
        """About the variance of `V` at `E = 1`: pairs with more of it tell more."""
        return float(self.weights @ (self.first - self.second) ** 2) + 1e9 * float(self.open_first.sum())

    def law(self, factor: float) -> BlanketLaw:
        """The law of `V`, from the columns."""
        values = self.first - factor * self.second
        values += 8 * _UNIT * (self.first + factor * self.second)
        outside = np.maximum(self.open_first - factor * self.open_second * (1 - 4 * _UNIT), 0.0)
        return BlanketLaw(values, self.weights, self.rest, float(outside.sum()) * (1 + 1e-12))


@dataclass(frozen=True)
class LipPair:
    """The worst pair of values of any mechanism whose lifts lie between `lowest` and `highest`."""

    lowest: float
    highest: float

    @classmethod
    def of(cls, lip_lower: float, lip_upper: float) -> LipPair:
        """From the two LIP levels."""
        lowest = float(exp_below(-lip_lower)) * (1 - 2 * _UNIT)
        return cls(lowest, float(exp_above(lip_upper)) * (1 + 2 * _UNIT))

    def law(self, factor: float) -> BlanketLaw:
        """The law of `V` on its two ends."""
        lo, hi = self.lowest, self.highest
        ends = np.array([hi / lo - factor, 1 - factor * hi / lo])
        ends += 8 * _UNIT * (1 + factor) * hi / lo
        down, up = 1 - lo, hi - 1
        shares = np.array([down + factor * up, up + factor * down]) / ((down + up) * (1 + factor))
        return BlanketLaw(ends, lo * shares * (1 + 16 * _UNIT), down * (1 + 4 * _UNIT), 0.0)


# -- delta -------------------------------------------------------------------------------------------------


def delta_bound(law: BlanketLaw, people: int, density: int = _FINE) -> float:
    """An upper bound on `delta`, on a grid with so many points in a standard deviation; the module has its proof.

    >>> fifth = TOTAL // 5  # randomised response on three values, 3/5 on the diagonal
    >>> rows = np.full((3, 3), fifth) + (TOTAL - 3 * fifth) * np.eye(3, dtype=np.int64)
    >>> pair = ColumnPair.of(rows[0], rows[1], rows.min(axis=0))
    >>> round(delta_bound(pair.law(14 / 5), 2), 6)  # 3/125
    0.024
    """
    people = min(people, _MOST_PEOPLE)
    if law.values.max(initial=-np.inf) <= 0:
        return min(law.outside, 1.0)
    at_once = min(float(law.weights @ np.maximum(law.values, 0.0)) * (1 + 1e-9) + law.outside, 1.0)
    tilt, deviation = _saddle(law, people)
    above, below = _ABOVE / tilt, _BELOW * deviation * math.sqrt(people)
    bits = math.ceil(math.log2((above + below) * density / deviation))
    bits = min(max(bits, _LEAST_BITS), _MOST_BITS)
    spacing = (above + below) / (1 << bits)
    places, weights = _split(law, spacing)
    step = tilt * spacing
    exponents = np.maximum(step * places, _LEAST_EXPONENT)
    tilted = weights * np.exp(exponents)
    total = float(tilted.sum())
    relative = 4 * _UNIT * (float(np.abs(exponents).max()) + abs(math.log(total)) + len(places) + 8)
    growth = people * (math.log(total) + relative)
    if growth > _STEEPEST:  # the mean of V is positive, or the grid is coarse
        return at_once
    powers, error = _convolution_power(places, tilted / total, people, bits)
    last = math.ceil(above / spacing)
    at = np.arange(1.0, last + 1)
    gains = at * np.exp(-step * at)
    inside = float(gains @ np.maximum(powers[1 : last + 1], 0.0)) + error * float(gains.sum())
    beyond = (last + 1) * math.exp(-step * (last + 1))
    bound = spacing * math.exp(growth) * (inside + beyond) / people
    return min(bound * (1 + 1e-9) + law.outside, at_once)


def _saddle(law: BlanketLaw, people: int) -> tuple[float, float]:
    """A good tilt, and the standard deviation of the tilted `V`. Any positive tilt gives a bound."""
    values, weights = np.append(law.values, 0.0), np.append(law.weights, law.rest)
    highest = float(values.max())

    def moments(tilt: float) -> tuple[float, float]:
        with np.errstate(under="ignore"):
            shares = weights * np.exp(tilt * (values - highest))
        shares /= shares.sum()
        mean = float(shares @ values)
        return mean, math.sqrt(float(shares @ (values - mean) ** 2))

    tilt = 0.0
    if moments(0.0)[0] < 0:
        high = 1 / highest
        while moments(high)[0] < 0 and high * highest < _STEEPEST:
            high *= 2
        if moments(high)[0] > 0:
            tilt = root_between(lambda t: moments(t)[0], 0.0, high, rtol=1e-6, xtol=1e-12 / highest)
        else:
            tilt = high
    deviation = max(moments(tilt)[1], 1e-6 * highest)
    return min(max(tilt, 1 / (deviation * math.sqrt(people))), 2 * _STEEPEST / highest), deviation


def _split(law: BlanketLaw, spacing: float) -> tuple[Ints, Array]:
    """The places on the grid and their weights: each value is split between its two neighbours, with its mean kept."""
    scaled = np.maximum(law.values / spacing, _LOWEST)
    scaled += 4 * _UNIT * np.abs(scaled)
    below = np.floor(scaled)
    upper = scaled - below
    places = np.concatenate([below, below + 1, [0.0]]).astype(np.int64)
    return places, np.concatenate([law.weights * (1 - upper), law.weights * upper, [law.rest]])


def _convolution_power(places: Ints, shares: Array, people: int, bits: int) -> tuple[Array, float]:
    """The law of the sum of so many draws on the circle, and how far each of its entries is from the truth at most."""
    size, eta = 1 << bits, 16 * _UNIT * bits
    circle = np.zeros(size)
    np.add.at(circle, places % size, shares)
    transform = np.fft.rfft(circle)
    bounds = np.abs(transform) + eta
    kept = np.log(bounds) * people >= -_NEGLIGIBLE
    spectrum = np.zeros_like(transform)
    spectrum[kept] = _power(transform[kept], people)
    lost = people * (eta + 4 * _UNIT) * float((bounds[kept] ** (people - 1)).sum())
    inverse = eta * float(np.abs(spectrum[kept]).sum())
    error = (1 + 1e-6) * 2 * (lost + inverse) / size + math.exp(-_NEGLIGIBLE)
    return np.fft.irfft(spectrum, size), error


def _power(base: npt.NDArray[np.complex128], exponent: int) -> npt.NDArray[np.complex128]:
    """A power by repeated squaring: `exponent - 1` roundings, however they are nested."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result


# -- epsilon -----------------------------------------------------------------------------------------------


def totals_level(mechanism: Mechanism, certificate: Certificate, people: int, delta: float) -> float:
    """The least `epsilon` that is proven for the tally of so many people and this `delta`; infinite if there is none.

    It comes from the columns of the channel, or from the LIP levels of the certificate where the channel is no table or
    has very many pairs of values. It is never more than the LDP level, which has `delta = 0`. The certificate has to be
    about the value itself: behind a latent secret the LIP level says nothing of it.
    """
    require_people(people)
    if not 0 < delta < 1:
        raise InvalidInput("delta", delta, "give a small probability, such as 1e-6")
    pairs = _pairs(mechanism, certificate)
    return certificate.ldp if pairs is None else min(_level(pairs, int(people), delta), certificate.ldp)


def totals_delta(mechanism: Mechanism, certificate: Certificate, people: int, epsilon: float) -> float:
    """As `totals_level`, the least `delta` that is proven for this `epsilon`; one if there is none."""
    require_people(people)
    if certificate.ldp <= epsilon:
        return 0.0
    pairs = _pairs(mechanism, certificate)
    return 1.0 if pairs is None else max(_bound(pair, int(people), epsilon, _FINE) for pair in pairs)


def _pairs(mechanism: Mechanism, certificate: Certificate) -> Sequence[Pair] | None:
    """The pairs of values to look at; None if nothing is known about them."""
    if certificate.ldp <= 0:
        return []
    rows = mechanism.integer_rows
    pairs = None if rows is None else column_pairs(rows)
    if pairs is None and math.isfinite(certificate.lip):
        return [LipPair.of(certificate.lip_lower, certificate.lip_upper)]
    return pairs


def column_pairs(rows: Ints) -> list[ColumnPair] | None:
    """All different pairs of rows, those that tell most first; None if they are too many."""
    distinct = np.unique(rows, axis=0)
    count = len(distinct) * (len(distinct) - 1)
    if count > _MOST_PAIRS or count * distinct.shape[1] > _MOST_ENTRIES:
        return None
    blanket = distinct.min(axis=0)
    pairs = {
        pair.key: pair
        for i, first in enumerate(distinct)
        for j, second in enumerate(distinct)
        if i != j
        for pair in [ColumnPair.of(first, second, blanket)]
    }
    return sorted(pairs.values(), key=lambda pair: -pair.spread)


def _level(pairs: Iterable[Pair], people: int, delta: float) -> float:
    """A level at which no pair has more than `delta`: that of the worst pair, or slightly more."""
    level = 0.0
    for pair in pairs:
        if all(_bound(pair, people, level, density) > delta for density in (_COARSE, _FINE)):
            level = _level_of_pair(pair, people, delta, level)
        if level == math.inf:
            break
    return level


def _bound(pair: Pair, people: int, level: float, density: int) -> float:
    return delta_bound(pair.law(_factor(level)), people, density)


def _level_of_pair(pair: Pair, people: int, delta: float, least: float) -> float:
    """The level of one pair, which is more than `least`: found on the coarse grid, and from there on the fine one."""

    @cache
    def excess(level: float, density: int = _FINE) -> float:
        return math.log(max(_bound(pair, people, level, density), _TINY) / delta)

    low, high = least, max(2 * least, 1e-6)
    while excess(high, _COARSE) > 0:
        low, high = high, 2 * high
        if high > _LARGEST:
            return math.inf
    near = root_between(lambda level: excess(level, _COARSE), low, high, rtol=1e-3, xtol=1e-12)
    low, up = max(least, 0.97 * near), min(1.003 * near, high)
    if excess(low) <= 0:
        low, up = least, low
    is_between = excess(low) > 0 >= excess(up)
    level = root_between(excess, low, up, rtol=_CLOSE, xtol=1e-15) if is_between else up
    step = _CLOSE
    while excess(level) > 0:
        level, step = level * (1 + step), 2 * step
    return level


def _factor(level: float) -> float:
    """A number that is at most `e**level`, so that the level is never understated."""
    return math.exp(level) * (1 - 4 * _UNIT) if level > 0 else 1.0


# -- rounding ----------------------------------------------------------------------------------------------


def _up(numbers: Array) -> Array:
    """Positive numbers rounded up to a few digits less than floats have, by more than their own errors."""
    mantissa, exponent = np.frexp(np.asarray(numbers, dtype=np.float64) * (1 + 8 * _UNIT))
    return np.asarray(np.ldexp(np.ceil(np.ldexp(mantissa, _BITS)), exponent - _BITS))


def _down(numbers: Array) -> Array:
    """As `_up`, but down."""
    mantissa, exponent = np.frexp(np.asarray(numbers, dtype=np.float64) * (1 - 8 * _UNIT))
    return np.asarray(np.ldexp(np.floor(np.ldexp(mantissa, _BITS)), exponent - _BITS))
