"""Sets of priors: the true prior is known only to be a member of the set.

`PriorSet` is a list of priors; `PriorInterval` and `PriorBall` are polytopes with the same interface. A design and a
certificate ask for little: where a linear function is smallest (in floats and in exact fractions), and the corners.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from priorveil.arrays import Array, Numbers, whole_numbers
from priorveil.errors import NOT_SHOWN, InvalidInput, TooLarge
from priorveil.priors.counted_sample import CountedSample
from priorveil.priors.domain import Domain, as_domain
from priorveil.priors.label_texts import Label
from priorveil.priors.number_files import file_errors, read_matrix
from priorveil.priors.prior import (
    NEVER_HAPPENS,
    NORMALISED,
    LabelsOrDomain,
    Prior,
    Probabilities,
    assumption,
    count_of,
    labelled_numbers,
)
from priorveil.priors.read_only import ReadOnly

_ROUNDING = 1e-6  # how far outside a set a prior may lie that was computed from its members
_MOST_CORNERS = 200_000  # a set with more corners is not enumerated

Fractions = tuple[Fraction, ...]


class PriorSet(ReadOnly):
    """Priors among which the true one lies: the paper's bounded prior.

    A list of priors over the same values, or one of `PriorSet.interval`, `PriorSet.from_sample`, `PriorSet.ball`,
    `PriorSet.all`.

    >>> PriorSet([Prior([0.2, 0.8]), Prior([0.4, 0.6])]).extremes(np.array([[1.0], [0.0]]))
    (array([0.2]), array([0.4]))
    """

    kind = "finite"
    members: tuple[Prior, ...] = ()  # empty where the set is not finite
    sample: CountedSample | None = None  # the sample that the set was made from
    domain: Domain

    def __init__(self, priors: Iterable[Prior | Probabilities]) -> None:
        self.members = tuple(Prior.of(p) for p in priors)
        if not self.members:
            raise InvalidInput("priors", [], "give at least one prior")
        if len({p.domain for p in self.members}) > 1:
            labels = [p.labels for p in self.members]
            raise InvalidInput("priors", labels, "all priors need the same labels, in the same order")
        self.domain = self.members[0].domain

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the values."""
        return self.domain.labels

    @staticmethod
    def from_file(path: str | Path, *, normalise: bool = False) -> PriorSet:
        """The priors in a CSV or JSON file, one on each row.

        CSV: the first line has the values and the first column a name for each prior; or numbers alone. JSON: a list of
        rows. `normalise` divides each row by its sum. A broken file raises `InvalidFile`, which has the line.
        """
        matrix = read_matrix(Path(path))
        with file_errors(path):
            rows = matrix.shares().rows if normalise else matrix.rows
            return PriorSet([Prior(row, matrix.column_labels) for row in rows])

    @staticmethod
    def interval(lower: Probabilities, upper: Probabilities, labels: LabelsOrDomain = None) -> PriorSet:
        """All priors with `lower[x] <= P[x] <= upper[x]`.

        >>> PriorSet.interval([0.1, 0.5], [0.5, 0.9])
        PriorSet.interval(2 values)
        """
        below, least = labelled_numbers("lower", lower)
        above, most = labelled_numbers("upper", upper)
        if below is None and above is None:
            return PriorInterval(least, most, labels)
        if below is None or above is None or len(below) != len(above) or set(below) != set(above):
            raise InvalidInput("upper", upper, "lower and upper need the same labels")
        number = dict(zip(above, most, strict=True))
        return PriorInterval(least, [number[label] for label in below], below)

    @staticmethod
    def from_sample(counts: Probabilities, delta: float = 1e-6, labels: LabelsOrDomain = None) -> PriorSet:
        """All priors that a sample leaves possible, by Clopper-Pearson at `delta / (2 d)` a side for each value.

        `counts` says how many people of an independent sample have each value, as a mapping or with `labels`. The
        set holds the shares of their population, unless the sample was one of a share `delta` of misleading ones. Ask
        people of the same population; a plan says nothing about how those in the sample are protected.

        >>> known = PriorSet.from_sample({"yes": 120, "no": 880})
        >>> known
        PriorSet.from_sample(1,000 people, 2 values, delta 1e-06)
        >>> [round(float(end), 4) for end in (known.lower[0], known.upper[0])]
        [0.0745, 0.1786]
        """
        own_labels, numbers = labelled_numbers("counts", counts)
        if own_labels is not None and labels is not None:
            raise InvalidInput("labels", labels, "the counts have labels of their own: leave these out")
        sample = CountedSample(tuple(map(count_of, numbers)), float(delta))
        return PriorInterval(*sample.box, labels if own_labels is None else own_labels, sample)

    @staticmethod
    def ball(prior: Prior | Probabilities, radius: float) -> PriorSet:
        """All priors within `radius` of `prior` in total variation (half the sum of absolute differences).

        >>> PriorSet.ball(Prior([0.2, 0.8]), 0.1).extremes(np.array([[1.0], [0.0]]))[1].round(12)
        array([0.3])
        """
        return PriorBall(Prior.of(prior), radius)

    @staticmethod
    def all(values: int | Iterable[Label]) -> PriorSet:
        """Every prior on these values: nothing is known, and LIP becomes LDP."""
        domain = Prior.uniform(values).domain
        return PriorInterval([0.0] * len(domain), [1.0] * len(domain), domain)

    @cached_property
    def centre(self) -> Prior:
        """One prior in the middle of the set, with full support, used where a single prior is needed."""
        return Prior._exact(whole_numbers(self._middle()), self.domain, self.assumed)

    @property
    def assumed(self) -> bool:
        """Whether the set is only assumed: it has an assumed member, or is a ball around an assumed prior."""
        return any(prior.assumed for prior in self.members)

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        """The smallest and the largest `p @ column` over the set, for every column of a (d, K) array."""
        columns = np.asarray(columns, dtype=np.float64)
        return self._lowest(columns), -self._lowest(-columns)

    def exact_extremes(self, column: Sequence[Fraction | int]) -> tuple[Fraction, Fraction]:
        """The smallest and the largest `p @ column` over the set, in exact arithmetic."""
        low, high = self._minimiser(column), self._minimiser([-c for c in column])
        return low.mean(column), high.mean(column)

    def corners(self) -> list[Fractions]:
        """The corners of the set's convex hull. A linear condition that holds there holds throughout."""
        corners = list(islice(self._corners(), _MOST_CORNERS + 1))
        if len(corners) > _MOST_CORNERS:
            raise TooLarge(f"{self} has too many corners to list: use fewer values, or a smaller set")
        return list(dict.fromkeys(map(tuple, corners)))

    def vertices(self) -> Array:
        """The corners in floats, one per row."""
        return np.array(sorted({tuple(map(float, corner)) for corner in self.corners()}))

    def best(self, direction: Array) -> Array:
        """The member or corner with the largest `p @ direction`."""
        if self.members:
            members = np.array([p.probabilities for p in self.members])
            return np.asarray(members[np.argmax(members @ direction)])
        best = self._minimiser((-direction).tolist())
        return np.array([weight / best.total for weight in best.weights])

    def encloses(self, prior: Prior) -> bool:
        """Whether each probability lies between the least and the largest of the set, up to rounding.

        >>> known = PriorSet([Prior([0.2, 0.8]), Prior([0.4, 0.6])])
        >>> known.encloses(Prior([0.3, 0.7])), known.encloses(Prior([0.5, 0.5]))
        (True, False)
        """
        members, p = np.array([p.probabilities for p in self.members]), prior.probabilities
        low, high = members.min(axis=0) - _ROUNDING, members.max(axis=0) + _ROUNDING
        return bool(((low <= p) & (p <= high)).all())

    def document(self) -> dict[str, Any]:
        """The set as JSON, without its labels."""
        members = [[str(w) for w in p.weights] for p in self.members]
        return {"kind": self.kind, "members": members, **assumption(self.assumed)}

    @staticmethod
    def read(document: Mapping[str, Any], labels: LabelsOrDomain) -> PriorSet:
        """Read a set of priors from its JSON document."""
        return _READ_KINDS[document["kind"]](document, labels)

    def __len__(self) -> int:
        return len(self.domain)

    def _content(self) -> Hashable:
        return self.domain, str(self.document())

    def __repr__(self) -> str:
        if self.members:
            return f"PriorSet({len(self.members)} priors on {len(self)} values)"
        return f"PriorSet.{self.kind}({len(self)} values)"

    # The geometry, which every kind of set computes in its own way.

    def _middle(self) -> Sequence[Fraction]:
        """A prior in the middle of the set."""
        columns = zip(*(p.fractions for p in self.members), strict=True)
        return [sum(column, Fraction(0)) / len(self.members) for column in columns]

    def _minimiser(self, column: Sequence[Any]) -> _Shares:
        """The prior of the set with the smallest mean of the column."""
        shares = (_Shares(p.weights, p.total) for p in self.members)
        return min(shares, key=lambda p: p.mean(column))

    def _lowest(self, columns: Array) -> Array:
        """The smallest mean of every column, in floats."""
        if self.members:
            return np.asarray((self.vertices() @ columns).min(axis=0))
        return np.array([self.best(-column) @ column for column in columns.T])

    def _corners(self) -> Iterator[Sequence[Fraction]]:
        """The corners of the set, perhaps repeated."""
        yield from (p.fractions for p in self.members)


