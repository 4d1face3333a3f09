"""A fitted regression: coefficients, their errors by name, tests, predictions and marginal effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from priorveil.arrays import Array, Ints
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, NotIdentifiable, plural
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.label_texts import label_text
from priorveil.reading.blas_threads import single_thread
from priorveil.statistics.calibration import codes_of
from priorveil.statistics.coefficient_fit import CoefficientFit, by_covariate, coefficient_columns
from priorveil.statistics.corrected_scores import LinearScores
from priorveil.statistics.covariate_table import CovariateTable
from priorveil.statistics.device_reports import DeviceReports
from priorveil.statistics.estimating_equation import EstimatingEquation
from priorveil.statistics.expected_information import Device, expected_information
from priorveil.statistics.goodness_of_fit import hosmer_lemeshow, pooled_test
from priorveil.statistics.logit import LogitLikelihood, comply, logit_shares
from priorveil.statistics.regression_estimates import (
    MarginalEffects,
    Predictions,
    average_effects,
    predict_means,
    predict_shares,
)
from priorveil.statistics.significance import ChiSquareTest

CovarianceKind = Literal["observed", "expected", "outer", "robust"]
COVARIANCE_KINDS: tuple[CovarianceKind, ...] = get_args(CovarianceKind)

_LIKELIHOOD_ROUNDING = 1e-6  # of a log-likelihood


@dataclass(frozen=True, eq=False, repr=False)
class RegressionFit(CoefficientFit):
    """A regression on reports.

    - `names`: the covariates. `labels`: the values, of which the last is the baseline; for the regression of a single
      statistic, the statistic (and, for a logit, what it is not).
    - `coefficients`: a number for each covariate, if there is one outcome; otherwise a column for each value without
      the baseline.
    - `loglik`: the log-likelihood; NaN where the fit does not maximise it. That of tables is complete, that of other
      mechanisms is up to a constant.
    - `compliance`: the estimated share of carriers who comply; None if it was not asked for.
    - `ldp`, `lip`: the largest levels of the plans, infinite if there are direct answers.
    - `errors`, `clusters`: which standard errors are used; `with_errors` changes them.
    """

    names: tuple[str, ...]
    labels: tuple[Label, ...]
    coefficients: Array
    loglik: float
    compliance: float | None
    reports: int
    ldp: float
    lip: float
    errors: CovarianceKind
    notes: tuple[Note, ...]
    clusters: Ints | None = field(default=None, repr=False)
    covariates: CovariateTable = field(kw_only=True, repr=False)
    equation: EstimatingEquation = field(kw_only=True, repr=False)
    theta: Array = field(kw_only=True, repr=False)
    devices: Sequence[DeviceReports] = field(kw_only=True, repr=False)
    loglik_if_all_comply: float | None = field(default=None, kw_only=True, repr=False)

    @property
    def by_likelihood(self) -> bool:
        """Whether the coefficients maximise the likelihood."""
        return isinstance(self.equation, LogitLikelihood)

    @property
    def is_linear(self) -> bool:
        """Whether this is a linear model of a statistic."""
        return isinstance(self.equation, LinearScores)

    @property
    def parameters(self) -> int:
        """How many numbers were estimated."""
        return self.coefficients.size + (self.compliance is not None)

    # -- errors ----------------------------------------------------------------------------------------------

    @single_thread()
    def covariance(self, kind: CovarianceKind | None = None, clusters: Any = None) -> Array:
        """The covariance of the coefficients: of all covariates for the first outcome, then for the next.

        - `observed`: the inverse of the observed information.
        - `expected`: the inverse of its expectation, for reports that are numbers of a table's columns.
        - `outer`: the inverse of the sum of the outer products of the slopes.
        - `robust`: the sandwich, which needs only the means to be right. With `clusters`, a label for each report, it
          allows for dependence within each of them (with the factor `g / (g - 1)` for `g` clusters).

        If compliance was estimated and is not at its bound, its row and column are the last.
        """
        kind = kind or self.errors
        if kind not in COVARIANCE_KINDS:
            raise InvalidInput("kind", kind, f"choose one of {', '.join(COVARIANCE_KINDS)}")
        if not self.by_likelihood and kind != "robust":
            raise InvalidInput("kind", kind, "corrected scores and linear models have robust errors only")
        codes = self.clusters if clusters is None else self._cluster_codes(clusters)
        if codes is not None and kind != "robust":
            raise InvalidInput("kind", kind, "errors by clusters are robust", Hint("kind", "robust"))
        return self._unscale(self._scaled_covariance(kind, codes))

    def with_errors(self, kind: CovarianceKind, clusters: Any = None) -> RegressionFit:
        """The same coefficients with other standard errors, see `covariance`."""
        fit = replace(self, errors=kind, clusters=None)
        fit.covariance(kind, clusters)
        return replace(fit, clusters=None if clusters is None else self._cluster_codes(clusters))

    @cached_property
    def std_errors(self) -> Array:
        """The standard errors of the coefficients, in their shape."""
        rows = np.sqrt(np.diag(self._coefficient_covariance)).reshape(-1, len(self.names))
        return by_covariate(rows)

    @property
    def compliance_std_error(self) -> float | None:
        """The standard error of the compliance; None if it was not estimated, or is at its bound."""
        inside = self.compliance is not None and 0 < self.compliance < 1
        return float(np.sqrt(self._covariance[-1, -1])) if inside else None

    @cached_property
    def _covariance(self) -> Array:
        return self.covariance()

    @property
    def _coefficient_covariance(self) -> Array:
        return self._covariance[: self.coefficients.size, : self.coefficients.size]

    @property
    def _coefficient_rows(self) -> Array:
        """A row for each outcome."""
        return self.coefficients.reshape(len(self.names), -1).T

    def _scaled_covariance(self, kind: CovarianceKind, clusters: Ints | None) -> Array:
        equation, theta = self.equation, self.theta
        if kind == "expected":
            return self._inverse(self._expected_information())
        if kind == "outer":
            return self._inverse(equation.outer_products(theta))
        inverse = self._inverse(equation.information(theta))
        if kind == "observed":
            return inverse
        groups = 0 if clusters is None else int(clusters.max()) + 1
        factor = groups / (groups - 1) if groups else 1.0
        return np.asarray(factor * inverse @ equation.outer_products(theta, clusters) @ inverse)

    def _expected_information(self) -> Array:
        assert isinstance(self.equation, LogitLikelihood)
        devices = []
        for device in self.devices:
            if device.table is None:
                advice = "it needs all reports that are possible, which are too many for this mechanism"
                raise InvalidInput("kind", "expected", advice, Hint("kind", "observed", "outer", "robust"))
            table, can_deny = device.table, self.compliance is not None and device.plan is not None
            if can_deny and self.equation.denials is None:  # compliance is at its bound
                table = comply(table, float(self.compliance or 0.0))[0]
            devices.append(Device(device.rows, table, can_deny))
        compliance = None if self.equation.denials is None else float(self.theta[-1])
        coefficients = self.equation.coefficients(self.theta)
        return expected_information(self.equation.covariates, coefficients, devices, compliance)

    def _inverse(self, information: Array) -> Array:
        name = undetermined(information, self.names)
        if name is not None:
            raise not_determined(name)
        return np.asarray(np.linalg.inv(information), dtype=np.float64)

    def _unscale(self, covariance: Array) -> Array:
        outcomes = self.coefficients.size // len(self.names)
        back = np.eye(len(covariance))
        count = self.coefficients.size
        back[:count, :count] = np.kron(np.eye(outcomes), self.covariates.scaling.T)
        return np.asarray(back @ covariance @ back.T)

    def _cluster_codes(self, clusters: Any) -> Ints:
        labels, codes = codes_of("clusters", clusters, self.reports)
        if len(labels) < 2:
            advice = "all reports are in one cluster; two or more are needed"
            raise InvalidInput("clusters", NOT_SHOWN, advice)
        return codes

    # -- tests -----------------------------------------------------------------------------------------------

    def wald(self, columns: str | Sequence[str]) -> ChiSquareTest:
        """The test that the coefficients of some covariates, by name, are all zero."""
        chosen = [columns] if isinstance(columns, str) else list(columns)
        if unknown := [name for name in chosen if name not in self.names]:
            raise InvalidInput("columns", unknown[0], f"choose from {', '.join(self.names)}")
        if not chosen:
            raise InvalidInput("columns", columns, f"choose one or more of {', '.join(self.names)}")
        rows, p = self._coefficient_rows, len(self.names)
        places = [a * p + self.names.index(name) for a in range(len(rows)) for name in dict.fromkeys(chosen)]
        values, covariance = rows.ravel()[places], self._coefficient_covariance[np.ix_(places, places)]
        statistic = float(values @ np.linalg.solve(covariance, values))
        return ChiSquareTest(statistic, len(places), Note("waldTest", {"names": ", ".join(chosen)}))

    def likelihood_ratio(self, restricted: RegressionFit) -> ChiSquareTest:
        """The test of a fit to the same reports with fewer parameters, against this one."""
        if not isinstance(restricted, RegressionFit):
            raise InvalidInput("restricted", NOT_SHOWN, "give a fit of `regress` with fewer covariates")
        if not (self.by_likelihood and restricted.by_likelihood):
            raise InvalidInput(
                "restricted", NOT_SHOWN, "corrected scores and linear models have no likelihood"
            )
        degrees = self.parameters - restricted.parameters
        if restricted.reports != self.reports or degrees < 1:
            advice = f"it has {plural(restricted.reports, 'report')} and {restricted.parameters} parameters; give a "
            advice += f"fit to the same {plural(self.reports, 'report')} with fewer than {self.parameters}"
            raise InvalidInput("restricted", NOT_SHOWN, advice)
        gain = self.loglik - restricted.loglik
        if gain < -_LIKELIHOOD_ROUNDING * max(1.0, abs(self.loglik)):
            advice = "its likelihood is larger: it is not a special case of this fit"
            raise InvalidInput("restricted", NOT_SHOWN, advice)
        at_bound = degrees == 1 and self.compliance is not None and restricted.compliance is None
        left_out = ", ".join(name for name in self.names if name not in restricted.names)
        note = Note("complianceTest") if at_bound else Note("likelihoodRatioTest", {"names": left_out})
        return ChiSquareTest(max(2 * gain, 0.0), degrees, note, at_bound)

    def compliance_test(self) -> ChiSquareTest:
        """The likelihood-ratio test that all carriers comply: the mixture of chi-squares, as this is at the bound."""
        if self.loglik_if_all_comply is None:
            raise InvalidInput(
                "compliance", self.compliance, "it was not estimated", Hint("compliance", True)
            )
        gain = self.loglik - self.loglik_if_all_comply
        gain = gain if gain > _LIKELIHOOD_ROUNDING else 0.0
        return ChiSquareTest(2 * gain, 1, Note("complianceTest"), at_bound=True)

    def hosmer_lemeshow(self) -> ChiSquareTest:
        """The test of fit in ten groups by fitted share within each device, for two values and two reports."""
        tables = [device.table for device in self.devices]
        if not self.by_likelihood or any(table is None or table.shape != (2, 2) for table in tables):
            advice = "the test is for likelihood fits of two values, with devices that make two reports"
            raise InvalidInput("plan", NOT_SHOWN, advice)
        shares, parts = self._fitted_shares()[0], []
        for device in self.devices:
            table = device.table
            assert table is not None
            if self.compliance is not None and device.plan is not None:
                table = comply(table, self.compliance)[0]
            own = shares[device.rows]
            chances = table[0, 0] * own + table[0, 1] * (1 - own)
            parts.append(hosmer_lemeshow(own, chances, device.reports))
        return pooled_test(parts)

    def _fitted_shares(self) -> Array:
        return logit_shares(self.equation.coefficients(self.theta) @ self.equation.covariates)

    # -- what follows ------------------------------------------------------------------------------------------

    @single_thread()
    def predict(self, X: Any = None) -> Predictions:
        """Predicted shares, or means of a linear model, with intervals; for other rows of covariates, or the same.

        For a fit by formula, `X` is data for the formula.
        """
        covariates = self.covariates if X is None else self.covariates.like(X)
        if self.is_linear:
            return predict_means(
                self.labels[0], self._coefficient_rows, self._coefficient_covariance, covariates.values
            )
        return predict_shares(
            self.labels, self._coefficient_rows, self._coefficient_covariance, covariates.values
        )

    @single_thread()
    def marginal_effects(self) -> MarginalEffects:
        """The average over all rows of the derivative of each share by each covariate, with intervals.

        Each column is taken by itself, as if the others stayed: also one that is a product of others.
        """
        if self.is_linear:
            raise InvalidInput(
                "model", "linear", "the coefficients of a linear model are its marginal effects"
            )
        effects, slopes = average_effects(self._coefficient_rows, self.covariates.values)
        flat = slopes.reshape(*effects.shape, -1)
        variances = np.einsum("kjm,ml,kjl->kj", flat, self._coefficient_covariance, flat, optimize=True)
        varying = ~self.covariates.constants
        names = tuple(np.array(self.names, dtype=object)[varying])
        errors = np.sqrt(np.maximum(variances, 0.0))
        return MarginalEffects(names, self.labels, effects[varying], errors[varying])

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`: outcome and covariate, coefficient, error, z, p-value and interval."""
        rows, p = self._coefficient_rows, len(self.names)
        return {
            "outcome": [label_text(label) for label in self.labels[: len(rows)] for _ in range(p)],
            "covariate": list(self.names) * len(rows),
            **coefficient_columns(rows.ravel(), np.sqrt(np.diag(self._coefficient_covariance)), confidence),
        }


COMPLIANCE = "compliance"  # the name of this parameter
_SINGULAR = 1e-10  # of the largest eigenvalue of the information


def undetermined(information: Array, names: Sequence[str]) -> str | None:
    """The parameter that an information which is not positive definite leaves open most; None if it is."""
    if not np.isfinite(information).all():
        return names[0]
    sizes, directions = np.linalg.eigh(information)
    if sizes[0] > _SINGULAR * sizes[-1]:
        return None
    worst = int(np.argmax(np.abs(directions[:, 0])))
    outcomes = len(information) // len(names)
    return names[worst % len(names)] if worst < outcomes * len(names) else COMPLIANCE


def not_determined(name: str) -> NotIdentifiable:
    """The error for a coefficient that the reports do not determine."""
    advice = "the compliance: use two devices with different channels"
    if name != COMPLIANCE:
        advice = f"the coefficient of {name}: leave it out"
    error = NotIdentifiable(f"the reports do not determine {advice}")
    error.statistics = (name,)
    return error
