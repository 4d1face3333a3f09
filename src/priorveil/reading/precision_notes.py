"""How precise an answer will be, or is, as notes with half widths of intervals."""

from __future__ import annotations

import math

from priorveil.notes import Note
from priorveil.queries.matrices import StatisticName
from priorveil.reading.precision import Precision

_STATISTICS: dict[StatisticName, Note] = {
    "share": Note("statisticShare"),
    "average per person": Note("statisticAverage"),
    "average of a group": Note("statisticGroupAverage"),
    "statistic": Note("statisticOther"),
}


def promised_precision(precision: Precision) -> Note:
    """What will be known about the population and, leaning on the prior, about these people."""
    statistic, people = _STATISTICS[precision.statistic], {"count": precision.people}
    if precision.population is not None:
        known = _known_precision(precision.statistic, statistic, precision.population, precision.confidence)
        code = "knownPopulationOfSet" if precision.of_set else "knownPopulation"
        population = Note(code, {**people, "known": known})
    elif precision.determined:
        population = Note("tooFewForPopulation", people)
    else:
        population = Note("uncheckedPopulation" if precision.determined is None else "undeterminedPopulation")
    if precision.these_people is None:
        return population
    among = Note("amongPeople", {"statistic": statistic, **people})
    these = _known_precision(precision.statistic, among, precision.these_people, precision.confidence)
    code = "precisionLeaningOnSet" if precision.of_set else "precisionLeaning"
    return Note(code, {"population": population, "these": these})


def reached_precision(
    statistic: StatisticName, half_width: float, confidence: float, reports: int, leans: bool, on_set: bool
) -> Note:
    """What is known from these reports; if the answer leans on a prior, about these people if that is right."""
    about = _STATISTICS[statistic]
    known = _known_precision(
        statistic, Note("amongThese", {"statistic": about}) if leans else about, half_width, confidence
    )
    if leans:
        known = Note("ifPriorOfSetRight" if on_set else "ifPriorRight", {"known": known})
    count = Note("countOfOneReport" if reports == 1 else "countOfReports", {"count": reports})
    code = "reachedPrecisionByOne" if reports == 1 else "reachedPrecision"
    return Note(code, {"reports": count, "known": known})


def _known_precision(statistic: StatisticName, about: Note, half_width: float, confidence: float) -> Note:
    """That statistics are known to this half width, or that not all of them are."""
    is_only = statistic == "average per person"
    if not math.isfinite(half_width):
        return Note("notTheKnown" if is_only else "notEveryKnown", {"statistic": about})
    width: Note | float = half_width
    if statistic == "share":
        width = Note("points", {"width": 100 * half_width})
    elif statistic == "statistic":
        width = Note("perPerson", {"width": half_width})
    values = {"statistic": about, "width": width, "confidence": confidence}
    return Note("theKnown" if is_only else "everyKnown", values)
