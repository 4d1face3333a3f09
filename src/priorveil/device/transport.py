"""HTTP requests of the client, with limits on the size and time of a response.

The server is not trusted. Nothing beyond the allowed bytes is read, nothing is decompressed, no cookie is kept, and a
response that comes byte by byte is cut off when its time is over.
"""

from __future__ import annotations

import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address

from priorveil.errors import InvalidInput, PriorveilError, needs_extra, short_repr
from priorveil.plans.structure import CONTENT_ID

with needs_extra("client"):
    import httpx

Transport = httpx.BaseTransport

_RETRY_STATUSES = {408, 425, 429, 500, 502, 503, 504, 507}
_LONGEST_PAUSE = 60.0
_SOCKET_TIMEOUT = 30.0
_ANSWER_PAGE = re.compile(rf"(?P<curator>.+)/answer/(?P<id>{CONTENT_ID})(?:[/?#].*)?")
_CODE = re.compile(r"#(?:.*&)?code=(?P<code>[^&]*)")
_HEADERS = {
    "user-agent": "priorveil",
    "accept-encoding": "identity",
    "connection": "close",  # a client sends so few requests that a connection is not worth keeping
}


class NotSent(PriorveilError):
    """The curator could not be reached; the message says what is kept, and `flush` sends it later."""


