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
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, centre_rows
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, NotIdentifiable, TooLarge
from priorveil.mechanisms import Mechanism
from priorveil.mechanisms.estimators import DOUBTFUL, Moments, Rows, normal_width, not_identifiable
from priorveil.mechanisms.simplex import nearest_shares
from priorveil.plans.statistic import Statistic, quantile_of, ratio_of
from priorveil.plans.tally import Tally, Weighted
from priorveil.priors import AttributeLabels, Label, Prior
from priorveil.priors.labels import aligned_texts, as_label, first_labels, label_positions, named_levels
from priorveil.queries import LabelledRows, require_same_statistics

Method = Literal["auto", "mmse", "unbiased", "mle"]
Weights = Sequence[float] | Sequence[Label] | Mapping[Label, float] | npt.NDArray[Any]

_FREE = ("unbiased", "unbiased, projected", "mle", "mle, projected")  # methods that do not lean on the prior

_NOTABLE = 1.2  # a gain of mle that is worth a sentence
QUICK = 512  # values up to which the unbiased answer is computed next to the one that leans on the prior
_MOST_SHOWN = 50  # values that are printed
_MOST_PAIRED = 2_000  # statistics whose covariance is written out, and cells of a quantile
_RECORDED = "reports method assumes converged prior_check noticeable_change unseen_changes unbiased_difference warning"
AVERAGE = "average per person"
_FAR = (
    "Rare values come out too common if no share is negative, and over many values this adds up: the answer is outside "
    "the interval of method unbiased. For cumulative shares, quantiles and sums of many values use that method."
)

ASSUMES = {
    "mmse": "the prior is right: the spread is that of the posterior",
    "unbiased": "nothing about the prior: the spread is the sampling noise of the reports",
    "mle": "nothing about the prior: the intervals are those of method unbiased, within what shares can be",
}

WEIGHTED = {
    "mmse": "the prior is right, and right for people of every weight: the spread is that of the posterior",
    "mle": "nothing about the prior: weights multiply the log-likelihood, and the intervals are those of method "
    "unbiased, within what shares can be",
}


@contextmanager
def single_thread() -> Iterator[None]:
    """Run a block, or as a decorator a function, with one BLAS thread; then as many as before.

    On a busy machine the threads wait for each other: reading took a hundred times as long with two.
    """
    with _linear_algebra().limit(limits=1):
        yield


@cache
def _linear_algebra() -> Any:
    from threadpoolctl import ThreadpoolController  # a device, which only reports, needs no such library

    return ThreadpoolController().select(user_api="blas")


