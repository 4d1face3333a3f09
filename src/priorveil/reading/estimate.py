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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal, get_args, overload

import numpy as np

from priorveil import showing
from priorveil.arrays import Array
from priorveil.frames import beside_labels
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.label_texts import label_columns
from priorveil.queries import NumberByGroup
from priorveil.reading import contrasts, group_means, projection, quantiles, table_margins
from priorveil.reading.averages import Averages
from priorveil.reading.estimate_data import EstimateData, answer_columns
from priorveil.reading.estimate_notes import estimate_notes, leaning_note, prior_warning
from priorveil.reading.label_weights import LabelWeights
from priorveil.reading.moments import naming_statistics
from priorveil.reading.prior_check import PriorCheck, set_check
from priorveil.reading.statistics import Statistic
from priorveil.reading.tally_reading import ASSUMES, Reading
from priorveil.showing import Figure

EstimateMethod = Literal["auto", "mmse", "unbiased", "mle"]
ESTIMATE_METHODS: tuple[EstimateMethod, ...] = get_args(EstimateMethod)

_MOST_PAIRED = 2_000  # statistics whose covariance is written out, and cells of a quantile


@dataclass(frozen=True, eq=False)
class Estimate(EstimateData):
    """An answer, and what else can be read from its tallies; see `EstimateData` for its fields."""

    def __getitem__(self, label: Label) -> Statistic:
        """The number of one label; that of a group if the query asks for averages."""
        if self.averages is not None and label in self.averages.labels:
            return self.averages[label]
        return contrasts.single_value(self, label)

    __iter__ = None  # labels are no positions

    @cached_property
    def covariance(self) -> Array:
        """The covariance of `values`; `TooLarge` beyond 2,000 of them, where `contrast` still works.

        The most that rounding to a grid adds to sums of numbers is on the diagonal only, because its correlations
        depend on where people are between the points. `contrast` adds the most that it can be in a weighted sum.
        """
        return contrasts.covariance(self)

    def contrast(self, weights: LabelWeights) -> Statistic:
        """A weighted sum of `values`, such as a difference of two: `weights` has a number for each label.

        A list of labels, or a mapping from labels to weights, does as well; what it leaves out has the weight zero.
        A list of as many numbers as there are labels has weights, even if the numbers are labels too. The `values` of a
        plan for averages are refused: their sums mean nothing.
        """
        return contrasts.contrast(self, weights)

    def margin(self, *attributes: str | list[str] | tuple[str, ...]) -> Estimate:
        """The counts of the levels of an attribute, or of the combinations of several, summed over the others.

        Several are given as `margin("age", "smokes")`, or in a list.
        """
        groups = (names if isinstance(names, list | tuple) else [names] for names in attributes)
        return table_margins.margin(self, tuple(chain.from_iterable(groups)))

    def ratio(self, top: LabelWeights, bottom: LabelWeights) -> Statistic:
        """The people in `top` as a share of those in `bottom`: each a list of labels, or a weight for each value.

        Labels are those of the values, or of the statistics of the query unless it asks for averages. A list of numbers
        that can be both labels and weights is refused; a mapping `{label: weight}` or a numpy array of weights is
        clear. The interval is Fieller's. It has no ends where the reports do not tell the denominator from zero; then
        `people_to_bound` says about how many people would. If numbers were rounded to a grid, the ratio is about its
        points, and the warning says so.
        """
        return contrasts.ratio(self, top, bottom)

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
        themselves. The mean of other `numbers`, such as squares, is that of the points after rounding. Values, or the
        levels of an attribute, may be cells, and `numbers` may lie in them, such as their midpoints. The interval then
        reaches from the mean of the lower edges to that of the upper edges, with noise added on both sides, since
        people may be anywhere in their cells.

        `by` is an attribute, or a list of them: the answer then has the average of each combination of their levels.
        An average is the ratio of a sum and a count, with Fieller's interval.
        """
        if by is None:
            return group_means.mean(self, numbers)
        return group_means.averages_by(self, numbers, (by,) if isinstance(by, str) else tuple(by))

    @cached_property
    def averages(self) -> Averages | None:
        """The averages that the query asks for (`Linear.averages`); None for other queries."""
        return None if self.number_by_group is None else self.mean(*self.number_by_group)

    def variance(self, numbers: str | Sequence[float] | None = None) -> Statistic:
        """The variance between people of a number for each value; its standard error by the delta method.

        `numbers` are those of `mean`. Rounding to a grid adds to the variance, at most a quarter of the squared step,
        and a number for each cell may hide or add some. The `bias` of the answer is the most that this can be. Its
        value is the variance of the rounded numbers, and its interval that of the numbers themselves.
        """
        return group_means.variance(self, numbers)

    def quantile(self, q: float, numbers: Sequence[float] | None = None) -> Statistic:
        """The number that the share `q` of people does not exceed; `quantile(0.5)` is the median.

        Its interval needs no model: it has the numbers, or the whole cells, whose cumulative share may be `q`. Values
        with the same number are one; beyond 2,000 values a few neighbours that the prior takes for rare are one cell.
        """
        curve = self._label_curve if numbers is None else quantiles.cumulative_curve(self, numbers)
        return quantiles.quantile(self, q, curve)

    @cached_property
    def _label_curve(self) -> tuple[Array, ...]:
        return quantiles.cumulative_curve(self, None)

    def project(self) -> Estimate:
        """The nearest histogram of everybody who reported, without negative counts (Euclidean projection).

        It is biased, so it is a separate step. Where values are many or their errors differ, method mle is better.
        Intervals follow the rule of mle: around the answer before the projection, or around zero if that is negative,
        and cut off at zero and at all people. They reach to the new value, so they hold at least as often as before,
        zeros included.

        >>> e = Estimate(np.array([-1.0, 4.0]), np.ones(2), "unbiased", (), 3, ("a", "b"))
        >>> e.project().values.tolist()
        [0.0, 3.0]
        """
        return projection.project(self)

    @property
    def warning(self) -> Note | None:
        """What to do if the answer leans on a prior that the reports contradict; None if it does not."""
        return prior_warning(self)

    @property
    def leaning(self) -> Note | None:
        """That the answer leans on a known or on an assumed prior; None if it does not."""
        return leaning_note(self)

    @property
    def notes(self) -> tuple[Note, ...]:
        """The method, what it assumes, the prior check with its limits, and what else is needed to read the numbers."""
        return estimate_notes(self, self.averages)

    @property
    def name(self) -> str:
        """What the numbers are, in a few words: the average by group, the attributes, or the statistic."""
        if self.averages is not None:
            return self.averages.name
        return " x ".join(self.attributes) or self.statistic

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`: attributes have a column each; other labels are in the column `value`.

        Numbers of people have their shares too.
        """
        whole = answer_columns(self, self.averages, confidence)
        estimate, std_error, low, high = whole.columns
        numbers = {"estimate": estimate, "std_error": std_error, "low": low, "high": high}
        if whole.expected is not None:
            numbers["expected"] = whole.expected
        if self.counts_people and self.people > 0:
            numbers["share"] = self.proportions
        by_level = self.histogram and bool(self.attributes)
        labels = label_columns(whole.labels, self.attributes if by_level else None)
        return beside_labels(labels, numbers)

    def plot(self, confidence: float = 0.95) -> Figure:
        """The answer with its intervals against what the prior expects, as a matplotlib figure.

        A table of two attributes is a map, cumulative shares are a curve with a band, all else has a row for each
        statistic.
        """
        return showing.figure(self, confidence)

    def __repr__(self) -> str:
        return showing.line(self)


def read_estimate(
    reading: Reading,
    check: PriorCheck | None,
    unseen_changes: Note | None,
    remarks: tuple[Note, ...],
    number_by_group: NumberByGroup | None = None,
) -> Estimate:
    """The estimate of the query's statistics, with the check of the prior and the remarks of the plan."""
    weighted = reading.tally.weighted
    with naming_statistics(reading.labels, of_values=reading.rows is None):
        moments = reading.answer()
    difference = reading.unbiased_difference(moments)
    if reading.known is not None and difference is not None:
        check = set_check(difference, len(moments.mean))
    moments = moments.plus(weighted.offset if weighted else 0.0)
    return Estimate(
        values=moments.mean,
        std_error=np.sqrt(np.maximum(moments.variance, 0.0)),
        method=reading.method,
        assumes=(moments.assumes or ASSUMES["set" if reading.known else reading.method],),
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
