"""Several attributes at once: a value is a tuple with a level of each, and a level may be a number.

The levels of an attribute are a domain of their own: labels, the points of a grid, or cells. All levels of a value
except those of grids form its *group*. A number is rounded at random within its group, which keeps the mean of each
group.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Numbers
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, InvalidPrior, TooLarge, plural
from priorveil.frames import Column, as_column, distinct, is_series, read_stream, table_columns
from priorveil.notes import Note
from priorveil.priors.domain import (
    AMBIGUOUS_NUMBER,
    LEFT_OUT,
    MISSING,
    NOT_A_NUMBER,
    NOT_IN_DOMAIN,
    OTHER_SPELLING,
    OUTSIDE,
    Codes,
    Domain,
    DrawWords,
    LabelDomain,
    as_label,
    as_labels,
    entry_key,
    is_number_key,
    label_from_json,
    with_decimal_points,
)
from priorveil.priors.label_texts import Label, Level, first_labels, label_parts
from priorveil.priors.number_domains import Cells, Grid, NumberDomain, Outside, rounds_up

Impossible = Literal["refuse", "leave out"]
Grids = str | Iterable[str] | Mapping[str, Numbers]  # a name or several, or their points by name

_MOST_CELLS = 1_000_000  # combinations of levels
_NO_LEVEL = object()  # equals no level
_LARGEST_KEY = 2**62  # the largest integer that stands for a combination of levels
CROSS_TABLE = Hint("frame.stack()", purpose="for a cross-table of pandas")
LEAVE_OUT = Hint("impossible='leave out'", purpose="to declare that they cannot happen")
SMOOTH = Hint("smoothing=1 (0.001 for probabilities)", purpose="to add a number to every cell")
SMOOTH_COUNTS = Hint("smoothing", 1, purpose="to add one to every cell")
SMOOTH_RARE = Hint(
    "smoothing=1 and allow_rare=True", purpose="to add one to every cell, and publish rare ones"
)
# The first reason that holds for a level holds for the value.
_REASONS = (NOT_IN_DOMAIN, NOT_A_NUMBER, AMBIGUOUS_NUMBER, OTHER_SPELLING)


@final
class Joint(Domain):
    """Tuples with a level of each attribute; `attributes` has the domain of each by name.

    `cells` are the combinations of levels that are possible.

    >>> joint = Joint([("young", 1), ("old", 1), ("old", 2)], ["age", "dose"])
    >>> joint.levels
    {'age': ('young', 'old'), 'dose': (1, 2)}
    >>> joint.encode([["old", "young", "young", None], ["2", "1", "2", "1"]], np.empty).tolist()
    [2, 0, -2, -1]
    """

    has_tuples = True

    def __init__(
        self,
        cells: Iterable[Hashable],
        names: Iterable[str],
        numbers: Mapping[str, NumberDomain] | None = None,
    ) -> None:
        self.names: tuple[str, ...] = attribute_names(names)
        tuples, numbers = list(cells), dict(numbers or {})
        self.labels = as_labels(tuples, max(1, len(tuples)))
        _require_tuples(self.labels, self.names)
        columns = dict(zip(self.names, zip(*self.labels, strict=True), strict=True))
        self.attributes: Mapping[str, Domain] = {
            name: numbers[name] if name in numbers else LabelDomain(dict.fromkeys(column))
            for name, column in columns.items()
        }
        parts = self.attributes.values()
        self._grids = {at: part for at, part in enumerate(parts) if isinstance(part, Grid)}
        self.grids = tuple(self.names[at] for at in self._grids)
        self.rounds, self.refuses_numbers = bool(self._grids), any(part.refuses_numbers for part in parts)
        self._places = _level_positions(parts, columns.values())
        self._grid_points = {at: self._points_of_groups(at) for at in self._grids}
        if self.rounds:
            self._require_whole_groups()

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The levels of each attribute by its name."""
        return {name: part.labels for name, part in self.attributes.items()}

    def margin(
        self, attributes: Sequence[str], argument: str = "attributes"
    ) -> tuple[list[tuple[Level, ...]], Array]:
        """The combinations of the levels of some attributes, and a row for each: one where a value has it.

        >>> Joint([("young", 1), ("old", 1), ("old", 2)], ["age", "dose"]).margin(["dose"])
        ([(1,), (2,)], array([[1., 1., 0.],
               [0., 0., 1.]]))
        """
        if not attributes or len(set(attributes)) < len(attributes) or not set(attributes) <= set(self.names):
            raise InvalidInput(argument, attributes, f"choose among {', '.join(self.names)}, each only once")
        places = [self.names.index(name) for name in attributes]
        cells = [tuple(label_parts(label)[place] for place in places) for label in self.labels]
        index = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
        rows = np.zeros((len(index), len(cells)))
        rows[[index[cell] for cell in cells], range(len(cells))] = 1.0
        return list(index), rows

    def numbers(self, attribute: str) -> Array:
        """The number that each value has in this attribute: its point of the grid, or its level if that is a number.

        >>> Joint([("young", 1), ("old", 1), ("old", 2)], ["age", "dose"]).numbers("dose").tolist()
        [1.0, 1.0, 2.0]
        """
        if attribute not in self.names:
            raise InvalidInput("numbers", attribute, f"choose one of {', '.join(self.names)}")
        part = self.attributes[attribute]
        if part.edges is not None:
            advice = "it has cells, and reports do not say where in its cell a number is"
            raise InvalidInput("numbers", attribute, advice, Hint("grids", purpose="for means"))
        if not all(isinstance(level, int | float) for level in part.labels):
            raise InvalidInput("numbers", attribute, "its levels are not numbers")
        levels = np.array(part.labels, dtype=np.float64)
        return np.asarray(levels[self._places[self.names.index(attribute)]])

    @property
    def neighbours(self) -> tuple[Ints, ...]:
        """For each grid the pairs of cells that differ in it only, by a step between points that their group has.

        >>> cells = [("young", 0.0), ("old", 0.0), ("young", 9.0), ("old", 9.0)]
        >>> Joint(cells, ["age", "hours"], {"hours": Grid([0, 9])}).neighbours[0].tolist()
        [[0, 1], [2, 3]]
        """
        pairs = []
        for at in self._grids:
            others = np.delete(self._places, at, axis=0)
            order = np.lexsort((self._places[at], *others))
            same = (others[:, order[1:]] == others[:, order[:-1]]).all(axis=0)
            pairs.append(np.stack([order[:-1][same], order[1:][same]]))
        return tuple(pairs)

    @property
    def cell_edges(self) -> tuple[tuple[Array, Array], ...]:
        """For each attribute with cells the lower and the upper edge of the cell of each value.

        >>> cells = [("young", "[0, 5)"), ("young", "[5, 9]"), ("old", "[5, 9]")]
        >>> low, high = Joint(cells, ["age", "hours"], {"hours": Cells([0, 5, 9])}).cell_edges[0]
        >>> low.tolist(), high.tolist()
        ([0.0, 5.0, 5.0], [5.0, 9.0, 9.0])
        """
        attributes = zip(self.attributes.values(), self._places, strict=True)
        return tuple(
            (part.edges[places], part.edges[places + 1])
            for part, places in attributes
            if part.edges is not None
        )

    # -- values ----------------------------------------------------------------------------------------------

    def encode(self, columns: Sequence[Column], words: DrawWords) -> Codes:
        """The codes of tuples: one word is drawn for each number that is rounded.

        A value is missing if one of its levels is, and outside the domain if its cell was left out.
        """
        numbers = {at: grid.read_numbers(columns[at]) for at, grid in self._grids.items()}
        # The places of levels, a row for each attribute.
        places = np.zeros((len(columns), len(columns[0])), dtype=np.int64)
        for at, (part, column) in enumerate(zip(self.attributes.values(), columns, strict=True)):
            if at in self._grids:
                places[at] = self._grids[at].mark(*numbers[at], places[at])  # rounded below
            else:
                places[at] = part.encode([column], words)
        missing, outside = (places == MISSING).any(axis=0), (places == OUTSIDE).any(axis=0)
        places = np.maximum(places, 0)
        for at, (values, _) in numbers.items():
            groups = np.maximum(self._groups.find(places), 0)  # any group for a value outside the domain
            places[at] = self._round(at, values, groups, words)
        codes = self._cells.find(places)
        return np.where(missing, MISSING, np.where(outside, OUTSIDE, codes)).astype(np.int64)

    def _round(self, at: int, numbers: Array, groups: Ints, words: DrawWords) -> Ints:
        """The point next to each number, drawn at random among those of its group."""
        grid = self._grids[at]
        x, points = grid.within_range(numbers), grid.points
        set_of_group, sets = self._grid_points[at]
        sets_used, low, high = set_of_group[groups], np.zeros(len(x), np.int64), np.ones(len(x), np.int64)
        for number, members in enumerate(sets):
            rows = sets_used == number
            cell = np.clip(np.searchsorted(points[members], x[rows], side="right") - 1, 0, len(members) - 2)
            low[rows], high[rows] = members[cell], members[cell + 1]
        return np.where(rounds_up(x, points[low], points[high], words), high, low)

    @cached_property
    def _cells(self) -> _TupleIndex:
        return _TupleIndex(self._places, [len(part) for part in self.attributes.values()])

    @cached_property
    def _groups(self) -> _TupleIndex:
        """The groups: the levels of all attributes, where those of grids do not count."""
        sizes = [1 if at in self._grids else len(part) for at, part in enumerate(self.attributes.values())]
        return _TupleIndex(self._places, sizes)

    def _points_of_groups(self, at: int) -> tuple[Ints, list[Ints]]:
        """The different sets of points of a grid that groups have, and for each group the number of its set."""
        points_of_group: list[set[int]] = [set() for _ in range(self._groups.count)]
        for group, place in zip(
            self._groups.find(self._places).tolist(), self._places[at].tolist(), strict=True
        ):
            points_of_group[group].add(place)
        numbers: dict[tuple[int, ...], int] = {}
        set_of_group = [numbers.setdefault(tuple(sorted(points)), len(numbers)) for points in points_of_group]
        return np.array(set_of_group), [np.array(points) for points in numbers]

    def _require_whole_groups(self) -> None:
        """Refuse a group in which some number of the range cannot be rounded."""
        groups, sizes = self._groups.find(self._places), np.ones(self._groups.count, dtype=np.int64)
        for at, (set_of_group, sets) in self._grid_points.items():
            last = len(self._grids[at]) - 1
            spans = np.array([points[0] == 0 and points[-1] == last for points in sets])[set_of_group]
            if not spans.all():
                self._refuse_group(
                    int(np.argmin(spans)), groups, f"the first or the last point of {self.names[at]}"
                )
            sizes *= np.array([len(points) for points in sets])[set_of_group]
        incomplete = np.bincount(groups, minlength=len(sizes)) < sizes
        if incomplete.any():
            grids = " and ".join(self.names[at] for at in self._grids)
            self._refuse_group(int(np.argmax(incomplete)), groups, f"some combinations of {grids}")

    def _refuse_group(self, group: int, groups: Ints, lacks: str) -> None:
        value = label_parts(self.labels[int(np.argmax(groups == group))])
        levels = tuple(level for at, level in enumerate(value) if at not in self._grids)
        advice = f"this group lacks {lacks}, so numbers cannot be rounded there: give its probability too"
        raise InvalidPrior("probabilities", levels, advice, SMOOTH)

    def reasons(self, columns: Sequence[Column]) -> npt.NDArray[Any]:
        """Why each value is outside the domain: one of its levels is outside, or its cell was left out."""
        parts = zip(self.attributes.values(), columns, strict=True)
        levels = [part.reasons([column]) for part, column in parts]
        reasons = np.full(len(levels[0]), LEFT_OUT, dtype=object)
        for reason in _REASONS:
            reasons[np.any([level == reason for level in levels], axis=0)] = reason
        codes = self.encode(columns, lambda count: np.zeros(count, dtype=np.uint64))
        reasons[codes != OUTSIDE] = None
        return reasons

    def columns(self, values: Any) -> list[Column]:
        """The columns of the attributes: by name in a table, or those of a list of tuples.

        >>> Joint([("old", 1), ("young", 2)], ["age", "dose"]).columns([("young", 2), None])
        [['young', None], [2, None]]
        """
        values = read_stream(values)
        columns = table_columns(values, self.names, "values")
        if columns is not None:
            return columns
        is_matrix = isinstance(values, np.ndarray) and values.ndim == 2
        rows = [self._levels_of(row) for row in (values.tolist() if is_matrix else as_column(values))]
        return [[row[at] for row in rows] for at in range(len(self.names))]

    def refusal_hints(self, columns: Sequence[Column]) -> tuple[Hint, ...]:
        """If no row of a list is a tuple, a hint that the list may be the tuple of one person."""
        first = columns[0]  # a row that is no tuple has no level of any attribute
        if isinstance(first, list) and all(entry is None or entry is _NO_LEVEL for entry in first):
            return (Hint("a tuple with a level of each attribute", purpose="for one person"),)
        return ()

    def _levels_of(self, row: Any) -> Sequence[Any]:
        """The levels in a tuple or a list; for anything else gaps if it is missing, or objects that are no level."""
        if isinstance(row, tuple | list) and len(row) == len(self.names):
            return row
        return [None if entry_key(row) is None else _NO_LEVEL] * len(self.names)

    def document(self) -> dict[str, Any]:
        """The domain as JSON: the levels of each attribute, and the positions of the levels of each cell."""
        attributes = [{"name": name, "levels": part.document()} for name, part in self.attributes.items()]
        return {"kind": "joint", "attributes": attributes, "cells": self._places.T.tolist()}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Joint:
        """Read the domain from its JSON document."""
        parts = [(part["name"], read_domain(part["levels"])) for part in document["attributes"]]
        cells = [
            [part.labels[at] for (_, part), at in zip(parts, cell, strict=True)] for cell in document["cells"]
        ]
        numbers = {name: part for name, part in parts if isinstance(part, NumberDomain)}
        joint = cls(map(tuple, cells), [name for name, _ in parts], numbers)
        if joint.document() != document:
            raise ValueError("the levels of an attribute are those of its cells, in their order")
        return joint

    def describe(self) -> str:
        """What each attribute may be."""
        return "; ".join(f"{name}: {part.describe()}" for name, part in self.attributes.items())

    def remarks(self) -> tuple[Note, ...]:
        """A note if numbers outside their range were counted at its ends."""
        return tuple(
            Note("attributeOutside", {"attribute": name, **remark.values})
            for name, part in self.attributes.items()
            for remark in part.remarks()
        )

    def in_order(self, order: Sequence[int]) -> Joint:
        """The domain of the same cells in another order."""
        numbers = {name: part for name, part in self.attributes.items() if isinstance(part, NumberDomain)}
        return Joint([self.labels[at] for at in order], self.names, numbers)

    def _content(self) -> Hashable:
        return self.names, self.labels, tuple(self.attributes.values())


