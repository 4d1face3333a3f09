"""Group commit: what arrives while one transaction is being written goes into the next one, without a timer.

The queue is bounded by its bytes. A future is resolved only when its reports are durable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from priorveil.collect.wire import ID_BYTES, unpack_reports
from priorveil.curator.store import Group, Store
from priorveil.errors import PriorveilError

CAPACITY = 16 << 20  # bytes waiting
GROUP = 4 << 20  # bytes in one transaction
_OVERHEAD = 512  # what a waiting submission weighs besides its reports


class Busy(PriorveilError):
    """The queue is full: come back in a moment."""


class Stopped(PriorveilError):
    """The service is shutting down and takes nothing more."""


@dataclass(slots=True)
class Submission:
    """The reports of one request, by plan, and who waits for them.

    The answer is, for each group, the places of the reports that the plan cannot have made.
    """

    groups: Sequence[Group]
    answer: asyncio.Future[list[list[int]]]
    weight: int


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
    """Gathers submissions and commits them one transaction after the other."""

    store: Store
    capacity: int = CAPACITY
    commits: Commits = field(default_factory=Commits)
    _waiting: list[Submission] = field(default_factory=list)
    _weight: int = 0
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _stopping: bool = False

    @property
    def waiting(self) -> int:
        """The bytes in the queue."""
        return self._weight

    def start(self) -> None:
        """Begin to write, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what was accepted, then end."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled():  # by a server that is ended by force
                self._task.result()

    def submit(self, groups: Sequence[Group]) -> asyncio.Future[list[list[int]]]:
        """Queue the reports of one request. Raises `Busy` when the queue is full."""
        if self._stopping:
            raise Stopped("the service is shutting down")
        weight = _OVERHEAD
        for group in groups:
            weight += len(group.ids) + len(group.words)
        if self._weight + weight > self.capacity and self._weight:
            raise Busy("the queue of reports is full")
        return self._queued(groups, weight)

    async def settled(self) -> None:
        """Return when all that was submitted before is stored, or refused."""
        if self._stopping:
            raise Stopped("the service is shutting down")
        await self._queued([], 0)

    def _queued(self, groups: Sequence[Group], weight: int) -> asyncio.Future[list[list[int]]]:
        answer: asyncio.Future[list[list[int]]] = asyncio.get_running_loop().create_future()
        self._waiting.append(Submission(groups, answer, weight))
        self._weight += weight
        if not self._wake.is_set():
            self._wake.set()
        return answer

    async def _run(self) -> None:
        while self._waiting or not self._stopping:
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
                continue
            taken = self._take()
            await self._commit(taken)
            self._weight -= sum(s.weight for s in taken)

    def _take(self) -> list[Submission]:
        """The next submissions, up to the size of a transaction."""
        if self._weight <= GROUP:
            taken, self._waiting = self._waiting, []
            return taken
        total, n = 0, 0
        for n, submission in enumerate(self._waiting, start=1):  # noqa: B007
            total += submission.weight
            if total >= GROUP:
                break
        taken, self._waiting = self._waiting[:n], self._waiting[n:]
        return taken

    async def _commit(self, taken: list[Submission]) -> None:
        start = time.perf_counter()
        try:
            groups, answers = sifted([s.groups for s in taken])
            stored = await self.store.commit(groups) if groups else 0
        except Exception as error:  # whoever waits must hear of it, whatever it is
            self.commits.failures += 1
            for submission in taken:
                if not submission.answer.done():
                    submission.answer.set_exception(error)
            return
        self.commits.transactions += 1
        self.commits.stored += stored
        self.commits.duplicates += sum(len(g.ids) for g in groups) // ID_BYTES - stored
        self.commits.seconds += time.perf_counter() - start
        for submission, answer in zip(taken, answers, strict=True):
            if not submission.answer.done():  # done: the sender has gone; the reports are stored all the same
                submission.answer.set_result(answer)


def sifted(submitted: list[Sequence[Group]]) -> tuple[list[Group], list[list[list[int]]]]:
    """All valid reports, one group for each plan; and for each submitted group the places of the others."""
    answers: list[list[list[int]]] = [[[] for _ in groups] for groups in submitted]
    by_plan: dict[tuple[str, str], list[tuple[Group, list[int]]]] = {}
    for groups, places in zip(submitted, answers, strict=True):
        for group, refused in zip(groups, places, strict=True):
            by_plan.setdefault((group.campaign, group.plan), []).append((group, refused))
    joined = [_joined(parts) for parts in by_plan.values()]
    return [group for group in joined if group.ids], answers


def _joined(parts: list[tuple[Group, list[int]]]) -> Group:
    """The valid reports of one plan; the places of the others are noted in each part's list."""
    first = parts[0][0]
    ids, words = b"".join(g.ids for g, _ in parts), b"".join(g.words for g, _ in parts)
    good = first.mechanism.accepts(unpack_reports(first.mechanism, words))
    group = Group(first.campaign, first.plan, first.mechanism, ids, words)
    if good.all():
        return group
    start = 0
    for part, refused in parts:
        end = start + len(part.ids) // ID_BYTES
        refused.extend(np.flatnonzero(~good[start:end]).tolist())
        start = end
    return group.select(good)
