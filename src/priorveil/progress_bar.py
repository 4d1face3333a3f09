"""A progress bar for long designs: on a terminal and in notebooks, never in a pipe."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Progress = Callable[[int, float, float], None]  # takes the round, the error and the bound
_DELAY = 1.0  # seconds; shorter designs show nothing
_SHOWN = ContextVar("shown", default=True)


@contextmanager
def without_bars() -> Iterator[None]:
    """Show no bars in this context: the command line has its own."""
    token = _SHOWN.set(False)
    try:
        yield
    finally:
        _SHOWN.reset(token)


@contextmanager
def design_progress(progress: Progress | bool | None, time_limit: float) -> Iterator[Progress | None]:
    """The function that a search calls in every round: the caller's own, a bar, or none (`progress=False`).

    By default, and with `progress=True`, there is a bar if standard error is a terminal, or in a notebook.
    """
    if callable(progress):
        yield progress
        return
    if progress is False or not _SHOWN.get():
        yield None
        return
    bar = _Bar(time_limit)
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    """A bar that appears when the search has taken a second, and disappears at its end."""

    def __init__(self, time_limit: float) -> None:
        self._begin = time.monotonic()
        self._time_limit = time_limit
        self._bar: Any = None
        self._hidden = False

    def update(self, rounds: int, error: float, bound: float) -> None:
        """Show the state of the search."""
        passed = time.monotonic() - self._begin
        if self._hidden or passed < _DELAY:
            return
        if self._bar is None and not self._open():
            return
        state = f"round {rounds}, error {error:.4g}, at least {bound:.4g}"
        self._bar.update(self._task, completed=passed, state=state)

    def _open(self) -> bool:
        from rich import progress
        from rich.console import Console

        console = Console(stderr=True)
        self._hidden = not (console.is_terminal or console.is_jupyter)
        if self._hidden:
            return False
        state = progress.TextColumn("{task.fields[state]}", markup=False)
        columns = (progress.BarColumn(), state, progress.TimeElapsedColumn())
        self._bar = progress.Progress("designing", *columns, console=console, transient=True)
        total = self._time_limit if math.isfinite(self._time_limit) else None
        self._task = self._bar.add_task("", total=total, state="")
        self._bar.start()
        return True

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
