"""The API as an OpenAPI document: every operation in one table, and the schemas of all documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from priorveil.collect.campaign import FORMAT, LONGEST_TEXT, VERSION
from priorveil.collect.wire import ID_BYTES, JSON, LARGEST_REPORT, PACKED
from priorveil.curator.estimates import METHODS
from priorveil.curator.export import PARQUET
from priorveil.curator.responses import PROBLEM
from priorveil.curator.uploads import LARGEST_BATCH, Answer, Answers, Receipt
from priorveil.plans import schema as plan_schema

Json = dict[str, Any]
CONTENT_ID: Json = {"type": "string", "pattern": "^[0-9a-f]{64}$"}

_WHERE = "#/components/schemas/"
_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_TRUTH: Json = {"type": "boolean"}
_TIME: Json = {"type": ["string", "null"]}
_NUMBER: Json = {"type": ["number", "null"], "description": "null where there is none, or it is not finite"}
_LABELS: Json = {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1}
_STATE: Json = {"enum": ["not yet open", "open", "closed"]}


def _reference(name: str) -> Json:
    """A reference to one of the schemas.

    >>> _reference("Problem")
    {'$ref': '#/components/schemas/Problem'}
    """
    return {"$ref": _WHERE + name}


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
    return {status: (JSON, _reference(name)) for status in statuses or (200,)}


_UPLOADS: dict[str, Json] = {
    JSON: {"oneOf": [_reference("Answer"), _reference("Answers")]},
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
        takes={JSON: _reference("Campaign")},
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
    answers = {**operation.answers, **dict.fromkeys(problems, (PROBLEM, _reference("Problem")))}
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


def schemas() -> Json:
    """All schemas by name."""
    return {
        **_uploads(),
        **_plan(),
        "Campaign": _campaign(),
        "Created": _object(id=CONTENT_ID, url=_TEXT),
        "Status": _object(campaign=CONTENT_ID, state=_STATE, leans_on_prior=_TRUTH),
        "Summary": _summary(),
        "Campaigns": _object(campaigns=_list_of(_reference("Summary"))),
        "Counters": _object(campaign=CONTENT_ID, reports=_map_of(_COUNT), refused=_map_of(_COUNT)),
        **_estimates(),
        "Health": _object(status={"enum": ["ok", "ready"]}),
        "Problem": _object(type=_TEXT, title=_TEXT, status={"type": "integer"}, detail=_TEXT),
    }


def _object(**properties: Json) -> Json:
    """An object with all of these, and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def _map_of(values: Json) -> Json:
    return {"type": "object", "additionalProperties": values}


def _uploads() -> Json:
    """Reports and receipts, as they are read and written, with the bounds that types alone do not say."""
    _, made = msgspec.json.schema_components([Answer, Answers, Receipt], ref_template=_WHERE + "{name}")
    fields = made["Answer"]["properties"]
    fields["id"]["pattern"] = f"^[0-9a-fA-F]{{{2 * ID_BYTES}}}$"
    fields["plan"] = CONTENT_ID
    fields["report"] = {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": LARGEST_REPORT - 1},
            {"type": "string", "pattern": "^([0-9a-fA-F]{16})+$"},
        ]
    }
    made["Answers"]["properties"]["reports"]["maxItems"] = LARGEST_BATCH
    return dict(made)


def _plan() -> Json:
    """The schema of plans; its parts become schemas of their own."""
    whole = {name: part for name, part in plan_schema().items() if name not in ("$schema", "$id")}
    parts = whole.pop("$defs")
    named = {"Plan": whole, **{f"Plan.{name}": part for name, part in parts.items()}}
    moved: Json = _with_references(named)
    return moved


def _with_references(document: Any) -> Any:
    """The document with references to its own parts turned into ours."""
    if isinstance(document, list):
        return [_with_references(entry) for entry in document]
    if not isinstance(document, dict):
        return document
    return {
        key: f"{_WHERE}Plan.{value.removeprefix('#/$defs/')}" if key == "$ref" else _with_references(value)
        for key, value in document.items()
    }


def _campaign() -> Json:
    text = {"type": "string", "maxLength": LONGEST_TEXT}
    return _object(
        id=CONTENT_ID,
        format={"const": FORMAT},
        version={"const": VERSION},
        question={**text, "minLength": 1},
        labels=_LABELS,
        cohorts={**_map_of(_reference("Plan")), "minProperties": 1},
        opens=_TIME,
        closes=_TIME,
        smallest_count={**_COUNT, "maximum": LARGEST_REPORT - 1},
        contact=text,
    )


def _summary() -> Json:
    state = {"enum": [*_STATE["enum"], "damaged"]}  # damaged: it does not load from the store
    return _object(id=CONTENT_ID, question=_TEXT, cohorts=_list_of(_TEXT), state=state, closed=_TIME)


def _estimates() -> Json:
    """Estimates of each cohort, withheld or not, and of all together."""
    numbers = _list_of(_NUMBER)
    read = {
        "method": {"enum": ["mmse", "unbiased", "mle", "mixed"]},
        "assumes": _TEXT,
        "labels": _LABELS,
        "values": numbers,
        "std_error": numbers,
        "lower": numbers,
        "upper": numbers,
        "prior_check": _NUMBER,
        "converged": _TRUTH,
    }
    about = {
        "cohort": _TEXT,
        "plan": CONTENT_ID,
        "prior": _list_of({"type": "number"}),
        "identifiable": _TRUTH,
        "privacy": _object(lip=_NUMBER, lip_lower=_NUMBER, lip_upper=_NUMBER, ldp=_NUMBER),
        "reports": _COUNT,
    }
    shown = _object(**about, withheld={"const": False}, **read)
    withheld = _object(**about, withheld={"const": True})
    total = _object(reports=_COUNT, **read)
    whole = _object(
        campaign=CONTENT_ID,
        question=_TEXT,
        level={"type": "number"},
        smallest_count=_COUNT,
        leans_on_prior=_TRUTH,
        reports=_COUNT,
        cohorts=_list_of({"oneOf": [_reference("Shown"), _reference("Withheld")]}),
        total={"anyOf": [_reference("Total"), {"type": "null"}]},
        state=_STATE,
    )
    return {"Estimates": whole, "Shown": shown, "Withheld": withheld, "Total": total}
