"""The prior of a question, or of several together, from typed shares or a table.

All of them are the same thing: shares of combinations of levels. A share that was typed for a range of a number is
spread evenly over it. A question that is not always asked has the level "not asked"; the combinations that its
condition excludes are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from priorveil.arrays import whole_numbers
from priorveil.errors import NOT_SHOWN, InvalidInput, InvalidPrior
from priorveil.formatting import number_text, read_number
from priorveil.notions import PriorOrSet
from priorveil.priors import Domain, Label, Prior, PriorSet
from priorveil.priors.disclosure import require_no_rare, round_weights
from priorveil.priors.label_texts import first_labels, label_parts
from priorveil.priors.number_domains import Cells, NumberDomain
from priorveil.questions.question import NOT_ASKED, Question

Combination = tuple[Any, ...]  # a level of each attribute

_RANGE = re.compile(r"\s*([+-]?[\d.,]+)\s*(?:to|\u2013|-)\s*([+-]?[\d.,]+)\s*")
_DUST = 1e-9  # how far from one typed shares may add up, by the rounding of floats
_SAME = 1e-6  # shares that differ by less are the same


@dataclass(frozen=True)
class Attribute:
    """An attribute with the question it comes from, and the domain of its levels.

    `ranges` are those of a number whose ranges are ordinary levels, because it is not always asked.
    """

    name: str
    question: Question
    domain: Domain
    ranges: NumberDomain | None = None

    @property
    def labels(self) -> tuple[Label, ...]:
        """Its levels."""
        return self.domain.labels

    @property
    def conditional(self) -> bool:
        """Whether the question is only asked after certain answers."""
        return bool(self.question.asked_if)

    def shares_of(self, entry: str) -> dict[Label, float]:
        """The levels that an entry of a table stands for, with their shares: one, unless it is a number or a range."""
        if entry in ("", NOT_ASKED) and self.conditional:
            return {NOT_ASKED: 1.0}
        numbers = self.domain if isinstance(self.domain, NumberDomain) else self.ranges
        if numbers is not None:
            return _shares_of_number(self.name, numbers, entry)
        if entry not in self.labels:
            raise InvalidInput(self.name, NOT_SHOWN, f"give one of its codes: {first_labels(self.labels)}")
        return {entry: 1.0}

    def check_typed(self, entry: str) -> None:
        """Refuse an entry that stands for no level, and show it: it was typed, and is nobody's answer."""
        try:
            self.shares_of(entry)
        except InvalidInput as error:
            raise InvalidInput("shares", entry, error.advice) from error


def attributes_of(question: Question, numbers: NumberDomain | None) -> tuple[Attribute, ...]:
    """The attributes of a question; `numbers` is the grid or the cells of a number."""
    domain = question.domain(numbers)
    ranges = None if domain is numbers else numbers
    return tuple(Attribute(name, question, domain, ranges) for name in question.attributes)


def read_range(entry: str) -> tuple[float, float] | None:
    """The ends of a range such as `0 to 20`; None if it is none.

    >>> read_range("0 to 20"), read_range("2,5-5"), read_range("many")
    ((0.0, 20.0), (2.5, 5.0), None)
    """
    ends = _RANGE.fullmatch(entry)
    low, high = (read_number(ends[1]), read_number(ends[2])) if ends else (None, None)
    return None if low is None or high is None or not low < high else (low, high)


def _shares_of_number(name: str, numbers: NumberDomain, entry: str) -> dict[Label, float]:
    ends, number = read_range(entry), read_number(entry)
    if entry in numbers.labels:
        return {entry: 1.0}
    if ends is not None:
        # Within a cell of the domain masses are linear, so its middle stands for all of it.
        inner = [bound for bound in numbers.bounds if ends[0] < bound < ends[1]]
        cuts = np.array([ends[0], *inner, ends[1]])
        masses = numbers.masses((cuts[1:] + cuts[:-1]) / 2, np.diff(cuts) / (ends[1] - ends[0]))
    elif number is not None and math.isfinite(number):
        masses = numbers.masses(np.array([number]), np.ones(1))
    else:
        raise InvalidInput(name, NOT_SHOWN, "an entry is no number, and no range such as 0 to 20")
    return {label: mass for label, mass in zip(numbers.labels, masses.tolist(), strict=True) if mass}


def possible(attributes: Sequence[Attribute]) -> list[Combination]:
    """The combinations of levels that the conditions of the questions allow."""
    every = product(*(attribute.labels for attribute in attributes))
    return [combination for combination in every if _is_possible(attributes, combination)]


def _is_possible(attributes: Sequence[Attribute], combination: Combination) -> bool:
    level = {attribute.name: label for attribute, label in zip(attributes, combination, strict=True)}
    skipped: dict[str, bool] = {}
    for attribute in attributes:
        gates = attribute.question.asked_if
        present = [gate for gate in gates if gate in level]
        allowed = all(level[gate] in gates[gate] for gate in present)
        is_skipped = gates != {} and level[attribute.name] == NOT_ASKED
        if (is_skipped and allowed and present == list(gates)) or (gates and not is_skipped and not allowed):
            return False
        if skipped.setdefault(attribute.question.name, is_skipped) != is_skipped:
            return False
    return True


