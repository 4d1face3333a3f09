"""Covariances and expected errors of estimates from rows of bits.

By the law of `mechanisms.bit_law`, errors are means of `.../(1 + c m)` under `B`. Written as a sum of exponentials of
`m`, such a mean is a sum over independent bits (`tilted_bits`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from priorveil.arrays import Array
from priorveil.mechanisms.bit_law import BitLaw
from priorveil.reading.linear_answers import ComplexArray, QuadraticForm

_NEGLIGIBLE = 80.0  # minus the logarithm of a weight that is small enough to be left out


def covariance_factors(law: BitLaw, P: Array) -> Array:
    """`F` such that the bits of a report have the covariance `diag(s - t - 2 u P) - F F'`, `s` their chances.

    For subsets this is the covariance plus a multiple of the matrix of ones, which changes no test: the ones of a
    report always add up to the same number, so every tested vector adds up to zero. The covariance alone would be
    singular.
    """
    if not law.members:
        return law.contrast * P[:, None]
    factor = law.contrast * P + law.q - law.u / law.contrast
    return np.stack([factor, np.full(len(P), law.q)], axis=1)


def tilted_bits(law: BitLaw, P: Array, power: int = 1) -> tuple[ComplexArray, ComplexArray]:
    """Complex weights `w` (nodes) and chances `h` (nodes, d) of independent bits.

    For a function `g` that is linear in every bit, the mean of `g(y) / (1 + c m(y))**power` under `B` is the real
    part of `sum_i w_i E_i[g]`, where under `E_i` bit `x` is set with the "chance" `h[i, x]`.

    `D**-power` is a sum of exponentials of `D = 1 + c m`, and the size of a set is fixed by a Fourier sum. Equal
    probabilities are computed once. Tests compare it with sums over all reports.
    """
    c, share = law.odds - 1, law.share
    least, most = 1.0, law.odds
    phases, log_weights = np.ones(1), np.zeros(1)
    if law.members:
        ordered = np.sort(P)
        least = (1 + c * float(ordered[: law.members].sum())) * (1 - 1e-9)
        most = (1 + c * float(ordered[-law.members :].sum())) * (1 + 1e-9)
        phases, log_weights = _fourier_sum(law)
    nodes, heights = exponential_sum(least, most, power)
    values, place, copies = np.unique(P, return_inverse=True, return_counts=True)
    tilts = share * phases[:, None, None] * np.exp(-c * np.outer(nodes, values))
    logs = np.log(1 - share + tilts) @ copies - nodes + log_weights[:, None]
    weights = (np.exp(logs) * heights).reshape(-1)
    relevant = np.abs(weights) > 1e-17 * float(np.abs(weights).max())
    chances = (tilts / (1 - share + tilts)).reshape(-1, len(values))
    return weights[relevant], chances[relevant][:, place]


def _fourier_sum(law: BitLaw) -> tuple[ComplexArray, ComplexArray]:
    """Phases, and logarithms of weights, which together pick the reports with as many set bits as a subset has.

    `d` bits are each set with this share, and the sum keeps the reports with `k` set bits. It cannot tell counts apart
    that differ by `length`, but these are many standard deviations away. Large angles weigh nothing: the bits cancel
    out.
    """
    d, k, share = law.values, law.members, law.share
    length = min(d + 1, math.ceil(13 * math.sqrt(d * share * (1 - share))) + 12) | 1
    angles = 2 * math.pi / length * np.arange(length // 2 + 1)
    size = d / 2 * np.log1p(-2 * share * (1 - share) * (1 - np.cos(angles)))
    angles = angles[size > -_NEGLIGIBLE]
    log_chance = math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1)
    log_chance += k * math.log(share) + (d - k) * math.log1p(-share)
    twice = np.where(angles == 0, 1.0, 2.0) / length
    return np.exp(1j * angles), np.log(twice) - 1j * k * angles - log_chance


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
    scaled = np.linalg.lstsq(np.exp(-products) * products**power, np.ones(len(points)), rcond=1e-14)[0]
    return nodes, np.asarray(scaled * nodes**power, dtype=np.float64)


def set_chances(law: BitLaw, shares: Array) -> Array:
    """How likely each bit is set when the values follow `shares`."""
    return np.asarray(law.q + law.contrast * shares)


def posterior_form(law: BitLaw, P: Array) -> QuadraticForm:
    """The expected covariance of a person's indicators given the whole report.

    A row `a` has the posterior mean `sum_x a_x P_x (1 + c y_x) / (1 + c m)`. Its expected variance is `a^2 . P` less
    the mean of the square under the prior, `E_B[(sum_x a_x P_x (1 + c y_x))^2 / (1 + c m)] / (1 + c share)`. Under the
    tilted law the bits are independent, so the square has a mean and a variance.

    >>> from priorveil.mechanisms.bit_law import subset_law, unary_law
    >>> law, P = subset_law(2.0, 3, 1), np.array([0.5, 0.3, 0.2])
    >>> bool(np.allclose(posterior_form(law, P).variances(None), P - P**2 * np.diag(subset_information(law, P))))
    True
    >>> posterior_form(unary_law(1.0, 0.5), np.array([0.5, 0.5])).variances(np.array([[0.0, 1.0]])).round(12).tolist()
    [0.25]
    """
    c = law.odds - 1
    w, h = tilted_bits(law, P)
    diagonal = P - (c * P) ** 2 * (w @ (h * (1 - h))).real / law.scale
    means = P * (1 + c * h)
    return QuadraticForm(diagonal, means, means, -w / law.scale)


def guess_gain(law: BitLaw, P: Array) -> float:
    """The chance that the likeliest value given the report is the true one; closed form.

    `E_B[max_x P_x (1 + c y_x)] / (1 + c share)`: a guess looks for the commonest value whose bit is set. That value or
    the commonest of all is the guess, whichever is likelier.

    >>> from priorveil.mechanisms.bit_law import subset_law, unary_law
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

    >>> from priorveil.mechanisms.bit_law import subset_law, unary_law
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

    >>> from priorveil.mechanisms.bit_law import subset_law
    >>> law, P = subset_law(2.0, 3, 1), np.array([0.5, 0.3, 0.2])
    >>> Q = np.full((3, 3), 0.25) + 0.25 * np.eye(3)
    >>> bool(np.allclose(subset_information(law, P), Q / (P @ Q) @ Q.T))
    True
    """
    c = law.odds - 1
    w, h = tilted_bits(law, P)
    single = (w @ h).real
    J = float(w.sum().real) + c * (single[:, None] + single)
    scaled = c * np.sqrt(w)[:, None] * h
    J += scaled.real.T @ scaled.real - scaled.imag.T @ scaled.imag
    J[np.diag_indices(law.values)] = float(w.sum().real) + (c**2 + 2 * c) * single
    return np.asarray(J / law.scale)


def lift_form(law: BitLaw, P: Array, shares: Array) -> QuadraticForm:
    """The mean of `r r'` over people with these shares, `r` the lifts of a report under `P`.

    Given the bit of a person's own value, the sum over the other bits has a mean and a variance.
    """
    c = law.odds - 1
    w, h = tilted_bits(law, P, power=2)
    noise, mass = h * (1 - h), w * (1 + c * (h @ shares))
    diagonal = c**2 * (mass @ noise) + c**3 * shares * (w @ (noise * (1 - 2 * h)))
    left, right = np.tile(1 + c * h, (2, 1)), np.concatenate([1 + c * h, shares * noise])
    weights = np.concatenate([mass, 2 * c**2 * w])
    return QuadraticForm(diagonal.real / law.scale, left, right, weights / law.scale)


def bitwise_form(law: BitLaw, P: Array) -> QuadraticForm:
    """The expected squared error of indicators of posteriors that use only each value's own bit.

    The error of a row `a` is the variance of `a_X - sum_x a_x step_x y_x`, with `step` what a set bit adds.
    """
    chances = set_chances(law, P)
    if_set, if_clear = single_bit_posteriors(law, P)
    step = if_set - if_clear
    diagonal = P - 2 * law.contrast * step * P + step**2 * (chances - law.t - 2 * law.u * P)
    mean = P - step * chances
    left, right = np.stack([P, step, step * P, mean]), np.stack([step, step, step, mean])
    return QuadraticForm(diagonal, left, right, np.array([-2 * law.q, law.t, 2 * law.u, -1.0]))


def single_bit_posteriors(law: BitLaw, P: Array) -> tuple[Array, Array]:
    """The probability of each value if its bit is set, and if it is clear."""
    chances = set_chances(law, P)
    return P * law.p / chances, P * (1 - law.p) / (1 - chances)


def ones_form(law: BitLaw, shares: Array) -> QuadraticForm:
    """The mean of `n n'` over people with these shares, where `n = (y - q) / (p - q)` is what a report adds."""
    q, k, t, u = law.q, law.contrast, law.t, law.u
    one = np.ones_like(shares)
    diagonal = (set_chances(law, shares) - t - 2 * u * shares) / k**2
    weights = np.array([t - q**2, 2 * (u - q * k)]) / k**2
    return QuadraticForm(diagonal, np.stack([one, shares]), np.stack([one, one]), weights)


def ones_squares(law: BitLaw, rows: Array) -> Array:
    """The mean of `(a . n)**2` for every row `a` and people with each value, where `n = (y - q) / (p - q)`.

    It is `ones_form` for people who all have one value.

    >>> from priorveil.mechanisms.bit_law import unary_law
    >>> law = unary_law(3.0, 0.25)
    >>> ones_squares(law, np.array([[0.0, 1.0]])).round(12).tolist()  # q (1 - q) / (p - q)**2, and 1 + p (1 - p) / ...
    [[3.0, 5.0]]
    """
    q, k, t, u = law.q, law.contrast, law.t, law.u
    sums = rows.sum(axis=1, keepdims=True)
    common = (q - t) * np.square(rows).sum(axis=1, keepdims=True) + (t - q**2) * sums**2
    return np.asarray((common + (k - 2 * u) * rows**2 + 2 * (u - q * k) * rows * sums) / k**2)


def lift_squares(law: BitLaw, P: Array, rows: Array) -> Array:
    """The mean of `(a . r)**2` for every row `a` and people with each value, `r` the lifts of a report under `P`.

    It is `lift_form` for people who all have one value.

    >>> from priorveil.mechanisms.bit_law import subset_law
    >>> law, P, rows = subset_law(2.0, 4, 2), np.array([0.4, 0.3, 0.2, 0.1]), np.array([[1.0, -2.0, 0.5, 3.0]])
    >>> squares = [float(lift_form(law, P, one).variances(rows)[0]) for one in np.eye(4)]
    >>> bool(np.allclose(lift_squares(law, P, rows), [squares]))
    True
    """
    c = law.odds - 1
    w, h = tilted_bits(law, P, power=2)
    noise, left = h * (1 - h), rows @ (1 + c * h).T
    own = (w[:, None] * noise * (1 - 2 * h)).sum(axis=0)
    squares = (left**2 * w + c**2 * (rows**2 @ noise.T) * w) @ (1 + c * h)
    squares += 2 * c**2 * ((left * w) @ noise) * rows + c**3 * rows**2 * own
    return np.asarray(squares.real / law.scale)
