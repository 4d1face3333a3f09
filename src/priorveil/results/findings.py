"""The result document from estimates: what everybody, each cohort or each group says about each part and margin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from priorveil.errors import InvalidInput
from priorveil.plans.composition import Names
from priorveil.plans.form import Form
from priorveil.reading.estimate import Estimate
from priorveil.reading.precision import Precision
from priorveil.reading.precision_notes import promised_precision
from priorveil.results.comparisons import compare_groups
from priorveil.results.document import CohortReports, Figures, Finding, Levels, Result, Totals, Withheld
from priorveil.results.figures import FigureMaker
from priorveil.results.form_estimates import ALONE, CohortForms, Estimates, PartEstimates, group_text

_LEVELS = Levels.__struct_fields__


@dataclass(frozen=True)
class View:
    """What to show of estimates: the confidence of intervals, and for tables of several attributes which ones.

    `margin` are the attributes whose margin is wanted in place of whole tables, and `within` those whose groups shares
    are wanted in. Parts that are not about all of them are left out. With `simultaneous` the intervals of all
    differences of a comparison of groups hold together with the confidence.
    """

    confidence: float = 0.95
    margin: Names = ()
    within: Names = ()
    simultaneous: bool = False

    @property
    def attributes(self) -> Names:
        """The attributes of the margin, those of the groups first; empty for whole tables."""
        return tuple(dict.fromkeys([*self.within, *self.margin])) if self.margin else ()

    def tables(self, estimates: Estimates) -> list[PartEstimates]:
        """The parts to show, each followed by its margins."""
        needed = {*self.attributes, *self.within}
        parts = [
            part for part in estimates.parts if needed <= {*part.attributes} or len(estimates.parts) == 1
        ]
        if not parts:
            known = "; ".join(" x ".join(part.attributes) for part in estimates.parts)
            raise InvalidInput(
                "margin", sorted(needed), f"they are not reported together; these are: {known}"
            )
        if self.attributes:
            return [part.margin(*self.attributes) for part in parts]
        if self.within:
            return parts
        return [table for part in parts for table in (part, *part.margins())]

    def figures(self, estimate: Estimate, part: PartEstimates) -> Figures:
        """What an estimate of a part says."""
        questions = part.forms.questions
        return FigureMaker(estimate, part.attributes, questions, self.confidence, self.within).figures()


def finding_of(estimate: Estimate, confidence: float = 0.95) -> Finding:
    """What an estimate alone says."""
    attributes = estimate.attributes or (ALONE,)
    questions = {name: name for name in attributes}
    return Finding(
        attributes=attributes,
        margin_of=None,
        cohort="",
        group="",
        reports=estimate.reports,
        precision=None,
        promised=None,
        withheld=None,
        figures=FigureMaker(estimate, attributes, questions, confidence).figures(),
        public=None,
    )


def result_of(
    estimates: Estimates,
    view: View = View(),
    public: Estimates | None = None,
    reports: Mapping[Any, int] | None = None,
    totals: Mapping[Any, Totals] | None = None,
) -> Result:
    """The document of estimates. The time that it takes grows with the values, never with the reports.

    `public` are the estimates that the public is shown in place of these. `reports` has the submissions of each cohort,
    where they are counted apart from their parts, and `totals` what published totals tell of each.
    """
    forms, counted = estimates.forms, estimates.reports if reports is None else reports
    own = view.tables(estimates)
    shown = own if public is None else view.tables(public)
    return Result(
        id=forms.id,
        confidence=view.confidence,
        by=estimates.by,
        smallest_count=forms.smallest_count,
        reports=sum(counted.values()),
        cohorts=cohort_reports(forms, counted, totals),
        findings=tuple(
            _finding(view, part, one, other)
            for part, same in zip(own, shown, strict=True)
            for one, other in zip(_selections(part), _selections(same), strict=True)
        ),
        simultaneous=view.simultaneous,
        comparisons=tuple(
            compared
            for part in own
            if (compared := compare_groups(part, view.confidence, view.simultaneous)) is not None
        ),
    )


# Every request of a campaign's results needs the same promises again.
@lru_cache(maxsize=64)
def _promised(form: Form, people: int) -> Mapping[Names, Precision]:
    """The precision that is expected of each part with so many people."""
    return form.expected_precision(people)


def cohort_reports(
    forms: CohortForms, reports: Mapping[Any, int], totals: Mapping[Any, Totals] | None = None
) -> tuple[CohortReports, ...]:
    """Each cohort with its levels, how many reports it has, and what published totals tell of its people."""
    return tuple(
        CohortReports(
            cohort=_text(name),
            form=form.id,
            reports=reports[name],
            levels=Levels(*(getattr(form.levels(), bound) for bound in _LEVELS)),
            identifiable=all(part.plan.identifiable for part in form.parts),
            totals=(totals or {}).get(name),
        )
        for name, form in forms.forms.items()
    )


@dataclass(frozen=True, eq=False)
class _Selection:
    """The people whom a finding is about: their estimate, or why it is withheld."""

    cohort: str
    group: str | None
    reports: int
    precision: Precision | None
    withheld: Withheld | None
    estimate: Estimate | None


def _selections(part: PartEstimates) -> Iterator[_Selection]:
    """Each cohort if there are several, or each group; then everybody."""
    people = part.forms.people
    promises = {
        name: None if part.margin_of else _promised(part.forms.forms[name], people)[part.attributes]
        for name in part.parts
    }
    if part.group_reports:
        for group, reports in part.group_reports.items():
            estimate = part.groups.get(group)
            why = part.why_withheld(reports, estimate)
            yield _Selection("", group_text(group), reports, None, why, estimate)
    elif len(part.forms.forms) > 1:
        for name, (_, reports) in part.parts.items():
            estimate = part.cohorts.get(name)
            why = part.why_withheld(reports, estimate)
            yield _Selection(_text(name), "", reports, promises[name], why, estimate)
    alone = next(iter(promises.values())) if len(part.forms.forms) == 1 else None
    total = None if part.withheld else part.everybody
    yield _Selection("", "", part.reports, alone, part.withheld, total)


def _finding(view: View, part: PartEstimates, own: _Selection, public: _Selection) -> Finding:
    figures = None if own.estimate is None else view.figures(own.estimate, part)
    other = None if public.estimate is own.estimate else public.estimate
    shown = figures if other is None else view.figures(other, part)
    return Finding(
        attributes=part.attributes,
        margin_of=part.margin_of,
        cohort=own.cohort,
        group=own.group,
        reports=own.reports,
        precision=own.precision,
        promised=None if own.precision is None else promised_precision(own.precision),
        withheld=own.withheld,
        figures=figures,
        public=None if shown == figures else shown,
    )


def _text(cohort: Any) -> str:
    """The name of a cohort; empty for that of a plan used alone."""
    return "" if cohort is None else str(cohort)