class _TupleIndex:
    """Finds columns of positions among known ones: `find` gives the number of each, `OUTSIDE` if it is not there."""

    def __init__(self, places: Ints, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._keys, first = np.unique(self._key(places), return_index=True)
        self._numbers = np.argsort(np.argsort(first))  # in the order of their first appearance
        self.count = len(first)

    def _key(self, places: Ints) -> Ints:
        """One number for the positions; those of an attribute of size one do not count."""
        attributes = [at for at, size in enumerate(self._sizes) if size > 1]
        if not attributes:
            return np.zeros(places.shape[1], dtype=np.int64)
        if math.prod(self._sizes) > _LARGEST_KEY:
            raise TooLarge(
                "the attributes have too many combinations of levels to look values up: group levels"
            )
        return np.asarray(
            np.ravel_multi_index(list(places[attributes]), [self._sizes[at] for at in attributes])
        )

    def find(self, places: Ints) -> Ints:
        keys = self._key(places)
        near = np.minimum(np.searchsorted(self._keys, keys), self.count - 1)
        return np.where(self._keys[near] == keys, self._numbers[near], OUTSIDE)


def attribute_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names of attributes, all different."""
    attributes = () if isinstance(names, str) else tuple(names)
    different = {name for name in attributes if isinstance(name, str)}
    if not attributes or len(different) < len(attributes):
        raise InvalidInput("names", names, "give different names, one for each attribute")
    return attributes


def _require_tuples(labels: Sequence[Label], names: tuple[str, ...]) -> None:
    if not all(isinstance(label, tuple) and len(label) == len(names) for label in labels):
        raise InvalidInput("names", names, "every value has to be a tuple with a level for each name")


def _level_positions(parts: Iterable[Domain], columns: Iterable[Sequence[Any]]) -> Ints:
    """The position of every level in the domain of its attribute: a row for each attribute."""
    rows = []
    for part, column in zip(parts, columns, strict=True):
        position = {level: at for at, level in enumerate(part.labels)}
        if unknown := set(column) - set(position):
            advice = f"it is none of {first_labels(part.labels)}"
            raise InvalidInput("cells", unknown.pop(), advice)
        rows.append([position[level] for level in column])
    return np.array(rows)


_KINDS: dict[str, Any] = {"grid": Grid.read, "cells": Cells.read, "joint": Joint.read}


def read_domain(document: Any) -> Domain:
    """Read a domain from its JSON document."""
    if isinstance(document, Mapping):
        domain: Domain = _KINDS[document["kind"]](document)
        return domain
    return LabelDomain(map(label_from_json, document))


# -- tables of probabilities or counts -------------------------------------------------------------------------


def all_cells(levels: Iterable[Sequence[Label]]) -> list[Any]:
    """All combinations of the levels of attributes.

    >>> all_cells([["a", "b"], [1, 2]])
    [('a', 1), ('a', 2), ('b', 1), ('b', 2)]
    """
    columns = list(levels)
    if (size := math.prod(map(len, columns))) > _MOST_CELLS:
        advice = "leave out what is impossible, or group levels"
        raise TooLarge(f"the attributes have {size:,} combinations of levels: {advice}", LEAVE_OUT)
    return list(product(*columns))


def levels_in(cells: Iterable[Label]) -> list[list[Level]]:
    """The levels of each attribute in these cells, which are tuples, in the order of their appearance."""
    return [list(dict.fromkeys(column)) for column in zip(*map(label_parts, cells), strict=True)]


def joint_masses(
    masses: Any,
    names: Iterable[str],
    impossible: Impossible,
    smoothing: float | None,
    grids: Grids,
    cells: Mapping[str, Numbers] | None,
    outside: Outside,
) -> tuple[Joint, list[Any]]:
    """All combinations of levels, or those of mass above zero if the others are left out; and their masses.

    The `masses` are those of some tuples of levels: a mapping, or a pandas Series. Levels of numbers may be written in
    any way that their domain accepts.
    """
    if not isinstance(masses, Mapping) and not is_series(masses):
        advice = f"type {type(masses).__name__}; for several attributes give a mapping from tuples of levels to numbers"
        raise InvalidPrior("probabilities", NOT_SHOWN, advice, CROSS_TABLE)
    names, tuples = attribute_names(names), [label for label, _ in masses.items()]
    _require_tuples(list(map(as_label, tuples)), names)
    columns = {name: [levels[at] for levels in tuples] for at, name in enumerate(names)}
    numbers = number_attributes(columns, grids, cells, outside)
    levels = {
        name: numbers[name].levels_of(name, column) if name in numbers else list(map(as_label, column))
        for name, column in columns.items()
    }
    mass_of = dict(zip(zip(*levels.values(), strict=True), (mass for _, mass in masses.items()), strict=True))
    if len(mass_of) < len(tuples):
        raise InvalidPrior(
            "probabilities", NOT_SHOWN, "two entries belong to the same cell: add them up first"
        )
    if impossible != "leave out":
        every = [numbers[n].labels if n in numbers else list(dict.fromkeys(levels[n])) for n in names]
        mass_of = {cell: mass_of.get(cell, 0) for cell in all_cells(every)}
    possible = possible_cells(mass_of, impossible, smoothing, numbers=numbers)
    return Joint(possible, names, numbers), list(possible.values())


def number_attributes(
    columns: Mapping[str, Column], grids: Grids, cells: Mapping[str, Numbers] | None, outside: Outside
) -> dict[str, NumberDomain]:
    """The domains of those columns that are numbers; by default the points of a grid are the numbers that occur."""
    names = (grids,) if isinstance(grids, str) else grids
    points: dict[str, Any] = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names)
    edges = dict(cells or {})
    for name in [*points, *edges]:
        if name not in columns or (name in points and name in edges):
            advice = f"choose each once, in grids or in cells, among {', '.join(columns)}"
            raise InvalidInput("grids", name, advice)
    for name in [name for name in points if points[name] is None]:
        keys = {entry_key(with_decimal_points(entry)) for entry in distinct(columns[name])[0]} - {None}
        if not all(map(is_number_key, keys)):
            raise InvalidPrior("probabilities", NOT_SHOWN, f"{name} is a grid: its levels have to be numbers")
        points[name] = sorted(map(float, keys))
    domains: dict[str, NumberDomain] = {name: Grid(bounds, outside) for name, bounds in points.items()}
    return domains | {name: Cells(bounds, outside) for name, bounds in edges.items()}


def possible_cells(
    cells: dict[Any, Any],
    impossible: str,
    smoothing: float | None,
    smooth: Hint = SMOOTH,
    show: bool = True,
    numbers: Mapping[str, NumberDomain] | None = None,
) -> dict[Any, Any]:
    """The cells without those of mass zero, if `impossible` leaves them out; an error otherwise, unless smoothed.

    The error recommends to `smooth`, and shows the first cells of mass zero if these are public. It does not recommend
    to leave cells out if one of the `numbers` is a grid: every group needs the ends of its range.
    """
    if impossible not in ("refuse", "leave out"):
        raise InvalidInput("impossible", impossible, "choose 'refuse' or 'leave out'")
    if impossible == "leave out":
        if smoothing is not None:
            raise InvalidInput(
                "smoothing", smoothing, "add to every cell, or leave out those of zero: not both"
            )
        return {cell: mass for cell, mass in cells.items() if mass}
    zeros = [cell for cell, mass in cells.items() if not mass]
    if zeros and smoothing is None:
        has = "has" if len(zeros) == 1 else "have"
        advice = f"{len(zeros):,} of {plural(len(cells), 'cell')} {has} probability zero, which cannot be protected"
        advice += f": {first_labels(zeros)}" if show else ""
        has_grid = any(number.rounds for number in (numbers or {}).values())
        raise InvalidPrior("probabilities", NOT_SHOWN, advice, smooth, *(() if has_grid else (LEAVE_OUT,)))
    return cells
