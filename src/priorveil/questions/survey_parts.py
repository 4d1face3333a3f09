"""What is to be learnt from the questions of a survey file: a part for each of them, and for those designed together.

Cohorts have the same parts. Only their priors differ.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from priorveil.designs.form_design import PartSpec
from priorveil.errors import short_repr
from priorveil.notions import PriorOrSet
from priorveil.priors import Prior
from priorveil.queries import Distribution, Linear, Query, Sum
from priorveil.questions.given_priors import PriorReader, given_priors, option_priors
from priorveil.questions.question import Question
from priorveil.questions.shares import Attribute, asked_share, attributes_of
from priorveil.questions.survey_document import Section, SurveyDocument

DESIGN_KEYS = ("prior", "query", "weight", "epsilon")  # how a question is designed, on its own or with others
TOGETHER_KEYS = ("questions", *DESIGN_KEYS)

MOST_SET_OPTIONS = 6  # options whose sets are one value: with more, LDP cannot distinguish the sets
_MEAN = re.compile(r"mean of (\S+) by (.+)")
_SHARES = re.compile(r"shares of (\S+) by (.+)")

Priors = Mapping[str, PriorOrSet]  # by cohort
QuestionGroup = tuple[Section, tuple[str, ...]]  # of questions that are designed together, and their names


def number_bounds(section: Section, cohorts: Sequence[str], ranges: int) -> tuple[float, ...]:
    """The points of a number's grid, or the ends of its ranges: given, those of its priors, or of its range."""
    points, ends = section.numbers("points"), section.numbers("range")
    if ends and len(ends) != 2:
        raise section.error("give the two ends, such as [0, 80]", "range")
    if not points:
        typed = (given.range_ends() for given in given_priors(section, cohorts).values())
        points = tuple(sorted(set().union(*typed)))
    if points:
        if ends and (points[0], points[-1]) != ends:
            where = "points" if "points" in section.values else "prior"
            raise section.error(f"it should go from {ends[0]:g} to {ends[1]:g}, the range", where)
        return points
    if not ends:
        raise section.error("give the two ends that the number may have, such as [0, 80]", "range")
    return tuple(np.linspace(ends[0], ends[1], ranges + 1).tolist())


