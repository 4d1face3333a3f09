"""The server on a real socket: slow, endless and odd requests; nothing about a person in the logs."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_crashes import Server

from priorveil.curator import guarded
from priorveil.curator import server as served


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
    """What the server answers to raw bytes, until it closes or falls silent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=3) as line:
        for piece in pieces:
            line.sendall(piece)
            time.sleep(pause)
        answer = b""
        try:
            while part := line.recv(65536):
                answer += part
        except (TimeoutError, ConnectionError):
            pass
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
    assert b"server:" not in answer.lower()


@pytest.mark.parametrize(("size", "status"), [(31_000, b"200"), (33_000, b"400"), (60_000, b"400")])
@pytest.mark.parametrize("cut", [0, 100, 20_000])
def test_headers_have_a_limit_however_they_come(server: Server, size: int, status: bytes, cut: int) -> None:
    """Many short ones or a long one; in one piece or in two."""
    for more in (b"x: " + b"y" * size + b"\r\n", b"x: y\r\n" * (size // 6)):
        whole = b"GET /healthz HTTP/1.1\r\n" + more + TAIL
        answer = said(server, whole[:cut], whole[cut:], pause=0.05)
        lost = status == b"400" and not answer  # it is reset if more comes than was read
        assert lost or answer.startswith(b"HTTP/1.1 " + status), answer[:200]


def test_what_comes_with_headers_is_not_counted(server: Server) -> None:
    """The body before them, and the one after."""
    body = b"content-length: 100000\r\n\r\n" + b"x" * 100_000
    found = said(server, UPLOAD + body + UPLOAD + body + b"GET /healthz HTTP/1.1\r\n" + TAIL)
    assert [part[:3] for part in found.split(b"HTTP/1.1 ")[1:]] == [b"404", b"404", b"200"]


def test_endless_headers_are_cut_off(server: Server) -> None:
    start = b"GET /healthz HTTP/1.1\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        line.sendall(start)
        with pytest.raises(ConnectionError):
            for _ in range(4000):
                line.sendall(b"x-filler: " + b"y" * 1000 + b"\r\n")
                time.sleep(0.001)


def test_slow_headers_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock starts with the connection and with each request, and stops with the headers' end."""
    import asyncio

    import uvicorn

    async def app(scope: object, receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]

    monkeypatch.setattr(guarded, "HEADER_SECONDS", 0.3)

    async def run() -> None:
        config = served.configuration(app, "127.0.0.1", 0, lifespan="off", loop="asyncio")  # type: ignore[arg-type]
        running = uvicorn.Server(config)
        task = asyncio.create_task(running.serve())
        while not running.started:
            await asyncio.sleep(0.01)
        port = running.servers[0].sockets[0].getsockname()[1]
        for first in (b"GET / HTT", b"GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / H"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            answer = await asyncio.wait_for(reader.read(), 5)
            assert answer.count(b"200") == first.count(b"\r\n\r\n")
            writer.close()
        running.should_exit = True
        await task

    asyncio.run(run())
