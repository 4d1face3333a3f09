"""Work on a stream in several threads: in order, and never more than a few things ahead."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_In = TypeVar("_In")
_Out = TypeVar("_Out")

_MOST_THREADS = 4  # one thread decodes, and more than these it cannot feed


def threads_here() -> int:
    """How many threads are worth starting in this process."""
    if hasattr(os, "sched_getaffinity"):
        return min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    return min(_MOST_THREADS, os.cpu_count() or 1)


def in_threads(task: Callable[[_In], _Out], items: Iterable[_In], threads: int) -> Iterator[_Out]:
    """`task` of every item, in their order; at most `threads` items are under way or waiting to be taken.

    >>> list(in_threads(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    return map(task, items) if threads == 1 else _in_pool(task, items, threads, threads)


def one_ahead(task: Callable[[_In], _Out], items: Iterable[_In]) -> Iterator[_Out]:
    """`task` of every item, one after another, in a thread that is at the next item while one is being used.

    >>> list(one_ahead(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    return map(task, items) if threads_here() == 1 else _in_pool(task, items, 1, 2)


def _in_pool(task: Callable[[_In], _Out], items: Iterable[_In], threads: int, most: int) -> Iterator[_Out]:
    with ThreadPoolExecutor(threads) as pool:
        coming: deque[Future[_Out]] = deque()
        for item in items:
            coming.append(pool.submit(task, item))
            if len(coming) == most:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
