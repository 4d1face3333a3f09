"""The app on uvicorn: quiet about people, strict with slow or endless headers, patient at shutdown."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from starlette.types import ASGIApp

from priorveil.errors import InvalidInput

try:
    import uvicorn

    from priorveil.curator.express import Express
except ModuleNotFoundError as missing:  # pragma: no cover
    from priorveil.errors import MissingExtra

    raise MissingExtra((missing.name or "uvicorn").partition(".")[0], "serve") from missing

_BACKLOG = 2048
_SHUTDOWN_SECONDS = 30
_SWITCH_SECONDS = 0.0005  # the writer's thread waits no longer than this for the interpreter


def configuration(app: ASGIApp, host: str, port: int, **more: Any) -> uvicorn.Config:
    """How uvicorn runs the app: no access log, no addresses, no server name."""
    settings: dict[str, Any] = {
        "http": Express,
        "ws": "none",
        "lifespan": "on",
        "access_log": False,
        "log_level": "warning",
        "proxy_headers": False,
        "server_header": False,
        "date_header": True,
        "limit_concurrency": 4096,
        "backlog": _BACKLOG,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": _SHUTDOWN_SECONDS,
    }
    return uvicorn.Config(app, host=host, port=port, **{**settings, **more})


@contextmanager
def listening(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Sockets that listen on every address of a host; on one free port for all of them if it is 0.

    Raises `InvalidInput` if they cannot.
    """
    with ExitStack() as opened:
        sockets: list[socket.socket] = []
        for family, address in _addresses(host, port):
            line = opened.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
            try:
                _listen(line, address, sockets[0].getsockname()[1] if sockets else port)
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL and sockets:
                    continue  # a host may have an address of a kind that this machine does not have
                raise _cannot_listen(host, port, error) from error
            sockets.append(line)
        yield sockets


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    """The addresses of a host, IPv4 first."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise InvalidInput("host", host, "this machine has no such address") from error
    return sorted({(family, address) for family, _, _, _, address in found}, key=lambda f: f[0])


def _listen(line: socket.socket, address: tuple[Any, ...], port: int) -> None:
    if sys.platform != "win32":  # there it would let two servers share a port
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if line.family == socket.AF_INET6:
        line.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    line.bind((address[0], port, *address[2:]))
    line.listen(_BACKLOG)


def _cannot_listen(host: str, port: int, error: OSError) -> InvalidInput:
    if error.errno == errno.EADDRINUSE:
        return InvalidInput("port", port, f"another program listens there on {host}: choose another port")
    if error.errno == errno.EADDRNOTAVAIL:
        return InvalidInput("host", host, "this machine has no such address")
    return InvalidInput("port", port, f"cannot listen there on {host}: {error.strerror}")


def run(
    app: ASGIApp, host: str, port: int, sockets: Sequence[socket.socket] | None = None, **more: Any
) -> None:
    """Serve until a signal asks to stop; then finish what was accepted. Ctrl-C is such a signal, no error."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    logging.getLogger("uvicorn.error").addFilter(_noteworthy)
    server = uvicorn.Server(configuration(app, host, port, **more))
    try:
        server.run(None if sockets is None else list(sockets))
    except KeyboardInterrupt:  # uvicorn raises it again when all is done
        if server.force_exit or not server.started:
            raise


def _noteworthy(record: logging.LogRecord) -> bool:
    """Whether uvicorn should log this: not the traceback of a request that we cancelled because we end by force."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
