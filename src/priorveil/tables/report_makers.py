"""What makes the reports of the rows of a table: plans for private columns, or the forms of a campaign."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.collect.campaign import EVERYONE, Campaign
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput
from priorveil.frames import Indices, as_column, take
from priorveil.mechanisms.randomness import Source
from priorveil.plans import Plan
from priorveil.plans.form import Form
from priorveil.priors import Label
from priorveil.priors.domain import MISSING, OUTSIDE, Codes
from priorveil.tables.answers import attribute_columns
from priorveil.tables.batches import Batch
from priorveil.tables.cohorts import Plans, cohort_codes, plans_by_cohort
from priorveil.tables.refusals import MISSING_ENTRY, NO_COHORT, NO_PLAN, WRONG_ANSWER, Reasons, refused_rows
from priorveil.tables.reports import FORM, PLAN
from priorveil.tables.substitutes import Substitutes

_FEW_REPORTS = 1 << 15  # different ones; a dictionary makes these smaller


@dataclass(frozen=True, eq=False)
class Reports:
    """Reports with their rows and the numbers of their plans or forms, and the indices of the refused rows by reason.

    `substituted` says for how many cells a label was taken because they were empty ("missing") or had another value
    ("other").
    """

    reports: npt.NDArray[Any] | list[bytes]
    indices: Indices
    makers: Codes
    refused: dict[str, Indices]
    substituted: Counter[str] = field(default_factory=Counter)


class ReportMaker(ABC):
    """Makes a report of each row of a batch.

    `columns` are the private columns; a report is made of them. `cohort` is the public column that chooses among plans
    or forms, and `keeps_cohort` says whether reports can only be read together with it. `made_by` names the column
    with the ids of plans or forms, and `ids` has these. `width` is the number of 64-bit words of a report, 0 if it is a
    whole number; reports of a campaign are bytes, whose `width` is that of the longest.
    """

    columns: Sequence[str]
    cohort: str | None
    keeps_cohort: bool
    made_by: str
    ids: Sequence[str]
    width: int
    same_width: bool  # whether all reports have this width
    few_different: bool  # whether there are few different reports, so that a dictionary makes them smaller

    @abstractmethod
    def make(self, batch: Batch, source: Source) -> Reports:
        """The reports of all rows that are not refused."""

    def public_reason(self, reason: str) -> str:
        """Why a row is refused, as it may stand beside the reports of others."""
        return reason


def report_maker(
    plan: Plans | Campaign,
    column: str | Sequence[str],
    cohort: str | None,
    missing: Label | None,
    other: Label | None,
) -> ReportMaker:
    """What makes the reports of a table: see `privatize_table` for the arguments."""
    substitutes = Substitutes(missing, other)
    if not isinstance(plan, Campaign):
        return PlanReports(plan, column, cohort, substitutes)
    if column:
        names = ", ".join(question.name for question in plan.questions)
        advice = f"a campaign names its columns itself, one for each question: {names}"
        given = column if isinstance(column, str) else ", ".join(column)
        raise InvalidInput("column", given, advice)
    return FormReports(plan, cohort, substitutes)


class PlanReports(ReportMaker):
    """Reports of private columns, by one plan or by one for each cohort."""

    made_by = PLAN
    keeps_cohort = True
    same_width = True

    def __init__(
        self, plan: Plans, column: str | Sequence[str], cohort: str | None, substitutes: Substitutes
    ) -> None:
        self._plans = plans_by_cohort(plan, cohort)
        self._substitutes = substitutes
        plans = list(self._plans.values())
        self.columns = _private_columns(column, plans)
        self.cohort = cohort
        self.ids = [one.id for one in plans]
        self.width = plans[0].mechanism.width
        self.few_different = max(one.mechanism.outputs or _FEW_REPORTS for one in plans) < _FEW_REPORTS
        for one in plans:
            substitutes.require_known([*one.domain.attributes.values()] or [one.domain])

    def make(self, batch: Batch, source: Source) -> Reports:
        """The reports of the values in one or several columns."""
        values = [batch.columns[name] for name in self.columns]
        plan_codes, substituted = cohort_codes(batch, self.cohort, self._plans), Counter[str]()
        plans = list(self._plans.values())
        reports = plans[0].mechanism.new_reports(batch.rows)
        codes, reasons = plan_codes.copy(), np.full(batch.rows, None, dtype=object)
        for number, plan in enumerate(plans):
            rows = np.flatnonzero(plan_codes == number)
            own = [take(column, rows) for column in values]
            own = self._substitutes.fill_all(own, plan.domain, substituted)
            codes[rows] = plan.domain.encode(own, source.words)
            outside = np.flatnonzero(codes[rows] == OUTSIDE)
            if len(outside):
                reasons[rows[outside]] = plan.domain.reasons([take(column, outside) for column in own])
            inside = rows[codes[rows] >= 0]
            reports[inside] = plan.mechanism.sample(codes[inside], source)
        reasons[plan_codes == OUTSIDE] = NO_PLAN
        reasons[codes == MISSING] = MISSING_ENTRY
        accepted, refused = np.flatnonzero(codes >= 0), _by_reason(reasons, np.flatnonzero(codes < 0))
        return Reports(reports[accepted], accepted, plan_codes[accepted], refused, substituted)


class FormReports(ReportMaker):
    """Submissions to a campaign, from a column for each question."""

    made_by = FORM
    keeps_cohort = False  # the form says it
    same_width = False
    few_different = False

    def __init__(self, campaign: Campaign, cohort: str | None, substitutes: Substitutes) -> None:
        if cohort is None and len(campaign.cohorts) > 1:
            advice = f"name the column that says which cohort a row is of: {', '.join(campaign.cohorts)}"
            raise InvalidInput("cohort", NOT_SHOWN, advice, Hint("cohort", "COLUMN"))
        if cohort in [question.name for question in campaign.questions]:
            advice = "this column is private: its answers would choose the form, which is public"
            raise InvalidInput("cohort", cohort, advice)
        if cohort is not None and list(campaign.cohorts) == [EVERYONE]:
            raise InvalidInput("cohort", cohort, "the campaign has no cohorts: leave the column out")
        substitutes.require_known([q.option_domain for q in campaign.questions if q.options])
        self._campaign = campaign
        self._substitutes = substitutes
        self.columns = [question.name for question in campaign.questions]
        self.cohort = cohort
        self.ids = [form.id for form in campaign.cohorts.values()]
        self.width = max(form.width for form in campaign.cohorts.values())

    def make(self, batch: Batch, source: Source) -> Reports:
        """The submissions of all rows with an answer to every question that is asked; each row is drawn once."""
        cohorts, substituted = self._campaign.cohorts, Counter[str]()
        form_codes = cohort_codes(batch, self.cohort, cohorts)
        levels, reasons = attribute_columns(self._campaign, batch, self._substitutes, substituted)
        reasons[form_codes == OUTSIDE] = NO_COHORT
        for number, form in enumerate(cohorts.values()):
            _refuse_left_out(form, levels, reasons, np.flatnonzero(form_codes == number))
        refused = refused_rows(reasons)
        accepted = np.delete(np.arange(batch.rows), refused)
        submissions = np.full(batch.rows, None, dtype=object)  # bytes of any length
        for number, form in enumerate(cohorts.values()):
            rows = accepted[form_codes[accepted] == number]
            if rows.size:
                words = form.privatize({name: levels[name][rows] for name in form.attributes}, rng=source)
                submissions[rows] = [row.tobytes() for row in words]
        reports, makers = submissions[accepted].tolist(), form_codes[accepted]
        return Reports(reports, accepted, makers, _by_reason(reasons, refused), substituted)

    def public_reason(self, reason: str) -> str:
        """Without the question: that it was asked tells how the earlier ones were answered."""
        return reason if reason == NO_COHORT else WRONG_ANSWER


def _refuse_left_out(
    form: Form, levels: Mapping[str, npt.NDArray[Any]], reasons: Reasons, rows: Indices
) -> None:
    """Refuse rows whose levels are a combination that the plan of a part leaves out, whether or not it is drawn."""
    for part in form.parts:
        rows = np.setdiff1d(rows, refused_rows(reasons))
        if len(part.attributes) > 1 and rows.size:
            why = part.plan.domain.reasons([as_column(levels[name][rows]) for name in part.attributes])
            for at in refused_rows(why).tolist():
                reasons[rows[at]] = f"{' x '.join(part.attributes)}: {why[at]}"


def _by_reason(reasons: Reasons, refused: Indices) -> dict[str, Indices]:
    whys = reasons[refused]
    return {why: refused[whys == why] for why in dict.fromkeys(whys.tolist())}


def _private_columns(column: str | Sequence[str], plans: Collection[Plan]) -> list[str]:
    """The private columns, one for each attribute of the plans: by name if they have its names, or in its order.

    None at all stand for those that have its names.
    """
    columns = [column] if isinstance(column, str) else list(column)
    attributes = {plan.reference.names for plan in plans}
    names = attributes.pop()
    if attributes:
        advice = "the plans differ in their attributes or in the order of them: use the same for all"
        raise InvalidInput("plan", NOT_SHOWN, advice)
    if not columns:
        if names is None:
            raise InvalidInput("column", NOT_SHOWN, "the plan is for one attribute", Hint("column", "NAME"))
        return list(names)
    if len(columns) != (1 if names is None else len(names)):
        purpose = "one attribute" if names is None else ", ".join(names)
        raise InvalidInput("column", columns, f"the plan is for {purpose}: give a column for each")
    if names is None or set(names) == set(columns):
        return columns if names is None else list(names)
    for name, given in zip(names, columns, strict=True):
        if given != name and given in names:
            advice = f"{given!r} is in the place of {name}: give the columns in the order {', '.join(names)}"
            raise InvalidInput("column", columns, advice)
    return columns
