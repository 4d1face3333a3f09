"""Group commit: what arrives during one transaction goes into the next one, without a timer.

The queue is limited in bytes. A future is resolved only when its reports are durable.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from priorveil.curator.admission import Claim, admit
from priorveil.curator.metrics import Metrics
from priorveil.curator.store import Group, Store, StoreFull, Unavailable
from priorveil.errors import PriorveilError

TRANSACTION = 4 << 20  # bytes in one transaction
_OVERHEAD = 512  # bytes that an upload takes in addition to its reports


class QueueFull(PriorveilError):
    """The queue is full; the sender should try again soon."""


@dataclass(slots=True)
class PendingUpload:
    """The reports of one request and the future that its sender waits for: for each claim, why it was refused."""

    groups: Sequence[Group]
    claims: Sequence[Claim]
    size: int  # in bytes
    done: asyncio.Future[list[str | None]]


_Write = Callable[[list[PendingUpload]], Awaitable[Iterator[str | None]]]


@dataclass
class Writer:
    """Collects uploads and commits them, one transaction after the other."""

    store: Store
    capacity: int  # bytes in the queue
    on_failure: Callable[[Exception], None]
    on_stored: Callable[[Counter[str]], None]  # gets the number of new reports, by campaign
    metrics: Metrics
    waiting: int = 0  # bytes in the queue and in the transaction under way
    full_since: float | None = None  # when the disk was full; None after something was stored
    _queue: asyncio.Queue[PendingUpload] = field(default_factory=asyncio.Queue)
    _task: asyncio.Task[None] | None = None
    _stopping: bool = False

    def start(self) -> None:
        """Begin to write, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what was accepted, then end."""
        if self._task is not None:
            last = self._enqueue([], 0)
            self._stopping = True
            # A server that is stopped by force has cancelled the task already.
            ends: list[asyncio.Future[Any]] = [last, self._task]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            self._task.cancel()
            with suppress(Exception):  # the senders learn of it
                last.result()

    def submit(
        self, groups: Sequence[Group], claims: Sequence[Claim] = ()
    ) -> asyncio.Future[list[str | None]]:
        """Queue the reports of one request. Raises `QueueFull` when the queue is full."""
        size = _OVERHEAD + sum(group.memory for group in groups)
        size += sum(_OVERHEAD + len(claim.words) for claim in claims)
        if self.waiting and self.waiting + size > self.capacity:
            raise QueueFull("the queue of reports is full")
        return self._enqueue(groups, size, claims)

    async def flush(self) -> None:
        """Return when everything that was submitted before is stored or refused."""
        await self._enqueue([], 0)

    def _enqueue(
        self, groups: Sequence[Group], size: int, claims: Sequence[Claim] = ()
    ) -> asyncio.Future[list[str | None]]:
        if self._stopping:
            raise Unavailable("the service is shutting down")
        done: asyncio.Future[list[str | None]] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(PendingUpload(groups, claims, size, done))
        self.waiting += size
        return done

    async def _run(self) -> None:
        while True:
            batch = [await self._queue.get()]
            size = batch[0].size
            while size < TRANSACTION and not self._queue.empty():
                batch.append(self._queue.get_nowait())
                size += batch[-1].size
            # Claims first, because `flush` waits for an upload without claims.
            await self._commit([upload for upload in batch if upload.claims], self._admit)
            await self._commit([upload for upload in batch if not upload.claims], self._store)
            self.waiting -= size

    async def _commit(self, batch: list[PendingUpload], write: _Write) -> None:
        """Store the uploads of a batch in one transaction, and tell their senders; `write` gives a reason by claim."""
        if not batch:
            return
        start = time.perf_counter()
        try:
            reasons = await write(batch)
        except Exception as cause:  # every sender must learn of it, whatever it is
            error = cause if isinstance(cause, PriorveilError) else Unavailable("an unexpected error")
            self.metrics.transaction_failures.inc()
            self.full_since = time.monotonic() if isinstance(error, StoreFull) else self.full_since
            self.on_failure(cause)
            for upload in batch:
                if not upload.done.done():
                    upload.done.set_exception(error)
            return
        if any(upload.size for upload in batch):
            self.full_since = None
        self.metrics.transaction_seconds.observe(time.perf_counter() - start)
        for upload in batch:
            its_reasons = [next(reasons) for _ in upload.claims]
            if not upload.done.done():  # the sender may have gone; the reports are stored all the same
                upload.done.set_result(its_reasons)

    async def _store(self, batch: list[PendingUpload]) -> Iterator[str | None]:
        groups = merge_groups(group for upload in batch for group in upload.groups)
        if groups:
            self._count(sum(group.size for group in groups), await self.store.commit(groups))
        return iter(())

    async def _admit(self, batch: list[PendingUpload]) -> Iterator[str | None]:
        reasons, new = await admit(self.store, [claim for upload in batch for claim in upload.claims])
        self._count(reasons.count(None), new)
        return iter(reasons)

    def _count(self, accepted: int, new: Counter[str]) -> None:
        self.metrics.stored.inc(new.total())
        self.metrics.duplicate.inc(accepted - new.total())
        self.on_stored(new)


def merge_groups(groups: Iterable[Group]) -> list[Group]:
    """One group for each form of each campaign, with all its reports; groups that were counted stay as they are."""
    by_form: dict[tuple[str, str], list[Group]] = {}
    counted = []
    for group in groups:
        if group.cells is None:
            by_form.setdefault((group.campaign, group.form.id), []).append(group)
        else:
            counted.append(group)
    merged = [
        parts[0]._replace(ids=b"".join(p.ids for p in parts), words=b"".join(p.words for p in parts))
        for parts in by_form.values()
    ]
    return merged + counted
