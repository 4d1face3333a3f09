"""HTTP/1.1 that gives up on who is too slow: with the headers of a request, or with reading its answer.

It also keeps to one answer for each request, in order, whatever a sender makes of the connection.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from collections import deque
from contextlib import suppress
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if sys.platform == "linux":
    import fcntl
    import termios

HEADER_SECONDS = 10.0
HEADER_BYTES = 32 << 10  # of a head, and of the trailers after a chunked body
UNREAD_SECONDS = 30.0  # in which nothing of an answer is taken
LAST_SECONDS = 5.0  # the same, while the server shuts down
_LOOKS = 6  # in that time


class Guarded(HttpToolsProtocol):
    """A connection with clocks.

    One runs only while something is awaited that has not come in one piece, the other only while something
    of an answer is unsent.
    """

    _clock: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None
    _in_head: bool = True
    _in_body: bool = False  # a body, though it may be empty, with its trailers
    _in_tail: bool = False  # after the size of a chunk, before its first byte: the last chunk has none
    _piece: int = 0
    _first: int = 0
    _head: int = 0
    _ending: bool = False

    def connection_made(self, transport: Any) -> None:
        """Start the clock: a connection is made to ask something."""
        super().connection_made(transport)
        self._ahead: deque[Any] = deque()  # what is answered before `cycle`, if that one waits for its turn
        transport.set_write_buffer_limits(high=0)  # tell us of whatever cannot be sent at once
        self._watch()

    # -- what comes ------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Count what comes while headers are read, and watch the clock if there must be more."""
        self._piece = len(data)
        if self._in_head or self._in_tail:
            self._head += self._piece
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            told = "Invalid HTTP request received."
            self.logger.warning(told)
            self.send_400_response(told)
        self._watch()

    def _feed(self, data: bytes) -> None:
        """Have it read; and read a request that asks for another protocol again, as one that does not.

        Whoever asks for that must be content with HTTP/1.1 (RFC 9110, section 7.8), but the parser takes the
        body of such a request for the other protocol, and then for the next request.
        """
        rest: bytes | memoryview = data
        while rest:
            try:
                self.parser.feed_data(rest)
                rest = b""
            except httptools.HttpParserUpgrade as upgrade:
                if self.parser.get_method() == b"CONNECT":
                    raise httptools.HttpParserError("no tunnels") from None
                head = self._head_without_upgrade()
                self._fresh_parser()
                self.parser.feed_data(head)
                rest = memoryview(rest)[upgrade.args[0] :]
        if self._head > HEADER_BYTES and (self._in_head or self._in_tail):
            raise httptools.HttpParserError("headers are too long")

    def _head_without_upgrade(self) -> bytes:
        line = b"%s %s HTTP/%s" % (
            self.parser.get_method(),
            self.url,
            self.parser.get_http_version().encode(),
        )
        kept = (b"%s: %s" % pair for pair in self.headers if pair[0] != b"upgrade")
        return b"\r\n".join([line, *kept, b"", b""])

    def _fresh_parser(self) -> None:
        """The old one reads nothing more after `connection: close`."""
        self.parser = httptools.HttpRequestParser(self)
        with suppress(AttributeError):  # httptools < 0.6.3
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def on_message_begin(self) -> None:
        """A request begins, the second one of a connection as well."""
        self._in_head = True
        self._head = 0
        self._first = self._piece
        self._stop()  # each request has its own clock
        self._unset_keepalive_if_required()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The headers are here; the app has a clock of its own for the body."""
        self._in_head = False
        if self._first + self._head > HEADER_BYTES and self._head_size() > HEADER_BYTES:
            raise httptools.HttpParserError("headers are too long")
        if not self.parser.should_upgrade():
            self.on_request()
            self._in_body = True

    def _head_size(self) -> int:
        """What came with its beginning and its end may belong to other requests."""
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_request(self) -> None:
        """Start the answer, or let the request wait for its turn."""
        codings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if codings and codings != [b"chunked"]:
            raise httptools.HttpParserError("only `chunked` is understood")
        before = self.cycle
        super().on_headers_complete()
        while self._ahead and self._ahead[0].response_complete:
            self._ahead.popleft()
        if self.pipeline:
            self._ahead.append(before)
        if codings:
            self.headers: Any = deque(maxlen=0)  # the app has the list: no trailers for it

    def on_chunk_header(self) -> None:
        """The size of a chunk is read; what follows one of no size is counted like headers."""
        self._in_tail = True
        self._head = 0

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._in_tail = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole, unless it is to be read again."""
        if self._in_body:
            self._in_body = self._in_tail = False
            self.on_whole_request()

    def on_whole_request(self) -> None:
        """Tell the app that the body ends."""
        super().on_message_complete()

    # -- the end of a connection -----------------------------------------------------------------------------

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the clocks, and all answers: uvicorn stops that of the last request only."""
        self._stop()
        self._stop_waiting()
        for cycle in self._ahead:
            cycle.disconnected = not cycle.response_complete
            cycle.message_event.set()
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
        """Nonsense must not be answered in another request's place, nor twice."""
        if self._ends_with_answer():
            self.flow.pause_reading()
        elif self._in_body and self.cycle.response_started:
            self.transport.close()
        else:
            if self._in_body:  # the app has nothing to add
                self.cycle.disconnected = True
                self.cycle.message_event.set()
            super().send_400_response(msg)

    def _ends_with_answer(self) -> bool:
        """Whether a whole request waits for its answer; the connection then ends with it."""
        if self.pipeline and self.cycle.more_body:  # it waits for its turn, and will never be whole
            self.pipeline.popleft()
            self.cycle, self._in_body = self._ahead.pop(), False
        waits = self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete
        if waits:
            self.cycle.keep_alive = False
        return waits

    def give_up(self) -> None:
        """End the connection, with the answer that is due if there is one."""
        self._stop()
        if self._ends_with_answer():
            self.flow.pause_reading()
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """End the connection soon: who does not read is not waited for as long as usual."""
        super().shutdown()
        self._ending = True
        if self._reader is not None:
            self._wait_for_reader()

    def _watch(self) -> None:
        if not self.unfinished() or self.flow.read_paused:  # paused: it is we who are slow
            self._stop()
        elif self._clock is None:
            self._clock = self.loop.call_later(self.patience(), self.give_up)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    # -- answers that nobody reads ---------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Something is unsent: start the clock."""
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        """All is sent."""
        self._stop_waiting()
        super().resume_writing()

    def _wait_for_reader(self) -> None:
        self._stop_waiting()
        self._look_later(self._unsent(), 0)

    def _look_later(self, before: int, still: int) -> None:
        seconds = LAST_SECONDS if self._ending else UNREAD_SECONDS
        self._reader = self.loop.call_later(seconds / _LOOKS, self._look, before, still)

    def _look(self, before: int, still: int) -> None:
        """Whoever takes something, however little, may go on; for nobody else is an answer kept."""
        unsent = self._unsent()
        if unsent < before:
            self._look_later(unsent, 0)
        elif still + 1 < _LOOKS:
            self._look_later(unsent, still + 1)
        else:
            self.transport.abort()

    def _stop_waiting(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None

    def _unsent(self) -> int:
        """Bytes of answers that were not taken.

        The system keeps some megabytes as well, and asks for more only when much of them is gone, which
        takes minutes on a thin line.
        """
        size = self.transport.get_write_buffer_size()
        if sys.platform == "linux":
            line = self.transport.get_extra_info("socket")
            with suppress(OSError):
                size += struct.unpack("i", fcntl.ioctl(line.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
        return size
