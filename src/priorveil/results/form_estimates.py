"""Estimates from tallies of forms: of every part of the forms, for everybody, by cohort and by group.

A result is withheld where it has fewer reports than the campaign promises. Then the total is withheld too, because a
reader could subtract the other cohorts or groups from it and recover the withheld one. A plan used alone is a form with
one part, and promises nothing of the kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

from priorveil.errors import NOT_SHOWN, InvalidInput, NotIdentifiable, ResultWithheld, TooLarge, plural
from priorveil.plans import Plan
from priorveil.plans.composition import Names
from priorveil.plans.form import Form, Part
from priorveil.priors import Prior
from priorveil.priors.label_texts import named_levels
from priorveil.questions.campaign import Campaign
from priorveil.reading.combination import combine_estimates
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.precision import USUAL_PEOPLE
from priorveil.reading.tally import Tally
from priorveil.results.document import Withheld

FormTallies = Mapping[tuple[Any, Any], Sequence[Tally]]  # of the parts of a form, by cohort and group
ALONE = "value"  # the attribute of a plan that names none
_Read = Callable[[Form, Sequence[Tally], Names], Estimate]


@dataclass(frozen=True, eq=False)
class CohortForms:
    """The form of each cohort, the question of each attribute, and how few reports are too few to be shown.

    The only cohort of a plan used alone is None. `id` is that of the campaign or of the plan. `texts` has those of
    questions, and of the options of "tick all that apply" by attribute, in the default language. `people` is how many
    each cohort is expected to have, for promises of precision.
    """

    id: str
    forms: Mapping[Any, Form]
    questions: Mapping[str, str]
    smallest_count: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)
    people: int = USUAL_PEOPLE

    @classmethod
    def of(cls, source: Plan | Mapping[Any, Plan] | Campaign) -> CohortForms:
        """The forms of a plan, of plans by cohort, or of a campaign."""
        if isinstance(source, Campaign):
            questions = {name: question.name for name, question in source.question_of.items()}
            texts = dict(_texts(source))
            expected = source.expected_people
            people = USUAL_PEOPLE if expected is None else max(1, round(expected / len(source.cohorts)))
            return cls(source.id, source.cohorts, questions, max(source.smallest_count, 1), texts, people)
        plans = {None: source} if isinstance(source, Plan) else source
        if not plans:
            raise InvalidInput("plan", NOT_SHOWN, "no plan: give one for each cohort")
        forms = {cohort: Form.of(plan.reference.names or ALONE, plan) for cohort, plan in plans.items()}
        first = next(iter(forms.values()))
        return cls(first.parts[0].plan.id, forms, {name: name for name in first.attributes})

    @cached_property
    def attributes(self) -> tuple[Names, ...]:
        """What the parts of all forms are about, each once, in order."""
        parts = chain.from_iterable(form.parts for form in self.forms.values())
        return tuple(dict.fromkeys(part.attributes for part in parts))

    def title(self, attributes: Names) -> str:
        """The texts of the questions that attributes are about; their names for a plan used alone."""
        questions: dict[str, list[str]] = {}
        for name in attributes:
            questions.setdefault(self.questions[name], []).append(name)
        keys = (own[0] if len(own) == 1 else question for question, own in questions.items())
        return " x ".join(self.texts.get(key, key) for key in keys)


def _texts(campaign: Campaign) -> Iterator[tuple[str, str]]:
    """The text of each question, and of each option of "tick all that apply" after that of its question."""
    for question in campaign.questions:
        text = campaign.text(question.text)
        yield question.name, text
        for name in question.attributes:
            option = question.option_of(name)
            if option is not None:
                yield name, f"{text} {campaign.text(question.options[option])}"


@dataclass(frozen=True, eq=False)
class PartEstimates:
    """The estimates of one part of the forms: of everybody, of each cohort that reports about it, or of each group.

    `parts` has the part and the number of reports of each of these cohorts, and `group_reports` the number of each
    group. `cohorts` and `groups` leave out what is withheld. `margin_of` has the attributes of the table that a margin
    is read from.
    """

    attributes: Names
    forms: CohortForms
    parts: Mapping[Any, tuple[Part, int]]
    cohorts: Mapping[Any, Estimate]
    groups: Mapping[Any, Estimate]
    group_reports: Mapping[Any, int]
    margin_of: Names | None = None

    @property
    def everybody(self) -> Estimate:
        """The estimate over all cohorts; raises `ResultWithheld`."""
        if self.withheld is not None:
            raise ResultWithheld(
                f"the estimate of {' x '.join(self.attributes)} is withheld: {self.withheld}"
            )
        return self._total

    @cached_property
    def _total(self) -> Estimate:
        return combine_estimates([*self.cohorts.values()])

    @property
    def plans(self) -> list[Plan]:
        """The plans of the cohorts that report about it."""
        return [part.plan for part, _ in self.parts.values()]

    @property
    def reports(self) -> int:
        """How many reports there are about it."""
        return sum(reports for _, reports in self.parts.values())

    @property
    def withheld(self) -> Withheld | None:
        """Why the estimate of everybody is withheld; None if it is shown."""
        if len(self.parts) == 1 and self.parts.keys() == self.forms.forms.keys() and not self.cohorts:
            return "few reports"
        if len(self.cohorts) < len(self.parts) or len(self.groups) < len(self.group_reports):
            return "a part is withheld"
        return None if len(self.parts) == len(self.forms.forms) else "other forms"

    def why_withheld(self, reports: int, estimate: Estimate | None) -> Withheld | None:
        """Why the estimate of a cohort or a group with so many reports is withheld; None if it is shown."""
        if estimate is not None:
            return None
        return "few reports" if reports < self.forms.smallest_count else "a part is withheld"

    def margin(self, *attributes: str) -> PartEstimates:
        """The counts of the levels of some of the attributes, summed over the others; all of a part about one alone."""
        if len(attributes) == 1 and attributes == self.attributes:
            return self
        cohorts = {name: one.margin(*attributes) for name, one in self.cohorts.items()}
        groups = {name: one.margin(*attributes) for name, one in self.groups.items()}
        return replace(self, attributes=attributes, cohorts=cohorts, groups=groups, margin_of=self.attributes)

    def margins(self) -> Iterator[PartEstimates]:
        """The margin of each attribute of several, where the plan was designed for it.

        The shares of the points of a grid are not shares of people, so numbers on a grid have none; the table has their
        means. Those that are in the answer already, as of a plan of margins, are not repeated.
        """
        left_out = {name for plan in self.plans for name in plan.domain.grids}
        for plan in self.plans:
            if plan.query.number_by_group is None:  # averages do not count the people of groups
                labels = map(str, plan.query.statistic_labels(plan.labels))
                named = (named_levels(label, self.attributes) for label in labels)
                left_out |= {name for levels in named if len(levels) == 1 for name in levels}
        for name in self.attributes if len(self.attributes) > 1 else ():
            if name not in left_out:
                with suppress(NotIdentifiable):
                    yield self.margin(name)


@dataclass(frozen=True, eq=False)
class Estimates:
    """What tallies of forms say: the estimates of each part of the forms, and for a single part those themselves.

    `by` is the public column that forms the groups, None without groups, and `reports` has the number of submissions
    of each cohort.
    """

    forms: CohortForms
    parts: tuple[PartEstimates, ...]
    reports: Mapping[Any, int]
    by: str | None

    def of(self, *attributes: str) -> PartEstimates:
        """The estimates of the part about these attributes."""
        for part in self.parts:
            if part.attributes == attributes:
                return part
        known = "; ".join(" x ".join(part.attributes) for part in self.parts)
        raise InvalidInput("attributes", attributes, f"choose one of {known}")

    @property
    def only(self) -> PartEstimates:
        """The estimates of the only part."""
        if len(self.parts) > 1:
            first = ", ".join(map(repr, self.parts[0].attributes))
            advice = f"there are {len(self.parts)} results: choose one, such as of({first})"
            raise InvalidInput("estimates", NOT_SHOWN, advice)
        return self.parts[0]

    @property
    def everybody(self) -> Estimate:
        """The estimate of the only part over all cohorts; raises `ResultWithheld`."""
        return self.only.everybody

    @property
    def groups(self) -> Mapping[Any, Estimate]:
        """The estimate of the only part for each group that is not withheld."""
        return self.only.groups

    def __repr__(self) -> str:
        groups = f", {plural(len(self.parts[0].group_reports), 'group')}" if self.by is not None else ""
        counted = plural(sum(self.reports.values()), "report")
        return f"{type(self).__name__}({plural(len(self.parts), 'result')} from {counted}{groups})"


def estimate_forms(
    forms: CohortForms,
    tallies: FormTallies,
    by: str | None = None,
    method: EstimateMethod = "auto",
    prior: Prior | Sequence[float] | None = None,
    or_default: bool = False,
) -> Estimates:
    """The estimates from the tallies of the parts of each form, by cohort and group.

    `by` names the column of the groups, None without groups. `prior` replaces that of the only part; its labels are in
    the order of the first plan. With `or_default`, parts that the method cannot read are read by the default one.
    """
    of_cohort: defaultdict[Any, list[Sequence[Tally]]] = defaultdict(list)
    for (cohort, _), own in tallies.items():
        of_cohort[cohort].append(own)
    everybody = {cohort: _sum(form, of_cohort[cohort]) for cohort, form in forms.forms.items()}
    groups = set() if by is None else {group for _, group in tallies}
    by_group = {
        group: {
            cohort: tallies.get((cohort, group)) or _sum(form, []) for cohort, form in forms.forms.items()
        }
        for group in sorted(groups, key=lambda group: (group is None, str(group)))
    }
    read = _reading_function(forms, method, prior, or_default)
    parts = tuple(_part_estimates(forms, names, everybody, by_group, read) for names in forms.attributes)
    reports = {name: forms.forms[name].people(own) for name, own in everybody.items()}
    return Estimates(forms, parts, reports, by)


def _sum(form: Form, own: Sequence[Sequence[Tally]]) -> tuple[Tally, ...]:
    """The tallies of the parts of a form, added up; empty ones if there are none."""
    if not own:
        return tuple(part.plan.tally([]) for part in form.parts)
    return tuple(sum(tallies[1:], tallies[0]) for tallies in zip(*own, strict=True))


def _part_estimates(
    forms: CohortForms,
    attributes: Names,
    everybody: Mapping[Any, Sequence[Tally]],
    by_group: Mapping[Any, Mapping[Any, Sequence[Tally]]],
    read: _Read,
) -> PartEstimates:
    """The estimates of the parts about some attributes, without those that are withheld."""
    parts = {
        name: (part, tally.reports)
        for name, form in forms.forms.items()
        for part, tally in zip(form.parts, everybody[name], strict=True)
        if part.attributes == attributes
    }
    enough = [name for name, (_, reports) in parts.items() if reports >= forms.smallest_count]
    cohorts = {name: read(forms.forms[name], everybody[name], attributes) for name in enough}
    group_reports: dict[Any, int] = {}
    groups: dict[Any, Estimate] = {}
    for group, own in by_group.items():
        group_reports[group] = sum(_reports_about(forms.forms[name], own[name], attributes) for name in parts)
        # The groups of a total that is withheld would add up to it.
        if group_reports[group] >= forms.smallest_count and len(cohorts) == len(forms.forms):
            groups[group] = combine_estimates(
                [read(forms.forms[name], own[name], attributes) for name in parts]
            )
    return PartEstimates(attributes, forms, parts, cohorts, groups, group_reports)


def _reports_about(form: Form, tallies: Sequence[Tally], attributes: Names) -> int:
    return sum(
        tally.reports
        for part, tally in zip(form.parts, tallies, strict=True)
        if part.attributes == attributes
    )


def _reading_function(
    forms: CohortForms,
    method: EstimateMethod,
    prior: Prior | Sequence[float] | None,
    or_default: bool,
) -> _Read:
    """The function that estimates a part of a form from the tallies of all its parts."""
    known = None if prior is None else _align_prior(forms, prior)

    def read(form: Form, tallies: Sequence[Tally], attributes: Names) -> Estimate:
        if known is not None:
            return form.parts[0].plan.estimate(tallies[0], method, known)
        try:
            return form.estimate(tallies, method, [attributes])[attributes]
        except (NotIdentifiable, TooLarge):
            if not or_default:
                raise
            return form.estimate(tallies, "auto", [attributes])[attributes]

    return read


def _align_prior(forms: CohortForms, prior: Prior | Sequence[float]) -> Prior:
    """A prior for the only part; one without names has the order of the first plan."""
    if any(len(form.parts) > 1 for form in forms.forms.values()):
        advice = "the form has several parts, and each has a prior of its own: leave it out"
        raise InvalidInput("prior", NOT_SHOWN, advice)
    given, labels = Prior.of(prior), [form.parts[0].plan.labels for form in forms.forms.values()]
    if len(set(labels)) > 1 and len(given) == len(labels[0]):
        return given.align_to(labels[0]).with_domain(labels[0])
    return given


def group_text(group: Any) -> str | None:
    """The name of a group; None for the rows without one. An empty text would stand for everybody."""
    return None if group is None else str(group) or "(empty)"
