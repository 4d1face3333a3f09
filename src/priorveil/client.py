"""Answer a campaign from Python: fetch it, prove it, perturb here, send only the report.

The answer is remembered before it is sent. Asking again replays it, so that nobody learns more from a second
request, and a report that could not be sent is sent later, with the same id.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

try:
    import httpx
except ImportError as missing:  # pragma: no cover
    from priorveil.errors import MissingExtra

    raise MissingExtra("httpx", "serve") from missing

from priorveil.campaigns import Campaign, Report, fresh_id, written
from priorveil.errors import InvalidInput, PriorveilError
from priorveil.ledger import Ledger
from priorveil.plans import Plan
from priorveil.priors import Budget, Label

_AGAIN = {408, 425, 429, 500, 502, 503, 504, 507}
_LONGEST_PAUSE = 60.0
_LARGEST_CAMPAIGN = 64 << 20


class NotSent(PriorveilError):
    """The curator could not be reached; the report is kept and `flush` sends it later."""


class Refused(PriorveilError):
    """The curator does not take the report, or the campaign cannot be answered; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the report was not taken: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class Remembered:
    """An answer as it is kept: the report, the plan that made it, where it goes, and what became of it."""

    url: str
    report: Report
    plan: dict[str, Any]
    sent: bool = False
    refused: str | None = None


