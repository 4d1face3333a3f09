"""One thread for linear algebra."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any


class _BlasLimit:
    """The limit of one BLAS thread, shared by all threads: the first block sets it, the last one to end lifts it.

    The number of BLAS threads belongs to the whole process. If every block restored what it saw, overlapping blocks
    would leave one BLAS thread for ever.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks = 0
        self._limiter: Any = None

    def begin(self) -> None:
        with self._lock:
            if self._blocks == 0:
                libraries = _blas_libraries("scipy.linalg" in sys.modules)
                if any(library.num_threads != 1 for library in libraries.lib_controllers):
                    self._limiter = libraries.limit(limits=1)
                    _release_control()
            self._blocks += 1

    def end(self) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0 and self._limiter is not None:
                self._limiter.restore_original_limits()
                self._limiter = None
                _release_control()


def _release_control() -> None:
    """Let other threads set the limit: threadpoolctl ignores all but the one that set it last."""
    from threadpoolctl import OpenBLASController

    OpenBLASController.clear_controlling_thread()


_LIMIT = _BlasLimit()


@contextmanager
def single_thread() -> Iterator[None]:
    """Run a block, or as a decorator a function, with one BLAS thread; after the last such block as many as before.

    On a busy machine the threads wait for each other: reading took a hundred times as long with two, and the search
    for a design twenty times. A limit that another thread holds by `threadpoolctl` at the time is left as it is.
    """
    _LIMIT.begin()
    try:
        yield
    finally:
        _LIMIT.end()


@cache
def _blas_libraries(with_scipy: bool) -> Any:
    """The loaded libraries. Scipy brings one of its own, so they are looked up again once scipy is loaded."""
    from threadpoolctl import ThreadpoolController  # a device, which only reports, needs no such library

    return ThreadpoolController().select(user_api="blas")
