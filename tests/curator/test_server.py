"""The server on a real socket: slow, endless and odd requests; nothing about a person in the logs."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from local_server import Server
from patience import PATIENCE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    running = Server(str(folder / "a.db"), folder)
    yield running
    running.stop()
    log = running.log.read_text()
    assert "127.0.0.1:" + str(running.port) in log, "it says where it listens"
    assert log.count("127.0.0.1") == 1 and "Mozilla" not in log and "Traceback" not in log


def said(server: Server, *pieces: bytes, pause: float = 0.0) -> bytes:
    """What the server answers to raw bytes, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as line:
        for piece in pieces:
            line.sendall(piece)
            time.sleep(pause)
        answer = b""
        with suppress(ConnectionError):
            while part := line.recv(65536):
                answer += part
        return answer


TAIL = b"host: x\r\nconnection: close\r\n\r\n"
UPLOAD = b"POST /v1/campaigns/x/reports HTTP/1.1\r\nhost: x\r\n"
ODD = [
    (b"GET /healthz HTTP/1.1\r\nuser-agent: Mozilla\r\n" + TAIL, b"200"),
    (b"GET /../../etc/passwd HTTP/1.1\r\n" + TAIL, b"404"),
    (b"GET /static/..%2f..%2fapp.py HTTP/1.1\r\n" + TAIL, b"404"),
    (b"GET /v1/campaigns/%00 HTTP/1.1\r\n" + TAIL, b"404"),
    (b"GET /v1/campaigns/%ff%fe HTTP/1.1\r\n" + TAIL, b"404"),
    (b"BREW /healthz HTTP/1.1\r\n" + TAIL, b"4"),
    (b"GET /healthz HTTP/1.1\r\nx-forwarded-for: 1.2.3.4\r\n" + TAIL, b"200"),
    (b"nonsense\r\n\r\n", b"400"),
    (UPLOAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", b"4"),
    (UPLOAD + b"content-length: -5\r\n\r\n", b"4"),
]


@pytest.mark.parametrize(("request_line", "status"), ODD)
def test_odd_requests_get_an_answer(server: Server, request_line: bytes, status: bytes) -> None:
    answer = said(server, request_line)
    assert answer.startswith(b"HTTP/1.1 " + status), answer[:200]
    assert b"granian" not in answer.lower()


@pytest.mark.parametrize(("size", "status"), [(31_000, b"200"), (200_000, b"431"), (500_000, b"431")])
@pytest.mark.parametrize("cut", [0, 100, 20_000])
def test_headers_have_a_limit_however_they_come(server: Server, size: int, status: bytes, cut: int) -> None:
    """A few long ones or a long one; in one piece or in two."""
    for more in (b"x: " + b"y" * size + b"\r\n", (b"x: " + b"y" * (size // 90) + b"\r\n") * 90):
        whole = b"GET /healthz HTTP/1.1\r\n" + more + TAIL
        answer = said(server, whole[:cut], whole[cut:], pause=0.05)
        lost = status == b"431" and not answer  # it is reset if more comes than was read
        assert lost or answer.startswith(b"HTTP/1.1 " + status), answer[:200]


def test_headers_are_at_most_a_hundred(server: Server) -> None:
    for count, status in ((90, b"200"), (110, b"431"), (5000, b"431")):
        answer = said(server, b"GET /healthz HTTP/1.1\r\n" + b"x: y\r\n" * count + TAIL)
        assert answer.startswith(b"HTTP/1.1 " + status), answer[:200]


def test_endless_headers_are_cut_off(server: Server) -> None:
    start = b"GET /healthz HTTP/1.1\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as line:
        line.sendall(start)
        with pytest.raises(ConnectionError):
            for _ in range(4000):
                line.sendall(b"x-filler: " + b"y" * 1000 + b"\r\n")
                time.sleep(0.001)