class Memory:
    """Remembered answers, one file for each campaign in a folder; in memory if there is no folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._kept: dict[str, Remembered] = {}
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._kept = {p.stem: _read(p) for p in sorted(folder.glob("*.json"))}

    def __iter__(self) -> Any:
        return iter(list(self._kept.values()))

    def find(self, campaign: str) -> Remembered | None:
        """The answer to a campaign, also if another process gave it."""
        if campaign not in self._kept and self._folder is not None and self._path(campaign).exists():
            self._kept[campaign] = _read(self._path(campaign))
        return self._kept.get(campaign)

    def first(self, answer: Remembered) -> Remembered:
        """Keep an answer, unless there is one: the one that is kept is returned."""
        campaign = answer.report.campaign
        if self._folder is not None:
            try:
                os.link(self._draft(answer), self._path(campaign))  # all of it, and only if nobody was first
            except FileExistsError:
                return _read(self._path(campaign))
        return self._kept.setdefault(campaign, answer)

    def change(self, answer: Remembered) -> None:
        """Keep what became of an answer."""
        self._kept[answer.report.campaign] = answer
        if self._folder is not None:
            self._draft(answer).replace(self._path(answer.report.campaign))

    def _path(self, campaign: str) -> Path:
        return (self._folder or Path()) / f"{campaign}.json"

    def _draft(self, answer: Remembered) -> Path:
        draft = self._path(answer.report.campaign).with_suffix(f".{os.getpid()}.part")
        draft.unlink(missing_ok=True)
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump(asdict(answer), file)
            file.flush()
            os.fsync(file.fileno())
        return draft


@dataclass(frozen=True)
class Patience:
    """How often and how long to try: pauses double from `pause`, each shortened by chance."""

    attempts: int = 5
    pause: float = 0.5
    sleep: Callable[[float], None] = time.sleep

    def wait(self, attempt: int, told: str | None) -> None:
        """Wait before the next attempt; at least as long as the curator asks."""
        pause = min(self.pause * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
        asked = float(told) if told and told.isdigit() else 0.0
        self.sleep(min(max(pause, asked * random.uniform(1.0, 1.5)), _LONGEST_PAUSE))


class Client:
    """Answers one campaign, once.

    `campaign_url` ends in the campaign's id, which is checked against the content. `state` is a folder for
    answers that must survive; `limit` the level (LIP, or a `Budget`) that all remembered answers about the
    same values may reach together. `transport` replaces httpx's, for proxies and tests.
    """

    def __init__(
        self,
        campaign_url: str,
        transport: httpx.BaseTransport | None = None,
        state: str | Path | None = None,
        limit: float | Budget | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._url = campaign_url.rstrip("/")
        self._id = self._url.rpartition("/")[2]
        self._http = httpx.Client(transport=transport, timeout=30.0, headers={"user-agent": "priorveil"})
        self._memory = Memory(Path(state) if state is not None else None)
        self._limit = limit
        self._patience = patience or Patience()
        self._campaign: Campaign | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections."""
        self._http.close()

    @property
    def campaign(self) -> Campaign:
        """The campaign, fetched once; refused if a certificate does not hold or its id is another."""
        if self._campaign is None:
            response = self._tried(lambda: self._http.get(self._url))
            if response.status_code != 200 or len(response.content) > _LARGEST_CAMPAIGN:
                raise Refused(f"no campaign at this address ({response.status_code})")
            campaign = Campaign.from_json(response.content)
            if campaign.id != self._id:
                raise InvalidInput(
                    "campaign_url", self._url, f"the campaign there is another one, {campaign.id}"
                )
            self._campaign = campaign
        return self._campaign

    def answer(self, value: Label, cohort: str | None = None) -> Report:
        """Answer with a value; only its report leaves. A second call replays the first answer.

        Raises `NotSent` if the curator could not be reached (the report is kept), `BudgetExceeded` if the
        limit would be passed (nothing is drawn or sent).
        """
        kept = self._memory.find(self._id)
        if kept is None:
            kept = self._memory.first(self._drawn(value, cohort))
        return self._sent(kept)

    def flush(self) -> int:
        """Send what could not be sent before, for all campaigns in the folder; how many are still waiting."""
        waiting = 0
        for kept in self._memory:
            try:
                self._sent(kept)
            except NotSent:
                waiting += 1
            except Refused:
                continue
        return waiting

    def _drawn(self, value: Label, cohort: str | None) -> Remembered:
        """A fresh report, within the limit."""
        campaign = self.campaign
        plan = campaign.plan_for(cohort)
        state = campaign.state(datetime.now(UTC))
        if state != "open":
            raise Refused(state)
        self._check_limit(plan)
        report = Report(fresh_id(), campaign.id, plan.id, written(plan.mechanism, plan.privatize(value)))
        return Remembered(self._url, report, {"id": plan.id, **plan.document()})

    def _check_limit(self, plan: Plan) -> None:
        """Spend everything remembered about these values, then this plan; raises `BudgetExceeded`."""
        ledger = Ledger(plan.prior, plan.secret, self._limit)
        for kept in self._memory:
            if kept.plan["labels"] == list(plan.labels):
                ledger.spend(Plan.from_json(json.dumps(kept.plan)))
        ledger.spend(plan)

    def _sent(self, kept: Remembered) -> Report:
        if kept.refused is not None:
            raise Refused(kept.refused)
        if kept.sent:
            return kept.report
        url = f"{kept.url}/reports"
        response = self._tried(lambda: self._http.post(url, json=kept.report.document()))
        if response.status_code != 200:
            raise Refused(f"the curator answered {response.status_code}")
        refused = response.json()["refused"]
        if refused:
            self._memory.change(replace(kept, refused=str(refused[0]["reason"])))
            raise Refused(str(refused[0]["reason"]))
        self._memory.change(replace(kept, sent=True))
        return kept.report

    def _tried(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """A response that is final, after as many attempts as patience allows."""
        why = "no attempt was made"
        for attempt in range(self._patience.attempts):
            told = None
            try:
                response = send()
                if response.status_code not in _AGAIN:
                    return response
                why, told = f"it answered {response.status_code}", response.headers.get("retry-after")
            except httpx.TransportError as error:
                why = type(error).__name__
            if attempt + 1 < self._patience.attempts:
                self._patience.wait(attempt, told)
        raise NotSent(f"the curator at {self._url} could not be reached ({why}): try again later")


def _read(path: Path) -> Remembered:
    """An answer from its file."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return Remembered(**{**read, "report": Report(**read["report"])})
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(
            "state", str(path), "not a remembered answer: move it away, and know it may be answered twice"
        ) from error
