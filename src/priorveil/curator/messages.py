"""The bodies of requests and responses, as JSON. The OpenAPI document takes their schemas from these classes.

Those of results are in `result_messages`.

Where a schema says more than decoding checks (`schema_keywords`), the code that reads a body checks it: a wrong
report is listed in the receipt and does not harm the others.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from priorveil.curator.store import ResultKind
from priorveil.curator.tokens import NAME_PATTERN, Role
from priorveil.device.wire import CODE_BYTES, ID_BYTES
from priorveil.plans.structure import CONTENT_ID, Document, about, schema_keywords
from priorveil.questions.campaign import PublicState
from priorveil.questions.survey_check import SurveyCheck
from priorveil.reading.estimate import EstimateMethod
from priorveil.results.document import Count
from priorveil.words.surveys import SurveyWords

LARGEST_BATCH = 10_000
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
LARGEST_WITHDRAWAL = 1000


IdText = Annotated[str, schema_keywords(pattern=f"^{CONTENT_ID}$")]
ReportId = Annotated[str, schema_keywords(pattern=f"^[0-9a-fA-F]{{{2 * ID_BYTES}}}$")]
Code = Annotated[str, schema_keywords(pattern=f"^[0-9a-fA-F]{{{2 * CODE_BYTES}}}$")]
ReportWords = Annotated[str, schema_keywords(pattern="^([0-9a-fA-F]{16})+$")]


# -- reports -----------------------------------------------------------------------------------------------


class ReportBody(Document, frozen=True, gc=False):
    """One submission with its id and the id of its form, and the code of an invitation where the campaign needs one."""

    report_id: ReportId
    form: IdText
    report: ReportWords
    code: Code | None = None


class BatchBody(Document, frozen=True):
    """A batch of reports; a malformed one is refused and does not harm the others."""

    reports: Annotated[list[ReportBody], schema_keywords(maxItems=LARGEST_BATCH)]


class Refusal(Document, frozen=True):
    """A report that was not accepted: its index in the request, its id (null if the report is malformed), and why."""

    index: int
    report_id: str | None
    reason: str


class Receipt(Document, frozen=True):
    """The answer to an upload: how many reports are stored (now or before), and those that are not."""

    accepted: int
    refused: list[Refusal]


class WithdrawalBody(Document, frozen=True):
    """The ids of reports to remove."""

    report_ids: Annotated[list[ReportId], schema_keywords(minItems=1, maxItems=LARGEST_WITHDRAWAL)]


class Withdrawn(Document, frozen=True):
    """How many reports were removed. Ids without a report are not counted."""

    removed: Count


class ExportedReports(Document, frozen=True):
    """The reports of a campaign."""

    reports: list[ReportBody]


# -- invitations -------------------------------------------------------------------------------------------


class InvitationsBody(Document, frozen=True):
    """How many invitations to make."""

    count: Annotated[int, Meta(ge=1, le=LARGEST_BATCH)]


class Invitations(Document, frozen=True):
    """The codes of new invitations. They are shown only here: the curator stores nothing but their hashes."""

    codes: list[Code]


class FreeInvitations(Document, frozen=True):
    """How many invitations were not used yet."""

    free: Count


class CodeBody(Document, frozen=True):
    """The code of an invitation, as somebody gives it: any other text is a code that is not free."""

    code: str


class CodeStatus(Document, frozen=True):
    """Whether a code can still be used."""

    free: bool


# -- campaigns ---------------------------------------------------------------------------------------------


Warnings = Annotated[list[str], about("what should be changed before people are asked, in sentences")]


class Created(Document, frozen=True):
    """Where a new campaign is."""

    id: IdText
    url: str
    warnings: Warnings


class Status(Document, frozen=True):
    """Whether a campaign takes reports, leans on the prior, and is published; and what is wrong with it."""

    campaign: IdText
    state: PublicState
    leans_on_prior: bool
    published: bool
    warnings: Warnings


class ResultOrigin(Document, frozen=True):
    """Why and when the results that analysts see were made, and from how many reports. They do not change."""

    kind: ResultKind
    made: str
    reports: Count


class Summary(Document, frozen=True):
    """A campaign in the list of campaigns. If it is damaged, `title` says what is wrong."""

    id: IdText
    title: str
    cohorts: list[str]
    state: PublicState | Literal["damaged"]
    reports: Annotated[
        Count | None, about("for an analyst those of the stored results; null if there are none")
    ]
    opens: str | None
    closes: Annotated[str | None, about("its own end")]
    closed: Annotated[str | None, about("when it was closed early")]
    deleted: Annotated[str | None, about("when its reports were deleted; it never reopens")]
    published: Annotated[str | None, about("when its results were published; it never reopens")]
    stored: ResultOrigin | None


class Deleted(Document, frozen=True):
    """A campaign that is deleted, and how many reports it had."""

    id: IdText
    reports: Count


class Campaigns(Document, frozen=True):
    """All campaigns, oldest first."""

    campaigns: list[Summary]


class Counters(Document, frozen=True):
    """How many reports there are, by cohort, how many were refused, by reason, and about how many came, by day.

    An analyst gets those of the stored results. A day is one in UTC, such as 2026-11-17. Days without reports are
    missing. Withdrawn reports stay in their day.
    """

    campaign: IdText
    reports: dict[str, Count]
    refused: dict[str, Count]
    by_day: dict[str, Count]


# -- surveys -----------------------------------------------------------------------------------------------


class CheckedSurvey(Document, frozen=True):
    """A survey that was designed. Nothing is stored: send `campaign` to `/v1/campaigns` to ask people."""

    check: SurveyCheck
    words: SurveyWords
    remarks: Annotated[list[str], about("what should be done before people are asked")]
    campaign: Annotated[str, about("the text of the campaign's document")]


# -- queries -----------------------------------------------------------------------------------------------


class ResultsQuery(msgspec.Struct, frozen=True):
    """How results are sent."""

    format: Literal["json", "csv"] = "json"


class EstimatesQuery(ResultsQuery, frozen=True):
    """How estimates are made, and how they are sent."""

    method: EstimateMethod = "auto"
    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.95


class ExportQuery(msgspec.Struct, frozen=True):
    """How reports are sent."""

    format: Literal["parquet", "csv", "json"] = "parquet"


class SurveyQuery(msgspec.Struct, frozen=True):
    """What a survey is designed for."""

    people: Annotated[int, Meta(ge=1, le=999_999_999), about("how many people will answer")] = 300


# -- tokens ------------------------------------------------------------------------------------------------

TokenName = Annotated[str, schema_keywords(pattern=NAME_PATTERN)]
Expiry = Annotated[str | None, about("the time at which the token ends, such as 2027-01-31T12:00:00Z")]


class NewToken(Document, frozen=True):
    """A token to be made: its name, what it opens, and when it ends."""

    name: TokenName
    role: Role
    expires: Expiry = None


class CreatedToken(NewToken, frozen=True, kw_only=True):
    """A new token. Its secret is shown once."""

    secret: str


class Tokens(Document, frozen=True):
    """All tokens, without their secrets."""

    tokens: list[NewToken]


# -- records -----------------------------------------------------------------------------------------------


class RecordEntry(Document, frozen=True):
    """What somebody did: when, the name of the token, to which campaign, and how many reports or invitations."""

    at: str
    who: str
    action: str
    campaign: str | None
    count: int | None


class Records(Document, frozen=True):
    """The newest records, newest first."""

    records: list[RecordEntry]


# -- operations --------------------------------------------------------------------------------------------


class Health(Document, frozen=True):
    """The process answers, or reports can be stored."""

    status: Literal["ok", "ready"]


class Problem(Document, frozen=True):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


class SurveyProblem(Problem, frozen=True):
    """Why a survey is refused, and where it is wrong: a line, a cell such as `survey!C4`, or the keys of JSON."""

    advice: Annotated[str, about("what to do, without the place")]
    line: int | None = None
    cell: str | None = None
    keys: list[str | int] = msgspec.field(default_factory=list)
