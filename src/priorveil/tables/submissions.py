"""Submissions to a campaign in a table: the columns report_id, form and report, added up by form.

A curator exports such tables, and `privatize_table` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from priorveil.collect.campaign import Campaign
from priorveil.collect.results import Result, results
from priorveil.errors import NOT_SHOWN, ForeignReport, Hint, InvalidInput, plural
from priorveil.plans.form import Form
from priorveil.reading.estimate import EstimateMethod
from priorveil.reading.tally import Tally
from priorveil.tables.batches import batch_rows
from priorveil.tables.counting import BatchCounter, ReportCounts, count_table
from priorveil.tables.read import RowProgress
from priorveil.tables.refusals import OnRefused, RefusedRows
from priorveil.tables.reports import FORM, REPORT, REPORT_ID, ReportFormat
from priorveil.tables.rereading import Rereadable

_FORM_ID = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class SubmissionTallies:
    """The tallies of the parts of each form, by its id, and how many submissions were counted.

    `refused` has the rows that no form has made. `repeated` is the number of rows that repeat a submission that was
    already counted, `without_id` the number of rows without an id, among which repeats cannot be noticed.
    """

    by_form: Mapping[str, tuple[Tally, ...]]
    reports: int
    refused: RefusedRows = field(default_factory=RefusedRows)
    repeated: int = 0
    without_id: int = 0

    @classmethod
    def of(cls, forms: Mapping[str, Form], counts: ReportCounts) -> SubmissionTallies:
        """The tallies of the parts of forms, from those of whole submissions by the id of their form."""
        sums = {id: np.zeros(ReportFormat.of_form(form).counts_shape, np.int64) for id, form in forms.items()}
        for (id, _), tally in counts.by.items():
            sums[id] += tally.counts
        by_form = {id: forms[id].tallies(cells) for id, cells in sums.items()}
        return cls(by_form, counts.reports, counts.refused, counts.repeated, counts.without_id)


@dataclass(frozen=True, eq=False)
class CampaignEstimate:
    """The results of a campaign from a table of submissions: one for each part of its forms, and for each margin."""

    results: tuple[Result, ...]
    tallies: SubmissionTallies

    @classmethod
    def of(cls, campaign: Campaign, tallies: SubmissionTallies, method: EstimateMethod) -> CampaignEstimate:
        """The results from tallies; those with fewer reports than the campaign promises are withheld."""
        return cls(tuple(results(campaign, tallies.by_form, method)), tallies)

    @property
    def refused(self) -> RefusedRows:
        """The rows that were not counted."""
        return self.tallies.refused

    def __repr__(self) -> str:
        counted = f"{plural(self.tallies.reports, 'submission')}, {self.refused.total:,} refused"
        return f"CampaignEstimate({plural(len(self.results), 'result')} from {counted})"


def tally_submissions(
    data: Any,
    forms: Mapping[str, Form],
    *,
    progress: RowProgress | None = None,
    on_refused: OnRefused | None = None,
) -> SubmissionTallies:
    """Add up the submissions of a table by form; see `privatize_table` for the kinds of `data`.

    Memory grows with the tallies, not with the rows. A submission that is there several times, with the same id, is
    counted once. A table with submissions of another form is an error.
    """
    formats = {id: ReportFormat.of_form(form) for id, form in forms.items()}
    names = [REPORT, FORM]
    source = Rereadable(data, names, batch_rows(format.width for format in formats.values()), [REPORT_ID])
    try:
        table = source.open()
    except InvalidInput as error:
        if error.argument == "column" and error.value in names:
            make = Hint("privatize_table", purpose="to make submissions of people's answers first")
            advice = f"there is no such column of submissions; {error.advice}"
            raise InvalidInput("column", error.value, advice, make) from None
        raise
    counts = count_table(
        table,
        source,
        lambda log: BatchCounter(formats, REPORT, log=log, made_by=FORM),
        names,
        _other_form,
        progress,
        on_refused,
    )
    return SubmissionTallies.of(forms, counts)


def refuse_with_campaign(
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    assume_plan: bool = False,
    prior: Any = None,
) -> None:
    """Refuse options of plans: the submissions to a campaign name their form, and its results have every cohort."""
    others = {
        "column": None if column == REPORT else column,
        "by": by,
        "cohort": cohort,
        "assume_plan": assume_plan or None,
        "prior": prior,
    }
    for name, value in others.items():
        if value is not None:
            advice = "this is for plans: the results of a campaign have every question and cohort"
            raise InvalidInput(name, NOT_SHOWN, advice)


def _other_form(name: str) -> InvalidInput:
    """The error for submissions of another form. Only an id is shown: anything else may be private."""
    if not _FORM_ID.fullmatch(name):
        return InvalidInput(
            "column",
            FORM,
            "it does not hold ids of forms: give what `privatize` has made or a curator has exported",
        )
    advice = "read them with the campaign that they answer"
    return ForeignReport(
        "data", NOT_SHOWN, f"submissions of form {name[:12]}, which this campaign does not have; {advice}"
    )
