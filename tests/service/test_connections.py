"""Connections: nobody waits for ever, nobody is cut off for what is not their doing."""

from __future__ import annotations

import asyncio
import gc
import importlib
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from test_express import Place, _answer, at, report

from priorveil.collect.campaign import Campaign
from priorveil.curator import express, guarded
from priorveil.curator.app import Limits
from priorveil.curator.server import configuration

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
MANY = b'{"reports":[' + b",".join([b"0"] * 10_000) + b"]}"  # a short question with a long answer


async def connected(there: Place) -> Connection:
    return await asyncio.open_connection("127.0.0.1", there.port)


def slow_commits(there: Place, seconds: float) -> None:
    commit = there.app.service.store.commit

    async def slow(groups: object) -> int:
        await asyncio.sleep(seconds)
        return await commit(groups)  # type: ignore[arg-type]

    there.app.service.store.commit = slow  # type: ignore[method-assign]


KINDS = ["asyncio", pytest.param("uvloop", marks=pytest.mark.skipif(sys.platform == "win32", reason="none"))]


def serving(app: Any, work: Callable[[int, uvicorn.Server], Awaitable[None]], kind: str = "asyncio") -> None:
    """Work with a server of another app, on a loop of this kind."""

    async def run() -> None:
        config = configuration(app, "127.0.0.1", 0, lifespan="off", loop="asyncio")
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        await work(server.servers[0].sockets[0].getsockname()[1], server)
        server.should_exit = True
        await asyncio.wait_for(task, 20)

    loops = asyncio if kind == "asyncio" else importlib.import_module(kind)
    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        runner.run(run())


def statuses(told: bytes) -> list[int]:
    return [int(part[:3]) for part in told.split(b"HTTP/1.1 ")[1:]]


def fail(*_: object) -> None:
    raise RuntimeError("unforeseen")


