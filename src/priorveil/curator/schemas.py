"""The documents that go over the wire, as JSON Schema, by name: what the OpenAPI document refers to."""

from __future__ import annotations

from typing import Any

import msgspec

from priorveil.collect.campaign import FORMAT, LONGEST_TEXT, VERSION
from priorveil.collect.wire import ID_BYTES, LARGEST_REPORT
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


def reference(name: str) -> Json:
    """A reference to one of the schemas.

    >>> reference("Problem")
    {'$ref': '#/components/schemas/Problem'}
    """
    return {"$ref": _WHERE + name}


def schemas() -> Json:
    """All schemas by name."""
    return {
        **_uploads(),
        **_plan(),
        "Campaign": _campaign(),
        "Created": _object(id=CONTENT_ID, url=_TEXT),
        "Status": _object(campaign=CONTENT_ID, state=_STATE, leans_on_prior=_TRUTH),
        "Summary": _summary(),
        "Campaigns": _object(campaigns=_list_of(reference("Summary"))),
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
        cohorts={**_map_of(reference("Plan")), "minProperties": 1},
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
        cohorts=_list_of({"oneOf": [reference("Shown"), reference("Withheld")]}),
        total={"anyOf": [reference("Total"), {"type": "null"}]},
        state=_STATE,
    )
    return {"Estimates": whole, "Shown": shown, "Withheld": withheld, "Total": total}
