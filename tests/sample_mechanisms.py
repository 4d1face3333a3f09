"""Small mechanisms that the tests of mechanisms and of their readers share."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

import priorveil as pv
from priorveil.certify import TOTAL
from priorveil.designs.arc_design import arc_layout
from priorveil.designs.encodings import best_pool
from priorveil.mechanisms import Arc, Orders, Subset
from priorveil.mechanisms.arc.certificate import fit_line
from priorveil.mechanisms.arc.line import ArcLine
from priorveil.mechanisms.randomness import BytesSource
from priorveil.mechanisms.unary import Unary
from priorveil.priors import Budget, Prior

POOL = best_pool(Prior.zipf(30), Budget(1.5), seeds=16)[0]


def zipf(d: int) -> np.ndarray:
    """Probabilities that fall like one over the rank."""
    p = 1 / np.arange(1, d + 1)
    return p / p.sum()


def exact_prior(p: np.ndarray) -> np.ndarray:
    """Integer weights near these probabilities."""
    return np.maximum((p * 2.0**60).astype(np.int64), 1)


def bounds_at(eps: float) -> tuple[Fraction, Fraction]:
    """The least and the largest lift within a level, with a margin for rounding."""
    margin = Fraction(1, 2**50)
    return Fraction(math.exp(-eps)) * (1 + margin), Fraction(math.exp(eps)) * (1 - margin)


def sample_line(weights, tenths, bits: int, word: int = 64, order=None) -> ArcLine:
    """The line for weights, and for bounds on the lift in tenths."""
    lo, hi = Fraction(tenths[0], 10), Fraction(tenths[1], 10)
    n = np.asarray(weights)
    along = np.arange(len(n)) if order is None else np.asarray(order)
    layout = arc_layout(n[along] / n.sum(), float(lo), float(hi))
    return fit_line(n, along[layout.order], layout.heavy, lo, hi, bits=bits, word=word)


def draw_with(arc: Arc, codes: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The reports that these words give."""
    return arc.sample(codes, BytesSource(words.astype("<u8").tobytes()))


def big_example(d: int = 300, N: int = 60_000) -> tuple[ArcLine, np.ndarray, np.ndarray]:
    """A line with values and words to draw reports from."""
    rng = np.random.default_rng(5)
    P, (lo, hi) = zipf(d), bounds_at(3.0)
    layout = arc_layout(P, math.exp(-3), math.exp(3))
    m = fit_line(exact_prior(P), layout.order, layout.heavy, lo, hi)
    return m, rng.choice(d, N, p=P), rng.integers(0, 2**64, size=(N, 3), dtype=np.uint64)


def plain_channel(m: ArcLine) -> np.ndarray:
    """The channel without the rounding of words, place by place."""
    k = m.keep / (1 << m.word)
    Q = np.full((len(m.order), m.outputs), (1 - k) / m.places)
    for h in range(m.heavy):
        x, size = m.order[h], min(m.edges[h + 1], m.start) - m.edges[h]
        Q[:, h] *= size
        Q[x, h] += k * size / m.lengths[x]
    for u in range(m.circumference):
        for t in (u + np.arange(m.window)) % m.circumference:
            x = m.members[np.searchsorted(m.rim, t, "right") - 1]
            Q[x, m.heavy + u] += k / m.lengths[x] / m.window
    return Q


@cache
def orders_plan(size: int = 40, epsilon: float = 1.0) -> pv.Plan:
    """A plan with arcs in many orders, designed once."""
    return pv.design(pv.Prior.zipf(size), epsilon, pv.Distribution(), method="arc")


def orders_pool(size: int = 40, epsilon: float = 1.0) -> Orders:
    """The mechanism of that plan."""
    mechanism = orders_plan(size, epsilon).mechanism
    assert isinstance(mechanism, Orders)
    return mechanism


def sample_unary(size: int, even: bool = False) -> Unary:
    """Unary encoding with masses that are random, or all equal."""
    masses = np.full(size, 12_345) if even else np.random.default_rng(size).integers(1, 1 << 40, size)
    return Unary(masses, noise=5, noise_bits=5, drop=TOTAL // 3)


def sample_subset(size: int, members: int, epsilon: float = 1.0) -> Subset:
    """Subset selection for a prior that falls like Zipf's."""
    odds = math.exp(epsilon)
    masses = (2.0**40 / np.arange(1, size + 1)).astype(np.int64)
    return Subset(masses, members, int(odds * members / (odds * members + size - members) * TOTAL))
