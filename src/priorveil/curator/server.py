"""The app on granian: limits on connections, no access log, a graceful stop.

Granian reads and writes HTTP in a thread of this process and calls the app in the event loop. It times out slow
headers, bounds headers and connections, and stops reading or sending where the other side does not keep up.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

from starlette.types import ASGIApp

from priorveil.curator.app import Curator
from priorveil.curator.logs import log_loop_error
from priorveil.curator.settings import DEFAULTS, ConnectionLimits
from priorveil.errors import InvalidInput, needs_extra

with needs_extra("serve"):
    import uvloop
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.server.embed import Server

_SWITCH_SECONDS = 0.0005  # the longest wait of the store's thread for the interpreter

_ATTEMPTS = 1000  # to connect, one every hundredth of a second

Address = tuple[str, int]


def find_address(host: str, port: int) -> Address:
    """The address of a host, IPv4 before IPv6, with a free port if it is 0.

    Raises `InvalidInput` where it cannot be listened on: granian itself would share a port with another server.
    """
    try:
        candidates = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(candidates)
        with socket.create_server(address, family=family) as probe:
            return str(address[0]), int(probe.getsockname()[1])
    except (OSError, UnicodeError) as error:
        if isinstance(error, socket.gaierror | UnicodeError) or error.errno == errno.EADDRNOTAVAIL:
            raise InvalidInput("host", host, "this machine has no such address") from error
        advice = f"cannot listen there on {host} ({os.strerror(error.errno or 0)}): choose another port"
        raise InvalidInput("port", port, advice) from error


@asynccontextmanager
async def serving(
    app: ASGIApp, address: Address, limits: ConnectionLimits = DEFAULTS.connections
) -> AsyncIterator[None]:
    """Answer requests until the block ends; then finish those that have begun."""
    header_time = int(1000 * limits.header_seconds)
    server = Server(
        app,
        *address,
        interface=Interfaces.ASGINL,  # `run` starts and stops the app
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=header_time, max_buffer_size=limits.header_bytes),
        websockets=False,
        backlog=2048,
        backpressure=limits.connections,
        log_enabled=False,
    )
    task = asyncio.create_task(server.serve())
    try:
        await _wait_until_listening(address)
        _disconnect_stalled_readers(address, limits.send_seconds)
        yield
    finally:
        server.stop()
        asyncio.get_running_loop().set_exception_handler(_ignore_late_callbacks)
        await asyncio.wait([task], timeout=limits.stop_seconds)


async def _wait_until_listening(address: Address) -> None:
    """Connect until it works: granian does not report when it listens."""
    for _ in range(_ATTEMPTS):
        try:
            _, writer = await asyncio.open_connection(*address)
            writer.close()
            return
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
    raise InvalidInput("port", address[1], f"the server does not listen there on {address[0]}")


def _disconnect_stalled_readers(address: Address, seconds: float) -> None:
    """Let the kernel close connections whose reader takes nothing for so long, because granian waits for ever.

    Connections inherit the option from the listening socket. Granian does not expose it, so it is found among the
    sockets of this process by its address.
    """
    if not hasattr(socket, "TCP_USER_TIMEOUT"):  # not Linux
        return
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the listing's own is closed by now
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as candidate:
                listens = candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if listens and candidate.getsockname()[:2] == address:
                    candidate.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * seconds))


def _ignore_late_callbacks(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors of the event loop, except granian's late callbacks to cancelled tasks."""
    if not isinstance(context.get("exception"), asyncio.InvalidStateError):
        log_loop_error(loop, context)


def run(app: Curator, address: Address, on_listening: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGINT or SIGTERM; then finish what was accepted. A second signal does not wait for requests."""

    async def main() -> None:
        task, loop, stop = asyncio.current_task(), asyncio.get_running_loop(), asyncio.Event()

        def on_signal() -> None:
            if stop.is_set() and task is not None:
                task.cancel()
            stop.set()

        loop.set_exception_handler(log_loop_error)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, on_signal)
        async with app.lifespan(), serving(app, address, app.settings.connections):
            with app.metrics.serving(*metrics_address) if metrics_address else nullcontext():
                on_listening()
                await stop.wait()
                await app.service.surveys.stop()  # a design may take longer than requests have at the end

    place = app.settings.metrics
    metrics_address = find_address(place.host, place.port) if place.port else None
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        uvloop.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
