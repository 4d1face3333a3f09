"""The bodies of requests and responses, as JSON. The OpenAPI document takes their schemas from these classes.

Where a schema says more than a decoder checks (`_described`), the code that reads a body checks it: a wrong report is
listed in the receipt and does not harm the others.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from priorveil.collect.campaign import Admission, State
from priorveil.collect.questions import Kind
from priorveil.collect.wire import CODE_BYTES, ID_BYTES
from priorveil.curator.tokens import NAME_PATTERN, Role
from priorveil.queries.matrices import StatisticName

LARGEST_BATCH = 10_000
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
LARGEST_WITHDRAWAL = 1000


def _described(**schema: Any) -> Meta:
    """Words of a schema that decoders do not check."""
    return Meta(extra_json_schema=schema)


def _about(text: str) -> Meta:
    """What a field means, for the OpenAPI document."""
    return Meta(description=text)


Natural = Annotated[int, Meta(ge=0)]
ContentId = Annotated[str, _described(pattern="^[0-9a-f]{64}$")]
ReportId = Annotated[str, _described(pattern=f"^[0-9a-fA-F]{{{2 * ID_BYTES}}}$")]
Code = Annotated[str, _described(pattern=f"^[0-9a-fA-F]{{{2 * CODE_BYTES}}}$")]
ReportWords = Annotated[str, _described(pattern="^([0-9a-fA-F]{16})+$")]
Finite = Annotated[float | None, _about("null where there is none, or it is not finite")]
Label = Annotated[Any, _described(type=["string", "number", "array"])]


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON object with exactly these fields."""


# -- reports -----------------------------------------------------------------------------------------------


class ReportBody(Body, gc=False):
    """One submission with its id and the id of its form, and the code of an invitation where the campaign needs one."""

    report_id: ReportId
    form: ContentId
    report: ReportWords
    code: Code | None = None


class BatchBody(Body):
    """A batch of reports; a malformed one is refused and does not harm the others."""

    reports: Annotated[list[ReportBody], _described(maxItems=LARGEST_BATCH)]


class Refusal(Body):
    """A report that was not accepted: its index in the request, its id (null if the report is malformed), and why."""

    index: int
    report_id: str | None
    reason: str


class Receipt(Body):
    """The answer to an upload: how many reports are stored (now or before), and those that are not."""

    accepted: int
    refused: list[Refusal]


class WithdrawalBody(Body):
    """The ids of reports to remove."""

    report_ids: Annotated[list[ReportId], _described(minItems=1, maxItems=LARGEST_WITHDRAWAL)]


class Withdrawn(Body):
    """How many reports were removed. Those that were not there are not counted."""

    removed: Natural


# -- invitations -------------------------------------------------------------------------------------------


class InvitationsBody(Body):
    """How many invitations to make."""

    count: Annotated[int, Meta(ge=1, le=LARGEST_BATCH)]


class Invitations(Body):
    """The codes of new invitations. They are shown only here: the curator stores nothing but their hashes."""

    codes: list[Code]


class FreeInvitations(Body):
    """How many invitations were not used yet."""

    free: Natural


class CodeBody(Body):
    """The code of an invitation, as somebody gives it: any other text is a code that is not free."""

    code: str


class CodeStatus(Body):
    """Whether a code can still be used."""

    free: bool


# -- campaigns ---------------------------------------------------------------------------------------------


class Created(Body):
    """Where a new campaign is."""

    id: ContentId
    url: str


class Status(Body):
    """Whether a campaign takes reports, whether its estimates lean on the prior, and whether results are published."""

    campaign: ContentId
    state: State
    leans_on_prior: bool
    published: bool


class Summary(Body):
    """A campaign in the list of campaigns. If it is damaged, `title` says what is wrong."""

    id: ContentId
    title: str
    cohorts: list[str]
    state: State | Literal["damaged"]
    reports: Natural
    opens: str | None
    closes: Annotated[str | None, _about("its own end")]
    closed: Annotated[str | None, _about("when it was closed early")]
    deleted: Annotated[str | None, _about("when its reports were deleted; it never reopens")]
    published: Annotated[str | None, _about("when its results were published; it never reopens")]


