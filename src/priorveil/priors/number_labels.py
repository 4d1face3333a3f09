"""Numbers as values: a grid of points for means, or cells between edges for shares and quantiles.

A number between two points of a **grid** is rounded to one of them at random, so that its mean is kept. A number
belongs to its **cell** without rounding. The labels of such a prior know how to do this (`NumberLabels`), so whatever
carries the labels (sets of priors, plans, cohorts) accepts numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Numbers
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, InvalidPrior
from priorveil.formatting import number_text, readable_number

Density = Callable[[float], float]
Outside = Literal["refuse", "ends"]
DrawWords = Callable[[int], npt.NDArray[np.uint64]]

MISSING, OUTSIDE = -1, -2  # codes of a number that is missing, or outside the range

_LARGEST = 1e100  # of a point or an edge: differences and squares stay finite
_CLOSE = 2.0**-48  # floats decide a comparison of probabilities unless they are this close
_NODES = 16  # of the Gauss-Legendre rule for each cell
_FIELDS = {"grid": "points", "cells": "edges"}


class NumberLabels(tuple[Any, ...]):
    """The labels of a prior of numbers, with the rule that gives a number its code.

    `kind` is "grid" or "cells"; `bounds` are the points or the edges, increasing; `outside` says whether a number
    outside the range is refused or counted at the nearest end ("ends"). The labels are the points, or the cells in
    the notation of intervals.

    >>> NumberLabels.of("cells", [0, 10, 20.5])
    ('[0, 10)', '[10, 20.5]')
    """

    kind: Literal["grid", "cells"]
    bounds: tuple[float, ...]
    outside: Outside

    @classmethod
    def of(cls, kind: Literal["grid", "cells"], bounds: Numbers, outside: Outside = "refuse") -> NumberLabels:
        """The labels of a grid of points, or of the cells between edges."""
        name, advice = _FIELDS[kind], "give two or more increasing numbers, none beyond 1e100"
        try:
            ends = np.array(bounds, dtype=np.float64) + 0.0  # no negative zero
        except (TypeError, ValueError) as error:
            raise InvalidInput(name, bounds, advice) from error
        if ends.ndim != 1 or len(ends) < 2 or not (np.diff(ends) > 0).all() or np.abs(ends).max() > _LARGEST:
            raise InvalidInput(name, bounds, advice)
        if outside not in ("refuse", "ends"):
            raise InvalidInput("outside", outside, "choose 'refuse' or 'ends'")
        points = ends.tolist()
        labels = cls(points if kind == "grid" else _intervals(points))
        labels.kind, labels.bounds, labels.outside = kind, tuple(points), outside
        return labels

    @property
    def rounds(self) -> bool:
        """Whether numbers are rounded at random."""
        return self.kind == "grid"

    def codes(self, numbers: Array, words: DrawWords) -> Ints:
        """The codes of numbers: of a point next to each, drawn at random, or of its cell.

        NaN is missing. `words` gives random words: one for each number, whatever it is, and with probability
        `2**-64` another.
        """
        bounds, lower = np.array(self.bounds), self._cells_of(numbers)
        codes = lower
        if self.rounds:
            codes = lower + _rounds_up(self._within(numbers), bounds[lower], bounds[lower + 1], words)
        inside = (self.outside == "ends") | (numbers >= bounds[0]) & (numbers <= bounds[-1])
        return np.where(np.isnan(numbers), MISSING, np.where(inside, codes, OUTSIDE)).astype(np.int64)

    def masses(self, numbers: Array, weights: Array) -> Array:
        """The mass of every label, if the numbers have these weights; random rounding is averaged out."""
        x, bounds, lower = self._within(numbers), np.array(self.bounds), self._cells_of(numbers)
        up = (x - bounds[lower]) / (bounds[lower + 1] - bounds[lower]) if self.rounds else np.zeros(len(x))
        down = np.bincount(lower, weights * (1 - up), minlength=len(bounds))
        return np.asarray((down + np.bincount(lower + 1, weights * up, minlength=len(bounds)))[: len(self)])

    def density_nodes(self, density: Density, argument: str = "probabilities") -> tuple[Array, Array]:
        """Numbers and their weights that stand for a density, by a Gauss-Legendre rule in each cell."""
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        half = np.diff(self.bounds)[:, None] / 2
        x = (np.array(self.bounds[:-1])[:, None] + half * (1 + nodes)).ravel()
        heights = np.array([float(density(v)) for v in x.tolist()])
        bad = np.flatnonzero(~(np.isfinite(heights) & (heights >= 0)))
        if bad.size:
            advice = f"the density at {number_text(x[bad[0]])}: it has to be a finite number, zero or more"
            raise InvalidPrior(argument, float(heights[bad[0]]), advice)
        return x, heights * (half * weights).ravel()

    def require_inside(self, argument: str, numbers: Array) -> None:
        """Raise `InvalidInput` if one of the numbers is missing or refused; it is never shown."""
        missing = np.isnan(numbers)
        if missing.any():
            advice = "the number is missing: leave it out"
            raise InvalidInput(f"{argument}[{int(np.argmax(missing))}]", NOT_SHOWN, advice)
        outside = self._within(numbers) != numbers
        if self.outside == "refuse" and outside.any():
            low, high = map(readable_number, (self.bounds[0], self.bounds[-1]))
            advice = f"outside the range from {low} to {high}"
            hint = Hint("outside", "ends", purpose="to count it at the nearest end")
            raise InvalidInput(f"{argument}[{int(np.argmax(outside))}]", NOT_SHOWN, advice, hint)

    def document(self) -> dict[str, Any]:
        """The labels as JSON."""
        bounds = [repr(v) for v in self.bounds]
        return {"kind": self.kind, _FIELDS[self.kind]: bounds, "outside": self.outside}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> NumberLabels:
        """Read the labels from their JSON document."""
        kind = document["kind"]
        return cls.of(kind, [float(text) for text in document[_FIELDS[kind]]], document["outside"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberLabels) and self.document() == other.document()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.kind, self.bounds, self.outside))

    def _within(self, numbers: Array) -> Array:
        return np.clip(numbers, self.bounds[0], self.bounds[-1])

    def _cells_of(self, numbers: Array) -> npt.NDArray[np.intp]:
        """The cell of each number; a number on an edge belongs to the cell above it, the last to the last."""
        return np.clip(np.searchsorted(self.bounds, numbers, side="right") - 1, 0, len(self.bounds) - 2)


def number_column(argument: str, numbers: Iterable[float]) -> Array:
    """A column of numbers as floats, NaN where one is missing; an error never shows them."""
    try:
        column = np.asarray(numbers if hasattr(numbers, "__len__") else list(numbers), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        column = np.zeros((0, 0))
    if column.ndim != 1:
        raise InvalidInput(
            argument, NOT_SHOWN, "this is not a column of numbers: give a list of numbers only"
        )
    return column


def _intervals(edges: Sequence[float]) -> list[str]:
    texts = [f"[{a}, {b})" for a, b in pairwise(map(number_text, edges))]
    return [*texts[:-1], texts[-1].replace(")", "]")]


def _rounds_up(x: Array, low: Array, high: Array, words: DrawWords) -> npt.NDArray[np.bool_]:
    """Whether each number is rounded up: true with probability exactly `(x - low) / (high - low)`.

    A random word is the beginning of a uniform number, which is compared with the probability. Floats decide unless
    both are close, which has a probability below `2**-46`; then integers do.
    """
    drawn = np.array(words(len(x)))
    gap = drawn * 2.0**-64 - (x - low) / (high - low)
    up = gap < 0
    for row in np.flatnonzero(np.abs(gap) < _CLOSE):
        a, b, c = (Fraction(float(column[row])) for column in (x, low, high))
        up[row] = _is_below(int(drawn[row]), (a - b) / (c - b), words)
    return np.asarray(up)


def _is_below(word: int, chance: Fraction, words: DrawWords) -> bool:
    """Whether a uniform number that begins with this word is below the chance; further words are drawn on a tie."""
    numerator, denominator = chance.numerator, chance.denominator
    while True:
        whole, numerator = divmod(numerator << 64, denominator)
        if word != whole or not numerator:
            return word < whole
        word = int(words(1)[0])