@dataclass(frozen=True, eq=False)
class Reading:
    """A tally, and how it is read: the mechanism, the method, the prior, and whether people are a sample.

    `rows` are the statistics of the query, or None for the histogram, and `labels` their names. The tally holds counts,
    never single reports. With `knows_total` statistics are read from rows less their means under the prior, and the
    number of people times the mean is added: a part that is the same for all values has no error, and does not take the
    digits of the others. Only a histogram that does not add up to the reports, and its sums, are read without that.
    `determined` is true if the reports are known to determine the statistics without the prior.
    """

    mechanism: Mechanism
    method: str
    tally: Tally
    prior: Prior
    population: bool
    rows: Rows
    labels: tuple[Label, ...]
    knows_total: bool = True
    determined: bool = False

    def moments(self, rows: Rows) -> Moments:
        """The statistics `rows @ histogram`, or the histogram for None, with their variances.

        For people of weight `c_i` it is `sum_i c_i rows[:, x_i]`. What a report adds to an mmse or unbiased answer is
        multiplied by its weight, and what it adds to the variance by the square: so the mean is that of the counts with
        weights, the variance that of the counts with squares. For mle weights multiply the log-likelihood (a
        pseudo-likelihood: it has the right mean even if weights go with values), and intervals are those of the
        unbiased answer.
        """
        weighted, (centred, means) = self.tally.weighted, self._centre(rows)
        if weighted is None:
            return self._answer(self.tally.counts, centred).plus(self.tally.reports * means)
        if self.method == "mle" and (weighted.least < 0 or weighted.total <= 0):
            advice = "weights below zero, or all zero, have no likelihood: use 'mmse' or 'unbiased'"
            raise InvalidInput("method", "mle", advice)
        squares, scale = self._squares(weighted)
        found, squared = self._answer(weighted.weights, centred), self._answer(squares, centred)
        variance = squared.variance + self.tally.reports * self._shift(weighted, found, squared) ** 2
        assumes = found.assumes or WEIGHTED.get(self.method)
        return replace(found, variance=scale * variance, assumes=assumes).plus(weighted.total * means)

    @single_thread()
    def covariance(self) -> Array:
        """The covariance of the statistics of the query; that of mle is that of the answer behind its intervals."""
        if self.method == "mle":
            return replace(self, method="balanced").covariance()
        weighted, rows = self.tally.weighted, self._centre(self.rows)[0]
        counts, scale = (self.tally.counts, 1.0) if weighted is None else self._squares(weighted)
        P = self.prior.probabilities
        found = self.mechanism.covariance(self.method, counts, P, rows, self.population)
        if weighted is None:
            return found
        shift = self._shift(weighted, *(self._answer(n, rows) for n in (weighted.weights, counts)))
        return scale * (found + self.tally.reports * np.outer(shift, shift))

    def _centre(self, rows: Rows) -> tuple[Rows, Array]:
        """The rows less their means under the prior, and the means; as they are if the total is not known."""
        if rows is None or not self.knows_total:
            return rows, np.zeros(1)
        return centre_rows(rows, self.prior.probabilities)

    @single_thread()
    def _answer(self, counts: npt.NDArray[Any], rows: Rows) -> Moments:
        return self.mechanism.answer(self.method, counts, self.prior.probabilities, rows, self.population)

    def _squares(self, weighted: Weighted) -> tuple[Array, float]:
        """The counts with squares of weights, divided by the mean square; and the mean square."""
        scale = weighted.power / max(self.tally.reports, 1) or 1.0
        return weighted.squares / scale, scale

    def _shift(self, weighted: Weighted, found: Moments, squared: Moments) -> Array:
        """How far the shares of the counts with squares are from those that are estimated.

        If people are a sample, the variance is `sum_i c_i**2 (psi_i - m)**2` with `m` the estimated shares; counts with
        squares give it around their own mean.
        """
        if not self.population or self.method == "mmse" or not weighted.least >= 0 < weighted.total:
            return np.zeros_like(found.mean)
        return np.asarray(squared.linear / self.tally.reports - found.linear / weighted.total)

    def unbiased_difference(self, answer: Array) -> float | None:
        """The largest difference of the unbiased answer from this mmse one, in standard errors of the unbiased one.

        None for other methods, where reports do not determine the answer, and beyond 512 values.
        """
        if self.method != "mmse" or not self.tally.reports or len(self.prior) > QUICK:
            return None
        try:
            unbiased = replace(self, method="unbiased").moments(self.rows)
        except (NotIdentifiable, TooLarge):
            return None
        known = unbiased.variance > 0
        differences = np.abs(unbiased.mean - answer)[known] / np.sqrt(unbiased.variance[known])
        return float(differences.max(initial=0.0))

    def align(self, weights: Array, labels: tuple[Label, ...], of_values: bool = True) -> Array:
        """The weights, a row for each sum, with columns for the counts of this reading's values.

        Their columns are in the order of `labels`: the values, perhaps of another cohort, or the query's statistics.
        """
        mine = self.prior.labels if of_values else self.labels
        if set(mine) != set(labels):
            raise InvalidInput(
                "estimates", NOT_SHOWN, "they have different values: read each estimate separately"
            )
        own = weights if mine == labels else np.take(weights, label_positions(labels, mine), axis=1)
        return own if of_values or self.rows is None else own @ self.rows

    def rounding(self, row: Array) -> float:
        """The most that rounding to a grid adds to the variance of a sum over these people of a number for each point.

        The rounding error has a standard deviation of at most half a step. It does not depend on the noise of unbiased
        reports, and those of a sample of people vary with it already. For posterior means `m` the error of the numbers
        themselves is `E[v] - Var(e) + 2 Cov(m, e)`, with `v` the posterior variance and `e` the rounding error: at most
        `E[v] + s (2 sd(m) - s)` with `s` the smaller of `sd(m)` and half a step, and `Var(m)` is the variance of the
        prior less `E[v]`.
        """
        if self.population or self.prior.points is None or not self.tally.reports:
            return 0.0
        weighted, P = self.tally.weighted, self.prior.probabilities
        people = weighted.power if weighted else self.tally.reports
        step = float(np.abs(np.diff(row)).max()) / 2
        if self.method != "mmse":
            return people * step**2
        explained = float(P @ (row - P @ row) ** 2 - self.moments(row[None]).variance[0] / (people or 1.0))
        spread = math.sqrt(max(explained, 0.0))
        return people * min(step, spread) * (2 * spread - min(step, spread))


