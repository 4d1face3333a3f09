"""The words of planning: how large a survey has to be, and what a test can find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from priorveil.catalogue import say
from priorveil.designs.survey_sizes import SurveySize
from priorveil.formatting import level_at_most, percent, round_up
from priorveil.priors.label_texts import label_text
from priorveil.queries.matrices import StatisticName
from priorveil.statistics.planning import PowerAnalysis
from priorveil.words import html


def power_text(analysis: PowerAnalysis) -> str:
    """What a test finds, with how many people, and how often."""
    return say(
        "powerOfTest" if analysis.groups == 1 else "powerOfGroups",
        people=f"{analysis.people:,}",
        sides=say("oneSided" if analysis.sides == 1 else "twoSided"),
        level=percent(analysis.level),
        statistic=label_text(analysis.statistic),
        null=f"{analysis.null:.4g}",
        truth=f"{analysis.truth:.4g}",
        power=f"{analysis.power:.3f}",
    )


def power_html(analysis: PowerAnalysis) -> str:
    """The sentence for a notebook."""
    return html.sheet(power_text(analysis))


@dataclass(frozen=True)
class SizeQuestion:
    """What is asked about surveys: the people for a half width, or the half width that this many people give."""

    statistic: StatisticName
    confidence: float
    within: float | None = None
    people: int | None = None

    def title(self) -> str:
        """What the table shows."""
        confidence = percent(self.confidence)
        if self.within is not None:
            return say("sizePeopleTitle", width=self._width(self.within), confidence=confidence)
        return say("sizeWidthTitle", people=f"{self.people:,}", confidence=confidence)

    def table(self, sizes: Sequence[SurveySize]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The heads, and a row for each budget: at the prior, whatever the truth is, and what the noise costs."""
        heads = (say("epsilonHead"), say("sizeAtPrior"), say("sizeAtWorst"), say("sizeCostHead"))
        exact, rows = sizes[-1].variance, []
        for size in sizes:
            times = say("sizeTimes", times=f"{size.variance / exact:,.1f}") if exact > 0 else "-"
            rows.append((epsilon_text(size.epsilon), *map(self._cell, self._pair(size)), times))
        return heads, rows

    def sentences(self, sizes: Sequence[SurveySize]) -> list[str]:
        """What the numbers mean, and what the noise costs."""
        lines = [say("sizeMeans"), say("sizeCost"), say("sizeSquare")]
        if any(size.worst_variance is None for size in sizes):
            lines.append(say("sizeNoWorst"))
        return lines

    def least_epsilon(self, least: Sequence[float | None]) -> str:
        """The least epsilon that is enough at the prior, and whatever the truth is; None where there is none."""
        texts = [say("sizeNoEpsilon") if each is None else level_at_most(each) for each in least]
        return say("sizeLeastEpsilon", people=f"{self.people:,}", least=texts[0], worst=texts[1])

    def _pair(self, size: SurveySize) -> tuple[float | None, float | None]:
        if self.within is not None:
            return size.people(self.within, self.confidence)
        return size.half_widths(self.people or 1, self.confidence)

    def _cell(self, number: float | None) -> str:
        if number is None:
            return "-"
        return f"{number:,}" if self.within is not None else self._width(number)

    def _width(self, width: float) -> str:
        """A half width in points for shares, in the unit of the query for others; rounded up."""
        if self.statistic == "share":
            return say("precisionPoints", width=round_up(100 * width))
        return say("precisionWidth", width=round_up(width), unit="").rstrip()


def epsilon_text(epsilon: float) -> str:
    """A budget in a table of sizes."""
    return say("sizeNoNoise") if math.isinf(epsilon) else f"{epsilon:g}"
