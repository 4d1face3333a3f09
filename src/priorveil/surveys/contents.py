"""From the sections of a survey file, of either kind, to a `Survey`: all checks, with errors that have places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

from priorveil.collect.campaign import Admission, read_time
from priorveil.collect.questions import NO, NOT_ASKED, YES, Question, as_text, check_languages
from priorveil.designs.forms import Topic
from priorveil.errors import NOT_SHOWN, InvalidInput, short_repr
from priorveil.formatting import read_number
from priorveil.priors import Label, Prior
from priorveil.priors.number_domains import Cells, Grid, NumberDomain
from priorveil.queries import Distribution, Linear, Query, Sum
from priorveil.surveys.sections import Section, SurveyFile
from priorveil.surveys.shares import (
    Attribute,
    attributes_of,
    counted_prior,
    margins_of,
    read_range,
    typed_prior,
    unknown_prior,
)
from priorveil.surveys.survey import Survey
from priorveil.tables.read import open_table, text_columns

TEXTS = ("title", "description", "asked_by", "purpose")
TIMES = ("opens", "closes", "keep_until")
SURVEY_KEYS = (
    *("title", "languages", "asked_by", "purpose", "contact", "description", "epsilon", "smallest_count"),
    *("opens", "closes", "keep_until", "admission", "most_reports", "limit"),
)
KINDS = ("choice", "yes-no", "choices", "number")
TOPIC_KEYS = ("prior", "query", "weight", "epsilon")  # how a question is designed, on its own or with others
QUESTION_KEYS = (
    *("name", "text", "kind", "options", "hint", "unit", "range", "points", "asked_if"),
    *TOPIC_KEYS,
)
TOGETHER_KEYS = ("questions", *TOPIC_KEYS)
PRIOR_KEYS = ("file", "sheet", "column", "public", "smoothing")
UNKNOWN = "unknown"

MOST_SET_OPTIONS = 6  # of "tick all that apply": with more, the sets are too many to be told apart under LDP
_POINTS, _RANGES, _FINE_RANGES = 5, 5, 10  # of a mean, of shares and of quantiles, if the file does not say
_MOST_ROWS = 1 << 16  # read at a time, from a table of people
_YES_NO = {
    "en": ("Yes", "No"),
    "de": ("Ja", "Nein"),
    "fr": ("Oui", "Non"),
    "es": ("Sí", "No"),
    "ar": ("نعم", "لا"),
}
_MEAN = re.compile(r"mean of (\S+) by (.+)")
_SHARES = re.compile(r"shares of (\S+) by (.+)")


def survey_of(file: SurveyFile) -> Survey:
    """The survey that a file describes; refused with the line or cell that is wrong, and what to do."""
    survey = file.survey
    survey.require_known(SURVEY_KEYS)
    languages = _languages(survey)
    if "epsilon" not in survey.values:
        raise survey.error("say how much a whole submission may tell: give epsilon, such as 1")
    reader = _Reader(file, languages, float(survey.positive("epsilon") or 0.0))
    details = {**_texts(survey, languages), **_details(survey)}
    questions, topics = reader.read()
    return Survey(
        questions=questions,
        topics=topics,
        epsilon=reader.epsilon,
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
    """A text in all languages; the place of a missing translation is its own, if the file has one for it."""
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
    """The fields of a campaign that are no texts, where the file has them."""
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


# -- questions -------------------------------------------------------------------------------------------------


@dataclass
class _Reader:
    """Reads the questions of a file in their order, and then what is to be designed: on its own, and together."""

    file: SurveyFile
    languages: tuple[str, ...]
    epsilon: float
    questions: dict[str, Question] = field(default_factory=dict)
    sections: dict[str, Section] = field(default_factory=dict)
    margins: dict[str, dict[Label, float]] = field(default_factory=dict)

    def read(self) -> tuple[tuple[Question, ...], tuple[Topic, ...]]:
        if not self.file.questions:
            raise self.file.survey.error("there is no question: add one")
        for section in self.file.questions:
            self._add_question(section)
        groups = [self._group(section) for section in self.file.together]
        self._check_groups(groups)
        topics = {names: self._together(section, names) for section, names in groups}
        for names, topic in topics.items():
            self.margins |= margins_of(topic.prior.centre, names)
        grouped = {name for names in topics for name in names}
        single: dict[str, tuple[Topic, ...]] = {}
        for name in self.questions:
            if name in grouped:
                self._refuse_topic_keys(name)
            else:
                single[name] = tuple(self._topics(name))
        return tuple(self.questions.values()), tuple(self._in_order(single, topics))

    def _in_order(
        self, single: Mapping[str, tuple[Topic, ...]], together: Mapping[tuple[str, ...], Topic]
    ) -> Iterator[Topic]:
        """All topics, in the order in which their last question is asked."""
        for name in self.questions:
            yield from single.get(name, ())
            order = list(self.questions)
            yield from (t for names, t in together.items() if max(names, key=order.index) == name)

    def _add_question(self, section: Section) -> None:
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
            question = replace(question, edges=self._bounds(section, question, _RANGES))
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
        return {code: _translated(section, self.languages, True, "options", code) for code in options}

    def _asked_if(self, section: Section) -> dict[str, tuple[str, ...]]:
        asked_if = {}
        for gate, codes in section.table("asked_if").items():
            listed = [codes] if isinstance(codes, str) else codes
            if not isinstance(listed, list | tuple) or not all(isinstance(code, str) for code in listed):
                advice = 'give the codes after which it is asked, such as {works = ["yes"]}'
                raise section.error(f"{short_repr(codes)}: {advice}", "asked_if", gate)
            asked_if[gate] = tuple(listed)
        return asked_if

    # -- numbers -----------------------------------------------------------------------------------------------

    def _bounds(self, section: Section, question: Question, ranges: int) -> tuple[float, ...]:
        """The points of a number's grid, or the ends of its ranges: given, those of its prior, or of its range."""
        points, ends = section.numbers("points"), section.numbers("range")
        if ends and len(ends) != 2:
            raise section.error("give the two ends, such as [0, 80]", "range")
        if not points:
            points = _typed_bounds(section.values.get("prior"))
        if points:
            if ends and (points[0], points[-1]) != ends:
                where = "points" if "points" in section.values else "prior"
                raise section.error(f"it should go from {ends[0]:g} to {ends[1]:g}, the range", where)
            return points
        if not ends:
            raise section.error(f"a number needs its range: give range, such as [0, 80], for {question.name}")
        return tuple(np.linspace(ends[0], ends[1], ranges + 1).tolist())

    def _number_domain(self, name: str, rounds: bool, ranges: int) -> NumberDomain | None:
        question, section = self.questions[name], self.sections[name]
        if question.kind != "number":
            return None
        with section.at():
            if rounds:
                return Grid(self._bounds(section, question, _POINTS - 1), "ends")
            return Cells(question.edges or self._bounds(section, question, ranges), "ends")

    # -- one question --------------------------------------------------------------------------------------------

    def _topics(self, name: str) -> Iterator[Topic]:
        question, section = self.questions[name], self.sections[name]
        usual = "mean" if question.kind == "number" and not question.asked_if else "shares"
        choices = ("shares", "mean", "quantiles") if question.kind == "number" else ("shares",)
        if question.kind == "number" and question.asked_if and section.text("query", usual) != "shares":
            advice = "a number that is not always asked is counted in ranges: use shares"
            raise section.error(f"{short_repr(section.text('query'))}: {advice}", "query")
        query = section.one_of("query", choices, usual)
        ranges = _FINE_RANGES if query == "quantiles" else _RANGES
        attributes = attributes_of(question, self._number_domain(name, query == "mean", ranges))
        with section.at("prior"):
            if question.kind == "choices":
                priors = self._choices_priors(section, attributes)
            else:
                priors = [(attributes, self._prior(section, attributes))]
        for some, prior in priors:
            self.margins |= margins_of(prior, [attribute.name for attribute in some])
            weight = (section.positive("weight") or 1.0) / len(priors)
            names = tuple(attribute.name for attribute in some)
            yield Topic(names, prior, _query(query, prior), weight, self._own_epsilon(section))

    def _choices_priors(
        self, section: Section, attributes: tuple[Attribute, ...]
    ) -> list[tuple[tuple[Attribute, ...], Prior]]:
        """The priors of "tick all that apply": one of the sets where that is known or small, or one of each option.

        Shares of single options say nothing about how often they occur together.
        """
        given = section.values.get("prior", UNKNOWN)
        codes = list(attributes[0].question.options)
        single = [(attribute,) for attribute in attributes]
        if given == UNKNOWN:
            groups = [attributes] if 1 < len(attributes) <= MOST_SET_OPTIONS else single
            return [(group, unknown_prior(group)) for group in groups]
        if isinstance(given, Mapping) and "joint" in given:
            sets = _typed_shares(given["joint"])
            rows = [(_set_entries(codes, ticked), share) for ticked, share in sets.items()]
            smoothing = _smoothing(given)
            return [(attributes, typed_prior(attributes, rows, self.margins, smoothing))]
        if isinstance(given, Mapping) and ("file" in given or "sheet" in given):
            column = self._columns(section, given, [str(given.get("column", attributes[0].question.name))])[0]
            people = [_set_entries(codes, entry) if entry else _no_entries(attributes) for entry in column]
            public, smoothing = _is_public(given), _smoothing(given)
            return [(attributes, counted_prior(attributes, people, self.margins, public, smoothing))]
        shares = _typed_shares(given)
        if set(shares) - {NOT_ASKED} != set(codes):
            raise InvalidInput("shares", NOT_SHOWN, f"give the share of each option: {', '.join(codes)}")
        skipped = shares.pop(NOT_ASKED, None)
        priors: list[tuple[tuple[Attribute, ...], Prior]] = []
        for (attribute,), code in zip(single, codes, strict=True):
            yes = shares[code]
            if not 0 < yes < 1 - (skipped or 0.0):
                raise InvalidInput(code, yes, "give a share above 0 and below 1")
            rows = [((YES,), yes), ((NO,), 1 - yes - (skipped or 0.0))]
            rows += [] if skipped is None else [((NOT_ASKED,), skipped)]
            priors.append(((attribute,), typed_prior((attribute,), rows, self.margins, None)))
        return priors

    def _own_epsilon(self, section: Section) -> float | None:
        epsilon = section.positive("epsilon")
        if epsilon is not None and epsilon > self.epsilon:
            advice = (
                f"one question cannot tell more than the whole submission may, {self.epsilon:g}: lower it"
            )
            raise section.error(f"{epsilon:g}: {advice}", "epsilon")
        return epsilon

    # -- several questions together ----------------------------------------------------------------------------

    def _group(self, section: Section) -> tuple[Section, tuple[str, ...]]:
        section.require_known(TOGETHER_KEYS)
        names = section.names("questions")
        for name in names:
            if name not in self.questions:
                advice = f"choose among {', '.join(self.questions)}"
                raise section.error(f"there is no question {name!r}: {advice}", "questions")
            if self.questions[name].kind == "choices":
                advice = 'questions of kind "choices" cannot be designed together with others'
                raise section.error(f"{name}: {advice}: leave it out", "questions")
        if len(names) < 2 or len(set(names)) < len(names):
            raise section.error("name two or more different questions", "questions")
        return section, names

    def _check_groups(self, groups: Sequence[tuple[Section, tuple[str, ...]]]) -> None:
        """Refuse the same group twice, and a number in two of them: its grid would not be the same."""
        for at, (section, names) in enumerate(groups):
            for _, others in groups[:at]:
                numbers = [name for name in names if name in others and self.questions[name].kind == "number"]
                if set(names) == set(others) or numbers:
                    shared = ", ".join(numbers or names)
                    raise section.error(
                        f"{shared}: it is in another group already: leave one out", "questions"
                    )

    def _together(self, section: Section, names: tuple[str, ...]) -> Topic:
        text = section.text("query", "table")
        mean, shares = _MEAN.fullmatch(text), _SHARES.fullmatch(text)
        if text != "table" and not mean and not shares:
            advice = 'choose "table", "mean of NUMBER by QUESTION" or "shares of QUESTION by QUESTION"'
            raise section.error(f"{short_repr(text)}: {advice}", "query")
        found = mean or shares
        if found is not None:
            by = tuple(name for name in re.split(r"[\s,]+|\band\b", found[2]) if name)
            if {found[1], *by} != set(names) or found[1] in by:
                raise section.error(f"it should name {', '.join(names)}, each once", "query")
            names = (*by, found[1])  # results read the last one within the groups of the others
        number = mean[1] if mean else None
        if number is not None and (
            self.questions[number].kind != "number" or self.questions[number].asked_if
        ):
            raise section.error(f"{number} has to be a number that is always asked: ask for a table", "query")
        domains = {name: self._number_domain(name, name == number, _RANGES) for name in names}
        attributes = tuple(a for name in names for a in attributes_of(self.questions[name], domains[name]))
        with section.at("prior"):
            prior = self._prior(section, attributes)
        if number is None:
            query: Query = Distribution()
        else:
            with section.at("query"):
                query = Linear.averages(prior, number, [name for name in names if name != number])
        return Topic(names, prior, query, section.positive("weight") or 1.0, self._own_epsilon(section))

    def _refuse_topic_keys(self, name: str) -> None:
        """Refuse a prior or query for a question that is designed together with others, which would not be used."""
        section = self.sections[name]
        for key in TOPIC_KEYS:
            if key in section.values:
                raise section.error(f"{name} is designed together with others: give it there instead", key)

    # -- priors ------------------------------------------------------------------------------------------------

    def _prior(self, section: Section, attributes: tuple[Attribute, ...]) -> Prior:
        given, names = section.values.get("prior", UNKNOWN), [attribute.name for attribute in attributes]
        if given == UNKNOWN:
            return unknown_prior(attributes)
        if isinstance(given, Mapping) and ("file" in given or "sheet" in given):
            return self._table_prior(section, given, attributes)
        if isinstance(given, list) and all(isinstance(row, Mapping) for row in given):
            for row in given:
                if set(row) != {*names, "share"}:
                    advice = f"give {', '.join(names)} and share in every row"
                    raise InvalidInput("prior", dict(row), advice)
            rows = [([_entry(row[name]) for name in names], _share("share", row["share"])) for row in given]
            return typed_prior(attributes, rows, self.margins, None)
        if len(names) > 1:
            advice = f'give "{UNKNOWN}", a file, or a list of rows with {", ".join(names)} and share'
            raise InvalidInput("prior", given, advice)
        shares = _typed_shares(given)
        labels = attributes[0].labels
        if attributes[0].question.kind == "choice" and (
            unknown := [key for key in shares if key not in labels]
        ):
            raise InvalidInput("shares", unknown[0], f"choose among its codes, {', '.join(map(str, labels))}")
        return typed_prior(attributes, [((entry,), s) for entry, s in shares.items()], self.margins, None)

    def _table_prior(
        self, section: Section, given: Mapping[str, Any], attributes: tuple[Attribute, ...]
    ) -> Prior:
        """The prior from a table: with a column `share`, or with a row for each person."""
        names = [attribute.name for attribute in attributes]
        columns = [str(given.get("column", names[0]))] if len(names) == 1 else names
        if len(names) > 1 and "column" in given:
            advice = f"its columns are those of the questions, {', '.join(names)}: leave column out"
            raise InvalidInput("column", given["column"], advice)
        public, smoothing = _is_public(given), _smoothing(given)
        if self._has_shares(given, columns):
            *entries, shares = self._columns(section, given, [*columns, "share"])
            numbers = [_share("share", read_number(share)) for share in shares]
            rows = zip(zip(*entries, strict=True), numbers, strict=True)
            return typed_prior(attributes, rows, self.margins, smoothing)
        people = zip(*self._columns(section, given, columns), strict=True)
        return counted_prior(attributes, people, self.margins, public, smoothing)

    def _has_shares(self, given: Mapping[str, Any], columns: Sequence[str]) -> bool:
        if "sheet" in given:
            rows = self.file.tables.get(str(given["sheet"]), [])
            return bool(rows) and "share" in rows[0]
        path = self.file.path.parent / str(given["file"])
        return "share" in open_table(path, columns, _MOST_ROWS, optional=("share",)).types

    def _columns(self, section: Section, given: Mapping[str, Any], names: Sequence[str]) -> list[list[str]]:
        """Columns of a file beside the survey, or of another sheet in it."""
        if "sheet" not in given:
            return list(text_columns(self.file.path.parent / str(given["file"]), *names))
        sheet = str(given["sheet"])
        if sheet not in self.file.tables:
            others = ", ".join(self.file.tables) or "none"
            raise InvalidInput("sheet", sheet, f"there is no such sheet; other sheets: {others}")
        rows = self.file.tables[sheet]
        for name in names:
            if not rows or name not in rows[0]:
                raise InvalidInput("sheet", sheet, f"it has no rows, or no column {name!r}: add it")
        return [[row[name] for row in rows] for name in names]


