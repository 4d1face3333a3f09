"""The operations of the API: their routes, and the OpenAPI document, which follows from these and from structs."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from priorveil.curator.messages import Problem
from priorveil.curator.tokens import Role
from priorveil.device.wire import JSON
from priorveil.plans.structure import ContentId, Name, definitions

PROBLEM = "application/problem+json"
TEXT = {"type": "string"}
BINARY = {"type": "string", "format": "binary"}

Struct = type[msgspec.Struct]
Shape = Struct | tuple[Struct, ...] | Mapping[str, Any]  # a struct, one of several, or a schema
Endpoint = Callable[..., Awaitable[Response]]
E = TypeVar("E", bound=Endpoint)
Q = TypeVar("Q", bound=msgspec.Struct)

_SUCCEEDED = "The request succeeded."
_PROBLEMS = {401: "Unauthorized", 429: "TryLater", 503: "TryLater", 507: "TryLater"}
_HEADERS = {"Problem": [], "TryLater": ["Retry-After"], "Unauthorized": ["WWW-Authenticate"]}


@dataclass(frozen=True)
class Operation:
    """A method of a path. It decorates its endpoint, whose docstring is its summary.

    It sends and takes a struct as JSON, or shapes by media type. `roles` are those of the tokens that it needs;
    `optional` says that it does more for who has a token. `problems` are the statuses of its own errors: those of
    tokens, of reading a body and of the store follow from the rest. `refusal` is what status 422 sends.
    """

    method: str
    path: str
    sends: Struct | Mapping[str, Shape] | None = None
    takes: Struct | Mapping[str, Shape] | None = None
    query: Struct | None = None
    roles: tuple[Role, ...] = ()
    optional: bool = False
    statuses: tuple[int, ...] = (200,)
    location: bool = False  # whether what it creates has an address
    problems: tuple[int, ...] = ()
    refusal: type[Problem] = Problem
    name: str = ""  # that of the endpoint, unless that has several operations

    def __call__(self, endpoint: E) -> E:
        """Enter the operation into `OPERATIONS`."""
        OPERATIONS.append((self, endpoint))
        return endpoint

    @property
    def uses_store(self) -> bool:
        """Whether it needs the store, which may be unavailable or full."""
        return self.path.startswith("/v1/") and self.method != "OPTIONS"

    @property
    def all_problems(self) -> list[int]:
        """The statuses of all errors."""
        found = set(self.problems)
        if self.uses_store:
            found |= {503, 507} | ({404, 500} if "{id}" in self.path else set())
        if self.roles or self.optional:
            found |= {401, 403, 429}
        if self.takes:
            found |= {400, 408, 413, 429}
        if self.query:
            found |= {400}
        return sorted(found)


OPERATIONS: list[tuple[Operation, Endpoint]] = []  # of the curator, in the order of its methods


def read_query(request: Request, kind: type[Q]) -> Q:
    """The query of a request; a wrong parameter is refused by its name."""
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        problem, _, name = str(error).rstrip("`").partition(" - at `$.")
        [parameter] = [each for each in _query_parameters(kind) if each["name"] == name]
        choices = parameter["schema"].get("enum", ())
        advice = f"choose one of {', '.join(choices)}" if choices else problem[0].lower() + problem[1:]
        raise HTTPException(400, f"{name}: {advice}") from error


def openapi(operations: Iterable[tuple[Operation, Endpoint]], *others: Struct) -> dict[str, Any]:
    """The OpenAPI document of some operations, with `others` that their structs refer to by name."""
    structs: set[Struct] = {Problem, *others}
    paths: dict[str, dict[str, Any]] = {}
    for operation, endpoint in operations:
        for content in (operation.sends, operation.takes):
            for shape in _shapes(content).values():
                structs.update(
                    shape if isinstance(shape, tuple) else [shape] if isinstance(shape, type) else []
                )
        structs.add(operation.refusal)
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation_document(
            operation, endpoint
        )
    schemas = definitions(*sorted(structs, key=lambda struct: struct.__name__))
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "priorveil curator",
            "version": "1",
            "summary": "Statistics from people who keep their data.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"curator": {"type": "http", "scheme": "bearer"}},
            "responses": {
                name: {
                    "description": "A problem document.",
                    "content": {PROBLEM: {"schema": _schema(Problem)}},
                    "headers": {header: {"required": True, "schema": TEXT} for header in headers},
                }
                for name, headers in _HEADERS.items()
            },
        },
    }
    found: dict[str, Any] = json.loads(json.dumps(document).replace('"#/$defs/', '"#/components/schemas/'))
    return found


def _operation_document(operation: Operation, endpoint: Endpoint) -> dict[str, Any]:
    """One operation in words and schemas."""
    success: dict[str, Any] = {"description": _SUCCEEDED}
    if operation.sends is not None:
        success["content"] = _content(operation.sends)
    responses = {str(status): dict(success) for status in operation.statuses}
    if operation.location:
        responses["201"]["headers"] = {"Location": {"required": True, "schema": TEXT}}
    for status in operation.all_problems:
        responses[str(status)] = {"$ref": f"#/components/responses/{_PROBLEMS.get(status, 'Problem')}"}
    if operation.refusal is not Problem:
        content = {PROBLEM: {"schema": _schema(operation.refusal)}}
        responses["422"] = {"description": inspect.getdoc(operation.refusal), "content": content}
    document: dict[str, Any] = {
        "operationId": operation.name or endpoint.__name__,
        "summary": " ".join((inspect.getdoc(endpoint) or "").split()),
        "responses": responses,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation.query)],
    }
    if operation.takes is not None:
        document["requestBody"] = {"required": True, "content": _content(operation.takes)}
    if operation.roles or operation.optional:
        document["security"] = [*([{}] if operation.optional else []), {"curator": []}]
    return document


def _shapes(content: Struct | Mapping[str, Shape] | None) -> Mapping[str, Shape]:
    """What is sent or taken, by media type."""
    if content is None:
        return {}
    return content if isinstance(content, Mapping) else {JSON: content}


def _content(content: Struct | Mapping[str, Shape]) -> dict[str, Any]:
    return {media_type: {"schema": _schema(shape)} for media_type, shape in _shapes(content).items()}


def _schema(shape: Shape) -> dict[str, Any]:
    if isinstance(shape, tuple):
        return {"oneOf": [_schema(each) for each in shape]}
    return {"$ref": f"#/$defs/{shape.__name__}"} if isinstance(shape, type) else dict(shape)


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    found = []
    for name in re.findall(r"{(\w+)}", operation.path):
        is_id = name == "id" and operation.uses_store
        schema = msgspec.json.schema(ContentId if is_id else Name)
        found.append({"name": name, "in": "path", "required": True, "schema": schema})
    return found


def _query_parameters(query: Struct | None) -> list[dict[str, Any]]:
    if query is None:
        return []
    properties = msgspec.json.schema_components([query])[1][query.__name__]["properties"]
    return [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]
