"""Ctrl-C during long work: the first may ask for the best result so far, the next one ends the work."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType


class _Ended(BaseException):
    """Ctrl-C under a name that designs do not catch: they take KeyboardInterrupt as the wish for a quick answer."""


@contextmanager
def end_on_interrupt(on_first: Callable[[], None] | None = None) -> Iterator[Event]:
    """Let ctrl-C end this block at once, with KeyboardInterrupt.

    With `on_first` the first ctrl-C only calls it and sets the event that the block gets, and the second one ends it.
    """
    pressed = Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if on_first is None or pressed.is_set():
            raise _Ended
        pressed.set()
        on_first()

    if current_thread() is not main_thread():  # no other thread gets ctrl-C
        yield pressed
        return
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield pressed
    except _Ended:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)
