"""The plan file: the documents of its parts put together, versioned, hashed, and proven on loading.

Integers that a sampler or a certificate looks at, and all real numbers, are written as strings
(`"4611686018427387904"`, `"0.1"`), so that a document has one canonical text in every language: sorted keys, no
spaces, UTF-8. Its SHA-256 is the plan's id. The strings of real numbers are Python's shortest ones, which read back
to the same float.

Nothing about privacy is taken on trust. Loading computes the certificate again from the integers of the sampler, and
the id from all the rest. It also computes the expected error, under one prior and where that is quick; elsewhere it
checks that a channel within the budget can have such an error. The lower bound is stated by the author and not
proven: `design` proves it, and a file does not hold the proof.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from priorveil.certify import Certificate, certificate, keeps_budget
from priorveil.errors import InvalidInput, PlanError, PriorveilError, UnknownVersion, short_repr
from priorveil.mechanisms import Mechanism, read_mechanism
from priorveil.named_classes import require_own_document
from priorveil.notions import Cone, Secrets, read_notion, scenarios
from priorveil.plans.plan_data import PlanData
from priorveil.plans.structure import (
    PARAMETERS,
    Document,
    PlanDocument,
    definitions,
    edition,
    require_structure,
)
from priorveil.priors import Budget, Prior, PriorSet, Secret
from priorveil.priors.joint import read_domain
from priorveil.queries import Query, read_query
from priorveil.reading.rounding import expected_rounding

Json = Any  # a value of the json module


def canonical(document: Mapping[str, Json]) -> bytes:
    """The canonical text of a document.

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


def schema() -> dict[str, Any]:
    """The JSON Schema of plan files."""
    parts = definitions(PlanDocument)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:priorveil:plan:1"}
    return {**head, **parts.pop("PlanDocument"), "$defs": parts}


def plan_document(plan: PlanData) -> dict[str, Any]:
    """A plan as JSON, without its id; only plans for sets of priors have a `reading_prior`."""
    reading_prior = {} if plan.reading_prior is None else {"reading_prior": plan.reading_prior.document()}
    return {
        **edition(PlanDocument),
        "labels": plan.domain.document(),
        "prior": plan.prior.document(),
        "secret": None if plan.secret is None else [s.document() for s in scenarios(plan.secret)],
        "budget": plan.budget.document(),
        "notion": plan.notion.document(),
        "query": plan.query.document(),
        "mechanism": {"kind": plan.mechanism.kind, **plan.mechanism.parameters()},
        "certificate": plan.certificate.document(),
        "expected_mse": repr(float(plan.expected_mse)),
        "lower_bound": repr(float(plan.lower_bound)),
        "no_report": repr(float(plan.no_report)),
        "method": plan.method,
        "why": plan.why,
        **reading_prior,
    }


def require_readable(plan: PlanData) -> None:
    """Refuse to write a plan that would be read with another notion, query or mechanism than it has."""
    if not plan.query.savable:
        raise InvalidInput(
            "query", plan.query, "a plan for a user-given gain cannot be saved: the gain is code"
        )
    notion, query = plan.notion.document()["name"], plan.query.document()["name"]
    require_own_document(type(plan.notion), Cone.by_name[notion], "document", "notion")
    require_own_document(type(plan.query), Query.by_name[query], "document", "query")
    kind = plan.mechanism.kind
    require_own_document(type(plan.mechanism), Mechanism.by_kind[kind], "parameters", "mechanism")


