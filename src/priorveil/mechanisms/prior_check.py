"""Whether reports came as the prior says: free tests of the law of reports, which is known."""

from __future__ import annotations

import math

import numpy as np
from flint import arb

from priorveil.priors import Array

_ENOUGH = 5.0  # the smallest expected count of a cell


def prior_check(counts: Array, law: Array) -> float | None:
    """The p-value of the counts under the known law of the cells (chi-square, rare cells merged).

    Small where the prior is wrong or someone tampers with the reports; the test cannot tell which. None where
    there are too few reports or too few cells to say anything.

    >>> prior_check(np.array([50.0, 50.0]), np.array([0.5, 0.5]))
    1.0
    """
    N = float(counts.sum())
    order = np.argsort(-law, kind="stable")
    expected, seen = N * law[order], counts[order]
    common = int(np.count_nonzero(expected >= _ENOUGH))
    if common < len(expected):
        expected = np.append(expected[:common], expected[common:].sum())
        seen = np.append(seen[:common], seen[common:].sum())
        if expected[-1] < _ENOUGH and common:
            expected[-2:], seen[-2:] = [expected[-2:].sum(), 0], [seen[-2:].sum(), 0]
            expected, seen = expected[:-1], seen[:-1]
    if len(expected) < 2 or N == 0:
        return None
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return chi_square_tail(statistic, len(expected) - 1)


def chi_square_tail(statistic: float, degrees: int) -> float:
    """The probability that a chi-square variable of so many degrees of freedom exceeds `statistic`.

    By the library of the certificates, which is loaded anyway: scipy's takes a quarter of a second to load.

    >>> round(chi_square_tail(5.991464547, 2), 9)
    0.05
    """
    if math.isinf(statistic):
        return 0.0
    tail = float((arb(statistic) / 2).gamma_upper(arb(degrees) / 2, 1))
    return 1.0 if tail > 1 else tail


def mean_check(moved: Array, variance: Array, rise: Array, fall: Array) -> float | None:
    """The p-value of posteriors that should, on average, be the priors: for people with a prior each.

    `moved` is the sum over reports of posterior less prior, `variance` what its variance is if the priors are right,
    `rise` and `fall` how far one report can move it up and down; all for every value. A sum of independent terms of
    mean zero, none above `m`, exceeds `t` with probability at most `exp(-E)`, `E = (V / m**2) h(t m / V)`, `h(u) =
    (1 + u) log(1 + u) - u` (Bennett's inequality), however rare the large terms are; the normal tail at `sqrt(2 E)`
    is what that comes to where they are common. The least over the values is multiplied by their number. None where
    reports tell nothing.

    >>> mean_check(np.array([0.0, 0.0]), np.array([9.0, 9.0]), np.ones(2), np.ones(2))
    1.0
    >>> mean_check(np.array([15.0, -15.0]), np.array([9.0, 9.0]), np.ones(2), np.ones(2)) < 0.001
    True
    """
    known = (variance > 0) & (rise > 0) & (fall > 0)
    if not known.any():
        return None
    t, V = moved[known], variance[known]
    m = np.where(t > 0, rise[known], fall[known])
    u = np.abs(t) * m / V
    exponent = float((V / m**2 * ((1 + u) * np.log1p(u) - u)).max())
    values = 1 if len(moved) == 2 else len(t)  # of two, one falls as the other rises
    return min(1.0, values * math.erfc(math.sqrt(max(exponent, 0.0))))