# -- priors ----------------------------------------------------------------------------------------------------


def unknown_prior(attributes: Sequence[Attribute]) -> Prior:
    """The prior that is only assumed, because nobody knows how common answers are."""
    if len(attributes) == 1 and isinstance(attributes[0].domain, NumberDomain):
        masses = attributes[0].domain.flat_masses().tolist()
        return _as_prior(attributes, dict(zip(possible(attributes), masses, strict=True)), assumed=True)
    return _as_prior(attributes, dict.fromkeys(possible(attributes), 1.0), assumed=True)


def typed_prior(
    attributes: Sequence[Attribute],
    rows: Iterable[tuple[Sequence[str], float]],
    asked: float | None,
    smoothing: float | None,
) -> Prior:
    """The prior from typed shares of entries, which add up to one.

    If a question is not always asked, shares without "not asked" are among the people who are asked: `asked` is their
    share of all people, where it is known.
    """
    shares = list(rows)
    total = math.fsum(share for _, share in shares)
    if not abs(total - 1) <= _DUST:
        raise InvalidPrior("shares", NOT_SHOWN, f"they add up to {total:.12g}, not to 1: correct them")
    masses = _masses(attributes, shares)
    only_asked = _is_one_question(attributes) and _skipped_combination(attributes) not in masses
    complete = _normalise(_complete(attributes, masses, smoothing, only_asked))
    return _as_prior(attributes, _of_all(attributes, complete, asked))


def counted_prior(
    attributes: Sequence[Attribute],
    rows: Iterable[tuple[Sequence[str], float]],
    asked: float | None,
    public: bool,
    smoothing: float | None,
) -> Prior:
    """The prior from a table of people: rows of entries, with how many people each is for.

    A campaign publishes it. So unless the table is `public` already, combinations of fewer than ten people are refused,
    whatever `smoothing` adds to them, and shares are rounded.
    """
    masses = _masses(attributes, rows)
    if not any(masses.values()):
        raise InvalidPrior(
            "table",
            NOT_SHOWN,
            "it counts nobody: give one with a row for each person, or with a column count",
        )
    only_asked = _is_one_question(attributes) and asked is not None
    if only_asked:  # how many are not asked follows from the questions that it depends on
        masses.pop(_skipped_combination(attributes), None)
    if not public:
        _require_no_rare([masses.get(each, 0.0) for each in _combinations(attributes, only_asked)])
    counts = _complete(attributes, masses, smoothing, only_asked, of_people=True)
    if not public:
        weights = round_weights(whole_numbers([Fraction(count) for count in counts.values()]))
        counts = dict(zip(counts, map(float, weights), strict=True))
    return _as_prior(attributes, _of_all(attributes, _normalise(counts), asked))


def sample_priors(attribute: Attribute, counts: Mapping[str, int], delta: float) -> PriorSet:
    """The priors that a sample leaves possible; `counts` has the people with each level, also those not asked."""
    people: dict[Label, float] = dict.fromkeys(attribute.labels, 0.0)
    for entry, count in counts.items():
        for level, share in attribute.shares_of(entry).items():
            people[level] += share * count
    missing = attribute.conditional and NOT_ASKED not in counts
    if missing or any(number % 1 for number in people.values()):
        wanted = first_labels(attribute.labels)
        raise InvalidInput("counts", NOT_SHOWN, f"give how many people of the sample have each of: {wanted}")
    return PriorSet.from_sample([int(n) for n in people.values()], delta, attribute.domain)


def asked_share(gates: Mapping[str, Sequence[str]], prior: PriorOrSet, names: Sequence[str]) -> float | None:
    """The share of people with one of these codes in all gates; None if the prior does not know about all of them."""
    if prior.assumed or not isinstance(prior, Prior) or not set(gates) <= set(names):
        return None
    levels = (dict(zip(names, label_parts(label), strict=True)) for label in prior.labels)
    chosen = [all(level[gate] in codes for gate, codes in gates.items()) for level in levels]
    return float(prior.probabilities[chosen].sum())


def _masses(
    attributes: Sequence[Attribute], rows: Iterable[tuple[Sequence[str], float]]
) -> dict[Combination, float]:
    """The mass of each combination, from rows of entries with their weights."""
    masses: dict[Combination, float] = {}
    known: list[dict[str, dict[Label, float]]] = [{} for _ in attributes]
    for entries, weight in rows:
        for attribute, entry, seen in zip(attributes, entries, known, strict=True):
            if entry not in seen:
                seen[entry] = attribute.shares_of(entry)
        parts = [seen[entry].items() for entry, seen in zip(entries, known, strict=True)]
        for levels in product(*parts):
            combination = tuple(level for level, _ in levels)
            mass = weight * math.prod(share for _, share in levels)
            masses[combination] = masses.get(combination, 0.0) + mass
    return masses


