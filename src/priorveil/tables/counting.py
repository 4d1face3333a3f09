"""Count a column of reports: tallies by cohort and group, each report once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from priorveil.errors import InvalidInput, TooLarge
from priorveil.frames import Column, Indices, distinct, holds_only, look_up, take
from priorveil.priors.domain import MISSING, OUTSIDE, Codes
from priorveil.reading.tally import Tally
from priorveil.tables.batches import Batch
from priorveil.tables.cohorts import cohort_codes
from priorveil.tables.read import OpenTable, RowProgress, in_threads, thread_count
from priorveil.tables.refusals import MISSING_ENTRY, NO_PLAN, OTHER_PLAN, OnRefused, RefusalLog, RefusedRows
from priorveil.tables.repeats import IdSpool, repeated_rows, without_repeats
from priorveil.tables.reports import ReportFormat
from priorveil.tables.rereading import Rereadable

_Part = tuple[int, int, Indices | None]  # cohort, group (both by number), rows of a batch (None: all)
# A batch, its tallies by cohort and group, and the indices of its refused rows by reason.
_BatchTallies = tuple[Batch, dict[tuple[int, int], Tally], dict[str, Indices]]

_MOST_GROUPS = 100_000
_OTHER = OUTSIDE - 1
# Why rows are in no tally, by the number in place of that of their plan.
_REASONS = {MISSING: MISSING_ENTRY, OUTSIDE: NO_PLAN, _OTHER: OTHER_PLAN}


@dataclass(frozen=True, eq=False)
class ReportCounts:
    """What a table of reports has: tallies by `(cohort, group)`, and the rows that are in none of them.

    `repeated` is the number of rows that repeat a report that was already counted, and `without_id` the number of rows
    without an id, among which repeats cannot be noticed.
    """

    by: Mapping[tuple[Any, Any], Tally]
    refused: RefusedRows = field(default_factory=RefusedRows)
    repeated: int = 0
    without_id: int = 0

    @property
    def reports(self) -> int:
        """How many reports were counted."""
        return sum(tally.reports for tally in self.by.values())


def count_table(
    table: OpenTable,
    source: Rereadable,
    counter: Callable[[RefusalLog], BatchCounter],
    compared: Sequence[str],
    other_error: Callable[[str], InvalidInput],
    progress: RowProgress | None = None,
    on_refused: OnRefused | None = None,
) -> ReportCounts:
    """Count the reports of a table that was opened from its source, those that are there several times once.

    `counter` makes a counter that notes refused rows. Rows with the same id have to be equal in the `compared` columns,
    of which the first has the reports. `other_error` is raised with the id of a plan or form that the counter does not
    know.
    """
    ids = IdSpool()

    def count(batches: Iterable[Batch], log: RefusalLog) -> ReportCounts:
        own = counter(log)
        for rows in own.count(batches, thread_count()):
            if own.others:
                raise other_error(min(own.others))
            if progress is not None:
                progress(rows, table.rows, table.share())
        return ReportCounts(own.tallies, log.result())

    all_rows = count(ids.watch(table.batches), RefusalLog(on_refused))
    flags = ids.repeated_keys()
    if flags is None:
        return ReportCounts(all_rows.by, all_rows.refused, without_id=ids.without_id)
    table = source.open()
    is_repeat = repeated_rows(table.batches, flags, compared, table.place)
    table = source.open()
    once = count(without_repeats(table.batches, is_repeat), RefusalLog())
    return ReportCounts(once.by, all_rows.refused, all_rows.reports - once.reports, ids.without_id)


def add_tallies(sums: dict[Any, Tally], tallies: Mapping[Any, Tally]) -> None:
    """Add tallies to those with the same key."""
    for key, tally in tallies.items():
        sums[key] = sums[key] + tally if key in sums else tally


@dataclass(eq=False)
class BatchCounter:
    """Adds up the reports of batches, by cohort and group.

    `formats` has the format of each cohort's reports. `made_by` is the column with the ids of plans or forms; None: not
    checked. `others` are ids of others in it. Without a column `cohort` the ids choose among several formats.
    """

    formats: Mapping[Any, ReportFormat]
    column: str
    by: str | None = None
    cohort: str | None = None
    log: RefusalLog = field(default_factory=RefusalLog)
    made_by: str | None = None

    def __post_init__(self) -> None:
        self.others: set[str] = set()
        self._ids = list(dict.fromkeys(format.id for format in self.formats.values()))
        self._groups: dict[Hashable, int] = {None: 0}  # of rows without a group
        self._tallies: dict[tuple[int, int], Tally] = {}

    def count(self, batches: Iterable[Batch], threads: int = 0) -> Iterator[int]:
        """Count batches, in several threads; after each, yield the number of rows so far."""
        # Groups get their numbers in this thread, one batch after another.
        parts = ((batch, list(self._parts(batch))) for batch in batches)
        for batch, tallies, refused in in_threads(lambda job: self._count(*job), parts, threads):
            add_tallies(self._tallies, tallies)
            self.log.add(batch.refused_rows(refused))
            yield batch.end

    @property
    def tallies(self) -> dict[tuple[Any, Any], Tally]:
        """The tallies so far, by cohort and group."""
        cohorts, groups = list(self.formats), list(self._groups)
        return {(cohorts[cohort], groups[group]): tally for (cohort, group), tally in self._tallies.items()}

    def refused_indices(self, batch: Batch) -> dict[str, Indices]:
        """The indices of the rows that are not counted, by reason."""
        return self._count(batch, self._parts(batch))[2]

    def _parts(self, batch: Batch) -> Iterator[_Part]:
        """The rows of a batch by cohort and group; a negative cohort says why rows are refused."""
        names = None if self.made_by is None else batch.columns[self.made_by]
        if names is not None and len(self._ids) == 1 and holds_only(names, self._ids[0]):
            names = None
        if self.cohort is None and self.by is None and names is None:
            yield 0, 0, None
            return
        cohorts = cohort_codes(batch, self.cohort, self.formats)
        groups = np.zeros(batch.rows, dtype=np.int64)
        if names is not None:
            cohorts = self._check_ids(names, cohorts)
        if self.by is not None:
            groups = look_up(batch.columns[self.by], self._group, self._groups[None])
        keys = (cohorts - min(_REASONS)) * len(self._groups) + groups
        if int(keys.max(initial=0)) < 1 << 16:
            keys = keys.astype(np.uint16)  # small numbers are sorted several times as fast
        order = np.argsort(keys, kind="stable")
        for indices in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            if indices.size:
                yield int(cohorts[indices[0]]), int(groups[indices[0]]), indices

    def _check_ids(self, names: Column, cohorts: Codes) -> Codes:
        """The cohorts, with the reason instead where a row names no plan or another plan than its cohort has."""
        words, indices = distinct(names)
        numbers = {name: number for number, name in enumerate(self._ids)}
        named = np.array([*(numbers.get(str(word), _OTHER) for word in words), MISSING])[indices]
        codes = named
        if self.cohort is not None:
            own = np.array([numbers[format.id] for format in self.formats.values()])[np.maximum(cohorts, 0)]
            codes = np.where(named == own, cohorts, np.where(named == MISSING, MISSING, _OTHER))
            codes = np.where(cohorts >= 0, codes, cohorts)
        self.others.update(str(words[index]) for index in np.unique(indices[codes == _OTHER]))
        return codes

    def _group(self, name: Any) -> int:
        """The number of a group."""
        name = math.nan if name != name else name  # all NaN values are one group
        if name not in self._groups and len(self._groups) > _MOST_GROUPS:
            raise TooLarge(f"{self.by!r} has more than {_MOST_GROUPS:,} values: group by something coarser")
        return self._groups.setdefault(name, len(self._groups))

    def _count(self, batch: Batch, parts: Iterable[_Part]) -> _BatchTallies:
        """The tallies of a batch, and the indices of its refused rows by reason."""
        formats, tallies = list(self.formats.values()), {}
        refused: dict[str, list[Any]] = defaultdict(list)
        for cohort, group, indices in parts:
            if cohort < 0:
                refused[_REASONS[cohort]].append(indices)
                continue
            column = batch.columns[self.column]
            column = column if indices is None else take(column, indices)
            reports, rejected = formats[cohort].read(column)
            for reason, rows in rejected.items():
                refused[reason].append(rows if indices is None else indices[rows])
            counts = formats[cohort].count(reports)
            reasons = {why: rows.size for why, rows in rejected.items()}
            tallies[cohort, group] = Tally(formats[cohort].id, counts, len(reports), reasons)
        return batch, tallies, {reason: np.concatenate(rows) for reason, rows in refused.items()}
