"""The API as an OpenAPI document: `openapi.json`, with the schema of plans added."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from priorveil.plans import schema as plan_schema

_SCHEMAS = "#/components/schemas/"


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    text = (Path(__file__).parent / "openapi.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    plan = {name: part for name, part in plan_schema().items() if name not in ("$schema", "$id")}
    parts = plan.pop("$defs")
    named = {"Plan": plan, **{f"Plan.{name}": part for name, part in parts.items()}}
    found["components"]["schemas"] |= _point_to_schemas(named)
    return found


def _point_to_schemas(document: Any) -> Any:
    """The schema of plans with its references turned into those of the OpenAPI document."""
    if isinstance(document, list):
        return [_point_to_schemas(entry) for entry in document]
    if not isinstance(document, dict):
        return document
    return {
        key: f"{_SCHEMAS}Plan.{value.removeprefix('#/$defs/')}" if key == "$ref" else _point_to_schemas(value)
        for key, value in document.items()
    }


def methods_at(*paths: str) -> str:
    """The methods of these paths, as an `Allow` header lists them.

    >>> methods_at("/v1/campaigns")
    'GET, HEAD, POST'
    """
    found = {method.upper() for path in paths for method in document()["paths"].get(path, ())}
    return ", ".join(sorted(found | {"HEAD"} if "GET" in found else found))
