"""The results of a campaign as the API sends them."""

from __future__ import annotations

import io
from collections.abc import Mapping

from priorveil.curator.result_messages import CampaignResults, Publication, QuestionTexts, SurveyTexts
from priorveil.curator.settings import DEFAULTS
from priorveil.curator.store import FormTally
from priorveil.plans.structure import decode
from priorveil.questions.campaign import TEXTS, Campaign, State, public_state, stamp
from priorveil.reading.estimate import ESTIMATE_METHODS, EstimateMethod
from priorveil.results.document import Result, Totals
from priorveil.results.findings import View, result_of
from priorveil.results.form_estimates import CohortForms, Estimates, estimate_forms
from priorveil.results.lines import write_lines
from priorveil.results.totals import totals_of

_CONFIDENCE = 0.95  # of published intervals
# Methods for reports that alone do not determine the answer.
_WITH_PRIOR: tuple[EstimateMethod, ...] = ("auto", "mmse")


def campaign_results(
    campaign: Campaign,
    tallies: Mapping[str, FormTally],
    method: EstimateMethod,
    confidence: float,
    state: State,
) -> CampaignResults:
    """The results of a campaign that is not published, without the stored ones.

    The time that it takes grows with the values, never with the reports.
    """
    estimates = _estimates(campaign, tallies, method)
    found = result_of(estimates, View(confidence), reports=_reports(campaign, tallies))
    is_free = all(cohort.identifiable for cohort in found.cohorts)
    return CampaignResults(
        survey=survey_texts(campaign),
        state=public_state(state, campaign.most_reports, found.reports),
        methods=list(ESTIMATE_METHODS if is_free else _WITH_PRIOR),
        leans_on_prior=campaign.leans_on_prior,
        published=False,
        stored=None,
        result=found,
    )


def publication(
    campaign: Campaign,
    tallies: Mapping[str, FormTally],
    published: str,
    colluding: float = DEFAULTS.totals.colluding,
) -> Publication:
    """What is published of a campaign: its results, who asked, why and when, and what its totals tell of one person.

    Parts that a method cannot read are read by the default one. The store takes a publication only once, of a closed
    campaign, and only if the tallies are still the same; then no report comes or goes any more. Under open admission
    nothing is said about the totals, because somebody may have sent all other reports.
    """
    unbiased, public = (
        _estimates(campaign, tallies, method, or_default=True) for method in ("unbiased", "mle")
    )
    totals: Mapping[str, Totals] = {}
    if campaign.admission == "invitation":
        own = {name: tallies[form.id].parts for name, form in campaign.cohorts.items()}
        totals = totals_of(CohortForms.of(campaign), own, colluding)
    found = result_of(unbiased, View(_CONFIDENCE), public, _reports(campaign, tallies), totals)
    return Publication(published, survey_texts(campaign), found)


def results_csv(result: Result) -> str:
    """A result as CSV, with the columns of `priorveil estimate`. A published one gives the figures for computing."""
    write_lines(result, file := io.StringIO())
    return file.getvalue()


def publication_csv(content: bytes) -> str:
    """The figures for computing of a stored publication as CSV."""
    return results_csv(decode(content, Publication).result)


def survey_texts(campaign: Campaign) -> SurveyTexts:
    """The texts of a campaign, in all languages."""
    questions = [
        QuestionTexts(*(getattr(question, name) for name in QuestionTexts.__struct_fields__))
        for question in campaign.questions
    ]
    same = (*TEXTS, "contact", "admission", "most_reports")
    return SurveyTexts(
        languages=list(campaign.languages),
        questions=questions,
        opens=stamp(campaign.opens),
        closes=stamp(campaign.closes),
        **{name: getattr(campaign, name) for name in same},
    )


def _estimates(
    campaign: Campaign, tallies: Mapping[str, FormTally], method: EstimateMethod, or_default: bool = False
) -> Estimates:
    by_cohort = {(name, None): tallies[form.id].parts for name, form in campaign.cohorts.items()}
    return estimate_forms(CohortForms.of(campaign), by_cohort, method=method, or_default=or_default)


def _reports(campaign: Campaign, tallies: Mapping[str, FormTally]) -> dict[str, int]:
    return {name: tallies[form.id].reports for name, form in campaign.cohorts.items()}
