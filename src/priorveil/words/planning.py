"""The words of planning: what a test can find."""

from __future__ import annotations

from priorveil.catalogue import say
from priorveil.formatting import percent
from priorveil.priors.label_texts import label_text
from priorveil.statistics.planning import PowerAnalysis


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
