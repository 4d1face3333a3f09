"""What statistics need of a plan, whatever its mechanism is: the scores of its reports, and their mean squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, centre_rows
from priorveil.certify import Certificate
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput
from priorveil.priors import Label, Prior
from priorveil.queries import Distribution, Query
from priorveil.reading.blas_threads import single_thread
from priorveil.reading.moments import StatisticRows, naming_statistics
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


def report_scores(
    plan: ReadablePlan,
    reports: npt.NDArray[Any],
    rows: StatisticRows,
    names: Sequence[Label],
    centred: bool = True,
) -> Array:
    """The unbiased scores of numbers of the values, a row for each report; the names are for errors.

    With `centred` the numbers are read as their distance from the mean under the prior.
    """
    P = plan.reference.probabilities
    with naming_statistics(names, of_values=rows is None):
        if rows is None:
            return plan.reader.scores(reports, P, None)
        own, means = centre_rows(rows, P) if centred else (rows, 0.0)
        return np.asarray(plan.reader.scores(reports, P, own) + means)


def require_unbiased(query: Query) -> None:
    """Refuse a query whose answers lean on the prior."""
    if not query.unbiased:
        own = query.linear and not query.asks_all_counts
        hint = Hint("unbiased", True) if own else Hint("query", Distribution())
        advice = (
            "its answers lean on the prior, which no number of people corrects: plan for an unbiased query"
        )
        raise InvalidInput("query", query, advice, hint)


def mean_squares(plan: ReadablePlan, at: int | None = None) -> tuple[Array, Array]:
    """The centred statistics of an unbiased query, or the one at this place, and the mean squares of their scores.

    Both have a row for each statistic and a column for each value.
    """
    require_unbiased(plan.query)
    if plan.query.number_by_group is not None:
        advice = "averages of groups are ratios: their variance is known for people who follow the prior only"
        raise InvalidInput("query", NOT_SHOWN, advice)
    rows, P = plan.query.rows(plan.reference), plan.reference.probabilities
    names = plan.query.statistic_labels(plan.labels)
    chosen: StatisticRows = None if rows is None else centre_rows(rows, P)[0]
    if at is not None:
        names, chosen = names[at : at + 1], np.eye(1, len(P), at) if chosen is None else chosen[at : at + 1]
    with single_thread(), naming_statistics(names, of_values=rows is None):
        squares = plan.reader.score_squares(P, chosen)
    return np.eye(len(P)) if chosen is None else chosen, squares
