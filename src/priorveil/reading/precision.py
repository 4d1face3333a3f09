"""Precision: the half widths to expect from a number of people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from priorveil import showing
from priorveil.queries.matrices import StatisticName

USUAL_PEOPLE = 10_000  # for what is expected, where nobody says how many people there will be


@dataclass(frozen=True)
class Precision:
    """The largest half width among the statistics, expected from these people under the prior; prints as a sentence.

    `population` is for the population that the people are drawn from, read without the prior. It is None if these
    people are too few, if reports do not determine the statistics at all (`determined` is False), or if the channel is
    too large to find out (`determined` is None). `these_people` is for the people who reported, read with the prior,
    and holds if the prior is right: the population's shares are then the prior's, and need no estimate. It is None for
    a plan that does not lean on the prior. Half widths of shares are shares; other statistics have the unit of the
    query. `of_set` is true for a plan for a set of priors: `population` is then that under the one that reports are
    read at, and may be larger under others; `these_people` holds under all, with the largest bias.
    """

    people: int
    confidence: float
    population: float | None
    these_people: float | None
    statistic: StatisticName
    determined: bool | None
    of_set: bool = False

    def document(self) -> dict[str, Any]:
        """The numbers as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return showing.text(self)
