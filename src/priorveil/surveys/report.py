"""The promise of a survey and the precision of its results, before anybody is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from priorveil.collect.campaign import Campaign
from priorveil.errors import plural
from priorveil.formatting import factor_at_most, level_at_most, percent, round_up, share_text
from priorveil.plans.composition import Names
from priorveil.plans.form import PARTS, Part
from priorveil.reading.precision import Precision
from priorveil.surveys.survey import SurveyDesign

CONFIDENCE = 0.95
MANY = 1000  # people that every report compares with
PROMISE_HEADING = "What a submission reveals about the person who sends it"
TABLE_NOTE = "Margins of error at 95 % confidence. Drawn: the share of people for whom the question is drawn."
_BEFORE = 0.1  # how likely an answer is, in the example of what a submission reveals
_ALMOST_CERTAIN = 0.999  # a share above it would round up to 100.0 %
# As survey files call them; margins are the shares of several questions or options.
_QUERIES = {"distribution": "shares", "cumulative shares": "quantiles", "margins": "shares"}
_WAYS = {
    "split": "A report about every question, with part of the budget for each",
    "draw": "One question for each person, drawn at random, with the whole budget",
    "together": "One report about all questions together",
}


@dataclass(frozen=True)
class PartPrecision:
    """The precision of one part of the form: the half widths of 95 % intervals for each number of people.

    `subject` names its questions, and `drawn` is the share of people for whom it is drawn. A half width is None if
    there are too few people. `cohort` is empty for all cohorts together. Half widths of means have a `unit`.
    """

    subject: str
    query: str
    statistic: str
    drawn: float
    half_widths: tuple[float | None, ...]
    cohort: str = ""
    unit: str = ""

    def texts(self) -> tuple[str, ...]:
        """The half widths as text."""
        return tuple(_half_width_text(self.statistic, width, self.unit) for width in self.half_widths)


@dataclass(frozen=True)
class CohortPromise:
    """What a whole submission of a cohort reveals; `people` is its size for each total number of people."""

    name: str
    people: tuple[int, ...]
    lip: float
    ldp: float


@dataclass(frozen=True)
class SurveyReport:
    """What `priorveil campaign check` shows. Levels and half widths are rounded up.

    The levels are those of the cohort whose submissions reveal most. `parts` has each part in every cohort, the least
    precise first, and then in all cohorts together if their estimates can be added up.
    """

    epsilon: float
    lip: float
    ldp: float
    assumed: tuple[str, ...]  # the questions whose prior nobody knows
    reports: int  # that each person sends
    people: tuple[int, ...]
    parts: tuple[PartPrecision, ...]
    smallest_count: int
    bytes: int
    topics: int  # that share the budget
    chosen: str
    costs: dict[str, float | None]  # how many times as many people as without noise, on average
    left_out: tuple[str, ...]
    cohorts: tuple[CohortPromise, ...]
    warnings: tuple[str, ...] = ()  # what should be changed before people are asked

    @classmethod
    def of(cls, built: SurveyDesign, people: int) -> SurveyReport:
        """The report for this number of people, and for a thousand or ten times as many."""
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
        topics = [topic for cohort in survey.cohorts.values() for topic in cohort.topics]
        unknown = [topic for topic in topics if topic.prior.assumed]
        weight = math.fsum(topic.weight for topic in survey.topics)
        forms = built.campaign.cohorts.values()
        return cls(
            epsilon=survey.epsilon,
            lip=max(cohort.lip for cohort in cohorts),
            ldp=max(cohort.ldp for cohort in cohorts),
            assumed=tuple(dict.fromkeys(_subject(topic.attributes) for topic in unknown)),
            reports=max(len(form.slots) for form in forms),
            people=numbers,
            parts=tuple(_all_parts(built.campaign, cohorts)),
            smallest_count=built.campaign.smallest_count,
            bytes=8 * max(form.width for form in forms),
            topics=len(survey.topics),
            chosen=built.chosen,
            costs={way: None if cost is None else cost / weight for way, cost in built.costs.items()},
            left_out=survey.left_out,
            cohorts=cohorts,
            warnings=built.campaign.warnings,
        )

    def document(self) -> dict[str, Any]:
        """The report for a program, with the sentences."""
        heads, rows = self.table()
        table = {"heads": heads, "rows": rows, "note": TABLE_NOTE}
        sentences = {"promise": self.promise(), "tells": self.tells(), "design": self.ways()}
        return {**asdict(self), "headings": self.headings(), "text": sentences, "table": table}

    def headings(self) -> dict[str, str]:
        """The headings of the sentences."""
        return {
            "promise": PROMISE_HEADING,
            "tells": f"How precise the results will be with {self.people[0]:,} people",
            "design": "How the budget is used",
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The precision of each part, as a table: the names of its columns, and the rows."""
        heads = ["question", "result", "drawn", *(f"{number:,} people" for number in self.people)]
        rows = [[p.subject, p.query, f"{100 * p.drawn:.0f} %", *p.texts()] for p in self.parts]
        if len(self.cohorts) > 1:
            heads.insert(2, "cohort")
            for row, part in zip(rows, self.parts, strict=True):
                row.insert(2, part.cohort or "all")
        return heads, rows

    def promise(self) -> list[str]:
        """What a whole submission reveals, in sentences."""
        sentences = promise_sentences(self.lip, self.ldp, self.reports)
        return [*sentences, *self.warnings, *self._why_ldp()]

    def _why_ldp(self) -> list[str]:
        names = ", ".join(self.assumed)
        if self.reports > 1:
            return [
                "LDP levels of several reports add up, and LIP levels do not. So all answers are protected by LDP, "
                "which holds no matter what anyone already knows."
            ]
        if self.chosen == "together":
            helpful = f" A prior of {names}, even a rough one, might help." if self.assumed else ""
            return [
                "One report is about all questions, and nobody knows how often their answers occur together. So it is "
                f"protected by LDP, which holds no matter what anyone already knows.{helpful}"
            ]
        if self.assumed:
            return [
                f"Nobody knows how common the answers to {names} are. So these are protected by LDP, which holds no "
                "matter what anyone already knows, and needs more people. A prior, even a rough one, would help."
            ]
        return []

    def tells(self) -> list[str]:
        """How precise the results will be, in sentences."""
        sentences = []
        for at, people in enumerate(self.people):
            few = self._names([part for part in self.parts if part.half_widths[at] is None])
            if few:
                sentences.append(f"{people:,} people are too few to learn anything about: {few}.")
            shown = self._shown(at)
            all_shown = len(shown) == len(self.parts)
            known = (
                f"every{' other' if few else ''} share {'is' if all_shown else 'that is shown is'} known to"
            )
            if len(self.cohorts) == 1:
                if widest := self._widest_share(at, shown):
                    sentences.append(f"With {people:,} people {known} ±{widest} points.")
                continue
            if widest := self._widest_share(at, [part for part in shown if part.cohort]):
                sentences.append(f"With {people:,} people {known} ±{widest} points in each cohort.")
            if widest := self._widest_share(at, [part for part in shown if not part.cohort]):
                sentences.append(f"With {people:,} people {known} ±{widest} points in all cohorts together.")
        return [*sentences, *self._withheld()]

    def _names(self, parts: Sequence[PartPrecision]) -> str:
        """What these parts are about, each subject once, with its cohorts if there are several."""
        several, cohorts = len(self.cohorts) > 1, dict[str, list[str]]()
        for part in parts:
            if part.cohort or not several:
                cohorts.setdefault(part.subject, []).append(part.cohort)
        if not several:
            return "; ".join(cohorts)
        everywhere = {subject: len(some) == len(self.cohorts) for subject, some in cohorts.items()}
        return "; ".join(
            f"{subject} in {'every cohort' if everywhere[subject] else ', '.join(some)}"
            for subject, some in cohorts.items()
        )

    def _widest_share(self, at: int, parts: Sequence[PartPrecision]) -> str:
        """The largest half width of shares in points; empty if there is none."""
        shares = (part.half_widths[at] for part in parts if part.statistic == "share")
        widths = [width for width in shares if width is not None]
        return str(round_up(100 * max(widths))) if widths else ""

    def _people(self, at: int) -> dict[str, int]:
        """How many people each cohort has; a single one has no name."""
        several = len(self.cohorts) > 1
        return {cohort.name if several else "": cohort.people[at] for cohort in self.cohorts}

    def _hidden(self, at: int) -> list[PartPrecision]:
        """The parts that have too few reports to be shown."""
        people = self._people(at)
        parts = [part for part in self.parts if part.cohort in people]
        return [part for part in parts if people[part.cohort] * part.drawn < self.smallest_count]

    def _shown(self, at: int) -> list[PartPrecision]:
        """The parts that have enough reports; for all cohorts together, only those that have enough in each cohort."""
        hidden = {(part.subject, part.cohort) for part in self._hidden(at)}
        subjects = {subject for subject, _ in hidden}
        together = "" if len(self.cohorts) > 1 else None
        return [
            part
            for part in self.parts
            if (part.subject, part.cohort) not in hidden
            and not (part.cohort == together and part.subject in subjects)
        ]

    def _withheld(self) -> list[str]:
        people, numbers, hidden = self.people[0], self._people(0), self._hidden(0)
        if not hidden:
            return []
        names = self._names(hidden)
        fewest = max(self.smallest_count * people / (numbers[p.cohort] * p.drawn) for p in hidden)
        return [
            f"With {people:,} people no result would be shown for: {names}. Each needs "
            f"{plural(self.smallest_count, 'report')} (smallest_count), which takes about {math.ceil(fewest):,} people."
        ]

    def ways(self) -> list[str]:
        """How the budget is used, and what the other ways would have cost, in sentences."""
        size = f"A submission has {plural(self.bytes, 'byte')}, the same for everybody."
        if self.topics == 1:
            return [f"One report uses all of it: {_price(self.costs[self.chosen])}.", size]
        chosen = {self.chosen: " (chosen)"}
        ways = (f"{_WAYS[way]}: {_price(cost)}{chosen.get(way, '')}." for way, cost in self.costs.items())
        return [*ways, size]


