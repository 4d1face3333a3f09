"""Samples in tables: reports with their weights, strata and clusters, and tables of scores for other software.

Reports are read in batches, each once; a sample that is estimated is held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Mask
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.files.batches import Batch, OpenTable, RowProgress, WantedColumns, batch_rows
from priorveil.files.data_table import DataTable
from priorveil.formatting import read_number
from priorveil.frames import Column, distinct, pyarrow
from priorveil.plans import Plan
from priorveil.priors.label_texts import label_text
from priorveil.statistics.samples import SampleEstimate
from priorveil.tables import write
from priorveil.tables.counting import lacking_columns, other_form, report_counter
from priorveil.tables.forms import table_forms
from priorveil.tables.refusals import OnRefused, RefusalLog, RefusedRows
from priorveil.tables.repeats import IdSpool, repeated_rows
from priorveil.tables.reports import REPORT, REPORT_ID

_ScoredRows = tuple[Batch, npt.NDArray[Any]]  # rows with a report of the plan, and these reports


@dataclass(frozen=True)
class EveryColumn(WantedColumns):
    """All columns of a table, which must have `columns`."""

    def select(self, names: Sequence[str]) -> list[str]:
        """All names, each of which exists once."""
        return WantedColumns(tuple(dict.fromkeys([*self.columns, *names]))).select(names)

    def without(self, names: Collection[str]) -> EveryColumn:
        """All but these columns."""
        return EveryColumn(super().without(names).columns)

    def __contains__(self, name: str) -> bool:
        return True


@dataclass(eq=False)
class SampleReader:
    """Reads the rows of a sample: the reports of a plan in a `column`, beside public columns.

    Foreign and missing reports are refused, and a row that repeats an earlier id is left out. After the last row,
    `refused`, `repeated` and `without_id` say how many these were. `estimate` is what was found, if anything was.
    """

    data: Any
    plan: Plan
    column: str = REPORT
    assume_plan: bool = False
    progress: RowProgress | None = None
    on_refused: OnRefused | None = None
    types: Mapping[str, Any] = field(default_factory=dict)  # of the columns, for Arrow; None for text
    refused: RefusedRows = field(default_factory=RefusedRows)
    reports: int = 0
    repeated: int = 0
    without_id: int = 0
    estimate: SampleEstimate | None = None

    def rows(self, wanted: Sequence[str], every: bool = False) -> Iterator[_ScoredRows]:
        """The rows in batches, with the wanted columns, or with all of them."""
        forms, source = table_forms(self.plan), DataTable(self.data)
        counter = report_counter(forms, self.column, None, None, self.assume_plan)
        needed = tuple(dict.fromkeys([*counter.columns, *wanted]))
        columns = EveryColumn(needed) if every else WantedColumns(needed, (REPORT_ID,))
        size = batch_rows([forms.widest, len(self.plan.query.statistic_labels(self.plan.labels))])
        open_again = partial(source.open, columns, size, again=True)
        with lacking_columns(counter):
            table = open_again()
        is_repeat, table = self._repeats(table, open_again, counter.columns), open_again()
        self.types, log = table.types, RefusalLog(self.on_refused)
        format = next(iter(forms.formats.values()))
        for batch in table.batches:
            refused = counter.refused_indices(batch)
            if counter.others:
                raise other_form(min(counter.others), forms)
            log.add(batch.refused_rows(refused))
            chosen = np.ones(batch.rows, dtype=bool)
            for indices in refused.values():
                chosen[indices] = False
            if is_repeat is not None:
                repeats = chosen & is_repeat[batch.row_numbers]
                self.repeated, chosen = self.repeated + int(repeats.sum()), chosen & ~repeats
            own = batch.take(np.flatnonzero(chosen))
            self.reports += own.rows
            if own.rows:
                yield own, format.write(format.read(own.columns[self.column])[0])
            if self.progress is not None:
                self.progress(batch.end, table.rows, table.share())
        self.refused = log.result()

    def _repeats(
        self, table: OpenTable, open_again: Callable[[], OpenTable], columns: Sequence[str]
    ) -> Mask | None:
        """Which rows repeat an earlier one; None if none do."""
        ids = IdSpool()
        for _ in ids.watch(table.batches):
            pass
        self.without_id, flags = ids.without_id, ids.repeated_keys()
        if flags is None:
            return None
        again = open_again()
        return repeated_rows(again.batches, flags, columns, again.place)


def estimate_sample_table(
    reader: SampleReader,
    *,
    weights: str | None = None,
    strata: str | None = None,
    clusters: str | None = None,
    population: float | str | None = None,
) -> SampleEstimate:
    """The estimate of a plan from a table of a sample, by the names of its public columns.

    `population` is a number, or a column with the size of each row's stratum.

    >>> import priorveil as pv
    >>> plan = pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Distribution())
    >>> table = {"report": [0, 1, 0, 1], "plan": [plan.id] * 4, "w": [1, 1, 2, 2]}
    >>> estimate_sample_table(SampleReader(table, plan), weights="w").values.round(3).tolist()
    [0.5, 0.5]
    """
    of_sizes = population if isinstance(population, str) else None
    names = {"weights": weights, "strata": strata, "clusters": clusters, "population": of_sizes}
    batches = list(reader.rows([name for name in names.values() if name is not None]))
    entries = {
        argument: [entry for batch, _ in batches for entry in _entries(batch.columns[name])]
        for argument, name in names.items()
        if name is not None
    }
    empty = reader.plan.mechanism.new_reports()
    reports = np.concatenate([part for _, part in batches]) if batches else empty
    given: Any = population
    if of_sizes is not None:
        given = _sizes(_numbers("population", entries["population"]), entries.get("strata"))
    return reader.plan.estimate_sample(
        reports,
        _numbers("weights", entries["weights"]) if weights is not None else None,
        entries.get("strata"),
        entries.get("clusters"),
        given,
    )


def write_scores(reader: SampleReader, out: Path) -> None:
    """Write a table with the columns that are not reports, and for each statistic `score_` and `noise_` columns.

    A `score` is what the report says about the statistic of the person, without bias; `noise` is unbiased for the
    variance of the score given the person's value. The file is CSV, Parquet or Arrow, by the ending of its name.
    """
    plan, kind = reader.plan, write.format_of(out)
    labels = [label_text(label) for label in plan.query.statistic_labels(plan.labels)]
    heads = [f"{what}_{label}" for label in labels for what in ("score", "noise")]
    rows = reader.rows((), every=True)
    first = next(rows, None)
    if first is None:
        raise InvalidInput("reports", NOT_SHOWN, "there is no report of this plan to score")
    left_out = (reader.column, *(() if reader.assume_plan else (table_forms(plan).id_column,)))
    names = [name for name in reader.types if name not in left_out]
    if taken := sorted({*names} & {*heads}):
        raise InvalidInput("data", NOT_SHOWN, f"it has a column {taken[0]}, which scores need: rename it")

    def batches() -> Iterator[write.Columns]:
        for batch, reports in (first, *rows):
            noise = plan.score_noise(reports)
            pairs = np.stack([noise.scores, noise.each()], axis=2).reshape(len(reports), -1)
            yield {
                **{name: batch.columns[name] for name in names},
                **dict(zip(heads, np.ascontiguousarray(pairs.T), strict=True)),
            }

    with write.open_output(out, kind, replace=True) as file:
        if kind == "csv":
            write.write_csv([*names, *heads], batches(), file)
        else:
            pa = pyarrow()
            types = {name: reader.types[name] or pa.string() for name in names}
            schema = pa.schema([*types.items(), *((head, pa.float64()) for head in heads)])
            write.write_arrow(schema, batches(), file, kind, ())


def _entries(column: Column) -> list[Any]:
    """The entries of a column as Python objects; a text of blanks is missing."""
    entries, codes = distinct(column)
    known = [None if isinstance(entry, str) and not entry.strip() else entry for entry in entries]
    return [*map([*known, None].__getitem__, codes.tolist())]


def _numbers(argument: str, entries: Sequence[Any]) -> Array:
    """The entries as numbers."""
    numbers = [read_number(str(entry)) if entry is not None else None for entry in entries]
    if None in numbers:
        advice = "some rows of this column have no number: correct them, or leave these rows out"
        raise InvalidInput(argument, NOT_SHOWN, advice)
    return np.array(numbers, dtype=np.float64)


def _sizes(sizes: Array, strata: Sequence[Any] | None) -> float | dict[Any, float]:
    """The size of each stratum from a column, which has one in all its rows."""
    pairs = set(zip(strata if strata is not None else [None] * len(sizes), sizes.tolist(), strict=True))
    by_stratum = dict(pairs)
    if len(by_stratum) < len(pairs):
        advice = "this column must have the same number in all rows of a stratum"
        raise InvalidInput("population", NOT_SHOWN, advice)
    return by_stratum if strata is not None else by_stratum.get(None, 0.0)
