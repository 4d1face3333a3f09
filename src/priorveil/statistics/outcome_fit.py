"""A fitted linear model of an outcome on the values behind reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from priorveil.arrays import Array
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.label_texts import label_text
from priorveil.statistics.coefficient_fit import CoefficientFit, coefficient_columns


@dataclass(frozen=True, eq=False, repr=False)
class OutcomeFit(CoefficientFit):
    """A linear model of an outcome on covariates and on a randomised answer.

    - `names`: the covariates, then the values but the last, which is the baseline. `coefficients` and `std_errors` have
      a number for each: for a value its effect beside the baseline.
    - `sigma`: the standard deviation of the outcome around its mean.
    - `share_coefficients`, `share_std_errors`: the logit of the shares of the values on `share_names`: a number for
      each, or for more than two values a column for each value but the last.
    - `compliance`: the estimated share of carriers who comply; None if it was not asked for.
    - `loglik`: the log-likelihood of reports and outcomes. Standard errors are from the observed information.
    - `covariance`: of coefficients, `sigma`, coefficients of the shares for each value in turn, and compliance.
    - `ldp`, `lip`: the largest levels of the plans, infinite if there are direct answers.
    """

    names: tuple[str, ...]
    labels: tuple[Label, ...]
    coefficients: Array
    std_errors: Array
    sigma: float
    sigma_std_error: float
    loglik: float
    share_names: tuple[str, ...]
    share_coefficients: Array
    share_std_errors: Array
    compliance: float | None
    compliance_std_error: float | None
    reports: int
    ldp: float
    lip: float
    notes: tuple[Note, ...]
    covariance: Array = field(repr=False)

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`: those of the outcome first (`share_of` is empty), then those of the shares."""
        values = [label_text(label) for label in self.labels[:-1]]
        coefficients = np.concatenate([self.coefficients, self.share_coefficients.T.ravel()])
        errors = np.concatenate([self.std_errors, self.share_std_errors.T.ravel()])
        return {
            "share_of": [""] * len(self.names) + [value for value in values for _ in self.share_names],
            "covariate": [*self.names, *self.share_names * len(values)],
            **coefficient_columns(coefficients, errors, confidence),
        }
