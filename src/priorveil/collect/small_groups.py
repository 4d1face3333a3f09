"""Small groups of people, and what has to be withheld with them.

The people who give the same answers to all questions of a table but the last form a *group*; those of an average by
group are the groups that the query names. The people who are asked a question that is not always asked form a group,
too. Nobody knows how many people a group has, so the estimate decides: a group is small if fewer than `smallest_count`
people are estimated to be in it.

Of a small group everything is withheld that is said about it: its cells of the table, the shares of the last question
within it, its average, and the answers to the question that only these people were asked. How many people gave each
answer to a question that everybody is asked stays, and so do the number of those who were not asked and the average
over everybody. Where what is withheld would follow from what is shown by adding and subtracting, the next smallest
group is withheld too, until nothing follows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.collect.questions import NOT_ASKED
from priorveil.errors import NotIdentifiable
from priorveil.plans.composition import Names
from priorveil.priors import Domain, Label
from priorveil.priors.label_texts import label_parts, label_text, named_levels
from priorveil.queries import group_rows
from priorveil.reading.estimate import Estimate

Group = tuple[tuple[str, Label | None], ...]  # attributes, each with a level; None: everybody who was asked
Mask = npt.NDArray[np.bool_]

_DUST = 1e-9  # rounding of floats, relative to one


@dataclass(frozen=True, eq=False)
class GroupTable:
    """An estimate, and the groups in it; `questions` has the question of each attribute that is reported with it."""

    estimate: Estimate
    questions: Mapping[str, str]

    @property
    def _domain(self) -> Domain:
        return self.estimate.readings[0].prior.domain

    @property
    def _has_cells(self) -> bool:
        """Whether its statistics are the counts of all values."""
        return self.estimate.histogram and not self.estimate.margin_attributes

    @cached_property
    def groupings(self) -> tuple[Names, ...]:
        """The attributes that form groups: those of the query, or of each table of several questions but the last."""
        if len({self.questions[name] for name in self.estimate.attributes}) < 2:
            return ()
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
        """The groups, and a row for each: one where a value belongs to it. Those who were asked come last."""
        groups: list[Group] = []
        members = [np.empty((0, len(self._domain)))]
        for by in self.groupings:
            levels, rows = group_rows(self._domain, by)
            groups += [tuple(zip(by, group, strict=True)) for group in levels]
            members.append(rows)
        for name, row in self._asked():
            groups.append(((name, None),))
            members.append(row[None])
        return tuple(groups), np.vstack(members)

    @property
    def has_groups(self) -> bool:
        """Whether there are groups at all."""
        return bool(self._groups[0])

    def _asked(self) -> Iterator[tuple[str, Array]]:
        """Each attribute that is not always asked, with a row: one where a value says that it was."""
        names, labels = self._domain.names, self._domain.labels
        levels = [labels] if names is None else zip(*map(label_parts, labels), strict=True)
        for name, own in zip(names or self.questions, levels, strict=True):
            if NOT_ASKED in own:
                yield name, np.array([float(level != NOT_ASKED) for level in own])

    def small_groups(self, least: int) -> frozenset[Group]:
        """The groups with fewer than `least` people by this estimate, and those to be withheld with them."""
        if not self.has_groups or least <= 1:
            return frozenset()
        sizes = [self.estimate.margin(*by).values for by in self.groupings]
        sizes += [np.array([self._people(row)]) for _, row in self._asked()]
        people = np.concatenate(sizes)
        grouping = np.repeat(np.arange(len(sizes)), [len(some) for some in sizes])
        withheld = people < least
        while withheld.any() and not withheld.all() and self._follows(withheld):
            beside = ~withheld & np.isin(grouping, grouping[withheld])
            candidates = np.flatnonzero(beside if beside.any() else ~withheld)
            withheld[candidates[np.argmin(people[candidates])]] = True
        return frozenset(group for group, small in zip(self._groups[0], withheld, strict=True) if small)

    def _people(self, row: Array) -> float:
        """How many people have the values in a row; infinite if reports do not determine it: then nothing is shown."""
        try:
            return self.estimate.people * self.estimate.ratio(row, np.ones_like(row)).value
        except NotIdentifiable:
            return math.inf

    def expected_small_groups(self, people: float, least: int) -> list[Group]:
        """The groups that have fewer than `least` of so many people if the prior is right."""
        if least <= 1:
            return []
        groups, members = self._groups
        sizes = people * members @ self.estimate.readings[0].prior.probabilities
        return [group for group, size in zip(groups, sizes.tolist(), strict=True) if size < least]

    def withheld_places(self, withheld: Collection[Group]) -> frozenset[int]:
        """The places in the answer of the statistics that are withheld with these groups."""
        if not withheld:
            return frozenset()
        groups, members = self._groups
        mask = np.array([group in withheld for group in groups])
        if self._has_cells:
            hidden = self._hidden_cells(mask)
        elif self.estimate.number_by_group is not None:
            hidden = _is_within(members[: len(self.estimate.labels)], members[mask])
        else:
            hidden = self._hidden_rows(mask)
        return frozenset(np.flatnonzero(hidden).tolist())

    # -- what follows from what ------------------------------------------------------------------------------

    def _follows(self, withheld: Mask) -> bool:
        """Whether something withheld is a sum or a difference of what is shown."""
        rows, hidden_rows = self._rows, self._hidden_rows(withheld)
        shown, hidden = np.vstack([self._answers(withheld), rows[~hidden_rows]]), rows[hidden_rows]
        if not self._has_cells:
            return bool(_is_spanned(hidden, _basis(shown)).any())
        cells = self._hidden_cells(withheld)  # all others are shown: only these columns are unknown
        known = _basis(shown[:, cells])
        return bool(_are_cells_spanned(known).any() or _is_spanned(hidden[:, cells], known).any())

    def _answers(self, withheld: Mask) -> Array:
        """What is shown beside the statistics: all people, answers to single questions, and averages over all.

        Of a question that only a withheld group was asked, that is the number of people who were not asked.
        """
        few = {
            name
            for ((name, level), *_), small in zip(self._groups[0], withheld, strict=True)
            if small and level is None
        }
        rows = [np.ones((1, len(self._domain)))]
        for name, (levels, own) in self._margins.items():
            rows.append(own[[name not in few or level == (NOT_ASKED,) for level in levels]])
        return np.vstack([*rows, *(_scale(self._domain.numbers(name)) for name in self._domain.grids)])

    @cached_property
    def _margins(self) -> dict[str, tuple[list[tuple[Label, ...]], Array]]:
        """The levels of each attribute whose margin is shown, and a row for each level."""
        margins = {}
        for name in self._domain.names or ():
            with suppress(NotIdentifiable):
                self.estimate.margin(name)
                margins[name] = self._domain.margin([name])
        return margins

    @cached_property
    def _rows(self) -> Array:
        """Weights of the values in each statistic: the sum of a number in each group, or those of the query."""
        members = self._groups[1]
        rows = self.estimate.readings[0].rows
        if rows is not None and self.estimate.number_by_group is None:
            return np.asarray(rows)
        sums = [members * _scale(self._domain.numbers(name)) for name in self._domain.grids]
        return np.vstack(sums) if sums else np.empty((0, len(self._domain)))

    def _hidden_rows(self, withheld: Mask) -> Mask:
        """Which of the rows are about a withheld group, and do not follow from the answers alone."""
        within = _is_within(self._rows, self._groups[1][withheld])
        return within & ~_is_spanned(self._rows, _basis(self._answers(withheld)))

    def _hidden_cells(self, withheld: Mask) -> Mask:
        """Which values belong to a withheld group, and do not follow from the answers alone."""
        members = self._groups[1][withheld].any(axis=0)
        return np.asarray(members & ~_are_cells_spanned(_basis(self._answers(withheld))))


def is_in_group(levels: Mapping[str, str], group: Group) -> bool:
    """Whether levels by attribute, as texts, are those of a group.

    >>> is_in_group({"age": "old", "paid": "all"}, (("age", "old"),)), is_in_group({"paid": "all"}, (("paid", None),))
    (True, True)
    """
    return all(
        levels.get(name, NOT_ASKED) != NOT_ASKED if level is None else levels.get(name) == label_text(level)
        for name, level in group
    )


def _is_within(rows: Array, groups: Array) -> Mask:
    """Which rows have no weight outside one of the groups."""
    return np.asarray(((rows != 0).astype(np.float64) @ (1.0 - groups).T == 0).any(axis=1))


def _scale(numbers: Array) -> Array:
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
