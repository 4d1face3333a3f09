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
from typing import NamedTuple

import numpy as np

from priorveil.arrays import Array
from priorveil.mechanisms.estimators import LinearAnswer, Numbers, QuadraticForm, known_form, shrink
from priorveil.mechanisms.simplex import Minimum, nearest_shares

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

    def tilted_bits(self, P: Array, power: int = 1) -> tuple[Numbers, Numbers]:
        """Numbers `w` and chances `h` (nodes, d) of independent bits.

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

    def _fourier_sum(self) -> tuple[Numbers, Numbers]:
        """Phases, and logarithms of weights, which together pick the reports with as many set bits as a subset has.

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


# -- covariances -----------------------------------------------------------------------------------------


def set_chances(law: BitLaw, shares: Array) -> Array:
    """How likely each bit is set when the values follow `shares`."""
    return np.asarray(law.q + law.contrast * shares)


def posterior_form(law: BitLaw, P: Array) -> QuadraticForm:
    """The expected covariance of a person's indicators given the whole report.

    A row `a` has the posterior mean `sum_x a_x P_x (1 + c y_x) / (1 + c m)`. Its expected variance is `a^2 . P` less
    the mean of the square under the prior, `E_B[(sum_x a_x P_x (1 + c y_x))^2 / (1 + c m)] / (1 + c share)`. Under the
    tilted law the bits are independent, so the square has a mean and a variance.

    >>> law, P = subset_law(2.0, 3, 1), np.array([0.5, 0.3, 0.2])
    >>> bool(np.allclose(posterior_form(law, P).variances(None), P - P**2 * np.diag(subset_information(law, P))))
    True
    >>> posterior_form(unary_law(1.0, 0.5), np.array([0.5, 0.5])).variances(np.array([[0.0, 1.0]])).round(12).tolist()
    [0.25]
    """
    c, (w, h) = law.odds - 1, law.tilted_bits(P)
    own = P - (c * P) ** 2 * (w @ (h * (1 - h))).real / law.scale
    means = P * (1 + c * h)
    return QuadraticForm(own, means, means, -w / law.scale)


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
    return ones_noise(law, len(P)) - float(P @ P)


def ones_noise(law: BitLaw, values: int) -> float:
    """The part of `ones_variance` that is the same for every distribution of so many values."""
    q, contrast = law.q, law.contrast
    if contrast <= 0:  # a bit carries no information
        return math.inf
    return (values * q * (1 - q) + contrast * (1 - 2 * q)) / contrast**2


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


def scored_form(law: BitLaw, P: Array, shares: Array) -> QuadraticForm:
    """The mean of `r r'` over people with these shares, `r` the lifts of a report under `P`.

    Given the bit of a person's own value, the sum over the other bits has a mean and a variance.
    """
    c, (w, h) = law.odds - 1, law.tilted_bits(P, power=2)
    noise, held = h * (1 - h), w * (1 + c * (h @ shares))
    own = c**2 * (held @ noise) + c**3 * shares * (w @ (noise * (1 - 2 * h)))
    left, right = np.tile(1 + c * h, (2, 1)), np.concatenate([1 + c * h, shares * noise])
    weights = np.concatenate([held, 2 * c**2 * w])
    return QuadraticForm(own.real / law.scale, left, right, weights / law.scale)


def bitwise_form(law: BitLaw, P: Array) -> QuadraticForm:
    """The expected squared error of indicators of posteriors that use only each value's own bit.

    The error of a row `a` is the variance of `a_X - sum_x a_x step_x y_x`, with `step` what a set bit adds.
    """
    chances, (if_set, if_clear) = set_chances(law, P), single_bit_posteriors(law, P)
    step = if_set - if_clear
    own = P - 2 * law.contrast * step * P + step**2 * (chances - law.t - 2 * law.u * P)
    mean = P - step * chances
    left, right = np.stack([P, step, step * P, mean]), np.stack([step, step, step, mean])
    return QuadraticForm(own, left, right, np.array([-2 * law.q, law.t, 2 * law.u, -1.0]))


def single_bit_posteriors(law: BitLaw, P: Array) -> tuple[Array, Array]:
    """The probability of each value if its bit is set, and if it is clear."""
    chances = set_chances(law, P)
    return P * law.p / chances, P * (1 - law.p) / (1 - chances)


def ones_form(law: BitLaw, shares: Array) -> QuadraticForm:
    """The mean of `n n'` over people with these shares, where `n = (y - q) / (p - q)` is what a report adds."""
    q, k, t, u, one = law.q, law.contrast, law.t, law.u, np.ones_like(shares)
    own = (set_chances(law, shares) - t - 2 * u * shares) / k**2
    weights = np.array([t - q**2, 2 * (u - q * k)]) / k**2
    return QuadraticForm(own, np.stack([one, shares]), np.stack([one, one]), weights)


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

    def shares(self, law: BitLaw, P: Array) -> Array:
        """A distribution for variances: near the unbiased one, and never so far from `P` that no noise is left."""
        N = self.reports or 1.0
        ones = shrink(self.ones, max(N, 0.0) * set_chances(law, P))
        return nearest_shares((ones / N - law.q) / law.contrast, np.ones_like(P))


def bitwise_posteriors(law: BitLaw, counts: BitCounts, P: Array) -> LinearAnswer:
    """Posteriors given each value's own bit, added up."""
    if_set, if_clear = single_bit_posteriors(law, P)
    histogram = counts.ones * if_set + (counts.reports - counts.ones) * if_clear
    return LinearAnswer(histogram, counts.reports, (bitwise_form(law, P),), _BITWISE)


def scored_answer(law: BitLaw, counts: BitCounts, P: Array, inverse: Array, population: bool) -> LinearAnswer:
    """The sum of `J^-1 r` over the reports; `inverse` is `J^-1` at the prior `P` of the scores."""
    histogram, shares = inverse @ counts.lifts(law), counts.shares(law, P)
    squares = scored_form(law, P, shares)._replace(through=inverse)
    return LinearAnswer(histogram, counts.reports, (squares, known_form(shares, population)))


def ones_answer(law: BitLaw, counts: BitCounts, P: Array, population: bool) -> LinearAnswer:
    """`(ones - N q) / (p - q)`, with the variance of the reports; with `population`, people are a sample."""
    N, shares = counts.reports, counts.shares(law, P)
    histogram = (counts.ones - N * law.q) / law.contrast
    return LinearAnswer(histogram, N, (ones_form(law, shares), known_form(shares, population)))


def balanced_answer(law: BitLaw, counts: BitCounts, P: Array, population: bool) -> LinearAnswer:
    """The unbiased answer made to add up to the reports: to first order at `P`, the most likely answer.

    With `w` in proportion to `s (1 - s)` at `P`, adding up to one, it is `n - w (sum of n - N)`, which is unbiased
    too; the noise of the bits of a report is independent, so its variances are those of weighted sums.
    """
    N, share = counts.reports, counts.shares(law, P)
    n = (counts.ones - N * law.q) / law.contrast
    noise = N * (share * law.p * (1 - law.p) + (1 - share) * law.q * (1 - law.q)) / law.contrast**2
    chances = set_chances(law, P)
    w = chances * (1 - chances) / float((chances * (1 - chances)).sum())
    balanced = n - w * (n.sum() - N)
    left, right = np.stack([noise, w, share]), np.stack([w, w, share])
    weights = np.array([-2.0, noise.sum(), -N * population])
    return LinearAnswer(balanced, 1.0, (QuadraticForm(noise + population * N * share, left, right, weights),))


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
