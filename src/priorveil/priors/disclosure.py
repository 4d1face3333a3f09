"""What a prior made from people's own values may publish: few values, none of them rare, and rounded shares.

A plan is public, and so is its prior. These rules prevent accidents; they are no guarantee. Only `noisy_counts`
gives one: differential privacy at a stated level.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from priorveil.arrays import whole_numbers
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, plural

MOST_VALUES = 100  # more distinct values than this are probably the people's own numbers or names
FEWEST_PEOPLE = 10  # a value of fewer people is rare
_DIGITS = 2  # significant digits of a published share

_LIST = Hint("domain=[...]", purpose="to list the allowed values")
_MERGE = Hint("merge_rare='other'", purpose="to merge them")
_PUBLISH = Hint("allow_rare=True", purpose="to publish them anyway")
_DECLARE = Hint("public=True", purpose="if the values found and their shares may be published")

L = TypeVar("L", bound=Hashable)
RandomBelow = Callable[[int], int]  # a uniform whole number from 0 up to below its argument


def require_few_values(number: int) -> None:
    """Refuse to publish more than a hundred distinct values that were found in data."""
    if number > MOST_VALUES:
        advice = f"{number:,} distinct values of people would be published, and more than {MOST_VALUES} are refused"
        raise InvalidInput("values", NOT_SHOWN, f"{advice}: group them", _LIST, _DECLARE)


def require_no_rare(people: Sequence[float], merged: bool = False, what: str = "value") -> None:
    """Refuse to publish shares of fewer than ten people; `merged` says that rare values have been merged."""
    rare = sum(count < FEWEST_PEOPLE for count in people)
    if not rare:
        return
    few, verb = f"fewer than {FEWEST_PEOPLE} people", "has" if rare == 1 else "have"
    advice = f"{rare:,} of {plural(len(people), what)} {verb} {few}"
    if merged:
        advice = f"all rare values together have {few}: merge them into a frequent one"
    hints = [] if merged or what != "value" else [_MERGE]
    raise InvalidInput("values", NOT_SHOWN, advice, *hints, _PUBLISH)


def require_two_values(number: int, merged: bool = False) -> None:
    """Refuse a prior of a single value; `merged` says that others were merged into it."""
    if number < 2 and merged:
        advice = "only one is left after rare values were merged: merge them under a label of their own"
        raise InvalidInput("values", NOT_SHOWN, advice)
    if number < 2:
        raise InvalidInput("values", NOT_SHOWN, "all people have the same one, and a prior needs two", _LIST)


def require_public(prior_epsilon: float, public: bool) -> None:
    """Refuse to add noise to the counts of values that are not public."""
    if not public:
        advice = "noise hides who has a value, not which values occur, so these must be public"
        raise InvalidInput("prior_epsilon", prior_epsilon, advice, _LIST, _DECLARE)


def merge_rare_values(counts: Mapping[L, int], label: L) -> dict[L, int]:
    """The counts, with all values of fewer than ten people added up under one label.

    >>> merge_rare_values({"a": 40, "b": 7, "c": 5}, "other")
    {'a': 40, 'other': 12}
    """
    merged = {value: count for value, count in counts.items() if count >= FEWEST_PEOPLE or value == label}
    rest = sum(count for value, count in counts.items() if value not in merged)
    return {**merged, label: merged.get(label, 0) + rest} if len(merged) < len(counts) else merged


def round_weights(weights: Sequence[int]) -> list[int]:
    """Integers in the proportions of the weights' shares, each share rounded to two significant digits.

    >>> round_weights([1238, 412, 2])  # 0.75, 0.25 and 0.0012
    [1875, 625, 3]
    """
    total = sum(weights)
    return whole_numbers([Fraction(f"{weight / total:.{_DIGITS - 1}e}") for weight in weights])


def noisy_counts(
    counts: Mapping[L, int], prior_epsilon: float, random_below: RandomBelow = secrets.randbelow
) -> dict[L, int]:
    """The counts with two-sided geometric noise: `Pr(noise = k)` is proportional to `exp(-prior_epsilon |k|)`.

    One person added or removed changes one count by one, so the result is differentially private at
    level `prior_epsilon` if the values are public (Ghosh, Roughgarden and Sundararajan 2009). Counts may become
    negative.
    """
    if not isinstance(prior_epsilon, int | float) or not 0 < prior_epsilon < math.inf:
        raise InvalidInput("prior_epsilon", prior_epsilon, "give a positive number")
    epsilon = Fraction(prior_epsilon)
    return {
        value: count + _geometric(epsilon, random_below) - _geometric(epsilon, random_below)
        for value, count in counts.items()
    }


def _geometric(epsilon: Fraction, random_below: RandomBelow) -> int:
    """A whole number `k` with `Pr(k or more) = exp(-epsilon k)`, exactly (Canonne, Kamath and Steinke 2020).

    With `epsilon = s / t`, draw `x` with `Pr(x or more) = exp(-x / t)`, as a remainder and a multiple of `t`; then
    `k = x // s`.
    """
    s, t = epsilon.numerator, epsilon.denominator
    remainder = random_below(t)
    while not _exponential_coin(remainder, t, random_below):
        remainder = random_below(t)
    multiple = 0
    while _exponential_coin(1, 1, random_below):
        multiple += 1
    return (remainder + t * multiple) // s


def _exponential_coin(numerator: int, denominator: int, random_below: RandomBelow) -> bool:
    """True with probability `exp(-numerator / denominator)`, for a fraction from 0 to 1; von Neumann's method."""
    draws = 1
    while random_below(denominator * draws) < numerator:
        draws += 1
    return draws % 2 == 1
