"""Reports of one or several devices, as regression reads them: a likelihood or a score for each value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints
from priorveil.certify import Certificate
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, NotIdentifiable
from priorveil.frames import as_column, is_column
from priorveil.mechanisms.interface import MOST_MATRIX_ENTRIES, NumberedReports
from priorveil.priors import Label
from priorveil.queries import Distribution
from priorveil.reading.tally import complete_reports
from priorveil.statistics.plan_scores import ReadablePlan, report_scores

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

    def denials(self) -> Array:
        """The probability of each report if a carrier does not comply: one for the last report, zero for the others.

        Direct answers are taken as they are.
        """
        assert self.table is not None
        if self.plan is None:
            return np.asarray(self.table[self.reports, 0])
        return np.asarray(self.reports == len(self.table) - 1, dtype=np.float64)

    def scores(self, weights: Array, names: Sequence[Label], centred: bool = False) -> Array:
        """Unbiased scores of weights of the values: a row for each row of `weights`, a column for each report.

        The names of the rows are for errors. With `centred` the weights are read as their distance from the mean under
        the prior, as `Plan.scores` does for the rows of a query: better for numbers, not for yes or no.
        """
        if self.plan is None:
            return np.asarray(weights[:, self.reports])
        if self.table is not None:
            every = report_scores(self.plan, np.arange(len(self.table)), weights, names, centred)
            return np.ascontiguousarray(every.T)[:, self.reports]
        step = max(1, MOST_MATRIX_ENTRIES // (8 * len(self.plan.labels)))
        parts = (self.reports[first : first + step] for first in range(0, len(self.reports), step))
        each = [report_scores(self.plan, part, weights, names, centred).T for part in parts]
        return np.concatenate(each, axis=1)


@dataclass(frozen=True, eq=False)
class AllReports:
    """The reports of all devices: `labels` are the values, `count` is how many reports there are."""

    labels: tuple[Label, ...]
    devices: Sequence[DeviceReports]
    count: int

    def merge(self, parts: Iterable[Array]) -> Array:
        """Arrays with a column for each report of a device, put together in the order of all reports."""
        each = list(parts)
        if len(each) == 1:
            return each[0]
        merged = np.empty((len(each[0]), self.count))
        for device, part in zip(self.devices, each, strict=True):
            merged[:, device.rows] = part
        return merged

    def likelihoods(self) -> Array:
        """How likely each report is for each value: a row for each value."""
        return self.merge(device.likelihoods() for device in self.devices)

    def denials(self) -> Array:
        """The probability of each report if a carrier does not comply: see `DeviceReports.denials`."""
        if len(self.labels) != 2:
            raise InvalidInput("compliance", True, f"it is for two values, not {len(self.labels)}")
        if any(device.table is None for device in self.devices):
            advice = "it is for devices whose reports are the columns of a table"
            raise InvalidInput("compliance", True, advice)
        return np.asarray(self.merge(device.denials()[None] for device in self.devices)[0])

    @property
    def ldp(self) -> float:
        """The largest LDP level, infinite if there are direct answers."""
        return max(math.inf if each is None else each.ldp for each in self._certificates)

    @property
    def lip(self) -> float:
        """The largest LIP level, infinite if there are direct answers."""
        return max(math.inf if each is None else each.lip for each in self._certificates)

    @property
    def _certificates(self) -> list[Certificate | None]:
        return [None if device.plan is None else device.plan.certificate for device in self.devices]

    def require_identifying(self) -> None:
        """Refuse devices none of which tells the values apart."""
        if not any(device.identifies for device in self.devices):
            raise NotIdentifiable(
                "reports of this plan do not determine the distribution of the values, and so no coefficients",
                Hint("query", Distribution(), purpose="to learn the distribution, design another plan"),
            )


def read_devices(reports: Any, plan: Any) -> AllReports:
    """The reports of each device.

    `plan` is one plan for all reports, or a list with the plan of each; None in it stands for a direct answer.
    """
    if hasattr(plan, "likelihood_blocks"):
        device = _device(plan, reports)
        return AllReports(plan.labels, [device], len(device.reports))
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
        rows_of.setdefault(each, []).append(row)
    labels = _shared_labels(list(rows_of))
    devices = [
        _device_of(each, labels, np.array(rows), [entries[row] for row in rows])
        for each, rows in rows_of.items()
    ]
    return AllReports(labels, devices, len(entries))


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
        return _device(plan, entries, rows)
    codes = {label: code for code, label in enumerate(labels)}
    try:
        answers = np.array([codes[entry] for entry in entries])
    except (KeyError, TypeError):
        raise InvalidInput("reports", NOT_SHOWN, "a direct answer is not one of the labels") from None
    return DeviceReports(None, rows, answers, np.eye(len(labels)))


def _device(plan: ReadablePlan, reports: Any, rows: Ints | None = None) -> DeviceReports:
    """The reports of a plan, by default all that there are."""
    mechanism, table = plan.reader.mechanism, None
    checked = mechanism.check_reports(complete_reports(mechanism, reports))
    if isinstance(mechanism, NumberedReports) and mechanism.size * mechanism.outputs <= _LARGEST_TABLE:
        table = np.ascontiguousarray(mechanism.matrix.T)
    return DeviceReports(plan, np.arange(len(checked)) if rows is None else rows, checked, table)
