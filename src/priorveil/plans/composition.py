"""What several reports of one person tell together, also about different attributes.

A report about some attributes is a channel from the tuple of all answers, with the same lifts. So several reports are
several reports about one value, the tuple. For the tuple, and so for each attribute, their level is at most
`min(2 sum - max, sum of LDP levels)`, whatever the answers have to do with each other, if the prior of every plan
is a margin of one joint law. Of plans with priors that contradict each other only the LDP levels count; and of plans
whose attributes overlap in a circle, because their priors may agree in pairs and still have no joint law.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorveil.arrays import Array
from priorveil.channels import Channel
from priorveil.errors import InvalidInput
from priorveil.notions import LipSides, PriorOrSet, Secrets, leakage
from priorveil.priors import Budget, Label, Prior
from priorveil.priors.label_texts import label_parts

MOST_EXACT_ENTRIES = 2_000_000  # a joint channel with more entries is not written out
_ROUNDING = 1e-9  # joint levels are measured in floats, so they are raised by this share
_SAME_SHARES = 1e-9  # how much two priors of one attribute may differ, relative: what floats lose in sums

Names = tuple[str, ...]


@dataclass(frozen=True)
class JointLeakage(LipSides):
    """The leakage of several reports together: LIP for the secret, LDP for the value; `exact` unless a bound."""

    lip_lower: float = 0.0
    lip_upper: float = 0.0
    ldp: float = 0.0
    exact: bool = True

    def within(self, limit: Budget) -> bool:
        """Whether both sides are within a limit; a level that is not a number is not."""
        return self.lip_lower <= limit.lower and self.lip_upper <= limit.upper


def bound(levels: Iterable[tuple[float, float]]) -> JointLeakage:
    """The most that reports with these levels of LIP and LDP tell together: `min(2 sum - max, sum of LDP levels)`.

    >>> bound([(1.0, 2.0), (0.5, 1.0)])
    JointLeakage(lip_lower=2.0, lip_upper=2.0, ldp=3.0, exact=False)
    """
    lips, ldps = zip(*levels, strict=True)
    ldp = math.fsum(ldps)
    together = math.inf if math.inf in lips else 2 * math.fsum(lips) - max(lips)
    lip = min(together, ldp)
    return JointLeakage(lip, lip, min(ldp, 2 * lip), exact=False)


def measure(joint: Channel, prior: PriorOrSet, secret: Secrets = None) -> JointLeakage:
    """The levels of a joint channel, raised by more than the rounding of floats."""
    measured = leakage(joint, prior, secret)
    levels = (measured.lip_lower, measured.lip_upper, measured.ldp)
    lower, upper, ldp = (level + _ROUNDING * (1 + level) for level in levels)
    return JointLeakage(lower, upper, ldp)


def agree(names: Names, prior: PriorOrSet, other_names: Names, other: PriorOrSet) -> bool:
    """Whether two priors give the attributes that they share the same probabilities.

    Sets of priors agree only where they are the same.

    >>> joint = Prior.joint({("a", 0): 0.4, ("a", 1): 0.1, ("b", 0): 0.2, ("b", 1): 0.3}, names=("age", "sex"))
    >>> [agree(("age", "sex"), joint, ("age",), Prior({"b": p, "a": 1 - p})) for p in (0.5, 0.4)]
    [True, False]
    """
    shared = tuple(name for name in names if name in other_names)
    if not shared or (names == other_names and prior == other):
        return True
    if not (isinstance(prior, Prior) and isinstance(other, Prior)):
        return False
    ours, theirs = _margin(prior, shared), _margin(other, shared)
    return ours.keys() == theirs.keys() and all(
        math.isclose(share, theirs[cell], rel_tol=_SAME_SHARES) for cell, share in ours.items()
    )


def cyclic(groups: Iterable[Names], linked: Iterable[Names] = ()) -> set[Names]:
    """The groups of attributes that overlap in a circle, such as A x B, B x C and A x C, also by `linked` attributes.

    Priors of groups that do not are margins of one joint law if they agree in pairs (Vorob'ev 1962); the others may
    agree in pairs and have none.

    >>> sorted(cyclic([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> cyclic([("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c")])
    set()
    """
    rest, linked, found = list(groups), list(linked), set[Names]()
    while core := _cyclic_core([*rest, *linked]):
        overlapping = {names for names in rest if any(own.issubset(names) for own in core)}
        if not overlapping:
            break
        found |= overlapping
        # Once in a larger group, the others may still overlap in a circle without it.
        rest = [names for names in rest if names not in found]
    return found


def _cyclic_core(groups: Iterable[Names]) -> set[frozenset[str]]:
    """What is left of groups without attributes of one group only, and groups within others (Graham's algorithm)."""
    left = {frozenset(names) for names in groups}
    while True:
        counts = Counter(name for own in left for name in own)
        inner = {frozenset(name for name in own if counts[name] > 1) for own in left}
        rest = {own for own in inner if own and not any(own < other for other in inner)}
        if rest == left:
            return left
        left = rest


def _margin(prior: Prior, names: Names) -> dict[tuple[Label, ...], float]:
    """The probabilities of the combinations of levels of some attributes."""
    shares: dict[tuple[Label, ...], float] = {}
    for cell, p in zip(_cells(prior, names), prior.probabilities.tolist(), strict=True):
        shares[cell] = shares.get(cell, 0.0) + p
    return shares


def extend(matrix: Array, labels: Sequence[Label], names: Names, joint: PriorOrSet) -> Array:
    """A channel about some attributes as one from the tuples of all: a row for each value of the joint prior.

    >>> joint = Prior.joint({("a", 0): 0.4, ("a", 1): 0.1, ("b", 0): 0.5}, names=("age", "sex"), impossible="leave out")
    >>> extend(np.array([[0.5, 0.5], [0.2, 0.8]]), ["b", "a"], ("age",), joint).tolist()
    [[0.2, 0.8], [0.2, 0.8], [0.5, 0.5]]
    """
    index = {label if len(names) > 1 else (label,): i for i, label in enumerate(labels)}
    cells: list[Any] = _cells(joint, names)
    if unknown := [cell for cell in cells if cell not in index]:
        advice = f"a plan about {' x '.join(names)} has no such value: plans and prior need the same values"
        raise InvalidInput("prior", unknown[0], advice)
    return np.asarray(matrix[[index[cell] for cell in cells]])


def _cells(prior: PriorOrSet, names: Names) -> list[tuple[Label, ...]]:
    """For each value its levels of some attributes; a prior without names has one attribute."""
    own = prior.domain.names
    if own is None:
        return [(label,) for label in prior.labels]
    places = [own.index(name) for name in names]
    return [tuple(label_parts(label)[place] for place in places) for label in prior.labels]
