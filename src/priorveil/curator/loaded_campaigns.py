"""Campaigns in memory, and how they are loaded from the store."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from weakref import WeakValueDictionary

from priorveil.curator.settings import CampaignLimits
from priorveil.curator.shared_runs import SharedRuns
from priorveil.curator.store import Damaged, Store, StoredCampaign
from priorveil.plans.structure import CONTENT_ID
from priorveil.questions.campaign import CampaignOutline

_REST = 4  # the pause after loading a campaign, as a multiple of its time, for each thread
_LIST_SECONDS = 0.05  # between two lists of ids for requests with unknown ones
_log = logging.getLogger(__name__)


class LoadedCampaigns:
    """Campaigns in memory: those used last, within a number of campaigns and of bytes.

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
        self.bytes += stored.memory
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
        self.bytes -= self._recent.pop(id).memory


class CampaignLoader:
    """Finds campaigns in memory or loads them from the store: `threads` at a time, each once for all who ask."""

    def __init__(self, store: Store, limits: CampaignLimits, threads: int) -> None:
        self.store, self.loaded = store, LoadedCampaigns(limits)
        self._threads, self._loading = threads, asyncio.Semaphore(threads)
        self._runs = SharedRuns()
        self._ids: set[str] = set()
        self._damaged: dict[str, Damaged] = {}
        self._outlines: dict[str, CampaignOutline] = {}

    async def find(self, id: str) -> StoredCampaign | None:
        """A campaign by its id, from memory or from the store."""
        stored = self.loaded.find(id)
        if stored is not None or not re.fullmatch(CONTENT_ID, id):  # other texts never reach the database
            return stored
        if id not in self._ids:  # one list for all who ask: unknown ids cost nothing more
            await self._runs.run("ids", self._list_ids_after_pause)
        # Checking certificates is expensive: once for each campaign, however many requests come.
        return await self._runs.run(("campaign", id), lambda: self._load(id)) if id in self._ids else None

    async def _list_ids_after_pause(self) -> None:
        """List the ids for all who asked. There are only a few lists a second, however many requests come."""
        await asyncio.sleep(_LIST_SECONDS)
        await self.list_ids()

    async def list_ids(self) -> dict[str, tuple[str | None, str | None, str | None]]:
        """The campaigns in the store, each with the times at which it was closed early, was published and deleted."""
        times = {
            id: (closed, published, deleted)
            for id, closed, published, deleted in await self.store.campaign_ids()
        }
        self._ids = set(times)
        return times

    async def _load_in_turn(self, id: str) -> StoredCampaign | None:
        """A campaign from the store, when its turn has come.

        Proving certificates takes the interpreter from all other requests. So the next one has its turn after a rest
        that is longer than the work: all threads together take at most a quarter of the time, however many
        campaigns somebody asks for.
        """
        await self._loading.acquire()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await self.store.campaign(id)
        finally:
            rest = _REST * self._threads * (loop.time() - began)
            loop.call_later(rest, self._loading.release)

    async def outline(self, id: str) -> CampaignOutline | None:
        """What a list shows of a campaign; its document is read once, and nothing is proven. Raises `Damaged`."""
        if id in self._damaged:
            raise self._damaged[id]
        if id not in self._outlines:
            try:
                outline = await self.store.outline(id)
            except Damaged as error:
                raise self._remember_damage(error) from None
            if outline is None:
                return None
            self._outlines[id] = outline
        return self._outlines[id]

    def _remember_damage(self, error: Damaged) -> Damaged:
        self._damaged[error.campaign] = error
        _log.error("%s", error)
        return error

    async def _load(self, id: str) -> StoredCampaign | None:
        """A campaign from the store, unless somebody has loaded it meanwhile."""
        if id in self._damaged:
            raise self._damaged[id]
        stored = self.loaded.find(id)
        if stored is None:
            try:
                stored = await self._load_in_turn(id)
            except Damaged as error:
                raise self._remember_damage(error) from None
            if stored is not None:
                self.loaded.add(stored)
        return stored

    def forget(self, id: str) -> None:
        """Forget a campaign that the store no longer has."""
        self.loaded.remove(id)
        self._damaged.pop(id, None)
        self._outlines.pop(id, None)
