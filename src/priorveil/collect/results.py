"""Results of a campaign: the estimates of every part of its forms, by cohort and in total, and the margins of tables.

A result is withheld where it has fewer reports than the campaign promises. Then its total over all cohorts is withheld
too: without the other cohorts it would be the withheld one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from priorveil.collect.campaign import Campaign
from priorveil.collect.questions import NO, NOT_ASKED, YES, Question
from priorveil.errors import InvalidInput, NotIdentifiable, TooLarge
from priorveil.plans.composition import Names
from priorveil.plans.form import Form, Part
from priorveil.priors import Domain, Label
from priorveil.priors.label_texts import label_parts, label_text, named_levels
from priorveil.reading.combination import combine_estimates
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.tally import Tally
from priorveil.reading.wording import (
    NUMBERS,
    Description,
    StatisticRow,
    StatisticTable,
    answer,
    describe,
    number_tables,
    shares_among,
    shares_within,
    table_records,
    value_rows,
)

AMONG_ASKED = "share of those asked"
_MOST_SHARED = 2_000  # values of a table up to which it also has shares within groups
_MOST_ASKED = 100  # answers up to which there are shares of those asked: each takes milliseconds
_RANGE = re.compile(r"\[(.+), (.+)[\])]")  # the label of a range of numbers


@dataclass(frozen=True, eq=False)
class Figures:
    """An estimate, and the question of each attribute that is reported with it."""

    estimate: Estimate
    questions: Mapping[str, str]

    @cached_property
    def by(self) -> Names:
        """The attributes that form the groups of an average or of a table: all but the last; empty without groups."""
        if not self._is_about_several(self.estimate.attributes):
            return ()
        if self.estimate.number_by_group is not None:
            return self.estimate.number_by_group.by
        names, grids = self._domain.names or (), self._domain.grids
        if self.estimate.histogram:
            return tuple(name for name in names if name not in grids) if grids else names[:-1]
        margins = dict.fromkeys(tuple(named_levels(str(label), names)) for label in self.estimate.labels)
        groupings = {margin[:-1] for margin in margins if self._is_about_several(margin)}
        return groupings.pop() if len(groupings) == 1 else ()

    def _is_about_several(self, attributes: Names) -> bool:
        return len({self.questions[name] for name in attributes}) > 1

    @property
    def _domain(self) -> Domain:
        return self.estimate.readings[0].prior.domain

    def rows(self, level: float) -> list[tuple[Label, StatisticRow]]:
        """The label and the row of each statistic."""
        labels = answer(self.estimate, level).labels
        return list(zip(labels, value_rows(self.estimate, level), strict=True))

    def tables(self, level: float) -> list[StatisticTable]:
        """Statistics of numbers, averages and shares within groups, or shares of the people who were asked."""
        return [*self._group_tables(level), *self._asked_shares(level)]

    def _asked_shares(self, level: float) -> Iterator[StatisticTable]:
        """The answers to a question that is not always asked, as shares of the people who were asked it.

        There are none if the reports do not tell how many people that are, or if the estimate counts nobody.
        """
        estimate, names = self.estimate, self.estimate.attributes or tuple(self.questions)
        labels = estimate.labels if estimate.histogram else ()
        asked = [label for label in labels if NOT_ASKED not in label_parts(label)]
        if not 0 < len(asked) < len(labels) or len(asked) > _MOST_ASKED or self._is_about_several(names):
            return
        with suppress(NotIdentifiable, InvalidInput):
            yield shares_among(estimate, asked, names, AMONG_ASKED, level)

    def _group_tables(self, level: float) -> list[StatisticTable]:
        estimate = self.estimate
        tables = [t for t in number_tables(estimate, level) if t.heads == NUMBERS or self.by]
        if estimate.margin_attributes and not {*estimate.margin_attributes} & {*self._domain.grids}:
            return []
        if self.by and estimate.histogram and not estimate.has_grid:
            few = len(self._domain) <= _MOST_SHARED
            tables += [shares_within(estimate, self.by, level)] if few else []
        return tables

    def description(self, level: float) -> Description:
        """The estimate as text."""
        return describe(self.estimate, level, others=self.tables(level))

    def record(self, level: float) -> dict[str, Any]:
        """The estimate as JSON."""
        statistics = [entry for table in self.tables(level) for entry in table_records(table)]
        return {**self.estimate.record(level), "statistics": statistics}

    def margin(self, attribute: str) -> Figures:
        """The counts of the answers to one of the questions: they are about everybody who was asked."""
        return Figures(self.estimate.margin(attribute), self.questions)


@dataclass(frozen=True)
class Subject:
    """A question that a result is about, and its option if it is about one of "tick all that apply"."""

    question: str
    option: str | None = None


@dataclass(frozen=True)
class NamedAnswer:
    """What a label says about one question, for everybody who puts it into words, in any language.

    `options` has codes, of which those in `unticked` were not chosen; no code at all: none was ticked. A number has a
    `range`, and any other level is itself. `asked` is false for people who were not asked.
    """

    question: str
    options: tuple[str, ...] = ()
    unticked: tuple[str, ...] = ()
    range: tuple[str, str] | None = None
    level: str | None = None
    asked: bool = True


@dataclass(frozen=True, eq=False)
class Result:
    """What the reports say about an attribute, or about several together.

    `parts` has the part and the number of reports of each cohort that reports about them, `estimates` those that are
    not withheld. `margin_of` has the attributes of the table that a margin is read from. Texts are in the default
    language.
    """

    campaign: Campaign
    attributes: Names
    parts: Mapping[str, tuple[Part, int]]
    estimates: Mapping[str, Figures]
    margin_of: Names | None = None

    @cached_property
    def total(self) -> Figures | None:
        """The estimate over all cohorts; None if one of them is withheld, or reports in another way."""
        if len(self.estimates) < len(self.campaign.cohorts):
            return None
        every = [*self.estimates.values()]
        combined = combine_estimates([each.estimate for each in every])
        return Figures(combined, every[0].questions)

    def shown(self) -> Iterator[tuple[str, Figures]]:
        """The estimate of each cohort that is not withheld, if there are several; then that of all, named ""."""
        if len(self.campaign.cohorts) > 1:
            yield from self.estimates.items()
        if self.total is not None:
            yield "", self.total

    @cached_property
    def _asked(self) -> dict[str, Question]:
        """The question of each attribute."""
        questions = {a: question for question in self.campaign.questions for a in question.attributes}
        return {attribute: questions[attribute] for attribute in self.attributes}

    @property
    def questions(self) -> list[str]:
        """The names of the questions that give the attributes."""
        return self.campaign.questions_about(self.attributes)

    @property
    def subjects(self) -> list[Subject]:
        """The questions that it is about; of "tick all that apply" with the option, if it is about one of them."""
        return list(dict.fromkeys(map(self._subject, self.attributes)))

    def _subject(self, attribute: str) -> Subject:
        question = self._asked[attribute]
        is_alone = sum(other is question for other in self._asked.values()) == 1
        return Subject(question.name, question.option_of(attribute) if is_alone else None)

    @property
    def title(self) -> str:
        """The texts of the questions; a table of several attributes names single options of "tick all that apply"."""
        if len(self.attributes) == 1:
            return self.campaign.text(self._asked[self.attributes[0]].text)
        return " x ".join(map(self._subject_text, self.subjects))

    @property
    def option(self) -> str | None:
        """The text of the option, if this is about one option of "tick all that apply"; None otherwise."""
        subject = self.subjects[0]
        if len(self.attributes) > 1 or subject.option is None:
            return None
        return self.campaign.text(self._question(subject.question).options[subject.option])

    @property
    def measured(self) -> str | None:
        """The name of the question whose unit the numbers have: a number, or that of an average by group."""
        averages = {figures.estimate.number_by_group for figures in self.estimates.values()}
        numbers = [each.number for each in averages if each is not None] or self.attributes
        only = len(numbers) == 1 or len(self.questions) == 1
        return self.campaign.questions_about(numbers)[0] if only else None

    @property
    def unit(self) -> str:
        """The unit of the numbers; empty if they have none."""
        return "" if self.measured is None else self.campaign.text(self._question(self.measured).unit)

    def unit_of(self, attribute: str) -> str:
        """The unit of the question that gives an attribute."""
        return self.campaign.text(self._asked[attribute].unit)

    def name_of(self, attribute: str) -> str:
        """The text of the question that gives an attribute, with the option of "tick all that apply"."""
        question = self._asked[attribute]
        return self._subject_text(Subject(question.name, question.option_of(attribute)))

    def _question(self, name: str) -> Question:
        return next(question for question in self.campaign.questions if question.name == name)

    def _subject_text(self, subject: Subject) -> str:
        question = self._question(subject.question)
        texts = [question.text, *([] if subject.option is None else [question.options[subject.option]])]
        return " ".join(map(self.campaign.text, texts))

    def levels(self, estimate: Estimate, label: Label) -> dict[str, str]:
        """The level of each attribute that a label names; empty for others, such as the name of a statistic."""
        parts = label_parts(label)
        if estimate.histogram and len(parts) == len(self.attributes):
            return dict(zip(self.attributes, map(label_text, parts), strict=True))
        return named_levels(str(label), self.attributes)

    def answers(self, levels: Mapping[str, str]) -> list[NamedAnswer]:
        """What levels by attribute say: an answer for each question."""
        by_question: dict[str, dict[str, str]] = {}
        for attribute, level in levels.items():
            by_question.setdefault(self._asked[attribute].name, {})[attribute] = level
        return [_named_answer(self._question(name), own) for name, own in by_question.items()]

    def words(self, answers: Iterable[NamedAnswer]) -> list[str]:
        """Answers in the words of the campaign."""
        return list(map(self._answer_text, answers))

    def _answer_text(self, answer: NamedAnswer) -> str:
        question = self._question(answer.question)
        if not answer.asked:
            return NOT_ASKED
        if answer.range is not None:
            return " to ".join(answer.range)
        if answer.level is not None:
            return answer.level
        texts = {code: self.campaign.text(question.options[code]) for code in answer.options}
        named = (f"{text}: {NO}" if code in answer.unticked else text for code, text in texts.items())
        return ", ".join(named) or "none of them"

    def is_spare(self, levels: Mapping[str, str]) -> bool:
        """Whether the levels say only that an option was not ticked: the share of those who did tick it says it too."""
        owners = [self._asked[name].name for name in levels]
        return any(
            self._asked[name].kind == "choices" and owners.count(owner) == 1 and levels[name] != YES
            for name, owner in zip(levels, owners, strict=True)
        )


def _named_answer(question: Question, levels: Mapping[str, str]) -> NamedAnswer:
    """What levels by attribute say about one question."""
    if NOT_ASKED in levels.values():
        return NamedAnswer(question.name, asked=False)
    if question.kind == "choices":
        codes = {question.option_of(name) or "": level for name, level in levels.items()}
        unticked = tuple(code for code, level in codes.items() if level != YES)
        if len(codes) < len(question.options):  # it does not say what else was ticked
            return NamedAnswer(question.name, tuple(codes), unticked)
        return NamedAnswer(question.name, tuple(code for code in codes if code not in unticked))
    level = levels[question.name]
    if level in question.options:
        return NamedAnswer(question.name, (level,))
    ends = _RANGE.fullmatch(level)
    return NamedAnswer(
        question.name, range=(ends[1], ends[2]) if ends else None, level=None if ends else level
    )


def results(
    campaign: Campaign,
    tallies: Mapping[str, Sequence[Tally]],
    method: EstimateMethod = "auto",
    or_default: bool = False,
) -> Iterator[Result]:
    """A result for every part of the forms, each followed by its margins if it is about several attributes.

    `tallies` has the tallies of the parts of each form, by the id of the form. With `or_default`, a part whose reports
    the method cannot read is read by the default one.
    """
    estimates = {
        name: _figures(campaign, form, tallies[form.id], method, or_default)
        for name, form in campaign.cohorts.items()
    }
    all_attributes = (part.attributes for form in campaign.cohorts.values() for part in form.parts)
    for attributes in dict.fromkeys(all_attributes):
        parts = {
            name: (part, tally.reports)
            for name, form in campaign.cohorts.items()
            for part, tally in zip(form.parts, tallies[form.id], strict=True)
            if part.attributes == attributes
        }
        whole = {name: estimates[name][attributes] for name in parts if attributes in estimates[name]}
        yield Result(campaign, attributes, parts, whole)
        # The shares of the points of a grid are not shares of people; the table has the mean of such a number.
        grids = {name for part, _ in parts.values() for name in part.plan.domain.grids}
        for attribute in [name for name in attributes if name not in grids] if len(attributes) > 1 else ():
            with suppress(NotIdentifiable):  # the plan was not designed for it
                margins = {name: figures.margin(attribute) for name, figures in whole.items()}
                yield Result(campaign, (attribute,), parts, margins, attributes)


def _figures(
    campaign: Campaign, form: Form, tallies: Sequence[Tally], method: EstimateMethod, or_default: bool
) -> dict[Names, Figures]:
    """The estimates of the parts of a form that have enough reports, by attributes."""
    least = max(campaign.smallest_count, 1)
    parts = zip(form.parts, tallies, strict=True)
    enough = [part.attributes for part, tally in parts if tally.reports >= least]
    figures = {}
    for names in enough:
        try:
            (estimate,) = form.estimate(tallies, method, [names]).values()
        except (NotIdentifiable, TooLarge):
            if not or_default:
                raise
            (estimate,) = form.estimate(tallies, "auto", [names]).values()
        figures[names] = Figures(estimate, {name: campaign.questions_about([name])[0] for name in names})
    return figures
