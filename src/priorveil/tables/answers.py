"""Answers to a campaign in columns, one for each question: the levels of all attributes, row by row.

This is `Campaign.attribute_values` for many people at once. A question that the earlier answers of a row skip is not
looked at in that row. Every other question has to have an answer, whether or not its part is drawn later. If a refusal
depended on the draw, the people who are asked about a part would not be a random sample of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Mask
from priorveil.files.batches import Batch
from priorveil.frames import Column, Indices, take
from priorveil.priors import Domain
from priorveil.priors.domain import OUTSIDE, Codes
from priorveil.questions.campaign import Campaign
from priorveil.questions.question import NOT_ASKED, Question
from priorveil.tables.refusals import Reasons, refused_rows
from priorveil.tables.substitutes import Substitutes


def attribute_columns(
    campaign: Campaign, batch: Batch, substitutes: Substitutes, counts: Counter[str]
) -> tuple[dict[str, npt.NDArray[Any]], Reasons]:
    """The levels of every attribute, and why rows are refused: the question, and what is wrong with its answer.

    >>> from priorveil import Prior
    >>> from priorveil.questions.campaign import ask
    >>> campaign = ask("Smoke?", Prior({"yes": 0.2, "no": 0.8}))
    >>> levels, reasons = attribute_columns(campaign, Batch({"answer": ["no", None]}, 2), Substitutes(), Counter())
    >>> levels["answer"].tolist(), reasons.tolist()
    (['no', None], [None, 'answer: missing'])
    """

    def fill(column: Column, domain: Domain) -> Column:
        return substitutes.fill(column, domain, counts)

    all_reasons = np.full(batch.rows, None, dtype=object)
    chosen: dict[str, Codes] = {}  # the option of each row, by question; negative where there is none
    levels: dict[str, npt.NDArray[Any]] = {}
    for question in campaign.questions:
        asked = np.flatnonzero(_is_asked(question, campaign, chosen, batch.rows))
        column = take(batch.columns[question.name], asked)
        answers = question.read_column(column, campaign.domains, fill)
        for attribute, own in answers.levels.items():
            levels[attribute] = _scatter(own, asked, batch.rows, NOT_ASKED)
        if answers.options is not None:
            chosen[question.name] = _scatter(answers.options, asked, batch.rows, OUTSIDE)
        for at in refused_rows(answers.reasons).tolist():
            if all_reasons[asked[at]] is None:
                all_reasons[asked[at]] = f"{question.name}: {answers.reasons[at]}"
    return levels, all_reasons


def _scatter(entries: npt.NDArray[Any], indices: Indices, rows: int, absent: Any) -> npt.NDArray[Any]:
    """A column with entries in some rows, and `absent` in all others."""
    if len(entries) == rows:
        return entries
    column = np.full(rows, absent, dtype=entries.dtype)
    column[indices] = entries
    return column


def _is_asked(question: Question, campaign: Campaign, chosen: Mapping[str, Codes], rows: int) -> Mask:
    """In which rows the earlier answers ask a question: `Question.is_asked` for columns."""
    asked = np.ones(rows, dtype=bool)
    for gate, codes in question.asked_if.items():
        options = next(other.gate_codes for other in campaign.questions if other.name == gate)
        asked &= np.isin(chosen[gate], [options.index(code) for code in codes])
    return asked
