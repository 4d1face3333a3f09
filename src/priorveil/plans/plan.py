"""Plans: a certified mechanism with everything needed to run it and to read its reports.

A plan is public and frozen. Its file is JSON, its id is the SHA-256 of its content, and loading it proves its
certificate again (`plans.document`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil import showing
from priorveil.arrays import Array, real_number
from priorveil.atomic_files import atomic_write
from priorveil.certify import Certificate, certificate, keeps_budget, round_rows
from priorveil.channels import Channel
from priorveil.errors import (
    NOT_SHOWN,
    CertificateError,
    Hint,
    InvalidInput,
    NotIdentifiable,
    PlanError,
    PriorveilError,
    TooLarge,
)
from priorveil.frames import Library, to_frame
from priorveil.information import gain_share
from priorveil.mechanisms import Mechanism, Table
from priorveil.mechanisms.randomness import Source, as_source
from priorveil.notes import Note
from priorveil.notions import LIP, Cone, Leakage, PriorOrSet, Secrets, as_cone, as_prior_or_set
from priorveil.plans.document import (
    Json,
    content_id,
    parse,
    plan_document,
    prove,
    read_fields,
    require_document,
    require_readable,
)
from priorveil.plans.plan_data import PlanData
from priorveil.plans.structure import PlanDocument
from priorveil.priors import Budget, Label, Prior, PriorSet
from priorveil.priors.domain import LabelDomain, Missing, require_integers
from priorveil.queries import Query, require_query
from priorveil.reading.blas_threads import single_thread
from priorveil.reading.estimate import ESTIMATE_METHODS, Estimate, EstimateMethod, read_estimate
from priorveil.reading.families import reader_of
from priorveil.reading.moments import Moments, normal_width
from priorveil.reading.precision import Precision
from priorveil.reading.rounding import expected_rounding, largest_variance
from priorveil.reading.tally import (
    Tally,
    WeightedCounts,
    complete_reports,
    numbers_per_report,
    select_reports,
)
from priorveil.reading.tally_reading import QUICK, Reading
from priorveil.showing import Figure
from priorveil.statistics.calibration import Margins
from priorveil.statistics.expected_information import coefficient_errors
from priorveil.statistics.plan_scores import report_scores, require_unbiased
from priorveil.statistics.planning import (
    OneOrTwo,
    PowerAnalysis,
    ScoreMoments,
    StatisticTest,
    people_for_coefficients,
    people_within,
    power_for_coefficients,
    require_people,
)
from priorveil.statistics.published_totals import totals_level
from priorveil.statistics.samples import (
    Population,
    SampleEstimate,
    SampleMethod,
    ScoreNoise,
    VarianceMethod,
    WeightedSample,
    beside_columns,
    sample_estimate,
)

# Laws of reports that differ in later digits only were equal before they were rounded to integers.
_LAW_DIGITS = 9
_SOURCE = "`priorveil design -o`"
RARE_CHANGES = Note("unseenRareChanges")


@dataclass(frozen=True, eq=False)
class Plan(PlanData):
    """What people run, and how the curator reads it. `design` makes one, `Plan.load` reads one from a file.

    See `PlanData` for its fields.
    """

    @classmethod
    def of(
        cls,
        channel: Channel | Mechanism | npt.ArrayLike,
        prior: Prior | Sequence[float],
        query: Query,
        epsilon: float | Budget | None = None,
        secret: Secrets = None,
        notion: Cone | None = None,
    ) -> Plan:
        """The plan of a channel, or of a mechanism, that is known already, under one prior.

        `channel` has a row for each value; its entries are rounded to multiples of `2**-62`. The plan is certified for
        LIP, or for the `notion`, at the level that it really has; with `epsilon` it is refused if that is more.

        >>> import priorveil as pv
        >>> plan = pv.Plan.of([[0.75, 0.25], [0.25, 0.75]], pv.Prior({"yes": 0.5, "no": 0.5}), pv.Distribution())
        >>> round(plan.certificate.lip, 6), plan.privatize(["yes"] * 3, np.random.default_rng(2)).tolist()
        (0.693147, [0, 0, 1])
        """
        if isinstance(prior, PriorSet):
            raise InvalidInput("prior", prior, "give one prior; `design` makes plans for sets of priors")
        one_prior, notion = Prior.of(prior), as_cone(notion)
        require_query(query)
        if not isinstance(channel, Mechanism):
            matrix = Channel.of(channel)
            one_prior = matrix.align(one_prior)
            channel = Table(round_rows(matrix.matrix))
        if channel.size != len(one_prior):
            advice = f"it is for {channel.size} values, and the prior has {len(one_prior)}"
            raise InvalidInput("channel", channel.kind, advice)
        query.require_fits(one_prior)
        proof, budget = _certify(channel, one_prior, epsilon, secret, notion)
        reader = reader_of(channel)
        error, without_report = reader.error(query, one_prior), query.no_report(one_prior)
        if error is None:
            raise TooLarge(f"the expected error of this {channel.kind} would take long to compute")
        if error == math.inf:
            hint = Hint("unbiased", False, purpose="to lean on the prior")
            raise NotIdentifiable("reports of this channel do not determine the statistics", hint)
        error += expected_rounding(reader, query, one_prior)
        bounded = secret is None and notion.implies_lip
        bound = query.closed_form_bound(one_prior, budget) if bounded else 0.0
        return cls(
            prior=one_prior,
            budget=budget,
            query=query,
            mechanism=channel,
            certificate=proof,
            notion=notion,
            secret=secret,
            expected_mse=error,
            lower_bound=min(bound, error),
            no_report=without_report,
            method="given",
            why="not designed",
        )

    @cached_property
    def channel(self) -> Channel:
        """The sampled channel as a matrix; `TooLarge` where it is implicit and huge.

        For arcs it is the channel to the counters of the tally. Estimates need no more, but it averages over the
        reports that share a counter, so levels are measured on `leakage_channel`.
        """
        return Channel(self.mechanism.matrix, self.labels, levels=self._levels_of_reports)

    def _levels_of_reports(
        self, prior: PriorOrSet | Sequence[float] | None, secret: Secrets, notion: Cone
    ) -> dict[str | None, float] | None:
        """The level of each side, proven if it can be; None where the channel itself has to be measured."""
        given, averages = self.prior if prior is None else as_prior_or_set(prior), self.mechanism.averages
        with suppress(PriorveilError):  # this mechanism has no proof for this notion, set of priors or secret
            known = self._align(given) if isinstance(given, Prior) else given
            if not averages or known == self.prior:
                proof = certificate(self.mechanism.lifts(known, secret, notion), notion)
                return {"lower": proof.lip_lower, "upper": proof.lip_upper, None: proof.level}
        return notion.levels(self.leakage_channel, given, secret) if averages else None

    @cached_property
    def leakage_channel(self) -> Channel:
        """A channel to measure levels on, under any prior and any secret: never below those of the reports.

        It is `channel`, except for arcs. There its columns are the reports at which LIP, LDP, DI and Pufferfish attain
        their levels, so that those are exact (in floats); MIL and MIP are upper bounds.
        """
        matrix, reports = self.mechanism.leakage_matrix
        return Channel(matrix, self.labels, reports)

    @cached_property
    def levels(self) -> Leakage:
        """The levels of the reports under every notion, in floats (the `certificate` is exact).

        Those of a channel that is too large to write out follow from the structure of the mechanism.
        """
        return self.mechanism.levels(self.prior, self.secret, self.certificate)

    @property
    def efficiency(self) -> float:
        """The proven share of the achievable gain: `(no report - expected) / (no report - lower bound)`.

        For `Distribution`, where no report means an infinite error, it is `lower bound / expected`.
        """
        return gain_share(self.expected_mse, self.lower_bound, self.no_report)

    @cached_property
    def identifiable(self) -> bool:
        """Whether reports alone determine the distribution. Where not, estimates lean on the prior.

        For arcs in many orders this is checked up to 128 values, and assumed beyond.
        """
        return self.reader.identifies()

    @cached_property
    def precision(self) -> Precision:
        """How precisely 10,000 people determine the answer; `expected_precision` does it for other numbers."""
        return self.expected_precision()

    @cached_property
    def id(self) -> str:
        """The SHA-256 of the plan's content."""
        return content_id(plan_document(self))

    def __eq__(self, other: object) -> bool:
        """Whether the content is the same; a gain is code and not part of the id, so it is compared too."""
        return isinstance(other, Plan) and self.id == other.id and self.query == other.query

    def __hash__(self) -> int:
        return hash(self.id)

    # -- run -----------------------------------------------------------------------------------------------

    def privatize(
        self,
        values: Any,
        rng: np.random.Generator | Source | None = None,
        missing: Missing = "refuse",
        codes: bool = False,
    ) -> Any:
        """The report of one value, or of a column of them.

        `values` are labels (0 to d - 1 where none were given): a list, or a column of numpy, pandas, polars or Arrow.
        For several attributes they may be the columns of a table, by name; for a prior of numbers they are numbers,
        which `Prior.grid` rounds at random before they are perturbed. With `codes` they are positions of labels, the
        integers 0 to d - 1, instead. `rng=None` draws from the operating system; a numpy generator is for simulations
        only. A missing value is an error; with `missing="pass"` it stays missing: None for a single value, a masked
        array for a column.
        """
        source, domain = as_source(rng), LabelDomain(range(len(self.labels))) if codes else self.domain
        single = domain.is_value(values)
        column = [values.tolist() if isinstance(values, np.ndarray) else values] if single else values
        if codes:
            require_integers(column)
        places, absent = domain.encode_or_refuse(column, source.words, missing)
        if single:
            gap = absent is not None and absent[0]
            return None if gap else self.mechanism.sample_one(int(places[0]), source)
        reports = self.mechanism.sample(places, source)
        if absent is None:
            return reports
        mask = np.broadcast_to(absent.reshape(-1, *[1] * (reports.ndim - 1)), reports.shape)
        return np.ma.MaskedArray(np.where(mask, 0, reports).astype(reports.dtype), mask)

    def tally(
        self,
        reports: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        offsets: npt.ArrayLike | None = None,
        foreign: Literal["raise", "count"] = "raise",
    ) -> Tally:
        """Add reports up. `weights` and `offsets`, one per report, are the paper's `c_i` and `b_i`.

        With weights a sum is that of `c_i a(x_i) + b_i`, and a histogram adds up the weights of the people who have
        each value; offsets belong to a sum. A report that this plan cannot have made is an error; with
        `foreign="count"` it is left out and counted.
        """
        valid_reports, selected, refused = select_reports(self.mechanism, reports, foreign)
        counts, weighted = self.reader.count(valid_reports), None
        if offsets is not None and not self.query.takes_offsets:
            raise InvalidInput("offsets", NOT_SHOWN, f"offsets belong to a Sum, not to {self.query!r}")
        if weights is not None or offsets is not None:
            c = numbers_per_report("weights", 1.0 if weights is None else weights, selected)
            b = numbers_per_report("offsets", 0.0 if offsets is None else offsets, selected)
            weighted = WeightedCounts.of(self.reader, valid_reports, c, b)
        return Tally(self.id, counts, len(valid_reports), refused, weighted)

    # -- read ----------------------------------------------------------------------------------------------

    @single_thread()
    def estimate(
        self, tally: Tally, method: EstimateMethod = "auto", prior: Prior | Sequence[float] | None = None
    ) -> Estimate:
        """What the tally says: a histogram in people, or the query's statistics, by `mmse`, `unbiased` or `mle`.

        `auto` reads the plan as it was designed: `unbiased` for an unbiased query, `mmse` for all others. `prior`
        replaces the plan's where the curator knows more (for a plan made for a set of priors, say).
        """
        reading = self._reading(tally, method, None if prior is None else self._align(Prior.of(prior)))
        check = None
        if reading.known is None:  # reports need not fit the prior of a set that they are read at
            check = self.reader.prior_check(tally.counts, reading.prior.probabilities)
        unseen_changes = check and self._unseen_changes(check.directions)
        remarks, by_group = self._remarks(reading, prior is None), self.query.number_by_group
        return read_estimate(reading, check, unseen_changes, remarks, by_group)

    def _align(self, prior: Prior) -> Prior:
        """Another prior, with the plan's labels in their order."""
        if len(prior) != len(self.labels):
            advice = f"{len(prior)} values; give {len(self.labels)}, one for each value of the plan"
            raise InvalidInput("prior", NOT_SHOWN, advice)
        aligned = prior.align_to(self.labels)
        if aligned.domain == self.domain:
            return aligned
        return aligned.with_domain(self.domain)  # it came without names

    def _reading(self, tally: Tally, method: EstimateMethod, prior: Prior | None) -> Reading:
        """How the tally is read, after a check that it belongs to this plan."""
        if method not in ESTIMATE_METHODS:
            raise InvalidInput("method", method, f"choose one of {', '.join(ESTIMATE_METHODS)}")
        if not isinstance(tally, Tally):
            advice = f"type {type(tally).__name__}; add the reports up first: plan.tally(reports)"
            raise InvalidInput("tally", NOT_SHOWN, advice)
        if tally.plan != self.id:
            raise InvalidInput(
                "tally",
                tally.plan,
                f"it counts reports of another plan than {self.id}: estimate with the plan that made them",
            )
        fits = tally.counts.shape == self.reader.counts_shape
        if not fits or int(self.reader.people(tally.counts)) != tally.reports:
            raise InvalidInput("tally", tally, "its counts are not those of this plan's reports")
        chosen = self.query.default_method if method == "auto" else method
        return self._reading_by(chosen, tally, prior)

    def _reading_by(self, method: str, tally: Tally, given: Prior | None = None) -> Reading:
        """How a tally of this plan is read by a method, under the plan's prior or the given one."""
        rows, prior = self.query.rows(self.reference), given or self.reference
        leans_on_own = method == "mmse" and given is None
        return Reading(
            reader=self.reader,
            method=method,
            tally=tally,
            prior=prior,
            population=self.query.unbiased,
            rows=rows,
            labels=self.query.statistic_labels(self.labels),
            knows_total=rows is not None or self.reader.adds_up(method, prior.probabilities),
            determined=self.query.unbiased or self.identifiable,
            is_sum=self.query.is_sum,
            sums_numbers=self.query.sums_numbers,
            known=self.prior if leans_on_own and isinstance(self.prior, PriorSet) else None,
        )

    def likelihood(self, reports: npt.ArrayLike) -> Array:
        """`Pr(report | value)` for each report and each value, up to a factor for each report.

        `TooLarge` for many reports or values; `likelihood_blocks` goes through it in parts.

        >>> import priorveil as pv
        >>> plan = pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Histogram())
        >>> plan.likelihood([0, 1]).round(3).tolist()
        [[0.816, 0.184], [0.184, 0.816]]
        """
        return self.reader.likelihood(complete_reports(self.mechanism, reports))

    def likelihood_blocks(self, reports: npt.ArrayLike) -> Iterator[Array]:
        """The rows of `likelihood`, a block of consecutive reports at a time."""
        return self.reader.likelihood_blocks(complete_reports(self.mechanism, reports))

    @single_thread()
    def scores(self, reports: npt.ArrayLike) -> Array:
        """What each report says about the query's statistics, as shares: unbiased, whatever the prior.

        A row for each report and a column for each statistic. For people with value `x` a row is on average the
        column of `x` in the matrix of the statistics, and the mean of the rows is the answer of method unbiased (for
        arcs in many orders up to a hundredth of its standard error). `TooLarge` for many reports of many values;
        `NotIdentifiable` if reports do not determine the statistics.

        >>> import priorveil as pv
        >>> plan = pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Histogram())
        >>> plan.scores([0, 1]).round(3).tolist()
        [[1.291, -0.291], [-0.291, 1.291]]
        """
        return self._scores_of(complete_reports(self.mechanism, reports), self.query.rows(self.reference))

    def _scores_of(self, reports: npt.NDArray[Any], rows: Array | None) -> Array:
        """The unbiased scores of the query's statistics, or of other rows of numbers of the values."""
        return report_scores(self, reports, rows, self.query.statistic_labels(self.labels))

    @single_thread()
    def score_noise(self, reports: npt.ArrayLike) -> ScoreNoise:
        """The `scores` of reports with what is known of their noise; `score_noise(reports).each()` has the numbers.

        The numbers are unbiased for the variance of a score given the person's value. They are what a finite-population
        correction has to put back.

        >>> import priorveil as pv
        >>> plan = pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Distribution())
        >>> plan.score_noise([0, 1]).each().round(3).tolist()
        [[0.376, 0.376], [0.376, 0.376]]
        """
        require_unbiased(self.query)
        column, rows = complete_reports(self.mechanism, reports), self.query.rows(self.reference)
        scores = self._scores_of(column, rows)
        rounding = np.zeros(scores.shape[1])
        if rows is not None and self.query.sums_numbers:
            rounding = largest_variance(self.domain, rows)
        return ScoreNoise(scores, rows, partial(self._scores_of, column), rounding)

    @single_thread()
    def estimate_sample(
        self,
        reports: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        strata: Any = None,
        clusters: Any = None,
        population: Population | None = None,
        method: SampleMethod = "hajek",
        variance: VarianceMethod = "taylor",
        margins: Margins | None = None,
    ) -> SampleEstimate:
        """The query's statistics in a population, from the reports of a sample of it; for unbiased queries.

        `weights`, `strata` and `clusters` have an entry for each report. `population` is how many sampling units there
        are, a number or a mapping of strata to numbers: clusters where clusters were drawn, otherwise people. Variances
        are then corrected for a finite population. `method` gives shares and means per person (`hajek`) or totals
        (`horvitz-thompson`), `variance` is `taylor` or `jackknife`. `margins` calibrates the weights to sizes of groups
        of the population, `{"age": (ages, {"young": 400, "old": 600})}`: one margin is post-stratification, several are
        raked.

        >>> import priorveil as pv
        >>> prior = pv.Prior({"yes": 0.2, "no": 0.8})
        >>> plan = pv.Plan.of([[13 / 24, 11 / 24], [1 / 24, 23 / 24]], prior, pv.Distribution())
        >>> estimate = plan.estimate_sample([0] * 60 + [1] * 440, population=2_000)
        >>> round(estimate["yes"].value, 6), round(estimate["yes"].std_error, 6)
        (0.156667, 0.027929)
        """
        noise = self.score_noise(reports)
        sample = WeightedSample.of(noise.scores, weights, strata, clusters, population, margins)
        is_alone = all(column is None for column in (weights, strata, clusters, margins))
        return sample_estimate(
            sample,
            noise,
            self.query.statistic_labels(self.labels),
            method,
            variance,
            statistic=self.query.statistic_name if self.query.number_by_group is None else "statistic",
            attributes=(self.domain.names or ()) if noise.rows is None else (),
            beside=None if is_alone else beside_columns(self.certificate.ldp, self.certificate.lip),
        )

    def std_error(self, people: int = 10_000) -> Array:
        """The standard errors to expect from this many people who follow the prior, one for each statistic, as shares.

        They are those of `estimate`: for the population if the query is unbiased, otherwise for these people only, if
        the prior is right. Those of a sum are of the average per person, and include the most that rounding to a grid
        may add. Under a set of priors people follow the one that reports are read at; under another one estimates that
        lean on it also have a bias, which `precision` and intervals add.

        >>> import priorveil as pv
        >>> pv.design(pv.Prior([0.2, 0.8]), 1.0, pv.Distribution()).std_error(10_000).round(4).tolist()
        [0.0077, 0.0077]
        """
        return self.expected_std_error(self.query.default_method, people, self.query.unbiased)

    def expected_std_error(self, method: EstimateMethod, people: int, population: bool) -> Array:
        """As `std_error`, for any method, and for the population or these people only."""
        variance = self._expected_moments(method, people, population).variance
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / people)

    def _expected_moments(self, method: EstimateMethod, people: int, population: bool) -> Moments:
        """The answer to the average counts of this many people who follow the prior."""
        people = require_people(people)
        counts: Any = self.reader.expected_counts(self.reference.probabilities, people)  # no integers
        reading = replace(self._reading_by(method, Tally("", counts, people)), population=population)
        return reading.answer()

    def coefficient_errors(self, X: npt.ArrayLike, beta: npt.ArrayLike, people: int) -> Array:
        """The standard errors that the coefficients of a logit regression on this many reports will have.

        The rows of `X` stand for the distribution of the covariates, with a column of ones for an intercept. `beta`
        has the coefficients to expect: a row for each column of `X`, a column for each value but the last, which is
        the baseline; for two values a list is enough. The answer has the same shape. `Linear.log_odds` is the query
        that makes the errors small.

        >>> import priorveil as pv
        >>> plan = pv.design(pv.Prior({"yes": 0.2, "no": 0.8}), 1.0, pv.Distribution())
        >>> plan.coefficient_errors([[1, 0], [1, 1]], [-1.6, 0.5], people=3_000).round(3).tolist()
        [0.139, 0.176]
        """
        return coefficient_errors(self.mechanism.report_matrix, X, beta, people)

    def coefficient_people(
        self,
        X: npt.ArrayLike,
        beta: npt.ArrayLike,
        power: float = 0.8,
        level: float = 0.05,
        sides: OneOrTwo = 2,
    ) -> Array:
        """How many people a test of each coefficient against zero takes; infinite for a coefficient of zero.

        `X` and `beta` are those of `coefficient_errors`.

        >>> import priorveil as pv
        >>> plan = pv.design(pv.Prior({"yes": 0.2, "no": 0.8}), 1.0, pv.Distribution())
        >>> plan.coefficient_people([[1, 0], [1, 1]], [-1.6, 0.5]).tolist()
        [177.0, 2930.0]
        """
        errors = self.coefficient_errors(X, beta, people=1)
        return people_for_coefficients(errors, np.asarray(beta, dtype=np.float64), power, level, sides)

    def coefficient_power(
        self,
        X: npt.ArrayLike,
        beta: npt.ArrayLike,
        people: int,
        level: float = 0.05,
        sides: OneOrTwo = 2,
    ) -> Array:
        """The chance that a test of each coefficient against zero, on this many reports, finds that it is not zero.

        `X` and `beta` are those of `coefficient_errors`.

        >>> import priorveil as pv
        >>> plan = pv.design(pv.Prior({"yes": 0.2, "no": 0.8}), 1.0, pv.Distribution())
        >>> plan.coefficient_power([[1, 0], [1, 1]], [-1.6, 0.5], people=2_930).round(2).tolist()
        [1.0, 0.8]
        """
        errors = self.coefficient_errors(X, beta, people)
        return power_for_coefficients(errors, np.asarray(beta, dtype=np.float64), level, sides)

    def expected_precision(self, people: int = 10_000, confidence: float = 0.95) -> Precision:
        """The precision to expect from this many people who follow the prior (or the one that a set is read at).

        >>> import priorveil as pv
        >>> print(pv.design(pv.Prior([0.2, 0.8]), 1.0, pv.Distribution()).expected_precision())
        with 10,000 people every share is known to ±1.6 points or better (95 %)
        """
        width = normal_width(confidence, "confidence")
        leaning: float | None = None
        if not self.query.unbiased:
            moments = self._expected_moments(self.query.default_method, people, population=False)
            bias = 0.0 if moments.bias is None else moments.bias.max(axis=0)
            leaning = float((width * np.sqrt(np.maximum(moments.variance, 0.0)) + bias).max()) / people
        population: float | None = None
        determined: bool | None = True
        try:
            population = width * float(self.expected_std_error("unbiased", people, population=True).max())
        except NotIdentifiable:
            determined = None if self.reader.identifies_by_assumption else False
        except TooLarge:
            determined = None
        rows = self.query.rows(self.reference)
        widest = 1.0 if rows is None else float(np.ptp(rows, axis=1).max())
        if population is not None and population > widest / 2:
            population = None  # the interval holds all possible values
        name, of_set = self.query.statistic_name, not isinstance(self.prior, Prior)
        return Precision(people, confidence, population, leaning, name, determined, of_set)

    # -- planning ------------------------------------------------------------------------------------------

    def people(self, within: float = 0.03, confidence: float = 0.95, worst: bool = False) -> int:
        """How many people make half the width of every interval at most `within`.

        Statistics are as in `std_error`: shares of the population, averages per person for a sum. By default people
        follow the prior; with `worst` it is enough whatever the truth is. A query that leans on the prior is refused:
        no number of people corrects a wrong prior. For known truths see `statistics.planning`.

        >>> import priorveil as pv
        >>> plan = pv.design(pv.Prior([0.2, 0.8]), 1.0, pv.Distribution())
        >>> plan.people(within=0.02), plan.people(within=0.02, worst=True)
        (5659, 7196)
        """
        if self.query.statistic_name == "share" and real_number(within) >= 1:
            raise InvalidInput("within", within, "give a share, such as 0.03 for 3 points")
        return people_within(float(self.person_variances(worst).max()), within, confidence)

    def power(
        self,
        statistic: Label | None = None,
        *,
        null: float,
        truth: float | None = None,
        people: int | None = None,
        power: float | None = None,
        level: float = 0.05,
        sides: OneOrTwo = 2,
        groups: OneOrTwo = 1,
    ) -> PowerAnalysis:
        """What a test of one statistic can find: give two of `truth`, `people` and `power`, and the third is found.

        The test compares the statistic with `null`, and should find it to be `truth`. With two `groups` it compares
        those, of which one has the value `null`, and `people` are those of each group. The truth that is found is the
        nearest above `null`. `statistic` is a label, if there are several. Apart from the statistic people follow the
        prior: the shares of other values keep their proportions.

        >>> import priorveil as pv
        >>> plan = pv.design(pv.Prior({"yes": 0.2, "no": 0.8}), 1.0, pv.Distribution())
        >>> print(plan.power("yes", null=0.1, truth=0.2, power=0.8))
        with 413 people, a two-sided test at level 5 % tells 0.2 from 0.1 with power 0.801 (yes)
        """
        test = StatisticTest.of(self, statistic, null, level, sides, groups)
        return test.solve(truth, people, power)

    def person_variances(self, worst: bool = False) -> Array:
        """The variance per person of each statistic, as shares: `N std_error**2`, or the largest under any truth."""
        require_unbiased(self.query)
        if worst:
            return self.score_moments.worst_variances
        people = 1 << 20  # any number gives the same
        return people * self.std_error(people) ** 2

    @cached_property
    def score_moments(self) -> ScoreMoments:
        """What one report adds to the statistics of an unbiased query, by value: see `statistics.planning`."""
        return ScoreMoments.of(self)

    def totals_level(self, people: int, delta: float = 1e-6) -> float:
        """What somebody who sees only the tally of so many people can learn about one of them: `epsilon`, rounded up.

        If that person had another value, the probability of any set of tallies would be at most `e^epsilon` times as
        large, plus `delta`: whatever values the others have, and whoever knows them. It holds for somebody who has no
        log of the order of arrival, and sees one tally with one report of each person. Whoever knows the reports of
        some people sees a tally of the others: count only those. Infinite if nothing is proven.

        >>> import priorveil as pv
        >>> plan = pv.Plan.of([[0.75, 0.25], [0.25, 0.75]], pv.Prior([0.5, 0.5]), pv.Distribution())
        >>> [round(plan.totals_level(people), 3) for people in (1, 1_000, 100_000)]
        [1.099, 0.168, 0.014]
        """
        if self.secret is not None:
            raise InvalidInput(
                "plan", NOT_SHOWN, "its secret is behind the value: nothing is proven about published totals"
            )
        return totals_level(self.mechanism, self.certificate, people, delta)

    def _unseen_changes(self, directions: int) -> Note | None:
        """Which changes a prior check in this many directions does not notice."""
        if self.identifiable and directions >= len(self.labels) - 1:
            return None
        if self.identifiable:
            return RARE_CHANGES
        alike = self._same_law
        if alike is None:
            return Note("unseenSomeChanges")
        return Note("unseenChangesAmong", {"first": alike[0], "second": alike[1]})

    def _remarks(self, reading: Reading, by_own_prior: bool) -> tuple[Note, ...]:
        """What to know about numbers that were counted at the ends of the range, and about a prior that was assumed.

        If reports are read by the plan's own prior and it has a set of them, also which one that is.
        """
        remarks = list(self.domain.remarks())
        if self.prior.assumed and self.notion.bounds_lifts:
            levels = {"ldp": self.certificate.ldp, "lip": self.certificate.lip}
            everything = self.domain.everything()
            flat = Note("assumedFlatPrior", {**levels, "everything": everything})
            remarks.append(flat if self.is_flat else Note("assumedPrior", levels))
        if reading.known is not None:
            remarks.append(Note("leansOnSet"))
        elif by_own_prior and not isinstance(self.prior, Prior):
            remarks.append(Note("checkOfOneOfSet"))
        return tuple(remarks)

    @cached_property
    def _same_law(self) -> tuple[Label, Label] | None:
        """The two likeliest values whose reports follow the same law; None beyond 512 values, or if there are none."""
        if len(self.labels) > QUICK:
            return None
        order = np.argsort(-self.reference.probabilities, kind="stable")
        try:
            rounded = self.channel.matrix[order].round(_LAW_DIGITS)
        except TooLarge:
            return None
        _, first, laws = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        likelier = first[laws.ravel()]  # the first value of the same law
        pairs = np.stack([likelier, np.arange(len(order))], axis=1)[likelier < np.arange(len(order))]
        return (self.labels[order[pairs[0, 0]]], self.labels[order[pairs[0, 1]]]) if len(pairs) else None

    # -- files ---------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The plan as JSON, without its id."""
        require_readable(self)
        return plan_document(self)

    def to_json(self) -> str:
        """The plan as the text of its file."""
        return json.dumps({"id": self.id, **self.document()}, ensure_ascii=False, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, replacing an older one; the file is complete or unchanged."""
        text = self.to_json()
        with atomic_write(Path(path), replace=True, argument="path") as file:
            file.write(text.encode())

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan from a file, proving its certificate again."""
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            advice = f"give the file that {_SOURCE} wrote"
            raise PlanError("file", f"cannot read {path} ({error.strerror}): {advice}") from error
        return cls.from_json(text)

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read a plan and prove it; a `PlanError` names the field that is unknown, inconsistent or not true."""
        return cls.read(parse(text, PlanDocument, _SOURCE))

    @classmethod
    def read(cls, document: Json) -> Plan:
        """Read a plan from its document and prove it, as `from_json` does."""
        document = require_document(document, PlanDocument, _SOURCE)
        plan = cls(**read_fields(document))
        prove(plan, document)
        return plan

    def __repr__(self) -> str:
        return showing.line(self)

    def __str__(self) -> str:
        return showing.text(self)

    def plot(self) -> Figure:
        """The channel as a map of lifts, and what to expect from 10,000 people, as a matplotlib figure.

        A channel that is too large to write out is left out.
        """
        return showing.figure(self)

    def _repr_html_(self) -> str:
        return showing.html(self)

    def to_frame(self, library: Library | None = None) -> Any:
        """What the plan guarantees and how good it is, in one row: a data frame of pandas, polars or pyarrow.

        The frames of several plans can be put below each other.
        """
        return to_frame({name: [entry] for name, entry in self.record().items()}, library)

    def record(self) -> dict[str, str | int | float]:
        """The plan as one row of a table: what was asked, its proven levels, and its error."""
        same = ("lower_bound", "no_report", "efficiency", "method", "id")
        return {
            "query": self.query.kind,
            "values": len(self.labels),
            "notion": self.certificate.notion,
            "budget_lower": self.budget.lower,
            "budget_upper": self.budget.upper,
            "assumed_prior": self.prior.assumed,
            **{name: getattr(self.certificate, name) for name in ("lip", "lip_lower", "lip_upper", "ldp")},
            "expected_mse": self.expected_mse,
            **{name: getattr(self, name) for name in same},
        }


def _certify(
    mechanism: Mechanism, prior: Prior, epsilon: float | Budget | None, secret: Secrets, notion: Cone
) -> tuple[Certificate, Budget]:
    """The certificate of a mechanism, and its budget: the given one, or else the level that it really has."""
    extremes = mechanism.lifts(prior, secret, notion)
    proof = certificate(extremes, notion)
    if epsilon is not None:
        budget = Budget.of(epsilon)
        if not keeps_budget(extremes, budget, notion):
            raise CertificateError(f"{notion.name} level {proof.level:.6g} is above the budget, {budget}")
        return proof, budget
    sides = (proof.lip_lower, proof.lip_upper) if notion.bounds_lifts else (proof.level, proof.level)
    if min(sides) == math.inf:
        advice = f"it has no finite {notion.name} level: certify it for another notion"
        raise InvalidInput("channel", mechanism.kind, advice, Hint("notion", LIP()))
    if max(sides) == 0:
        advice = "its level is zero: reports tell nothing about what is protected"
        raise InvalidInput("channel", mechanism.kind, advice)
    return proof, Budget(*sides)
