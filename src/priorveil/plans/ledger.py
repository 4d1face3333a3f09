"""The ledger: the leakage of several reports about the same person together.

Levels of LIP do **not** add up: the lift of a pair of reports is `r1 r2 / E[r1 r2]`, which can leak more than
the sum of its parts. A small joint channel is measured; otherwise the ledger uses a bound that is proven for the
value itself. For a latent secret no function of the levels is sound, so without the joint channel the ledger
refuses. Numbers that are rounded at random always get the bound. Sending a remembered report again costs nothing.

Reports about different attributes are reports about the tuple of all of them (`plans.composition`). Under a joint
prior they are measured as well. If only the prior of each attribute is known, they get the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorveil import notebook_html
from priorveil.channels import Channel
from priorveil.errors import NOT_SHOWN, BudgetExceeded, Hint, Infeasible, InvalidInput, TooLarge, plural
from priorveil.formatting import level_at_most
from priorveil.frames import Library, to_frame
from priorveil.notions import LEVEL_HEADS, PriorOrSet, Secrets, as_prior_or_set, scenarios
from priorveil.plans import Plan
from priorveil.plans.composition import MOST_EXACT_ENTRIES, JointLeakage, Names, agree, bound, measure
from priorveil.plans.form import Form, Part, Slot, contradictory_in
from priorveil.plans.wording import ledger_facts, ledger_levels, levels_text
from priorveil.priors import Budget, Prior, PriorSet


@dataclass(frozen=True)
class LedgerEntry:
    """One report that was made: the id of its plan or form, its level under the ledger's prior, and its LDP level."""

    plan: str
    lip: float
    ldp: float


@dataclass(frozen=True)
class _Disclosure:
    """What a plan or a form would tell: a level for each report, and the channel from the values of the prior.

    `alone` is what it tells if nothing else was told, where that is certified. `earlier` are the levels of the reports
    so far, beside this one: a prior that contradicts theirs raises them. `slots` are those of plans about attributes.
    """

    id: str
    levels: tuple[tuple[float, float], ...]
    earlier: tuple[tuple[float, float], ...]
    channel: Channel | None
    alone: JointLeakage | None
    slots: tuple[Slot, ...] = ()


