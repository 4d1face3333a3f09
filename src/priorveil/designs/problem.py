"""A design problem: what is known, what may leak, what is asked; and the certified plans that answer it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from priorveil import certify
from priorveil.arrays import Array
from priorveil.certify import Certificate
from priorveil.channels import Channel
from priorveil.designs import robust
from priorveil.designs.relaxation import factor_above, ldp_histogram_bound
from priorveil.errors import CertificateError, Hint, Infeasible, InvalidInput, TooLarge
from priorveil.mechanisms import Mechanism, Table
from priorveil.notions import CONES, LIP, Cone, Known, Secrets, as_known, scenarios
from priorveil.plans import Plan
from priorveil.priors import Budget, Prior, PriorSet
from priorveil.queries import QUERIES, Query

# How far a float computation of a bound may be off, relatively: bounds are lowered by this.
SLACK = 1e-12
# For a table with many entries the exact check takes long, and mixing this much beforehand makes it pass at once.
_MANY_ENTRIES, _MIXED = 200_000, 1e-11
_ENTRIES = 4_000_000  # tables with more entries are not written out


@dataclass(frozen=True)
class Problem:
    """What is known, what may leak and what is asked."""

    prior: Known
    budget: Budget
    query: Query
    secret: Secrets
    notion: Cone

    @classmethod
    def of(
        cls,
        prior: Known | Sequence[float],
        epsilon: float | Budget,
        query: Query,
        secret: Secrets = None,
        notion: Cone | None = None,
    ) -> Problem:
        """Create the problem; raises `InvalidInput` if the arguments do not fit together."""
        prior, budget, notion = as_known(prior), Budget.of(epsilon), LIP() if notion is None else notion
        if not isinstance(notion, Cone):
            raise InvalidInput("notion", notion, f"design for one of {', '.join(CONES)}")
        if not isinstance(query, Query):
            raise InvalidInput("query", query, f"give one of {', '.join(QUERIES)} or Convex")
        budget.require_positive()
        problem = cls(prior, budget, query, secret, notion)
        query.require_fits(problem.reference)
        if isinstance(prior, Prior):
            for each in () if secret is None else scenarios(secret):
                each.require_fits(prior)
        notion.require_feasible(budget, prior)
        return problem

    @property
    def reference(self) -> Prior:
        """The prior, or the middle of the set."""
        return self.prior.centre

    @property
    def P(self) -> Array:
        """The reference prior's probabilities."""
        return self.reference.probabilities

    @property
    def level(self) -> float:
        """The smaller side of the budget, which pairwise notions use."""
        return min(self.budget.lower, self.budget.upper)

    @property
    def box(self) -> bool:
        """Whether the columns allowed are exactly `lo <= r <= hi`: LIP of the value itself, one prior."""
        return self.notion.bounds_lifts and self.secret is None and isinstance(self.prior, Prior)

    @property
    def all_heavy(self) -> bool:
        """Whether Theorem 3 applies: every value of a box has mass `tau` or more."""
        return self.box and bool((self.budget.tau <= self.P).all())

    @cached_property
    def cone(self) -> Array:
        """The inequalities `A @ column >= 0`."""
        return self.notion.inequalities(self.budget, self.prior, self.secret)

    @cached_property
    def lift_bounds(self) -> tuple[Fraction, Fraction | None]:
        """Fractions proven to lie within `[lo, hi]`; None for an infinite upper side."""
        lower, upper = self.budget.lower, self.budget.upper
        lo = certify.exp_above(-lower) if math.isfinite(lower) else Fraction(0)
        return lo, certify.exp_below(upper) if math.isfinite(self.budget.hi) else None

    @cached_property
    def no_report(self) -> float:
        """The error of the prior alone; over a set of priors, at worst."""
        return self.error(Channel(np.ones((len(self.prior), 1))))

    @cached_property
    def closed_form_bound(self) -> float:
        """A lower bound that needs no solver: that of LIP of the value, also for LDP, which is stricter.

        Histograms have a better one under LDP.
        """
        of_value = self.notion.implies_lip and (self.secret is None or not self.notion.bounds_lifts)
        if not (of_value and isinstance(self.prior, Prior)):
            return 0.0
        bound = self.query.closed_form_bound(self.reference, self.budget)
        if self.notion.name == "LDP" and self.query.kind == "histogram":
            bound = max(bound, ldp_histogram_bound(self.P, factor_above(self.level)))
        return bound * (1 - SLACK)

    def error(self, channel: Channel) -> float:
        """The expected error of a channel; over a set of priors, a proven bound on the worst one.

        For `Distribution` the variance is taken at the middle of the set: it is local to a prior.
        """
        if isinstance(self.prior, Prior) or self.query.unbiased:
            return self.query.error(channel, self.reference)
        if self.prior.members:
            return max(self.query.error(channel, p) for p in self.prior.members)
        return max(0.0, self.unit * self.worst(channel).bound)

    def worst(self, channel: Channel) -> robust.Worst:
        """The prior of a polytope with the largest error, in units of `unit`, and a proven bound on it."""
        assert isinstance(self.prior, PriorSet)
        columns = channel.drop_unused().matrix.T
        return robust.worst_of_polytope(self.task(), columns, self.prior.best, self.P, 1e-9)

    @property
    def unit(self) -> float:
        """The unit of errors in the robust design."""
        return self.query.unit(self.reference)

    @property
    def centred_rows(self) -> Array:
        """The matrix of the statistics, less the means of its rows; that of a histogram is written out."""
        rows = self.query.centred_rows(self.reference)
        return np.eye(len(self.P)) - self.P[:, None] if rows is None else np.asarray(rows)

    @property
    def scores(self) -> Array:
        """The number that each value adds to a sum, less the mean."""
        return np.asarray(self.centred_rows[0])

    def task(self) -> robust.SquaredErrorTask | robust.GuessTask:
        """The query in the form that the robust design needs."""
        if self.query.kind == "guess":
            return robust.GuessTask()
        if not self.query.linear or self.query.unbiased:
            name = self.query.kind.capitalize()
            raise Infeasible(f"{name} is designed for one prior: give a Prior, not a PriorSet")
        rows = self.query.rows(self.reference)
        if rows is None:
            return robust.SquaredErrorTask(np.eye(len(self.prior)))
        return robust.SquaredErrorTask((rows - rows.min(axis=1, keepdims=True)) / math.sqrt(self.unit))

    def one_prior(self, method: str) -> Prior:
        """The prior, for a method that works with one prior only."""
        if isinstance(self.prior, PriorSet):
            hint = Hint("method", "columns", purpose="for a set of priors")
            raise Infeasible(f"the method {method} is for one prior", hint)
        return self.prior

    def table_plan(self, Q: Array, bound: float, method: str, why: str) -> Plan:
        """The certified table nearest to `Q`, with its own error."""
        if Q.size > _ENTRIES:
            size = f"{len(Q):,} x {Q.shape[-1]:,}"
            raise TooLarge(f"a table of {size} entries is too large", Hint("method", "arc", "unary"))
        if Q.size > _MANY_ENTRIES:
            Q = (1 - _MIXED) * Q + _MIXED * (self.P @ Q)
        weights, proof = certify.certified_table(Q, self.prior, self.budget, self.secret, self.notion)
        table = Table(weights)
        return self.plan(table, proof, self.error(Channel(table.matrix)), bound, method, why)

    def plan(
        self, mechanism: Mechanism, proof: Certificate, expected: float, bound: float, method: str, why: str
    ) -> Plan:
        """The plan of a certified mechanism, with the better of two bounds: this one and the closed-form one."""
        return Plan(
            prior=self.prior,
            budget=self.budget,
            query=self.query,
            mechanism=mechanism,
            certificate=proof,
            notion=self.notion,
            secret=self.secret,
            expected_mse=expected,
            lower_bound=min(max(self.closed_form_bound, bound - SLACK * abs(bound)), expected),
            no_report=self.no_report,
            method=method,
            why=why,
        )

    def certified_plan(self, mechanism: Mechanism, expected: float, method: str, why: str) -> Plan:
        """The plan of a mechanism; refused if its exact certificate does not hold."""
        extremes = mechanism.lifts(self.prior, self.secret, self.notion)
        if not certify.keeps_budget(extremes, self.budget, self.notion):
            hint = Hint("method", "columns")
            raise CertificateError(f"the {method} mechanism breaks its budget after rounding", hint)
        return self.plan(mechanism, certify.certificate(extremes, self.notion), expected, 0.0, method, why)
