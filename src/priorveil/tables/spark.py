"""The same on Apache Spark: reports are made and added up where the data is; only tallies travel.

The DataFrame API alone is used, so it works with Spark Connect too. Counting is done by Spark's own
expressions for table and hashing plans (group by the report) and for arc plans (a broadcast join finds the
cell of a report), in one job however many plans there are. Unary reports are rows of bits, which no
expression adds up: there, and for arcs of a huge domain, `mapInArrow` gives a tally per partition, and Spark
adds those up. Workers need priorveil and pyarrow for `mapInArrow` only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, MissingExtra
from priorveil.mechanisms import Arc, Mechanism
from priorveil.mechanisms.arc_cells import LIMB, ArcCells
from priorveil.mechanisms.randomness import SystemSource
from priorveil.mechanisms.reading import Counted
from priorveil.plans import Plan
from priorveil.plans.tally import Tally
from priorveil.priors import Prior
from priorveil.tables.arrow import pa
from priorveil.tables.cohorts import Plans, by_cohort, cohort_codes, require_one_answer
from priorveil.tables.estimating import (
    Method,
    TableEstimate,
    Tallies,
    empty_tally,
    read_tallies,
    tally_pieces,
)
from priorveil.tables.pieces import placed
from priorveil.tables.privatizing import REPORT, REPORT_ID, kept_columns, make_reports, random_ids
from priorveil.tables.refusals import FOREIGN, MISSING, NO_PLAN, Refused
from priorveil.tables.wire import sift

try:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
except ImportError as error:
    raise MissingExtra("pyspark", "spark") from error

Ints = npt.NDArray[np.int64]

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["estimate", "privatize", "refused", "tally"]

REFUSED, REASON = "refused", "reason"

# In a table of amounts by place: places of the tally count from 0, and these stand for what is beside it.
_MISSING, _FOREIGN, _REPORTS, _NO_PLAN = -1, -2, -3, -4
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
    require_one_answer(plans)
    _cohorts(df, cohort)  # refuses what `tally` would
    first = next(iter(plans.values()))
    fields = [T.StructField(REPORT_ID, T.BinaryType())] if ids else []
    fields += [df.schema[name] for name in kept]
    kind = T.BinaryType() if first.mechanism.width else T.LongType()
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
    """Add up a data frame of reports in one job, whose result is no larger than the tallies.

    Refused reports are counted by reason; they have no row numbers, as rows of a data frame have none.
    `refused` gives the rows themselves.
    """
    plans = by_cohort(plan, cohort)
    group = F.lit(None).cast("string") if by is None else F.col(by)
    reports = df.select(group.alias("group"), F.col(column).alias("report"), *_cohorts(df, cohort))
    return _assembled(_amounts(reports, plans), plans)


def refused(df: DataFrame, plan: Plans, *, column: str = REPORT, cohort: str | None = None) -> DataFrame:
    """The rows that `tally` leaves out, with the reason in the column `reason`: to count, to see, to keep."""
    plans = by_cohort(plan, cohort)
    _cohorts(df, cohort)  # refuses what `tally` would
    if REASON in df.columns:
        raise InvalidInput(
            "df", f"a column {REASON!r}", "this name is taken by what is made: rename the column"
        )

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield refused_rows(batch, plans, column, cohort)

    return df.mapInArrow(run, T.StructType([*df.schema.fields, T.StructField(REASON, T.StringType())]))


def refused_rows(
    batch: pa.RecordBatch, plans: Mapping[Any, Plan], column: str, cohort: str | None
) -> pa.RecordBatch:
    """The rows of a batch that are not counted, and why.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior([0.5, 0.5]), 1.0, pv.Histogram())
    >>> refused_rows(pa.record_batch({"report": [0, None, 7]}), {None: plan}, "report", None).to_pylist()
    [{'report': None, 'reason': 'missing'}, {'report': 7, 'reason': 'foreign'}]
    """
    reasons = np.full(batch.num_rows, None, dtype=object)
    codes = np.zeros(batch.num_rows, dtype=np.int64)
    if cohort is not None:
        codes = cohort_codes(batch.column(cohort), plans)
        reasons[codes < 0] = NO_PLAN
    for number, plan in enumerate(plans.values()):
        own = np.flatnonzero(codes == number)
        for reason, places in sift(plan.mechanism, batch.column(column).take(pa.array(own))).refused.items():
            reasons[own[places]] = reason
    rows = np.flatnonzero(reasons.astype(bool))
    return batch.take(pa.array(rows)).append_column(REASON, pa.array(reasons[rows].tolist(), pa.string()))


def _cohorts(df: DataFrame, cohort: str | None) -> list[Column]:
    """The column of cohorts as Python writes them, which is how plans are chosen everywhere; or nothing."""
    if cohort is None:
        return []
    kind = df.schema[cohort].dataType
    if not isinstance(kind, T.StringType | T.IntegralType | T.DateType | T.BooleanType):
        raise InvalidInput("cohort", f"a column of {kind.simpleString()}", "cast the cohorts to string first")
    name = F.col(cohort).cast("string")
    return [(F.initcap(name) if isinstance(kind, T.BooleanType) else name).alias("cohort")]


# -- counting ----------------------------------------------------------------------------------------------


def _amounts(reports: DataFrame, plans: Mapping[Any, Plan]) -> DataFrame:
    """What stands at every place of the tally of every plan (by its number) and group.

    Counted by expressions, a place of an arc plan has a count and two sums; in Python there is a row for each.
    """
    mechanisms = [plan.mechanism for plan in plans.values()]
    cells = sum(len(one.cells.base) for one in mechanisms if isinstance(one, Arc))
    if cells > _MOST_CELLS or not all(isinstance(one, Counted | Arc) for one in mechanisms):
        return _in_python(reports, plans)
    return _by_place(_chosen(_whole(reports), plans), mechanisms)


def _whole(reports: DataFrame) -> DataFrame:
    """The reports as 64-bit integers, if they are whole numbers."""
    kind = reports.schema["report"].dataType
    if not isinstance(kind, T.IntegralType):
        raise InvalidInput("column", f"a column of {kind.simpleString()}", "cast the reports to bigint first")
    return reports.withColumn("report", F.col("report").cast("bigint"))


def _chosen(reports: DataFrame, plans: Mapping[Any, Plan]) -> DataFrame:
    """The reports, each with the number of its plan, the outputs of a counted one and the shift of an arc one."""
    mechanisms = [plan.mechanism for plan in plans.values()]
    rows = [
        (
            number,
            one.outputs if isinstance(one, Counted) else None,
            bucket_shift(one.cells) if isinstance(one, Arc) else None,
        )
        for number, one in enumerate(mechanisms)
    ]
    kinds = {"plan": "bigint", "outputs": "bigint", "shift": "int"}
    if "cohort" not in reports.columns:
        given = zip(kinds, rows[0], strict=True)
        return reports.withColumns({name: F.lit(value).cast(kinds[name]) for name, value in given})
    named = [(str(key), *row) for key, row in zip(plans, rows, strict=True)]
    schema = ", ".join(f"{name} {kind}" for name, kind in {"named": "string", **kinds}.items())
    lookup = F.broadcast(reports.sparkSession.createDataFrame(named, schema))
    return reports.join(lookup, F.col("cohort") == F.col("named"), "left")


def _by_place(reports: DataFrame, mechanisms: Sequence[Mechanism]) -> DataFrame:
    """How often each report came, or for arcs, counts and sums of the cells of a circle.

    The high bits of an arc report name a bucket, and a bucket overlaps few cells: a broadcast hash join and a
    comparison find the one.
    """
    y, plan = F.col("report"), F.col("plan")
    arcs = {number: one.cells for number, one in enumerate(mechanisms) if isinstance(one, Arc)}
    sums, cell = [F.count(F.lit(1)).alias("amount")], F.lit(None).cast("bigint")
    if arcs:
        lookup = F.broadcast(reports.sparkSession.createDataFrame(_cell_tables(arcs)))
        same = (plan == F.col("of")) & (F.expr("shiftright(report, shift)") == F.col("bucket"))
        reports = reports.join(lookup, same & (y >= F.col("first")) & (y < F.col("until")), "left")
        cell = F.col("cell")
        known = F.when(cell.isNotNull(), y)
        sums += [
            F.sum(known.bitwiseAND(F.lit((1 << LIMB) - 1))).alias("low"),
            F.sum(F.shiftright(known, LIMB)).alias("high"),
        ]
    place = (
        F.when(plan.isNull(), F.lit(_NO_PLAN).cast("bigint"))
        .when(y.isNull(), F.lit(_MISSING).cast("bigint"))
        .when((y >= 0) & (y < F.col("outputs")), y)
        .otherwise(F.coalesce(cell, F.lit(_FOREIGN).cast("bigint")))
    )
    return reports.groupBy("plan", "group", place.alias("place")).agg(*sums)


def _cell_tables(arcs: Mapping[int, ArcCells]) -> pa.Table:
    """The cells of several circles; `of` says whose they are."""
    tables = {number: cell_table(cells) for number, cells in arcs.items()}
    named = [
        table.append_column("of", pa.repeat(pa.scalar(number, pa.int64()), table.num_rows))
        for number, table in tables.items()
    ]
    return pa.concat_tables(named)


def bucket_shift(cells: ArcCells) -> int:
    """How far a report is shifted to name its bucket: there are about as many buckets as cells."""
    return max(0, cells.line.outputs.bit_length() - len(cells.base).bit_length())


def cell_table(cells: ArcCells) -> pa.Table:
    """A row for every cell in every bucket `report >> bucket_shift`: bucket, first, until, cell.

    >>> from priorveil.mechanisms.arc_line import ArcLine
    >>> toy = ArcLine(lengths=[8, 4, 4], order=[0, 1, 2], heavy=1, start=8, window=3, keep=2**63, bits=4)
    >>> table = cell_table(ArcCells(toy)).to_pydict()
    >>> bucket_shift(ArcCells(toy)), table["bucket"], table["cell"]
    (1, [0, 0, 1, 2, 2, 3, 4], [0, 1, 2, 2, 3, 4, 4])
    """
    first, last, shift = cells.base, cells.line.outputs, bucket_shift(cells)
    until = np.append(first[1:], last)
    low, high = first >> shift, (until - 1) >> shift
    times = high - low + 1
    cell = np.repeat(np.arange(len(first)), times)
    bucket = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times - low, times)
    return pa.table({"bucket": bucket, "first": first[cell], "until": until[cell], "cell": cell})


def _in_python(reports: DataFrame, plans: Mapping[Any, Plan]) -> DataFrame:
    """Tallies for every partition, made by Python where the partition is; Spark adds them up."""
    whole = [T.StructField(name, T.LongType()) for name in ("plan", "place", "amount")]
    schema = T.StructType([reports.schema["group"], *whole])
    parts = reports.mapInArrow(_counter(plans, "cohort" if "cohort" in reports.columns else None), schema)
    return parts.groupBy("plan", "group", "place").agg(F.sum("amount").alias("amount"))


def _counter(
    plans: Mapping[Any, Plan], cohort: str | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kind = pa.string()

        def seen() -> Iterator[pa.RecordBatch]:
            nonlocal kind
            for batch in batches:
                kind = batch.schema.field("group").type
                yield batch

        yield from amounts_of(tally_pieces(placed(seen()), plans, "report", "group", cohort), lambda: kind)

    return run


def amounts_of(tallies: Tallies, kind: Callable[[], pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Tallies as rows of group, plan, place and amount, without the zeros; `kind` is the type of groups."""
    numbers = {key: number for number, key in enumerate(tallies.plans)}
    for (key, group), part in tallies.by.items():
        counts = part.counts.ravel()
        filled = np.flatnonzero(counts)
        beside = {
            _REPORTS: part.reports,
            _MISSING: part.refused.get(MISSING, 0),
            _FOREIGN: part.refused.get(FOREIGN, 0),
        }
        places = np.concatenate([filled, list(beside)])
        amounts = np.concatenate([counts[filled], list(beside.values())])
        yield _rows(kind(), group, numbers[key], places, amounts)
    lost = tallies.refused.counts.get(NO_PLAN, 0)
    if lost:
        yield _rows(kind(), None, None, np.array([_NO_PLAN]), np.array([lost]))


