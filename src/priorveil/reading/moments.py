"""Means and variances of answers.

An answer is `rows @ histogram` for a matrix `rows` with a column for each value; None stands for the identity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, real_number
from priorveil.errors import Hint, InvalidInput, NotIdentifiable
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.label_texts import first_labels
from priorveil.queries import Distribution
from priorveil.reading.shares_search import Minimum

Counts = npt.NDArray[Any]  # what a reader counts: integers, or floats if people have weights
# A matrix of statistics with a column for each value; None stands for the identity.
StatisticRows = Array | None

Ends = tuple[float, float]  # the ends of an interval
UNBOUNDED: Ends = (-math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of each answer; `rounds` and `shortfall` if a search found them.

    `assumes` says what they rest on, if that differs from what the method assumes elsewhere. `centre` is the
    unbiased answer, if the variance belongs to that and not to the mean. `limits` has two rows: the least and the
    most that any distribution can answer; an unbiased answer has none. `bias` has two rows: how far the truth may be
    below and above each answer on average, where a set of priors is known.
    """

    mean: Array
    variance: Array
    centre: Array | None = None
    limits: Array | None = None
    bias: Array | None = None
    rounds: int | None = None
    converged: bool = True
    shortfall: float | None = None
    assumes: Note | None = None

    @property
    def linear(self) -> Array:
        """The answer that the variance belongs to: it is linear in the counts of reports."""
        return self.mean if self.centre is None else self.centre

    def plus(self, constant: Array | float) -> Moments:
        """The moments of the answers plus a constant each."""
        terms = {name: getattr(self, name) for name in ("mean", "centre", "limits")}
        return replace(self, **{name: x + constant for name, x in terms.items() if x is not None})


def sum_moments(parts: Sequence[Moments]) -> Moments:
    """The sums of independent answers."""
    mean, variance, linear = (
        np.sum([getattr(part, name) for part in parts], axis=0) for name in ("mean", "variance", "linear")
    )
    limits = [part.limits for part in parts if part.limits is not None]
    centre = linear if any(part.centre is not None for part in parts) else None
    ends = np.sum(limits, axis=0) if len(limits) == len(parts) else None
    biases = [part.bias for part in parts if part.bias is not None]
    return Moments(
        mean, np.maximum(variance, 0.0), centre, ends, sum(biases[1:], biases[0]) if biases else None
    )


def apply_rows(rows: StatisticRows, values: Array) -> Array:
    """`rows @ values`, where None stands for the identity.

    >>> apply_rows(np.array([[1.0, 1.0]]), np.array([2.0, 3.0])).tolist(), apply_rows(None, np.ones(2)).tolist()
    ([5.0], [1.0, 1.0])
    """
    return values if rows is None else np.asarray(rows @ values)


def possible_limits(rows: StatisticRows, total: float, size: int) -> Array:
    """The least and the most that any distribution of this many people can answer; `size` is the number of answers."""
    least, most = (0.0, 1.0) if rows is None else (rows.min(axis=1), rows.max(axis=1))
    return total * np.stack([np.broadcast_to(end, size) for end in (least, most)])


def constrained_moments(linear: Moments, minimum: Minimum, total: float, rows: StatisticRows) -> Moments:
    """The answer of the distribution that a search has found, next to the unbiased answer `linear`.

    Variances and intervals stay those of `linear`.
    """
    return replace(
        linear,
        mean=total * apply_rows(rows, minimum.shares),
        centre=linear.mean,
        rounds=minimum.rounds,
        converged=minimum.converged,
        shortfall=max(0.0, minimum.gap),
    )


def open_sides(ends: Ends, limits: Ends) -> tuple[bool, bool]:
    """Whether an interval reaches to the least, and to the most, of the numbers that are possible.

    >>> open_sides((0.0, 0.3), (0.0, 1.0)), open_sides((-0.1, 0.3), UNBOUNDED), open_sides(UNBOUNDED, UNBOUNDED)
    ((True, False), (False, False), (True, True))
    """
    several = limits[0] < limits[1]  # otherwise the number is known
    return several and ends[0] <= limits[0], several and ends[1] >= limits[1]


def normal_width(confidence: float, argument: str = "confidence") -> float:
    """Half the width of a normal interval, in standard errors."""
    if not 0 < real_number(confidence) < 1:
        raise InvalidInput(argument, confidence, "give a probability, such as 0.95")
    return -NormalDist().inv_cdf((1 - confidence) / 2)  # 1 + confidence could round to 2


def joint_confidence(confidence: float, intervals: int) -> float:
    """The confidence of each of so many intervals that all hold together with this probability (Bonferroni).

    This is right however the numbers are correlated.

    >>> joint_confidence(0.95, 1), round(joint_confidence(0.95, 10), 6)
    (0.95, 0.995)
    """
    return confidence if intervals < 2 else 1 - (1 - confidence) / intervals


def not_identifiable(statistics: Sequence[Label] = (), kind: str = "statistics") -> NotIdentifiable:
    """The error for an estimate that reports alone cannot give: of these statistics, or of the distribution.

    >>> print(not_identifiable(["b", "c"], "counts of").message)
    reports of this plan do not determine the counts of b, c
    """
    what = f"{kind} {first_labels(statistics)}" if statistics else "distribution"
    error = NotIdentifiable(
        f"reports of this plan do not determine the {what}",
        Hint("method", "mmse", purpose="to lean on the prior"),
        Hint("query", Distribution(), purpose="to learn the distribution, design another plan"),
    )
    error.statistics = tuple(statistics)
    return error


@contextmanager
def naming_statistics(labels: Sequence[Label], of_values: bool) -> Iterator[None]:
    """Name the statistics that reports do not determine, where the error of a reader has their numbers."""
    try:
        yield
    except NotIdentifiable as error:
        names = [labels[row] for row in error.statistics]
        kind = "counts of" if of_values else "statistic" if len(names) == 1 else "statistics"
        raise not_identifiable(names, kind) from None
