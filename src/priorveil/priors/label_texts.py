"""Labels of values as texts that people read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from priorveil.formatting import number_text

Level = str | int | float
Label = Level | tuple[Level, ...]

_FIRST = 10  # labels that are shown


def label_parts(label: Label) -> tuple[Level, ...]:
    """The levels of a tuple; any other label as the only level."""
    return label if isinstance(label, tuple) else (label,)


def label_text(label: Label) -> str:
    """The label as people read it.

    >>> label_text(("18-24", "yes")), label_text(7), label_text(50.0)
    ('18-24, yes', '7', '50')
    """
    return ", ".join(number_text(p) if isinstance(p, float) else str(p) for p in label_parts(label))


def label_names(labels: Sequence[Label]) -> list[tuple[str, ...]]:
    """The text of each level of each label.

    >>> label_names([("18-24", 1.0), ("25+", 2.0)]), label_names(["a"])
    ([('18-24', '1'), ('25+', '2')], [('a',)])
    """
    return [tuple(map(label_text, label_parts(label))) for label in labels]


def label_columns(labels: Sequence[Label], names: Sequence[str] | None) -> dict[str, list[Label]]:
    """The levels of each attribute by its name; without names, the labels under `value`.

    >>> label_columns([("young", 1), ("old", 2)], ["age", "size"]), label_columns(["a"], None)
    ({'age': ['young', 'old'], 'size': [1, 2]}, {'value': ['a']})
    """
    if names:
        return {name: [label_parts(label)[i] for label in labels] for i, name in enumerate(names)}
    return {"value": [label_text(x) if isinstance(x, tuple) else x for x in labels]}


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
