"""Answer a campaign from Python: fetch it, prove it, perturb here, send only the report.

The answer is remembered on disk before it is sent. Asking again replays it, so that nobody learns more from a
second request, and a report that could not be sent is sent later, with the same id.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from priorveil.collect.campaign import Campaign
from priorveil.collect.memory import Memory as Memory
from priorveil.collect.memory import NotKept as NotKept
from priorveil.collect.memory import Remembered as Remembered
from priorveil.collect.memory import own_folder as own_folder
from priorveil.collect.transport import Exchanges, Transport, Unreadable, campaign_address
from priorveil.collect.transport import NotSent as NotSent
from priorveil.collect.transport import Patience as Patience
from priorveil.collect.wire import Report, fresh_id, report_to_json
from priorveil.errors import InvalidInput, PriorveilError, short_repr
from priorveil.plans import Plan
from priorveil.plans.ledger import Ledger
from priorveil.plans.values import codes_of
from priorveil.priors import Budget, Label

_LARGEST_CAMPAIGN = 64 << 20
_LARGEST_RECEIPT = 64 << 10
_LONGEST_REASON = 80
_EARLY = "not yet open"  # by the curator's clock, where ours is ahead: the same report is taken later


class Refused(PriorveilError):
    """The curator does not take the report, or the campaign cannot be answered; `reason` says why.

    `final` is false where the same report may be taken later.
    """

    def __init__(self, reason: str, final: bool = True) -> None:
        super().__init__(f"the report was not taken: {reason}")
        self.reason = reason
        self.final = final


class Client:
    """Answers one campaign, once.

    `campaign_url` ends in the campaign's id, which is checked against the content. `state` is the folder where
    answers are remembered, `own_folder()` if not given; `Memory()` remembers in this process only, for
    simulations. `limit` is the level (LIP, or a `Budget`) that all remembered answers about the same values
    may reach together. `transport` replaces httpx's, for proxies and tests.
    """

    def __init__(
        self,
        campaign_url: str,
        transport: Transport | None = None,
        state: str | Path | Memory | None = None,
        limit: float | Budget | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._url, self._id = campaign_address(campaign_url)
        self._memory = (
            state if isinstance(state, Memory) else Memory(own_folder() if state is None else state)
        )
        self._limit = _budget(limit)
        self._exchanges = Exchanges(transport, patience or Patience())
        self._campaign: Campaign | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections."""
        self._exchanges.close()

    @property
    def campaign(self) -> Campaign:
        """The campaign, fetched once; refused if a certificate does not hold or its id is another."""
        if self._campaign is None:
            self._campaign = self._fetched()
        return self._campaign

    def _fetched(self) -> Campaign:
        try:
            answer = self._exchanges.answer(self._url, _LARGEST_CAMPAIGN)
        except Unreadable as error:
            raise Refused(f"the campaign at this address cannot be read: {error}") from error
        if answer.status != 200 or not answer.kind.startswith("application/json"):
            raise Refused(f"there is no campaign at this address ({answer.status})")
        campaign = Campaign.from_json(answer.body)
        if campaign.id != self._id:
            raise InvalidInput("campaign_url", self._url, f"the campaign there is another one, {campaign.id}")
        return campaign

    def answer(self, value: Label, cohort: str | None = None) -> Report:
        """Answer with a value; only its report leaves. A second call replays the first answer.

        The first answer stands: another value of the domain is then ignored, and one outside it refused.
        Raises `NotSent` if the curator could not be reached (the report is kept), `NotKept` if the answer cannot
        be remembered (nothing is sent), `BudgetExceeded` if the limit would be passed (nothing is drawn or sent).
        """
        kept = self._memory.find(self._id)
        _require_answer(value, self.campaign.labels if kept is None else kept.plan["labels"])
        if kept is None:
            kept = self._first(self.campaign, value, cohort)
        return self._sent(kept)

    def _first(self, campaign: Campaign, value: Label, cohort: str | None) -> Remembered:
        """A fresh answer, remembered; or the one that another process remembered meanwhile."""
        with self._memory.alone():
            kept = self._memory.find(self._id)
            if kept is None:
                kept = self._drawn(campaign, value, cohort)
                self._memory.keep(kept)
        return kept

    def flush(self) -> int:
        """Send what could not be sent before, for all campaigns in the folder; how many are still waiting."""
        waiting = 0
        for kept in self._memory:
            if kept.sent or kept.refused is not None:
                continue
            try:
                self._sent(kept)
            except NotSent:
                waiting += 1
            except Refused as error:
                waiting += not error.final
        return waiting

    def _drawn(self, campaign: Campaign, value: Label, cohort: str | None) -> Remembered:
        """A fresh report, within the limit."""
        plan = campaign.plan_for(cohort)
        state = campaign.state(datetime.now(UTC))
        if state != "open":
            raise Refused(state)
        self._check_limit(plan)
        report = Report(
            fresh_id(), campaign.id, plan.id, report_to_json(plan.mechanism, plan.privatize(value))
        )
        return Remembered(self._url, report, {"id": plan.id, **plan.document()})

    def _check_limit(self, plan: Plan) -> None:
        """Spend everything remembered about these values, then this plan; raises `BudgetExceeded`."""
        if self._limit is None:
            return
        ledger = Ledger(plan.prior, plan.secret, self._limit)
        for kept in self._memory:
            if set(kept.plan["labels"]) == set(plan.labels):
                ledger.spend(Plan.from_json(json.dumps(kept.plan)))
        ledger.spend(plan)

    def _sent(self, kept: Remembered) -> Report:
        if kept.refused is not None:
            raise Refused(kept.refused)
        if kept.sent:
            return kept.report
        kept = self._readdressed(kept)
        try:
            answer = self._exchanges.answer(f"{kept.url}/reports", _LARGEST_RECEIPT, kept.report.document())
            if answer.status != 200:
                raise Refused(f"the curator answered {answer.status}", final=False)
            refused = _reason(answer.body)
        except (NotSent, Unreadable) as error:
            why = error if isinstance(error, NotSent) else _stranger()
            raise NotSent(f"{why}. {self._promise()}") from error
        if refused == _EARLY:
            raise Refused(refused, final=False)
        self._note(replace(kept, sent=refused is None, refused=refused))
        if refused is not None:
            raise Refused(refused)
        return kept.report

    def _readdressed(self, kept: Remembered) -> Remembered:
        """The answer to this client's campaign goes where this client was told, not where an earlier one was."""
        if kept.report.campaign != self._id or kept.url == self._url:
            return kept
        moved = replace(kept, url=self._url)
        self._note(moved)
        return moved

    def _note(self, kept: Remembered) -> None:
        """Remember what became of an answer, if possible: the answer itself is on disk, and may be sent twice."""
        with suppress(PriorveilError):
            self._memory.keep(kept)

    def _promise(self) -> str:
        """What becomes of a report that was not sent."""
        if self._memory.folder is None:
            return "The report is kept until this process ends: flush() sends it"
        return f"The report is kept in {self._memory.folder}: answer() or flush() sends it"


def _budget(limit: float | Budget | None) -> Budget | None:
    try:
        return None if limit is None else Budget.of(limit)
    except InvalidInput as error:
        raise InvalidInput("limit", limit, error.advice) from error


def _require_answer(value: object, labels: Sequence[Label]) -> None:
    """Refuse what is not one of the answers; the message never shows it."""
    if not isinstance(value, str | int | np.integer):
        raise InvalidInput("value", type(value).__name__, "give one of the campaign's answers, or its code")
    codes_of([value], labels, "refuse")


def _reason(receipt: bytes) -> str | None:
    """Why the curator refused the report, if it did; another answer than a curator's is none at all."""
    try:
        told = json.loads(receipt)
    except (ValueError, RecursionError) as error:
        raise _stranger() from error
    match told:
        case {"accepted": 1, "refused": []}:
            return None
        case {"refused": [{"reason": str(reason)}]}:
            return reason if reason.isprintable() and len(reason) <= _LONGEST_REASON else short_repr(reason)
    raise _stranger()


def _stranger() -> NotSent:
    return NotSent("what answered is not the curator: try again later")
