"""Connections on the short way: nobody waits for ever, nobody is cut off for what is not their doing."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
from pathlib import Path

import pytest
from test_express import Place, _answer, at, report

from priorveil.campaigns import Campaign
from priorveil.curator import express, guarded
from priorveil.curator.app import Limits

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


@pytest.mark.parametrize("nonsense", [b"XX", b"GET / HTTP/1.1\r\nx y\r\n\r\n"])
def test_nonsense_after_an_upload_does_not_take_its_answer(
    tmp_path: Path, campaign: Campaign, nonsense: bytes
) -> None:
    """A sender must not hear that a report was refused which is counted."""

    async def work(there: Place) -> None:
        for request in (there.request(report(campaign)), there.chunked(report(campaign))):
            reader, writer = await connected(there)
            writer.write(request + nonsense)
            assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 200 ")
            writer.close()

    at(tmp_path, campaign, work)


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
