"""The check of a survey before anybody is asked: its promise and the precision of its results, as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from priorveil.plans.composition import Names
from priorveil.plans.form import SHARE_DENOMINATOR, Part
from priorveil.plans.structure import about
from priorveil.questions.campaign import Campaign
from priorveil.questions.survey import SurveyDesign
from priorveil.reading.precision import Precision

CONFIDENCE = 0.95
MANY = 1000  # people that every check compares with
# As survey files call them; margins are the shares of several questions or options.
_QUERIES = {"distribution": "shares", "cumulative shares": "quantiles", "margins": "shares"}


class PartPrecision(Struct, frozen=True):
    """The precision of one part of the form: the half widths of 95 % intervals for each number of people."""

    questions: Annotated[str, about("the names of its questions")]
    query: str
    statistic: str
    drawn: Annotated[float, about("the share of people for whom it is drawn")]
    half_widths: Annotated[tuple[float | None, ...], about("null if so many people are too few")]
    cohort: Annotated[str, about("empty for the people of all cohorts")] = ""
    unit: Annotated[str, about("of the half widths of means; empty for shares")] = ""


class CohortPromise(Struct, frozen=True):
    """What a whole submission of a cohort reveals, and its size for each total number of people."""

    name: str
    people: tuple[int, ...]
    lip: float
    ldp: float


class SurveyCheck(Struct, frozen=True):
    """What a survey promises, and how precise its results will be. Levels and half widths are rounded up.

    The levels are those of the cohort whose submissions reveal most. `parts` has each part in every cohort, the least
    precise first, and then in all cohorts together if their estimates can be added up.
    """

    epsilon: float
    lip: float
    ldp: float
    assumed: Annotated[tuple[str, ...], about("the questions whose prior nobody knows")]
    reports: Annotated[int, about("that each person sends")]
    people: tuple[int, ...]
    parts: tuple[PartPrecision, ...]
    smallest_count: int
    bytes: Annotated[int, about("of a submission")]
    designed: Annotated[int, about("the questions and groups of questions that share the budget")]
    chosen: Annotated[str, about("the way in which the budget is used")]
    costs: Annotated[
        dict[str, float | None],
        about("how many times as many people each way needs as open questions; null if it is not possible"),
    ]
    left_out: Annotated[tuple[str, ...], about("what was left out of the file")]
    cohorts: tuple[CohortPromise, ...]
    warnings: Annotated[tuple[str, ...], about("what should be changed before people are asked")] = ()

    @classmethod
    def of(cls, built: SurveyDesign, people: int) -> SurveyCheck:
        """The check for this number of people, and for a thousand or ten times as many."""
        survey, promise = built.survey, built.campaign.promise
        numbers = (people, MANY if people < MANY else 10 * people)
        cohorts = tuple(
            CohortPromise(
                name,
                tuple(max(1, round(number * share)) for number in numbers),
                promise[name].lip,
                promise[name].ldp,
            )
            for name, share in survey.shares.items()
        )
        parts = [spec for cohort in survey.cohorts.values() for spec in cohort.parts]
        unknown = [spec for spec in parts if spec.prior.assumed]
        weight = math.fsum(spec.weight for spec in survey.parts)
        forms = built.campaign.cohorts.values()
        return cls(
            epsilon=survey.epsilon,
            lip=max(cohort.lip for cohort in cohorts),
            ldp=max(cohort.ldp for cohort in cohorts),
            assumed=tuple(dict.fromkeys(_questions(built.campaign, spec.attributes) for spec in unknown)),
            reports=max(len(form.slots) for form in forms),
            people=numbers,
            parts=tuple(_all_parts(built.campaign, cohorts)),
            smallest_count=built.campaign.smallest_count,
            bytes=8 * max(form.width for form in forms),
            designed=len(survey.parts),
            chosen=built.chosen,
            costs={way: None if cost is None else cost / weight for way, cost in built.costs.items()},
            left_out=survey.left_out,
            cohorts=cohorts,
            warnings=tuple(map(str, built.campaign.warnings)),
        )

    def shown_parts(self, at: int) -> list[PartPrecision]:
        """The parts that have enough reports to be shown, with the number of people at this position.

        For all cohorts together these are only those that have enough in each cohort.
        """
        people = self.people_by_cohort(at)
        hidden = {
            (part.questions, part.cohort)
            for part in self.parts
            if part.cohort in people and people[part.cohort] * part.drawn < self.smallest_count
        }
        in_some_cohort = {questions for questions, _ in hidden}
        return [
            part
            for part in self.parts
            if (part.questions, part.cohort) not in hidden
            and (part.cohort in people or part.questions not in in_some_cohort)
        ]

    def people_by_cohort(self, at: int) -> dict[str, int]:
        """How many people each cohort has; a single one has no name."""
        several = len(self.cohorts) > 1
        return {cohort.name if several else "": cohort.people[at] for cohort in self.cohorts}

    @property
    def people_to_show_all(self) -> int:
        """How many people it takes until no part is hidden."""
        people = self.people_by_cohort(0)
        parts = [part for part in self.parts if part.cohort in people]
        least = (self.smallest_count * self.people[0] / (people[p.cohort] * p.drawn) for p in parts)
        return math.ceil(max(least))


def _all_parts(campaign: Campaign, cohorts: Sequence[CohortPromise]) -> Iterator[PartPrecision]:
    """The precision of each part in every cohort, the least precise first, and in all cohorts together."""
    by_cohort = [_parts(campaign, cohort) for cohort in cohorts]
    for attributes, (part, first) in by_cohort[0].items():
        if len(cohorts) == 1:
            yield replace(first, cohort="")
            continue
        each = [parts[attributes][1] for parts in by_cohort]
        yield from sorted(
            each, key=lambda one: [math.inf if w is None else w for w in one.half_widths], reverse=True
        )
        if part.plan.query.number_by_group is None:  # averages of groups do not add up
            yield _combined_precision(each, cohorts)


def _parts(campaign: Campaign, cohort: CohortPromise) -> dict[Names, tuple[Part, PartPrecision]]:
    form = campaign.form_for(cohort.name)
    expected = [form.expected_precision(number, CONFIDENCE) for number in cohort.people]
    return {
        part.attributes: (
            part,
            _precision(
                campaign,
                part,
                share / SHARE_DENOMINATOR,
                [each[part.attributes] for each in expected],
                cohort.name,
            ),
        )
        for slot in form.slots
        for part, share in zip(slot.parts, slot.shares, strict=True)
    }


def _combined_precision(parts: Sequence[PartPrecision], cohorts: Sequence[CohortPromise]) -> PartPrecision:
    """The precision of the shares or means of all people: counts add up, and so do their variances."""
    widths: list[float | None] = []
    for at, _ in enumerate(cohorts[0].people):
        people = [cohort.people[at] for cohort in cohorts]
        known = [
            n * width for n, p in zip(people, parts, strict=True) if (width := p.half_widths[at]) is not None
        ]
        widths.append(math.hypot(*known) / sum(people) if len(known) == len(parts) else None)
    people = [cohort.people[0] for cohort in cohorts]
    drawn = math.fsum(n * part.drawn for n, part in zip(people, parts, strict=True)) / sum(people)
    return replace(parts[0], cohort="", drawn=drawn, half_widths=tuple(widths))


def _precision(
    campaign: Campaign, part: Part, drawn: float, expected: Sequence[Precision], cohort: str
) -> PartPrecision:
    widths = tuple(precision.population for precision in expected)
    query = part.plan.query
    title = query.title(part.plan.reference)
    name = _QUERIES.get(title.partition(" (")[0], title)
    names, unit = _questions(campaign, part.attributes), _unit(campaign, part)
    return PartPrecision(names, name, query.statistic_name, drawn, widths, cohort, unit)


def _unit(campaign: Campaign, part: Part) -> str:
    """The unit of the number whose mean a part asks for; empty for shares."""
    if part.plan.query.statistic_name == "share":
        return ""
    averages = part.plan.query.number_by_group
    number = part.attributes[0] if averages is None else averages.number
    return campaign.text(campaign.question_of[number].unit)


def _questions(campaign: Campaign, attributes: Names) -> str:
    """The names of what a part is about; several options of one question are that question."""
    owners = [campaign.question_of[name].name for name in attributes]
    pairs = zip(owners, attributes, strict=True)
    return " x ".join(dict.fromkeys(owner if owners.count(owner) > 1 else name for owner, name in pairs))
