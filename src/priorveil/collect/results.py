"""Results of a campaign: the estimates of every part of its forms, by cohort and in total, and the margins of tables.

A result is withheld where it has fewer reports than the campaign promises. Then its total over all cohorts is withheld
too: without the other cohorts it would be the withheld one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from priorveil.collect.campaign import Campaign
from priorveil.collect.questions import Question
from priorveil.errors import NotIdentifiable
from priorveil.plans.composition import Names
from priorveil.plans.form import Part
from priorveil.priors import Label
from priorveil.priors.label_texts import label_parts, label_text
from priorveil.reading.combination import combine_estimates
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.tally import Tally


@dataclass(frozen=True, eq=False)
class Result:
    """What the reports say about an attribute, or about several together.

    `parts` has the part and the number of reports of each cohort that reports about them, `estimates` those that are
    not withheld. `margin_of` has the attributes of the table that a margin is read from. Texts are in the default
    language.
    """

    campaign: Campaign
    attributes: Names
    parts: Mapping[str, tuple[Part, int]]
    estimates: Mapping[str, Estimate]
    margin_of: Names | None = None

    @cached_property
    def total(self) -> Estimate | None:
        """The estimate over all cohorts; None if one of them is withheld, or reports in another way."""
        if len(self.estimates) < len(self.campaign.cohorts):
            return None
        return combine_estimates([*self.estimates.values()])

    def shown(self) -> Iterator[tuple[str, Estimate]]:
        """The estimate of each cohort that is not withheld, if there are several; then that of all, named ""."""
        if len(self.campaign.cohorts) > 1:
            yield from self.estimates.items()
        if self.total is not None:
            yield "", self.total

    @cached_property
    def _asked(self) -> list[tuple[Question, str]]:
        """Each attribute with its question."""
        questions = {a: question for question in self.campaign.questions for a in question.attributes}
        return [(questions[attribute], attribute) for attribute in self.attributes]

    @property
    def questions(self) -> list[str]:
        """The names of the questions that give the attributes."""
        return list(dict.fromkeys(question.name for question, _ in self._asked))

    @property
    def title(self) -> str:
        """The texts of the questions; for one option of "tick all that apply" also that of the option."""
        owners = [question.name for question, _ in self._asked]
        return " x ".join(
            dict.fromkeys(
                self._name(question, attribute)
                if owners.count(question.name) == 1
                else self.campaign.text(question.text)
                for question, attribute in self._asked
            )
        )

    @property
    def unit(self) -> str:
        """The unit of a number."""
        return self.campaign.text(self._asked[0][0].unit) if len(self.questions) == 1 else ""

    def _name(self, question: Question, attribute: str) -> str:
        text, option = self.campaign.text(question.text), attribute.removeprefix(f"{question.name}/")
        if question.kind != "choices":
            return text
        return f"{text} {self.campaign.text(question.options[option])}"

    def label(self, label: Label) -> str:
        """A value in words; anything else, such as the name of a statistic, as it is."""
        parts = label_parts(label)
        if len(parts) != len(self._asked):
            return label_text(label)
        levels = zip(self._asked, parts, strict=True)
        return ", ".join(self._level(question, level) for (question, _), level in levels)

    def _level(self, question: Question, level: Any) -> str:
        text = label_text(level)
        if question.kind == "choice" and text in question.options:
            return self.campaign.text(question.options[text])
        return text


def results(
    campaign: Campaign, tallies: Mapping[str, Sequence[Tally]], method: EstimateMethod = "auto"
) -> Iterator[Result]:
    """A result for every part of the forms, each followed by its margins if it is about several attributes.

    `tallies` has the tallies of the parts of each form, by the id of the form.
    """
    least = max(campaign.smallest_count, 1)
    estimates = {
        name: form.estimate(
            tallies[form.id],
            method,
            [
                p.attributes
                for p, tally in zip(form.parts, tallies[form.id], strict=True)
                if tally.reports >= least
            ],
        )
        for name, form in campaign.cohorts.items()
    }
    all_attributes = (part.attributes for form in campaign.cohorts.values() for part in form.parts)
    for attributes in dict.fromkeys(all_attributes):
        parts = {
            name: (part, tally.reports)
            for name, form in campaign.cohorts.items()
            for part, tally in zip(form.parts, tallies[form.id], strict=True)
            if part.attributes == attributes
        }
        whole = {name: estimates[name][attributes] for name in parts if attributes in estimates[name]}
        yield Result(campaign, attributes, parts, whole)
        for attribute in attributes if len(attributes) > 1 else ():
            with suppress(NotIdentifiable):  # the plan was not designed for it
                margins = {name: estimate.margin(attribute) for name, estimate in whole.items()}
                yield Result(campaign, (attribute,), parts, margins, attributes)
