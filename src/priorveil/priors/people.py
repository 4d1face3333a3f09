"""Columns with the values of people, from which priors and secrets are made. No message shows a value."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import Any

from priorveil.errors import NOT_SHOWN, InvalidInput
from priorveil.frames import as_column
from priorveil.priors.domain import Labels, as_label
from priorveil.priors.label_texts import Label, label_parts


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
