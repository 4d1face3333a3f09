"""What strangers do to a curator while `curator.py --abuse` measures honest uploads.

    python benchmarks/_attacks.py NAME PORT TARGETS

`TARGETS` is a JSON object: the ids of a campaign that takes reports, of a large one and of cold ones, and tokens. An
attack runs until it is ended. It does no more than its pace, so that what it needs of the processors does not count.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

BODY = 4 << 20


def connect(port: int, seconds: float = 30.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=seconds)


def request(line: str, *headers: str, body: bytes = b"", size: int | None = None) -> bytes:
    length = f"content-length: {len(body) if size is None else size}"
    return "\r\n".join([f"{line} HTTP/1.1", "host: x", *headers, length, "", ""]).encode() + body


def paced(rate: float) -> Iterator[None]:
    """Rounds, so many a second."""
    begin = time.monotonic()
    for done in range(sys.maxsize):
        time.sleep(max(0.0, begin + done / rate - time.monotonic()))
        yield


def ask(port: int, rate: float, requests: Callable[[], bytes], connections: int = 1) -> None:
    """One request after the other on connections that take turns; one that ends is opened again."""
    lines = [connect(port) for _ in range(connections)]
    for line in lines:
        line.sendall(requests())
    for number, _ in enumerate(paced(rate)):
        turn = number % connections
        try:
            if not lines[turn].recv(1 << 20):
                raise ConnectionError
            lines[turn].sendall(requests())
        except OSError:
            lines[turn].close()
            lines[turn] = connect(port)
            lines[turn].sendall(requests())


def zeros(port: int, targets: dict[str, Any]) -> None:
    """Batches of two million zeros, 12 MB a second."""
    body = b'{"reports":[' + b"0," * (BODY // 2 - 20) + b"0]}"
    headers = ["content-type: application/json", f"authorization: Bearer {targets['collector']}"]
    sent = request(f"POST /v1/campaigns/{targets['honest']}/reports", *headers, body=body)
    ask(port, 3, lambda: sent)


def unfinished(port: int, targets: dict[str, Any]) -> None:
    """250 bodies of 4 MiB without their last byte, 20 new ones a second."""
    head = f"POST /v1/campaigns/{targets['honest']}/reports"
    sent = request(head, "content-type: application/json", body=b" " * (BODY - 1), size=BODY)
    lines: list[socket.socket] = []
    for _ in paced(20):
        with suppress(OSError):
            lines.append(connect(port, 0.5))
            lines[-1].sendall(sent)
        if len(lines) > 250:
            lines.pop(0).close()


def readers(port: int, targets: dict[str, Any]) -> None:
    """Readers that ask for a large campaign fifty times and take nothing, five new ones a second."""
    sent = request(f"GET /v1/campaigns/{targets['large']}") * 50
    lines = []
    for _ in paced(5):
        lines.append(connect(port))
        lines[-1].sendall(sent)


def tokens(port: int, targets: dict[str, Any]) -> None:
    """Wrong tokens, 500 a second."""
    ask(port, 500, lambda: request("GET /v1/campaigns", f"authorization: Bearer {secrets.token_hex(16)}"))


def cold(port: int, targets: dict[str, Any]) -> None:
    """Campaigns that are not in memory, and ids that no campaign has, 300 a second."""
    ids = targets["cold"]

    def next_request() -> bytes:
        id = secrets.choice(ids) if secrets.randbelow(10) == 0 else secrets.token_hex(32)
        return request(f"GET /v1/campaigns/{id}/status")

    ask(port, 300, next_request, connections=50)


def dashboards(port: int, targets: dict[str, Any]) -> None:
    """Ten dashboards that ask for the estimates of a large campaign again and again, while reports come in."""
    bearer = f"authorization: Bearer {targets['admin']}"
    asked = request(f"GET /v1/campaigns/{targets['large']}/estimates", bearer)
    lines: list[socket.socket] = []
    for _ in paced(0.5):
        for line in lines:  # what it has received by now is thrown away
            line.close()
        form, id = targets["large_form"], secrets.token_hex(16)
        body = json.dumps({"report_id": id, "form": form, "report": 16 * "0"}).encode()
        head = f"POST /v1/campaigns/{targets['large']}/reports"
        lines = [connect(port) for _ in range(11)]
        lines[0].sendall(request(head, "content-type: application/json", body=body))
        for line in lines[1:]:
            line.sendall(asked)


ATTACKS = {each.__name__: each for each in (zeros, unfinished, readers, tokens, cold, dashboards)}

if __name__ == "__main__":
    ATTACKS[sys.argv[1]](int(sys.argv[2]), json.loads(sys.argv[3]))
