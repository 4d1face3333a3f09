"""A randomised answer as a covariate: a linear model of an outcome on the values behind reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import NOT_SHOWN, InvalidInput, plural
from priorveil.frames import as_column
from priorveil.notes import Note
from priorveil.priors.label_texts import label_text
from priorveil.reading.blas_threads import single_thread
from priorveil.statistics.coefficient_fit import by_covariate
from priorveil.statistics.covariate_table import CovariateTable, column_numbers, read_covariates
from priorveil.statistics.device_reports import AllReports, read_devices
from priorveil.statistics.joint_likelihood import JointLikelihood
from priorveil.statistics.logit_search import NOTICEABLE
from priorveil.statistics.maximum_search import Maximum, climb
from priorveil.statistics.outcome_fit import OutcomeFit
from priorveil.statistics.regression_fit import not_determined, undetermined

ShareModel = Literal["logit", "constant"]

_COMPLIANCES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the starts
_AT_BOUND = 1e-3  # of log-likelihood: compliance that gains no more is at its bound


@single_thread()
def regress_on(
    reports: Any,
    *,
    plan: Any,
    outcome: Any,
    X: Any = None,
    compliance: bool = False,
    formula: str | None = None,
    data: Any = None,
    shares: ShareModel = "logit",
) -> OutcomeFit:
    """How an outcome, a number of each person, depends on the value behind a report, and on covariates.

    The mean of the outcome is `z' b + e_x`, normal around it; `e_x` is the effect of the value `x` beside the last
    one, which is the baseline. The values themselves stay unknown: the likelihood is that of reports and outcomes
    together. Least squares on scores would understate the effects.

    - `reports`, `plan`: as in `regress`: one plan, or a list with the plan of each report, None for a direct answer.
    - `outcome`: a number for each report.
    - `X`: the covariates as they are; no intercept is added. Without them there is an intercept alone. Or a `formula`
      for the columns of `data`, such as `"~ age"`, which adds one.
    - `compliance`: for two values, also estimate the share of carriers who do as the device says, as in `regress`.
    - `shares`: "logit" lets the shares of the values depend on the covariates; "constant" says that they do not.

    >>> import numpy as np
    >>> import priorveil as pv
    >>> rng = np.random.default_rng(1)
    >>> smokes = np.where(rng.uniform(size=20_000) < 0.3, "yes", "no")
    >>> income = 3 - 0.8 * (smokes == "yes") + rng.normal(size=len(smokes))
    >>> plan = pv.design(pv.Prior({"yes": 0.3, "no": 0.7}), 1.0, pv.Distribution())
    >>> fit = pv.regress_on(plan.privatize(smokes, rng), plan=plan, outcome=income)
    >>> fit.names, fit.coefficients.round(1).tolist(), round(fit.sigma, 1)
    (('intercept', 'yes'), [3.0, -0.8], 1.0)
    """
    if shares not in ("logit", "constant"):
        raise InvalidInput("shares", shares, "choose 'logit' or 'constant'")
    read = read_devices(reports, plan)
    read.require_identifying()  # otherwise the shape of the outcome alone would decide the effects
    alone = CovariateTable.intercept(read.count)
    covariates = alone if X is None and formula is None else read_covariates(X, formula, data)
    covariates.require_fit(read.count)
    numbers = _numbers(outcome, read.count)
    scale = _Scale.of(numbers, covariates)
    of_shares = covariates if shares == "logit" else alone
    likelihood = JointLikelihood(
        covariates.scaling @ covariates.values,
        of_shares.scaling @ of_shares.values,
        read.likelihoods(),
        scale.apply(numbers),
        read.denials() if compliance else None,
    )
    best, notes = _best(likelihood, of_shares)
    return _fit(likelihood, best, covariates, of_shares, scale, read, notes)


@dataclass(frozen=True)
class _Scale:
    """The outcome is searched with spread one; where a covariate is constant, with mean zero too."""

    centre: float
    spread: float
    constant: int | None  # the place of a covariate that is constant
    of_one: float  # what it is

    @classmethod
    def of(cls, outcome: Array, covariates: CovariateTable) -> _Scale:
        constants = np.flatnonzero(covariates.constants)
        centre = float(outcome.mean()) if constants.size else 0.0
        spread = float(np.sqrt(((outcome - centre) ** 2).mean()))
        if not spread > 1e-12 * max(1e-300, float(np.abs(outcome).max())):
            raise InvalidInput("outcome", NOT_SHOWN, "it is the same for all: there is nothing to explain")
        if not constants.size:
            return cls(centre, spread, None, 1.0)
        return cls(centre, spread, int(constants[0]), float(covariates.values[constants[0], 0]))

    def apply(self, outcome: Array) -> Array:
        return (outcome - self.centre) / self.spread

    def back(self, coefficients: Array) -> Array:
        """Coefficients and effects in the units of the outcome."""
        own = self.spread * coefficients
        if self.constant is not None:
            own[self.constant] += self.centre / self.of_one
        return own


# -- the search ----------------------------------------------------------------------------------------------


def _best(likelihood: JointLikelihood, of_shares: CovariateTable) -> tuple[Maximum, list[Note]]:
    """The best maximum from both signs of the effects, and what people should know about it.

    Compliance at its bound has no parameter: the likelihood of the parameters is then the one without it.
    """
    found = sorted(
        (climb(likelihood, start) for start in _starts(likelihood, of_shares)), key=lambda m: -m.value
    )
    best = found[0]
    others = [each.value for each in found if best.value - each.value > _AT_BOUND]
    notes = []
    if likelihood.denials is not None:
        honest = replace(likelihood, denials=None)
        bound = max((climb(honest, start) for start in _starts(honest, of_shares)), key=lambda m: m.value)
        if best.value <= bound.value + _AT_BOUND:
            return bound, [Note("complianceAtBound", {"share": 1.0})]
    if others and best.value - others[0] < NOTICEABLE:
        notes.append(Note("secondMaximum", {"width": best.value - others[0]}))
    return best, notes


def _starts(likelihood: JointLikelihood, of_shares: CovariateTable) -> Iterator[Array]:
    """Equal shares, and effects of the spread of the outcome in either direction, at several compliances."""
    Z, many = likelihood.covariates, likelihood.values - 1
    directions = np.linspace(1.0, -1.0, many) if many > 1 else np.ones(1)
    coefficients = np.linalg.lstsq(Z.T, likelihood.outcome, rcond=None)[0]
    shares = np.zeros(likelihood.share_coefficients.stop - likelihood.share_coefficients.start)
    compliances = [] if likelihood.denials is None else [np.log(t / (1 - t)) for t in _COMPLIANCES]
    for sign in (1.0, -1.0):
        start = np.concatenate([coefficients, sign * directions, [0.0], shares])
        yield from (np.append(start, u) for u in compliances)
        if not compliances:
            yield start


# -- the result ----------------------------------------------------------------------------------------------


def _fit(
    likelihood: JointLikelihood,
    best: Maximum,
    covariates: CovariateTable,
    of_shares: CovariateTable,
    scale: _Scale,
    read: AllReports,
    notes: Sequence[Note],
) -> OutcomeFit:
    theta, with_compliance = best.theta, likelihood.denials is not None and len(best.theta) == likelihood.size
    equation = likelihood if with_compliance else replace(likelihood, denials=None)
    values = [label_text(label) for label in read.labels[:-1]]
    names = (*covariates.names, *values)
    places = [*names, "sigma", *(f"{name} of {value}" for value in values for name in of_shares.names)]
    information = equation.information(theta)
    open_one = undetermined(information, [*places, *["compliance"] * with_compliance])
    if open_one is not None:
        raise not_determined(open_one)
    back = _back(equation, covariates, of_shares, scale, theta)
    covariance = back @ np.linalg.inv(information) @ back.T
    mean, at = equation.effects.stop, equation.share_coefficients
    errors = np.sqrt(np.diag(covariance))
    scaled_shares = theta[at].reshape(equation.values - 1, -1)
    shape = (equation.values - 1, len(of_shares.names))
    compliance = 1.0 if likelihood.denials is not None else None
    if with_compliance:
        compliance = float(1 / (1 + np.exp(-theta[-1])))
    return OutcomeFit(
        names=names,
        labels=read.labels,
        coefficients=scale.back(_unscaled(theta[:mean], covariates)),
        std_errors=errors[:mean],
        sigma=float(scale.spread * np.exp(theta[mean])),
        sigma_std_error=float(errors[mean]),
        loglik=best.value - likelihood.reports * float(np.log(scale.spread)),
        share_names=of_shares.names,
        share_coefficients=by_covariate(scaled_shares @ of_shares.scaling),
        share_std_errors=by_covariate(errors[at].reshape(shape)),
        compliance=compliance,
        compliance_std_error=float(errors[-1]) if with_compliance else None,
        reports=likelihood.reports,
        ldp=read.ldp,
        lip=read.lip,
        notes=tuple(notes),
        covariance=covariance,
    )


def _unscaled(theta: Array, covariates: CovariateTable) -> Array:
    p = len(covariates.names)
    return np.concatenate([theta[:p] @ covariates.scaling, theta[p:]])


def _back(
    equation: JointLikelihood,
    covariates: CovariateTable,
    of_shares: CovariateTable,
    scale: _Scale,
    theta: Array,
) -> Array:
    """The derivative of the parameters that are shown by those of the search."""
    back, p = np.eye(equation.size), len(covariates.names)
    mean, at = equation.effects.stop, equation.share_coefficients
    back[:mean, :mean] *= scale.spread
    back[:p, :p] = scale.spread * covariates.scaling.T
    back[mean, mean] = scale.spread * np.exp(theta[mean])
    back[at, at] = np.kron(np.eye(equation.values - 1), of_shares.scaling.T)
    if equation.denials is not None:
        t = 1 / (1 + np.exp(-theta[-1]))
        back[-1, -1] = t * (1 - t)
    return back


# -- what is given ---------------------------------------------------------------------------------------------


def _numbers(outcome: Any, count: int) -> Array:
    column = as_column(outcome, "outcome")
    array = column_numbers("outcome", column, "give a column of numbers, one for each report")
    if array.shape != (count,):
        raise InvalidInput(
            "outcome",
            NOT_SHOWN,
            f"{plural(array.size, 'number')} for {plural(count, 'report')}: give one for each",
        )
    if not np.isfinite(array).all():
        raise InvalidInput("outcome", NOT_SHOWN, "some are missing or infinite: leave these rows out first")
    return array
