"""Averages by group, with an interval for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorveil import showing
from priorveil.arrays import Array
from priorveil.errors import InvalidInput
from priorveil.frames import beside_labels
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.label_texts import first_labels, label_columns
from priorveil.reading.interval_estimate import IntervalEstimate
from priorveil.reading.statistics import Statistic
from priorveil.showing import Figure


@dataclass(frozen=True, eq=False)
class Averages(IntervalEstimate):
    """The average of a number in each group: `labels` are the groups, `by` the attributes that form them.

    `number` is the name of what is averaged. `averages[label]` is the average of a group as a `Statistic`. A group
    whose people the reports do not tell from nobody has an interval without ends; where the estimate counts nobody in
    it, its average is NaN. `expected` has the averages that the prior expects.
    """

    number: str
    by: tuple[str, ...]
    labels: tuple[Label, ...]
    statistics: tuple[Statistic, ...]
    expected: Array

    @property
    def name(self) -> str:
        """What is averaged, in a few words."""
        return str(mean_title(self.number))

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

    def columns(self, confidence: float = 0.95) -> dict[str, Any]:
        """The columns of `to_frame`: the groups, the averages with their intervals, and what the prior expects."""
        low, high = self.interval(confidence)
        numbers = {"estimate": self.values, "std_error": self.std_error, "low": low, "high": high}
        labels = label_columns(self.labels, self.by)
        return beside_labels(labels, {**numbers, "expected": self.expected})

    def plot(self, confidence: float = 0.95) -> Figure:
        """A row for each group: its average with its interval, and what the prior expects, as a matplotlib figure."""
        return showing.figure(self, confidence)

    def __getitem__(self, label: Label) -> Statistic:
        if label not in self.labels:
            raise InvalidInput("label", label, f"choose one of {first_labels(self.labels)}")
        return self.statistics[self.labels.index(label)]

    def __len__(self) -> int:
        return len(self.labels)


def mean_title(number: str) -> Note:
    """What the mean of a number is called, by the name of the number."""
    return Note("meanOf", {"number": number}) if number else Note("mean")
