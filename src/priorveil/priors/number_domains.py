"""Numbers as values: a grid of points for means, or cells between edges for shares and quantiles.

A number between two points of a `Grid` is rounded to one of them at random, so that its mean is kept. A number belongs
to one of the `Cells` without rounding.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Literal, final

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array, Ints, Mask, Numbers
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, InvalidPrior
from priorveil.formatting import is_ambiguous_number, number_text, readable_number
from priorveil.frames import Column, distinct, floats, is_series, look_up, read_stream
from priorveil.notes import Note
from priorveil.priors.domain import (
    AMBIGUOUS_NUMBER,
    BLANKS,
    MISSING,
    NOT_A_NUMBER,
    NOT_IN_DOMAIN,
    OUTSIDE,
    Codes,
    Domain,
    DrawWords,
    entry_key,
    is_number_key,
    with_decimal_points,
)
from priorveil.priors.label_texts import first_labels

Density = Callable[[float], float]
Outside = Literal["refuse", "ends"]

_LARGEST = 1e100  # the largest point or edge: differences and squares stay finite
_HUGE = 1e300  # beyond every range; a larger whole number may not fit into a float
_CLOSE = 2.0**-48  # floats decide a comparison of probabilities unless they are this close
_NODES = 16  # nodes of the Gauss-Legendre rule for each cell


class NumberDomain(Domain):
    """Numbers from the first to the last of its `bounds`, which increase: the points of a grid, or the edges of cells.

    `outside` says whether a number outside this range is refused, or counted at the nearest end ("ends").
    """

    resolution: str
    _argument: ClassVar[str]  # what the bounds are called, in documents too

    def __init__(self, bounds: Numbers, outside: Outside = "refuse") -> None:
        advice = "give two or more increasing numbers, none beyond 1e100"
        try:
            ends = np.array(bounds, dtype=np.float64) + 0.0  # no negative zero
        except (TypeError, ValueError) as error:
            raise InvalidInput(self._argument, bounds, advice) from error
        if ends.ndim != 1 or len(ends) < 2 or not (np.diff(ends) > 0).all() or np.abs(ends).max() > _LARGEST:
            raise InvalidInput(self._argument, bounds, advice)
        if outside not in ("refuse", "ends"):
            raise InvalidInput("outside", outside, "choose 'refuse' or 'ends'")
        self.bounds: tuple[float, ...] = tuple(ends.tolist())
        self.outside = outside
        self.refuses_numbers = outside == "refuse"
        self.labels = self._labels()

    @abstractmethod
    def _labels(self) -> tuple[float | str, ...]:
        """The points, or the cells in the notation of intervals."""

    @abstractmethod
    def _shares_up(self, numbers: Array, lower: npt.NDArray[np.intp]) -> Array:
        """The probability that each number is rounded up, from the lower end of its cell to the upper."""

    def read_numbers(self, column: Column) -> tuple[Array, Mask]:
        """The numbers in a column, NaN where one is missing; and which entries are no numbers."""
        numbers = floats(column)
        if numbers is not None:
            return numbers, np.zeros(len(numbers), dtype=bool)
        entries, rows = distinct(column)
        keys = [*(entry_key(with_decimal_points(entry)) for entry in entries), None]
        values = [float(min(max(key, -_HUGE), _HUGE)) if is_number_key(key) else np.nan for key in keys]
        foreign = [key is not None and not is_number_key(key) for key in keys]
        return np.array(values)[rows], np.array(foreign)[rows]

    def is_inside(self, numbers: Array) -> Mask:
        """Whether each number is in the range, or counted at one of its ends."""
        inside = (numbers >= self.bounds[0]) & (numbers <= self.bounds[-1])
        return inside | (not self.refuses_numbers)

    def mark(self, numbers: Array, foreign: Mask, codes: Ints) -> Codes:
        """The codes of numbers, with `MISSING` and `OUTSIDE` where they have none."""
        inside = np.where(self.is_inside(numbers), codes, OUTSIDE)
        return np.where(foreign, OUTSIDE, np.where(np.isnan(numbers), MISSING, inside)).astype(np.int64)

    def reasons(self, columns: Sequence[Column]) -> npt.NDArray[Any]:
        """Why each value is outside the domain: it is no number, or outside the range."""
        (column,) = columns
        numbers, foreign = self.read_numbers(column)
        reasons = np.full(len(numbers), None, dtype=object)
        reasons[~self.is_inside(numbers) & ~np.isnan(numbers)] = NOT_IN_DOMAIN
        reasons[foreign] = NOT_A_NUMBER
        ambiguous = look_up(column, _is_ambiguous, False, bool)
        reasons[foreign & ambiguous] = AMBIGUOUS_NUMBER
        return reasons

    def cells_of(self, numbers: Array) -> npt.NDArray[np.intp]:
        """The cell of each number; a number on an edge belongs to the cell above it, the last to the last."""
        return np.clip(np.searchsorted(self.bounds, numbers, side="right") - 1, 0, len(self.bounds) - 2)

    def within_range(self, numbers: Array) -> Array:
        """The numbers, those outside the range moved to its nearest end."""
        return np.clip(numbers, self.bounds[0], self.bounds[-1])

    def masses(self, numbers: Array, weights: Array) -> Array:
        """The mass of every label, if the numbers have these weights; random rounding is averaged out."""
        lower, size = self.cells_of(numbers), len(self.bounds)
        up = self._shares_up(self.within_range(numbers), lower)
        down = np.bincount(lower, weights * (1 - up), minlength=size)
        return np.asarray((down + np.bincount(lower + 1, weights * up, minlength=size))[: len(self)])

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

    def flat_masses(self) -> Array:
        """The mass of every label if all numbers of the range are equally common."""
        mass = self.masses(*self.density_nodes(lambda _: 1.0))
        return np.asarray(mass / mass.sum())

    def everything(self) -> str:
        """The range of numbers."""
        return self.describe()

    def require_inside(self, argument: str, numbers: Array) -> None:
        """Raise `InvalidInput` if one of the numbers is missing or refused; it is never shown."""
        missing = np.isnan(numbers)
        if missing.any():
            advice = "the number is missing: leave it out"
            raise InvalidInput(f"{argument}[{int(np.argmax(missing))}]", NOT_SHOWN, advice)
        beyond = ~self.is_inside(numbers)
        if beyond.any():
            low, high = map(readable_number, (self.bounds[0], self.bounds[-1]))
            advice = f"outside the range from {low} to {high}"
            hint = Hint("outside", "ends", purpose="to count it at the nearest end")
            raise InvalidInput(f"{argument}[{int(np.argmax(beyond))}]", NOT_SHOWN, advice, hint)

    def level_shares(self, argument: str, column: Column) -> list[tuple[list[Any], Array]]:
        """The labels of people's numbers: those below them, and for a grid also those above, with their shares.

        An error names the row and never shows the number.
        """
        numbers, foreign = self.read_numbers(column)
        if foreign.any():
            raise InvalidInput(
                f"{argument}[{int(np.argmax(foreign))}]", NOT_SHOWN, "not a number: correct it"
            )
        self.require_inside(argument, numbers)
        lower = self.cells_of(numbers)
        up = self._shares_up(self.within_range(numbers), lower)
        choices = [(lower, 1 - up), (lower + 1, up)] if self.rounds else [(lower, 1 - up)]
        return [([self.labels[at] for at in codes], shares) for codes, shares in choices]

    def levels_of(self, argument: str, entries: Iterable[Any]) -> list[Any]:
        """The labels that entries of a table of probabilities stand for: labels themselves, or numbers.

        >>> Cells([0, 10, 20]).levels_of("age", ["[0, 10)", 10]), Grid([0, 10]).levels_of("age", [10])
        (['[0, 10)', '[10, 20]'], [10.0])
        """
        levels = [self._level_of(entry) for entry in entries]
        if None in levels:
            advice = f"a level is none of {first_labels(self.labels)}"
            raise InvalidPrior("probabilities", NOT_SHOWN, f"{argument}: {advice}")
        return levels

    @abstractmethod
    def _level_of(self, entry: Any) -> float | str | None:
        """The label of an entry of a table of probabilities; None if there is none."""

    def document(self) -> dict[str, Any]:
        """The domain as JSON."""
        bounds = [repr(v) for v in self.bounds]
        return {"kind": type(self).__name__.lower(), self._argument: bounds, "outside": self.outside}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> NumberDomain:
        """Read the domain from its JSON document."""
        return cls([float(text) for text in document[cls._argument]], document["outside"])

    def describe(self) -> str:
        """The range of numbers."""
        return f"numbers from {readable_number(self.bounds[0])} to {readable_number(self.bounds[-1])}"

    def size_text(self) -> str:
        """How many points or cells there are."""
        return f"a number, {len(self):,} {self.resolution}"

    def remarks(self) -> tuple[Note, ...]:
        """A note if numbers outside the range were counted at its ends."""
        if self.refuses_numbers:
            return ()
        return (Note("numbersOutside", {"low": self.bounds[0], "high": self.bounds[-1]}),)

    def _content(self) -> Hashable:
        return self.bounds, self.outside


@final
class Grid(NumberDomain):
    """Points to which numbers are rounded at random, so that the mean of each number is kept.

    >>> Grid([0, 10, 20.5]).labels
    (0.0, 10.0, 20.5)
    """

    points: Array
    rounds = True
    resolution = "points"
    _argument = "points"

    def _labels(self) -> tuple[float, ...]:
        self.points = np.array(self.bounds)
        return self.bounds

    def encode(self, columns: Sequence[Column], words: DrawWords) -> Codes:
        """The codes of a point next to each number, drawn at random: one word for each, with `2**-64` another."""
        (column,) = columns
        numbers, foreign = self.read_numbers(column)
        lower = self.cells_of(numbers)
        up = rounds_up(self.within_range(numbers), self.points[lower], self.points[lower + 1], words)
        return self.mark(numbers, foreign, lower + up)

    @property
    def neighbours(self) -> tuple[Ints, ...]:
        """Each point and the next one."""
        return (np.stack([np.arange(len(self) - 1), np.arange(1, len(self))]),)

    def _level_of(self, entry: Any) -> float | None:
        return float(entry) if is_number_key(entry_key(entry)) and float(entry) in self.bounds else None

    def _shares_up(self, numbers: Array, lower: npt.NDArray[np.intp]) -> Array:
        return np.asarray((numbers - self.points[lower]) / np.diff(self.points)[lower])


@final
class Cells(NumberDomain):
    """Cells between edges. A cell holds its lower edge; the last one holds both.

    >>> Cells([0, 10, 20.5]).labels
    ('[0, 10)', '[10, 20.5]')
    """

    resolution = "cells"
    _argument = "edges"

    def _labels(self) -> tuple[str, ...]:
        self.edges = np.array(self.bounds)
        texts = [f"[{a}, {b})" for a, b in pairwise(map(number_text, self.bounds))]
        return (*texts[:-1], texts[-1].replace(")", "]"))

    def encode(self, columns: Sequence[Column], words: DrawWords) -> Codes:
        """The codes of the cells of numbers; no words are drawn."""
        (column,) = columns
        numbers, foreign = self.read_numbers(column)
        return self.mark(numbers, foreign, self.cells_of(numbers))

    @property
    def cell_edges(self) -> tuple[tuple[Array, Array], ...]:
        """The lower and the upper edges."""
        edges = np.array(self.bounds)
        return ((edges[:-1], edges[1:]),)

    def cumulative_names(self) -> list[str]:
        """The upper edges: only the last cell holds its own."""
        *inner, last = map(number_text, self.bounds[1:])
        return [*(f"below {text}" for text in inner), f"up to {last}"]

    def _level_of(self, entry: Any) -> str | None:
        if entry in self.labels:
            return str(entry)
        numbers, foreign = self.read_numbers([entry])
        code = self.mark(numbers, foreign, self.cells_of(numbers))[0]
        return str(self.labels[code]) if code >= 0 else None

    def _shares_up(self, numbers: Array, lower: npt.NDArray[np.intp]) -> Array:
        return np.zeros(len(numbers))


def _is_ambiguous(entry: Any) -> bool:
    return isinstance(entry, str) and is_ambiguous_number(entry.strip(BLANKS))


def number_column(argument: str, numbers: Iterable[float]) -> Array:
    """A column of numbers as floats, NaN where one is missing; an error never shows them."""
    numbers = read_stream(numbers)
    if isinstance(numbers, Mapping | Set):
        advice = (
            f"type {type(numbers).__name__}, which has each number once; give a list with one for each person"
        )
        raise InvalidInput(argument, NOT_SHOWN, advice)
    try:
        whole = isinstance(numbers, Sequence | np.ndarray) or is_series(numbers)
        column = np.asarray(numbers if whole else list(numbers), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        column = np.zeros((0, 0))
    if column.ndim != 1:
        raise InvalidInput(
            argument, NOT_SHOWN, "this is not a column of numbers: give a list of numbers only"
        )
    return column


def rounds_up(x: Array, low: Array, high: Array, words: DrawWords) -> Mask:
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
