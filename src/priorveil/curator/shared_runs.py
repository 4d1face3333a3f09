"""Work that is done once and shared by all waiting requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass
class _Runs:
    """The runs of one key: how many have begun, and the number and the outcome of the last that ended."""

    begun: int = 0
    ended: int = 0
    outcome: Any = None
    failed: bool = False
    waiting: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class SharedRuns:
    """Runs work one at a time for each key.

    All who ask while a run is under way share the next one, so no result is older than the question.
    """

    def __init__(self) -> None:
        self._runs: dict[Hashable, _Runs] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """The outcome of a run of `work` that begins after this call, by this caller or by another one."""
        runs = self._runs.setdefault(key, _Runs())
        asked = runs.begun
        runs.waiting += 1
        try:
            async with runs.lock:
                if runs.ended <= asked:
                    await self._begin(runs, work)
        finally:
            runs.waiting -= 1
            if not runs.waiting:
                del self._runs[key]
        if runs.failed:
            raise runs.outcome.with_traceback(None)
        outcome: T = runs.outcome
        return outcome

    async def _begin(self, runs: _Runs, work: Callable[[], Awaitable[T]]) -> None:
        """Run `work`. If the caller is cancelled the run does not count, and the next who waits begins another."""
        runs.begun += 1
        number = runs.begun
        try:
            runs.outcome, runs.failed = await work(), False
        except Exception as error:
            runs.outcome, runs.failed = error, True
        runs.ended = number
