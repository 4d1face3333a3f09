"""The service behind the routes: open campaigns, the writer and counters. It knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import re
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from priorveil.collect.campaign import Campaign, State, stamp
from priorveil.curator.admission import is_limited
from priorveil.curator.group_commit import QueueFull, Writer
from priorveil.curator.logs import FailureLog
from priorveil.curator.messages import Receipt, Refusal
from priorveil.curator.metrics import Metrics
from priorveil.curator.settings import CampaignLimits
from priorveil.curator.shared_runs import SharedRuns
from priorveil.curator.store import (
    Damaged,
    Ended,
    Group,
    Record,
    Store,
    StoredCampaign,
    StoredReport,
    StoreFull,
    Unavailable,
    count_cells,
)
from priorveil.curator.token_attempts import TokenAttempts
from priorveil.curator.tokens import Token, token_digest
from priorveil.curator.uploads import UNKNOWN_PLAN, Reader, Upload
from priorveil.errors import PriorveilError
from priorveil.reading.families import reader_of
from priorveil.reading.tally import Tally

T = TypeVar("T")

_REFRESH = 1.0  # seconds within which a change by another process is noticed
RETRY_FULL_SECONDS = 60  # after which a sender tries a full disk again
SMALL_BODY = 4 << 10  # bytes: a smaller body is read at once, and there is always room for it
_REST = 3  # times as long as loading took, before another campaign is loaded in its place
_COUNTED = 256  # reports that are counted at a time where counting is slow
_ESTIMATES = 16  # results that are kept in case no report comes before the next request
Estimator = Callable[[Mapping[str, Tally], State], T]  # from the tallies of a campaign and its state
_EXPIRY = 60.0  # seconds between looks for reports that were kept long enough
_ID = re.compile("[0-9a-f]{64}")
_log = logging.getLogger(__name__)


class BodyMemory:
    """The memory for large bodies that are being read or decoded.

    It is limited in total, so that unfinished bodies cannot use it up. The first bytes of a body are not counted:
    strangers who fill the memory hold up batches, never single submissions.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.held = capacity, 0

    @contextmanager
    def share(self) -> Iterator[Callable[[int], None]]:
        """A function that says how long one body is by now; it raises `QueueFull` if there is no room for it."""
        mine = 0

        def hold(size: int) -> None:
            nonlocal mine
            more = max(0, size - SMALL_BODY) - mine
            if self.held + more > self.capacity:
                raise QueueFull("too many large bodies are being read")
            mine += more
            self.held += more

        try:
            yield hold
        finally:
            self.held -= mine


class LoadedCampaigns:
    """Campaigns in memory: those used last, within a number of campaigns and of bytes of their documents.

    A campaign that was dropped while a request still uses it is found again as the same object, so that closing it
    reaches that request.
    """

    def __init__(self, limits: CampaignLimits) -> None:
        self.limits, self.bytes = limits, 0
        self.in_use: WeakValueDictionary[str, StoredCampaign] = WeakValueDictionary()
        self._recent: OrderedDict[str, StoredCampaign] = OrderedDict()

    def find(self, id: str) -> StoredCampaign | None:
        """The campaign if it is in memory; it then is the one used last."""
        if id in self._recent:
            self._recent.move_to_end(id)
            return self._recent[id]
        stored = self.in_use.get(id)
        if stored is not None:
            self.add(stored)
        return stored

    def add(self, stored: StoredCampaign) -> None:
        """Keep a campaign, and drop those that were used least recently; the new one stays whatever its size."""
        id = stored.campaign.id
        self._recent[id] = self.in_use[id] = stored
        self.bytes += len(stored.document)
        while len(self._recent) > 1 and self._is_over_limit():
            self._drop(next(iter(self._recent)))

    def _is_over_limit(self) -> bool:
        return len(self._recent) > self.limits.loaded or self.bytes > self.limits.loaded_bytes

    def remove(self, id: str) -> None:
        """Forget a campaign that the store no longer has."""
        self.in_use.pop(id, None)
        if id in self._recent:
            self._drop(id)

    def _drop(self, id: str) -> None:
        self.bytes -= len(self._recent.pop(id).document)


class _Kept(NamedTuple):
    """An estimate, and the state and tallies that it was made from."""

    source: tuple[State, Mapping[str, Tally]]
    estimates: Any


