"""What is known before anyone reports: priors, sets of priors, secrets, and budgets.

A `Prior` is exact: the floats or counts it is made from are kept as integers over one total, so that a
certificate can be checked in integer arithmetic against the very prior that was given.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from priorveil.errors import InvalidInput, InvalidPrior, InvalidSecret
from priorveil.shapes import Array as Array
from priorveil.shapes import Ball, Box, Finite, Shape

Label = str | int

_NORMALISED = 64 * np.finfo(float).eps  # how far from one the mass may be: the rounding of a division
_LARGEST = 700.0  # levels beyond this are infinite for every purpose
_ZERO = "a value of probability zero cannot be protected: leave it out, or smooth it (Prior.from_counts)"


def frozen(array: npt.ArrayLike) -> Array:
    """A read-only float copy of an array."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy


def dyadic(probabilities: Array) -> tuple[int, ...]:
    """Floats as integers in the same proportions, exactly: every float is an integer over a power of two.

    >>> dyadic(np.array([0.25, 0.75]))
    (1, 3)
    """
    mantissa, exponent = np.frexp(probabilities)
    whole = (mantissa * 2.0**53).astype(np.int64)
    shift = (exponent - exponent.min()).astype(np.int64)
    numbers = [m << s for m, s in zip(whole.tolist(), shift.tolist(), strict=True)]
    divisor = math.gcd(*numbers) or 1
    return tuple(n // divisor for n in numbers)


def _labels(labels: Iterable[Hashable] | None, size: int) -> tuple[Label, ...]:
    if labels is None:
        return tuple(range(size))
    names = tuple(_label(label) for label in labels)
    if len(names) != size:
        raise InvalidInput("labels", names, f"give one label for each of the {size} values")
    if len(set(names)) != size:
        twice = [name for name, n in Counter(names).items() if n > 1]
        raise InvalidInput("labels", twice, "every label must be there once only")
    return names


def _label(label: Hashable) -> Label:
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, bool) or not isinstance(plain, (str, int)):
        raise InvalidInput("labels", label, "a label is a string or a whole number")
    return plain


def _numbers_first(label: Label) -> tuple[bool, Label]:
    return isinstance(label, str), label


