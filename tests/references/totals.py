"""What published totals tell, straight from the definitions, in fractions; and figures from the literature of it.

The figures of README's plan, of randomised response, and of others who are independent draws of the prior were computed
apart from the library, by convolutions in another program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import numpy as np
import numpy.typing as npt

Rows = Sequence[Sequence[int]]  # integers that add up to the same total in each row
Counts = tuple[int, ...]
Law = Mapping[Counts, Fraction]

# README's plan, (.69, .11, .13, .07), LIP 1, for the distribution: people, delta, its level, that of any LIP 1 plan
README_LEVELS = (
    (300, 1e-5, 0.480, 0.836),
    (1_000, 1e-6, 0.286, 0.497),
    (10_000, 1e-6, 0.0827, 0.144),
    (100_000, 1e-8, 0.0318, 0.0548),
)
# Randomised response: values, its LDP level, people, delta, the level of the tally
RESPONSE_LEVELS = (
    (4, 1.0, 10_000, 1e-6, 0.03426),
    (4, 2.0, 10_000, 1e-6, 0.10196),
    (2, 1.0, 1_000, 1e-6, 0.14867),
)
# The channel below, epsilon .3, everybody else an independent draw of the prior (.5, .3, .2): people and delta
DRAWN_CHANNEL = ((6, 3, 1), (2, 5, 3), (1, 2, 7))
DRAWN_DELTAS = ((2, 0.3564305), (3, 0.2566300), (4, 0.1948165))


def tally_law(rows: Rows, values: Sequence[int]) -> dict[Counts, int]:
    """The law of the tally of people with these values, times a power of the total."""
    law: dict[Counts, int] = {(0,) * len(rows[0]): 1}
    for value in values:
        longer: dict[Counts, int] = {}
        for counts, weight in law.items():
            for y, q in enumerate(rows[value]):
                if q:
                    more = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                    longer[more] = longer.get(more, 0) + weight * q
        law = longer
    return law


def true_delta(rows: Rows, people: int, factor: Fraction) -> Fraction:
    """The least delta, over all values that the person and the others may have."""
    total, worst = sum(rows[0]) ** people, 0
    a, b = factor.numerator, factor.denominator
    for others in combinations_with_replacement(range(len(rows)), people - 1):
        laws = [tally_law(rows, (x, *others)) for x in range(len(rows))]
        for first, second in permutations(laws, 2):
            worst = max(worst, sum(max(b * p - a * second.get(counts, 0), 0) for counts, p in first.items()))
    return Fraction(worst, b * total)


def blanket_delta(
    rows: Rows, people: int, factor: Fraction, blanket: Sequence[Fraction] | None = None
) -> Fraction:
    """The formula of the blanket, by default of the least entry of each column, over all pairs of values."""
    total = sum(rows[0])
    channel = [[Fraction(q, total) for q in row] for row in rows]
    m = [min(column) for column in zip(*channel, strict=True)] if blanket is None else blanket
    return max(_pair_delta(first, second, m, people, factor) for first, second in permutations(channel, 2))


def _pair_delta(
    first: Sequence[Fraction],
    second: Sequence[Fraction],
    m: Sequence[Fraction],
    people: int,
    factor: Fraction,
) -> Fraction:
    gains = [p - factor * q for p, q in zip(first, second, strict=True)]
    steps = [(gain / w, w) for gain, w in zip(gains, m, strict=True) if w] + [(Fraction(0), 1 - sum(m))]
    law = {Fraction(0): Fraction(1)}
    for _ in range(people):
        longer: dict[Fraction, Fraction] = {}
        for value, weight in law.items():
            for step, w in steps:
                longer[value + step] = longer.get(value + step, Fraction(0)) + weight * w
        law = longer
    inside = sum((value * weight for value, weight in law.items() if value > 0), Fraction(0)) / people
    return inside + sum(
        (max(gain, Fraction(0)) for gain, w in zip(gains, m, strict=True) if not w), Fraction(0)
    )


def lip_delta(lowest: Fraction, highest: Fraction, people: int, factor: Fraction) -> Fraction:
    """The formula of the two-point law for lifts between these two."""
    upper = (1 - factor - lowest + factor * highest) / ((highest - lowest) * (1 + factor))
    weights = [lowest * upper, lowest * (1 - upper)]
    gains = [highest / lowest - factor, 1 - factor * highest / lowest]
    first = [w * max(gain, Fraction(0)) for w, gain in zip(weights, gains, strict=True)]
    second = [w * max(-gain, Fraction(0)) / factor for w, gain in zip(weights, gains, strict=True)]
    return _pair_delta(first, second, weights, people, factor)


def mmse_share_by_enumeration(
    rows: Rows, prior: Sequence[Fraction], people: int
) -> Iterator[tuple[Counts, list[Fraction]]]:
    """For each tally the belief that the first of so many people has each value, by Bayes over all their values."""
    size = len(rows)
    channel = [[Fraction(q, sum(row)) for q in row] for row in rows]
    drawn = [
        sum((p * row[y] for p, row in zip(prior, channel, strict=True)), Fraction(0))
        for y in range(len(rows[0]))
    ]
    others: dict[Counts, Fraction] = {(0,) * len(drawn): Fraction(1)}
    for _ in range(people - 1):
        others = _add_report(others, drawn)
    joint = [_add_report(others, row) for row in channel]
    for counts in joint[0].keys() | joint[-1].keys():
        weights = [prior[x] * joint[x].get(counts, Fraction(0)) for x in range(size)]
        yield counts, [weight / sum(weights) for weight in weights]


def _add_report(law: Law, report: Sequence[Fraction]) -> dict[Counts, Fraction]:
    longer: dict[Counts, Fraction] = {}
    for counts, weight in law.items():
        for y, q in enumerate(report):
            if q:
                more = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                longer[more] = longer.get(more, Fraction(0)) + weight * q
    return longer


def random_rows(rng: np.random.Generator, total: int) -> npt.NDArray[np.int64]:
    """A small channel of integers, in which every report occurs; about one in three has zeros."""
    values, reports = rng.integers(2, 4, size=2)
    while True:
        shares = rng.dirichlet(np.ones(reports), size=values)
        if rng.random() < 1 / 3:
            shares *= rng.random(shares.shape) < 0.7
        rows = np.round(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9) * total).astype(np.int64)
        rows[:, 0] += total - rows.sum(axis=1)
        if (rows >= 0).all() and rows.any(axis=0).all():
            return rows
