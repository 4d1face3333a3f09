"""Estimates from reports that are rows of bits, and their expected errors.

The bit of a value `x` is set with probability `s_x = q + (p - q) P_x`: `p` for people who have the value, `q` for
others. Two bits are both set with probability `t + u (P_x + P_z)`. A set bit makes its value likelier by the odds `R`.
With `c = R - 1`, a report `y` and `m(y)` the prior mass of its set bits,

    Pr(x | y) = P_x (1 + c y_x) / (1 + c m(y)),      Pr(y) = B(y) (1 + c m(y)) / (1 + c share),

where `B` is a law that does not depend on the value, and sets every bit with probability `share`: independent bits for
unary encoding, uniformly random subsets for subset selection. Errors are therefore means of `.../(1 + c m)` under `B`.
Written as a sum of exponentials of `m`, such a mean is a sum over independent bits (`BitLaw.tilted_bits`).

* **mmse** under the prior of the scores adds up posteriors given whole reports. Under another prior it adds up
  posteriors given single bits (the paper's estimator).
* **unbiased** inverts the noise of each bit, `(ones - N q) / (p - q)`. The sum of the lifts `r_x = Pr(x | y) / P_x`
  says more: with the Fisher information `J = E[r r']` the sum over the reports of `J^-1 r` is unbiased too, since
  `E[r] = J p` whatever the distribution `p` is. It is the best unbiased estimate near the prior, and for subsets up
  to a third better if the prior is far from uniform. It needs a matrix of `d` by `d` numbers.
* **mle** maximises the likelihood of the bits as if they were reported by different people (a composite likelihood:
  consistent, and a distribution, where unbiased may be negative). To first order it is the unbiased estimate of the
  ones, projected onto the distributions in the metric `1 / (s (1 - s))`, which is the inverse of the bits' variances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms import estimators
from priorveil.mechanisms.estimators import Moments, Rows, apply_rows, squared_rows
from priorveil.mechanisms.simplex import Minimum
from priorveil.priors import Array

Weights = npt.NDArray[Any]  # real or complex numbers

_NEGLIGIBLE = 80.0  # minus the logarithm of a weight that is small enough to be left out
_BITWISE = (
    "the prior is right: the tally was scored under the plan's prior, so under this one posteriors use only each "
    "value's own bit, not the whole report; the spread is that of such posteriors"
)
COMPOSITE = (
    "nothing about the prior: the likelihood is a composite one, of the bits as if each came from another person; the "
    "intervals are those of method unbiased, within what shares can be"
)


# -- laws --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BitLaw:
    """The law of the bits of a report, in floats: of unary encoding, or of subsets of `members` of `values` values.

    `odds` is `R`, `share` how often a bit is set under `B`, `q` the chance that the bit of a value other than the true
    one is set. The bits of two values `x` and `z` are both set with the chance `t + u (P_x + P_z)`.
    """

    odds: float
    share: float
    q: float
    t: float
    u: float
    values: int = 0
    members: int = 0

    @property
    def scale(self) -> float:
        """`1 + c share`."""
        return 1 + (self.odds - 1) * self.share

    @property
    def p(self) -> float:
        """The chance that the bit of the true value is set."""
        return self.odds * self.share / self.scale

    @property
    def contrast(self) -> float:
        """`p - q`: how much likelier a bit is set for its own value."""
        return self.p - self.q

    def covariance_factors(self, P: Array) -> Array:
        """`F` such that the bits of a report have the covariance `diag(s - t - 2 u P) - F F'`, `s` their chances.

        For subsets this is the covariance plus a multiple of the matrix of ones, which changes no test: the ones of a
        report always add up to the same number, so every tested vector adds up to zero. The covariance alone would be
        singular.
        """
        if not self.members:
            return self.contrast * P[:, None]
        factor = self.contrast * P + self.q - self.u / self.contrast
        return np.stack([factor, np.full(len(P), self.q)], axis=1)

    def first_chances(self, size: int) -> Array:
        """How often the first, second, ... of all values is the first whose bit is set, under `B`."""
        if not self.members:
            return np.asarray(self.share * (1 - self.share) ** np.arange(size))
        passed = np.arange(self.values - self.members)
        falling = np.cumprod((self.values - self.members - passed) / (self.values - 1 - passed))
        return self.share * np.concatenate([[1.0], falling])

    def tilted_bits(self, P: Array, power: int = 1) -> tuple[Weights, Weights]:
        """Weights `w` and chances `h` (nodes, d) of independent bits.

        For a function `g` that is linear in every bit, the mean of `g(y) / (1 + c m(y))**power` under `B` is the real
        part of `sum_i w_i E_i[g]`, where under `E_i` bit `x` is set with the "chance" `h[i, x]`.

        `D**-power` is a sum of exponentials of `D = 1 + c m`, and the size of a set is fixed by a Fourier sum. Equal
        probabilities are computed once. Tests compare it with sums over all reports.
        """
        c, share, ordered = self.odds - 1, self.share, np.sort(P)
        least, most, phases, log_weights = 1.0, self.odds, np.ones(1), np.zeros(1)
        if self.members:
            least = (1 + c * float(ordered[: self.members].sum())) * (1 - 1e-9)
            most = (1 + c * float(ordered[-self.members :].sum())) * (1 + 1e-9)
            phases, log_weights = self._fourier_sum()
        nodes, heights = exponential_sum(least, most, power)
        values, place, copies = np.unique(P, return_inverse=True, return_counts=True)
        tilts = share * phases[:, None, None] * np.exp(-c * np.outer(nodes, values))
        logs = np.log(1 - share + tilts) @ copies - nodes + log_weights[:, None]
        weights = (np.exp(logs) * heights).reshape(-1)
        kept = np.abs(weights) > 1e-17 * float(np.abs(weights).max())
        chances = (tilts / (1 - share + tilts)).reshape(-1, len(values))
        return weights[kept], chances[kept][:, place]

    def _fourier_sum(self) -> tuple[Weights, Weights]:
        """Phases and logarithms of weights of a Fourier sum over the reports that have as many set bits as a subset.

        Of `d` bits, each set with this share, `k` are set. Counts that differ by `length` are confused, but they are
        many standard deviations away. Large angles weigh nothing: the bits cancel out.
        """
        d, k, share = self.values, self.members, self.share
        length = min(d + 1, math.ceil(13 * math.sqrt(d * share * (1 - share))) + 12) | 1
        angles = 2 * math.pi / length * np.arange(length // 2 + 1)
        size = d / 2 * np.log1p(-2 * share * (1 - share) * (1 - np.cos(angles)))
        angles = angles[size > -_NEGLIGIBLE]
        log_chance = math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1)
        log_chance += k * math.log(share) + (d - k) * math.log1p(-share)
        twice = np.where(angles == 0, 1.0, 2.0) / length
        return np.exp(1j * angles), np.log(twice) - 1j * k * angles - log_chance


def unary_law(odds: float, q01: float) -> BitLaw:
    """The law of unary encoding, where a clear bit is set with the chance `q01`: given the value, bits are independent.

    >>> unary_law(3.0, 0.25).p
    0.5
    """
    p = odds * q01 / (1 + (odds - 1) * q01)
    return BitLaw(odds, q01, q01, q01**2, q01 * (p - q01))


def subset_law(odds: float, values: int, members: int) -> BitLaw:
    """The law of subset selection: the other members of a set are a uniformly random subset of the other values.

    >>> subset_law(2.0, 3, 1).p
    0.5
    """
    share, k, n = members / values, members, values - 1
    p = odds * share / (1 + (odds - 1) * share)
    t = (k - 1) * (k - 2 * p) / (n * (n - 1)) if n > 1 else 0.0
    return BitLaw(odds, share, (k - p) / n, t, p * (k - 1) / n - t, values, members)


@lru_cache(maxsize=32)
def exponential_sum(least: float, most: float, power: int) -> tuple[Array, Array]:
    """Nodes and weights with `sum_i w_i exp(-t_i D)` near `D**-power` for every `D` from `least` to `most`.

    Least squares of the relative error, with columns `(t D)**power exp(-t D)` that are all of the same size.

    >>> nodes, weights = exponential_sum(1.0, 100.0, 1)
    >>> abs(float(weights @ np.exp(-7 * nodes)) - 1 / 7) < 1e-14
    True
    """
    count = 28 + math.ceil(5 * math.log(most / least))
    nodes, points = np.geomspace(0.01 / most, 36 / least, count), np.geomspace(least, most, 8 * count)
    products = np.outer(points, nodes)
    found = np.linalg.lstsq(np.exp(-products) * products**power, np.ones(len(points)), rcond=1e-14)[0]
    return nodes, np.asarray(found * nodes**power, dtype=np.float64)


# -- expected errors ---------------------------------------------------------------------------------------


def set_chances(law: BitLaw, shares: Array) -> Array:
    """How likely each bit is set when the values follow `shares`."""
    return np.asarray(law.q + law.contrast * shares)


def posterior_error(law: BitLaw, P: Array, rows: Rows) -> Array:
    """The expected variance of every statistic given the whole report; for None of the indicators of the values.

    For a row `a` of mean zero this is `a^2 . P - E[E[a | y]^2]`, where the second term is
    `E_B[(c sum_x a_x P_x y_x)^2 / (1 + c m)] / (1 + c share)`. Under the tilted law the bits are independent, so the
    square has a mean and a variance.

    >>> law, P = subset_law(2.0, 3, 1), np.array([0.5, 0.3, 0.2])
    >>> bool(np.allclose(posterior_error(law, P, None), P - P**2 * np.diag(subset_information(law, P))))
    True
    >>> posterior_error(unary_law(1.0, 0.5), np.array([0.5, 0.5]), np.array([[0.0, 1.0]])).round(12).tolist()
    [0.25]
    """
    c, (w, h) = law.odds - 1, law.tilted_bits(P)
    if rows is None:
        square = P**2 * (w @ (1 + (c**2 + 2 * c) * h)).real
        return np.asarray(P - square / law.scale)
    centred = rows - (rows @ P)[:, None]
    each = c * centred * P
    square = (((each @ h.T) ** 2 + each**2 @ (h * (1 - h)).T) @ w).real
    return np.asarray(centred**2 @ P - square / law.scale)


def guess_gain(law: BitLaw, P: Array) -> float:
    """The chance that the likeliest value given the report is the true one; closed form.

    `E_B[max_x P_x (1 + c y_x)] / (1 + c share)`: a guess looks for the commonest value whose bit is set. That value or
    the commonest of all is the guess, whichever is likelier.

    >>> round(guess_gain(subset_law(2.0, 3, 1), np.array([0.4, 0.3, 0.3])), 12)
    0.5
    >>> round(guess_gain(unary_law(1.0, 0.5), np.array([0.25, 0.75])), 12)
    0.75
    """
    ordered, first = np.sort(P)[::-1], law.first_chances(len(P))
    best = np.maximum(law.odds * ordered, ordered[0])[: len(first)]
    return float(first @ best + (1 - first.sum()) * ordered[0]) / law.scale


def ones_variance(law: BitLaw, P: Array) -> float:
    """N times the variance of the distribution read from the ones, summed over the values: `sum s (1 - s) / (p - q)^2`.

    With the noise of optimised unary encoding it is about `4 d e**eps / (e**eps - 1)**2`:

    >>> law, P = unary_law(math.e, 1 / (math.e + 1)), np.full(1000, 1e-3)
    >>> round(ones_variance(law, P) - 4000 * math.e / (math.e - 1) ** 2)
    2
    >>> round(ones_variance(subset_law(math.e, 20, 5), np.full(20, 0.05)), 4)
    66.6344
    """
    q, contrast = law.q, law.contrast
    if contrast <= 0:  # a bit carries no information
        return math.inf
    return (len(P) * q * (1 - q) + contrast * (1 - 2 * q)) / contrast**2 - float(P @ P)


def subset_information(law: BitLaw, P: Array) -> Array:
    """The Fisher information `J = E[r r']` of a report at the distribution `P`.

    >>> law, P = subset_law(2.0, 3, 1), np.array([0.5, 0.3, 0.2])
    >>> Q = np.full((3, 3), 0.25) + 0.25 * np.eye(3)
    >>> bool(np.allclose(subset_information(law, P), Q / (P @ Q) @ Q.T))
    True
    """
    c, (w, h) = law.odds - 1, law.tilted_bits(P)
    single = (w @ h).real
    J = float(w.sum().real) + c * (single[:, None] + single)
    scaled = c * np.sqrt(w)[:, None] * h
    J += scaled.real.T @ scaled.real - scaled.imag.T @ scaled.imag
    J[np.diag_indices(law.values)] = float(w.sum().real) + (c**2 + 2 * c) * single
    return np.asarray(J / law.scale)


def influence_squares(law: BitLaw, P: Array, influence: Array) -> Array:
    """`E[(a . r)^2 | x]` for every row `a` of `influence` and every value `x`: rows times values.

    Given the bit of `x`, the sum over the other bits has a mean and a variance.
    """
    c, (w, h) = law.odds - 1, law.tilted_bits(P, power=2)
    steps = c * influence
    means = influence.sum(axis=1) + h @ steps.T
    squares = means**2 + (h * (1 - h)) @ (steps**2).T
    if_set = (squares.T * w) @ h + 2 * steps * ((means.T * w) @ (h * (1 - h)))
    if_set += steps**2 * (w @ (h * (1 - h) * (1 - 2 * h)))
    mean = (squares.T @ w).real[:, None] + c * if_set.real
    return np.asarray(mean / law.scale)


def bitwise_error(law: BitLaw, P: Array, rows: Rows) -> Array:
    """The expected error of every statistic, for posteriors that use only each value's own bit."""
    chances = set_chances(law, P)
    if_set, if_clear = _single_bit_posteriors(law, P)
    if rows is None:
        return np.asarray(P - chances * if_set**2 - (1 - chances) * if_clear**2)
    # The error of a row `a` is the variance of `a_X - sum_x each_x y_x`.
    each = rows * (if_set - if_clear)
    cross = law.q * each.sum(axis=1) * (rows @ P) + law.contrast * ((rows * each) @ P)
    square = rows**2 @ P - 2 * cross + _second_moments(law, P, each)
    return np.asarray(np.maximum(square - (rows @ P - each @ chances) ** 2, 0.0))


