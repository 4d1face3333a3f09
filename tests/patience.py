"""How tests wait: for an event, and never for a time. The limits only end a test that hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 300.0  # seconds: far longer than anything here takes, however busy the machine is


def wait_until(condition: Callable[[], object], event: str) -> None:
    """Return as soon as the condition is true; `event` names what never came."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"after {PATIENCE:.0f} seconds: {event}"
        time.sleep(0.02)


async def until(condition: Callable[[], object], event: str) -> None:
    """`wait_until` in an event loop."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"after {PATIENCE:.0f} seconds: {event}"
        await asyncio.sleep(0.02)


def run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives, in an event loop of its own: tests that are coroutines have one already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
