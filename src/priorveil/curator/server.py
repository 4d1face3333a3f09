"""The app on uvicorn: quiet about people, strict with slow or endless headers, patient at shutdown."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0
HEADER_BYTES = 32 << 10
_SHUTDOWN_SECONDS = 30
_SWITCH_SECONDS = 0.0005  # the writer's thread waits no longer than this for the interpreter


class Guarded(HttpToolsProtocol):
    """HTTP/1.1 that gives up on senders whose request line and headers are too slow or too long."""

    _clock: asyncio.TimerHandle | None = None
    _head: int = 0

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        """Count what comes while headers are read."""
        if self._clock is not None:
            self._head += len(data)
        super().data_received(data)
        if self._clock is not None and self._head > HEADER_BYTES:
            self._give_up()

    def on_message_begin(self) -> None:
        """Start the clock, for the second request of a connection as well."""
        if self._clock is None:
            self._start()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop the clock."""
        self._stop()
        super().on_headers_complete()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(error)

    def _start(self) -> None:
        self._head = 0
        self._clock = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _give_up(self) -> None:
        self._stop()
        self.transport.close()


def configuration(app: ASGIApp, host: str, port: int, **more: Any) -> uvicorn.Config:
    """How uvicorn runs the app: no access log, no addresses, no server name."""
    settings: dict[str, Any] = {
        "http": Guarded,
        "ws": "none",
        "lifespan": "on",
        "access_log": False,
        "log_level": "warning",
        "proxy_headers": False,
        "server_header": False,
        "date_header": True,
        "limit_concurrency": 4096,
        "backlog": 2048,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": _SHUTDOWN_SECONDS,
    }
    return uvicorn.Config(app, host=host, port=port, **{**settings, **more})


def run(app: ASGIApp, host: str, port: int, **more: Any) -> None:
    """Serve until a signal asks to stop; then finish what was accepted."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    uvicorn.Server(configuration(app, host, port, **more)).run()
