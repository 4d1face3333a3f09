"""Submissions in a table, as a curator exports them: the columns report_id, form and report, added up by form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from priorveil.arrays import Ints
from priorveil.errors import NOT_SHOWN, ForeignReport, InvalidInput
from priorveil.frames import Indices, distinct, take
from priorveil.plans.form import Form
from priorveil.reading.tally import Tally
from priorveil.tables.batches import Batch
from priorveil.tables.read import RowProgress
from priorveil.tables.refusals import MISSING_ENTRY, OnRefused, RefusalLog, RefusedRows
from priorveil.tables.repeats import IdSpool, repeated_rows, without_repeats
from priorveil.tables.reports import FORM, REPORT, REPORT_ID, read_submissions
from priorveil.tables.rereading import Rereadable

_BATCH = 1 << 16  # rows that are counted at once
_FORM_ID = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class SubmissionTallies:
    """The tallies of the parts of each form, by its id, and how many submissions were counted.

    `refused` has the rows that no form has made. `repeated` is the number of rows that repeat a submission that was
    already counted, `without_id` the number of rows without an id, among which repeats cannot be noticed.
    """

    by_form: Mapping[str, tuple[Tally, ...]]
    reports: int
    refused: RefusedRows = field(default_factory=RefusedRows)
    repeated: int = 0
    without_id: int = 0


def tally_submissions(
    data: Any,
    forms: Mapping[str, Form],
    *,
    progress: RowProgress | None = None,
    on_refused: OnRefused | None = None,
) -> SubmissionTallies:
    """Add up the submissions of a table by form; see `privatize_table` for the kinds of `data`.

    Memory grows with the tallies, not with the rows. A submission that is there several times, with the same id, is
    counted once. A table with submissions of another form is an error.
    """
    names = [REPORT, FORM]
    source = Rereadable(data, names, _BATCH, [REPORT_ID])
    table, ids = source.open(), IdSpool()

    def count(batches: Iterable[Batch], log: RefusalLog) -> tuple[dict[str, Ints], int]:
        cells = {id: form.count(np.empty((0, form.width), dtype=np.uint64)) for id, form in forms.items()}
        reports = 0
        for batch in batches:
            refused: dict[str, list[Indices]] = {}
            for id, indices in _rows_by_form(batch, forms, refused):
                words, rejected = read_submissions(forms[id], take(batch.columns[REPORT], indices))
                cells[id] += forms[id].count(words)
                reports += len(words)
                for reason, rows in rejected.items():
                    refused.setdefault(reason, []).append(indices[rows])
            log.add(batch.refused_rows({why: np.concatenate(rows) for why, rows in refused.items()}))
            if progress is not None:
                progress(batch.end, table.rows, table.share())
        return cells, reports

    log = RefusalLog(on_refused)
    cells, counted = count(ids.watch(table.batches), log)
    flags, reports = ids.repeated_keys(), counted
    if flags is not None:
        table = source.open()
        is_repeat = repeated_rows(table.batches, flags, names, table.place)
        table = source.open()
        cells, reports = count(without_repeats(table.batches, is_repeat), RefusalLog())
    by_form = {id: forms[id].tallies(row) for id, row in cells.items()}
    return SubmissionTallies(by_form, reports, log.result(), counted - reports, ids.without_id)


def _rows_by_form(
    batch: Batch, forms: Mapping[str, Form], refused: dict[str, list[Indices]]
) -> Iterable[tuple[str, Indices]]:
    """The rows of each form; those without one are refused."""
    words, indices = distinct(batch.columns[FORM])
    for place, word in enumerate(words):
        id = str(word)
        if id not in forms:
            raise _other_form(id)
        yield id, np.flatnonzero(indices == place)
    missing = np.flatnonzero(indices < 0)
    if missing.size:
        refused.setdefault(MISSING_ENTRY, []).append(missing)


def _other_form(name: str) -> InvalidInput:
    """The error for submissions of another form. Only an id is shown: anything else may be private."""
    if not _FORM_ID.fullmatch(name):
        return InvalidInput(
            "column", FORM, "it does not hold ids of forms: give the file that a curator exports"
        )
    advice = "read them with the campaign that they answer"
    return ForeignReport(
        "data", NOT_SHOWN, f"submissions of form {name[:12]}, which this campaign does not have; {advice}"
    )
