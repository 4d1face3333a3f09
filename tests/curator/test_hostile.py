"""Hostile requests on a real socket: tricks with paths, headers and bodies; senders who never finish.

Whatever comes, there is an answer that is not a 5xx, or the connection is closed; and nothing is counted that
was not sent properly.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from curator.test_api import on
from local_server import Place, Server, place, served, statuses
from patience import PATIENCE
from priorveil.curator.settings import ConnectionLimits, RequestLimits
from priorveil.questions.campaign import Campaign
from submissions import submission

TOKEN = {"authorization": "Bearer a-secret-of-the-tests"}  # of `Server`
LAST = b"connection: close\r\n\r\n"


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory, campaign: Campaign) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("hostile")
    with served(str(folder / "a.db"), folder, campaign) as [server]:
        yield server
        server.stop()
        first, *others = server.log.read_text().splitlines()
        assert f"127.0.0.1:{server.port}" in first, "it says where it listens"
        assert others == [], "nothing of what was sent"


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


def upload(campaign: Campaign, *headers: bytes, body: bytes = b"") -> bytes:
    """An upload with these headers, and no length but what they say."""
    line = f"POST /v1/campaigns/{campaign.id}/reports HTTP/1.1\r\nhost: x\r\ncontent-type: application/json"
    return b"\r\n".join([line.encode(), *headers]) + b"\r\n\r\n" + body


def one(campaign: Campaign, value: object = 0) -> bytes:
    return json.dumps(submission(campaign, value)).encode()


def counted(server: Server, campaign: Campaign) -> int:
    where = f"http://127.0.0.1:{server.port}/v1/campaigns/{campaign.id}/counters"
    return int(httpx.get(where, headers=TOKEN, timeout=PATIENCE).json()["reports"]["everyone"])


PATHS = [
    *(
        b"/static/" + trick
        for trick in (b"..%2fapp.py", b"%2e%2e/app.py", b"..%5capp.py", b"%252e%252e%252f")
    ),
    *(
        b"/static/" + trick
        for trick in (b"%00", b"pages.css%00.js", b".", b"..", b"", b"%", b"%zz", b"x" * 9000)
    ),
    *(
        b"/v1/campaigns/" + trick
        for trick in (b"%00" + b"a" * 63, b"a" * 30_000, b"\xff\xfe", b"..", b"%2e%2e")
    ),
    *(
        b"/v1/campaigns/{id}" + trick
        for trick in (b"%2freports", b"/./status", b"/../..", b"%00", b"/status/")
    ),
    b"//v1//campaigns",
    b"/v1/campaigns/{ID}",
    b"/answer/%3Cscript%3Ealert(1)%3C/script%3E",
    b"/healthz;x=1",
    b"/" + b"a/" * 5000,
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ascii(path[:40]))
def test_paths(curator: Server, campaign: Campaign, path: bytes) -> None:
    """Found or not, but never a file of ours, and never a 5xx."""
    told = path.replace(b"{id}", campaign.id.encode()).replace(b"{ID}", campaign.id.upper().encode())
    for method in (b"GET", b"POST"):
        answer = said(curator, method + b" " + told + b" HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n" + LAST)
        [status] = statuses(answer)
        assert status in (400, 401, 404, 405, 415) or told.startswith(b"/answer/"), answer[:200]
        assert b"import annotations" not in answer and b"<script>alert" not in answer


TARGETS = [
    (b"GET http://elsewhere.example/healthz HTTP/1.1", (200, 400, 404)),
    (b"GET healthz HTTP/1.1", (400, 404)),
    (b"OPTIONS * HTTP/1.1", (400, 404, 405)),
    (b"CONNECT elsewhere.example:443 HTTP/1.1", (400, 404, 405)),
    (b"get /healthz HTTP/1.1", (400, 405)),
    (b"GET\t/healthz\tHTTP/1.1", (400,)),
    (b"GET /healthz HTTP/3.0", (400,)),
    (b"GET /healthz HTTP/1.1 HTTP/1.1", (400,)),
    (b"GET /heal\0thz HTTP/1.1", (400, 404)),
    (b"GET /healthz#/../v1/campaigns HTTP/1.1", (200, 400, 404)),
    (b"PRI * HTTP/2.0", (400,)),
    (b"X" * 30_000 + b" / HTTP/1.1", (400, 405)),
    (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", (400,)),
]


@pytest.mark.parametrize(("line", "expected"), TARGETS, ids=lambda told: ascii(told)[:40])
def test_request_lines(curator: Server, line: bytes, expected: tuple[int, ...]) -> None:
    found = statuses(said(curator, line + b"\r\nhost: x\r\n" + LAST))
    assert len(found) == 1 and found[0] in expected


NEXT = b"GET /healthz HTTP/1.1\r\nhost: smuggled\r\n\r\n"
CHUNKED = b"transfer-encoding: chunked"
FRAMES = [
    ([b"content-length: 5", b"content-length: 6"], b"01234" + NEXT),
    ([b"content-length: 5, 5"], b"01234" + NEXT),
    ([b"content-length: 0", CHUNKED], b"0\r\n\r\n" + NEXT),
    ([CHUNKED, b"content-length: 4"], b"0\r\n\r\n" + NEXT),
    ([b"content-length: 3", b"transfer-encoding: xchunked"], b"0\r\n\r\n" + NEXT),
    ([b"transfer-encoding: chunked, identity"], b"0\r\n\r\n" + NEXT),
    ([b"transfer-encoding: gzip, chunked"], b"0\r\n\r\n" + NEXT),
    ([b"transfer-encoding: gzip", CHUNKED], b"0\r\n\r\n" + NEXT),
    ([CHUNKED, CHUNKED], b"0\r\n\r\n" + NEXT),
    ([b"transfer-encoding : chunked"], b"0\r\n\r\n" + NEXT),
    ([b"transfer-encoding: \x0bchunked"], b"0\r\n\r\n" + NEXT),
    ([b"x: y", b" transfer-encoding: chunked", b"content-length: 5"], b"0\r\n\r\n" + NEXT),
    ([b"content-length: -1"], NEXT),
    ([b"content-length: +5"], b"01234" + NEXT),
    ([b"content-length: 0x5"], b"01234" + NEXT),
    ([b"content-length: 1e1"], b"0123456789" + NEXT),
    ([b"content-length: " + b"9" * 40], NEXT),
    ([b"content-length: 5 5"], b"01234" + NEXT),
    ([b"content-length\0: 0"], NEXT),
    ([b"x: a\rcontent-length: 5"], b"01234" + NEXT),
    ([b"x\xff: y", b"content-length: 5"], b"01234" + NEXT),
    ([CHUNKED], b"-1\r\n\r\n" + NEXT),
    ([CHUNKED], b"0x0\r\n\r\n" + NEXT),
    ([CHUNKED], b"ffffffffffffffffff\r\n" + NEXT),
    ([CHUNKED], b"3\r\nabcdef\r\n0\r\n\r\n" + NEXT),
    ([CHUNKED], b"zz\r\n" + NEXT),
]


@pytest.mark.parametrize(("headers", "rest"), FRAMES, ids=lambda told: ascii(told)[:60])
def test_two_readings_of_where_a_body_ends(
    curator: Server, campaign: Campaign, headers: list[bytes], rest: bytes
) -> None:
    """A proxy in front may see one request where we see two: such a request is refused, and is the last one."""
    answer = said(curator, upload(campaign, *headers, body=rest))
    assert len(statuses(answer)) == 1 and 400 <= statuses(answer)[0] < 500, answer[:300]
    assert b'{"status":"ok"}' not in answer


def test_an_upload_within_the_body_of_an_upgrade_is_no_upload(curator: Server, campaign: Campaign) -> None:
    """Whatever protocol is wanted, in one piece or in two. The request after it is answered as the last one."""
    before = counted(curator, campaign)

    def upgrade(wanted: bytes, cut: bool) -> list[int]:
        body = one(campaign)
        inner = upload(campaign, b"content-length: %d" % len(body), body=body)
        asked = [b"connection: Upgrade", b"upgrade: " + wanted, b"content-length: %d" % len(inner)]
        head = upload(campaign, *asked)
        rest = inner + b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + LAST
        return statuses(said(curator, *([head, rest] if cut else [head + rest]), pause=0.2))

    cases = list(itertools.product([b"h2c", b"websocket", b"x"], [False, True]))
    with ThreadPoolExecutor(len(cases)) as pool:
        assert list(pool.map(upgrade, *zip(*cases, strict=True))) == [[400, 200]] * 6
    assert counted(curator, campaign) == before


def test_two_requests_in_one_piece_are_two(curator: Server) -> None:
    """What the tests above would see if a smuggled request were answered."""
    last = NEXT.replace(b"host: smuggled", b"connection: close\r\nhost: x")
    assert said(curator, NEXT + last).count(b'{"status":"ok"}') == 2


def test_two_hosts_and_two_tokens(curator: Server) -> None:
    for more in (b"host: y\r\n", b"authorization: Bearer a\r\nauthorization: Bearer b\r\n"):
        answer = said(curator, b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + more + LAST)
        assert statuses(answer)[0] in (200, 400)
    stolen = b"authorization: Bearer wrong\r\nauthorization: Bearer a-secret-of-the-tests\r\n"
    answer = said(curator, b"GET /v1/campaigns HTTP/1.1\r\nhost: x\r\n" + stolen + LAST)
    assert statuses(answer) == [401], "the first one counts"


@pytest.mark.parametrize(("size", "status"), [(31_000, b"200"), (200_000, b"431"), (500_000, b"431")])
@pytest.mark.parametrize("cut", [0, 100, 20_000])
def test_headers_have_a_limit_however_they_come(curator: Server, size: int, status: bytes, cut: int) -> None:
    """A few long ones or a long one; in one piece or in two."""
    for more in (b"x: " + b"y" * size + b"\r\n", (b"x: " + b"y" * (size // 90) + b"\r\n") * 90):
        whole = b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + more + LAST
        answer = said(curator, whole[:cut], whole[cut:], pause=0.05)
        lost = status == b"431" and not answer  # it is reset if more comes than was read
        assert lost or answer.startswith(b"HTTP/1.1 " + status), answer[:200]


def test_headers_are_at_most_a_hundred(curator: Server) -> None:
    for count, status in ((90, 200), (110, 431), (5000, 431)):
        answer = said(curator, b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + b"x: y\r\n" * count + LAST)
        assert statuses(answer) == [status], answer[:200]


def test_endless_headers_are_cut_off(curator: Server) -> None:
    with socket.create_connection(("127.0.0.1", curator.port), timeout=PATIENCE) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            for _ in range(4000):
                line.sendall(b"x-filler: " + b"y" * 1000 + b"\r\n")
                time.sleep(0.001)


def test_nothing_that_is_sent_comes_back_in_headers(curator: Server) -> None:
    answer = said(
        curator, b"GET /healthz?x=%0d%0aset-cookie:%20a=b HTTP/1.1\r\nhost: a\r\norigin: b\r\n" + LAST
    )
    assert statuses(answer) == [200] and not any(
        name in answer.lower() for name in (b"set-cookie", b"granian")
    )


TRAILED = [
    (b"POST /v1/campaigns/{id}/reports", b"a: b\r\n" * 10_000),
    (b"POST /v1/campaigns/{id}/reports", b"y" * 60_000),
    (b"GET /healthz", b"a: b\r\n" * 10_000),
    (b"GET /healthz", b"y" * 60_000),
]


@pytest.mark.parametrize(("line", "more"), TRAILED, ids=lambda told: ascii(told[:20]))
def test_endless_trailers_are_cut_off(curator: Server, campaign: Campaign, line: bytes, more: bytes) -> None:
    head = line.replace(b"{id}", campaign.id.encode()) + b" HTTP/1.1\r\nhost: x\r\n" + CHUNKED
    with socket.create_connection(("127.0.0.1", curator.port), timeout=PATIENCE) as sender:
        sender.sendall(head + b"\r\n\r\n0\r\nx: y")
        with pytest.raises(ConnectionError):
            for _ in range(400):
                sender.sendall(more)


def test_trailers_do_no_harm(curator: Server, campaign: Campaign) -> None:
    before, body = counted(curator, campaign), one(campaign)
    chunks = b"%x\r\n%s\r\n0\r\nx: y\r\nz: w\r\n\r\n" % (len(body), body)
    last = NEXT.replace(b"host: smuggled", b"connection: close\r\nhost: x")
    assert statuses(said(curator, upload(campaign, CHUNKED, body=chunks) + last)) == [200, 200]
    assert counted(curator, campaign) == before + 1


BODIES = [
    b"[" * 1_000_000,
    b'{"reports":' + b'{"a":' * 100_000,
    b'{"report_id":"\\ud800","form":"\\udfff","report":"\\u0000"}',
    b'{"report_id":1e999,"form":null,"report":' + b"9" * 100_000 + b"}",
    b'{"reports":[' + b"9" * 5000 + b",1e400,-0,NaN]}",
    b'\xef\xbb\xbf{"reports":[]}',
    '{"reports":[]}'.encode("utf-16"),
    b'{"reports":[]}\0',
    b'{"reports":[]}{"reports":[]}',
    b'{"reports":[' + b"{}," * 9_999 + b"{}]}",
    b"\x1f\x8b\x08\x00" + bytes(100),
    b'"' + b"\xc0\x80" * 100 + b'"',
    b"{" + b",".join(b'"%d":0' % i for i in range(50_000)) + b"}",
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: ascii(body[:40]))
def test_bodies(curator: Server, campaign: Campaign, body: bytes) -> None:
    """Long enough to take the ordinary way or short enough for the other: refused, nothing counted."""
    before = counted(curator, campaign)
    for where in (f"campaigns/{campaign.id}/reports", "campaigns"):
        kind = {"content-type": "application/json", **TOKEN}
        url = f"http://127.0.0.1:{curator.port}/v1/{where}"
        answer = httpx.post(url, content=body, headers=kind, timeout=PATIENCE)
        told = answer.json()
        assert answer.status_code in (400, 413, 422) or told["accepted"] == 0, answer.text
    assert counted(curator, campaign) == before


def test_replays_count_once(curator: Server, campaign: Campaign) -> None:
    """The same bytes again and again, in one connection without waiting, and in others."""
    before, body = counted(curator, campaign), one(campaign)
    size = b"content-length: %d" % len(body)
    request, last = (upload(campaign, *more, size, body=body) for more in ([], [b"connection: close"]))
    for _ in range(3):
        assert statuses(said(curator, request * 49 + last)) == [200] * 50
    assert counted(curator, campaign) == before + 1


async def test_ids_that_the_database_cannot_hold(store_url: str, campaign: Campaign) -> None:
    """PostgreSQL has no NUL in its texts."""
    async with on(store_url, campaign) as http:
        for told in ("%00" + "a" * 63, "%00" * 64, "%ff" * 64, "%ed%a0%80" + "a" * 63, "A" * 64):
            for rest in ("", "/status", "/reports", "/counters"):
                assert (await http.get(f"/v1/campaigns/{told}{rest}")).status_code == 404
            assert (await http.post(f"/v1/campaigns/{told}/reports", json={})).status_code == 404


# -- senders who never finish --------------------------------------------------------------------------------

Talk = Callable[..., Awaitable[bytes]]


@asynccontextmanager
async def impatient(folder: Path, campaign: Campaign) -> AsyncIterator[Talk]:
    """A server in this process with short timeouts; and how to talk to it until it hangs up."""
    limits = RequestLimits(seconds=2.0, body=1 << 17)
    async with place(folder, campaign, limits, ConnectionLimits(header_seconds=2.0)) as there:

        async def talk(first: bytes, drop: bytes = b"", pause: float = 0.05) -> bytes:
            reader, writer = await there.connect()
            heard = bytearray()

            async def listen() -> None:
                while part := await reader.read(65536):
                    heard.extend(part)

            listening = asyncio.create_task(listen())
            with suppress(ConnectionError):  # what was heard before is kept
                async with asyncio.timeout(PATIENCE):
                    writer.write(first)
                    while drop and not listening.done():
                        await asyncio.sleep(pause)
                        writer.write(drop)
                        await writer.drain()
                    await listening
            writer.close()
            return bytes(heard)

        yield talk


LONG, ONE = b"content-length: 100000", b"content-length: 4000"  # the second is what a stranger may send
UNKNOWN = b"POST /v1/campaigns/unknown/reports HTTP/1.1\r\nhost: x\r\n"
ENDLESS: list[tuple[Callable[[Campaign], bytes], bytes, list[int]]] = [
    (lambda c: upload(c, ONE, body=b"{"), b" ", [408]),
    (lambda c: upload(c, LONG, body=b"{"), b" ", [413]),
    (lambda c: upload(c, CHUNKED), b"1\r\n \r\n", [408]),
    (lambda c: upload(c, CHUNKED), b"40000\r\n" + b" " * 0x40000 + b"\r\n", [413]),
    (lambda c: upload(c, CHUNKED, body=b"5;"), b"x" * 50, [408]),
    (lambda c: upload(c, CHUNKED, body=b"0\r\n"), b"x: y\r\n", [408]),
    (lambda c: upload(c, ONE, body=b"{"), b"", [408]),
    (lambda c: b"", b"", []),
    (lambda c: b"GET /healthz HTTP/1.1\r\n", b"x: y\r\n", []),
    (lambda c: b"\r\n", b"\r\n", []),
    (lambda c: b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", b"\r\n", [200]),
    (lambda c: b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + LONG + b"\r\n\r\n", b"x", [200]),
    (lambda c: b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + CHUNKED + b"\r\n\r\n", b"1\r\nx\r\n", [200]),
    (lambda c: UNKNOWN + LONG + b"\r\n\r\n", b"x", [404]),
    (lambda c: b"POST /v1/campaigns HTTP/1.1\r\nhost: x\r\n" + LONG + b"\r\n\r\n", b"x", [401]),
]


async def test_who_never_finishes_is_hung_up_on(tmp_path: Path, campaign: Campaign) -> None:
    """Also when the request was answered already, so that nobody waits for the rest of it."""
    async with impatient(tmp_path, campaign) as talk:
        talks = [talk(first(campaign), drop) for first, drop, _ in ENDLESS]
        found = [statuses(heard) for heard in await asyncio.gather(*talks)]
    assert found == [expected for _, _, expected in ENDLESS]


async def test_reports_in_a_body_that_never_ends_are_not_counted(tmp_path: Path, campaign: Campaign) -> None:
    body = one(campaign)
    whole = upload(campaign, b"content-length: %d" % (len(body) + 1), body=body)
    chunked = upload(campaign, CHUNKED, body=b"%x\r\n%s\r\n" % (len(body), body))

    async def received(there: Place, request: bytes) -> list[int]:
        reader, writer = await there.connect()
        writer.write(request)
        content = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return statuses(content)

    async with place(tmp_path, campaign, limits=RequestLimits(seconds=0.5)) as there:
        assert await asyncio.gather(received(there, whole), received(there, chunked)) == [[408], [408]]
        assert await there.stored() == 0
        assert await there.send(there.request(body)) == [(b"200", b'{"accepted":1,"refused":[]}')]