def parse(text: str | bytes, structure: type[Document], source: str) -> Json:
    """What the JSON in the text of a file says; a `PlanError` if it is none.

    `source` is what writes documents of this struct, for the error.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanError("file", f"{_not_this(structure, source)} (not JSON: {error})") from error


def require_document(document: Json, structure: type[Document], source: str) -> dict[str, Any]:
    """The document, if it is of the format, the version and the structure of a struct; otherwise a `PlanError`."""
    format, supported = edition(structure).values()
    stated = document.get("format") if isinstance(document, dict) else None
    if stated != format:
        told = "" if stated is None else f" (format {short_repr(stated)})"
        raise PlanError("file", _not_this(structure, source) + told)
    read_field("file", lambda: canonical(document))  # NaN and half surrogates have no canonical text
    version = document.get("version")
    if type(version) is not int or version != supported:
        unknown = f"version {short_repr(version)} is not supported; this release reads version {supported}"
        newer = isinstance(version, int) and version > supported
        advice = "update priorveil" if newer else f"make the file again with {source}"
        raise UnknownVersion("version", f"{unknown}: {advice}")
    read_field("file", lambda: require_structure(document, structure))
    return dict(document)


def _not_this(structure: type[Document], source: str) -> str:
    noun = str(edition(structure)["format"]).removeprefix("priorveil-")
    return f"this is not a {noun}: give the file that {source} wrote"


def read_fields(document: Mapping[str, Json]) -> dict[str, Any]:
    """Read the fields of a plan from its JSON document; nothing is proven yet."""
    domain = read_field("labels", lambda: read_domain(document["labels"]))
    readers: dict[str, Callable[[Json], Any]] = {
        "prior": lambda prior: (Prior if prior["kind"] == "fixed" else PriorSet).read(prior, domain),
        "secret": _read_secret,
        "budget": Budget.read,
        "notion": read_notion,
        "query": read_query,
        "mechanism": _read_mechanism,
        "certificate": Certificate.read,
        "expected_mse": float,
        "lower_bound": float,
        "no_report": float,
        "method": str,
        "why": str,
        "reading_prior": lambda prior: prior and Prior.read(prior, domain),
    }

    def read(field: str) -> Any:
        return read_field(field, lambda: readers[field](document.get(field)))

    return {field: read(field) for field in readers}


def read_field(field: str, read: Callable[[], Any]) -> Any:
    """`read()`; whatever fails in it is a `PlanError` that names the field."""
    try:
        return read()
    except PlanError:
        raise
    except PriorveilError as error:
        raise PlanError(field, str(error)) from error
    except RecursionError:
        raise PlanError(field, "it is nested too deeply") from None
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise PlanError(field, f"cannot be read ({type(error).__name__}: {error})") from error


def _read_secret(document: Json) -> Secrets:
    if document is None:
        return None
    first, *others = map(Secret.read, document)
    return [first, *others] if others else first


def _read_mechanism(document: Json) -> Mechanism:
    if (kind := document["kind"]) in PARAMETERS:
        require_structure(document, PARAMETERS[kind], "mechanism")
    return read_mechanism(document)


def prove(plan: PlanData, document: Mapping[str, Json]) -> None:
    """Raise a `PlanError` that names the field if the document states anything about the plan that is not true."""
    read_field("query", lambda: plan.query.require_fits(plan.reference))
    _prove_reading_prior(plan)
    if plan.mechanism.size != len(plan.labels):
        sizes = f"it is for {plan.mechanism.size} values, the plan has {len(plan.labels)}"
        raise PlanError("mechanism", sizes)
    lifts = read_field("mechanism", lambda: plan.mechanism.lifts(plan.prior, plan.secret, plan.notion))
    if not keeps_budget(lifts, plan.budget, plan.notion):
        raise PlanError("certificate", "the mechanism leaks more than its budget: do not run it")
    if certificate(lifts, plan.notion) != plan.certificate:
        raise PlanError("certificate", "the stated levels are not those of the mechanism")
    if not plan.lower_bound <= plan.expected_mse * (1 + 1e-9) + 1e-12:
        raise PlanError("lower_bound", "it lies above the expected error")
    if not content_id(document) == content_id(plan_document(plan)) == document.get("id"):
        raise PlanError("id", "the id does not match the content: the file was changed")
    _prove_errors(plan)


def _prove_reading_prior(plan: PlanData) -> None:
    """Refuse a reading prior that no design has: estimates would lean on a prior that nobody stated."""
    if plan.reading_prior is None:
        if isinstance(plan.prior, PriorSet) and not plan.query.unbiased:
            raise PlanError(
                "reading_prior", "a query that leans on a set of priors is read at one prior: name it"
            )
        return
    if isinstance(plan.prior, Prior):
        raise PlanError("reading_prior", "it belongs to a set of priors, and this plan has one prior")
    if not plan.prior.encloses(plan.reading_prior):
        raise PlanError("reading_prior", "it lies outside the set of priors of the plan")


def _prove_errors(plan: PlanData) -> None:
    """Refuse errors that are impossible, and under one prior those that are quickly found to be wrong."""
    if not 0 <= plan.expected_mse <= plan.no_report * (1 + 1e-9) + 1e-12:
        raise PlanError("expected_mse", "it should lie between zero and the error without reports")
    if not isinstance(plan.prior, Prior):
        return
    # Probabilities differ from their floats by less than a billionth.
    slack = 1e-9 * plan.query.unit(plan.prior)

    def near(stated: float, computed: float) -> bool:
        return stated == computed or math.isclose(stated, computed, rel_tol=1e-6, abs_tol=slack)

    if not near(plan.no_report, plan.query.no_report(plan.prior)):
        raise PlanError("no_report", "it is not the error of the prior alone")
    error = plan.reader.error(plan.query, plan.prior)
    if error is not None and not near(
        plan.expected_mse, error + expected_rounding(plan.reader, plan.query, plan.prior)
    ):
        raise PlanError("expected_mse", "it is not the error that the mechanism has")
    if plan.secret is None and plan.notion.implies_lip:
        least = plan.query.closed_form_bound(plan.prior, plan.budget)
        if plan.expected_mse < least and not near(plan.expected_mse, least):
            raise PlanError("expected_mse", "no mechanism within the budget has an error as small")
