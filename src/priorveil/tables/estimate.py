"""Tally and estimate from a column of reports: for everybody, or for each value of a public column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from priorveil.collect.campaign import Campaign
from priorveil.errors import NOT_SHOWN, ForeignReport, Hint, InvalidInput, plural
from priorveil.plans import Plan
from priorveil.priors import Prior
from priorveil.reading.combination import combine_estimates
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.tally import Tally
from priorveil.tables.batches import batch_rows
from priorveil.tables.cohorts import Plans, plans_by_cohort
from priorveil.tables.counting import BatchCounter, add_tallies, count_table
from priorveil.tables.read import RowProgress, only_text
from priorveil.tables.refusals import OnRefused, RefusedRows
from priorveil.tables.reports import PLAN, REPORT, REPORT_ID, ReportFormat
from priorveil.tables.rereading import Rereadable
from priorveil.tables.submissions import (
    CampaignEstimate,
    SubmissionTallies,
    refuse_with_campaign,
    tally_submissions,
)

_PLAN_ID = re.compile(r"[0-9a-f]{64}")
_EVERYBODY: Any = object()  # not None, which is the group of the rows without one


@dataclass(frozen=True, eq=False)
class Tallies:
    """The tallies of a table by `(cohort, group)`; None stands for no cohorts or no groups.

    `refused` has the rows in none of them. `repeated` is the number of rows that repeat a report that was already
    counted, and `without_id` the number of rows without an id, among which repeats cannot be noticed. Tallies of parts
    of a table can be added up; a report that is in two of the parts is then counted twice.
    """

    plans: Mapping[Any, Plan]
    by: Mapping[tuple[Any, Any], Tally]
    refused: RefusedRows = field(default_factory=RefusedRows)
    repeated: int = 0
    without_id: int = 0

    def __add__(self, other: Tallies) -> Tallies:
        if not isinstance(other, Tallies):
            return NotImplemented
        sums = dict(self.by)
        add_tallies(sums, other.by)
        counts = dict(Counter(self.refused.counts) + Counter(other.refused.counts))
        refused = RefusedRows(counts, self.refused.rows)
        repeated, without_id = self.repeated + other.repeated, self.without_id + other.without_id
        return Tallies({**self.plans, **other.plans}, sums, refused, repeated, without_id)

    @property
    def reports(self) -> int:
        """How many reports were counted."""
        return sum(tally.reports for tally in self.by.values())

    @property
    def groups(self) -> list[Any]:
        """The groups, in the order of their names."""
        return sorted({group for _, group in self.by}, key=lambda group: (group is None, str(group)))

    def estimate(
        self,
        method: EstimateMethod = "auto",
        prior: Prior | Sequence[float] | None = None,
        group: Any = _EVERYBODY,
    ) -> Estimate:
        """The estimate for everybody, or for one `group`; None is that of the rows without one.

        Its labels, and those of a `prior` without names, are in the order of the first plan.
        """
        labels = [plan.labels for plan in self.plans.values()]
        prior = None if prior is None else Prior.of(prior)
        if prior is not None and len(set(labels)) > 1 and len(prior) == len(labels[0]):
            prior = prior.align_to(labels[0]).with_domain(labels[0])
        # A group may be NaN, which equals itself only inside a tuple.
        selected = {
            key: tally for key, tally in self.by.items() if group is _EVERYBODY or key[1:] == (group,)
        }
        estimates = []
        for cohort, plan in self.plans.items():
            tallies = (tally for (key, _), tally in selected.items() if key == cohort)
            estimates.append(plan.estimate(sum(tallies, plan.tally([])), method, prior))
        return combine_estimates(estimates)


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """The estimates from a table of reports: for everybody and for each group."""

    everybody: Estimate
    groups: dict[Any, Estimate]
    tallies: Tallies

    @classmethod
    def of(
        cls, tallies: Tallies, by: str | None, method: EstimateMethod, prior: Prior | Sequence[float] | None
    ) -> TableEstimate:
        """The estimates from tallies; `by` says whether they are grouped."""
        groups = {} if by is None else {g: tallies.estimate(method, prior, group=g) for g in tallies.groups}
        return cls(tallies.estimate(method, prior), groups, tallies)

    @property
    def refused(self) -> RefusedRows:
        """The rows that were not counted."""
        return self.tallies.refused

    def __repr__(self) -> str:
        groups = f"{plural(len(self.groups), 'group')}, " if self.groups else ""
        return f"TableEstimate({self.everybody!r}, {groups}{self.refused.total:,} refused)"


@overload
def estimate_table(
    data: Any, plan: Campaign, *, method: EstimateMethod = "auto", **options: Any
) -> CampaignEstimate: ...


@overload
def estimate_table(
    data: Any,
    plan: Plans,
    *,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
    **options: Any,
) -> TableEstimate: ...


def estimate_table(
    data: Any,
    plan: Plans | Campaign,
    *,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
    **options: Any,
) -> TableEstimate | CampaignEstimate:
    """Estimate from a table of reports of any size; `options` are those of `tally_table`, which counts them.

    `by` names a public column: each of its values gets an estimate with its own intervals. With plans by `cohort`,
    the estimate for everybody adds up those of the cohorts. From the submissions to a campaign there is a result for
    each question, by cohort and in total.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram())
    >>> table = {"report": [0, 1, 0, 9], "plan": [plan.id] * 4, "town": ["A", "A", "B", "B"]}
    >>> estimates = estimate_table(table, plan, by="town")
    >>> {town: estimate.reports for town, estimate in estimates.groups.items()}, estimates.refused.rows
    ({'A': 2, 'B': 1}, ((3, 'foreign'),))
    """
    if isinstance(plan, Campaign):
        refuse_with_campaign(by=by, prior=prior)
        return CampaignEstimate.of(plan, tally_table(data, plan, **options), method)
    return TableEstimate.of(tally_table(data, plan, by=by, **options), by, method, prior)


@overload
def tally_table(
    data: Any, plan: Campaign, *, progress: RowProgress | None = None, on_refused: OnRefused | None = None
) -> SubmissionTallies: ...


@overload
def tally_table(
    data: Any,
    plan: Plans,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    assume_plan: bool = False,
    progress: RowProgress | None = None,
    on_refused: OnRefused | None = None,
) -> Tallies: ...


def tally_table(
    data: Any,
    plan: Plans | Campaign,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    assume_plan: bool = False,
    progress: RowProgress | None = None,
    on_refused: OnRefused | None = None,
) -> Tallies | SubmissionTallies:
    """Add up the reports in a `column` of a table by cohort and group; see `privatize_table` for the kinds of `data`.

    Memory grows with the tallies, not with the rows. Foreign and missing reports are not counted; they are listed by
    row. The column `plan` names the plan of every report; a table with reports of another plan is an error.
    `assume_plan` is for reports without that column: all are taken for reports of this plan. For a campaign, the
    submissions are added up by the form that the column `form` names.

    A report that is in the table several times, with the same id in the column `report_id`, is counted once;
    `ConflictingReports` if its rows differ. Rows without an id are counted as they are.
    """
    if isinstance(plan, Campaign):
        refuse_with_campaign(column, by, cohort, assume_plan)
        return tally_submissions(data, plan.forms, progress=progress, on_refused=on_refused)
    plans = plans_by_cohort(plan, cohort)
    formats = {key: ReportFormat.of_plan(one) for key, one in plans.items()}
    plan_ids = {one.id for one in plans.values()}
    # The plans of reports take as long to read as the reports, so the statistics of a Parquet file may do.
    made_by = None if assume_plan or plan_ids == {only_text(data, PLAN)} else PLAN
    names = [name for name in (column, by, cohort, made_by) if name is not None]
    source = Rereadable(data, names, batch_rows(format.width for format in formats.values()), [REPORT_ID])
    try:
        table = source.open()
    except InvalidInput as error:
        if error.argument == "column" and error.value == made_by:
            raise no_plan_column(error.advice) from None
        if error.argument == "column" and error.value == column:
            raise _no_report_column(column, error.advice) from None
        if (
            error.argument == "column"
            and error.value == by
            and any(by in (plan.reference.names or ()) for plan in plans.values())
        ):
            advice = f"it is an attribute of the plan, not a column of the reports; {error.advice}"
            raise InvalidInput("by", by, advice, Hint("estimate.margin", purpose="for its shares")) from None
        raise
    counts = count_table(
        table,
        source,
        lambda log: BatchCounter(formats, column, by, cohort, log, made_by),
        names,
        lambda name: _other_plan(name, plans),
        progress,
        on_refused,
    )
    return Tallies(plans, counts.by, counts.refused, counts.repeated, counts.without_id)


def _no_report_column(column: str, columns_text: str) -> InvalidInput:
    """The error for a table without reports: it may be the table of people's values."""
    advice = f"there is no such column of reports; {columns_text}"
    name = Hint("column", "NAME", purpose="if the reports have another name")
    make = Hint("privatize_table", purpose="to make reports of people's values first")
    return InvalidInput("column", column, advice, make, name)


def no_plan_column(columns_text: str) -> InvalidInput:
    """The error for a table that does not name the plan of its reports."""
    hint = Hint("assume_plan=True", purpose="if this plan made all of them")
    return InvalidInput("column", PLAN, f"nothing names the plan that made the reports; {columns_text}", hint)


def _other_plan(name: str, plans: Mapping[Any, Plan]) -> ForeignReport:
    """The error for reports of another plan. Only the id of a plan is shown: anything else may be private."""
    if not _PLAN_ID.fullmatch(name):
        hint = Hint("assume_plan=True", purpose="if it means something else and this plan made all reports")
        return ForeignReport("column", PLAN, "it does not hold ids of plans", hint)
    plan_ids = ", ".join(sorted({plan.id[:12] for plan in plans.values()})[:3])
    advice = f"read them with the plan that made them, not with {plan_ids}"
    return ForeignReport("data", NOT_SHOWN, f"reports of plan {name[:12]}; {advice}")
