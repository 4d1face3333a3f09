"""Estimates from samples of a population: weights, strata, clusters, and what is known of the population.

Each report has a score `s` that is unbiased for the statistic of its person. Without a correction for a finite
population, what survey statisticians do with answers is right for scores: Horvitz-Thompson totals and Hajek means, with
variances by Taylor linearisation or by the jackknife. Variances are between clusters within strata, so they hold
however people were chosen within clusters (ultimate clusters).

The finite-population correction `1 - f` also shrinks the noise of reports, which a census does not remove: with
`v = s**2 - (score of the squared statistic)`, which is unbiased for the variance of `s` given the value, `f sum w**2 v`
is added for each stratum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from priorveil import showing
from priorveil.arrays import Array, Ints
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, NotIdentifiable
from priorveil.frames import beside_labels
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.label_texts import first_labels, label_columns
from priorveil.queries import Distribution
from priorveil.queries.matrices import StatisticName
from priorveil.reading.interval_estimate import IntervalEstimate
from priorveil.reading.moments import normal_width
from priorveil.reading.statistics import Statistic
from priorveil.reading.tally import numbers_per_report
from priorveil.statistics.calibration import Calibration, Margins, codes_of, sum_by

SampleMethod = Literal["hajek", "horvitz-thompson"]
VarianceMethod = Literal["taylor", "jackknife"]
# How many sampling units (clusters, or people without clusters) there are: in all, or by stratum.
Population = float | Mapping[Any, float]


def beside_columns(ldp: float, lip: float) -> Note:
    """Which level of privacy holds for somebody who sees public columns beside reports with these levels."""
    return Note("besideColumns" if ldp < math.inf else "besideColumnsWithoutLdp", {"ldp": ldp, "lip": lip})


# -- how people were drawn -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SampleDesign:
    """How a sample was drawn.

    - `weights`: the design weight of each person.
    - `clusters`: the cluster of each person, by number; without clusters each person is one.
    - `strata`: the stratum of each cluster, by number.
    - `fractions`: the share of its clusters that were drawn in each stratum; zeros for an infinite population.
    """

    weights: Array
    clusters: Ints
    strata: Ints
    fractions: Array

    @classmethod
    def of(
        cls,
        people: int,
        weights: npt.ArrayLike | None = None,
        strata: Any = None,
        clusters: Any = None,
        population: Population | None = None,
    ) -> SampleDesign:
        """The design from columns with an entry for each person; by default everybody has the weight one.

        Clusters are numbered within strata: the same name in two strata means two clusters. Without weights, those of
        a `population` are its clusters divided by the clusters drawn, in each stratum.

        >>> SampleDesign.of(3, strata=["a", "a", "b"], population={"a": 4, "b": 1}).weights.tolist()
        [2.0, 2.0, 1.0]
        """
        if people == 0:
            raise InvalidInput("reports", NOT_SHOWN, "there are none to estimate from")
        names, stratum = codes_of("strata", [0] * people if strata is None else strata, people)
        units = np.arange(people) if clusters is None else codes_of("clusters", clusters, people)[1]
        keys, cluster = np.unique(stratum * people + units, return_inverse=True)
        of_cluster = keys // people
        drawn = np.bincount(of_cluster, minlength=len(names))
        fractions = _fractions(drawn, names, population, strata is None)
        _require_several(drawn, fractions, names, strata is None)
        own = _weights(weights, people)
        if own is None:
            own = np.where(fractions > 0, 1 / np.where(fractions > 0, fractions, 1), 1.0)[stratum]
        return cls(own, cluster.ravel(), of_cluster, fractions)

    @property
    def factors(self) -> Array:
        """For each cluster, what squares of deviations within its stratum are multiplied by."""
        drawn = np.bincount(self.strata)
        return np.asarray(((1 - self.fractions) * drawn / np.maximum(drawn - 1, 1))[self.strata])

    def less_means(self, totals: Array) -> Array:
        """Numbers of clusters (C, m) less the means of their strata."""
        drawn = np.bincount(self.strata)
        return np.asarray(totals - (sum_by(self.strata, totals, len(drawn)) / drawn[:, None])[self.strata])


def _weights(weights: npt.ArrayLike | None, people: int) -> Array | None:
    if weights is None:
        return None
    numbers = numbers_per_report("weights", weights, np.ones(people, dtype=bool))
    if (numbers < 0).any() or not numbers.any():
        wrong = "one is negative" if (numbers < 0).any() else "all are zero"
        raise InvalidInput("weights", NOT_SHOWN, f"{wrong}: give how many people each one stands for")
    return numbers


def _fractions(drawn: Ints, names: list[Any], population: Population | None, single: bool) -> Array:
    """The sampling fraction of each stratum."""
    if population is None:
        return np.zeros(len(drawn))
    if single == isinstance(population, Mapping):
        advice = (
            "one number without strata" if single else "{stratum: how many clusters or people it has, ...}"
        )
        raise InvalidInput("population", NOT_SHOWN, f"give {advice}")
    sizes = population if isinstance(population, Mapping) else {0: population}
    if absent := [name for name in names if name not in sizes]:
        raise InvalidInput("population", NOT_SHOWN, f"it has no size for the stratum {absent[0]!r}")
    numbers = [sizes[name] for name in names]
    for name, size, count in zip(names, numbers, drawn.tolist(), strict=True):
        if (
            type(size) is bool
            or not isinstance(size, int | float | np.number)
            or not count <= size < math.inf
        ):
            where = "" if single else f" in the stratum {name!r}"
            advice = f"give a number of at least {count:,}, which the sample has{where}"
            raise InvalidInput("population", size, f"{advice}; where clusters were drawn, count clusters")
    return np.asarray(drawn / np.array(numbers, dtype=np.float64))


def _require_several(drawn: Ints, fractions: Array, names: list[Any], single: bool) -> None:
    """Refuse a stratum with one cluster, unless it has no other in the population."""
    lonely = [name for name, n, f in zip(names, drawn, fractions, strict=True) if n < 2 and f < 1]
    if not lonely:
        return
    if single:
        advice = "the sample has a single cluster or person; two are needed to see how much they differ"
        raise InvalidInput("clusters", NOT_SHOWN, advice)
    advice = f"the stratum {lonely[0]!r} has a single cluster or person: merge it with a similar stratum"
    raise InvalidInput("strata", NOT_SHOWN, advice)


# -- the noise of scores -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScoreNoise:
    """The variance of scores given people's values, without bias.

    `scores` (n, m) are those of the statistics in `rows`, None for the identity; `scores_of` gives those of any other
    rows. `rounding` is the most that rounding to a grid adds to the variance of each statistic.
    """

    scores: Array
    rows: Array | None
    scores_of: Callable[[Array], Array]
    rounding: Array

    def each(self) -> Array:
        """The variance of each score (n, m): right on average, and negative for some reports."""
        if self.rows is None:
            return np.asarray(self.scores**2 - self.scores + self.rounding)
        return np.asarray(self.scores**2 - self._scores_of(self.rows**2) + self.rounding)

    def sum(self, weights: Array) -> Array:
        """The sum of the covariances of the rows of scores, with a weight for each row."""
        products = self.scores.T @ (weights[:, None] * self.scores) + np.diag(self.rounding * weights.sum())
        if self.rows is None:
            return np.asarray(products - np.diag(weights @ self.scores))
        for place, row in enumerate(self.rows):
            means = weights @ self._scores_of(row * self.rows[place:])
            products[place, place:] -= means
            products[place + 1 :, place] -= means[1:]
        return np.asarray(products)

    def _scores_of(self, rows: Array) -> Array:
        try:
            return self.scores_of(rows)
        except NotIdentifiable:
            purpose = "to correct for a finite population, design another plan"
            hint = Hint("query", Distribution(), purpose=purpose)
            raise NotIdentifiable("reports of this plan do not determine their own noise", hint) from None


# -- estimates ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SampleEstimate(IntervalEstimate):
    """Statistics of a population from a sample of its people.

    - `values`: shares and means per person by method `hajek`, totals by method `horvitz-thompson`; their `labels`.
    - `method`, `variance_method`: how the values, and their variances, were found.
    - `reports`, `people`: how many reports there are, and the sum of their weights.
    - `clusters`, `strata`: how many there are; without clusters each person is one.
    - `corrected`: whether variances are those for a finite population; `calibrated` whether weights were calibrated.
    - `statistic`: what a statistic is, per person; `attributes` are those that labels are values of.
    - `beside`: which level of privacy holds beside the columns that reports were read with; None without columns.

    The jackknife is centred at the mean of its replicates, as in R's survey package.
    """

    values: Array
    std_error: Array
    labels: tuple[Label, ...]
    method: SampleMethod
    variance_method: VarianceMethod
    reports: int
    people: float
    clusters: int
    strata: int
    corrected: bool = False
    calibrated: bool = False
    statistic: StatisticName = "share"
    attributes: tuple[str, ...] = ()
    beside: Note | None = None
    noise_covariance: Callable[[], Array] = field(default=lambda: np.zeros(()), repr=False)
    between: Array = field(default_factory=lambda: np.zeros(()), repr=False)  # covariance between clusters

    @cached_property
    def covariance(self) -> Array:
        """The covariance of `values`."""
        return self.between + self.noise_covariance()

    @property
    def degrees_of_freedom(self) -> int:
        """The number of clusters less the number of strata."""
        return self.clusters - self.strata

    @property
    def name(self) -> str:
        """What the numbers are: the attributes, or the statistic."""
        return " x ".join(self.attributes) or self.statistic

    def interval(self, confidence: float = 0.95, student: bool = False) -> tuple[Array, Array]:
        """The ends of normal intervals; with `student`, of t-intervals, which are longer if clusters are few."""
        width = normal_width(confidence)
        if student and self.degrees_of_freedom > 0:
            from scipy.special import stdtrit  # not at the top: devices read plans without scipy

            width = float(stdtrit(self.degrees_of_freedom, 0.5 + confidence / 2))
        return self.values - width * self.std_error, self.values + width * self.std_error

    def __getitem__(self, label: Label) -> Statistic:
        if label not in self.labels:
            raise InvalidInput("label", label, f"choose one of {first_labels(self.labels)}")
        at = self.labels.index(label)
        title = Note("label", {"label": label})
        numbers = float(self.values[at]), float(self.std_error[at])
        return Statistic(*numbers, method=self.method, title=title, people=self.reports)

    __iter__ = None  # labels are no positions

    def __repr__(self) -> str:
        return showing.line(self)

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`: attributes have a column each; other labels are in the column `value`."""
        low, high = self.interval(confidence)
        numbers = {"estimate": self.values, "std_error": self.std_error, "low": low, "high": high}
        return beside_labels(label_columns(self.labels, self.attributes or None), numbers)

    @property
    def notes(self) -> tuple[Note, ...]:
        """How the values and their variances were found."""
        units = {"clusters": self.clusters, "strata": self.strata, "freedom": self.degrees_of_freedom}
        is_mean, is_taylor = self.method == "hajek", self.variance_method == "taylor"
        notes = [
            Note("sampleHajek" if is_mean else "sampleHorvitzThompson"),
            Note("sampleTaylor" if is_taylor else "sampleJackknife", units),
        ]
        notes += [Note("sampleCalibrated")] if self.calibrated else []
        return (*notes, Note("sampleCorrected")) if self.corrected else tuple(notes)


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """The scores of the people of a sample (n, m), and how they were drawn."""

    scores: Array
    design: SampleDesign
    calibration: Calibration

    @classmethod
    def of(
        cls,
        scores: Array,
        weights: npt.ArrayLike | None = None,
        strata: Any = None,
        clusters: Any = None,
        population: Population | None = None,
        margins: Margins | None = None,
    ) -> WeightedSample:
        """The sample from columns with an entry for each person."""
        people = len(scores)
        design = SampleDesign.of(people, weights, strata, clusters, population)
        return cls(scores, design, Calibration.of(margins, people))

    @cached_property
    def weights(self) -> Array:
        """The weights after calibration."""
        return self.calibration.weights(self.design.weights)

    def values(self, method: SampleMethod) -> Array:
        """Hajek means or Horvitz-Thompson totals."""
        return np.asarray(self.weights @ self.scores / self.divisor(method))

    def divisor(self, method: SampleMethod) -> float:
        """What weighted sums are divided by."""
        return float(self.weights.sum()) if method == "hajek" else 1.0

    def linearised(self, method: SampleMethod) -> Array:
        """The covariance between clusters by Taylor linearisation (Binder 1983; Deville and Sarndal 1992)."""
        centre = self.values(method) if method == "hajek" else 0.0
        residuals = self.calibration.residuals(self.scores - centre, self.design.weights)
        parts = self.weights[:, None] * residuals / self.divisor(method)
        totals = sum_by(self.design.clusters, parts, len(self.design.strata))
        deviations = self.design.less_means(totals)
        return np.asarray(deviations.T @ (self.design.factors[:, None] * deviations))

    def jackknife(self, method: SampleMethod) -> Array:
        """The covariance of replicates, each without one cluster, around their mean.

        A replicate has the weights `n / (n - 1)` times as large in the stratum of its cluster, and calibrated again.
        """
        design, cells = self.design, len(self.calibration.levels)
        clusters, drawn = len(design.strata), np.bincount(design.strata)
        weighted = design.weights[:, None] * np.column_stack([np.ones(len(self.scores)), self.scores])
        numbers = weighted.shape[1]
        place = design.clusters * cells + self.calibration.cells
        totals = sum_by(place, weighted, clusters * cells).reshape(clusters, cells * numbers)
        others = np.maximum(drawn - 1, 1)[design.strata][:, None]
        scaled = design.less_means(totals) * drawn[design.strata][:, None] / others
        replicates = (totals.sum(axis=0) - scaled).reshape(clusters, cells, numbers)
        factors = np.stack([self.calibration.factors(each) for each in replicates[:, :, 0]])
        sums = np.einsum("ck,ckm->cm", factors, replicates)
        values = sums[:, 1:] / sums[:, :1] if method == "hajek" else sums[:, 1:]
        scales = (1 - design.fractions[design.strata]) * (1 - 1 / drawn[design.strata])
        varied = scales > 0
        if not varied.any():
            return np.zeros((numbers - 1, numbers - 1))
        deviations = values - values[varied].mean(axis=0)
        return np.asarray(deviations.T @ (scales[:, None] * deviations))


