"""A survey: its questions, and what is to be learnt from them; `build` makes a campaign of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from priorveil.collect.campaign import EVERYONE, Campaign
from priorveil.collect.linked_priors import contradictory_parts
from priorveil.collect.questions import Question
from priorveil.designs.forms import FormDesign, Topic, design_form
from priorveil.errors import CertificateError


@dataclass(frozen=True)
class Survey:
    """Questions in all their languages, and the topics that are designed, each about one question or several.

    `epsilon` is what a whole submission may tell. `details` are the other fields of a `Campaign`, by name, and
    `left_out` says what of the file could not be carried over.
    """

    questions: tuple[Question, ...]
    topics: tuple[Topic, ...]
    epsilon: float
    languages: tuple[str, ...]
    details: Mapping[str, Any]
    left_out: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What should be done before people are asked."""
        missing = [key for key in ("asked_by", "purpose") if not self.details[key]]
        return (f"people should know who asks and why: give {' and '.join(missing)}",) if missing else ()


@dataclass(frozen=True)
class SurveyDesign:
    """The campaign of a survey, with the design of its form."""

    survey: Survey
    campaign: Campaign
    design: FormDesign


def build(survey: Survey, **options: Any) -> SurveyDesign:
    """Design what leaves a device for all questions, and make the campaign; `options` are those of `design`."""
    design = design_form(survey.topics, survey.epsilon, **options)
    if unknown := contradictory_parts(survey.questions, design.form):
        design = design_form(survey.topics, survey.epsilon, unknown=unknown, **options)
    cohorts = {EVERYONE: design.form}
    campaign = Campaign(
        questions=survey.questions, cohorts=cohorts, languages=survey.languages, **survey.details
    )
    told = campaign.promise[EVERYONE].lip
    if told > survey.epsilon:  # the budget is kept, or there is no campaign
        raise CertificateError(
            f"a whole submission would tell {told:.4g}, more than epsilon {survey.epsilon:g}"
        )
    return SurveyDesign(survey, campaign, design)
