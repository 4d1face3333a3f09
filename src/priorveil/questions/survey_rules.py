"""Make a `Survey` from the sections of a survey file: all checks, with errors that name the line or cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from priorveil.catalogue import every_language
from priorveil.questions.campaign import DETAILS, EVERYONE, CampaignDetails
from priorveil.questions.choices import NO, YES, SingleChoice
from priorveil.questions.question import Question, complete_after
from priorveil.questions.survey import Survey, SurveyCohort, people_shares
from priorveil.questions.survey_document import LISTS, Section, SurveyDocument
from priorveil.questions.survey_parts import DESIGN_KEYS, PartReader, number_bounds

SURVEY_KEYS = (*DETAILS, "epsilon")
YES_NO = "yes-no"  # what survey files call a choice of these two
QUESTION_KEYS = ("name", "text", "kind", "hint", "unit", "asked_if", *DESIGN_KEYS)  # of every kind
COHORT_KEYS = ("name", "people")
_YES_NO = {YES: "yesOption", NO: "noOption"}  # the keys of their texts


def survey_of(document: SurveyDocument) -> Survey:
    """The survey that a file describes; refused with the place of what is wrong, and what to do."""
    section = document.survey
    section.require_known((*SURVEY_KEYS, *LISTS))
    details = _details(section)
    epsilon = section.positive("epsilon")
    if epsilon is None:
        raise section.error("say how much a whole submission may tell, such as 1", "epsilon")
    people = _people_by_cohort(document)
    details = _with_people(section, details, people)
    reader = _QuestionReader(tuple(details.languages), tuple(people))
    if not document.sections("question"):
        raise section.error("there is no question: add one")
    for each in document.sections("question"):
        reader.add(each)
    shares = people_shares(people)
    parts = PartReader(document, reader.questions, reader.sections, epsilon, shares).read()
    cohorts = {name: SurveyCohort(parts[name], number) for name, number in people.items()}
    _refuse_equal_cohorts(document, cohorts)
    questions = tuple(reader.questions.values())
    return Survey(details, questions, cohorts, epsilon, document.left_out)


def _details(section: Section) -> CampaignDetails:
    """What a campaign says about itself; without `languages`, they are those of the title."""
    given = {key: value for key, value in section.values.items() if key in DETAILS}
    title = given.setdefault("title", "")
    given.setdefault("languages", list(title) if isinstance(title, Mapping) and title else ["en"])
    with section.at():
        return CampaignDetails(**given)


def _with_people(
    section: Section, details: CampaignDetails, cohorts: Mapping[str, int | None]
) -> CampaignDetails:
    """The details with the people who are expected: those of the cohorts, where their numbers are given."""
    numbers = [number for number in cohorts.values() if number is not None]
    if not numbers:
        return details
    if details.expected_people not in (None, sum(numbers)):
        advice = f"the cohorts have {sum(numbers):,} people: give this number, or leave it out"
        raise section.error(advice, "expected_people")
    return replace(details, expected_people=sum(numbers))


# -- cohorts ---------------------------------------------------------------------------------------------------


def _people_by_cohort(document: SurveyDocument) -> dict[str, int | None]:
    """The number of people in each cohort, where it is given: in all cohorts or in none."""
    sections = document.sections("cohort")
    if not sections:
        return {EVERYONE: None}
    people: dict[str, int | None] = {}
    for section in sections:
        section.require_known(COHORT_KEYS)
        name = section.text("name")
        if not name:
            raise section.error("give every cohort a name: people choose theirs by it", "name")
        if name in people:
            raise section.error(f"another cohort is named {name!r}: rename one of them", "name")
        people[name] = section.whole("people", 1)
    if len(people) == 1:
        advice = "a survey with cohorts has two or more: add another one, or remove this one"
        raise sections[0].error(advice)
    if len({number is None for number in people.values()}) > 1:
        missing = next(section for section in sections if "people" not in section.values)
        raise missing.error("give the number of people in every cohort, or in none")
    return people


def _refuse_equal_cohorts(document: SurveyDocument, cohorts: Mapping[str, SurveyCohort]) -> None:
    """Refuse cohorts with the same priors: their forms would be the same, and nobody could tell their reports apart."""
    for (one, first), (other, second) in combinations(cohorts.items(), 2):
        if [spec.prior for spec in first.parts] == [spec.prior for spec in second.parts]:
            advice = (
                f"{one} and {other} have the same priors, so nobody could tell their reports apart: give "
                "them different priors, or make them one cohort"
            )
            section = next(
                section for section in document.sections("cohort") if section.text("name") == other
            )
            raise section.error(advice)


# -- questions -------------------------------------------------------------------------------------------------


@dataclass
class _QuestionReader:
    """Reads the questions of a file in their order."""

    languages: tuple[str, ...]
    cohorts: tuple[str, ...]
    questions: dict[str, Question] = field(default_factory=dict)
    sections: dict[str, Section] = field(default_factory=dict)

    def add(self, section: Section) -> None:
        """Read one more question."""
        written = section.one_of("kind", (*Question.by_kind, YES_NO), "choice")
        kind = Question.by_kind.get(written, SingleChoice)
        section.require_known((*QUESTION_KEYS, *kind.survey_keys))
        if written == YES_NO:
            section = self._with_yes_and_no(section)

        def bounds(ranges: int) -> tuple[float, ...]:
            return number_bounds(section, self.cohorts, ranges)

        common: dict[str, Any] = {
            key: section.values.get(key, "") for key in ("name", "text", "hint", "unit")
        }
        with section.at():
            question = kind.of_survey(section, bounds, **common, asked_if=section.table("asked_if"))
            question = complete_after(question, self.questions, self.languages)
        self.questions[question.name], self.sections[question.name] = question, section

    def _with_yes_and_no(self, section: Section) -> Section:
        """A question with the options yes and no, in the words of the languages if the file has none."""
        options = section.table("options")
        if options and set(options) != {YES, NO}:
            raise section.error("the options of a yes-no question are yes and no", "options")
        if options:
            return section
        catalogue = every_language()
        known = {tag: catalogue.get(tag.partition("-")[0].lower(), {}) for tag in self.languages}
        if unknown := [tag for tag, texts in known.items() if not texts]:
            advice = "give options, with the words for yes and no"
            raise section.error(f"yes and no are not known in {', '.join(unknown)}: {advice}", "kind")
        words = {code: {tag: texts[key] for tag, texts in known.items()} for code, key in _YES_NO.items()}
        return replace(section, values={**section.values, "options": words})
