"""A design problem, stated and checked: what is known, what may leak, what is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from priorveil.certify import Certifiable, Certificate
from priorveil.channels import Channel
from priorveil.designs import robust
from priorveil.errors import Hint, Infeasible, InvalidInput
from priorveil.mechanisms import Mechanism
from priorveil.notions import DI, LDP, LIP, Known, Pufferfish, Secrets, known, scenarios
from priorveil.priors import Array, Budget, Prior, PriorSet
from priorveil.queries import Query

# How far a float computation of a bound may be off, relatively: bounds are lowered by this.
SLACK = 1e-12


@dataclass(frozen=True)
class Problem:
    """What is known, what may leak and what is asked."""

    prior: Known
    budget: Budget
    query: Query
    secret: Secrets
    notion: Certifiable

    @property
    def reference(self) -> Prior:
        """The prior, or the middle of the set."""
        return self.prior if isinstance(self.prior, Prior) else self.prior.centre

    @property
    def P(self) -> Array:
        """The reference prior's probabilities."""
        return self.reference.probabilities

    @property
    def box(self) -> bool:
        """Whether the columns allowed are exactly `lo <= r <= hi`: LIP of the value itself, one prior."""
        return isinstance(self.notion, LIP) and self.secret is None and isinstance(self.prior, Prior)

    @cached_property
    def cone(self) -> Array:
        """The inequalities `A @ column >= 0`."""
        return self.notion.inequalities(self.budget, self.prior, self.secret)

    @property
    def epsilon(self) -> float:
        """The smaller side: what pairwise notions use."""
        return min(self.budget.lower, self.budget.upper)

    @cached_property
    def no_report(self) -> float:
        """The error of the prior alone; over a set of priors, at worst."""
        nothing = Channel(np.ones((len(self.prior), 1)))
        return self.error(nothing)

    @cached_property
    def floor(self) -> float:
        """A lower bound that costs nothing: the free one for LIP, and for LDP, which is stricter."""
        contained = (
            isinstance(self.notion, LIP | LDP) and self.secret is None and isinstance(self.prior, Prior)
        )
        if not contained:
            return 0.0
        return self.query.floor(self.reference, self.budget) * (1 - SLACK)

    def error(self, channel: Channel) -> float:
        """The expected error of a channel; over a set of priors, a proven bound on the worst one.

        For `Distribution` the variance is taken at the middle of the set: it is local to a prior.
        """
        if isinstance(self.prior, Prior) or self.query.unbiased:
            return self.query.error(channel, self.reference)
        if self.prior.members:
            return max(self.query.error(channel, p) for p in self.prior.members)
        return self.unit * self.worst(channel).bound

    def worst(self, channel: Channel) -> robust.Worst:
        """The prior of a polytope with the largest error, in units of `unit`, and a proven bound on it."""
        assert isinstance(self.prior, PriorSet)
        return self.task().worst(channel.drop_unused().matrix.T, self.prior.best, self.P, 1e-10)

    @property
    def unit(self) -> float:
        """The error that the robust design calls one: the largest squared distance of two values."""
        return self.query.unit(self.reference)

    @property
    def scores(self) -> Array:
        """The number that each value adds to a sum, less the mean."""
        rows = self.query.centred_rows(self.reference)
        assert rows is not None
        return np.asarray(rows[0])

    def task(self) -> robust.Task:
        """The query as the robust design knows it."""
        if self.query.kind == "guess":
            return robust.Guessed()
        if self.query.kind == "convex" or self.query.unbiased:
            raise Infeasible(
                f"{self.query.kind.capitalize()} is designed for one prior: give a Prior, not a PriorSet"
            )
        rows = self.query.rows(self.reference)
        if rows is None:
            return robust.Squared(np.eye(len(self.prior)))
        return robust.Squared((rows - rows.min(axis=1, keepdims=True)) / math.sqrt(self.unit))


@dataclass(frozen=True)
class Draft:
    """A certified answer to a problem, before it becomes a plan."""

    mechanism: Mechanism
    certificate: Certificate
    expected: float
    bound: float
    method: str
    why: str


def posed(
    prior: Known | Sequence[float],
    epsilon: float | Budget,
    query: Query,
    secret: Secrets = None,
    notion: Certifiable | None = None,
) -> Problem:
    """The problem, or a clear refusal of what makes no sense."""
    prior, budget, notion = known(prior), Budget.of(epsilon), LIP() if notion is None else notion
    if not isinstance(notion, LIP | LDP | Pufferfish | DI):
        raise InvalidInput("notion", notion, "design for LIP(), LDP(), Pufferfish() or DI(): those are cones")
    if not isinstance(query, Query):
        raise InvalidInput(
            "query",
            query,
            "give Histogram(), Sum(values), Linear(matrix), Guess(), Convex(gain) or Distribution()",
        )
    if query.unbiased and query.kind != "distribution":
        raise InvalidInput("query", query, "unbiased=True is designed for Histogram only: leave it out")
    for side in ("lower", "upper"):
        if getattr(budget, side) <= 0:
            raise InvalidInput(
                f"epsilon {side}", getattr(budget, side), "with zero no report says anything: give more"
            )
    if budget.lo >= 1 or budget.hi <= 1:
        raise InvalidInput("epsilon", budget, "too small to tell from zero: no report says anything")
    if not isinstance(notion, LIP) and math.isinf(min(budget.lower, budget.upper)):
        raise InvalidInput(
            "epsilon", budget, f"{type(notion).__name__} has one level: give one finite number"
        )
    query.require_fits(prior if isinstance(prior, Prior) else prior.centre)
    _require_secret_fits(secret, prior)
    if isinstance(notion, DI):
        _require_even(prior, min(budget.lower, budget.upper))
    return Problem(prior, budget, query, secret, notion)


def _require_even(prior: Known, level: float) -> None:
    """Differential identifiability compares posteriors: the prior alone must keep the level."""
    own = DI().epsilon(Channel(np.ones((len(prior), 1))), prior)
    if own > level:
        raise Infeasible(f"the prior alone has a DI level of {own:.4g}: ask for more than that, or for LIP")


def _require_secret_fits(secret: Secrets, prior: Known) -> None:
    if secret is None:
        return
    for s in scenarios(secret):
        if s.rows.shape[1] != len(prior):
            raise InvalidInput(
                "secret", s.rows.shape, f"its rows need {len(prior)} numbers, one for each value"
            )
        if isinstance(prior, Prior):
            s.require_fits(prior)


def require_one_prior(problem: Problem, method: str) -> Prior:
    """The prior, where a method works for one alone."""
    if isinstance(problem.prior, PriorSet):
        raise Infeasible(
            f"the method {method} is for one prior", Hint("method", "columns", purpose="for a set of priors")
        )
    return problem.prior
