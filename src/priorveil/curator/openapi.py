"""The API as an OpenAPI document: `openapi.json`, with the schema of plans added."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from priorveil.plans import schema as plan_schema


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    text = (Path(__file__).parent / "openapi.json").read_text(encoding="utf-8")
    description: dict[str, Any] = json.loads(text)
    plan = json.loads(json.dumps(plan_schema()).replace('"#/$defs/', '"#/components/schemas/Plan.'))
    parts = {f"Plan.{name}": part for name, part in plan.pop("$defs").items()}
    del plan["$schema"], plan["$id"]
    description["components"]["schemas"] |= {"Plan": plan, **parts}
    return description


def methods_at(*paths: str) -> str:
    """The methods of these paths, as an `Allow` header lists them.

    >>> methods_at("/v1/campaigns")
    'GET, HEAD, POST'
    """
    methods = {method.upper() for path in paths for method in document()["paths"].get(path, ())}
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))
