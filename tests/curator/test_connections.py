"""Connections to the real server: every request gets its own response, and nobody can hold up the others."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from local_server import Place, place, read_response, report, responses_with, statuses, with_app
from patience import PATIENCE, until
from priorveil.curator.responses import EXPORTS, PARQUET
from priorveil.curator.settings import ConnectionLimits, RequestLimits
from priorveil.curator.tokens import Token
from priorveil.device.wire import JSON, PACKED, packed_body
from priorveil.questions.campaign import Campaign

OK = (b"200", b'{"accepted":1,"refused":[]}')
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


class HeldCommits:
    """Commits that wait until they are released; `started` is set when the first one waits."""

    def __init__(self, there: Place) -> None:
        self.started, self.release = asyncio.Event(), asyncio.Event()
        self._commit = there.app.service.store.commit
        there.app.service.store.commit = self._held  # type: ignore[method-assign]

    async def _held(self, groups: Any) -> Any:
        self.started.set()
        await self.release.wait()
        return await self._commit(groups)

    async def release_after(self, seconds: float) -> None:
        await asyncio.wait_for(self.started.wait(), PATIENCE)
        asyncio.get_running_loop().call_later(seconds, self.release.set)


# -- uploads, whole, chunked and in pieces -------------------------------------------------------------------


def bodies(campaign: Campaign) -> list[tuple[bytes, str, int]]:
    form, told = campaign.form_for(None).id, "ab" * 16
    good, far, wrong = (report(campaign, v, told) for v in (1, 10**6, "x"))
    return [
        (good, JSON, 200),
        (far, JSON, 200),
        (wrong, JSON, 200),
        (report(campaign, 0, "zz" * 16), JSON, 200),
        (good.replace(form.encode(), b"0" * 64), JSON, 200),
        (b'{"reports":[%s,%s,%s]}' % (good, far, wrong), JSON, 200),
        (b'{"reports":[]}', JSON, 200),
        (b"", JSON, 400),
        (b"nonsense", JSON, 400),
        (b"\xff\xfe", JSON, 400),
        (good, "text/plain", 415),
        (good, "Application/JSON; charset=utf-8", 200),
        (packed_body(form, bytes(32), bytes(16)), PACKED, 200),
        (packed_body(form, bytes(32), bytes(8)), PACKED, 400),
        (packed_body("00" * 32, bytes(16), bytes(8)), PACKED, 200),
        (b"PVR1", PACKED, 400),
    ]


async def test_whole_and_chunked_bodies_get_the_same_responses(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign) as there:
        for body, kind, status in bodies(campaign):
            (whole,) = await there.send(there.request(body, kind=kind))
            (chunked,) = await there.send(there.chunked(body, kind))
            assert whole == chunked and whole[0] == b"%d" % status
        await there.app.service.life.close(there.app.service.campaigns.loaded.in_use[campaign.id])
        body = report(campaign)
        whole, chunked = await there.send(there.request(body)), await there.send(there.chunked(body))
        assert whole == chunked and b'"closed"' in whole[0][1] and b'"accepted":0' in whole[0][1]


async def test_an_upload_may_be_cut_anywhere(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign) as there:
        whole = there.request(report(campaign))
        reader, writer = await there.connect()
        for cut in range(1, len(whole)):
            writer.write(whole[:cut])
            await asyncio.sleep(0.001)
            writer.write(whole[cut:])
            assert await asyncio.wait_for(read_response(reader), PATIENCE) == OK
        writer.close()
        assert await there.stored() == 1


async def test_odd_uploads_are_taken_or_refused(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign) as there:
        body = report(campaign)
        for more in (b"connection: close\r\n", b"upgrade: x\r\n", b"x: 1\r\nx: 2\r\n"):
            assert await there.send(there.request(body, more)) == [OK]
        reader, writer = await there.connect()
        writer.write(there.request(body, b"expect: 100-continue\r\n"))
        received = await asyncio.wait_for(reader.readuntil(b'"refused":[]}'), PATIENCE)
        assert statuses(received)[-1] == 200
        writer.close()
        other = there.request(body).replace(campaign.id.encode(), b"0" * 64)
        assert (await there.send(other))[0][0] == b"404"
        large = body[:-1] + b" " * 100_000 + b"}"
        assert await there.send(there.request(large)) == [OK]
        assert await there.stored() == 1


async def test_pipelined_requests_are_answered_in_order(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign) as there:
        upload = there.request(report(campaign))
        found = await there.send(upload + HEALTH + upload + upload + HEALTH, responses=5)
        assert [status for status, _ in found] == [b"200"] * 5
        assert [b"accepted" in content for _, content in found] == [True, False, True, True, False]


async def test_an_upload_is_counted_though_its_sender_leaves(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign) as there:
        commits = HeldCommits(there)
        _, writer = await there.connect()
        writer.write(there.request(report(campaign)))
        await asyncio.wait_for(commits.started.wait(), PATIENCE)
        writer.transport.abort()
        commits.release.set()
        assert await there.send(there.request(report(campaign))) == [OK]
        assert await there.stored() == 2


async def test_an_unexpected_error_is_answered_and_not_shown(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("unforeseen")

    async with place(tmp_path, campaign) as there:
        service, unknown = there.app.service, f"GET /v1/campaigns/{'0' * 64} HTTP/1.1\r\nhost: x\r\n\r\n"
        upload = there.request(report(campaign))
        for part, name, request in (
            (service, "store_upload", upload),
            (service.campaigns, "find", unknown.encode()),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(part, name, fail)
                ((status, content),) = await there.send(request)
                assert status == b"500" and b"unforeseen" not in content
        assert await there.send(there.request(report(campaign))) == [OK]


# -- the end of a connection ---------------------------------------------------------------------------------


async def test_a_sender_who_half_closes_may_miss_the_response_but_is_counted_once(
    tmp_path: Path, campaign: Campaign
) -> None:
    """The server takes the end of what is sent for the end of the connection. Sending again is harmless."""
    async with place(tmp_path, campaign) as there:
        commits, loop = HeldCommits(there), asyncio.get_running_loop()
        for count, form in enumerate((there.request, there.chunked), start=1):
            request = form(report(campaign))
            for rest in (b"", request[:-5], request[:20]):  # a further request that is never finished
                reader, writer = await there.connect()
                commits.release.clear()
                writer.write(request + rest)
                writer.write_eof()
                loop.call_later(0.1, commits.release.set)  # after the end of what was sent, as a rule
                assert set(statuses(await asyncio.wait_for(reader.read(), PATIENCE))[:1]) <= {200}
                writer.close()
            assert await there.send(request) == [OK]
            assert await there.stored() == count


CHUNKED = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
NONSENSE = [
    b"XX\r\n\r\n",
    b"GET / HTTP/1.1\r\nx y\r\n\r\n",
    CHUNKED + b"zz\r\n",
    CHUNKED + b"1\r\n \r\nzz\r\n",
    CHUNKED + b"0\r\nx y\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n\r\n",
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=lambda told: ascii(told)[:40])
async def test_nonsense_after_uploads_does_not_take_their_responses(
    tmp_path: Path, campaign: Campaign, nonsense: bytes
) -> None:
    """A sender must not hear that a report was refused which is counted."""
    async with place(tmp_path, campaign) as there:
        for uploads in (1, 2, 3):
            for request in (there.request(report(campaign)), there.chunked(report(campaign))):
                reader, writer = await there.connect()
                writer.write(request * uploads + nonsense)
                writer.write_eof()
                found = statuses(await asyncio.wait_for(reader.read(), PATIENCE))
                assert found[:uploads] == [200] * uploads and len(found) <= uploads + 1
                assert all(status >= 400 for status in found[uploads:])
                writer.close()


async def test_a_request_that_breaks_after_its_response_is_not_answered_again(
    tmp_path: Path, campaign: Campaign
) -> None:
    async with place(tmp_path, campaign) as there:
        reader, writer = await there.connect()
        writer.write(CHUNKED.replace(b"POST /", b"GET /healthz"))
        assert (await asyncio.wait_for(read_response(reader), PATIENCE))[0] == b"200"
        writer.write(b"zz\r\n")
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        writer.close()


UPGRADE = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"


async def test_an_upgrade_is_ignored(tmp_path: Path, campaign: Campaign) -> None:
    """The request is served as it is, wherever it is cut, and the connection goes on."""
    async with place(tmp_path, campaign) as there:
        body = report(campaign)
        whole = there.request(body, UPGRADE)
        chunked = there.chunked(body).replace(b"\r\n", b"\r\n" + UPGRADE, 1)
        for request in (whole, chunked):
            end = request.index(b"\r\n\r\n")
            for cut in (0, 10, end, end + 3, end + 4, end + 5, len(request) - 1, len(request)):
                pieces = [piece for piece in (request[:cut], request[cut:] + HEALTH) if piece]
                assert await there.send(*pieces, responses=2) == [OK, (b"200", b'{"status":"ok"}')]
        assert await there.stored() == 1


async def test_upgrades_in_a_row_are_answered_once_each(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign) as there:
        plain, asking = there.request(report(campaign)), there.request(report(campaign), UPGRADE)
        last = there.request(report(campaign), UPGRADE.replace(b"Upgrade,", b"Upgrade, close,"))
        for order in ([plain, asking, asking, last], [asking, plain, last], [last, plain]):
            reader, writer = await there.connect()
            writer.write(b"".join(order))
            received = await asyncio.wait_for(reader.read(), PATIENCE)
            assert statuses(received) == [200] * (order.index(last) + 1)
            writer.close()
        assert await there.stored() == 3


async def test_trailers_are_not_headers() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        content = b"%d" % len(scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": content})

    async with with_app(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(CHUNKED + b"1\r\nx\r\n0\r\nauthorization: Bearer x\r\n")
            await asyncio.sleep(0.05)
            writer.write(b"host: y\r\n\r\n")
            assert await asyncio.wait_for(read_response(reader), PATIENCE) == (b"200", b"2")
        writer.close()


# -- slow senders --------------------------------------------------------------------------------------------


async def test_slow_headers_are_cut_off(tmp_path: Path, campaign: Campaign) -> None:
    """The clock starts with the connection and with each request."""

    async def received(there: Place, first: bytes) -> list[int]:
        reader, writer = await there.connect()
        writer.write(first)
        content = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return statuses(content)

    async with place(tmp_path, campaign, connections=ConnectionLimits(header_seconds=2.0)) as there:
        silent = (b"", b"GET / HTT", b"\r\n")
        answered_once = (HEALTH, HEALTH + b"\r\n", HEALTH + b"GET / H")
        responses = await asyncio.gather(*(received(there, first) for first in silent + answered_once))
        assert responses == [[]] * 3 + [[200]] * 3


async def test_each_request_has_its_own_time(tmp_path: Path, campaign: Campaign) -> None:
    """A steady sender whose pieces end within headers is not slow; nor is one who waits for us."""
    async with place(tmp_path, campaign, connections=ConnectionLimits(header_seconds=2.0)) as there:
        reader, writer = await there.connect()
        request = there.request(report(campaign))
        writer.write(request[:20])
        for _ in range(10):
            await asyncio.sleep(0.3)
            writer.write(request[20:] + request[:20])
            assert await asyncio.wait_for(read_response(reader), PATIENCE) == OK
        writer.close()
        commits = HeldCommits(there)
        sent = asyncio.create_task(there.send(request + request, responses=2))
        await commits.release_after(2.5)
        assert await sent == [OK, OK]


async def test_a_slow_body_is_cut_off(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign, limits=RequestLimits(seconds=0.3)) as there:
        reader, writer = await there.connect()
        writer.write(there.request(report(campaign))[:-5])
        received = await asyncio.wait_for(reader.read(), PATIENCE)
        assert received.startswith(b"HTTP/1.1 408 ") and b"connection: close" in received
        writer.close()
        assert await there.stored() == 0


async def test_connections_beyond_the_limit_wait_for_others_to_end(
    tmp_path: Path, campaign: Campaign
) -> None:
    async with place(
        tmp_path, campaign, connections=ConnectionLimits(header_seconds=1.0, connections=4)
    ) as there:
        silent = [await there.connect() for _ in range(6)]
        ends = [asyncio.create_task(reader.read()) for reader, _ in silent]
        response = asyncio.create_task(there.send(HEALTH))
        first, _ = await asyncio.wait([response, *ends], return_when=asyncio.FIRST_COMPLETED)
        assert response not in first, "it is answered when silent ones have timed out"
        assert (await response)[0][0] == b"200"
        for _, writer in silent:
            writer.close()
        await asyncio.wait(ends)


# -- slow readers --------------------------------------------------------------------------------------------


async def stalled_reader(port: int, request: bytes) -> socket.socket:
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    line.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(line, ("127.0.0.1", port))
    await loop.sock_sendall(line, request)
    return line


class LongExport:
    """An app's endless export in pieces of so many bytes, and how far it got."""

    def __init__(self, there: Place, monkeypatch: pytest.MonkeyPatch, size: int = 1 << 20) -> None:
        self.pieces, self.size, self.ended = 0, size, asyncio.Event()
        monkeypatch.setitem(EXPORTS, "parquet", (PARQUET, lambda pages: self._pieces()))
        monkeypatch.setattr(
            there.app.service, "find_token", lambda secret: Token.of(secret, "reader", "admin")
        )
        path = f"/v1/campaigns/{there.campaign.id}/reports"
        self.request = f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: bearer x\r\n\r\n".encode()

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            for self.pieces in itertools.count(1):
                await asyncio.sleep(0)  # as a store does
                yield bytes(self.size)
        finally:
            self.ended.set()


