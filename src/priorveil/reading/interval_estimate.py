"""The base class of all that is read from reports: numbers with standard errors and intervals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from priorveil import showing
from priorveil.frames import Library, to_frame


class IntervalEstimate(ABC):
    """Numbers with standard errors and intervals: a statistic, averages by group, or the answer to a query.

    `value` or `values`, `std_error`, `interval` and `name` say what was found; `words` makes texts and pictures of it.
    """

    std_error: Any

    @property
    @abstractmethod
    def name(self) -> str:
        """What the numbers are, in a few words."""

    @abstractmethod
    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """The ends of intervals, each of which holds its true number with this probability."""

    @abstractmethod
    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`."""

    def to_frame(self, library: Library | None = None, confidence: float = 0.95) -> Any:
        """A row for each number with its interval, as a data frame of pandas, polars or pyarrow."""
        return to_frame(self.columns(confidence), library)

    def __str__(self) -> str:
        return showing.text(self)

    def _repr_html_(self) -> str:
        return showing.html(self)
