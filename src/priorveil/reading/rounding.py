"""What rounding to a grid adds to the error of a sum of numbers, per person and at most.

A number `x` is rounded at random to one of two neighbouring points `g`, so that `e = a(g) - a(x)` is zero on average.
Here `a` is the number that is summed for each value, linear between the points. The variance of `e` is `p (1 - p)`
times the square of the step of `a`, where `p` is the chance to be rounded up: at most a quarter of that square.

* Unbiased reports do not depend on `x` given `g`, so the variance of `e` is added to that of the noise.
* A posterior mean `m` of `a(g)` has the error `E[v] + 2 Cov(m, e) - Var(e)` for the number itself, `v` the posterior
  variance. With `h(g) = E[m | g]` this adds `p (1 - p) (2 step of h - step of a) (step of a)`. Where reports say
  little, `h` has small steps, and rounding adds nothing. It never adds more than the variance of `m`.

If people are a sample from a population, the variance of their reports already includes the rounding: nothing is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorveil.arrays import Array
from priorveil.priors import Domain, Prior, PriorSet
from priorveil.queries import Query
from priorveil.reading.reader import Reader

# Values up to which the steps of posterior means are computed: their matrix has as many rows.
_MOST_STEPS = 512


def rounding_variances(
    reader: Reader[Any], method: str, prior: Prior, rows: Array, share: float = 1.0
) -> Array:
    """The most that rounding adds to the variance per person of the sum of each row, for the people themselves.

    Several numbers of a person are rounded independently of each other, so what they add is summed. `share` is the
    share of people whose numbers are not zero, such as the people of a group: only their numbers are rounded.

    >>> from priorveil.mechanisms import Table
    >>> from priorveil.reading.families import reader_of
    >>> reader = reader_of(Table([[7 << 59, 1 << 59], [1 << 59, 7 << 59]]))
    >>> prior = Prior.grid([0, 2], [0.5, 0.5])
    >>> [rounding_variances(reader, method, prior, np.array([[0.0, 2.0]])).item() for method in ("unbiased", "mmse")]
    [1.0, 0.125]
    """
    domain = prior.domain
    if not domain.rounds:
        return np.zeros(len(rows))
    if method != "mmse":
        return share * largest_variance(domain, rows)
    P = prior.probabilities
    centred = rows - (rows @ P)[:, None]
    counts = reader.expected_counts(P, 1)
    noise = reader.linear_moments("mmse", counts, P, centred, False).variance
    explained = np.maximum(centred**2 @ P - noise, 0.0)
    if len(P) > _MOST_STEPS or not reader.adds_up("mmse", P):
        return most_by_correlation(domain, rows, explained, share)
    both = np.concatenate([centred, np.eye(len(P))])
    covariance = reader.covariance("mmse", counts, P, both, False)[: len(rows), len(rows) :]
    return most_by_steps(domain, rows, centred - covariance / P, explained, share)


def largest_variance(domain: Domain, rows: Array) -> Array:
    """The largest variance that rounding gives the number of one person, for each row of numbers."""
    grids = [(rows[:, high] - rows[:, low]) ** 2 for low, high in domain.neighbours]
    largest = np.zeros(len(rows))
    for squares in grids:
        largest += squares.max(axis=1, initial=0.0) / 4
    return largest


def most_by_steps(domain: Domain, rows: Array, means: Array, explained: Array, share: float = 1.0) -> Array:
    """The most that rounding adds to the errors of posterior means.

    `means` are the means of the posterior means for people with each value, and `explained` are their variances under
    the prior. The variances are those of all people, so they are not multiplied by the `share` that is rounded.
    """
    added = np.zeros(len(means))
    for low, high in domain.neighbours:
        step, move = rows[:, high] - rows[:, low], means[:, high] - means[:, low]
        added += (step * (2 * move - step)).max(axis=1, initial=0.0) / 4
    return np.minimum(share * added, explained)


def most_by_correlation(domain: Domain, rows: Array, explained: Array, share: float = 1.0) -> Array:
    """`most_by_steps` for posterior means whose correlation with the rounding is unknown.

    `2 Cov(m, e) - Var(e)` is at most `s (2 sd(m) - s)`, with `s` the smaller of `sd(m)` and of the largest standard
    deviation of `e`.
    """
    means = np.sqrt(explained)
    smaller = np.minimum(np.sqrt(share * largest_variance(domain, rows)), means)
    return np.asarray(smaller * (2 * means - smaller))


def expected_rounding(reader: Reader[Any], query: Query, prior: Prior | PriorSet) -> float:
    """The most that rounding adds to the expected error per person of a query; over a set of priors, at worst.

    It is zero for an unbiased query: the error is then that for a population.
    """
    rows = query.rows(prior.centre)
    if rows is None or query.unbiased or not query.sums_numbers:
        return 0.0
    if isinstance(prior, Prior):
        return float(rounding_variances(reader, "mmse", prior, rows).sum())
    steps = [np.abs(rows[:, high] - rows[:, low]) for low, high in prior.domain.neighbours]
    widest = np.ptp(rows, axis=1, keepdims=True)  # no posterior mean has a larger step
    return float(sum((step * (2 * widest - step)).max(axis=1, initial=0.0).sum() / 4 for step in steps))