def _single_bit_posteriors(law: BitLaw, P: Array) -> tuple[Array, Array]:
    """The probability of each value if its bit is set, and if it is clear."""
    chances = set_chances(law, P)
    return P * law.p / chances, P * (1 - law.p) / (1 - chances)


def _second_moments(law: BitLaw, shares: Array, rows: Rows) -> Array:
    """`E[(a . y)^2]` for every row `a`; None stands for the identity.

    `E[y y']` has the chances of bits on the diagonal, and those of pairs elsewhere.
    """
    chances, t, u = set_chances(law, shares), law.t, law.u
    if rows is None:
        return chances
    total = rows.sum(axis=1)
    own = rows**2 @ (chances - t - 2 * u * shares)
    return np.asarray(own + t * total**2 + 2 * u * total * (rows @ shares))


# -- estimates ---------------------------------------------------------------------------------------------


class BitCounts(NamedTuple):
    """A tally of rows of bits: how many, ones per value, and the sums of scores (of all, and per set bit)."""

    reports: float
    ones: Array
    base: float
    scores: Array

    def lifts(self, law: BitLaw) -> Array:
        """The sum of the lifts of every value, under the prior of the scores."""
        return np.asarray(self.base + (law.odds - 1) * self.scores)


def scored_posteriors(law: BitLaw, counts: BitCounts, P: Array, rows: Rows) -> Moments:
    """Posteriors given whole reports, added up; the variance is the expected posterior variance."""
    error = np.maximum(posterior_error(law, P, rows), 0.0)
    return Moments(apply_rows(rows, P * counts.lifts(law)), counts.reports * error)


