"""Differences and ratios of two independent numbers, with intervals and p-values.

Two estimates from different people are independent: two groups, two surveys, or the same survey twice. The interval of
a difference adds the squared distances from both numbers to the ends of their own intervals (Newcombe 1998, Zou and
Donner 2008), and what either may be biased by as it is. For normal intervals this is the usual one. The interval of a
ratio is Fieller's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, overload

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput
from priorveil.frames import beside_labels
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.domain import label_positions
from priorveil.priors.label_texts import first_labels, label_columns
from priorveil.reading.averages import Averages
from priorveil.reading.combination import require_same_numbers
from priorveil.reading.estimate import Estimate
from priorveil.reading.interval_estimate import IntervalEstimate
from priorveil.reading.moments import UNBOUNDED, Ends, joint_confidence
from priorveil.reading.statistics import Statistic, ratio_of
from priorveil.reading.weighted_sums import single, with_source
from priorveil.statistics.significance import two_sided_p_value

_WIDEST = 40.0  # standard errors: beyond, a p-value is zero in floating point
_STEPS = 60  # that find a width to the last digits


# -- one number ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison(IntervalEstimate):
    """The difference or the ratio of two independent numbers.

    - `statistic`: the difference or the ratio, with its interval.
    - `difference`: the difference, which the p-value is about.
    """

    statistic: Statistic
    difference: Statistic

    @property
    def name(self) -> str:
        """What the number is: a difference or a ratio."""
        return self.statistic.name

    @property
    def value(self) -> float:
        """The difference or the ratio."""
        return self.statistic.value

    @property
    def std_error(self) -> float:
        """The standard error; that of a ratio by the delta method."""
        return self.statistic.std_error

    def interval(self, confidence: float = 0.95) -> Ends:
        """The ends of an interval that holds the true number with this probability."""
        return self.statistic.interval(confidence)

    @property
    def untested(self) -> Note | None:
        """Why there is no p-value; None if there is one."""
        if self.difference.leaning is not None:
            return Note("untestedLeaning")
        return None if self.difference.for_population else Note("untestedPeople")

    @property
    def p_value(self) -> float:
        """The two-sided p-value of equal numbers: of a difference of 0, which is a ratio of 1.

        It is the least level at which the interval of the difference leaves out 0, so a known bias counts as one. An
        estimate that leans on a prior has none: it is right if the same prior is right on both sides, and then there is
        no difference to test.
        """
        if self.untested is not None:
            hints = [Hint("method", "unbiased")] if self.difference.leaning is not None else []
            raise InvalidInput("method", self.difference.method or NOT_SHOWN, str(self.untested), *hints)
        return p_value(self.difference)

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`, in one row; the p-value is missing if there is none."""
        tested = None if self.untested is not None else self.p_value
        return {**self.statistic.columns(confidence), "p_value": [tested]}


def p_value(difference: Statistic) -> float:
    """The two-sided p-value of zero: the least level at which the interval leaves zero out.

    >>> round(p_value(Statistic(1.96, 1.0)), 3), p_value(Statistic(0.0, 1.0))
    (0.05, 1.0)
    >>> p_value(Statistic(3.0, 1.0, bias=(3.0, 3.0)))
    1.0
    """
    if difference.ends is None:
        return float(two_sided_p_value(_width_to_zero(difference)))
    low, high = 0.0, _WIDEST
    if _holds_zero(difference, low):
        return 1.0
    if not _holds_zero(difference, high):
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _holds_zero(difference, middle) else (middle, high)
    return float(two_sided_p_value(high))


def _width_to_zero(difference: Statistic) -> float:
    """The least width, in standard errors, at which a normal interval holds zero."""
    if not difference.limits[0] <= 0 <= difference.limits[1]:
        return math.inf
    centre, (below, above) = _centre(difference), difference.bias
    distance = max(
        0.0 if difference.value <= 0 else centre - below,
        0.0 if difference.value >= 0 else -centre - above,
        0.0,
    )
    if difference.std_error == 0:
        return math.inf if distance > 0 else 0.0
    return distance / difference.std_error


