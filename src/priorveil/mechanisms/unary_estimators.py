"""Estimates from unary reports, and their expected errors in closed form.

Privacy fixes the odds `R = (1-q01)(1-q10)/(q01 q10)`. With `c = R - 1`, a report `y` and `m(y)` the prior
mass of its set bits,

    Pr(x | y) = P_x (1 + c y_x) / (1 + c m(y)),      Pr(y) = B(y) (1 + c m(y)) / (1 + c q01),

where `B` is the law of independent bits, each set with probability `q01`. Errors are therefore means of
`.../(1 + c m)` under `B`. Write `1/D = integral of exp(-t D) dt`: under the integral the bits stay
independent, so every error is one integral of products over values, O(d) a node. `inverse_rule` has the
nodes, and a proven bound on the relative error they make, below 1e-14 (rounding of floats comes on top).
In the functions that end in `_gain`, `P` is the prior, `q01` the chance that a clear bit is set, `R` the odds.

An **mmse** estimate under the plan's prior adds up posteriors given whole reports, from the scores of the tally; its
variance is the expected posterior variance. The estimates that need the counts of ones alone are in `bit_estimators`.
To first order the **mle** is the unbiased estimate, with the excess over the number of reports subtracted in proportion
to `s (1 - s)`, `s` the chance of a bit to be set; its variance follows from that (`balanced_moments`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from priorveil.mechanisms.bit_estimators import BitCounts, set_chances
from priorveil.mechanisms.estimators import Moments, apply_rows, squared_rows
from priorveil.priors import Array

# -- expected errors ---------------------------------------------------------------------------------------


class InverseRule(NamedTuple):
    """Nodes and weights with `|D sum_i w_i exp(-t_i D) - 1| <= error` for every `1 <= D <= top`."""

    nodes: Array
    weights: Array
    error: float


def inverse_rule(top: float) -> InverseRule:
    """An exponential sum for `1/D`, with its proven relative error.

    The trapezoidal rule with step `h` in `s = log t`. By Poisson summation its relative error is at most
    `2 sum_k |Gamma(1 + 2 pi i k / h)|`, with `|Gamma(1 + i y)|^2 = pi y / sinh(pi y)`; truncating the ends
    adds at most `top e^s` on the left and `exp(-e^s)` on the right, each times `1 + h`.

    >>> rule = inverse_rule(100.0)
    >>> rule.error < 1e-13, abs(float(rule.weights @ np.exp(-7 * rule.nodes)) - 1 / 7) < 1e-14
    (True, True)
    """
    h, left, right = 0.24, math.log(1e-15 / top), math.log(38.0)
    s = left + h * np.arange(math.ceil((right - left) / h) + 1)
    nodes = np.exp(s)
    waves = 2 * math.pi / h * np.arange(1, 4)
    # sqrt(pi y / sinh(pi y)) < sqrt(2 pi y) exp(-pi y / 2) (1 + tiny); later terms are below 1e-30.
    aliasing = float(2 * np.sum(1.01 * np.sqrt(2 * math.pi * waves) * np.exp(-math.pi * waves / 2)))
    truncation = (1 + h) * (top * math.exp(left) + math.exp(-math.exp(s[-1])))
    return InverseRule(nodes, h * nodes, aliasing + truncation)


def _tilted_bits(P: Array, q01: float, R: float, copies: Array | None = None) -> tuple[Array, Array]:
    """Under `B` tilted by `exp(-t c m)`: the weight of every node, and the chance of every bit at every node.

    `copies` says how many values have each entry of `P`; by default one.
    """
    rule = inverse_rule(R)
    decay = np.exp(-np.outer(rule.nodes * (R - 1), P))
    product = np.log1p(q01 * (decay - 1)) @ (np.ones(len(P)) if copies is None else copies)
    weights = rule.weights * np.exp(product - rule.nodes) / (1 + (R - 1) * q01)
    return weights, q01 * decay / (1 + q01 * (decay - 1))


def histogram_gain(P: Array, q01: float, R: float) -> float:
    """`sum_y lam_y sum_x Pr(x | y)^2` of unary encoding; the histogram's MSE is one minus this.

    `E_B[(|P|^2 + (R^2 - 1) sum_x P_x^2 y_x) / (1 + c m)] / (1 + c q01)`. Equal probabilities are computed once.

    >>> round(histogram_gain(np.array([0.5, 0.5]), 0.5, 1.0), 12)  # a report without information
    0.5
    """
    values, copies = np.unique(P, return_counts=True)
    weights, chances = _tilted_bits(values, q01, R, copies.astype(np.float64))
    squares = copies * values**2
    return float(weights @ (squares.sum() + (R**2 - 1) * chances @ squares))


def posterior_variances(P: Array, q01: float, R: float) -> Array:
    """The expected posterior variance of every value's indicator; they add up to the histogram's MSE.

    >>> P = np.array([0.2, 0.3, 0.5])
    >>> round(float(posterior_variances(P, 0.3, 4.0).sum()) + histogram_gain(P, 0.3, 4.0), 12)
    1.0
    """
    weights, chances = _tilted_bits(P, q01, R)
    return np.asarray(P - P**2 * (weights @ (1 + (R**2 - 1) * chances)))


def sum_gain(P: Array, q01: float, R: float, rows: Array) -> Array:
    """`E[E[a | y]^2]` for every row `a` of values: the sum's MSE is `E[a^2]` minus this.

    `E_B[(A + c sum_x a_x P_x y_x)^2 / (1 + c m)] / (1 + c q01)` with `A = E[a]`; under the tilted law the
    bits are independent, so the square has a mean and a variance.

    >>> P, a = np.array([0.5, 0.5]), np.array([[0.0, 1.0]])
    >>> sum_gain(P, 0.5, 1.0, a).round(12).tolist()
    [0.25]
    """
    weights, chances = _tilted_bits(P, q01, R)
    each = (R - 1) * rows * P
    mean = (rows @ P)[:, None] + each @ chances.T
    variance = each**2 @ (chances * (1 - chances)).T
    return np.asarray((mean**2 + variance) @ weights)


def guess_gain(P: Array, q01: float, R: float) -> float:
    """The chance that the likeliest value given the report is the true one; closed form.

    `E_B[max_x P_x (1 + c y_x)] / (1 + c q01)`: sort the values by prior, and ask which set bit comes first.

    >>> round(guess_gain(np.array([0.25, 0.75]), 0.5, 1.0), 12)
    0.75
    """
    ordered = np.sort(P)[::-1]
    first = q01 * (1 - q01) ** np.arange(P.size)
    best = np.maximum(R * ordered, ordered[0])
    return float(first @ best + (1 - q01) ** P.size * ordered[0]) / (1 + (R - 1) * q01)


def learning_gain(P: Array, q01: float, R: float) -> float:
    """One over the variance, summed over the values, of the distribution estimated bit by bit.

    A bit is one with probability `m_x = q01 + P_x (1 - q01 - q10)`; the share of ones, shifted and scaled,
    has the variance `m_x (1 - m_x) / (1 - q01 - q10)**2` per person. Reading the bits together can only do better.
    With the noise of optimised unary encoding it is about `4 d e**eps / (e**eps - 1)**2`:

    >>> q01 = 1 / (math.e + 1)
    >>> round(1 / learning_gain(np.full(1000, 1e-3), q01, math.e) - 4000 * math.e / (math.e - 1) ** 2)
    2
    """
    contrast = (1 - q01) * (R - 1) * q01 / (1 + (R - 1) * q01)
    ones = q01 + P * contrast
    variance = float((ones * (1 - ones)).sum())
    return contrast**2 / variance if variance > 0 else 0.0  # if every bit is one, it tells nothing


# -- estimates ---------------------------------------------------------------------------------------------


class UnaryLaw(NamedTuple):
    """The chances that a clear bit is set and a set bit cleared, and the odds."""

    q01: float
    q10: float
    odds: float

    @property
    def p(self) -> float:
        """The chance that the bit of the true value is set."""
        return 1 - self.q10

    @property
    def q(self) -> float:
        """The chance that the bit of any other value is set."""
        return self.q01

    @property
    def contrast(self) -> float:
        """`1 - q01 - q10`: how much likelier a bit is set for its own value."""
        return 1 - self.q01 - self.q10

    @property
    def pair_chances(self) -> tuple[float, float]:
        """`(t, u)`: the bits of two values `x` and `z` are both set with the chance `t + u (P_x + P_z)`."""
        return self.q01**2, self.q01 * self.contrast


def joint_moments(law: UnaryLaw, counts: BitCounts, prior: Array, rows: Array | None) -> Moments:
    """Posteriors given whole reports, added up: `P_x (sum of scores + (R - 1) sum of scores with bit x set)`."""
    histogram = prior * (counts.base + (law.odds - 1) * counts.scores)
    if rows is None:
        return Moments(histogram, counts.reports * posterior_variances(prior, law.q01, law.odds))
    centred = rows - (rows @ prior)[:, None]
    error = centred**2 @ prior - sum_gain(prior, law.q01, law.odds, centred)
    return Moments(rows @ histogram, counts.reports * np.maximum(error, 0.0))


def balanced_moments(
    law: UnaryLaw, counts: BitCounts, p: Array, rows: Array | None, population: bool
) -> Moments:
    """The unbiased answer made to add up to the reports: to first order at `p`, the most likely answer.

    With `w` in proportion to `s (1 - s)` at `p`, adding up to one, it is `n - w (sum of n - N)`; the noise of
    the bits of a report is independent, so its variances are those of weighted sums.
    """
    (q01, q10, _), N = law, counts.reports
    n = (counts.ones - N * q01) / law.contrast
    noise = (n * q10 * (1 - q10) + (N - n) * q01 * (1 - q01)) / law.contrast**2
    chances = set_chances(law, p)
    w = chances * (1 - chances) / float((chances * (1 - chances)).sum())
    balanced = n - w * (n.sum() - N)
    spread = noise * (1 - 2 * w) + w**2 * noise.sum()
    if rows is not None:
        spread = (rows - (rows @ w)[:, None]) ** 2 @ noise
    if population:
        share = balanced / (N or 1.0)
        spread = spread + N * (apply_rows(squared_rows(rows), share) - apply_rows(rows, share) ** 2)
    return Moments(apply_rows(rows, balanced), np.maximum(spread, 0.0))
