"""The ledger: the leakage of several reports about the same person together.

Levels of LIP do **not** add up: the lift of a pair of reports is `r1 r2 / E[r1 r2]`, which can leak more than
the sum of its parts. The ledger measures the joint channel under its own prior if the prior covers everything that was
reported and the channel is small. Otherwise it states the sum of the LDP levels. For a latent secret no function of the
levels is sound, so without a joint channel the ledger refuses. Sending a remembered report again costs nothing.

Reports about different attributes are reports about the tuple of all of them (`plans.composition`), so a joint prior
covers them, and the priors of single attributes do not. Numbers that are rounded at random have no joint channel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorveil import showing
from priorveil.channels import Channel
from priorveil.errors import NOT_SHOWN, BudgetExceeded, Infeasible, InvalidInput
from priorveil.frames import Library, to_frame
from priorveil.notions import PriorOrSet, Secrets, as_prior_or_set, scenarios
from priorveil.plans import Plan
from priorveil.plans.composition import MOST_EXACT_ENTRIES, JointLeakage, Names, measure, positions
from priorveil.plans.form import Form, Part
from priorveil.priors import Budget, Prior, PriorSet

# How much a prior may differ from the margin of a joint one, relative: what floats lose in sums.
_SAME_SHARES = 1e-9


@dataclass(frozen=True)
class LedgerEntry:
    """One report that was made: the id of its plan or form, and its LDP level."""

    plan: str
    ldp: float


class Ledger:
    """A record of the reports that one person made, and of what they leak together.

    Arguments: the `prior` (or set of priors) and `secret` against which leakage is measured; `limit`, the most
    that may be spent, a number or a `Budget` for LIP. `level` is the joint leakage of all reports so far, and `spent`
    lists them. Plans are about the values of the prior, in any order; under a joint prior they may be about some of
    its attributes. If the joint prior is not known, give the prior of each attribute, by its name: reports about
    several attributes then count by their LDP levels.

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
    >>> both.spend(plan, about="drives").lip == 2 * plan.certificate.ldp  # whatever smoking has to do with driving
    True
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
        self._attributes: frozenset[str] = frozenset()  # what all reports so far are about
        # The channel of all reports so far, if the prior covers them and it can be written out.
        self._joint: Channel | None = None

    @property
    def assumed(self) -> bool:
        """Whether the level of LIP holds only if an assumed prior is right; sums of LDP levels hold in any case."""
        priors = self.prior.values() if isinstance(self.prior, dict) else [self.prior]
        return self.level.lip < self.level.ldp and any(prior.assumed for prior in priors)

    def would(self, plan: Plan | Form, about: str | Sequence[str] | None = None) -> JointLeakage:
        """The level after a report by this plan, or a submission of this form; nothing is spent."""
        return self._after(self._form(plan, about))[1]

    def spend(
        self, plan: Plan | Form, about: str | Sequence[str] | None = None, replay: bool = False
    ) -> JointLeakage:
        """Record a new report by a plan and return the new level; above the limit it raises `BudgetExceeded`.

        A form has a report for each of its slots. `about` names the attributes of a plan that has no names of its own,
        where the ledger has several. With `replay` the remembered report is sent again, which costs nothing.
        """
        form = self._form(plan, about)
        if replay:
            if all(entry.plan != plan.id for entry in self.spent):
                raise InvalidInput(
                    "replay", plan.id, "no report of this plan was made yet: spend it first, without replay"
                )
            return self.level
        joint, level = self._after(form)
        if self.limit is not None and not level.within(self.limit):
            advice = "send a remembered report again" if self.spent else _needed_limit(level)
            leak = f"answering would leak {level.lip_lower:.4g} downwards and {level.lip_upper:.4g} upwards"
            limit = f"the limit is {self.limit.lower:.4g} and {self.limit.upper:.4g}"
            raise BudgetExceeded(f"{leak}, {limit}: {advice}")
        self.spent += tuple(LedgerEntry(plan.id, slot.levels().ldp) for slot in form.slots)
        self._attributes = self._attributes.union(form.attributes)
        self._joint, self.level = joint, level
        return level

    def to_frame(self, library: Library | None = None) -> Any:
        """A row for each report: its plan and its LDP level, as a data frame of pandas, polars or pyarrow."""
        return to_frame({n: [getattr(e, n) for e in self.spent] for n in ("plan", "ldp")}, library)

    def __repr__(self) -> str:
        return showing.line(self)

    def _repr_html_(self) -> str:
        return showing.html(self)

    def _form(self, plan: Plan | Form, about: str | Sequence[str] | None) -> Form:
        """What would be reported, as a form that names its attributes."""
        if isinstance(plan, Form):
            if about is not None:
                raise InvalidInput("about", about, "leave it out: a form says what its plans are about")
            return plan
        if not isinstance(plan, Plan):
            raise InvalidInput("plan", NOT_SHOWN, f"type {type(plan).__name__}; give a Plan or a Form")
        own, ours = plan.domain.names, self._names
        names = own if about is None else (about,) if isinstance(about, str) else tuple(about)
        if names is None and len(ours) > 1:
            raise InvalidInput("about", None, f"name the plan's attribute: one of {', '.join(ours)}")
        if names is not None and names != (own or names):
            raise InvalidInput("about", about, f"the plan is about {', '.join(own or ())}")
        return Form.of(names or ours, plan)

    @property
    def _names(self) -> Names:
        """The attributes of the prior; one without a name gets the name that was reported first."""
        if isinstance(self.prior, dict):
            return tuple(self.prior)
        return self.prior.domain.names or tuple(self._attributes)[:1] or ("value",)

    def _after(self, form: Form) -> tuple[Channel | None, JointLeakage]:
        """The joint channel, if it can be written out, and the level after a submission of this form."""
        prior = self._covering_prior(self._attributes.union(form.attributes))
        joint = None if prior is None else self._joint_with(form.channel(prior))
        if not self.spent and len(form.slots) == 1:
            return joint, JointLeakage.largest(map(self._alone, form.parts))
        ldps = [*(entry.ldp for entry in self.spent), *(slot.levels().ldp for slot in form.slots)]
        return joint, self._together(joint, prior, math.fsum(ldps))

    def _alone(self, part: Part) -> JointLeakage:
        """The level of a part as the first report: its certificate, if that is for this ledger's prior and secret."""
        proof, prior = part.plan.certificate, self._covering_prior({*part.attributes})
        if prior is not None and self._is_certified_for(part, prior):
            return JointLeakage(proof.lip_lower, proof.lip_upper, proof.ldp)
        channel = None if prior is None else Form.of(part.attributes, part.plan).channel(prior)
        return self._together(channel, prior, proof.ldp)

    def _together(self, joint: Channel | None, prior: PriorOrSet | None, ldp: float) -> JointLeakage:
        """The level of a joint channel under a prior, or the sum of LDP levels where there is no such channel."""
        if joint is not None and prior is not None:
            return measure(joint, prior, self.secret)
        if self.secret is not None:
            problem = "for a latent secret levels cannot be added, and the joint channel cannot be measured"
            advice = "answer fewer questions, or use plans with fewer different reports"
            raise Infeasible(f"{problem}: {advice}")
        return JointLeakage.for_any_prior(ldp)

    def _covering_prior(self, attributes: Set[str]) -> PriorOrSet | None:
        """The prior of all these attributes together; None if the ledger has none."""
        if isinstance(self.prior, dict):
            return self.prior.get(next(iter(attributes))) if len(attributes) == 1 else None
        own = self.prior.domain.names
        covers = len(attributes) == 1 if own is None else attributes <= set(own)
        return self.prior if covers else None

    def _joint_with(self, channel: Channel | None) -> Channel | None:
        """The joint channel of all reports so far and these; None if it is too large to write out."""
        if not self.spent:
            return channel
        if self._joint is None or channel is None:
            return None
        entries = self._joint.matrix.size * channel.shape[1]
        return self._joint.joint_with(channel) if entries <= MOST_EXACT_ENTRIES else None

    def _is_certified_for(self, part: Part, prior: PriorOrSet) -> bool:
        """Whether a plan was certified for exactly this ledger's prior and secret."""
        plan = part.plan
        ours, theirs = (None if s is None else scenarios(s) for s in (self.secret, plan.secret))
        if ours is None and theirs is None and isinstance(plan.prior, Prior) and isinstance(prior, Prior):
            places = positions(plan.labels, part.attributes, prior)
            margin = np.bincount(places, prior.probabilities, len(plan.labels))
            return bool(np.allclose(margin, plan.prior.probabilities, rtol=_SAME_SHARES, atol=0))
        return plan.prior == prior and ours == theirs


def _is_prior(prior: object) -> bool:
    return isinstance(prior, Prior | PriorSet)


def _needed_limit(level: JointLeakage) -> str:
    if math.isinf(level.lip):
        return "no limit is enough for this plan"
    return f"it needs a limit of {math.ceil(level.lip * 1000) / 1000:g}"
