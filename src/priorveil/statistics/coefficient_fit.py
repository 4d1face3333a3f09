"""What fitted regressions have in common: coefficients with their errors and intervals, and compliance."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorveil import showing
from priorveil.arrays import Array
from priorveil.reading.interval_estimate import IntervalEstimate
from priorveil.reading.moments import Ends, normal_width
from priorveil.statistics.significance import two_sided_p_value


class CoefficientFit(IntervalEstimate):
    """Coefficients with standard errors, and the share of carriers who comply where it was estimated."""

    coefficients: Array
    std_errors: Any
    compliance: float | None
    compliance_std_error: Any  # None if it was not estimated, or is at its bound

    @property
    def name(self) -> str:
        """What the numbers are."""
        return "coefficients"

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """The ends of normal intervals of the coefficients, in their shape."""
        width = normal_width(confidence) * self.std_errors
        return self.coefficients - width, self.coefficients + width

    def compliance_interval(self, confidence: float = 0.95) -> Ends | None:
        """The normal interval of the compliance; None if it was not estimated, or is at its bound."""
        if self.compliance is None or self.compliance_std_error is None:
            return None
        width = normal_width(confidence) * self.compliance_std_error
        return max(self.compliance - width, 0.0), min(self.compliance + width, 1.0)

    def __repr__(self) -> str:
        return showing.line(self)


def coefficient_columns(coefficients: Array, errors: Array, confidence: float) -> dict[str, Any]:
    """The columns of coefficients in a data frame: their errors, tests against zero, and normal intervals."""
    width = normal_width(confidence) * errors
    return {
        "coefficient": coefficients,
        "std_error": errors,
        "z": coefficients / errors,
        "p_value": two_sided_p_value(coefficients / errors),
        "low": coefficients - width,
        "high": coefficients + width,
    }


def by_covariate(rows: Array) -> Array:
    """Numbers with a row for each outcome, as people read them: a column for each, or one vector."""
    return rows[0] if len(rows) == 1 else np.ascontiguousarray(rows.T)