def bitwise_posteriors(law: BitLaw, counts: BitCounts, P: Array, rows: Rows) -> Moments:
    """Posteriors given each value's own bit, added up."""
    if_set, if_clear = _single_bit_posteriors(law, P)
    histogram = counts.ones * if_set + (counts.reports - counts.ones) * if_clear
    error = counts.reports * bitwise_error(law, P, rows)
    return Moments(apply_rows(rows, histogram), error, assumes=_BITWISE)


def scored_moments(
    law: BitLaw, counts: BitCounts, P: Array, inverse: Array, rows: Rows, population: bool
) -> Moments:
    """The sum of `J^-1 r` over the reports; `inverse` is `J^-1` at the prior `P` of the scores."""
    N, influence = counts.reports, apply_rows(rows, inverse)
    shares = inverse @ counts.lifts(law) / (N or 1.0)
    square = influence_squares(law, P, influence) @ shares
    return Moments(influence @ counts.lifts(law), _unbiased_spread(square, rows, shares, N, population))


def ones_moments(law: BitLaw, counts: BitCounts, rows: Rows, population: bool) -> Moments:
    """`(ones - N q) / (p - q)`, with the variance of the reports; with `population`, people are a sample."""
    N = counts.reports
    n = (counts.ones - N * law.q) / law.contrast
    shares = n / (N or 1.0)
    # The estimate of a person is (a . y - q sum(a)) / (p - q): its second moment follows from that of a . y.
    shift = law.q * (1.0 if rows is None else rows.sum(axis=1))
    mean = apply_rows(rows, set_chances(law, shares))
    square = (_second_moments(law, shares, rows) - 2 * shift * mean + shift**2) / law.contrast**2
    return Moments(apply_rows(rows, n), _unbiased_spread(square, rows, shares, N, population))


