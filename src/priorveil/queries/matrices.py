"""Matrices of linear statistics: one row of weights for each statistic, one column for each value.

A matrix with a structure stores only what that structure needs, and so does its document in a plan file. `MATRICES`
lists the classes by their name in documents.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, as_matrix
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, TooLarge
from priorveil.priors import Prior

StatisticName = Literal["share", "average per person", "average of a group", "statistic"]

_MOST_STATISTIC_ENTRIES = 1 << 26  # a larger matrix is not written out: these are 512 MiB of floats
# Designs take fourth powers of the weights, and those must fit into floats.
_SMALLEST, _LARGEST = 1e-50, 1e50
# The weight of counts beside averages, as a share of the range of the numbers. A larger one takes precision from the
# averages; this one takes a few millionths, and lowers the variance of the counts by up to a half.
_COUNT_WEIGHT = 0.01


class NumberByGroup(NamedTuple):
    """An average by group: the attribute that is averaged, and those that form the groups."""

    number: str
    by: tuple[str, ...]

    @property
    def title(self) -> str:
        """The average in a few words."""
        return f"mean {self.number}"


class Matrix(ABC):
    """The weights of linear statistics. Two matrices are equal if their documents are.

    `kind` is the name of the class in documents. `moved_by_rounding` says whether the statistics change when numbers
    are rounded at random to a point of a grid. Means do not; the share of people below a number does. None of these
    answers but `rows` writes a large matrix out.
    """

    kind: ClassVar[str]
    is_identity: ClassVar[bool] = False
    moved_by_rounding: ClassVar[bool] = False

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int] | None:
        """The numbers of statistics and of values; None fits any number of values."""

    @property
    @abstractmethod
    def rows(self) -> Array | None:
        """The weights, written out; None for the identity, which never is."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The matrix as JSON."""

    @classmethod
    @abstractmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a matrix from its JSON document."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the statistics are, in a few words."""

    @property
    def number_by_group(self) -> NumberByGroup | None:
        """The averages by group that are read from the statistics; None if these are the answer."""
        return None

    @property
    def counts_people(self) -> bool:
        """Whether every statistic is a number of people: all its weights are zero or one."""
        return True

    @property
    def takes_offsets(self) -> bool:
        """Whether a number of their own can be added for each person: whether the only statistic is a sum."""
        return not self.is_identity and self.shape is not None and self.shape[0] == 1

    @property
    def statistic_name(self) -> StatisticName:
        """What a statistic is, divided by the number of people."""
        if self.takes_offsets:
            return "average per person"
        return "share" if self.counts_people else "statistic"

    def require_exact_numbers(self, prior: Prior) -> None:
        """Raise `InvalidInput` if the prior rounds numbers and that would change the statistics."""
        if self.moved_by_rounding and prior.domain.rounds:
            hint = Hint("Prior.cells", purpose="for shares and quantiles of numbers")
            advice = "numbers are rounded to its grid, which moves these shares"
            raise InvalidInput("prior", prior, advice, hint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matrix) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash(str(self.document()))


@dataclass(frozen=True, eq=False)
class Identity(Matrix):
    """The count of every value.

    With a `size` it fits only that number of values. The size is not part of the document.
    """

    kind = "identity"
    is_identity = True
    rows = None
    title = "histogram"
    size: int | None = None

    @property
    def shape(self) -> tuple[int, int] | None:
        """Square, of the size if there is one."""
        return None if self.size is None else (self.size, self.size)

    def document(self) -> dict[str, Any]:
        """The kind alone."""
        return {"kind": self.kind}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """The identity of any size."""
        return cls()


@dataclass(frozen=True, eq=False)
class SizedMatrix(Matrix):
    """A matrix that follows from the number of values."""

    size: int

    def __post_init__(self) -> None:
        require_writable(*self.shape)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The numbers of statistics and of values."""

    def document(self) -> dict[str, Any]:
        """The kind and the size."""
        return {"kind": self.kind, "size": self.size}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a matrix from its JSON document."""
        return cls(_read_size(document))


