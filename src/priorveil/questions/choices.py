"""Questions with options: a choice of one of them, or "tick all that apply"."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from priorveil.errors import NOT_SHOWN, InvalidInput, plural
from priorveil.frames import Column, pyarrow
from priorveil.priors import Domain
from priorveil.priors.domain import MISSING, LabelDomain, entry_key, no_words
from priorveil.priors.label_texts import first_labels
from priorveil.questions.question import (
    NOT_ASKED,
    Bounds,
    ColumnAnswers,
    Fill,
    Question,
    refusal_reasons,
)
from priorveil.questions.survey_document import Section
from priorveil.questions.texts import LONGEST_NAME, Text, as_text

YES, NO = "yes", "no"  # the levels of an option of "tick all that apply"


class _WithOptions(Question):
    """What both kinds share: rules of options, and codes as answers."""

    survey_keys = ("options",)
    least_options: ClassVar[int]

    @cached_property
    def option_domain(self) -> LabelDomain:
        """The codes of the options, as values."""
        return LabelDomain(self.options)

    @property
    def queries(self) -> tuple[str, ...]:
        """A survey may ask for their shares only."""
        return ("shares",)

    @classmethod
    def of_survey(cls, section: Section, bounds: Bounds, **common: Any) -> Self:
        """The question in a section of a survey file."""
        return cls(options=section.table("options"), **common)

    def in_languages(self, languages: Sequence[str]) -> Self:
        """The same question with every text in all of these languages."""
        complete = super().in_languages(languages)
        self._check_codes()
        options = {
            code: as_text(f"{self.where}, option {code}", text, languages, ("options", code), 1)
            for code, text in self.options.items()
        }
        LabelDomain(options)  # refuses codes that one value can match, such as 1 and true
        self._refuse_same_text(options, languages)
        return replace(complete, options=options)

    def _check_codes(self) -> None:
        if len(self.options) < self.least_options:
            advice = f"give at least {plural(self.least_options, 'option')} with a code and a text"
            raise InvalidInput(self.where, list(self.options), advice, keys=("options",))
        keys: set[Any] = {entry_key(NOT_ASKED)}
        for code in self.options:
            key = entry_key(code) if isinstance(code, str) and len(code) <= LONGEST_NAME else None
            if key is None or code != code.strip() or key in keys:
                advice = "give each option its own code, a text without blanks around it, and not 'not asked'"
                raise InvalidInput(self.where, code, advice, keys=("options", code))
            keys.add(key)

    def _refuse_same_text(self, options: Mapping[str, Text], languages: Sequence[str]) -> None:
        """Refuse options that people cannot tell apart."""
        for language in languages:
            codes: dict[str, str] = {}
            for code, text in options.items():
                first = codes.setdefault(text[language].strip().casefold(), code)
                if first != code:
                    advice = f"the options {first} and {code} have the same text in {language}: change one"
                    raise InvalidInput(self.where, NOT_SHOWN, advice, keys=("options", code, language))

    def _code_of(self, answer: Any) -> str:
        code = int(self.option_domain.encode([[answer]], no_words)[0])
        if code < 0:
            raise self.refusal("give the code of one of its options")
        return list(self.options)[code]

    def _texts(self, words: Callable[[str | Text], str]) -> str:
        return ", ".join(f"{code}: {words(text)}" for code, text in self.options.items())


@dataclass(frozen=True)
class SingleChoice(_WithOptions):
    """A choice of one option.

    >>> SingleChoice("smokes", "Do you smoke?", {"yes": "Yes", "no": "No"}).attributes
    ('smokes',)
    """

    kind = "choice"
    least_options = 2

    @property
    def gate_codes(self) -> tuple[str, ...]:
        """All its options: other questions may depend on them."""
        return tuple(self.options)

    def read_answer(self, answer: Any, domains: Mapping[str, Domain]) -> str:
        """The code of the option."""
        return self._code_of(answer)

    def read_column(self, column: Column, domains: Mapping[str, Domain], fill: Fill) -> ColumnAnswers:
        """The codes of the options that people chose."""
        domain = self.option_domain
        column = fill(column, domain)
        codes = domain.encode([column], no_words)
        levels = np.array([*self.options, None, None], dtype=object)[codes]
        return ColumnAnswers({self.name: levels}, refusal_reasons(codes, domain, column), codes)

    def describe_answers(self, domains: Mapping[str, Domain], words: Callable[[str | Text], str]) -> str:
        """Its options."""
        return self._texts(words)

    def _levels(self) -> Sequence[str]:
        return tuple(self.options)


@dataclass(frozen=True)
class MultipleChoice(_WithOptions):
    """Any number of options, "tick all that apply". Each option is an attribute, with the levels `YES` and `NO`.

    >>> MultipleChoice("ills", "Which of these?", {"back": "Back pain", "sleep": "Bad sleep"}).attributes
    ('ills/back', 'ills/sleep')
    """

    kind = "choices"
    by_option = True
    least_options = 1

    @property
    def attributes(self) -> tuple[str, ...]:
        """One for each option."""
        return tuple(f"{self.name}/{code}" for code in self.options)

    def option_of(self, attribute: str) -> str:
        """The code of the option that an attribute is about."""
        return attribute.removeprefix(f"{self.name}/")

    def read_answer(self, answer: Any, domains: Mapping[str, Domain]) -> tuple[str, ...]:
        """The codes of the ticked options, in the order of the question."""
        if isinstance(answer, str) or not isinstance(answer, Collection):
            raise self.refusal("give a list of the codes of its options, empty if none applies")
        chosen = {self._code_of(code) for code in answer}
        return tuple(code for code in self.options if code in chosen)

    def _levels_of(self, answer: Any) -> dict[str, Any]:
        return {name: YES if self.option_of(name) in answer else NO for name in self.attributes}

    def read_column(self, column: Column, domains: Mapping[str, Domain], fill: Fill) -> ColumnAnswers:
        """Codes of ticked options with blanks between them, or lists of codes. An empty text: none was ticked."""
        domain, cells = self.option_domain, self._ticked_codes(column)
        entries = [cell or [None] for cell in cells]
        rows = np.repeat(np.arange(len(cells)), [len(entry) for entry in entries])
        ticked = fill([code for entry in entries for code in entry], domain)
        codes = domain.encode([ticked], no_words)
        nothing = np.array([cell == [] for cell in cells], dtype=bool)
        wrong = (codes < 0) & ~((codes == MISSING) & nothing[rows])
        reasons = np.full(len(cells), None, dtype=object)
        reasons[rows[wrong]] = refusal_reasons(codes, domain, ticked)[wrong]
        is_ticked = np.zeros((len(cells), len(domain)), dtype=np.int64)
        is_ticked[rows[codes >= 0], codes[codes >= 0]] = 1
        levels = np.array([NO, YES], dtype=object)[is_ticked.T]
        return ColumnAnswers(dict(zip(self.attributes, levels, strict=True)), reasons)

    def _ticked_codes(self, column: Column) -> list[list[Any] | None]:
        """The codes in every cell; None for a gap among lists."""
        if not isinstance(column, list) and pyarrow().types.is_nested(column.type):
            return [None if cell is None else list(cell) for cell in column.to_pylist()]
        if any(len(code.split()) > 1 for code in self.options):
            advice = "codes of its options have blanks in them: give a column of lists, in Parquet or Arrow"
            raise InvalidInput("column", self.name, advice)
        entries = column if isinstance(column, list) else column.to_pylist()
        return [
            [] if entry_key(entry) is None else entry.split() if isinstance(entry, str) else [entry]
            for entry in entries
        ]

    def describe_answers(self, domains: Mapping[str, Domain], words: Callable[[str | Text], str]) -> str:
        """Its options."""
        return f"all that apply of {self._texts(words)}"

    def _levels(self) -> Sequence[str]:
        return (YES, NO)

    def entries(self, entry: str) -> tuple[str, ...]:
        """Yes or no for each option, from the codes of the ticked ones, separated by blanks or commas."""
        if entry == NOT_ASKED:
            return tuple(NOT_ASKED for _ in self.options)
        ticked = set(re.split(r"[\s,]+", entry.strip())) - {""}
        if not ticked <= set(self.options):
            codes = first_labels(list(self.options))
            advice = f"give some of its codes, with blanks between them: {codes}"
            raise InvalidInput("prior", NOT_SHOWN, advice)
        return tuple(YES if code in ticked else NO for code in self.options)
