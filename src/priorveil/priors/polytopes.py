"""The geometry of sets of priors: where a linear function is smallest, in floats and in fractions, and the corners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from priorveil.errors import TooLarge

Array = npt.NDArray[np.float64]

_VERTICES = 200_000  # more vertices than this and a prior set cannot be listed
_DRAINS = 2**14  # nor a ball within whose radius more sets of values than this can be emptied


class Shape:
    """The geometry of a set of priors: where a linear function is smallest."""

    kind: str

    def parameters(self) -> dict[str, object]:
        """The numbers that define the set."""
        raise AssertionError("abstract")

    def centre(self) -> list[Fraction]:
        """A prior in the middle of the set."""
        raise AssertionError("abstract")

    def minimiser(self, column: Sequence[Fraction | int]) -> Sequence[Fraction]:
        """The prior of the set under which the column's mean is smallest."""
        raise AssertionError("abstract")

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        """The smallest and largest mean of every column, in floats."""
        raise AssertionError("abstract")

    def vertices(self) -> Iterator[tuple[float, ...]]:
        """The corners of the set."""
        raise AssertionError("abstract")

    def contains(self, P: Array, tolerance: float) -> bool:
        """Whether a prior lies in the set."""
        raise AssertionError("abstract")

    def odds(self) -> Array:
        """The largest ratio of two probabilities, for every pair."""
        raise AssertionError("abstract")

    def minimum(self, column: Sequence[Fraction | int]) -> Fraction:
        """The smallest mean of a column, exactly."""
        return sum((p * c for p, c in zip(self.minimiser(column), column, strict=True)), Fraction(0))


@dataclass(frozen=True)
class Finite(Shape):
    """A list of priors."""

    members: tuple[tuple[Fraction, ...], ...]
    kind = "finite"

    def parameters(self) -> dict[str, object]:
        """The numbers that define the set."""
        return {"members": self.members}

    def centre(self) -> list[Fraction]:
        """A prior in the middle of the set."""
        return [sum(p, Fraction(0)) / len(self.members) for p in zip(*self.members, strict=True)]

    def minimiser(self, column: Sequence[Fraction | int]) -> Sequence[Fraction]:
        """The prior of the set under which the column's mean is smallest."""
        return min(
            self.members, key=lambda p: sum((a * c for a, c in zip(p, column, strict=True)), Fraction(0))
        )

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        """The smallest and largest mean of every column, in floats."""
        means = self._floats() @ columns
        return means.min(axis=0), means.max(axis=0)

    def vertices(self) -> Iterator[tuple[float, ...]]:
        """The corners of the set."""
        yield from (tuple(float(v) for v in p) for p in self.members)

    def contains(self, P: Array, tolerance: float) -> bool:
        """Whether a prior lies in the set."""
        return bool((np.abs(self._floats() - P).max(axis=1) <= tolerance).any())

    def odds(self) -> Array:
        """The largest ratio of two probabilities, for every pair."""
        P = self._floats()
        ratios: Array = (P[:, :, None] / P[:, None, :]).max(axis=0)
        return ratios

    def _floats(self) -> Array:
        return np.array([[float(v) for v in p] for p in self.members])


@dataclass(frozen=True)
class Box(Shape):
    """All priors between two ends, value by value."""

    lower: tuple[Fraction, ...]
    upper: tuple[Fraction, ...]
    kind = "interval"

    def parameters(self) -> dict[str, object]:
        """The numbers that define the set."""
        return {"lower": self.lower, "upper": self.upper}

    def centre(self) -> list[Fraction]:
        """A prior in the middle of the set."""
        slack = 1 - sum(self.lower)
        room = sum(self.upper) - sum(self.lower)
        share = Fraction(slack) / room if room else Fraction(0)
        return [a + (b - a) * share for a, b in zip(self.lower, self.upper, strict=True)]

    def minimiser(self, column: Sequence[Fraction | int]) -> Sequence[Fraction]:
        """The prior of the set under which the column's mean is smallest."""
        p = list(self.lower)
        left = 1 - sum(p)
        for x in sorted(range(len(p)), key=lambda i: column[i]):
            step = min(left, self.upper[x] - self.lower[x])
            p[x] += step
            left -= step
        return p

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        """The smallest and largest mean of every column, in floats."""
        return self._lowest(columns), -self._lowest(-columns)

    def _lowest(self, columns: Array) -> Array:
        low, room = self._floats()
        order = np.argsort(columns, axis=0)
        sorted_room = room[order]
        before = np.cumsum(sorted_room, axis=0) - sorted_room
        step = np.clip(1 - low.sum() - before, 0, sorted_room)
        lowest: Array = low @ columns + (step * np.take_along_axis(columns, order, axis=0)).sum(axis=0)
        return lowest

    def vertices(self) -> Iterator[tuple[float, ...]]:
        """The corners of the set."""
        d = len(self.lower)
        if d * 2 ** (d - 1) > _VERTICES:
            raise TooLarge(
                f"an interval set on {d} values has too many corners to list: take at most 14, or a ball"
            )
        for x in range(d):
            others = [i for i in range(d) if i != x]
            for size in range(d):
                for high in combinations(others, size):
                    yield from self._corner(x, frozenset(high))

    def _corner(self, x: int, high: frozenset[int]) -> Iterator[tuple[float, ...]]:
        """All values at an end of their interval but `x`, which takes what is left, if it can."""
        p = [self.upper[i] if i in high else self.lower[i] for i in range(len(self.lower))]
        p[x] = Fraction(1) - (sum(p) - p[x])
        if self.lower[x] <= p[x] <= self.upper[x]:
            yield tuple(float(v) for v in p)

    def contains(self, P: Array, tolerance: float) -> bool:
        """Whether a prior lies in the set."""
        low, room = self._floats()
        return not ((low - P > tolerance).any() or (P - low - room > tolerance).any())

    def odds(self) -> Array:
        """The largest ratio of two probabilities, for every pair."""
        low, room = self._floats()
        high, rest = low + room, low.sum() - low[:, None] - low[None, :]
        up = np.minimum(high[:, None], 1 - rest - low[None, :])
        least = 1 - (
            high.sum() - high[:, None] - high[None, :]
        )  # the pair's mass when all others are largest
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios: Array = up / np.maximum(low[None, :], least - up)
        return ratios

    def _floats(self) -> tuple[Array, Array]:
        low = np.array([float(v) for v in self.lower])
        return low, np.array([float(v) for v in self.upper]) - low