def _unbiased_spread(per_person: Array, rows: Rows, shares: Array, N: float, population: bool) -> Array:
    """The variance of an unbiased answer from its second moment per person; see `estimators.known_part`."""
    return np.asarray(N * np.maximum(per_person - estimators.known_part(rows, shares, 1.0, population), 0.0))


def balanced_moments(law: BitLaw, counts: BitCounts, P: Array, rows: Rows, population: bool) -> Moments:
    """The unbiased answer made to add up to the reports: to first order at `P`, the most likely answer.

    With `w` in proportion to `s (1 - s)` at `P`, adding up to one, it is `n - w (sum of n - N)`, which is unbiased
    too; the noise of the bits of a report is independent, so its variances are those of weighted sums.
    """
    N = counts.reports
    n = (counts.ones - N * law.q) / law.contrast
    noise = (n * law.p * (1 - law.p) + (N - n) * law.q * (1 - law.q)) / law.contrast**2
    chances = set_chances(law, P)
    w = chances * (1 - chances) / float((chances * (1 - chances)).sum())
    balanced = n - w * (n.sum() - N)
    spread = noise * (1 - 2 * w) + w**2 * noise.sum()
    if rows is not None:
        spread = (rows - (rows @ w)[:, None]) ** 2 @ noise
    if population:
        share = balanced / (N or 1.0)
        spread = spread + N * (apply_rows(squared_rows(rows), share) - apply_rows(rows, share) ** 2)
    return Moments(apply_rows(rows, balanced), np.maximum(spread, 0.0))


