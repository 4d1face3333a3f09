"""What a plan holds: a mechanism with its prior, query, budget, certificate and error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from priorveil.certify import Certificate
from priorveil.mechanisms import Mechanism
from priorveil.notions import Cone, PriorOrSet, Secrets
from priorveil.priors import Budget, Domain, Label, Prior
from priorveil.queries import Query
from priorveil.reading.families import reader_of
from priorveil.reading.reader import Reader


@dataclass(frozen=True, eq=False)
class PlanData:
    """The fields of a plan, which its document has, and what follows from them at once.

    `expected_mse` is per person, under the prior (over a set of priors, under the worst one, while reports are read
    without knowing which is right). For a sum of numbers that are rounded to a grid it includes the most that rounding
    can add, so `efficiency` is low on a coarse grid. No channel within the budget has an error below `lower_bound`:
    `design` proves that; in a loaded plan it is stated by the author and not proven, since a file holds no proof of it.
    `no_report` is the error of the prior alone. `reading_prior` is the prior that reports are read at, in plans for
    sets of priors. Unbiased scores are made for it. If the estimate leans on the prior, it is the prior in the hull of
    the set for which the error is largest.
    """

    prior: PriorOrSet
    budget: Budget
    query: Query
    mechanism: Mechanism
    certificate: Certificate
    notion: Cone
    secret: Secrets
    expected_mse: float
    lower_bound: float
    no_report: float
    method: str
    why: str
    reading_prior: Prior | None = None

    @property
    def domain(self) -> Domain:
        """What a value may be."""
        return self.prior.domain

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the values."""
        return self.domain.labels

    @property
    def reference(self) -> Prior:
        """The prior that estimates use by default: of a plan for a set, the reading prior or the one in the middle."""
        return self.prior.centre if self.reading_prior is None else self.reading_prior

    @cached_property
    def reader(self) -> Reader[Any]:
        """What counts and reads the reports of this plan."""
        return reader_of(self.mechanism)

    @property
    def is_flat(self) -> bool:
        """Whether all values, or equal ranges of numbers, are taken to be equally common."""
        return bool(np.allclose(self.reference.probabilities, self.domain.flat_masses()))
