"""The results of a campaign as CSV, for the command line and the service."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any, TextIO

from priorveil.collect.results import Result
from priorveil.priors.label_texts import label_text

_NUMBERS = ("estimate", "std_error", "low", "high", "share")


def write_csv(results: Iterable[Result], level: float, file: TextIO) -> None:
    """Write a line for each statistic: its attributes, its cohort (none for all together) and its numbers."""
    lines = csv.DictWriter(file, ["attributes", "cohort", "value", *_NUMBERS], lineterminator="\n")
    lines.writeheader()
    for result in results:
        for cohort, figures in result.shown():
            first, estimate = (
                {"attributes": " x ".join(result.attributes), "cohort": cohort},
                figures.estimate,
            )
            for label, row in figures.rows(level):
                share = row.value / estimate.people if estimate.counts_people else ""
                lines.writerow(first | _cells(label_text(label), (*row.numbers, share)))
            for table in figures.tables(level):
                lines.writerows(first | _cells(table.name_of(row), (*row.numbers, "")) for row in table.rows)


def _cells(name: str, numbers: tuple[Any, ...]) -> dict[str, Any]:
    return {"value": name, **dict(zip(_NUMBERS, numbers, strict=True))}
