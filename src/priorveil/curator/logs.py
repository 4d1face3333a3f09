"""What the curator logs. A line never contains a person's address, a report, its id, a code, a token or a value."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from priorveil.curator.settings import LogSettings
from priorveil.errors import PriorveilError

_log = logging.getLogger(__name__)


def frames(error: BaseException) -> str:
    """The class of an error and the lines of code that raised it, without its message, which may quote a value."""
    lines = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return f"{type(error).__name__}\nTraceback (most recent call last):\n{lines}"


@dataclass
class FailureLog:
    """Logs each kind of failure of the store at once, and then at most once in `seconds`.

    Our own errors say what to do and quote nothing; the messages of others are not logged.
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


def log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that nobody awaited; asyncio itself would show the message of the error."""
    error = context.get("exception")
    what = context["message"] if error is None else frames(error)
    _log.error("unexpected error in the event loop: %s", what)


class _PlainFormatter(logging.Formatter):
    """Time in UTC, level and message. The message of an error that comes with the record is left out."""

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        more = f"\n{fields['error']}" if "error" in fields else ""
        return f"{fields['time']} {fields['level']} {fields['message']}{more}"


class _JsonFormatter(logging.Formatter):
    """The same as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_fields(record))


def _fields(record: logging.LogRecord) -> dict[str, str]:
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    error = record.exc_info[1] if record.exc_info else None
    return {
        "time": moment.replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
        **({"error": frames(error)} if error is not None else {}),
    }


_FORMATTERS = {"plain": _PlainFormatter, "json": _JsonFormatter}


def configure_logging(settings: LogSettings) -> None:
    """Log to standard error, our own records and those of the libraries."""
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATTERS[settings.format]())
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
