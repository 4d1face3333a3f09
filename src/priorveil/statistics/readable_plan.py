"""What statistics need of a plan: to read its reports, whatever its mechanism is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.certify import Certificate
from priorveil.priors import Label, Prior
from priorveil.queries import Query
from priorveil.reading.reader import Reader


class ReadablePlan(Protocol):
    """A plan, as far as its reports are read."""

    @property
    def labels(self) -> tuple[Label, ...]:
        """The values."""

    @property
    def reference(self) -> Prior:
        """The prior that unbiased scores are made for."""

    @property
    def query(self) -> Query:
        """What the plan was asked for."""

    @property
    def certificate(self) -> Certificate:
        """Its proven levels."""

    @property
    def identifiable(self) -> bool:
        """Whether reports alone determine the distribution."""

    @property
    def reader(self) -> Reader[Any]:
        """The reader of its reports."""

    def likelihood_blocks(self, reports: npt.ArrayLike) -> Iterator[Array]:
        """The likelihoods of the values, a block of consecutive reports at a time."""
