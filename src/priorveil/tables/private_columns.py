"""The private columns of a table of people, and what they say about the attributes of forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from priorveil.errors import NOT_SHOWN, Hint, InvalidInput
from priorveil.files.batches import Batch
from priorveil.frames import Column, Indices, as_column
from priorveil.plans.form import Form, Part
from priorveil.priors.domain import (
    AMBIGUOUS_NUMBER,
    LEFT_OUT,
    NOT_A_NUMBER,
    NOT_IN_DOMAIN,
    OTHER_SPELLING,
    LabelDomain,
)
from priorveil.questions.campaign import Campaign
from priorveil.tables.answers import attribute_columns
from priorveil.tables.refusals import NO_COHORT, WRONG_ANSWER, indices_by_reason
from priorveil.tables.substitutes import Substitutes

_WRONG_VALUE = (NOT_IN_DOMAIN, OTHER_SPELLING, LEFT_OUT, NOT_A_NUMBER, AMBIGUOUS_NUMBER)


class PrivateColumns(ABC):
    """The columns of values or answers, by their `names`: reports are made of them, and nothing else leaves."""

    names: Sequence[str]

    @abstractmethod
    def levels(
        self, form: Form, batch: Batch, substituted: Counter[str]
    ) -> tuple[Mapping[str, Column], dict[str, Indices]]:
        """The level of each attribute of a form in each row, and the indices of the rows to refuse, by reason.

        `substituted` adds up how many cells were replaced by a label.
        """

    def reason(self, part: Part, reason: str) -> str:
        """Why a row is refused whose levels are not a value of a part."""
        return reason

    def public_reason(self, reason: str) -> str:
        """Why a row is refused, in words that may stand beside the reports of others."""
        return reason

    @abstractmethod
    def allowed_values(self, reasons: Collection[str]) -> Iterator[str]:
        """What values may be, which is public, where rows were refused for these reasons."""


class ValueColumns(PrivateColumns):
    """A column for each attribute of plans; the plans of all cohorts are about the same attributes."""

    def __init__(self, parts: Sequence[Part], columns: str | Sequence[str], substitutes: Substitutes) -> None:
        self.names = _matched_columns(columns, [part.plan.reference.names for part in parts])
        self._domain = parts[0].plan.domain
        self._substitutes = substitutes
        for part in parts:
            substitutes.require_known([*part.plan.domain.attributes.values()] or [part.plan.domain])

    def levels(
        self, form: Form, batch: Batch, substituted: Counter[str]
    ) -> tuple[Mapping[str, Column], dict[str, Indices]]:
        """The columns, with the labels that stand for gaps and other values."""
        (part,) = form.parts
        columns = [batch.columns[name] for name in self.names]
        columns = self._substitutes.fill_all(columns, part.plan.domain, substituted)
        return dict(zip(part.attributes, columns, strict=True)), {}

    def allowed_values(self, reasons: Collection[str]) -> Iterator[str]:
        """What the plan allows, if a value was refused because the plan does not have it."""
        if not {*reasons}.isdisjoint(_WRONG_VALUE):
            outside = NOT_IN_DOMAIN in reasons and self._domain.refuses_numbers
            advice = "; a plan made with --outside ends counts others at the nearest end"
            yield f"the plan's values are {self._domain.describe()}{advice if outside else ''}"


class QuestionColumns(PrivateColumns):
    """A column for each question of a campaign, with its name."""

    def __init__(self, campaign: Campaign, columns: str | Sequence[str], substitutes: Substitutes) -> None:
        self.names = [question.name for question in campaign.questions]
        if columns:
            advice = f"a campaign names its columns itself, one for each question: {', '.join(self.names)}"
            given = columns if isinstance(columns, str) else ", ".join(columns)
            raise InvalidInput("column", given, advice)
        self._campaign = campaign
        self._substitutes = substitutes
        substitutes.require_known([LabelDomain(q.options) for q in campaign.questions if q.options])

    def levels(
        self, form: Form, batch: Batch, substituted: Counter[str]
    ) -> tuple[Mapping[str, Column], dict[str, Indices]]:
        """The levels that the answers give; a row needs an answer to every question that is asked."""
        levels, reasons = attribute_columns(self._campaign, batch, self._substitutes, substituted)
        columns = {name: as_column(levels[name]) for name in form.attributes}
        return columns, indices_by_reason(reasons)

    def reason(self, part: Part, reason: str) -> str:
        """The reason, with the attributes that it is about."""
        return f"{' x '.join(part.attributes)}: {reason}"

    def public_reason(self, reason: str) -> str:
        """The reason without the name of the question, which would reveal how earlier ones were answered."""
        return reason if reason == NO_COHORT else WRONG_ANSWER

    def allowed_values(self, reasons: Collection[str]) -> Iterator[str]:
        """The codes of the questions whose answers had others."""
        wrong = [reason for reason in reasons if reason.endswith(_WRONG_VALUE)]
        for question in self._campaign.questions:
            if question.options and any(reason.startswith(f"{question.name}:") for reason in wrong):
                yield f"the codes of {question.name} are {LabelDomain(question.options).describe()}"


def _matched_columns(
    column: str | Sequence[str], attributes: Sequence[tuple[str, ...] | None]
) -> Sequence[str]:
    """The private columns, one for each attribute of the plans: by name if they have its names, otherwise in its order.

    Without any, the columns with its names are taken.
    """
    columns = [column] if isinstance(column, str) else list(column)
    names = attributes[0]
    if len(set(attributes)) > 1:
        advice = "the plans differ in their attributes or in the order of them: use the same for all"
        raise InvalidInput("plan", NOT_SHOWN, advice)
    if not columns:
        if names is None:
            raise InvalidInput("column", NOT_SHOWN, "the plan is for one attribute", Hint("column", "NAME"))
        return list(names)
    if len(columns) != (1 if names is None else len(names)):
        purpose = "one attribute" if names is None else ", ".join(names)
        raise InvalidInput("column", columns, f"the plan is for {purpose}: give a column for each")
    if names is None or set(names) == set(columns):
        return columns if names is None else list(names)
    for name, given in zip(names, columns, strict=True):
        if given != name and given in names:
            advice = f"{given!r} is in the place of {name}: give the columns in the order {', '.join(names)}"
            raise InvalidInput("column", columns, advice)
    return columns
