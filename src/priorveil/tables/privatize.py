"""Privatize a column of a table: replace its values with reports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.device.wire import ID_BYTES
from priorveil.errors import InvalidInput
from priorveil.files.batches import Batch, RowProgress, WantedColumns, batch_rows
from priorveil.files.data_table import DataTable
from priorveil.files.threads import in_threads
from priorveil.frames import pyarrow, take
from priorveil.mechanisms.randomness import GeneratorSource, Source, as_source
from priorveil.priors import Label
from priorveil.tables import write
from priorveil.tables.forms import Plans, TableForms, table_forms
from priorveil.tables.private_columns import PrivateColumns
from priorveil.tables.refusals import NothingWritten, OnRefused, RefusalLog, RefusedRows
from priorveil.tables.reports import REPORT, REPORT_ID
from priorveil.tables.sampling import SampledReports, sample_reports
from priorveil.tables.substitutes import Substitutes


@dataclass(frozen=True)
class Privatized:
    """The outcome of `privatize_table`: the number of reports, the refused rows, the table if it is in memory.

    `substituted` says how many cells were counted as the label for "missing" or "other" values.
    """

    reports: int
    refused: RefusedRows
    table: Any | None = None
    substituted: Mapping[str, int] = field(default_factory=dict)


def privatize_table(
    data: Any,
    plan: Plans,
    column: str | Sequence[str] = (),
    out: str | Path | Any | None = None,
    *,
    keep: Sequence[str] = (),
    cohort: str | None = None,
    missing: Label | None = None,
    other: Label | None = None,
    ids: bool = True,
    rng: np.random.Generator | Source | None = None,
    format: write.Format | None = None,
    replace: bool = False,
    most_refused: float = 0.5,
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
    number, and `on_refused(row, reason)` is called. If they are all the rows, a larger share of them than
    `most_refused`, or there are no rows, nothing is written to `out`: `NothingWritten`.
    `progress(rows, of, share)` is called after each batch.

    With a label for `missing` an empty cell counts as this label, with one for `other` a value that is not among the
    labels, in every column that has the label.

    For a campaign the table has a column for each question, with its name: the code of a choice, for "tick all that
    apply" the codes with blanks between them or a list of them, or a number. Answers to skipped questions do not
    count. `cohort` is a column with the names of cohorts, if there are several. The output has the columns of a
    curator's export: `report_id`, `form` and `report`.

    CSV files need no further library; everything else needs the extra `tables`.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram())
    >>> done = privatize_table({"answer": ["yes", "no", None, "maybe"]}, plan, "answer")
    >>> done.reports, done.refused.rows
    (2, ((2, 'missing'), (3, 'outside the domain')))
    >>> done.table.column_names
    ['report_id', 'plan', 'report']
    """
    if not 0 <= most_refused <= 1:
        raise InvalidInput("most_refused", most_refused, "give a share of the rows, 0 to 1")
    forms = table_forms(plan)
    private = forms.private(column, Substitutes(missing, other))
    kept_names = kept_columns(keep, cohort, forms, private)
    target = Path(out) if isinstance(out, str | os.PathLike) else out
    kind = format or (write.format_of(target) if isinstance(target, Path) else "csv")
    columns = [name for name in (*kept_names, *private.names, cohort) if name is not None]
    table = DataTable(data).open(WantedColumns(tuple(columns)), batch_rows([forms.widest]))
    source, log, count, substituted = as_source(rng), RefusalLog(on_refused), 0, Counter[str]()
    as_text = target is not None and kind == "csv"

    def perturb(batch: Batch) -> tuple[Batch, SampledReports, write.Columns]:
        reports = sample_reports(forms, private, batch, cohort, source)
        id_column = {REPORT_ID: random_ids(len(reports.indices), source)} if ids else {}
        public = {name: take(batch.columns[name], reports.indices) for name in kept_names}
        made_by = {forms.id_column: write.id_column(reports.cohorts, forms.ids, as_text)}
        return batch, reports, {**id_column, **public, **made_by, REPORT: reports.reports}

    def batches() -> Iterator[write.Columns]:
        nonlocal count
        # One thread draws, in the order of the rows, so that a seed gives the same reports and ids.
        for batch, reports, output_columns in in_threads(perturb, table.batches, 1):
            log.add(batch.refused_rows(reports.refused))
            count += len(reports.indices)
            substituted.update(reports.substituted)
            if len(reports.indices):
                yield output_columns
            if progress is not None:
                progress(batch.end, table.rows, table.share())
        refused = log.result()
        too_many = not count or refused.total > most_refused * (refused.total + count)
        if target is not None and too_many:
            raise NothingWritten(refused, count)

    types = {name: table.types[name] for name in kept_names}
    report_type = None if as_text else write.report_type(forms.width)
    schema = None if as_text else write.report_schema(types, ids, forms.id_column, report_type)
    if target is None:
        arrow_batches = (write.to_arrow(batch, schema) for batch in batches())
        in_memory = pyarrow().Table.from_batches(arrow_batches, schema)
        return Privatized(count, log.result(), in_memory, substituted)
    with write.open_output(target, kind, replace) as file:
        if as_text:
            names = [*([REPORT_ID] if ids else []), *kept_names, forms.id_column, REPORT]
            write.write_csv(names, batches(), file)
        else:
            # Columns that cannot be compressed: ids, and reports unless few of them are different.
            random = [REPORT_ID] if forms.has_few_reports else [REPORT_ID, REPORT]
            write.write_arrow(schema, batches(), file, kind, random)
    return Privatized(count, log.result(), substituted=substituted)


def kept_columns(
    keep: Sequence[str], cohort: str | None, forms: TableForms, private: PrivateColumns
) -> list[str]:
    """The columns that are kept next to the reports. A private column never is, and never chooses the form."""
    forms.require_cohort(cohort)
    if cohort in private.names:
        advice = "this column is private: its values would choose the form, which is public"
        raise InvalidInput("cohort", cohort, advice)
    names = list(dict.fromkeys([*keep, *([cohort] if forms.keeps_cohort and cohort is not None else [])]))
    for name in names:
        if name in private.names:
            raise InvalidInput("keep", name, "this column is private: only its report leaves")
        if name in (REPORT, REPORT_ID, forms.id_column):
            raise InvalidInput("keep", name, "this name is used for the reports: rename the column")
    return names


def random_ids(count: int, source: Source) -> npt.NDArray[np.uint8]:
    """Unpredictable ids from the operating system; from the generator in a simulation."""
    draw = source.rng.bytes if isinstance(source, GeneratorSource) else os.urandom
    return np.frombuffer(draw(ID_BYTES * count), dtype=np.uint8).reshape(count, ID_BYTES)
