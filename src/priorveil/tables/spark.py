"""Tables on Apache Spark: reports are made and counted on the workers, and only tallies travel.

Only the DataFrame API is used, so Spark Connect works too. Every partition gives a tally (`mapInArrow`), and Spark adds
them up. Workers need priorveil and pyarrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from priorveil.errors import NOT_SHOWN, ForeignReport, InvalidInput, needs_extra, plural
from priorveil.files.batches import Batch, WantedColumns
from priorveil.frames import pyarrow
from priorveil.mechanisms.randomness import SystemSource
from priorveil.priors import Label, Prior
from priorveil.priors.domain import MISSING_ENTRY
from priorveil.reading.estimate import EstimateMethod
from priorveil.tables.counting import BatchCounter, lacking_columns, report_counter
from priorveil.tables.estimate import TableEstimates, estimate_tallies
from priorveil.tables.forms import Plans, TableForms, table_forms
from priorveil.tables.privatize import kept_columns, random_ids
from priorveil.tables.refusals import FOREIGN, NO_COHORT, OTHER_FORM, RefusedRows
from priorveil.tables.repeats import ConflictingReports
from priorveil.tables.reports import REPORT, REPORT_ID
from priorveil.tables.sampling import sample_reports
from priorveil.tables.substitutes import Substitutes
from priorveil.tables.tallies import Key, TableCounts, Tallies
from priorveil.tables.write import arrow_column, id_column

pa = pyarrow()
with needs_extra("spark"):
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

__all__ = ["estimate", "privatize", "refused", "tally"]

RecordBatch = Any  # of Arrow

REFUSED, REASON = "refused", "reason"

# The result of counting has a row for each cohort, group and index of a cell. Indices below zero hold these numbers.
_REPEATED, _WITHOUT_ID, _CONFLICTING = "repeated", "without id", "conflicting"
_REASONS = (MISSING_ENTRY, FOREIGN, NO_COHORT, OTHER_FORM)
_BELOW_ZERO = {-1 - at: name for at, name in enumerate((_REPEATED, _WITHOUT_ID, _CONFLICTING, *_REASONS))}

# Columns of the rows that were merged because they have the same id.
_ID, _KEY, _ROWS = "priorveil_id", "priorveil_key", "priorveil_rows"
_SAME, _HAS_ID = "priorveil_same", "priorveil_has_id"
_FEW_IDS = 3  # that an error names
_HEX_ID = "^[0-9a-fA-F]{32}$"  # a random id, in digits
_BLANKS_AROUND = r"(?U)^\s+|\s+$"  # of Unicode too, as in files


def privatize(
    df: DataFrame,
    plan: Plans,
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
    forms = table_forms(plan)
    private = forms.private(column, Substitutes(missing, other))
    kept_names = kept_columns(keep, cohort, forms, private)
    fields = [T.StructField(REPORT_ID, T.BinaryType())] if ids else []
    fields += [df.schema[name] for name in kept_names]
    fields += [T.StructField(forms.id_column, T.StringType())]
    fields += [T.StructField(REPORT, T.LongType() if forms.width == 0 else T.BinaryType())]
    fields += [T.StructField(REFUSED, T.StringType())]
    id_field = pa.field(REPORT_ID, pa.binary())
    report_field = pa.field(REPORT, pa.int64() if forms.width == 0 else pa.binary())

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        source = SystemSource()
        for batch in batches:
            reports = sample_reports(forms, private, _as_batch(batch), cohort, source)
            order = np.full(batch.num_rows, -1, dtype=np.int64)
            order[reports.indices] = np.arange(len(reports.indices))
            parts = {REPORT_ID: arrow_column(random_ids(batch.num_rows, source), id_field)} if ids else {}
            parts |= {name: batch.column(name) for name in kept_names}
            made_by = pa.array(id_column(reports.cohorts, forms.ids, as_text=True), pa.string())
            rows = pa.array(order, mask=order < 0)
            parts[forms.id_column] = made_by.take(rows)
            parts[REPORT] = arrow_column(reports.reports, report_field).take(rows)
            parts[REFUSED] = _reasons(batch.num_rows, reports.refused, private.public_reason)
            yield pa.RecordBatch.from_pydict(parts)

    names = dict.fromkeys(name for name in (*kept_names, *private.names, cohort) if name is not None)
    return df.select(*names).mapInArrow(run, T.StructType(fields))


def _as_batch(batch: RecordBatch) -> Batch:
    return Batch(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)


def _reasons(rows: int, refused: Mapping[str, Any], wording: Callable[[str], str] = str) -> Any:
    """The reason of every row that is refused; a gap for the others."""
    reasons = np.full(rows, None, dtype=object)
    for reason, indices in refused.items():
        reasons[indices] = wording(reason)
    return pa.array(reasons.tolist(), pa.string())


def estimate(
    df: DataFrame,
    plan: Plans,
    *,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
    **options: Any,
) -> TableEstimates:
    """Estimate from a data frame of reports, as `priorveil.tables.estimate_table` does; `options` as for `tally`."""
    return estimate_tallies(plan, tally(df, plan, by=by, **options), by, method, prior)


def tally(
    df: DataFrame,
    plan: Plans,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    assume_plan: bool = False,
) -> Tallies:
    """Add up a data frame of reports, as `priorveil.tables.tally_table` does; the result is no larger than the tallies.

    Refused reports are counted by reason. They have no row numbers, because the rows of a data frame have none;
    `refused` returns the rows themselves. A report that occurs several times, with the same id in the column
    `report_id`, is counted once; if its rows differ, `ConflictingReports` is raised. To find such reports, digests of
    all ids are shuffled, but rows only if their id occurs several times.
    """
    counter = _counter(df, plan, column, by, cohort, assume_plan)
    forms, names = counter.forms, counter.columns
    numbers = [T.StructField(name, T.LongType()) for name in ("cohort", "index", "amount")]
    group = T.StructField("group", T.StringType() if by is None else df.schema[by].dataType)

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        own, group_type = replace(counter), None
        notes: Counter[str] = Counter()
        for batch in batches:
            group_type = pa.string() if by is None else batch.schema.field(by).type
            for _ in own.count([_as_batch(batch)]):
                pass
            notes.update(_row_notes(batch, own))
        if group_type is not None:  # the partition is not empty
            yield _count_rows(own, notes, group_type)

    amounts = _each_report_once(df, names).mapInArrow(run, T.StructType([group, *numbers]))
    sums = amounts.groupBy("cohort", "group", "index").agg(F.sum("amount").alias("amount"))
    counts, others = _collect(sums, forms)
    if others[_CONFLICTING]:
        raise ConflictingReports(_conflicting_ids(df, names), names)
    if foreign := others[OTHER_FORM]:
        kind = forms.id_column
        advice = f"{plural(foreign, 'report')} of another {kind}; read them with the {kind} that made them"
        raise ForeignReport("df", NOT_SHOWN, f"{advice} (`refused` returns these rows)")
    refused_counts = {reason: others[reason] for reason in sorted(_REASONS) if others[reason]}
    return Tallies.of(forms, counts, RefusedRows(refused_counts), others[_REPEATED], others[_WITHOUT_ID])


def _each_report_once(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """Columns of the rows, those with the same id as one, and what is known of them.

    `_ROWS` is the number of rows with this id, `_SAME` whether they are all equal, `_HAS_ID` whether there is one.
    A digest of every id is shuffled; rows are only where their digest occurs several times.
    """
    once = F.lit(1).alias(_ROWS), F.lit(True).alias(_SAME)
    if REPORT_ID not in df.columns:
        return df.select(*names, *once, F.lit(False).alias(_HAS_ID))
    rows = df.select(_id_column(df).alias(_ID), *names)
    keyed = rows.withColumn(_KEY, F.when(F.col(_ID).isNotNull(), F.xxhash64(_ID)))
    counts = keyed.filter(F.col(_KEY).isNotNull()).groupBy(_KEY).agg(F.count("*").alias(_ROWS))
    repeated = counts.filter(F.col(_ROWS) > 1).select(_KEY)
    has_id = F.col(_ID).isNotNull().alias(_HAS_ID)
    if repeated.isEmpty():
        return rows.select(*names, *once, has_id)
    alone = keyed.join(repeated, _KEY, "left_anti").select(*names, *once, has_id)
    entries = F.struct(*names)
    merged = (
        keyed.join(repeated, _KEY, "left_semi")
        .groupBy(_ID)
        .agg(
            F.min(entries).alias("least"),
            F.max(entries).alias("greatest"),
            F.count("*").cast("int").alias(_ROWS),
        )
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
    plan: Plans,
    *,
    column: str = REPORT,
    cohort: str | None = None,
    assume_plan: bool = False,
) -> DataFrame:
    """The rows that `tally` does not count, with the reason in the column `reason`."""
    counter = _counter(df, plan, column, None, cohort, assume_plan)
    if REASON in df.columns:
        advice = f"its column {REASON!r} has the name of the reason: rename the column"
        raise InvalidInput("df", NOT_SHOWN, advice)

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        for batch in batches:
            reasons = _reasons(batch.num_rows, counter.refused_indices(_as_batch(batch)))
            yield batch.append_column(REASON, reasons).filter(reasons.is_valid())

    return df.mapInArrow(run, T.StructType([*df.schema.fields, T.StructField(REASON, T.StringType())]))


def _counter(
    df: DataFrame, plan: Plans, column: str, by: str | None, cohort: str | None, assume_plan: bool
) -> BatchCounter:
    """A counter of the reports of a data frame, without counts."""
    counter = report_counter(table_forms(plan), column, by, cohort, assume_plan)
    with lacking_columns(counter):
        WantedColumns(tuple(counter.columns)).select(df.columns)
    return counter


def _count_rows(counter: BatchCounter, notes: Counter[str], group_type: Any) -> RecordBatch:
    """What was counted as rows of group (of this type), cohort (its number), index and amount, without zero cells.

    `notes` are numbers of rows that belong to no cohort.
    """
    alone = Counter(counter.log.result().counts)
    alone.update(notes)
    cohorts = list(counter.forms.formats)
    rows: list[tuple[Any, int | None, int, int]] = []
    for (cohort, group), own in counter.counts.items():
        alone.subtract(own.refused)
        at = cohorts.index(cohort)
        rows += [(group, at, i, int(own.cells[i])) for i in np.flatnonzero(own.cells).tolist()]
        rows += [(group, at, i, own.refused[name]) for i, name in _BELOW_ZERO.items()]
    rows += [(None, None, i, alone[name]) for i, name in _BELOW_ZERO.items()]
    groups, *numbers = zip(*rows, strict=True)
    arrays = [pa.array(groups, group_type), *(pa.array(column, pa.int64()) for column in numbers)]
    return pa.RecordBatch.from_arrays(arrays, ["group", "cohort", "index", "amount"])


def _collect(amounts: DataFrame, forms: TableForms) -> tuple[dict[Key, TableCounts], Counter[str]]:
    """What was counted by cohort and group, from the numbers at its indices; and how many rows are refused or noted."""
    counts: dict[Key, TableCounts] = {}
    row_counts: Counter[str] = Counter()
    lists = [("index", "list"), ("amount", "list")]
    for row in amounts.toArrow().group_by(["cohort", "group"]).aggregate(lists).to_pylist():
        numbers = dict(zip(row["index_list"], row["amount_list"], strict=True))
        others = Counter({name: numbers.pop(index) for index, name in _BELOW_ZERO.items()})
        row_counts.update(others)
        if row["cohort"] is not None:
            cohort, form = list(forms.by_cohort.items())[row["cohort"]]
            cells = np.zeros(form.cells, np.int64)
            cells[list(numbers)] = list(numbers.values())
            counts[cohort, row["group"]] = TableCounts(cells, +others)
    return counts, row_counts
