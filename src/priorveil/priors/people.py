"""Columns with the values of people, from which priors and secrets are made. No message shows a value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.frames import Column, as_column
from priorveil.priors.domain import Labels, as_label
from priorveil.priors.label_texts import Label, label_parts
from priorveil.priors.number_domains import NumberDomain

_DIGITS = 9  # of sums of shares: 50 people at a fifth are ten, not 9.999999999999998


def people_labels(argument: str, column: Any) -> list[Label]:
    """The labels in a column with a value for each person. An error names the row and never shows the value."""
    entries = as_column(column, argument)
    values = entries if isinstance(entries, list) else entries.tolist()
    labels = []
    advice = "a value is a string or a whole number: group decimals in ranges, leave missing values out"
    for row, value in enumerate(values):
        with suppress(InvalidInput):
            labels.append(as_label(value))
        if len(labels) == row or any(isinstance(level, float) for level in label_parts(labels[row])):
            raise InvalidInput(f"{argument}[{row}]", NOT_SHOWN, f"type {type(value).__name__}; {advice}")
    return labels


def number_masses(
    parts: Mapping[str, Column], numbers: Mapping[str, NumberDomain], others: Mapping[str, Sequence[Label]]
) -> dict[Any, float]:
    """How many people have each tuple of levels, where some attributes are numbers.

    Somebody between two points of a grid counts at both, in the shares in which the number is rounded.

    >>> from priorveil.priors.number_domains import Grid
    >>> parts = {"home": ["rent", "rent"], "hours": [0, 5]}
    >>> number_masses(parts, {"hours": Grid([0, 20])}, {"home": ["rent", "rent"]})
    {('rent', 0.0): 1.75, ('rent', 20.0): 0.25}
    """
    people: list[
        list[tuple[list[Any], Array | None]]
    ] = []  # for each attribute, its levels with their shares
    for name, part in parts.items():
        people.append(
            numbers[name].level_shares(name, part) if name in numbers else [(list(others[name]), None)]
        )
    masses: defaultdict[Any, float] = defaultdict(float)
    for choice in product(*people):
        shares = np.prod([share for _, share in choice if share is not None], axis=0)
        tuples = zip(*(levels for levels, _ in choice), strict=True)
        for cell, share in zip(tuples, np.broadcast_to(shares, len(choice[0][0])).tolist(), strict=True):
            masses[cell] += share
    return {cell: round(mass, _DIGITS) for cell, mass in masses.items() if mass}


def complete_domain(observed: Iterable[Label], domain: Iterable[Hashable] | None) -> list[Label]:
    """The `domain`, which has to hold all observed labels; by default those, numbers before words.

    >>> complete_domain(["b", 2, "a"], None)
    [2, 'a', 'b']
    """
    if domain is None:
        return sorted(set(observed), key=lambda label: [(isinstance(p, str), p) for p in label_parts(label)])
    labels = list(Labels(domain).labels)
    allowed = set(labels)
    outside = next((row for row, label in enumerate(observed) if label not in allowed), None)
    if outside is not None:
        advice = "not in the domain: add it there, or leave it out"
        raise InvalidInput(f"values[{outside}]", NOT_SHOWN, advice)
    return labels