class Prior:
    """What is publicly known about one person's value: `P[x] = Pr(X = x)`, every value possible.

    Arguments: `probabilities`, a mapping from labels to probabilities, or a sequence of them, positive
    and adding up to one; `labels`, the names of the values (0, 1, 2, ... if not given).

    >>> Prior({"yes": 0.2, "no": 0.8})
    Prior({'yes': 0.2, 'no': 0.8})
    >>> Prior([0.5, 0.6])
    Traceback (most recent call last):
    priorveil.errors.InvalidPrior: probabilities = 1.1: they add up to this, not to one; \
for counts use Prior.from_counts
    """

    def __init__(
        self,
        probabilities: Mapping[Label, float] | Sequence[float] | Array,
        labels: Iterable[Hashable] | None = None,
    ) -> None:
        if isinstance(probabilities, Mapping):
            if labels is not None:
                raise InvalidInput("labels", labels, "a mapping brings its own labels")
            labels, probabilities = list(probabilities), list(probabilities.values())
        self._probabilities = _distribution("probabilities", probabilities)
        self._labels = _labels(labels, len(self._probabilities))

    @classmethod
    def _exact(cls, weights: Sequence[int], labels: Iterable[Hashable] | None) -> Self:
        """A prior proportional to positive integers, without rounding."""
        total = sum(weights)
        prior = cls([w / total for w in weights] if len(weights) > 1 else [1.0], labels)
        divisor = math.gcd(*weights)
        prior.__dict__["weights"] = tuple(w // divisor for w in weights)
        return prior

    @classmethod
    def of(cls, known: Prior | Mapping[Label, float] | Sequence[float] | Array) -> Prior:
        """The prior itself, or one made from what `Prior` accepts."""
        return known if isinstance(known, Prior) else cls(known)

    @classmethod
    def uniform(cls, values: int | Iterable[Label]) -> Self:
        """Every value equally likely; `values` is how many, or their labels.

        >>> Prior.uniform(["a", "b"]).probabilities.tolist()
        [0.5, 0.5]
        """
        labels = None if isinstance(values, int) else list(values)
        size = values if isinstance(values, int) else len(labels or ())
        _size(size)
        return cls._exact([1] * size, labels)

    @classmethod
    def zipf(cls, size: int, exponent: float = 1.0, labels: Iterable[Label] | None = None) -> Self:
        """Zipf's law: the k-th value has probability proportional to `k ** -exponent`.

        >>> Prior.zipf(3).probabilities.round(4).tolist()
        [0.5455, 0.2727, 0.1818]
        """
        _size(size)
        if not math.isfinite(exponent):
            raise InvalidInput("exponent", exponent, "give a finite number; 1 is the classic law")
        mass = np.arange(1, size + 1, dtype=np.float64) ** -exponent
        return cls(mass / mass.sum(), labels)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[Label, int] | Sequence[int] | npt.NDArray[np.int64],
        labels: Iterable[Hashable] | None = None,
        smoothing: float | None = None,
    ) -> Self:
        """The prior proportional to whole counts.

        `smoothing` is added to every count first: 1 is Laplace's rule, 0.5 Jeffreys'. Without it (None)
        a count of zero is refused, since a value that cannot happen cannot be protected.

        >>> Prior.from_counts({"a": 3, "b": 0}, smoothing=1)
        Prior({'a': 0.8, 'b': 0.2})
        """
        if isinstance(counts, Mapping):
            labels, counts = list(counts), list(counts.values())
        whole = [_count(c) for c in counts]
        _size(len(whole))
        if smoothing is None:
            if 0 in whole:
                advice = (
                    "a count of zero; choose smoothing=1 (Laplace), 0.5 (Jeffreys), or leave the value out"
                )
                raise InvalidPrior(f"counts[{whole.index(0)}]", 0, advice)
            return cls._exact(whole, labels)
        if not (math.isfinite(smoothing) and smoothing > 0):
            raise InvalidInput("smoothing", smoothing, "give a positive number, or None to refuse zeros")
        added = Fraction(smoothing)
        return cls._exact([c * added.denominator + added.numerator for c in whole], labels)

    @classmethod
    def from_values(
        cls,
        values: Iterable[Hashable],
        domain: Iterable[Label] | None = None,
        smoothing: float | None = None,
    ) -> Self:
        """The prior of observed values; `domain` lists all the values there can be (else those seen, sorted).

        >>> Prior.from_values(["b", "a", "b"], domain=["a", "b", "c"], smoothing=1)
        Prior({'a': 0.333333, 'b': 0.5, 'c': 0.166667})
        """
        seen = Counter(_label(v) for v in values)
        names = list(domain) if domain is not None else sorted(seen, key=_numbers_first)
        foreign = sorted(set(seen) - set(names), key=str)
        if foreign:
            raise InvalidInput(
                "values", foreign, "these are not in the domain: add them to it or leave them out"
            )
        return cls.from_counts([seen[name] for name in names], names, smoothing)

    @property
    def probabilities(self) -> Array:
        """`P`, as floats, read-only."""
        return self._probabilities

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the values, in order."""
        return self._labels

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """`P` as integers in exactly the same proportions."""
        return dyadic(self._probabilities)

    @cached_property
    def total(self) -> int:
        """What the integer weights add up to: `P[x] = weights[x] / total`, exactly."""
        return sum(self.weights)

    def push(self, function: Callable[[Label], Label]) -> Prior:
        """The prior of `function(X)`: the paper's surjective `f`.

        >>> Prior({"a": 0.25, "b": 0.25, "c": 0.5}).push(lambda v: "c" if v == "c" else "other")
        Prior({'other': 0.5, 'c': 0.5})
        """
        merged: dict[Label, int] = {}
        for label, weight in zip(self.labels, self.weights, strict=True):
            image = _label(function(label))
            merged[image] = merged.get(image, 0) + weight
        return Prior._exact(list(merged.values()), list(merged))

    def __len__(self) -> int:
        return len(self._probabilities)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prior):
            return NotImplemented
        return self.labels == other.labels and self.weights == other.weights

    def __hash__(self) -> int:
        return hash((self.labels, self.weights))

    def __repr__(self) -> str:
        if len(self) > 12:
            P = self._probabilities
            return f"Prior({len(self)} values, {P.min():.3g} to {P.max():.3g})"
        pairs = (f"{label!r}: {p:.6g}" for label, p in zip(self.labels, self._probabilities, strict=True))
        return "Prior({" + ", ".join(pairs) + "})"


def _size(size: int) -> None:
    if size < 1:
        raise InvalidPrior("size", size, "a prior needs at least one value")


def _count(count: object) -> int:
    value = count.item() if isinstance(count, np.generic) else count
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidPrior("counts", count, "a count is a whole number, zero or more")
    return value


def _distribution(argument: str, probabilities: npt.ArrayLike, zero: bool = False) -> Array:
    """Probabilities as a read-only array, refused where they are not a distribution."""
    try:
        P = frozen(probabilities)
    except (TypeError, ValueError) as error:
        raise InvalidPrior(argument, probabilities, "give numbers") from error
    if P.ndim != 1 or P.size == 0:
        raise InvalidPrior(argument, probabilities, "give a list of at least one number")
    bad = np.flatnonzero(~np.isfinite(P) | (P < 0) | ((P == 0) & (not zero)))
    if bad.size:
        x = int(bad[0])
        advice = "give finite numbers, zero or more" if P[x] != 0 else _ZERO
        raise InvalidPrior(f"{argument}[{x}]", float(P[x]), advice)
    mass = math.fsum(P)
    if abs(mass - 1) > _NORMALISED:
        raise InvalidPrior(
            argument, mass, "they add up to this, not to one; for counts use Prior.from_counts"
        )
    return P


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
        low, high = _to_one(low, sum(low) > 1), _to_one(high, sum(high) < 1)
        if sum(low) > 1 or sum(high) < 1:
            raise InvalidInput(
                "lower", lower, "no prior lies between lower and upper: they must enclose mass one"
            )
        return cls._made(Box(low, high), _labels(labels, len(low)))

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
        return self._shape.contains(prior.probabilities, tolerance)

    def __len__(self) -> int:
        return len(self._labels)

    def __repr__(self) -> str:
        if self.members:
            return f"PriorSet({len(self.members)} priors on {len(self)} values)"
        return f"PriorSet.{self.kind}({len(self)} values)"


def exact(prior: Prior) -> tuple[Fraction, ...]:
    """A prior's probabilities as fractions.

    >>> exact(Prior.uniform(2))
    (Fraction(1, 2), Fraction(1, 2))
    """
    return tuple(Fraction(w, prior.total) for w in prior.weights)


def _to_one(ends: tuple[Fraction, ...], wrong: bool) -> tuple[Fraction, ...]:
    """The ends scaled to mass one, where they miss it by rounding alone: 0.1, 0.2 and 0.7 as floats do."""
    mass = sum(ends, Fraction(0))
    return tuple(v / mass for v in ends) if wrong and abs(mass - 1) <= _NORMALISED else ends


def _fraction(argument: str, value: float) -> Fraction:
    number = float(value)
    if not 0 <= number <= 1:
        raise InvalidInput(argument, value, "give numbers from 0 to 1")
    return Fraction(number)


class Secret:
    """A latent variable `G` that the value `X` gives away: `T[g][x] = Pr(X = x | G = g)`.

    Only the set of rows matters, never the law of `G`: a continuous secret enters as its rows on a grid,
    or as the extreme ones.

    >>> Secret([[0.9, 0.1], [0.3, 0.7]], labels=["ill", "well"])
    Secret(2 secrets, 2 values)
    """

    def __init__(self, rows: npt.ArrayLike, labels: Iterable[Hashable] | None = None) -> None:
        try:
            T = frozen(rows)
        except (TypeError, ValueError) as error:
            raise InvalidSecret("rows", rows, "give a matrix of numbers, a row for each secret") from error
        if T.ndim != 2 or 0 in T.shape:
            raise InvalidSecret(
                "rows", rows, "give a matrix, a row for each secret and a column for each value"
            )
        for g, row in enumerate(T):
            try:
                _distribution(f"rows[{g}]", row, zero=True)
            except InvalidPrior as error:
                raise InvalidSecret(
                    error.argument, error.value, "every row is a distribution over the values"
                ) from error
        self._rows = T
        self._labels = _labels(labels, len(T))

    @classmethod
    def from_joint(cls, table: npt.ArrayLike, labels: Iterable[Hashable] | None = None) -> Self:
        """From a joint table (counts or probabilities) with a row for each secret.

        >>> Secret.from_joint([[3, 1], [0, 4]]).rows.tolist()
        [[0.75, 0.25], [0.0, 1.0]]
        """
        joint = np.asarray(table, dtype=np.float64)
        if joint.ndim != 2 or not np.isfinite(joint).all() or (joint < 0).any():
            raise InvalidSecret("table", table, "give a matrix of numbers, zero or more")
        mass = joint.sum(axis=1)
        if (mass == 0).any():
            g = int(np.flatnonzero(mass == 0)[0])
            raise InvalidSecret(f"table[{g}]", table, "this secret never happens: leave its row out")
        return cls(joint / mass[:, None], labels)

    @classmethod
    def from_columns(
        cls, secrets: Iterable[Hashable], values: Iterable[Hashable], domain: Iterable[Label] | None = None
    ) -> Self:
        """From two columns of data, a row for each person; `domain` gives the order of the values.

        >>> Secret.from_columns(["hi", "lo", "lo"], ["a", "a", "b"]).rows.tolist()
        [[1.0, 0.0], [0.5, 0.5]]
        """
        pairs = [(_label(g), _label(v)) for g, v in zip(secrets, values, strict=True)]
        names = list(domain) if domain is not None else sorted({v for _, v in pairs}, key=_numbers_first)
        foreign = sorted({v for _, v in pairs} - set(names), key=str)
        if foreign:
            raise InvalidInput(
                "values", foreign, "these are not in the domain: add them to it or leave them out"
            )
        rows = sorted({g for g, _ in pairs}, key=_numbers_first)
        seen = Counter(pairs)
        return cls.from_joint([[seen[g, v] for v in names] for g in rows], rows)

    @property
    def rows(self) -> Array:
        """`T`, read-only."""
        return self._rows

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the secrets, in order."""
        return self._labels

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """Each row as integers in exactly the same proportions."""
        return tuple(_sparse_dyadic(row) for row in self._rows)

    def require_fits(self, prior: Prior, tolerance: float = 1e-6) -> None:
        """Refuse a secret whose rows cannot mix to the prior: then no law of `G` gives both."""
        from scipy.optimize import nnls  # imported when used: it is slow to load

        if len(prior) != self._rows.shape[1]:
            advice = f"its rows need {len(prior)} numbers, one for each value of the prior"
            raise InvalidSecret("secret", self._rows.shape, advice)
        P = prior.probabilities
        _, distance = nnls(self._rows.T, P, maxiter=100 * max(self._rows.shape))
        if distance > tolerance * float(np.linalg.norm(P)):
            advice = "the prior is no mixture of these rows: Pr(X) and Pr(X | G) contradict each other"
            raise InvalidSecret("secret", f"distance {distance:.3g}", advice)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Secret({self._rows.shape[0]} secrets, {self._rows.shape[1]} values)"


