"""Answers to a campaign in columns, one for each question: the levels of all attributes, row by row.

This is `Campaign.attribute_values` for many people at once. A question that the earlier answers of a row skip is not
looked at in that row. Every other question has to have an answer, whether or not its part is drawn later: if a refusal
depended on the draw, those who were asked about a part would not be a random sample of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Mask
from priorveil.collect.campaign import Campaign
from priorveil.collect.questions import NO, NOT_ASKED, YES, Kind, Question
from priorveil.errors import InvalidInput
from priorveil.frames import Column, Indices, pyarrow, take
from priorveil.priors import Domain
from priorveil.priors.domain import MISSING, OUTSIDE, Codes, entry_key
from priorveil.tables.batches import Batch
from priorveil.tables.refusals import MISSING_ENTRY, Reasons, refused_rows
from priorveil.tables.substitutes import Substitutes, no_words


@dataclass(frozen=True, eq=False)
class _Answers:
    """The answers in a column: the level of each attribute, why rows are refused, and the option of a choice."""

    levels: Mapping[str, npt.NDArray[Any]]
    reasons: Reasons
    options: Codes | None = None


def attribute_columns(
    campaign: Campaign, batch: Batch, substitutes: Substitutes, counts: Counter[str]
) -> tuple[dict[str, npt.NDArray[Any]], Reasons]:
    """The levels of every attribute, and why rows are refused: the question, and what is wrong with its answer.

    >>> from priorveil import Prior
    >>> from priorveil.collect.campaign import ask
    >>> campaign = ask("Smoke?", Prior({"yes": 0.2, "no": 0.8}))
    >>> levels, reasons = attribute_columns(campaign, Batch({"answer": ["no", None]}, 2), Substitutes(), Counter())
    >>> levels["answer"].tolist(), reasons.tolist()
    (['no', None], [None, 'answer: missing'])
    """
    reader = _AnswerReader(campaign.domains, substitutes, counts)
    all_reasons = np.full(batch.rows, None, dtype=object)
    chosen: dict[str, Codes] = {}  # the option of each row, by question; negative where there is none
    levels: dict[str, npt.NDArray[Any]] = {}
    for question in campaign.questions:
        asked = np.flatnonzero(_is_asked(question, campaign, chosen, batch.rows))
        answers = reader.read(question, take(batch.columns[question.name], asked))
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
        domain = next(other.option_domain for other in campaign.questions if other.name == gate)
        asked &= np.isin(chosen[gate], domain.encode([list(codes)], no_words))
    return asked


@dataclass(frozen=True, eq=False)
class _AnswerReader:
    """Reads columns of answers; `counts` adds up how many cells a substitute has replaced."""

    domains: Mapping[str, Domain]
    substitutes: Substitutes
    counts: Counter[str]

    def read(self, question: Question, column: Column) -> _Answers:
        """The answers to a question, in the rows in which it is asked."""
        readers: dict[Kind, Callable[[Question, Column], _Answers]]
        readers = {"choice": self._choice, "choices": self._choices, "number": self._number}
        return readers[question.kind](question, column)

    def _choice(self, question: Question, column: Column) -> _Answers:
        domain = question.option_domain
        column = self.substitutes.fill(column, domain, self.counts)
        codes = domain.encode([column], no_words)
        levels = _entries([*question.options, None, None])[codes]
        return _Answers({question.name: levels}, _reasons(codes, domain, column), codes)

    def _choices(self, question: Question, column: Column) -> _Answers:
        """Ticked options: codes with blanks between them, or lists of codes. An empty text: none was ticked."""
        domain, cells = question.option_domain, _ticked_codes(question, column)
        if self.substitutes.missing_in(domain) is not None:
            cells = [cell or [None] for cell in cells]  # filled below
        sizes = [0 if cell is None else len(cell) for cell in cells]
        ticked = [code for cell in cells if cell is not None for code in cell]
        ticked = self.substitutes.fill(ticked, domain, self.counts)
        codes, rows = domain.encode([ticked], no_words), np.repeat(np.arange(len(cells)), sizes)
        reasons = np.full(len(cells), None, dtype=object)
        reasons[rows[codes < 0]] = _reasons(codes, domain, ticked)[codes < 0]
        reasons[[cell is None for cell in cells]] = MISSING_ENTRY
        is_ticked = np.zeros((len(cells), len(domain)), dtype=np.int64)
        is_ticked[rows[codes >= 0], codes[codes >= 0]] = 1
        levels = _entries([NO, YES])[is_ticked.T]
        return _Answers(dict(zip(question.attributes, levels, strict=True)), reasons)

    def _number(self, question: Question, column: Column) -> _Answers:
        domain = question.number_domain(self.domains)
        numbers, foreign = domain.read_numbers(column)
        codes = domain.mark(numbers, foreign, domain.cells_of(numbers))
        levels = _entries([*domain.labels, None, None])[codes] if question.edges else numbers
        return _Answers({question.name: levels}, _reasons(codes, domain, column))


def _ticked_codes(question: Question, column: Column) -> list[list[Any] | None]:
    """The codes in every cell; None for a gap among lists."""
    if not isinstance(column, list) and pyarrow().types.is_nested(column.type):
        return [None if cell is None else list(cell) for cell in column.to_pylist()]
    if any(len(code.split()) > 1 for code in question.options):
        advice = "codes of its options have blanks in them: give a column of lists, in Parquet or Arrow"
        raise InvalidInput("column", question.name, advice)
    entries = column if isinstance(column, list) else column.to_pylist()
    return [
        [] if entry_key(entry) is None else entry.split() if isinstance(entry, str) else [entry]
        for entry in entries
    ]


def _entries(entries: Sequence[Any]) -> npt.NDArray[Any]:
    """Entries to pick by codes; the last two are for `OUTSIDE` and `MISSING`."""
    return np.array(entries, dtype=object)


def _reasons(codes: Codes, domain: Domain, column: Column) -> Reasons:
    """Why each entry has no code."""
    reasons = np.full(len(codes), None, dtype=object)
    reasons[codes == MISSING] = MISSING_ENTRY
    if (outside := codes == OUTSIDE).any():
        reasons[outside] = domain.reasons([column])[outside]
    return reasons
