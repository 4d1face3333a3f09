"""What a plan consists of, as a file: written once, believed only after proof.

Nothing about privacy has to be taken on trust: the certificate is worked out again from the integers of the sampler,
and the id from everything else. So is the expected error, under one prior and where that is quick; elsewhere it has to
be one that a channel within the budget can have. The lower bound is the author's word: `design` proves it, and a file
does not hold the proof.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from priorveil.certify import Certifiable, Certificate, certificate, within
from priorveil.errors import PlanError, UnknownVersion
from priorveil.mechanisms import MECHANISMS, Mechanism
from priorveil.notions import LDP, LIP, Known, Secrets
from priorveil.plans import document as doc
from priorveil.priors import Budget, Label, Prior, read_prior
from priorveil.queries import Query, read_query

VERSION = 1
FORMAT = "priorveil-plan"

METHODS = ("closed", "arc", "columns", "unary", "hashing")


@dataclass(frozen=True, eq=False)
class Contents:
    """The fields of a plan."""

    prior: Known
    budget: Budget
    query: Query
    mechanism: Mechanism
    certificate: Certificate
    notion: Certifiable
    secret: Secrets
    expected_mse: float
    lower_bound: float
    no_report: float
    method: str
    why: str

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the values."""
        return self.prior.labels

    @property
    def reference(self) -> Prior:
        """The prior, or the middle of the set of priors: what estimates use unless told better."""
        return self.prior if isinstance(self.prior, Prior) else self.prior.centre


def plan_document(plan: Contents) -> dict[str, Any]:
    """A plan as JSON, without its id."""
    doc.query_document(plan.query)
    return _described(plan)


def plan_id(plan: Contents) -> str:
    """The SHA-256 of a plan's content."""
    return doc.content_id(_described(plan))


def _described(plan: Contents) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "labels": list(plan.labels),
        "prior": plan.prior.document(),
        "secret": doc.secret_document(plan.secret),
        "budget": plan.budget.document(),
        "notion": doc.notion_document(plan.notion),
        "query": plan.query.document(),
        "mechanism": {"kind": plan.mechanism.kind, **plan.mechanism.parameters()},
        "certificate": doc.certificate_document(plan.certificate),
        "expected_mse": doc.real(plan.expected_mse),
        "lower_bound": doc.real(plan.lower_bound),
        "no_report": doc.real(plan.no_report),
        "method": plan.method,
        "why": plan.why,
    }


def schema() -> dict[str, Any]:
    """The JSON Schema of plan files."""
    read: dict[str, Any] = json.loads(
        files("priorveil").joinpath("plan.schema.json").read_text(encoding="utf-8")
    )
    return read


def proven(text: str) -> Contents:
    """The contents of a file, if everything it says of itself is true; else a `PlanError` that names the field."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanError("file", f"not JSON: {error}") from error
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise PlanError("format", f"not a plan: it should say {FORMAT!r}")
    if type(read.get("version")) is not int or read["version"] != VERSION:
        raise UnknownVersion(
            "version", f"{read.get('version')!r} is not known here; this priorveil reads {VERSION}"
        )
    doc.reading("file", lambda: doc.canonical(read))  # NaN and halves of characters have no canonical text
    plan = _assembled(read)
    _require_true(plan, read)
    return plan


def _assembled(read: dict[str, Any]) -> Contents:
    """The contents of a file, none of them believed yet."""
    labels = doc.reading("labels", lambda: Prior.uniform(list(read["labels"])).labels)
    prior = doc.reading("prior", lambda: read_prior(read["prior"], labels))
    notion = doc.reading("notion", lambda: doc.read_notion(read["notion"]))
    kind = doc.reading("mechanism", lambda: MECHANISMS[read["mechanism"]["kind"]])
    number = {name: _number(read, name) for name in ("expected_mse", "lower_bound", "no_report")}
    claimed = doc.reading("certificate", lambda: dict(read["certificate"]))
    levels = {
        name: _number(claimed, name, "certificate") for name in ("lip_lower", "lip_upper", "ldp", "level")
    }
    return Contents(
        prior=prior,
        budget=doc.reading("budget", lambda: Budget.read(read["budget"])),
        query=doc.reading("query", lambda: read_query(read["query"])),
        mechanism=doc.reading("mechanism", lambda: kind.read(read["mechanism"])),
        certificate=Certificate(str(claimed.get("notion")), **levels),
        notion=notion,
        secret=doc.reading("secret", lambda: doc.read_secret(read["secret"])),
        method=doc.reading("method", lambda: str(read["method"])),
        why=doc.reading("why", lambda: str(read["why"])),
        **number,
    )


def _number(read: dict[str, Any], name: str, field: str | None = None) -> float:
    return float(doc.reading(field or name, lambda: float(read[name])))


def _require_true(plan: Contents, read: dict[str, Any]) -> None:
    """Refuse a file that says anything of itself that is not so."""
    _require_consistent(plan)
    if plan.mechanism.size != len(plan.labels):
        raise PlanError(
            "mechanism", f"it is for {plan.mechanism.size} values, the plan has {len(plan.labels)}"
        )
    found = doc.reading("mechanism", lambda: plan.mechanism.lifts(plan.prior, plan.secret, plan.notion))
    if not within(found, plan.budget, plan.notion):
        raise PlanError("certificate", "the mechanism leaks more than its budget: do not run it")
    if certificate(found, plan.notion) != plan.certificate:
        raise PlanError("certificate", "it does not state the levels that the mechanism has")
    if not plan.lower_bound <= plan.expected_mse * (1 + 1e-9) + 1e-12:
        raise PlanError("lower_bound", "it lies above the expected error")
    if doc.content_id(read) != read.get("id") or plan_id(plan) != read.get("id"):
        raise PlanError("id", "the content is not what the id says: the file was changed")
    _require_errors(plan)


def _require_consistent(plan: Contents) -> None:
    """Refuse fields that contradict each other."""
    doc.reading("query", lambda: plan.query.require_fits(plan.reference))
    if plan.method not in METHODS:
        raise PlanError("method", f"it should be one of {', '.join(METHODS)}")


def _require_errors(plan: Contents) -> None:
    """Refuse errors that cannot be, and under one prior those that are quickly seen not to be so."""
    if not 0 <= plan.expected_mse <= plan.no_report * (1 + 1e-9) + 1e-12:
        raise PlanError(
            "expected_mse", "it lies outside what is possible: from zero to the error without reports"
        )
    if not isinstance(plan.prior, Prior):
        return
    # Probabilities are told apart down to a billionth: of a sum, that much of its largest square.
    slack = 1e-9 * plan.query.unit(plan.prior)
    if not _near(plan.no_report, plan.query.no_report(plan.prior), slack):
        raise PlanError("no_report", "it is not the error of the prior alone")
    found = plan.mechanism.error(plan.query, plan.prior)
    if found is not None and not _near(plan.expected_mse, found, slack):
        raise PlanError("expected_mse", "it is not the error that the mechanism has")
    if plan.secret is None and isinstance(plan.notion, LIP | LDP):  # what is LDP at a level is LIP at it
        least = plan.query.floor(plan.prior, plan.budget)
        if plan.expected_mse < least and not _near(plan.expected_mse, least, slack):
            raise PlanError("expected_mse", "no mechanism within the budget has an error as small")


def _near(said: float, found: float, slack: float) -> bool:
    return said == found or math.isclose(said, found, rel_tol=1e-6, abs_tol=slack)
