"""The HTTP API. The app is a value: `create_app(store)`; a server such as uvicorn runs it.

The route that takes reports is written against ASGI itself, because it is the busy one; the others are
Starlette's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from priorveil.collect.campaign import Campaign
from priorveil.collect.wire import JSON, PACKED
from priorveil.curator import pages
from priorveil.curator.exports import PARQUET, parquet
from priorveil.curator.metrics import exposition
from priorveil.curator.openapi import document, methods_at
from priorveil.curator.problems import HEADERS, Refused, as_problem, json_answer, problem
from priorveil.curator.readings import METHODS, readings
from priorveil.curator.service import Live, Service
from priorveil.curator.store import Damaged, Store
from priorveil.curator.uploads import Receipt, Upload, read_json, read_packed
from priorveil.curator.writer import CAPACITY, Writer
from priorveil.errors import MissingExtra, PriorveilError
from priorveil.plans import Plan

_LAST = {"connection": "close"}
_ANYWHERE = {"access-control-allow-origin": "*"}  # public, without credentials: any page may ask and answer
_FOR_EVER = {"cache-control": "public, max-age=31536000, immutable", "vary": "origin"}
_REPORT_HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in {"content-type": "application/json", **HEADERS, **_ANYWHERE}.items()
)
_READERS = {JSON.encode(): read_json, PACKED.encode(): read_packed}


@dataclass(frozen=True)
class Limits:
    """What may be asked: bytes and seconds of a body, bytes of a campaign, bytes waiting, estimates at once."""

    body: int = 4 << 20
    campaign: int = 64 << 20
    seconds: float = 10.0
    waiting: int = CAPACITY
    estimates: int = 2


def create_app(store: Store, limits: Limits | None = None) -> ASGIApp:
    """The curator as an ASGI app; it opens the store when it starts and closes it when it ends."""
    bounds = limits or Limits()
    service = Service(store, Writer(store, bounds.waiting))
    return Curator(service, bounds)


Endpoint = Callable[[Request], Awaitable[Response]]
Headers = tuple[tuple[bytes, bytes], ...]
Reply = tuple[int, Headers, bytes]  # status, headers other than the length, and content


class Curator:
    """The app: uploads of reports are answered here, everything else by the routes."""

    def __init__(self, service: Service, limits: Limits) -> None:
        self.service = service
        self.limits = limits
        self._estimating = asyncio.Semaphore(limits.estimates)
        self.routes = self._routes()
        self._others = Starlette(
            routes=self.routes,
            lifespan=self._served,
            exception_handlers={
                HTTPException: _http_problem,
                PriorveilError: _known_problem,
                Exception: _unknown,
            },
        )
        self._others.router.redirect_slashes = False  # a redirect would repeat the host that was sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            parts = scope["path"].split("/")
            if (
                len(parts) == 5
                and parts[4] == "reports"
                and parts[1:3] == ["v1", "campaigns"]
                and scope["method"] == "POST"
            ):
                return await self._take(parts[3], scope, receive, send)
            return await self._others(scope, receive, self._counting(send))
        await self._others(scope, receive, send)

    def _counting(self, send: Send) -> Send:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.service.statuses[message["status"]] += 1
            await send(message)

        return counted

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """From opening the store to closing it."""
        await self.service.start()
        try:
            yield
        finally:
            await self.service.stop()

    @asynccontextmanager
    async def _served(self, _: Starlette) -> AsyncIterator[None]:
        """The lifespan under a server: one that is ended by force (ctrl-C twice) cancels it, which is no failure."""
        with suppress(asyncio.CancelledError):
            async with self.lifespan():
                yield

    def _routes(self) -> list[BaseRoute]:
        curator = self._curator_only
        return [
            Route("/v1/campaigns", curator(self.create), methods=["POST"]),
            Route("/v1/campaigns", curator(self.index), methods=["GET"]),
            Route("/v1/campaigns/{id}", self.campaign, methods=["GET"]),
            Route("/v1/campaigns/{id}/status", self.status, methods=["GET"]),
            Route("/v1/campaigns/{id}/reports", _preflight, methods=["OPTIONS"]),
            Route("/v1/campaigns/{id}/reports", curator(self.export), methods=["GET"]),
            Route("/v1/campaigns/{id}/close", curator(self.close), methods=["POST"]),
            Route("/v1/campaigns/{id}/estimates", curator(self.estimates), methods=["GET"]),
            Route("/v1/campaigns/{id}/counters", curator(self.counters), methods=["GET"]),
            Route("/healthz", self.health, methods=["GET"]),
            Route("/readyz", self.ready, methods=["GET"]),
            Route("/metrics", self.metrics, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            *pages.routes(),
        ]

    # -- taking reports --------------------------------------------------------------------------------------

    async def _take(self, campaign: str, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            live = self.service.live.get(campaign) or await self._live(campaign)
            read = _reader(_header(scope, b"content-type"))
            body = await self._body(scope, receive, self.limits.body)
            receipt = await self.service.take(read(body, campaign, live.campaign.plans), live)
        except PriorveilError as error:
            status, headers, content = self.refusal(error)
        else:
            status, headers, content = self._accepted(receipt)
        sized = [*headers, (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": status, "headers": sized})
        await send({"type": "http.response.body", "body": content})

    def take_whole(self, live: Live, kind: bytes, body: bytes, reply: Callable[[Reply], None]) -> None:
        """Take a body that is all here; `reply` is called with the answer once its reports are durable."""
        try:
            read = _reader(kind)(body, live.campaign.id, live.campaign.plans)
            upload = self.service.admitted(read, live)
            waiting = self.service.submit(upload)
        except Exception as error:  # nobody above us would answer
            return reply(self.refusal(error))

        def answer(done: asyncio.Future[list[list[int]]]) -> None:
            try:
                told = self._accepted(self.service.receipt(upload, live, done.result()))
            except Exception as error:
                told = self.refusal(error)
            reply(told)

        waiting.add_done_callback(answer)

    def refusal(self, error: BaseException) -> Reply:
        """The answer to an upload that failed as a whole."""
        answer = as_problem(error)
        answer.headers.update(_ANYWHERE)
        self.service.statuses[answer.status_code] += 1
        headers = tuple(pair for pair in answer.raw_headers if pair[0] != b"content-length")
        return answer.status_code, headers, bytes(answer.body)

    def _accepted(self, receipt: Receipt) -> Reply:
        self.service.statuses[200] += 1
        return 200, _REPORT_HEADERS, _written(receipt)

    async def _live(self, campaign: str) -> Live:
        live = await self.service.find(campaign)
        if live is None:
            raise Refused(404, "no campaign has this id")
        return live

    async def _body(self, scope: Scope, receive: Receive, most: int) -> bytes:
        """The body, if it is not too long and does not take too long."""
        parts: list[bytes] = []
        size = _announced(scope)
        try:
            async with asyncio.timeout(self.limits.seconds):
                while size <= most:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the body ended early")
                    parts.append(message.get("body", b""))
                    size = sum(map(len, parts))
                    if not message.get("more_body", False) and size <= most:
                        return parts[0] if len(parts) == 1 else b"".join(parts)
        except TimeoutError:
            raise Refused(408, f"the body took more than {self.limits.seconds:g} seconds", _LAST) from None
        raise Refused(413, f"the body is longer than {most} bytes", _LAST)

    # -- everybody -------------------------------------------------------------------------------------------

    async def campaign(self, request: Request) -> Response:
        """The campaign: public, and the same for ever."""
        live = await self._live(request.path_params["id"])
        return Response(live.document, 200, {**HEADERS, **_ANYWHERE, **_FOR_EVER}, "application/json")

    async def status(self, request: Request) -> Response:
        """Whether the campaign takes reports now."""
        live = await self._live(request.path_params["id"])
        content = {
            "campaign": live.campaign.id,
            "state": live.state(),
            "leans_on_prior": live.campaign.leans_on_prior,
        }
        return json_answer(content, headers=_ANYWHERE)

    # -- the curator -----------------------------------------------------------------------------------------

    def _curator_only(self, endpoint: Endpoint) -> Endpoint:
        async def guarded(request: Request) -> Response:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not self.service.allowed(token.strip()):
                raise Refused(
                    401, "this needs the curator's token", {"www-authenticate": 'Bearer realm="curator"'}
                )
            return await endpoint(request)

        return guarded

    async def create(self, request: Request) -> Response:
        """Store a campaign, after proving its certificates again."""
        body = await self._body(request.scope, request.receive, self.limits.campaign)
        try:
            campaign = await asyncio.to_thread(Campaign.from_json, body)
        except PriorveilError as error:
            raise Refused(422, str(error)) from error
        new = await self.service.store.add_campaign(campaign)
        place = f"/v1/campaigns/{campaign.id}"
        return json_answer({"id": campaign.id, "url": place}, 201 if new else 200, {"location": place})

    async def index(self, request: Request) -> Response:
        """All campaigns, oldest first."""
        found = [await self._line(*row) for row in await self.service.store.campaign_ids()]
        return json_answer({"campaigns": found})

    async def _line(self, campaign: str, closed: str | None) -> dict[str, object]:
        """A line of the index; a campaign that does not load must not hide the others."""
        try:
            return _summary(await self._live(campaign))
        except Damaged as error:
            return {
                "id": campaign,
                "question": str(error),
                "cohorts": [],
                "state": "damaged",
                "closed": closed,
            }

    async def close(self, request: Request) -> Response:
        """Take no more reports."""
        live = await self._live(request.path_params["id"])
        await self.service.close(live)
        return json_answer(_summary(live))

    async def estimates(self, request: Request) -> Response:
        """What the reports say so far."""
        live = await self._live(request.path_params["id"])
        method, level = (
            request.query_params.get("method", "auto"),
            _level(request.query_params.get("level", "0.95")),
        )
        if method not in METHODS:
            raise Refused(400, f"method: choose one of {', '.join(METHODS)}")
        async with self._estimating:
            tallies = await self.service.store.tallies(live.campaign)
            try:
                found = await asyncio.to_thread(readings, live.campaign, tallies, method, level)
            except PriorveilError as error:
                raise Refused(409, str(error)) from error
        return json_answer({**found, "state": live.state()})

    async def counters(self, request: Request) -> Response:
        """How many reports came, by cohort, and how many were refused, by reason."""
        campaign = (await self._live(request.path_params["id"])).campaign
        tallies = await self.service.store.tallies(campaign)
        counts = {campaign.cohort_of[plan]: tally.reports for plan, tally in tallies.items()}
        refused = await self.service.refusal_counts(campaign.id)
        return json_answer({"campaign": campaign.id, "reports": counts, "refused": refused})

    async def export(self, request: Request) -> Response:
        """All reports as a Parquet file."""
        live = await self._live(request.path_params["id"])
        name = f'attachment; filename="{live.campaign.id[:12]}.parquet"'
        try:
            pieces = parquet(live.campaign, self.service.store.reports(live.campaign))
        except MissingExtra as error:
            raise Refused(500, str(error)) from error
        return StreamingResponse(pieces, 200, {**HEADERS, "content-disposition": name}, PARQUET)

    # -- operations ------------------------------------------------------------------------------------------

    async def health(self, request: Request) -> Response:
        """The process answers."""
        return json_answer({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """The store can be written to."""
        await self.service.store.ready()
        return json_answer({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Counters for Prometheus."""
        return Response(exposition(self.service), 200, HEADERS, "text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """This API as an OpenAPI document."""
        return json_answer(document(), headers=_ANYWHERE)


def _reader(kind: bytes) -> Callable[[bytes, str, Mapping[str, Plan]], Upload]:
    """How to read the body, by its declared type."""
    if kind not in _READERS:
        kind = kind.partition(b";")[0].strip().lower()
    if kind not in _READERS:
        raise Refused(415, f"send reports as {JSON} or {PACKED}")
    return _READERS[kind]


def _header(scope: Scope, wanted: bytes) -> bytes:
    found: bytes = next((value for name, value in scope["headers"] if name == wanted), b"")
    return found


def _announced(scope: Scope) -> int:
    told = _header(scope, b"content-length")
    return int(told) if told.isdigit() else 0


def _written(receipt: Receipt) -> bytes:
    if not receipt.refused:
        return b'{"accepted":%d,"refused":[]}' % receipt.accepted
    return msgspec.json.encode(receipt)


def _summary(live: Live) -> dict[str, object]:
    c = live.campaign
    return {
        "id": c.id,
        "question": c.question,
        "cohorts": list(c.cohorts),
        "state": live.state(),
        "closed": live.closed,
    }


def _level(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise Refused(400, "level: give a number between 0 and 1")
    return level


async def _preflight(request: Request) -> Response:
    """Any page may send reports."""
    asked = {"access-control-allow-methods": "POST", "access-control-allow-headers": "content-type"}
    return Response(
        status_code=204, headers={**HEADERS, **_ANYWHERE, **asked, "access-control-max-age": "86400"}
    )


async def _http_problem(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    headers = error.headers if error.status_code != 405 else {"allow": _methods(request)}
    return problem(error.status_code, error.detail, headers)


def _methods(request: Request) -> str:
    """What may be asked of this address: its methods are spread over several routes."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    return methods_at(*(r.path for r in routes if r.matches(request.scope)[0] is Match.PARTIAL))


async def _known_problem(request: Request, error: Exception) -> Response:
    return as_problem(error)


async def _unknown(request: Request, error: Exception) -> Response:
    return problem(500, "something went wrong here; it was noted")
