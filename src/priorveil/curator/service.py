"""The service behind the routes: uploads, exports, counters and tokens. It knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from priorveil.curator.admission import is_limited
from priorveil.curator.body_memory import SMALL_BODY, BodyMemory
from priorveil.curator.campaign_life import CampaignLife
from priorveil.curator.estimate_cache import EstimateCache
from priorveil.curator.group_commit import Writer
from priorveil.curator.loaded_campaigns import CampaignLoader
from priorveil.curator.logs import FailureLog
from priorveil.curator.messages import Receipt, Refusal
from priorveil.curator.metrics import Metrics
from priorveil.curator.store import (
    Damaged,
    Group,
    Record,
    Store,
    StoredCampaign,
    StoredReport,
    StoreFull,
    Unavailable,
    count_cells,
)
from priorveil.curator.survey_designs import SurveyDesigner
from priorveil.curator.token_attempts import TokenAttempts
from priorveil.curator.tokens import Token, token_digest
from priorveil.curator.uploads import UNKNOWN_FORM, Upload, UploadReader
from priorveil.errors import PriorveilError
from priorveil.questions.campaign import Campaign

T = TypeVar("T")

_REFRESH = 1.0  # seconds within which a change by another process is noticed
RETRY_FULL_SECONDS = 60  # after which a sender tries a full disk again
_COUNTED = 256  # reports that are counted at a time where counting is slow
_EXPIRY = 60.0  # seconds between looks for reports that were kept long enough
_log = logging.getLogger(__name__)


@dataclass
class Service:
    """Everything that the routes share. `create_app` makes it, and starts and stops it with the app."""

    store: Store
    writer: Writer
    failures: FailureLog
    metrics: Metrics
    bodies: BodyMemory
    campaigns: CampaignLoader
    estimates: EstimateCache
    life: CampaignLife
    attempts: TokenAttempts
    surveys: SurveyDesigner
    threads: int
    _unsaved: Counter[tuple[str, str]] = field(default_factory=Counter)  # refusals by campaign and reason
    _unsaved_days: Counter[tuple[str, str]] = field(default_factory=Counter)  # reports by campaign and day
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tokens: list[Token] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._decoders = ThreadPoolExecutor(self.threads, thread_name_prefix="priorveil-decoder")

    async def start(self) -> None:
        """Open the store and begin to write."""
        await self.store.open()
        await self.load_tokens()
        self.writer.start()
        jobs = ((_REFRESH, self.refresh), (_EXPIRY, self.life.delete_expired))
        self._tasks = [asyncio.create_task(self._repeat(*job)) for job in jobs]

    async def stop(self) -> None:
        """Store what was accepted, and close the store."""
        await self.surveys.stop()
        if self._tasks:
            async with self._saving:  # counts that were sent to the store must not be sent again
                for task in self._tasks:
                    task.cancel()
            await asyncio.wait(self._tasks)
        await self.writer.stop()
        with contextlib.suppress(StoreFull, Unavailable):
            await self.save_counts()
        await self.store.close()
        self.estimates.stop()
        self._decoders.shutdown(wait=False, cancel_futures=True)

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

    async def record(
        self, who: str, action: str, campaign: str | None = None, count: int | None = None
    ) -> None:
        """Remember what the holder of a token did."""
        await self.store.add_record(Record(self.life.now(), who, action, campaign, count))

    # -- reports ---------------------------------------------------------------------------------------------

    async def store_upload(self, read: UploadReader, body: bytes, live: StoredCampaign) -> Receipt:
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

    async def _read(self, read: UploadReader, body: bytes, live: StoredCampaign) -> Upload:
        """The reports in a body. A large one is read in a thread, and again if the campaign was closed meanwhile."""
        campaign = live.campaign
        while True:
            state = self.life.state(live)
            forms, reason = (campaign.forms, UNKNOWN_FORM) if state == "open" else ({}, state)
            if len(body) <= SMALL_BODY:
                upload = read(body, campaign.id, forms, reason)
            else:
                upload = await self._in_thread(read, body, campaign.id, forms, reason)
            if not is_limited(campaign):  # there it is known only in the transaction which reports are stored
                upload.groups[:] = [await self._count(group) for group in upload.groups]
            if self.life.state(live) == state:
                return upload

    async def _count(self, group: Group) -> Group:
        """The group with its tally if counting is slow: in a thread, some at a time, so that others have their turn."""
        if not any(part.plan.reader.counts_slowly for part in group.form.parts):
            return group
        step = _COUNTED * len(group.words) // group.size
        pieces = [group.words[start : start + step] for start in range(0, len(group.words), step)]
        cells = [await self._in_thread(count_cells, group.form, piece) for piece in pieces]
        return group._replace(cells=np.sum(cells, axis=0))

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._decoders, work, *arguments)

    async def reports(self, campaign: Campaign) -> AsyncIterator[list[StoredReport]]:
        """All reports, page by page; raises `Damaged` if counted reports are missing, and logs what it raises.

        A page waits until the next one was read, so an error is raised before the last page, and of few reports before
        the first one. Raises `Ended` if the campaign is deleted meanwhile.
        """
        try:
            before, count = await self.store.report_count(campaign.id), 0
            waiting: list[StoredReport] = []
            async for page in self.store.reports(campaign):
                if waiting:
                    yield waiting
                waiting, count = page, count + len(page)
            # There may be fewer because some were withdrawn, so a statement that sees one moment decides.
            if count < before and await self.store.missing_reports(campaign.id) > 0:
                raise Damaged(campaign.id, "reports that were counted are missing")
            if waiting:
                yield waiting
        except PriorveilError as error:
            _log.error("an export of %s ended with an error: %s", campaign.id[:12], error)
            raise

    def count_day(self, new: Counter[str]) -> None:
        """Count reports that were just stored, given by campaign, for this day in UTC.

        The counts are saved later, in a transaction of their own: the transaction of a report must not tell its day.
        """
        day = self.life.now()[:10]
        self._unsaved_days.update({(campaign, day): count for campaign, count in (+new).items()})

    async def counters(self, campaign: str) -> tuple[dict[str, int], dict[str, int]]:
        """How many reports were refused, by reason, and came, by day, including counts that are not yet saved."""
        async with self._saving:  # counts that are being saved may be in both places
            refused = await self.store.refusals(campaign)
            by_day = await self.store.daily_counts(campaign)
        return _add(refused, self._unsaved, campaign), _add(by_day, self._unsaved_days, campaign)

    async def save_counts(self) -> None:
        """Save the counts of refusals, and of reports by day."""
        async with self._saving:
            for unsaved, save in (
                (self._unsaved, self.store.refuse),
                (self._unsaved_days, self.store.add_daily_counts),
            ):
                if saving := +unsaved:
                    await save(saving)
                    unsaved -= saving

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
        """Save counts, and notice what other processes changed."""
        await self.save_counts()
        await self.load_tokens()
        await self.life.notice_changes()

    async def _repeat(self, pause: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(pause)
            try:
                await work()
            except Exception as error:  # whatever it was, the next time may succeed
                self.failures.report(error)


def _add(saved: dict[str, int], unsaved: Counter[tuple[str, str]], campaign: str) -> dict[str, int]:
    """The counts of a campaign, saved and unsaved, sorted by name."""
    counts = Counter(saved)
    counts.update({name: count for (id, name), count in unsaved.items() if id == campaign})
    return dict(sorted(counts.items()))
