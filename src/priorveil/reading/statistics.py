"""Single numbers that are read from an estimate: contrasts, ratios and quantiles, with intervals.

The interval of a ratio is Fieller's: all `r` at which `top - r bottom` is not significantly different from zero. The
interval of a quantile has all values at which the cumulative share is not significantly on the wrong side of `q`
(Woodruff 1952). Neither needs a derivative, and both hold where normal intervals around the number would not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import InvalidInput
from priorveil.notes import Note
from priorveil.reading.interval_estimate import IntervalEstimate
from priorveil.reading.moments import UNBOUNDED, Ends, normal_width, open_sides

_NO_BIAS = np.zeros((2, 2))


@dataclass(frozen=True)
class Statistic(IntervalEstimate):
    """A number with its standard error and its interval.

    - `value`: if numbers were rounded to a grid or put into cells, it is that of the points, or of a number for each
      cell.
    - `std_error`: its standard error.
    - `bias`: by how much the true number may be below and above the value, because numbers were rounded or put into
      cells, or because the estimate leans on one of a set of priors. The interval allows for it.
    - `centre`: the middle of the interval, which is normal; by default the value.
    - `limits`: the interval is cut off there. If the centre is outside, the interval is around the nearer limit.
    - `ends`: for an interval that is not normal, the function from the width of a normal interval, in standard errors
      on each side, to the ends of this one.
    - `cell`: its edges, if the value was interpolated within a cell of numbers.
    - `method`, `leaning`, `warning`: those of the estimate. A warning may also say that the value is outside the
      interval of the unbiased answer.
    - `about`: a note if the number is about the points of a grid or one number for each cell, not people's own numbers.
    - `title`, `people`: what the number is (`name` in words), and how many people it was read from (or the sum of their
      weights).
    - `is_total`: whether it is a sum over these people, such as a count, and not a number per person.
    - `for_population`: whether the standard error is for the population that people were drawn from, and not for these
      very people.
    - `people_to_bound`: for a ratio, about how many people would bound its 95 % interval, if shares stay as estimated;
      None if it is not known, or for a number that is always bounded.

    An interval always reaches to the value. That of a ratio has no ends where reports do not tell the denominator from
    zero.

    >>> Statistic(3.0, 0.5).interval(0.95)[1].__round__(2)
    3.98
    >>> print(Statistic(3.0, 0.5, title=Note("mean"), method="unbiased", people=800))
    mean: 3.00, 95 % interval 2.02 to 3.98 (method unbiased, 800 people)
    """

    value: float
    std_error: float
    bias: Ends = (0.0, 0.0)
    centre: float | None = field(default=None, repr=False)
    limits: Ends = field(default=UNBOUNDED, repr=False)
    ends: Callable[[float], Ends] | None = field(default=None, repr=False)
    cell: Ends | None = field(default=None, repr=False)
    method: str = ""
    warning: Note | None = None
    about: Note | None = None
    title: Note | None = None
    people: float | None = None
    people_to_bound: float | None = None
    leaning: Note | None = field(default=None, repr=False)
    is_total: bool = field(default=False, repr=False)
    for_population: bool = field(default=True, repr=False)

    def __repr__(self) -> str:
        return f"Statistic({self})"

    @property
    def name(self) -> str:
        """What the number is, in a few words; empty if nobody said it."""
        return "" if self.title is None else str(self.title)

    def interval(self, confidence: float = 0.95) -> Ends:
        """The ends of an interval that holds the true number with this probability."""
        return self.ends_at(normal_width(confidence))

    def ends_at(self, width: float) -> Ends:
        """The ends of an interval of this width, in standard errors on each side; it reaches to the value."""
        low, high = self.linear_ends(width)
        return min(low, self.value), max(high, self.value)

    def is_unbounded(self, confidence: float = 0.95) -> bool:
        """Whether the interval has every possible number, so that reports tell nothing about this one."""
        return all(open_sides(self.interval(confidence), self.limits))

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`, in one row."""
        low, high = self.interval(confidence)
        return {"estimate": [self.value], "std_error": [self.std_error], "low": [low], "high": [high]}

    @property
    def is_extended(self) -> bool:
        """Whether the 95 % interval was extended to reach to the value, by more than rounding."""
        low, high = self.linear_ends(normal_width(0.95))
        return max(low - self.value, self.value - high) > 0.1 * self.std_error + 1e-9 * abs(self.value)

    def linear_ends(self, width: float) -> Ends:
        """The ends of an interval of this width, in standard errors, before it reaches to the value."""
        if self.ends is None:
            centre = float(np.clip(self.value if self.centre is None else self.centre, *self.limits))
            low = centre - width * self.std_error - self.bias[0]
            high = centre + width * self.std_error + self.bias[1]
        else:
            low, high = self.ends(width)
        return max(low, self.limits[0]), min(high, self.limits[1])


