"""Planning: how many people a question takes, what a test of it can find, and how to divide people among strata.

Everything follows from the first two moments of what one report adds to an unbiased statistic, for each value. If
people follow the distribution `p`, the variance per person is `p . E[s**2 | x] - (W . p)**2`; with n people the
estimate has this variance over n. It is for the population that people are drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil import showing
from priorveil.arrays import Array, Ints, real_number, real_numbers
from priorveil.errors import NOT_SHOWN, Infeasible, InvalidInput
from priorveil.priors import Label
from priorveil.priors.label_texts import first_labels
from priorveil.reading.moments import normal_width
from priorveil.statistics.plan_scores import ReadablePlan, mean_squares, require_unbiased

OneOrTwo = Literal[1, 2]

_ROUNDING = (
    1e-9  # how far a number of people may be above a whole number, relatively, and still be that number
)
_MOST_PEOPLE = 1 << 62
_LARGEST_TILT = 700.0  # of log odds: beyond, only the values at the end of the range are left


@dataclass(frozen=True, eq=False)
class ScoreMoments:
    """What one report adds to unbiased statistics: a row for each statistic, a column for each value.

    `means` are the statistics `W` themselves, less a constant, and `squares` are `E[s**2 | x]` for the scores `s` with
    these means.
    """

    means: Array
    squares: Array

    @classmethod
    def of(cls, plan: ReadablePlan, at: int | None = None) -> ScoreMoments:
        """The moments of all statistics of a plan, or of the one at this place."""
        return cls(*mean_squares(plan, at))

    @classmethod
    def without_noise(cls, rows: Array) -> ScoreMoments:
        """The moments if everybody reported their value."""
        return cls(rows, rows**2)

    def variances(self, shares: Array) -> Array:
        """The variance per person of each statistic, if people follow these shares."""
        return np.maximum(self.squares @ shares - (self.means @ shares) ** 2, 0.0)

    @cached_property
    def worst_variances(self) -> Array:
        """The largest variance per person of each statistic, over all distributions of the values."""
        pairs = zip(self.means, self.squares, strict=True)
        return np.array([worst_variance(means, squares) for means, squares in pairs])


def worst_variance(means: Array, squares: Array) -> float:
    """The largest variance `p . squares - (p . means)**2` over all distributions `p`.

    It is concave in `p`. For a given mean `p . means` the rest is linear under two constraints, so two values are
    enough: `x` with the share `q = clip((m2_x - m2_z - 2 W_z (W_x - W_z)) / (2 (W_x - W_z)**2), 0, 1)`, and `z`. Of
    values with the same mean the one with the largest square counts.

    >>> round(worst_variance(np.array([1.0, 0.0]), np.array([1.0, 0.0])), 12)  # of a share, without noise
    0.25
    """
    levels, group = np.unique(means, return_inverse=True)
    most = np.full(len(levels), -np.inf)
    np.maximum.at(most, group, squares)
    distance = levels[:, None] - levels
    advantage = most[:, None] - most - 2 * levels * distance
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(np.where(distance == 0, 1.0, advantage / (2 * distance**2)), 0.0, 1.0)
    return float((most + share * advantage - share**2 * distance**2 - levels**2).max())


def people_within(variance: float, within: float, confidence: float = 0.95) -> int:
    """How many people make half the width of a confidence interval at most `within`; `variance` is that of one person.

    >>> people_within(0.25, 0.03)
    1068
    """
    if not real_number(within) > 0:
        raise InvalidInput("within", within, "give half the width of the interval, above zero")
    return _whole((normal_width(confidence) / within) ** 2 * variance)


def half_width(variance: float, people: int, confidence: float = 0.95) -> float:
    """Half the width of the confidence interval that this many people give; `variance` is that of one person.

    >>> round(half_width(0.25, 1_068), 4)
    0.03
    """
    return normal_width(confidence) * math.sqrt(variance / require_people(people))


def require_people(people: int) -> int:
    """The number of people, one or more."""
    if type(people) is bool or not isinstance(people, int | np.integer) or people < 1:
        raise InvalidInput("people", people, "give the number of people, one or more")
    return int(people)


def _whole(people: float) -> int:
    return max(1, math.ceil(people * (1 - _ROUNDING)))


# -- tests -------------------------------------------------------------------------------------------------


def critical_value(level: float, sides: OneOrTwo) -> float:
    """How many standard errors from the null a test at this level rejects."""
    if not 0 < real_number(level) < 1:
        raise InvalidInput("level", level, "give the chance of a false alarm, such as 0.05")
    if sides not in (1, 2):
        raise InvalidInput("sides", sides, "give 1 for a one-sided test, 2 for a two-sided one")
    return -NormalDist().inv_cdf(level / sides)


def power_of_test(
    difference: float,
    null_variance: float,
    variance: float,
    people: int,
    level: float = 0.05,
    sides: OneOrTwo = 2,
) -> float:
    """The chance that a test finds a difference: it rejects beyond `z` standard errors under the null.

    The estimate is normal with `variance / people` around the true `difference` from the null, and the test compares it
    with `null_variance / people`, the variance if there is no difference.

    Forced response (truth with 2/3, yes with 1/6), .2 against 0, as the R package rr has it:

    >>> noise = 9 / 4 * 1 / 6 * 5 / 6
    >>> round(power_of_test(0.2, noise, 9 / 4 * 0.3 * 0.7, people=200, level=0.01, sides=1), 6)
    0.986887
    """
    z, root = critical_value(level, sides), math.sqrt(people)
    if variance <= 0:
        return float(abs(difference) * root > z * math.sqrt(null_variance))
    law = NormalDist()

    def beyond(distance: float) -> float:
        return law.cdf((distance * root - z * math.sqrt(null_variance)) / math.sqrt(variance))

    return beyond(abs(difference)) + (beyond(-abs(difference)) if sides == 2 else 0.0)


def least_people(power_of: Callable[[int], float], power: float) -> int:
    """The least number of people with at least this power, by bisection on the integer.

    `power_of` grows with the number of people.

    >>> least_people(lambda people: 1 - 1 / people, 0.8)
    5
    """
    require_power(power)
    enough = 1
    while power_of(enough) < power:
        enough *= 2
        if enough > _MOST_PEOPLE:
            raise InvalidInput(
                "power", power, "no number of people is enough: the truth is too near to the null"
            )
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if power_of(middle) < power:
            too_few = middle
        else:
            enough = middle
    return enough


def require_power(power: float) -> None:
    """Refuse a power that is no probability."""
    if not 0 < real_number(power) < 1:
        raise InvalidInput("power", power, "give the chance to find the difference, such as 0.8")


def people_for_coefficient(
    variance_of_one: float, effect: float, level: float = 0.05, power: float = 0.8, sides: OneOrTwo = 2
) -> int:
    """How many people a test of a coefficient against zero takes: `(z_level + z_power)**2 variance / effect**2`.

    `variance_of_one` is the square of the standard error that one person's report would give: the entry of the
    coefficient on the diagonal of the inverse of the expected information.

    >>> people_for_coefficient(25.0, effect=0.5)
    785
    """
    require_power(power)
    if not 0 < real_number(variance_of_one) < math.inf:
        advice = "give the square of the standard error that one person's report would give, above zero"
        raise InvalidInput("variance_of_one", variance_of_one, advice)
    if not math.isfinite(real_number(effect)) or effect == 0:
        raise InvalidInput(
            "effect", effect, "give the coefficient that the test should find, other than zero"
        )
    return _whole(
        (critical_value(level, sides) + NormalDist().inv_cdf(power)) ** 2 * variance_of_one / effect**2
    )


def people_for_coefficients(
    errors: Array, effects: Array, power: float, level: float, sides: OneOrTwo
) -> Array:
    """As `people_for_coefficient`, for each of several, from the errors that one report would give."""
    numbers = (
        people_for_coefficient(error**2, effect, level, power, sides) if effect else math.inf
        for error, effect in zip(errors.ravel().tolist(), effects.ravel().tolist(), strict=True)
    )
    return np.array([float(number) for number in numbers]).reshape(errors.shape)


def power_for_coefficients(errors: Array, effects: Array, level: float, sides: OneOrTwo) -> Array:
    """The power of tests of coefficients with these standard errors."""
    powers = (
        power_of_test(abs(effect), error**2, error**2, 1, level, sides)
        for error, effect in zip(errors.ravel().tolist(), effects.ravel().tolist(), strict=True)
    )
    return np.array([*powers]).reshape(errors.shape)


@dataclass(frozen=True)
class PowerAnalysis:
    """A test of a statistic, and what it can find; prints as a sentence.

    The test compares the estimate with `null`, or, where `groups` is 2, those of two groups of `people` each, of which
    one has the value `null`. `power` is the chance that it rejects if the statistic is `truth` (in the other group).
    `level` is the chance that it rejects if nothing differs. `statistic` is its label.
    """

    statistic: Label
    null: float
    truth: float
    people: int
    power: float
    level: float
    sides: OneOrTwo
    groups: OneOrTwo

    def __str__(self) -> str:
        return showing.text(self)

    def _repr_html_(self) -> str:
        return showing.html(self)


@dataclass(frozen=True, eq=False)
class StatisticTest:
    """A test of one statistic at this level, given the moments of its scores.

    `row` has the weights of the statistic, one for each value, `moments` those of its scores (a single row), and
    `prior` what people follow apart from the statistic.
    """

    label: Label
    row: Array
    moments: ScoreMoments
    prior: Array
    null: float
    level: float
    sides: OneOrTwo
    groups: OneOrTwo

    @classmethod
    def of(
        cls,
        plan: ReadablePlan,
        statistic: Label | None,
        null: float,
        level: float,
        sides: OneOrTwo,
        groups: OneOrTwo,
    ) -> StatisticTest:
        """The test of a statistic of a plan, by its label; where there is one only, without it."""
        require_unbiased(plan.query)
        labels, P = plan.query.statistic_labels(plan.labels), plan.reference.probabilities
        if statistic not in labels and not (statistic is None and len(labels) == 1):
            raise InvalidInput("statistic", statistic, f"give one of {first_labels(labels)}")
        rows, at = plan.query.rows(plan.reference), 0 if statistic is None else labels.index(statistic)
        row = np.eye(len(P))[at] if rows is None else rows[at]
        return cls(labels[at], row, ScoreMoments.of(plan, at), P, null, level, sides, groups)

    def __post_init__(self) -> None:
        critical_value(self.level, self.sides)
        if self.groups not in (1, 2):
            raise InvalidInput(
                "groups", self.groups, "give 1 to compare with a number, 2 to compare two groups"
            )
        require_possible("null", self.null, self.row)

    def variance(self, value: float) -> float:
        """The variance per person where the statistic has this value."""
        return float(self.moments.variances(tilted_shares(self.prior, self.row, value))[0])

    @cached_property
    def _null_variance(self) -> float:
        return self.variance(self.null)

    def power(self, truth: float, people: int) -> float:
        """The power with this many people, in each of the groups."""
        at_null, at_truth = self._null_variance, self.variance(truth)
        variances = (at_null, at_truth) if self.groups == 1 else (2 * at_null, at_null + at_truth)
        return power_of_test(truth - self.null, *variances, people, self.level, self.sides)

    def solve(self, truth: float | None, people: int | None, power: float | None) -> PowerAnalysis:
        """The test with the one of these that is None."""
        if sum(each is None for each in (truth, people, power)) != 1:
            raise InvalidInput(
                "power", NOT_SHOWN, "give two of truth, people and power, and leave out the one to find"
            )
        if power is not None:
            require_power(power)
        if people is not None:
            people = require_people(people)
        if truth is None:
            assert people is not None and power is not None
            truth = self._least_truth(people, power)
        elif truth == self.null:
            raise InvalidInput(
                "truth", truth, "it is the same as without a difference: no test can tell them apart"
            )
        if people is None:
            assert power is not None
            people = least_people(partial(self.power, truth), power)
        reached = self.power(truth, people)
        return PowerAnalysis(
            self.label, self.null, truth, people, reached, self.level, self.sides, self.groups
        )

    def _least_truth(self, people: int, power: float) -> float:
        """The value nearest to the null, above it, that is found with this power."""
        largest = float(self.row.max())
        if self.null >= largest or self.power(largest, people) < power:
            raise Infeasible(
                f"with {people:,} people no value above {self.null:g} is found with power {power:g}: ask more people"
            )
        return root_between(lambda truth: self.power(truth, people) - power, self.null, largest, xtol=1e-13)


def require_possible(argument: str, value: float, row: Array) -> None:
    """Refuse a value that the statistic `row @ shares` cannot have."""
    low, high = float(row.min()), float(row.max())
    if not low <= real_number(value) <= high or low == high:
        raise InvalidInput(
            argument, value, f"give a number from {low:g} to {high:g}, as the statistic can be"
        )


def tilted_shares(prior: Array, row: Array, value: float) -> Array:
    """The distribution nearest to the prior under which the statistic `row @ shares` has this value.

    It is `prior * exp(t * row)`, scaled: for the share of a value, the others keep their proportions.

    >>> tilted_shares(np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.0, 0.0]), 0.75).round(6).tolist()
    [0.75, 0.15, 0.1]
    """
    require_possible("truth", value, row)
    low, high = float(row.min()), float(row.max())
    if value in (low, high):
        extreme = prior * (row == value)
        return np.asarray(extreme / extreme.sum())
    scaled = (row - low) / (high - low)

    def tilted(t: float) -> Array:
        weights = prior * np.exp(t * (scaled - (t > 0)))
        return np.asarray(weights / weights.sum())

    def excess(t: float) -> float:
        return float(tilted(t) @ scaled) - (value - low) / (high - low)

    ends = -_LARGEST_TILT, _LARGEST_TILT
    if excess(ends[0]) > 0 or excess(ends[1]) < 0:
        raise InvalidInput(
            "truth", value, "it is too near to the end of what is possible: give the end itself"
        )
    return tilted(root_between(excess, *ends, xtol=1e-13))


def root_between(function: Callable[[float], float], low: float, high: float, **tolerances: Any) -> float:
    """Where a function of one number changes its sign between these two."""
    from scipy.optimize import brentq  # not at the top: devices read plans without scipy

    return float(brentq(function, low, high, **tolerances))


# -- strata ------------------------------------------------------------------------------------------------


def neyman_people(
    people: int, weights: Sequence[float], variances: Sequence[float], costs: Sequence[float] | None = None
) -> Ints:
    """How many people to ask in each stratum: the allocation with the least variance of the whole.

    `weights` are the strata's shares of the population, `variances` those of one person's report in each, and `costs`
    what it costs to ask one person. The numbers are in proportion to `weights * sqrt(variances / costs)`, at least one
    each. With local noise the variances are nearly equal, so this gains little over numbers in proportion to the
    strata. Every stratum keeps the same epsilon: a larger one for some would be another promise.

    >>> neyman_people(1_000, [0.7, 0.2, 0.1], [1.0, 1.0, 4.0]).tolist()
    [636, 182, 182]
    """
    W = _positive("weights", weights)
    v = _positive("variances", variances, len(W))
    c = np.ones(len(W)) if costs is None else _positive("costs", costs, len(W))
    if require_people(people) < len(W):
        raise InvalidInput("people", people, f"give at least one for each of the {len(W)} strata")
    exact = W * np.sqrt(v / c)
    exact *= people / exact.sum()
    numbers = np.maximum(np.floor(exact).astype(np.int64), 1)
    while (missing := people - int(numbers.sum())) != 0:  # at most a step for each stratum
        step = 1 if missing > 0 else -1
        gain = np.where(numbers + step > 0, step * (exact - numbers), -np.inf)
        numbers[gain.argmax()] += step
    return numbers


def stratified_variance(weights: Sequence[float], variances: Sequence[float], people: npt.ArrayLike) -> float:
    """The variance of the average over all strata: `sum_h (W_h**2 v_h / n_h)`, with weights that add up to one.

    >>> round(1_000 * stratified_variance([0.7, 0.2, 0.1], [1.0, 1.0, 4.0], [700, 200, 100]), 3)
    1.3
    """
    W = _positive("weights", weights)
    v, n = _positive("variances", variances, len(W)), _positive("people", people, len(W))
    return float(((W / W.sum()) ** 2 * v / n).sum())


def _positive(argument: str, numbers: npt.ArrayLike, size: int | None = None) -> Array:
    array = real_numbers(numbers)
    if array.ndim != 1 or not array.size or not (array > 0).all() or not np.isfinite(array).all():
        raise InvalidInput(argument, numbers, "give a number above zero for each stratum")
    if size is not None and array.size != size:
        raise InvalidInput(argument, numbers, f"give {size} numbers, one for each stratum")
    return array
