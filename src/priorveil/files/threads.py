"""A task for each of many items, in several threads, with the results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_MOST_THREADS = 4  # one thread decodes, and cannot feed more than these

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def thread_count() -> int:
    """How many threads are worth starting in this process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MOST_THREADS, cores)


def in_threads(task: Callable[[_In], _Out], items: Iterable[_In], threads: int) -> Iterator[_Out]:
    """`task` of every item, in their order; at most `threads + 1` results are unfinished or not yet taken.

    Without threads, each is done when it is taken.

    >>> list(in_threads(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    if not threads or thread_count() == 1:
        yield from map(task, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[_Out]] = deque()
        for item in items:
            pending.append(pool.submit(task, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
