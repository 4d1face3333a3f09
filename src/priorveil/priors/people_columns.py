"""Columns with the values of people, from which priors and secrets are made. No message shows a value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np

from priorveil.errors import NOT_SHOWN, InvalidInput, plural
from priorveil.frames import Column, as_column, distinct
from priorveil.priors.domain import BLANKS, as_label, entry_key, with_decimal_points
from priorveil.priors.label_texts import Label, label_parts
from priorveil.priors.number_domains import NumberDomain

_DIGITS = 9  # sums of shares are rounded to these: 50 people at a fifth are ten, not 9.999999999999998


def people_labels(argument: str, column: Any, domain: Iterable[Label] = ()) -> list[Label]:
    """The labels in a column with a value for each person. An error names the row and never shows the value.

    Values are compared as `plan.privatize` compares them: spellings of one value have the label of the `domain`, or the
    first spelling, without blanks around it. A whole float is an integer.

    >>> people_labels("values", ["a", " a ", 8.0, "08"]), people_labels("values", [8, "08"], domain=["8"])
    (['a', 'a', 8, 8], ['8', '8'])
    >>> people_labels("values", ["1,1", "1,10"]), people_labels("values", ["8,0"], domain=["8"])
    (['1,1', '1,10'], ['8'])
    """
    entries, places = distinct(as_column(column, argument))
    keys = [*map(entry_key, entries), None]  # the last one is that of gaps
    missing = np.array([key is None for key in keys])[places]
    if missing.any():
        advice = (
            f"values are missing in {int(missing.sum()):,} of {plural(len(missing), 'row')}: leave them out"
        )
        raise InvalidInput(f"{argument}[{int(np.argmax(missing))}]", NOT_SHOWN, advice)
    domain_labels = {entry_key(label): label for label in domain}
    label_of_key = dict(domain_labels)
    labels: list[Label] = []
    for place, entry in enumerate(entries):
        label = label_of_key.get(keys[place])
        if label is None:
            label = domain_labels.get(entry_key(with_decimal_points(entry)))
        if label is None:
            try:
                label = _label(entry)
            except InvalidInput:
                row = int(np.argmax(places == place))
                raise InvalidInput(f"{argument}[{row}]", NOT_SHOWN, _type_advice(entry)) from None
            label_of_key[keys[place]] = label
        labels.append(label)
    return [labels[place] for place in places.tolist()]


@singledispatch
def _type_advice(entry: Any) -> str:
    """What to do with a value of a type that has no label."""
    return f"type {type(entry).__name__}; a value is a string or a whole number"


@_type_advice.register(float)
@_type_advice.register(Decimal)
@_type_advice.register(Fraction)
@_type_advice.register(np.floating)
def _(entry: Any) -> str:
    numbers = "Prior.grid for means, Prior.cells for shares and quantiles"
    return f"a decimal number: group the numbers as text, or use a prior of numbers ({numbers})"


@_type_advice.register(date)
@_type_advice.register(np.datetime64)
def _(entry: Any) -> str:
    return "a date; write it as text, and as coarsely as the question allows, such as '2024' or '2024-05'"


@singledispatch
def _label(entry: Any) -> Label:
    """The label that a person's value has by default; `InvalidInput` if it has none."""
    return as_label(entry)


@_label.register
def _(entry: str) -> Label:
    return entry.strip(BLANKS)


@_label.register
def _(entry: float) -> Label:
    if not entry.is_integer():
        raise InvalidInput("values", NOT_SHOWN, "not a whole number")
    return int(entry)


@_label.register
def _(entry: np.generic) -> Label:
    return _label(entry.item())


@_label.register
def _(entry: tuple) -> Label:  # type: ignore[type-arg]
    levels: tuple[Any, ...] = tuple(map(_label, entry))
    return as_label(levels)


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
    # For each attribute, the levels that people may have there, with their shares.
    choices: list[Any] = [
        numbers[name].level_shares(name, part) if name in numbers else [(others[name], np.ones(len(part)))]
        for name, part in parts.items()
    ]
    masses: defaultdict[Any, float] = defaultdict(float)
    for choice in product(*choices):
        levels, shares = zip(*choice, strict=True)
        for cell, share in zip(zip(*levels, strict=True), np.prod(shares, axis=0).tolist(), strict=True):
            masses[cell] += share
    return {cell: round(mass, _DIGITS) for cell, mass in masses.items() if mass}


def complete_domain(observed: Iterable[Label], domain: Sequence[Label] | None) -> list[Label]:
    """The `domain`, which has to hold all observed labels; by default those, numbers before words.

    >>> complete_domain(["b", 2, "a"], None)
    [2, 'a', 'b']
    """
    if domain is None:
        return sorted(set(observed), key=lambda label: [(isinstance(p, str), p) for p in label_parts(label)])
    allowed = set(domain)
    outside = next((row for row, label in enumerate(observed) if label not in allowed), None)
    if outside is not None:
        advice = "not in the domain: add it there, or leave it out"
        raise InvalidInput(f"values[{outside}]", NOT_SHOWN, advice)
    return list(domain)