def test_who_does_not_read_answers_fills_no_memory(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        with socket.socket() as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sender.connect(("127.0.0.1", there.port))
            sender.setblocking(False)
            for _ in range(25):
                await asyncio.get_running_loop().sock_sendall(sender, there.request(MANY))
                await asyncio.sleep(0.05)
            (connection,) = there.server.server_state.connections
            assert connection.transport.get_write_buffer_size() < 2 << 20

    at(tmp_path, campaign, work)


@pytest.mark.parametrize("step", ["admitted", "submit", "receipt"])
def test_the_unforeseen_is_answered(
    tmp_path: Path, campaign: Campaign, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(there: Place) -> None:
        monkeypatch.setattr(there.app.service, step, fail)
        ((status, content),) = await asyncio.wait_for(there.say(there.request(report(campaign))), 5)
        assert status == b"500" and b"unforeseen" not in content

    at(tmp_path, campaign, work)


def test_each_request_has_a_clock_of_its_own(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A steady sender whose pieces end within a head is not slow."""
    monkeypatch.setattr(guarded, "HEADER_SECONDS", 0.5)

    async def work(there: Place) -> None:
        reader, writer = await connected(there)
        request = there.request(report(campaign))
        writer.write(request[:20])
        for _ in range(12):
            await asyncio.sleep(0.1)
            writer.write(request[20:] + request[:20])
            assert (await asyncio.wait_for(_answer(reader), 5))[0] == b"200"
        writer.close()

    at(tmp_path, campaign, work)


def test_no_clock_runs_while_we_do_not_read(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "HEADER_SECONDS", 0.5)

    async def work(there: Place) -> None:
        slow_commits(there, 1.0)
        reader, writer = await connected(there)
        request = there.request(report(campaign))
        writer.write(request + request + request[:30])
        await asyncio.sleep(0.1)
        writer.write(request[30:])
        found = [await asyncio.wait_for(_answer(reader), 10) for _ in range(3)]
        assert [status for status, _ in found] == [b"200"] * 3
        writer.close()

    at(tmp_path, campaign, work)


def test_a_refusal_starts_no_clock_for_what_came_with_it(tmp_path: Path, campaign: Campaign) -> None:
    """The clock of idle connections must not cut off the request that follows in the same piece."""

    async def work(there: Place) -> None:
        there.server.config.timeout_keep_alive = 0  # seconds: as soon as it may
        slow_commits(there, 0.5)
        reader, writer = await connected(there)
        writer.write(there.request(b"x", kind="text/plain") + there.request(report(campaign)))
        assert (await asyncio.wait_for(_answer(reader), 5))[0] == b"415"
        assert (await asyncio.wait_for(_answer(reader), 5))[0] == b"200"
        writer.close()

    at(tmp_path, campaign, work)


@pytest.mark.parametrize("more", [b"\r\n", b"y", b"y" * 100])
def test_no_connection_is_open_for_ever(
    tmp_path: Path, campaign: Campaign, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty line, or a body after its answer, stops the clock of idle connections; another must run."""
    monkeypatch.setattr(guarded, "HEADER_SECONDS", 0.3)

    async def work(there: Place) -> None:
        reader, writer = await connected(there)
        size = 0 if more == b"\r\n" else 100
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size)
        await _answer(reader)
        writer.write(more)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()

    at(tmp_path, campaign, work)


def test_who_has_said_everything_still_gets_the_answer(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        for request in (there.request(report(campaign)), there.chunked(report(campaign))):
            reader, writer = await connected(there)
            writer.write(request)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 5)
            assert answer.startswith(b"HTTP/1.1 200 ") and b"connection: close" in answer
            writer.close()

    at(tmp_path, campaign, work)


CHUNKED = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
NONSENSE = [
    b"XX",
    b"GET / HTTP/1.1\r\nx y\r\n\r\n",
    CHUNKED + b"zz\r\n",
    CHUNKED + b"1\r\n \r\nzz\r\n",
    CHUNKED + b"0\r\nx y\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n\r\n",
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=lambda told: ascii(told)[:40])
@pytest.mark.parametrize("uploads", [1, 2, 3])
def test_nonsense_after_uploads_does_not_take_their_answers(
    tmp_path: Path, campaign: Campaign, nonsense: bytes, uploads: int
) -> None:
    """A sender must not hear that a report was refused which is counted."""

    async def work(there: Place) -> None:
        for request in (there.request(report(campaign)), there.chunked(report(campaign))):
            reader, writer = await connected(there)
            writer.write(request * uploads + nonsense)
            writer.write_eof()
            told = await asyncio.wait_for(reader.read(), 5)
            assert statuses(told) == [200] * uploads and told.count(b"connection: close") == 1
            writer.close()

    at(tmp_path, campaign, work)


def test_who_stops_within_a_request_still_gets_the_answer_before(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        slow_commits(there, 0.3)
        request = there.request(report(campaign))
        for half in (request[:-5], request[:20]):
            reader, writer = await connected(there)
            writer.write(request + half)
            writer.write_eof()
            assert statuses(await asyncio.wait_for(reader.read(), 5)) == [200]
            writer.close()

    at(tmp_path, campaign, work)


def test_who_is_slow_with_the_next_request_still_gets_the_answer_before(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "HEADER_SECONDS", 0.2)

    async def work(there: Place) -> None:
        slow_commits(there, 1.0)
        reader, writer = await connected(there)
        request = there.request(report(campaign))
        writer.write(request + request[:20])
        assert statuses(await asyncio.wait_for(reader.read(), 10)) == [200]
        writer.close()

    at(tmp_path, campaign, work)


def test_a_request_that_breaks_after_its_answer_is_not_answered_again(
    tmp_path: Path, campaign: Campaign
) -> None:
    async def work(there: Place) -> None:
        reader, writer = await connected(there)
        writer.write(CHUNKED.replace(b"POST /", b"GET /healthz"))
        assert (await asyncio.wait_for(_answer(reader), 5))[0] == b"200"
        writer.write(b"zz\r\n")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()

    at(tmp_path, campaign, work)


def test_a_request_that_breaks_amid_its_answer_puts_nothing_into_it() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass

    async def work(port: int, _: uvicorn.Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(CHUNKED)
        told = await asyncio.wait_for(reader.readuntil(b"first\r\n"), 5)
        writer.write(b"zz\r\n")
        assert statuses(told + await asyncio.wait_for(reader.read(), 5)) == [200]
        writer.close()

    serving(app, work)


# -- requests that ask for another protocol ------------------------------------------------------------------

UPGRADE = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"


def test_an_upgrade_is_ignored(tmp_path: Path, campaign: Campaign) -> None:
    """The request is served as it is, wherever it is cut, and the connection goes on."""

    async def work(there: Place) -> None:
        body, health = report(campaign), b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
        whole, chunked = (
            there.request(body, UPGRADE),
            there.chunked(body).replace(b"\r\n", b"\r\n" + UPGRADE, 1),
        )
        for request in (whole, chunked):
            end = request.index(b"\r\n\r\n")
            for cut in (0, 10, end, end + 3, end + 4, end + 5, len(request) - 1, len(request)):
                pieces = [piece for piece in (request[:cut], request[cut:] + health) if piece]
                upload, next_one = await there.say(*pieces, answers=2)
                assert upload == (b"200", b'{"accepted":1,"refused":[]}')
                assert next_one == (b"200", b'{"status":"ok"}')
        assert (await there.app.service.store.tallies(campaign))[campaign.plan_for(None).id].reports == 1

    at(tmp_path, campaign, work)


def test_upgrades_in_a_row_are_answered_once_each(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        plain, asking = there.request(report(campaign)), there.request(report(campaign), UPGRADE)
        last = there.request(report(campaign), UPGRADE.replace(b"Upgrade,", b"Upgrade, close,"))
        for order in ([plain, asking, asking, last], [asking, plain, last], [last, plain]):
            reader, writer = await connected(there)
            writer.write(b"".join(order))
            told = await asyncio.wait_for(reader.read(), 5)
            assert statuses(told) == [200] * (order.index(last) + 1)
            writer.close()
        assert (await there.app.service.store.tallies(campaign))[campaign.plan_for(None).id].reports == 3

    at(tmp_path, campaign, work)


# -- trailers ------------------------------------------------------------------------------------------------


def test_trailers_are_no_headers() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        told = b"%d" % len(scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": told})

    async def work(port: int, _: uvicorn.Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _again in range(2):
            writer.write(CHUNKED + b"1\r\nx\r\n0\r\nauthorization: Bearer x\r\n")
            await asyncio.sleep(0.05)
            writer.write(b"host: y\r\n\r\n")
            assert await asyncio.wait_for(_answer(reader), 5) == (b"200", b"1")
        writer.close()

    serving(app, work)


# -- answers that nobody reads -------------------------------------------------------------------------------

LONG = 30 << 20  # bytes: more than the system keeps


async def long_answer(scope: Any, receive: Any, send: Any) -> None:
    size = (b"content-length", b"%d" % LONG)
    await send({"type": "http.response.start", "status": 200, "headers": [size]})
    await send({"type": "http.response.body", "body": bytes(LONG)})


async def asked(port: int, request: bytes) -> socket.socket:
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    line.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(line, ("127.0.0.1", port))
    await loop.sock_sendall(line, request)
    return line


def unsent(server: uvicorn.Server) -> list[int]:
    connections: Any = server.server_state.connections
    return [connection.transport.get_write_buffer_size() for connection in connections]


async def alone(server: uvicorn.Server) -> None:
    async with asyncio.timeout(20):
        while server.server_state.connections:
            await asyncio.sleep(0.05)


ASKING = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n" * 200,
    b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n",
]


@pytest.mark.parametrize("request_line", ASKING)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_that_nobody_reads_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, request_line: bytes, kind: str
) -> None:
    """And who was about to answer is told, rather than surprised."""
    monkeypatch.setattr(guarded, "UNREAD_SECONDS", 0.3)
    failures = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await long_answer(scope, receive, send)
        except Exception as error:
            failures.append(error)

    async def work(port: int, server: uvicorn.Server) -> None:
        with await asked(port, request_line):
            while not server.server_state.connections:
                await asyncio.sleep(0.01)
            await alone(server)

    serving(app, work, kind)
    assert not failures


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_of_an_answer_is_not_kept_for_nobody(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Nor when so little is unsent that the transport would take more."""
    monkeypatch.setattr(guarded, "UNREAD_SECONDS", 0.3)
    running: list[uvicorn.Server] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not any(unsent(running[0])):
            await send({"type": "http.response.body", "body": bytes(8192), "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})

    async def work(port: int, server: uvicorn.Server) -> None:
        running.append(server)
        server.config.timeout_keep_alive = 0
        with await asked(port, b"GET / HTTP/1.1\r\n\r\n"):
            while not any(unsent(server)):
                await asyncio.sleep(0.01)
            assert max(unsent(server)) < 16384
            await alone(server)

    serving(app, work, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_who_reads_slowly_is_not_cut_off(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Not even so slowly that the system asks for nothing more meanwhile."""
    monkeypatch.setattr(guarded, "UNREAD_SECONDS", 1.0)

    async def work(port: int, server: uvicorn.Server) -> None:
        loop, taken = asyncio.get_running_loop(), 0
        with await asked(port, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n") as line:
            for _ in range(40):
                taken += len(await loop.sock_recv(line, 16384))
                await asyncio.sleep(0.1)
            while part := await asyncio.wait_for(loop.sock_recv(line, 1 << 20), 5):
                taken += len(part)
        assert taken > LONG

    serving(long_answer, work, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_shutdown_does_not_wait_for_who_does_not_read(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(guarded, "LAST_SECONDS", 0.3)

    async def work(port: int, server: uvicorn.Server) -> None:
        with await asked(port, b"GET / HTTP/1.1\r\n\r\n"):
            while not any(unsent(server)):
                await asyncio.sleep(0.01)
            server.should_exit = True
            await alone(server)

    serving(long_answer, work, kind)


def test_nothing_is_kept_of_idle_and_of_broken_connections(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        body = report(campaign)[:-1] + b" " * 60_000 + b"}"
        for _ in range(20):
            reader, writer = await connected(there)
            writer.write(there.request(body))
            await _answer(reader)
            assert sum(len(c.cycle.body) for c in there.server.server_state.connections) == 0
            linger = struct.pack("ii", 1, 0)  # closing resets
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        for _ in range(100):  # a reset is noticed when the loop comes to it
            await asyncio.sleep(0.05)
            gc.collect()
            left = sum(type(thing) is express.Express for thing in gc.get_objects())
            if left == 0:
                break
        assert left == 0

    at(tmp_path, campaign, work)


def test_the_limit_of_seconds_holds_on_the_short_way(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        there.app.limits = Limits(seconds=0.2)
        reader, writer = await connected(there)
        writer.write(there.request(report(campaign))[:-3])
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 408 ")
        writer.close()

    at(tmp_path, campaign, work)


def test_an_upload_may_be_cut_anywhere(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        whole = there.request(report(campaign))
        reader, writer = await connected(there)
        for cut in range(1, len(whole)):
            writer.write(whole[:cut])
            await asyncio.sleep(0.001)
            writer.write(whole[cut:])
            found = await asyncio.wait_for(_answer(reader), 5)
            assert found == (b"200", b'{"accepted":1,"refused":[]}')
        writer.close()
        assert there.short == len(whole) - 1

    at(tmp_path, campaign, work)
