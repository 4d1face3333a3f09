"""Substitutes: labels that stand for empty cells, and for values that are none of the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from priorveil.errors import InvalidInput
from priorveil.frames import Column, distinct
from priorveil.priors import Domain, Label
from priorveil.priors.domain import MISSING, NOT_IN_DOMAIN, no_words
from priorveil.priors.label_texts import first_labels


@dataclass(frozen=True)
class Substitutes:
    """The label that an empty cell counts as, and the one of a value that is not among the labels; None: refused.

    They apply to every attribute that has the label. Another spelling of a label stays refused, because it is most
    likely a mistake, and so does what is not a number.

    >>> from priorveil.priors.domain import LabelDomain
    >>> counts = Counter()
    >>> domain = LabelDomain(["yes", "no", "other"])
    >>> Substitutes(other="other").fill(["no", "maybe", "YES", None], domain, counts), counts
    (['no', 'other', 'YES', None], Counter({'other': 1}))
    """

    missing: Label | None = None
    other: Label | None = None

    def require_known(self, domains: Collection[Domain]) -> None:
        """Refuse a label that none of the domains has."""
        for argument, label in (("missing", self.missing), ("other", self.other)):
            if label is not None and all(_label_in(d, label) is None for d in domains):
                each = (domain.labels for domain in domains if domain.resolution is None)
                labels = list(dict.fromkeys(chain.from_iterable(each)))
                advice = (
                    f"choose one of {first_labels(labels)}"
                    if labels
                    else "a plan about numbers has no labels"
                )
                raise InvalidInput(argument, label, advice)

    def missing_in(self, domain: Domain) -> Label | None:
        """The label of an empty cell, if this domain has it."""
        return _label_in(domain, self.missing)

    def fill_all(self, columns: Sequence[Column], domain: Domain, counts: Counter[str]) -> list[Column]:
        """The columns of all attributes of a domain, filled."""
        parts = domain.attributes.values() or [domain]
        return [self.fill(column, part, counts) for column, part in zip(columns, parts, strict=True)]

    def fill(self, column: Column, domain: Domain, counts: Counter[str]) -> Column:
        """The column with labels in place of what they stand for; `counts` adds up how many they replace."""
        missing, other = self.missing_in(domain), _label_in(domain, self.other)
        if missing is None and other is None:
            return column
        entries, indices = distinct(column)
        codes = domain.encode([entries], no_words)
        is_other = domain.reasons([entries]) == NOT_IN_DOMAIN
        filled: list[Any] = [*entries, None]
        replaced = np.zeros(len(filled), dtype=np.int64)
        if missing is not None:
            for at in [*np.flatnonzero(codes == MISSING).tolist(), len(entries)]:
                filled[at], replaced[at] = missing, 1
        if other is not None:
            for at in np.flatnonzero(is_other).tolist():
                filled[at], replaced[at] = other, 2
        rows = replaced[indices]
        for number, name in enumerate(("missing", "other"), 1):
            if count := int((rows == number).sum()):
                counts[name] += count
        return [filled[index] for index in indices.tolist()]


def _label_in(domain: Domain, label: Label | None) -> Label | None:
    """The label if the domain has it. A number is a value, not a label that could stand for others."""
    known = label is not None and domain.resolution is None and domain.encode([[label]], no_words)[0] >= 0
    return label if known else None
