"""Tests of hypotheses: a statistic, its distribution under the hypothesis, and the p-value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, erfc

from priorveil import showing
from priorveil.arrays import Array
from priorveil.notes import Note


def two_sided_p_value(z: npt.ArrayLike) -> Array:
    """The probability that a standard normal number is at least as far from zero.

    >>> round(float(two_sided_p_value(-1.96)), 3)
    0.05
    """
    return np.asarray(erfc(np.abs(z) / np.sqrt(2)))


def chi_square_tail(statistic: float, degrees: int) -> float:
    """The probability of a chi-square number at least as large; one without degrees of freedom.

    >>> round(chi_square_tail(3.84, 1), 3), chi_square_tail(0.0, 0)
    (0.05, 1.0)
    """
    return float(chdtrc(degrees, max(statistic, 0.0))) if degrees else 1.0


@dataclass(frozen=True)
class ChiSquareTest:
    """A statistic that is chi-square with `degrees` of freedom if the hypothesis (a note) is true.

    If `at_bound`, the hypothesis is that a parameter is at the end of its range: half of the time the statistic is then
    zero, and half of the time it is chi-square.

    >>> round(ChiSquareTest(3.84, 1, Note("waldTest", {"names": "age"})).p_value, 3)
    0.05
    """

    statistic: float
    degrees: int
    hypothesis: Note
    at_bound: bool = False

    @property
    def p_value(self) -> float:
        """The probability of a statistic at least as large, if the hypothesis is true."""
        tail = chi_square_tail(self.statistic, self.degrees)
        if not self.at_bound:
            return tail
        return tail / 2 if self.statistic > 0 else 1.0

    def __str__(self) -> str:
        return showing.text(self)

    def _repr_html_(self) -> str:
        return showing.html(self)
