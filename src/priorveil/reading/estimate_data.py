"""What an estimate holds: the numbers of the answer, how they were read, and what the intervals assume."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.domain import label_positions
from priorveil.queries import NumberByGroup
from priorveil.queries.matrices import StatisticName
from priorveil.reading.averages import Averages
from priorveil.reading.interval_estimate import IntervalEstimate
from priorveil.reading.moments import UNBOUNDED, Moments, apply_rows, joint_confidence, normal_width
from priorveil.reading.tally_reading import Reading


@dataclass(frozen=True, eq=False)
class EstimateData(IntervalEstimate):
    """The answer: `values` with their `std_error`, the method, and what the intervals assume.

    - `values`: one per label, in people, for a histogram or distribution; one per statistic for other queries. For a
      plan for averages (`Linear.averages`) they are the sums over people that `averages` is read from.
    - `histogram`: whether values are counts of labels.
    - `total`: the sum of the weights, where people have weights. A histogram then adds up weights.
    - `method`: its name for people.
    - `assumes`: what the intervals rest on; several notes if several estimates with different ones were combined.
    - `leans_on_prior`: whether the answer, or a part of a combined one, uses the prior.
    - `projected`: whether the answer was projected.
    - `rounds`, `converged`, `shortfall`: how long a search (mle) took, whether it converged, and a proven bound on the
      mean log-likelihood that it may still lack.
    - `centre`: for mle, the unbiased answer, which `std_error` and intervals belong to.
    - `limits`: for mle and mmse, the least and the most that any distribution can answer. Intervals are cut off there.
    - `bias`: how far the truth may be below and above each value on average, because the estimate leans on one of a set
      of priors and another may be right. Intervals add it; None for other estimates.
    - `prior_check`: the p-value of the reports under the prior; for a set of priors see `set_check`.
    - `noticeable_change`: if this share of the people moved from one common value to another, the p-value would be
      below 0.01 in about 90 % of surveys or more. See `PriorCheck`; None if it is not known, or more than everybody.
    - `unseen_changes`: a note on the changes that the check does not notice, however large; None if there are none.
    - `unbiased_difference`: how far an mmse answer is from the unbiased one: the largest difference over the
      statistics, in standard errors of the unbiased one, less the `bias`. It is None for other methods, where reports
      alone do not determine the answer, and beyond 512 values.
    - `mle_gain`: how many times smaller the squared error of a histogram or of margins by mle is expected to be than
      by unbiased, if the prior is about right. It is large where there are many values and few people.
    - `remarks`: what the plan adds to the `notes` of the estimate.
    """

    values: Array
    std_error: Array
    method: str
    assumes: tuple[Note, ...]
    reports: int
    labels: tuple[Label, ...]
    prior_check: float | None = None
    noticeable_change: float | None = None
    unseen_changes: Note | None = None
    unbiased_difference: float | None = None
    rounds: int | None = None
    converged: bool = True
    shortfall: float | None = None
    total: float | None = None
    histogram: bool = True
    readings: tuple[Reading, ...] = ()
    centre: Array | None = None
    limits: Array | None = None
    bias: Array | None = None
    mle_gain: float | None = None
    remarks: tuple[Note, ...] = ()
    margin_attributes: tuple[str, ...] = ()
    number_by_group: NumberByGroup | None = None
    leans_on_prior: bool = False
    projected: bool = False

    @property
    def proportions(self) -> Array:
        """The values as shares of all reports, or of the total weight."""
        return self.values / self.whole

    @property
    def people(self) -> float:
        """The number of people who reported, or the sum of their weights."""
        return self.reports if self.total is None else self.total

    @property
    def whole(self) -> float:
        """The number of people, by which shares and means are divided; an error if there are none."""
        if self.people <= 0:
            argument = "reports" if self.total is None else "weights"
            advice = f"they add up to {self.people:g}; shares, means and quantiles need a positive sum"
            raise InvalidInput(argument, NOT_SHOWN, advice)
        return self.people

    def interval(self, confidence: float = 0.95, simultaneous: bool = False) -> tuple[Array, Array]:
        """The ends of normal intervals, each of which holds its true value with this probability.

        With `simultaneous` they hold all true values together with this probability (Bonferroni).
        They are longer by the `bias`. Those of mle and mmse are cut off at what is possible. Those of mle are around
        the possible answer nearest to the unbiased one, and reach to the value itself. So an unbiased answer far below
        zero does not leave an interval from zero to zero.
        """
        single = joint_confidence(confidence, len(self.values)) if simultaneous else confidence
        width = normal_width(single) * self.std_error
        least, most = (-math.inf, math.inf) if self.limits is None else self.limits
        centre = np.clip(self.interval_centre, least, most)
        below, above = (0.0, 0.0) if self.bias is None else self.bias
        low, high = np.maximum(centre - width - below, least), np.minimum(centre + width + above, most)
        return np.minimum(low, self.values), np.maximum(high, self.values)

    @property
    def interval_centre(self) -> Array:
        """The middle of the intervals, before they are cut off."""
        return self.values if self.centre is None else self.centre

    def moments_in_order(self, labels: tuple[Label, ...]) -> Moments:
        """The values and variances, in the order of these labels."""
        return self.moments_at(label_positions(self.labels, labels))

    def moments_at(self, positions: Sequence[int]) -> Moments:
        """The values and variances at these positions."""
        centre = None if self.centre is None else self.centre[positions]
        limits = None if self.limits is None else self.limits[:, positions]
        bias = None if self.bias is None else self.bias[:, positions]
        return Moments(self.values[positions], self.std_error[positions] ** 2, centre, limits, bias)

    @property
    def own_readings(self) -> tuple[Reading, ...]:
        """The readings; an error if there are none."""
        if not self.readings:
            advice = "it was not read from the tally of a plan, so nothing else can be read from it"
            raise InvalidInput("estimate", NOT_SHOWN, advice)
        return self.readings

    @property
    def domain_labels(self) -> tuple[Label, ...]:
        """The values that people have; for a histogram these are the labels."""
        return self.own_readings[0].prior.labels

    @property
    def counts_people(self) -> bool:
        """Whether all values are numbers of people."""
        rows = [reading.rows for reading in self.readings if reading.rows is not None]
        return self.histogram or (bool(rows) and all(np.isin(row, (0, 1)).all() for row in rows))

    @property
    def is_sum(self) -> bool:
        """Whether the only value is that of a `Sum`."""
        return bool(self.readings) and all(reading.is_sum for reading in self.readings)

    @property
    def statistic(self) -> StatisticName:
        """What the values are, per person: a share, the average of a sum, or another statistic."""
        if self.number_by_group is not None:
            return "average of a group"
        return "average per person" if self.is_sum else "share" if self.counts_people else "statistic"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes that labels have levels of; none for a single one without a name."""
        names = self.readings[0].prior.names if self.readings else None
        return self.margin_attributes or names or ()

    @property
    def expected(self) -> Array | None:
        """What the priors expect of the people who reported: a number for each of `values`; None without readings."""
        if not self.readings:
            return None
        total = np.zeros(len(self.labels))
        for reading in self.readings:
            offset = reading.tally.weighted.offset if reading.tally.weighted else 0.0
            statistics = apply_rows(reading.rows, reading.people * reading.prior.probabilities) + offset
            total += statistics[label_positions(reading.labels, self.labels)]
        return total

    @property
    def has_grid(self) -> bool:
        """Whether some of the numbers were rounded at random to the points of a grid."""
        return any(reading.prior.domain.rounds for reading in self.readings)

    @property
    def sums_over_cells(self) -> bool:
        """Whether the only value is a `Sum` of a number in each cell, though people may be anywhere in their cells."""
        rows = self.readings[0].rows if self.is_sum else None
        return rows is not None and self.cells_around(rows[0]) is not None

    def cells_around(self, numbers: Array) -> tuple[Array, Array] | None:
        """The lower and the upper edges of the cells that these numbers lie in, for each value; None without any."""
        cells = self.own_readings[0].prior.domain.cell_edges
        around = ((low, high) for low, high in cells if ((low <= numbers) & (numbers <= high)).all())
        return next(around, None)