# -- what is typed ---------------------------------------------------------------------------------------------


def _query(name: str, prior: Prior) -> Query:
    """The query about one question: unbiased, so that the prior shapes the noise, never the answer."""
    if name == "mean" and prior.points is not None:
        return Sum(prior.points, unbiased=True)
    if name == "quantiles":
        return Linear.cumulative(prior, unbiased=True)
    return Distribution() if prior.names is None else Linear.margins(prior, prior.names, unbiased=True)


def _typed_shares(given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping) or not given:
        advice = f'give the share of each answer, such as {{yes = 0.2, no = 0.8}}, a file, or "{UNKNOWN}"'
        raise InvalidInput("prior", given, advice)
    return {str(key): _share(str(key), share) for key, share in given.items()}


def _share(name: str, share: Any) -> float:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidInput(name, share, "give a share from 0 to 1, such as 0.2")
    return float(share)


def _is_public(given: Mapping[str, Any]) -> bool:
    """Whether a table is public already; keys that nobody would read are refused."""
    if unknown := [key for key in given if key not in PRIOR_KEYS]:
        raise InvalidInput("prior", unknown[0], f"choose among {', '.join(PRIOR_KEYS)}")
    public = given.get("public", False)
    if not isinstance(public, bool):
        raise InvalidInput("public", public, "write true or false, without quotation marks")
    return public


