"""Names next to the axes of pictures: short ones, and no more than fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

_LONGEST_NAME = 30  # letters


def short_name(name: str) -> str:
    """A name that has room next to an axis: only the levels of a margin of several attributes, and a long name cut.

    >>> short_name("a"), short_name("professional, scientific and technical services")
    ('a', 'professional, sc…ical services')
    >>> short_name("work=Private, income=>=80K"), short_name("income=>=80K")
    ('Private, >=80K', 'income=>=80K')
    """
    word = " ".join(name.split())
    parts = word.split(", ")
    if len(parts) > 1 and all("=" in part for part in parts):  # the attributes are next to the axis
        word = ", ".join(part.partition("=")[2] for part in parts)
    word = word if len(word) <= _LONGEST_NAME else f"{word[: _LONGEST_NAME - 14]}…{word[-13:]}"
    return word.replace("$", r"\$")  # matplotlib would read a formula


def ticks(names: Sequence[str], most: int) -> tuple[range, list[str]]:
    """Places on an axis, and the names to write there: at most this many, evenly spaced.

    >>> ticks(["a", "b", "c"], 2)
    (range(0, 3, 2), ['a', 'c'])
    """
    places = range(0, len(names), math.ceil(len(names) / most))
    return places, [short_name(names[place]) for place in places]
