"""Randomised response by hand, with dice or cards: pairs of rows of integers that are worth using, and their levels.

A person with the first value says "yes" for `a` of `M` equally likely outcomes, one with the second value for `b` of
them. Both numbers are public: the sheet of a pair shows them to everybody. All pairs are listed, so the levels and the
variances are exact and none is missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from priorveil import showing
from priorveil.atomic_files import atomic_write
from priorveil.certify import Certificate, IntegerTable, Lifts, certificate, keeps_budget, lifts
from priorveil.channels import Channel
from priorveil.errors import Infeasible, InvalidInput
from priorveil.frames import Library, to_frame
from priorveil.notions import Cone, as_cone
from priorveil.priors import Budget, Prior

# What is thrown or drawn, and the outcomes that people tell apart: how many equally likely ones each stands for.
RANDOMISERS: Mapping[str, tuple[int, ...]] = {
    "die": (1,) * 6,
    "coin and die": (1,) * 12,
    "two dice": (1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1),  # the sums from 2 to 12
    "cards": (1,) * 52,
}


@dataclass(frozen=True)
class DicePair:
    """Two rows: for how many of the equally likely outcomes each answer says "yes".

    `yes` has the number for each value of the prior. Levels are exact, and rounded up in the `certificate`.

    >>> pair = DicePair("die", Prior({"carrier": 0.2, "other": 0.8}), (5, 1))
    >>> round(pair.certificate.ldp, 6), round(pair.variance, 6)
    (1.609438, 0.4725)
    """

    randomiser: str
    prior: Prior
    yes: tuple[int, int]

    def __post_init__(self) -> None:
        _require_two(self.prior, self.randomiser)
        if (
            len(self.yes) != 2
            or self.yes[0] == self.yes[1]
            or not set(self.yes) <= {*range(1, self.outcomes)}
        ):
            advice = f"give two different whole numbers, from 1 to {self.outcomes - 1}"
            raise InvalidInput("yes", self.yes, advice)

    @property
    def outcomes(self) -> int:
        """The number of equally likely outcomes."""
        return sum(RANDOMISERS[self.randomiser])

    @property
    def table(self) -> IntegerTable:
        """The rows as integers: "yes", then "no"."""
        return np.array([[count, self.outcomes - count] for count in self.yes])

    @cached_property
    def channel(self) -> Channel:
        """The rows as probabilities, for `Plan.of`."""
        return Channel.from_weights(self.table, self.prior.labels, ("yes", "no"))

    @cached_property
    def lifts(self) -> Lifts:
        """The extremes of the two rows, as exact fractions."""
        return lifts(self.table, self.prior)

    @cached_property
    def certificate(self) -> Certificate:
        """The levels, each rounded up."""
        return certificate(self.lifts)

    @property
    def variance(self) -> float:
        """N times the variance of the share of the first value, estimated from N reports, under the prior."""
        return float(self.exact_variance)

    @cached_property
    def exact_variance(self) -> Fraction:
        """The variance as a fraction."""
        says_yes = [Fraction(count, self.outcomes) for count in self.yes]
        law = sum(p * q for p, q in zip(self.prior.fractions, says_yes, strict=True))
        return law * (1 - law) / (says_yes[0] - says_yes[1]) ** 2

    def keeps(self, budget: Budget, notion: Cone) -> bool:
        """Whether the pair keeps a budget, decided in exact arithmetic."""
        extremes = self.lifts if notion.bounds_lifts else lifts(self.table, self.prior, None, notion)
        return keeps_budget(extremes, budget, notion)

    def spans(self, count: int) -> tuple[range, ...]:
        """Runs of outcomes that add up to `count`: as few as possible, and those that begin first.

        >>> DicePair("two dice", Prior([0.2, 0.8]), (26, 6)).spans(26)
        (range(0, 7),)
        """
        return _fewest_spans(RANDOMISERS[self.randomiser], count)

    def sheet(self, path: str | Path, question: str = "") -> None:
        """Write a page to print, as HTML: what a person has to say, for both answers, and why that protects them."""
        with atomic_write(Path(path), replace=True, argument="path") as file:
            file.write(showing.page(self, question).encode())

    def __str__(self) -> str:
        return showing.text(self)

    def _repr_html_(self) -> str:
        return showing.html(self)

    def record(self) -> dict[str, Any]:
        """The pair as one row of a table."""
        levels = {name: getattr(self.certificate, name) for name in ("lip", "lip_lower", "lip_upper", "ldp")}
        first, second = self.yes
        return {
            "outcomes": self.outcomes,
            "yes_first": first,
            "yes_second": second,
            **levels,
            "variance": self.variance,
        }


@dataclass(frozen=True)
class DiceMenu:
    """The pairs of rows for one die, two dice or a deck of cards; `dice_menu` makes it."""

    randomiser: str
    prior: Prior

    @cached_property
    def every_pair(self) -> tuple[DicePair, ...]:
        """All pairs in which both answers may say both words, and the first value says "yes" more often.

        The others give an answer away, or are the same with the words exchanged.
        """
        counts = range(1, sum(RANDOMISERS[self.randomiser]))
        return tuple(DicePair(self.randomiser, self.prior, (b, a)) for a, b in combinations(counts, 2))

    @cached_property
    def pairs(self) -> tuple[DicePair, ...]:
        """The undominated pairs, by LIP level: no other has levels and a variance that are all at most as large."""
        found: list[tuple[tuple[Fraction, ...], DicePair]] = []
        for costs, pair in sorted(
            ((_costs(pair), pair) for pair in self.every_pair), key=lambda each: each[0]
        ):
            # All that are found have a LIP level at most as large.
            if not any(ldp <= costs[1] and variance <= costs[2] for (_, ldp, variance), _ in found):
                found.append((costs, pair))
        return tuple(pair for _, pair in found)

    def best(self, epsilon: float | Budget, notion: Cone | None = None) -> DicePair:
        """The pair with the least variance of those that keep a budget: of LIP, or of another notion."""
        budget, notion = Budget.of(epsilon), as_cone(notion)
        kept = [pair for pair in self.every_pair if pair.keeps(budget, notion)]
        if not kept:
            more = "" if self.randomiser == "cards" else ", or cards"
            message = (
                f"no rows for {self.randomiser} keep {notion.name} at {budget}: use a larger epsilon{more}"
            )
            raise Infeasible(message)
        return min(kept, key=lambda pair: pair.exact_variance)

    def to_frame(self, library: Library | None = None) -> Any:
        """The undominated pairs with their levels, as a data frame of pandas, polars or pyarrow."""
        rows = [pair.record() for pair in self.pairs]
        return to_frame({name: [row[name] for row in rows] for name in rows[0]}, library)

    def __str__(self) -> str:
        return showing.text(self)

    def _repr_html_(self) -> str:
        return showing.html(self)


def dice_menu(prior: Prior | Mapping[Any, float] | Sequence[float], randomiser: str = "die") -> DiceMenu:
    """The rows worth using for a question with two answers, by hand: with a die, a coin and a die, two dice, or cards.

    `randomiser` is "die", "coin and die", "two dice" or "cards". `print` shows the pairs, `best(epsilon)` is the one
    with the least variance within a budget, and its `sheet(path, question)` writes the page to print.

    >>> menu = dice_menu({"yes": 0.2, "no": 0.8}, "two dice")
    >>> pair = menu.best(1.0)
    >>> pair.yes, round(pair.certificate.lip, 3), round(pair.variance, 3)
    ((26, 6), 0.956, 0.65)
    """
    known = Prior.of(prior)
    _require_two(known, randomiser)
    return DiceMenu(randomiser, known)


def _require_two(prior: Prior, randomiser: str) -> None:
    if randomiser not in RANDOMISERS:
        raise InvalidInput("randomiser", randomiser, f"choose one of {', '.join(RANDOMISERS)}")
    if len(prior) != 2:
        advice = "dice are for two values: for more, round the rows of a plan and use certify_table"
        raise InvalidInput("prior", len(prior), advice)


def _costs(pair: DicePair) -> tuple[Fraction, Fraction, Fraction]:
    """What a pair costs: its LIP and LDP levels as factors, and its variance."""
    extremes = pair.lifts
    assert extremes.ldp is not None  # all of its entries are positive
    return max(extremes.highest, 1 / extremes.lowest), extremes.ldp, pair.exact_variance


def _fewest_spans(groups: Sequence[int], count: int) -> tuple[range, ...]:
    """One run of neighbouring groups that add up to `count`, or else two."""
    ends = range(len(groups) + 1)
    single = [range(a, b) for a, b in combinations(ends, 2) if sum(groups[a:b]) == count]
    if single:
        return (single[0],)
    double = (
        (range(a, b), range(c, d))
        for a, b, c, d in combinations(ends, 4)
        if sum(groups[a:b]) + sum(groups[c:d]) == count
    )
    return next(double)
