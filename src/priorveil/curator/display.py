"""What the dashboard shows: the words of plans and estimates, as parts of a response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from priorveil.collect.campaign import Campaign
from priorveil.curator import messages
from priorveil.errors import plural
from priorveil.formatting import interval_title, level_at_most
from priorveil.notions import ONLY_IF_RIGHT
from priorveil.plans import wording as plan_wording
from priorveil.plans.composition import JointLeakage
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.wording import (
    METHOD_TITLES,
    StatisticRow,
    number_tables,
    per_person_table,
    reached_precision,
)

_MOST_SHOWN = 200  # statistics on a page
NOT_FOR_PUBLICATION = (
    "Not for publication: reports can still come or be withdrawn, and two tables that differ by one report reveal that "
    "report. Publish the results once, after the campaign has closed."
)


def estimate_display(
    estimate: Estimate, confidence: float, names: Mapping[str, str] | None = None
) -> messages.Display:
    """The tables and sentences of an estimate; `names` are the labels in the words of the campaign."""
    table = per_person_table(estimate, confidence, _MOST_SHOWN)
    people = estimate.people if estimate.counts_people else None
    return messages.Display(
        label_head=table.heads[0],
        interval_head=interval_title(confidence),
        shares=estimate.counts_people,
        rows=[_display_row(row, people, names or {}) for row in table.rows],
        left_out=table.left_out,
        numbers=[
            _display_row(replace(row, label=(each.name_of(row),)))
            for each in number_tables(estimate, confidence)
            for row in each.rows
        ],
        precision=reached_precision(estimate, confidence),
    )


def _display_row(
    row: StatisticRow, people: float | None = None, names: Mapping[str, str] = MappingProxyType({})
) -> messages.DisplayRow:
    """A row, with the number of people behind a share of so many."""
    label = ", ".join(row.label)
    return messages.DisplayRow(
        label=names.get(label, label),
        value=row.value,
        lower=row.low,
        upper=row.high,
        expected=row.expected,
        value_text=row.value_text,
        interval_text=row.interval_text,
        expected_text=row.expected_text,
        people_text=None if people is None else _people_text(round(row.value * people)),
    )


def _people_text(number: int) -> str:
    return f"{number:,} {'person' if number == 1 else 'people'}"


def privacy_facts(campaign: Campaign) -> list[messages.Fact]:
    """The levels that hold for every cohort."""
    facts = plan_wording.privacy_facts(campaign.promise.values(), assumed_prior(campaign) is not None)
    return [messages.Fact(*fact) for fact in facts]


def assumed_prior(campaign: Campaign) -> str | None:
    """What holds for whom, if the prior of a cohort was only assumed; None if all priors are known."""
    cohorts = [
        name for name, form in campaign.cohorts.items() if any(part.plan.prior.assumed for part in form.parts)
    ]
    if not cohorts:
        return None
    of_cohorts = f" of {', '.join(cohorts)}" if len(campaign.cohorts) > 1 else ""
    return f"LDP holds for everybody. LIP{of_cohorts} holds {ONLY_IF_RIGHT}."


def admission_text(campaign: Campaign) -> str:
    """Who may answer, and what that means for the results."""
    if campaign.admission == "invitation":
        text = "Each answer needs an invitation: a link or a code that is good for one answer."
    else:
        text = "Everybody who knows the address can answer, also many times: strangers can change the result."
    if campaign.most_reports is not None:
        text += f" At most {plural(campaign.most_reports, 'report')} can be stored"
        text += ", and strangers can fill that up." if campaign.admission == "open" else "."
    return text


def privacy_texts(levels: JointLeakage) -> messages.PrivacyTexts:
    """The levels of one form, rounded up."""
    return messages.PrivacyTexts(*map(level_at_most, (levels.lip_lower, levels.lip_upper, levels.ldp)))


def methods(campaign: Campaign) -> list[messages.MethodTitle]:
    """The available methods: if reports alone do not determine the answer, only those that trust the prior."""
    free = all(part.plan.identifiable for form in campaign.cohorts.values() for part in form.parts)
    names: Iterable[EstimateMethod] = METHOD_TITLES if free else ("auto", "mmse")
    return [messages.MethodTitle(name, METHOD_TITLES[name]) for name in names]


def leans(campaign: Campaign, method: EstimateMethod) -> bool:
    """Whether estimates of a campaign by this method lean on the prior."""
    return campaign.leans_on_prior if method == "auto" else method == "mmse"


def withheld_because(campaign: Campaign) -> str:
    """Why the estimates of a campaign are withheld while there are few reports."""
    reports = plural(campaign.smallest_count, "report")
    several = any(len(form.slots) < len(form.parts) for form in campaign.cohorts.values())
    of_cohort = " of a cohort" if len(campaign.cohorts) > 1 else " about a question" if several else ""
    return f"Withheld: this campaign promises to show no estimate from fewer than {reports}{of_cohort}."
