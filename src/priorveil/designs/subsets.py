"""Subset selection at its best: how large the sets are.

Privacy fixes the odds `R` of a set of `k` values: `e^eps` for LDP; for LIP the largest odds that keep both sides, for
the `k` rarest and the `k` commonest values. What is left is `k`, which is a search over whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate

import numpy as np

from priorveil.certify import TOTAL, exp_above, exp_below
from priorveil.designs.engine import Stop, never
from priorveil.designs.problem import Problem
from priorveil.errors import Hint, Infeasible
from priorveil.mechanisms.bit_estimators import SubsetLaw, ones_variance
from priorveil.mechanisms.bits import scoring_masses
from priorveil.mechanisms.subset import Subset
from priorveil.plans import Plan
from priorveil.priors import Budget, Prior

_MOST_ODDS = Fraction(1 << 40)  # odds beyond which a report might as well be the value
_MOST_TRIED = 30  # values up to which all sizes are tried
_MOST_STEPS = 50  # from the best size of a few, each way


def subset_plan(problem: Problem, stop: Stop = never) -> Plan:
    """Subset selection with the best size of sets, or the best so far when `stop` says so."""
    prior = problem.one_prior("subset")
    if problem.secret is not None or not problem.notion.implies_lip:
        raise Infeasible("the method subset is for LIP or LDP of the value itself", Hint("method", "columns"))
    if len(prior) < 2:
        raise Infeasible("the method subset needs two values or more", Hint("method", "closed"))
    masses, odds = scoring_masses(prior.weights), _odds_of_sizes(problem, prior)

    def make(k: int) -> Subset:
        chance = odds[k - 1] * k / (odds[k - 1] * k + len(prior) - k)
        return Subset(masses, k, math.floor(chance * TOTAL))

    def error(k: int) -> float:
        found = make(k).error(problem.query, prior)
        if found is None:
            name = problem.query.kind.capitalize()
            message = f"the method subset does not know its error for {name} on {len(prior):,} values"
            raise Infeasible(message, Hint("method", "columns", "unary"))
        return found

    starts = {_best_for_ones(prior, odds), 1}  # with sets of one value it is randomised response
    if problem.query.kind == "guess":  # any size may be best
        starts |= set(np.unique(np.geomspace(1, len(prior) - 1, 40).astype(int)).tolist())
    size, expected = _best_size(error, starts, len(prior), stop)
    why = f"subset selection: sets of {size} of {len(prior):,} values, odds {float(make(size).odds):.4g}"
    return problem.certified_plan(make(size), expected, "subset", why)


def _odds_of_sizes(problem: Problem, prior: Prior) -> list[Fraction]:
    """The largest odds that the budget allows for sets of 1, 2, ... d - 1 values."""
    if not problem.notion.bounds_lifts:
        return [min(exp_below(problem.level), _MOST_ODDS)] * (len(prior) - 1)
    ordered = sorted(prior.weights)
    lightest = accumulate(ordered[:-1])
    heaviest = accumulate(ordered[:0:-1])
    return [
        _lip_odds(problem.budget, Fraction(light, prior.total), Fraction(heavy, prior.total))
        for light, heavy in zip(lightest, heaviest, strict=True)
    ]


def _lip_odds(budget: Budget, lightest: Fraction, heaviest: Fraction) -> Fraction:
    """The largest odds with `R / (1 + (R - 1) lightest) <= e^upper` and `1 + (R - 1) heaviest <= e^lower`."""
    limits = [_MOST_ODDS]
    if math.isfinite(budget.lower):
        limits.append(1 + (exp_below(budget.lower) - 1) / heaviest)
    if math.isfinite(budget.upper) and exp_above(-budget.upper) > lightest:
        limits.append((1 - lightest) / (exp_above(-budget.upper) - lightest))
    return min(limits)


def _best_for_ones(prior: Prior, odds: list[Fraction]) -> int:
    """The size that is best if only the ones are read, in closed form."""
    P = prior.probabilities
    errors = [ones_variance(SubsetLaw(float(R), len(P), k), P) for k, R in enumerate(odds, start=1)]
    return int(np.argmin(errors)) + 1


def _best_size(error: Callable[[int], float], starts: set[int], values: int, stop: Stop) -> tuple[int, float]:
    """The size with the least error, and the error: of few values among all sizes, else near the best start."""
    if values <= _MOST_TRIED:
        starts = set(range(1, values))
    errors = {k: error(k) for k in sorted(starts)}  # few, or fast: they do not look at the clock
    start = min(errors, key=lambda k: errors[k])
    for step in (1, -1):
        for k in range(start + step, start + step * (_MOST_STEPS + 1), step):
            if k in errors or not 1 <= k < values or stop():
                break
            errors[k] = error(k)
            if errors[k] >= errors[k - step]:
                break
    best = min(errors, key=lambda k: errors[k])
    return best, errors[best]
