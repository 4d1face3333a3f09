"""The bodies of responses with results, as JSON: estimates and how a page shows them, and what is published."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from priorveil.collect.campaign import Admission, PublicState
from priorveil.collect.questions import Kind
from priorveil.curator.messages import Body, ContentId, Finite, Natural, ResultOrigin, about, described
from priorveil.queries.matrices import StatisticName

Label = Annotated[Any, described(type=["string", "number", "array"])]


class Precision(Body):
    """The largest half width among the statistics that the plan promises for this many people."""

    people: Annotated[int, Meta(ge=1)]
    confidence: float
    population: Annotated[
        float | None,
        about("for the population, without the prior; null if people are too few or reports do not tell"),
    ]
    these_people: Annotated[
        float | None,
        about("for the people who reported, if the prior is right; null if the plan does not lean on it"),
    ]
    statistic: Annotated[
        StatisticName, about("the half widths of shares are shares; others have the unit of the query")
    ]
    determined: Annotated[
        bool | None,
        about(
            "whether enough reports would determine the statistics, without the prior; null if not checked"
        ),
    ]
    of_set: Annotated[
        bool,
        about("whether the plan has a set of priors: the half width of the population is under one of them"),
    ]
    text: Annotated[str, about("the same in one sentence")]


class Privacy(Body):
    """The levels of a whole submission."""

    lip: Finite
    lip_lower: Finite
    lip_upper: Finite
    ldp: Finite


class NumberStatistic(Body):
    """The mean of numbers, or one of their quantiles."""

    name: str
    value: Finite
    std_error: Finite
    lower: Finite
    upper: Finite


class NamedAnswer(Body):
    """What a label says about one question, for pages that put it into words of their own language."""

    question: str
    options: Annotated[list[str], about("codes of options; none: no option was ticked")]
    unticked: Annotated[list[str], about("those of these options that were not ticked")]
    range: Annotated[list[float] | None, about("the ends of a range of numbers")]
    level: Annotated[str | None, about("any other level, as it is")]
    asked: Annotated[bool, about("false: these people were not asked")]


class DisplayRow(Body):
    """A statistic as a page shows it: its numbers per person, for pictures, and their texts.

    If its label names answers, `answers` has one for each question, and `words` has their texts in the default
    language. Otherwise both are empty.
    """

    label: str
    name: Annotated[str, about("the label with codes instead of texts")]
    words: list[str]
    answers: list[NamedAnswer]
    value: Finite
    lower: Annotated[Finite, about("null where the interval reaches to the least that is possible")]
    upper: Annotated[Finite, about("null where the interval reaches to the most that is possible")]
    expected: Annotated[float | None, about("what the prior expects")]
    value_text: str
    interval_text: str
    expected_text: str
    people: Annotated[int | None, about("the number of people, if the value is a share")]
    people_text: str | None


class GroupTable(Body):
    """A statistic of each group: the average of a number, or the shares of the answers to a question.

    Without attributes that form groups, these are the shares among the people who were asked the question.
    """

    title: str
    shares: Annotated[bool, about("whether the numbers are shares of the people of a group")]
    of: Annotated[str, about("the attribute that is averaged, or whose shares these are")]
    by: Annotated[list[str], about("the attributes that form the groups; none for all who were asked")]
    rows: list[DisplayRow]


LabelKind = Literal["answer", "ticked", "ticked set", "quantity", "group"]


class Display(Body):
    """The tables and sentences that a page shows for an estimate."""

    label_head: str
    label_kind: Annotated[
        LabelKind,
        about("what the labels are: answers, ticked options, sets of them, names of quantities, or groups"),
    ]
    interval_head: str
    shares: Annotated[bool, about("whether the numbers are shares of the people")]
    averages_of: Annotated[
        str | None, about("the attribute whose averages by group these are; null for other numbers")
    ]
    rows: Annotated[list[DisplayRow], about("the most relevant statistics, at most a few hundred")]
    left_out: Annotated[str | None, about("which statistics are shown; null if all are")]
    numbers: Annotated[list[DisplayRow], about("the mean of numbers, or their quantiles")]
    groups: list[GroupTable]
    precision: Annotated[str, about("how precise the estimate is")]


class Fact(Body):
    """A fact about all forms of a campaign, with what it means in a few words."""

    name: str
    text: str
    note: str


class MethodTitle(Body):
    """A method that can read these reports, and what people call it."""

    method: Literal["auto", "mmse", "unbiased", "mle"]
    title: str


class PrivacyTexts(Body):
    """The same as texts, rounded up."""

    lip_lower: str
    lip_upper: str
    ldp: str


class Total(Body, kw_only=True):
    """An estimate."""

    reports: Natural
    people: Annotated[
        float,
        about("how many people the values are about: more than reports where each is asked only a part"),
    ]
    method: Literal["mmse", "unbiased", "mle", "mixed"]
    assumes: str
    labels: Annotated[list[Label], Meta(min_length=1)]
    values: list[Finite]
    std_error: list[Finite]
    lower: list[Finite]
    upper: list[Finite]
    prior_check: Annotated[
        float | None, about("the p-value of the reports under the prior; null if there are too few")
    ]
    noticeable_change: Annotated[
        float | None,
        about(
            "the share of people who must move between two common values for the check to notice; null if more than "
            "all, or not known"
        ),
    ]
    unseen_changes: Annotated[
        str | None, about("which changes the check does not notice, however large; null if there are none")
    ]
    unbiased_difference: Annotated[
        float | None,
        about("the distance of a leaning answer from the unbiased one, in standard errors of the latter"),
    ]
    warning: Annotated[
        str | None,
        about("what to do if the reports contradict the prior that the answer leans on; show it first"),
    ]
    notes: Annotated[list[str], about("the method, what it assumes, and the prior check, in sentences")]
    statistics: Annotated[
        list[NumberStatistic],
        about(
            "the mean of numbers on a grid, quantiles of numbers in cells, averages by group, and shares within "
            "groups; empty for other values"
        ),
    ]
    converged: bool
    display: Display


Promise = Annotated[
    str | None, about("the precision that the plan promises, in a sentence; null in a margin")
]
PriorStatistics = Annotated[
    list[float] | None, about("every statistic per person, under the prior; null in a margin")
]


class Cohort(Body):
    """A cohort: its form, how many submissions it has, and the levels of each of them."""

    cohort: str
    form: ContentId
    reports: Natural
    privacy: Privacy
    privacy_texts: PrivacyTexts


class Shown(Total, kw_only=True):
    """The result of a cohort."""

    cohort: str
    plan: ContentId
    identifiable: bool
    prior: PriorStatistics = None
    precision: Precision | None = None
    promise: Promise = None
    withheld: Annotated[bool, described(const=False)]


class Withheld(Body, kw_only=True):
    """A cohort with too few reports for a result."""

    reports: Natural
    cohort: str
    plan: ContentId
    identifiable: bool
    prior: PriorStatistics = None
    precision: Precision | None = None
    promise: Promise = None
    withheld: Annotated[bool, described(const=True)]


_COHORTS = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in (Shown, Withheld)]


class Subject(Body):
    """A question, and its option if it is about one of "tick all that apply"."""

    question: str
    option: str | None


class Result(Body):
    """What the reports say about an attribute, or about several together, in each cohort.

    The total is null if a cohort is withheld, or reports about these attributes in another way.
    """

    attributes: Annotated[list[str], Meta(min_length=1)]
    questions: Annotated[list[str], about("the names of the questions that give the attributes")]
    title: Annotated[str, about("the texts of these questions, in the default language")]
    option: Annotated[
        str | None, about('the text of the option, if this is about one option of "tick all that apply"')
    ]
    subjects: Annotated[list[Subject], about("what it is about, for pages that write titles of their own")]
    unit: str
    measured: Annotated[str | None, about("the question whose unit the numbers have; null if there is none")]
    margin_of: Annotated[
        list[str] | None, about("if this is a margin: the attributes of the table that it is read from")
    ]
    cohorts: list[Annotated[Any, described(oneOf=_COHORTS)]]  # Shown or Withheld
    total: Total | None


class Estimates(Body):
    """The results of all questions."""

    campaign: ContentId
    title: str
    level: float
    smallest_count: Natural
    leans_on_prior: bool
    caution: Annotated[
        str | None, about("a sentence to show first, unless there are warnings; null if none is needed")
    ]
    withheld_because: Annotated[str, about("why some results are withheld, if some are")]
    facts: list[Fact]
    admission: Admission
    admission_text: Annotated[str, about("who may answer, and what that means for the results")]
    methods: list[MethodTitle]
    reports: Annotated[int, Meta(ge=0), about("how many submissions there are")]
    cohorts: list[Cohort]
    results: list[Result]
    state: PublicState
    not_for_publication: Annotated[
        str | None, about("a sentence to show with every number; null once the results are published")
    ] = None
    stored: Annotated[
        ResultOrigin | None,
        about(
            "the stored results: for an analyst these; for an admin, who gets those of now, what analysts see"
        ),
    ] = None


ByLanguage = Annotated[dict[str, str], about("a text by language; empty if it was not given")]


class PublishedQuestion(Body):
    """A question as people read it, in all languages."""

    name: str
    kind: Kind
    attributes: Annotated[list[str], about('one, or one for each option of "tick all that apply"')]
    text: ByLanguage
    unit: ByLanguage
    options: Annotated[dict[str, ByLanguage], about("the texts of the options by their codes")]


class Line(Body):
    """One statistic, with the columns of a CSV file of results."""

    attributes: str
    cohort: Annotated[str, about("whose reports it is from; empty for all cohorts together")]
    statistic: str
    answers: Annotated[dict[str, str], about("the answers that it is about, as codes by attribute")]
    reports: Natural
    method: str
    estimate: Finite
    std_error: Finite
    low: Finite
    high: Finite
    share: Annotated[float | None, about("a number of people as a share of everybody")]


class Publication(Body):
    """The results of a closed campaign, made once. They never change."""

    published: Annotated[str, about("when they were published")]
    languages: Annotated[list[str], about("the languages of the campaign's texts, the default first")]
    title: ByLanguage
    asked_by: ByLanguage
    purpose: ByLanguage
    description: ByLanguage
    contact: str
    questions: list[PublishedQuestion]
    most_reports: int | None
    opens: str | None
    closes: str | None
    results: Annotated[
        Estimates,
        about("by method mle where it exists, otherwise by the default: these figures are possible"),
    ]
    for_computing: Annotated[
        list[Line],
        about(
            "the same by method unbiased where it exists: right on average, but shares may be below zero or above one"
        ),
    ]
