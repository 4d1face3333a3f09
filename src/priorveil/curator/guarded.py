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
        self._stop()  # each request has its own clock
        self._unset_keepalive_if_required()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The headers are here; the app has a clock of its own for the body."""
        self._in_head = False
        super().on_headers_complete()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        self._unset_keepalive_if_required()  # uvicorn leaves it running after a reset
        super().connection_lost(error)

    def unfinished(self) -> bool:
        """Whether the sender owes us something that this clock is for.

        That is the rest of the headers, or, once a request is answered and something more has come, which
        stops the clock of idle connections, the rest of that.
        """
        answered = self.cycle is not None and self.cycle.response_complete
        return self._in_head or (answered and self.timeout_keep_alive_task is None)

    def patience(self) -> float:
        """Seconds in which it should come."""
        return HEADER_SECONDS

    def eof_received(self) -> bool:  # type: ignore[override]
        """Who has said everything may still wait for the answer."""
        return self._ends_with_answer() and self.scheme == "http"

    def send_400_response(self, msg: str) -> None:
        """Nonsense after a request must not be answered in that request's place."""
        if self._ends_with_answer():
            self.flow.pause_reading()
        else:
            super().send_400_response(msg)

    def _ends_with_answer(self) -> bool:
        """Whether a whole request waits for its answer; the connection then ends with it."""
        waits = self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete
        if waits:
            self.cycle.keep_alive = False
        return waits

    def give_up(self) -> None:
        """End the connection."""
        self._stop()
        self.transport.close()

    def _watch(self) -> None:
        if not self.unfinished() or self.flow.read_paused:  # paused: it is we who are slow
            self._stop()
        elif self._clock is None:
            self._clock = self.loop.call_later(self.patience(), self.give_up)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
