"""The result document: what reports say about each question, in numbers and codes.

The command line, CSV files, the API and the pages show this document, each in its own words. Nothing in it is a
sentence: attributes, answers and cohorts are named as the campaign names them, and notes are codes with values.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from priorveil.notes import Note
from priorveil.plans.composition import Names
from priorveil.plans.structure import Document, about
from priorveil.reading.precision import Precision

FigureKind = Literal[
    "people", "total", "per person", "mean", "quantile", "average", "share within", "share among"
]
Withheld = Literal["few reports", "a part is withheld", "other forms"]
StatisticKind = Literal["share", "average per person", "average of a group", "statistic"]
Finite = Annotated[float | None, about("null where there is none, or it is not finite")]
Count = Annotated[int, Meta(ge=0)]


class ResultRow(Document, frozen=True):
    """A statistic with its standard error and its interval.

    `label` has a level for each of the table's attributes, or else the name of the statistic. An interval that reaches
    to the least or the most that is possible ends exactly there.
    """

    label: Names
    value: Finite
    std_error: Finite
    low: Finite
    high: Finite
    least: Annotated[Finite, about("the least that it can be; null without a limit")]
    most: Annotated[Finite, about("the most that it can be; null without a limit")]
    expected: Annotated[float | None, about("what the prior expects; null if that is not known")]
    decimals: Annotated[
        int | None,
        about(
            "how many decimals are worth showing, for a number of people those of its share in percent; null if the "
            "interval does not say"
        ),
    ]

    @property
    def numbers(self) -> tuple[float | None, ...]:
        """The value, its standard error and its interval."""
        return self.value, self.std_error, self.low, self.high

    @property
    def open_sides(self) -> tuple[bool, bool]:
        """Whether the interval reaches to the least, and to the most, that is possible; neither for a known number."""
        if self.least is not None and self.least == self.most:
            return False, False
        return self.low == self.least, self.high == self.most

    @property
    def is_unbounded(self) -> bool:
        """Whether the interval has every possible number."""
        return all(self.open_sides)


class ResultTable(Document, frozen=True):
    """Statistics of one kind.

    `people` counts people. `total` has other sums over people, and `per person` the same divided by the people.
    `average` is that of a number in each group, `mean` that over all people, and `quantile` the number that a share of
    the people does not exceed. `share within` has shares of the people of a group, and `share among` those of the
    people who were asked.
    """

    kind: FigureKind
    attributes: Annotated[Names, about("what the labels have levels of; none where they name statistics")]
    by: Annotated[Names, about("those of the attributes that form groups")]
    of: Annotated[str | None, about("the attribute that is averaged, or whose shares these are")]
    rows: tuple[ResultRow, ...]
    shown_first: Annotated[
        tuple[int, ...],
        about("the places of the rows to show where not all are shown; empty: the first rows"),
    ]


class Figures(Document, frozen=True):
    """What reports say by one method."""

    method: Annotated[
        str,
        about(
            "mmse, unbiased or mle, mixed where cohorts were read by different ones; of samples "
            "hajek or horvitz-thompson"
        ),
    ]
    people: Annotated[
        float, about("how many people the values are about: more than reports if only some were asked")
    ]
    leaning: Annotated[
        Note | None, about("that the answer leans on the prior; null if it does not: show it first")
    ]
    prior_check: Annotated[
        float | None, about("the p-value of the reports under the prior; null if there is none")
    ]
    noticeable_change: Annotated[
        float | None,
        about(
            "the share of people who must move between two common values for the check to notice, if known"
        ),
    ]
    unbiased_difference: Annotated[
        float | None,
        about("the distance of a leaning answer from the unbiased one, in standard errors of the latter"),
    ]
    converged: bool
    statistic: Annotated[StatisticKind, about("what the answer has, per person")]
    half_width: Annotated[
        Finite, about("the largest distance to an end of its intervals, per person; null if one has no end")
    ]
    reached: Annotated[Note, about("how precise the answer is")]
    warning: Annotated[Note | None, about("what to do if the reports contradict the prior: show it first")]
    notes: tuple[Note, ...]
    tables: tuple[ResultTable, ...]


class Finding(Document, frozen=True):
    """What the reports of everybody, of a cohort or of a group say about an attribute, or about several together."""

    attributes: Annotated[Names, Meta(min_length=1)]
    margin_of: Annotated[
        Names | None, about("for a margin: the attributes of the table that it is read from")
    ]
    cohort: Annotated[str, about("empty for all together")]
    group: Annotated[str | None, about("empty for everybody; null for the rows without a group")]
    reports: Count
    precision: Annotated[
        Precision | None, about("what the plan promises; null for several plans, and in a margin")
    ]
    promised: Annotated[Note | None, about("the same as a note")]
    withheld: Withheld | None
    figures: Annotated[Figures | None, about("null if they are withheld")]
    public: Annotated[
        Figures | None, about("what the public is shown in place of them; null if that is the same")
    ]


class Levels(Document, frozen=True):
    """The privacy levels of a whole submission."""

    lip: Finite
    lip_lower: Finite
    lip_upper: Finite
    ldp: Finite


class Belief(Document, frozen=True):
    """How likely it seems that a given person has a value, before and after the totals of one tally.

    It is for somebody who starts from the prior of the plan, and to whom people are independent draws of it.
    """

    attributes: Names
    label: Annotated[Names, about("the value that changes by the largest factor")]
    before: float
    after: float


class Totals(Document, frozen=True):
    """What somebody who sees only the published totals of a cohort can learn about one of its people.

    If that person had answered in another way, the probability of any totals would be at most `e^epsilon` times as
    large, plus `delta`, whatever the others answered.
    """

    epsilon: Annotated[float, about("an upper bound, for all totals of a person together")]
    delta: float
    people: Annotated[Count, about("the reports that a person is hidden among, of the tally with the fewest")]
    colluding: Annotated[
        float, about("the share of the people who may let others see what they sent: they are not counted")
    ]
    beliefs: Annotated[
        tuple[Belief, ...], about("one for each tally; none if a plan was designed for a set of priors")
    ]


class CohortReports(Document, frozen=True):
    """A cohort: its form, how many submissions it has, and what each of them reveals at most."""

    cohort: str
    form: str
    reports: Count
    levels: Levels
    identifiable: Annotated[bool, about("whether reports alone determine all distributions")]
    totals: Annotated[
        Totals | None,
        about(
            "only of published results that each needed an invitation; null otherwise, or if nothing can be said"
        ),
    ] = None


class Difference(Document, frozen=True):
    """By how much a number of a group, per person, is above that of the other groups together."""

    group: str
    row: ResultRow
    p_value: Annotated[float, about("of no difference; for all together where intervals are simultaneous")]


class DifferenceTable(Document, frozen=True):
    """The differences of numbers of one kind."""

    attributes: Annotated[Names, about("what the labels have levels of; none where they name statistics")]
    rows: tuple[Difference, ...]


class IndependenceTest(Document, frozen=True):
    """A chi-square test that what is reported is independent of the group."""

    chi_square: float
    degrees: Annotated[Count, about("of freedom")]
    p_value: float
    few_people: Annotated[
        bool, about("fewer than five people are expected in some cell: the p-value is only rough")
    ]


class GroupComparison(Document, frozen=True):
    """The groups of a public column compared with each other, by method unbiased.

    Only groups whose figures are shown are compared, so that nothing follows about the others; rows without a group are
    left out.
    """

    attributes: Annotated[Names, Meta(min_length=1)]
    margin_of: Annotated[
        Names | None, about("for a margin: the attributes of the table that it is read from")
    ]
    groups: tuple[str, ...]
    statistic: Annotated[StatisticKind, about("what the differences are of, per person")]
    independence: Annotated[IndependenceTest | None, about("null for too many values")]
    tables: tuple[DifferenceTable, ...]


class Result(Document, frozen=True):
    """What was found, by question, cohort and group."""

    id: Annotated[str, about("of the campaign; of the plan if that was used alone")]
    confidence: float
    by: Annotated[str | None, about("the public column that forms the groups")]
    smallest_count: Annotated[Count, about("no figure is shown from fewer reports")]
    reports: Count
    cohorts: tuple[CohortReports, ...]
    findings: tuple[Finding, ...]
    simultaneous: Annotated[
        bool,
        about("whether the intervals of all differences of a comparison hold together with the confidence"),
    ]
    comparisons: tuple[GroupComparison, ...]
