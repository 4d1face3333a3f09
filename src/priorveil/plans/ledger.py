"""The ledger: the leakage of several reports about the same person together.

Levels of LIP do **not** add up: the lift of a pair of reports is `r1 r2 / E[r1 r2]`, which can leak more than
the sum of its parts. A small joint channel is measured; otherwise the ledger uses a bound that is proven for the
value itself. For a latent secret no function of the levels is sound, so without the joint channel the ledger
refuses. Numbers that are rounded at random always get the bound. Sending a remembered report again costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorveil import notebook_html
from priorveil.channels import Channel
from priorveil.errors import NOT_SHOWN, BudgetExceeded, Infeasible, InvalidInput, TooLarge
from priorveil.formatting import level_at_most
from priorveil.frames import Library, to_frame
from priorveil.notions import LEVEL_HEADS, PriorOrSet, Secrets, as_prior_or_set, scenarios
from priorveil.plans import Plan
from priorveil.plans.composition import MOST_EXACT_ENTRIES, JointLeakage, bound, measure
from priorveil.plans.wording import ledger_facts, ledger_levels
from priorveil.priors import Budget, Prior


@dataclass(frozen=True)
class LedgerEntry:
    """One report that was made: the id of its plan, its level under the ledger's prior, and its LDP level."""

    plan: str
    lip: float
    ldp: float


class Ledger:
    """A record of the reports that one person made, and of what they leak together.

    Arguments: the `prior` (or set of priors) and `secret` against which leakage is measured; `limit`, the most
    that may be spent, a number or a `Budget` for LIP. All plans are about the same values, in any order. `level` is
    the joint leakage of all reports so far, and `spent` lists them.

    >>> import priorveil as pv
    >>> prior = pv.Prior([0.5, 0.5])
    >>> ledger = Ledger(prior, limit=1.2)
    >>> plan = pv.design(prior, epsilon=0.5, query=pv.Histogram())
    >>> ledger.spend(plan).lip <= 0.5
    True
    >>> ledger.spend(plan, replay=True).lip <= 0.5  # the remembered report, sent again, is free
    True
    >>> ledger.spend(plan).lip > 0.5  # a new report is not
    True
    """

    def __init__(
        self, prior: PriorOrSet, secret: Secrets = None, limit: float | Budget | None = None
    ) -> None:
        self.prior = as_prior_or_set(prior)
        self.secret = secret
        self.limit = None if limit is None else Budget.of(limit)
        self.spent: tuple[LedgerEntry, ...] = ()
        self._joint: Channel | None = Channel(np.ones((len(self.prior), 1)), self.prior.labels)
        self.level = JointLeakage()

    def would(self, plan: Plan) -> JointLeakage:
        """The level after a report by this plan; nothing is spent."""
        return self._after(plan)[1]

    def spend(self, plan: Plan, replay: bool = False) -> JointLeakage:
        """Record a new report by a plan and return the new level; above the limit it raises `BudgetExceeded`.

        With `replay` the remembered report of this plan is sent again, which costs nothing.
        """
        _require_plan(plan)
        if replay:
            if all(entry.plan != plan.id for entry in self.spent):
                raise InvalidInput(
                    "replay", plan.id, "no report of this plan was made yet: spend it first, without replay"
                )
            return self.level
        joint, level = self._after(plan)
        if self.limit is not None and not level.within(self.limit):
            advice = "send a remembered report again" if self.spent else _needed_limit(level)
            leak = f"answering would leak {level.lip_lower:.4g} downwards and {level.lip_upper:.4g} upwards"
            limit = f"the limit is {self.limit.lower:.4g} and {self.limit.upper:.4g}"
            raise BudgetExceeded(f"{leak}, {limit}: {advice}")
        self.spent = (*self.spent, LedgerEntry(plan.id, self._own_level(plan), plan.certificate.ldp))
        self._joint, self.level = joint, level
        return level

    def to_frame(self, library: Library | None = None) -> Any:
        """A row for each report: its plan and its levels, as a data frame of pandas, polars or pyarrow."""
        return to_frame({n: [getattr(e, n) for e in self.spent] for n in ("plan", "lip", "ldp")}, library)

    def _repr_html_(self) -> str:
        entries = [(e.plan[:12], level_at_most(e.lip), level_at_most(e.ldp)) for e in self.spent]
        table = notebook_html.table(("plan", "LIP", "LDP"), entries, [1, 2]) if entries else ""
        levels = notebook_html.table(LEVEL_HEADS, ledger_levels(self), [1])
        return notebook_html.sheet("Ledger", notebook_html.facts(ledger_facts(self)), levels, table)

    def _after(self, plan: Plan) -> tuple[Channel | None, JointLeakage]:
        """The joint channel, if it can be written out, and the level after a report by this plan."""
        _require_plan(plan)
        if set(plan.labels) != set(self.prior.labels):
            raise InvalidInput(
                "plan",
                plan.labels,
                "it is about other values than this ledger's prior: use a ledger of its own for them",
            )
        joint = self._joint_with(plan)
        if not self.spent and self._certified_for(plan):
            c = plan.certificate
            return joint, JointLeakage(c.lip_lower, c.lip_upper, c.ldp)
        return joint, self._bound(plan) if joint is None else measure(joint, self.prior, self.secret)

    def _joint_with(self, plan: Plan) -> Channel | None:
        """The joint channel of all reports so far and one by this plan; None if it is too large to write out.

        A matrix that averages over reports would understate the leakage. Numbers, also beside other attributes, are
        rounded again for each report, so they have no joint channel: that of the grid can leak less.
        """
        if self._joint is None or plan.mechanism.averages or plan.domain.rounds:
            return None
        try:
            entries = self._joint.matrix.size * plan.channel.shape[1]
            return self._joint.joint_with(plan.channel) if entries <= MOST_EXACT_ENTRIES else None
        except TooLarge:
            return None

    def _bound(self, plan: Plan) -> JointLeakage:
        """The bound for the value itself: `min(2 sum - max, sum of LDP levels)`, on both sides."""
        if self.secret is not None:
            problem = "for a latent secret levels cannot be added, and the joint channel cannot be measured"
            advice = "answer fewer questions, or use plans with fewer different reports"
            raise Infeasible(f"{problem}: {advice}")
        own = self._own_level(plan), plan.certificate.ldp
        return bound([*((entry.lip, entry.ldp) for entry in self.spent), own])

    def _own_level(self, plan: Plan) -> float:
        """The plan's level under this ledger's prior: its certificate's if they agree, else its LDP level."""
        certified = self._certified_for(plan) and plan.secret is None
        return plan.certificate.lip if certified else plan.certificate.ldp

    def _certified_for(self, plan: Plan) -> bool:
        """Whether the plan was certified for exactly this prior and secret."""
        if isinstance(plan.prior, Prior) and plan.secret is None:
            return plan.prior.align_to(self.prior.labels) == self.prior and self.secret is None
        ours, theirs = (None if s is None else scenarios(s) for s in (self.secret, plan.secret))
        return plan.prior == self.prior and ours == theirs


def _require_plan(plan: object) -> None:
    if not isinstance(plan, Plan):
        advice = "give one Plan (of plans drawn at random, see their certificate)"
        raise InvalidInput("plan", NOT_SHOWN, f"type {type(plan).__name__}; {advice}")


def _needed_limit(level: JointLeakage) -> str:
    if math.isinf(level.lip):
        return "no limit is enough for this plan"
    return f"it needs a limit of {math.ceil(level.lip * 1000) / 1000:g}"