@dataclass(frozen=True, eq=False)
class Estimate:
    """An answer: `values` with their `std_error`, the method, and what the intervals assume.

    A histogram or distribution has one value per label, in people; other queries have one for each statistic, and
    `histogram` is False. A search (mle) reports its `rounds`, whether it `converged`, and its `shortfall`: a proven
    bound on the mean log-likelihood that it may still lack. `std_error` and intervals are then those of the unbiased
    answer, `center`, within the `limits` that hold for every distribution. Where people have weights, a histogram adds
    these up, and `total` is their sum.

    `prior_check` is the p-value of the reports under the prior. If the share `noticeable_change` of the people moved
    from one value to another, it would be below 0.01 in 90 % of surveys. `unseen_changes` says in a sentence which
    changes it does not notice, however large; None if there are none. `unbiased_difference` says how far an mmse answer
    is from the unbiased one: the largest difference over the statistics, in standard errors of the unbiased one.
    It is None for other methods, where reports alone do not determine the answer, and beyond 512 values.
    `mle_gain` is how many times smaller the squared error of a histogram or of margins by mle is expected to be than
    by unbiased, if the prior is about right: it is large where there are many values and few people.
    `warning` and `notes` put all this into words; `notes` end with the `remarks` of the plan.
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
    readings: tuple[Reading, ...] = field(default=(), repr=False)
    center: Array | None = None
    limits: Array | None = None
    mle_gain: float | None = None
    remarks: tuple[str, ...] = field(default=(), repr=False)

    @property
    def proportions(self) -> Array:
        """The values as shares of all reports, or of the total weight."""
        return self.values / self._whole

    @property
    def _whole(self) -> float:
        """The number of reports, or the total weight; of nobody no share or mean is known."""
        whole = self.reports if self.total is None else self.total
        if whole <= 0:
            argument = "reports" if self.total is None else "weights"
            advice = f"they add up to {whole:g}; shares, means and quantiles need a positive sum"
            raise InvalidInput(argument, NOT_SHOWN, advice)
        return whole

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """The ends of normal intervals, each of which holds its true value with this probability.

        Those of mle are around the possible answer nearest to the unbiased one, cut off at what is possible, and reach
        to the value itself. So an unbiased answer far below zero does not leave an interval from zero to zero.
        """
        width = normal_width(level, "level") * self.std_error
        least, most = (-math.inf, math.inf) if self.limits is None else self.limits
        center = np.clip(self._center, least, most)
        low, high = np.maximum(center - width, least), np.minimum(center + width, most)
        return np.minimum(low, self.values), np.maximum(high, self.values)

    @property
    def _center(self) -> Array:
        """The middle of the intervals, before they are cut off."""
        return self.values if self.center is None else self.center

    def _in_order(self, labels: tuple[Label, ...]) -> Moments:
        order = list(label_positions(self.labels, labels))
        center = None if self.center is None else self.center[order]
        limits = None if self.limits is None else self.limits[:, order]
        return Moments(self.values[order], self.std_error[order] ** 2, center, limits)

    # -- further statistics ----------------------------------------------------------------------------------

    @cached_property
    def covariance(self) -> Array:
        """The covariance of `values`; `TooLarge` beyond 2,000 of them, where `contrast` still works."""
        size = len(self.values)
        if size > _MOST_PAIRED:
            message = f"the covariance of {size:,} statistics has too many entries to write out"
            raise TooLarge(message, Hint("estimate.contrast(weights)", purpose="to compute single entries"))
        found = np.zeros((size, size))
        for reading in self._own_readings:
            order = list(label_positions(reading.labels, self.labels))
            found += reading.covariance()[np.ix_(order, order)]
        return found

    def contrast(self, weights: Weights) -> Statistic:
        """A weighted sum of `values`, such as a difference of two: `weights` has a number for each label.

        A list of labels, or a mapping from labels to weights, does as well; what it leaves out has the weight zero.
        A list of as many numbers as there are labels has weights, even if the numbers are labels too.
        """
        sums = self._sums(_weights_of("weights", weights, self.labels)[None], of_values=False)
        return self._with_method(_single(sums))

    def margin(self, *attributes: str | list[str] | tuple[str, ...]) -> Estimate:
        """The counts of the levels of an attribute, or of the combinations of several, summed over the others.

        Several are given as `margin("age", "smokes")`, or in a list.
        """
        domain = self._domain
        given = (names if isinstance(names, list | tuple) else [names] for names in attributes)
        names = tuple(chain.from_iterable(given))
        if not isinstance(domain, AttributeLabels):
            advice = "the prior has no names of attributes; use Prior.joint"
            raise InvalidInput("attributes", names, advice)
        cells, rows = domain.margin(names)
        try:
            sums = self._sums(rows)
        except NotIdentifiable as error:
            own = dict.fromkeys(" x ".join(named_levels(str(name), domain.names)) for name in self.labels)
            about = f"; those that can be read are {', '.join(own)}" if all(own) else ""
            message = f"the plan was not designed to estimate the margin {' x '.join(names)}{about}"
            raise NotIdentifiable(message, *error.hints) from None
        labels = tuple(c[0] if len(c) == 1 else c for c in cells)
        readings = tuple(
            replace(r, rows=r.align(rows, domain), labels=labels, determined=r.determined and self.histogram)
            for r in self._own_readings
        )
        parts = [r.unbiased_difference(r.moments(r.rows).mean) for r in readings if r.method == "mmse"]
        found = replace(self, labels=labels, readings=readings, unbiased_difference=_largest_known(parts))
        return replace(_with_moments(found, sums), histogram=True)

    def ratio(self, top: Weights, bottom: Weights) -> Statistic:
        """The people in `top` as a share of those in `bottom`: each a list of labels, or a weight for each value.

        Labels are those of the values, or of the statistics of the query. A list of numbers that can be both labels and
        weights is refused; a mapping `{label: weight}` or a numpy array of weights is clear. The interval is Fieller's.
        It is unbounded where the reports do not tell the denominator from zero.
        """
        sums = self._pair(self._value_weights("top", top), self._value_weights("bottom", bottom))
        return self._with_method(ratio_of(*sums))

    def mean(self, numbers: Sequence[float] | None = None) -> Statistic:
        """The mean per person of a number for each value: by default those of a `Sum`, or else labels that are numbers.

        The mean of a `Sum` is its total without offsets, divided by the reports or the total weight. Where numbers were
        rounded to a grid, the mean of the labels is that of the numbers themselves. The mean of other `numbers`, such
        as squares, is that of the points after rounding.
        """
        points, centre = self._numbers(numbers)
        sums = self._sums((points - centre)[None])
        rounding = sum(reading.rounding(points - centre) for reading in self._own_readings)
        total = replace(sums, variance=sums.variance + rounding)
        return self._with_method(_single(total, centre, self._whole))

    def variance(self, numbers: Sequence[float] | None = None) -> Statistic:
        """The variance between people of a number for each value; its standard error by the delta method.

        Rounding to a grid adds to it, at most a quarter of the squared step. This bound is the `rounding_bias` of the
        answer. Its value is the variance of the rounded numbers, and its interval that of the numbers themselves.
        """
        points, centre = self._numbers(numbers)
        sums, covariance = self._pair((points - centre) ** 2, points - centre)
        (value, found), mean = (x[0] - x[1] ** 2 for x in sums / self._whole), sums[1, 1] / self._whole
        slope = np.array([1.0, -2 * mean])
        rounding = sum(reading.rounding((points - centre - mean) ** 2) for reading in self._own_readings)
        error = max(float(slope @ covariance @ slope) + rounding, 0.0) ** 0.5 / self._whole
        steps = np.diff(points) if self._own_readings[0].prior.points is not None else np.zeros(1)
        bias = float((steps**2).max(initial=0.0)) / 4
        return self._with_method(Statistic(float(value), error, bias, float(found)))

    def quantile(self, q: float, numbers: Sequence[float] | None = None) -> Statistic:
        """The number that the share `q` of people does not exceed; `quantile(0.5)` is the median.

        Its interval needs no model: it has the numbers, or the whole cells, whose cumulative share may be `q`. Values
        with the same number are one; beyond 2,000 values a few neighbours that the prior takes for rare are one cell.
        """
        if self._has_grid:
            advice = "numbers were rounded at random, which moves quantiles; use Prior.cells"
            raise InvalidInput("estimate", NOT_SHOWN, advice)
        curve = self._label_curve if numbers is None else self._cumulative_curve(numbers)
        return self._with_method(quantile_of(q, *curve))

    @cached_property
    def _label_curve(self) -> tuple[Array, ...]:
        return self._cumulative_curve(None)

    def _cumulative_curve(self, numbers: Sequence[float] | None) -> tuple[Array, ...]:
        """Cells from `low` to `high`, and the shares up to each: as they are, linear, and their standard errors."""
        cells = self._own_readings[0].prior.edges if numbers is None else None
        low, high = (self._numbers(numbers)[0],) * 2 if cells is None else (cells[:-1], cells[1:])
        order = np.argsort(low, kind="stable")
        low, high = low[order], high[order]
        last = _last_values(self._own_readings[0].prior.probabilities[order], low)
        low, high = low[np.append(0, last + 1)], high[np.append(last, -1)]
        up_to = np.empty((len(last), len(order)))
        up_to[:, order] = np.arange(len(order)) <= last[:, None]
        sums = self._sums(up_to)
        shares, linear = (np.append(x / self._whole, 1.0) for x in (sums.mean, sums.linear))
        errors = np.append(sums.variance**0.5 / self._whole, 0.0)
        return low, high, shares, linear, errors

    def _with_method(self, statistic: Statistic) -> Statistic:
        """The statistic with the method of this estimate and its warning, or a warning that it is biased."""
        far = self.center is not None and statistic.is_extended
        return replace(statistic, method=self.method, warning=_FAR if far else self.warning)

    @property
    def _own_readings(self) -> tuple[Reading, ...]:
        """The readings; an error if there are none."""
        if not self.readings:
            advice = "it was not read from the tally of a plan, so nothing else can be read from it"
            raise InvalidInput("estimate", NOT_SHOWN, advice)
        return self.readings

    @property
    def _counts_people(self) -> bool:
        """Whether all values are numbers of people."""
        rows = [reading.rows for reading in self.readings if reading.rows is not None]
        return self.histogram or (bool(rows) and all(np.isin(row, (0, 1)).all() for row in rows))

    @property
    def _has_grid(self) -> bool:
        """Whether some of the numbers were rounded at random to the points of a grid."""
        return any(reading.prior.points is not None for reading in self.readings)

    @property
    def _domain(self) -> tuple[Label, ...]:
        """The values that people have; for a histogram these are the labels."""
        return self._own_readings[0].prior.labels

    def _value_weights(self, argument: str, given: Weights) -> Array:
        """A weight for each value; the label of a statistic stands for the row of that statistic."""
        rows, domain, values = self._own_readings[0].rows, self._domain, set(self._domain)
        own = [] if rows is None else [i for i, label in enumerate(self.labels) if label not in values]
        if np.iterable(given) and not isinstance(given, Mapping | Set | np.ndarray):
            numbers = {x for x in given if isinstance(x, Real) and not isinstance(x, bool)}
            if len(numbers & values.union(self.labels)) == len(domain):
                advice = "these can be labels or weights: give a mapping {label: weight}, or a numpy array of weights"
                raise InvalidInput(argument, given, advice)
        weights = _weights_of(argument, given, domain, [self.labels[i] for i in own])
        return weights if rows is None else weights[: len(domain)] + weights[len(domain) :] @ rows[own]

    def _numbers(self, numbers: Sequence[float] | None) -> tuple[Array, float]:
        """A number for each value, and their mean under the prior; by default those that the query sums, or the labels.

        Numbers are centred before they are added up: some estimates do not add up to the number of reports.
        """
        rows = self._own_readings[0].rows
        if numbers is None and rows is not None and not self.histogram and self.labels == ("sum",):
            numbers = rows[0].tolist()
        if numbers is None and not all(isinstance(label, int | float) for label in self._domain):
            if self._own_readings[0].prior.edges is None:
                raise InvalidInput("numbers", numbers, "the values are not numbers: give one for each value")
            advice = (
                "the values are cells, and nothing is known about where in its cell a number is: give one number for "
                "each, such as (prior.edges[1:] + prior.edges[:-1]) / 2, which makes the answer biased"
            )
            grid = Hint("Prior.grid", purpose="for unbiased means, and for variances")
            raise InvalidInput("numbers", numbers, advice, grid)
        given: Weights = self._domain if numbers is None else numbers
        points = _weights_of("numbers", given, self._domain, complete=True)
        return points, float(self._own_readings[0].prior.probabilities @ points)

    def _sums(self, rows: Array, of_values: bool = True) -> Moments:
        """Weighted sums of the counts of all values, or of `values`: a row of weights for each.

        The sums of a histogram, or of a margin, are those of its own counts. So they are projected if these are; what
        the counts do not determine is read from the tally, but not once they are projected.
        """
        labels, cells = self._domain if of_values else self.labels, self._own_readings[0].rows
        if of_values and self.histogram:
            own = rows if cells is None else rows[:, cells.argmax(axis=1)]
            if cells is None or np.array_equal(own @ cells, rows):
                return self._sums(own, of_values=False)
            if "projected" in self.method:
                advice = "projected counts of a margin do not contain single values: use the estimate of all values"
                raise InvalidInput("estimate", NOT_SHOWN, advice)
        try:
            sums = _add_moments([r.moments(r.align(rows, labels, of_values)) for r in self._own_readings])
        except NotIdentifiable as error:
            used = rows[list(error.statistics) or slice(None)].any(axis=0)
            named = [labels[at] for at in np.flatnonzero(used)]
            raise not_identifiable(named, "statistics of") from None
        if of_values:
            return sums
        center, limits = rows @ self._center, sums.limits  # with offsets
        if limits is None and self.limits is not None:  # projected
            limits = self.limits.max() * np.stack([rows.min(axis=1), rows.max(axis=1)])
        if limits is not None:
            limits = limits + np.where(np.isclose(center, sums.linear, rtol=1e-12), 0.0, center - sums.linear)
        return replace(sums, mean=rows @ self.values, center=center, limits=limits)

    def _pair(self, first: Array, second: Array) -> tuple[Array, Array]:
        """Two weighted sums of the counts, and the linear ones; their covariance.

        Variances are quadratic in the weights.
        """
        sums = self._sums(np.stack([first, second, first + second]))
        one, two, both = sums.variance
        shared = (both - one - two) / 2
        return np.stack([sums.mean[:2], sums.linear[:2]]), np.array([[one, shared], [shared, two]])

    # -- output ----------------------------------------------------------------------------------------------

    def record(self, level: float = 0.95) -> dict[str, Any]:
        """The estimate as JSON, with the ends of its intervals."""
        low, high = self.interval(level)
        columns = {"values": self.values, "std_error": self.std_error, "lower": low, "upper": high}
        return {
            **{name: getattr(self, name) for name in _RECORDED.split()},
            "labels": list(self.labels),
            "notes": list(self.notes),
            **{name: column.tolist() for name, column in columns.items()},
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
        everybody, ones = self.reports if self.total is None else self.total, np.ones_like(self.values)
        values = everybody * nearest_shares(self.values / (everybody or 1.0), ones)
        limits, method = np.outer([0.0, everybody], ones), f"{self.method}, projected"
        return replace(self, values=values, method=method, center=self._center, limits=limits)

    @property
    def warning(self) -> str | None:
        """What to do if the answer leans on a prior that the reports contradict; None if it does not."""
        if self.method in _FREE or self.prior_check is None or self.prior_check >= DOUBTFUL:
            return None
        determined = bool(self.readings) and all(reading.determined for reading in self.readings)
        if determined or self.unbiased_difference is not None:
            advice = "Read the reports with method unbiased, or give a better prior"
        else:
            advice = "Give a better prior, or design a plan for the query distribution"
        return (
            f"The reports contradict the prior ({_p_text(self.prior_check)}), and this estimate leans on it: the "
            f"truth may be far outside the intervals. {advice}."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """The method, what it assumes, and the prior check with its limits, in a sentence or two each."""
        notes = [f"Method {self.method}: assumes {self.assumes}.", self._check_note()]
        if self._has_grid and self.histogram:
            notes.append("The counts are those of points of a grid, after numbers were rounded at random.")
        if self.unbiased_difference is not None:
            notes.append(
                "The answer of method unbiased, which does not use the prior, is up to "
                f"{self.unbiased_difference:.1f} of its own standard errors away from this one."
            )
        if self.mle_gain is not None and self.mle_gain > _NOTABLE:
            which = f"about {self.mle_gain:.1f} times less squared error than unbiased, if the prior is about right"
            notes.append(
                f"Shares are not negative and add up to one, and mle uses that: it has {which}. On average rare values "
                "come out too common; for sums over many surveys, or many values as in a quantile, use unbiased."
                if self.method == "mle"
                else f"Method mle uses that shares are not negative and add up to one: it has {which}."
            )
        if self.limits is not None and not self.histogram:
            far = np.abs(self.values - np.clip(self._center, *self.limits)) - 2 * self.std_error
            notes += [_FAR] * bool((far > 1e-9 * np.ptp(self.limits, axis=0)).any())
        if not self.converged:
            lacking = f"the mean log-likelihood may lack {self.shortfall or 0:.1g}"
            notes.append(f"The search stopped early: {lacking}.")
        if self.limits is None and self.total is None and (self.values < 0).any() and self._counts_people:
            whole = ", even with its whole interval" if (self.interval()[1] < 0).any() else ""
            methods = "Method mle, or project()," if self.histogram else "Method mle"
            notes.append(
                f"An unbiased estimate of a small count can be below zero{whole}: its share is near zero. {methods} "
                "gives counts that are not."
            )
        return (*notes, *self.remarks)

    def _check_note(self) -> str:
        if self.prior_check is None:
            return "Prior check: none. There are too few reports, or they say too little."
        doubtful, unseen = self.prior_check < DOUBTFUL, self.unseen_changes
        note = f"{unseen + ' ' if unseen else ''}Prior check: {_p_text(self.prior_check)}."
        if doubtful:
            note += " The prior is wrong or somebody manipulates the reports."
        if doubtful and self.method in _FREE:
            note += " This method does not rest on the prior."
        if self.noticeable_change is not None:
            return (
                f"{note} The check notices{' other changes' if unseen else ''}, nine times in ten, if "
                f"{100 * self.noticeable_change:.2g} % of the people have moved from one value to another"
                f"{'' if doubtful else '; smaller changes can pass'}."
            )
        return note if doubtful else f"{note} There may be too few reports to notice even a large change."

    def __str__(self) -> str:
        low, high = self.interval()
        lines = [] if self.warning is None else [f"Warning: {self.warning}"]
        shown = self.largest()
        names = aligned_texts([self.labels[i] for i in shown])
        width = max(map(len, names), default=20)
        lines.append(f"{'value':<{width}} {'estimate':>12} {'95 % interval':>25}  by {self.method}")
        for name, i in zip(names, shown, strict=True):
            lines.append(f"{name} {self.values[i]:>12.1f} {low[i]:>12.1f} {high[i]:>12.1f}")
        if len(shown) < len(self.labels):
            lines.append(f"and {len(self.labels) - len(shown):,} more")
        return "\n".join([*lines, *self.notes])

    def largest(self) -> list[int]:
        """What to print, by index: all in their order; of more than 50 the largest counts, or the first statistics."""
        if len(self.labels) <= _MOST_SHOWN:
            return list(range(len(self.labels)))
        order = np.argsort(-self.values, kind="stable") if self.histogram else np.arange(_MOST_SHOWN)
        return list(map(int, order[:_MOST_SHOWN]))


def _single(sums: Moments, shift: float = 0.0, whole: float = 1.0) -> Statistic:
    """The only sum as a statistic: divided by `whole`, and then moved by `shift`."""
    value, center = (shift + float(x[0]) / whole for x in (sums.mean, sums.linear))
    least, most = (-math.inf, math.inf) if sums.limits is None else shift + sums.limits[:, 0] / whole
    error, limits = float(sums.variance[0]) ** 0.5 / whole, (float(least), float(most))
    return Statistic(value, error, center=center, limits=limits)


def _weights_of(
    argument: str, given: Weights, labels: Sequence[Label], more: Sequence[Label] = (), complete: bool = False
) -> Array:
    """A weight for each label: as given, or one for each label of a list or a set, or those of a mapping.

    They may name `more` labels, whose weights come last. With `complete` every label needs a number, and a list has
    numbers only.

    >>> _weights_of("weights", ["b"], ("a", "b")), _weights_of("weights", [2, 3], ("a", "b"))
    (array([0., 1.]), array([2., 3.]))
    """
    known, each = (*labels, *more), f"{len(labels)} numbers, one for each of {first_labels(labels)}"
    if isinstance(given, str) or not np.iterable(given):
        labelled = "" if complete else "a list of labels, also for a single one, or "
        raise InvalidInput(argument, given, f"give {labelled}{each}")
    entries = list(given.values() if isinstance(given, Mapping) else given)
    numbers = all(isinstance(entry, Real | np.bool_) for entry in entries) and not isinstance(given, Set)
    if isinstance(given, Mapping):
        weights: Mapping[Any, Any] = given
    elif numbers and len(entries) == len(labels):
        weights = dict(zip(labels, entries, strict=True))
    elif complete or (numbers and not set(entries) <= set(known)):
        raise InvalidInput(argument, given, f"give {each}")
    else:
        weights = dict.fromkeys(map(as_label, entries), 1.0)
    if unknown := set(weights) - set(known):
        some, first = [*more[:3], *labels[:3]], next(x for x in weights if x in unknown)
        advice = f"no label is {first!r}: give labels such as {str(some)[1:-1]}, or a number for each of {len(labels)}"
        raise InvalidInput(argument, given, advice)
    try:
        row = np.array([weights.get(label, np.nan if complete else 0.0) for label in known], dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(argument, given, "give finite numbers") from error
    if not np.isfinite(row).all():
        raise InvalidInput(
            argument, given, f"give finite numbers{', one for each value' if complete else ''}"
        )
    return row


def _last_values(prior: Array, low: Array) -> Ints:
    """The last value of every cell but the last: of each number, or if there are many of a few thousand cells.

    No cell of several numbers has more than a thousandth of the values, or of the people that the prior expects.
    """
    ends = np.arange(len(prior)) / len(prior) + np.cumsum(prior)
    cells = np.linspace(ends[0], ends[-1], _MOST_PAIRED) if len(prior) > _MOST_PAIRED else ends
    return np.unique(np.searchsorted(low, low[np.searchsorted(ends, cells)], side="right") - 1)[:-1]


def _p_text(p: float) -> str:
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.3g}"


@dataclass(frozen=True)
class Precision:
    """The largest half width among the statistics, expected from these people under the prior; prints as a sentence.

    `population` is for the population that the people are drawn from, read without the prior. It is None if these
    people are too few, or if reports do not determine the statistics at all (`determined` is False). `these_people` is
    for the people who reported, read with the prior, and holds if the prior is right: the population's shares are then
    the prior's, and need no estimate. It is None for a plan that does not lean on the prior. Half widths of shares are
    shares; other statistics have the unit of the query.
    """

    people: int
    confidence: float
    population: float | None
    these_people: float | None
    statistic: str
    determined: bool

    def document(self) -> dict[str, Any]:
        """The numbers and the sentence as JSON."""
        return {**asdict(self), "text": str(self)}

    def __str__(self) -> str:
        people = f"{self.people:,} people"
        sentence = "reports alone do not determine the population, however many there are"
        if self.determined:
            sentence = f"reports of {people} are too few to estimate the population without the prior"
        if self.population is not None:
            sentence = f"with {people} {self._sentence('', self.population)}"
        if self.these_people is None:
            return sentence
        leaning = self._sentence(f" among {people}", self.these_people)
        return f"{sentence}; leaning on the prior, {leaning}, if the prior is right"

    def _sentence(self, among: str, half_width: float) -> str:
        each, better = ("the", "") if self.statistic == AVERAGE else ("every", " or better")
        units = {"share": f"{round_up(100 * half_width)} points", AVERAGE: round_up(half_width)}
        width = units.get(self.statistic, f"{round_up(half_width)} per person")
        return f"{each} {self.statistic}{among} is known to ±{width}{better} ({100 * self.confidence:g} %)"


def round_up(number: float) -> str:
    """A positive number with two significant digits, rounded up: a half width is never stated too small.

    >>> [round_up(x) for x in (1.8501, 0.012, 143.2, 0.0)]
    ['1.9', '0.012', '150', '0']
    """
    if number <= 0:
        return "0"
    scale = 10.0 ** (np.floor(np.log10(number)) - 1)
    return f"{np.ceil(number / scale * (1 - 1e-12)) * scale:,.12g}"


def percent(share: float) -> str:
    """A share in percent, rounded down: nothing below one becomes 100 %.

    >>> percent(1 - 1e-12), percent(1.0), percent(0.5)
    ('99.99 %', '100 %', '50.00 %')
    """
    return "100 %" if share >= 1 else f"{min(np.floor(share * 1e4 + 1e-6), 9999) / 100:.2f} %"


def combine_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """The estimate over several groups of people: values and variances add up, label by label.

    All need the same statistics; the answer has them in the order of the first. Its method is "mixed" where theirs
    differ.

    >>> one = Estimate(np.array([1.0]), np.array([3.0]), "mmse", "", 1, ("a",))
    >>> combine_estimates([one, replace(one, std_error=np.array([4.0]))]).std_error.tolist()
    [5.0]
    """
    if not estimates:
        raise InvalidInput("estimates", estimates, "give at least one")
    first = estimates[0]
    if len(estimates) == 1:
        return first
    if any(estimate.histogram != first.histogram for estimate in estimates):
        raise InvalidInput("estimates", NOT_SHOWN, "some are histograms and some are not; use one query")
    named = [(f"estimates[{index}]", e) for index, e in enumerate(estimates)]
    parts = [(name, LabelledRows(r.labels, r.prior.labels, r.rows)) for name, e in named for r in e.readings]
    parts += [(name, LabelledRows(e.labels)) for name, e in named if not e.readings]
    require_same_statistics("estimates", parts)
    sums = _add_moments([e._in_order(first.labels) for e in estimates])
    checks = [e.prior_check for e in estimates if e.prior_check is not None]
    changes = [e.noticeable_change for e in estimates if e.prior_check is not None]
    differences = [e.unbiased_difference for e in estimates if e.method not in _FREE]
    unweighted = all(e.total is None for e in estimates)
    return replace(
        _with_moments(first, sums),
        method=first.method if len({e.method for e in estimates}) == 1 else "mixed",
        assumes="; ".join(dict.fromkeys(e.assumes for e in estimates)),
        reports=sum(e.reports for e in estimates),
        prior_check=min(1.0, len(checks) * min(checks)) if checks else None,  # Bonferroni
        noticeable_change=_largest_known(changes),
        unseen_changes=next((e.unseen_changes for e in estimates if e.unseen_changes is not None), None),
        unbiased_difference=_largest_known(differences),
        converged=all(e.converged for e in estimates),
        total=None if unweighted else sum(e.reports if e.total is None else e.total for e in estimates),
        readings=sum((e.readings for e in estimates), ()) if all(e.readings for e in estimates) else (),
        remarks=tuple(dict.fromkeys(chain.from_iterable(e.remarks for e in estimates))),
    )


def _with_moments(estimate: Estimate, sums: Moments) -> Estimate:
    """The estimate with other values, errors and intervals."""
    mean, error, ends = sums.mean, np.sqrt(sums.variance), sums.limits
    return replace(estimate, values=mean, std_error=error, center=sums.center, limits=ends, mle_gain=None)


def _add_moments(parts: Sequence[Moments]) -> Moments:
    """The sums of independent answers."""
    mean, variance, linear = (
        np.sum([getattr(part, name) for part in parts], axis=0) for name in ("mean", "variance", "linear")
    )
    limits = [part.limits for part in parts if part.limits is not None]
    center = linear if any(part.center is not None for part in parts) else None
    ends = np.sum(limits, axis=0) if len(limits) == len(parts) else None
    return Moments(mean, np.maximum(variance, 0.0), center, ends)


def _largest_known(numbers: list[float | None]) -> float | None:
    """The largest of the numbers; None where one is unknown, or there are none."""
    known = [number for number in numbers if number is not None]
    return max(known) if known and len(known) == len(numbers) else None
