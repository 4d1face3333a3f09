"""Weights of labels: numbers for all of them, a list of labels, or a mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Array
from priorveil.errors import InvalidInput
from priorveil.frames import is_series
from priorveil.priors import Label
from priorveil.priors.domain import as_label
from priorveil.priors.label_texts import first_labels

LabelWeights = Sequence[float] | Sequence[Label] | Mapping[Label, float] | npt.NDArray[Any]


def weights_of(
    argument: str,
    weights: LabelWeights,
    labels: Sequence[Label],
    more: Sequence[Label] = (),
    complete: bool = False,
) -> Array:
    """A weight for each label: as given, or one for each label of a list or a set, or those of a mapping.

    They may name `more` labels, whose weights come last. With `complete` every label needs a number, and a list has
    numbers only.

    >>> weights_of("weights", ["b"], ("a", "b")), weights_of("weights", [2, 3], ("a", "b"))
    (array([0., 1.]), array([2., 3.]))
    """
    all_labels, each = (*labels, *more), f"{len(labels)} numbers, one for each of {first_labels(labels)}"
    if isinstance(weights, str) or not np.iterable(weights):
        labelled = "" if complete else "a list of labels, also for a single one, or "
        raise InvalidInput(argument, weights, f"give {labelled}{each}")
    if is_series(weights):
        weights = dict(weights.items())  # type: ignore[union-attr]
    entries = list(weights.values() if isinstance(weights, Mapping) else weights)
    numbers = all(isinstance(entry, Real | np.bool_) for entry in entries) and not isinstance(weights, Set)
    if isinstance(weights, Mapping):
        by_label: Mapping[Any, Any] = weights
    elif numbers and len(entries) == len(labels):
        by_label = dict(zip(labels, entries, strict=True))
    elif complete or (numbers and not set(entries) <= set(all_labels)):
        raise InvalidInput(argument, weights, f"give {each}")
    else:
        by_label = dict.fromkeys(map(as_label, entries), 1.0)
    if unknown := set(by_label) - set(all_labels):
        some, first = [*more[:3], *labels[:3]], next(x for x in by_label if x in unknown)
        advice = f"no label is {first!r}: give labels such as {str(some)[1:-1]}, or a number for each of {len(labels)}"
        raise InvalidInput(argument, weights, advice)
    try:
        row = np.array(
            [by_label.get(label, np.nan if complete else 0.0) for label in all_labels], dtype=np.float64
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(argument, weights, "give finite numbers") from error
    if not np.isfinite(row).all():
        raise InvalidInput(
            argument, weights, f"give finite numbers{', one for each value' if complete else ''}"
        )
    return row
