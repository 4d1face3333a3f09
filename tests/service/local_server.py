"""A curator on a real socket in this process, and raw requests to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.types import ASGIApp

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import JSON
from priorveil.curator import create_app
from priorveil.curator.app import Curator, RequestLimits
from priorveil.curator.server import ConnectionLimits, find_addresses, serving
from priorveil.curator.sqlite import SqliteStore

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Place:
    """A running curator with one campaign."""

    def __init__(self, app: Curator, port: int, campaign: Campaign) -> None:
        self.app, self.port, self.campaign = app, port, campaign

    def request(self, body: bytes, more: bytes = b"", kind: str = JSON) -> bytes:
        return self._head(more, kind) + b"content-length: %d\r\n\r\n" % len(body) + body

    def chunked(self, body: bytes, kind: str = JSON) -> bytes:
        pieces = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
        return self._head(b"transfer-encoding: chunked\r\n\r\n", kind) + pieces + b"0\r\n\r\n"

    def _head(self, more: bytes, kind: str) -> bytes:
        path = f"/v1/campaigns/{self.campaign.id}/reports"
        return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n".encode() + more

    async def connect(self) -> Connection:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def send(self, *pieces: bytes, responses: int = 1) -> list[tuple[bytes, bytes]]:
        """Status and content of each response on one connection."""
        reader, writer = await self.connect()
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)
        found = [await asyncio.wait_for(read_response(reader), 10) for _ in range(responses)]
        writer.close()
        return found

    async def stored(self) -> int:
        tallies = await self.app.service.store.tallies(self.campaign)
        return sum(tally.reports for tally in tallies.values())


async def read_response(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    return head[9:12], await reader.readexactly(size)


def statuses(received: bytes) -> list[int]:
    """The status of each response in what came back."""
    return [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]


@asynccontextmanager
async def place(
    folder: Path,
    campaign: Campaign,
    limits: RequestLimits | None = None,
    connections: ConnectionLimits | None = None,
) -> AsyncIterator[Place]:
    store = SqliteStore(folder / "reports.db")
    app = create_app(store, limits)
    addresses = find_addresses("127.0.0.1", 0)
    async with app.lifespan():
        await store.add_campaign(campaign)
        async with serving(app, addresses, connections):
            yield Place(app, addresses[0][1], campaign)


def at(
    folder: Path,
    campaign: Campaign,
    work: Callable[[Place], Awaitable[None]],
    limits: RequestLimits | None = None,
    connections: ConnectionLimits | None = None,
) -> None:
    """Work with a curator."""

    async def run() -> None:
        async with place(folder, campaign, limits, connections) as there:
            await work(there)

    asyncio.run(run())


def with_app(
    app: ASGIApp, work: Callable[[int], Awaitable[None]], limits: ConnectionLimits | None = None
) -> None:
    """Work with another app on the same server."""

    async def run() -> None:
        addresses = find_addresses("127.0.0.1", 0)
        async with serving(app, addresses, limits):
            await work(addresses[0][1])

    asyncio.run(run())


def report(campaign: Campaign, value: object = 0, report_id: str | None = None) -> bytes:
    plan = campaign.plan_for(None).id
    shown = value if isinstance(value, int) else f'"{value}"'
    return f'{{"id":"{report_id or os.urandom(16).hex()}","plan":"{plan}","report":{shown}}}'.encode()
