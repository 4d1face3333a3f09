"""The plan for the mean of a number: the grid is chosen by expected error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from priorveil.arrays import Array
from priorveil.designs.methods import design
from priorveil.errors import NOT_SHOWN, InvalidInput, TooLarge
from priorveil.plans import Plan
from priorveil.priors import Budget, Prior
from priorveil.priors.number_domains import Cells, Grid, Outside, number_column
from priorveil.queries import Sum

# The range is halved so often at most, to 33 points: a finer grid rounds less, and takes longer.
_HALVINGS = 5
_FIRST = 9  # this many points are always tried: fewer may gain little at first
_TOLERANCE = 0.005  # a coarser grid is preferred if its error is larger by at most this share
_CELLS = 256  # equal parts of the range in which a density is integrated


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

    The error is that of the number itself: rounding and noise together. The step that costs most by rounding is halved
    again and again, so points are close where numbers are common. A halved step is a further rounding, so the best plan
    of a finer grid is never worse; the number of points is doubled while that gains enough. `density`, or a public
    `sample`, says how common numbers are, as in `Prior.grid`; without both, the plan assumes that all numbers of the
    range are equally common, and says so. The `options` are those of `design`.

    >>> design_mean(0, 100, 1.0).labels
    (0.0, 50.0, 100.0)
    """
    Grid([low, high], outside)  # refuses anything but a range
    if (sample is not None and density is not None) or not (density is None or callable(density)):
        advice = "give a function of a number, or a sample, and only one of them"
        raise InvalidInput("density", NOT_SHOWN, advice)
    assumed = sample is None and density is None
    numbers = None if sample is None else number_column("sample", sample)
    if numbers is None:
        cells = Cells(np.linspace(low, high, _CELLS + 1))
        sample_points = cells.density_nodes(density or (lambda _: 1.0), "density")
    Prior.grid([low, high], density, sample=numbers, outside=outside)  # refuses what cannot be a prior
    if numbers is not None:
        sample_points = np.clip(numbers, low, high), np.full(len(numbers), 1 / len(numbers))
    errors: list[float] = []
    plans: list[Plan] = []
    points = np.array([low, high], dtype=np.float64)
    for size in (1 + 2**halvings for halvings in range(_HALVINGS + 1)):
        while len(points) < size:
            points = _halve_a_step(points, *sample_points)
        grid, mass = _without_empty_points(points, *sample_points)
        prior = Prior.grid(grid, mass / mass.sum(), outside=outside, assumed=assumed)
        plan = design(prior, epsilon, Sum(grid, unbiased=unbiased), **options)
        try:
            # The error of an unbiased query includes what rounding adds to the variance of the values.
            errors.append(plan.expected_mse if unbiased else _error_of_posterior_means(plan, *sample_points))
        except TooLarge:
            break  # only a closed form with too many reports to list was quick enough for so fine a grid
        plans.append(plan)
        # Half the steps add a quarter of the variance, so the next gain is about a quarter of this one.
        if size >= _FIRST and errors[-2] <= errors[-1] * (1 + 4 * _TOLERANCE):
            break
    return plans[int(np.argmax(np.array(errors) <= min(errors) * (1 + _TOLERANCE)))]


def _error_of_posterior_means(plan: Plan, numbers: Array, weights: Array) -> float:
    """The mean squared distance from a number to the mean of its point given the report."""
    Q, P, points = plan.channel.matrix, plan.reference.probabilities, np.array(plan.labels)
    guess = (P * points) @ Q / (P @ Q)
    cross = Grid(points).masses(numbers, weights * numbers) @ Q @ guess
    return float((weights @ numbers**2 - 2 * cross) / weights.sum() + P @ Q @ guess**2)


def _halve_a_step(points: Array, numbers: Array, weights: Array) -> Array:
    """Add the middle of the step at which a new point lowers the variance of rounding most.

    A new point lowers that variance by its mass times the product of the distances to its neighbours.
    """
    half = np.diff(points) / 2
    finer = np.insert(points, range(1, len(points)), points[:-1] + half)
    mass = Grid(finer, "ends").masses(numbers, weights)
    best = int(np.argmax(mass[1::2] * half**2))
    return np.insert(points, best + 1, finer[2 * best + 1])


def _without_empty_points(points: Array, numbers: Array, weights: Array) -> tuple[Array, Array]:
    """Remove points until each has mass; return the others and their masses. The ends stay: they are the range."""
    while (mass := Grid(points, "ends").masses(numbers, weights)).min() <= 0:
        points = np.delete(points, np.clip(np.argmin(mass), 1, len(points) - 2))
    return points, mass
