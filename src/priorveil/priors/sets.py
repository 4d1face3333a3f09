"""Sets of priors: what is known is only that the prior lies in one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from priorveil.errors import InvalidInput, plural
from priorveil.priors.labels import NORMALISED, Array, Label, as_labels
from priorveil.priors.polytopes import Ball, Box, Finite, Shape
from priorveil.priors.prior import Prior, exact


class PriorSet:
    """Priors among which the true one lies: the paper's bounded prior.

    A list of priors over the same values, or one of `PriorSet.interval`, `PriorSet.ball`, `PriorSet.all`.
    Only two things are ever asked of a set: the smallest and the largest mean of a column under its
    members (`extremes`, exact in floats or fractions), and its vertices, where they can be listed.

    >>> PriorSet([Prior([0.2, 0.8]), Prior([0.4, 0.6])]).extremes(np.array([[1.0], [0.0]]))
    (array([0.2]), array([0.4]))
    """

    def __init__(self, priors: Iterable[Prior | Sequence[float] | Mapping[Label, float]]) -> None:
        members = tuple(Prior.of(p) for p in priors)
        if not members:
            raise InvalidInput("priors", [], "give at least one prior")
        if len({p.labels for p in members}) > 1:
            raise InvalidInput(
                "priors", [p.labels for p in members], "all priors need the same labels, in the same order"
            )
        self._shape: Shape = Finite(tuple(exact(p) for p in members))
        self._labels = members[0].labels
        self.members: tuple[Prior, ...] = members

    @classmethod
    def _made(cls, shape: Shape, labels: tuple[Label, ...]) -> PriorSet:
        made = cls.__new__(cls)
        made._shape, made._labels, made.members = shape, labels, ()
        return made

    @classmethod
    def interval(
        cls,
        lower: Mapping[Label, float] | Sequence[float],
        upper: Mapping[Label, float] | Sequence[float],
        labels: Iterable[Label] | None = None,
    ) -> PriorSet:
        """All priors with `lower[x] <= P[x] <= upper[x]`.

        >>> PriorSet.interval([0.1, 0.5], [0.5, 0.9])
        PriorSet.interval(2 values)
        """
        if isinstance(lower, Mapping) or isinstance(upper, Mapping):
            if not (isinstance(lower, Mapping) and isinstance(upper, Mapping)):
                raise InvalidInput(
                    "upper", upper, "give lower and upper as two mappings, or as two sequences"
                )
            labels = list(lower)
            if set(labels) != set(upper):
                raise InvalidInput("upper", list(upper), "lower and upper need the same labels")
            upper = [upper[label] for label in labels]
            lower = list(lower.values())
        low, high = (tuple(_fraction(n, v) for v in side) for n, side in (("lower", lower), ("upper", upper)))
        if len(low) != len(high) or not low:
            raise InvalidInput("upper", upper, "lower and upper need one number for each value")
        crossed = [x for x in range(len(low)) if low[x] > high[x]]
        if crossed:
            raise InvalidInput(
                f"lower[{crossed[0]}]", float(low[crossed[0]]), "the lower end lies above the upper one"
            )
        impossible = [x for x in range(len(high)) if high[x] == 0]
        if impossible:
            advice = "a value of probability zero cannot be protected: leave it out"
            raise InvalidInput(f"upper[{impossible[0]}]", 0.0, advice)
        low, high = _to_one(low, sum(low) > 1, -math.inf), _to_one(high, sum(high) < 1, math.inf)
        if sum(low) > 1 or sum(high) < 1:
            raise InvalidInput(
                "lower", lower, "no prior lies between lower and upper: they must enclose mass one"
            )
        return cls._made(Box(low, high), as_labels(labels, len(low)))

    @classmethod
    def ball(cls, prior: Prior | Sequence[float] | Mapping[Label, float], radius: float) -> PriorSet:
        """All priors within `radius` of `prior` in total variation (half the sum of absolute differences).

        >>> PriorSet.ball(Prior([0.2, 0.8]), 0.1).extremes(np.array([[1.0], [0.0]]))[1].round(12)
        array([0.3])
        """
        centre = Prior.of(prior)
        size = _fraction("radius", radius)
        return cls._made(Ball(exact(centre), size), centre.labels)

    @classmethod
    def all(cls, values: int | Iterable[Label]) -> PriorSet:
        """Every prior on these values: nothing is known, and LIP becomes LDP."""
        prior = Prior.uniform(values)
        zero, one = Fraction(0), Fraction(1)
        made = cls._made(Box((zero,) * len(prior), (one,) * len(prior)), prior.labels)
        return made

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the values, in order."""
        return self._labels

    @property
    def kind(self) -> str:
        """`finite`, `interval` or `ball`."""
        return self._shape.kind

    @property
    def parameters(self) -> dict[str, object]:
        """The numbers that define the set, exactly, for a file."""
        return self._shape.parameters()

    @cached_property
    def centre(self) -> Prior:
        """One prior that stands for the set where a single one is needed: its middle, with full support."""
        weights = self._shape.centre()
        common = math.lcm(*(w.denominator for w in weights))
        return Prior._exact([int(w * common) for w in weights], self.labels)

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        """Smallest and largest `p @ column` over the set, for every column of a (d, K) array."""
        return self._shape.extremes(np.asarray(columns, dtype=np.float64))

    def exact_extremes(self, column: Sequence[Fraction | int]) -> tuple[Fraction, Fraction]:
        """The same for one column, in exact arithmetic."""
        lowest = self._shape.minimum(column)
        return lowest, -self._shape.minimum([-c for c in column])

    def vertices(self) -> Array:
        """The corners of the set's convex hull, a row each. Linear conditions for all of it hold there."""
        listed = {v for v in self._shape.vertices()}
        return np.array(sorted(listed), dtype=np.float64)

    def best(self, direction: Array) -> Array:
        """The member (or corner) that maximises `p @ direction`."""
        found = self._shape.minimiser([Fraction(-float(g)) for g in direction])
        return np.array([float(p) for p in found])

    def odds(self) -> Array:
        """The largest `p[x] / p[x']` over the set, for every pair; infinite where `p[x']` may be zero."""
        ratios = self._shape.odds()
        np.fill_diagonal(ratios, 1.0)
        return ratios

    def contains(self, prior: Prior, tolerance: float = 1e-9) -> bool:
        """Whether a prior lies in the set (for a finite set: is one of its members)."""
        if len(prior) != len(self):
            raise InvalidInput("prior", plural(len(prior), "value"), f"the set is about {len(self)}")
        return self._shape.contains(prior.align_to(self._labels).probabilities, tolerance)

    def __len__(self) -> int:
        return len(self._labels)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PriorSet):
            return NotImplemented
        return self._labels == other._labels and self._shape == other._shape

    def __hash__(self) -> int:
        return hash((self._labels, self._shape))

    def __repr__(self) -> str:
        if self.members:
            return f"PriorSet({len(self.members)} priors on {len(self)} values)"
        return f"PriorSet.{self.kind}({len(self)} values)"


def _to_one(ends: tuple[Fraction, ...], wrong: bool, outwards: float) -> tuple[Fraction, ...]:
    """The ends scaled to mass one, where they miss it by rounding alone: 0.1, 0.2 and 0.7 as floats do.

    They stay floats, rounded `outwards`: a plan's file holds floats, and it is this set that is certified.
    """
    mass = sum(ends, Fraction(0))
    if not wrong or abs(mass - 1) > NORMALISED:
        return ends
    return tuple(_outwards(v / mass, outwards) for v in ends)


def _outwards(exact: Fraction, direction: float) -> Fraction:
    """The nearest float on this side of a number."""
    near = float(exact)
    beyond = Fraction(near) > exact if direction < exact else Fraction(near) < exact
    return Fraction(math.nextafter(near, direction) if beyond else near)


def _fraction(argument: str, value: float) -> Fraction:
    number = float(value)
    if not 0 <= number <= 1:
        raise InvalidInput(argument, value, "give numbers from 0 to 1")
    return Fraction(number)
