"""The service behind the routes: open campaigns, the writer and counters. It knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from priorveil.collect.campaign import stamp
from priorveil.curator.admission import is_limited
from priorveil.curator.group_commit import Writer
from priorveil.curator.logs import FailureLog
from priorveil.curator.messages import Receipt, Refusal
from priorveil.curator.store import Damaged, Store, StoredCampaign, StoreFull, Unavailable
from priorveil.curator.tokens import Token, token_digest
from priorveil.curator.uploads import UNKNOWN_PLAN, Reader

_REFRESH = 1.0  # seconds within which a change by another process is noticed
RETRY_FULL_SECONDS = 60  # after which a sender tries a full disk again
_ID = re.compile("[0-9a-f]{64}")
_log = logging.getLogger(__name__)


@dataclass
class Service:
    """Everything that the routes share. `create_app` makes it, and starts and stops it with the app."""

    store: Store
    writer: Writer
    failures: FailureLog
    live: dict[str, StoredCampaign] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    _unsaved: Counter[tuple[str, str]] = field(default_factory=Counter)
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _damaged: dict[str, Damaged] = field(default_factory=dict)
    _tokens: list[Token] = field(default_factory=list)
    _refresher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the store and begin to write."""
        await self.store.open()
        await self.load_tokens()
        self.writer.start()
        self._refresher = asyncio.create_task(self._keep_fresh())

    async def stop(self) -> None:
        """Store what was accepted, and close the store."""
        if self._refresher is not None:
            async with self._saving:  # counts that were sent to the store must not be sent again
                self._refresher.cancel()
            await asyncio.wait([self._refresher])
        await self.writer.stop()
        with contextlib.suppress(StoreFull, Unavailable):
            await self._save_refusals()
        await self.store.close()

    async def probe(self) -> None:
        """Return if reports can be stored; log and raise the reason if not.

        The probe needs no new space, so a full disk is remembered until something is stored, or until
        senders were told to try again.
        """
        try:
            await self.store.ready()
        except Exception as error:
            self.failures.report(error)
            raise
        full = self.writer.full_since
        if full is not None and time.monotonic() - full < RETRY_FULL_SECONDS:
            raise StoreFull("the disk was full a short while ago")

    # -- campaigns -------------------------------------------------------------------------------------------

    async def find(self, campaign: str) -> StoredCampaign | None:
        """A campaign by its id, from memory or from the store."""
        if campaign in self.live or not _ID.fullmatch(campaign):  # other texts never reach the database
            return self.live.get(campaign)
        async with self._loading:  # checking certificates is expensive: once, however many requests come
            if campaign in self._damaged:
                raise self._damaged[campaign].with_traceback(None)
            try:
                stored = self.live.get(campaign) or await self.store.campaign(campaign)
            except Damaged as error:
                self._damaged[campaign] = error
                _log.error("%s", error)
                raise
            if stored is not None:
                self.live[campaign] = stored
            return stored

    async def close(self, live: StoredCampaign) -> None:
        """Accept no more reports for a campaign."""
        before, when = live.closed, stamp(datetime.now(UTC)) or ""
        live.closed = before or when
        try:
            await self.writer.flush()  # what was accepted is counted before the campaign counts as closed
            await self.store.close_campaign(live.campaign.id, when)
        except BaseException:
            live.closed = before
            raise

    # -- reports ---------------------------------------------------------------------------------------------

    async def store_upload(self, read: Reader, body: bytes, live: StoredCampaign) -> Receipt:
        """Store the reports in a body. Returns when they are durable; the receipt lists those that were refused."""
        state, campaign = live.state(), live.campaign
        plans, reason = (campaign.plans, UNKNOWN_PLAN) if state == "open" else ({}, state)
        upload = read(body, campaign.id, plans, reason)
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
            self._unsaved[campaign.id, refusal.reason] += 1
            self.refusals[refusal.reason] += 1
        return Receipt(accepted, refused)

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
        """Save refusal counts, load new tokens, and notice campaigns that were closed or lost.

        Another process may have closed a campaign; a restored database may no longer have it.
        """
        await self._save_refusals()
        await self.load_tokens()
        loaded = list(self.live)
        stored = dict(await self.store.campaign_ids())
        for campaign in loaded:
            if campaign in stored:
                self.live[campaign].closed = stored[campaign] or self.live[campaign].closed
            else:
                del self.live[campaign]

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH)
            try:
                await self.refresh()
            except Exception as error:  # whatever it was, the next closing must be noticed
                self.failures.report(error)