@dataclass(frozen=True)
class Ball(Shape):
    """All priors within a total variation distance of one."""

    middle: tuple[Fraction, ...]
    radius: Fraction
    kind = "ball"

    def parameters(self) -> dict[str, object]:
        """The numbers that define the set."""
        return {"middle": self.middle, "radius": self.radius}

    def centre(self) -> list[Fraction]:
        """A prior in the middle of the set."""
        return list(self.middle)

    def minimiser(self, column: Sequence[Fraction | int]) -> Sequence[Fraction]:
        """The prior of the set under which the column's mean is smallest."""
        p = list(self.middle)
        order = sorted(range(len(p)), key=lambda i: column[i])
        moved, target = Fraction(0), order[0]
        for x in reversed(order[1:]):
            step = min(self.radius - moved, p[x])
            p[x] -= step
            moved += step
        p[target] += moved
        return p

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        """The smallest and largest mean of every column, in floats."""
        return self._lowest(columns), -self._lowest(-columns)

    def _lowest(self, columns: Array) -> Array:
        P, radius = self._floats(), float(self.radius)
        order = np.argsort(-columns, axis=0)
        mass = P[order]
        taken = np.clip(radius - (np.cumsum(mass, axis=0) - mass), 0, mass)
        worst = np.take_along_axis(columns, order, axis=0)
        lowest: Array = P @ columns - (taken * (worst - columns.min(axis=0))).sum(axis=0)
        return lowest

    def vertices(self) -> Iterator[tuple[float, ...]]:
        """The corners of the set."""
        d, count = len(self.middle), 0
        for target in range(d):
            for emptied, partial in self._drains(target):
                count += 1
                if count > _VERTICES:
                    raise self._too_many()
                yield self._moved(target, emptied, partial)

    def _drains(self, target: int) -> Iterator[tuple[tuple[int, ...], int | None]]:
        """Ways to take the radius away from the other values: some emptied, one in part."""
        others = [x for x in range(len(self.middle)) if x != target]
        if sum(self.middle[x] for x in others) <= self.radius:
            yield tuple(others), None
            return
        stack: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(0))]
        seen = 0
        while stack:
            seen += 1
            if seen > _DRAINS:
                raise self._too_many()
            emptied, mass = stack.pop()
            yield from (
                (emptied, x) for x in others if x not in emptied and mass + self.middle[x] >= self.radius
            )
            after = emptied[-1] if emptied else -1
            grown = ((*emptied, x) for x in others if x > after)
            stack += [
                (e, mass + self.middle[e[-1]]) for e in grown if mass + self.middle[e[-1]] < self.radius
            ]

    def _too_many(self) -> TooLarge:
        return TooLarge(
            f"a ball on {len(self.middle)} values has too many corners to list: take a smaller radius"
        )

    def _moved(self, target: int, emptied: tuple[int, ...], partial: int | None) -> tuple[float, ...]:
        p = list(self.middle)
        moved = sum((p[x] for x in emptied), Fraction(0))
        for x in emptied:
            p[x] = Fraction(0)
        if partial is not None:
            p[partial] -= self.radius - moved
            moved = self.radius
        p[target] += moved
        return tuple(float(v) for v in p)

    def contains(self, P: Array, tolerance: float) -> bool:
        """Whether a prior lies in the set."""
        return bool(np.abs(P - self._floats()).sum() / 2 <= float(self.radius) + tolerance)

    def odds(self) -> Array:
        """The largest ratio of two probabilities, for every pair."""
        P, radius = self._floats(), float(self.radius)
        moved = np.minimum(radius, P)
        others = np.minimum(radius, 1 - P)  # x gains from x' first, then from the rest
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios: Array = (P + others)[:, None] / (P - moved)[None, :]
        return ratios

    def _floats(self) -> Array:
        return np.array([float(v) for v in self.middle])
