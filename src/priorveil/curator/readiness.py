"""Whether reports can be stored now: one probe of the store, shared by all requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class Readiness:
    """Runs a probe at most once every few seconds; requests in between, or while it runs, share its result."""

    def __init__(
        self,
        probe: Callable[[], Awaitable[None]],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probe, self._seconds, self._clock = probe, seconds, clock
        self._task: asyncio.Task[Exception | None] | None = None
        self._began = 0.0

    async def check(self) -> None:
        """Return if the probe succeeded; otherwise raise its error."""
        if self._task is None or (self._task.done() and self._clock() - self._began >= self._seconds):
            self._task, self._began = asyncio.create_task(self._outcome()), self._clock()
        error = await asyncio.shield(self._task)  # a request that is cancelled does not cancel it for others
        if error is not None:
            raise error.with_traceback(None)

    async def _outcome(self) -> Exception | None:
        try:
            await self._probe()
        except Exception as error:
            return error
        return None
