"""Margins of several attributes, each person asked about one of them at random: for products too large for one plan.

A report about a margin is a channel from the whole tuple of answers, and its lifts are those of the margin's plan. The
margin is part of the report. The draw does not depend on the answers, so it cancels in every lift. So the level
of a report is the largest of the levels of the plans, whatever the attributes have to do with each other, and no joint
prior is needed: the guarantee holds for every joint prior that has these margins.

Of `N` people `n_j` are asked about margin `j`, a random part of all, and its shares are estimated from their reports
alone. Given `n_j` they are `n_j` independent reports, so estimates and intervals of the plan hold as they are. They are
multiplied by `N / n_j`, not by one over the chance of being asked, which would add the variance of `n_j`.

With `v_j` the variance of one report, summed over the cells, and shares `s_j`, the total is `sum_j v_j / (N s_j)`. It
is least for `s_j` in proportion to `sqrt(v_j)`, and then `(sum_j sqrt(v_j))**2 / N`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from priorveil.atomic_files import atomic_write
from priorveil.certify import TOTAL, Certificate
from priorveil.designs.methods import design
from priorveil.errors import NOT_SHOWN, ForeignReport, InvalidInput
from priorveil.mechanisms import Table
from priorveil.mechanisms.randomness import Source, as_source
from priorveil.notions import PriorOrSet, as_prior_or_set
from priorveil.plans import Plan
from priorveil.plans.document import parse, read_field
from priorveil.plans.wording import levels_text
from priorveil.priors import Budget
from priorveil.queries import Distribution
from priorveil.reading.estimate import Estimate
from priorveil.reading.tally import Tally, Weighted

Names = tuple[str, ...]

PARTS = 1 << 20  # shares are whole numbers over this power of two, so that they are drawn exactly
_LEAST = 1e-5  # the least share, relative to the largest: a margin with a single cell is asked about too
_FORMAT, _VERSION = "priorveil-margins", 1


def design_margins(
    priors: Mapping[Names, PriorOrSet], epsilon: float | Budget, **options: Any
) -> MarginPlans:
    """Plans for margins, from reports alone, and the shares of people to ask about each that have the least error.

    `priors` maps the names of the attributes of a margin to its prior; the `options` are those of `design`. Ctrl-C
    keeps the best plan so far of the margin at hand, and goes on with the next.

    >>> from priorveil import Prior
    >>> pair = Prior.joint({("a", 0): 0.4, ("a", 1): 0.1, ("b", 0): 0.2, ("b", 1): 0.3}, names=("age", "sex"))
    >>> design_margins({("age", "sex"): pair, ("home",): Prior([0.3, 0.7], ["own", "rent"])}, epsilon=1.0)
    MarginPlans(LIP 1, LDP 2; asked about: age x sex 62.3 %, home 37.7 %)
    """
    plans = {}
    for names, prior in priors.items():
        own = as_prior_or_set(prior).centre.names
        if not isinstance(names, tuple) or names != (own or names) or (own is None and len(names) != 1):
            raise InvalidInput("priors", names, f"give a tuple of the prior's attributes, {own or ('name',)}")
        plans[names] = design(prior, epsilon, Distribution(), **options)
    return MarginPlans.of(plans)


@dataclass(frozen=True, eq=False)
class MarginPlans:
    """A plan for each margin, and how many of `PARTS` people are asked about it. `design_margins` makes one."""

    plans: Mapping[Names, Plan]
    shares: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.plans or not all(plan.query.unbiased for plan in self.plans.values()):
            raise InvalidInput("plans", list(self.plans), "give plans for unbiased queries, at least one")
        notions = {str(plan.notion.document()): plan.notion.name for plan in self.plans.values()}
        if len(notions) > 1:
            advice = "give plans for one notion: levels of different notions promise different things"
            raise InvalidInput("plans", sorted(notions.values()), advice)
        if len(self.shares) != len(self.plans) or min(self.shares) < 1 or sum(self.shares) != PARTS:
            advice = f"give whole numbers that add up to {PARTS}, one for each plan"
            raise InvalidInput("shares", self.shares, advice)

    @classmethod
    def of(cls, plans: Mapping[Names, Plan]) -> MarginPlans:
        """Any plans for unbiased queries, with the shares that have the least total error."""
        roots = np.sqrt([plan.expected_mse for plan in plans.values()])
        roots = np.maximum(roots, _LEAST * max(1.0, float(roots.max(initial=0.0))))
        ends = np.rint(np.cumsum(roots) / roots.sum() * PARTS).astype(np.int64)
        return cls(dict(plans), tuple(np.diff(ends, prepend=0).tolist()))

    def __repr__(self) -> str:
        asked = zip(map(" x ".join, self.plans), self.shares, strict=True)
        shares = ", ".join(f"{names} {100 * share / PARTS:.1f} %" for names, share in asked)
        assumed = any(plan.prior.assumed for plan in self.plans.values())
        return f"MarginPlans({levels_text(self.certificate, assumed)}; asked about: {shares})"

    @property
    def certificate(self) -> Certificate:
        """What is proven of a report about any margin: the largest of the levels."""
        proven = [plan.certificate for plan in self.plans.values()]
        names = ("lip_lower", "lip_upper", "ldp", "level")
        return Certificate(proven[0].notion, *(max(getattr(c, name) for c in proven) for name in names))

    @property
    def expected_mse(self) -> float:
        """The number of people times the summed variance of all margins, as shares, for many people."""
        errors = (plan.expected_mse for plan in self.plans.values())
        return sum(error * PARTS / share for error, share in zip(errors, self.shares, strict=True))

    def privatize(
        self, table: Any, rng: np.random.Generator | Source | None = None
    ) -> list[tuple[Names, Any]]:
        """For each person the names of a margin, drawn at random, and a report about it.

        `table` has a column for each attribute, by name: a data frame, an Arrow table or a mapping. For one person it
        may have single values.
        """
        source = as_source(rng)
        columns = {name: _column(table, name) for names in self.plans for name in names}
        if len({len(column) for column in columns.values()}) > 1:
            raise InvalidInput("table", NOT_SHOWN, "give columns of the same length")
        lottery = Table(np.array([self.shares]) * (TOTAL // PARTS))
        drawn = lottery.sample(np.zeros(len(next(iter(columns.values()))), dtype=np.int64), source)
        reports: list[Any] = [None] * len(drawn)
        for index, (names, plan) in enumerate(self.plans.items()):
            mine = np.flatnonzero(drawn == index)
            values = {name: columns[name][mine] for name in names}
            made = plan.privatize(values if plan.reference.names else values[names[0]], source)
            made = made.tolist() if made.ndim == 1 else made  # rows of bits stay arrays
            for person, report in zip(mine, made, strict=True):
                reports[person] = (names, report)
        return reports

    def tally(self, reports: Iterable[tuple[Names, Any]]) -> dict[Names, Tally]:
        """Add the reports about each margin up."""
        groups: dict[Names, list[Any]] = {names: [] for names in self.plans}
        for row, (names, report) in enumerate(reports):
            if tuple(names) not in groups:
                raise ForeignReport(f"reports[{row}]", names, "there is no plan for this margin")
            groups[tuple(names)].append(report)
        return {names: self.plans[names].tally(group) for names, group in groups.items()}

    def estimate(self, tallies: Mapping[Names, Tally]) -> dict[Names, Estimate]:
        """The counts of each margin over all people, from the reports of those who were asked about it.

        Of a margin that nobody was asked about nothing is known: its standard errors are infinite.
        """
        people = sum(tally.reports for tally in tallies.values())
        answers = {
            names: self.plans[names].estimate(_for_all(tally, people)) for names, tally in tallies.items()
        }
        for names, answer in answers.items():
            if not answer.reports:
                answers[names] = replace(answer, std_error=np.full_like(answer.values, np.inf), readings=())
        return answers

    def save(self, path: str | Path) -> None:
        """Write all plans and shares to a JSON file, replacing an older one."""
        margins = [
            {"names": names, "share": share, "plan": json.loads(plan.to_json())}
            for (names, plan), share in zip(self.plans.items(), self.shares, strict=True)
        ]
        document = {"format": _FORMAT, "version": _VERSION, "margins": margins}
        with atomic_write(Path(path), replace=True, argument="path") as file:
            file.write((json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: str | Path) -> MarginPlans:
        """Read the file that `save` wrote, proving every certificate again."""
        document = parse(Path(path).read_bytes(), _FORMAT, _VERSION, "`MarginPlans.save`")

        def read() -> MarginPlans:
            parts = document["margins"]
            plans = {tuple(part["names"]): Plan.from_json(json.dumps(part["plan"])) for part in parts}
            return cls(plans, tuple(part["share"] for part in parts))

        plans: MarginPlans = read_field("margins", read)
        return plans


def _column(table: Any, name: str) -> np.ndarray[Any, np.dtype[np.object_]]:
    try:
        return np.atleast_1d(np.asarray(table[name], dtype=object))
    except (KeyError, IndexError) as error:
        raise InvalidInput("table", NOT_SHOWN, f"it has no column {name!r}") from error


def _for_all(tally: Tally, people: int) -> Tally:
    """The tally with weights that make its reports stand for all people."""
    weight, counts = people / max(tally.reports, 1), tally.counts.astype(np.float64)
    sums = weight * counts, weight**2 * counts
    totals = weight * tally.reports, weight**2 * tally.reports
    return replace(tally, weighted=Weighted(*sums, *totals, least=0.0, offset=0.0))
