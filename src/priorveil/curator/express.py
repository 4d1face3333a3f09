"""The short way of a whole upload through the server: no task, no ASGI messages.

Most requests of a busy curator are small uploads that arrive in one piece. Such a request is read as soon as
its last byte is there and answered when its reports are durable, by callbacks. Anything else about a request,
be it chunked, large, pipelined, of another route or for a campaign not yet in memory, goes the ordinary way
through the app, which gives the same answers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from priorveil.curator.app import Curator, Headers, Reply
from priorveil.curator.guarded import Guarded
from priorveil.curator.problems import Refused
from priorveil.curator.service import Live

LARGEST = 64 << 10  # bytes of a body that may take the short way
_UPLOAD = re.compile(rb"/v1/campaigns/([0-9a-f]{64})/reports")
_NOT_PLAIN = frozenset((b"expect", b"transfer-encoding", b"upgrade"))


class _Nobody:
    """Nobody waits for the parts of a body that is taken whole."""

    def set(self) -> None:
        """Told of a part; nothing to do."""


class Exchange:
    """One upload: what uvicorn keeps of a request, without a task."""

    message_event: ClassVar[_Nobody] = _Nobody()
    response_started: ClassVar[bool] = False  # it is sent in one piece, or not yet
    __slots__ = ("body", "disconnected", "keep_alive", "kind", "live", "more_body", "response_complete")

    def __init__(self, live: Live, kind: bytes) -> None:
        self.live = live
        self.kind = kind
        self.body = b""
        self.more_body = True
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False


class Express(Guarded):
    """HTTP/1.1 with a short way for uploads, if the app is a curator."""

    def on_request(self) -> None:
        """Choose the way."""
        exchange = self._exchange()
        if exchange is None:
            super().on_request()
        else:
            self._stop()  # the body has a clock of its own
            self.cycle: Any = exchange

    def on_whole_request(self) -> None:
        """Take an upload that is now whole."""
        super().on_whole_request()
        exchange = self.cycle
        if type(exchange) is Exchange and not exchange.response_complete:
            curator: Any = self.app
            body, exchange.body = exchange.body, b""  # the exchange stays until the next one
            curator.take_whole(exchange.live, exchange.kind, body, lambda reply: self._reply(exchange, reply))

    def unfinished(self) -> bool:
        """Headers, or the body of an upload on the short way."""
        return super().unfinished() or (type(self.cycle) is Exchange and self.cycle.more_body)

    def patience(self) -> float:
        """Seconds for headers, or for a body."""
        if type(self.cycle) is Exchange and self.cycle.more_body and not self._in_head:
            curator: Any = self.app
            seconds: float = curator.limits.seconds
            return seconds
        return super().patience()

    def give_up(self) -> None:
        """End the connection; who was slow with a body is told so."""
        if type(self.cycle) is Exchange and self.cycle.more_body and not self._in_head:
            curator: Any = self.app
            self.cycle.keep_alive = False
            slow = Refused(408, f"the body took more than {curator.limits.seconds:g} seconds")
            self._reply(self.cycle, curator.refusal(slow))
        super().give_up()

    def _exchange(self) -> Exchange | None:
        """An exchange for the request whose headers were just read, if it may go the short way."""
        if self.parser.get_method() != b"POST" or not isinstance(self.app, Curator):
            return None
        if self.cycle is not None and not self.cycle.response_complete:
            return None  # pipelined
        if self.flow.write_paused:
            return None  # does not read its answers: the ordinary way waits for that
        found = _UPLOAD.fullmatch(self.url)
        live = self.app.service.live.get(found[1].decode()) if found else None
        if live is None:
            return None
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            return None
        headers = dict(self.headers)
        told = headers.get(b"content-length", b"")
        small = told.isdigit() and int(told) <= min(LARGEST, self.app.limits.body)
        plain = small and len(headers) == len(self.headers) and headers.keys().isdisjoint(_NOT_PLAIN)
        if not plain or not self.parser.should_keep_alive() or self.parser.get_http_version() != "1.1":
            return None
        return Exchange(live, headers.get(b"content-type", b""))

    def _reply(self, exchange: Exchange, reply: Reply) -> None:
        """Send the answer; the next request of the connection may follow."""
        exchange.response_complete = True
        if exchange.disconnected or self.transport.is_closing():
            return
        status, headers, content = reply
        head = STATUS_LINE[status] + _lines(tuple(self.server_state.default_headers)) + _lines(headers)
        last = b"" if exchange.keep_alive else b"connection: close\r\n"
        self.transport.write(b"%s%scontent-length: %d\r\n\r\n%s" % (head, last, len(content), content))
        if exchange.keep_alive:
            self.on_response_complete()
        else:
            self.transport.close()


@lru_cache(64)
def _lines(headers: Headers) -> bytes:
    return b"".join(b"%s: %s\r\n" % pair for pair in headers)
