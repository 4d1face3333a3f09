"""The result document of an estimate from a sample."""

from __future__ import annotations

import math
from collections.abc import Iterator

from priorveil.priors.label_texts import label_parts
from priorveil.reading.precision_notes import reached_precision
from priorveil.reading.statistics import Statistic
from priorveil.results.document import FigureKind, Figures, Finding, Result, ResultRow, ResultTable
from priorveil.results.findings import cohort_reports
from priorveil.results.form_estimates import ALONE, CohortForms
from priorveil.results.statistic_tables import amount_decimals, share_decimals, statistic_row
from priorveil.statistics.samples import SampleEstimate


def sample_result(estimate: SampleEstimate, forms: CohortForms, confidence: float = 0.95) -> Result:
    """The document of an estimate from a sample of a plan's reports."""
    return Result(
        id=forms.id,
        confidence=confidence,
        by=None,
        smallest_count=forms.smallest_count,
        reports=estimate.reports,
        cohorts=cohort_reports(forms, dict.fromkeys(forms.forms, estimate.reports)),
        findings=(sample_finding(estimate, confidence),),
        simultaneous=False,
        comparisons=(),
    )


def sample_finding(estimate: SampleEstimate, confidence: float = 0.95) -> Finding:
    """What the reports of a sample say; the level beside other columns is its first note."""
    low, high = estimate.interval(confidence)
    people = 1.0 if estimate.method == "hajek" else estimate.people
    half_width = float((high - low).max()) / 2 / people
    beside = () if estimate.beside is None else (estimate.beside,)
    return Finding(
        attributes=estimate.attributes or (ALONE,),
        margin_of=None,
        cohort="",
        group="",
        reports=estimate.reports,
        precision=None,
        promised=None,
        withheld=None,
        figures=Figures(
            method=estimate.method,
            people=estimate.people,
            leaning=None,
            prior_check=None,
            noticeable_change=None,
            unbiased_difference=None,
            converged=True,
            statistic=estimate.statistic,
            half_width=half_width if math.isfinite(half_width) else None,
            reached=reached_precision(
                estimate.statistic, half_width, confidence, estimate.reports, leans=False, on_set=False
            ),
            warning=None,
            notes=(*beside, *estimate.notes),
            tables=(_table(estimate, confidence),),
        ),
        public=None,
    )


def _table(estimate: SampleEstimate, confidence: float) -> ResultTable:
    """Shares are shown with the people that they stand for; means and totals as they are."""
    attributes = estimate.attributes or ((ALONE,) if estimate.statistic == "share" else ())
    of_means: FigureKind = "people" if estimate.statistic == "share" else "per person"
    kind: FigureKind = of_means if estimate.method == "hajek" else "total"
    return ResultTable(kind, attributes, (), None, tuple(_rows(estimate, confidence)), ())


def _rows(estimate: SampleEstimate, confidence: float) -> Iterator[ResultRow]:
    is_share = estimate.statistic == "share" and estimate.method == "hajek"
    people = estimate.people if is_share else 1.0

    def decimals(half_width: float) -> int | None:
        return share_decimals(half_width / people) if is_share else amount_decimals(half_width)

    numbers = zip(estimate.labels, estimate.values.tolist(), estimate.std_error.tolist(), strict=True)
    for label, value, error in numbers:
        parts = label_parts(label) if estimate.attributes else (label,)
        yield statistic_row(parts, Statistic(people * value, people * error), confidence, decimals)
