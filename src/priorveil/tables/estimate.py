"""Estimates from tables of reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from priorveil.errors import plural
from priorveil.frames import Library
from priorveil.priors import Prior
from priorveil.reading.estimate import EstimateMethod
from priorveil.results.findings import View, result_of
from priorveil.results.form_estimates import CohortForms, Estimates, estimate_forms
from priorveil.results.lines import frame_of
from priorveil.tables.counting import tally_table
from priorveil.tables.forms import Plans
from priorveil.tables.refusals import RefusedRows
from priorveil.tables.tallies import Tallies


@dataclass(frozen=True, eq=False, repr=False)
class TableEstimates(Estimates):
    """The estimates from a table of reports, with the tallies that they were made from."""

    tallies: Tallies

    @property
    def refused(self) -> RefusedRows:
        """The rows that were not counted."""
        return self.tallies.refused

    def to_frame(self, library: Library | None = None, confidence: float = 0.95) -> Any:
        """The result document as a data frame of pandas, polars or pyarrow: a line for each statistic, as in CSV."""
        return frame_of(result_of(self, View(confidence)), library)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {plural(self.refused.total, 'row')} refused)"


def estimate_tallies(
    plan: Plans,
    tallies: Tallies,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
) -> TableEstimates:
    """The estimates from tallies; `by` names the column of their groups."""
    found = estimate_forms(CohortForms.of(plan), tallies.by, by, method, prior)
    return TableEstimates(found.forms, found.parts, found.reports, found.by, tallies)


def estimate_table(
    data: Any,
    plan: Plans,
    *,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
    **options: Any,
) -> TableEstimates:
    """Estimate from a table of reports of any size; `options` are those of `tally_table`, which counts them.

    `by` names a public column: each of its values gets an estimate with its own intervals. With plans by `cohort`,
    the estimate for everybody adds up those of the cohorts. The reports of a campaign have estimates for each part of
    its forms (`parts`, `of`). `to_frame` lists the statistics of all of them.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram())
    >>> table = {"report": [0, 1, 0, 9], "plan": [plan.id] * 4, "town": ["A", "A", "B", "B"]}
    >>> estimates = estimate_table(table, plan, by="town")
    >>> {town: estimate.reports for town, estimate in estimates.groups.items()}, estimates.refused.rows
    ({'A': 2, 'B': 1}, ((3, 'foreign'),))
    """
    return estimate_tallies(plan, tally_table(data, plan, by=by, **options), by, method, prior)
