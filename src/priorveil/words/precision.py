"""How precise an answer will be: half widths in words."""

from __future__ import annotations

from priorveil.reading.precision import Precision
from priorveil.reading.precision_notes import promised_precision
from priorveil.words.notes import note_text


def precision_text(precision: Precision) -> str:
    """What is known about the population and, leaning on the prior, about these people."""
    return note_text(promised_precision(precision))
