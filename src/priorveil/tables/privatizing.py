"""A column of values in, a column of reports out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from priorveil.errors import InvalidInput
from priorveil.mechanisms.randomness import GeneratorSource, Source, as_source
from priorveil.mechanisms.reading import Counted
from priorveil.plans import Plan
from priorveil.tables.arrow import pa
from priorveil.tables.cohorts import Plans, batch_rows, by_cohort, cohort_codes, require_one_answer
from priorveil.tables.columns import ABSENT, FOREIGN, value_codes
from priorveil.tables.pieces import PLAN_KEY, Opened, Piece
from priorveil.tables.refusals import (
    BROKEN,
    MISSING,
    NO_PLAN,
    OUTSIDE,
    Book,
    Places,
    Refused,
    StrictlyRefused,
)
from priorveil.tables.sinks import Format, format_of, write_table
from priorveil.tables.sources import open_table
from priorveil.tables.threads import one_ahead
from priorveil.tables.wire import binary_column, report_column, report_type

Progress = Callable[[int, int | None, float | None], None]

REPORT, REPORT_ID = "report", "report_id"

_ID_BYTES = 16
_FEW = 1 << 15


@dataclass(frozen=True)
class Privatized:
    """What became of a table: how many reports, what was refused, and the reports if kept in memory."""

    reports: int
    refused: Refused
    table: pa.Table | None = None


def privatize_table(
    data: Any,
    plan: Plans,
    column: str,
    out: str | Path | Any | None = None,
    *,
    keep: Sequence[str] = (),
    cohort: str | None = None,
    ids: bool = True,
    rng: np.random.Generator | Source | None = None,
    format: Format | None = None,
    replace: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
    on_refused: Callable[[int, str], None] | None = None,
) -> Privatized:
    """Perturb one column of a table of any size: a report, with an id of its own, for every row.

    `data` is a path (a file, a folder, a pattern), an open file, a pyarrow, pandas or polars table, a DuckDB
    relation, or a mapping of columns. `out` is a path (written whole or not at all) or an open file; without
    it the reports come back as a table. Other columns stay behind, except those in `keep` and the public
    column `cohort`, whose values choose among several plans, `{value: plan}`. A row whose value is missing or
    outside the domain is refused: counted, and listed by number; `on_refused(row, reason)` hears of each.
    With `strict` nothing is written if any row is refused. `progress(rows, of, share)` hears how far it is.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram())
    >>> done = privatize_table({"answer": ["yes", "no", None, "maybe"]}, plan, "answer")
    >>> done.reports, done.refused.rows
    (2, ((2, 'missing'), (3, 'outside the domain')))
    >>> done.table.column_names
    ['report_id', 'report']
    """
    book, plans = Book(on_refused), by_cohort(plan, cohort)
    require_one_answer(plans)
    kept = kept_columns(keep, column, cohort)
    work = _Work(plans, column, cohort, kept, ids, strict, as_source(rng), book)
    opened = open_table(
        data, [*kept, column], batch_rows(plans), lambda row: book.enter(BROKEN, np.array([row]))
    )
    schema, batches = _schema(work, opened), _batches(work, opened, progress)
    if out is None:
        table = pa.Table.from_batches(batches, schema)
        return Privatized(table.num_rows, book.closed(), table)
    target = Path(out) if isinstance(out, str | os.PathLike) else out
    kind = format or (format_of(target) if isinstance(target, Path) else "csv")
    write_table(schema, batches, target, kind, replace, noise=_noise(plans))
    return Privatized(work.made, book.closed())


@dataclass(eq=False)
class _Work:
    """What is to be done with every piece, and how many reports it made."""

    plans: Mapping[Any, Plan]
    column: str
    cohort: str | None
    kept: list[str]
    ids: bool
    strict: bool
    source: Source
    book: Book
    made: int = field(default=0)


def kept_columns(keep: Sequence[str], column: str, cohort: str | None) -> list[str]:
    """The columns that go along. The private one never does."""
    names = list(dict.fromkeys([*keep, *([] if cohort is None else [cohort])]))
    for name in names:
        if name == column:
            raise InvalidInput("keep", name, "this column is private: only its report leaves")
        if name in (REPORT, REPORT_ID):
            raise InvalidInput("keep", name, "this name is taken by what is made: rename the column")
    return names


def _schema(work: _Work, opened: Opened) -> pa.Schema:
    first = next(iter(work.plans.values()))
    fields = [pa.field(REPORT_ID, pa.binary(_ID_BYTES))] if work.ids else []
    fields += [opened.schema.field(name).remove_metadata() for name in work.kept]
    fields.append(pa.field(REPORT, report_type(first.mechanism)))
    made_by = " ".join(sorted(plan.id for plan in work.plans.values()))
    return pa.schema(fields, metadata={PLAN_KEY: made_by.encode()})


def _noise(plans: Mapping[Any, Plan]) -> list[str]:
    """The columns that no packing makes smaller: ids, and reports unless few of them are different."""
    few = all(isinstance(p.mechanism, Counted) and p.mechanism.outputs < _FEW for p in plans.values())
    return [REPORT_ID] if few else [REPORT_ID, REPORT]


def _batches(work: _Work, opened: Opened, progress: Progress | None) -> Iterator[pa.RecordBatch]:
    seen = 0
    schema = _schema(work, opened)
    # One thread draws, in the order of the rows, so that a seed gives the same reports; meanwhile others are written.
    for made in one_ahead(lambda piece: _privatized(work, piece, opened.text, schema), opened.pieces):
        for reason, numbers in made.refused:
            work.book.enter(reason, numbers)
        batch = made.batch
        work.made += batch.num_rows
        seen += made.rows
        if batch.num_rows:
            yield batch
        if progress is not None:
            progress(seen, opened.rows, opened.share())
    if work.strict and (refused := work.book.closed()).total:
        raise StrictlyRefused(refused)


class _Piece(NamedTuple):
    """What became of a piece of so many rows; those that are refused by their numbers."""

    rows: int
    batch: pa.RecordBatch
    refused: list[tuple[str, Places]]


def _privatized(work: _Work, piece: Piece, text: bool, schema: pa.Schema) -> _Piece:
    """The reports of a piece with what goes along, without the rows that are refused."""
    rows = piece.batch
    cohort = None if work.cohort is None else rows.column(work.cohort)
    made = make_reports(rows.column(work.column), cohort, work.plans, work.source, text)
    going = rows.select(work.kept)
    if len(made.places) < rows.num_rows:
        going = going.take(pa.array(made.places))
    ids = [random_ids(len(made.places), work.source)] if work.ids else []
    columns = [_as_first(going.column(name), schema.field(name)) for name in work.kept]
    batch = pa.RecordBatch.from_arrays([*ids, *columns, made.reports], schema=schema)
    refused = [(reason, piece.numbers(places)) for reason, places in made.refused.items()]
    return _Piece(rows.num_rows, batch, refused)


def _as_first(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column that goes along, of the type that it has in the first file."""
    try:
        return column.cast(field.type)
    except pa.ArrowException:
        kinds = f"of {column.type} here and of {field.type} in the first file"
        raise InvalidInput("keep", field.name, f"this column is {kinds}: give it one type") from None


