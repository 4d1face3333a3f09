"""Curators for tests: the app without a socket, on a socket of this process, and in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
from msgspec.structs import replace
from starlette.types import ASGIApp

from patience import PATIENCE, run_apart, wait_until
from priorveil.curator import create_app
from priorveil.curator.app import Curator
from priorveil.curator.server import find_address, serving
from priorveil.curator.settings import (
    DEFAULTS,
    ConnectionLimits,
    DatabaseLimits,
    RequestLimits,
    Settings,
    SurveyLimits,
)
from priorveil.curator.sqlite import SqliteStore
from priorveil.curator.store import Store, open_store
from priorveil.curator.tokens import Token
from priorveil.device.wire import JSON
from priorveil.questions.campaign import Campaign
from reserved_ports import free_port

TOKEN = "a curator's token"
COLLECTOR = "authorization: Bearer a-gateway-of-the-tests"
SECRET = "a-secret-of-the-tests"  # of `Server`
HEADER = {"authorization": f"Bearer {SECRET}"}

# A design that has the time it needs, however busy the machine is.
PATIENT_SURVEYS = SurveyLimits(seconds=PATIENCE, nice=0)
PATIENT = Settings(surveys=PATIENT_SURVEYS)

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
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n{COLLECTOR}\r\n"
        return head.encode() + more

    async def connect(self) -> Connection:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def send(self, *pieces: bytes, responses: int = 1) -> list[tuple[bytes, bytes]]:
        """Status and content of each response on one connection."""
        reader, writer = await self.connect()
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)
        found = [await asyncio.wait_for(read_response(reader), PATIENCE) for _ in range(responses)]
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


def responses_with(app: Curator, status: int) -> int:
    """How many responses with a status the curator has counted."""
    samples = [sample for metric in app.metrics.responses.collect() for sample in metric.samples]
    return int(sum(sample.value for sample in samples if sample.labels["status"] == str(status)))


def in_store(url: str, work: Callable[[Store], Awaitable[object]]) -> None:
    """Do something while a store is open."""

    async def run() -> None:
        async with open_store(url) as store:
            await work(store)

    run_apart(run())


@asynccontextmanager
async def place(
    folder: Path,
    campaign: Campaign,
    limits: RequestLimits = DEFAULTS.requests,
    connections: ConnectionLimits = DEFAULTS.connections,
) -> AsyncIterator[Place]:
    store = SqliteStore(folder / "reports.db")
    app = create_app(store, Settings(requests=limits, connections=connections))
    address = find_address("127.0.0.1", free_port())
    async with app.lifespan():
        await store.add_campaign(campaign)
        await store.add_token(Token.of("a-gateway-of-the-tests", "gateway", "collect"))
        await app.service.load_tokens()
        async with serving(app, address, connections):
            yield Place(app, address[1], campaign)


@asynccontextmanager
async def with_app(app: ASGIApp, limits: ConnectionLimits = DEFAULTS.connections) -> AsyncIterator[int]:
    """The port of another app on the same server."""
    address = find_address("127.0.0.1", free_port())
    async with serving(app, address, limits):
        yield address[1]


def report(campaign: Campaign, value: object = 0, report_id: str | None = None) -> bytes:
    """The body of one submission, with a number or some other text in the place of its words."""
    form = campaign.form_for(None).id
    words = value.to_bytes(8, "little").hex() if isinstance(value, int) else value
    return (
        f'{{"report_id":"{report_id or os.urandom(16).hex()}","form":"{form}","report":"{words}"}}'.encode()
    )


@asynccontextmanager
async def running(
    store: Store,
    *campaigns: Campaign,
    limits: RequestLimits = DEFAULTS.requests,
    database: DatabaseLimits = DEFAULTS.database,
    settings: Settings = PATIENT,
) -> AsyncIterator[httpx.AsyncClient]:
    """The app on a store with these campaigns, and a client that has the token."""
    app = create_app(store, replace(settings, requests=limits, database=database))
    assert isinstance(app, Curator)
    async with app.lifespan():
        await store.add_token(Token.of(TOKEN, "tests", "admin"))
        for campaign in campaigns:
            await store.add_campaign(campaign)
        await app.service.refresh()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        header = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://curator", headers=header) as http:
            http.app = app  # type: ignore[attr-defined]
            yield http


class Server:
    """`priorveil serve` in a process of its own, on one port, for as often as it is killed."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.port = url, free_port()
        self.token = folder / "token"
        self.token.write_text(SECRET)
        self.log = folder / f"log-{self.port}"
        self.start()

    def start(self) -> None:
        options = ["--store", self.url, "--port", str(self.port), "--token-file", str(self.token)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "priorveil", "serve", *options],
                stdout=log,
                stderr=log,
                env={"PRIORVEIL_SURVEYS_NICE": "0", **os.environ},
            )

        def ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            try:
                return http.get(f"http://127.0.0.1:{self.port}/readyz").status_code == 200
            except httpx.TransportError:
                return False

        with httpx.Client(verify=False, timeout=PATIENCE) as http:
            wait_until(ready, "the server is ready")

    def halt(self) -> None:
        """Stop the process as it is."""
        self.process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        assert status in (0, -signal.SIGTERM), f"status {status}\n{self.log.read_text()}"


@contextmanager
def served(url: str, folder: Path, *campaigns: Campaign, count: int = 1) -> Iterator[list[Server]]:
    servers = [Server(url, folder) for _ in range(count)]
    try:
        base = f"http://127.0.0.1:{servers[0].port}"
        for campaign in campaigns:
            made = httpx.post(
                f"{base}/v1/campaigns",
                content=campaign.to_json(),
                headers=HEADER,
                verify=False,
                timeout=PATIENCE,
            )
            assert made.status_code == 201, made.text
        yield servers
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()
