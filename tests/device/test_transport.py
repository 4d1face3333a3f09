"""The client against a server that is not a curator: endless, compressed, slow or invalid responses."""

from __future__ import annotations

import dataclasses
import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from patience import PATIENCE
from priorveil.cli import run
from priorveil.device.client import AnswerStore, Client, NotSent, ReportRefused, RetryPolicy
from priorveil.device.transport import UnreadableResponse, origin
from priorveil.questions.campaign import Campaign
from refusals import raises

NO_WAIT = RetryPolicy(attempts=4, sleep=lambda seconds: None)
Say = Callable[[socket.socket, bytes], None]
JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@contextmanager
def stranger(say: Say, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that answers each request with the given bytes."""

    def talk(opened: socket.socket) -> None:
        with suppress(OSError), opened if tls is None else tls.wrap_socket(opened, server_side=True) as line:
            line.settimeout(PATIENCE)
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += line.recv(65536)
            say(line, asked)

    def listen() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=listen, daemon=True).start()
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.getsockname()[1]}/v1/campaigns/"
        server.shutdown(socket.SHUT_RDWR)


def honest(campaign: Campaign, then: Say) -> Say:
    """Sends the campaign first, and something else after that."""
    body = campaign.to_json().encode()
    whole = JSON + b"content-length: %d\r\n\r\n" % len(body) + body
    return lambda line, asked: line.sendall(whole) if asked.startswith(b"GET") else then(line, asked)


def endless(sent: list[int]) -> Say:
    """Sends 200 MiB of spaces, far more than any limit."""

    def say(line: socket.socket, asked: bytes) -> None:
        line.sendall(JSON + b"\r\n")
        for _ in range(200):
            line.sendall(b" " * (1 << 20))
            sent.append(1 << 20)

    return say


def test_an_endless_answer_is_not_listened_to(campaign: Campaign) -> None:
    fetched: list[int] = []
    with (
        stranger(endless(fetched)) as base,
        Client(base + campaign.id, state=AnswerStore(), retry=NO_WAIT) as client,
        raises(ReportRefused, cause=UnreadableResponse),
    ):
        client.answer("Private")
    assert sum(fetched) < 100 << 20, "the rest stayed where it was"
    received: list[int] = []
    with (
        stranger(honest(campaign, endless(received))) as base,
        Client(base + campaign.id, state=AnswerStore(), retry=NO_WAIT) as client,
    ):
        with raises(NotSent, cause=UnreadableResponse):
            client.answer("Private")
        assert client.flush() == 1
    assert sum(received) < 30 << 20


def test_nothing_is_unpacked(campaign: Campaign) -> None:
    asked: list[bytes] = []

    def say(line: socket.socket, request: bytes) -> None:
        asked.append(request.lower())
        body = gzip.compress(campaign.to_json().encode())
        line.sendall(JSON + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    with (
        stranger(say) as base,
        Client(base + campaign.id, state=AnswerStore(), retry=NO_WAIT) as client,
        raises(ReportRefused, cause=UnreadableResponse),
    ):
        client.answer("Private")
    assert b"\r\naccept-encoding: identity\r\n" in asked[0]


def certified(folder: Path) -> ssl.SSLContext:
    """A TLS server with a self-signed certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now)
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("x")]), critical=True)
    (folder / "cert").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    pem = serialization.PrivateFormat.PKCS8
    (folder / "key").write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    return context


