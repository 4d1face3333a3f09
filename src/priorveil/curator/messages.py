"""The bodies of requests and responses, as JSON. The OpenAPI document takes their schemas from these classes.

Those of results are in `result_messages`.

Where a schema says more than a decoder checks (`described`), the code that reads a body checks it: a wrong report is
listed in the receipt and does not harm the others.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from priorveil.collect.campaign import PublicState
from priorveil.collect.wire import CODE_BYTES, ID_BYTES
from priorveil.curator.store import ResultKind
from priorveil.curator.tokens import NAME_PATTERN, Role

LARGEST_BATCH = 10_000
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
LARGEST_WITHDRAWAL = 1000


def described(**schema: Any) -> Meta:
    """Words of a schema that decoders do not check."""
    return Meta(extra_json_schema=schema)


def about(text: str) -> Meta:
    """What a field means, for the OpenAPI document."""
    return Meta(description=text)


Natural = Annotated[int, Meta(ge=0)]
ContentId = Annotated[str, described(pattern="^[0-9a-f]{64}$")]
ReportId = Annotated[str, described(pattern=f"^[0-9a-fA-F]{{{2 * ID_BYTES}}}$")]
Code = Annotated[str, described(pattern=f"^[0-9a-fA-F]{{{2 * CODE_BYTES}}}$")]
ReportWords = Annotated[str, described(pattern="^([0-9a-fA-F]{16})+$")]
Finite = Annotated[float | None, about("null where there is none, or it is not finite")]


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

    reports: Annotated[list[ReportBody], described(maxItems=LARGEST_BATCH)]


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

    report_ids: Annotated[list[ReportId], described(minItems=1, maxItems=LARGEST_WITHDRAWAL)]


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


Warnings = Annotated[list[str], about("what should be changed before people are asked, in sentences")]


class Created(Body):
    """Where a new campaign is."""

    id: ContentId
    url: str
    warnings: Warnings


class Status(Body):
    """Whether a campaign takes reports, leans on the prior, and is published; and what is wrong with it."""

    campaign: ContentId
    state: PublicState
    leans_on_prior: bool
    published: bool
    warnings: Warnings


class ResultOrigin(Body):
    """Why and when the results that analysts see were made, and from how many reports. They do not change."""

    kind: ResultKind
    made: str
    reports: Natural


class Summary(Body):
    """A campaign in the list of campaigns. If it is damaged, `title` says what is wrong."""

    id: ContentId
    title: str
    cohorts: list[str]
    state: PublicState | Literal["damaged"]
    reports: Annotated[
        Natural | None, about("for an analyst those of the stored results; null if there are none")
    ]
    opens: str | None
    closes: Annotated[str | None, about("its own end")]
    closed: Annotated[str | None, about("when it was closed early")]
    deleted: Annotated[str | None, about("when its reports were deleted; it never reopens")]
    published: Annotated[str | None, about("when its results were published; it never reopens")]
    stored: ResultOrigin | None


class Deleted(Body):
    """A campaign that is deleted, and how many reports it had."""

    id: ContentId
    reports: Natural


class Campaigns(Body):
    """All campaigns, oldest first."""

    campaigns: list[Summary]


class Counters(Body):
    """How many reports there are, by cohort, how many were refused, by reason, and about how many came, by day.

    An analyst gets those of the stored results. A day is one in UTC, such as 2026-11-17. Days without reports are
    missing. Withdrawn reports stay in their day.
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
    drawn: Annotated[float, about("the share of people for whom it is drawn")]
    half_widths: list[Finite]
    cohort: Annotated[str, about("empty for the people of all cohorts")]
    unit: Annotated[str, about("of the half widths of means; empty for shares")]


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
    assumed: Annotated[list[str], about("the questions whose prior nobody knows")]
    reports: Annotated[int, about("that each person sends")]
    people: list[int]
    parts: list[SurveyPart]
    smallest_count: Natural
    bytes: Annotated[int, about("of a submission")]
    topics: int
    chosen: str
    costs: Annotated[
        dict[str, Finite], about("how many times as many people each way needs as open questions")
    ]
    left_out: Annotated[list[str], about("what was left out of the file")]
    cohorts: list[SurveyCohort]
    warnings: Warnings
    headings: SurveyHeadings
    text: SurveySentences
    table: SurveyTable


class CheckedSurvey(Body):
    """A survey that was designed. Nothing is stored: send `campaign` to `/v1/campaigns` to ask people."""

    report: SurveyReport
    remarks: Annotated[list[str], about("what should be done before people are asked")]
    campaign: Annotated[str, about("the text of the campaign's document")]


# -- tokens ------------------------------------------------------------------------------------------------

TokenName = Annotated[str, described(pattern=NAME_PATTERN)]
Expiry = Annotated[str | None, about("the time at which the token ends, such as 2027-01-31T12:00:00Z")]


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

    advice: Annotated[str, about("what to do, without the place")]
    line: int | None = None
    cell: str | None = None
    keys: list[str | int] = []
