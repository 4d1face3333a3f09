"""Tables on Apache Spark: reports are made and counted on the workers, and only tallies travel.

Only the DataFrame API is used, so Spark Connect works too. Every partition gives a tally (`mapInArrow`), and Spark adds
them up. Workers need priorveil and pyarrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from priorveil.errors import NOT_SHOWN, ForeignReport, InvalidInput, needs_extra, plural
from priorveil.frames import pyarrow
from priorveil.mechanisms.randomness import SystemSource
from priorveil.plans import Plan
from priorveil.priors import Prior
from priorveil.reading.estimate import EstimateMethod
from priorveil.reading.tally import Tally
from priorveil.tables.batches import Batch
from priorveil.tables.cohorts import Plans, plans_by_cohort
from priorveil.tables.estimate import BatchCounter, TableEstimate, Tallies, no_plan_column
from priorveil.tables.privatize import kept_columns, make_reports, private_columns, random_ids
from priorveil.tables.refusals import FOREIGN, MISSING_ENTRY, NO_PLAN, OTHER_PLAN, RefusedRows
from priorveil.tables.reports import PLAN, REPORT, REPORT_ID
from priorveil.tables.write import plan_column

pa = pyarrow()
with needs_extra("spark"):
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["estimate", "privatize", "refused", "tally"]

RecordBatch = Any  # of Arrow

REFUSED, REASON = "refused", "reason"

# The result of counting has a row for each plan, group and index in the tally. Indices below zero hold these numbers.
_REPORTS = "reports"
_BELOW_ZERO = {-1: _REPORTS, -2: MISSING_ENTRY, -3: FOREIGN, -4: NO_PLAN, -5: OTHER_PLAN}


def privatize(
    df: DataFrame,
    plan: Plans,
    column: str | Sequence[str],
    *,
    keep: Sequence[str] = (),
    cohort: str | None = None,
    ids: bool = True,
) -> DataFrame:
    """Perturb a column: a data frame of report ids, the columns in `keep`, the ids of the plans, and reports.

    For several attributes `column` is a list with a column for each. A refused row stays, with an empty report and the
    reason in the column `refused`. Spark is lazy: every action on the result makes *new* reports and spends the budget
    again, so write it to a table once and read that.
    """
    plans = plans_by_cohort(plan, cohort)
    private = private_columns(column, plans)
    kept = kept_columns(keep, private, cohort)
    width = next(iter(plans.values())).mechanism.width
    fields = [T.StructField(REPORT_ID, T.BinaryType())] if ids else []
    fields += [df.schema[name] for name in kept]
    fields += [T.StructField(PLAN, T.StringType())]
    fields += [T.StructField(REPORT, T.BinaryType() if width else T.LongType())]
    fields += [T.StructField(REFUSED, T.StringType())]

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        source = SystemSource()
        for batch in batches:
            reports = make_reports(_as_batch(batch), private, cohort, plans, source)
            order = np.full(batch.num_rows, -1, dtype=np.int64)
            order[reports.indices] = np.arange(len(reports.indices))
            parts = {REPORT_ID: _binary_or_long(random_ids(batch.num_rows, source))} if ids else {}
            parts |= {name: batch.column(name) for name in kept}
            plan_ids = pa.array(plan_column(reports.plans, plans.values(), as_text=True), pa.string())
            rows = pa.array(order, mask=order < 0)
            parts[PLAN] = plan_ids.take(rows)
            parts[REPORT] = _binary_or_long(reports.reports).take(rows)
            parts[REFUSED] = _reasons(batch.num_rows, reports.refused)
            yield pa.RecordBatch.from_pydict(parts)

    return df.select(*kept, *private).mapInArrow(run, T.StructType(fields))


def _as_batch(batch: RecordBatch) -> Batch:
    return Batch(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)


def _binary_or_long(column: Any) -> Any:
    return pa.array(column if column.ndim == 1 else [row.tobytes() for row in column])


def _reasons(rows: int, refused: Mapping[str, Any]) -> Any:
    """The reason of every row that is refused; a gap for the others."""
    reasons = np.full(rows, None, dtype=object)
    for reason, indices in refused.items():
        reasons[indices] = reason
    return pa.array(reasons.tolist(), pa.string())


def estimate(
    df: DataFrame,
    plan: Plans,
    *,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
    **options: Any,
) -> TableEstimate:
    """Estimate from a data frame of reports, as `priorveil.tables.estimate_table` does; `options` as for `tally`."""
    return TableEstimate.of(tally(df, plan, by=by, **options), by, method, prior)


def tally(
    df: DataFrame,
    plan: Plans,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    assume_plan: bool = False,
) -> Tallies:
    """Add up a data frame of reports in one job, whose result is no larger than the tallies.

    Refused reports are counted by reason. They have no row numbers, because the rows of a data frame have none;
    `refused` returns the rows themselves.
    """
    plans = plans_by_cohort(plan, cohort)
    made_by = _plan_column_name(df, assume_plan)
    numbers = [T.StructField(name, T.LongType()) for name in ("plan", "index", "amount")]
    group = T.StructField("group", T.StringType() if by is None else df.schema[by].dataType)

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        counter, group_type = BatchCounter(plans, column, by, cohort, made_by=made_by), None
        for batch in batches:
            group_type = pa.string() if by is None else batch.schema.field(by).type
            for _ in counter.count([_as_batch(batch)]):
                pass
        if group_type is not None:  # the partition is not empty
            yield _tally_rows(counter.tallies(), group_type)

    names = dict.fromkeys(name for name in (column, by, cohort, made_by) if name is not None)
    amounts = df.select(*names).mapInArrow(run, T.StructType([group, *numbers]))
    return _collect(amounts.groupBy("plan", "group", "index").agg(F.sum("amount").alias("amount")), plans)


def refused(
    df: DataFrame, plan: Plans, *, column: str = REPORT, cohort: str | None = None, assume_plan: bool = False
) -> DataFrame:
    """The rows that `tally` does not count, with the reason in the column `reason`."""
    plans = plans_by_cohort(plan, cohort)
    made_by = _plan_column_name(df, assume_plan)
    if REASON in df.columns:
        advice = f"its column {REASON!r} has the name of the reason: rename the column"
        raise InvalidInput("df", NOT_SHOWN, advice)

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        counter = BatchCounter(plans, column, cohort=cohort, made_by=made_by)
        for batch in batches:
            reasons = _reasons(batch.num_rows, counter.refused_indices(_as_batch(batch)))
            yield batch.append_column(REASON, reasons).filter(reasons.is_valid())

    return df.mapInArrow(run, T.StructType([*df.schema.fields, T.StructField(REASON, T.StringType())]))


def _plan_column_name(df: DataFrame, assume_plan: bool) -> str | None:
    """The column that names the plan of a report; None if that is not checked."""
    if not assume_plan and PLAN not in df.columns:
        raise no_plan_column(f"the data frame has {', '.join(df.columns)}")
    return None if assume_plan else PLAN


def _tally_rows(tallies: Tallies, group_type: Any) -> RecordBatch:
    """Tallies as rows of group (of this type), plan (its number), index and amount, without the zeros."""
    no_tally = Counter(tallies.refused.counts)
    plan_numbers = {cohort: number for number, cohort in enumerate(tallies.plans)}
    rows: list[tuple[Any, int | None, int, int]] = []
    for (cohort, group), part in tallies.by.items():
        no_tally.subtract(part.refused)
        plan, others = plan_numbers[cohort], {_REPORTS: part.reports, **part.refused}
        counts = part.counts.ravel()
        rows += [(group, plan, i, int(counts[i])) for i in np.flatnonzero(counts).tolist()]
        rows += [(group, plan, i, others.get(name, 0)) for i, name in _BELOW_ZERO.items()]
    rows += [(None, None, i, no_tally[reason]) for i, reason in _BELOW_ZERO.items()]
    groups, *numbers = zip(*rows, strict=True)
    arrays = [pa.array(groups, group_type), *(pa.array(column, pa.int64()) for column in numbers)]
    return pa.RecordBatch.from_arrays(arrays, ["group", "plan", "index", "amount"])


def _collect(amounts: DataFrame, plans: Mapping[Any, Plan]) -> Tallies:
    """The tallies of all plans and groups from the numbers at their indices."""
    tallies: dict[tuple[Any, Any], Tally] = {}
    refused_counts: Counter[str] = Counter()
    lists = [("index", "list"), ("amount", "list")]
    for row in amounts.toArrow().group_by(["plan", "group"]).aggregate(lists).to_pylist():
        numbers = dict(zip(row["index_list"], row["amount_list"], strict=True))
        others = Counter({name: numbers.pop(index) for index, name in _BELOW_ZERO.items()})
        reports = others.pop(_REPORTS)
        refused_counts.update(others)
        if row["plan"] is not None:
            key, plan = list(plans.items())[row["plan"]]
            counts = np.zeros(plan.reader.counts_shape, np.int64)
            counts.ravel()[list(numbers)] = list(numbers.values())
            tallies[key, row["group"]] = Tally(plan.id, counts, reports, dict(+others))
    if foreign := refused_counts[OTHER_PLAN]:
        advice = f"{plural(foreign, 'report')} of another plan; read them with the plan that made them"
        raise ForeignReport("df", NOT_SHOWN, f"{advice} (`refused` returns these rows)")
    return Tallies(dict(plans), tallies, RefusedRows(dict(sorted((+refused_counts).items()))))