def test_a_certificate_that_is_not_trusted_is_called_so(
    campaign: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    policy = dataclasses.replace(NO_WAIT, sleep=waits.append)
    monkeypatch.setenv("PRIORVEIL_TOKEN", "a" * 16)
    with stranger(lambda line, asked: None, certified(tmp_path)) as base:
        client = Client(base + campaign.id, None, AnswerStore(), retry=policy)
        with (
            client,
            pytest.raises(NotSent, match=r"certificate is not trusted \(self-signed certificate\): check"),
        ):
            client.answer("Private")
        assert run(["token", "list", "--server", base.partition("/v1")[0]]) == 2
    assert waits == []  # another attempt would meet the same certificate
    said = capsys.readouterr().err
    assert "its certificate is not trusted" in said and "that it runs" not in said


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\na: ", JSON + b"\r\n"], ids=["head", "body"])
@pytest.mark.parametrize("honestly", [False, True], ids=["campaign", "report"])
def test_an_answer_byte_by_byte_ends_with_its_time(
    campaign: Campaign, tmp_path: Path, start: bytes, honestly: bool, secure: bool
) -> None:
    talks: list[bytes] = []

    def drip(line: socket.socket, asked: bytes) -> None:
        talks.append(asked)
        line.sendall(start)
        while True:  # until the client gives up
            line.sendall(b" ")
            time.sleep(0.01)

    quick = dataclasses.replace(NO_WAIT, longest=0.5)
    with (
        stranger(
            honest(campaign, drip) if honestly else drip, certified(tmp_path) if secure else None
        ) as base,
        Client(base + campaign.id, httpx.HTTPTransport(verify=False), AnswerStore(), retry=quick) as client,
        pytest.raises(NotSent),
    ):
        client.answer("Private")
    assert len(talks) <= 1, "the next attempt would take as long"


def test_closing_leaves_the_socket_of_an_abandoned_attempt_alone(campaign: Campaign) -> None:
    """Its number would go to the next socket of the process while a thread still reads from it."""
    closed: list[bool] = []

    class Recorder(httpx.HTTPTransport):
        def close(self) -> None:
            closed.append(True)
            super().close()

    over = threading.Event()

    def silent(line: socket.socket, asked: bytes) -> None:
        over.wait(PATIENCE)

    quick = dataclasses.replace(NO_WAIT, longest=0.2)
    with stranger(silent) as base:
        with (
            Client(base + campaign.id, Recorder(), AnswerStore(), retry=quick) as client,
            pytest.raises(NotSent),
        ):
            client.answer("Private")
        assert not closed
        over.set()
    with (
        stranger(lambda line, asked: None) as base,
        Client(base + campaign.id, Recorder(), AnswerStore()) as client,
    ):
        pass
    assert closed


@pytest.mark.parametrize(
    "told", ["²", "\u0661", "-5", "1_0", "1e9", "9" * 500, "Fri, 31 Dec 2030 23:59:59 GMT"]
)
def test_whatever_the_curator_asks_the_pause_has_an_end(campaign: Campaign, told: str) -> None:
    def busy(request: httpx.Request) -> httpx.Response:
        return httpx.Response(503, headers=[(b"retry-after", told.encode())])

    pauses: list[float] = []
    retry = RetryPolicy(attempts=3, sleep=pauses.append)
    with (
        Client(f"http://x/{campaign.id}", httpx.MockTransport(busy), AnswerStore(), retry=retry) as client,
        pytest.raises(NotSent),
    ):
        client.answer("Private")
    assert len(pauses) == 2 and max(pauses) <= 60


def test_no_cookie_is_kept(campaign: Campaign) -> None:
    asked: list[bytes] = []

    def say(line: socket.socket, request: bytes) -> None:
        asked.append(request.lower())
        body = campaign.to_json().encode() if request.startswith(b"GET") else b'{"accepted":1,"refused":[]}'
        line.sendall(JSON + b"set-cookie: who=me; path=/\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    with stranger(say) as base, Client(base + campaign.id, state=AnswerStore()) as client:
        client.answer("Private")
    assert len(asked) == 2 and not any(b"cookie" in request for request in asked)


def test_a_reason_is_shown_on_one_line(campaign: Campaign) -> None:
    def refusing(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=json.loads(campaign.to_json()))
        return httpx.Response(200, json={"accepted": 0, "refused": [{"reason": "\x1b[2J\n" + "x" * 9999}]})

    with (
        Client(f"http://x/{campaign.id}", httpx.MockTransport(refusing), AnswerStore()) as client,
        pytest.raises(ReportRefused) as told,
    ):
        client.answer("Private")
    assert told.value.reason.isprintable() and len(str(told.value)) < 150


@pytest.mark.parametrize(
    "hosts",
    [
        ("survey.example", "SURVEY.example:443", "survey.example.", "me:secret@survey.example"),
        ("bücher.example", "BÜCHER.example", "xn--bcher-kva.example"),
        ("127.0.0.1", "127.1", "0x7f.0.0.1", "127.0.0.1."),
        ("[::1]", "[0:0:0:0:0:0:0:1]", "[0::1]:443"),
    ],
)
def test_a_curator_is_one_however_its_address_is_spelt(hosts: tuple[str, ...]) -> None:
    assert len({origin(f"https://{host}/v1") for host in hosts}) == 1


def test_curators_at_other_addresses_are_others() -> None:
    others = [
        "https://a.example",
        "http://a.example",
        "https://a.example:8443",
        "https://b.example",
        "https://1.a",
    ]
    assert len({origin(other) for other in others}) == len(others)