E = TypeVar("E", bound=EstimateData)


@dataclass(frozen=True)
class AnswerColumns:
    """The numbers that answer the query, one for each label; `columns` has values, standard errors, and both ends.

    `limits` has the least and the most that each can be.
    """

    labels: tuple[Label, ...]
    columns: Array
    limits: Array
    expected: Array | None


def answer_columns(
    estimate: EstimateData, averages: Averages | None, confidence: float = 0.95
) -> AnswerColumns:
    """The averages by group if the query asks for them, and otherwise the values of the estimate."""
    labels, expected = estimate.labels, estimate.expected
    if averages is not None:
        labels, expected = labels[: len(averages)], averages.expected
    numbers = estimate if averages is None else averages
    limits = np.outer(UNBOUNDED, np.ones(len(labels))) if numbers.limits is None else numbers.limits
    columns = np.stack([numbers.values, numbers.std_error, *numbers.interval(confidence)])
    return AnswerColumns(labels, columns, limits, expected)


def with_moments(estimate: E, sums: Moments) -> E:
    """The estimate with other values, errors and intervals."""
    mean, error, ends = sums.mean, np.sqrt(sums.variance), sums.limits
    return replace(
        estimate, values=mean, std_error=error, centre=sums.centre, limits=ends, bias=sums.bias, mle_gain=None
    )