class UnreadableResponse(PriorveilError):
    """A response that cannot be read: too long, compressed, or not what a curator sends."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to try. Pauses double from `pause`, each shortened at random.

    One attempt takes at most `longest` seconds, from the connection to the last byte.
    """

    attempts: int = 5
    pause: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    longest: float = 120.0

    def wait(self, attempt: int, retry_after: str | None) -> None:
        """Wait before the next attempt, at least as long as the curator asks for."""
        pause = min(self.pause * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
        requested_pause = float(retry_after) if retry_after and re.fullmatch("[0-9]+", retry_after) else 0.0
        self.sleep(min(max(pause, requested_pause * random.uniform(1.0, 1.5)), _LONGEST_PAUSE))


@dataclass(frozen=True)
class HttpResponse:
    """A response. The body is read only where the status is 200."""

    status: int
    kind: str
    retry_after: str | None
    body: bytes


class HttpClient:
    """Sends requests, each over its own connection, and reads the responses."""

    def __init__(self, transport: Transport | None, retry: RetryPolicy) -> None:
        self._retry = retry
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._http = httpx.Client(
            transport=transport, timeout=_SOCKET_TIMEOUT, headers=_HEADERS, cookies=no_cookies
        )
        self._abandoned: list[threading.Thread] = []

    def close(self) -> None:
        """Close connections, unless an abandoned attempt still reads from one: it closes its own when it ends.

        A thread that reads from a closed socket may read from whichever socket gets the same number next.
        """
        if not any(attempt.is_alive() for attempt in self._abandoned):
            self._http.close()

    def request(self, url: str, limit: int, document: object = None) -> HttpResponse:
        """The final answer to a request, after at most as many attempts as the policy allows.

        A document is posted; without one the address is fetched. Raises `NotSent` where nobody answers, or not in
        time, and `UnreadableResponse` where the answer is longer than `limit` bytes, or compressed.
        """
        why, advice = "no attempt was made", "try again later"
        for attempt in range(self._retry.attempts):
            retry_after = None
            try:
                answer = self._once(url, limit, document)
                if answer.status not in _RETRY_STATUSES:
                    return answer
                why, retry_after = f"it answered {answer.status}", answer.retry_after
                advice = "try again later"
            except httpx.RequestError as error:
                if problem := certificate_problem(error):
                    raise NotSent(f"the curator at {url} could not be reached: {problem}") from error
                why, advice = type(error).__name__, "check the address, or try again later"
            if attempt + 1 < self._retry.attempts:
                self._retry.wait(attempt, retry_after)
        raise NotSent(f"the curator at {url} could not be reached ({why}): {advice}")

    def _once(self, url: str, limit: int, document: object) -> HttpResponse:
        """One attempt, in a thread that nobody waits for once its time is over.

        Socket timeouts are not enough, because every received byte restarts them.
        """
        longest, attempt = min(self._retry.longest, threading.TIMEOUT_MAX), Future[HttpResponse]()

        def run() -> None:
            try:
                attempt.set_result(self._exchange(url, limit, document, time.monotonic() + longest))
            except BaseException as error:
                attempt.set_exception(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            return attempt.result(longest)
        except TimeoutError:  # another attempt would take as long
            self._abandoned.append(thread)
            problem = f"the curator at {url} did not answer within {longest:g} seconds"
            raise NotSent(f"{problem}: try again later") from None

    def _exchange(self, url: str, limit: int, document: object, deadline: float) -> HttpResponse:
        method, body = "GET" if document is None else "POST", bytearray()
        with self._http.stream(method, url, json=document) as response:
            status, headers = response.status_code, response.headers
            packing = headers.get("content-encoding", "").strip().lower()
            if status == 200 and packing not in ("", "identity"):  # it could unpack to more than the limit
                problem = f"it is compressed ({short_repr(packing)})"
                raise UnreadableResponse(f"{problem}, although the request did not allow compression")
            for part in response.iter_bytes() if status == 200 else ():
                body += part
                if len(body) > limit:
                    raise UnreadableResponse(f"it is longer than {limit} bytes")
                if time.monotonic() > deadline:  # nobody waits any more
                    raise TimeoutError
        return HttpResponse(status, headers.get("content-type", ""), headers.get("retry-after"), bytes(body))


def certificate_problem(error: BaseException | None) -> str | None:
    """What to do if a request failed because the certificate of the server is not trusted; None if it did not."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    advice = (
        "check the address; if an authority of your own signed it, name its certificates in SSL_CERT_FILE"
    )
    return f"its certificate is not trusted ({error.verify_message.rstrip('.')}): {advice}"


def parse_campaign_url(url: str) -> tuple[str, str]:
    """A campaign's address without a slash at its end, and the id in it.

    The address of the page that people answer on stands for its campaign.

    >>> parse_campaign_url(f"https://survey.example/answer/{'ab' * 32}/")[0][:40]
    'https://survey.example/v1/campaigns/abab'
    """
    plain = url.partition("#")[0].rstrip("/") if isinstance(url, str) else ""
    if page := _ANSWER_PAGE.fullmatch(plain):
        plain = f"{page['curator']}/v1/campaigns/{page['id']}"
    campaign = plain.rpartition("/")[2]
    try:
        address = httpx.URL(plain)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host or not re.fullmatch(CONTENT_ID, campaign):
        advice = "give a campaign's address, https://.../v1/campaigns/ and its id of 64 hexadecimal digits"
        shown = url.partition("#")[0] if isinstance(url, str) else url  # without the code of an invitation
        raise InvalidInput("campaign_url", shown, advice)
    return plain, campaign


def origin(url: str) -> tuple[str, str, int | None]:
    """The scheme, host and port of an address, the same for every spelling of them: they are one curator.

    >>> origin("https://me@Survey.example:443/v1") == origin("https://survey.example/v1")
    True
    """
    address = httpx.URL(url)
    host = address.host.rstrip(".")
    with suppress(OSError):
        host = socket.inet_ntoa(socket.inet_aton(host))  # also of 127.1
    with suppress(ValueError):
        host = ip_address(host).compressed
    return address.scheme, host, address.port


def code_of_link(url: str) -> str | None:
    """The code of an invitation in its link, which stands after `#` and is never part of a request's address.

    >>> code_of_link(f"https://survey.example/answer/{'ab' * 32}#code=00ff")
    '00ff'
    """
    match = _CODE.search(url) if isinstance(url, str) else None
    return match["code"] if match else None