@dataclass(frozen=True)
class _Shares:
    """Shares as whole numbers that add up to `total`: their sums are far quicker than those of fractions."""

    weights: Sequence[int]
    total: int

    def mean(self, column: Sequence[Fraction | int]) -> Fraction:
        return Fraction(sum(map(operator.mul, self.weights, column)), self.total)


class PriorInterval(PriorSet):
    """All priors between two ends, value by value."""

    kind = "interval"

    def __init__(
        self, lower: Numbers, upper: Numbers, labels: LabelsOrDomain, sample: CountedSample | None = None
    ) -> None:
        low, high = (tuple(_fraction(n, v) for v in side) for n, side in (("lower", lower), ("upper", upper)))
        if len(low) != len(high) or not low:
            raise InvalidInput("upper", upper, "lower and upper need one number for each value")
        for x, (least, most) in enumerate(zip(low, high, strict=True)):
            if least > most:
                raise InvalidInput(f"lower[{x}]", float(least), "the lower end lies above the upper one")
            if most == 0:
                raise InvalidInput(f"upper[{x}]", 0.0, NEVER_HAPPENS)
        self.lower = _widen(low, -NORMALISED) if sum(low) > 1 else low
        self.upper = _widen(high, NORMALISED) if sum(high) < 1 else high
        if sum(self.lower) > 1 or sum(self.upper) < 1:
            advice = "no prior lies between lower and upper: they must enclose mass one"
            raise InvalidInput("lower", lower, advice)
        self.domain = as_domain(labels, len(low))
        self.sample = sample

    def encloses(self, prior: Prior) -> bool:
        """Whether a prior lies between the ends, up to rounding."""
        ends = zip(self.lower, prior.fractions, self.upper, strict=True)
        return all(least - _ROUNDING <= share <= most + _ROUNDING for least, share, most in ends)

    def document(self) -> dict[str, Any]:
        """The set as JSON, without its labels."""
        lower, upper = ([repr(float(v)) for v in ends] for ends in (self.lower, self.upper))
        sample = {} if self.sample is None else {"sample": self.sample.document()}
        return {"kind": self.kind, "lower": lower, "upper": upper, **sample}

    def __repr__(self) -> str:
        if self.sample is None:
            return super().__repr__()
        people, delta = self.sample.people, self.sample.delta
        return f"PriorSet.from_sample({people:,} people, {len(self)} values, delta {delta:g})"

    def _middle(self) -> Sequence[Fraction]:
        room = sum(self.upper) - sum(self.lower)
        share = Fraction(1 - sum(self.lower), room) if room else Fraction(0)
        return [a + (b - a) * share for a, b in zip(self.lower, self.upper, strict=True)]

    @cached_property
    def _whole_ends(self) -> tuple[list[int], list[int], int]:
        """The lower ends, the upper ends and one, multiplied by the smallest number that makes all of them whole."""
        total = math.lcm(*(end.denominator for end in (*self.lower, *self.upper)))
        lower, upper = ([int(end * total) for end in ends] for ends in (self.lower, self.upper))
        return lower, upper, total

    def _minimiser(self, column: Sequence[Any]) -> _Shares:
        lower, upper, total = self._whole_ends
        weights, left = list(lower), total - sum(lower)
        for x in sorted(range(len(weights)), key=lambda i: column[i]):
            step = min(left, upper[x] - lower[x])
            weights[x] += step
            left -= step
        return _Shares(weights, total)

    def _corners(self) -> Iterator[Sequence[Fraction]]:
        """At a corner all values but one are at an end of their interval."""
        if len(self) * 2 ** (len(self) - 1) > _MOST_CORNERS:
            raise TooLarge(f"{self} has too many corners to list: use at most 14 values, or PriorSet.ball")
        ends = list(zip(self.lower, self.upper, strict=True))
        for x, (least, most) in enumerate(ends):
            for others in product(*ends[:x], *ends[x + 1 :]):
                rest = 1 - sum(others, Fraction(0))
                if least <= rest <= most:
                    yield (*others[:x], rest, *others[x:])


