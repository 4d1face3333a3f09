"""Campaigns: a question put to people, with a plan for each cohort.

A campaign is public and frozen. Its id is the SHA-256 of its content, so changing anything makes a new campaign.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, get_args

from priorveil.collect.wire import LARGEST_REPORT
from priorveil.errors import Hint, InvalidInput, PlanError
from priorveil.notions import PriorOrSet
from priorveil.plans import Plan
from priorveil.plans import document as doc
from priorveil.priors import Budget, Domain, Label
from priorveil.queries import Distribution, Query, require_same_statistics

VERSION = 1
FORMAT = "priorveil-campaign"
EVERYONE = "everyone"  # the cohort of a campaign that has only one

LONGEST_TEXT = 2000
_TEXTS = ("contact", "asked_by", "purpose")

State = Literal["not yet open", "open", "closed"]
Admission = Literal["open", "invitation"]
_TIMES = ("opens", "closes", "keep_until")


@dataclass(frozen=True, eq=False)
class Campaign:
    """A question, its possible answers and, for each cohort, the plan that its people run.

    `opens` and `closes` are aware times (None: always); `smallest_count` is the number of reports below which
    no estimate is shown. `asked_by` and `purpose` tell people who asks and why, before they answer; `contact` is whom
    they can ask. Make one with `ask`, or read one with `Campaign.from_json`.

    Under open `admission` everybody who knows the address can send any number of reports; under `"invitation"` each
    report needs a single-use code. No more than `most_reports` are taken (None: no limit). Reports are deleted at
    `keep_until` (None: they are kept until somebody deletes them).
    """

    question: str
    cohorts: Mapping[str, Plan]
    opens: datetime | None = None
    closes: datetime | None = None
    smallest_count: int = 100
    contact: str = ""
    asked_by: str = ""
    purpose: str = ""
    admission: Admission = "open"
    most_reports: int | None = None
    keep_until: datetime | None = None

    def __post_init__(self) -> None:
        _check_text("question", self.question, least=1)
        for name in _TEXTS:
            _check_text(name, getattr(self, name))
        _check_cohorts(self.cohorts)
        if type(self.smallest_count) is not int or not 0 <= self.smallest_count < LARGEST_REPORT:
            raise InvalidInput("smallest_count", self.smallest_count, "give a whole number, zero or more")
        if self.admission not in get_args(Admission):
            raise InvalidInput("admission", self.admission, f"choose one of {', '.join(get_args(Admission))}")
        most = self.most_reports
        if most is not None and (type(most) is not int or not 0 < most < LARGEST_REPORT):
            raise InvalidInput("most_reports", most, "give a whole number above zero, or None for no limit")
        for name in _TIMES:
            object.__setattr__(self, name, read_time(name, getattr(self, name)))
        if self.opens and self.closes and self.opens >= self.closes:
            raise InvalidInput("closes", stamp(self.closes), f"it should be after {stamp(self.opens)}")
        if self.keep_until and (self.closes is None or self.keep_until <= self.closes):
            advice = f"it should be after the campaign closes ({stamp(self.closes) or 'give closes, too'})"
            raise InvalidInput("keep_until", stamp(self.keep_until), advice)

    @property
    def domain(self) -> Domain:
        """What an answer may be, the same in every cohort."""
        return next(iter(self.cohorts.values())).domain

    @property
    def labels(self) -> tuple[Label, ...]:
        """The possible answers."""
        return self.domain.labels

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """The plans by their ids."""
        return {plan.id: plan for plan in self.cohorts.values()}

    @cached_property
    def cohort_of(self) -> dict[str, str]:
        """The cohort that each plan id belongs to."""
        return {plan.id: name for name, plan in self.cohorts.items()}

    @property
    def leans_on_prior(self) -> bool:
        """Whether some cohort's query uses the prior in its answer: a wrong prior is then not corrected by reports."""
        return not all(plan.query.unbiased for plan in self.cohorts.values())

    @cached_property
    def id(self) -> str:
        """The SHA-256 of the campaign's content."""
        return doc.content_id(self.document())

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Campaign) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def state(self, now: datetime) -> State:
        """Whether reports are taken at this time.

        >>> from priorveil import Prior
        >>> first, later = (datetime(year, 1, 1, tzinfo=UTC) for year in (2026, 2027))
        >>> campaign = ask("Smoke?", Prior({"yes": 0.2, "no": 0.8}), closes=later)
        >>> campaign.state(first), campaign.state(later)
        ('open', 'closed')
        """
        if self.opens is not None and now < self.opens:
            return "not yet open"
        return "closed" if self.closes is not None and now >= self.closes else "open"

    def plan_for(self, cohort: str | None) -> Plan:
        """The plan of a cohort; the name may be left out where there is only one."""
        if cohort is None and len(self.cohorts) == 1:
            return next(iter(self.cohorts.values()))
        if cohort is None or cohort not in self.cohorts:
            raise InvalidInput("cohort", cohort, f"choose one of {', '.join(self.cohorts)}")
        return self.cohorts[cohort]

    def document(self) -> dict[str, Any]:
        """The campaign as JSON, without its id."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "question": self.question,
            "labels": self.domain.document(),
            "cohorts": {name: {"id": p.id, **p.document()} for name, p in self.cohorts.items()},
            **{name: stamp(getattr(self, name)) for name in _TIMES},
            "smallest_count": self.smallest_count,
            "admission": self.admission,
            "most_reports": self.most_reports,
            **{name: getattr(self, name) for name in _TEXTS},
        }

    def to_json(self) -> str:
        """The campaign as the text of its file."""
        return json.dumps({"id": self.id, **self.document()}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Campaign:
        """Read a campaign, proving every certificate again; refused with the field that is wrong."""
        read = doc.parse(text, FORMAT, VERSION, "`priorveil campaign` or `campaign.to_json()`")
        campaign: Campaign = doc.read_field("campaign", lambda: _from_document(read))
        return campaign

    def __repr__(self) -> str:
        sizes = f"{len(self.labels)} answers, {len(self.cohorts)} cohorts"
        return f"Campaign({self.question!r}, {sizes}, {self.id[:12]})"


def ask(
    question: str,
    prior: PriorOrSet | Mapping[str, PriorOrSet],
    epsilon: float | Budget = 1.0,
    query: Query | None = None,
    **details: Any,
) -> Campaign:
    """A campaign with a plan designed for the prior, or for each cohort's prior.

    The default query is `Distribution`: reports alone decide the answer and can correct a wrong prior.
    `details` are the other fields of `Campaign`: `opens`, `closes`, `asked_by` and so on.

    >>> from priorveil import Prior
    >>> from priorveil.queries import Histogram
    >>> prior = Prior({"yes": 0.2, "no": 0.8})
    >>> [ask("Do you smoke?", prior, query=query).leans_on_prior for query in (Distribution(), Histogram())]
    [False, True]
    """
    from priorveil.designs import design  # loads optimisers, which a curator and its clients do not need

    priors = prior if isinstance(prior, Mapping) else {EVERYONE: prior}
    query = Distribution() if query is None else query
    cohorts = {name: design(p, epsilon, query) for name, p in priors.items()}
    return Campaign(question, cohorts, **details)


def stamp(time: datetime | None) -> str | None:
    """A time as ISO 8601 in UTC.

    >>> stamp(datetime(999, 12, 31, tzinfo=UTC))
    '0999-12-31T00:00:00Z'
    """
    if time is None:
        return None
    # Not strftime, which writes years before 1000 with fewer digits on some systems.
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def read_time(field: str, time: object) -> datetime | None:
    """A time in UTC, from an aware time or from ISO 8601 with a zone; None stays None.

    >>> read_time("opens", "2026-01-01T12:00:00+02:00")
    datetime.datetime(2026, 1, 1, 10, 0, tzinfo=datetime.timezone.utc)
    """
    if time is None:
        return None
    try:
        aware = time if isinstance(time, datetime) else datetime.fromisoformat(str(time))
        if aware.tzinfo is None:
            raise ValueError("it has no zone")
        return aware.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        advice = "give a time with its zone, like 2026-01-31T12:00:00Z, in the years 1 to 9999"
        raise InvalidInput(field, time, advice) from error


def _check_text(field: str, text: object, least: int = 0) -> None:
    if not isinstance(text, str) or not least <= len(text.strip()) <= len(text) <= LONGEST_TEXT:
        raise InvalidInput(field, text, f"give a text of {least} to {LONGEST_TEXT} characters")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(field, text, "half a surrogate pair is not text") from error


def _check_cohorts(cohorts: Mapping[str, Plan]) -> None:
    if not cohorts:
        raise InvalidInput("cohorts", cohorts, "give a plan for at least one cohort")
    for name in cohorts:
        _check_text("cohorts", name, least=1)
    names, plans = list(cohorts), list(cohorts.values())
    if any(plan.domain != plans[0].domain for plan in plans):
        raise InvalidInput("cohorts", names, "the plans should have the same labels, in the same order")
    if plans[0].domain.refuses_numbers:
        advice = "numbers outside the range send no report, which reveals that they are outside"
        hint = Hint("outside='ends' in the prior", purpose="to count them at the nearest end")
        raise InvalidInput("cohorts", names, advice, hint)
    parts = ((f"cohort {name!r}", plan.query.statistics(plan.reference)) for name, plan in cohorts.items())
    require_same_statistics("cohorts", parts)
    if len({plan.id for plan in plans}) < len(plans):
        advice = "two cohorts have the same plan, so their reports look alike: give each its own"
        raise InvalidInput("cohorts", names, advice)


def _from_document(read: dict[str, Any]) -> Campaign:
    if not isinstance(read.get("cohorts"), dict):
        raise PlanError("cohorts", "give a plan for each cohort, by name")
    cohorts = {name: Plan.from_json(json.dumps(plan)) for name, plan in read["cohorts"].items()}
    names = (field.name for field in fields(Campaign) if field.name != "cohorts")
    campaign = Campaign(cohorts=cohorts, **{name: read[name] for name in names})
    received = {"id": campaign.id, **read}
    expected = {"id": campaign.id, **campaign.document()}
    if doc.canonical(received) != doc.canonical(expected):
        changed_fields = [name for name in sorted(received) if received[name] != expected.get(name, ...)]
        advice = "it is not what `campaign.to_json()` writes: the campaign was changed, or made by hand"
        raise PlanError(changed_fields[0] if changed_fields else "campaign", advice)
    return campaign
