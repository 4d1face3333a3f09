"""The API as an OpenAPI document: every route in one table; the schemas are in `schemas`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from priorveil.collect.wire import JSON, PACKED
from priorveil.curator.exports import PARQUET
from priorveil.curator.problems import PROBLEM
from priorveil.curator.readings import METHODS
from priorveil.curator.schemas import CONTENT_ID, Json, reference, schemas

_BINARY: Json = {"type": "string", "format": "binary"}
_HTML = ("text/html", {"type": "string"})


@dataclass(frozen=True)
class Operation:
    """One route: what it does, who may, what it takes and what it answers; `any_id`: whatever the id is."""

    method: str
    path: str
    name: str
    summary: str
    answers: dict[int, tuple[str, Json] | None]
    problems: tuple[int, ...] = ()
    curator: bool = False
    takes: dict[str, Json] = field(default_factory=dict)
    asks: tuple[Json, ...] = ()
    any_id: bool = False


def _json(name: str, *statuses: int) -> dict[int, tuple[str, Json] | None]:
    """An answer in JSON by the name of its schema."""
    return {status: (JSON, reference(name)) for status in statuses or (200,)}


_UPLOADS: dict[str, Json] = {
    JSON: {"oneOf": [reference("Answer"), reference("Answers")]},
    PACKED: _BINARY,
}
_LEVEL = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.95}
_ASKS: tuple[Json, ...] = (
    {"name": "method", "in": "query", "schema": {"enum": list(METHODS), "default": "auto"}},
    {"name": "level", "in": "query", "schema": _LEVEL},
)
_CAMPAIGN = "/v1/campaigns/{id}"
_KNOWN = (404, 500, 503)  # what may be wrong with a campaign: not there, damaged, out of reach
_WRITE = (503, 507)

OPERATIONS = (
    Operation("get", _CAMPAIGN, "campaign", "The campaign: the same for ever.", _json("Campaign"), _KNOWN),
    Operation("get", f"{_CAMPAIGN}/status", "status", "Whether it takes reports.", _json("Status"), _KNOWN),
    Operation(
        "post",
        f"{_CAMPAIGN}/reports",
        "upload",
        "Send one or many reports. Answered when they are durable; sending again counts nothing twice.",
        _json("Receipt"),
        (400, *_KNOWN, 408, 413, 415, 429, 507),
        takes=_UPLOADS,
    ),
    Operation(
        "options", f"{_CAMPAIGN}/reports", "preflight", "Any page may send reports.", {204: None}, any_id=True
    ),
    Operation("get", "/v1/campaigns", "campaigns", "All of them.", _json("Campaigns"), (503,), curator=True),
    Operation(
        "post",
        "/v1/campaigns",
        "create",
        "Put up a campaign; its certificates are proven again.",
        _json("Created", 200, 201),
        (400, 408, 413, 422, *_WRITE),
        curator=True,
        takes={JSON: reference("Campaign")},
    ),
    Operation(
        "post",
        f"{_CAMPAIGN}/close",
        "close",
        "Take no more reports.",
        _json("Summary"),
        (*_KNOWN, 507),
        curator=True,
    ),
    Operation(
        "get",
        f"{_CAMPAIGN}/estimates",
        "estimates",
        "What the reports say.",
        _json("Estimates"),
        (400, *_KNOWN, 409),
        curator=True,
        asks=_ASKS,
    ),
    Operation(
        "get",
        f"{_CAMPAIGN}/counters",
        "counters",
        "Reports and refusals.",
        _json("Counters"),
        _KNOWN,
        curator=True,
    ),
    Operation(
        "get",
        f"{_CAMPAIGN}/reports",
        "export",
        "All reports as a Parquet file.",
        {200: (PARQUET, _BINARY)},
        _KNOWN,
        curator=True,
    ),
    Operation("get", "/healthz", "health", "The process answers.", _json("Health")),
    Operation("get", "/readyz", "ready", "Reports can be stored.", _json("Health"), _WRITE),
    Operation("get", "/metrics", "metrics", "For Prometheus.", {200: ("text/plain", {"type": "string"})}),
    Operation("get", "/openapi.json", "openapi", "This document.", {200: (JSON, {"type": "object"})}),
    Operation("get", "/", "start", "The first page.", {200: _HTML}),
    Operation("get", "/dashboard", "dashboard", "The curator's page.", {200: _HTML}),
    Operation("get", "/answer/{id}", "answer", "The respondent's page.", {200: _HTML}, any_id=True),
    Operation("get", "/static/{name}", "asset", "What pages load.", {200: ("*/*", _BINARY)}, (404,)),
)
_HEADERS = {
    201: "Location",
    401: "WWW-Authenticate",
    429: "Retry-After",
    503: "Retry-After",
    507: "Retry-After",
}


@cache
def document() -> Json:
    """The OpenAPI document."""
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "priorveil curator",
            "version": "1",
            "summary": "Statistics from people who keep their data.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"curator": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation) -> Json:
    problems = operation.problems + ((401,) if operation.curator else ())
    answers = {**operation.answers, **dict.fromkeys(problems, (PROBLEM, reference("Problem")))}
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {str(status): _answer(status, answers[status]) for status in sorted(answers)},
    }
    asks = [*_places(operation), *operation.asks]
    if asks:
        described["parameters"] = asks
    if operation.takes:
        content = {kind: {"schema": schema} for kind, schema in operation.takes.items()}
        described["requestBody"] = {"required": True, "content": content}
    if operation.curator:
        described["security"] = [{"curator": []}]
    return described


def _answer(status: int, content: tuple[str, Json] | None) -> Json:
    described: Json = {"description": "A problem document." if status >= 400 else "As asked."}
    if content is not None:
        described["content"] = {content[0]: {"schema": content[1]}}
    if status in _HEADERS:
        described["headers"] = {_HEADERS[status]: {"required": True, "schema": {"type": "string"}}}
    return described


def _places(operation: Operation) -> list[Json]:
    """What stands in braces in the path."""
    text = {"type": "string", "minLength": 1}
    schemas = {"id": text if operation.any_id else CONTENT_ID, "name": text}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name, schema in schemas.items()
        if f"{{{name}}}" in operation.path
    ]


def methods_at(*paths: str) -> str:
    """The methods of these paths, as an `Allow` header lists them.

    >>> methods_at("/v1/campaigns")
    'GET, HEAD, POST'
    """
    found = {operation.method.upper() for operation in OPERATIONS if operation.path in paths}
    return ", ".join(sorted(found | {"HEAD"} if "GET" in found else found))
