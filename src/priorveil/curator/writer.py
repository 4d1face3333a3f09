"""Group commit: what arrives during one transaction goes into the next one, without a timer.

The queue is limited in bytes. A future is resolved only when its reports are durable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from priorveil.collect.wire import unpack_reports
from priorveil.curator.store import Group, Store, Unavailable
from priorveil.errors import PriorveilError

CAPACITY = 16 << 20  # bytes in the queue
TRANSACTION = 4 << 20  # bytes in one transaction
_OVERHEAD = 512  # bytes that an upload takes in addition to its reports

# For each group of an upload, the indices of reports that its plan cannot have made.
RefusedIndices = list[list[int]]


class Busy(PriorveilError):
    """The queue is full; the sender should come back in a moment."""


@dataclass(slots=True)
class PendingUpload:
    """The reports of one request, by plan, and the future that its sender waits for."""

    groups: Sequence[Group]
    size: int  # in bytes
    done: asyncio.Future[RefusedIndices]


@dataclass
class Commits:
    """What the writer has done since it started."""

    transactions: int = 0
    stored: int = 0
    duplicates: int = 0
    failures: int = 0
    seconds: float = 0.0


@dataclass
class Writer:
    """Collects uploads and commits them, one transaction after the other."""

    store: Store
    capacity: int = CAPACITY
    commits: Commits = field(default_factory=Commits)
    waiting: int = 0  # bytes in the queue and in the transaction under way
    _queue: list[PendingUpload] = field(default_factory=list)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _stopping: bool = False

    def start(self) -> None:
        """Begin to write, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what was accepted, then end."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled():  # by a server that is stopped by force
                self._task.result()

    def submit(self, groups: Sequence[Group]) -> asyncio.Future[RefusedIndices]:
        """Queue the reports of one request. Raises `Busy` when the queue is full."""
        size = _OVERHEAD + sum(len(group.ids) + len(group.words) for group in groups)
        if self.waiting and self.waiting + size > self.capacity:
            raise Busy("the queue of reports is full")
        return self._enqueue(groups, size)

    async def flush(self) -> None:
        """Return when everything that was submitted before is stored or refused."""
        await self._enqueue([], 0)

    def _enqueue(self, groups: Sequence[Group], size: int) -> asyncio.Future[RefusedIndices]:
        if self._stopping:
            raise Unavailable("the service is shutting down")
        done: asyncio.Future[RefusedIndices] = asyncio.get_running_loop().create_future()
        self._queue.append(PendingUpload(groups, size, done))
        self.waiting += size
        self._wake.set()
        return done

    async def _run(self) -> None:
        while self._queue or not self._stopping:
            self._wake.clear()
            if not self._queue:
                await self._wake.wait()
                continue
            size = count = 0
            while count < len(self._queue) and size < TRANSACTION:
                size += self._queue[count].size
                count += 1
            batch, self._queue = self._queue[:count], self._queue[count:]
            await self._commit(batch)
            self.waiting -= size

    async def _commit(self, batch: list[PendingUpload]) -> None:
        start = time.perf_counter()
        try:
            groups, refused = merge_groups([upload.groups for upload in batch])
            stored = await self.store.commit(groups) if groups else 0
        except Exception as error:  # every sender must learn of it, whatever it is
            self.commits.failures += 1
            for upload in batch:
                if not upload.done.done():
                    upload.done.set_exception(error)
            return
        self.commits.transactions += 1
        self.commits.stored += stored
        self.commits.duplicates += sum(group.size for group in groups) - stored
        self.commits.seconds += time.perf_counter() - start
        for upload, indices in zip(batch, refused, strict=True):
            if not upload.done.done():  # the sender may have gone; the reports are stored all the same
                upload.done.set_result(indices)


def merge_groups(uploads: list[Sequence[Group]]) -> tuple[list[Group], list[RefusedIndices]]:
    """One group for each plan with all valid reports, and what is refused of each upload."""
    refused: list[RefusedIndices] = [[[] for _ in groups] for groups in uploads]
    by_plan: dict[tuple[str, str], list[tuple[Group, list[int]]]] = {}
    for groups, indices in zip(uploads, refused, strict=True):
        for part in zip(groups, indices, strict=True):
            by_plan.setdefault((part[0].campaign, part[0].plan), []).append(part)
    merged = [_merge_plan(parts) for parts in by_plan.values()]
    return [group for group in merged if group.size], refused


def _merge_plan(parts: list[tuple[Group, list[int]]]) -> Group:
    """The valid reports of one plan; the indices of the others are added to each part's list."""
    ids, words = b"".join(g.ids for g, _ in parts), b"".join(g.words for g, _ in parts)
    group = parts[0][0]._replace(ids=ids, words=words)
    valid = group.mechanism.accepts(unpack_reports(group.mechanism, words))
    if valid.all():
        return group
    start = 0
    for part, refused in parts:
        refused += np.flatnonzero(~valid[start : start + part.size]).tolist()
        start += part.size
    return group.select(valid)
