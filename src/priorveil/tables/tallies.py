"""Tallies of tables: the reports of every cohort and group, added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from priorveil.arrays import Ints
from priorveil.plans.form import Form
from priorveil.reading.tally import Tally
from priorveil.tables.forms import TableForms
from priorveil.tables.refusals import RefusedRows

Key = tuple[Any, Any]  # a cohort and a group; None stands for no cohorts or no groups


@dataclass(eq=False)
class TableCounts:
    """Reports that were added up by `Form.count`, and how many rows were refused instead, by reason."""

    cells: Ints
    refused: Counter[str]

    def __add__(self, other: TableCounts) -> TableCounts:
        return TableCounts(self.cells + other.cells, self.refused + other.refused)

    def __sub__(self, other: TableCounts) -> TableCounts:
        return TableCounts(self.cells - other.cells, self.refused - other.refused)


@dataclass(frozen=True, eq=False)
class Tallies:
    """The tallies of the parts of forms by `(cohort, group)`; None stands for no cohorts or no groups.

    `forms` has the form of each cohort; a plan that is used alone is a form with one part. `refused` has the rows in no
    tally. `repeated` is the number of rows that repeat a report that was already counted, and `without_id` the number
    of rows without an id, among which repeats cannot be noticed. Tallies of parts of a table can be added up; a report
    that is in two of the parts is then counted twice.
    """

    forms: Mapping[Any, Form]
    by: Mapping[Key, tuple[Tally, ...]]
    refused: RefusedRows = field(default_factory=RefusedRows)
    repeated: int = 0
    without_id: int = 0

    @classmethod
    def of(
        cls,
        forms: TableForms,
        counts: Mapping[Key, TableCounts],
        refused: RefusedRows,
        repeated: int = 0,
        without_id: int = 0,
    ) -> Tallies:
        """The tallies of counts by cohort and group."""
        by = {
            (cohort, group): tuple(
                replace(tally, refused=dict(own.refused))
                for tally in forms.by_cohort[cohort].tallies(own.cells)
            )
            for (cohort, group), own in counts.items()
        }
        return cls(forms.by_cohort, by, refused, repeated, without_id)

    def __add__(self, other: Tallies) -> Tallies:
        if not isinstance(other, Tallies):
            return NotImplemented
        sums = dict(self.by)
        for key, tallies in other.by.items():
            sums[key] = _tally_sums(sums[key], tallies) if key in sums else tallies
        counts = dict(Counter(self.refused.counts) + Counter(other.refused.counts))
        return replace(
            self,
            forms={**self.forms, **other.forms},
            by=sums,
            refused=RefusedRows(counts, self.refused.rows),
            repeated=self.repeated + other.repeated,
            without_id=self.without_id + other.without_id,
        )

    @property
    def reports(self) -> int:
        """How many reports were counted: one of each person, whatever the number of its parts."""
        return sum(self.forms[cohort].people(tallies) for (cohort, _), tallies in self.by.items())


def _tally_sums(some: Sequence[Tally], others: Sequence[Tally]) -> tuple[Tally, ...]:
    return tuple(one + other for one, other in zip(some, others, strict=True))
