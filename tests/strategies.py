"""Hypothesis strategies for the nouns of the project: small, and nasty where it matters.

Hypothesis chooses (and shrinks) the shape and the kind of a thing; its numbers come from a seed: quick.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from priorveil.channels import Channel
from priorveil.priors import Budget, Prior, PriorSet, Secret

sizes = st.integers(2, 6)
levels = st.floats(0.05, 5.0)
seeds = st.integers(0, 2**32 - 1)
generators = seeds.map(np.random.default_rng)
line_weights = st.lists(st.integers(1, 40), min_size=2, max_size=8)  # masses of the values of an arc
lift_tenths = st.tuples(st.integers(1, 9), st.integers(11, 60))  # the least and the largest lift, in tenths


@st.composite
def priors(draw: st.DrawFn, size: int | None = None) -> Prior:
    """Even, skewed over twelve orders of magnitude, or one heavy value; from floats or from counts."""
    d, rng = draw(sizes) if size is None else size, draw(generators)
    kind = draw(st.sampled_from(["counts", "floats", "skewed", "heavy"]))
    if kind == "counts":
        return Prior.from_counts(rng.integers(1, 21, d))
    mass = {"floats": rng.random(d) + 0.01, "skewed": 10.0 ** -rng.integers(0, 13, d), "heavy": np.ones(d)}[
        kind
    ]
    mass[0] = rng.choice([1e3, 1e9]) if kind == "heavy" else mass[0]
    return Prior(mass / mass.sum())


@st.composite
def channels(draw: st.DrawFn, size: int, positive: bool = False) -> Channel:
    """Channels with zeros, rare reports and dead reports, or with positive entries only."""
    columns, rng = draw(st.integers(1, 6)), draw(generators)
    W = rng.choice([1, 1, 2, 3, 5, 20, 1000] if positive else [0, 0, 1, 1, 2, 5, 1000], (size, columns))
    W[~W.any(axis=1), rng.integers(columns)] = 1
    return Channel.from_weights(W)


@st.composite
def half_truths(draw: st.DrawFn, size: int) -> Channel:
    """Channels that report the value itself with probability one half: such reports identify the distribution."""
    Q = draw(channels(size)).matrix
    return Channel(np.column_stack([Q, np.eye(size)]) / 2)


def after(channel: Channel) -> st.SearchStrategy[Channel]:
    """Something that may be done with the reports of a channel."""
    return channels(channel.shape[1])


@st.composite
def secrets(draw: st.DrawFn, prior: Prior) -> Secret:
    """Secrets that the prior fits: its value sent through a channel gives the joint table."""
    onward = draw(channels(len(prior))).drop_unused()
    return Secret.from_joint((prior.probabilities[:, None] * onward.matrix).T)


@st.composite
def boxes(draw: st.DrawFn, size: int) -> PriorSet:
    """Intervals around a prior; where most are narrow, the wide ones cannot be used in full."""
    P, rng = draw(priors(size)).probabilities, draw(generators)
    down, up = (rng.choice([0.0, 0.1, 0.5], size) for _ in range(2))
    return PriorSet.interval(P * (1 - down), np.minimum(1, P + up * P.max()))


@st.composite
def prior_sets(draw: st.DrawFn, size: int) -> PriorSet:
    """Finite sets, boxes, balls, and all priors."""
    kind = draw(st.sampled_from(["finite", "interval", "ball", "all"]))
    if kind == "all":
        return PriorSet.all(size)
    if kind == "finite":
        return PriorSet(draw(st.lists(priors(size), min_size=1, max_size=3)))
    if kind == "ball":
        return PriorSet.ball(draw(priors(size)), draw(st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0])))
    return draw(boxes(size))


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    """Symmetric, asymmetric, one-sided."""
    lower, upper, none = draw(levels), draw(levels), float("inf")
    return Budget(*draw(st.sampled_from([(lower, lower), (lower, upper), (lower, none), (none, upper)])))


@st.composite
def tables(draw: st.DrawFn, size: int, positive: bool = False) -> npt.NDArray[np.int64]:
    """Integer tables whose rows add up to the same number, small or `2**62`."""
    columns, total, rng = draw(st.integers(1, 5)), draw(st.sampled_from([16, 1000, 2**62])), draw(generators)
    least = 1 if positive else 0
    free = total - least * columns
    cuts = rng.integers(0, free + 1, (size, columns - 1))
    rough = rng.choice([0, free // 3, free // 2, free], cuts.shape)
    inner = np.sort(np.where(rng.random(cuts.shape) < 0.5, cuts, rough), axis=1)
    ends = np.hstack([np.zeros((size, 1), np.int64), inner, np.full((size, 1), free)])
    return np.diff(ends, axis=1) + least
