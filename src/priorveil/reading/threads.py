"""One thread for linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@contextmanager
def single_thread() -> Iterator[None]:
    """Run a block, or as a decorator a function, with one BLAS thread; then as many as before.

    On a busy machine the threads wait for each other: reading took a hundred times as long with two.
    """
    with _linear_algebra().limit(limits=1):
        yield


@cache
def _linear_algebra() -> Any:
    from threadpoolctl import ThreadpoolController  # a device, which only reports, needs no such library

    return ThreadpoolController().select(user_api="blas")