@dataclass(frozen=True, eq=False)
class Cumulative(SizedMatrix):
    """How many people have each of `size` values or one before it.

    >>> Cumulative(3).rows.tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """

    kind = "cumulative"
    title = "cumulative shares"
    moved_by_rounding = True

    @property
    def shape(self) -> tuple[int, int]:
        """A statistic for each value."""
        return self.size, self.size

    @cached_property
    def rows(self) -> Array:
        """Ones up to the diagonal."""
        return np.tri(self.size)


@dataclass(frozen=True, eq=False)
class Ranges(SizedMatrix):
    """How many people have a value from one to another of `size` values, for all pairs.

    >>> Ranges(2).rows.tolist()
    [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """

    kind = "ranges"
    title = "ranges"
    moved_by_rounding = True

    @property
    def shape(self) -> tuple[int, int]:
        """A statistic for each pair of a first and a last value."""
        return self.size * (self.size + 1) // 2, self.size

    @cached_property
    def rows(self) -> Array:
        """Ones from the first to the last value of each range."""
        x = np.arange(self.size)
        first, last = np.triu_indices(self.size)
        return np.asarray((first[:, None] <= x) & (x <= last[:, None]), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Margins(Matrix):
    """How many people are in each cell of several tables.

    Arguments: `attributes`, the names of the attributes of each table; `cells`, for each table the cell of every value.

    >>> margins = Margins((("letter",), ("letter", "digit")), ((0, 0, 1), (0, 1, 2)))
    >>> margins.rows.tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> margins.title
    'margins (letter, letter x digit)'
    """

    kind = "margins"
    attributes: tuple[tuple[str, ...], ...]
    cells: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.attributes) != len(self.cells) or len({len(table) for table in self.cells}) != 1:
            advice = "give the attributes of each table, and in each table a cell for every value"
            raise InvalidInput("cells", NOT_SHOWN, advice)
        if min(map(min, self.cells)) < 0:
            raise InvalidInput("cells", NOT_SHOWN, "number the cells of each table from 0")
        require_writable(*self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """A statistic for each cell of each table."""
        return sum(max(table) + 1 for table in self.cells), len(self.cells[0])

    @cached_property
    def rows(self) -> Array:
        """A one where a value belongs to the cell."""
        rows = [np.equal.outer(np.arange(max(table) + 1), table) for table in self.cells]
        return np.concatenate(rows, dtype=np.float64)

    @property
    def title(self) -> str:
        """The first three tables, by the names of their attributes."""
        tables = [" x ".join(names) for names in self.attributes]
        return f"margins ({', '.join(tables[:3])}{', ...' * (len(tables) > 3)})"

    def document(self) -> dict[str, Any]:
        """The attributes and the cells of each table."""
        attributes, cells = [list(names) for names in self.attributes], [list(table) for table in self.cells]
        return {"kind": self.kind, "attributes": attributes, "cells": cells}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a matrix from its JSON document."""
        attributes = tuple(tuple(map(str, names)) for names in document["attributes"])
        return cls(attributes, tuple(tuple(map(int, table)) for table in document["cells"]))


@dataclass(frozen=True, eq=False)
class AverageInfluence(Matrix):
    """What a person adds to the averages of a number by group, near a prior; then the people of each group.

    An average is a ratio of two sums, so it is not a linear statistic. Near the prior, a person with the number `x`
    moves the average of their group `g` by `(x - mean_g) / share_g`, which is that person's influence. A plan that is
    designed for these rows has the least variance of the averages. The averages are read by `Estimate.mean`, which
    also needs the counts of the groups; these have rows of a small weight.

    Arguments: the names of the `number` and of the attributes `by`; `groups`, the group of every value; `numbers`, the
    number of every value; `means` and `shares` of the groups under the prior.

    >>> rows = AverageInfluence("hours", ("age",), (0, 0, 1, 1), (0.0, 10.0, 0.0, 10.0), (5.0, 2.0), (0.5, 0.5)).rows
    >>> (rows.round(2) + 0.0).tolist()
    [[-10.0, 10.0, 0.0, 0.0], [0.0, 0.0, -4.0, 16.0], [0.2, 0.2, 0.0, 0.0], [0.0, 0.0, 0.2, 0.2]]
    """

    kind = "averages"
    number: str
    by: tuple[str, ...]
    groups: tuple[int, ...]
    numbers: tuple[float, ...]
    means: tuple[float, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        size = len(self.means)
        same_sizes = len(self.groups) == len(self.numbers) and len(self.shares) == size
        if not same_sizes or set(self.groups) != set(range(size)):
            advice = "give a group and a number for every value, and a mean and a share for every group"
            raise InvalidInput("groups", NOT_SHOWN, advice)
        if not all(share > 0 for share in self.shares):
            raise InvalidInput("shares", self.shares, "give positive shares")
        require_size("numbers", np.array([*self.numbers, *self.means]))
        require_writable(*self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Two statistics for each group."""
        return 2 * len(self.means), len(self.groups)

    @cached_property
    def rows(self) -> Array:
        """The influence on each average, then the counts of the groups with a small weight."""
        members = np.equal.outer(np.arange(len(self.means)), self.groups) / np.array(self.shares)[:, None]
        numbers = np.array(self.numbers)
        influence = members * (numbers - np.array(self.means)[:, None])
        return np.concatenate([influence, _COUNT_WEIGHT * np.ptp(numbers) * members])

    @property
    def number_by_group(self) -> NumberByGroup:
        """The number and the attributes that form the groups."""
        return NumberByGroup(self.number, self.by)

    counts_people = False
    takes_offsets = False
    statistic_name = "average of a group"

    @property
    def title(self) -> str:
        """The number, and what it is averaged by."""
        return f"mean {self.number} by {', '.join(self.by)}"

    def document(self) -> dict[str, Any]:
        """The names, and the numbers as the shortest texts that read back to them."""
        floats = {name: list(map(repr, getattr(self, name))) for name in ("numbers", "means", "shares")}
        names = {"number": self.number, "by": list(self.by), "groups": list(self.groups)}
        return {"kind": self.kind, **names, **floats}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a matrix from its JSON document."""
        numbers, means, shares = (
            tuple(map(float, document[name])) for name in ("numbers", "means", "shares")
        )
        by, groups = tuple(map(str, document["by"])), tuple(map(int, document["groups"]))
        return cls(str(document["number"]), by, groups, numbers, means, shares)


@dataclass(frozen=True, eq=False)
class LogOdds(Matrix):
    """What a person adds to the log-odds of each value against a baseline, near a prior.

    The log-odds of shares are not linear. Near the shares `P` they move by `e_j / P_j - e_b / P_b`, `b` the baseline.
    An unbiased plan for these rows has the least variance of the coefficients of a logit regression.

    >>> LogOdds((0.25, 0.25, 0.5), 2).rows.tolist()
    [[4.0, 0.0, -2.0], [0.0, 4.0, -2.0]]
    """

    kind = "log_odds"
    moved_by_rounding = True
    shares: tuple[float, ...]
    baseline: int

    counts_people = False
    takes_offsets = False
    statistic_name = "statistic"

    def __post_init__(self) -> None:
        size = len(self.shares)
        if size < 2 or not all(0 < share < math.inf for share in self.shares):
            raise InvalidInput("shares", self.shares, "give two or more positive shares")
        if type(self.baseline) is not int or not 0 <= self.baseline < size:
            raise InvalidInput("baseline", self.baseline, f"give the position of a value, 0 to {size - 1}")
        require_size("shares", 1 / np.array(self.shares))
        require_writable(*self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """A statistic for each value but the baseline."""
        return len(self.shares) - 1, len(self.shares)

    @cached_property
    def rows(self) -> Array:
        """The derivative of the log-odds at the shares."""
        scaled = np.diag(1 / np.array(self.shares))
        return np.asarray(np.delete(scaled, self.baseline, axis=0) - scaled[self.baseline])

    title = "log-odds"

    def document(self) -> dict[str, Any]:
        """The baseline, and the shares as the shortest texts that read back to them."""
        return {"kind": self.kind, "shares": list(map(repr, self.shares)), "baseline": self.baseline}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a matrix from its JSON document."""
        return cls(tuple(map(float, document["shares"])), document["baseline"])


class Dense(Matrix):
    """Any weights.

    >>> Dense([[0.5, 1]]).document()
    {'kind': 'dense', 'rows': [['0.5', '1.0']]}
    """

    kind = "dense"

    def __init__(self, rows: npt.ArrayLike) -> None:
        weights = as_matrix("matrix", rows, InvalidInput, "statistic and a column for each value")
        self._rows = require_size("matrix", weights)

    @property
    def rows(self) -> Array:
        """The weights."""
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the rows."""
        return len(self._rows), self._rows.shape[1]

    @property
    def counts_people(self) -> bool:
        """Whether all weights are zero or one."""
        return bool(np.isin(self._rows, (0.0, 1.0)).all())

    @property
    def title(self) -> str:
        """A sum, or how many statistics."""
        return "sum" if len(self._rows) == 1 else f"{len(self._rows)} statistics"

    def document(self) -> dict[str, Any]:
        """The rows, each number as the shortest text that reads back to it."""
        return {"kind": self.kind, "rows": [[repr(weight) for weight in row] for row in self._rows.tolist()]}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a matrix from its JSON document."""
        return cls([[float(weight) for weight in row] for row in document["rows"]])

    def __repr__(self) -> str:
        return f"Dense({self._rows.tolist()})"


# The matrices of documents, by kind.
MATRICES: dict[str, type[Matrix]] = {
    m.kind: m for m in (Identity, Cumulative, Ranges, Margins, AverageInfluence, LogOdds, Dense)
}


def matrix_of(weights: npt.ArrayLike) -> Matrix:
    """The matrix with these weights: the identity if it is one, which has solvers of its own.

    >>> matrix_of([[1, 0], [0, 1]]), matrix_of([[0, 1]])
    (Identity(size=2), Dense([[0.0, 1.0]]))
    """
    dense = Dense(weights)
    size = len(dense.rows)
    return Identity(size) if size > 1 and np.array_equal(dense.rows, np.eye(size)) else dense


def require_size(argument: str, numbers: Array) -> Array:
    """The numbers, if errors can be computed from them: fourth powers of larger ones may not fit into floats."""
    if (bad := np.argwhere(~np.isfinite(numbers))).size:
        at = tuple(bad[0])
        place = f"{argument}[{', '.join(map(str, at))}]"
        raise InvalidInput(place, float(numbers[at]), "give finite numbers")
    largest = np.abs(numbers).max(initial=0.0)
    if not numbers.size or not (largest == 0 or _SMALLEST <= largest <= _LARGEST):
        size = f"the largest between {_SMALLEST:g} and {_LARGEST:g} in size"
        advice = f"give finite numbers, one for each value, {size}: use another unit"
        raise InvalidInput(argument, NOT_SHOWN, advice)
    return numbers


def require_writable(statistics: int, values: int) -> None:
    """Raise `TooLarge` if a matrix of this size should not be written out."""
    if values * statistics > _MOST_STATISTIC_ENTRIES:
        size = f"{statistics:,} statistics of {values:,} values"
        raise TooLarge(f"{size} are too many to write out: ask for fewer")


def _read_size(document: Mapping[str, Any]) -> int:
    size = document["size"]
    if type(size) is not int or size < 1:
        raise InvalidInput("size", size, "give the number of values, one or more")
    return size
