"""How precise the answer will be: the half width of intervals that so many people make possible."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from priorveil.errors import InvalidInput, NotIdentifiable, TooLarge

if TYPE_CHECKING:
    from priorveil.plans.plan import Plan

AVERAGE = "average per person"


@dataclass(frozen=True)
class Precision:
    """The largest half width among the statistics, expected from so many people under the prior; prints as a sentence.

    `population` is for the population that the people are drawn from, read without the prior; None where reports
    alone do not determine it. `these_people` is for the people who reported, read with the prior, and holds if the
    prior is right: the population's shares are then the prior's, and need no estimate. It is None for a plan that does
    not lean on the prior. Half widths of shares are shares; other statistics have the unit of the query.
    """

    people: int
    confidence: float
    population: float | None
    these_people: float | None
    statistic: str

    def document(self) -> dict[str, Any]:
        """The numbers and the sentence as JSON."""
        return {**asdict(self), "text": str(self)}

    def __str__(self) -> str:
        people = f"{self.people:,} people"
        sentence = "reports alone do not determine the population"
        if self.population is not None:
            sentence = f"with {people} {self._known('', self.population)}"
        if self.these_people is None:
            return sentence
        leaning = self._known(f" among {people}", self.these_people)
        return f"{sentence}; leaning on the prior, {leaning}, if the prior is right"

    def _known(self, among: str, half_width: float) -> str:
        each, better = ("the", "") if self.statistic == AVERAGE else ("every", " or better")
        width = f"{round_up(100 * half_width)} points" if self.statistic == "share" else round_up(half_width)
        return f"{each} {self.statistic}{among} is known to ±{width}{better} ({100 * self.confidence:g} %)"


def round_up(number: float) -> str:
    """A positive number with two significant digits, rounded up: a half width is never stated too small.

    >>> [round_up(x) for x in (1.8501, 0.012, 143.2, 0.0)]
    ['1.9', '0.012', '150', '0']
    """
    if number <= 0:
        return "0"
    scale = 10.0 ** (np.floor(np.log10(number)) - 1)
    return f"{np.ceil(number / scale * (1 - 1e-12)) * scale:,.12g}"


def percent(share: float) -> str:
    """A share in percent, rounded down: nothing below one becomes 100 %.

    >>> percent(1 - 1e-12), percent(1.0), percent(0.5)
    ('99.99 %', '100 %', '50.00 %')
    """
    return "100 %" if share >= 1 else f"{min(np.floor(share * 1e4 + 1e-6), 9999) / 100:.2f} %"


def expected_precision(plan: Plan, people: int = 10_000, confidence: float = 0.95) -> Precision:
    """The precision to expect from so many people, who follow the plan's prior (the middle of a set of priors).

    >>> import priorveil as pv
    >>> print(expected_precision(pv.design(pv.Prior([0.2, 0.8]), 1.0, pv.Distribution())))
    with 10,000 people every share is known to ±1.6 points or better (95 %)
    """
    if not 0 < confidence < 1:
        raise InvalidInput("confidence", confidence, "give a probability, such as 0.95")
    z = -NormalDist().inv_cdf((1 - confidence) / 2)
    leaning = None if plan.query.unbiased else z * float(plan.std_error(people).max())
    population = None
    if plan.identifiable:
        with suppress(NotIdentifiable, TooLarge):
            population = z * float(plan.expected_std_error("unbiased", people, population=True).max())
    return Precision(people, confidence, population, leaning, _statistic(plan))


def _statistic(plan: Plan) -> str:
    """What the numbers of an answer are, per person."""
    if plan.query.kind == "sum":
        return AVERAGE
    rows = plan.query.rows(plan.reference)
    return "share" if rows is None or np.isin(rows, (0.0, 1.0)).all() else "statistic"
