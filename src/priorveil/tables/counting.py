"""Count a column of reports: tallies by cohort and group, each report once."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from priorveil.errors import NOT_SHOWN, ForeignReport, Hint, InvalidInput, TooLarge
from priorveil.files.batches import Batch, OpenTable, RowProgress, WantedColumns, batch_rows
from priorveil.files.data_table import DataTable
from priorveil.files.threads import in_threads, thread_count
from priorveil.frames import Column, Indices, distinct, holds_only, look_up, take
from priorveil.plans.structure import CONTENT_ID
from priorveil.priors.domain import MISSING, MISSING_ENTRY, OUTSIDE, Codes
from priorveil.tables.forms import Plans, TableForms, table_forms
from priorveil.tables.refusals import NO_COHORT, OTHER_FORM, OnRefused, RefusalLog
from priorveil.tables.repeats import IdSpool, only_repeats, repeated_rows
from priorveil.tables.reports import REPORT, REPORT_ID
from priorveil.tables.tallies import Key, TableCounts, Tallies

_CountedRows = tuple[int, int, Indices | None]  # cohort, group (both by number), rows of a batch (None: all)

_MOST_GROUPS = 100_000
_OTHER = OUTSIDE - 1
# Why rows are in no tally, by the number in place of that of their cohort.
_REASONS = {MISSING: MISSING_ENTRY, OUTSIDE: NO_COHORT, _OTHER: OTHER_FORM}


def tally_table(
    data: Any,
    plan: Plans,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    assume_plan: bool = False,
    progress: RowProgress | None = None,
    on_refused: OnRefused | None = None,
) -> Tallies:
    """Add up the reports in a `column` of a table by cohort and group; see `privatize_table` for the kinds of `data`.

    Memory grows with the tallies, not with the rows. Foreign and missing reports are not counted; they are listed by
    row. The column `plan` names the plan of every report (for a campaign the column `form` its form); a table with
    reports of another plan is an error. `assume_plan` is for reports without that column: all are taken for reports of
    this plan. Among several plans the column `cohort` chooses, or else their ids.

    A report that is in the table several times, with the same id in the column `report_id`, is counted once;
    `ConflictingReports` if its rows differ. Rows without an id are counted as they are.
    """
    forms, source = table_forms(plan), DataTable(data)
    counter = report_counter(forms, column, by, cohort, assume_plan)
    # The ids of plans take as long to read as the reports, so the statistics of a Parquet file may do.
    if counter.made_by is not None and {source.only_text(forms.id_column)} == {*forms.ids}:
        counter.made_by = None

    def open_again() -> OpenTable:
        return source.open(
            WantedColumns(tuple(counter.columns), (REPORT_ID,)), batch_rows([forms.widest]), again=True
        )

    with lacking_columns(counter):
        table = open_again()
    ids = IdSpool()
    counter.log, repeats = RefusalLog(on_refused), replace(counter, log=RefusalLog())
    for rows in counter.count(ids.watch(table.batches), thread_count()):
        if counter.others:
            raise other_form(min(counter.others), counter.forms)
        if progress is not None:
            progress(rows, table.rows, table.share())
    flags = ids.repeated_keys()
    if flags is not None:
        table = open_again()
        is_repeat = repeated_rows(table.batches, flags, counter.columns, table.place)
        for _ in repeats.count(only_repeats(open_again().batches, is_repeat), thread_count()):
            pass
    counts = counter.counts
    for key, own in repeats.counts.items():
        counts[key] -= own
    return Tallies.of(forms, counts, counter.log.result(), repeats.reports, ids.without_id)


def report_counter(
    forms: TableForms, column: str, by: str | None, cohort: str | None, assume_plan: bool
) -> BatchCounter:
    """A counter of reports; refused if nothing would choose among several forms."""
    forms.check_cohort(cohort)
    if assume_plan or len(set(forms.ids)) < len(forms.ids):
        forms.require_cohort(cohort)
    return BatchCounter(forms, column, by, cohort, None if assume_plan else forms.id_column)


@contextmanager
def lacking_columns(counter: BatchCounter) -> Iterator[None]:
    """Say what to do about a column that a table of reports lacks: it may be the table of people's values."""
    try:
        yield
    except InvalidInput as error:
        if error.argument != "column":
            raise
        raise _column_error(error, counter) from None


def _column_error(error: InvalidInput, counter: BatchCounter) -> InvalidInput:
    forms, kind = counter.forms, counter.forms.id_column
    if error.value == counter.made_by:
        advice = f"nothing names the {kind} that made the reports; {error.advice}"
        assume = Hint("assume_plan=True", purpose=f"if this {kind} made all of them")
        return InvalidInput("column", kind, advice, assume)
    if error.value == counter.column:
        advice = f"there is no such column of reports; {error.advice}"
        name = Hint("column", "NAME", purpose="if the reports have another name")
        make = Hint("privatize_table", purpose="to make reports of people's values first")
        return InvalidInput("column", counter.column, advice, make, name)
    if error.value == counter.by and any(counter.by in form.attributes for form in forms.by_cohort.values()):
        advice = f"it is an attribute of the {kind}, not a column of the reports; {error.advice}"
        return InvalidInput("by", counter.by, advice, Hint("estimate.margin", purpose="for its shares"))
    return error


