"""Large domains: values that the best channel treats alike share a row, and only the groups are written out.

A column that is constant within a group keeps `lo <= r <= hi` for the values if it does for the group, so a
channel on the groups is as private as it looks. What a histogram, a guess or a sum gains from it needs three
sums over each group.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from priorveil.designs import boxes
from priorveil.designs import pricing as pricings
from priorveil.designs.columns import Solution
from priorveil.designs.limits import Limits
from priorveil.designs.problems import SLACK, Draft, Problem
from priorveil.designs.rounding import certified_table
from priorveil.errors import plural
from priorveil.mechanisms import Grouped, Table
from priorveil.priors import Array

Labels = npt.NDArray[np.int64]

_CELLS = 96  # cells that the values of a sum are merged into


def groups_of(columns: Array) -> Labels:
    """The group of each value: values with equal entries in every column belong together.

    >>> groups_of(np.array([[1.0, 2.0, 1.0], [0.5, 1.5, 0.5]])).tolist()
    [0, 1, 0]
    """
    places: dict[bytes, int] = {}
    rows = np.ascontiguousarray(columns.T)
    return np.array([places.setdefault(row.tobytes(), len(places)) for row in rows], dtype=np.int64)


def grouped_draft(problem: Problem, found: Solution, labels: Labels, bound: float, why: str) -> Draft:
    """The certified draft of a channel that is constant within groups of values."""
    first = np.unique(labels, return_index=True)[1]
    Q = (found.columns[:, first] * found.weights[:, None]).T
    return _drafted(problem, Q, labels, bound, why)


def _drafted(problem: Problem, Q: Array, labels: Labels, bound: float, why: str) -> Draft:
    shape = Grouped(labels, Table(np.full((int(labels.max()) + 1, 1), 2**62)))
    prior = shape.grouped(problem.reference)
    weights, proof = certified_table(Q, prior, problem.budget)
    mechanism = Grouped(labels, Table(weights))
    expected = grouped_error(problem, mechanism)
    lower = min(max(problem.floor, bound - SLACK * abs(bound)), expected)
    return Draft(mechanism, proof, expected, lower, "columns", why)


def grouped_error(problem: Problem, mechanism: Grouped) -> float:
    """The expected error, from sums over the groups."""
    P, rows, Q, query = problem.P, mechanism.rows, mechanism.table.matrix, problem.query
    law = np.bincount(rows, P) @ Q
    lift = Q / law
    if query.kind == "histogram":
        gain = float(law @ (np.bincount(rows, P**2) @ lift**2))
    elif query.kind == "sum":
        gain = float(law @ (np.bincount(rows, P * problem.scores) @ lift) ** 2)
    else:
        peaks = np.zeros(len(Q))
        np.maximum.at(peaks, rows, P)
        gain = float(law @ (peaks[:, None] * lift).max(axis=0))
    return max(0.0, query.ceiling(problem.reference) - gain)


def merged_sum(problem: Problem, limits: Limits) -> Draft:
    """A sum over many values: neighbours are merged into cells, which are designed for.

    The cells have about equal shares of the mass and of the variance, half of each: a rare value that lies
    far out matters as much as a common one.
    """
    P, scores = problem.P, problem.scores
    share = P * (1 + scores**2 / (float(P @ scores**2) or 1.0)) / 2
    labels = boxes.cells(share, scores, _CELLS).astype(np.int64)
    mass = np.bincount(labels, P).astype(np.float64)
    means = np.bincount(labels, P * scores).astype(np.float64) / mass
    found = boxes.best_sum(mass, means, problem.budget.lo, problem.budget.hi, limits)
    why = f"{len(mass)} cells of neighbouring values, then column generation, {plural(found.iterations, 'round')}"
    bound = _sum_bound(problem, scores, means, found.duals / mass)
    return _drafted(problem, (found.columns * found.weights[:, None]).T, labels, bound, why)


def _sum_bound(problem: Problem, scores: Array, means: Array, prices: Array) -> float:
    """A proven bound for all the values: any duals give one, those of the cells, interpolated, a good one."""
    order = np.argsort(means)
    duals = problem.P * np.interp(scores, means[order], prices[order])
    pricing = pricings.Sum(pricings.Box(problem.P, problem.budget.lo, problem.budget.hi), scores)
    gain = float(duals.sum()) + pricing.price(duals, exact=True).bound
    return float(problem.P @ scores**2) - gain
