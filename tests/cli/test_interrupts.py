"""Ctrl-C during long work, also work that catches KeyboardInterrupt itself."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from priorveil.cli.screen import end_on_interrupt


def press() -> None:
    """Ctrl-C in work that takes it as the wish for a quick answer, as designs do."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_ends_the_block_whatever_it_catches() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), end_on_interrupt():
        press()
        raise AssertionError("still running")
    assert signal.getsignal(signal.SIGINT) is before


def test_the_first_one_may_ask_for_a_quick_end() -> None:
    asked: list[int] = []
    with pytest.raises(KeyboardInterrupt), end_on_interrupt(lambda: asked.append(1)) as interrupted:
        assert not interrupted.is_set()
        press()
        assert interrupted.is_set() and asked == [1]
        press()
        raise AssertionError("still running")
    assert asked == [1]
