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
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from priorveil.channels import Channel
from priorveil.errors import InvalidInput, PlanError
from priorveil.files import atomic_write
from priorveil.mechanisms.arc_exposed import Exposing
from priorveil.mechanisms.moments import Moments
from priorveil.mechanisms.randomness import Source, as_source
from priorveil.plans.contents import Contents, plan_document, plan_id, proven
from priorveil.plans.contents import schema as schema
from priorveil.plans.estimate import ASSUMES, Estimate, weighted_moments
from priorveil.plans.reports import masked, per_report, require_shape, sifted
from priorveil.plans.tally import Tally, Weighted
from priorveil.plans.values import Column, codes_of
from priorveil.priors import Label, Prior

_NOTHING = 1e-11  # a gain this small, relative to the error without reports, is rounding


@dataclass(frozen=True, eq=False)
class Plan(Contents):
    """What people run and how the curator reads it. Made by `design`, or read by `Plan.load`.

    `expected_mse` is per person, under the prior (at worst, over a set of priors); `lower_bound` is one
    that no channel within the budget goes below, proven by `design` (of a plan that was loaded it is the author's word:
    a file holds no proof of it); `no_report` is the error of the prior alone.
    """

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
        return gain_share(self.expected_mse, self.lower_bound, self.no_report)

    @cached_property
    def identifiable(self) -> bool:
        """Whether reports alone determine the distribution. Where not, estimates lean on the prior."""
        return self.mechanism.identifies()

    @cached_property
    def id(self) -> str:
        """The SHA-256 of the plan's content."""
        return plan_id(self)

    def __eq__(self, other: object) -> bool:
        """The same content; a gain, which is code and in no id, has to be the same function."""
        if not isinstance(other, Plan):
            return NotImplemented
        return self.id == other.id and self.query == other.query

    def __hash__(self) -> int:
        return hash(self.id)

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
        return masked(self.mechanism.sample(codes, source), absent)

    def tally(
        self,
        reports: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        offsets: npt.ArrayLike | None = None,
        foreign: Literal["raise", "count"] = "raise",
    ) -> Tally:
        """Add reports up. `weights` and `offsets`, one per report, are the paper's `c_i` and `b_i`.

        With weights a sum is that of `c_i a(x_i) + b_i`, and a histogram adds up the weights of the people who have
        each value; offsets belong to a sum. A report that this plan cannot have made is an error; with
        `foreign="count"` it is left out and counted.
        """
        kept, chosen, refused = sifted(self.mechanism, reports, foreign)
        counts, weighted = self.mechanism.accumulate(kept), None
        if offsets is not None and self.query.kind != "sum":
            raise InvalidInput("offsets", self.query.kind, "offsets belong to a Sum")
        if weights is not None or offsets is not None:
            c = per_report("weights", 1.0 if weights is None else weights, chosen)
            b = per_report("offsets", 0.0 if offsets is None else offsets, chosen)
            weighted = Weighted(
                self.mechanism.weigh(kept, c),
                self.mechanism.weigh(kept, c**2),
                total=float(c.sum()),
                power=float(c @ c),
                least=float(c.min(initial=0.0)),
                offset=float(b.sum()),
            )
        return Tally(self.id, counts, len(kept), refused, weighted)

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
        if not isinstance(tally, Tally):
            raise InvalidInput("tally", type(tally).__name__, "add the reports up first: plan.tally(reports)")
        if tally.plan != self.id:
            raise InvalidInput("tally", tally.plan, f"it belongs to another plan than {self.id}")
        require_shape(self.mechanism, tally)
        known = self.reference if prior is None else Prior.of(prior)
        if len(known) != len(self.labels):
            raise InvalidInput("prior", f"{len(known)} values", f"the plan has {len(self.labels)}")
        P = known.align_to(self.labels).probabilities
        moments = self._moments(tally, method, P)
        return Estimate(
            values=moments.mean + self._offset(tally),
            std_error=np.sqrt(np.maximum(moments.variance, 0.0)),
            method=method,
            assumes=moments.assumes or ASSUMES[method],
            reports=tally.reports,
            labels=self.query.statistic_labels(self.labels),
            prior_check=self.mechanism.prior_check(tally.counts, P),
            rounds=moments.rounds,
            converged=moments.converged,
            shortfall=moments.shortfall,
            total=tally.weighted.total if tally.weighted else None,
        )

    def _moments(self, tally: Tally, method: str, P: npt.NDArray[np.float64]) -> Moments:
        population, rows = self.query.unbiased, self.query.rows(self.reference)
        if tally.weighted is None:
            return self.mechanism.answer(method, tally.counts, P, rows, population)
        return weighted_moments(self.mechanism, method, tally.weighted, tally.reports, P, rows, population)

    def _offset(self, tally: Tally) -> float:
        """What all the offsets add to a sum."""
        return self.query.offset * tally.reports + (tally.weighted.offset if tally.weighted else 0.0)

    # -- files ---------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The plan as JSON, without its id."""
        return plan_document(self)

    def to_json(self) -> str:
        """The plan as the text of its file."""
        return json.dumps({"id": self.id, **self.document()}, ensure_ascii=False, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, all of it or nothing; what stands there is replaced."""
        text = self.to_json()
        with atomic_write(Path(path), replace=True, argument="path") as file:
            file.write(text.encode())

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
        return cls(**vars(proven(text)))

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"Plan({self.query.kind} on {len(self.labels)} values, {self.method}, "
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
            ("query", self.query.kind),
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
            ("id", "(cannot be saved)" if self.query.kind == "convex" else self.id),
        ]


def gain_share(error: float, lower_bound: float, no_report: float) -> float:
    """The share of the achievable gain that an error has: `(no_report - error) / (no_report - lower_bound)`.

    For an infinite `no_report` it is `lower_bound / error`.

    >>> gain_share(error=3.0, lower_bound=2.0, no_report=6.0), gain_share(4.0, 3.0, math.inf)
    (0.75, 0.75)
    """
    if not (math.isfinite(error) and math.isfinite(lower_bound)):
        return 0.0  # nothing is proven yet
    if math.isinf(no_report):
        return lower_bound / error if error > 0 else 1.0
    achievable = no_report - lower_bound
    if achievable <= _NOTHING * no_report:
        return 1.0  # nothing can be gained beyond rounding, and nothing is lost
    return (no_report - error) / achievable
