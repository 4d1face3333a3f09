"""The best channels for gains in a `Space`: histogram, guess, sum, and several statistics that lean on the prior.

Values with the same prior (and weight) are interchangeable. The dual function is convex, so averaging duals
over them never hurts, and the master needs one row for each class.

Many light values are merged into blocks that share one lift. For histograms this costs nothing in the
bound: a block `B` of light values, with `P_B = sum P_x` and weight `w_B = sum w_x P_x^2 / P_B^2`, has the
same chord `w_B g_B P_B = sum w_x g_x P_x` as its members, so duals of the small problem that treat blocks
by their chords prove the same bound for the large one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from priorveil.arrays import Array
from priorveil.designs.bounds import largest_gain, simple_gain
from priorveil.designs.column_generation import Solution, Utility, solve
from priorveil.designs.cone_pricing import ConePricing, SortedProgram
from priorveil.designs.pricing import (
    GuessPricing,
    HistogramPricing,
    SquaresPricing,
    SumPricing,
    closed_form_guess,
    weighted_histogram,
)
from priorveil.designs.spaces import Box, Space, seeds, windows
from priorveil.designs.stopping import FIRST_STEP, MOST_DENSE, UNLIMITED, Limits, relative_gap
from priorveil.designs.tolerances import ROUNDING, SLACK
from priorveil.designs.value_groups import (
    BLOCKS,
    FEW_VALUES,
    MANY_VALUES,
    Indices,
    equal_groups,
    fewer_rows,
    group_means,
    neighbour_groups,
    ranks,
    similar_groups,
)

# Very many values are put into so many blocks for each mass that an output can point at: each block is light then.
_BLOCKS_PER_WINDOW = 8


def best_histogram(box: Box, limits: Limits = UNLIMITED, *, rows: int = BLOCKS) -> Solution:
    """The best channel for a histogram, `phi = sum_x (P_x r_x)^2`.

    >>> best = best_histogram(Box(np.full(4, 0.25), lo=0.5, hi=2.0))
    >>> round(best.value, 9), round(best.gap, 9)
    (0.34375, 0.0)
    """
    prior, weights = box.prior, np.ones(len(box.prior))
    if len(prior) <= MOST_DENSE and equal_groups(prior[None]).max() < 2 * rows:
        return weighted_histogram(box, weights, np.zeros(len(prior), dtype=bool), limits)
    # Several values in one block have at most 2 / count together: such a block is no heavier than tau.
    count = max(rows, math.ceil(2 / max(box.tau, 1e-15)))
    labels = neighbour_groups(prior, ranks(prior), count)
    merged = box.merge(labels)
    weight = np.bincount(labels, prior**2) / merged.prior**2
    small = weighted_histogram(merged, weight, np.bincount(labels) > 1, limits)
    before = HistogramPricing(merged, weight).closed_form_duals()
    after = HistogramPricing(box, weights).closed_form_duals()
    duals = after + prior * ((small.duals - before) / merged.prior)[labels]
    return replace(small, columns=small.columns[:, labels], duals=duals)


def best_guess(box: Box, limits: Limits = UNLIMITED, *, rows: int = BLOCKS) -> Solution:
    """The best channel for guessing the value, `phi = max_x P_x r_x`.

    About `1 / tau` values are ever guessed, the heaviest; in large domains the others become one block.

    >>> best = best_guess(Box(np.array([0.5, 0.5]), lo=0.5, hi=2.0))
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
    bound, duals = closed_form_guess(box, prior)
    return replace(widen(small, labels, bound, limits, float(prior.max())), duals=duals)


def _guess(box: Box, peaks: Array, limits: Limits) -> Solution:
    pricing = GuessPricing(box, peaks)
    bound, duals = closed_form_guess(box, peaks)
    columns, weights = _closed_form_channel(box, peaks)
    value = float(pricing.utility(columns) @ weights)
    gap = relative_gap(value, bound, float(peaks.max()))
    if gap <= limits.target and np.abs(weights @ columns - 1.0).max() < 1e-10:
        return Solution(
            columns=columns,
            weights=weights,
            value=value,
            bound=bound,
            gap=gap,
            iterations=0,
            converged=True,
            duals=duals,
        )
    alike = equal_groups(np.stack([box.prior, peaks]))
    return solve(pricing, np.vstack([seeds(box), columns]), limits, duals=duals, classes=alike)


