"""Whether reports came as the prior says: free tests of the law of reports, which is known."""

from __future__ import annotations

import math

import numpy as np
from flint import arb

from priorveil.priors import Array

_ENOUGH = 5.0  # the smallest expected count of a cell
_RANK = 1e-10  # directions in which posteriors move less, relative to the largest, do not count


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


def mean_check(moved: Array, square: Array, reports: int) -> float | None:
    """The p-value of posteriors that should, on average, be the priors: for people with a prior each.

    `moved` is the sum over reports of posterior less prior, `square` that of the outer products. If the
    priors are right, `moved' square**-1 moved` follows chi-square, a degree of freedom for every direction
    the reports can move. None where there are too few reports.

    >>> mean_check(np.array([0.0, 0.0]), np.array([[9.0, -9.0], [-9.0, 9.0]]), 100)
    1.0
    """
    size, vectors = np.linalg.eigh(square)
    seen = size > _RANK * max(float(size[-1]), 1e-300)
    if not seen.any() or reports < 2 * _ENOUGH * seen.sum():
        return None
    statistic = float(((vectors[:, seen].T @ moved) ** 2 / size[seen]).sum())
    return chi_square_tail(statistic, int(seen.sum()))
