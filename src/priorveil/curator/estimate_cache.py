"""A cache of estimates: each is computed once for all waiting requests, and kept until it changes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from priorveil.curator.shared_runs import SharedRuns
from priorveil.curator.store import FormTally, Store
from priorveil.questions.campaign import Campaign, State

T = TypeVar("T")
Estimator = Callable[[Mapping[str, FormTally], State], T]  # from the tallies of a campaign and its state

_ESTIMATES = 16  # results that are kept in case no report comes before the next request


class _CacheEntry(NamedTuple):
    """An estimate, and the state and tallies that it was made from."""

    source: tuple[State, Mapping[str, FormTally]]
    estimates: Any


class EstimateCache:
    """The last estimates. They are calculated in threads of their own, since that takes seconds."""

    def __init__(self, store: Store, threads: int) -> None:
        self._store, self._runs = store, SharedRuns()
        self._entries: OrderedDict[Hashable, _CacheEntry] = OrderedDict()
        self._calculators = ThreadPoolExecutor(threads, thread_name_prefix="priorveil-calculator")

    async def find(
        self,
        campaign: Campaign,
        state: Callable[[], State],
        key: Hashable,
        calculate: Estimator[T],
        tallies: Mapping[str, FormTally] | None = None,
    ) -> T:
        """The estimates of a campaign, calculated once for all who wait for those with the same key.

        They are made from the reports of now, unless other tallies are given.
        """

        async def run() -> T:
            source = (state(), tallies or await self._store.tallies(campaign))
            entry = self._entries.pop(name, None)
            if entry is None or entry.source != source:
                loop = asyncio.get_running_loop()
                estimates = await loop.run_in_executor(self._calculators, calculate, source[1], source[0])
                entry = _CacheEntry(source, estimates)
            self._entries[name] = entry
            while len(self._entries) > _ESTIMATES:
                self._entries.popitem(last=False)
            result: T = entry.estimates
            return result

        name = (campaign.id, key)
        return await self._runs.run(name, run)

    def clear(self) -> None:
        """Forget all estimates."""
        self._entries.clear()

    def stop(self) -> None:
        """Calculate nothing more."""
        self._calculators.shutdown(wait=False, cancel_futures=True)
