"""Arrays and integers: their types, read-only copies, checks of shapes, and exact products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat

from priorveil.errors import NOT_SHOWN, InvalidInput

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Numbers = Sequence[float] | Array


def not_one(mass: float, terms: int) -> str:
    """The reason why numbers that should add up to one are refused.

    The sum is shown only if it looks like that of several probabilities: other numbers may be those of a person.

    >>> not_one(1.1, terms=2), not_one(171234.0, terms=1)
    ('add up to 1.1, not to 1', 'do not add up to 1')
    """
    is_near_one = terms > 1 and 0.5 < mass < 2
    return f"add up to {mass:.15g}, not to 1" if is_near_one else "do not add up to 1"


def real_number(value: object) -> float:
    """A number as a float, and NaN, which is in no range, for anything else.

    >>> real_number(1), real_number("5 %"), real_number(True)
    (1.0, nan, nan)
    """
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan


def real_numbers(values: npt.ArrayLike) -> Array:
    """Numbers as an array of floats, and a single NaN for what cannot be one: no message shows an entry.

    >>> real_numbers([1, 2]), real_numbers(["many"])
    (array([1., 2.]), array(nan))
    """
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(math.nan)


def read_only(array: npt.ArrayLike) -> Array:
    """A read-only float copy of an array."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy


def own_integers(argument: str, integers: npt.ArrayLike, dimensions: int) -> Ints:
    """A read-only copy of a list or a matrix of integers, as 64-bit integers.

    >>> own_integers("rows", [0, 1], 1).flags.writeable
    False
    """
    array = np.asarray(integers)
    if array.ndim != dimensions or array.size == 0 or array.dtype.kind not in "iu":
        kind = "a list" if dimensions == 1 else "a matrix"
        raise InvalidInput(argument, NOT_SHOWN, f"{array.dtype} {array.shape}; give {kind} of integers")
    copy = np.array(array, dtype=np.int64)  # numbers from 2**63 on become negative
    copy.flags.writeable = False
    return copy


def has_labels(thing: Any) -> bool:
    """Whether something has labels of its own that numpy would drop: a mapping, a pandas Series, any data frame."""
    return all(hasattr(type(thing), name) for name in ("index", "items")) or any(
        hasattr(type(thing), name) for name in ("keys", "columns", "column_names")
    )


def as_matrix(argument: str, rows: npt.ArrayLike, error: type[InvalidInput], each_row: str) -> Array:
    """A read-only copy of a matrix with at least one entry; an `error` if it is not one, or has labels."""
    advice = f"give a matrix of numbers, a row for each {each_row}"
    if has_labels(rows) or (isinstance(rows, Sequence) and any(map(has_labels, rows))):
        labelled = (
            f"type {type(rows).__name__}, whose labels would be lost; {advice}, as a list or a numpy array"
        )
        raise error(argument, NOT_SHOWN, labelled)
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
    ratios = [p.as_integer_ratio() for p in probabilities.tolist()]
    common = max(denominator for _, denominator in ratios)
    numbers = [numerator * (common // denominator) for numerator, denominator in ratios]
    divisor = math.gcd(*numbers) or 1
    return tuple(n // divisor for n in numbers)


def whole_numbers(fractions: Sequence[Fraction]) -> list[int]:
    """The fractions times their least common denominator.

    >>> whole_numbers([Fraction(1, 2), Fraction(2, 3)])
    [3, 4]
    """
    common = math.lcm(*(fraction.denominator for fraction in fractions))
    return [int(fraction * common) for fraction in fractions]


def exact_product(rows: Sequence[Sequence[int]], table: Ints) -> list[list[int]]:
    """The product of two matrices of integers, exactly.

    >>> exact_product([[2**80, 1]], np.array([[1, 0], [3, 1]])) == [[2**80 + 3, 1]]
    True
    """
    product = fmpz_mat(rows) * fmpz_mat(table.tolist())
    return [[int(v) for v in row] for row in product.tolist()]


def centre_rows(rows: Array, P: Array) -> tuple[Array, Array]:
    """The rows less their means under a distribution, and the means.

    The first number of each row is subtracted first, since a large part that all numbers share would leave few digits.

    >>> centre_rows(np.array([[1e15, 1e15 + 1]]), np.array([0.75, 0.25]))[0].tolist()
    [[-0.25, 0.75]]
    """
    centred = np.subtract(rows, rows[:, :1], dtype=np.float64)
    means = centred @ P
    centred -= means[:, None]
    return centred, rows[:, 0] + means
