"""The plan for the mean of a number: the grid is chosen by expected error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from priorveil.designs.methods import design
from priorveil.errors import InvalidPrior
from priorveil.plans import Plan
from priorveil.priors import Budget, Prior
from priorveil.priors.number_labels import Outside
from priorveil.queries import Sum

_STEPS = (1, 2, 4, 8, 16, 32)
_TOLERANCE = 0.02  # a coarser grid is preferred if its error is larger by at most this share


def design_mean(
    low: float,
    high: float,
    epsilon: float | Budget,
    density: Callable[[float], float] | None = None,
    *,
    sample: Iterable[float] | None = None,
    outside: Outside = "refuse",
    unbiased: bool = True,
    **options: Any,
) -> Plan:
    """The plan for the mean of numbers from `low` to `high`, on the coarsest grid with nearly the least error.

    The error is that of the number itself: rounding and noise together. Half the steps are a further rounding, so the
    best plan of a finer grid is never worse; the number of steps is doubled until that gains little. `density`, or a
    public `sample`, says how common numbers are, as in `Prior.grid`; the `options` are those of `design`.

    >>> design_mean(0, 100, 1.0, lambda age: 1.0).labels
    (0.0, 50.0, 100.0)
    """
    numbers = None if sample is None else list(sample)
    errors: list[float] = []
    plans: list[Plan] = []
    for steps in _STEPS:
        points = np.linspace(low, high, steps + 1)
        try:
            prior = Prior.grid(points, density, sample=numbers, outside=outside)
        except InvalidPrior:
            if not plans:
                raise
            break  # too fine: some point has no numbers near it
        plan = design(prior, epsilon, Sum(points, unbiased=unbiased), **options)
        plans.append(plan)
        # The error of an unbiased query includes what rounding adds to the variance of the values.
        errors.append(plan.expected_mse + (0.0 if unbiased else plan.no_report))
        if steps > _STEPS[1] and errors[-2] <= errors[-1] * (1 + _TOLERANCE):
            break
    return plans[int(np.argmax(np.array(errors) <= min(errors) * (1 + _TOLERANCE)))]