class Deleted(Body):
    """A campaign that is deleted, and how many reports it had."""

    id: ContentId
    reports: Natural


class Campaigns(Body):
    """All campaigns, oldest first."""

    campaigns: list[Summary]


class Counters(Body):
    """How many reports there are, by cohort, how many were refused, by reason, and about how many came, by day.

    A day is one in UTC, such as 2026-11-17. Days without reports are missing. Withdrawn reports stay in their day.
    """

    campaign: ContentId
    reports: dict[str, Natural]
    refused: dict[str, Natural]
    by_day: dict[str, Natural]


# -- surveys -----------------------------------------------------------------------------------------------


class SurveyHeadings(Body):
    """The headings of the sentences."""

    promise: str
    tells: str
    design: str


class SurveySentences(Body):
    """What a submission tells, what the survey tells, and how the budget is used, in sentences."""

    promise: list[str]
    tells: list[str]
    design: list[str]


class SurveyTable(Body):
    """How precisely each question is known."""

    heads: list[str]
    rows: list[list[str]]
    note: str


class SurveyPart(Body):
    """The half widths of 95 % intervals with each number of people; null if so many are too few."""

    subject: str
    query: str
    statistic: str
    drawn: Annotated[float, _about("the share of people for whom it is drawn")]
    half_widths: list[Finite]
    cohort: Annotated[str, _about("empty for the people of all cohorts")]


class SurveyCohort(Body):
    """What a whole submission of a cohort tells, and how many people it has of each number of people."""

    name: str
    people: list[int]
    lip: float
    ldp: float


class SurveyReport(Body):
    """What a survey promises, and what it will tell."""

    epsilon: float
    lip: float
    ldp: float
    assumed: Annotated[list[str], _about("the questions whose prior nobody knows")]
    all_assumed: bool
    contradictory: Annotated[list[str], _about("the questions about which two priors say different things")]
    people: list[int]
    parts: list[SurveyPart]
    smallest_count: Natural
    bytes: Annotated[int, _about("of a submission")]
    topics: int
    chosen: str
    costs: Annotated[
        dict[str, Finite], _about("how many times as many people each way needs as open questions")
    ]
    left_out: Annotated[list[str], _about("what could not be carried over")]
    cohorts: list[SurveyCohort]
    small_groups: Annotated[
        list[str],
        _about(
            "the groups that should have fewer than `smallest_count` people, about which nothing would be shown"
        ),
    ]
    headings: SurveyHeadings
    text: SurveySentences
    table: SurveyTable


class CheckedSurvey(Body):
    """A survey that was designed. Nothing is stored: send `campaign` to `/v1/campaigns` to ask people."""

    report: SurveyReport
    remarks: Annotated[list[str], _about("what should be done before people are asked")]
    campaign: Annotated[str, _about("the text of the campaign's document")]


# -- tokens ------------------------------------------------------------------------------------------------

TokenName = Annotated[str, Meta(pattern=NAME_PATTERN)]
Expiry = Annotated[str | None, _about("the time at which the token ends, such as 2027-01-31T12:00:00Z")]


class NewToken(Body):
    """A token to be made: its name, what it opens, and when it ends."""

    name: TokenName
    role: Role
    expires: Expiry = None


class CreatedToken(NewToken, kw_only=True):
    """A new token. Its secret is shown once."""

    secret: str


class Tokens(Body):
    """All tokens, without their secrets."""

    tokens: list[NewToken]


# -- records -----------------------------------------------------------------------------------------------


class RecordEntry(Body):
    """What somebody did: when, the name of the token, to which campaign, and how many reports or invitations."""

    at: str
    who: str
    action: str
    campaign: str | None
    count: int | None


class Records(Body):
    """The newest records, newest first."""

    records: list[RecordEntry]


# -- estimates ---------------------------------------------------------------------------------------------


