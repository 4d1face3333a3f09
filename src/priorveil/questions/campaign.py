"""Campaigns: questions that people are asked, with a form for each cohort.

A campaign is public and frozen. Its id is the SHA-256 of its content, so changing anything makes a new campaign:
translations as well, because a swapped yes and no would ask something else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, get_args

from priorveil.errors import NOT_SHOWN, InvalidInput, PlanError, plural
from priorveil.mechanisms.randomness import BytesSource, Source, as_source
from priorveil.notes import Note
from priorveil.notions import PriorOrSet
from priorveil.plans import Plan
from priorveil.plans import document as doc
from priorveil.plans.composition import REVEALING, JointLeakage
from priorveil.plans.form import Form
from priorveil.plans.structure import edition, may_hold
from priorveil.priors import Budget, Domain
from priorveil.priors.domain import entry_key
from priorveil.priors.label_texts import label_text
from priorveil.priors.number_domains import NumberDomain
from priorveil.queries import Distribution, Query, require_same_statistics
from priorveil.questions.choices import SingleChoice
from priorveil.questions.number import NumberQuestion
from priorveil.questions.question import Question, check_questions
from priorveil.questions.structure import Admission, CampaignDocument, CampaignTexts
from priorveil.questions.texts import Text, as_text, check_languages, check_text

EVERYONE = "everyone"  # the cohort of a campaign that has only one
ANSWER = "answer"  # the name of the question of a campaign that has only one
DEFAULT_LIMIT = 10.0  # of the LDP level of everything that a device tells one curator

TEXTS = CampaignTexts.__struct_fields__

State = Literal["not yet open", "open", "closed"]
PublicState = State | Literal["full"]
_TIMES = ("opens", "closes", "keep_until")
_ADVICE = {
    "smallest_count": "give a whole number, zero or more",
    "admission": f"choose one of {', '.join(get_args(Admission))}",
    "most_reports": "give a whole number above zero, or leave it out for no limit",
    "expected_people": "give a whole number above zero, or leave it out if nobody knows",
}


@dataclass(frozen=True)
class CampaignOutline:
    """What a list shows of a campaign; the title is in its default language."""

    id: str
    title: str
    cohorts: tuple[str, ...]
    opens: datetime | None
    closes: datetime | None
    most_reports: int | None

    @classmethod
    def read(cls, text: str | bytes, id: str) -> CampaignOutline:
        """The outline of the campaign in a text; refused if its content has another id.

        Nothing is proven: that was done for the campaign with this id before it was stored.
        """
        document = _parse(text)
        if not document.get("id") == doc.content_id(document) == id:
            raise PlanError("id", "the id does not match the content: the campaign was changed")
        opens, closes = (read_time(name, document[name]) for name in ("opens", "closes"))
        title = document["title"][document["languages"][0]]
        return cls(id, title, tuple(document["cohorts"]), opens, closes, document["most_reports"])

    @classmethod
    def of(cls, campaign: Campaign) -> CampaignOutline:
        """The outline of a campaign."""
        title, cohorts = campaign.text(campaign.title), tuple(campaign.cohorts)
        return cls(campaign.id, title, cohorts, campaign.opens, campaign.closes, campaign.most_reports)


@dataclass(frozen=True)
class CampaignDetails:
    """What people read before they answer, and when and from whom reports are taken.

    `languages` are those of all texts, the default first; a plain text is in the only language. `asked_by` and
    `purpose` tell people who asks and why; `contact` is whom they can ask. `opens` and `closes` are aware times (None:
    always); `smallest_count` is the number of reports below which no estimate is shown. `expected_people` is how many
    people will probably answer, all cohorts together: the precision that is promised is for these (None: not known).

    Under open `admission` everybody who knows the address can send any number of reports; under `"invitation"` each
    report needs a single-use code. No more than `most_reports` are taken (None: no limit). Reports are deleted at
    `keep_until` (None: they are kept until somebody deletes them). `limit` lowers the LDP level that a device lets
    all its answers to one curator reach; it cannot raise it.
    """

    title: str | Text
    _: KW_ONLY
    description: str | Text = ""
    languages: Sequence[str] = ("en",)
    opens: datetime | None = None
    closes: datetime | None = None
    smallest_count: int = 100
    contact: str = ""
    asked_by: str | Text = ""
    purpose: str | Text = ""
    admission: Admission = "open"
    most_reports: int | None = None
    keep_until: datetime | None = None
    limit: float | None = None
    expected_people: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "languages", check_languages(self.languages))
        for name in TEXTS:
            text = as_text(name, getattr(self, name), self.languages, (name,), least=int(name == "title"))
            object.__setattr__(self, name, text)
        check_text("contact", self.contact, ("contact",))
        for name, advice in _ADVICE.items():
            if not may_hold(CampaignDocument, name, value := getattr(self, name)):
                raise InvalidInput(name, value, advice)
        if self.limit is not None:
            object.__setattr__(self, "limit", _read_limit(self.limit))
        for name in _TIMES:
            object.__setattr__(self, name, read_time(name, getattr(self, name)))
        if self.opens and self.closes and self.opens >= self.closes:
            raise InvalidInput("closes", stamp(self.closes), f"it should be after {stamp(self.opens)}")
        if self.keep_until and (self.closes is None or self.keep_until <= self.closes):
            advice = f"it should be after the campaign closes ({stamp(self.closes) or 'give closes, too'})"
            raise InvalidInput("keep_until", stamp(self.keep_until), advice)


DETAILS = tuple(field.name for field in fields(CampaignDetails))


@dataclass(frozen=True, eq=False)
class Campaign(CampaignDetails):
    """Questions and, for each cohort, the form that its people's devices fill in; with its `CampaignDetails`.

    Make one with `ask`, or read one with `Campaign.from_json`.
    """

    questions: Sequence[Question]
    cohorts: Mapping[str, Form]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "questions", check_questions(self.questions, self.languages))
        object.__setattr__(self, "cohorts", dict(self.cohorts))
        _check_cohorts(self.cohorts, self.questions, self.question_of)

    @cached_property
    def forms(self) -> dict[str, Form]:
        """The forms by their ids."""
        return {form.id: form for form in self.cohorts.values()}

    @cached_property
    def cohort_of(self) -> dict[str, str]:
        """The cohort that each form id belongs to."""
        return {form.id: name for name, form in self.cohorts.items()}

    @property
    def leans_on_prior(self) -> bool:
        """Whether the estimate of some query uses the prior: reports then do not correct a wrong prior."""
        return not all(part.plan.query.unbiased for form in self.cohorts.values() for part in form.parts)

    @cached_property
    def promise(self) -> dict[str, JointLeakage]:
        """The level of a whole submission, for each cohort: LIP under the priors, LDP for any prior (`Form.levels`)."""
        return {name: form.levels() for name, form in self.cohorts.items()}

    @cached_property
    def warnings(self) -> tuple[Note, ...]:
        """What should be changed before people are asked: weak protection, and levels that devices refuse."""
        lip, ldp = (max(getattr(each, name) for each in self.promise.values()) for name in ("lip", "ldp"))
        notes = []
        if lip > REVEALING:
            parts = (part for form in self.cohorts.values() for part in form.parts)
            has_secret = any(part.plan.secret is not None for part in parts)
            values = {"notion": "LIP" if lip < ldp else "LDP", "level": min(lip, ldp)}
            notes.append(Note("weakForSecret" if has_secret else "weakForAnswer", values))
        limit = min(DEFAULT_LIMIT, math.inf if self.limit is None else self.limit)
        spent = max(map(self.ldp_cost, self.cohorts))
        if limit < spent < math.inf:
            code = "devicesRefuseByLimit" if limit == self.limit else "devicesRefuse"
            notes.append(Note(code, {"level": spent, "limit": limit}))
        return tuple(notes)

    def ldp_cost(self, cohort: str) -> float:
        """How much of a device's limit a submission of a cohort uses: its LDP level, which is infinite for a secret."""
        unbounded = any(part.is_unbounded for part in self.cohorts[cohort].parts)
        return math.inf if unbounded else self.promise[cohort].ldp

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
        return state_at(now, self.opens, self.closes)

    def form_for(self, cohort: str | None) -> Form:
        """The form of a cohort; the name may be left out where there is only one."""
        if cohort is None and len(self.cohorts) == 1:
            return next(iter(self.cohorts.values()))
        if cohort is None or cohort not in self.cohorts:
            raise InvalidInput("cohort", cohort, f"choose one of {', '.join(self.cohorts)}")
        return self.cohorts[cohort]

    # -- answers ---------------------------------------------------------------------------------------------

    def draw_forms(self, source: Source | None = None) -> dict[str, tuple[int, ...]]:
        """A draw for each form, by its id, all from the same random words, by default of the operating system.

        So a device draws once, and whoever corrects a wrong cohort is asked what was drawn before, where the forms have
        the same shares.
        """
        slots = max(sum(slot.is_drawn for slot in form.slots) for form in self.cohorts.values())
        words = as_source(source).words(slots).tobytes()
        return {form.id: form.draw(BytesSource(words)) for form in self.cohorts.values()}

    def questions_to_ask(self, cohort: str | None, draw: Sequence[int]) -> tuple[str, ...]:
        """The names of the questions to show, in order, where `draw` has the drawn part of each slot of the form.

        They are those of the drawn parts and those that decide whether these are asked. The latter have no
        report of their own unless they are drawn as well; reports about what depends on them tell something about them.
        """
        parts = self.form_for(cohort).drawn_parts(draw)
        return _with_gates(self.questions, {attribute for part in parts for attribute in part.attributes})

    def attribute_values(
        self, answers: Mapping[str, Any], questions: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The level of each attribute from answers by the name of the question: a code, a list of codes, or a number.

        `questions` are those that are asked, by default all. The level of a question that the earlier answers skip is
        `NOT_ASKED`; an answer to it does not count, because people may go back. Wrong answers are refused, not shown.

        >>> from priorveil import Prior
        >>> ask("Smoke?", Prior({"yes": 0.2, "no": 0.8})).attribute_values({"answer": "no"})
        {'answer': 'no'}
        """
        self._check_names(answers)
        asked = [question.name for question in self.questions] if questions is None else questions
        by_question: dict[str, Any] = {}
        levels: dict[str, Any] = {}
        for question in self.questions:
            if question.name not in asked:
                continue
            answer = None
            if question.is_asked(by_question):
                answer = question.read_answer(answers.get(question.name), self.domains)
            by_question[question.name] = answer
            levels |= question.levels(answer)
        return levels

    def check_answers(self, answers: Mapping[str, Any]) -> None:
        """Refuse a wrong answer to any question, also to one that is not drawn or skipped; None is no answer.

        A device calls this first, so that a mistake of an app does not show for some people only.
        """
        self._check_names(answers)
        for question in self.questions:
            if answers.get(question.name) is not None:
                question.read_answer(answers[question.name], self.domains)

    def _check_names(self, answers: Mapping[str, Any]) -> None:
        names = [question.name for question in self.questions]
        if not isinstance(answers, Mapping) or not set(answers) <= set(names):
            raise InvalidInput("answers", NOT_SHOWN, f"give answers by question: {', '.join(names)}")

    @cached_property
    def question_of(self) -> dict[str, Question]:
        """The question that gives each attribute."""
        return {attribute: question for question in self.questions for attribute in question.attributes}

    @cached_property
    def domains(self) -> dict[str, Domain]:
        """The domain of each attribute that is reported; the same in all cohorts."""
        return dict(_attribute_domains(next(iter(self.cohorts.values()))))

    # -- documents -------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The campaign as JSON, without its id."""
        return {
            **edition(CampaignDocument),
            "languages": list(self.languages),
            **{name: getattr(self, name) for name in TEXTS},
            "questions": [question.document() for question in self.questions],
            "cohorts": {name: {"id": form.id, **form.document()} for name, form in self.cohorts.items()},
            **{name: stamp(getattr(self, name)) for name in _TIMES},
            "smallest_count": self.smallest_count,
            "admission": self.admission,
            "most_reports": self.most_reports,
            "expected_people": self.expected_people,
            "contact": self.contact,
            "limit": None if self.limit is None else repr(self.limit),
        }

    def to_json(self) -> str:
        """The campaign as the text of its file."""
        return json.dumps({"id": self.id, **self.document()}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Campaign:
        """Read a campaign, proving every certificate again; refused with the field that is wrong."""
        document = _parse(text)
        campaign: Campaign = doc.read_field("campaign", lambda: _from_document(document))
        return campaign

    def text(self, text: str | Text) -> str:
        """A text of this campaign in its default language; empty if it was not given."""
        return text if isinstance(text, str) else text.get(self.languages[0], "")

    def __repr__(self) -> str:
        sizes = f"{plural(len(self.questions), 'question')}, {plural(len(self.cohorts), 'cohort')}"
        return f"Campaign({self.text(self.title)!r}, {sizes}, {self.id[:12]})"


def ask(
    question: str,
    prior: PriorOrSet | Mapping[str, PriorOrSet],
    epsilon: float | Budget = 1.0,
    query: Query | None = None,
    **details: Any,
) -> Campaign:
    """A campaign about one prior, or one for each cohort: a choice, a number, or a question for each attribute.

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
    plans = {name: design(p, epsilon, query) for name, p in priors.items()}
    return ask_with(question, plans, **details)


def ask_with(question: str, plans: Plan | Mapping[str, Plan], **details: Any) -> Campaign:
    """A campaign with one plan for everybody, or one for each cohort; all are about the same values."""
    cohorts = plans if isinstance(plans, Mapping) else {EVERYONE: plans}
    if not cohorts:
        raise InvalidInput("cohorts", cohorts, "give a plan for at least one cohort")
    domain = next(iter(cohorts.values())).domain
    parts = domain.attributes or {ANSWER: domain}
    questions = [_question_about(name, question if name == ANSWER else name, d) for name, d in parts.items()]
    forms = {name: Form.of(tuple(parts), plan) for name, plan in cohorts.items()}
    return Campaign(question, questions, forms, **details)


def _question_about(name: str, text: str, domain: Domain) -> Question:
    if isinstance(domain, NumberDomain):
        return NumberQuestion(name, text)
    return SingleChoice(name, text, {label_text(label): label_text(label) for label in domain.labels})


def stamp(time: datetime | None) -> str | None:
    """A time as ISO 8601 in UTC.

    >>> stamp(datetime(2026, 12, 31, tzinfo=UTC))
    '2026-12-31T00:00:00Z'
    """
    if time is None:
        return None
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def public_state(state: State, most_reports: int | None, reports: int) -> PublicState:
    """The state as people see it: an open campaign that has as many reports as it accepts is full.

    >>> public_state("open", 300, 299), public_state("open", 300, 300), public_state("closed", 300, 300)
    ('open', 'full', 'closed')
    """
    is_full = state == "open" and most_reports is not None and reports >= most_reports
    return "full" if is_full else state


def state_at(now: datetime, opens: datetime | None, closes: datetime | None) -> State:
    """Whether a campaign that opens and closes at these times takes reports now."""
    if opens is not None and now < opens:
        return "not yet open"
    return "closed" if closes is not None and now >= closes else "open"


def read_time(field: str, time: object) -> datetime | None:
    """A time in UTC, from an aware time or from ISO 8601 with a zone; None stays None.

    >>> read_time("opens", "2026-01-01T12:00:00+02:00")
    datetime.datetime(2026, 1, 1, 10, 0, tzinfo=datetime.timezone.utc)
    """
    if time is None:
        return None
    advice = "give a time with its zone, like 2026-01-31T12:00:00Z"
    try:
        moment = time if isinstance(time, datetime) else datetime.fromisoformat(str(time))
        if moment.tzinfo is None:
            advice = f"add its zone, such as Z for UTC: {moment.isoformat(timespec='seconds')}Z"
            raise ValueError("it has no zone")
        return moment.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(field, time, advice) from error


def _read_limit(limit: object) -> float:
    try:
        number = float(limit)  # type: ignore[arg-type]
        if not 0 < number < math.inf or isinstance(limit, bool):
            raise ValueError("out of range")
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            "limit", limit, "give a number above zero, or leave it out for the device's own"
        ) from error
    return number


def _with_gates(questions: Sequence[Question], attributes: Set[str]) -> tuple[str, ...]:
    """The questions that give these attributes, and those that decide whether they are asked, in order."""
    needed: set[str] = set()
    for question in reversed(questions):  # a gate comes before what depends on it
        if question.name in needed or not attributes.isdisjoint(question.attributes):
            needed |= {question.name, *question.asked_if}
    return tuple(question.name for question in questions if question.name in needed)


def _attribute_domains(form: Form) -> Iterable[tuple[str, Domain]]:
    """Every attribute of every part, with what a value of it may be."""
    for part in form.parts:
        yield from (part.plan.domain.attributes or {part.attributes[0]: part.plan.domain}).items()


def _check_cohorts(
    cohorts: Mapping[str, Form], questions: Sequence[Question], question_of: Mapping[str, Question]
) -> None:
    if not cohorts:
        raise InvalidInput("cohorts", cohorts, "give a form for at least one cohort")
    for name, form in cohorts.items():
        check_text("cohorts", name, (), least=1)
        if not isinstance(form, Form):
            raise InvalidInput("cohorts", type(form).__name__, "give a Form for each cohort")
    names, forms = list(cohorts), list(cohorts.values())
    attributes = set(forms[0].attributes)
    if any(set(form.attributes) != attributes for form in forms):
        raise InvalidInput("cohorts", names, "the forms of all cohorts should be about the same attributes")
    _check_attributes(questions, attributes, question_of.keys())
    domains: dict[str, Domain] = {}
    for attribute, domain in (pair for form in forms for pair in _attribute_domains(form)):
        question_of[attribute].check_domain(attribute, domain)
        if not _same_values(domains.setdefault(attribute, domain), domain):
            raise InvalidInput("cohorts", names, f"the plans about {attribute} should have the same values")
    statistics: dict[tuple[str, ...], list[tuple[str, Any]]] = {}
    for name, form in cohorts.items():
        for part in form.parts:
            own = (f"cohort {name!r}", part.plan.query.statistics(part.plan.reference))
            statistics.setdefault(part.attributes, []).append(own)
    for parts in statistics.values():
        require_same_statistics("cohorts", parts)
    if len({form.id for form in forms}) < len(forms):
        advice = "two cohorts have the same form, so their reports look alike: give each its own"
        raise InvalidInput("cohorts", names, advice)


def _check_attributes(questions: Sequence[Question], attributes: set[str], given: Set[str]) -> None:
    """Refuse forms about attributes that no question gives, and questions that are asked for nothing."""
    if unknown := attributes - given:
        raise InvalidInput(
            "cohorts", sorted(unknown), "the forms have these attributes, and no question gives them"
        )
    partly = [
        q.name
        for q in questions
        if not attributes.isdisjoint(q.attributes) and set(q.attributes) - attributes
    ]
    if partly:
        raise InvalidInput("questions", partly, "the forms are about some options of this question only")
    useless = {question.name for question in questions} - set(_with_gates(questions, attributes))
    if useless:
        raise InvalidInput("questions", sorted(useless), "no form uses its answer: leave this question out")


def _same_values(domain: Domain, other: Domain) -> bool:
    if isinstance(domain, NumberDomain) or isinstance(other, NumberDomain):
        return domain == other
    return set(map(entry_key, domain.labels)) == set(map(entry_key, other.labels))


def _parse(text: str | bytes) -> dict[str, Any]:
    source = "`priorveil campaign` or `campaign.to_json()`"
    return doc.require_document(doc.parse(text, CampaignDocument, source), CampaignDocument, source)


def _from_document(document: dict[str, Any]) -> Campaign:
    cohorts = {name: Form.read(form) for name, form in document["cohorts"].items()}
    questions = [Question.read(question) for question in document["questions"]]
    names = (field.name for field in fields(Campaign) if field.name not in ("cohorts", "questions"))
    campaign = Campaign(cohorts=cohorts, questions=questions, **{name: document[name] for name in names})
    received = {"id": campaign.id, **document}
    expected = {"id": campaign.id, **campaign.document()}
    if doc.canonical(received) != doc.canonical(expected):
        changed_fields = [name for name in sorted(received) if received[name] != expected.get(name, ...)]
        advice = "it is not what `campaign.to_json()` writes: the campaign was changed, or made by hand"
        raise PlanError(changed_fields[0] if changed_fields else "campaign", advice)
    return campaign