def most_likely_ones(law: BitLaw, counts: BitCounts) -> Minimum:
    """The distribution that makes the counts of ones most likely, as if every bit came from another person.

    With a share `n` of ones the log-likelihood of a bit has the slope `n / s - (1 - n) / (1 - s)` in its chance `s`. At
    the maximum all slopes are one number `t`, or below it for values that nobody has. Shares fall as `t` grows, so
    bisection finds the `t` at which they add up to one.
    """
    n = counts.ones / (counts.reports or 1.0) if counts.reports else np.full(len(counts.ones), 0.5)
    q, contrast = law.q, law.contrast

    def shares(t: float) -> Array:
        # The root of `t s**2 - (t + 1) s + n` between zero and one, without cancellation.
        root = np.sqrt(np.maximum((t + 1) ** 2 - 4 * t * n, 0.0))
        chances = 2 * n / (t + 1 + root) if t > -1 else (t + 1 - root) / (2 * t)
        return np.maximum((chances - q) / contrast, 0.0)

    low, high, rounds = -2.0, 2.0, 0
    while shares(low).sum() < 1:
        low *= 2
    while shares(high).sum() > 1:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high, rounds = *((middle, high) if shares(middle).sum() > 1 else (low, middle)), rounds + 1
    p = shares(high) / shares(high).sum()
    chances = set_chances(law, p)
    slopes = contrast / len(p) * (n / chances - (1 - n) / (1 - chances))
    return Minimum(p, rounds, float(slopes.max() - p @ slopes))