def _of_all(
    attributes: Sequence[Attribute], masses: dict[Combination, float], asked: float | None
) -> dict[Combination, float]:
    """The shares of all people, where those of a question that is not always asked may be of the people it is asked."""
    question = attributes[0].question
    if not _is_one_question(attributes):
        return masses
    skipped = _skipped_combination(attributes)
    if skipped in masses:
        if asked is not None and abs(masses[skipped] - (1 - asked)) > _SAME:
            advice = f"{NOT_ASKED!r} has the share {masses[skipped]:.6g}, but after what is known about"
            gates = ", ".join(question.asked_if)
            raise InvalidPrior("shares", NOT_SHOWN, f"{advice} {gates} it is {1 - asked:.6g}: leave it out")
        return masses
    if asked is None:
        gates = " and ".join(question.asked_if)
        advice = f"how many people are asked does not follow from what is known about {gates}"
        raise InvalidPrior("shares", NOT_SHOWN, f'{advice}: give the share of "{NOT_ASKED}" too')
    if not 0 < asked < 1:
        raise InvalidPrior("shares", NOT_SHOWN, "everybody or nobody is asked: correct asked_if")
    return {**{level: asked * mass for level, mass in masses.items()}, skipped: 1 - asked}


def _is_one_question(attributes: Sequence[Attribute]) -> bool:
    """Whether these are the attributes of a single question that is not always asked."""
    question = attributes[0].question
    return bool(question.asked_if) and all(attribute.question is question for attribute in attributes)


def _skipped_combination(attributes: Sequence[Attribute]) -> Combination:
    return tuple(NOT_ASKED for _ in attributes)


def _combinations(attributes: Sequence[Attribute], only_asked: bool) -> list[Combination]:
    """The combinations that are possible, without the one of people who are not asked if they do not count."""
    skipped = _skipped_combination(attributes) if only_asked else None
    return [each for each in possible(attributes) if each != skipped]


def _require_no_rare(counts: Sequence[float]) -> None:
    try:
        require_no_rare(counts, what="cell")
    except InvalidInput as error:
        advice = f"{error.advice}: merge options, or write public = true if the table is public already"
        raise InvalidPrior("table", NOT_SHOWN, advice) from error


def _complete(
    attributes: Sequence[Attribute],
    masses: dict[Combination, float],
    smoothing: float | None,
    only_asked: bool = False,
    of_people: bool = False,
) -> dict[Combination, float]:
    """The masses of all possible combinations, with `smoothing` added to each; one without mass is refused.

    An impossible combination `of_people` is not shown: it holds somebody's answers.
    """
    combinations = _combinations(attributes, only_asked)
    if foreign := [each for each in masses if each not in set(combinations)]:
        combination = "a combination of answers in it" if of_people else _text(foreign[0])
        advice = f"{combination} cannot happen, by the conditions of the questions: correct one of them"
        raise InvalidPrior("shares", NOT_SHOWN, advice)
    complete = {each: masses.get(each, 0.0) + (smoothing or 0.0) for each in combinations}
    if empty := [each for each, mass in complete.items() if mass <= 0]:
        others = f" (and {len(empty) - 1:,} more)" if len(empty) > 1 else ""
        advice = f"{_text(empty[0])}{others} has no share, and people who answer that could not be protected"
        raise InvalidPrior(
            "shares", NOT_SHOWN, f"{advice}: give one; in a table, smoothing = 1 adds to each count"
        )
    return complete


def _text(combination: Combination) -> str:
    return " with ".join(number_text(x) if isinstance(x, float) else str(x) for x in combination)


def _normalise(masses: Mapping[Combination, float]) -> dict[Combination, float]:
    total = math.fsum(masses.values())
    return {combination: mass / total for combination, mass in masses.items()}


def _as_prior(
    attributes: Sequence[Attribute], masses: Mapping[Combination, float], assumed: bool = False
) -> Prior:
    shares = _normalise(masses)
    if len(attributes) > 1:
        numbers = {a.name: a.domain for a in attributes if isinstance(a.domain, NumberDomain)}
        kept: dict[str, Any] = {"impossible": "leave out", "outside": "ends", "assumed": assumed}
        kept["grids"] = {name: each.bounds for name, each in numbers.items() if each.rounds}
        kept["cells"] = {name: each.bounds for name, each in numbers.items() if not each.rounds}
        return Prior.joint(shares, [attribute.name for attribute in attributes], **kept)
    domain = attributes[0].domain
    if isinstance(domain, NumberDomain):
        make: Callable[..., Prior] = Prior.cells if isinstance(domain, Cells) else Prior.grid
        return make(domain.bounds, list(shares.values()), outside="ends", assumed=assumed)
    return Prior({level: share for (level,), share in shares.items()}, assumed=assumed)
