"""The life of a campaign: it is open, closed, reopened, published and deleted; and the results of each of these."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import msgspec

from priorveil.curator.estimate_cache import EstimateCache
from priorveil.curator.group_commit import Writer
from priorveil.curator.loaded_campaigns import CampaignLoader
from priorveil.curator.results import publication
from priorveil.curator.settings import DEFAULTS
from priorveil.curator.store import (
    Ended,
    FormTally,
    Record,
    ResultKind,
    Store,
    StoredCampaign,
    StoredResult,
    TooFewReports,
    least_further,
)
from priorveil.plans.structure import CONTENT_ID
from priorveil.questions.campaign import Campaign, State, stamp

_log = logging.getLogger(__name__)


@dataclass
class CampaignLife:
    """Changes of campaigns, one at a time.

    Reports are deleted once the clock has been past `keep_until` for `grace` seconds: a clock may be wrong for a while,
    and deleted reports do not come back. `colluding` is the share of the people that is left out of what
    a publication says about its totals.
    """

    store: Store
    writer: Writer
    campaigns: CampaignLoader
    estimates: EstimateCache
    save_counts: Callable[[], Awaitable[None]]
    colluding: float = DEFAULTS.totals.colluding
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    grace: float = 600.0
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _expired: dict[str, float] = field(default_factory=dict)

    def now(self) -> str:
        """The time as it is stored."""
        return stamp(self.clock()) or ""

    def state(self, live: StoredCampaign) -> State:
        """Whether a campaign takes reports now."""
        return live.state(self.clock())

    async def close(self, live: StoredCampaign) -> None:
        """Accept no more reports for a campaign."""
        async with self._changing:
            before, when = live.closed, self.now()
            live.closed = before or when
            try:
                await self.writer.flush()  # what was accepted is counted before the campaign counts as closed
                await self.store.close_campaign(live.campaign.id, when)
            except BaseException:
                live.closed = before
                raise
            await self._store_closing_result(live.campaign)

    async def reopen(self, live: StoredCampaign) -> None:
        """Accept reports again for a campaign that was closed early; raises `Ended` after its end or publication."""
        async with self._changing:
            closes = live.campaign.closes
            if closes is not None and self.clock() >= closes:
                raise Ended(f"this campaign ended {stamp(closes)}: it cannot reopen")
            await self.store.reopen_campaign(live.campaign.id)
            live.closed = None

    async def release(self, live: StoredCampaign) -> StoredResult:
        """Store the results so far for analysts; raises `TooFewReports` if few came since the last."""
        async with self._changing:
            return await self._store_result(live.campaign, "released", least_further(live.campaign))

    async def stored_result(self, live: StoredCampaign) -> StoredResult | None:
        """The results that analysts see.

        Those of a campaign whose end has passed are made at the first request. Others at the same time, also to other
        processes, get the same, because new ones would show too few further reports.
        """
        campaign, last = live.campaign, await self.store.stored_result(live.campaign)
        if self.state(live) != "closed" or live.published is not None:
            return last
        if last is not None and last.releasable(await self.store.tallies(campaign), campaign) == last.tallies:
            return last
        async with self._changing:
            await self._store_closing_result(campaign)
        return await self.store.stored_result(campaign)

    async def _store_closing_result(self, campaign: Campaign) -> None:
        """Store the results of a campaign that has closed, unless they would show few further reports."""
        with suppress(TooFewReports, Ended):  # Ended: another process has just published them
            await self._store_result(campaign, "closed")

    async def _store_result(self, campaign: Campaign, kind: ResultKind, least: int = 0) -> StoredResult:
        await self.writer.flush()  # what was accepted is in the results
        await self.save_counts()
        return await self.store.store_result(campaign, kind, self.now(), least)

    async def publish(self, live: StoredCampaign) -> bool:
        """Publish the results of a closed campaign, once; False if that was done before. Raises `StillOpen`."""
        campaign = live.campaign
        async with self._changing:
            await self.writer.flush()  # what was accepted is in the results
            await self.save_counts()
            while await self.store.publication(campaign.id) is None:
                now = self.clock()
                when = stamp(now) or ""
                ended = campaign.state(now) == "closed"
                calculate = partial(_publication, campaign, when, self.colluding)
                tallies, content = await self.estimates.find(
                    campaign, partial(self.state, live), ("publication", when), calculate
                )
                # A report may have been withdrawn meanwhile: then once more.
                if await self.store.publish(campaign, tallies, content, when, ended):
                    live.closed, live.published = live.closed or when, when
                    return True
        return False

    async def delete(self, campaign: str, keep_results: bool = False) -> int | None:
        """Delete a campaign with its reports, or its reports only; how many there were, None without such a campaign.

        If this is interrupted, `delete_expired` deletes the rest.
        """
        if not re.fullmatch(CONTENT_ID, campaign):
            return None
        async with self._changing:
            live, when = self.campaigns.loaded.in_use.get(campaign), self.now()
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
            self.campaigns.forget(campaign)
            self.estimates.clear()
        await self.store.finish_deletions()
        return reports

    async def delete_expired(self) -> None:
        """Delete the reports that were kept until their time, and what an interrupted deletion has left."""
        now = asyncio.get_running_loop().time()
        self._expired = {
            id: self._expired.get(id, now) for id in await self.store.expired_campaigns(self.now())
        }
        for id, since in list(self._expired.items()):
            if now - since >= self.grace:
                reports = await self.delete(id, keep_results=True)
                action = "deleted reports at keep_until"
                await self.store.add_record(Record(self.now(), "the curator", action, id, reports))
                _log.info("%s: %s reports were kept until their time and are deleted", id[:12], reports)
        await self.store.finish_deletions()

    async def notice_changes(self) -> None:
        """Take over what changed in the store.

        Another process may have closed, reopened or published a campaign, or deleted its reports; a restored database
        may no longer have it.
        """
        async with self._changing:
            times, loaded = await self.campaigns.list_ids(), self.campaigns.loaded
            for id in list(loaded.in_use):
                live = loaded.in_use.get(id)
                if id not in times:
                    loaded.remove(id)
                elif live is not None:
                    live.closed, live.published, live.deleted = times[id]


def _publication(
    campaign: Campaign, when: str, colluding: float, tallies: Mapping[str, FormTally], _: State
) -> tuple[Mapping[str, FormTally], str]:
    """What is published of a campaign, as JSON, and the tallies that it is made from."""
    return tallies, msgspec.json.encode(publication(campaign, tallies, when, colluding)).decode()
