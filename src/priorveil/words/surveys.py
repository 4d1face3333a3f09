"""The words of a survey before anybody is asked: what it promises, how precise it will be, how its budget is used."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from priorveil.catalogue import say
from priorveil.formatting import factor_at_most, level_at_most, percent, round_up, share_text
from priorveil.questions.survey_check import PartPrecision, SurveyCheck
from priorveil.words.notes import reports_text

_BEFORE = 0.1  # how likely an answer is, in the example of what a submission reveals
_ALMOST_CERTAIN = 0.999  # a share above it would round up to 100.0 %
_WAYS = {"split": "waySplit", "draw": "wayDraw", "together": "wayTogether"}


class Passage(Struct, frozen=True):
    """Sentences under a heading."""

    heading: str
    sentences: tuple[str, ...]


class PrecisionTable(Struct, frozen=True):
    """How precisely each question will be known."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


class SurveyWords(Struct, frozen=True):
    """What a submission reveals, how precise the results will be, and how the budget is used."""

    promise: Passage
    precision: Passage
    budget: Passage
    table: PrecisionTable


def survey_words(check: SurveyCheck) -> SurveyWords:
    """The check of a survey in words."""
    people = f"{check.people[0]:,}"
    promise = (
        *promise_sentences(check.lip, check.ldp, check.reports),
        *check.warnings,
        *_why_ldp(check),
    )
    return SurveyWords(
        Passage(say("promiseHeading"), promise),
        Passage(say("precisionHeading", people=people), tuple(_precision_sentences(check))),
        Passage(say("budgetHeading"), tuple(_ways(check))),
        _table(check),
    )


# -- what a submission reveals -----------------------------------------------------------------------------------


def promise_sentences(lip: float, ldp: float, reports: int) -> list[str]:
    """What a whole submission with these levels reveals: under the priors, if that is less, and under any prior.

    `reports` is their number in a submission.
    """
    any_prior = say(
        "promiseAnyPriorSum" if reports > 1 else "promiseAnyPrior",
        ldp=level_at_most(ldp),
        reports=reports,
        factor=factor_at_most(ldp),
        example=_example(likely_afterwards(_BEFORE, math.inf, math.inf, ldp)),
    )
    if lip >= ldp:
        return [any_prior]
    known_prior = say(
        "promiseKnownPrior",
        lip=level_at_most(lip),
        factor=factor_at_most(lip),
        example=_example(likely_afterwards(_BEFORE, lip, lip, ldp)),
    )
    return [known_prior, any_prior]


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
    before = percent(_BEFORE)
    if after > _ALMOST_CERTAIN:
        return say("exampleCertain", before=before)
    return say("exampleAtMost", before=before, after=share_text(math.ceil(1000 * after - 1e-9) / 1000))


def _why_ldp(check: SurveyCheck) -> list[str]:
    names = ", ".join(check.assumed)
    if check.reports > 1:
        return [say("whyLdpSeveral")]
    if check.chosen == "together":
        return [say("whyLdpTogetherUnknown" if names else "whyLdpTogether", names=names)]
    return [say("whyLdpUnknown", names=names)] if names else []


# -- how precise the results will be -----------------------------------------------------------------------------


def _precision_sentences(check: SurveyCheck) -> Iterator[str]:
    if any(len(check.shown_parts(at)) < len(check.parts) for at in range(len(check.people))):
        reports = reports_text(check.smallest_count)
        yield say("noResultShown", reports=reports, needed=f"{check.people_to_show_all:,}")


def _table(check: SurveyCheck) -> PrecisionTable:
    several = len(check.cohorts) > 1
    cohort_head = (say("precisionCohort"),) if several else ()
    numbers = (say("precisionPeople", people=f"{people:,}") for people in check.people)
    heads = (say("precisionQuestion"), say("precisionResult"), *cohort_head, say("precisionDrawn"), *numbers)
    shown = [check.shown_parts(at) for at in range(len(check.people))]
    rows = []
    for part in check.parts:
        cohort = (part.cohort or say("precisionAll"),) if several else ()
        widths = (
            _half_width_text(part, width) if part in parts else say("precisionHidden")
            for parts, width in zip(shown, part.half_widths, strict=True)
        )
        rows.append((part.questions, part.query, *cohort, f"{100 * part.drawn:.0f} %", *widths))
    return PrecisionTable(heads, tuple(rows), say("precisionNote"))


def _half_width_text(part: PartPrecision, width: float | None) -> str:
    if width is None:
        return say("precisionTooFew")
    if part.statistic == "share":
        return say("precisionPoints", width=round_up(100 * width))
    return say("precisionWidth", width=round_up(width), unit=part.unit).rstrip()


# -- how the budget is used --------------------------------------------------------------------------------------


def _ways(check: SurveyCheck) -> Iterator[str]:
    """How the budget is used, and what the other ways would have cost."""
    if check.designed == 1:
        yield say("oneReportUsesAll", price=_price(check.costs[check.chosen]))
    else:
        for way, cost in check.costs.items():
            price = _price(cost)
            yield say(_WAYS[way], price=say("wayChosen", price=price) if way == check.chosen else price)
    yield say("submissionSize", size=say("countOfBytes", count=f"{check.bytes:,}"))


def _price(cost: float | None) -> str:
    return say("priceNone") if cost is None else say("priceTimes", times=round_up(cost))
