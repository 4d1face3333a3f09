"""The short way of uploads through the server gives the same answers as the ordinary one, in order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import JSON, PACKED, packed_body
from priorveil.curator import create_app, express
from priorveil.curator.app import Curator, Limits
from priorveil.curator.server import configuration
from priorveil.curator.sqlite import SqliteStore


class Place:
    """A server in this process, and how many uploads went the short way."""

    def __init__(self, app: Curator, server: uvicorn.Server, campaign: Campaign) -> None:
        self.app, self.server, self.campaign = app, server, campaign
        self.short = 0
        self.port: int = server.servers[0].sockets[0].getsockname()[1]
        taken = app.take_whole

        def counting(*told: object) -> None:
            self.short += 1
            taken(*told)  # type: ignore[arg-type]

        app.take_whole = counting  # type: ignore[method-assign]

    def head(self, more: bytes = b"", kind: str = JSON) -> bytes:
        line = (
            f"POST /v1/campaigns/{self.campaign.id}/reports HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n"
        )
        return line.encode() + more

    def request(self, body: bytes, more: bytes = b"", kind: str = JSON) -> bytes:
        return self.head(more, kind) + b"content-length: %d\r\n\r\n" % len(body) + body

    def chunked(self, body: bytes, kind: str = JSON) -> bytes:
        pieces = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
        return self.head(b"transfer-encoding: chunked\r\n\r\n", kind) + pieces + b"0\r\n\r\n"

    async def say(self, *pieces: bytes, answers: int = 1) -> list[tuple[bytes, bytes]]:
        """Status and content of each answer on one connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)
        found = [await asyncio.wait_for(_answer(reader), 10) for _ in range(answers)]
        writer.close()
        return found


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    return head[9:12], await reader.readexactly(size)


@asynccontextmanager
async def place(folder: Path, campaign: Campaign) -> AsyncIterator[Place]:
    store = SqliteStore(folder / "reports.db")
    app = create_app(store)
    assert isinstance(app, Curator)
    server = uvicorn.Server(configuration(app, "127.0.0.1", 0, loop="asyncio"))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    await store.add_campaign(campaign)
    await app.service.find(campaign.id)
    yield Place(app, server, campaign)
    server.should_exit = True
    await asyncio.wait_for(task, 20)


def at(folder: Path, campaign: Campaign, work: Callable[[Place], Awaitable[None]]) -> None:
    async def run() -> None:
        async with place(folder, campaign) as there:
            await work(there)

    asyncio.run(run())


def report(campaign: Campaign, value: object = 0, told: str | None = None) -> bytes:
    plan = campaign.plan_for(None).id
    shown = value if isinstance(value, int) else f'"{value}"'
    return f'{{"id":"{told or os.urandom(16).hex()}","plan":"{plan}","report":{shown}}}'.encode()


def bodies(campaign: Campaign) -> list[tuple[bytes, str]]:
    plan, told = campaign.plan_for(None).id, "ab" * 16
    good, far, wrong = (report(campaign, v, told) for v in (1, 10**6, "x"))
    return [
        (good, JSON),
        (far, JSON),
        (wrong, JSON),
        (report(campaign, 0, "zz" * 16), JSON),
        (good.replace(plan.encode(), b"0" * 64), JSON),
        (b'{"reports":[%s,%s,%s]}' % (good, far, wrong), JSON),
        (b'{"reports":[]}', JSON),
        (b"", JSON),
        (b"nonsense", JSON),
        (b"\xff\xfe", JSON),
        (good, "text/plain"),
        (good, "Application/JSON; charset=utf-8"),
        (packed_body(plan, bytes(32), bytes(16)), PACKED),
        (packed_body(plan, bytes(32), bytes(8)), PACKED),
        (packed_body("00" * 32, bytes(16), bytes(8)), PACKED),
        (b"PVR1", PACKED),
    ]


