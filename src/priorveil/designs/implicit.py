"""Designs that are never written out: arcs on a circle, unary encoding, hashing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from priorveil.certify import certificate, exp_above, exp_below, within
from priorveil.designs import encodings
from priorveil.designs.arc import ArcLayout, arc_layout, guess_error, histogram_error, sum_error
from priorveil.designs.encodings import Gain
from priorveil.designs.problems import Draft, Problem, require_one_prior
from priorveil.errors import CertificateError, Hint, Infeasible, TooLarge
from priorveil.mechanisms import Arc, Mechanism
from priorveil.mechanisms.hashing import PooledHash
from priorveil.mechanisms.unary_law import learning_gain
from priorveil.notions import LDP, LIP
from priorveil.priors import Array, Budget, Prior
from priorveil.queries import variance

ARC_KINDS = ("histogram", "sum", "guess")  # the queries that arcs in one order are for
_POOL = 12  # reports of a pool for every value whose frequency is to be learnt
_MOST_SEEDS = 4096
_INVERTED = 1_000  # values up to which a pool's information matrix is inverted


def certified(problem: Problem, mechanism: Mechanism, expected: float, method: str, why: str) -> Draft:
    """The certified draft of a mechanism; refused if its exact certificate does not hold."""
    found = mechanism.lifts(problem.prior, problem.secret, problem.notion)
    if not within(found, problem.budget, problem.notion):
        raise CertificateError(
            f"the {method} mechanism breaks its budget after rounding", Hint("method", "columns")
        )
    return Draft(
        mechanism, certificate(found, problem.notion), expected, min(problem.floor, expected), method, why
    )


def arc(problem: Problem) -> Draft:
    """The arc mechanism: any prior, any size, one number a report."""
    prior = require_one_prior(problem, "arc")
    if not problem.box or problem.query.kind not in ARC_KINDS:
        raise Infeasible(
            "the method arc is for LIP of the value itself and Histogram, Sum or Guess",
            Hint("method", "columns"),
        )
    budget = problem.budget
    lo = exp_above(-budget.lower) if math.isfinite(budget.lower) else Fraction(0)
    hi = exp_below(budget.upper) if math.isfinite(budget.hi) else None
    layout = _layout(problem, budget.lo, budget.hi)
    weights = np.array(prior.weights, dtype=object)
    mechanism = Arc.fit(weights, layout.order, layout.heavy, lo, hi)
    why = (
        f"arcs on a circle: {layout.heavy} likely values have a report of their own, the others share windows"
    )
    return certified(problem, mechanism, arc_error(problem, mechanism), "arc", why)


def _layout(problem: Problem, lo: float, hi: float) -> ArcLayout:
    if problem.query.kind == "sum":
        return arc_layout(problem.P, lo, hi, values=problem.scores)
    return arc_layout(problem.P, lo, hi, guess=problem.query.kind == "guess")


def arc_error(problem: Problem, mechanism: Arc) -> float:
    """The expected error of the integers that are sampled, in closed form."""
    places, kind = float(1 << mechanism.bits), problem.query.kind
    lo = 1 - mechanism.keep / 2.0**64
    hi = lo + (1 - lo) * places / mechanism.window if mechanism.window else math.inf
    lends = mechanism.heavy > 0 and mechanism.start < int(mechanism.edges[mechanism.heavy])
    layout = ArcLayout(problem.P, lo, hi, mechanism.order, mechanism.heavy, mechanism.start / places, lends)
    if kind == "sum":
        return max(0.0, sum_error(layout, problem.scores))
    return max(0.0, guess_error(layout) if kind == "guess" else histogram_error(layout))


def unary(problem: Problem) -> Draft:
    """Unary encoding at the best point of its tight curve."""
    if problem.secret is not None or not isinstance(problem.notion, LIP | LDP):
        raise Infeasible("the method unary is for LIP or LDP of the value itself", Hint("method", "columns"))
    if not (isinstance(problem.prior, Prior) or problem.prior.members):
        raise Infeasible(
            "the method unary is for one prior or a finite set of priors",
            Hint("method", "columns", purpose="for intervals and balls"),
        )
    gain = _gain(problem)
    if isinstance(problem.notion, LDP):
        mechanism = encodings.best_unary_at(problem.reference, exp_below(problem.epsilon), gain)
    else:
        mechanism = encodings.best_unary(problem.prior, problem.budget, gain).mechanism
    q01, odds = float(mechanism.flips[0]), float(mechanism.odds)
    expected = _unary_error(problem, gain, q01, odds)
    q10 = float(mechanism.flips[1])
    why = f"unary encoding at the best point of its curve: 0 -> 1 with {q01:.4g}, 1 -> 0 with {q10:.4g}"
    return certified(problem, mechanism, max(0.0, expected), "unary", why)


def _unary_error(problem: Problem, gain: Gain, q01: float, odds: float) -> float:
    """The expected error: over a finite set of priors at worst, for `Distribution` at the middle."""
    query = problem.query
    if query.kind == "distribution":
        return 1 / gain(problem.P, q01, odds)
    members = (problem.prior,) if isinstance(problem.prior, Prior) else problem.prior.members
    return max(query.ceiling(p) - gain(p.probabilities, q01, odds) for p in members)


def _gain(problem: Problem) -> Gain:
    """How much a unary report tells about the query."""
    gains: dict[str, Gain] = {
        "histogram": encodings.histogram_gain,
        "guess": encodings.guess_gain,
        "distribution": learning_gain,
    }
    kind, rows = problem.query.kind, problem.query.rows(problem.reference)
    if kind in gains:
        return gains[kind]
    if rows is None:
        raise Infeasible(
            f"the method unary is not for {kind.capitalize()}: its gain is not known",
            Hint("method", "columns"),
        )
    return lambda P, q01, R: float(encodings.sum_gain(P, q01, R, rows - (rows @ P)[:, None]).sum())


def hashing(problem: Problem) -> Draft:
    """Hashing into a few bins, with seeds whose bins are all heavy enough."""
    prior = require_one_prior(problem, "hashing")
    if not problem.box or problem.query.kind not in ("histogram", "distribution"):
        raise Infeasible(
            "the method hashing is for Histogram or Distribution and LIP of the value itself",
            Hint("method", "columns"),
        )
    learning = problem.query.kind == "distribution"
    found = encodings.best_pool(
        prior, problem.budget, _seeds(len(prior), problem.budget) if learning else 256
    )
    pool = found.mechanism
    expected = _pool_variance(pool, problem.P) if learning else 1 - found.gain
    why = f"hashing into {pool.bins} bins, {pool.seeds.size} seeds whose bins are all heavy enough"
    return certified(problem, pool, expected, "hashing", why)


def _seeds(size: int, budget: Budget) -> int:
    """Seeds enough to tell `size` values apart: a seed with `g` groups tells `g - 1` numbers."""
    if size > _INVERTED:
        raise TooLarge(
            f"a pool of seeds that tells {size:,} values apart is too large", Hint("method", "unary")
        )
    told = max(1.0, 1 / budget.tau - 1) if budget.tau > 0 else size
    return min(_MOST_SEEDS, 1 << math.ceil(math.log2(max(2.0, _POOL * size / told))))


def _pool_variance(pool: PooledHash, P: Array) -> float:
    """The variance of the distribution learnt from a pool; refused where its seeds do not identify it."""
    spread = variance(pool.matrix, P)
    if math.isinf(spread):
        raise Infeasible(
            "the pool of seeds does not identify the distribution", Hint("method", "unary", "columns")
        )
    return spread