class Ledger:
    """A record of the reports that one person made, and of what they leak together.

    Arguments: the `prior` (or set of priors) and `secret` against which leakage is measured; `limit`, the most
    that may be spent, a number or a `Budget` for LIP. `level` is the joint leakage of all reports so far, and `spent`
    lists them. Plans are about the values of the prior, in any order; under a joint prior they may be about some of
    its attributes. If the joint prior is not known, give the prior of each attribute, by its name.

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
    >>> both = Ledger({"smokes": prior, "drives": prior})
    >>> both.spend(plan, about="smokes").lip <= 0.5
    True
    >>> round(both.spend(plan, about="drives").lip, 3)  # whatever smoking and driving have to do with each other
    1.5
    """

    def __init__(
        self,
        prior: PriorOrSet | Mapping[str, PriorOrSet],
        secret: Secrets = None,
        limit: float | Budget | None = None,
    ) -> None:
        by_attribute = isinstance(prior, Mapping) and prior and all(map(_is_prior, prior.values()))
        if by_attribute and secret is not None:
            raise InvalidInput("secret", NOT_SHOWN, "it needs a joint prior: without one no level is sound")
        given: Any = prior
        self.prior: PriorOrSet | dict[str, PriorOrSet]
        self.prior = dict(given) if by_attribute else as_prior_or_set(given)
        self.secret = secret
        self.limit = None if limit is None else Budget.of(limit)
        self.spent: tuple[LedgerEntry, ...] = ()
        self.level = JointLeakage()
        self._joint: Channel | None = None
        self._slots: tuple[Slot, ...] = ()  # of all reports, if the joint prior is not known
        if not isinstance(self.prior, dict):
            self._joint = Channel(np.ones((len(self.prior), 1)), self.prior.labels)

    @property
    def assumed(self) -> bool:
        """Whether a prior is only assumed, so that levels of LIP hold only if it is right."""
        priors = self.prior.values() if isinstance(self.prior, dict) else [self.prior]
        return any(prior.assumed for prior in priors)

    def would(self, plan: Plan | Form, about: str | Sequence[str] | None = None) -> JointLeakage:
        """The level after a report by this plan, or a submission of this form; nothing is spent."""
        return self._after(self._disclosure(plan, about))[1]

    def spend(
        self, plan: Plan | Form, about: str | Sequence[str] | None = None, replay: bool = False
    ) -> JointLeakage:
        """Record a new report by a plan and return the new level; above the limit it raises `BudgetExceeded`.

        A form has a report for each of its slots. `about` names the attributes of a plan that has no names of its own,
        where the ledger has several. With `replay` the remembered report is sent again, which costs nothing.
        """
        disclosure = self._disclosure(plan, about)
        if replay:
            if all(entry.plan != disclosure.id for entry in self.spent):
                raise InvalidInput(
                    "replay",
                    disclosure.id,
                    "no report of this plan was made yet: spend it first, without replay",
                )
            return self.level
        joint, level = self._after(disclosure)
        if self.limit is not None and not level.within(self.limit):
            advice = "send a remembered report again" if self.spent else _needed_limit(level)
            leak = f"answering would leak {level.lip_lower:.4g} downwards and {level.lip_upper:.4g} upwards"
            limit = f"the limit is {self.limit.lower:.4g} and {self.limit.upper:.4g}"
            raise BudgetExceeded(f"{leak}, {limit}: {advice}")
        plans = [*(entry.plan for entry in self.spent), *[disclosure.id] * len(disclosure.levels)]
        levels = zip(plans, (*disclosure.earlier, *disclosure.levels), strict=True)
        self.spent = tuple(LedgerEntry(plan, lip, ldp) for plan, (lip, ldp) in levels)
        self._joint, self.level = joint, level
        self._slots += disclosure.slots
        return level

    def to_frame(self, library: Library | None = None) -> Any:
        """A row for each report: its plan and its levels, as a data frame of pandas, polars or pyarrow."""
        return to_frame({n: [getattr(e, n) for e in self.spent] for n in ("plan", "lip", "ldp")}, library)

    def __repr__(self) -> str:
        limit = "" if self.limit is None else f", limit: {self.limit}"
        return f"Ledger({plural(len(self.spent), 'report')}, {levels_text(self.level, self.assumed)}{limit})"

    def _repr_html_(self) -> str:
        entries = [(e.plan[:12], level_at_most(e.lip), level_at_most(e.ldp)) for e in self.spent]
        table = notebook_html.table(("plan", "LIP", "LDP"), entries, [1, 2]) if entries else ""
        levels = notebook_html.table(LEVEL_HEADS, ledger_levels(self), [1])
        return notebook_html.sheet("Ledger", notebook_html.facts(ledger_facts(self)), levels, table)

    def _after(self, disclosure: _Disclosure) -> tuple[Channel | None, JointLeakage]:
        """The joint channel, if it can be written out, and the level after a disclosure."""
        joint = self._joint_with(disclosure.channel)
        if not self.spent and disclosure.alone is not None:
            return joint, disclosure.alone
        if joint is not None and not isinstance(self.prior, dict):
            return joint, measure(joint, self.prior, self.secret)
        if self.secret is not None:
            problem = "for a latent secret levels cannot be added, and the joint channel cannot be measured"
            advice = "answer fewer questions, or use plans with fewer different reports"
            raise Infeasible(f"{problem}: {advice}")
        return None, bound([*disclosure.earlier, *disclosure.levels])

    @property
    def _levels(self) -> tuple[tuple[float, float], ...]:
        return tuple((entry.lip, entry.ldp) for entry in self.spent)

    def _joint_with(self, channel: Channel | None) -> Channel | None:
        """The joint channel of all reports so far and these; None if it is too large to write out."""
        if self._joint is None or channel is None:
            return None
        entries = self._joint.matrix.size * channel.shape[1]
        return self._joint.joint_with(channel) if entries <= MOST_EXACT_ENTRIES else None

    def _disclosure(self, plan: Plan | Form, about: str | Sequence[str] | None) -> _Disclosure:
        if isinstance(plan, Form):
            if about is not None:
                raise InvalidInput("about", about, "leave it out: a form says what its plans are about")
            return self._of_form(plan, plan.id)
        if not isinstance(plan, Plan):
            raise InvalidInput("plan", NOT_SHOWN, f"type {type(plan).__name__}; give a Plan or a Form")
        own = plan.domain.names
        names = own if about is None else (about,) if isinstance(about, str) else tuple(about)
        if names is not None and names != (own or names):
            raise InvalidInput("about", about, f"the plan is about {', '.join(own or ())}")
        if isinstance(self.prior, dict):
            if names is None and len(self.prior) > 1:
                raise InvalidInput(
                    "about", None, f"name the plan's attribute: one of {', '.join(self.prior)}"
                )
            return self._of_form(Form.of(names or tuple(self.prior), plan), plan.id)
        ours = self.prior.domain.names
        if names is None or names == ours or (about is None and ours is None):
            return self._of_values(plan)
        return self._of_form(Form.of(names, plan), plan.id)

    def _of_values(self, plan: Plan) -> _Disclosure:
        """What a plan about the values of the ledger's prior tells."""
        assert not isinstance(self.prior, dict)
        if set(plan.labels) != set(self.prior.labels):
            raise InvalidInput(
                "plan",
                plan.labels,
                "it is about other values than this ledger's prior: use a ledger of its own for them",
                *([Hint("about", purpose="to name its attribute")] if self.prior.domain.names else []),
            )
        proof, certified = plan.certificate, self._certified_for(plan)
        own_level = proof.lip if certified and plan.secret is None else proof.ldp
        alone = JointLeakage(proof.lip_lower, proof.lip_upper, proof.ldp) if certified else None
        channel = None
        if not plan.mechanism.averages and not plan.domain.rounds:
            with suppress(TooLarge):
                channel = plan.channel
        return _Disclosure(plan.id, ((own_level, proof.ldp),), self._levels, channel, alone)

    def _of_form(self, form: Form, id: str) -> _Disclosure:
        """What a form tells; its plans may be about some of the attributes."""
        known: dict[Names, PriorOrSet]
        if isinstance(self.prior, dict):
            known = {(name,): prior for name, prior in self.prior.items()}
        else:
            known = {self.prior.domain.names or form.attributes[:1]: self.prior}
        attributes = dict.fromkeys(name for names in known for name in names)
        if not set(form.attributes) <= set(attributes):
            advice = f"this ledger's prior is about {', '.join(attributes)} alone: use another ledger"
            raise InvalidInput("plan", form.attributes, advice)

        def fits(part: Part) -> bool:
            """Whether its prior can be right, as far as this ledger knows."""
            return (
                self.secret is None
                and part.plan.secret is None
                and all(
                    agree(part.attributes, part.plan.prior, names, prior) for names, prior in known.items()
                )
            )

        # Of the priors that fit, some may contradict each other, and nobody knows which of them are right.
        slots = (*self._slots, *form.slots)
        fitting = [[part for part in slot.parts if fits(part)] for slot in slots]
        contradictory = contradictory_in(fitting, known)
        right = [[part for part in parts if part.attributes not in contradictory] for parts in fitting]
        levels = [
            slot.levels([part for part in slot.parts if part not in trusted])
            for slot, trusted in zip(slots, right, strict=True)
        ]
        pairs = tuple((level.lip, level.ldp) for level in levels)
        at = len(self._slots)
        is_certified = len(form.slots) == 1 and len(right[at]) == len(form.parts)
        alone = levels[at] if is_certified else None
        if isinstance(self.prior, dict):
            return _Disclosure(id, pairs[at:], pairs[:at], None, alone, form.slots)
        return _Disclosure(id, pairs, self._levels, form.channel(self.prior), alone)

    def _certified_for(self, plan: Plan) -> bool:
        """Whether the plan was certified for exactly this prior and secret."""
        assert not isinstance(self.prior, dict)
        if isinstance(plan.prior, Prior) and plan.secret is None:
            return plan.prior.align_to(self.prior.labels) == self.prior and self.secret is None
        ours, theirs = (None if s is None else scenarios(s) for s in (self.secret, plan.secret))
        return plan.prior == self.prior and ours == theirs


def _is_prior(prior: object) -> bool:
    return isinstance(prior, Prior | PriorSet)


def _needed_limit(level: JointLeakage) -> str:
    if math.isinf(level.lip):
        return "no limit is enough for this plan"
    return f"it needs a limit of {math.ceil(level.lip * 1000) / 1000:g}"
