"""Answer a campaign from Python: fetch it, check its proof, perturb the value here, and send only the report.

The answer is stored before it is sent. A second call sends the same report, so that nobody learns more from it, and a
report that could not be sent is sent later, with the same id.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from priorveil.collect import transport as http
from priorveil.collect.answer_store import AnswerStore, NotStored, StoredAnswer
from priorveil.collect.campaign import Campaign
from priorveil.collect.state_folder import default_folder
from priorveil.collect.transport import NotSent, RetryPolicy, Transport, UnreadableResponse
from priorveil.collect.wire import CODE_BYTES, Report, fresh_id, hex_bytes, report_to_json
from priorveil.errors import NOT_SHOWN, InvalidInput, OutsideDomain, PriorveilError, short_repr
from priorveil.mechanisms.randomness import SystemSource
from priorveil.plans import Plan
from priorveil.plans.ledger import Ledger
from priorveil.priors import Budget, Domain, Label
from priorveil.priors.domain import MISSING, OUTSIDE
from priorveil.priors.joint import read_domain

__all__ = ["AnswerStore", "Client", "NotSent", "NotStored", "ReportRefused", "RetryPolicy", "default_folder"]

_LARGEST_CAMPAIGN = 64 << 20
_LARGEST_RECEIPT = 64 << 10
_LONGEST_REASON = 80
_NO_INVITATION = "no invitation"
_WITHDRAWN = "withdrawn"
# The same report may be taken later: when a wrong clock is right again or the campaign reopens, after somebody has
# withdrawn, or with another code.
_NOT_FINAL = ("not yet open", "closed", "full", _NO_INVITATION)


class ReportRefused(PriorveilError):
    """The curator does not accept the report, or the campaign cannot be answered; `reason` says why.

    `final` is false where the same report may be accepted later.
    """

    def __init__(self, reason: str, final: bool = True) -> None:
        super().__init__(f"the report was not accepted: {reason}")
        self.reason = reason
        self.final = final


class Client:
    """Answers one campaign, once.

    `campaign_url` ends in the campaign's id, which is checked against the content. `state` is the folder where
    answers are remembered, `default_folder()` if not given; `AnswerStore()` remembers in this process only, for
    simulations. `code` is that of an invitation, for campaigns that need one; a link of an invitation has it in it.
    `limit` is the level (LIP, or a `Budget`) that all remembered answers about the same values
    may reach together. `transport` replaces httpx's, for proxies and tests.
    """

    def __init__(
        self,
        campaign_url: str,
        transport: Transport | None = None,
        state: str | Path | AnswerStore | None = None,
        limit: float | Budget | None = None,
        retry: RetryPolicy | None = None,
        code: str | None = None,
    ) -> None:
        self._url, self._id = http.parse_campaign_url(campaign_url)
        state = default_folder() if state is None else state
        self._answers = state if isinstance(state, AnswerStore) else AnswerStore(state)
        self._limit = None if limit is None else Budget.of(limit, "limit")
        self._code = http.code_of_link(campaign_url) if code is None else code
        if self._code is not None and hex_bytes(self._code, CODE_BYTES) is None:
            raise InvalidInput("code", NOT_SHOWN, "give the 32 hexadecimal digits of an invitation")
        self._http = http.HttpClient(transport, retry or RetryPolicy())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections."""
        self._http.close()

    @cached_property
    def campaign(self) -> Campaign:
        """The campaign, fetched once; refused if a certificate does not hold or its id is another."""
        try:
            answer = self._http.request(self._url, _LARGEST_CAMPAIGN)
        except UnreadableResponse as error:
            raise ReportRefused(f"the campaign at this address cannot be read: {error}") from error
        if answer.status != 200 or not answer.kind.startswith("application/json"):
            raise ReportRefused(f"there is no campaign at this address ({answer.status})")
        campaign = Campaign.from_json(answer.body)
        if campaign.id != self._id:
            problem = f"the campaign at this address has another id, {campaign.id}"
            raise InvalidInput("campaign_url", self._url, problem)
        return campaign

    def answer(self, value: Label, cohort: str | None = None) -> Report:
        """Answer with a value; only its report leaves. A second call replays the first answer.

        The first answer stands: another value of the domain is then ignored, and one outside it refused.
        Raises `NotSent` if the curator could not be reached (the report is kept), `NotStored` if the answer cannot
        be remembered (nothing is sent), `BudgetExceeded` if the limit would be passed (nothing is drawn or sent).
        """
        answer = self._answers.find(self._id)
        _check_answer(value, self.campaign.domain if answer is None else read_domain(answer.plan["labels"]))
        if answer is None:
            with self._answers.lock():  # another process may have stored an answer meanwhile
                answer = self._answers.find(self._id) or self._first_answer(value, cohort)
        return self._send(answer)

    def withdraw(self) -> bool:
        """Remove the report of an earlier answer from the curator; whether it was there.

        The answer stays stored and is never sent again. Raises `NotSent` if the curator could not be reached.
        """
        with self._answers.lock():
            answer = self._answers.find(self._id)
            if answer is None:
                raise InvalidInput(
                    "state", NOT_SHOWN, "it has no answer to this campaign, so nothing can be withdrawn"
                )
            self._answers.keep(replace(answer, refused=_WITHDRAWN, code=None))
        document = {"report_ids": [answer.report.report_id]}
        return bool(self._ask("withdrawals", document, "removed"))

    def flush(self) -> int:
        """Send what could not be sent before, for all campaigns in the folder; how many are still waiting."""
        waiting = 0
        for answer in self._answers:
            if answer.sent or answer.refused is not None:
                continue
            try:
                self._send(answer)
            except NotSent:
                waiting += 1
            except ReportRefused as error:
                waiting += not error.final
        return waiting

    def _first_answer(self, value: Label, cohort: str | None) -> StoredAnswer:
        """A fresh report within the limit, stored."""
        plan = self.campaign.plan_for(cohort)
        state = self.campaign.state(datetime.now(UTC))
        if state != "open":
            raise ReportRefused(state, final=False)
        self._check_limit(plan)
        code = self._free_code()
        drawn = report_to_json(plan.mechanism, plan.privatize(value))
        report = Report(fresh_id(), self._id, plan.id, drawn)
        answer = StoredAnswer(self._url, report, {"id": plan.id, **plan.document()}, code=code)
        self._answers.keep(answer)
        return answer

    def _free_code(self) -> str | None:
        """The code to send with a first report, which must be free; None if the campaign needs none."""
        if self.campaign.admission == "open":
            return None
        if self._code is None:
            raise InvalidInput("code", None, "people need an invitation to answer: give its code or its link")
        if not self._ask("invitation", {"code": self._code}, "free"):
            raise ReportRefused(_NO_INVITATION, final=False)
        return self._code

    def _ask(self, path: str, document: object, field: str) -> object:
        """One field of the curator's response to a small request."""
        other = "the response did not come from a curator (a proxy or a login page?): try again later"
        try:
            response = self._http.request(f"{self._url}/{path}", _LARGEST_RECEIPT, document)
            if response.status != 200:
                raise ReportRefused(f"the curator answered {response.status}", final=False)
            return json.loads(response.body)[field]
        except (UnreadableResponse, ValueError, RecursionError, KeyError, TypeError) as error:
            raise NotSent(other) from error

    def _check_limit(self, plan: Plan) -> None:
        """Spend what the stored answers about these values spent, then this plan; raises `BudgetExceeded`."""
        if self._limit is None:
            return
        ledger = Ledger(plan.prior, plan.secret, self._limit)
        for answer in self._answers:
            if set(read_domain(answer.plan["labels"]).labels) == set(plan.labels):
                ledger.spend(Plan.from_json(json.dumps(answer.plan)))
        ledger.spend(plan)

    def _send(self, answer: StoredAnswer) -> Report:
        if answer.refused is not None:
            raise ReportRefused(answer.refused)
        if answer.sent:
            return answer.report
        if answer.report.campaign == self._id:
            # An earlier client may have used another address, or a code that was not free.
            code = None if answer.code is None else self._code or answer.code
            mine = replace(answer, url=self._url, code=code)
            if mine != answer:
                self._note(answer := mine)
        try:
            document = answer.report.document() | ({} if answer.code is None else {"code": answer.code})
            response = self._http.request(f"{answer.url}/reports", _LARGEST_RECEIPT, document)
            if response.status != 200:
                raise ReportRefused(f"the curator answered {response.status}", final=False)
            refused = _reason(response.body)
        except (NotSent, UnreadableResponse) as error:
            other = "the response did not come from a curator (a proxy or a login page?): try again later"
            why, folder = error if isinstance(error, NotSent) else other, self._answers.folder
            where = f"in {folder}: answer() or flush()" if folder else "until this process ends: flush()"
            raise NotSent(f"{why}. The report is kept {where} sends it") from error
        if refused in _NOT_FINAL:
            raise ReportRefused(refused, final=False)
        self._note(replace(answer, sent=refused is None, refused=refused, code=None))
        if refused is not None:
            raise ReportRefused(refused)
        return answer.report

    def _note(self, answer: StoredAnswer) -> None:
        """Store the new state of an answer. If that fails, the answer stays stored as it was, and may be sent again."""
        with suppress(PriorveilError):
            self._answers.keep(answer)


def _check_answer(value: object, domain: Domain) -> None:
    """Refuse a value that is not one of the answers; the message never shows it."""
    if not domain.is_value(value):
        advice = f"type {type(value).__name__}; give one of the campaign's answers"
        raise InvalidInput("value", NOT_SHOWN, advice)
    (code,) = domain.encode(domain.columns([value]), SystemSource().words)
    if code == MISSING:
        raise InvalidInput("value", NOT_SHOWN, "it is missing; give one of the campaign's answers")
    if code == OUTSIDE:
        raise OutsideDomain(0, domain.describe())


def _reason(receipt: bytes) -> str | None:
    """Why the curator refused the report, or None. Raises `UnreadableResponse` for any other response."""
    with suppress(ValueError, RecursionError):
        match json.loads(receipt):
            case {"accepted": 1, "refused": []}:
                return None
            case {"refused": [{"reason": str(reason)}]}:
                plain = reason.isprintable() and len(reason) <= _LONGEST_REASON
                return reason if plain else short_repr(reason)
    raise UnreadableResponse("it is not the receipt of a curator")
