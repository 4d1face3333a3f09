"""The API as an OpenAPI document: every route in one table, with the schemas of the wire formats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from priorveil.campaigns import ID_BYTES, LARGEST_REPORT
from priorveil.curator.bodies import JSON, LARGEST_BATCH, PACKED, Answer, Answers, Receipt
from priorveil.curator.exports import PARQUET
from priorveil.curator.problems import PROBLEM
from priorveil.curator.readings import METHODS

Json = dict[str, Any]
_ANY: Json = {"type": "object"}


@dataclass(frozen=True)
class Operation:
    """One route: what it does, who may, what it takes and what it answers."""

    method: str
    path: str
    name: str
    summary: str
    answers: dict[int, tuple[str, Json]]
    problems: tuple[int, ...] = ()
    curator: bool = False
    takes: dict[str, Json] | None = None
    asks: tuple[Json, ...] = ()


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


_UPLOADS: dict[str, Json] = {
    JSON: {"oneOf": [_reference("Answer"), _reference("Answers")]},
    PACKED: {"type": "string", "format": "binary"},
}
_LEVEL = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.95}
_ASKS: tuple[Json, ...] = (
    {"name": "method", "in": "query", "schema": {"enum": list(METHODS), "default": "auto"}},
    {"name": "level", "in": "query", "schema": _LEVEL},
)
_CAMPAIGN = "/v1/campaigns/{id}"
_OK = {200: ("application/json", _ANY)}

OPERATIONS = (
    Operation("get", _CAMPAIGN, "campaign", "The campaign: public, the same for ever.", _OK, (404,)),
    Operation("get", f"{_CAMPAIGN}/status", "status", "Whether it takes reports now.", _OK, (404,)),
    Operation(
        "post",
        f"{_CAMPAIGN}/reports",
        "upload",
        "Send one or many reports. Answered when they are durable; sending again counts nothing twice.",
        {200: ("application/json", _reference("Receipt"))},
        (400, 404, 408, 413, 415, 429, 503, 507),
        takes=_UPLOADS,
    ),
    Operation("get", "/v1/campaigns", "campaigns", "All campaigns.", _OK, curator=True),
    Operation(
        "post",
        "/v1/campaigns",
        "create",
        "Put up a campaign; its certificates are proven again.",
        {200: ("application/json", _ANY), 201: ("application/json", _ANY)},
        (400, 408, 413, 422, 503, 507),
        curator=True,
        takes={JSON: _ANY},
    ),
    Operation(
        "post", f"{_CAMPAIGN}/close", "close", "Take no more reports.", _OK, (404, 503, 507), curator=True
    ),
    Operation(
        "get",
        f"{_CAMPAIGN}/estimates",
        "estimates",
        "What the reports say.",
        _OK,
        (400, 404, 409),
        True,
        asks=_ASKS,
    ),
    Operation("get", f"{_CAMPAIGN}/counters", "counters", "Reports and refusals.", _OK, (404,), curator=True),
    Operation(
        "get",
        f"{_CAMPAIGN}/reports",
        "export",
        "All reports as a Parquet file.",
        {200: (PARQUET, {"type": "string", "format": "binary"})},
        (404,),
        curator=True,
    ),
    Operation("get", "/healthz", "health", "The process answers.", _OK),
    Operation("get", "/readyz", "ready", "Reports can be stored.", _OK, (503, 507)),
    Operation("get", "/metrics", "metrics", "For Prometheus.", {200: ("text/plain", {"type": "string"})}),
    Operation("get", "/openapi.json", "openapi", "This document.", _OK),
)


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
            "schemas": _schemas(),
            "securitySchemes": {"curator": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation) -> Json:
    problems = operation.problems + ((401,) if operation.curator else ())
    answers = {
        str(s): {"description": "", "content": {kind: {"schema": of}}}
        for s, (kind, of) in operation.answers.items()
    }
    problem = {"description": "A problem document.", "content": {PROBLEM: {"schema": _reference("Problem")}}}
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {**answers, **{str(status): problem for status in sorted(problems)}},
    }
    identity = {
        "name": "id",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    }
    asks = [*([identity] if "{id}" in operation.path else []), *operation.asks]
    if asks:
        described["parameters"] = asks
    if operation.takes:
        content = {kind: {"schema": schema} for kind, schema in operation.takes.items()}
        described["requestBody"] = {"required": True, "content": content}
    if operation.curator:
        described["security"] = [{"curator": []}]
    return described


def _schemas() -> Json:
    """The wire formats, with the bounds that types alone do not say."""
    _, schemas = msgspec.json.schema_components(
        [Answer, Answers, Receipt], ref_template="#/components/schemas/{name}"
    )
    fields = schemas["Answer"]["properties"]
    fields["id"]["pattern"] = f"^[0-9a-fA-F]{{{2 * ID_BYTES}}}$"
    fields["plan"]["pattern"] = "^[0-9a-f]{64}$"
    fields["report"] = {
        "anyOf": [{"type": "integer", "minimum": 0, "maximum": LARGEST_REPORT - 1}, {"type": "string"}]
    }
    schemas["Answers"]["properties"]["reports"]["maxItems"] = LARGEST_BATCH
    text = {"type": "string"}
    problem = {"type": text, "title": text, "status": {"type": "integer"}, "detail": text}
    schemas["Problem"] = {"type": "object", "properties": problem, "required": list(problem)}
    return dict(schemas)
