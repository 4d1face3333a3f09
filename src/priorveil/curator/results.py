"""Results of a campaign: the estimates of every part of its forms, by cohort and in total, and the margins of tables.

A result is withheld where it has fewer reports than the campaign promises. Then its total over all cohorts is withheld
too: without the other cohorts it would be the withheld one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from priorveil.collect.campaign import Campaign, State
from priorveil.collect.questions import Question
from priorveil.curator import display, messages
from priorveil.curator.store import FormTally
from priorveil.errors import NotIdentifiable
from priorveil.plans.composition import Names
from priorveil.plans.form import Form, Part
from priorveil.priors import Label
from priorveil.priors.label_texts import label_parts, label_text
from priorveil.reading.combination import combine_estimates
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.wording import LEANING, precision_sentence

_PRIVACY = messages.Privacy.__struct_fields__

Estimates = Mapping[Names, Estimate]  # of one cohort, by attributes: those with enough reports


def campaign_estimates(
    campaign: Campaign, tallies: Mapping[str, FormTally], method: EstimateMethod, level: float, state: State
) -> messages.Estimates:
    """All results of a campaign. The time they take grows with the values, never with the reports."""
    least = max(campaign.smallest_count, 1)
    estimates = {
        name: _estimates(form, tallies[form.id], method, least) for name, form in campaign.cohorts.items()
    }
    return messages.Estimates(
        campaign=campaign.id,
        title=campaign.text(campaign.title),
        level=level,
        smallest_count=campaign.smallest_count,
        leans_on_prior=campaign.leans_on_prior,
        caution=LEANING if display.leans(campaign, method) else None,
        withheld_because=display.withheld_because(campaign),
        facts=display.privacy_facts(campaign),
        assumed_prior=display.assumed_prior(campaign),
        admission=display.admission(campaign),
        methods=display.methods(campaign),
        reports=sum(tally.reports for tally in tallies.values()),
        cohorts=[
            messages.Cohort(
                cohort=name,
                form=form.id,
                reports=tallies[form.id].reports,
                privacy=messages.Privacy(*(getattr(campaign.promise[name], bound) for bound in _PRIVACY)),
                privacy_texts=display.privacy_texts(campaign.promise[name]),
            )
            for name, form in campaign.cohorts.items()
        ],
        results=list(_results(campaign, tallies, estimates, level)),
        state=state,
    )


def _estimates(form: Form, tally: FormTally, method: EstimateMethod, least: int) -> Estimates:
    """The estimates of all parts with enough reports."""
    parts = zip(form.parts, tally.parts, strict=True)
    shown = [part.attributes for part, its_tally in parts if its_tally.reports >= least]
    return form.estimate(tally.parts, method, shown)


def _results(
    campaign: Campaign, tallies: Mapping[str, FormTally], estimates: Mapping[str, Estimates], level: float
) -> Iterator[messages.Result]:
    """A result for every part, each followed by its margins if it is about several attributes."""
    all_attributes = dict.fromkeys(
        part.attributes for form in campaign.cohorts.values() for part in form.parts
    )
    for attributes in all_attributes:
        cohorts = {
            name: (part, tally.reports)
            for name, form in campaign.cohorts.items()
            for part, tally in zip(form.parts, tallies[form.id].parts, strict=True)
            if part.attributes == attributes
        }
        result = partial(_result, campaign, cohorts, level)
        whole = {name: estimates[name][attributes] for name in cohorts if attributes in estimates[name]}
        yield result(attributes, whole, None)
        if len(attributes) > 1:
            for attribute in attributes:
                with suppress(NotIdentifiable):  # the plan was not designed for it
                    margins = {name: estimate.margin(attribute) for name, estimate in whole.items()}
                    yield result((attribute,), margins, attributes)


def _result(
    campaign: Campaign,
    cohorts: Mapping[str, tuple[Part, int]],
    level: float,
    attributes: Names,
    estimates: Mapping[str, Estimate],
    margin_of: Names | None,
) -> messages.Result:
    """The result about some attributes, in each cohort and in total."""
    texts = Texts(campaign, attributes)
    entries: list[messages.Shown | messages.Withheld] = []
    for name, (part, reports) in cohorts.items():
        plan = part.plan
        about: dict[str, Any] = {"cohort": name, "plan": plan.id, "identifiable": plan.identifiable}
        if margin_of is None:
            about |= {
                "prior": plan.query.expected_answer(plan.reference).tolist(),
                "precision": messages.Precision(**plan.precision.document()),
                "promise": precision_sentence(plan.precision),
            }
        if name in estimates:
            entries.append(
                messages.Shown(**about, **_estimate_fields(estimates[name], level, texts), withheld=False)
            )
        else:
            entries.append(messages.Withheld(**about, reports=reports, withheld=True))
    # A cohort that reports about these attributes in another way is no part of the total.
    whole = len(estimates) == len(campaign.cohorts)
    total = combine_estimates([*estimates.values()]) if whole else None
    return messages.Result(
        attributes=list(attributes),
        questions=texts.questions,
        title=texts.title,
        unit=texts.unit,
        margin_of=None if margin_of is None else list(margin_of),
        cohorts=entries,
        total=messages.Total(**_estimate_fields(total, level, texts)) if total else None,
    )


def _estimate_fields(estimate: Estimate, level: float, texts: Texts) -> dict[str, Any]:
    """The fields of an estimate in a response."""
    record = estimate.record(level)
    statistics = [messages.NumberStatistic(**statistic) for statistic in record["statistics"]]
    names = {label_text(label): texts.label(label) for label in estimate.labels}
    shown = display.estimate_display(estimate, level, names)
    return {**record, "people": estimate.people, "statistics": statistics, "display": shown}


class Texts:
    """What the attributes of a result are called, in the default language of the campaign."""

    def __init__(self, campaign: Campaign, attributes: Names) -> None:
        self._campaign = campaign
        question_of = {a: question for question in campaign.questions for a in question.attributes}
        self._asked = [(question_of[attribute], attribute) for attribute in attributes]
        questions = {question.name: question for question, _ in self._asked}
        self.questions = list(questions)
        self.unit = campaign.text(self._asked[0][0].unit) if len(questions) == 1 else ""
        whole = len(questions) == 1 and len(attributes) > 1  # all options of one question
        titles = (
            [campaign.text(self._asked[0][0].text)]
            if whole
            else map(self._name, *zip(*self._asked, strict=True))
        )
        self.title = " x ".join(titles)

    def label(self, label: Label) -> str:
        """A value in words; anything else, such as the name of a statistic, as it is."""
        parts = label_parts(label)
        if len(parts) != len(self._asked):
            return label_text(label)
        return ", ".join(self._level(*asked, part) for asked, part in zip(self._asked, parts, strict=True))

    def _name(self, question: Question, attribute: str) -> str:
        text, option = self._campaign.text(question.text), attribute.removeprefix(f"{question.name}/")
        if question.kind != "choices":
            return text
        return f"{text} {self._campaign.text(question.options[option])}"

    def _level(self, question: Question, attribute: str, level: Any) -> str:
        text = label_text(level)
        if question.kind == "choice" and text in question.options:
            return self._campaign.text(question.options[text])
        return text
