"""The figures of the result document, from estimates.

The tables are in the order in which people read them: the answer to the query, then means and quantiles of numbers,
averages by group, and shares within groups or among the people who were asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from priorveil.errors import InvalidInput, NotIdentifiable
from priorveil.notes import Note
from priorveil.plans.composition import Names
from priorveil.priors import Domain
from priorveil.priors.label_texts import label_parts, named_levels
from priorveil.questions.question import NOT_ASKED
from priorveil.reading.estimate import Estimate
from priorveil.reading.precision_notes import reached_precision
from priorveil.results.document import Figures, ResultRow, ResultTable
from priorveil.results.statistic_tables import (
    answer_margins,
    largest_half_width,
    number_tables,
    per_person,
    shares_among,
    shares_within,
    shown_first,
    unbounded_within,
)

_MOST_SHARED = 2_000  # values of a table up to which it also has shares within groups
_MOST_ASKED = 100  # answers up to which there are shares of those asked: each takes milliseconds
_MOST_SHOWN = 200  # rows that anything shows at once
_FEW_SHOWN = 50  # rows that everything shows
_SAME = 1e-9  # numbers that differ by a smaller share are the same


@dataclass(frozen=True, eq=False)
class FigureMaker:
    """Makes the figures of an estimate.

    `attributes` are those that it is about, and `questions` has the question of each of them. `within` are attributes
    whose groups the shares of the others are wanted in; by default all but the last.
    """

    estimate: Estimate
    attributes: Names
    questions: Mapping[str, str]
    confidence: float
    within: Names = ()

    def figures(self) -> Figures:
        """Everything that the estimate says."""
        estimate = self.estimate
        half_width = largest_half_width(estimate, self.confidence) if estimate.people > 0 else math.inf
        tables = tuple(self._tables())
        on_set = any(reading.known for reading in estimate.readings)
        reached = reached_precision(
            estimate.statistic, half_width, self.confidence, estimate.reports, estimate.leans_on_prior, on_set
        )
        return Figures(
            method=estimate.method,
            people=float(estimate.people),
            leaning=estimate.leaning,
            prior_check=estimate.prior_check,
            noticeable_change=estimate.noticeable_change,
            unbiased_difference=estimate.unbiased_difference,
            converged=estimate.converged,
            statistic=estimate.statistic,
            half_width=half_width if math.isfinite(half_width) else None,
            reached=reached,
            warning=estimate.warning,
            notes=(*estimate.notes, *self._unbounded_notes(tables)),
            tables=tables,
        )

    def _tables(self) -> Iterator[ResultTable]:
        answers = list(self._answers())
        yield from answers
        shown = [row for table in answers for row in table.rows]
        for table in self._numbers():
            if not all(any(_is_same(row, other) for other in shown) for row in table.rows):
                yield table
        yield from self._shares_within()
        yield from self._shares_among()

    @cached_property
    def groups(self) -> Names:
        """The attributes that form the groups of an average or of a table: all but the last; empty without groups."""
        if not self._is_about_several(self.attributes):
            return ()
        if self.estimate.number_by_group is not None:
            return self.estimate.number_by_group.by
        names, grids = self._domain.names or (), self._domain.grids
        if self.estimate.histogram:
            return tuple(name for name in names if name not in grids) if grids else names[:-1]
        margins = dict.fromkeys(tuple(named_levels(str(label), names)) for label in self.estimate.labels)
        groupings = {margin[:-1] for margin in margins if self._is_about_several(margin)}
        return groupings.pop() if len(groupings) == 1 else ()

    def _is_about_several(self, attributes: Names) -> bool:
        return len({self.questions[name] for name in attributes}) > 1

    @property
    def _domain(self) -> Domain:
        return self.estimate.readings[0].prior.domain

    def _answers(self) -> Iterator[ResultTable]:
        """The answer to the query; sums over people also divided by the people."""
        estimate = self.estimate
        for heads, rows in answer_margins(estimate, self.confidence).items():
            if not heads and estimate.histogram and len(self.attributes) == 1:
                heads = self.attributes
            if estimate.number_by_group is not None:
                number, by = estimate.number_by_group
                yield ResultTable("average", heads, by, number, tuple(rows), ())
            elif estimate.counts_people:
                yield ResultTable("people", heads, (), None, tuple(rows), self._shown_first(len(rows)))
            else:
                yield ResultTable("total", heads, (), None, tuple(rows), ())
                if estimate.people > 0:
                    scaled = tuple(per_person(row, estimate.people) for row in rows)
                    yield ResultTable("per person", heads, (), None, scaled, ())

    def _shown_first(self, rows: int) -> tuple[int, ...]:
        """The places of the rows to show first, if they may be too many to show all."""
        if rows <= _FEW_SHOWN or rows < len(self.estimate.labels):
            return ()
        places = shown_first(self.estimate, min(_MOST_SHOWN, rows - 1))
        return () if places == sorted(places) else tuple(places)

    def _numbers(self) -> Iterator[ResultTable]:
        """The means of numbers on a grid or the quantiles of those in cells, and the averages of groups."""
        margin = {*self.estimate.margin_attributes}
        if not self.estimate.readings or (margin and not margin & {*self._domain.grids}):
            return
        yield from number_tables(self.estimate, self.confidence, self.attributes[0])

    def _shares_within(self) -> Iterator[ResultTable]:
        """The shares of the levels of the other attributes within the groups that some attributes form."""
        groups = self.within
        if not groups:
            estimate = self.estimate
            if estimate.margin_attributes or not estimate.histogram or not self.groups or estimate.has_grid:
                return
            if len(self._domain) > _MOST_SHARED:
                return
            groups = self.groups
        yield shares_within(self.estimate, groups, self.confidence)

    def _shares_among(self) -> Iterator[ResultTable]:
        """The answers to a question that is not always asked, as shares of the people who were asked it.

        None if the reports do not determine how many people these are, or if the estimate counts nobody.
        """
        estimate, names = self.estimate, self.attributes
        labels = estimate.labels if estimate.histogram else ()
        asked = [label for label in labels if NOT_ASKED not in label_parts(label)]
        if not 0 < len(asked) < len(labels) or len(asked) > _MOST_ASKED or self._is_about_several(names):
            return
        with suppress(NotIdentifiable, InvalidInput):
            yield shares_among(estimate, asked, names, self.confidence)

    def _unbounded_notes(self, tables: Sequence[ResultTable]) -> Iterator[Note]:
        """Notes that the averages or the shares of some groups have no ends, and how many people would bound them."""
        open_kinds = {table.kind for table in tables if any(row.is_unbounded for row in table.rows)}
        known = {note.code for note in self.estimate.notes}
        if "average" in open_kinds and "unboundedAverage" not in known:
            yield Note("unboundedAverage")
        if "share within" in open_kinds:
            yield from unbounded_within(self.estimate, self.within or self.groups, self.confidence)


def _is_same(row: ResultRow, other: ResultRow) -> bool:
    """Whether two rows have the same numbers, but for rounding: the mean of a grid is its sum per person."""
    return all(
        a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=_SAME))
        for a, b in zip(row.numbers, other.numbers, strict=True)
    )
