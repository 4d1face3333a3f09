"""How large a survey has to be at each of some budgets: people for a half width, and half widths for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorveil.designs.methods import design
from priorveil.errors import TooLarge
from priorveil.notions import PriorOrSet
from priorveil.plans import Plan
from priorveil.queries import Query
from priorveil.statistics.planning import half_width, people_within


@dataclass(frozen=True)
class SurveySize:
    """The variance per person of the least precise statistic at one budget, and what follows from it.

    `epsilon` is infinite for people who report their values without noise. `variance` is for people who follow the
    prior, `worst_variance` the largest whatever the truth is; None if it would take long to compute, and for averages
    of groups, which are ratios.
    """

    epsilon: float
    variance: float
    worst_variance: float | None

    @classmethod
    def of(cls, plan: Plan) -> SurveySize:
        """The size of surveys with this plan."""
        worst = None
        if plan.query.number_by_group is None:
            with suppress(TooLarge):
                worst = float(plan.person_variances(worst=True).max())
        return cls(plan.budget.smaller, float(plan.person_variances().max()), worst)

    @classmethod
    def without_noise(cls, prior: PriorOrSet, query: Query) -> SurveySize:
        """The size of surveys in which people report their values: only sampling is left."""
        P, rows = prior.centre.probabilities, query.centred_rows(prior.centre)
        if rows is None:
            return cls(math.inf, float((P * (1 - P)).max()), 0.25)
        worst = None if query.number_by_group else float(np.ptp(rows, axis=1).max()) ** 2 / 4
        return cls(math.inf, float((rows**2 @ P).max()), worst)

    def people(self, within: float, confidence: float = 0.95) -> tuple[int, int | None]:
        """How many people make half the width of the interval at most this, at the prior and whatever the truth is."""
        worst = self.worst_variance
        needed = None if worst is None else people_within(worst, within, confidence)
        return people_within(self.variance, within, confidence), needed

    def half_widths(self, people: int, confidence: float = 0.95) -> tuple[float, float | None]:
        """Half the width of the interval with this many people, at the prior and whatever the truth is."""
        worst = self.worst_variance
        widest = None if worst is None else half_width(worst, people, confidence)
        return half_width(self.variance, people, confidence), widest


def survey_sizes(
    prior: PriorOrSet, query: Query, epsilons: Sequence[float], **options: Any
) -> Iterator[SurveySize]:
    """The size at each of these budgets, and without noise. `options` go to `design`.

    >>> import priorveil as pv
    >>> sizes = survey_sizes(pv.Prior([0.2, 0.8]), pv.Distribution(), [1.0])
    >>> [size.people(within=0.03) for size in sizes]
    [(2516, 3198), (683, 1068)]
    """
    for epsilon in epsilons:
        yield SurveySize.of(design(prior, epsilon, query, **options))
    yield SurveySize.without_noise(prior, query)