class Precision(Body):
    """The largest half width among the statistics that the plan promises for this many people."""

    people: Annotated[int, Meta(ge=1)]
    confidence: float
    population: Annotated[
        float | None,
        _about("for the population, without the prior; null if people are too few or reports do not tell"),
    ]
    these_people: Annotated[
        float | None,
        _about("for the people who reported, if the prior is right; null if the plan does not lean on it"),
    ]
    statistic: Annotated[
        StatisticName, _about("the half widths of shares are shares; others have the unit of the query")
    ]
    determined: Annotated[
        bool | None,
        _about(
            "whether enough reports would determine the statistics, without the prior; null if not checked"
        ),
    ]
    text: Annotated[str, _about("the same in one sentence")]


class Privacy(Body):
    """What a whole submission tells about any answer."""

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


class DisplayRow(Body):
    """A statistic as a page shows it: its numbers per person, for pictures, and their texts.

    If its label names answers, `levels` has them by attribute, and `words` has a text for each question. Otherwise both
    are empty.
    """

    label: str
    name: Annotated[str, _about("the label with codes instead of texts")]
    words: list[str]
    levels: dict[str, str]
    value: Finite
    lower: Finite
    upper: Finite
    expected: Annotated[float | None, _about("what the prior expects")]
    value_text: str
    interval_text: str
    expected_text: str
    people_text: Annotated[str | None, _about("the number of people, if the value is a share")]


class GroupTable(Body):
    """A statistic of each group: the average of a number, or the shares of the answers to a question.

    Without attributes that form groups, these are the shares among the people who were asked the question.
    """

    title: str
    shares: Annotated[bool, _about("whether the numbers are shares of the people of a group")]
    of: Annotated[str, _about("the attribute that is averaged, or whose shares these are")]
    by: Annotated[list[str], _about("the attributes that form the groups; none for all who were asked")]
    rows: list[DisplayRow]


class Display(Body):
    """The tables and sentences that a page shows for an estimate."""

    label_head: str
    interval_head: str
    shares: Annotated[bool, _about("whether the numbers are shares of the people")]
    averages_of: Annotated[
        str | None, _about("the attribute whose averages by group these are; null for other numbers")
    ]
    rows: Annotated[list[DisplayRow], _about("the most relevant statistics, at most a few hundred")]
    left_out: Annotated[str | None, _about("which statistics are shown; null if all are")]
    numbers: Annotated[list[DisplayRow], _about("the mean of numbers, or their quantiles")]
    groups: list[GroupTable]
    withheld: Annotated[
        str | None, _about("which groups are withheld, and why, in a sentence; null if none are")
    ]
    precision: Annotated[str, _about("how precise the estimate is")]


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
        _about("how many people the values are about: more than reports where each is asked only a part"),
    ]
    method: Literal["mmse", "unbiased", "mle", "mixed"]
    assumes: str
    labels: Annotated[list[Label], Meta(min_length=1)]
    values: list[Finite]
    std_error: list[Finite]
    lower: list[Finite]
    upper: list[Finite]
    prior_check: Annotated[
        float | None, _about("the p-value of the reports under the prior; null if there are too few")
    ]
    noticeable_change: Annotated[
        float | None,
        _about(
            "the share of people who must move between two common values for the check to notice; null if more than "
            "all, or not known"
        ),
    ]
    unseen_changes: Annotated[
        str | None, _about("which changes the check does not notice, however large; null if there are none")
    ]
    unbiased_difference: Annotated[
        float | None,
        _about("the distance of a leaning answer from the unbiased one, in standard errors of the latter"),
    ]
    warning: Annotated[
        str | None,
        _about("what to do if the reports contradict the prior that the answer leans on; show it first"),
    ]
    notes: Annotated[list[str], _about("the method, what it assumes, and the prior check, in sentences")]
    statistics: Annotated[
        list[NumberStatistic],
        _about(
            "the mean of numbers on a grid, quantiles of numbers in cells, averages by group, and shares within "
            "groups; empty for other values"
        ),
    ]
    withheld_groups: Annotated[
        list[dict[str, Any]],
        _about(
            "the groups about which nothing is said, by the levels of their attributes (null: all who were asked): "
            "the estimate counts fewer than `smallest_count` people in them, or figures that are withheld would follow "
            "from theirs"
        ),
    ]
    converged: bool
    display: Display


Promise = Annotated[
    str | None, _about("the precision that the plan promises, in a sentence; null in a margin")
]
PriorStatistics = Annotated[
    list[float] | None, _about("every statistic per person, under the prior; null in a margin")
]


