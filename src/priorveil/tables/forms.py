"""Plans and campaigns as one thing: forms by cohort, and how a table of reports names and holds them.

A plan that is used alone is a form with one part. No other module of this package asks which of the two it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from priorveil.errors import NOT_SHOWN, Hint, InvalidInput
from priorveil.files.batches import Batch
from priorveil.frames import look_up
from priorveil.plans import Plan
from priorveil.plans.form import Form, Part
from priorveil.priors.domain import OUTSIDE, Codes
from priorveil.queries import require_same_statistics
from priorveil.questions.campaign import EVERYONE, Campaign
from priorveil.results.form_estimates import CohortForms
from priorveil.tables.private_columns import PrivateColumns, QuestionColumns, ValueColumns
from priorveil.tables.reports import FORM, PLAN, ReportFormat
from priorveil.tables.substitutes import Substitutes

Plans = Plan | Mapping[Any, Plan] | Campaign  # a mapping has a plan for each cohort

_FEW_REPORTS = 1 << 15  # different reports, up to which a dictionary makes a column smaller


@dataclass(frozen=True, eq=False)
class TableForms:
    """Forms by cohort, and what a table has of them.

    The cohort None is everybody. `formats` has the form of each cohort with its id and the way its reports are
    written; `id_column` names the column with these ids. `width` is the number of 64-bit words of every report, 0 if
    they are whole numbers; None if they may differ. `keeps_cohort` says whether a table of reports also has the column
    of cohorts, and `private` gives the private columns of a table of people.
    """

    formats: Mapping[Any, ReportFormat]
    id_column: str
    width: int | None
    keeps_cohort: bool
    private: Callable[[str | Sequence[str], Substitutes], PrivateColumns]

    @cached_property
    def by_cohort(self) -> dict[Any, Form]:
        """The form of each cohort."""
        return {cohort: format.form for cohort, format in self.formats.items()}

    @cached_property
    def ids(self) -> list[str]:
        """The id of each cohort's form."""
        return [format.id for format in self.formats.values()]

    @property
    def widest(self) -> int:
        """The number of 64-bit words of the longest report."""
        return max(form.width for form in self.by_cohort.values())

    @property
    def has_few_reports(self) -> bool:
        """Whether there are so few different reports that a dictionary makes them smaller."""
        parts = [form.parts for form in self.by_cohort.values()]
        outputs = (own[0].plan.mechanism.outputs if len(own) == 1 else None for own in parts)
        return all(number is not None and number < _FEW_REPORTS for number in outputs)

    @property
    def has_cohorts(self) -> bool:
        """Whether the cohorts have names."""
        return not set(self.formats) <= {None, EVERYONE}

    def check_cohort(self, cohort: str | None) -> None:
        """Refuse a column of cohorts if there are none."""
        if cohort is not None and not self.has_cohorts:
            advice = f"there are no cohorts: leave the column out, or give a {self.id_column} for each of its values"
            raise InvalidInput("cohort", cohort, advice)

    def require_cohort(self, cohort: str | None) -> None:
        """Refuse several forms without the column that chooses among them."""
        self.check_cohort(cohort)
        if cohort is None and (len(self.formats) > 1 or (self.keeps_cohort and self.has_cohorts)):
            cohorts = ", ".join(map(str, self.formats))
            advice = f"name the column that says which cohort a row belongs to: {cohorts}"
            raise InvalidInput("cohort", NOT_SHOWN, advice, Hint("cohort", "COLUMN"))

    def cohort_codes(self, batch: Batch, cohort: str | None) -> Codes:
        """The number of the cohort of every row, -2 if there is none; without a column `cohort` that of the first.

        Values of the column are compared with the names of cohorts as they are written.
        """
        if cohort is None:
            return np.zeros(batch.rows, dtype=np.int64)
        index = {str(key): code for code, key in enumerate(self.formats)}
        return look_up(batch.columns[cohort], lambda word: index.get(str(word), OUTSIDE), OUTSIDE)


def table_forms(plan: Plans) -> TableForms:
    """A plan, the plans of cohorts by the values of a column, or a campaign, as forms.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram())
    >>> forms = table_forms({1: plan, 2: plan})
    >>> forms.cohort_codes(Batch({"age": ["2", "1", None, "3"]}, 4), "age").tolist()
    [1, 0, -2, -2]
    """
    forms = CohortForms.of(plan).forms
    if isinstance(plan, Campaign):
        formats = {cohort: ReportFormat(form, form.id, form.width) for cohort, form in forms.items()}
        return TableForms(formats, FORM, None, False, partial(QuestionColumns, plan))
    parts = {cohort: form.parts[0] for cohort, form in forms.items()}
    width = _common_width(parts)
    formats = {cohort: ReportFormat(forms[cohort], part.plan.id, width) for cohort, part in parts.items()}
    return TableForms(formats, PLAN, width, True, partial(ValueColumns, [*parts.values()]))


def _common_width(parts: Mapping[Any, Part]) -> int:
    """The width of the reports of all plans; refused if it is not one, or if their answers do not add up."""
    if len({str(key) for key in parts}) < len(parts):
        advice = "two cohort keys have the same text (such as 1 and '1'): rename one"
        raise InvalidInput("plan", NOT_SHOWN, advice)
    plans = {cohort: part.plan for cohort, part in parts.items()}
    widths = {one.mechanism.width for one in plans.values()}
    if len(widths) > 1:
        advice = "their reports do not fit into one column: use plans of one kind, or a table for each cohort"
        raise InvalidInput("plan", NOT_SHOWN, advice)
    statistics = ((f"cohort {key!r}", one.query.statistics(one.reference)) for key, one in plans.items())
    require_same_statistics("plan", statistics)
    return widths.pop()
