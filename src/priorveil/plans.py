"""Plans: a certified mechanism with everything needed to run it and to read its reports.

A plan is public and frozen. Its file is JSON with integers wherever a sampler or a certificate looks, its id is the
SHA-256 of its content, and loading one proves its certificate again.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil import documents as doc
from priorveil.certify import Certifiable, Certificate, certificate, within
from priorveil.channels import Channel
from priorveil.errors import InvalidInput, PlanError, UnknownVersion
from priorveil.estimates import ASSUMES, SUM, Estimate, Moments
from priorveil.mechanisms import MECHANISMS, Mechanism
from priorveil.mechanisms.arc_exposed import Exposing
from priorveil.mechanisms.randomness import BytesSource, Source, as_source
from priorveil.mechanisms.reading import Counted
from priorveil.notions import Known, Secrets
from priorveil.priors import Budget, Label, Prior
from priorveil.queries import Convex, Distribution, Query, Sum
from priorveil.tallies import Tally
from priorveil.values import Column, codes_of

VERSION = 1
FORMAT = "priorveil-plan"

METHODS = ("closed", "arc", "columns", "unary", "hashing")

_NOTHING = 1e-11  # a gain this small, relative to the error without reports, is rounding


@dataclass(frozen=True, eq=False)
class Plan:
    """What people run and how the curator reads it. Made by `design`, or read by `Plan.load`.

    `expected_mse` is per person, under the prior (at worst, over a set of priors); `lower_bound` is proven: no channel
    within the budget does better; `no_report` is the error of the prior alone.
    """

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

    @cached_property
    def channel(self) -> Channel:
        """The channel that is sampled, written out; raises `TooLarge` where it is implicit and huge.

        For arcs it is the channel to the cells of the tally: what estimates need, but it averages over the reports
        within a cell. Levels are measured on `exposed`.
        """
        return Channel(self.mechanism.matrix, self.labels)

    @cached_property
    def exposed(self) -> Channel:
        """A channel to measure levels on, under any prior and any secret: they are never below those of the reports.

        It is `channel`, except for arcs. There its columns are the reports at which LIP, LDP, DI and Pufferfish have
        their levels, so that those are exact (in floats); MIL and MIP are bounds from above.
        """
        if not isinstance(self.mechanism, Exposing):
            return self.channel
        matrix, reports = self.mechanism.exposed
        return Channel(matrix, self.labels, reports)

    @property
    def efficiency(self) -> float:
        """The proven share of the achievable gain: `(no report - expected) / (no report - lower bound)`.

        For `Distribution`, where no report means an infinite error, it is `lower bound / expected`.
        """
        if math.isinf(self.no_report):
            return self.lower_bound / self.expected_mse if self.expected_mse > 0 else 1.0
        achievable = self.no_report - self.lower_bound
        if achievable <= _NOTHING * self.no_report:
            return 1.0  # nothing can be gained beyond rounding, and nothing is lost
        return (self.no_report - self.expected_mse) / achievable

    @cached_property
    def identifiable(self) -> bool:
        """Whether reports alone determine the distribution. Where not, estimates lean on the prior."""
        return self.mechanism.identifies()

    @cached_property
    def id(self) -> str:
        """The SHA-256 of the plan's content."""
        if isinstance(self.query, Convex):  # a gain is code: the id is that of the rest
            return doc.content_id(self._described({"name": "Convex"}))
        return doc.content_id(self.document())

    # -- run -----------------------------------------------------------------------------------------------

    def privatize(
        self,
        values: Label | Column,
        rng: np.random.Generator | Source | None = None,
        missing: Literal["refuse", "pass"] = "refuse",
    ) -> Any:
        """The report of one value, or of a column of them.

        `values` are labels, or codes 0 to d - 1 where the labels are not themselves numbers. `rng=None` draws from the
        operating system; a numpy generator is for simulations only. A missing value is an error, or with
        `missing="pass"` stays missing (the result is then a masked array).
        """
        source = as_source(rng)
        if isinstance(values, str | int | np.integer | np.str_):
            codes, _ = codes_of([values], self.labels, "refuse")
            return self.mechanism.sample_one(int(codes[0]), source)
        codes, absent = codes_of(values, self.labels, missing)
        if absent is None:
            return self.mechanism.sample(codes, source)
        return _masked(self.mechanism.sample(codes, source), absent)

    def tally(
        self,
        reports: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        offsets: npt.ArrayLike | None = None,
        foreign: Literal["raise", "count"] = "raise",
    ) -> Tally:
        """Add reports up. `weights` and `offsets`, one per report, are the paper's `c_i` and `b_i` for a sum.

        A report that this plan cannot have made is an error; with `foreign="count"` it is left out and counted.
        """
        kept, chosen, refused = _sifted(self.mechanism, reports, foreign)
        weighted = None
        if weights is not None or offsets is not None:
            if not isinstance(self.query, Sum):
                raise InvalidInput(
                    "weights", type(self.query).__name__, "weights and offsets belong to a Sum"
                )
            c = _per_report("weights", 1.0 if weights is None else weights, chosen)
            b = _per_report("offsets", 0.0 if offsets is None else offsets, chosen)
            weighted = self.mechanism.weighted(kept, c, b)
        return Tally(self.id, self.mechanism.accumulate(kept), len(kept), refused, weighted)

    # -- read ----------------------------------------------------------------------------------------------

    def estimate(
        self,
        tally: Tally,
        method: Literal["mmse", "unbiased", "mle"] = "mmse",
        prior: Prior | Sequence[float] | None = None,
    ) -> Estimate:
        """What the tally says: a histogram in people, or a sum, by `mmse`, `unbiased` or `mle`.

        `prior` replaces the plan's where the curator knows more (a plan made for a set of priors, say).
        """
        if method not in ASSUMES:
            raise InvalidInput("method", method, "choose mmse, unbiased or mle")
        if tally.plan != self.id:
            raise InvalidInput("tally", tally.plan, f"it belongs to another plan than {self.id}")
        _require_shape(self.mechanism, tally)
        known = self.reference if prior is None else Prior.of(prior)
        if len(known) != len(self.labels):
            raise InvalidInput("prior", f"{len(known)} values", f"the plan has {len(self.labels)}")
        P = known.probabilities
        moments = self._moments(tally, method, P)
        return Estimate(
            values=moments.mean + self._offset(tally),
            std_error=np.sqrt(np.maximum(moments.variance, 0.0)),
            method=method,
            assumes=moments.assumes or ASSUMES[method],
            reports=tally.reports,
            labels=SUM if isinstance(self.query, Sum) else self.labels,
            prior_check=self.mechanism.prior_check(tally.counts, P),
            rounds=moments.rounds,
            converged=moments.converged,
            shortfall=moments.shortfall,
        )

    def _moments(self, tally: Tally, method: str, P: npt.NDArray[np.float64]) -> Moments:
        if not isinstance(self.query, Sum):
            population = isinstance(self.query, Distribution)
            return self.mechanism.answer(method, tally.counts, P, None, population)
        scores = self.query.weight * np.array(self.query.values)
        if tally.weighted is None:
            return self.mechanism.answer(method, tally.counts, P, scores, False)
        if method != "mmse":
            raise InvalidInput("method", method, "a tally with weights is read by mmse")
        return self.mechanism.weighted_answer(tally.weighted, P, scores)

    def _offset(self, tally: Tally) -> float:
        """What all the offsets add to a sum."""
        if not isinstance(self.query, Sum):
            return 0.0
        return self.query.offset * tally.reports + (tally.weighted.offset if tally.weighted else 0.0)

    # -- files ---------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The plan as JSON, without its id."""
        return self._described(doc.query_document(self.query))

    def _described(self, query: dict[str, Any]) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "labels": list(self.labels),
            "prior": doc.prior_document(self.prior),
            "secret": doc.secret_document(self.secret),
            "budget": doc.budget_document(self.budget),
            "notion": doc.notion_document(self.notion),
            "query": query,
            "mechanism": {"kind": self.mechanism.kind, **self.mechanism.parameters()},
            "certificate": doc.certificate_document(self.certificate),
            "expected_mse": doc.real(self.expected_mse),
            "lower_bound": doc.real(self.lower_bound),
            "no_report": doc.real(self.no_report),
            "method": self.method,
            "why": self.why,
        }

    def to_json(self) -> str:
        """The plan as the text of its file."""
        return json.dumps({"id": self.id, **self.document()}, ensure_ascii=False, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, all of it or nothing."""
        target = Path(path)
        draft = target.with_name(target.name + ".part")
        draft.write_text(self.to_json(), encoding="utf-8")
        draft.replace(target)

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan from a file, proving its certificate again."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise PlanError("file", f"not UTF-8 text: {error}") from error

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan; refused, with the field, if it is unknown, inconsistent, or leaks more than it says."""
        try:
            read = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise PlanError("file", f"not JSON: {error}") from error
        if not isinstance(read, dict) or read.get("format") != FORMAT:
            raise PlanError("format", f"not a plan: it should say {FORMAT!r}")
        if read.get("version") != VERSION:
            raise UnknownVersion(
                "version", f"{read.get('version')!r} is not known here; this priorveil reads {VERSION}"
            )
        return _proven(_assembled(read), read)

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"Plan({type(self.query).__name__.lower()} on {len(self.labels)} values, {self.method}, "
            f"LIP {c.lip:.4g}, LDP {c.ldp:.4g}, error {self.expected_mse:.4g}, efficiency {self.efficiency:.2%})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{k}</th><td>{html.escape(v)}</td></tr>"
            for k, v in self.summary()
        )
        return f"<table>{rows}</table>"

    def summary(self) -> list[tuple[str, str]]:
        """What a reader wants to see first, as pairs of words."""
        c = self.certificate
        return [
            ("query", type(self.query).__name__),
            ("values", str(len(self.labels))),
            ("method", f"{self.method}: {self.why}"),
            ("LIP, certified", f"{c.lip:.6g} (down {c.lip_lower:.6g}, up {c.lip_upper:.6g})"),
            ("LDP, whatever is known", f"{c.ldp:.6g}"),
            ("error without reports", f"{self.no_report:.6g}"),
            ("expected error", f"{self.expected_mse:.6g}"),
            ("proven lower bound", f"{self.lower_bound:.6g}"),
            ("efficiency", f"{self.efficiency:.2%}"),
            (
                "identifies the distribution",
                "yes" if self.identifiable else "no: estimates lean on the prior",
            ),
            ("id", "(cannot be saved)" if isinstance(self.query, Convex) else self.id),
        ]