def _closed_form_channel(box: Box, peaks: Array) -> tuple[Array, Array]:
    """The channel that reaches the closed-form bound on guessing, where it exists: columns and their weights.

    The heaviest values are guessed, each by a column of its own that holds it up to its cap. A column with the weight
    `P_x / g_x` uses up the whole value. The last column has the weight that is left, so it uses up only a part of its
    value; the other columns hold the rest of that value. The room that remains in a column goes to values that are
    never guessed.
    """
    order = np.argsort(-peaks, kind="stable")
    whole_weights = (box.prior / box.caps)[order]
    count = min(int(np.searchsorted(np.cumsum(whole_weights), 1.0 - ROUNDING)) + 1, len(order))
    guesses, others = order[:count], order[count:]
    caps, last = box.caps[guesses], guesses[-1]
    weights = whole_weights[:count].copy()
    weights[-1] = 1.0 - weights[:-1].sum()
    room = 1.0 - caps  # in each column, beside its guess
    rest_of_last = box.prior[last] - weights[-1] * caps[-1]
    room_before = float((weights * room)[:-1].sum())
    share_of_last = np.full(count, rest_of_last / room_before if room_before > 0 else 0.0)
    share_of_last[-1] = 0.0
    shares = np.zeros((count, len(order)))
    shares[:, last] = room * share_of_last
    shares[np.arange(count), guesses] = caps
    if len(others):
        spread = box.prior[others] / box.prior[others].sum()
        shares[:, others] = np.outer(room * (1.0 - share_of_last), spread)
    allowed = ((shares >= 0) & (shares <= box.caps + SLACK)).all(1)
    allowed &= np.abs(shares.sum(1) - 1.0) < ROUNDING
    return box.columns(shares[allowed]), weights[allowed]


