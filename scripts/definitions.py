"""Write clients/js/src/definitions.js: the schemas by which the JavaScript client checks the structure of documents.

They follow from the structs of the package, without words. A keyword that structure.js does not check is refused here.
A form in a campaign and a plan in a form are checked by their own readers, as in Python.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from priorveil.plans.structure import FormDocument, PlanDocument, definitions
from priorveil.questions.structure import CampaignDocument, CampaignTexts

TARGET = Path(__file__).resolve().parent.parent / "clients" / "js" / "src" / "definitions.js"
HEAD = """\
// The schemas of documents, from the structs of the Python package. Made by `make bundle`.

/** @type {Record<string, any>} */
export const DEFINITIONS = {
"""
WORDS = {"title", "description"}
CHECKED = {
    "$ref", "additionalProperties", "anyOf", "discriminator", "enum", "items", "maximum", "maxLength", "minimum",
    "minItems", "minLength", "minProperties", "not", "pattern", "properties", "propertyNames", "required", "type",
    "uniqueItems",
}  # fmt: skip
READ_APART = {f"#/$defs/{structure.__name__}" for structure in (PlanDocument, FormDocument)}


def checked(schema: Any) -> Any:
    """A schema without words."""
    if not isinstance(schema, dict):
        return schema
    if unknown := set(schema) - WORDS - CHECKED:
        raise ValueError(f"structure.js does not check {', '.join(sorted(unknown))}")
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "properties":
            found[keyword] = {name: checked(part) for name, part in value.items()}
        elif keyword == "anyOf":
            found[keyword] = list(map(checked, value))
        elif keyword in ("items", "additionalProperties", "propertyNames", "not"):
            found[keyword] = checked(value)
        elif keyword not in WORDS and not (keyword == "$ref" and value in READ_APART):
            found[keyword] = value
    return found


def schemas() -> dict[str, Any]:
    """The schemas of documents and their parts, by name."""
    return definitions(PlanDocument, FormDocument, CampaignDocument, CampaignTexts)


def module() -> str:
    """The text of definitions.js."""
    lines = [f"  {name}: {json.dumps(checked(schema))},\n" for name, schema in schemas().items()]
    return HEAD + "".join(lines) + "};\n"


def main() -> int:
    TARGET.write_text(module(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
