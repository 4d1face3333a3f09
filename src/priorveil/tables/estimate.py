"""Tally and estimate from a column of reports: for everybody, or for each value of a public column."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from priorveil.errors import NOT_SHOWN, ForeignReport, Hint, InvalidInput, TooLarge
from priorveil.frames import Column, Indices, distinct, holds_only, look_up, take
from priorveil.plans import Plan
from priorveil.priors import Prior
from priorveil.priors.domain import MISSING, OUTSIDE, Codes
from priorveil.reading.combination import combine_estimates
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.tally import Tally
from priorveil.tables.batches import Batch, batch_rows
from priorveil.tables.cohorts import Plans, cohort_codes, plans_by_cohort
from priorveil.tables.read import RowProgress, in_threads, only_text, thread_count
from priorveil.tables.refusals import MISSING_ENTRY, NO_PLAN, OTHER_PLAN, OnRefused, RefusalLog, RefusedRows
from priorveil.tables.repeats import IdSpool, repeated_rows, without_repeats
from priorveil.tables.reports import PLAN, REPORT, REPORT_ID, read_reports
from priorveil.tables.rereading import Rereadable

_Part = tuple[int, int, Indices | None]  # cohort, group (both by number), rows of a batch (None: all)
# A batch, its tallies by cohort and group, and the indices of its refused rows by reason.
_BatchTallies = tuple[Batch, dict[tuple[int, int], Tally], dict[str, Indices]]

_MOST_GROUPS = 100_000
_OTHER = OUTSIDE - 1
# Why rows are in no tally, by the number in place of that of their plan.
_REASONS = {MISSING: MISSING_ENTRY, OUTSIDE: NO_PLAN, _OTHER: OTHER_PLAN}
_PLAN_ID = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class Tallies:
    """The tallies of a table by `(cohort, group)`; None stands for no cohorts or no groups.

    `refused` has the rows in none of them. `repeated` is the number of rows that repeat a report that was already
    counted, and `without_id` the number of rows without an id, among which repeats cannot be noticed. Tallies of parts
    of a table can be added up; a report that is in two of the parts is then counted twice.
    """

    plans: Mapping[Any, Plan]
    by: Mapping[tuple[Any, Any], Tally]
    refused: RefusedRows = field(default_factory=RefusedRows)
    repeated: int = 0
    without_id: int = 0

    def __add__(self, other: Tallies) -> Tallies:
        if not isinstance(other, Tallies):
            return NotImplemented
        sums = dict(self.by)
        _add_tallies(sums, other.by)
        counts = dict(Counter(self.refused.counts) + Counter(other.refused.counts))
        refused = RefusedRows(counts, self.refused.rows)
        repeated, without_id = self.repeated + other.repeated, self.without_id + other.without_id
        return Tallies({**self.plans, **other.plans}, sums, refused, repeated, without_id)

    @property
    def reports(self) -> int:
        """How many reports were counted."""
        return sum(tally.reports for tally in self.by.values())

    @property
    def groups(self) -> list[Any]:
        """The groups, in the order of their names."""
        return sorted({group for _, group in self.by}, key=lambda group: (group is None, str(group)))

    def estimate(
        self, method: EstimateMethod = "auto", prior: Prior | Sequence[float] | None = None, **only: Any
    ) -> Estimate:
        """The estimate for everybody, or with `group=...` for one group.

        Its labels, and those of a `prior` without names, are in the order of the first plan.
        """
        labels = [plan.labels for plan in self.plans.values()]
        prior = None if prior is None else Prior.of(prior)
        if prior is not None and len(set(labels)) > 1 and len(prior) == len(labels[0]):
            prior = prior.align_to(labels[0]).with_domain(labels[0])
        # A group may be NaN, which equals itself only inside a tuple.
        selected = {key: tally for key, tally in self.by.items() if not only or key[1:] == (only["group"],)}
        estimates = []
        for cohort, plan in self.plans.items():
            tallies = (tally for (key, _), tally in selected.items() if key == cohort)
            estimates.append(plan.estimate(sum(tallies, plan.tally([])), method, prior))
        return combine_estimates(estimates)


def _add_tallies(sums: dict[Any, Tally], tallies: Mapping[Any, Tally]) -> None:
    for key, tally in tallies.items():
        sums[key] = sums[key] + tally if key in sums else tally


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """The estimates from a table of reports: for everybody and for each group."""

    everybody: Estimate
    groups: dict[Any, Estimate]
    tallies: Tallies

    @classmethod
    def of(
        cls, tallies: Tallies, by: str | None, method: EstimateMethod, prior: Prior | Sequence[float] | None
    ) -> TableEstimate:
        """The estimates from tallies; `by` says whether they are grouped."""
        groups = {} if by is None else {g: tallies.estimate(method, prior, group=g) for g in tallies.groups}
        return cls(tallies.estimate(method, prior), groups, tallies)

    @property
    def refused(self) -> RefusedRows:
        """The rows that were not counted."""
        return self.tallies.refused


def estimate_table(
    data: Any,
    plan: Plans,
    *,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
    **options: Any,
) -> TableEstimate:
    """Estimate from a table of reports of any size; `options` are those of `tally_table`, which counts them.

    `by` names a public column: each of its values gets an estimate with its own intervals. With plans by `cohort`,
    the estimate for everybody adds up those of the cohorts.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram())
    >>> table = {"report": [0, 1, 0, 9], "plan": [plan.id] * 4, "town": ["A", "A", "B", "B"]}
    >>> estimates = estimate_table(table, plan, by="town")
    >>> {town: estimate.reports for town, estimate in estimates.groups.items()}, estimates.refused.rows
    ({'A': 2, 'B': 1}, ((3, 'foreign'),))
    """
    return TableEstimate.of(tally_table(data, plan, by=by, **options), by, method, prior)


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
    row. The column `plan` names the plan of every report; a table with reports of another plan is an error.
    `assume_plan` is for reports without that column: all are taken for reports of this plan.

    A report that is in the table several times, with the same id in the column `report_id`, is counted once;
    `ConflictingReports` if its rows differ. Rows without an id are counted as they are.
    """
    plans = plans_by_cohort(plan, cohort)
    plan_ids = {plan.id for plan in plans.values()}
    # The plans of reports take as long to read as the reports, so the statistics of a Parquet file may do.
    made_by = None if assume_plan or plan_ids == {only_text(data, PLAN)} else PLAN
    names = [name for name in (column, by, cohort, made_by) if name is not None]
    source = Rereadable(data, names, batch_rows(plans), [REPORT_ID])
    try:
        table = source.open()
    except InvalidInput as error:
        if error.argument == "column" and error.value == made_by:
            raise no_plan_column(error.advice) from None
        if error.argument == "column" and error.value == column:
            raise _no_report_column(column, error.advice) from None
        if (
            error.argument == "column"
            and error.value == by
            and any(by in (plan.reference.names or ()) for plan in plans.values())
        ):
            advice = f"it is an attribute of the plan, not a column of the reports; {error.advice}"
            raise InvalidInput("by", by, advice, Hint("estimate.margin", purpose="for its shares")) from None
        raise
    ids = IdSpool()

    def count(batches: Iterable[Batch], log: RefusalLog) -> Tallies:
        counter = BatchCounter(plans, column, by, cohort, log, made_by)
        for rows in counter.count(batches, thread_count()):
            if counter.other_plans:
                raise _other_plan(min(counter.other_plans), plans)
            if progress is not None:
                progress(rows, table.rows, table.share())
        return counter.tallies()

    tallies = count(ids.watch(table.batches), RefusalLog(on_refused))
    tallies = replace(tallies, without_id=ids.without_id)
    flags = ids.repeated_keys()
    if flags is None:
        return tallies
    table = source.open()
    is_repeat = repeated_rows(table.batches, flags, names, table.place)
    table = source.open()
    distinct_reports = count(without_repeats(table.batches, is_repeat), RefusalLog())
    return replace(tallies, by=distinct_reports.by, repeated=tallies.reports - distinct_reports.reports)


