"""Privatize a column of a table: replace its values with reports."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.errors import NOT_SHOWN, Hint, InvalidInput
from priorveil.frames import Indices, pyarrow, take
from priorveil.mechanisms.randomness import GeneratorSource, Source, as_source
from priorveil.plans import Plan
from priorveil.priors.domain import MISSING, OUTSIDE, Codes
from priorveil.tables import write
from priorveil.tables.batches import Batch, batch_rows
from priorveil.tables.cohorts import Plans, cohort_codes, plans_by_cohort
from priorveil.tables.read import RowProgress, in_threads, open_table
from priorveil.tables.refusals import (
    MISSING_ENTRY,
    NO_PLAN,
    NothingWritten,
    OnRefused,
    RefusalLog,
    RefusedRows,
)
from priorveil.tables.reports import ID_BYTES, PLAN, REPORT, REPORT_ID

_FEW_REPORTS = 1 << 15  # different ones; a dictionary makes these smaller


@dataclass(frozen=True)
class Privatized:
    """The outcome of `privatize_table`: the number of reports, the refused rows, the table if it is in memory."""

    reports: int
    refused: RefusedRows
    table: Any | None = None


def privatize_table(
    data: Any,
    plan: Plans,
    column: str | Sequence[str] = (),
    out: str | Path | Any | None = None,
    *,
    keep: Sequence[str] = (),
    cohort: str | None = None,
    ids: bool = True,
    rng: np.random.Generator | Source | None = None,
    format: write.Format | None = None,
    replace: bool = False,
    strict: bool = False,
    progress: RowProgress | None = None,
    on_refused: OnRefused | None = None,
) -> Privatized:
    """Perturb a column of a table of any size: every row gets a report, with an id of its own and the plan's id.

    `data` is a path (a file, a folder, a pattern), a list of paths, an open file, a pyarrow, pandas or polars table, a
    DuckDB relation, or a mapping of columns. For a plan on several attributes `column` is a list with a column for
    each, in their order or with their names; without it, the columns that have their names are taken. `out` is a path
    or an open file; without it the reports are returned as an Arrow table. A file appears when all of it is written.
    Other columns are left out, except those in `keep` and the public column `cohort`, whose values choose among several
    plans, `{value: plan}`. A row whose value is missing or outside the domain is refused: it is counted and listed by
    number, and `on_refused(row, reason)` is called. If every row is refused, or with `strict` any row, nothing is
    written: `NothingWritten`.
    `progress(rows, of, share)` is called after each batch.

    CSV files need no further library; everything else needs the extra `tables`.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram())
    >>> done = privatize_table({"answer": ["yes", "no", None, "maybe"]}, plan, "answer")
    >>> done.reports, done.refused.rows
    (2, ((2, 'missing'), (3, 'outside the domain')))
    >>> done.table.column_names
    ['report_id', 'plan', 'report']
    """
    plans = plans_by_cohort(plan, cohort)
    private = private_columns(column, plans)
    kept = kept_columns(keep, private, cohort)
    target = Path(out) if isinstance(out, str | os.PathLike) else out
    kind = format or (write.format_of(target) if isinstance(target, Path) else "csv")
    table = open_table(data, [*kept, *private], batch_rows(plans))
    source, log, count = as_source(rng), RefusalLog(on_refused), 0
    as_text = target is not None and kind == "csv"

    def perturb(batch: Batch) -> tuple[Batch, Reports, write.Columns]:
        reports = make_reports(batch, private, cohort, plans, source)
        id_column = {REPORT_ID: random_ids(len(reports.indices), source)} if ids else {}
        public = {name: take(batch.columns[name], reports.indices) for name in kept}
        plan_ids = write.plan_column(reports.plans, plans.values(), as_text)
        return batch, reports, {**id_column, **public, PLAN: plan_ids, REPORT: reports.reports}

    def batches() -> Iterator[write.Columns]:
        nonlocal count
        # One thread draws, in the order of the rows, so that a seed gives the same reports and ids.
        for batch, reports, output_columns in in_threads(perturb, table.batches, 1):
            log.add(batch.refused_rows(reports.refused))
            count += len(reports.indices)
            if len(reports.indices):
                yield output_columns
            if progress is not None:
                progress(batch.end, table.rows, table.share())
        refused = log.result()
        if refused.total and (strict or (not count and target is not None)):
            raise NothingWritten(refused)

    types = {name: table.types[name] for name in kept}
    schema = None if as_text else write.report_schema(types, ids, plans.values())
    if target is None:
        arrow_batches = (write.to_arrow(batch, schema) for batch in batches())
        in_memory = pyarrow().Table.from_batches(arrow_batches, schema)
        return Privatized(count, log.result(), in_memory)
    with write.open_output(target, kind, replace, whole=strict) as file:
        if as_text:
            write.write_csv([*([REPORT_ID] if ids else []), *kept, PLAN, REPORT], batches(), file)
        else:
            # Columns that cannot be compressed: ids, and reports unless few of them are different.
            different = max(plan.mechanism.outputs or _FEW_REPORTS for plan in plans.values())
            random = [REPORT_ID] if different < _FEW_REPORTS else [REPORT_ID, REPORT]
            write.write_arrow(schema, batches(), file, kind, random)
    return Privatized(count, log.result())


def private_columns(column: str | Sequence[str], plans: Mapping[Any, Plan]) -> list[str]:
    """The private columns, one for each attribute of the plans: by name if they have its names, or in its order.

    None at all stand for those that have its names.
    """
    columns = [column] if isinstance(column, str) else list(column)
    attributes = {plan.reference.names for plan in plans.values()}
    names = attributes.pop()
    if attributes:
        advice = "the plans differ in their attributes or in the order of them: use the same for all"
        raise InvalidInput("plan", NOT_SHOWN, advice)
    if not columns:
        if names is None:
            raise InvalidInput("column", NOT_SHOWN, "the plan is for one attribute", Hint("column", "NAME"))
        return list(names)
    if len(columns) != (1 if names is None else len(names)):
        purpose = "one attribute" if names is None else ", ".join(names)
        raise InvalidInput("column", columns, f"the plan is for {purpose}: give a column for each")
    if names is None or set(names) == set(columns):
        return columns if names is None else list(names)
    for name, given in zip(names, columns, strict=True):
        if given != name and given in names:
            advice = f"{given!r} is in the place of {name}: give the columns in the order {', '.join(names)}"
            raise InvalidInput("column", columns, advice)
    return columns


def kept_columns(keep: Sequence[str], private: Sequence[str], cohort: str | None) -> list[str]:
    """The columns that are kept next to the reports. A private column never is."""
    names = list(dict.fromkeys([*keep, *([] if cohort is None else [cohort])]))
    for name in names:
        if name in private:
            raise InvalidInput("keep", name, "this column is private: only its report leaves")
        if name in (REPORT, REPORT_ID, PLAN):
            raise InvalidInput("keep", name, "this name is used for the reports: rename the column")
    return names


@dataclass(frozen=True, eq=False)
class Reports:
    """Reports with their rows and the numbers of their plans, and the indices of the refused rows by reason."""

    reports: npt.NDArray[Any]
    indices: Indices
    plans: Codes
    refused: dict[str, Indices]


def make_reports(
    batch: Batch, private: Sequence[str], cohort: str | None, plans: Mapping[Any, Plan], source: Source
) -> Reports:
    """The reports of the values in one or several columns. The column `cohort` chooses the plan of each row."""
    values, plan_codes = [batch.columns[name] for name in private], cohort_codes(batch, cohort, plans)
    reports = next(iter(plans.values())).mechanism.new_reports(batch.rows)
    codes, reasons = plan_codes.copy(), np.full(batch.rows, None, dtype=object)
    for number, plan in enumerate(plans.values()):
        rows = np.flatnonzero(plan_codes == number)
        codes[rows] = plan.domain.encode([take(column, rows) for column in values], source.words)
        outside, inside = rows[codes[rows] == OUTSIDE], rows[codes[rows] >= 0]
        if len(outside):
            reasons[outside] = plan.domain.reasons([take(column, outside) for column in values])
        reports[inside] = plan.mechanism.sample(codes[inside], source)
    reasons[plan_codes == OUTSIDE] = NO_PLAN
    reasons[codes == MISSING] = MISSING_ENTRY
    accepted_rows, refused_rows = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    indices = {reason: refused_rows[reasons[refused_rows] == reason] for reason in set(reasons[refused_rows])}
    return Reports(reports[accepted_rows], accepted_rows, plan_codes[accepted_rows], indices)


def random_ids(count: int, source: Source) -> npt.NDArray[np.uint8]:
    """Unpredictable ids from the operating system; from the generator in a simulation."""
    draw = source.rng.bytes if isinstance(source, GeneratorSource) else os.urandom
    return np.frombuffer(draw(ID_BYTES * count), dtype=np.uint8).reshape(count, ID_BYTES)
