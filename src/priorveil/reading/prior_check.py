"""The check of the prior.

It is Rao's score test. A wrong prior changes the law of the reports only in the few directions that a change of the
distribution of the values can cause. The test looks only at these, so it keeps its power where there are many kinds of
reports. If there are many values or few reports, neighbouring values are merged into blocks. With `q` the posterior of
a report over the blocks and `m` their prior masses,

    u = sum of (q - m) over the N reports,      S = the covariance of q under the prior,

`u' S**-1 u / N` is chi-square with `rank(S)` degrees of freedom if the prior is right (Rao 1948). A tally of bits does
not hold the counts of whole reports; there `u` is the best linear substitute (`bits_test`).

A small p-value is rare if the prior is right and nobody manipulates the reports; the test cannot tell which of the two
fails. A large p-value does not say that the prior is right: a change smaller than `noticeable_change` can pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb

from priorveil.arrays import Array, Ints

DOUBTFUL = 0.01  # a p-value below this makes the prior doubtful
_POWER = 0.9  # the share of surveys in which a noticeable change is noticed
_COMMON = 0.9  # common values are the fewest that together hold this share of the prior
_LEAST_EXPECTED = 5.0  # reports that carry the score of a block, as `score_test` counts them
_MOST_BLOCKS = 128
_MOST_LAW_ENTRIES = 1 << 21  # entries of the joint law of blocks and cells
# Directions in which reports vary less than this, relative to the largest, are rounding.
_LEAST_VARIATION = 1e-9
_SILENT = 1e-14  # reports that vary less than this in all directions carry no information


class PriorCheck(NamedTuple):
    """The p-value of the reports under the prior, and the change that the test would notice.

    `noticeable_change` is a share of people: if this share of them moved from one common value to another, the p-value
    would be below `DOUBTFUL` in about 90 % of surveys or more. Common values are the fewest that together hold 90 % of
    the prior, at least two. The share is for the two of them whose exchange is hardest to notice, among those that
    reports tell apart. None stands for more than everybody, or for a share that is not known, because common values are
    merged with others.

    `directions` is how many independent changes of the distribution the test looks at. If it is below the number of
    values less one, there are changes that it cannot notice, however large.
    """

    p_value: float
    noticeable_change: float | None
    directions: int


class ScoreTest(NamedTuple):
    """The test for a number of reports: all that the prior decides, whatever the reports are.

    `directions` has a row for each degree of freedom. Multiplied by the sum over reports, they give `S**-1/2 u`.
    """

    directions: Array
    noticeable_change: float | None
    reports: float

    def check(self, total: Array) -> PriorCheck:
        """The check of a sum over reports, of the scores or of other sums that `directions` were made for."""
        statistic = float(np.square(self.directions @ total).sum()) / self.reports
        degrees = len(self.directions)
        return PriorCheck(chi_square_tail(statistic, degrees), self.noticeable_change, degrees)


def split_prior(prior: Array, cells: int = 1) -> Array:
    """The prior split into blocks of consecutive values, a row for each block, (blocks, values).

    Up to 128 values are a block each; more are put in at most 128 blocks of about the same mass, and in fewer where
    there are many `cells`.

    >>> split_prior(np.array([0.5, 0.3, 0.2])).tolist()
    [[0.5, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.2]]
    """
    most = max(8, min(_MOST_BLOCKS, _MOST_LAW_ENTRIES // cells))
    starts = _block_starts(prior, 1 / most) if len(prior) > most else np.arange(len(prior))
    block = np.searchsorted(starts, np.arange(len(prior)), side="right") - 1
    return np.where(block == np.arange(len(starts))[:, None], prior, 0.0)


def _block_starts(weights: Array, least: float) -> Ints:
    """Where blocks of consecutive entries begin, each of at least this weight, or one block of all.

    >>> _block_starts(np.array([5.0, 1.0, 2.0, 3.0, 1.0]), 5.0)
    array([0, 1])
    """
    sums, least, starts = np.cumsum(weights), least * (1 - 1e-9), [0]
    while True:
        before = float(sums[starts[-1] - 1]) if starts[-1] else 0.0
        start = int(np.searchsorted(sums, before + least)) + 1
        if start >= len(weights) or sums[-1] - sums[start - 1] < least:
            return np.array(starts)
        starts.append(start)


def cells_test(joint: Array, parts: Array, reports: float) -> ScoreTest | None:
    """The test of counts of cells, where `joint` is the joint law of blocks and cells under the prior.

    `parts` are the blocks, as `split_prior` gives them.
    """
    law, masses = joint.sum(axis=0), parts.sum(axis=1)
    scores = np.divide(joint, law, out=np.zeros_like(joint), where=law > 0) - masses[:, None]
    covariance, largest = (scores * law) @ scores.T, (scores**2).max(axis=1)
    informative = np.divide(np.diag(covariance), largest, out=np.zeros_like(masses), where=largest > 0)
    test = score_test(covariance, parts, informative, reports, scores)
    return test and test._replace(directions=test.directions @ scores)


def bits_test(shift: float, variance: Array, factor: Array, prior: Array, reports: float) -> ScoreTest | None:
    """The test of counts of bits, one for each value, less their means under the prior.

    `shift` is how much likelier the bit of a value is set for people who have it; the covariance of the bits of a
    report is `diag(variance) - factor @ factor.T`.
    """
    parts = split_prior(prior, len(prior))
    masses, informative = parts.sum(axis=1), (parts > 0).astype(np.float64) @ variance
    directions = shift * (parts.T - np.outer(prior, masses))
    # Woodbury's formula for the inverse of a diagonal less a few factors.
    scaled_directions, scaled_factor = directions / variance[:, None], factor / variance[:, None]
    inner = np.eye(factor.shape[1]) - factor.T @ scaled_factor
    solution = scaled_directions + scaled_factor @ np.linalg.solve(inner, scaled_factor.T @ directions)
    test = score_test(directions.T @ solution, parts, informative, reports)
    return test and test._replace(directions=test.directions @ solution.T)


def score_test(
    covariance: Array,
    parts: Array,
    informative: Array,
    reports: float,
    scores: Array | None = None,
) -> ScoreTest | None:
    """Rao's test of the sum of the scores of all reports, given the covariance of one; an entry for each block.

    `parts` are the blocks, as `split_prior` gives them. `informative` is the share of reports that carry the score of a
    block: its variance over its largest square. With many reports a block counts alone, with few it is merged with its
    neighbours until `N * informative` is five in all (as counts in a chi-square test need an expectation of five). With
    the `scores` of all cells, (blocks, cells), directions that hang on fewer reports are left out in the same way. None
    where fewer than two blocks are left, or reports carry no information.
    """
    starts = _block_starts(reports * informative, _LEAST_EXPECTED)
    if len(starts) < 2 or reports < _LEAST_EXPECTED:
        return None
    merged = np.diff(starts, append=len(parts))
    parts = np.add.reduceat(parts, starts)
    covariance = np.add.reduceat(np.add.reduceat(covariance, starts), starts, axis=1)
    root = np.sqrt(parts.sum(axis=1))
    size, vectors = np.linalg.eigh(covariance / np.outer(root, root))
    kept = size > _LEAST_VARIATION * size[-1]
    if scores is not None:
        along = vectors.T @ (np.add.reduceat(scores, starts) / root[:, None])
        kept &= reports * size >= _LEAST_EXPECTED * (along**2).max(axis=1)
    degrees = int(np.count_nonzero(kept))
    if degrees == 0 or size[-1] < _SILENT:
        return None
    directions = (vectors[:, kept] / np.sqrt(size[kept]) / root[:, None]).T
    # If the share t of the people moves from a block to another, the noncentrality is N t**2 times the squared distance
    # of their places.
    places = vectors[:, kept] * np.sqrt(size[kept]) / root[:, None]
    distance = _least_distance(places, parts)
    change = math.sqrt(noticed_noncentrality(degrees) / reports) / distance if distance else math.inf
    return ScoreTest(np.repeat(directions, merged, axis=1), change if change < 1 else None, reports)


def _least_distance(places: Array, parts: Array) -> float | None:
    """The least distance between the places of two common values, leaving out values at the same place.

    Blocks have a row of `places` and of `parts` each. None if a common value shares its block with others.

    >>> _least_distance(np.array([[0.0], [3.0], [5.0]]), np.diag([0.6, 0.3, 0.1]))
    3.0
    """
    prior, block_of_value = parts.sum(axis=0), parts.argmax(axis=0)
    descending = np.argsort(-prior, kind="stable")
    count = int(np.searchsorted(np.cumsum(prior[descending]), _COMMON * (1 - 1e-9))) + 1
    blocks = block_of_value[descending[: max(count, 2)]]
    if (np.count_nonzero(parts, axis=1)[blocks] > 1).any():
        return None
    distances = np.linalg.norm(places[blocks, None] - places[blocks], axis=2)
    different = distances[distances > math.sqrt(_LEAST_VARIATION) * distances.max()]
    return float(different.min()) if different.size else None


def mean_check(total: Array, variance: Array, rise: Array, fall: Array) -> PriorCheck | None:
    """The check of posteriors that should, on average, be the priors: for people with a prior each.

    `total` is the sum over reports of posterior less prior, `variance` what its variance is if the priors are right,
    `rise` and `fall` how far one report can move it up and down; all for every value.

    A sum of independent terms of mean zero, none above `m`, exceeds `t` with probability at most `exp(-E)`,
    `E = (V / m**2) h(t m / V)`, `h(u) = (1 + u) log(1 + u) - u` (Bennett's inequality), however rare the large terms
    are; the normal tail at `sqrt(2 E)` is what that comes to where they are common. The least over the values is
    multiplied by their number. Which change it would notice is not known: people with other priors notice
    other changes. None where reports carry no information.

    >>> mean_check(np.array([0.0, 0.0]), np.array([9.0, 9.0]), np.ones(2), np.ones(2)).p_value
    1.0
    >>> mean_check(np.array([15.0, -15.0]), np.array([9.0, 9.0]), np.ones(2), np.ones(2)).p_value < 0.001
    True
    """
    informative = (variance > 0) & (rise > 0) & (fall > 0)
    if not informative.any():
        return None
    t, V = total[informative], variance[informative]
    m = np.where(t > 0, rise[informative], fall[informative])
    u = np.abs(t) * m / V
    exponent = float((V / m**2 * ((1 + u) * np.log1p(u) - u)).max())
    values = 1 if len(total) == 2 else len(t)  # if there are two, one falls as the other rises
    p_value = min(1.0, values * math.erfc(math.sqrt(max(exponent, 0.0))))
    return PriorCheck(p_value, None, len(t) - 1)


def set_check(difference: float, statistics: int) -> PriorCheck:
    """The check of a set of priors: whether an mmse answer is nearer to the unbiased one than under every prior of it.

    Under a prior of the set the answer is off by its bias and by noise. `difference` is how far the two answers are
    apart beyond the largest bias, in standard errors of the unbiased one: the largest over the statistics. The variance
    of the difference of the answers is less than that of the unbiased one (Hausman 1978). A change of the distribution
    that this does not notice, however many people report, moves the answer no further than the bias.

    >>> set_check(0.0, 3).p_value, round(set_check(2.0, 3).p_value, 4), round(set_check(6.6, 1).p_value, 12)
    (1.0, 0.1365, 4.1e-11)
    """
    return PriorCheck(min(1.0, statistics * math.erfc(difference / math.sqrt(2))), None, statistics)


def chi_square_tail(statistic: float, degrees: int) -> float:
    """The probability that a chi-square variable with these degrees of freedom exceeds `statistic`.

    Uses python-flint, which is already loaded; importing scipy would take 0.25 s.

    >>> round(chi_square_tail(5.991464547, 2), 9)
    0.05
    """
    if math.isinf(statistic):
        return 0.0
    return min(float((arb(statistic) / 2).gamma_upper(arb(degrees) / 2, 1)), 1.0)


@lru_cache
def noticed_noncentrality(degrees: int) -> float:
    """The noncentrality at which a chi-square test at the level `DOUBTFUL` fires in 90 % of cases.

    A noncentral chi-square variable is a central one with `degrees + 2 j` degrees of freedom, `j` drawn from the
    Poisson law with half the noncentrality as its mean. `scipy.special.chndtrinc` gives the same; importing it would
    take as long as counting ten million reports.

    >>> round(noticed_noncentrality(19), 4)
    33.2616
    """
    most = 40 + 8 * math.sqrt(degrees)  # above every noncentrality up to thousands of degrees
    critical = _falling_root(lambda x: chi_square_tail(x, degrees) - DOUBTFUL, 0.0, 2 * (degrees + most))
    draws = range(int(most / 2 + 10 * math.sqrt(most)))
    tails = [chi_square_tail(critical, degrees + 2 * j) for j in draws]

    def silence(noncentrality: float) -> float:
        mean = noncentrality / 2
        chances = (math.exp(j * math.log(mean) - mean - math.lgamma(j + 1)) for j in draws)
        return 1 - sum(chance * tail for chance, tail in zip(chances, tails, strict=True))

    return _falling_root(lambda noncentrality: silence(noncentrality) - (1 - _POWER), 1e-3, most)


def _falling_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is zero, between two numbers around that place."""
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return high
