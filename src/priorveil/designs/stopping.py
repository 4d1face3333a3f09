"""Stopping rules of a search: a target gap, a deadline, or the caller's request.

A deadline is read from a clock. `Clock` counts seconds; `RoundClock` counts the rounds of the searches that share it,
so that what they find does not depend on how fast the machine is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from priorveil.information import gain_share
from priorveil.progress_bar import Progress

Stop = Callable[[], bool]


def never() -> bool:
    """No reason to stop."""
    return False


class Clock:
    """A clock that counts seconds."""

    def now(self) -> float:
        """The time."""
        return time.monotonic()

    def count_round(self) -> None:
        """Note that a round begins; this clock does not count rounds."""


class RoundClock(Clock):
    """A clock that counts rounds: each is one second.

    A round is one of column generation, one solution for the best weights, or some steps and a proof in the search for
    a bound.
    """

    def __init__(self) -> None:
        self.rounds = 0

    def now(self) -> float:
        """The number of rounds."""
        return float(self.rounds)

    def count_round(self) -> None:
        """A round begins."""
        self.rounds += 1


_SECONDS = Clock()

FINEST_GAP = 1e-10  # the smallest gap that a search closes; smaller gains are rounding noise
PATIENCE = 2.5  # the least seconds for a last step after a search has used up the time
# A larger table is neither written out nor held in memory: these are 32 MiB of floats.
MOST_ENTRIES = 4_000_000
MOST_ROUNDS = 500  # a search that no other limit ends stops after these; nearly all end far earlier
# The share of the time left for a list of columns, a bound or a start before the main search.
FIRST_STEP = 1 / 3
MOST_UNBIASED = 20_000  # values up to which unbiased statistics are searched or arcs drawn: some seconds
MOST_DENSE = 1_000  # values up to which matrices of values by values are factored in every round


@dataclass(frozen=True)
class Limits:
    """Stopping rules: a target gap, a deadline, or the caller's request; and a callback for progress.

    The `target` is the share of the achievable gain that may stay unproven; the `deadline` is a time of the
    `clock`; `progress` is called with the round, the value and the bound.
    """

    target: float = 1e-9
    deadline: float = math.inf
    progress: Progress | None = None
    should_stop: Stop = never
    least: float = 0.0
    clock: Clock = _SECONDS

    def of_seconds(self, seconds: float) -> Limits:
        """The same limits with a deadline that many seconds from now.

        >>> Limits().of_seconds(60.0).over(), Limits().of_seconds(0.0).over()
        (False, True)
        """
        return replace(self, clock=_SECONDS, deadline=_SECONDS.now() + seconds)

    def of_rounds(self, rounds: float) -> Limits:
        """The same limits with a deadline after that many rounds; the time does not matter.

        >>> limits = Limits().of_rounds(1)
        >>> limits.over(), limits.count_round(), limits.over()
        (False, None, True)
        """
        return replace(self, clock=RoundClock(), deadline=rounds)

    def count_round(self) -> None:
        """A round begins."""
        self.clock.count_round()

    def over(self) -> bool:
        """Whether it is time to stop.

        >>> Limits().over(), Limits(should_stop=lambda: True).over()
        (False, True)
        """
        return self.left() <= 0 or self.should_stop()

    def left(self) -> float:
        """The time that is left: seconds or rounds."""
        return self.deadline - self.clock.now()

    def target_reached(self, value: float, bound: float, utility_without_report: float) -> bool:
        """Whether little enough is unproven: the target share of the gain, or `least`."""
        return (
            bound - value <= self.least or relative_gap(value, bound, utility_without_report) <= self.target
        )

    def report(self, count: int, value: float, bound: float) -> None:
        """Report the progress."""
        if self.progress is not None:
            self.progress(count, value, bound)

    def share(self, part: float) -> Limits:
        """The same limits with a part of the time that is left."""
        return replace(self, deadline=self.clock.now() + part * self.left())

    def at_least(self, time_left: float) -> Limits:
        """The same limits with at least this much time left."""
        return replace(self, deadline=max(self.deadline, self.clock.now() + time_left))

    def without_time(self) -> Limits:
        """The same limits with no time left: for the work that remains after ctrl-C."""
        return replace(self, deadline=-math.inf)

    def in_units(self, scale: float, offset: float = 0.0) -> Limits:
        """The same limits for a solver whose values are `(error - offset) / scale`; progress reports errors."""
        if self.progress is None:
            return self
        return replace(
            self, progress=lambda n, *pair: self.report(n, *(offset + scale * number for number in pair))
        )


UNLIMITED = Limits()


def relative_gap(value: float, bound: float, utility_without_report: float) -> float:
    """The share of the achievable gain that is missing.

    >>> relative_gap(value=3.0, bound=5.0, utility_without_report=1.0)
    0.5
    """
    rounding = 1e-13 * max(abs(bound), abs(utility_without_report))
    share = gain_share(-value, -bound, -utility_without_report, rounding)
    return min(1.0, max(0.0, 1.0 - share))
