"""Tables on Apache Spark: reports are made and counted on the workers, and only tallies travel.

Only the DataFrame API is used, so Spark Connect works too. Every partition gives a tally (`mapInArrow`), and Spark adds
them up. Workers need priorveil and pyarrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from priorveil.collect.campaign import Campaign
from priorveil.errors import NOT_SHOWN, ForeignReport, InvalidInput, needs_extra, plural
from priorveil.frames import pyarrow
from priorveil.mechanisms.randomness import SystemSource
from priorveil.priors import Label, Prior
from priorveil.reading.estimate import EstimateMethod
from priorveil.reading.tally import Tally
from priorveil.tables.batches import Batch
from priorveil.tables.cohorts import Plans, plans_by_cohort
from priorveil.tables.counting import BatchCounter, ReportCounts
from priorveil.tables.estimate import TableEstimate, Tallies, no_plan_column
from priorveil.tables.privatize import kept_columns, random_ids
from priorveil.tables.refusals import FOREIGN, MISSING_ENTRY, NO_PLAN, OTHER_PLAN, RefusedRows
from priorveil.tables.repeats import ConflictingReports
from priorveil.tables.report_makers import report_maker
from priorveil.tables.reports import FORM, PLAN, REPORT, REPORT_ID, ReportFormat
from priorveil.tables.submissions import CampaignEstimate, SubmissionTallies, refuse_with_campaign
from priorveil.tables.write import id_column

pa = pyarrow()
with needs_extra("spark"):
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["estimate", "privatize", "refused", "tally"]

RecordBatch = Any  # of Arrow
Formats = Mapping[Any, ReportFormat]  # by cohort, or by the id of a form

REFUSED, REASON = "refused", "reason"

# The result of counting has a row for each plan, group and index in the tally. Indices below zero hold these numbers.
_REPORTS, _REPEATED, _WITHOUT_ID, _CONFLICTING = "reports", "repeated", "without id", "conflicting"
_NOT_REFUSED = (_REPORTS, _REPEATED, _WITHOUT_ID, _CONFLICTING)
_REASONS = (MISSING_ENTRY, FOREIGN, NO_PLAN, OTHER_PLAN)
_BELOW_ZERO = {-1 - number: name for number, name in enumerate((*_NOT_REFUSED, *_REASONS))}

# Columns of the rows that were merged because they have the same id.
_ID, _ROWS, _SAME, _HAS_ID = "priorveil_id", "priorveil_rows", "priorveil_same", "priorveil_has_id"
_FEW_IDS = 3  # that an error names
_HEX_ID = "^[0-9a-fA-F]{32}$"  # a random id, in digits
_BLANKS_AROUND = r"(?U)^\s+|\s+$"  # of Unicode too, as in files


def privatize(
    df: DataFrame,
    plan: Plans | Campaign,
    column: str | Sequence[str] = (),
    *,
    keep: Sequence[str] = (),
    cohort: str | None = None,
    missing: Label | None = None,
    other: Label | None = None,
    ids: bool = True,
) -> DataFrame:
    """Perturb a column: a data frame of report ids, the columns in `keep`, the ids of the plans, and reports.

    For several attributes `column` is a list with a column for each; a campaign has a column for each question. All
    arguments are those of `priorveil.tables.privatize_table`. A refused row stays, with an empty report and the
    reason in the column `refused`. Spark is lazy: every action on the result makes *new* reports and spends the budget
    again, so write it to a table once and read that.
    """
    maker = report_maker(plan, column, cohort, missing, other)
    kept_names = kept_columns(keep, maker)
    fields = [T.StructField(REPORT_ID, T.BinaryType())] if ids else []
    fields += [df.schema[name] for name in kept_names]
    fields += [T.StructField(maker.made_by, T.StringType())]
    fields += [T.StructField(REPORT, T.BinaryType() if maker.width else T.LongType())]
    fields += [T.StructField(REFUSED, T.StringType())]

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        source = SystemSource()
        for batch in batches:
            reports = maker.make(_as_batch(batch), source)
            order = np.full(batch.num_rows, -1, dtype=np.int64)
            order[reports.indices] = np.arange(len(reports.indices))
            parts = {REPORT_ID: _binary_or_long(random_ids(batch.num_rows, source))} if ids else {}
            parts |= {name: batch.column(name) for name in kept_names}
            made_by = pa.array(id_column(reports.makers, maker.ids, as_text=True), pa.string())
            rows = pa.array(order, mask=order < 0)
            parts[maker.made_by] = made_by.take(rows)
            parts[REPORT] = _binary_or_long(reports.reports).take(rows)
            parts[REFUSED] = _reasons(batch.num_rows, reports.refused, maker.public_reason)
            yield pa.RecordBatch.from_pydict(parts)

    names = dict.fromkeys(name for name in (*kept_names, *maker.columns, maker.cohort) if name is not None)
    return df.select(*names).mapInArrow(run, T.StructType(fields))


def _as_batch(batch: RecordBatch) -> Batch:
    return Batch(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)


def _binary_or_long(column: Any) -> Any:
    if isinstance(column, list):
        return pa.array(column, pa.binary())
    return pa.array(column if column.ndim == 1 else [row.tobytes() for row in column])


def _reasons(rows: int, refused: Mapping[str, Any], wording: Callable[[str], str] = str) -> Any:
    """The reason of every row that is refused; a gap for the others."""
    reasons = np.full(rows, None, dtype=object)
    for reason, indices in refused.items():
        reasons[indices] = wording(reason)
    return pa.array(reasons.tolist(), pa.string())


@overload
def estimate(df: DataFrame, plan: Campaign, *, method: EstimateMethod = "auto") -> CampaignEstimate: ...


@overload
def estimate(
    df: DataFrame,
    plan: Plans,
    *,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
    **options: Any,
) -> TableEstimate: ...


def estimate(
    df: DataFrame,
    plan: Plans | Campaign,
    *,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
    **options: Any,
) -> TableEstimate | CampaignEstimate:
    """Estimate from a data frame of reports, as `priorveil.tables.estimate_table` does; `options` as for `tally`."""
    if isinstance(plan, Campaign):
        refuse_with_campaign(by=by, prior=prior)
        return CampaignEstimate.of(plan, tally(df, plan, **options), method)
    return TableEstimate.of(tally(df, plan, by=by, **options), by, method, prior)


@overload
def tally(df: DataFrame, plan: Campaign) -> SubmissionTallies: ...


@overload
def tally(
    df: DataFrame,
    plan: Plans,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    assume_plan: bool = False,
) -> Tallies: ...


def tally(
    df: DataFrame,
    plan: Plans | Campaign,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    assume_plan: bool = False,
) -> Tallies | SubmissionTallies:
    """Add up a data frame of reports in one job, whose result is no larger than the tallies.

    Refused reports are counted by reason. They have no row numbers, because the rows of a data frame have none;
    `refused` returns the rows themselves. A report that is there several times, with the same id in the column
    `report_id`, is counted once, and `ConflictingReports` if its rows differ: Spark brings the rows with the same id
    together, which moves the columns that are read through a shuffle. The submissions to a campaign are added up by
    form.
    """
    counts = _count(df, *_formats(df, plan, column, by, cohort, assume_plan))
    if isinstance(plan, Campaign):
        return SubmissionTallies.of(plan.forms, counts)
    plans = plans_by_cohort(plan, cohort)
    return Tallies(plans, counts.by, counts.refused, counts.repeated, counts.without_id)


@dataclass(frozen=True)
class _Columns:
    """The columns of a data frame of reports: those of `BatchCounter`."""

    column: str = REPORT
    by: str | None = None
    cohort: str | None = None
    made_by: str | None = None

    def names(self) -> list[str]:
        every = (self.column, self.by, self.cohort, self.made_by)
        return list(dict.fromkeys(name for name in every if name is not None))

    def counter(self, formats: Formats) -> BatchCounter:
        return BatchCounter(formats, self.column, self.by, self.cohort, made_by=self.made_by)


def _count(df: DataFrame, formats: Formats, columns: _Columns) -> ReportCounts:
    names, by = columns.names(), columns.by
    rows = _merge_repeats(df, names)
    numbers = [T.StructField(name, T.LongType()) for name in ("plan", "index", "amount")]
    group = T.StructField("group", T.StringType() if by is None else df.schema[by].dataType)

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        counter, group_type = columns.counter(formats), None
        notes: Counter[str] = Counter()
        for batch in batches:
            group_type = pa.string() if by is None else batch.schema.field(by).type
            for _ in counter.count([_as_batch(batch)]):
                pass
            notes.update(_row_notes(batch, counter))
        if group_type is not None:  # the partition is not empty
            yield _tally_rows(counter, notes, group_type)

    amounts = rows.mapInArrow(run, T.StructType([group, *numbers]))
    sums = amounts.groupBy("plan", "group", "index").agg(F.sum("amount").alias("amount"))
    tallies, others = _collect(sums, formats)
    if others[_CONFLICTING]:
        raise ConflictingReports(_conflicting_ids(df, names), names)
    if foreign := others[OTHER_PLAN]:
        source = "campaign that they answer" if columns.made_by == FORM else "plan that made them"
        advice = f"{plural(foreign, 'report')} of another {columns.made_by}; read them with the {source}"
        raise ForeignReport("df", NOT_SHOWN, f"{advice} (`refused` returns these rows)")
    refused_counts = {reason: others[reason] for reason in sorted(_REASONS) if others[reason]}
    return ReportCounts(tallies, RefusedRows(refused_counts), others[_REPEATED], others[_WITHOUT_ID])


def _merge_repeats(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """Columns of the rows, those with the same id as one, and what is known of them.

    `_ROWS` is the number of rows with this id, `_SAME` whether they are all equal, `_HAS_ID` whether there is one.
    """
    if REPORT_ID not in df.columns:
        return df.select(*names).withColumns({_ROWS: F.lit(1), _SAME: F.lit(True), _HAS_ID: F.lit(False)})
    rows = df.select(_id_column(df).alias(_ID), *names)
    alone = rows.filter(F.col(_ID).isNull()).select(
        *names, F.lit(1).alias(_ROWS), F.lit(True).alias(_SAME), F.lit(False).alias(_HAS_ID)
    )
    entries = F.struct(*names)
    by_id = rows.filter(F.col(_ID).isNotNull()).groupBy(_ID)
    merged = by_id.agg(
        F.min(entries).alias("least"), F.max(entries).alias("greatest"), F.count("*").cast("int").alias(_ROWS)
    )
    same = F.col("least").eqNullSafe(F.col("greatest")).alias(_SAME)
    return merged.select("least.*", _ROWS, same, F.lit(True).alias(_HAS_ID)).unionByName(alone)


def _id_column(df: DataFrame) -> Any:
    """The ids as texts, compared as in files: trimmed, hexadecimal ids in lower case; null where there is none."""
    column = F.col(REPORT_ID)
    if isinstance(df.schema[REPORT_ID].dataType, T.BinaryType):
        text = F.lower(F.hex(column))
    else:
        text = F.regexp_replace(column.cast("string"), _BLANKS_AROUND, "")
        text = F.when(text.rlike(_HEX_ID), F.lower(text)).otherwise(text)
    return F.when(~F.lower(text).isin("", "nan"), text)


def _row_notes(batch: RecordBatch, counter: BatchCounter) -> Counter[str]:
    """How many rows repeat a counted report, differ from others with their id, or have no id."""
    repeats, same, has_id = (
        batch.column(name).to_numpy(zero_copy_only=False) for name in (_ROWS, _SAME, _HAS_ID)
    )
    repeats = repeats.astype(np.int64) - 1
    notes = Counter({_CONFLICTING: int((~same).sum()), _WITHOUT_ID: int((~has_id).sum())})
    if repeats.any():
        notes[_REPEATED] = int(repeats.sum())
        for reason, indices in counter.refused_indices(_as_batch(batch)).items():
            notes[reason] = int(repeats[indices].sum())  # a refused row is counted as often as it is there
            notes[_REPEATED] -= notes[reason]
    return notes


def _conflicting_ids(df: DataFrame, names: Sequence[str]) -> str:
    """Some random ids whose rows differ, in words: the rows of a data frame have no numbers.

    An id that is another text may be private, such as an e-mail address, and is not shown.
    """
    ids = df.select(_id_column(df).alias(_ID), F.struct(*names).alias("entries"))
    random = ids.filter(F.col(_ID).rlike(_HEX_ID)).groupBy(_ID)
    kinds = random.agg(F.min("entries").alias("least"), F.max("entries").alias("greatest"))
    rows = kinds.filter(~F.col("least").eqNullSafe(F.col("greatest"))).limit(_FEW_IDS).collect()
    return f"rows with the id {' or '.join(row[0] for row in rows)}" if rows else "some rows"


def refused(
    df: DataFrame,
    plan: Plans | Campaign,
    *,
    column: str = REPORT,
    cohort: str | None = None,
    assume_plan: bool = False,
) -> DataFrame:
    """The rows that `tally` does not count, with the reason in the column `reason`."""
    formats, columns = _formats(df, plan, column, None, cohort, assume_plan)
    if REASON in df.columns:
        advice = f"its column {REASON!r} has the name of the reason: rename the column"
        raise InvalidInput("df", NOT_SHOWN, advice)

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        counter = columns.counter(formats)
        for batch in batches:
            reasons = _reasons(batch.num_rows, counter.refused_indices(_as_batch(batch)))
            yield batch.append_column(REASON, reasons).filter(reasons.is_valid())

    return df.mapInArrow(run, T.StructType([*df.schema.fields, T.StructField(REASON, T.StringType())]))


def _formats(
    df: DataFrame,
    plan: Plans | Campaign,
    column: str,
    by: str | None,
    cohort: str | None,
    assume_plan: bool,
) -> tuple[dict[Any, ReportFormat], _Columns]:
    """The formats of reports by cohort, or by the id of a form; and the columns to read."""
    if isinstance(plan, Campaign):
        refuse_with_campaign(column, by, cohort, assume_plan)
        if FORM not in df.columns:
            raise InvalidInput("column", FORM, f"the data frame has {', '.join(df.columns)}")
        return {id: ReportFormat.of_form(form) for id, form in plan.forms.items()}, _Columns(made_by=FORM)
    plans = plans_by_cohort(plan, cohort)
    if not assume_plan and PLAN not in df.columns:
        raise no_plan_column(f"the data frame has {', '.join(df.columns)}")
    columns = _Columns(column, by, cohort, None if assume_plan else PLAN)
    return {key: ReportFormat.of_plan(one) for key, one in plans.items()}, columns


def _tally_rows(counter: BatchCounter, notes: Counter[str], group_type: Any) -> RecordBatch:
    """The tallies as rows of group (of this type), plan (its number), index and amount, without the zeros.

    `notes` are numbers of rows that belong to no tally.
    """
    no_tally = Counter(counter.log.result().counts)
    no_tally.update(notes)
    plan_numbers = {cohort: number for number, cohort in enumerate(counter.formats)}
    rows: list[tuple[Any, int | None, int, int]] = []
    for (cohort, group), part in counter.tallies.items():
        no_tally.subtract(part.refused)
        plan, others = plan_numbers[cohort], {_REPORTS: part.reports, **part.refused}
        counts = part.counts.ravel()
        rows += [(group, plan, i, int(counts[i])) for i in np.flatnonzero(counts).tolist()]
        rows += [(group, plan, i, others.get(name, 0)) for i, name in _BELOW_ZERO.items()]
    rows += [(None, None, i, no_tally[reason]) for i, reason in _BELOW_ZERO.items()]
    groups, *numbers = zip(*rows, strict=True)
    arrays = [pa.array(groups, group_type), *(pa.array(column, pa.int64()) for column in numbers)]
    return pa.RecordBatch.from_arrays(arrays, ["group", "plan", "index", "amount"])


def _collect(amounts: DataFrame, formats: Formats) -> tuple[dict[tuple[Any, Any], Tally], Counter[str]]:
    """The tallies of all plans and groups from the numbers at their indices; and how many rows are refused or noted."""
    tallies: dict[tuple[Any, Any], Tally] = {}
    row_counts: Counter[str] = Counter()
    lists = [("index", "list"), ("amount", "list")]
    for row in amounts.toArrow().group_by(["plan", "group"]).aggregate(lists).to_pylist():
        numbers = dict(zip(row["index_list"], row["amount_list"], strict=True))
        others = Counter({name: numbers.pop(index) for index, name in _BELOW_ZERO.items()})
        row_counts.update(others)
        if row["plan"] is not None:
            key, format = list(formats.items())[row["plan"]]
            counts = np.zeros(format.counts_shape, np.int64)
            counts.ravel()[list(numbers)] = list(numbers.values())
            reasons = {reason: others[reason] for reason in _REASONS if others[reason]}
            tallies[key, row["group"]] = Tally(format.id, counts, others[_REPORTS], reasons)
    return tallies, row_counts
