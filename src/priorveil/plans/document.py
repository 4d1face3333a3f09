"""The nouns as JSON and back: what a plan file is made of.

Integers that a sampler or a certificate looks at, and all real numbers, are written as strings:
`"4611686018427387904"`, `"0.1"`. So a document has one canonical text (sorted keys, no spaces, UTF-8) in every
language, and its SHA-256 is its name. Strings of real numbers are Python's shortest ones, which read back to
the same float.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from priorveil.certify import Certifiable, Certificate
from priorveil.errors import InvalidInput, PlanError, PriorveilError
from priorveil.notions import DI, LDP, LIP, Pufferfish, Secrets, scenarios
from priorveil.priors import Secret
from priorveil.queries import Query

Json = Any  # a value of the json module


def canonical(document: Mapping[str, Json]) -> bytes:
    """The one text of a document.

    >>> canonical({"b": [1, "x"], "a": None})
    b'{"a":null,"b":[1,"x"]}'
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def content_id(document: Mapping[str, Json]) -> str:
    """The SHA-256 of a document's canonical text, without its own `id`.

    >>> content_id({"a": 1}) == content_id({"id": "anything", "a": 1})
    True
    """
    return hashlib.sha256(canonical({k: v for k, v in document.items() if k != "id"})).hexdigest()


def real(number: float) -> str:
    """A float as a string that reads back to the same float.

    >>> real(0.1), real(float("inf"))
    ('0.1', 'inf')
    """
    return repr(float(number))


def reading(field: str, read: Callable[[], Any]) -> Any:
    """What `read` returns; whatever goes wrong in it is a `PlanError` that names the field."""
    try:
        return read()
    except PlanError:
        raise
    except PriorveilError as error:
        raise PlanError(field, str(error)) from error
    except RecursionError:
        raise PlanError(field, "it is nested too deeply") from None
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError) as error:
        raise PlanError(field, f"cannot be read ({type(error).__name__}: {error})") from error


def secret_document(secret: Secrets) -> Json:
    """The secrets, as JSON: one entry per scenario, none if the value itself is the secret."""
    if secret is None:
        return None
    return [scenario.document() for scenario in scenarios(secret)]


def read_secret(document: Json) -> Secrets:
    """The secrets, from JSON."""
    if document is None:
        return None
    if not isinstance(document, list) or not document:
        raise ValueError("give a list of secrets, or null if the value itself is the secret")
    secrets = [Secret.read(scenario) for scenario in document]
    return secrets[0] if len(secrets) == 1 else secrets


def notion_document(notion: Certifiable) -> Json:
    """The notion, as JSON."""
    pairs = notion.pairs if isinstance(notion, Pufferfish) else None
    return {
        "name": type(notion).__name__,
        **({"pairs": [list(p) for p in pairs]} if pairs is not None else {}),
    }


def read_notion(document: Json) -> Certifiable:
    """The notion, from JSON."""
    plain: dict[str, Certifiable] = {"LIP": LIP(), "LDP": LDP(), "DI": DI()}
    if document["name"] == "Pufferfish":
        return Pufferfish(document.get("pairs"))
    return plain[document["name"]]


def query_document(query: Query) -> Json:
    """The query, as JSON; a convex gain is code, which no file should carry."""
    if query.kind == "convex":
        raise InvalidInput("query", query, "a plan for a user-given gain cannot be saved: the gain is code")
    return query.document()


def certificate_document(certificate: Certificate) -> Json:
    """The certificate, as JSON."""
    c = certificate
    levels = {"lip_lower": c.lip_lower, "lip_upper": c.lip_upper, "ldp": c.ldp, "level": c.level}
    return {"notion": c.notion, **{name: real(level) for name, level in levels.items()}}