def test_both_ways_give_the_same_answers(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        for body, kind in bodies(campaign):
            before = there.short
            (short,) = await there.say(there.request(body, kind=kind))
            assert there.short == before + 1, "an upload in one piece goes the short way"
            (long,) = await there.say(there.chunked(body, kind))
            assert there.short == before + 1, "a chunked one does not"
            assert short == long

    at(tmp_path, campaign, work)


def test_a_closed_campaign_refuses_on_both_ways(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        await there.app.service.close(there.app.service.live[campaign.id])
        body = report(campaign)
        short, long = await there.say(there.request(body)), await there.say(there.chunked(body))
        assert short == long and b'"closed"' in short[0][1] and b'"accepted":0' in short[0][1]

    at(tmp_path, campaign, work)


@pytest.mark.parametrize(
    "more", [b"expect: 100-continue\r\n", b"connection: close\r\n", b"upgrade: x\r\n", b"x: 1\r\nx: 2\r\n"]
)
def test_requests_that_are_not_plain_go_the_ordinary_way(
    tmp_path: Path, campaign: Campaign, more: bytes
) -> None:
    async def work(there: Place) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
        writer.write(there.request(report(campaign), more))
        told = await asyncio.wait_for(reader.readuntil(b'"refused":[]}'), 10)
        assert b"HTTP/1.1 200 OK" in told and there.short == 0
        writer.close()

    at(tmp_path, campaign, work)


def test_other_campaigns_and_large_bodies_go_the_ordinary_way(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        body = report(campaign)
        other = there.request(body).replace(campaign.id.encode(), b"0" * 64)
        assert (await there.say(other))[0][0] == b"404"
        large = body[:-1] + b" " * express.LARGEST + b"}"
        assert (await there.say(there.request(large)))[0] == (b"200", b'{"accepted":1,"refused":[]}')
        assert there.short == 0

    at(tmp_path, campaign, work)


def test_pipelined_requests_are_answered_in_order(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        upload, health = there.request(report(campaign)), b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
        found = await there.say(upload + health + upload + upload + health, answers=5)
        assert [status for status, _ in found] == [b"200"] * 5
        assert [b"accepted" in content for _, content in found] == [True, False, True, True, False]

    at(tmp_path, campaign, work)


def test_a_body_in_pieces_is_put_together(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        whole = there.request(report(campaign))
        for cut in (10, len(whole) - 40, len(whole) - 1):
            found = await there.say(whole[:cut], whole[cut:])
            assert found == [(b"200", b'{"accepted":1,"refused":[]}')]
        assert there.short == 3
        assert (await there.app.service.store.tallies(campaign))[campaign.plan_for(None).id].reports == 1

    at(tmp_path, campaign, work)


def test_who_is_slow_with_a_body_is_told(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        there.app.limits = Limits(seconds=0.3)
        reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
        writer.write(there.request(report(campaign))[:-5])
        answer = await asyncio.wait_for(reader.read(), 5)
        assert answer.startswith(b"HTTP/1.1 408 ") and b"connection: close" in answer
        writer.close()

    at(tmp_path, campaign, work)


def test_who_leaves_before_the_answer_is_counted_all_the_same(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", there.port)
        writer.write(there.request(report(campaign)))
        await writer.drain()
        writer.transport.abort()
        await there.say(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await there.say(there.request(report(campaign))))[0][0] == b"200"

    at(tmp_path, campaign, work)


def test_shutdown_finishes_what_was_accepted(tmp_path: Path, campaign: Campaign) -> None:
    async def work(there: Place) -> None:
        commit, gate = there.app.service.store.commit, asyncio.Event()

        async def held(groups: object) -> int:
            await gate.wait()
            return await commit(groups)  # type: ignore[arg-type]

        there.app.service.store.commit = held  # type: ignore[method-assign, assignment]
        reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
        writer.write(there.request(report(campaign)))
        while not there.short:
            await asyncio.sleep(0.01)
        there.server.should_exit = True
        await asyncio.sleep(0.3)
        gate.set()
        answer = await asyncio.wait_for(reader.read(), 10)
        assert answer.startswith(b"HTTP/1.1 200 ") and b"connection: close" in answer
        writer.close()

    at(tmp_path, campaign, work)
