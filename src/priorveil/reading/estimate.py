"""Estimates: what a tally says, by which method, with which error, and under which assumption.

* **mmse** adds up posteriors. It is best when the prior is right, and leans towards it when it is not.
* **unbiased** inverts the channel: right on average whatever the truth is. Counts may come out negative; `project`
  is a separate step that removes that.
* **mle** finds the distribution under which the reports are most likely. Its intervals are those of unbiased, within
  what shares can be: so they hold for every value, also for one that nobody has.
* **auto** is `unbiased` for an unbiased query, and `mmse` for all others.

`unbiased` and `mle` need a channel that determines the statistics asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from priorveil.arrays import Array, Ints
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, NotIdentifiable, TooLarge
from priorveil.frames import Library, beside_labels, to_frame
from priorveil.priors import Label
from priorveil.priors.domain import label_positions
from priorveil.priors.label_texts import first_labels, label_columns, label_text, named_levels
from priorveil.queries import NumberByGroup, group_rows
from priorveil.reading import pictures, wording
from priorveil.reading.averages import Averages
from priorveil.reading.label_weights import LabelWeights, weights_of
from priorveil.reading.moments import (
    UNLIMITED,
    Ends,
    Moments,
    apply_rows,
    naming_statistics,
    normal_width,
    not_identifiable,
    sum_moments,
)
from priorveil.reading.prior_check import PriorCheck
from priorveil.reading.rounding import largest_variance
from priorveil.reading.shares_search import nearest_shares
from priorveil.reading.statistics import Statistic, average_of, quantile_of, ratio_of
from priorveil.reading.tally_reading import QUICK, Reading

if TYPE_CHECKING:
    from priorveil.pictures.curves import Figure

EstimateMethod = Literal["auto", "mmse", "unbiased", "mle"]
ESTIMATE_METHODS: tuple[EstimateMethod, ...] = get_args(EstimateMethod)

_MOST_PAIRED = 2_000  # statistics whose covariance is written out, and cells of a quantile
_RECORDED = (
    "reports",
    "method",
    "assumes",
    "converged",
    "prior_check",
    "noticeable_change",
    "unseen_changes",
    "unbiased_difference",
    "warning",
)


@dataclass(frozen=True, eq=False)
class Estimate:
    """An answer: `values` with their `std_error`, the method, and what the intervals assume.

    - `values`: one per label, in people, for a histogram or distribution; one per statistic for other queries. For a
      plan for averages (`Linear.averages`) they are the sums over people that `averages` is read from.
    - `histogram`: whether values are counts of labels.
    - `total`: the sum of the weights, where people have weights. A histogram then adds up weights.
    - `method`: its name for people.
    - `leans_on_prior`: whether the answer, or a part of a combined one, uses the prior.
    - `projected`: whether the answer was projected.
    - `rounds`, `converged`, `shortfall`: how long a search (mle) took, whether it converged, and a proven bound on the
      mean log-likelihood that it may still lack.
    - `centre`: for mle, the unbiased answer, which `std_error` and intervals belong to.
    - `limits`: for mle and mmse, the least and the most that any distribution can answer. Intervals are cut off there.
    - `bias`: how far the truth may be below and above each value on average, because the estimate leans on one of a set
      of priors and another may be right. Intervals add it; None for other estimates.
    - `prior_check`: the p-value of the reports under the prior.
    - `noticeable_change`: if this share of the people moved from one common value to another, the p-value would be
      below 0.01 in about 90 % of surveys or more. See `PriorCheck`; None if it is not known, or more than everybody.
    - `unseen_changes`: a sentence on the changes that the check does not notice, however large; None if there are none.
    - `unbiased_difference`: how far an mmse answer is from the unbiased one: the largest difference over the
      statistics, in standard errors of the unbiased one. It is None for other methods, where reports alone do not
      determine the answer, and beyond 512 values.
    - `mle_gain`: how many times smaller the squared error of a histogram or of margins by mle is expected to be than
      by unbiased, if the prior is about right. It is large where there are many values and few people.
    - `remarks`: what the plan adds to `notes`. `warning` and `notes` put all this into words.
    """

    values: Array
    std_error: Array
    method: str
    assumes: str
    reports: int
    labels: tuple[Label, ...]
    prior_check: float | None = None
    noticeable_change: float | None = None
    unseen_changes: str | None = None
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
    remarks: tuple[str, ...] = ()
    margin_attributes: tuple[str, ...] = ()
    number_by_group: NumberByGroup | None = None
    leans_on_prior: bool = False
    projected: bool = False

    @property
    def proportions(self) -> Array:
        """The values as shares of all reports, or of the total weight."""
        return self.values / self._whole

    @property
    def people(self) -> float:
        """The number of people who reported, or the sum of their weights."""
        return self.reports if self.total is None else self.total

    @property
    def _whole(self) -> float:
        """The number of people, above zero: of nobody no share or mean is known."""
        if self.people <= 0:
            argument = "reports" if self.total is None else "weights"
            advice = f"they add up to {self.people:g}; shares, means and quantiles need a positive sum"
            raise InvalidInput(argument, NOT_SHOWN, advice)
        return self.people

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """The ends of normal intervals, each of which holds its true value with this probability.

        They are longer by the `bias`. Those of mle and mmse are cut off at what is possible. Those of mle are around
        the possible answer nearest to the unbiased one, and reach to the value itself. So an unbiased answer far below
        zero does not leave an interval from zero to zero.
        """
        width = normal_width(confidence) * self.std_error
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
        return self._moments_at(label_positions(self.labels, labels))

    def _moments_at(self, positions: Sequence[int]) -> Moments:
        centre = None if self.centre is None else self.centre[positions]
        limits = None if self.limits is None else self.limits[:, positions]
        bias = None if self.bias is None else self.bias[:, positions]
        return Moments(self.values[positions], self.std_error[positions] ** 2, centre, limits, bias)

    def __getitem__(self, label: Label) -> Statistic:
        """The number of one label; that of a group if the query asks for averages."""
        if self.averages is not None and label in self.averages.labels:
            return self.averages[label]
        if label not in self.labels:
            raise _unknown_label(label, self.labels)
        at = self.labels.index(label)
        about = self._about(np.eye(1, len(self.labels), at)[0])
        return self._with_method(_single(self._moments_at([at])), label_text(label), about)

    __iter__ = None  # labels are no positions

    # -- further statistics ----------------------------------------------------------------------------------

    @cached_property
    def covariance(self) -> Array:
        """The covariance of `values`; `TooLarge` beyond 2,000 of them, where `contrast` still works.

        The most that rounding to a grid adds to sums of numbers is on the diagonal only: it depends on where people are
        between the points how it goes together. `contrast` adds the most that it can be in a weighted sum.
        """
        size = len(self.values)
        if size > _MOST_PAIRED:
            message = f"the covariance of {size:,} statistics has too many entries to write out"
            raise TooLarge(message, Hint("estimate.contrast(weights)", purpose="to compute single entries"))
        matrix = np.zeros((size, size))
        for reading in self._own_readings:
            order = label_positions(reading.labels, self.labels)
            matrix += reading.covariance()[np.ix_(order, order)]
        return matrix

    def contrast(self, weights: LabelWeights) -> Statistic:
        """A weighted sum of `values`, such as a difference of two: `weights` has a number for each label.

        A list of labels, or a mapping from labels to weights, does as well; what it leaves out has the weight zero.
        A list of as many numbers as there are labels has weights, even if the numbers are labels too. The `values` of a
        plan for averages are refused: their sums mean nothing.
        """
        if self.number_by_group is not None:
            raise _not_averages("weights", weights)
        row = weights_of("weights", weights, self.labels)[None]
        sums_numbers = all(reading.sums_numbers for reading in self._own_readings)
        sums = self._sums_of_statistics(row, of_numbers=sums_numbers)
        return self._with_method(_single(sums), "contrast", self._about(row[0]))

    def margin(self, *attributes: str | list[str] | tuple[str, ...]) -> Estimate:
        """The counts of the levels of an attribute, or of the combinations of several, summed over the others.

        Several are given as `margin("age", "smokes")`, or in a list.
        """
        domain = self._own_readings[0].prior.domain
        groups = (names if isinstance(names, list | tuple) else [names] for names in attributes)
        names = tuple(chain.from_iterable(groups))
        cells, rows = domain.margin(names)
        try:
            sums = self._sums_of_values(rows)
        except NotIdentifiable as error:
            margins = dict.fromkeys(
                " x ".join(named_levels(str(name), domain.names or ())) for name in self.labels
            )
            about = f"; those that can be read are {', '.join(margins)}" if all(margins) else ""
            message = f"the plan was not designed to estimate the margin {' x '.join(names)}{about}"
            raise NotIdentifiable(message, *error.hints) from None
        labels = _labels_of(cells)
        readings = tuple(
            replace(
                r,
                rows=r.align(rows, domain.labels),
                labels=labels,
                determined=r.determined and self.histogram,
                is_sum=False,
                sums_numbers=False,
            )
            for r in self._own_readings
        )
        parts = [r.unbiased_difference(r.moments(r.rows).mean) for r in readings if r.leans_on_prior]
        relabelled = replace(
            self,
            labels=labels,
            margin_attributes=names,
            number_by_group=None,
            readings=readings,
            unbiased_difference=largest_known(parts),
        )
        return replace(with_moments(relabelled, sums), histogram=True)

    def ratio(self, top: LabelWeights, bottom: LabelWeights) -> Statistic:
        """The people in `top` as a share of those in `bottom`: each a list of labels, or a weight for each value.

        Labels are those of the values, or of the statistics of the query unless it asks for averages. A list of numbers
        that can be both labels and weights is refused; a mapping `{label: weight}` or a numpy array of weights is
        clear. The interval is Fieller's. It has no ends where the reports do not tell the denominator from zero; then
        `people_to_bound` says about how many people would. If numbers were rounded to a grid, the ratio is about its
        points, and the warning says so.
        """
        rows = self._value_weights("top", top), self._value_weights("bottom", bottom)
        ratio = ratio_of(*self._pair(*rows), self._ratio_limits(*rows))
        name = " to ".join(map(self._set_name, rows))
        about = wording.ABOUT_POINTS if self._is_moved_by_rounding(np.stack(rows)) else None
        return self._with_method(ratio, f"ratio of {name}", about)

    def _ratio_limits(self, top: Array, bottom: Array) -> Ends:
        """What the ratio of two weighted sums can be, if the answer is limited to what is possible."""
        counted = bottom != 0
        if self.limits is None or (bottom < 0).any() or top[~counted].any() or not counted.any():
            return UNLIMITED
        ratios = top[counted] / bottom[counted]
        return float(ratios.min()), float(ratios.max())

    def _set_name(self, row: Array) -> str:
        """The values with weight one, if others have none."""
        if not np.isin(row, (0, 1)).all():
            return "a weighted sum"
        labels = [label for label, weight in zip(self._domain, row, strict=True) if weight]
        return first_labels(labels) if labels else "no value"

    def _is_moved_by_rounding(self, rows: Array) -> bool:
        """Whether rounding to a grid changes the weight that somebody has in one of the rows, one for each value."""
        grids = self._own_readings[0].prior.domain.neighbours
        return any((rows[:, low] != rows[:, high]).any() for low, high in grids)

    def _about(self, weights: Array) -> str | None:
        """A sentence if a weighted sum of `values` is about points or one number for each cell, not people's own."""
        if self.sums_over_cells:
            return wording.ABOUT_CELLS
        if not self.histogram or not self.readings:
            return None
        cells = self.readings[0].rows
        of_values = weights if cells is None else weights @ cells
        return wording.ABOUT_POINTS if self._is_moved_by_rounding(of_values[None]) else None

    @property
    def sums_over_cells(self) -> bool:
        """Whether the only value is a `Sum` of a number in each cell, though people may be anywhere in their cells."""
        rows = self.readings[0].rows if self.is_sum else None
        return rows is not None and self._cells_around(rows[0]) is not None

    @overload
    def mean(self, numbers: str | Sequence[float] | None = None, by: None = None) -> Statistic: ...

    @overload
    def mean(self, numbers: str | Sequence[float], by: str | Sequence[str]) -> Averages: ...

    def mean(
        self, numbers: str | Sequence[float] | None = None, by: str | Sequence[str] | None = None
    ) -> Statistic | Averages:
        """The mean per person of a number for each value, over all people or by group.

        `numbers` is the name of an attribute, or a number for each value: by default those of a `Sum`, or else labels
        that are numbers. The mean of a `Sum` is its total without offsets, divided by the reports or the total weight.
        Where numbers were rounded to a grid, the mean of the labels or of the attribute is that of the numbers
        themselves. The mean of other `numbers`, such as squares, is that of the points after rounding.
        If values, or the levels of an attribute, are cells and `numbers` lie in them, such as their midpoints, the
        interval reaches from the mean of the lower edges to that of the upper edges, and noise is added on both sides:
        people may be anywhere in their cells.

        `by` is an attribute, or a list of them: the answer then has the average of each combination of their levels.
        An average is the ratio of a sum and a count, with Fieller's interval.
        """
        if by is not None:
            return self._averages(numbers, (by,) if isinstance(by, str) else tuple(by))
        points, centre = self._numbers(numbers)
        sums = self._sums_of_values((points - centre)[None], of_numbers=True)
        name = wording.mean_name(numbers if isinstance(numbers, str) else "")
        mean = _single(sums, centre, self._whole)
        cells = self._cells_around(points)
        return self._with_method(mean if cells is None else self._mean_in_cells(mean, points, *cells), name)

    def _cells_around(self, numbers: Array) -> tuple[Array, Array] | None:
        """The lower and the upper edges of the cells that these numbers lie in, for each value; None without any."""
        cells = self._own_readings[0].prior.domain.cell_edges
        around = ((low, high) for low, high in cells if ((low <= numbers) & (numbers <= high)).all())
        return next(around, None)

    def _mean_in_cells(self, mean: Statistic, points: Array, low: Array, high: Array) -> Statistic:
        """The mean with what cells hide: the true mean is between those of their lower and of their upper edges.

        If reports do not determine these, nobody is further from their number than an edge of a cell is.
        """
        P = self._own_readings[0].prior.probabilities
        try:
            below, above = (
                _single(self._sums_of_values((edge - P @ edge)[None]), float(P @ edge), self._whole)
                for edge in (low, high)
            )
        except NotIdentifiable:
            hidden = float((points - low).max()), float((high - points).max())
            return replace(mean, bias=(mean.bias[0] + hidden[0], mean.bias[1] + hidden[1]))
        return _between_edges(mean, below, above)

    def group_shares(self, values: Array, by: Sequence[str]) -> Averages:
        """The people with some values, which have a one in `values`, as shares of the groups that attributes form."""
        return self._averages_of(values, "", tuple(by), None)

    def _averages(self, numbers: str | Sequence[float] | None, by: tuple[str, ...]) -> Averages:
        points, name = self._numbers(numbers)[0], numbers if isinstance(numbers, str) else ""
        return self._averages_of(points, name, by, self._cells_around(points))

    def _averages_of(
        self, points: Array, name: str, by: tuple[str, ...], cells: tuple[Array, Array] | None
    ) -> Averages:
        """The average of a number for each value by group; `cells` are edges that people's own numbers lie between."""
        groups, members = group_rows(self._own_readings[0].prior.domain, by)
        labels = _labels_of(groups)
        averages, centres = self._group_averages(points, members, labels)
        if cells is not None:
            below, above = (self._group_averages(edge, members, labels)[0] for edge in cells)
            averages = list(map(_between_edges, averages, below, above))
        titles = [f"{wording.mean_name(name)}, {label_text(label)}" for label in labels]
        statistics = tuple(map(self._with_method, averages, titles))
        return Averages(name, by, labels, statistics, centres)

    def _group_averages(
        self, points: Array, members: Array, labels: tuple[Label, ...]
    ) -> tuple[list[Statistic], Array]:
        """The average of a number for each value in each group, and what the priors expect of it.

        `members` has a row for each group: one where a value belongs to it.
        """
        expected = self._expected_counts
        centres = members @ (expected * points) / (members @ expected)
        distances = members * (points - centres[:, None])
        units = np.abs(distances).max(axis=1)
        units[units == 0] = 1.0
        tops, size = distances / units[:, None], len(labels)
        sums = self._sums_of_values(np.concatenate([tops, members, tops + members]), row_names=labels * 3)
        parts = np.stack([sums.mean, sums.linear]).reshape(2, 3, size)
        biases = _bias_of(sums).reshape(2, 3, size)[:, :2]
        variances = sums.variance.reshape(3, size)
        statistics = []
        for group, centre in enumerate(centres.tolist()):
            pair, people = parts[:, :2, group], float(parts[0, 1, group])
            covariance = _covariance(*variances[:, group])
            if people > 0:
                deviations = tops[group] - members[group] * pair[0, 0] / people
                covariance[0, 0] += self._rounding(deviations, min(people / self._whole, 1.0))
            limits = self._ratio_limits(members[group] * points, members[group])
            unit, bias = float(units[group]), biases[:, :, group]
            statistics.append(average_of(pair, covariance, centre, unit, self.reports, bias, limits))
        return statistics, centres

    @cached_property
    def averages(self) -> Averages | None:
        """The averages that the query asks for (`Linear.averages`); None for other queries."""
        return None if self.number_by_group is None else self.mean(*self.number_by_group)

    @property
    def _expected_counts(self) -> Array:
        """How many people the priors expect to have each value; for nobody the shares of the first prior."""
        counts = np.zeros(len(self._domain))
        for reading in self._own_readings:
            expected = reading.people * reading.prior.probabilities
            counts += expected[label_positions(reading.prior.labels, self._domain)]
        return counts if (counts > 0).all() else self._own_readings[0].prior.probabilities

    def _rounding(self, row: Array, share: float = 1.0) -> float:
        """The most that rounding to a grid adds to the variance of the sum of these numbers, one for each value."""
        parts = [(reading, reading.align(row[None], self._domain)) for reading in self._own_readings]
        return sum(float(reading.rounding(rows, share)[0]) for reading, rows in parts)

    def variance(self, numbers: str | Sequence[float] | None = None) -> Statistic:
        """The variance between people of a number for each value; its standard error by the delta method.

        `numbers` are those of `mean`. Rounding to a grid adds to the variance, at most a quarter of the squared step,
        and a number for each cell may hide or add some. The `bias` of the answer is the most that this can be. Its
        value is the variance of the rounded numbers, and its interval that of the numbers themselves.
        """
        points, centre = self._numbers(numbers)
        sums, covariance, _, biases = self._pair((points - centre) ** 2, points - centre)
        means = sums / self._whole  # of squares and of numbers: as they are, and linear
        value, unprojected = means[:, 0] - means[:, 1] ** 2
        mean = float(means[1, 1])
        slope = np.array([1.0, -2 * mean])
        rounding = self._rounding((points - centre - mean) ** 2)
        error = max(float(slope @ covariance @ slope) + rounding, 0.0) ** 0.5 / self._whole
        (below, low), (above, high) = (biases / self._whole).tolist()
        squares = (mean - low) ** 2, (mean + high) ** 2
        below += max(*squares, mean**2) - mean**2
        above += mean**2 - (0.0 if low >= mean >= -high else min(*squares, mean**2))
        cells = self._cells_around(points)
        if cells is None:
            bias = below + float(largest_variance(self._own_readings[0].prior.domain, points[None])[0]), above
        else:
            distance = float(np.max([points - cells[0], cells[1] - points]))
            bias = _variance_bias(float(value), below, above, distance)
        return self._with_method(Statistic(float(value), error, bias, float(unprojected)), "variance")

    def quantile(self, q: float, numbers: Sequence[float] | None = None) -> Statistic:
        """The number that the share `q` of people does not exceed; `quantile(0.5)` is the median.

        Its interval needs no model: it has the numbers, or the whole cells, whose cumulative share may be `q`. Values
        with the same number are one; beyond 2,000 values a few neighbours that the prior takes for rare are one cell.
        """
        if self.has_grid:
            advice = "numbers were rounded at random, which moves quantiles; use Prior.cells"
            raise InvalidInput("estimate", NOT_SHOWN, advice)
        curve = self._label_curve if numbers is None else self._cumulative_curve(numbers)
        quantile = quantile_of(q, *curve)
        if self.limits is not None:
            quantile = replace(quantile, limits=(float(curve[0][0]), float(curve[1][-1])))
        return self._with_method(quantile, f"quantile {q:g}")

    @cached_property
    def _label_curve(self) -> tuple[Array, ...]:
        return self._cumulative_curve(None)

    def _cumulative_curve(self, numbers: Sequence[float] | None) -> tuple[Array, ...]:
        """Cells from `low` to `high`, and the shares up to each: as they are, linear, their errors and bias."""
        cells = self._own_readings[0].prior.edges if numbers is None else None
        low, high = (self._numbers(numbers)[0],) * 2 if cells is None else (cells[:-1], cells[1:])
        order = np.argsort(low, kind="stable")
        low, high = low[order], high[order]
        last = _last_values(self._own_readings[0].prior.probabilities[order], low)
        low, high = low[np.append(0, last + 1)], high[np.append(last, -1)]
        up_to = np.empty((len(last), len(order)))
        up_to[:, order] = np.arange(len(order)) <= last[:, None]
        sums = self._sums_of_values(up_to)
        shares, linear = (np.append(x / self._whole, 1.0) for x in (sums.mean, sums.linear))
        errors, *bias = (np.append(x / self._whole, 0.0) for x in (sums.variance**0.5, *_bias_of(sums)))
        return low, high, shares, linear, errors, np.array(bias)

    def _with_method(self, statistic: Statistic, name: str, about: str | None = None) -> Statistic:
        """The statistic with its name, and with the method and the people of this estimate.

        Its warning is that of the estimate, or says that it is biased; then it says what the number is `about`.
        """
        far = self.centre is not None and statistic.is_extended
        warnings = wording.OUTSIDE_UNBIASED if far else self.warning, about
        return replace(
            statistic,
            method=self.method,
            warning=" ".join(filter(None, warnings)) or None,
            name=name,
            people=self.people,
            leans_on_prior=self.leans_on_prior,
        )

    @property
    def _own_readings(self) -> tuple[Reading, ...]:
        """The readings; an error if there are none."""
        if not self.readings:
            advice = "it was not read from the tally of a plan, so nothing else can be read from it"
            raise InvalidInput("estimate", NOT_SHOWN, advice)
        return self.readings

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
    def statistic(self) -> str:
        """What the values are, per person: a share, the average of a sum, or another statistic."""
        if self.number_by_group is not None:
            return wording.GROUP_AVERAGE
        return wording.AVERAGE if self.is_sum else "share" if self.counts_people else "statistic"

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
    def _domain(self) -> tuple[Label, ...]:
        """The values that people have; for a histogram these are the labels."""
        return self._own_readings[0].prior.labels

    def _value_weights(self, argument: str, weights: LabelWeights) -> Array:
        """A weight for each value; the label of a statistic stands for the row of that statistic."""
        rows, domain, values = self._own_readings[0].rows, self._domain, set(self._domain)
        own = [] if rows is None else [i for i, label in enumerate(self.labels) if label not in values]
        if np.iterable(weights) and not isinstance(weights, Mapping | Set | np.ndarray):
            numbers = {x for x in weights if isinstance(x, Real) and not isinstance(x, bool)}
            if len(numbers & values.union(self.labels)) == len(domain):
                advice = "these can be labels or weights: give a mapping {label: weight}, or a numpy array of weights"
                raise InvalidInput(argument, weights, advice)
        row = weights_of(argument, weights, domain, [self.labels[i] for i in own])
        if self.number_by_group is not None and row[len(domain) :].any():
            raise _not_averages(argument, weights)
        return row if rows is None else row[: len(domain)] + row[len(domain) :] @ rows[own]

    def _numbers(self, numbers: str | Sequence[float] | None) -> tuple[Array, float]:
        """A number for each value, and their mean under the prior; by default those that the query sums, or the labels.

        Numbers are centred before they are added up: some estimates do not add up to the number of reports.
        """
        rows = self._own_readings[0].rows
        if numbers is None and rows is not None and self.is_sum:
            numbers = rows[0].tolist()
        if numbers is None and not all(isinstance(label, int | float) for label in self._domain):
            if self._own_readings[0].prior.edges is None:
                raise InvalidInput(
                    "numbers",
                    numbers,
                    "the values are not numbers: give one for each value, or the name of an attribute",
                )
            advice = (
                "the values are cells, and nothing is known about where in its cell a number is: give one number for "
                "each, such as (prior.edges[1:] + prior.edges[:-1]) / 2, which makes the answer biased"
            )
            grid = Hint("Prior.grid", purpose="for unbiased means, and for variances")
            raise InvalidInput("numbers", numbers, advice, grid)
        if isinstance(numbers, str):
            points = self._own_readings[0].prior.domain.numbers(numbers)
        else:
            each: LabelWeights = self._domain if numbers is None else numbers
            points = weights_of("numbers", each, self._domain, complete=True)
        return points, float(self._own_readings[0].prior.probabilities @ points)

    def _sums_of_values(
        self, rows: Array, row_names: Sequence[Label] = (), of_numbers: bool = False
    ) -> Moments:
        """Weighted sums of the counts of all values: a row of weights for each sum.

        The sums of a histogram, or of a margin, are those of its own counts. So they are projected if these are; what
        the counts do not determine is read from the tally, but not once they are projected. `row_names` are the groups
        that rows belong to, for the error if reports do not determine them. `of_numbers` is that of `Reading.moments`.
        """
        if self.histogram:
            cells = self._own_readings[0].rows
            own = rows if cells is None else rows[:, cells.argmax(axis=1)]
            if cells is None or np.array_equal(own @ cells, rows):
                return self._sums_of_statistics(own, row_names, of_numbers)
            if self.projected:
                advice = "projected counts of a margin do not contain single values: use the estimate of all values"
                raise InvalidInput("estimate", NOT_SHOWN, advice)
        return self._read_sums(rows, row_names, of_values=True, of_numbers=of_numbers)

    def _sums_of_statistics(
        self, rows: Array, row_names: Sequence[Label] = (), of_numbers: bool = False
    ) -> Moments:
        """Weighted sums of `values`: a row of weights for each sum. They contain offsets, and follow a projection."""
        sums = self._read_sums(rows, row_names, of_values=False, of_numbers=of_numbers)
        centre, limits = rows @ self.interval_centre, sums.limits
        if limits is None and self.limits is not None:  # projected
            limits = self.limits.max() * np.stack([rows.min(axis=1), rows.max(axis=1)])
        if limits is not None:
            limits = limits + np.where(np.isclose(centre, sums.linear, rtol=1e-12), 0.0, centre - sums.linear)
        return replace(sums, mean=rows @ self.values, centre=centre, limits=limits)

    def _read_sums(
        self, rows: Array, row_names: Sequence[Label], of_values: bool, of_numbers: bool
    ) -> Moments:
        """The weighted sums of the values or of the statistics, read from the tallies."""
        labels = self._domain if of_values else self.labels
        try:
            aligned = [(r, r.align(rows, labels, of_values)) for r in self._own_readings]
            return sum_moments([reading.moments(own, of_numbers) for reading, own in aligned])
        except NotIdentifiable as error:
            undetermined = list(error.statistics) or list(range(len(rows)))
            if row_names:
                groups = dict.fromkeys(row_names[row] for row in undetermined)
                raise not_identifiable(list(groups), "average of") from None
            columns = self._undetermined_columns(rows[undetermined], labels, of_values)
            raise not_identifiable([labels[column] for column in columns], "statistics of") from None

    def _undetermined_columns(self, rows: Array, labels: tuple[Label, ...], of_values: bool) -> list[int]:
        """The columns of rows that reports do not determine one by one; all if they are many, or none alone."""
        columns: list[int] = np.flatnonzero(rows.any(axis=0)).tolist()
        if len(columns) > QUICK:
            return columns
        alone = np.eye(len(labels))[columns]
        undetermined: set[int] = set()
        for reading in self._own_readings:
            try:
                reading.moments(reading.align(alone, labels, of_values))
            except NotIdentifiable as error:
                undetermined.update(error.statistics)
        return [columns[row] for row in sorted(undetermined)] or columns

    def _pair(self, first: Array, second: Array) -> tuple[Array, Array, int, Array]:
        """Two weighted sums of the counts, and the linear ones; their covariance, the reports, and the bias of both."""
        sums = self._sums_of_values(np.stack([first, second, first + second]))
        pair = np.stack([sums.mean[:2], sums.linear[:2]])
        return pair, _covariance(*sums.variance), self.reports, _bias_of(sums)[:, :2]

    # -- output ----------------------------------------------------------------------------------------------

    def record(self, confidence: float = 0.95) -> dict[str, Any]:
        """The estimate as JSON, with the ends of its intervals, and the mean or quantiles of numbers."""
        answer = wording.answer(self, confidence)
        columns = zip(("values", "std_error", "lower", "upper"), answer.columns, strict=True)
        return {
            **{name: getattr(self, name) for name in _RECORDED},
            "labels": list(answer.labels),
            "notes": list(self.notes),
            "statistics": wording.number_records(self, confidence),
            **{name: column.tolist() for name, column in columns},
        }

    def project(self) -> Estimate:
        """The nearest histogram of everybody who reported, without negative counts (Euclidean projection).

        It is biased, so it is a separate step. Where values are many or their errors differ, method mle is better.
        Intervals follow the rule of mle: around the answer before the projection, or around zero if that is negative,
        and cut off at zero and at all people. They reach to the new value, so they hold at least as often as before,
        zeros included.

        >>> e = Estimate(np.array([-1.0, 4.0]), np.ones(2), "unbiased", "", 3, ("a", "b"))
        >>> e.project().values.tolist()
        [0.0, 3.0]
        """
        if not self.histogram:
            advice = "only a histogram can be projected; for statistics of possible shares use method mle"
            raise InvalidInput("estimate", NOT_SHOWN, advice)
        if any(r.tally.weighted and r.tally.weighted.least < 0 for r in self.readings):
            advice = "some weights are negative, so counts may be negative: they cannot be projected"
            raise InvalidInput("weights", NOT_SHOWN, advice)
        ones = np.ones_like(self.values)
        values = self.people * nearest_shares(self.values / (self.people or 1.0), ones)
        return replace(
            self,
            values=values,
            method=self.method if self.projected else f"{self.method}, projected",
            projected=True,
            centre=self.interval_centre,
            limits=np.outer([0.0, self.people], ones),
        )

    @property
    def warning(self) -> str | None:
        """What to do if the answer leans on a prior that the reports contradict; None if it does not."""
        return wording.prior_warning(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """The method, what it assumes, and the prior check with its limits, in a sentence or two each."""
        return wording.estimate_notes(self)

    def to_frame(self, library: Library | None = None, confidence: float = 0.95) -> Any:
        """A row for each number of the answer, with its interval, as a data frame of pandas, polars or pyarrow.

        Attributes have a column each; other labels are in the column `value`. Numbers of people have their shares too.
        """
        whole = wording.answer(self, confidence)
        estimate, std_error, low, high = whole.columns
        numbers = {"estimate": estimate, "std_error": std_error, "low": low, "high": high}
        if whole.expected is not None:
            numbers["expected"] = whole.expected
        if self.counts_people and self.people > 0:
            numbers["share"] = self.proportions
        by_level = self.histogram and bool(self.attributes)
        labels = label_columns(whole.labels, self.attributes if by_level else None)
        return to_frame(beside_labels(labels, numbers), library)

    def _repr_html_(self) -> str:
        return wording.estimate_html(self)

    def plot(self, confidence: float = 0.95) -> Figure:
        """The answer with its intervals against what the prior expects, as a matplotlib figure.

        A table of two attributes is a map, cumulative shares are a curve with a band, all else has a row for each
        statistic.
        """
        return pictures.estimate_figure(self, confidence)

    def __str__(self) -> str:
        return wording.estimate_text(self)

    def __repr__(self) -> str:
        return wording.estimate_summary(self)


def read_estimate(
    reading: Reading,
    check: PriorCheck | None,
    unseen_changes: str | None,
    remarks: tuple[str, ...],
    number_by_group: NumberByGroup | None = None,
) -> Estimate:
    """The estimate of the query's statistics, with the check of the prior and the remarks of the plan."""
    weighted = reading.tally.weighted
    with naming_statistics(reading.labels, of_values=reading.rows is None):
        moments = reading.answer()
    difference = reading.unbiased_difference(moments.mean)
    moments = moments.plus(weighted.offset if weighted else 0.0)
    return Estimate(
        values=moments.mean,
        std_error=np.sqrt(np.maximum(moments.variance, 0.0)),
        method=reading.method,
        assumes=moments.assumes or wording.ASSUMES["set" if reading.known else reading.method],
        reports=reading.tally.reports,
        labels=reading.labels,
        prior_check=check and check.p_value,
        noticeable_change=check and check.noticeable_change,
        unseen_changes=unseen_changes,
        unbiased_difference=difference,
        rounds=moments.rounds,
        converged=moments.converged,
        shortfall=moments.shortfall,
        total=weighted.total if weighted else None,
        histogram=reading.rows is None,
        mle_gain=reading.mle_gain(moments.variance),
        readings=(reading,),
        remarks=remarks,
        centre=moments.centre,
        limits=moments.limits,
        bias=moments.bias,
        number_by_group=number_by_group,
        leans_on_prior=reading.leans_on_prior,
    )


def _labels_of(cells: Sequence[tuple[Any, ...]]) -> tuple[Label, ...]:
    """The label of each combination of levels: of a single attribute, the level itself."""
    return tuple(cell[0] if len(cell) == 1 else cell for cell in cells)


def _unknown_label(label: object, labels: Sequence[Label]) -> InvalidInput:
    """The refusal of a label. Labels of several attributes are shown as they are written in Python."""
    if not isinstance(labels[0], tuple):
        return InvalidInput("label", label, f"choose one of {first_labels(labels)}")
    margin = Hint("estimate.margin", purpose="for the levels of one attribute")
    return InvalidInput("label", label, f"choose one of {first_labels(list(map(repr, labels)))}", margin)


def _single(sums: Moments, shift: float = 0.0, whole: float = 1.0) -> Statistic:
    """The only sum as a statistic: divided by `whole`, and then moved by `shift`."""
    value, centre = (shift + float(x[0]) / whole for x in (sums.mean, sums.linear))
    least, most = (-math.inf, math.inf) if sums.limits is None else shift + sums.limits[:, 0] / whole
    error, limits = float(sums.variance[0]) ** 0.5 / whole, (float(least), float(most))
    below, above = (_bias_of(sums)[:, 0] / whole).tolist()
    return Statistic(value, error, (below, above), centre=centre, limits=limits)


def _bias_of(sums: Moments) -> Array:
    """How far the truth may be below and above each sum on average: two rows."""
    return np.zeros((2, len(sums.mean))) if sums.bias is None else sums.bias


def _between_edges(mean: Statistic, below: Statistic, above: Statistic) -> Statistic:
    """A mean of numbers in cells, given those of their lower and of their upper edges: people may be anywhere."""
    bias = max(mean.value - below.value, 0.0), max(above.value - mean.value, 0.0)
    limits = below.limits[0], above.limits[1]
    return replace(mean, bias=bias, limits=limits, ends=partial(_outer_ends, below, above))


def _outer_ends(below: Statistic, above: Statistic, width: float) -> tuple[float, float]:
    """From the lower end of one interval to the upper end of another."""
    return below.linear_ends(width)[0], above.linear_ends(width)[1]


def _variance_bias(variance: float, below: float, above: float, distance: float) -> tuple[float, float]:
    """How far the variance of numbers may be below and above that of others, each at most this far from its number.

    That of the others may itself be this far below and above. The standard deviations differ by at most the distance.
    """
    possible = max(variance, 0.0)
    least, most = math.sqrt(max(possible - below, 0.0)), math.sqrt(possible + above)
    return possible - max(least - distance, 0.0) ** 2, (most + distance) ** 2 - possible


def _not_averages(argument: str, weights: LabelWeights) -> InvalidInput:
    advice = "the values of a plan for averages are what averages are read from, and no averages themselves"
    return InvalidInput(
        argument, weights, advice, Hint("estimate.averages", purpose="for the average of each group")
    )


def _covariance(first: float, second: float, both: float) -> Array:
    """The covariance of two sums, from their variances and that of both together."""
    shared = (both - first - second) / 2
    return np.array([[first, shared], [shared, second]])


def _last_values(prior: Array, low: Array) -> Ints:
    """The last value of every cell but the last: of each number, or if there are many of a few thousand cells.

    No cell of several numbers has more than a thousandth of the values, or of the people that the prior expects.
    """
    ends = np.arange(len(prior)) / len(prior) + np.cumsum(prior)
    cells = np.linspace(ends[0], ends[-1], _MOST_PAIRED) if len(prior) > _MOST_PAIRED else ends
    return np.unique(np.searchsorted(low, low[np.searchsorted(ends, cells)], side="right") - 1)[:-1]


def with_moments(estimate: Estimate, sums: Moments) -> Estimate:
    """The estimate with other values, errors and intervals."""
    mean, error, ends = sums.mean, np.sqrt(sums.variance), sums.limits
    return replace(
        estimate, values=mean, std_error=error, centre=sums.centre, limits=ends, bias=sums.bias, mle_gain=None
    )


def largest_known(numbers: list[float | None]) -> float | None:
    """The largest of the numbers; None where one is unknown, or there are none."""
    present = [number for number in numbers if number is not None]
    return max(present) if present and len(present) == len(numbers) else None
