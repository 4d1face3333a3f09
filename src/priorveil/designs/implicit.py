"""Designs that are never written out: arcs on a circle, unary encoding, hashing."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from priorveil.certify import certificate, exp_above, exp_below, within
from priorveil.designs import encodings
from priorveil.designs.arc import ArcLayout, arc_layout, guess_error, histogram_error, sum_error
from priorveil.designs.problems import Draft, Problem, require_one_prior
from priorveil.errors import CertificateError, Infeasible
from priorveil.mechanisms import Arc, Mechanism
from priorveil.notions import LDP, LIP
from priorveil.priors import Array, Prior
from priorveil.queries import Guess, Histogram, Sum


def _draft(problem: Problem, mechanism: Mechanism, expected: float, method: str, why: str) -> Draft:
    """The certified draft of a mechanism; refused if its exact certificate does not hold."""
    found = mechanism.lifts(problem.prior, problem.secret, problem.notion)
    if not within(found, problem.budget, problem.notion):
        raise CertificateError(
            f"the {method} mechanism breaks its budget after rounding; use method='columns'"
        )
    return Draft(
        mechanism, certificate(found, problem.notion), expected, min(problem.floor, expected), method, why
    )


def arc(problem: Problem) -> Draft:
    """The arc mechanism: any prior, any size, one number a report."""
    prior = require_one_prior(problem, "arc")
    if not problem.box or not isinstance(problem.query, Histogram | Sum | Guess):
        raise Infeasible(
            "method='arc' is for LIP of the value itself and Histogram, Sum or Guess: use method='columns'"
        )
    budget = problem.budget
    lo = exp_above(-budget.lower) if math.isfinite(budget.lower) else Fraction(0)
    hi = exp_below(budget.upper) if math.isfinite(budget.hi) else None
    layout = _layout(problem, budget.lo, budget.hi)
    mechanism = Arc.fit(prior.weights, layout.order, layout.heavy, lo, hi)
    why = (
        f"arcs on a circle: {layout.heavy} likely values have a report of their own, the others share windows"
    )
    return _draft(problem, mechanism, arc_error(problem, mechanism), "arc", why)


def _layout(problem: Problem, lo: float, hi: float) -> ArcLayout:
    query = problem.query
    if isinstance(query, Sum):
        return arc_layout(problem.P, lo, hi, values=query.scores(problem.reference))
    return arc_layout(problem.P, lo, hi, guess=isinstance(query, Guess))


def arc_error(problem: Problem, mechanism: Arc) -> float:
    """The expected error of the integers that are sampled, in closed form."""
    places, query = float(1 << mechanism.bits), problem.query
    lo = 1 - mechanism.keep / 2.0**64
    hi = lo + (1 - lo) * places / mechanism.window if mechanism.window else math.inf
    lends = mechanism.heavy > 0 and mechanism.start < int(mechanism.edges[mechanism.heavy])
    layout = ArcLayout(problem.P, lo, hi, mechanism.order, mechanism.heavy, mechanism.start / places, lends)
    if isinstance(query, Sum):
        return max(0.0, sum_error(layout, query.scores(problem.reference)))
    return max(0.0, guess_error(layout) if isinstance(query, Guess) else histogram_error(layout))


def unary(problem: Problem) -> Draft:
    """Unary encoding at the best point of its tight curve."""
    if problem.secret is not None or not isinstance(problem.notion, LIP | LDP):
        raise Infeasible("method='unary' is for LIP or LDP of the value itself: use method='columns'")
    if not (isinstance(problem.prior, Prior) or problem.prior.members):
        raise Infeasible(
            "method='unary' is for one prior or a finite set: use method='columns' for intervals and balls"
        )
    gain = _gain(problem)
    if isinstance(problem.notion, LDP):
        mechanism = encodings.best_unary_at(problem.reference, exp_below(problem.epsilon), gain)
    else:
        mechanism = encodings.best_unary(problem.prior, problem.budget, gain).mechanism
    q01, odds = float(mechanism.flips[0]), float(mechanism.odds)
    members = (problem.prior,) if isinstance(problem.prior, Prior) else problem.prior.members
    expected = max(_ceiling(problem, p) - gain(p.probabilities, q01, odds) for p in members)
    why = f"unary encoding at the best point of its curve: 0 -> 1 with {q01:.4g}, 1 -> 0 with {float(mechanism.flips[1]):.4g}"
    return _draft(problem, mechanism, max(0.0, expected), "unary", why)


def _gain(problem: Problem) -> Callable[[Array, float, float], float]:
    """How much a unary report tells about the query."""
    query = problem.query
    if isinstance(query, Histogram):
        return encodings.histogram_gain
    if isinstance(query, Guess):
        return encodings.guess_gain
    if isinstance(query, Sum):
        values = query.weight * np.array(query.values)
        return lambda P, q01, R: encodings.sum_gain(P, q01, R, values - P @ values)
    raise Infeasible("method='unary' is for Histogram, Sum or Guess: use method='columns'")


def _ceiling(problem: Problem, prior: Prior) -> float:
    query = problem.query
    assert isinstance(query, Histogram | Sum | Guess)
    return query.ceiling(prior)


def hashing(problem: Problem) -> Draft:
    """Hashing into a few bins, with seeds whose bins are all heavy enough."""
    prior = require_one_prior(problem, "hashing")
    if not problem.box or not isinstance(problem.query, Histogram):
        raise Infeasible(
            "method='hashing' is for a Histogram under LIP of the value itself: use method='columns'"
        )
    found = encodings.best_pool(prior, problem.budget)
    pool = found.mechanism
    why = f"hashing into {pool.bins} bins, {pool.seeds.size} seeds whose bins are all heavy enough"
    return _draft(problem, pool, 1 - found.gain, "hashing", why)