class PriorBall(PriorSet):
    """All priors within a total variation distance of one."""

    kind = "ball"

    def __init__(self, middle: Prior, radius: float) -> None:
        self.middle, self.domain = middle, middle.domain
        self.radius = _fraction("radius", radius)

    @property
    def assumed(self) -> bool:
        """Whether the prior in the middle is only assumed."""
        return self.middle.assumed

    def encloses(self, prior: Prior) -> bool:
        """Whether a prior lies within the radius, up to rounding."""
        distance = np.abs(self.middle.probabilities - prior.probabilities).sum() / 2
        return bool(distance <= float(self.radius) + _ROUNDING)

    def document(self) -> dict[str, Any]:
        """The set as JSON, without its labels."""
        weights = [str(w) for w in self.middle.weights]
        radius = repr(float(self.radius))
        return {"kind": self.kind, "weights": weights, "radius": radius, **assumption(self.assumed)}

    def __repr__(self) -> str:
        return f"PriorSet.ball({len(self)} values, radius {float(self.radius):g})"

    def _middle(self) -> Sequence[Fraction]:
        return self.middle.fractions

    def _minimiser(self, column: Sequence[Any]) -> _Shares:
        radius, parts = self.radius.numerator, self.radius.denominator
        weights = [weight * parts for weight in self.middle.weights]
        order, left = sorted(range(len(weights)), key=lambda i: column[i]), radius * self.middle.total
        for x in reversed(order[1:]):
            step = min(left, weights[x])
            weights[x] -= step
            weights[order[0]] += step
            left -= step
        return _Shares(weights, self.middle.total * parts)

    def _corners(self) -> Iterator[Sequence[Fraction]]:
        """At a corner one value gains the radius: some others lose all they have, and one loses a part."""
        for target, own in enumerate(self.middle.fractions):
            if 1 - own <= self.radius:
                yield [Fraction(int(x == target)) for x in range(len(self))]
            else:
                yield from self._drain(self.middle.fractions, target, self.radius, 0)

    def _drain(self, p: Fractions, target: int, left: Fraction, first: int) -> Iterator[Fractions]:
        """Move the mass `left` to the target: empty some values, from `first` on, and take the rest from any one."""
        largest = Fraction(0)  # the largest mass before x
        later = sum(p[first:], Fraction(0)) - (p[target] if target >= first else 0)  # the mass after x
        for x, mass in enumerate(p):
            if x == target:
                continue
            later -= mass if x >= first else 0
            if mass >= left:
                yield _move(p, x, target, left)
            elif x >= first and largest + later >= left - mass:  # a search without this check is exponential
                yield from self._drain(_move(p, x, target, mass), target, left - mass, x + 1)
            largest = max(largest, mass)


