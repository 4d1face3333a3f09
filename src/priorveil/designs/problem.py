"""A design problem: what is known, what may leak, and what is asked. It knows nothing of how it is solved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property

import numpy as np

from priorveil import certify
from priorveil.arrays import Array
from priorveil.errors import Hint, Infeasible
from priorveil.notions import Cone, ExactOrFloat, PriorOrSet, Secrets, as_cone, as_prior_or_set, scenarios
from priorveil.priors import Budget, Prior, PriorSet
from priorveil.queries import Criterion, Query, require_query


class Objective(Enum):
    """What a design makes small: the key of tables of solvers.

    The first five are gains, which lean on the prior; the last two are variances, for reports alone.
    """

    HISTOGRAM = "the squared error of the counts of all values"
    SUM = "the squared error of one statistic"
    STATISTICS = "the squared error of several statistics"
    GUESS = "the probability of a wrong guess"
    CONVEX = "what a convex gain loses"
    DISTRIBUTION = "the variance of the shares of all values"
    UNBIASED_STATISTICS = "the variance of other statistics, one or several"


@dataclass(frozen=True)
class DesignProblem:
    """What is known, what may leak and what is asked. `reading_prior` is that of a `Plan`."""

    prior: PriorOrSet
    budget: Budget
    query: Query
    secret: Secrets
    notion: Cone
    reading_prior: Prior | None = None

    @classmethod
    def of(
        cls,
        prior: PriorOrSet | Sequence[float],
        epsilon: float | Budget,
        query: Query,
        secret: Secrets = None,
        notion: Cone | None = None,
    ) -> DesignProblem:
        """Create the problem; raises `InvalidInput` if the arguments do not fit together."""
        prior, budget, notion = as_prior_or_set(prior), Budget.of(epsilon), as_cone(notion)
        require_query(query)
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
        """The reading prior; by default the prior, or the one in the middle of the set."""
        return self.prior.centre if self.reading_prior is None else self.reading_prior

    @property
    def P(self) -> Array:
        """The reference prior's probabilities."""
        return self.reference.probabilities

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.prior)

    @property
    def level(self) -> float:
        """The smaller side of the budget, which pairwise notions use."""
        return self.budget.smaller

    @cached_property
    def objective(self) -> Objective:
        """What the design makes small."""
        query = self.query
        if not query.linear:
            return Objective.GUESS if query.criterion is Criterion.WRONG_GUESSES else Objective.CONVEX
        if query.unbiased:
            return Objective.DISTRIBUTION if query.asks_all_counts else Objective.UNBIASED_STATISTICS
        rows = query.rows(self.reference)
        if rows is None:
            return Objective.HISTOGRAM
        return Objective.SUM if len(rows) == 1 else Objective.STATISTICS

    @property
    def has_one_prior(self) -> bool:
        """Whether one prior is known, not a set."""
        return isinstance(self.prior, Prior)

    @property
    def is_lip_of_value(self) -> bool:
        """Whether the columns allowed are exactly `lo <= r <= hi`: LIP of the value itself, one prior."""
        return self.notion.bounds_lifts and self.secret is None and self.has_one_prior

    @property
    def is_ldp(self) -> bool:
        """Whether the notion is LDP, which compares values: the allowed columns depend on no prior and no secret.

        A secret still matters to a method: unary encoding and subsets cannot certify one.
        """
        return self.notion.implies_lip and not self.notion.bounds_lifts

    @property
    def all_heavy(self) -> bool:
        """Whether Theorem 3 applies: every value has mass `tau` or more, under LIP of the value."""
        return self.is_lip_of_value and bool((self.budget.tau <= self.P).all())

    @cached_property
    def cone(self) -> Array:
        """The inequalities `A @ column >= 0`."""
        return self.notion.inequalities(self.budget, self.prior, self.secret)

    def exact_cone(self) -> ExactOrFloat:
        """The same inequalities in fractions."""
        return self.notion.inequalities(self.budget, self.prior, self.secret, exact=True)

    @cached_property
    def lift_bounds(self) -> tuple[Fraction, Fraction | None]:
        """Fractions proven to lie within `[lo, hi]`; None for an infinite upper side."""
        lower, upper = self.budget.lower, self.budget.upper
        lo = certify.exp_above(-lower) if math.isfinite(lower) else Fraction(0)
        return lo, certify.exp_below(upper) if math.isfinite(self.budget.hi) else None

    @property
    def unit(self) -> float:
        """The unit of errors in the robust design."""
        return self.query.unit(self.reference)

    @property
    def centred_rows(self) -> Array:
        """The matrix of the statistics, less the means of its rows; for a histogram it is written out."""
        rows = self.query.centred_rows(self.reference)
        return np.eye(self.size) - self.P[:, None] if rows is None else np.asarray(rows)

    @property
    def scores(self) -> Array:
        """The number that each value adds to a sum, less the mean."""
        return np.asarray(self.centred_rows[0])

    def one_prior(self, method: str) -> Prior:
        """The prior, for a method that works with one prior only."""
        if isinstance(self.prior, PriorSet):
            hint = Hint("method", "columns", purpose="for a set of priors")
            raise Infeasible(f"the method {method} is for one prior", hint)
        return self.prior
