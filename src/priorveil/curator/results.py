"""The results of a campaign as the API sends them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import msgspec

from priorveil.collect.campaign import Campaign, State, public_state, stamp
from priorveil.collect.results import Figures, Result, results
from priorveil.collect.results_csv import statistic_lines, write_csv
from priorveil.curator import display
from priorveil.curator import result_messages as messages
from priorveil.curator.store import FormTally
from priorveil.reading.estimate import EstimateMethod
from priorveil.reading.wording import LEANING, precision_sentence

_LEVEL = 0.95  # of published intervals
_PRIVACY = messages.Privacy.__struct_fields__


def campaign_estimates(
    campaign: Campaign,
    tallies: Mapping[str, FormTally],
    method: EstimateMethod,
    level: float,
    state: State,
    or_default: bool = False,
) -> messages.Estimates:
    """All results of a campaign. The time they take grows with the values, never with the reports.

    With `or_default`, what the method cannot read is read by the default one.
    """
    parts = {form: tally.parts for form, tally in tallies.items()}
    found = list(results(campaign, parts, method, or_default))
    leans = any(figures.estimate.leans_on_prior for each in found for figures in each.estimates.values())
    reports = sum(tally.reports for tally in tallies.values())
    return messages.Estimates(
        campaign=campaign.id,
        title=campaign.text(campaign.title),
        level=level,
        smallest_count=campaign.smallest_count,
        leans_on_prior=campaign.leans_on_prior,
        caution=LEANING if leans else None,
        withheld_because=display.withheld_because(campaign),
        facts=display.privacy_facts(campaign),
        admission=campaign.admission,
        admission_text=display.admission_text(campaign),
        methods=display.methods(campaign),
        reports=reports,
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
        results=[_result(result, level) for result in found],
        state=public_state(state, campaign.most_reports, reports),
    )


def estimates_csv(
    campaign: Campaign, tallies: Mapping[str, FormTally], method: EstimateMethod, level: float
) -> str:
    """All results of a campaign as CSV, with the columns of `priorveil estimate`."""
    file = io.StringIO()
    parts = {form: tally.parts for form, tally in tallies.items()}
    write_csv(campaign, statistic_lines(results(campaign, parts, method), level), file)
    return file.getvalue()


def publication_csv(campaign: Campaign, publication: bytes) -> str:
    """The figures for further computing of a stored publication, as CSV."""
    file = io.StringIO()
    write_csv(campaign, msgspec.json.decode(publication)["for_computing"], file)
    return file.getvalue()


def campaign_publication(
    campaign: Campaign, tallies: Mapping[str, FormTally], published: str
) -> messages.Publication:
    """What is published of a campaign: its results, who asked, why and when.

    The results are the most likely shares, which are possible; beside them are the unbiased figures, for further
    computing. What these methods cannot read is read by the default one.
    """
    parts = {form: tally.parts for form, tally in tallies.items()}
    unbiased = results(campaign, parts, "unbiased", or_default=True)
    about: dict[str, Any] = {
        name: getattr(campaign, name) for name in ("title", "asked_by", "purpose", "description", "contact")
    }
    questions: list[Any] = [
        {name: getattr(question, name) for name in messages.PublishedQuestion.__struct_fields__}
        for question in campaign.questions
    ]
    return messages.Publication(
        published=published,
        languages=list(campaign.languages),
        **about,
        questions=[messages.PublishedQuestion(**question) for question in questions],
        most_reports=campaign.most_reports,
        opens=stamp(campaign.opens),
        closes=stamp(campaign.closes),
        results=campaign_estimates(campaign, tallies, "mle", _LEVEL, "closed", or_default=True),
        for_computing=[messages.Line(**line) for line in statistic_lines(unbiased, _LEVEL)],
    )


def _result(result: Result, level: float) -> messages.Result:
    total = result.total
    return messages.Result(
        attributes=list(result.attributes),
        questions=result.questions,
        title=result.title,
        option=result.option,
        subjects=[messages.Subject(each.question, each.option) for each in result.subjects],
        unit=result.unit,
        measured=result.measured,
        margin_of=None if result.margin_of is None else list(result.margin_of),
        cohorts=[_cohort(result, name, level) for name in result.parts],
        total=None if total is None else messages.Total(**_figure_fields(result, total, level)),
    )


def _cohort(result: Result, name: str, level: float) -> messages.Shown | messages.Withheld:
    part, reports = result.parts[name]
    plan = part.plan
    about: dict[str, Any] = {"cohort": name, "plan": plan.id, "identifiable": plan.identifiable}
    if result.margin_of is None:
        precision = result.campaign.cohorts[name].precision[part.attributes]
        about |= {
            "prior": plan.query.expected_answer(plan.reference).tolist(),
            "precision": messages.Precision(**precision.document()),
            "promise": precision_sentence(precision),
        }
    if name not in result.estimates:
        return messages.Withheld(**about, reports=reports, withheld=True)
    fields = _figure_fields(result, result.estimates[name], level)
    return messages.Shown(**about, **fields, withheld=False)


def _figure_fields(result: Result, figures: Figures, level: float) -> dict[str, Any]:
    """The fields of an estimate in a response."""
    record = figures.record(level)
    statistics = [messages.NumberStatistic(**statistic) for statistic in record["statistics"]]
    shown = display.estimate_display(result, figures, level)
    return {**record, "people": figures.estimate.people, "statistics": statistics, "display": shown}
