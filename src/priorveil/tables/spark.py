"""Tables on Apache Spark: reports are made and counted on the workers, and only tallies travel.

Only the DataFrame API is used, so Spark Connect works too. Reports of table and hashing plans are counted by Spark
itself (`groupBy`). Arcs and rows of bits are counted by `mapInArrow`: each partition gives a tally, and Spark adds
them up. Workers need priorveil and pyarrow for `mapInArrow` only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from priorveil.errors import NOT_SHOWN, ForeignReport, InvalidInput, MissingExtra, plural
from priorveil.mechanisms.interface import NumberedReports
from priorveil.mechanisms.randomness import SystemSource
from priorveil.plans import Plan
from priorveil.plans.estimate import Method
from priorveil.plans.tally import Tally
from priorveil.priors import Prior
from priorveil.tables import columns
from priorveil.tables.columns import FOREIGN, MISSING, NO_PLAN, OTHER_PLAN, PLAN, REPORT, REPORT_ID, Plans
from priorveil.tables.estimate import BatchCounter, TableEstimate, Tallies, no_plan_column
from priorveil.tables.privatize import kept_columns, make_reports, private_columns, random_ids
from priorveil.tables.write import plan_column

pa = columns.pyarrow()
try:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
except ImportError as error:
    raise MissingExtra("pyspark", "spark") from error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["estimate", "privatize", "refused", "tally"]

RecordBatch = Any  # of Arrow

REFUSED, REASON = "refused", "reason"

# The result of counting has a row for each plan, group and index in the tally. These indices hold other numbers.
_MISSING, _FOREIGN, _REPORTS, _NO_PLAN, _OTHER_PLAN = -1, -2, -3, -4, -5
_NO_TALLY = {_MISSING: MISSING, _NO_PLAN: NO_PLAN, _OTHER_PLAN: OTHER_PLAN}


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
    plans = columns.plans_by_cohort(plan, cohort)
    private = private_columns(column, plans)
    kept = kept_columns(keep, private, cohort)
    columns.require_same_statistics(plans)
    _cohort_column(df, cohort)  # refuses what `tally` would refuse
    width = next(iter(plans.values())).mechanism.width
    fields = [T.StructField(REPORT_ID, T.BinaryType())] if ids else []
    fields += [df.schema[name] for name in kept]
    fields += [T.StructField(PLAN, T.StringType())]
    fields += [T.StructField(REPORT, T.BinaryType() if width else T.LongType())]
    fields += [T.StructField(REFUSED, T.StringType())]

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        source = SystemSource()
        for batch in batches:
            made = make_reports(_as_batch(batch), private, cohort, plans, source)
            order = np.full(batch.num_rows, -1, dtype=np.int64)
            order[made.indices] = np.arange(len(made.indices))
            parts = {REPORT_ID: _binary_or_long(random_ids(batch.num_rows, source))} if ids else {}
            parts |= {name: batch.column(name) for name in kept}
            made_by = pa.array(plan_column(made.plans, plans.values(), as_text=True), pa.string())
            rows = pa.array(order, mask=order < 0)
            parts[PLAN] = made_by.take(rows)
            parts[REPORT] = _binary_or_long(made.reports).take(rows)
            parts[REFUSED] = _reasons(batch.num_rows, made.refused)
            yield pa.RecordBatch.from_pydict(parts)

    return df.select(*kept, *private).mapInArrow(run, T.StructType(fields))


def _as_batch(batch: RecordBatch) -> columns.Batch:
    return columns.Batch(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)


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
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    method: Method = "auto",
    prior: Prior | Sequence[float] | None = None,
    assume_plan: bool = False,
) -> TableEstimate:
    """Estimate from a data frame of reports, as `priorveil.tables.estimate_table` does from a table."""
    tallies = tally(df, plan, column=column, by=by, cohort=cohort, assume_plan=assume_plan)
    return TableEstimate.of(tallies, by, method, prior)


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
    plans = columns.plans_by_cohort(plan, cohort)
    group = F.lit(None).cast("string") if by is None else F.col(by)
    own = [F.col(column).alias("report"), *_cohort_column(df, cohort), *_plan_column(df, assume_plan)]
    return _collect(_count(df.select(group.alias("group"), *own), plans), plans)


def refused(
    df: DataFrame, plan: Plans, *, column: str = REPORT, cohort: str | None = None, assume_plan: bool = False
) -> DataFrame:
    """The rows that `tally` does not count, with the reason in the column `reason`."""
    plans = columns.plans_by_cohort(plan, cohort)
    _cohort_column(df, cohort)  # refuses what `tally` would refuse
    made_by = PLAN if _plan_column(df, assume_plan) else None
    if REASON in df.columns:
        raise InvalidInput(
            "df", NOT_SHOWN, f"its column {REASON!r} has the name of the reason: rename the column"
        )

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        counter = BatchCounter(plans, column, cohort=cohort, made_by=made_by)
        for batch in batches:
            reasons = _reasons(batch.num_rows, counter.refused_indices(_as_batch(batch)))
            yield batch.append_column(REASON, reasons).filter(reasons.is_valid())

    return df.mapInArrow(run, T.StructType([*df.schema.fields, T.StructField(REASON, T.StringType())]))


def _cohort_column(df: DataFrame, cohort: str | None) -> list[Column]:
    """The column of cohorts as Python writes them, because plans are chosen by that; an empty list without one."""
    if cohort is None:
        return []
    kind = df.schema[cohort].dataType
    if not isinstance(kind, T.StringType | T.IntegralType | T.DateType | T.BooleanType):
        raise InvalidInput(
            "cohort", NOT_SHOWN, f"a column of {kind.simpleString()}; cast the cohorts to string first"
        )
    name = F.col(cohort).cast("string")
    return [(F.initcap(name) if isinstance(kind, T.BooleanType) else name).alias("cohort")]


def _plan_column(df: DataFrame, assume_plan: bool) -> list[Column]:
    """The column that names the plan of a report; an empty list if that is not checked."""
    if not assume_plan and PLAN not in df.columns:
        raise no_plan_column(f"the data frame has {', '.join(df.columns)}")
    return [] if assume_plan else [F.col(PLAN).cast("string").alias("made_by")]


# -- counting ----------------------------------------------------------------------------------------------


def _count(reports: DataFrame, plans: Mapping[Any, Plan]) -> DataFrame:
    """The number at every index of the tally of every plan (by its number) and group."""
    if all(isinstance(plan.mechanism, NumberedReports) for plan in plans.values()):
        return _count_by_group(reports, plans)
    whole = [T.StructField(name, T.LongType()) for name in ("plan", "index", "amount")]
    schema = T.StructType([reports.schema["group"], *whole])
    cohort, made_by = (name if name in reports.columns else None for name in ("cohort", "made_by"))

    def run(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        counter = BatchCounter(plans, "report", "group", cohort, made_by=made_by)
        group = pa.field("group", pa.string())
        for batch in batches:
            group = batch.schema.field("group")
            for _ in counter.count([_as_batch(batch)]):
                pass
        whole = [pa.field(name, pa.int64()) for name in ("plan", "index", "amount")]
        yield _tally_rows(counter.tallies(), pa.schema([group, *whole]))

    return (
        reports.mapInArrow(run, schema).groupBy("plan", "group", "index").agg(F.sum("amount").alias("amount"))
    )


def _count_by_group(reports: DataFrame, plans: Mapping[Any, Plan]) -> DataFrame:
    """As `_count`, by Spark itself, for plans whose tally counts how often each number was reported."""
    kind = reports.schema["report"].dataType
    if not isinstance(kind, T.IntegralType):
        raise InvalidInput(
            "column", NOT_SHOWN, f"a column of {kind.simpleString()}; cast the reports to bigint first"
        )
    rows = [(str(key), i, plan.mechanism.outputs, plan.id) for i, (key, plan) in enumerate(plans.items())]
    if "cohort" in reports.columns:
        kinds = "named string, plan bigint, outputs bigint, id string"
        lookup = reports.sparkSession.createDataFrame(rows, kinds)
        reports = reports.join(F.broadcast(lookup), F.col("cohort") == F.col("named"), "left")
    else:
        same = {"plan": F.lit(0).cast("bigint"), "outputs": F.lit(rows[0][2]), "id": F.lit(rows[0][3])}
        reports = reports.withColumns(same)
    report = F.col("report").cast("bigint")
    made_by = F.col("made_by" if "made_by" in reports.columns else "id")
    no_tally = (
        F.when(F.col("plan").isNull(), F.lit(_NO_PLAN))
        .when(made_by.isNull(), F.lit(_MISSING))
        .when(made_by != F.col("id"), F.lit(_OTHER_PLAN))
    )
    index = (
        F.when(no_tally.isNotNull(), no_tally)
        .when(report.isNull(), F.lit(_MISSING))
        .when((report >= 0) & (report < F.col("outputs")), report)
        .otherwise(F.lit(_FOREIGN))
    )
    plan = F.when(no_tally.isNull(), F.col("plan")).alias("plan")
    counts = F.count(F.lit(1)).alias("amount")
    return reports.groupBy(plan, "group", index.cast("bigint").alias("index")).agg(counts)


def _tally_rows(tallies: Tallies, schema: Any) -> RecordBatch:
    """Tallies as rows of group, plan, index and amount, without the zeros."""
    numbers = {key: number for number, key in enumerate(tallies.plans)}
    no_tally = Counter(tallies.refused.counts)
    rows: list[tuple[Any, int | None, int, int]] = []
    for (key, group), part in tallies.by.items():
        no_tally.subtract(part.refused)
        counts = part.counts.ravel()
        amounts = {index: int(counts[index]) for index in np.flatnonzero(counts).tolist()}
        amounts[_REPORTS] = part.reports
        amounts |= {_MISSING: part.refused.get(MISSING, 0), _FOREIGN: part.refused.get(FOREIGN, 0)}
        rows += [(group, numbers[key], index, amount) for index, amount in amounts.items()]
    rows += [(None, None, index, no_tally[why]) for index, why in _NO_TALLY.items() if no_tally[why]]
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def _collect(amounts: DataFrame, plans: Mapping[Any, Plan]) -> Tallies:
    """The tallies of all plans and groups from the numbers at their indices."""
    tallies: dict[tuple[Any, Any], Tally] = {}
    counts: Counter[str] = Counter()
    lists = [("index", "list"), ("amount", "list")]
    for row in amounts.toArrow().group_by(["plan", "group"]).aggregate(lists).to_pylist():
        numbers = dict(zip(row["index_list"], row["amount_list"], strict=True))
        if row["plan"] is None:
            counts.update({_NO_TALLY[index]: number for index, number in numbers.items()})
        else:
            key = list(plans)[row["plan"]]
            part = tallies[key, row["group"]] = _tally(plans[key], numbers)
            counts.update(part.refused)
    if others := counts[OTHER_PLAN]:
        advice = f"{plural(others, 'report')} of another plan; read them with the plan that made them"
        raise ForeignReport("df", NOT_SHOWN, f"{advice} (`refused` returns these rows)")
    return Tallies(dict(plans), tallies, columns.RefusedRows(dict(sorted((+counts).items()))))


def _tally(plan: Plan, amounts: dict[int, int]) -> Tally:
    """The tally of one plan and group."""
    counts = plan.mechanism.empty_counts()
    reasons = {MISSING: amounts.pop(_MISSING, 0), FOREIGN: amounts.pop(_FOREIGN, 0)}
    reports = amounts.pop(_REPORTS, None)
    counts.ravel()[list(amounts)] = list(amounts.values())
    refused = {reason: number for reason, number in reasons.items() if number}
    return Tally(plan.id, counts, int(counts.sum()) if reports is None else reports, refused)