def _sparse_dyadic(row: Array) -> tuple[int, ...]:
    positive = row > 0
    whole = iter(dyadic(row[positive]))
    return tuple(next(whole) if p else 0 for p in positive)


@dataclass(frozen=True)
class Budget:
    """How far a report may move a belief: by at most `e**-lower` down and `e**upper` up.

    `upper` equals `lower` if not given; either may be infinite, not both.

    >>> Budget(1.0)
    Budget(lower=1.0, upper=1.0)
    """

    lower: float
    upper: float

    def __init__(self, lower: float, upper: float | None = None) -> None:
        object.__setattr__(self, "lower", _level("lower", lower))
        object.__setattr__(self, "upper", _level("upper", lower if upper is None else upper))
        if math.isinf(self.lower) and math.isinf(self.upper):
            raise InvalidInput("upper", upper, "a budget needs at least one finite side")

    @classmethod
    def of(cls, epsilon: float | Budget) -> Budget:
        """The budget itself, or the symmetric one of a number."""
        if isinstance(epsilon, Budget):
            return epsilon
        _level("epsilon", epsilon)
        if math.isinf(epsilon):
            raise InvalidInput(
                "epsilon", epsilon, "give a finite number, or Budget(lower, upper) with one side infinite"
            )
        return cls(epsilon)

    @property
    def lo(self) -> float:
        """The smallest lift, `e**-lower`."""
        return math.exp(-self.lower)

    @property
    def hi(self) -> float:
        """The largest lift, `e**upper`."""
        return math.exp(self.upper) if self.upper < 700 else math.inf

    @property
    def tau(self) -> float:
        """The mass of a report's soft subset, `(1 - lo) / (hi - lo)`."""
        return (
            0.0 if math.isinf(self.hi) else (1 - self.lo) / (self.hi - self.lo) if self.hi > self.lo else 1.0
        )

    @property
    def symmetric(self) -> bool:
        """Whether both sides are equal."""
        return self.lower == self.upper


def _level(argument: str, value: float) -> float:
    if isinstance(value, str | bytes | bool):
        raise InvalidInput(argument, value, "give a number, zero or more")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(argument, value, "give a number, zero or more") from error
    if math.isnan(number) or number < 0:
        raise InvalidInput(argument, value, "give a number, zero or more")
    if _LARGEST < number < math.inf:
        raise InvalidInput(argument, value, f"that protects nothing: give at most {_LARGEST:g}, or infinity")
    return number
