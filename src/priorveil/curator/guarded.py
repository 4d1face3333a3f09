"""HTTP/1.1 that gives up on senders whose request line and headers are too slow or too long."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0
HEADER_BYTES = 32 << 10


class Guarded(HttpToolsProtocol):
    """A connection with a clock. It runs only while something is awaited that has not come in one piece."""

    _clock: asyncio.TimerHandle | None = None
    _in_head: bool = True
    _head: int = 0

    def connection_made(self, transport: Any) -> None:
        """Start the clock: a connection is made to ask something."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Count what comes while headers are read, and watch the clock if there must be more."""
        if self._in_head:
            self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > HEADER_BYTES:
            self.give_up()
        else:
            self._watch()

    def on_message_begin(self) -> None:
        """A request begins, the second one of a connection as well."""
        self._in_head = True
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The headers are here; the app has a clock of its own for the body."""
        self._in_head = False
        super().on_headers_complete()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(error)

    def unfinished(self) -> bool:
        """Whether the sender owes us something that this clock is for.

        That is the rest of the headers, or, once a request is answered and something more has come, which
        stops the clock of idle connections, the rest of that.
        """
        answered = self.cycle is not None and self.cycle.response_complete
        return self._in_head or (answered and self.timeout_keep_alive_task is None)

    def give_up(self) -> None:
        """End the connection."""
        self._stop()
        self.transport.close()

    def _watch(self) -> None:
        if not self.unfinished():
            self._stop()
        elif self._clock is None:
            self._clock = self.loop.call_later(HEADER_SECONDS, self.give_up)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
