"""Ports for the servers of tests, on this machine only."""

from __future__ import annotations

import socket

_reserved: list[socket.socket] = []


def free_port() -> int:
    """A port that no other test gets: a socket is bound to it, without listening, until this process ends.

    Servers can still listen there, as they reuse addresses. If nothing held it, another socket that is bound to port 0
    before the server listens could get it: Linux draws from 14,000 ports, or from 7,000 with SO_REUSEADDR. With
    SO_REUSEPORT both servers would then listen.
    """
    held = socket.socket()
    for option in ("SO_REUSEADDR", "SO_REUSEPORT"):
        if hasattr(socket, option):
            held.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
    held.bind(("127.0.0.1", 0))
    _reserved.append(held)
    return int(held.getsockname()[1])