def other_form(name: str, forms: TableForms) -> ForeignReport:
    """The error for reports of another form. Only an id is shown: anything else may be private."""
    kind = forms.id_column
    if not re.fullmatch(CONTENT_ID, name):
        hint = Hint(
            "assume_plan=True", purpose=f"if it means something else and this {kind} made all reports"
        )
        return ForeignReport("column", kind, f"it does not hold ids of {kind}s", hint)
    ids = ", ".join(sorted({id[:12] for id in forms.ids})[:3])
    advice = f"read them with the plan or campaign that made them, not with {ids}"
    return ForeignReport("data", NOT_SHOWN, f"reports of {kind} {name[:12]}; {advice}")


@dataclass(eq=False)
class BatchCounter:
    """Adds up the reports of batches, by cohort and group.

    `column` has the reports. `made_by` is the column with the ids of forms; None: not checked. `others` are ids of
    others in it. Without a column `cohort` the ids choose among several forms.
    """

    forms: TableForms
    column: str
    by: str | None = None
    cohort: str | None = None
    made_by: str | None = None
    log: RefusalLog = field(default_factory=RefusalLog)

    def __post_init__(self) -> None:
        self.others: set[str] = set()
        self._ids = list(dict.fromkeys(self.forms.ids))
        self._groups: dict[Hashable, int] = {None: 0}  # of rows without a group
        self._counts: dict[tuple[int, int], TableCounts] = {}

    @property
    def columns(self) -> list[str]:
        """The columns that it reads, that of the reports first."""
        every = (self.column, self.by, self.cohort, self.made_by)
        return list(dict.fromkeys(name for name in every if name is not None))

    def count(self, batches: Iterable[Batch], threads: int = 0) -> Iterator[int]:
        """Count batches, in several threads; after each, yield the number of rows so far."""
        # Groups get their numbers in this thread, one batch after another.
        parts = ((batch, list(self._parts(batch))) for batch in batches)
        for batch, counts, refused in in_threads(lambda job: self._count(*job), parts, threads):
            for key, own in counts.items():
                self._counts[key] = self._counts[key] + own if key in self._counts else own
            self.log.add(batch.refused_rows(refused))
            yield batch.end

    @property
    def counts(self) -> dict[Key, TableCounts]:
        """What was counted so far, by cohort and group."""
        cohorts, groups = list(self.forms.formats), list(self._groups)
        return {(cohorts[cohort], groups[group]): own for (cohort, group), own in self._counts.items()}

    @property
    def reports(self) -> int:
        """How many reports were counted so far."""
        return Tallies.of(self.forms, self.counts, self.log.result()).reports

    def refused_indices(self, batch: Batch) -> dict[str, Indices]:
        """The indices of the rows that are not counted, by reason."""
        return self._count(batch, self._parts(batch))[2]

    def _parts(self, batch: Batch) -> Iterator[_CountedRows]:
        """The rows of a batch by cohort and group; a negative cohort says why rows are refused."""
        names = None if self.made_by is None else batch.columns[self.made_by]
        if names is not None and len(self._ids) == 1 and holds_only(names, self._ids[0]):
            names = None
        if self.cohort is None and self.by is None and names is None:
            yield 0, 0, None
            return
        cohorts = self.forms.cohort_codes(batch, self.cohort)
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
        """The cohorts, with the reason instead where a row names no form or another form than its cohort has."""
        words, indices = distinct(names)
        numbers = {name: number for number, name in enumerate(self._ids)}
        named = np.array([*(numbers.get(str(word), _OTHER) for word in words), MISSING])[indices]
        codes = named
        if self.cohort is not None:
            own = np.array([numbers[id] for id in self.forms.ids])[np.maximum(cohorts, 0)]
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

    def _count(
        self, batch: Batch, parts: Iterable[_CountedRows]
    ) -> tuple[Batch, dict[tuple[int, int], TableCounts], dict[str, Indices]]:
        """A batch, what it has by cohort and group, and the indices of its refused rows by reason."""
        formats, counts = list(self.forms.formats.values()), {}
        refused: dict[str, list[Any]] = defaultdict(list)
        for cohort, group, indices in parts:
            if cohort < 0:
                refused[_REASONS[cohort]].append(indices)
                continue
            column = batch.columns[self.column]
            column = column if indices is None else take(column, indices)
            words, rejected = formats[cohort].read(column)
            for reason, rows in rejected.items():
                refused[reason].append(rows if indices is None else indices[rows])
            reasons = Counter({why: rows.size for why, rows in rejected.items()})
            counts[cohort, group] = TableCounts(formats[cohort].form.count_valid(words), reasons)
        return batch, counts, {reason: np.concatenate(rows) for reason, rows in refused.items()}
