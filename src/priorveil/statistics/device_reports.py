"""Reports of one or several devices, as regression reads them: a likelihood or a score for each value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, centre_rows
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.frames import as_column, is_column
from priorveil.mechanisms.interface import MOST_MATRIX_ENTRIES, NumberedReports
from priorveil.priors import Label
from priorveil.reading.moments import naming_statistics
from priorveil.reading.tally import select_reports
from priorveil.statistics.readable_plan import ReadablePlan

_LARGEST_TABLE = 1 << 20  # entries of a channel that is written out


@dataclass(frozen=True, eq=False)
class DeviceReports:
    """The reports of one device, and which rows of all reports they are.

    Without a plan they are direct answers, as codes of the values. `table` has the channel, a row for each report that
    the device can make, where reports are numbers of its rows; reports that are not have no table.
    """

    plan: ReadablePlan | None
    rows: Ints
    reports: npt.NDArray[Any]
    table: Array | None

    @property
    def identifies(self) -> bool:
        """Whether its reports alone determine the distribution."""
        return self.plan is None or self.plan.identifiable

    def likelihoods(self) -> Array:
        """How likely each report is for each value: a row for each value, a column for each report."""
        if self.table is not None:
            return np.ascontiguousarray(self.table.T)[:, self.reports]
        assert self.plan is not None
        found, first = np.empty((len(self.plan.labels), len(self.reports))), 0
        for block in self.plan.likelihood_blocks(self.reports):
            found[:, first : first + len(block)] = block.T
            first += len(block)
        return found

    def scores(self, weights: Array, names: Sequence[Label], centred: bool = False) -> Array:
        """Unbiased scores of weights of the values: a row for each row of `weights`, a column for each report.

        The names of the rows are for errors. With `centred` the weights are read as their distance from the mean under
        the prior, as `Plan.scores` does for the rows of a query: better for numbers, not for yes or no.
        """
        if self.plan is None:
            return np.asarray(weights[:, self.reports])
        if self.table is not None:
            each = self._scores_of(np.arange(len(self.table)), weights, names, centred)
            return np.asarray(each[:, self.reports])
        step = max(1, MOST_MATRIX_ENTRIES // (8 * len(self.plan.labels)))
        parts = (self.reports[first : first + step] for first in range(0, len(self.reports), step))
        return np.concatenate([self._scores_of(part, weights, names, centred) for part in parts], axis=1)

    def _scores_of(
        self, reports: npt.NDArray[Any], weights: Array, names: Sequence[Label], centred: bool
    ) -> Array:
        assert self.plan is not None
        P = self.plan.reference.probabilities
        rows, means = centre_rows(weights, P) if centred else (weights, 0.0)
        with naming_statistics(names, of_values=False):
            return np.asarray((self.plan.reader.scores(reports, P, rows) + means).T)


def read_devices(reports: Any, plan: Any) -> tuple[tuple[Label, ...], list[DeviceReports], int]:
    """The labels of the values, the reports of each device, and how many reports there are.

    `plan` is one plan for all reports, or a list with the plan of each; None in it stands for a direct answer.
    """
    if hasattr(plan, "likelihood_blocks"):
        column = _all_present(plan, reports)
        return plan.labels, [_device(plan, np.arange(len(column)), column)], len(column)
    if not is_column(plan):
        raise InvalidInput("plan", NOT_SHOWN, "give a plan, or a list with the plan of each report")
    plans, entries = list(plan), _entries(reports)
    if any(each is not None and not hasattr(each, "likelihood_blocks") for each in plans):
        raise InvalidInput(
            "plan", NOT_SHOWN, "not all entries are plans: give the plan of each report, or None"
        )
    if len(plans) != len(entries):
        raise InvalidInput("plan", NOT_SHOWN, f"{len(plans)} plans for {len(entries)} reports")
    rows_of: dict[ReadablePlan | None, list[int]] = {}  # plans with the same content are one device
    for row, each in enumerate(plans):
        if each is not None and not hasattr(each, "likelihood_blocks"):
            raise InvalidInput(
                "plan", NOT_SHOWN, f"one entry has the type {type(each).__name__}: give plans, or None"
            )
        rows_of.setdefault(each, []).append(row)
    labels = _shared_labels(list(rows_of))
    devices = [
        _device_of(each, labels, np.array(rows), [entries[row] for row in rows])
        for each, rows in rows_of.items()
    ]
    return labels, devices, len(entries)


def _entries(reports: Any) -> Sequence[Any]:
    if isinstance(reports, np.ndarray) and reports.ndim > 1:
        return list(reports)
    column: Any = as_column(reports, "reports")
    entries: Sequence[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column
    return entries


def _shared_labels(plans: Sequence[ReadablePlan | None]) -> tuple[Label, ...]:
    known = [plan for plan in plans if plan is not None]
    if not known:
        raise InvalidInput(
            "plan", NOT_SHOWN, "direct answers only: give at least one plan, which has the labels"
        )
    if any(plan.labels != known[0].labels for plan in known):
        raise InvalidInput(
            "plan", NOT_SHOWN, "the plans have different values: give plans for the same values"
        )
    return known[0].labels


def _device_of(
    plan: ReadablePlan | None, labels: tuple[Label, ...], rows: Ints, entries: list[Any]
) -> DeviceReports:
    if plan is not None:
        return _device(plan, rows, _all_present(plan, entries))
    codes = {label: code for code, label in enumerate(labels)}
    try:
        answers = np.array([codes[entry] for entry in entries])
    except (KeyError, TypeError):
        raise InvalidInput("reports", NOT_SHOWN, "a direct answer is not one of the labels") from None
    return DeviceReports(None, rows, answers, np.eye(len(labels)))


def _device(plan: ReadablePlan, rows: Ints, reports: npt.NDArray[Any]) -> DeviceReports:
    mechanism, table = plan.reader.mechanism, None
    if isinstance(mechanism, NumberedReports) and mechanism.size * mechanism.outputs <= _LARGEST_TABLE:
        table = np.ascontiguousarray(mechanism.matrix.T)
    return DeviceReports(plan, rows, reports, table)


def _all_present(plan: ReadablePlan, reports: Any) -> npt.NDArray[Any]:
    valid, selected, _ = select_reports(plan.reader.mechanism, reports, "raise")
    if not selected.all():
        raise InvalidInput("reports", NOT_SHOWN, "some are missing: leave them out first")
    checked: npt.NDArray[Any] = plan.reader.mechanism.check_reports(valid)
    return checked


def merge_rows(devices: Sequence[DeviceReports], parts: Iterator[Array], n: int) -> Array:
    """Arrays with a column for each report of a device, put together in the order of all reports."""
    if len(devices) == 1:
        return next(parts)
    merged: Array | None = None
    for device, part in zip(devices, parts, strict=True):
        merged = np.empty((len(part), n)) if merged is None else merged
        merged[:, device.rows] = part
    assert merged is not None
    return merged
