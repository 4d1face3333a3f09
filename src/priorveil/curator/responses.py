"""What the API sends: JSON, problem documents (RFC 9457), estimates, pages, exports."""

from __future__ import annotations

import asyncio
import csv
import io
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from html import escape
from http import HTTPStatus
from pathlib import Path

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from priorveil.catalogue import every_language
from priorveil.curator import messages
from priorveil.curator.group_commit import QueueFull
from priorveil.curator.logs import frames
from priorveil.curator.operations import BINARY, PROBLEM, TEXT, Endpoint, Operation
from priorveil.curator.service import RETRY_FULL_SECONDS
from priorveil.curator.store import (
    Damaged,
    Ended,
    StillOpen,
    StoredReport,
    StoreFull,
    TooFewReports,
    Unavailable,
)
from priorveil.curator.survey_designs import SurveyRefused
from priorveil.device.wire import ID_BYTES, JSON
from priorveil.errors import MissingExtra, PriorveilError
from priorveil.frames import pyarrow
from priorveil.tables.reports import FORM, REPORT, REPORT_ID
from priorveil.tables.write import id_field

PARQUET = "application/vnd.apache.parquet"
CSV = "text/csv; charset=utf-8"
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "server": "priorveil",  # instead of the name of the web server
    "x-content-type-options": "nosniff",
}
_PAGE_HEADERS = {
    **HEADERS,
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
_STATIC = Path(__file__).parent / "static"
_CLIENT = Path(__file__).parents[3] / "clients/js/priorveil.js"  # in a checkout; a wheel has it in static/
_FILES = {path.name: path for path in (_CLIENT, *_STATIC.iterdir()) if path.is_file()}
_log = logging.getLogger(__name__)


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON; numbers that JSON cannot hold are null."""
    return Response(msgspec.json.encode(content), status, {**HEADERS, **(headers or {})}, "application/json")


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A problem document."""
    content = messages.Problem("about:blank", HTTPStatus(status).phrase, status, detail)
    return Response(msgspec.json.encode(content), status, {**HEADERS, **(headers or {})}, PROBLEM)


def survey_problem(error: SurveyRefused) -> Response:
    """A problem document that says where a survey is wrong."""
    content = messages.SurveyProblem("about:blank", HTTPStatus(422).phrase, 422, **error.problem)
    return Response(msgspec.json.encode(content), 422, HEADERS, PROBLEM)


def unavailable() -> Response:
    """The response while nothing can be stored."""
    return problem(503, "reports cannot be stored for now", {"retry-after": "1"})


def problem_for(error: BaseException) -> Response:
    """The response to a request that raised an error; an unexpected one is logged and not shown."""
    match error:
        case HTTPException():
            return problem(error.status_code, error.detail, error.headers)
        case Ended() | StillOpen() | TooFewReports():
            return problem(409, str(error))
        case QueueFull():
            return problem(429, str(error), {"retry-after": "1"})
        case StoreFull():
            return problem(507, "the disk is full", {"retry-after": str(RETRY_FULL_SECONDS)})
        case Unavailable():
            return unavailable()
        case SurveyRefused():
            return survey_problem(error)
        case Damaged() | MissingExtra():
            return problem(500, str(error))
        case ClientDisconnect():
            return problem(400, "the client has gone")  # nobody reads this
    _log.error("unexpected error while answering a request: %s", frames(error))
    return problem(500, "something went wrong here; it was logged")


def _file(name: str) -> Response:
    """A page, or a file that pages load, by its plain name."""
    path = _FILES.get(name)
    if path is None:
        raise HTTPException(404, "there is no such file")
    return FileResponse(path, headers=_PAGE_HEADERS)


def _page(name: str, key: str) -> Response:
    """A page that says this text in every language where there is no JavaScript."""
    return Response(_spoken_page(name, key), headers=_PAGE_HEADERS, media_type="text/html")


@cache
def _spoken_page(name: str, key: str) -> str:
    texts = every_language().items()
    lines = (f'<p lang="{tag}" dir="auto">{escape(own[key])}</p>' for tag, own in texts)
    return _FILES[name].read_text(encoding="utf-8").replace("<noscript>", f"<noscript>{''.join(lines)}")


async def start(request: Request) -> Response:
    """The first page."""
    return _file("index.html")


async def dashboard(request: Request) -> Response:
    """The curator's page."""
    return _file("dashboard.html")


async def answer(request: Request) -> Response:
    """The respondent's page."""
    return _page("answer.html", "answerNeedsScript")


async def published(request: Request) -> Response:
    """The page of published results."""
    return _page("published.html", "pageNeedsScript")


async def texts(request: Request) -> Response:
    """The texts of the pages, in all languages."""
    return Response(_catalogue(), headers=_PAGE_HEADERS, media_type="application/json")


@cache
def _catalogue() -> bytes:
    return msgspec.json.encode(every_language())


async def asset(request: Request) -> Response:
    """A file that the pages load."""
    return _file(request.path_params["name"])


_HTML = {"text/html": TEXT}
PAGES: list[tuple[Operation, Endpoint]] = [
    (Operation("GET", "/", _HTML), start),
    (Operation("GET", "/dashboard", _HTML), dashboard),
    (Operation("GET", "/answer/{id}", _HTML), answer),
    (Operation("GET", "/published/{id}", _HTML), published),
    (Operation("GET", "/static/texts.json", {JSON: {"type": "object"}}), texts),
    (Operation("GET", "/static/{name}", {"*/*": BINARY}, problems=(404,)), asset),
]


def page_routes() -> list[Route]:
    """The pages of the curator, of people who answer and of readers, and what they load."""
    return [Route(page.path, endpoint, methods=[page.method]) for page, endpoint in PAGES]


def parquet_pieces(pages: AsyncIterator[list[StoredReport]]) -> AsyncIterator[bytes]:
    """The pieces of a Parquet file: report id, form, and the words of the submission as bytes.

    The file is made while it is sent, a row group for each page, so memory stays flat. Raises `MissingExtra` at once,
    not while it is sent.
    """
    pa = pyarrow()
    schema = pa.schema(
        [pa.field(REPORT_ID, pa.binary(ID_BYTES)), id_field(FORM), pa.field(REPORT, pa.binary())]
    )

    async def pieces() -> AsyncIterator[bytes]:
        sink = _Sink()
        with pa.parquet.ParquetWriter(sink, schema) as writer:
            async for page in pages:
                columns = dict(zip(schema.names, map(list, zip(*page, strict=True)), strict=True))
                writer.write_table(pa.table(columns, schema=schema))
                yield sink.take_written()
        yield sink.take_written()

    return pieces()


async def csv_pieces(pages: AsyncIterator[list[StoredReport]]) -> AsyncIterator[bytes]:
    """The pieces of a CSV with the columns of the Parquet file; ids and words are hexadecimal digits."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([REPORT_ID, FORM, REPORT])
    async for page in pages:
        lines.writerows((id.hex(), form, words.hex()) for id, form, words in page)
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


async def json_pieces(pages: AsyncIterator[list[StoredReport]]) -> AsyncIterator[bytes]:
    """The pieces of a JSON document with the same columns, in the form of a batch of reports."""
    separator = b""
    yield b'{"reports":['
    async for page in pages:
        reports = [{REPORT_ID: id.hex(), FORM: form, REPORT: words.hex()} for id, form, words in page]
        yield separator + msgspec.json.encode(reports)[1:-1]
        separator = b","
    yield b"]}"


# The formats of an export: the media type, and the pieces of pages of reports.
EXPORTS: dict[str, tuple[str, Callable[[AsyncIterator[list[StoredReport]]], AsyncIterator[bytes]]]] = {
    "parquet": (PARQUET, parquet_pieces),
    "csv": (CSV, csv_pieces),
    "json": ("application/json", json_pieces),
}


class _Sink(io.BytesIO):
    """A buffer that is emptied when its content is sent; its position counts everything that was written."""

    _sent = 0

    def tell(self) -> int:
        return self._sent + super().tell()

    def take_written(self) -> bytes:
        """Everything since the last call."""
        written = self.getvalue()
        self._sent += len(written)
        self.seek(0)
        self.truncate()
        return written


class Export(StreamingResponse):
    """A long response that ends when its reader disconnects. An error cuts it off, so that it never seems whole.

    Starlette's StreamingResponse also waits for its disconnect listener, which a stalled reader can block.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all pieces."""
        gone = asyncio.create_task(self.listen_for_disconnect(receive))

        async def send_unless_gone(message: Message) -> None:
            if gone.done():
                raise ClientDisconnect
            await send(message)

        try:
            await self.stream_response(send_unless_gone)
        except (
            PriorveilError
        ):  # it was logged; without an end of the response, the server cuts the connection
            raise ClientDisconnect from None
        finally:
            gone.cancel()