def _holds_zero(difference: Statistic, width: float) -> bool:
    least, most = difference.ends_at(width)
    return least <= 0 <= most


# -- several numbers -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ComparisonTable(IntervalEstimate):
    """The comparisons of all numbers of two estimates, label by label: `table[label]` is one of them."""

    labels: tuple[Label, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def name(self) -> str:
        """What the numbers are: differences or ratios."""
        return self.comparisons[0].name

    @property
    def values(self) -> Array:
        """The differences or the ratios."""
        return np.array([each.value for each in self.comparisons])

    @property
    def std_error(self) -> Array:
        """The standard error of each."""
        return np.array([each.std_error for each in self.comparisons])

    @property
    def p_value(self) -> Array:
        """The p-value of each number by itself; see `Comparison.p_value`."""
        return np.array([each.p_value for each in self.comparisons])

    def interval(self, confidence: float = 0.95, simultaneous: bool = False) -> tuple[Array, Array]:
        """The ends of intervals, each of which holds its true number with this probability.

        With `simultaneous` they hold all of them together with this probability (Bonferroni).
        """
        single = joint_confidence(confidence, len(self)) if simultaneous else confidence
        low, high = np.array([each.interval(single) for each in self.comparisons]).T
        return low, high

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`: a row for each label; p-values are missing if there are none."""
        rows = [each.columns(confidence) for each in self.comparisons]
        numbers = {name: [row[name][0] for row in rows] for name in rows[0]}
        return beside_labels(label_columns(self.labels, None), numbers)

    def __getitem__(self, label: Label) -> Comparison:
        if label not in self.labels:
            raise InvalidInput("label", label, f"choose one of {first_labels(self.labels)}")
        return self.comparisons[self.labels.index(label)]

    def __len__(self) -> int:
        return len(self.labels)


# -- what is compared ------------------------------------------------------------------------------------


@overload
def difference(a: Statistic, b: Statistic) -> Comparison: ...


@overload
def difference(a: Estimate, b: Estimate) -> ComparisonTable: ...


@overload
def difference(a: Averages, b: Averages) -> ComparisonTable: ...


def difference(a: Any, b: Any) -> Comparison | ComparisonTable:
    """`a - b` for numbers from different people, with its interval and a p-value.

    Two statistics give a `Comparison`. Two estimates of the same query give a `ComparisonTable`, with the difference of
    each number per person (shares, not counts), or of each average if the query asks for averages. Estimates are
    compared for the populations that their people were drawn from.

    >>> found = difference(Statistic(0.5, 0.03), Statistic(0.4, 0.04))
    >>> round(found.value, 3), [round(end, 3) for end in found.interval()], round(found.p_value, 4)
    (0.1, [0.002, 0.198], 0.0455)
    """
    return _compare(a, b, _difference_of)


@overload
def ratio(a: Statistic, b: Statistic) -> Comparison: ...


@overload
def ratio(a: Estimate, b: Estimate) -> ComparisonTable: ...


@overload
def ratio(a: Averages, b: Averages) -> ComparisonTable: ...


def ratio(a: Any, b: Any) -> Comparison | ComparisonTable:
    """`a / b` for numbers from different people, with Fieller's interval; arguments and answers as for `difference`.

    The interval has no ends where the reports do not tell `b` from zero. The p-value is that of the difference: it
    tests a ratio of 1. Numbers whose own intervals are not normal, such as averages by group, have only differences.

    >>> found = ratio(Statistic(0.5, 0.03), Statistic(0.4, 0.04))
    >>> round(found.value, 3), [round(end, 3) for end in found.interval()], round(found.p_value, 4)
    (1.25, [1.004, 1.596], 0.0455)
    """
    return _compare(a, b, _ratio_of)


def _compare(
    a: Any, b: Any, compared: Callable[[Statistic, Statistic], Statistic]
) -> Comparison | ComparisonTable:
    first, second = _numbers("a", a), _numbers("b", b)
    if isinstance(a, Estimate) and isinstance(b, Estimate):
        _require_comparable(a, b)
    if first.keys() != second.keys():
        advice = "give two statistics, or two estimates or averages with the same labels"
        raise InvalidInput("b", NOT_SHOWN, advice)
    found = {
        label: Comparison(compared(number, second[label]), _difference_of(number, second[label]))
        for label, number in first.items()
    }
    labelled = {label: each for label, each in found.items() if label is not None}
    return ComparisonTable(tuple(labelled), tuple(labelled.values())) if labelled else found[None]


def _require_comparable(a: Estimate, b: Estimate) -> None:
    """Refuse estimates of other statistics, and two from the same reports."""
    require_same_numbers([a, b])
    if {id(reading.tally) for reading in a.readings} & {id(reading.tally) for reading in b.readings}:
        advice = "both were read from the same reports, so they are not independent"
        hint = Hint("estimate.contrast(weights)", purpose="for a difference within one estimate")
        raise InvalidInput("b", NOT_SHOWN, advice, hint)


def _numbers(argument: str, given: Any) -> Mapping[Label | None, Statistic]:
    """The numbers of what is given, per person, by label; that of a single one is None."""
    read = next((_READ[each] for each in type(given).__mro__ if each in _READ), None)
    if read is None:
        advice = f"type {type(given).__name__}; give an Estimate, Averages, or one statistic, such as estimate[label]"
        raise InvalidInput(argument, NOT_SHOWN, advice)
    return {label: per_person(argument, number) for label, number in read(given).items()}


def _numbers_of_estimate(estimate: Estimate) -> dict[Label, Statistic]:
    own = for_population(estimate)
    if own.averages is not None:
        return _numbers_of_averages(own.averages)
    whole = own.whole
    statistics = (single(own.moments_at([at]), 0.0, whole) for at in range(len(own.labels)))
    titled = (
        with_source(own, each, Note("label", {"label": label}))
        for label, each in zip(own.labels, statistics, strict=True)
    )
    return dict(zip(own.labels, titled, strict=True))


def _numbers_of_averages(averages: Averages) -> dict[Label, Statistic]:
    return dict(zip(averages.labels, averages.statistics, strict=True))


_READ: Mapping[type, Callable[[Any], Mapping[Any, Statistic]]] = {
    Statistic: lambda statistic: {None: statistic},
    Averages: _numbers_of_averages,
    Estimate: _numbers_of_estimate,
}


def for_population(estimate: Estimate) -> Estimate:
    """The estimate with the standard errors for the population that its people were drawn from.

    A plan of a query that is not unbiased states them for these very people, also where its reports are read by method
    unbiased or mle. An answer that leans on the prior stays as it is.
    """
    if estimate.leans_on_prior or all(reading.population for reading in estimate.readings):
        return estimate
    readings = tuple(replace(reading, population=True) for reading in estimate.readings)
    variance = sum(
        reading.answer().variance[label_positions(reading.labels, estimate.labels)] for reading in readings
    )
    return replace(estimate, readings=readings, std_error=np.sqrt(np.maximum(variance, 0.0)))


def by_reports_alone(estimate: Estimate) -> Estimate:
    """The estimate by method unbiased, for the population that its people were drawn from."""
    if all(reading.method == "unbiased" for reading in estimate.own_readings):
        return for_population(estimate)
    readings = tuple(reading.unbiased() for reading in estimate.own_readings)
    moments = [
        (reading.answer(), label_positions(reading.labels, estimate.labels), reading.tally.weighted)
        for reading in readings
    ]
    values = sum(m.mean[order] + (weighted.offset if weighted else 0.0) for m, order, weighted in moments)
    variance = sum(m.variance[order] for m, order, _ in moments)
    return replace(
        estimate,
        values=np.asarray(values),
        std_error=np.sqrt(np.maximum(variance, 0.0)),
        method="unbiased",
        readings=readings,
        leans_on_prior=False,
        projected=False,
        centre=None,
        limits=None,
        bias=None,
    )


def per_person(argument: str, statistic: Statistic) -> Statistic:
    """A sum over people divided by their number; any other statistic as it is."""
    if not statistic.is_total:
        return statistic
    people = statistic.people or 0.0
    if people <= 0:
        advice = "it is a sum over people, and their number is not positive: there is nothing per person"
        raise InvalidInput(argument, NOT_SHOWN, advice)
    return replace(
        statistic,
        value=statistic.value / people,
        std_error=statistic.std_error / people,
        centre=None if statistic.centre is None else statistic.centre / people,
        bias=(statistic.bias[0] / people, statistic.bias[1] / people),
        limits=(statistic.limits[0] / people, statistic.limits[1] / people),
        is_total=False,
    )


# -- how it is compared ----------------------------------------------------------------------------------


def _difference_of(a: Statistic, b: Statistic) -> Statistic:
    is_normal = a.ends is b.ends is None
    found = Statistic(
        value=a.value - b.value,
        std_error=math.hypot(a.std_error, b.std_error),
        bias=(a.bias[0] + b.bias[1], a.bias[1] + b.bias[0]),
        centre=_centre(a) - _centre(b),
        limits=(a.limits[0] - b.limits[1], a.limits[1] - b.limits[0]),
        ends=None if is_normal else partial(_difference_ends, a, b),
        title=Note("difference"),
    )
    return _with_sources(found, a, b)


def _difference_ends(a: Statistic, b: Statistic, width: float) -> Ends:
    """The noise of both on a side in quadrature, and what remains at width zero (cells, a bias) as it is."""
    (low_a, high_a), (low_b, high_b) = a.linear_ends(width), b.linear_ends(width)
    if not np.isfinite([low_a, high_a, low_b, high_b]).all():
        return UNBOUNDED
    (least_a, most_a), (least_b, most_b) = a.linear_ends(0.0), b.linear_ends(0.0)
    below = math.hypot(least_a - low_a, high_b - most_b)
    above = math.hypot(high_a - most_a, least_b - low_b)
    return least_a - most_b - below, most_a - least_b + above


def _ratio_of(a: Statistic, b: Statistic) -> Statistic:
    for argument, statistic in (("a", a), ("b", b)):
        if statistic.ends is not None:
            advice = "its interval is not normal, so a ratio of it has none"
            raise InvalidInput(argument, NOT_SHOWN, advice, Hint("difference(a, b)"))
    if b.value == 0:
        return _with_sources(replace(_UNKNOWN, title=Note("ratio")), a, b)
    sums = np.array([[a.value, b.value], [_centre(a), _centre(b)]])
    covariance = np.diag([a.std_error**2, b.std_error**2])
    bias = np.array([[a.bias[0], b.bias[0]], [a.bias[1], b.bias[1]]])
    people = _people(a, b)
    found = ratio_of(sums, covariance, round(people or 0), bias)
    if min(a.limits[0], b.limits[0]) >= 0:
        found = replace(found, limits=(0.0, math.inf))
    if people is None:
        found = replace(found, people_to_bound=None)
    return _with_sources(replace(found, title=Note("ratio")), a, b)


def _no_ends(width: float) -> Ends:
    return UNBOUNDED


_UNKNOWN = Statistic(math.nan, math.inf, ends=_no_ends)


def _centre(statistic: Statistic) -> float:
    """The middle of a normal interval, within what is possible."""
    centre = statistic.value if statistic.centre is None else statistic.centre
    return float(np.clip(centre, *statistic.limits))


def _people(a: Statistic, b: Statistic) -> float | None:
    return None if a.people is None or b.people is None else a.people + b.people


def _with_sources(found: Statistic, a: Statistic, b: Statistic) -> Statistic:
    """The comparison with the method, the people and the warnings of both numbers."""
    return replace(
        found,
        method=a.method if a.method == b.method else "mixed",
        warning=a.warning or b.warning,
        about=a.about or b.about,
        leaning=a.leaning or b.leaning,
        people=_people(a, b),
        for_population=a.for_population and b.for_population,
    )
