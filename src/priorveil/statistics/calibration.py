"""Post-stratification and raking: weights that reproduce known sizes of groups of the population.

One margin is post-stratification, several are raked by iterative proportional fitting (Deming and Stephan 1940). People
with the same levels of all margins form a cell, and all weights of a cell change by the same factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorveil.arrays import Array, Ints, real_number
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.frames import as_column, distinct

# A margin by its name: the level of each person, and how many people of the population have each level.
Margins = Mapping[str, tuple[Any, Mapping[Any, float]]]

_MOST_ROUNDS = 10_000
_CLOSE = 1e-12  # of a group's size


@dataclass(frozen=True, eq=False)
class Calibration:
    """The groups that weights are calibrated to; without margins, nothing changes.

    - `cells`: the cell of each person.
    - `levels`: the level that each cell has of each margin.
    - `sizes`: for each margin, the population of each level.
    """

    cells: Ints
    levels: Ints
    sizes: tuple[Array, ...]

    @classmethod
    def of(cls, margins: Margins | None, people: int) -> Calibration:
        """The calibration of a sample of so many people.

        >>> calibration = Calibration.of({"sex": (["f", "m", "m"], {"f": 50, "m": 50})}, 3)
        >>> calibration.weights(np.ones(3)).tolist()
        [50.0, 25.0, 25.0]
        """
        if not isinstance(margins, Mapping | None):
            raise InvalidInput(
                "margins", NOT_SHOWN, "give {name: (column, {level: size}), ...}, a name for each margin"
            )
        read = [_read_margin(name, margin, people) for name, margin in (margins or {}).items()]
        totals = [float(sizes.sum()) for _, sizes in read]
        if totals and not np.allclose(totals, totals[0], rtol=1e-6):
            shown = ", ".join(f"{total:,.12g}" for total in totals)
            advice = f"their sizes add up to {shown}: all margins must describe the same population"
            raise InvalidInput("margins", NOT_SHOWN, advice)
        codes = (
            np.stack([code for code, _ in read], axis=1) if read else np.zeros((people, 0), dtype=np.int64)
        )
        # `unique` needs at least one column.
        levels, cells = np.unique(np.pad(codes, ((0, 0), (1, 0))), axis=0, return_inverse=True)
        return cls(cells.ravel(), levels[:, 1:], tuple(sizes for _, sizes in read))

    def weights(self, weights: Array) -> Array:
        """The calibrated weights."""
        sums = sum_by(self.cells, weights[:, None], len(self.levels))[:, 0]
        return np.asarray(weights * self.factors(sums)[self.cells])

    def factors(self, sums: Array) -> Array:
        """The factor of each cell, given the sums of its weights."""
        factors = np.ones(len(self.levels))
        for _ in range(_MOST_ROUNDS):
            largest = 0.0
            for codes, sizes in zip(self.levels.T, self.sizes, strict=True):
                found = np.bincount(codes, factors * sums, len(sizes))
                if not (found > 0).all():
                    advice = "a level has no people, or none with a weight: merge it with another one"
                    raise InvalidInput("margins", NOT_SHOWN, advice)
                factors = factors * (sizes / found)[codes]
                largest = max(largest, float(np.abs(found / sizes - 1).max()))
            if largest < _CLOSE or len(self.sizes) < 2:
                return factors
        if largest < math.sqrt(_CLOSE):  # as close as rounding allows
            return factors
        advice = f"raking has not converged after {_MOST_ROUNDS:,} rounds: use fewer margins, or merge levels"
        raise InvalidInput("margins", NOT_SHOWN, advice)

    def residuals(self, numbers: Array, weights: Array) -> Array:
        """What the margins do not explain of numbers of people (n, m), by least squares with the design weights."""
        if not self.sizes:
            return numbers
        columns = [np.eye(len(sizes))[codes] for codes, sizes in zip(self.levels.T, self.sizes, strict=True)]
        members = np.concatenate(columns, axis=1)
        sums = sum_by(self.cells, weights[:, None], len(members))
        products = sum_by(self.cells, weights[:, None] * numbers, len(members))
        slopes = np.linalg.lstsq(members.T @ (sums * members), members.T @ products)[0]
        return np.asarray(numbers - (members @ slopes)[self.cells])


def sum_by(codes: Ints, numbers: Array, groups: int) -> Array:
    """The sums of the rows of a matrix by group.

    >>> sum_by(np.array([1, 0, 1]), np.array([[1.0], [2.0], [4.0]]), 3).ravel().tolist()
    [2.0, 5.0, 0.0]
    """
    columns = [np.bincount(codes, column, groups) for column in numbers.T]
    return np.stack(columns, axis=1) if columns else np.zeros((groups, 0))


def codes_of(argument: str, column: Any, people: int) -> tuple[list[Any], Ints]:
    """The different entries of a public column with one entry for each person, and the number of each person's."""
    entries, codes = distinct(as_column(column, argument))
    if len(codes) != people:
        advice = f"it has the length {len(codes):,}; give one entry for each of the {people:,} reports"
        raise InvalidInput(argument, NOT_SHOWN, advice)
    if (codes < 0).any() or any(entry != entry for entry in entries):
        raise InvalidInput(
            argument, NOT_SHOWN, "some are missing: leave these people out, or name their group"
        )
    return entries, codes


def _read_margin(name: str, margin: Any, people: int) -> tuple[Ints, Array]:
    """The level of each person, by number, and the size of each level."""
    pair = margin if isinstance(margin, tuple | list) and len(margin) == 2 else (None, None)
    column, sizes = pair
    if not isinstance(sizes, Mapping):
        raise InvalidInput("margins", NOT_SHOWN, f"{name}: give (column, {{level: size, ...}})")
    entries, codes = codes_of("margins", column, people)
    unknown = [entry for entry in entries if entry not in sizes]
    if unknown:
        raise InvalidInput("margins", NOT_SHOWN, f"{name}: the level {unknown[0]!r} has no size: give it one")
    absent = [level for level in sizes if level not in entries]
    if absent:
        advice = f"{name}: nobody in the sample has the level {absent[0]!r}: merge it with another one"
        raise InvalidInput("margins", NOT_SHOWN, advice)
    numbers = np.array([real_number(sizes[entry]) for entry in entries])
    if not ((numbers > 0) & (numbers < math.inf)).all():
        raise InvalidInput(
            "margins", NOT_SHOWN, f"{name}: every size must be a number above zero, and finite"
        )
    return codes, numbers
