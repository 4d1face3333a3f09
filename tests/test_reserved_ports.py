"""The ports of tests are reserved for their servers."""

from __future__ import annotations

import socket
import sys

import pytest

from reserved_ports import free_port


@pytest.mark.skipif(sys.platform != "linux", reason="other systems share ports by other rules")
def test_only_a_server_gets_a_reserved_port() -> None:
    address = ("127.0.0.1", free_port())
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(address)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    with socket.create_server(address) as server, socket.create_connection(address):
        server.accept()[0].close()
    with (
        socket.create_server(address, reuse_port=True) as server,
        pytest.raises(OSError, match="in use"),
        socket.create_server(address),
    ):
        raise AssertionError("a second server listens on the port of another one")
