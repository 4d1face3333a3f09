"""How the maximum of an estimating equation is found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from priorveil.arrays import Array
from priorveil.statistics.estimating_equation import EstimatingEquation

_FLAT = 1e-7  # of the slope per report, where a search ends and Newton's steps begin
_ENDLESS = 30.0  # coefficients of covariates of spread one that only grow: there is no finite maximum
_ROUNDS = 300
_REFINEMENTS = 10

minimize: Any = optimize.minimize  # its types know no function that also returns its derivative


class Maximum(NamedTuple):
    """Where a search ended: the parameters, and the value there."""

    theta: Array
    value: float


def climb(equation: EstimatingEquation, theta: Array) -> Maximum:
    """The maximum that a trust-region search finds from here, refined by Newton's steps."""
    n = equation.reports
    found = minimize(
        lambda at: loss(equation, at),
        theta,
        jac=True,
        hess=lambda at: equation.information(at) / n,
        method="trust-exact",
        options={"gtol": _FLAT, "maxiter": _ROUNDS},
        callback=_stop_if_endless,
    )
    return _refine(equation, found.x)


def quasi_newton(equation: EstimatingEquation, theta: Array) -> Array:
    """Where a BFGS search from here ends."""
    found = minimize(
        lambda at: loss(equation, at),
        theta,
        jac=True,
        method="BFGS",
        options={"gtol": 1e-4, "maxiter": _ROUNDS},
        callback=_stop_if_endless,
    )
    return np.asarray(found.x)


def loss(equation: EstimatingEquation, theta: Array) -> tuple[float, Array]:
    """What a search minimises: minus the value per report, and its derivative."""
    value, slope = equation.value_and_slope(theta)
    return -value / equation.reports, -slope / equation.reports


def _stop_if_endless(intermediate_result: optimize.OptimizeResult) -> None:
    if np.abs(intermediate_result.x).max() > _ENDLESS:
        raise StopIteration


def _refine(equation: EstimatingEquation, theta: Array) -> Maximum:
    """Newton's steps for as long as they make the slope smaller."""
    value, slope = equation.value_and_slope(theta)
    for _ in range(_REFINEMENTS):
        try:
            step = np.linalg.solve(equation.information(theta), slope)
        except np.linalg.LinAlgError:
            break
        after, next_slope = equation.value_and_slope(theta + step)
        if not np.abs(next_slope).max() < np.abs(slope).max() / 2:
            break
        theta, value, slope = theta + step, after, next_slope
    return Maximum(theta, value)
