"""How much a unary report tells: exact errors, with nothing simulated and nothing listed.

Privacy fixes the odds `R = (1-q01)(1-q10)/(q01 q10)`. With `c = R - 1`, a report `y` and `m(y)` the prior
mass of its set bits,

    Pr(x | y) = P_x (1 + c y_x) / (1 + c m(y)),      Pr(y) = B(y) (1 + c m(y)) / (1 + c q01),

where `B` is the law of independent bits, each set with probability `q01`. Errors are therefore means of
`.../(1 + c m)` under `B`. Write `1/D = integral of exp(-t D) dt`: under the integral the bits stay
independent, so every error is one integral of products over values, O(d) a node. `inverse_rule` has the
nodes, and a proven bound on the relative error they make, below 1e-14 (rounding of floats comes on top).

Everywhere `P` is the prior, `q01` the chance that a clear bit is set, `R` the odds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class InverseRule(NamedTuple):
    """Nodes and weights with `|D sum_i w_i exp(-t_i D) - 1| <= error` for every `1 <= D <= top`."""

    nodes: Array
    weights: Array
    error: float


def inverse_rule(top: float) -> InverseRule:
    """An exponential sum for `1/D`, with its proven relative error.

    The trapezoidal rule with step `h` in `s = log t`. By Poisson summation its relative error is at most
    `2 sum_k |Gamma(1 + 2 pi i k / h)|`, with `|Gamma(1 + i y)|^2 = pi y / sinh(pi y)`; cutting the ends
    off adds at most `top e^s` on the left and `exp(-e^s)` on the right, each times `1 + h`.

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
    cut = (1 + h) * (top * math.exp(left) + math.exp(-math.exp(s[-1])))
    return InverseRule(nodes, h * nodes, aliasing + cut)


class _Tilted(NamedTuple):
    """Under `B` tilted by `exp(-t c m)`: the weight of every node and the chance of every bit."""

    weights: Array
    chances: Array


def _tilted(P: Array, q01: float, R: float) -> _Tilted:
    rule = inverse_rule(R)
    decay = np.exp(-np.outer(rule.nodes * (R - 1), P))
    product = np.log1p(q01 * (decay - 1)).sum(axis=1)
    chances = q01 * decay / (1 + q01 * (decay - 1))
    weights = rule.weights * np.exp(product - rule.nodes) / (1 + (R - 1) * q01)
    return _Tilted(weights, chances)


def _grouped(P: Array) -> tuple[Array, Array]:
    """Different probabilities and how many values have each: equal ones are worked out once."""
    values, counts = np.unique(P, return_counts=True)
    return values, counts.astype(np.float64)


def histogram_gain(P: Array, q01: float, R: float) -> float:
    """`sum_y lam_y sum_x Pr(x | y)^2` of unary encoding; the histogram's MSE is one minus this.

    `E_B[(|P|^2 + (R^2 - 1) sum_x P_x^2 y_x) / (1 + c m)] / (1 + c q01)`.

    >>> round(histogram_gain(np.array([0.5, 0.5]), 0.5, 1.0), 12)  # a report that says nothing
    0.5
    """
    rule, (values, counts) = inverse_rule(R), _grouped(P)
    decay = np.exp(-np.outer(rule.nodes * (R - 1), values))
    mixed = 1 + q01 * (decay - 1)
    squares = counts * values**2
    told = squares.sum() + (R**2 - 1) * (q01 * decay / mixed) @ squares
    weights = rule.weights * np.exp(np.log(mixed) @ counts - rule.nodes)
    return float(weights @ told) / (1 + (R - 1) * q01)


def posterior_variances(P: Array, q01: float, R: float) -> Array:
    """The expected posterior variance of every value's indicator; they add up to the histogram's MSE.

    >>> P = np.array([0.2, 0.3, 0.5])
    >>> round(float(posterior_variances(P, 0.3, 4.0).sum()) + histogram_gain(P, 0.3, 4.0), 12)
    1.0
    """
    weights, chances = _tilted(P, q01, R)
    return np.asarray(P - P**2 * (weights @ (1 + (R**2 - 1) * chances)))


def sum_gain(P: Array, q01: float, R: float, rows: Array) -> Array:
    """`E[E[a | y]^2]` for every row `a` of values: the sum's MSE is `E[a^2]` minus this.

    `E_B[(A + c sum_x a_x P_x y_x)^2 / (1 + c m)] / (1 + c q01)` with `A = E[a]`; under the tilted law the
    bits are independent, so the square has a mean and a variance.

    >>> P, a = np.array([0.5, 0.5]), np.array([[0.0, 1.0]])
    >>> sum_gain(P, 0.5, 1.0, a).round(12).tolist()
    [0.25]
    """
    weights, chances = _tilted(P, q01, R)
    each = (R - 1) * rows * P
    mean = (rows @ P)[:, None] + each @ chances.T
    variance = each**2 @ (chances * (1 - chances)).T
    return np.asarray((mean**2 + variance) @ weights)


def guess_gain(P: Array, q01: float, R: float) -> float:
    """The chance that the likeliest value given the report is the true one; closed form.

    `E_B[max_x P_x (1 + c y_x)] / (1 + c q01)`: sort the values by prior, and ask which is the first shown.

    >>> round(guess_gain(np.array([0.25, 0.75]), 0.5, 1.0), 12)
    0.75
    """
    ordered = np.sort(P)[::-1]
    first = q01 * (1 - q01) ** np.arange(P.size)
    best = np.maximum(R * ordered, ordered[0])
    return float(first @ best + (1 - q01) ** P.size * ordered[0]) / (1 + (R - 1) * q01)


def learning_gain(P: Array, q01: float, R: float) -> float:
    """One over the variance, summed over the values, of the distribution read from unary reports bit by bit.

    A bit is one with probability `m_x = q01 + P_x (1 - q01 - q10)`; the share of ones, shifted and scaled,
    has the variance `m_x (1 - m_x) / (1 - q01 - q10)**2` per person. Bits read together can only do better.
    With the noise of optimised unary encoding it is about `4 d e**eps / (e**eps - 1)**2`:

    >>> q01 = 1 / (math.e + 1)
    >>> round(1 / learning_gain(np.full(1000, 1e-3), q01, math.e) - 4000 * math.e / (math.e - 1) ** 2)
    2
    """
    apart = (1 - q01) * (R - 1) * q01 / (1 + (R - 1) * q01)
    ones = q01 + P * apart
    return apart**2 / float((ones * (1 - ones)).sum())


def clearing(q01: float, R: float) -> float:
    """The `q10` that goes with `q01` on the curve of odds `R`.

    >>> round(clearing(0.25, 3.0), 12)
    0.5
    """
    return (1 - q01) / (1 + (R - 1) * q01)