class Cohort(Body):
    """A cohort: its form, how many submissions it has, and what each of them tells about any answer."""

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
    withheld: Annotated[bool, _described(const=False)]


class Withheld(Body, kw_only=True):
    """A cohort with too few reports for a result."""

    reports: Natural
    cohort: str
    plan: ContentId
    identifiable: bool
    prior: PriorStatistics = None
    precision: Precision | None = None
    promise: Promise = None
    withheld: Annotated[bool, _described(const=True)]


_COHORTS = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in (Shown, Withheld)]


class Result(Body):
    """What the reports say about an attribute, or about several together, in each cohort.

    The total is null if a cohort is withheld, or reports about these attributes in another way.
    """

    attributes: Annotated[list[str], Meta(min_length=1)]
    questions: Annotated[list[str], _about("the names of the questions that give the attributes")]
    title: Annotated[str, _about("the texts of these questions, in the default language")]
    option: Annotated[
        str | None, _about('the text of the option, if this is about one option of "tick all that apply"')
    ]
    unit: str
    margin_of: Annotated[
        list[str] | None, _about("if this is a margin: the attributes of the table that it is read from")
    ]
    cohorts: list[Annotated[Any, _described(oneOf=_COHORTS)]]  # Shown or Withheld
    total: Total | None


class Estimates(Body):
    """The results of all questions."""

    campaign: ContentId
    title: str
    level: float
    smallest_count: Natural
    leans_on_prior: bool
    caution: Annotated[
        str | None, _about("a sentence to show first, unless there are warnings; null if none is needed")
    ]
    withheld_because: Annotated[str, _about("why some results are withheld, if some are")]
    facts: list[Fact]
    assumed_prior: Annotated[
        str | None, _about("a sentence on what holds if a prior was only assumed; null if all are known")
    ]
    admission: Admission
    admission_text: Annotated[str, _about("who may answer, and what that means for the results")]
    methods: list[MethodTitle]
    reports: Annotated[int, Meta(ge=0), _about("how many submissions there are")]
    cohorts: list[Cohort]
    results: list[Result]
    state: State
    not_for_publication: Annotated[
        str | None, _about("a sentence to show with every number; null once the results are published")
    ] = None


ByLanguage = Annotated[dict[str, str], _about("a text by language; empty if it was not given")]


class PublishedQuestion(Body):
    """A question as people read it, in all languages."""

    name: str
    kind: Kind
    text: ByLanguage
    unit: ByLanguage
    options: Annotated[dict[str, ByLanguage], _about("the texts of the options by their codes")]


class Publication(Body):
    """The results of a closed campaign, made once. They never change."""

    published: Annotated[str, _about("when they were published")]
    languages: Annotated[list[str], _about("the languages of the campaign's texts, the default first")]
    title: ByLanguage
    asked_by: ByLanguage
    purpose: ByLanguage
    description: ByLanguage
    contact: str
    questions: list[PublishedQuestion]
    most_reports: int | None
    opens: str | None
    closes: str | None
    results: Estimates


# -- operations --------------------------------------------------------------------------------------------


class Health(Body):
    """The process answers, or reports can be stored."""

    status: Literal["ok", "ready"]


class Problem(Body):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


class SurveyProblem(Problem):
    """Why a survey is refused, and where it is wrong: a line, a cell such as `survey!C4`, or the keys of JSON."""

    advice: Annotated[str, _about("what to do, without the place")]
    line: int | None = None
    cell: str | None = None
    keys: list[str | int] = []


_BODIES = (
    ReportBody, BatchBody, Receipt, Created, Status, Campaigns, Counters, Shown, Withheld, Estimates, Health, Problem,
    CreatedToken, Tokens, Records, WithdrawalBody, Withdrawn, InvitationsBody, Invitations, FreeInvitations, CodeBody,
    CodeStatus, Deleted, Publication, CheckedSurvey, SurveyProblem,
)  # fmt: skip


def schemas() -> dict[str, Any]:
    """The schemas of all bodies by name, as components of an OpenAPI document."""
    return msgspec.json.schema_components(_BODIES, ref_template="#/components/schemas/{name}")[1]