@dataclass
class Service:
    """Everything that the routes share. `create_app` makes it, and starts and stops it with the app.

    A clock may be wrong for a while, and deleted reports do not come back: reports are deleted when the clock has
    been past the time until which they are kept for `grace` seconds.
    """

    store: Store
    writer: Writer
    failures: FailureLog
    metrics: Metrics
    bodies: BodyMemory
    loaded: LoadedCampaigns
    attempts: TokenAttempts
    threads: int
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    grace: float = 600.0
    _unsaved: Counter[tuple[str, str]] = field(default_factory=Counter)
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    _runs: SharedRuns = field(default_factory=SharedRuns)
    _ids: set[str] = field(default_factory=set)
    _estimates: OrderedDict[Hashable, _Kept] = field(default_factory=OrderedDict)
    _damaged: dict[str, Damaged] = field(default_factory=dict)
    _tokens: list[Token] = field(default_factory=list)
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _expired: dict[str, float] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Loading and estimating take seconds: they do not wait for each other, and batches do not wait for them.
        self._loading = asyncio.Semaphore(self.threads)
        self._decoders = ThreadPoolExecutor(self.threads, thread_name_prefix="priorveil-decoder")
        self._calculators = ThreadPoolExecutor(self.threads, thread_name_prefix="priorveil-calculator")

    async def start(self) -> None:
        """Open the store and begin to write."""
        await self.store.open()
        await self.load_tokens()
        self.writer.start()
        jobs = ((_REFRESH, self.refresh), (_EXPIRY, self.delete_expired))
        self._tasks = [asyncio.create_task(self._repeat(*job)) for job in jobs]

    async def stop(self) -> None:
        """Store what was accepted, and close the store."""
        if self._tasks:
            async with self._saving:  # counts that were sent to the store must not be sent again
                for task in self._tasks:
                    task.cancel()
            await asyncio.wait(self._tasks)
        await self.writer.stop()
        with contextlib.suppress(StoreFull, Unavailable):
            await self._save_refusals()
        await self.store.close()
        for pool in (self._decoders, self._calculators):
            pool.shutdown(wait=False, cancel_futures=True)

    async def probe(self) -> None:
        """Return if reports can be stored; log and raise the reason if not.

        The probe needs no new space, so a full disk is remembered until something is stored, or until
        senders were told to try again.
        """
        try:
            await self.store.ready()
            self._check_space()
        except Exception as error:
            self.metrics.ready.set(0)
            self.failures.report(error)
            raise
        self.metrics.ready.set(1)

    def _check_space(self) -> None:
        full = self.writer.full_since
        if full is not None and time.monotonic() - full < RETRY_FULL_SECONDS:
            raise StoreFull("the disk was full a short while ago: free some space")

    # -- campaigns -------------------------------------------------------------------------------------------

    async def find(self, id: str) -> StoredCampaign | None:
        """A campaign by its id, from memory or from the store."""
        stored = self.loaded.find(id)
        if stored is not None or not _ID.fullmatch(id):  # other texts never reach the database
            return stored
        if id not in self._ids:  # one list for all who ask: unknown ids cost nothing more
            await self._runs.run("ids", self._list_ids)
        # Checking certificates is expensive: once for each campaign, however many requests come.
        return await self._runs.run(("campaign", id), lambda: self._load(id)) if id in self._ids else None

    async def _list_ids(self) -> None:
        self._ids = {id for id, _ in await self.store.campaign_ids()}

    async def _load_in_turn(self, id: str) -> StoredCampaign | None:
        """A campaign from the store, when its turn has come.

        Proving certificates takes the processor from all other requests. So the next one has its turn after a rest that
        is longer than the work: somebody who asks for many campaigns in turn cannot keep the curator busy.
        """
        await self._loading.acquire()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await self.store.campaign(id)
        finally:
            loop.call_later(_REST * (loop.time() - began), self._loading.release)

    async def _load(self, id: str) -> StoredCampaign | None:
        """A campaign from the store, unless somebody has loaded it meanwhile."""
        if id in self._damaged:
            raise self._damaged[id]
        stored = self.loaded.find(id)
        if stored is None:
            try:
                stored = await self._load_in_turn(id)
            except Damaged as error:
                self._damaged[id] = error
                _log.error("%s", error)
                raise
            if stored is not None:
                self.loaded.add(stored)
        return stored

    def state(self, live: StoredCampaign) -> State:
        """Whether a campaign takes reports now."""
        return live.state(self.clock())

    async def close(self, live: StoredCampaign) -> None:
        """Accept no more reports for a campaign."""
        async with self._changing:
            before, when = live.closed, self._now()
            live.closed = before or when
            try:
                await self.writer.flush()  # what was accepted is counted before the campaign counts as closed
                await self.store.close_campaign(live.campaign.id, when)
            except BaseException:
                live.closed = before
                raise

    async def reopen(self, live: StoredCampaign) -> None:
        """Accept reports again for a campaign that was closed early; raises `Ended` after its end."""
        async with self._changing:
            closes = live.campaign.closes
            if closes is not None and self.clock() >= closes:
                raise Ended(f"this campaign ended {stamp(closes)}: it cannot reopen")
            await self.store.reopen_campaign(live.campaign.id)
            live.closed = None

    async def delete(self, campaign: str, keep_results: bool = False) -> int | None:
        """Delete a campaign with its reports, or its reports only; how many there were, None without such a campaign.

        If this is interrupted, `delete_expired` deletes the rest.
        """
        if not _ID.fullmatch(campaign):
            return None
        async with self._changing:
            live, when = self.loaded.in_use.get(campaign), self._now()
            before = live.closed if live else None
            if live:
                live.closed = before or when
            try:
                await self.writer.flush()
                reports = await self.store.end_campaign(campaign, when, keep_results)
            except BaseException:
                if live:
                    live.closed = before
                raise
            self.loaded.remove(campaign)
            self._damaged.pop(campaign, None)
            self._estimates.clear()
        await self.store.finish_deletions()
        return reports

    async def delete_expired(self) -> None:
        """Delete the reports that were kept until their time, and what an interrupted deletion has left."""
        now = asyncio.get_running_loop().time()
        self._expired = {
            id: self._expired.get(id, now) for id in await self.store.expired_campaigns(self._now())
        }
        for id, since in list(self._expired.items()):
            if now - since >= self.grace:
                reports = await self.delete(id, keep_results=True)
                await self.record("the curator", "deleted reports at keep_until", id, reports)
                _log.info("%s: %s reports were kept until their time and are deleted", id[:12], reports)
        await self.store.finish_deletions()

    async def record(
        self, who: str, action: str, campaign: str | None = None, count: int | None = None
    ) -> None:
        """Remember what the holder of a token did."""
        await self.store.add_record(Record(self._now(), who, action, campaign, count))

    def _now(self) -> str:
        return stamp(self.clock()) or ""

    # -- reports ---------------------------------------------------------------------------------------------

    async def store_upload(self, read: Reader, body: bytes, live: StoredCampaign) -> Receipt:
        """Store the reports in a body. Returns when they are durable; the receipt lists those that were refused."""
        campaign, upload = live.campaign, await self._read(read, body, live)
        refused, accepted = upload.refused, sum(group.size for group in upload.groups)
        if upload.groups and is_limited(campaign):
            claims = upload.claims(campaign)
            reasons = zip(claims, await self.writer.submit([], claims), strict=True)
            late = [
                Refusal(claim.place, claim.report_id.hex(), why) for claim, why in reasons if why is not None
            ]
            refused.extend(late)
            accepted -= len(late)
        elif upload.groups:
            await self.writer.submit(upload.groups)
        refused.sort(key=lambda refusal: refusal.index)
        for refusal in refused:
            self._unsaved[live.campaign.id, refusal.reason] += 1
            self.metrics.refused.labels(refusal.reason).inc()
        return Receipt(accepted, refused)

    async def _read(self, read: Reader, body: bytes, live: StoredCampaign) -> Upload:
        """The reports in a body. A large one is read in a thread, and again if the campaign was closed meanwhile."""
        campaign = live.campaign
        while True:
            state = self.state(live)
            plans, reason = (campaign.plans, UNKNOWN_PLAN) if state == "open" else ({}, state)
            if len(body) <= SMALL_BODY:
                upload = read(body, campaign.id, plans, reason)
            else:
                upload = await self._in_thread(read, body, campaign.id, plans, reason)
            if not is_limited(campaign):  # there it is known only in the transaction which reports are stored
                upload.groups[:] = [await self._count(group) for group in upload.groups]
            if self.state(live) == state:
                return upload

    async def _count(self, group: Group) -> Group:
        """The group with its tally if counting is slow: in a thread, some at a time, so that others have their turn."""
        if not reader_of(group.mechanism).counts_slowly:
            return group
        step = _COUNTED * len(group.words) // group.size
        pieces = [group.words[start : start + step] for start in range(0, len(group.words), step)]
        cells = [await self._in_thread(count_cells, group.mechanism, piece) for piece in pieces]
        return group._replace(cells=np.sum(cells, axis=0))

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._decoders, work, *arguments)

    async def estimates(self, live: StoredCampaign, key: Hashable, calculate: Estimator[T]) -> T:
        """The estimates of a campaign, calculated once for all who wait for those with the same key."""

        async def run() -> T:
            source = (self.state(live), await self.store.tallies(live.campaign))
            kept = self._estimates.pop(name, None)
            if kept is None or kept.source != source:
                loop = asyncio.get_running_loop()
                estimates = await loop.run_in_executor(self._calculators, calculate, source[1], source[0])
                kept = _Kept(source, estimates)
            self._estimates[name] = kept
            while len(self._estimates) > _ESTIMATES:
                self._estimates.popitem(last=False)
            result: T = kept.estimates
            return result

        name = ("estimates", live.campaign.id, key)
        return await self._runs.run(name, run)

    async def report_count(self, campaign: Campaign) -> int:
        """How many reports were counted."""
        return sum(tally.reports for tally in (await self.store.tallies(campaign)).values())

    async def reports(self, campaign: Campaign) -> AsyncIterator[list[StoredReport]]:
        """All reports, page by page; raises `Damaged` if counted reports are missing, and logs what it raises.

        A page waits until the next one was read, so an error is raised before the last page, and of few reports before
        the first one. Raises `Ended` if the campaign is deleted meanwhile.
        """
        try:
            before, read = await self.report_count(campaign), 0
            waiting: list[StoredReport] = []
            async for page in self.store.reports(campaign):
                if waiting:
                    yield waiting
                waiting, read = page, read + len(page)
            # There may be fewer because some were withdrawn, so a statement that sees one moment decides.
            if read < before and await self.store.missing_reports(campaign.id) > 0:
                raise Damaged(campaign.id, "reports that were counted are missing")
            if waiting:
                yield waiting
        except PriorveilError as error:
            _log.error("an export of %s ended with an error: %s", campaign.id[:12], error)
            raise

    async def refusal_counts(self, campaign: str) -> dict[str, int]:
        """How many reports were refused, by reason, including those not yet saved."""
        async with self._saving:  # counts that are being saved may be in both places
            saved = Counter(await self.store.refusals(campaign))
        return dict(saved + Counter({why: n for (name, why), n in self._unsaved.items() if name == campaign}))

    async def _save_refusals(self) -> None:
        async with self._saving:
            saving = Counter(self._unsaved)
            if saving:
                await self.store.refuse(saving)
            self._unsaved -= saving

    # -- tokens, and changes by other processes --------------------------------------------------------------

    def find_token(self, secret: str) -> Token | None:
        """The token with this secret, if it is valid now. The empty text is no secret.

        Every token is compared, each in the same time, so the time that it takes says nothing about the secrets.
        """
        digest = token_digest(secret)
        matches = [token for token in self._tokens if hmac.compare_digest(digest, token.digest)]
        return matches[0] if matches and secret and matches[0].is_valid() else None

    async def load_tokens(self) -> None:
        """Take over the tokens of the store."""
        self._tokens = await self.store.tokens()

    async def refresh(self) -> None:
        """Save refusal counts, load new tokens, and notice campaigns that were changed or lost.

        Another process may have closed or reopened a campaign; a restored database may no longer have it.
        """
        await self._save_refusals()
        await self.load_tokens()
        async with self._changing:
            stored = dict(await self.store.campaign_ids())
            self._ids = set(stored)
            for id in list(self.loaded.in_use):
                live = self.loaded.in_use.get(id)
                if id not in stored:
                    self.loaded.remove(id)
                elif live is not None:
                    live.closed = stored[id]

    async def _repeat(self, pause: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(pause)
            try:
                await work()
            except Exception as error:  # whatever it was, the next time may succeed
                self.failures.report(error)