def ratio_of(
    sums: Array, covariance: Array, reports: int, bias: Array = _NO_BIAS, limits: Ends = UNBOUNDED
) -> Statistic:
    """The ratio of the two numbers in the first row, read from so many reports; its standard error by the delta method.

    The covariance belongs to the numbers in the second row, which may be the same. `bias` is how far the true numbers
    may be below them (first row) and above. `limits` are those of every possible ratio: the interval is then around the
    nearest possible numbers, and cut off there.

    >>> ratio = ratio_of(np.array([[30.0, 60.0], [30.0, 60.0]]), np.diag([4.0, 4.0]), 100)
    >>> ratio.value, round(ratio.std_error, 4), [round(end, 3) for end in ratio.interval()]
    (0.5, 0.0373, [0.429, 0.575])
    """
    top, bottom = (float(each) for each in sums[0])
    if bottom == 0:
        raise InvalidInput("bottom", bottom, "the estimate is zero; a ratio needs another denominator")
    slope = np.array([1.0, -top / bottom])
    error = math.sqrt(max(float(slope @ covariance @ slope), 0.0)) / abs(bottom)
    ends = partial(_fieller_ends, _nearest_possible(sums[1], limits), covariance, bias)
    needed = _people_to_bound(sums[1], covariance, reports)
    return Statistic(top / bottom, error, limits=limits, ends=ends, people_to_bound=needed)


def _nearest_possible(means: Array, limits: Ends) -> Array:
    """The numbers with a ratio within the limits: the top moved, none below zero at the bottom.

    If the true ratio is `r`, this brings `top - r bottom` nearer to zero, so Fieller's interval holds as often as
    before. Without it, an interval could be empty once it is cut off.

    >>> _nearest_possible(np.array([30.0, 20.0]), (0.0, 1.0)).tolist()
    [20.0, 20.0]
    """
    if limits == UNBOUNDED:
        return means
    bottom = max(float(means[1]), 0.0)
    return np.array([np.clip(means[0], limits[0] * bottom, limits[1] * bottom), bottom])


def _people_to_bound(means: Array, covariance: Array, reports: int) -> float | None:
    """How many people bound a 95 % interval of Fieller's, if all shares stay as they are estimated.

    It has ends if the denominator is at least 1.96 of its standard errors from zero. The denominator grows with the
    number of people, its variance too.
    """
    bottom, variance = float(means[1]), float(covariance[1, 1])
    return reports * normal_width(0.95) ** 2 * variance / bottom**2 if bottom > 0 else None


def average_of(
    sums: Array,
    covariance: Array,
    centre: float,
    unit: float,
    reports: int,
    bias: Array = _NO_BIAS,
    limits: Ends = UNBOUNDED,
) -> Statistic:
    """The average of a group: `centre` plus `unit` times the ratio of two numbers as in `ratio_of`.

    The second number is that of the people. If it is not above zero, there is no average: it is NaN, and its interval
    has no ends.

    >>> average_of(np.array([[30.0, 60.0], [30.0, 60.0]]), np.diag([4.0, 4.0]), 10.0, 2.0, 100).value
    11.0
    >>> average_of(np.array([[3.0, -1.0], [3.0, -1.0]]), np.diag([4.0, 4.0]), 10.0, 2.0, 100).interval()
    (-inf, inf)
    """
    if sums[0, 1] <= 0:
        return Statistic(math.nan, math.inf, limits=limits, ends=_no_ends)
    least, most = ((limit - centre) / unit for limit in limits)
    ratio = ratio_of(sums, covariance, reports, bias, (least, most))
    ends = partial(_average_ends, ratio, centre, unit)
    value, error = centre + unit * ratio.value, unit * ratio.std_error
    return replace(ratio, value=value, std_error=error, limits=limits, ends=ends)