def _no_report_column(column: str, columns_text: str) -> InvalidInput:
    """The error for a table without reports: it may be the table of people's values."""
    advice = f"there is no such column of reports; {columns_text}"
    name = Hint("column", "NAME", purpose="if the reports have another name")
    make = Hint("privatize_table", purpose="to make reports of people's values first")
    return InvalidInput("column", column, advice, make, name)


def no_plan_column(columns_text: str) -> InvalidInput:
    """The error for a table that does not name the plan of its reports."""
    hint = Hint("assume_plan=True", purpose="if this plan made all of them")
    return InvalidInput("column", PLAN, f"nothing names the plan that made the reports; {columns_text}", hint)


def _other_plan(name: str, plans: Mapping[Any, Plan]) -> ForeignReport:
    """The error for reports of another plan. Only the id of a plan is shown: anything else may be private."""
    if not _PLAN_ID.fullmatch(name):
        hint = Hint("assume_plan=True", purpose="if it means something else and this plan made all reports")
        return ForeignReport("column", PLAN, "it does not hold ids of plans", hint)
    plan_ids = ", ".join(sorted({plan.id[:12] for plan in plans.values()})[:3])
    advice = f"read them with the plan that made them, not with {plan_ids}"
    return ForeignReport("data", NOT_SHOWN, f"reports of plan {name[:12]}; {advice}")


