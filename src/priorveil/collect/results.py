"""Results of a campaign: the estimates of every part of its forms, by cohort and in total, and the margins of tables.

A result is withheld where it has fewer reports than the campaign promises. Then its total over all cohorts is withheld
too: without the other cohorts it would be the withheld one. Small groups within a table of several questions, and
among the people who are asked a question, are withheld in the same way (`small_groups`): one that is withheld in a
cohort is withheld in the total.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from priorveil.collect.campaign import Campaign
from priorveil.collect.questions import NO, NOT_ASKED, YES, Question
from priorveil.collect.small_groups import Group, GroupTable, is_in_group
from priorveil.errors import NotIdentifiable
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
_COLUMNS = ("labels", "values", "std_error", "lower", "upper")  # of a record, one entry for each statistic


@dataclass(frozen=True, eq=False)
class Figures:
    """An estimate and what may be shown of it: everything except figures about the groups in `withheld`.

    `questions` has the question of each attribute that is reported with it.
    """

    estimate: Estimate
    questions: Mapping[str, str]
    withheld: frozenset[Group] = frozenset()

    @cached_property
    def by(self) -> Names:
        """The attributes that form the groups of an average or of a table; empty without groups."""
        groupings = GroupTable(self.estimate, self.questions).groupings
        return groupings[0] if len(groupings) == 1 else ()

    @cached_property
    def hidden(self) -> frozenset[int]:
        """The places in the answer of the statistics that are withheld."""
        return GroupTable(self.estimate, self.questions).withheld_places(self.withheld)

    @property
    def _domain(self) -> Domain:
        return self.estimate.readings[0].prior.domain

    def rows(self, level: float) -> list[tuple[Label, StatisticRow]]:
        """The label and the row of each statistic that is shown."""
        labels = answer(self.estimate, level).labels
        places = [place for place in range(len(labels)) if place not in self.hidden]
        return [
            (labels[i], row) for i, row in zip(places, value_rows(self.estimate, level, places), strict=True)
        ]

    def tables(self, level: float) -> list[StatisticTable]:
        """Statistics of numbers, averages of groups, shares of the last question within each group, or of those asked.

        If a group is withheld, so are the averages of groups that are formed in another way: they are totals.
        """
        return [*self._group_tables(level), *self._asked_shares(level)]

    def _asked_shares(self, level: float) -> Iterator[StatisticTable]:
        """The answers to a question that is not always asked, as shares of the people who were asked it.

        There are none if these people are withheld, or if the reports do not tell how many they are.
        """
        estimate, names = self.estimate, self.estimate.attributes or tuple(self.questions)
        labels = estimate.labels if estimate.histogram else ()
        asked = [label for label in labels if NOT_ASKED not in label_parts(label)]
        is_about_one_question = len({self.questions[name] for name in names}) == 1
        if not 0 < len(asked) < len(labels) or len(asked) > _MOST_ASKED or not is_about_one_question:
            return
        if not any(((name, None),) in self.withheld for name in names):
            with suppress(NotIdentifiable):
                yield shares_among(estimate, asked, names, AMONG_ASKED, level)

    def _group_tables(self, level: float) -> list[StatisticTable]:
        estimate = self.estimate
        tables = [t for t in number_tables(estimate, level) if t.heads == NUMBERS or self.by]
        if estimate.margin_attributes and not {*estimate.margin_attributes} & {*self._domain.grids}:
            return []
        if self.by and estimate.histogram and not estimate.has_grid:
            few = len(self._domain) <= _MOST_SHARED
            tables += [shares_within(estimate, self.by, level)] if few else []
        if not self.withheld:
            return tables
        return [
            replace(table, rows=tuple(row for row in table.rows if not self._is_withheld(table, row)))
            for table in tables
            if table.heads == NUMBERS or table.heads[: len(self.by)] == self.by
        ]

    def _is_withheld(self, table: StatisticTable, row: StatisticRow) -> bool:
        levels = dict(zip(table.heads, row.label, strict=True))
        return any(is_in_group(levels, group) for group in self.withheld)

    def description(self, level: float) -> Description:
        """What is shown, as text."""
        return describe(self.estimate, level, hidden=self.hidden, others=self.tables(level))

    def record(self, level: float) -> dict[str, Any]:
        """What is shown, as JSON, with the names of the groups that are withheld."""
        record = self.estimate.record(level)
        columns = {
            name: [entry for place, entry in enumerate(record[name]) if place not in self.hidden]
            for name in _COLUMNS
        }
        statistics = [entry for table in self.tables(level) for entry in table_records(table)]
        groups = [dict(group) for group in sorted(self.withheld, key=str)]
        return {**record, **columns, "statistics": statistics, "withheld_groups": groups}

    def margin(self, attribute: str) -> Figures:
        """The counts of the answers to one of the questions: they are about everybody who was asked."""
        withheld = self.withheld & {((attribute, None),)}
        return Figures(self.estimate.margin(attribute), self.questions, withheld)


@dataclass(frozen=True)
class Subject:
    """A question that a result is about, and its option if it is about one of "tick all that apply"."""

    question: str
    option: str | None = None


@dataclass(frozen=True)
class NamedAnswer:
    """What a label says about one question, for everybody who puts it into words, in any language.

    `options` has codes, of which those in `unticked` were not chosen; no code at all: none was ticked. A number has a
    `range`, and any other level is itself. `asked` says that people were asked or not, whatever they answered.
    """

    question: str
    options: tuple[str, ...] = ()
    unticked: tuple[str, ...] = ()
    range: tuple[str, str] | None = None
    level: str | None = None
    asked: bool | None = None


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
        withheld = frozenset().union(*(each.withheld for each in every))
        combined = combine_estimates([each.estimate for each in every])
        return Figures(combined, every[0].questions, withheld)

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
        if answer.asked:
            subject = Subject(answer.question, answer.options[0] if answer.options else None)
            return f'the people who were asked "{self._subject_text(subject)}"'
        if answer.asked is False:
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

    def withheld_text(self, figures: Figures) -> str | None:
        """Which groups are withheld, and why, in a sentence; None if none are."""
        if not figures.withheld:
            return None
        groups = {", ".join(self.words(answers)) for answers in self.withheld_groups(figures)}
        return (
            f"Withheld: figures about {'; '.join(sorted(groups))}. Such a group is estimated to have fewer than "
            f"{self.campaign.smallest_count:,} people, or its figures would reveal those of a group that is withheld."
        )

    def withheld_groups(self, figures: Figures) -> list[list[NamedAnswer]]:
        """The groups that are withheld, by the answers of their people."""
        return [self._group_answers(group) for group in sorted(figures.withheld, key=str)]

    def _group_answers(self, group: Group) -> list[NamedAnswer]:
        levels = {name: label_text(level) for name, level in group if level is not None}
        if levels:
            return self.answers(levels)
        subject = self._subject(group[0][0])
        return [
            NamedAnswer(subject.question, () if subject.option is None else (subject.option,), asked=True)
        ]


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
    campaign: Campaign, tallies: Mapping[str, Sequence[Tally]], method: EstimateMethod = "auto"
) -> Iterator[Result]:
    """A result for every part of the forms, each followed by its margins if it is about several attributes.

    `tallies` has the tallies of the parts of each form, by the id of the form.
    """
    estimates = {
        name: _figures(campaign, form, tallies[form.id], method) for name, form in campaign.cohorts.items()
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
    campaign: Campaign, form: Form, tallies: Sequence[Tally], method: EstimateMethod
) -> dict[Names, Figures]:
    """What is shown of the parts of a form that have enough reports, by attributes.

    Which groups are withheld does not depend on the method: what one method shows would tell what another withholds.
    """
    least = max(campaign.smallest_count, 1)
    parts = zip(form.parts, tallies, strict=True)
    enough = [part.attributes for part, tally in parts if tally.reports >= least]
    estimates = form.estimate(tallies, method, enough)
    figures = {}
    for names, estimate in estimates.items():
        table = GroupTable(estimate, {name: campaign.questions_about([name])[0] for name in names})
        if table.has_groups and method != "auto":
            usual = form.estimate(tallies, "auto", [names])[names]
            withheld = replace(table, estimate=usual).small_groups(least)
        else:
            withheld = table.small_groups(least)
        figures[names] = Figures(estimate, table.questions, withheld)
    return figures