def promise_sentences(lip: float, ldp: float, reports: int) -> list[str]:
    """What a whole submission with these levels reveals: under the priors, if that is less, and under any prior.

    `reports` is their number in a submission.
    """
    added_up = f", the sum of {reports} reports" if reports > 1 else ""
    sentences = [
        f"No matter what anyone knows or believes (LDP {level_at_most(ldp)}{added_up}): everything that a person sends "
        f"changes the odds of any answer by at most a factor of {factor_at_most(ldp)}. "
        f"{_example(likely_afterwards(_BEFORE, math.inf, math.inf, ldp))}"
    ]
    if lip < ldp:
        sentences.insert(
            0,
            f"If answers are as common as the survey says (LIP {level_at_most(lip)}): everything that a person sends "
            f"changes the probability of any answer by at most a factor of {factor_at_most(lip)}. "
            f"{_example(likely_afterwards(_BEFORE, lip, lip, ldp))}",
        )
    return sentences


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
            yield _combined(each, cohorts)


def _parts(campaign: Campaign, cohort: CohortPromise) -> dict[Names, tuple[Part, PartPrecision]]:
    form = campaign.form_for(cohort.name)
    expected = [form.expected_precision(number, CONFIDENCE) for number in cohort.people]
    return {
        part.attributes: (
            part,
            _precision(
                campaign, part, share / PARTS, [each[part.attributes] for each in expected], cohort.name
            ),
        )
        for slot in form.slots
        for part, share in zip(slot.parts, slot.shares, strict=True)
    }


