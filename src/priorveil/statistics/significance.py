"""Tests of hypotheses: a statistic, its distribution under the hypothesis, and the p-value."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import stats

from priorveil import showing
from priorveil.notes import Note


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
        if self.at_bound:
            return float(stats.chi2.sf(self.statistic, self.degrees)) / 2 if self.statistic > 0 else 1.0
        return float(stats.chi2.sf(self.statistic, self.degrees))

    def __str__(self) -> str:
        return showing.text(self)

    def _repr_html_(self) -> str:
        return showing.html(self)
