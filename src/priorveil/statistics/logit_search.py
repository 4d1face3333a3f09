"""The maximum of the likelihood of a logit on reports, which may have several.

A search from one start ends at a wrong maximum too often. A safe start exists: corrected scores, halved towards their
mean, whose function is concave. The second start is where BFGS ends from zero, and random ones are added where reports
are few: there other maxima are common. With compliance the channel depends on a parameter, so corrected scores are made
for a grid of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from priorveil.arrays import Array
from priorveil.statistics.corrected_scores import LogitScores
from priorveil.statistics.logit import LogitLikelihood
from priorveil.statistics.maximum_search import Maximum, climb, loss, minimize, quasi_newton

NOTICEABLE = 2.0  # of log-likelihood: another maximum this near is worth a warning
_SAME = 1e-3  # of log-likelihood: maxima that differ by less are one
_SPACING = 0.04  # of the grid of compliance
_RANDOM_STARTS = 8
_RANDOM_REPORTS = 8_000  # in all random starts together: with many, other maxima are far below
_RANDOM_SPREAD = 1.5  # of random coefficients of covariates of spread one
_BOUND = 1e-5  # compliance this near to an end is at it
_SEED = 20180901

# The scores of all reports, a row for each outcome, if this share of carriers comply; None where there are none.
ScoresAt = Callable[[float], Array | None]


class LogitMaximum(NamedTuple):
    """The best maximum found, and by how much the next one is below it; None if only one was found."""

    theta: Array
    value: float
    next_below: float | None


def maximise(likelihood: LogitLikelihood, scores: Array) -> LogitMaximum:
    """The best of the maxima that are found from the safe start, from BFGS at zero, and from random starts."""
    starts = [safe_start(likelihood, scores), quasi_newton(likelihood, np.zeros(likelihood.size))]
    starts += _random_starts(likelihood.size, min(_RANDOM_STARTS, _RANDOM_REPORTS // likelihood.reports))
    return _best([climb(likelihood, start) for start in starts])


def safe_start(likelihood: LogitLikelihood, scores: Array) -> Array:
    """The coefficients of corrected scores that are halved towards their mean."""
    centre = scores.mean(axis=1, keepdims=True)
    halved = LogitScores(likelihood.covariates, (scores + centre) / 2, ridge=1.0)
    return climb(halved, np.zeros(halved.size)).theta


def maximise_with_compliance(likelihood: LogitLikelihood, scores_at: ScoresAt) -> LogitMaximum:
    """The best maximum over coefficients and compliance; the last parameter is compliance, from 0 to 1."""
    found = [_bounded_climb(likelihood, start) for start in _starts(likelihood, scores_at)]
    best = max(each.value for each in found)
    near = [each for each in _distinct(found) if each.value > best - NOTICEABLE]
    return _best([_finish(likelihood, each.theta) for each in near])


def _starts(likelihood: LogitLikelihood, scores_at: ScoresAt) -> Iterator[Array]:
    """Corrected scores on a grid of compliance, and random points."""
    for t in np.arange(1.0, _SPACING / 2, -_SPACING):
        scores = scores_at(float(t))
        if scores is not None:
            yield np.append(safe_start(likelihood.at(float(t)), scores), t)
    compliances = np.random.default_rng(_SEED).uniform(size=_RANDOM_STARTS)
    yield from map(np.append, _random_starts(likelihood.size - 1, _RANDOM_STARTS), compliances)


def _random_starts(size: int, count: int) -> list[Array]:
    """The same points for everybody."""
    return list(np.random.default_rng(_SEED).normal(scale=_RANDOM_SPREAD, size=(count, size)))


def _bounded_climb(likelihood: LogitLikelihood, start: Array) -> Maximum:
    bounds = [(None, None)] * (len(start) - 1) + [(0.0, 1.0)]
    options = {"gtol": 1e-7, "ftol": 1e-13, "maxiter": 500}
    found = minimize(
        lambda at: loss(likelihood, at), start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return Maximum(found.x, -likelihood.reports * float(found.fun))


def _finish(likelihood: LogitLikelihood, theta: Array) -> Maximum:
    """The maximum next to these parameters: inside, or with compliance at its bound."""
    if _BOUND < theta[-1] < 1 - _BOUND:
        inside = climb(likelihood, theta)
        if 0 < inside.theta[-1] < 1:
            return inside
    bound = float(np.round(theta[-1]))
    at_bound = climb(likelihood.at(bound), theta[:-1])
    return Maximum(np.append(at_bound.theta, bound), at_bound.value)


def _distinct(found: Sequence[Maximum]) -> list[Maximum]:
    """Maxima with different values, the best first."""
    kept: list[Maximum] = []
    for each in sorted(found, key=lambda maximum: -maximum.value):
        if not kept or kept[-1].value - each.value > _SAME:
            kept.append(each)
    return kept


def _best(found: Sequence[Maximum]) -> LogitMaximum:
    best, *others = _distinct(found)
    return LogitMaximum(*best, best.value - others[0].value if others else None)
