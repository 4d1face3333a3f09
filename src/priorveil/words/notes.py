"""The sentences of notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from priorveil.catalogue import say
from priorveil.formatting import level_at_most, p_value_text, percent, round_up
from priorveil.notes import Note
from priorveil.priors import Label
from priorveil.priors.label_texts import first_labels, label_text


def people_text(people: float) -> str:
    """A number of people, with two digits and rounded up.

    >>> people_text(12345.6), people_text(3.4)
    ('13,000 people', '4 people')
    """
    return say("people", count=round_up(math.ceil(people)))


def _labels_text(labels: Sequence[Label]) -> str:
    return first_labels(labels) if labels else say("noValue")


_VALUE_TEXTS: dict[str, Callable[[Any], str]] = {  # by the name of the value
    "assumes": lambda notes: "; ".join(map(str, notes)),
    "bottom": _labels_text,
    "change": lambda share: f"{100 * share:.2g}",
    "clusters": "{:,}".format,
    "confidence": percent,
    "count": "{:,}".format,
    "errors": "{:.1f}".format,
    "first": label_text,
    "freedom": "{:,}".format,
    "high": "{:,.12g}".format,
    "label": label_text,
    "ldp": level_at_most,
    "lip": level_at_most,
    "level": level_at_most,
    "limit": "{:g}".format,
    "low": "{:,.12g}".format,
    "p_value": p_value_text,
    "people": people_text,
    "second": label_text,
    "share": "{:g}".format,
    "shortfall": "{:.1g}".format,
    "strata": "{:,}".format,
    "times": "{:.1f}".format,
    "top": _labels_text,
    "width": round_up,
}


def note_text(note: Note) -> str:
    """The sentence of a note."""
    return say(note.code, **{name: _value_text(name, value) for name, value in note.values.items()})


def _value_text(name: str, value: Any) -> str:
    return note_text(value) if isinstance(value, Note) else _VALUE_TEXTS.get(name, str)(value)


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def reports_text(count: int) -> str:
    """A number of reports."""
    return say("countOfOneReport" if count == 1 else "countOfReports", count=f"{count:,}")


def interval_title(confidence: float) -> str:
    """The name of intervals that hold the truth with this probability.

    >>> interval_title(0.95)
    '95 % interval'
    """
    return say("intervalHead", confidence=percent(confidence))