async def test_a_reader_that_stops_is_given_up_on_and_fills_no_memory(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place(tmp_path, campaign, connections=ConnectionLimits(send_seconds=0.4)) as there:
        export = LongExport(there, monkeypatch)
        with await stalled_reader(there.port, export.request):
            await asyncio.wait_for(export.ended.wait(), PATIENCE)
            assert export.pieces < 30
        assert (await there.send(HEALTH))[0][0] == b"200"


def open_peers() -> set[object]:
    """The other ends of all connections of this process, which the server runs in."""
    peers = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as connection:
                    peers.add(connection.getpeername())
    return peers


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux closes such connections")
async def test_the_connection_of_a_reader_that_takes_nothing_is_closed(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server lets go of its socket, however long the reader keeps the other end open."""
    async with place(
        tmp_path, campaign, connections=ConnectionLimits(send_seconds=1.0, stop_seconds=1.0)
    ) as there:
        export = LongExport(there, monkeypatch)
        with await stalled_reader(there.port, export.request) as line:
            await asyncio.wait_for(export.ended.wait(), PATIENCE)
            await until(lambda: line.getsockname() not in open_peers(), "the connection is closed")


async def test_an_export_ends_when_its_reader_leaves(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place(tmp_path, campaign, connections=ConnectionLimits(send_seconds=1.0)) as there:
        export = LongExport(there, monkeypatch)
        with await stalled_reader(there.port, export.request) as line:
            await asyncio.get_running_loop().sock_recv(line, 100)
        await asyncio.wait_for(export.ended.wait(), PATIENCE)  # it would go on for ever


async def test_a_slow_reader_is_not_cut_off(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is for one piece, not for all: each read makes room for several pieces."""

    limits = ConnectionLimits(send_seconds=2.0, stop_seconds=1)
    async with place(tmp_path, campaign, connections=limits) as there:
        export = LongExport(there, monkeypatch, size=1 << 14)
        loop = asyncio.get_running_loop()
        with await stalled_reader(there.port, export.request) as line:
            end = loop.time() + 1.5 * limits.send_seconds
            while loop.time() < end:
                assert await loop.sock_recv(line, 1 << 19)
                await asyncio.sleep(0.02)
            assert not export.ended.is_set()


async def test_unread_responses_fill_no_memory(tmp_path: Path, campaign: Campaign) -> None:
    """A pipeline of short requests with long responses stops when the reader does."""
    async with place(tmp_path, campaign, connections=ConnectionLimits(stop_seconds=1)) as there:
        many = b'{"reports":[' + b",".join([b"0"] * 10_000) + b"]}"
        line = await stalled_reader(there.port, there.request(many))
        with line, pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                for _ in range(1000):
                    await asyncio.get_running_loop().sock_sendall(line, there.request(many))
        assert responses_with(there.app, 200) < 50


# -- the end of the server -----------------------------------------------------------------------------------


async def test_a_stop_finishes_what_was_accepted(tmp_path: Path, campaign: Campaign) -> None:
    async with place(tmp_path, campaign) as there:
        commits = HeldCommits(there)
        reader, writer = await there.connect()
        writer.write(there.request(report(campaign)))
        await commits.release_after(0.3)  # when the stop has begun
    received = await asyncio.wait_for(reader.read(), PATIENCE)
    assert statuses(received) == [200] and b"connection: close" in received
    writer.close()


async def test_a_stop_does_not_wait_for_a_stalled_reader(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = ConnectionLimits(send_seconds=1e6, stop_seconds=0.5)
    async with asyncio.timeout(PATIENCE):
        async with place(tmp_path, campaign, connections=never) as there:
            export = LongExport(there, monkeypatch)
            line = await stalled_reader(there.port, export.request)
            while not export.pieces:
                await asyncio.sleep(0.01)
        line.close()  # not before: without a reader there might be no export
