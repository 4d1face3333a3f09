"""A survey: its questions, and what is to be learnt from them; `build` makes it a campaign."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from priorveil.designs.form_design import FormDesign, PartSpec, design_form
from priorveil.errors import CertificateError
from priorveil.notes import Note
from priorveil.questions.campaign import Campaign, CampaignDetails, stamp
from priorveil.questions.question import Question


@dataclass(frozen=True)
class SurveyCohort:
    """A public group of people: the parts that are designed for it, and how many people it has, if that is known."""

    parts: tuple[PartSpec, ...]
    people: int | None = None


@dataclass(frozen=True)
class Survey:
    """Questions in all their languages, and the parts that are designed, each about one question or several.

    All `cohorts` have the same parts, with priors of their own; a survey without cohorts has one, `EVERYONE`.
    `epsilon` is what a whole submission may tell, and `left_out` lists what was left out of the file.
    """

    details: CampaignDetails
    questions: tuple[Question, ...]
    cohorts: Mapping[str, SurveyCohort]
    epsilon: float
    left_out: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[Note, ...]:
        """What should be done before people are asked."""
        return tuple(self.remarks_at(datetime.now(UTC)))

    def remarks_at(self, now: datetime) -> Iterator[Note]:
        """The remarks at this time. None of them makes the survey invalid."""
        missing = [key for key in ("asked_by", "purpose") if not getattr(self.details, key)]
        if missing:
            yield Note("giveWhoAsks", {"keys": " and ".join(missing)})
        opens, closes = self.details.opens, self.details.closes
        if closes is not None and closes <= now:
            yield Note("closesInPast", {"time": stamp(closes)})
        elif opens is not None and opens <= now:
            yield Note("opensInPast", {"time": stamp(opens)})

    @property
    def parts(self) -> tuple[PartSpec, ...]:
        """The parts of the first cohort."""
        return next(iter(self.cohorts.values())).parts

    @property
    def people(self) -> int | None:
        """How many people are expected, or the cohorts have, if the file says so."""
        return self.details.expected_people

    @property
    def shares(self) -> dict[str, float]:
        """The share of all people that each cohort has."""
        return people_shares({name: cohort.people for name, cohort in self.cohorts.items()})


def people_shares(people: Mapping[str, int | None]) -> dict[str, float]:
    """The share of all people that each cohort has: the same for all, unless it is known how many they are.

    >>> people_shares({"north": 10, "south": 30}), people_shares({"north": None, "south": None})
    ({'north': 0.25, 'south': 0.75}, {'north': 0.5, 'south': 0.5})
    """
    total = sum(number or 1 for number in people.values())
    return {name: (number or 1) / total for name, number in people.items()}


@dataclass(frozen=True)
class SurveyDesign:
    """The campaign of a survey, the way in which its budget is used, and what each way would have cost.

    A cost is the mean over all people; that of a way that is not possible in all cohorts is None.
    """

    survey: Survey
    campaign: Campaign
    chosen: str
    costs: Mapping[str, float | None]


def build(survey: Survey, **options: Any) -> SurveyDesign:
    """Design what leaves a device for all questions, and make the campaign; `options` are those of `design`.

    All cohorts use the budget in the same way, or their results could not be put together.
    """
    designs = {
        name: design_form(cohort.parts, survey.epsilon, **options) for name, cohort in survey.cohorts.items()
    }
    chosen, costs = _cheapest(survey, designs)
    cohorts = {name: design.forms[chosen] for name, design in designs.items()}
    campaign = Campaign(questions=survey.questions, cohorts=cohorts, **vars(survey.details))
    lip = max(levels.lip for levels in campaign.promise.values())
    if lip > survey.epsilon:  # the budget is kept, or there is no campaign
        raise CertificateError(
            f"a whole submission would tell {lip:.4g}, more than epsilon {survey.epsilon:g}"
        )
    return SurveyDesign(survey, campaign, chosen, costs)


def _cheapest(survey: Survey, designs: Mapping[str, FormDesign]) -> tuple[str, dict[str, float | None]]:
    """The way with the least cost over all people, and the cost of each way."""
    costs: dict[str, float | None] = {}
    for way in next(iter(designs.values())).costs:
        each = [(survey.shares[name], design.costs[way]) for name, design in designs.items()]
        known = [share * cost for share, cost in each if cost is not None]
        costs[way] = math.fsum(known) if len(known) == len(each) else None
    possible = {way: cost for way, cost in costs.items() if cost is not None}
    return min(possible, key=lambda way: possible[way]), costs