@dataclass(eq=False)
class BatchCounter:
    """Adds up the reports of batches, by cohort and group.

    `made_by` is the column with the ids of the plans; None: not checked. `other_plans` are ids of other plans in it.
    """

    plans: Mapping[Any, Plan]
    column: str
    by: str | None = None
    cohort: str | None = None
    log: RefusalLog = field(default_factory=RefusalLog)
    made_by: str | None = None

    def __post_init__(self) -> None:
        self.other_plans: set[str] = set()
        self._ids = list({plan.id for plan in self.plans.values()})
        self._groups: dict[Hashable, int] = {None: 0}  # of rows without a group
        self._tallies: dict[tuple[int, int], Tally] = {}

    def count(self, batches: Iterable[Batch], threads: int = 0) -> Iterator[int]:
        """Count batches, in several threads; after each, yield the number of rows so far."""
        # Groups get their numbers in this thread, one batch after another.
        parts = ((batch, list(self._parts(batch))) for batch in batches)
        for batch, tallies, refused in in_threads(lambda job: self._count(*job), parts, threads):
            _add_tallies(self._tallies, tallies)
            self.log.add(batch.refused_rows(refused))
            yield batch.end

    def tallies(self) -> Tallies:
        """The tallies so far."""
        cohorts, groups = list(self.plans), list(self._groups)
        by = {(cohorts[cohort], groups[group]): tally for (cohort, group), tally in self._tallies.items()}
        return Tallies(self.plans, by, self.log.result())

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
        cohorts = cohort_codes(batch, self.cohort, self.plans)
        groups = np.zeros(batch.rows, dtype=np.int64)
        if names is not None:
            cohorts = self._check_plans(names, cohorts)
        if self.by is not None:
            groups = look_up(batch.columns[self.by], self._group, self._groups[None])
        keys = (cohorts - min(_REASONS)) * len(self._groups) + groups
        if int(keys.max(initial=0)) < 1 << 16:
            keys = keys.astype(np.uint16)  # small numbers are sorted several times as fast
        order = np.argsort(keys, kind="stable")
        for indices in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            if indices.size:
                yield int(cohorts[indices[0]]), int(groups[indices[0]]), indices

    def _check_plans(self, names: Column, cohorts: Codes) -> Codes:
        """The cohorts, with the reason instead where a row names no plan or another plan than its cohort has."""
        words, indices = distinct(names)
        plan_numbers = {name: number for number, name in enumerate(self._ids)}
        named_plans = np.array([*(plan_numbers.get(str(word), _OTHER) for word in words), MISSING])[indices]
        own_plans = np.array([plan_numbers[plan.id] for plan in self.plans.values()])[np.maximum(cohorts, 0)]
        others = (cohorts >= 0) & (named_plans != own_plans) & (named_plans != MISSING)
        self.other_plans.update(str(words[index]) for index in np.unique(indices[others]))
        absent = np.where((cohorts >= 0) & (named_plans == MISSING), MISSING, cohorts)
        return np.where(others, _OTHER, absent)

    def _group(self, name: Any) -> int:
        """The number of a group."""
        name = math.nan if name != name else name  # all NaN values are one group
        if name not in self._groups and len(self._groups) > _MOST_GROUPS:
            raise TooLarge(f"{self.by!r} has more than {_MOST_GROUPS:,} values: group by something coarser")
        return self._groups.setdefault(name, len(self._groups))

    def _count(self, batch: Batch, parts: Iterable[_Part]) -> _BatchTallies:
        """The tallies of a batch, and the indices of its refused rows by reason."""
        plans, tallies = list(self.plans.values()), {}
        refused: dict[str, list[Any]] = defaultdict(list)
        for cohort, group, indices in parts:
            if cohort < 0:
                refused[_REASONS[cohort]].append(indices)
                continue
            column = batch.columns[self.column]
            column = column if indices is None else take(column, indices)
            reports, rejected = read_reports(plans[cohort].mechanism, column)
            for reason, rows in rejected.items():
                refused[reason].append(rows if indices is None else indices[rows])
            counts = plans[cohort].reader.count_valid(reports)
            reasons = {why: rows.size for why, rows in rejected.items()}
            tallies[cohort, group] = Tally(plans[cohort].id, counts, len(reports), reasons)
        return batch, tallies, {reason: np.concatenate(rows) for reason, rows in refused.items()}