@dataclass(frozen=True, eq=False)
class Made:
    """Reports, the rows that they are for, and the other rows by the reason of their refusal."""

    reports: pa.Array
    places: Places
    refused: dict[str, Places]


def make_reports(
    values: pa.Array, cohort: pa.Array | None, plans: Mapping[Any, Plan], source: Source, text: bool = False
) -> Made:
    """The reports of a column of values, each by the plan of its cohort.

    Where plans have their labels in different orders, no number is a code: it would not be the same label for all.
    """
    numbered = len({plan.labels for plan in plans.values()}) == 1
    own_plan = np.zeros(len(values), dtype=np.int64) if cohort is None else cohort_codes(cohort, plans)
    refused = [(NO_PLAN, np.flatnonzero(own_plan == FOREIGN))]
    places, reports = [], []
    for number, plan in enumerate(plans.values()):
        own = np.flatnonzero(own_plan == number)
        part = values if len(own) == len(values) else values.take(pa.array(own))
        codes = value_codes(part, plan.labels, text, numbered)
        refused += [(MISSING, own[codes == ABSENT]), (OUTSIDE, own[codes == FOREIGN])]
        places.append(own[codes >= 0])
        reports.append(plan.mechanism.sample(codes[codes >= 0], source))
    order = np.argsort(np.concatenate(places), kind="stable") if len(places) > 1 else slice(None)
    column = report_column(next(iter(plans.values())).mechanism, np.concatenate(reports)[order])
    return Made(column, np.concatenate(places)[order], _together(refused))


def _together(refused: Sequence[tuple[str, Places]]) -> dict[str, Places]:
    """Rows by reason, without reasons that nothing was refused for."""
    reasons = dict.fromkeys(reason for reason, rows in refused if rows.size)
    return {why: np.sort(np.concatenate([rows for r, rows in refused if r == why])) for why in reasons}


def random_ids(count: int, source: Source) -> pa.Array:
    """Ids that nobody can foresee, from the operating system; from the generator in a simulation."""
    draw = source.rng.bytes if isinstance(source, GeneratorSource) else os.urandom
    drawn = draw(_ID_BYTES * count)
    return binary_column(np.frombuffer(drawn, dtype=np.uint8).reshape(count, _ID_BYTES))
