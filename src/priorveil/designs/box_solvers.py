"""The best channels for the box `lo <= r <= hi`, query by query: starts, symmetry and size around the engine.

Values with the same prior (and weight) are interchangeable. The dual function is convex, so averaging duals
over them never hurts, and the master needs one row for each class.

Many light values are merged into blocks that share one lift. For histograms this costs nothing in the
bound: a block `B` of light values, with `P_B = sum P_x` and weight `w_B = sum w_x P_x^2 / P_B^2`, has the
same chord `w_B g_B P_B = sum w_x g_x P_x` as its members, so duals of the small problem that treat blocks
by their chords prove the same bound for the large one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from priorveil.arrays import Array, Mask
from priorveil.designs import box_pricing
from priorveil.designs.box_pricing import Space
from priorveil.designs.engine import Labels, Solution, solve
from priorveil.designs.limits import UNLIMITED, Limits, relative_gap

_ROWS = 160  # rows the master is merged down to
_SPREAD = 2000  # domains up to this size are spread over their symmetry
_BLOCKS = 48  # sums over more values are first solved on this many blocks, or on a quarter of the values
_SHIFTS = 200  # starts of one kind
_DIRECTIONS = 64  # sums of more statistics that their main direction is found from
_MOST_PRINCIPAL = 1_000  # statistics or values of which principal directions are found
_MOST_SUMMED, _SUM_BLOCKS = 300, 160  # values that a sum tells apart, and blocks that more are merged into


def best_histogram(box: box_pricing.Box, limits: Limits = UNLIMITED, *, rows: int = _ROWS) -> Solution:
    """The best channel for a histogram, `phi = sum_x (P_x r_x)^2`.

    >>> best = best_histogram(box_pricing.Box(np.full(4, 0.25), lo=0.5, hi=2.0))
    >>> round(best.value, 9), round(best.gap, 9)
    (0.34375, 0.0)
    """
    prior, weights = box.prior, np.ones(len(box.prior))
    if len(prior) <= _SPREAD and box_pricing.classes(prior).max() < 2 * rows:
        return weighted_histogram(box, weights, np.zeros(len(prior), dtype=bool), limits)
    # Several values in one block have at most 2 / count together: such a block is no heavier than tau.
    count = max(rows, math.ceil(2 / max(box.tau, 1e-15)))
    labels = neighbour_groups(prior, _ranks(prior), count)
    merged = box.merge(labels)
    weight = np.bincount(labels, prior**2) / merged.prior**2
    small = weighted_histogram(merged, weight, np.bincount(labels) > 1, limits)
    before = box_pricing.HistogramPricing(merged, weight).closed_form_duals()
    after = box_pricing.HistogramPricing(box, weights).closed_form_duals()
    duals = after + prior * ((small.duals - before) / merged.prior)[labels]
    return replace(small, columns=small.columns[:, labels], duals=duals)


def weighted_histogram(box: box_pricing.Box, weights: Array, loose: Mask, limits: Limits) -> Solution:
    """The best channel for `phi = sum_x w_x (P_x r_x)^2`; `loose` marks blocks of values that share a lift."""
    pricing = box_pricing.HistogramPricing(box, weights, loose)
    alike = box_pricing.classes(box.prior, weights, loose.astype(float))
    return solve(pricing, seeds(box), limits, duals=pricing.closed_form_duals(), classes=alike)


def best_guess(box: box_pricing.Box, limits: Limits = UNLIMITED, *, rows: int = _ROWS) -> Solution:
    """The best channel for guessing the value, `phi = max_x P_x r_x`.

    About `1 / tau` values are ever guessed, the heaviest; in large domains the others become one block.

    >>> best = best_guess(box_pricing.Box(np.array([0.5, 0.5]), lo=0.5, hi=2.0))
    >>> round(best.value, 9), len(best.weights)
    (0.75, 2)
    """
    prior = box.prior
    kept = max(rows, 2 * math.ceil(1 / max(box.tau, 1 / len(prior))))
    if len(prior) <= 2 * kept:
        return _guess(box, prior, limits)
    labels = np.full(len(prior), kept, np.intp)
    heaviest = np.argsort(-prior, kind="stable")
    labels[heaviest[:kept]] = np.arange(kept)
    small = _guess(box.merge(labels), prior[heaviest[: kept + 1]], limits)
    bound, duals = box_pricing.closed_form_guess(box, prior)
    return replace(widen(small, labels, bound, limits, float(prior.max())), duals=duals)


def _guess(box: box_pricing.Box, peaks: Array, limits: Limits) -> Solution:
    pricing, (bound, duals) = box_pricing.GuessPricing(box, peaks), box_pricing.closed_form_guess(box, peaks)
    columns, weights = _guess_columns(box, peaks)
    value = float(pricing.utility(columns) @ weights)
    gap = relative_gap(value, bound, float(peaks.max()))
    if gap <= limits.target and np.abs(weights @ columns - 1.0).max() < 1e-10:
        return Solution(columns, weights, value, bound, gap, 0, True, duals)
    alike = box_pricing.classes(box.prior, peaks)
    return solve(pricing, np.vstack([seeds(box), columns]), limits, duals=duals, classes=alike)


def _guess_columns(box: box_pricing.Box, peaks: Array) -> tuple[Array, Array]:
    """The channel that reaches the closed-form bound on guessing, where it exists: columns and their weights.

    Each of the heaviest values has a column that holds it up to its cap and spreads the rest over values that
    are never guessed. The last of them is guessed only in part; the columns before share what is left of it.
    """
    order = np.argsort(-peaks, kind="stable")
    often = (box.prior / box.caps)[order]
    count = min(int(np.searchsorted(np.cumsum(often), 1.0 - 1e-12)) + 1, len(order))
    guessed, tail = order[:count], order[count:]
    caps, last = box.caps[guessed], guessed[-1]
    rest = (often[:count] * (1.0 - caps))[:-1].sum()
    left = box.prior[last] - (1.0 - often[: count - 1].sum()) * caps[-1]
    part = np.append(np.full(count - 1, left / rest if rest > 0 else 0.0), 0.0)
    shares = np.zeros((count, len(order)))
    shares[:, last] = (1.0 - caps) * part
    shares[np.arange(count), guessed] = caps
    if len(tail):
        shares[:, tail] = np.outer((1.0 - caps) * (1.0 - part), box.prior[tail] / box.prior[tail].sum())
    fits = ((shares >= 0) & (shares <= box.caps + 1e-15)).all(1) & (np.abs(shares.sum(1) - 1.0) < 1e-12)
    weights = np.append(often[: count - 1], 1.0 - often[: count - 1].sum())
    return box.columns(shares[fits]), weights[fits]


def best_sum(box: Space, values: Array, limits: Limits = UNLIMITED) -> Solution:
    """The best channel for the sum of `values` with mean zero, `phi = (sum_x a_x P_x r_x)^2`.

    The solution on coarse blocks of many values starts the fine problem. Of very many it is the answer: any duals prove
    a bound for all the values, and those of the blocks, interpolated, prove a good one.

    >>> best = best_sum(box_pricing.Box(np.array([0.5, 0.5]), lo=0.5, hi=2.0), np.array([-1.0, 1.0]))
    >>> round(best.value, 9)
    0.25
    """
    pricing, prior, many = box_pricing.SumPricing(box, values), box.prior, len(box.prior) > _MOST_SUMMED
    duals, start = box.sum_duals(values), list[Array]()
    if len(prior) > _BLOCKS:
        labels = similar_groups(box, values[None], _SUM_BLOCKS if many else max(_BLOCKS, len(prior) // 4))
        merged = box.merge(labels)
        centres = np.bincount(labels, prior * values) / merged.prior
        coarse = best_sum(merged, centres, limits if many else limits.share(1 / 3))
        above = coarse.duals - merged.sum_duals(centres)
        order = np.argsort(centres)
        duals = duals + prior * np.interp(values, centres[order], (above / merged.prior)[order])
        if many:
            bound = float(duals.sum()) + pricing.price(duals, exact=True).bound
            return widen(coarse, labels, min(bound, simple_gain(box, values[None])), limits)
        start.append(coarse.columns[:, labels])
        limits = limits.without_time() if coarse.interrupted else limits
    return solve(pricing, np.vstack([_windows(box, values), seeds(box), *start]), limits, duals=duals)


def widen(found: Solution, labels: Labels, bound: float, limits: Limits, idle: float = 0.0) -> Solution:
    """A solution on blocks as one on all values, with a bound that is proven for these; `idle` as in `relative_gap`."""
    bound = max(bound, found.value)
    converged = limits.target_reached(found.value, bound, idle) and not found.interrupted
    gap = relative_gap(found.value, bound, idle)
    return replace(found, columns=found.columns[:, labels], bound=bound, gap=gap, converged=converged)


def simple_gain(box: Space, rows: Array) -> float:
    """A gain `|W D r|^2` of centred rows that no channel exceeds, from bounds on single statistics and on all of them.

    A statistic of variance `v` gains at most the share `box.most_explained` of it, and by Minkowski's inequality at
    most `(sum_x P_x |w_x| a_x)^2` with `a_x^2` the bound on `Y_xx`. In the principal directions of the statistics, of
    variances `v_k`, they gain `sum_k v_k y_k` with `y_k` at most this share, and `sum_k y_k <= box.most_spread`.
    """
    P, kept, squares = box.prior, box.most_explained, np.multiply(*box.sides())
    alone = np.minimum(kept * (rows**2 @ P), (np.abs(rows) @ (P * np.sqrt(squares))) ** 2)
    room, gain = 1 + 8 * sum(rows.shape) * 2.0**-52, float(alone.sum())
    if min(rows.shape) <= _MOST_PRINCIPAL:
        variances = np.linalg.svd(rows * np.sqrt(P), compute_uv=False) ** 2
        shares = np.clip(box.most_spread * room - kept * np.arange(len(variances)), 0.0, kept)
        gain = min(gain, float(variances @ shares))
    return gain * room


def neighbour_groups(prior: Array, values: Array, count: int) -> Labels:
    """At most `count` or so blocks of neighbouring values, about equal in mass; equal values stay together.

    >>> neighbour_groups(np.full(4, 0.25), np.array([3.0, 0.0, 1.0, 2.0]), 2)
    array([1, 0, 0, 1])
    """
    order = np.argsort(values, kind="stable")
    middle = np.cumsum(prior[order]) - prior[order] / 2
    quantile = np.minimum((middle * count).astype(int), count - 1)
    changes = np.diff(quantile, prepend=quantile[0]) > 0
    changes &= np.diff(values[order], prepend=values[order[0]]) > 0
    labels = np.empty(len(prior), np.intp)
    labels[order] = np.cumsum(changes)
    return labels


def similar_groups(box: Space, rows: Array, count: int) -> Labels:
    """At most `count` or so blocks of values that count nearly the same in centred `rows` of statistics.

    They are neighbours in the main direction of the statistics, with about equal shares of the mass and of `P^(1/3)`
    times the distance to the next value to the power 2/3, half of each: many points for a curve are best spread so.

    >>> similar_groups(box_pricing.Box(np.full(4, 0.25), lo=0.5, hi=2.0), np.array([[1.0, -1.0, 1.1, -1.1]]), 2)
    array([1, 0, 1, 0])
    """
    root = np.sqrt(box.prior)
    if len(rows) > _DIRECTIONS:
        rows = np.random.default_rng(0).standard_normal((_DIRECTIONS, len(rows))) @ rows
    main = np.linalg.svd(rows * root, full_matrices=False)[2][0] / root
    main = main * np.sign(main @ rows[0] or 1.0)
    order = np.argsort(main, kind="stable")
    steps = np.linalg.norm(np.diff(rows[:, order], append=rows[:, order[-1:]]), axis=0)
    share = np.cbrt(box.prior[order] * steps**2)
    share[order] = share / (share.sum() or 1.0)
    return neighbour_groups((box.prior + share) / 2, main, count)


def _ranks(numbers: Array) -> Array:
    """The place of each number in rising order."""
    return np.argsort(np.argsort(numbers, kind="stable")).astype(float)


def seeds(box: Space) -> Array:
    """Columns to start from: the constant one, arcs in several orders, and values before the heaviest or lightest.

    With all `P >= tau` the second kind is the mechanism of Theorem 3 itself.
    """
    d = len(box.prior)
    rng = np.random.default_rng(0)
    shifts = np.unique(np.linspace(0, d - 1, min(d, _SHIFTS)).astype(int))
    rank = _ranks(box.prior)
    orders = [np.arange(d), rank, rng.permutation(d)]
    arcs = [-((order - shift) % d) for order in orders for shift in shifts]
    alone = np.union1d(shifts, np.flatnonzero(box.prior >= box.tau))
    first = 2.0 * d * np.eye(d)[alone]
    scores = np.vstack([*arcs, first + rank, first - rank])
    return np.vstack([np.ones(d), box.best(scores * box.prior)])


def _windows(box: Space, values: Array) -> Array:
    """Stretches of neighbouring values: right of, left of and around every value, and both far ends."""
    d = len(values)
    away = _ranks(values) - np.linspace(0, d - 1, min(d, _SHIFTS))[:, None]
    right, left = np.where(away >= 0, -away, away - 2 * d), np.where(away <= 0, away, -away - 2 * d)
    around = [-np.abs(away - 0.25), -np.abs(away + 0.25), np.abs(away), -(away % d)]
    return box.best(np.vstack([right, left, *around]) * box.prior)
