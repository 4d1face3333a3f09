"""What the dashboard shows: plans and estimates in words, as parts of a response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from priorveil.collect.campaign import Campaign
from priorveil.collect.results import Figures, NamedAnswer, Result
from priorveil.curator import result_messages as messages
from priorveil.errors import plural
from priorveil.formatting import interval_title, level_at_most, percent
from priorveil.plans import wording as plan_wording
from priorveil.plans.composition import JointLeakage
from priorveil.priors.label_texts import label_text
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.wording import (
    METHOD_TITLES,
    NUMBERS,
    StatisticRow,
    StatisticTable,
    mean_name,
    per_person_table,
    reached_precision,
    selection_text,
    shown_first,
)

_MOST_SHOWN = 200  # statistics on a page
TICKED = "Ticked"  # the head of single options of "tick all that apply"
TICKED_SET = "Everything that a person ticked"  # the head of sets of them
EVERYONE = "Everyone"  # the label of the average over all groups
NOT_FOR_PUBLICATION = (
    "Not for publication: reports can still arrive or be withdrawn, and two tables that differ by one report reveal "
    "that report. Publish the results once, after the campaign has closed."
)


def estimate_display(result: Result, figures: Figures, confidence: float) -> messages.Display:
    """The tables and sentences of an estimate, in the words of the campaign.

    The average over everybody stands below those of the groups, and no number stands there twice.
    """
    estimate = figures.estimate
    table = per_person_table(estimate, confidence, _MOST_SHOWN)
    selection = selection_text(estimate, shown_first(estimate, _MOST_SHOWN))
    people = estimate.people if estimate.counts_people else None
    levels = {label_text(label): result.levels(estimate, label) for label in estimate.labels}
    named = [(row, levels.get(row.label[0], {})) for row in table.rows]
    rows = [_display_row(result, row, own, people) for row, own in named if not result.is_spare(own)]
    others = figures.tables(confidence)
    statistics = [row for each in others if each.heads == NUMBERS for row in each.rows]
    numbers = [_number_row(result, row) for row in statistics if not _is_shown(row, table.rows)]
    averaged, kind = estimate.number_by_group, _label_kind(result, estimate)
    heads = {"ticked": TICKED, "ticked set": TICKED_SET}
    head = heads.get(kind, table.heads[0])
    if averaged is not None:
        head = _average_of(result, averaged.number)
        everyone = [row for row in numbers if row.name == mean_name(averaged.number)]
        rows += [msgspec.structs.replace(row, label=EVERYONE, name=EVERYONE) for row in everyone]
        numbers = [row for row in numbers if row not in everyone]
    return messages.Display(
        label_head=head,
        label_kind=kind,
        interval_head=interval_title(confidence),
        shares=estimate.counts_people,
        averages_of=None if averaged is None else averaged.number,
        rows=rows,
        left_out=selection,
        numbers=numbers,
        groups=[_group_table(result, figures, each) for each in others if each.heads != NUMBERS],
        precision=reached_precision(estimate, confidence),
    )


def _label_kind(result: Result, estimate: Estimate) -> messages.LabelKind:
    if estimate.number_by_group is not None:
        return "group"
    if result.option is not None:
        return "ticked"
    if len(result.attributes) > 1 and len(result.questions) == 1:
        return "ticked set"
    return "answer" if estimate.counts_people else "quantity"


def _named_answer(answer: NamedAnswer) -> messages.NamedAnswer:
    ends = None if answer.range is None else [float(end) for end in answer.range]
    return messages.NamedAnswer(
        answer.question, list(answer.options), list(answer.unticked), ends, answer.level, answer.asked
    )


def _is_shown(statistic: StatisticRow, rows: Sequence[StatisticRow]) -> bool:
    """Whether a row has the numbers of this statistic, but for rounding: the mean of a grid is its sum per person."""
    return any(np.allclose(statistic.numbers, row.numbers, rtol=1e-9, atol=0) for row in rows)


def _average_of(result: Result, number: str) -> str:
    unit = result.unit_of(number)
    return f"Average: {result.name_of(number)}" + (f" ({unit})" if unit else "")


def _number_row(result: Result, row: StatisticRow) -> messages.DisplayRow:
    """The mean of a number, or one of its quantiles."""
    (name,) = row.label
    kind, _, rest = name.partition(" ")
    label = percent(float(rest)) + " of people have at most" if kind == "quantile" else "Average per person"
    if kind == "mean" and rest:
        label = _average_of(result, rest)
    return msgspec.structs.replace(_display_row(result, row, {}), label=label)


def _group_table(result: Result, figures: Figures, table: StatisticTable) -> messages.GroupTable:
    """A table of the averages of groups, or of the shares within them."""
    others = [name for name in table.heads if name not in figures.by]
    shares = bool(others)
    number = (
        others[-1]
        if shares
        else next(name for name in result.attributes if table.quantity == mean_name(name))
    )
    by = [name for name in table.heads if name not in others]
    groups = " x ".join(map(result.name_of, by))
    what = f"Shares within each group: {result.name_of(number)}" if shares else _average_of(result, number)
    levels = [dict(zip(table.heads, row.label, strict=True)) for row in table.rows]
    return messages.GroupTable(
        title=f"{what}, by {groups}" if by else f"Among those who were asked: {result.title}",
        shares=shares,
        of=number,
        by=by,
        rows=[
            _display_row(result, row, own)
            for row, own in zip(table.rows, levels, strict=True)
            if not result.is_spare(own)
        ],
    )


def _display_row(
    result: Result, row: StatisticRow, levels: Mapping[str, str], people: float | None = None
) -> messages.DisplayRow:
    """A row, with the number of people behind a share of so many."""
    count = None if people is None else round(row.value * people)
    lower, upper = row.ends
    name = ", ".join(row.label)
    answers = result.answers(levels)
    words = result.words(answers)
    return messages.DisplayRow(
        label=", ".join(words) or name,
        name=name,
        words=words,
        answers=list(map(_named_answer, answers)),
        value=row.value,
        lower=lower,
        upper=upper,
        expected=row.expected,
        value_text=row.value_text,
        interval_text=row.interval_text,
        expected_text=row.expected_text,
        people=count,
        people_text=None if count is None else _people_text(count),
    )


def _people_text(number: int) -> str:
    return f"{number:,} {'person' if number == 1 else 'people'}"


def privacy_facts(campaign: Campaign) -> list[messages.Fact]:
    """The levels that hold for every cohort."""
    return [messages.Fact(*fact) for fact in plan_wording.privacy_facts(campaign.promise.values())]


def admission_text(campaign: Campaign) -> str:
    """Who may answer, and what that means for the results."""
    if campaign.admission == "invitation":
        text = "Each answer needs an invitation: a link or a code that is valid for one answer."
    else:
        text = "Anyone who knows the address can answer, even many times: strangers can change the result."
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


def withheld_because(campaign: Campaign) -> str:
    """Why the estimates of a campaign are withheld while there are few reports."""
    reports = plural(campaign.smallest_count, "report")
    several = any(len(form.slots) < len(form.parts) for form in campaign.cohorts.values())
    of_cohort = " of a cohort" if len(campaign.cohorts) > 1 else " about a question" if several else ""
    return f"Withheld: this campaign promises to show no estimate from fewer than {reports}{of_cohort}."
