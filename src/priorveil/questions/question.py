"""Questions: what all kinds of questions have in common, and what each kind has to define.

Every text is given in all languages of a campaign. Options are known by their codes, so translations cannot swap them.
A kind is a subclass: `choices.py` and `number.py` have those that come with the package. Documents name the kind.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, PlanError
from priorveil.frames import Column
from priorveil.named_classes import class_named, enter_class
from priorveil.priors import Domain
from priorveil.priors.domain import (
    MISSING,
    MISSING_ENTRY,
    NAME_ATTRIBUTES,
    OUTSIDE,
    Codes,
    LabelDomain,
    entry_key,
)
from priorveil.priors.number_domains import NumberDomain
from priorveil.questions.survey_document import Section
from priorveil.questions.texts import LONGEST_NAME, Text, as_text

NOT_ASKED = "not asked"  # the level of a question that the earlier answers skip
_NAME = re.compile(rf"[\w-]{{1,{LONGEST_NAME}}}")

Bounds = Callable[[int], tuple[float, ...]]  # the ends of this many ranges of a number
Fill = Callable[[Column, Domain], Column]  # replaces empty and unknown entries of a column by labels


@dataclass(frozen=True, eq=False)
class ColumnAnswers:
    """The answers in a column: the level of each attribute, why entries are refused, and codes of chosen options."""

    levels: Mapping[str, npt.NDArray[Any]]
    reasons: npt.NDArray[Any]
    options: Codes | None = None


@dataclass(frozen=True)
class Question(ABC):
    """One question; each kind is a subclass.

    `name` is its code, and `options` are by code, if people choose among some. A plain text is in the campaign's only
    language. `asked_if` maps earlier choices to the codes after which this question is asked: after all others it is
    skipped, and its answer is `NOT_ASKED`.
    """

    kind: ClassVar[str]
    by_kind: ClassVar[dict[str, type[Question]]] = {}
    by_option: ClassVar[bool] = False  # whether each option is an attribute of its own

    name: str
    text: str | Text
    options: Mapping[str, str | Text]
    _: KW_ONLY
    hint: str | Text = ""
    unit: str | Text = ""
    asked_if: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in vars(cls):
            enter_class(Question.by_kind, cls.kind, cls, "kind of question")

    # -- answers ---------------------------------------------------------------------------------------------

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that an answer gives."""
        return (self.name,)

    def option_of(self, attribute: str) -> str | None:
        """The code of the option that an attribute is about; None if it is about the whole question."""
        return None

    @property
    def gate_codes(self) -> tuple[str, ...]:
        """The codes after which other questions may be asked; none if no question may depend on this one."""
        return ()

    def is_asked(self, answers: Mapping[str, Any]) -> bool:
        """Whether it is asked after these answers, by question: a code, or None for a question that was skipped."""
        return all(answers.get(gate) in codes for gate, codes in self.asked_if.items())

    @abstractmethod
    def read_answer(self, answer: Any, domains: Mapping[str, Domain]) -> Any:
        """The answer as its kind stores it; refused if it is no answer, and never shown.

        `domains` are those of the attributes in the plans of a campaign.
        """

    def levels(self, answer: Any) -> dict[str, Any]:
        """The level of each attribute, from an answer that was read; None for a question that was skipped."""
        if answer is None:
            return dict.fromkeys(self.attributes, NOT_ASKED)
        return self._levels_of(answer)

    def _levels_of(self, answer: Any) -> dict[str, Any]:
        return {self.name: answer}

    @abstractmethod
    def read_column(self, column: Column, domains: Mapping[str, Domain], fill: Fill) -> ColumnAnswers:
        """The answers of many people, in the rows of a table in which it is asked."""

    def refusal(self, advice: str) -> InvalidInput:
        """The error about an invalid answer."""
        return InvalidInput(f"answers[{self.name!r}]", NOT_SHOWN, advice)

    # -- words -----------------------------------------------------------------------------------------------

    @abstractmethod
    def describe_answers(self, domains: Mapping[str, Domain], words: Callable[[str | Text], str]) -> str:
        """What people may answer; `words` picks the language of a text."""

    # -- checks ----------------------------------------------------------------------------------------------

    def in_languages(self, languages: Sequence[str]) -> Self:
        """The same question with every text in all of these languages; refused with the keys of what is wrong."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            advice = "give a question a code of letters, digits, _ and -"
            raise InvalidInput("name", self.name, advice, keys=("name",))
        texts: dict[str, Any] = {
            key: as_text(
                self.where if key == "text" else f"{self.where}, {key}",
                getattr(self, key),
                languages,
                (key,),
                least=int(key == "text"),
            )
            for key in ("text", "hint", "unit")
        }
        asked_if = {gate: _codes(gate, codes) for gate, codes in self.asked_if.items()}
        return replace(self, asked_if=asked_if, **texts)

    @property
    def where(self) -> str:
        """How errors name it."""
        return f"question {self.name}"

    def check_gates(self, earlier: Mapping[str, Question]) -> None:
        """Refuse a condition that no earlier choice decides."""
        for gate, codes in self.asked_if.items():
            question = earlier.get(gate)
            if question is None:
                choices = ", ".join(name for name, other in earlier.items() if other.gate_codes)
                advice = (
                    f"there is no such question before {self.name}; those with one choice are: "
                    f"{choices or 'none'}: correct the name, or the order of the questions"
                )
                raise InvalidInput("asked_if", gate, advice, keys=("asked_if",))
            if not question.gate_codes:
                advice = f"question {self.name} can only depend on an earlier question with one choice"
                raise InvalidInput("asked_if", gate, advice, keys=("asked_if",))
            wrong = [code for code in codes if code not in question.gate_codes]
            if wrong or not codes:
                options = ", ".join(question.gate_codes)
                advice = f"question {self.name}: choose at least one option of {gate}: {options}"
                value = wrong[0] if wrong else NOT_SHOWN
                raise InvalidInput("asked_if", value, advice, keys=("asked_if",))

    def check_domain(self, attribute: str, domain: Domain) -> None:
        """Refuse a plan whose domain has other values than an answer can give to this attribute."""
        if not self._fits(domain):
            advice = f"the values of {attribute} in its plan should be {self._values_text()}"
            hints = [NAME_ATTRIBUTES] if domain.has_tuples else []
            raise InvalidInput("cohorts", domain.labels, advice, *hints)
        if domain.refuses_numbers:
            advice = "numbers outside the range send no report, which reveals that they are outside"
            hint = Hint("outside='ends' in the prior", purpose="to count them at the nearest end")
            raise InvalidInput("cohorts", attribute, advice, hint)

    def _fits(self, domain: Domain) -> bool:
        keys = set(map(entry_key, self.domain(None).labels))
        return not domain.has_tuples and set(map(entry_key, domain.labels)) == keys

    def _values_text(self) -> str:
        return ", ".join(map(str, self.domain(None).labels))

    # -- priors ----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def queries(self) -> tuple[str, ...]:
        """What a survey may ask about it, as survey files call it; first what they mean if they say nothing."""

    def domain(self, numbers: NumberDomain | None) -> Domain:
        """The domain of each of its attributes in a prior; `numbers` has the points or ranges of a number.

        A question that is not always asked has the level `NOT_ASKED`.
        """
        return LabelDomain((*self._levels(), *((NOT_ASKED,) if self.asked_if else ())))

    def numbers(self, query: str, bounds: Bounds) -> NumberDomain | None:
        """The points or ranges of a number in its prior for a query."""
        return None

    @abstractmethod
    def _levels(self) -> Sequence[Any]:
        """The levels of each of its attributes, except `NOT_ASKED`."""

    def entries(self, entry: str) -> tuple[str, ...]:
        """An entry for each of its attributes, from the entry of a prior or of a table."""
        return (entry,)

    # -- survey files ----------------------------------------------------------------------------------------

    survey_keys: ClassVar[tuple[str, ...]] = ()  # of its own

    @classmethod
    @abstractmethod
    def of_survey(cls, section: Section, bounds: Bounds, **common: Any) -> Self:
        """The question in a section of a survey file, before it is checked; `bounds` reads those of a number."""

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
            "edges": [],
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Question:
        """Read a question from its JSON document; `Campaign` checks it."""
        kind: type[Question] = class_named(Question.by_kind, document["kind"], "kind of question")
        asked_if = {gate: tuple(codes) for gate, codes in document["asked_if"].items()}
        plain = {name: document[name] for name in ("name", "text", "hint", "unit")}
        return kind(**plain, asked_if=asked_if, **kind._read_own(document))

    @classmethod
    def _read_own(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of its kind."""
        options = {option["code"]: option["text"] for option in document["options"]}
        if len(options) < len(document["options"]):
            raise PlanError("questions", "two options have the same code")
        return {"options": options}