def _combined(parts: Sequence[PartPrecision], cohorts: Sequence[CohortPromise]) -> PartPrecision:
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
    subject, unit = _subject(part.attributes), _unit(campaign, part)
    return PartPrecision(subject, name, query.statistic_name, drawn, widths, cohort, unit)


def _unit(campaign: Campaign, part: Part) -> str:
    """The unit of the number whose mean a part asks for; empty for shares."""
    if part.plan.query.statistic_name == "share":
        return ""
    averages = part.plan.query.number_by_group
    number = part.attributes[0] if averages is None else averages.number
    return next(
        (campaign.text(question.unit) for question in campaign.questions if question.name == number), ""
    )


def _subject(attributes: Names) -> str:
    """The names of what a part is about; several options of one question are that question."""
    owners = [name.partition("/")[0] for name in attributes]
    pairs = zip(owners, attributes, strict=True)
    return " x ".join(dict.fromkeys(owner if owners.count(owner) > 1 else name for owner, name in pairs))


def _price(cost: float | None) -> str:
    return (
        "not possible here"
        if cost is None
        else f"{round_up(cost)} times as many people as asking without noise"
    )


def likely_afterwards(before: float, lip_lower: float, lip_upper: float, ldp: float) -> float:
    """How likely an answer can be after a submission, at most, if it was `before` likely.

    The answer becomes at most `e^lip_upper` times as likely, all other answers together keep at least `e^-lip_lower` of
    their probability, and the odds grow by at most `e^ldp`. `likelyAfterwards` in levels.js is the same.

    >>> likely_afterwards(0.1, 1.0, 1.0, 2.0), likely_afterwards(0.1, 4.0, 4.0, 6.0) < 0.979
    (0.27182818284590454, True)
    """
    odds = before / (1 - before) * math.exp(ldp)
    return min(before * math.exp(lip_upper), 1 - (1 - before) * math.exp(-lip_lower), 1 / (1 + 1 / odds))


def _example(after: float) -> str:
    """What a level means for one answer. The share is rounded up, and never to 100 %."""
    before = f"An answer that was {percent(_BEFORE)} likely"
    if after > _ALMOST_CERTAIN:
        return f"{before} may be almost certain afterwards."
    return f"{before} is at most {share_text(math.ceil(1000 * after - 1e-9) / 1000)} likely afterwards."


def _questions(attributes: Any) -> tuple[str, ...]:
    """The questions that attributes belong to, each once."""
    return tuple(dict.fromkeys(name.partition("/")[0] for name in attributes))


def _half_width_text(statistic: str, width: float | None, unit: str) -> str:
    if width is None:
        return "too few"
    return (
        f"±{round_up(100 * width)} points" if statistic == "share" else f"±{round_up(width)} {unit}".rstrip()
    )
