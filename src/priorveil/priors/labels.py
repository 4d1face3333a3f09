"""Building blocks of priors, secrets and channels: labels, distributions, and floats as exact integers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from priorveil.errors import Hint, InvalidInput, InvalidPrior

Array = npt.NDArray[np.float64]
Label = str | int

NORMALISED = 64 * np.finfo(float).eps  # how far from one the mass may be: the rounding of a division


def read_only(array: npt.ArrayLike) -> Array:
    """A read-only float copy of an array."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy


def as_matrix(argument: str, rows: npt.ArrayLike, error: type[InvalidInput], each_row: str) -> Array:
    """A read-only copy of a matrix with at least one entry; an `error` if it is not one."""
    advice = f"give a matrix of numbers, a row for each {each_row}"
    try:
        matrix = read_only(rows)
    except (TypeError, ValueError) as failure:
        raise error(argument, rows, advice) from failure
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise error(argument, matrix.shape, advice)
    return matrix


def integer_weights(probabilities: Array) -> tuple[int, ...]:
    """Integers in exactly the proportions of the floats: every float is an integer over a power of two.

    >>> integer_weights(np.array([0.25, 0.75]))
    (1, 3)
    """
    mantissa, exponent = np.frexp(probabilities)
    whole = (mantissa * 2.0**53).astype(np.int64)
    shift = (exponent - exponent.min()).astype(np.int64)
    numbers = [m << s for m, s in zip(whole.tolist(), shift.tolist(), strict=True)]
    divisor = math.gcd(*numbers) or 1
    return tuple(n // divisor for n in numbers)


def as_labels(labels: Iterable[Hashable] | None, size: int) -> tuple[Label, ...]:
    """The labels as a tuple, checked; None gives the positions 0, 1, 2, ..."""
    if labels is None:
        return tuple(range(size))
    names = tuple(as_label(label) for label in labels)
    if len(names) != size:
        raise InvalidInput("labels", names, f"give one label for each of the {size} values")
    if len(set(names)) != size:
        repeated = [name for name, n in Counter(names).items() if n > 1]
        raise InvalidInput("labels", repeated, "every label may occur once only")
    return names


def as_label(label: Hashable) -> Label:
    """The label as a string or an integer; an error if it is neither."""
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, bool) or not isinstance(plain, (str, int)):
        raise InvalidInput("labels", label, "a label is a string or a whole number")
    return plain


def complete_domain(observed: Iterable[Label], domain: Iterable[Label] | None) -> list[Label]:
    """The `domain`, which has to hold all observed labels; by default those, numbers before words.

    >>> complete_domain(["b", 2, "a"], None)
    [2, 'a', 'b']
    """
    if domain is None:
        return sorted(set(observed), key=lambda label: (isinstance(label, str), label))
    labels = list(domain)
    outside = sorted(set(observed) - set(labels), key=str)
    if outside:
        raise InvalidInput("values", outside, "these are not in the domain: add them to it or leave them out")
    return labels


def as_distribution(argument: str, probabilities: npt.ArrayLike, zero: bool = False) -> Array:
    """The probabilities as a read-only array; an error if they are not a distribution."""
    try:
        P = read_only(probabilities)
    except (TypeError, ValueError) as error:
        raise InvalidPrior(argument, probabilities, "give numbers") from error
    if P.ndim != 1 or P.size == 0:
        raise InvalidPrior(argument, probabilities, "give a list of at least one number")
    bad = np.flatnonzero(~np.isfinite(P) | (P < 0) | ((P == 0) & (not zero)))
    if bad.size:
        x = int(bad[0])
        if P[x] != 0:
            raise InvalidPrior(f"{argument}[{x}]", float(P[x]), "give finite numbers, zero or more")
        advice = "a value of probability zero cannot be protected: leave it out"
        hint = Hint("Prior.from_counts(smoothing=1)", purpose="to smooth it")
        raise InvalidPrior(f"{argument}[{x}]", float(P[x]), advice, hint)
    mass = math.fsum(P)
    if abs(mass - 1) > NORMALISED:
        hint = Hint("Prior.from_counts", purpose="for counts")
        raise InvalidPrior(argument, mass, "they add up to this, not to one", hint)
    return P


def label_positions(
    labels: Sequence[Label], wanted: Sequence[Label], name: Callable[[Label], Label] = lambda label: label
) -> Sequence[int]:
    """The position of each `wanted` label among as many `labels`; `KeyError` with a label that is missing.

    Labels match if their `name` is the same (`str`: if they are written the same way). They match by position only
    where the names differ and one side is 0, 1, 2, ...

    >>> label_positions(["a", "b"], ["b", "a"]), label_positions([1, 0], [0, 1])
    ([1, 0], [1, 0])
    >>> label_positions(["a", "b"], [0, 1])
    range(0, 2)
    """
    positions = range(len(labels))
    if tuple(labels) == tuple(wanted):
        return positions
    index = dict(zip(map(name, labels), positions, strict=True))
    names = [name(label) for label in wanted]
    if index.keys() != set(names) and tuple(positions) in (tuple(labels), tuple(wanted)):
        return positions
    return [index[label] for label in names]