def _average_ends(ratio: Statistic, centre: float, unit: float, width: float) -> Ends:
    low, high = ratio.linear_ends(width)
    return centre + unit * low, centre + unit * high


def _no_ends(width: float) -> Ends:
    return UNBOUNDED


def _fieller_ends(means: Array, covariance: Array, bias: Array, width: float) -> Ends:
    """The outermost of Fieller's ends for all numbers that the true ones may be, given the bias."""
    tops, bottoms = zip(means - bias[0], means + bias[1], strict=True)
    if min(bottoms) <= 0 <= max(bottoms):
        return -math.inf, math.inf
    low, high = zip(*(_ends_at(pair, covariance, width) for pair in product(tops, bottoms)), strict=True)
    return min(low), max(high)


def _ends_at(means: tuple[float, float], covariance: Array, width: float) -> Ends:
    """Where `(top - r bottom)**2 = width**2 Var(top - r bottom)`; no ends where the bottom may be zero."""
    square, product, constant = (
        float(means[i] * means[j] - width**2 * covariance[i, j]) for i, j in ((1, 1), (0, 1), (0, 0))
    )
    if square <= 0:
        return UNBOUNDED
    root = math.sqrt(max(product**2 - square * constant, 0.0))
    return (product - root) / square, (product + root) / square


def quantile_of(
    q: float,
    low: Array,
    high: Array,
    shares: Array,
    linear: Array,
    errors: Array,
    bias: Array = _NO_BIAS[:, :1],
) -> Statistic:
    """The number that the share `q` of people does not exceed.

    `shares` are the cumulative ones, up to each cell from `low` to `high`; a cell may be a single number. Noise may
    make them fall: they are sorted first. The errors belong to the shares `linear`, which may be the same; `bias` is
    how far the true shares may be below these (first row) and above. Within its cell the quantile is interpolated.

    The interval has whole cells, since reports do not say where in a cell its people are: it shrinks with the
    confidence as long as it has several. The standard error is for people who are spread evenly within each cell. It is
    Woodruff's: `(x(q + 1.96 s) - x(q - 1.96 s)) / 3.92`, with `x` the interpolated quantile and `s` the larger standard
    error of the shares at both edges of the cell; so it is somewhat too large, by about a tenth to a fifth.

    >>> points, shares = np.array([1.0, 2.0, 5.0]), np.array([0.3, 0.52, 1.0])
    >>> median = quantile_of(0.5, points, points, shares, shares, np.array([0.02, 0.02, 0.0]))
    >>> median.value, median.interval(), median.interval(0.5)
    (2.0, (2.0, 5.0), (2.0, 2.0))
    """
    if not isinstance(q, int | float) or not 0 < q < 1:
        raise InvalidInput("q", q, "give one share between 0 and 1, such as 0.5 for the median")
    value, at = _interpolate(q, low, high, np.sort(shares))
    curve, width = np.sort(linear), normal_width(0.95)
    edge = int(np.searchsorted(curve, q))
    reach = width * float(errors[max(edge - 1, 0) : edge + 1].max())
    least, most = (_interpolate(q + step, low, high, curve)[0] for step in (-reach, reach))
    cell = (float(low[at]), float(high[at])) if low[at] < high[at] else None
    ends = partial(_quantile_ends, q, low, high, linear - bias[0], linear + bias[1], errors)
    return Statistic(value, (most - least) / (2 * width), ends=ends, cell=cell)


def _interpolate(share: float, low: Array, high: Array, curve: Array) -> tuple[float, int]:
    """Where a rising curve of cumulative shares, linear within each cell, reaches this share; and in which cell."""
    share = min(max(share, 1e-12), 1.0)  # zero would fall into a cell without people
    at = int(np.searchsorted(curve, share))
    before = max(float(curve[at - 1]), 0.0) if at else 0.0
    return float(low[at] + (high[at] - low[at]) * (share - before) / (curve[at] - before)), at


def _quantile_ends(
    q: float, low: Array, high: Array, least: Array, most: Array, errors: Array, width: float
) -> Ends:
    """From the first cell whose share may reach `q` to the first after which all shares surely do."""
    first = int(np.argmax(most + width * errors >= q))
    below = np.flatnonzero(least - width * errors < q)
    return float(low[first]), float(high[below[-1] + 1 if below.size else 0])
