"""Averages by group, with an interval for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import InvalidInput
from priorveil.frames import Library, beside_labels, to_frame
from priorveil.priors import Label
from priorveil.priors.label_texts import first_labels, label_columns
from priorveil.reading import pictures, wording
from priorveil.reading.statistics import Statistic

if TYPE_CHECKING:
    from priorveil.pictures.curves import Figure


@dataclass(frozen=True, eq=False)
class Averages:
    """The average of a number in each group: `labels` are the groups, `by` the attributes that form them.

    `name` is that of the number. `averages[label]` is the average of a group as a `Statistic`. A group whose people the
    reports do not tell from nobody has an interval without ends; where the estimate counts nobody in it, its average is
    NaN. `expected` has the averages that the prior expects.
    """

    name: str
    by: tuple[str, ...]
    labels: tuple[Label, ...]
    statistics: tuple[Statistic, ...]
    expected: Array

    @property
    def title(self) -> str:
        """What is averaged, in a few words."""
        return wording.mean_name(self.name)

    @property
    def values(self) -> Array:
        """The average of each group."""
        return np.array([statistic.value for statistic in self.statistics])

    @property
    def std_error(self) -> Array:
        """The standard error of each average, by the delta method."""
        return np.array([statistic.std_error for statistic in self.statistics])

    @property
    def limits(self) -> Array:
        """The least and the most that each average can be; infinite where the method does not limit it."""
        return np.array([statistic.limits for statistic in self.statistics]).T

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """The ends of Fieller intervals, each of which holds its true average with this probability."""
        low, high = np.array([statistic.interval(confidence) for statistic in self.statistics]).T
        return low, high

    def to_frame(self, library: Library | None = None, confidence: float = 0.95) -> Any:
        """A row for each group, with its interval, as a data frame of pandas, polars or pyarrow."""
        low, high = self.interval(confidence)
        numbers = {"estimate": self.values, "std_error": self.std_error, "low": low, "high": high}
        labels = label_columns(self.labels, self.by)
        return to_frame(beside_labels(labels, {**numbers, "expected": self.expected}), library)

    def _repr_html_(self) -> str:
        return wording.averages_html(self)

    def plot(self, confidence: float = 0.95) -> Figure:
        """A row for each group: its average with its interval, and what the prior expects, as a matplotlib figure."""
        return pictures.averages_figure(self, confidence)

    def __getitem__(self, label: Label) -> Statistic:
        if label not in self.labels:
            raise InvalidInput("label", label, f"choose one of {first_labels(self.labels)}")
        return self.statistics[self.labels.index(label)]

    def __len__(self) -> int:
        return len(self.labels)

    def __str__(self) -> str:
        return wording.averages_text(self)
