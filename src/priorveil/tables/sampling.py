"""Make reports of the rows of a table: their values by the form of their cohort."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Mask
from priorveil.files.batches import Batch
from priorveil.frames import Column, Indices, take
from priorveil.mechanisms.randomness import Source, Words
from priorveil.plans.composition import Names
from priorveil.plans.form import Form, Part
from priorveil.priors.domain import MISSING, MISSING_ENTRY, OUTSIDE, Codes
from priorveil.tables.forms import TableForms
from priorveil.tables.private_columns import PrivateColumns
from priorveil.tables.refusals import NO_COHORT, indices_by_reason


@dataclass(frozen=True, eq=False)
class SampledReports:
    """Reports with their rows and the numbers of their cohorts, and the indices of the refused rows by reason.

    `substituted` says for how many cells a label was taken because they were empty ("missing") or had another value
    ("other").
    """

    reports: npt.NDArray[Any] | list[bytes]
    indices: Indices
    cohorts: Codes
    refused: dict[str, Indices]
    substituted: Counter[str] = field(default_factory=Counter)


def sample_reports(
    forms: TableForms, private: PrivateColumns, batch: Batch, cohort: str | None, source: Source
) -> SampledReports:
    """The reports of all rows with a value for every part of their form; each row is drawn once.

    A row without a value for some part is refused, whether or not that part is drawn. If this depended on the draw, the
    people who are asked about a part would not be a random sample of all.
    """
    cohorts, substituted = forms.cohort_codes(batch, cohort), Counter[str]()
    refused: dict[str, list[Indices]] = defaultdict(list)
    if len(nobody := np.flatnonzero(cohorts == OUTSIDE)):
        refused[NO_COHORT].append(nobody)
    made: list[tuple[Indices, npt.NDArray[Any]]] = []
    for number, format in enumerate(forms.formats.values()):
        rows = np.flatnonzero(cohorts == number)
        words, accepted = _sample(format.form, private, batch.take(rows), source, rows, refused, substituted)
        made.append((rows[accepted], format.write(words)))
    indices = np.concatenate([rows for rows, _ in made])
    order = np.argsort(indices, kind="stable")
    indices = indices[order]
    by_reason = {reason: np.sort(np.concatenate(rows)) for reason, rows in refused.items()}
    reports = _in_order([reports for _, reports in made], order)
    return SampledReports(reports, indices, cohorts[indices], by_reason, substituted)


def _in_order(parts: list[npt.NDArray[Any]], order: Indices) -> npt.NDArray[Any] | list[bytes]:
    """Reports one after another, in this order; as bytes if their widths differ."""
    if len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)[order]
    reports = [row.tobytes() for part in parts for row in part]
    return [reports[at] for at in order.tolist()]


def _sample(
    form: Form,
    private: PrivateColumns,
    batch: Batch,
    source: Source,
    rows: Indices,
    refused: dict[str, list[Indices]],
    substituted: Counter[str],
) -> tuple[Words, Mask]:
    """The reports of a batch whose rows are of one form, and which of them have one.

    `rows` are their indices; those that are refused are added to `refused`.
    """
    levels, reasons = private.levels(form, batch, substituted)
    accepted = np.ones(batch.rows, dtype=bool)
    codes: dict[Names, Codes] = {}
    for reason, indices in reasons.items():
        accepted[indices] = False
        refused[reason].append(rows[indices])
    for part in form.parts:
        columns = [levels[name] for name in part.attributes]
        codes[part.attributes] = own = part.plan.domain.encode(columns, source.words)
        wrong = np.flatnonzero(accepted & (own < 0))
        accepted[wrong] = False
        for reason, indices in _reasons(part, columns, own, wrong).items():
            refused[private.reason(part, reason)].append(rows[indices])
    return form.sample({names: own[accepted] for names, own in codes.items()}, source), accepted


def _reasons(part: Part, columns: list[Column], codes: Codes, rows: Indices) -> dict[str, Indices]:
    """Why these rows have no value of a part."""
    if not len(rows):
        return {}
    reasons = np.full(len(codes), None, dtype=object)
    outside = rows[codes[rows] == OUTSIDE]
    if len(outside):
        reasons[outside] = part.plan.domain.reasons([take(column, outside) for column in columns])
    reasons[rows[codes[rows] == MISSING]] = MISSING_ENTRY
    return indices_by_reason(reasons)
