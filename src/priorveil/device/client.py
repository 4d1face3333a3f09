"""Answer a campaign from Python: fetch it, check its proofs, perturb the answers here, and send only the report.

What is drawn is stored before it is shown, and the report before it is sent. A second call sends the same report, so
that nobody learns more from it, and a report that could not be sent is sent later, with the same id.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from priorveil.device import transport as http
from priorveil.device.answer_store import AnswerStore, NotStored, StoredAnswer
from priorveil.device.state_folder import default_folder
from priorveil.device.transport import NotSent, RetryPolicy, Transport, UnreadableResponse
from priorveil.device.wire import CODE_BYTES, NO_INVITATION, Report, fresh_id, hex_bytes, words_to_hex
from priorveil.errors import NOT_SHOWN, BudgetExceeded, InvalidInput, PriorveilError, short_repr
from priorveil.questions.campaign import DEFAULT_LIMIT, Campaign

__all__ = [
    "DEFAULT_LIMIT",
    "AnswerStore",
    "Client",
    "NotSent",
    "NotStored",
    "ReportRefused",
    "RetryPolicy",
    "default_folder",
]

_LARGEST_CAMPAIGN = 64 << 20
_LARGEST_RECEIPT = 64 << 10
_LONGEST_REASON = 80
_WITHDRAWN = "withdrawn"
# The same report may be taken later: when a wrong clock is right again or the campaign reopens, after somebody has
# withdrawn, or with another code.
_NO_CURATOR = "the response did not come from a curator (a proxy or a login page?): try again later"
_NOT_FINAL = ("not yet open", "closed", "full", NO_INVITATION)


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

    `campaign_url` ends in the campaign's id, which is checked against the content. `state` is the folder where answers
    are remembered, `default_folder()` if not given; `AnswerStore()` remembers in this process only, for simulations.
    `code` is that of an invitation, for campaigns that need one; a link of an invitation has it in it. `limit` is the
    LDP level that all remembered answers to campaigns of the same curator may reach together; a campaign may lower it.
    A form with an infinite level (for a latent secret) has to be the only one that is answered. `transport` replaces
    httpx's, for proxies and tests.
    """

    def __init__(
        self,
        campaign_url: str,
        transport: Transport | None = None,
        state: str | Path | AnswerStore | None = None,
        limit: float = DEFAULT_LIMIT,
        retry: RetryPolicy | None = None,
        code: str | None = None,
    ) -> None:
        self._url, self._id = http.parse_campaign_url(campaign_url)
        state = default_folder() if state is None else state
        self._answers = state if isinstance(state, AnswerStore) else AnswerStore(state)
        if type(limit) not in (int, float) or not limit > 0:
            raise InvalidInput("limit", limit, "give an LDP level above zero; math.inf for no limit")
        self._limit = limit
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
        """The campaign, fetched once; refused if a certificate does not hold or its id differs."""
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

    def begin(self, cohort: str | None = None) -> tuple[int, ...]:
        """Draw which parts of the form to answer, and store that before it is shown; a second call returns the same.

        `campaign.questions_to_ask(cohort, draw)` are then the questions to answer. Until the answer, another cohort
        may be given: its draw is from the same random words. Raises `BudgetExceeded` if the limit would be passed
        (nothing is drawn).
        """
        with self._answers.lock():  # another process may have begun meanwhile
            return self._begin(cohort).draw

    def answer(self, answers: Any, cohort: str | None = None) -> Report:
        """Answer the questions; only a report is sent. A second call sends the first report: `replayed` is then true.

        `answers` are by the name of the question: a code, a list of codes, or a number. For a campaign with one
        question it may be the answer itself. Answers to questions that were not drawn are checked, and not used.

        Raises `NotSent` if the curator could not be reached (the report is kept), `NotStored` if the answer cannot
        be remembered (nothing is sent), `BudgetExceeded` if the limit would be passed (nothing is drawn or sent).
        """
        stored, replayed = self._answers.find(self._id), True
        if stored is None or stored.report is None:
            with self._answers.lock():
                stored = self._begin(cohort)
                if stored.report is None:
                    stored, replayed = self._first_answer(stored, answers), False
        return replace(self._send(stored), replayed=replayed)

    def withdraw(self) -> bool:
        """Remove the report of an earlier answer from the curator; whether it was there.

        The answer stays stored and is never sent again. Raises `NotSent` if the curator could not be reached, and
        `ReportRefused` if it removes no report any more, because results are published; then nothing changes.
        """
        with self._answers.lock():
            answer = self._answers.find(self._id)
            if answer is None or answer.report is None:
                raise InvalidInput(
                    "state", NOT_SHOWN, "it has no answer to this campaign, so nothing can be withdrawn"
                )
            self._answers.keep(replace(answer, refused=_WITHDRAWN, code=None))
        return self._remove(replace(answer, url=self._url))

    def flush(self) -> int:
        """Send what could not be sent before, for all campaigns in the folder; how many are still waiting."""
        waiting = 0
        for campaign in [answer.campaign for answer in self._answers]:
            answer = self._answers.find(campaign)  # another process may have sent or withdrawn it meanwhile
            if answer is None or answer.report is None or answer.sent or answer.refused is not None:
                continue
            try:
                self._send(answer)
            except NotSent:
                waiting += 1
            except ReportRefused as error:
                waiting += not error.final
        return waiting

    def _remove(self, answer: StoredAnswer) -> bool:
        """Ask the curator to remove the report of an answer that is stored as withdrawn; whether it was there."""
        assert answer.report is not None
        document = {"report_ids": [answer.report.report_id]}
        try:
            return bool(self._ask(answer.url, "withdrawals", document, "removed"))
        except ReportRefused:  # the curator keeps the report
            with self._answers.lock():
                now = self._answers.find(answer.campaign) or answer
                self._answers.keep(replace(now, refused=answer.refused, code=answer.code))
            raise

    def _begin(self, cohort: str | None) -> StoredAnswer:
        """What is stored about this campaign; before the first answer, a draw within the limit."""
        stored = self._answers.find(self._id)
        if stored is not None and stored.report is not None:
            return stored
        self._check_open()
        form = self.campaign.form_for(stored.cohort if stored is not None and cohort is None else cohort)
        if stored is not None and not form.fits_draw(stored.draws.get(form.id, ())):
            advice = "the stored draw is not one of this campaign: move its file away, to draw again"
            raise InvalidInput("state", str(self._answers.folder), advice)
        cohort_name = self.campaign.cohort_of[form.id]
        ldp = self.campaign.ldp_cost(cohort_name)
        self._check_limit(ldp)
        if stored is None:
            code, draws = self._free_code(), self.campaign.draw_forms()
            draft = StoredAnswer(self._url, self._id, cohort_name, form.id, draws, ldp, code=code)
        else:
            draft = replace(stored, cohort=cohort_name, form=form.id, ldp=ldp)
        if draft != stored and (stored is not None or any(slot.is_drawn for slot in form.slots)):
            self._answers.keep(draft)
        return draft

    def _first_answer(self, draft: StoredAnswer, answers: Any) -> StoredAnswer:
        """A fresh report about what was drawn, stored."""
        campaign, form = self.campaign, self.campaign.forms[draft.form]
        if not isinstance(answers, Mapping) and len(campaign.questions) == 1:
            answers = {campaign.questions[0].name: answers}
        campaign.check_answers(answers)
        questions = campaign.questions_to_ask(draft.cohort, draft.draw)
        (words,) = form.privatize(campaign.attribute_values(answers, questions), draft.draw)
        answer = replace(draft, report=Report(fresh_id(), self._id, form.id, words_to_hex(words)))
        self._answers.keep(answer)
        return answer

    def _check_open(self) -> None:
        state = self.campaign.state(datetime.now(UTC))
        if state != "open":
            raise ReportRefused(state, final=False)

    def _free_code(self) -> str | None:
        """The code to send with a first report, which must be free; None if the campaign needs none."""
        if self.campaign.admission == "open":
            return None
        if self._code is None:
            raise InvalidInput("code", None, "people need an invitation to answer: give its code or its link")
        if not self._ask(self._url, "invitation", {"code": self._code}, "free"):
            raise ReportRefused(NO_INVITATION, final=False)
        return self._code

    def _ask(self, url: str, path: str, document: object, field: str) -> object:
        """One field of the curator's response to a small request about the campaign at this address."""
        try:
            response = self._http.request(f"{url}/{path}", _LARGEST_RECEIPT, document)
            if response.status != 200:
                raise ReportRefused(f"the curator answered {response.status}", final=False)
            return json.loads(response.body)[field]
        except (UnreadableResponse, ValueError, RecursionError, KeyError, TypeError) as error:
            raise NotSent(_NO_CURATOR) from error

    def _check_limit(self, ldp: float) -> None:
        """Refuse an answer if the LDP level of all answers to this curator would then exceed the limit."""
        curator = http.origin(self._url)
        earlier = [a.ldp for a in self._answers if a.report and http.origin(a.url) == curator]
        if math.isinf(ldp) and not earlier:
            return
        limit, total = min(self._limit, self.campaign.limit or math.inf), math.fsum([*earlier, ldp])
        if total > limit or math.isinf(total):
            sums = f"{math.fsum(earlier):.4g} was told to this curator before, and this campaign asks for {ldp:.4g}"
            advice = "answer no more campaigns of this curator"
            raise BudgetExceeded(f"{sums} more (LDP); the limit is {limit:.4g}: {advice}")

    def _send(self, answer: StoredAnswer) -> Report:
        report = answer.report
        assert report is not None  # only finished answers are sent
        if answer.refused is not None:
            raise ReportRefused(answer.refused)
        if answer.sent:
            return report
        if answer.campaign == self._id:
            # An earlier client may have used another address, or a code that was not free.
            code = None if answer.code is None else self._code or answer.code
            mine = replace(answer, url=self._url, code=code)
            if mine != answer:
                self._note(answer := mine, url=mine.url, code=code)
        try:
            document = report.document() | ({} if answer.code is None else {"code": answer.code})
            response = self._http.request(f"{answer.url}/reports", _LARGEST_RECEIPT, document)
            if response.status != 200:
                raise ReportRefused(f"the curator answered {response.status}", final=False)
            refused = _reason(response.body)
        except (NotSent, UnreadableResponse) as error:
            why, folder = error if isinstance(error, NotSent) else _NO_CURATOR, self._answers.folder
            where = f"in {folder}: answer() or flush()" if folder else "until this process ends: flush()"
            raise NotSent(f"{why}. The report is kept {where} sends it") from error
        if refused in _NOT_FINAL:
            raise ReportRefused(refused, final=False)
        now = self._note(answer, sent=refused is None, refused=refused, code=None)
        if now.refused == _WITHDRAWN and refused is None:
            self._remove(answer)  # the withdrawal may have arrived before the report
        if now.refused is not None:
            raise ReportRefused(now.refused)
        return report

    def _note(self, answer: StoredAnswer, **changes: Any) -> StoredAnswer:
        """Store changes of an answer as it is stored now: another process may have withdrawn it, and it stays so.

        If that fails, the answer stays stored as it was, and may be sent again.
        """
        now = replace(answer, **changes)
        with suppress(PriorveilError), self._answers.lock():
            stored = self._answers.find(answer.campaign)
            if stored is not None and stored.refused == _WITHDRAWN:
                changes |= {"refused": _WITHDRAWN, "code": None}
            now = replace(stored or answer, **changes)
            self._answers.keep(now)
        return now


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
