"""The HTTP API. The app is a value: `create_app(store)` is a plain ASGI app for any server."""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple
from functools import cache, partial
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from priorveil.curator import messages, metrics, operations, responses
from priorveil.curator.admission import code_digest, fresh_codes, withdraw
from priorveil.curator.body_memory import BodyMemory
from priorveil.curator.campaign_life import CampaignLife
from priorveil.curator.estimate_cache import EstimateCache
from priorveil.curator.group_commit import QueueFull, Writer
from priorveil.curator.loaded_campaigns import CampaignLoader
from priorveil.curator.logs import FailureLog
from priorveil.curator.metrics import Metrics
from priorveil.curator.operations import BINARY, OPERATIONS, TEXT, Endpoint, Operation, read_query
from priorveil.curator.rates import SubmissionRates, is_inside, is_this_machine, read_networks
from priorveil.curator.readiness import Readiness
from priorveil.curator.responses import HEADERS, json_response, problem_for
from priorveil.curator.result_messages import CampaignResults, Publication
from priorveil.curator.results import campaign_results, publication_csv, results_csv
from priorveil.curator.service import Service
from priorveil.curator.settings import DEFAULTS, Settings
from priorveil.curator.store import (
    Damaged,
    Ended,
    FormTally,
    StillOpen,
    Store,
    StoredCampaign,
    StoredResult,
    StoreFull,
    Unavailable,
)
from priorveil.curator.survey_designs import SurveyDesigner
from priorveil.curator.token_attempts import TokenAttempts
from priorveil.curator.tokens import NAME_PATTERN, ROLES, SECRET_BYTES, Role, Token
from priorveil.curator.uploads import UploadReader, is_batch, read_json, read_packed
from priorveil.device.wire import ID_BYTES, JSON, PACKED, hex_bytes
from priorveil.errors import InvalidInput, PriorveilError
from priorveil.plans.structure import FormDocument, PlanDocument, decode
from priorveil.questions.campaign import (
    Campaign,
    CampaignOutline,
    State,
    public_state,
    read_time,
    stamp,
    state_at,
)
from priorveil.questions.structure import CampaignDocument

_CLOSE = {"connection": "close"}
# Public and without credentials: any page may ask and answer.
_ANY_ORIGIN = {"access-control-allow-origin": "*"}
_IMMUTABLE = {"cache-control": "public, max-age=31536000, immutable", "vary": "origin"}
_READERS: dict[str, UploadReader] = {JSON: read_json, PACKED: read_packed}
_RECORDS = 1000  # in a response
_ADMIN: tuple[Role, ...] = ("admin",)
_ANALYST: tuple[Role, ...] = ("admin", "analyst")
_COLLECTORS: tuple[Role, ...] = ("collect", "admin")
_CHALLENGE = {"www-authenticate": 'Bearer realm="curator"'}
_ONE_REPORT = ": send one report, or a batch with a token that has the role collect"
_CAMPAIGN = "/v1/campaigns/{id}"
_UPLOAD_ROUTE = f"{_CAMPAIGN}/reports"
_UPLOAD = re.compile("/v1/campaigns/(?P<id>[^/]*)/reports")
_UNKNOWN = "no campaign has this id"

_SURVEYS = {JSON: "survey.json", "application/toml": "survey.toml", messages.XLSX: "survey.xlsx"}
_SURVEY = {
    "description": "A survey with the keys of one in TOML; `tables` has the tables that priors name as `sheet`.",
    "type": "object",
}

_CSV = "text/csv"
_SMALL_BODY = 64 << 10  # bytes of a body that is neither reports nor a campaign

T = TypeVar("T")


def create_app(store: Store, settings: Settings = DEFAULTS) -> Curator:
    """The curator as an ASGI app; it opens the store when it starts and closes it when it ends."""
    return Curator(store, settings)


