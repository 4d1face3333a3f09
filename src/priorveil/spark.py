"""The same on Apache Spark: reports are made and added up where the data is; only tallies travel.

The DataFrame API alone is used, so it works with Spark Connect too. Counting is done by Spark's own
expressions for table and hashing plans (group by the report) and for arc plans (a broadcast join finds the
cell of a report). Unary reports are rows of bits, which no expression adds up: there, and for arcs of a huge
domain, `mapInArrow` gives a tally per partition, and Spark adds those up. Workers need priorveil and pyarrow
for `mapInArrow` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, MissingExtra
from priorveil.frames.arrow import pa
from priorveil.frames.cohorts import Plans, by_cohort
from priorveil.frames.estimating import (
    Method,
    TableEstimate,
    Tallies,
    empty_tally,
    read_tallies,
    tally_pieces,
)
from priorveil.frames.pieces import placed
from priorveil.frames.privatizing import REPORT, REPORT_ID, kept_columns, make_reports, random_ids
from priorveil.frames.refusals import FOREIGN, MISSING, NO_PLAN, Refused
from priorveil.mechanisms import Arc, Unary
from priorveil.mechanisms.arc_cells import LIMB, ArcCells
from priorveil.mechanisms.randomness import SystemSource
from priorveil.mechanisms.reading import Counted
from priorveil.plans import Plan
from priorveil.priors import Prior
from priorveil.tallies import Tally

try:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
except ImportError as error:
    raise MissingExtra("pyspark", "spark") from error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["estimate", "privatize", "tally"]

REFUSED = "refused"

# In a table of amounts by place: places of the tally count from 0, and these stand for what is beside it.
_MISSING, _FOREIGN, _REPORTS = -1, -2, -3
_MOST_CELLS = 1 << 18  # of a broadcast join


def privatize(
    df: DataFrame,
    plan: Plans,
    column: str,
    *,
    keep: Sequence[str] = (),
    cohort: str | None = None,
    ids: bool = True,
) -> DataFrame:
    """Perturb a column: a data frame of report ids, the columns in `keep`, reports, and why a row has none.

    A row that is refused stays, with an empty report and the reason in the column `refused`. Spark is lazy:
    every action on the result makes *new* reports and spends the budget again, so write it to a table once
    and go on from there.
    """
    plans, kept = by_cohort(plan, cohort), kept_columns(keep, column, cohort)
    first = next(iter(plans.values()))
    fields = [T.StructField(REPORT_ID, T.BinaryType())] if ids else []
    fields += [df.schema[name] for name in kept]
    kind = T.BinaryType() if isinstance(first.mechanism, Unary) else T.LongType()
    fields += [T.StructField(REPORT, kind), T.StructField(REFUSED, T.StringType())]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield privatized(batch, plans, column, cohort, kept, ids)

    return df.select(*kept, column).mapInArrow(run, T.StructType(fields))


def privatized(
    batch: pa.RecordBatch,
    plans: Mapping[Any, Plan],
    column: str,
    cohort: str | None,
    kept: Sequence[str],
    ids: bool,
) -> pa.RecordBatch:
    """What a worker makes of a batch: a row for every row."""
    source, rows = SystemSource(), batch.num_rows
    made = make_reports(batch.column(column), None if cohort is None else batch.column(cohort), plans, source)
    order = np.full(rows, -1, dtype=np.int64)
    order[made.places] = np.arange(len(made.places))
    reports = made.reports.take(pa.array(order, mask=order < 0))
    reasons = np.full(rows, None, dtype=object)
    for reason, places in made.refused.items():
        reasons[places] = reason
    columns = {REPORT_ID: random_ids(rows, source).cast(pa.binary())} if ids else {}
    columns |= {name: batch.column(name) for name in kept}
    columns |= {
        REPORT: reports if pa.types.is_int64(reports.type) else reports.cast(pa.binary()),
        REFUSED: pa.array(reasons.tolist(), pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


def estimate(
    df: DataFrame,
    plan: Plans,
    *,
    column: str = REPORT,
    by: str | None = None,
    cohort: str | None = None,
    method: Method = "mmse",
    prior: Prior | Sequence[float] | None = None,
) -> TableEstimate:
    """Estimate from a data frame of reports: the answer of `frames.estimate_table` for the same reports."""
    return read_tallies(tally(df, plan, column=column, by=by, cohort=cohort), by, method, prior)


def tally(
    df: DataFrame, plan: Plans, *, column: str = REPORT, by: str | None = None, cohort: str | None = None
) -> Tallies:
    """Add up a data frame of reports: a job for each plan, whose result is no larger than its tallies.

    Refused reports are counted by reason; they have no row numbers, as rows of a data frame have none.
    """
    plans = by_cohort(plan, cohort)
    found: dict[tuple[Any, Any], Tally] = {}
    counts: dict[str, int] = {}
    for key, one in plans.items():
        own = df if cohort is None else df.filter(F.col(cohort).cast("string") == str(key))
        for group, part in _tallies(own, one, column, by).items():
            found[key, group] = part
            for reason, number in part.refused.items():
                counts[reason] = counts.get(reason, 0) + number
    if cohort is not None:
        known = F.col(cohort).cast("string").isin([str(key) for key in plans])
        lost = df.filter(~F.coalesce(known, F.lit(False))).count()
        counts |= {NO_PLAN: lost} if lost else {}
    return Tallies(plans, found, Refused(dict(sorted(counts.items()))))


def _tallies(df: DataFrame, plan: Plan, column: str, by: str | None) -> dict[Any, Tally]:
    """The tallies of one plan by group."""
    return _assembled(_amounts(df, plan, column, by).toArrow(), plan)


def _amounts(df: DataFrame, plan: Plan, column: str, by: str | None) -> DataFrame:
    """What stands at every place of the tally of every group."""
    group = F.lit(None).cast("string") if by is None else F.col(by)
    reports = df.select(group.alias("group"), F.col(column).alias("report"))
    mechanism = plan.mechanism
    if isinstance(mechanism, Counted):
        return _by_report(_whole(reports), mechanism.outputs)
    if isinstance(mechanism, Arc) and len(mechanism.cells.base) <= _MOST_CELLS:
        return _by_cell(_whole(reports), mechanism.cells)
    return _in_python(reports, plan)


def _whole(reports: DataFrame) -> DataFrame:
    """The reports as 64-bit integers, if they are whole numbers."""
    kind = reports.schema["report"].dataType
    if not isinstance(kind, T.IntegralType):
        raise InvalidInput("column", f"a column of {kind.simpleString()}", "cast the reports to bigint first")
    return reports.select("group", F.col("report").cast("bigint").alias("report"))


def _beside(report: Column) -> Column:
    """The place of what is not counted."""
    return F.when(report.isNull(), F.lit(_MISSING)).otherwise(F.lit(_FOREIGN)).cast("bigint")


def _by_report(reports: DataFrame, outputs: int) -> DataFrame:
    """How often each report came."""
    y = F.col("report")
    place = F.when((y >= 0) & (y < outputs), y).otherwise(_beside(y))
    return reports.groupBy("group", place.alias("place")).agg(F.count(F.lit(1)).alias("amount"))


def _by_cell(reports: DataFrame, cells: ArcCells) -> DataFrame:
    """Counts and sums of the cells of a circle.

    The high bits of a report name a bucket, and a bucket overlaps few cells: a broadcast hash join and a
    comparison find the one.
    """
    shift, table = cell_table(cells)
    lookup = F.broadcast(reports.sparkSession.createDataFrame(table))
    y = F.col("report")
    inside = (F.col("bucket") == F.shiftright(y, shift)) & (y >= F.col("first")) & (y < F.col("until"))
    place = F.coalesce(F.col("cell"), _beside(y))
    sums = (
        reports.join(lookup, inside, "left")
        .groupBy("group", place.alias("cell"))
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.sum(y.bitwiseAND(F.lit((1 << LIMB) - 1))).alias("low"),
            F.sum(F.shiftright(y, LIMB)).alias("high"),
        )
    )
    width, cell = len(cells.base), F.col("cell")
    rows = [
        F.struct((cell + F.lit(row * width)).alias("place"), F.col(name).alias("amount"))
        for row, name in enumerate(("count", "low", "high"))
    ]
    alone = F.array(F.struct(cell.alias("place"), F.col("count").alias("amount")))
    each = F.explode(F.when(cell >= 0, F.array(*rows)).otherwise(alone)).alias("each")
    return sums.select("group", each).select("group", "each.place", "each.amount")


def cell_table(cells: ArcCells) -> tuple[int, pa.Table]:
    """A shift, and a row for every cell in every bucket `report >> shift`: bucket, first, until, cell.

    >>> from priorveil.mechanisms.arc_line import ArcLine
    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> shift, table = cell_table(ArcCells(toy))
    >>> shift, table.to_pydict()["bucket"], table.to_pydict()["cell"]
    (1, [0, 0, 1, 2, 2, 3, 4], [0, 1, 2, 2, 3, 4, 4])
    """
    first, last = cells.base, cells.line.outputs
    until = np.append(first[1:], last)
    shift = max(0, last.bit_length() - len(first).bit_length())
    low, high = first >> shift, (until - 1) >> shift
    times = high - low + 1
    cell = np.repeat(np.arange(len(first)), times)
    bucket = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times - low, times)
    return shift, pa.table({"bucket": bucket, "first": first[cell], "until": until[cell], "cell": cell})


def _in_python(reports: DataFrame, plan: Plan) -> DataFrame:
    """A tally for every partition, made by Python where the partition is; Spark adds them up."""
    group = reports.schema["group"]
    schema = T.StructType(
        [group, T.StructField("place", T.LongType()), T.StructField("amount", T.LongType())]
    )
    parts = reports.mapInArrow(_counter(plan), schema)
    return parts.groupBy("group", "place").agg(F.sum("amount").alias("amount"))


def _counter(plan: Plan) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kind = pa.string()

        def seen() -> Iterator[pa.RecordBatch]:
            nonlocal kind
            for batch in batches:
                kind = batch.schema.field("group").type
                yield batch

        for (_, group), part in tally_pieces(placed(seen()), {None: plan}, "report", "group").by.items():
            yield amounts_of(part, group, kind)

    return run


def amounts_of(part: Tally, group: Any, kind: pa.DataType) -> pa.RecordBatch:
    """A tally as rows of group, place and amount, without the zeros."""
    counts = part.counts.ravel()
    filled = np.flatnonzero(counts)
    beside = {
        _REPORTS: part.reports,
        _MISSING: part.refused.get(MISSING, 0),
        _FOREIGN: part.refused.get(FOREIGN, 0),
    }
    places = np.concatenate([filled, list(beside)]).astype(np.int64)
    amounts = np.concatenate([counts[filled], list(beside.values())]).astype(np.int64)
    groups = pa.repeat(pa.scalar(group, kind), len(places))
    return pa.RecordBatch.from_arrays(
        [groups, pa.array(places), pa.array(amounts)], ["group", "place", "amount"]
    )


def _assembled(amounts: pa.Table, plan: Plan) -> dict[Any, Tally]:
    """The tallies of all groups from rows of group, place and amount."""
    words = amounts.column("group").combine_chunks().dictionary_encode()
    codes = words.indices.fill_null(len(words.dictionary)).to_numpy(zero_copy_only=False)
    places, numbers = (amounts.column(name).to_numpy() for name in ("place", "amount"))
    names = [*words.dictionary.to_pylist(), None]
    return {
        names[code]: _tally_of(plan, places[codes == code], numbers[codes == code])
        for code in np.unique(codes).tolist()
    }


def _tally_of(plan: Plan, places: npt.NDArray[np.int64], amounts: npt.NDArray[np.int64]) -> Tally:
    empty = empty_tally(plan)
    flat = empty.counts.ravel().copy()
    flat[places[places >= 0]] = amounts[places >= 0]
    counts = flat.reshape(empty.counts.shape)
    said = {place: int(amount) for place, amount in zip(places, amounts, strict=True) if place < 0}
    reports = said.get(_REPORTS, int((counts[0] if counts.ndim == 2 else counts).sum()))
    refused = {MISSING: said.get(_MISSING, 0), FOREIGN: said.get(_FOREIGN, 0)}
    return Tally(plan.id, counts, reports, {reason: n for reason, n in refused.items() if n})
