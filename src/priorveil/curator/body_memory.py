"""The memory for large bodies, limited in total."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from priorveil.curator.group_commit import QueueFull

SMALL_BODY = 4 << 10  # bytes: a smaller body is read at once, and there is always room for it


class BodyMemory:
    """The memory for large bodies that are being read or decoded.

    It is limited in total, so that unfinished bodies cannot use it up. The first bytes of a body are not counted, so
    strangers who fill the memory can delay batches but no single submission.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.held = capacity, 0

    @contextmanager
    def share(self) -> Iterator[Callable[[int], None]]:
        """A function to call with the length of one body so far; it raises `QueueFull` if there is no room for it."""
        mine = 0

        def hold(size: int) -> None:
            nonlocal mine
            more = max(0, size - SMALL_BODY) - mine
            if self.held + more > self.capacity:
                raise QueueFull("too many large bodies are being read")
            mine += more
            self.held += more

        try:
            yield hold
        finally:
            self.held -= mine
