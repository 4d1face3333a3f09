"""Reading tallies of unary reports.

* **mmse** under the plan's prior adds up posteriors given whole reports, from the scores of the tally; its
  variance is the expected posterior variance (`unary_law`). Under another prior the scores do not apply,
  and it adds up posteriors given single bits (the paper's estimator), from the counts of ones.
* **unbiased** inverts the noise of each bit.
* **mle** maximises the likelihood of the bits as if they were reported by different people (a composite
  likelihood: consistent, and a distribution, where unbiased may be negative). To first order it is unbiased,
  with what the histogram has too much or too little taken off in proportion to `s (1 - s)`, `s` the chance
  of a bit to be set; so its variance is not that of a likelihood, but known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from priorveil.mechanisms.likelihood import Cells, most_likely, shortfall
from priorveil.mechanisms.moments import Moments, apply_rows, squared_rows
from priorveil.mechanisms.prior_check import chi_square_tail
from priorveil.mechanisms.unary_law import posterior_variances, sum_gain

Array = npt.NDArray[np.float64]

BITWISE = (
    "the prior is right: the tally was scored under the plan's prior, so under this one posteriors are given each "
    "value's own bit, not the whole report; the spread is that of such posteriors"
)
COMPOSITE = (
    "nothing about the prior, many reports: the likelihood is a composite one, of the bits as if each came from "
    "another person; the spread is the sampling noise of the reports"
)


class Flips(NamedTuple):
    """The chances that a clear bit is set and a set bit cleared, and the odds."""

    q01: float
    q10: float
    odds: float

    @property
    def contrast(self) -> float:
        """`1 - q01 - q10`: how much likelier a bit is set for its own value."""
        return 1 - self.q01 - self.q10

    def shown(self, p: Array) -> Array:
        """How likely each bit is set when the values follow `p`."""
        return np.asarray(self.q01 + self.contrast * p)


class Seen(NamedTuple):
    """A tally of unary reports: how many, ones per value, and the scores (alone, and per set bit)."""

    reports: float
    ones: Array
    base: float
    scores: Array


def joint_moments(flips: Flips, seen: Seen, prior: Array, rows: Array | None) -> Moments:
    """Posteriors given whole reports, added up: `P_x (sum of scores + (R - 1) sum of scores showing x)`."""
    histogram = prior * (seen.base + (flips.odds - 1) * seen.scores)
    if rows is None:
        return Moments(histogram, seen.reports * posterior_variances(prior, flips.q01, flips.odds))
    centred = rows - (rows @ prior)[:, None]
    error = centred**2 @ prior - sum_gain(prior, flips.q01, flips.odds, centred)
    return Moments(rows @ histogram, seen.reports * np.maximum(error, 0.0))


def bitwise_moments(flips: Flips, seen: Seen, prior: Array, rows: Array | None) -> Moments:
    """Posteriors given each value's own bit, added up."""
    shown = flips.shown(prior)
    if_set, if_clear = prior * (1 - flips.q10) / shown, prior * flips.q10 / (1 - shown)
    histogram = seen.ones * if_set + (seen.reports - seen.ones) * if_clear
    if rows is None:
        left = prior - shown * if_set**2 - (1 - shown) * if_clear**2
        return Moments(histogram, seen.reports * left, assumes=BITWISE)
    # The error of a row `a` is the variance of `a_X - sum_x each_x y_x`.
    q01, q10, _ = flips
    each = rows * (if_set - if_clear)
    means = rows - flips.contrast * each
    noise = q01 * (1 - q01) * (each**2).sum(axis=1) + (q10 * (1 - q10) - q01 * (1 - q01)) * (each**2 @ prior)
    error = means**2 @ prior - (means @ prior) ** 2 + noise
    return Moments(rows @ histogram, seen.reports * error, assumes=BITWISE)


def unbiased_moments(flips: Flips, seen: Seen, rows: Array | None, population: bool) -> Moments:
    """`(ones - N q01) / (1 - q01 - q10)`, with the noise of the bits as variance.

    With `population` also the variance of the people as a sample.
    """
    n, noise = _inverted(flips, seen)
    spread = apply_rows(squared_rows(rows), noise)
    return Moments(apply_rows(rows, n), _with_sampling(spread, n, seen, rows, population))


def levelled_moments(flips: Flips, seen: Seen, p: Array, rows: Array | None, population: bool) -> Moments:
    """The unbiased answer made to add up to the reports: what the most likely one is, to first order at `p`.

    With `w` in proportion to `s (1 - s)` at `p`, adding up to one, it is `n - w (sum of n - N)`; the noise of
    the bits of a report is independent, so its variances are those of weighted sums.
    """
    n, noise = _inverted(flips, seen)
    shown = flips.shown(p)
    w = shown * (1 - shown) / float((shown * (1 - shown)).sum())
    level = n - w * (n.sum() - seen.reports)
    spread = noise * (1 - 2 * w) + w**2 * noise.sum()
    if rows is not None:
        spread = (rows - (rows @ w)[:, None]) ** 2 @ noise
    return Moments(apply_rows(rows, level), _with_sampling(spread, level, seen, rows, population))


def _inverted(flips: Flips, seen: Seen) -> tuple[Array, Array]:
    """`(ones - N q01) / (1 - q01 - q10)`, and the noise of the bits in it."""
    q01, q10, _ = flips
    n = (seen.ones - seen.reports * q01) / flips.contrast
    return n, (n * q10 * (1 - q10) + (seen.reports - n) * q01 * (1 - q01)) / flips.contrast**2


def _with_sampling(spread: Array, n: Array, seen: Seen, rows: Array | None, population: bool) -> Array:
    """The variance; with `population`, the variance of the people as a sample is added."""
    if population:
        share = n / (seen.reports or 1.0)
        sampled = apply_rows(squared_rows(rows), share) - apply_rows(rows, share) ** 2
        spread = spread + seen.reports * sampled
    return np.maximum(spread, 0.0)


def bit_cells(flips: Flips, reports: float, ones: Array) -> Cells:
    """Every bit as a report of its own: cells "bit k is set" and "bit k is clear", in two runs of `d`."""
    d = ones.size
    shown = np.full((d, d), flips.q01) + flips.contrast * np.eye(d)
    return Cells(np.concatenate([ones, reports - ones]), np.hstack([shown, 1 - shown]) / d)


def composite_moments(
    flips: Flips, seen: Seen, start: Array, rows: Array | None, population: bool
) -> Moments:
    """The distribution that makes the counts of ones most likely, in people."""
    cells = bit_cells(flips, seen.reports, seen.ones)
    p, rounds, converged = most_likely(cells, start)
    spread = levelled_moments(flips, seen, p, rows, population).variance
    return Moments(
        seen.reports * apply_rows(rows, p), spread, rounds, converged, shortfall(cells, p), COMPOSITE
    )


def ones_check(flips: Flips, seen: Seen, prior: Array) -> float | None:
    """The p-value of the counts of ones under the prior: exact mean and covariance, a chi-square of `d`.

    The bits of a report have variance `s (1 - s)`, `s` the chance to be set, and covariance
    `-contrast^2 P_j P_k`.
    """
    shown = flips.shown(prior)
    if seen.reports * float(np.minimum(shown, 1 - shown).min()) < 5:
        return None
    apart = flips.contrast * prior
    own = shown * (1 - shown) + apart**2
    off = (seen.ones - seen.reports * shown) / np.sqrt(seen.reports)
    tilt = float((off / own) @ apart)
    statistic = float(off @ (off / own)) + tilt**2 / (1 - float((apart / own) @ apart))
    return chi_square_tail(statistic, seen.ones.size)
