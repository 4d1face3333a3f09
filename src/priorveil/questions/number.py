"""Questions about a number, as it is or in ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from priorveil.errors import InvalidInput
from priorveil.frames import Column
from priorveil.priors import Domain
from priorveil.priors.domain import OUTSIDE, no_words
from priorveil.priors.number_domains import Cells, Grid, NumberDomain
from priorveil.questions.question import Bounds, ColumnAnswers, Fill, Question, refusal_reasons
from priorveil.questions.survey_document import Section
from priorveil.questions.texts import Text

RANGES = 5  # of shares of a number, if a survey does not say
_POINTS, _FINE_RANGES = 5, 10  # of a mean and of quantiles


@dataclass(frozen=True)
class NumberQuestion(Question):
    """A number. `edges` put answers into ranges; without them its plan rounds or sorts them.

    A number that is not always asked needs ranges, beside which there is a place for "not asked".

    >>> NumberQuestion("rooms", "How many rooms?", edges=(0, 2, 5)).levels("[0, 2)")
    {'rooms': '[0, 2)'}
    """

    kind = "number"
    survey_keys = ("range", "points")

    options: Mapping[str, str | Text] = field(default_factory=dict, init=False, repr=False)
    edges: tuple[float, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """In ranges only their shares, as a number that is not always asked has no mean."""
        return ("shares",) if self.asked_if else ("mean", "shares", "quantiles")

    def number_domain(self, domains: Mapping[str, Domain]) -> NumberDomain:
        """The numbers that answer it; `domains` are those of the attributes in its plans."""
        domain = self._ranges() if self.edges else domains[self.name]
        assert isinstance(domain, NumberDomain)  # as `check_domain` has seen
        return domain

    def _ranges(self) -> Cells:
        return Cells(self.edges, "ends")

    def read_answer(self, answer: Any, domains: Mapping[str, Domain]) -> Any:
        """The number, or the label of its range."""
        domain = self.number_domain(domains)
        single = isinstance(answer, str | int | float | np.number) and not isinstance(answer, bool)
        code = int(domain.encode([[answer]], no_words)[0]) if single else OUTSIDE
        if code < 0:
            raise self.refusal("give a number, such as 12.5")
        return domain.labels[code] if self.edges else answer

    def read_column(self, column: Column, domains: Mapping[str, Domain], fill: Fill) -> ColumnAnswers:
        """The numbers, or the labels of their ranges; nothing can be filled in for a number."""
        domain = self.number_domain(domains)
        numbers, foreign = domain.read_numbers(column)
        codes = domain.mark(numbers, foreign, domain.cells_of(numbers))
        labels = np.array([*domain.labels, None, None], dtype=object)
        levels = labels[codes] if self.edges else numbers
        return ColumnAnswers({self.name: levels}, refusal_reasons(codes, domain, column))

    def describe_answers(self, domains: Mapping[str, Domain], words: Callable[[str | Text], str]) -> str:
        """Its numbers, with their unit."""
        unit = words(self.unit)
        return f"{self.number_domain(domains).describe()}{unit and f', in {unit}'}"

    @classmethod
    def of_survey(cls, section: Section, bounds: Bounds, **common: Any) -> Self:
        """The question in a section of a survey file; one that is not always asked takes the ranges of its prior."""
        return cls(edges=bounds(RANGES) if common["asked_if"] else (), **common)

    def in_languages(self, languages: Sequence[str]) -> Self:
        """The same question with every text in all of these languages."""
        if self.asked_if and not self.edges:
            advice = (
                "give the edges of ranges: a number that is not always asked needs a place for 'not asked'"
            )
            raise InvalidInput(self.where, self.edges, advice)
        edges = self._ranges().bounds if self.edges else ()
        return replace(super().in_languages(languages), edges=edges)

    def _fits(self, domain: Domain) -> bool:
        return super()._fits(domain) if self.edges else isinstance(domain, NumberDomain)

    def _values_text(self) -> str:
        return super()._values_text() if self.edges else "numbers"

    def domain(self, numbers: NumberDomain | None) -> Domain:
        """The numbers themselves; their ranges are labels if the question is not always asked."""
        return super().domain(numbers) if numbers is None or self.asked_if else numbers

    def _levels(self) -> Sequence[Any]:
        return self._ranges().labels

    def numbers(self, query: str, bounds: Bounds) -> NumberDomain:
        """The points of a mean, or the ranges of shares and quantiles."""
        if query == "mean":
            return Grid(bounds(_POINTS - 1), "ends")
        return Cells(self.edges or bounds(_FINE_RANGES if query == "quantiles" else RANGES), "ends")

    def document(self) -> dict[str, Any]:
        """The question as JSON."""
        return super().document() | {"edges": [repr(edge) for edge in self.edges]}

    @classmethod
    def _read_own(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"edges": tuple(map(float, document["edges"]))}