def _smoothing(given: Mapping[str, Any]) -> float | None:
    smoothing = given.get("smoothing")
    valid = isinstance(smoothing, int | float) and not isinstance(smoothing, bool) and smoothing > 0
    if smoothing is not None and not valid:
        raise InvalidInput("smoothing", smoothing, "give a number above zero, which is added to every share")
    return smoothing


def _entry(value: Any) -> str:
    """An entry of a typed row as a text, as in a table."""
    return (
        value if isinstance(value, str) else f"{value:.12g}" if isinstance(value, int | float) else str(value)
    )


def _typed_bounds(given: Any) -> tuple[float, ...]:
    """The ends of the ranges that typed shares of a number are for; empty if they are for none."""
    if not isinstance(given, Mapping) or "file" in given or "sheet" in given:
        return ()
    ranges = [ends for key in given if (ends := read_range(str(key))) is not None]
    return tuple(sorted({end for ends in ranges for end in ends}))


def _set_entries(codes: Iterable[str], text: str) -> tuple[str, ...]:
    """For each option yes or no, from the codes of those that were ticked, with blanks between them."""
    if text == NOT_ASKED:
        return tuple(NOT_ASKED for _ in codes)
    ticked = set(re.split(r"[\s,]+", text.strip())) - {""}
    if unknown := ticked - set(codes):
        raise InvalidInput("prior", sorted(unknown)[0], f"choose codes among {', '.join(codes)}")
    return tuple(YES if code in ticked else NO for code in codes)


def _no_entries(attributes: Sequence[Attribute]) -> tuple[str, ...]:
    """What an empty cell means: not asked, or nothing ticked."""
    return tuple(NOT_ASKED if attribute.conditional else NO for attribute in attributes)
