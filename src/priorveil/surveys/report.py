"""What a survey promises to people, and what it will tell with so many of them: before anybody is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from priorveil.collect.campaign import EVERYONE
from priorveil.designs.forms import Topic
from priorveil.errors import plural
from priorveil.formatting import factor_at_most, level_at_most, percent, round_up, share_text
from priorveil.plans.composition import agree
from priorveil.plans.form import PARTS, Part
from priorveil.reading.precision import Precision
from priorveil.surveys.survey import SurveyDesign

CONFIDENCE = 0.95
MANY = 1000  # people that every report compares with
TABLE_NOTE = "Half widths of 95 % intervals; drawn: the share of people for whom the question is drawn."
_BEFORE = 0.1  # how likely an answer is, in the example of what a submission tells
_QUERIES = {"distribution": "shares", "cumulative shares": "quantiles"}  # as survey files call them
_WAYS = {
    "split": "A report about every question, with a part of the budget for each",
    "draw": "One question for each person, drawn at random, with the whole budget",
    "together": "One report about all questions together",
}


@dataclass(frozen=True)
class PartPrecision:
    """How precisely one part of the form is known: the half widths of 95 % intervals with each number of people.

    `subject` names its questions, and `drawn` is the share of people for whom it is drawn. A half width is None if so
    many people are too few.
    """

    subject: str
    query: str
    statistic: str
    drawn: float
    half_widths: tuple[float | None, ...]

    def texts(self) -> tuple[str, ...]:
        """The half widths as people read them."""
        return tuple(_half_width_text(self.statistic, width) for width in self.half_widths)


@dataclass(frozen=True)
class SurveyReport:
    """What `priorveil campaign check` shows. Levels and half widths are rounded up."""

    lip: float
    ldp: float
    assumed: tuple[str, ...]  # the questions whose prior nobody knows
    all_assumed: bool
    contradictory: tuple[str, ...]  # the questions about which two priors say different things
    people: tuple[int, ...]
    parts: tuple[PartPrecision, ...]
    smallest_count: int
    bytes: int
    topics: int  # that share the budget
    chosen: str
    costs: dict[str, float | None]  # how many times as many people as without noise, on average
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, built: SurveyDesign, people: int) -> SurveyReport:
        """The report for this number of people, and for a thousand or ten times as many."""
        form, survey = built.campaign.form_for(EVERYONE), built.survey
        levels = built.campaign.promise[EVERYONE]
        numbers = (people, MANY if people < MANY else 10 * people)
        expected = [form.expected_precision(n, CONFIDENCE) for n in numbers]
        parts = [
            _precision(part, share / PARTS, [precision[part.attributes] for precision in expected])
            for slot in form.slots
            for part, share in zip(slot.parts, slot.shares, strict=True)
        ]
        unknown = [topic for topic in survey.topics if topic.prior.assumed]
        weight = math.fsum(topic.weight for topic in survey.topics)
        costs = built.design.costs.items()
        return cls(
            lip=levels.lip,
            ldp=levels.ldp,
            assumed=tuple(dict.fromkeys(_subject(topic.attributes) for topic in unknown)),
            all_assumed=len(unknown) == len(survey.topics),
            contradictory=_contradictory(survey.topics),
            people=numbers,
            parts=tuple(parts),
            smallest_count=built.campaign.smallest_count,
            bytes=8 * form.width,
            topics=len(survey.topics),
            chosen=built.design.chosen,
            costs={way: None if cost is None else cost / weight for way, cost in costs},
            left_out=survey.left_out,
        )

    def document(self) -> dict[str, Any]:
        """All of it for a program, with the sentences."""
        heads, rows = self.table()
        table = {"heads": heads, "rows": rows, "note": TABLE_NOTE}
        sentences = {"promise": self.promise(), "tells": self.tells(), "design": self.ways()}
        return {**asdict(self), "headings": self.headings(), "text": sentences, "table": table}

    def headings(self) -> dict[str, str]:
        """The headings of the sentences."""
        return {
            "promise": "What a submission tells about the person who sends it",
            "tells": f"What the survey tells, with {self.people[0]:,} people",
            "design": "How the budget is used",
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """How precisely each part is known: the names of columns, and the rows."""
        heads = ["question", "answer", "drawn", *(f"{number:,} people" for number in self.people)]
        return heads, [[p.subject, p.query, f"{100 * p.drawn:.0f} %", *p.texts()] for p in self.parts]

    def promise(self) -> list[str]:
        """What a whole submission tells, in sentences."""
        odds = _BEFORE / (1 - _BEFORE) * math.exp(self.ldp)
        ldp = (
            f"Whatever anyone knows or believes (LDP {level_at_most(self.ldp)}): all that a person sends changes the "
            f"odds of any answer by at most a factor {factor_at_most(self.ldp)}. One that was {percent(_BEFORE)} "
            f"likely is at most {_at_most(1 / (1 + 1 / odds))} likely afterwards."
        )
        if self.all_assumed:
            return [ldp, *self._why_ldp()]
        lip = (
            f"If answers are as common as the survey says (LIP {level_at_most(self.lip)}): all that a person sends "
            f"changes how likely any answer is by at most a factor {factor_at_most(self.lip)}. One that was "
            f"{percent(_BEFORE)} likely is at most {_at_most(_BEFORE * math.exp(self.lip))} likely afterwards."
        )
        return [lip, ldp, *self._why_ldp()]

    def _why_ldp(self) -> list[str]:
        sentences = []
        if self.assumed:
            sentences.append(
                f"Nobody knows how common the answers to {', '.join(self.assumed)} are. So these are protected by "
                "LDP, which holds whatever anyone knows, and needs more people. A prior, even a rough one, would help."
            )
        if self.contradictory:
            sentences.append(
                f"What is known about {', '.join(self.contradictory)} differs from table to table, so that only LDP "
                "levels can be added up. Make all these tables from the same people, with public = true."
            )
        return sentences

    def tells(self) -> list[str]:
        """How precise the answers will be, in sentences."""
        shares = [part for part in self.parts if part.statistic == "share"]
        sentences = []
        for at, people in enumerate(self.people):
            few = [part for part in self.parts if part.half_widths[at] is None]
            widths = [width for part in shares if (width := part.half_widths[at]) is not None]
            if few:
                names = "; ".join(part.subject for part in few)
                sentences.append(f"{people:,} people are too few to learn anything about: {names}.")
            if widths:
                others = " other" if few else ""
                sentences.append(
                    f"With {people:,} people every{others} share is known to ±{round_up(100 * max(widths))} points."
                )
        return [*sentences, *self._withheld()]

    def _withheld(self) -> list[str]:
        people = self.people[0]
        hidden = [part for part in self.parts if people * part.drawn < self.smallest_count]
        if not hidden:
            return []
        names = "; ".join(part.subject for part in hidden)
        fewest = math.ceil(self.smallest_count / min(part.drawn for part in hidden))
        return [
            f"With {people:,} people no answer would be shown for: {names}. Each needs "
            f"{plural(self.smallest_count, 'report')} (smallest_count), which about {fewest:,} people give."
        ]

    def ways(self) -> list[str]:
        """How the budget is used, and what the other ways would have cost, in sentences."""
        size = f"A submission has {plural(self.bytes, 'byte')}, the same for everybody."
        if self.topics == 1:
            return [f"One question uses all of it: {_price(self.costs[self.chosen])}.", size]
        chosen = {self.chosen: " (chosen)"}
        ways = (f"{_WAYS[way]}: {_price(cost)}{chosen.get(way, '')}." for way, cost in self.costs.items())
        return [*ways, size]


def _precision(part: Part, drawn: float, expected: Sequence[Precision]) -> PartPrecision:
    widths = tuple(precision.population for precision in expected)
    query = part.plan.query
    title = query.title(part.plan.reference)
    return PartPrecision(
        _subject(part.attributes), _QUERIES.get(title, title), query.statistic_name, drawn, widths
    )


def _subject(attributes: tuple[str, ...]) -> str:
    """The names of what a part is about; all options of one question are that question."""
    questions = _questions(attributes)
    return questions[0] if len(questions) == 1 < len(attributes) else " x ".join(attributes)


def _contradictory(topics: Sequence[Topic]) -> tuple[str, ...]:
    """The questions about which two known priors say different things."""
    pairs = combinations((topic for topic in topics if not topic.prior.assumed), 2)
    wrong = [
        name
        for one, other in pairs
        if not agree(one.attributes, one.prior, other.attributes, other.prior)
        for name in one.attributes
        if name in other.attributes
    ]
    return _questions(wrong)


def _price(cost: float | None) -> str:
    return "not possible here" if cost is None else f"{round_up(cost)} times the people of open questions"


def _at_most(share: float) -> str:
    """A share in percent, rounded up."""
    return share_text(min(math.ceil(1000 * share - 1e-9) / 1000, 1.0))


def _questions(attributes: Any) -> tuple[str, ...]:
    """The questions that attributes belong to, each once."""
    return tuple(dict.fromkeys(name.partition("/")[0] for name in attributes))


def _half_width_text(statistic: str, width: float | None) -> str:
    if width is None:
        return "too few"
    return f"±{round_up(100 * width)} points" if statistic == "share" else f"±{round_up(width)}"