def best_sum(space: Space, values: Array, limits: Limits = UNLIMITED) -> Solution:
    """The best channel for the sum of `values` with mean zero, `phi = (sum_x a_x P_x r_x)^2`.

    Many values are first put in coarse blocks, whose solution starts the fine problem. For very many values that
    solution is the answer. Any duals prove a bound for all the values, and those of the blocks, interpolated, prove a
    good one.

    >>> best = best_sum(Box(np.array([0.5, 0.5]), lo=0.5, hi=2.0), np.array([-1.0, 1.0]))
    >>> round(best.value, 9)
    0.25
    """
    pricing, prior, many = SumPricing(space, values), space.prior, len(space.prior) > MANY_VALUES
    duals, start = space.sum_duals(values), list[Array]()
    if len(prior) > FEW_VALUES:
        labels = similar_groups(prior, values[None], BLOCKS if many else max(FEW_VALUES, len(prior) // 4))
        merged = space.merge(labels)
        centres = np.bincount(labels, prior * values) / merged.prior
        # a bound for the blocks does not hold for the values, so a start does not report its progress
        part = limits if many else replace(limits.share(FIRST_STEP), progress=None)
        coarse = best_sum(merged, centres, part)
        above = coarse.duals - merged.sum_duals(centres)
        order = np.argsort(centres)
        duals = duals + prior * np.interp(values, centres[order], (above / merged.prior)[order])
        if many:
            bound = float(duals.sum()) + pricing.price(duals, exact=True).bound
            return widen(coarse, labels, min(bound, simple_gain(space, values[None])), limits)
        start.append(coarse.columns[:, labels])
        limits = limits.without_time() if coarse.interrupted else limits
    return solve(pricing, np.vstack([windows(space, values), seeds(space), *start]), limits, duals=duals)


def widen(
    solution: Solution, labels: Indices, bound: float, limits: Limits, utility_without_report: float = 0.0
) -> Solution:
    """A solution on blocks as one on all values, with a bound that is proven for these."""
    bound = max(bound, solution.value)
    converged = (
        limits.target_reached(solution.value, bound, utility_without_report) and not solution.interrupted
    )
    gap = relative_gap(solution.value, bound, utility_without_report)
    return replace(solution, columns=solution.columns[:, labels], bound=bound, gap=gap, converged=converged)


def best_linear(
    space: Space, rows: Array, limits: Limits = UNLIMITED, margins: Sequence[Indices] = ()
) -> Solution:
    """The best channel found for centred `rows` of statistics, `phi = |W D r|^2`, with a proven bound.

    `margins` label values (d,) that some of the statistics treat alike.

    >>> best = best_linear(Box(np.array([0.5, 0.5]), lo=0.5, hi=2.0), np.array([[-1.0, 1.0], [0.5, -0.5]]))
    >>> round(best.value, 9), round(best.bound, 4)
    (0.3125, 0.3125)
    """
    groupings = [*margins, *_similar_groups(space, rows)]
    try:
        bound = largest_gain(space, rows, groupings, limits.share(FIRST_STEP))
    except KeyboardInterrupt:
        bound, limits = simple_gain(space, rows), limits.without_time()
    solution = _search(space, rows, groupings, limits, bound)
    return widen(solution, np.arange(len(space.prior)), bound, limits)


def _similar_groups(space: Space, rows: Array) -> list[Indices]:
    """Blocks of similar values to design for first.

    Use d/4 blocks for up to 300 values, otherwise enough blocks that each is light.
    """
    d = len(space.prior)
    light = min(max(BLOCKS, _BLOCKS_PER_WINDOW / max(space.tau, 1e-15)), MANY_VALUES)
    return (
        [similar_groups(space.prior, rows, d // 4 if d <= MANY_VALUES else int(light))]
        if d > FEW_VALUES
        else []
    )


def _search(
    space: Space, rows: Array, groupings: Sequence[Indices], limits: Limits, bound: float
) -> Solution:
    """Column generation from the best columns for values in groups; for many values these columns are the answer."""
    d, solutions = len(space.prior), list[Solution]()
    for groups in groupings:
        parts = len(groupings) - len(solutions) + (d <= MANY_VALUES)
        share = replace(limits.share(1 / parts), progress=None)
        merged, means = space.merge(groups), group_means(space.prior, rows, groups)
        part = _search(merged, means, _similar_groups(merged, means), share, bound)
        solutions.append(replace(part, columns=part.columns[:, groups]))
        limits = limits.without_time() if part.interrupted else limits
    if d > MANY_VALUES:
        best = max(solutions, key=lambda part: part.value)
        try:
            limits.report(best.iterations, best.value, bound)
        except KeyboardInterrupt:
            return replace(best, interrupted=True)
        return best
    starts = [np.ones((1, d)), *(part.columns for part in solutions)] if solutions else [seeds(space)]
    pricing = SquaresPricing(space, fewer_rows(rows) * space.prior)
    return solve(pricing, np.vstack(starts), limits, bound=bound)


def best_convex(space: Space, utility: Utility, bound: float, limits: Limits = UNLIMITED) -> Solution:
    """The best channel for any convex utility; many values are merged into blocks of neighbours.

    `bound` is a closed form that is proven already: the search proves nothing.
    """
    prior, groups = space.prior, np.arange(len(space.prior))
    if len(prior) > MANY_VALUES:
        groups = neighbour_groups(prior, np.cumsum(prior), BLOCKS)
        space = space.merge(groups)
    blocks = np.arange(len(space.prior))
    arcs = -((blocks - blocks[:, None]) % len(blocks)).astype(float)
    start = np.vstack([np.ones(len(blocks)), space.best(arcs * space.prior)])
    nothing = np.zeros((1, len(blocks)))
    pricing = ConePricing(
        SortedProgram(space), space.prior, lambda columns: utility(columns[:, groups]), limits.over, nothing
    )
    solution = solve(pricing, start, limits, bound=bound)
    return replace(solution, columns=solution.columns[:, groups])