def _read_members(document: Mapping[str, Any], labels: LabelsOrDomain) -> PriorSet:
    members = ({**document, "weights": weights} for weights in document["members"])
    return PriorSet([Prior.read(member, labels) for member in members])


def _read_interval(document: Mapping[str, Any], labels: LabelsOrDomain) -> PriorSet:
    lower, upper = ([float(v) for v in document[side]] for side in ("lower", "upper"))
    if "sample" not in document:
        return PriorSet.interval(lower, upper, labels)
    sample = CountedSample.read(document["sample"])
    if sample.box != (lower, upper):
        raise InvalidInput("sample", NOT_SHOWN, "the ends of the shares are not those of the sample")
    return PriorInterval(lower, upper, labels, sample)


def _read_ball(document: Mapping[str, Any], labels: LabelsOrDomain) -> PriorSet:
    return PriorSet.ball(Prior.read(document, labels), float(document["radius"]))


_READ_KINDS: dict[str, Callable[[Mapping[str, Any], LabelsOrDomain], PriorSet]] = {
    PriorSet.kind: _read_members,
    PriorInterval.kind: _read_interval,
    PriorBall.kind: _read_ball,
}


def _move(p: Fractions, source: int, target: int, mass: Fraction) -> Fractions:
    masses = list(p)
    masses[source] -= mass
    masses[target] += mass
    return tuple(masses)


def _widen(ends: Fractions, share: float) -> Fractions:
    """The ends moved outwards by a tiny share, because the floats 0.1, 0.2 and 0.7 do not add up to exactly one.

    The ends stay floats, because a plan file holds floats, and this is the set that is certified.
    """
    return tuple(Fraction(min(1.0, float(end) * (1 + share))) for end in ends)


def _fraction(argument: str, value: float) -> Fraction:
    number = float(value)
    if not 0 <= number <= 1:
        raise InvalidInput(argument, value, "give numbers from 0 to 1")
    return Fraction(number)
