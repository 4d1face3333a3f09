"""Checks that every notion and every query has to pass, found by introspection.

A new notion or query is tested by these before anyone writes a test for it.
"""

from __future__ import annotations

import inspect
import math
from types import ModuleType

import numpy as np
from hypothesis import assume

from priorveil import notions, queries
from priorveil.channels import Channel
from priorveil.priors import Budget, Prior, PriorSet, Secret

TOLERANCE = 1e-9


def _public(module: ModuleType, *verbs: str) -> list[type]:
    classes = [
        c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__.startswith(module.__name__)
    ]
    plain = [c for c in classes if not c.__name__.startswith("_") and not getattr(c, "_is_protocol", False)]
    return [c for c in plain if all(hasattr(c, verb) for verb in verbs)]


# PairwiseLDP is for values of a number that its argument fixes; tests/test_pairwise_ldp.py has its laws.
BASES = (notions.Notion, notions.Cone, notions.PairwiseLDP)
NOTIONS = [cls() for cls in _public(notions, "epsilon", "holds") if cls not in BASES]
CONES = [notion for notion in NOTIONS if isinstance(notion, notions.Cone)]
QUERIES = [
    cls
    for cls in _public(queries, "error", "closed_form_bound")
    if issubclass(cls, queries.Query) and cls is not queries.Query
]


def _entropy(posteriors: np.ndarray) -> np.ndarray:
    return (posteriors * np.log(np.maximum(posteriors, 1e-300))).sum(axis=1)


def make_query(query: type, size: int) -> queries.Query:
    """A query of that class for `size` values; a class with arguments needs its line here."""
    arguments = {
        "Linear": (np.tri(size) + np.arange(size),),
        "Sum": (np.arange(size) ** 2.0,),
        "Convex": (_entropy,),
    }
    return query(*arguments.get(query.__name__, ()))


def at_most(level: float, bound: float) -> bool:
    """`level <= bound` but for rounding; false for NaN. An infinite bound is an error: it would accept every level."""
    if not math.isfinite(bound):
        raise ValueError(f"bound = {bound}: compare with a finite number, or assume that the bound is finite")
    return level <= bound + TOLERANCE * (1 + abs(bound))


def close(one: float, other: float) -> bool:
    """Equal but for rounding, infinities included; false for NaN."""
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def finite(bound: float) -> float:
    """The bound of a law. Hypothesis drops an example whose bound is infinite, since the law says nothing about it."""
    assume(math.isfinite(bound))
    return bound


def tight(notion: notions.Notion, channel: Channel, prior: Prior | PriorSet, secret: Secret | None) -> None:
    """It holds at its epsilon, and not at 0.99 of it."""
    level = notion.epsilon(channel, prior, secret)
    assert level >= 0
    if math.isinf(level):
        assert not notion.holds(channel, prior, 700.0, secret)
        return
    assert notion.holds(channel, prior, level, secret)
    assert notion.holds(channel, prior, Budget(level, level + 1), secret)
    assert level == 0 or not notion.holds(channel, prior, 0.99 * level, secret)


def check_post_processing(
    notion: notions.Notion, channel: Channel, then: Channel, prior: Prior | PriorSet, secret: Secret | None
) -> None:
    """Post-processing never raises a level."""
    bound = finite(notion.epsilon(channel, prior, secret))
    assert at_most(notion.epsilon(channel @ then, prior, secret), bound)


def check_relabelling(
    notion: notions.Notion, channel: Channel, prior: Prior | PriorSet, secret: Secret | None
) -> None:
    """The order of reports, dead reports, and a coin that is tossed with each report change nothing."""
    level = notion.epsilon(channel, prior, secret)
    Q = channel.matrix
    dead = Channel(np.column_stack([Q[:, ::-1], np.zeros(len(Q))]))
    coin = Channel(np.column_stack([0.25 * Q, 0.75 * Q]))
    assert close(notion.epsilon(dead, prior, secret), level)
    assert close(notion.epsilon(coin, prior, secret), level)


def check_silent_channel(notion: notions.Notion, prior: Prior | PriorSet, channel: Channel) -> None:
    """One report for everybody has the lowest level there is: zero, or for DI the prior's own."""
    silent = Channel(np.ones((len(prior), 1)))
    level = notion.epsilon(silent, prior)
    assert isinstance(notion, notions.DI) or level < 1e-12
    assert at_most(level, finite(notion.epsilon(channel, prior)))


def as_cone(notion: notions.Notion, channel: Channel, prior: Prior | PriorSet, secret: Secret | None) -> None:
    """Its inequalities say the same as its epsilon: all are met just above it, one is broken well below."""
    level = notion.epsilon(channel, prior, secret)
    columns = channel.drop_unused().matrix
    columns = columns / columns.max(axis=0)
    if math.isfinite(level) and level < 500:
        above = notion.inequalities(Budget(level + TOLERANCE), prior, secret) @ columns
        assert (above >= -1e-12 * math.exp(level)).all()
    if level > 1e-3:
        below = notion.inequalities(Budget(min(0.99 * level, 20.0)), prior, secret) @ columns
        assert (below < 0).any()


def set_is_worse(notion: notions.Notion, channel: Channel, priors: PriorSet, member: Prior) -> None:
    """A set of priors is never better than its members (mutual information: for finite sets only)."""
    assume(priors.members or not isinstance(notion, notions.MIP))
    assert at_most(notion.epsilon(channel, member), finite(notion.epsilon(channel, priors)))


def check_information(query: queries.Query, channel: Channel, then: Channel, prior: Prior) -> None:
    """Knowing less never helps: no report is worst, post-processing loses, the whole truth is best."""
    error = finite(query.error(channel, prior))
    assert at_most(query.error(Channel.identity(len(prior)), prior), error)
    assert at_most(error, finite(query.error(channel @ then, prior)))
    if not query.unbiased:  # without a report an unbiased estimate does not exist
        assert at_most(error, query.no_report(prior))


def check_closed_form_bound(query: queries.Query, channel: Channel, prior: Prior) -> None:
    """The free bound lies below the error of a channel that keeps the budget, whichever side is finite."""
    lower, upper = notions.LIP().sides(channel, prior)
    within = [Budget(lower, upper), Budget(lower + 0.1, math.inf)] if math.isfinite(lower) else []
    error = finite(query.error(channel, prior))
    for budget in [*within, Budget(math.inf, upper), Budget(lower, upper + 1)]:
        assert at_most(query.closed_form_bound(prior, budget), error)
