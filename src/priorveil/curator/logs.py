"""What the curator logs. A line never has a person's address, a report, its id, a code, a token or a value."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from priorveil.errors import PriorveilError

_log = logging.getLogger(__name__)


def frames(error: BaseException) -> str:
    """The class of an error and the lines of code that raised it, without its message, which may quote a value."""
    return "".join([f"{type(error).__name__}\n", *traceback.format_tb(error.__traceback__)]).rstrip()


@dataclass
class FailureLog:
    """Logs each kind of failure of the store at once, and then at most once in `seconds`.

    Our own errors say what to do and quote nothing; of any other error the message is not logged.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    _logged: dict[tuple[type, type], float] = field(default_factory=dict)
    _skipped: dict[tuple[type, type], int] = field(default_factory=dict)

    def report(self, error: Exception) -> None:
        """Log a failure, unless one of its kind was logged a short while ago."""
        kind, now = (type(error), type(error.__cause__)), self.clock()
        if kind in self._logged and now - self._logged[kind] < self.seconds:
            self._skipped[kind] = self._skipped.get(kind, 0) + 1
            return
        self._logged[kind] = now
        skipped = self._skipped.pop(kind, 0)
        more = f" ({skipped:,} more of this kind since the last message)" if skipped else ""
        what = str(error) if isinstance(error, PriorveilError) else f"unexpected {frames(error)}"
        _log.error("the store failed: %s%s", what, more)
