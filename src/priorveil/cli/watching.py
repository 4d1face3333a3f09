"""Watching a long design: a bar with the gap still unproven, and a ctrl-C that keeps what there is."""

from __future__ import annotations

import math
import signal
import threading
import time
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any, Self

import click

from priorveil.cli import screen as screens

_PATIENCE = 1.0  # seconds before a bar is shown


def gap_of(error: float, bound: float, no_report: float) -> float:
    """The share of the achievable gain that is not proven; for an infinite `no_report`, `1 - bound / error`.

    >>> gap_of(error=3.0, bound=2.0, no_report=6.0)
    0.25
    >>> gap_of(error=4.0, bound=3.0, no_report=math.inf)
    0.25
    """
    if not math.isfinite(error) or not math.isfinite(bound):
        return 1.0
    room = error if math.isinf(no_report) else no_report - bound
    return min(1.0, max(0.0, (error - bound) / room)) if room > 0 else 0.0


class Watch:
    """Shows how a design gets on and asks it to stop at the first ctrl-C; the second one gives up.

    `told` and `should_stop` are what `design` wants as `progress` and `should_stop`.
    """

    def __init__(self, no_report: float, target: float) -> None:
        self.interrupted = False
        self.gap = 1.0
        self._no_report = no_report
        self._target = max(target, 1e-12)
        self._begin = time.monotonic()
        self._shown = ExitStack()
        self._bar: screens.Told | None = None
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        self._shown.close()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        click.echo("stopping at the best plan so far; ctrl-C again to give up", err=True)

    def should_stop(self) -> bool:
        """Whether ctrl-C was pressed."""
        return self.interrupted

    def told(self, rounds: int, error: float, bound: float) -> None:
        """Take in how far the design is, and show it if it takes long."""
        self.gap = min(self.gap, gap_of(error, bound, self._no_report))
        if self._bar is None and time.monotonic() - self._begin > _PATIENCE:
            self._bar = self._shown.enter_context(screens.bar("designing"))
        if self._bar is not None:
            done = math.log(max(self.gap, self._target)) / math.log(self._target)
            self._bar(done, f"gap {self.gap:.2g}, round {rounds}")