def _masked(reports: npt.NDArray[Any], absent: npt.NDArray[np.bool_]) -> np.ma.MaskedArray[Any, Any]:
    """Reports with the rows of missing values masked, their content wiped."""
    wiped = np.where(absent.reshape(-1, *[1] * (reports.ndim - 1)), 0, reports).astype(reports.dtype)
    mask = np.broadcast_to(absent.reshape(-1, *[1] * (reports.ndim - 1)), reports.shape)
    return np.ma.MaskedArray(wiped, mask)


def _sifted(
    mechanism: Mechanism, reports: npt.ArrayLike, foreign: str
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_], dict[str, int]]:
    """The reports to count, which rows they are, and how many were left out for which reason."""
    if foreign not in ("raise", "count"):
        raise InvalidInput("foreign", foreign, "choose 'raise' or 'count'")
    column = reports.to_numpy() if hasattr(reports, "to_numpy") else reports
    missing = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
    rows = np.asarray(column)
    if rows.ndim == 0:
        raise InvalidInput(
            "reports", type(reports).__name__, "give a column of reports; of one, a list of one"
        )
    if rows.size == 0:  # an empty list has no shape of its own: take that of the reports of nobody
        rows = _nobody(mechanism)
    chosen = np.ones(len(rows), dtype=bool)
    refused: dict[str, int] = {}
    if missing is not None:
        chosen &= ~missing.reshape(len(rows), -1).any(axis=1)
        refused["missing"] = int((~chosen).sum())
    if foreign == "count":
        known = mechanism.accepts(rows)
        refused["foreign"] = int((chosen & ~known).sum())
        chosen &= known
    kept = rows if chosen.all() else rows[chosen]
    return kept, chosen, {reason: n for reason, n in refused.items() if n}


