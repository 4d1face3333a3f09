"""Unary encoding, subset selection and hashing at their best: which noise, how large sets, how many bins, which seeds.

**Unary.** Privacy fixes one number, the odds `R = (1-q01)(1-q10)/(q01 q10)`; what is left is a curve with one
free point, `q01`. `best_unary` takes the point with the least error, with as few bits of resolution as that allows.

**Subsets.** Privacy fixes the odds `R` of a set of `k` values: `e^eps` for LDP; for LIP the largest odds that keep both
sides, for the `k` rarest and the `k` commonest values. What is left is `k`, which is a search over whole numbers.

**Hashing.** Theorem 3 on groups of bins is valid iff every group has mass at least `tau`. Its gain for a
histogram is then `sum_x P_x^2 (1 + (1-lo)^2 (1/p_group(x) - 1))`: groups should be as light as is allowed.
For every seed tried, `best_pool` fills groups with bins until they are just heavy enough, and it keeps the
number of bins, the number of groups and the seeds with the largest gain.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit

from priorveil.arrays import Array, Ints
from priorveil.certify import TOTAL, exp_above, exp_below
from priorveil.designs.plan_assembly import mechanism_plan
from priorveil.designs.problem import DesignProblem, Objective
from priorveil.designs.stopping import MOST_ENTRIES, Stop, never
from priorveil.designs.tolerances import TOLERANCE
from priorveil.designs.value_groups import FEW_VALUES
from priorveil.errors import Hint, Infeasible
from priorveil.information import gain_share
from priorveil.mechanisms.bit_law import subset_law
from priorveil.mechanisms.bit_reports import lift_masses
from priorveil.mechanisms.hashing import PooledHash, bin_masses
from priorveil.mechanisms.randomness import Words
from priorveil.mechanisms.subset import Subset
from priorveil.mechanisms.unary import Unary, smallest_mass
from priorveil.plans import Plan
from priorveil.priors import Budget, Prior
from priorveil.queries import Query
from priorveil.reading.bit_covariances import ones_noise
from priorveil.reading.families import reader_of

_MOST_ODDS = Fraction(1 << 40)  # with larger odds a report is practically the value itself
# The share of the gain that a coarse noise probability may cost; each level of resolution costs a word.
_COARSE_LOSS = 1e-3
_MOST_NOISE_BITS = 24  # bits of a noise probability: each may cost a device another word
# More seeds and finer bins raise the gain a little and take longer.
_TRIES = 4  # seeds tried for each one that is kept
_BINS_PER_GROUP = 8  # bins for each group that fits
_SLACK = 1 << 20  # room for rounding, of 2^62: draws are this much more often fresh


def largest_odds(budget: Budget, lightest: Fraction, heaviest: Fraction) -> Fraction:
    """The largest odds that keep a budget, where set bits have a prior mass from `lightest` to `heaviest`.

    They obey `R / (1 + (R - 1) lightest) <= e^upper` and `1 + (R - 1) heaviest <= e^lower`, each proven from the safe
    side. For unary encoding the masses are those of the rarest value and of all others (Theorem 4).

    >>> round(float(largest_odds(Budget(1.0), Fraction(1, 10), Fraction(9, 10))), 6)
    2.909202
    """
    limits = [_MOST_ODDS]
    if math.isfinite(budget.lower):
        limits.append(1 + (exp_below(budget.lower) - 1) / heaviest)
    if math.isfinite(budget.upper) and exp_above(-budget.upper) > lightest:
        limits.append((1 - lightest) / (exp_above(-budget.upper) - lightest))
    return min(limits)


def require_unary(problem: DesignProblem) -> None:
    """Refuse what unary encoding is not for."""
    _require_value(problem, "unary")
    if not problem.has_one_prior and not (problem.query.unbiased and problem.prior.members):
        hint = Hint("method", "columns", purpose="for other sets of priors")
        message = "the method unary is for one prior, or for unbiased statistics under a finite set of priors"
        raise Infeasible(message, hint)


def require_subset(problem: DesignProblem) -> None:
    """Refuse what subset selection is not for."""
    problem.one_prior("subset")
    _require_value(problem, "subset")


def require_hashing(problem: DesignProblem) -> None:
    """Refuse what hashing is not for."""
    problem.one_prior("hashing")
    if not problem.is_lip_of_value or problem.objective is not Objective.HISTOGRAM:
        message = "the method hashing is for Histogram and LIP of the value itself"
        raise Infeasible(message, Hint("method", "columns"))


def _require_value(problem: DesignProblem, method: str) -> None:
    if problem.secret is not None or not problem.notion.implies_lip:
        message = f"the method {method} is for LIP or LDP of the value itself"
        raise Infeasible(message, Hint("method", "columns"))
    if len(problem.prior) < 2:
        raise Infeasible(f"the method {method} needs two values or more", Hint("method", "closed"))


def _error(mechanism: Unary | Subset, query: Query, prior: Prior) -> float:
    error = reader_of(mechanism).error(query, prior)
    if error is None:
        message = f"the method {mechanism.kind} does not know its error for {query.kind.capitalize()}"
        raise Infeasible(message, Hint("method", "columns"))
    return error


def _variance(mechanism: Unary, problem: DesignProblem, prior: Prior) -> float:
    """N times the variance of the statistics under a prior of the problem, centred at its reference."""
    reader, P = reader_of(mechanism), prior.probabilities
    rows = problem.query.centred_rows(problem.reference)
    answer = reader.answer("unbiased", reader.expected_counts(P, 1), P, rows, population=True)
    return float(answer.variance.sum())


def unary_plan(problem: DesignProblem) -> Plan:
    """Unary encoding at the best point of its tight curve."""
    odds = exp_below(problem.level)
    if problem.notion.bounds_lifts:
        rarest = smallest_mass(problem.prior)
        odds = largest_odds(problem.budget, rarest, 1 - rarest)
    mechanism = best_unary(problem.reference, odds, problem.query)
    if problem.query.unbiased:
        expected = max(_variance(mechanism, problem, p) for p in problem.prior.members)
    else:
        expected = _error(mechanism, problem.query, problem.one_prior("unary"))
    q01, q10 = map(float, mechanism.flips)
    why = f"unary encoding at the best point of its curve: 0 -> 1 with {q01:.4g}, 1 -> 0 with {q10:.4g}"
    return mechanism_plan(problem, mechanism, expected, "unary", why)


def best_unary(prior: Prior, odds: Fraction, query: Query) -> Unary:
    """The best unary encoding of at most these odds; for LDP the odds are `e^eps`.

    The noise is a fraction with as few bits as cost at most one part in a thousand of the gain: `q10`
    makes up for it, so the odds stay within `2**-60` of the limit whatever the noise.

    >>> from priorveil import Histogram
    >>> best_unary(Prior.uniform(100), exp_below(1.0), Histogram()).noise_bits <= 6
    True
    """
    masses = lift_masses(prior.weights)

    def make(q01: float, bits: int, step: int = 0) -> Unary:
        noise = min(max(round(q01 * 2**bits) + step, 1), 2**bits - 1)
        return unary_on_curve(masses, noise, bits, odds)

    def error(logit: float) -> float:
        return _error(make(float(expit(logit)), _MOST_NOISE_BITS), query, prior)

    # q01 lies between one in R d (many values, sharp reports) and its complement
    reach = math.log(float(odds) * len(prior)) + 2
    best = minimize_scalar(error, bounds=(-reach, reach), method="bounded")
    for bits in range(1, _MOST_NOISE_BITS + 1):
        near = [make(float(expit(best.x)), bits, step) for step in (-1, 0, 1)]
        errors = [_error(mechanism, query, prior) for mechanism in near]
        if gain_share(min(errors), float(best.fun), query.no_report(prior)) >= 1 - _COARSE_LOSS:
            break
    return near[int(np.argmin(errors))]


def unary_on_curve(masses: Ints, noise: int, noise_bits: int, odds: Fraction) -> Unary:
    """The mechanism with this noise whose odds are as large as possible and not above `odds`.

    >>> unary_on_curve(np.array([1, 1]), 1, 2, Fraction(3)).flips
    (Fraction(1, 4), Fraction(1, 2))
    """
    q01 = Fraction(noise, 1 << noise_bits)
    q10 = (1 - q01) / (1 + (odds - 1) * q01)
    return Unary(masses, noise, noise_bits, math.ceil(q10 * TOTAL))


def subset_plan(problem: DesignProblem, stop: Stop = never) -> Plan:
    """Subset selection with the best size of sets, or the best so far when `stop` says so."""
    prior = problem.one_prior("subset")
    masses, odds = lift_masses(prior.weights), _odds_of_sizes(problem, prior)

    def make(k: int) -> Subset:
        chance = odds[k - 1] * k / (odds[k - 1] * k + len(prior) - k)
        return Subset(masses, k, math.floor(chance * TOTAL))

    @cache
    def error(k: int) -> float:
        return _error(make(k), problem.query, prior)

    starts = {_best_for_ones(len(prior), odds), 1}  # with sets of one value it is randomised response
    if problem.objective is Objective.GUESS:  # any size may be best
        starts |= set(np.unique(np.geomspace(1, len(prior) - 1, 40).astype(int)).tolist())
    size = _best_size(error, starts, len(prior), stop)
    why = f"subset selection: sets of {size} of {len(prior):,} values, odds {float(make(size).odds):.4g}"
    return mechanism_plan(problem, make(size), error(size), "subset", why)


def _odds_of_sizes(problem: DesignProblem, prior: Prior) -> list[Fraction]:
    """The largest odds that the budget allows for sets of 1, 2, ... d - 1 values."""
    if not problem.notion.bounds_lifts:
        return [min(exp_below(problem.level), _MOST_ODDS)] * (len(prior) - 1)
    ordered = sorted(prior.weights)
    lightest = accumulate(ordered[:-1])
    heaviest = accumulate(ordered[:0:-1])
    return [
        largest_odds(problem.budget, Fraction(light, prior.total), Fraction(heavy, prior.total))
        for light, heavy in zip(lightest, heaviest, strict=True)
    ]


def _best_for_ones(values: int, odds: list[Fraction]) -> int:
    """The size that is best if only the ones are read, in closed form."""
    noise = [ones_noise(subset_law(float(R), values, k), values) for k, R in enumerate(odds, start=1)]
    return int(np.argmin(noise)) + 1


def _best_size(error: Callable[[int], float], starts: Iterable[int], values: int, stop: Stop) -> int:
    """The size with the least error: of all sizes if there are few values, else by local search from the best start."""
    best = min(range(1, values) if values <= FEW_VALUES else sorted(starts), key=error)
    for step in (1, -1):
        while 1 <= best + step < values and not stop() and error(best + step) < error(best):
            best += step
    return best


def hashing_plan(problem: DesignProblem) -> Plan:
    """Hashing into a few bins, with seeds whose bins are all heavy enough."""
    pool, gain = best_pool(problem.one_prior("hashing"), problem.budget)
    why = f"hashing into {pool.bins} bins, {pool.seeds.size} seeds whose bins are all heavy enough"
    return mechanism_plan(problem, pool, 1 - gain, "hashing", why)


class _SeedPool(NamedTuple):
    """Seeds, the group of each of their bins, and the mean gain."""

    seeds: Words
    groups: Ints
    gain: float


def best_pool(prior: Prior, budget: Budget, seeds: int = 256) -> tuple[PooledHash, float]:
    """Hashing with Theorem 3 on groups of bins: the best bins, groups and seeds, and their histogram gain.

    Seeds are tried in order, 0, 1, 2, ... Where fewer than `seeds` agree on a number of groups, the pool is
    the largest power of two that do.

    >>> pool, gain = best_pool(Prior.uniform(30), Budget(1.0), seeds=8)
    >>> pool.groups_per_seed, pool.seeds.size
    (3, 8)
    """
    P = prior.probabilities
    # a few bins for every group that fits, not many more than values, and few enough for their masses to fit in memory
    most = min(MOST_ENTRIES // (_TRIES * seeds), 4 * P.size)
    bins = max(2, min(most, math.floor(_BINS_PER_GROUP / max(budget.tau, 1 / most))))
    pools = list(_pools(P, budget, seeds, bins))
    if not pools:
        problem = "no hash function makes two groups of these values that are likely enough for this budget"
        raise Infeasible(problem, Hint("method", "arc", "columns"))
    best = max(pools, key=lambda pool: (pool.seeds.size, pool.gain))
    lo = exp_above(-budget.lower) if math.isfinite(budget.lower) else Fraction(0)
    fresh = math.ceil(lo * TOTAL) + _SLACK
    mechanism = PooledHash(prior.weights, best.seeds, best.groups, fresh)
    move = (1 - budget.lo) ** 2
    return mechanism, float(P @ P * (1 - move) + move * best.gain)


def _pools(P: Array, budget: Budget, pool_size: int, bins: int) -> Iterator[_SeedPool]:
    """For every number of groups that seeds with this many bins reach, the seeds with the largest gain."""
    tries = np.arange(max(pool_size, min(_TRIES * pool_size, MOST_ENTRIES // P.size)), dtype=np.uint64)
    rows = zip(bin_masses(tries, P, bins).tolist(), bin_masses(tries, P**2, bins).tolist(), strict=True)
    groupings = [group_bins(masses, squares, budget.tau * (1 + TOLERANCE)) for masses, squares in rows]
    groups, gains = np.array([each for each, _ in groupings]), np.array([gain for _, gain in groupings])
    sizes = groups.max(axis=1) + 1
    for count in set(sizes.tolist()) - {1}:
        same = np.flatnonzero(sizes == count)
        size = 1 << (min(pool_size, len(same)).bit_length() - 1)
        kept = np.sort(same[np.argsort(-gains[same], kind="stable")[:size]])
        yield _SeedPool(tries[kept], groups[kept], float(gains[kept].mean()))


def group_bins(masses: Sequence[float], squares: Sequence[float], least: float) -> tuple[list[int], float]:
    """The group of every bin, and the gain `sum_g (squares of g) / (mass of g)`.

    Every group has a mass of at least `least`, and as little more as a greedy fill can reach.

    A bin that is heavy enough is a group of its own. Otherwise the heaviest bin left opens a group, and the
    lightest bin that completes it does so (or, if none does, the heaviest goes in). What cannot be completed
    joins the group that loses least by it. `squares` are the sums of squared priors of the bins.

    >>> group_bins([0.4, 0.25, 0.2, 0.1, 0.05], [0.16, 0.0625, 0.04, 0.01, 0.0025], 0.3)[0]
    [0, 1, 2, 2, 1]
    """
    light = sorted((mass, bin_) for bin_, mass in enumerate(masses) if 0 < mass < least)
    made = [[bin_] for bin_, mass in enumerate(masses) if mass >= least and mass > 0]
    rest: list[int] = []
    while light:
        mass, opening = light.pop()
        rest = [opening]
        while mass < least and light:
            index = bisect_left(light, (least - mass, -1))
            more, bin_ = light.pop(min(index, len(light) - 1))
            mass += more
            rest.append(bin_)
        if mass >= least:
            made.append(rest)
            rest = []

    def gain(group: list[int]) -> float:
        return sum(squares[b] for b in group) / sum(masses[b] for b in group)

    if rest:
        taker = max(made, key=lambda group: gain(group + rest) - gain(group))
        taker += rest
    groups = [0] * len(masses)  # empty bins go to the first
    for number, group in enumerate(made):
        for bin_ in group:
            groups[bin_] = number
    return groups, math.fsum(map(gain, made))