class Curator:
    """The ASGI app: Starlette's routes, with a shortcut for uploads of reports, which are the most frequent."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.settings, self.limits = settings, settings.requests
        failures, self.metrics = FailureLog(settings.log.repeat_seconds), Metrics()
        self.submissions = SubmissionRates(settings.submissions)
        self._proxies = read_networks("trusted_proxies", settings.listen.trusted_proxies)
        # Loading and estimating take seconds: they do not wait for each other, and batches do not wait for them.
        threads = self.limits.threads
        writer = Writer(
            store, self.limits.waiting, failures.report, lambda new: self.service.count_day(new), self.metrics
        )
        campaigns = CampaignLoader(store, settings.campaigns, threads)
        estimates = EstimateCache(store, threads)
        self.service = Service(
            store,
            writer,
            failures,
            self.metrics,
            BodyMemory(self.limits.bodies),
            campaigns,
            estimates,
            CampaignLife(
                store,
                writer,
                campaigns,
                estimates,
                lambda: self.service.save_counts(),
                settings.totals.colluding,
            ),
            TokenAttempts(settings.attempts),
            SurveyDesigner(settings.surveys),
            threads,
        )
        self.metrics.queue_bytes.set_function(lambda: self.service.writer.waiting)
        self.metrics.queue_limit.set(self.limits.waiting)
        self.readiness = Readiness(self.service.probe, settings.database.check_seconds)
        self.routes = self._routes()
        handlers = dict.fromkeys((HTTPException, PriorveilError, Exception), _problem)
        self._others = Starlette(routes=self.routes, lifespan=self._lifespan, exception_handlers=handlers)
        self._others.router.redirect_slashes = False  # a redirect would repeat the host that was sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return await self._others(scope, receive, send)
        start = time.perf_counter()
        if scope["method"] == "POST" and (match := _UPLOAD.fullmatch(scope["path"])):
            response = await self.upload(Request({**scope, "path_params": match.groupdict()}, receive))
            self.metrics.count_response(_UPLOAD_ROUTE, response.status_code, time.perf_counter() - start)
            return await response(scope, receive, send)
        with suppress(ClientDisconnect):  # nobody is left to be answered
            await self._others(scope, receive, self._sender(scope, send, start))

    def _sender(self, scope: Scope, send: Send, start: float) -> Send:
        """`send` that counts responses, with a timeout for slow readers."""

        async def send_in_time(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = time.perf_counter() - start
                self.metrics.count_response(self._route_template(scope), message["status"], seconds)
            try:
                async with asyncio.timeout(self.settings.connections.send_seconds):
                    await send(message)
            except TimeoutError:
                raise ClientDisconnect from None

        return send_in_time

    def _route_template(self, scope: Scope) -> str:
        """The path of the route that answers, with its parameters as names; "other" where there is none."""
        matches = (route.path for route in self.routes if route.matches(scope)[0] is not Match.NONE)
        return next(matches, "other")

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the store, and close it at the end."""
        await self.service.start()
        try:
            yield
        finally:
            await self.service.stop()

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """The lifespan under any ASGI server; one that is stopped by force cancels it, which is not a failure."""
        with suppress(asyncio.CancelledError):
            async with self.lifespan():
                yield

    def _routes(self) -> list[Route]:
        shown = (each for each in OPERATIONS if each[0].path != "/metrics" or not self.settings.metrics.port)
        routes = [Route(o.path, self._with_roles(o, endpoint), methods=[o.method]) for o, endpoint in shown]
        return [*routes, *responses.page_routes()]

    # -- taking reports --------------------------------------------------------------------------------------

    @Operation(
        "POST",
        _UPLOAD_ROUTE,
        messages.Receipt,
        takes={JSON: (messages.ReportBody, messages.BatchBody), PACKED: BINARY},
        optional=True,
        problems=(415,),
    )
    async def upload(self, request: Request) -> Response:
        """Send one report, or with a token a batch. The response comes when they are durable.

        A report that is sent again is not counted twice.
        """
        try:
            live = await self._live(request.path_params["id"])
            kind = _media_type(request)
            if kind not in _READERS:
                raise HTTPException(415, f"send reports as {JSON} or {PACKED}")
            token = self._token(request)
            if kind == PACKED:
                _require_role(token, _COLLECTORS)  # before its body is read
            longest, advice = self.limits.body, ""
            if token is None or token.role not in _COLLECTORS:
                self._count_submission(request)
                longest, advice = min(longest, live.longest_submission), _ONE_REPORT
            with self.service.bodies.share() as hold:
                body = await self._body(request, longest, hold, advice)
                if kind == JSON and is_batch(body):
                    _require_role(token, _COLLECTORS)
                receipt = await self.service.store_upload(_READERS[kind], body, live)
            return json_response(receipt, headers=_ANY_ORIGIN)
        except Exception as error:
            response = problem_for(error)
            response.headers.update(_ANY_ORIGIN)
            return response

    def _count_submission(self, request: Request) -> None:
        """Count what somebody without a token does; refuse it if there was too much of it."""
        address = self._address(request)
        # A proxy that tells no addresses is one for everybody.
        own = None if is_this_machine(address) else address
        if wait := self.submissions.take(own):
            advice = {**_CLOSE, **_ANY_ORIGIN, "retry-after": str(math.ceil(wait))}
            raise HTTPException(429, "too many submissions: try again later", advice)

    def _address(self, request: Request) -> str:
        """Where a request comes from. Only a trusted proxy may state it, in X-Real-IP."""
        peer = request.client.host if request.client else ""
        forwarded = request.headers.get("x-real-ip")
        return forwarded if forwarded is not None and is_inside(peer, self._proxies) else peer

    async def _live(self, campaign: str) -> StoredCampaign:
        live = await self.service.campaigns.find(campaign)
        if live is None:
            raise HTTPException(404, _UNKNOWN)
        return live

    async def _body(
        self,
        request: Request,
        longest: int,
        hold: Callable[[int], None] = lambda size: None,
        advice: str = "",
    ) -> bytes:
        """Read the body, and tell `hold` its length while it grows.

        Refuses bodies over the size or time limit and ambiguous transfer encodings.
        """
        codings = [coding.strip().lower() for coding in request.headers.getlist("transfer-encoding")]
        if codings not in ([], ["chunked"]):
            raise HTTPException(400, "transfer-encoding: send bodies as they are, or chunked", _CLOSE)
        length = request.headers.get("content-length", "")
        size = int(length) if length.isdecimal() else 0
        body, more, seconds = bytearray(), True, self.limits.seconds
        try:
            async with asyncio.timeout(seconds):
                while more and size <= longest:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise HTTPException(400, "the body ended early")
                    more, piece = message.get("more_body", False), message.get("body", b"")
                    size = len(body) + len(piece)
                    hold(size)
                    body += piece
        except QueueFull as error:
            raise HTTPException(429, str(error), {**_CLOSE, "retry-after": "1"}) from None
        except TimeoutError:
            raise HTTPException(408, f"the body took more than {seconds:g} seconds", _CLOSE) from None
        if size > longest:
            raise HTTPException(413, f"the body is longer than {longest} bytes{advice}", _CLOSE)
        return bytes(body)

    # -- everybody -------------------------------------------------------------------------------------------

    @Operation("GET", _CAMPAIGN, CampaignDocument)
    async def campaign(self, request: Request) -> Response:
        """The campaign, which is public and never changes."""
        live = await self._live(request.path_params["id"])
        return _document(live.document)

    @Operation("GET", f"{_CAMPAIGN}/status", messages.Status)
    async def status(self, request: Request) -> Response:
        """Whether the campaign takes reports now."""
        live = await self._live(request.path_params["id"])
        campaign, most = live.campaign, live.campaign.most_reports
        reports = 0 if most is None else await self.service.store.report_count(campaign.id)
        state = public_state(self.service.life.state(live), most, reports)
        published, warnings = bool(live.published), list(map(str, campaign.warnings))
        status = messages.Status(campaign.id, state, campaign.leans_on_prior, published, warnings)
        return json_response(status, headers=_ANY_ORIGIN)

    @Operation(
        "GET",
        f"{_CAMPAIGN}/publication",
        {JSON: Publication, _CSV: TEXT},
        query=messages.ResultsQuery,
    )
    async def publication(self, request: Request) -> Response:
        """The published results of a closed campaign. They never change. As CSV: the figures for further computing."""
        live = await self._live(request.path_params["id"])
        content = await self.service.store.publication(live.campaign.id)
        if content is None:
            raise HTTPException(404, "the results of this campaign are not published")
        if read_query(request, messages.ResultsQuery).format == "csv":
            text = await asyncio.to_thread(publication_csv, content)
            return Response(text, 200, {**HEADERS, **_ANY_ORIGIN, **_IMMUTABLE}, responses.CSV)
        return _document(content)

    @Operation("POST", f"{_CAMPAIGN}/invitation", messages.CodeStatus, takes=messages.CodeBody)
    async def invitation(self, request: Request) -> Response:
        """Whether the code of an invitation can still be used."""
        self._count_submission(request)
        live = await self._live(request.path_params["id"])
        digest = code_digest((await self._read(request, messages.CodeBody)).code)
        free = digest is not None and await self.service.store.has_invitation(live.campaign.id, digest)
        return json_response(messages.CodeStatus(free), headers=_ANY_ORIGIN)

    @Operation(
        "POST",
        f"{_CAMPAIGN}/withdrawals",
        messages.Withdrawn,
        takes=messages.WithdrawalBody,
        optional=True,
        problems=(409,),
    )
    async def withdraw(self, request: Request) -> Response:
        """Remove a report by its id, which is on the sender's receipt; several with an admin's token."""
        live = await self._live(request.path_params["id"])
        texts = (await self._read(request, messages.WithdrawalBody)).report_ids
        ids = [hex_bytes(text, ID_BYTES) for text in texts]
        report_ids = [id for id in ids if id is not None]
        if len(report_ids) < len(ids) or not 0 < len(ids) <= messages.LARGEST_WITHDRAWAL:
            most = messages.LARGEST_WITHDRAWAL
            raise HTTPException(400, f"report_ids: give 1 to {most} ids of 32 hexadecimal digits")
        admin = self._require_token(request, ["admin"]).name if len(ids) > 1 else None
        if admin is None:
            self._count_submission(request)
        removed = await withdraw(self.service.store, live.campaign, report_ids)
        if admin is not None:  # the time at which a person withdraws is private
            await self.service.record(admin, "removed", live.campaign.id, removed)
        return json_response(messages.Withdrawn(removed), headers=_ANY_ORIGIN)

    async def _read(self, request: Request, kind: type[T]) -> T:
        """A small body of a request."""
        try:
            return decode(await self._body(request, _SMALL_BODY), kind)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise HTTPException(400, f"not a body of this request: {str(error)[:200]}") from error

    @Operation("OPTIONS", _UPLOAD_ROUTE, statuses=(204,), name="upload_preflight")
    @Operation("OPTIONS", f"{_CAMPAIGN}/withdrawals", statuses=(204,), name="withdraw_preflight")
    @Operation("OPTIONS", f"{_CAMPAIGN}/invitation", statuses=(204,), name="invitation_preflight")
    async def preflight(self, request: Request) -> Response:
        """Pages of any site may send this."""
        allowed = {"access-control-allow-methods": "POST", "access-control-allow-headers": "content-type"}
        return Response(None, 204, {**HEADERS, **_ANY_ORIGIN, **allowed, "access-control-max-age": "86400"})

    # -- the curator -----------------------------------------------------------------------------------------

    def _with_roles(self, operation: Operation, endpoint: Endpoint) -> Endpoint:
        """An endpoint for the holders of tokens with the roles of its operation; for everybody if it has none."""
        if not operation.roles:
            return partial(endpoint, self)

        async def with_token(request: Request) -> Response:
            request.state.token = self._require_token(request, operation.roles)
            return await endpoint(self, request)

        return with_token

    def _require_token(self, request: Request, roles: Sequence[Role]) -> Token:
        """The token of a request, which must have one of these roles."""
        token = self._token(request)
        if token is None and request.headers.get("authorization"):
            problem = "the curator does not know this token: it is wrong, was revoked, or has ended"
            raise HTTPException(401, problem, _CHALLENGE)
        return _require_role(token, roles)

    def _token(self, request: Request) -> Token | None:
        """The token of a request; None if it has none, or a wrong one. Refuses any after too many wrong ones."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        secret, address, attempts = secret.strip(), self._address(request), self.service.attempts
        if scheme.lower() != "bearer" or not secret:
            return None
        if wait := attempts.wait(address, secret):
            advice = {"retry-after": str(math.ceil(wait))}
            raise HTTPException(429, "too many wrong tokens: try again later", advice)
        token = self.service.find_token(secret)
        if token is None:
            attempts.add_wrong(address, secret)
        else:
            attempts.add_right(address, secret)
        return token

    @Operation(
        "POST",
        "/v1/campaigns",
        messages.Created,
        takes=CampaignDocument,
        roles=_ADMIN,
        statuses=(200, 201),
        location=True,
        problems=(409, 422),
    )
    async def create(self, request: Request) -> Response:
        """Create a campaign; its certificates are proven again."""
        body = await self._body(request, self.limits.campaign)
        try:
            campaign = await asyncio.to_thread(Campaign.from_json, body)
        except PriorveilError as error:
            raise HTTPException(422, str(error)) from error
        new = await self.service.store.add_campaign(campaign)
        if new:
            await self.service.record(request.state.token.name, "created", campaign.id)
        url = f"/v1/campaigns/{campaign.id}"
        created = messages.Created(campaign.id, url, list(map(str, campaign.warnings)))
        return json_response(created, 201 if new else 200, {"location": url})

    @Operation(
        "POST",
        "/v1/surveys",
        messages.CheckedSurvey,
        takes={JSON: _SURVEY, "application/toml": TEXT, messages.XLSX: BINARY},
        query=messages.SurveyQuery,
        roles=_ADMIN,
        problems=(415,),
        refusal=messages.SurveyProblem,
    )
    async def check_survey(self, request: Request) -> Response:
        """Design a survey, and say what it promises and what it will tell. Nothing is stored.

        The design ends when the client disconnects.
        """
        kind = _media_type(request)
        if kind not in _SURVEYS:
            raise HTTPException(415, f"send a survey as {', '.join(_SURVEYS)}")
        people = read_query(request, messages.SurveyQuery).people
        limits = self.settings.surveys
        with self.service.bodies.share() as hold:
            body = await self._body(request, limits.body, hold)
            design = self.service.surveys.start(_SURVEYS[kind], body, people)
            gone = asyncio.create_task(_disconnection(request))
            try:
                await asyncio.wait([design, gone], return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
                design.cancel()  # does nothing once it has ended
        try:
            return Response(await design, 200, HEADERS, JSON)
        except asyncio.CancelledError:
            if gone.done() and not gone.cancelled():
                raise ClientDisconnect from None
            raise HTTPException(503, "the curator is stopping", {"retry-after": "10"}) from None

    @Operation("GET", "/v1/campaigns", messages.Campaigns, roles=_ANALYST)
    async def campaigns(self, request: Request) -> Response:
        """All campaigns, oldest first; an analyst gets the numbers of reports of stored results."""
        store = self.service.store
        counts = await store.report_counts() if _is_admin(request) else None
        origins = {id: messages.ResultOrigin(*each) for id, each in (await store.result_origins()).items()}
        entries = []
        for id, *times in await store.campaign_ids():
            stored = origins.get(id)
            reports = stored.reports if stored else None
            if counts is not None:
                reports = counts.get(id, 0)
            entries.append(await self._index_entry(id, reports, stored, *times))
        return json_response(messages.Campaigns([entry for entry in entries if entry is not None]))

    async def _index_entry(
        self,
        id: str,
        reports: int | None,
        stored: messages.ResultOrigin | None,
        closed: str | None,
        published: str | None,
        deleted: str | None,
    ) -> messages.Summary | None:
        """One campaign of the index; a damaged campaign must not hide the others. None if it was just deleted."""
        try:
            outline = await self.service.campaigns.outline(id)
        except Damaged as error:
            return messages.Summary(
                id, str(error), [], "damaged", reports, None, None, closed, deleted, published, stored
            )
        if outline is None:
            return None
        return self._summary(outline, reports, stored, closed, published, deleted)

    @Operation("POST", f"{_CAMPAIGN}/close", messages.Summary, roles=_ADMIN)
    async def close(self, request: Request) -> Response:
        """Take no more reports."""
        live = await self._live(request.path_params["id"])
        was_open = live.closed is None
        await self.service.life.close(live)
        if was_open:
            await self.service.record(request.state.token.name, "closed", live.campaign.id)
        return json_response(await self._summary_now(live))

    @Operation("POST", f"{_CAMPAIGN}/reopen", messages.Summary, roles=_ADMIN, problems=(409,))
    async def reopen(self, request: Request) -> Response:
        """Take reports again, if the campaign was closed early and has not ended."""
        live = await self._live(request.path_params["id"])
        was_closed = live.closed is not None
        await self.service.life.reopen(live)
        if was_closed:
            await self.service.record(request.state.token.name, "reopened", live.campaign.id)
        return json_response(await self._summary_now(live))

    @Operation(
        "POST", f"{_CAMPAIGN}/release", messages.Summary, roles=_ADMIN, statuses=(201,), problems=(409,)
    )
    async def release(self, request: Request) -> Response:
        """Let analysts see the results so far. Refused until enough reports have come since the last results."""
        live = await self._live(request.path_params["id"])
        released = await self.service.life.release(live)
        await self.service.record(request.state.token.name, "released", live.campaign.id, released.reports)
        return json_response(await self._summary_now(live), 201)

    @Operation(
        "POST",
        f"{_CAMPAIGN}/publication",
        messages.Summary,
        roles=_ADMIN,
        statuses=(200, 201),
        problems=(409,),
    )
    async def publish(self, request: Request) -> Response:
        """Publish the results of a closed campaign, once; later requests get the same.

        From then on no report is added or removed, and the campaign never reopens.
        """
        live = await self._live(request.path_params["id"])
        try:
            new = await self.service.life.publish(live)
        except (Unavailable, StoreFull, StillOpen):
            raise
        except PriorveilError as error:
            raise HTTPException(409, str(error)) from error
        if new:
            await self.service.record(request.state.token.name, "published", live.campaign.id)
        return json_response(await self._summary_now(live), 201 if new else 200)

    @Operation("DELETE", _CAMPAIGN, messages.Deleted, roles=_ADMIN)
    async def delete(self, request: Request) -> Response:
        """Delete the campaign with all its reports. Its id can never be created again."""
        id = request.path_params["id"]
        reports = await self.service.life.delete(id)
        if reports is None:
            raise HTTPException(404, _UNKNOWN)
        await self.service.record(request.state.token.name, "deleted", id, reports)
        return json_response(messages.Deleted(id, reports))

    async def _summary_now(self, live: StoredCampaign) -> messages.Summary:
        reports = await self.service.store.report_count(live.campaign.id)
        outline, origin = CampaignOutline.of(live.campaign), await self._result_origin(live)
        return self._summary(outline, reports, origin, live.closed, live.published, live.deleted)

    async def _result_origin(self, live: StoredCampaign) -> messages.ResultOrigin | None:
        id = live.campaign.id
        origin = (await self.service.store.result_origins(id)).get(id)
        return None if origin is None else messages.ResultOrigin(*origin)

    def _summary(
        self,
        outline: CampaignOutline,
        reports: int | None,
        stored: messages.ResultOrigin | None,
        closed: str | None,
        published: str | None,
        deleted: str | None,
    ) -> messages.Summary:
        now = self.service.life.clock()
        state = "closed" if closed is not None else state_at(now, outline.opens, outline.closes)
        return messages.Summary(
            outline.id,
            outline.title,
            list(outline.cohorts),
            public_state(state, outline.most_reports, reports or 0),
            reports,
            stamp(outline.opens),
            stamp(outline.closes),
            closed,
            deleted,
            published,
            stored,
        )

    @Operation(
        "POST",
        f"{_CAMPAIGN}/invitations",
        messages.Invitations,
        takes=messages.InvitationsBody,
        roles=_ADMIN,
        statuses=(201,),
        problems=(409,),
    )
    async def invite(self, request: Request) -> Response:
        """Make invitations, and show their codes once."""
        live = await self._live(request.path_params["id"])
        if live.campaign.admission != "invitation":
            raise HTTPException(409, "this campaign has open admission: everybody can answer without a code")
        codes = fresh_codes((await self._read(request, messages.InvitationsBody)).count)
        await self.service.store.add_invitations(live.campaign.id, filter(None, map(code_digest, codes)))
        await self.service.record(request.state.token.name, "invited", live.campaign.id, len(codes))
        return json_response(messages.Invitations(codes), 201)

    @Operation("GET", f"{_CAMPAIGN}/invitations", messages.FreeInvitations, roles=_ADMIN)
    async def free_invitations(self, request: Request) -> Response:
        """How many invitations were not used yet."""
        live = await self._live(request.path_params["id"])
        free = await self.service.store.free_invitations(live.campaign.id)
        return json_response(messages.FreeInvitations(free))

    @Operation(
        "GET",
        f"{_CAMPAIGN}/estimates",
        {JSON: CampaignResults, _CSV: TEXT},
        query=messages.EstimatesQuery,
        roles=_ANALYST,
        problems=(409,),
    )
    async def estimates(self, request: Request) -> Response:
        """Estimates: for an admin from the reports so far, for an analyst from the stored results."""
        live = await self._live(request.path_params["id"])
        query = read_query(request, messages.EstimatesQuery)
        method, confidence = query.method, query.confidence

        def calculate(tallies: Mapping[str, FormTally], state: State) -> CampaignResults:
            return campaign_results(live.campaign, tallies, method, confidence, state)

        stored = None if _is_admin(request) else await self._analyst_result(live)
        key = (method, confidence, stored.made if stored else None)
        state, tallies = partial(self.service.life.state, live), stored.tallies if stored else None
        try:
            found = await self.service.estimates.find(live.campaign, state, key, calculate, tallies)
        except Unavailable:
            raise
        except PriorveilError as error:
            raise HTTPException(409, str(error)) from error
        if query.format == "csv":
            text = await asyncio.to_thread(results_csv, found.result)
            return Response(text, 200, HEADERS, responses.CSV)
        origin = _origin(stored) if stored else await self._result_origin(live)
        published = live.published is not None
        return json_response(msgspec.structs.replace(found, published=published, stored=origin))

    async def _analyst_result(self, live: StoredCampaign) -> StoredResult:
        """The stored results of a campaign, which are all that an analyst sees of its reports."""
        stored = await self.service.life.stored_result(live)
        if stored is None:
            when = "when the campaign closes, or when an admin releases them"
            raise HTTPException(404, f"this campaign has no results yet: they are made {when}")
        return stored

    @Operation("GET", f"{_CAMPAIGN}/counters", messages.Counters, roles=_ANALYST)
    async def counters(self, request: Request) -> Response:
        """Numbers of reports, by cohort and by day, and of refusals, by reason.

        For an admin they are those of now, for an analyst those of the stored results.
        """
        live = await self._live(request.path_params["id"])
        campaign = live.campaign
        if _is_admin(request):
            tallies: Mapping[str, FormTally] = await self.service.store.tallies(campaign)
            refused, by_day = await self.service.counters(campaign.id)
        else:
            stored = await self._analyst_result(live)
            tallies, refused, by_day = stored.tallies, stored.refused, stored.by_day
        counts = {campaign.cohort_of[form]: tally.reports for form, tally in tallies.items()}
        return json_response(messages.Counters(campaign.id, counts, refused, by_day))

    @Operation(
        "GET",
        f"{_CAMPAIGN}/reports",
        {responses.PARQUET: BINARY, _CSV: TEXT, JSON: messages.ExportedReports},
        query=messages.ExportQuery,
        roles=_ADMIN,
        problems=(409,),
    )
    async def export(self, request: Request) -> Response:
        """All reports as a Parquet file, or as CSV or JSON."""
        live = await self._live(request.path_params["id"])
        kind = read_query(request, messages.ExportQuery).format
        if live.deleted is not None:
            raise Ended(
                f"the reports of this campaign were deleted {live.deleted}: there is nothing to export"
            )
        media_type, pieces_of = responses.EXPORTS[kind]
        # Loading Arrow for the first export takes a quarter of a second.
        pieces = await asyncio.to_thread(pieces_of, self.service.reports(live.campaign))
        try:
            first = await anext(pieces)  # a later error cuts the connection: no file seems whole
        except Unavailable as error:
            problem = "the stored reports cannot be read: the curator's log says why"
            raise HTTPException(503, problem, {"retry-after": "1"}) from error
        count = await self.service.store.report_count(live.campaign.id)
        # Before anything leaves.
        await self.service.record(request.state.token.name, "exported", live.campaign.id, count)
        headers = {**HEADERS, "content-disposition": f'attachment; filename="{live.campaign.id[:12]}.{kind}"'}
        return responses.Export(_chain(first, pieces), 200, headers, media_type)

    # -- tokens ----------------------------------------------------------------------------------------------

    @Operation("GET", "/v1/token", messages.NewToken, roles=ROLES)
    async def own_token(self, request: Request) -> Response:
        """The token of the request, without its secret: pages offer only what it opens."""
        token: Token = request.state.token
        return json_response(messages.NewToken(token.name, token.role, token.expires))

    @Operation("GET", "/v1/tokens", messages.Tokens, roles=_ADMIN)
    async def tokens(self, request: Request) -> Response:
        """All tokens, without their secrets."""
        entries = [messages.NewToken(*token[1:]) for token in await self.service.store.tokens()]
        return json_response(messages.Tokens(entries))

    @Operation(
        "POST",
        "/v1/tokens",
        messages.CreatedToken,
        takes=messages.NewToken,
        roles=_ADMIN,
        statuses=(201,),
        problems=(409,),
    )
    async def create_token(self, request: Request) -> Response:
        """Make a token. Its secret is in this response and nowhere else."""
        wanted = await self._read(request, messages.NewToken)
        if not re.search(NAME_PATTERN, wanted.name):
            advice = "use 1 to 64 letters a to z, digits, dots, _ and -, with a letter or digit first"
            raise HTTPException(400, f"not a token: its name: {advice}")
        try:
            end = read_time("expires", wanted.expires)
        except InvalidInput as error:
            raise HTTPException(400, f"not a token: {error}") from error
        expires = stamp(end)
        if end is not None and end <= self.service.life.clock():
            raise HTTPException(400, f"not a token: expires = {expires} is in the past: give a later time")
        secret = secrets.token_urlsafe(SECRET_BYTES)
        if not await self.service.store.add_token(Token.of(secret, wanted.name, wanted.role, expires)):
            raise HTTPException(
                409, f"there is a token with the name {wanted.name}: revoke it, or choose another name"
            )
        await self.service.load_tokens()
        await self.service.record(request.state.token.name, f"made the {wanted.role} token {wanted.name}")
        return json_response(messages.CreatedToken(wanted.name, wanted.role, expires, secret=secret), 201)

    @Operation("DELETE", "/v1/tokens/{name}", roles=_ADMIN, statuses=(204,), problems=(404,))
    async def revoke_token(self, request: Request) -> Response:
        """Forget a token: it opens nothing any more."""
        name = request.path_params["name"]
        if not await self.service.store.remove_token(name):
            raise HTTPException(404, "no token has this name")
        await self.service.load_tokens()
        await self.service.record(request.state.token.name, f"revoked the token {name}")
        return Response(None, 204, HEADERS)

    # -- records ---------------------------------------------------------------------------------------------

    @Operation("GET", "/v1/records", messages.Records, roles=_ADMIN)
    async def records(self, request: Request) -> Response:
        """What the holders of tokens did: the newest 1,000 records, newest first."""
        newest = await self.service.store.records(_RECORDS)
        return json_response(messages.Records([messages.RecordEntry(*astuple(record)) for record in newest]))

    # -- operations ------------------------------------------------------------------------------------------

    @Operation("GET", "/healthz", messages.Health)
    async def health(self, request: Request) -> Response:
        """The process answers."""
        return json_response(messages.Health("ok"))

    @Operation("GET", "/readyz", messages.Health, problems=(503, 507))
    async def ready(self, request: Request) -> Response:
        """Reports can be stored."""
        try:
            await self.readiness.check()
        except Exception:  # it was logged
            return responses.unavailable()
        return json_response(messages.Health("ready"))

    @Operation("GET", "/metrics", {"text/plain": TEXT})
    async def show_metrics(self, request: Request) -> Response:
        """Metrics for Prometheus, unless they have a port of their own."""
        return Response(self.metrics.text(), 200, HEADERS, metrics.CONTENT_TYPE)

    @Operation("GET", "/openapi.json", {JSON: {"type": "object"}})
    async def openapi(self, request: Request) -> Response:
        """This document."""
        return json_response(openapi(), headers=_ANY_ORIGIN)


@cache
def openapi() -> dict[str, Any]:
    """The API as an OpenAPI document."""
    others = PlanDocument, FormDocument
    return operations.openapi([*OPERATIONS, *responses.PAGES], *others)


def _origin(stored: StoredResult) -> messages.ResultOrigin:
    return messages.ResultOrigin(stored.kind, stored.made, stored.reports)


def _is_admin(request: Request) -> bool:
    token: Token = request.state.token
    return token.role == "admin"


def _require_role(token: Token | None, roles: Sequence[Role]) -> Token:
    """The token, if there is one and it has one of these roles."""
    needed = f"this needs a token with the role {' or '.join(roles)}"
    if token is None:
        raise HTTPException(401, needed, _CHALLENGE)
    if token.role not in roles:
        raise HTTPException(403, f"{needed}; yours has the role {token.role}")
    return token


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _document(content: bytes) -> Response:
    """A public document that never changes."""
    return Response(content, 200, {**HEADERS, **_ANY_ORIGIN, **_IMMUTABLE}, "application/json")


async def _chain(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in others:
        yield piece


async def _disconnection(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _problem(request: Request, error: Exception) -> Response:
    response = problem_for(error)
    if response.status_code == 405:
        routes = [route for route in request.app.routes if route.matches(request.scope)[0] is Match.PARTIAL]
        methods = {method for route in routes for method in route.methods}
        response.headers["allow"] = ", ".join(sorted(methods))
    return response