def _nobody(mechanism: Mechanism) -> npt.NDArray[Any]:
    """The reports of nobody, in the shape that reports have."""
    return mechanism.sample(np.empty(0, dtype=np.int64), BytesSource(b""))


def _require_shape(mechanism: Mechanism, tally: Tally) -> None:
    """Refuse a tally that this mechanism cannot have counted."""
    empty = mechanism.accumulate(_nobody(mechanism))
    counted = tally.counts.shape == empty.shape
    if counted and isinstance(mechanism, Counted):
        counted = int(tally.counts.sum()) == tally.reports
    if not counted:
        raise InvalidInput("tally", tally, "its counts are not those of this plan's reports")


def _per_report(
    argument: str, numbers: npt.ArrayLike, chosen: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """One finite number for each report that is counted."""
    given = np.asarray(numbers, dtype=np.float64)
    if given.shape not in ((), chosen.shape) or not np.isfinite(given).all():
        raise InvalidInput(
            argument, given.shape, f"give one finite number for each of the {len(chosen)} reports"
        )
    return np.broadcast_to(given, chosen.shape)[chosen]


def schema() -> dict[str, Any]:
    """The JSON Schema of plan files."""
    read: dict[str, Any] = json.loads(
        files("priorveil").joinpath("plan.schema.json").read_text(encoding="utf-8")
    )
    return read


def _assembled(read: dict[str, Any]) -> Plan:
    """A plan from its fields, none of them believed yet."""
    labels = doc.reading("labels", lambda: tuple(read["labels"]))
    prior = doc.reading("prior", lambda: doc.read_prior(read["prior"], labels))
    notion = doc.reading("notion", lambda: doc.read_notion(read["notion"]))
    kind = doc.reading("mechanism", lambda: MECHANISMS[read["mechanism"]["kind"]])
    number = {name: _number(read, name) for name in ("expected_mse", "lower_bound", "no_report")}
    claimed = doc.reading("certificate", lambda: dict(read["certificate"]))
    levels = {
        name: _number(claimed, name, "certificate") for name in ("lip_lower", "lip_upper", "ldp", "level")
    }
    return Plan(
        prior=prior,
        budget=doc.reading("budget", lambda: doc.read_budget(read["budget"])),
        query=doc.reading("query", lambda: doc.read_query(read["query"])),
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


def _proven(plan: Plan, read: dict[str, Any]) -> Plan:
    """The plan, if everything it says of itself is true."""
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
    if doc.content_id(read) != read.get("id") or plan.id != read.get("id"):
        raise PlanError("id", "the content is not what the id says: the file was changed")
    _require_errors(plan)
    return plan


def _require_consistent(plan: Plan) -> None:
    """Refuse fields that contradict each other."""
    if isinstance(plan.query, Sum) and len(plan.query.values) != len(plan.labels):
        raise PlanError("query", f"it has {len(plan.query.values)} values, the plan has {len(plan.labels)}")
    if plan.method not in METHODS:
        raise PlanError("method", f"it should be one of {', '.join(METHODS)}")


def _require_errors(plan: Plan) -> None:
    """Refuse errors that cannot be, and for a table under one prior those that are not so."""
    if not 0 <= plan.expected_mse <= plan.no_report * (1 + 1e-9) + 1e-12:
        raise PlanError(
            "expected_mse", "it lies outside what is possible: from zero to the error without reports"
        )
    if not isinstance(plan.prior, Prior):
        return
    if not _near(plan.no_report, plan.query.no_report(plan.prior)):
        raise PlanError("no_report", "it is not the error of the prior alone")
    if plan.mechanism.kind == "table" and not _near(
        plan.expected_mse, plan.query.error(plan.channel, plan.prior)
    ):
        raise PlanError("expected_mse", "it is not the error that the table has")


def _near(said: float, found: float) -> bool:
    return said == found or math.isclose(said, found, rel_tol=1e-6, abs_tol=1e-9)
