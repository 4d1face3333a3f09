"""Answer a campaign from Python: fetch it, prove it, perturb here, send only the report.

The answer is remembered on disk before it is sent. Asking again replays it, so that nobody learns more from a
second request, and a report that could not be sent is sent later, with the same id.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from priorveil.values import codes_of

_AGAIN = {408, 425, 429, 500, 502, 503, 504, 507}
_LONGEST_PAUSE = 60.0
_LARGEST_CAMPAIGN = 64 << 20
_ID = re.compile("[0-9a-f]{64}")
_EARLY = "not yet open"  # by the curator's clock, where ours is ahead: the same report is taken later


class NotSent(PriorveilError):
    """The curator could not be reached; the message says what is kept, and `flush` sends it later."""


class Refused(PriorveilError):
    """The curator does not take the report, or the campaign cannot be answered; `reason` says why.

    `final` is false where the same report may be taken later.
    """

    def __init__(self, reason: str, final: bool = True) -> None:
        super().__init__(f"the report was not taken: {reason}")
        self.reason = reason
        self.final = final


@dataclass(frozen=True)
class Remembered:
    """An answer as it is kept: the report, the plan that made it, where it goes, and what became of it."""

    url: str
    report: Report
    plan: dict[str, Any]
    sent: bool = False
    refused: str | None = None


class Memory:
    """Remembered answers, one file for each campaign in a folder; in this process only if there is none."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = None if folder is None else Path(folder).expanduser()
        self._kept: dict[str, Remembered] = {}
        self._lock = threading.RLock()
        if self.folder is not None:
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError) as error:
                raise InvalidInput("state", str(self.folder), "give a folder; this is a file") from error
        list(self)  # what cannot be read is said now

    def __iter__(self) -> Iterator[Remembered]:
        """All answers as they are now, those of other processes too."""
        if self.folder is None:
            return iter(list(self._kept.values()))
        return iter([_read(path) for path in sorted(self.folder.glob("*.json"))])

    def find(self, campaign: str) -> Remembered | None:
        """The answer to a campaign."""
        if self.folder is None:
            return self._kept.get(campaign)
        path = self._path(campaign)
        return _read(path) if path.exists() else None

    def keep(self, answer: Remembered) -> None:
        """Keep an answer, or what became of it; it is durable on return."""
        self._kept[answer.report.campaign] = answer
        if self.folder is not None:
            path = self._path(answer.report.campaign)
            draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
            try:
                _write(draft, json.dumps(asdict(answer)))
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            _sync(self.folder)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else decides on an answer meanwhile: what is spent cannot change between look and answer."""
        with self._lock:
            if self.folder is None or sys.platform == "win32":
                yield
                return
            import fcntl

            with (self.folder / ".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed, or the process dies
                yield

    def _path(self, campaign: str) -> Path:
        return (self.folder or Path()) / f"{campaign}.json"


def own_folder() -> Path:
    """Where this user's answers are kept: `PRIORVEIL_STATE`, or a folder for the state of programs."""
    told = os.environ.get("PRIORVEIL_STATE")
    if told:
        return Path(told)
    base = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.local/state"
    return Path(base) / "priorveil" / "answers"


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

    `campaign_url` ends in the campaign's id, which is checked against the content. `state` is the folder where
    answers are remembered, `own_folder()` if not given; `Memory()` remembers in this process only, for
    simulations. `limit` is the level (LIP, or a `Budget`) that all remembered answers about the same values
    may reach together. `transport` replaces httpx's, for proxies and tests.
    """

    def __init__(
        self,
        campaign_url: str,
        transport: httpx.BaseTransport | None = None,
        state: str | Path | Memory | None = None,
        limit: float | Budget | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._url, self._id = _address(campaign_url)
        self._memory = (
            state if isinstance(state, Memory) else Memory(own_folder() if state is None else state)
        )
        self._limit = _budget(limit)
        self._http = httpx.Client(transport=transport, timeout=30.0, headers={"user-agent": "priorveil"})
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
            response = self._tried(self._url, lambda: self._http.get(self._url))
            kind = response.headers.get("content-type", "")
            if response.status_code != 200 or not kind.startswith("application/json"):
                raise Refused(f"there is no campaign at this address ({response.status_code})")
            if len(response.content) > _LARGEST_CAMPAIGN:
                raise Refused(f"the campaign is longer than {_LARGEST_CAMPAIGN} bytes")
            campaign = Campaign.from_json(response.content)
            if campaign.id != self._id:
                raise InvalidInput(
                    "campaign_url", self._url, f"the campaign there is another one, {campaign.id}"
                )
            self._campaign = campaign
        return self._campaign

    def answer(self, value: Label, cohort: str | None = None) -> Report:
        """Answer with a value; only its report leaves. A second call replays the first answer.

        The first answer stands: another value of the domain is then ignored, and one outside it refused.
        Raises `NotSent` if the curator could not be reached (the report is kept), `BudgetExceeded` if the
        limit would be passed (nothing is drawn or sent).
        """
        kept = self._memory.find(self._id)
        if kept is None:
            kept = self._first(self.campaign, value, cohort)
        codes_of([value], kept.plan["labels"], "refuse")  # also where it was drawn before
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
        report = Report(fresh_id(), campaign.id, plan.id, written(plan.mechanism, plan.privatize(value)))
        return Remembered(self._url, report, {"id": plan.id, **plan.document()})

    def _check_limit(self, plan: Plan) -> None:
        """Spend everything remembered about these values, then this plan; raises `BudgetExceeded`."""
        if self._limit is None:
            return
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
        place = f"{kept.url}/reports"
        try:
            response = self._tried(kept.url, lambda: self._http.post(place, json=kept.report.document()))
            if response.status_code != 200:
                raise Refused(f"the curator answered {response.status_code}", final=False)
            refused = _reason(response)
        except NotSent as error:
            raise NotSent(f"{error}. {self._promise()}") from error
        if refused == _EARLY:
            raise Refused(refused, final=False)
        self._memory.keep(replace(kept, sent=refused is None, refused=refused))
        if refused is not None:
            raise Refused(refused)
        return kept.report

    def _promise(self) -> str:
        """What becomes of a report that was not sent."""
        if self._memory.folder is None:
            return "The report is kept until this process ends: flush() sends it"
        return f"The report is kept in {self._memory.folder}: answer() or flush() sends it"

    def _tried(self, url: str, send: Callable[[], httpx.Response]) -> httpx.Response:
        """A response that is final, after as many attempts as patience allows."""
        why = "no attempt was made"
        for attempt in range(self._patience.attempts):
            told = None
            try:
                response = send()
                if response.status_code not in _AGAIN:
                    return response
                why, told = f"it answered {response.status_code}", response.headers.get("retry-after")
            except httpx.RequestError as error:
                why = type(error).__name__
            if attempt + 1 < self._patience.attempts:
                self._patience.wait(attempt, told)
        raise NotSent(f"the curator at {url} could not be reached ({why}): try again later")


def _address(url: str) -> tuple[str, str]:
    """A campaign's address without a slash at its end, and the id in it."""
    plain = url.rstrip("/") if isinstance(url, str) else ""
    campaign = plain.rpartition("/")[2]
    try:
        read = httpx.URL(plain)
    except httpx.InvalidURL:
        read = httpx.URL()
    if read.scheme not in ("http", "https") or not read.host or not _ID.fullmatch(campaign):
        advice = "give a campaign's address, https://.../v1/campaigns/ and its id of 64 hexadecimal digits"
        raise InvalidInput("campaign_url", url, advice)
    return plain, campaign


def _budget(limit: float | Budget | None) -> Budget | None:
    try:
        return None if limit is None else Budget.of(limit)
    except InvalidInput as error:
        raise InvalidInput("limit", limit, error.advice) from error


def _reason(response: httpx.Response) -> str | None:
    """Why the curator refused the report, if it did; another answer than a curator's is none at all."""
    try:
        refused = response.json()["refused"]
        return str(refused[0]["reason"]) if refused else None
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise NotSent("what answered is not the curator: try again later") from error


def _write(path: Path, text: str) -> None:
    """A file that only its owner can read, on the disk."""
    path.unlink(missing_ok=True)
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make the names in a folder durable, where folders can be opened."""
    if sys.platform != "win32":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _read(path: Path) -> Remembered:
    """An answer from its file."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return Remembered(**{**read, "report": Report(**read["report"])})
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(
            "state", str(path), "not a remembered answer: move it away, and know it may be answered twice"
        ) from error
