"""Labels of values: strings, numbers, or tuples with a level of each of several attributes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Literal

import numpy as np

from priorveil.arrays import Array
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, InvalidPrior, TooLarge, plural
from priorveil.formatting import number_text
from priorveil.priors.number_labels import NumberLabels

Level = str | int | float
Label = Level | tuple[Level, ...]
Impossible = Literal["refuse", "leave out"]

_MOST_CELLS = 1_000_000  # combinations of levels
_FIRST = 10  # labels that are shown
_LEAVE_OUT = Hint("impossible='leave out'", purpose="to declare that they cannot happen")
SMOOTH = Hint("smoothing=1 (0.001 for probabilities)", purpose="to add a number to every cell")
SMOOTH_RARE = Hint(
    "smoothing=1 and allow_rare=True", purpose="to add one to every cell, and publish rare ones"
)


def as_label(label: Hashable) -> Label:
    """The label as a string, a finite number or a tuple of them; an error if it is none of these."""
    plain: Any = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, tuple) and plain and not any(isinstance(part, tuple) for part in plain):
        parts: tuple[Any, ...] = tuple(map(as_label, plain))
        return parts
    if isinstance(plain, str) or (isinstance(plain, int) and not isinstance(plain, bool)):
        return plain
    if isinstance(plain, float) and math.isfinite(plain):
        return plain
    raise InvalidInput("labels", label, "a label is a string, a finite number, or a tuple of them")


def as_labels(labels: Iterable[Hashable] | None, size: int) -> tuple[Label, ...]:
    """The labels as a tuple, checked; None gives the positions 0, 1, 2, ..."""
    if labels is None:
        return tuple(range(size))
    if isinstance(labels, NumberLabels | AttributeLabels) and len(labels) == size:
        return labels
    names = tuple(as_label(label) for label in labels)
    if len(names) != size:
        raise InvalidInput("labels", names, f"give one label for each of the {size} values")
    if len(set(names)) != size:
        repeated = [name for name, n in Counter(names).items() if n > 1]
        raise InvalidInput("labels", repeated, "every label may occur once only")
    return names


def label_parts(label: Label) -> tuple[Level, ...]:
    """The levels of a tuple; any other label as the only level."""
    return label if isinstance(label, tuple) else (label,)


def label_text(label: Label) -> str:
    """The label as people read it.

    >>> label_text(("18-24", "yes")), label_text(7), label_text(50.0)
    ('18-24, yes', '7', '50')
    """
    return ", ".join(number_text(p) if isinstance(p, float) else str(p) for p in label_parts(label))


def first_labels(labels: Sequence[Label], shares: Sequence[float] | None = None) -> str:
    """The first few labels of a prior or a plan, which are public, in one line; with their shares if given.

    >>> first_labels(["a", "b"], [0.25, 0.75]), first_labels([("young", "yes"), ("old", "no")])
    ('a 0.25, b 0.75', 'young, yes; old, no')
    >>> first_labels(range(12))
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more'
    """
    texts = list(map(label_text, labels[:_FIRST]))
    if shares is not None:
        texts = [f"{text} {share:.2g}" for text, share in zip(texts, shares, strict=False)]
    more = f" and {len(labels) - len(texts):,} more" if len(labels) > len(texts) else ""
    return ("; " if isinstance(labels[0], tuple) else ", ").join(texts) + more


def named_levels(text: str, names: Sequence[str]) -> dict[str, str]:
    """The level of each attribute that the name of a cell of a margin has; none for other names of statistics.

    >>> named_levels("age=young, job=cook, baker", ["age", "job"]), named_levels("up to 3", ["age"])
    ({'age': 'young', 'job': 'cook, baker'}, {})
    """
    each = "|".join(map(re.escape, names))
    return dict(re.findall(rf"(?:^|, )({each})=(.*?)(?=$|, (?:{each})=)", text))


def label_to_json(label: Label) -> Any:
    """The label in a document, where a tuple is a list and a float is a text in an object.

    >>> label_to_json(("a", 1)), label_to_json(0.5)
    (['a', 1], {'number': '0.5'})
    """
    if isinstance(label, tuple):
        return [label_to_json(part) for part in label]
    return {"number": repr(label)} if isinstance(label, float) else label


def label_from_json(label: Any) -> Any:
    """The label from a document."""
    if isinstance(label, list):
        return tuple(map(label_from_json, label))
    return float(label["number"]) if isinstance(label, Mapping) else label


def labels_document(labels: Sequence[Label]) -> Any:
    """All labels as JSON: a list, with the names of attributes if there are any; the points or edges of numbers."""
    if isinstance(labels, NumberLabels):
        return labels.document()
    listed = [label_to_json(label) for label in labels]
    names = labels.names if isinstance(labels, AttributeLabels) else None
    return listed if names is None else {"kind": "attributes", "names": list(names), "cells": listed}


def read_labels(document: Any) -> tuple[Label, ...]:
    """Read all labels from their JSON document."""
    if not isinstance(document, Mapping):
        listed = list(map(label_from_json, document))
        return as_labels(listed, max(1, len(listed)))
    if document["kind"] != "attributes":
        return NumberLabels.read(document)
    return AttributeLabels.of(map(label_from_json, document["cells"]), document["names"])


# -- several attributes ----------------------------------------------------------------------------------------


class AttributeLabels(tuple[Any, ...]):
    """The labels of a prior of several attributes: tuples with a level of each. `names` are those of the attributes.

    >>> AttributeLabels.of([("young", 1), ("old", 2)], ["age", "dose"]).levels
    {'age': ('young', 'old'), 'dose': (1, 2)}
    """

    names: tuple[str, ...]

    @classmethod
    def of(cls, cells: Iterable[Hashable], names: Iterable[str]) -> AttributeLabels:
        """The cells with the names of their attributes; an error if they do not fit."""
        checked = () if isinstance(names, str) else tuple(names)
        different = {name for name in checked if isinstance(name, str)}
        if not checked or len(different) < len(checked):
            raise InvalidInput("names", names, "give different names, one for each attribute")
        listed = list(cells)
        labels = cls(as_labels(listed, max(1, len(listed))))
        if not all(isinstance(label, tuple) and len(label) == len(checked) for label in labels):
            raise InvalidInput("names", checked, "every value has to be a tuple with a level for each name")
        labels.names = checked
        return labels

    @property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """The levels of each attribute by its name, in the order of their appearance."""
        columns = (tuple(dict.fromkeys(column)) for column in zip(*self, strict=True))
        return dict(zip(self.names, columns, strict=True))

    def margin(self, attributes: Sequence[str]) -> tuple[list[tuple[Level, ...]], Array]:
        """The combinations of the levels of some attributes, and a row for each: one where a value has it.

        >>> AttributeLabels.of([("young", 1), ("old", 1), ("old", 2)], ["age", "dose"]).margin(["dose"])
        ([(1,), (2,)], array([[1., 1., 0.],
               [0., 0., 1.]]))
        """
        if not attributes or len(set(attributes)) < len(attributes) or not set(attributes) <= set(self.names):
            raise InvalidInput("attributes", attributes, f"choose different ones of {', '.join(self.names)}")
        places = [self.names.index(name) for name in attributes]
        own = [tuple(label[place] for place in places) for label in self]
        index = {cell: i for i, cell in enumerate(dict.fromkeys(own))}
        rows = np.zeros((len(index), len(own)))
        rows[[index[cell] for cell in own], range(len(own))] = 1.0
        return list(index), rows


def all_cells(cells: Sequence[Label]) -> list[Any]:
    """All combinations of the levels in these cells, which are tuples; levels are in the order of their appearance.

    >>> all_cells([("a", 1), ("b", 2)])
    [('a', 1), ('a', 2), ('b', 1), ('b', 2)]
    """
    levels = [list(dict.fromkeys(column)) for column in zip(*map(label_parts, cells), strict=True)]
    if (size := math.prod(map(len, levels))) > _MOST_CELLS:
        advice = "leave out what is impossible, or group levels"
        raise TooLarge(f"the attributes have {size:,} combinations of levels: {advice}", _LEAVE_OUT)
    return list(product(*levels))


def joint_cells(
    cells: Any, names: Iterable[str], impossible: Impossible, smoothing: float | None
) -> tuple[AttributeLabels, list[Any]]:
    """All combinations of levels, or those of mass above zero if the others are left out; and their masses."""
    if not isinstance(cells, Mapping):
        advice = f"type {type(cells).__name__}; for several attributes give a mapping from tuples of levels to numbers"
        raise InvalidPrior("probabilities", NOT_SHOWN, advice)
    given = AttributeLabels.of(cells, names)
    listed = given if impossible == "leave out" else all_cells(given)
    possible = possible_cells({cell: cells.get(cell, 0) for cell in listed}, impossible, smoothing)
    return AttributeLabels.of(possible, given.names), list(possible.values())


def possible_cells(
    cells: dict[Label, Any],
    impossible: str,
    smoothing: float | None,
    smooth: Hint = SMOOTH,
    show: bool = True,
) -> dict[Label, Any]:
    """The cells without those of mass zero, if `impossible` leaves them out; an error otherwise, unless smoothed.

    The error recommends to `smooth`, and shows the first cells of mass zero if these are public.
    """
    if impossible not in ("refuse", "leave out"):
        raise InvalidInput("impossible", impossible, "choose 'refuse' or 'leave out'")
    if impossible == "leave out":
        if smoothing is not None:
            raise InvalidInput(
                "smoothing", smoothing, "add to every cell, or leave out those of zero: not both"
            )
        return {cell: mass for cell, mass in cells.items() if mass}
    zeros = [cell for cell, mass in cells.items() if not mass]
    if zeros and smoothing is None:
        has = "has" if len(zeros) == 1 else "have"
        advice = f"{len(zeros):,} of {plural(len(cells), 'cell')} {has} probability zero, which cannot be protected"
        shown = f": {first_labels(zeros)}" if show else ""
        raise InvalidPrior("probabilities", NOT_SHOWN, f"{advice}{shown}", smooth, _LEAVE_OUT)
    return cells


# -- people's own values ---------------------------------------------------------------------------------------


def people_labels(argument: str, column: Any) -> list[Label]:
    """The labels in a column with a value for each person. An error names the row and never shows the value."""
    values = column.to_pylist() if hasattr(column, "to_pylist") else column  # Arrow
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        advice = f"type {type(values).__name__}; give a column with a value for each person"
        raise InvalidInput(argument, NOT_SHOWN, advice)
    labels = []
    advice = "a value is a string or a whole number: group decimals in ranges, leave missing values out"
    for row, value in enumerate(values):
        with suppress(InvalidInput):
            labels.append(as_label(value))
        if len(labels) == row or any(isinstance(level, float) for level in label_parts(labels[row])):
            raise InvalidInput(f"{argument}[{row}]", NOT_SHOWN, f"type {type(value).__name__}; {advice}")
    return labels


def complete_domain(observed: Iterable[Label], domain: Iterable[Hashable] | None) -> list[Label]:
    """The `domain`, which has to hold all observed labels; by default those, numbers before words.

    >>> complete_domain(["b", 2, "a"], None)
    [2, 'a', 'b']
    """
    if domain is None:
        return sorted(set(observed), key=lambda label: [(isinstance(p, str), p) for p in label_parts(label)])
    listed = list(domain)
    labels = list(as_labels(listed, len(listed)))
    allowed = set(labels)
    outside = next((row for row, label in enumerate(observed) if label not in allowed), None)
    if outside is not None:
        advice = "not in the domain: add it there, or leave it out"
        raise InvalidInput(f"values[{outside}]", NOT_SHOWN, advice)
    return labels


def label_positions(
    labels: Sequence[Label], wanted: Sequence[Label], name: Callable[[Label], Label] = lambda label: label
) -> Sequence[int]:
    """The position of each `wanted` label among as many `labels`; `KeyError` with a label that is missing.

    Labels match if their `name` is the same (`str`: if they are written the same way). They match by position only
    where the names differ and one side has the default labels 0, 1, 2, ...; the points of a grid are never positions.

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
    # A float 0.0 is the point of a grid, not a position.
    sides = [tuple(side) for side in (labels, wanted) if isinstance(side[0], int)]
    if tuple(positions) in sides and index.keys() != set(names):
        return positions
    return [index[label] for label in names]
