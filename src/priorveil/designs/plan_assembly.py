"""From a channel, or a mechanism, to a certified plan with its error and its bound.

Nothing here trusts a solver. A table is rounded to integers that keep the budget (`certify`), and the error is that of
these integers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from priorveil import certify
from priorveil.arrays import Array
from priorveil.certify import Certificate
from priorveil.channels import Channel
from priorveil.designs import robust
from priorveil.designs.bounds import closed_form_bound, rounded_down
from priorveil.designs.problem import DesignProblem
from priorveil.designs.robust_variances import second_moments, worst_variance
from priorveil.designs.stopping import MOST_ENTRIES
from priorveil.errors import CertificateError, Hint, TooLarge
from priorveil.mechanisms import Mechanism, Table
from priorveil.plans import Plan
from priorveil.priors import Prior
from priorveil.reading.families import reader_of
from priorveil.reading.rounding import expected_rounding

# For a table with many entries the exact check takes long, and mixing this much beforehand makes it pass at once.
_MANY_ENTRIES, _MIXED = 200_000, 1e-11


def expected_error(problem: DesignProblem, channel: Channel) -> float:
    """The expected error of a channel; over a set of priors, a proven bound on the worst one.

    For an unbiased query reports are read with the scores made for the reading prior of the problem, for one that leans
    on the prior at the least favourable prior.
    """
    prior, query = problem.prior, problem.query
    if isinstance(prior, Prior):
        return query.error(channel, prior)
    if query.unbiased:
        rows = problem.centred_rows
        moments = second_moments(channel.matrix, problem.P, rows)
        return max(0.0, worst_variance(prior, moments, rows).bound)
    return robust.least_favourable(problem, channel).error


def no_report(problem: DesignProblem) -> float:
    """The error of the prior alone; over a set of priors, at worst."""
    return expected_error(problem, Channel(np.ones((problem.size, 1))))


def table_plan(problem: DesignProblem, Q: Array, bound: float, method: str, why: str) -> Plan:
    """The certified table nearest to `Q`, with its own error."""
    if Q.size > MOST_ENTRIES:
        size = f"{len(Q):,} x {Q.shape[-1]:,}"
        raise TooLarge(f"a table of {size} entries is too large", Hint("method", "arc", "unary"))
    if Q.size > _MANY_ENTRIES:
        Q = (1 - _MIXED) * Q + _MIXED * (problem.P @ Q)
    weights, proof = certify.certified_table(Q, problem.prior, problem.budget, problem.secret, problem.notion)
    table = Table(weights)
    if problem.has_one_prior or problem.query.unbiased:
        expected = expected_error(problem, Channel(table.matrix))
    else:
        least_favourable = robust.least_favourable(problem, Channel(table.matrix))
        problem, expected = replace(problem, reading_prior=least_favourable.prior), least_favourable.error
    return proven_plan(problem, table, proof, expected, bound, method, why)


def mechanism_plan(
    problem: DesignProblem, mechanism: Mechanism, expected: float, method: str, why: str
) -> Plan:
    """The plan of a mechanism; refused if its exact certificate does not hold."""
    extremes = mechanism.lifts(problem.prior, problem.secret, problem.notion)
    if not certify.keeps_budget(extremes, problem.budget, problem.notion):
        hint = Hint("method", "columns")
        raise CertificateError(f"the {method} mechanism breaks its budget after rounding", hint)
    proof = certify.certificate(extremes, problem.notion)
    return proven_plan(problem, mechanism, proof, expected, 0.0, method, why)


def proven_plan(
    problem: DesignProblem,
    mechanism: Mechanism,
    proof: Certificate,
    expected: float,
    bound: float,
    method: str,
    why: str,
) -> Plan:
    """The plan of a mechanism with its certificate, and the better of two bounds: this one and the closed-form one.

    `expected` is the error for values as they are reported; what rounding to a grid may add to it is added here.
    """
    without_report = no_report(problem)
    rounding = expected_rounding(reader_of(mechanism), problem.query, problem.prior)
    return Plan(
        prior=problem.prior,
        budget=problem.budget,
        query=problem.query,
        mechanism=mechanism,
        certificate=proof,
        notion=problem.notion,
        secret=problem.secret,
        expected_mse=min(expected + rounding, max(expected, without_report)),
        lower_bound=min(max(closed_form_bound(problem), rounded_down(bound)), expected),
        no_report=without_report,
        method=method,
        why=why,
        reading_prior=problem.reading_prior,
    )
