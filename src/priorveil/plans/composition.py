"""What several reports of one person tell together, also about different attributes.

One report has its level of LIP for every answer of the person, however the answers depend on each other. A report about
some attributes is a channel from the tuple of all answers, with the same lifts. Levels of LIP do not add up. Levels of
LDP do, whatever anyone knows, so several reports have the sum of their LDP levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from priorveil.arrays import Ints
from priorveil.channels import Channel
from priorveil.errors import InvalidInput
from priorveil.notions import LipSides, PriorOrSet, Secrets, leakage
from priorveil.priors import Budget, Label
from priorveil.priors.label_texts import label_parts

MOST_EXACT_ENTRIES = 2_000_000  # a joint channel with more entries is not written out
# About 3, where a belief of 50 % can become one of 97 %: a plan for 3 is certified a little below.
REVEALING = 2.999
_ROUNDING = 1e-9  # joint levels are measured in floats, so they are raised by this share

Names = tuple[str, ...]


@dataclass(frozen=True)
class JointLeakage(LipSides):
    """The leakage of several reports together: LIP for the secret, LDP for the value."""

    lip_lower: float = 0.0
    lip_upper: float = 0.0
    ldp: float = 0.0

    @classmethod
    def for_any_prior(cls, ldp: float) -> JointLeakage:
        """The leakage of reports if only their LDP level counts: it bounds LIP under every prior."""
        return cls(ldp, ldp, ldp)

    @classmethod
    def largest(cls, levels: Iterable[JointLeakage]) -> JointLeakage:
        """The leakage of one report that is drawn from several: the largest of each level."""
        return cls(*map(max, zip(*map(astuple, levels), strict=True)))

    @classmethod
    def together(cls, reports: Sequence[JointLeakage]) -> JointLeakage:
        """The leakage of all these reports: one has its own levels, several have the sum of their LDP levels."""
        if len(reports) == 1:
            return reports[0]
        return cls.for_any_prior(math.fsum(report.ldp for report in reports))

    def within(self, limit: Budget) -> bool:
        """Whether both sides are within a limit. A level that is not a number is not within any."""
        return self.lip_lower <= limit.lower and self.lip_upper <= limit.upper


def measure(joint: Channel, prior: PriorOrSet, secret: Secrets = None) -> JointLeakage:
    """The levels of a joint channel, raised by more than the rounding of floats."""
    measured = leakage(joint, prior, secret)
    levels = (measured.lip_lower, measured.lip_upper, measured.ldp)
    lower, upper, ldp = (level + _ROUNDING * (1 + level) for level in levels)
    return JointLeakage(lower, upper, ldp)


def positions(labels: Sequence[Label], names: Names, joint: PriorOrSet) -> Ints:
    """For each value of a joint prior, the position of its cell among the labels of a plan about some attributes.

    A prior without names has one attribute. The plan and the prior must have the same cells.

    >>> from priorveil import Prior
    >>> joint = Prior.joint({("a", 0): 0.4, ("a", 1): 0.1, ("b", 0): 0.5}, names=("age", "sex"), impossible="leave out")
    >>> positions(["b", "a"], ("age",), joint).tolist()
    [1, 1, 0]
    """
    index = {label: i for i, label in enumerate(labels)}
    cells = _cells(joint, names)
    if different := index.keys() ^ set(cells):
        value = next(label for label in [*cells, *labels] if label in different)
        advice = "only the plan or only the prior has this value: both need the same values"
        raise InvalidInput("plan", value, advice)
    return np.array([index[cell] for cell in cells])


def _cells(prior: PriorOrSet, names: Names) -> list[Any]:
    """For each value its cell: its entries for some attributes, as a plan about these attributes labels them."""
    own = prior.domain.names
    if own is None or own == names:
        return list(prior.labels)
    places = [own.index(name) for name in names]
    cells = [tuple(label_parts(label)[place] for place in places) for label in prior.labels]
    return cells if len(names) > 1 else [cell for (cell,) in cells]
