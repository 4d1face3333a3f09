"""Questions: what people read and answer, and the attributes that their answers give.

Every text is given in all languages of a campaign. Options are known by their codes, so translations cannot swap them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, PlanError, plural
from priorveil.priors import Domain
from priorveil.priors.domain import NAME_ATTRIBUTES, OUTSIDE, LabelDomain, entry_key
from priorveil.priors.number_domains import Cells, NumberDomain

Text = Mapping[str, str]  # by language
Kind = Literal["choice", "choices", "number"]

NOT_ASKED = "not asked"  # the level of a question that the earlier answers skip
YES, NO = "yes", "no"  # the levels of an option of "tick all that apply"
LONGEST_TEXT = 2000
_LONGEST_CODE = 200
_NAME = re.compile(r"[\w-]{1,200}")
_LANGUAGE = re.compile(r"[a-zA-Z]{2,3}(-[a-zA-Z0-9]{1,8}){0,3}")


@dataclass(frozen=True)
class Question:
    """One question: a choice of one option, choices of any number of options ("tick all that apply"), or a number.

    `name` is its code, and `options` are by code. A plain text is in the campaign's only language. `asked_if` maps
    earlier choices to the codes after which this question is asked: after all others it is skipped, and its answer is
    `NOT_ASKED`. The `edges` of a number put its answers into ranges; without them its plan rounds or sorts it.
    """

    name: str
    text: str | Text
    kind: Kind = "choice"
    options: Mapping[str, str | Text] = field(default_factory=dict)
    hint: str | Text = ""
    unit: str | Text = ""
    asked_if: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    edges: tuple[float, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that an answer gives: one, or one for each option of "tick all that apply"."""
        if self.kind == "choices":
            return tuple(f"{self.name}/{code}" for code in self.options)
        return (self.name,)

    def is_asked(self, answers: Mapping[str, Any]) -> bool:
        """Whether it is asked after these answers, by question: a code, or None for a question that was skipped."""
        return all(answers.get(gate) in codes for gate, codes in self.asked_if.items())

    def read_answer(self, answer: Any, domains: Mapping[str, Domain]) -> Any:
        """The answer as a code, a tuple of codes or a number; refused if it is no answer, and never shown."""
        if self.kind == "number":
            return self._read_number(answer, domains)
        if self.kind == "choice":
            return self._code_of(answer)
        if isinstance(answer, str) or not isinstance(answer, Collection):
            raise self._refusal("give a list of the codes of its options, empty if none applies")
        chosen = {self._code_of(code) for code in answer}
        return tuple(code for code in self.options if code in chosen)

    def levels(self, answer: Any) -> dict[str, Any]:
        """The level of each attribute, from an answer that was read; None for a question that was skipped."""
        if answer is None:
            return dict.fromkeys(self.attributes, NOT_ASKED)
        if self.kind != "choices":
            return {self.name: answer}
        return {f"{self.name}/{code}": YES if code in answer else NO for code in self.options}

    @cached_property
    def option_domain(self) -> LabelDomain:
        """The codes of the options, as values."""
        return LabelDomain(self.options)

    def number_domain(self, domains: Mapping[str, Domain]) -> NumberDomain:
        """The numbers that answer it; `domains` are those of the attributes in its plans."""
        domain = self._ranges() if self.edges else domains[self.name]
        assert isinstance(domain, NumberDomain)  # as `check_domain` has seen
        return domain

    def _code_of(self, answer: Any) -> str:
        code = int(self.option_domain.encode([[answer]], _zeros)[0])
        if code < 0:
            raise self._refusal("give the code of one of its options")
        return list(self.options)[code]

    def _read_number(self, answer: Any, domains: Mapping[str, Domain]) -> Any:
        domain = self.number_domain(domains)
        single = isinstance(answer, str | int | float | np.number) and not isinstance(answer, bool)
        code = int(domain.encode([[answer]], _zeros)[0]) if single else OUTSIDE
        if code < 0:
            raise self._refusal("give a number, such as 12.5")
        return domain.labels[code] if self.edges else answer

    def _ranges(self) -> Cells:
        return Cells(self.edges, "ends")

    def _refusal(self, advice: str) -> InvalidInput:
        return InvalidInput(f"answers[{self.name!r}]", NOT_SHOWN, advice)

    # -- checks ----------------------------------------------------------------------------------------------

    def in_languages(self, languages: Sequence[str]) -> Question:
        """The same question with every text in all of these languages; refused if one is missing."""
        where = f"question {self.name}"
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidInput("name", self.name, "give a question a code of letters, digits, _ and -")
        if self.kind not in get_args(Kind):
            raise InvalidInput(where, self.kind, f"kind: choose one of {', '.join(get_args(Kind))}")
        options = {
            code: as_text(f"{where}, option {code}", text, languages, 1) for code, text in self._codes()
        }
        if options:
            LabelDomain(options)  # refuses codes that one value can match, such as 1 and true
        same = options_with_same_text(options, languages)
        if same is not None:
            first, code, language = same
            advice = f"the options {first} and {code} have the same text in {language}: change one of them"
            raise InvalidInput(where, NOT_SHOWN, advice)
        if self.kind == "number" and self.asked_if and not self.edges:
            advice = (
                "give the edges of ranges: a number that is not always asked needs a place for 'not asked'"
            )
            raise InvalidInput(where, self.edges, advice)
        edges = self._ranges().bounds if self.edges else ()
        return replace(
            self,
            options=options,
            edges=edges,
            text=as_text(where, self.text, languages, 1),
            hint=as_text(f"{where}, hint", self.hint, languages),
            unit=as_text(f"{where}, unit", self.unit, languages),
            asked_if={gate: tuple(codes) for gate, codes in self.asked_if.items()},
        )

    def _codes(self) -> Iterator[tuple[str, str | Text]]:
        """The options, after a check of their codes."""
        least = {"choice": 2, "choices": 1, "number": 0}[self.kind]
        if len(self.options) < least or (self.kind == "number" and self.options):
            advice = "give no options: its plan has the numbers"
            if least:
                advice = f"give at least {plural(least, 'option')} with a code and a text"
            raise InvalidInput(f"question {self.name}", list(self.options), advice)
        if self.kind != "number" and self.edges:
            raise InvalidInput(f"question {self.name}", self.edges, "edges belong to a number")
        keys: set[Any] = {entry_key(NOT_ASKED)}
        for code, text in self.options.items():
            key = entry_key(code) if isinstance(code, str) and len(code) <= _LONGEST_CODE else None
            if key is None or code != code.strip() or key in keys:
                advice = "give each option its own code, a text without blanks around it, and not 'not asked'"
                raise InvalidInput(f"question {self.name}", code, advice)
            keys.add(key)
            yield code, text

    def check_gates(self, earlier: Mapping[str, Question]) -> None:
        """Refuse a condition that no earlier choice decides."""
        for gate, codes in self.asked_if.items():
            question = earlier.get(gate)
            if question is None:
                choices = ", ".join(name for name, other in earlier.items() if other.kind == "choice")
                advice = (
                    f"there is no such question before {self.name}; those with one choice are: "
                    f"{choices or 'none'}: correct the name, or the order of the questions"
                )
                raise InvalidInput("asked_if", gate, advice)
            if question.kind != "choice":
                advice = f"question {self.name} can only depend on an earlier question with one choice"
                raise InvalidInput("asked_if", gate, advice)
            if not codes or not set(codes) <= set(question.options):
                options = ", ".join(question.options)
                wrong = [code for code in codes if code not in question.options]
                advice = f"question {self.name}: choose at least one option of {gate}: {options}"
                raise InvalidInput("asked_if", wrong[0] if wrong else NOT_SHOWN, advice)

    def check_domain(self, attribute: str, domain: Domain) -> None:
        """Refuse a plan whose domain has other values than an answer can give to this attribute."""
        if self.kind == "number" and not self.edges:
            fits = isinstance(domain, NumberDomain)
        else:
            fits = not domain.has_tuples and set(map(entry_key, domain.labels)) == self._keys()
        if not fits:
            values = "numbers" if self.kind == "number" and not self.edges else ", ".join(self._levels())
            advice = f"the values of {attribute} in its plan should be {values}"
            raise InvalidInput(
                "cohorts", domain.labels, advice, *([NAME_ATTRIBUTES] if domain.has_tuples else [])
            )
        if domain.refuses_numbers:
            advice = "numbers outside the range send no report, which reveals that they are outside"
            hint = Hint("outside='ends' in the prior", purpose="to count them at the nearest end")
            raise InvalidInput("cohorts", attribute, advice, hint)

    def _levels(self) -> list[str]:
        if self.kind == "number":
            levels = [str(label) for label in self._ranges().labels]
        else:
            levels = list(self.options) if self.kind == "choice" else [YES, NO]
        return [*levels, NOT_ASKED] if self.asked_if else levels

    def _keys(self) -> set[Any]:
        return set(map(entry_key, self._levels()))

    # -- documents -------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The question as JSON; options are a list, because their order is part of the question."""
        return {
            "name": self.name,
            "kind": self.kind,
            "text": self.text,
            "hint": self.hint,
            "unit": self.unit,
            "options": [{"code": code, "text": text} for code, text in self.options.items()],
            "asked_if": {gate: list(codes) for gate, codes in self.asked_if.items()},
            "edges": [repr(edge) for edge in self.edges],
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Question:
        """Read a question from its JSON document; `Campaign` checks it."""
        options = {option["code"]: option["text"] for option in document["options"]}
        if len(options) < len(document["options"]):
            raise PlanError("questions", "two options have the same code")
        plain = {name: document[name] for name in ("name", "kind", "text", "hint", "unit")}
        asked_if = {gate: tuple(codes) for gate, codes in document["asked_if"].items()}
        return cls(**plain, options=options, asked_if=asked_if, edges=tuple(map(float, document["edges"])))


def _zeros(size: int) -> npt.NDArray[np.uint64]:
    """Words for a check that draws nothing."""
    return np.zeros(size, dtype=np.uint64)


def as_text(field: str, text: object, languages: Sequence[str], least: int = 0) -> dict[str, str]:
    """A text in every language; a plain one is in the only language, and an empty one is an empty mapping.

    >>> as_text("title", "Work", ["en"]), as_text("purpose", "", ["en", "de"])
    ({'en': 'Work'}, {})
    """
    texts = {languages[0]: text} if isinstance(text, str) else text
    if not isinstance(texts, Mapping):
        raise InvalidInput(field, text, "give a text, or a text for each language")
    if not any(texts.values()) and not least:
        return {}
    if not any(texts.values()):
        raise InvalidInput(field, NOT_SHOWN, "there is no text: write one")
    missing = [language for language in languages if not texts.get(language)]
    unknown = [language for language in texts if language not in languages]
    if missing or unknown:
        wrong = (
            f"there is no text in {missing[0]}" if missing else f"{unknown[0]} is not one of the languages"
        )
        raise InvalidInput(field, NOT_SHOWN, f"{wrong}: give it in {', '.join(languages)}")
    for language in languages:
        check_text(field, texts[language], least=1)
    return {language: texts[language] for language in languages}


def check_text(field: str, text: object, least: int = 0) -> None:
    """Refuse what is no text, or a text that is too short or too long."""
    if not isinstance(text, str) or not least <= len(text.strip()) <= len(text) <= LONGEST_TEXT:
        raise InvalidInput(field, text, f"give a text of {least} to {LONGEST_TEXT} characters")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(field, text, "half a surrogate pair is not text") from error


def options_with_same_text(
    options: Mapping[str, Text], languages: Sequence[str]
) -> tuple[str, str, str] | None:
    """The codes of two options that people cannot tell apart, and in which language; None if all differ."""
    for language in languages:
        codes: dict[str, str] = {}
        for code, text in options.items():
            first = codes.setdefault(text[language].strip().casefold(), code)
            if first != code:
                return first, code, language
    return None


def check_languages(languages: Iterable[str]) -> tuple[str, ...]:
    """The languages as tags such as `en` and `pt-BR`, each once, the default first."""
    tags = (languages,) if isinstance(languages, str) else tuple(languages)
    valid = all(isinstance(tag, str) and _LANGUAGE.fullmatch(tag) for tag in tags)
    if not tags or not valid or len({tag.lower() for tag in tags}) < len(tags):
        raise InvalidInput("languages", tags, "give tags such as en or pt-BR, each once, the default first")
    return tags


def check_questions(questions: Iterable[Question], languages: Sequence[str]) -> tuple[Question, ...]:
    """The questions with all texts in all languages; refused if a name occurs twice or a condition makes no sense."""
    earlier: dict[str, Question] = {}
    for question in questions:
        if not isinstance(question, Question):
            raise InvalidInput("questions", type(question).__name__, "give a list of Question")
        complete = question.in_languages(languages)
        complete.check_gates(earlier)
        if complete.name in earlier:
            raise InvalidInput("questions", complete.name, "two questions have this name: rename one")
        earlier[complete.name] = complete
    if not earlier:
        raise InvalidInput("questions", [], "give at least one question")
    return tuple(earlier.values())
