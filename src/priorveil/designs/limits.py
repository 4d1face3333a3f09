"""How far a design goes: until little is unproven, until a moment, or until somebody asks it to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

Progress = Callable[[int, float, float], None]
Stop = Callable[[], bool]


def never() -> bool:
    """No reason to stop."""
    return False


@dataclass(frozen=True)
class Limits:
    """When to stop, and whom to tell (round, value, bound).

    The `target` is the share of the achievable gain that may stay unproven; the `deadline` is one of
    `time.monotonic`.
    """

    target: float = 1e-9
    deadline: float = math.inf
    progress: Progress | None = None
    should_stop: Stop = never

    def over(self) -> bool:
        """Whether it is time to stop.

        >>> Limits().over(), Limits(deadline=time.monotonic()).over(), Limits(should_stop=lambda: True).over()
        (False, True, True)
        """
        return time.monotonic() >= self.deadline or self.should_stop()

    def tell(self, count: int, value: float, bound: float) -> None:
        """Say how far it is."""
        if self.progress is not None:
            self.progress(count, value, bound)

    def within(self, share: float) -> Limits:
        """The same limits with a share of the time that is left."""
        now = time.monotonic()
        return replace(self, deadline=now + share * (self.deadline - now))

    def ended(self) -> Limits:
        """The same limits, over already: what is left to do after ctrl-C."""
        return replace(self, deadline=-math.inf)


UNLIMITED = Limits()