@dataclass
class PartReader:
    """Reads the parts of all cohorts; `shares` has the share of all people that each cohort has."""

    file: SurveyDocument
    questions: Mapping[str, Question]
    sections: Mapping[str, Section]
    epsilon: float
    shares: Mapping[str, float]
    known: list[tuple[tuple[str, ...], Priors]] = field(default_factory=list)  # of the attributes read so far

    def __post_init__(self) -> None:
        self.priors = PriorReader(self.file, tuple(self.shares))

    def read(self) -> dict[str, tuple[PartSpec, ...]]:
        """The parts of each cohort, in the order in which their last question is asked."""
        groups = [self._group(section) for section in self.file.sections("together")]
        self._check_groups(groups)
        together = {names: self._together(section, names) for section, names in groups}
        grouped = {name for names in together for name in names}
        order, parts = list(self.questions), list[dict[str, PartSpec]]()
        for name in order:
            if name in grouped:
                self._refuse_design_keys(name)
            else:
                parts += self._specs(name)
            parts += [spec for names, spec in together.items() if max(names, key=order.index) == name]
        return {cohort: tuple(spec[cohort] for spec in parts) for cohort in self.shares}

    def _spec(
        self, section: Section, attributes: Sequence[Attribute], priors: Priors, query: Query, weight: float
    ) -> dict[str, PartSpec]:
        """The part of each cohort; what is known about its attributes is kept for the questions that follow."""
        names = tuple(attribute.name for attribute in attributes)
        self.known.append((names, priors))
        epsilon = self._own_epsilon(section)
        return {cohort: PartSpec(names, prior, query, weight, epsilon) for cohort, prior in priors.items()}

    def _own_epsilon(self, section: Section) -> float | None:
        epsilon = section.positive("epsilon")
        if epsilon is not None and epsilon > self.epsilon:
            advice = (
                f"one question cannot tell more than the whole submission may, {self.epsilon:g}: lower it"
            )
            raise section.error(f"{epsilon:g}: {advice}", "epsilon")
        return epsilon

    def _priors(self, section: Section, attributes: tuple[Attribute, ...]) -> dict[str, PriorOrSet]:
        """The prior of all these attributes, for each cohort."""
        priors = {}
        for cohort, given in given_priors(section, tuple(self.shares)).items():
            with section.at(*given.keys):
                priors[cohort] = self.priors.prior(
                    given, attributes, cohort, self._asked_share(attributes[0].question, cohort)
                )
        return priors

    def _asked_share(self, question: Question, cohort: str) -> float | None:
        """The share of people who are asked a question, if it follows from one of the priors read so far.

        A condition that one of the other gates has as well says nothing new.
        """

        def is_implied(gate: str, codes: Collection[str]) -> bool:
            others = (self.questions[other].asked_if.get(gate) for other in question.asked_if)
            return any(other is not None and set(other) <= set(codes) for other in others)

        gates = {gate: codes for gate, codes in question.asked_if.items() if not is_implied(gate, codes)}
        shares = (asked_share(gates, priors[cohort], names) for names, priors in reversed(self.known))
        return next((share for share in shares if share is not None), None) if gates else None

    def _attributes(self, name: str, query: str) -> tuple[Attribute, ...]:
        question, section = self.questions[name], self.sections[name]

        def bounds(ranges: int) -> tuple[float, ...]:
            return number_bounds(section, tuple(self.shares), ranges)

        with section.at():
            return attributes_of(question, question.numbers(query, bounds))

    # -- one question --------------------------------------------------------------------------------------------

    def _specs(self, name: str) -> Iterator[dict[str, PartSpec]]:
        question, section = self.questions[name], self.sections[name]
        query = section.one_of("query", question.queries, question.queries[0])
        attributes = self._attributes(name, query)
        weight = section.positive("weight") or 1.0
        if question.by_option and self._by_option(section, attributes):
            for attribute, priors in self._option_priors(section, attributes):
                one = _query(query, next(iter(priors.values())))
                yield self._spec(section, (attribute,), priors, one, weight / len(attributes))
        else:
            priors = self._priors(section, attributes)
            one = _query(query, next(iter(priors.values())))
            yield self._spec(section, attributes, priors, one, weight)

    def _by_option(self, section: Section, attributes: Sequence[Attribute]) -> bool:
        """Whether each option of "tick all that apply" is a part of its own, and not their set.

        Shares of single options say nothing about how often they occur together.
        """
        priors = given_priors(section, tuple(self.shares)).values()
        known = [each for each in priors if not each.unknown]
        if not known:
            return not 1 < len(attributes) <= MOST_SET_OPTIONS
        of_options = [each.by_answer and not each.by_set for each in known]
        if any(of_options) and not all(of_options):
            raise section.error("give the shares of options in all cohorts, or those of sets in all", "prior")
        return all(of_options)

    def _option_priors(
        self, section: Section, attributes: Sequence[Attribute]
    ) -> Iterator[tuple[Attribute, Priors]]:
        priors: dict[str, list[Prior]] = {}
        for cohort, given in given_priors(section, tuple(self.shares)).items():
            with section.at(*given.keys):
                priors[cohort] = option_priors(
                    given, attributes, self._asked_share(attributes[0].question, cohort)
                )
        for at, attribute in enumerate(attributes):
            yield attribute, {cohort: some[at] for cohort, some in priors.items()}

    # -- several questions together ----------------------------------------------------------------------------

    def _group(self, section: Section) -> QuestionGroup:
        section.require_known(TOGETHER_KEYS)
        names = section.names("questions")
        for name in names:
            if name not in self.questions:
                advice = f"choose among {', '.join(self.questions)}"
                raise section.error(f"there is no question {name!r}: {advice}", "questions")
            question = self.questions[name]
            if question.by_option and len(question.options) > MOST_SET_OPTIONS:
                sets = 2 ** len(question.options)
                advice = f"{name} has {len(question.options)} options, so {sets:,} sets"
                raise section.error(
                    f"{advice}: at most {MOST_SET_OPTIONS} options can be designed together with others",
                    "questions",
                )
        if len(names) < 2 or len(set(names)) < len(names):
            raise section.error("name two or more different questions", "questions")
        return section, names

    def _check_groups(self, groups: Sequence[QuestionGroup]) -> None:
        """Refuse the same group twice, and a number in two of them: its grid would not be the same."""
        for at, (section, names) in enumerate(groups):
            for _, others in groups[:at]:
                numbers = [
                    name for name in names if name in others and "mean" in self.questions[name].queries
                ]
                if set(names) == set(others) or numbers:
                    shared = ", ".join(numbers or names)
                    raise section.error(
                        f"{shared}: it is in another group already: leave one out", "questions"
                    )

    def _together(self, section: Section, names: tuple[str, ...]) -> dict[str, PartSpec]:
        names, number = self._asked_for(section, names)
        queries = {name: "mean" if name == number else "shares" for name in names}
        attributes = tuple(a for name, query in queries.items() for a in self._attributes(name, query))
        priors = self._priors(section, attributes)
        if number is not None:
            with section.at("query"):
                others = [attribute.name for attribute in attributes if attribute.name != number]
                query: Query = Linear.averages(self._pooled_prior(priors), number, others)
        else:
            query = self._table_query(names, next(iter(priors.values())).centre)
        return self._spec(section, attributes, priors, query, section.positive("weight") or 1.0)

    def _asked_for(self, section: Section, names: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
        """The names in the order of the query, and the number whose averages are asked for; None for a table.

        Results read the last question within the groups of the others.
        """
        text = section.text("query", "table")
        mean, shares = _MEAN.fullmatch(text), _SHARES.fullmatch(text)
        match = mean or shares
        if match is None:
            if text != "table":
                advice = 'choose "table", "mean of NUMBER by QUESTION" or "shares of QUESTION by QUESTION"'
                raise section.error(f"{short_repr(text)}: {advice}", "query")
            return names, None
        by = tuple(name for name in re.split(r"[\s,]+|\band\b", match[2]) if name)
        if {match[1], *by} != set(names) or match[1] in by:
            raise section.error(f"it should name {', '.join(names)}, each once", "query")
        if mean is None:
            return (*by, match[1]), None
        number = self.questions[mean[1]]
        if "mean" not in number.queries:
            advice = "has to be a number that is always asked: ask for a table"
            raise section.error(f"{number.name} {advice}", "query")
        if several := [name for name in by if self.questions[name].by_option]:
            advice = "groups need a question with one choice: ask for a table"
            raise section.error(f'{several[0]} is "tick all that apply": {advice}', "query")
        return (*by, number.name), number.name

    def _table_query(self, names: tuple[str, ...], prior: Prior) -> Query:
        """The shares of all combinations; of "tick all that apply", those of each option."""
        if not any(self.questions[name].by_option for name in names):
            return Distribution()
        tables = list(product(*(self.questions[name].attributes for name in names)))
        return Linear.margins(prior, tables, unbiased=True)

    def _pooled_prior(self, priors: Priors) -> Prior:
        """The prior of the people of all cohorts: one query has to serve them all."""
        first = next(iter(priors.values())).centre
        if len(priors) == 1:
            return first
        weighted = [self.shares[cohort] * prior.centre.probabilities for cohort, prior in priors.items()]
        return Prior(np.sum(weighted, axis=0), first.domain)

    def _refuse_design_keys(self, name: str) -> None:
        """Refuse a prior or query for a question that is designed together with others, which would not be used."""
        section = self.sections[name]
        for key in DESIGN_KEYS:
            if key in section.values:
                raise section.error(f"{name} is designed together with others: give it there instead", key)


def _query(name: str, known: PriorOrSet) -> Query:
    """The query about one question: unbiased, so that the prior shapes the noise, never the estimate."""
    prior = known.centre
    if name == "mean" and prior.points is not None:
        return Sum(prior.points, unbiased=True)
    if name == "quantiles":
        return Linear.cumulative(prior, unbiased=True)
    return Distribution() if prior.names is None else Linear.margins(prior, prior.names, unbiased=True)
