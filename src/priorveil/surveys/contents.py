"""Make a `Survey` from the sections of a survey file: all checks, with errors that name the line or cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, get_args

from priorveil.collect.campaign import EVERYONE, Admission, read_time
from priorveil.collect.questions import NO, YES, Question, as_text, check_languages, options_with_same_text
from priorveil.errors import short_repr
from priorveil.surveys.sections import Section, SurveyFile
from priorveil.surveys.survey import Cohort, Survey, people_shares
from priorveil.surveys.topics import RANGES, TOPIC_KEYS, TopicReader, number_bounds

TEXTS = ("title", "description", "asked_by", "purpose")
TIMES = ("opens", "closes", "keep_until")
SURVEY_KEYS = (
    *("title", "languages", "asked_by", "purpose", "contact", "description", "epsilon", "smallest_count"),
    *("opens", "closes", "keep_until", "admission", "most_reports", "limit"),
)
KINDS = ("choice", "yes-no", "choices", "number")
QUESTION_KEYS = (
    *("name", "text", "kind", "options", "hint", "unit", "range", "points", "asked_if"),
    *TOPIC_KEYS,
)
COHORT_KEYS = ("name", "people")
_YES_NO = {
    "en": ("Yes", "No"),
    "de": ("Ja", "Nein"),
    "fr": ("Oui", "Non"),
    "es": ("Sí", "No"),
    "ar": ("نعم", "لا"),
}


def survey_of(file: SurveyFile) -> Survey:
    """The survey that a file describes; refused with the line or cell that is wrong, and what to do."""
    survey = file.survey
    survey.require_known(SURVEY_KEYS)
    languages = _languages(survey)
    if "epsilon" not in survey.values:
        raise survey.error("say how much a whole submission may tell, such as 1", "epsilon")
    epsilon = float(survey.positive("epsilon") or 0.0)
    details = {**_texts(survey, languages), **_details(survey)}
    people = _people_by_cohort(file)
    reader = _QuestionReader(languages, tuple(people))
    if not file.questions:
        raise survey.error("there is no question: add one")
    for section in file.questions:
        reader.add(section)
    shares = people_shares(people)
    topics = TopicReader(file, reader.questions, reader.sections, epsilon, shares).read()
    cohorts = {name: Cohort(topics[name], number) for name, number in people.items()}
    _refuse_equal_cohorts(file, cohorts)
    return Survey(
        questions=tuple(reader.questions.values()),
        cohorts=cohorts,
        epsilon=epsilon,
        languages=languages,
        details=details,
        left_out=file.left_out,
    )


def _languages(survey: Section) -> tuple[str, ...]:
    title = survey.values.get("title")
    usual = tuple(title) if isinstance(title, Mapping) else ("en",)
    with survey.at("languages"):
        return check_languages(survey.names("languages") or usual)


def _texts(survey: Section, languages: Sequence[str]) -> dict[str, Any]:
    texts = {key: _translated(survey, languages, key == "title", key) for key in TEXTS}
    return {**texts, "contact": survey.text("contact")}


def _translated(section: Section, languages: Sequence[str], needed: bool, *keys: str) -> dict[str, str]:
    """A text in all languages; the error about a missing translation names its own cell, if the file has one for it."""
    text: Any = section.values
    for key in keys:
        text = text.get(key, "")
    if isinstance(text, Mapping) and any(text.values()):
        for language in languages:
            if not text.get(language):
                raise section.error(f"there is no text in {language}: translate it", *keys, language)
        for language in text:
            if language not in languages:
                advice = (
                    f"{language} is not one of the languages, {', '.join(languages)}: add it to languages"
                )
                raise section.error(advice, *keys, language)
    with section.at(*keys):
        return as_text(keys[-1], text, languages, needed)


def _details(survey: Section) -> dict[str, Any]:
    """The fields of a campaign that are not text, as far as the file has them."""
    details: dict[str, Any] = {}
    for key in TIMES:
        with survey.at(key):
            details[key] = read_time(key, survey.values.get(key))
    for before, after in (("opens", "closes"), ("closes", "keep_until")):
        if details[before] and details[after] and details[before] >= details[after]:
            raise survey.error(f"it should be after {before}", after)
    if details["keep_until"] and not details["closes"]:
        raise survey.error("reports are deleted after the survey has closed: give closes too", "keep_until")
    if "admission" in survey.values:
        details["admission"] = survey.one_of("admission", get_args(Admission), "open")
    for key, least in (("smallest_count", 0), ("most_reports", 1)):
        if key in survey.values:
            details[key] = survey.whole(key, least)
    if "limit" in survey.values:
        details["limit"] = survey.positive("limit")
    return {key: value for key, value in details.items() if value is not None}


# -- cohorts ---------------------------------------------------------------------------------------------------


def _people_by_cohort(file: SurveyFile) -> dict[str, int | None]:
    """The number of people in each cohort, where it is given: in all cohorts or in none."""
    if not file.cohorts:
        return {EVERYONE: None}
    people: dict[str, int | None] = {}
    for section in file.cohorts:
        section.require_known(COHORT_KEYS)
        name = section.text("name")
        if not name:
            raise section.error("give every cohort a name: people choose theirs by it", "name")
        if name in people:
            raise section.error(f"another cohort is named {name!r}: rename one of them", "name")
        people[name] = section.whole("people", 1)
    if len(people) == 1:
        advice = "a survey with cohorts has two or more: add another one, or remove this one"
        raise file.cohorts[0].error(advice)
    if len({number is None for number in people.values()}) > 1:
        missing = next(section for section in file.cohorts if "people" not in section.values)
        raise missing.error("give the number of people in every cohort, or in none")
    return people


def _refuse_equal_cohorts(file: SurveyFile, cohorts: Mapping[str, Cohort]) -> None:
    """Refuse cohorts with the same priors: their forms would be the same, and nobody could tell their reports apart."""
    for (one, first), (other, second) in combinations(cohorts.items(), 2):
        if [topic.prior for topic in first.topics] == [topic.prior for topic in second.topics]:
            advice = (
                f"{one} and {other} have the same priors, so that nobody could tell their reports apart: give "
                "them different priors, or make them one cohort"
            )
            section = next(section for section in file.cohorts if section.text("name") == other)
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
        section.require_known(QUESTION_KEYS)
        name, kind = section.text("name"), section.one_of("kind", KINDS, "choice")
        if not name:
            raise section.error("give every question a name, of letters, digits, _ and -")
        if name in self.questions:
            raise section.error(f"another question is named {name!r}: rename one of them", "name")
        texts: dict[str, Any] = {
            key: _translated(section, self.languages, key == "text", key) for key in ("text", "hint", "unit")
        }
        question = Question(
            name=name,
            kind="choice" if kind == "yes-no" else kind,  # type: ignore[arg-type]
            options=self._options(section, kind),
            asked_if=self._asked_if(section),
            **texts,
        )
        self.sections[name] = section
        if question.kind == "number" and question.asked_if:
            question = replace(question, edges=number_bounds(section, self.cohorts, RANGES))
        with section.at():
            question = question.in_languages(self.languages)
        with section.at("asked_if"):
            question.check_gates(self.questions)
        self.questions[name] = question

    def _options(self, section: Section, kind: str) -> dict[str, Any]:
        options = section.table("options")
        if kind == "yes-no" and not options:
            unknown = [tag for tag in self.languages if tag.partition("-")[0].lower() not in _YES_NO]
            if unknown:
                advice = "give options, with the words for yes and no"
                raise section.error(f"yes and no are not known in {', '.join(unknown)}: {advice}", "kind")
            words = {tag: _YES_NO[tag.partition("-")[0].lower()] for tag in self.languages}
            return {code: {tag: words[tag][at] for tag in words} for at, code in enumerate((YES, NO))}
        if kind == "yes-no" and set(options) != {YES, NO}:
            raise section.error("the options of a yes-no question are yes and no", "options")
        texts = {code: _translated(section, self.languages, True, "options", code) for code in options}
        same = options_with_same_text(texts, self.languages)
        if same is not None:
            first, code, language = same
            advice = f"{first} has the same text: change one of them"
            raise section.error(advice, "options", code, language)
        return texts

    def _asked_if(self, section: Section) -> dict[str, tuple[str, ...]]:
        asked_if = {}
        for gate, codes in section.table("asked_if").items():
            listed = [codes] if isinstance(codes, str) else codes
            if not isinstance(listed, list | tuple) or not all(isinstance(code, str) for code in listed):
                advice = 'give the codes after which it is asked, such as {works = ["yes"]}'
                raise section.error(f"{short_repr(codes)}: {advice}", "asked_if", gate)
            asked_if[gate] = tuple(listed)
        return asked_if
