"""Small groups within a table of several questions, and what has to be withheld with them.

The people who give the same answers to all questions of a table but the last form a *group*; those of an average by
group are the groups that the query names. Nobody knows how many people a group has, so the estimate decides: a group is
small if fewer than `smallest_count` people are estimated to be in it.

Of a small group everything is withheld that is said about it: its cells of the table, the shares of the last question
within it, and its average. How many people gave each answer to a single question stays, and so does the average over
everybody. Where what is withheld would follow from what is shown by adding and subtracting, the next smallest group is
withheld too, until nothing follows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.errors import NotIdentifiable
from priorveil.plans.composition import Names
from priorveil.priors import Domain, Label
from priorveil.priors.label_texts import named_levels
from priorveil.queries import group_rows
from priorveil.reading.estimate import Estimate

Group = tuple[tuple[str, Label], ...]  # attributes, each with a level
Mask = npt.NDArray[np.bool_]

_DUST = 1e-9  # rounding of floats, relative to one


@dataclass(frozen=True, eq=False)
class GroupTable:
    """An estimate about several questions, and the groups in it; `questions` has the question of each attribute."""

    estimate: Estimate
    questions: Mapping[str, str]

    @property
    def _domain(self) -> Domain:
        return self.estimate.readings[0].prior.domain

    @cached_property
    def groupings(self) -> tuple[Names, ...]:
        """The attributes that form groups: those of the query, or of each table of several questions but the last."""
        if self.estimate.number_by_group is not None:
            return (self.estimate.number_by_group.by,)
        names, grids = self._domain.names or (), self._domain.grids
        if self.estimate.histogram:
            by = tuple(name for name in names if name not in grids) if grids else names[:-1]
            return (by,) if by else ()
        margins = dict.fromkeys(tuple(named_levels(str(label), names)) for label in self.estimate.labels)
        several = [margin for margin in margins if len({self.questions[name] for name in margin}) > 1]
        return tuple(dict.fromkeys(margin[:-1] for margin in several))

    @cached_property
    def _groups(self) -> tuple[tuple[Group, ...], Array]:
        """The groups, and a row for each: one where a value belongs to it."""
        groups: list[Group] = []
        members = [np.empty((0, len(self._domain)))]
        for by in self.groupings:
            levels, rows = group_rows(self._domain, by)
            groups += [tuple(zip(by, group, strict=True)) for group in levels]
            members.append(rows)
        return tuple(groups), np.vstack(members)

    def small_groups(self, least: int) -> frozenset[Group]:
        """The groups with fewer than `least` people by this estimate, and those to be withheld with them."""
        groups, _ = self._groups
        if not groups or least <= 1:
            return frozenset()
        people = np.concatenate([self.estimate.margin(*by).values for by in self.groupings])
        grouping = np.concatenate(
            [np.full(len(self._domain.margin(by)[0]), place) for place, by in enumerate(self.groupings)]
        )
        withheld = people < least
        while withheld.any() and not withheld.all() and self._follows(withheld):
            beside = ~withheld & np.isin(grouping, grouping[withheld])
            candidates = beside if beside.any() else ~withheld
            withheld[np.argmin(np.where(candidates, people, np.inf))] = True
        return frozenset(group for group, small in zip(groups, withheld, strict=True) if small)

    def withheld_places(self, withheld: Collection[Group]) -> frozenset[int]:
        """The places in the answer of the statistics that are withheld with these groups."""
        if not withheld:
            return frozenset()
        mask = np.array([group in withheld for group in self._groups[0]])
        if self.estimate.histogram:
            hidden = self._hidden_cells(mask)
        elif self.estimate.number_by_group is not None:
            hidden = mask
        else:
            hidden = self._hidden_rows(mask)
        return frozenset(np.flatnonzero(hidden).tolist())

    # -- what follows from what ------------------------------------------------------------------------------

    def _follows(self, withheld: Mask) -> bool:
        """Whether something withheld is a sum or a difference of what is shown."""
        rows, hidden_rows = self._rows, self._hidden_rows(withheld)
        shown, asked = np.vstack([self._answers, rows[~hidden_rows]]), rows[hidden_rows]
        if not self.estimate.histogram:
            return bool(_is_spanned(asked, _basis(shown)).any())
        cells = self._hidden_cells(withheld)  # all others are shown: only these columns are unknown
        known = _basis(shown[:, cells])
        return bool(_are_cells_spanned(known).any() or _is_spanned(asked[:, cells], known).any())

    @cached_property
    def _answers(self) -> Array:
        """What is shown whatever is withheld: all people, each answer to a single question, and averages over all."""
        rows = [np.ones((1, len(self._domain)))]
        for name in self._domain.names or ():
            with suppress(NotIdentifiable):
                self.estimate.margin(name)
                rows.append(self._domain.margin([name])[1])
        return np.vstack([*rows, *(_scaled(self._domain.numbers(name)) for name in self._domain.grids)])

    @cached_property
    def _rows(self) -> Array:
        """Weights of the values in each statistic: the sum of a number in each group, or those of the query."""
        members = self._groups[1]
        rows = self.estimate.readings[0].rows
        if rows is not None and self.estimate.number_by_group is None:
            return np.asarray(rows)
        sums = [members * _scaled(self._domain.numbers(name)) for name in self._domain.grids]
        return np.vstack(sums) if sums else np.empty((0, len(self._domain)))

    def _hidden_rows(self, withheld: Mask) -> Mask:
        """Which of the rows are about a withheld group, and do not follow from the answers alone."""
        outside = 1.0 - self._groups[1][withheld]
        within = (self._rows != 0).astype(np.float64) @ outside.T == 0  # rows by withheld groups
        return np.asarray(within.any(axis=1) & ~_is_spanned(self._rows, _basis(self._answers)))

    def _hidden_cells(self, withheld: Mask) -> Mask:
        """Which values belong to a withheld group, and do not follow from the answers alone."""
        return self._groups[1][withheld].any(axis=0) & ~_are_cells_spanned(_basis(self._answers))


def _scaled(numbers: Array) -> Array:
    """The numbers in one row, the largest of them one."""
    return (numbers / (np.abs(numbers).max() or 1.0))[None]


def _basis(rows: Array) -> Array:
    """Orthonormal rows with the same span."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(basis[sizes > _DUST * max(sizes.max(initial=0.0), 1.0)])


def _is_spanned(rows: Array, basis: Array) -> Mask:
    """Which rows are in the span of the basis."""
    rest = np.linalg.norm(rows - (rows @ basis.T) @ basis, axis=1)
    return np.asarray(rest <= _DUST * np.maximum(np.linalg.norm(rows, axis=1), 1.0))


def _are_cells_spanned(basis: Array) -> Mask:
    """Which single values are in the span of the basis."""
    return np.asarray(1 - (basis**2).sum(axis=0) <= _DUST)
