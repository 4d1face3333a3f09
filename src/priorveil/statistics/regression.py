"""Regression on reports: multinomial logit by likelihood or by corrected scores, and linear models of a statistic."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import Hint, InvalidInput, NotIdentifiable
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.label_texts import first_labels, label_text
from priorveil.reading.blas_threads import single_thread
from priorveil.reading.label_weights import LabelWeights, weights_of
from priorveil.statistics.coefficient_fit import by_covariate
from priorveil.statistics.corrected_scores import LinearScores, LogitScores
from priorveil.statistics.covariate_table import CovariateTable, read_covariates
from priorveil.statistics.device_reports import AllReports, read_devices
from priorveil.statistics.estimating_equation import EstimatingEquation
from priorveil.statistics.logit import LogitLikelihood, comply
from priorveil.statistics.logit_search import (
    NOTICEABLE,
    LogitMaximum,
    maximise,
    maximise_with_compliance,
)
from priorveil.statistics.maximum_search import climb
from priorveil.statistics.plan_scores import ReadablePlan
from priorveil.statistics.regression_fit import RegressionFit, not_determined, undetermined

RegressionModel = Literal["logit", "linear"]
RegressionMethod = Literal["auto", "likelihood", "scores"]

MOST_VALUES = 50  # of a plan whose likelihood is maximised
_LARGEST_COEFFICIENT = 8.0  # of a covariate of spread one


@single_thread()
def regress(
    reports: Any,
    X: Any = None,
    plan: Any = None,
    compliance: bool = False,
    *,
    formula: str | None = None,
    data: Any = None,
    model: RegressionModel = "logit",
    method: RegressionMethod = "auto",
    statistic: Label | LabelWeights | None = None,
) -> RegressionFit:
    """How the shares of values depend on covariates: a multinomial logit on reports. The last value is the baseline.

    - `reports`: one for each row of covariates.
    - `X`: the covariates as they are, an array or a data frame; no intercept is added. Or a `formula`, such as
      `"~ age * region"`, for the columns of `data`; it does add one.
    - `plan`: the plan that made the reports, or a list with the plan of each report; all have the same values. None in
      it stands for a direct answer: the report is then the value itself.
    - `compliance`: for two values, also estimate the share `t` of carriers (people with the first value) who do as the
      device says. The others send its last report. Direct answers are taken as they are.
    - `model`: "linear" is least squares on the scores of one statistic.
    - `method`: "likelihood" is the best for plans with up to 50 values; "scores" (corrected scores, with robust errors)
      is for larger ones, and the only one for a single statistic.
    - `statistic`: one statistic of the plan's query by its label, or weights of the values, such as a list of labels.
      For a logit it must be yes or no: weights 0 and 1.

    >>> import numpy as np
    >>> import priorveil as pv
    >>> rng = np.random.default_rng(1)
    >>> age = rng.uniform(-1, 1, 20_000)
    >>> smokes = np.where(rng.uniform(size=len(age)) < 1 / (1 + np.exp(1 - age)), "yes", "no")
    >>> plan = pv.design(pv.Prior({"yes": 0.3, "no": 0.7}), 2.0, pv.Distribution())
    >>> fit = pv.regress(plan.privatize(smokes, rng), {"one": np.ones(len(age)), "age": age}, plan)
    >>> fit.coefficients.round(1).tolist(), fit.std_errors.round(2).tolist()
    ([-1.0, 1.0], [0.02, 0.04])
    """
    _require_choices(model, method, compliance, statistic)
    read = read_devices(reports, plan)
    covariates = read_covariates(X, formula, data)
    covariates.require_fit(read.count)
    rows = _Rows(read, covariates)
    if model == "linear" or statistic is not None:
        chosen = _statistic(next(device.plan for device in read.devices if device.plan), statistic)
        return _linear_fit(rows, chosen) if model == "linear" else _statistic_fit(rows, chosen)
    read.require_identifying()
    if len(read.labels) > MOST_VALUES:
        advice = f"for {len(read.labels)} values give a single statistic: a label, or a list of labels"
        raise InvalidInput("statistic", None, advice)
    if method == "scores":
        return _scores_fit(rows)
    return _compliance_fit(rows) if compliance else _likelihood_fit(rows)


class _Statistic(NamedTuple):
    """A statistic: the weights of the values, its name, and whether it is a row of the query."""

    weights: Array
    name: Label
    of_query: bool

    @property
    def is_yes_or_no(self) -> bool:
        """Whether it is the share of some values."""
        return bool(np.isin(self.weights, (0.0, 1.0)).all())

    @property
    def centred(self) -> bool:
        """Whether it is read by its distance from the mean."""
        return self.of_query or not self.is_yes_or_no


@dataclass(frozen=True, eq=False)
class _Rows:
    """What a regression reads: reports of devices, and covariates."""

    reports: AllReports
    covariates: CovariateTable

    def scaled(self) -> Array:
        """The covariates with spread one."""
        return self.covariates.scaling @ self.covariates.values

    def scores(self, statistic: _Statistic) -> Array:
        """The scores of each report, in one row."""
        weights, names = statistic.weights[None], [statistic.name]
        parts = (device.scores(weights, names, statistic.centred) for device in self.reports.devices)
        return self.reports.merge(parts)

    def fit(
        self,
        equation: EstimatingEquation,
        theta: Array,
        labels: tuple[Label, ...],
        notes: Sequence[Note | None] = (),
        loglik: float = np.nan,
        compliance: float | None = None,
        if_all_comply: float | None = None,
    ) -> RegressionFit:
        """The fit at these parameters, unless they are not a finite maximum."""
        scaled, scaling = equation.coefficients(theta), self.covariates.scaling
        if not isinstance(equation, LinearScores):
            self._require_finite(scaled, labels)
        open_one = undetermined(equation.information(theta), self.covariates.names)
        if open_one is not None:
            raise not_determined(open_one)
        return RegressionFit(
            names=self.covariates.names,
            labels=labels,
            coefficients=by_covariate(scaled @ scaling),
            loglik=loglik,
            compliance=compliance,
            reports=self.reports.count,
            ldp=self.reports.ldp,
            lip=self.reports.lip,
            errors="observed" if isinstance(equation, LogitLikelihood) else "robust",
            notes=tuple(note for note in notes if note is not None),
            covariates=self.covariates,
            equation=equation,
            theta=theta,
            devices=self.reports.devices,
            loglik_if_all_comply=if_all_comply,
        )

    def _require_finite(self, scaled: Array, labels: Sequence[Label]) -> None:
        if not (np.abs(scaled) <= _LARGEST_COEFFICIENT).all():
            outcome, covariate = divmod(int(np.argmax(np.abs(scaled))), scaled.shape[1])
            name, value = self.covariates.names[covariate], label_text(labels[outcome])
            error = NotIdentifiable(
                f"there is no finite maximum: the coefficient of {name} for {value} grows without end, as some share "
                f"is best at zero; merge groups or values, collect more reports, or leave it out"
            )
            error.statistics = (name,)
            raise error


# -- the methods ---------------------------------------------------------------------------------------------


def _likelihood_fit(rows: _Rows) -> RegressionFit:
    likelihood = LogitLikelihood(rows.scaled(), rows.reports.likelihoods())
    best = maximise(likelihood, _value_scores(rows))
    return rows.fit(likelihood, best.theta, rows.reports.labels, [_warning(best)], best.value)


def _compliance_fit(rows: _Rows) -> RegressionFit:
    denials = rows.reports.denials()
    likelihood = LogitLikelihood(rows.scaled(), rows.reports.likelihoods(), denials)
    best = maximise_with_compliance(likelihood, lambda t: _scores_at(rows, t))
    t = float(best.theta[-1])
    honest = maximise(likelihood.at(1.0), _value_scores(rows)).value
    inside = 0 < t < 1
    notes = [_warning(best), None if inside else Note("complianceAtBound", {"share": t})]
    equation, theta = (likelihood, best.theta) if inside else (likelihood.at(t), best.theta[:-1])
    return rows.fit(equation, theta, rows.reports.labels, notes, best.value, t, honest)


def _scores_fit(rows: _Rows) -> RegressionFit:
    if not all(device.identifies for device in rows.reports.devices):
        raise NotIdentifiable(
            "reports of one of these plans do not determine the distribution of the values, and have no scores",
            Hint("method", "likelihood", purpose="to use what they say"),
        )
    equation = LogitScores(rows.scaled(), _value_scores(rows))
    return _climb_from_zero(rows, equation, rows.reports.labels)


def _statistic_fit(rows: _Rows, statistic: _Statistic) -> RegressionFit:
    name = statistic.name
    if not statistic.is_yes_or_no:
        advice = "a logit needs a statistic that is yes or no: weights 0 and 1 of the values"
        raise InvalidInput("statistic", name, advice, Hint("model", "linear", purpose="for other statistics"))
    equation = LogitScores(rows.scaled(), rows.scores(statistic))
    labels = (name, f"not {first_labels([name])}")
    return _climb_from_zero(rows, equation, labels)


def _linear_fit(rows: _Rows, statistic: _Statistic) -> RegressionFit:
    equation = LinearScores(rows.scaled(), rows.scores(statistic))
    return _climb_from_zero(rows, equation, (statistic.name,))


def _climb_from_zero(rows: _Rows, equation: EstimatingEquation, labels: tuple[Label, ...]) -> RegressionFit:
    """The fit at the only maximum of a concave function."""
    return rows.fit(equation, climb(equation, np.zeros(equation.size)).theta, labels)


def _warning(best: LogitMaximum) -> Note | None:
    if best.next_below is None or best.next_below > NOTICEABLE:
        return None
    return Note("secondMaximum", {"width": best.next_below})


def _value_scores(rows: _Rows) -> Array:
    """Scores for each value but the last.

    Devices that do not identify them are lent the mean of the others: good enough for a start of a search.
    """
    able = [device for device in rows.reports.devices if device.identifies]
    weights = np.eye(len(rows.reports.labels))[:-1]
    found = {id(device): device.scores(weights, rows.reports.labels[:-1]) for device in able}
    centre = np.concatenate(list(found.values()), axis=1).mean(axis=1, keepdims=True)
    parts = (
        found.get(id(device), np.repeat(centre, len(device.rows), axis=1)) for device in rows.reports.devices
    )
    return rows.reports.merge(parts)


def _scores_at(rows: _Rows, compliance: float) -> Array | None:
    """The scores of the first value if this share of carriers comply; None if no device tells the values apart then."""
    parts: list[Array] = []
    able = False
    for device in rows.reports.devices:
        table = device.table
        assert table is not None
        if device.plan is not None:
            table = comply(table, compliance)[0]
        inverse = np.asarray(np.linalg.pinv(table), dtype=np.float64)  # a row for each value
        able = able or bool(np.linalg.matrix_rank(table, tol=1e-6) == 2)
        parts.append(inverse[:1, device.reports])
    return rows.reports.merge(parts) if able else None


# -- checks --------------------------------------------------------------------------------------------------


def _require_choices(model: str, method: str, compliance: bool, statistic: Any) -> None:
    if model not in ("logit", "linear"):
        raise InvalidInput("model", model, "choose 'logit' or 'linear'")
    if method not in ("auto", "likelihood", "scores"):
        raise InvalidInput("method", method, "choose 'auto', 'likelihood' or 'scores'")
    by_scores = model == "linear" or statistic is not None or method == "scores"
    if by_scores and method == "likelihood":
        raise InvalidInput("method", method, "a single statistic is read by scores", Hint("method", "scores"))
    if by_scores and compliance:
        raise InvalidInput("compliance", compliance, "it needs the likelihood of all values")


def _statistic(plan: ReadablePlan, statistic: Any) -> _Statistic:
    """A statistic of the query by its name, or weights of the values."""
    labels, rows = plan.labels, plan.query.rows(plan.reference)
    names = plan.query.statistic_labels(labels)
    if statistic is None and len(names) == 1:
        statistic = names[0]
    if isinstance(statistic, Hashable) and statistic in names:
        place = names.index(statistic)
        if rows is not None:
            return _Statistic(rows[place], statistic, of_query=True)
        return _Statistic(np.eye(1, len(labels), place)[0], statistic, of_query=False)
    if statistic is None:
        raise InvalidInput("statistic", None, f"choose one of {first_labels(names)}")
    chosen = weights_of("statistic", statistic, labels)
    name = first_labels([label for label, weight in zip(labels, chosen, strict=True) if weight])
    return _Statistic(chosen, name, of_query=False)
