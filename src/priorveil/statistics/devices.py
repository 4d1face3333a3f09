"""The devices of randomised response, as channels: what a person says, given whether they have a sensitive trait.

Each channel for two values has a row for a carrier of the trait, then one for anybody else. Its reports have labels;
`Channel.report_codes` finds their numbers. `Plan.of(channel, prior, query)` reads the reports, at the levels that the
device really has: that of LIP is infinite downwards where a report proves that somebody is no carrier, and that of LDP
is infinite then too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import scipy.special

from priorveil.channels import Channel
from priorveil.errors import InvalidInput
from priorveil.priors import Label

_ROUNDING = 1e-9  # how far probabilities may be from adding up to one


def warner(p: float) -> Channel:
    """Warner (1965): with probability `p` the statement is "I am a carrier", otherwise "I am not".

    "Yes" is that it is true.

    >>> warner(0.75).matrix.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    p = _probability("p", p)
    return _two_reports(p, 1 - p)


def forced(truth: float, yes: float | Mapping[Label, float]) -> Channel:
    """Forced response (Boruch 1971): the truth with probability `truth`, "yes" on demand with `yes`, otherwise "no".

    For several values `yes` is a mapping from each value to the probability of being told to give it.

    >>> forced(0.75, 0.125).matrix.tolist()
    [[0.875, 0.125], [0.125, 0.875]]
    >>> forced(0.5, {"a": 0.25, "b": 0.125, "c": 0.125}).matrix.tolist()
    [[0.75, 0.125, 0.125], [0.25, 0.625, 0.125], [0.25, 0.125, 0.625]]
    """
    truth = _probability("truth", truth)
    if not isinstance(yes, Mapping):
        told = _probability("yes", yes)
        if truth + told > 1 + _ROUNDING:
            raise InvalidInput("yes", yes, f"with truth = {truth:.6g} it adds up to more than 1")
        return _two_reports(min(truth + told, 1.0), told)
    demands = np.array([_probability("yes", share) for share in yes.values()])
    if abs(truth + demands.sum() - 1) > _ROUNDING:
        advice = f"with truth = {truth:.6g} they add up to {truth + demands.sum():.6g}, not to 1"
        raise InvalidInput("yes", dict(yes), advice)
    return Channel(truth * np.eye(len(yes)) + demands, list(yes), list(yes))


def unrelated(p: float, alpha: float) -> Channel:
    """The unrelated question (Greenberg and others 1969): the sensitive question with probability `p`, else another.

    The answer to the other one is "yes" with the known probability `alpha`.

    >>> unrelated(0.5, 0.25).matrix.tolist()
    [[0.625, 0.375], [0.125, 0.875]]
    """
    p, alpha = _probability("p", p), _probability("alpha", alpha)
    other = (1 - p) * alpha
    return _two_reports(p + other, other)


def crosswise(p: float) -> Channel:
    """The crosswise model (Yu, Tian and Tang 2008): people say whether their answers to two questions are the same.

    The answer to the other question is "yes" with the known probability `p`.

    >>> crosswise(0.25).matrix.tolist()
    [[0.25, 0.75], [0.75, 0.25]]
    """
    p = _probability("p", p)
    return _two_reports(p, 1 - p, ("same", "different"))


def triangular(p: float) -> Channel:
    """The triangular model (Yu, Tian and Tang 2008): people say whether at least one of two answers is "yes".

    The answer to the other question is "yes" with the known probability `p`. "Neither" proves that somebody is no
    carrier.

    >>> triangular(0.25).matrix.tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """
    return _two_reports(1.0, _probability("p", p), ("at least one", "neither"))


def mangat(p: float) -> Channel:
    """Mangat (1994): a carrier says "yes"; anybody else says "no" with probability `p`, otherwise "yes".

    "No" proves that somebody is no carrier.

    >>> mangat(0.75).matrix.tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """
    return _two_reports(1.0, 1 - _probability("p", p))


def kuk(p1: float, p2: float, cards: int = 1) -> Channel:
    """Kuk (1990): the number of red cards among some from a pack that has the share `p1` of red ones, or `p2`.

    Carriers draw from the first pack, everybody else from the second, each time from the whole pack. Report `y` is `y`
    red cards. Where people may not comply, the last report is read as the harmless one: choose `p1` below `p2` then.

    >>> kuk(0.75, 0.25, cards=2).matrix.tolist()
    [[0.0625, 0.375, 0.5625], [0.5625, 0.375, 0.0625]]
    """
    if isinstance(cards, bool) or not isinstance(cards, int | np.integer) or cards < 1:
        raise InvalidInput("cards", cards, "give a whole number, 1 or more")
    shares = np.array([[_probability("p1", p1)], [_probability("p2", p2)]])
    red = np.arange(cards + 1)
    return Channel.from_weights(scipy.special.comb(cards, red) * shares**red * (1 - shares) ** (cards - red))


def _two_reports(carrier: float, other: float, reports: tuple[Label, Label] = ("yes", "no")) -> Channel:
    """The channel of the probabilities of the first report."""
    return Channel([[carrier, 1 - carrier], [other, 1 - other]], outputs=reports)


def _probability(argument: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= 1:
        raise InvalidInput(argument, value, "give a probability, from 0 to 1")
    return number