def _codes(gate: str, codes: Any) -> tuple[str, ...]:
    """The codes of a condition; a single one may be written without a list."""
    if not isinstance(codes, str | Sequence):
        advice = 'give the codes after which it is asked, such as {works = ["yes"]}'
        raise InvalidInput("asked_if", codes, advice, keys=("asked_if",))
    return (codes,) if isinstance(codes, str) else tuple(codes)


def refusal_reasons(codes: Codes, domain: Domain, column: Column) -> npt.NDArray[Any]:
    """Why each entry of a column has no code; None if it has one."""
    reasons = np.full(len(codes), None, dtype=object)
    reasons[codes == MISSING] = MISSING_ENTRY
    if (outside := codes == OUTSIDE).any():
        reasons[outside] = domain.reasons([column])[outside]
    return reasons


def check_questions(questions: Iterable[Question], languages: Sequence[str]) -> tuple[Question, ...]:
    """The questions with all texts in all languages; refused if a name occurs twice or a condition makes no sense."""
    earlier: dict[str, Question] = {}
    for question in questions:
        if not isinstance(question, Question):
            raise InvalidInput("questions", type(question).__name__, "give a list of questions")
        earlier[question.name] = complete_after(question, earlier, languages)
    if not earlier:
        raise InvalidInput("questions", [], "give at least one question")
    return tuple(earlier.values())


def complete_after(question: Question, earlier: Mapping[str, Question], languages: Sequence[str]) -> Question:
    """A question after a check of its own fields, and of those that refer to the questions before it."""
    complete = question.in_languages(languages)
    if complete.name in earlier:
        advice = "two questions have this name: rename one"
        raise InvalidInput("questions", complete.name, advice, keys=("name",))
    complete.check_gates(earlier)
    return complete