_COVARIANCES: Mapping[VarianceMethod, Callable[[WeightedSample, SampleMethod], Array]] = {
    "taylor": WeightedSample.linearised,
    "jackknife": WeightedSample.jackknife,
}


def sample_estimate(
    sample: WeightedSample,
    noise: ScoreNoise,
    labels: tuple[Label, ...],
    method: SampleMethod = "hajek",
    variance: VarianceMethod = "taylor",
    **about: Any,
) -> SampleEstimate:
    """The estimate from a sample; `about` are further fields of it.

    >>> scores = np.array([[1.0], [0.0], [0.0], [1.0]])
    >>> noise = ScoreNoise(scores, None, lambda rows: scores, np.zeros(1))
    >>> sample = WeightedSample(scores, SampleDesign.of(4, weights=[1, 1, 1, 3]), Calibration.of(None, 4))
    >>> found = sample_estimate(sample, noise, ("yes",))
    >>> found.values.round(4).tolist(), found.std_error.round(4).tolist()
    ([0.6667], [0.2722])
    """
    for name, given, choices in (("method", method, SampleMethod), ("variance", variance, VarianceMethod)):
        if given not in get_args(choices):
            raise InvalidInput(name, given, f"choose one of {', '.join(get_args(choices))}")
    design, between = sample.design, _COVARIANCES[variance](sample, method)
    corrected = bool(design.fractions.any())
    own = design.fractions[design.strata][design.clusters] * (sample.weights / sample.divisor(method)) ** 2
    variances = np.diag(between) + (own @ noise.each() if corrected else 0.0)
    return SampleEstimate(
        values=sample.values(method),
        std_error=np.sqrt(np.maximum(variances, 0.0)),
        labels=labels,
        method=method,
        variance_method=variance,
        reports=len(sample.scores),
        people=float(sample.weights.sum()),
        clusters=len(design.strata),
        strata=len(design.fractions),
        corrected=corrected,
        calibrated=bool(sample.calibration.sizes),
        noise_covariance=partial(noise.sum, own) if corrected else partial(np.zeros_like, between),
        between=between,
        **about,
    )