def _rows(kind: pa.DataType, group: Any, plan: int | None, places: Ints, amounts: Ints) -> pa.RecordBatch:
    columns = {
        "group": pa.repeat(pa.scalar(group, kind), len(places)),
        "plan": pa.repeat(pa.scalar(plan, pa.int64()), len(places)),
        "place": pa.array(places, pa.int64()),
        "amount": pa.array(amounts, pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


# -- what comes back ---------------------------------------------------------------------------------------


def _assembled(amounts: DataFrame, plans: Mapping[Any, Plan]) -> Tallies:
    """The tallies of all plans and groups from what stands at their places."""
    table = amounts.toArrow()
    words = table["group"].combine_chunks().dictionary_encode()
    names = [*words.dictionary.to_pylist(), None]
    groups = words.indices.cast(pa.int64()).fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
    numbers = table["plan"].fill_null(-1).to_numpy()
    found: dict[tuple[Any, Any], Tally] = {}
    counts: Counter[str] = Counter()
    keys = numbers * len(names) + groups
    order = np.argsort(keys, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        if rows.size and numbers[rows[0]] < 0:
            counts[NO_PLAN] += int(table["amount"].take(pa.array(rows)).to_numpy().sum())
        elif rows.size:
            key = list(plans)[numbers[rows[0]]]
            part = _tally_of(plans[key], table.take(pa.array(rows)))
            found[key, names[groups[rows[0]]]] = part
            counts.update(part.refused)
    return Tallies(dict(plans), found, Refused(dict(sorted(counts.items()))))


def _tally_of(plan: Plan, table: pa.Table) -> Tally:
    """The tally of one plan and group."""
    empty = empty_tally(plan)
    flat = empty.counts.ravel().copy()
    places, amounts = table["place"].to_numpy(), table["amount"].to_numpy()
    inside = places >= 0
    flat[places[inside]] = amounts[inside]
    if isinstance(plan.mechanism, Arc) and "low" in table.column_names:
        for row, name in ((1, "low"), (2, "high")):
            sums = table[name].fill_null(0).to_numpy()
            flat[places[inside] + row * empty.counts.shape[1]] = sums[inside]
    counts = flat.reshape(empty.counts.shape)
    said = dict(zip(places[~inside].tolist(), amounts[~inside].tolist(), strict=True))
    reports = said.get(_REPORTS, int((counts[0] if counts.ndim == 2 else counts).sum()))
    reasons = {MISSING: said.get(_MISSING, 0), FOREIGN: said.get(_FOREIGN, 0)}
    return Tally(plan.id, counts, reports, {reason: n for reason, n in reasons.items() if n})
